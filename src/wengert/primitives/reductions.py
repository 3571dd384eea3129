"""Reductions: sums, means, products, extrema, and the reduce methods of ufuncs.

Parameters are the same throughout: `axis`, a tuple of axes counted from 0; `keepdims`; `extras`, which names the
operands after the first ("where", a mask; "initial", a starting value), as the keywords NumPy knows them by. "chosen"
is a mask of what an extremum is of, which needs no start: that of nothing is NumPy's error. All evaluations are NumPy's
own, with every option handed on: its results depend on how it groups the terms.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Reduction
from wengert.core.memory.masked_selection import select_where
from wengert.core.primitives.cotangent import has_no_nan, match_dtype, sum_over, unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor
from wengert.primitives.accumulations import accumulate_vjp
from wengert.primitives.half_precision import divide_by_count, jvp_of_single, vjp_of_single
from wengert.primitives.shares import shares_of_sum
from wengert.support.machine import MACHINE

Axes = tuple[int, ...]
Names = tuple[str, ...]

float64 = np.float64
# the methods without NumPy's type overloads, which know few of the combinations of arguments
ADD: Any = np.add.reduce
MULTIPLY: Any = np.multiply.reduce
MULTIPLY_SO_FAR: Any = np.multiply.accumulate
LOGADDEXP: Any = np.logaddexp.reduce


def restored_shape(shape: tuple[int, ...], axis: Axes) -> tuple[int, ...]:
    """Return a shape with its reduced axes as axes of length one."""
    return tuple([1 if i in axis else n for i, n in enumerate(shape)])


def restore_axes(ct: Any, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Any:
    """Return a reduced value with its reduced axes put back as axes of length one."""
    return ct if keepdims else ct.reshape(restored_shape(shape, axis))


def repeat_along(ct: Any, shape: tuple[int, ...], axis: Axes, keepdims: bool) -> Any:
    """Repeat a reduced value along the axes that were reduced: the transpose of a sum.

    Arrays are spread without copying by strides of 0. Building the ndarray directly takes 0.5 us, where reshaping
    and `np.broadcast_to` take 3; a sum of few elements takes 1.
    """
    if not axis:
        return ct
    if type(ct) is Tensor:
        whole = len(axis) == len(shape)
        return np.broadcast_to(ct if whole else restore_axes(ct, shape, axis, keepdims), shape)
    if len(axis) == len(shape):
        return np.ndarray(shape, ct.dtype, ct, 0, (0,) * len(shape))
    if not ct.flags.c_contiguous:
        ct = np.array(ct, order="C")
    kept = iter([stride for i, stride in enumerate(ct.strides) if i not in axis] if keepdims else ct.strides)
    return np.ndarray(shape, ct.dtype, ct, 0, [0 if i in axis else next(kept) for i in range(len(shape))])


def options_of(extras: Names, operands: Sequence[Any]) -> dict[str, Any]:
    """Return the operands after the first under the keywords that they stand for."""
    return dict(zip(extras, operands, strict=True)) if extras else {}


def count_along(shape: tuple[int, ...], axis: Axes, mask: Any = None) -> Any:
    """Return how many elements are reduced: an int, or with a mask an array with the reduced axes kept."""
    if mask is not None:
        return np.sum(np.broadcast_to(mask, shape), axis=axis, keepdims=True)
    count = 1
    for i in axis:
        count *= shape[i]
    return count


# Sums and means


def evaluate_sum(x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None, accurate: bool = False) -> Any:
    """Evaluate `sum`, over the elements where the mask holds; accurately rather than with NumPy's bits on request."""
    if mask:
        return ADD(x, axis, dtype, None, keepdims, where=mask[0])
    if accurate:
        summed = sum_over(x, axis)
        return np.expand_dims(summed, axis) if keepdims else summed
    if type(x) is float64 and dtype is None:
        return 0.0 + x  # which is what NumPy's comes to, in a twentieth of its time
    return ADD(x, axis, dtype, None, keepdims)


