"""What is known of the factors of sparse matrices before their elements are: an order, fronts, and where numbers go.

Rows and columns change places alike, so that pivots stand on the diagonal, in an order of minimum degree, that of
SciPy's SuperLU. Columns that have the same elements below them are one front, a small full matrix: it takes what fronts
before it leave, is eliminated as far as its own columns go, and leaves the rest to the next. So all work is done on
rows that lie in memory, as full matrices have them.

Source: I. Duff and J. Reid, The multifrontal solution of indefinite sparse symmetric linear systems, ACM Trans. Math.
Softw. 9, 1983; J. Liu, The role of elimination trees in sparse factorization, SIAM J. Matrix Anal. Appl. 11, 1990.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.support.caches import cached
from wengert.support.machine import MACHINE
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]
WHOLE = MACHINE.line // 8
"""Elements that rows of fronts are made longer to a multiple of: those of the longest vector, a line."""
CALL, ADDED, SUBTRACTED = 600.0, 1.0, 0.15
"""About how many cycles a front takes, an element of it, and an element of a row that is subtracted."""


class Front(NamedTuple):
    """Hold some columns that are eliminated together.

    Attributes:
        rows: in the order of elimination, the front's own columns first.
        width: how many of them are its own.
        children: the numbers of the fronts before it that leave it something.
    """

    rows: Array
    width: int
    children: tuple[int, ...]

    @property
    def rest(self) -> Array:
        """The rows that are left to the next front."""
        return self.rows[self.width :]

    @property
    def cost(self) -> float:
        """About how many cycles it takes."""
        size = whole(len(self.rows))
        return CALL + size * (ADDED * size + SUBTRACTED * self.width * size)


def whole(count: int) -> int:
    """Return how long rows of so many elements are made."""
    return -(-count // WHOLE) * WHOLE


class Fronts:
    """Know how matrices of a pattern, which has the diagonal, are factorised.

    Attributes:
        size: how many rows and columns they have.
        rows, columns: of each element.
        order: which row and column is the first to be eliminated, the second and so on.
        members: the fronts, each after those that leave it something.
        places: where each front stands while it is eliminated, and where what it leaves is kept, one on the other.
        room: how many elements there must be room for at once.
        length: how many elements factors have.
        starts: where each front begins in these.
    """

    def __init__(self, size: int, rows: Array, columns: Array) -> None:
        self.size, self.rows, self.columns = size, rows, columns
        self.order, self.members = fronts_of(size, rows, columns)
        lengths = [factor_length(front) for front in self.members]
        self.starts = np.concatenate([[0], np.cumsum(lengths)]).astype(int)
        self.length = int(self.starts[-1])
        self.places = self.stack_places()

    @property
    def longest(self) -> int:
        """How many rows the largest front has, made longer."""
        return max(whole(len(front.rows)) for front in self.members)

    @property
    def cost(self) -> float:
        """About how many cycles a factorisation takes."""
        return sum(front.cost for front in self.members)

    def stack_places(self) -> list[tuple[int, int]]:
        """Return where each front stands, and where what it leaves is kept; set how much room all take."""
        found: list[tuple[int, int]] = []
        top = self.room = self.longest  # which exchanges of rows take
        for front in self.members:
            base = found[front.children[0]][1] if front.children else top
            found.append((top, base))
            self.room = max(self.room, top + len(front.rows) * whole(len(front.rows)))
            top = base + len(front.rest) * whole(len(front.rest))
        return found

    @cached
    def exchanges(self) -> tuple[Array, Array, Array]:
        """Where factors hold which row each was exchanged with, and what that is at least and at most."""
        widths = np.array([front.width for front in self.members])
        least = np.arange(self.size) - np.repeat(np.cumsum(widths) - widths, widths)
        return np.repeat(self.starts[:-1], widths) + least, least, np.repeat(widths, widths) - 1

    @cached
    def table(self) -> Array:
        """What kernels read, as whole numbers: where each front is described, and these descriptions.

        Of a front: how many rows it has, how many are its own, where it stands, where what it leaves is kept, where its
        factors begin, how many elements of the matrix it has, and of how many fronts before; then its rows, these
        elements and where they go, and of each front before it how many rows that leaves, where, and where these go.
        """
        descriptions = [self.description(n, *parts) for n, parts in enumerate(self.entries)]
        starts = len(descriptions) + np.cumsum([0, *map(len, descriptions[:-1])])
        found = np.concatenate([starts, *descriptions])
        return found.astype(np.int32)

    @cached
    def entries(self) -> list[tuple[Array, Array]]:
        """Return which elements of the matrix each front has, and where they go in it."""
        owners = np.repeat(np.arange(len(self.members)), [front.width for front in self.members])
        place = np.argsort(self.order)
        first, second = place[self.rows], place[self.columns]
        owner = owners[np.minimum(first, second)]
        by_owner = np.argsort(owner, kind="stable")
        bounds = np.searchsorted(owner[by_owner], np.arange(len(self.members) + 1))
        found = []
        for n, front in enumerate(self.members):
            mine = by_owner[bounds[n] : bounds[n + 1]]
            high, low = (np.searchsorted(front.rows, x[mine]) for x in (first, second))
            found.append((mine, high * whole(len(front.rows)) + low))
        return found

    def description(self, n: int, elements: Array, targets: Array) -> Array:
        """Return what kernels read of a front."""
        front, (place, kept) = self.members[n], self.places[n]
        head = [len(front.rows), front.width, place, kept, self.starts[n], len(elements), len(front.children)]
        parts: list[Any] = [head, self.order[front.rows], elements, targets]
        for child in front.children:
            rest = self.members[child].rest
            parts += [[len(rest), self.places[child][1]], np.searchsorted(front.rows, rest)]
        return np.concatenate(parts)


def factor_length(front: Front) -> int:
    """Return how many elements the factors of a front have: exchanges, a square, and what is beside and below it."""
    return front.width * (1 + front.width + 2 * whole(len(front.rest)))


def fronts_of(size: int, rows: Array, columns: Array) -> tuple[Array, list[Front]]:
    """Return the order of elimination, and the fronts, of a pattern that has the diagonal."""
    order = order_of_minimum_degree(size, rows, columns)
    parents = elimination_tree(*symmetric_lines(size, rows, columns, order))
    order = order[postorder(parents)]
    indices, starts = symmetric_lines(size, rows, columns, order)
    parents = elimination_tree(indices, starts)
    structures = column_structures(indices, starts, parents)
    return order, joined_fronts(structures, parents)


def order_of_minimum_degree(size: int, rows: Array, columns: Array) -> Array:
    """Return SuperLU's order of minimum degree, for a pattern made symmetric."""
    from scipy.sparse import coo_array, eye_array
    from scipy.sparse.linalg import splu

    pattern = coo_array((np.full(len(rows), -1.0 / (2 * size)), (rows, columns)), (size, size)).tocsc()
    regular = (pattern + pattern.T + 2.0 * eye_array(size)).tocsc()
    found = splu(regular, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options={"SymmetricMode": True})
    return np.argsort(found.perm_c).astype(np.intp)


