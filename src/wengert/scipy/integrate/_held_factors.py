"""Linear systems whose LU factors are known: solutions, and derivatives of any order without other factors.

x = A^-1 b has dx = A^-1 (db - dA x), and cotangents b' = A^-T x', A' = -b' x^T: both are solved by the same factors,
whose own derivative is never taken.
"""

from __future__ import annotations

from typing import Any

from wengert.scipy._linear_algebra import lu_factor, lu_solve
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.reverse import stop_gradient


def held_factors(matrix: Any) -> Any:
    """Return the LU factors of a matrix of shape (n, n), held constant."""
    return lu_factor(stop_gradient(matrix), check_finite=False)


@custom_rule
def solve_by_factors(factors: Any, matrix: Any, b: Any) -> Any:
    """Return the solution of a system of shape (n, n), whose factors are known, for a right-hand side of shape (n,)."""
    return lu_solve(factors, b, check_finite=False)


@custom_rule
def solve_transposed(factors: Any, matrix: Any, b: Any) -> Any:
    """Return the solution of the system with the transpose of the matrix."""
    return lu_solve(factors, b, trans=1, check_finite=False)


def solve_forward(factors: Any, matrix: Any, b: Any) -> Any:
    """Return the solution, and what its cotangents need."""
    x = solve_by_factors(factors, matrix, b)
    return x, (factors, matrix, x)


def solve_backward(residuals: Any, ct: Any) -> Any:
    """Return the cotangents of the matrix and the right-hand side; factors, which are held, have none."""
    factors, matrix, x = residuals
    back = solve_transposed(factors, matrix, ct)
    return None, -back[:, None] * x[None, :], back


def solve_pushed(primals: Any, tangents: Any) -> Any:
    """Return the solution and its tangent."""
    factors, matrix, b = primals
    _, by_matrix, by_b = tangents
    x = solve_by_factors(factors, matrix, b)
    return x, solve_by_factors(factors, matrix, by_b - by_matrix @ x)


def transposed_forward(factors: Any, matrix: Any, b: Any) -> Any:
    """Return the solution with the transpose, and what its cotangents need."""
    x = solve_transposed(factors, matrix, b)
    return x, (factors, matrix, x)


def transposed_backward(residuals: Any, ct: Any) -> Any:
    """Return the cotangents of the matrix and the right-hand side of the system with the transpose."""
    factors, matrix, x = residuals
    back = solve_by_factors(factors, matrix, ct)
    return None, -x[:, None] * back[None, :], back


def transposed_pushed(primals: Any, tangents: Any) -> Any:
    """Return the solution with the transpose, and its tangent."""
    factors, matrix, b = primals
    _, by_matrix, by_b = tangents
    x = solve_transposed(factors, matrix, b)
    return x, solve_transposed(factors, matrix, by_b - by_matrix.T @ x)


solve_by_factors.defvjp(solve_forward, solve_backward)
solve_by_factors.defjvp(solve_pushed)
solve_transposed.defvjp(transposed_forward, transposed_backward)
solve_transposed.defjvp(transposed_pushed)


@custom_rule
def moving_with(value: Any, mover: Any) -> Any:
    """Return a value that is known better than by what it moves with, of which nothing is computed for it alone."""
    return value


moving_with.defvjp(lambda value, mover: (value, ()), lambda _, ct: (None, ct))
moving_with.defjvp(lambda primals, tangents: (primals[0], tangents[1]))
