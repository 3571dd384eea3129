"""Shapes, windows of a shape, and parts of arrays, with NumPy's signatures; all that can be are views."""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.diagnostics.argument_checks import as_order, shown
from wengert.core.diagnostics.conversion_hints import is_driver_asking
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.buffers import forbid_writes
from wengert.core.memory.memory_layout import axes_of_iteration, is_scalar
from wengert.core.memory.possible_aliases import part_of
from wengert.core.memory.views import ALIAS, base_and_path, undecided_text, window_on
from wengert.core.values.dispatch import applied, apply, as_tensor, implements, strengthen
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, innermost_trace, is_staged, raw
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.numpy._namespace import enter_as
from wengert.numpy._reductions import whole_axis
from wengert.numpy._results import copy, layout_examples
from wengert.primitives import shapes
from wengert.traces.eager import eager
from wengert.traces.nodes import NOTHING, record_result
from wengert.traces.operands import operand


def array_operand(name: str, value: Any) -> Any:
    """Return an operand as a Tensor; nested lists may hold Tensors among numbers."""
    return value if type(value) is Tensor else as_tensor(operand(name, value))


def buffer_examples(x: Tensor) -> list[Any]:
    """Return the array in memory under a Tensor (under one lane of it, in a batch), for its strides.

    What is being traced has no memory yet: an example stands for it, or several where traced values decide how it lies.
    """
    memories = layout_examples(x)
    if len(memories) > 1 or is_staged(x):
        return memories
    buffer = raw(x)
    extra = buffer.ndim - x.ndim
    if extra and buffer.size:
        return [buffer[(0,) * extra]]
    return [np.empty(x.shape) if extra else buffer]


def add_axes(x: Any, like: Any) -> Any:
    """Return an array with axes of length 1 behind it, as many as another has more."""
    more = like.ndim - x.ndim
    return x.reshape((*x.shape, *(1,) * more)) if more else x


def require_ndim(name: str, x: Tensor, ndim: int) -> Any:
    """Return a Tensor that has as many axes as a function needs."""
    if x.ndim < ndim:
        raise ShapeError(name, f"an array of shape {x.shape}", f"at least {ndim} axes are needed", "Reshape it first")
    return x


def slice_axis(x: Tensor, axis: int, start: int | None, stop: int | None, step: int | None = None) -> Tensor:
    """Return a slice along one axis, counted from 0."""
    return x[(slice(None),) * axis + (slice(start, stop, step),)]


def flatten(x: Tensor) -> Any:
    """Return the elements along one axis."""
    return x if x.ndim == 1 else x.reshape(-1)


def flat_or_axis(x: Any, axis: Any) -> tuple[Any, int]:
    """Return an array and the axis to work along, counted from 0; None means the elements along one."""
    return (flatten(x), 0) if axis is None else (x, normalize_axis_index(whole_axis(axis), x.ndim))


def row_and_axis(a: Any, axis: Any) -> tuple[Any, int]:
    """Return a Tensor with at least one axis, and the axis to work along."""
    x = as_tensor(a)
    return flat_or_axis(x if x.ndim else x.reshape(1), axis)


# Other shapes

to_shape = eager(shapes.reshape)
apply_broadcast_to = eager(shapes.broadcast_to)


def reshape_in_c_order(x: Tensor, shape: Any, lengths: tuple[int, ...] | None = None) -> Tensor:
    """Return the elements in another shape, in C order.

    For an ndarray under a plain Tensor, or one of a live tape, NumPy works out what -1 stands for. `lengths` are the
    shape where nothing is left to be worked out.
    """
    value, trace = x._value, x._trace
    if type(value) is np.ndarray and (trace is None or trace.fast):
        try:
            out = value.reshape(shape)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            params = {"shape": out.shape, "order": "C"}
            if out.base is value and not WATCHES and (trace is None or not SPECIAL):  # as most are
                found: Any = out
                if trace is not None:
                    found = record_result(out, trace, shapes.reshape, (x._node,), params, NOTHING[1], False, 3)
                return window_on(x, (), shapes.reshape, params, found)
            return to_shape(x, params, out)
    return to_shape(x, {"shape": complete_shape(as_shape(shape), x) if lengths is None else lengths, "order": "C"})


