"""Broadcasting: the error about shapes that do not fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.core.values.aval import aval_of
from wengert.errors import ShapeError


def check_broadcast(name: str, operands: Sequence[Any]) -> None:
    """Raise a ShapeError if the shapes of operands do not broadcast together.

    >>> check_broadcast("add", [1.0, 2.0])
    """
    shapes = [aval_of(x).shape for x in operands]
    for axis in range(1, 1 + max((len(shape) for shape in shapes), default=0)):
        lengths = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            raise misfit(name, shapes)


def misfit(name: str, shapes: Sequence[tuple[int, ...]]) -> ShapeError:
    """Return the error about shapes that do not broadcast together."""
    needed = "shapes that broadcast are needed: equal from the right, or 1"
    return ShapeError(name, f"shapes {' and '.join(map(str, shapes))}", needed, "Reshape one of them")
