"""What functions that are traced must not change: a graph returns its results and does nothing else."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import CellType, FunctionType, MethodType
from typing import Any

import numpy as np

from wengert.core.source import caller, is_own, position_of
from wengert.core.tensor import Tensor
from wengert.core.watch import Watch
from wengert.errors import GraphError, describe

__all__ = ["Variables", "require_unwritten"]

UNBOUND: Any = object()


def require_unwritten(watch: Watch, name: str) -> None:
    """Raise if a function that was traced wrote to a Tensor from outside, which its graph cannot do."""
    for written in watch.written():
        raise effect(name, f"writes to a Tensor of shape {written.shape} from outside", "Write into a copy")


class Variables:
    """Keep what the variables of the functions that enclose a user's function hold.

    Args:
        function: the user's, or one of the library that calls it.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self.before = [(name, cell, content_of(cell)) for name, cell in outer_variables(function)]

    def require_unchanged(self, name: str) -> None:
        """Raise, and put back what was there, if one of them was set to or from an array."""
        for variable, cell, before in self.before:
            now = content_of(cell)
            if now is not before and any(isinstance(x, Tensor | np.ndarray) for x in (before, now)):
                if before is not UNBOUND:
                    cell.cell_contents = before
                raise effect(name, f"sets the variable {variable} of an enclosing function", "Compute its value")


def effect(name: str, what: str, action: str) -> GraphError:
    """Return the error about a function that does more than return its results."""
    given = f"a function that {what}"
    needed = "what it changes has to be among its results while it is being traced"
    return GraphError(describe(name, given, needed, f"{action} and return it") + f"\n  {position_of(*caller())}")


def content_of(cell: CellType) -> Any:
    """Return what a variable holds; UNBOUND if nothing yet."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def outer_variables(function: Callable[..., Any]) -> list[tuple[str, CellType]]:
    """Return the variables of enclosing functions that the user's functions within a callable may set."""
    found: list[tuple[str, CellType]] = []
    queue: list[Any] = [function]
    seen: set[int] = set()
    while queue:
        value = queue.pop()
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, MethodType):
            queue.append(value.__func__)
        elif isinstance(value, functools.partial):
            queue.append(value.func)
        elif isinstance(value, FunctionType):
            cells = value.__closure__ or ()
            if is_own(value.__code__.co_filename):
                queue += [*map(content_of, cells), *(value.__defaults__ or ())]
            else:
                found += zip(value.__code__.co_freevars, cells, strict=True)
        else:
            queue += [x for x in (getattr(value, "function", None),) if x is not None]
    return found
