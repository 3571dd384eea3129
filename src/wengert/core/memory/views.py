"""Views: Tensors that share memory with another, as NumPy's basic slices, reshapes and transposes do.

A view is a handle that remembers its base and the steps that lead from the base to it. It caches the Tensor it
stands for, and takes the steps again when the base has been re-bound by a write. Its trace slot holds `ALIAS`, so
the operators' fast paths, which test that slot anyway, cost ordinary Tensors nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.buffers import BORROWED, copy_alike, keep
from wengert.core.memory.memory_layout import Joined, Strides, example, strides_of, ways_of
from wengert.core.memory.possible_aliases import part_of
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import UNKNOWN
from wengert.core.values.frozen import Frozen
from wengert.core.values.recording import FLOOR, SPECIAL, recording_from
from wengert.core.values.tensor import (
    WATCHES,
    WATCHING,
    Tensor,
    Trace,
    is_concrete,
    is_staged,
    make_tensor,
    new_tensor,
    raw,
)
from wengert.errors import describe
from wengert.support.caches import Cache

Step = tuple[Primitive, tuple[tuple[str, Any], ...]]
Path = tuple[Step, ...]


def extend_path(shape: tuple[int, ...], path: Path, primitive: Primitive, params: dict[str, Any]) -> Path:
    """Return a path with one more step behind it.

    The shape is that of the array where the path begins.
    """
    step = (primitive, tuple(params.items()))
    if not path or primitive.form is None or UNKNOWN in shape:
        return (*path, step)
    *earlier, last = path
    composed = primitive.form.compose(primitive, params, shape_after(shape, earlier), last)
    if composed is None:
        return (*path, step)
    found = tuple(earlier)
    for part, changed in composed:
        found = extend_path(shape, found, part, changed)
    return found


def shape_after(shape: tuple[int, ...], path: Sequence[Step]) -> tuple[int, ...]:
    """Return the shape of the view at the end of a path."""
    if not path:
        return shape
    window: Any = np.broadcast_to(np.empty(()), shape)
    for primitive, params in path:
        window = primitive.evaluate(window, **dict(params))
    return window.shape  # type: ignore[no-any-return]  # a tuple


SHARING: Cache[Any, bool] = Cache()
"""Whether steps from an array of some shape give a view: functions that are traced take the same steps many times."""

EVERYTHING = -math.inf
"""The level from which on everything is recorded."""

Dispatch = Callable[[Primitive, Sequence[Any], dict[str, Any]], Any]


class Derivation:
    """Hold what a view handle stands for: a base, the steps from it, and what they gave last time.

    Whether a view is differentiated was settled when it was made (not if under `no_grad`), whatever the mode is when
    it has to be derived anew: `floor` is the level from which on was recorded, where that was not everything.

    Attributes:
        base: the Tensor that owns the memory.
        base_value, base_node: what the base stood for when the steps were taken.
        earlier: the steps before the last, or the view that it was taken from.
        found: the Tensor that the steps gave, or the array if it is a plain one that nobody has asked for.
        primitive, given: the last step, and its parameters, of a part the index alone, as in a node.
        composed: all steps, once somebody has asked for them.
    """

    __slots__ = ("base", "base_node", "base_value", "composed", "earlier", "floor", "found", "given", "primitive")

    dispatch: ClassVar[Dispatch]  # set by `wengert.core.values.dispatch`, which is above
    primitive: Primitive
    given: dict[str, Any] | tuple[Any, ...]
    base: Tensor
    base_value: Any
    base_node: Any
    composed: Path
    earlier: Path | Derivation
    floor: float
    found: Any

    @property
    def params(self) -> dict[str, Any]:
        """The parameters of the last step."""
        given = self.given
        return {"index": given} if isinstance(given, tuple) else given

    @property
    def path(self) -> Path:
        """The steps from the base, composed when somebody first asks for them."""
        if not hasattr(self, "composed"):
            self.composed = extend_path(self.settle().shape, path_of(self.earlier), self.primitive, self.params)
        return self.composed

    @property
    def start(self) -> Path | Derivation:
        """What a view of this one has as its earlier steps: chains of views that wait for being composed stay short."""
        return self if type(self.earlier) is tuple or hasattr(self, "composed") else self.path

    def bind(self, tensor: Tensor, shares: bool) -> None:
        """Cache the Tensor that the steps give for the base as it is now; not if they had to copy."""
        self.found = tensor
        self.base_value = self.base._value if shares else None
        self.base_node = self.base._node

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the Tensor this view stands for."""
        return self.present().shape  # type: ignore[no-any-return]  # an array's, or a Tensor's

    @property
    def dtype(self) -> np.dtype[Any]:
        """The dtype of the Tensor this view stands for."""
        return self.present().dtype  # type: ignore[no-any-return]  # likewise

    def settle(self) -> Tensor:
        """Return the base. One whose shape was set since has become a view itself, of what it was."""
        base = self.base
        if base._trace is ALIAS:
            base = self.base = base._value.base
        return base

    def present(self) -> Any:
        """Return what this view stands for, derived anew if the base has been written to: a Tensor or plain array."""
        base = self.base
        if (base._node is not self.base_node or base._value is not self.base_value) and not self.outlives_grad():
            tensor = base = self.settle()
            with recording_from(getattr(self, "floor", EVERYTHING)):
                for primitive, params in self.path:
                    tensor = Derivation.dispatch(primitive, (tensor,), dict(params))
            earlier = self.found
            self.bind(tensor, shares_memory(tensor, base, base, self.path))
            if type(earlier) is Tensor and earlier._trace is not None:
                earlier._trace.succeed(earlier, tensor)
        return self.found

    def outlives_grad(self) -> bool:
        """Tell whether the base only ceased to require grad since the steps were taken: the view is recorded still."""
        node = self.base._node
        return type(node) is Frozen and node.leaf is self.base_node and self.base._value is self.base_value

    def current(self) -> Tensor:
        """Return the Tensor this view stands for."""
        base, found = self.base, self.found
        if base._node is not self.base_node or base._value is not self.base_value:
            found = self.present()
        if type(found) is Tensor:
            return found
        tensor = self.found = new_tensor()
        tensor._value = found
        tensor._trace = tensor._node = None
        tensor._kept = False
        return tensor


