"""Equal graphs inside of a graph: each becomes one object, so that passes and lowering see it once.

Nine integrations in one function are nine loops of the same body; each had a graph of its own, as passes make one for
each loop.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, subgraphs
from wengert.passes.equations import enter, everywhere


@everywhere
def share_graphs(graph: Graph) -> Graph:
    """Let graphs that are the same to the last detail be one object.

    Equal graphs give the same values; whose results lie otherwise in memory, or name other lines, are not the same.
    """
    loops = [x for x in graph.equations if x.primitive.structured]
    if len(loops) < 2:
        return graph
    known: dict[Hashable, Graph] = {}
    first: dict[Equation, Equation] = {}
    for equation in loops:
        first[equation] = enter(equation, lambda inner: known.setdefault((inner, details_of(inner)), inner))
    return Graph(graph.inputs, [first.get(x, x) for x in graph.equations], graph.outputs)


def details_of(graph: Graph) -> Hashable:
    """Return what equal graphs may differ in: how values lie in memory, and where equations come from."""
    found: list[Hashable] = []
    waiting = [graph]
    while waiting:
        one = waiting.pop()
        found.append(tuple([v.strides for v in one.inputs]))
        for equation in one.equations:
            found.append((origin_of(equation.origin), *[v.strides for v in equation.outputs]))
            if equation.primitive.structured:
                waiting += [inner for _, inner in subgraphs(equation.params)]
    return tuple(found)


def origin_of(origin: Any) -> Hashable:
    """Return where an equation comes from; code by its identity, as its hash goes over all of it."""
    return (id(origin[0]), origin[1]) if type(origin) is tuple else origin
