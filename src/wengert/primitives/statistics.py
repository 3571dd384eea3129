"""Statistics: variances and standard deviations, and means without NaN.

Parameters are those of the reductions: `axis`, a tuple of axes counted from 0; `keepdims`; `extras`, the names of the
operands after the first. `skipna` tells that NaN are left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Reduction
from wengert.core.primitives.cotangent import match_dtype, unbroadcast
from wengert.core.primitives.declare import elementwise, opaque
from wengert.core.values.tensor import visible_array
from wengert.primitives.floating_point import is_nan
from wengert.primitives.half_precision import jvp_of_single, vjp_of_single
from wengert.primitives.reductions import ADD, Axes, Names, count_along, options_of, restore_axes

Tangents = Sequence[Any]
ROUNDING = 1e-3
"""How small a standard deviation may be, beside the largest mean, for it to be what rounds one of half precision."""


# NaN left out


def without_nan(x: Any, *, value: float) -> Any:
    """Evaluate the replacement of NaN, in the memory layout that NumPy's own functions use for it."""
    replaced = np.array(x, copy=True)
    np.copyto(replaced, value, where=np.isnan(x))
    return replaced if replaced.ndim else replaced[()]


replace_nan = elementwise(
    "replace_nan",
    without_nan,
    d=lambda t, _out, x, *, value: np.where(np.isnan(x), 0.0, t),
    scalar=lambda x, *, value: np.where(np.isnan(x), value, x),
)


