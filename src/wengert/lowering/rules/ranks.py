"""Sorts, searches and elements at places, as nodes: what statements say by NumPy's functions of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, identity_map, strides_for
from wengert.lowering.nodes import BOOL, LONG, Access, Nodes, Shape

BYTE = np.dtype(np.uint8)


def positions(nodes: Nodes, shape: Shape, axes: Sequence[int], dims: Sequence[int]) -> Access:
    """Return where the point of a space is along axes of an array of some shape, counted in C order.

    Args:
        nodes: what makes nodes.
        shape: the shape of the array.
        axes: those of the array.
        dims: the dimensions of the space that run along them.
    """
    lengths = [shape[k] for k in axes]
    steps = zip(dims, strides_for(lengths), lengths, strict=True)
    terms = tuple(sorted([(d, step) for d, step, n in steps if n > 1]))
    return nodes.index(AxisIndex(0, terms), math.prod(lengths)) if terms else nodes.constant(0, LONG)


def count_before(nodes: Nodes, x: Access, shape: Shape, axes: Sequence[int], how: str) -> Access:
    """Return for each element how many others along axes stand before it, or equal it.

    Args:
        nodes: what makes nodes.
        x: the array.
        shape: its shape.
        axes: the axes.
        how: "ranked" counts what comes before it when they are sorted, where equal elements keep their order, and NaN
            comes last; "less" what is less, so that all NaN are at one place; "equal" what equals it.
    """
    last = range(len(shape), len(shape) + len(axes))
    wide = (*shape, *[shape[k] for k in axes])
    if x.node.dtype == BOOL:
        x = nodes.point("convert", BYTE, shape, x)
    read = list(identity_map(shape))
    for k, d in zip(axes, last, strict=True):
        read[k] = AxisIndex(0, ((d, 1),) if shape[k] > 1 else ())
    own, other = x.through(identity_map(shape)), x.through(tuple(read))

    def point(name: str, *args: Access) -> Access:
        return nodes.point(name, BOOL, wide, *args)

    if how == "equal":
        found = point("equal", other, own)
    else:
        found = point("less", other, own)
        if x.node.dtype.kind == "f":
            no_number = point("not_equal", own, own)
            found = point("or", found, point("and", no_number, point("equal", other, other)))
        if how == "ranked":
            not_after = point("less_equal", other, own)
            if x.node.dtype.kind == "f":
                not_after = point("or", not_after, no_number)
            places = [positions(nodes, shape, axes, dims) for dims in (last, axes)]
            found = point("select", point("less", *places), not_after, found)
    moving = tuple([d for d in last if wide[d] > 1])
    count = nodes.point("convert", LONG, wide, found).through(identity_map(wide))
    if not moving:
        return count
    kept = (*shape, *[1] * (len(axes) - len(moving)))
    node = nodes.make("reduce", "add", kept, LONG, [count], axes=moving, space=wide)
    return Access(node, (*identity_map(shape), *[AxisIndex(0)] * (len(kept) - len(shape))))


def write_at_places(nodes: Nodes, x: Access, places: Access, shape: Shape, axis: int) -> Access:
    """Return the array whose elements at places along an axis, each of them once, are given."""
    if shape[axis] == 1:
        return x
    flat, steps = identity_map(shape), strides_for(shape)
    at = nodes.point("multiply", LONG, shape, places, nodes.constant(steps[axis], LONG)).through(flat)
    others = AxisIndex(0, tuple([(d, step) for d, step in enumerate(steps) if d != axis and shape[d] > 1]))
    args = [nodes.constant(0, x.node.dtype), x.through(flat), at, nodes.index(others, math.prod(shape))]
    return Access(nodes.make("scatter", "copy", shape, x.node.dtype, args, space=shape), flat)


def gather_within(
    nodes: Nodes, x: Access, shape: Shape, places: Access, target: Shape, stacked: bool = False
) -> Access:
    """Return the elements of an array at places, all of which are within it: counted in C order, or in each row."""
    if not x.map and x.node.kind == "constant":
        return x
    steps = strides_for(shape)[:-1] if stacked else ()
    start = Access(nodes.row(x, shape), (AxisIndex(0, tuple([(d, n) for d, n in enumerate(steps) if target[d] > 1])),))
    flat = identity_map(target)
    return Access(nodes.make("gather", "", target, x.node.dtype, [start, places.through(flat)]), flat)


def search_row(nodes: Nodes, row: Access, length: int, x: Access, shape: Shape, right: bool) -> Access:
    """Return how many elements of a sorted row are less than each of some others, or not greater if `right`.

    Args:
        nodes: what makes nodes.
        row: the row.
        length: its length.
        x: the others.
        shape: their shape.
        right: whether equal ones count.
    """
    start, flat = Access(nodes.row(row, (length,)), (AxisIndex(0),)), identity_map(shape)
    name = "search_right" if right else "search_left"
    return Access(nodes.make("gather", name, shape, LONG, [start, x.through(flat)]), flat)
