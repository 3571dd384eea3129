"""Coordinates: one dimension of an index as it changes over a box, by affine steps and by tables of whole numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, Shape, span
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]


class Table:
    """Hold whole numbers along some dimensions of a box, in order; equal to others that hold the same.

    Attributes:
        dims: the dimensions.
        values: an array with an axis for each of them.
    """

    __slots__ = ("_key", "dims", "values")

    def __init__(self, dims: Iterable[int], values: Array) -> None:
        self.dims, self.values = tuple(dims), values
        self._key: tuple[Any, ...] | None = None

    @property
    def key(self) -> tuple[Any, ...]:
        """What equal tables share."""
        if self._key is None:
            self._key = self.dims, self.values.shape, hash(np.ascontiguousarray(self.values).tobytes())
        return self._key

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, Table)
            and self.key == other.key
            and (self.values is other.values or bool(np.array_equal(self.values, other.values)))
        )

    def __hash__(self) -> int:
        return hash(self.key)


class Coordinate(NamedTuple):
    """Hold a whole number for each point of a box: an affine function of the point, plus tables.

    Attributes:
        line: the affine function.
        tables: what is added to it, at most one for each set of dimensions.
    """

    line: AxisIndex
    tables: tuple[Table, ...] = ()

    @property
    def dims(self) -> set[int]:
        """The dimensions on which it depends."""
        return {d for d, _ in self.line.terms}.union(*[table.dims for table in self.tables])

    @property
    def solo(self) -> tuple[int, int] | None:
        """The only dimension on which it depends, and its step, where there is no table; None if it is not so."""
        return self.line.terms[0] if len(self.line.terms) == 1 and not self.tables else None

    def values(self, extents: Shape) -> Array:
        """Return the number at each point, as an array that broadcasts to the box.

        >>> Coordinate(AxisIndex(1, ((1, 2),))).values((2, 3))
        array([[1, 3, 5]])
        """
        rank = len(extents)
        found: Array = np.full((1,) * rank, self.line.offset, np.int64)
        for d, step in self.line.terms:
            found = found + spread(np.arange(extents[d], dtype=np.int64) * step, (d,), rank)
        for table in self.tables:
            found = found + spread(table.values, table.dims, rank)
        return found

    def span(self, extents: Shape) -> tuple[int, int]:
        """Return bounds between which the numbers are."""
        low, high = span(self.line, extents)
        for table in self.tables:
            low, high = low + int(table.values.min()), high + int(table.values.max())
        return low, high

    def plus_offset(self, offset: int) -> Coordinate:
        """Return the coordinate with something added."""
        return self._replace(line=self.line._replace(offset=self.line.offset + offset))

    def scale(self, factor: int) -> Coordinate:
        """Return the coordinate times a whole number."""
        offset, terms = self.line
        line = AxisIndex(offset * factor, tuple([(d, step * factor) for d, step in terms] if factor else ()))
        return Coordinate(line, tuple([Table(t.dims, t.values * factor) for t in self.tables] if factor else ()))

    def plus(self, other: Coordinate) -> Coordinate:
        """Return the sum of two."""
        steps = dict(self.line.terms)
        for d, step in other.line.terms:
            steps[d] = steps.get(d, 0) + step
        terms = tuple(sorted([(d, step) for d, step in steps.items() if step]))
        return Coordinate(
            AxisIndex(self.line.offset + other.line.offset, terms), sum_tables((*self.tables, *other.tables))
        )

    def through(self, images: Sequence[Coordinate], extents: Shape) -> Coordinate:
        """Return the coordinate where each dimension of its box is a coordinate of another box, of some extents."""
        found = Coordinate(AxisIndex(self.line.offset))
        for d, step in self.line.terms:
            found = found.plus(images[d] if step == 1 else images[d].scale(step))
        for table in self.tables:
            values = read(table.values, [images[d] for d in table.dims], extents)
            dims = [d for d, n in enumerate(values.shape) if n != 1]
            if dims:
                more = Coordinate(AxisIndex(0), (Table(dims, values.reshape([values.shape[d] for d in dims])),))
            else:
                more = Coordinate(AxisIndex(int(values.reshape(-1)[0]) if values.size else 0))
            found = found.plus(more)
        return found

    @classmethod
    def at(cls, offset: int) -> Coordinate:
        """Return one that is the same everywhere."""
        return cls(AxisIndex(offset))

    @classmethod
    def along(cls, dim: int, step: int = 1, offset: int = 0) -> Coordinate:
        """Return one that moves along a dimension."""
        return cls(AxisIndex(offset, ((dim, step),)))

    @classmethod
    def from_table(cls, dim: int, values: Array) -> Coordinate:
        """Return one that a table along a dimension says; affine, where the table is."""
        if len(values) < 2:
            return cls.at(int(values[0]) if len(values) else 0)
        step = int(values[1]) - int(values[0])
        if int(values[-1]) - int(values[0]) == step * (len(values) - 1) and (np.diff(values) == step).all():
            return cls.along(dim, step, int(values[0])) if step else cls.at(int(values[0]))
        return cls(AxisIndex(0), (Table((dim,), values),))


def sum_tables(tables: Sequence[Table]) -> tuple[Table, ...]:
    """Return tables, of which those along the same dimensions are added up."""
    if len(tables) < 2:
        return tuple(tables)
    found: dict[tuple[int, ...], Table] = {}
    for table in tables:
        known = found.get(table.dims)
        found[table.dims] = table if known is None else Table(table.dims, known.values + table.values)
    return tuple(sorted(found.values(), key=lambda table: table.dims))


def spread(values: Array, dims: Sequence[int], rank: int) -> Array:
    """Return an array with an axis for each of some dimensions as one with an axis for every dimension of a box.

    >>> spread(np.ones((2, 3)), (1, 3), 4).shape
    (1, 2, 1, 3)
    """
    shape = [1] * rank
    for d, n in zip(dims, values.shape, strict=True):
        shape[d] = n
    return values.reshape(shape)


def read(array: Any, images: Sequence[Coordinate], extents: Shape) -> Any:
    """Return what is read of an array where each of its axes is a coordinate of a box, as what broadcasts to the box.

    Axes of length one are read at their only place, whatever the coordinate says. Where steps are affine and each
    along a dimension of its own, that is a slice; else elements are gathered. Of a box without points nothing is read,
    also where an axis has no place: coordinates of no points are any.

    >>> read(np.arange(6).reshape(2, 3), [Coordinate.at(1), Coordinate.along(0, -1, 2)], (3,))
    array([5, 4, 3])
    >>> read(np.zeros(0), [Coordinate.at(0)], (0, 3)).shape
    (0, 1)
    """
    if 0 in extents:
        return np.reshape(np.ravel(array)[:0], tuple([min(n, 1) for n in extents]))
    places = [Coordinate.at(0) if n == 1 else image for n, image in zip(array.shape, images, strict=True)]
    used = [d for place in places for d in place.dims]
    if len(set(used)) < len(used) or any(place.dims and place.solo is None for place in places):
        if not places:
            return np.reshape(array, (1,) * len(extents))
        return array[tuple([np.broadcast_to(place.values(extents), spread_shape(places, extents)) for place in places])]
    index = tuple([slice_along(place, extents) for place in places])
    part = array if all(entry == slice(0, n, 1) for entry, n in zip(index, array.shape, strict=True)) else array[index]
    axes = [place.solo[0] for place in places if place.solo is not None]
    order = sorted(range(len(axes)), key=axes.__getitem__)
    if order != list(range(len(axes))):
        part = part.transpose(order)
    there = set(axes)
    shape = tuple([n if d in there else 1 for d, n in enumerate(extents)])
    return part if np.shape(part) == shape else np.reshape(part, shape)


def spread_shape(places: Sequence[Coordinate], extents: Shape) -> Shape:
    """Return the extents of the dimensions on which some coordinates depend, and one for the others."""
    used = set[int]().union(*[place.dims for place in places])
    return tuple([n if d in used else 1 for d, n in enumerate(extents)])


def slice_along(place: Coordinate, extents: Shape) -> slice | int:
    """Return where a coordinate that is affine along one dimension, or the same everywhere, reads an axis."""
    start = place.line.offset
    if place.solo is None:
        return start
    d, step = place.solo
    last = start + step * (extents[d] - 1)
    stop = last + (1 if step > 0 else -1)
    return slice(start, None if stop < 0 else stop, step)
