"""Many small matrices at once: the kernels of `matrix_routines`, with one problem in each lane of a vector.

What is computed along rows there is computed in all lanes here, element by element. Operands are gathered from where
they lie, and results scattered; between them a matrix has its elements of all lanes side by side.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from wengert.emission.products.tiled_functions import SCALARS, TiledFunctions
from wengert.emission.routines.matrix_routines import SOLVERS, Matrix, Problem, Problems, kernel_of
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I64, Array, vector_of
from wengert.native.values import Value

LANES = "lanes"
"""What the names of these kernels begin with: "lanes.solve.float64"."""
WIDTH = 64
"""Bytes of their vectors, which processors without such take for several."""
AHEAD = 4
"""Elements of a row that are changed in one round."""


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
    """

    matrix: Matrix
    places: Value
    all: Value

    def at(self, i: Value, j: Value) -> Cells:
        """Return where an element lies."""
        return Cells(self.matrix.at(i, j), self.places, self.all)

    def transpose(self) -> ScatteredMatrix:
        """Return the transpose."""
        return self._replace(matrix=self.matrix.transpose())


class LaneFunctions(TiledFunctions):
    """Say how lanes of one dtype are computed."""

    def __init__(self, dtype: str, target: Target) -> None:
        super().__init__(dtype, target)
        self.lanes = lanes_of(dtype)
        self.vector = vector_of(self.scalar, self.lanes)


class LaneProblem(Problem):
    """Be several problems, one in each lane; where fewer are left the last one is solved in several."""

    def __init__(self, problems: Problems, functions: LaneFunctions, count: int, first: Value) -> None:
        self.functions, scalar, self.lanes = functions, functions.scalar, functions.lanes
        super().__init__(problems, scalar, [scalar] * count, problems.b.constant(I64, 0))
        b = self.b
        self.kind, self.numbers = vector_of(scalar, self.lanes), b.numbers(I64, range(self.lanes))
        index = b.least(self.index(first) + self.numbers, self.index(problems.last - 1))
        every = b.constant(vector_of(BOOL, self.lanes), 1)
        steps = [self.index(self.fields.get(f"step_{i}")) for i in range(count)]
        self.matrices = [ScatteredMatrix(x, index * step, every) for x, step in zip(self.matrices, steps, strict=True)]

    def index(self, value: Value) -> Value:
        """Return a whole number in all lanes."""
        return self.b.spread(value, self.lanes)

    def holds(self, condition: Value) -> Value:
        """Return whether a condition holds, in any lane if lanes have their own."""
        if condition.type is BOOL:
            return condition
        return self.b.intrinsic("vector.reduce.or", BOOL, condition, of=(condition.type,))

    def exchange(self, work: Matrix, k: Value, chosen: Value, width: Value) -> None:
        """Exchange a row with another in each lane, from the diagonal on."""
        b, first = self.b, work.first.to(self.scalar)
        every = b.constant(vector_of(BOOL, self.lanes), 1)
        rows = chosen * self.index(work.row * self.lanes) + self.numbers
        with b.loop(width, k) as cells:
            own, other = work.at(k, cells.index), first.at(cells.index * self.lanes)
            kept = own.load()
            own.store(other.gather(rows, every))
            other.scatter(kept, rows, every)

    def subtract(self, target: Value, source: Value, factor: Value, count: Value) -> None:
        """Subtract a multiple of some elements that lie side by side from others."""
        b, whole, less = self.b, count - count % AHEAD, -factor

        def change(index: Value) -> None:
            place = target.at(index)
            place.store(self.functions.add_product(b, less, source.at(index).load(), place.load()))

        with b.loop(whole, step=AHEAD) as cells:
            for ahead in range(AHEAD):
                change(cells.index + ahead)
        with b.loop(count, whole) as cells:
            change(cells.index)

    def eliminate(self, work: Matrix) -> Value:
        """Bring matrices with right sides beside them into triangular form; return the signs of exchanges of rows."""
        b, n, width = self.b, self.size, work.row
        with b.loop(n, carry=[self.number(1.0)], certain=True) as steps:
            k = steps.index
            with b.loop(n, k + 1, carry=[self.index(k), self.magnitude(work.at(k, k).load())]) as rows:
                index, most = rows.values
                size = self.magnitude(work.at(rows.index, k).load())
                larger = size > most
                rows.next(b.select(larger, self.index(rows.index), index), b.select(larger, size, most))
            chosen, size = rows.results
            self.fail_if(b.compare("ueq", size, 0))  # or NaN
            moved = chosen.differs(self.index(k))
            with b.when(self.holds(moved)):
                self.exchange(work, k, chosen, width)
            pivot = work.at(k, k)
            scale = self.inverse(pivot.load())
            with b.loop(n, k + 1) as rows:
                start = work.at(rows.index, k)
                self.subtract(start, pivot, start.load() * scale, width - k)
            steps.next(b.select(moved, -steps.values[0], steps.values[0]))
        return steps.results[0]

    def substitute(self, triangle: Any, x: Matrix, columns: Value, backward: Value, unit: Value) -> None:
        """Solve triangular systems in place, whose right sides lie row by row."""
        b, n = self.b, self.size

        def place(index: Value) -> Value:
            return b.select(backward, n - 1 - index, index)

        with b.loop(n, certain=True) as steps:
            k = place(steps.index)
            row = x.at(k, self.zero)
            scale = self.inverse(b.select(unit, self.number(1.0), triangle.at(k, k).load()))
            with b.loop(columns) as cells:
                cell = row.at(cells.index)
                cell.store(cell.load() * scale)
            with b.loop(n, steps.index + 1) as others:
                i = place(others.index)
                self.subtract(x.at(i, self.zero), row, triangle.at(i, k).load(), columns)

    def factorise(self, work: Matrix) -> None:
        """Put the U of A = U^T U in the places of A, of which the upper triangles are read, with zeros below them."""
        b, n = self.b, self.size
        with b.loop(n, certain=True) as steps:
            k = steps.index
            square = work.at(k, k).load()
            self.fail_if(b.compare("ule", square, 0))  # or NaN
            root = b.intrinsic("sqrt", self.kind, square)
            scale = self.inverse(root)
            work.at(k, k).store(root)
            with b.loop(k) as cells:
                work.at(k, cells.index).store(self.number(0.0))
            with b.loop(n, k + 1) as cells:
                cell = work.at(k, cells.index)
                cell.store(cell.load() * scale)
            with b.loop(n, k + 1) as rows:
                i = rows.index
                self.subtract(work.at(i, i), work.at(k, i), work.at(k, i).load(), n - i)

    def inverse(self, x: Value) -> Value:
        """Return the inverses of numbers; leave all to Python where one is infinite."""
        found = self.number(1.0) / x
        self.fail_if(self.magnitude(found).equals(self.number(math.inf)))
        return found

    def logarithm(self, x: Value) -> Value:
        """Return logarithms."""
        room = self.b.stack(Array(self.scalar, self.lanes))
        room.to(self.kind).store(x)
        with self.b.loop(self.lanes) as each:
            place = room.at(each.index)
            place.store(super().logarithm(place.load()))
        return room.to(self.kind).load()


def lanes_kernel(name: str, target: Target) -> NativeFunction:
    """Return the kernel of a name: "lanes.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    (solver, kinds), functions = SOLVERS[own], LaneFunctions(dtype, target)
    count = len(kinds)

    def solve_all(problems: Problems) -> None:
        with problems.b.loop(problems.last, problems.first, step=lanes_of(dtype)) as some:
            solver(LaneProblem(problems, functions, count, some.index))

    return kernel_of(name, count, solve_all)
