"""Quadratic programs as solvers see them, and the constraints that are active at their solutions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.implicit.quadratic_programs.dependent_rows import DEPENDENT, NEARLY, rows_left_out
from wengert.implicit.quadratic_programs.row_lengths import is_sparse, lengths_of
from wengert.support.records import NamedTuple

NEAR = 1e-6
"""By how much of its terms a constraint may be open, or a multiplier differ from zero, to be taken for at its limit."""
CLOSE = 1e-3
"""By how much of its size a solution may differ from what the conditions of optimality say."""
ROUNDING = 1e-10
"""By how much of its terms rounding may move what is computed."""
FEW = 10.0
"""How many times more conditions may be missed by multipliers without those of rows that nearly follow from others."""
MOST_ROUNDS = 10
ROOM_FOR_MULTIPLIERS = 10.0
"""How many times larger than the sum of some multipliers others are that are chosen beside them."""


def join_rows(parts: Sequence[Any]) -> Any:
    """Return matrices one below the other."""
    from scipy import sparse

    return sparse.vstack(parts) if any(map(is_sparse, parts)) else np.concatenate(parts)


def join_parts(parts: Sequence[Any], axis: int = 0) -> Any:
    """Return parts beside each other; those without elements are left out, since native code knows none."""
    some = [part for part in parts if 0 not in part.shape]
    return np.concatenate(some, axis=axis) if some else np.zeros(np.max([part.shape for part in parts], axis=0))


def split_vector(whole: Any, sizes: Sequence[int]) -> tuple[Any, ...]:
    """Return the parts again."""
    parts, start = [], 0
    for size in sizes:
        parts.append(whole[start : start + size] if size else np.zeros(0))
        start += size
    return tuple(parts)


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
        x, equality, inequality: as `wengert.implicit.quadratic_programs.quadratic.QuadraticSolution` has them.
        active: which constraints count, the equations before the inequalities: all but those that follow from others,
            and of inequalities those that are equations.
        left: the numbers of those that follow from others.
        room: of each inequality, as part of its terms.
        is_optimal: whether that is the solution that was given.
    """

    x: Any
    equality: Any
    inequality: Any
    active: Any
    left: Any
    room: Any
    is_optimal: bool


def sizes_of(x: Any, program: QuadraticProgram) -> Any:
    """Return the sizes of the terms of each inequality."""
    return 1.0 + np.abs(program.h) + abs(program.g) @ np.abs(x)


def is_near(x: Any, program: QuadraticProgram) -> Any:
    """Tell which inequalities x meets with equality, or nearly."""
    return program.h - program.g @ x <= NEAR * sizes_of(x, program)


def forces_of(multipliers: Any, program: QuadraticProgram) -> Any:
    """Return the sizes of what multipliers, of equations and inequalities, weigh: they depend on no unit of a row."""
    return np.abs(multipliers) * np.concatenate([lengths_of(program.a), lengths_of(program.g)])


def polish(x: Any, program: QuadraticProgram, independent: bool) -> Polished:
    """Return the solution near x by the conditions of optimality, of which that decides which inequalities count.

    Of constraints that depend on each other those that follow from others are left out, if `independent` is wanted.
    """
    sizes, near, count = sizes_of(x, program), is_near(x, program), len(program.b)
    for _ in range(MOST_ROUNDS):
        active, multipliers = held_at(x, program, near)
        left = dependent_among(active, multipliers, program, x) if independent else np.zeros(0, int)
        active[left] = False
        exact, found = solve_active(x, active, program)
        least = NEAR * (1.0 + np.max(forces_of(multipliers, program), initial=0.0))
        forces = np.sign(found) * forces_of(found, program)
        vanishing = active & (forces <= least) & (np.arange(len(active)) >= count)
        if np.any(vanishing):  # they were those of x, which the solver left beside the solution
            active &= ~vanishing
            exact, found = solve_active(x, active, program)
        room = (program.h - program.g @ exact) / sizes
        if np.all(room >= -NEAR * NEAR):
            break
        near |= room < 0  # the solver stopped before it met them
    is_close = bool(np.all(np.abs(exact - x) <= CLOSE * (1.0 + np.max(np.abs(x), initial=0.0))))
    left = without_room(left, room, count)
    return Polished(exact, found[:count], found[count:], active, left, room, is_close and bool(np.all(room >= -NEAR)))


def without_room(left: Any, room: Any, count: int) -> Any:
    """Return which of the constraints left out, of which the first are equations, have no room."""
    return left[np.concatenate([np.zeros(count), room])[left] <= ROUNDING]


