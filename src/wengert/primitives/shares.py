"""Jacobians of softmax, of its logarithm, and of the logarithm of a sum of exponentials, times vectors.

With the shares p, which sum to 1, they are diag(p) - p p^T, 1 - 1 p^T and p^T. What the first and the transpose of the
second give sums to 0 along an axis. So where a share is nearly 1 and 1 - p has no digits left, its element is that of
the others, with the sign changed. Rows whose shares are NaN, because all is masked away, pass on zeros as zeros.

Axes are counted from the end, so that lanes change nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead
from wengert.core.forms.element_maps import lane_maps
from wengert.core.forms.form import Params, Pointwise
from wengert.core.forms.view_forms import Like
from wengert.core.maps.box_maps import BoxMap
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.floating_point import LEAST
from wengert.primitives.half_precision import in_single_precision

Axes = tuple[int, ...]
ADD: Any = np.add.reduce
LAST = (-1,)
LARGEST_SHARE = {np.dtype(char): 1 - LEAST[char] for char in "fdg"}
LARGEST_LOGARITHM = {dtype: math.log(largest) for dtype, largest in LARGEST_SHARE.items()}
"""The largest shares, and their logarithms, of which 1 - p has digits enough."""
NEARLY_ALONE = 1 + 2.0**-4
"""Sums whose greatest terms are 1, up to which the others have few digits in them."""


def batch_along(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Treat all lanes at once."""
    return apply(primitive, *[lead(x, flag, size) for x, flag in zip(operands, batched, strict=True)], **params)


def mend_products(found: Any, v: Any, shares: Any, largest: float | None, axis: Axes) -> Any:
    """Return products, an array of our own whose rows sum to 0, with the digits of elements of the largest shares.

    Args:
        found: the products.
        v: the vectors that were multiplied.
        shares: the shares, or their logarithms.
        largest: above which one is too large; None for complex ones.
        axis: the axes of rows.
    """
    if largest is None or not shares.size or shares.item(shares.argmax()) <= largest:
        return found
    large = shares > largest
    if len(axis) == 1:
        along, places = (np.moveaxis(x[np.newaxis], axis[0], -1) for x in (found, large))
        places = np.nonzero(places)
        rows = along[places[:-1]]
        rows[np.arange(len(rows)), places[-1]] = 0
        along[places] = -ADD(rows, -1)
    else:
        found = np.where(large, -ADD(np.where(large, 0, found), axis, keepdims=True), found)
    return without_idle_nan(found, v, axis)


def without_idle_nan(found: Any, v: Any, axis: Axes) -> Any:
    """Return an array that is linear in the rows of v, with 0 in place of NaN where a row of v is 0."""
    known = visible_array(found)
    if known is not None and not np.isnan(known).any():
        return found
    idle = np.all(v == 0, axis=axis, keepdims=True)
    return np.where(np.isnan(found) & idle, 0.0, found)


# The products and their derivatives


