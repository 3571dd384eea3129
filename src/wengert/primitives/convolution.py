"""Correlations of stacks of images with kernels, in any number of dimensions.

result[g, n, o, p] = the sum over c and k of x[g, n, c, p stride + k dilation - low] w[g, o, c, k], where x has
`spread` - 1 zeros between its elements and any number around them; without groups there is no g. With a batch, channels
and a stack of them (the groups, and lanes) the operation is closed under differentiation: the cotangents of both
operands are such correlations, with stride, dilation and spread in other roles (Dumoulin and Visin, *A guide to
convolution arithmetic for deep learning*, 2016).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of
from wengert.core.cotangent import FEW, sum_over
from wengert.core.declare import linear, multilinear
from wengert.core.dispatch import apply
from wengert.core.examples import Results
from wengert.core.form import Form
from wengert.core.primitive import Primitive
from wengert.primitives.sliding import Plan, correlated, evaluated, planned
from wengert.primitives.sliding_products import BACKWARDS
from wengert.primitives.windows import Geometry, Lengths, result_lengths, spread_lengths

__all__ = ["biased", "correlation"]

Array = Any
BEFORE_SPACE = [(..., *[None] * rank) for rank in range(32)]
"""Indices that give numbers axes of space behind those they have."""


class Sliding(Form):
    """Windows that slide over the last axes of the first operand: a form of one primitive alone."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w = map(aval_of, inputs)
        rank = len(params["stride"])
        lengths = result_lengths(x.shape[-rank:], w.shape[-rank:], *[params[name] for name in Geometry._fields])
        shape = (*x.shape[: -rank - 1], w.shape[-rank - 2], *lengths)
        return (Aval(shape, np.result_type(x.dtype, w.dtype)),), None

    def batch(
        self,
        primitive: Primitive,
        size: int,
        operands: Sequence[Any],
        batched: Sequence[bool],
        params: Mapping[str, Any],
    ) -> Any:
        """Let lanes of both be one more stack, those of images more images, and those of kernels more kernels."""
        x, w = operands
        grouped = max(x.ndim - batched[0], w.ndim - batched[1]) - len(params["stride"]) - 2
        if all(batched):
            if not grouped:
                return apply(primitive, x, w, **params)
            found = apply(primitive, x.reshape(-1, *x.shape[2:]), w.reshape(-1, *w.shape[2:]), **params)
            return found.reshape(size, -1, *found.shape[1:])
        place = grouped if batched[0] else grouped + 1
        many = np.moveaxis(operands[0 if batched[0] else 1], 0, grouped)
        many = many.reshape(*many.shape[:grouped], -1, *many.shape[grouped + 2 :])
        found = apply(primitive, many, w, **params) if batched[0] else apply(primitive, x, many, **params)
        shape = found.shape
        return np.moveaxis(found.reshape(*shape[:place], size, -1, *shape[place + 1 :]), place, 0)


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


def cotangent_of_images(
    ct: Any, aval: Aval, w: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the cotangent, spread by the stride, with the kernels turned round."""
    rank = len(stride)
    turned = w.swapaxes(-rank - 2, -rank - 1)[BACKWARDS[rank]]
    return correlate(ct, turned, planned_images, aval.shape, stride, dilation, spread, low)


def cotangent_of_kernels(
    ct: Any, aval: Aval, x: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the images with the cotangent; the batch is what is summed over."""
    last = -1 - len(stride)
    images, kernels = x.swapaxes(last - 1, last), ct.swapaxes(last - 1, last)
    found = correlate(images, kernels, planned_kernels, aval.shape, stride, dilation, spread, low)
    return found.swapaxes(last - 1, last)


def correlate(x: Any, w: Any, plan_of: Callable[..., Plan], shape: Lengths, *space: Lengths) -> Any:
    """Return the correlation that is a cotangent of a shape by the plan of such, of arrays at once."""
    plan = plan_of(x.shape, w.shape, x.dtype.itemsize, shape, *space)
    if type(x) is np.ndarray and type(w) is np.ndarray and x.dtype is w.dtype:
        return evaluated(x, w, plan)
    return apply(correlation, x, w, **plan.space._asdict())


correlation = multilinear("correlation", correlated, (cotangent_of_images, cotangent_of_kernels), form=Sliding())


# A number for each channel


def evaluate_biased(x: Any, bias: Any, *, rank: int) -> Any:
    """Evaluate `biased`: images plus a number for each channel, the axis before `rank` others."""
    return x + bias[BEFORE_SPACE[rank]]


@functools.cache
def all_but_channels(count: int, rank: int) -> Lengths:
    """Return all of a number of axes but that of channels."""
    return (*range(count - rank - 1), *range(count - rank, count))


def transpose_biased(ct: Any, avals: Sequence[Aval | None], *, rank: int) -> list[Any]:
    """Pass the cotangent on, and sum it over all axes but that of channels."""
    images, bias = avals
    if bias is None:
        return [ct, None]
    others = all_but_channels(ct.ndim, rank)
    if type(ct) is not np.ndarray:
        found = ct.sum(axis=others)
    elif ct.flags.c_contiguous and math.prod(ct.shape[: -rank - 1]) <= FEW:  # NumPy adds pairwise within images
        found = np.add.reduce(ct, others)
    else:
        found = sum_over(ct, others)
    return [None if images is None else ct, found]


def batch_biased(
    _primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
) -> Any:
    """Add numbers of their own in each lane."""
    x, bias = operands
    x, bias = x if batched[0] else x[None], bias if batched[1] else bias[None]
    return x + bias.reshape(len(bias), *(1,) * (x.ndim - 2 - params["rank"]), -1, *(1,) * params["rank"])


biased = linear("biased", evaluate_biased, transpose=transpose_biased, variadic=True, batch=batch_biased)
