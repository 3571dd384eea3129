"""The units of a problem: programs are solved, looked at and differentiated in units in which numbers are about one.

So each tolerance is relative to the size of the problem. Units are powers of 1024, which rounding does not see, and one
for what is between 1/32 and 32. Solutions move with data and not with units, so these have no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.implicit.quadratic_programs.programs import QuadraticProgram, join_parts
from wengert.implicit.quadratic_programs.row_lengths import is_sparse, largest_of, lengths_of, times_rows, unit_of
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient


class Units(NamedTuple):
    """Hold the units of x, of the objective, and of each equation and inequality."""

    x: Any
    objective: Any
    equality: Any
    inequality: Any


def size_nearest_to_one(sizes: Sequence[Any]) -> Any:
    """Return the number next to one between the least and the greatest of sizes that are not zero; zero without any."""
    several = join_parts([np.reshape(size, (-1,)) for size in sizes])
    greatest = np.max(several)
    least = np.min(np.where(several > 0.0, several, np.inf))
    return np.where(greatest > 0.0, np.maximum(np.minimum(1.0, greatest), least), 0.0)


def units_of(program: QuadraticProgram) -> Units:
    """Return the units of a program, which may be traced.

    The size of x is that of q / P, or what right sides are of the lengths of their rows. Without inequalities nothing
    depends on it, so that constant matrices stay what they are.
    """
    p, q, a, b, g, h = stop_gradient(tuple(program))
    equality, inequality = lengths_of(a), lengths_of(g)
    curved = largest_of(p.data if is_sparse(p) else p)
    x, sizes = np.ones(()), [curved]
    if h.shape[0]:
        inclined = largest_of(q)
        sides = [np.abs(side) / np.where(rows > 0.0, rows, 1.0) for rows, side in ((equality, b), (inequality, h))]
        free = np.where(curved > 0.0, inclined / np.where(curved > 0.0, curved, 1.0), 0.0)
        x = unit_of(size_nearest_to_one([free, *sides]))
        sizes = [curved * x * x, inclined * x]
    units = Units(x, unit_of(size_nearest_to_one(sizes)), unit_of(equality * x), unit_of(inequality * x))
    return Units(*(unit.astype(aval_of(q).dtype) for unit in units))


def in_units(program: QuadraticProgram, units: Units) -> QuadraticProgram:
    """Return the same program of numbers in other units."""
    p, q, a, b, g, h = program
    x, objective, *rows = units
    (a, b), (g, h) = (
        (times_rows(matrix, x / unit), side / unit) if side.shape[0] else (matrix, side)
        for matrix, side, unit in ((a, b, rows[0]), (g, h, rows[1]))
    )
    return QuadraticProgram(p * (x * x / objective), q * (x / objective), a, b, g, h)


def out_of_units(program: QuadraticProgram, units: Units) -> QuadraticProgram:
    """Return the program that was given."""
    return in_units(program, Units(*(1.0 / unit for unit in units)))


def solution_out_of_units(found: Sequence[Any], units: Units) -> tuple[Any, ...]:
    """Return x and the multipliers of the program that was given."""
    scales = units.x, units.objective / units.equality, units.objective / units.inequality
    return tuple(part * scale if part.shape[0] else part for part, scale in zip(found, scales, strict=True))
