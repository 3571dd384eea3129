"""Shapes, axes, diagonals and triangles with NumPy's signatures."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert._refusals import refusal
from wengert.core.dispatch import applied, apply, as_tensor, implements, strengthened
from wengert.core.memory import forbid_writes
from wengert.core.order import axes_of_iteration, is_scalar
from wengert.core.plain import computed
from wengert.core.recording import SPECIAL
from wengert.core.requirements import as_order, shown
from wengert.core.sharing import part_of
from wengert.core.source import caller, position_of
from wengert.core.tensor import Tensor, constant_tensor, is_staged, raw
from wengert.core.views import ALIAS, base_and_path, is_window, undecided_text, window_on
from wengert.core.watch import WATCHES
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError, describe
from wengert.numpy._order import copy, layouts_of
from wengert.numpy._out import with_out
from wengert.primitives import shapes
from wengert.traces.operators import operand
from wengert.traces.recorders import recorded_view, single_function

__all__ = ["array_operand", "as_shape", "diagonal", "ravel", "require_ndim", "squeeze"]


def array_operand(name: str, value: Any) -> Any:
    """Return an operand as a Tensor; nested lists may hold Tensors among numbers."""
    return value if type(value) is Tensor else as_tensor(operand(name, value))


def buffers_of(x: Tensor) -> list[Any]:
    """Return the array in memory under a Tensor (under one lane of it, in a batch), for its strides.

    What is being traced has no memory yet: an example stands for it, or several where traced values decide how it lies.
    """
    memories = layouts_of(x)
    if len(memories) > 1 or is_staged(x):
        return memories
    buffer = raw(x)
    extra = buffer.ndim - x.ndim
    if extra and buffer.size:
        return [buffer[(0,) * extra]]
    return [np.empty(x.shape) if extra else buffer]


# Other shapes

reshaped = single_function(shapes.reshape)
broadcast = single_function(shapes.broadcast_to)


def in_shape(x: Tensor, shape: Any, lengths: tuple[int, ...] | None = None) -> Tensor:
    """Return the elements in another shape, in C order.

    For an ndarray under a plain Tensor, or one of a live tape, NumPy works out what -1 stands for.

    Args:
        x: the Tensor.
        shape: the shape, in any form.
        lengths: the same where it is known, and nothing is left to be worked out.
    """
    value, trace = x._value, x._trace
    if type(value) is np.ndarray and (trace is None or (trace.fast and not SPECIAL)) and not WATCHES:
        try:
            out = value.reshape(shape)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            params = {"shape": out.shape, "order": "C"}
            if trace is not None:
                return recorded_view(x, shapes.reshape, params, out)
            if out.base is value or is_window(out, value):
                return window_on(x, (), shapes.reshape, params, out)
            return constant_tensor(out)
    return reshaped(x, {"shape": completed(as_shape(shape), x) if lengths is None else lengths, "order": "C"})


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return a length or a sequence of lengths as a tuple."""
    if type(shape) is int:
        return (shape,)
    if type(shape) is not tuple:
        try:
            return (operator.index(shape),)
        except TypeError:
            pass
    try:
        return tuple(map(operator.index, shape))
    except TypeError:
        given = f"{shown(shape)} as a shape or shift"
        raise DtypeError(describe("shape", given, "whole numbers are needed", "Pass an int or a tuple")) from None


