"""The composition of two maps: what of a source reaches a target through the elements of an array between them.

Both boxes together are the first guess, with an equation for each axis of the array between: the two maps meet in one
of its elements. An equation is solved for a dimension that stands alone on one side; the other side must stay within
that dimension, which cuts a range out of the box, or a list of points. Where sums of several dimensions meet, as in a
reshape, the digits of one are read off the other. What no rule solves is joined point by point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.maps.box_maps import BoxMap, at_points
from wengert.core.maps.coordinates import Array, Coordinate, spread_shape
from wengert.core.maps.index_maps import AxisIndex, Shape, decompose_row


class Nowhere(Exception):
    """Say that two maps do not meet."""


def compose(outer: BoxMap, inner: BoxMap, between: Shape) -> BoxMap | None:
    """Return the map from the source of the inner one to the target of the outer one; None if they do not meet.

    Args:
        outer: a map whose source may be told by one coordinate, of places in C order.
        inner: a map to the same array.
        between: the shape of that array.

    >>> shift = BoxMap((3,), (Coordinate.along(0),), (Coordinate.along(0, 1, 1),))
    >>> both = compose(shift, shift, (4,))
    >>> both.extents, both.target[0].line, both.source[0].line
    ((2,), AxisIndex(offset=0, terms=((0, 1),)), AxisIndex(offset=2, terms=((0, 1),)))
    """
    if not outer.size or not inner.size:
        return None
    if len(outer.source) != len(between):
        inner = inner.onto([inner.places(between, inner.target)])
    whole = read_whole(outer, inner)
    if whole is not None:
        return whole
    try:
        meeting = Meeting(outer, inner)
        meeting.solve()
    except Nowhere:
        return None
    return meeting.result()


def count_points(outer: BoxMap, inner: BoxMap, between: Shape) -> int:
    """Return how many points two maps have between them, before any are listed: pairs that meet in an element.

    >>> fan = BoxMap((2, 3), (Coordinate.along(0),), (Coordinate.at(0),))
    >>> count_points(fan, fan, (2,))
    18
    """
    size = math.prod(between)
    is_one = len(outer.source) != len(between)  # places in C order
    places = outer.source[0] if is_one else outer.places(between, outer.source)
    own, others = visits(places, outer.extents, size), visits(inner.places(between, inner.target), inner.extents, size)
    return int(own @ others)


def bound_points(outer: BoxMap, inner: BoxMap) -> int:
    """Return a bound on the points of two maps, without a look at tables: few if one side reaches elements once."""
    bounds = [outer.size * inner.size]
    if reaches_once(inner.target, inner.extents):
        bounds.append(outer.size)
    if reaches_once(outer.source, outer.extents):
        bounds.append(inner.size)
    return min(bounds)


def reaches_once(side: Sequence[Coordinate], extents: Shape) -> bool:
    """Tell whether each dimension of a box stands alone in a coordinate, so that no two points are in one element."""
    alone = {c.solo[0] for c in side if c.solo is not None}
    return all(n == 1 or d in alone for d, n in enumerate(extents))


def visits(places: Coordinate, extents: Shape, size: int) -> Array:
    """Return how often the points of a box are at each place."""
    own = math.prod([n for d, n in enumerate(extents) if d in places.dims])
    listed = np.broadcast_to(places.values(extents), spread_shape([places], extents)).reshape(-1)
    return np.bincount(listed, minlength=size) * (math.prod(extents) // max(own, 1))


def read_whole(outer: BoxMap, inner: BoxMap) -> BoxMap | None:
    """Return the composition where one map reaches, once each, all elements that the other has; None elsewhere.

    It is what most are, of whole arrays: the box of the other one is that of both.
    """
    images = solved_by(inner.target, inner.extents, outer.source, outer.extents)
    if images is not None:
        extents = outer.extents
        source = [c.through(images, extents) for c in inner.source]
        factor, other = outer.coefficient, inner.coefficient_through(images, extents)
        return BoxMap(extents, outer.target, source, multiply_coefficients(factor, other))
    images = solved_by(outer.source, outer.extents, inner.target, inner.extents)
    if images is None:
        return None
    target = [c.through(images, inner.extents) for c in outer.target]
    factor, other = outer.coefficient_through(images, inner.extents), inner.coefficient
    return BoxMap(inner.extents, target, inner.source, multiply_coefficients(factor, other))


def solved_by(
    side: Sequence[Coordinate], extents: Shape, other: Sequence[Coordinate], others: Shape
) -> list[Coordinate] | None:
    """Return the dimensions of a box as coordinates of another one, where each stands alone for all that is there."""
    if len(side) != len(extents) or len({c.solo[0] for c in side if c.solo}) < len(side):
        return None
    images = [Coordinate.at(0)] * len(extents)
    for x, y in zip(side, other, strict=True):
        if x.solo is None or abs(x.solo[1]) != 1:
            return None
        dim, step = x.solo
        value = y.plus_offset(-x.line.offset).scale(step) if x.line.offset or step != 1 else y
        low, high = value.span(others)
        if low < 0 or high >= extents[dim]:
            return None
        images[dim] = value
    return images


def multiply_coefficients(factor: Any, other: Any) -> Any:
    """Return the product of two coefficients, of which None is 1."""
    return other if factor is None else factor if other is None else factor * other


class Meeting:
    """Be where two maps meet: a box that shrinks as equations are solved.

    Attributes:
        extents: of the box that is left.
        images: the dimensions of both maps as coordinates of that box.
    """

    def __init__(self, outer: BoxMap, inner: BoxMap) -> None:
        self.outer, self.inner = outer, inner
        self.extents: Shape = (*outer.extents, *inner.extents)
        self.images = [Coordinate.along(d) for d in range(len(self.extents))]

    def result(self) -> BoxMap:
        """Return the map of the points that are left, with the product of the coefficients."""
        first = len(self.outer.extents)
        ahead, behind = self.images[:first], self.images[first:]
        target = [c.through(ahead, self.extents) for c in self.outer.target]
        source = [c.through(behind, self.extents) for c in self.inner.source]
        factor = self.outer.coefficient_through(ahead, self.extents)
        other = self.inner.coefficient_through(behind, self.extents)
        return BoxMap(self.extents, target, source, multiply_coefficients(factor, other))

    def solve(self) -> None:
        """Solve all equations, the easy ones first."""
        first = len(self.outer.extents)
        pending = [
            (a, b, range(first), range(first, len(self.images)))
            for a, b in zip(self.outer.source, self.inner.target, strict=True)
        ]
        for rule in (self.solve_alone, self.solve_digits, self.solve_points):
            rest = []
            for equation in pending:
                a, b, own, others = equation
                left = a.through([self.images[d] for d in own], self.extents)
                right = b.through([self.images[d] for d in others], self.extents)
                if not rule(left, right):
                    rest.append(equation)
            pending = rest

    def replace(self, images: Sequence[Coordinate], extents: Shape) -> None:
        """Let each dimension of the box be a coordinate of another box."""
        self.images = [image.through(images, extents) for image in self.images]
        self.extents = extents

    def select(self, dims: Sequence[int], points: Sequence[Array]) -> None:
        """Keep some points of a few dimensions, which become one."""
        if not len(points[0]):
            raise Nowhere
        self.replace(*at_points(self.extents, dims, points))

    def eliminate(self, dim: int, value: Coordinate) -> None:
        """Let a dimension be a coordinate of the others."""
        rest = [d for d in range(len(self.extents)) if d != dim]
        images = [Coordinate.at(0)] * len(self.extents)
        for new, d in enumerate(rest):
            images[d] = Coordinate.along(new)
        extents = tuple([self.extents[d] for d in rest])
        images[dim] = value.through(images, extents)
        self.replace(images, extents)

    # The rules

    def solve_alone(self, left: Coordinate, right: Coordinate) -> bool:
        """Solve for a dimension that stands alone on one side; tell whether there is one."""
        if not left.dims and not right.dims:
            if left.line.offset != right.line.offset:
                raise Nowhere
            return True
        sides = [(x, y) for x, y in ((left, right), (right, left)) if x.solo and x.solo[0] not in y.dims]
        if not sides:
            return False
        x, y = next(((x, y) for x, y in sides if self.covers(x, y)), min(sides, key=step_of))
        assert x.solo is not None
        dim, step = x.solo
        value = y.plus_offset(-x.line.offset)
        if self.covers(x, y):
            self.eliminate(dim, value.scale(step))
        elif y.solo is not None and abs(step) == 1:
            self.cut(y.solo[0], value.scale(step), self.extents[dim])
            return self.solve_again(left, right)
        else:
            self.keep(value, step, dim)
        return True

    def covers(self, x: Coordinate, y: Coordinate) -> bool:
        """Tell whether one side, by steps of one along a dimension, reaches all that the other may be."""
        assert x.solo is not None
        dim, step = x.solo
        if abs(step) != 1:
            return False
        low, high = y.plus_offset(-x.line.offset).scale(step).span(self.extents)
        return low >= 0 and high < self.extents[dim]

    def cut(self, dim: int, value: Coordinate, length: int) -> None:
        """Keep the range of a dimension along which a coordinate is from 0 to a length."""
        assert value.solo is not None
        offset, step = value.line.offset, value.solo[1]
        ends = (-offset, length - 1 - offset)
        low, high = ends if step > 0 else ends[::-1]
        first, last = max(-(-low // step), 0), min(high // step, self.extents[dim] - 1)
        if first > last:
            raise Nowhere
        self.kept = dim, first, last - first + 1
        images = [Coordinate.along(d) for d in range(len(self.extents))]
        images[dim] = Coordinate.along(dim, 1, first)
        self.replace(images, (*self.extents[:dim], last - first + 1, *self.extents[dim + 1 :]))

    def solve_again(self, left: Coordinate, right: Coordinate) -> bool:
        """Solve an equation whose range has been cut."""
        dim, first, _ = self.kept
        images = [Coordinate.along(d) for d in range(len(self.extents))]
        images[dim] = Coordinate.along(dim, 1, first)
        return self.solve_alone(left.through(images, self.extents), right.through(images, self.extents))

    def keep(self, value: Coordinate, step: int, dim: int) -> None:
        """Keep the points where a coordinate is a step times a place along a dimension, and let this be the place."""
        if not value.dims:
            place, rest = divmod(value.line.offset, step)
            if rest or not 0 <= place < self.extents[dim]:
                raise Nowhere
            self.eliminate(dim, Coordinate.at(place))
            return
        dims = sorted(value.dims)
        numbers = value.values(self.extents).reshape([self.extents[d] for d in dims])
        places, rests = np.divmod(numbers, step)
        points = np.nonzero((rests == 0) & (places >= 0) & (places < self.extents[dim]))
        found = places[points]
        self.select(dims, points)
        last = len(self.extents) - 1
        self.eliminate(dim - sum([d < dim for d in dims]), Coordinate.from_table(last, found))

    def solve_digits(self, left: Coordinate, right: Coordinate) -> bool:
        """Solve for several dimensions at once, the digits of a number; tell whether one side is such a number."""
        for x, y in ((left, right), (right, left)):
            if x.tables or y.tables or not x.dims or x.dims & y.dims:
                continue
            terms = sorted(x.line.terms, key=lambda term: -term[1])
            shape = tuple([self.extents[d] for d, _ in terms])
            weights = [step for _, step in terms]
            if weights != [math.prod(shape[k + 1 :]) for k in range(len(shape))]:
                continue
            row = y.plus_offset(-x.line.offset).line
            found = decompose_row(shape, row, self.extents)
            if found is None:
                if self.split(row, weights):
                    return self.solve_after_split(x, y)
                continue
            for (d, _), digit in sorted(zip(terms, found, strict=True), reverse=True):
                self.eliminate(d, shifted_down(digit, [e for e, _ in terms if e > d]))
            return True
        return False

    def split(self, row: AxisIndex, weights: Sequence[int]) -> bool:
        """Make one dimension two where it goes over a digit; tell whether there is one."""
        for d, step in row.terms:
            n = self.extents[d]
            wide = next((w // step for w in weights if 0 < step < w < step * n and w % step == 0), 0)
            if wide and n % wide == 0:
                rank = len(self.extents)
                images = [Coordinate.along(e) for e in range(rank)]
                images[d] = Coordinate(AxisIndex(0, ((d, wide), (rank, 1))))
                self.halved = images
                self.replace(images, (*self.extents[:d], n // wide, *self.extents[d + 1 :], wide))
                return True
        return False

    def solve_after_split(self, x: Coordinate, y: Coordinate) -> bool:
        """Solve an equation one of whose dimensions has become two."""
        return self.solve_digits(x.through(self.halved, self.extents), y.through(self.halved, self.extents))

    def solve_points(self, left: Coordinate, right: Coordinate) -> bool:
        """Join point by point, in the order of the numbers."""
        if self.solve_alone(left, right) or self.solve_digits(left, right):
            return True
        mine, others = sorted(left.dims), sorted(right.dims)
        if left.dims & right.dims or not mine or not others:
            dims = sorted(left.dims | right.dims)
            shape = [self.extents[d] for d in dims]
            difference = left.plus(right.scale(-1)).values(self.extents)
            self.select(dims, np.nonzero(np.broadcast_to(difference, self.extents_of(dims)).reshape(shape) == 0))
            return True
        one, two = (self.numbers(c) for c in (left, right))
        order = np.argsort(two, kind="stable")
        low, high = (np.searchsorted(two[order], one, side) for side in ("left", "right"))
        counts = high - low
        first = np.repeat(np.arange(len(one)), counts)
        offsets = np.arange(len(first)) - np.repeat(np.cumsum(counts) - counts, counts)
        second = order[low[first] + offsets]
        points = [
            *np.unravel_index(first, [self.extents[d] for d in mine]),
            *np.unravel_index(second, [self.extents[d] for d in others]),
        ]
        self.select([*mine, *others], points)
        return True

    def extents_of(self, dims: Sequence[int]) -> Shape:
        """Return the extents of some dimensions, and one for the others."""
        return tuple([n if d in dims else 1 for d, n in enumerate(self.extents)])

    def numbers(self, coordinate: Coordinate) -> Array:
        """Return a coordinate at all points of the dimensions on which it depends."""
        values = coordinate.values(self.extents)
        return np.broadcast_to(values, spread_shape([coordinate], self.extents)).reshape(-1)


def step_of(side: tuple[Coordinate, Coordinate]) -> int:
    """Return how far a step along the only dimension of the first of two coordinates moves it."""
    assert side[0].solo is not None
    return abs(side[0].solo[1])


def shifted_down(index: AxisIndex, dims: Sequence[int]) -> Coordinate:
    """Return a coordinate of a box from which some dimensions have been taken."""
    terms = [(e - sum([d < e for d in dims]), step) for e, step in index.terms]
    return Coordinate(AxisIndex(index.offset, tuple(terms)))
