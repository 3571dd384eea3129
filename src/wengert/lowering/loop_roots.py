"""Roots: the nodes that loops compute, and which others they read under which index maps.

Outputs and reductions are roots, what others read in memory, and what one of them would compute several times at more
cost than reading it. All else is computed where it is used, again in each stage if need be. Of an array in memory that
many parts fill, each is written where it goes by a loop that it may share with others.
"""

from __future__ import annotations

from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from math import prod
from typing import Literal

from wengert.core.maps.index_maps import AxisIndex, IndexMap, Shape, compose, identity_map, strides_for
from wengert.lowering.nodes import Access, Box, Nodes, PointNode, through_memory
from wengert.support.machine import MACHINE

Reads = dict[IndexMap, set["Root"]]
"""Who reads a node, under which maps."""


class Root:
    """Be a node that a loop of its own, or one shared with other roots, computes.

    Attributes:
        node: what is computed.
        kind: a store of each point, what is written at computed places, a reduction, what one gives step by step, or
            values that are kept for other stages of the row; an array that parts fill has no loop.
        space: of the loop.
        axes: the dimensions of the space that are reduced.
        needs: the roots that it reads, each with the maps under which it does.
        far: the roots that it reads in memory in another order, so that all of them must have been written.
        reads: the nodes, buffers among them, that it reads from memory, with their maps; without, at computed places.
        outer: the dimension of the space that the rows run over; None if there is one row.
        level: the number of its stage in the kernel.
        buffer: the name of its memory, if it has any.
        is_apart: whether it has a loop of its own, with lanes, rather than being a number of each row.
        window: where it is in a buffer that is changed, or that parts fill; None if its buffer is its own.
        parts: the roots that fill it.
    """

    __slots__ = (
        "axes",
        "buffer",
        "far",
        "is_apart",
        "kind",
        "level",
        "needs",
        "node",
        "outer",
        "parts",
        "reads",
        "space",
        "window",
    )

    def __init__(self, node: PointNode, kind: Literal["store", "reduce", "scan", "scatter", "kept", "join"]) -> None:
        self.node = node
        self.kind = kind
        self.space: Shape = node.space if node.kind in ("reduce", "scatter") else node.shape
        self.axes = node.axes if node.kind == "reduce" else ()
        self.needs: dict[Root, set[IndexMap]] = {}
        self.far: set[Root] = set()
        self.reads: set[tuple[PointNode, IndexMap]] = set()
        self.outer: int | None = None
        self.level = 0
        self.buffer = ""
        self.is_apart = False
        self.window: AxisIndex | None = None
        self.parts: tuple[Root, ...] = ()

    def __repr__(self) -> str:
        return f"<{self.kind} {self.node}, outer {self.outer}, level {self.level}>"

    @property
    def long(self) -> list[int]:
        """The dimensions of more than one element: no loop runs over the others."""
        return [k for k, n in enumerate(self.space) if n != 1]

    @property
    def scan_axis(self) -> int | None:
        """The dimension whose steps follow one from the other, if there is one; rows cannot run over it."""
        return self.node.axes[0] if self.kind == "scan" else None

    @property
    def first(self) -> int | None:
        """The first dimension that rows can run over; none if lanes go on where steps follow."""
        if self.kind == "scatter":  # one after the other
            return None
        free = [k for k in self.long if k != self.scan_axis]
        if len(self.long) < 2 or (self.scan_axis == self.long[0] and len(free) == 1):
            return None
        return free[0]

    @property
    def inner(self) -> Shape:
        """The extents of the loops within a row."""
        return tuple([n for k, n in enumerate(self.space) if k != self.outer and n != 1])

    @property
    def over_rows(self) -> bool:
        """Whether it combines the rows."""
        return self.outer in self.axes

    @property
    def is_number(self) -> bool:
        """Whether it gives one number of each row, or of all rows."""
        return all(k in self.axes or k == self.outer or n == 1 for k, n in enumerate(self.space))

    @property
    def row(self) -> int | None:
        """The dimension of its values that the rows run over; None where there is none."""
        if self.outer is None or self.outer in self.axes:
            return None
        return self.outer - sum([a < self.outer for a in self.axes])

    def crosses_rows(self, root: Root) -> bool:
        """Tell whether it reads a root at places within its rows that depend on the row, as on a diagonal."""
        return any(is_diagonal(read, root.row, self.outer) for read in self.needs[root])


