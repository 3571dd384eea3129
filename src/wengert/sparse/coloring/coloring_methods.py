"""Which colouring a pattern gets: of columns, rows or both, the best of several orders."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from wengert.core.diagnostics.argument_checks import require_choice
from wengert.errors import ShapeError, UsageError
from wengert.sparse.coloring.coloring import Coloring
from wengert.sparse.coloring.greedy_coloring import color_apart, color_stars, mark_repeated
from wengert.sparse.coloring.lattice_coloring import color_lattice
from wengert.sparse.coloring.substitution_coloring import lower_triangle, substitution_of
from wengert.sparse.coloring.vertex_orders import DYNAMIC, ORDERS, order_columns
from wengert.sparse.patterns.pattern import Pattern

Array = np.ndarray[Any, Any]

STRUCTURES = ("general", "symmetric")
RECOVERIES = ("direct", "substitution")
PARTITIONS = ("auto", "columns", "rows", "both")

FEW_PAIRS = 1_000_000
"""Pairs of elements in one row up to which orders by changing degrees, which look at all of them, are tried, too."""
FEW_ELEMENTS = 200_000
"""Elements up to which all orders are tried that do not."""
MUCH_BETTER = 0.75
"""A lower bound, by the number of colours that is known, from which it is worth colouring again."""
UNEVEN = 1.5
"""The largest degree by the mean from which large degrees are better first."""


def color(
    pattern: Any,
    structure: Literal["general", "symmetric"] = "general",
    partition: Literal["auto", "columns", "rows", "both"] = "auto",
    recovery: Literal["direct", "substitution"] = "direct",
    order: str = "auto",
) -> Coloring:
    """Give columns (or rows) of a pattern colours, so that those of one colour can be computed together.

    Columns of one colour have no row in common, so that each element stands alone in a sum of them. Of symmetric
    matrices an element may stand alone at its own place or at the mirrored one, which needs fewer colours (a star
    colouring). With both rows and columns each element stands alone in a sum of columns or in one of rows, which serves
    patterns with some full rows and columns: these get colours of their own.

    Args:
        pattern: a matrix of shape (m, n), dense or of `scipy.sparse`, whose elements other than zero (of sparse ones:
            that are stored) are the pattern.
        structure: "general", or "symmetric" for square matrices that equal their transpose.
        partition: "columns", "rows" or "both" get colours; "auto" for what needs fewest. Of a symmetric structure
            columns do.
        recovery: "direct", so that each element stands alone in a sum, or of a symmetric structure "substitution", by
            which elements are told apart one after the other, with fewer colours and more rounding.
        order: in which columns are coloured: "natural", "largest_first" (by the number of neighbours), or by numbers
            that change meanwhile: "smallest_last", "incidence" (of coloured neighbours) or "dynamic" (the largest
            among those without a colour). "auto" takes the best of several, and knows the colours of stencils.

    Returns:
        A `Coloring`: `count`, `columns`, `rows`, `compress(matrix)` and `recover(compressed)`.

    Raises:
        UsageError: a structure, partition or order is unknown.
        ShapeError: the pattern is no matrix, or not symmetric where it must be.

    Source: A. H. Gebremedhin, F. Manne, A. Pothen, What color is your Jacobian?, SIAM Review 47 (2005); for
    substitution M. J. D. Powell, Ph. L. Toint, On the estimation of sparse Hessian matrices, SIAM J. Numer. Anal. 16
    (1979).

    >>> arrow = np.eye(6, dtype=bool)
    >>> arrow[0] = arrow[:, 0] = True
    >>> color(arrow), color(arrow, partition="columns").count, color(arrow, "symmetric").count
    (<coloring of 6 x 6, 16 elements: 2 of columns and 1 of rows colours>, 6, 2)
    """
    require_choice("sparse.color", "structure", structure, STRUCTURES)
    require_choice("sparse.color", "partition", partition, PARTITIONS)
    require_choice("sparse.color", "recovery", recovery, RECOVERIES)
    require_choice("sparse.color", "order", order, ("auto", *ORDERS))
    given = as_pattern("sparse.color", pattern)
    if structure == "symmetric":
        require_symmetric("sparse.color", given, "Use structure='general', or add what is missing")
        if partition not in ("auto", "columns"):
            action = "Leave partition out"
            needed = "columns get colours where the structure is symmetric"
            raise UsageError("sparse.color", f"partition={partition!r}", needed, action)
        return color_symmetric(given, order) if recovery == "direct" else color_by_substitution(given, order)
    if recovery == "substitution":
        action = "Pass structure='symmetric', or leave recovery out"
        raise UsageError("sparse.color", "recovery='substitution'", "a symmetric structure is needed", action)
    return color_general(given, partition, order)


def as_pattern(name: str, matrix: Any) -> Pattern:
    """Return the pattern of a dense or sparse matrix; raise a ShapeError if it is no matrix."""
    if isinstance(matrix, Pattern):
        return matrix
    if not hasattr(matrix, "tocsr"):
        matrix = np.asarray(matrix)
    if matrix.ndim != 2:
        needed = "a matrix is needed"
        action = "Pass an array with two axes, or one of scipy.sparse"
        raise ShapeError(name, f"a pattern of {matrix.ndim} axes", needed, action)
    if hasattr(matrix, "tocsr"):
        return Pattern.of_scipy(matrix)
    return Pattern.of_pairs(matrix.shape, *np.nonzero(matrix))


def transpose(pattern: Pattern) -> Pattern:
    """Return the transposed pattern."""
    return transpose_with(pattern, np.empty(pattern.count, np.int8))[0]


def transpose_with(pattern: Pattern, values: Array) -> tuple[Pattern, Array]:
    """Return the transposed pattern, and a value of each element in its order."""
    from scipy.sparse import csr_array

    found = csr_array((values, pattern.indices, pattern.indptr), pattern.shape).T.tocsr()
    return Pattern((pattern.shape[1], pattern.shape[0]), found.indptr, found.indices), found.data


def numbers_of(pattern: Pattern) -> Array:
    """Return the numbers of the elements of a pattern."""
    return np.arange(pattern.count, dtype=pattern.indices.dtype)


def with_transpose(pattern: Pattern) -> Pattern:
    """Return the pattern of a matrix and its transpose together."""
    other = transpose(pattern)
    if np.array_equal(other.indptr, pattern.indptr) and np.array_equal(other.indices, pattern.indices):
        return pattern
    return Pattern.of_scipy(pattern.to_scipy() + other.to_scipy())


def require_symmetric(name: str, pattern: Pattern, action: str = "Add what is missing") -> None:
    """Raise a ShapeError unless a pattern equals its transpose."""
    m, n = pattern.shape
    if m != n:
        given = f"a pattern of {m} x {n}"
    else:
        other = transpose(pattern)
        if np.array_equal(other.indptr, pattern.indptr) and np.array_equal(other.indices, pattern.indices):
            return
        at = first_difference(pattern, other)
        given = f"a pattern with ({at[0]}, {at[1]}) and without ({at[1]}, {at[0]})"
    raise ShapeError(name, given, "a symmetric one is needed", action)


def first_difference(pattern: Pattern, other: Pattern) -> tuple[int, int]:
    """Return an element that a pattern has and its transpose has not."""
    extra = (pattern.to_scipy() > other.to_scipy()).tocoo()
    return int(extra.coords[0][0]), int(extra.coords[1][0])


def as_int32(*arrays: Array) -> list[Array]:
    """Return arrays of indices as those that algorithms take."""
    return [np.ascontiguousarray(x, np.int32) for x in arrays]


class Hypergraph:
    """Hold a pattern by columns and by rows, as algorithms take it.

    Attributes:
        arrays: where the rows of each column begin, the rows, where the columns of each row begin, the columns.
        bound: the most elements of a row, which need as many colours.
        pairs: how many pairs of elements share a row, in both orders.
    """

    def __init__(self, pattern: Pattern, other: Pattern) -> None:
        self.pattern = pattern
        self.arrays = as_int32(other.indptr, other.indices, pattern.indptr, pattern.indices)
        lengths = np.diff(pattern.indptr).astype(np.int64)
        self.bound = int(lengths.max(initial=0))
        self.pairs = int((lengths * lengths).sum())

    def orders(self, name: str) -> list[str]:
        """Return the orders to try, in turn."""
        if name != "auto":
            return [name]
        starts, rows, row_starts, _ = self.arrays
        degrees = np.diff(starts)
        lengths = np.diff(row_starts)
        mean = max(lengths.mean(), degrees.mean()) if len(rows) else 1.0
        uneven = max(lengths.max(initial=0), degrees.max(initial=0)) > UNEVEN * mean
        found = ["largest_first", "natural"] if uneven else ["natural", "largest_first"]
        if len(rows) > FEW_ELEMENTS:
            return found[:1]
        return found + (list(DYNAMIC) if self.pairs <= FEW_PAIRS else [])


def best_of(graph: Hypergraph, names: list[str], colored: Callable[[Array], tuple[Array, int]], bound: int) -> Any:
    """Return the colours of the order that needs fewest, and how many; stop at a bound that none is below."""
    best: tuple[Array, int] | None = None
    for name in names:
        found = colored(order_columns(name, *graph.arrays))
        if best is None or found[1] < best[1]:
            best = found
        if best[1] <= bound:
            break
    return best


def best_with_lattice(
    graph: Hypergraph, order: str, colored: Callable[[Array], tuple[Array, int]], bound: int, stencil: Pattern
) -> tuple[Array, int]:
    """Return the fewest colours of some orders, or those of a stencil if the first order gives more, and how many."""
    names = graph.orders(order)
    best: tuple[Array, int] = best_of(graph, names[:1], colored, bound)
    if order == "auto" and best[1] > bound:
        lattice = color_lattice(stencil, int(np.diff(stencil.indptr).max(initial=0)), best[1])
        if lattice is not None:
            return lattice
        rest = best_of(graph, names[1:], colored, bound)
        return rest if rest is not None and rest[1] < best[1] else best
    return best


def color_one_side(pattern: Pattern, other: Pattern, order: str) -> tuple[Array, int]:
    """Colour the columns of a pattern so that those that share a row differ; return how many colours there are, too."""
    graph = Hypergraph(pattern, other)
    if not pattern.count:
        return np.zeros(pattern.shape[1], np.int32), min(1, pattern.shape[1])
    return best_with_lattice(graph, order, lambda chosen: color_apart(chosen, *graph.arrays), graph.bound, pattern)


def color_general(pattern: Pattern, partition: str, order: str) -> Coloring:
    """Return the colouring of a matrix that need not be symmetric."""
    other = transpose(pattern)
    bounds = [int(np.diff(side.indptr).max(initial=0)) for side in (pattern, other)]
    best: Coloring | None = None
    if partition == "both" or (partition == "auto" and is_bordered(pattern, other, min(bounds))):
        best = color_both(pattern, order)
    sides = {"columns": (0,), "rows": (1,), "both": (), "auto": (0, 1) if bounds[0] <= bounds[1] else (1, 0)}
    for side in sides[partition]:
        if best is None or bounds[side] < (best.count if pattern.count <= FEW_ELEMENTS else MUCH_BETTER * best.count):
            found = color_columns(pattern, other, order) if side == 0 else color_rows(pattern, other, order)
            if best is None or found.count < best.count:
                best = found
    assert best is not None
    return best


def is_bordered(pattern: Pattern, other: Pattern, bound: int) -> bool:
    """Tell whether few rows and columns have so many elements that both sides may need fewer colours than one."""
    degrees = np.concatenate([np.diff(pattern.indptr), np.diff(other.indptr)])
    own = hubs_of(degrees)
    return bool(own.any() and own.sum() + degrees[~own].max(initial=0) < MUCH_BETTER * bound)


def color_columns(pattern: Pattern, other: Pattern, order: str) -> Coloring:
    """Return a colouring of columns."""
    colours, count = color_one_side(pattern, other, order)
    places = np.ones(pattern.count, bool), pattern.rows, colours[pattern.indices]
    return Coloring(pattern, "general", (colours, count), None, places)


def color_rows(pattern: Pattern, other: Pattern, order: str) -> Coloring:
    """Return a colouring of rows."""
    colours, count = color_one_side(other, pattern, order)
    places = np.zeros(pattern.count, bool), pattern.indices, colours[pattern.rows]
    return Coloring(pattern, "general", None, (colours, count), places)


def hubs_of(degrees: Array) -> Array:
    """Tell which vertices get colours of their own: their number and the largest other degree are least.

    None do unless that is much less than the largest degree: of vertices of similar degrees, hubs share colours, too.
    """
    if not len(degrees):
        return np.zeros(0, bool)
    values, counts = np.unique(degrees, return_counts=True)
    sums = counts[::-1].cumsum()[::-1] - counts + values
    is_worth_it = sums.min() < MUCH_BETTER * values[-1]
    return np.asarray(degrees > (values[np.argmin(sums)] if is_worth_it else values[-1]))


def color_graph(starts: Array, neighbours: Array, order: str, stencil: Pattern) -> tuple[Array, int]:
    """Return a star colouring of a graph, and how many colours there are; hubs have colours of their own.

    Colours by which the columns of `stencil` that share a row differ are a star colouring, too.
    """
    starts, neighbours = as_int32(starts, neighbours)
    degrees = np.diff(starts)
    own = hubs_of(degrees)
    others = np.flatnonzero(~own)
    if own.any():
        kept = ~np.repeat(own, degrees) & ~own[neighbours]
        neighbours = np.ascontiguousarray(neighbours[kept])
        starts = np.concatenate([[0], np.cumsum(kept)])[starts].astype(np.int32)
    count = len(degrees)
    pattern = Pattern((count, count), starts, neighbours)
    graph = Hypergraph(pattern, pattern)

    def color_rest(chosen: Array) -> tuple[Array, int]:
        colours, found = color_stars(np.ascontiguousarray(chosen[~own[chosen]]), starts, neighbours)
        colours[own] = found + np.arange(count - len(others))
        return colours, found + count - len(others)

    return best_with_lattice(graph, order, color_rest, min(2, len(others)) + count - len(others), stencil)


def color_symmetric(pattern: Pattern, order: str) -> Coloring:
    """Return the colouring of a symmetric matrix."""
    rows = pattern.rows
    apart = rows != pattern.indices
    starts = np.concatenate([[0], np.cumsum(apart)])[pattern.indptr]
    colours, count = color_graph(starts, pattern.indices[apart], order, pattern)
    repeated = mark_repeated(pattern.indptr, pattern.indices, colours, count)
    line, group = np.where(repeated, pattern.indices, rows), colours[np.where(repeated, rows, pattern.indices)]
    return Coloring(pattern, "symmetric", (colours, count), None, (np.ones(pattern.count, bool), line, group))


def color_by_substitution(pattern: Pattern, order: str) -> Coloring:
    """Return the colouring of a symmetric matrix whose elements are told apart one after the other."""
    other, mirror = transpose_with(pattern, numbers_of(pattern))
    arrays = Hypergraph(pattern, other).arrays
    names = ("natural", "smallest_last") if order == "auto" else (order,)
    best: tuple[Array, int, Array] | None = None
    for name in names:
        ranked = order_columns(name, *arrays)
        triangle = lower_triangle(pattern, ranked)[0]
        colours, count = color_one_side(triangle, transpose(triangle), order)
        if best is None or count < best[1]:
            best = colours, count, ranked
    assert best is not None
    return substitution_of(pattern, mirror, *best)


def color_both(pattern: Pattern, order: str) -> Coloring:
    """Return a colouring of rows and columns: a star colouring of the graph with an edge for each element."""
    m = pattern.shape[0]
    other, back = transpose_with(pattern, numbers_of(pattern))
    starts = np.concatenate([pattern.indptr, pattern.indptr[-1] + other.indptr[1:]])
    neighbours = np.concatenate([pattern.indices + m, other.indices])
    colours, count = color_graph(starts, neighbours, order, Pattern((0, 0), np.zeros(1, np.int32), starts[:0]))
    repeated = mark_repeated(starts, neighbours, colours, count)
    alone_by_column = ~repeated[: pattern.count]
    alone_by_row = np.empty(pattern.count, bool)
    alone_by_row[back] = ~repeated[pattern.count :]
    of_rows, of_columns = colours[:m][pattern.rows], colours[m:][pattern.indices]
    used_columns, used_rows = needed_colours(of_columns, of_rows, alone_by_column, alone_by_row, count)
    by_column = alone_by_column & used_columns[of_columns]
    numbers = [np.where(used, np.cumsum(used) - 1, -1).astype(np.int32) for used in (used_columns, used_rows)]
    group = np.where(by_column, numbers[0][of_columns], numbers[1][of_rows])
    line = np.where(by_column, pattern.rows, pattern.indices)
    columns = (numbers[0][colours[m:]], int(used_columns.sum()))
    rows = (numbers[1][colours[:m]], int(used_rows.sum()))
    chosen = columns if columns[1] or not rows[1] else None, rows if rows[1] else None
    return Coloring(pattern, "general", *chosen, (by_column, line, group))


def needed_colours(columns: Array, rows: Array, by_column: Array, by_row: Array, count: int) -> tuple[Array, Array]:
    """Return which colours of columns and which of rows are used, so that each element stands alone in one of them.

    Args:
        columns: the colour of the column of each element.
        rows: that of its row.
        by_column: whether it stands alone among the columns of that colour.
        by_row: whether it does among the rows.
        count: how many colours there are.
    """
    used_columns, used_rows = np.zeros(count, bool), np.zeros(count, bool)
    used_columns[columns[by_column & ~by_row]] = True
    used_rows[rows[by_row & ~by_column]] = True
    free = by_column & by_row & ~used_columns[columns] & ~used_rows[rows]
    while free.any():
        of_columns, of_rows = np.bincount(columns[free], minlength=count), np.bincount(rows[free], minlength=count)
        if of_columns.max() >= of_rows.max():
            used_columns[of_columns.argmax()] = True
        else:
            used_rows[of_rows.argmax()] = True
        free &= ~used_columns[columns] & ~used_rows[rows]
    return used_columns, used_rows
