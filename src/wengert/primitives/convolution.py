"""Correlations of stacks of images with kernels, in any number of dimensions.

result[g, n, o, p] = the sum over c and k of x[g, n, c, p stride + k dilation - low] w[g, o, c, k], where x has
`spread` - 1 zeros between its elements and any number around them. With a batch, channels and a stack of them (the
groups, and lanes) the operation is closed under differentiation: the cotangents of both operands are such correlations,
with stride, dilation and spread in other roles (Dumoulin and Visin, *A guide to convolution arithmetic for deep
learning*, 2016).
"""

from __future__ import annotations

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
MANY = 1 << 20
"""Elements of windows that are copied at once: they are multiplied while they are in a cache."""


def spread_lengths(shape: Sequence[int], spread: Lengths) -> Lengths:
    """Return the lengths of axes with zeros between their elements."""
    return tuple([(n - 1) * step + 1 if n else 0 for n, step in zip(shape, spread, strict=True)])


def result_lengths(x: Sequence[int], w: Sequence[int], params: Mapping[str, Any]) -> Lengths:
    """Return the lengths of the result along the axes of space."""
    padded = [
        n + a + b for n, a, b in zip(spread_lengths(x, params["spread"]), params["low"], params["high"], strict=True)
    ]
    spans = spread_lengths(w, params["dilation"])
    steps = zip(padded, spans, params["stride"], strict=True)
    return tuple([max((n - span) // stride + 1, 0) for n, span, stride in steps])


class Sliding(Form):
    """Windows that slide over the last axes of the first operand: a form of one primitive alone."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w = map(aval_of, inputs)
        lengths = result_lengths(x.shape[3:], w.shape[3:], params)
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
    lengths = result_lengths(x.shape[3:], w.shape[3:], params)
    shape = (*x.shape[:2], w.shape[1], *lengths)
    if 0 in shape or not x.size or not w.size:
        return np.zeros(shape, np.result_type(x, w))
    if max(stride) == 1 and w.shape[1] * math.prod(x.shape[3:]) < x.shape[2] * math.prod(lengths):
        return added(x, w, params)
    images = surrounded(x, low, high, spread)
    found = np.empty(shape, np.result_type(x, w))
    for g in range(len(x)):
        gathered(images[g], w[g], found[g], stride, dilation)
    return found


def gathered(images: Array, w: Array, found: Array, stride: Lengths, dilation: Lengths) -> None:
    """Multiply windows of images, copied some images at a time, by kernels.

    They are columns where there are more places than taps, else rows: the longer ones are copied as they lie.
    """
    steps = images.strides[2:]
    by_place = tuple([a * b for a, b in zip(steps, stride, strict=True)])
    by_tap = tuple([a * b for a, b in zip(steps, dilation, strict=True)])
    count, channels = images.shape[:2]
    kernel, lengths = w.shape[2:], found.shape[2:]
    places, taps = math.prod(lengths), math.prod(kernel)
    matrix = w.reshape(len(w), -1)
    share = max(1, MANY // (channels * places * taps))
    for start in range(0, count, share):
        part, rows = images[start : start + share], found[start : start + share]
        own = len(part)
        if places >= taps:
            shape, strides = (own, channels, *kernel, *lengths), (*part.strides[:2], *by_tap, *by_place)
            windows = as_strided(part, shape, strides).reshape(own, channels * taps, places)
            np.matmul(matrix, windows, out=rows.reshape(own, len(w), places))
        else:
            shape, strides = (own, *lengths, channels, *kernel), (part.strides[0], *by_place, part.strides[1], *by_tap)
            lines = as_strided(part, shape, strides).reshape(own * places, channels * taps)
            rows[...] = np.moveaxis((lines @ matrix.T).reshape(own, *lengths, len(w)), -1, 1)


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
    matrices = w.reshape(groups, 1, w.shape[1], channels, -1)
    rows = x.reshape(groups, count, channels, -1)
    for tap, place in enumerate(np.ndindex(kernel)):
        starts = [(n - 1 - k) * d for n, k, d in zip(kernel, place, dilation, strict=True)]
        target = [slice(i, i + n, step) for i, n, step in zip(starts, covered, spread, strict=True)]
        inside: Any = (..., *target)
        full[inside] += (matrices[..., tap] @ rows).reshape(groups, count, -1, *inner)
    low, high = (tuple([a - span + 1 for a, span in zip(params[k], spans, strict=True)]) for k in ("low", "high"))
    return surrounded(full, low, high, (1,) * len(spans))


def cotangent_of_images(
    ct: Any, aval: Aval, w: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the cotangent, spread by the stride, with the kernels turned round."""
    rank = len(stride)
    turned = np.flip(np.swapaxes(w, 1, 2), tuple(range(3, 3 + rank)))
    spans = spread_lengths(w.shape[3:], dilation)
    before = tuple([span - 1 - a for span, a in zip(spans, low, strict=True)])
    reached = spread_lengths(ct.shape[3:], stride)
    wanted = spread_lengths(aval.shape[3:], spread)
    after = tuple([n + span - 1 - r - b for n, span, r, b in zip(wanted, spans, reached, before, strict=True)])
    return apply(correlation, ct, turned, stride=spread, dilation=dilation, spread=stride, low=before, high=after)


def cotangent_of_kernels(
    ct: Any, aval: Aval, x: Any, *, stride: Lengths, dilation: Lengths, spread: Lengths, low: Lengths, high: Lengths
) -> Any:
    """Correlate the images with the cotangent; the batch is what is summed over."""
    spans = spread_lengths(ct.shape[3:], stride)
    wanted = spread_lengths(aval.shape[3:], dilation)
    inner = spread_lengths(x.shape[3:], spread)
    after = tuple([n + span - 1 - m - a for n, span, m, a in zip(wanted, spans, inner, low, strict=True)])
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
