"""Reading and writing parts of arrays: `getitem`, `assign`, and the in-place forms built on them.

`index_forms` says which shapes they give, and how they read and write in lanes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.numpy_warnings import at_users_line, warn_at_users_line
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.buffers import take
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.possible_aliases import SHARES, PartPlace, found_again, part_of, reach_sharers
from wengert.core.memory.views import Step, base_and_path, current, extend_path, share, with_views_resolved
from wengert.core.memory.write_watches import Lost, note_write
from wengert.core.primitives.cotangent import add_shared, match_dtype, unbroadcast
from wengert.core.primitives.declare import linear
from wengert.core.primitives.kinds import Linear
from wengert.core.values.aval import NUMBERS, UNKNOWN, Aval, aval_of, shape_of
from wengert.core.values.dispatch import applied, apply, array_of_any, as_tensor, check_numeric, innermost, is_weak
from wengert.core.values.object_arrays import holds_objects
from wengert.core.values.tensor import WATCHES, Tensor, is_concrete, make_tensor
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.native.threads.elementwise import LARGE
from wengert.primitives import rewrites
from wengert.primitives.conversion import fitted
from wengert.primitives.indexing.added_places import add_at_places
from wengert.primitives.indexing.index_forms import Index, PartUpdate, window_of
from wengert.primitives.indexing.index_layout import OPERAND, Entries, join_index, split_index
from wengert.primitives.masked import (
    MASKED,
    Masked,
    by_masks,
    differs_between_lanes,
    is_selection,
    is_undecided,
    looked_up,
    part_of_each,
    put_back,
    select_elements,
)
from wengert.primitives.shapes import reshape


def full_of_zeros(shape: tuple[int, ...], dtype: np.dtype[Any]) -> Any:
    """Return read-only zeros, one in memory: as a literal of a graph, or for what copies them before it writes."""
    return np.ndarray(shape, dtype, bytes(dtype.itemsize), 0, (0,) * len(shape))  # broadcast_to takes ten times as long


def transpose_part(ct: Any, aval: Aval, *arrays: Any, index: Entries) -> Any:
    """Put a cotangent back to where its part came from."""
    if type(ct) is not Tensor and not any(type(array) is Tensor for array in arrays):
        whole = np.zeros(aval.shape, aval.dtype)
        put_into(whole, ct, arrays, (), index, add=True)
        return whole
    return apply(assign, full_of_zeros(aval.shape, aval.dtype), ct, *arrays, path=(), index=index, add=True)


def accumulate_part(buffer: Any, ct: Any, *arrays: Any, index: Entries) -> None:
    """Add a cotangent into the part of a buffer that it belongs to."""
    if type(buffer) is Tensor:
        put_into(buffer, ct, arrays, (), index, add=True)
        return
    key = join_index(index, arrays)
    for array in arrays:
        if array.dtype.kind != "b":  # which may name an element twice
            add_at_places(buffer, key, ct)
            return
    if ct.size >= LARGE and not arrays:
        part = buffer[key]
        add_shared(part, ct, part)
    else:
        buffer[key] += ct


getitem = linear(
    "getitem",
    lambda x, *arrays, index: x[join_index(index, arrays)],
    transpose=transpose_part,
    view=True,
    fresh=True,
    accumulate=accumulate_part,
    form=Index(),
    parts="each",
    rewrites=(rewrites.merge_parts,),
)


def put_into(
    target: Any, value: Any, arrays: Sequence[Any], path: Sequence[Step], index: Entries, *, add: bool
) -> None:
    """Write into part of an ndarray, or of a Tensor (which is then re-bound)."""
    if type(target) is Tensor:
        base, steps = base_and_path(target)
        write(base, value, *arrays, path=(*steps, *path), index=index, add=add)
        return
    key = join_index(index, arrays)
    window = target
    for position, (primitive, params) in enumerate(path):
        wider, window = window, apply(primitive, window, **dict(params))
        if window.size and not np.may_share_memory(wider, window):  # a reshape of memory that does not allow a view
            put_into(window, value, arrays, path[position + 1 :], index, add=add)
            assert isinstance(primitive, Linear)
            wider[...] = primitive.transposes[0](window, aval_of(wider), **dict(params))
            return
    if arrays and isinstance(value, np.ndarray) and np.may_share_memory(window, value):
        value = value.copy()  # NumPy reads through a mask what it has just written
    if not add:
        at_users_line(operator.setitem, window, key, value)
        return
    repeated = any(array.dtype.kind in "iu" for array in arrays)  # masks do not repeat places
    warn_at_users_line(add_at_places if repeated else add_where, window, key, value)  # not to be added again


def add_where(window: Any, key: Any, value: Any) -> None:
    """Add to elements, none of which is named twice."""
    window[key] += value


def rewrite_part(
    base: Any, kept: bool, value: Any, *arrays: Any, path: Sequence[Step], index: Entries, add: bool
) -> Any:
    """Write into part of a value, or of a copy if somebody relies on its content; return what was written to."""
    if type(base) is Tensor:
        target: Any = share(base) if kept else base
    elif type(value) is Tensor or any(type(array) is Tensor for array in arrays):
        target = make_tensor(base, None, None)
        target._kept = kept
    else:
        target = take(base, kept)
    put_into(target, value, arrays, path, index, add=add)
    return target


def assign_part(base: Any, value: Any, *arrays: Any, path: Sequence[Step], index: Entries, add: bool) -> Any:
    """Evaluate an assignment into a copy."""
    return rewrite_part(base, True, value, *arrays, path=path, index=index, add=add)


def read(ct: Any, *arrays: Any, path: Sequence[Step], index: Entries, add: bool) -> Any:
    """Return the part of a cotangent that belongs to an assigned value; zero where a later write won."""
    window = window_of(ct, path)
    part = apply(getitem, window, *arrays, index=index)
    if any(isinstance(primitive, Linear) and primitive.negates for primitive, _ in path):
        part = -part
    if not add and any(array.dtype.kind in "iu" and array.size > 1 for array in arrays):
        part = np.where(last_writers(window.shape, part.shape, join_index(index, arrays)), part, 0)
    return part


def last_writers(window: tuple[int, ...], part: tuple[int, ...], key: Any) -> Any:
    """Tell which of the elements that are assigned through an index with repeats remain."""
    order = np.arange(np.prod(part, dtype=np.intp)).reshape(part)
    board: Any = np.full(window, -1, dtype=np.intp)
    if any(type(entry) is Tensor for entry in key):  # which may differ from lane to lane
        board = make_tensor(board, None, None)
    board[key] = order
    return board[key] == order


def transpose_base(ct: Any, _aval: Aval, *arrays: Any, path: Sequence[Step], index: Entries, add: bool) -> Any:
    """Return the cotangent of the base of a write: 0 at the elements that were overwritten."""
    return ct if add else apply(assign, ct, 0.0, *arrays, path=path, index=index, add=False)


def transpose_value(ct: Any, aval: Aval, *arrays: Any, path: Sequence[Step], index: Entries, add: bool) -> Any:
    """Return the cotangent of a written value: that of the part, summed over the axes along which it was broadcast."""
    part = unbroadcast(read(ct, *arrays, path=path, index=index, add=add), aval.shape)
    return match_dtype(part, aval.dtype)


def consume_assigned(
    ct: Any, avals: Sequence[Aval | None], *arrays: Any, path: Sequence[Step], index: Entries, add: bool
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
    form=PartUpdate(),
    parts="each",
    rewrites=(rewrites.take_written,),
)
assign.usual = {"path": (), "add": False}


def read_index(x: Any, index: Any) -> Tensor:
    """Return `x[index]` for a Tensor and any NumPy index."""
    entries, arrays = split_index(by_masks(index) if chooses_places(index) else index)
    if None in entries and is_widening(entries, shape_of(x)):
        return applied(reshape, x, shape=np.empty(shape_of(x), np.bool_)[entries].shape, order="C")
    if arrays and (mask := undecided_mask(entries, arrays, shape_of(x))) is not None:
        return select_elements(masked_view(x, entries, mask), mask, axes_before(entries, mask, x.ndim))
    if is_selection(x) and not arrays:
        return part_of_each(x, entries)
    if len(arrays) == 1 and is_selection(arrays[0]) and arrays[0].dtype.kind in "iu":
        return looked_up(x, entries, arrays[0])
    part = applied(getitem, x, *arrays, index=entries)
    if arrays and type(part) is Tensor and part.ndim and all(map(is_unknown_place, arrays)):
        base, path = base_and_path(x)
        part_of(base, part, PartPlace((path, entries), arrays), part_text())
    return part


def chooses_places(index: Any) -> bool:
    """Tell whether there are places in an index where a mask holds whose elements are not there."""
    if type(index) is Tensor:
        return index._trace is MASKED
    return type(index) is tuple and any(type(x) is Tensor and x._trace is MASKED for x in index)


def undecided_mask(entries: Entries, arrays: Sequence[Any], shape: tuple[int, ...]) -> Tensor | None:
    """Return the mask in an index, if it is one whose elements are not there, for arrays of a shape.

    It is the only array there. Beside integers, which NumPy takes for arrays then, all must be adjacent.
    """
    if len(arrays) != 1 or not is_undecided(arrays[0]) or None in entries or entries.count(Ellipsis) > 1:
        return None
    mask = arrays[0]
    numbers = [i for i, entry in enumerate(entries) if entry is OPERAND or type(entry) is int]
    if numbers[-1] - numbers[0] >= len(numbers) or len(entries) - entries.count(Ellipsis) + mask.ndim - 1 > len(shape):
        return None
    first = axis_of(entries, mask, len(shape))
    return mask if mask.shape == shape[first : first + mask.ndim] else None


def axis_of(entries: Entries, mask: Tensor, rank: int) -> int:
    """Return the first axis of an array that a mask in an index stands for."""
    place = entries.index(OPERAND)
    if Ellipsis in entries[:place]:
        return rank - mask.ndim - (len(entries) - place - 1)
    return place


def axes_before(entries: Entries, mask: Tensor, rank: int) -> int:
    """Return how many axes of what an index leads to stand before those of its mask."""
    return axis_of(entries, mask, rank) - sum(type(entry) is int for entry in entries[: entries.index(OPERAND)])


def masked_view(x: Tensor, entries: Entries, mask: Tensor) -> Tensor:
    """Return the part of an array to which an index leads but for its mask."""
    if entries == (OPERAND,):
        return x
    place = entries.index(OPERAND)
    whole = (slice(None),) * mask.ndim
    return read_index(x, (*entries[:place], *whole, *entries[place + 1 :]))


def is_widening(entries: Entries, shape: tuple[int, ...]) -> bool:
    """Tell whether an index inserts axes of length one and does nothing else: what reshapes, as `expand_dims` does."""
    whole = (slice(None), Ellipsis, None)
    return UNKNOWN not in shape and all(entry in whole for entry in entries)


def is_unknown_place(array: Any) -> bool:
    """Tell whether an index is an integer that is not there yet: NumPy's part would be a view, ours cannot be one."""
    return (
        type(array) is Tensor
        and array.ndim == 0
        and array.dtype.kind in "iu"
        and not is_concrete(array)
        and strides_of(array) is None
    )


