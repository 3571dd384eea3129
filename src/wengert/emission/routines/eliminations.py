"""Elimination and substitution in matrices whose rows lie in memory: each row less multiples of those before it.

Some vectors of one row, or of two, stay in registers while rows before them are subtracted, so what is read for a
multiplication is a part of one number. Rows have room for whole vectors, whose ends may hold anything.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.emission.products.tiled_functions import TiledFunctions
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import I8, I64, Float, Integer, Pointer, VectorType, vector_of
from wengert.native.values import Value
from wengert.support.caches import cached

SUMS = 8
"""Vectors of sums that stay in registers."""
FAR = 2**62
"""The number of a row that is not there."""


class Eliminations(TiledFunctions):
    """Write the functions of one dtype.

    Attributes:
        element: the type of an element of a matrix.
        place: the type of the number of a row.
        panels: how many vectors of a row are computed at once, where there are as many, from the most on.
        sums: how many vectors of sums stay in registers.
    """

    prefix = "elimination."
    element: Float | VectorType
    place: Integer | VectorType
    panels: tuple[int, ...] = (4, 1)
    sums = SUMS

    def __init__(self, dtype: str, target: Target) -> None:
        super().__init__(dtype, target)
        self.element, self.place = self.scalar, I64

    # ---------------------------------------------------------------- parts

    def spread(self, b: Builder, x: Value) -> Value:
        """Return a vector that has an element everywhere."""
        return b.spread(x, self.lanes)

    def holds(self, _b: Builder, condition: Value) -> Value:
        """Return whether a condition on elements holds."""
        return condition

    def by_panels(self, b: Builder, width: Value, write: Callable[[Value, int], None]) -> None:
        """Write what is done for some columns after the others, which is told the first and how many vectors."""
        start: Value | int = 0
        for vectors in self.panels:
            stop = width if vectors == 1 else width - width % (vectors * self.lanes)
            with b.loop(stop, start, step=vectors * self.lanes) as panels:
                write(panels.index, vectors)
            start = stop

    def load(self, row: Value, vectors: int) -> list[Value]:
        """Return the first vectors of a row."""
        return [row.at(n * self.lanes).to(self.vector).load() for n in range(vectors)]

    def store(self, row: Value, found: Sequence[Value]) -> None:
        """Store the first vectors of a row."""
        for n, x in enumerate(found):
            row.at(n * self.lanes).to(self.vector).store(x)

    def subtract(self, b: Builder, totals: Sequence[Value], factor: Value, row: Sequence[Value]) -> list[Value]:
        """Return vectors less a number times others."""
        factors = -self.spread(b, factor)
        return [self.add_product(b, factors, x, total) for x, total in zip(row, totals, strict=True)]

    def less(
        self,
        b: Builder,
        rows: Sequence[Value],
        factors: Sequence[Value],
        step: Value,
        x: Value,
        row: Value,
        terms: Value,
    ) -> list[list[Value]]:
        """Return rows less the first rows of a matrix, each times a factor of its own.

        Args:
            b: writes the function.
            rows: the vectors of each row, one behind the other.
            factors: the address of the first factor of each row.
            step: from one factor to the next.
            x: the address of the first of the rows that are subtracted.
            row: from one of them to the next.
            terms: how many these are.
        """
        count = len(rows) // len(factors)
        with b.loop(terms, carry=rows) as loop:
            known, found = self.load(x.at(loop.index * row), count), list[Value]()
            for n, place in enumerate(factors):
                factor = place.at(loop.index * step).load()
                found += self.subtract(b, loop.values[n * count : (n + 1) * count], factor, known)
            loop.next(*found)
        return [loop.results[n * count : (n + 1) * count] for n in range(len(factors))]

    def some_at_once(
        self, b: Builder, vectors: int, start: Value | int, stop: Value, write: Callable[[list[Value]], None]
    ) -> None:
        """Write what is done for some rows at once, of so many vectors each, and for the last ones one by one."""
        count = min(self.sums // vectors, 4)
        whole = stop - (stop - start) % count
        with b.loop(whole, start, step=count) as rows:
            write([rows.index + n for n in range(count)])
        with b.loop(stop, whole) as rows:
            write([rows.index])

    # ---------------------------------------------------------------- substitution

    @cached
    def panel_solvers(self) -> dict[int, NativeFunction]:
        """The functions that solve T X = B in place, for some vectors of each row of B, from the first row on."""
        return {vectors: self.panel(vectors) for vectors in self.panels}

    def panel(self, vectors: int) -> NativeFunction:
        """Return the function for so many vectors."""
        kinds = (self.address, I64, I64, self.address, I64, I64, I64)

        def body(
            b: Builder, t: Value, t_row: Value, t_column: Value, x: Value, row: Value, size: Value, unit: Value
        ) -> None:
            one = b.constant(self.element, 1.0)

            def scale_of(pivot: Value) -> Value:
                return b.either(unit.differs(0), lambda: [one], lambda: [one / pivot.load()])[0]

            def solve(rows: list[Value]) -> None:
                places, factors = [x.at(i * row) for i in rows], [t.at(i * t_row) for i in rows]
                given = [v for place in places for v in self.load(place, vectors)]
                found = self.less(b, given, factors, t_column, x, row, rows[0])
                for n, i in enumerate(rows):
                    for before in range(n):
                        factor = factors[n].at(rows[before] * t_column).load()
                        found[n] = self.subtract(b, found[n], factor, found[before])
                    scale = self.spread(b, scale_of(factors[n].at(i * t_column)))
                    found[n] = [v * scale for v in found[n]]
                    self.store(places[n], found[n])

            self.some_at_once(b, vectors, 0, size, solve)

        return self.function(f"panel{vectors}", kinds, body)

    @cached
    def substitute(self) -> NativeFunction:
        """The function that solves T X = B in place, from the first row of B on: with ones on the diagonal, if said.

        Its arguments are T, what it is to its next row and column, B, what it is to its next row, and how many rows and
        columns it has.
        """
        kinds = (self.address, I64, I64, self.address, I64, I64, I64, I64)

        def body(
            b: Builder,
            t: Value,
            t_row: Value,
            t_column: Value,
            x: Value,
            row: Value,
            size: Value,
            width: Value,
            unit: Value,
        ) -> None:
            def solve(column: Value, vectors: int) -> None:
                b.do(self.panel_solvers[vectors], t, t_row, t_column, x.at(column), row, size, unit)

            self.by_panels(b, width, solve)

        return self.function("substitute", kinds, body)

    # ---------------------------------------------------------------- Cholesky's factor

    @cached
    def cholesky(self) -> NativeFunction:
        """The function that puts the U of A = U^T U, U above, in its place; it says if A is not positive definite."""

        def body(b: Builder, x: Value, row: Value, size: Value, failed: Value) -> None:
            one = b.constant(I64, 1)

            def factorise(column: Value, vectors: int) -> None:
                first = x.at(column)
                b.do(self.panel_solvers[vectors], x, one, row, first, row, column, b.constant(I64, 0))
                with b.loop(b.least(column + vectors * self.lanes, size), column) as rows:
                    i = rows.index
                    place, diagonal = first.at(i * row), x.at(i * row).at(i)
                    (found,) = self.less(b, self.load(place, vectors), [x.at(i)], row, first, row, i)
                    self.store(place, found)
                    square = diagonal.load()
                    self.fail_if(b, failed, b.compare("ule", square, 0) | (square - square).differs(0))
                    root = b.intrinsic("sqrt", self.element, square)
                    scale = self.spread(b, b.constant(self.element, 1.0) / root)
                    self.store(place, [v * scale for v in found])
                    diagonal.store(root)

            self.by_panels(b, size, factorise)

        return self.function("cholesky", (self.address, I64, I64, Pointer(I8)), body)

    def fail_if(self, b: Builder, failed: Value, condition: Value) -> None:
        """Say that something failed, and return, if a condition holds."""
        with b.when(self.holds(b, condition)):
            failed.store(1)
            b.give()

    # ---------------------------------------------------------------- L and U

    @cached
    def decompose(self) -> NativeFunction:
        """The function that puts L and U in the place of a matrix, and L^-1 B in that of what is beside it.

        Its arguments are the matrix, what it is to its next row, how many rows and columns it has, how many rows with
        those below it, which it is eliminated from, too, for how many columns those beside it are there, where to put
        the row that each row was exchanged with, and where to say that a pivot was 0 or not finite.
        """

        def body(
            b: Builder,
            x: Value,
            row: Value,
            size: Value,
            count: Value,
            width: Value,
            pivots: Value,
            failed: Value,
        ) -> None:
            one = b.constant(I64, 1)

            def eliminate(column: Value, vectors: int) -> None:
                first, done = x.at(column), b.least(column, size)
                b.do(self.panel_solvers[vectors], x, row, one, first, row, done, one)

                def update(rows: list[Value]) -> None:
                    places, factors = ([y.at(i * row) for i in rows] for y in (first, x))
                    given = [v for place in places for v in self.load(place, vectors)]
                    for place, found in zip(places, self.less(b, given, factors, one, first, row, done), strict=True):
                        self.store(place, found)

                self.some_at_once(b, vectors, done, count, update)
                with b.loop(b.least(column + vectors * self.lanes, size), done) as steps:
                    k = steps.index
                    chosen = pivots.at(k)
                    chosen.store(self.largest(b, x.at(k), row, k, size))
                    self.exchange_rows(b, x, row, k, chosen, width)
                    self.eliminate_one(b, x, row, count, k, column, vectors, failed)

            self.by_panels(b, width, eliminate)

        return self.function("decompose", (self.address, I64, I64, I64, I64, Pointer(self.place), Pointer(I8)), body)

    def eliminate_one(
        self, b: Builder, x: Value, row: Value, size: Value, k: Value, column: Value, vectors: int, failed: Value
    ) -> None:
        """Write what subtracts row k from later rows, in some vectors of theirs, and keeps how often."""
        pivot = x.at(k * row).at(k).load()
        scale = b.constant(self.element, 1.0) / pivot
        self.fail_if(b, failed, (pivot - pivot).differs(0) | (scale - scale).differs(0))
        zero, given = b.constant(self.vector, 0), self.load(x.at(k * row).at(column), vectors)
        own = [b.select(self.are_behind(b, column + n * self.lanes, k), v, zero) for n, v in enumerate(given)]
        with b.loop(size, k + 1) as rows:
            start = x.at(rows.index * row)
            factor, place = start.at(k).load() * scale, start.at(column)
            self.store(place, self.subtract(b, self.load(place, vectors), factor, own))
            start.at(k).store(factor)

    def are_behind(self, b: Builder, column: Value, k: Value) -> Value:
        """Return which elements of a vector that begins with a column are behind another column."""
        return b.numbers(I64, range(self.lanes)) + b.spread(column - k, self.lanes) > 0

    def largest(self, b: Builder, column: Value, row: Value, first: Value, last: Value) -> Value:
        """Return the first row whose element of a column is the largest; numbers that are none do not count."""
        lanes, signs = self.lanes, vector_of(I64, self.lanes)
        numbers, best = b.numbers(I64, range(lanes)), b.constant(self.vector, 0.0)
        step, stop = b.spread(row, lanes), b.spread(last, lanes)
        with b.loop(last, first, carry=[best, b.constant(signs, FAR)], step=lanes) as rows:
            index = b.spread(rows.index, lanes) + numbers
            x = b.intrinsic("fabs", self.vector, column.gather(index * step, index < stop))
            is_larger = x > rows.values[0]
            rows.next(b.select(is_larger, x, rows.values[0]), b.select(is_larger, index, rows.values[1]))
        most, where = rows.results
        whole = b.intrinsic("vector.reduce.fmax", self.scalar, most, of=(self.vector,))
        among = b.select(most.equals(b.spread(whole, lanes)), where, b.constant(signs, FAR))
        found = b.intrinsic("vector.reduce.smin", I64, among, of=(signs,))
        return b.select(found < last, found, first)

    def exchange_rows(self, b: Builder, x: Value, row: Value, k: Value, place: Value, width: Value) -> None:
        """Write what exchanges a row with that whose number is in some place."""
        other = place.load()
        with b.when(other.differs(k)), b.loop(width, step=self.lanes) as cells:
            places = [x.at(i * row).at(cells.index).to(self.vector) for i in (k, other)]
            first, second = [place.load() for place in places]
            places[0].store(second)
            places[1].store(first)
