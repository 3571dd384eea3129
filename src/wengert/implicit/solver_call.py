"""Calls of solvers: on plain arrays where there are such, traced where they can be, else again at each evaluation."""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.call import primitive as call_operation
from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_within
from wengert.core.containers.tree_leaves import flatten, map_leaves, unflatten
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Variable
from wengert.core.memory.views import current
from wengert.core.primitives.declaration_checks import in_form
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError, UsageError, WengertError
from wengert.support.attributes import function_name, with_own_variables
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.rules.calls import InLanes, UserCall, lane, readable
from wengert.transforms.captured_gradients import CapturedSubstitution
from wengert.transforms.reverse import stop_gradient

Values = Sequence[Any]
FOREIGN = (TypeError, ValueError, RuntimeError, ArithmeticError, AttributeError, SystemError, WengertError)
"""What other programs raise instead of the refusal of a Tensor that they have caught."""


@dataclasses.dataclass
class SolverNotes:
    """Hold what is known of a solver: whether it looks at numbers where there are none, and calls the user's functions.

    One that calls graphs of these gets what they read as arguments.
    """

    refuses_lanes: bool = False
    refuses_tracing: bool = False
    calls_functions: bool = True


class OfSolver(UserCall):
    """Be a call of a solver, of one lane or of all."""

    notes: SolverNotes

    def compute_lanes(self, lanes: InLanes, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Call the solver for all lanes at once, or for each if it looks at their numbers, as it did before."""
        if not self.notes.refuses_lanes or any(map(is_staged, operands)):
            return super().compute_lanes(lanes, operands)
        return lanes.one_by_one(self.compute_lane, operands, lanes.flags, lanes.size)

    def batch(self, _primitive: Primitive, size: int, operands: Values, batched: Sequence[bool], _: Any) -> Any:
        """Compute all lanes of a batch around it."""
        return apply(SolverLanes(self, size, batched), *operands)


class SolverCall(OfSolver):
    """Be one call of a solver, whose operands are the Tensors among its arguments and those that it captured.

    It has no derivatives of its own: nothing that reaches it is being differentiated.
    """

    def __init__(
        self,
        solver: Callable[..., Any],
        leaves: Values,
        structure: Any,
        places: Sequence[int],
        captured: Sequence[Tensor],
        notes: SolverNotes,
    ) -> None:
        super().__init__(solver, function_name(solver), places, False)
        self.solver = solver
        self.leaves = leaves
        self.structure = structure
        self.captured = captured
        self.notes = notes
        self.out_structure: Any = None

    def user_functions(self) -> Sequence[Any]:
        """Return the solver, if it calls functions of the user's."""
        return (self.solver,) if self.notes.calls_functions else ()

    def anew(self, _operands: Values) -> SolverCall:
        """Return the same call, not made yet."""
        made = SolverCall(self.solver, self.leaves, self.structure, self.places, self.captured, self.notes)
        made.form, made.outputs, made.out_structure = self.form, self.outputs, self.out_structure
        return made

    def compute(self, operands: Sequence[Tensor]) -> Sequence[Tensor]:
        """Call the solver: on ndarrays where operands have elements of their own."""
        if self.notes.refuses_tracing and any(map(is_staged, operands)):
            raise self.looks_at_numbers()
        count = len(self.places)
        leaves = list(self.leaves)
        for place, value in zip(self.places, operands[:count], strict=True):
            leaves[place] = in_plain_form(value)
        args, kwargs = unflatten(self.structure, leaves)

        def run(form: Callable[..., Any]) -> Any:
            with CapturedSubstitution(self.name, form, self.captured) as substitution:
                found = substitution.called(list(map(readable, operands[count:])), *args, **kwargs)
                substitution.require_unwritten()
            return found

        before = refusal_count()
        try:
            result = in_form(operands, self.solver, run)
        except FOREIGN as error:
            if refusal_count() == before:
                raise
            raise self.looks_at_numbers() from error
        if refusal_count() > before and any(x._trace is not None for x in operands):  # it went on with something else
            raise self.looks_at_numbers()
        found, self.out_structure = leaves_of_result(result)
        if not found:
            raise UsageError(self.name, "a solver that returned no array", "a solution is needed", "Return it")
        return list(map(as_tensor, found))

    def looks_at_numbers(self) -> GraphError:
        """Return the error about a solver that cannot be traced, or called for all lanes, so that it is for each."""
        needed = "one that does not is needed to be part of a graph, or called for all lanes"
        return GraphError(self.name, "a solver that looks at numbers", needed, "Let Python call it")

    def select_residuals(self, wanted: Sequence[bool]) -> tuple[bool, Callable[[int], bool]]:
        """Save nothing."""
        return False, lambda operand: False

    def pull(self, ct: Any, out: Any, operands: Values, avals: Sequence[Aval | None]) -> Values:
        """Send nothing back."""
        return [None] * len(operands)


class SolverLanes(InLanes, OfSolver):
    """Be the calls of a solver of all lanes."""

    one: OfSolver

    def __init__(self, one: OfSolver, size: int, flags: Sequence[bool]) -> None:
        super().__init__(one, size, flags)
        self.notes = one.notes
        self.outputs = one.outputs
        if isinstance(one.form, Region):  # what it is like is known, so it need not be called to see
            known = [Variable((size, *shape), dtype) for shape, dtype in map(shape_and_dtype, one.form.outputs((), {}))]
            self.form = Region(lambda _inputs, _params: known)

    def anew(self, operands: Values) -> UserCall:
        """Return the same calls, not made yet."""
        one = self.one.anew(operands)
        assert isinstance(one, OfSolver)
        return SolverLanes(one, self.size, self.flags)

    def one_by_one(self, rule: Callable[[Values], Values], values: Values, flags: Sequence[bool], size: int) -> Values:
        """Call the solver for each lane, which is what solvers do: there is nothing to warn of."""
        self.notes.refuses_lanes = True
        lanes = [rule([lane(x, i) if flag else x for x, flag in zip(values, flags, strict=True)]) for i in range(size)]
        return [self.gather_lanes(parts) for parts in zip(*lanes, strict=True)]


def shape_and_dtype(value: Any) -> tuple[tuple[int, ...], Any]:
    """Return the shape and the dtype of what stands for a result."""
    aval = aval_of(value)
    return aval.shape, aval.dtype


def in_plain_form(value: Tensor) -> Any:
    """Return a Tensor; of a plain one its array, which is what solvers of other libraries take."""
    found = current(value)
    return found._value if found._trace is None else found


def solve_without_derivatives(
    solver: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    like: Callable[..., Any] | None,
    notes: SolverNotes | None = None,
    captured: Sequence[Tensor] | None = None,
) -> Any:
    """Return what a solver gives for arguments of which no derivative is taken, called once.

    Args:
        solver: any function; it gets ndarrays where its arguments have elements.
        args: its arguments, in any containers.
        kwargs: likewise.
        like: from these to what is of the containers, shapes and dtypes of its result; None if tracing it tells, or
            a call with made-up numbers.
        notes: of earlier calls.
        captured: the Tensors that it reads besides; by default all that are differentiated, traced or in lanes.
    """
    leaves, structure = flatten((args, kwargs))
    places = [i for i, leaf in enumerate(leaves) if type(leaf) is Tensor]
    captured = captured_values(solver) if captured is None else captured
    operands = stop_gradient([*(leaves[i] for i in places), *captured])
    if not operands:
        return solver(*args, **kwargs)
    fixed = [None if type(leaf) is Tensor else leaf for leaf in leaves]
    if any(map(is_staged, operands)):  # a graph calls it later
        solver = with_own_variables(solver)
    call = SolverCall(solver, fixed, structure, places, captured, notes or SolverNotes())
    if any(map(is_staged, operands)):
        found = None if call.notes.refuses_tracing else trace_solver(call, operands)
        if found is not None:
            return found
        if like is not None:
            example = map_leaves(lambda x: np.zeros(aval_of(x).shape, aval_of(x).dtype), like(*args, **kwargs))
            known, call.out_structure = flatten(example)
            call.outputs = len(known)
            call.form = Region(lambda _inputs, _params: known)
    results = apply(call, *operands)
    return unflatten(call.out_structure, list(results) if call.outputs > 1 else [results])


def captured_values(solver: Callable[..., Any]) -> list[Tensor]:
    """Return the Tensors that a solver captures which are differentiated, traced or in lanes."""
    return [x for x, _ in Reach(function_name(solver), solver).tensors if x._trace is not None]


def warn_of_calls(name: str, solver: str, instead: str = "") -> None:
    """Warn that a graph calls a solver of another library.

    Args:
        name: what the user called.
        solver: what that is called.
        instead: what is compiled, if there is something.
    """
    text = f"{name}: {solver} is called by Python at each evaluation of a traced function, and not compiled."
    if instead:
        text = f"{text[:-1]}; {instead} is."
    warnings.warn(text, UserWarning, stacklevel=user_stacklevel())


def trace_solver(call: SolverCall, operands: Values) -> Any:
    """Return the results of a solver that is part of the graph that is being traced; None if it looks at elements."""
    reach = Reach(call.name, call.compute, call.user_functions())
    before = refusal_count()
    try:
        graph, captured = trace_within(reach, lambda *xs: call.compute(xs), operands, call.name)
    except (WengertError, TypeError, ValueError) as error:
        if refusal_count() == before and not isinstance(error, WengertError):
            raise  # the user's own
        forgive(before)
        call.notes.refuses_tracing = True
        return None
    results = apply(call_operation, *operands, *captured, graph=graph, name=call.name)
    return unflatten(call.out_structure, list(results))
