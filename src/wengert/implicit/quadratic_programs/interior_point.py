"""Convex quadratic programs by an interior point method that is traced, compiled and run in lanes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.while_loop import while_loop
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant
from wengert.core.primitives.primitive import RoutineCall
from wengert.core.values.dispatch import apply
from wengert.implicit.quadratic_programs.program_checks import failure
from wengert.implicit.quadratic_programs.programs import QuadraticProgram
from wengert.implicit.quadratic_programs.row_lengths import is_sparse
from wengert.implicit.quadratic_programs.sparse_programs import solver_of_system
from wengert.primitives.linear_algebra.lu import lu_factor, lu_solution
from wengert.primitives.linear_algebra.matrices import over_stacks
from wengert.primitives.linear_algebra.triangular import cholesky_solution
from wengert.support.records import NamedTuple
from wengert.transforms.jit import jit

Factorise = Callable[[Any], Callable[[Any], Any]]
MOST_STEPS = 100
PRECISION, GAP = 1e-7, 1e-10
"""At which residuals, and which gap, as parts of the data's size, the iteration ends; polishing does the rest.

Residuals of larger programs stay at 1e-9: the matrices of the last steps are nearly singular.
"""
CLEAR, LAST = 1e-8, 1e-2
"""How near to zero the room or the multiplier of each constraint is, as part of the data's size, where it is clear who
is active, and the part of GAP from which on nobody waits for that."""
CENTRED = 1e-9
"""At which residuals, as parts of the data's size, and of the barrier, points of the central path are."""
DIVERGED = 1e60
"""How many times the size of the data, or of the least room, numbers grow to where there is no solution."""
REGULAR = 1e-12
"""The part of the data's size that is added to the diagonal, so that each step has a matrix with an inverse."""


class Point(NamedTuple):
    """Hold a point on the way: x, the multipliers y of equations, the room s of inequalities, their multipliers z."""

    x: Any
    y: Any
    s: Any
    z: Any

    def step_to(self, step: Point, length: Any) -> Point:
        """Return the point that a step leads to."""
        pairs = zip(self, step, strict=True)
        return Point(*(value + length * change if value.shape[0] else value for value, change in pairs))

    def reach(self, step: Point) -> Any:
        """Return how far a step may go until room or a multiplier is zero; one at most, and not quite to there."""
        values, changes = np.concatenate([self.s, self.z]), np.concatenate([step.s, step.z])
        falling = changes < 0
        longest = np.min(np.where(falling, -values / np.where(falling, changes, -1.0), 2.0), initial=2.0)
        return np.minimum(1.0, 0.99 * longest)


class Residuals(NamedTuple):
    """Hold by how much a point misses the conditions of optimality."""

    stationarity: Any
    equality: Any
    inequality: Any
    products: Any


def solve_by_interior_point(program: QuadraticProgram, barrier: float = 0.0) -> Point:
    """Return the point that minimises a program of ndarrays, or of its central path, where each product s z is given.

    Raises:
        NumericalError: it has not converged: constraints contradict each other, or the objective has no minimum.
    """
    for positive in (True, False) if not len(program.b) and not is_sparse(program.p) else (False,):
        iteration = (
            functools.partial(iterate_sparse, barrier) if is_sparse(program.p) else compile_iteration(barrier, positive)
        )
        with np.errstate(all="ignore"):  # of programs without a solution numbers grow
            *point, converged = iteration(*program)
        if converged:
            return Point(*map(np.asarray, point))
    raise failure(program, f"no solution by an interior point method, after {MOST_STEPS} steps")


@functools.lru_cache(maxsize=16)
def compile_iteration(barrier: float, positive: bool) -> Callable[..., Any]:
    """Return the iteration as one compiled program of the data."""
    return jit(lambda *data: iterate(QuadraticProgram(*data), barrier, positive))


def repeat(go_on: Callable[[Any], Any], advance: Callable[[Any], Any], state: Any) -> Any:
    """Return what `while_loop` does of ndarrays, which stay that."""
    while go_on(state):
        state = advance(state)
    return state


def iterate_sparse(barrier: float, *data: Any) -> tuple[Any, ...]:
    """Return what `iterate` does of a program with sparse matrices, step by step."""
    return iterate(QuadraticProgram(*data), barrier)


