"""`grad_fn`: the recorded operation behind a Tensor, as users see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from wengert.core.diagnostics.source_positions import Position
from wengert.traces.hooks import RemovableHandle, hooks_of
from wengert.traces.nodes import Node, source_of


class GradFunction:
    """Show a recorded operation: its name, what it was computed from, and where; and take hooks.

    >>> import wengert as wg
    >>> y = wg.tensor(2.0, requires_grad=True) * 3
    >>> y.grad_fn
    <grad_fn multiply>
    """

    __slots__ = ("_node", "_value_node")

    def __init__(self, node: Node) -> None:
        self._value_node = node
        self._node = source_of(node)

    @property
    def name(self) -> str:
        """The name of the primitive, or "leaf"."""
        return self._node.name

    @property
    def number(self) -> int:
        """The creation number; greater than those of what it was computed from."""
        return self._node.number

    @property
    def next_functions(self) -> tuple[GradFunction | None, ...]:
        """What the operands were computed by, leaves included; None for constants."""
        return tuple(None if parent is None else GradFunction(parent) for parent in self._node.inputs)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """Shape and dtype of the value, the parameters of the operation, and its source position."""
        node, value = self._node, self._value_node
        return {"shape": value.shape, "dtype": value.dtype, "params": dict(node.params), "position": node.position}

    @property
    def position(self) -> Position:
        """The source position that recorded the operation."""
        return self._node.position

    def register_prehook(self, hook: Callable[[tuple[Any, ...]], Any]) -> RemovableHandle:
        """Call `hook(grad_outputs)` before the operation's vjp; a tuple that it returns takes their place.

        The tuples have one entry for each result of the operation, None where no cotangent arrived.
        """
        return RemovableHandle(hooks_of(self._node).before, hook)

    def register_hook(self, hook: Callable[[Any, Any], Any]) -> RemovableHandle:
        """Call `hook(grad_inputs, grad_outputs)` after the vjp; a tuple it returns takes the place of the former.

        `grad_inputs` has one entry for each operand, None where it needs no cotangent.
        """
        return RemovableHandle(hooks_of(self._node).after, hook)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, GradFunction) and other._node is self._node

    def __hash__(self) -> int:
        return hash(self._node)

    def __repr__(self) -> str:
        return f"<grad_fn {self.name}>"
