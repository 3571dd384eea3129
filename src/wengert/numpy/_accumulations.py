"""Running sums and products with NumPy's signatures, and the methods of ufuncs that they belong to."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_dtype
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply, as_tensor, implements
from wengert.core.values.tensor import Tensor, concrete
from wengert.errors import ShapeError, UsageError
from wengert.numpy._joining import stack
from wengert.numpy._reductions import Params, axes, flag, given, max, min, params_of, prod, reduce_with, starting, sum
from wengert.numpy._results import dtype_within, with_out
from wengert.numpy._ufuncs import OF_UFUNCS
from wengert.primitives import accumulations, reductions
from wengert.traces.eager_functions import eager_single
from wengert.traces.eager_operators import operand

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


Reduce = Callable[..., Any]


def make_named_reduce(function: Callable[..., Any], *, typed: bool) -> Reduce:
    """Return the reduce method of a ufunc whose reduction is a function of its own."""

    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        options = {"dtype": dtype} if typed else {}
        x = as_tensor(array)
        if dtype is not None and not typed:
            x = x.astype(dtype)
        return function(x, axis=axis, out=out, keepdims=keepdims, initial=initial, where=where, **options)

    return reduce


def make_other_reduce(ufunc: np.ufunc) -> Reduce:
    """Return the reduce method of a ufunc by the accumulation that it is the end of."""
    name = f"{ufunc.__name__}.reduce"
    constant = PRIMITIVES[ufunc.__name__].kind == "constant"

    def reduce(
        array: Any,
        axis: Any = 0,
        dtype: Any = None,
        out: Any = None,
        keepdims: Any = False,
        initial: Any = None,
        where: Any = True,
    ) -> Any:
        x = as_tensor(array)
        initial, where = starting(ufunc, x, initial, dtype_within(x, dtype, out)), given(where, True)
        if constant:
            params = {"ufunc": ufunc, **params_of(x, axis, keepdims, dtype, of_ufunc=True)}
            result = reduce_with(reductions.constant_reduce, x, params, initial=initial, where=where)
            return with_out(name, result, out)
        if (dtype := dtype_within(x, dtype, out)) is not None:
            x = x.astype(dtype)
        if where is not None:
            x = fill_masked(name, ufunc, x, where)
        along = axes(axis, x.ndim, of_ufunc=True)
        if initial is not None:
            x = with_initial(name, ufunc, x, along, initial)
        return with_out(name, apply_reduction(ufunc, x, {"axis": along, "keepdims": flag(keepdims)}), out)

    return reduce


def apply_reduction(ufunc: np.ufunc, x: Any, params: Params) -> Any:
    """Apply the reduction of a ufunc that is differentiated through its accumulation."""
    if ufunc is np.logaddexp:
        return apply(reductions.logaddexp_reduce, x, **params)
    return apply(reductions.ufunc_reduce, x, ufunc=ufunc, **params)


def fill_masked(name: str, ufunc: np.ufunc, x: Any, where: Any) -> Any:
    """Put the identity of a ufunc in place of the elements that a mask leaves out."""
    if ufunc not in (np.logaddexp, np.logaddexp2):
        needed = "a ufunc whose identity leaves every other element unchanged is needed"
        raise UsageError(name, "where=", needed, "Use wengert.numpy.where on the operand, or leave it out")
    return np.where(where, x, np.full((), -np.inf, x.dtype))


def with_initial(name: str, ufunc: np.ufunc, x: Any, axis: tuple[int, ...], initial: Any) -> Any:
    """Put the starting value before the first elements along an axis, in the dtype in which a ufunc reduces these."""
    if len(axis) != 1:
        given = f"initial= with {len(axis)} axes"
        raise UsageError(name, given, "one axis is needed", "Reduce one axis after the other")
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    x = x.astype(ufunc.reduce(np.ones(1, x.dtype)).dtype)
    first = np.broadcast_to(as_tensor(operand(name, initial)).astype(x.dtype), shape)
    return np.concatenate([first, x], axis=axis[0])


def make_accumulate(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the accumulate method of a ufunc."""
    name = f"{ufunc.__name__}.accumulate"

    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        x = as_tensor(array)
        return with_out(name, accumulate_ufunc(x, ufunc, axis, dtype_within(x, dtype, out)), out)

    return accumulate


def make_reduceat(ufunc: np.ufunc, reduce: Reduce) -> Callable[..., Any]:
    """Return the reduceat method of a ufunc: reductions of segments; sums are one operation."""
    name = f"{ufunc.__name__}.reduceat"

    def reduceat(array: Any, indices: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        x: Any = as_tensor(array)
        along = normalize_axis_index(axis, x.ndim)
        if ufunc is np.add:
            kind = {} if dtype is None else {"dtype": np.dtype(dtype)}
            starts = indices if type(indices) is Tensor else np.asarray(indices)
            return with_out(name, apply(accumulations.reduceat, x, starts, axis=along, **kind), out)
        starts = np.asarray(concrete(name, indices, "Reduce the segments one by one")).tolist()
        rows = np.moveaxis(x, along, 0)
        stops = [*starts[1:], len(rows)]
        parts = [reduce(rows[i : j if j > i else i + 1], dtype=dtype) for i, j in zip(starts, stops, strict=True)]
        return with_out(name, stack(parts, along), out)

    return reduceat


def make_outer(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the outer method of a ufunc: every element of one operand with every one of the other."""
    function = OF_UFUNCS[ufunc]

    def outer(A: Any, B: Any, /, **options: Any) -> Any:  # noqa: N803 - NumPy's names
        left, right = as_tensor(A), as_tensor(B)
        return function(left.reshape((*left.shape, *(1,) * right.ndim)), right, **options)

    return outer


def name_method(method: Callable[..., Any], ufunc: np.ufunc, name: str) -> Callable[..., Any]:
    """Name a method after its ufunc and document it."""
    method.__name__, method.__qualname__ = name, f"{ufunc.__name__}.{name}"
    method.__doc__ = f"""Compute `numpy.{ufunc.__name__}.{name}` of Tensors or arrays; see `numpy.ufunc.{name}`."""
    return method


def ufunc_methods(ufunc: np.ufunc) -> dict[str, Callable[..., Any]]:
    """Return the methods that a binary ufunc has for Tensors."""
    reduce = NAMED.get(ufunc) or make_other_reduce(ufunc)
    of_segments = make_reduceat(ufunc, reduce)
    return {"reduce": reduce, "reduceat": of_segments, "accumulate": make_accumulate(ufunc), "outer": make_outer(ufunc)}


NAMED: dict[np.ufunc, Reduce] = {
    np.add: make_named_reduce(sum, typed=True),
    np.multiply: make_named_reduce(prod, typed=True),
    np.maximum: make_named_reduce(max, typed=False),
    np.minimum: make_named_reduce(min, typed=False),
}
BINARY = {ufunc for ufunc in OF_UFUNCS if (ufunc.nin, ufunc.nout) == (2, 1)}
for _ufunc in BINARY:
    for _name, _method in ufunc_methods(_ufunc).items():
        implements((_ufunc, _name))(name_method(_method, _ufunc, _name))
        setattr(OF_UFUNCS[_ufunc], _name, _method)
