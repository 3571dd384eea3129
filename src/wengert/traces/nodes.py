"""The nodes of tapes: recorded operations, and leaves.

Nodes refer to what they were made from, never the other way, so a graph that nobody holds is freed by reference
counting (CPython's deallocator for such chains does not recurse). What a node sends back in a sweep belongs to the kind
of its primitive; the node itself is one record, whatever recorded it. Residuals are what operations keep of their
operands for the sweep, as it is or as hooks of users packed it.
"""

from __future__ import annotations

import functools
import operator
import sys
import weakref
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.diagnostics.source_positions import RECENT, Origin, Position, caller, position_of
from wengert.core.memory.buffers import lend, lent
from wengert.core.memory.views import share
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import strong
from wengert.core.values.recording import PACKING, packing_of
from wengert.core.values.tensor import Tensor, make_tensor, new_tensor, unwrap_plain, wrapped_constant
from wengert.errors import UsageError
from wengert.support.scopes import Meanwhile

if TYPE_CHECKING:
    from wengert.traces.hooks import Hooks


ndarray = np.ndarray
NOTHING: tuple[tuple[None, ...], ...] = tuple((None,) * count for count in range(9))
"""The residuals of operations, by the number of operands, that need none of these."""


class GeneralResiduals(tuple[Any, ...]):
    """Be residuals that were recorded in the general way, so that some may be Tensors, of other traces."""

    __slots__ = ()


class LargeResiduals(tuple[Any, ...]):
    """Be residuals of an elementwise operation on so many elements that several threads share them."""

    __slots__ = ()


class PackedResiduals:
    """Be residuals as saved-tensor hooks packed them, as is the output of their node.

    Attributes:
        operands: the residuals, packed.
        unpack: turns one back.
    """

    __slots__ = ("operands", "unpack")

    def __init__(self, operands: Sequence[Any], unpack: Callable[[Any], Any]) -> None:
        self.operands = operands
        self.unpack = unpack


class _Released:
    """Stand in a node for residuals that a sweep has used up."""

    def __repr__(self) -> str:
        return "<released>"


RELEASED: Any = _Released()


def no_residuals(inputs: Sequence[Any]) -> tuple[None, ...]:
    """Return the residuals of an operation that needs none of its operands."""
    return NOTHING[len(inputs)] if len(inputs) < len(NOTHING) else (None,) * len(inputs)


def residuals_of(operands: Sequence[Any], positions: Sequence[int], trace: Any) -> list[Any]:
    """Return the residuals of operands on a tape: the values of those at some positions, of numbers, too."""
    residuals: list[Any] = [None] * len(operands)
    for i in positions:
        x = operands[i]
        kind = type(x)
        if kind is Tensor:
            residuals[i] = x._value if x._kept is True else lend(x)
        else:
            residuals[i] = lent(x, trace) if kind is ndarray else x
    return residuals


# Saved-tensor hooks: residuals that a function of the user packs when they are saved


class _Packed:
    """Hold what a pack hook returned, and the shape that unpacking it must give."""

    __slots__ = ("content", "shape")

    def __init__(self, content: Any, shape: tuple[int, ...]) -> None:
        self.content = content
        self.shape = shape


