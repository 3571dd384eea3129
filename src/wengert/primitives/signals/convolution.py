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

from wengert.core.forms.form import Form
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import FEW, sum_over
from wengert.core.primitives.declare import multilinear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.primitives.signals.sliding import Plan, correlated, evaluated, in_any_order, planned
from wengert.primitives.signals.sliding_products import BACKWARDS
from wengert.primitives.signals.windows import Geometry, Lengths, result_lengths, spread_lengths

Array = Any
OF_CHANNELS = [(..., None, slice(None), *[None] * rank) for rank in range(32)]
"""Indices that give numbers for channels the axes of images, for each number of axes of space."""


class Sliding(Form):
    """Windows that slide over the last axes of the first operand, and numbers for channels that are added."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w, *_ = avals = [*map(aval_of, inputs)]
        rank = len(params["stride"])
        lengths = result_lengths(x.shape[-rank:], w.shape[-rank:], *[params[name] for name in Geometry._fields])
        shape = (*x.shape[: -rank - 1], w.shape[-rank - 2], *lengths)
        return (Aval(shape, np.result_type(*[aval.dtype for aval in avals])),), None

    def batch(
        self,
        primitive: Primitive,
        size: int,
        operands: Sequence[Any],
        batched: Sequence[bool],
        params: Mapping[str, Any],
    ) -> Any:
        """Let lanes of both be one more stack, those of images more images, and those of kernels more kernels."""
        if len(operands) == 3:
            x, w, bias = operands
            if any(batched[:2]):
                found = self.batch(correlation, size, (x, w), batched[:2], params)
            else:
                found = apply(correlation, x, w, **params)
            return found + bias[OF_CHANNELS[len(params["stride"])]]
        x, w = operands
        grouped = max(x.ndim - batched[0], w.ndim - batched[1]) - len(params["stride"]) - 2
        if all(batched):
            if not grouped:
                return apply(primitive, x, w, **params)
            parts = (z.reshape(z.shape[0] * z.shape[1], *z.shape[2:]) for z in (x, w))
            found = apply(primitive, *parts, **params)
            return found.reshape(size, x.shape[1], *found.shape[1:])
        place = grouped if batched[0] else grouped + 1
        many = np.moveaxis(operands[0 if batched[0] else 1], 0, grouped)
        count = many.shape[grouped + 1]  # said, since -1 for it says nothing where there are no elements
        many = many.reshape(*many.shape[:grouped], size * count, *many.shape[grouped + 2 :])
        found = apply(primitive, many, w, **params) if batched[0] else apply(primitive, x, many, **params)
        shape = found.shape
        return np.moveaxis(found.reshape(*shape[:place], size, count, *shape[place + 1 :]), place, 0)


@functools.lru_cache(maxsize=4096)
def around_cotangent(
    ct: Lengths, x: Lengths, w: Lengths, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths
) -> tuple[Lengths, Lengths]:
    """Return the numbers of zeros around the cotangent that make the cotangent of images as long as they are."""
    spans = spread_lengths(w, dilation)
    before = tuple([span - 1 - a for span, a in zip(spans, low, strict=True)])
    lengths = zip(spread_lengths(x, spread), spans, spread_lengths(ct, stride), before, strict=True)
    return before, tuple([n + span - 1 - r - b for n, span, r, b in lengths])


@functools.lru_cache(maxsize=4096)
def behind_images(
    ct: Lengths, w: Lengths, x: Lengths, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths
) -> Lengths:
    """Return the numbers of zeros behind images that make the cotangent of kernels as long as they are."""
    lengths = zip(spread_lengths(w, dilation), spread_lengths(ct, stride), spread_lengths(x, spread), low, strict=True)
    return tuple([n + span - 1 - m - a for n, span, m, a in lengths])


@functools.lru_cache(maxsize=4096)
def planned_images(
    ct: Lengths,
    turned: Lengths,
    item: int,
    x: Lengths,
    stride: Lengths,
    dilation: Lengths,
    spread: Lengths,
    low: Lengths,
) -> Plan:
    """Return the plan of the cotangent of images."""
    rank = len(stride)
    around = around_cotangent(ct[-rank:], x[-rank:], turned[-rank:], stride, dilation, spread, low)
    return planned(ct, turned, item, spread, dilation, stride, *around)


@functools.lru_cache(maxsize=4096)
def planned_kernels(
    x: Lengths, ct: Lengths, item: int, w: Lengths, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths
) -> Plan:
    """Return the plan of the cotangent of kernels."""
    rank = len(stride)
    behind = behind_images(ct[-rank:], w[-rank:], x[-rank:], stride, dilation, spread, low)
    return planned(x, ct, item, dilation, stride, spread, low, behind)


def of_images(
    ct: Any, shape: Lengths, w: Any, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths
) -> Any:
    """Return the cotangent of images: that of the result, spread by the stride, times kernels that are turned round."""
    rank = len(stride)
    turned = w.swapaxes(-rank - 2, -rank - 1)[BACKWARDS[rank]]
    plan = planned_images(ct.shape, turned.shape, ct.dtype.itemsize, shape, stride, dilation, spread, low)
    return correlate(ct, turned, plan)


def of_kernels(
    ct: Any, shape: Lengths, x: Any, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths
) -> Any:
    """Return the cotangent of kernels: images times that of the result; the batch is what is summed over."""
    last = -1 - len(stride)
    images, kernels = x.swapaxes(last - 1, last), ct.swapaxes(last - 1, last)
    plan = planned_kernels(images.shape, kernels.shape, x.dtype.itemsize, shape, stride, dilation, spread, low)
    return correlate(images, kernels, plan).swapaxes(last - 1, last)


def correlate(x: Any, w: Any, plan: Plan) -> Any:
    """Return a correlation by its plan, of arrays at once."""
    if type(x) is np.ndarray and type(w) is np.ndarray and x.dtype is w.dtype:
        return evaluated(x, w, plan)
    return apply(correlation, x, w, **plan.space._asdict())


def images_of_correlation(
    ct: Any, aval: Aval, w: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Return the cotangent of images."""
    return of_images(ct, aval.shape, w, stride, dilation, spread, low)


