"""Which rows are at fault: where NaN comes from, and in which partition an exception was raised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.distributed.sources import Rows, row_count

ALONE = 10_000
"""Elements of vectors up to which BLAS multiplies them on the thread that asks."""


def has_nan(leaves: Sequence[Any]) -> bool:
    """Tell whether there is NaN among numbers and arrays of them."""
    for leaf in leaves:
        number = leaf
        if type(leaf) is np.ndarray:
            if leaf.ndim == 1 and leaf.size <= ALONE and leaf.dtype.char in "fd":
                number = leaf.dot(leaf)  # squares: 1 us less
            else:
                number = np.minimum.reduce(leaf, axis=None) if leaf.size else 0.0
        if number != number:
            return True
    return False


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


def add_place(error: BaseException, place: str) -> None:
    """Add a note to an error about the partition in which it was raised."""
    note = f"in {place}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