def is_diagonal(read: IndexMap, row: int | None, outer: int | None) -> bool:
    """Tell whether where a map reads within a row depends on the row: on dimension `outer` besides in place `row`."""
    return any(dimension == outer for k, index in enumerate(read) if k != row for dimension, _ in index.terms)


def find_roots(
    outputs: Sequence[PointNode],
    nodes: Nodes,
    whole: Sequence[PointNode],
    kept: Collection[PointNode] = (),
    changed: bool = False,
) -> dict[PointNode, Root]:
    """Return the roots that outputs need, by their nodes, in the order in which nodes were made.

    Args:
        outputs: the nodes of the outputs.
        nodes: what made all nodes.
        whole: those that are no parts of others, in order; parts are roots where the array is one.
        kept: those that are roots besides.
        changed: whether the first output is a part of an input.
    """
    found = RootSearch(nodes, {*outputs, *kept}, {*outputs[:1]} if changed else set())
    for node in reversed(whole):
        found.visit(node, node in kept)
    return dict(reversed(found.roots.items()))


class RootSearch:
    """Find roots among nodes, each after its readers.

    Attributes:
        nodes: what made them.
        live: those that are roots in any case.
        whole: those of them that parts do not fill.
        roots: by their nodes.
        reached: who reads nodes, under which maps.
        held: who reads nodes in memory in another order.
        within: arrays that are a part of another one, with that, and the part.
        readers: who reads arrays that parts fill.
    """

    def __init__(self, nodes: Nodes, live: Container[PointNode], whole: Container[PointNode]) -> None:
        self.nodes, self.live, self.whole = nodes, live, whole
        self.roots: dict[PointNode, Root] = {}
        self.reached: dict[PointNode, Reads] = {}
        self.held: dict[PointNode, set[Root]] = {}
        self.within: dict[PointNode, tuple[Root, Part]] = {}
        self.readers: dict[Root, set[Root]] = {}

    def visit(self, node: PointNode, is_apart: bool) -> None:
        """Make a node a root if it has to be, and let what it reads know its readers."""
        seen = self.reached.pop(node, {})
        is_live = node in self.live or node in self.held or node in self.within
        if not seen and not is_live:
            return
        if node.kind in ("buffer", "constant", "index"):
            note(node, seen)
            return
        if is_live or node.kind in ("reduce", "scan", "scatter") or is_worth_memory(node, seen):
            note(node, seen)
            if node not in self.whole and is_filled_by_parts(node):
                self.fill(node, seen)
                return
            root = self.roots[node] = Root(node, kind_of(node))
            root.is_apart = is_apart
            for read, readers in seen.items():
                for reader in readers:
                    reader.needs.setdefault(root, set()).add(read)
            for reader in self.held.get(node, ()):
                reader.far.add(root)
            seen = {identity_map(root.space): {root}}
        follow(node, seen, self.reached, self.held)

    def fill(self, node: PointNode, seen: Reads) -> None:
        """Let parts fill an array; one that others do not read may be a part of another array."""
        readers = set[Root]().union(*seen.values(), self.held.get(node, ()))
        root = Root(node, "join")
        if node in self.within:
            outer, place = self.within[node]
            if readers:
                readers = readers | {self.add_part(outer, place, self.readers[outer])}
            else:
                root.window = window_at(place[1][0][0], node.shape)
                outer.parts += (root,)
                readers = self.readers[outer]
        self.roots[node], self.readers[root] = root, readers
        for place in parts_along(node):
            inner = joined_in(place)
            if inner is not None and inner not in self.live and inner not in self.within:
                self.within[inner] = root, place
            else:
                part = self.add_part(root, place, readers)
                follow(part.node, {identity_map(part.space): {part}}, self.reached, self.held)

    def add_part(self, root: Root, place: Part, readers: Iterable[Root]) -> Root:
        """Return a new root that fills a part of an array."""
        node, window = part_of(self.nodes, root.node, place)
        part = self.roots[node] = Root(node, "store")
        part.window, part.is_apart = window, node in self.live
        root.parts += (part,)
        for reader in readers:
            reader.far.add(part)
        return part