def path_of(earlier: Path | Derivation) -> Path:
    """Return earlier steps, or those to the view that a later one was taken from."""
    return earlier if type(earlier) is tuple else earlier.path  # type: ignore[union-attr]  # a path is a tuple


def window_on(
    base: Tensor,
    earlier: Path | Derivation,
    primitive: Primitive,
    given: dict[str, Any] | tuple[Any, ...],
    found: Any,
) -> Tensor:
    """Return the view handle for what some steps from a base have given, the last of them apart.

    `earlier` are the steps before the last, or the view that it was taken from; `given` are the parameters of the last,
    of a part the index alone; `found` is the Tensor that it gave, or the array of a plain one.
    """
    view = Derivation()  # whose slots are filled here: a call of its own would take as long as all the rest
    view.base = base
    view.base_value = base._value
    view.base_node = base._node
    view.earlier = earlier
    view.primitive = primitive
    view.given = given
    view.found = found
    handle = new_tensor()
    handle._value = view
    handle._trace = ALIAS
    handle._node = None
    handle._kept = False
    if SPECIAL:
        view.floor = float(FLOOR.get())
    if WATCHES and WATCHING.stack:
        WATCHING.stack[-1].born.add(id(handle))
    return handle


class Alias(Trace):
    """Be the trace of view handles: it puts the Tensors that they stand for in their place and dispatches again."""

    __slots__ = ()

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of the Tensor that a view stands for; a view is an array, never a scalar."""
        return strides_of(current(tensor)) if tensor.ndim else ()

    def current(self, tensor: Tensor) -> Tensor:
        """Return the Tensor that a view stands for."""
        return current(tensor)

    def below(self, tensor: Tensor) -> Any:
        """Return the Tensor that a view stands for."""
        return current(tensor)

    def owner(self, tensor: Tensor) -> Any:
        """Return the base, to whom the buffer belongs."""
        return tensor._value.settle()

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply a primitive to what the views among the operands stand for."""
        return with_views_resolved(lambda *xs: Derivation.dispatch(primitive, xs, dict(params)), *operands)


ALIAS = Alias(0)
ALIAS.level = float("inf")


