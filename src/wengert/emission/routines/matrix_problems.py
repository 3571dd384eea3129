"""Small matrices as native code sees them: where their elements lie, and what may be asked of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.emission.routines.eliminations import Eliminations
from wengert.emission.routines.vector_substitution import VectorSubstitution
from wengert.native.builder import Builder
from wengert.native.functions import NativeFunction, external
from wengert.native.structs import F64, I8, I32, I64, POINTER, Float, Struct, VectorType
from wengert.native.values import Stored, Value
from wengert.support.records import NamedTuple

LOOK = 8
"""Numbers that are looked at at once."""

MOST = 4
"""Operands and results at most."""

MATRICES = Struct(
    "Matrices",
    count=I64,  # of problems
    size=I64,  # rows and columns of the matrix
    columns=I64,  # of the right side, or of the first result
    rows=I64,  # of the matrix, where it need not be square
    full=I64,  # whether singular vectors are wanted that belong to no value, too
    upper=I64,  # whether its upper triangle is read, where it is known to be symmetric
    work=I64,  # bytes from here to room for the elimination
    backward=I64,  # whether unknowns of a triangular system are found from the last to the first
    unit=I64,  # whether it has ones on its diagonal, whatever stands there
    finite=I64,  # whether operands must be finite
    conjugated=I64,  # whether the conjugate of the matrix is meant
    below=I64,  # bands below the diagonal, of a banded matrix
    above=I64,  # bands above it
    fronts=I64,  # how many there are, of a sparse matrix
    space=I64,  # elements of room for them
    length=I64,  # elements of their factors, or rows of right-hand sides
    parts=I64,  # how many shares of the problems there are, which threads work on
    room=I64,  # bytes of each share's room for the elimination
    **{f"{what}_{i}": I64 for i in range(MOST) for what in ("row", "column", "step")},
)
"""What stands at the beginning of the arena; of each operand and result how many elements it is from one row, column
and problem to the next."""


class Matrix(NamedTuple):
    """Be a matrix in memory.

    Attributes:
        first: the address of its first element.
        row: elements from one row to the next.
        column: from one column to the next.
    """

    first: Value
    row: Value
    column: Value

    def at(self, i: Value, j: Value) -> Value:
        """Return the address of an element."""
        return self.first.at(i * self.row + j * self.column)

    def after(self, columns: Value) -> Matrix:
        """Return the matrix that begins so many columns further."""
        return self._replace(first=self.first.at(columns * self.column))

    def transpose(self) -> Matrix:
        """Return the transpose."""
        return self._replace(row=self.column, column=self.row)


class ElementParts:
    """Read and write elements of matrices in memory, each of which is a real number, or the two that a complex one is.

    Attributes:
        scalar: the type of real numbers.
        parts: how many of them an element is.
    """

    scalar: Float
    parts: int

    def parts_of(self, place: Value) -> list[Value]:
        """Return the real numbers that an element is."""
        return [place.to(self.scalar).at(n).load() for n in range(self.parts)]

    def put(self, place: Value, parts: Sequence[Value]) -> None:
        """Store an element."""
        for n, x in enumerate(parts):
            place.to(self.scalar).at(n).store(x)


def element_product(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    """Return the product of two elements."""
    if len(x) == 1:
        return [x[0] * y[0]]
    return [x[0] * y[0] - x[1] * y[1], x[0] * y[1] + x[1] * y[0]]


class Problems:
    """Be a share of the problems that a kernel solves.

    Attributes:
        b: writes the function.
        fields: MATRICES.
        work: the address of the room for the elimination.
        first, last: the first problem, and the one behind the last; a multiple of those that are solved together.
    """

    def __init__(self, b: Builder, table: Value, part: Value, together: int) -> None:
        self.b, self.addresses, self.fields = b, table.load().to(POINTER), table.at(1).load().to(MATRICES)
        fields = self.fields
        self.work = fields.to(I8).at(fields.get("work") + part * fields.get("room"))
        count, parts = fields.get("count"), fields.get("parts")
        groups = (count + together - 1) // together
        self.first = groups * part // parts * together
        self.last = b.least(groups * (part + 1) // parts * together, count)

    def matrices(self, kinds: Sequence[Stored], index: Value) -> list[Matrix]:
        """Return operands and results of a problem, whose elements are of these types."""
        return [
            Matrix(
                self.addresses.at(i).load().to(kind).at(index * self.fields.get(f"step_{i}")),
                self.fields.get(f"row_{i}"),
                self.fields.get(f"column_{i}"),
            )
            for i, kind in enumerate(kinds)
        ]


class Problem:
    """Be one of the problems that a kernel solves.

    Attributes:
        b: writes the function.
        kind: of the elements.
        fields: MATRICES.
        matrices: operands, then results.
        size: the rows and columns of the matrix.
        columns: those of the right side.
        width: how many columns stand side by side in the room for the elimination.
        zero, one: these numbers.
        yes, no: truth values.
        parts: real numbers that an element is.
    """

    parts: int = 1

    width: Value

    def __init__(self, problems: Problems, kind: Float | VectorType, kinds: Sequence[Stored], index: Value) -> None:
        self.b, self.kind, self.fields, self.memory = problems.b, kind, problems.fields, problems.work
        self.scalar: Float = kind.element if isinstance(kind, VectorType) else kind  # type: ignore[assignment]  # of numbers
        self.matrices: list[Any] = problems.matrices(kinds, index)
        self.failed = problems.addresses.at(len(kinds)).load().to(I8)
        self.size, self.columns = self.fields.get("size"), self.fields.get("columns")
        self.zero, self.one = self.b.constant(I64, 0), self.b.constant(I64, 1)
        self.yes, self.no = self.one.differs(0), self.one.equals(0)

    def fail_if(self, condition: Value) -> None:
        """Leave all to Python if a condition holds."""
        with self.b.when(self.holds(condition)):
            self.failed.store(1)
            self.b.give()

    def holds(self, condition: Value) -> Value:
        """Return whether a condition holds."""
        return condition

    def index(self, value: Value) -> Value:
        """Return a whole number, as what tells rows apart."""
        return value

    def parts_of(self, place: Value) -> list[Value]:
        """Return the real numbers that an element is."""
        return [place.load()]

    def number(self, value: float) -> Value:
        """Return a number as an element."""
        return self.b.constant(self.kind, value)

    def magnitude(self, x: Value) -> Value:
        """Return an absolute value."""
        return self.b.intrinsic("fabs", self.kind, x)

    def logarithm(self, x: Value) -> Value:
        """Return a logarithm."""
        return self.b.call(external("log" if self.scalar is F64 else "logf", self.scalar, self.scalar), x)

    # What differs where there is a problem in each lane

    def columns_of(self, count: Value) -> Value:
        """Return how many columns there must be room for."""
        return count

    def row_of(self, columns: Value) -> Value:
        """Return how far rows of so many columns are from each other."""
        return columns

    def side_by_side(self, *counts: Value) -> list[Matrix]:
        """Return matrices of so many columns beside each other, in the room for the elimination."""
        starts = [self.zero]
        for count in counts:
            starts.append(starts[-1] + self.columns_of(count))
        self.width = starts[-1]
        work = Matrix(self.memory.to(self.kind), self.row_of(self.width), self.one)
        return [work.after(start) for start in starts[:-1]]

    def copy(self, target: Matrix, source: Matrix, columns: Value) -> None:
        """Copy so many columns."""
        with self.b.loop(self.size) as rows, self.b.loop(columns) as cells:
            target.at(rows.index, cells.index).store(source.at(rows.index, cells.index).load())


class DenseProblem(Problem):
    """Be a problem of full matrices, which functions compute.

    Attributes:
        functions: what eliminates and substitutes.
    """

    def __init__(self, problems: Problems, functions: Eliminations, kinds: str, index: Value) -> None:
        stored = [I32 if x == "i" else functions.scalar for x in kinds]
        super().__init__(problems, functions.element, stored, index)
        self.functions = functions

    def columns_of(self, count: Value) -> Value:
        """Return how many columns whole vectors have."""
        return (count + self.functions.lanes - 1) & -self.functions.lanes

    def lay_down(self, triangle: Any, right: Any) -> tuple[Any, Matrix]:
        """Return a triangle where it can be read, and a copy of the right sides."""
        raise NotImplementedError

    def decompose(self, work: Matrix, pivots: Value) -> None:
        """Bring a matrix with right sides beside it into triangular form."""
        n = self.size
        self.b.do(self.functions.decompose, work.first, work.row, n, n, self.width, pivots, self.failed)
        self.give_if_failed()

    def eliminate(self, work: Matrix) -> Value:
        """Bring a matrix with right sides beside it into triangular form; return the sign of the exchange of rows."""
        b, n, pivots = self.b, self.size, self.exchanges(work)
        self.decompose(work, pivots)
        with b.loop(n, carry=[self.number(1.0)], certain=True) as steps:
            sign = steps.values[0]
            steps.next(b.select(pivots.at(steps.index).load().differs(self.index(steps.index)), -sign, sign))
        return steps.results[0]

    def exchanges(self, work: Matrix) -> Value:
        """Return where elimination notes with which row it exchanged each."""
        return work.first.at(self.size * work.row).to(self.functions.place)

    def exchange_at(self, exchanges: Any, k: Value, room: Value) -> Value:
        """Return where it stands with which row another is exchanged, for which there is room."""
        other = self.b.convert("sext", exchanges.at(k, self.zero).load(), I64)
        self.fail_if((other < 0) | (other >= self.index(self.size)))
        room.store(other)
        return room

    def exchange_rows(self, work: Matrix, exchanges: Matrix, backward: Value) -> None:
        """Exchange each row with another as elimination did, or undo that from the last to the first."""
        b, room = self.b, self.b.stack(self.functions.place)
        with b.loop(self.size) as steps:
            k = b.select(backward, self.size - 1 - steps.index, steps.index)
            place = self.exchange_at(exchanges, k, room)
            self.functions.exchange_rows(b, work.first, work.row, k, place, self.columns_of(self.columns))

    def substitute(self, triangle: Matrix, x: Matrix, columns: Value, backward: Value, unit: Value) -> None:
        """Solve a triangular system in place, whose right sides lie row by row."""
        b, last = self.b, self.size - 1

        def first_row(matrix: Matrix, apart: Value) -> Value:
            return b.select(backward, matrix.first.at(last * apart), matrix.first)

        t = first_row(triangle, triangle.row + triangle.column)
        steps = [b.select(backward, -step, step) for step in (triangle.row, triangle.column, x.row)]
        ones = b.select(unit, self.one, self.zero)
        arguments = (*steps[:2], first_row(x, x.row), steps[2], self.size, self.columns_of(columns), ones)
        b.do(self.functions.substitute, t, *arguments)

    def factorise(self, work: Matrix) -> None:
        """Put the U of A = U^T U in the place of A, of which the upper triangle is read, with zeros below it."""
        b, lanes = self.b, self.functions.lanes
        b.do(self.functions.cholesky, work.first, work.row, self.size, self.failed)
        self.give_if_failed()
        with b.loop(self.size) as rows, b.loop(rows.index, step=lanes) as cells:
            place = work.at(rows.index, cells.index).to(self.functions.vector)
            is_kept = self.functions.are_behind(b, cells.index, rows.index - 1)
            place.store(b.select(is_kept, place.load(), self.b.constant(self.functions.vector, 0.0)))

    def give_if_failed(self) -> None:
        """Leave all to Python if a function said that it failed."""
        with self.b.when(self.failed.load().differs(0)):
            self.b.give()


class RowProblem(DenseProblem):
    """Be a problem whose rows are computed by vectors; a single right side of factors is a vector itself."""

    def __init__(self, problems: Problems, functions: Eliminations, kinds: str, index: Value) -> None:
        super().__init__(problems, functions, kinds, index)
        self.vectors = VectorSubstitution(functions.dtype, functions.target)

    def side_by_side(self, *counts: Value) -> list[Matrix]:
        """Return such matrices, with zeros in the last vectors: leftovers there may be numbers that are slow."""
        b, lanes, found = self.b, self.functions.lanes, super().side_by_side(*counts)
        for matrix, count in zip(found, counts, strict=True):
            with b.when(count > 0), b.loop(self.size) as rows:
                place = matrix.at(rows.index, self.columns_of(count) - lanes).to(self.functions.vector)
                place.store(b.constant(self.functions.vector, 0.0))
        return found

    def copy(self, target: Matrix, source: Matrix, columns: Value) -> None:
        """Copy so many columns; by vectors, if lines of the target lie side by side."""
        b, turned = self.b, target.column.differs(1) | target.row.equals(1)

        def choose(x: Value, y: Value) -> Value:
            return b.select(turned, x, y)

        with b.when(choose(target.row, target.column).equals(1)) as otherwise:
            along, across = choose(source.column, source.row), choose(source.row, source.column)
            sizes = choose(self.size, columns), choose(target.column, target.row), choose(columns, self.size)
            b.do(self.functions.pack, source.first, along, across, *sizes, target.first)
        with otherwise:
            super().copy(target, source, columns)

    def lay_down(self, triangle: Matrix, right: Matrix) -> tuple[Matrix, Matrix]:
        """Return the triangle, which is read where it is, and a copy of the right sides: a vector, if it may be."""
        b = self.b
        is_vector = self.columns.equals(1) & (triangle.row.equals(1) | triangle.column.equals(1))
        with b.when(is_vector.equals(0)):
            self.side_by_side(self.columns)
        row = b.select(is_vector, self.one, self.row_of(self.columns_of(self.columns)))
        work = Matrix(self.memory.to(self.kind), row, self.one)
        self.copy(work, right, self.columns)
        return triangle, work

    def exchange_rows(self, work: Matrix, exchanges: Matrix, backward: Value) -> None:
        """Exchange each row, or number of a vector, with another."""
        b, room = self.b, self.b.stack(self.functions.place)
        with b.when(work.row.equals(1)) as otherwise, b.loop(self.size) as steps:
            k = b.select(backward, self.size - 1 - steps.index, steps.index)
            places = work.first.at(k), work.first.at(self.exchange_at(exchanges, k, room).load())
            one, other = [place.load() for place in places]
            places[0].store(other)
            places[1].store(one)
        with otherwise:
            super().exchange_rows(work, exchanges, backward)

    def substitute(self, triangle: Matrix, x: Matrix, columns: Value, backward: Value, unit: Value) -> None:
        """Solve a triangular system in place, whose right sides lie row by row, or are a vector."""
        flags = [self.b.select(flag, self.one, self.zero) for flag in (backward, unit)]

        def solve(function: NativeFunction, apart: Value) -> None:
            self.b.do(function, triangle.first, apart, x.first, self.size, *flags, self.failed)
            self.give_if_failed()

        with self.b.when(x.row.equals(1)) as otherwise:
            with self.b.when(triangle.column.equals(1)) as by_columns:
                solve(self.vectors.by_rows, triangle.row)
            with by_columns:
                solve(self.vectors.by_columns, triangle.column)
        with otherwise:
            super().substitute(triangle, x, columns, backward, unit)
