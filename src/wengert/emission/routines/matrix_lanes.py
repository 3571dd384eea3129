"""Many small matrices at once: the kernels of `matrix_routines`, with one problem in each lane of a vector.

What is computed along rows there is computed in all lanes here, element by element. Operands are transposed, or
gathered, from where they lie, and results put back so; between them the elements of all lanes lie side by side. Factors
that only such kernels read stay so: a copy of ten rows each takes as long as both substitutions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.emission.products.tiled_functions import SCALARS, transpose_square
from wengert.emission.routines.eliminations import SUMS, Eliminations
from wengert.emission.routines.matrix_problems import DenseProblem, Matrix, Problems
from wengert.emission.routines.matrix_routines import SOLVERS, Solver, kernel_of, substitute_factors
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I64, Array, Pointer, vector_of
from wengert.native.values import Value
from wengert.support.records import NamedTuple

LANES = "lanes"
"""What the names of these kernels begin with: "lanes.solve.float64"."""
WIDTH = 64
"""Bytes of their vectors, which processors without such take for several."""
SQUARE = 4
"""Columns that are transposed at once."""


def lanes_of(dtype: str) -> int:
    """Return how many problems are solved at once."""
    return WIDTH * 8 // SCALARS[dtype].bits


class Cells(NamedTuple):
    """Be an element of each of several matrices, wherever these lie.

    Attributes:
        first: the address of that of the first problem of all.
        places: how far from it the elements of each lane are.
        all: for which lanes these are read and written: for all.
    """

    first: Value
    places: Value
    all: Value

    def load(self) -> Value:
        """Return the elements."""
        return self.first.gather(self.places, self.all)

    def store(self, value: Value) -> None:
        """Store elements."""
        self.first.scatter(value, self.places, self.all)


class ScatteredMatrix(NamedTuple):
    """Be a matrix in each lane, wherever these lie.

    Attributes:
        matrix: that of the first problem of all.
        places: how far from it the first elements of each lane are.
        all: see `Cells`.
        starts: the same as places, lane by lane.
    """

    matrix: Matrix
    places: Value
    all: Value
    starts: Sequence[Value]

    def at(self, i: Value, j: Value) -> Cells:
        """Return where an element lies."""
        return Cells(self.matrix.at(i, j), self.places, self.all)

    def transpose(self) -> ScatteredMatrix:
        """Return the transpose."""
        return self._replace(matrix=self.matrix.transpose())


class LaneEliminations(Eliminations):
    """Write the functions of matrices of one dtype whose elements are vectors, with a number in each lane.

    Attributes:
        count: how many lanes there are.
    """

    prefix = "lanes.elimination."

    def __init__(self, dtype: str, target: Target) -> None:
        super().__init__(dtype, target)
        self.count, self.lanes = lanes_of(dtype), 1
        self.element = self.vector = vector_of(self.scalar, self.count)
        self.place, self.address = vector_of(I64, self.count), Pointer(self.vector)
        self.sums = SUMS if target.vector_bytes == WIDTH else SUMS // 2
        self.panels = (4, 2, 1) if target.vector_bytes == WIDTH else (2, 1)

    def spread(self, _b: Builder, x: Value) -> Value:
        """Return an element, which is a vector."""
        return x

    def holds(self, b: Builder, condition: Value) -> Value:
        """Return whether a condition holds, in any lane if lanes have their own."""
        if condition.type is BOOL:
            return condition
        return b.intrinsic("vector.reduce.or", BOOL, condition, of=(condition.type,))

    def are_behind(self, _b: Builder, column: Value, k: Value) -> Value:
        """Return whether a column is behind another."""
        return column > k

    def largest(self, b: Builder, column: Value, row: Value, first: Value, last: Value) -> Value:
        """Return in each lane the first row whose element of a column is the largest."""

        def size_of(i: Value) -> Value:
            return b.intrinsic("fabs", self.vector, column.at(i * row).load())

        with b.loop(last, first + 1, carry=[b.spread(first, self.count), size_of(first)]) as rows:
            (chosen, most), size = rows.values, size_of(rows.index)
            is_larger = size > most
            rows.next(b.select(is_larger, b.spread(rows.index, self.count), chosen), b.select(is_larger, size, most))
        return rows.results[0]

    def exchange_rows(self, b: Builder, x: Value, row: Value, k: Value, place: Value, width: Value) -> None:
        """Write what exchanges a row with another in each lane: to gather and scatter rows takes four times as long."""
        moved, numbers, step = place.load().differs(b.spread(k, self.count)), place.to(I64), row * self.count
        with b.when(self.holds(b, moved)), b.loop(self.count) as lanes:
            other, first = numbers.at(lanes.index).load(), x.to(self.scalar).at(lanes.index)
            with b.when(other.differs(k)), b.loop(width) as cells:
                places = [first.at(i * step).at(cells.index * self.count) for i in (k, other)]
                one, two = [place.load() for place in places]
                places[0].store(two)
                places[1].store(one)


class LaneProblem(DenseProblem):
    """Be several problems, one in each lane; where fewer are left the last one is solved in several."""

    def __init__(self, problems: Problems, functions: LaneEliminations, kinds: str, first: Value) -> None:
        b = problems.b
        super().__init__(problems, functions, kinds, b.constant(I64, 0))
        self.lanes = functions.count
        index = [b.least(first + n, problems.last - 1) for n in range(self.lanes)]
        places = b.least(self.index(first) + b.numbers(I64, range(self.lanes)), self.index(problems.last - 1))
        every = b.constant(vector_of(BOOL, self.lanes), 1)
        for i, (kind, matrix) in enumerate(zip(kinds, self.matrices, strict=True)):
            step = self.fields.get(f"step_{i}")
            if kind in TILES:
                own = functions.place if kind == "p" else functions.element
                tile = matrix.first.to(own).at(first // self.lanes * step)
                self.matrices[i] = matrix._replace(first=tile)
                continue
            starts = [n * step for n in index]
            self.matrices[i] = ScatteredMatrix(matrix, places * self.index(step), every, starts)

    def index(self, value: Value) -> Value:
        """Return a whole number in all lanes."""
        return self.b.spread(value, self.lanes)

    def holds(self, condition: Value) -> Value:
        """Return whether a condition holds, in any lane if lanes have their own."""
        return self.functions.holds(self.b, condition)

    def row_of(self, columns: Value) -> Value:
        """Return an odd distance: rows a power of two from each other would share few places in the cache."""
        return columns | 1

    def lay_down(self, triangle: ScatteredMatrix, right: ScatteredMatrix) -> tuple[Matrix, Matrix]:
        """Return copies of a triangle and of the right sides."""
        own, work = self.side_by_side(self.size, self.columns)
        self.copy(own, triangle, self.size)
        self.copy(work, right, self.columns)
        return own, work

    def exchange_at(self, exchanges: Any, k: Value, room: Value) -> Value:
        """Return where it stands with which row another is exchanged; of factors in place that is right."""
        return exchanges.at(k, self.zero) if isinstance(exchanges, Matrix) else super().exchange_at(exchanges, k, room)

    def copy(self, target: Any, source: Any, columns: Value) -> None:
        """Copy so many columns, by squares if the elements of rows, or of columns, lie side by side in every lane."""
        b, is_read = self.b, isinstance(source, ScatteredMatrix)
        scattered, own = (source, target) if is_read else (target, source)
        matrix = scattered.matrix
        with b.when(matrix.column.equals(1) & (columns >= SQUARE)) as otherwise:
            self.copy_squares(scattered, own, self.size, columns, is_read)
        with otherwise:
            with b.when(matrix.row.equals(1) & (self.size >= SQUARE)) as one_by_one:
                self.copy_squares(scattered.transpose(), own.transpose(), columns, self.size, is_read)
            with one_by_one:
                super().copy(target, source, columns)

    def copy_squares(self, scattered: ScatteredMatrix, own: Matrix, rows: Value, columns: Value, is_read: bool) -> None:
        """Copy rows, some columns at once, those before the last ones twice if there are not as many."""
        b, square = self.b, vector_of(self.scalar, SQUARE)
        with b.loop(rows) as lines, b.loop(columns, step=SQUARE) as cells:
            i, j = lines.index, b.least(cells.index, columns - SQUARE)
            first = scattered.matrix.at(i, j)
            outside = [first.at(start).to(square) for start in scattered.starts]
            inside = [own.at(i, j + n) for n in range(SQUARE)]
            if is_read:
                found = [transpose_square(b, [x.load() for x in some]) for some in in_squares(outside)]
                for place, *parts in zip(inside, *found, strict=True):
                    place.store(self.join(parts))
            else:
                own_parts = zip(*[self.split(place.load()) for place in inside], strict=True)
                for places, some in zip(in_squares(outside), own_parts, strict=True):
                    for place, x in zip(places, transpose_square(b, some), strict=True):
                        place.store(x)

    def join(self, parts: Sequence[Value]) -> Value:
        """Return vectors as one."""
        while len(parts) > 1:
            parts = [self.b.beside(x, y) for x, y in zip(parts[::2], parts[1::2], strict=True)]
        return parts[0]

    def split(self, x: Value) -> list[Value]:
        """Return the parts of a vector."""
        return [self.b.shuffle(x, range(n, n + SQUARE)) for n in range(0, self.lanes, SQUARE)]

    def logarithm(self, x: Value) -> Value:
        """Return logarithms."""
        room = self.b.stack(Array(self.scalar, self.lanes))
        room.to(self.kind).store(x)
        with self.b.loop(self.lanes) as each:
            place = room.at(each.index)
            place.store(super().logarithm(place.load()))
        return room.to(self.kind).load()


def factors_in_place(p: DenseProblem) -> None:
    """Compute the triangular factors of matrices, where these are left, and with which row each was exchanged."""
    a, packed, exchanges = p.matrices
    p.copy(packed, a, p.size)
    p.width = p.size
    p.decompose(packed, exchanges.first)


def solve_in_place(p: DenseProblem) -> None:
    """Solve A X = B, or A^T X = B, by factors that were left there."""
    packed, right, _, _ = p.matrices
    (work,) = p.side_by_side(p.columns)
    p.copy(work, right, p.columns)
    substitute_factors(p, packed, work)


TILED: dict[str, tuple[Solver, str]] = {
    "factors_in_place": (factors_in_place, "etp"),
    "solve_in_place": (solve_in_place, "tepe"),
}
"""Routines by factors whose elements of all lanes lie side by side; see `matrix_routines.SOLVERS`."""
TILES = "tp"
"""Those operands and results: factors, and with which row each was exchanged."""


def in_squares(places: Sequence[Value]) -> list[Sequence[Value]]:
    """Return as many at once as are transposed."""
    return [places[n : n + SQUARE] for n in range(0, len(places), SQUARE)]


def lanes_kernel(name: str, target: Target) -> NativeFunction:
    """Return the kernel of a name: "lanes.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    (solver, kinds), functions = (SOLVERS | TILED)[own], LaneEliminations(dtype, target)

    def solve_all(problems: Problems) -> None:
        with problems.b.loop(problems.last, problems.first, step=functions.count) as some:
            solver(LaneProblem(problems, functions, kinds, some.index))

    return kernel_of(name, len(kinds), solve_all, functions.count)
