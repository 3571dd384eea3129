"""Views as index maps: NumPy is asked how a view lies on an array of single bytes, of which no element is read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, Shape

Array = np.ndarray[Any, Any]


def window_map(shape: Shape, view: Callable[[Array], Array]) -> tuple[AxisIndex, Shape] | None:
    """Return how a view reads an array of a shape as one row, and the view's shape; None if it is a copy.

    >>> window_map((2, 3), np.transpose)
    (AxisIndex(offset=0, terms=((0, 1), (1, 3))), (3, 2))
    """
    whole: Array = np.empty(shape, np.int8)
    window = view(whole)
    if not np.may_share_memory(whole, window):
        return None
    start = window.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    steps = zip(window.strides, window.shape, strict=True)
    terms = tuple([(d, step) for d, (step, n) in enumerate(steps) if n > 1 and step])
    return AxisIndex(start, terms), window.shape
