"""Which elements of an operand the elements of a result depend on, by the form of the operation.

Each function returns maps from an operand to a result, with the coefficients of a linear operation where these are
not 1. Operands that are arrays are known, others have only a shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.maps.box_maps import BoxMap, affine, identity
from wengert.core.maps.composition import compose
from wengert.core.maps.coordinates import Array, Coordinate, Table, read, spread_shape
from wengert.core.maps.index_maps import AxisIndex, Shape, broadcast_map, decompose_row, window_map

Maps = list[BoxMap]
FEW_TAPS = 64
"""Up to so many elements of one sequence a convolution is a shift of the other for each of them."""


def along(dims: Iterable[int]) -> list[Coordinate]:
    """Return coordinates that move along dimensions."""
    return [Coordinate.along(d) for d in dims]


def broadcast_maps(source: Shape, target: Shape) -> Maps:
    """Return the map of an operand that is broadcast."""
    return [BoxMap(target, along(range(len(target))), affine(broadcast_map(source, len(target))))]


def all_pairs(source: Shape, target: Shape) -> BoxMap:
    """Return the map by which every element depends on all."""
    first = len(target)
    return BoxMap((*target, *source), along(range(first)), along(range(first, first + len(source))))


def reduced_maps(source: Shape, axis: Sequence[int], keepdims: bool) -> Maps:
    """Return the map of an operand whose elements along axes become one."""
    own = along(range(len(source)))
    target = [Coordinate.at(0) if d in axis else own[d] for d in range(len(source)) if keepdims or d not in axis]
    return [BoxMap(source, target, own)]


def running_maps(shape: Shape, axis: int, reverse: bool) -> Maps:
    """Return the map of results so far along an axis: each depends on what is before it, and on itself."""
    later, earlier = np.nonzero(np.tri(shape[axis], dtype=bool))
    if reverse:
        later, earlier = earlier, later
    rest = [d for d in range(len(shape)) if d != axis]
    own = along(range(len(rest)))
    last = len(rest)
    sides = [
        [*own[:axis], Coordinate.from_table(last, places.astype(np.int64)), *own[axis:]] for places in (later, earlier)
    ]
    return [BoxMap((*[shape[d] for d in rest], len(later)), *sides)]


# Views


def view_maps(shape: Shape, view: Callable[[Array], Array], is_view: bool) -> Maps:
    """Return the map of elements in a new arrangement: NumPy is asked how a view lies, or what a copy copies.

    What a copy holds beside the elements is zero.
    """
    found = window_map(shape, view) if is_view else None
    if found is None:
        places = np.asarray(view(np.arange(1, math.prod(shape) + 1).reshape(shape))) - 1
        return arranged_maps(places)
    row, extents = found
    split = decompose_row(shape, row, extents)
    return [BoxMap(extents, along(range(len(extents))), (Coordinate(row),) if split is None else affine(split))]


def arranged_maps(places: Array) -> Maps:
    """Return the map of what lies at known places, counted in C order from 0; none are at -1."""
    dims = along(range(places.ndim))
    if not places.size:
        return []
    whole = BoxMap(places.shape, dims, (coordinate_of_table(places),))
    found = whole.where(places >= 0)
    return [] if found is None else [found]


def coordinate_of_table(values: Array) -> Coordinate:
    """Return a coordinate along all dimensions of an array."""
    if not values.ndim:
        return Coordinate.at(int(values))
    if values.ndim == 1:
        return Coordinate.from_table(0, values.astype(np.int64))
    return Coordinate(AxisIndex(0), (Table(range(values.ndim), values.astype(np.int64)),))


def placed_maps(target: Shape, view: Callable[[Array], Array]) -> Maps:
    """Return the map of an operand that fills the part of a result which a view of it is."""
    parts = view_maps(target, view, True)
    return [BoxMap(one.extents, unflatten_coordinate(one.source, target, one.extents), one.target) for one in parts]


def unflatten_coordinate(side: Sequence[Coordinate], shape: Shape, extents: Shape) -> Sequence[Coordinate]:
    """Return coordinates for each axis of a shape, in the place of one that counts its elements in C order."""
    if len(side) == len(shape):
        return side
    (row,) = side
    split = None if row.tables else decompose_row(shape, row.line, extents)
    if split is not None:
        return affine(split)
    dims = sorted(row.dims)
    used = spread_shape([row], extents)
    values = np.broadcast_to(row.values(extents), used).reshape([extents[d] for d in dims])
    digits = np.unravel_index(values, shape)
    return [Coordinate(AxisIndex(0), (Table(dims, digit.astype(np.int64)),)) for digit in digits]


def rolled_maps(shape: Shape, shifts: Sequence[int], axes: Sequence[int]) -> Maps:
    """Return the maps of elements that are shifted along axes, those at the end to the beginning."""
    found = [identity(shape)]
    for shift, axis in zip(shifts, axes, strict=True):
        n = shape[axis]
        by = shift % n if n else 0
        parts = []
        for start, count, to in ((0, n - by, by), (n - by, by, 0)):
            own = along(range(len(shape)))
            source, target = list(own), list(own)
            source[axis], target[axis] = Coordinate.along(axis, 1, start), Coordinate.along(axis, 1, to)
            step = BoxMap((*shape[:axis], count, *shape[axis + 1 :]), target, source)
            parts += [compose(step, one, shape) for one in found]
        found = [part for part in parts if part is not None]
    return found


# Sums of products


def contracted_maps(labels: Any, position: int, operands: Sequence[Any], shapes: Sequence[Shape]) -> Maps:
    """Return the maps of an operand of a sum of products by labels, with the other operands as coefficients."""
    if labels.relation is not None:
        return convolved_maps(labels, position, operands, shapes)
    names = list(dict.fromkeys([*labels.result, *[n for own in labels.operands for n in own]]))
    dims = {name: d for d, name in enumerate(names)}
    return [labelled_map(labels, position, operands, shapes, {n: Coordinate.along(d) for n, d in dims.items()}, names)]


def labelled_map(
    labels: Any,
    position: int,
    operands: Sequence[Any],
    shapes: Sequence[Shape],
    at: Mapping[int, Coordinate],
    names: Sequence[int],
) -> BoxMap:
    """Return the map of an operand where each label is a coordinate of a box that has the lengths of some labels."""
    extents = labels.lengths_of(tuple(names))
    own = labels.operands[position]
    source = [at[name] for name in own]
    if shapes[position] != labels.lengths_of(own):
        source = [BoxMap(extents, (), source).places(labels.lengths_of(own), source)]
    target: Sequence[Coordinate] = [at[name] for name in labels.result]
    if labels.merged is not None:
        inner = labels.lengths_of(labels.result)
        target = unflatten_coordinate([BoxMap(extents, target, ()).places(inner, target)], labels.merged, extents)
    factor: Any = None
    for k, operand in enumerate(operands):
        if k != position and is_known(operand):
            array = np.reshape(operand, labels.shapes[k])
            other = read(array, [at[name] for name in labels.operands[k]], extents)
            factor = other if factor is None else factor * other
    return BoxMap(extents, target, source, factor)


def convolved_maps(labels: Any, position: int, operands: Sequence[Any], shapes: Sequence[Shape]) -> Maps:
    """Return the maps of an operand of a convolution: for each element of a short sequence one, else all pairs."""
    (own,) = [n for n in labels.operands[position] if n in labels.relation.labels]
    (other,) = [n for n in labels.operands[1 - position] if n in labels.relation.labels]
    (result,) = [n for n in labels.result if n in labels.relation.labels]
    start, steps = labels.relation.solve_for(result)
    names = list(dict.fromkeys([*labels.operands[position], *labels.operands[1 - position]]))
    count = labels.lengths[other]
    single = count <= FEW_TAPS
    if single:
        names.remove(other)
    dims = {name: d for d, name in enumerate(names)}
    found = []
    for tap in range(count) if single else (None,):
        at = {n: Coordinate.along(d) for n, d in dims.items()}
        if tap is not None:
            at[other] = Coordinate.at(tap)
        at[result] = at[own].scale(steps[own]).plus(at[other].scale(steps[other])).plus_offset(start)
        raw = labelled_map(labels.replace(merged=None), position, operands, shapes, at, names)
        inner = labels.lengths_of(labels.result)
        clipped = compose(identity(inner), raw, inner)
        if clipped is not None and labels.merged is not None:
            row = clipped.places(inner, clipped.target)
            clipped = clipped.onto(unflatten_coordinate([row], labels.merged, clipped.extents))
        found.append(clipped)
    return [one for one in found if one is not None]


def is_known(operand: Any) -> bool:
    """Tell whether an operand has elements, or stands for them: it is no variable of a graph."""
    return isinstance(operand, np.ndarray | np.generic | float | int | complex) or hasattr(operand, "_trace")


# Routines


def lane_maps(
    source: tuple[Shape, Sequence[int]],
    target: tuple[Shape, Sequence[int]],
    core: Sequence[BoxMap] | None,
) -> Maps:
    """Return the maps of an operand of a routine, which runs on some axes, its core, with all others as lanes.

    Args:
        source: the shape of the operand, and its core axes.
        target: the same for the result.
        core: maps from the core of the operand to that of the result; None where each element depends on all.
    """
    (shape, axes), (out, out_axes) = source, target
    if core is None:
        core = [all_pairs(tuple([shape[d] for d in axes]), tuple([out[d] for d in out_axes]))]
    lanes = [d for d in range(len(out)) if d not in out_axes]
    stack = [d for d in range(len(shape)) if d not in axes]
    count = len(lanes)
    found = []
    for one in core:
        inside = along(range(count, count + len(one.extents)))
        extents = (*[out[d] for d in lanes], *one.extents)
        inner, outer = ([c.through(inside, extents) for c in side] for side in (one.source, one.target))
        to: list[Coordinate] = [Coordinate.at(0)] * len(out)
        for d, lane in enumerate(lanes):
            to[lane] = Coordinate.along(d)
        for axis, coordinate in zip(out_axes, outer, strict=True):
            to[axis] = coordinate
        read_at: list[Coordinate] = [Coordinate.at(0)] * len(shape)
        for k, axis in enumerate(stack):
            if shape[axis] != 1:
                read_at[axis] = Coordinate.along(k + count - len(stack))
        for axis, coordinate in zip(axes, inner, strict=True):
            read_at[axis] = coordinate
        found.append(BoxMap(extents, to, read_at, one.coefficient))
    return found


# Parts


def outside(shape: Shape, mask: Array) -> Maps:
    """Return the maps of the elements of an array where a mask does not hold to themselves."""
    found = identity(shape).where(~mask)
    return [] if found is None else [found]
