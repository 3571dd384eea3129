"""Patterns made of patterns, and which stored elements of the one are those of the other: all that is known before.

What SciPy does to a matrix it is asked to do to one whose stored elements are their own numbers; what comes out says
where each element has gone. So views, slices and conversions are SciPy's, and gathers of stored elements to us.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.primitives.sparse.storage_pattern import Shape, StoragePattern, known_pattern, pattern_of
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
SHORT = 1 << 31


class Selected(NamedTuple):
    """Hold which elements of a matrix are those of another one.

    Attributes:
        pattern: of the other one; None if it is an array or a number.
        shape: of the stored elements of the other one, or of the array.
        source: the numbers of the stored elements that are chosen; None for all, in their order.
        target: which of the elements of the other one these are, where others are zero; None for all, in their order.
    """

    pattern: StoragePattern | None
    shape: Shape
    source: Array | None
    target: Array | None


class Pairs(NamedTuple):
    """Hold how stored elements of two matrices make those of a third.

    Attributes:
        pattern: of the third.
        left, right: the numbers of the elements that are combined, or that go to `places`.
        places: the places of what is made of them among the stored elements of the third; of a sum two arrays.
    """

    pattern: StoragePattern
    left: Array
    right: Array
    places: Any


def selected_by(pattern: StoragePattern, operate: Callable[[Any], Any]) -> Selected:
    """Return which elements of a matrix are those of what an operation of SciPy's makes of it."""
    numbers = np.arange(1, pattern.size + 1).reshape(pattern.data_shape)
    found = operate(pattern.matrix(numbers))
    other = pattern_of(found) if hasattr(found, "tocsr") else None
    numbers = np.asarray(found if other is None else found.data)
    flat = numbers.reshape(-1) - 1
    if other is None or flat.size == 0 or flat.min() >= 0:
        if other is not None:
            is_whole = flat.size == pattern.size and np.array_equal(flat, np.arange(pattern.size))
            return Selected(other, numbers.shape, None if is_whole else flat, None)
        target = np.flatnonzero(flat >= 0)
        return Selected(None, numbers.shape, flat[target], None if len(target) == len(flat) else target)
    target = np.flatnonzero(flat >= 0)
    return Selected(other, numbers.shape, flat[target], target)


def pattern_of_keys(keys: Array, shape: Shape, format: str, is_array: bool) -> StoragePattern:
    """Return the pattern of a matrix with elements at these places, which are in C order and differ."""
    dtype = np.int32 if max(*shape, len(keys), 1) < SHORT else np.int64
    places = np.unravel_index(keys, shape) if len(keys) else [np.zeros(0, np.intp)] * len(shape)
    if len(shape) != 2 or format == "coo":
        return known_pattern("coo", is_array, shape, (len(keys),), [x.astype(dtype) for x in places])
    starts = np.zeros(shape[0] + 1, dtype)
    np.cumsum(np.bincount(places[0], minlength=shape[0]), out=starts[1:])
    return known_pattern("csr", is_array, shape, (len(keys),), (places[1].astype(dtype), starts))


def without_duplicates(pattern: StoragePattern) -> tuple[StoragePattern, Array]:
    """Return a pattern with each place once, in C order, and which of these each element of a pattern belongs to."""

    def make() -> tuple[StoragePattern, Array]:
        keys, places = np.unique(pattern.keys, return_inverse=True)
        return pattern_of_keys(keys, pattern.shape, "csr", pattern.is_array), places.reshape(-1)

    found: tuple[StoragePattern, Array] = pattern.derive("summed", make)
    return found


def sum_pairs(a: StoragePattern, b: StoragePattern) -> Pairs:
    """Return where the elements of two matrices stand in their sum."""

    def make() -> Pairs:
        keys, places = np.unique(np.concatenate([a.keys, b.keys]), return_inverse=True)
        places = places.reshape(-1)
        split = len(a.keys)
        none = np.zeros(0, np.intp)
        pattern = pattern_of_keys(keys, a.shape, "csr", a.is_array)
        return Pairs(pattern, none, none, (places[:split], places[split:]))

    found: Pairs = a.derive(("united", b), make)
    return found


def common_pairs(a: StoragePattern, b: StoragePattern) -> Pairs:
    """Return which elements of two matrices, each place once in either, are at the same places."""

    def make() -> Pairs:
        keys, left, right = np.intersect1d(a.keys, b.keys, assume_unique=True, return_indices=True)
        return Pairs(pattern_of_keys(keys, a.shape, "csr", a.is_array), left, right, None)

    found: Pairs = a.derive(("intersected", b), make)
    return found


def product_pairs(a: StoragePattern, b: StoragePattern) -> Pairs:
    """Return which elements of two matrices are multiplied with each other, and where their products are added up."""

    def make() -> Pairs:
        order = np.argsort(b.coordinates[0], kind="stable")
        starts = np.searchsorted(b.coordinates[0][order], np.arange(b.shape[0] + 1))
        rows, columns = a.coordinates
        counts = np.diff(starts)[columns]
        left = np.repeat(np.arange(len(columns)), counts)
        first = np.repeat(starts[:-1][columns] - (np.cumsum(counts) - counts), counts)
        right = order[first + np.arange(len(left))]
        shape = (a.shape[0], b.shape[1])
        keys, places = np.unique(rows[left] * shape[1] + b.coordinates[1][right], return_inverse=True)
        return Pairs(pattern_of_keys(keys, shape, "csr", a.is_array), left, right, places.reshape(-1))

    found: Pairs = a.derive(("multiplied", b), make)
    return found


def diagonal_of(pattern: StoragePattern, k: int) -> tuple[Array, Array, int]:
    """Return which elements stand on a diagonal, where on it, and its length."""
    rows, columns = pattern.coordinates
    chosen = np.flatnonzero(columns - rows == k)
    length = max(0, min(pattern.shape[0] + min(k, 0), pattern.shape[1] - max(k, 0)))
    return chosen, rows[chosen] - max(-k, 0), length
