"""Many small matrices at once: the kernels of `matrix_routines`, with one problem in each lane of a vector.

What is computed along rows there is computed in all lanes here, element by element. Operands are gathered from where
they lie, and results scattered; between them a matrix has its elements of all lanes side by side.
"""

from __future__ import annotations

from typing import NamedTuple

from wengert.emission.matrix_routines import SOLVERS, Matrix, Problem, Problems, kernel_of
from wengert.emission.tiled_functions import SCALARS
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I64, Array, vector_of
from wengert.native.values import Value

LANES = "lanes"
"""What the names of these kernels begin with: "lanes.solve.float64"."""
WIDTH = 64
"""Bytes of their vectors, which processors without such take for several."""


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

    def transposed(self) -> ScatteredMatrix:
        """Return the transpose."""
        return self._replace(matrix=self.matrix.transposed())


class LaneProblem(Problem):
    """Be several problems, one in each lane; where fewer are left the last one is solved in several."""

    def __init__(self, problems: Problems, dtype: str, count: int, first: Value) -> None:
        scalar, self.lanes = SCALARS[dtype], lanes_of(dtype)
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
        with self.b.loop(count) as cells:
            place = target.at(cells.index)
            place.store(place.load() - factor * source.at(cells.index).load())

    def logarithm(self, x: Value) -> Value:
        """Return logarithms."""
        room = self.b.stack(Array(self.scalar, self.lanes))
        room.to(self.kind).store(x)
        with self.b.loop(self.lanes) as each:
            place = room.at(each.index)
            place.store(super().logarithm(place.load()))
        return room.to(self.kind).load()


def lanes_kernel(name: str, _target: Target) -> NativeFunction:
    """Return the kernel of a name: "lanes.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    solver, count = SOLVERS[own]

    def solve_all(problems: Problems) -> None:
        with problems.b.loop(problems.last, problems.first, step=lanes_of(dtype)) as some:
            solver(LaneProblem(problems, dtype, count, some.index))

    return kernel_of(name, count, solve_all)
