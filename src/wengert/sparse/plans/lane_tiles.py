"""Second derivatives of many lanes, which share elements of a matrix, added up tile by tile of lanes.

All numbers of all lanes are more than caches hold: of a tile they are computed and added where they go before the next.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import wengert.numpy as wnp
from wengert.control.scan import scan
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.coordinates import Array
from wengert.core.maps.index_maps import Shape
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged, raw
from wengert.passes.dead_code import eliminate_dead
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.plans.lane_numbers import NotByLanes
from wengert.sparse.plans.lane_program import LaneDerivative, hessian_entries
from wengert.sparse.plans.map_plan import mirror_pattern, number_elements
from wengert.sparse.plans.plan_times import work_of
from wengert.transforms.tracing import as_function, trace

TILE_BYTES = 1 << 17
"""Of the numbers of a tile, about: they stay in the caches of a processor."""
SIDE_BY_SIDE = 8
"""Lanes whose numbers lie side by side, each behind those of the one before, so that what is added to is still in the
nearest cache: 48,000 lanes of 78 numbers take 12.0 ms for 14.4 to 16.6, with 16 or 64 side by side 14 to 15."""
FEWEST_TILES = 4


class TileFunction:
    """Hold a graph of numbers as a function of the lanes of a tile.

    Attributes:
        count: how many of the inputs are numbers of lanes by which it is differentiated.
        before: from the other inputs to what the others do not move: a number of each lane, or one for all.
        lanes: which of the results of `before` have a number for each lane.
        fixed: arrays of constants with a number for each lane.
    """

    def __init__(self, graph: Graph, count: int) -> None:
        (out,) = graph.outputs
        self.graph, self.count, self.length = graph, count, shape_of(out)[0]
        moving: set[Any] = set(graph.inputs[:count])
        self.equations: list[Equation] = []
        before: list[Equation] = []
        for equation in graph.equations:
            names = [x for x in equation.inputs if type(x) is Variable]
            is_moving = any(x in moving for x in names)
            moving.update(equation.outputs if is_moving else ())
            (self.equations if is_moving else before).append(equation)
        if out not in moving:
            raise NotByLanes
        read = [x for equation in self.equations for x in equation.inputs]
        still = [*dict.fromkeys(x for x in read if type(x) is Variable and x not in moving)]
        self.still = still
        self.before = eliminate_dead(Graph(graph.inputs[count:], before, still))
        self.fixed = {id(x): x for x in read if type(x) is np.ndarray and x.ndim and (x != x.flat[0]).any()}
        arrays = [*still, *self.fixed.values()]
        if any(math.prod(shape_of(x)) != 1 and shape_of(x) != (self.length,) for x in arrays):
            raise NotByLanes
        self.lanes = [math.prod(shape_of(x)) != 1 for x in still]

    def others(self, still: Sequence[Any]) -> list[Any]:
        """Return what is read beside the numbers that are gathered, from inputs that are still."""
        return [*as_function(self.before)(*still), *self.fixed.values()]

    def entries(self, tile: Shape) -> tuple[Graph, list[LaneDerivative]]:
        """Return the graph of second derivatives of a tile of some shape, and where these stand; constants as they are.

        The inputs of the graph are the numbers, and then what is read besides.
        """
        given = [np.ones(tile, v.dtype) for v in self.graph.inputs[: self.count]]
        flags = [*self.lanes, *[True] * len(self.fixed)]
        arrays = [*self.still, *self.fixed.values()]
        given += [
            np.ones(tile if flag else shape_of(x), aval_of(x).dtype) for x, flag in zip(arrays, flags, strict=True)
        ]
        numbers: Graph = trace(lambda args: [self.run(args)])(given)
        found: list[LaneDerivative] = []

        def second(args: Sequence[Any]) -> list[Any]:
            found[:] = hessian_entries(numbers, self.count, args)
            return [entry.values for entry in found if is_staged(entry.values)]

        graph: Graph = trace(second)(given)
        return graph, [entry if not is_staged(entry.values) else entry._replace(values=None) for entry in found]

    def run(self, args: Sequence[Any]) -> Any:
        """Return the result for a tile."""
        names = [*self.graph.inputs[: self.count], *self.still]
        known: dict[Any, Any] = dict(zip(names, args, strict=False))
        known.update(zip(self.fixed, args[len(names) :], strict=True))

        def value(x: Any) -> Any:
            if type(x) is Variable:
                return known[x]
            if type(x) is np.ndarray and x.ndim:
                return known.get(id(x), x[:1])
            return x

        for equation in self.equations:
            found = apply(equation.primitive, *map(value, equation.inputs), **equation.params)
            known[equation.outputs[0]] = found[0] if isinstance(found, tuple) else found
        return known[self.graph.outputs[0]]


class LaneTiles:
    """Compute the elements of a symmetric matrix, tile by tile of lanes.

    Attributes:
        pattern: the rows and columns of the elements.
        tile, shape: how many lanes a tile has, and in how many rows.
        total: how many numbers are added up.
        count: how many numbers of each lane are computed.
    """

    def __init__(self, function: TileFunction, width: int, columns: Sequence[Array]) -> None:
        """Say where numbers go.

        Args:
            function: what is computed.
            width: how many columns the matrix has.
            columns: for each number that is gathered its lanes' columns.
        """
        self.function = function
        length = function.length
        numbers = len(columns) * (len(columns) + 1) // 2
        self.tile = max(64, TILE_BYTES // (8 * numbers) // 64 * 64)
        self.shape = self.tile // SIDE_BY_SIDE, SIDE_BY_SIDE
        if length < FEWEST_TILES * self.tile:
            raise NotByLanes
        self.graph, entries = function.entries(self.shape)
        # lanes that share columns follow each other: in the order of a mesh they take a tenth to a fifth more
        near = np.argsort(np.min(columns, axis=0), kind="stable")
        self.lanes = near[np.minimum(np.arange(-(-length // self.tile) * self.tile), length - 1)]
        rows, places, constants = [], [], []
        for entry in sorted(entries, key=lambda entry: entry.values is not None):
            pair = columns[entry.row], columns[entry.column]
            if entry.values is not None:
                if entry.row != entry.column and (pair[0] == pair[1]).any():  # both halves would be at one place
                    raise NotByLanes
                constants.append(float(raw(entry.values).flat[0]))
            rows.append(np.maximum(*pair))
            places.append(np.minimum(*pair))
        lower, elements = number_elements((width, width), np.concatenate(rows), np.concatenate(places))
        self.lower = lower.count
        elements = elements.reshape(-1, length)
        self.count = len(elements) - len(constants)
        self.constant = np.zeros(self.lower)
        for own, number in zip(elements[self.count :], constants, strict=True):
            self.constant += number * np.bincount(own, minlength=self.lower)
        self.doubled, self.places = self.tile_places(elements[: self.count], entries, columns)
        self.pattern: Pattern
        self.pattern, self.order = mirror_pattern(lower)
        self.total = self.count * length

    @property
    def work(self) -> float:
        """How many elements all tiles compute; each adds to few of those of the matrix."""
        return len(self.places) * work_of(self.graph, ()).still

    def tile_places(
        self, elements: Array, entries: Sequence[LaneDerivative], columns: Sequence[Array]
    ) -> tuple[list[int], Array]:
        """Return which numbers are added twice, and where those of each tile are added: the place after all is waste.

        Lanes that gather one element twice have both halves of a block at one place.
        """
        moving = [entry for entry in entries if entry.values is None]
        is_twice = [columns[one.row] == columns[one.column] for one in moving]
        doubled = [k for k, one in enumerate(moving) if one.row != one.column and is_twice[k].any()]
        more = [np.where(is_twice[k], elements[k], self.lower) for k in doubled]
        whole = np.concatenate([elements, np.reshape(more, (-1, elements.shape[1]))]).astype(np.int32)
        found = whole[:, self.lanes]
        found[:, len(columns[0]) :] = self.lower
        found = found.reshape(len(whole), -1, *self.shape)
        return doubled, np.ascontiguousarray(np.moveaxis(found, 0, 2))

    def elements(self, sources: Sequence[tuple[Any, Array]], still: Sequence[Any]) -> Any:
        """Return the elements.

        Args:
            sources: for each number that is gathered, a vector and the places of its lanes there.
            still: the inputs that are not differentiated by.
        """
        tables = np.stack([places[self.lanes] for _, places in sources]).astype(np.int32)
        tables = np.ascontiguousarray(np.swapaxes(tables.reshape(len(sources), -1, *self.shape), 0, 1))
        others = self.function.others(still)
        flags = [*self.function.lanes, *[True] * len(self.function.fixed)]
        rows = [x[self.lanes].reshape(-1, *self.shape) for x, flag in zip(others, flags, strict=True) if flag]
        derivatives: Callable[..., Any] = as_function(self.graph)

        def add_tile(sums: Any, of_tile: Any) -> tuple[Any, None]:
            own, lanes, places = of_tile
            numbers, lanes = [x[own[k]] for k, (x, _) in enumerate(sources)], iter(lanes)
            found = derivatives(*numbers, *[next(lanes) if flag else x for x, flag in zip(others, flags, strict=True)])
            values = [*found, *[found[k] for k in self.doubled]]
            np.add.at(sums, places, wnp.stack(values, axis=1))
            return sums, None

        start = wnp.zeros(self.lower + 1, self.graph.outputs[0].dtype)
        sums = scan(add_tile, start, (tables, rows, self.places))[0][self.order]
        return sums + self.constant[self.order] if self.constant.any() else sums
