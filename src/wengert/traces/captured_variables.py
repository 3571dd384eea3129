"""Variables that functions of the user capture: graphs call the functions later, so they must stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CellType, FunctionType
from typing import Any

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.errors import GraphError, describe
from wengert.support.attributes import attribute


def variables_stay(name: str, functions: Sequence[Any]) -> Callable[[], None]:
    """Return what raises a GraphError if a variable that some functions capture has been set to something else since.

    Args:
        name: of what calls the functions, for errors.
        functions: these; those that they capture count, too.
    """
    place = caller()
    kept: dict[int, tuple[CellType, Any]] = {}
    queue = list(functions)
    while queue:
        function = queue.pop()
        if type(function) is not FunctionType:  # one with rules, or jitted
            function = attribute(function, "__wrapped__")
        for cell in (function.__closure__ or ()) if type(function) is FunctionType else ():
            if id(cell) not in kept and is_set(cell):
                kept[id(cell)] = cell, cell.cell_contents
                queue.append(cell.cell_contents)

    def require_unset() -> None:
        if any(not is_set(cell) or cell.cell_contents is not content for cell, content in kept.values()):
            given = "a variable that a function with rules of its own captures, and that is set after the call"
            needed = "one value is needed, because a graph calls the function later"
            text = describe(name, given, needed, "Pass it as an argument, or give it another name")
            raise GraphError(f"{text}\n  {position_of(*place)}")

    return require_unset


def is_set(cell: CellType) -> bool:
    """Tell whether a variable has a value."""
    try:
        _ = cell.cell_contents
    except ValueError:
        return False
    return True
