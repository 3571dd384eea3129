"""The door of `x[i]` and `x[i] = y`, the primitives `getitem` and `assign`: numbers, slices and arrays in the index.

What the index has to say is found out first; the rest is as in `eager`. Whatever is neither plain nor of a live tape
(views, nested transformations, values relied upon by others) goes the general way.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict
from wengert.core.diagnostics.source_positions import caller
from wengert.core.memory.buffers import lent, may_overwrite
from wengert.core.memory.views import ALIAS, Derivation, base_and_path, extend_path, window_on
from wengert.core.values.recording import SPECIAL
from wengert.core.values.tensor import WATCHES, Tensor, new_tensor, plain_tensor
from wengert.primitives.indexing.index_layout import OPERAND, is_whole, static_index, without_arrays
from wengert.primitives.indexing.parts import assign, getitem, read_index, rebind, setitem
from wengert.primitives.shapes import reshape
from wengert.support.deferred_warnings import require_warning
from wengert.traces.eager import eager
from wengert.traces.hooks import hand_on
from wengert.traces.nodes import NOTHING, Leaf, Node, new_node, record_result

ndarray = np.ndarray
ALONE = (OPERAND,)
DIRECT = frozenset({float, int, np.float64, ndarray})
"""Types of what most writes put into an array, which NumPy takes as it is."""


def read_elsewhere(x: Tensor, params: dict[str, Any]) -> Tensor:
    """Return a part of a Tensor by an index without arrays where a trace decides, or there is but a number."""
    if params["index"] == (None,) and not x.ndim:
        return reshaped(x, {"shape": (1,), "order": "C"})
    return read_index(x, params["index"])


part = eager(getitem, 1, otherwise=read_elsewhere)
reshaped = eager(reshape)


def read_part(x: Tensor, index: Any) -> Any:
    """Return `x[index]`."""
    entries: tuple[Any, ...]
    kind = type(index)
    if (
        kind is int
        or index is None
        or (
            kind is slice  # as in `static_index`, whose call would take a tenth of the time
            and ((bound := index.start) is None or type(bound) is int)
            and ((bound := index.stop) is None or type(bound) is int)
            and ((bound := index.step) is None or type(bound) is int)
        )
    ):
        entries = (index,)
    elif kind is not ndarray and (found := static_index(index)) is not None:
        entries = found
    else:
        return gather(x, index)
    trace, value, source = x._trace, x._value, x
    if trace is None and type(value) is ndarray and not WATCHES:  # as most are
        out = value[entries]
        if type(out) is not ndarray:
            return plain_tensor(out)
        if SPECIAL:
            return window_on(x, (), getitem, entries, out)
        view = Derivation()  # as in `window_on`, whose call would take a twelfth of the time
        view.base = x
        view.base_value = value
        view.base_node = x._node
        view.earlier = ()
        view.primitive = getitem
        view.given = entries
        view.found = out
        handle = new_tensor()
        handle._value = view
        handle._trace = ALIAS
        handle._node = None
        handle._kept = False
        return handle
    if trace is ALIAS:
        source = value.current()
        trace, value = source._trace, source._value
    if type(value) is not ndarray or WATCHES or (trace is not None and (SPECIAL or not trace.fast)):
        return part(x, {"index": entries})
    out = value[entries]
    found_part = out
    if trace is not None:
        if None in entries and all(map(is_whole, entries)):
            return reshaped(x, {"shape": out.shape, "order": "C"}, out)
        found_part = record_result(out, trace, getitem, (source._node,), entries, NOTHING[1], False)
    elif type(out) is not ndarray:
        return plain_tensor(out)
    if type(out) is not ndarray:
        return found_part
    if source is x:
        return window_on(x, (), getitem, entries, found_part)
    view = x._value
    return window_on(view.base, view.start, getitem, entries, found_part)


def gather(x: Tensor, index: Any) -> Tensor:
    """Return `x[index]` for an index that may have arrays in it."""
    trace = x._trace
    if trace is ALIAS or WATCHES or (entries := static_index(index, arrays=True)) is None:
        return read_index(x, index)
    if trace is None and type(x._value) is ndarray:
        result = new_tensor()
        result._value = x._value[entries]
        result._trace = result._node = None
        result._kept = False
        return result
    if trace is not None and (SPECIAL or not trace.fast):
        found = trace.offer(getitem, (x,), {"index": entries})
        return read_index(x, index) if found is None else found
    if type(x._value) is not ndarray:
        return read_index(x, index)
    out = x._value[entries]
    if len(entries) == 1:
        return record_result(out, trace, getitem, (x._node, None), ALONE, (None, lent(entries[0])), False, 3)
    arrays = [lent(entry) for entry in entries if type(entry) is ndarray]
    inputs = (x._node, *(None,) * len(arrays))
    return record_result(out, trace, getitem, inputs, without_arrays(entries), (None, *arrays), False, 3)


def write_part(target: Tensor, index: Any, value: Any) -> None:
    """Assign `target[index] = value`: at once a number or plain Tensor to a plain ndarray that nobody relies on."""
    if target._trace is None and not target._kept and not WATCHES and type(buffer := target._value) is ndarray:
        new = value
        if type(value) is Tensor:
            new = value._value if value._trace is None else None
        elif type(value) is not float and type(value) is not int:
            new = None
        if new is not None and (
            type(index) is int
            or (type(index) is not ndarray and static_index(index) is not None)
            or (new is value and type(index) is ndarray and index.dtype.kind in "iub")
        ):
            try:
                buffer[index] = new
            except (TypeError, ValueError):  # where more is said, or warned; or a buffer is copied that is read-only
                pass
            else:
                target._mutated = True
                return
    write_recorded(target, index, value)


@strict
def write_recorded(target: Tensor, index: Any, value: Any) -> None:
    """Assign `target[index] = value` where that may have to be recorded."""
    trace = target._trace
    entries = static_index(index)
    gathered = entries is None and trace is not ALIAS and (type(value) is float or type(value) is int)
    if gathered:
        entries = static_index(index, arrays=True)
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
        if trace is None or target._trace is not trace or not trace.overwrite(target, index, value):
            setitem(target, index, value)
        return
    try:
        target._value[entries] = written
    except TypeError as error:
        require_warning(error)
        setitem(target, index, value)
        return
    target._mutated = True
    if trace is None:
        return
    left = None if target._trace is None else target._node
    inputs: tuple[Node | None, ...] = left, right
    saved: tuple[Any, ...] = NOTHING[2]
    if gathered:
        arrays = [lent(entry) for entry in entries if type(entry) is ndarray]
        inputs = (left, right, *(None,) * len(arrays))
        saved = (None, None, *arrays)
        entries = ALONE if len(entries) == 1 else without_arrays(entries)
    target._node = new_node(assign, inputs, entries, saved, caller(3), target._value)
    target._trace = trace
    if left is not None and left.hooks is not None:
        hand_on(left, target._node)


def is_at(view: Derivation, entries: tuple[Any, ...] | None) -> bool:
    """Tell whether a view is that of the part of its base at an index."""
    if view.primitive is getitem and view.earlier == ():
        return bool(view.given == entries)
    return view.path == ((getitem, (("index", entries),)),)


def write_through(view: Tensor, value: Any) -> None:
    """Let a view stand for another value of its shape and dtype, by writing it to its base."""
    base, path = base_and_path(view)
    if len(path) == 1 and path[0][0] is getitem:
        write_part(base, path[0][1][0][1], value)
    else:
        rebind(view, value)
