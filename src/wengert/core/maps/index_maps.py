"""Index maps: for each dimension of what is read, where it is read, as a sum over the dimensions of the reader.

Those of views NumPy is asked for: how they lie on an array of single bytes, of which no element is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.support.caches import MOST_KNOWN
from wengert.support.records import NamedTuple

Shape = tuple[int, ...]


class AxisIndex(NamedTuple):
    """Hold where one dimension is read.

    Attributes:
        offset: at the beginning of the reader.
        terms: pairs of a dimension of the reader and how far one step along it moves; in order, none of 0.
    """

    offset: int
    terms: tuple[tuple[int, int], ...] = ()


IndexMap = tuple[AxisIndex, ...]


def strides_for(shape: Sequence[int]) -> Shape:
    """Return how many elements apart neighbours along each dimension lie in C order.

    >>> strides_for((2, 3, 4))
    (12, 4, 1)
    """
    found, step = [], 1
    for n in reversed(shape):
        found.append(step)
        step *= n
    return tuple(reversed(found))


@lru_cache(maxsize=MOST_KNOWN)
def identity_map(shape: Shape) -> IndexMap:
    """Return the map that reads each element where it is; along dimensions of one element nothing moves."""
    return tuple([AxisIndex(0, () if n == 1 else ((k, 1),)) for k, n in enumerate(shape)])


@lru_cache(maxsize=MOST_KNOWN)
def broadcast_map(source: Shape, rank: int) -> IndexMap:
    """Return the map by which a space of some rank reads an array that is broadcast to it."""
    shift = rank - len(source)
    if not shift:
        return identity_map(source)
    return tuple([AxisIndex(0, () if n == 1 else ((k + shift, 1),)) for k, n in enumerate(source)])


@lru_cache(maxsize=MOST_KNOWN)  # few are different, and equations have several each
def compose(inner: IndexMap, outer: IndexMap) -> IndexMap:
    """Return the map that goes through `outer`, which is of the reader, first.

    >>> compose((AxisIndex(1, ((0, 2),)),), (AxisIndex(3, ((1, -1),)),))
    (AxisIndex(offset=7, terms=((1, -2),)),)
    """
    found = []
    for offset, terms in inner:
        if len(terms) == 1:  # as almost always
            ((d, stride),) = terms
            more, own = outer[d]
            found.append(AxisIndex(offset + stride * more, own if stride == 1 else scale_terms(own, stride)))
        elif not terms:
            found.append(AxisIndex(offset))
        else:
            steps: dict[int, int] = {}
            for d, stride in terms:
                offset += stride * outer[d].offset
                for e, step in outer[d].terms:
                    steps[e] = steps.get(e, 0) + stride * step
            found.append(AxisIndex(offset, tuple(sorted([(e, step) for e, step in steps.items() if step]))))
    return tuple(found)


def scale_terms(terms: tuple[tuple[int, int], ...], stride: int) -> tuple[tuple[int, int], ...]:
    """Return terms with steps some times as long."""
    return tuple([(d, stride * step) for d, step in terms])


def flatten_map(shape: Sequence[int], read: IndexMap) -> AxisIndex:
    """Return where an array in C order is read as one row of elements.

    >>> flatten_map((2, 3), (AxisIndex(1), AxisIndex(0, ((0, 1),))))
    AxisIndex(offset=3, terms=((0, 1),))
    """
    offset, steps = 0, dict[int, int]()
    for stride, (start, terms) in zip(strides_for(shape), read, strict=True):
        offset += stride * start
        for d, step in terms:
            steps[d] = steps.get(d, 0) + stride * step
    return AxisIndex(offset, tuple(sorted([(d, step) for d, step in steps.items() if step])))


@lru_cache(maxsize=MOST_KNOWN)
def span(index: AxisIndex, extents: Shape) -> tuple[int, int]:
    """Return the least and the greatest place that a reader of some extents reads."""
    low = high = index.offset
    for d, step in index.terms:
        end = step * (extents[d] - 1)
        low, high = low + min(end, 0), high + max(end, 0)
    return low, high


@lru_cache(maxsize=MOST_KNOWN)
def is_within(shape: Shape, read: IndexMap, extents: Shape) -> bool:
    """Tell whether a reader of some extents reads nothing outside of a shape."""
    for n, index in zip(shape, read, strict=True):
        low, high = span(index, extents)
        if low < 0 or high >= n:
            return False
    return True


@lru_cache(maxsize=MOST_KNOWN)
def decompose_row(shape: Shape, row: AxisIndex, extents: Shape) -> IndexMap | None:
    """Return the map that reads an array in C order as `row` reads it as one row; None if no map does.

    >>> decompose_row((2, 3), AxisIndex(5, ((0, -1),)), (3,))
    (AxisIndex(offset=1, terms=()), AxisIndex(offset=2, terms=((0, -1),)))
    >>> decompose_row((2, 3), AxisIndex(0, ((0, 1),)), (6,)) is None
    True
    """
    if 0 in shape:
        return None
    strides = strides_for(shape)
    starts = digits(row.offset, strides)
    steps: list[dict[int, int]] = [{} for _ in shape]
    for d, step in row.terms:
        if extents[d] == 1:
            continue
        last = digits(row.offset + step * (extents[d] - 1), strides)
        for k, (start, end) in enumerate(zip(starts, last, strict=True)):
            along, rest = divmod(end - start, extents[d] - 1)
            if rest:
                return None
            if along:
                steps[k][d] = along
    found = tuple([AxisIndex(start, tuple(sorted(own.items()))) for start, own in zip(starts, steps, strict=True)])
    same = flatten_map(shape, found) == row._replace(terms=tuple([t for t in row.terms if extents[t[0]] > 1]))
    return found if same and is_within(shape, found, extents) else None


def digits(place: int, strides: Sequence[int]) -> list[int]:
    """Return the index of an element from its place in one row."""
    found = []
    for stride in strides:
        digit, place = divmod(place, stride)
        found.append(digit)
    return found


Array = np.ndarray[Any, Any]


def window_map(shape: Shape, view: Callable[[Array], Array]) -> tuple[AxisIndex, Shape] | None:
    """Return how a view reads an array of a shape as one row, and the view's shape; None if it is a copy.

    >>> window_map((2, 3), np.transpose)
    (AxisIndex(offset=0, terms=((0, 1), (1, 3))), (3, 2))
    """
    whole: Array = np.empty(shape, np.int8)
    window = view(whole)
    if not np.may_share_memory(whole, window):
        return None
    start = window.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    steps = zip(window.strides, window.shape, strict=True)
    terms = tuple([(d, step) for d, (step, n) in enumerate(steps) if n > 1 and step])
    return AxisIndex(start, terms), window.shape
