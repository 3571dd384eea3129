"""Adding to elements of an array that an index may name more than once: the gradient of picking rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.support.machine import MACHINE

ROW = 16  # elements that each place stands for, from which on adding in rounds is quicker
MOST = 8  # rounds
WIDER: dict[str, Any] = {"e": np.dtype(np.float32), "f": np.dtype(np.float64)}
OFTEN = 16  # terms of an element, on the average, of which sums one by one lose digits
BLOCK = 1 << 16  # elements whose places are in memory at once


def add_at_places(target: ndarray[Any, Any], key: tuple[Any, ...], value: Any) -> None:
    """Add to part of an array: `numpy.add.at`, which goes element by element.

    Rows that lie in memory one behind the other are added as elements of a vector, where NumPy is five times as quick:
    1,000 rows of 16 take 25 us in place of 130. Others at places along one axis are added in rounds, in each of which
    every place is another: to 250 of 400 columns, 190 us in place of 710. The bits are the same: each element gets its
    terms in the same order. Many terms of an element in half or single precision are added in the next wider one: a sum
    of 70,000 equal numbers one by one loses up to as many roundings.

    >>> counts = np.zeros(3)
    >>> add_at_places(counts, (np.array([0, 2, 0]),), np.ones(3))
    >>> counts
    array([2., 0., 1.])
    """
    wider = WIDER.get(target.dtype.char)
    if wider is not None and np.size(value) >= OFTEN * target.size:
        total = np.zeros(target.shape, wider)
        add_at_places(total, key, np.asarray(value, wider))
        target += total.astype(target.dtype)
        return
    if type(value) is not ndarray or value.size < MACHINE.call_elements // 4:
        np.add.at(target, key, value)
        return
    axis = next((i for i, entry in enumerate(key) if type(entry) is not slice), 0)
    if not is_of_places(target, key, axis, value):
        np.add.at(target, key, value)
        return
    places = key[axis].astype(np.intp)
    places[places < 0] += target.shape[axis]
    rows = axis == 0 and value.shape[1:] == target.shape[1:] and all(entry == slice(None) for entry in key[1:])
    if rows and target.flags.c_contiguous:
        add_rows(target, places, value)
        return
    before, whole = key[:axis], (slice(None),) * axis
    for chosen in rounds(places) if value.size >= max(MACHINE.call_elements, ROW * places.size) else [None]:
        if chosen is None:
            np.add.at(target, key, value)
        else:
            target[(*before, places[chosen], *key[axis + 1 :])] += value[(*whole, chosen)]


def is_of_places(target: ndarray[Any, Any], key: tuple[Any, ...], axis: int, value: ndarray[Any, Any]) -> bool:
    """Tell whether an index is slices and an array of places along an axis, which stand for several elements each."""
    places = key[axis]
    return (
        type(places) is ndarray
        and places.ndim == 1
        and places.dtype.kind in "iu"
        and value.dtype == target.dtype
        and value.ndim == target.ndim > 1
        and value.shape[axis] == places.size
        and all(type(entry) is slice for i, entry in enumerate(key) if i != axis)
        and -target.shape[axis] <= places.min()
        and places.max() < target.shape[axis]
    )


def add_rows(target: ndarray[Any, Any], places: ndarray[Any, Any], rows: ndarray[Any, Any]) -> None:
    """Add rows to those of an array at some places, some at a time."""
    width = rows.size // len(rows)
    within, count = np.arange(width), max(BLOCK // width, 1)
    for start in range(0, len(rows), count):
        part = slice(start, start + count)
        elements = places[part, None] * width + within
        np.add.at(target.reshape(-1), elements.reshape(-1), rows[part].reshape(-1))


def rounds(places: ndarray[Any, Any]) -> Iterator[ndarray[Any, Any] | slice | None]:
    """Yield which of the places are named for the first time, the second, ...; None at once if one is named too often.

    >>> [chosen.tolist() for chosen in rounds(np.array([4, 1, 4, 4, 1]))]
    [[0, 1], [2, 4], [3]]
    """
    keys = places.astype(np.int64) * len(places) + np.arange(len(places))  # these differ: any sort keeps equal places
    keys.sort()
    named, order = np.divmod(keys, len(places))
    alike = np.diff(named) == 0
    if not np.count_nonzero(alike):
        yield slice(None)
        return
    since = np.arange(len(places))
    since[1:] -= np.maximum.accumulate(np.where(alike, 0, since[1:]))
    times = np.empty_like(since)
    times[order] = since
    most = since.max()
    if most >= MOST:
        yield None
        return
    for time in range(most + 1):
        yield np.flatnonzero(times == time)
