"""Linear systems whose inverse is known: many right-hand sides, and derivatives of any order without another one.

x = W^-1 b has dx = W^-1 (db - dW x), and cotangents b' = W^-T x', W' = -b' x^T: both are products with the same
inverse, whose own derivative is never taken.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.transforms.custom_rule import custom_rule


@custom_rule
def solve_by_inverse(inverse: Any, matrix: Any, b: Any) -> Any:
    """Return the solution of a system of shape (n, n), whose inverse is known, for a right-hand side of shape (n,)."""
    return inverse @ b


def solve_forward(inverse: Any, matrix: Any, b: Any) -> Any:
    """Return the solution, and what its cotangents need."""
    x = solve_by_inverse(inverse, matrix, b)
    return x, (inverse, matrix, x)


def solve_backward(residuals: Any, ct: Any) -> Any:
    """Return the cotangents of the matrix and the right-hand side; that of the inverse, which is held, is zero."""
    inverse, matrix, x = residuals
    back = solve_by_inverse(inverse.T, matrix.T, ct)
    return np.zeros(inverse.shape, inverse.dtype), -back[:, None] * x[None, :], back


def solve_pushed(primals: Any, tangents: Any) -> Any:
    """Return the solution and its tangent."""
    inverse, matrix, b = primals
    _, by_matrix, by_b = tangents
    x = solve_by_inverse(inverse, matrix, b)
    return x, solve_by_inverse(inverse, matrix, by_b - by_matrix @ x)


solve_by_inverse.defvjp(solve_forward, solve_backward)
solve_by_inverse.defjvp(solve_pushed)
