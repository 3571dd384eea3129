"""Arguments of functions of images."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from wengert.core.values.dispatch import as_tensor
from wengert.errors import ShapeError, UsageError

Lengths = tuple[int, ...]


def per_axis(name: str, what: str, value: Any, rank: int, least: int = 1) -> Lengths:
    """Return a number, not below the least, for each axis of space; one alone is that of all."""
    if type(value) is int and value >= least:
        return (value,) * rank
    try:
        found = tuple(map(operator.index, value)) if isinstance(value, Sequence) else (operator.index(value),) * rank
    except TypeError:
        found = ()
    if len(found) != rank or min(found) < least:
        needed = f"one or {rank} integers, {least} or more, are needed"
        raise UsageError(name, f"{what}={value!r}", needed, "Correct it")
    return found


def as_images(name: str, value: Any, rank: int) -> tuple[Any, bool]:
    """Return images with a batch, and whether they came with one."""
    x: Any = as_tensor(value)
    count = x.ndim
    if count == rank + 2:
        return x, True
    if count == rank + 1:
        return x[None], False
    needed = f"(batch, channels) or (channels,) and {rank} axes of space are needed"
    raise ShapeError(name, f"shape {x.shape}", needed, "Reshape it")


def window_spans(kernel: Lengths, gaps: Lengths) -> Lengths:
    """Return how long windows are with the gaps between their elements."""
    return tuple([(n - 1) * gap + 1 for n, gap in zip(kernel, gaps, strict=True)])


def require_room(name: str, lengths: Lengths, spans: Lengths) -> None:
    """Raise a ShapeError unless windows fit into images with their padding."""
    if any(n < span for n, span in zip(lengths, spans, strict=True)):
        given = f"windows of {spans} in images of {lengths}, with what is around them"
        raise ShapeError(name, given, "windows that fit are needed", "Pad the images, or take smaller windows")
