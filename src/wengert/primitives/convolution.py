"""Correlations of stacks of images with kernels, in any number of dimensions.

result[g, n, o, p] = the sum over c and k of x[g, n, c, p stride + k dilation - low] w[g, o, c, k], where x has
`spread` - 1 zeros between its elements and any number around them. With a batch, channels and a stack of them (the
groups, and lanes) the operation is closed under differentiation: the cotangents of both operands are such correlations,
with stride, dilation and spread in other roles (Dumoulin and Visin, *A guide to convolution arithmetic for deep
learning*, 2016).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert.core.aval import Aval, aval_of
from wengert.core.declare import multilinear
from wengert.core.dispatch import apply
from wengert.core.examples import Results
from wengert.core.form import Form
from wengert.core.primitive import Primitive

__all__ = ["correlation"]

Array = Any
Lengths = tuple[int, ...]
MANY = 1 << 18
"""Elements of windows that are copied at once: they are multiplied while they are in a cache."""

FEW = 1 << 13
"""Elements of windows that are copied in less time than a loop over the taps of kernels takes."""


def spread_lengths(shape: Sequence[int], spread: Lengths) -> Lengths:
    """Return the lengths of axes with zeros between their elements."""
    return tuple([(n - 1) * step + 1 if n else 0 for n, step in zip(shape, spread, strict=True)])


@functools.lru_cache(maxsize=4096)
def result_lengths(
    x: Lengths, w: Lengths, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Lengths:
    """Return the lengths of the result along the axes of space."""
    padded = [n + a + b for n, a, b in zip(spread_lengths(x, spread), low, high, strict=True)]
    steps = zip(padded, spread_lengths(w, dilation), stride, strict=True)
    return tuple([max((n - span) // step + 1, 0) for n, span, step in steps])


class Sliding(Form):
    """Windows that slide over the last axes of the first operand: a form of one primitive alone."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w = map(aval_of, inputs)
        lengths = result_lengths(x.shape[3:], w.shape[3:], **params)
        return (Aval((*x.shape[:2], w.shape[1], *lengths), np.result_type(x.dtype, w.dtype)),), None

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
        if all(batched):
            found = apply(primitive, x.reshape(-1, *x.shape[2:]), w.reshape(-1, *w.shape[2:]), **params)
            return found.reshape(size, -1, *found.shape[1:])
        place = 1 if batched[0] else 2
        many = np.moveaxis(operands[0 if batched[0] else 1], 0, 1)
        many = many.reshape(many.shape[0], -1, *many.shape[3:])
        found = apply(primitive, many, w, **params) if batched[0] else apply(primitive, x, many, **params)
        shape = found.shape
        return np.moveaxis(found.reshape(*shape[:place], size, -1, *shape[place + 1 :]), place, 0)


