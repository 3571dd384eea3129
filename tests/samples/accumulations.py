"""Samples of running sums and products, of the accumulate methods of ufuncs, and of differences and integrals."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import fixed, normal, positive, sample, spaced, uniform
from wengert.core.values.dispatch import apply
from wengert.primitives import accumulations

ZEROS = np.array([0.7, 0.0, 1.3, 0.0, -0.4])
POINTS = np.array([0.0, 0.5, 0.7, 2.0])


def recurrence(a: Any, b: Any, *, axis: int = 0, reverse: bool = False) -> Any:
    """Solve a linear recurrence."""
    return apply(accumulations.recurrence, a, b, axis=axis, reverse=reverse)


def ties(y: Any, x: Any) -> Any:
    """Return the partials of a running extremum."""
    return apply(accumulations.extremum_partials, y, x, axis=0)


SAMPLES = [
    sample("cumsum", np.cumsum, normal(2, 3)),
    sample("cumsum", np.cumsum, normal(2, 3), axis=0),
    sample("cumsum", np.cumsum, normal(2, 3, 2), axis=-2),
    sample("cumsum", np.cumsum, np.array(0.7)),
    sample("cumsum", np.cumsum, np.array(0.7), axis=0),
    sample("cumsum", np.cumsum, normal(0, 3), axis=1),
    sample("cumsum", np.cumsum, normal(4, 6)[::-1, ::2], axis=1),
    sample("cumsum", np.cumsum, normal(4).astype(np.float32), dtype=np.float64),
    sample("cumsum", np.cumsum, normal(4).astype(np.float32)),
    sample("cumsum", np.cumsum, normal(4) + 1j * normal(4, seed=1)),
    sample("cumsum", np.add.accumulate, normal(3, 2)),
    sample("cumsum", np.cumulative_sum, normal(3), include_initial=True),
    sample("cumsum", np.cumulative_sum, normal(2, 3), axis=-1, include_initial=True),
    sample("cumsum", np.cumulative_sum, normal(2, 3), axis=0),
    sample("cumsum", np.nancumsum, np.array([0.3, np.nan, 1.0]), order=0),
    sample("cumsum", np.nancumsum, normal(2, 3), axis=1),
    sample("accumulate", np.cumprod, normal(2, 3)),
    sample("accumulate", np.cumprod, normal(2, 3, 2), axis=1),
    sample("accumulate", np.cumprod, ZEROS),
    sample("accumulate", np.cumprod, np.stack([ZEROS, ZEROS[::-1]]), axis=1),
    sample("accumulate", np.cumprod, np.array(0.7)),
    sample("accumulate", np.cumprod, normal(0, 3), axis=0),
    sample("accumulate", np.cumprod, normal(1, 3), axis=0),
    sample("accumulate", np.cumprod, normal(4).astype(np.float32)),
    sample("accumulate", np.cumprod, normal(3) + 1j * normal(3, seed=1)),
    sample("accumulate", np.cumulative_prod, normal(3), include_initial=True),
    sample("accumulate", np.cumulative_prod, normal(2, 3), axis=0),
    sample("accumulate", np.nancumprod, normal(2, 3), axis=0),
    sample("accumulate", np.multiply.accumulate, ZEROS),
    sample("accumulate", np.maximum.accumulate, spaced(3, 4), axis=1),
    sample("accumulate", np.minimum.accumulate, spaced(3, 4)),
    sample("accumulate", np.logaddexp.accumulate, normal(3, 2)),
    sample("accumulate", np.logaddexp2.accumulate, normal(2, 3), axis=-1),
    sample("accumulate", np.subtract.accumulate, normal(4)),
    sample("accumulate", np.divide.accumulate, positive(4)),
    sample("accumulate", np.power.accumulate, uniform(0.6, 1.4, 4)),
    sample("accumulate", np.hypot.accumulate, positive(2, 3)),
    sample("accumulate", np.fmin.accumulate, spaced(4)),
    sample("constant_accumulate", np.logical_and.accumulate, ZEROS),
    sample("recurrence", recurrence, normal(3), normal(4)),
    sample("recurrence", recurrence, normal(2, 2), normal(2, 3), axis=1, reverse=True),
    sample("recurrence", recurrence, normal(0, 2), normal(1, 2), reverse=True),
    sample("extremum_partials", ties, fixed(np.array([1.0, 1.0, 2.0])), fixed(np.array([1.0, 1.0, 2.0]))),
    # differences and integrals
    sample("difference", np.diff, normal(2, 4)),
    sample("difference", np.diff, normal(4, 2), n=2, axis=0),
    sample("difference", np.diff, normal(2, 1)),
    sample("difference", np.diff, normal(2, 2)),
    sample("difference", lambda x, a, b: np.diff(x, prepend=a, append=b), normal(2, 3), np.array(0.3), normal(2, 2)),
    sample("subtract", np.ediff1d, normal(2, 3)),
    sample("subtract", lambda x, a, b: np.ediff1d(x, a, b), normal(3), np.array(0.3), normal(2)),
    sample("subtract", np.gradient, normal(5)),
    sample("subtract", np.gradient, normal(4, 3)),
    sample("subtract", np.gradient, normal(4, 3), 0.5, 2.0, edge_order=2),
    sample("subtract", np.gradient, normal(4, 3), fixed(POINTS), axis=0),
    sample("subtract", np.gradient, normal(4), fixed(np.arange(4) * 0.5), edge_order=2),
    sample("subtract", np.gradient, normal(4), POINTS),
    sample("subtract", np.gradient, normal(4), POINTS, edge_order=2),
    sample("subtract", np.gradient, normal(4), np.array(0.5)),
    sample("trapezoid", np.trapezoid, normal(2, 4)),
    sample("trapezoid", np.trapezoid, normal(2, 4), dx=0.5, axis=0),
    sample("trapezoid", np.trapezoid, normal(1)),
    sample("trapezoid", np.trapezoid, normal(3, 2, 2) + 1j * normal(3, 2, 2, seed=1), axis=1),
    sample("trapezoid", np.trapezoid, normal(5).astype(np.float32), dx=0.1),
    sample("sum", np.trapezoid, normal(0)),
    sample("sum", np.trapezoid, normal(2, 4), POINTS),
    sample("sum", np.trapezoid, normal(2, 4), normal(2, 4, seed=1)),
    # segments
    sample("reduceat", np.add.reduceat, normal(7, 2), fixed(np.array([1, 3, 4]))),
    sample("reduceat", np.add.reduceat, normal(2, 7), fixed(np.array([3, 1, 1, 5])), axis=1),
    sample("max", np.maximum.reduceat, spaced(7), fixed([0, 3])),
]
