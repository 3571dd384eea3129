"""Linear systems whose LU factors or inverse are known: solutions, and derivatives of any order without others.

x = A^-1 b has dx = A^-1 (db - dA x), and cotangents b' = A^-T x', A' = -b' x^T: both are solved by the same factors,
whose own derivative is never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.scipy._linear_algebra import lu_factor, lu_solve
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.reverse import stop_gradient


def held_factors(matrix: Any) -> Any:
    """Return the LU factors of a matrix of shape (n, n), held constant."""
    return lu_factor(stop_gradient(matrix), check_finite=False)


def solver_by(solve: Callable[[Any, Any, bool], Any]) -> Callable[[Any, Any, Any], Any]:
    """Return a function of what is known of a matrix (factors, an inverse), of the matrix, and of a right-hand side.

    Args:
        solve: gives the solution, of what is known, the right-hand side, and whether the transpose is meant.
    """

    def solution(transposed: bool) -> Any:
        return custom_rule(lambda known, _matrix, b: solve(known, b, transposed))

    direct, turned = solution(False), solution(True)
    for own, other, transposed in ((direct, turned, False), (turned, direct, True)):
        define_rules(own, other, transposed)
    return direct  # type: ignore[no-any-return]  # rules are functions


def define_rules(own: Any, other: Any, transposed: bool) -> None:
    """Give a solution its derivatives, by itself and the one with the transpose."""

    def forward(known: Any, matrix: Any, b: Any) -> Any:
        x = own(known, matrix, b)
        return x, (known, matrix, x)

    def backward(residuals: Any, ct: Any) -> Any:
        known, matrix, x = residuals
        back = other(known, matrix, ct)
        rows, columns = (x, back) if transposed else (back, x)
        return None, -rows[:, None] * columns[None, :], back

    def pushed(primals: Any, tangents: Any) -> Any:
        (known, matrix, b), (_, by_matrix, by_b) = primals, tangents
        x = own(known, matrix, b)
        return x, own(known, matrix, by_b - (by_matrix.T if transposed else by_matrix) @ x)

    own.defvjp(forward, backward)
    own.defjvp(pushed)


solve_by_factors = solver_by(
    lambda factors, b, transposed: lu_solve(factors, b, trans=int(transposed), check_finite=False)
)
solve_by_inverse = solver_by(lambda inverse, b, transposed: (inverse.T if transposed else inverse) @ b)


@custom_rule
def moving_with(value: Any, mover: Any) -> Any:
    """Return a value that is known better than by what it moves with, of which nothing is computed for it alone."""
    return value


moving_with.defvjp(lambda value, mover: (value, ()), lambda _, ct: (None, ct))
moving_with.defjvp(lambda primals, tangents: (primals[0], tangents[1]))


def moving_root(equations: Callable[[Any], tuple[Any, Any]], root: Any) -> Any:
    """Return a root of equations with the derivatives that these give it, to the third order.

    These are of two of Newton's steps with one set of factors, held constant, whose values are not used.

    Args:
        equations: gives the residual of shape (n,), and its Jacobian.
        root: where the residual is 0, of shape (n,).
    """
    residual, matrix = equations(root)
    factors = held_factors(matrix)
    once = root - solve_by_factors(factors, matrix, residual - stop_gradient(residual))
    residual, matrix = equations(moving_with(root, once))
    twice = moving_with(root, once) - solve_by_factors(factors, matrix, residual - stop_gradient(residual))
    return moving_with(root, twice)
