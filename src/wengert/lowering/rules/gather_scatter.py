"""Computed places: elements that are read and written where arrays say which are known when a program runs.

Kernels cannot raise errors. They take the first element in place of one that is out of bounds, and tell that there was
such: what they gave is thrown away then, and NumPy, which is asked to do the same, raises its error.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, IndexMap, identity_map, strides_for
from wengert.core.values.aval import aval_of
from wengert.lowering.nodes import LONG, Access, Nodes, Shape
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import Scalar, convert, select
from wengert.primitives.indexing.index_layout import OPERAND, expand_index

SHORT_TABLE = 1 << 16
"""Bytes of places, of eight bytes each, up to which these lie in the nearest cache."""
HALF_RANGE = 1 << 31
"""Places that have room in four bytes."""


class Places:
    """Be where the elements of an index lie in an array that is one row of elements.

    Attributes:
        shape: of what the index selects.
        still: what its slices and numbers say: an index map into the row.
        moving: what its arrays say, to be added to that.
    """

    def __init__(self, shape: Shape, still: AxisIndex, moving: Scalar) -> None:
        self.shape, self.still, self.moving = shape, still, moving


def places_of(call: Call, index: Sequence[Any], first: int) -> Places | Refused:
    """Return the places of an index, whose arrays are the operands from one on."""
    whole, operands = call.shapes[0], call.operands[first:]
    if any(aval_of(x).dtype.kind not in "iu" for x in operands):
        return Refused("masks that are computed, or beside places that are")
    entries, _, _ = expand_index(len(whole), tuple(index), [aval_of(x) for x in operands], [False] * len(operands))
    spread = np.broadcast_shapes(*call.shapes[first:])
    advanced = [n for n, entry in enumerate(entries) if entry is OPERAND or type(entry) is int]
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    before = advanced[0] if together else 0
    lengths = slice_lengths(entries, whole)
    rest = len(entries) - len(advanced)
    shape = (*lengths[:before], *spread, *lengths[before:])
    dims = [*range(before), *range(before + len(spread), rest + len(spread))]
    strides, arrays = iter(zip(whole, strides_for(whole), strict=True)), iter(range(first, len(call.operands)))
    offset, terms, slots = 0, dict[int, int](), iter(dims)
    moving: Scalar | int = 0
    for entry in entries:
        if entry is None:
            next(slots)
            continue
        length, stride = next(strides)
        if entry is OPERAND:
            at = next(arrays)
            read = broadcast_map_at(call.shapes[at], before, len(spread))
            found = safe(call, at, length).through(read)
            moving = Scalar(call.nodes, found, shape) * stride + moving
        elif type(entry) is int:
            offset += stride * (entry % length)
        else:
            start, _, step = entry.indices(length)
            offset, dim = offset + stride * start, next(slots)
            if shape[dim] > 1:
                terms[dim] = stride * step
    assert isinstance(moving, Scalar)
    return Places(shape, AxisIndex(offset, tuple(sorted(terms.items()))), moving)


def slice_lengths(entries: Sequence[Any], whole: Shape) -> list[int]:
    """Return how many elements the slices and new axes of an index have, in order."""
    lengths, found = iter(whole), []
    for entry in entries:
        length = 1 if entry is None else next(lengths)
        if entry is None:
            found.append(1)
        elif isinstance(entry, slice):
            found.append(len(range(*entry.indices(length))))
    return found


def broadcast_map_at(source: Shape, before: int, rank: int) -> IndexMap:
    """Return the map that reads an array of an index where its axes stand behind others."""
    shift = before + rank - len(source)
    return tuple([AxisIndex(0, () if n == 1 else ((k + shift, 1),)) for k, n in enumerate(source)])


def safe(call: Call, at: int, length: int) -> Access:
    """Return an operand as indices along an axis of some length: from its beginning, and within it.

    What is known is looked at now; of what is not, the program tells whether it was, unless its bounds are known.
    """
    literals = call.literals(at)
    if literals is not None or type(call.operands[at]) is np.ndarray:
        known = np.asarray(call.operands[at])
        if known.size and -length <= known.min() and known.max() < length:
            return table_of(call.nodes, np.where(known < 0, known + length, known), length)
    shape = call.shapes[at]
    given = convert(Scalar(call.nodes, call.args[at].through(identity_map(shape)), shape), LONG)
    low, high = call.nodes.bounds.get(call.args[at].node, (-math.inf, math.inf))
    place = select(given < 0, given + length, given) if low < 0 else given
    if -length <= low and high < length:
        return place.access
    outside = (place < 0) | (place >= length)
    (~outside).require()
    return select(outside, 0, place).access


def table_of(nodes: Nodes, places: np.ndarray[Any, Any], length: int) -> Access:
    """Return known places along an axis of some length: long tables take half the memory, and of its traffic."""
    if places.nbytes <= SHORT_TABLE or length > HALF_RANGE:
        return nodes.array(places.astype(LONG))
    return convert(Scalar(nodes, nodes.array(places.astype(np.int32)), places.shape), LONG).access


def gathered_at(call: Call) -> Found:
    """Lower the elements at an index whose arrays are computed."""
    found = places_of(call, call.params["index"], 1)
    if isinstance(found, Refused):
        return found
    start = Access(call.nodes.row(call.args[0], call.shapes[0]), (found.still,))
    index = found.moving.access
    node = call.nodes.make("gather", "", found.shape, call.out.dtype, [start, index])
    return Access(node, identity_map(found.shape))


def scattered_at(call: Call, value: Access, add: bool) -> Found:
    """Lower a write, or an addition, at an index whose arrays are computed: one element after the other."""
    found = places_of(call, call.params["index"], 2)
    if isinstance(found, Refused):
        return found
    nodes, shape, space = call.nodes, call.out.shape, found.shape
    base = call.args[0]
    start = base if base.node.kind == "constant" else nodes.memory(base, shape)
    given = call.shapes[1]
    excess = max(0, len(given) - len(space))
    shift = len(space) - (len(given) - excess)
    fitted = tuple(
        [AxisIndex(0, () if k < excess or n == 1 else ((k - excess + shift, 1),)) for k, n in enumerate(given)]
    )
    along = nodes.index(found.still, math.prod(shape))
    args = [start, value.through(fitted), found.moving.access.through(identity_map(space)), along]
    node = nodes.make("scatter", "add" if add else "copy", shape, call.out.dtype, args, space=space)
    return Access(node, identity_map(shape))
