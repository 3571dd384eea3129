"""The pattern of one iteration of a loop, as blocks of truths between what it is given and what it gives."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import parts
from wengert.core.values.aval import shape_of
from wengert.sparse.patterns.column_maps import Maps, column_maps, explicit, known_lengths, maps_of_pattern
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.truth_matrices import row_stack
from wengert.sparse.patterns.walk import GraphWalk, Known

Shape = tuple[int, ...]


class BodyPattern:
    """Hold which results of an iteration depend on which operands.

    Attributes:
        constants: the positions of operands of the body that move and are the same in all iterations.
        carried, sequences: the positions of others that move, each within its kind.
        left: the positions of what an iteration leaves behind that moves.
        blocks: matrices of truths, by rows ("state" or "left") and columns ("state", "constants" or "sequences").
    """

    def __init__(self, walk: GraphWalk, equation: Equation, params: Mapping[str, Any]) -> None:
        self.walk, self.graph, self.spec = walk, params["body"], params["spec"]
        given = parts(equation.inputs, params)
        flags = [bool(walk.moving(x)) for x in given.inner]
        own, there = self.spec.constants, self.spec.constants + self.spec.carried
        states = [Known(walk.value(x), None) for x in given.constants]
        states += [Known(v, None) for v in self.graph.inputs[own:]]
        while True:
            rows, starts, _ = output_matrices(walk, self.graph, states, flags)
            more = [j for j in range(self.spec.carried) if rows[j].nnz and not flags[own + j]]
            if not more:
                break
            for j in more:
                flags[own + j] = True
        free = self.spec.length is None  # rows of which nobody knows how many there are: each may be any
        self.constants = [i for i, flag in enumerate(flags) if flag and (i < own or (free and i >= there))]
        self.carried = [j for j in range(self.spec.carried) if flags[own + j]]
        self.sequences = [] if free else [i for i in range(len(flags) - there) if flags[there + i]]
        self.left = [j for j, block in enumerate(rows[self.spec.carried :]) if block.nnz]
        self.sizes = [math.prod(known_lengths(shape_of(x))) for x in self.graph.outputs]
        places = {
            "constants": columns_of(starts, self.constants),
            "state": columns_of(starts, [own + j for j in self.carried]),
            "sequences": columns_of(starts, [there + i for i in self.sequences]),
        }
        width = starts[-1]
        stacks = {
            "state": row_stack([rows[j] for j in self.carried], width),
            "left": row_stack([rows[self.spec.carried + j] for j in self.left], width),
        }
        self.blocks = {(side, name): block[:, at] for side, block in stacks.items() for name, at in places.items()}

    def rows(self, values: Sequence[Any], places: Sequence[int], columns: int) -> Any:
        """Return what some operands depend on, one below the other."""
        found = [
            explicit(self.walk.moving(values[i]), known_lengths(shape_of(values[i])), columns).to_scipy()
            for i in places
        ]
        return row_stack(found, columns)

    def cut(self, rows: Any, places: Sequence[int], carried_only: bool = False) -> Iterator[tuple[int, Any]]:
        """Yield the rows of each of some results, with its place."""
        start = 0
        for j in places:
            size = self.sizes[j if carried_only else self.spec.carried + j]
            yield j, rows[start : start + size]
            start += size

    def as_maps(self, rows: Any, shape: Shape) -> Maps:
        """Return a matrix as the maps of an array."""
        return maps_of_pattern(Pattern.of_scipy(rows), known_lengths(shape))


def output_matrices(
    walk: GraphWalk, graph: Graph, states: Sequence[Known], flags: Sequence[bool]
) -> tuple[list[Any], list[int], GraphWalk]:
    """Return which elements of each output of a graph depend on which of the inputs that move.

    Args:
        walk: one through the program that the graph is a part of.
        graph: the graph.
        states: what is known of its inputs.
        flags: which of them move.

    Returns:
        A matrix of each output, where the columns of each input begin, and the walk that found them.
    """
    shapes = [known_lengths(v.shape) for v in graph.inputs]
    sizes = [math.prod(shape) if flag else 0 for shape, flag in zip(shapes, flags, strict=True)]
    starts = [0, *np.cumsum(sizes).tolist()]
    inner = walk.inner_walk(starts[-1])
    inner.enter(graph.inputs, states)
    moving = [i for i, flag in enumerate(flags) if flag]
    maps = column_maps([shapes[i] for i in moving])
    found = inner.run(graph, {}, {graph.inputs[i]: own for i, own in zip(moving, maps, strict=True)})
    pairs = zip(found, graph.outputs, strict=True)
    return [explicit(own, known_lengths(shape_of(x)), starts[-1]).to_scipy() for own, x in pairs], starts, inner


def columns_of(starts: Sequence[int], places: Sequence[int]) -> np.ndarray[Any, Any]:
    """Return the columns of some inputs."""
    return np.concatenate([np.empty(0, np.int64), *[np.arange(starts[i], starts[i + 1]) for i in places]])
