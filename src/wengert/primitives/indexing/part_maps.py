"""Which elements parts read and writes reach, as maps between the elements of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.element_maps import along, unflattened, view_maps
from wengert.core.maps.box_maps import BoxMap, affine
from wengert.core.maps.coordinates import Array, Coordinate, Table
from wengert.core.maps.index_maps import AxisIndex, Shape, broadcast_map
from wengert.core.memory.views import Step
from wengert.core.values.dispatch import apply
from wengert.primitives.indexing.index_layout import OPERAND, Entries, expand_index, join_index


def part_maps(shape: Shape, index: Entries, arrays: Sequence[Any], out: Shape | None) -> list[BoxMap]:
    """Return the map from an array to its part at an index.

    Args:
        shape: of the array.
        index: the static form of the index.
        arrays: those in it; along the axes of one that is not known, any element may be read.
        out: the shape of the part, if it is known; it is told by the index else.
    """
    if not arrays:
        whole = index if Ellipsis in index else (*index, ...)
        return view_maps(shape, lambda x: x[whole], True)
    known = [array if hasattr(array, "dtype") else np.asarray(array) for array in arrays]
    entries, tables, _ = expand_index(len(shape), index, known, [False] * len(known))
    spread = np.broadcast_shapes(*[table.shape for table in tables])
    advanced = [n for n, entry in enumerate(entries) if entry is OPERAND or type(entry) is int]
    together = advanced[-1] - advanced[0] + 1 == len(advanced)
    first = sum([entry is None or isinstance(entry, slice) for entry in entries[: advanced[0]]]) if together else 0
    source, extents, more = indexed_axes(shape, entries, tables, spread, first)
    rank = len(extents)
    return [BoxMap((*extents, *more), along(range(rank)), source)]


def indexed_axes(
    shape: Shape, entries: Sequence[Any], tables: Sequence[Any], spread: Shape, first: int
) -> tuple[list[Coordinate], Shape, list[int]]:
    """Return where each axis of an array is read, the shape of the part, and the lengths of axes read anywhere.

    Args:
        shape: of the array.
        entries: the index, with an entry for each axis, and for each new one.
        tables: the arrays in it.
        spread: the shape that they broadcast to.
        first: how many axes of the part stand before those of the arrays.
    """
    lengths = iter(shape)
    sizes: list[int] = []
    plans: list[tuple[Any, int]] = []
    for entry in entries:
        n = 1 if entry is None else next(lengths)
        if entry is None:
            sizes.append(1)
        else:
            plans.append((entry, n))
            if isinstance(entry, slice):
                sizes.append(len(range(*entry.indices(n))))
    extents = (*sizes[:first], *spread, *sizes[first:])
    slots = iter([*range(first), *range(first + len(spread), len(extents))])
    arrays, source, more = iter(tables), list[Coordinate](), list[int]()
    for entry in entries:
        if entry is None:
            next(slots)
            continue
        entry, n = plans.pop(0)
        if isinstance(entry, slice):
            start, _, step = entry.indices(n)
            source.append(Coordinate.along(next(slots), step, start))
        elif entry is OPERAND:
            array = next(arrays)
            if isinstance(array, np.ndarray | np.generic):
                source.append(place_of(np.asarray(array), n, first + len(spread)))
            else:
                source.append(Coordinate.along(len(extents) + len(more)))
                more.append(n)
        else:
            source.append(Coordinate.at(entry % n))
    return source, extents, more


def place_of(array: Array, length: int, end: int) -> Coordinate:
    """Return the places that an index array says along an axis of some length, its own axes ending at a dimension."""
    values = np.where(array < 0, array + length, array).astype(np.int64)
    dims = [end - array.ndim + k for k, n in enumerate(array.shape) if n != 1]
    values = values.reshape([n for n in array.shape if n != 1])
    if not dims:
        return Coordinate.at(int(values))
    return Coordinate.listed(dims[0], values) if len(dims) == 1 else Coordinate(AxisIndex(0), (Table(dims, values),))


def places_written(shape: Shape, path: Sequence[Step], index: Entries, arrays: Sequence[Any]) -> Array:
    """Return the places in an array, counted in C order, of a part behind a path of views.

    Both parts of complex numbers are in the same place, and so are their negatives.
    """
    window: Any = np.arange(math.prod(shape)).reshape(shape) * (1 + 1j)
    for primitive, params in path:
        window = apply(primitive, window, **dict(params))
    places: Array = np.abs(np.asarray(window[join_index(index, arrays)]).real).astype(np.int64)
    return places


def is_of_parts(path: Sequence[Step]) -> bool:
    """Tell whether a path of views leads to the real or imaginary parts of complex numbers."""
    window: Any = np.zeros(1, complex)
    return any(apply(primitive, window, **dict(params)).dtype.kind == "f" for primitive, params in path if not params)


def last_of_places(places: Array) -> Array:
    """Tell which of several places are not named again later."""
    flat = places.reshape(-1)
    last = np.zeros(flat.size, bool)
    last[flat.size - 1 - np.unique(flat[::-1], return_index=True)[1]] = True
    return last.reshape(places.shape)


def written_map(part: BoxMap, shape: Shape, value: Shape) -> BoxMap:
    """Return the map from a value, which is broadcast, to the array that it is written into.

    Args:
        part: the map from that array to the part.
        shape: the shape of the array.
        value: that of the value, which may have further axes of one element in front.
    """
    rank = len(part.target)
    excess = max(0, len(value) - rank)
    read = affine(broadcast_map(value[excess:], rank))
    source = [c.through(part.target, part.extents) for c in read]
    target = unflattened(part.source, shape, part.extents)
    return BoxMap(part.extents, target, [*[Coordinate.at(0)] * excess, *source])


def outside_part(shape: Shape, index: Entries) -> list[BoxMap]:
    """Return the maps to themselves of the elements of an array that are not in the part at an index of slices."""
    whole = index if Ellipsis in index else (*index, ...)
    entries, _, _ = expand_index(len(shape), whole, (), ())
    ranges = [
        range(*entry.indices(n)) if isinstance(entry, slice) else range(entry % n, entry % n + 1)
        for entry, n in zip([entry for entry in entries if entry is not None], shape, strict=True)
    ]
    found: list[BoxMap] = []
    inside: list[range] = []
    for own, n in zip(ranges, shape, strict=True):
        ordered = own if len(own) == 0 or own.step > 0 else own[::-1]
        if not len(ordered):
            return [*found, BoxMap(*kept_box(shape, inside))]
        step = ordered.step if len(ordered) > 1 else 1
        low, high = ordered[0], ordered[-1] + 1
        gaps = [range(low), range(high, n), *[range(low + k, high, step) for k in range(1, step)]]
        found += [BoxMap(*kept_box(shape, [*inside, gap])) for gap in gaps if len(gap)]
        inside.append(ordered)
    return found


def kept_box(shape: Shape, ranges: Sequence[range]) -> tuple[Shape, list[Coordinate], list[Coordinate]]:
    """Return the box of the elements of an array within ranges along its first axes, as a map to themselves."""
    rest = [range(n) for n in shape[len(ranges) :]]
    every = [*ranges, *rest]
    own = [Coordinate.along(d, r.step if len(r) > 1 else 1, r.start) for d, r in enumerate(every)]
    return tuple(map(len, every)), own, own
