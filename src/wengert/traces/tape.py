"""The tape: nodes with creation numbers, as operations on its Tensors make them.

Creation order is topological order, so a sweep needs no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import CodeType
from typing import Any

from numpy import ndarray

from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.memory.buffers import lend, lent
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import NUMBERS, aval_of, is_differentiable, strong
from wengert.core.values.dispatch import ARRAYS, apply, check_numeric
from wengert.core.values.evaluation import evaluate_primitive
from wengert.core.values.recording import FORWARD, PACKING, SPECIAL
from wengert.core.values.tensor import Tensor, make_tensor, unwrap_plain, wrapped_constant, wrapped_constants
from wengert.errors import GraphError
from wengert.traces.grad_modes import recording
from wengert.traces.hooks import hand_on
from wengert.traces.nodes import (
    GeneralResiduals,
    Leaf,
    Node,
    new_leaf,
    new_node,
    new_result,
    no_residuals,
    pack,
)
from wengert.traces.transient import Transient, pickling_error


def make_leaf(value: Any, tape: Tape, place: tuple[CodeType, int] | None = None) -> Tensor:
    """Return a Tensor that is a leaf of a tape, made at `place`; the tape does not keep it alive."""
    tensor = make_tensor(value, tape, None)
    shape, dtype = (value.shape, value.dtype) if type(value) is ndarray else aval_of(value)[:2]
    tensor._node = new_leaf(shape, dtype, tensor, place)
    return tensor


class Tape(Transient):
    """Record operations for a reverse sweep; the base tape, level 0, is that of `requires_grad` and never ends.

    Attributes:
        unwritten: whether no ndarray is written to from the first time that this is asked until the sweep, or the
            function that tells.
    """

    __slots__ = ("unwritten",)

    def __init__(self, level: int, label: str | Callable[[], str] = "") -> None:
        super().__init__(level, label)
        self.fast = True
        self.unwritten: bool | Callable[[], bool] = False

    @property
    def leaves_alone(self) -> bool:
        """Whether nobody writes to ndarrays before the sweep, so that they need not be copied."""
        if not isinstance(self.unwritten, bool):
            self.unwritten = self.unwritten()
        return self.unwritten

    def end(self) -> None:
        """Refuse to record from now on: the transformation is over."""
        super().end()
        self.fast = self.unwritten = False

    def made_at(self, tensor: Tensor) -> tuple[CodeType, int]:
        """Return code and instruction offset of the operation that was recorded."""
        return tensor._node.code, tensor._node.offset

    def made_by(self, tensor: Tensor) -> str:
        """Return the name of the operation that was recorded."""
        return str(tensor._node.name)

    def describe(self, tensor: Tensor) -> str:
        """Return what the printed form of a Tensor says: leaf, or the operation that made it."""
        node = tensor._node
        return "requires_grad=True" if type(node) is Leaf else f"grad_fn=<{node.name}>"

    def original(self, tensor: Tensor) -> Tensor:
        """Return the leaf itself."""
        node = tensor._node
        found = node.tensor() if type(node) is Leaf else None
        return tensor if found is None else found

    def is_leaf(self, tensor: Tensor) -> bool:
        """Tell whether a Tensor is a leaf, and this the base tape."""
        return self.level == 0 and type(tensor._node) is Leaf

    def state(self, tensor: Tensor) -> Any:
        """Return True for a leaf of the base tape; other recorded values are nothing apart from their graph."""
        if self.is_leaf(tensor):
            return True
        origin = "an argument of a gradient" if type(tensor._node) is Leaf else f"{tensor._node.name} recorded it"
        raise pickling_error(f"a Tensor that is being differentiated ({origin})", "Call .detach() first")

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Evaluate one level below, and record."""
        if self.ended:
            self.require_alive(operands)
        if primitive.structured and recording(self):
            return self.record_structured(primitive, operands, params)  # type: ignore[arg-type]  # the flag says so
        inputs, values, plain = [], [], True
        for x in operands:
            node = None
            if type(x) is Tensor:
                trace = x._trace
                if trace is self:
                    node, x = x._node, x._value
                elif trace is None:
                    x = x._value
                if type(x) is Tensor:
                    plain = False
            inputs.append(node)
            values.append(x)
        out = evaluate_primitive(primitive, values, params) if plain else apply(primitive, *values, **params)
        if primitive.kind == "constant":
            return wrapped_constants(out)
        if SPECIAL and not recording(self):
            self.require_outside_of_forward(out)
            return wrapped_constants(out)
        if primitive.outputs == 1:
            if type(out) is not ndarray:
                if not plain:
                    out = unwrap_plain(out)
                elif not isinstance(out, ARRAYS):
                    out = check_numeric(primitive.name, out)
            shape, dtype = ((), NUMBERS[type(out)]) if type(out) in NUMBERS else (out.shape, out.dtype)
            if not is_differentiable(dtype):
                return wrapped_constant(out)
            node, kept = self.record(primitive, operands, tuple(inputs), out, params)
            node.shape, node.dtype = shape, dtype
            result = make_tensor(out, self, node)
            result._kept = kept
            return result
        outs = tuple(map(unwrap_plain, out))
        node, kept = self.record(primitive, operands, tuple(inputs), outs, params)
        return tuple(self.output(node, i, item, kept) for i, item in enumerate(outs))

    def require_outside_of_forward(self, out: Any) -> None:
        """Raise a GraphError if a newer `forward` of a Function runs: it captured what this result depends on."""
        level, name = FORWARD.get()
        outs = out if type(out) is tuple else (out,)
        if self.level < level and any(is_differentiable(aval_of(x).dtype) for x in outs):
            raise GraphError(
                f"{name}.forward",
                "a captured value that is being differentiated",
                "forward must take such values as arguments",
                "Add it to the arguments, or .detach() it",
                place=position_of(*caller()),
            )

    def record_structured(
        self, primitive: Structured, operands: Sequence[Any], params: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Record an operation that runs graphs: its forward pass hands what the sweep will need to its pullback."""
        inputs = tuple(map(self.node_of, operands))
        wanted = [node is not None for node in inputs]
        values = [self.residual(x) for x in operands]  # the pullback reads them when they may have been written to
        outs, active, pullback = primitive.linearize(values, wanted, params)
        node = new_node(pullback, inputs, {}, no_residuals(inputs), caller(2))
        return tuple(
            self.output(node, i, unwrap_plain(out), True) if flag else wrapped_constant(out)
            for i, (out, flag) in enumerate(zip(outs, active, strict=True))
        )

    def node_of(self, operand: Any) -> Node | None:
        """Return the node of an operand; None if it is a constant to this tape."""
        return operand._node if type(operand) is Tensor and operand._trace is self else None

    def record(
        self,
        primitive: Primitive,
        operands: Sequence[Any],
        inputs: tuple[Node | None, ...],
        out: Any,
        params: Mapping[str, Any],
    ) -> tuple[Node, bool]:
        """Return a new node for an operation on operands with these nodes, and whether it keeps the output's buffer."""
        need_out, positions = primitive.saving(tuple([node is not None for node in inputs]))
        residuals = [None] * len(inputs)
        for i in positions:
            x = self.residual(operands[i])
            residuals[i] = strong(x) if type(x) in NUMBERS and (primitive.firm or len(inputs) == 1) else x
        node = new_node(primitive, inputs, params, GeneralResiduals(residuals), caller(3))
        if need_out:
            node.out = primitive.kept_output(out)
        if SPECIAL and PACKING.get():
            pack(node)
        return node, need_out

    def residual(self, operand: Any) -> Any:
        """Return what to save of an operand so that no later write can change it.

        A Tensor's own writes copy first when `_kept` is set. Nobody can be told of writes to a plain ndarray, so
        its present content is copied, unless nobody can write to its memory, or nobody will before the sweep.
        """
        kind = type(operand)
        if kind is Tensor:
            value, trace = lend(operand), operand._trace
            if trace is self or trace is None:
                return value
            snapshot = make_tensor(value, trace, operand._node)
            snapshot._kept = True
            return snapshot
        if kind is not ndarray:
            return operand
        operand = lent(operand, self)
        operand.flags.writeable = False
        return operand

    def output(self, source: Node, index: int, value: Any, kept: bool) -> Tensor:
        """Return one of the outputs of a recorded operation."""
        if not is_differentiable(aval_of(value).dtype):
            return wrapped_constant(value)
        return new_result(source, index, value, self, kept)

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Replace part of a Tensor in place, and record it; see the ADR on mutation and views."""
        if self.ended:
            self.require_alive((handle, *operands))
        if SPECIAL and not recording(self) and any(self.node_of(x) is not None for x in operands):
            self.require_outside_of_forward(handle)
        below = self.handle_below(handle)
        written = primitive.rewrite(below, handle._kept, *map(self.value_below, operands), **params)
        if recording(self) and is_differentiable(written.dtype):
            inputs = tuple(map(self.node_of, (handle, *operands)))
            node, _ = self.record(primitive, (handle, *operands), inputs, None, params)
            node.shape, node.dtype = written.shape, written.dtype
            if (before := self.node_of(handle)) is not None:
                hand_on(before, node)
            handle._node, handle._trace = node, self
        elif handle._trace is not self and type(written) is Tensor:  # it stays on the level below
            handle._node, handle._trace = written._node, written._trace
            written = written._value
        elif type(written) is ndarray:
            written = written.view()  # other than before, so that views take their steps again, as after every write
        handle._value = written
        handle._kept = False
        handle._mutated = True

    def rebind(self, handle: Tensor, result: Tensor) -> None:
        """Let a handle of this tape stand for another value: the whole-array form of `assign`."""
        if not recording(self):
            handle._value = self.value_below(result)
            handle._kept = result._kept = True
            return
        before = self.node_of(handle)
        super().rebind(handle, result)
        after = self.node_of(handle)
        if before is not None and after is not None:
            hand_on(before, after)

    def succeed(self, earlier: Tensor, later: Tensor) -> None:
        """Let `.grad` be that of the later value from now on, if it was to be kept."""
        if later._trace is self:
            hand_on(earlier._node, later._node)

    def require_writable(self, handle: Tensor) -> None:
        """Raise a GraphError if a handle is a leaf of the base tape, which is recording."""
        if self.is_leaf(handle) and recording(self):
            given = "a leaf Tensor that requires grad"
            needed = "a Tensor that is not a leaf is needed while recording"
            raise GraphError("assignment", given, needed, "Write into a copy (x.copy()), or write under no_grad")


BASE_TAPE = Tape(0, "the tape")
