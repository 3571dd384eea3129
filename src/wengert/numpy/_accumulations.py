"""Running sums and products, differences and integrals, and the methods of ufuncs, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import as_dtype
from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.dispatch import apply, as_tensor, implements, one_array
from wengert.core.values.plain_functions import call_plain
from wengert.core.values.tensor import Tensor, concrete, innermost_trace, is_staged
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy._joining import stack
from wengert.numpy._namespace import enter_as
from wengert.numpy._reductions import (
    NO_VALUE,
    axes,
    flag,
    given_or_none,
    max,
    min,
    params_of,
    prod,
    reduce_with,
    starting,
    sum,
    whole_axis,
)
from wengert.numpy._results import dtype_within, lay_like, with_out
from wengert.numpy._selection import out_of_range
from wengert.numpy._shapes import row_and_axis, slice_axis
from wengert.numpy._ufuncs import OF_UFUNCS
from wengert.primitives import accumulations, reductions
from wengert.traces.eager import eager
from wengert.traces.operands import operand

apply_cumsum = eager(accumulations.cumsum)
apply_accumulate = eager(accumulations.accumulate)


def accumulate_ufunc(x: Tensor, ufunc: np.ufunc, axis: int, dtype: Any) -> Any:
    """Return the running results of a ufunc along an axis, counted from 0."""
    options = {} if dtype is None else {"dtype": as_dtype("cumprod" if ufunc is np.multiply else "cumsum", dtype)}
    if ufunc is np.add:
        return apply_cumsum(x, {"axis": axis, "reverse": False, **options})
    if PRIMITIVES[ufunc.__name__].kind == "constant":
        return apply(accumulations.constant_accumulate, x, ufunc=ufunc, axis=axis, **options)
    return apply_accumulate(x, {"ufunc": ufunc, "axis": axis, **options})


def enter_running(numpys: Callable[..., Any], ufunc: np.ufunc, what: str) -> Callable[..., Tensor]:
    """Enter and return a function of running results along an axis, or along the elements in C order without one."""
    name = numpys.__name__

    @enter_as(numpys, f"Return the running {what} along an axis")
    def compute(a: Any, axis: int | None = None, dtype: Any = None, out: Any = None) -> Tensor:
        x, along = row_and_axis(a, axis)
        if out is None:
            return accumulate_ufunc(x, ufunc, along, dtype)  # type: ignore[no-any-return]  # a Tensor
        return with_out(name, accumulate_ufunc(x, ufunc, along, dtype_within(x, dtype, out)), out)

    return compute


cumsum = enter_running(np.cumsum, np.add, "sums")
cumprod = enter_running(np.cumprod, np.multiply, "products")


def enter_cumulative(numpys: Callable[..., Any], ufunc: np.ufunc, what: str) -> None:
    """Enter a function of running results as the array API defines them."""
    name = numpys.__name__

    @enter_as(numpys, f"Return the running {what} along an axis")
    def compute(
        x: Any, /, *, axis: int | None = None, dtype: Any = None, out: Any = None, include_initial: bool = False
    ) -> Tensor:
        t: Any = np.atleast_1d(as_tensor(x))
        if axis is None and t.ndim > 1:
            raise ShapeError(name, f"shape {t.shape} without axis", "an axis is needed for more than one", "Pass axis=")
        along = normalize_axis_index(0 if axis is None else whole_axis(axis), t.ndim)
        result = accumulate_ufunc(t, ufunc, along, dtype_within(t, dtype, out))
        if include_initial:
            shape = (*t.shape[:along], 1, *t.shape[along + 1 :])
            result = np.concatenate([np.full(shape, ufunc.identity, result.dtype), result], axis=along)
        return with_out(name, result, out)


enter_cumulative(np.cumulative_sum, np.add, "sums")
enter_cumulative(np.cumulative_prod, np.multiply, "products")

# The methods of binary ufuncs. They are entered under pairs (ufunc, name), where
# NumPy's own ufuncs look, and are attributes of the functions of `wengert.numpy`.

Reduce = Callable[..., Any]
NAMED: dict[np.ufunc, tuple[Reduce, bool]] = {
    np.add: (sum, True),
    np.multiply: (prod, True),
    np.maximum: (max, False),
    np.minimum: (min, False),
}
"""The ufuncs whose reductions are functions of their own, and whether these have a parameter `dtype`."""


def make_reduce(ufunc: np.ufunc) -> Reduce:
    """Return the reduce method of a ufunc."""
    function, typed = NAMED.get(ufunc, (None, False))

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
        if function is None:
            return reduce_by_accumulation(ufunc, x, axis, dtype, out, keepdims, initial, where)
        if typed:
            return function(x, axis, dtype, out, keepdims, initial, where)
        return function(x if dtype is None else x.astype(dtype), axis, out, keepdims, initial, where)

    return reduce


def reduce_by_accumulation(
    ufunc: np.ufunc, x: Any, axis: Any, dtype: Any, out: Any, keepdims: Any, initial: Any, where: Any
) -> Any:
    """Return the reduction of a ufunc by the accumulation that it is the end of."""
    name = f"{ufunc.__name__}.reduce"
    initial, where = starting(ufunc, x, initial, dtype_within(x, dtype, out)), given_or_none(where, True)
    if PRIMITIVES[ufunc.__name__].kind == "constant":
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
    params = {"axis": along, "keepdims": flag(keepdims)}
    if ufunc is np.logaddexp:
        return with_out(name, apply(reductions.logaddexp_reduce, x, **params), out)
    return with_out(name, apply(reductions.ufunc_reduce, x, ufunc=ufunc, **params), out)


def fill_masked(name: str, ufunc: np.ufunc, x: Any, where: Any) -> Any:
    """Put the identity of a ufunc in place of the elements that a mask leaves out."""
    if ufunc not in (np.logaddexp, np.logaddexp2):
        needed = "a ufunc whose identity leaves every other element unchanged is needed"
        raise UsageError(name, "where=", needed, "Use wengert.numpy.where on the operand, or leave it out")
    x = as_reduced(ufunc, x)
    return np.where(where, x, np.full((), -np.inf, x.dtype))


def as_reduced(ufunc: np.ufunc, x: Any) -> Any:
    """Return elements in the dtype in which a ufunc reduces them: integers have no infinity, and no half."""
    return x.astype(ufunc.reduce(np.ones(1, x.dtype)).dtype)


def with_initial(name: str, ufunc: np.ufunc, x: Any, axis: tuple[int, ...], initial: Any) -> Any:
    """Put the starting value before the first elements along an axis, in the dtype in which a ufunc reduces these."""
    if len(axis) != 1:
        given = f"initial= with {len(axis)} axes"
        raise UsageError(name, given, "one axis is needed", "Reduce one axis after the other")
    shape = tuple(1 if i in axis else n for i, n in enumerate(x.shape))
    x = as_reduced(ufunc, x)
    first = np.broadcast_to(as_tensor(operand(name, initial)).astype(x.dtype), shape)
    return np.concatenate([first, x], axis=axis[0])


def make_accumulate(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return the accumulate method of a ufunc."""
    name = f"{ufunc.__name__}.accumulate"

    def accumulate(array: Any, axis: Any = 0, dtype: Any = None, out: Any = None) -> Any:
        x = as_tensor(array)
        along = normalize_axis_index(axis, x.ndim)
        return with_out(name, accumulate_ufunc(x, ufunc, along, dtype_within(x, dtype, out)), out)

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
        if (beyond := next((i for i in starts if not 0 <= i < len(rows)), None)) is not None:
            raise out_of_range(name, f"index {beyond}", len(rows), "")
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


