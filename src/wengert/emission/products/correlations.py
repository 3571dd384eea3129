"""Correlations of images with kernels by one function a dtype, compiled once for all sizes: no windows are made.

Images are copied with the zeros around and between their elements, so that what a tap of a kernel is multiplied by lies
side by side for the places of a row. Where steps are longer than one, elements of a row that are as far apart lie side
by side. So windows are addresses: one from which all places of a row go on, and one more for each term, from a table.

There are two kinds of tiles. Where places are many, some channels of the result times the vectors of a row of places
stay in registers while terms (channels and taps) are added up. Where kernels are as large as images, and places few, as
in the derivative by kernels, lanes run along the rows of kernels, and some channels times some places are in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wengert.emission.products.tiled_functions import TiledFunctions
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.entries.tables import KERNEL
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I8, I64, POINTER, Pointer, Struct
from wengert.native.threads.job_tables import JOB, SHARED
from wengert.native.threads.jobs import share
from wengert.native.values import Value
from wengert.support.caches import cached

CORRELATIONS = "correlation"
"""What the names of these functions begin with: "correlation.places.float64" and "correlation.kernels.float64"."""
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


def correlation_kernel(name: str, target: Target) -> NativeFunction:
    """Return the function of a name."""
    _, kind, dtype = name.split(".")
    return {"places": OverPlaces, "kernels": OverKernels}[kind](dtype, target).whole(name)


def product_of(x: Value, *others: Value) -> Value:
    """Return the product of some numbers."""
    for y in others:
        x = x * y
    return x


class CorrelationFunctions(TiledFunctions):
    """Write the functions of one dtype.

    Attributes:
        most: how many channels of the result tiles have at most.
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
        """How many channels of the result tiles have."""
        return tuple([1 << n for n in range(self.most.bit_length())])

    @cached
    def tiles(self) -> dict[tuple[int, int], NativeFunction]:
        """The tiles, by their channels of the result and vectors, or places."""
        return {(rows, width): self.tile(rows, width) for rows in self.heights for width in (1, 2, 3)}

    def tile(self, rows: int, width: int) -> NativeFunction:
        """Return the function of one tile."""
        raise NotImplementedError

    def over_outs(self, b: Builder, outs: Value, write: Callable[[Value, int], None]) -> None:
        """Write what goes over the channels of the result in blocks, each half as large as the one before."""
        whole = outs - outs % self.most
        with b.loop(whole, step=self.most) as each:
            write(each.index, self.most)
        for rows in reversed(self.heights[:-1]):
            with b.when((outs & rows).differs(0)):
                write(outs - outs % (2 * rows), rows)

    def over_space(self, b: Builder, fields: Value, what: str, write: Callable[[Value, Value, Value], None]) -> None:
        """Write what goes over all places of space, or taps, in order."""
        lengths = [fields.get(f"{what}_{axis}") for axis in range(AXES)]
        with b.loop(lengths[0]) as z, b.loop(lengths[1]) as y, b.loop(lengths[2]) as x:
            write(z.index, y.index, x.index)

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

    def prepare(self, b: Builder, fields: Value, addresses: Value) -> None:
        """Write the table of terms, and what else parts have in common."""
        raise NotImplementedError

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

        job = NativeFunction(f"{self.prefix}part.{self.dtype}", JOB, part)

        def body(b: Builder, addresses: Value, arena: Value, team: Value) -> None:
            addresses.at(3).load().to(I8).store(0)  # it cannot fail
            fields, call = arena.to(CORRELATION), b.stack(CALL)
            self.prepare(b, fields, addresses)
            call.set("addresses", addresses)
            call.set("fields", fields)
            b.do(share, team.to(SHARED), job, call.as_address(), fields.get("parts"))

        return NativeFunction(name, KERNEL, body)


