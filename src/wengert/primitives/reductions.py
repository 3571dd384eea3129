"""Reductions and accumulations."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.aval import Aval
from wengert.core.primitive import linear

Axes = tuple[int, ...]


def restore_axes(ct: Any, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Any:
    """Return a reduced value with its reduced axes put back as axes of length one."""
    if keepdims:
        return ct
    return ct.reshape(tuple(1 if i in axis else n for i, n in enumerate(shape)))


def transpose_sum(ct: Any, aval: Aval, *, axis: Axes, keepdims: bool) -> Any:
    """Spread the cotangent over the axes that were summed."""
    return np.broadcast_to(restore_axes(ct, aval.shape, axis, keepdims), aval.shape)


sum_ = linear(
    "sum",
    lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims),
    transpose=transpose_sum,
)
