"""Indexing with NumPy's signatures: reading, and writing in place, by numbers and masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.memory.memory_layout import is_scalar, strides_of
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, as_tensor, implements, is_weak
from wengert.core.values.numpy_overrides import RAISED, carry_out
from wengert.core.values.plain_functions import call_plain
from wengert.core.values.tensor import Tensor, concrete, innermost_trace, is_concrete
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy._results import FITS_RESULT, with_out
from wengert.numpy._selection import bring_into_range
from wengert.numpy._shapes import flat_or_axis, flatten, row_and_axis
from wengert.numpy._ufuncs import OF_UFUNCS
from wengert.primitives import selection
from wengert.primitives.indexing.elements import extremes_at
from wengert.primitives.indexing.parts import add_at, assignable
from wengert.primitives.masked import is_undecided

# Reading


def as_indices(name: str, indices: Any) -> Any:
    """Return indices as an integer array or Tensor; an IndexError is raised of others."""
    found = indices if type(indices) is Tensor else np.asarray(indices)
    if found.dtype.kind in "iu":
        return found
    if found.dtype.kind == "b" or (found.size == 0 and type(indices) is not Tensor):
        return found.astype(np.intp)
    given = f"indices of dtype {found.dtype}"
    raise IndexError(describe(name, given, "integers are needed", "Convert them with .astype(int)"))


@implements(np.take)
def take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Tensor:
    """Return the elements at indices along an axis; see `numpy.take`."""
    if type(a) is Tensor and a._trace is None and out is None and mode == "raise" and type(indices) is np.ndarray:
        found = call_plain(np.ndarray.take, a, indices, axis)
        if found is not None:
            return found
    x, axis = row_and_axis(a, axis)
    chosen = as_indices("take", indices)
    if mode != "raise":
        chosen = bring_into_range("take", chosen, x.shape[axis], mode)
    before = (slice(None),) * axis
    if chosen.ndim == 0 and type(chosen) is Tensor:  # it may be traced, and have no element to look at
        result = x[(*before, chosen.reshape(1))].reshape(x.shape[:axis] + x.shape[axis + 1 :])
    else:
        result = x[(*before, chosen)]
    packed: Any = result if strides_of(result) in (None, ()) else np.copy(result, order="C")
    return packed if out is None else with_out("take", packed, out, rule=FITS_RESULT)


def index_along_axis(name: str, shape: tuple[int, ...], indices: Any, axis: int) -> tuple[Any, ...]:
    """Return the index of every position that `indices` names along an axis."""
    if indices.ndim != len(shape):
        given = f"indices of shape {indices.shape} for an array of shape {shape}"
        raise ShapeError(name, given, "as many axes are needed", "Reshape the indices")
    parts: list[Any] = []
    for i, n in enumerate(shape):
        line = [1] * len(shape)
        line[i] = n
        parts.append(indices if i == axis else np.arange(n).reshape(line))
    return tuple(parts)


@implements(np.take_along_axis)
def take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Tensor:
    """Return the elements at indices that vary along the other axes; see `numpy.take_along_axis`."""
    x = as_tensor(arr)
    if isinstance(indices, Tensor | np.ndarray) and indices.dtype.kind == "b":
        raise IndexError(describe("take_along_axis", "truth values", "indices are needed", "Write numpy.where"))
    x, axis = flat_or_axis(x, axis)
    elements: Tensor = x[index_along_axis("take_along_axis", x.shape, as_indices("take_along_axis", indices), axis)]
    return elements


# Writing in place


def call_on_ndarrays(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a NumPy function that writes into an ndarray; a Tensor being differentiated or traced is refused."""
    for x in (*args, *kwargs.values()):
        if type(x) is Tensor and innermost_trace(x) is not None:
            raise x._storage_error()
    return function(
        *(np.asarray(x) if type(x) is Tensor else x for x in args),
        **{name: np.asarray(x) if type(x) is Tensor else x for name, x in kwargs.items()},
    )


def set_flat(target: Tensor, places: Any, values: Any, mask: Any = None) -> None:
    """Assign values, repeated as needed, to places of the flattened target, those of a mask if one is given."""
    found = assignable(target, values)
    index = np.unravel_index(places, target.shape) if mask is None and target.ndim else mask
    if is_weak(found):
        if target.ndim:
            target[index] = found
        elif places.size:
            target[...] = found
        return
    source = flatten(as_tensor(found))
    if not places.size or not source.size:
        return
    if source.size != places.size:
        source = source[np.arange(places.size) % source.size]
    if target.ndim == 0:
        target[...] = source[-1]
    else:
        target[index] = source