def transpose_sum(
    ct: Any, aval: Aval, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None, accurate: bool = False
) -> Any:
    """Spread the cotangent over the axes that were summed."""
    repeated = repeat_along(ct, aval.shape, axis, keepdims)
    return np.where(mask[0], repeated, 0.0) if mask else repeated


sum_ = linear(
    "sum",
    evaluate_sum,
    transpose=transpose_sum,
    form=Reduction(np.add, ("where",)),
    parts="each",
    not_negative=(0,),
)


def evaluate_sum_from(x: Any, initial: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Evaluate `sum` with a starting value."""
    where = mask[0] if mask else True
    return ADD(x, axis, dtype, None, keepdims, initial, where)


sum_from = linear(
    "sum_from",
    evaluate_sum_from,
    transpose=(transpose_sum, lambda ct, aval, *_mask, **_options: unbroadcast(ct, aval.shape)),
    form=Reduction(np.add, ("initial", "where")),
)


def evaluate_mean(x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Evaluate `mean`, over the elements where the mask holds; NumPy's method takes twice as long to do the same."""
    if mask:
        return x.mean(axis, dtype, None, keepdims, where=mask[0])
    if dtype is None and x.size and x.dtype.char == "d":
        return ADD(x, axis, None, None, keepdims) / count_along(x.shape, axis)
    return x.mean(axis, dtype, None, keepdims)


def transpose_mean(ct: Any, aval: Aval, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Spread the cotangent, divided by the number of elements."""
    if not mask:
        return repeat_along(divide_by_count(ct, count_along(aval.shape, axis)), aval.shape, axis, keepdims)
    counted = mask[0] if mask[0].shape == aval.shape else np.broadcast_to(mask[0], aval.shape)
    count = count_along(aval.shape, axis, counted)
    return np.where(counted, match_dtype(restore_axes(ct, aval.shape, axis, keepdims) / count, ct.dtype), 0.0)


def mean_at(x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Return the mean in a kernel: the sum by the count, which a mask tells; None of what is no float."""
    if x.dtype.kind != "f":
        return None
    if not mask:
        return np.sum(x, axis=axis, keepdims=True) / count_along(x.shape, axis)
    count = np.sum(mask[0].astype(x.dtype), axis=axis, keepdims=True)
    return np.sum(np.where(mask[0], x, 0), axis=axis, keepdims=True) / count


mean = linear(
    "mean",
    evaluate_mean,
    transpose=transpose_mean,
    form=Reduction(operands=("where",)),
    scalar=mean_at,
    loop=(1,),
    parts="each",
    not_negative=(0,),
)


# Products


def evaluate_prod(x: Any, *rest: Any, axis: Axes, keepdims: bool, extras: Names = (), dtype: Any = None) -> Any:
    """Evaluate `prod`."""
    return MULTIPLY(x, axis, dtype, None, keepdims, **options_of(extras, rest))


def exclusive_products(x: Any, axis: int, *, reverse: bool) -> Any:
    """Return at each place the product of all elements before it along an axis (after it, with `reverse`)."""
    backwards = (slice(None),) * axis + (slice(None, None, -1),)
    if reverse:
        return exclusive_products(x[backwards], axis, reverse=False)[backwards]
    all_but_last = (slice(None),) * axis + (slice(None, -1),)
    first = np.ones(restored_shape(x.shape, (axis,)), x.dtype)
    return np.concatenate([first, np.cumprod(x[all_but_last], axis=axis)], axis=axis)


def products_of_others(x: Any, axis: Axes) -> Any:
    """Return at each place the product of all other elements along the axes, without dividing: zeros are as others."""
    others: Any = 1.0
    for i in axis:
        if x.shape[i] != 1:
            along = products_of_others_along(x, i)
            others = along if type(others) is float else others * along
            if i != axis[-1]:
                x = MULTIPLY(x, axis=i, keepdims=True)
    return others


def products_of_others_along(x: Any, axis: int) -> Any:
    """Return at each place the product of all other elements along an axis of several.

    Many are paired, half with half: what is the product of all others of a pair is, times its one element, that of the
    other. Each level is two multiplications by vectors, where in products of all elements before each waits for the
    one before: 100,000 elements take 170 us in place of 750.
    """
    length = x.shape[axis]
    if length <= 2 or math.prod(x.shape) < MACHINE.call_elements:
        if type(x) is not np.ndarray:
            return exclusive_products(x, axis, reverse=False) * exclusive_products(x, axis, reverse=True)
        return products_before_and_after(x, axis)
    before, half = (slice(None),) * axis, length // 2
    first, second = (*before, slice(None, half)), (*before, slice(half, 2 * half))
    left, right = x[first], x[second]
    rest = (*before, slice(2 * half, None))
    pairs = left * right
    others = products_of_others_along(np.concatenate([pairs, x[rest]], axis) if length % 2 else pairs, axis)
    last = [others[(*before, slice(half, None))]] if length % 2 else []
    return np.concatenate([others[first] * right, others[first] * left, *last], axis)


def products_before_and_after(x: Any, axis: int) -> Any:
    """Return at each place of an ndarray the product of the elements before it times that of those after it."""
    before: tuple[Any, ...] = (slice(None),) * axis
    others = np.empty(x.shape, x.dtype)
    others[(*before, 0)] = 1
    MULTIPLY_SO_FAR(x[(*before, slice(None, -1))], axis, None, others[(*before, slice(1, None))])
    after = MULTIPLY_SO_FAR(x[(*before, slice(None, 0, -1))], axis)
    others[(*before, slice(None, -1))] *= after[(*before, slice(None, None, -1))]
    return others


def prod_vjp(
    ct: Any, _out: Any, x: Any, *rest: Any, axis: Axes, keepdims: bool, extras: Names = (), dtype: Any = None
) -> Any:
    """Multiply the cotangent by the product of the other factors, of which a starting value is one."""
    options = options_of(extras, rest)
    mask, initial = options.get("where"), options.get("initial")
    if len(axis) < len(x.shape):
        ct = restore_axes(ct, x.shape, axis, keepdims)
    if not x.size:
        cts = {"initial": None if initial is None else np.sum(ct)}
        return (np.zeros(x.shape, x.dtype), *(cts.get(name) for name in extras))
    factors = x if mask is None else np.where(mask, x, 1.0)
    ct_x = ct * products_of_others(factors, axis)
    cts = {}
    if initial is not None:
        cts["initial"] = np.sum(ct * MULTIPLY(factors, axis=axis, keepdims=True))
        ct_x = ct_x * initial
    if mask is not None:
        ct_x = np.where(mask, ct_x, 0.0)
    elif ct_x.shape != x.shape:
        ct_x = np.broadcast_to(ct_x, x.shape)
    return (ct_x, *(cts.get(name) for name in extras))


def prod_jvp(
    tangents: Sequence[Any],
    out: Any,
    x: Any,
    *rest: Any,
    axis: Axes,
    keepdims: bool,
    extras: Names = (),
    dtype: Any = None,
) -> Any:
    """Sum the tangents, each multiplied by the product of the other factors, of which a starting value is one."""
    options = options_of(extras, rest)
    mask, initial = options.get("where"), options.get("initial")
    factors = x if mask is None else np.where(mask, x, 1.0)
    moved: Any = np.zeros(out.shape, out.dtype)
    if tangents[0] is not None and x.size:
        parts = tangents[0] * products_of_others(factors, axis)
        if mask is not None:
            parts = np.where(mask, parts, 0.0)
        moved = np.sum(parts if initial is None else parts * initial, axis=axis, keepdims=keepdims)
    started = options_of(extras, tangents[1:]).get("initial")
    if started is not None:
        moved = moved + started * np.prod(factors, axis=axis, keepdims=keepdims)
    return moved


prod = opaque(
    "prod",
    evaluate_prod,
    vjp=vjp_of_single("prod", prod_vjp),
    jvp=jvp_of_single("prod", prod_jvp),
    form=Reduction(np.multiply),
)


# Extrema


def find_attaining(
    out: Any, x: Any, rest: Sequence[Any], axis: Axes, keepdims: bool, extras: Names, skipna: bool
) -> tuple[Any, Any, Any]:
    """Tell which elements attain the extremum, or made it NaN; whether the starting value does; and how many that are.

    The reduced axes are there, of length one, unless all are reduced.
    """
    options = options_of(extras, rest)
    mask, initial = options.get("where", options.get("chosen")), options.get("initial")
    if len(axis) < len(x.shape):
        out = restore_axes(out, x.shape, axis, keepdims)
    attained = x == out
    if not skipna and not has_no_nan(out):
        attained = attained | (x != x)
    if mask is not None:
        attained = attained & mask
    count: Any = 1
    ties = extras or skipna or type(attained) is not np.ndarray or np.count_nonzero(attained) != out.size
    if ties:  # counting them takes longer than all the rest
        add = ADD if type(attained) is np.ndarray else np.sum
        count = add(attained, axis=axis, keepdims=len(axis) < len(x.shape))
    started = None
    if initial is not None:
        started = (out == initial.astype(out.dtype)) | (initial != initial)  # as NumPy rounds it
        count = count + started
    if extras or skipna:
        count = np.maximum(count, 1)
    return attained, started, count


def extremum_vjp(
    ct: Any, out: Any, x: Any, *rest: Any, axis: Axes, keepdims: bool, extras: Names = (), skipna: bool = False
) -> Any:
    """Share the cotangent equally among the elements that attain the extremum, or that made it NaN."""
    attained, started, count = find_attaining(out, x, rest, axis, keepdims, extras, skipna)
    if len(axis) < len(x.shape):
        ct = restore_axes(ct, x.shape, axis, keepdims)
    share = match_dtype(ct / count, ct.dtype)
    cts = {} if started is None else {"initial": np.sum(np.where(started, share, 0.0))}
    return (select_where(attained, share), *(cts.get(name) for name in extras))


def extremum_jvp(
    tangents: Sequence[Any],
    out: Any,
    x: Any,
    *rest: Any,
    axis: Axes,
    keepdims: bool,
    extras: Names = (),
    skipna: bool = False,
) -> Any:
    """Return the mean of the tangents of the elements that attain the extremum, or that made it NaN."""
    attained, started, count = find_attaining(out, x, rest, axis, keepdims, extras, skipna)
    moved: Any = 0.0
    if tangents[0] is not None:
        moved = np.sum(select_where(attained, tangents[0]), axis=axis, keepdims=len(axis) < len(x.shape))
    initial = options_of(extras, tangents[1:]).get("initial")
    if initial is not None:
        moved = moved + np.where(started, initial, 0.0)
    return (moved / count).reshape(out.shape)


def last_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> Any:
    """Return the number of a real dtype that no other comes after in the order of `maximum` or `minimum`."""
    least = ufunc is np.maximum
    if dtype.kind == "f":
        return dtype.type(-np.inf if least else np.inf)
    if dtype.kind == "b":
        return not least
    return np.iinfo(dtype).min if least else np.iinfo(dtype).max


def extremum(name: str, ufunc: np.ufunc, skipping: Any) -> Any:
    """Declare `max` or `min` by a ufunc, and NumPy's function that skips NaN."""
    reduce: Any = ufunc.reduce

    def evaluate(x: Any, *rest: Any, axis: Axes, keepdims: bool, extras: Names = (), skipna: bool = False) -> Any:
        options = options_of(extras, rest)
        if "chosen" in options:
            mask = options["chosen"]
            if not np.all(np.any(np.broadcast_to(mask, x.shape), axis=axis)):
                reduce(np.empty(0, x.dtype))  # raises
            options = {"where": mask, "initial": last_of(ufunc, x.dtype)}
        if skipna:
            return skipping(x, axis=axis, keepdims=keepdims, **options)
        return reduce(x, axis, None, None, keepdims, **options)

    return opaque(name, evaluate, vjp=extremum_vjp, jvp=extremum_jvp, piecewise=True, joins=True, form=Reduction(ufunc))


max_ = extremum("max", np.maximum, np.nanmax)
min_ = extremum("min", np.minimum, np.nanmin)


# The reduce methods of ufuncs


def logsumexp_vjp(ct: Any, out: Any, x: Any, *, axis: Axes, keepdims: bool) -> Any:
    """Weight the cotangent by exp(x - out); elements tied at infinity share equally."""
    out, ct = (restore_axes(v, x.shape, axis, keepdims) for v in (out, ct))
    if x.dtype.kind == "c":
        return ct * np.exp(x - out)
    return ct * apply(shares_of_sum, out, x, axis=tuple([i - len(x.shape) for i in axis]))


def logsumexp_at(x: Any, *, axis: Axes, keepdims: bool) -> Any:
    """Return the logarithm of the sum of exponentials in a kernel, from the largest element."""
    largest = np.max(x, axis=axis, keepdims=True)
    largest = np.where(np.absolute(largest) < math.inf, largest, 0)
    return largest + np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True))