def symmetric_lines(size: int, rows: Array, columns: Array, order: Array) -> tuple[Array, Array]:
    """Return the numbers of columns in each row of a pattern made symmetric, in an order, and where rows begin."""
    place = np.argsort(order)
    one, other = place[rows], place[columns]
    pairs = np.unique(np.concatenate([one * size + other, other * size + one]))
    return pairs % size, np.searchsorted(pairs, np.arange(size + 1) * size)


def elimination_tree(indices: Array, starts: Array) -> Array:
    """Return for each column the next one that it changes, -1 for none."""
    size = len(starts) - 1
    parents, ancestors = [-1] * size, [-1] * size
    lines, bounds = indices.tolist(), starts.tolist()
    for i in range(size):
        for k in lines[bounds[i] : bounds[i + 1]]:
            while k != -1 and k < i:
                following, ancestors[k] = ancestors[k], i
                if following == -1:
                    parents[k] = i
                k = following
    return np.array(parents, dtype=np.intp)


def postorder(parents: Array) -> Array:
    """Return an order in which each column stands behind all below it in the tree, these side by side."""
    size = len(parents)
    children: list[list[int]] = [[] for _ in range(size + 1)]
    for column in range(size - 1, -1, -1):
        children[parents[column]].append(column)
    found, waiting = [], [-1]
    while waiting:
        column = waiting.pop()
        found.append(column)
        waiting += reversed(children[column])
    return np.array(found[:0:-1], dtype=np.intp)


def column_structures(indices: Array, starts: Array, parents: Array) -> list[Array]:
    """Return which rows each column of the factor has, from the diagonal on."""
    size = len(parents)
    received: list[list[Array]] = [[] for _ in range(size)]
    found = []
    for column in range(size):
        own = indices[starts[column] : starts[column + 1]]
        rows = own[np.searchsorted(own, column) :]
        if received[column]:
            rows = np.unique(np.concatenate([rows, *received[column]]))
            received[column] = []
        if parents[column] >= 0:
            received[parents[column]].append(rows[1:])
        found.append(rows)
    return found


def joined_fronts(structures: list[Array], parents: Array) -> list[Front]:
    """Return fronts of columns with the same rows, and of others where one takes less time than two."""
    waiting: dict[int, list[int]] = {}
    done: list[Front | None] = []
    for column, rows in enumerate(structures):
        done.append(Front(rows, 1, tuple(waiting.pop(column, ()))))
        if parents[column] >= 0:
            waiting.setdefault(int(parents[column]), []).append(column)
    for column in range(len(structures)):  # each takes the one right before it, if that leaves it what it has
        last = done[column]
        assert last is not None
        while last.children and last.children[-1] == column - last.width:
            before = done[column - last.width]
            assert before is not None
            both = Front(
                np.concatenate([before.rows[: before.width], last.rows]),
                before.width + last.width,
                (*last.children[:-1], *before.children),
            )
            if both.cost > before.cost + last.cost:
                break
            done[column - last.width] = None
            last = both
        done[column] = last
    numbers = np.cumsum([front is not None for front in done]) - 1
    return [f._replace(children=tuple(sorted(int(numbers[c]) for c in f.children))) for f in done if f is not None]
