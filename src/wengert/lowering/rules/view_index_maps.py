"""Views, and what arranges elements anew: by index maps, or element by element if they are few."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, decompose_row, identity_map, window_map
from wengert.lowering.nodes import Access, Nodes, Shape
from wengert.lowering.rules.gather_scatter import gathered_at, table_of
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.scalars import Scalar, select
from wengert.primitives.indexing.index_layout import join_index

Array = np.ndarray[Any, Any]
MOST_LITERAL = 1 << 16
"""The most elements of which a program holds the places one by one."""


def view_access(nodes: Nodes, x: Access, shape: Shape, view: Callable[[Array], Array]) -> Access | None:
    """Return the access of a view of an array of a shape; None if NumPy copies."""
    if not x.map and x.node.kind == "constant":
        return x
    found = window_map(shape, view)
    if found is None:
        return None
    row, extents = found
    read = decompose_row(shape, row, extents)
    return x.through(read) if read is not None else Access(nodes.row(x, shape), (row,))


def reshape_access(nodes: Nodes, x: Access, shape: Shape, target: Shape) -> Access:
    """Return an array in another shape, in C order."""
    if shape == target:
        return x
    found = view_access(nodes, x, shape, lambda whole: whole.reshape(target))
    assert found is not None
    return found


def gather_elements(nodes: Nodes, x: Access, shape: Shape, places: Array) -> Access:
    """Return the elements of an array at places that are known, counted in C order."""
    if not x.map and x.node.kind == "constant":
        return x
    start = Access(nodes.row(x, shape), (AxisIndex(0),))
    index = table_of(nodes, places, math.prod(shape))
    node = nodes.make("gather", "", places.shape, x.node.dtype, [start, index])
    return Access(node, identity_map(places.shape))


def arrange_elements(nodes: Nodes, x: Access, shape: Shape, arrange: Callable[[Array], Array]) -> Access | None:
    """Return elements in a new arrangement, with zeros where it has them; None if there are too many.

    Args:
        nodes: what makes nodes.
        x: the array.
        shape: its shape.
        arrange: what copies elements, and may leave zeros.
    """
    size = int(np.prod(shape))
    if size > MOST_LITERAL:
        return None
    places = np.asarray(arrange(np.arange(1, size + 1).reshape(shape)))
    if places.size > MOST_LITERAL:
        return None
    found = gather_elements(nodes, x, shape, np.maximum(places - 1, 0))
    if (places > 0).all():
        return found
    return where_known(nodes, places > 0, found, nodes.constant(0, x.node.dtype))


def where_known(nodes: Nodes, mask: Array, x: Access, other: Access) -> Access:
    """Return the elements of one array where a known mask holds, and those of another elsewhere."""
    return nodes.point("select", x.node.dtype, mask.shape, nodes.array(mask), x, other)


def invert_window(row_map: Sequence[AxisIndex], extents: Shape) -> tuple[Any, ...] | None:
    """Return for each dimension of a window where it lies along which dimension of its array; None if that is not one.

    Along a dimension of one element nothing lies.
    """
    found: list[Any] = [None] * len(extents)
    for k, (offset, terms) in enumerate(row_map):
        if len(terms) > 1:
            return None
        for d, step in terms:
            if found[d] is not None or step not in (1, -1):
                return None
            found[d] = k, offset, step
    return tuple(found)


# The rules


def view(call: Call) -> Found:
    """Lower what arranges elements anew: by an index map, or element by element if they are few."""
    if len(call.args) != 1:
        return Refused("several operands")

    def arrange(whole: Any) -> Any:
        return call.primitive.evaluate(whole, **call.params)

    found = view_access(call.nodes, call.args[0], call.shapes[0], arrange) if call.primitive.view else None
    if found is None:
        found = arrange_elements(call.nodes, call.args[0], call.shapes[0], arrange)
    return Refused("places of many elements that no index map tells") if found is None else found


def tile(call: Call) -> Found:
    """Lower copies of an array side by side."""
    shape, counts = call.shapes[0], call.params["reps"]
    single = [n for own in shape for n in (1, own)]
    return copies(call, single, [n for pair in zip(counts, shape, strict=True) for n in pair])


def repeat(call: Call) -> Found:
    """Lower copies of each element along an axis, or of each row."""
    shape, behind = call.shapes[0], call.params["axis"] + 1
    before, after = shape[:behind], shape[behind:]
    return copies(call, (*before, 1, *after), (*before, call.params["repeats"], *after))


def copies(call: Call, single: Sequence[int], several: Sequence[int]) -> Access:
    """Return an array that is read several times along new axes of length one, and these joined with others."""
    whole = reshape_access(call.nodes, call.args[0], call.shapes[0], tuple(single))
    found = view_access(call.nodes, whole, tuple(single), lambda x: np.broadcast_to(x, several))
    assert found is not None
    return reshape_access(call.nodes, found, tuple(several), call.out.shape)


def imaginary(call: Call) -> Found:
    """Lower the imaginary part of real numbers."""
    return call.nodes.constant(0, call.out.dtype)


def part(call: Call) -> Found:
    """Lower a part at an index of numbers and slices, or with arrays of known places."""
    index = call.params["index"]
    if len(call.args) == 1:
        whole = index if Ellipsis in index else (*index, ...)  # no scalars, which would be read
        found = view_access(call.nodes, call.args[0], call.shapes[0], lambda x: x[whole])
        return Refused("a copy") if found is None else found
    arrays = call.literals(1)
    if arrays is None:
        return gathered_at(call)
    found = arrange_elements(call.nodes, call.args[0], call.shapes[0], lambda x: x[join_index(index, arrays)])
    return gathered_at(call) if found is None else found


def triangle(call: Call) -> Found:
    """Lower the part of matrices on one side of a diagonal: a comparison of the row's index with the column's."""
    shape, upper = call.out.shape, call.params["upper"]
    rank = len(shape)
    offset = call.params["k"] - 1 if upper else call.params["k"]
    at = AxisIndex(offset, tuple([(d, step) for d, step in ((rank - 2, 1), (rank - 1, -1)) if shape[d] > 1]))
    below = Scalar(call.nodes, call.nodes.index(at, sum(shape[-2:])), shape) >= 0
    x = call.scalar(0, call.out.dtype)
    return (select(below, 0, x) if upper else select(below, x, 0)).access


def place_diagonal(call: Call) -> Found:
    """Lower matrices of zeros with a diagonal: a comparison of indices, if each row or column has an element of it."""
    shape, offset = call.out.shape, call.params["offset"]
    row, column = (call.params[name] % len(shape) for name in ("axis1", "axis2"))
    along = row if offset >= 0 else column
    if shape[along] > call.shapes[0][-1]:
        return view(call)
    read = [AxisIndex(0, ((d, 1),) if shape[d] > 1 else ()) for d in range(len(shape))]
    others = [read[d] for d in range(len(shape)) if d not in (row, column)]
    x = Scalar(call.nodes, call.args[0].through((*others, read[along])), shape)
    at = AxisIndex(offset, tuple([(d, step) for d, step in ((row, 1), (column, -1)) if shape[d] > 1]))
    place = Scalar(call.nodes, call.nodes.index(at, shape[row] + shape[column] + abs(offset)), shape)
    return select(place == 0, x, 0).access


def difference(call: Call) -> Found:
    """Lower the differences of neighbours along an axis."""
    if call.out.dtype.kind == "b":
        return Refused("differences of bools")
    before = (slice(None),) * call.params["axis"]
    x, shape = call.args[0], call.shapes[0]
    early = view_access(call.nodes, x, shape, lambda whole: whole[(*before, slice(None, -1))])
    late = view_access(call.nodes, x, shape, lambda whole: whole[(*before, slice(1, None))])
    assert early is not None
    assert late is not None
    return call.nodes.point("subtract", call.out.dtype, call.out.shape, late, early)
