"""Rows that a loop has left behind: items of a list that are rows of one array, so that joining them is that array."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import Any

from wengert.core.values.tensor import Tensor
from wengert.support.caches import WeakIdentityMap
from wengert.support.records import NamedTuple


class LeftRow(NamedTuple):
    """Hold which row of which array a value is, and what the array was when it was made."""

    rows: Tensor
    value: Any
    place: int


class RowRun(NamedTuple):
    """Hold rows of an array, one after the other."""

    rows: Tensor
    first: int
    length: int


KNOWN: WeakIdentityMap[Tensor, LeftRow] = WeakIdentityMap()


def enter_row(item: Tensor, rows: Tensor, place: int) -> Tensor:
    """Enter that a value is a row of an array, and return it."""
    KNOWN[item] = LeftRow(rows, rows._value, place)
    return item


def left_row(item: Any) -> LeftRow | None:
    """Return which row a value is; None if that is not known, or the array has been written to since."""
    found = KNOWN.get(item) if type(item) is Tensor else None
    return found if found is not None and found.rows._value is found.value else None


def runs_of(items: Sequence[Any]) -> list[Any] | None:
    """Return items with those that are rows of one array, one after the other, as a `RowRun`.

    None if there are no two such rows.
    """
    if not len(KNOWN):
        return None
    found: list[Any] = []
    for item in items:
        row = left_row(item)
        if row is None:
            found.append(item)
        elif found and type(found[-1]) is RowRun and follows(found[-1], row):
            found[-1] = found[-1]._replace(length=found[-1].length + 1)
        else:
            found.append(RowRun(row.rows, row.place, 1))
    return found if len(found) < len(items) else None


def follows(run: RowRun, row: LeftRow) -> bool:
    """Tell whether a row is the one after a run."""
    return run.rows is row.rows and run.first + run.length == row.place


def rows_of_run(run: RowRun) -> Tensor:
    """Return the rows of a run as an array."""
    rows, first, length = run
    return rows if length == len(rows) else rows[first : first + length]


def pieces_of(items: list[Any]) -> list[list[Any]]:
    """Return items in pieces: rows of one array, one after the other, and others, each by itself."""
    runs = runs_of(items)
    if runs is None:
        return [items]
    rest = iter(items)
    return [list(islice(rest, run.length if type(run) is RowRun else 1)) for run in runs]


def rows_in_order(items: Sequence[Any]) -> Tensor | None:
    """Return the array of which items are rows one after the other; None if they are not."""
    runs = runs_of(items)
    return rows_of_run(runs[0]) if runs is not None and len(runs) == 1 else None