@implements(np.put, by="a v")
def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Set elements by flat index, in place; of a scalar, such as `x @ x`, nothing; see `numpy.put`."""
    if type(a) is not Tensor:
        call_on_ndarrays(np.put, a, ind, v, mode=mode)
        return
    if is_scalar(a):
        return
    indices = as_indices("put", ind)
    indices = np.asarray(concrete("put", indices)).ravel() if is_concrete(indices) else flatten(indices)
    set_flat(a, bring_into_range("put", indices, a.size, mode), v)


def fill_method(x: Tensor, value: Any) -> None:
    """Set every element to a number; of a scalar nothing, as NumPy's method does."""
    if np.ndim(value):
        given = f"a value of shape {np.shape(value)}"
        raise ShapeError("fill", given, "one number is needed", "Assign it: x[...] = value")
    if not is_scalar(x):
        x[...] = value


@implements(np.put_along_axis, by="arr values")
def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Set the elements at indices that vary along the other axes, in place; see `numpy.put_along_axis`."""
    if type(arr) is not Tensor:
        call_on_ndarrays(np.put_along_axis, arr, indices, values, axis)
        return
    if axis is None:
        put(arr, indices, values)
        return
    axis = normalize_axis_index(axis, arr.ndim)
    arr[index_along_axis("put_along_axis", arr.shape, as_indices("put_along_axis", indices), axis)] = values


@implements(np.copyto, by="dst src")
def copyto(dst: Any, src: Any, casting: str = "same_kind", where: Any = True) -> None:
    """Copy values into an array, in place, where a condition holds; see `numpy.copyto`."""
    if type(dst) is not Tensor:
        call_on_ndarrays(np.copyto, dst, src, casting=casting, where=where)
        return
    source = src if is_weak(src) else as_tensor(src)
    kind = aval_of(source)
    numeric = dst.dtype.kind in "biufc"
    given = np.result_type(kind.number(1), dst.dtype) if kind.weak and numeric else kind.dtype
    require_cast("copyto", given, dst, casting, ", or pass casting='unsafe'")
    if numeric and (given.kind != dst.dtype.kind or not kind.weak):  # elements wrap, but for whole numbers of Python's
        source = as_tensor(source).astype(dst.dtype, copy=False)
    dst[...] = source if where is True else np.where(where, source, dst)


def require_cast(name: str, given: Any, target: Tensor, casting: Any, otherwise: str = "") -> None:
    """Refuse values of a dtype that a rule does not cast to the target's."""
    if not np.can_cast(given, target.dtype, casting):
        needed = f"a dtype that casts by the rule {casting!r} is needed"
        action = f"Convert the values with .astype first{otherwise}"
        raise DtypeError(name, f"values of dtype {given} for a Tensor of dtype {target.dtype}", needed, action)


def require_safe_cast(name: str, values: Any, target: Tensor) -> None:
    """Refuse arrays that NumPy does not cast safely; numbers and scalars are converted as those that are assigned."""
    if isinstance(values, np.ndarray) or (type(values) is Tensor and not is_weak(values) and not is_scalar(values)):
        require_cast(name, values.dtype, target, "safe")


@implements(np.place, by="arr vals")
def place(arr: Any, mask: Any, vals: Any) -> None:
    """Set the elements where a mask holds to the first values, repeated as needed; see `numpy.place`."""
    if type(arr) is not Tensor:
        call_on_ndarrays(np.place, arr, mask, vals)
        return
    require_safe_cast("place", vals, arr)
    if is_undecided(mask) and mask.shape == arr.shape and (values := flatten(as_tensor(vals))).size == 1:
        arr[mask] = values[0]
        return
    known = concrete_mask("place", arr, mask)
    places = np.flatnonzero(known)
    if places.size and not np.size(vals):
        raise UsageError("place", "no values", "at least one is needed", "Pass the values to insert")
    set_flat(arr, places, vals, known)


@implements(np.putmask, by="a values")
def putmask(a: Any, /, mask: Any, values: Any) -> None:
    """Set the elements where a mask holds to the values at the same flat places; see `numpy.putmask`."""
    if type(a) is not Tensor:
        call_on_ndarrays(np.putmask, a, mask, values)
        return
    require_safe_cast("putmask", values, a)
    if is_undecided(mask) and mask.shape == a.shape and np.shape(values) in ((), a.shape):
        a[mask] = values[mask] if np.ndim(values) else values
        return
    known = concrete_mask("putmask", a, mask)
    places = np.flatnonzero(known)
    source = flatten(as_tensor(assignable(a, values)))
    if places.size and source.size:
        set_flat(a, places, source[places % source.size], known)


