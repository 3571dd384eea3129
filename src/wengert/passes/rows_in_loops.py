"""Loops compute what they read row by row: a large sequence is not written first, and read again from a far cache.

Cotangents of the states of a recurrent network are states times numbers (`np.mean(hs**2)`): of 128 cells, batch 32, 50
steps, 1.6 MB of them. The gradient takes 0.94 of the time without these in memory.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from wengert.core.forms.form import is_elementwise
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.passes.equations import holds_graphs, loop_parameters, throughout
from wengert.support.machine import MACHINE


@throughout
def compute_rows_in_loops(graph: Graph) -> Graph:
    """Return a graph whose loops compute cheap operations, element by element, on the rows of what they alone read.

    The same operations are evaluated on the same values, row by row.
    """
    if not holds_graphs(graph):
        return graph
    uses = Counter([x for e in graph.equations for x in e.inputs if type(x) is Variable])
    uses.update([x for x in graph.outputs if type(x) is Variable])
    makers = {e.outputs[0]: e for e in graph.equations if len(e.outputs) == 1 and uses[e.outputs[0]] == 1}
    changed: dict[Equation, Equation] = {}
    moved = set[Equation]()
    for equation in graph.equations:
        if is_loop_of_known_length(equation):
            loop = equation
            while (found := next_row(loop, makers)) is not None:
                place, maker = found
                loop = with_row(loop, place, maker)
                moved.add(maker)
            changed[equation] = loop
    if not moved:
        return graph
    return Graph(graph.inputs, [changed.get(e, e) for e in graph.equations if e not in moved], graph.outputs)


def is_loop_of_known_length(equation: Equation) -> bool:
    """Tell whether an equation is a loop of which it is known how many rounds there are."""
    params = loop_parameters(equation)
    return params is not None and params is equation.params and params["cond"] is None and bool(params["spec"].length)


def next_row(loop: Equation, makers: dict[Variable, Equation]) -> tuple[int, Equation] | None:
    """Return the place of a sequence whose rows a loop is to compute, and what makes it; None if none is left."""
    spec, body = loop.params["spec"], loop.params["body"]
    for place in range(spec.constants + spec.carried, len(loop.inputs)):
        x = loop.inputs[place]
        maker = makers.get(x) if type(x) is Variable else None
        if maker is not None and body.inputs[place].strides is None and is_for_rows(maker):
            return place, maker
    return None


def is_for_rows(equation: Equation) -> bool:
    """Tell whether an equation is cheap, and computes each of many long rows from rows and what is the same for all."""
    (out,), primitive = equation.outputs, equation.primitive
    if equation.params or not primitive.cheap or not is_elementwise(primitive):
        return False
    if UNKNOWN in out.shape or out.strides is not None or math.prod(out.shape[1:]) < MACHINE.call_elements:
        return False
    return all(is_row_of(x, out) or is_the_same(x, out) for x in equation.inputs)


def is_row_of(x: Any, out: Variable) -> bool:
    """Tell whether an operand has a row for each of a result's."""
    return type(x) is Variable and x.shape == out.shape and x.strides is None


def is_the_same(x: Any, out: Variable) -> bool:
    """Tell whether an operand is the same for all rows of a result."""
    return len(aval_of(x).shape) < len(out.shape) or (type(x) is not Variable and is_one_number(x))


def is_one_number(x: Any) -> bool:
    """Tell whether an array is one number, broadcast."""
    return isinstance(x, np.ndarray) and x.size > 0 and not any(x.strides)


def with_row(loop: Equation, place: int, maker: Equation) -> Equation:
    """Return a loop that computes the rows of a sequence by what makes it."""
    spec, body = loop.params["spec"], loop.params["body"]
    out, own = maker.outputs[0], spec.constants
    constants, rows, operands = dict[Variable, Variable](), dict[Variable, Variable](), list[Any]()
    for x in maker.inputs:
        if is_row_of(x, out):
            operands.append(rows.setdefault(x, Variable.of(Aval(x.shape[1:], x.dtype), x.name)))
        elif type(x) is Variable:
            operands.append(constants.setdefault(x, Variable.of(x.aval, x.name, x.strides)))
        else:
            operands.append(x if len(aval_of(x).shape) < len(out.shape) else x[0])
    row = Equation(maker.primitive, tuple(operands), {}, (body.inputs[place],), maker.origin)
    inner = Graph(
        [*body.inputs[:own], *constants.values(), *body.inputs[own:place], *rows.values(), *body.inputs[place + 1 :]],
        [row, *body.equations],
        body.outputs,
    )
    inputs = (*loop.inputs[:own], *constants, *loop.inputs[own:place], *rows, *loop.inputs[place + 1 :])
    changed = {**loop.params, "body": inner, "spec": spec.holding(own + len(constants), spec.carried)}
    return Equation(loop.primitive, inputs, changed, loop.outputs, loop.origin)