BINARY = {ufunc for ufunc in OF_UFUNCS if (ufunc.nin, ufunc.nout) == (2, 1)}
for _ufunc in BINARY:
    _reduce = make_reduce(_ufunc)
    _methods = {"accumulate": make_accumulate(_ufunc), "outer": make_outer(_ufunc), "reduce": _reduce}
    for _name, _method in {**_methods, "reduceat": make_reduceat(_ufunc, _reduce)}.items():
        _method.__name__, _method.__qualname__ = _name, f"{_ufunc.__name__}.{_name}"
        _method.__doc__ = (
            f"""Compute `numpy.{_ufunc.__name__}.{_name}` of Tensors or arrays; see `numpy.ufunc.{_name}`."""
        )
        implements((_ufunc, _name))(_method)
        setattr(OF_UFUNCS[_ufunc], _name, _method)


def edge_values(value: Any, x: Tensor, axis: int) -> Tensor:
    """Return values to prepend or append; a scalar stands for one element along the axis."""
    found = as_tensor(value)
    if found.ndim:
        return found
    return np.broadcast_to(found, (*x.shape[:axis], 1, *x.shape[axis + 1 :]))  # type: ignore[return-value]  # it is a Tensor


apply_difference, apply_trapezoid = eager(accumulations.difference), eager(accumulations.trapezoid)


