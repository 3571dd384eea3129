"""Small matrices: kernels that solve systems and decompose, where a call of LAPACK takes longer than the work.

Their arenas say how many problems there are and how matrices lie in memory. Systems are solved by elimination with the
largest element of a column as pivot, and by substitution (G. Golub and C. Van Loan, Matrix Computations, 2013, sections
3.1, 3.4 and 4.2). What is singular, not positive definite or NaN is left to Python: its results and errors are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from wengert.emission.routines.eliminations import Eliminations
from wengert.emission.routines.few_rows import with_few_rows
from wengert.emission.routines.matrix_problems import (
    LOOK,
    MATRICES,
    DenseProblem,
    Matrix,
    Problem,
    Problems,
    RowProblem,
)
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, F64, I8, I32, POINTER, Array, Float, vector_of
from wengert.native.threads.job_tables import JOB, SHARED
from wengert.native.threads.jobs import share_parts
from wengert.native.values import Value

SMALL = "small"
"""What the names of these kernels begin with: "small.solve.float64"."""


Solver = Callable[[DenseProblem], None]


# Parts


def require_finite(p: Problem, matrix: Any, columns: Value) -> None:
    """Leave all to Python if elements must be finite and are not; those that lie in one piece are looked at by vectors.

    So a system that is solved by factors takes 0.6 of what it does element by element, of 32 rows as of 200.
    """
    b = p.b
    with b.when(p.fields.get("finite").differs(0)):
        in_one_piece = p.no
        if isinstance(matrix, Matrix):  # and not one in each lane
            by_columns = matrix.row.equals(1) & matrix.column.equals(p.size)
            in_one_piece = by_columns | (matrix.column.equals(1) & matrix.row.equals(columns))
        with b.when(in_one_piece) as otherwise:
            if isinstance(matrix, Matrix):
                p.fail_if(holds_not_finite(b, p.scalar, matrix.first, p.size * columns * p.parts))
        with otherwise, b.loop(p.size) as rows, b.loop(columns) as cells:
            for x in p.parts_of(matrix.at(rows.index, cells.index)):
                p.fail_if((x - x).differs(0))


def holds_not_finite(b: Builder, scalar: Float, first: Value, count: Value) -> Value:
    """Return whether one of so many real numbers, one behind the other, is infinite or NaN."""
    kind = vector_of(scalar, LOOK)
    numbers = b.numbers(I32, range(LOOK))
    with b.loop(count, step=LOOK, carry=[b.constant(vector_of(BOOL, LOOK), 0)]) as blocks:
        rest = b.convert("trunc", b.least(count - blocks.index, LOOK), I32)
        there = b.compare("slt", numbers, b.spread(rest, LOOK))
        x = first.to(scalar).at(blocks.index).to(kind).load_where(there)
        blocks.next(blocks.values[0] | (x - x).differs(0))
    return b.intrinsic("vector.reduce.or", BOOL, blocks.results[0], of=(blocks.results[0].type,))


def require_pivots(p: Problem, triangle: Any, unit: Value) -> None:
    """Leave all to Python if the inverse of a number is infinite that stands on a diagonal, unless ones stand there."""
    least = 2.0**-1024 if p.scalar is F64 else 2.0**-128
    with p.b.loop(p.b.select(unit, p.zero, p.size)) as rows:
        p.fail_if(p.b.compare("ole", p.magnitude(triangle.at(rows.index, rows.index).load()), least))


def put_identity(p: Problem, target: Matrix) -> None:
    """Write the identity."""
    with p.b.loop(p.size) as rows, p.b.loop(p.size) as cells:
        one = p.b.select(rows.index.equals(cells.index), p.number(1.0), 0.0)
        target.at(rows.index, cells.index).store(one)


def require_conditioned(p: Problem, at: Callable[[Value, Value], Any], inverse: Matrix) -> None:
    """Leave all to Python if it is to warn of a matrix that is nearly singular, by its condition in the 1-norm.

    LAPACK's estimates of the condition are at most that (N. Higham, Accuracy and Stability of Numerical Algorithms,
    2002, section 15.3), so of what is left SciPy does not warn.
    """
    condition = one_norm(p, at) * one_norm(p, inverse.at)
    p.fail_if(p.b.compare("uge", condition, 2.0**51 if p.scalar is F64 else 2.0**22))


def one_norm(p: Problem, at: Callable[[Value, Value], Any]) -> Value:
    """Return the largest sum of the absolute values in a column; what is not finite is left to Python."""
    b = p.b
    with b.loop(p.size, carry=[p.number(0.0)], certain=True) as columns:
        with b.loop(p.size, carry=[p.number(0.0)], certain=True) as rows:
            rows.next(rows.values[0] + p.magnitude(at(rows.index, columns.index).load()))
        total, largest = rows.results[0], columns.values[0]
        p.fail_if((total - total).differs(0))
        columns.next(b.select(total > largest, total, largest))
    return columns.results[0]


# Solvers


def put_right_sides(p: DenseProblem, parts: Sequence[Matrix], conditioned: bool) -> Matrix:
    """Put down the right sides, and where they are none, or the condition is wanted, those of the inverse as the last.

    Return where that is to be. Where the condition is wanted, operands must be finite.
    """
    operands = p.matrices[:-1]
    if conditioned:
        for matrix, columns in zip(operands, (p.size, p.columns), strict=False):
            require_finite(p, matrix, columns)
    for part, right in zip(parts, operands[1:], strict=False):
        p.copy(part, right, p.columns)
    if conditioned or not operands[1:]:
        put_identity(p, parts[-1])
    return parts[-1]


def solve(p: DenseProblem, conditioned: bool = False) -> None:
    """Solve A X = B, or A X = I where there is no B; with the condition, for an A that is not nearly singular."""
    a, *right, x = p.matrices
    counts = (p.columns, p.size) if right and conditioned else (p.columns,)
    work, *parts = p.side_by_side(p.size, *counts)
    p.copy(work, a, p.size)
    inverse = put_right_sides(p, parts, conditioned)
    p.eliminate(work)
    for part, count in zip(parts, counts, strict=True):
        p.substitute(work, part, count, p.yes, p.no)
    if conditioned:
        require_conditioned(p, a.at, inverse)
    p.copy(x, parts[0], p.columns)


def solve_positive(p: DenseProblem) -> None:
    """Solve A X = B for a positive definite A by Cholesky's factor of its lower triangle."""
    a, _, x = p.matrices
    work, *parts = p.side_by_side(p.size, p.columns, p.size)
    inverse = put_right_sides(p, parts, conditioned=True)
    p.copy(work, a.transpose(), p.size)
    p.factorise(work)
    for part, count in zip(parts, (p.columns, p.size), strict=True):
        p.substitute(work.transpose(), part, count, p.no, p.no)
        p.substitute(work, part, count, p.yes, p.no)

    def at(i: Value, j: Value) -> Any:
        is_below = j < i
        return a.at(p.b.select(is_below, i, j), p.b.select(is_below, j, i))

    require_conditioned(p, at, inverse)
    p.copy(x, parts[0], p.columns)


