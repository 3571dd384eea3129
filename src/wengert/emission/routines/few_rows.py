"""Systems of two to four rows, in registers: elimination and substitution without a loop over rows.

Steps and bits are those of `Eliminations.decompose` and `substitute`. An inverse of 2, 3 and 4 rows takes 20, 38 and 69
ns, by these 75, 110 and 142: most of that is copies, loops of few rounds, and vectors of which few lanes are used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.emission.routines.matrix_problems import DenseProblem
from wengert.native.values import Value

FEW = (2, 3, 4)
"""The numbers of rows."""

Exchange = tuple[int, int, Value]
"""Two rows, and whether they are exchanged."""


def with_few_rows(solver: Callable[[DenseProblem], None]) -> Callable[[DenseProblem], None]:
    """Return what solves A X = B, or A X = I where there is no B, in registers if A has few rows, else by a solver."""

    def solve(p: DenseProblem) -> None:
        b = p.b
        with b.when((p.size > FEW[0] - 1) & (p.size < FEW[-1] + 1)) as otherwise:
            for count in FEW:
                with b.when(p.size.equals(count)):
                    solve_in_registers(p, count)
        with otherwise:
            solver(p)

    return solve


def solve_in_registers(p: DenseProblem, count: int) -> None:
    """Solve A X = B, or A X = I, for an A of so many rows; leave it to Python if a pivot is 0 or not finite."""
    b, (a, *right, x) = p.b, p.matrices
    numbers = [b.constant(p.zero.type, i) for i in range(count)]
    rows = [[a.at(i, j).load() for j in numbers] for i in numbers]
    exchanges, scales = decompose(p, rows)
    with b.loop(p.columns) as columns:
        j = columns.index
        if right:
            column = [right[0].at(i, j).load() for i in numbers]
        else:
            column = [b.select(j.equals(i), p.number(1.0), 0.0) for i in numbers]
        for i, value in zip(numbers, substitute(p, rows, exchanges, scales, column), strict=True):
            x.at(i, j).store(value)


def decompose(p: DenseProblem, rows: list[list[Value]]) -> tuple[list[Exchange], list[Value]]:
    """Put L and U in the place of a matrix; return which rows are exchanged, and the inverses of pivots."""
    b, count = p.b, len(rows)
    exchanges, scales = list[Exchange](), list[Value]()
    failed = p.no
    for k in range(count):
        best = p.magnitude(rows[k][k])
        best = b.select(best.equals(best), best, p.number(0.0))  # numbers that are none do not count
        chosen = b.constant(p.zero.type, k)
        for i in range(k + 1, count):
            size = p.magnitude(rows[i][k])
            is_larger = size > best
            best, chosen = b.select(is_larger, size, best), b.select(is_larger, b.constant(p.zero.type, i), chosen)
        for i in range(k + 1, count):
            exchange = k, i, chosen.equals(i)
            exchanges.append(exchange)
            pairs = [exchange_if(p, exchange[2], *pair) for pair in zip(rows[k], rows[i], strict=True)]
            rows[k], rows[i] = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        pivot = rows[k][k]
        scale = p.number(1.0) / pivot
        failed = failed | (pivot - pivot).differs(0) | (scale - scale).differs(0)
        for row in rows[k + 1 :]:
            row[k] = row[k] * scale
            row[k + 1 :] = [
                subtract_product(p, total, row[k], x) for total, x in zip(row[k + 1 :], rows[k][k + 1 :], strict=True)
            ]
        scales.append(scale)
    p.fail_if(failed)
    return exchanges, scales


def exchange_if(p: DenseProblem, condition: Value, x: Value, y: Value) -> tuple[Value, Value]:
    """Return two numbers, exchanged if a condition holds."""
    return p.b.select(condition, y, x), p.b.select(condition, x, y)


def subtract_product(p: DenseProblem, total: Value, factor: Value, x: Value) -> Value:
    """Return a number less the product of two others."""
    fuses = p.functions.target.fuses
    return p.b.intrinsic("fma", p.kind, -factor, x, total) if fuses else total - factor * x


def substitute(
    p: DenseProblem,
    rows: Sequence[Sequence[Value]],
    exchanges: Sequence[Exchange],
    scales: Sequence[Value],
    column: Sequence[Value],
) -> list[Value]:
    """Return the solution for a column of the right side."""
    x = [*column]
    count = len(rows)
    for k, i, condition in exchanges:
        x[k], x[i] = exchange_if(p, condition, x[k], x[i])
    for i in range(count):
        for j in range(i):
            x[i] = subtract_product(p, x[i], rows[i][j], x[j])
    for i in reversed(range(count)):
        for j in reversed(range(i + 1, count)):
            x[i] = subtract_product(p, x[i], rows[i][j], x[j])
        x[i] = x[i] * scales[i]
    return x
