"""In whose memory the results of a graph lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from wengert.compile.equations import distinct_variables
from wengert.core.abstract import avals_and_strides
from wengert.core.graph import Equation, Graph, Variable
from wengert.core.order import Joined, axes_without_gaps
from wengert.primitives.conversion import copy

__all__ = ["merged_results", "sharing_views", "with_own_results", "with_packed_results"]


def owner_of(graph: Graph) -> Callable[[Any], Variable | None]:
    """Return the function that finds the variable in whose memory an output lies; None for literals."""
    views = [equation for equation in graph.equations if equation.primitive.view and len(equation.inputs) == 1]
    made = {v: equation for equation in views for v in equation.outputs}  # elements at places are copies

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


def with_packed_results(graph: Graph) -> Graph:
    """Return a graph whose results are copies where they lie in inputs, or with gaps in memory that nobody else sees.

    The gaps may be other elements, those in reverse order, and repeated ones. Kernels write such copies like all else.
    """
    owner = owner_of(graph)
    owners = list(map(owner, graph.outputs))
    counts, inputs = Counter(owners), set(graph.inputs)
    equations, outputs = list(graph.equations), list(graph.outputs)
    for i, (x, own) in enumerate(zip(outputs, owners, strict=True)):
        if own is not None and has_elements(x) and (own in inputs or (counts[own] == 1 and is_spread(x))):
            equations.append(copying(x))
            outputs[i] = equations[-1].outputs[0]
    if len(equations) == len(graph.equations):
        return graph
    found = Graph(graph.inputs, equations, outputs)
    found.settled = graph.settled  # the passes take copies that lie as what they are of for nothing
    return found


def with_own_results(graph: Graph) -> Graph:
    """Return a graph whose results have memory of their own each, for one who reads all and keeps none."""
    owner = owner_of(graph)
    equations, found, owners = list(graph.equations), dict[Variable, Variable](), set[Variable]()
    for x in distinct_variables(graph.outputs):
        own = owner(x)
        if own in owners and has_elements(x):
            equations.append(copying(x))
            found[x] = equations[-1].outputs[0]
        elif own is not None:
            owners.add(own)
    outputs = [found.get(x, x) if type(x) is Variable else x for x in graph.outputs]
    return Graph(graph.inputs, equations, outputs) if found else graph


def copying(x: Variable) -> Equation:
    """Return the equation that copies a value."""
    (aval,), order = avals_and_strides(copy, (x,), {})
    return Equation(copy, (x,), {}, (Variable.of(aval, strides=None if order is None else order[0]),))


def has_elements(x: Variable) -> bool:
    """Tell whether a value is an array with elements, which lie in a way that is known."""
    return bool(x.shape) and 0 not in x.shape and type(x.strides) is not Joined


def is_spread(x: Variable) -> bool:
    """Tell whether an array does not fill its memory in the order of some axes."""
    return bool(x.strides) and axes_without_gaps(x.shape, x.strides, x.dtype.itemsize) is None


def sharing_views(graph: Graph) -> list[int]:
    """Return the places of the equations by which results come to share memory with others that are no input's."""
    owner, arrays = owner_of(graph), [x for x in distinct_variables(graph.outputs) if x.shape]
    owners = list(map(owner, arrays))
    counts, inputs = Counter(owners), set(graph.inputs)
    sharing = {x for x, own in zip(arrays, owners, strict=True) if counts[own] > 1 and own not in inputs}
    found = []
    for i in reversed(range(len(graph.equations))):
        equation = graph.equations[i]
        if equation.primitive.view and len(equation.inputs) == 1 and not sharing.isdisjoint(equation.outputs):
            sharing.add(equation.inputs[0])
            found.append(i)
    return found
