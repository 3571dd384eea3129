"""How a product of matrices is carried out: which of its dimensions are rows, columns and terms, and in which blocks.

The rows of a tile of the result, times the vectors along its columns, stay in registers while terms are added up (K.
Goto and R. van de Geijn, Anatomy of high-performance matrix multiplication, ACM Transactions on Mathematical Software
34, 2008). Factors are read where they are, but where vectors along the columns do not lie side by side, or where rows
come to lie in the same lines of the cache: these are packed, block by block.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from wengert.emission.parallel_split import lanes_of
from wengert.kernel.durations import cycles_of_product
from wengert.kernel.kernel import Product
from wengert.native.engine import Target
from wengert.native.structs import I64, Struct
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

LEVELS = 4
"""Dimensions besides rows, columns and terms, at most."""
OPERANDS = "left", "right", "into", "addend"
OWN_PANELS, SHARED_PANELS = 1, 2
"""Who packs the right factor: each block the panel that it computes with, or all before there are blocks."""

PRODUCT = Struct(
    "Product",
    rows=I64,  # of the result
    columns=I64,
    terms=I64,
    left_row=I64,  # elements of the left factor from one row to the next
    left_term=I64,
    right_term=I64,
    right_column=I64,
    into_row=I64,  # those of the result, whose columns lie side by side
    addend_row=I64,
    tile_rows=I64,  # rows of a tile
    tile_columns=I64,
    block_rows=I64,  # rows that are computed at once
    block_columns=I64,
    panel_columns=I64,  # columns that are computed for some of the terms before the next terms come
    block_terms=I64,
    packs_left=I64,  # whether the left factor is packed
    packs_right=I64,  # 0 if the right one is not, else OWN_PANELS or SHARED_PANELS
    across=I64,  # whether vectors run along the terms, and are added up across lanes
    shared=I64,  # elements of the panels that all blocks share
    panel=I64,  # elements from what one block has packed to what the next one has
    blocks=I64,  # of one product that threads share, at most; 1 if they do not
    parts=I64,  # parts that the outermost level is cut into, which threads share
    room=I64,  # elements of the memory of each part
    work=I64,  # bytes from here to that of the first
    is_turned=I64,  # whether the factors change places
    adds=I64,  # whether there is an addend
    mirrors=I64,  # whether the result is symmetric, of which only what lies at and below the diagonal is computed
    transposed_row=I64,  # elements of a row of the transpose, from which the result is written; 0 if it is no way
    transposed=I64,  # elements of the memory of a part before the transpose
    **{f"{what}_start": I64 for what in OPERANDS},  # elements before the first
    **{f"{what}_{i}": I64 for i in range(LEVELS) for what in ("count", *OPERANDS)},
)
"""What stands at the beginning of the arena; of each level its length, and elements from one to the next."""


class Axis(NamedTuple):
    """One dimension of a product: how long it is, and elements from one place to the next in each operand."""

    length: int
    left: int
    right: int
    into: int
    addend: int

    @property
    def steps(self) -> tuple[int, ...]:
        """Elements from one place to the next."""
        return self[1:]

    def with_sides_exchanged(self) -> Axis:
        """Return the axis with the steps of its factors exchanged."""
        return self._replace(left=self.right, right=self.left)


NONE = Axis(1, 0, 0, 1, 1)


class ProductShape(NamedTuple):
    """The dimensions of a product, by what they are.

    Attributes:
        rows, columns, terms: those of the matrices; `NONE` where there is none.
        levels: all others, those of sums last.
        is_turned: whether the factors change places.
    """

    rows: Axis
    columns: Axis
    terms: Axis
    levels: tuple[Axis, ...]
    is_turned: bool

    def transpose(self) -> ProductShape:
        """Return the dimensions of the transpose: rows and columns, and the factors, change places."""
        rows, columns, terms, *levels = [
            axis.with_sides_exchanged() for axis in (self.columns, self.rows, self.terms, *self.levels)
        ]
        return ProductShape(rows, columns, terms, tuple(levels), not self.is_turned)


def axes_of(product: Product) -> list[Axis]:
    """Return the dimensions of a product along which something changes, as few as they can be."""
    addend = product.at if product.addend_at is None else product.addend_at
    maps = [at.coefficients for at in (product.left_at, product.right_at, product.at, addend)]
    axes = [Axis(*own) for own in zip(product.extents, *maps, strict=True) if own[0] > 1]
    axes.sort(key=lambda axis: (abs(axis.into), abs(axis.left), abs(axis.right)), reverse=True)
    found: list[Axis] = []
    for axis in axes:
        outer = next((x for x in found if x.steps == tuple([step * axis.length for step in axis.steps])), None)
        if outer is not None:
            found.remove(outer)
            axis = axis._replace(length=axis.length * outer.length)
        found.append(axis)
    return found


def dimensions_of(product: Product) -> ProductShape:
    """Return what the dimensions of a product are."""
    axes = axes_of(product)

    def is_column(axis: Axis) -> bool:
        return axis.right != 0 and axis.left == 0 and axis.into != 0

    def beside(axes: Sequence[Axis]) -> list[Axis]:
        return [axis for axis in axes if is_column(axis) and axis.into == axis.addend == 1]

    turned = [axis.with_sides_exchanged() for axis in axes]
    is_turned = not beside(axes) and bool(beside(turned))
    axes = turned if is_turned else axes
    columns = max(beside(axes), default=NONE)
    rows = max([x for x in axes if x.left != 0 and x.right == 0 and x.into != 0], default=NONE)
    terms = max([x for x in axes if x.into == 0], default=NONE)
    others = [axis for axis in axes if all(axis is not x for x in (columns, rows, terms))]
    others.sort(key=lambda axis: (axis.into == 0, -axis.length))
    return ProductShape(rows, columns, terms, tuple(others), is_turned)


MIRRORED = 4
"""Tiles along the columns from which on half of a symmetric product is mirrored instead of being computed."""


PAGE = 4096
"""Bytes of memory whose address a processor looks up at once."""
MANY_PANELS = 16
"""Panels of columns from which on a left factor is packed if each of its terms lies in another page."""


def is_symmetric(product: Product, shape: ProductShape) -> bool:
    """Tell whether a product is that of a matrix with its transpose, bit for bit: its sums have the same order."""
    rows, columns, terms, levels, _ = shape
    return (
        (product.left, product.left_at.constant) == (product.right, product.right_at.constant)
        and product.addend_at is None
        and (rows.length, rows.left) == (columns.length, columns.right)
        and all(axis.left == axis.right for axis in (terms, *levels))
    )


def registers(target: Target) -> int:
    """Return how many vectors a processor holds."""
    return 32 if target.vector_bytes == 64 or not target.is_x86 else 16


def most_rows(target: Target) -> dict[int, int]:
    """Return how many rows tiles have at most, by their vectors."""
    return {3: 8, 2: 8, 1: 8} if registers(target) == 32 else {3: 4, 2: 6, 1: 8}


def most_dots(target: Target) -> int:
    """Return how many rows, and columns, tiles have at most whose vectors run along the terms."""
    return 4 if registers(target) == 32 else 3


def even(length: int, most: int) -> int:
    """Return how long blocks are of which as few as can be cover a length."""
    return -(-length // -(-length // most))


def multiple(length: int, of: int) -> int:
    """Return the next multiple of a number."""
    return -(-length // of) * of


def collides(rows: int, step: int) -> bool:
    """Tell whether rows that lie so many bytes apart come to lie in the same lines of the nearest cache."""
    common = math.gcd(step, PAGE)
    return common >= 1024 and rows > 6 * (PAGE // common)


class ProductPlan:
    """Choose the blocks of a product.

    Attributes:
        shape: the dimensions.
        fields: PRODUCT, but for the place of the memory.
        work: bytes of memory that it needs.
    """

    def __init__(self, product: Product, itemsize: int, target: Target) -> None:
        self.itemsize, self.target, self.lanes = itemsize, target, target.vector_bytes // itemsize
        shape = dimensions_of(product)
        self.turns_back = self.is_transposed_sooner(shape)
        self.shape = shape.transpose() if self.turns_back else shape
        rows, columns, terms, levels, _ = self.shape
        self.m, self.n, self.k = rows.length, columns.length, terms.length
        self.most = most_rows(target)
        vectors = multiple(self.n, self.lanes) // self.lanes
        self.vectors = 3 if vectors >= 3 and vectors != 4 else min(vectors, 2)
        self.wide = self.vectors * self.lanes
        self.is_across = not self.turns_back and self.runs_across()
        self.choose_blocks()
        shares = cycles_of_product(product, lanes_of(target)) >= MACHINE.moment
        parts = self.share() if shares else 1
        each = multiple(self.room(), 64)
        self.work = each * parts * itemsize
        self.fields = {
            "rows": self.m,
            "columns": self.n,
            "terms": self.k,
            "left_row": rows.left,
            "left_term": terms.left,
            "right_term": terms.right,
            "right_column": columns.right,
            "into_row": columns.into if self.turns_back else rows.into,
            "addend_row": columns.addend if self.turns_back else rows.addend,
            "tile_rows": self.height,
            "tile_columns": self.wide,
            "block_rows": self.block_rows,
            "block_columns": self.block_columns,
            "panel_columns": self.panel_columns,
            "block_terms": self.block_terms,
            "packs_left": int(self.packs_left),
            "packs_right": self.packs_right,
            "across": int(self.is_across),
            "shared": self.shared_room(),
            "panel": self.panel,
            "blocks": -(-self.m // self.block_rows) * -(-self.n // self.block_columns) if shares and parts == 1 else 1,
            "parts": parts,
            "room": each,
            "is_turned": int(self.shape.is_turned),
            "adds": int(product.addend_at is not None),
            "mirrors": int(not self.is_across and is_symmetric(product, self.shape) and self.n >= MIRRORED * self.wide),
            "transposed_row": self.n * self.turns_back,
            "transposed": self.packed_room(),
        }
        starts = [
            0 if at is None else at.constant
            for at in (product.left_at, product.right_at, product.at, product.addend_at)
        ]
        starts[:2] = reversed(starts[:2]) if self.shape.is_turned else starts[:2]
        self.fields |= {f"{what}_start": start for what, start in zip(OPERANDS, starts, strict=True)}
        for i in range(LEVELS):
            axis = levels[i] if i < len(levels) else Axis(1, 0, 0, 0, 0)
            self.fields |= {f"count_{i}": axis.length, **{f"{what}_{i}": getattr(axis, what) for what in OPERANDS}}

    def choose_blocks(self) -> None:
        """Choose tiles, blocks, and what is packed."""
        m, n, k, size, (rows, columns, terms, _, _) = self.m, self.n, self.k, self.itemsize, self.shape
        most = self.most[self.vectors]
        self.height = most if m > 4 * most else even(m, most)
        wide = self.wide
        self.block_terms, self.block_rows, self.panel_columns = k, m, n
        self.packs_left, self.packs_right = False, 0
        if self.is_across:
            self.height = self.wide = most_dots(self.target)
            self.block_terms = even(k, MACHINE.dots_block)
            self.block_columns, self.panel = n, 0
            return
        is_large = max(k * n, m * k) * size > MACHINE.second_cache // 4 or collides(k, terms.right * size)
        if is_large and min(m, n, k) >= MACHINE.packed_sides[0] and m >= MACHINE.packed_sides[1]:
            self.packs_right = SHARED_PANELS if m > MACHINE.packed_once[0] else OWN_PANELS
            is_apart = 1 not in (rows.left, terms.left) or (terms.left * size >= PAGE and n >= MANY_PANELS * wide)
            is_far = is_apart and m * k * size > MACHINE.second_cache // 4
            self.packs_left = is_far or (collides(8, rows.left * size) and n > 4 * wide)
            self.height = most
            self.block_terms = even(k, MACHINE.block[0])
            self.block_rows = min(m, multiple(even(m, MACHINE.block[1]), most))
            self.panel_columns = min(n, multiple(even(n, MACHINE.block[2]), wide))
        elif columns.right != 1 and n > 1:
            self.packs_right = OWN_PANELS
            self.block_terms = even(k, MACHINE.block[0])
        elif k * self.vectors * self.target.vector_bytes > MACHINE.panel and m > self.height:
            self.block_terms = even(k, MACHINE.panel // (self.vectors * self.target.vector_bytes))
        self.block_columns, self.panel = self.panel_columns, 0

    def runs_across(self) -> bool:
        """Whether vectors run along the terms: where these are many, and lie side by side in both factors."""
        vectors, terms, most = MACHINE.dots
        is_beside, least = self.shape.terms.left == self.shape.terms.right == 1, min(self.m, self.n)
        return is_beside and self.k >= max(vectors * self.lanes, terms * least) and least <= most

    def is_transposed_sooner(self, shape: ProductShape) -> bool:
        """Whether the transpose is computed, and transposed: few rows do not pay for packing all of the right factor.

        The transpose needs the left one packed. Its vectors run along the rows, which have to fill them.
        """
        rows, columns, terms, _, _ = shape
        m, n, k, vectors = rows.length, columns.length, terms.length, multiple(rows.length, self.lanes) // self.lanes
        least, most = MACHINE.transposed
        if columns.right == 1 or terms.right != 1 or 1 not in (terms.left, rows.left):
            return False
        return least <= vectors <= most and 9 * m >= 8 * vectors * self.lanes and (n - m) * k > 2 * n * m

    def share(self) -> int:
        """Choose what threads share; return how many parts the outermost level is cut into."""
        levels, wide = self.shape.levels, self.wide
        if levels and levels[0].into and levels[0].length >= MACHINE.fewest_parts:
            return min((2 * MACHINE.fewest_parts), levels[0].length)
        parts, has_columns = 2 * MACHINE.fewest_parts, self.n >= MACHINE.fewest_parts * wide
        if self.packs_left or not has_columns or (self.m >= parts * self.height and self.packs_right != OWN_PANELS):
            least = MACHINE.packed_once[1] if self.packs_right else 1
            rows = max(-(-self.m // parts), min(least, self.m))
            self.block_rows = min(self.block_rows, multiple(even(self.m, rows), self.height))
            parts = -(-MACHINE.fewest_parts // -(-self.m // self.block_rows))
        self.block_columns = min(self.panel_columns, multiple(-(-self.n // parts), wide))
        self.panel = self.own_room()
        return 1

    def room(self) -> int:
        """Return how many elements of memory a part has."""
        return self.packed_room() + self.m * self.n * self.turns_back

    def packed_room(self) -> int:
        """Return how many elements the packed factors of a part have, or of all blocks that threads share."""
        blocks = -(-self.m // self.block_rows) * -(-self.panel_columns // self.block_columns) if self.panel else 1
        return self.shared_room() + self.own_room() * blocks

    def shared_room(self) -> int:
        """Return how many elements the panels that all blocks share have."""
        shares = self.packs_right == SHARED_PANELS
        return multiple(self.panel_columns, self.vectors * self.lanes) * self.block_terms if shares else 0

    def own_room(self) -> int:
        """Return how many elements what a block packs has."""
        right = self.vectors * self.lanes * self.block_terms if self.packs_right == OWN_PANELS else 0
        left = multiple(self.block_rows, self.height) * self.block_terms if self.packs_left else 0
        return multiple(right + left, 64)
