"""Stages: the records of kernels for the roots that share one."""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from math import prod
from typing import Any

from wengert.core.maps.index_maps import AxisIndex, IndexMap, compose, flatten_map, identity_map, is_within, strides_for
from wengert.core.memory.buffers import as_bytes
from wengert.kernel.checking import check_step
from wengert.kernel.kernel import (
    Affine,
    Bound,
    Buffer,
    Guard,
    Keep,
    Kernel,
    Operation,
    Program,
    Reduce,
    ReductionKind,
    Stage,
    Store,
    Update,
)
from wengert.kernel.merging import merge_loops as with_merged_dimensions
from wengert.kernel.spelling import prune_stage, spelled_out, with_long_lanes, with_numbers_alone, without_unread
from wengert.lowering.broadcast_values import repeated_values
from wengert.lowering.fuse import Group, computed_again, group_roots, set_stages
from wengert.lowering.loop_roots import Root, find_roots
from wengert.lowering.nodes import Access, Box, PointNode, Shape
from wengert.lowering.rules.lower import Lowered
from wengert.support.machine import MACHINE

Key = tuple[PointNode, IndexMap, Guard]


def program_of(lowered: Lowered, window: AxisIndex | None = None) -> Program:
    """Return the kernels that compute the outputs of a graph, all of whose equations have been lowered.

    Args:
        lowered: the graph.
        window: where in the first input, which is changed then, the first output lies; None if it has its own memory.
    """
    outputs = output_nodes(lowered)
    nodes, is_changed = lowered.nodes, window is not None
    whole = [*nodes.made]
    roots = find_roots(outputs, nodes, whole, changed=is_changed)
    groups = group_roots(roots)
    if kept := computed_again(groups, roots, nodes.made) | repeated_values(groups, roots, nodes.made):
        roots = find_roots(outputs, nodes, whole, kept, is_changed)
        groups = group_roots(roots)
    set_stages(groups, roots, nodes.made)
    searched = {node.args[0].node for node in nodes.made if node.kind == "row"}
    memory = BufferNames(roots, groups, searched)
    for k, node in enumerate(without_none(lowered.inputs)):
        memory.name(node, f"x{k}", "input")
    for k, (node, (_, shape)) in enumerate(zip(outputs, without_none(lowered.outputs), strict=True)):
        if window is not None and not k:
            memory.change(roots[node], "x0", window)
        else:
            memory.output(roots[node], f"y{k}", shape)
    memory.place_others()
    kernels = tuple([KernelWriter(memory, group).kernel() for group in groups])
    buffers = tuple(memory.buffers.values())
    inputs, made = [
        tuple([b.name for b in buffers if b.kind in kinds]) for kinds in (("input", "changed"), ("output",))
    ]
    failing = made[-1] if nodes.outside else ""
    program = check_step("fused", without_unread(Program(inputs, made, buffers, kernels, failing)))
    for step in (spelled_out, with_merged_dimensions, with_long_lanes, with_merged_dimensions, with_numbers_alone):
        program = check_step(step.__name__, step(program))
    return program


def without_none(items: Sequence[Any]) -> list[Any]:
    """Return the items that are not None."""
    return [x for x in items if x is not None]


def output_nodes(lowered: Lowered) -> list[PointNode]:
    """Return a node for each output, computed for it alone: its elements are the output's, one after the other."""
    found: list[PointNode] = []
    for k, (access, shape) in enumerate(without_none(lowered.outputs)):
        node = access.node
        if node in found or not is_as_it_lies(access, shape):
            args = [access.through(identity_map(shape))]
            node = lowered.nodes.make("point", "copy", shape, node.dtype, args, mark=("output", k))
        found.append(node)
    return found


def is_as_it_lies(access: Access, shape: Shape) -> bool:
    """Tell whether an array of some shape is all of a node that kernels compute, one element after the other."""
    node = access.node
    if node.kind not in ("point", "reduce", "scan", "choice", "pieces", "gather", "scatter"):
        return False
    order = tuple([(d, step) for d, step in enumerate(strides_for(shape)) if shape[d] > 1])
    return prod(node.shape) == prod(shape) and flatten_map(node.shape, access.map) == AxisIndex(0, order)


