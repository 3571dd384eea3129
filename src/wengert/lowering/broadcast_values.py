"""Values that loops would compute again and again, as those that are broadcast are, and that are kept instead.

A value is computed in the innermost loop that it depends on: for each row anew if lanes run over it, and number by
number if it is one of each row. It gets a loop of its own, with lanes, and is read from memory, if that takes less.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate

from wengert.core.maps.index_maps import IndexMap, identity_map
from wengert.kernel.durations import LANES
from wengert.lowering.fuse import Group
from wengert.lowering.loop_order import cycles_of_shared, full_vectors, lane_of, own_cost
from wengert.lowering.loop_roots import Computed, Reads, Root, each_below, follow, kind_of
from wengert.lowering.nodes import PointNode
from wengert.support.machine import MACHINE


def repeated_values(
    groups: Sequence[Group], roots: Mapping[PointNode, Root], made: Sequence[PointNode]
) -> set[PointNode]:
    """Return the nodes that shall have loops of their own.

    Args:
        groups: the kernels that there are without them.
        roots: those of the kernels, by their nodes.
        made: all nodes, each after those that it reads.
    """
    values = RepeatedValues(groups, roots)
    if all(map(is_plain, roots.values())):
        return values.kept
    reached: dict[PointNode, Reads] = {}
    for node in reversed(made):
        seen = reached.pop(node, {})
        root = roots.get(node)
        if (root is None and not seen) or (root is not None and root.kind == "join"):
            continue
        if values.is_to_be_kept(node, seen, root):
            values.kept.add(node)
            root = root or Root(node, kind_of(node))
        if root is not None:
            seen = {identity_map(root.space): {root}}
        follow(node, seen, reached, {})
    return {node for node in values.kept if values.is_costly(node)}


class RepeatedValues:
    """Decide which values are kept.

    Attributes:
        computed: what is computed for roots, where that has been asked for.
        homes: the kernel of each root.
        readers: the roots that read each root.
        kept: the nodes that shall have loops of their own.
        lanes: the dimensions that the lanes of roots run over.
        parted: how many cycles it takes that roots cannot share rows with others of their kernels.
    """

    def __init__(self, groups: Sequence[Group], roots: Mapping[PointNode, Root]) -> None:
        self.roots, self.computed = roots, Computed(roots)
        self.homes = {root: group for group in groups for root in group.roots}
        self.readers: dict[Root, set[Root]] = {}
        for root in roots.values():
            for need in root.needs:
                self.readers.setdefault(need, set()).add(root)
        self.kept: set[PointNode] = set()
        self.lanes: dict[Root, int | None] = {}
        self.parted: dict[Root, float] = {}

    def is_to_be_kept(self, node: PointNode, seen: Reads, root: Root | None) -> bool:
        """Tell whether a node shall have a loop of its own."""
        if node.kind not in ("point", "choice", "pieces") or node.dtype.kind == "b" or not node.shape:
            return False
        if root is not None:
            if not (root.kind == "store" and root.is_number):
                return False
            seen = {identity_map(root.space): {root}}
        if not any(may_repeat(reader, read) for read, readers in seen.items() for reader in readers):
            return False
        own = full_vectors(node)
        counts = {
            (self.homes.get(r), r.space, r.outer, r.axes, read): self.evaluations(r, read)
            for read, readers in seen.items()
            for r in readers
        }
        if all(count <= own for count, _ in counts.values()):
            return False
        spent = own + (sum([count for count, _ in counts.values()]) if root is None else 0.0)
        saved, if_function = [
            sum([max(count - own, 0) for count, is_hidden in counts.values() if of_all or not is_hidden])
            for of_all in (False, True)
        ]
        parted = {r for read, readers in seen.items() for r in readers if not keeps_rows(r, read)}
        readers = [r for r in (parted if root is None else self.readers.get(root, ())) if r in self.homes]
        most, within, cost = sum(map(self.parting, readers)), set[PointNode](), 0.0
        for part in each_below(node, self.roots):
            within.add(part)
            own_part = own_cost(part)
            cost += own_part
            if own_part >= MACHINE.function:
                saved = if_function
            if cost >= MACHINE.costly and saved * cost - spent - most >= MACHINE.kept:
                return True  # more work, and fewer readers that are parted, make it worth more
        gain = saved * cost - spent
        if cost < MACHINE.costly or gain < MACHINE.kept:
            return False
        return gain - self.cost_of_parting(within, readers) >= MACHINE.kept

    def lane(self, root: Root) -> int | None:
        """Return the dimension that lanes run over."""
        if root not in self.lanes:
            self.lanes[root] = lane_of(root, root.outer)
        return self.lanes[root]

    def is_costly(self, node: PointNode) -> bool:
        """Tell whether a node that is kept costs enough where others are, too."""
        costs = accumulate(map(own_cost, each_below(node, self.roots, self.kept)))
        return any(cost >= MACHINE.costly for cost in costs)

    def cost_of_parting(self, within: Collection[PointNode], readers: Iterable[Root]) -> float:
        """Return how many cycles it takes that readers cannot share rows with what a value depends on."""
        needs = {a.node for node in within for a in node.args}.difference(within)
        own = {self.homes[self.roots[node]] for node in needs if self.roots.get(node) in self.homes}  # joins have none
        return sum([self.parting(reader) for reader in readers if self.homes[reader] in own])

    def parting(self, reader: Root) -> float:
        """Return how many cycles it takes that a root cannot share rows with others of its kernel."""
        home = self.homes[reader]
        if home.rows is None or len(reader.long) < 2:
            return 0.0
        if reader not in self.parted:
            self.parted[reader] = MACHINE.parted + cycles_of_shared(reader, home.roots, self.computed)
        return self.parted[reader]

    def evaluations(self, root: Root, read: IndexMap) -> tuple[float, bool]:
        """Return how often the loops of a root compute what is read under a map, for a vector or a number.

        And whether these are numbers of loops within the rows, which processors compute beside vectors.
        """
        depends = {d for _, terms in read for d, _ in terms}
        count, is_wide, found = 1.0, False, (1.0, False)
        for d, steps in self.loops_of(root, depends):
            count, is_wide = count * steps, is_wide or steps != root.space[d]
            if d in depends:
                found = max(count, 1.0), not is_wide and d != root.outer
        return found

    def loops_of(self, root: Root, depends: Container[int]) -> Iterator[tuple[int, float]]:
        """Yield the dimensions of a root's loops from the outermost to the innermost, and how many steps they have.

        First come rows, then what is kept, then what is reduced, and lanes last in each part; if nothing is reduced,
        work leaves the inner loops. Few points are spelled out.
        """
        lane, inner = self.lane(root), [d for d in root.long if d != root.outer]
        if root.kind == "store":
            if root.outer is not None and 1 < math.prod(root.inner) <= MACHINE.spelled_points[0]:
                lane = root.outer
            inner = [d for d in inner if root.space[d] > MACHINE.spelled_points[0] or d == lane]
        reduced = {d for d in inner if d in root.axes or d == root.scan_axis}
        order = sorted(inner, key=lambda d: (d in reduced, d == lane if reduced else d not in depends))
        for d in order if root.outer is None else (root.outer, *order):
            yield d, root.space[d] / LANES if d == lane else root.space[d]


def is_plain(root: Root) -> bool:
    """Tell whether lanes run over the only dimension of a root, if it has any."""
    return root.outer is None and len(root.long) < 2


def keeps_rows(root: Root, read: IndexMap) -> bool:
    """Tell whether a row of a root reads, under a map, several numbers of its own: a loop within the row computes them.

    Lanes run over rows to compute a number of each.
    """
    own = [index for index in read if index.terms == ((root.outer, 1),) and not index.offset]
    return bool(own) and any(index.terms and index not in own for index in read)


def may_repeat(root: Root, read: IndexMap) -> bool:
    """Tell whether the loops of a root compute something anew, or number by number, that is read under a map."""
    return len({d for _, terms in read for d, _ in terms}) < len(root.long) or (
        root.is_number and root.outer is not None
    )
