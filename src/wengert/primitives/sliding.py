"""Correlations of images with kernels, evaluated as products of matrices.

Of the axes of space the first is the outer one. Windows along the inner axes are copied into rows of shape (taps and
channels, images and places); along the outer axis they need not be: rows that follow each other are a matrix, too. So
where kernels are small, `gathered` multiplies them by views of k rows at once, and `scattered` multiplies each row by
all k and adds the products where they belong, which takes less where rows are fewer than those of the result. Where
kernels are fewer than channels, `added` does so along the last axis, without windows. Where results are small and
kernels large (these are cotangents of kernels), `summed` multiplies rows, and `overlaid` images as they are by kernels
that are as wide.

Products are small enough for BLAS not to copy operands into an order of its own: OpenBLAS takes 0.6 to 0.9 of the time
then (float32, and float64 likewise, on AVX-512).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.stride_tricks import as_strided

__all__ = ["Geometry", "Plan", "correlated", "evaluated", "planned", "result_lengths", "spread_lengths"]

Array = Any
Lengths = tuple[int, ...]
SMALL = 1_000_000
"""Multiplications in a product that OpenBLAS computes from operands as they are."""

NARROW = 1_200
"""Elements of such a product if the second operand is transposed."""

FEW = 1 << 13
"""Elements of windows that are copied along all axes, since each step of Python takes longer than they do."""

MANY = 1 << 18
"""Elements of windows that are copied at once: with fewer there are more steps, with more they leave the caches."""

WIDE = 16
"""Images from which on products with each of them are large enough."""


class Geometry(NamedTuple):
    """Hold where windows are: numbers for each axis of space."""

    stride: Lengths
    dilation: Lengths
    spread: Lengths
    low: Lengths
    high: Lengths

    def outer(self) -> Geometry:
        """Return the same with an outer axis of length one."""
        return Geometry((1, *self.stride), (1, *self.dilation), (1, *self.spread), (0, *self.low), (0, *self.high))


def spread_lengths(shape: Sequence[int], spread: Lengths) -> Lengths:
    """Return the lengths of axes with zeros between their elements."""
    return tuple([(n - 1) * step + 1 if n else 0 for n, step in zip(shape, spread, strict=True)])


@functools.lru_cache(maxsize=4096)
def result_lengths(
    x: Lengths, w: Lengths, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Lengths:
    """Return the lengths of the result along the axes of space."""
    padded = [n + a + b for n, a, b in zip(spread_lengths(x, spread), low, high, strict=True)]
    steps = zip(padded, spread_lengths(w, dilation), stride, strict=True)
    return tuple([max((n - span) // step + 1, 0) for n, span, step in steps])


@functools.lru_cache(maxsize=4096)
def largest_divisor(length: int, most: int) -> int:
    """Return the largest divisor of a length that is not more than a number; the length itself if that is too small."""
    found = next((n for n in range(min(length, most), 0, -1) if length % n == 0), 1)
    return found if found >= min(WIDE, length) else length


def correlated(
    x: Array, w: Array, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Array:
    """Return the correlations of images with kernels, or of stacks of them."""
    if x.dtype is not w.dtype:
        kind = np.result_type(x, w)
        x, w = x.astype(kind, copy=False), w.astype(kind, copy=False)
    return evaluated(x, w, planned(x.shape, w.shape, x.itemsize, stride, dilation, spread, low, high))


def evaluated(x: Array, w: Array, plan: Plan) -> Array:
    """Return the correlations of images with kernels of their dtype as they were planned."""
    if plan.few:
        return multiplied_at_once(x, w, plan)
    if not plan.windows:
        return np.zeros(plan.shape, x.dtype)
    space, lengths = plan.space, plan.lengths
    low, high, stride, spread, rank = space.low, space.high, space.stride, space.spread, len(lengths)
    if x.ndim == rank + 2:
        x, w = x[None], w[None]
    if rank == 1 and plan.windows <= MANY:
        x, w, space, lengths = x[:, :, :, None], w[:, :, :, None], space.outer(), (1, *lengths)
    taps = math.prod(w.shape[3:])
    if math.prod(lengths) < taps:
        found = of_large_kernels(x, w, lengths, space)
    elif taps == 1 and not any(low) and not any(high) and max(stride) == max(spread) == 1:
        found = multiplied(x, w)
    else:
        found = of_small_kernels(x, w, lengths, space)
    return np.ascontiguousarray(found.reshape(plan.shape))


class Plan(NamedTuple):
    """Hold what is known of a correlation by shapes.

    Attributes:
        space: where windows are.
        lengths: those of the result along the axes of space.
        shape: that of the result.
        windows: the number of elements of all windows.
        few: whether there are few enough to copy them at once.
        around: the shape of images with zeros between and around their elements, and the places of these; see
            `placement`. The shape is empty if they stay as they are.
        copied: the shape and strides of windows of images without gaps, whose longer rows are the last axis.
        columns: the shape of windows as columns, or as rows, and that of kernels as the rows they are multiplied by;
            matrices if there is one image.
        turned: whether windows are rows, since kernels are wider than the result.
    """

    space: Geometry
    lengths: Lengths
    shape: Lengths
    windows: int
    few: bool
    around: tuple[Lengths, Any, Any]
    copied: tuple[Lengths, Lengths]
    columns: tuple[Lengths, Lengths]
    turned: bool


@functools.lru_cache(maxsize=4096)
def planned(
    x: Lengths,
    w: Lengths,
    item: int,
    stride: Lengths,
    dilation: Lengths,
    spread: Lengths,
    low: Lengths,
    high: Lengths,
) -> Plan:
    """Return what shapes and the size of an element tell."""
    rank = len(stride)
    images, kernel = x[-rank:], w[-rank:]
    lengths = result_lengths(images, kernel, stride, dilation, spread, low, high)
    shape = (*x[: -rank - 1], w[-rank - 2], *lengths)
    taps, places = math.prod(w[-rank - 1 :]), math.prod(lengths)
    windows = 0 if 0 in (*x, *w) else math.prod(x[:-rank]) * math.prod(kernel) * places
    padded, inside, place = placement(images, low, high, spread)
    around = (() if padded == images and place is None else (*x[:-rank], *padded), inside, place)
    steps = [item * math.prod(padded[i + 1 :]) for i in range(rank)]
    outside = [item * math.prod((*x[i + 1 : -rank], *padded)) for i in range(len(x) - rank)]
    by_tap, by_place = [outside[-1], *times(steps, dilation)], times(steps, stride)
    stack, channels, turned = x[: -rank - 1], x[-rank - 1], kernel[-1:] > lengths[-1:]
    alone = math.prod(stack) == 1
    rows = (w[-rank - 2], taps) if alone else (*stack[:-1], 1, w[-rank - 2], taps)
    columns = (*(() if alone else stack), *((places, taps) if turned else (taps, places)))
    if turned:
        copied = (*stack, *lengths, channels, *kernel), (*outside[:-1], *by_place, *by_tap)
    else:
        copied = (*stack, channels, *kernel, *lengths), (*outside[:-1], *by_tap, *by_place)
    space = Geometry(stride, dilation, spread, low, high)
    return Plan(space, lengths, shape, windows, 0 < windows <= FEW, around, copied, (columns, rows), turned)


def multiplied_at_once(x: Array, w: Array, plan: Plan) -> Array:
    """Return the products of kernels and all windows of each image, which takes the fewest steps."""
    (padded, inside, place), (shape, strides), (columns, rows) = plan.around, plan.copied, plan.columns
    if padded and place is not None:
        image = x[inside]
        x = np.zeros(padded, x.dtype)
        x[place] = image
    elif padded or not x.flags.c_contiguous:
        x = x[inside].copy()
    windows: Array = np.ndarray(shape, x.dtype, x, 0, strides).reshape(columns)
    if plan.turned:
        windows = windows.swapaxes(-1, -2)
    kernels = w.reshape(rows)
    found = kernels.dot(windows) if len(rows) == 2 else np.matmul(kernels, windows)  # 0.4 us, and 1.0
    return found.reshape(plan.shape)


def surrounded(x: Array, low: Lengths, high: Lengths, spread: Lengths) -> Array:
    """Return images with zeros between and around their elements; negative numbers of them take elements away."""
    rank = len(low)
    lengths, inside, place = placement(x.shape[-rank:], low, high, spread)
    if place is None:
        return x if lengths == x.shape[-rank:] else x[inside]
    found = np.zeros(x.shape[:-rank] + lengths, x.dtype)
    found[place] = x[inside]
    return found


@functools.lru_cache(maxsize=4096)
def placement(images: Lengths, low: Lengths, high: Lengths, spread: Lengths) -> tuple[Lengths, Any, Any]:
    """Return the lengths of images that are surrounded, which elements are taken, and where they are put.

    The last is None if that is everywhere.
    """
    lengths = spread_lengths(images, spread)
    shape = tuple([max(n + a + b, 0) for n, a, b in zip(lengths, low, high, strict=True)])
    source, target = [], []
    for n, a, step, full in zip(images, low, spread, shape, strict=True):
        first = max(0, -(a // step)) if a < 0 else 0
        stop = max(first, min(n, max(0, -((a - full) // step))))
        start = first * step + a
        source.append(slice(first, stop))
        target.append(slice(start, stop_of(start, stop - first, step), step) if stop > first else slice(0, 0))
    everywhere = max(spread) == 1 and max(*low, *high) <= 0
    return shape, (..., *source), None if everywhere else (..., *target)


def view(x: Array, shape: Lengths, strides: Lengths) -> Array:
    """Return a view of an array; `as_strided` takes 3 us more, and is needed where elements lie apart."""
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return as_strided(x, shape, strides)


def times(numbers: Sequence[int], factors: Sequence[int]) -> Lengths:
    """Return products of numbers."""
    return tuple([a * b for a, b in zip(numbers, factors, strict=True)])


# Small kernels


def multiplied(x: Array, w: Array) -> Array:
    """Return the products of images and kernels of one tap."""
    (groups, count, channels), outs = x.shape[:3], w.shape[1]
    pixels = math.prod(x.shape[3:])
    size = largest_divisor(pixels, SMALL // (outs * channels))
    found = np.empty((groups, count, outs, pixels // size, size), x.dtype)
    parts = x.reshape(groups, count, channels, -1, size).swapaxes(2, 3)
    np.matmul(w.reshape(groups, 1, 1, outs, channels), parts, out=found.swapaxes(2, 3))
    return found


def of_small_kernels(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply windows, some images and rows at a time."""
    rows, stride, spread = x.shape[3], space.stride[0], space.spread[0]
    if adds_taps(x, w, space):
        return added(x, w, lengths, space)
    scatters = rows < lengths[0] or space.dilation[0] > 1 or (spread > 1 and stride == 1)
    if scatters and (spread == 1 or stride == 1):
        none = (0,)
        x = surrounded(x, none + space.low[1:], none + space.high[1:], (1, *space.spread[1:]))
        return scattered(x, w, lengths, space)
    x = surrounded(x, space.low, space.high, space.spread)
    space = space._replace(spread=(1,) * len(lengths), low=(0,) * len(lengths))
    return (gathered if space.dilation[0] == 1 else scattered)(x, w, lengths, space)


