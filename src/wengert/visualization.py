"""`visualize`: the recorded tape of a Tensor as a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import attrgetter
from typing import Any

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import shown
from wengert.core.graph.diagrams import place_facts
from wengert.core.graph.equation import Variable
from wengert.core.graph.printing import constant_text, formula
from wengert.core.memory.views import current
from wengert.core.values.aval import aval_text
from wengert.core.values.tensor import Tensor, raw
from wengert.errors import DtypeError, UsageError
from wengert.pictures.boxes import Box, Wire
from wengert.pictures.picture import Picture
from wengert.traces.nodes import RESULT, Leaf, Node, source_of
from wengert.traces.tape import Tape

UNKNOWN = "constant"
"""Stands for an operand without a derivative that was not kept."""


def visualize(tensor: Any) -> Picture:
    """Return a picture of what was recorded on the tape for a Tensor: leaves, operations, and how they hang together.

    Args:
        tensor: a Tensor that depends on others with `requires_grad`, or containers of such Tensors.

    Returns:
        A picture, which notebooks show. Its `to_svg()` is an image, its `to_html()` a page to pan, zoom and click in,
        which tells of each operation its type and the line that asked for it.

    Raises:
        DtypeError: something is not a Tensor.
        UsageError: nothing was recorded for a Tensor.

    >>> import wengert as wg
    >>> x = wg.tensor([1.0, 2.0], requires_grad=True)
    >>> picture = wg.visualize((x * x).sum())
    >>> [box.lines[0] for box in picture.boxes]
    ['x1', 'v1 = x1 * x1', 'v2 = sum(v1)', 'output 0: v2']
    >>> picture.to_svg()[:4], picture.to_html()[:15]
    ('<svg', '<!doctype html>')
    """
    outputs = [node_of(leaf) for leaf in flatten(tensor)[0]]
    if not outputs:
        raise DtypeError("visualize", shown(tensor), "a Tensor is needed", "Pass a result of Tensors")
    drawing = TapeDrawing()
    for node in recorded_nodes(outputs):
        drawing.add(node)
    for i, node in enumerate(outputs):
        drawing.end(i, node)
    return Picture("tape", drawing.boxes, drawing.wires)


DRAW_FUNCTION = "draw a function with wengert.graph.trace(function)(...).to_svg()"


def node_of(leaf: Any) -> Node:
    """Return the node of a Tensor."""
    if not isinstance(leaf, Tensor):
        action = f"{DRAW_FUNCTION[0].upper()}{DRAW_FUNCTION[1:]}" if callable(leaf) else "Pass a result of Tensors"
        raise DtypeError("visualize", shown(leaf), "a Tensor is needed", action)
    tensor = current(leaf)
    if not isinstance(tensor._trace, Tape):
        given = "a Tensor for which nothing was recorded"
        action = f"Make its arguments with wengert.tensor(..., requires_grad=True), or {DRAW_FUNCTION}"
        raise UsageError("visualize", given, "a result of Tensors with requires_grad is needed", action)
    node: Node = tensor._node
    return node


def recorded_nodes(outputs: list[Node]) -> list[Node]:
    """Return all operations that nodes depend on, in the order of their creation."""
    found: set[Node] = set()
    stack = list(map(source_of, outputs))
    while stack:
        node = stack.pop()
        if node not in found:
            found.add(node)
            stack += [source_of(parent) for parent in node.inputs if parent is not None]
    return sorted(found, key=attrgetter("number"))


class TapeDrawing:
    """Collect boxes and wires; values are named as in a Wengert list."""

    def __init__(self) -> None:
        self.boxes: list[Box] = []
        self.wires: list[Wire] = []
        self.places: dict[Node, int] = {}
        self.names: dict[Node, str] = {}
        self.counts = {"input": 0, "equation": 0}

    def add(self, node: Node) -> None:
        """Add the box of an operation or leaf, and the wires that lead to it."""
        kind = "input" if isinstance(node, Leaf) else "equation"
        self.counts[kind] += 1
        name = self.names[node] = f"{'x' if kind == 'input' else 'v'}{self.counts[kind]}"
        kept = kept_operands(node)
        operands = [
            kept.get(i, UNKNOWN) if parent is None else self.name_of(parent) for i, parent in enumerate(node.inputs)
        ]
        shapes = [() if parent is None else parent.shape for parent in node.inputs]
        text = name if kind == "input" else f"{name} = {formula(node.name, operands, shapes, node.params)}"
        facts = {"operation": node.name} | place_facts(node.position)
        self.places[node] = len(self.boxes)
        self.boxes.append(Box(kind, [text, type_of(node)], facts, len(operands)))
        self.wire(node.inputs)

    def wire(self, parents: Sequence[Node | None]) -> None:
        """Lead wires from parents to the last box."""
        for operand, parent in enumerate(parents):
            if parent is not None:
                source = self.places[source_of(parent)]
                result = parent.params["index"] if parent.primitive is RESULT else 0
                self.boxes[source].results = max(self.boxes[source].results, result + 1)
                self.wires.append(Wire(source, result, len(self.boxes) - 1, operand))

    def end(self, number: int, node: Node) -> None:
        """Add the box of a Tensor that was asked for."""
        self.boxes.append(Box("output", [f"output {number}: {self.name_of(node)}", type_of(node)], {}, 1, 0))
        self.wire([node])

    def name_of(self, node: Node) -> str:
        """Return what a value is called: one of several results by its index."""
        name = self.names[source_of(node)]
        return f"{name}[{node.params['index']}]" if node.primitive is RESULT else name


def type_of(node: Node) -> str:
    """Return shape and dtype of a value."""
    return aval_text(Variable(node.shape, node.dtype))


def kept_operands(node: Node) -> Mapping[int, str]:
    """Return the texts of operands that a node keeps for the sweep, unless they have to be computed first."""
    if not isinstance(node.saved, tuple):
        return {}
    _, operands = node.residuals()
    return {i: constant_text(raw(x)) for i, x in enumerate(operands) if x is not None}
