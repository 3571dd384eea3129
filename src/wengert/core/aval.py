"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

__all__ = ["UNKNOWN", "Aval", "aval_of", "is_differentiable", "shape_of"]

UNKNOWN = -1
"""The length of a sequence of arrays that is known only at run time, in front of the shape of each."""


class Aval(NamedTuple):
    """Hold the shape and dtype of an array."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def aval_of(value: Any) -> Aval:
    """Return the shape and dtype of an array, a Tensor or a Python number.

    >>> aval_of(1.5)
    Aval(shape=(), dtype=dtype('float64'))
    """
    try:
        return Aval(value.shape, value.dtype)
    except AttributeError:
        array = np.asarray(value)
        return Aval(array.shape, array.dtype)


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, a Tensor or a Python number.

    >>> shape_of(1.5)
    ()
    """
    try:
        shape: tuple[int, ...] = value.shape
    except AttributeError:
        shape = np.shape(value)
    return shape


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Tell whether values of a dtype have derivatives: float and complex have."""
    return dtype.kind in "fc"
