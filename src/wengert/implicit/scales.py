"""The units of a problem: programs are solved, looked at and differentiated in units in which numbers are about one.

So each tolerance is relative to the size of the problem. Units are powers of 1024, which rounding does not see, and one
for what is between 1/32 and 32. Solutions move with data and not with units, so these have no derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.core.values.aval import aval_of
from wengert.implicit.programs import QuadraticProgram, is_sparse, join_parts
from wengert.primitives.sparse.storage_pattern import pattern_of
from wengert.transforms.reverse import stop_gradient

DIGITS = 10.0
"""Of how many binary digits units are multiples."""


class Units(NamedTuple):
    """Hold the units of x, of the objective, and of each equation and inequality."""

    x: Any
    objective: Any
    equality: Any
    inequality: Any


def unit_of(sizes: Any) -> Any:
    """Return the power of 1024 next to sizes; one for zero and for what is not finite."""
    known = np.where((sizes > 0.0) & np.isfinite(sizes), sizes, 1.0)
    return np.exp2(DIGITS * np.rint(np.log2(known) / DIGITS))


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


def lengths_of(rows: Any) -> Any:
    """Return the lengths of the rows of a matrix; squares of tiny and huge numbers are no numbers."""
    if 0 in rows.shape:
        return np.zeros(rows.shape[0])
    stored = is_sparse(rows)
    largest = largest_of(rows.data) if stored else np.max(np.abs(rows), axis=1)
    sizes = unit_of(largest)
    near_one = rows * (1.0 / sizes) if stored else rows / sizes[:, None]
    return np.sqrt((near_one * near_one).sum(axis=1)) * sizes


def largest_of(numbers: Any) -> Any:
    """Return the size of the largest number; zero of none."""
    return np.max(np.abs(numbers)) if 0 not in numbers.shape else np.zeros(())


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


def times_rows(matrix: Any, factors: Any) -> Any:
    """Return a matrix with its rows multiplied; a sparse one with the places that it has."""
    if not is_sparse(matrix):
        return matrix * factors[:, None]
    each = factors[(pattern_of(matrix) if isinstance(matrix.data, np.ndarray) else matrix._pattern).coordinates[0]]
    if not isinstance(matrix.data, np.ndarray):
        return matrix.map_elements(lambda elements: elements * each)
    return type(matrix)((matrix.data * each, matrix.indices, matrix.indptr), shape=matrix.shape)


def solution_out_of_units(found: Sequence[Any], units: Units) -> tuple[Any, ...]:
    """Return x and the multipliers of the program that was given."""
    scales = units.x, units.objective / units.equality, units.objective / units.inequality
    return tuple(part * scale if part.shape[0] else part for part, scale in zip(found, scales, strict=True))
