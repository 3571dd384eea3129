"""Larger matrices, and complex ones: kernels that call LAPACK and BLAS at their addresses.

They do what those of `matrix_routines` do, and are told the same. Fortran's matrices lie column by column; one that
lies row by row is to them its transpose, of which factors and solutions are as good, so that nothing is copied into
another order but where an operand and the result that takes its place lie in different ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np

from wengert.emission.routines.matrix_routines import (
    ElementParts,
    Matrix,
    Problem,
    Problems,
    element_product,
    kernel_of_each,
    require_finite,
)
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction, external
from wengert.native.lapack import PREFIX, THREADS, are_offered
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
NEEDED = (
    *("getrf", "getri", "gecon", "lange", "potrf", "pocon", "laswp", "trsm", "trsv", "gemm"),
    *("gesdd", "geqrf", "geev"),
)
SYMMETRIC, HERMITIAN = ("syevd", "orgqr"), ("heevd", "ungqr")
"""Functions that kernels call, and what only real or only complex numbers have."""
SPECTRAL = ("eigh", "eigvalsh", "svd", "svdvals", "qr", "eig", "eigvals")
"""Routines that compute spectra or orthogonal factors, of matrices that need not be square."""
DOUBLE = ("float64", "complex128")
"""The dtypes that NumPy computes these in, whatever the matrices are: in others vectors have other signs."""
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
    """

    def __init__(self, problems: Problems, dtype: str, kinds: str, index: Value) -> None:
        self.letter, self.is_complex = LETTERS[dtype], dtype.startswith("complex")
        self.scalar, self.parts = F32 if dtype in ("float32", "complex64") else F64, 1 + self.is_complex
        kind = vector_of(self.scalar, 2) if self.is_complex else self.scalar
        types = {"e": kind, "r": self.scalar, "i": I32}
        super().__init__(problems, kind, [types[x] for x in kinds], index)
        self.info, self.used = self.b.stack(I32), self.zero

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


Solver = Callable[[LapackProblem], None]


# Parts


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


def decompose(p: LapackProblem, square: Matrix, conditioned: bool = False) -> Value:
    """Bring a matrix into triangular factors in its place; return which rows, or columns where it lies so, changed.

    With the condition, one that is nearly singular, or whose condition is NaN, is left to Python.
    """
    pivots = p.room(I32, p.size)
    how = p.letter_if(by_rows(square), "I", "1")  # of the transpose the other norm
    norm = norm_of(p, "lange", how, p.size, p.size, square.first, p.size) if conditioned else None
    p.call("getrf", p.size, p.size, square.first, p.size, pivots, p.info)
    p.require_success()
    with p.b.loop(p.size) as rows:
        p.require_regular(p.parts_of(square.at(rows.index, rows.index)))
    if norm is not None:
        require_conditioned(p, "gecon", how, square, norm)
    return pivots


def factorise(p: LapackProblem, square: Matrix, which: Value) -> None:
    """Compute Cholesky's factor of a lower triangle, which is that of a letter to Fortran, in its place."""
    p.call("potrf", which, p.size, square.first, p.size, p.info)
    p.require_success()
    with p.b.loop(p.size) as rows:
        p.require_regular(p.parts_of(square.at(rows.index, rows.index)))


def solve_with_factor(p: LapackProblem, factor: Matrix, x: Matrix) -> None:
    """Solve L L^H X = B in place, for a factor or the conjugate of one."""
    conjugated = p.fields.get("conjugated").differs(0)
    solve_triangular(p, factor, x, p.yes, p.no, p.no, conjugated)
    solve_triangular(p, factor, x, p.yes, p.no, p.yes, conjugated.equals(0))


def put_right_side(p: LapackProblem) -> None:
    """Put down the right side where the solution is to be; operands must be finite, if that is said."""
    a, right, *_, x = p.matrices
    require_finite(p, a, p.size)
    require_finite(p, right, p.columns)
    fill(p, x, right, p.columns)


# Solvers


