"""Correlations of stacks of images with kernels, in any number of dimensions.

result[g, n, o, p] = the sum over c and k of x[g, n, c, p stride + k dilation - low] w[g, o, c, k], where x has
`spread` - 1 zeros between its elements and any number around them. With a batch, channels and a stack of them (the
groups, and lanes) the operation is closed under differentiation: the cotangents of both operands are such correlations,
with stride, dilation and spread in other roles (Dumoulin and Visin, *A guide to convolution arithmetic for deep
learning*, 2016).
"""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of
from wengert.core.declare import multilinear
from wengert.core.dispatch import apply
from wengert.core.examples import Results
from wengert.core.form import Form
from wengert.core.primitive import Primitive
from wengert.primitives.sliding import Geometry, correlated, result_lengths, spread_lengths

__all__ = ["correlation"]

Array = Any
Lengths = tuple[int, ...]


class Sliding(Form):
    """Windows that slide over the last axes of the first operand: a form of one primitive alone."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Return the shape that the lengths tell."""
        x, w = map(aval_of, inputs)
        lengths = result_lengths(x.shape[3:], w.shape[3:], *[params[name] for name in Geometry._fields])
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
    "correlation", correlated, (cotangent_of_images, cotangent_of_kernels), form=Sliding()
)