def kind_of(node: PointNode) -> Literal["store", "reduce", "scan", "scatter"]:
    """Return the kind of the root of a node."""
    return node.kind if node.kind in ("reduce", "scan", "scatter") else "store"


def note(node: PointNode, seen: Reads) -> None:
    """Let readers know what they read from memory."""
    for read, readers in seen.items():
        for reader in readers:
            reader.reads.add((node, read))


def follow(node: PointNode, seen: Reads, reached: dict[PointNode, Reads], held: dict[PointNode, set[Root]]) -> None:
    """Let what a node reads know who reads it."""
    memory = through_memory(node)
    for access in memory:
        if access.node.kind == "row":
            extend(reached, access, seen)
        elif access.node.kind != "buffer":
            held.setdefault(access.node, set()).update(*seen.values())
        else:
            note(access.node, {(): set[Root]().union(*seen.values())})
    for access in node.args[len(memory) :]:
        extend(reached, access, seen)


def extend(reached: dict[PointNode, Reads], access: Access, seen: Reads) -> None:
    """Let a node know who reads what has an access to it."""
    into = reached.setdefault(access.node, {})
    for read, readers in seen.items():
        into.setdefault(compose(access.map, read), set()).update(readers)


def is_worth_memory(node: PointNode, seen: Reads) -> bool:
    """Tell whether a value is written to memory although it is none of those that must be."""
    if node.kind == "row" or (node.kind == "gather" and not node.name):
        return False
    if node.kind in ("choice", "pieces") and any(len(index.terms) > 1 for read in seen for index in read):
        return True  # guards bound one dimension each
    if node.heavy:
        return True
    dear = node.cost > MACHINE.recomputed
    readers = set[Root]().union(*seen.values())
    if dear and any(reader.scan_axis == reader.long[-1] for reader in readers if reader.kind == "scan"):
        return True  # it can be computed in lanes, and what follows cannot
    if len(readers) > MACHINE.many_loops and node.cost > MACHINE.recomputed_far:
        return True
    several = len(readers) < sum(map(len, seen.values()))
    return several and (dear or node.kind in ("choice", "pieces"))


def below(node: PointNode, roots: Container[PointNode]) -> set[PointNode]:
    """Return a node and all that is computed for it, which other roots are not."""
    return {*each_below(node, roots)}


def each_below(node: PointNode, roots: Container[PointNode], more: Container[PointNode] = ()) -> Iterator[PointNode]:
    """Yield a node and all that is computed for it, which other roots, and some more nodes, are not."""
    found, todo = {node}, [node]
    while todo:
        part = todo.pop()
        yield part
        for access in part.args:
            other = access.node
            if other not in found and other not in roots and other not in more:
                found.add(other)
                todo.append(other)


class Computed(dict[PointNode, set[PointNode]]):
    """Hold by nodes what is computed for them; what has been asked for once is known."""

    def __init__(self, roots: Container[PointNode]) -> None:
        super().__init__()
        self.roots = roots

    def __missing__(self, node: PointNode) -> set[PointNode]:
        found = self[node] = below(node, self.roots)
        return found


def reads_below(roots: Mapping[PointNode, Root], made: Sequence[PointNode]) -> Iterator[tuple[PointNode, Reads]]:
    """Iterate over the nodes that roots compute for themselves, with those roots; from the last to the first.

    Args:
        roots: by their nodes.
        made: all nodes, each after those that it reads.
    """
    reached: dict[PointNode, Reads] = {}
    for node in reversed(made):
        seen, root = reached.pop(node, {}), roots.get(node)
        if root is None and seen:
            yield node, seen
        for access in node.args[len(through_memory(node)) :]:
            if root is None:
                extend(reached, access, seen)
            elif root.kind != "join":
                reached.setdefault(access.node, {}).setdefault(access.map, set()).add(root)


