"""Traces that list: every operation goes into a list, also those without a derivative."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from wengert.core.diagnostics.source_positions import Position, caller, position_of
from wengert.core.graph.printing import constant_text
from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import is_weak
from wengert.core.values.tensor import Tensor, raw
from wengert.primitives.conversion import astype
from wengert.traces.dual import Dual, Moving
from wengert.traces.nodes import Node, source_of
from wengert.traces.tape import Tape
from wengert.traces.transient import Transient


class Unrecorded:
    """Stand for a result that has no derivative and therefore no node."""

    __slots__ = ()


Reference = Node | Moving | Unrecorded


@dataclass(frozen=True, slots=True)
class ListedOperation:
    """Be one entry of the list.

    Attributes:
        name: the primitive's name.
        operands: what it was applied to: other entries' results, or the text of a constant.
        shapes: the shapes of the operands.
        params: its parameters.
        results: what stands for each of its results.
        values: copies of its results.
        tangents: and of their tangents in forward mode.
        position: where in the user's program it was asked for.
    """

    name: str
    operands: tuple[Reference | str, ...]
    shapes: tuple[tuple[int, ...], ...]
    params: Mapping[str, Any]
    results: tuple[Reference, ...]
    values: tuple[Any, ...]
    tangents: tuple[Any, ...]
    position: Position


class Lister(Transient):
    """List each operation with its value, besides what a trace does; in front of a class of traces.

    Attributes:
        operations: the list.
        same: what stands for results that are not listed, with what they are the same as.

    `fast` is off, so that the operators' compact paths send everything through `process`.
    """

    def __init__(self, level: int, label: str | Callable[[], str] = "") -> None:
        super().__init__(level, label)
        self.fast = False
        self.operations: list[ListedOperation] = []
        self.unrecorded: dict[int, tuple[Tensor, Any, Unrecorded]] = {}
        self.same: dict[Reference, Reference] = {}

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Evaluate, record and list; not where a Python number is taken for an array, which is the same number."""
        result = super().process(primitive, operands, params)
        if primitive is astype and is_weak(operands[0]) and result.dtype == operands[0].dtype:
            source = self.reference(operands[0])
            if not isinstance(source, str):
                self.same[self.result_reference(result)] = source
                return result
        given = tuple(map(self.reference, operands))
        self.enter(primitive, given, operands, params, result if isinstance(result, tuple) else (result,))
        return result

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> None:
        """Replace part of a Tensor in place, record and list it."""
        given = tuple(map(self.reference, (handle, *operands)))
        super().assign(handle, primitive, operands, params)
        self.enter(primitive, given, (handle, *operands), params, (handle,))

    def enter(
        self,
        primitive: Primitive,
        given: tuple[Reference | str, ...],
        operands: Sequence[Any],
        params: Mapping[str, Any],
        results: Sequence[Tensor],
    ) -> None:
        """Append an operation to the list."""
        self.operations.append(
            ListedOperation(
                name=primitive.name,
                operands=given,
                shapes=tuple(np.shape(x) if not isinstance(x, Tensor) else x.shape for x in operands),
                params=params,
                results=tuple(map(self.result_reference, results)),
                values=tuple(map(elements_now, results)),
                tangents=tuple(map(self.tangent_of, results)),
                position=position_of(*caller()),
            )
        )

    def reference(self, operand: Any) -> Reference | str:
        """Return what an operand refers to: an earlier result, or else the text of a constant."""
        if type(operand) is Tensor:
            if operand._trace is self:
                return operand._node  # type: ignore[no-any-return]  # of the trace
            known = self.unrecorded.get(id(operand))
            if known is not None and known[1] is operand._value:
                return known[2]
        return constant_text(raw(operand))

    def result_reference(self, result: Tensor) -> Reference:
        """Return what stands for a result; one without a node is kept, so that later operands can refer to it."""
        if result._trace is self:
            return result._node  # type: ignore[no-any-return]  # of the trace
        result._kept = True  # so a write replaces the buffer, and the reference ends
        reference = Unrecorded()
        self.unrecorded[id(result)] = (result, result._value, reference)
        return reference

    def tangent_of(self, result: Tensor) -> Any:
        """Return the present tangent of a result; None where there is none."""
        return None


class TapeListing(Lister, Tape):
    """Record as every tape does, and list."""


class ForwardListing(Lister, Dual):
    """Propagate tangents, and list."""

    def tangent_of(self, result: Tensor) -> Any:
        """Return the present tangent of a result; None where it is zero, whatever the arguments are."""
        return elements_now(result._node.tangent) if result._trace is self else None


def elements_now(value: Any) -> Any:
    """Return a value's present elements: a NumPy scalar, or a copy that nobody writes to."""
    found = raw(value)
    return found if isinstance(found, np.generic) else np.array(found)[()]


def parents_of(node: Node) -> tuple[Node, ...]:
    """Return the nodes that an operation's cotangent flows on to, each once."""
    return tuple(dict.fromkeys(parent for parent in source_of(node).inputs if parent is not None))