def surrounded(x: Array, low: Lengths, high: Lengths, spread: Lengths) -> Array:
    """Return images with zeros between and around their elements; negative numbers of them take elements away."""
    if max(spread) == 1 and not any(low) and not any(high):
        return x
    if max(spread) == 1 and max(*low, *high) <= 0:
        return x[(..., *[slice(-a, n + b) for a, b, n in zip(low, high, x.shape[-len(low) :], strict=True)])]
    lengths = spread_lengths(x.shape[-len(low) :], spread)
    shape = tuple([max(n + a + b, 0) for n, a, b in zip(lengths, low, high, strict=True)])
    found: Any = np.zeros(x.shape[: -len(low)] + shape, x.dtype)
    source, target = [], []
    for n, a, step, full in zip(x.shape[-len(low) :], low, spread, shape, strict=True):
        first = max(0, -(a // step)) if a < 0 else 0
        stop = min(n, max(0, -((a - full) // step)))
        source.append(slice(first, max(first, stop)))
        target.append(slice(first * step + a, None if stop <= first else (stop - 1) * step + a + 1, step))
        if stop <= first:
            return found
    inside, place = (..., *source), (..., *target)
    found[place] = x[inside]
    return found


def evaluate_correlation(
    x: Array, w: Array, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Array:
    """Evaluate `correlation` as products of matrices: of windows that are copied, or to windows that are added."""
    params = {"stride": stride, "dilation": dilation, "spread": spread, "low": low, "high": high}
    lengths = result_lengths(x.shape[3:], w.shape[3:], **params)
    shape = (*x.shape[:2], w.shape[1], *lengths)
    kind = x.dtype if x.dtype is w.dtype else np.result_type(x, w)
    if 0 in shape or not x.size or not w.size:
        return np.zeros(shape, kind)
    places = math.prod(lengths)
    inner = math.prod(x.shape[3:])
    many = x.size // inner * places * math.prod(w.shape[3:]) > FEW
    if max(stride) == 1 and w.shape[1] * inner < x.shape[2] * places and many:
        return added(x, w, params)
    images = surrounded(x, low, high, spread)
    found = np.empty(shape, kind)
    for g in range(len(x)):
        gathered(images[g], w[g], found[g], stride, dilation)
    return found


def gathered(images: Array, w: Array, found: Array, stride: Lengths, dilation: Lengths) -> None:
    """Multiply windows of images by kernels; they are columns where there are more places than taps, else rows."""
    multiply = by_columns if math.prod(found.shape[2:]) >= math.prod(w.shape[2:]) else by_rows
    steps = images.strides[2:]
    by_place = tuple([a * b for a, b in zip(steps, stride, strict=True)])
    by_tap = tuple([a * b for a, b in zip(steps, dilation, strict=True)])
    multiply(images, w, found, by_place, by_tap)


def window_of(x: Array, shape: Lengths, strides: Lengths) -> Array:
    """Return a view of an array; `as_strided` takes 3 us more, and is needed where elements lie apart."""
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return as_strided(x, shape, strides)


def by_columns(images: Array, w: Array, found: Array, by_place: Lengths, by_tap: Lengths) -> None:
    """Multiply kernels by windows: of some images at a time, or of some rows of one that is large."""
    count, channels = images.shape[:2]
    kernel, lengths = w.shape[2:], found.shape[2:]
    matrix = w.reshape(len(w), -1)
    row = len(matrix[0]) * math.prod(lengths[1:])
    size = row * lengths[0]
    share, rows = max(1, MANY // size), min(lengths[0], max(1, MANY // row))
    for start in range(0, count, share):
        part, target = images[start : start + share], found[start : start + share]
        for first in range(0, lengths[0], rows):
            inside = target[:, :, first : first + rows]
            here = part[:, :, first * by_place[0] // part.strides[2] :] if first else part
            shape = (len(part), channels, *kernel, *inside.shape[2:])
            windows = window_of(here, shape, (*part.strides[:2], *by_tap, *by_place))
            columns = windows.reshape(len(part), len(matrix[0]), -1)
            if rows == lengths[0]:
                np.matmul(matrix, columns, out=inside.reshape(len(part), len(w), -1))
            else:
                inside[...] = np.matmul(matrix, columns).reshape(inside.shape)


def by_rows(images: Array, w: Array, found: Array, by_place: Lengths, by_tap: Lengths) -> None:
    """Multiply windows by kernels, some rows of these at a time: the products are added."""
    count, channels = images.shape[:2]
    kernel, lengths = w.shape[2:], found.shape[2:]
    places = math.prod(lengths)
    row = count * places * math.prod(kernel[1:])
    rows = min(kernel[0], max(1, MANY // row))
    share = max(1, MANY // (row * kernel[0]))
    total: Any = 0.0
    for channel in range(0, channels, share):
        part, weights = images[:, channel : channel + share], w[:, channel : channel + share]
        for first in range(0, kernel[0], rows):
            inside = weights[:, :, first : first + rows]
            here = part[:, :, first * by_tap[0] // part.strides[2] :] if first else part
            shape = (count, *lengths, *inside.shape[1:])
            windows = window_of(here, shape, (part.strides[0], *by_place, part.strides[1], *by_tap))
            total = total + windows.reshape(count * places, -1) @ inside.reshape(len(w), -1).T
    found[...] = np.moveaxis(total.reshape(count, *lengths, len(w)), -1, 1)


def added(x: Array, w: Array, params: Mapping[str, Any]) -> Array:
    """Multiply images by kernels and add the products for each tap where they belong."""
    dilation, spread = params["dilation"], params["spread"]
    groups, count, channels = x.shape[:3]
    kernel, inner = w.shape[3:], x.shape[3:]
    spans, covered = spread_lengths(kernel, dilation), spread_lengths(inner, spread)
    full: Any = np.zeros(
        (groups, count, w.shape[1], *[n + span - 1 for n, span in zip(covered, spans, strict=True)]),
        np.result_type(x, w),
    )
    matrices = np.moveaxis(w.reshape(groups, 1, w.shape[1], channels, -1), -1, 2)
    rows = x.reshape(groups, count, channels, -1)
    taps, outs = matrices.shape[2:4]
    share = max(1, MANY // (taps * outs * rows.shape[-1]))
    targets = []
    for place in np.ndindex(kernel):
        starts = [(n - 1 - k) * d for n, k, d in zip(kernel, place, dilation, strict=True)]
        targets.append((..., *[slice(i, i + n, step) for i, n, step in zip(starts, covered, spread, strict=True)]))
    for start in range(0, count, share):
        part, sums = rows[:, start : start + share], full[:, start : start + share]
        products = matrices.reshape(groups, 1, taps * outs, channels) @ part
        products = products.reshape(groups, -1, taps, outs, *inner)
        for tap, target in enumerate(targets):
            sums[target] += products[:, :, tap]
    low, high = (tuple([a - span + 1 for a, span in zip(params[k], spans, strict=True)]) for k in ("low", "high"))
    return surrounded(full, low, high, (1,) * len(spans))


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


def cotangent_of_images(
    ct: Any, aval: Aval, w: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the cotangent, spread by the stride, with the kernels turned round."""
    rank = len(stride)
    turned = np.swapaxes(w, 1, 2)[(..., *[slice(None, None, -1)] * rank)]
    before, after = around_cotangent(ct.shape[3:], aval.shape[3:], w.shape[3:], stride, dilation, spread, low)
    return apply(correlation, ct, turned, stride=spread, dilation=dilation, spread=stride, low=before, high=after)


def cotangent_of_kernels(
    ct: Any, aval: Aval, x: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the images with the cotangent; the batch is what is summed over."""
    after = behind_images(ct.shape[3:], aval.shape[3:], x.shape[3:], stride, dilation, spread, low)
    found = apply(
        correlation,
        np.swapaxes(x, 1, 2),
        np.swapaxes(ct, 1, 2),
        stride=dilation,
        dilation=stride,
        spread=spread,
        low=low,
        high=after,
    )
    return np.swapaxes(found, 1, 2)


correlation = multilinear(
    "correlation", evaluate_correlation, (cotangent_of_images, cotangent_of_kernels), form=Sliding()
)
