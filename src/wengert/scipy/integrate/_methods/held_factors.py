"""Linear systems whose LU factors or inverse are known: solutions, and derivatives of any order without others.

x = A^-1 b has dx = A^-1 (db - dA x), and cotangents b' = A^-T x', A' = -b' x^T: both are solved by the same factors,
whose own derivative is never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.transforms.checkpointing import checkpoint
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.reverse import stop_gradient

Solution = Callable[[Any, Any, bool], Any]


def solver_by(solve: Solution, outer: Callable[[Any, Any], Any], product: Solution) -> Callable[[Any, Any, Any], Any]:
    """Return a function of what is known of a matrix (factors, an inverse), of the matrix, and of a right-hand side.

    Args:
        solve: gives the solution, of what is known, the right-hand side, and whether the transpose is meant.
        outer: gives the matrix of the products of two vectors, as matrices are held.
        product: gives the product of a matrix, or its transpose, and a vector.
    """

    def solution(transposed: bool) -> Any:
        return custom_rule(lambda known, _matrix, b: solve(known, b, transposed))

    direct, turned = solution(False), solution(True)
    for own, other, transposed in ((direct, turned, False), (turned, direct, True)):
        define_rules(own, other, transposed, outer, product)
    return direct  # type: ignore[no-any-return]  # rules are functions


def define_rules(own: Any, other: Any, transposed: bool, outer: Callable[[Any, Any], Any], product: Solution) -> None:
    """Give a solution its derivatives, by itself and the one with the transpose."""

    def forward(known: Any, matrix: Any, b: Any) -> Any:
        x = own(known, matrix, b)
        return x, (known, matrix, x)

    def backward(residuals: Any, ct: Any) -> Any:
        known, matrix, x = residuals
        back = other(known, matrix, ct)
        rows, columns = (x, back) if transposed else (back, x)
        return None, -outer(rows, columns), back

    def pushed(primals: Any, tangents: Any) -> Any:
        (known, matrix, b), (_, by_matrix, by_b) = primals, tangents
        x = own(known, matrix, b)
        return x, own(known, matrix, by_b - product(by_matrix, x, transposed))

    own.defvjp(forward, backward)
    own.defjvp(pushed)


@custom_rule
def moving_with(value: Any, mover: Any) -> Any:
    """Return a value that is known better than by what it moves with, of which nothing is computed for it alone."""
    return value


moving_with.defvjp(lambda value, mover: (value, ()), lambda _, ct: (None, ct))
moving_with.defjvp(lambda primals, tangents: (primals[0], tangents[1]))


def moving_root(equations: Callable[[Any], tuple[Any, Any, Any]], root: Any) -> Any:
    """Return a root of equations with the derivatives that these give it, to the third order.

    These are of two of Newton's steps with one set of factors, held constant, whose values are not used.

    Args:
        equations: gives the residual of shape (n,), how its Jacobian is held (`Matrices`), and this.
        root: where the residual is 0, of shape (n,).
    """

    def moving(root: Any) -> Any:
        residual, matrices, matrix = equations(root)
        factors = matrices.factors(stop_gradient(matrix))
        once = root - matrices.solve(factors, matrix, residual - stop_gradient(residual))
        residual, matrices, matrix = equations(moving_with(root, once))
        twice = moving_with(root, once) - matrices.solve(factors, matrix, residual - stop_gradient(residual))
        return moving_with(root, twice)

    return checkpoint(moving)(root)
