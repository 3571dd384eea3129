"""Arrays as the numbers of lanes: along one axis are lanes, and each of its other places is a vector over these.

What is computed for each element of a mesh, observation or edge is the same small function. Taken apart into numbers
it is one loop over all of them, without arrays between, and each number may be zero or a constant by itself.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Pointwise, form_of
from wengert.core.forms.routine import Routine
from wengert.core.graph.equation import Equation
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Array, Coordinate
from wengert.core.maps.index_maps import Shape
from wengert.core.primitives.kinds import Linear
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged
from wengert.support.records import NamedTuple

MOST_NUMBERS = 4_000
"""The most operations on numbers that a small function is taken apart into: as many as are soon compiled."""


class NotByLanes(Exception):
    """Say that an operation mixes lanes, or is none on numbers."""


class LaneArray(NamedTuple):
    """Hold an array as numbers of lanes.

    Attributes:
        axis: that of the lanes.
        numbers: an array of objects, of the shape without that axis: a vector over the lanes each.
    """

    axis: int
    numbers: Array

    @property
    def length(self) -> int:
        """How many lanes there are."""
        found: int = shape_of(self.numbers.flat[0])[0]
        return found

    @classmethod
    def of(cls, vectors: Sequence[Any], shape: Shape, axis: int) -> LaneArray:
        """Return the array of a shape whose numbers are vectors over the lanes along an axis."""
        inner = (*shape[:axis], *shape[axis + 1 :])
        numbers = np.empty(len(vectors), object)
        for k, vector in enumerate(vectors):
            numbers[k] = vector
        return cls(axis, numbers.reshape(inner))


class LaneOperations:
    """Carry out equations on the numbers of lanes.

    Attributes:
        value: gives what is known of an operand: a `LaneArray`, an array or a number.
        count: of operations so far.
    """

    def __init__(self, value: Callable[[Any], Any]) -> None:
        self.value = value
        self.count = 0

    def run(self, equation: Equation) -> LaneArray:
        """Return the result of an equation some of whose operands are numbers of lanes; raise if it mixes these."""
        if len(equation.outputs) != 1 or equation.outputs[0].dtype.kind == "c":
            raise NotByLanes
        operands = [self.value(x) for x in equation.inputs]
        form = form_of(equation.primitive)
        if isinstance(form, Pointwise):
            return self.at_points(equation, operands)
        if isinstance(equation.primitive, Linear) or isinstance(form, Contraction):
            return self.by_maps(equation, operands)
        raise NotByLanes

    def apply(self, equation: Equation, operands: Sequence[Any]) -> Any:
        """Return what a primitive gives for numbers."""
        self.count += 1
        if self.count > MOST_NUMBERS:
            raise NotByLanes
        with np.errstate(all="ignore"):
            return apply(equation.primitive, *operands, **equation.params)

    def at_points(self, equation: Equation, operands: Sequence[Any]) -> LaneArray:
        """Return what is computed of each element."""
        shape = equation.outputs[0].shape
        lanes = [x for x in operands if isinstance(x, LaneArray)]
        axes = {x.axis - x.numbers.ndim - 1 for x in lanes}
        length = lanes[0].length
        if len(axes) != 1 or any(x.length != length for x in lanes):
            raise NotByLanes
        axis = axes.pop() + len(shape)
        if shape[axis] != length:
            raise NotByLanes
        inner = (*shape[:axis], *shape[axis + 1 :])
        found = [
            self.apply(equation, [number_at(x, place, axis - len(shape), length) for x in operands])
            for place in np.ndindex(inner)
        ]
        return LaneArray.of(found, shape, axis)

    def by_maps(self, equation: Equation, operands: Sequence[Any]) -> LaneArray:
        """Return sums of numbers times coefficients, as the maps of a linear operation say."""
        primitive, out = equation.primitive, equation.outputs[0]
        lanes = [i for i, x in enumerate(operands) if isinstance(x, LaneArray)]
        given = [equation.inputs[i] if i in lanes else x for i, x in enumerate(operands)]
        form = form_of(primitive)
        if not isinstance(form, Contraction) and (isinstance(form, Routine) or has_computed_places(operands)):
            raise NotByLanes

        def maps(position: int) -> Sequence[BoxMap]:
            found = form.maps(primitive, position, given, aval_of(out), equation.params)
            if found is None:
                raise NotByLanes
            return found

        sums = LaneSums(out.shape, operands[lanes[0]].length)
        if isinstance(primitive, Linear):
            summed = range(len(operands) if primitive.variadic else len(primitive.transposes))
            if lanes[-1] not in summed:
                raise NotByLanes
            for i in sorted(summed, key=lambda i: i not in lanes):  # the others go where lanes are
                for one in maps(i):
                    self.add(sums, one, [(operands[i], one.source)])
            return sums.result()
        first, *others = lanes
        sides = [maps(i) for i in others]
        if any(len(side) != 1 for side in sides):  # of convolutions
            raise NotByLanes
        for one in maps(first):
            more = [(operands[i], side[0].source) for i, side in zip(others, sides, strict=True)]
            self.add(sums, one, [(operands[first], one.source), *more])
        return sums.result()

    def add(self, sums: LaneSums, one: BoxMap, factors: Sequence[tuple[Any, Sequence[Coordinate]]]) -> None:
        """Add products of the elements of some arrays, and of a coefficient, along a map."""
        dims = {lane_dimension(side, x.axis, x.length, one) for x, side in factors if isinstance(x, LaneArray)}
        axis, dim = sums.axis_of(one, dims)
        targets = inner_places(one.target, axis, dim, one)
        read = [
            inner_numbers(x, inner_places(side, x.axis, dim, one))
            if isinstance(x, LaneArray)
            else known_numbers(x, side, dim, one)
            for x, side in factors
        ]
        for n, (place, *numbers) in enumerate(zip(targets, *read, strict=True)):
            factor = coefficient_at(one, dim, n)
            if isinstance(factor, float) and factor == 0.0:
                continue
            self.count += len(numbers)
            if self.count > MOST_NUMBERS:
                raise NotByLanes
            term = numbers[0]
            for other in numbers[1:]:
                term = term * other
            sums.add(place, term if isinstance(factor, float) and factor == 1.0 else factor * term)


class LaneSums:
    """Hold sums of numbers at places of a result.

    Attributes:
        shape: of the result.
        length: how many lanes there are.
        axis: of the lanes in the result, once it is known.
        sums: by places without that axis.
    """

    def __init__(self, shape: Shape, length: int) -> None:
        self.shape, self.length = shape, length
        self.axis: int | None = None
        self.sums: dict[tuple[int, ...], Any] = {}

    def axis_of(self, one: BoxMap, dims: set[int]) -> tuple[int, int]:
        """Return along which axis of the result a map puts lanes, and which dimension of its box they are."""
        if not dims:  # of what does not move
            own = None if self.axis is None else one.target[self.axis].solo
            dims = set() if own is None else {own[0]}
        if len(dims) != 1:
            raise NotByLanes
        dim = dims.pop()
        axes = [k for k, c in enumerate(one.target) if dim in c.dims]
        if len(axes) != 1 or self.axis not in (None, axes[0]):
            raise NotByLanes
        (axis,) = axes
        at = one.target[axis]
        if at.solo != (dim, 1) or at.line.offset or not self.shape[axis] == self.length == one.extents[dim]:
            raise NotByLanes
        self.axis = axis
        return axis, dim

    def add(self, place: tuple[int, ...], term: Any) -> None:
        """Add a number."""
        known = self.sums.get(place)
        self.sums[place] = term if known is None else known + term

    def result(self) -> LaneArray:
        """Return the sums as numbers of lanes; what nothing was added to is zero."""
        if self.axis is None:
            raise NotByLanes
        inner = (*self.shape[: self.axis], *self.shape[self.axis + 1 :])
        zero = np.zeros(self.length)
        return LaneArray.of([self.sums.get(place, zero) for place in np.ndindex(inner)], self.shape, self.axis)


def number_at(x: Any, place: tuple[int, ...], axis: int, length: int) -> Any:
    """Return an operand of an elementwise operation at a place of the result without its axis of lanes, from the end.

    That is a vector over the lanes, or one number for all of them.
    """
    if isinstance(x, LaneArray):
        inner = x.numbers.shape
        own = place[len(place) - len(inner) :]
        return x.numbers[tuple([0 if n == 1 else k for n, k in zip(inner, own, strict=True)])]
    shape = shape_of(x)
    if not shape:
        return x
    lane = len(shape) + axis
    entries: list[int | slice] = [*place[max(len(place) - len(shape) + (lane >= 0), 0) :]]
    if lane >= 0:
        entries.insert(lane, slice(None) if shape[lane] == length else 0)
    return contiguous(x[tuple([0 if n == 1 else k for n, k in zip(shape, entries, strict=True)])])


def contiguous(x: Any) -> Any:
    """Return an array as one row in memory; anything else as it is."""
    return np.ascontiguousarray(x) if type(x) is np.ndarray and x.ndim else x


def lane_dimension(side: Sequence[Coordinate], axis: int, length: int, one: BoxMap) -> int:
    """Return the dimension of a map that runs over the lanes, and over nothing else, of a side; raise if none does."""
    solo = side[axis].solo
    if solo is None or solo[1] != 1 or side[axis].line.offset or one.extents[solo[0]] != length:
        raise NotByLanes
    if any(solo[0] in c.dims for k, c in enumerate(side) if k != axis):
        raise NotByLanes
    return solo[0]


def inner_places(side: Sequence[Coordinate], axis: int, dim: int, one: BoxMap) -> list[tuple[int, ...]]:
    """Return the places along all axes but that of the lanes, for each point of a map in the first lane."""
    rows = [first_lane(c.values(one.extents), dim, one.extents).tolist() for k, c in enumerate(side) if k != axis]
    count = math.prod(one.extents) // one.extents[dim]
    return [*zip(*rows, strict=True)] if rows else [()] * count


def first_lane(values: Array, dim: int, extents: Shape) -> Array:
    """Return numbers of the points of a box where a dimension is at its beginning, in C order."""
    found: Array = np.broadcast_to(values, extents).take(0, axis=dim).reshape(-1)
    return found


def inner_numbers(x: LaneArray, places: Sequence[tuple[int, ...]]) -> list[Any]:
    """Return numbers at places."""
    return [x.numbers[place] for place in places]


def known_numbers(x: Any, side: Sequence[Coordinate], dim: int, one: BoxMap) -> Iterator[Any]:
    """Yield what a map reads of an array that is no numbers of lanes, as vectors over the lanes or numbers."""
    places = [c.values(one.extents) for c in side]
    moving = any(dim in c.dims for c in side)
    for point in np.ndindex(*[1 if d == dim else n for d, n in enumerate(one.extents)]):
        index = tuple(
            [
                at[tuple([slice(None) if d == dim else min(k, at.shape[d] - 1) for d, k in enumerate(point)])]
                for at in places
            ]
        )
        yield x[tuple([k if moving else int(k[0]) for k in index])] if index else x


def coefficient_at(one: BoxMap, dim: int, n: int) -> Any:
    """Return the coefficient of a map at the n-th point of its first lane: a vector over the lanes, or a number."""
    found = one.coefficient
    if found is None:
        return 1.0
    shape = shape_of(found)
    if not shape:
        return float(found) if isinstance(found, float | int | np.generic) else found
    extents = [1 if d == dim else k for d, k in enumerate(one.extents)]
    lead = len(extents) - len(shape)
    point = [int(k) for k in np.unravel_index(n, extents)[lead:]]
    slots = enumerate(zip(shape, point, strict=True), lead)
    entries = [0 if size == 1 else slice(None) if d == dim else k for d, (size, k) in slots]
    part = found[tuple(entries)]
    uniform = isinstance(part, np.ndarray | np.generic) and np.size(part) and np.all(part == np.reshape(part, -1)[0])
    return float(np.reshape(part, -1)[0]) if uniform else contiguous(part)


def has_computed_places(operands: Sequence[Any]) -> bool:
    """Tell whether whole numbers among operands are computed."""
    return any(not isinstance(x, LaneArray) and aval_of(x).dtype.kind in "iub" and is_staged(x) for x in operands)
