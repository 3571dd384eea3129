"""Small matrices: kernels that solve systems and decompose, where a call of LAPACK takes longer than the work.

Their arenas say how many problems there are and how matrices lie in memory. Systems are solved by elimination with the
largest element of a column as pivot, and by substitution (G. Golub and C. Van Loan, Matrix Computations, 2013, sections
3.1, 3.4 and 4.2). What is singular, not positive definite or NaN is left to Python: its results and errors are NumPy's.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from wengert.emission.tiled_functions import SCALARS
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction, external
from wengert.native.job_tables import JOB, SHARED
from wengert.native.jobs import share_parts
from wengert.native.structs import F64, I8, I64, POINTER, Array, Float, Struct, Vector, vector_of
from wengert.native.tables import KERNEL
from wengert.native.values import Stored, Value

SMALL = "small"
"""What the names of these kernels begin with: "small.solve.float64"."""
VECTOR = 32
"""Bytes of the vectors that rows are subtracted by."""
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
        """Return what is behind so many columns."""
        return self._replace(first=self.first.at(columns * self.column))

    def transposed(self) -> Matrix:
        """Return the transpose."""
        return self._replace(row=self.column, column=self.row)


class Problems:
    """Be a share of the problems that a kernel solves.

    Attributes:
        b: writes the function.
        fields: MATRICES.
        work: the address of the room for the elimination.
        first, last: the first problem, and the one behind the last.
    """

    def __init__(self, b: Builder, table: Value, part: Value) -> None:
        self.b, self.addresses, self.fields = b, table.load().to(POINTER), table.at(1).load().to(MATRICES)
        fields = self.fields
        self.work = fields.to(I8).at(fields.get("work") + part * fields.get("room"))
        count, parts = fields.get("count"), fields.get("parts")
        self.first, self.last = count * part // parts, count * (part + 1) // parts

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
        zero, one: these numbers.
        yes, no: truth values.
    """

    def __init__(self, problems: Problems, kind: Float | Vector, kinds: Sequence[Stored], index: Value) -> None:
        self.b, self.kind, self.fields, self.memory = problems.b, kind, problems.fields, problems.work
        self.scalar: Float = kind.element if isinstance(kind, Vector) else kind  # type: ignore[assignment]  # of numbers
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

    def work(self, width: Value) -> Matrix:
        """Return a matrix of so many columns in the room for the elimination."""
        return Matrix(self.memory.to(self.kind), width, self.one)

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

    def exchange(self, work: Matrix, k: Value, chosen: Value, width: Value) -> None:
        """Exchange a row with another, from the diagonal on."""
        with self.b.loop(width, k) as cells:
            one, other = work.at(k, cells.index), work.at(chosen, cells.index)
            kept = one.load()
            one.store(other.load())
            other.store(kept)

    def subtract(self, target: Value, source: Value, factor: Value, count: Value) -> None:
        """Subtract a multiple of some elements that lie side by side from others."""
        b, kind = self.b, vector_of(self.scalar, VECTOR * 8 // self.scalar.bits)
        whole, factors = count - count % kind.count, b.spread(factor, kind.count)
        with b.loop(whole, step=kind.count) as cells:
            place, other = (x.at(cells.index).to(kind) for x in (target, source))
            place.store(place.load() - factors * other.load())
        with b.loop(count, whole) as cells:
            place = target.at(cells.index)
            place.store(place.load() - factor * source.at(cells.index).load())


Solver = Callable[[Problem], None]


# Parts


def copy(p: Problem, target: Matrix, source: Matrix, columns: Value) -> None:
    """Copy so many columns."""
    with p.b.loop(p.size) as rows, p.b.loop(columns) as cells:
        target.at(rows.index, cells.index).store(source.at(rows.index, cells.index).load())


def require_finite(p: Problem, matrix: Matrix, columns: Value) -> None:
    """Leave all to Python if elements must be finite and are not."""
    with (
        p.b.when(p.fields.get("finite").differs(0)),
        p.b.loop(p.size) as rows,
        p.b.loop(columns) as cells,
    ):
        for x in p.parts_of(matrix.at(rows.index, cells.index)):
            p.fail_if((x - x).differs(0))


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


def eliminate(p: Problem, work: Matrix, width: Value) -> Value:
    """Bring a matrix with right sides beside it into triangular form; return the sign of the exchange of rows."""
    b, n = p.b, p.size
    with b.loop(n, carry=[p.number(1.0)], certain=True) as steps:
        k = steps.index
        with b.loop(n, k + 1, carry=[p.index(k), p.magnitude(work.at(k, k).load())]) as rows:
            size = p.magnitude(work.at(rows.index, k).load())
            larger = size > rows.values[1]
            rows.next(b.select(larger, p.index(rows.index), rows.values[0]), b.select(larger, size, rows.values[1]))
        chosen, size = rows.results
        p.fail_if(b.compare("ueq", size, 0))  # or NaN
        moved = chosen.differs(p.index(k))
        with b.when(p.holds(moved)):
            p.exchange(work, k, chosen, width)
        pivot = work.at(k, k)
        with b.loop(n, k + 1) as rows:
            start = work.at(rows.index, k)
            p.subtract(start, pivot, start.load() / pivot.load(), width - k)
        steps.next(b.select(moved, -steps.values[0], steps.values[0]))
    return steps.results[0]


def substitute(p: Problem, triangle: Matrix, x: Matrix, columns: Value, backward: Value, unit: Value) -> None:
    """Solve a triangular system in place, whose right sides lie row by row."""
    b, n = p.b, p.size

    def place(index: Value) -> Value:
        return b.select(backward, n - 1 - index, index)

    with b.loop(n, certain=True) as steps:
        k = place(steps.index)
        row = x.at(k, p.zero)
        pivot = b.select(unit, p.number(1.0), triangle.at(k, k).load())
        p.fail_if(pivot.equals(0))
        with b.loop(columns) as cells:
            cell = row.at(cells.index)
            cell.store(cell.load() / pivot)
        with b.loop(n, steps.index + 1) as others:
            i = place(others.index)
            p.subtract(x.at(i, p.zero), row, triangle.at(i, k).load(), columns)


# Solvers


def put_right_sides(p: Problem, place: Matrix, conditioned: bool) -> Matrix:
    """Put down the right sides, and where they are none, or the condition is wanted, beside them those of the inverse.

    Return where that is to be. Where the condition is wanted, operands must be finite.
    """
    operands = p.matrices[:-1]
    if conditioned:
        for matrix, columns in zip(operands, (p.size, p.columns), strict=False):
            require_finite(p, matrix, columns)
    for right in operands[1:]:
        copy(p, place, right, p.columns)
    inverse = place.after(p.columns) if operands[1:] else place
    if conditioned or not operands[1:]:
        put_identity(p, inverse)
    return inverse


def solve(p: Problem, conditioned: bool = False) -> None:
    """Solve A X = B, or A X = I where there is no B; with the condition, for an A that is not nearly singular."""
    a, *right, x = p.matrices
    columns = p.columns + p.size if right and conditioned else p.columns
    width = p.size + columns
    work = p.work(width)
    found = work.after(p.size)
    copy(p, work, a, p.size)
    inverse = put_right_sides(p, found, conditioned)
    eliminate(p, work, width)
    substitute(p, work, found, columns, p.yes, p.no)
    if conditioned:
        require_conditioned(p, a.at, inverse)
    copy(p, x, found, p.columns)


def solve_positive(p: Problem) -> None:
    """Solve A X = B for a positive definite A by Cholesky's factor of its lower triangle."""
    a, _, x = p.matrices
    columns = p.columns + p.size
    work = p.work(p.size + columns)
    found = work.after(p.size)
    inverse = put_right_sides(p, found, conditioned=True)
    factorise(p, a, work)
    substitute(p, work.transposed(), found, columns, p.no, p.no)
    substitute(p, work, found, columns, p.yes, p.no)

    def at(i: Value, j: Value) -> Any:
        is_below = j < i
        return a.at(p.b.select(is_below, i, j), p.b.select(is_below, j, i))

    require_conditioned(p, at, inverse)
    copy(p, x, found, p.columns)


def eliminated(p: Problem) -> tuple[Matrix, Value]:
    """Return a matrix in triangular form, and the sign of the exchange of rows."""
    require_finite(p, p.matrices[0], p.size)
    work = p.work(p.size)
    copy(p, work, p.matrices[0], p.size)
    return work, eliminate(p, work, p.size)


def determinant(p: Problem) -> None:
    """Compute det A; Python does so where it is too small or too large for a product."""
    b = p.b
    work, sign = eliminated(p)
    with b.loop(p.size, carry=[sign], certain=True) as steps:
        steps.next(steps.values[0] * work.at(steps.index, steps.index).load())
    found = steps.results[0]
    p.fail_if(((found - found) + b.select(found.equals(0), p.number(1.0), 0.0)).differs(0))
    p.matrices[1].at(p.zero, p.zero).store(found)


def logarithm(p: Problem) -> None:
    """Compute the sign of det A and the logarithm of its absolute value."""
    b = p.b
    work, sign = eliminated(p)
    with b.loop(p.size, carry=[sign, p.number(0.0)], certain=True) as steps:
        x = work.at(steps.index, steps.index).load()
        sign, total = steps.values
        steps.next(b.select(x < 0, -sign, sign), total + p.logarithm(p.magnitude(x)))
    for matrix, found in zip(p.matrices[1:], steps.results, strict=True):
        matrix.at(p.zero, p.zero).store(found)


def substitute_both(p: Problem, times: int) -> None:
    """Solve a triangular system, and then perhaps that with the transpose."""
    b = p.b
    triangle, right, x = p.matrices
    require_finite(p, triangle, p.size)
    require_finite(p, right, p.columns)
    work = p.work(p.columns)
    copy(p, work, right, p.columns)
    backward, unit = p.fields.get("backward").differs(0), p.fields.get("unit").differs(0)
    substitute(p, triangle, work, p.columns, backward, unit)
    if times == 2:
        substitute(p, triangle.transposed(), work, p.columns, b.select(backward, p.no, p.yes), unit)
    copy(p, x, work, p.columns)


def factor(p: Problem) -> None:
    """Compute Cholesky's factor, with zeros above it."""
    a, factor = p.matrices
    require_finite(p, a, p.size)
    work = p.work(p.size)
    factorise(p, a, work)
    with p.b.loop(p.size) as rows:
        with p.b.loop(rows.index + 1, certain=True) as cells:
            factor.at(rows.index, cells.index).store(work.at(cells.index, rows.index).load())
        with p.b.loop(p.size, rows.index + 1) as cells:
            factor.at(rows.index, cells.index).store(p.number(0.0))


def factorise(p: Problem, a: Matrix, work: Matrix) -> None:
    """Compute the transpose of Cholesky's factor, U of A = U^T U, from the lower triangle of A."""
    b, n = p.b, p.size
    with b.loop(n) as rows, b.loop(n, rows.index) as cells:
        work.at(rows.index, cells.index).store(a.at(cells.index, rows.index).load())
    with b.loop(n, certain=True) as steps:
        k = steps.index
        square = work.at(k, k).load()
        p.fail_if(b.compare("ule", square, 0))  # or NaN
        root = b.intrinsic("sqrt", p.kind, square)
        work.at(k, k).store(root)
        with b.loop(n, k + 1) as cells:
            cell = work.at(k, cells.index)
            cell.store(cell.load() / root)
        with b.loop(n, k + 1) as rows:
            i = rows.index
            p.subtract(work.at(i, i), work.at(k, i), work.at(k, i).load(), n - i)


SOLVERS: dict[str, tuple[Solver, int]] = {
    "solve": (solve, 3),
    "solve_conditioned": (partial(solve, conditioned=True), 3),
    "solve_positive": (solve_positive, 3),
    "inv": (solve, 2),
    "inv_conditioned": (partial(solve, conditioned=True), 2),
    "det": (determinant, 2),
    "slogdet": (logarithm, 3),
    "solve_triangular": (partial(substitute_both, times=1), 3),
    "cho_solve": (partial(substitute_both, times=2), 3),
    "cholesky": (factor, 2),
}
"""What computes each routine, and how many operands and results it has."""


def small(name: str, _target: Target) -> NativeFunction:
    """Return the kernel of a name: "small.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    (solver, count), kind = SOLVERS[own], SCALARS[dtype]

    def solve_each(problems: Problems) -> None:
        with problems.b.loop(problems.last, problems.first) as each:
            solver(Problem(problems, kind, [kind] * count, each.index))

    return kernel_of(name, count, solve_each)


def kernel_of(name: str, count: int, write: Callable[[Problems], None]) -> NativeFunction:
    """Return the kernel that solves problems of so many operands and results, whose shares threads work on."""

    def share(b: Builder, table: Value, first: Value, last: Value) -> None:
        with b.loop(last, first) as parts:
            write(Problems(b, table.to(POINTER), parts.index))

    def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
        addresses.at(count).load().to(I8).store(0)
        table = b.stack(Array(POINTER, 2))
        table.store(addresses.as_address())
        table.at(1).store(arena.as_address())
        share_parts(b, team.to(SHARED), job, table.as_address(), arena.to(MATRICES).get("parts"))

    job = NativeFunction(f"{name}.share", JOB, share)
    return NativeFunction(name, KERNEL, body)
