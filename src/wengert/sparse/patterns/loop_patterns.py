"""Patterns through calls, branches and loops: what graphs among the parameters of an equation make of maps.

A short loop of a known length is followed step by step, with what is known at each step. In a longer one the pattern
of the body is the same in all iterations, a matrix of truths: its powers say what the last state depends on, taken by
squaring, and what each step leaves behind, until they repeat. No iteration is followed for itself.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import Parts, parts
from wengert.core.maps.box_maps import BoxMap, join_maps
from wengert.core.maps.composition import compose
from wengert.core.maps.coordinates import Coordinate
from wengert.core.maps.index_maps import Shape
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import UNKNOWN, shape_of
from wengert.sparse.patterns.column_maps import Maps, known_lengths
from wengert.sparse.patterns.counted_loops import CountedLoop, looks_by_numbers, stack_of
from wengert.sparse.patterns.loop_body import BodyPattern
from wengert.sparse.patterns.truth_matrices import (
    as_sparse,
    either,
    fixed_point,
    power_and_sum,
    powers,
    product,
    row_stack,
    toeplitz,
)
from wengert.sparse.patterns.walk import GraphWalk, Known

Params = Mapping[str, Any]
SHORT = 32
"""The longest loop that is followed step by step."""


class InnerGraphs(StructuredLowering):
    """Follow the graphs of one equation."""

    def __init__(self, walk: GraphWalk, equation: Equation) -> None:
        self.walk, self.equation = walk, equation

    def call(self, graph: Graph) -> Sequence[Maps]:
        """Follow a graph that runs once."""
        operands = self.equation.inputs[len(self.equation.inputs) - len(graph.inputs) :]
        states = [self.walk.state(x) for x in operands]
        found, maps = self.step(graph, states, [self.walk.moving(x) for x in operands])
        self.walk.enter(self.equation.outputs, found)
        return maps

    def recomputation(self, graph: Graph) -> Sequence[Maps]:
        """Follow a graph that runs once."""
        return self.call(graph)

    def branch(self, graphs: Sequence[Graph]) -> Sequence[Maps]:
        """Follow the graph that is chosen, or all of them where nobody knows which."""
        index = self.walk.value(self.equation.inputs[0])
        if type(index) is not Variable:
            return self.call(graphs[int(index)])
        operands = self.equation.inputs[1:]
        states, maps = [self.walk.state(x) for x in operands], [self.walk.moving(x) for x in operands]
        found = [self.step(graph, states, maps)[1] for graph in graphs]
        return [join_maps([one for maps in column for one in maps]) for column in zip(*found, strict=True)]

    def zero_rows(self, _depth: int) -> Sequence[Maps]:
        """Follow nothing."""
        return [()] * len(self.equation.outputs)

    def loop(self, params: Params) -> Sequence[Maps]:
        """Follow a loop."""
        length = params["spec"].length
        if params["cond"] is None and length is not None and length <= SHORT:
            return self.unroll(params)
        return self.follow_loop(params)

    def follow_loop(self, params: Params) -> Sequence[Maps]:
        """Follow a loop that is long, or whose length nobody knows."""
        if looks_by_numbers(self.walk, self.equation, params):
            known, maps = CountedLoop(self.walk, self.equation, params).results()
            self.walk.enter(self.equation.outputs, known)
            return maps
        return LoopPattern(self.walk, self.equation, params).results()

    def step(self, graph: Graph, states: Sequence[Known], maps: Sequence[Maps]) -> tuple[list[Known], Sequence[Maps]]:
        """Return what is known of the outputs of a graph, and their maps, from those of its inputs."""
        walk = self.walk.inner_walk(self.walk.columns)
        walk.enter(graph.inputs, states)
        found = walk.run(graph, {}, dict(zip(graph.inputs, maps, strict=True)))
        return [walk.state(x) for x in graph.outputs], found

    def unroll(self, params: Params) -> Sequence[Maps]:
        """Follow the iterations of a loop one by one."""
        spec = params["spec"]
        inputs = self.equation.inputs
        states = parts([self.walk.state(x) for x in inputs], params)
        maps = parts([self.walk.moving(x) for x in inputs], params)
        shapes = list(map(shape_of, parts(inputs, params).sequences))
        state, moving = states.carried, list(maps.carried)
        left: list[list[BoxMap]] = [[] for _ in params["body"].outputs[spec.carried :]]
        behind: list[list[Known]] = [[] for _ in left]
        for position in range(spec.length - 1, -1, -1) if spec.reverse else range(spec.length):
            rows = [x.row(position) for x in states.sequences]
            of_rows = [row_maps(own, position, shape) for own, shape in zip(maps.sequences, shapes, strict=True)]
            given = [*states.constants, *state, *rows], [*maps.constants, *moving, *of_rows]
            found, reached = self.step(params["body"], *given)
            state, moving = found[: spec.carried], list(reached[: spec.carried])
            outputs = self.equation.outputs[spec.carried :]
            for rows_left, own, v in zip(left, reached[spec.carried :], outputs, strict=True):
                at = [] if UNKNOWN in v.shape else [Coordinate.at(position)]  # rows of unknown number: each may be any
                rows_left += [one.onto([*at, *one.target]) for one in own]
            for column, value in zip(behind, found[spec.carried :], strict=True):
                column.append(value)
        stacks = zip(self.equation.outputs[spec.carried :], behind, strict=True)
        known = [*state, *[stack_of(v, column, spec.reverse) for v, column in stacks]]
        self.walk.enter(self.equation.outputs, known)
        return [*moving, *map(join_maps, left)]


def row_maps(maps: Maps, position: int, shape: Shape) -> Maps:
    """Return the maps of one element of a sequence; those of any, where nobody knows how many rows there are."""
    if UNKNOWN in shape:
        return maps
    own = [Coordinate.along(d) for d in range(len(shape) - 1)]
    row = BoxMap(shape[1:], own, [Coordinate.at(position), *own])
    return join_maps([compose(row, one, shape) for one in maps])


class LoopPattern:
    """Find the patterns of the results of a loop from those of its body."""

    def __init__(self, walk: GraphWalk, equation: Equation, params: Params) -> None:
        self.walk, self.equation, self.params = walk, equation, params
        self.body = BodyPattern(walk, equation, params)
        spec = params["spec"]
        self.length = spec.length if params["cond"] is None else None
        self.reverse = spec.reverse
        given: Parts = parts(equation.inputs, params)
        body = self.body
        self.start = body.rows(given.carried, body.carried, walk.columns)
        self.constants = body.rows(given.inner, body.constants, walk.columns)
        self.drive = product(body.blocks["state", "constants"], self.constants)
        self.sequences = self.rows_by_step(given.sequences)

    def rows_by_step(self, sequences: Sequence[Any]) -> Any:
        """Return the rows of all sequences that move, those of the first step first; None if there are none."""
        if not self.body.sequences:
            return None
        stack = self.body.rows(sequences, self.body.sequences, self.walk.columns)
        starts = np.cumsum([0, *[math.prod(shape_of(sequences[i])) for i in self.body.sequences]])
        assert self.length is not None
        order = np.concatenate(
            [np.arange(a, b).reshape(self.length, -1) for a, b in itertools.pairwise(starts)], axis=1
        )
        return stack[(order[::-1] if self.reverse else order).reshape(-1)]

    def results(self) -> Sequence[Maps]:
        """Return the maps of all results."""
        found: list[Maps] = [()] * len(self.equation.outputs)
        carried = self.params["spec"].carried
        body = self.body
        if any(self.equation.outputs[j] in self.walk.used for j in body.carried):
            ends = self.ends()
            for j, rows in body.cut(ends, body.carried, carried_only=True):
                found[j] = body.as_maps(rows, self.equation.outputs[j].shape)
        if body.left:
            self.add_left(found, carried)
        return found

    def ends(self) -> Any:
        """Return what the carried values depend on at the end."""
        a = self.body.blocks["state", "state"]
        if self.length is None:
            closure = fixed_point(a)
            return either(product(closure, self.start), product(closure, self.drive))
        power, total = power_and_sum(a, self.length)
        found = either(product(power, self.start), product(total, self.drive))
        if self.sequences is None:
            return found
        lags = powers(self.body.blocks["state", "sequences"], a, self.length, None)
        width = self.body.blocks["state", "sequences"].shape[1]
        for lag, steps in lags.classes(self.length):
            rows = [self.sequences[(self.length - 1 - i) * width : (self.length - i) * width] for i in steps]
            found = either(found, product(as_sparse(lag), sum_of(rows)))
        return found

    def states(self) -> Any:
        """Return what the state and the constants depend on before the first step, with the matrix of a step."""
        from scipy.sparse import block_array, eye_array

        count = self.constants.shape[0]
        step = block_array(
            [
                [self.body.blocks["state", "state"], self.body.blocks["state", "constants"]],
                [None, eye_array(count, dtype=bool)],
            ]
        )
        return row_stack([self.start, self.constants], self.walk.columns), step.tocsr()

    def add_left(self, found: list[Maps], carried: int) -> None:
        """Enter the maps of what the steps leave behind."""
        from scipy.sparse import hstack

        body = self.body
        start, step = self.states()
        last = hstack([body.blocks["left", "state"], body.blocks["left", "constants"]]).tocsr()
        if self.length is None:  # rows of which nobody knows how many there are: each may be any
            rows = product(last, product(fixed_point(step), start))
            for j, own in body.cut(rows, body.left):
                found[carried + j] = body.as_maps(own, known_lengths(self.equation.outputs[carried + j].shape))
            return
        every = row_stack(powers(start, step, self.length, last).matrices_along(self.length), self.walk.columns)
        if self.sequences is not None:
            a, d = body.blocks["state", "state"], body.blocks["state", "sequences"]
            lags = powers(d, a, self.length, body.blocks["left", "state"]).matrices_along(self.length)
            maps = either(toeplitz(lags, self.length, 1), toeplitz([body.blocks["left", "sequences"]], self.length, 0))
            every = either(every, product(maps, self.sequences))
        height = last.shape[0]
        order = np.arange(self.length * height).reshape(self.length, height)
        if self.reverse:
            order = order[::-1]
        for j, places in body.cut(order.T, body.left):
            rows = every[places.T.reshape(-1)]
            found[carried + j] = body.as_maps(rows, self.equation.outputs[carried + j].shape)


def sum_of(matrices: Sequence[Any]) -> Any:
    """Return where any of some matrices is true."""
    found = matrices[0]
    for other in matrices[1:]:
        found = either(found, other)
    return found
