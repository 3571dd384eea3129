"""Loops over many small arrays: the axis of lanes comes last in what they carry, so that vectors run along it.

The graph of a batch has its lanes in front: a state of two numbers for each of a thousand lanes lies in memory as 1,000
pairs, of which vectors would gather every second number. What is carried from one iteration to the next nobody sees,
nor what one loop leaves for another, as the residuals of a gradient are.

A path of pairs into which each iteration writes one has the same shape. It stays where it is: to turn it would be to
copy all of it in each iteration.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, literal, subgraphs
from wengert.core.graph.loop_spec import is_counted
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.passes.equations import holds_graphs, loop_parameters, throughout, variables
from wengert.passes.output_aliasing import viewing
from wengert.primitives.conversion import copy
from wengert.primitives.indexing.parts import assign

FEW = 8
"""Numbers of a lane up to which lanes come last."""
MANY = 16
"""Lanes from which on they do: several vectors of them."""
LONG = 8
"""Iterations from which on that is worth a copy before and after the loop."""


@throughout
def put_lanes_last(graph: Graph) -> Graph:
    """Let loops carry pairs, triples and so on with the axis of lanes last: the same values, in other places."""
    if not holds_graphs(graph):
        return graph
    turned = TurnedLoops(graph)
    for equation in graph.equations:
        turned.add(equation)
    return Graph(graph.inputs, turned.equations, graph.outputs) if turned.lanes_last else graph


class TurnedLoops:
    """Write the equations of a graph down, its loops with lanes last.

    Attributes:
        equations: those so far.
        lanes_last: what holds the same as a variable with its lanes last.
        shown: the variables that others than loops read, or loops as constants or at their beginning.
    """

    def __init__(self, graph: Graph) -> None:
        self.equations: list[Equation] = []
        self.lanes_last: dict[Variable, Variable] = {}
        self.shown = variables(graph.outputs)
        for equation in graph.equations:
            self.shown |= variables(equation.inputs[: sequences_begin(equation) if is_long_loop(equation) else None])

    def add(self, equation: Equation) -> None:
        """Append an equation; what a loop carries with lanes last, if there is such a thing."""
        if not is_long_loop(equation):
            self.equations.append(equation)
            return
        params = equation.params
        body, spec, first = params["body"], params["spec"], int(is_counted(params))
        own, ahead = spec.constants, spec.constants + spec.carried
        operands = equation.inputs[first:]
        graphs = [body, *([params["cond"]] if params["cond"] else [])]
        pairs = zip(body.inputs[own:ahead], body.outputs[: spec.carried], strict=True)
        carried = [
            is_narrow(v) and type(x) is Variable and is_narrow(x) and not writes_part(graphs, place, v.shape[0])
            for place, (v, x) in enumerate(pairs, own)
        ]
        sequences = [type(x) is Variable and len(x.shape) == 3 and x in self.lanes_last for x in operands[ahead:]]
        turning = zip(body.inputs[own:], (*carried, *sequences), strict=True)
        lanes = {v.shape[0] for v, flag in turning if flag}
        given = [*[is_narrow(v) and v.shape[0] in lanes for v in body.inputs[:own]], *carried, *sequences]
        left = [
            type(x) is Variable and is_narrow(x) and result not in self.shown
            for x, result in zip(body.outputs[spec.carried :], equation.outputs[spec.carried :], strict=True)
        ]
        if not lanes:
            self.equations.append(equation)
            return
        results = [*carried, *left]
        inputs = [*equation.inputs[:first]]
        inputs += [self.put_last(x) if flag else x for x, flag in zip(operands, given, strict=True)]
        outputs = [turned_variable(v) if flag else v for v, flag in zip(equation.outputs, results, strict=True)]
        cond = params["cond"] and turned_graph(params["cond"], given[:ahead], [False])
        changed = {**params, "body": turned_graph(body, given, results), "cond": cond}
        self.equations.append(Equation(equation.primitive, tuple(inputs), changed, tuple(outputs), equation.origin))
        for v, new, flag in zip(equation.outputs, outputs, results, strict=True):
            if flag:
                self.lanes_last[v] = new
        for v, new, flag in zip(equation.outputs[: spec.carried], outputs, carried, strict=False):
            if flag and v in self.shown:
                turn(new, v, self.equations)

    def put_last(self, value: Any) -> Any:
        """Return what holds the same as an array with its lanes last."""
        if type(value) is not Variable:
            return literal(np.ascontiguousarray(np.moveaxis(value, 0, -1)))
        if value not in self.lanes_last:
            self.lanes_last[value] = turned_variable(value)
            turn(value, self.lanes_last[value], self.equations)
        return self.lanes_last[value]


def is_long_loop(equation: Equation) -> bool:
    """Tell whether an operation is a loop of which no fewer iterations are known than are worth it.

    What is only lowered to a loop stays as it is: it has parameters of its own.
    """
    params = loop_parameters(equation)
    return params is not None and params is equation.params and (params["spec"].length or LONG) >= LONG


def sequences_begin(equation: Equation) -> int:
    """Return how many operands of a loop come before the sequences."""
    spec = equation.params["spec"]
    return int(is_counted(equation.params)) + int(spec.constants) + int(spec.carried)


def is_narrow(variable: Variable) -> bool:
    """Tell whether an array has many lanes of a few numbers each, one behind the other."""
    shape = variable.shape
    few = len(shape) == 2 and UNKNOWN not in shape and shape[0] >= MANY and 1 < shape[1] <= FEW
    return few and variable.strides is None


def writes_part(graphs: Iterable[Graph], place: int, lanes: int) -> bool:
    """Tell whether graphs write less into one of their inputs at once than a number for each lane."""
    inputs = [(graph, graph.inputs[place]) for graph in graphs if place < len(graph.inputs)]
    return any(
        writes_part_into(equation, at, lanes)
        for graph, variable in inputs
        for equation in graph.equations
        for at, x in enumerate(equation.inputs)
        if x is variable
    )


def writes_part_into(equation: Equation, place: int, lanes: int) -> bool:
    """Tell whether an equation does so with one of its operands."""
    if equation.primitive is assign:
        return place == 0 and math.prod(aval_of(equation.inputs[1]).shape) < lanes
    inner = [own for _, own in subgraphs(equation.params)]
    first = len(equation.inputs) - max([len(own.inputs) for own in inner], default=0)
    return place >= first and writes_part(inner, place - first, lanes)


def turned_variable(variable: Variable) -> Variable:
    """Return a variable for an array, or a sequence of arrays, with lanes last."""
    *length, lanes, few = variable.shape
    return Variable.of(Aval((*length, few, lanes), variable.dtype), variable.name)


def turn(value: Any, result: Variable, equations: list[Equation]) -> None:
    """Append equations that put the two axes of an array in the other order, in memory, too."""
    equations.append(viewing(value, (1, 0)))
    equations.append(Equation(copy, equations[-1].outputs, {"order": "C"}, (result,)))


def turned_graph(graph: Graph, given: Sequence[bool], results: Sequence[bool]) -> Graph:
    """Return a graph of arrays with lanes last, where the flags say so."""
    equations: list[Equation] = []
    inputs = []
    for v, flag in zip(graph.inputs, given, strict=True):
        inputs.append(turned_variable(v) if flag else v)
        if flag:
            turn(inputs[-1], v, equations)
    equations += graph.equations
    outputs = []
    for x, flag in zip(graph.outputs, results, strict=True):
        outputs.append(turned_variable(x) if flag else x)
        if flag:
            turn(x, outputs[-1], equations)
    return Graph(inputs, equations, outputs)