def current(tensor: Tensor) -> Tensor:
    """Return the Tensor that a handle stands for: itself, unless it is a view."""
    return tensor._value.current() if tensor._trace is ALIAS else tensor


def lasting(tensor: Tensor) -> Tensor:
    """Return what a handle stands for, whose memory is relied upon from then on; a copy if its owner may change it."""
    keep(tensor)
    found = current(tensor)
    return detached_buffer(found) if found is not tensor and base_and_path(tensor)[0]._kept is BORROWED else found


def with_views_resolved(function: Callable[..., Any], *operands: Any) -> Any:
    """Call a function with the Tensors that views among its operands stand for.

    If the call keeps one of them as a residual, the base's buffer is relied upon from then on. A base that has
    already been written to will be again, so its views give copies instead: each costs no more than the operation
    that reads it, where a copy of the whole base at the next write could cost far more. So do the views of an ndarray
    that its owner may write to.
    """
    values: list[Any] = []
    for operand in operands:
        if type(operand) is Tensor and (trace := operand._trace) is not None:
            if trace is not ALIAS or operand._value.base._trace is not None:
                break  # what belongs to a trace may be kept
            operand = operand._value.current()
        values.append(operand)
    else:
        return function(*values)
    views: list[tuple[Tensor, Tensor]] = []
    values = []
    for operand in operands:
        if type(operand) is Tensor and operand._trace is ALIAS:
            view = operand._value
            base, operand = view.base, view.found
            if base._value is not view.base_value or base._node is not view.base_node or type(operand) is not Tensor:
                operand = view.current()
                base = view.base
            if base._kept is BORROWED or is_mutated(base):
                operand = detached_buffer(operand)
            else:
                views.append((base, operand))
        values.append(operand)
    result = function(*values)
    for base, tensor in views:
        if tensor._kept:
            base._kept = True
    return result


def is_mutated(tensor: Tensor) -> bool:
    """Tell whether part of a Tensor has been written to."""
    return getattr(tensor, "_mutated", False)  # in a third of the time of catching the error


def would_share_memory(base: Tensor, path: Sequence[Step]) -> bool:
    """Tell whether NumPy would make these steps a view of a base that lies so: for values that are not there yet."""
    return all(shares_in_each_way(base, path))


def shares_in_each_way(base: Tensor, path: Sequence[Step]) -> list[bool]:
    """Tell whether steps are a view of a base, for each way in which it may lie in memory."""
    return [shares_lying(base, path, strides) for strides in ways_of(strides_of(base))]


def shares_lying(base: Tensor, path: Sequence[Step], strides: Strides) -> bool:
    """Tell whether steps are a view of a base that lies in memory in some way."""
    kind = base.shape, base.dtype, strides
    key = kind, path
    try:
        shares = SHARING.get(key)
    except TypeError:  # slices cannot be keys
        return tried_on_memory(kind, path)
    if shares is None:
        shares = SHARING[key] = tried_on_memory(kind, path)
    return shares


def tried_on_memory(kind: tuple[Any, Any, Strides], path: Sequence[Step]) -> bool:
    """Tell whether NumPy makes these steps a view of an array of some shape, dtype and strides."""
    shape, dtype, strides = kind
    window = example(shape, strides, dtype)
    for primitive, params in path:
        before, window = window, primitive.evaluate(window, **dict(params))
        if type(before) is not np.ndarray or type(window) is not np.ndarray or not is_window(window, before):
            return False
    return True


def is_window_of_lanes(tensor: Tensor, source: Tensor) -> bool:
    """Tell whether a value that is no view, a scalar say, is one on the level below, where all lanes are one array."""
    if is_concrete(tensor):
        return False
    value = tensor._value
    if type(value) is Tensor:
        return value._trace is ALIAS
    return isinstance(value, np.ndarray) and 0 in (tensor.ndim, source.ndim)


def detached_buffer(tensor: Tensor) -> Tensor:
    """Return the same value, known to its trace by the same node, in a buffer of its own."""
    trace = tensor._trace
    return make_tensor(copy_alike(tensor._value), None, None) if trace is None else trace.duplicate(tensor)