def part_text() -> str:
    """Return the text of the error about a part, or what it is one of, after the other has been written to."""
    given = "a part at a traced index, which shares memory with an array, and one of the two has been written to since"
    needed = "it must be known which elements a write changes"
    action = "Copy the part first, or assign it to the array at once"
    return describe("getitem", given, needed, action) + f"\n  {position_of(*caller())}"


def require_writable(target: Tensor) -> None:
    """Raise if a Tensor must not be written to: what stands for a read-only ndarray, and a leaf while recording."""
    if hasattr(target, "_fixed"):
        given = "a Tensor that stands for a read-only array"
        raise UsageError("assignment", given, "an array that can be written to is needed, as in NumPy", "Copy it first")
    if target._trace is not None:
        target._trace.require_writable(target)


def write(target: Tensor, value: Any, *arrays: Any, path: Sequence[Step], index: Entries, add: bool) -> None:
    """Re-bind a Tensor that owns its memory to itself with a part replaced."""
    params = {"path": path, "index": index, "add": add}
    operands = tuple(current(x) if type(x) is Tensor else x for x in (value, *arrays))
    require_writable(target)
    trace, _ = innermost((target, *operands))
    if WATCHES:
        note_write(target)
    if trace is None:
        values = [x._value if type(x) is Tensor else x for x in operands]
        target._value = rewrite_part(target._value, target._kept, *values, path=path, index=index, add=add)
        target._kept = False
        target._mutated = True
    elif trace.staged:  # which refers to the operands from now on
        with_views_resolved(lambda _, *xs: trace.assign(target, assign, xs, params), target, value, *arrays)
    else:
        trace.assign(target, assign, operands, params)
    if SHARES:
        reach_sharers(target, rebind)


