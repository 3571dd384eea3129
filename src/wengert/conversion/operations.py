"""What converted code calls: `if` becomes `if_stmt`, and so on."""

from __future__ import annotations

from typing import Any

from wengert.conversion.branches import and_, compare, if_exp, if_stmt, not_, or_, running
from wengert.conversion.loops import for_stmt, while_stmt
from wengert.conversion.raising import handling
from wengert.conversion.tables import indexed

__all__ = [
    "and_",
    "attribute",
    "callee",
    "callee_in_for",
    "compare",
    "for_stmt",
    "handling",
    "if_exp",
    "if_stmt",
    "indexed",
    "not_",
    "or_",
    "running",
    "while_stmt",
]


def attribute(value: Any, name: str) -> Any:
    """Return an attribute, of the user's properties what their functions give when converted."""
    from wengert.conversion.calls import attribute as found

    return found(value, name)


def callee(function: Any) -> Any:
    """Return what is called in place of a function."""
    from wengert.conversion.calls import callee as found

    return found(function)


def callee_in_for(function: Any) -> Any:
    """Return what is called in place of a function whose result a `for` statement goes through."""
    from wengert.conversion.calls import callee_in_for as found

    return found(function)
