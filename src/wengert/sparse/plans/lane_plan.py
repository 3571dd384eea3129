"""The plan by elements where one small function is computed for each: its derivatives are computed number by number.

Behind the gathers the program is taken apart into numbers of each lane (`lane_program`), which are differentiated in
the mode that takes less: numbers that are zero or constants for every input are not computed. What puts the results of
lanes together at the end, sums, joins and scatters, is linear, and says where their derivatives go.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import wengert.numpy as wnp
from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.graph import Graph
from wengert.core.maps.coordinates import Array, Coordinate
from wengert.core.values.aval import aval_of, count_elements
from wengert.core.values.tensor import is_staged
from wengert.passes.dead_code import eliminate_dead
from wengert.sparse.derivative_arguments import Positional
from wengert.sparse.patterns.column_maps import Maps
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.plans.gather_cut import GatherCut
from wengert.sparse.plans.lane_numbers import NotByLanes
from wengert.sparse.plans.lane_program import LaneDerivative, LaneProgram, hessian_entries, jacobian_entries
from wengert.sparse.plans.lane_tiles import LaneTiles, TileFunction
from wengert.sparse.plans.map_plan import Contribution, Placement
from wengert.sparse.plans.plan_times import COLOURED, PLACE, RECOVERY, work_of
from wengert.sparse.plans.value_walk import NotByMaps
from wengert.support.records import NamedTuple
from wengert.transforms.tracing import as_function, trace

FEW_LANES = 16
"""Up to so many lanes nothing is gained by loops over them."""


class Column(NamedTuple):
    """Hold a vector with the elements that it is: their rows and columns, and what puts it beside others."""

    values: Any
    rows: Array
    columns: Array
    family: Any


class LanePlan:
    """Compute the elements that a Jacobian or Hessian stores, number by number of each lane.

    Attributes:
        placement: where they go.
        count: how many numbers of each lane are computed.
        time: about how many microseconds it takes.
        coloring: None: there are no colours.
    """

    coloring = None

    def __init__(self, cut: GatherCut, of: Positional, second: bool) -> None:
        self.cut, self.second = cut, second
        self.program = LaneProgram(cut.graph, len(cut.gathered))
        owners = [i for i, value in enumerate(of.values) for _ in flatten(value)[0]]
        self.moving = [k for i in of.argnums for k, owner in enumerate(owners) if owner == i]
        leaves = flatten(of.values)[0]
        self.width = count_elements(leaves[k] for k in self.moving)
        self.placement: Placement | LaneTiles | None = None
        self.count = 0
        self.graph: Graph = eliminate_dead(trace(self.traced_elements)(*leaves))
        assert self.placement is not None
        tiled = self.placement if isinstance(self.placement, LaneTiles) else None
        work = work_of(self.graph, ()).still if tiled is None else tiled.work
        self.time: float = RECOVERY + COLOURED * work + PLACE * (self.placement.total + self.pattern.count)

    @property
    def pattern(self) -> Pattern:
        """The rows and columns of the elements."""
        assert self.placement is not None
        return self.placement.pattern

    def elements(self, *args: Any) -> Any:
        """Return the elements that are stored, for arguments, in the order of the pattern."""
        return as_function(self.graph)(*flatten(list(args))[0])[0]

    def traced_elements(self, *leaves: Any) -> Any:
        """Return the elements from the leaves of arguments, and set where they go."""
        still = [x for x, flag in zip(leaves, self.cut.still, strict=True) if flag]
        program, count = self.program, self.program.vectors
        maps, sources = program.tail_maps(still), self.sources(leaves)
        graph = program.weighted_graph(still) if self.second else program.graph
        tiles = self.tiles_of(graph) if self.second else None
        if tiles is not None:
            self.placement, self.count = tiles, tiles.count
            return tiles.elements(sources, still)
        args = [*[read_places(x, places) for x, places in sources], *still]
        entries = hessian_entries(graph, count, args) if self.second else jacobian_entries(graph, count, args)
        self.count = sum([is_staged(entry.values) for entry in entries])
        columns = self.hessian_columns(entries) if self.second else self.jacobian_columns(entries, maps)
        return self.place(columns)

    def tiles_of(self, graph: Graph) -> LaneTiles | None:
        """Return what adds up second derivatives tile by tile; None for few lanes."""
        columns = [self.cut.columns[places] for places in self.program.gathered]
        try:
            if len(graph.outputs) != 1 or len({len(own) for own in columns}) != 1:
                return None
            return LaneTiles(TileFunction(graph, len(columns)), self.width, columns)
        except NotByLanes:
            return None

    def sources(self, leaves: Sequence[Any]) -> list[tuple[Any, Array]]:
        """Return for each number that is gathered a vector of elements, and where its lanes are there."""
        moving = [leaves[k] for k in self.moving]
        ends = np.cumsum([math.prod(aval_of(x).shape) for x in moving])
        dtypes = [v.dtype for v in self.cut.gathered for _ in range(math.prod(v.shape[1:]))]
        found = []
        for places, dtype in zip(self.program.gathered, dtypes, strict=True):
            columns = self.cut.columns[places]
            leaf = int(np.searchsorted(ends, columns[0], "right"))
            x = moving[leaf].reshape(-1)
            found.append((x.astype(dtype), columns - (ends[leaf] - x.shape[0])))
        return found

    def hessian_columns(self, entries: Sequence[LaneDerivative]) -> list[Column]:
        """Return where second derivatives go, which are those of one half of a block and its diagonal each."""
        found = []
        for entry in entries:
            rows, columns = (self.cut.columns[self.program.gathered[k]] for k in (entry.row, entry.column))
            found.append(Column(entry.values, rows, columns, len(rows)))
            same = np.flatnonzero(rows == columns) if entry.row != entry.column else ()
            if len(same):  # both halves
                found.append(Column(entry.values[same], rows[same], columns[same], "same"))
        return found

    def jacobian_columns(self, entries: Sequence[LaneDerivative], tails: Sequence[Maps]) -> list[Column]:
        """Return where derivatives go: where maps put the results that are differentiated."""
        found: list[Column] = []
        start = 0
        size = sum([len(places) for places in self.program.results])
        for own, out in zip(tails, self.program.tail.outputs, strict=True):
            shape = aval_of(out).shape
            for one in own:
                if is_staged(one.coefficient):
                    raise NotByLanes
                rows, results = one.pairs(shape, (size,))
                factors = np.broadcast_to(one.coefficient, one.extents).reshape(-1)
                order = np.argsort(results, kind="stable")
                starts = np.searchsorted(results[order], np.arange(size + 1))
                for entry in entries:
                    places = self.program.results[entry.row]
                    lanes, points = points_of(places, starts, order)
                    if len(lanes):
                        columns = self.cut.columns[self.program.gathered[entry.column]]
                        values = scale_lanes(entry.values, lanes, factors[points])
                        found.append(Column(values, rows[points] + start, columns[lanes], id(one)))
            start += math.prod(shape)
        return found

    def place(self, columns: Sequence[Column]) -> Any:
        """Return the elements, and set where vectors go: those of one family side by side, in the order of rows."""
        families: dict[Any, list[Column]] = {}
        for one in columns:
            families.setdefault((one.family, len(one.rows), is_staged(one.values)), []).append(one)
        contributions, values = [], []
        for (_, length, moving), own in families.items():
            own.sort(key=lambda one: (one.rows[0], one.columns[0]))
            rows, places = (np.stack([one[k] for one in own], axis=1).reshape(-1) for k in (1, 2))
            block = wnp.stack([one.values for one in own], axis=1).reshape(-1)
            source = np.arange(length * len(own))
            contributions.append(Contribution(rows, places, source, block))
            values += [block] * moving
        shape = (self.width if self.second else self.rows, self.width)
        flags = [moving for _, _, moving in families]
        self.placement = placement = Placement(shape, contributions, flags, symmetric=self.second)
        return placement.elements(wnp.concatenate(values) if len(values) > 1 else values[0] if values else None)

    @property
    def rows(self) -> int:
        """How many elements the results have."""
        return count_elements(self.program.tail.outputs)


def read_places(x: Any, places: Array) -> Any:
    """Return the elements of a vector at places: a slice where these are steps of one length."""
    at = Coordinate.from_table(0, places)
    if at.tables:
        return x[places.astype(np.int32)]
    step = at.solo[1] if at.solo is not None else 0
    if step <= 0:
        return x[places.astype(np.int32)]
    return x[at.line.offset : at.line.offset + step * (len(places) - 1) + 1 : step]


def points_of(places: Array, starts: Array, order: Array) -> tuple[Array, Array]:
    """Return at which points a map reads some places, and for each of these points which of the places it is.

    Args:
        places: the places.
        starts: where the points of each place begin in `order`.
        order: the points by their places.
    """
    counts = starts[places + 1] - starts[places]
    lanes = np.repeat(np.arange(len(places)), counts)
    turn = np.arange(len(lanes)) - np.repeat(np.cumsum(counts) - counts, counts)
    return lanes, order[starts[places][lanes] + turn]


def scale_lanes(values: Any, lanes: Array, factors: Array) -> Any:
    """Return some lanes of a vector, times factors."""
    if len(lanes) != aval_of(values).shape[0] or (np.diff(lanes) != 1).any():
        values = values[lanes]
    if (factors == factors[0]).all():
        return values if factors[0] == 1 else values * float(factors[0])
    return values * factors


def plan_by_lanes(cut: GatherCut, of: Positional, second: bool) -> LanePlan | None:
    """Return the plan by numbers of lanes of what is computed behind gathers; None where lanes are mixed."""
    if any(not v.shape or v.shape[0] < FEW_LANES for v in cut.gathered):
        return None
    try:
        return LanePlan(cut, of, second)
    except (NotByLanes, NotByMaps):
        return None
