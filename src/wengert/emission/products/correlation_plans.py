"""How a correlation is carried out natively: by which kind of tiles, in how many parts, in how much memory."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from wengert.emission.products.correlations import AXES, CORRELATIONS, SPACE, STEPS
from wengert.emission.products.product_plans import even
from wengert.emission.products.tiled_functions import SCALARS
from wengert.support.machine import MACHINE

Lengths = tuple[int, ...]
VECTOR = 64
"""Bytes of a vector at most: those at the end of a copy reach so far behind it."""
TALL = 8
"""Channels of the result that tiles have at most."""


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
    low, is_over_kernels = (*(0,) * (AXES - rank), *low), math.prod(place) < math.prod(kernel)
    phases = dilation[-1] if is_over_kernels else stride[-1]
    if phases > 1 and spread[-1] > 1:
        return None
    axes = zip(place, stride, kernel, dilation, strict=True)
    padded = tuple([(n - 1) * step + (k - 1) * gap + 1 for n, step, k, gap in axes])
    groups, (images, channels), outs = math.prod(x[: -rank - 2]), x[-rank - 2 : -rank], w[-rank - 2]
    rows, taps, pitch = kernel[0] * kernel[1], math.prod(kernel), -(-padded[-1] // phases)
    fields = {"groups": groups, "images": images, "channels": channels, "outs": outs, "terms": channels * taps}
    fields |= {"phases": phases, "pitch": pitch, "parts": min(groups * images, 2 * MACHINE.fewest_parts)}
    if is_over_kernels:  # kernels of a block stay in the second cache, and those of a strip in the first
        block = even(channels, max(MACHINE.second_cache // 2 // (outs * taps * item), 1))
        fields["strip"] = even(rows, max(MACHINE.panel // (TALL * kernel[2] * item), 1))
        table, packed, sums = 2 * rows + math.prod(place), 0, TALL * math.prod(place) * VECTOR
    else:
        block, table, packed, sums = channels, channels * taps, groups * outs * channels * taps * item, 0
    copies = lines(block * padded[0] * padded[1] * phases * pitch * item + VECTOR)
    room = copies + lines(sums)
    fields |= {"block": block, "packed": lines(8 * table), "copies": lines(packed), "sums": copies // item}
    fields["room"] = room // item
    for (what, *of), steps in zip(STEPS, (x_steps, w_steps), strict=True):
        fields |= {f"{what}_{name}": step for name, step in zip(of, steps, strict=True)}
    first = [max(0, -(a // step)) for a, step in zip(low, spread, strict=True)]
    last = [max(0, min(n, -(-(m - a) // s))) for n, m, a, s in zip(size, padded, low, spread, strict=True)]
    own = (size, low, spread, first, last, padded, kernel, stride, dilation, place)
    fields |= {f"{name}_{axis}": n for name, numbers in zip(SPACE, own, strict=True) for axis, n in enumerate(numbers)}
    work = fields["packed"] + fields["copies"] + fields["parts"] * room
    cycles = groups * images * channels * outs * taps * math.prod(place) / (MACHINE.products * VECTOR / item)
    kind = "kernels" if is_over_kernels else "places"
    return NativeCorrelation(f"{CORRELATIONS}.{kind}.{dtype.name}", fields, work, cycles)


def lines(size: int) -> int:
    """Return the bytes of whole lines that hold some bytes."""
    return -(-size // MACHINE.apart) * MACHINE.apart
