"""A matrix to be worked on by LAPACK, and what its routines need: copies, triangular solves, exchanges of rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from wengert.emission.routines.matrix_problems import ElementParts, Matrix, Problem, Problems
from wengert.native.functions import external
from wengert.native.lapack import PREFIX
from wengert.native.row_pool import move_bytes
from wengert.native.structs import (
    F32,
    F64,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    VectorType,
    size,
    vector_of,
)
from wengert.native.values import Value

LAPACK = "lapack"
"""What the names of these kernels begin with: "lapack.solve.complex128"."""

LETTERS = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
"""What the names of LAPACK's functions begin with, by the dtype of the elements."""


BLOCK = 48
"""Unknowns that a triangle tells at once; products do the others, since OpenBLAS's are three times as fast."""

PANEL = 64
"""Columns that LAPACK works on at once at most: of so many it needs room beside an inverse."""

ROOM = 1024
"""Elements of room for what is aligned in it."""


class LapackProblem(ElementParts, Problem):
    """Be a problem whose kernel calls LAPACK.

    Attributes:
        letter: of the dtype.
        info: where functions of LAPACK say that they failed.
        used: bytes of the room that have been given away.
        is_first: whether it is the first problem of a share.
    """

    def __init__(self, problems: Problems, dtype: str, kinds: str, index: Value) -> None:
        self.letter, self.is_complex = LETTERS[dtype], dtype.startswith("complex")
        self.scalar, self.parts = F32 if dtype in ("float32", "complex64") else F64, 1 + self.is_complex
        kind = vector_of(self.scalar, 2) if self.is_complex else self.scalar
        types = {"e": kind, "r": self.scalar, "i": I32}
        super().__init__(problems, kind, [types[x] for x in kinds], index)
        self.info, self.used = self.b.stack(I32), self.zero
        self.is_first = index.equals(problems.first)

    def room(self, kind: Float | VectorType | Integer, count: Value) -> Value:
        """Return the address of room for so many elements."""
        place = self.memory.at(self.used).to(kind)
        self.used = (self.used + count * width_of(kind) + 63) & -64
        return place

    def call(self, name: str, *arguments: str | int | Value) -> None:
        """Call a function, all of whose arguments are addresses: of letters, numbers and arrays."""
        places = list(map(self.as_pointer, arguments))
        self.b.do(external(f"{PREFIX}{self.letter}{name}", VOID, *(POINTER,) * len(places)), *places)

    def as_pointer(self, x: str | int | Value) -> Value:
        """Return the address of an argument."""
        if isinstance(x, str):
            return self.as_pointer(self.b.constant(I8, ord(x)))
        if isinstance(x, int):
            return self.as_pointer(self.b.constant(I32, x))
        if isinstance(x.type, Pointer):
            return x.as_address()
        x = self.b.convert("trunc", x, I32) if x.type is I64 else x
        place = self.b.stack(x.type)
        place.store(x)
        return place.as_address()

    def require_success(self) -> None:
        """Leave all to Python if a function of LAPACK says that it failed."""
        self.fail_if(self.info.load().differs(0))

    def letter_if(self, condition: Value, yes: str, no: str) -> Value:
        """Return one of two letters."""
        return self.b.select(condition, self.b.constant(I8, ord(yes)), ord(no))

    def number(self, value: float) -> Value:
        """Return a real number."""
        return self.b.constant(self.scalar, value)

    def element(self, value: float) -> Value:
        """Return the address of a real number as an element."""
        place = self.b.stack(Array(self.scalar, 2))
        self.put(place, [self.number(value), self.number(0.0)][: self.parts])
        return place

    def size_of(self, parts: Sequence[Value]) -> Value:
        """Return the sum of the absolute values of an element's parts: finite if they are, and 0 if they are."""
        first, *rest = [self.b.intrinsic("fabs", self.scalar, x) for x in parts]
        return first + rest[0] if rest else first

    def require_regular(self, parts: Sequence[Value]) -> None:
        """Leave all to Python if an element is zero, infinite or NaN."""
        size = self.size_of(parts)
        self.fail_if((size - size).differs(0) | size.equals(0))