class BufferNames:
    """Name the buffers of a program.

    Attributes:
        roots: by their nodes.
        groups: the kernels.
        searched: the nodes that are read at computed places, one element after the other in C order.
        buffers: by name.
        homes: the group of each root.
        orders: of roots whose dimensions lie in memory in another order than theirs, that.
    """

    def __init__(
        self, roots: Mapping[PointNode, Root], groups: Sequence[Group], searched: Container[PointNode]
    ) -> None:
        self.roots = roots
        self.groups = groups
        self.searched = searched
        self.homes = {root: group for group in groups for root in group.roots}
        self.orders: dict[Root, Sequence[int]] = {}
        self.buffers: dict[str, Buffer] = {}
        self.names: dict[PointNode, str] = {}
        self.constants: dict[tuple[Any, ...], str] = {}

    def name(self, node: PointNode, name: str, kind: Any, contents: bytes = b"") -> str:
        """Enter the buffer of a node that no kernel writes."""
        self.names[node] = name
        self.buffers[name] = Buffer(name, node.shape, node.dtype, kind, contents)
        return name

    def output(self, root: Root, name: str, shape: Shape) -> None:
        """Let a root be written to an output."""
        root.buffer = name
        self.buffers[name] = Buffer(name, shape, root.node.dtype, "output")

    def change(self, root: Root, name: str, window: AxisIndex) -> None:
        """Let a root be written to a part of an input."""
        root.buffer, root.window = name, window
        self.buffers[name] = self.buffers[name].replace(kind="changed")

    def place_others(self) -> None:
        """Give memory to the other roots that need some: a buffer of the row where only their own row reads them."""
        self.place_parts()
        far = {need for root in self.roots.values() for need in root.far}
        for group in self.groups:
            for root in group.roots:
                far |= {need for need in root.needs if self.homes[need] is not group or root.crosses_rows(need)}
        for group in self.groups:
            for root in group.roots:
                if root.buffer:
                    continue
                if root in far or root.over_rows or (root.kind in ("store", "scan", "scatter") and not fits_row(root)):
                    root.buffer = f"t{root.node.number}"
                    shape = tuple([root.node.shape[k] for k in self.set_order(root)])
                    self.buffers[root.buffer] = Buffer(root.buffer, shape, root.node.dtype, "temporary")
                elif root.kind != "reduce" or not root.is_number:
                    root.buffer = f"w{root.node.number}"
                    self.buffers[root.buffer] = Buffer(root.buffer, row_shape(root), root.node.dtype, "row")

    def place_parts(self) -> None:
        """Give the parts of arrays memory in those."""
        for root in reversed([*self.roots.values()]):
            if root.kind != "join":
                continue
            if not root.buffer:
                root.buffer = f"t{root.node.number}"
                self.buffers[root.buffer] = Buffer(root.buffer, root.node.shape, root.node.dtype, "temporary")
            start = 0 if root.window is None else root.window.offset
            for part in root.parts:
                assert part.window is not None
                part.buffer, part.window = root.buffer, part.window._replace(offset=start + part.window.offset)

    def set_order(self, root: Root) -> Sequence[int]:
        """Return the dimensions of a root's values in the order in which they lie in memory that nobody else sees.

        That of rows comes first, so that lanes are written, and mostly read, side by side.
        """
        found = [*range(len(root.node.shape))]
        if root.row and root.node not in self.searched:
            found.insert(0, found.pop(root.row))
            self.orders[root] = found
        return found

    def constant(self, node: PointNode) -> str:
        """Return the name of the buffer of an input or an array of constants."""
        if node not in self.names:
            contents = as_bytes(node.value)
            name = self.constants.setdefault((node.shape, node.dtype, contents), f"c{node.number}")
            self.name(node, name, "constant", contents)
        return self.names[node]

    def is_own(self, root: Root) -> bool:
        """Tell whether a root is in a buffer of the row."""
        return self.buffers[root.buffer].kind == "row"


def row_shape(root: Root) -> Shape:
    """Return the shape of the part of a root's values that belongs to one row."""
    return tuple([n for k, n in enumerate(root.node.shape) if k != root.row])


def fits_row(root: Root) -> bool:
    """Tell whether the part of a root's values that belongs to one row is small enough for a buffer of the row."""
    return prod(row_shape(root)) * root.node.dtype.itemsize <= MACHINE.row_cache