def eliminate_copy(p: DenseProblem) -> tuple[Matrix, Value]:
    """Return a matrix in triangular form, and the sign of the exchange of rows."""
    require_finite(p, p.matrices[0], p.size)
    (work,) = p.side_by_side(p.size)
    p.copy(work, p.matrices[0], p.size)
    return work, p.eliminate(work)


def determinant(p: DenseProblem) -> None:
    """Compute det A; Python does so where it is too small or too large for a product."""
    b = p.b
    work, sign = eliminate_copy(p)
    with b.loop(p.size, carry=[sign], certain=True) as steps:
        steps.next(steps.values[0] * work.at(steps.index, steps.index).load())
    found = steps.results[0]
    p.fail_if(((found - found) + b.select(found.equals(0), p.number(1.0), 0.0)).differs(0))
    p.matrices[1].at(p.zero, p.zero).store(found)


def logarithm(p: DenseProblem) -> None:
    """Compute the sign of det A and the logarithm of its absolute value."""
    b = p.b
    work, sign = eliminate_copy(p)
    with b.loop(p.size, carry=[sign, p.number(0.0)], certain=True) as steps:
        x = work.at(steps.index, steps.index).load()
        sign, total = steps.values
        steps.next(b.select(x < 0, -sign, sign), total + p.logarithm(p.magnitude(x)))
    for matrix, found in zip(p.matrices[1:], steps.results, strict=True):
        matrix.at(p.zero, p.zero).store(found)


def triangular_factors(p: DenseProblem) -> None:
    """Compute both triangular factors in one matrix, and with which row each was exchanged."""
    _, packed, exchanges = p.matrices
    work, _ = eliminate_copy(p)
    p.copy(packed, work, p.size)
    with p.b.loop(p.size) as rows:
        exchanges.at(rows.index, p.zero).store(p.b.convert("trunc", p.exchanges(work).at(rows.index).load(), I32))


def solve_by_factors(p: DenseProblem) -> None:
    """Solve A X = B, or A^T X = B, by both triangular factors of A in one matrix."""
    packed, right, _, _ = p.matrices
    require_finite(p, packed, p.size)
    require_finite(p, right, p.columns)
    packed, work = p.lay_down(packed, right)
    require_pivots(p, packed, p.no)
    substitute_factors(p, packed, work)


def substitute_factors(p: DenseProblem, packed: Matrix, work: Matrix) -> None:
    """Solve with both triangular factors, and exchanges of rows before or after that."""
    b, (_, _, exchanges, x) = p.b, p.matrices
    transposed = p.fields.get("backward").differs(0)
    straight = transposed.equals(0)
    with b.when(straight):
        p.exchange_rows(work, exchanges, p.no)
    steps = (packed.row, packed.column)
    triangle = Matrix(packed.first, b.select(transposed, *reversed(steps)), b.select(transposed, *steps))
    p.substitute(triangle, work, p.columns, p.no, straight)
    p.substitute(triangle, work, p.columns, p.yes, transposed)
    with b.when(transposed):
        p.exchange_rows(work, exchanges, p.yes)
    p.copy(x, work, p.columns)