logaddexp_reduce = opaque(
    "logaddexp_reduce",
    lambda x, *, axis, keepdims: LOGADDEXP(x, axis, None, None, keepdims),
    vjp=vjp_of_single("logaddexp_reduce", logsumexp_vjp),
    form=Reduction(np.logaddexp),
    scalar=logsumexp_at,
)


MISREAD = (np.power, np.arctan2)
"""NumPy 2.4's vectorised loops of these read results before they are written: with AVX-512 `power.reduce(x)` gives
x[0] ** x[-1]. Their accumulate methods are right."""


def evaluate_reduce(
    x: Any, *rest: Any, ufunc: Any, axis: Axes, keepdims: bool, extras: Names = (), dtype: Any = None
) -> Any:
    """Evaluate `ufunc.reduce`."""
    if ufunc in MISREAD and axis and all(x.shape[i] for i in axis):
        index = (slice(None),) * axis[0] + (slice(-1, None) if keepdims else -1,)
        return ufunc.accumulate(x, axis[0])[index]
    return ufunc.reduce(x, axis, dtype, None, keepdims, **options_of(extras, rest))


def reduce_vjp(ct: Any, _out: Any, x: Any, *, ufunc: np.ufunc, axis: Axes, keepdims: bool) -> Any:
    """Differentiate one axis after the other: a reduction is the last of the accumulated results."""
    ct = restore_axes(ct, x.shape, axis, keepdims)
    inputs = [x] if axis else []
    for i in axis[:-1]:
        inputs.append(ufunc.reduce(inputs[-1], axis=i, keepdims=True))
    for i, y in zip(reversed(axis), reversed(inputs), strict=True):
        missing = list(y.shape)
        missing[i] = max(missing[i] - 1, 0)
        padded = np.concatenate([np.zeros(missing, ct.dtype), ct], axis=i) if y.shape[i] else np.zeros(y.shape)
        accumulated = ufunc.accumulate(y, axis=i)
        ct = accumulate_vjp(padded, accumulated, y, ufunc=ufunc, axis=i)
    return ct


ufunc_reduce = opaque("ufunc_reduce", evaluate_reduce, vjp=reduce_vjp, form=Reduction("ufunc"))
constant_reduce = constant("constant_reduce", evaluate_reduce, form=Reduction("ufunc"))
count_nonzero = constant(
    "count_nonzero",
    lambda x, axis, keepdims: np.count_nonzero(x, axis=axis, keepdims=keepdims),
    form=Reduction(),
    scalar=lambda x, *, axis, keepdims: np.sum((x != 0).astype(np.int64), axis=axis, keepdims=True),
    loop=range(1),
)