class OverPlaces(CorrelationFunctions):
    """Write the functions of those whose lanes run along rows of places."""

    prefix = "places."

    def tile(self, rows: int, width: int) -> NativeFunction:
        """Return the function that adds up the terms of some channels of the result at some vectors of places."""
        kinds = (self.address, self.address, Pointer(I64), I64, self.address, I64, I64)

        def body(
            b: Builder,
            kernel: Value,
            image: Value,
            table: Value,
            terms: Value,
            into: Value,
            into_row: Value,
            last: Value,
        ) -> None:
            def term(sums: Sequence[Value], at: Value) -> list[Value]:
                place, own = image.at(table.at(at).load()), kernel.at(at * rows)
                xs = [place.at(v * self.lanes).to(self.vector).load() for v in range(width)]
                ws = [b.spread(own.at(r).load(), self.lanes) for r in range(rows)]
                return [
                    self.add_product(b, w, x, sums[r * width + v]) for r, w in enumerate(ws) for v, x in enumerate(xs)
                ]

            with b.loop(terms, carry=[b.constant(self.vector, 0)] * (rows * width)) as loop:
                loop.next(*term(loop.values, loop.index))
            mask = self.mask(b, last)
            for r in range(rows):
                row = into.at(into_row * r) if r else into
                for v in range(width):
                    place, x = row.at(v * self.lanes).to(self.vector), loop.results[r * width + v]
                    if v < width - 1:
                        place.store(x)
                    else:
                        place.store_where(x, mask)

        return self.function(f"tile{rows}x{width}", kinds, body)

    def prepare(self, b: Builder, fields: Value, addresses: Value) -> None:
        """Write the table of terms, and kernels in the order of tiles: terms of some channels of the result."""
        table, each, place = self.table(fields), self.channel(fields), b.stack(I64)
        place.store(0)
        with b.loop(fields.get("channels")) as c:

            def enter(z: Value, y: Value, x: Value) -> None:
                at = place.load()
                table.at(at).store(c.index * each + self.in_copy(fields, z, y, x, "dilation"))
                place.store(at + 1)

            self.over_space(b, fields, "kernel", enter)
        w, packed, outs, terms = (
            addresses.at(1).load().to(self.scalar),
            self.packed_kernels(fields),
            *self.sizes(fields),
        )
        channels, out = fields.get("channels"), fields.get("w_out")
        taps = terms // channels
        with b.loop(fields.get("groups")) as g:

            def pack(o: Value, rows: int) -> None:
                target, source = (
                    packed.at((g.index * outs + o) * terms),
                    w.at(g.index * fields.get("w_group") + o * out),
                )
                with b.loop(channels) as c, b.loop(taps) as t:
                    own, into = source.at(c.index * fields.get("w_channel") + t.index), c.index * taps + t.index
                    for r in range(rows):
                        target.at(into * rows + r).store(own.at(out * r).load())

            self.over_outs(b, outs, pack)

    def sizes(self, fields: Value) -> tuple[Value, Value]:
        """Return how many channels the result has, and how many terms each sum."""
        return fields.get("outs"), fields.get("terms")

    def compute(self, b: Builder, call: Value, part: Value, first: Value, last: Value) -> None:
        """Write what computes the results of some images, row by row of places."""
        fields, addresses = call.get("fields"), call.get("addresses")
        x, into = (addresses.at(n).load().to(self.scalar) for n in (0, 2))
        copy, packed, table = self.copy_of(fields, part), self.packed_kernels(fields), self.table(fields)
        (outs, terms), channels, images = self.sizes(fields), fields.get("channels"), fields.get("images")
        height, length = fields.get("place_1"), fields.get("place_2")
        places = product_of(fields.get("place_0"), height, length)
        with b.loop(last, first) as i:
            b.do(self.copy, fields, self.image_of(fields, x, i.index), copy, channels)
            kernels = packed.at(i.index // images * outs * terms)
            with b.loop(fields.get("place_0")) as z, b.loop(height) as y:
                row = self.row_in_copy(fields, z.index * fields.get("stride_0"), y.index * fields.get("stride_1"))
                own = into.at(i.index * outs * places + (z.index * height + y.index) * length)
                self.row(b, kernels, copy.at(row), table, (outs, terms, places, length), own)

    def row(self, b: Builder, kernels: Value, row: Value, table: Value, sizes: tuple[Value, ...], into: Value) -> None:
        """Write what computes a row of places of all channels of the result."""
        outs, terms, places, length = sizes
        vectors = (length + self.lanes - 1) // self.lanes
        wide = b.select(vectors.equals(4), b.constant(I64, 2), b.least(vectors, 3))
        with b.loop(vectors) as v:
            v.step = wide
            own = b.least(wide, vectors - v.index)
            start = v.index * self.lanes
            last = b.least(length - start - (own - 1) * self.lanes, self.lanes)

            def block(o: Value, rows: int) -> None:
                for width in (1, 2, 3):
                    with b.when(own.equals(width)):
                        tile, target = self.tiles[rows, width], into.at(o * places).at(start)
                        b.do(tile, kernels.at(o * terms), row.at(start), table, terms, target, places, last)

            self.over_outs(b, outs, block)


class OverKernels(CorrelationFunctions):
    """Write the functions of those whose lanes run along rows of kernels, which are many, and places few."""

    prefix = "kernels."

    def tile(self, rows: int, width: int) -> NativeFunction:
        """Return the function that adds up the products of some channels of the result at some places."""
        kinds = (*(self.address,) * 2, *(Pointer(I64),) * 2, *(I64,) * 3, self.address, I64, BOOL)

        def body(
            b: Builder,
            kernel: Value,
            image: Value,
            offsets: Value,
            table: Value,
            terms: Value,
            length: Value,
            kernel_row: Value,
            into: Value,
            into_row: Value,
            adds: Value,
        ) -> None:
            places = [image.at(offsets.at(q).load()) for q in range(width)]
            rest = length % self.lanes
            whole, mask = length - rest, self.mask(b, rest)

            def vectors(
                sums: Sequence[Value], row: Value, kernels: Value, at: Value, mask: Value | None
            ) -> list[Value]:
                def vector(place: Value) -> Value:
                    own = place.to(self.vector)
                    return own.load() if mask is None else own.load_where(mask)

                xs, found = [vector(place.at(row + at)) for place in places], []
                for r in range(rows):
                    w = vector(kernels.at(at + kernel_row * r))
                    found += [self.add_product(b, w, x, sums[r * width + q]) for q, x in enumerate(xs)]
                return found

            def sums_of(r: int, q: int) -> Value:
                return into.at(into_row * r + q * self.lanes).to(self.vector)

            start = b.either(
                adds,
                lambda: [sums_of(r, q).load() for r in range(rows) for q in range(width)],
                lambda: [b.constant(self.vector, 0)] * (rows * width),
            )
            with b.loop(terms, carry=start) as outer:
                row, kernels = table.at(outer.index * 2).load(), kernel.at(table.at(outer.index * 2 + 1).load())
                with b.loop(whole, carry=outer.values, step=self.lanes) as inner:
                    inner.next(*vectors(inner.values, row, kernels, inner.index, None))
                rest_of = partial(vectors, inner.results, row, kernels, whole, mask)
                outer.next(*b.either(rest.differs(0), rest_of, lambda: inner.results))
            for r in range(rows):
                for q in range(width):
                    sums_of(r, q).store(outer.results[r * width + q])

        return self.function(f"tile{rows}x{width}", kinds, body)

    def prepare(self, b: Builder, fields: Value, addresses: Value) -> None:
        """Write the table of terms, rows of copies and of kernels, and that of places behind it."""
        table, place = self.table(fields), b.stack(I64)
        heights = [fields.get(f"kernel_{axis}") for axis in range(AXES - 1)]
        length = fields.get("kernel_2")
        with b.loop(heights[0]) as z, b.loop(heights[1]) as y:
            number = z.index * heights[1] + y.index
            row = self.row_in_copy(fields, z.index * fields.get("dilation_0"), y.index * fields.get("dilation_1"))
            table.at(number * 2).store(row)
            table.at(number * 2 + 1).store(number * length)
        place.store(heights[0] * heights[1] * 2)

        def enter(z: Value, y: Value, x: Value) -> None:
            at = place.load()
            table.at(at).store(self.in_copy(fields, z, y, x, "stride"))
            place.store(at + 1)

        self.over_space(b, fields, "place", enter)

    def compute(self, b: Builder, call: Value, part: Value, first: Value, last: Value) -> None:
        """Write what computes the results of some images, some channels after the other."""
        fields, addresses = call.get("fields"), call.get("addresses")
        x, w, into = (addresses.at(n).load().to(self.scalar) for n in range(3))
        copy, channels, outs, images = (
            self.copy_of(fields, part),
            *(fields.get(x) for x in ("channels", "outs", "images")),
        )
        places, block = product_of(*[fields.get(f"place_{axis}") for axis in range(AXES)]), fields.get("block")
        with b.loop(channels) as c:
            c.step = block
            own = b.least(block, channels - c.index)
            with b.loop(last, first) as i:
                image = self.image_of(fields, x, i.index).at(c.index * fields.get("x_channel"))
                b.do(self.copy, fields, image, copy, own)
                kernels = w.at(i.index // images * fields.get("w_group") + c.index * fields.get("w_channel"))
                target, adds = into.at(i.index * outs * places), c.index.differs(0)

                def some(o: Value, height: int) -> None:
                    self.add_up(b, fields, kernels.at(o * fields.get("w_out")), copy, own, places, height)
                    self.finish(b, fields, copy, target.at(o * places), places * height, adds)

                self.over_outs(b, outs, some)

    def add_up(
        self, b: Builder, fields: Value, kernels: Value, copy: Value, channels: Value, places: Value, height: int
    ) -> None:
        """Write what adds up products with some channels of the result, strip by strip of each channel of kernels."""
        rows, strip, table = fields.get("kernel_0") * fields.get("kernel_1"), fields.get("strip"), self.table(fields)
        sums, each, out = copy.at(fields.get("sums")), self.channel(fields), fields.get("w_out")
        with b.loop(channels) as c, b.loop(rows) as y:
            y.step = strip
            adds = c.index.differs(0) | y.index.differs(0)
            own, image = kernels.at(c.index * fields.get("w_channel")), copy.at(c.index * each)
            with b.loop(places, step=3) as p:
                offsets, into = table.at(rows * 2 + p.index), sums.at(p.index * self.lanes)
                sizes = b.least(strip, rows - y.index), fields.get("kernel_2"), out
                for width in (1, 2, 3):
                    with b.when(b.least(places - p.index, 3).equals(width)):
                        tile, terms = self.tiles[height, width], table.at(y.index * 2)
                        b.do(tile, own, image, offsets, terms, *sizes, into, places * self.lanes, adds)

    def finish(self, b: Builder, fields: Value, copy: Value, into: Value, count: Value, adds: Value) -> None:
        """Write what adds up the lanes of sums, and adds them to what is there."""
        sums = copy.at(fields.get("sums"))
        with b.loop(count) as each:
            total, place = (
                self.sum_lanes(b, sums.at(each.index * self.lanes).to(self.vector).load()),
                into.at(each.index),
            )
            before = b.either(adds, lambda: [place.load()], lambda: [b.constant(self.scalar, 0)])
            place.store(total + before[0])
