"""Paths: the steps from an array to a view of it, composed as they are taken.

Consecutive basic indices are one index, consecutive permutations are one, an index stands before a permutation, and
what only inserts or drops axes of length one is an index. So most views of views are as far from the array that owns
the memory as views of it are, however many they were made by. The other steps stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN

Step = tuple[Primitive, tuple[tuple[str, Any], ...]]
Path = tuple[Step, ...]


def extended(shape: tuple[int, ...], path: Path, primitive: Primitive, params: dict[str, Any]) -> Path:
    """Return a path with one more step behind it.

    Args:
        shape: that of the array where the path begins.
        path: the steps so far.
        primitive: the view that is taken where they end.
        params: its parameters.
    """
    step = (primitive, tuple(params.items()))
    if not path or primitive.form is None or UNKNOWN in shape:
        return (*path, step)
    *earlier, last = path
    composed = primitive.form.composed(primitive, params, shape_after(shape, earlier), last)
    if composed is None:
        return (*path, step)
    found = tuple(earlier)
    for part, changed in composed:
        found = extended(shape, found, part, changed)
    return found


def shape_after(shape: tuple[int, ...], path: Sequence[Step]) -> tuple[int, ...]:
    """Return the shape of the view at the end of a path."""
    if not path:
        return shape
    window: Any = np.broadcast_to(np.empty(()), shape)
    for primitive, params in path:
        window = primitive.evaluate(window, **dict(params))
    return window.shape  # type: ignore[no-any-return]  # a tuple
