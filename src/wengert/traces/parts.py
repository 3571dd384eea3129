"""The compact paths of `x[i]` and `x[i] = y`: numbers and plain slices, on plain Tensors and those of a live tape.

They are to indexing what `operators` is to arithmetic: the type tests, the operation, one node. Everything else
(index arrays, views, nested transformations, values relied upon by others) goes the general way.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import RECENT, asker, caller, is_users
from wengert.core.memory.buffers import lent, may_overwrite
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.possible_aliases import SHARES
from wengert.core.memory.view_paths import Path, extended
from wengert.core.memory.views import ALIAS, Derivation, base_and_path, window_on
from wengert.core.memory.write_watches import WATCHES
from wengert.core.values.recording import SPECIAL, settings
from wengert.core.values.tensor import Tensor, new_tensor
from wengert.primitives.index_layout import OPERAND
from wengert.primitives.indexing import assign, getitem, read_index, rebind, setitem
from wengert.primitives.shapes import reshape
from wengert.support.deferred_warnings import require_warning
from wengert.traces.batch import Batch, make_batched, rearranged
from wengert.traces.hooks import hand_on
from wengert.traces.nodes import CREATED, Leaf, Node
from wengert.traces.recorders import recorded_view, single_function

__all__ = ["Gathered", "Part", "Scattered", "Written", "read_part", "write_part", "write_through"]

ndarray = np.ndarray
DIRECT = frozenset({float, int, np.float64, ndarray})
"""Types of what most writes put into an array, which NumPy takes as it is."""
WHOLE = slice(None)
PLACES = np.dtype(np.intp)
reshaped = single_function(reshape)
_getframe = sys._getframe


class Part(Node):
    """Be the reading of a part, by a basic index; `used` once a sweep has passed that did not retain the graph."""

    __slots__ = ("index", "parent", "used")

    index: tuple[Any, ...]
    parent: Node
    used: bool

    @property
    def parents(self) -> Sequence[Node | None]:
        """The node of the operand."""
        return (self.parent,)

    @property
    def params(self) -> Mapping[str, Any]:
        """The index."""
        return {"index": self.index}

    @property
    def released(self) -> bool:
        """Whether a sweep has passed."""
        return self.used

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return that nothing was saved."""
        return None, (None,)

    def release(self) -> None:
        """Remember that a sweep has passed."""
        self.used = True


class Gathered(Part):
    """Be the reading of elements by an index with arrays of integers or booleans."""

    __slots__ = ()

    @property
    def arrays(self) -> list[Any]:
        """The arrays in the index."""
        return arrays_in(self.index)

    @property
    def parents(self) -> Sequence[Node | None]:
        """The node of the operand, and none for the arrays."""
        return (self.parent, *(None for _ in self.arrays))

    @property
    def params(self) -> Mapping[str, Any]:
        """The index without its arrays."""
        return {"index": without_arrays(self.index)}

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the arrays."""
        return None, (None, *self.arrays)


class Written(Node):
    """Be an assignment to a part, by a basic index; `used` once a sweep has passed that did not retain the graph."""

    __slots__ = ("index", "left", "right", "used")

    index: tuple[Any, ...]
    left: Node | None
    right: Node | None
    used: bool

    @property
    def parents(self) -> Sequence[Node | None]:
        """The nodes of what was written to and of what was written."""
        return (self.left, self.right)

    @property
    def params(self) -> Mapping[str, Any]:
        """The index, in the general form."""
        return {"path": (), "index": self.index, "add": False}

    @property
    def released(self) -> bool:
        """Whether a sweep has passed."""
        return self.used

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return that nothing was saved."""
        return None, (None, None)

    def release(self) -> None:
        """Remember that a sweep has passed."""
        self.used = True


class Scattered(Written):
    """Be the assignment of a number by an index with arrays of integers or booleans."""

    __slots__ = ()

    @property
    def arrays(self) -> list[Any]:
        """The arrays in the index."""
        return arrays_in(self.index)

    @property
    def parents(self) -> Sequence[Node | None]:
        """The node of what was written to, and none for the number and the arrays."""
        return (self.left, None, *(None for _ in self.arrays))

    @property
    def params(self) -> Mapping[str, Any]:
        """The index without its arrays, in the general form."""
        return {"path": (), "index": without_arrays(self.index), "add": False}

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the arrays."""
        return None, (None, None, *self.arrays)


def arrays_in(index: tuple[Any, ...]) -> list[Any]:
    """Return the arrays in an index."""
    return [entry for entry in index if type(entry) is ndarray]


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


def lent_index(index: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return an index with arrays that nobody can change."""
    return tuple([lent(entry) if type(entry) is ndarray else entry for entry in index])