def concrete_mask(name: str, target: Tensor, mask: Any) -> Any:
    """Return a mask as truth values in the target's shape."""
    found = np.asarray(concrete(name, mask)).astype(bool)
    if found.size != target.size:
        given = f"a mask of shape {found.shape} for a Tensor of shape {target.shape}"
        raise ShapeError(name, given, "a mask of the same size is needed", "Broadcast the mask")
    return found.reshape(target.shape)


@implements(np.fill_diagonal, by="a val")
def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Set the main diagonal, in place; see `numpy.fill_diagonal`."""
    if type(a) is not Tensor:
        call_on_ndarrays(np.fill_diagonal, a, val, wrap)
        return
    shape = a.shape
    if len(shape) < 2 or (len(shape) > 2 and len(set(shape)) > 1):
        needed = "at least two axes are needed, of equal length if there are more than two"
        raise ShapeError("fill_diagonal", f"a Tensor of shape {shape}", needed, "Index the diagonal directly")
    step = 1 + int(np.cumprod(shape[:-1]).sum()) if len(shape) > 2 else shape[1] + 1
    end = shape[1] ** 2 if len(shape) == 2 and not wrap else None
    set_flat(a, np.arange(a.size)[:end:step], val)


# ufunc.at: operations on parts in place, where repeated indices take effect one after the other


def rounds_without_repeats(shape: tuple[int, ...], index: Any) -> list[tuple[Any, Any]]:
    """Return rounds without repeats of an index: flat places in an array of this shape, and positions in the part."""
    size = int(np.prod(shape))
    places = np.asarray(np.arange(size).reshape(shape)[index]).ravel()
    order = np.argsort(places, kind="stable")
    ordered = places[order]
    starts = np.flatnonzero(np.r_[True, ordered[1:] != ordered[:-1]]) if size and places.size else np.zeros(0, int)
    turns = np.arange(places.size) - np.repeat(starts, np.diff(np.r_[starts, places.size]))
    rounds = []
    for turn in range(int(turns.max()) + 1 if places.size else 0):
        positions = np.sort(order[turns == turn])
        rounds.append((places[positions], positions))
    return rounds


def concrete_index(index: Any) -> Any:
    """Return an index with the arrays of Tensors in their place."""
    entries = index if isinstance(index, tuple) else (index,)
    found = tuple(concrete("ufunc.at", entry, "Assign through an index") for entry in entries)
    return found if isinstance(index, tuple) else found[0]


def put_extremes_at(ufunc: np.ufunc, a: Tensor, indices: Any, b: Any) -> None:
    """Mean `maximum.at` or `minimum.at`: one operation, whose ties share the derivative, as those of `max` do."""
    places = np.arange(a.size).reshape(a.shape)
    entries = indices if isinstance(indices, tuple) else (indices,)
    window: Any = places[concrete_index(indices)] if all(map(is_concrete, entries)) else as_tensor(places)[indices]
    operand: Any = np.broadcast_to(as_tensor(b), window.shape)
    values = operand.astype(a.dtype) if np.can_cast(operand.dtype, a.dtype, "same_kind") else operand
    vectors = (a.reshape(-1), values.reshape(-1), window.reshape(-1))
    a[...] = apply(extremes_at, *vectors, greatest=ufunc is np.maximum).reshape(a.shape)


def operate_at(ufunc: np.ufunc) -> Callable[..., None]:
    """Return the meaning of `ufunc.at` for Tensors."""

    def at(a: Any, indices: Any, b: Any = None, /) -> None:
        if type(a) is not Tensor:
            call_on_ndarrays(ufunc.at, a, indices, *(() if b is None else (b,)))
            return
        if a.ndim and ufunc in (np.maximum, np.minimum) and b is not None:
            put_extremes_at(ufunc, a, indices, b)
            return
        if not all(map(is_concrete, indices if isinstance(indices, tuple) else (indices,))):
            operate_in_turn(ufunc, a, indices, b)
            return
        raised: Exception | None = None
        index = concrete_index(indices)
        window = np.empty(a.shape, np.bool_)[index].shape
        operand: Any = None if b is None else np.broadcast_to(as_tensor(b), window)
        values = None if b is None else flatten(operand)
        for places, positions in rounds_without_repeats(a.shape, index):
            key = np.unravel_index(places, a.shape) if a.ndim else np.True_
            operands = (a[key],) if values is None else (a[key], values[positions])
            try:
                put_result(a, key, ufunc, operands)
            except RAISED as error:  # which NumPy raises at the end
                carry_out(put_result, a, key, ufunc, operands)
                raised = raised or error
        if raised is not None:
            raise raised

    return at


def operate_in_turn(ufunc: np.ufunc, a: Tensor, indices: Any, b: Any) -> None:
    """Carry out `ufunc.at` at indices that nobody can look at, one after the other."""
    from wengert.control.while_loop import fori_loop  # which costs too much where nobody needs it

    places: Any = as_tensor(np.arange(a.size).reshape(a.shape))[indices]
    row = flatten(places)
    operand: Any = None if b is None else np.broadcast_to(as_tensor(b), places.shape)
    values = None if b is None else flatten(operand)

    def step(k: Any, elements: Any) -> Any:
        changed: Any = np.copy(elements)
        put_result(changed, row[k], ufunc, (elements[row[k]],) if values is None else (elements[row[k]], values[k]))
        return changed

    a[...] = fori_loop(0, row.size, step, flatten(a)).reshape(a.shape)


def put_result(a: Tensor, key: Any, ufunc: np.ufunc, operands: Sequence[Any]) -> None:
    """Put what a ufunc gives into part of a Tensor."""
    a[key] = ufunc(*operands)


def add_to_part(a: Any, indices: Any, b: Any) -> None:
    """Add to part of a Tensor."""
    try:
        add_at(a, indices, b)
    except RAISED:
        carry_out(add_at, a, indices, b)
        raise


@implements((np.add, "at"))
def add_in_place(a: Any, indices: Any, b: Any, /) -> None:
    """Add to part of a Tensor; repeated indices add up; see `numpy.ufunc.at`."""
    if type(a) is Tensor:
        add_to_part(a, indices, b)
    else:
        call_on_ndarrays(np.add.at, a, indices, b)


@implements((np.subtract, "at"))
def subtract_in_place(a: Any, indices: Any, b: Any, /) -> None:
    """Subtract from part of a Tensor; repeated indices add up; see `numpy.ufunc.at`."""
    if type(a) is Tensor:
        value: Any = as_tensor(b)  # whole numbers change their sign in the dtype of the difference: they wrap before
        if value.dtype.kind in "biu" and a.dtype.kind != "b":
            value = value.astype(np.promote_types(value.dtype, a.dtype))
        add_to_part(a, indices, -value)
    else:
        call_on_ndarrays(np.subtract.at, a, indices, b)


for _ufunc in OF_UFUNCS:
    if _ufunc.nout == 1 and _ufunc.nin <= 2 and _ufunc not in (np.add, np.subtract):
        implements((_ufunc, "at"))(operate_at(_ufunc))


# Indices of indices


@implements(np.unravel_index)
def unravel_index(indices: Any, shape: Any, order: str = "C") -> tuple[Tensor, ...]:
    """Return the index of each flat position; see `numpy.unravel_index`."""
    lengths = (shape,) if isinstance(shape, int) else tuple(shape)
    return tuple(apply(selection.unravel_index, as_tensor(indices), shape=lengths, order=order))


@implements(np.ravel_multi_index)
def ravel_multi_index(multi_index: Any, dims: Sequence[int], mode: Any = "raise", order: str = "C") -> Any:
    """Return the flat position of each index; see `numpy.ravel_multi_index`."""
    parts = [as_tensor(part) for part in multi_index]
    return apply(selection.ravel_multi_index, *parts, dims=tuple(dims), mode=mode, order=order)


@implements(np.ix_, by="")
def ix_(*args: Any) -> tuple[Any, ...]:
    """Return arrays of numbers that together index every combination; see `numpy.ix_`."""
    views = [type(arg) is Tensor and arg.dtype.kind != "b" and arg.size > 0 for arg in args]
    arrays = [
        np.empty(arg.shape, arg.dtype) if is_view else np.asarray(concrete("ix_", arg, "Reshape the indices"))
        for arg, is_view in zip(args, views, strict=True)
    ]
    return tuple(
        np.reshape(arg, part.shape) if is_view else as_tensor(part)
        for arg, part, is_view in zip(args, np.ix_(*arrays), views, strict=True)
    )
