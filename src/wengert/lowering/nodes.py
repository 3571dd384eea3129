"""Nodes: what a graph computes, element by element, without views: between graphs and kernels.

A node is a buffer, or what is computed at each point of a space from other nodes, which it reads under index maps.
Views of arrays are index maps only. Equal nodes are one node.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from typing import Any, Literal

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, IndexMap, compose, identity_map
from wengert.core.memory.memory_layout import is_uniform
from wengert.kernel.functions import FUNCTIONS
from wengert.kernel.opcodes import OPCODES
from wengert.support.records import NamedTuple

DType = np.dtype[Any]
Shape = tuple[int, ...]
Box = tuple[tuple[int, int], ...]
"""For each dimension from where to where it goes."""

Bounds = tuple[int, int]
"""The least and the greatest of some whole numbers."""
Kind = Literal["buffer", "constant", "index", "point", "reduce", "scan", "choice", "pieces", "row", "gather", "scatter"]
LONGEST_PATH = 4000
"""Processor cycles of what one stage computes one after the other, so that none has thousands of operations."""
MOST_COMPARED = 1 << 12
"""Bytes of arrays of constants up to which equal ones are found to be one."""
BOOL, LONG = np.dtype(bool), np.dtype(np.int64)


class PointNode:
    """Be an array of values that a graph computes.

    Attributes:
        kind: what it is:
            buffer: an input, or an array of constants;
            constant: one number, without dimensions;
            index: its own index, along its only dimension;
            point: an opcode of the arguments at each point, "copy" for the argument as it is;
            reduce: an opcode that combines the argument, over a space of its own;
            scan: an opcode that combines the first argument along one axis, each step being an element; what it has so
                far is multiplied by the second one first, if there is one;
            choice: at each point the first argument whose box holds it; the last one elsewhere;
            pieces: at each point the sum of the arguments whose boxes hold it;
            row: the argument, which must be in memory, as one row of elements;
            gather: the first argument, a row, at the places that the second one tells, behind those that it is read at;
                with the name of a search how many elements of the row, which is sorted, stand before the second;
            scatter: the first argument, in memory or one number, after the second one was written or added to it at the
                places that the third one tells, behind those of the fourth, an index, element by element.
        name: the opcode, or the name of an input; of a scatter "add" or "copy".
        shape, dtype: of the values.
        args: what it reads.
        axes, space: of a reduction or a scan, the dimensions, and the space of its argument; that of what is scattered.
        boxes: of a choice or pieces.
        value: of a constant; the contents of a buffer that is not an input.
        number: in order of creation, so that nodes come after what they read.
        cost: processor cycles for a vector, about, if nothing is read from memory; what is shared counts again.
        path: processor cycles of the longest chain of operations from what is in memory.
        heavy: whether it is computed once and kept in memory, because nothing more fits into one stage.
    """

    __slots__ = (
        "args",
        "axes",
        "boxes",
        "cost",
        "dtype",
        "heavy",
        "kind",
        "name",
        "number",
        "path",
        "shape",
        "space",
        "value",
    )

    def __init__(self, kind: Kind, name: str, shape: Shape, dtype: DType, args: tuple[Access, ...], value: Any) -> None:
        self.kind = kind
        self.name = name
        self.shape = shape
        self.dtype = dtype
        self.args = args
        self.value = value
        self.axes: tuple[int, ...] = ()
        self.space: Shape = ()
        self.boxes: tuple[Box, ...] = ()
        self.number = 0
        self.cost = 0.0
        self.path = 0.0
        self.heavy = False

    def __repr__(self) -> str:
        return f"<{self.number}: {self.kind} {self.name} {self.dtype}{list(self.shape)}>"


class Access(NamedTuple):
    """A node under the index map by which somebody reads it."""

    node: PointNode
    map: IndexMap

    def through(self, outer: IndexMap) -> Access:
        """Return the access of one who reads this reader under a map."""
        return Access(self.node, compose(self.map, outer))

    def is_all(self, shape: Shape) -> bool:
        """Tell whether a reader of some shape reads all of a node of that shape as it is."""
        return self.node.shape == shape and self.map == identity_map(shape)


def narrow_arguments(
    kind: Kind, shape: Shape, args: Sequence[Access], space: Shape, boxes: Sequence[Box]
) -> Sequence[Access]:
    """Return the arguments of a node, those parts of joined arrays in their place that are all it reads of these."""
    if not any(a.node.boxes for a in args) or kind in ("row", "gather", "scatter"):
        return args
    own = tuple([(0, n) for n in space or shape])
    return [part_read(a, box) for a, box in zip(args, boxes or [own] * len(args), strict=True)]


def part_read(access: Access, box: Box) -> Access:
    """Return what a reader within a box reads: of a choice or pieces the only part that it reaches, if one is."""
    while access.node.boxes:
        node, read = access
        places = tuple([range_within(index, box) for index in read])
        reached = [k for k, own in enumerate(node.boxes) if meets(places, own)]
        if not reached or (node.kind == "pieces" and len(reached) > 1) or not holds(places, node.boxes[reached[0]]):
            break
        access = node.args[reached[0]].through(read)
    return access


def range_within(index: AxisIndex, box: Box) -> tuple[int, int]:
    """Return the range of places that a reader reads along an axis from the points of a box."""
    low = high = index.offset
    for d, step in index.terms:
        ends = step * box[d][0], step * (box[d][1] - 1)
        low, high = low + min(ends), high + max(ends)
    return low, high + 1


def meets(places: Box, box: Box) -> bool:
    """Tell whether places along each axis may be in a box."""
    return all(low < end and start < high for (start, end), (low, high) in zip(places, box, strict=True))


def holds(places: Box, box: Box) -> bool:
    """Tell whether places along each axis are in a box."""
    return all(low <= start and end <= high for (start, end), (low, high) in zip(places, box, strict=True))


def through_memory(node: PointNode) -> tuple[Access, ...]:
    """Return what a node reads from memory in another order than its own."""
    if node.kind == "scatter" and node.args[0].node.kind == "constant":
        return ()
    return node.args[:1] if node.kind in ("row", "gather", "scatter") else ()


class Nodes:
    """Make nodes, each once.

    Attributes:
        made: all of them, in order of creation.
        outside: truths, of which one holds if a place was out of bounds, or a whole number too large.
        bounds: of inputs the least and greatest whole number, where that is known.
        evaluations: of functions' bodies, and the numbers that they are evaluated of.
    """

    def __init__(self) -> None:
        self.known: dict[Hashable, PointNode] = {}
        self.made: list[PointNode] = []
        self.outside: list[Access] = []
        self.bounds: dict[PointNode, Bounds] = {}
        self.evaluations: set[tuple[Any, Access]] = set()

    def apart(self) -> Nodes:
        """Return what makes the same nodes, and has truths of its own."""
        other = Nodes()
        other.known, other.made, other.bounds, other.evaluations = self.known, self.made, self.bounds, self.evaluations
        return other

    def make(
        self,
        kind: Kind,
        name: str,
        shape: Sequence[int],
        dtype: DType,
        args: Sequence[Access] = (),
        *,
        axes: tuple[int, ...] = (),
        space: Sequence[int] = (),
        boxes: Sequence[Box] = (),
        value: Any = None,
        mark: Hashable = None,
    ) -> PointNode:
        """Return the node of these attributes; `mark` tells apart what is equal otherwise."""
        args = narrow_arguments(kind, tuple(shape), args, tuple(space), boxes)
        read = tuple([(a.node.number, a.map) for a in args])
        key = (kind, name, tuple(shape), dtype, read, axes, tuple(space), tuple(boxes), mark)
        node = self.known.get(key)
        if node is None:
            node = self.known[key] = PointNode(kind, name, tuple(shape), dtype, tuple(args), value)
            node.axes, node.space, node.boxes = axes, tuple(space), tuple(boxes)
            node.number = len(self.made)
            node.cost = cost_of(node)
            node.path = chain_length(node)
            node.heavy = node.path > LONGEST_PATH
            self.made.append(node)
        return node

    def input(self, name: str, shape: Shape, dtype: DType) -> Access:
        """Return an input of the program."""
        return Access(self.make("buffer", name, shape, dtype), identity_map(shape))

    def constant(self, value: Any, dtype: DType) -> Access:
        """Return one number, which every point reads."""
        scalar = dtype.type(value).item()
        mark = scalar.hex() if isinstance(scalar, float) else scalar
        return Access(self.make("constant", "", (), dtype, value=scalar, mark=mark), ())

    def array(self, value: np.ndarray[Any, Any]) -> Access:
        """Return an array of constants: one number where all are equal, and no axis twice along which none changes."""
        steps = zip(value.shape, value.strides, strict=True)
        core = value[tuple([slice(1) if n > 1 and step == 0 else slice(None) for n, step in steps])]
        if is_uniform(core):
            return self.constant(core.flat[0], value.dtype)
        core = np.ascontiguousarray(core)
        mark = core.tobytes() if core.nbytes <= MOST_COMPARED else id(core)
        node = self.make("buffer", "", core.shape, core.dtype, value=core, mark=mark)
        return Access(node, identity_map(core.shape))

    def index(self, at: AxisIndex, length: int) -> Access:
        """Return a whole number that each point computes from its index."""
        return Access(self.make("index", "", (length,), LONG), (at,))

    def point(self, name: str, dtype: DType, shape: Sequence[int], *args: Access) -> Access:
        """Return an opcode of arguments that are read by a space of some shape, once where none of them varies."""
        flat = identity_map(tuple(shape))
        given = [a if not a.map or a.map is flat else a.through(flat) for a in args]
        known = self.simpler(name, dtype, shape, given)
        if known is not None:
            return known
        if any(a.map is flat for a in given):
            return Access(self.make("point", name, shape, dtype, given), flat)
        varying = {d for a in given for _, terms in a.map for d, _ in terms}
        own = tuple([n if d in varying else 1 for d, n in enumerate(shape)])
        return Access(self.make("point", name, own, dtype, given), identity_map(own))

    def simpler(self, name: str, dtype: DType, shape: Sequence[int], args: list[Access]) -> Access | None:
        """Return a simpler expression of the same bits, NaN and the sign of zero included; None if there is none."""
        constants = [a.node.value if a.node.kind == "constant" else None for a in args]
        if name == "convert" and args[0].node.dtype == dtype:
            return args[0]
        if name == "convert" and constants[0] is not None:
            with np.errstate(all="ignore"):
                return self.constant(np.asarray(constants[0], args[0].node.dtype).astype(dtype), dtype)
        if dtype.kind != "f":
            return None
        if name in FUNCTIONS and len(args) == 1 and is_number(args[0]):
            return self.of_alternatives(name, dtype, shape, args[0])
        if name in ("multiply", "product", "divide") and constants[-1] == 1.0:
            return args[0]
        if name in ("multiply", "product") and constants[0] == 1.0:
            return args[1]
        if name == "divide" and constants[1] is not None and is_power_of_two(constants[1], dtype):
            return self.point("multiply", dtype, shape, args[0], self.constant(1 / constants[1], dtype))
        return None

    def of_alternatives(self, name: str, dtype: DType, shape: Sequence[int], x: Access) -> Access | None:
        """Return a function of one of two numbers as one of its values, if one is known; None if it is not.

        Integrators evaluate a function where an attempt went, and its derivative there or where it began.
        """
        body = FUNCTIONS[name].body
        if x.node.kind == "point" and x.node.name == "select":
            condition, *alternatives = [a.through(x.map) for a in x.node.args]
            if any((body, a) in self.evaluations for a in alternatives):
                return self.point(
                    "select", dtype, shape, condition, *[self.point(name, dtype, shape, a) for a in alternatives]
                )
        self.evaluations.add((body, x))
        return None

    def memory(self, x: Access, shape: Shape) -> Access:
        """Return an access as one of all of a node that can be in memory."""
        if x.node.kind in ("buffer", "point", "reduce", "scan", "choice", "pieces", "gather", "scatter") and x.is_all(
            shape
        ):
            return x
        return Access(
            self.make("point", "copy", shape, x.node.dtype, [x.through(identity_map(shape))]), identity_map(shape)
        )

    def row(self, x: Access, shape: Shape) -> PointNode:
        """Return an array of some shape as one row of elements, in memory."""
        return self.make("row", "", (math.prod(shape),), x.node.dtype, [self.memory(x, shape)])


def is_number(access: Access) -> bool:
    """Tell whether every point reads the same number."""
    return not any(index.terms for index in access.map)


def is_power_of_two(value: float, dtype: DType) -> bool:
    """Tell whether dividing by a number is multiplying by its inverse, which is exact."""
    limits = np.finfo(dtype)
    return bool(math.frexp(value)[0] in (0.5, -0.5) and limits.tiny <= abs(value) <= 1 / limits.tiny)


def cost_of(node: PointNode) -> float:
    """Return what it costs to compute a node again, up to what is in memory, or will be if it is needed twice."""
    if node.kind == "point":
        own = 0 if node.name == "copy" else OPCODES[node.name].cost
        return own + sum([a.node.cost for a in node.args])
    if node.kind == "gather":
        return float(OPCODES[node.name or "gather"].cost)
    return 1.0 if node.kind in ("choice", "pieces") else 0.0


def chain_length(node: PointNode) -> float:
    """Return how long the longest chain of operations is that ends with a node."""
    if node.kind in ("reduce", "scan", "scatter", "buffer", "constant", "index", "row"):
        return 0.0
    own = OPCODES[node.name].cost if node.kind == "point" and node.name != "copy" else 1
    return own + max([0.0 if a.node.heavy else a.node.path for a in node.args], default=0.0)