FEWEST_PARTS = 5
"""With fewer parts one loop over the whole array has a body without conditions for each of them."""
FEWEST_POINTS = 64
"""Of each part: loops over less take longer than choosing at each point."""
MOST_SHAPES = 16
"""How many shapes parts may have, since a loop is compiled for each."""


Part = tuple[Access, Box]
"""What is read of an array, and in which box."""


def is_filled_by_parts(node: PointNode) -> bool:
    """Tell whether many long parts fill an array, or all of one that they do is a part of it."""
    parts = parts_along(node)
    if any(joined_in(part) for part in parts):
        return True
    shapes = {extents_of(box) for _, box in parts}
    return (
        len(parts) >= FEWEST_PARTS
        and len(shapes) <= MOST_SHAPES
        and min(map(prod, shapes)) >= FEWEST_POINTS
        and (len(shapes) == 1 or len({shape[1:] for shape in shapes}) == 1)
    )


def parts_along(node: PointNode) -> list[Part]:
    """Return what fills an array, one behind the other along an axis; nothing if no two parts do.

    What is read wherever nothing else is fills the gaps.
    """
    if node.kind != "choice" or len(node.boxes) < 2:
        return []
    axes = [d for d, n in enumerate(node.shape) if node.boxes[0][d] != (0, n)]
    if len(axes) != 1:
        return []
    (axis,) = axes
    whole = tuple([(0, n) for n in node.shape])
    parts = sorted(zip(node.args, node.boxes, strict=True), key=lambda part: part[1][axis])
    last = node.args[-1] if node.boxes[-1] == whole else None
    found: list[Part] = []
    end = 0
    for access, box in [part for part in parts if part[1] != whole]:
        low, high = box[axis]
        if low < end or (low > end and last is None) or box != (*whole[:axis], (low, high), *whole[axis + 1 :]):
            return []
        if low > end and last is not None:
            found.append((last, (*whole[:axis], (end, low), *whole[axis + 1 :])))
        found.append((access, box))
        end = high
    if end < node.shape[axis]:
        if last is None:
            return []
        found.append((last, (*whole[:axis], (end, node.shape[axis]), *whole[axis + 1 :])))
    return found


def extents_of(box: Box) -> Shape:
    """Return the shape of a box."""
    return tuple([high - low for low, high in box])


def joined_in(part: Part) -> PointNode | None:
    """Return the array that parts fill which is all of a part, element by element in memory; None if there is none."""
    (node, read), box = part
    if node.kind != "row" or len(box) != 1:
        return None
    inner = node.args[0].node
    ((low, high),) = box
    in_order = read == (AxisIndex(-low, ((0, 1),)),) and high - low == prod(inner.shape)
    is_all = in_order and node.args[0].map == identity_map(inner.shape)
    return inner if is_all and is_filled_by_parts(inner) else None


def part_of(nodes: Nodes, node: PointNode, part: Part) -> tuple[PointNode, AxisIndex]:
    """Return what computes a part of an array, and where that goes among the elements of the array."""
    (access, box), strides = part, strides_for(node.shape)
    extents = extents_of(box)
    shift = tuple([AxisIndex(low, ((d, 1),) if high - low > 1 else ()) for d, (low, high) in enumerate(box)])
    start = sum([low * step for (low, _), step in zip(box, strides, strict=True)])
    mark = ("part", node.number, start)
    found = nodes.make("point", "copy", extents, node.dtype, [access.through(shift)], mark=mark)
    return found, AxisIndex(start, tuple([(d, step) for d, step in enumerate(strides) if extents[d] > 1]))


def window_at(start: int, shape: Shape) -> AxisIndex:
    """Return where the elements of an array go that stand one after the other from a place on."""
    return AxisIndex(start, tuple([(d, step) for d, step in enumerate(strides_for(shape)) if shape[d] > 1]))