def solve(p: LapackProblem, conditioned: bool = False) -> None:
    """Solve A X = B: P L U X = B, or U^T L^T P^T X = B where A lies row by row."""
    a, _, x = p.matrices
    put_right_side(p)
    square = square_like(p, a)
    pivots, turned = decompose(p, square, conditioned), by_rows(a)
    straight = turned.equals(0)
    with p.b.when(straight):
        exchange_rows(p, x, pivots, p.no)
    solve_triangular(p, square, x, p.yes, straight, p.no, p.no)
    solve_triangular(p, square, x, p.no, turned, p.no, p.no)
    with p.b.when(turned):
        exchange_rows(p, x, pivots, p.yes)


def solve_positive(p: LapackProblem) -> None:
    """Solve A X = B for a positive definite A by Cholesky's factor of its lower triangle."""
    a, _, x = p.matrices
    put_right_side(p)
    square, which = square_like(p, a), p.letter_if(by_rows(a), "U", "L")
    norm = norm_of(p, "lanhe" if p.is_complex else "lansy", "1", which, p.size, square.first, p.size)
    factorise(p, square, which)
    require_conditioned(p, "pocon", which, square, norm)
    solve_with_factor(p, square, x)


def invert(p: LapackProblem, conditioned: bool = False) -> None:
    """Compute A^-1; where it lies row by row, its transpose is the inverse of the transpose."""
    a, x = p.matrices
    require_finite(p, a, p.size)
    fill(p, x, a, p.size)
    pivots, room = decompose(p, x, conditioned), p.size * PANEL
    p.call("getri", p.size, x.first, p.size, pivots, p.room(p.kind, room), room, p.info)
    p.require_success()


def substitute_both(p: LapackProblem, times: int) -> None:
    """Solve a triangular system, and then perhaps that with its adjoint."""
    triangle, _, x = p.matrices
    put_right_side(p)
    backward, unit = p.fields.get("backward").differs(0), p.fields.get("unit").differs(0)
    with p.b.when(unit.equals(0)), p.b.loop(p.size) as rows:
        p.fail_if(p.size_of(p.parts_of(triangle.at(rows.index, rows.index))).equals(0))
    if times == 2:
        solve_with_factor(p, triangle, x)
    else:
        conjugated = p.fields.get("conjugated").differs(0)
        solve_triangular(p, triangle, x, backward.equals(0), unit, p.no, conjugated)


def factor(p: LapackProblem) -> None:
    """Compute Cholesky's factor, with zeros above it."""
    a, x = p.matrices
    require_finite(p, a, p.size)
    fill(p, x, a, p.size)
    factorise(p, x, p.letter_if(by_rows(x), "U", "L"))
    with p.b.loop(p.size) as rows, p.b.loop(p.size, rows.index + 1) as cells:
        p.put(x.at(rows.index, cells.index), [p.number(0.0)] * p.parts)


def triangular_factors(p: LapackProblem) -> None:
    """Compute both triangular factors in one matrix, and with which row each was exchanged."""
    a, packed, exchanges = p.matrices
    require_finite(p, a, p.size)
    square = by_columns(p, p.size, p.size, a)
    pivots = decompose(p, square)
    fill(p, packed, square, p.size)
    with p.b.loop(p.size) as rows:
        exchanges.at(rows.index, p.zero).store(pivots.at(rows.index).load() - 1)


def solve_by_factors(p: LapackProblem) -> None:
    """Solve op(A) X = B by both triangular factors of A in one matrix, where op transposes, or conjugates, too."""
    b, (packed, _, exchanges, x) = p.b, p.matrices
    put_right_side(p)
    pivots = pivots_of(p, exchanges)
    with b.loop(p.size) as rows:
        p.require_regular(p.parts_of(packed.at(rows.index, rows.index)))
    transposed, conjugated = p.fields.get("backward").differs(0), p.fields.get("conjugated").differs(0)
    straight = transposed.equals(0)
    with b.when(straight):
        exchange_rows(p, x, pivots, p.no)
    solve_triangular(p, packed, x, straight, straight, transposed, conjugated)
    solve_triangular(p, packed, x, transposed, transposed, transposed, conjugated)
    with b.when(transposed):
        exchange_rows(p, x, pivots, p.yes)


