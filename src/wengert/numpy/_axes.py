"""Axes in another order, elements along them in another order, diagonals and triangles, with NumPy's signatures."""

from __future__ import annotations

import functools
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.memory.views import window_on
from wengert.core.values.dispatch import apply, implements
from wengert.core.values.plain_functions import call_plain
from wengert.core.values.tensor import WATCHES, Tensor
from wengert.errors import ShapeError
from wengert.numpy._reductions import whole_axis
from wengert.numpy._results import with_out
from wengert.numpy._shapes import array_operand, ravel, require_ndim
from wengert.primitives import shapes
from wengert.traces.eager import eager

permute_axes = eager(shapes.transpose)
REVERSED = tuple({"axes": tuple(range(ndim))[::-1]} for ndim in range(65))


@functools.lru_cache(maxsize=256, typed=True)
def permutation(axes: tuple[Any, ...]) -> dict[str, Any]:
    """Return the parameters of a permutation that NumPy has accepted; a TypeError where an axis may change later."""
    if bool in map(type, axes) or not all(isinstance(axis, int | np.integer) for axis in axes):
        raise TypeError(axes)
    return {"axes": tuple([int(axis) % len(axes) for axis in axes])}


@functools.lru_cache(maxsize=256, typed=True)
def exchange_axes(first: int, second: int, ndim: int) -> dict[str, Any]:
    """Return the parameters of the permutation that exchanges two axes; a TypeError where one is a Tensor, say."""
    if not isinstance(first, int | np.integer) or not isinstance(second, int | np.integer):
        raise TypeError(first, second)
    order = list(range(ndim))
    one, other = normalize_axis_index(first, ndim), normalize_axis_index(second, ndim)
    order[one], order[other] = other, one
    return {"axes": tuple(order)}


def reverse_axes(x: Tensor) -> Tensor:
    """Return a view with all axes reversed, as the attribute `T`."""
    value = x._value
    if x._trace is None and type(value) is np.ndarray and not WATCHES:
        return window_on(x, (), shapes.transpose, REVERSED[value.ndim], value.T)
    return permute_axes(x, REVERSED[x.ndim])


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Return a view with permuted axes, reversed by default; see `numpy.transpose`."""
    x = a if type(a) is Tensor else array_operand("transpose", a)
    if axes is None:
        return reverse_axes(x)
    value = x._value
    if x._trace is None and type(value) is np.ndarray and type(axes) is tuple and not WATCHES:
        try:
            out, params = value.transpose(axes), permutation(axes)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            return window_on(x, (), shapes.transpose, params, out)
    ndim = x.ndim
    listed = (axes,) if isinstance(axes, int | np.integer) else axes
    order = normalize_axis_tuple(tuple(map(whole_axis, listed)), ndim)
    if len(order) != ndim:
        action = "Name every axis once, or exchange two with .swapaxes" if len(order) == 2 else "Name every axis once"
        raise ShapeError("transpose", f"{len(order)} axes for a shape {x.shape}", f"all {ndim} are needed", action)
    return permute_axes(x, {"axes": order})


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """Return a view with the last two axes exchanged; see `numpy.matrix_transpose`."""
    matrices = array_operand("matrix_transpose", x)
    if matrices.ndim < 2:
        given = f"an array of shape {matrices.shape}"
        raise ShapeError("matrix_transpose", given, "at least two axes are needed", "Reshape it to a matrix")
    return swapaxes(matrices, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tensor:
    """Return a view with two axes exchanged; see `numpy.swapaxes`."""
    x = a if type(a) is Tensor else array_operand("swapaxes", a)
    value = x._value
    plain = x._trace is None and type(value) is np.ndarray and not WATCHES
    ndim = value.ndim if plain else x.ndim
    try:
        params = exchange_axes(axis1, axis2, ndim)
    except TypeError:
        params = exchange_axes(operator.index(axis1), operator.index(axis2), ndim)
    return (
        window_on(x, (), shapes.transpose, params, value.swapaxes(axis1, axis2)) if plain else permute_axes(x, params)
    )


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Return a view with some axes at other places; see `numpy.moveaxis`."""
    x = a if type(a) is Tensor else array_operand("moveaxis", a)
    if type(source) is int and type(destination) is int:
        order = list(range(x.ndim))
        order.insert(normalize_axis_index(destination, x.ndim), order.pop(normalize_axis_index(source, x.ndim)))
        return permute_axes(x, {"axes": tuple(order)})
    sources = normalize_axis_tuple(source, x.ndim, "source")
    places = normalize_axis_tuple(destination, x.ndim, "destination")
    if len(sources) != len(places):
        given = f"{len(sources)} sources and {len(places)} destinations"
        raise ShapeError("moveaxis", given, "as many are needed", "Pair them")
    order = [i for i in range(x.ndim) if i not in sources]
    for place, moved in sorted(zip(places, sources, strict=True)):
        order.insert(place, moved)
    return permute_axes(x, {"axes": tuple(order)})