def evaluate_steps(x: Any, axis: int) -> Any:
    """Evaluate `diff` of an array of numbers, not of truths, as NumPy does."""
    along = normalize_axis_index(axis, x.ndim)
    if along == x.ndim - 1:
        return x[..., 1:] - x[..., :-1]
    return accumulations.steps_between(x, axis=along)


steps_along, sum_of_panels = strict(evaluate_steps), strict(accumulations.sum_of_panels)


@implements(np.diff, by="a prepend append")
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = NO_VALUE, append: Any = NO_VALUE) -> Tensor:
    """Return the n-th differences along an axis; see `numpy.diff`."""
    plain = type(a) is Tensor and a._trace is None and type(n) is int and n == 1 and prepend is append is NO_VALUE
    if plain and a.dtype.kind != "b" and (found := call_plain(steps_along, a, axis)) is not None:
        return found
    x = as_tensor(a)
    if n == 0:
        return x
    if n < 0:
        raise UsageError("diff", f"n={n}", "an order of at least 0 is needed", "Use cumsum to sum")
    if not x.ndim:
        raise ShapeError("diff", "a 0-d array", "at least one axis is needed", "Reshape it")
    axis = normalize_axis_index(axis, x.ndim)
    if prepend is not NO_VALUE or append is not NO_VALUE:
        parts = [x]
        if prepend is not NO_VALUE:
            parts.insert(0, edge_values(prepend, x, axis))
        if append is not NO_VALUE:
            parts.append(edge_values(append, x, axis))
        x = np.concatenate(parts, axis=axis)  # type: ignore[assignment]  # it is a Tensor
    for _ in range(n):
        if x.dtype.kind == "b":
            x = OF_UFUNCS[np.not_equal](slice_axis(x, axis, 1, None), slice_axis(x, axis, None, -1))
        elif x.shape[axis] < 2:
            return slice_axis(x, axis, 1, None)
        else:
            x = apply_difference(x, {"axis": axis})
    return x


@implements(np.ediff1d, by="ary to_end to_begin")
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Tensor:
    """Return the differences of the elements in C order; see `numpy.ediff1d`."""
    x = as_tensor(ary).reshape(-1)
    parts = [x[1:] - x[:-1]]
    if to_begin is not None:
        parts.insert(0, end_values("to_begin", to_begin, x.dtype))
    if to_end is not None:
        parts.append(end_values("to_end", to_end, x.dtype))
    return parts[0] if len(parts) == 1 else np.concatenate(parts)  # type: ignore[return-value]  # a Tensor


def end_values(name: str, value: Any, dtype: Any) -> Tensor:
    """Return values to put before or after differences, in their dtype."""
    found = as_tensor(value).reshape(-1)
    if not np.can_cast(found.dtype, dtype, "same_kind"):
        given = f"{name} of dtype {found.dtype} for an array of dtype {dtype}"
        needed = "a dtype that casts within its kind is needed"
        raise DtypeError("ediff1d", given, needed, "Convert one of them with .astype")
    return found if found.dtype == dtype else found.astype(dtype)


def spacing(distances: Any, length: int) -> Any:
    """Return the spacing along an axis: a scalar where it is uniform, else the differences of the coordinates.

    Coordinates that are being differentiated are never taken as uniform, because each has a derivative of its own.
    """
    x = as_tensor(distances)
    if not x.ndim:
        return distances
    if x.ndim != 1 or len(x) != length:
        given = f"coordinates of shape {x.shape} for an axis of length {length}"
        needed = "a scalar, or one coordinate for each element, is needed"
        raise ShapeError("gradient", given, needed, "Pass one array of coordinates for each axis")
    steps = diff(x if x.dtype.kind not in "iub" else x.astype(float))
    if innermost_trace(x) is None and np.all(steps == steps[0]):
        return steps[0]
    return steps


def spacings(f: Tensor, axes: Sequence[int], varargs: Sequence[Any]) -> list[Any]:
    """Return the spacing along each axis."""
    if not varargs:
        return [1.0] * len(axes)
    if len(varargs) == 1 and np.ndim(varargs[0]) == 0:
        return list(varargs) * len(axes)
    if len(varargs) != len(axes):
        given = f"{len(varargs)} spacings for {len(axes)} axes"
        needed = "none, one scalar, or one for each axis is needed"
        raise TypeError(describe("gradient", given, needed, "Pass as many as there are axes"))
    return [spacing(distances, f.shape[axis]) for distances, axis in zip(varargs, axes, strict=True)]


