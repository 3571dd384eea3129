"""Triangular systems with one right side: some unknowns at once, and what others contribute to them by vectors.

Unknowns are found by the square that they have on the diagonal. Known ones times elements of the triangle are summed up
along its rows, or subtracted along its columns, whichever lie side by side in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.emission.products.tiled_functions import SQUARE, TiledFunctions, transpose_square
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I8, I32, I64, Pointer, size, vector_of
from wengert.native.values import Value
from wengert.support.caches import cached
from wengert.support.records import NamedTuple

Range = tuple[Value, Value]
"""The first unknown of some, and the one behind the last."""


class Unknowns(NamedTuple):
    """Be the unknowns that are found at once.

    Attributes:
        start: the first of them.
        there: which of a vector there are.
        lines: where their rows, or columns, begin; the last one stands for those that are not there.
        known: those that are found before.
        unknown: those that are found after.
    """

    start: Value
    there: Value
    lines: Sequence[Value]
    known: Range
    unknown: Range


class TriangularSystem(NamedTuple):
    """Be T x = b, with x in the place of b.

    Attributes:
        t: the address of T.
        apart: how far its rows, or columns, lie apart.
        x: the address of x.
        size: how many unknowns there are.
        backward: whether they are found from the last to the first.
        unit: whether T has ones on its diagonal.
        failed: where it is said that a number there has no finite inverse.
    """

    t: Value
    apart: Value
    x: Value
    size: Value
    backward: Value
    unit: Value
    failed: Value


class VectorSubstitution(TiledFunctions):
    """Write the functions of one dtype that solve triangular systems, whose arguments are those of `TriangularSystem`.

    Attributes:
        together: rows whose sums stay in registers.
    """

    prefix = "substitution."

    def __init__(self, dtype: str, target: Target) -> None:
        super().__init__(dtype, target)
        self.lanes, self.vector = SQUARE, vector_of(self.scalar, SQUARE)
        self.together = SQUARE if target.vector_bytes >= SQUARE * size(self.scalar) else SQUARE // 2

    @cached
    def by_rows(self) -> NativeFunction:
        """The function for a T whose rows lie side by side."""

        def solve(b: Builder, system: TriangularSystem, own: Unknowns) -> None:
            sums = list[Value]()
            for n in range(0, SQUARE, self.together):
                sums += self.row_sums(b, own.lines[n : n + self.together], system.x, own.known)
            total, *others = transpose_square(b, sums)
            for other in others:
                total = total + other
            square = transpose_square(b, self.square_of(b, own))
            self.find(b, system, own, square, load(system.x.at(own.start).to(self.vector), own.there) - total)

        return self.function_of("by_rows", solve)

    def row_sums(self, b: Builder, rows: Sequence[Value], x: Value, known: Range) -> list[Value]:
        """Return what known unknowns contribute to some, as vectors whose numbers are to be added."""

        def add(i: Value, there: Value | None, sums: Sequence[Value]) -> list[Value]:
            own = load(x.at(i).to(self.vector), there)
            loaded = [load(row.at(i).to(self.vector), there) for row in rows]
            return [self.add_product(b, y, own, total) for y, total in zip(loaded, sums, strict=True)]

        return self.over(b, known, [b.constant(self.vector, 0.0)] * len(rows), add)

    @cached
    def by_columns(self) -> NativeFunction:
        """The function for a T whose columns lie side by side."""

        def solve(b: Builder, system: TriangularSystem, own: Unknowns) -> None:
            given = load(system.x.at(own.start).to(self.vector), own.there)
            found = self.find(b, system, own, self.square_of(b, own), given)
            factors = [-self.spread_one(b, found, n) for n in range(SQUARE)]

            def subtract(i: Value, there: Value | None, _: Sequence[Value]) -> list[Value]:
                place = system.x.at(i).to(self.vector)
                total = load(place, there)
                for factor, column in zip(factors, own.lines, strict=True):
                    total = self.add_product(b, factor, load(column.at(i).to(self.vector), there), total)
                store(place, total, there)
                return []

            self.over(b, own.unknown, [], subtract)

        return self.function_of("by_columns", solve)

    def function_of(self, name: str, solve: Callable[[Builder, TriangularSystem, Unknowns], None]) -> NativeFunction:
        """Return a function that finds unknowns block by block."""

        def body(b: Builder, *arguments: Value) -> None:
            t, apart, x, rows, backward, unit, failed = arguments
            system = TriangularSystem(t, apart, x, rows, backward.differs(0), unit.differs(0), failed)
            numbers, last = b.numbers(I32, range(SQUARE)), rows - 1
            with b.loop((rows + SQUARE - 1) // SQUARE) as blocks:
                turned = last // SQUARE - blocks.index
                start = b.select(system.backward, turned, blocks.index) * SQUARE
                stop = b.least(start + SQUARE, rows)
                lower, upper = (b.constant(I64, 0), start), (stop, rows)
                known, unknown = self.choose(b, system, upper, lower), self.choose(b, system, lower, upper)
                there = b.compare("slt", numbers, b.spread(b.convert("trunc", rows - start, I32), SQUARE))
                lines = [t.at(b.least(start + n, last) * apart) for n in range(SQUARE)]
                solve(b, system, Unknowns(start, there, lines, known, unknown))

        kinds = (self.address, I64, self.address, I64, I64, I64, Pointer(I8))
        return self.function(name, kinds, body, TriangularSystem._fields)

    def choose(self, b: Builder, system: TriangularSystem, backward: Range, forward: Range) -> Range:
        """Return one of two ranges, by the order in which unknowns are found."""
        first, last = (b.select(system.backward, x, y) for x, y in zip(backward, forward, strict=True))
        return first, last

    def square_of(self, b: Builder, own: Unknowns) -> list[Value]:
        """Return what lines of the triangle have for the unknowns themselves."""
        return [load(line.at(own.start).to(self.vector), own.there) for line in own.lines]

    def find(
        self, b: Builder, system: TriangularSystem, own: Unknowns, columns: Sequence[Value], given: Value
    ) -> Value:
        """Find unknowns by their own square, and store and return them."""
        one, diagonal = b.constant(self.vector, 1.0), columns[0]
        places = [b.numbers(BOOL, [i == n for i in range(SQUARE)]) for n in range(SQUARE)]
        for place, column in zip(places[1:], columns[1:], strict=True):
            diagonal = b.select(place, column, diagonal)
        scales = one / b.select(system.unit, one, b.select(own.there, diagonal, one))
        is_infinite = b.intrinsic("vector.reduce.or", BOOL, (scales - scales).differs(0), of=(vector_of(BOOL, SQUARE),))
        with b.when(is_infinite):
            system.failed.store(1)
            b.give()

        def one_by_one(order: Sequence[int]) -> list[Value]:
            rest, found = given, given
            for n in order:
                scaled = rest * scales
                found = b.select(places[n], scaled, found)
                rest = self.add_product(b, -self.spread_one(b, scaled, n), columns[n], rest)
            return [found]

        (found,) = b.either(system.backward, lambda: one_by_one(range(SQUARE)[::-1]), lambda: one_by_one(range(SQUARE)))
        system.x.at(own.start).to(self.vector).store_where(found, own.there)
        return found

    def spread_one(self, b: Builder, x: Value, place: int) -> Value:
        """Return a vector that has one number of another everywhere."""
        return b.shuffle(x, [place] * SQUARE)

    def over(
        self,
        b: Builder,
        unknowns: Range,
        carry: Sequence[Value],
        write: Callable[[Value, Value | None, Sequence[Value]], Sequence[Value]],
    ) -> list[Value]:
        """Write what is done with the vectors of some unknowns, and with a part of one; return what is carried."""
        first, last = unknowns
        whole = last - (last - first) % SQUARE
        with b.loop(whole, first, carry=carry, step=SQUARE) as cells:
            cells.next(*write(cells.index, None, cells.values))
        with b.loop(last, whole, carry=cells.results, step=SQUARE) as rest:
            count = b.spread(b.convert("trunc", last - rest.index, I32), SQUARE)
            rest.next(*write(rest.index, b.compare("slt", b.numbers(I32, range(SQUARE)), count), rest.values))
        return rest.results


def load(place: Value, there: Value | None) -> Value:
    """Return a vector, or those of its numbers that are there."""
    return place.load() if there is None else place.load_where(there)


def store(place: Value, found: Value, there: Value | None) -> None:
    """Store a vector, or those of its numbers that are there."""
    if there is None:
        place.store(found)
    else:
        place.store_where(found, there)
