"""Triangular systems and Cholesky's decomposition with SciPy's signatures."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.linalg

from wengert.core.values.dispatch import apply, implements
from wengert.errors import UsageError
from wengert.numpy._contractions import array
from wengert.primitives.linear_algebra import triangular
from wengert.scipy._operands import right_side, solve_columns, square_matrices

TRANSPOSES = {"N": 0, "T": 1, "C": 2, 0: 0, 1: 1, 2: 2}


@implements(scipy.linalg.solve_triangular)
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the solution of a triangular system; see `scipy.linalg.solve_triangular`."""
    x = square_matrices("solve_triangular", a)
    if trans not in TRANSPOSES:
        given = f"trans={trans!r:.40}"
        raise UsageError("solve_triangular", given, "0, 1, 2, 'N', 'T' or 'C' is needed", "Leave it out")
    params = {
        "trans": TRANSPOSES[trans],
        "lower": bool(lower),
        "unit_diagonal": bool(unit_diagonal),
        "check_finite": bool(check_finite),
    }
    right = right_side("solve_triangular", x.shape[-1], b)
    return solve_columns(lambda y: apply(triangular.solve_triangular, x, y, **params), right)


@implements(scipy.linalg.cholesky)
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the Cholesky factor of a matrix; see `scipy.linalg.cholesky`."""
    x = square_matrices("cholesky", a)
    return apply(triangular.scipy_cholesky, x, upper=not lower, check_finite=bool(check_finite))


@implements(scipy.linalg.cho_factor)
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the Cholesky factor of a matrix; see `scipy.linalg.cho_factor`.

    The other triangle is as it was, or 0 from SciPy 1.18 on.
    """
    x = square_matrices("cho_factor", a)
    factor = apply(triangular.scipy_cholesky, x, upper=not lower, check_finite=bool(check_finite))
    if clears_triangle():
        return factor, lower
    inside = np.tri(x.shape[-1], dtype=bool)
    return np.where(inside if lower else inside.T, factor, x), lower


@functools.cache
def clears_triangle() -> bool:
    """Tell whether SciPy's `cho_factor` gives 0 for the other triangle."""
    return bool(scipy.linalg.cho_factor(np.array([[4.0, 1.0], [1.0, 4.0]]))[0][1, 0] == 0)


@implements(scipy.linalg.cho_solve)
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of a system whose matrix has a Cholesky factor; see `scipy.linalg.cho_solve`."""
    c, lower = c_and_lower
    x = square_matrices("cho_solve", c)
    params = {"upper": not lower, "check_finite": bool(check_finite)}
    right = right_side("cho_solve", x.shape[-1], array("cho_solve", b))
    return solve_columns(lambda y: apply(triangular.cho_solve, x, y, **params), right)
