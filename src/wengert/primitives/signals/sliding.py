"""Correlations of images with kernels: few windows are multiplied at once, by what is known of their shapes."""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from wengert.primitives.signals.sliding_products import MANY, multiplied, of_large_kernels, of_small_kernels
from wengert.primitives.signals.windows import Geometry, Lengths, placement, result_lengths, times

Array = Any
FEW = 1 << 13
"""Elements of windows that are copied along all axes, since each step of Python takes longer than they do."""

RUNS = 1.6
"""How many times as long runs may be as places: those on padded images of 3 x 8 x 8 are copied in half of the time."""


def correlated(
    x: Array, w: Array, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Array:
    """Return the correlations of images with kernels, or of stacks of them."""
    found = in_any_order(x, w, stride, dilation, spread, low, high)
    return found if found.flags.c_contiguous else found.copy()


def in_any_order(
    x: Array, w: Array, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Array:
    """Return the correlations in any order of memory."""
    if x.dtype is not w.dtype:
        kind = np.result_type(x, w)
        x, w = x.astype(kind, copy=False), w.astype(kind, copy=False)
    return evaluated(x, w, planned(x.shape, w.shape, x.itemsize, stride, dilation, spread, low, high))


def evaluated(x: Array, w: Array, plan: Plan) -> Array:
    """Return the correlations of images with kernels of their dtype as they were planned, in any order of memory."""
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
    return found.reshape(plan.shape)


class Plan(NamedTuple):
    """Hold the plan of a correlation, which depends on shapes and the size of an element alone.

    Attributes:
        space: where windows are.
        lengths: those of the result along the axes of space.
        shape: that of the result.
        windows: the number of elements of all windows.
        few: whether there are few enough to copy them at once.
        around: the shape of images with zeros between and around their elements, and the places of these; see
            `placement`. The shape is empty if they stay as they are.
        copied: the shape and strides of windows of images without gaps, whose longer rows are the last axis. Those of
            steps of one are runs from the first place to the last, with what lies between rows of places.
        columns: the shape of windows as columns, or as rows, and that of kernels as the rows they are multiplied by;
            matrices if there is one image, or windows are rows of a stack of images.
        turned: whether windows are rows, since kernels are wider than the result.
        strides: those of the result in the product, where kernels are before images, or what lies between rows of
            places is left out; empty if all elements follow each other.
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
    strides: Lengths


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
    """Return the plan of a correlation by its shapes and the size of an element."""
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
    stack, channels, outs, turned = x[: -rank - 1], x[-rank - 1], w[-rank - 2], kernel[-1:] > lengths[-1:]
    alone = math.prod(stack) == 1
    crossed = len(stack) == 1 and not alone
    reach = sum([(n - 1) * step for n, step in zip(lengths, steps, strict=True)]) // item + 1
    runs = (alone or crossed) and not turned and max(stride) == 1 and places < reach <= RUNS * places
    width, along, by_along = (reach, (reach,), (item,)) if runs else (places, lengths, by_place)
    if turned:
        copied = (*stack, *lengths, channels, *kernel), (*outside[:-1], *by_place, *by_tap)
    elif crossed:
        copied = (channels, *kernel, *stack, *along), (*by_tap, *outside[:-1], *by_along)
    else:
        copied = (*stack, channels, *kernel, *along), (*outside[:-1], *by_tap, *by_along)
    rows = (outs, taps) if alone or crossed else (*stack[:-1], 1, outs, taps)
    columns = (*(() if alone or crossed else stack), *((places, taps) if turned else (taps, width)))
    if crossed:
        columns = (stack[0] * places, taps) if turned else (taps, stack[0] * width)
    inner = steps if runs else [item * math.prod(lengths[i + 1 :]) for i in range(rank)]
    by_image, by_out = width * item, math.prod(stack) * width * item
    strides = (*[by_image] * len(stack), by_out, *inner) if crossed or runs else ()
    space = Geometry(stride, dilation, spread, low, high)
    return Plan(space, lengths, shape, windows, 0 < windows <= FEW, around, copied, (columns, rows), turned, strides)


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
    return np.ndarray(plan.shape, x.dtype, found, 0, plan.strides) if plan.strides else found.reshape(plan.shape)
