"""Correlations of images with kernels by one function a dtype, compiled once for all sizes: no windows are made.

Images are copied with the zeros around and between their elements, so that what a tap of a kernel is multiplied by lies
side by side for the places of a row. Where steps are longer than one, elements of a row that are as far apart lie side
by side. So windows are addresses: one from which all places of a row go on, and one more for each term, from a table.

What stays in registers while terms (channels and taps) are added up is in `correlation_tiles`.
"""

from __future__ import annotations

from collections.abc import Callable

from wengert.emission.products.tiled_functions import TiledFunctions
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction
from wengert.native.structs import I8, I64, POINTER, Pointer, Struct
from wengert.native.threads.job_tables import JOB, SHARED
from wengert.native.threads.jobs import share
from wengert.native.values import Value
from wengert.support.caches import cached

CORRELATIONS = "correlation"
"""What the names of these functions begin with: "correlation.places.float64", and so for "kernels", "channels"."""
STEPS = (("x", "group", "image", "channel"), ("w", "group", "out", "channel"))
SPACE = "size", "low", "spread", "first", "last", "padded", "kernel", "stride", "dilation", "place"
AXES = 3
"""Of space; where there are fewer, others of length one stand in front."""

CORRELATION = Struct(
    "Correlation",
    groups=I64,
    images=I64,  # of each group
    channels=I64,
    outs=I64,  # channels of the result
    terms=I64,  # entries of the table of terms
    block=I64,  # channels whose products are added up at once
    strip=I64,  # rows of kernels that are multiplied at once
    together=I64,  # images whose places are computed at once
    sums=I64,  # elements from the copies of a part to its sums
    **{f"{what}_{of}": I64 for what, *own in STEPS for of in own},
    phases=I64,  # that rows are split into: elements so far apart lie side by side
    pitch=I64,  # elements from one phase of a row to the next
    parts=I64,  # which threads share
    room=I64,  # elements of the copies of a part
    packed=I64,  # bytes from the memory to packed kernels
    copies=I64,  # bytes from there to the copies of the first part
    work=I64,  # bytes from here to the memory
    **{f"{what}_{axis}": I64 for what in SPACE for axis in range(AXES)},
)
"""What stands at the beginning of the arena: steps of images and kernels, how they lie along each axis of space, the
elements of images that count from `first` to `last`, and what `correlation_plans` chooses."""

CALL = Struct("Call", addresses=Pointer(POINTER), fields=Pointer(CORRELATION))
"""What parts have in common."""


def product_of(x: Value, *others: Value) -> Value:
    """Return the product of some numbers."""
    for y in others:
        x = x * y
    return x


