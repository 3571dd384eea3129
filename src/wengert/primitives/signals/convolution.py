"""Correlations of stacks of images with kernels, in any number of dimensions.

result[g, n, o, p] = the sum over c and k of x[g, n, c, p stride + k dilation - low] w[g, o, c, k], where x has
`spread` - 1 zeros between its elements and any number around them; without groups there is no g. A convolution of a
network adds a number for each channel o. With a batch, channels
and a stack of them (the groups, and lanes) the operation is closed under differentiation: the cotangents of both
operands are such correlations, with stride, dilation and spread in other roles (Dumoulin and Visin, *A guide to
convolution arithmetic for deep learning*, 2016).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Flags, Form, Lanes, Params
from wengert.core.forms.shape_probes import Results
from wengert.core.forms.view_forms import stepwise
from wengert.core.maps.box_maps import BoxMap
from wengert.core.primitives.cotangent import FEW, sum_over
from wengert.core.primitives.declare import multilinear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.primitives.signals.sliding_products import (
    BACKWARDS,
    MANY,
    multiply_taps,
    of_large_kernels,
    of_small_kernels,
)
from wengert.primitives.signals.window_maps import window_maps
from wengert.primitives.signals.windows import Geometry, Lengths, placement, result_lengths, spread_lengths, times
from wengert.support.records import NamedTuple

Array = Any
OF_CHANNELS = [(..., None, slice(None), *[None] * rank) for rank in range(32)]
"""Indices that give numbers for channels the axes of images, for each number of axes of space."""


# Correlations: few windows are multiplied at once, by what is known of their shapes


FEW_WINDOWS = 1 << 13
"""Elements of windows that are copied along all axes, since each step of Python takes longer than they do."""

RUNS = 1.6
"""How many times as long runs may be as places: those on padded images of 3 x 8 x 8 are copied in half of the time."""


def evaluate_correlation(x: Array, w: Array, **space: Lengths) -> Array:
    """Evaluate `correlation`: of images with kernels, or of stacks of them."""
    found = correlate_in_any_order(x, w, Geometry(**space))
    return found if found.flags.c_contiguous else found.copy()


def correlate_in_any_order(x: Array, w: Array, space: Geometry) -> Array:
    """Return the correlations in any order of memory."""
    if x.dtype is not w.dtype:
        kind = np.result_type(x, w)
        x, w = x.astype(kind, copy=False), w.astype(kind, copy=False)
    return correlate_by_plan(x, w, plan_correlation(x.shape, w.shape, x.itemsize, space))


def correlate_by_plan(x: Array, w: Array, plan: CorrelationPlan) -> Array:
    """Return the correlations of images with kernels of their dtype as they were planned, in any order of memory."""
    if plan.few:
        return multiply_at_once(x, w, plan)
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
        found = multiply_taps(x, w)
    else:
        found = of_small_kernels(x, w, lengths, space)
    return found.reshape(plan.shape)


class CorrelationPlan(NamedTuple):
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
def plan_correlation(x: Lengths, w: Lengths, item: int, space: Geometry) -> CorrelationPlan:
    """Return the plan of a correlation by its shapes and the size of an element."""
    rank, stride = len(space.stride), space.stride
    images, kernel = x[-rank:], w[-rank:]
    lengths = result_lengths(images, kernel, space)
    shape = (*x[: -rank - 1], w[-rank - 2], *lengths)
    taps, places = math.prod(w[-rank - 1 :]), math.prod(lengths)
    windows = 0 if 0 in (*x, *w) else math.prod(x[:-rank]) * math.prod(kernel) * places
    padded, inside, place = placement(images, space.low, space.high, space.spread)
    around = (() if padded == images and place is None else (*x[:-rank], *padded), inside, place)
    steps = [item * math.prod(padded[i + 1 :]) for i in range(rank)]
    outside = [item * math.prod((*x[i + 1 : -rank], *padded)) for i in range(len(x) - rank)]
    by_tap, by_place = [outside[-1], *times(steps, space.dilation)], times(steps, stride)
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
    return CorrelationPlan(
        space, lengths, shape, windows, 0 < windows <= FEW_WINDOWS, around, copied, (columns, rows), turned, strides
    )


def multiply_at_once(x: Array, w: Array, plan: CorrelationPlan) -> Array:
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


class Sliding(Form):
    """Windows that slide over the last axes of the first operand, and numbers for channels that are added."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w, *_ = avals = [*map(aval_of, inputs)]
        rank = len(params["stride"])
        lengths = result_lengths(x.shape[-rank:], w.shape[-rank:], Geometry(**params))
        shape = (*x.shape[: -rank - 1], w.shape[-rank - 2], *lengths)
        return (Aval(shape, np.result_type(*[aval.dtype for aval in avals])),), None

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Depend on the windows that taps reach; numbers for channels reach them all."""
        return window_maps(position, operands, out.shape, Geometry(**params)) if position < 2 else None

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Let lanes of both be one more stack, those of images more images, and those of kernels more kernels."""
        if len(operands) == 3:
            x, w, bias = operands
            pair: Any = (x, w), [(correlation, params)]
            if any(batched[:2]):
                pair = self.batch(correlation, size, (x, w), batched[:2], params)
            return [stepwise(*pair) + bias[OF_CHANNELS[len(params["stride"])]]], []
        x, w = operands
        grouped = max(x.ndim - batched[0], w.ndim - batched[1]) - len(params["stride"]) - 2
        if all(batched):
            if not grouped:
                return operands, [(primitive, params)]
            parts = (z.reshape(z.shape[0] * z.shape[1], *z.shape[2:]) for z in (x, w))
            found = apply(primitive, *parts, **params)
            return [found.reshape(size, x.shape[1], *found.shape[1:])], []
        place = grouped if batched[0] else grouped + 1
        many = np.moveaxis(operands[0 if batched[0] else 1], 0, grouped)
        count = many.shape[grouped + 1]  # said, since -1 for it says nothing where there are no elements
        many = many.reshape(*many.shape[:grouped], size * count, *many.shape[grouped + 2 :])
        found = apply(primitive, many, w, **params) if batched[0] else apply(primitive, x, many, **params)
        shape = found.shape
        return [np.moveaxis(found.reshape(*shape[:place], size, count, *shape[place + 1 :]), place, 0)], []


