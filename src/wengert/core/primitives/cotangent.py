"""Cotangent arithmetic shared by all rules: un-broadcasting, matching dtypes, and the strong zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.aval import UNKNOWN
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor, is_staged, raw
from wengert.native.threads.elementwise import LARGE, share_ufunc
from wengert.support.machine import MACHINE

FEW = 16
BLOCK, FEWEST = 64, 8
LONGEST = 1024
"""Elements of a row that are added by a product: BLAS adds some in turn, so that more of them lose accuracy."""
ONES = {char: np.ones(LONGEST, char) for char in "fd"}
LEADING = (0,)
DOUBLE = np.dtype(np.float64)
SINGLE = np.dtype(np.float32)
ndarray, float64, float32 = np.ndarray, np.float64, np.float32
add_shared = share_ufunc(np.add)


def unbroadcast(ct: Any, shape: tuple[int, ...]) -> Any:
    """Sum a cotangent over the axes along which a value of `shape` was broadcast.

    >>> unbroadcast(np.ones((2, 3)), (3,))
    array([2., 2., 2.])
    """
    have = ct.shape
    if have == shape:
        return ct
    if len(have) < len(shape):  # a value that does not vary, or one assigned with axes of length one in front
        ct = ct.reshape((1,) * (len(shape) - len(have)) + have)
        have = ct.shape
    extra = len(have) - len(shape)
    stretched = [i + extra for i, n in enumerate(shape) if n == 1 and have[i + extra] != 1]
    axes = (*range(extra), *stretched)
    summed = sum_over(ct, axes) if axes else ct
    if summed.shape == shape:
        return summed
    if summed.size == math.prod(shape):
        return summed.reshape(shape)
    return np.broadcast_to(summed, shape)


def sum_over(x: Any, axis: tuple[int, ...]) -> Any:
    """Return the sum over axes (from 0, in ascending order), adding pairwise along whichever they are.

    NumPy adds pairwise along the last axis and one by one along others: a million tenths of float32 come to
    100,958. Halving the array over and over is also up to 30 times faster where rows are short.
    (Higham 1993, "The accuracy of floating point summation", SIAM J. Sci. Comput. 14.)

    >>> sum_over(np.ones((100, 2)), (0,))
    array([100., 100.])
    """
    if type(x) is Tensor:
        return apply(PRIMITIVES["sum"], x, axis=axis, keepdims=False, accurate=True)
    if axis == LEADING and x.ndim == 2 and len(x) <= BLOCK and is_multiplied(x):  # as for the bias of a layer
        return ONES[x.dtype.char][: len(x)].dot(x)
    if math.prod([x.shape[i] for i in axis]) <= FEW or x.dtype.kind not in "fc" or not x.size:
        return x.sum(axis=axis)
    if x.dtype.char == "e":
        return x.sum(axis=axis, dtype=np.float32).astype(x.dtype)
    for first, last in reversed(neighbours(axis)):
        if x.flags.c_contiguous:
            x = sum_along(x.reshape(*x.shape[:first], -1, *x.shape[last + 1 :]), first)
        else:
            for i in range(last, first - 1, -1):
                x = sum_along(x, i)
    return x


def neighbours(axes: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the first and the last of axes that follow each other.

    >>> neighbours((0, 2, 3))
    [(0, 0), (2, 3)]
    """
    firsts = [i for i in axes if i - 1 not in axes]
    return list(zip(firsts, [i for i in axes if i + 1 not in axes], strict=True))


