"""How many bytes a graph needs at most at once beside its inputs and outputs, by when each value is used last."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Reduction, form_of
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import UNKNOWN
from wengert.support.records import NamedTuple


class BufferUse(NamedTuple):
    """What a part of a graph does with memory.

    Attributes:
        read: the values it reads, literals among them.
        made: the variables it computes.
        working: bytes that it needs for itself while it runs.
        is_view: whether what it makes lies in the memory of what it reads.
    """

    read: Sequence[Any]
    made: Sequence[Variable]
    working: int
    is_view: bool = False


def size_in_bytes(values: Iterable[Any]) -> int:
    """Return how many bytes values take; nothing of sequences whose length is known only at run time."""
    avals = [x.aval for x in values if type(x) is Variable]
    return sum([math.prod(a.shape) * a.dtype.itemsize for a in avals if UNKNOWN not in a.shape])


def peak_of(uses: Sequence[BufferUse], given: Iterable[Variable], results: Iterable[Any]) -> int:
    """Return how many bytes parts of a graph need at once, in their order, but for what is given and the results.

    Args:
        uses: what each part reads and makes.
        given: the inputs of the graph.
        results: its outputs.
    """
    beside = {x for x in results if type(x) is Variable} | set(given)
    lies_in: dict[Any, Any] = {}
    last: dict[Variable, int] = {}
    for i, use in enumerate(uses):
        variables = [x for x in use.read if type(x) is Variable]
        if use.is_view and variables:
            lies_in.update(dict.fromkeys(use.made, lies_in.get(variables[0], variables[0])))
        last.update({lies_in.get(x, x): i for x in (*variables, *use.made)})
    last.update({lies_in[x]: len(uses) for x in beside if x in lies_in})
    ends: dict[int, list[Variable]] = {}
    for variable, i in last.items():
        ends.setdefault(i, []).append(variable)
    alive = peak = 0
    for i, use in enumerate(uses):
        alive += size_in_bytes([x for x in use.made if x not in lies_in and x not in beside])
        peak = max(peak, alive + use.working)
        alive -= size_in_bytes([x for x in ends.get(i, ()) if x not in beside])
    return peak


def evaluation_memory(graph: Graph) -> int:
    """Return about how many bytes NumPy needs to evaluate a graph, but for its inputs and outputs.

    Rows of loops that a condition ends are not counted, since nobody knows how many there will be.

    >>> from wengert.graph import trace
    >>> import numpy as np
    >>> evaluation_memory(trace(lambda x: np.sum(np.exp(x) * np.sin(x)))(np.ones(1000)))
    24000
    """
    uses = [BufferUse(e.inputs, e.outputs, own_memory(e), is_view(e)) for e in graph.equations]
    return peak_of(uses, graph.inputs, graph.outputs)


def is_view(equation: Equation) -> bool:
    """Tell whether what an equation makes lies in the memory of its one operand."""
    return bool(equation.primitive.view) and len(equation.inputs) == 1


def own_memory(equation: Equation) -> int:
    """Return about how many bytes an equation needs for itself.

    The graphs that it runs, of which it runs one at a time, are known. Functions of NumPy mostly need as much as they
    make, for a copy in another order or an intermediate result; ufuncs and sums need nothing.
    """
    primitive = equation.primitive
    if isinstance(primitive, Structured):
        inner = [graph for _, graph in subgraphs(equation.params)]
        return max([evaluation_memory(graph) + size_in_bytes(graph.outputs) for graph in inner], default=0)
    if type(primitive.evaluate) is np.ufunc or isinstance(form_of(primitive), Reduction) or is_view(equation):
        return 0
    return size_in_bytes(equation.outputs)
