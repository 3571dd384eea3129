"""Convex quadratic programs by an interior point method, for those who have no other solver."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from wengert.implicit.program_checks import failure
from wengert.implicit.programs import Program, solve_system

MOST_STEPS = 100
PRECISION, GAP = 1e-7, 1e-10
"""At which residuals, and which gap, as parts of the data's size, the iteration ends; polishing does the rest.

Residuals of larger programs stay at 1e-9: the matrices of the last steps are nearly singular.
"""


class Point(NamedTuple):
    """Hold a point on the way: x, the multipliers y of equations, the room s of inequalities, their multipliers z."""

    x: Any
    y: Any
    s: Any
    z: Any

    def moved(self, step: Point, length: float) -> Point:
        """Return the point that a step leads to."""
        return Point(*(value + length * change for value, change in zip(self, step, strict=True)))

    def reach(self, step: Point) -> float:
        """Return how far a step may go, one at most, until room or a multiplier is zero."""
        values, changes = np.concatenate([self.s, self.z]), np.concatenate([step.s, step.z])
        falling = changes < 0
        return float(min(1.0, np.min(-values[falling] / changes[falling], initial=np.inf)))


class Residuals(NamedTuple):
    """Hold by how much a point misses the conditions of optimality."""

    stationarity: Any
    equality: Any
    inequality: Any
    gap: float

    @property
    def largest(self) -> float:
        """The largest of all."""
        return max(self.gap, *(float(np.max(np.abs(part), initial=0.0)) for part in self[:3]))


def solve_by_interior_point(program: Program) -> Any:
    """Return the x that minimises a program.

    It is the predictor-corrector method of S. Mehrotra (On the implementation of a primal-dual interior point method,
    SIAM Journal on Optimization, 1992), with one matrix in each step.

    Raises:
        NumericalError: it has not converged: constraints contradict each other, or the objective has no minimum.
    """
    point = starting_point(program)
    if not len(program.h):
        return point.x
    size = 1.0 + max(float(np.max(np.abs(v), initial=0.0)) for v in (program.q, program.b, program.h))
    with np.errstate(all="ignore"):  # of programs without a solution numbers grow
        for _ in range(MOST_STEPS):
            missed = residuals_at(point, program)
            if missed.largest <= PRECISION * size and missed.gap <= GAP * size:
                return point.x
            if not np.isfinite(missed.largest):
                break
            point = next_point(point, program, missed)
    raise failure(program, f"no solution by an interior point method, after {MOST_STEPS} steps")


def starting_point(program: Program) -> Point:
    """Return where to begin: the minimum with all constraints weighed, room and multipliers far from zero."""
    q, b, g, h = program.q, program.b, program.g, program.h
    found = solve_system(reduced(program, np.ones(len(h))), np.concatenate([g.T @ h - q, b]))
    x, y = found[: len(q)], found[len(q) :]
    z = g @ x - h
    s = -z
    return Point(x, y, *(np.maximum(v - min(0.0, float(np.min(v, initial=0.0))) * 2 + 1.0, 1.0) for v in (s, z)))


def reduced(program: Program, weights: Any) -> Any:
    """Return the matrix of the conditions of optimality without inequalities, which the objective weighs instead."""
    p, _, a, _, g, _ = program
    return np.block([[p + (g.T * weights) @ g, a.T], [a, np.zeros((len(a), len(a)))]])


def residuals_at(point: Point, program: Program) -> Residuals:
    """Return by how much a point misses the conditions of optimality."""
    x, y, s, z = point
    p, q, a, b, g, h = program
    return Residuals(p @ x + q + a.T @ y + g.T @ z, a @ x - b, g @ x + s - h, float(s @ z) / len(h))


def next_point(point: Point, program: Program, missed: Residuals) -> Point:
    """Return the point after a step of prediction, and the correction that it suggests."""
    matrix = reduced(program, point.z / point.s)
    count = len(program.q)

    def step_to(product: Any) -> Point:
        """Return the step that changes s z by so much less, in the first order."""
        inner = (point.z * missed.inequality - product) / point.s
        right = np.concatenate([-missed.stationarity - program.g.T @ inner, -missed.equality])
        found = solve_system(matrix, right)
        ds = -missed.inequality - program.g @ found[:count]
        return Point(found[:count], found[count:], ds, -(product + point.z * ds) / point.s)

    predicted = step_to(point.s * point.z)
    after = point.moved(predicted, point.reach(predicted))
    centre = (float(after.s @ after.z) / len(program.h) / missed.gap) ** 3
    step = step_to(point.s * point.z + predicted.s * predicted.z - centre * missed.gap)
    return point.moved(step, 0.99 * point.reach(step))