# Cotangents


@functools.lru_cache(maxsize=4096)
def plan_images(ct: Lengths, turned: Lengths, item: int, x: Lengths, space: Geometry) -> CorrelationPlan:
    """Return the plan of the cotangent of images, with zeros around that of the result that make it as long as they."""
    stride, dilation, spread, low, _ = space
    rank = len(stride)
    spans = spread_lengths(turned[-rank:], dilation)
    before = tuple([span - 1 - a for span, a in zip(spans, low, strict=True)])
    lengths = zip(spread_lengths(x[-rank:], spread), spans, spread_lengths(ct[-rank:], stride), before, strict=True)
    after = tuple([n + span - 1 - r - b for n, span, r, b in lengths])
    return plan_correlation(ct, turned, item, Geometry(spread, dilation, stride, before, after))


@functools.lru_cache(maxsize=4096)
def plan_kernels(x: Lengths, ct: Lengths, item: int, w: Lengths, space: Geometry) -> CorrelationPlan:
    """Return the plan of the cotangent of kernels, with zeros behind images that make it as long as they are."""
    stride, dilation, spread, low, _ = space
    rank = len(stride)
    spans = spread_lengths(w[-rank:], dilation), spread_lengths(ct[-rank:], stride), spread_lengths(x[-rank:], spread)
    after = tuple([n + span - 1 - m - a for n, span, m, a in zip(*spans, low, strict=True)])
    return plan_correlation(x, ct, item, Geometry(dilation, stride, spread, low, after))


