"""Cutting a graph into segments: programs of kernels, and what NumPy computes between them.

Each equation runs as early as what it needs allows, in a native segment or one of NumPy, which take turns: as few cuts
as possible, however the two kinds of equations are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.graph.variable import Variable
from wengert.kernel.kernel import Program
from wengert.lowering.kernel_stages import program_of
from wengert.lowering.rules.lower import lower
from wengert.lowering.segments import Segment, Segments, without_numbers
from wengert.passes.dead_code import must_run
from wengert.passes.equations import distinct_variables
from wengert.passes.output_aliasing import sharing_views
from wengert.primitives.indexing.parts import assign, getitem

INDEXING = frozenset((getitem, assign))
"""What native code does and fails at for some elements."""


def segmented(graph: Graph, least: Callable[[Graph], bool] | None = None) -> Segments[Program]:
    """Return a graph in segments.

    Args:
        graph: without calls; see `wengert.passes.pipeline.inlined`.
        least: tells whether a part is worth a segment of its own, if it is not all of the graph; all are by default. If
            it is given, graphs of views alone are left to NumPy, too.
    """
    outputs = without_numbers(graph.outputs)
    whole = Graph(graph.inputs, graph.equations, outputs)
    lowered = lower(whole)
    refused = {i: found.reason for i, found in lowered.refused.items()}
    refused |= dict.fromkeys(sharing_views(graph), "memory that is also another result's")
    if least is not None and all(equation.primitive.view for equation in graph.equations):
        refused |= dict.fromkeys(range(len(graph.equations)), "a view, and nothing else to compute")
    if not refused and outputs and None not in lowered.inputs and are_apart(outputs):
        return Segments(graph, (Segment(whole, program_of(lowered), (), (), is_whole=True),))
    bound = {v for equation in graph.equations for v in equation.outputs}
    part = subgraph(graph.equations, bound.intersection(distinct_variables(outputs)))
    kept = distinct_variables(outputs)
    while least is not None and (small := small_parts(part, refused, kept, least)):
        refused |= dict.fromkeys(small, "too little work for a call of native code")
    if refused or not part.outputs:
        return Segments(graph, tuple(cut(part, refused, kept)))
    return Segments(graph, (Segment(part, program_of(lower(part)), (), ()),))


def small_parts(
    graph: Graph, refused: Mapping[int, str], kept: Sequence[Variable], least: Callable[[Graph], bool]
) -> list[int]:
    """Return the equations, by their places, of the native parts of a graph that are not worth it."""
    parts = parts_of(graph, refused, kept)
    return [i for places, part, _ in parts if refused.keys().isdisjoint(places) and not least(part) for i in places]


def are_apart(outputs: Sequence[Any]) -> bool:
    """Tell whether no array is two of some results."""
    arrays = [x for x in outputs if type(x) is Variable and x.shape]
    return len(set(arrays)) == len(arrays)


def cut(graph: Graph, refused: Mapping[int, str], kept: Sequence[Variable]) -> list[Segment[Program]]:
    """Return the segments of a graph, some of whose equations are refused; some variables are read in the end."""
    found: list[Segment[Program]] = []
    for places, part, dropped in parts_of(graph, refused, kept):
        if refused.keys().isdisjoint(places):
            found.append(Segment(part, program_of(lower(part)), (), dropped))
        else:
            found.append(Segment(part, None, tuple([refused[i] for i in places]), dropped))
    return found


def parts_of(
    graph: Graph, refused: Mapping[int, str], kept: Sequence[Variable]
) -> Iterator[tuple[list[int], Graph, tuple[Variable, ...]]]:
    """Iterate over the parts of a graph, native ones and those of NumPy in turns.

    Yields:
        the places of the equations, the part, and the variables that nothing reads after it.
    """
    turns = turns_of(graph, refused)
    order = sorted(set(turns))
    needed: dict[Variable, int] = dict.fromkeys(kept, len(order))
    for turn, equation in zip(turns, graph.equations, strict=True):
        for x in distinct_variables(equation.inputs):
            needed[x] = max(needed.get(x, 0), order.index(turn))
    for place, turn in enumerate(order):
        places = [i for i, own in enumerate(turns) if own == turn]
        part = subgraph([graph.equations[i] for i in places], {v for v, last in needed.items() if last > place})
        yield places, part, tuple([v for v in part.inputs if needed[v] == place])


def turns_of(graph: Graph, refused: Mapping[int, str]) -> list[int]:
    """Return for each equation the number of its segment: even for native ones, odd for those of NumPy.

    What might fail, or never end, does not run before a check that stands before it.
    """
    turns: list[int] = []
    known: dict[Variable, int] = {}
    checked = -1
    for i, equation in enumerate(graph.equations):
        own = int(i in refused)
        needs = [known[x] for x in equation.inputs if type(x) is Variable and x in known]
        turn = max([need + (need % 2 != own) for need in needs], default=-own)
        if own or may_fail(equation):
            turn = max(turn, checked + (checked % 2 != own))
        if must_run(equation):
            checked = max(checked, turn)
        turns.append(turn)
        known.update(dict.fromkeys(equation.outputs, turn))
    return turns


def may_fail(equation: Equation) -> bool:
    """Tell whether native code may fail at an equation, or at one in the graphs that it runs."""
    return equation.primitive in INDEXING or any(
        may_fail(inner) for _, graph in subgraphs(equation.params) for inner in graph.equations
    )


def subgraph(equations: Sequence[Equation], later: set[Variable]) -> Graph:
    """Return a graph of some equations, from what they read to what is read later."""
    own = {v for equation in equations for v in equation.outputs}
    read = [v for v in distinct_variables(x for equation in equations for x in equation.inputs) if v not in own]
    return Graph(read, equations, [v for equation in equations for v in equation.outputs if v in later])