def completed(lengths: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    """Return a shape for the elements of a Tensor with the length that `-1` stands for where there is one."""
    if lengths == (-1,):
        return (x.size,)
    if lengths.count(-1) == 1:
        size, others, place = x.size, -math.prod(lengths), lengths.index(-1)
        if others > 0 and size % others == 0:
            return (*lengths[:place], size // others, *lengths[place + 1 :])
    return lengths


def resolved_order(name: str, x: Tensor, order: str | None) -> Any:
    """Return the order in which elements are read, "C" or "F"; "A" depends on how they lie in memory."""
    chosen = as_order(order, "C")
    if chosen == "A":
        return known_layout(name, x, lambda memory: "F" if memory.flags.fnc else "C")
    return chosen


def known_layout(name: str, x: Tensor, answer: Callable[[Any], Any]) -> Any:
    """Return what is to be known of how a Tensor lies in memory.

    Raises:
        GraphError: it lies in one of several ways, as a traced value decides, and the answers differ.
    """
    found = set(map(answer, buffers_of(x)))
    if len(found) > 1:
        raise GraphError(
            describe(
                name,
                "the elements in the order in which they lie in memory, which traced values decide",
                "it must be known which order that is",
                "Read them in order='C' or 'F', or copy the array so before",
            )
            + f"\n  {position_of(*caller())}"
        )
    return found.pop()


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape; see `numpy.reshape`."""
    x = a if type(a) is Tensor else array_operand("reshape", a)
    if order == "C" and copy is None:
        return in_shape(x, shape)
    lengths, chosen = completed(as_shape(shape), x), resolved_order("reshape", x, order)
    if copy is False:
        for memory in buffers_of(x):
            np.reshape(memory, lengths, order=chosen, copy=False)
    return applied(shapes.reshape, np.copy(x) if copy else x, shape=lengths, order=chosen)


@implements(np.ravel)
def ravel(a: Any, order: Any = "C") -> Tensor:
    """Return the elements along one axis, as a view if they are contiguous; see `numpy.ravel`."""
    x = a if type(a) is Tensor else array_operand("ravel", a)
    value = x._value
    if order == "C" and type(value) is np.ndarray and value.flags.c_contiguous:
        if x._trace is None and not WATCHES:
            return window_on(x, (), shapes.reshape, {"shape": (value.size,), "order": "C"}, value.ravel())
        return in_shape(x, -1, (x.size,))
    if order in ("K", "k"):
        x = transpose(x, known_layout("ravel", x, lambda memory: tuple(axes_of_iteration(memory))))
        order = "C"
    chosen = resolved_order("ravel", x, order)
    result = applied(shapes.reshape, x, shape=(x.size,), order=chosen)
    base, path = base_and_path(result)
    flags = [memory.flags for memory in buffers_of(x)] if path else []
    contiguous = [one.f_contiguous if chosen == "F" else one.c_contiguous for one in flags]
    if all(contiguous):
        return result
    copied = copy(result)
    if any(contiguous):
        part_of(base, copied, None, undecided_text("ravel"))
    return copied


@implements(np.expand_dims)
def expand_dims(a: Any, axis: Any) -> Tensor:
    """Return a view with new axes of length one; see `numpy.expand_dims`."""
    x = a if type(a) is Tensor else array_operand("expand_dims", a)
    shape = x.shape
    if type(axis) is int:
        place = normalize_axis_index(axis, len(shape) + 1)
        lengths = (*shape[:place], 1, *shape[place:])
        return in_shape(x, lengths, lengths)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    new = normalize_axis_tuple(axis, x.ndim + count)
    if len(new) != count:
        raise DtypeError(describe("expand_dims", f"{shown(axis)} for axis", "an int or a tuple is needed", "Pass it"))
    kept = iter(shape)
    return reshaped(x, {"shape": tuple([1 if i in new else next(kept) for i in range(x.ndim + count)]), "order": "C"})


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Return a view without axes of length one; see `numpy.squeeze`."""
    x = a if type(a) is Tensor else array_operand("squeeze", a)
    if axis is None and x._trace is None and type(x._value) is np.ndarray and not WATCHES:
        out = x._value.squeeze()
        return window_on(x, (), shapes.reshape, {"shape": out.shape, "order": "C"}, out)
    shape = x.shape
    if axis is None or x.ndim == 0:
        if axis is not None:
            normalize_axis_tuple(axis, 1)  # NumPy lets a scalar have an axis 0 here
        return reshaped(x, {"shape": tuple([n for n in shape if n != 1]), "order": "C"})
    dropped = normalize_axis_tuple(axis, x.ndim)
    for i in dropped:
        if shape[i] != 1:
            raise ShapeError(
                describe(
                    "squeeze",
                    f"axis {i} of length {shape[i]}",
                    "an axis of length one is needed",
                    "Choose another axis",
                )
            )
    return reshaped(x, {"shape": tuple([n for i, n in enumerate(shape) if i not in dropped]), "order": "C"})


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """Return a read-only view with another shape; see `numpy.broadcast_to`."""
    x = array if type(array) is Tensor else array_operand("broadcast_to", array)
    value = x._value
    if x._trace is None and type(value) is np.ndarray and value.size and type(shape) is tuple and not WATCHES:
        try:
            window = shapes.BROADCAST(value, shape)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            return window_on(x, (), shapes.broadcast_to, {"shape": window.shape}, window)
    lengths = as_shape(shape)
    try:
        result = broadcast(x, {"shape": lengths})
    except ValueError as error:
        raise ShapeError(
            describe(
                "broadcast_to",
                f"a shape {x.shape} to be broadcast to {lengths}",
                "a shape with equal lengths from the right, or 1, is needed",
                "Reshape the array",
            )
        ) from error
    if result._trace is not ALIAS or is_scalar(x):  # which has no memory: no view, but read-only all the same
        forbid_writes(base_and_path(result)[0])
    return result


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Return all arrays broadcast to their common shape; see `numpy.broadcast_arrays`."""
    xs = tuple(strengthened(array_operand("broadcast_arrays", a)) for a in args)
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    if all(x.shape == shape for x in xs):
        return xs
    return tuple(broadcast_to(x, shape) for x in xs)


def at_least(name: str, arrays: Sequence[Any], ndim: int) -> Any:
    """Return arrays with axes of length one put around theirs up to `ndim`; one alone not as a tuple."""
    results = []
    for array in arrays:
        x = array_operand(name, array)
        missing = ndim - x.ndim
        before = 1 if ndim == 3 and x.ndim == 1 else 0 if ndim == 3 and x.ndim == 2 else missing
        shape = (1,) * before + x.shape + (1,) * (missing - before)
        results.append(reshape(x, shape) if missing > 0 else x)
    return results[0] if len(results) == 1 else tuple(results)


@implements(np.atleast_1d)
def atleast_1d(*arys: Any) -> Any:
    """Return arrays with at least one axis; see `numpy.atleast_1d`."""
    return at_least("atleast_1d", arys, 1)


@implements(np.atleast_2d)
def atleast_2d(*arys: Any) -> Any:
    """Return arrays with at least two axes; see `numpy.atleast_2d`."""
    return at_least("atleast_2d", arys, 2)


@implements(np.atleast_3d)
def atleast_3d(*arys: Any) -> Any:
    """Return arrays with at least three axes; see `numpy.atleast_3d`."""
    return at_least("atleast_3d", arys, 3)


# Other orders of the axes

permuted = single_function(shapes.transpose)
REVERSED = tuple({"axes": tuple(range(ndim))[::-1]} for ndim in range(65))


@functools.lru_cache(maxsize=256, typed=True)
def permutation(axes: tuple[Any, ...]) -> dict[str, Any]:
    """Return the parameters of a permutation of axes that NumPy has accepted.

    Raises:
        TypeError: an axis is a Tensor, say, which may be another number later.
    """
    if not all(isinstance(axis, int | np.integer) for axis in axes):
        raise TypeError(axes)
    return {"axes": tuple([int(axis) % len(axes) for axis in axes])}


def reverse(x: Tensor) -> Tensor:
    """Return a view with all axes reversed, as the attribute `T`."""
    value = x._value
    if x._trace is None and type(value) is np.ndarray and not WATCHES:
        return window_on(x, (), shapes.transpose, REVERSED[value.ndim], value.T)
    return permuted(x, REVERSED[x.ndim])


@implements(np.transpose)
def transpose(a: Any, axes: Any = None) -> Tensor:
    """Return a view with permuted axes, reversed by default; see `numpy.transpose`."""
    x = a if type(a) is Tensor else array_operand("transpose", a)
    if axes is None:
        return reverse(x)
    value = x._value
    if x._trace is None and type(value) is np.ndarray and type(axes) is tuple and not WATCHES:
        try:
            out, params = value.transpose(axes), permutation(axes)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            return window_on(x, (), shapes.transpose, params, out)
    ndim = x.ndim
    order = normalize_axis_tuple(axes, ndim)
    if len(order) != ndim:
        raise ShapeError(
            describe(
                "transpose",
                f"{len(order)} axes for a shape {x.shape}",
                f"all {ndim} are needed",
                "Name every axis once",
            )
        )
    return permuted(x, {"axes": order})


@implements(np.matrix_transpose, np.linalg.matrix_transpose)
def matrix_transpose(x: Any, /) -> Any:
    """Return a view with the last two axes exchanged; see `numpy.matrix_transpose`."""
    matrices = array_operand("matrix_transpose", x)
    if matrices.ndim < 2:
        raise ShapeError(
            describe(
                "matrix_transpose",
                f"an array of shape {matrices.shape}",
                "at least two axes are needed",
                "Reshape it to a matrix",
            )
        )
    return swapaxes(matrices, -1, -2)


@implements(np.swapaxes)
def swapaxes(a: Any, axis1: Any, axis2: Any) -> Tensor:
    """Return a view with two axes exchanged; see `numpy.swapaxes`."""
    x = a if type(a) is Tensor else array_operand("swapaxes", a)
    value = x._value
    plain = x._trace is None and type(value) is np.ndarray and not WATCHES
    ndim = value.ndim if plain else x.ndim
    first, second = normalize_axis_index(axis1, ndim), normalize_axis_index(axis2, ndim)
    order = list(range(ndim))
    order[first], order[second] = second, first
    params = {"axes": tuple(order)}
    return window_on(x, (), shapes.transpose, params, value.swapaxes(first, second)) if plain else permuted(x, params)


@implements(np.moveaxis)
def moveaxis(a: Any, source: Any, destination: Any) -> Tensor:
    """Return a view with some axes at other places; see `numpy.moveaxis`."""
    x = a if type(a) is Tensor else array_operand("moveaxis", a)
    if type(source) is int and type(destination) is int:
        order = list(range(x.ndim))
        order.insert(normalize_axis_index(destination, x.ndim), order.pop(normalize_axis_index(source, x.ndim)))
        return permuted(x, {"axes": tuple(order)})
    sources = normalize_axis_tuple(source, x.ndim, "source")
    places = normalize_axis_tuple(destination, x.ndim, "destination")
    if len(sources) != len(places):
        raise ShapeError(
            describe(
                "moveaxis", f"{len(sources)} sources and {len(places)} destinations", "as many are needed", "Pair them"
            )
        )
    order = [i for i in range(x.ndim) if i not in sources]
    for place, moved in sorted(zip(places, sources, strict=True)):
        order.insert(place, moved)
    return permuted(x, {"axes": tuple(order)})


@implements(np.rollaxis)
def rollaxis(a: Any, axis: Any, start: Any = 0) -> Any:
    """Return a view with an axis moved before another; see `numpy.rollaxis`."""
    x = array_operand("rollaxis", a)
    moved = normalize_axis_index(axis, x.ndim)
    end = operator.index(start) + (x.ndim if start < 0 else 0)
    if not 0 <= end <= x.ndim:
        raise ShapeError(
            describe(
                "rollaxis",
                f"start={start} for an array of {x.ndim} axes",
                f"a place from {-x.ndim} to {x.ndim} is needed",
                "Use numpy.moveaxis",
            )
        )
    return moveaxis(x, moved, end - 1 if moved < end else end)


# Mirrored and turned

flipped = single_function(shapes.flip)


@implements(np.flip)
def flip(m: Any, axis: Any = None) -> Tensor:
    """Return a view with the elements along axes in reverse order; see `numpy.flip`."""
    x = array_operand("flip", m)
    if type(axis) is int:
        return flipped(x, {"axis": (normalize_axis_index(axis, x.ndim),)})
    reversed_axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    return flipped(x, {"axis": reversed_axes})


def require_ndim(name: str, x: Tensor, ndim: int) -> Any:
    """Return a Tensor that has as many axes as a function needs."""
    if x.ndim < ndim:
        raise ShapeError(
            describe(name, f"an array of shape {x.shape}", f"at least {ndim} axes are needed", "Reshape it first")
        )
    return x


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
        raise ShapeError(describe("rot90", f"axes {axes}", "two axes are needed", "Name the plane of the turn"))
    first, second = plane
    turns = k % 4
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    if turns == 3:
        return flip(swapaxes(x, first, second), second)
    return flip(x, plane if turns == 2 else ())


# Diagonals and triangles

compact_diagonal = single_function(shapes.diagonal)
compact_trace = single_function(shapes.trace)
compact_triangle = single_function(shapes.triangle)


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a read-only view of a diagonal; see `numpy.diagonal`."""
    x = a if type(a) is Tensor else array_operand("diagonal", a)
    ndim = x.ndim
    if ndim < 2 or type(axis1) is not int or type(axis2) is not int or axis1 or axis2 != 1:
        require_ndim("diagonal", x, 2)
        axis1, axis2 = normalize_axis_index(axis1, ndim), normalize_axis_index(axis2, ndim)
    return compact_diagonal(x, {"offset": operator.index(offset), "axis1": axis1, "axis2": axis2})


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a read-only view of the diagonals of matrices; see `numpy.linalg.diagonal`."""
    return diagonal(array_operand("diagonal", x), offset, -2, -1)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the sum of a diagonal; see `numpy.trace`."""
    plain = type(a) is Tensor and a._trace is None and dtype is None and out is None
    if plain and (found := computed(np.ndarray.trace, a, offset, axis1, axis2)) is not None:
        return found
    x = require_ndim("trace", array_operand("trace", a), 2)
    if dtype is None and out is None:
        first, second = normalize_axis_index(axis1, x.ndim), normalize_axis_index(axis2, x.ndim)
        return compact_trace(x, {"offset": operator.index(offset), "axis1": first, "axis2": second})
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
        raise ShapeError(
            describe("diag", f"an array of shape {x.shape}", "one axis or two are needed", "Use numpy.diagonal")
        )
    return diagonal(x, k)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """Return the matrix whose diagonal holds all elements; see `numpy.diagflat`."""
    return diagonal_matrix(ravel(v), k)


def triangle(x: Tensor, k: int) -> Any:
    """Return the mask of the elements up to diagonal k; a vector stands for each row of a square matrix."""
    return np.tri(x.shape[-2:][0], x.shape[-1], k, dtype=bool)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Tensor:
    """Return the lower triangle, with zeros above diagonal k; see `numpy.tril`."""
    x = require_ndim("tril", array_operand("tril", m), 1)
    if x.ndim > 1 and type(k) is int:
        return compact_triangle(x, {"k": k, "upper": False})
    return np.where(triangle(x, k), x, np.zeros(1, x.dtype))  # type: ignore[return-value]  # of a Tensor it is one


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Tensor:
    """Return the upper triangle, with zeros below diagonal k; see `numpy.triu`."""
    x = require_ndim("triu", array_operand("triu", m), 1)
    if x.ndim > 1 and type(k) is int:
        return compact_triangle(x, {"k": k, "upper": True})
    return np.where(triangle(x, k - 1), np.zeros(1, x.dtype), x)  # type: ignore[return-value]  # as above


# Windows


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Return a read-only view of all windows of a shape; see `numpy.lib.stride_tricks.sliding_window_view`."""
    if writeable:
        raise refusal(
            UsageError(
                describe(
                    "sliding_window_view",
                    "writeable=True for a Tensor",
                    "a read-only view is needed, because its elements overlap",
                    "Write into the array itself",
                )
            )
        )
    array = array_operand("sliding_window_view", x)
    window = as_shape(window_shape)
    axes = tuple(range(array.ndim)) if axis is None else normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
    return apply(shapes.sliding_windows, array, window=window, axis=axes)
