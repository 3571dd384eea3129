"""Basic indices one after the other, beside permutations of axes, and in place of some reshapes, as one index."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

Entries = tuple[Any, ...]
WHOLE = slice(None)


def composed_index(shape: Sequence[int], first: Entries, second: Entries) -> Entries | None:
    """Return the index that selects of an array what `second` does of what `first` selects; None if there is none.

    >>> composed_index((5, 6), (slice(1, None), 2), (slice(None, None, 2),))
    (slice(1, None, 2), 2)
    >>> composed_index((5, 6), (slice(None, None, -1),), (0, None))
    (4, None, slice(None, None, None))
    """
    selected = entry_per_axis(first, len(shape)) or []
    following = entry_per_axis(second, sum([type(entry) is not int for entry in selected]))
    if following is None:
        return None
    entries: list[Any] = []
    rest = iter(following)
    axes = iter(shape)
    for entry in selected:
        length = 1 if entry is None else next(axes)
        if type(entry) is int:
            entries.append(entry)
            continue
        part = next_part(rest, entries)
        if part == WHOLE:
            entries.append(entry)
            continue
        try:
            found = range(length)[WHOLE if entry is None else entry][part]
        except (IndexError, ValueError):  # as NumPy will say
            return None
        if entry is not None:
            entries.append(found if type(found) is int else slice_of(found, length))
        elif type(found) is not int:
            if not found:
                return None
            entries.append(None)
    entries.extend(rest)
    if len(entries) == len(shape) and Ellipsis in second and all(map(takes_one, entries)):
        entries.append(Ellipsis)  # an array without axes, no scalar
    return tuple(entries)


def takes_one(entry: Any) -> bool:
    """Tell whether an entry of an index takes one element of its axis."""
    return type(entry) is int


def entry_per_axis(index: Entries, rank: int) -> list[Any] | None:
    """Return a basic index with an entry for each axis, whole slices where it says nothing; None if it is no such."""
    entries = list(index)
    place, missing = len(entries), rank
    for i, entry in enumerate(entries):
        kind = type(entry)
        if kind is int or kind is slice:
            missing -= 1
        elif entry is Ellipsis:
            place = i
        elif entry is not None:
            return None
    if missing < 0:
        return None
    entries[place : place + 1] = [WHOLE] * missing
    return None if Ellipsis in entries else entries


def next_part(rest: Iterable[Any], entries: list[Any]) -> Any:
    """Return the next entry of an index for an axis that exists, having put the new axes before it among others."""
    for entry in rest:
        if entry is not None:
            return entry
        entries.append(None)
    return WHOLE


def slice_of(positions: range, length: int) -> slice:
    """Return the slice that selects positions on an axis, its bounds left out where they are the ends.

    >>> slice_of(range(0, 6, 2), 6), slice_of(range(3, -1, -1), 6), slice_of(range(5, 5), 6)
    (slice(None, None, 2), slice(3, None, -1), slice(0, 0, None))
    """
    step = positions.step
    if not positions:
        return slice(0, 0, None if step == 1 else step)
    start, stop = positions.start, positions.stop
    if step > 0:
        return slice(start or None, stop if stop < length else None, None if step == 1 else step)
    return slice(None if start == length - 1 else start, None if stop < 0 else stop, step)


def index_before(axes: Sequence[int], index: Entries) -> tuple[Entries, tuple[int, ...]] | None:
    """Return what selects before a permutation what an index does after it: an index, and a permutation after that.

    >>> index_before((1, 0), (2, slice(1, None)))
    ((slice(1, None, None), 2), (0,))
    """
    entries = entry_per_axis(index, len(axes))
    if entries is None:
        return None
    moved: list[Any] = [WHOLE] * len(axes)
    for axis, entry in zip(axes, [entry for entry in entries if entry is not None], strict=True):
        moved[axis] = entry
    places = [axis for axis, entry in enumerate(moved) if type(entry) is slice]
    count = entries.count(None)
    inserted = iter(range(count))
    sources = iter(axes)
    order = []
    for entry in entries:
        if entry is None:
            order.append(next(inserted))
            continue
        axis = next(sources)
        if type(entry) is slice:
            order.append(count + places.index(axis))
    if not order and Ellipsis in index:
        moved.append(Ellipsis)
    return (*[None] * count, *moved), tuple(order)


def unit_axes(source: Sequence[int], target: Sequence[int]) -> Entries | None:
    """Return the index that inserts and drops axes of length one as a reshape does; None if it does more than that.

    >>> unit_axes((3, 1), (1, 3)), unit_axes((4,), (2, 2))
    ((None, slice(None, None, None), 0), None)
    """
    if [n for n in source if n != 1] != [n for n in target if n != 1]:
        return None
    entries: list[Any] = []
    rest = list(target)
    for n in source:
        while n != 1 and rest[0] == 1:
            entries.append(None)
            del rest[0]
        if rest and rest[0] == n:
            entries.append(WHOLE)
            del rest[0]
        else:
            entries.append(0)
    entries.extend([None] * len(rest))
    return tuple(entries) if target else (*entries, Ellipsis)