def held_at(x: Any, program: QuadraticProgram, near: Any) -> tuple[Any, Any]:
    """Return which constraints count at x, and all multipliers: equations, and inequalities near x that need one.

    Multipliers of inequalities are not negative; those of the equations, which may depend on each other, follow.
    """
    equations, slopes, slope = program.a.T, program.g[near].T, -(program.p @ x + program.q)
    whole = np.concatenate([slopes, slope[:, None]], axis=1)
    rest = whole - equations @ np.linalg.lstsq(equations, whole, rcond=DEPENDENT)[0] if len(program.b) else whole
    found = positive_multipliers(rest[:, :-1], rest[:, -1])
    inequality = np.zeros(len(near))
    inequality[near] = found
    equality = np.linalg.lstsq(equations, slope - slopes @ found, rcond=DEPENDENT)[0]
    multipliers = np.concatenate([equality, inequality])
    forces = forces_of(multipliers, program)
    held = forces[len(equality) :] > NEAR * (1.0 + np.max(forces, initial=0.0))
    return np.concatenate([np.ones(len(equality), bool), held]), multipliers


def dependent_among(
    active: Any, multipliers: Any, program: QuadraticProgram, x: Any, distance: float = DEPENDENT
) -> Any:
    """Return the numbers of constraints, active near x, without which no other one follows from the rest."""
    held = np.flatnonzero(active)
    rows = join_rows([program.a, program.g])
    rows = rows.tocsr()[held] if is_sparse(rows) else rows[held]
    room = np.concatenate([program.b - program.a @ x, program.h - program.g @ x])[held]
    return held[rows_left_out(rows, multipliers[held], held >= len(program.b), room, distance)]


def with_rows_apart(found: Polished, program: QuadraticProgram) -> Polished:
    """Return a solution whose active rows do not nearly follow from others: x as it is, multipliers of the others."""
    multipliers, count = np.concatenate([found.equality, found.inequality]), len(program.b)
    left = dependent_among(found.active, multipliers, program, found.x, NEARLY)
    if not len(left):
        return found
    active = found.active & ~np.isin(np.arange(len(multipliers)), left)
    multipliers = solve_active(found.x, active, program)[1]
    named = without_room(np.concatenate([found.left, left]), found.room, count)
    return found._replace(equality=multipliers[:count], inequality=multipliers[count:], active=active, left=named)


def multipliers_within(columns: Any, slope: Any, bounds: tuple[Any, Any]) -> Any:
    """Return the multipliers within bounds with which columns add up to a slope as nearly as can be, few of them."""
    from scipy.optimize import lsq_linear

    if not columns.size:
        return np.zeros(columns.shape[1])
    if columns.shape[1] <= columns.shape[0]:  # else there are many, of which the shortest one has no zeros
        found = np.linalg.lstsq(columns, slope, rcond=None)[0]
        if np.all((found >= bounds[0]) & (found <= bounds[1])):
            return found
    return lsq_linear(columns, slope, bounds, method="bvls").x


def positive_multipliers(columns: Any, slope: Any) -> Any:
    """Return multipliers that are not negative, of which those are positive that can be; see `multipliers_within`.

    Where there are several, an interior method finds such ones. Between opposite columns it lets both multipliers grow
    to millions, beside which others seem to be zero: so they are bounded by those of few columns.
    """
    from scipy.optimize import lsq_linear

    found = multipliers_within(columns, slope, (0.0, np.inf))
    lengths = np.sqrt(np.sum(columns * columns, axis=0))
    largest = ROOM_FOR_MULTIPLIERS * np.sum(found * lengths)
    if np.all(found > 0.0) or not 0.0 < largest < np.inf:
        return found
    bound = largest / np.where(lengths > 0.0, lengths, largest)
    with np.errstate(all="ignore"):  # of infinite times zero on its way
        return lsq_linear(columns, slope, (0.0, bound), tol=1e-14).x


def solve_active(x: Any, active: Any, program: QuadraticProgram) -> tuple[Any, Any]:
    """Return the solution of the conditions with the active constraints as equations, near x, and all multipliers."""
    p, q, a, b, g, h = program
    rows, sides = np.concatenate([a, g])[active], np.concatenate([b, h])[active]
    matrix = np.block([[p, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
    found = solve_system(matrix, np.concatenate([-q - p @ x, sides - rows @ x]))
    multipliers = np.zeros(len(active))
    multipliers[active] = found[len(q) :]
    return x + found[: len(q)], multipliers


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
