"""Loops: what does not change from iteration to iteration is computed once, before them."""

from __future__ import annotations

from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.primitives.structured import Structured
from wengert.passes.equations import Known, everywhere, renamed


@everywhere
def hoist_invariants(graph: Graph) -> Graph:
    """Let loops carry only what changes, and compute before them what depends on nothing that does.

    The same operations are evaluated on the same values, once.
    """
    known: Known = {}
    kept: list[Equation] = []
    for equation in graph.equations:
        inputs = renamed(known, equation.inputs)
        if inputs is not equation.inputs:
            equation = equation.using(inputs)
        found = equation.primitive.hoisted(equation) if isinstance(equation.primitive, Structured) else None
        if found is None:
            kept.append(equation)
        else:
            equations, results = found
            kept += equations
            known.update(results)
    if len(kept) == len(graph.equations) and not known:
        return graph
    return Graph(graph.inputs, kept, renamed(known, graph.outputs))
