"""Fusion: which roots share a kernel, and in which stage of the row each is computed.

In the order of the graph, a root joins a kernel if all that it needs there belongs to the same row; else it opens one,
right after the last of what it needs: kernels need no sorting, and have no cycles. In a kernel a root runs one stage
after the reductions that it needs, and later if a stage there reads the same. Costly values that several stages need
are kept in a buffer of the row; if that is long, one of them where a result of the last of these stages will be.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence

from wengert.core.maps.index_maps import AxisIndex, IndexMap, identity_map
from wengert.lowering.loop_order import LoopOrders, own_cost
from wengert.lowering.loop_roots import Root, below, is_diagonal, reads_below
from wengert.lowering.nodes import PointNode, through_memory
from wengert.support.machine import MACHINE

Used = dict[PointNode, list[tuple[Root, IndexMap]]]
"""The roots that compute a node for themselves, with the maps under which they do."""


class Group:
    """Be the roots of one kernel.

    Attributes:
        rows: how many rows there are; None where there are none, which is one.
        roots: in the order of the graph.
    """

    def __init__(self, rows: int | None) -> None:
        self.rows = rows
        self.roots: list[Root] = []

    def admits(self, root: Root, orders: LoopOrders) -> tuple[bool, int | None]:
        """Tell whether a root can join, and which of its dimensions the rows run over then.

        Args:
            root: the root.
            orders: what tells how long loops take in another order.
        """
        own = set(self.roots)
        if not own.isdisjoint(root.far):
            return False, None
        if root.kind == "scatter" or any(other.kind == "scatter" for other in self.roots):
            return False, None
        if self.rows is None:
            return root.first is None and len(root.long) <= 1, None
        found: int | None = None
        for need, maps in root.needs.items():
            if need not in own:
                continue
            row = need.row
            for read in maps:
                index = AxisIndex(0) if row is None else read[row]
                if index.offset != 0 or len(index.terms) != 1 or index.terms[0][1] != 1:
                    return False, None
                ((dimension, _),) = index.terms
                if found is not None and found != dimension:
                    return False, None
                found = dimension
                if any(found == term for k, other in enumerate(read) if k != row for term, _ in other.terms):
                    return False, None  # a diagonal: another place of each row, which buffers of the row have not
        if found is None:
            found = orders.rows_of(root)
        if found in (None, root.scan_axis) or root.space[found] != self.rows:
            return False, found
        if root.is_apart and root.long == [found]:
            return False, found
        return orders.is_good(root, found, self.roots), found


def group_roots(roots: Mapping[PointNode, Root]) -> list[Group]:
    """Return kernels to be, in order, each with its roots."""
    groups: list[Group] = []
    homes: dict[Root, Group] = {}
    orders = LoopOrders(roots)
    for root in roots.values():
        if root.kind != "join":
            join(root, groups, homes, orders)
    return groups


def set_stages(groups: Iterable[Group], roots: Mapping[PointNode, Root], made: Sequence[PointNode]) -> None:
    """Set the stages of all roots, and add those that keep what several stages need."""
    for group in groups:
        set_levels(group)
    used = used_below(groups, roots, made)
    readers = Counter([other for node in made for other in {access.node for access in node.args}])
    for group in groups:
        keep_costly(group, used.get(group, {}), readers)
        if group.rows is None:
            keep_long(group, roots, used.get(group, {}))


def computed_again(
    groups: Iterable[Group], roots: Mapping[PointNode, Root], made: Sequence[PointNode]
) -> set[PointNode]:
    """Return the nodes that several kernels would compute again, with all that they are computed from, at great cost.

    If they were not kept, a chain of values of which each kernel reads the last one would be computed by all of them
    from its beginning: by kernels that grow, in a time that grows with the square of its length.

    Args:
        groups: the kernels.
        roots: those of the kernels, and arrays that some of them fill, by their nodes.
        made: all nodes, each after those that it reads.
    """
    homes = {root.node: group for group in groups for root in group.roots}
    readers: dict[
        PointNode, tuple[int, object]
    ] = {}  # how many there are, and where they are computed, if in one place
    costs = costs_from_memory(roots, made)
    found: set[PointNode] = set()
    for node in reversed(made):
        count, place = readers.pop(node, (0, None))
        home: object = homes.get(node)
        if home is None and node in roots:
            continue
        if home is None:
            if not count:
                continue
            home = place
            is_shared = place is None and count > 1 and node.kind in ("point", "choice", "pieces")
            if is_shared and max(node.cost, costs[node]) > MACHINE.recomputed_far:
                found.add(node)
                home = node
        for other in {access.node for access in node.args[len(through_memory(node)) :]}:
            count, place = readers.get(other, (0, home))
            readers[other] = count + 1, place if place is home else None
    return found


def costs_from_memory(roots: Container[PointNode], made: Sequence[PointNode]) -> dict[PointNode, float]:
    """Return what it costs to compute nodes again from roots, that of parts and pieces included; what is shared again.

    A choice costs what the dearest of its parts does: a slice of it, or a row, reads one.
    """
    costs: dict[PointNode, float] = {}
    for node in made:
        read = [costs[access.node] for access in node.args]
        if node in roots or not read:
            costs[node] = float(node.kind != "constant")
        elif node.kind == "choice":
            costs[node] = max(read) + len(read)
        else:
            costs[node] = sum(read) + (2.0 * len(read) if node.kind == "pieces" else own_cost(node))
    return costs


def join(root: Root, groups: list[Group], homes: dict[Root, Group], orders: LoopOrders) -> None:
    """Enter a root into the first group that admits it, those that it needs before others; else into a new one."""
    needed = {homes[need] for need in (*root.needs, *root.far)}
    last = max([k for k, group in enumerate(groups) if group in needed], default=-1)
    order = sorted(range(max(last, 0), len(groups)), key=lambda k: groups[k] not in needed)
    for k in order:
        admitted, outer = groups[k].admits(root, orders)
        if admitted:
            root.outer, home = outer, groups[k]
            break
    else:
        root.outer = orders.rows_of(root)
        home = Group(None if root.outer is None else root.space[root.outer])
        groups.insert(last + 1, home)
    homes[root] = home
    home.roots.append(root)


# Stages


def set_levels(group: Group) -> None:
    """Set the stage of each root: as early as it can be, but for reductions, that of one which reads the same later."""
    own = set(group.roots)
    for root in group.roots:
        root.level = max([level_after(root, need, maps) for need, maps in root.needs.items() if need in own], default=0)
    for root in reversed(group.roots):
        if root.kind == "reduce":
            set_back(root, group)


def level_after(root: Root, need: Root, maps: Iterable[IndexMap]) -> int:
    """Return the first stage in which a root can run that needs another: its own, if they meet point by point.

    What was too much for one stage is read from memory in the next.
    """
    whole = identity_map(need.node.shape)
    together = (
        need.kind == "store"
        and root.kind != "scan"
        and need.inner == root.inner
        and need.outer == root.outer
        and not need.node.heavy
    )
    return need.level + (not (together and all(read == whole for read in maps)))


def set_back(root: Root, group: Group) -> None:
    """Let a reduction run in a later stage, if one before its users reads all that it reads of full length."""
    users = [user.level for user in group.roots if root in user.needs]
    if not users:
        return
    mine = {node for node, _ in root.reads if node.kind == "buffer" and node.shape[-1:] == root.space[-1:]}
    for level in range(root.level, min(users)):
        others = [u for u in group.roots if u is not root and u.level == level and u.inner == root.inner]
        if others and mine <= {node for u in others for node, _ in u.reads}:
            root.level = level
            return


def used_below(
    groups: Iterable[Group], roots: Mapping[PointNode, Root], made: Sequence[PointNode]
) -> dict[Group, Used]:
    """Return what roots of several stages compute from others and are not themselves, with its readers."""
    places = {root: (group, k) for group in groups for k, root in enumerate(group.roots)}
    found: dict[Group, Used] = {}
    for node, seen in reads_below(roots, made):
        if len({r.level for own in seen.values() for r in own}) < 2:
            continue
        readers = [(*places[root], root, read) for read, own in seen.items() for root in own]
        for group, _, root, read in sorted(readers, key=lambda reader: reader[1]):
            found.setdefault(group, {}).setdefault(node, []).append((root, read))
    return found


def keep_costly(group: Group, used: Used, readers: Mapping[PointNode, int]) -> None:
    """Add roots for what several stages compute, if it is costly, or cheaper but in three of them.

    From the first to the last, since costs count from what is kept; what only one value reads is kept as part of that.
    """
    costs: dict[PointNode, float] = {}
    for node in reversed(used):
        costs[node] = own_cost(node) + sum([costs.get(access.node, 0.0) for access in node.args])
        stages = len({root.level for root, _ in used[node]})
        if stages < 2 or readers[node] < 2 or costs[node] < MACHINE.costly / (1 if stages == 2 else 4):
            continue
        first, read = min(used[node], key=lambda item: item[0].level)
        if can_keep(node, first, read, group, used[node]):
            keep(node, first, group)
            costs[node] = 0.0


def keep_long(group: Group, roots: Mapping[PointNode, Root], used: Used) -> None:
    """Add for each long result a root for what saves most if it is kept where the result will be.

    That memory will be written anyway. One value in memory of its own, or several, would take as long as they save.
    """
    kept: list[PointNode] = []
    for result in [root for root in group.roots if root.kind == "store" and is_long(root)]:
        best, saved = None, 0.0
        for node, readers in used.items():
            stages = {root.level for root, _ in readers}
            saving = (len(stages) - 1) * node.cost
            if node.cost < MACHINE.costly or saving <= saved or not is_last_read(node, readers, result):
                continue
            first, read = min(readers, key=lambda item: item[0].level)
            related = any(node in below(other, roots) or other in below(node, roots) for other in kept)
            if not related and can_keep(node, first, read, group, readers, MACHINE.last_cache):
                best, saved = (node, first), saving
        if best is not None:
            keep(*best, group)
            kept.append(best[0])


def is_last_read(node: PointNode, readers: Iterable[tuple[Root, IndexMap]], result: Root) -> bool:
    """Tell whether a value is read for the last time where a result is, point by point, that takes as much room."""
    alike = node.dtype == result.node.dtype and node.shape == result.space
    here = (result, identity_map(result.space)) in readers
    return alike and here and all(root.level <= result.level for root, _ in readers)


def is_long(root: Root) -> bool:
    """Tell whether the values of a root are too many for a buffer of the row, and not too many to be kept at all."""
    return MACHINE.row_cache < math.prod(root.space) * root.node.dtype.itemsize <= MACHINE.last_cache


def keep(node: PointNode, first: Root, group: Group) -> Root:
    """Add a root that keeps a value, in the stage of its first reader."""
    root = Root(node, "kept")
    root.outer, root.level = first.outer, first.level
    group.roots.append(root)
    return root


def can_keep(
    node: PointNode,
    first: Root,
    read: IndexMap,
    group: Group,
    readers: Iterable[tuple[Root, IndexMap]],
    room: int = MACHINE.row_cache,
) -> bool:
    """Tell whether a value can be kept in a buffer of the row of some bytes, which the first of its readers fills."""
    if (
        node.kind not in ("point", "choice", "pieces") or node.dtype.kind == "b"
    ):  # conditions are masks in registers, and bytes in memory
        return False
    if read != identity_map(first.space) or not first.inner or node.shape != first.space:
        return False
    if math.prod(first.inner) * node.dtype.itemsize > room:
        return False
    if group.rows is None or first.outer is None:
        return True
    own = first.outer
    return all(
        root.outer is not None
        and other[own] == AxisIndex(0, ((root.outer, 1),))
        and not is_diagonal(other, own, root.outer)
        for root, other in readers
    )
