"""The compact paths of `x[i]` and `x[i] = y`: numbers and plain slices, on plain Tensors and those of a live tape.

They are to indexing what `eager_operators` is to arithmetic: the type tests, the operation, one node. Everything else
(index arrays, views, nested transformations, values relied upon by others) goes the general way.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import RECENT, caller
from wengert.core.memory.buffers import lent, may_overwrite
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.possible_aliases import SHARES
from wengert.core.memory.views import ALIAS, Derivation, Path, base_and_path, extend_path, window_on
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, Trace, plain_tensor
from wengert.primitives.indexing.index_layout import OPERAND
from wengert.primitives.indexing.parts import assign, getitem, read_index, rebind, setitem
from wengert.primitives.shapes import reshape
from wengert.support.deferred_warnings import require_warning
from wengert.traces.batch import Batch, make_batched, rearranged
from wengert.traces.eager_functions import eager_single, recorded_view
from wengert.traces.hooks import hand_on
from wengert.traces.nodes import NOTHING, Leaf, Node, new_node, record_result

ndarray = np.ndarray
DIRECT = frozenset({float, int, np.float64, ndarray})
"""Types of what most writes put into an array, which NumPy takes as it is."""
WHOLE = slice(None)
_getframe = sys._getframe
ALONE = (OPERAND,)
PLACES = np.dtype(np.intp)
reshaped = eager_single(reshape)


def without_arrays(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with what stands for operands in place of its arrays."""
    return tuple([OPERAND if type(entry) is ndarray else entry for entry in index])


def is_basic(entry: Any) -> bool:
    """Tell whether an entry of an index is a Python integer, a slice of such, None or an ellipsis."""
    if type(entry) is slice:
        start, stop, step = entry.start, entry.stop, entry.step
        return (
            (start is None or type(start) is int)
            and (stop is None or type(stop) is int)
            and (step is None or type(step) is int)
        )
    return type(entry) is int or entry is None or entry is Ellipsis


def plain_index(index: Any) -> tuple[Any, ...] | None:
    """Return an index as a tuple of integers, slices, None and ellipses; None if it is anything else."""
    if type(index) is not tuple:
        return (index,) if is_basic(index) else None
    for entry in index:
        if type(entry) is slice:  # as in `is_basic`, whose call would take as long
            if (
                ((bound := entry.start) is not None and type(bound) is not int)
                or ((bound := entry.stop) is not None and type(bound) is not int)
                or ((bound := entry.step) is not None and type(bound) is not int)
            ):
                return None
        elif type(entry) is not int and entry is not None and entry is not Ellipsis:
            return None
    return index


def is_whole(entry: Any) -> bool:
    """Tell whether an entry of an index leaves nothing out, and nothing but axes of length one changes."""
    return entry is None or entry is Ellipsis or entry == WHOLE


def gathering_index(index: Any) -> tuple[Any, ...] | None:
    """Return an index with ndarrays of integers or booleans with axes as a tuple; None for any other."""
    entries = index if type(index) is tuple else (index,)
    for entry in entries:
        kind = type(entry)
        if kind is ndarray:
            if (entry.dtype is not PLACES and entry.dtype.kind not in "iub") or not entry.ndim:
                return None
        elif kind is slice:  # as in `is_basic`
            if (
                ((bound := entry.start) is not None and type(bound) is not int)
                or ((bound := entry.stop) is not None and type(bound) is not int)
                or ((bound := entry.step) is not None and type(bound) is not int)
            ):
                return None
        elif kind is not int and entry is not None and entry is not Ellipsis:
            return None
    return entries