def pack_value(value: Any, pack_one: Callable[[Any], Any]) -> Any:
    """Return a residual, or each in a tuple, as it is kept."""
    if type(value) is tuple:
        return tuple(pack_value(x, pack_one) for x in value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return _Packed(pack_one(share(wrapped_constant(value))), value.shape)
    return value


def unpack_value(unpack_one: Callable[[Any], Any], value: Any) -> Any:
    """Return a residual as it was before it was packed."""
    if type(value) is tuple:
        return tuple(unpack_value(unpack_one, x) for x in value)
    return checked_residual(unpack_one(value.content), value.shape) if type(value) is _Packed else value


def checked_residual(found: Any, shape: tuple[int, ...]) -> Any:
    """Return what an unpack hook gave, which must be an array of the shape that was packed."""
    if not isinstance(found, Tensor | np.ndarray | np.generic) or found.shape != shape:
        given = f"shape {found.shape}" if isinstance(found, Tensor | np.ndarray) else f"a {type(found).__name__}"
        given = f"unpack returned {given} for a Tensor of shape {shape}"
        needed = "a Tensor or ndarray of the same shape is needed"
        raise UsageError("saved_tensors_hooks", given, needed, "Return what pack was given")
    return unwrap_plain(found)


CREATED = count(1)
"""Gives nodes their creation numbers."""
_getframe = sys._getframe
float64, ndarray = np.float64, np.ndarray
DOUBLE = np.dtype(float64)


class Result(Primitive):
    """Be the choice of one of several results: its node hands the cotangent to that of the operation."""

    kind = sweeps_as = "result"


RESULT = Result("result", operator.getitem)


class Node:
    """Be one recorded operation, or a leaf.

    Attributes:
        number: creation number; consumers have greater ones.
        primitive: the operation; `RESULT` for one of several results of the only input, by the parameter `index`.
        inputs: the nodes of the operands, which stand for their avals, too; None for constants.
        given: the parameters of the operation; of parts and writes the index alone, as a tuple.
        saved: the residuals, None for operands that were not needed; `PackedResiduals`, or `RELEASED` after a sweep.
        out: the saved output, None if it was not needed.
        shape, dtype: of the value that the node stands for.
        code, offset: where in the user's program it was recorded.
        hooks: what users registered on it, or None.
    """

    __slots__ = (
        "__weakref__",
        "code",
        "dtype",
        "given",
        "hooks",
        "inputs",
        "number",
        "offset",
        "out",
        "primitive",
        "saved",
        "shape",
    )

    number: int
    primitive: Any
    inputs: tuple[Node | None, ...]
    given: Any
    saved: Any
    out: Any
    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    code: CodeType
    offset: int
    hooks: Hooks | None

    @property
    def name(self) -> str:
        """The name of the operation."""
        return str(source_of(self).primitive.name)

    @property
    def params(self) -> Mapping[str, Any]:
        """The parameters of the operation."""
        given = self.given
        return {**self.primitive.usual, "index": given} if type(given) is tuple else given

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
    def is_released(self) -> bool:
        """Whether a sweep has used the residuals up."""
        return self.saved is RELEASED

    def residuals(self) -> tuple[Any, Sequence[Any]]:
        """Return the saved output and operands, None where they were not needed."""
        saved = self.saved
        if type(saved) is PackedResiduals:
            return saved.unpack(self.out), [saved.unpack(x) for x in saved.operands]
        return self.out, saved

    def release(self) -> None:
        """Let the residuals go."""
        self.saved = RELEASED
        self.out = None

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


def source_of(node: Node) -> Node:
    """Return the node of the operation that gave a value."""
    found = node.inputs[0] if node.primitive is RESULT else node
    assert found is not None
    return found


def new_node(
    primitive: Primitive,
    inputs: tuple[Node | None, ...],
    given: Any,
    saved: Sequence[Any],
    place: tuple[CodeType, int],
    like: Any = None,
) -> Node:
    """Return the node of an operation; shape and dtype, if not those of a value, mean nothing until they are set."""
    node = Node()
    node.number = next(CREATED)
    node.primitive = primitive
    node.inputs = inputs
    node.given = given
    node.saved = saved
    node.out = None
    node.shape, node.dtype = ((), DOUBLE) if like is None else (like.shape, like.dtype)
    node.code, node.offset = place
    node.hooks = None
    return node


def form_of_result(value: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return the shape and dtype of a result that is no ndarray: a scalar, or a Tensor one level below."""
    return ((), DOUBLE) if type(value) is float64 or type(value) is float else (value.shape, value.dtype)


def record_result(
    value: Any,
    trace: Any,
    primitive: Primitive,
    inputs: tuple[Node | None, ...],
    given: Any,
    saved: tuple[Any, ...],
    keeps_out: bool,
    depth: int = 2,
) -> Tensor:
    """Return the Tensor of a value on a live tape, with the node of the operation that gave it.

    Args:
        value: the result, which is not a Tensor.
        trace: the tape.
        primitive: the operation.
        inputs: the nodes of its operands.
        given: its parameters, as in a node.
        saved: the residuals.
        keeps_out: whether the result is a residual, too.
        depth: how many frames out the user's is where nothing is in between; those farther in are the library's.
    """
    node = Node()
    node.number = next(CREATED)
    node.primitive = primitive
    node.inputs = inputs
    node.given = given
    node.saved = saved
    node.out = value if keeps_out else None
    if type(value) is ndarray:
        node.shape = value.shape
        node.dtype = value.dtype
    elif type(value) is float64:
        node.shape = ()
        node.dtype = DOUBLE
    else:
        node.shape, node.dtype = form_of_result(value)
    node.hooks = None
    code = (frame := _getframe(depth)).f_code
    if code is RECENT[0]:
        node.code = code
        node.offset = frame.f_lasti
    else:
        node.code, node.offset = caller(depth + 1)
    result = new_tensor()
    result._value = value
    result._trace = trace
    result._node = node
    result._kept = keeps_out
    return result


def record_results(
    primitive: Primitive, a: Tensor, params: dict[str, Any], outs: Sequence[Any], saved: Any, keeps_out: bool
) -> tuple[Tensor, ...]:
    """Return the Tensors of several results of one operand on a live tape, with the nodes that choose them."""
    a._kept = a._kept or saved is not NOTHING[1]
    node = new_node(primitive, (a._node,), params, saved, caller(3))
    node.out = outs if keeps_out else None
    return tuple(
        [
            new_result(node, i, out, a._trace, keeps_out) if out.dtype.kind in "fc" else wrapped_constant(out)
            for i, out in enumerate(outs)
        ]
    )


def new_result(source: Node, index: int, value: Any, trace: Any, kept: bool) -> Tensor:
    """Return the Tensor of one of the results of what was recorded; `kept` if that keeps it, too."""
    place = source.code, source.offset
    result = make_tensor(value, trace, new_node(RESULT, (source,), {"index": index}, NOTHING[1], place, strong(value)))
    result._kept = kept
    return result


def new_leaf(
    shape: tuple[int, ...], dtype: np.dtype[Any], tensor: Tensor, place: tuple[CodeType, int] | None = None
) -> Leaf:
    """Return the leaf node of a Tensor, made at a place that is known, or looked for."""
    node = Leaf()
    node.number = next(CREATED)
    node.primitive = None
    node.inputs = ()
    node.given = {}
    node.saved = ()
    node.out = None
    node.shape, node.dtype = shape, dtype
    node.code, node.offset = place or caller(2)
    node.hooks = None
    node.grad = None
    node.tensor = weakref.ref(tensor)
    return node


def pack(node: Node) -> None:
    """Pass the residuals of a new node through the innermost pair of saved-tensor hooks."""
    *others, (pack_one, unpack_one) = PACKING.get()
    with Meanwhile(PACKING, packing_of(others)):  # what the hooks compute themselves is not packed again
        operands = tuple(pack_value(x, pack_one) for x in node.saved)
        node.out = pack_value(node.out, pack_one)
    node.saved = PackedResiduals(operands, functools.partial(unpack_value, unpack_one))