def exchange_all(p: LapackProblem) -> None:
    """Exchange the rows of a matrix as elimination did, or undo that."""
    x, exchanges, found = p.matrices
    p.size = p.fields.get("rows")
    fill(p, found, x, p.columns)
    exchange_rows(p, found, pivots_of(p, exchanges), p.fields.get("backward").differs(0))


def triangular_form(p: LapackProblem) -> tuple[Matrix, Value]:
    """Return the factors of a matrix, and a number whose sign tells how many exchanges it took."""
    a = p.matrices[0]
    require_finite(p, a, p.size)
    square = square_like(p, a)
    pivots = decompose(p, square)
    with p.b.loop(p.size, carry=[p.number(1.0)], certain=True) as rows:
        moved, sign = pivots.at(rows.index).load().widen(I64).differs(rows.index + 1), rows.values[0]
        rows.next(p.b.select(moved, -sign, sign))
    return square, rows.results[0]


def product(p: LapackProblem, start: Value, factor: Callable[[Value], Sequence[Value]]) -> list[Value]:
    """Return a real number times an element for each row."""
    with p.b.loop(p.size, carry=[start, p.number(0.0)][: p.parts], certain=True) as rows:
        rows.next(*element_product(rows.values, factor(rows.index)))
    return rows.results


def determinant(p: LapackProblem) -> None:
    """Compute det A; Python does so where it is too small or too large for a product."""
    square, sign = triangular_form(p)
    found = product(p, sign, lambda index: p.parts_of(square.at(index, index)))
    p.require_regular(found)
    p.put(p.matrices[1].first, found)


def logarithm(p: LapackProblem) -> None:
    """Compute what det A is divided by its absolute value, and the logarithm of that."""
    b = p.b
    square, start = triangular_form(p)
    log, hypot = (external(name if p.scalar is F64 else f"{name}f", p.scalar, *(p.scalar,) * n) for name, n in LIBRARY)

    def absolute(parts: Sequence[Value]) -> Value:
        return b.call(hypot, *parts) if p.is_complex else b.intrinsic("fabs", p.scalar, parts[0])

    def phase(index: Value) -> list[Value]:
        parts = p.parts_of(square.at(index, index))
        return [x / absolute(parts) for x in parts]

    sign = product(p, start, phase)
    with b.loop(p.size, carry=[p.number(0.0)], certain=True) as rows:
        rows.next(rows.values[0] + b.call(log, absolute(p.parts_of(square.at(rows.index, rows.index)))))
    p.put(p.matrices[1].first, sign)
    p.matrices[2].first.store(rows.results[0])


# Orthogonal factors and spectra, of copies that lie column by column, as NumPy makes them: signs of vectors are its own


def by_columns(p: LapackProblem, rows: Value, columns: Value, source: Matrix | None = None) -> Matrix:
    """Return room for a matrix that lies column by column, and the copy of another one, if that is given."""
    found = Matrix(p.room(p.kind, rows * columns), p.one, rows)
    if source is not None:
        fill(p, found, source, columns, rows)
    return found


def call_with_work(
    p: LapackProblem, name: str, *arguments: str | int | Value, behind: Sequence[int | Value] = ()
) -> None:
    """Call a function with as much memory to work in as it says it needs; leave all to Python where that is not there.

    Args:
        p: the problem.
        name: of the function.
        arguments: those in front of that memory and its size.
        behind: those between these and what tells that it failed.
    """
    b = p.b
    wanted = p.element(0.0)
    p.call(name, *arguments, wanted, -1, *behind, p.info)
    p.require_success()
    size = b.convert("fptosi", wanted.load(), I64)
    p.fail_if(p.fields.get("room") < p.used + size * width_of(p.kind))
    p.call(name, *arguments, p.memory.at(p.used), size, *behind, p.info)
    p.require_success()


def require_numbers(p: LapackProblem, values: Value, count: Value) -> None:
    """Leave all to Python if real numbers are not finite."""
    with p.b.loop(count) as each:
        x = values.at(each.index).load()
        p.fail_if((x - x).differs(0))