def exchange_rows(p: DenseProblem) -> None:
    """Exchange the rows of a matrix as elimination did, or undo that."""
    x, exchanges, found = p.matrices
    p.size = p.fields.get("rows")
    (work,) = p.side_by_side(p.columns)
    p.copy(work, x, p.columns)
    p.exchange_rows(work, exchanges, p.fields.get("backward").differs(0))
    p.copy(found, work, p.columns)


def substitute_both(p: DenseProblem, times: int) -> None:
    """Solve a triangular system, and then perhaps that with the transpose."""
    triangle, right, x = p.matrices
    require_finite(p, triangle, p.size)
    require_finite(p, right, p.columns)
    triangle, work = p.lay_down(triangle, right)
    backward, unit = p.fields.get("backward").differs(0), p.fields.get("unit").differs(0)
    require_pivots(p, triangle, unit)
    p.substitute(triangle, work, p.columns, backward, unit)
    if times == 2:
        p.substitute(triangle.transpose(), work, p.columns, p.b.select(backward, p.no, p.yes), unit)
    p.copy(x, work, p.columns)


def factor(p: DenseProblem) -> None:
    """Compute Cholesky's factor, with zeros above it."""
    a, factor = p.matrices
    require_finite(p, a, p.size)
    (work,) = p.side_by_side(p.size)
    p.copy(work, a.transpose(), p.size)
    p.factorise(work)
    p.copy(factor, work.transpose(), p.size)


SOLVERS: dict[str, tuple[Solver, str]] = {
    "solve": (solve, "eee"),
    "solve_conditioned": (partial(solve, conditioned=True), "eee"),
    "solve_positive": (solve_positive, "eee"),
    "inv": (solve, "ee"),
    "inv_conditioned": (partial(solve, conditioned=True), "ee"),
    "det": (determinant, "ee"),
    "slogdet": (logarithm, "eee"),
    "solve_triangular": (partial(substitute_both, times=1), "eee"),
    "cho_solve": (partial(substitute_both, times=2), "eee"),
    "cholesky": (factor, "ee"),
    "lu_factor": (triangular_factors, "eei"),
    "lu_solve": (solve_by_factors, "eeie"),
    "exchange_rows": (exchange_rows, "eie"),
}
"""What computes each routine; of its operands and results whether they have elements, or are the numbers of rows."""

CONDITIONED, TRIANGULAR = ("solve_conditioned", "solve_positive", "inv_conditioned"), ("solve_triangular", "cho_solve")
"""Routines that compute the inverse for the condition, and those that factorise nothing."""


def dtypes_of(routine: str, dtype: np.dtype[Any]) -> list[np.dtype[Any]]:
    """Return the dtypes of the operands and results of a routine of matrices of some dtype."""
    return [np.dtype(np.int32) if x == "i" else dtype for x in SOLVERS[routine][1]]


def small(name: str, target: Target) -> NativeFunction:
    """Return the kernel of a name: "small.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    (solver, kinds), functions = SOLVERS[own], Eliminations(dtype, target)
    solver = with_few_rows(solver) if own in ("inv", "solve") else solver
    return kernel_of_each(name, len(kinds), lambda ps, i: solver(RowProblem(ps, functions, kinds, i)))


def kernel_of_each(name: str, count: int, solve: Callable[[Problems, Value], None]) -> NativeFunction:
    """Return the kernel that solves problems one by one; `solve` is given them, and the number of one."""

    def solve_share(problems: Problems) -> None:
        with problems.b.loop(problems.last, problems.first) as each:
            solve(problems, each.index)

    return kernel_of(name, count, solve_share)


def kernel_of(name: str, count: int, write: Callable[[Problems], None], together: int = 1) -> NativeFunction:
    """Return the kernel that solves problems of so many operands and results, whose shares threads work on.

    Args:
        name: its name.
        count: how many operands and results there are.
        write: writes what solves a share of the problems.
        together: how many problems are in one share, or as many more.
    """

    def share(b: Builder, table: Value, first: Value, last: Value) -> None:
        with b.loop(last, first) as parts:
            write(Problems(b, table.to(POINTER), parts.index, together))

    def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
        addresses.at(count).load().to(I8).store(0)
        table = b.stack(Array(POINTER, 2))
        table.store(addresses.as_address())
        table.at(1).store(arena.as_address())
        share_parts(b, team.to(SHARED), job, table.as_address(), arena.to(MATRICES).get("parts"))

    job = NativeFunction(f"{name}.share", JOB, share)
    return NativeFunction(name, KERNEL, body)
