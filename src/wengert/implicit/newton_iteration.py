"""Newton's method as a loop that can be traced, compiled and run in lanes, and systems that end no other lane."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.while_loop import while_loop
from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.implicit.factored import factors, substituted
from wengert.primitives.linear_algebra.matrices import over_stacks, plain_routine, total
from wengert.support.records import NamedTuple
from wengert.transforms.jacobian import jacfwd

Function = Callable[[Any], Any]
StepFrom = Callable[[Function, Any], tuple[Any, ...]]
"""From equations and a point to their value there, the step of Newton's method from it, and factors if any are kept."""


class LastStep(NamedTuple):
    """Hold the factors that gave the last step of Newton's method: of the Jacobian one step before the root.

    Attributes:
        packed: both triangles, as `wengert.implicit.factored.factors` has them.
        pivots: the exchanges of rows.
    """

    packed: Any
    pivots: Any


class Solution(NamedTuple):
    """Be what an iteration ended with.

    Attributes:
        x: the solution.
        converged: whether it is one.
        steps: their number.
        last: the factors of the last of them, if they were kept.
    """

    x: Any
    converged: Any
    steps: Any
    last: LastStep | None = None


class Limits(NamedTuple):
    """Be when an iteration ends: the relative change that is small, and the most steps."""

    tol: float
    most: int


SUFFICIENT = 1e-4
"""The part of the decrease that the slope promises which a step of Newton's method has to bring (Armijo's rule)."""
SHORTEST = 1e-9
"""The part of a step of Newton's method below which no shorter one is tried."""


def is_small(change: Any, x: Any, tol: float) -> Any:
    """Tell whether a change is small beside a value, or beside one."""
    return np.max(np.abs(change)) <= tol * (1.0 + np.max(np.abs(x)))


def evaluate_regular_solution(matrix: Any, right: Any) -> Any:
    """Evaluate `regular_solution`."""

    def one(matrix: Any, right: Any) -> Any:
        try:
            return np.linalg.solve(matrix, right)
        except np.linalg.LinAlgError:
            return np.full_like(right, np.nan)

    try:
        return np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return over_stacks(one, (2, 2), matrix, right)


def vjp_regular_solution(ct: Any, out: Any, matrix: Any, right: Any) -> tuple[Any, Any]:
    """Solve with the transpose: for A X = B, ct_B = A^-T ct and ct_A = -ct_B X^T."""
    ct_right = apply(regular_solution, matrix.mT, ct)
    return unbroadcast(-(ct_right @ out.mT), matrix.shape), unbroadcast(ct_right, right.shape)


def jvp_regular_solution(tangents: Sequence[Any], out: Any, matrix: Any, _right: Any) -> Any:
    """Solve with the same matrix: A dX = dB - dA X."""
    moved, change = tangents
    return apply(regular_solution, matrix, total(change, None if moved is None else -(moved @ out)))


regular_solution: Primitive = opaque(
    "regular_solution",
    evaluate_regular_solution,
    vjp=vjp_regular_solution,
    jvp=jvp_regular_solution,
    form=Routine("(n,n),(n,m)->(n,m)"),
    routine=plain_routine("solve"),
)
"""The solution of linear equations, NaN where the matrix is singular, so that one lane does not end the others."""


def solve_system(matrix: Any, right: Any) -> Any:
    """Return the solution of linear equations; one is a quotient, infinite where the matrix is zero."""
    return right / matrix[0] if right.shape == (1,) else apply(regular_solution, matrix, right[:, None])[:, 0]


def step_in_full(function: Function, x: Any) -> tuple[Any, Any]:
    """Return the value of equations at a point, and the step from there, by the whole Jacobian."""
    value, slope = value_and_slope(function, x)
    return value, solve_system(slope, -value)


def value_and_slope(function: Function, x: Any) -> tuple[Any, Any]:
    """Return the value of equations at a point, and their Jacobian."""

    def twice(v: Any) -> tuple[Any, Any]:
        value = function(v)
        return value, value

    slope, value = jacfwd(twice, has_aux=True)(x)
    return value, slope


def step_by_factors(function: Function, x: Any) -> tuple[Any, ...]:
    """Return value and step as `step_in_full` does, and the factors of the Jacobian, which have no derivatives."""
    value, slope = value_and_slope(function, x)
    packed, pivots = apply(factors, slope.T)
    step = apply(substituted, packed, -value[:, None], pivots, transposed=True)[:, 0]
    return value, step, packed, pivots


def newton(function: Function, start: Any, limits: Limits, step_from: StepFrom = step_in_full) -> Solution:
    """Find a root by Newton's method; steps are halved until the residual decreases.

    Nocedal and Wright, *Numerical Optimization*, 2006, algorithm 11.4. The last step is taken where it is small, so
    that the error is of the order of its square.
    """

    def go_on(state: Any) -> Any:
        x, _, step, part, count, *_ = state
        return ~is_small(step, x, limits.tol) & np.isfinite(np.sum(step)) & (part > SHORTEST) & (count < limits.most)

    def advance(state: Any) -> Any:
        x, value, step, part, count, *_ = state
        other = x + part * step
        found, next_step, *kept = step_from(function, other)
        better = np.sum(found * found) <= (1.0 - 2.0 * SUFFICIENT * part) * np.sum(value * value)
        pairs = (other, x), (found, value), (next_step, step), (1.0, 0.5 * part)
        return (*(np.where(better, *pair) for pair in pairs), count + 1, *kept)  # of what converges the last is better

    value, step, *kept = step_from(function, start)
    state = while_loop(go_on, advance, (start, value, step, start.dtype.type(1.0), 0, *kept))
    x, _, step, _, count, *kept = state
    converged = is_small(step, x, limits.tol)
    last = LastStep(*kept) if kept else None
    return Solution(np.where(converged, x + step, x), converged, count, last)