def give_values(p: LapackProblem, target: Matrix, values: Value, count: Value) -> None:
    """Put down real numbers, which must be finite."""
    require_numbers(p, values, count)
    with p.b.loop(count) as each:
        target.at(each.index, p.zero).store(values.at(each.index).load())


def symmetric(p: LapackProblem) -> None:
    """Compute the eigenvalues of a symmetric or Hermitian matrix, and if there are two results their vectors."""
    a, w, *vectors = p.matrices
    n, job = p.size, "V" if vectors else "N"
    square, values = by_columns(p, n, n, a), p.room(p.scalar, n)
    which = p.letter_if(p.fields.get("upper").differs(0), "U", "L")
    whole, count = p.room(I32, 8 * n), n * 5 + 3
    behind: list[int | Value] = [whole, count]
    if p.is_complex:
        size = n * n * 2 + n * 5 + 1 if vectors else n
        behind = [p.room(p.scalar, size), size, *behind]
    call_with_work(p, "heevd" if p.is_complex else "syevd", job, which, n, square.first, n, values, behind=behind)
    give_values(p, w, values, n)
    for v in vectors:
        fill(p, v, square, n)


def singular(p: LapackProblem) -> None:
    """Compute singular values, and if there are three results the vectors around them."""
    a, *found = p.matrices
    m, n = p.fields.get("rows"), p.size
    k = p.b.least(m, n)
    full = p.fields.get("full").differs(0)
    high, wide = p.b.select(full, m, k), p.b.select(full, n, k)
    matrix, values, whole = by_columns(p, m, n, a), p.room(p.scalar, k), p.room(I32, k * 8)
    behind: list[int | Value] = [whole]
    if p.is_complex:
        longest = p.b.select(m < n, n, m)
        behind = [p.room(p.scalar, longest * k * 2 + k * k * 5 + k * 7), *behind]
    if len(found) == 1:
        none = (p.element(0.0), p.one)
        call_with_work(p, "gesdd", "N", m, n, matrix.first, m, values, *none, *none, behind=behind)
        give_values(p, found[0], values, k)
        return
    u, vh = by_columns(p, m, high), by_columns(p, wide, n)
    job, sides = p.letter_if(full, "A", "S"), (u.first, m, vh.first, wide)
    call_with_work(p, "gesdd", job, m, n, matrix.first, m, values, *sides, behind=behind)
    give_values(p, found[1], values, k)
    fill(p, found[0], u, high, m)
    fill(p, found[2], vh, n, wide)


def orthogonal(p: LapackProblem) -> None:
    """Compute A = Q R with as many columns of Q as A has, or rows if these are fewer."""
    a, q, r = p.matrices
    m, n, k = p.fields.get("rows"), p.size, p.columns
    matrix, scales = by_columns(p, m, n, a), p.room(p.kind, k)
    call_with_work(p, "geqrf", m, n, matrix.first, m, scales)
    with p.b.loop(k) as rows, p.b.loop(n) as cells:
        is_below, place = cells.index < rows.index, r.at(rows.index, cells.index)
        x = p.parts_of(matrix.at(rows.index, cells.index))
        p.put(place, [p.b.select(is_below, p.number(0.0), part) for part in x])
    call_with_work(p, "ungqr" if p.is_complex else "orgqr", m, k, k, matrix.first, m, scales)
    fill(p, q, matrix, k, m)


UNSCALED = 1e-130, 1e130
"""Between what sums of absolute values `zgeev` scales no matrix: SciPy's does not scale eigenvalues back."""


def require_unscaled(p: LapackProblem, matrix: Matrix) -> None:
    """Leave all to Python if a matrix is not finite, or so small or large that `zgeev` scales it."""
    with p.b.loop(p.size, carry=[p.number(0.0)]) as rows:
        with p.b.loop(p.size, carry=rows.values) as cells:
            cells.next(cells.values[0] + p.size_of(p.parts_of(matrix.at(rows.index, cells.index))))
        rows.next(*cells.results)
    total, (least, most) = rows.results[0], UNSCALED
    p.fail_if((total - total).differs(0) | (total < least) & total.differs(0) | (total > most))