def read_part(x: Tensor, index: Any) -> Tensor:
    """Return `x[index]`."""
    trace = x._trace
    value = x._value
    base = given = x
    earlier: Path | Derivation = ()
    if trace is not None or type(value) is not ndarray or WATCHES:
        if trace is ALIAS:
            x = value.current()
            base, earlier = value.base, value.start
            trace, value = x._trace, x._value
        if type(value) is not ndarray or (trace is not None and (SPECIAL or not trace.fast)) or WATCHES:
            if given is not x:
                return read_index(given, index)
            if index is None and trace is None and type(value) is np.float64 and hasattr(x, "_array") and not WATCHES:
                return window_on(x, (), reshape, {"shape": (1,), "order": "C"}, x._value[None])
            if index is None and (type(value) is np.float64 or (type(trace) is Batch and value.ndim == 1)):
                return reshaped(x, {"shape": (1,), "order": "C"})
            return read_lanes(x, trace, index) if type(trace) is Batch else read_index(x, index)
    if type(index) is int or (type(index) is slice and is_basic(index)):
        entries: tuple[Any, ...] = (index,)
    elif type(index) is not ndarray and (found := plain_index(index)) is not None:
        entries = found
    else:
        return gather(x, index) if given is x else read_index(given, index)
    out = value[entries]
    if trace is not None and out.ndim > value.ndim and out.size == value.size and all(map(is_whole, entries)):
        params = {"shape": out.shape, "order": "C"}
        return recorded_view(x, reshape, params, out) if given is x else reshaped(given, params)
    part: Any = out
    if trace is not None:
        code = (frame := _getframe(1)).f_code
        place = (code, frame.f_lasti) if code is RECENT[0] else caller(2)
        part = record_result(out, trace, getitem, (x._node,), entries, NOTHING[1], False, place)
    elif type(out) is not ndarray:
        return plain_tensor(out)
    return part if type(out) is not ndarray else window_on(base, earlier, getitem, {"index": entries}, part)


def read_lanes(x: Tensor, trace: Batch, index: Any) -> Tensor:
    """Return `x[index]` of every lane of a batch."""
    value = x._value
    entries = plain_index(index)
    if type(value) is not ndarray or value.ndim < 2 or len(x._node) > 2 or trace.ended or WATCHES:
        return read_index(x, index)
    if entries is None:
        return gather_lanes(x, trace, index)
    lanes = value[(WHOLE, *entries)]
    if lanes.ndim > 1:
        return window_on(x, (), getitem, {"index": entries}, make_batched(lanes, trace))
    if Ellipsis in entries:
        return read_index(x, index)
    return make_batched(lanes.copy(), trace)


def gather_lanes(x: Tensor, trace: Batch, index: Any) -> Tensor:
    """Return `x[index]` of every lane for an index with arrays side by side, which are the same in every lane."""
    entries = gathering_index(index)
    value = x._value
    if entries is None or not len(value) or not are_together(entries):
        return read_index(x, index)
    lanes = value[(WHOLE, *entries)]
    if lanes.ndim > 2:
        lanes = rearranged(lanes, strides_of(value[0][entries]))
    elif not lanes.flags.c_contiguous:
        lanes = lanes.copy()
    return make_batched(lanes, trace)


def are_together(entries: Sequence[Any]) -> bool:
    """Tell whether the arrays and integers of an index stand side by side: what they select then stays in its place."""
    places = [i for i, entry in enumerate(entries) if type(entry) is ndarray or type(entry) is int]
    return not places or places[-1] - places[0] == len(places) - 1


def gather(x: Tensor, index: Any) -> Tensor:
    """Return `x[index]` for an ndarray under a plain Tensor or one of a live tape."""
    trace = x._trace
    entries = gathering_index(index)
    if entries is None:
        return read_index(x, index)
    out = x._value[entries]
    if trace is None:
        return plain_tensor(out)
    if len(entries) == 1:
        return record_result(out, trace, getitem, (x._node, None), ALONE, (None, lent(entries[0])), False, caller(3))
    arrays = [lent(entry) for entry in entries if type(entry) is ndarray]
    inputs = (x._node, *[None] * len(arrays))
    return record_result(out, trace, getitem, inputs, without_arrays(entries), (None, *arrays), False, caller(3))


@strict
def overwrite_plain(target: Tensor, index: Any, value: Any) -> bool:
    """Write a number or plain Tensor into a plain ndarray that nobody relies on; tell whether that was possible."""
    buffer = target._value
    if target._kept or WATCHES or type(buffer) is not ndarray:
        return False
    new = value
    if type(value) is Tensor:
        new = value._value if value._trace is None else None
    elif type(value) is not float and type(value) is not int:
        new = None
    if new is None or not (
        type(index) is int
        or plain_index(index) is not None
        or (new is value and type(index) is ndarray and index.dtype.kind in "iub")
    ):
        return False
    try:
        buffer[index] = new
    except (TypeError, ValueError):  # where more is said, or warned; or a buffer is copied that is read-only
        return False
    target._mutated = True
    return True


