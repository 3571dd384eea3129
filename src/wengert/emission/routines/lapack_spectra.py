"""Eigenvalues, singular values and orthogonal factors by LAPACK."""

from __future__ import annotations

from collections.abc import Sequence

from wengert.emission.routines.lapack_problems import LapackProblem, fill, width_of
from wengert.emission.routines.matrix_problems import Matrix
from wengert.native.structs import I32, I64
from wengert.native.values import Value


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
    b, size = p.b, p.b.stack(I64)
    with b.when(p.is_first):  # of its share, whose problems all need as much: asking takes a fifth of a tiny one
        wanted = p.element(0.0)
        p.call(name, *arguments, wanted, -1, *behind, p.info)
        p.require_success()
        size.store(b.convert("fptosi", wanted.load(), I64))
    p.fail_if(p.fields.get("room") < p.used + size.load() * width_of(p.kind))
    p.call(name, *arguments, p.memory.at(p.used), size.load(), *behind, p.info)
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
    """Compute R, and if there are two results Q, of A = Q R with as many columns of Q as A has, or rows if fewer."""
    a, *found, r = p.matrices
    m, n = p.fields.get("rows"), p.size
    k = p.b.least(m, n)
    matrix, scales = by_columns(p, m, n, a), p.room(p.kind, k)
    call_with_work(p, "geqrf", m, n, matrix.first, m, scales)
    with p.b.loop(k) as rows, p.b.loop(n) as cells:
        is_below, place = cells.index < rows.index, r.at(rows.index, cells.index)
        x = p.parts_of(matrix.at(rows.index, cells.index))
        p.put(place, [p.b.select(is_below, p.number(0.0), part) for part in x])
    for q in found:
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
