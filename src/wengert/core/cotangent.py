"""Cotangent arithmetic shared by all rules: un-broadcasting, matching dtypes, and the strong zero."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from wengert.core.aval import UNKNOWN
from wengert.core.tensor import is_staged, raw

__all__ = ["match_dtype", "strong_zero", "unbroadcast"]


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which a value of `shape` was broadcast.

    >>> unbroadcast(np.ones((2, 3)), (3,))
    array([2., 2., 2.])
    """
    have = ct.shape
    if have == shape:
        return ct
    if len(have) < len(shape):  # a rule may return less than the full shape when its value does not vary
        return np.broadcast_to(ct, shape)
    extra = len(have) - len(shape)
    stretched = [i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1]
    axes = (*range(extra), *stretched)
    summed = ct.sum(axis=axes) if axes else ct
    if summed.shape == shape:
        return summed
    if summed.size == math.prod(shape):
        return summed.reshape(shape)
    return np.broadcast_to(summed, shape)


def match_dtype(ct: Any, dtype: np.dtype[Any]) -> Any:
    """Return a cotangent in the dtype of its primal; a real primal takes the real part."""
    if ct.dtype.kind == "c" and dtype.kind != "c":
        ct = ct.real
    return ct if ct.dtype == dtype else ct.astype(dtype)


def strong_zero(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap the rule of a singular primitive so that a zero times an infinite partial is zero.

    Only elements where the product came out as NaN are replaced. Where the partial is finite the result stays a
    linear function of `t`, so that derivatives of the rule at t = 0 (a vjp of a vjp, say) are right.
    """

    @wraps(rule)
    def guarded(t: Any, out: Any, *xs: Any, **params: Any) -> Any:
        r = rule(t, out, *xs, **params)
        if not is_staged(r) and not np.isnan(raw(r)).any():
            return r
        if UNKNOWN in r.shape:  # a sequence of a loop: its cotangents are only passed on
            return r
        return np.where((r != r) & (t == 0), np.zeros((), r.dtype), r)

    return guarded
