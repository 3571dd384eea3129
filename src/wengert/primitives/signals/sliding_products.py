"""Products of kernels and windows on images, some rows of windows at a time.

Of the axes of space the first is the outer one. Windows along the inner axes are copied into rows of shape (taps and
channels, images and places); along the outer axis they need not be: rows that follow each other are a matrix, too. So
where kernels are small, `gather_rows` multiplies them by views of k rows at once, and `scatter_rows` multiplies each
row by all k and adds the products where they belong, which takes less where rows are fewer than those of the result.
Where kernels are fewer than channels, `fold_taps` does so along all axes, without windows. Where results are small and
kernels large (these are cotangents of kernels), `sum_rows` multiplies rows, `overlay_kernels` images as they are by
kernels that are as wide, and `cover_images` by those that are as large.

Products are small enough for BLAS not to copy operands into an order of its own: OpenBLAS takes 0.6 to 0.9 of the time
then (float32, and float64 likewise, on AVX-512).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert.primitives.signals.windows import Geometry, Lengths, stop_of, surround_images, times, view

Array = Any
SMALL = 1_000_000
"""Multiplications in a product that OpenBLAS computes from operands as they are."""

NARROW = 1_200
"""Elements of such a product if the second operand is transposed."""

MANY = 1 << 18
"""Elements of windows that are copied at once: with fewer there are more steps, with more they leave the caches."""

WIDE = 16
"""Images from which on products with each of them are large enough."""

LONG, TILE = 24, 8
"""Places in a row with which products of single images are large enough, and of how many places BLAS takes some."""

OFTEN = 32
"""How often rows of windows are multiplied, so that copying them costs nothing beside it."""

LOW = 8
"""Rows of images that are multiplied by taps at least: the sums of products with them have some more."""

SHORT = 64
"""Elements in a row below which steps of NumPy take longer than they do."""

BACKWARDS = [(..., *[slice(None, None, -1)] * rank) for rank in range(32)]
"""Indices that turn kernels round, for each number of axes of space."""


@functools.lru_cache(maxsize=4096)
def largest_divisor(length: int, most: int) -> int:
    """Return the largest divisor of a length that is not more than a number; the length itself if that is too small."""
    found = next((n for n in range(min(length, most), 0, -1) if length % n == 0), 1)
    return found if found >= min(WIDE, length) else length


# Small kernels


def multiply_taps(x: Array, w: Array) -> Array:
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
    if folds(x, w, space):
        return fold_taps(x, w, lengths, space)
    scatters = rows < lengths[0] or space.dilation[0] > 1 or (spread > 1 and stride == 1)
    if scatters and (spread == 1 or stride == 1):
        x = surround_images(x, (0, *space.low[1:]), (0, *space.high[1:]), (1, *space.spread[1:]))
        return scatter_rows(x, w, lengths, space)
    x = surround_images(x, space.low, space.high, space.spread)
    space = space._replace(spread=(1,) * len(lengths), low=(0,) * len(lengths))
    return (gather_rows if space.dilation[0] == 1 else scatter_rows)(x, w, lengths, space)


def blocks(x: Array, w: Array, lengths: Lengths, rows: int, step: int) -> Iterator[tuple[slice, range]]:
    """Yield some images, and some of the rows, of which each takes a step of rows of windows, at a time."""
    row = x.shape[0] * x.shape[2] * math.prod(w.shape[4:]) * math.prod(lengths[1:]) * step
    images = max(1, min(x.shape[1], MANY // (row * rows)))
    height = max(1, min(rows, MANY // (row * images)))
    for first in range(0, x.shape[1], images):
        for start in range(0, rows, height):
            yield slice(first, first + images), range(start, min(rows, start + height))


def windows_of(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Return the windows of rows of images along inner axes: (groups, stacks, rows, taps and channels, images, places).

    The last two axes are one; the images come as stacks of them.
    """
    groups, stacks, images, channels, rows = x.shape[:5]
    by_group, by_stack, by_image, by_channel, by_row, *steps = x.strides
    taps = w.shape[4:]
    shape = (groups, stacks, rows, *taps, channels, images, *lengths[1:])
    by_tap, by_place = times(steps, space.dilation[1:]), times(steps, space.stride[1:])
    found = view(x, shape, (by_group, by_stack, by_row, *by_tap, by_channel, by_image, *by_place))
    found = found.reshape(groups, stacks, rows, math.prod(taps) * channels, images * math.prod(lengths[1:]))
    return np.ascontiguousarray(found)


