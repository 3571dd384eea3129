"""Dead code: equations that no output depends on."""

from __future__ import annotations

from wengert.compile.equations import everywhere
from wengert.core.graph import Equation, Graph, Variable

__all__ = ["eliminate_dead"]


@everywhere
def eliminate_dead(graph: Graph) -> Graph:
    """Drop the equations whose results nothing uses: primitives are functions, so nobody can notice."""
    live = {x for x in graph.outputs if type(x) is Variable}
    kept: list[Equation] = []
    for equation in reversed(graph.equations):
        for variable in equation.outputs:
            if variable in live:
                live.update([x for x in equation.inputs if type(x) is Variable])
                kept.append(equation)
                break
    return graph if len(kept) == len(graph.equations) else Graph(graph.inputs, kept[::-1], graph.outputs)