class KernelWriter:
    """Write the kernel of a group.

    Attributes:
        memory: the buffers.
        group: the roots.
        owners: the roots of the group that values of others, and numbers, are taken from, by their nodes.
    """

    def __init__(self, memory: BufferNames, group: Group) -> None:
        self.memory = memory
        self.group = group
        self.owners = {**memory.roots, **{root.node: root for root in group.roots}}

    def kernel(self) -> Kernel:
        """Return the kernel."""
        order: dict[tuple[int, Shape, int | None], list[Root]] = {}
        for root in self.group.roots:
            order.setdefault((root.level, root.inner, root.scan_axis), []).append(root)
        rows = self.group.rows or 1
        items = sorted(order.items(), key=lambda item: item[0][0])
        writers = [StageWriter(self, rows, inner, roots) for (_, inner, _), roots in items]
        made = [root for root in self.group.roots if root.kind == "scatter" and root.window is None]
        writers = [*[FillWriter(self, root) for root in made], *writers]
        kept = tuple([keep for writer in writers for keep in writer.kept])
        return Kernel(rows, tuple([writer.stage() for writer in writers]), kept)


class StageWriter:
    """Write the stage of some roots of one level with the same loops."""

    def __init__(self, kernel: KernelWriter, rows: int, inner: Shape, roots: Sequence[Root]) -> None:
        self.memory = kernel.memory
        self.group = kernel.group
        self.owners = kernel.owners
        self.extents = (rows, *inner)
        self.level = roots[0].level
        self.operations: list[Operation] = []
        self.known: dict[tuple[Operation, str], int] = {}
        self.values: dict[Key, int] = {}
        self.stores: list[Store] = []
        self.updates: list[Update] = []
        self.reductions: list[Reduce] = []
        self.kept: list[Keep] = []
        for root in roots:
            self.write(root)

    def stage(self) -> Stage:
        """Return the stage, without operations that nothing uses."""
        results = tuple(self.stores), tuple(self.reductions)
        return prune_stage(Stage(self.extents, tuple(self.operations), *results, updates=tuple(self.updates)))

    # Roots

    def write(self, root: Root) -> None:
        """Write what computes a root, and its store or reduction."""
        places = dimensions_of(root)
        if root.kind == "scatter":
            _, *args, along = root.node.args
            value, index = [self.value((access.node, compose(access.map, places), ())) for access in args]
            at = self.affine(compose(along.map, places)[0])
            self.updates.append(Update(root.buffer, value, index, at, root.node.name == "add"))
        elif root.kind in ("reduce", "scan"):
            values = [self.value((access.node, compose(access.map, places), ())) for access in root.node.args]
            (self.scan if root.kind == "scan" else self.reduce)(root, values, places)
        else:
            value = self.value((root.node, places, ()), fresh=True)
            self.stores.append(Store(root.buffer, self.own_place(root, places), value))

    def scan(self, root: Root, values: list[int], places: IndexMap) -> None:
        """Write the reduction that gives each step of a root."""
        ((along, _),) = places[root.node.axes[0]].terms
        at = self.own_place(root, places)
        self.reductions.append(Reduce(root.node.name, values[0], "scan", (along,), root.buffer, at, *values[1:]))

    def reduce(self, root: Root, values: list[int], places: IndexMap) -> None:
        """Write the reduction of a root."""
        node, (value,) = root.node, values
        over = tuple(sorted([d for k in root.axes for d, _ in places[k].terms]))
        inner = set(range(1, len(self.extents)))
        if root.is_number and not root.over_rows:
            self.reductions.append(Reduce(node.name, value, "row", over, number_of(root)))
            if root.buffer:
                at = self.own_place(root, places)
                self.kept.append(Keep(number_of(root), root.buffer, Affine(at.constant, at.coefficients[:1])))
            return
        whole = inner <= set(over)
        kind: ReductionKind = ("total" if whole else "column") if root.over_rows else "nested"
        self.reductions.append(Reduce(node.name, value, kind, over, root.buffer, self.own_place(root, places)))

    def own_place(self, root: Root, places: IndexMap) -> Affine:
        """Return where in its memory the value of a root at a point stands."""
        kept = tuple([places[k] for k in range(len(root.space)) if k not in root.axes])
        return self.at(root, kept)

    # Values

    def value(self, wanted: Key, fresh: bool = False) -> int:
        """Return the place of the operation that gives a node under a map where a guard holds.

        Args:
            wanted: the node, the map and the guard.
            fresh: whether it is computed, rather than read from its own memory.
        """
        todo = [wanted]
        while todo:
            key = todo[-1]
            computed = fresh and key == wanted
            if key in self.values and not computed:
                todo.pop()
                continue
            leaf = None if computed else self.leaf(key)
            if leaf is not None:
                self.values[key] = self.put(leaf)
                todo.pop()
                continue
            needs = self.needs(key)
            missing = [need for need in needs if need not in self.values]
            if missing:
                todo += missing
                continue
            self.values[key] = self.write_value(key, [self.values[need] for need in needs])
            fresh = fresh and not computed
            todo.pop()
        return self.values[wanted]

    def leaf(self, key: Key) -> Operation | None:
        """Return what reads a value that is in memory, a number, or known; None if it has to be computed."""
        node, read, _ = key
        guard = self.read_guard(key)
        if node.kind == "constant":
            return Operation("constant", (), node.dtype, value=node.value)
        if node.kind == "index":
            return Operation("index", (), node.dtype, at=self.affine(read[0]))
        if node.kind == "buffer":
            return self.load(self.memory.constant(node), node, flatten_map(node.shape, read), guard)
        if node.kind == "row":
            return self.load(self.row_buffer(node), node, read[0], guard)
        owner = self.owners.get(node)
        if owner is None:
            return None
        if owner in self.group.roots:
            if owner.kind == "reduce" and owner.is_number:
                return Operation("number", (), node.dtype, number_of(owner))
            if owner.kind != "reduce" and owner.level >= self.level:
                return None
        return Operation("load", (), node.dtype, owner.buffer, self.at(owner, read), guard)

    def row_buffer(self, row: PointNode) -> str:
        """Return the buffer that a row of elements is in."""
        node = row.args[0].node
        return self.memory.constant(node) if node.kind == "buffer" else self.owners[node].buffer

    def load(self, buffer: str, node: PointNode, index: AxisIndex, guard: Guard) -> Operation:
        """Return a load."""
        return Operation("load", (), node.dtype, buffer, self.affine(index), guard)

    def needs(self, key: Key) -> list[Key]:
        """Return what a value is computed from."""
        node, read, guard = key
        if node.kind in ("choice", "pieces"):
            return [self.key(a.through(read), merge_guards(guard, own)) for a, own in self.reached_arguments(key)]
        args = node.args[1:] if node.kind == "gather" else node.args
        return [self.key(a.through(read), guard) for a in args]

    def key(self, access: Access, guard: Guard) -> Key:
        """Return what is wanted of an access; without the guard where nothing is read outside of the node anyway.

        That of one row stays: of a choice among rows it leaves one.
        """
        is_row = any(bound.high - bound.low == 1 for bound in guard)
        return (*access, guard if is_row else self.read_guard((*access, guard)))

    def read_guard(self, key: Key) -> Guard:
        """Return the guard of a read from memory; none where nothing is read outside of it anyway."""
        node, read, guard = key
        return () if not guard or is_within(node.shape, read, self.extents) else guard

    def write_value(self, key: Key, values: list[int]) -> int:
        """Write the operation that computes a node from others; return its place."""
        node, read, _ = key
        if node.kind == "choice":
            return self.write_choice(node, [own for _, own in self.reached_arguments(key)], values)
        if node.kind == "pieces":
            return self.write_sum(node, [own for _, own in self.reached_arguments(key)], values)
        if node.kind == "gather":
            row, index = node.args[0].node, compose(node.args[0].map, read)[0]
            at = self.affine(index)
            name = node.name or "gather"  # searches read all of a row, whatever guards them
            return self.put(
                Operation(
                    name, tuple(values), node.dtype, self.row_buffer(row), at, () if node.name else self.read_guard(key)
                )
            )
        if node.name == "copy":
            return values[0]
        return self.put(Operation(node.name, tuple(values), node.dtype))

    def reached_arguments(self, key: Key) -> list[tuple[Access, Guard]]:
        """Return the arguments of a choice or pieces that are read somewhere, each with where it is.

        Those of a choice are left out that are not where its value is wanted: a slice of a stack reads one of its rows.
        Pieces stay, since a zero that is added may change the sign of another.
        """
        node, read, guard = key
        found = []
        for box, access in zip(node.boxes, node.args, strict=True):
            own = self.bounds(box, read)
            if own is None:
                continue
            both = merge_guards(guard, own)
            if node.kind == "pieces" or all(bound.low < bound.high for bound in both):
                found.append((access, own))
            if node.kind == "choice" and both == guard:  # there it is everywhere
                break
        return found

    def write_choice(self, node: PointNode, guards: list[Guard], values: list[int]) -> int:
        """Write a choice of values by where the point is."""
        if not values:
            return self.zero(node)
        found = values[-1]
        for guard, value in zip(reversed(guards[:-1]), reversed(values[:-1]), strict=True):
            found = self.put(Operation("pick", (value, found), node.dtype, guard=guard)) if guard else value
        return found

    def write_sum(self, node: PointNode, guards: list[Guard], values: list[int]) -> int:
        """Write a sum of values, each where it is."""
        found = None
        for guard, value in zip(guards, values, strict=True):
            here = self.put(Operation("pick", (value, self.zero(node)), node.dtype, guard=guard)) if guard else value
            found = here if found is None else self.put(Operation("add", (found, here), node.dtype))
        return self.zero(node) if found is None else found

    def zero(self, node: PointNode) -> int:
        """Write a zero."""
        return self.put(Operation("constant", (), node.dtype, value=node.dtype.type(0).item()))

    def put(self, operation: Operation) -> int:
        """Write an operation, once; return its place."""
        key = operation, repr(operation.value)  # 0.0 equals -0.0
        place = self.known.get(key)
        if place is None:
            self.operations.append(operation)
            place = self.known[key] = len(self.operations) - 1
        return place

    # Places

    def affine(self, index: AxisIndex) -> Affine:
        """Return an index in the dimensions of the stage."""
        coefficients = [0] * len(self.extents)
        for d, step in index.terms:
            coefficients[d] = step
        return Affine(index.offset, tuple(coefficients))

    def at(self, root: Root, read: IndexMap) -> Affine:
        """Return where the memory of a root is read or written, in a row of its own or whole."""
        shape = root.node.shape
        if root.window is not None:
            return self.affine(compose((root.window,), read)[0])
        if root.row is not None and self.memory.is_own(root):
            kept = [k for k in range(len(shape)) if k != root.row]
            return self.affine(flatten_map([shape[k] for k in kept], tuple([read[k] for k in kept])))
        order = self.memory.orders.get(root, range(len(shape)))
        return self.affine(flatten_map([shape[k] for k in order], tuple([read[k] for k in order])))

    def bounds(self, box: Box, read: IndexMap) -> Guard | None:
        """Return where a map reads within a box; None if nowhere."""
        found = []
        for (low, high), (offset, terms) in zip(box, read, strict=True):
            if not terms:
                if not low <= offset < high:
                    return None
                continue
            ((d, step),) = terms
            first, last = -((offset - low) // step), -((offset - high) // step)
            if step < 0:
                first, last = (offset - high) // -step + 1, (offset - low) // -step + 1
            first, last = max(first, 0), min(last, self.extents[d])
            if first >= last:
                return None
            if first > 0 or last < self.extents[d]:
                found.append(Bound(d, first, last))
        return merge_guards((), found)


class FillWriter(StageWriter):
    """Write the stage that fills the memory of what is written at computed places."""

    def __init__(self, kernel: KernelWriter, root: Root) -> None:
        super().__init__(kernel, 1, tuple([n for n in root.node.shape if n != 1]), [root])

    def write(self, root: Root) -> None:
        """Write a copy of what was there before."""
        places = dimensions_over(root.node.shape, None)
        start = root.node.args[0]
        value = self.value((start.node, compose(start.map, places), ()))
        self.stores.append(Store(root.buffer, self.affine(flatten_map(root.node.shape, places)), value))


def dimensions_of(root: Root) -> IndexMap:
    """Return for each dimension of a root's space the dimension of the stage that runs over it."""
    return dimensions_over(root.space, root.outer)


def dimensions_over(space: Shape, outer: int | None) -> IndexMap:
    """Return for each dimension of a space the dimension of a stage that runs over it, the rows over one or none."""
    found, at = [], 1
    for k, n in enumerate(space):
        if k == outer:
            found.append(AxisIndex(0, ((0, 1),)))
        elif n == 1:
            found.append(AxisIndex(0))
        else:
            found.append(AxisIndex(0, ((at, 1),)))
            at += 1
    return tuple(found)


def number_of(root: Root) -> str:
    """Return the name of the number of the row that a root gives."""
    return f"n{root.node.number}"


def merge_guards(guard: Guard, more: Iterable[Bound]) -> Guard:
    """Return where two guards hold."""
    found: dict[int, Bound] = {}
    for bound in (*guard, *more):
        old = found.get(bound.dimension, bound)
        found[bound.dimension] = Bound(bound.dimension, max(old.low, bound.low), min(old.high, bound.high))
    return tuple([found[d] for d in sorted(found)])