class CorrelationFunctions(TiledFunctions):
    """Write the functions of one dtype.

    Attributes:
        most: how many channels of the result, or places, tiles have at most.
    """

    pairs = 1

    def __init__(self, dtype: str, target: Target) -> None:
        super().__init__(dtype, target)
        self.most = 8 if target.vector_bytes == 64 or not target.is_x86 else 4

    def mask(self, b: Builder, last: Value) -> Value:
        """Return which lanes of a vector are among the first."""
        return b.compare("slt", b.numbers(I64, range(self.lanes)), b.spread(last, self.lanes))

    @cached
    def heights(self) -> tuple[int, ...]:
        """How many channels of the result, or places, tiles have."""
        return tuple([1 << n for n in range(self.most.bit_length())])

    @cached
    def tiles(self) -> dict[tuple[int, int], NativeFunction]:
        """The tiles, by their channels of the result, or places, and vectors, or places."""
        return {(rows, width): self.tile(rows, width) for rows in self.heights for width in (1, 2, 3)}

    def tile(self, rows: int, width: int) -> NativeFunction:
        """Return the function of one tile."""
        raise NotImplementedError

    def in_blocks(self, b: Builder, count: Value, write: Callable[[Value, int], None]) -> None:
        """Write what goes over channels of the result, or places, in blocks, each half as large as the one before."""
        whole = count - count % self.most
        with b.loop(whole, step=self.most) as each:
            write(each.index, self.most)
        for rows in reversed(self.heights[:-1]):
            with b.when((count & rows).differs(0)):
                write(count - count % (2 * rows), rows)

    def over_space(self, b: Builder, fields: Value, what: str, write: Callable[[Value, Value, Value], None]) -> None:
        """Write what goes over all places of space, or taps, in order."""
        lengths = [fields.get(f"{what}_{axis}") for axis in range(AXES)]
        with b.loop(lengths[0]) as z, b.loop(lengths[1]) as y, b.loop(lengths[2]) as x:
            write(z.index, y.index, x.index)

    def enter(self, b: Builder, fields: Value, place: Value, first: Value, what: str) -> None:
        """Write where all places, or taps, lie in a copy behind a first one into the table, from a place in it on."""
        table, step = self.table(fields), {"place": "stride", "kernel": "dilation"}[what]

        def write(z: Value, y: Value, x: Value) -> None:
            at = place.load()
            table.at(at).store(first + self.in_copy(fields, z, y, x, step))
            place.store(at + 1)

        self.over_space(b, fields, what, write)

    def enter_terms(self, b: Builder, fields: Value, place: Value) -> None:
        """Write the table of terms: the taps of each channel of a block."""
        with b.loop(fields.get("block")) as c:
            self.enter(b, fields, place, c.index * self.channel(fields), "kernel")

    def row_in_copy(self, fields: Value, z: Value, y: Value) -> Value:
        """Return where a row of a channel begins in a copy."""
        return (z * fields.get("padded_1") + y) * fields.get("phases") * fields.get("pitch")

    def in_row(self, fields: Value, x: Value) -> Value:
        """Return where an element of a row lies."""
        phases = fields.get("phases")
        return x % phases * fields.get("pitch") + x // phases

    def in_copy(self, fields: Value, z: Value, y: Value, x: Value, step: str) -> Value:
        """Return where the element lies that a place, or a tap, leads to."""
        z, y, x = (own * fields.get(f"{step}_{axis}") for axis, own in enumerate((z, y, x)))
        return self.row_in_copy(fields, z, y) + self.in_row(fields, x)

    def image_of(self, fields: Value, first: Value, number: Value) -> Value:
        """Return where an image begins, counted through all groups."""
        images = fields.get("images")
        return first.at(number // images * fields.get("x_group") + number % images * fields.get("x_image"))

    def channel(self, fields: Value) -> Value:
        """Return the elements of a channel in a copy."""
        return product_of(*[fields.get(x) for x in ("padded_0", "padded_1", "phases", "pitch")])

    def memory(self, fields: Value) -> Value:
        """Return the memory."""
        return fields.to(I8).at(fields.get("work"))

    def table(self, fields: Value) -> Value:
        """Return the table of terms."""
        return self.memory(fields).to(I64)

    def packed_kernels(self, fields: Value) -> Value:
        """Return where packed kernels are."""
        return self.memory(fields).at(fields.get("packed")).to(self.scalar)

    def copy_of(self, fields: Value, part: Value) -> Value:
        """Return where the copies of a part are."""
        start = self.memory(fields).at(fields.get("packed")).at(fields.get("copies"))
        return start.to(self.scalar).at(part * fields.get("room"))

    # ---------------------------------------------------------------- copies

    @cached
    def clear(self) -> NativeFunction:
        """The function that fills memory with zeros."""

        def body(b: Builder, place: Value, count: Value) -> None:
            with b.loop(count) as each:
                place.at(each.index).store(0)

        return self.function("clear", (self.address, I64), body)

    @cached
    def copy(self) -> NativeFunction:
        """The function that copies some channels of an image to where they are read: address, target, channels."""

        def body(b: Builder, fields: Value, source: Value, target: Value, channels: Value) -> None:
            sizes = [fields.get(f"size_{axis}") for axis in range(AXES)]
            bounds = [(fields.get(f"last_{axis}"), fields.get(f"first_{axis}")) for axis in range(AXES)]
            each = self.channel(fields)
            simple = fields.get("phases").equals(1) & fields.get("spread_2").equals(1)
            with b.loop(channels) as c, b.loop(*bounds[0]) as z, b.loop(*bounds[1]) as y:
                row = source.at(c.index * fields.get("x_channel") + (z.index * sizes[1] + y.index) * sizes[2])
                own = enumerate((z.index, y.index))
                places = [i * fields.get(f"spread_{n}") + fields.get(f"low_{n}") for n, i in own]
                into = target.at(c.index * each + self.row_in_copy(fields, *places))
                with b.when(simple) as otherwise:
                    self.copy_row(b, fields, row, into)
                with otherwise:
                    self.spread_row(b, fields, row, into)

        return self.function("copy", (Pointer(CORRELATION), self.address, self.address, I64), body)

    def copy_row(self, b: Builder, fields: Value, row: Value, into: Value) -> None:
        """Write what copies a row whose elements lie side by side."""
        first, last = fields.get("first_2"), fields.get("last_2")
        into = into.at(fields.get("low_2"))
        whole = last - (last - first) % self.lanes
        with b.loop(whole, first, step=self.lanes) as x:
            into.at(x.index).to(self.vector).store(row.at(x.index).to(self.vector).load())
        with b.loop(last, whole) as x:
            into.at(x.index).store(row.at(x.index).load())

    def spread_row(self, b: Builder, fields: Value, row: Value, into: Value) -> None:
        """Write what copies a row with gaps between elements, or phase by phase."""
        first, last, low, spread, phases, pitch = (
            fields.get(x) for x in ("first_2", "last_2", "low_2", "spread_2", "phases", "pitch")
        )
        with b.when(spread.differs(1)) as otherwise, b.loop(last, first) as x:
            into.at(x.index * spread + low).store(row.at(x.index).load())
        with otherwise, b.loop(phases) as phase:
            start, stop = ((n + low - phase.index + phases - 1) // phases for n in (first, last))
            own = into.at(phase.index * pitch)
            with b.loop(stop, start) as x:
                own.at(x.index).store(row.at(x.index * phases + phase.index - low).load())

    # ---------------------------------------------------------------- the whole

    def prepare(self, b: Builder, fields: Value) -> None:
        """Write tables of terms and places."""
        raise NotImplementedError

    def pack_channel(self, b: Builder, fields: Value, w: Value, channel: Value) -> None:
        """Write what packs one channel of all kernels, if they are packed."""

    def compute(self, b: Builder, call: Value, part: Value, first: Value, last: Value) -> None:
        """Write what computes the results of some images."""
        raise NotImplementedError

    def whole(self, name: str) -> NativeFunction:
        """Return the function that programs call."""

        def part(b: Builder, table: Value, first: Value, last: Value) -> None:
            call = table.to(CALL)
            fields = call.get("fields")
            count, parts = fields.get("groups") * fields.get("images"), fields.get("parts")
            with b.loop(last, first) as each:
                start, stop = each.index * count // parts, (each.index + 1) * count // parts
                b.do(self.clear, self.copy_of(fields, each.index), fields.get("room"))
                self.compute(b, call, each.index, start, stop)

        def channels(b: Builder, table: Value, first: Value, last: Value) -> None:
            call = table.to(CALL)
            w = call.get("addresses").at(1).load().to(self.scalar)
            with b.loop(last, first) as each:
                self.pack_channel(b, call.get("fields"), w, each.index)

        job, packing = (
            NativeFunction(f"{self.prefix}{what}.{self.dtype}", JOB, body)
            for what, body in (("part", part), ("packing", channels))
        )

        def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
            addresses.at(3).load().to(I8).store(0)  # it cannot fail
            fields, call = arena.to(CORRELATION), b.stack(CALL)
            self.prepare(b, fields)
            call.set("addresses", addresses)
            call.set("fields", fields)
            with b.when(fields.get("copies").differs(0)):
                b.do(share, team.to(SHARED), packing, call.as_address(), fields.get("channels"))
            b.do(share, team.to(SHARED), job, call.as_address(), fields.get("parts"))

        return NativeFunction(name, KERNEL, body)