def as_shape(shape: Any) -> tuple[int, ...]:
    """Return a length or a sequence of lengths as a tuple; NumPy does not take truth values for one."""
    if type(shape) is int:
        return (shape,)
    given = shape if isinstance(shape, tuple | list) else (shape,)
    if bool in map(type, given):
        raise DtypeError(
            "shape", f"{given} as a shape", "whole numbers are needed", "Convert True and False with int()"
        )
    return as_whole_numbers(shape)


def as_whole_numbers(given: Any) -> tuple[int, ...]:
    """Return a whole number or a sequence of such as a tuple."""
    if type(given) is not tuple:
        try:
            return (operator.index(given),)
        except TypeError:
            pass
    try:
        return tuple(map(operator.index, given))
    except TypeError:
        what = f"{shown(given)} as a shape or shift"
        raise DtypeError("shape", what, "whole numbers are needed", "Pass an int or a tuple") from None


def complete_shape(lengths: tuple[int, ...], x: Tensor) -> tuple[int, ...]:
    """Return a shape for the elements of a Tensor with the length that `-1` stands for where there is one."""
    if lengths == (-1,):
        return (x.size,)
    if lengths.count(-1) == 1:
        size, others, place = x.size, -math.prod(lengths), lengths.index(-1)
        if others > 0 and size % others == 0:
            return (*lengths[:place], size // others, *lengths[place + 1 :])
    return lengths


def resolve_order(name: str, x: Tensor, order: str | None) -> Any:
    """Return the order in which elements are read, "C" or "F"; "A" depends on how they lie in memory."""
    chosen = as_order(order, "C")
    if chosen == "A":
        return known_of_layout(name, x, lambda memory: "F" if memory.flags.fnc else "C")
    return chosen


def known_of_layout(name: str, x: Tensor, answer: Callable[[Any], Any]) -> Any:
    """Return the answer to a question about memory layout; a GraphError where traced values decide between several."""
    found = set(map(answer, buffer_examples(x)))
    if len(found) > 1:
        given = "the elements in the order in which they lie in memory, which traced values decide"
        needed = "it must be known which order that is"
        action = "Read them in order='C' or 'F', or copy the array so before"
        raise GraphError(name, given, needed, action, place=position_of(*caller()))
    return found.pop()


@implements(np.reshape)
def reshape(a: Any, /, shape: Any, order: Any = "C", *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape; see `numpy.reshape`."""
    x = a if type(a) is Tensor else array_operand("reshape", a)
    if order == "C" and copy is None:
        return reshape_in_c_order(x, shape)
    lengths, chosen = complete_shape(as_shape(shape), x), resolve_order("reshape", x, order)
    if copy is False:
        for memory in buffer_examples(x):
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
        return reshape_in_c_order(x, -1, (x.size,))
    if order in ("K", "k"):
        x = x.transpose(known_of_layout("ravel", x, lambda memory: tuple(axes_of_iteration(memory))))
        order = "C"
    chosen = resolve_order("ravel", x, order)
    result = applied(shapes.reshape, x, shape=(x.size,), order=chosen)
    base, path = base_and_path(result)
    flags = [memory.flags for memory in buffer_examples(x)] if path else []
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
        return reshape_in_c_order(x, lengths, lengths)
    count = len(axis) if isinstance(axis, tuple | list) else 1
    new = normalize_axis_tuple(axis, x.ndim + count)
    if len(new) != count:
        raise DtypeError("expand_dims", f"{shown(axis)} for axis", "an int or a tuple is needed", "Pass it")
    kept = iter(shape)
    return to_shape(x, {"shape": tuple([1 if i in new else next(kept) for i in range(x.ndim + count)]), "order": "C"})


@implements(np.squeeze)
def squeeze(a: Any, axis: Any = None) -> Tensor:
    """Return a view without axes of length one; see `numpy.squeeze`."""
    x = a if type(a) is Tensor else array_operand("squeeze", a)
    if axis is None and x._trace is None and type(x._value) is np.ndarray and not WATCHES:
        out = x._value.squeeze()
        return window_on(x, (), shapes.reshape, {"shape": out.shape, "order": "C"}, out)
    shape = x.shape
    if axis is not None:
        axis = tuple(map(whole_axis, axis)) if isinstance(axis, tuple) else whole_axis(axis)
    if axis is None or x.ndim == 0:
        if axis is not None:
            normalize_axis_tuple(axis, 1)  # NumPy lets a scalar have an axis 0 here
        return to_shape(x, {"shape": tuple([n for n in shape if n != 1]), "order": "C"})
    dropped = normalize_axis_tuple(axis, x.ndim)
    for i in dropped:
        if shape[i] != 1:
            given = f"axis {i} of length {shape[i]}"
            raise ShapeError("squeeze", given, "an axis of length one is needed", "Choose another axis")
    return to_shape(x, {"shape": tuple([n for i, n in enumerate(shape) if i not in dropped]), "order": "C"})


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """Return a read-only view with another shape; see `numpy.broadcast_to`."""
    x = array if type(array) is Tensor else array_operand("broadcast_to", array)
    value = x._value
    in_memory = value.size if type(value) is np.ndarray else type(value) is np.float64 and hasattr(x, "_array")
    if in_memory and x._trace is None and type(shape) is tuple and not WATCHES:
        try:
            window = shapes.BROADCAST(value, shape)
        except (TypeError, ValueError):  # of which more is said below
            pass
        else:
            return window_on(x, (), shapes.broadcast_to, {"shape": window.shape}, window)
    lengths = as_shape(shape)
    try:
        result = apply_broadcast_to(x, {"shape": lengths})
    except ValueError as error:
        given = f"a shape {x.shape} to be broadcast to {lengths}"
        needed = "a shape with equal lengths from the right, or 1, is needed"
        raise ShapeError("broadcast_to", given, needed, "Reshape the array") from error
    if result._trace is not ALIAS or is_scalar(x):  # which has no memory: no view, but read-only all the same
        forbid_writes(base_and_path(result)[0])
    return result


@implements(np.broadcast_arrays)
def broadcast_arrays(*args: Any, subok: bool = False) -> Any:
    """Return all arrays broadcast to their common shape; see `numpy.broadcast_arrays`."""
    xs = tuple(strengthen(array_operand("broadcast_arrays", a)) for a in args)
    shape = np.broadcast_shapes(*(x.shape for x in xs))
    if all(x.shape == shape for x in xs):
        return xs
    return tuple(broadcast_to(x, shape) for x in xs)


def add_axes_up_to(name: str, arrays: Sequence[Any], ndim: int) -> Any:
    """Return arrays with axes of length one put around theirs up to `ndim`; one alone not as a tuple."""
    traced = [x for x in arrays if type(x) is Tensor and x._trace is not None and innermost_trace(x) is not None]
    for x in traced:
        x._refuse_c_code()
    if not traced and is_driver_asking(sys._getframe(2)):
        return getattr(np, name)(*[np.array(x) for x in arrays])
    results = []
    for array in arrays:
        x = array_operand(name, array)
        missing = ndim - x.ndim
        before = 1 if ndim == 3 and x.ndim == 1 else 0 if ndim == 3 and x.ndim == 2 else missing
        shape = (1,) * before + x.shape + (1,) * (missing - before)
        results.append(reshape(x, shape) if missing > 0 else x)
    return results[0] if len(results) == 1 else tuple(results)


def enter_up_to(numpys: Callable[..., Any], ndim: int, axes: str) -> None:
    """Enter a function that gives arrays as many axes at least."""

    @enter_as(numpys, f"Return arrays with at least {axes}")
    def add_axes_to(*arys: Any) -> Any:
        return add_axes_up_to(numpys.__name__, arys, ndim)


enter_up_to(np.atleast_1d, 1, "one axis")
enter_up_to(np.atleast_2d, 2, "two axes")
enter_up_to(np.atleast_3d, 3, "three axes")


# Windows


@implements(np.lib.stride_tricks.sliding_window_view)
def sliding_window_view(
    x: Any, window_shape: Any, axis: Any = None, *, subok: bool = False, writeable: bool = False
) -> Any:
    """Return a read-only view of all windows of a shape; see `numpy.lib.stride_tricks.sliding_window_view`."""
    if writeable:
        needed = "a read-only view is needed, because its elements overlap"
        raise UsageError("sliding_window_view", "writeable=True for a Tensor", needed, "Write into the array itself")
    array = array_operand("sliding_window_view", x)
    window = as_whole_numbers(window_shape)
    axes = tuple(range(array.ndim)) if axis is None else normalize_axis_tuple(axis, array.ndim, allow_duplicate=True)
    return apply(shapes.sliding_windows, array, window=window, axis=axes)


def division_points(sections: int, length: int) -> list[int]:
    """Return where to cut a length into nearly equal sections, the longer ones first."""
    if sections <= 0:
        raise UsageError("array_split", f"{sections} sections", "at least one is needed", "Pass a positive number")
    short, longer = divmod(length, sections)
    return [i * short + min(i, longer) for i in range(sections + 1)]


@implements(np.array_split)
def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return views of the parts of an array, of nearly equal lengths; see `numpy.array_split`."""
    x = array_operand("array_split", ary)
    along = normalize_axis_index(axis, x.ndim)
    length = x.shape[along]
    if type(indices_or_sections) is int:
        points = division_points(indices_or_sections, length)
    else:
        try:
            points = [0, *map(operator.index, indices_or_sections), length]
        except TypeError:
            if not isinstance(indices_or_sections, float | np.generic | np.ndarray | Tensor):
                given, needed = f"{shown(indices_or_sections)} as sections", "a number, or a list of indices, is needed"
                raise UsageError("array_split", given, needed, "Pass a whole number") from None
            points = division_points(int(indices_or_sections), length)
    return [slice_axis(x, along, start, end) for start, end in pairwise(points)]


@implements(np.split)
def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """Return views of the parts of an array, of equal lengths or between indices; see `numpy.split`."""
    x = array_operand("split", ary)
    if type(indices_or_sections) is int or np.ndim(indices_or_sections) == 0:
        length = x.shape[normalize_axis_index(axis, x.ndim)]
        if length % indices_or_sections:  # 2.5 goes into 4 no more than 3 does
            given = f"{indices_or_sections} sections for an axis of length {length}"
            needed = "a divisor of the length is needed"
            raise ShapeError("split", given, needed, "Use array_split for parts of different lengths")
    return array_split(x, indices_or_sections, axis)


@implements(np.hsplit)
def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the second axis, or the only one; see `numpy.hsplit`."""
    x = require_ndim("hsplit", array_operand("hsplit", ary), 1)
    return split(x, indices_or_sections, 1 if x.ndim > 1 else 0)


@implements(np.vsplit)
def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the first axis of at least two; see `numpy.vsplit`."""
    return split(require_ndim("vsplit", array_operand("vsplit", ary), 2), indices_or_sections, 0)


@implements(np.dsplit)
def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """Return views of the parts along the third axis; see `numpy.dsplit`."""
    return split(require_ndim("dsplit", array_operand("dsplit", ary), 3), indices_or_sections, 2)


@implements(np.unstack)
def unstack(x: Any, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Return views of the layers along an axis; see `numpy.unstack`."""
    array = require_ndim("unstack", array_operand("unstack", x), 1)
    along = normalize_axis_index(axis, array.ndim)
    before = (slice(None),) * along
    return tuple(array[(*before, i)] for i in range(array.shape[along]))
