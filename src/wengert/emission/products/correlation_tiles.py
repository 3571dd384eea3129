"""The tiles of correlations: what is computed of a result while its sums stay in registers.

There are three kinds. Where rows of places fill vectors, some channels of the result times the vectors of a row stay in
registers while terms (channels and taps) are added up. Else lanes run along the channels of the result, times some
places, wherever these lie. Where kernels are as large as images, places few, and channels too few for vectors, as in
the derivative by the kernels of a first layer, lanes run along the rows of kernels, and some channels times some places
are in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from wengert.emission.products.correlations import AXES, CorrelationFunctions, product_of
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.functions import NativeFunction
from wengert.native.structs import BOOL, I64, Pointer
from wengert.native.values import Value


def correlation_kernel(name: str, target: Target) -> NativeFunction:
    """Return the function of a name."""
    _, kind, dtype = name.split(".")
    return {"places": OverPlaces, "kernels": OverKernels, "channels": OverChannels}[kind](dtype, target).whole(name)


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

    def prepare(self, b: Builder, fields: Value) -> None:
        """Write the table of terms."""
        place = b.stack(I64)
        place.store(0)
        self.enter_terms(b, fields, place)

    def pack_channel(self, b: Builder, fields: Value, w: Value, channel: Value) -> None:
        """Write what packs one channel of kernels in the order of tiles: terms of some channels of the result."""
        packed, (outs, terms), out = self.packed_kernels(fields), self.sizes(fields), fields.get("w_out")
        taps = terms // fields.get("channels")
        with b.loop(fields.get("groups")) as g:
            own_group = w.at(g.index * fields.get("w_group") + channel * fields.get("w_channel"))

            def pack(o: Value, rows: int) -> None:
                target, source = packed.at((g.index * outs + o) * terms), own_group.at(o * out)
                with b.loop(taps) as t:
                    into = target.at((channel * taps + t.index) * rows)
                    for r in range(rows):
                        into.at(r).store(source.at(t.index + out * r).load())

            self.in_blocks(b, outs, pack)

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

            self.in_blocks(b, outs, block)


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

    def prepare(self, b: Builder, fields: Value) -> None:
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
        self.enter(b, fields, place, b.constant(I64, 0), "place")

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

                self.in_blocks(b, outs, some)

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


class OverChannels(CorrelationFunctions):
    """Write the functions of those whose lanes run along the channels of the result, wherever places lie."""

    prefix = "channels."

    def tile(self, rows: int, width: int) -> NativeFunction:
        """Return the function that adds up the products of some places with some vectors of channels."""
        kinds = (*(self.address,) * 2, *(Pointer(I64),) * 2, I64, self.address, I64, BOOL)

        def body(
            b: Builder,
            kernel: Value,
            image: Value,
            offsets: Value,
            table: Value,
            terms: Value,
            into: Value,
            into_row: Value,
            adds: Value,
        ) -> None:
            places = [image.at(offsets.at(q).load()) for q in range(rows)]
            sums = [into.at(into_row * q).at(v * self.lanes).to(self.vector) for q in range(rows) for v in range(width)]

            def term(before: Sequence[Value], at: Value) -> list[Value]:
                own, offset = kernel.at(at * (width * self.lanes)), table.at(at).load()
                ws = [own.at(v * self.lanes).to(self.vector).load() for v in range(width)]
                found = []
                for q, place in enumerate(places):
                    x = b.spread(place.at(offset).load(), self.lanes)
                    found += [self.add_product(b, x, w, before[q * width + v]) for v, w in enumerate(ws)]
                return found

            zeros = [b.constant(self.vector, 0)] * (rows * width)
            start = b.either(adds, lambda: [place.load() for place in sums], lambda: zeros)
            with b.loop(terms, carry=start) as loop:
                loop.next(*term(loop.values, loop.index))
            for place, x in zip(sums, loop.results, strict=True):
                place.store(x)

        return self.function(f"tile{rows}x{width}", kinds, body)

    def columns(self, fields: Value) -> Value:
        """Return how many channels of the result there are in whole vectors."""
        return (fields.get("outs") + self.lanes - 1) // self.lanes * self.lanes

    def over_panels(self, b: Builder, fields: Value, write: Callable[[Value, Value], None]) -> None:
        """Write what goes over the channels of the result, some vectors at once."""
        columns = self.columns(fields)
        wide = b.select(
            columns.equals(4 * self.lanes), b.constant(I64, 2 * self.lanes), b.least(columns, 3 * self.lanes)
        )
        with b.loop(columns) as each:
            each.step = wide
            write(each.index, b.least(wide, columns - each.index))

    def prepare(self, b: Builder, fields: Value) -> None:
        """Write the table of terms of a block of channels, and that of places of several images behind it."""
        place, image = b.stack(I64), fields.get("block") * self.channel(fields)
        place.store(0)
        self.enter_terms(b, fields, place)
        with b.loop(fields.get("together")) as i:
            self.enter(b, fields, place, i.index * image, "place")
        with b.when(fields.get("outs").differs(self.columns(fields))):  # products beyond are not used, and soon zero
            b.do(self.clear, self.packed_kernels(fields), fields.get("copies") // (self.scalar.bits // 8))

    def pack_channel(self, b: Builder, fields: Value, w: Value, channel: Value) -> None:
        """Write what packs one channel of kernels in the order of tiles: terms of some vectors of channels."""
        packed, out, outs, terms = self.packed_kernels(fields), *(fields.get(x) for x in ("w_out", "outs", "terms"))
        taps, columns = terms // fields.get("channels"), self.columns(fields)
        with b.loop(fields.get("groups")) as g:
            own_group = w.at(g.index * fields.get("w_group") + channel * fields.get("w_channel"))

            def pack(o: Value, wide: Value) -> None:
                target = packed.at((g.index * columns + o) * terms).at(channel * taps * wide)
                lines = b.least(wide, outs - o)
                b.do(self.pack, own_group.at(o * out), b.constant(I64, 1), out, lines, wide, taps, target)

            self.over_panels(b, fields, pack)

    def compute(self, b: Builder, call: Value, part: Value, first: Value, last: Value) -> None:
        """Write what computes the results of some images, some of them and some of their channels at once."""
        fields, addresses = call.get("fields"), call.get("addresses")
        x, into = (addresses.at(n).load().to(self.scalar) for n in (0, 2))
        names = "channels", "images", "block", "terms", "outs"
        channels, images, block, terms, outs = (fields.get(x) for x in names)
        copy, packed, table = self.copy_of(fields, part), self.packed_kernels(fields), self.table(fields)
        places, taps = product_of(*[fields.get(f"place_{axis}") for axis in range(AXES)]), terms // channels
        columns, sums, offsets = self.columns(fields), copy.at(fields.get("sums")), table.at(block * taps)
        with b.loop(last, first) as i:
            some = b.least(fields.get("together"), b.least(last - i.index, images - i.index % images))
            i.step = some
            kernels = packed.at(i.index // images * columns * terms)
            with b.loop(channels) as c:
                c.step = block
                own = b.least(block, channels - c.index)
                with b.loop(some) as n:
                    image = self.image_of(fields, x, i.index + n.index).at(c.index * fields.get("x_channel"))
                    b.do(self.copy, fields, image, copy.at(n.index * block * self.channel(fields)), own)

                def panel(o: Value, wide: Value) -> None:
                    own_kernels = kernels.at(o * terms).at(c.index * taps * wide)

                    def block(p: Value, rows: int) -> None:
                        sizes = own * taps, sums.at(p * columns + o), columns, c.index.differs(0)
                        for width in (1, 2, 3):
                            with b.when(wide.equals(width * self.lanes)):
                                b.do(self.tiles[rows, width], own_kernels, copy, offsets.at(p), table, *sizes)

                    self.in_blocks(b, some * places, block)

                self.over_panels(b, fields, panel)
            with b.loop(some) as n:
                source, target = sums.at(n.index * places * columns), into.at((i.index + n.index) * outs * places)
                b.do(self.pack, source, b.constant(I64, 1), columns, places, places, outs, target)
