"""Inlining: calls of graphs replaced by the equations of the graph."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import is_number
from wengert.passes.equations import Known, holds_graphs, rename_known, throughout


class Calls(StructuredLowering):
    """Tell the graphs of calls."""

    def call(self, graph: Graph) -> Graph:
        """Return the graph."""
        return graph


CALLS = Calls()


@throughout
def inline_calls(graph: Graph) -> Graph:
    """Replace each call by the equations of what it calls: they are what evaluating it would carry out."""
    if not holds_graphs(graph):
        return graph
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = rename_known(known, equation.inputs)
        body = body_of(equation)
        if body is None:
            kept.append(equation if inputs is equation.inputs else equation.using(inputs))
        else:
            known.update(zip(equation.outputs, splice(inline_calls(body), inputs, kept), strict=True))
    if not known:
        return graph
    return Graph(graph.inputs, kept, rename_known(known, graph.outputs))


def body_of(equation: Equation) -> Graph | None:
    """Return the graph that a call evaluates on its operands; None for every other operation."""
    body: Graph | None = equation.primitive.lower(equation.params, CALLS)
    if body is None or len(body.inputs) != len(equation.inputs) or len(body.outputs) != len(equation.outputs):
        return None
    return body


def splice(body: Graph, inputs: tuple[Any, ...], kept: list[Equation]) -> tuple[Any, ...]:
    """Append a graph's equations for some operands, in variables of their own; return its outputs there."""
    known: Known = {v: of_dtype(x, v) for v, x in zip(body.inputs, inputs, strict=True)}
    for equation in body.equations:
        operands = rename_known(known, equation.inputs)
        outputs = tuple([Variable.of(v.aval, v.name, v.strides) for v in equation.outputs])
        known.update(zip(equation.outputs, outputs, strict=True))
        kept.append(Equation(equation.primitive, operands, equation.params, outputs, equation.origin))
    return rename_known(known, body.outputs)


def of_dtype(value: Any, variable: Variable) -> Any:
    """Return an operand; a Python number, whose dtype would give way inside, in the dtype that the call gives it."""
    if is_number(value) and not variable.weak:
        return np.asarray(value, variable.dtype)[()]
    return value
