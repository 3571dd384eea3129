"""Accumulations with NumPy's signatures: running sums and products."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_dtype
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError
from wengert.numpy._out import dtype_within, with_out
from wengert.primitives import accumulations
from wengert.traces.eager_functions import eager_single

apply_cumsum = eager_single(accumulations.cumsum)
apply_accumulate = eager_single(accumulations.accumulate)


def accumulate_ufunc(x: Tensor, ufunc: np.ufunc, axis: int, dtype: Any = None) -> Any:
    """Return the running results of a ufunc along an axis."""
    axis = normalize_axis_index(axis, x.ndim)
    options = {} if dtype is None else {"dtype": as_dtype("cumprod" if ufunc is np.multiply else "cumsum", dtype)}
    if ufunc is np.add:
        return apply_cumsum(x, {"axis": axis, "reverse": False, **options})
    if PRIMITIVES[ufunc.__name__].kind == "constant":
        return apply(accumulations.constant_accumulate, x, ufunc=ufunc, axis=axis, **options)
    return apply_accumulate(x, {"ufunc": ufunc, "axis": axis, **options})


def accumulate_by_name(name: str, ufunc: np.ufunc, a: Any, axis: Any, dtype: Any, out: Any) -> Tensor:
    """Return running results along an axis, or along the elements in C order without one."""
    x = as_tensor(a)
    if (axis is None and x.ndim != 1) or not x.ndim:
        x = x.reshape(-1)
    if out is None:
        found: Tensor = accumulate_ufunc(x, ufunc, 0 if axis is None else axis, dtype)
        return found
    return with_out(name, accumulate_ufunc(x, ufunc, 0 if axis is None else axis, dtype_within(x, dtype, out)), out)


@implements(np.cumsum)
def cumsum(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the running sums along an axis; see `numpy.cumsum`."""
    return accumulate_by_name("cumsum", np.add, a, axis, dtype, out)


@implements(np.cumprod)
def cumprod(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the running products along an axis; see `numpy.cumprod`."""
    return accumulate_by_name("cumprod", np.multiply, a, axis, dtype, out)


def accumulate_by_standard(
    name: str, ufunc: np.ufunc, x: Any, axis: int | None, dtype: Any, out: Any, include_initial: bool
) -> Tensor:
    """Return running results as the array API defines them."""
    t: Any = np.atleast_1d(as_tensor(x))
    if axis is None and t.ndim > 1:
        raise ShapeError(name, f"shape {t.shape} without axis", "an axis is needed for more than one", "Pass axis=")
    axis = normalize_axis_index(axis or 0, t.ndim)
    result = accumulate_ufunc(t, ufunc, axis, dtype_within(t, dtype, out))
    if include_initial:
        shape = (*t.shape[:axis], 1, *t.shape[axis + 1 :])
        result = np.concatenate([np.full(shape, ufunc.identity, result.dtype), result], axis=axis)
    return with_out(name, result, out)


@implements(np.cumulative_sum)
def cumulative_sum(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running sums along an axis; see `numpy.cumulative_sum`."""
    return accumulate_by_standard("cumulative_sum", np.add, x, axis, dtype, out, include_initial)


@implements(np.cumulative_prod)
def cumulative_prod(
    x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
) -> Tensor:
    """Return the running products along an axis; see `numpy.cumulative_prod`."""
    return accumulate_by_standard("cumulative_prod", np.multiply, x, axis, dtype, out, include_initial)
