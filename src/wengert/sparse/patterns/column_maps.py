"""How elements of arrays depend on columns: the elements of what is differentiated by, one array after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.maps.box_maps import BoxMap, join_maps, unravel_places
from wengert.core.maps.coordinates import Array, Coordinate
from wengert.core.maps.index_maps import Shape, strides_for
from wengert.core.values.aval import UNKNOWN
from wengert.sparse.patterns.pattern import Pattern

Maps = Sequence[BoxMap]
MOST_MAPS = 300
"""The most maps that a value keeps in a search for a pattern; more of them become one list of pairs."""
MANY = 1 << 16
"""From how many points on a list of pairs names each once."""
FEW = 256
"""Up to so many points a map may name pairs more than once."""


def column_maps(shapes: Sequence[Shape], coefficient: Any = None) -> list[Maps]:
    """Return for each of some arrays the map from columns to its elements, one array behind the other."""
    found: list[Maps] = []
    start = 0
    for shape in shapes:
        own = [Coordinate.along(d) for d in range(len(shape))]
        source = Coordinate.at(start)
        for d, step in enumerate(strides_for(shape)):
            source = source.plus(Coordinate.along(d, step))
        found.append(join_maps([BoxMap(shape, own, [source], coefficient)]))
        start += math.prod(shape)
    return found


def explicit(maps: Maps, shape: Shape, columns: int) -> Pattern:
    """Return the pattern of what maps say about an array of a shape."""
    size = math.prod(shape)
    pairs = [one.pairs(shape, (columns,)) for one in maps]
    rows, places = (np.concatenate([np.empty(0, np.int64), *[pair[k] for pair in pairs]]) for k in (0, 1))
    return Pattern.of_pairs((size, columns), rows, places)


def maps_of_pattern(pattern: Pattern, shape: Shape) -> Maps:
    """Return a pattern of the elements of an array as maps."""
    if not pattern.count:
        return []
    used, columns = np.flatnonzero(np.diff(pattern.indptr)), np.unique(pattern.indices).astype(np.int64)
    if len(used) * len(columns) == pattern.count:
        return join_maps([block_map(shape, used, columns)])
    rows, places = (x.astype(np.int64) for x in (pattern.rows, pattern.indices))
    return join_maps([BoxMap.of_pairs(shape, rows, pattern.shape[1:], places)])


def block_map(shape: Shape, places: Array, columns: Array) -> BoxMap:
    """Return the map by which each of some elements of an array depends on all of some columns."""
    images, extents = [Coordinate.along(0)], (len(places), len(columns))
    target = [c.through(images, extents) for c in unravel_places(places, shape)]
    return BoxMap(extents, target, [Coordinate.from_table(1, columns)])


def compact_maps(maps: Maps, shape: Shape, columns: int) -> Maps:
    """Return maps that name few pairs twice: one whose target and source follow other dimensions each is a block."""
    found: list[BoxMap] = []
    for one in maps:
        rows, (source,) = one.places(shape, one.target), one.source
        repeats = any(c.dims and c.solo is None for c in (rows, source))
        if repeats and one.size > FEW and not rows.dims & source.dims:
            numbers = [np.unique(c.values(one.extents)) for c in (rows, source)]
            found.append(block_map(shape, *numbers) if len(numbers[0]) * len(numbers[1]) < one.size else one)
        else:
            found.append(one)
    total = sum([one.size for one in found])
    if len(found) > MOST_MAPS or total > max(FEW, 2 * math.prod(shape) * columns):
        return maps_of_pattern(explicit(found, shape, columns), shape)
    return join_maps(found)


def distinct_pairs(one: BoxMap, shape: Shape, columns: int) -> Maps:
    """Return maps that name the pairs of a list once; a map as it is that is none, which is short to write."""
    rows, (source,) = one.places(shape, one.target), one.source
    if not (rows.tables or source.tables) or not rows.dims & source.dims:
        return [one]
    return maps_of_pattern(explicit([one], shape, columns), shape)


def known_lengths(shape: Shape) -> Shape:
    """Return a shape without the axes of which nobody knows how long they are: that of any row."""
    return tuple([n for n in shape if n != UNKNOWN])