def kernels_of_correlation(
    ct: Any, aval: Aval, x: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Return the cotangent of kernels."""
    return of_kernels(ct, aval.shape, x, stride, dilation, spread, low)


correlation = multilinear("correlation", correlated, (images_of_correlation, kernels_of_correlation), form=Sliding())


# Convolutions of networks


def evaluate_convolution(
    x: Array, w: Array, b: Array, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Array:
    """Evaluate `convolution`: the correlation, plus a number for each channel."""
    found = in_any_order(x, w, stride, dilation, spread, low, high)
    numbers = b[OF_CHANNELS[len(stride)]]
    if found.dtype is b.dtype and found.flags.c_contiguous:
        return np.add(found, numbers, found)
    return np.add(found, numbers, order="C")


def images_of_convolution(
    ct: Any,
    aval: Aval,
    _out: Any,
    _x: Any,
    w: Any,
    _b: Any,
    *,
    stride: Lengths,
    dilation: Lengths,
    spread: Lengths,
    low: Lengths,
    high: Lengths,
) -> Any:
    """Return the cotangent of images."""
    return of_images(ct, aval.shape, w, stride, dilation, spread, low)


def kernels_of_convolution(
    ct: Any,
    aval: Aval,
    _out: Any,
    x: Any,
    _w: Any,
    _b: Any,
    *,
    stride: Lengths,
    dilation: Lengths,
    spread: Lengths,
    low: Lengths,
    high: Lengths,
) -> Any:
    """Return the cotangent of kernels."""
    return of_kernels(ct, aval.shape, x, stride, dilation, spread, low)


@functools.cache
def all_but_channels(count: int, rank: int, stacks: int) -> Lengths:
    """Return all of a number of axes but those of stacks and channels."""
    return (*range(stacks, count - rank - 1), *range(count - rank, count))


def numbers_of_convolution(ct: Any, aval: Aval, _out: Any, _x: Any, _w: Any, _bias: Any, **space: Lengths) -> Any:
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
    (images_of_convolution, kernels_of_convolution, numbers_of_convolution),
    jvp=convolution_jvp,
    form=Sliding(),
    fresh=True,
)
