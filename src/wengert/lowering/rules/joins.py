"""Joins and writes as pulls: each element of the result tells where it comes from, so nothing is written twice."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import form_of
from wengert.core.maps.index_maps import AxisIndex, broadcast_map, decompose_row, identity_map, is_within, window_map
from wengert.lowering.nodes import Access, Box, Nodes, Shape
from wengert.lowering.rules.gather_scatter import scattered_at
from wengert.lowering.rules.operands import Call, Found, Refused
from wengert.lowering.rules.view_index_maps import (
    MOST_LITERAL,
    gather_elements,
    invert_window,
    reshape_access,
    where_known,
)
from wengert.primitives.indexing.index_forms import window_of
from wengert.primitives.indexing.index_layout import join_index
from wengert.primitives.shapes import inverse

DType = np.dtype[Any]
MOST_WINDOWS = 32
MOST_BOXES = 32
"""With more boxes than this a part is computed by itself rather than taken apart."""


class Part:
    """Be an array that fills a box of a result.

    Attributes:
        access: what the reader of the whole result reads in the box.
        box: the box.
        alone: whether nobody else reads it.
    """

    __slots__ = ("access", "alone", "box")

    def __init__(self, access: Access, box: Box, alone: bool) -> None:
        self.access = access
        self.box = box
        self.alone = alone


def whole_box(shape: Sequence[int]) -> Box:
    """Return the box that holds all of a shape."""
    return tuple([(0, n) for n in shape])


def join_arrays(
    nodes: Nodes, xs: Sequence[Access], shapes: Sequence[Shape], axis: int, alone: Sequence[bool]
) -> Access:
    """Return arrays one behind the other along an axis."""
    start, parts = 0, []
    shape = list(shapes[0])
    for x, own, single in zip(xs, shapes, alone, strict=True):
        box = [*whole_box(own)]
        box[axis] = start, start + own[axis]
        shift = [*identity_map(own)]
        shift[axis] = AxisIndex(-start, ((axis, 1),))
        parts.append(Part(x.through(tuple(shift)), tuple(box), single))
        start += own[axis]
    shape[axis] = start
    return choice(nodes, tuple(shape), xs[0].node.dtype, parts)


def choice(nodes: Nodes, shape: Shape, dtype: DType, parts: Sequence[Part]) -> Access:
    """Return at each point the first part whose box holds it; every point has one.

    A part that is a choice itself, and read by nobody else, is taken apart: all that are would be exponentially many.
    """
    boxes: list[Box] = []
    values: list[Access] = []
    for part in parts:
        for box, x in taken_apart(part):
            if all(low < high for low, high in box):
                boxes.append(box)
                values.append(moving(x, box))
    most = max(values, key=values.count)
    if are_disjoint(boxes) and is_within(most.node.shape, most.map, shape):
        rest = [(box, x) for box, x in zip(boxes, values, strict=True) if x != most]
        boxes, values = [box for box, _ in rest], [x for _, x in rest]
        boxes.append(whole_box(shape))
        values.append(most)
    if len(values) == 1 and boxes[0] == whole_box(shape):
        return values[0]
    return Access(nodes.make("choice", "", shape, dtype, values, boxes=boxes), identity_map(shape))


def taken_apart(part: Part) -> list[tuple[Box, Access]]:
    """Return the boxes of a part that is a choice, within its own box; itself if it is none, or read by others."""
    node, read = part.access
    simple = all(len(terms) == 0 or (len(terms) == 1 and terms[0][1] == 1) for _, terms in read)
    if node.kind != "choice" or not part.alone or not simple or len(node.boxes) > MOST_BOXES:
        return [(part.box, part.access)]
    found = []
    for inner, x in zip(node.boxes, node.args, strict=True):
        box, held = list(part.box), True
        for (low, high), (offset, terms) in zip(inner, read, strict=True):
            for d, _ in terms:
                box[d] = max(box[d][0], low - offset), min(box[d][1], high - offset)
            held = held and (bool(terms) or low <= offset < high)
        if held:
            found.append((tuple(box), x.through(read)))
    return found


def moving(x: Access, box: Box) -> Access:
    """Read with a moving index what is one element long in a box, so that equal reads look equal."""
    if len(x.map) != len(box):
        return x
    used = {d for _, terms in x.map for d, _ in terms}
    found = []
    for d, (index, (low, high)) in enumerate(zip(x.map, box, strict=True)):
        still = not index.terms and high - low == 1 and d not in used and x.node.shape[d] > 1
        found.append(AxisIndex(index.offset - low, ((d, 1),)) if still else index)
    return Access(x.node, tuple(found))


def are_disjoint(boxes: Sequence[Box]) -> bool:
    """Tell whether no two boxes share a point."""
    return len(boxes) <= MOST_BOXES and all(
        any(a[1] <= b[0] or b[1] <= a[0] for a, b in zip(x, y, strict=True))
        for k, x in enumerate(boxes)
        for y in boxes[:k]
    )


def add_parts(
    nodes: Nodes, shape: Shape, dtype: DType, base: Access | None, parts: Sequence[Part], alone: bool
) -> Access:
    """Return the sum of parts, each in its box, and of a base, which is zero if there is none."""
    boxes: list[Box] = []
    values: list[Access] = []
    if base is not None:
        gathering = base.node.kind == "pieces" and base.is_all(shape) and alone and len(base.node.boxes) < MOST_BOXES
        boxes = list(base.node.boxes) if gathering else [whole_box(shape)]
        values = list(base.node.args) if gathering else [base]
    for part in parts:
        boxes.append(part.box)
        values.append(moving(part.access, part.box))
    if len(values) == 1 and boxes[0] == whole_box(shape):
        return values[0]
    return Access(nodes.make("pieces", "", shape, dtype, values, boxes=boxes), identity_map(shape))


def write_window(
    nodes: Nodes, base: Access, value: Access, shapes: tuple[Shape, Shape], view: Any, add: bool, alone: bool
) -> Access | None:
    """Return a base with a value written, or added, through a basic view; None if the view is no box.

    Args:
        nodes: what makes nodes.
        base: what is written to.
        value: what is written.
        shapes: of the two.
        view: a function from an array to the view.
        add: whether it is added.
        alone: whether nobody else reads the base.
    """
    shape, given = shapes
    found = window_map(shape, view)
    if found is None:
        return None
    row, extents = found
    read = decompose_row(shape, row, extents)
    places = None if read is None else invert_window(read, extents)
    if read is None or places is None or any(p is None and n > 1 for p, n in zip(places, extents, strict=True)):
        return None
    box = list(whole_box(shape))
    for k, (offset, terms) in enumerate(read):
        n = extents[terms[0][0]] if terms else 1
        low = offset - (n - 1) if terms and terms[0][1] < 0 else offset
        box[k] = low, low + n
    back = tuple([AxisIndex(0) if p is None else AxisIndex(-p[1] * p[2], ((p[0], p[2]),)) for p in places])
    part = Part(value.through(fit_value(given, extents)).through(back), tuple(box), False)
    if not add:
        return choice(nodes, shape, base.node.dtype, [part, Part(base, whole_box(shape), alone)])
    start = None if base.node.kind == "constant" and base.node.value == 0 else base
    return add_parts(nodes, shape, base.node.dtype, start, [part], alone)


def fit_value(given: Shape, extents: Shape) -> tuple[AxisIndex, ...]:
    """Return the map by which a window reads a value, which may have more axes, of one element, in front."""
    excess = max(0, len(given) - len(extents))
    return (*[AxisIndex(0)] * excess, *broadcast_map(given[excess:], len(extents)))


def write_places(
    nodes: Nodes, base: Access, value: Access, shapes: tuple[Shape, Shape], assign: Any, part: Shape, add: bool
) -> Access | None:
    """Return a base with a value written, or added, at places that are known one by one.

    Args:
        nodes: what makes nodes.
        base: what is written to.
        value: what is written.
        shapes: of the two.
        assign: a function of an array of places and values that writes as NumPy does.
        part: the shape of what is written.
        add: whether it is added: only where no place is written twice.
    """
    shape, given = shapes
    size = int(np.prod(part))
    if max(size, int(np.prod(shape))) > MOST_LITERAL:
        return None
    order = np.arange(1, size + 1).reshape(part)
    board = np.asarray(assign(np.zeros(shape, np.int64), order))
    if add and np.count_nonzero(board) < size:
        return None
    spread = value.through(fit_value(given, part))
    new = gather_elements(nodes, spread, part, np.maximum(board - 1, 0)) if size else base
    if add:
        new = nodes.point("add", base.node.dtype, shape, base, new)
    return where_known(nodes, board > 0, new, base)


# The rules


def concatenate(call: Call) -> Found:
    """Lower arrays one behind the other."""
    xs = [call.convert_operand(i, call.out.dtype) for i in range(len(call.args))]
    return join_arrays(call.nodes, xs, call.shapes, call.params["axis"], call.alone)


def stack(call: Call) -> Found:
    """Lower arrays along a new axis."""
    axis = call.params["axis"]
    shapes = [(*shape[:axis], 1, *shape[axis:]) for shape in call.shapes]
    xs = [
        reshape_access(call.nodes, call.convert_operand(i, call.out.dtype), call.shapes[i], shape)
        for i, shape in enumerate(shapes)
    ]
    return join_arrays(call.nodes, xs, shapes, axis, call.alone)


def boxes(call: Call) -> Found:
    """Lower what arranges elements anew in a few boxes, as its form tells."""
    shape, parts = call.out.shape, list[Part]()
    maps = form_of(call.primitive).maps(call.primitive, 0, call.operands, call.out, call.params)
    assert maps is not None
    for part in maps:
        targets, sources = ([x.span(part.extents) for x in side] for side in (part.target, part.source))
        steps = [start - to for (to, _), (start, _) in zip(targets, sources, strict=True)]
        read = tuple([AxisIndex(by, ((k, 1),) if shape[k] > 1 else ()) for k, by in enumerate(steps)])
        box = tuple([(low, high + 1) for low, high in targets])
        parts.append(Part(call.args[0].through(read), box, False))
    return choice(call.nodes, shape, call.out.dtype, parts)


def pad(call: Call) -> Found:
    """Lower an array with zeros around it."""
    widths, shape = call.params["widths"], call.shapes[0]
    box = tuple([(left, left + n) for (left, _), n in zip(widths, shape, strict=True)])
    shift = tuple([AxisIndex(-left, ((k, 1),)) for k, (left, _) in enumerate(widths)])
    return add_parts(
        call.nodes, call.out.shape, call.out.dtype, None, [Part(call.args[0].through(shift), box, False)], False
    )


def place_windows(call: Call) -> Found:
    """Lower the sum of windows, each at its place."""
    window, axis, shape = call.params["window"], call.params["axis"], call.out.shape
    if math.prod(window) > MOST_WINDOWS:
        return Refused("many windows")
    x, rank = call.args[0], len(shape)
    parts = []
    for offsets in np.ndindex(window):
        starts = [0] * rank
        for d, offset in zip(axis, offsets, strict=True):
            starts[d] += offset
        box = tuple([(start, start + n) for start, n in zip(starts, call.shapes[0], strict=False)])
        read = [AxisIndex(-start, ((d, 1),)) for d, start in enumerate(starts)]
        parts.append(Part(x.through((*read, *map(AxisIndex, offsets))), box, False))
    return add_parts(call.nodes, shape, call.out.dtype, None, parts, False)


def assign(call: Call) -> Found:
    """Lower a write to a part of an array, or an addition to it."""
    refused = reason_unwritable(call)
    if refused is not None:
        return refused
    path, index, add = call.params["path"], call.params["index"], call.params["add"]
    arrays = call.literals(2)
    value = call.convert_operand(1, call.out.dtype)
    shapes = call.shapes[0], call.shapes[1]
    if arrays is None:
        return Refused("computed places of views") if path else scattered_at(call, value, add)
    found = None
    if not arrays:
        found = write_window(
            call.nodes, call.args[0], value, shapes, lambda x: part_written(call, x), add, call.alone[0]
        )
    if found is None:
        key, board = join_index(index, arrays), np.empty(shapes[0], np.int8)
        size = window_of(board, path)[key].shape if arrays else part_written(call, board).shape

        def assign_places(board: Any, order: Any) -> Any:
            return call.primitive.evaluate(board, order, *arrays, path=path, index=index, add=add)

        found = write_places(call.nodes, call.args[0], value, shapes, assign_places, size, add)
    if found is None and arrays and not path:
        return scattered_at(call, value, add)
    return Refused("places of many elements, or the same ones repeatedly") if found is None else found


def reason_unwritable(call: Call) -> Refused | None:
    """Return why no kernel can write as an equation says; None if one can."""
    if call.params["add"] and call.out.dtype.kind == "b":
        return Refused("sums of bools")
    if not call.params["add"] and not call.has_room(1, call.out.dtype):
        return Refused("a number for which whole ones may have no room")
    if any(primitive.name in ("real", "imag") for primitive, _ in call.params["path"]):
        return Refused("writes to parts of complex numbers")
    return None


def part_written(call: Call, whole: Any) -> Any:
    """Return the view of an array that a write without arrays goes to."""
    index = call.params["index"]
    return window_of(whole, call.params["path"])[index if Ellipsis in index else (*index, ...)]  # no scalar


def write_in_place(call: Call, axes: tuple[int, ...]) -> tuple[Access, Shape, AxisIndex] | Refused:
    """Lower what a write changes in place, of an array that is an input: what is written, of which shape, and where.

    Args:
        call: of the write.
        axes: those of the array in the order in which they lie in memory.
    """
    shape, dtype, add = call.shapes[0], call.out.dtype, call.params["add"]
    refused = reason_unwritable(call)
    if refused is not None:
        return refused
    value = call.convert_operand(1, dtype)
    if len(call.operands) > 2:
        if call.params["path"] or axes != tuple(range(len(shape))):
            return Refused("computed places of views")
        found = scattered_at(call, value, add)
        return found if isinstance(found, Refused) else (found, shape, AxisIndex(0))
    lying = tuple([shape[axis] for axis in axes])
    own = window_map(lying, lambda x: part_written(call, x.transpose(inverse(axes))))
    if own is None or 0 in own[1]:
        return Refused("a copy, or nothing")
    window, extents = own
    value = value.through(fit_value(call.shapes[1], extents))
    if add:
        old = Access(call.nodes.row(Access(call.args[0].node, identity_map(lying)), lying), (window,))
        value = call.nodes.point("add", dtype, extents, old, value)
    return value, extents, window
