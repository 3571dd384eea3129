"""Reductions with NumPy's signatures."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import applied, apply, as_tensor, implements
from wengert.core.values.members import Axis
from wengert.core.values.plain_functions import call_plain
from wengert.core.values.tensor import Tensor, innermost_trace, is_concrete
from wengert.errors import DtypeError, GraphError, UsageError
from wengert.numpy._results import dtype_within, with_out
from wengert.primitives import conversion, reductions, selection
from wengert.primitives.masked import is_selection
from wengert.traces.eager import eager
from wengert.traces.operands import operand

Params = dict[str, Any]
NO_VALUE = np._NoValue
INTEGER = frozenset({int})
ALL_AXES = tuple(tuple(range(ndim)) for ndim in range(65))


def axes(axis: Any, ndim: int, *, of_ufunc: bool = False) -> tuple[int, ...]:
    """Return the axes to reduce as a tuple of numbers from 0; None means all. Ufuncs allow axis 0 of a scalar."""
    if axis is None:
        return ALL_AXES[ndim]
    if type(axis) is int and -ndim <= axis < ndim:
        return (axis % ndim,)
    if type(axis) is tuple and INTEGER.issuperset(map(type, axis)):
        return several_axes(axis, ndim)
    numbers = tuple(map(whole_axis, axis if isinstance(axis, tuple) else (axis,)))
    if of_ufunc and not ndim and not isinstance(axis, tuple) and numbers[0] in (0, -1):
        return ()
    return several_axes(numbers, ndim)


def whole_axis(axis: Any) -> int:
    """Return the number of an axis; NumPy does not take truth values for one."""
    if isinstance(axis, bool | np.bool):
        raise DtypeError("axis", f"{axis}", "whole numbers are needed", f"Write int({axis}), or keepdims={axis}")
    return operator.index(axis)


@functools.lru_cache(maxsize=256)
def several_axes(axis: tuple[int, ...], ndim: int) -> tuple[int, ...]:
    """Return several axes as numbers from 0, in order: NumPy takes half a microsecond for that."""
    return tuple(sorted(normalize_axis_tuple(axis, ndim)))


def flag(keepdims: Any) -> bool:
    """Return `keepdims` as a bool, a whole number being one to NumPy; its marker of a missing argument means False."""
    return keepdims is True or (keepdims is not False and keepdims is not NO_VALUE and operator.index(keepdims) != 0)


def given_or_none(value: Any, default: Any = None) -> Any:
    """Return an optional argument, or None where it is its default or NumPy's marker of a missing one."""
    return None if value is NO_VALUE or value is default else value


def counted_elements(where: Any) -> Any:
    """Return which elements count, None for all; NumPy takes None for no element at all."""
    if where is None:
        needed = "truth values are needed, which NumPy does not take None for"
        raise UsageError("where", "None", needed, "Leave where= out")
    return given_or_none(where, True)


def params_of(x: Tensor, axis: Any, keepdims: Any, dtype: Any = None, *, of_ufunc: bool = False) -> Params:
    """Return the parameters that all reductions have."""
    params: Params = {"axis": axes(axis, x.ndim, of_ufunc=of_ufunc), "keepdims": flag(keepdims)}
    if dtype is not None:
        if isinstance(dtype, bool):
            raise TypeError(f"Cannot interpret '{dtype}' as a data type; write keepdims={dtype}")
        params["dtype"] = kind = np.dtype(dtype)
        if kind.kind not in "biufc" and innermost_trace(x) is not None:
            given = f"dtype {kind} for a Tensor that is being differentiated or traced"
            raise GraphError("dtype", given, "a numeric dtype is needed", "Call .detach() first")
    return params


def starting(ufunc: np.ufunc, x: Any, initial: Any, dtype: Any = None) -> Any:
    """Return a starting value or None; a number in the dtype of the result, where NumPy refuses what has no room."""
    initial = given_or_none(initial)
    if isinstance(initial, int | float | complex):
        return ufunc.reduce(np.empty(0, x.dtype), dtype=dtype, initial=initial)
    return initial


single = functools.cache(eager)


