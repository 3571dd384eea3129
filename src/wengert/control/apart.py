"""Arguments that share memory: NumPy shows a write to one of them in the other, and a transformation cannot."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.source import Position, caller, position_of
from wengert.core.tensor import Tensor, is_concrete, raw
from wengert.core.views import base_and_path
from wengert.errors import GraphError, describe
from wengert.traces.staging import Stage

__all__ = ["held", "require_apart", "written_to"]

HARD = 1000
"""How many candidates to try before two arrays are taken to overlap."""


def held(leaves: Sequence[Any]) -> list[Any]:
    """Return what the Tensors among the arguments of a function hold, to be compared with `written_to` afterwards."""
    return [leaf._value if type(leaf) is Tensor else None for leaf in leaves]


def written_to(leaves: Sequence[Any], before: Sequence[Any]) -> list[int]:
    """Return the positions of the arguments that a function wrote to."""
    return [i for i, x in enumerate(leaves) if type(x) is Tensor and x._value is not before[i]]


def require_apart(name: str, given: Sequence[Any], written: Iterable[int], position: Position | None = None) -> None:
    """Raise a GraphError if an argument that was written to shares memory with another one.

    Args:
        name: the transformation.
        given: the arguments, or what they hold in their containers, as they were given.
        written: the positions of those that the function wrote to.
        position: where it did, if that is known.
    """
    for i in written:
        note(given[i])
        for j, other in enumerate(given):
            if i != j and share_memory(given[i], other):
                raise GraphError(
                    describe(
                        name,
                        f"arguments {min(i, j)} and {max(i, j)} (counted in their containers) that share memory, "
                        "of which the function writes to one",
                        "arrays of their own are needed, because the other one would not change as in plain NumPy",
                        "Copy one of them",
                    )
                    + f"\n  {position or position_of(*caller())}"
                )


def note(value: Any) -> None:
    """Let the trace of a function that is being staged know that one inside wrote to its argument."""
    while type(value) is Tensor:
        trace = value._trace
        if isinstance(trace, Stage):
            trace.written.add(value._value)
            return
        value = None if trace is None else trace.below(value)


def share_memory(one: Any, other: Any) -> bool:
    """Tell whether two arguments are arrays or Tensors that share memory, or may do so."""
    if one is other:
        return isinstance(one, np.ndarray | Tensor)
    owners = [base_and_path(x)[0] if type(x) is Tensor else x for x in (one, other)]
    if owners[0] is owners[1] and type(owners[0]) is Tensor:
        return True
    arrays = [raw(x) if type(x) is not Tensor or is_concrete(x) else None for x in (one, other)]
    if not all(isinstance(x, np.ndarray) for x in arrays):
        return False
    try:
        return np.shares_memory(arrays[0], arrays[1], max_work=HARD)  # type: ignore[arg-type]  # the stub wants -1 or 0
    except np.exceptions.TooHardError:
        return True
