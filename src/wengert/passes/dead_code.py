"""Dead code: equations that no output depends on, also inside the graphs that structured operations run."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import compress
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, derive, must_run
from wengert.core.primitives.structured import Structured
from wengert.passes.equations import everywhere, with_equations


@everywhere
def eliminate_dead(graph: Graph) -> Graph:
    """Drop the equations whose results nothing uses: primitives are functions, so nobody can notice.

    What may raise an error of Python's stays, as do calls of a user's function that have to tell whether what was
    traced holds for these values.

    Branches and loops lose results that nothing uses, carried values that only keep themselves up to date, and the
    operands that only these needed.
    """
    live = {x for x in graph.outputs if type(x) is Variable}
    kept: list[Equation] = []
    for equation in reversed(graph.equations):
        if not live.isdisjoint(equation.outputs) or must_run(equation):
            if equation.primitive.structured:
                equation = trim_equation(equation, [v in live for v in equation.outputs])
            live.update([x for x in equation.inputs if type(x) is Variable])
            kept.append(equation)
    return with_equations(graph, kept[::-1])


def trim_equation(equation: Equation, used: Sequence[bool]) -> Equation:
    """Return the equation of a structured operation without the results and operands that nothing needs."""
    primitive, needed = equation.primitive, needed_by(equation, used)
    if needed is None or not isinstance(primitive, Structured):
        return equation
    params = primitive.trim(*needed, equation.params)
    inputs, outputs = map(tuple, map(compress, (equation.inputs, equation.outputs), needed))
    return Equation(primitive, inputs, params, outputs, equation.origin)


def needed_by(equation: Equation, used: Sequence[bool]) -> tuple[Sequence[bool], Sequence[bool]] | None:
    """Return which operands and results the used results of an equation need; None if all are needed."""
    return equation.primitive.needs(used, equation.params) if isinstance(equation.primitive, Structured) else None


def needed_inputs(graph: Graph, used: Sequence[bool]) -> list[bool]:
    """Return which inputs of a graph the used ones among its outputs need."""
    return list(derive(graph, ("needed", *used), lambda: find_needed_inputs(graph, used)))


def find_needed_inputs(graph: Graph, used: Sequence[bool]) -> list[bool]:
    """Return which inputs of a graph the used ones among its outputs need, found by a walk over its equations.

    Eliminating what is not needed would enter sub-graphs at each depth, and so be exponential.
    """
    live = {x for x in compress(graph.outputs, used) if type(x) is Variable}
    for equation in reversed(graph.equations):
        if live.isdisjoint(equation.outputs) and not must_run(equation):
            continue
        inputs: Iterable[Any] = equation.inputs
        if equation.primitive.structured:
            flags = [v in live for v in equation.outputs]
            needed = None if all(flags) else needed_by(equation, flags)
            inputs = inputs if needed is None else compress(inputs, needed[0])
        live.update([x for x in inputs if type(x) is Variable])
    return [variable in live for variable in graph.inputs]


def narrow_graph(graph: Graph, inputs: Sequence[bool], outputs: Sequence[bool]) -> Graph:
    """Return a graph of the flagged inputs and outputs, which need no others."""

    def narrow() -> Graph:
        given, found = (tuple(compress(*pair)) for pair in ((graph.inputs, inputs), (graph.outputs, outputs)))
        return eliminate_dead(Graph(given, graph.equations, found))

    return derive(graph, ("narrow", *inputs, "for", *outputs), narrow)
