"""Statistics with NumPy's signatures: variances, averages, order statistics, and the functions that leave out NaN."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import as_dtype, require_one_number
from wengert.core.diagnostics.numpy_warnings import at_users_line
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, as_tensor, implements, one_array
from wengert.core.values.numpy_overrides import DIRECT
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy import _accumulations, _reductions
from wengert.numpy._axes import diagonal
from wengert.numpy._contractions import dot
from wengert.numpy._namespace import enter_as
from wengert.numpy._reductions import (
    NO_VALUE,
    Params,
    counted_elements,
    flag,
    given_or_none,
    mean,
    params_of,
    reduce_with,
    screen_nans,
)
from wengert.numpy._results import FITS_RESULT, WITHIN_KIND, with_out
from wengert.numpy._shapes import squeeze
from wengert.primitives import quantiles, statistics
from wengert.traces.operands import operand

Function = Callable[..., Any]


# Variances


def dispersion(
    name: str, primitive: Primitive, a: Any, axis: Any, dtype: Any, out: Any, ddof: float, keepdims: Any, extras: Params
) -> Tensor:
    """Return a variance or standard deviation."""
    x = screen_nans(a) if name.startswith("nan") else as_tensor(a)
    correction = given_or_none(extras["correction"])
    if correction is not None and ddof != 0:
        raise UsageError(name, "both ddof and correction", "one of them is needed", "Leave one out: they mean the same")
    ddof = ddof if correction is None else correction
    require_one_number(name, "ddof", ddof)
    params = {"ddof": ddof, **params_of(x, axis, keepdims, dtype, of_ufunc=name.startswith("nan"))}
    center = given_or_none(extras["mean"])
    center = None if center is None else as_tensor(center)
    return with_out(name, reduce_with(primitive, x, params, mean=center, where=counted_elements(extras["where"])), out)


def enter_dispersion(function: Any, primitive: Primitive, what: str) -> Callable[..., Tensor]:
    """Return a function with the signature of `numpy.var`."""
    name = function.__name__

    @enter_as(function, f"Return the {what} over axes")
    def compute(
        a: Any,
        axis: Any = None,
        dtype: Any = None,
        out: Any = None,
        ddof: float = 0,
        keepdims: Any = False,
        *,
        where: Any = True,
        mean: Any = None,
        correction: Any = None,
    ) -> Tensor:
        extras = {"where": where, "mean": mean, "correction": correction}
        return dispersion(name, primitive, a, axis, dtype, out, ddof, keepdims, extras)

    return compute


var = enter_dispersion(np.var, statistics.var, "variance")
std = enter_dispersion(np.std, statistics.std, "standard deviation")
nanvar = enter_dispersion(np.nanvar, statistics.nanvar, "variance of the elements that are not NaN")
nanstd = enter_dispersion(np.nanstd, statistics.nanstd, "standard deviation of the elements that are not NaN")


# NaN left out


def replace_nan(a: Any, value: float) -> Tensor:
    """Return an array with NaN replaced."""
    x = screen_nans(a)
    return apply(statistics.replace_nan, x, value=value) if x.dtype.kind in "fc" else x


def enter_without_nan(
    function: Any, replaced_by: float, meaning: Function, what: str, by: str
) -> Callable[..., Tensor]:
    """Return a function that replaces NaN and does what another does; its arguments are the other's."""

    @enter_as(function, f"Return the {what}, counting NaN as {replaced_by}", by)
    def compute(a: Any, *args: Any, **options: Any) -> Tensor:
        found: Tensor = meaning(replace_nan(a, replaced_by), *args, **options)
        return found

    return compute


nansum = enter_without_nan(np.nansum, 0, _reductions.sum, "sum over axes", "a initial")
nanprod = enter_without_nan(np.nanprod, 1, _reductions.prod, "product over axes", "a initial")
nancumsum = enter_without_nan(np.nancumsum, 0, _accumulations.cumsum, "running sums along an axis", "a")
nancumprod = enter_without_nan(np.nancumprod, 1, _accumulations.cumprod, "running products along an axis", "a")


