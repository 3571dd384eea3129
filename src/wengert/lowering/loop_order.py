"""The order of a root's loops, by the strides and sizes of what it reads and writes.

Rows run over the dimension that leaves lanes what lies side by side, whichever way a rule wrote its space.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable
from functools import lru_cache

from wengert.core.values.bounded_cache import MOST_KNOWN
from wengert.kernel.opcodes import OPCODES
from wengert.kernel.schedule import score_of_steps
from wengert.lowering.index_maps import IndexMap, flattened, strides_for
from wengert.lowering.loop_roots import Root, below
from wengert.lowering.nodes import PointNode, Shape
from wengert.support.machine import MACHINE

LANES = 8
"""Numbers of a vector, about."""


def rows_of(root: Root) -> int | None:
    """Return the dimension that rows run over where nothing else decides; none if lanes go on where steps follow."""
    first = root.first
    if first is None or len(root.long) < 2:
        return first
    if is_side_by_side(root, first):
        return first
    free = [d for d in root.long if d != root.scanned]
    best = min(free, key=lambda d: duration(root, d))
    return first if is_good(root, first, best) else best


def is_good(root: Root, outer: int, best: int, more: Callable[[], float] = float) -> bool:
    """Tell whether rows over a dimension take about as long as over the best one, for which one has to do more."""
    if outer == best:
        return True
    factor, least = MACHINE.worse
    excess = duration(root, outer) - factor * duration(root, best) - least
    return excess <= 0 or excess <= more()


def is_side_by_side(root: Root, outer: int) -> bool:
    """Tell whether all that vectors read and write lies side by side with rows over a dimension."""
    lane = lane_of(root, outer)
    if lane is None or root.space[lane] < LANES:
        return False
    return all(step in (0, 1) for steps in steps_along(root, lane, outer) for step, _ in steps)


def duration(root: Root, outer: int) -> float:
    """Return about how many cycles the loops of a root take, but for what it computes, with rows over a dimension."""
    lane = lane_of(root, outer)
    if lane is None:
        return root.space[outer] * MACHINE.row
    loaded, stored, summed = steps_along(root, lane, outer)
    costs = sum([step_cost(*x) for x in loaded]) + 2 * sum([step_cost(*x) for x in (*stored, *summed)])
    others = math.prod([n for d, n in enumerate(root.space) if d != lane])
    row = MACHINE.row + MACHINE.partial * (outer in root.axes and root.space[lane] < LANES)
    across = MACHINE.across * others if summed and lane in root.axes else 0.0
    return others * -(-root.space[lane] // LANES) * costs + across + root.space[outer] * row


def lane_of(root: Root, outer: int | None) -> int | None:
    """Return the dimension that lanes run over where rows run over another one, as schedules choose it."""
    inner = [d for d in root.long if d not in (outer, root.scanned)]
    if root.kind == "store":
        inner = [d for d in inner if root.space[d] > MACHINE.spelled_points[0]] or inner
    if len(inner) < 2:
        return inner[0] if inner else None

    def score(dimension: int) -> int:
        loaded, stored, summed = steps_along(root, dimension, outer)
        return score_of_steps(*[[step for step, _ in steps] for steps in (loaded, stored, summed)])

    return max(reversed(inner), key=score)


Steps = list[tuple[int, int]]
"""For each access how far apart in memory the numbers of lanes lie, and how many bytes the array has."""


def steps_along(root: Root, lane: int, outer: int | None) -> tuple[Steps, Steps, Steps]:
    """Return the steps of what a root loads and stores, and of sums that are not one number of a row, or of all."""
    reads = [(node, read) for node, read in root.reads if node.kind == "buffer" and len(read) == len(node.shape)]
    reads += [(need.node, read) for need, maps in root.needs.items() for read in maps]
    loaded = [(step_of(node, read, lane, root, outer), bytes_of(node)) for node, read in reads]
    kept = [d for d in range(len(root.space)) if d not in root.axes]
    strides = dict(zip(kept, strides_for([root.space[d] for d in kept]), strict=True))
    own = [(strides.get(lane, 0), bytes_of(root.node))]
    if root.kind == "store":
        return loaded, own, []
    is_number = all(d in root.axes or d == outer or root.space[d] == 1 for d in kept)
    return loaded, [], [] if is_number and outer not in root.axes else own


def step_of(node: PointNode, read: IndexMap, lane: int, root: Root, outer: int | None) -> int:
    """Return how far apart in memory the numbers of lanes lie; side by side if schedules copy what all rows read."""
    steps = steps_in_memory(node.shape, read)
    is_copied = outer is not None and outer not in steps and root.space[outer] >= MACHINE.packed_rows
    return int(lane in steps) if is_copied else steps.get(lane, 0)


@lru_cache(maxsize=MOST_KNOWN)
def steps_in_memory(shape: Shape, read: IndexMap) -> dict[int, int]:
    """Return how many elements further a reader reads for a step along each dimension that it moves along."""
    return dict(flattened(shape, read).terms)


def bytes_of(node: PointNode) -> int:
    """Return how many bytes the values of a node have."""
    return math.prod(node.shape) * node.dtype.itemsize


def step_cost(step: int, size: int) -> float:
    """Return how many cycles the access to a vector of an array of some bytes takes, whose numbers lie so far apart."""
    if step in (0, 1):
        return float(step)
    return MACHINE.gathered[size > MACHINE.first_cache]


# What roots of one kernel share


def shared(root: Root, others: Iterable[Root], roots: Container[PointNode]) -> float:
    """Return how many cycles it takes to have again what a root shares with others of its kernel."""
    others = [other for other in others if other is not root]
    arrays = {node for other in others for node, _ in other.reads} & {node for node, _ in root.reads}
    stored = {n.node for n in root.needs if n in others and n.kind == "store" and not n.is_number}
    found = sum([moved(node) for node in arrays]) + 2 * sum(map(moved, stored))
    mine = below(root.node, roots)
    again = {node for other in others for node in below(other.node, roots) if other.kind != "store"} & mine
    return found + sum([own_cost(node) * full_vectors(node) for node in again if node.kind != "buffer"])


def moved(node: PointNode) -> float:
    """Return how many cycles it takes to read an array once more."""
    size = bytes_of(node)
    return full_vectors(node) * MACHINE.read_again[(size > MACHINE.first_cache) + (size > MACHINE.second_cache)]


def full_vectors(node: PointNode) -> float:
    """Return how many vectors the values of a node are."""
    return max(math.prod(node.shape) / LANES, 1.0)


def own_cost(node: PointNode) -> float:
    """Return how many cycles a node takes for a vector, if what it is computed from is there."""
    if node.kind == "point" and node.name != "copy":
        return float(OPCODES[node.name].cost)
    return 1.0 if node.kind in ("choice", "pieces", "buffer") else 0.0
