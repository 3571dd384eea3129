"""The tiles of products of matrices: what is computed of a result while its sums stay in registers.

There is a function for each tile, that is for each number of rows and of vectors, or columns; the last vector of a row
has a mask, which costs nothing where processors have masks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from wengert.emission.products.product_plans import most_dots, most_rows
from wengert.emission.products.tiled_functions import TiledFunctions
from wengert.native.builder import Builder
from wengert.native.functions import NativeFunction
from wengert.native.structs import I64, Type
from wengert.native.values import Value
from wengert.support.caches import cached

UNROLLED = 2
"""Terms that a round of a tile adds."""
FAR = 16
"""Terms of a tile from which on what it writes is brought into the cache ahead."""
AHEAD = 8
"""Terms that tiles which pack bring into the cache ahead."""


class ProductTiles(TiledFunctions):
    """Write the tiles of products of one dtype."""

    @cached
    def tiles(self) -> dict[tuple[int, int], NativeFunction]:
        """The tiles, by their vectors and rows."""
        sizes = [(vectors, rows) for vectors, most in most_rows(self.target).items() for rows in range(1, most + 1)]
        return {size: self.tile(*size) for size in sorted(sizes)}

    @cached
    def first_tiles(self) -> dict[tuple[int, int], NativeFunction]:
        """The tiles that pack the columns of the right factor which they read, by their vectors and rows.

        They have as many rows as those of most vectors have in a plan, of which the last panel may have fewer.
        """
        sizes = {(v, rows) for vectors, rows in most_rows(self.target).items() for v in range(1, vectors + 1)}
        return {size: self.tile(*size, packs=True) for size in sorted(sizes)}

    @cached
    def parameters(self) -> dict[str, Type]:
        """The parameters of tiles, and two more of those that pack."""
        return {
            "left": self.address,
            "left_row": I64,
            "left_term": I64,
            "right": self.address,
            "right_term": I64,
            "into": self.address,
            "into_row": I64,
            "addend": self.address,
            "addend_row": I64,
            "terms": I64,
            "last": I64,  # columns in the last vector
            "packed": self.address,
            "width": I64,  # elements from one term to the next there
        }

    def tile(self, vectors: int, rows: int, packs: bool = False) -> NativeFunction:
        """Return the function that computes so many rows and vectors of a result.

        Args:
            vectors: in each of its rows.
            rows: how many.
            packs: whether it puts the vectors of the right factor side by side for the tiles below it. Its products
                hide what that takes.
        """

        def body(b: Builder, *arguments: Value) -> None:
            left, left_row, left_term, right, right_term, into, into_row, *rest = arguments
            addend, addend_row, terms, last, *own_panel = rest
            mask = b.compare("slt", b.numbers(I64, range(self.lanes)), b.spread(last, self.lanes))

            def row_of(place: Value) -> list[Value]:
                own = [place.at(v * self.lanes).to(self.vector) for v in range(vectors)]
                return [*[x.load() for x in own[:-1]], own[-1].load_where(mask)]

            def term(sums: Sequence[Value], at: Value) -> list[Value]:
                own = row_of(right.at(at * right_term))
                if packs:
                    pack(own, at, *own_panel)
                found = []
                for r, place in enumerate(rows_of(b, left.at(at * left_term), left_row, rows)):
                    x = b.spread(place.load(), self.lanes)
                    found += [self.add_product(b, x, y, sums[r * vectors + v]) for v, y in enumerate(own)]
                return found

            def pack(own: Sequence[Value], at: Value, packed: Value, width: Value) -> None:
                for v, x in enumerate(own):
                    packed.at(at * width).at(v * self.lanes).to(self.vector).store(x)
                    right.at((at + AHEAD) * right_term).at(v * self.lanes).bring(written=False)

            with b.when(terms >= FAR):
                for place in self.places(into, into_row, rows, vectors):
                    place.bring(written=True)
            sums = self.total(b, terms, rows * vectors, term)

            def with_addend() -> list[Value]:
                own = [x for r in range(rows) for x in row_of(addend.at(addend_row * r) if r else addend)]
                return [x + y for x, y in zip(sums, own, strict=True)]

            found = b.either(addend.differs(None), with_addend, lambda: sums)
            self.store(found, self.places(into, into_row, rows, vectors), vectors, mask)

        names = tuple(self.parameters)[: None if packs else -2]
        kinds = tuple([self.parameters[name] for name in names])
        return self.function(f"{'first' * packs}tile{vectors}x{rows}", kinds, body, names)

    @cached
    def dots(self) -> dict[tuple[int, int], NativeFunction]:
        """The tiles whose vectors run along terms, by their columns and rows."""
        sizes = range(1, most_dots(self.target) + 1)
        return {(c, r): self.dot(c, r) for c in sizes for r in sizes}

    def dot(self, columns: int, rows: int) -> NativeFunction:
        """Return the function that computes so many columns and rows of a result: sums across lanes."""
        kinds = (self.address, I64, self.address, I64, self.address, I64, self.address, I64, I64)

        def body(
            b: Builder,
            left: Value,
            left_row: Value,
            right: Value,
            right_column: Value,
            into: Value,
            into_row: Value,
            addend: Value,
            addend_row: Value,
            terms: Value,
        ) -> None:
            numbers, whole = b.numbers(I64, range(self.lanes)), terms - terms % self.lanes

            def add_products(sums: Sequence[Value], index: Value, mask: Value | None = None) -> list[Value]:
                def load(place: Value) -> Value:
                    own = place.at(index).to(self.vector)
                    return own.load() if mask is None else own.load_where(mask)

                xs = list(map(load, rows_of(b, left, left_row, rows)))
                ys = list(map(load, rows_of(b, right, right_column, columns)))
                pairs = zip(((x, y) for x in xs for y in ys), sums, strict=True)
                return [self.add_product(b, x, y, total) for (x, y), total in pairs]

            with b.loop(whole, carry=[b.constant(self.vector, 0)] * (rows * columns), step=self.lanes) as loop:
                loop.next(*add_products(loop.values, loop.index))
            with b.loop(terms, whole, carry=loop.results, step=self.lanes) as loop:
                mask = b.spread(loop.index, self.lanes) + numbers < b.spread(terms, self.lanes)
                loop.next(*add_products(loop.values, loop.index, mask))
            found = [self.sum_lanes(b, total) for total in loop.results]
            places = [place.at(c) for place in rows_of(b, addend, addend_row, rows) for c in range(columns)]

            def with_addend() -> list[Value]:
                return [x + place.load() for x, place in zip(found, places, strict=True)]

            results = b.either(addend.differs(None), with_addend, lambda: found)
            for n, x in enumerate(results):
                into.at(into_row * (n // columns)).at(n % columns).store(x)

        return self.function(f"dot{columns}x{rows}", kinds, body)

    def places(self, first: Value, row: Value, rows: int, vectors: int) -> list[Value]:
        """Return the addresses of the vectors of a tile."""
        return [
            place.at(v * self.lanes).to(self.vector)
            for place in [first.at(row * r) if r else first for r in range(rows)]
            for v in range(vectors)
        ]

    def store(self, found: Sequence[Value], places: Sequence[Value], vectors: int, mask: Value) -> None:
        """Store the vectors of a tile, the last of each row where a mask is set."""
        for number, (place, x) in enumerate(zip(places, found, strict=True), 1):
            if number % vectors:
                place.store(x)
            else:
                place.store_where(x, mask)

    def total(
        self, b: Builder, terms: Value, count: int, term: Callable[[Sequence[Value], Value], list[Value]]
    ) -> list[Value]:
        """Write the loop over terms, which are added to some vectors; return these."""
        whole = terms - terms % UNROLLED
        with b.loop(whole, carry=[b.constant(self.vector, 0)] * count, step=UNROLLED) as loop:
            found: Sequence[Value] = loop.values
            for ahead in range(UNROLLED):
                found = term(found, loop.index + ahead)
            loop.next(*found)
        with b.loop(terms, whole, carry=loop.results) as loop:
            loop.next(*term(loop.values, loop.index))
        return loop.results


def rows_of(b: Builder, first: Value, step: Value, count: int) -> list[Value]:
    """Return the addresses of rows, so written that most become parts of instructions: steps of 1 and 2, and a base."""
    found: list[Value] = []
    steps = [step, b.new(I64, f"shl {step}, 1"), step * 3]
    for r in range(count):
        found.append(found[r - r % 4].at(steps[r % 4 - 1]) if r % 4 else found[r - 4].at(step * 4) if r else first)
    return found
