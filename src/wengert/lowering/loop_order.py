"""The order of a root's loops, by the strides and sizes of what it reads and writes.

Rows run over the dimension that leaves lanes what lies side by side, whichever way a rule wrote its space.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from wengert.core.maps.index_maps import IndexMap, flatten_map, strides_for
from wengert.kernel.durations import LANES, StridedAccess, cycles_of_lanes
from wengert.kernel.opcodes import OPCODES
from wengert.lowering.loop_roots import Computed, Root
from wengert.lowering.nodes import PointNode, Shape
from wengert.support.caches import MOST_KNOWN
from wengert.support.machine import MACHINE


class LoopOrders:
    """Decide which dimensions rows run over.

    Attributes:
        roots: by their nodes.
        twins: for each root those of the same space that read the same: what they compute of it they share.
        found: the dimension of each root that has been asked for.
        computed: what is computed for roots, where that has been asked for.
        side_by_side: whether roots walk along memory with rows over a dimension, where that has been asked for.
        durations: how long roots take with rows over a dimension, likewise: many twins ask for each other's.
    """

    def __init__(self, roots: Mapping[PointNode, Root]) -> None:
        self.roots = roots
        self.found: dict[Root, int | None] = {}
        self.computed = Computed(roots)
        self.side_by_side: dict[tuple[Root, int], bool] = {}
        self.durations: dict[tuple[Root, int], float] = {}
        readers: dict[tuple[Shape, PointNode, IndexMap], list[Root]] = {}
        for root in roots.values():
            for node, read in reads_of(root) if len(root.long) > 1 else ():
                if sum([len(terms) for _, terms in read]) > 1:
                    readers.setdefault((root.space, node, read), []).append(root)
        self.twins: dict[Root, set[Root]] = {root: {root} for root in roots.values()}
        for alike in readers.values():
            for root in alike if len(alike) > 1 else ():
                self.twins[root].update(alike)

    def rows_of(self, root: Root) -> int | None:
        """Return the dimension that rows run over where nothing else decides, if there is one."""
        if root not in self.found:
            self.found[root] = self.best(root)
        return self.found[root]

    def best(self, root: Root) -> int | None:
        """Return the dimension for which a root and its twins take least, if that is notable; else the first one."""
        first = root.first
        if first is None or all(self.is_along(twin, first) for twin in self.twins[root]):
            return first
        free = [d for d in root.long if all(d != twin.scan_axis for twin in self.twins[root])]
        best = min(free, key=lambda d: self.duration(root, d), default=first)
        return first if self.excess(root, first, best) <= 0 else best

    def is_along(self, root: Root, outer: int) -> bool:
        """Tell whether a root walks along memory with rows over a dimension, which all its twins ask."""
        key = root, outer
        if key not in self.side_by_side:
            self.side_by_side[key] = is_side_by_side(root, outer) or is_collapsible(root, self.computed)
        return self.side_by_side[key]

    def is_good(self, root: Root, outer: int, others: Iterable[Root]) -> bool:
        """Tell whether rows over a dimension are no worse than a kernel that has again what others have here."""
        best = self.rows_of(root)
        if best is None or outer == best:
            return True
        excess = self.excess(root, outer, best)
        return excess <= 0 or excess <= cycles_of_shared(root, others, self.computed)

    def excess(self, root: Root, outer: int, best: int) -> float:
        """Return how many cycles longer than usual differences rows over a dimension take than over the best one."""
        factor, least = MACHINE.worse
        return self.duration(root, outer) - factor * self.duration(root, best) - least

    def duration(self, root: Root, outer: int) -> float:
        """Return how long the loops of a root and its twins take."""
        return sum([self.own_duration(twin, outer) for twin in self.twins[root]])

    def own_duration(self, root: Root, outer: int) -> float:
        """Return how long the loops of a root take by itself."""
        key = root, outer
        if key not in self.durations:
            self.durations[key] = duration(root, outer)
        return self.durations[key]


def is_side_by_side(root: Root, outer: int) -> bool:
    """Tell whether all that vectors read and write lies side by side with rows over a dimension."""
    lane = lane_of(root, outer)
    if lane is None or root.space[lane] < LANES:
        return False
    return all(access.step in (0, 1) for accesses in accesses_along(root, lane, outer) for access in accesses)


def is_collapsible(root: Root, computed: Mapping[PointNode, set[PointNode]]) -> bool:
    """Tell whether a store walks through both its dimensions as if they were one, to which kernels merge them then."""
    if root.kind != "store" or len(root.space) != 2:
        return False
    steps = [steps_in_memory(node.shape, read) for node, read in reads_of(root)]
    is_one_walk = all(own.get(0, 0) == own.get(1, 0) * root.space[1] for own in steps)
    return is_one_walk and all(node.kind != "choice" for node in computed[root.node])


def duration(root: Root, outer: int) -> float:
    """Return about how many cycles the loops of a root take, but for what it computes, with rows over a dimension."""
    lane = lane_of(root, outer)
    if lane is None:
        return root.space[outer] * MACHINE.row
    row = MACHINE.row + MACHINE.partial * (outer in root.axes and root.space[lane] < LANES)
    return cycles_along(root, lane, outer) + root.space[outer] * row


def lane_of(root: Root, outer: int | None) -> int | None:
    """Return the dimension that lanes run over where rows run over another one, as schedules choose it."""
    inner = [d for d in root.long if d not in (outer, root.scan_axis)]
    if root.kind == "store":
        inner = [d for d in inner if root.space[d] > MACHINE.spelled_points[0]] or inner
    if len(inner) < 2:
        return inner[0] if inner else None
    return min(reversed(inner), key=lambda d: cycles_along(root, d, outer))


def cycles_along(root: Root, lane: int, outer: int | None) -> float:
    """Return how long memory takes with lanes along a dimension."""
    loaded, written = accesses_along(root, lane, outer)
    kept = math.prod([n for d, n in enumerate(root.space) if d not in root.axes])
    return cycles_of_lanes(root.space[lane], loaded, written, kept * (lane in root.axes))


def accesses_along(root: Root, lane: int, outer: int | None) -> tuple[list[StridedAccess], list[StridedAccess]]:
    """Return what a root reads, and what it writes or adds to in memory."""
    points, kept = math.prod(root.space), [d for d in range(len(root.space)) if d not in root.axes]
    loaded = [
        StridedAccess(step_of(node, read, lane, root, outer), bytes_of(node), points) for node, read in reads_of(root)
    ]
    strides = dict(zip(kept, strides_for([root.space[d] for d in kept]), strict=True))
    step = strides.get(lane, 0)
    if root.kind == "reduce" and outer not in root.axes:
        points = math.prod([root.space[d] for d in kept])
    elif root.kind == "reduce" and outer is not None and root.space[outer] >= MACHINE.packed_rows:
        step = int(step != 0)  # schedules add it up side by side
    return loaded, [StridedAccess(step, bytes_of(root.node), points)]


def reads_of(root: Root) -> list[tuple[PointNode, IndexMap]]:
    """Return what a root reads from memory, under which maps."""
    reads = [(node, read) for node, read in root.reads if node.kind == "buffer" and len(read) == len(node.shape)]
    return reads + [(need.node, read) for need, maps in root.needs.items() for read in maps]


def step_of(node: PointNode, read: IndexMap, lane: int, root: Root, outer: int | None) -> int:
    """Return how far apart in memory the numbers of lanes lie; side by side if schedules copy what all rows read."""
    steps = steps_in_memory(node.shape, read)
    is_copied = outer is not None and outer not in steps and root.space[outer] >= MACHINE.packed_rows
    return int(lane in steps) if is_copied else steps.get(lane, 0)


@lru_cache(maxsize=MOST_KNOWN)
def steps_in_memory(shape: Shape, read: IndexMap) -> dict[int, int]:
    """Return how many elements further a reader reads for a step along each dimension that it moves along."""
    return dict(flatten_map(shape, read).terms)


def bytes_of(node: PointNode) -> int:
    """Return how many bytes the values of a node have."""
    return math.prod(node.shape) * node.dtype.itemsize


# What roots of one kernel share


def cycles_of_shared(root: Root, others: Iterable[Root], computed: Mapping[PointNode, set[PointNode]]) -> float:
    """Return how many cycles it takes to have again what a root shares with others of its kernel."""
    others = [other for other in others if other is not root]
    arrays = {node for other in others for node, _ in other.reads} & {node for node, _ in root.reads}
    stored = {need.node for need in root.needs if need in others and not need.is_number and not need.over_rows}
    found = sum([cycles_to_read(node) for node in arrays]) + 2 * sum(map(cycles_to_read, stored))
    mine, results = computed[root.node], [other.node for other in others if other.kind != "store"]
    again = set[PointNode]().union(*[mine & computed[result] for result in results])
    return found + sum([own_cost(node) * full_vectors(node) for node in again if node.kind != "buffer"])


def cycles_to_read(node: PointNode) -> float:
    """Return how many cycles it takes to read an array once more."""
    size = bytes_of(node)
    return full_vectors(node) * MACHINE.read_again[(size > MACHINE.first_cache) + (size > MACHINE.second_cache)]


def full_vectors(node: PointNode) -> float:
    """Return how many vectors the values of a node are."""
    return max(math.prod(node.shape) / LANES, 1.0)


def own_cost(node: PointNode) -> float:
    """Return how many cycles a node takes for a vector, if what it is computed from is there."""
    if node.kind in ("point", "gather") and node.name not in ("copy", ""):
        return float(OPCODES[node.name].cost)
    return 1.0 if node.kind in ("choice", "pieces", "buffer") else 0.0
