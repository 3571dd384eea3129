"""Which rows are at fault: where NaN comes from, and in which partition an exception was raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.distributed.sources import Rows, row_count
from wengert.distributed.sums import COUNTS, Leaves

FLOAT = 4
"""Bytes of the shortest floats that BLAS multiplies."""


def has_nan(leaves: Sequence[Any]) -> bool:
    """Tell whether there is NaN among leaves."""
    return any(map(is_nan, leaves))


def is_nan(leaf: Any) -> bool:
    """Tell whether a number, or one of an array, is NaN."""
    if type(leaf) is not np.ndarray:
        return bool(leaf != leaf)
    if leaf.dtype.kind != "f":
        return leaf.dtype.kind == "c" and bool(np.isnan(leaf).any())
    if not leaf.flags.c_contiguous or leaf.dtype.itemsize < FLOAT:
        return bool(np.isnan(leaf).any())
    flat = leaf.reshape(-1)
    return bool(np.isnan(np.dot(flat, flat)))  # squares do not cancel; in half of the time, without an array of truths


def find_nan_rows(fun: Callable[..., Any], args: Sequence[Any], rows: Rows, most: int | None = None) -> list[int]:
    """Return which rows give NaN, by halves, as many as `most`; none if only some together do."""
    found: list[int] = []
    spans = [(0, row_count(rows))]
    while spans and (most is None or len(found) < most):
        start, stop = spans.pop()
        if start == stop or not has_nan(flatten(fun(*args, *[x[start:stop] for x in rows]))[0]):
            continue
        if stop - start == 1:
            found.append(start)
        else:
            middle = (start + stop) // 2
            spans += [(middle, stop), (start, middle)]
    return found


def without_rows(rows: Rows, numbers: Sequence[int]) -> Rows:
    """Return arrays without some rows."""
    kept = np.ones(row_count(rows), bool)
    kept[list(numbers)] = False
    return tuple([x[kept] for x in rows])


def sum_without_nan(run: Callable[[Rows], Leaves], fun: Callable[..., Any], args: Sequence[Any], rows: Rows) -> Leaves:
    """Return the leaves of a partition without the rows that give NaN, which are counted."""
    with np.errstate(invalid="ignore"):
        leaves = run(rows)
        bad = find_nan_rows(fun, args, rows) if has_nan(leaves[COUNTS:]) else []
    if not bad:
        return leaves
    leaves = run(without_rows(rows, bad))
    return [leaves[0], len(bad), *leaves[COUNTS:]]


def add_place(error: BaseException, place: str) -> None:
    """Add a note to an error about the partition in which it was raised."""
    note = f"in {place}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
