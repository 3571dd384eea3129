"""In whose memory the results of a graph lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from wengert.compile.equations import distinct_variables
from wengert.core.graph import Graph, Variable

__all__ = ["merged_results", "sharing_views"]


def owner_of(graph: Graph) -> Callable[[Any], Variable | None]:
    """Return the function that finds the variable in whose memory an output lies; None for literals."""
    made = {v: equation for equation in graph.equations for v in equation.outputs if equation.primitive.view}

    def owner(value: Any) -> Variable | None:
        while value in made if type(value) is Variable else False:
            value = made[value].inputs[0]
        return value if type(value) is Variable else None

    return owner


def merged_results(before: Graph, after: Graph) -> frozenset[int]:
    """Return the results that share memory with an earlier one only since equal equations were merged."""
    if after is before:
        return frozenset()
    owners, simple_owners = list(map(owner_of(before), before.outputs)), list(map(owner_of(after), after.outputs))
    pairs = zip(owners, simple_owners, strict=True)
    first: dict[Variable, Any] = {}
    found = [i for i, (own, simple) in enumerate(pairs) if simple is not None and first.setdefault(simple, own) != own]
    return frozenset(found)


def sharing_views(graph: Graph) -> list[int]:
    """Return the places of the equations by which results come to share memory with others that are no input's."""
    owner, arrays = owner_of(graph), [x for x in distinct_variables(graph.outputs) if x.shape]
    owners = list(map(owner, arrays))
    counts, inputs = Counter(owners), set(graph.inputs)
    sharing = {x for x, own in zip(arrays, owners, strict=True) if counts[own] > 1 and own not in inputs}
    found = []
    for i in reversed(range(len(graph.equations))):
        equation = graph.equations[i]
        if equation.primitive.view and not sharing.isdisjoint(equation.outputs):
            sharing.add(equation.inputs[0])
            found.append(i)
    return found
