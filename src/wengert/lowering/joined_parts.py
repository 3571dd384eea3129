"""Arrays in memory that many parts fill: each is written where it goes by a loop that it may share with others."""

from __future__ import annotations

from math import prod

from wengert.core.maps.index_maps import AxisIndex, Shape, identity_map, strides_for
from wengert.lowering.nodes import Access, Box, Nodes, PointNode

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