@implements(np.nanmean)
def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: Any = None, keepdims: Any = False, *, where: Any = True
) -> Tensor:
    """Return the mean over axes of the elements that are not NaN; see `numpy.nanmean`."""
    x = screen_nans(a)
    where = counted_elements(where)
    mask = () if where is None else (operand("nanmean", where),)
    result = apply(statistics.nanmean, x, *mask, **params_of(x, axis, keepdims, dtype, of_ufunc=True))
    return with_out("nanmean", result, out)


# Order statistics


def order_params(x: Tensor, axis: Any, keepdims: Any) -> Params:
    """Return the parameters of an order statistic, for which NumPy takes more than for sums."""
    along = None if axis is None else normalize_axis_tuple(axis, x.ndim, argname="axis")
    return params_of(x, along, keepdims is not NO_VALUE and bool(keepdims))


def compute_median(name: str, a: Any, axis: Any, out: Any, keepdims: Any, *, skipna: bool) -> Tensor:
    """Return a median."""
    x = screen_nans(a) if skipna else as_tensor(a)
    result = apply(quantiles.median, x, skipna=skipna, **order_params(x, axis, keepdims))
    return with_out(name, result, out)


@implements(np.median)
def median(a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False) -> Tensor:
    """Return the median over axes; tied elements share the gradient. See `numpy.median`."""
    return compute_median("median", a, axis, out, keepdims, skipna=False)


@implements(np.nanmedian)
def nanmedian(
    a: Any, axis: Any = None, out: Any = None, overwrite_input: bool = False, keepdims: Any = False
) -> Tensor:
    """Return the median over axes of the elements that are not NaN; see `numpy.nanmedian`."""
    return compute_median("nanmedian", a, axis, out, keepdims, skipna=True)


TAKING = {"lower", "higher", "nearest", "inverted_cdf", "closest_observation"}
"""Methods of quantiles that NumPy computes by `take`."""


def quantiles_as_mixed(x: Any, q: Any, weight: tuple[Any, ...], params: Params) -> Any:
    """Return quantiles without NaN for q of two axes, which NumPy mixes up with others if it reduces several."""
    axis, shape = params["axis"], q.shape
    found: Any = apply(quantiles.quantile, x, q.ravel(), *weight, **{**params, "keepdims": False})
    rest = found.shape[1:]
    found = np.moveaxis(found, 0, -1).reshape(rest + shape)
    first = -1 if len(axis) > 1 and rest else len(rest)
    found = np.moveaxis(found, (first, first + 1), (0, 1))
    if not params["keepdims"]:
        return found
    return found[(..., *(None if i in axis else slice(None) for i in range(x.ndim)))]


def enter_quantile(function: Any, *, percent: bool, skipna: bool) -> Callable[..., Tensor]:
    """Return a function with the signature of `numpy.quantile`."""
    name = function.__name__
    unit = "percentiles" if percent else "quantiles"

    @enter_as(function, f"Return {unit} over axes, tied elements sharing the gradient", "a q")
    def compute(
        a: Any,
        q: Any,
        axis: Any = None,
        out: Any = None,
        overwrite_input: bool = False,
        method: str = "linear",
        keepdims: Any = False,
        *,
        weights: Any = None,
    ) -> Tensor:
        x, q = screen_nans(a) if skipna else as_tensor(a), one_array(q)
        weight = () if weights is None else (operand(name, weights),)
        params = {"method": method, "percent": percent, "skipna": skipna, "moving": type(q) is Tensor}
        params |= order_params(x, axis, keepdims)
        parts = operand(name, q)
        if skipna and np.ndim(parts) == 2 and x.size:
            result = quantiles_as_mixed(x, parts, weight, params)
        else:
            result = apply(quantiles.quantile, x, parts, *weight, **params)
        takes = method in TAKING and weights is None and not skipna
        return with_out(name, result, out, rule=FITS_RESULT if takes else WITHIN_KIND)

    return compute


quantile = enter_quantile(np.quantile, percent=False, skipna=False)
percentile = enter_quantile(np.percentile, percent=True, skipna=False)
nanquantile = enter_quantile(np.nanquantile, percent=False, skipna=True)
nanpercentile = enter_quantile(np.nanpercentile, percent=True, skipna=True)