def iterate(program: QuadraticProgram, barrier: float, positive: bool = True) -> tuple[Any, ...]:
    """Return the parts of the last point, and whether it is the solution; p is symmetric.

    Matrices of programs without equations have Cholesky's factors if they are `positive` beyond rounding.

    It is the predictor-corrector method of S. Mehrotra (On the implementation of a primal-dual interior point method,
    SIAM Journal on Optimization, 1992), with one matrix in each step.
    """
    factorise = solver_of(program, positive)
    start = starting_point(program, factorise)
    if not program.h.shape[0]:
        return (*start, np.all(np.isfinite(start.x)))
    size = 1.0 + sum(np.max(np.abs(v)) for v in (program.q, program.b, program.h) if len(v))

    def is_solved(missed: Residuals) -> Any:
        largest = functools.reduce(np.maximum, [np.max(np.abs(part)) for part in missed[:3] if len(part)])
        if barrier:
            centred = np.max(np.abs(missed.products - barrier)) <= CENTRED * barrier
            return (largest <= CENTRED * size) & centred
        return (largest <= PRECISION * size) & (np.mean(missed.products) <= GAP * size)

    def is_clear(point: Point, missed: Residuals) -> Any:
        """Tell whether there is nothing to wait for: who is active shows, or will not show."""
        last = np.mean(missed.products) <= LAST * GAP * size
        return last | (np.max(np.minimum(point.s, point.z)) <= CLEAR * size)

    def go_on(state: Any) -> Any:
        point, missed, count = Point(*state[0]), Residuals(*state[1]), state[2]
        ended = is_solved(missed) if barrier else is_solved(missed) & is_clear(point, missed)
        largest = functools.reduce(np.maximum, [np.max(np.abs(part)) for part in point if len(part)])
        bounded = largest <= DIVERGED * size * np.minimum(1.0, np.min(point.s))
        return ~ended & bounded & (count < MOST_STEPS)

    def advance(state: Any) -> Any:
        point = next_point(Point(*state[0]), program, Residuals(*state[1]), barrier, factorise)
        return tuple(point), tuple(residuals_at(point, program)), state[2] + 1

    state = tuple(start), tuple(residuals_at(start, program)), 0
    found, missed, _ = (repeat if is_sparse(program.p) else while_loop)(go_on, advance, state)
    return (*found, is_solved(Residuals(*missed)))


def starting_point(program: QuadraticProgram, factorise: Factorise) -> Point:
    """Return where to begin: the minimum with all constraints weighed, room and multipliers far from zero."""
    q, b, g, h = program.q, program.b, program.g, program.h
    found = factorise(np.ones(h.shape))(np.concatenate([h @ g - q, b]) if len(b) else h @ g - q)
    x, y = split_between(found, q.shape[0])
    z = g @ x - h
    return Point(x, y, *(np.maximum(v - np.minimum(0.0, np.min(v, initial=0.0)) * 2 + 1.0, 1.0) for v in (-z, z)))


def split_between(found: Any, count: int) -> tuple[Any, Any]:
    """Return the first numbers and the others, which are no part of the graph if there are none."""
    if found.shape[0] == count:
        return found, np.zeros(0)
    return found[:count], found[count:]


def solver_of(program: QuadraticProgram, positive: bool) -> Factorise:
    """Return a function of weights to what solves the conditions of optimality without inequalities.

    The objective weighs these instead.
    """
    p, _, a, _, g, _ = program
    if is_sparse(p):
        return solver_of_system(program, REGULAR)
    size = REGULAR * (1.0 + np.max(np.abs(p), initial=0.0))
    n, m = a.shape[1], a.shape[0]

    def factorise(weights: Any) -> Callable[[Any], Any]:
        rows = g * np.sqrt(weights)[:, None]
        matrix = p + rows.T @ rows + size * np.eye(n)  # half of a matrix times its transpose is computed
        if positive and not m:
            factor = apply(factor_if_positive, matrix)
            return lambda right: cholesky_solution(factor, right[:, None], False)[:, 0]
        if m:
            matrix = np.concatenate(
                [np.concatenate([matrix, a.T], axis=1), np.concatenate([a, -size * np.eye(m)], axis=1)], axis=0
            )
        packed, pivots = apply(lu_factor, matrix, check_finite=False)
        return lambda right: lu_solution(packed, right[:, None], pivots, 0)[:, 0]

    return factorise


def residuals_at(point: Point, program: QuadraticProgram) -> Residuals:
    """Return by how much a point misses the conditions of optimality."""
    x, y, s, z = point
    p, q, a, b, g, h = program
    slope = p @ x + q + z @ g
    if not len(b):  # what has no elements is no part of native code
        return Residuals(slope, y, g @ x + s - h, s * z)
    return Residuals(slope + y @ a, a @ x - b, g @ x + s - h, s * z)


def next_point(
    point: Point, program: QuadraticProgram, missed: Residuals, barrier: float, factorise: Factorise
) -> Point:
    """Return the point after a step of prediction, and the correction that it suggests."""
    solve = factorise(point.z / point.s)
    count = program.q.shape[0]

    def step_to(product: Any) -> Point:
        """Return the step that changes s z by so much less, in the first order."""
        inner = (point.z * missed.inequality - product) / point.s
        slope = -missed.stationarity - inner @ program.g
        x, y = split_between(solve(np.concatenate([slope, -missed.equality]) if len(program.b) else slope), count)
        ds = -missed.inequality - program.g @ x
        return Point(x, y, ds, -(product + point.z * ds) / point.s)

    predicted = step_to(missed.products - barrier)
    after = point.step_to(predicted, point.reach(predicted))
    gap = np.mean(missed.products)
    centre = np.maximum((np.mean(after.s * after.z) / gap) ** 3 * gap, barrier)
    step = step_to(missed.products + predicted.s * predicted.z - centre)
    return point.step_to(step, point.reach(step))


# Operations


def evaluate_factor_if_positive(matrix: Any) -> Any:
    """Evaluate `factor_if_positive`."""

    def one(matrix: Any) -> Any:
        try:
            return np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            return np.full_like(matrix, np.nan)

    return over_stacks(one, (2,), matrix)


factor_if_positive = constant(
    "factor_if_positive",
    evaluate_factor_if_positive,
    form=Routine("(n,n)->(n,n)"),
    routine=lambda: RoutineCall("cholesky"),
)
"""Cholesky's factor, or NaN if a matrix is not positive definite."""
