"""Functions that capture other numbers at each call, as functions of these, so that what was traced of one serves all.

A function made anew for other data, `lambda x: model(x, data)`, has the code of the one before. What it captures is a
constant of what is traced first: what a sparse pattern leaves out may follow from it. When the same code comes with
other floats or arrays, these become arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from wengert.control.reachable_state import ReachableState
from wengert.core.graph.identity import Elements
from wengert.core.values.tensor import Tensor
from wengert.errors import WengertError
from wengert.implicit.solver_call import in_plain_form
from wengert.support.attributes import resemble
from wengert.support.caches import Recent
from wengert.support.records import NamedTuple
from wengert.support.refusals import forgive, refusal_count
from wengert.transforms.function_cache import FunctionCache
from wengert.transforms.jit import UnknownShape, jit
from wengert.transforms.outer_values import OuterValues

Function = Callable[..., Any]


class ProblemPlan(NamedTuple):
    """Say what is traced, and what was.

    Attributes:
        function: the user's, or one of what this captures, too.
        args: its further arguments.
        made: what was made of it, by names.
    """

    function: Callable[..., Any]
    args: tuple[Any, ...]
    made: dict[str, Any]


class OuterFunction:
    """Be a function of its arguments, and then of the floats and arrays that functions of its code capture.

    Attributes:
        function: that.
        made: what was made of it, by names.
    """

    def __init__(self, name: str, outer: OuterValues) -> None:
        kept, count = outer.with_zeros(), len(outer.leaves)
        (function,) = kept.values

        def call(first: Any, *given: Any) -> Any:
            end = len(given) - count
            (own,), made = kept.replace_values(kept.values, given[end:])
            if function is not kept.values[0]:  # it has been converted, as control flow asked for that
                from wengert.conversion.operations import callee  # rewriting source is needed by few programs

                own = callee(own)
            found = own(first, *given[:end])
            made.require_unwritten(name)
            return found

        self.function = resemble(call, function, updated=False)
        self.made: dict[str, Any] = {}


OUTER: FunctionCache[OuterFunction] = FunctionCache(most=64)
ONCE: Recent[Hashable, bool] = Recent(256)
"""Keys of functions that were seen with some captured numbers."""
FEW_CONSTANTS = 1 << 16
"""Elements of an array of integers or truths, which is a constant, that a key holds at most."""


def find_outer_function(
    name: str, function: Function, kind: Hashable, first: Any, args: tuple[Any, ...], at_once: bool
) -> ProblemPlan | None:
    """Return how a function of what a user's captures is traced, which all of its code share.

    It is None for functions that were not seen before with other numbers, unless `at_once`; for those that capture
    none, or something that nobody can look at; and for those that look at the numbers that they capture.

    Args:
        name: what the user called.
        function: the user's.
        kind: of the problem that it is part of.
        first: what it may be called with.
        args: its further arguments.
        at_once: whether what it captures now will not come again.
    """
    found = OUTER.walk_again((function,), kind)
    if found is None:
        outer = OuterValues((function,))
        key = outer.key, kind
        large = any(type(part) is Elements and part.array.size > FEW_CONSTANTS for part in outer.parts)
        if not outer.leaves or not outer.is_complete or large or key in OUTER.fixed:
            return None
        if key not in OUTER.known and not at_once and key not in ONCE:
            ONCE[outer.lasting_key, kind] = True
            return None
        kept = OUTER.known.get(key)
        if kept is None:
            made = OuterFunction(name, outer)
            if not can_be_traced(made, outer.values, (first, *args, *outer.leaves)):
                OUTER.fixed[outer.lasting_key, kind] = True
                return None
            kept = OUTER.kept_for(outer, kind, lambda: made)
        OUTER.remember(outer, kind, kept)
        found = kept, outer.leaves
    kept, leaves = found
    own = [in_plain_form(x) if type(x) is Tensor else x for x in leaves]
    return ProblemPlan(kept.made.function, (*args, *own), kept.made.made)


def can_be_traced(outer: OuterFunction, users: Sequence[Any], args: Sequence[Any]) -> bool:
    """Tell whether a function does not look at the numbers it captures, by tracing it once.

    Nothing is evaluated: unknowns are zeros here, at which a function may warn of what its user never asked for. What
    the user's functions change is put back.
    """
    before, heap = refusal_count(), ReachableState((), values=tuple(users))
    try:
        jit(outer.function).form_for(args, {})
    except UnknownShape:  # of what a mask selects: it runs as it is
        return True
    except (WengertError, TypeError) as error:
        if not isinstance(error, WengertError) and "Tensor" not in str(error):  # of the user's function
            raise
        forgive(before)
        return False
    finally:
        heap.restore()
    return True
