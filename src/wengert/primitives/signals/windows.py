"""Where windows on images are: lengths, strides, and zeros around images."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from wengert.support.records import NamedTuple

Array = Any
Lengths = tuple[int, ...]


class Geometry(NamedTuple):
    """Hold where windows are: numbers for each axis of space."""

    stride: Lengths
    dilation: Lengths
    spread: Lengths
    low: Lengths
    high: Lengths

    def outer(self) -> Geometry:
        """Return the same with an outer axis of length one."""
        return Geometry((1, *self.stride), (1, *self.dilation), (1, *self.spread), (0, *self.low), (0, *self.high))


def spread_lengths(shape: Sequence[int], spread: Lengths) -> Lengths:
    """Return the lengths of axes with zeros between their elements."""
    return tuple([(n - 1) * step + 1 if n else 0 for n, step in zip(shape, spread, strict=True)])


@functools.lru_cache(maxsize=4096)
def result_lengths(x: Lengths, w: Lengths, space: Geometry) -> Lengths:
    """Return the lengths of the result along the axes of space."""
    padded = [n + a + b for n, a, b in zip(spread_lengths(x, space.spread), space.low, space.high, strict=True)]
    steps = zip(padded, spread_lengths(w, space.dilation), space.stride, strict=True)
    return tuple([max((n - span) // step + 1, 0) for n, span, step in steps])


def surround_images(x: Array, low: Lengths, high: Lengths, spread: Lengths) -> Array:
    """Return images with zeros between and around their elements; negative numbers of them take elements away."""
    rank = len(low)
    lengths, inside, place = placement(x.shape[-rank:], low, high, spread)
    if place is None:
        return x if lengths == x.shape[-rank:] else x[inside]
    found = np.zeros(x.shape[:-rank] + lengths, x.dtype)
    found[place] = x[inside]
    return found


@functools.lru_cache(maxsize=4096)
def placement(images: Lengths, low: Lengths, high: Lengths, spread: Lengths) -> tuple[Lengths, Any, Any]:
    """Return the lengths of images that are surrounded, which elements are taken, and where they are put.

    The last is None if that is everywhere.
    """
    lengths = spread_lengths(images, spread)
    shape = tuple([max(n + a + b, 0) for n, a, b in zip(lengths, low, high, strict=True)])
    source, target = [], []
    for n, a, step, full in zip(images, low, spread, shape, strict=True):
        first = max(0, -(a // step)) if a < 0 else 0
        stop = max(first, min(n, max(0, -((a - full) // step))))
        start = first * step + a
        source.append(slice(first, stop))
        target.append(slice(start, stop_of(start, stop - first, step), step) if stop > first else slice(0, 0))
    everywhere = max(spread) == 1 and max(*low, *high) <= 0
    return shape, (..., *source), None if everywhere else (..., *target)


def view(x: Array, shape: Lengths, strides: Lengths) -> Array:
    """Return a view of an array; `as_strided` takes 3 us more, and is needed where elements lie apart."""
    if x.flags.c_contiguous:
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return as_strided(x, shape, strides)


def times(numbers: Sequence[int], factors: Sequence[int]) -> Lengths:
    """Return products of numbers."""
    return tuple([a * b for a, b in zip(numbers, factors, strict=True)])


def stop_of(start: int, count: int, step: int) -> int:
    """Return where a slice ends that takes a number of elements."""
    return start + (count - 1) * step + 1 if count > 0 else start