def general(p: LapackProblem) -> None:
    """Compute the eigenvalues of a complex matrix, and if there are two results their vectors."""
    a, w, *vectors = p.matrices
    require_unscaled(p, a)
    n, job, none = p.size, "V" if vectors else "N", (p.element(0.0), p.one)
    square, values = by_columns(p, n, n, a), by_columns(p, n, p.one)
    found = by_columns(p, n, n) if vectors else None
    right = none if found is None else (found.first, n)
    work = p.room(p.scalar, n * 2)
    call_with_work(p, "geev", "N", job, n, square.first, n, values.first, *none, *right, behind=[work])
    fill(p, w, values, p.one)
    if found is not None:
        fill(p, vectors[0], found, n)


LIBRARY = ("log", 1), ("hypot", 2)
"""Functions of the C library, and how many arguments they have."""

SOLVERS: dict[str, tuple[Solver, str]] = {
    "solve": (solve, "eee"),
    "solve_conditioned": (partial(solve, conditioned=True), "eee"),
    "solve_positive": (solve_positive, "eee"),
    "inv": (invert, "ee"),
    "inv_conditioned": (partial(invert, conditioned=True), "ee"),
    "det": (determinant, "ee"),
    "slogdet": (logarithm, "eer"),
    "solve_triangular": (partial(substitute_both, times=1), "eee"),
    "cho_solve": (partial(substitute_both, times=2), "eee"),
    "cholesky": (factor, "ee"),
    "lu_factor": (triangular_factors, "eei"),
    "lu_solve": (solve_by_factors, "eeie"),
    "exchange_rows": (exchange_all, "eie"),
    "eigh": (symmetric, "ere"),
    "eigvalsh": (symmetric, "er"),
    "svd": (singular, "eere"),
    "svdvals": (singular, "er"),
    "qr": (orthogonal, "eee"),
    "eig": (general, "eee"),
    "eigvals": (general, "ee"),
}
"""What computes each routine; of its operands and results whether they have the elements, or real numbers, or rows'."""


def is_available(routine: str, dtypes: Sequence[np.dtype[Any]]) -> bool:
    """Tell whether a routine can be computed so here, of operands and results of these dtypes."""
    if (
        routine not in SOLVERS
        or dtypes[0].name not in LETTERS
        or (routine in SPECTRAL and dtypes[0].name not in DOUBLE)
    ):
        return False
    own = {"e": dtypes[0], "r": np.empty(0, dtypes[0]).real.dtype, "i": np.dtype(np.int32)}
    alike = [own[x] for x in SOLVERS[routine][1]] == list(dtypes)
    own_names = HERMITIAN if dtypes[0].kind == "c" else SYMMETRIC
    return alike and are_offered(tuple([LETTERS[dtypes[0].name] + name for name in (*NEEDED, *own_names)]))


def lapack_kernel(name: str, _target: Target) -> NativeFunction:
    """Return the kernel of a name: "lapack.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    solver, kinds = SOLVERS[own]
    return kernel_on_one_thread(name, len(kinds), lambda ps, i: solver(LapackProblem(ps, dtype, kinds, i)))


def kernel_on_one_thread(name: str, count: int, solve: Callable[[Problems, Value], None]) -> NativeFunction:
    """Return the kernel that solves problems one by one, while LAPACK has one thread; see `kernel_of_each`."""
    inner = kernel_of_each(f"{name}.all", count, solve)

    def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
        with on_one_thread(b):
            b.do(inner, addresses, arena, team)

    return NativeFunction(name, KERNEL, body)


@contextmanager
def on_one_thread(b: Builder) -> Iterator[None]:
    """Let LAPACK use one thread while what follows runs; whoever finds that it does leaves it so.

    So whatever threads do that at once, the number is in the end what it was: nobody puts back what another put there.
    """
    library = b.operand(external(f"{PREFIX}threads", VOID), POINTER).to(THREADS)
    before = b.stack(I32)
    before.store(1)
    with b.when(library.get("get").differs(None)):
        before.store(b.call(library.get("get")))
        with b.when(before.load() > 1):
            b.do(library.get("set"), 1)
    yield
    with b.when(before.load() > 1), b.when(b.call(library.get("get")).equals(1)):
        b.do(library.get("set"), before.load())