def setitem(target: Tensor, index: Any, value: Any, add: bool = False) -> None:
    """Assign to part of a Tensor; its base and the base's other views see the change."""
    base, path = base_and_path(target)
    entries, arrays = split_index(by_masks(index) if chooses_places(index) else index)
    if type(base._trace) is Lost:
        found_again(base, value, PartPlace((path, entries), arrays))
    if arrays and wrote_by_mask(target, entries, arrays, value, add):
        return
    place = None if arrays else extend_path(base.shape, path, getitem, {"index": entries})
    if place is not None and not add and is_same_view(value, base, place):
        return  # the second half of `target[index] += ...`, whose first half has written through the view
    found = assignable(target, value, add)
    if isinstance(value, list | tuple) and not arrays:
        require_depth(target.ndim - sum(type(entry) is int for entry in entries) + entries.count(None), found.shape)
    if place is not None and place[-1][0] is getitem:
        path, entries = place[:-1], dict(place[-1][1])["index"]
    write(base, found, *arrays, path=path, index=entries, add=add)


def wrote_by_mask(target: Tensor, entries: Entries, arrays: Sequence[Any], value: Any, add: bool) -> bool:
    """Assign where a mask holds whose elements are not there, and tell whether that was to be done.

    `where` decides, which has a gradient and lanes for any mask. Values in a row, one for each place that a traced mask
    chooses, are an operand of `assign`.
    """
    is_selection = type(value) is Tensor and type(value._trace) is Masked
    mask = None if add else undecided_mask(entries, arrays, target.shape)
    if mask is None and is_selection:
        raise value._value.error()
    if mask is None:
        return False
    found = value if is_selection else assignable(target, value)
    before = axes_before(entries, mask, target.ndim)
    part = masked_view(target, entries, mask)
    in_a_row = not is_selection and len(shape_of(found)) > part.ndim - before - mask.ndim
    if in_a_row and not differs_between_lanes(mask):
        return False
    whole = put_back(part, mask, found, before)
    if whole.dtype == part.dtype:
        rebind(part, whole)
    else:  # complex numbers for a real array, of which NumPy warns
        setitem(part, Ellipsis, whole)
    return True