def evaluate_nanmean(x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Evaluate `nanmean`, over the elements where the mask holds."""
    return np.nanmean(x, axis=axis, dtype=dtype, keepdims=keepdims, where=mask[0] if mask else True)


def nanmean_vjp(ct: Any, _out: Any, x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Divide the cotangent among the elements that are counted."""
    counted = ~np.isnan(x) & mask[0] if mask else ~np.isnan(x)
    count = np.sum(counted, axis=axis, keepdims=True)
    return np.where(counted, match_dtype(restore_axes(ct, x.shape, axis, keepdims) / count, ct.dtype), 0.0)


def nanmean_at(x: Any, *mask: Any, axis: Axes, keepdims: bool) -> Any:
    """Return the mean of what is not NaN, where the mask holds, in a kernel."""
    del keepdims
    counted = ~is_nan(x) & (mask[0] != 0) if mask else ~is_nan(x)
    total = np.sum(np.where(counted, x, 0), axis=axis, keepdims=True)
    return total / np.sum(counted.astype(x.dtype), axis=axis, keepdims=True)


nanmean = opaque("nanmean", evaluate_nanmean, vjp=nanmean_vjp, form=Reduction(operands=("where",)), scalar=nanmean_at)


# Variances


def deviations(x: Any, center: Any, mask: Any, axis: Axes, skipna: bool, root: Any = None) -> tuple[Any, Any]:
    """Return the deviations from the mean, 0 where an element is not counted, and the number of those counted.

    Those of equal elements are what rounds the mean; divided by a standard deviation, the root that is made of them,
    they would be as large as 1. Where that may be so they are taken from their own mean again.
    """
    given = center
    if skipna:
        finite = ~np.isnan(x)
        mask = finite if mask is None else finite & mask
    if mask is None:
        count = count_along(x.shape, axis)
        if center is None and type(x) is np.ndarray and x.dtype.char == "d" and count:  # in half of the time
            center = ADD(x, axis, None, None, True) / count
        elif center is None:
            center = np.mean(x, axis=axis, keepdims=True)
        deviation = x - center
        if root is not None and given is None and may_be_rounding(root, center):
            deviation = deviation - np.mean(deviation, axis=axis, keepdims=True)
        return deviation, count
    count = count_along(x.shape, axis, mask)
    if center is None:
        center = np.sum(np.where(mask, x, 0.0), axis=axis, keepdims=True) / count
    deviation = np.where(mask, x - center, 0.0)
    if root is not None and given is None and may_be_rounding(root, center):
        deviation = np.where(mask, deviation - np.sum(deviation, axis=axis, keepdims=True) / count, 0.0)
    return deviation, count


def may_be_rounding(root: Any, center: Any) -> bool:
    """Tell whether a standard deviation may be what rounds the mean, as far as numbers are there to tell."""
    found, mean = visible_array(root), visible_array(center)
    if found is None or mean is None:
        return True
    if found.size == 1 == mean.size:  # in a third of the time
        return not found.item() > ROUNDING * abs(mean.item())
    return not found.min(initial=np.inf) > ROUNDING * np.abs(mean).max(initial=0.0)


def freedom(count: Any, ddof: float) -> Any:
    """Return the degrees of freedom, 1 where there are none: the result is NaN or infinite, its gradient is not."""
    if isinstance(count, int):
        return count - ddof if count > ddof else 1
    return np.where(count > ddof, count - ddof, 1)


def weighted_deviations(
    x: Any, root: Any, rest: Sequence[Any], skipna: bool, axis: Axes, ddof: float, extras: Names
) -> tuple[Any, Any, Any]:
    """Return the deviations, conjugates of complex ones, and of elements how many are counted, and are free.

    A variance is the sum of the squares of deviations by the degrees of freedom.
    """
    options = options_of(extras, rest)
    deviation, count = deviations(x, options.get("mean"), options.get("where"), axis, skipna, root)
    return np.conjugate(deviation) if x.dtype.kind == "c" else deviation, count, freedom(count, ddof)


def by_twice(t: Any, out: Any, count: Any) -> Any:
    """Return t / (2 out), the derivative of the root, and 0 where out is 0, by choice, or no elements are counted."""
    known = visible_array(out)
    if known is not None and (known > 0).all():
        return t / (2 * out)
    varies = (out != 0) & (count > 0 if isinstance(count, int) else np.reshape(count > 0, out.shape))
    return np.where(varies, t / (2 * np.where(varies, out, 1.0)), 0.0)


def dispersion_at(
    x: Any,
    *rest: Any,
    axis: Axes,
    keepdims: bool,
    ddof: float,
    extras: Names = (),
    dtype: Any = None,
    root: bool,
    skipna: bool,
) -> Any:
    """Return a variance in a kernel, or its root; None in another dtype."""
    del keepdims
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    if dtype is not None and dtype != x.dtype:
        return None
    options = options_of(extras, rest)
    mask, center = options.get("where"), options.get("mean")
    counted = None if mask is None else mask != 0
    if skipna:
        counted = ~is_nan(x) if counted is None else counted & ~is_nan(x)
    count: Any = count_along(x.shape, axis)
    if counted is not None:
        count = np.sum(counted.astype(x.dtype), axis=axis, keepdims=True)
        x = np.where(counted, x, 0)
    deviation = x - (np.sum(x, axis=axis, keepdims=True) / count if center is None else center)
    squares = deviation * deviation
    if counted is not None:
        squares = np.where(counted, squares, 0)
    free = max(count - ddof, 0) if counted is None else np.maximum(count - ddof, 0)
    found = np.sum(squares, axis=axis, keepdims=True) / free
    if skipna:
        found = np.where(free == 0, math.nan, found)
    return np.sqrt(found) if root else found


def dispersion_of_doubles(x: Any, axis: Axes, keepdims: bool, count: int, ddof: float, root: bool) -> Any:
    """Compute a variance, or its root, in the steps of NumPy's method."""
    deviation = np.subtract(x, ADD(x, axis, None, None, True) / count)
    squares = np.multiply(deviation, deviation, deviation if type(deviation) is np.ndarray else None)
    found = ADD(squares, axis, None, None, keepdims)
    found /= count - ddof  # in place: how axes of length one lie in memory is NumPy's, too
    return np.sqrt(found, out=found if type(found) is np.ndarray else None) if root else found


def dispersion(name: str, evaluate: Callable[..., Any] | None = None, *, square: Any = None) -> Any:
    """Declare a variance, or the standard deviation of which one is the square: a method, or what skips NaN of NumPy's.

    Of doubles the former is done in the same steps in half of the time: the method is written in Python.
    """
    skipna = evaluate is not None
    root = square is not None

    def evaluation(
        x: Any, *rest: Any, axis: Axes, keepdims: bool, ddof: float, extras: Names = (), dtype: Any = None
    ) -> Any:
        if evaluate is None and not rest and dtype is None and x.dtype.char == "d":
            count = count_along(x.shape, axis)
            if count > ddof:  # NumPy warns of less
                return dispersion_of_doubles(x, axis, keepdims, count, ddof, root)
        options = options_of(extras, rest)
        if evaluate is None:
            return getattr(x, name)(axis, dtype, None, ddof, keepdims, **options)
        return evaluate(x, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)

    def vjp(
        ct: Any,
        out: Any,
        x: Any,
        *rest: Any,
        axis: Axes,
        keepdims: bool,
        ddof: float,
        extras: Names = (),
        dtype: Any = None,
    ) -> Any:
        deviation, count, free = weighted_deviations(x, out if root else None, rest, skipna, axis, ddof, extras)
        ct = by_twice(ct, out, count) if root else ct
        ct_x = match_dtype(2 * restore_axes(ct, x.shape, axis, keepdims) / free, ct.dtype) * deviation
        mean = options_of(extras, rest).get("mean")
        cts = {} if mean is None else {"mean": unbroadcast(-ct_x, mean.shape)}
        return (ct_x, *(cts.get(name) for name in extras))

    def jvp(
        tangents: Tangents, out: Any, x: Any, *rest: Any, axis: Axes, ddof: float, extras: Names = (), **_options: Any
    ) -> Any:
        deviation, count, free = weighted_deviations(x, out if root else None, rest, skipna, axis, ddof, extras)
        moved: Any = 0.0
        if tangents[0] is not None:
            moved = np.sum(deviation * tangents[0], axis=axis, keepdims=True)
        center = options_of(extras, tangents[1:]).get("mean")
        if center is not None:
            moved = moved - np.sum(deviation * center, axis=axis, keepdims=True)
        moved = (2 * moved.real / free).reshape(out.shape)
        return by_twice(moved, out, count) if root else moved

    return opaque(
        name,
        evaluation,
        vjp=vjp_of_single(name, vjp),
        jvp=jvp_of_single(name, jvp),
        form=Reduction(),
        square=(lambda **_params: square) if root else None,
        scalar=functools.partial(dispersion_at, root=root, skipna=skipna),
        loop=range(1),
        not_negative=(),
    )


var = dispersion("var")
std = dispersion("std", square=var)
nanvar = dispersion("nanvar", np.nanvar)
nanstd = dispersion("nanstd", np.nanstd, square=nanvar)