def width_of(kind: Float | VectorType | Integer) -> int:
    """Return how many bytes an element has."""
    return size(kind) * (kind.count if isinstance(kind, VectorType) else 1)


def by_rows(matrix: Matrix) -> Value:
    """Return whether a matrix lies row by row, and not column by column too, as a single column does."""
    return matrix.row.differs(1)


def leading(p: LapackProblem, matrix: Matrix, least: Value) -> Value:
    """Return how far what Fortran takes for columns lie apart: not less than they are long."""
    found = p.b.select(by_rows(matrix), matrix.row, matrix.column)
    return p.b.select(found < least, least, found)


def fill(p: LapackProblem, target: Matrix, source: Matrix, columns: Value, rows: Value | None = None) -> None:
    """Copy a matrix of as many rows as the problem has, or others: at once, if both lie alike."""
    rows = p.size if rows is None else rows
    alike = target.row.equals(source.row) & target.column.equals(source.column)
    with p.b.when(alike) as otherwise:
        size = rows * columns * width_of(p.kind)
        p.b.do(move_bytes, target.first.as_address(), source.first.as_address(), size)
    with otherwise, p.b.loop(rows) as lines, p.b.loop(columns) as cells:
        target.at(lines.index, cells.index).store(source.at(lines.index, cells.index).load())


def square_like(p: LapackProblem, a: Matrix) -> Matrix:
    """Return a copy of a square matrix in the room, which lies as it does."""
    turned = by_rows(a)
    place = p.room(p.kind, p.size * p.size)
    found = Matrix(place, p.b.select(turned, p.size, p.one), p.b.select(turned, p.one, p.size))
    fill(p, found, a, p.size)
    return found


def conjugate(p: LapackProblem, x: Matrix, condition: Value) -> None:
    """Put the conjugates of elements in their places, if a condition holds."""
    if p.is_complex:
        with p.b.when(condition), p.b.loop(p.size) as rows, p.b.loop(p.columns) as cells:
            place = x.at(rows.index, cells.index).to(p.scalar).at(1)
            place.store(-place.load())


def solve_triangular(
    p: LapackProblem, t: Matrix, x: Matrix, lower: Value, unit: Value, transposed: Value, conjugated: Value
) -> None:
    """Solve op(T) X = B in place, where op transposes, conjugates, both or neither.

    Rows of X side by side are to BLAS columns of its transpose, which stands to the left of that of op(T).
    """
    b, turned, right = p.b, by_rows(t), by_rows(x)
    swapped = transposed.differs(turned.differs(right))
    bare = conjugated & swapped.equals(0)  # BLAS conjugates what it transposes, and nothing else
    how = p.letter_if(swapped, "T", "N")
    if p.is_complex:
        how = b.select(swapped & conjugated, b.constant(I8, ord("C")), how)
    which, diagonal = p.letter_if(lower.differs(turned), "L", "U"), p.letter_if(unit, "U", "N")
    conjugate(p, x, bare)
    with b.when(p.columns.equals(1)) as otherwise:
        p.call("trsv", which, how, diagonal, p.size, t.first, leading(p, t, p.size), x.first, 1)
    with otherwise, blocks(p, lower.differs(transposed)) as (start, stop, rest, count):
        n, one, side = stop - start, p.element(1.0), p.letter_if(right, "R", "L")
        step, apart = leading(p, t, p.size), leading(p, x, b.select(right, p.columns, p.size))
        high, wide = b.select(right, p.columns, n), b.select(right, n, p.columns)
        known, unknown = x.at(start, p.zero), x.at(rest, p.zero)
        p.call("trsm", side, which, how, diagonal, high, wide, one, t.at(start, start), step, known, apart)
        with b.when(count > 0):
            beside = b.select(transposed, t.at(start, rest), t.at(rest, start))
            letters = [b.select(x, b.constant(I8, ord("N")), how) for x in (right, right.equals(0))]
            sizes = (b.select(right, p.columns, count), b.select(right, count, p.columns), n)
            first = (b.select(right, known, beside), b.select(right, apart, step))
            second = (b.select(right, beside, known), b.select(right, step, apart))
            p.call("gemm", *letters, *sizes, p.element(-1.0), *first, *second, one, unknown, apart)
    conjugate(p, x, bare)