def share(tensor: Tensor) -> Tensor:
    """Return another handle of the same value; a write to either copies first."""
    if tensor._trace is None and type(tensor._value) is np.ndarray:  # as most in eager loops are
        kept = tensor._kept = tensor._kept or True
        other = make_tensor(tensor._value, None, tensor._node)
        other._kept = kept
        return other
    keep(tensor)
    is_view = tensor._trace is ALIAS
    found = current(tensor) if is_view else tensor
    other = make_tensor(found._value, found._trace, found._node)
    other._kept = (base_and_path(tensor)[0] if is_view else tensor)._kept
    if hasattr(found, "_array"):
        other._array = found._array
    return other


def base_and_path(tensor: Tensor) -> tuple[Tensor, Path]:
    """Return the Tensor that owns the memory of a handle, and the steps from there to it."""
    if tensor._trace is ALIAS:
        return tensor._value.settle(), tensor._value.path
    return tensor, ()


def reshape_in_place(tensor: Tensor, reshaped: Tensor) -> None:
    """Let a handle be another view of its own memory.

    What owns its memory becomes a view of a new owner, which views made before find when they look for theirs.
    """
    if tensor._trace is not ALIAS:
        owner = make_tensor(tensor._value, tensor._trace, tensor._node)
        owner._kept = tensor._kept
        for name in ("_array", "_fixed", "_mutated"):
            if hasattr(tensor, name):
                setattr(owner, name, getattr(tensor, name))
        if WATCHES and WATCHING.stack:
            WATCHING.stack[-1].born.add(id(owner))
        reshaped._value.base = owner
    tensor._value, tensor._trace, tensor._node, tensor._kept = reshaped._value, ALIAS, None, False


def apply_view(primitive: Primitive, operands: Sequence[Any], params: dict[str, Any]) -> Any:
    """Apply a primitive whose result may share memory with operand 0; if it does, return a view handle."""
    source, dispatch = operands[0], Derivation.dispatch
    if len(operands) > 1:  # elements at an index of arrays: no view
        return with_views_resolved(lambda *xs: dispatch(primitive, xs, params), *operands)
    base, path = base_and_path(source)
    tensor = dispatch(primitive, (current(source),), params)
    if type(tensor) is not Tensor:
        return tensor
    steps = extend_path(base.shape, path, primitive, params)
    if not shares_memory(tensor, source, base, steps):
        apart = detached_buffer(tensor) if is_window_of_lanes(tensor, source) else tensor
        if not is_concrete(base) and any(shares_in_each_way(base, steps)):
            part_of(base, apart, None, undecided_text(primitive.name))
        return apart
    return window_on(base, path, primitive, params, tensor)


def undecided_text(name: str) -> str:
    """Return the text of the error about an array and what may be a view of it, after a write to the other."""
    return (
        describe(
            name,
            "an array and a view or a copy of it, as its memory order decides that traced branches left,"
            " and one of the two has been written to since",
            "it must be known which array a write changes",
            "Copy the array first, with order='C' for instance",
        )
        + f"\n  {position_of(*caller())}"
    )


def shares_memory(result: Tensor, source: Tensor, base: Tensor, path: Sequence[Step]) -> bool:
    """Tell whether the result of a view primitive is a window on the source's buffer (not a copy or a scalar)."""
    trace = result._trace
    if (trace is None or trace.fast) and type(result._value) is np.ndarray and type(source._value) is np.ndarray:
        return is_window(result._value, source._value)
    if is_staged(result) or (
        not is_concrete(result) and (0 in (result.ndim, source.ndim) or type(strides_of(base)) is Joined)
    ):
        return would_share_memory(base, path)  # a scalar of a lane is a window below
    window, buffer = raw(result), raw(source)
    if isinstance(buffer, np.generic):
        return would_share_memory(base, path)
    return type(window) is np.ndarray and type(buffer) is np.ndarray and is_window(window, buffer)


def is_window(window: np.ndarray[Any, Any], buffer: np.ndarray[Any, Any]) -> bool:
    """Tell whether an array is another, or was made as a view of it or of the same owner."""
    owner = buffer if buffer.base is None else buffer.base
    if window is buffer or window.base is owner or window.base is buffer:
        return True
    if window.base is None or type(window.base) is np.ndarray:
        return False
    between = getattr(window.base, "base", None)  # as_strided puts an object between
    return between is buffer or between is owner or np.may_share_memory(window, buffer)