# Averages and covariances


def broadcast_weights(weights: Any, x: Tensor, axis: tuple[int, ...] | None) -> Tensor:
    """Return the weights of an average in a shape that broadcasts against the elements."""
    found = as_tensor(weights)
    if found.shape == x.shape:
        return found
    if axis is None:
        given = f"weights of shape {found.shape} for an array of shape {x.shape} without axis"
        needed = "the same shape, or the axis that the weights run along, is needed"
        raise TypeError(describe("average", given, needed, "Pass axis="))
    if found.shape != tuple(x.shape[i] for i in axis):
        given = f"weights of shape {found.shape} for axes of lengths {tuple(x.shape[i] for i in axis)}"
        needed = "weights as long as the axes they run along are needed"
        raise ShapeError("average", given, needed, "Reshape the weights, or pass another axis")
    ordered = found.transpose(tuple(np.argsort(axis).tolist()))
    return ordered.reshape(tuple(n if i in axis else 1 for i, n in enumerate(x.shape)))


@implements(np.average, by="a weights")
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False, *, keepdims: Any = False) -> Any:
    """Return the weighted mean over axes; see `numpy.average`."""
    x = as_tensor(a)
    keep = flag(keepdims)
    along = None if axis is None else normalize_axis_tuple(axis, x.ndim, argname="axis")
    if weights is None:
        result: Any = mean(x, along, keepdims=keep)
        total: Any = as_tensor(result.dtype.type(x.size / result.size))
    else:
        weight = broadcast_weights(weights, x, along)
        kinds = (x.dtype, weight.dtype) + ((np.dtype(float),) if x.dtype.kind in "iub" else ())
        dtype = np.result_type(*kinds)
        total = np.sum(weight, along, dtype=dtype, keepdims=keep)
        if is_concrete(total) and np.any(raw(total) == 0.0):
            needed = "a sum other than 0 is needed to divide by"
            raise ZeroDivisionError(describe("average", "weights that sum to 0", needed, "Change them"))
        result = np.sum(np.multiply(x, weight, dtype=dtype), along, keepdims=keep) / total
    if not returned:
        return result
    return result, total if total.shape == result.shape else np.copy(np.broadcast_to(total, result.shape))


def observations(x: Tensor, *, rowvar: bool, dtype: Any, of_many: bool) -> Any:
    """Return variables as rows, in the dtype of the covariance."""
    rows: Any = x.astype(dtype) if x.dtype != dtype else x
    rows = rows if rows.ndim > 1 else np.atleast_2d(rows)
    return rows.T if not rowvar and of_many else rows


def sample_weights(name: str, weights: Any, count: int) -> Any:
    """Return weights of observations as floats, checked."""
    found = as_tensor(weights)
    found = found if found.dtype == np.float64 else found.astype(float)
    if found.shape != (count,):
        given = f"{name} of shape {found.shape} for {count} observations"
        raise ShapeError("cov", given, "one weight for each observation is needed", f"Pass {name} of shape ({count},)")
    if is_concrete(found) and np.any(raw(found) < 0):
        raise UsageError("cov", f"negative {name}", "weights of at least 0 are needed", "Change them")
    return found


def degrees_of_freedom(ddof: int, total: Any, weight: Any, aweights: Any) -> Any:
    """Return the divisor of a weighted covariance, as NumPy computes it."""
    if ddof == 0:
        return total
    if aweights is None:
        return total - ddof
    terms = iter(weight * aweights)
    first = 0 + next(terms)
    for term in terms:  # one after the other, as NumPy adds them
        first = first + term
    return total - ddof * first / total