def sum_along(x: Any, axis: int) -> Any:
    """Return the sum of an ndarray over one axis."""
    length = x.shape[axis]
    before: tuple[Any, ...] = (slice(None),) * axis
    if x.strides[axis] == 0 and length:  # the same element over and over
        return x[*before, 0] * length
    if axis == x.ndim - 1:
        return sums_of_rows(x) if axis > 0 and length <= LONGEST and is_multiplied(x) else x.sum(axis=axis)
    width = math.prod(x.shape[axis + 1 :])
    if is_multiplied(x) and width and (block := MACHINE.blas_alone // width) >= FEWEST:
        found = sum_by_products(x.reshape(math.prod(x.shape[:axis]), length, width), min(block, BLOCK))
        return found.reshape(*x.shape[:axis], *x.shape[axis + 1 :])
    rows = x
    while length > FEW:
        half = length // 2
        left, right = rows[*before, :half], rows[*before, half : 2 * half]
        halved = add_arrays(left, right, None if rows is x else left)
        if length % 2:
            halved[*before, 0] += rows[*before, -1]
        rows, length = halved, half
    return rows.sum(axis=axis)


def is_multiplied(x: Any) -> bool:
    """Tell whether an ndarray is one that BLAS multiplies as it lies in memory."""
    return x.dtype.char in ONES and x.flags.c_contiguous


def sums_of_rows(x: Any) -> Any:
    """Return the sums along the last axis, by products with ones: in a third to a ninth of NumPy's time."""
    *shape, length = x.shape
    ones, rows = ONES[x.dtype.char][:length], x.reshape(-1, length)
    if rows.size <= MACHINE.blas_alone:
        return rows.dot(ones).reshape(shape)
    height = max(MACHINE.blas_alone // length, 1)
    whole = len(rows) - len(rows) % height
    sums = np.empty(len(rows), x.dtype)
    np.matmul(rows[:whole].reshape(-1, height, length), ones, out=sums[:whole].reshape(-1, height))
    np.matmul(rows[whole:], ones, out=sums[whole:])
    return sums.reshape(shape)


def sum_by_products(stack: Any, block: int) -> Any:
    """Return the sums of the rows of each matrix of a stack, by products with ones: blocks of rows, and then of sums.

    That is as accurate as adding pairwise, in half of NumPy's time for summing along such an axis.
    """
    ones = ONES[stack.dtype.char]
    while (length := stack.shape[1]) > block:
        split = length - length % block
        sums = np.matmul(ones[:block], stack[:, :split].reshape(len(stack), -1, block, stack.shape[2]))
        if split < length:
            sums = np.concatenate([sums, np.matmul(ones[: length - split], stack[:, split:])[:, None]], 1)
        stack = sums
    return np.matmul(ones[:length], stack)


def add_arrays(x: Any, y: Any, out: Any) -> Any:
    """Add arrays, on several threads where they are large."""
    return add_shared(x, y, out) if x.size >= LARGE else np.add(x, y, out=out)


def match_dtype(ct: Any, dtype: np.dtype[Any]) -> Any:
    """Return a cotangent in the dtype of its primal; a real primal takes the real part."""
    if ct.dtype.kind == "c" and dtype.kind != "c":
        ct = ct.real
    return ct if ct.dtype == dtype else ct.astype(dtype)


def has_no_nan(r: Any) -> bool:
    """Tell whether an array or scalar of floats has no NaN; False where that is not so, or not easily known.

    A sum of squares is NaN if and only if an element is, because no terms cancel. That of larger arrays BLAS shares
    among threads, which wait for each other for milliseconds on a busy processor; so it is the smallest element then.
    """
    if type(r) is ndarray and (r.dtype is DOUBLE or r.dtype is SINGLE):
        r = sum_of_squares(r) if r.size <= MACHINE.blas_shared else np.minimum.reduce(r, axis=None)
    return (type(r) is float64 or type(r) is float32) and bool(r == r)


def has_finite_square(x: Any) -> bool:
    """Tell whether an array is so small that the squares of its elements, and their sum, are finite."""
    if type(x) is not ndarray:
        return type(x) is float64 and bool(x * x < np.inf)
    small = (x.dtype is DOUBLE or x.dtype is SINGLE) and x.size <= MACHINE.blas_shared
    return small and math.isfinite(sum_of_squares(x))


def sum_of_squares(x: Any) -> Any:
    """Return the sum of the squares of a real array: `np.vdot`, in half of its time."""
    flat = x if x.ndim == 1 else x.ravel("K")
    return flat.dot(flat)


def may_have_nan(r: Any, moving: bool) -> bool:
    """Tell whether a value has a NaN, or no elements yet; if `moving`, also whether its tangents have."""
    pending = [r]
    while pending:
        x = pending.pop()
        while type(x) is Tensor:
            trace = x._trace
            if trace is None:
                x = x._value
                continue
            if trace.staged:
                return True
            if moving:
                pending.append(trace.tangent_below(x))
            x = trace.below(x)
        if x is not None and np.isnan(x).any():
            return True
    return False


def guard(x: Any, r: Any, t: Any, **kept: bool) -> Any:
    """Return x, and 0 for elements where the rule of a singular primitive came out as r, NaN, although t is 0.

    That is a primitive, closed under differentiation: a linear one that chooses elements of its first operand.
    With `masked=True` the sweep that makes it has passed a mask, and so has every sweep that passes it. With
    `steep=True` it has passed an infinite partial, and an infinite t times a partial of 0 is 0, too, as forwards.
    With `multiple=False` r is no multiple of t: it may be a number other than 0 where t is 0.
    """
    return apply(PRIMITIVES["guarded"], x, r, t, **kept)


def strong_zero(
    rule: Callable[..., Any], regular: Callable[..., bool] | None = None, **kept: bool
) -> Callable[..., Any]:
    """Wrap the rule of a singular primitive so that a zero times an infinite partial is zero.

    Only elements where the product came out as NaN are replaced. Where the partial is finite the result stays a
    linear function of `t`, so that derivatives of the rule at t = 0 (a vjp of a vjp, say) are right. Of operands that
    are `regular` (literal ones among them tell) partials are finite where values are. See `guard` for what is kept.
    """
    steep = "steep" in kept

    @wraps(rule)
    def guarded_rule(t: Any, out: Any, *xs: Any, **params: Any) -> Any:
        r = rule(t, out, *xs, **params)
        if has_no_nan(r) or (regular is not None and regular(*xs)):
            return r
        if not may_have_nan(r, bool(kept)):
            return r
        if not is_staged(t) and np.all(raw(t)) and not (steep and np.isinf(raw(t)).any()):
            return r
        if UNKNOWN in r.shape:  # a sequence of a loop: its cotangents are only passed on
            return r
        return guard(r, r, t, **kept)

    return guarded_rule


def split_infinite(x: Any) -> tuple[Any, Any]:
    """Return what is finite of a value, and the signs of what is infinite."""
    infinite = np.isinf(x)
    return np.where(infinite, 0.0, x), np.where(infinite, np.sign(x), 0.0)


def replace_nan(x: Any, finite: Any, signs: Any) -> Any:
    """Return x, and where it is NaN the sum of what finite factors give and of what the signs of infinite ones tell.

    All else stays: its own derivatives know how infinite factors move, of which signs know nothing.
    """
    return np.where(np.isnan(x), finite + np.where(signs == 0, 0.0, signs * np.inf), x)


def linear_image(
    rule: Callable[[Sequence[Any]], Sequence[Any]],
    moving: Sequence[Any],
    spread: Callable[[Any], Any] | None = None,
) -> Sequence[Any]:
    """Return what a linear rule gives, behind an infinite partial: with 0 for products of infinity and 0.

    Args:
        rule: gives cotangents for cotangents, or tangents for tangents; None stands for zeros.
        moving: these.
        spread: of rules whose results are multiples of single elements of the first one: gives these elements.
    """
    found = rule(moving)
    if not any(r is not None and may_have_nan(r, True) for r in found):
        return found
    values = [t for t in moving if t is not None]
    if any(map(is_staged, values)) or any(is_staged(r) for r in found if r is not None):
        if spread is None:  # what is infinite alone, and what is not, would tell
            return found
        factor = spread(moving[0])
        units = [None if r is None else r * factor for r in rule([np.ones_like(moving[0])])]
        return [None if r is None else guard(r, r, factor, steep=True) for r in units]
    if not any(np.isinf(raw(t)).any() for t in values):
        return found
    parts = [(None, None) if t is None else split_infinite(t) for t in moving]
    finite, large = (rule(list(chosen)) for chosen in zip(*parts, strict=True))
    return [r if r is None or s is None else replace_nan(r, f, s) for r, f, s in zip(found, finite, large, strict=True)]
