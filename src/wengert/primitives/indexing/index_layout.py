"""Indices as static entries and arrays, and with a batch axis: where NumPy puts the axes of an indexed array.

NumPy calls the arrays of an index (and the integers beside them) advanced. Their broadcast axes stand in the result
where the first of them stood if they are adjacent, and in front of everything else if they are not.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.memory.views import lasting
from wengert.core.values.active_lanes import ACTIVE
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError, describe
from wengert.support.attributes import has_class_attribute

Entries = tuple[Any, ...]
"""The static form of an index."""


class _Operand:
    """Mark the place of an array operand in an index."""

    def __repr__(self) -> str:
        return "array"

    def __reduce__(self) -> str:
        return "OPERAND"


OPERAND = _Operand()


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
    if len(index) == 1:
        return (arrays[0],)
    rest = iter(arrays)
    return tuple(next(rest) if entry is OPERAND else entry for entry in index)


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
    entries, arrays, batched = expanded(rank, index, arrays, batched)
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


def expanded(
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
