"""Arguments that a function writes to: none that is read-only, as in NumPy, and none that shares memory with another.

NumPy shows a write to one of two arrays that share memory in the other, and a transformation cannot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.diagnostics.source_positions import Position, caller, position_of
from wengert.core.memory.buffers import forbid_writes
from wengert.core.memory.views import base_and_path
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import GraphError, UsageError
from wengert.primitives.indexing.index_forms import require_writable_window
from wengert.traces.staging import Staging
from wengert.traces.transient import Transient

Written = Mapping[int, Position | None]
HARD = 1000
"""How many candidates to try before two arrays are taken to overlap."""


def own_copies(args: Any) -> Any:
    """Return arguments for one call of a function that may write to them: the caller, and other calls, see nothing.

    >>> x = np.ones(2)
    >>> copy, text = own_copies((x, "text"))
    >>> copy += 1.0
    >>> x, text
    (array([1., 1.]), 'text')
    """

    def own_copy(leaf: Any) -> Any:
        is_array = isinstance(leaf, np.ndarray | Tensor) and not aval_of(leaf).weak  # `x *= 2` makes another number
        return leaf.copy(order="K") if is_array else leaf

    return map_leaves(own_copy, args)


def contents_before(leaves: Sequence[Any]) -> list[Any]:
    """Return what the Tensors among the arguments of a function hold, to be compared with `find_writes` afterwards."""
    return [leaf._value if type(leaf) is Tensor else None for leaf in leaves]


def find_writes(leaves: Sequence[Any], before: Sequence[Any]) -> Written:
    """Return the positions of the arguments that a function wrote to, and where it did last."""
    changed = [i for i, x in enumerate(leaves) if type(x) is Tensor and x._value is not before[i]]
    return {i: origin_of(leaves[i]) for i in changed}


def origin_of(tensor: Tensor) -> Position | None:
    """Return where a value was made, if its trace knows."""
    return position_of(*tensor._trace.made_at(tensor)) if isinstance(tensor._trace, Transient) else None


def apart(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """Return values that are arrays of their own: a graph may give one twice, an argument, parts, or a literal."""
    seen = {id(owner(x)) for x in others}
    found = []
    for x in values:
        is_shared = type(x) is np.ndarray and (id(owner(x)) in seen or not x.flags.writeable)
        found.append(x.copy(order="K") if is_shared else x)
        seen.add(id(owner(x)))
    return found


def owner(value: Any) -> Any:
    """Return what has the memory of an array, which is the array itself if it is no view; others as they are."""
    while type(value) is np.ndarray and value.base is not None:
        value = value.base
    return value


def require_apart(name: str, given: Sequence[Any], written: Written) -> None:
    """Raise if an argument that was written to is read-only, or shares memory with another one.

    Args:
        name: the transformation.
        given: the arguments, or what they hold in their containers, as they were given.
        written: the positions of those that the function wrote to, and where.

    Raises:
        UsageError: it is read-only.
        GraphError: it shares memory.
    """
    for i, place in written.items():
        note_write(given[i])
        if is_read_only(given[i]):
            raise UsageError(
                name,
                f"a read-only array as argument {i} (counted in the containers), which the function writes to",
                "an array that can be written to is needed, as in NumPy",
                "Pass a copy, or copy it in the function",
                place=place or position_of(*caller()),
            )
    require_unshared(name, given, written)


def require_unshared(name: str, given: Sequence[Any], written: Written) -> None:
    """Raise a GraphError if an argument that was written to shares memory with another one."""
    for i, place in written.items():
        for j, other in enumerate(given):
            if i != j and share_memory(given[i], other):
                raise GraphError(
                    name,
                    f"arguments {min(i, j)} and {max(i, j)} (counted in their containers) that share memory, "
                    "of which the function writes to one",
                    "arrays of their own are needed, because the other one would not change as in plain NumPy",
                    "Copy one of them",
                    place=place or position_of(*caller()),
                )


def is_read_only(value: Any) -> bool:
    """Tell whether an argument is a read-only array, or a Tensor that stands for one."""
    if type(value) is not Tensor:
        return isinstance(value, np.ndarray) and not value.flags.writeable
    base, path = base_and_path(value)
    if not path:
        return hasattr(base, "_fixed")
    try:
        require_writable_window(base, path)
    except ValueError:
        return True
    return hasattr(base, "_fixed")


def protect_argument(tensor: Tensor, given: Any) -> Tensor:
    """Return a Tensor that stands for an argument in a function, which must not write to it if it is read-only."""
    return forbid_writes(tensor) if is_read_only(given) else tensor


def note_write(value: Any) -> None:
    """Let the trace of a function that is being staged know that one inside wrote to its argument."""
    while type(value) is Tensor:
        trace = value._trace
        if isinstance(trace, Staging):
            trace.written.add(value._value)
            return
        value = None if trace is None else trace.below(value)


def place_in_memory(value: Any) -> Any:
    """Return an array that lies where an argument does, or where NumPy's view of what a Tensor holds would lie."""
    if type(value) is not Tensor:
        return value
    base, path = base_and_path(value)
    found = raw(base)
    for primitive, params in path:
        found = primitive.evaluate(found, **dict(params))
    return found


def share_memory(one: Any, other: Any) -> bool:
    """Tell whether two arguments are arrays or Tensors that share memory, or may do so."""
    if one is other:
        return isinstance(one, np.ndarray | Tensor)
    owners = [base_and_path(x)[0] if type(x) is Tensor else x for x in (one, other)]
    of_one = owners[0] is owners[1] and type(owners[0]) is Tensor
    known = all(type(x) is not Tensor or is_concrete(x) for x in (one, other))
    arrays = [place_in_memory(x) for x in (one, other)] if known else []
    if not known or not all(isinstance(x, np.ndarray) for x in arrays):
        return of_one
    try:
        return np.shares_memory(arrays[0], arrays[1], max_work=HARD)  # type: ignore[arg-type]  # the stub wants -1 or 0
    except np.exceptions.TooHardError:
        return True
