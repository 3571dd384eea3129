"""Factors of banded matrices, and solutions by them, as parts of programs.

Column j of a matrix is row j of an array, which holds element (i, j) at place above + i - j; factors have `below` more
places in front, for what exchanges of rows fill in. That is how LAPACK stores them. Neither has derivatives: these are
of the solutions, by the rules of whoever holds the factors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.implicit.systems import batch_solution
from wengert.primitives.linear_algebra.matrices import lapack, over_stacks


def evaluate_factors(bands: Any, *, below: int, above: int) -> Any:
    """Evaluate `band_factors`: a column without a pivot is left as it is, so that solutions are not finite."""

    def one(matrix: Any) -> tuple[Any, Any]:
        packed = np.zeros((len(matrix), matrix.shape[1] + below), matrix.dtype)
        packed[:, below:] = matrix
        found, pivots, _ = lapack("gbtrf", matrix.dtype.char)(packed.T, below, above, overwrite_ab=1)
        return np.ascontiguousarray(found.T), pivots.astype(np.int32)

    return over_stacks(one, (2,), bands)


band_factors = constant(
    "band_factors",
    evaluate_factors,
    outputs=2,
    form=Routine("(n,w)->(n,p),(n)"),
    routine=lambda *, below, above: RoutineCall("band_factors", (), {"below": below, "above": above}),
)
"""Both triangular factors in one array, and with which row each was exchanged."""


def evaluate_solution(packed: Any, right: Any, pivots: Any, *, below: int, above: int, transposed: bool) -> Any:
    """Evaluate `band_solution`."""

    def one(packed: Any, right: Any, pivots: Any) -> Any:
        solve = lapack("gbtrs", packed.dtype.char)
        return np.ascontiguousarray(solve(packed.T, below, above, right, pivots, trans=int(transposed))[0])

    with np.errstate(all="ignore"):
        return over_stacks(one, (2, 2, 1), packed, right, pivots)


def routine_of_solution(*, below: int, above: int, transposed: bool) -> RoutineCall:
    """Return how native code is called."""
    return RoutineCall("band_solution", (), {"below": below, "above": above, "backward": int(transposed)})


band_solution: Primitive = constant(
    "band_solution",
    evaluate_solution,
    form=Routine("(n,p),(n,m),(n)->(n,m)"),
    batch=batch_solution,
    routine=routine_of_solution,
)
"""The solution X of A X = B, or with `transposed` that of A^T X = B, by the factors of A."""
