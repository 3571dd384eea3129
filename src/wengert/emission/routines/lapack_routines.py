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

from wengert.emission.routines.lapack_problems import (
    LETTERS,
    PANEL,
    LapackProblem,
    by_rows,
    exchange_rows,
    fill,
    norm_of,
    pivots_of,
    require_conditioned,
    solve_triangular,
    square_like,
)
from wengert.emission.routines.lapack_spectra import by_columns, general, orthogonal, singular, symmetric
from wengert.emission.routines.matrix_problems import Matrix, Problems, element_product
from wengert.emission.routines.matrix_routines import kernel_of_each, require_finite
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction, external
from wengert.native.lapack import PREFIX, THREADS, are_offered
from wengert.native.structs import F64, I32, I64, POINTER, VOID
from wengert.native.values import Value

NEEDED = (
    *("getrf", "getri", "gecon", "lange", "potrf", "pocon", "laswp", "trsm", "trsv", "gemm"),
    *("gesdd", "geqrf", "geev"),
)
SYMMETRIC, HERMITIAN = ("syevd", "orgqr"), ("heevd", "ungqr")
"""Functions that kernels call, and what only real or only complex numbers have."""
SPECTRAL = ("eigh", "eigvalsh", "svd", "svdvals", "qr", "qr_r", "eig", "eigvals")
"""Routines that compute spectra or orthogonal factors, of matrices that need not be square."""
DOUBLE = ("float64", "complex128")
"""The dtypes that NumPy computes these in, whatever the matrices are: in others vectors have other signs."""


Solver = Callable[[LapackProblem], None]


# Parts


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
    "qr_r": (orthogonal, "ee"),
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