@implements(np.cov, by="m y aweights")
def cov(
    m: Any,
    y: Any = None,
    rowvar: bool = True,
    bias: bool = False,
    ddof: int | None = None,
    fweights: Any = None,
    aweights: Any = None,
    *,
    dtype: Any = None,
) -> Tensor:
    """Return the covariance matrix of variables; see `numpy.cov`."""
    usual = rowvar is True and bias is False and ddof is None and fweights is None and aweights is None
    if usual and type(m) is Tensor and m._trace is None and dtype is None:
        result = DIRECT[np.cov](m) if y is None else DIRECT[np.cov](m, y)  # type: ignore[misc]  # there is one
        if result is not NotImplemented:
            return result  # type: ignore[no-any-return]  # a Tensor
    x = as_tensor(m)
    other = None if y is None else as_tensor(y)
    for given_array in (x, other):
        if given_array is not None and given_array.ndim > 2:
            raise ShapeError("cov", f"shape {given_array.shape}", "at most two dimensions are needed", "Reshape it")
    if ddof is not None and ddof != int(ddof):
        raise UsageError("cov", f"ddof={ddof}", "an integer is needed", "Round it")
    kinds = [x.dtype, np.dtype(float)] + ([] if other is None else [other.dtype])
    dtype = np.result_type(*kinds) if dtype is None else as_dtype("cov", dtype)
    if dtype.kind not in "fc":
        raise DtypeError("cov", f"dtype={dtype}", "a dtype of floats or complex numbers is needed", "Leave it out")
    rows = observations(x, rowvar=rowvar, dtype=dtype, of_many=x.ndim != 1)
    if not rows.shape[0]:
        return as_tensor(np.zeros((0, 0)))
    if other is not None:
        second = observations(other, rowvar=rowvar, dtype=dtype, of_many=np.atleast_2d(other).shape[0] != 1)
        rows = np.concatenate([rows, second], axis=0)
    if ddof is None:
        ddof = 1 if bias == 0 else 0
    return covariance(rows, ddof, fweights, aweights)


def covariance(rows: Any, ddof: int, fweights: Any, aweights: Any) -> Tensor:
    """Return the covariance of rows; the product of a matrix with its own transpose, as NumPy has BLAS compute it."""
    count = rows.shape[1]
    weight = None
    if fweights is not None:
        weight = sample_weights("fweights", fweights, count)
        if is_concrete(weight) and not np.all(raw(weight) == np.around(raw(weight))):
            raise UsageError("cov", "fweights that are not integer", "counts are needed", "Use aweights")
    if aweights is not None:
        aweights = sample_weights("aweights", aweights, count)
        weight = aweights if weight is None else weight * aweights
    if weight is None:
        center, divisor = mean(rows, 1, keepdims=True), count - ddof
    else:
        center, total = average(rows, 1, weight, returned=True)
        center = center[:, None]
        divisor = degrees_of_freedom(ddof, total[0], weight, aweights)
    known = is_concrete(divisor)
    if known and raw(divisor) <= 0:
        warnings.warn("Degrees of freedom <= 0 for slice", RuntimeWarning, stacklevel=user_stacklevel())
        divisor = np.where(divisor > 0, divisor, 0.0)
    elif not known:
        divisor = np.where(divisor <= 0, 0.0, divisor)
    centered = rows - center
    transposed = (centered if weight is None else centered * weight).T
    if transposed.dtype.kind == "c":
        transposed = np.conjugate(transposed)
    product = dot(centered, transposed)
    found = product * at_users_line(np.true_divide, 1, divisor)
    found = found if found.dtype == product.dtype else found.astype(product.dtype)  # NumPy scales it in its place
    return squeeze(found) if 1 in found.shape else found


@implements(np.corrcoef, by="x y")
def corrcoef(x: Any, y: Any = None, rowvar: bool = True, *, dtype: Any = None) -> Tensor:
    """Return the correlation coefficients of variables; see `numpy.corrcoef`."""
    if type(x) is Tensor and x._trace is None and y is None and rowvar is True and dtype is None:
        result = DIRECT[np.corrcoef](x)  # type: ignore[misc]  # there is one
        if result is not NotImplemented:
            return result  # type: ignore[no-any-return]  # a Tensor
    found = cov(x, y, rowvar, dtype=dtype)
    if not found.ndim:
        return found / found
    variance = diagonal(found)
    deviation: Any = np.sqrt(variance.real if variance.dtype.kind == "c" else variance)
    share: Tensor = found / deviation[:, None] / deviation[None, :]
    return share.real.clip(-1, 1) + 1j * share.imag.clip(-1, 1) if share.dtype.kind == "c" else share.clip(-1, 1)
