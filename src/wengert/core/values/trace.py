"""Traces: what the operations on a Tensor mean while they are being differentiated, batched or staged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import count
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from wengert.core.memory.buffers import copied
from wengert.core.memory.memory_layout import Strides, strides_of
from wengert.core.values.aval import shape_of
from wengert.core.values.tensor import Tensor, make_tensor

if TYPE_CHECKING:
    from wengert.core.primitives.kinds import Linear
    from wengert.core.primitives.primitive import Primitive

__all__ = ["Trace", "alike", "next_level"]

_levels = count(1)


def next_level() -> int:
    """Return a level newer than every other; `next` on a counter is atomic, so threads need no lock."""
    return next(_levels)


def alike(one: Any, other: Any) -> bool:
    """Tell whether two values certainly have the same elements: truths, whose derivatives are nobody's."""
    if one is other:
        return True
    if type(one) is Tensor and type(other) is Tensor:
        return one._trace is other._trace and (
            alike(one._value, other._value) if one._trace is None else one._trace.alike(one, other)
        )
    return isinstance(one, np.ndarray) and isinstance(other, np.ndarray) and np.array_equal(one, other)


class Trace:
    """Give meaning to operations on the Tensors that carry it.

    An operation goes to the trace with the highest level among its operands; to that trace the other operands are
    constants. `fast` is true while the compact operator paths of the tape may be used: only on a live tape.
    """

    __slots__ = ("fast", "level")
    concrete: ClassVar[bool] = True  # whether the values under this trace can be looked at (truth, float, indices)
    staged: ClassVar[bool] = False  # whether they have no elements at all yet

    def __init__(self, level: int) -> None:
        self.level: float = level
        self.fast = False

    @property
    def owner_name(self) -> str:
        """The transformation and its function, for errors; only traces of transformations have one."""
        raise NotImplementedError

    def shape(self, tensor: Tensor) -> tuple[int, ...]:
        """Return the shape of a Tensor of this trace."""
        return shape_of(tensor._value)

    def rank(self, tensor: Tensor) -> int:
        """Return the number of axes of a Tensor of this trace."""
        return len(tensor.shape)

    def strides(self, tensor: Tensor) -> Strides:
        """Return the strides of a Tensor of this trace; see `wengert.core.memory.memory_layout`."""
        return strides_of(tensor._value)

    def current(self, tensor: Tensor) -> Tensor:
        """Return the Tensor that a handle of this trace stands for: itself, unless it is a view."""
        return tensor

    def below(self, tensor: Tensor) -> Any:
        """Return the value one level below that holds the elements of a Tensor of this trace."""
        return tensor._value

    def tangent_below(self, operand: Any) -> Any:  # what traces of forward mode know
        """Return the tangent of an operand, a value one level below; None if there is none."""
        return None

    def owner(self, tensor: Tensor) -> Any:
        """Return the value one level below that owns the memory of a Tensor of this trace."""
        return tensor._value

    def value_below(self, operand: Any) -> Any:
        """Return an operand as seen one level below."""
        if type(operand) is Tensor and (operand._trace is self or operand._trace is None):
            return operand._value
        return operand

    def handle_below(self, handle: Tensor) -> Any:
        """Return the value of a handle that is about to be re-bound by this trace, as seen one level below."""
        if handle._trace is self or handle._trace is None:
            return handle._value
        below = make_tensor(handle._value, handle._trace, handle._node)
        below._kept = handle._kept
        return below

    def alike(self, one: Tensor, other: Tensor) -> bool:
        """Tell whether two Tensors of this trace certainly have the same elements."""
        return alike(one._value, other._value)

    def duplicate(self, tensor: Tensor) -> Tensor:
        """Return the same value, known to this trace in the same way, in a buffer of its own."""
        return make_tensor(copied(tensor._value), self, tensor._node)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says of this trace."""
        raise NotImplementedError

    def original(self, tensor: Tensor) -> Tensor:
        """Return the Tensor of the user that another handle stands for: the leaf that it is, if that is still there."""
        return tensor

    def is_leaf(self, tensor: Tensor) -> bool:
        """Tell whether a Tensor is a leaf of the base tape, which stands for itself and not for a computation."""
        return False

    def state(self, tensor: Tensor) -> Any:
        """Return what a pickle of a Tensor keeps besides its elements, or raise if it means nothing elsewhere."""
        raise NotImplementedError

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Apply a primitive of which at least one operand carries this trace."""
        raise NotImplementedError

    def of_array(self, primitive: Primitive, operand: Tensor, params: Mapping[str, Any]) -> Tensor | None:
        """Return what a primitive of one operand gives by a short way, if the trace has one for that; else None."""
        return None

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Re-bind `handle` to the result of a primitive that replaces part of it (operand 0)."""
        raise NotImplementedError

    def require_writable(self, handle: Tensor) -> None:
        """Raise if a handle of this trace must not be written to now."""

    def succeed(self, earlier: Tensor, later: Tensor) -> None:
        """Let what was asked of a Tensor of this trace hold for the one that takes its place in a handle."""

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle of this trace stand for another value, which may be of any trace."""
        handle._value, handle._trace, handle._node = result._value, result._trace, result._node
        handle._kept = result._kept = True
