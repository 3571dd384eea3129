"""Orders in which greedy colouring takes the columns of a pattern.

Source: D. W. Matula, L. L. Beck, Smallest-last ordering and clustering and graph coloring algorithms, J. ACM 30 (1983);
T. F. Coleman, J. J. Moré, Estimation of sparse Jacobian matrices and graph coloring problems, SIAM J. Numer. Anal. 20
(1983), for incidence degrees.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.sparse.coloring import native_coloring
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]

LONGEST_ROW = 1000
"""Elements of a row from which it counts in no degree: it is the same for all its columns, and takes too long."""


class Degrees(NamedTuple):
    """How an order follows degrees that change while columns are taken.

    Attributes:
        search: 1 to take the least degree next, -1 for the largest.
        change: what a column's degree changes by when one that shares a row with it is taken.
        backwards: whether what is taken last comes first.
    """

    search: int
    change: int
    backwards: bool


DYNAMIC = {
    "smallest_last": Degrees(1, -1, True),
    "incidence": Degrees(-1, 1, False),
    "dynamic": Degrees(-1, -1, False),
}
ORDERS = ("natural", "largest_first", *DYNAMIC)


def order_columns(name: str, starts: Array, rows: Array, row_starts: Array, columns: Array) -> Array:
    """Return the columns of a pattern in an order, as int32.

    Args:
        name: one of `ORDERS`.
        starts: where the rows of each column begin.
        rows: of the columns, one after the other.
        row_starts: where the columns of each row begin.
        columns: of the rows, one after the other.
    """
    count = len(starts) - 1
    if name == "natural":
        return np.arange(count, dtype=np.int32)
    degrees = count_neighbours(starts, rows, row_starts)
    if name == "largest_first":
        keys = degrees.max(initial=0) - degrees
        few = keys.max(initial=0) < 1 << 16  # sorted by digits
        return np.argsort(keys.astype(np.uint16) if few else keys, kind="stable").astype(np.int32)
    how = DYNAMIC[name]
    keys = np.zeros(count, np.int32) if how.change > 0 else degrees
    functions = native_coloring.functions()
    if functions is None:
        order = take_by_degree(keys.tolist(), how, starts, rows, row_starts, columns)
    else:
        order = np.empty(count, np.int32)
        lists = linked_lists(keys, int(degrees.max(initial=0)) + 1)
        first = 0 if how.search > 0 else int(keys.max(initial=0))
        where = starts, rows, row_starts, columns
        arguments = count, first, how.search, how.change, LONGEST_ROW, *where, keys.copy(), *lists, order
        functions["order_by_degree"](*arguments)
    return np.ascontiguousarray(order[::-1]) if how.backwards else order


def count_neighbours(starts: Array, rows: Array, row_starts: Array) -> Array:
    """Return with how many other columns each column shares rows, once for each row; long rows do not count."""
    from scipy.sparse import csr_array

    lengths = np.diff(row_starts)
    weights = np.where(lengths > LONGEST_ROW, 0, lengths - 1).astype(np.int32)
    by_columns = csr_array((np.ones(len(rows), np.int32), rows, starts), (len(starts) - 1, len(lengths)))
    return np.asarray(by_columns @ weights)


def linked_lists(keys: Array, count: int) -> tuple[Array, Array, Array]:
    """Return lists of what has each key: the first of each, and what follows and what is before each; -1 is none."""
    heads = np.full(count, -1, np.int32)
    following, before = np.full(len(keys), -1, np.int32), np.full(len(keys), -1, np.int32)
    order = np.argsort(keys, kind="stable").astype(np.int32)
    ranked = keys[order]
    first = np.ones(len(keys), bool)
    first[1:] = ranked[1:] != ranked[:-1]
    heads[ranked[first]] = order[first]
    same = ~first[1:]
    following[order[:-1][same]] = order[1:][same]
    before[order[1:][same]] = order[:-1][same]
    return heads, following, before


def take_by_degree(
    keys: list[int], how: Degrees, starts: Array, rows: Array, row_starts: Array, columns: Array
) -> Array:
    """Return columns in the order in which their changing keys are the least, or the largest.

    Do what `native_coloring.order_by_degree` does; of equal keys the last one that changed comes first.
    """
    lists: dict[int, dict[int, None]] = {}
    for v in reversed(range(len(keys))):
        lists.setdefault(keys[v], {})[v] = None
    bounds, listed = starts.tolist(), rows.tolist()
    row_bounds, row_lists = row_starts.tolist(), columns.tolist()
    at = 0 if how.search > 0 else max(keys, default=0)
    order = []
    for _ in range(len(keys)):
        while not lists.get(at):
            at += how.search
        v, _none = lists[at].popitem()
        keys[v] = -1
        order.append(v)
        for row in listed[bounds[v] : bounds[v + 1]]:
            low, high = row_bounds[row], row_bounds[row + 1]
            for u in row_lists[low:high] if high - low <= LONGEST_ROW else ():
                if keys[u] >= 0:
                    del lists[keys[u]][u]
                    keys[u] += how.change
                    lists.setdefault(keys[u], {})[u] = None
                    if (at - keys[u]) * how.search > 0:
                        at = keys[u]
    return np.array(order, np.int32)
