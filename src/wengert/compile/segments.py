"""Segments: a graph cut into programs of kernels, and what NumPy computes between them.

Each equation runs as early as what it needs allows, in a native segment or one of NumPy, which take turns: as few cuts
as possible, however the two kinds of equations are mixed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np

from wengert._records import Record
from wengert.compile.equations import distinct_variables
from wengert.compile.layouts import as_array, as_value
from wengert.compile.owners import sharing_views
from wengert.core.graph import Equation, Graph, Variable, evaluate

if TYPE_CHECKING:
    from wengert.compile.lower import Lowered
    from wengert.kernel.kernel import Program

__all__ = ["Segment", "Segments", "segmented", "with_programs"]

P = TypeVar("P")
Q = TypeVar("Q")
Arrays = Sequence[np.ndarray[Any, Any]]


class Segment(Record, Generic[P]):
    """Hold equations that run together.

    Attributes:
        graph: from the variables that they read to those that are read later.
        program: what computes it, kernels or machine code; None where NumPy does.
        reasons: why NumPy does, for each equation.
        dropped: the variables that nothing reads after it.
        is_whole: whether it computes all results, but for known numbers, from all inputs. What a program gives after
            them is whether a place was out of bounds.
    """

    def __init__(
        self,
        graph: Graph,
        program: P | None,
        reasons: tuple[str, ...],
        dropped: tuple[Variable, ...],
        is_whole: bool = False,
    ) -> None:
        self.graph, self.program, self.reasons = graph, program, reasons
        self.dropped, self.is_whole = dropped, is_whole


class Segments(Record, Generic[P]):
    """Hold a graph in segments, in order.

    Attributes:
        graph: the graph.
        parts: the segments.
    """

    def __init__(self, graph: Graph, parts: tuple[Segment[P], ...]) -> None:
        self.graph, self.parts = graph, parts

    @property
    def whole(self) -> P | None:
        """The program that computes all results, but for known numbers, from all inputs, if one does."""
        return self.parts[0].program if self.parts and self.parts[0].is_whole else None

    def run(
        self,
        inputs: Sequence[Any],
        call: Callable[[P, Arrays], Arrays],
        evaluated: Callable[[Graph, Sequence[Any]], Sequence[Any]] = evaluate,
    ) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the inputs.

        Args:
            inputs: one for each input of the graph.
            call: what carries out a program on C-contiguous arrays.
            evaluated: what computes the rest.
        """
        values: dict[Variable, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        for part in self.parts:
            given = [values[v] for v in part.graph.inputs]
            if part.program is None:
                values.update(zip(part.graph.outputs, evaluated(part.graph, given), strict=True))
            else:
                arrays = call(part.program, list(map(as_array, part.graph.inputs, given)))
                if len(arrays) > len(part.graph.outputs) and arrays[-1]:  # out of bounds: NumPy raises its error
                    values.update(zip(part.graph.outputs, evaluate(part.graph, given), strict=True))
                    continue
                made = zip(part.graph.outputs, arrays, strict=False)
                values.update({x: as_value(x, array) for x, array in made if type(x) is Variable})
            for variable in part.dropped:
                del values[variable]
        return tuple([values[x] if type(x) is Variable else x for x in self.graph.outputs])


def with_programs(segments: Segments[P], convert: Callable[[P], Q]) -> Segments[Q]:
    """Return segments whose programs are what others become."""
    programs = [None if part.program is None else convert(part.program) for part in segments.parts]
    parts = [
        Segment(part.graph, program, part.reasons, part.dropped, part.is_whole)
        for part, program in zip(segments.parts, programs, strict=True)
    ]
    return Segments(segments.graph, tuple(parts))


def segmented(graph: Graph, least: Callable[[Graph], bool] | None = None) -> Segments[Program]:
    """Return a graph in segments.

    Args:
        graph: without calls; see `wengert.compile.passes.inlined`.
        least: tells whether a part is worth a segment of its own, if it is not all of the graph; all are by default. If
            it is given, graphs of views alone are left to NumPy, too.
    """
    outputs = without_numbers(graph.outputs)
    whole = Graph(graph.inputs, graph.equations, outputs)
    lowered = nodes_of(whole)
    refused = {i: found.reason for i, found in lowered.refused.items()}
    refused |= dict.fromkeys(sharing_views(graph), "memory that is also another result's")
    if least is not None and all(equation.primitive.view for equation in graph.equations):
        refused |= dict.fromkeys(range(len(graph.equations)), "a view, and nothing else to compute")
    if not refused and outputs and None not in lowered.inputs and are_apart(outputs):
        return Segments(graph, (Segment(whole, kernels_of(lowered), (), (), is_whole=True),))
    bound = {v for equation in graph.equations for v in equation.outputs}
    part = subgraph(graph.equations, bound.intersection(distinct_variables(outputs)))
    kept = distinct_variables(outputs)
    while least is not None and (small := small_parts(part, refused, kept, least)):
        refused |= dict.fromkeys(small, "too little work for a call of native code")
    if refused or not part.outputs:
        return Segments(graph, tuple(cut(part, refused, kept)))
    return Segments(graph, (Segment(part, kernels_of(nodes_of(part)), (), ()),))


def small_parts(
    graph: Graph, refused: Mapping[int, str], kept: Sequence[Variable], least: Callable[[Graph], bool]
) -> list[int]:
    """Return the equations, by their places, of the native parts of a graph that are not worth it."""
    parts = parts_of(graph, refused, kept)
    return [i for places, part, _ in parts if refused.keys().isdisjoint(places) and not least(part) for i in places]


def without_numbers(outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a graph that are not known before, and those that are arrays."""
    return tuple([x for x in outputs if type(x) is Variable or type(x) is np.ndarray])


def are_apart(outputs: Sequence[Any]) -> bool:
    """Tell whether no array is two of some results."""
    arrays = [x for x in outputs if type(x) is Variable and x.shape]
    return len(set(arrays)) == len(arrays)


def nodes_of(graph: Graph) -> Lowered:
    """Return what a graph computes as nodes; graphs that were compiled before need nothing that makes them."""
    from wengert.compile.lower import lower

    return lower(graph)


def kernels_of(lowered: Lowered) -> Program:
    """Return the kernels of nodes."""
    from wengert.compile.writing import program_of

    return program_of(lowered)


def cut(graph: Graph, refused: Mapping[int, str], kept: Sequence[Variable]) -> list[Segment[Program]]:
    """Return the segments of a graph, some of whose equations are refused; some variables are read in the end."""
    found: list[Segment[Program]] = []
    for places, part, dropped in parts_of(graph, refused, kept):
        if refused.keys().isdisjoint(places):
            found.append(Segment(part, kernels_of(nodes_of(part)), (), dropped))
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
    """Return for each equation the number of its segment: even for native ones, odd for those of NumPy."""
    turns: list[int] = []
    known: dict[Variable, int] = {}
    for i, equation in enumerate(graph.equations):
        own = int(i in refused)
        needs = [known[x] for x in equation.inputs if type(x) is Variable and x in known]
        turn = max([need + (need % 2 != own) for need in needs], default=-own)
        turns.append(turn)
        known.update(dict.fromkeys(equation.outputs, turn))
    return turns


def subgraph(equations: Sequence[Equation], later: set[Variable]) -> Graph:
    """Return a graph of some equations, from what they read to what is read later."""
    own = {v for equation in equations for v in equation.outputs}
    read = [v for v in distinct_variables(x for equation in equations for x in equation.inputs) if v not in own]
    return Graph(read, equations, [v for equation in equations for v in equation.outputs if v in later])