def products(matrix: Array, rows: Array, found: Array, step: int, taps: int) -> Array:
    """Write a matrix for each group times rows of windows, some at a time: (groups, stacks, height, outs, width).

    Each product takes `taps` rows, which begin `step` rows after those of the one before.
    """
    groups, stacks, total, inner, width = rows.shape
    outs = matrix.shape[1]
    size = largest_divisor(width, SMALL // (outs * inner * taps))
    item = rows.itemsize
    by_row = inner * width * item
    shape = (groups, stacks, found.shape[2], width // size, taps * inner, size)
    strides = (stacks * total * by_row, total * by_row, step * by_row, size * item, width * item, item)
    target = view(found, (*found.shape[:4], width // size, size), (*found.strides[:4], size * item, item))
    np.matmul(
        matrix.reshape(groups, 1, 1, 1, outs, -1),
        np.ndarray(shape, rows.dtype, rows, 0, strides),
        out=target.swapaxes(3, 4),
    )
    return found


def gather_rows(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply kernels by all rows at once that they cover.

    Products of single images are written where they belong; those of several have to be put in order.
    """
    (groups, count), (outs, _, kernel), step = x.shape[:2], w.shape[1:4], space.stride[0]
    matrix = np.moveaxis(w, 2, -1).reshape(groups, outs, -1)
    places = math.prod(lengths[1:])
    found = np.empty((groups, count, outs, lengths[0], places), x.dtype)
    apart = count == 1 or (places >= LONG and places % TILE == 0)
    for images, rows in blocks(x, w, lengths, lengths[0], step):
        part = x[:, images, :, rows[0] * step : rows[-1] * step + kernel]
        target = found[:, images, :, rows[0] : rows[-1] + 1].swapaxes(2, 3)
        if apart:
            products(matrix, windows_of(part[:, :, None], w, lengths, space), target, step, kernel)
        else:
            result: Array = np.empty((groups, 1, len(rows), outs, part.shape[1] * places), x.dtype)
            products(matrix, windows_of(part[:, None], w, lengths, space), result, step, kernel)
            target[...] = result.reshape(groups, len(rows), outs, -1, places).transpose(0, 3, 1, 2, 4)
    return found.reshape(groups, count, outs, *lengths)


def scatter_rows(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply each row by kernels and add the products where they belong."""
    (groups, count), (outs, _, kernel) = x.shape[:2], w.shape[1:4]
    matrix = np.moveaxis(w, (3, 2), (1, -1)).reshape(groups, kernel * outs, -1)
    found = np.empty((groups, count, outs, *lengths), x.dtype)
    order = (0, 3, 2, 1, *range(4, 3 + len(lengths)))
    for images, rows in blocks(x, w, lengths, x.shape[3], 1):
        part = x[:, images, :, rows[0] : rows[-1] + 1]
        width = part.shape[1] * math.prod(lengths[1:])
        result: Array = np.empty((groups, 1, len(rows), kernel * outs, width), x.dtype)
        products(matrix, windows_of(part[:, None], w, lengths, space), result, 1, 1)
        result = result.reshape(groups, len(rows), kernel, outs, width)
        if not rows[0]:
            sums = np.zeros((groups, lengths[0], outs, result.shape[-1]), x.dtype)
        for tap in range(kernel):
            source, target = meeting_rows(rows, lengths[0], space, tap)
            sums[:, target] += result[:, source, tap]
        if rows[-1] == x.shape[3] - 1:
            shape = (groups, lengths[0], outs, part.shape[1], *lengths[1:])
            found[:, images] = sums.reshape(shape).transpose(order)
    return found


def meeting_rows(rows: range, length: int, space: Geometry, tap: int) -> tuple[slice, slice]:
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


# Few kernels


def folds(x: Array, w: Array, space: Geometry) -> bool:
    """Tell whether products with each tap are far fewer than windows, and can be added."""
    (outs, channels), image, kernel = w.shape[1:3], x.shape[3:], w.shape[3:]
    axes = [*zip(kernel, space.spread, space.dilation, strict=True)]
    if max(space.stride) > 1 or all(k <= spread for k, spread, _ in axes) or any(s > 1 < d for _, s, d in axes):
        return False
    whole = math.prod(lengths_of_sums(image, kernel, space))
    few = outs * whole <= 0.6 * channels * space.spread[-1] * math.prod(image)
    return few and whole >= SHORT and bool(np.isfinite(w).all())  # since they are multiplied by zeros


def lengths_of_sums(image: Lengths, kernel: Lengths, space: Geometry) -> Lengths:
    """Return the lengths of images and of how far the taps reach that meet in an element."""
    axes = zip(image, kernel, space.spread, space.dilation, strict=True)
    return tuple([n + (-(-k // spread) - 1) * gap for n, k, spread, gap in axes])


def fold_taps(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply images by each tap, as if these were kernels, and add the products where they belong, by some rows.

    Images are followed by zeros, as far as taps reach along each axis. So the products with a tap are added at one
    distance in memory, and those with all taps in one step, in which zeros fall on what is beyond an image. If images
    are spread, that holds for the taps that are a spread apart, which meet in every so manieth element.
    """
    (groups, count), image = x.shape[:2], x.shape[3:]
    outs, kernel, rank = w.shape[1], w.shape[3:], len(lengths)
    axes = zip(image, kernel, space.spread, space.dilation, strict=True)
    full = [(n - 1) * spread + (k - 1) * gap + 1 for n, k, spread, gap in axes]
    found = np.zeros((groups, count, outs, *full), x.dtype)
    turned = np.moveaxis(w[BACKWARDS[rank]], 2, -1)
    whole = lengths_of_sums(image, kernel, space)
    most = MANY // (groups * turned[0, ..., 0].size * math.prod(whole[1:]))
    height = max(most - whole[0] + image[0], LOW)
    for first in range(0, image[0], height):
        rows = x[:, :, :, first : first + height]
        add_products(found[:, :, :, first * space.spread[0] :], rows, turned, space)
    low = tuple([a - (k - 1) * gap for a, k, gap in zip(space.low, kernel, space.dilation, strict=True)])
    high = tuple([n - m - a for n, m, a in zip(lengths, full, low, strict=True)])
    return surround_images(found, low, high, (1,) * rank)


def add_products(found: Array, x: Array, turned: Array, space: Geometry) -> None:
    """Add the products of images, some at a time, and of kernels that were turned round."""
    (groups, count, channels), image, item = x.shape[:3], x.shape[3:], x.itemsize
    outs, kernel, spread, rank = turned.shape[1], turned.shape[2:-1], space.spread, len(image)
    whole = lengths_of_sums(image, kernel, space)
    total, taps, filled = math.prod(whole), math.prod(kernel), image[0] * math.prod(whole[1:])
    moves = times([item * math.prod(whole[i + 1 :]) for i in range(rank)], space.dilation)
    matrix = turned.reshape(groups, 1, 1, outs * taps, channels)
    size = largest_divisor(filled, SMALL // (outs * taps * channels))
    most = min(count, max(1, MANY // (groups * outs * taps * total)))
    wide: Array = np.zeros((groups, most, channels, image[0], *whole[1:]), x.dtype)
    inside = (..., *[slice(n) for n in image])
    parts = wide.reshape(groups, most, channels, -1, size).swapaxes(2, 3)
    products: Array = np.empty((groups, most, outs, *kernel, total), x.dtype)
    products[..., filled:] = 0
    written = products.reshape(groups, most, outs * taps, total)[..., :filled]
    written = written.reshape(groups, most, outs * taps, -1, size).swapaxes(2, 3)  # a view
    for first in range(0, count, most):
        images, some = slice(first, first + most), slice(min(most, count - first))
        wide[:, some][inside] = x[:, images]
        np.matmul(matrix, parts[:, some], out=written[:, some])
        for phase in itertools.product(*map(range, map(min, kernel, spread))):
            every = tuple([slice(start, None, step) for start, step in zip(phase, spread, strict=True)])
            terms = products[(slice(None), some, slice(None), *every)]
            strides = [by_tap - move for by_tap, move in zip(terms.strides[3:-1], moves, strict=True)]
            terms = as_strided(terms, terms.shape, (*terms.strides[:3], *strides, item))
            sums = np.add.reduce(terms, tuple(range(3, 3 + rank))).reshape(groups, -1, outs, *whole)
            target = found[(slice(None), images, slice(None), *every)]
            target = target[(..., *[slice(n) for n in whole])]
            target += sums[(..., *[slice(n) for n in target.shape[3:]])]


# Large kernels


def of_large_kernels(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
    """Multiply images by kernels; elements that do not count are multiplied by 0 unless they are infinite."""
    x = surround_images(x, space.low, space.high, space.spread)
    if x.shape[3:] == w.shape[3:]:
        return cover_images(x, w)
    uses = w.shape[1] * w.shape[3] * lengths[0]  # of each row of windows, nearly
    if max(space.dilation) == 1 and x.shape[1] >= WIDE and uses <= OFTEN * x.shape[3]:
        with np.errstate(invalid="ignore"):
            found = overlay_kernels(x, w, lengths, space)
        if not np.isnan(found).any():
            return found
    return sum_rows(x, w, lengths, space)


def cover_images(x: Array, w: Array) -> Array:
    """Multiply images by kernels that cover them, channel by channel or all at once."""
    (groups, count, channels), outs = x.shape[:3], w.shape[1]
    x, w = x.reshape(groups, count, channels, -1), w.reshape(groups, outs, channels, -1)
    if x.shape[3] < SHORT or channels * count * outs > MANY:
        return np.matmul(x.reshape(groups, count, -1), w.reshape(groups, outs, -1).swapaxes(1, 2))
    return np.add.reduce(np.matmul(x.swapaxes(1, 2), w.transpose(0, 2, 3, 1)), 1)


def overlay_kernels(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
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


def sum_rows(x: Array, w: Array, lengths: Lengths, space: Geometry) -> Array:
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
    """Return the sum of the products of rows of windows and rows of kernels.

    Windows of all rows of the result are multiplied at once where they lie behind each other.
    """
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
    at_once = lengths[0] if space.stride[0] == 1 else 1
    height = at_once * places * count
    split = largest_divisor(outs, NARROW // height)
    by_group, by_row, by_window, _ = windows.strides
    left = np.ndarray(
        (groups, lengths[0] // at_once, kernel[0], 1, height, length),
        x.dtype,
        windows,
        0,
        (by_group, space.stride[0] * by_row, space.dilation[0] * by_row, 0, by_window, item),
    )
    right = np.moveaxis(w, 3, 1).reshape(groups, 1, kernel[0], outs // split, split, length)
    products = np.matmul(left, right.swapaxes(-1, -2))
    found = np.add.reduce(products, 2) if kernel[0] > 1 else products[:, :, 0]
    found = found.reshape(groups, -1, outs // split, at_once, places, count, split)
    return found.transpose(0, 5, 2, 6, 1, 3, 4)