@contextmanager
def blocks(p: LapackProblem, forward: Value) -> Iterator[tuple[Value, Value, Value, Value]]:
    """Do what follows for some unknowns after the others, as a triangle on the diagonal tells them at once.

    Yields:
        the first of them, the one behind them, the first of those that are still to come, and how many these are.
    """
    b = p.b
    with b.loop(p.size, step=BLOCK) as steps:
        others = p.size - steps.index
        n = b.least(others, BLOCK)
        start = b.select(forward, steps.index, others - n)
        stop = start + n
        yield start, stop, b.select(forward, stop, p.zero), others - n


def exchange_rows(p: LapackProblem, x: Matrix, pivots: Value, backward: Value) -> None:
    """Exchange each row with another as elimination did, or undo that from the last to the first."""
    b = p.b
    with b.when(by_rows(x)) as otherwise, b.loop(p.size) as steps:
        k = b.select(backward, p.size - 1 - steps.index, steps.index)
        other = pivots.at(k).load().widen(I64) - 1
        with b.when(other.differs(k)):
            one, another = (x.at(row, p.zero).to(p.scalar) for row in (k, other))
            swap(p, one, another, p.columns * p.parts)
    with otherwise:
        step = b.select(backward, b.constant(I32, -1), 1)
        p.call("laswp", p.columns, x.first, leading(p, x, p.size), 1, p.size, pivots, step)


def pivots_of(p: LapackProblem, exchanges: Matrix) -> Value:
    """Return the numbers of rows that elimination exchanged each with, counted from 1, as Fortran does."""
    pivots = p.room(I32, p.size)
    with p.b.loop(p.size) as rows:
        other = exchanges.at(rows.index, p.zero).load()
        p.fail_if((other < 0) | (other.widen(I64) >= p.size))
        pivots.at(rows.index).store(other + 1)
    return pivots


def swap(p: LapackProblem, one: Value, other: Value, count: Value) -> None:
    """Exchange so many numbers that lie side by side."""
    kind = vector_of(p.scalar, 256 // p.scalar.bits)
    whole = count - count % kind.count

    def exchange(of: Float | VectorType, start: Value, stop: Value, step: int) -> None:
        with p.b.loop(stop, start, step=step) as cells:
            places = [x.at(cells.index).to(of) for x in (one, other)]
            first, second = [place.load() for place in places]
            places[0].store(second)
            places[1].store(first)

    exchange(kind, p.zero, whole, kind.count)
    exchange(p.scalar, whole, count, 1)


def require_conditioned(p: LapackProblem, routine: str, how: Value, square: Matrix, norm: Value) -> None:
    """Leave all to Python if a matrix of which factors are known is nearly singular, of which SciPy warns."""
    rcond = p.b.stack(p.scalar)
    work, more = p.room(p.kind, 4 * p.size), p.room(p.kind, 2 * p.size)
    p.call(routine, how, p.size, square.first, p.size, norm, rcond, work, more, p.info)
    p.require_success()
    p.fail_if(p.b.compare("ult", rcond.load(), 2.0**-50 if p.scalar is F64 else 2.0**-21))


def norm_of(p: LapackProblem, routine: str, *arguments: str | Value) -> Value:
    """Return a norm."""
    places = [p.as_pointer(x) for x in (*arguments, p.room(p.kind, p.size))]
    return p.b.call(external(f"{PREFIX}{p.letter}{routine}", p.scalar, *(POINTER,) * len(places)), *places)
