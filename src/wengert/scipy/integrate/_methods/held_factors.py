"""Linear systems whose factors or inverse are known, and roots that these give derivatives, of any order.

x = A^-1 b has dx = A^-1 (db - dA x), and cotangents b' = A^-T x', A' = -b' x^T: both are solved by the same factors,
whose own derivative is never taken.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_within
from wengert.core.graph.graph import evaluate
from wengert.core.values.dispatch import apply, as_tensor
from wengert.primitives.conversion import overwritten
from wengert.transforms.checkpointing import checkpoint
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import pull_back, stop_gradient

Solution = Callable[[Any, Any, bool], Any]
Solver = Callable[[Any, Any, Any], Any]
NAME = "solve_ivp"


def solvers_by(solve: Solution, outer: Callable[[Any, Any], Any], product: Solution) -> tuple[Solver, Solver]:
    """Return a function of what is known of a matrix (factors, an inverse), of the matrix, and of a right-hand side.

    The other one solves with the transpose.

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
    return direct, turned


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

    def push_tangents(primals: Any, tangents: Any) -> Any:
        (known, matrix, b), (_, by_matrix, by_b) = primals, tangents
        x = own(known, matrix, b)
        return x, own(known, matrix, by_b - product(by_matrix, x, transposed))

    own.defvjp(forward, backward)
    own.defjvp(push_tangents)


def moving_with(value: Any, mover: Any) -> Any:
    """Return a value that is known better than by what it moves with, of which nothing is computed for it alone."""
    return apply(overwritten, as_tensor(mover), as_tensor(value))


class Division:
    """Be how the derivative of one equation by one unknown is held: as a number."""

    def factors(self, _derivative: Any) -> tuple[()]:
        """Return no factors."""
        return ()

    def solve(self, _factors: tuple[()], derivative: Any, right: Any) -> Any:
        """Return the solution of the linear equation."""
        return right / derivative

    solve_transposed = solve


DIVISION = Division()


def moving_root(equations: Callable[[Any], tuple[Any, Any, Any]], root: Any) -> Any:
    """Return a root of equations with the derivatives that these give it, to any order.

    Its rules are written with the root itself, whose derivatives they see where they are differentiated. Reverse mode
    runs again what they need, rather than to keep it: a matrix, and its factors.

    Args:
        equations: gives the residual of shape (n,), how its Jacobian is held (`Matrices`), and this; or a number, which
            its derivative divides (`DIVISION`).
        root: where the residual is 0, of the same shape.
    """
    held: list[Any] = []

    def outputs(x: Any) -> Any:
        residual, matrices, matrix = equations(x)
        held.append(matrices)
        return [residual, matrix]

    graph, captured = trace_within(Reach(NAME, equations), outputs, [root], NAME)
    matrices = held[-1]
    moves = [x.dtype.kind in "fc" for x in captured]

    def residual_at(x: Any, given: Any) -> tuple[Callable[..., Any], list[Any]]:
        """Return the residual at a place as a function of those captured numbers that can move, and these."""

        def function(*moving: Any) -> Any:
            rest = iter(moving)
            own = [next(rest) if flag else value for value, flag in zip(given, moves, strict=True)]
            return evaluate(graph, (x, *own))[0]

        return function, [value for value, flag in zip(given, moves, strict=True) if flag]

    def solve(x: Any, given: Any, right: Any, transposed: bool) -> Any:
        matrix = evaluate(graph, (x, *given))[1]
        factors = matrices.factors(stop_gradient(matrix))
        return (matrices.solve_transposed if transposed else matrices.solve)(factors, matrix, right)

    root_of = custom_rule(lambda root, *_given: root)

    def forward(root: Any, *given: Any) -> Any:
        x = root_of(root, *given)
        return x, (x, given)

    def backward(residuals: Any, ct: Any) -> Any:
        x, given = residuals
        function, moving = residual_at(x, given)
        found = iter(pull_back(NAME, function, moving)[1](-solve(x, given, ct, True)))
        return (None, *[next(found) if flag else None for flag in moves])

    def push_tangents(primals: Any, tangents: Any) -> Any:
        root, *given = primals
        x = root_of(root, *given)
        function, moving = residual_at(x, given)
        directions = [t for t, flag in zip(tangents[1:], moves, strict=True) if flag]
        change = push_forward(NAME, function, moving, directions)[1]
        return x, -solve(x, given, change, False)

    root_of.defvjp(forward, backward)
    root_of.defjvp(push_tangents)
    return checkpoint(root_of)(root, *captured)
