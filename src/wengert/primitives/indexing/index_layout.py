"""Indices as static entries and arrays, and with a batch axis: where NumPy puts the axes of an indexed array.

NumPy calls the arrays of an index (and the integers beside them) advanced. Their broadcast axes stand in the result
where the first of them stood if they are adjacent, and in front of everything else if they are not.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.identity import Composite
from wengert.core.memory.views import lasting
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.execution_state import ACTIVE
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError, describe
from wengert.support.attributes import has_class_attribute
from wengert.support.records import NamedTuple

Entries = tuple[Any, ...]
"""The static form of an index."""


class _Operand(Composite):
    """Mark the place of an array operand in an index."""

    def __repr__(self) -> str:
        return "array"

    def __reduce__(self) -> str:
        return "OPERAND"

    def structure(self) -> tuple[()]:
        """Return what it is made of: nothing."""
        return ()


OPERAND = _Operand()
WHOLE = slice(None)
PLACES = np.dtype(np.intp)


def static_index(index: Any, arrays: bool = False) -> Entries | None:
    """Return an index of integers, slices, None and ellipses as a tuple; None if anything else is in it.

    Args:
        index: what stands in brackets.
        arrays: whether ndarrays of integers or booleans with axes may be in it, too.

    >>> static_index(slice(1, None)), static_index((0, [1]))
    ((slice(1, None, None),), None)
    """
    if type(index) is not tuple:
        index = (index,)
    for entry in index:
        kind = type(entry)
        if kind is slice:
            if (
                ((bound := entry.start) is not None and type(bound) is not int)
                or ((bound := entry.stop) is not None and type(bound) is not int)
                or ((bound := entry.step) is not None and type(bound) is not int)
            ):
                return None
        elif kind is ndarray:
            if not arrays or not entry.ndim or (entry.dtype is not PLACES and entry.dtype.kind not in "iub"):
                return None
        elif kind is not int and entry is not None and entry is not Ellipsis:
            return None
    return index  # type: ignore[no-any-return]  # a tuple by now


def without_arrays(index: Entries) -> Entries:
    """Return an index with what stands for operands in place of its arrays."""
    return tuple([OPERAND if type(entry) is np.ndarray else entry for entry in index])


def is_whole(entry: Any) -> bool:
    """Tell whether an entry of an index leaves nothing out, and nothing but axes of length one changes."""
    return entry is None or entry is Ellipsis or entry == WHOLE


def are_together(entries: Entries) -> bool:
    """Tell whether the arrays and integers of an index stand side by side: what they select then stays in its place."""
    places = [i for i, entry in enumerate(entries) if type(entry) is np.ndarray or type(entry) is int]
    return not places or places[-1] - places[0] == len(places) - 1


def split_index(index: Any) -> tuple[Entries, list[Any]]:
    """Split a NumPy index into its static form, with `OPERAND` in place of arrays, and those arrays.

    >>> split_index((slice(2), [0, 1]))
    ((slice(None, 2, None), array), [array([0, 1])])
    """
    arrays: list[Any] = []
    entries = []
    for entry in index if isinstance(index, tuple) else (index,):
        kind = type(entry)
        if kind is int or entry is None or entry is Ellipsis:
            entries.append(entry)
        elif kind is slice:
            entries.append(fixed_slice(entry))
        elif kind is Tensor and not (entry.ndim == 0 and entry._trace is None and entry.dtype.kind in "iu"):
            entries.append(OPERAND)
            found = lasting(entry)  # what is recorded may need the index as it is now
            arrays.append(found if ACTIVE.fill is None else ACTIVE.fill(found))
        elif isinstance(entry, list | tuple | range | np.ndarray | bool | np.bool_) or is_of_another_library(entry):
            entries.append(OPERAND)
            if isinstance(entry, list | tuple) and any(type(x) is Tensor for x in flatten(entry)[0]):
                arrays.append(as_tensor(entry))  # whose elements may not be there yet: A[[k, p]] = A[[p, k]]
                continue
            array = np.asarray(entry)
            arrays.append(array if array.size or kind is np.ndarray else array.astype(np.intp))
        else:
            entries.append(operator.index(entry) if has_class_attribute(type(entry), "__index__") else entry)
    return tuple(entries), arrays


def is_of_another_library(entry: Any) -> bool:
    """Tell whether NumPy makes an array of an entry that is none: a column of pandas, for instance."""
    return has_class_attribute(type(entry), "__array__") and not isinstance(entry, np.generic | Tensor)


def fixed_slice(entry: slice) -> slice:
    """Return a slice whose bounds are Python integers, which nobody can change later."""
    bounds = (entry.start, entry.stop, entry.step)
    if all(bound is None or type(bound) is int for bound in bounds):
        return entry
    return slice(*(bound if bound is None else operator.index(bound) for bound in bounds))


def join_index(index: Entries, arrays: Sequence[Any]) -> Any:
    """Put the arrays back into the static form of an index."""
    if not arrays:
        return index
    if len(index) == len(arrays):
        return tuple(arrays)
    rest = iter(arrays)
    return tuple([next(rest) if entry is OPERAND else entry for entry in index])


class BatchedIndex(NamedTuple):
    """Hold an index for a batched array.

    `source` and `target` are the axes to move (as for `numpy.moveaxis`) in what it selects, so that the batch axis
    comes first and the others stand as in one lane; `rank` is the number of axes that one lane selects.
    """

    entries: Entries
    arrays: list[Any]
    source: tuple[int, ...]
    target: tuple[int, ...]
    rank: int


def batched_index(
    size: int, rank: int, index: Entries, arrays: Sequence[Any], batched: Sequence[bool], whole: bool
) -> BatchedIndex:
    """Return the index that selects in every lane what `index` selects in one.

    Args:
        size: the number of lanes.
        rank: the number of axes of one lane of the indexed array.
        index: the static form of the index, with `OPERAND` for arrays.
        arrays: the arrays.
        batched: which arrays have a batch axis in front.
        whole: whether the indexed array has one.
    """
    entries, arrays, batched = expand_index(rank, index, arrays, batched)
    selected = sum(entry is None or isinstance(entry, slice) for entry in entries)
    if not arrays:
        return BatchedIndex((slice(None), *entries), [], (), (), selected)
    places = [i for i, entry in enumerate(entries) if entry is OPERAND or isinstance(entry, int)]
    before = sum(not (entry is OPERAND or isinstance(entry, int)) for entry in entries[: places[0]])
    adjacent = places[-1] - places[0] + 1 == len(places)
    depth = max(len(shape_of(a)) - flag for a, flag in zip(arrays, batched, strict=True))
    total = selected + depth
    if not any(batched):
        moved = () if adjacent else (depth,)
        return BatchedIndex((slice(None), *entries), list(arrays), moved, (0,) * len(moved), total)
    arrays = [
        a.reshape(size, *(1,) * (depth + 1 - a.ndim), *a.shape[1:]) if f else a
        for a, f in zip(arrays, batched, strict=True)
    ]
    if not whole:
        moved = (before,) if adjacent and before else ()
        return BatchedIndex(tuple(entries), arrays, moved, (0,) * len(moved), total)
    lanes = np.arange(size).reshape(size, *(1,) * depth)
    source: tuple[int, ...] = ()
    target: tuple[int, ...] = ()
    if adjacent and before:
        source = tuple(range(1, 1 + depth))
        target = tuple(range(1 + before, 1 + before + depth))
    return BatchedIndex((OPERAND, *entries), [lanes, *arrays], source, target, total)


def expand_index(
    rank: int, index: Entries, arrays: Sequence[Any], batched: Sequence[bool]
) -> tuple[list[Any], list[Any], list[bool]]:
    """Return an index without Ellipsis and without boolean arrays."""
    consumed = 0
    rest = iter(zip(arrays, batched, strict=True))
    entries: list[Any] = []
    found: list[Any] = []
    flags: list[bool] = []
    for entry in index:
        if entry is not OPERAND:
            entries.append(entry)
            consumed += entry is not None and entry is not Ellipsis
            continue
        array, flag = next(rest)
        if array.dtype.kind != "b":
            consumed += 1
            entries.append(OPERAND)
            found.append(array)
            flags.append(flag)
            continue
        if flag:
            raise UsageError(text_of_masks())
        if array.ndim == 0:
            if not array or len(arrays) > 1 or any(isinstance(other, int) for other in index):
                given = "a single boolean as an index, which is False or beside other indices"
                raise UsageError("vmap", given, "an array or None is needed", "Write None for True")
            entries.append(None)
            continue
        consumed += array.ndim
        for positions in np.nonzero(array):
            entries.append(OPERAND)
            found.append(positions)
            flags.append(False)
    fill = [slice(None)] * (rank - consumed)
    place = next((i for i, entry in enumerate(entries) if entry is Ellipsis), len(entries))
    entries[place : place + 1] = fill
    return entries, found, flags


def text_of_masks() -> str:
    """Return the text of the error about a mask whose lanes may choose different numbers of elements."""
    given = "a boolean mask that differs from lane to lane as an index"
    needed = "an index that selects as many elements in every lane is needed"
    return describe("vmap", given, needed, "Use wengert.numpy.where")


# Basic indices one after the other, beside permutations of axes, and in place of some reshapes, as one index


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