@implements(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """Return a view with an axis moved before another; see `numpy.rollaxis`."""
    x = array_operand("rollaxis", a)
    moved = normalize_axis_index(axis, x.ndim)
    end = operator.index(start) + (x.ndim if start < 0 else 0)
    if not 0 <= end <= x.ndim:
        needed = f"a place from {-x.ndim} to {x.ndim} is needed"
        raise ShapeError("rollaxis", f"start={start} for an array of {x.ndim} axes", needed, "Use numpy.moveaxis")
    return moveaxis(x, moved, end - 1 if moved < end else end)


# Mirrored and turned

apply_flip = eager(shapes.flip)


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Tensor:
    """Return a view with the elements along axes in reverse order; see `numpy.flip`."""
    x = array_operand("flip", m)
    if type(axis) is int:
        return apply_flip(x, {"axis": (normalize_axis_index(axis, x.ndim),)})
    reversed_axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    return apply_flip(x, {"axis": reversed_axes})


@implements(np.fliplr)
def fliplr(m: Any) -> Any:
    """Return a view with the columns in reverse order; see `numpy.fliplr`."""
    return flip(require_ndim("fliplr", array_operand("fliplr", m), 2), 1)


@implements(np.flipud)
def flipud(m: Any) -> Any:
    """Return a view with the rows in reverse order; see `numpy.flipud`."""
    return flip(require_ndim("flipud", array_operand("flipud", m), 1), 0)


@implements(np.rot90)
def rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    """Return a view turned by quarter turns in a plane; see `numpy.rot90`."""
    x = array_operand("rot90", m)
    plane = normalize_axis_tuple(axes, x.ndim)
    if len(plane) != 2:
        raise ShapeError("rot90", f"axes {axes}", "two axes are needed", "Name the plane of the turn")
    first, second = plane
    turns = as_whole("rot90", "k", k) % 4
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    if turns == 3:
        return flip(swapaxes(x, first, second), second)
    return flip(x, plane if turns == 2 else ())


apply_diagonal = eager(shapes.diagonal)
apply_trace = eager(shapes.trace)
apply_triangle = eager(shapes.triangle)


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a read-only view of a diagonal; see `numpy.diagonal`."""
    x = a if type(a) is Tensor else array_operand("diagonal", a)
    ndim = x.ndim
    if ndim < 2 or type(axis1) is not int or type(axis2) is not int or axis1 or axis2 != 1:
        require_ndim("diagonal", x, 2)
        axis1, axis2 = normalize_axis_index(axis1, ndim), normalize_axis_index(axis2, ndim)
    return apply_diagonal(x, {"offset": operator.index(offset), "axis1": axis1, "axis2": axis2})


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a read-only view of the diagonals of matrices; see `numpy.linalg.diagonal`."""
    return diagonal(array_operand("diagonal", x), offset, -2, -1)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the sum of a diagonal; see `numpy.trace`."""
    plain = type(a) is Tensor and a._trace is None and dtype is None and out is None
    if plain and (found := call_plain(np.ndarray.trace, a, offset, axis1, axis2)) is not None:
        return found
    x = require_ndim("trace", array_operand("trace", a), 2)
    if dtype is None and out is None:
        first, second = normalize_axis_index(axis1, x.ndim), normalize_axis_index(axis2, x.ndim)
        return apply_trace(x, {"offset": operator.index(offset), "axis1": first, "axis2": second})
    return with_out("trace", np.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype), out)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices; see `numpy.linalg.trace`."""
    return trace(array_operand("trace", x), offset, -2, -1, dtype)


def diagonal_matrix(x: Tensor, k: int) -> Any:
    """Return the square matrix with a diagonal."""
    length = x.shape[0] + abs(k)
    return apply(shapes.place_diagonal, x, shape=(length, length), offset=operator.index(k), axis1=0, axis2=1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """Return the diagonal of a matrix, or the matrix with a diagonal; see `numpy.diag`."""
    x = array_operand("diag", v)
    if x.ndim == 1:
        return diagonal_matrix(x, k)
    if x.ndim != 2:
        raise ShapeError("diag", f"an array of shape {x.shape}", "one axis or two are needed", "Use numpy.diagonal")
    return diagonal(x, k)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """Return the matrix whose diagonal holds all elements; see `numpy.diagflat`."""
    return diagonal_matrix(ravel(v), k)


def triangle_mask(x: Tensor, k: int) -> Any:
    """Return the mask of the elements up to diagonal k; a vector stands for each row of a square matrix."""
    return np.tri(x.shape[-2:][0], x.shape[-1], k, dtype=bool)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Tensor:
    """Return the lower triangle, with zeros above diagonal k; see `numpy.tril`."""
    x = require_ndim("tril", array_operand("tril", m), 1)
    if x.ndim > 1 and type(k) is int:
        return apply_triangle(x, {"k": k, "upper": False})
    return np.where(triangle_mask(x, k), x, np.zeros(1, x.dtype))  # type: ignore[return-value]  # of a Tensor it is one


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Tensor:
    """Return the upper triangle, with zeros below diagonal k; see `numpy.triu`."""
    x = require_ndim("triu", array_operand("triu", m), 1)
    if x.ndim > 1 and type(k) is int:
        return apply_triangle(x, {"k": k, "upper": True})
    return np.where(triangle_mask(x, k - 1), np.zeros(1, x.dtype), x)  # type: ignore[return-value]  # as above