class ProductForm(Like):
    """Results like shares, whose elements depend on all along the axes that the parameter `axis` counts."""

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Depend on all of the same rows."""
        shape, axis = shape_of(operands[position]), params["axis"]
        if shape != out.shape or axis is None:
            return None
        axes = sorted([i % len(shape) for i in axis])
        return lane_maps((shape, axes), (shape, axes), None)


def product_of_shares(
    name: str,
    evaluate: Callable[..., Any],
    transposed: str,
    back: Callable[..., Any],
    along: Callable[..., Any],
    scalar: Callable[..., Any] | None = None,
) -> Primitive:
    """Declare the product of a matrix, made of shares or their logarithms p, and vectors v.

    Args:
        name: of the primitive.
        evaluate: its evaluation.
        transposed: the name of the product of the transposed matrix.
        back: the cotangent of p, of those of the result, v, p and the axes.
        along: the tangent of the result, of that of p, v, p and the axes.
        scalar: what kernels compute.
    """

    def vjp(ct: Any, _out: Any, v: Any, p: Any, *, axis: Axes) -> Any:
        return apply(PRIMITIVES[transposed], ct, p, axis=axis), without_idle_nan(back(ct, v, p, axis), v, axis)

    def jvp(tangents: Sequence[Any], _out: Any, v: Any, p: Any, *, axis: Axes) -> Any:
        by_v, by_p = tangents
        moved = 0.0 if by_v is None else apply(primitive, by_v, p, axis=axis)
        return moved if by_p is None else moved + without_idle_nan(along(by_p, v, p, axis), v, axis)

    form = ProductForm(lambda _v, p, **_params: p)
    primitive: Primitive = opaque(name, evaluate, vjp=vjp, jvp=jvp, form=form, batch=batch_along, scalar=scalar)
    return primitive


def mend_products_at(found: Any, v: Any, large: Any, axis: Axes) -> Any:
    """Return products whose rows sum to 0 in a kernel: one of a large share from the others, and 0 for NaN of zeros."""
    others = np.sum(np.where(large, 0, found), axis=axis, keepdims=True)
    found = np.where(large, -others, found)
    moving = np.sum((v != 0).astype(found.dtype), axis=axis, keepdims=True)
    return np.where(np.isnan(found) & (moving == 0), 0, found)


def softmax_product_at(v: Any, p: Any, *, axis: Axes) -> Any:
    """Return (diag(p) - p p^T) v in a kernel."""
    found = p * (v - np.sum(v * p, axis=axis, keepdims=True))
    return mend_products_at(found, v, p > LARGEST_SHARE[p.dtype], axis)


def log_softmax_transposed_at(v: Any, logs: Any, *, axis: Axes) -> Any:
    """Return (1 - p 1^T) v for logarithms of p in a kernel."""
    found = v - np.exp(logs) * np.sum(v, axis=axis, keepdims=True)
    return mend_products_at(found, v, logs > LARGEST_LOGARITHM[logs.dtype], axis)


@in_single_precision
def softmax_product_value(v: Any, p: Any, *, axis: Axes) -> Any:
    """Evaluate (diag(p) - p p^T) v."""
    if axis == LAST and v.dtype == p.dtype and p.dtype.kind == "f":
        found = v - np.vecdot(v, p)[..., None]
        np.multiply(found, p, found)
    else:
        found = v * p
        found -= p * ADD(found, axis, keepdims=True)
    return mend_products(found, v, p, LARGEST_SHARE.get(p.dtype), axis)


def along_shares(change: Any, v: Any, p: Any, axis: Axes, left: Any, right: Any) -> Any:
    """Return the derivative of the product by p, or its transpose, times a change."""
    total = np.sum(v * p, axis=axis, keepdims=True)
    return change * (v - total) - left * np.sum(change * right, axis=axis, keepdims=True)


softmax_product = product_of_shares(
    "softmax_product",
    softmax_product_value,
    "softmax_product",
    back=lambda ct, v, p, axis: along_shares(ct, v, p, axis, v, p),
    along=lambda t, v, p, axis: along_shares(t, v, p, axis, p, v),
    scalar=softmax_product_at,
)


@in_single_precision
def log_softmax_transposed_value(v: Any, logs: Any, *, axis: Axes) -> Any:
    """Evaluate (1 - p 1^T) v for logarithms of p."""
    found = np.exp(logs)
    found *= ADD(v, axis, keepdims=True)
    np.subtract(v, found, found)
    return mend_products(found, v, logs, LARGEST_LOGARITHM.get(logs.dtype), axis)


@in_single_precision
def log_softmax_product_value(v: Any, logs: Any, *, axis: Axes) -> Any:
    """Evaluate (1 - 1 p^T) v, from what v is more than where p is largest: that of equal numbers is 0."""
    rest = v
    largest = LARGEST_LOGARITHM.get(logs.dtype)
    if largest is not None and logs.size and not logs.item(logs.argmax()) <= largest:
        place = np.argmax(np.nan_to_num(logs, nan=-np.inf), axis[0], keepdims=True)
        rest = v - np.take_along_axis(v, place, axis[0])
    found = rest - ADD(np.exp(logs) * rest, axis, keepdims=True)
    return without_idle_nan(found, v, axis)


def by_logarithms(change: Any, v: Any, logs: Any, axis: Axes) -> Any:
    """Return the derivative of (1 - p 1^T) v by the logarithms, which is diagonal, times a change."""
    return -change * np.exp(logs) * np.sum(v, axis=axis, keepdims=True)


def along_logarithms(t: Any, v: Any, logs: Any, axis: Axes) -> Any:
    """Return the derivative of (1 - 1 p^T) v by the logarithms times a tangent."""
    return np.broadcast_to(np.sum(-t * np.exp(logs) * v, axis=axis, keepdims=True), logs.shape)


log_softmax_transposed = product_of_shares(
    "log_softmax_transposed",
    log_softmax_transposed_value,
    "log_softmax_product",
    by_logarithms,
    by_logarithms,
    log_softmax_transposed_at,
)
log_softmax_product = product_of_shares(
    "log_softmax_product",
    log_softmax_product_value,
    "log_softmax_transposed",
    back=lambda ct, v, logs, axis: -np.exp(logs) * v * np.sum(ct, axis=axis, keepdims=True),
    along=along_logarithms,
)


# Shares of the logarithm of a sum


@in_single_precision
def shares_of_sum_value(out: Any, x: Any, *, axis: Axes) -> Any:
    """Evaluate exp(x - out); elements tied at infinity share equally."""
    infinite = np.isinf(out)
    if not infinite.any():
        return np.exp(x - out)
    tied = infinite & (x == out)
    found = np.exp(np.where(infinite, -np.inf, x) - np.where(infinite, 0.0, out))
    return np.where(tied, 1 / np.maximum(ADD(tied, axis, x.dtype, keepdims=True), 1), found)


def shares_of_finite(out: Any, found: Any) -> Any:
    """Return shares, 0 where the sum is infinite and they do not change."""
    known = visible_array(out)
    return found if known is not None and np.isfinite(known).all() else np.where(np.isinf(out), 0.0, found)


def shares_of_sum_vjp(ct: Any, found: Any, out: Any, _x: Any, *, axis: Axes) -> Any:
    """Multiply by diag(p) - p p^T: the logarithm of the sum depends on x, too."""
    return None, apply(softmax_product, ct, shares_of_finite(out, found), axis=axis)


def shares_of_sum_jvp(tangents: Sequence[Any], found: Any, out: Any, _x: Any, *, axis: Axes) -> Any:
    """Do so for a tangent."""
    t = tangents[1]
    return np.zeros_like(found) if t is None else apply(softmax_product, t, shares_of_finite(out, found), axis=axis)


def shares_of_sum_at(out: Any, x: Any, *, axis: Axes) -> Any:
    """Return exp(x - out) in a kernel; elements tied at infinity share equally."""
    infinite = np.absolute(out) == math.inf
    tied = infinite & (x == out)
    count = np.maximum(np.sum(tied.astype(x.dtype), axis=axis, keepdims=True), 1)
    return np.where(tied, 1 / count, np.exp(np.where(infinite, -math.inf, x) - np.where(infinite, 0, out)))


shares_of_sum = opaque(
    "shares_of_sum",
    shares_of_sum_value,
    vjp=shares_of_sum_vjp,
    jvp=shares_of_sum_jvp,
    form=Pointwise(),
    scalar=shares_of_sum_at,
)
