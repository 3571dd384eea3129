"""Active sets of quadratic programs whose rows nearly depend on each other, to the last digit.

Where rows are but for 1e-9 of their length dependent, rounding of a residual moves x by 1e-7, and decides who is
active. So residuals are those of long doubles, x and the multipliers are refined by them, and constraints enter and
leave by the dual method of D. Goldfarb and A. Idnani (A numerically stable dual method for solving strictly convex
quadratic programs, Mathematical Programming, 1983), which takes rows that follow from others for what they are. Where
long doubles are doubles, x has the digits that these allow.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.implicit.quadratic_programs.dependent_rows import DEPENDENT, NEARLY, depend_nearly
from wengert.implicit.quadratic_programs.programs import (
    CLOSE,
    NEAR,
    Polished,
    QuadraticProgram,
    is_near,
    sizes_of,
    without_room,
)
from wengert.implicit.quadratic_programs.row_lengths import lengths_of
from wengert.support.records import NamedTuple

REFINEMENTS = 4
LONG = np.longdouble
LAST_DIGITS = 16.0 * float(np.finfo(LONG).eps)
"""By how much of its terms a constraint may be missed."""
MOST_EXCHANGES = 100


class Held(NamedTuple):
    """Hold constraints as equations, whose rows do not follow from others, with what solves their conditions.

    Attributes:
        numbers: theirs, the equations of the program before its inequalities.
        rows: theirs, of unit length.
        solve: from both right sides of [P R^T; R 0] to x and the multipliers.
        free: an orthonormal basis of what they leave free.
    """

    numbers: list[int]
    rows: Any
    solve: Callable[[Any, Any], tuple[Any, Any]]
    free: Any


class RowsInLongDoubles(NamedTuple):
    """Hold the objective, and all constraints as rows of unit length with their right sides, in long doubles."""

    p: Any
    q: Any
    rows: Any
    sides: Any
    equations: int

    def hold(self, numbers: list[int]) -> Held:
        """Return constraints as equations."""
        from scipy import linalg

        rows, p = self.rows[numbers].astype(float), self.p.astype(float)
        base, triangle = linalg.qr(rows.T)
        size = len(numbers)
        span, free, triangle = base[:, :size], base[:, size:], triangle[:size]
        factor = linalg.cho_factor(free.T @ p @ free) if size < len(base) else None

        def solve(top: Any, side: Any) -> tuple[Any, Any]:
            x = span @ linalg.solve_triangular(triangle, side, trans="T")
            if factor is not None:
                x = x + free @ linalg.cho_solve(factor, free.T @ (top - p @ x))
            return x, linalg.solve_triangular(triangle, span.T @ (top - p @ x))

        return Held(numbers, self.rows[numbers], solve, free)

    def optimum(self, held: Held) -> tuple[Any, Any]:
        """Return the x that is optimal where some constraints are equations, and their multipliers."""
        x, multipliers = np.zeros(len(self.q), LONG), np.zeros(len(held.numbers), LONG)
        for _ in range(REFINEMENTS):
            missed = -self.q - self.p @ x - multipliers @ held.rows, self.sides[held.numbers] - held.rows @ x
            change, others = held.solve(*(part.astype(float) for part in missed))
            x, multipliers = x + change, multipliers + others
        return x, multipliers

    def most_missed(self, x: Any, held: Held) -> int | None:
        """Return the number of the inequality that x misses most; None if it misses none."""
        room = (self.sides - self.rows @ x) / (1.0 + np.abs(self.sides) + np.abs(self.rows) @ np.abs(x))
        room[: self.equations] = room[held.numbers] = 0.0
        last = int(np.argmin(room))
        return last if room[last] < -LAST_DIGITS else None

    def has_sign(self, held: Held) -> Any:
        """Tell which multipliers of constraints have a sign."""
        return np.array(held.numbers, int) >= self.equations

    def without_negative(self, numbers: list[int]) -> tuple[Held, Any, Any]:
        """Return constraints, without those whose multipliers would be negative, and their optimum."""
        while True:
            held = self.hold(numbers)
            x, multipliers = self.optimum(held)
            signed = np.where(self.has_sign(held), multipliers, 0.0)
            if not np.any(signed < 0.0):
                return held, x, multipliers
            numbers = without(numbers, int(np.argmin(signed)))

    def enter(self, number: int, held: Held, x: Any, multipliers: Any) -> list[int] | None:
        """Return which constraints hold with one more, for which others may leave; None if it contradicts them."""
        row, numbers = self.rows[number], held.numbers
        while True:
            move, weights = held.solve(row.astype(float), np.zeros(len(numbers)))
            apart = float(np.linalg.norm(held.free.T @ row.astype(float)))
            slope = float(move @ self.p.astype(float) @ move)
            full = (row @ x - self.sides[number]) / slope if apart > DEPENDENT and slope > 0.0 else np.inf
            falling = self.has_sign(held) & (weights > 0.0)
            reach = np.where(falling, np.maximum(multipliers, 0.0) / np.where(falling, weights, 1.0), np.inf)
            least = np.min(reach, initial=np.inf)
            if full <= least:
                return None if np.isinf(full) else [*numbers, number]
            if not np.isinf(full):
                x = x - least * move
            place = int(np.argmin(reach))
            numbers, multipliers = without(numbers, place), np.delete(multipliers - least * weights, place)
            held = self.hold(numbers)


def without(numbers: list[int], place: int) -> list[int]:
    """Return numbers without that at a place."""
    return numbers[:place] + numbers[place + 1 :]


def settle(found: Polished, x: Any, program: QuadraticProgram) -> Polished:
    """Return the solution near x to the last digit where rows of constraints there nearly depend on each other.

    So it is where the solution that was found misses constraints. Matrices are full ones; it is the one that was given
    where it is not unique, or exchanges come to no end.
    """
    count, near = len(program.b), np.concatenate([np.ones(len(program.b), bool), is_near(x, program)])
    lengths = np.concatenate([lengths_of(program.a), lengths_of(program.g)])
    units = np.concatenate([program.a, program.g]) / np.where(lengths > 0.0, lengths, 1.0)[:, None]
    if np.all(found.room >= -NEAR * NEAR) and not depend_nearly(units[near | found.active]):
        return found
    scales = np.where(lengths > 0.0, lengths, 1.0).astype(LONG)
    rows = np.concatenate([program.a, program.g]).astype(LONG) / scales[:, None]
    sides = np.concatenate([program.b, program.h]).astype(LONG) / scales
    given = RowsInLongDoubles(program.p.astype(LONG), program.q.astype(LONG), rows, sides, count)
    try:
        settled = exchange(given, np.flatnonzero(found.active).tolist())
    except np.linalg.LinAlgError:  # P leaves something free
        return found
    if settled is None:
        return found
    held, exact, own = settled
    multipliers = np.zeros(len(lengths))
    multipliers[held.numbers] = own / scales[held.numbers]
    active = np.isin(np.arange(len(lengths)), held.numbers)
    room = ((sides - rows @ exact) * scales)[count:].astype(float) / sizes_of(x, program)
    follows = ~active & (np.linalg.norm(units @ held.free, axis=1) <= NEARLY)
    exact = exact.astype(float)
    is_close = bool(np.all(np.abs(exact - x) <= CLOSE * (1.0 + np.max(np.abs(x), initial=0.0))))
    left = without_room(np.flatnonzero(follows), room, count)
    return Polished(exact, multipliers[:count], multipliers[count:], active, left, room, is_close)


def exchange(given: RowsInLongDoubles, numbers: list[int]) -> tuple[Held, Any, Any] | None:
    """Return which constraints hold at the solution, x there, and their multipliers; None where there is no end."""
    for _ in range(MOST_EXCHANGES):
        held, x, multipliers = given.without_negative(numbers)
        number = given.most_missed(x, held)
        if number is None:
            return held, x, multipliers
        after = given.enter(number, held, x, multipliers)
        if after is None:
            return None
        numbers = after
    return None