def assignable(target: Tensor, value: Any, add: bool = False) -> Any:
    """Return the right-hand side of an assignment to part of a Tensor as an array or Tensor.

    Raises:
        DtypeError: it is a complex number of Python's, or holds one, and the Tensor is real: NumPy takes the real part
            of its own complex numbers, with a warning, but not of these.
        OverflowError, ValueError: it is a number of Python's, or holds one, for which whole numbers of the Tensor's
            dtype have no room.
    """
    if target.dtype.kind in "iu" and not add and are_numbers(value):
        return np.asarray(value, target.dtype)
    if isinstance(value, list | tuple) or holds_objects(value):
        found = as_tensor(value)
    else:
        found = value if type(value) is Tensor else check_numeric("assignment", array_of_any(value))
    if found.dtype.kind == "c" and target.dtype.kind in "iuf" and not add and any(map(is_weak, leaves_of(value))):
        given = f"a complex number for a Tensor of dtype {target.dtype}"
        action = "Take its .real, or convert the Tensor with .astype(complex) first"
        raise DtypeError("assignment", given, "a real number is needed", action)
    if target.dtype.kind in "iu" and not add and is_weak(found):
        return apply(fitted, found, dtype=target.dtype)
    return found


def are_numbers(value: Any) -> bool:
    """Tell whether a value is a number of Python's, or nested lists of them."""
    return type(value) in NUMBERS or (type(value) is list and all(type(x) in NUMBERS for x in leaves_of(value)))


def leaves_of(value: Any) -> Sequence[Any]:
    """Return the leaves of nested lists, or of an array of objects; the value itself if it is neither."""
    return flatten(value.tolist() if holds_objects(value) else value)[0]


def require_depth(rank: int, shape: Sequence[int]) -> None:
    """Raise, as NumPy does, if nested lists for a part of `rank` axes have more than these."""
    if len(shape) > rank:
        given = f"nested lists of shape {tuple(shape)} for a part with {rank} axes"
        needed = "lists no deeper than the part are needed"
        raise ShapeError("assignment", given, needed, "Make them an array first, or leave out the outer brackets")


def is_same_view(value: Any, base: Tensor, path: Sequence[Step]) -> bool:
    """Tell whether a value is the view that some steps lead to from a base."""
    if type(value) is not Tensor:
        return False
    found, steps = base_and_path(value)
    return found is base and steps == path


def same_layout(old: Tensor, new: Tensor) -> bool:
    """Tell whether two values of one shape lie alike in memory, so that they have the same views."""
    before, after, trace = old._value, new._value, old._trace
    is_plain = trace is None or trace.fast  # in lanes, more than the values says how they lie
    if is_plain and type(before) is np.ndarray and type(after) is np.ndarray and trace is new._trace:
        return before.strides == after.strides
    if hasattr(old, "_array"):  # it stays an array, whatever it stands for
        return True
    return bool(strides_of(old) == strides_of(new))


def add_at(target: Tensor, index: Any, value: Any) -> None:
    """Add to part of a Tensor; repeated indices add up, as with `numpy.add.at`."""
    setitem(target, index, value, add=True)


def rebind(target: Tensor, result: Any) -> None:
    """Let a Tensor stand for another value of its own shape and dtype; a view writes through to its base."""
    _, path = base_and_path(target)
    if path or not same_layout(target, result):
        setitem(target, Ellipsis, result)
        return
    require_writable(target)
    if WATCHES:
        note_write(target)
    found = current(result)
    trace, _ = innermost((target, found))
    if trace is None:
        target._value = found._value
        target._kept = found._kept = found._kept or True
    else:
        trace.rebind(target, found)
    if SHARES:
        reach_sharers(target, rebind)
