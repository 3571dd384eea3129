"""Reading and writing parts of arrays: `getitem`, `assign`, and the in-place forms built on them."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval
from wengert.core.cotangent import match_dtype, unbroadcast
from wengert.core.dispatch import apply, innermost
from wengert.core.primitive import linear
from wengert.core.tensor import Tensor, make_tensor, refuse_object_arrays
from wengert.core.views import Step, base_and_path, current

__all__ = ["add_at", "assign", "getitem", "read", "rebind", "setitem", "write"]


class _Operand:
    """Mark the place of an array operand in an index."""

    def __repr__(self) -> str:
        return "array"


OPERAND = _Operand()
Index = tuple[Any, ...]


def split_index(index: Any) -> tuple[Index, list[Any]]:
    """Split a NumPy index into its static form, with `OPERAND` in place of arrays, and those arrays.

    >>> split_index((slice(2), [0, 1]))
    ((slice(None, 2, None), array), [array([0, 1])])
    """
    arrays: list[Any] = []
    entries = []
    for entry in index if isinstance(index, tuple) else (index,):
        kind = type(entry)
        if kind is int or kind is slice or entry is None or entry is Ellipsis:
            entries.append(entry)
        elif kind is Tensor and not (entry.ndim == 0 and entry._trace is None and entry.dtype.kind in "iu"):
            entries.append(OPERAND)
            arrays.append(current(entry))
        elif isinstance(entry, list | np.ndarray | bool | np.bool_):
            array = np.asarray(entry)
            entries.append(OPERAND)
            arrays.append(array if array.size or kind is np.ndarray else array.astype(np.intp))
        else:
            entries.append(operator.index(entry) if hasattr(entry, "__index__") else entry)
    return tuple(entries), arrays


def join_index(index: Index, arrays: Sequence[Any]) -> Any:
    """Put the arrays back into the static form of an index."""
    if not arrays:
        return index
    rest = iter(arrays)
    return tuple(next(rest) if entry is OPERAND else entry for entry in index)


def take_part(x: Any, *arrays: Any, index: Index) -> Any:
    """Evaluate `x[index]`."""
    return x[join_index(index, arrays)]


def transpose_part(ct: Any, aval: Aval, *arrays: Any, index: Index) -> Any:
    """Put a cotangent back to where its part came from."""
    zeros = np.zeros(aval.shape, aval.dtype)
    return apply(assign, zeros, ct, *arrays, path=(), index=index, add=True)


def accumulate_part(buffer: Any, ct: Any, *arrays: Any, index: Index) -> None:
    """Add a cotangent into the part of a buffer that it belongs to."""
    put_into(buffer, ct, arrays, (), index, add=True)


getitem = linear(
    "getitem", take_part, transpose=transpose_part, view=True, fresh=True, accumulate=accumulate_part
)


def window_of(target: Any, path: Sequence[Step]) -> Any:
    """Follow the steps of a view from its base."""
    for primitive, params in path:
        target = apply(primitive, target, **dict(params))
    return target


def put_into(target: Any, value: Any, arrays: Sequence[Any], path: Sequence[Step], index: Index, *, add: bool) -> None:
    """Write into part of an ndarray, or of a Tensor (which is then re-bound)."""
    if type(target) is Tensor:
        write(target, value, *arrays, path=path, index=index, add=add)
        return
    window = window_of(target, path)
    key = join_index(index, arrays)
    if not add:
        window[key] = value
    elif arrays:
        np.add.at(window, key, value)
    else:
        window[key] += value


def rewrite_part(
    base: Any, kept: bool, value: Any, *arrays: Any, path: Sequence[Step], index: Index, add: bool
) -> Any:
    """Write into part of a value, or of a copy if somebody relies on its content; return what was written to."""
    if type(base) is Tensor:
        target: Any = base.copy() if kept else base
    elif type(value) is Tensor:
        target = make_tensor(base, None, None)
        target._kept = kept
    else:
        target = np.array(base) if kept or type(base) is not np.ndarray else base
    put_into(target, value, arrays, path, index, add=add)
    return target


def assign_part(base: Any, value: Any, *arrays: Any, path: Sequence[Step], index: Index, add: bool) -> Any:
    """Evaluate an assignment into a copy."""
    return rewrite_part(base, True, value, *arrays, path=path, index=index, add=add)


def read(ct: Any, *arrays: Any, path: Sequence[Step], index: Index, add: bool) -> Any:
    """Return the part of a cotangent that belongs to an assigned value; zero where a later write won."""
    window = window_of(ct, path)
    part = apply(getitem, window, *arrays, index=index)
    if not add and any(array.dtype.kind in "iu" and array.size > 1 for array in arrays):
        part = np.where(last_writers(window.shape, part.shape, join_index(index, arrays)), part, 0)
    return part


def last_writers(window: tuple[int, ...], part: tuple[int, ...], key: Any) -> Any:
    """Tell which of the elements that are assigned through an index with repeats remain."""
    order = np.arange(np.prod(part, dtype=np.intp)).reshape(part)
    board = np.full(window, -1, dtype=np.intp)
    board[key] = order
    return board[key] == order


def transpose_base(ct: Any, _aval: Aval, *arrays: Any, path: Sequence[Step], index: Index, add: bool) -> Any:
    """Pass on the cotangent of what was not overwritten."""
    return ct if add else apply(assign, ct, 0.0, *arrays, path=path, index=index, add=False)


def transpose_value(ct: Any, aval: Aval, *arrays: Any, path: Sequence[Step], index: Index, add: bool) -> Any:
    """Pass on the cotangent of what was written, summed over what was broadcast."""
    part = unbroadcast(read(ct, *arrays, path=path, index=index, add=add), aval.shape)
    return match_dtype(part, aval.dtype)


def consume_assigned(
    ct: Any, avals: Sequence[Aval | None], *arrays: Any, path: Sequence[Step], index: Index, add: bool
) -> Sequence[Any]:
    """Split a cotangent into those of the base and the value, overwriting it: O(1) for one element of many."""
    base, value = avals[0], avals[1]
    value_ct = None
    if value is not None:
        value_ct = transpose_value(ct, value, *arrays, path=path, index=index, add=add).copy()
    if base is not None and not add:
        put_into(ct, 0.0, arrays, path, index, add=False)
    return (None if base is None else ct, value_ct, *(None,) * len(arrays))


assign = linear(
    "assign",
    assign_part,
    transpose=(transpose_base, transpose_value),
    rewrite=rewrite_part,
    consume=consume_assigned,
)


def read_index(x: Any, index: Any) -> Any:
    """Return `x[index]` for a Tensor and any NumPy index."""
    entries, arrays = split_index(index)
    return apply(getitem, x, *arrays, index=entries)


def require_writable(target: Tensor) -> None:
    """Raise if a Tensor must not be written to: a leaf, while recording."""
    if target._trace is not None:
        target._trace.require_writable(target)


def write(target: Tensor, value: Any, *arrays: Any, path: Sequence[Step], index: Index, add: bool) -> None:
    """Re-bind a Tensor that owns its memory to itself with a part replaced."""
    params = {"path": path, "index": index, "add": add}
    operands = (value, *arrays)
    require_writable(target)
    trace, _ = innermost((target, *operands))
    if trace is not None:
        trace.assign(target, assign, operands, params)
        return
    values = [x._value if type(x) is Tensor else x for x in operands]
    target._value = rewrite_part(target._value, target._kept, *values, path=path, index=index, add=add)
    target._kept = False
    target._mutated = True


def setitem(target: Tensor, index: Any, value: Any, add: bool = False) -> None:
    """Assign to part of a Tensor; its base and the base's other views see the change."""
    base, path = base_and_path(target)
    entries, arrays = split_index(index)
    value = current(value) if type(value) is Tensor else np.asarray(value)
    refuse_object_arrays("assignment", (value,))
    write(base, value, *arrays, path=path, index=entries, add=add)


def add_at(target: Tensor, index: Any, value: Any) -> None:
    """Add to part of a Tensor; repeated indices add up, as with `numpy.add.at`."""
    setitem(target, index, value, add=True)


def rebind(target: Tensor, result: Any) -> None:
    """Let a Tensor stand for another value of its own shape and dtype; a view writes through to its base."""
    base, path = base_and_path(target)
    if path:
        setitem(target, Ellipsis, result)
        return
    require_writable(target)
    found = current(result)
    trace, _ = innermost((target, found))
    if trace is None:
        target._value = found._value
        target._kept = found._kept = True
    else:
        trace.rebind(target, found)
