"""How a correlation is carried out natively: by which kind of tiles, in how many parts, in how much memory."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.emission.products.correlations import AXES, CORRELATIONS, SPACE, STEPS
from wengert.emission.products.product_plans import even
from wengert.emission.products.tiled_functions import SCALARS
from wengert.support.machine import MACHINE, whole_lines
from wengert.support.records import NamedTuple

Lengths = tuple[int, ...]
VECTOR = 64
"""Bytes of a vector at most: those at the end of a copy reach so far behind it."""
TALL = 8
"""Channels of the result that tiles have at most."""
FEW_PLACES = 64
"""Places that are computed at once at least, if there are so many: each time packed kernels are read again."""


class NativeCorrelation(NamedTuple):
    """Hold the plan of a correlation.

    Attributes:
        name: of the function.
        fields: CORRELATION.
        work: bytes of memory that it needs.
        cycles: about how long it takes.
    """

    name: str
    fields: dict[str, int]
    work: int
    cycles: float


def native_plan(
    x: Lengths,
    w: Lengths,
    places: Lengths,
    dtype: np.dtype[Any],
    x_steps: Lengths,
    w_steps: Lengths,
    *,
    stride: Lengths,
    dilation: Lengths,
    spread: Lengths,
    low: Lengths,
) -> NativeCorrelation | None:
    """Return the plan of a correlation, whose axes of space are the last ones; None if there is none.

    Args:
        x: the shape of images.
        w: that of kernels.
        places: the lengths of the result along the axes of space.
        dtype: of all.
        x_steps: elements from one group of images to the next, from one image, and from one channel.
        w_steps: those of kernels.
        stride: how far windows are apart.
        dilation: how far elements of kernels are.
        spread: how far those of images are.
        low: zeros before images.
    """
    rank, item = len(places), dtype.itemsize
    if dtype.name not in SCALARS or rank > AXES or 0 in (*x, *w, *places):
        return None
    size, kernel, place, stride, dilation, spread = (
        (*(1,) * (AXES - rank), *own) for own in (x[-rank:], w[-rank:], places, stride, dilation, spread)
    )
    low = (*(0,) * (AXES - rank), *low)
    axes = zip(place, stride, kernel, dilation, strict=True)
    padded = tuple([(n - 1) * step + (k - 1) * gap + 1 for n, step, k, gap in axes])
    groups, (images, channels), outs = math.prod(x[: -rank - 2]), x[-rank - 2 : -rank], w[-rank - 2]
    lengths = CorrelationLengths(groups * images, groups, channels, outs, kernel, place, padded, item)
    is_over_kernels = math.prod(place) < math.prod(kernel)
    phases = dilation[-1] if is_over_kernels else stride[-1]
    along_rows = lengths.over_kernels if is_over_kernels else lengths.over_places
    choices = [along_rows(phases)] if phases == 1 or spread[-1] == 1 else []
    over_channels = lengths.over_channels()
    if over_channels.sums <= MACHINE.second_cache:
        choices.append(over_channels)
    if not choices:
        return None
    chosen = min(choices, key=lambda own: own.cycles)
    copied = chosen.together * chosen.block * math.prod(padded[:2]) * chosen.phases * chosen.pitch
    copies = whole_lines(copied * item + VECTOR)
    room = copies + whole_lines(chosen.sums)
    fields = {"groups": groups, "images": images, "channels": channels, "outs": outs}
    fields |= {"terms": channels * math.prod(kernel), "phases": chosen.phases, "pitch": chosen.pitch}
    fields |= {"block": chosen.block, "strip": chosen.strip, "together": chosen.together, "parts": lengths.parts}
    fields |= {"packed": whole_lines(8 * chosen.table), "copies": whole_lines(chosen.packed), "sums": copies // item}
    fields["room"] = room // item
    for (what, *of), steps in zip(STEPS, (x_steps, w_steps), strict=True):
        fields |= {f"{what}_{name}": step for name, step in zip(of, steps, strict=True)}
    first = [max(0, -(a // step)) for a, step in zip(low, spread, strict=True)]
    last = [max(0, min(n, -(-(m - a) // s))) for n, m, a, s in zip(size, padded, low, spread, strict=True)]
    own = (size, low, spread, first, last, padded, kernel, stride, dilation, place)
    fields |= {f"{name}_{axis}": n for name, numbers in zip(SPACE, own, strict=True) for axis, n in enumerate(numbers)}
    work = fields["packed"] + fields["copies"] + lengths.parts * room
    name = f"{CORRELATIONS}.{chosen.kind}.{dtype.name}"
    return NativeCorrelation(name, fields, work, chosen.cycles / MACHINE.products)


class Tiling(NamedTuple):
    """Hold how a correlation is carried out by one kind of tiles.

    Attributes:
        kind: of the tiles.
        cycles: about how long it takes where a vector is multiplied in each.
        block, strip, together: as in CORRELATION.
        phases, pitch: likewise.
        table: entries of the tables of terms and places.
        packed: bytes of packed kernels.
        sums: bytes of sums of a part.
    """

    kind: str
    cycles: float
    block: int
    strip: int
    together: int
    phases: int
    pitch: int
    table: int
    packed: int
    sums: int


class CorrelationLengths(NamedTuple):
    """Hold how long the axes of a correlation are: those of space are three, and `padded` those of copies."""

    images: int
    groups: int
    channels: int
    outs: int
    kernel: Lengths
    place: Lengths
    padded: Lengths
    item: int

    @property
    def parts(self) -> int:
        """How many parts threads share."""
        return min(self.images, 2 * MACHINE.fewest_parts)

    @property
    def kernels(self) -> int:
        """How many numbers all kernels have."""
        return self.groups * self.outs * self.channels * math.prod(self.kernel)

    def copying(self, phases: int) -> float:
        """Return the cycles of copies of images: elements that change places are copied one by one."""
        return MACHINE.phased * self.images * self.channels * math.prod(self.padded) if phases > 1 else 0.0

    def over_places(self, phases: int) -> Tiling:
        """Return the tiling whose lanes run along rows of places."""
        *rows, row = self.place
        vectors = -(-row * self.item // VECTOR)
        terms, pitch = self.channels * math.prod(self.kernel), -(-self.padded[-1] // phases)
        cycles = self.images * self.outs * terms * math.prod(rows) * in_tiles(vectors) + self.copying(phases)
        packed = self.kernels * self.item
        return Tiling("places", cycles, self.channels, 0, 1, phases, pitch, terms, packed, 0)

    def over_kernels(self, phases: int) -> Tiling:
        """Return the tiling whose lanes run along rows of kernels.

        Kernels of a block stay in the second cache, and those of a strip in the first.
        """
        *heights, row = self.kernel
        rows, places, taps = math.prod(heights), math.prod(self.place), math.prod(self.kernel)
        block = even(self.channels, max(MACHINE.second_cache // 2 // (self.outs * taps * self.item), 1))
        strip = even(rows, max(MACHINE.panel // (TALL * row * self.item), 1))
        vectors = -(-row * self.item // VECTOR) + 0.5  # half a one for the beginning and the end of a row
        cycles = self.images * self.outs * self.channels * places * rows * vectors + self.copying(phases)
        pitch = -(-self.padded[-1] // phases)
        return Tiling("kernels", cycles, block, strip, 1, phases, pitch, 2 * rows + places, 0, TALL * places * VECTOR)

    def over_channels(self) -> Tiling:
        """Return the tiling whose lanes run along the channels of the result.

        Places of several images are computed at once where one has few. Packed kernels of some vectors of channels, and
        the copies beside them, stay in the second cache.
        """
        places, taps, lanes = math.prod(self.place), math.prod(self.kernel), VECTOR // self.item
        vectors = -(-self.outs // lanes)
        together = min(-(-FEW_PLACES // places), -(-self.images // self.parts))
        room = MACHINE.second_cache // 4 // self.item
        size = max(taps * lanes * min(vectors, 3), together * math.prod(self.padded))
        block = even(self.channels, max(room // size, 1))
        moved = self.images * self.outs * places + self.kernels
        cycles = self.images * self.channels * taps * places * in_tiles(vectors) + MACHINE.turned * moved
        packed, sums = (
            own * vectors * lanes * self.item for own in (self.groups * self.channels * taps, together * places)
        )
        table = block * taps + together * places
        return Tiling("channels", cycles, block, 0, together, 1, self.padded[-1], table, packed, sums)


def in_tiles(vectors: int) -> float:
    """Return how long vectors in tiles of up to three take: a tenth of one is lost for each tile."""
    return vectors + -(-vectors // 3) / 10
