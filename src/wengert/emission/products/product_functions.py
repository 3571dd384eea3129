"""Products of matrices of all sizes by one function for each dtype, which is compiled once.

Sizes, steps and blocks stand in the arena (`product_plans`), so nothing is compiled for a graph. What computes parts of
a result is chosen while it runs (`product_tiles`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from wengert.emission.products.product_plans import LEVELS, OPERANDS, OWN_PANELS, PRODUCT, SHARED_PANELS
from wengert.emission.products.product_tiles import ProductTiles
from wengert.emission.products.tiled_functions import SQUARE
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction
from wengert.native.structs import I8, I64, POINTER, Pointer, Struct
from wengert.native.threads.job_tables import JOB, SHARED
from wengert.native.threads.jobs import share
from wengert.native.values import Value
from wengert.support.caches import cached

PRODUCTS = "product"
"""What the names of these functions begin with: "product.matrices.float64"."""
BLOCK = Struct(
    "Block",
    fields=Pointer(PRODUCT),
    left=POINTER,  # of the first row and term of the block
    right=POINTER,  # of its first term and column
    into=POINTER,
    into_row=I64,
    addend=POINTER,  # or none
    addend_row=I64,
    work=POINTER,  # where is packed
    team=Pointer(SHARED),  # or none
    first=I64,  # of the columns in the result
    columns=I64,
    terms=I64,
)
"""What the parts of a block have in common: all rows, and some columns and terms."""
STACK = Struct("Stack", addresses=Pointer(POINTER), fields=Pointer(PRODUCT))
"""What the parts of a stack have in common."""


def product(name: str, target: Target) -> NativeFunction:
    """Return the function of a name: "product.matrices." and the dtype."""
    return ProductFunctions(name.rpartition(".")[2], target).whole(name)


def multiples(length: Value, of: Value) -> Value:
    """Return how many blocks of a length there are in another."""
    return (length + of - 1) // of


class ProductFunctions(ProductTiles):
    """Write the functions of products of one dtype."""

    # ---------------------------------------------------------------- blocks

    @cached
    def panels_job(self) -> NativeFunction:
        """The job that packs panels of the right factor: as many columns as a tile has."""

        def body(b: Builder, table: Value, first: Value, last: Value) -> None:
            block = table.to(BLOCK)
            fields, columns, terms = block.get("fields"), block.get("columns"), block.get("terms")
            wide, right_term, right_column = (fields.get(x) for x in ("tile_columns", "right_term", "right_column"))
            right, work = (block.get(x).to(self.scalar) for x in ("right", "work"))
            with b.loop(last, first) as each:
                column = each.index * wide
                source, lines = right.at(column * right_column), b.least(wide, columns - column)
                b.do(self.pack, source, right_term, right_column, lines, wide, terms, work.at(column * terms))

        return NativeFunction(f"panels.{self.dtype}", JOB, body)

    @cached
    def blocks_job(self) -> NativeFunction:
        """The job that computes blocks of rows and columns of a result, with memory of their own."""

        def body(b: Builder, table: Value, first: Value, last: Value) -> None:
            block = table.to(BLOCK)
            fields, columns = block.get("fields"), block.get("columns")
            height, width = fields.get("block_rows"), fields.get("block_columns")
            side = multiples(columns, width)
            with b.loop(last, first) as each:
                row, column = each.index // side * height, each.index % side * width
                rows = b.least(height, fields.get("rows") - row)
                own = block.get("work").to(self.scalar).at(fields.get("shared") + each.index * fields.get("panel"))
                with b.when(fields.get("across").differs(0)) as otherwise:
                    self.compute_across(b, block, row, rows, column, b.least(width, columns - column))
                with otherwise:
                    self.compute(b, block, row, rows, column, b.least(width, columns - column), own)

        return NativeFunction(f"blocks.{self.dtype}", JOB, body)

    def compute(
        self, b: Builder, block: Value, row: Value, rows: Value, column: Value, columns: Value, work: Value
    ) -> None:
        """Write what computes a block of a result: all rows of some columns, that is a panel, after the other."""
        fields, terms = block.get("fields"), block.get("terms")
        names = "left_row", "left_term", "right_term", "right_column", "tile_rows", "tile_columns"
        left_row, left_term, right_term, right_column, tall, wide = (fields.get(x) for x in names)
        left, right, into, addend = (block.get(x).to(self.scalar) for x in ("left", "right", "into", "addend"))
        mirrors, above = fields.get("mirrors").differs(0), block.get("first") - row
        packs_left, packs_right = fields.get("packs_left").differs(0), fields.get("packs_right")
        into_row, addend_row = block.get("into_row"), block.get("addend_row")
        one, panels = b.constant(I64, 1), block.get("work").to(self.scalar)
        is_shared, packs = packs_right.equals(SHARED_PANELS), packs_right.equals(OWN_PANELS)
        is_turned = packs & right_column.differs(1)
        first = b.select(packs & right_column.equals(1) & (rows >= tall), tall, 0)
        is_packed = is_shared | is_turned | first.differs(0)
        left = left.at(row * left_row)
        packed = work.at(b.select(packs, wide * fields.get("block_terms"), 0))
        with b.when(packs_left):
            self.pack_rows(b, fields, left, rows, terms, packed)
        step, own_row, left_term = (
            b.select(packs_left, x, y) for x, y in ((terms, left_row), (one, left_row), (tall, left_term))
        )
        left = b.select(packs_left, packed, left)
        into = into.at(row * into_row)
        from_addend = addend.differs(None)
        addend = b.select(from_addend, addend.at(row * addend_row), addend)
        with b.loop(column + columns, column) as j:
            j.step = wide
            lines = b.least(wide, column + columns - j.index)
            vectors = multiples(lines, b.constant(I64, self.lanes))
            last = lines - (vectors - 1) * self.lanes
            source = right.at(j.index * right_column)
            with b.when(is_turned):
                b.do(self.pack, source, right_term, right_column, lines, wide, terms, work)

            def arguments(i: Value, source: Value, right_term: Value) -> list[Value]:
                start = b.select(from_addend, addend.at(i * addend_row).at(j.index), addend)
                factors = left.at(i * step), own_row, left_term, source, right_term
                return [*factors, into.at(i * into_row).at(j.index), into_row, start, addend_row, terms, last]

            with b.when(first.differs(0)):
                own = arguments(b.constant(I64, 0), source, right_term)
                call_tile(b, self.first_tiles, vectors, tall, [*own, work, wide])
            panel = b.select(is_shared, panels.at(j.index * terms), work)
            source, own_term = b.select(is_packed, panel, source), b.select(is_packed, wide, right_term)
            own_rows = above + j.index  # what lies before the diagonal is that beside it
            whole = b.select(mirrors & (own_rows > first), own_rows // tall * tall, first)
            with b.loop(rows, whole) as i:
                i.step = tall
                rest = b.least(tall, rows - i.index)
                call_tile(b, self.tiles, vectors, rest, arguments(i.index, source, own_term))

    def compute_across(self, b: Builder, block: Value, row: Value, rows: Value, column: Value, columns: Value) -> None:
        """Write what computes a block of a result by sums across lanes."""
        fields, into_row, addend_row = (block.get(x) for x in ("fields", "into_row", "addend_row"))
        left, right, into, addend = (block.get(x).to(self.scalar) for x in ("left", "right", "into", "addend"))
        left_row, right_column = fields.get("left_row"), fields.get("right_column")
        with b.loop(column + columns, column) as j:
            j.step = fields.get("tile_columns")
            lines = b.least(j.step, column + columns - j.index)
            with b.loop(row + rows, row) as i:
                i.step = fields.get("tile_rows")
                start = b.select(addend.differs(None), addend.at(i.index * addend_row).at(j.index), addend)
                call_tile(
                    b,
                    self.dots,
                    lines,
                    b.least(i.step, row + rows - i.index),
                    [
                        left.at(i.index * left_row),
                        left_row,
                        right.at(j.index * right_column),
                        right_column,
                        into.at(i.index * into_row).at(j.index),
                        into_row,
                        start,
                        addend_row,
                        block.get("terms"),
                    ],
                )

    def pack_rows(self, b: Builder, fields: Value, left: Value, rows: Value, terms: Value, packed: Value) -> None:
        """Write what packs rows of the left factor, as many as a tile has side by side."""
        left_row, left_term, tall = (fields.get(x) for x in ("left_row", "left_term", "tile_rows"))
        with b.loop(rows, step=1) as i:
            i.step = tall
            lines, source = b.least(tall, rows - i.index), left.at(i.index * left_row)
            b.do(self.pack, source, left_term, left_row, lines, tall, terms, packed.at(i.index * terms))

    @cached
    def matrices(self) -> NativeFunction:
        """The function that computes one product of matrices, block by block of columns and terms."""
        kinds = (Pointer(PRODUCT), *(self.address,) * 4, I64, POINTER, Pointer(SHARED))

        def body(
            b: Builder,
            fields: Value,
            left: Value,
            right: Value,
            into: Value,
            addend: Value,
            addend_row: Value,
            work: Value,
            team: Value,
        ) -> None:
            names = "columns", "terms", "panel_columns", "block_terms", "block_rows", "block_columns", "tile_columns"
            columns, terms, width, depth, tall, wide, tile = (fields.get(x) for x in names)
            rows, one, result, result_row = fields.get("rows"), b.constant(I64, 1), into, fields.get("into_row")
            transposed_row, transpose = fields.get("transposed_row"), work.to(self.scalar).at(fields.get("transposed"))
            turns, adds = transposed_row.differs(0), addend.differs(None)
            with b.when(turns & adds):
                b.do(self.pack, addend, one, addend_row, columns, transposed_row, rows, transpose)
            into, into_row = b.select(turns, transpose, into), b.select(turns, transposed_row, result_row)
            addend, addend_row = b.select(turns & adds, transpose, addend), b.select(turns, transposed_row, addend_row)
            block, team_if = b.stack(BLOCK), b.select(fields.get("blocks").equals(1), b.constant(team.type, None), team)
            block.set("fields", fields)
            block.set("work", work)
            block.set("into_row", into_row)
            argument = block.as_address()
            with b.loop(columns) as j:
                j.step = width
                own = b.least(width, columns - j.index)
                block.set("first", j.index)
                block.set("columns", own)
                block.set("into", into.at(j.index).as_address())
                with b.loop(terms) as p:
                    p.step = depth
                    is_first = p.index.equals(0)
                    block.set("terms", b.least(depth, terms - p.index))
                    block.set("left", left.at(p.index * fields.get("left_term")).as_address())
                    place = right.at(p.index * fields.get("right_term")).at(j.index * fields.get("right_column"))
                    block.set("right", place.as_address())
                    start = b.select(adds, addend.at(j.index), addend)
                    block.set("addend", b.select(is_first, start, into.at(j.index)).as_address())
                    block.set("addend_row", b.select(is_first, addend_row, into_row))
                    with b.when(fields.get("packs_right").equals(SHARED_PANELS)):
                        b.do(share, team_if, self.panels_job, argument, multiples(own, tile))
                    blocks = multiples(rows, tall) * multiples(own, wide)
                    b.do(share, team_if, self.blocks_job, argument, blocks)
            with b.when(fields.get("mirrors").differs(0)), b.loop(columns) as j:
                j.step = tile
                own = b.least(tile, columns - j.index)
                corner = into.at(j.index * into_row).at(j.index)
                b.do(self.pack, corner, one, into_row, columns - j.index, into_row, own, corner)
            with b.when(turns):
                b.do(self.pack, into, one, into_row, rows, result_row, columns, result)

        return self.function("matrices", kinds, body)

    # ---------------------------------------------------------------- stacks

    @cached
    def stack(self) -> NativeFunction:
        """The function that computes some of a stack of products: those from one place of the outermost level on."""
        kinds = (Pointer(PRODUCT), *(self.address,) * 4, POINTER, Pointer(SHARED), I64, I64)

        def body(
            b: Builder,
            fields: Value,
            left: Value,
            right: Value,
            into: Value,
            addend: Value,
            work: Value,
            team: Value,
            first: Value,
            last: Value,
        ) -> None:
            def level(n: int, places: list[Value], adds: Value) -> None:
                if n == LEVELS:
                    into, addend = places[2:]
                    given = b.select(addend_given, addend, none)
                    start = b.select(adds, into, given)
                    step = b.select(adds, fields.get("into_row"), fields.get("addend_row"))
                    b.do(self.matrices, fields, *places[:2], into, start, step, work, team)
                    return
                with b.loop(*((last, first) if n == 0 else (fields.get(f"count_{n}"), 0))) as each:
                    steps = [fields.get(f"{x}_{n}") for x in OPERANDS]
                    own = [place.at(each.index * step) for place, step in zip(places, steps, strict=True)]
                    level(n + 1, own, adds | (steps[2].equals(0) & each.index.differs(0)))

            none, addend_given = addend, addend.differs(None)
            level(0, [left, right, into, addend], b.constant(I64, 0).differs(0))

        return self.function("stack", kinds, body)

    @cached
    def parts_job(self) -> NativeFunction:
        """The job that computes parts of a stack, each with memory of its own."""

        def body(b: Builder, table: Value, first: Value, last: Value) -> None:
            fields = table.to(STACK).get("fields")
            count, parts = fields.get("count_0"), fields.get("parts")
            left, right, into, addend, work = self.operands(b, table.to(STACK).get("addresses"), fields)
            with b.loop(last, first) as each:
                own = work.at(each.index * fields.get("room")).as_address()
                start, stop = each.index * count // parts, (each.index + 1) * count // parts
                b.do(self.stack, fields, left, right, into, addend, own, None, start, stop)

        return NativeFunction(f"parts.{self.dtype}", JOB, body)

    def operands(self, b: Builder, addresses: Value, fields: Value) -> list[Value]:
        """Return the addresses of the factors, the result, what is added, and the memory for what is packed."""
        turned, adds = fields.get("is_turned"), fields.get("adds")
        places = turned, 1 - turned, 2 + adds
        found = [
            addresses.at(place).load().to(self.scalar).at(fields.get(f"{x}_start"))
            for place, x in zip(places, OPERANDS, strict=False)
        ]
        addend = addresses.at(2).load().to(self.scalar).at(fields.get("addend_start"))
        none = b.constant(self.address, None)
        return [*found, b.select(adds.differs(0), addend, none), fields.to(I8).at(fields.get("work")).to(self.scalar)]

    def whole(self, name: str) -> NativeFunction:
        """Return the function that programs call."""

        def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
            fields, own = arena.to(PRODUCT), team.to(SHARED)
            parts = fields.get("parts")
            with b.when(parts.equals(1)):
                left, right, into, addend, work = self.operands(b, addresses, fields)
                count = fields.get("count_0")
                b.do(self.stack, fields, left, right, into, addend, work.as_address(), own, 0, count)
                b.give()
            table = b.stack(STACK)
            table.set("addresses", addresses)
            table.set("fields", fields)
            b.do(share, own, self.parts_job, table.as_address(), parts)

        return NativeFunction(name, KERNEL, body)


def call_tile(
    b: Builder,
    tiles: Mapping[tuple[int, int], NativeFunction],
    vectors: Value,
    rows: Value,
    arguments: Sequence[Value],
) -> None:
    """Call the tile of some numbers of vectors and rows, which are found in a few comparisons."""
    size = vectors * (SQUARE * 2) + rows

    def choose(keys: Sequence[tuple[int, int]]) -> None:
        if len(keys) == 1:
            b.do(tiles[keys[0]], *arguments)
            return
        half = len(keys) // 2
        with b.when(size < keys[half][0] * SQUARE * 2 + keys[half][1]) as otherwise:
            choose(keys[:half])
        with otherwise:
            choose(keys[half:])

    choose(list(tiles))
