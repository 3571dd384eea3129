"""Quadratic programs as solvers see them, and the constraints that are active at their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

NEAR = 1e-6
"""By how much of its terms a constraint may be open, or a multiplier differ from zero, to be taken for at its limit."""
CLOSE = 1e-3
"""By how much of its size a solution may differ from what the conditions of optimality say."""
MOST_ROUNDS = 10


def is_sparse(matrix: Any) -> bool:
    """Tell whether a matrix is sparse, of SciPy or of Tensors."""
    return hasattr(matrix, "tocsr")


def join_rows(parts: Sequence[Any]) -> Any:
    """Return matrices one below the other."""
    from scipy import sparse

    return sparse.vstack(parts) if any(map(is_sparse, parts)) else np.concatenate(parts)


class QuadraticProgram(NamedTuple):
    """Hold a program of arrays: minimise x^T p x / 2 + q^T x where a x = b and g x <= h.

    The matrices may be sparse, all of them; p is symmetric.
    """

    p: Any
    q: Any
    a: Any
    b: Any
    g: Any
    h: Any


class Polished(NamedTuple):
    """Hold a solution that meets the conditions of optimality to rounding.

    Attributes:
        x, equality, inequality: as `wengert.implicit.quadratic.QuadraticSolution` has them.
        active: which inequalities are equations.
        room: of each inequality, as part of its terms.
        is_optimal: whether that is the solution that was given.
    """

    x: Any
    equality: Any
    inequality: Any
    active: Any
    room: Any
    is_optimal: bool


def sizes_of(x: Any, program: QuadraticProgram) -> Any:
    """Return the sizes of the terms of each inequality."""
    return 1.0 + np.abs(program.h) + abs(program.g) @ np.abs(x)


def is_near(x: Any, program: QuadraticProgram) -> Any:
    """Tell which inequalities x meets with equality, or nearly."""
    return program.h - program.g @ x <= NEAR * sizes_of(x, program)


def polish(x: Any, program: QuadraticProgram) -> Polished:
    """Return the solution near x by the conditions of optimality, of which that decides which inequalities count."""
    sizes, near = sizes_of(x, program), is_near(x, program)
    for _ in range(MOST_ROUNDS):
        multipliers = multipliers_at(x, program, near)
        active = np.zeros(len(program.h), bool)
        active[near] = multipliers[len(program.b) :] > NEAR * (1.0 + np.max(np.abs(multipliers), initial=0.0))
        exact, equality, inequality = solve_active(x, active, program)
        vanishing = active & (np.abs(inequality) <= NEAR * (1.0 + np.max(np.abs(multipliers), initial=0.0)))
        if np.any(vanishing):  # they were those of x, which the solver left beside the solution
            active &= ~vanishing
            exact, equality, inequality = solve_active(x, active, program)
        room = (program.h - program.g @ exact) / sizes
        if np.all(room >= -NEAR * NEAR):
            break
        near |= room < 0  # the solver stopped before it met them
    is_close = bool(np.all(np.abs(exact - x) <= CLOSE * (1.0 + np.max(np.abs(x), initial=0.0))))
    return Polished(exact, equality, inequality, active, room, is_close and bool(np.all(room >= -NEAR)))


def multipliers_at(x: Any, program: QuadraticProgram, near: Any) -> Any:
    """Return the multipliers of the equations and of inequalities that x meets with equality, these not negative."""
    slopes = np.concatenate([program.a, program.g[near]]).T
    lowest = np.zeros(slopes.shape[1])
    lowest[: len(program.b)] = -np.inf
    return multipliers_within(slopes, -(program.p @ x + program.q), (lowest, np.inf))


def multipliers_within(columns: Any, slope: Any, bounds: tuple[Any, Any], **options: Any) -> Any:
    """Return the multipliers within bounds with which columns add up to a slope as nearly as can be."""
    from scipy.optimize import lsq_linear

    if not columns.size:
        return np.zeros(columns.shape[1])
    if columns.shape[1] <= columns.shape[0]:  # else there are many, of which the shortest one has no zeros
        found = np.linalg.lstsq(columns, slope, rcond=None)[0]
        if np.all((found >= bounds[0]) & (found <= bounds[1])):
            return found
    return lsq_linear(columns, slope, bounds, **(options or {"tol": 1e-14})).x


def solve_active(x: Any, active: Any, program: QuadraticProgram) -> tuple[Any, Any, Any]:
    """Return the solution of the conditions of optimality with the active inequalities as equations, near x."""
    p, q, a, b, g, h = program
    rows, sides = np.concatenate([a, g[active]]), np.concatenate([b, h[active]])
    matrix = np.block([[p, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    found = solve_system(matrix, np.concatenate([-q - p @ x, sides - rows @ x]))
    inequality = np.zeros(len(h))
    inequality[active] = found[len(q) + len(b) :]
    return x + found[: len(q)], found[len(q) : len(q) + len(b)], inequality


def solve_system(matrix: Any, right: Any) -> Any:
    """Return the solution of a symmetric system; where it is singular the smallest one that comes nearest."""
    try:
        found = np.linalg.solve(matrix, right)
    except np.linalg.LinAlgError:
        return np.linalg.lstsq(matrix, right, rcond=None)[0]
    missed = np.max(np.abs(matrix @ found - right), initial=0.0)
    if missed <= NEAR * (1.0 + np.max(np.abs(right), initial=0.0)):
        return found
    return np.linalg.lstsq(matrix, right, rcond=None)[0]
