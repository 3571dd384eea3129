"""Samples of reductions and of the reduce and outer methods of ufuncs."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import Sample, fixed, normal, positive, sample, spaced, uniform
from wengert.core.primitives.cotangent import sum_over

MASK = fixed(np.array([[True, False, True, True], [False, True, True, False], [True, True, False, False]]))
HOLES = np.array([[0.3, np.nan, -1.2, 0.4], [np.nan, np.nan, np.nan, np.nan], [0.7, 0.1, 2.0, np.nan]])


def zeros_in(*shape: int) -> Any:
    """Return numbers with several zeros."""
    x = positive(*shape)
    x.flat[::3] = 0.0
    return x


def options(primitive: str, function: Any, make: Any = normal) -> list[Sample]:
    """Return samples of what every reduction has in common."""
    return [
        sample(primitive, function, make(2, 3)),
        sample(primitive, function, make(2, 3), axis=0),
        sample(primitive, function, make(3, 4), axis=-1, keepdims=True),
        sample(primitive, function, make(2, 3, 2), axis=(0, 2)),
        sample(primitive, function, make(2, 3), keepdims=True),
        sample(primitive, function, make(1)),
        sample(primitive, function, make(3, 0), axis=0),
        sample(primitive, function, make(4, 6)[::-1, ::2], axis=1),
        sample(primitive, function, np.asfortranarray(make(3, 4)), axis=0),
        sample(primitive, function, make(2, 3).astype(np.float32), axis=1),
    ]


def of_scalar(primitive: str, function: Any) -> list[Sample]:
    """Return the sample of a reduction of a 0-d array."""
    return [sample(primitive, function, np.array(0.7))]


SAMPLES = [
    # sums and means
    *options("sum", np.sum),
    *of_scalar("sum", np.sum),
    sample("sum", np.sum, normal(0)),
    sample("sum", np.sum, normal(2, 3), axis=()),
    sample("sum", np.sum, np.array(0.7), axis=0),
    sample("sum", np.sum, normal(3, 4), axis=0, where=MASK),
    sample("sum", np.sum, normal(2, 3).astype(np.float32), axis=1, dtype=np.float64),
    sample("sum", np.sum, normal(2, 3) + 1j * normal(2, 3, seed=1), axis=1),
    sample("sum", np.add.reduce, normal(2, 3)),
    sample("sum", np.add.reduce, normal(2, 3), axis=None, keepdims=True),
    sample("sum", lambda x: x.sum(axis=1, keepdims=True), normal(2, 3)),
    sample("sum", sum_over, normal(2, 3), axis=(0,)),
    sample("sum", sum_over, normal(37, 2), axis=(0,)),
    sample("sum", sum_over, normal(2, 35, 1), axis=(1,)),
    sample("sum", sum_over, normal(5, 7, 2), axis=(0, 1)),
    sample("sum", sum_over, normal(2, 3, 2), axis=(0, 2)),
    sample("sum", sum_over, normal(18, 2) + 1j * normal(18, 2, seed=1), axis=(0,)),
    sample("sum_from", lambda x, y: np.sum(x, axis=0, initial=y), normal(2, 3), np.array(0.3)),
    sample("sum_from", lambda x, y: np.add.reduce(x, initial=y), normal(4), np.array(0.3)),
    sample("sum_from", lambda x, m: np.sum(x, axis=1, initial=2.5, where=m), normal(3, 4), MASK),
    *options("mean", np.mean),
    *of_scalar("mean", np.mean),
    sample("mean", np.mean, normal(3, 4), axis=1, where=MASK),
    sample("mean", np.mean, normal(3, 4), axis=(0, 1), keepdims=True, where=MASK),
    sample("mean", np.mean, normal(2, 3).astype(np.float32), axis=1, dtype=np.float64),
    sample("mean", np.mean, normal(2, 3).astype(np.float16), axis=1, order=0),
    # products
    *options("prod", np.prod),
    *of_scalar("prod", np.prod),
    sample("prod", np.prod, zeros_in(4)),
    sample("prod", np.prod, zeros_in(3, 4), axis=1),
    sample("prod", np.prod, zeros_in(2, 3, 2), axis=(0, 2)),
    sample("prod", np.prod, np.array([0.0, 2.0, 3.0])),
    sample("prod", np.prod, np.array([0.0, 2.0, 0.0])),
    sample("prod", np.prod, normal(0)),
    sample("prod", np.prod, normal(3, 4), axis=0, where=MASK),
    sample("prod", lambda x, y: np.prod(x, axis=1, initial=y), normal(2, 3), np.array(0.3)),
    sample("prod", lambda x, y: np.prod(x, initial=y), normal(0, 3), np.array(0.3)),
    sample("prod", lambda x, m: np.prod(x, axis=1, initial=2.0, where=m), zeros_in(3, 4), MASK),
    sample("prod", np.prod, normal(2, 3) + 1j * normal(2, 3, seed=1), axis=1),
    sample("prod", np.multiply.reduce, zeros_in(3, 2)),
    sample("prod", np.multiply.reduce, normal(2, 3), axis=(0, 1)),
    # extrema
    *(s for f in (np.max, np.amax) for s in options("max", f, spaced)),
    *(s for f in (np.min, np.amin) for s in options("min", f, spaced)),
    *of_scalar("max", np.max),
    *of_scalar("min", np.min),
    sample("max", lambda x, y: np.max(x, axis=0, initial=y), spaced(3, 4), np.array(0.05)),
    sample("min", lambda x, y: np.min(x, axis=0, initial=y), spaced(3, 4), np.array(0.05)),
    sample("max", np.max, spaced(3, 4), axis=1, initial=-3.0, where=MASK),
    sample("min", np.min, spaced(3, 4), axis=1, initial=3.0, where=MASK),
    sample("max", np.maximum.reduce, spaced(3, 2)),
    sample("min", np.minimum.reduce, spaced(3, 2), axis=1, keepdims=True),
    sample("max", np.nanmax, spaced(3, 4), axis=1),
    sample("min", np.nanmin, spaced(3, 4), axis=0, keepdims=True),
    sample("max", lambda x: np.nanmax(np.where(np.isnan(HOLES[[0, 2]]), np.nan, x), axis=1), spaced(2, 4)),
    sample("min", lambda x: np.nanmin(np.where(np.isnan(HOLES[[0, 2]]), np.nan, x), axis=1), spaced(2, 4)),
    sample("max", np.ptp, spaced(3, 4)),
    sample("min", np.ptp, spaced(3, 4), axis=0, keepdims=True),
    # truth values and counts
    sample("constant_reduce", np.all, normal(2, 3), axis=0),
    sample("constant_reduce", np.any, normal(2, 3), axis=(0, 1), keepdims=True),
    sample("constant_reduce", np.all, normal(0)),
    sample("constant_reduce", np.any, zeros_in(3, 4), axis=1, where=MASK),
    sample("constant_reduce", np.logical_and.reduce, zeros_in(3, 4)),
    sample("constant_reduce", np.logical_or.reduce, zeros_in(3, 4), axis=1),
    sample("constant_reduce", np.logical_xor.reduce, zeros_in(3, 4), axis=None),
    sample("count_nonzero", np.count_nonzero, zeros_in(3, 4)),
    sample("count_nonzero", np.count_nonzero, zeros_in(3, 4), axis=1, keepdims=True),
    # methods of ufuncs
    *options("logaddexp_reduce", lambda x, axis=None, **k: np.logaddexp.reduce(x, axis=axis, **k)),
    sample("logaddexp_reduce", np.logaddexp.reduce, np.array([-np.inf, 0.3, -np.inf]), order=0),
    sample("logaddexp_reduce", lambda x: np.logaddexp.reduce(x, initial=0.5), normal(3)),
    sample("logaddexp_reduce", lambda x, m: np.logaddexp.reduce(x, axis=1, where=m), normal(3, 4), MASK),
    sample("ufunc_reduce", np.subtract.reduce, normal(3, 2)),
    sample("ufunc_reduce", np.divide.reduce, positive(3, 2), axis=1, keepdims=True),
    sample("ufunc_reduce", np.hypot.reduce, normal(2, 3, 2), axis=(0, 2)),
    sample("ufunc_reduce", np.logaddexp2.reduce, normal(2, 3), axis=(0, 1)),
    sample("ufunc_reduce", np.float_power.reduce, uniform(0.6, 1.4, 4)),
    sample("ufunc_reduce", np.fmax.reduce, spaced(3, 2)),
    sample("ufunc_reduce", lambda x: np.subtract.reduce(x, initial=1.0), normal(3)),
    sample("ufunc_reduce", np.subtract.reduce, normal(1, 2)),
    sample("ufunc_reduce", np.divide.reduce, positive()),
    sample("ufunc_reduce", np.power.reduce, positive()),
    sample("ufunc_reduce", np.hypot.reduce, normal(0, 2)),
    sample("multiply", np.multiply.outer, normal(2, 2), normal(3)),
    sample("add", np.add.outer, normal(2), np.array(0.7)),
    sample("divide", np.divide.outer, normal(2), positive(3)),
    sample("arctan2", np.arctan2.outer, normal(2), positive(2)),
    sample("maximum", np.maximum.outer, spaced(3), spaced(2, seed=1) + 0.05),
]
