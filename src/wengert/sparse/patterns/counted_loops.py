"""Patterns through long loops that look for elements by numbers which are known in each iteration, as counters are.

An iteration reads and writes other elements than the one before. So each has a matrix of truths of its own, and what
the results depend on is the product of these.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import wengert.numpy as wnp
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.graph.loop_spec import Parts, parts
from wengert.core.values.aval import UNKNOWN, shape_of
from wengert.core.values.tensor import is_staged
from wengert.sparse.patterns.column_maps import Maps, explicit, known_lengths, maps_of_pattern
from wengert.sparse.patterns.known_elements import has_elements
from wengert.sparse.patterns.loop_body import output_matrices
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.truth_matrices import product, row_stack
from wengert.sparse.patterns.walk import GraphWalk, Known

Params = Mapping[str, Any]
MOST_ROUNDS = 2048
"""The longest loop of which each iteration has a matrix of its own: about 1 ms each."""


def looks_by_numbers(walk: GraphWalk, equation: Equation, params: Params) -> bool:
    """Tell whether iterations of a loop take numbers that are known, and others each time, beside values that are not.

    A number is known if nothing but known ones decides about it; truths choose among elements as well.
    """
    graph, spec = params["body"], params["spec"]
    if params["cond"] is not None or spec.length is None or spec.length > MOST_ROUNDS:
        return False
    flags = [type(walk.value(x)) is not Variable for x in parts(equation.inputs, params).inner]
    own = spec.constants
    while True:
        known = {v for v, flag in zip(graph.inputs, flags, strict=True) if flag}
        changing = {v for v in graph.inputs[own:] if v in known}
        looked_at = follow_numbers(graph, known, changing)
        lost = [j for j, x in enumerate(graph.outputs[: spec.carried]) if flags[own + j] and not is_known(x, known)]
        if not lost:
            return looked_at
        for j in lost:
            flags[own + j] = False


def is_known(x: Any, known: set[Any]) -> bool:
    """Tell whether a value is a constant or a known variable."""
    return type(x) is not Variable or x in known


def follow_numbers(graph: Graph, known: set[Any], changing: set[Any]) -> bool:
    """Enter what equations make of known values alone; tell whether others look at one that changes."""
    found = False
    for equation in graph.equations:
        numbers = [x for x in equation.inputs if type(x) is Variable and x in changing]
        if all(is_known(x, known) for x in equation.inputs):
            known.update(equation.outputs)
            changing.update(equation.outputs if numbers else ())
        else:
            found = found or any(x.dtype.kind in "biu" for x in numbers)
    return found


class CountedLoop:
    """Find the patterns of the results of a loop, iteration by iteration.

    Attributes:
        left: of each result that iterations leave behind its rows, with what is known of each, in order.
    """

    def __init__(self, walk: GraphWalk, equation: Equation, params: Params) -> None:
        self.walk, self.equation, self.params = walk, equation, params
        self.graph, self.spec = params["body"], params["spec"]
        self.given: Parts = parts(equation.inputs, params)
        self.left: list[list[tuple[Known, Any]]] = [[] for _ in self.graph.outputs[self.spec.carried :]]

    def matrix_of(self, x: Any) -> Any:
        """Return what the elements of an operand depend on."""
        return explicit(self.walk.moving(x), known_lengths(shape_of(x)), self.walk.columns).to_scipy()

    def positions(self) -> Iterator[int]:
        """Yield which row of the sequences each iteration takes."""
        yield from reversed(range(self.spec.length)) if self.spec.reverse else range(self.spec.length)

    def results(self) -> tuple[list[Known], list[Maps]]:
        """Return what is known of all results, and their maps."""
        walk, given = self.walk, self.given
        constants = [(walk.state(x), self.matrix_of(x)) for x in given.constants]
        carried = [(walk.state(x), self.matrix_of(x)) for x in given.carried]
        sequences = [(walk.state(x), self.matrix_of(x)) for x in given.sequences]
        for position in self.positions():
            rows = [row_of(state, matrix, position, self.spec.length) for state, matrix in sequences]
            found = self.step([*constants, *carried, *rows])
            carried = found[: self.spec.carried]
            for column, own in zip(self.left, found[self.spec.carried :], strict=True):
                column.append(own)
        ordered = [column[::-1] if self.spec.reverse else column for column in self.left]
        matrices = [matrix for _, matrix in carried]
        matrices += [row_stack([matrix for _, matrix in column], walk.columns) for column in ordered]
        known = [state for state, _ in carried]
        rests = zip(self.equation.outputs[self.spec.carried :], self.left, strict=True)
        known += [stack_of(v, [state for state, _ in column], self.spec.reverse) for v, column in rests]
        pairs = zip(matrices, self.equation.outputs, strict=True)
        return known, [maps_of_pattern(Pattern.of_scipy(x), known_lengths(v.shape)) for x, v in pairs]

    def step(self, given: Sequence[tuple[Known, Any]]) -> list[tuple[Known, Any]]:
        """Return what is known of what an iteration gives, and what it depends on, from that of what it is given."""
        flags = [bool(matrix.nnz) for _, matrix in given]
        rows, _, inner = output_matrices(self.walk, self.graph, [state for state, _ in given], flags)
        moving = row_stack([matrix for (_, matrix), flag in zip(given, flags, strict=True) if flag], self.walk.columns)
        return [(inner.state(x), product(block, moving)) for x, block in zip(self.graph.outputs, rows, strict=True)]


def row_of(state: Known, matrix: Any, position: int, length: int) -> tuple[Known, Any]:
    """Return one row of a sequence, and what it depends on."""
    size = matrix.shape[0] // length
    return state.row(position), matrix[position * size : (position + 1) * size]


def stack_of(variable: Variable, rows: Sequence[Known], reverse: bool) -> Known:
    """Return what is known of the rows that the iterations of a loop leave behind."""
    ordered = rows[::-1] if reverse else rows
    return Known(stacked_values(variable, [row.value for row in ordered]), stacked_elements(variable, ordered))


def stacked_values(variable: Variable, rows: Sequence[Any]) -> Any:
    """Return rows that are known as one array; else the variable of them."""
    if not rows or any(type(row) is Variable for row in rows):
        return variable
    return wnp.stack(rows) if any(map(is_staged, rows)) else np.stack(rows)


def stacked_elements(variable: Variable, rows: Sequence[Known]) -> Any:
    """Return what is known of the elements of rows as one array; None where nothing is, or rows are known."""
    if all(row.elements is None for row in rows) or UNKNOWN in variable.shape or variable.dtype.kind != "f":
        return None
    unknown = np.full(variable.shape[1:], np.nan)
    known = [value if has_elements(value) else unknown if elements is None else elements for value, elements in rows]
    return np.stack(known).astype(float)
