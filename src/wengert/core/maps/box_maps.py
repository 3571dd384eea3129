"""Maps between the elements of two arrays: at each point of a box, an element of one depends on one of the other.

A map says for a point i of a box: the element of the target at `target(i)` depends on that of the source at
`source(i)`, by a coefficient where there is one. What no affine step tells is a table: what nothing else describes is
a box of one dimension with a table for each coordinate, a list of pairs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.maps.coordinates import Array, Coordinate, read
from wengert.core.maps.index_maps import AxisIndex, Shape, strides_for

Coordinates = tuple[Coordinate, ...]


class BoxMap:
    """Say which elements of a target depend on which of a source.

    Attributes:
        extents: of the box.
        target: for each axis of the target, where.
        source: the same for the source.
        coefficient: what the elements of the source are multiplied by, a number or an array that broadcasts to the
            box; None for 1, or where nobody asks for it.

    >>> shift = BoxMap((3,), (Coordinate.along(0),), (Coordinate.along(0, 1, 1),))
    >>> [pair.tolist() for pair in shift.pairs((3,), (4,))]
    [[0, 1, 2], [1, 2, 3]]
    >>> shift.transpose().target == shift.source
    True
    """

    __slots__ = ("coefficient", "extents", "source", "target")

    def __init__(
        self, extents: Shape, target: Iterable[Coordinate], source: Iterable[Coordinate], coefficient: Any = None
    ) -> None:
        self.extents, self.target, self.source = tuple(extents), tuple(target), tuple(source)
        self.coefficient = coefficient

    @classmethod
    def of_pairs(cls, target: Shape, places: Array, source: Shape, others: Array, coefficient: Any = None) -> BoxMap:
        """Return the map of a list of pairs: places in a target and in a source, each counted in C order."""
        return cls((len(places),), unravel_places(places, target), unravel_places(others, source), coefficient)

    @property
    def size(self) -> int:
        """How many points the box has."""
        return math.prod(self.extents)

    @property
    def key(self) -> tuple[Any, ...]:
        """What maps of the same elements share, where both are canonical."""
        return self.extents, self.target, self.source

    def using(self, coefficient: Any) -> BoxMap:
        """Return the map with another coefficient."""
        return BoxMap(self.extents, self.target, self.source, coefficient)

    def onto(self, target: Iterable[Coordinate]) -> BoxMap:
        """Return the map with other places in the target."""
        return BoxMap(self.extents, target, self.source, self.coefficient)

    def transpose(self) -> BoxMap:
        """Return the map from the target to the source."""
        return BoxMap(self.extents, self.source, self.target, self.coefficient)

    def through(self, images: Sequence[Coordinate], extents: Shape) -> BoxMap:
        """Return the map where each dimension of the box is a coordinate of another box."""
        target, source = ([c.through(images, extents) for c in side] for side in (self.target, self.source))
        return BoxMap(extents, target, source, self.coefficient_through(images, extents))

    def coefficient_through(self, images: Sequence[Coordinate], extents: Shape) -> Any:
        """Return the coefficient of such a map."""
        return read(self.coefficient, images, extents) if np.ndim(self.coefficient) else self.coefficient

    def places(self, shape: Shape, side: Sequence[Coordinate]) -> Coordinate:
        """Return where in an array of a shape the points of one side are, counted in C order."""
        found = Coordinate.at(0)
        for coordinate, stride in zip(side, strides_for(shape), strict=True):
            found = found.plus(coordinate if stride == 1 else coordinate.scale(stride))
        return found

    def pairs(self, target: Shape, source: Shape) -> tuple[Array, Array]:
        """Return all pairs of places in a target and in a source of these shapes, each counted in C order."""
        rows, columns = self.places(target, self.target), self.places(source, self.source)
        return self.list_coordinate(rows), self.list_coordinate(columns)

    def list_coordinate(self, coordinate: Coordinate) -> Array:
        """Return a coordinate at all points, in C order."""
        return np.broadcast_to(coordinate.values(self.extents), self.extents).reshape(-1)

    def select_points(self, dims: Sequence[int], points: Sequence[Array]) -> BoxMap:
        """Return the map at some points of a few dimensions, given by a place along each; they become one dimension."""
        return self.through(*at_points(self.extents, dims, points))

    def where(self, mask: Array) -> BoxMap | None:
        """Return the map where a mask holds that broadcasts to the box; None if it does nowhere."""
        dims = [d for d, n in enumerate(mask.shape) if n != 1]
        if mask.all():
            return self
        if not mask.any():
            return None
        part = mask.reshape([mask.shape[d] for d in dims])
        ranges = box_of(part)
        if ranges is None:
            return self.select_points(dims, np.nonzero(part))
        images = [Coordinate.along(d) for d in range(len(self.extents))]
        extents = list(self.extents)
        for d, own in zip(dims, ranges, strict=True):
            images[d], extents[d] = Coordinate.along(d, own.step, own.start), len(own)
        return self.through(images, tuple(extents))

    def canonical(self) -> BoxMap:
        """Return the same map with dimensions in the order in which the target has them, none of one element.

        Coefficients are added up along dimensions on which neither the target nor the source depends.
        """
        order: list[int] = []
        for coordinate in (*self.target, *self.source):
            own = dict(coordinate.line.terms)
            order += sorted([d for d in coordinate.dims if d not in order], key=lambda d: (-abs(own.get(d, 0)), d))
        order = [d for d in order if self.extents[d] > 1]
        if order == list(range(len(self.extents))):
            return self
        found = self.sum_along([d for d, n in enumerate(self.extents) if d not in order and n > 1])
        images = [Coordinate.at(0)] * len(self.extents)
        for new, d in enumerate(order):
            images[d] = Coordinate.along(new)
        return found.through(images, tuple([self.extents[d] for d in order]))

    def sum_along(self, dims: Sequence[int]) -> BoxMap:
        """Return the map with its coefficient added up along dimensions, which have one element then."""
        found = self.coefficient
        if not dims:
            return self
        if found is not None:
            apart = [d for d in dims if np.ndim(found) and np.shape(found)[d] > 1]
            found = found.sum(axis=tuple(apart), keepdims=True) if apart else found
            found = found * float(math.prod([self.extents[d] for d in dims if d not in apart]))
        extents = tuple([1 if d in dims else n for d, n in enumerate(self.extents)])
        return BoxMap(extents, self.target, self.source, found)


def unravel_places(places: Array, shape: Shape) -> list[Coordinate]:
    """Return the index of places in an array of a shape, as coordinates along one dimension."""
    if len(shape) == 1:
        return [Coordinate.from_table(0, places)]
    return [Coordinate.from_table(0, index) for index in np.unravel_index(places, shape)] if shape else []


def at_points(extents: Shape, dims: Sequence[int], points: Sequence[Array]) -> tuple[list[Coordinate], Shape]:
    """Return the dimensions of a box as coordinates of one where some of them are a list of points, the last."""
    rest = [d for d in range(len(extents)) if d not in dims]
    images = [Coordinate.at(0)] * len(extents)
    for new, d in enumerate(rest):
        images[d] = Coordinate.along(new)
    for d, places in zip(dims, points, strict=True):
        images[d] = Coordinate.from_table(len(rest), places)
    return images, (*[extents[d] for d in rest], len(points[0]))


def box_of(mask: Array) -> list[range] | None:
    """Return where along each axis a mask holds, if it does just where it does along all of them; else None.

    >>> box_of(np.array([[True, False, True], [False, False, False]]))
    [range(0, 1), range(0, 4, 2)]
    """
    found: list[range] = []
    for axis in range(mask.ndim):
        own = np.flatnonzero(mask.any(axis=tuple([k for k in range(mask.ndim) if k != axis])))
        step = int(own[1] - own[0]) if len(own) > 1 else 1
        if len(own) > 1 and (np.diff(own) != step).any():
            return None
        found.append(range(int(own[0]), int(own[0]) + step * len(own), step))
    return found if math.prod(map(len, found)) == np.count_nonzero(mask) else None


def join_maps(maps: Iterable[BoxMap | None]) -> list[BoxMap]:
    """Return maps without those that are equal to others, whose coefficients are added up, and those of no points."""
    found: dict[tuple[Any, ...], BoxMap] = {}
    for one in maps:
        if one is None or not one.size:
            continue
        own = one.canonical()
        known = found.get(own.key)
        if known is None:
            found[own.key] = own
        elif own.coefficient is not None:
            found[own.key] = known.using(known.coefficient + own.coefficient)
    return list(found.values())


def identity(shape: Shape) -> BoxMap:
    """Return the map from each element of an array to itself."""
    own = [Coordinate.along(d) for d in range(len(shape))]
    return BoxMap(shape, own, own)


def affine(read_map: Iterable[AxisIndex]) -> Coordinates:
    """Return an index map as coordinates."""
    return tuple([Coordinate(index) for index in read_map])
