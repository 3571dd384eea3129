"""The nodes of tapes: recorded operations, and leaves.

Nodes refer to what they were made from, never the other way, so a graph that nobody holds is freed by reference
counting (CPython's deallocator for such chains does not recurse). Small operations are most of what eager programs do;
nodes are therefore flat, and the ones for one and two operands keep everything in slots of their own.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.diagnostics.source_positions import Origin, Position, caller, position_of
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.tensor import Tensor

if TYPE_CHECKING:
    from wengert.traces.hooks import Hooks

__all__ = [
    "CREATED",
    "RELEASED",
    "Binary",
    "General",
    "LargeBinary",
    "LargeUnary",
    "Leaf",
    "Node",
    "Output",
    "Raised",
    "Single",
    "Squared",
    "Steep",
    "Unary",
    "new_leaf",
    "new_record",
]

CREATED = count(1)
"""Gives nodes their creation numbers."""


class _Released:
    """Stand in a node for residuals that a sweep has used up."""

    def __repr__(self) -> str:
        return "<released>"


RELEASED: Any = _Released()


class Node:
    """Be one recorded operation, or a leaf.

    Attributes:
        number: creation number; consumers have greater ones.
        primitive: the operation.
        shape, dtype: of the value that the node stands for.
        code, offset: where in the user's program it was recorded.
        hooks: what users registered on it, or None.
    """

    __slots__ = ("__weakref__", "code", "dtype", "hooks", "number", "offset", "primitive", "shape")

    number: int
    primitive: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    code: CodeType
    offset: int
    hooks: Hooks | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(self.primitive.name)

    @property
    def origin(self) -> Origin:
        """Where the derivative of the operation comes from: what recorded it."""
        origin = Origin((self.code, self.offset))
        origin.node = self.number
        return origin

    @property
    def position(self) -> Position:
        """The source position that recorded the operation."""
        return position_of(self.code, self.offset)

    @property
    def parents(self) -> Sequence[Node | None]:
        """The nodes of the operands; None for constants."""
        return ()

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the operation."""
        return {}

    @property
    def released(self) -> bool:
        """Whether a sweep has used the residuals up."""
        return False

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands, None where they were not needed."""
        return None, ()

    def release(self) -> None:
        """Let the residuals go."""

    def __repr__(self) -> str:
        return f"<{self.name} {self.number}>"


class Leaf(Node):
    """Be a value that gradients are taken with respect to; `grad` accumulates there."""

    __slots__ = ("grad", "tensor")

    grad: Tensor | None
    tensor: Callable[[], Tensor | None]

    @property
    def name(self) -> str:
        """What a leaf is called."""
        return "leaf"


class Unary(Node):
    """Be an operation on one operand, elementwise if it is none of the subclasses that say otherwise."""

    __slots__ = ("out", "parent", "x")

    parent: Node
    x: Any
    out: Any

    @property
    def parents(self) -> Sequence[Node | None]:
        """The node of the operand."""
        return (self.parent,)

    @property
    def released(self) -> bool:
        """Whether a sweep has used the residuals up."""
        return self.x is RELEASED

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operand."""
        return self.out, (self.x,)

    def release(self) -> None:
        """Let the residuals go."""
        self.x = self.out = RELEASED


class Single(Unary):
    """Be an operation with parameters on one operand, of any kind but elementwise."""

    __slots__ = ("keywords",)

    keywords: Mapping[str, Any]

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the operation."""
        return self.keywords


class Binary(Node):
    """Be an elementwise operation on two operands."""

    __slots__ = ("left", "out", "right", "x", "y")

    left: Node | None
    right: Node | None
    x: Any
    y: Any
    out: Any

    @property
    def parents(self) -> Sequence[Node | None]:
        """The nodes of the operands."""
        return (self.left, self.right)

    @property
    def released(self) -> bool:
        """Whether a sweep has used the residuals up."""
        return self.x is RELEASED

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands."""
        return self.out, (self.x, self.y)

    def release(self) -> None:
        """Let the residuals go."""
        self.x = self.y = self.out = RELEASED


class Steep(Unary):
    """Be an operation whose partial can be infinite where its value is finite, as that of a root at 0 is."""

    __slots__ = ()


class Squared(Unary):
    """Be a square, which may be that of a root."""

    __slots__ = ()


class Raised(Binary):
    """Be a power, which may be that of a root."""

    __slots__ = ()


class LargeUnary(Unary):
    """Be one on so many elements that several threads share them."""

    __slots__ = ()


class LargeBinary(Binary):
    """Be one on so many elements that several threads share them."""

    __slots__ = ()


class General(Node):
    """Be an operation of any form; `unpack` turns each residual back where saved-tensor hooks packed it."""

    __slots__ = ("inputs", "keywords", "operands", "out", "unpack")

    inputs: tuple[Node | None, ...]
    operands: tuple[Any, ...]
    out: Any
    keywords: Mapping[str, Any]
    unpack: Callable[[Any], Any] | None

    @property
    def parents(self) -> Sequence[Node | None]:
        """The nodes of the operands; None for constants."""
        return self.inputs

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the operation."""
        return self.keywords

    @property
    def released(self) -> bool:
        """Whether a sweep has used the residuals up."""
        return self.operands is RELEASED

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands, None where they were not needed."""
        unpack = self.unpack
        if unpack is None:
            return self.out, self.operands
        return unpack(self.out), [unpack(x) for x in self.operands]

    def release(self) -> None:
        """Let the residuals go."""
        self.operands = self.out = RELEASED
        self.unpack = None  # it may hold much: a checkpoint's arguments, for instance


class Output(Node):
    """Be one of several outputs of an operation: it hands its cotangent to the operation's node."""

    __slots__ = ("index", "source")

    source: General
    index: int

    @property
    def parents(self) -> Sequence[Node | None]:
        """The node of the operation."""
        return (self.source,)


NO_DTYPE = np.dtype(float)
NOTHING = tuple((None,) * count for count in range(9))


def new_record(primitive: Primitive, inputs: tuple[Node | None, ...], params: Mapping[str, Any]) -> General:
    """Return the node of an operation, without residuals; shape and dtype mean nothing until they are set."""
    node = General()
    node.number = next(CREATED)
    node.primitive = primitive
    node.shape = ()
    node.dtype = NO_DTYPE
    node.code, node.offset = caller(3)
    node.hooks = None
    node.inputs = inputs
    node.keywords = params
    node.operands = NOTHING[len(inputs)] if len(inputs) < len(NOTHING) else (None,) * len(inputs)
    node.out = None
    node.unpack = None
    return node


def new_leaf(
    shape: tuple[int, ...], dtype: np.dtype[Any], tensor: Tensor, place: tuple[CodeType, int] | None = None
) -> Leaf:
    """Return the leaf node of a Tensor, made at a place that is known, or looked for."""
    node = Leaf()
    node.number = next(CREATED)
    node.primitive = None
    node.shape, node.dtype = shape, dtype
    node.code, node.offset = place or caller(2)
    node.hooks = None
    node.grad = None
    node.tensor = weakref.ref(tensor)
    return node
