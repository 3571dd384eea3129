"""Joining, repeating, inserting and deleting with NumPy's signatures."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.memory.left_rows import RowRun, rows_of_run, runs_of
from wengert.core.memory.memory_layout import strides_of
from wengert.core.values.dispatch import as_tensor, implements, with_dtype
from wengert.core.values.interop import without_dispatch
from wengert.core.values.plain_functions import call_plain, join_plain
from wengert.core.values.tensor import Tensor, concrete, constant_tensor, is_concrete
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy._reductions import whole_axis
from wengert.numpy._results import lay_in_order, lay_like, with_out
from wengert.numpy._shapes import array_operand, as_shape, as_whole_numbers, flat_or_axis, ravel, slice_axis
from wengert.primitives import shapes
from wengert.traces.eager import SEVERAL, eager
from wengert.traces.operands import operand

# Joining

CONCATENATE, TILE, VSTACK = without_dispatch(np.concatenate), without_dispatch(np.tile), without_dispatch(np.vstack)
apply_concatenate = eager(shapes.concatenate, SEVERAL)
apply_stack = eager(shapes.stack, SEVERAL)


def as_tensors(name: str, arrays: Iterable[Any]) -> list[Any]:
    """Return the arrays of a sequence (or the parts of one array along its first axis) as Tensors."""
    return [array if type(array) is Tensor else array_operand(name, array) for array in arrays]


@implements(np.concatenate)
def concatenate(
    arrays: Any, /, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind"
) -> Tensor:
    """Return arrays joined along an axis; see `numpy.concatenate`."""
    plain = out is None and dtype is None and casting == "same_kind"
    if plain and (found := join_plain(CONCATENATE, arrays, axis)) is not None:
        return found
    xs = [x if type(x) is Tensor else array_operand("concatenate", x) for x in arrays]
    if axis == 0 and (runs := runs_of(xs)) is not None:
        xs = [join_rows(rows_of_run(x)) if type(x) is RowRun else x for x in runs]
    if axis is None:
        xs, axis = [ravel(x) for x in xs], 0
    shapes = [x.shape for x in xs]
    along = normalize_axis_index(whole_axis(axis), len(shapes[0])) if shapes and shapes[0] else 0
    lengths = tuple([shape[along] if len(shape) > along else 1 for shape in shapes])
    result = apply_concatenate(xs, {"axis": along, "lengths": lengths, "dtype": dtype, "casting": casting})
    return result if out is None else with_out("concatenate", result, out)


def place_rows(item: Any, along: int) -> Any:
    """Return an item, or rows of an array (see `runs_of`), as a part of what is stacked along an axis."""
    if type(item) is not RowRun:
        return np.expand_dims(item, along)
    rows: Any = rows_of_run(item)
    return np.moveaxis(rows, 0, along)


def join_rows(rows: Tensor) -> Tensor:
    """Return the rows of an array one after the other along their first axis."""
    return rows if rows.ndim < 2 else rows.reshape((-1, *rows.shape[2:]))


@implements(np.stack)
def stack(arrays: Any, axis: Any = 0, out: Any = None, *, dtype: Any = None, casting: Any = "same_kind") -> Tensor:
    """Return arrays joined along a new axis; see `numpy.stack`."""
    plain = out is None and dtype is None and casting == "same_kind"
    if plain and (found := join_plain(evaluate_stack, arrays, axis)) is not None:
        return found
    xs = as_tensors("stack", arrays)
    shapes = {x.shape for x in xs}
    if len(shapes) != 1:
        given = f"arrays of shapes {', '.join(map(str, sorted(shapes)))}" if xs else "no arrays"
        raise ShapeError("stack", given, "at least one array, and equal shapes, are needed", "Broadcast them first")
    along = normalize_axis_index(axis, xs[0].ndim + 1)
    if (runs := runs_of(xs)) is not None:
        pieces = [place_rows(x, along) for x in runs]
        return concatenate(pieces, along, out, dtype=dtype, casting=casting)
    result = apply_stack(xs, {"axis": along, "dtype": dtype, "casting": casting})
    return result if out is None else with_out("stack", result, out)


def evaluate_stack(arrays: Sequence[Any], axis: Any) -> Any:
    """Evaluate `stack`, which compares the shapes as it joins."""
    along = 0 if type(axis) is int and not axis else normalize_axis_index(axis, arrays[0].ndim + 1)
    layer = (*(slice(None),) * along, None) if along else None
    return CONCATENATE([x[layer] for x in arrays], along)


def evaluate_hstack(arrays: Sequence[Any]) -> Any:
    """Evaluate `hstack` of arrays with axes."""
    return CONCATENATE(arrays, 0 if arrays[0].ndim == 1 else 1)


@implements(np.hstack)
def hstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tensor:
    """Return arrays joined along their second axis, or their only one; see `numpy.hstack`."""
    if dtype is None and casting == "same_kind" and (found := join_plain(evaluate_hstack, tup)) is not None:
        return found
    xs = as_tensors("hstack", tup)
    ranks = [x.ndim for x in xs]
    if 0 in ranks:
        xs = [x if ndim else np.atleast_1d(x) for x, ndim in zip(xs, ranks, strict=True)]
    return concatenate(xs, 0 if xs and ranks[0] < 2 else 1, dtype=dtype, casting=casting)


@implements(np.vstack)
def vstack(tup: Any, *, dtype: Any = None, casting: Any = "same_kind") -> Tensor:
    """Return arrays joined as rows; see `numpy.vstack`."""
    if dtype is None and casting == "same_kind" and (found := join_plain(VSTACK, tup)) is not None:
        return found
    xs = as_tensors("vstack", tup)
    if all(x.ndim == 1 for x in xs) and runs_of(xs) is not None:
        return stack(xs, 0, dtype=dtype, casting=casting)
    return concatenate([np.atleast_2d(x) for x in xs], 0, dtype=dtype, casting=casting)


@implements(np.dstack)
def dstack(tup: Any) -> Any:
    """Return arrays joined along their third axis; see `numpy.dstack`."""
    return concatenate([np.atleast_3d(x) for x in as_tensors("dstack", tup)], 2)


@implements(np.column_stack)
def column_stack(tup: Any) -> Any:
    """Return arrays joined as columns; see `numpy.column_stack`."""
    xs = as_tensors("column_stack", tup)
    return concatenate([x if x.ndim > 1 else np.reshape(x, (-1, 1)) for x in xs], 1)


@implements(np.append, by="arr values")
def append(arr: Any, values: Any, axis: Any = None) -> Any:
    """Return an array with values joined to its end; see `numpy.append`."""
    return concatenate((array_operand("append", arr), array_operand("append", values)), axis)


def nesting_depth(arrays: Any) -> int:
    """Return how deep the lists of blocks are nested, which must be the same everywhere."""
    if isinstance(arrays, tuple):
        raise TypeError(describe("block", "a tuple", "lists are needed to arrange blocks", "Write [...] in its place"))
    if not isinstance(arrays, list):
        return 0
    depths = {nesting_depth(item) for item in arrays}
    if len(depths) != 1:
        given = f"lists nested {sorted(depths)} deep" if depths else "an empty list"
        raise ShapeError("block", given, "lists of equal depth, not empty, are needed", "Complete the nested lists")
    return 1 + depths.pop()


def block_leaves(arrays: Any) -> list[Tensor]:
    """Return the arrays in nested lists."""
    if isinstance(arrays, list):
        return [leaf for item in arrays for leaf in block_leaves(item)]
    return [array_operand("block", arrays)]


@implements(np.block)
def block(arrays: Any) -> Any:
    """Return the array put together from nested lists of blocks; see `numpy.block`."""
    depth = nesting_depth(arrays)
    ndim = max(depth, *(leaf.ndim for leaf in block_leaves(arrays)))

    def join(item: Any, left: int) -> Any:
        if left:
            return concatenate([join(part, left - 1) for part in item], -left)
        x = array_operand("block", item)
        return np.reshape(x, (1,) * (ndim - x.ndim) + x.shape)

    result = join(arrays, depth)
    return result if depth else result.copy()


# Repeating

apply_tile = eager(shapes.tile)
apply_repeat = eager(shapes.repeat)
apply_roll = eager(shapes.roll)


@implements(np.tile)
def tile(A: Any, reps: Any) -> Tensor:  # noqa: N803 - NumPy's name
    """Return an array repeated along each axis; see `numpy.tile`."""
    plain = type(A) is Tensor and A._trace is None and type(reps) in (int, tuple)
    if plain and (found := call_plain(TILE, A, reps)) is not None:
        return found
    x = array_operand("tile", A)
    counts = as_whole_numbers(reps)
    ndim = max(x.ndim, len(counts))
    if x.ndim < ndim:
        x = x.reshape((1,) * (ndim - x.ndim) + x.shape)
    return apply_tile(x, {"reps": (1,) * (ndim - len(counts)) + counts})


@implements(np.repeat)
def repeat(a: Any, repeats: Any, axis: Any = None) -> Tensor:
    """Return an array with each element repeated; see `numpy.repeat`."""
    plain = type(a) is Tensor and a._trace is None and type(repeats) is int
    if plain and (found := call_plain(np.ndarray.repeat, a, repeats, axis)) is not None:
        return found
    x = array_operand("repeat", a)
    x = x if x.ndim else np.atleast_1d(x)
    x, along = flat_or_axis(x, axis)
    if type(repeats) is int:
        return apply_repeat(x, {"repeats": repeats, "axis": along})
    if isinstance(repeats, Tensor | np.ndarray):
        counts = np.asarray(repeats).astype(np.intp, casting="safe")
    else:  # NumPy cuts fractions off what is no array
        counts = np.asarray(repeats, np.intp)
    if counts.size == 1:
        return apply_repeat(x, {"repeats": operator.index(counts.ravel()[0]), "axis": along})
    return lay_in_order("repeat", pick(x, np.repeat(np.arange(x.shape[along]), counts), along), "C")


@implements(np.roll)
def roll(a: Any, shift: Any, axis: Any = None) -> Tensor:
    """Return an array with its elements moved around; see `numpy.roll`."""
    x = array_operand("roll", a)
    if is_unknown(shift) and (axis is None or type(axis) is int) and strides_of(x) in (None, ()):
        return roll_by_unknown(x, shift, axis)
    shifts = as_whole_numbers(int(shift) if isinstance(shift, np.bool_) else shift)
    if axis is None:
        row = ravel(x)
        flat = apply_roll(row, {"shift": (sum(shifts),), "axis": (0,)})
        return flat.reshape(x.shape)
    if type(axis) is int and len(shifts) == 1:
        return apply_roll(x, {"shift": shifts, "axis": (normalize_axis_index(axis, x.ndim),)})
    axes = normalize_axis_tuple(axis, x.ndim, allow_duplicate=True)
    pairs = np.broadcast(shifts, axes)
    moves = tuple((int(by), int(along)) for by, along in pairs)
    return apply_roll(x, {"shift": tuple(by for by, _ in moves), "axis": tuple(along for _, along in moves)})


def is_unknown(number: Any) -> bool:
    """Tell whether something is a number that nobody can look at: traced, or another one for each lane."""
    return type(number) is Tensor and number.ndim == 0 and not is_concrete(number)


def roll_by_unknown(x: Tensor, shift: Tensor, axis: int | None) -> Tensor:
    """Return an array in C order with its elements moved around by a number that nobody can look at."""
    if axis is None:
        return roll_by_unknown(ravel(x), shift, 0).reshape(x.shape)
    length = max(x.shape[normalize_axis_index(axis, x.ndim)], 1)
    by: Any = shift % np.uint64(length) if shift.dtype == np.uint64 else shift  # which int64 may have no room for
    places: Any = (np.arange(x.shape[axis]) - by.astype(np.intp)) % length
    return np.take(x, places, axis)  # type: ignore[no-any-return]  # NumPy's function of a Tensor gives a Tensor


@implements(np.resize)
def resize(a: Any, new_shape: Any) -> Any:
    """Return as many elements as a shape needs, repeated where there are too few; see `numpy.resize`."""
    x = np.ravel(array_operand("resize", a))
    lengths = as_shape(new_shape)
    if any(n < 0 for n in lengths):
        raise ShapeError("resize", f"a shape {lengths}", "lengths from 0 are needed", "Correct the shape")
    size = math.prod(lengths)
    if not size or not x.size:
        return constant_tensor(np.zeros(lengths, x.dtype))
    return np.reshape(tile(x, -(-size // x.size))[:size], lengths)


# Picking along an axis


def find_runs(indices: np.ndarray[Any, Any], most: int) -> list[tuple[int, int, int]] | None:
    """Return indices as runs (first, step, length), or None where there are more than `most`.

    >>> find_runs(np.array([2, 1, 0, 0, 0]), 16)
    [(2, -1, 3), (0, 0, 2)]
    """
    steps = np.diff(indices)
    found: list[tuple[int, int, int]] = []
    start, end = 0, len(indices)
    while start < end:
        if len(found) == most:
            return None
        step = int(steps[start]) if start + 1 < end else 1
        changes = np.flatnonzero(steps[start:] != step)
        length = 1 + (int(changes[0]) if changes.size else end - start - 1)
        found.append((int(indices[start]), step, length))
        start += length
    return found


def pick(x: Any, indices: np.ndarray[Any, Any], axis: int) -> Any:
    """Return elements along an axis by indices from 0, in new memory.

    Slices are joined where a few will do: their cotangents are added without going through every index.
    """
    found = find_runs(indices, 16)
    if found is None:
        return x[(*(slice(None),) * axis, indices)]
    if not found:
        return np.copy(slice_axis(x, axis, 0, 0))
    parts: list[Any] = []
    for first, step, length in found:
        if step:
            end = first + step * length
            parts.append(slice_axis(x, axis, first, end if end >= 0 else None, step))
        else:
            shape = (*x.shape[:axis], length, *x.shape[axis + 1 :])
            parts.append(np.broadcast_to(slice_axis(x, axis, first, first + 1), shape))
    return concatenate(parts, axis)


@implements(np.delete)
def delete(arr: Any, obj: Any, axis: Any = None) -> Any:
    """Return an array without some of its parts along an axis; see `numpy.delete`."""
    x, along = flat_or_axis(array_operand("delete", arr), axis)
    if is_unknown(obj) and obj.dtype.kind in "iu" and strides_of(x) in (None, ()):
        length = x.shape[along]
        place: Any = constant_tensor(np.arange(length))[obj]  # which raises if there is none
        rest = np.arange(max(length - 1, 0))
        return np.take(x, rest + (rest >= place), along)
    numbers = np.arange(x.shape[along]).reshape([-1 if i == along else 1 for i in range(x.ndim)])
    chosen = np.asarray(obj) if type(obj) is Tensor else obj
    kept = pick(x, np.delete(numbers, chosen, along).ravel(), along)
    if isinstance(chosen, slice) or np.size(chosen) == 1:
        return lay_like(kept, x, "A")
    return lay_like(kept, x[(*(slice(None),) * along, [0] * x.shape[along])])


@implements(np.insert, by="arr values")
def insert(arr: Any, obj: Any, values: Any, axis: Any = None) -> Any:
    """Return an array with values inserted along an axis; see `numpy.insert`."""
    x, along = flat_or_axis(array_operand("insert", arr), axis)
    new: Any = operand("insert", values)
    is_tensor = type(new) is Tensor
    new = with_dtype(new, x.dtype) if is_tensor else np.asarray(new, x.dtype)
    length = x.shape[along]
    if is_unknown(obj) and obj.dtype.kind in "iu" and strides_of(x) in (None, ()):
        return insert_at_unknown(x, obj, np.moveaxis(prepend_axes(new, x.ndim), 0, along), along)
    places = insertion_places(obj, length)
    if places.size == 1:
        new = prepend_axes(new, x.ndim)
        new = np.moveaxis(new, 0, along) if places.ndim == 0 else new
        places = np.full(new.shape[along], places.item())
    order = places.argsort(kind="stable")
    positions = np.empty_like(places)
    positions[order] = places[order] + np.arange(len(places))
    shape = (*x.shape[:along], length + len(places), *x.shape[along + 1 :])
    result = lay_like(constant_tensor(np.zeros(shape, x.dtype)), x, "A")
    before = (slice(None),) * along
    result[(*before, as_slice(positions))] = new
    result[(*before, as_slice(np.delete(np.arange(length + len(places)), positions)))] = x
    return result


def prepend_axes(value: Any, rank: int) -> Any:
    """Return a value with as many axes, the new ones in front."""
    missing = rank - value.ndim
    return np.reshape(value, (1,) * missing + value.shape) if missing > 0 else value


def insert_at_unknown(x: Tensor, place: Tensor, new: Any, axis: int) -> Any:
    """Return an array in C order with values inserted at one place that nobody can look at."""
    length, count = x.shape[axis], new.shape[axis]
    counted = constant_tensor(np.concatenate([np.arange(length + 1), np.arange(length)]))  # negative ones from the end
    outside = (place < -length) | (place > length)
    place = counted[np.where(outside, len(counted), place)]  # which raises if it is outside
    numbers = np.arange(length + count)
    after = numbers - place
    shape = (*x.shape[:axis], count, *x.shape[axis + 1 :])
    both = concatenate([x, np.broadcast_to(new, shape)], axis)
    return np.take(both, np.where(after < 0, numbers, np.where(after < count, length + after, numbers - count)), axis)


def insertion_places(obj: Any, length: int) -> np.ndarray[Any, Any]:
    """Return the indices before which to insert, from 0 to the length."""
    if isinstance(obj, slice):
        return np.arange(*obj.indices(length))
    places = np.asarray(obj)
    if places.ndim > 1:
        raise ShapeError("insert", f"indices of shape {places.shape}", "at most one axis is needed", "Flatten them")
    if places.dtype == bool:
        return np.flatnonzero(places)
    places = places.astype(np.intp) if places.size == 0 else places
    if np.any((places < -length) | (places > length)):
        needed = f"indices from {-length} to {length} are needed"
        raise IndexError(describe("insert", f"index {obj}", needed, "Insert within the axis"))
    return np.where(places < 0, places + length, places)


def as_slice(indices: np.ndarray[Any, Any]) -> Any:
    """Return ascending indices as a slice where they are consecutive."""
    if indices.size and indices[-1] - indices[0] == indices.size - 1 and np.all(np.diff(indices) == 1):
        return slice(int(indices[0]), int(indices[-1]) + 1)
    return indices


# Grids and powers


@implements(np.meshgrid)
def meshgrid(*xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy") -> Any:
    """Return the coordinates of a grid; see `numpy.meshgrid`."""
    if indexing not in ("xy", "ij"):
        raise UsageError("meshgrid", f"indexing={indexing!r}", '"xy" or "ij" is needed', "Choose one of the two")
    ndim = len(xi)
    order = list(range(ndim))
    if indexing == "xy" and ndim > 1:
        order[:2] = 1, 0
    grids: Any = tuple(
        np.reshape(array_operand("meshgrid", x), [-1 if i == along else 1 for i in range(ndim)])
        for along, x in zip(order, xi, strict=True)
    )
    if not sparse:
        grids = np.broadcast_arrays(*grids)
    return tuple(grid.copy() for grid in grids) if copy else grids


@implements(np.vander)
def vander(x: Any, N: Any = None, increasing: bool = False) -> Any:  # noqa: N803 - NumPy's name
    """Return the matrix of the powers of a vector's elements; see `numpy.vander`."""
    base = array_operand("vander", x)
    if base.ndim != 1:
        raise ShapeError("vander", f"an array of shape {base.shape}", "one axis is needed", "Flatten it")
    dtype = np.promote_types(base.dtype, int)
    base = np.astype(base, dtype, copy=False)
    count = len(base) if N is None else operator.index(N)
    if count <= 0:
        return constant_tensor(np.zeros((len(base), count), dtype))
    bases = np.broadcast_to(base[:, None], (len(base), count - 1))
    powers = np.concatenate([np.ones((len(base), 1), dtype), np.cumprod(bases, axis=1)], axis=1)
    return powers if increasing else np.flip(powers, axis=1)


@implements(np.trim_zeros)
def trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    """Return an array without the zeros at the ends of its axes; see `numpy.trim_zeros`."""
    x: Any = as_tensor(filt)
    ends = trim.lower() if isinstance(trim, str) else ""
    if ends not in ("fb", "bf", "f", "b"):
        raise UsageError("trim_zeros", f"trim={trim!r}", "'f', 'b' or 'fb' is needed", "Pass one of them")
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim, argname="axis")
    places = np.argwhere(np.asarray(concrete("trim_zeros", x, "Take a slice of known ends")))
    index = [slice(None)] * x.ndim
    for along in axes:
        first, last = (places[:, along].min(), places[:, along].max() + 1) if len(places) else (0, 0)
        keeps_all = not len(places)
        index[along] = slice(
            int(first) if "f" in ends or keeps_all else None, int(last) if "b" in ends or keeps_all else None
        )
    return x[tuple(index)] if axes else x