class PartOf(Derivation):
    """Be the derivation of a view of a part."""

    __slots__ = ("index",)

    primitive = getitem
    index: tuple[Any, ...]

    @property
    def params(self) -> dict[str, Any]:  # type: ignore[override]  # what nobody sets
        """The index."""
        return {"index": self.index}


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
    if trace is not None or type(out) is not ndarray:
        part = new_tensor()
        part._value = out
        part._trace = trace
        part._kept = False
        if trace is None:
            part._node = None
        else:
            node = part._node = Part()
            node.number = next(CREATED)
            node.primitive = getitem
            node.shape, node.dtype = out.shape, out.dtype
            node.hooks = None
            node.parent, node.index, node.used = x._node, entries, False
            node.code, node.offset = place(_getframe(1))
        if type(out) is not ndarray:
            return part  # type: ignore[no-any-return]  # a Tensor
    view = PartOf()
    view.base = base
    view.base_value = base._value
    view.base_node = base._node
    view.earlier = earlier
    view.index = entries
    view.found = part
    if SPECIAL:
        view.floor = settings().floor
    handle = new_tensor()
    handle._value = view
    handle._trace = ALIAS
    handle._node = None
    handle._kept = False
    return handle


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
    if trace is not None:
        entries = lent_index(entries)
    result = new_tensor()
    out = result._value = x._value[entries]
    result._trace = trace
    result._kept = False
    if trace is None:
        result._node = None
        return result
    node = result._node = Gathered()
    node.number = next(CREATED)
    node.primitive = getitem
    node.shape, node.dtype = out.shape, out.dtype
    node.hooks = None
    node.parent, node.index, node.used = x._node, entries, False
    node.code, node.offset = caller(3)
    return result


def write_part(target: Tensor, index: Any, value: Any) -> None:
    """Assign `target[index] = value`."""
    trace = target._trace
    if trace is None and not target._kept and not WATCHES and type(buffer := target._value) is ndarray:
        new = value
        if type(value) is Tensor:
            new = value._value if value._trace is None else None
        elif type(value) is not float and type(value) is not int:
            new = None
        if new is not None and (
            type(index) is int
            or plain_index(index) is not None
            or (new is value and type(index) is ndarray and index.dtype.kind in "iub")
        ):
            try:
                buffer[index] = new
            except (TypeError, ValueError):  # where more is said, or warned; or a buffer is copied that is read-only
                pass
            else:
                target._mutated = True
                return
    entries = plain_index(index)
    kind: type[Written] = Written
    if entries is None and trace is not ALIAS and (type(value) is float or type(value) is int):
        entries, kind = gathering_index(index), Scattered
    if trace is ALIAS and entries is not None:
        view = target._value
        place_in_base = extended(view.settled().shape, view.path, getitem, {"index": entries})
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
    buffer = target._value
    if (
        entries is None
        or not may_overwrite(buffer, target._kept)
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
        buffer[entries] = written
    except TypeError as error:
        require_warning(error)
        setitem(target, index, value)
        return
    target._mutated = True
    if trace is None:
        return
    node = kind()
    node.number = next(CREATED)
    node.primitive = assign
    node.shape, node.dtype = buffer.shape, buffer.dtype
    node.hooks = None
    node.index = entries if kind is Written else lent_index(entries)
    node.left = left = None if target._trace is None else target._node
    node.right, node.used = right, False
    node.code, node.offset = place(_getframe(1))
    if left is not None and left.hooks is not None:
        hand_on(left, node)
    target._trace = trace
    target._node = node


def is_at(view: Derivation, entries: tuple[Any, ...] | None) -> bool:
    """Tell whether a view is that of the part of its base at an index."""
    if type(view) is PartOf and not view.earlier:
        return view.index == entries
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
    target._node = asker(3)
    target._mutated = True
    return True


def place(frame: Any) -> Any:
    """Return the code and offset of a frame, or of the first one outside the library."""
    code = frame.f_code
    return (code, frame.f_lasti) if code is RECENT[0] or is_users(code) else caller()
