"""In whose memory the results of a graph lie."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection
from typing import Any

from wengert.core.forms.abstract_evaluation import avals_and_strides
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.memory.memory_layout import Joined, axes_without_gaps
from wengert.passes.equations import distinct_variables
from wengert.primitives.conversion import copy
from wengert.primitives.shapes import inverse, transpose


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


def with_packed_results(graph: Graph, apart: Collection[int] = ()) -> Graph:
    """Return a graph whose results are copies where they lie in inputs, or with gaps in memory that nobody else sees.

    The gaps may be other elements, those in reverse order, and repeated ones. Kernels write such copies like all else.

    Args:
        graph: the graph.
        apart: the places of results that are to share memory with no other.
    """
    owner = owner_of(graph)
    owners = list(map(owner, graph.outputs))
    counts, inputs = Counter(owners), set(graph.inputs)
    equations, outputs = list(graph.equations), list(graph.outputs)
    for i, (x, own) in enumerate(zip(outputs, owners, strict=True)):
        if own is None or not has_elements(x):
            continue
        if own in inputs or (i in apart if counts[own] > 1 else is_spread(x)):
            equations.append(copying(x))
            outputs[i] = equations[-1].outputs[0]
    if len(equations) == len(graph.equations):
        return graph
    found = Graph(graph.inputs, equations, outputs)
    found.settled = graph.settled  # the passes take copies that lie as what they are of for nothing
    return found


def reading_in_c_order(variable: Variable) -> list[Equation]:
    """Return the equations that give a variable, which lies in another order, from one that lies in C order."""
    axes = axes_in_kernels(variable)
    given = Variable.of(variable.aval, "")
    turned = viewing(given, axes)
    copied = copying(turned.outputs[0], "C")
    return [turned, copied, Equation(transpose, copied.outputs, {"axes": inverse(axes)}, (variable,))]


def viewing(x: Variable, axes: tuple[int, ...]) -> Equation:
    """Return the equation that transposes a value."""
    params = {"axes": axes}
    (aval,), strides = avals_and_strides(transpose, (x,), params)
    return Equation(transpose, (x,), params, (Variable.of(aval, strides=None if strides is None else strides[0]),))


def with_own_results(graph: Graph, ordered: range = range(0)) -> Graph:
    """Return a graph whose results have memory of their own each, for one who reads all and keeps none.

    Args:
        graph: the graph.
        ordered: the places of results that are to lie in C order.
    """
    owner = owner_of(graph)
    equations, found, owners = list(graph.equations), dict[Variable, Variable](), set[Variable]()
    outputs = list(graph.outputs)
    for i in ordered:
        x = outputs[i]
        if type(x) is Variable and has_elements(x) and x.strides is not None:
            equations.append(copying(x, "C"))
            outputs[i] = equations[-1].outputs[0]
    for x in distinct_variables(outputs):
        own = owner(x)
        if own in owners and has_elements(x):
            equations.append(copying(x))
            found[x] = equations[-1].outputs[0]
        elif own is not None:
            owners.add(own)
    outputs = [found.get(x, x) if type(x) is Variable else x for x in outputs]
    return graph if len(equations) == len(graph.equations) else Graph(graph.inputs, equations, outputs)


def copying(x: Variable, order: str = "K") -> Equation:
    """Return the equation that copies a value, in its own order or another."""
    params = {} if order == "K" else {"order": order}
    (aval,), strides = avals_and_strides(copy, (x,), params)
    return Equation(copy, (x,), params, (Variable.of(aval, strides=None if strides is None else strides[0]),))


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


def axes_in_kernels(variable: Variable) -> tuple[int, ...]:
    """Return the axes of a variable in the order in which kernels have them, who read and write all memory in C order.

    Others than those in their own order are of arrays without gaps.
    """
    found = axes_without_gaps(variable.shape, variable.strides, variable.dtype.itemsize)
    return tuple(range(len(variable.shape))) if found is None else found