def write_part(target: Tensor, index: Any, value: Any) -> None:
    """Assign `target[index] = value`."""
    trace = target._trace
    if trace is None and overwrite_plain(target, index, value):
        return
    entries = plain_index(index)
    gathered = entries is None and trace is not ALIAS and (type(value) is float or type(value) is int)
    if gathered:
        entries = gathering_index(index)
    if trace is ALIAS and entries is not None:
        view = target._value
        place_in_base = extend_path(view.settle().shape, view.path, getitem, {"index": entries})
        if len(place_in_base) == 1 and place_in_base[0][0] is getitem:
            target = view.base
            index = entries = place_in_base[0][1][0][1]
            trace = target._trace
    written = value
    right = None
    if type(value) is Tensor:
        other = value._trace
        if other is not None:
            if other is ALIAS and value._value.base is target and is_at(value._value, entries):
                return  # the second half of `target[index] += ...`, whose first half has written through the view
            right = value._node
            if trace is None:
                trace = other if target._value.dtype.kind in "fc" else ALIAS
            elif other is not trace:
                trace = ALIAS
        written = value._value
    if (
        entries is None
        or not may_overwrite(target._value, target._kept)
        or not (type(written) in DIRECT or isinstance(written, np.generic))
        or type(target._node) is Leaf
        or (trace is not None and (SPECIAL or not trace.fast))
        or type(value) is ndarray
        or WATCHES
    ):
        if type(trace) is not Batch or not write_lanes(target, trace, index, value):
            setitem(target, index, value)
        return
    try:
        target._value[entries] = written
    except TypeError as error:
        require_warning(error)
        setitem(target, index, value)
        return
    target._mutated = True
    if trace is not None:
        record_write(target, trace, entries, right, gathered)


def record_write(target: Tensor, trace: Trace, entries: tuple[Any, ...], right: Node | None, gathered: bool) -> None:
    """Record on a live tape that part of the array under a Tensor was overwritten.

    Args:
        target: the Tensor, whose array holds the new elements.
        trace: the tape.
        entries: the index.
        right: the node of what was written; None if that was a constant.
        gathered: whether the index has arrays.
    """
    left = None if target._trace is None else target._node
    inputs: tuple[Node | None, ...] = left, right
    saved: tuple[Any, ...] = NOTHING[2]
    if gathered:
        arrays = [lent(entry) for entry in entries if type(entry) is ndarray]
        inputs = (left, right, *[None] * len(arrays))
        saved = (None, None, *arrays)
        entries = without_arrays(entries)
    node = new_node(assign, inputs, entries, saved, caller(3), target._value)
    if left is not None and left.hooks is not None:
        hand_on(left, node)
    target._trace = trace
    target._node = node


def is_at(view: Derivation, entries: tuple[Any, ...] | None) -> bool:
    """Tell whether a view is that of the part of its base at an index."""
    if view.primitive is getitem and view.earlier == ():
        return bool(view.params["index"] == entries)
    return view.path == ((getitem, (("index", entries),)),)


def write_through(view: Tensor, value: Any) -> None:
    """Let a view stand for another value of its shape and dtype, by writing it to its base."""
    base, path = base_and_path(view)
    if len(path) == 1 and path[0][0] is getitem:
        write_part(base, path[0][1][0][1], value)
    else:
        rebind(view, value)


def write_lanes(target: Tensor, trace: Batch, index: Any, value: Any) -> bool:
    """Assign `target[index] = value` in every lane, and tell whether that was possible in this short way."""
    buffer = target._value
    if (
        target._trace is not trace
        or trace.ended
        or not may_overwrite(buffer, target._kept)
        or buffer.ndim < 2
        or len(target._node) > 2
        or WATCHES
        or SHARES
    ):
        return False
    entries = plain_index(index)
    if type(value) is Tensor:
        if entries is None or value._trace is not trace or type(value._value) is not ndarray:
            return False
        value = value._value
        window = buffer[(WHOLE, *entries)]
        if value.shape != window.shape:
            return False
        window[...] = value
    elif type(value) is float or type(value) is int:
        if entries is None:
            entries = gathering_index(index)
        if entries is None or not are_together(entries):
            return False
        buffer[(WHOLE, *entries)] = value
    else:
        return False
    target._node = caller(3, False)
    target._mutated = True
    return True
