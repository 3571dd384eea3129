"""Sums of exponentials: their logarithm, and exponentials divided by them."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.special as sp
from scipy.linalg import blas

from wengert.core.forms.form import Reduction
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant, opaque
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.tensor import Tensor
from wengert.primitives.half_precision import HALF, narrow, vjp_of_single, widen
from wengert.primitives.reductions import ADD, Axes, logsumexp_at, logsumexp_vjp, restore_axes
from wengert.primitives.shares import (
    LARGEST_LOGARITHM,
    LARGEST_SHARE,
    NEARLY_ALONE,
    log_softmax_product,
    log_softmax_transposed,
    softmax_product,
)

ndarray = np.ndarray
MAX: Any = np.maximum.reduce
MANY = 1 << 11
"""Elements of rows whose largest `reduceat` finds in half of the time."""

ONES = {kind: np.ones(1 << 8, kind) for kind in "fd"}
"""Factors of short rows: products with ones find sums in a third of the time."""


GER = {"f": blas.sger, "d": blas.dger}
"""Products of two vectors that are added to a matrix."""

LONG = range(1 << 5, 1 << 10)
"""Lengths of rows from which BLAS subtracts numbers, their product with ones, in half of NumPy's time."""


def is_row(x: Any, axis: int) -> bool:
    """Tell whether all elements, some real numbers, lie along one axis."""
    return bool(x.size == x.shape[axis] > 0 and x.dtype.char in "fd")


def largest_along(x: Any, axis: int | Axes) -> Any:
    """Return the largest elements along axes, with axes of length one in their places."""
    if x.size < MANY or not x.shape[-1] or (axis != x.ndim - 1 and axis != (x.ndim - 1,)) or not x.flags.c_contiguous:
        return MAX(x, axis, None, None, True)
    found: Any = np.maximum.reduceat(x.reshape(-1), np.arange(0, x.size, x.shape[-1]))
    return found.reshape(*x.shape[:-1], 1)


def all_finite(x: Any) -> bool:
    """Tell whether all elements are finite; of one element Python does in a tenth of the time."""
    if x.size == 1 and x.dtype.kind == "f":
        return math.isfinite(x.item())
    return bool(np.count_nonzero(np.isfinite(x)) == x.size)  # half of the time of `all`


