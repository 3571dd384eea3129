"""Greedy colouring: vertex by vertex in an order, each gets the least colour that it may have.

Each algorithm stands here once in Python, whose integers are sets of colours, and once in `native_coloring`, which runs
it a tenfold as fast; both give the same colours. Sets are kept with rows and vertices, so that each stored entry is
looked at twice, whatever the degrees.

Source: A. H. Gebremedhin, F. Manne, A. Pothen, What color is your Jacobian? Graph coloring for computing derivatives,
SIAM Review 47 (2005); A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, New acyclic and star coloring algorithms
with application to computing Hessians, SIAM J. Sci. Comput. 29 (2007).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.sparse.coloring import native_coloring
from wengert.sparse.coloring.native_coloring import LIST_LENGTH, WORD

Array = np.ndarray[Any, Any]

MOST_WORDS = 1 << 26
"""Words of 64 bits for all sets of colours: half a gigabyte."""


def color_apart(order: Array, starts: Array, rows: Array, row_starts: Array, columns: Array) -> tuple[Array, int]:
    """Colour columns so that those that share a row differ (distance-2 colouring).

    Args:
        order: the columns in the order in which they are coloured, of dtype int32, as all arrays are.
        starts: where the rows of each column begin.
        rows: of the columns, one after the other.
        row_starts: where the columns of each row begin.
        columns: of the rows, one after the other.

    Returns:
        The colour of each column, and how many there are.
    """
    functions = native_coloring.functions()
    if functions is None:
        return color_apart_in_python(order, starts, rows)
    bound = int(np.diff(row_starts).max(initial=1))
    words = (bound + WORD - 1) // WORD
    while True:
        owners = set_owners(np.diff(row_starts), words)
        count = int(owners.max(initial=-1)) + 1
        if count * words > MOST_WORDS:
            return color_apart_in_python(order, starts, rows)
        colours = np.full(len(starts) - 1, -1, np.int32)
        sets, taken = np.zeros(max(count * words, 1), np.int64), np.zeros(words, np.int64)
        arguments = len(order), order, starts, rows, row_starts, columns, owners, colours, sets, taken, words
        found = functions["color_apart"](*arguments)
        if found >= 0:
            return colours, found
        words *= 2


def set_owners(lengths: Array, words: int) -> Array:
    """Return the number of each row among those that have a set of colours, which are all unless sets are large."""
    if words <= LIST_LENGTH // 4:
        return np.arange(len(lengths), dtype=np.int32)
    long = lengths > LIST_LENGTH
    return np.where(long, np.cumsum(long) - 1, -1).astype(np.int32)


def color_apart_in_python(order: Array, starts: Array, rows: Array) -> tuple[Array, int]:
    """Do what `color_apart` does."""
    sets = [0] * (int(rows.max(initial=0)) + 1)
    colours = np.full(len(starts) - 1, -1, np.int32)
    bounds, listed = starts.tolist(), rows.tolist()
    most = 0
    for v in order.tolist():
        mine = listed[bounds[v] : bounds[v + 1]]
        taken = 0
        for row in mine:
            taken |= sets[row]
        bit = ~taken & (taken + 1)
        for row in mine:
            sets[row] |= bit
        colours[v] = chosen = bit.bit_length() - 1
        most = max(most, chosen + 1)
    return colours, most


def color_stars(order: Array, starts: Array, neighbours: Array) -> tuple[Array, int]:
    """Colour vertices so that neighbours differ and no path of four vertices has two colours (star colouring).

    Neighbours of a vertex without a colour differ, too, so that it is a hub of none when its turn comes: in patterns at
    random fewer colours are needed than where that is asked of vertices with colours alone.

    Args:
        order: the vertices in the order in which they are coloured; others have no neighbours, and the colour -1.
        starts: where the neighbours of each vertex begin.
        neighbours: of the vertices, one after the other, each edge from both ends and none to itself.

    Returns:
        The colour of each vertex, and how many there are.
    """
    functions = native_coloring.functions()
    count, words = len(starts) - 1, 1
    while functions is not None and count * words <= MOST_WORDS:
        colours = np.full(count, -1, np.int32)
        near, twice, hubs = (np.zeros(max(count, 1) * words, np.int64) for _ in range(3))
        taken = np.zeros(words, np.int64)
        found = functions["color_stars"](
            len(order), order, starts, neighbours, colours, near, twice, hubs, taken, words
        )
        if found >= 0:
            return colours, found
        words *= 2
    return StarColoring(starts, neighbours).color(order)


class StarColoring:
    """Do what `color_stars` does.

    Attributes:
        colours: of each vertex, -1 before it has one.
        near: the set of the colours of its neighbours.
        twice: those that two of them have, so that it is the hub of a star, once it has a colour.
        hubs: the colours of hubs of which it is a spoke.
    """

    def __init__(self, starts: Array, neighbours: Array) -> None:
        self.starts, self.neighbours = starts.tolist(), neighbours.tolist()
        count = len(starts) - 1
        self.colours = [-1] * count
        self.near, self.twice, self.hubs = ([0] * count for _ in range(3))

    def color(self, order: Array) -> tuple[Array, int]:
        """Colour all vertices; return their colours, and how many there are."""
        most = 0
        for v in order.tolist():
            neighbours = self.neighbours[self.starts[v] : self.starts[v + 1]]
            taken = self.near[v]
            for w in neighbours:
                taken |= self.hubs[w] if self.colours[w] >= 0 else self.near[w]
            bit = ~taken & (taken + 1)
            chosen = bit.bit_length() - 1
            for w in neighbours:
                if self.colours[w] >= 0 and self.near[w] & bit:
                    self.enter_hub(v, w, chosen)
                self.near[w] |= bit
            self.colours[v] = chosen
            most = max(most, chosen + 1)
        return np.array(self.colours, np.int32), most

    def enter_hub(self, v: int, w: int, chosen: int) -> None:
        """Note that a vertex of which another neighbour has that colour is the hub of one that is being coloured."""
        bit, other = 1 << chosen, 1 << self.colours[w]
        self.hubs[v] |= other
        if not self.twice[w] & bit:
            self.twice[w] |= bit
            for x in self.neighbours[self.starts[w] : self.starts[w + 1]]:
                if self.colours[x] == chosen:
                    self.hubs[x] |= other


def mark_repeated(starts: Array, neighbours: Array, colours: Array, count: int) -> Array:
    """Tell of each neighbour of each vertex, in their order, whether another neighbour of that vertex has its colour.

    Args:
        starts: where the neighbours of each vertex begin.
        neighbours: of the vertices, one after the other.
        colours: of what the neighbours are.
        count: how many colours there are.
    """
    functions = native_coloring.functions()
    if functions is None:
        vertices = np.repeat(np.arange(len(starts) - 1, dtype=np.int64), np.diff(starts))
        keys = vertices * count + colours[neighbours]
        _, inverse, counts = np.unique(keys, return_inverse=True, return_counts=True)
        return np.asarray(counts[inverse] > 1)
    repeated = np.zeros(len(neighbours), np.int8)
    seen, again = np.zeros(count + 1, np.int64), np.zeros(count + 1, np.int64)
    arrays = [np.ascontiguousarray(x, np.int32) for x in (starts, neighbours, colours)]
    functions["mark_repeated"](len(starts) - 1, *arrays, seen, again, repeated)
    return repeated.view(bool)