def cotangent_of_images(ct: Any, shape: Lengths, w: Any, space: Geometry) -> Any:
    """Return the cotangent of images: that of the result, spread by the stride, times kernels that are turned round."""
    rank = len(space.stride)
    turned = w.swapaxes(-rank - 2, -rank - 1)[BACKWARDS[rank]]
    return correlate(ct, turned, plan_images(ct.shape, turned.shape, ct.dtype.itemsize, shape, space))


def cotangent_of_kernels(ct: Any, shape: Lengths, x: Any, space: Geometry) -> Any:
    """Return the cotangent of kernels: images times that of the result; the batch is what is summed over."""
    last = -1 - len(space.stride)
    images, kernels = x.swapaxes(last - 1, last), ct.swapaxes(last - 1, last)
    plan = plan_kernels(images.shape, kernels.shape, x.dtype.itemsize, shape, space)
    return correlate(images, kernels, plan).swapaxes(last - 1, last)


def correlate(x: Any, w: Any, plan: CorrelationPlan) -> Any:
    """Return a correlation by its plan, of arrays at once."""
    if type(x) is np.ndarray and type(w) is np.ndarray and x.dtype is w.dtype:
        return correlate_by_plan(x, w, plan)
    return apply(correlation, x, w, **plan.space._asdict())


correlation = multilinear(
    "correlation",
    evaluate_correlation,
    (
        lambda ct, aval, w, **space: cotangent_of_images(ct, aval.shape, w, Geometry(**space)),
        lambda ct, aval, x, **space: cotangent_of_kernels(ct, aval.shape, x, Geometry(**space)),
    ),
    form=Sliding(),
)


# Convolutions of networks


def evaluate_convolution(x: Array, w: Array, b: Array, **space: Lengths) -> Array:
    """Evaluate `convolution`: the correlation, plus a number for each channel."""
    found = correlate_in_any_order(x, w, Geometry(**space))
    numbers = b[OF_CHANNELS[len(space["stride"])]]
    if found.dtype is b.dtype and found.flags.c_contiguous:
        return np.add(found, numbers, found)
    return np.add(found, numbers, order="C")


@functools.cache
def all_but_channels(count: int, rank: int, stacks: int) -> Lengths:
    """Return all of a number of axes but those of stacks and channels."""
    return (*range(stacks, count - rank - 1), *range(count - rank, count))


def cotangent_of_numbers(ct: Any, aval: Aval, _out: Any, _x: Any, _w: Any, _bias: Any, **space: Lengths) -> Any:
    """Sum the cotangent over all axes but those of stacks and channels."""
    rank = len(space["stride"])
    others = all_but_channels(ct.ndim, rank, len(aval.shape) - 1)
    if type(ct) is not np.ndarray:
        return ct.sum(axis=others)
    if ct.flags.c_contiguous and math.prod(ct.shape[: -rank - 1]) <= FEW:  # NumPy adds pairwise within images
        return np.add.reduce(ct, others)
    return sum_over(ct, others)


def convolution_jvp(tangents: Sequence[Any], out: Any, x: Any, w: Any, _bias: Any, **space: Lengths) -> Any:
    """Add what the operands move."""
    of_images, of_kernels, of_numbers = tangents
    found = [] if of_images is None else [apply(correlation, of_images, w, **space)]
    if of_kernels is not None:
        found.append(apply(correlation, x, of_kernels, **space))
    if of_numbers is not None:
        found.append(np.broadcast_to(of_numbers[OF_CHANNELS[len(space["stride"])]], out.shape))
    return sum(found[1:], found[0])


convolution = opaque(
    "convolution",
    evaluate_convolution,
    (
        lambda ct, aval, _out, _x, w, _b, **space: cotangent_of_images(ct, aval.shape, w, Geometry(**space)),
        lambda ct, aval, _out, x, _w, _b, **space: cotangent_of_kernels(ct, aval.shape, x, Geometry(**space)),
        cotangent_of_numbers,
    ),
    jvp=convolution_jvp,
    form=Sliding(),
    fresh=True,
)