def evaluate_logsumexp(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    """Evaluate `logsumexp` with the steps and bits of SciPy's, which take eight times as long by themselves.

    The largest terms are counted, and the others added to them by log1p.
    """
    if x.dtype.kind != "f":
        return sp.logsumexp(x, axis=axis, keepdims=keepdims)
    largest = largest_along(x, axis)
    is_largest = x == largest
    alone = np.count_nonzero(is_largest) == largest.size and all_finite(largest)
    with np.errstate(all="ignore"):
        terms = np.subtract(x, largest)
        np.exp(terms, out=terms)
        np.copyto(terms, 0.0, where=is_largest)
        out = ADD(terms, axis, None, None, True)
        if alone:  # 1 of each, by which nothing changes
            out = np.log1p(out) + largest
        else:
            count = ADD(is_largest, axis, x.dtype, None, True)
            out = np.log1p(out / count) + np.log(count) + largest
        if not all_finite(out):
            out = np.where(np.isfinite(out), out, np.log(ADD(np.exp(x), axis, None, None, True)))
    return out if keepdims else out.reshape([n for i, n in enumerate(out.shape) if i not in axis])[()]


def vjp_of_logsumexp(ct: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> Any:
    """Weight the cotangent by exp(x - out); elements tied at infinity share equally."""
    if type(out) is not Tensor and type(ct) is not Tensor and type(x) is np.ndarray and all_finite(out):
        weights = x - restore_axes(out, x.shape, axis, keepdims)
        np.exp(weights, out=weights)
        weights *= restore_axes(ct, x.shape, axis, keepdims)
        return weights
    return logsumexp_vjp(ct, out, x, axis=axis, keepdims=keepdims)


logsumexp = opaque(
    "logsumexp",
    evaluate_logsumexp,
    vjp=vjp_of_single("logsumexp", vjp_of_logsumexp),
    form=Reduction(np.logaddexp),
    fresh=True,
    scalar=logsumexp_at,
)


def signed_value(a: Any, b: Any, axis: Axes, keepdims: bool, part: int) -> Any:
    """Return SciPy's logarithm of the absolute value of a weighted sum (part 0), or its sign (1)."""
    return sp.logsumexp(a, axis, b, keepdims, return_sign=True)[part]


def evaluate_weighted(a: Any, b: Any, *, axis: Axes, keepdims: bool, signed: bool) -> Any:
    """Evaluate the logarithm of a weighted sum of exponentials, with `signed` of its absolute value."""
    return signed_value(a, b, axis, keepdims, 0) if signed else sp.logsumexp(a, axis, b, keepdims)


def vjp_of_weighted(ct: Any, out: Any, a: Any, b: Any, *, axis: Axes, keepdims: bool, signed: bool) -> Any:
    """Return the cotangent times exp(a - out), for the terms times b; terms of weight 0 get 0."""
    if signed:
        ct = ct * apply(logsumexp_sign, a, b, axis=axis, keepdims=keepdims)
    out, ct = (restore_axes(v, a.shape, axis, keepdims) for v in (out, ct))
    finite = np.where(np.isfinite(out), out, 0.0)
    return ct * b * np.exp(np.where(b == 0, -np.inf, a) - finite), ct * np.exp(a - finite)


def weighted_at(a: Any, b: Any, *, axis: Axes, keepdims: bool, signed: bool, sign: bool = False) -> Any:
    """Return the logarithm of a weighted sum of exponentials in a kernel, or its sign, in SciPy's steps."""
    del keepdims

    def total(x: Any) -> Any:
        return np.sum(x, axis=axis, keepdims=True)

    plain = total(b * np.exp(a))
    rest = np.where(b == 0, -math.inf, a)
    largest = np.max(rest, axis=axis, keepdims=True)
    weight = total(np.where(rest == largest, b, 0))
    small = total(b * np.exp(np.where(rest == largest, -math.inf, rest) - largest))
    small = np.where(small == 0, small, small / weight)
    found = np.log1p(np.where(small < -1, -small - 2, small)) + np.log(np.absolute(weight)) + largest
    known, signs = np.absolute(found) < math.inf, np.sign(small + 1) * np.sign(weight)
    if sign:
        return np.where(known, signs, np.sign(plain))
    if signed:
        return np.where(known, found, np.log(np.absolute(plain)))
    return np.where(known & (signs >= 0), found, np.where(known, math.nan, np.log(plain)))


logsumexp_sign = constant(
    "logsumexp_sign",
    lambda a, b, *, axis, keepdims: signed_value(a, b, axis, keepdims, 1),
    form=Reduction(operands=("weights",)),
    scalar=lambda a, b, *, axis, keepdims: weighted_at(a, b, axis=axis, keepdims=keepdims, signed=True, sign=True),
)
weighted_logsumexp = opaque(
    "weighted_logsumexp",
    evaluate_weighted,
    vjp=vjp_of_weighted,
    form=Reduction(operands=("weights",)),
    scalar=functools.partial(weighted_at, sign=False),
)


# Softmax


def sum_along(x: Any, axis: int, quick: bool) -> Any:
    """Return sums along an axis, which stays with length one unless there is one row; as products with ones if `quick`.

    SciPy's sums have other last bits.
    """
    if quick and axis == x.ndim - 1 and x.dtype.char in "fd":
        length = x.shape[-1]
        ones = ONES[x.dtype.char]
        ones = ones[:length] if length <= ones.size else np.ones(length, x.dtype)
        return (
            x.reshape(-1).dot(ones) if x.size == length else x.reshape(-1, length).dot(ones).reshape(*x.shape[:-1], 1)
        )
    return ADD(x, axis, None, None, True)


def subtract_from_rows(x: Any, numbers: Any) -> Any:
    """Return an array, whose memory is overwritten, less a number for each row along an axis."""
    length = x.shape[-1]
    if x.size < MANY or length not in LONG or numbers.size * length != x.size or x.dtype.char not in GER:
        return np.subtract(x, numbers, x)
    if not x.flags.c_contiguous or numbers.shape[-1] != 1:
        return np.subtract(x, numbers, x)
    matrix, ones = x.reshape(-1, length), np.ones(length, x.dtype)
    return GER[x.dtype.char](-1.0, ones, numbers.reshape(-1), a=matrix.T, overwrite_a=1).T.reshape(x.shape)


def evaluate_softmax(x: Any, *, axis: int, quick: bool = False) -> Any:
    """Evaluate `softmax` with the steps of SciPy's, and its bits unless `quick`."""
    if quick and x.dtype == HALF:
        return narrow(evaluate_softmax(widen(x), axis=axis, quick=True))
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    largest = x.item(x.argmax()) if quick and is_row(x, axis) else largest_along(x, axis)
    terms = x - largest
    np.exp(terms, terms)
    terms /= sum_along(terms, axis, quick)
    return terms


def evaluate_log_softmax(x: Any, *, axis: int, quick: bool = False) -> Any:
    """Evaluate `log_softmax` with the steps of SciPy's, and its bits unless `quick`."""
    if quick and x.dtype == HALF:
        return narrow(evaluate_log_softmax(widen(x), axis=axis, quick=True))
    x = x if x.dtype.kind in "fc" else x.astype(np.float64)
    row = quick and is_row(x, axis)
    largest = x.item(x.argmax()) if row else largest_along(x, axis)
    if math.isfinite(largest) if row else all_finite(largest):  # and sums are at least 1
        shifted = x - largest
        terms = np.exp(shifted)
        total = sum_along(terms, axis, quick)
        if quick and x.size and x.dtype.char in "fd" and (total if row else total.item(total.argmin())) <= NEARLY_ALONE:
            return subtract_from_rows(shifted, log_of_sum(total, terms, shifted, axis))
        return subtract_from_rows(shifted, np.log(total))
    shifted = x - np.where(np.isfinite(largest), largest, x.dtype.type(0))
    with np.errstate(divide="ignore"):
        shifted -= np.log(ADD(np.exp(shifted), axis, None, None, True))
    return shifted


def log_of_sum(total: Any, terms: Any, shifted: Any, axis: int) -> Any:
    """Return logarithms of sums whose greatest terms are 1, with the digits of the others where these are small."""
    others = ADD(np.where(shifted == 0, 0, terms), axis, None, None, True)
    return np.where(total <= NEARLY_ALONE, np.log1p(others), np.log(total))


def softmax_vjp(ct: Any, out: Any, _x: Any, *, axis: int, quick: bool = False) -> Any:
    """Multiply by the Jacobian diag(p) - p p^T; what the primitive comes to for most arrays takes half as long here."""
    if type(ct) is ndarray is type(out) and axis == out.ndim - 1 and ct.dtype is out.dtype:
        largest = LARGEST_SHARE.get(out.dtype)
        if largest is not None and out.size and out.item(out.argmax()) <= largest:
            found = ct - (ct.dot(out) if out.ndim == 1 else np.vecdot(ct, out)[..., None])
            return np.multiply(found, out, found)
    return at_once(softmax_product, ct, out, axis=(axis - len(out.shape),))


def softmax_jvp(tangents: Sequence[Any], out: Any, _x: Any, *, axis: int, quick: bool = False) -> Any:
    """Multiply by the Jacobian, which is symmetric."""
    return at_once(softmax_product, tangents[0], out, axis=(axis - len(out.shape),))


def log_softmax_vjp(ct: Any, out: Any, _x: Any, *, axis: int, quick: bool = False) -> Any:
    """Multiply by the transpose of 1 - 1 p^T, likewise."""
    if type(ct) is ndarray is type(out) and ct.dtype is out.dtype:
        largest = LARGEST_LOGARITHM.get(out.dtype)
        if largest is not None and out.size and out.item(out.argmax()) <= largest:
            share = np.exp(out)
            share *= sum_along(ct, axis, True)
            return np.subtract(ct, share, share)
    return at_once(log_softmax_transposed, ct, out, axis=(axis - len(out.shape),))


def log_softmax_jvp(tangents: Sequence[Any], out: Any, _x: Any, *, axis: int, quick: bool = False) -> Any:
    """Multiply by 1 - 1 p^T."""
    return at_once(log_softmax_product, tangents[0], out, axis=(axis - len(out.shape),))


ALONG = Routine("(n)->(n)", "axis")


def softmax_at(x: Any, *, axis: int, quick: bool = False) -> Any:
    """Return exp(x) / sum(exp(x)) in a kernel, from the largest element."""
    terms = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return terms / np.sum(terms, axis=axis, keepdims=True)


def log_softmax_at(x: Any, *, axis: int, quick: bool = False) -> Any:
    """Return x - log(sum(exp(x))) in a kernel, from the largest element; where that is nearly all, by the others."""
    largest = np.max(x, axis=axis, keepdims=True)
    moved = x - np.where(np.absolute(largest) < math.inf, largest, 0)
    first = moved == 0
    others = np.sum(np.where(first, 0, np.exp(moved)), axis=axis, keepdims=True)
    count = np.sum(first.astype(x.dtype), axis=axis, keepdims=True)
    nearly_alone = (count == 1) & (others <= NEARLY_ALONE - 1)
    return moved - np.where(nearly_alone, np.log1p(others), np.log(others + count))


softmax = opaque(
    "softmax", evaluate_softmax, vjp=softmax_vjp, jvp=softmax_jvp, form=ALONG, fresh=True, scalar=softmax_at
)
log_softmax = opaque(
    "log_softmax",
    evaluate_log_softmax,
    vjp=log_softmax_vjp,
    jvp=log_softmax_jvp,
    form=ALONG,
    fresh=True,
    scalar=log_softmax_at,
)
