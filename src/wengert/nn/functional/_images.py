"""Arguments of functions of images."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from wengert.core.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError, describe

__all__ = ["Lengths", "each", "images"]


Lengths = tuple[int, ...]


def each(name: str, what: str, value: Any, rank: int) -> Lengths:
    """Return a number for each axis of space; one alone is that of all."""
    if type(value) is int:
        return (value,) * rank
    found = tuple(map(operator.index, value)) if isinstance(value, Sequence) else (operator.index(value),) * rank
    if len(found) != rank:
        raise UsageError(describe(name, f"{what}={value!r}", f"one or {rank} integers are needed", "Correct it"))
    return found


def images(name: str, value: Any, rank: int) -> tuple[Any, bool]:
    """Return images with a batch, and whether they came with one."""
    x: Any = as_tensor(value)
    count = x.ndim
    if count == rank + 2:
        return x, True
    if count == rank + 1:
        return x[None], False
    needed = f"(batch, channels) or (channels,) and {rank} axes of space are needed"
    raise ShapeError(describe(name, f"shape {x.shape}", needed, "Reshape it"))
