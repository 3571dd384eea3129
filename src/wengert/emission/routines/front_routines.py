"""Factors of sparse matrices of one pattern, and solutions by them: kernels that go from front to front.

A table says which rows a front has, which elements of the matrix, and which fronts leave it something: see
`wengert.implicit.fronts.Fronts.table`. A front is a full matrix whose rows are made longer to whole vectors, in room of
its own on top of what others have left; it is eliminated by `wengert.emission.routines.eliminations` as far as its own
columns go. Factors hold of each front which rows were exchanged, the square of its own rows and columns, and what is
beside it, and, turned, below.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from wengert.emission.routines.eliminations import Eliminations
from wengert.emission.routines.matrix_problems import Matrix, Problem, Problems
from wengert.emission.routines.matrix_routines import kernel_of_each
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import F64, I8, I32, I64
from wengert.native.values import Stored, Value
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

FRONTS = "fronts"
"""What the names of these kernels begin with: "fronts.front_factors.float64"."""
LARGEST = 1e9
"""What a row may be subtracted times at most; beyond, pivots are nothing beside other elements of their columns."""
WHOLE = MACHINE.line // 8
"""Elements that rows are made longer to a multiple of, as in `wengert.implicit.fronts`."""
SPARE = 64
"""Elements of room for the ends of vectors."""


class Described(NamedTuple):
    """Hold what the table says of a front.

    Attributes:
        size: how many rows it has.
        width: how many are its own.
        place: where it stands in the room.
        kept: where what it leaves is kept.
        start: where its factors begin.
        elements, children: how many elements of the matrix, and fronts before it, it takes.
        rest: how many rows it leaves.
        long: how long their rows are made.
        rows: where the table has its rows.
    """

    size: Value
    width: Value
    place: Value
    kept: Value
    start: Value
    elements: Value
    children: Value
    rest: Value
    long: Value
    rows: Value


class FrontProblem(Problem):
    """Be a problem of a sparse matrix.

    Attributes:
        functions: what eliminates.
        table: where descriptions are.
        packed: the factors.
        room: where fronts stand, and rows of solutions.
        exchanges: what that begins with: which row each was exchanged with.
    """

    def __init__(self, problems: Problems, functions: Eliminations, places: Sequence[int], index: Value) -> None:
        kinds: list[Stored] = [F64, I32, F64] if places[0] == 1 else [F64, F64, I32, F64]
        super().__init__(problems, F64, kinds, index)
        self.functions, self.lanes = functions, functions.lanes
        table, packed = self.matrices[places[0]], self.matrices[places[1]]
        self.table, self.packed = table.first, packed.first
        self.room, self.exchanges = self.memory.to(F64), self.memory.to(I64)

    def number_at(self, place: Value) -> Value:
        """Return a whole number of the table, by its address."""
        found: Value = place.load().widen(I64)
        return found

    def describe_front(self, n: Value) -> Described:
        """Return the description of a front by the table."""
        first = self.table.at(self.number_at(self.table.at(n)))
        size, width, place, kept, start, elements, children = [self.number_at(first.at(i)) for i in range(7)]
        rest = size - width
        long, rows = self.longer(rest), first.at(7)
        return Described(size, width, place, kept, start, elements, children, rest, long, rows)

    def longer(self, count: Value) -> Value:
        """Return how long rows of so many elements are made."""
        return (count + (WHOLE - 1)) & -WHOLE

    def parts_of_factor(self, front: Described) -> tuple[Value, Value, Value, Value]:
        """Return the addresses of the exchanges of a front, its square, and what is beside and below that."""
        first = self.packed.at(front.start)
        square = first.at(front.width)
        beside = square.at(front.width * front.width)
        return first, square, beside, beside.at(front.width * front.long)

    def in_vectors(self, count: Value, write: Callable[[Value], None]) -> None:
        """Write what is done for vectors of rows that are made longer, which is told where one begins."""
        with self.b.loop(count, step=self.lanes) as cells:
            write(cells.index)

    def vector(self, place: Value) -> Value:
        """Return the address of a vector."""
        return place.to(self.functions.vector)


# Factors


def factorise(p: FrontProblem) -> None:
    """Compute the factors; without pivots they are NaN."""
    b = p.b
    count = p.fields.get("fronts")
    bad = b.stack(I8)
    bad.store(0)
    with b.loop(count) as fronts, b.when(bad.load().equals(0)):
        front = p.describe_front(fronts.index)
        full = Matrix(p.room.at(front.place), p.longer(front.size), p.one)
        assemble(p, front, full)
        width, columns = front.width, full.row
        b.do(p.functions.decompose, full.first, columns, width, front.size, columns, p.exchanges, bad)
        keep_factors(p, front, full, bad)
        keep_rest(p, front, full)
    with b.when(bad.load().differs(0)), b.loop(p.fields.get("length")) as cells:
        p.packed.at(cells.index).store(p.number(float("nan")))


def assemble(p: FrontProblem, front: Described, full: Matrix) -> None:
    """Put down the elements of a front, and add what others leave it."""
    b, elements = p.b, p.matrices[0].first
    zero = b.constant(p.functions.vector, 0.0)
    p.in_vectors(front.size * full.row, lambda at: p.vector(full.first.at(at)).store(zero))
    sources = front.rows.at(front.size)
    targets = sources.at(front.elements)
    with b.loop(front.elements) as entries:
        x = elements.at(p.number_at(sources.at(entries.index))).load()
        full.first.at(p.number_at(targets.at(entries.index))).store(x)
    with b.loop(front.children, carry=[targets.at(front.elements)]) as children:
        (head,) = children.values
        rest, kept = p.number_at(head), p.room.at(p.number_at(head.at(1)))
        rows, long = head.at(2), p.longer(p.number_at(head))
        with b.loop(rest) as lines:
            target, source = full.at(p.number_at(rows.at(lines.index)), p.zero), kept.at(lines.index * long)
            with b.loop(rest) as cells:
                place = target.at(p.number_at(rows.at(cells.index)))
                place.store(place.load() + source.at(cells.index).load())
        children.next(rows.at(rest))


def keep_factors(p: FrontProblem, front: Described, full: Matrix, bad: Value) -> None:
    """Put the factors of a front where they stay."""
    b, w = p.b, front.width
    exchanges, square, beside, below = p.parts_of_factor(front)
    with b.loop(w) as rows:
        i = rows.index
        exchanges.at(i).store(b.convert("sitofp", p.exchanges.at(i).load(), F64))
        with b.loop(w) as cells:
            square.at(i * w + cells.index).store(full.at(i, cells.index).load())
        with b.loop(front.rest) as cells:
            beside.at(i * front.long + cells.index).store(full.at(i, w + cells.index).load())
        with b.loop(front.long, front.rest) as cells:
            for part in (beside, below):
                part.at(i * front.long + cells.index).store(p.number(0.0))
    with b.loop(front.rest) as rows, b.loop(w) as cells:
        x = full.at(w + rows.index, cells.index).load()
        below.at(cells.index * front.long + rows.index).store(x)
        with b.when(b.compare("ugt", p.magnitude(x), p.number(LARGEST))):
            bad.store(1)


def keep_rest(p: FrontProblem, front: Described, full: Matrix) -> None:
    """Put what a front leaves to the next where it is kept, which is not behind where it stands."""
    b, w = p.b, front.width
    kept = p.room.at(front.kept)
    with b.loop(front.rest) as rows:
        source, target = full.at(w + rows.index, w), kept.at(rows.index * front.long)
        with b.loop(front.rest) as cells:
            target.at(cells.index).store(source.at(cells.index).load())


# Solutions


def solve(p: FrontProblem) -> None:
    """Solve A X = B or A^T X = B by the factors of A."""
    b, right, x = p.b, p.matrices[1], p.matrices[3]
    transposed = p.fields.get("backward").differs(0)
    p.size = p.fields.get("length")
    p.copy(x, right, p.columns)
    with b.loop(p.columns) as each:
        side = Matrix(x.at(p.zero, each.index), x.row, p.one)
        with b.when(transposed) as plain:
            substitute_transposed(p, side)
        with plain:
            substitute(p, side)


@contextmanager
def local_rows(p: FrontProblem, n: Value, x: Matrix) -> Iterator[tuple[Described, Value]]:
    """Take the rows of a front side by side, with zeros behind them, for what follows, and put them back.

    Yields:
        the front, and where its rows are.
    """
    b, front, rows = p.b, p.describe_front(n), p.room
    zero = b.constant(p.functions.vector, 0.0)
    with b.loop(front.size) as lines:
        rows.at(lines.index).store(x.at(p.number_at(front.rows.at(lines.index)), p.zero).load())
    end = rows.at(front.size)
    for start in range(0, WHOLE, p.lanes):
        p.vector(end.at(start)).store(zero)
    yield front, rows
    with b.loop(front.size) as lines:
        x.at(p.number_at(front.rows.at(lines.index)), p.zero).store(rows.at(lines.index).load())


def subtract_line(p: FrontProblem, target: Value, line: Value, factor: Value, count: Value) -> None:
    """Subtract a multiple of a line of the factors, made longer, from rows."""
    factors = -p.b.spread(factor, p.lanes)

    def write(at: Value) -> None:
        place = p.vector(target.at(at))
        place.store(p.functions.add_product(p.b, factors, p.vector(line.at(at)).load(), place.load()))

    p.in_vectors(count, write)


def product_with_line(p: FrontProblem, rows: Value, line: Value, count: Value) -> Value:
    """Return the product of rows with a line of the factors, made longer."""
    b, vector = p.b, p.functions.vector
    with b.loop(count, carry=[b.constant(vector, 0.0)], step=p.lanes) as cells:
        one, other = (p.vector(x.at(cells.index)).load() for x in (rows, line))
        cells.next(p.functions.add_product(b, one, other, cells.values[0]))
    return p.functions.sum_lanes(b, cells.results[0])


def less_products(p: FrontProblem, rows: Value, i: Value, start: Value, stop: Value, line: Value, step: Value) -> Value:
    """Return a row less products of others with elements of a square, so far apart."""
    with p.b.loop(stop, start, carry=[rows.at(i).load()]) as terms:
        x = rows.at(terms.index).load() * line.at(terms.index * step).load()
        terms.next(terms.values[0] - x)
    return terms.results[0]


def exchange(p: FrontProblem, front: Described, rows: Value, exchanges: Value, backward: bool) -> None:
    """Exchange rows as elimination did, or undo that."""
    b = p.b
    with b.loop(front.width) as steps:
        k = front.width - 1 - steps.index if backward else steps.index
        number = exchanges.at(k).load()
        number = b.select(b.compare("oge", number, 0), number, p.number(0.0))  # of factors that are NaN
        other = b.convert("fptosi", number, I64)
        one, another = rows.at(k).load(), rows.at(other).load()
        rows.at(k).store(another)
        rows.at(other).store(one)


def substitute(p: FrontProblem, x: Matrix) -> None:
    """Solve A x = b in the place of b."""
    b, count = p.b, p.fields.get("fronts")
    with b.loop(count) as steps, local_rows(p, steps.index, x) as (front, rows):
        exchanges, square, _, below = p.parts_of_factor(front)
        w = front.width
        exchange(p, front, rows, exchanges, backward=False)
        with b.loop(w) as own:
            k = own.index
            value = less_products(p, rows, k, p.zero, k, square.at(k * w), p.one)
            rows.at(k).store(value)
            subtract_line(p, rows.at(w), below.at(k * front.long), value, front.long)
    with b.loop(count) as steps, local_rows(p, count - 1 - steps.index, x) as (front, rows):
        _, square, beside, _ = p.parts_of_factor(front)
        w = front.width
        with b.loop(w) as own:
            k = w - 1 - own.index
            line = square.at(k * w)
            value = less_products(p, rows, k, k + 1, w, line, p.one)
            value = value - product_with_line(p, rows.at(w), beside.at(k * front.long), front.long)
            rows.at(k).store(value / line.at(k).load())


def substitute_transposed(p: FrontProblem, x: Matrix) -> None:
    """Solve A^T x = b in the place of b."""
    b, count = p.b, p.fields.get("fronts")
    with b.loop(count) as steps, local_rows(p, steps.index, x) as (front, rows):
        _, square, beside, _ = p.parts_of_factor(front)
        w = front.width
        with b.loop(w) as own:
            k = own.index
            value = less_products(p, rows, k, p.zero, k, square.at(k), w) / square.at(k * w + k).load()
            rows.at(k).store(value)
            subtract_line(p, rows.at(w), beside.at(k * front.long), value, front.long)
    with b.loop(count) as steps, local_rows(p, count - 1 - steps.index, x) as (front, rows):
        exchanges, square, _, below = p.parts_of_factor(front)
        w = front.width
        with b.loop(w) as own:
            k = w - 1 - own.index
            value = less_products(p, rows, k, k + 1, w, square.at(k), w)
            rows.at(k).store(value - product_with_line(p, rows.at(w), below.at(k * front.long), front.long))
        exchange(p, front, rows, exchanges, backward=True)


SOLVERS: dict[str, tuple[Callable[[FrontProblem], None], tuple[int, int]]] = {
    "front_factors": (factorise, (1, 2)),
    "front_solution": (solve, (2, 0)),
}
"""What computes each routine; of its operands and results which are the table and the factors."""


def is_of_fronts(routine: str) -> bool:
    """Tell whether a routine goes from front to front."""
    return routine in SOLVERS


def front_kernel(name: str, target: Target) -> NativeFunction:
    """Return the kernel of a name: "fronts.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    (solver, places), functions = SOLVERS[own], Eliminations(dtype, target)
    count = 3 if own == "front_factors" else 4
    return kernel_of_each(name, count, lambda ps, i: solver(FrontProblem(ps, functions, places, i)))