def reduce_with(primitive: Primitive, x: Any, params: Params, **extras: Any) -> Any:
    """Apply a reduction, with those of the extra operands that were given."""
    names = tuple([name for name, value in extras.items() if value is not None])
    if not names:
        return single(primitive)(x, params)
    operands = [operand(name, extras[name]) for name in names]
    return apply(primitive, x, *operands, extras=names, **params)


# Sums and means

compact_sum = eager(reductions.sum_)
compact_mean = eager(reductions.mean)


@implements(np.sum, by="a initial")
def sum(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: Any = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Return the sum over axes; see `numpy.sum`."""
    x = a if type(a) is Tensor else as_tensor(a)
    if dtype is None and out is None and initial is None and where is True:
        trace, value = x._trace, x._value
        ndim = value.ndim if type(value) is np.ndarray and (trace is None or trace.fast) else x.ndim
        along = ALL_AXES[ndim] if axis is None else axes(axis, ndim, of_ufunc=True)
        kept = keepdims if type(keepdims) is bool else flag(keepdims)
        if trace is None and (found := call_plain(reductions.ADD, x, along, None, None, kept)) is not None:
            return found
        return compact_sum(x, {"axis": along, "keepdims": kept})
    params = params_of(x, axis, keepdims, dtype_within(x, dtype, out), of_ufunc=True)
    initial, where = starting(np.add, x, initial, params.get("dtype")), counted_elements(where)
    mask = () if where is None else (operand("sum", where),)
    if initial is None:
        result = apply(reductions.sum_, x, *mask, **params)
    else:
        result = apply(reductions.sum_from, x, operand("sum", initial), *mask, **params)
    return result if out is None else with_out("sum", result, out)


@implements(np.mean)
def mean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Tensor:
    """Return the mean over axes; see `numpy.mean`."""
    x = as_tensor(a)
    if dtype is None and out is None and where is True:
        params = {"axis": axes(axis, x.ndim), "keepdims": flag(keepdims)}
        result = compact_mean(x, params)
        if is_selection(x):
            fixed: Tensor = with_fixed_means_of_nothing(result, x, (), params)
            return fixed
        return result if x._trace is None or x.size else apply(conversion.barrier, result)
    where = counted_elements(where)
    mask = () if where is None else (operand("mean", where),)
    if x.dtype.char in "fdgFDG":  # those of others are sums of a dtype of its own
        dtype = dtype_within(x, dtype, out)
    params = params_of(x, axis, keepdims, dtype)
    result = apply(reductions.mean, x, *mask, **params)
    if is_selection(x) or innermost_trace(x) is not None:
        result = with_fixed_means_of_nothing(result, x, mask, params)
    return result if out is None else with_out("mean", result, out)


def with_fixed_means_of_nothing(means: Any, x: Tensor, mask: tuple[Any, ...], params: Params) -> Any:
    """Return means of which those over no elements, which are NaN, have no derivative."""
    if is_selection(means):
        return means
    if not mask and not is_selection(x):
        return means if x.size else apply(conversion.barrier, means)
    there = np.broadcast_to(mask[0], x.shape) if mask else np.ones_like(x, bool)
    counted = np.any(there, axis=params["axis"], keepdims=params["keepdims"])
    if is_concrete(counted) and np.all(counted):
        return means
    return np.where(counted, means, apply(conversion.barrier, means))


# Products and extrema

compact_prod = eager(reductions.prod)
compact_extrema = {primitive: eager(primitive) for primitive in (reductions.max_, reductions.min_)}


@implements(np.prod, by="a initial")
def prod(
    a: Any,
    axis: Axis = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Return the product over axes; see `numpy.prod`."""
    x = as_tensor(a)
    if dtype is None and out is None and initial is None and where is True:
        return compact_prod(x, {"axis": axes(axis, x.ndim, of_ufunc=True), "keepdims": flag(keepdims)})
    params = params_of(x, axis, keepdims, dtype_within(x, dtype, out), of_ufunc=True)
    initial = starting(np.multiply, x, initial, params.get("dtype"))
    result = reduce_with(reductions.prod, x, params, initial=initial, where=counted_elements(where))
    return with_out("prod", result, out)


def extremum(
    name: str, primitive: Primitive, a: Any, axis: Any, out: Any, keepdims: Any, initial: Any, where: Any, **params: Any
) -> Tensor:
    """Return the greatest or least elements over axes."""
    x = as_tensor(a)
    if out is None and initial is None and where is True:
        params |= {"axis": axes(axis, x.ndim, of_ufunc=True), "keepdims": flag(keepdims)}
        return compact_extrema[primitive](x, params)
    params |= params_of(x, axis, keepdims, of_ufunc=True)
    initial = starting(np.maximum, x, initial)
    result = reduce_with(primitive, x, params, initial=initial, where=counted_elements(where))
    return with_out(name, result, out)


@implements(np.max, np.amax, by="a initial")
def max(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Return the greatest element over axes; tied elements share the gradient. See `numpy.max`."""
    return extremum("max", reductions.max_, a, axis, out, keepdims, initial, where)


@implements(np.min, np.amin, by="a initial")
def min(
    a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Return the least element over axes; tied elements share the gradient. See `numpy.min`."""
    return extremum("min", reductions.min_, a, axis, out, keepdims, initial, where)


def screen_nans(a: Any) -> Tensor:
    """Return the same elements: a sweep that passes them sends nothing back to what is NaN, not even a NaN."""
    x = as_tensor(a)
    if x._trace is None or x.dtype.kind not in "fc":
        return x
    found: Tensor = apply(selection.where, np.isnan(x), np.nan, x)
    return found


@implements(np.nanmax, by="a initial")
def nanmax(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Return the greatest element over axes that is not NaN; see `numpy.nanmax`."""
    primitive = reductions.max_
    return extremum("nanmax", primitive, screen_nans(a), axis, out, keepdims, initial, where, skipna=True)


@implements(np.nanmin, by="a initial")
def nanmin(
    a: Any, axis: Any = None, out: Any = None, keepdims: Any = False, initial: Any = None, where: Any = True
) -> Tensor:
    """Return the least element over axes that is not NaN; see `numpy.nanmin`."""
    primitive = reductions.min_
    return extremum("nanmin", primitive, screen_nans(a), axis, out, keepdims, initial, where, skipna=True)


@implements(np.ptp)
def ptp(a: Any, axis: Any = None, out: Any = None, keepdims: Any = False) -> Tensor:
    """Return the range of the elements over axes; see `numpy.ptp`."""
    x = as_tensor(a)
    return with_out("ptp", max(x, axis, keepdims=keepdims) - min(x, axis, keepdims=keepdims), out)


# Truth values and counts


def truth(name: str, ufunc: np.ufunc, a: Any, axis: Any, out: Any, keepdims: Any, where: Any) -> Tensor:
    """Reduce truth values."""
    if type(a) is Tensor and a._trace is None and out is None and where is True and type(a._value) is np.ndarray:
        along = axes(axis, a._value.ndim, of_ufunc=True)
        if (found := call_plain(ufunc.reduce, a, along, None, None, flag(keepdims))) is not None:
            return found
    x = as_tensor(a)
    params = {"ufunc": ufunc, **params_of(x, axis, keepdims, of_ufunc=True)}
    result = reduce_with(reductions.constant_reduce, x, params, where=counted_elements(where))
    return with_out(name, result, out)


@implements(np.all, by="")
def all(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Tell whether all elements over axes are true; see `numpy.all`."""
    return truth("all", np.logical_and, a, axis, out, keepdims, where)


@implements(np.any, by="")
def any(a: Any, axis: Axis = None, out: Any = None, keepdims: bool = False, *, where: Any = True) -> Tensor:
    """Tell whether any element over axes is true; see `numpy.any`."""
    return truth("any", np.logical_or, a, axis, out, keepdims, where)


@implements(np.count_nonzero)
def count_nonzero(a: Any, axis: Any = None, *, keepdims: Any = False) -> Tensor:
    """Return the number of elements over axes that are not zero; see `numpy.count_nonzero`."""
    x = as_tensor(a)
    kept = keepdims if keepdims or axis is not None else False
    return applied(reductions.count_nonzero, x, **params_of(x, axis, kept, of_ufunc=True))
