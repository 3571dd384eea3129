"""Samples of linear systems in Jacobians."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.samples.base import fixed, normal, sample
from wengert.core.values.dispatch import apply
from wengert.implicit.systems import certified, linear_solution


def solved(columns: Any, b: Any, transposed: bool) -> Any:
    """Return the solution of a system or its transpose."""
    return apply(linear_solution, columns, b, transposed=transposed, name="sample", singular="raise", tol=1e-3)


def certified_side(right: Any, excess: Any) -> Any:
    """Return a right-hand side at a point that solves its equations."""
    return apply(certified, right, excess, name="sample", tol=1e-3, singular="raise")


def regular(count: int) -> Any:
    """Return a matrix whose diagonal outweighs the rest."""
    return normal(count, count) + 4 * np.eye(count)


SAMPLES = [
    sample("linear_solution", solved, regular(3), normal(3, 2), transposed=False),
    sample("linear_solution", solved, regular(3), normal(3, 1), transposed=True),
    sample("certified", certified_side, normal(3), fixed(np.float64(0.5))),
]
