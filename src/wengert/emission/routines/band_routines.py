"""Factors of banded matrices and solutions by them: kernels of our own for few bands, and calls of LAPACK for many.

Column j of a matrix is row j of an array, whose element above + i - j is that of row i; factors have `below` more
places in front. With few bands LAPACK takes some ten times as long, as it calls four routines of BLAS for a column.
Elimination and substitution are those of LAPACK's (G. Golub and C. Van Loan, Matrix Computations, 2013, section 4.3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from wengert.emission.routines.lapack_problems import LETTERS, LapackProblem, fill, pivots_of
from wengert.emission.routines.lapack_routines import kernel_on_one_thread
from wengert.emission.routines.matrix_problems import Matrix, Problems, element_product
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.lapack import are_offered
from wengert.native.structs import I32, I64
from wengert.native.values import Value
from wengert.support.machine import MACHINE

BANDED = "banded"
"""What the names of these kernels begin with: "banded.band_factors.float64"."""


class BandProblem(LapackProblem):
    """Be a problem of a banded matrix.

    Attributes:
        count: of its rows and columns.
        below, above: how many bands there are on either side of the diagonal.
        packed: the factors.
        reach: where the diagonal stands in a column of these.
        pivots: the numbers of rows that rows were exchanged with, counted from 0.
    """

    def __init__(self, problems: Problems, dtype: str, kinds: str, index: Value, places: Sequence[int]) -> None:
        super().__init__(problems, dtype, kinds, index)
        self.count, self.below, self.above = (self.fields.get(name) for name in ("rows", "below", "above"))
        self.packed, self.pivots = self.matrices[places[0]], self.matrices[places[1]]
        self.reach = self.below + self.above
        self.depth = self.reach + self.below + 1
        for matrix in (self.packed, self.pivots):
            self.fail_if(matrix.row.differs(self.depth if matrix is self.packed else 1))

    def element_at(self, row: Value, column: Value) -> Value:
        """Return the address of an element of the factors."""
        found: Value = self.packed.first.at(column * self.depth + self.reach + row - column)
        return found

    def rows_below(self, column: Value) -> Value:
        """Return how many rows have elements below the diagonal in a column."""
        return self.b.least(self.below, self.count - 1 - column)

    def inverse(self, x: Sequence[Value]) -> list[Value]:
        """Return one by an element."""
        if not self.is_complex:
            return [self.number(1.0) / x[0]]
        square = x[0] * x[0] + x[1] * x[1]
        return [x[0] / square, -x[1] / square]

    def subtract(self, place: Value, x: Sequence[Value], y: Sequence[Value]) -> None:
        """Subtract a product of elements from what stands at an address."""
        self.put(place, [a - c for a, c in zip(self.parts_of(place), element_product(x, y), strict=True)])

    def exchange(self, one: Value, other: Value) -> None:
        """Exchange the elements at two addresses."""
        first, second = self.parts_of(one), self.parts_of(other)
        self.put(one, second)
        self.put(other, first)


Solver = Callable[[BandProblem], None]


def factorise(p: BandProblem) -> None:
    """Compute both triangular factors, and with which row each was exchanged."""
    b, bands = p.b, p.matrices[0]
    width = p.reach + 1
    with b.loop(p.count) as columns:
        with b.loop(p.below) as places:
            p.put(p.packed.first.at(columns.index * p.depth + places.index), [p.number(0.0)] * p.parts)
        with b.loop(width) as places:
            target = p.packed.first.at(columns.index * p.depth + p.below + places.index)
            p.put(target, p.parts_of(bands.at(columns.index, places.index)))
    with b.when(p.below < MACHINE.lapack_bands) as otherwise:
        eliminate(p)
    with otherwise:
        place = p.pivots.first
        p.call("gbtrf", p.count, p.count, p.below, p.above, p.packed.first, p.depth, place, p.info)
        with b.loop(p.count) as rows:
            place.at(rows.index).store(place.at(rows.index).load() - 1)


def eliminate(p: BandProblem) -> None:
    """Bring a matrix into triangular factors in its place, column by column."""
    b = p.b
    with b.loop(p.count, carry=[p.zero]) as steps:
        j = steps.index
        rows, last = p.rows_below(j), steps.values[0]
        start = p.element_at(j, j)
        with b.loop(rows + 1, 1, carry=[p.size_of(p.parts_of(start)), p.zero]) as below:
            size = p.size_of(p.parts_of(start.at(below.index)))
            larger = size > below.values[0]
            below.next(b.select(larger, size, below.values[0]), b.select(larger, below.index, below.values[1]))
        largest, other = below.results
        reached = b.least(j + p.above + other, p.count - 1)
        last = b.select(reached > last, reached, last)
        p.pivots.first.at(j).store(b.convert("trunc", j + other, I32))
        regular = largest.differs(0)
        with b.when(regular):
            with b.when(other.differs(0)), b.loop(last + 1, j) as columns:
                p.exchange(p.element_at(j, columns.index), p.element_at(j + other, columns.index))
            factor = p.inverse(p.parts_of(start))
            with b.loop(rows + 1, 1) as below:
                place = start.at(below.index)
                p.put(place, element_product(p.parts_of(place), factor))
            with b.loop(last + 1, j + 1) as columns:
                place = p.element_at(j, columns.index)
                x = p.parts_of(place)
                with b.when(p.size_of(x).differs(0)), b.loop(rows + 1, 1) as below:
                    p.subtract(place.at(below.index), p.parts_of(start.at(below.index)), x)
        steps.next(last)


def solve(p: BandProblem) -> None:
    """Solve A X = B or A^T X = B by the factors of A."""
    b, right, x = p.b, p.matrices[1], p.matrices[3]
    transposed = p.fields.get("backward").differs(0)
    with b.when(p.below < MACHINE.lapack_bands) as otherwise:
        fill(p, x, right, p.columns, p.count)
        with b.loop(p.columns) as each:
            side = Matrix(x.at(p.zero, each.index), x.row, p.one)
            with b.when(transposed) as plain:
                substitute_transposed(p, side)
            with plain:
                substitute(p, side)
    with otherwise:
        columns = Matrix(p.room(p.kind, p.count * p.columns), p.one, p.count)
        fill(p, columns, right, p.columns, p.count)
        p.size = p.count
        places = pivots_of(p, p.pivots)
        how, last = p.letter_if(transposed, "T", "N"), (places, columns.first, p.count, p.info)
        p.call("gbtrs", how, p.count, p.below, p.above, p.columns, p.packed.first, p.depth, *last)
        fill(p, x, columns, p.columns, p.count)


def other_row(p: BandProblem, row: Value) -> Value:
    """Return with which row one was exchanged, which lies in the bands below."""
    other: Value = p.pivots.first.at(row).load().widen(I64)
    p.fail_if((other < row) | (other > row + p.below) | (other >= p.count))
    return other


def substitute(p: BandProblem, x: Matrix) -> None:
    """Solve P L U x = b in the place of b."""
    b = p.b

    def at(row: Value) -> Value:
        return x.at(row, p.zero)

    with b.loop(p.count) as steps:
        j = steps.index
        other = other_row(p, j)
        with b.when(other.differs(j)):
            p.exchange(at(j), at(other))
        value, place = p.parts_of(at(j)), p.element_at(j, j)
        with b.loop(p.rows_below(j) + 1, 1) as below:
            p.subtract(at(j + below.index), p.parts_of(place.at(below.index)), value)
    with b.loop(p.count) as steps:
        j = p.count - 1 - steps.index
        value = element_product(p.parts_of(at(j)), p.inverse(p.parts_of(p.element_at(j, j))))
        p.put(at(j), value)
        start = j - b.least(j, p.reach)
        with b.loop(j, start) as above:
            p.subtract(at(above.index), p.parts_of(p.element_at(above.index, j)), value)


def substitute_transposed(p: BandProblem, x: Matrix) -> None:
    """Solve U^T L^T P^T x = b in the place of b."""
    b = p.b

    def less(row: Value, start: Value, stop: Value, factors: Value) -> list[Value]:
        with b.loop(stop, start, carry=p.parts_of(x.at(row, p.zero))) as terms:
            product = element_product(p.parts_of(factors.at(terms.index - row)), p.parts_of(x.at(terms.index, p.zero)))
            terms.next(*[a - c for a, c in zip(terms.values, product, strict=True)])
        return terms.results

    with b.loop(p.count) as steps:
        j = steps.index
        place = p.element_at(j, j)
        found = less(j, j - b.least(j, p.reach), j, place)
        p.put(x.at(j, p.zero), element_product(found, p.inverse(p.parts_of(place))))
    with b.loop(p.count) as steps:
        j = p.count - 1 - steps.index
        p.put(x.at(j, p.zero), less(j, j + 1, j + 1 + p.rows_below(j), p.element_at(j, j)))
        other = other_row(p, j)
        with b.when(other.differs(j)):
            p.exchange(x.at(j, p.zero), x.at(other, p.zero))


SOLVERS: dict[str, tuple[Solver, str, tuple[int, int]]] = {
    "band_factors": (factorise, "eei", (1, 2)),
    "band_solution": (solve, "eeie", (0, 2)),
}
"""What computes each routine; of its operands and results whether they have the elements, or rows'; and which are the
factors and the exchanges."""


def is_banded(routine: str) -> bool:
    """Tell whether a routine is of banded matrices."""
    return routine in SOLVERS


def is_available(dtype: np.dtype[np.generic]) -> bool:
    """Tell whether routines can be computed so here, of elements of a dtype."""
    letter = LETTERS.get(dtype.name)
    return letter is not None and are_offered((f"{letter}gbtrf", f"{letter}gbtrs"))


def room_of_bands(rows: int, columns: int) -> int:
    """Return how many elements there must be room for: right-hand sides, and exchanges."""
    return rows * (columns + 1) + 64


def band_kernel(name: str, _target: Target) -> NativeFunction:
    """Return the kernel of a name: "banded.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    solver, kinds, places = SOLVERS[own]
    return kernel_on_one_thread(name, len(kinds), lambda ps, i: solver(BandProblem(ps, dtype, kinds, i, places)))
