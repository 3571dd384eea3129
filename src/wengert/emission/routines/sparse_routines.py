"""Products with sparse matrices whose pattern is known before: kernels that go from line to line.

A line is a row of what is stored by rows, a column of what is stored by columns. A table says where the elements of
each line begin, and then where each element stands in its line. What is gathered makes a line of the product, so that
threads share these; what lines are scattered to is one thread's. Terms are added and rounded as SciPy does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from wengert.emission.routines.matrix_problems import ElementParts, Matrix, Problems, element_product
from wengert.emission.routines.matrix_routines import kernel_of
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import F32, F64, I32, I64, vector_of
from wengert.native.values import Stored, Value
from wengert.support.records import NamedTuple

SPARSE = "sparse"
"""What the names of these kernels begin with: "sparse.gathered_lines.float64"."""
DTYPES = {"float32": (F32, 1), "float64": (F64, 1), "complex64": (F32, 2), "complex128": (F64, 2)}
"""The type of real numbers, and how many an element is, by dtype."""
TILE = 4
"""Vectors of a line that stay in registers while elements are read."""


class Line(NamedTuple):
    """Be a line of a matrix: its number, that of its first element, and that of the one behind its last."""

    number: Value
    first: Value
    last: Value


class Tile(NamedTuple):
    """Be some vectors of columns: the number of the first real number, of vectors, and those of the last that count."""

    start: Value
    vectors: int
    mask: Value | None

    def addresses(self, place: Value, lanes: int, kind: Stored) -> list[Value]:
        """Return the addresses of these vectors in a row."""
        return [place.at(self.start).at(n * lanes).to(kind) for n in range(self.vectors)]

    def load(self, places: Sequence[Value]) -> list[Value]:
        """Return the vectors at some addresses."""
        return [place.load() if self.mask is None else place.load_where(self.mask) for place in places]

    def store(self, places: Sequence[Value], vectors: Sequence[Value]) -> None:
        """Store vectors at some addresses."""
        for place, x in zip(places, vectors, strict=True):
            if self.mask is None:
                place.store(x)
            else:
                place.store_where(x, self.mask)


class SparseLines(ElementParts):
    """Be a share of the lines of a sparse matrix.

    Attributes:
        b: writes the function.
        lanes, vector: how many real numbers a vector has, and its type.
        columns: those of arrays.
        matrices: the operands before the table, and the result.
        table, places: its address, and that of where elements stand in their lines.
    """

    def __init__(self, problems: Problems, dtype: str, target: Target) -> None:
        self.problems, self.b = problems, problems.b
        self.scalar, self.parts = DTYPES[dtype]
        self.lanes = target.vector_bytes * 8 // self.scalar.bits
        self.vector = vector_of(self.scalar, self.lanes)
        self.columns = problems.fields.get("columns")
        kind: Stored = self.scalar if self.parts == 1 else vector_of(self.scalar, self.parts)
        first, second, table, result = problems.matrices((kind, kind, I32, kind), self.b.constant(I64, 0))
        self.matrices, self.table = (first, second, result), table.first
        self.places = self.table.at(problems.fields.get("count") + 1)

    @contextmanager
    def lines(self) -> Iterator[Line]:
        """Go through the lines of this share."""
        with self.b.loop(self.problems.last, self.problems.first) as lines:
            start = self.table.at(lines.index)
            yield Line(lines.index, self.number_at(start), self.number_at(start.at(1)))

    def number_at(self, place: Value) -> Value:
        """Return a whole number of the table, by its address."""
        found: Value = place.load().widen(I64)
        return found

    def where(self, element: Value) -> Value:
        """Return where an element stands in its line."""
        return self.number_at(self.places.at(element))

    def zeros(self) -> list[Value]:
        """Return an element that is zero."""
        return [self.b.constant(self.scalar, 0.0)] * self.parts

    def lie_in_vectors(self, *matrices: Matrix) -> Value:
        """Return whether there are several columns, side by side in each of some matrices."""
        found = self.columns > 1
        for matrix in matrices:
            found = found & matrix.column.equals(1)
        return found

    @contextmanager
    def each_column(self) -> Iterator[Value]:
        """Go through the columns, of which there is one at least."""
        with self.b.loop(self.columns, certain=True) as cells:
            yield cells.index

    def for_tiles(self, write: Callable[[Tile], None]) -> None:
        """Write what is done for some columns after the others: as many vectors as a tile has, one, and a part."""
        b, wide = self.b, TILE * self.lanes
        count = self.columns * self.parts
        whole, single = count - count % wide, count - count % self.lanes
        for start, stop, vectors in ((b.constant(I64, 0), whole, TILE), (whole, single, 1)):
            with b.loop(stop, start, step=vectors * self.lanes) as tiles:
                write(Tile(tiles.index, vectors, None))
        with b.when(single < count):
            left = b.spread(b.convert("trunc", count - single, I32), self.lanes)
            write(Tile(single, 1, b.compare("slt", b.numbers(I32, range(self.lanes)), left)))

    def products(self, element: Sequence[Value], vectors: Sequence[Value]) -> list[Value]:
        """Return the products of an element and vectors; of complex numbers, pairs side by side."""
        first, *rest = [self.b.spread(x, self.lanes) for x in element]
        if not rest:
            return [first * x for x in vectors]
        turned = [n ^ 1 for n in range(self.lanes)]
        signs = self.b.numbers(self.scalar, [-1, 1] * (self.lanes // 2))
        return [first * x + rest[0] * signs * self.b.shuffle(x, turned) for x in vectors]


def sums(x: Sequence[Value], y: Sequence[Value]) -> list[Value]:
    """Return the sums of numbers."""
    return [a + c for a, c in zip(x, y, strict=True)]


def gather_lines(p: SparseLines) -> None:
    """Compute each line of a product: the sum of its elements times the rows of a factor where they stand."""
    b, (data, x, y) = p.b, p.matrices
    zero = b.constant(p.vector, 0.0)
    with b.when(p.lie_in_vectors(x, y)) as otherwise, p.lines() as line:

        def write(tile: Tile) -> None:
            with b.loop(line.last, line.first, carry=[zero] * tile.vectors) as terms:
                row = x.at(p.where(terms.index), b.constant(I64, 0)).to(p.scalar)
                found = p.products(
                    p.parts_of(data.first.at(terms.index)), tile.load(tile.addresses(row, p.lanes, p.vector))
                )
                terms.next(*sums(terms.values, found))
            place = y.at(line.number, b.constant(I64, 0)).to(p.scalar)
            tile.store(tile.addresses(place, p.lanes, p.vector), terms.results)

        p.for_tiles(write)
    with otherwise, p.lines() as line, p.each_column() as column:
        side = x.first.at(column * x.column)
        with b.loop(line.last, line.first, carry=p.zeros()) as terms:
            factor = p.parts_of(side.at(p.where(terms.index) * x.row))
            terms.next(*sums(terms.values, element_product(p.parts_of(data.first.at(terms.index)), factor)))
        p.put(y.at(line.number, column), terms.results)


def scatter_lines(p: SparseLines) -> None:
    """Compute a product with the transpose: add each line of a factor where elements of the line stand, times these."""
    b, (data, x, y) = p.b, p.matrices
    with b.loop(p.problems.fields.get("rows") * p.columns) as cells:
        p.put(y.first.at(cells.index), p.zeros())
    with b.when(p.lie_in_vectors(x, y)) as otherwise, p.lines() as line:

        def write(tile: Tile) -> None:
            row = x.at(line.number, b.constant(I64, 0)).to(p.scalar)
            factor = tile.load(tile.addresses(row, p.lanes, p.vector))
            with b.loop(line.last, line.first) as terms:
                place = y.at(p.where(terms.index), b.constant(I64, 0)).to(p.scalar)
                places = tile.addresses(place, p.lanes, p.vector)
                found = p.products(p.parts_of(data.first.at(terms.index)), factor)
                tile.store(places, sums(tile.load(places), found))

        p.for_tiles(write)
    with otherwise, p.lines() as line, p.each_column() as column:
        factor, side = p.parts_of(x.at(line.number, column)), y.first.at(column * y.column)
        with b.loop(line.last, line.first) as terms:
            place = side.at(p.where(terms.index) * y.row)
            p.put(place, sums(p.parts_of(place), element_product(p.parts_of(data.first.at(terms.index)), factor)))


def sample_lines(p: SparseLines) -> None:
    """Compute the elements of L R^T where a matrix has some, whose lines belong to the rows of L."""
    b, (left, right, found) = p.b, p.matrices
    with p.lines() as line, p.each_column() as column:
        factor, is_first = p.parts_of(left.at(line.number, column)), column.equals(0)
        side = right.first.at(column * right.column)
        with b.loop(line.last, line.first) as terms:
            place = found.first.at(terms.index)
            more = element_product(factor, p.parts_of(side.at(p.where(terms.index) * right.row)))
            totals = zip(more, sums(p.parts_of(place), more), strict=True)
            p.put(place, [b.select(is_first, x, total) for x, total in totals])


WRITERS: dict[str, Callable[[SparseLines], None]] = {
    "gathered_lines": gather_lines,
    "scattered_lines": scatter_lines,
    "sampled_lines": sample_lines,
}
"""What computes each routine: of elements, a factor and the table, or of both factors and the table, the result."""


def sparse_kernel(name: str, target: Target) -> NativeFunction:
    """Return the kernel of a name: "sparse.", the routine, "." and the dtype."""
    _, own, dtype = name.split(".")
    return kernel_of(name, 4, lambda problems: WRITERS[own](SparseLines(problems, dtype, target)))