def inner_differences(f: Any, axis: int, h: Any) -> Any:
    """Return the central differences of second order."""
    left, middle, right = slice_axis(f, axis, None, -2), slice_axis(f, axis, 1, -1), slice_axis(f, axis, 2, None)
    if np.ndim(h) == 0:
        return (right - left) / (2.0 * h)
    h1, h2 = h[:-1], h[1:]
    shape = (1,) * axis + (-1,) + (1,) * (f.ndim - axis - 1)
    a = -h2 / (h1 * (h1 + h2))
    b = (h2 - h1) / (h1 * h2)
    c = h1 / (h2 * (h1 + h2))
    return a.reshape(shape) * left + b.reshape(shape) * middle + c.reshape(shape) * right


def edge_difference(f: Any, axis: int, h: Any, edge_order: int, *, last: bool) -> Any:
    """Return the one-sided difference at one end of an axis."""
    uniform = np.ndim(h) == 0
    if edge_order == 1:
        step = h if uniform else h[-1] if last else h[0]
        high, low = (
            (slice_axis(f, axis, -1, None), slice_axis(f, axis, -2, -1))
            if last
            else (slice_axis(f, axis, 1, 2), slice_axis(f, axis, None, 1))
        )
        return (high - low) / step
    start = f.shape[axis] - 3 if last else 0
    points = [slice_axis(f, axis, start + i, start + i + 1) for i in range(3)]
    if uniform:
        weights = [k / h for k in ((0.5, -2.0, 1.5) if last else (-1.5, 2.0, -0.5))]
    elif last:
        h1, h2 = h[-2], h[-1]
        weights = [h2 / (h1 * (h1 + h2)), -(h2 + h1) / (h1 * h2), (2.0 * h2 + h1) / (h2 * (h1 + h2))]
    else:
        h1, h2 = h[0], h[1]
        weights = [-(2.0 * h1 + h2) / (h1 * (h1 + h2)), (h1 + h2) / (h1 * h2), -h1 / (h2 * (h1 + h2))]
    a, b, c = weights
    return a * points[0] + b * points[1] + c * points[2]


@implements(np.gradient, by="f varargs")
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int = 1) -> Any:
    """Return the derivative of samples by differences of second order; see `numpy.gradient`."""
    x = as_tensor(f)
    if x.dtype.kind == "b":
        raise DtypeError("gradient", "truth values", "numbers are needed", "Convert them with .astype(float)")
    if x.dtype.kind in "iu":
        x = x.astype(float)
    if edge_order not in (1, 2):
        raise UsageError("gradient", f"edge_order={edge_order}", "1 or 2 is needed", "Use one of them")
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    results = []
    for i, h in zip(axes, spacings(x, axes, list(map(one_array, varargs))), strict=True):
        if x.shape[i] < edge_order + 1:
            given = f"{x.shape[i]} elements along axis {i}"
            needed = f"at least {edge_order + 1} are needed for edge_order={edge_order}"
            raise ShapeError("gradient", given, needed, "Leave the axis out, or sample more points")
        first, last = (edge_difference(x, i, h, edge_order, last=end) for end in (False, True))
        found: Any = np.concatenate([first, inner_differences(x, i, h), last], axis=i)
        results.append(lay_like(found if found.dtype == x.dtype else found.astype(x.dtype), x))
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.trapezoid, by="y x dx")
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Tensor:
    """Return the integral along an axis by the trapezoidal rule; see `numpy.trapezoid`."""
    plain = type(y) is Tensor and y._trace is None and x is None and type(dx) is float and dx == 1.0 and axis == -1
    if plain and (found := call_plain(sum_of_panels, y)) is not None:
        return found
    heights = as_tensor(y)
    at = normalize_axis_index(whole_axis(axis), heights.ndim)
    if x is None and type(dx) is float and heights.size and not is_staged(heights):
        return apply_trapezoid(heights, {"axis": at, "dx": dx})
    widths = dx
    if x is not None:
        points = as_tensor(x)
        if points.ndim == 1:
            widths = diff(points).reshape((*(1,) * at, -1, *(1,) * (heights.ndim - at - 1)))
        else:
            widths = diff(points, axis=axis)
    panels = widths * (slice_axis(heights, at, 1, None) + slice_axis(heights, at, None, -1)) / 2.0
    return sum(panels, axis)