def blocks(x: Array, w: Array, lengths: Lengths, rows: int, step: int) -> Iterator[tuple[slice, range]]:
    """Yield some images, and some of the rows, of which each takes a step of rows of windows, at a time."""
    row = x.shape[0] * x.shape[2] * math.prod(w.shape[4:]) * math.prod(lengths[1:]) * step
    images = max(1, min(x.shape[1], MANY // (row * rows)))
    height = max(1, min(rows, MANY // (row * images)))
    for first in range(0, x.shape[1], images):
        for start in range(0, rows, height):
            yield slice(first, first + images), range(start, min(rows, start + height))


def windows_of(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Return the windows of rows of images along inner axes: (groups, rows, taps and channels, images and places)."""
    groups, images, channels, rows = x.shape[:4]
    by_group, by_image, by_channel, by_row, *steps = x.strides
    taps = w.shape[4:]
    shape = (groups, rows, *taps, channels, images, *lengths[1:])
    by_tap, by_place = times(steps, space.dilation[1:]), times(steps, space.stride[1:])
    found = view(x, shape, (by_group, by_row, *by_tap, by_channel, by_image, *by_place))
    found = found.reshape(groups, rows, math.prod(taps) * channels, images * math.prod(lengths[1:]))
    return np.ascontiguousarray(found)


def products(matrix: Array, rows: Array, height: int, step: int, taps: int) -> Array:
    """Return a matrix for each group times rows of windows, some at a time: (groups, height, outs, images and places).

    Each product takes `taps` rows, which begin `step` rows after those of the one before.
    """
    groups, _, inner, width = rows.shape
    outs = matrix.shape[1]
    size = largest_divisor(width, SMALL // (outs * inner * taps))
    item = rows.itemsize
    by_row = inner * width * item
    found = np.empty((groups, height, outs, width // size, size), rows.dtype)
    shape = (groups, height, width // size, taps * inner, size)
    parts = np.ndarray(
        shape, rows.dtype, rows, 0, (rows.shape[1] * by_row, step * by_row, size * item, width * item, item)
    )
    np.matmul(matrix.reshape(groups, 1, 1, outs, -1), parts, out=found.swapaxes(2, 3))
    return found


def gathered(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply kernels by all rows at once that they cover."""
    (groups, count), (outs, _, kernel), step = x.shape[:2], w.shape[1:4], space.stride[0]
    matrix = np.moveaxis(w, 2, -1).reshape(groups, outs, -1)
    found = np.empty((groups, count, outs, *lengths), x.dtype)
    order = (0, 3, 2, 1, *range(4, 3 + len(lengths)))
    for images, rows in blocks(x, w, lengths, lengths[0], step):
        part = x[:, images, :, rows[0] * step : rows[-1] * step + kernel]
        result = products(matrix, windows_of(part, w, lengths, space), len(rows), step, kernel)
        shape = (groups, len(rows), outs, part.shape[1], *lengths[1:])
        found[:, images, :, rows[0] : rows[-1] + 1] = result.reshape(shape).transpose(order)
    return found


def scattered(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply each row by kernels and add the products where they belong."""
    (groups, count), (outs, _, kernel) = x.shape[:2], w.shape[1:4]
    matrix = np.moveaxis(w, (3, 2), (1, -1)).reshape(groups, kernel * outs, -1)
    found = np.empty((groups, count, outs, *lengths), x.dtype)
    order = (0, 3, 2, 1, *range(4, 3 + len(lengths)))
    for images, rows in blocks(x, w, lengths, x.shape[3], 1):
        part = x[:, images, :, rows[0] : rows[-1] + 1]
        result = products(matrix, windows_of(part, w, lengths, space), len(rows), 1, 1)
        result = result.reshape(groups, len(rows), kernel, outs, -1)
        if not rows[0]:
            sums = np.zeros((groups, lengths[0], outs, result.shape[-1]), x.dtype)
        for tap in range(kernel):
            source, target = meeting(rows, lengths[0], space, tap)
            sums[:, target] += result[:, source, tap]
        if rows[-1] == x.shape[3] - 1:
            shape = (groups, lengths[0], outs, part.shape[1], *lengths[1:])
            found[:, images] = sums.reshape(shape).transpose(order)
    return found


def adds_taps(x: Array, w: Array, space: Geometry) -> bool:
    """Tell whether products with each tap of the last axis are far fewer than windows along it, and can be added."""
    (outs, channels), taps = w.shape[1:3], w.shape[-1]
    apart = taps > 1 and 2 * outs < channels and space.stride[-1] == space.spread[-1] == 1
    return apart and bool(np.isfinite(w).all())  # since they are multiplied by zeros


def added(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply images by each tap of the last axis, as if these were kernels, and add the products.

    Rows are followed by zeros until they are as long as those of the sums. So the products with a tap are added at one
    place further on in memory, and what goes beyond a row is zero.
    """
    (groups, outs, channels), taps, gap = w.shape[:3], w.shape[-1], space.dilation[-1]
    none, ones, reach = (0,) * len(lengths[1:]), (1,) * len(lengths), (taps - 1) * gap
    wide = surrounded(x, (0, *none), (*none, reach), ones)
    apart = np.moveaxis(w, -1, 1).reshape(groups, taps * outs, channels, *w.shape[3:-1], 1)
    inner = Geometry(*[(*of_axes[:-1], own) for of_axes, own in zip(space, (1, 1, 1, 0, 0), strict=True)])
    shape = (*lengths[:-1], wide.shape[-1])
    products = of_small_kernels(wide, apart, shape, inner).reshape(*x.shape[:2], taps, -1)
    sums = products[:, :, -1]
    for tap, start in enumerate(range(reach, 0, -gap)):
        sums[..., start:] += products[:, :, tap, :-start]
    low = space.low[-1] - reach
    cut = lengths[-1] - shape[-1] - low
    return surrounded(sums.reshape(*x.shape[:2], outs, *shape), (*none, low), (*none, cut), ones)


def meeting(rows: range, length: int, space: Geometry, tap: int) -> tuple[slice, slice]:
    """Return which of some rows of images a tap takes to rows of the result, and to which: these are alike."""
    stride, spread = space.stride[0], space.spread[0]
    moved = rows[0] * spread + space.low[0] - tap * space.dilation[0]  # row * spread + moved is place * stride
    if stride == 1:
        first = max(0, -(moved // spread))
        count = min(len(rows), -((moved - length) // spread)) - first
        return slice(first, first + max(count, 0)), slice(
            start := first * spread + moved, stop_of(start, count, spread), spread
        )
    first = max(0, -(-moved // stride))
    count = min(length, (len(rows) - 1 + moved) // stride + 1) - first
    start = first * stride - moved
    return slice(start, stop_of(start, count, stride), stride), slice(first, first + max(count, 0))


def stop_of(start: int, count: int, step: int) -> int:
    """Return where a slice ends that takes a number of elements."""
    return start + (count - 1) * step + 1 if count > 0 else start


# Large kernels


def of_large_kernels(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply images by kernels; elements that do not count are multiplied by 0 unless they are infinite."""
    x = surrounded(x, space.low, space.high, space.spread)
    if max(space.dilation) == 1 and x.shape[1] >= WIDE:
        with np.errstate(invalid="ignore"):
            found = overlaid(x, w, lengths, space)
        if not np.isnan(found).any():
            return found
    return summed(x, w, lengths, space)


def overlaid(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply images by kernels with zeros at the ends of their rows, so that what both cover is a vector."""
    x = np.ascontiguousarray(x)
    (groups, count, channels), pixels, item = x.shape[:3], x.shape[4:], x.itemsize
    (outs, _), kernel, steps = w.shape[1:3], w.shape[3:], x.strides[3:]
    if kernel[1:] != pixels:
        wide: Array = np.zeros((groups, outs, channels, kernel[0], *pixels), x.dtype)
        wide[(..., *[slice(n) for n in kernel])] = w
        w = wide
    length = sum([(n - 1) * step for n, step in zip(kernel, steps, strict=True)]) // item + 1
    split = largest_divisor(outs, NARROW // count)
    size = largest_divisor(length, SMALL // (count * split))
    pieces, ones = (channels, length // size), (1,) * len(lengths)
    by_place = times(steps, space.stride)
    left = as_strided(
        x,
        (groups, *lengths, *pieces, 1, count, size),
        (x.strides[0], *by_place, x.strides[2], size * item, 0, x.strides[1], item),
    )
    w = np.ascontiguousarray(w)
    by_group, by_out, by_channel = w.strides[:3]
    right = as_strided(
        w,
        (groups, *ones, *pieces, outs // split, size, split),
        (by_group, *(0,) * len(lengths), by_channel, size * item, split * by_out, item, by_out),
    )
    rank = len(lengths)
    found = np.add.reduce(np.matmul(left, right), (1 + rank, 2 + rank))  # (groups, places, split, count, outs)
    return np.moveaxis(found, (-2, -3, -1), (1, 2, 3))


def summed(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Add the products of rows of windows and rows of kernels, some of these and of the channels at a time."""
    count, (channels, rows), step = x.shape[1], w.shape[2:4], space.dilation[0]
    row = x.shape[0] * count * math.prod(lengths[1:]) * math.prod(w.shape[4:])
    share_of_channels = max(1, min(channels, MANY // (row * rows)))
    height = max(1, min(rows, MANY // (row * share_of_channels)))
    total: Any = None
    for first in range(0, channels, share_of_channels):
        inside = slice(first, first + share_of_channels)
        for start in range(0, rows, height):
            part = w[:, :, inside, start : start + height]
            stop = (start + part.shape[3] - 1) * step + (lengths[0] - 1) * space.stride[0] + 1
            found = sum_of_products(x[:, :, inside, start * step : stop], part, lengths, space)
            total = found if total is None else total + found
    return total


def sum_of_products(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Return the sum of the products of rows of windows and rows of kernels."""
    groups, count, channels, rows = x.shape[:4]
    outs, kernel, places = w.shape[1], w.shape[3:], math.prod(lengths[1:])
    by_group, by_image, by_channel, by_row, *steps = x.strides
    found = view(
        x,
        (groups, rows, *lengths[1:], count, channels, *kernel[1:]),
        (by_group, by_row, *times(steps, space.stride[1:]), by_image, by_channel, *times(steps, space.dilation[1:])),
    )
    windows = np.ascontiguousarray(found.reshape(groups, rows, places * count, -1))
    length, item = windows.shape[3], x.itemsize
    split = largest_divisor(outs, NARROW // (places * count))
    size = largest_divisor(length, SMALL // (places * count * split))
    pieces = (kernel[0], length // size)
    by_group, by_row, by_window, _ = windows.strides
    left = np.ndarray(
        (groups, lengths[0], *pieces, 1, places * count, size),
        x.dtype,
        windows,
        0,
        (by_group, space.stride[0] * by_row, space.dilation[0] * by_row, size * item, 0, by_window, item),
    )
    right = np.moveaxis(w, 3, 1).reshape(groups, 1, kernel[0], outs // split, split, length // size, size)
    products = np.matmul(left, right.transpose(0, 1, 2, 5, 3, 6, 4))
    found = np.add.reduce(products, (2, 3)) if pieces != (1, 1) else products[:, :, 0, 0]
    found = found.reshape(groups, lengths[0], outs // split, places, count, split)
    return found.transpose(0, 4, 2, 5, 1, 3)
