"""Segments: a graph as programs of kernels, and what NumPy computes between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate
from wengert.lowering.layouts import as_array, as_value
from wengert.support.records import Record

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
        instead: Callable[[Graph, Sequence[Any]], Sequence[Any]] = evaluate,
    ) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the inputs.

        Args:
            inputs: one for each input of the graph.
            call: what carries out a program on C-contiguous arrays.
            evaluated: what computes the rest.
            instead: what computes what a program could not: where a place is out of bounds, NumPy raises its error.
        """
        values: dict[Variable, Any] = dict(zip(self.graph.inputs, inputs, strict=True))
        for part in self.parts:
            outputs, given = part.graph.outputs, [values[v] for v in part.graph.inputs]
            if part.program is None:
                results = evaluated(part.graph, given)
            else:
                arrays = call(part.program, list(map(as_array, part.graph.inputs, given)))
                if len(arrays) > len(outputs) and arrays[-1]:
                    results = instead(part.graph, given)
                else:
                    made = zip(outputs, arrays, strict=False)
                    results = [as_value(x, array) if type(x) is Variable else x for x, array in made]
            values.update({x: y for x, y in zip(outputs, results, strict=True) if type(x) is Variable})
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


def without_numbers(outputs: Sequence[Any]) -> tuple[Any, ...]:
    """Return the results of a graph that are not known before, and those that are arrays with elements."""
    return tuple([x for x in outputs if type(x) is Variable or (type(x) is np.ndarray and x.size)])
