"""Colours of stencils: weights of the coordinates of a grid, modulo the number of colours.

Greedy colouring of a five-point stencil ends with seven colours or more, where (x + 2 y) mod 5 does with five. So where
a pattern has few diagonals, the strides of a grid are read from them, and weights are searched by which the columns of
each sort of row get different colours. Whether they do is decided by the pattern itself, whatever the strides are.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert.sparse.coloring.greedy_coloring import mark_repeated
from wengert.sparse.patterns.pattern import Pattern

Array = np.ndarray[Any, Any]

MOST_DIAGONALS = 62
MOST_SORTS = 512
"""Sorts of rows, by which of the diagonals they have elements on."""
SAMPLE = 256
"""Rows that are looked at beside those."""
FIRST_ROWS = 1000
"""Rows that are looked at before all others, whose diagonals may be too many."""
MOST_TRIALS = 4
"""Weights that fit the sample, and are tried with all rows."""
MOST_WEIGHTS = 4096
"""Weights that are tried for a number of colours."""
MOST_COLOURS = 64
DIMENSIONS = 4


def color_lattice(pattern: Pattern, least: int, most: int) -> tuple[Array, int] | None:
    """Colour the columns of a pattern so that those that share a row differ, if it is that of a stencil.

    Args:
        pattern: the pattern.
        least: the number of colours to begin with: the most elements of a row.
        most: the number of colours that is too large.

    Returns:
        The colour of each column, and how many there are; None if none are found.
    """
    most = min(most, MOST_COLOURS)
    if not 0 < least < most:
        return None
    first = slice(int(pattern.indptr[min(FIRST_ROWS, pattern.shape[0])]))
    rows = np.repeat(np.arange(min(FIRST_ROWS, pattern.shape[0])), np.diff(pattern.indptr[: FIRST_ROWS + 1]))
    if present(pattern.indices[first] - rows + pattern.shape[0]) is None:  # as of most that are no stencils
        return None
    rows = pattern.rows
    diagonals = present(pattern.indices - rows + pattern.shape[0])
    if diagonals is None:
        return None
    offsets = diagonals - pattern.shape[0]
    columns = np.arange(pattern.shape[1])
    for colours in range(least, most):
        if len(np.unique(offsets % colours)) == len(offsets):
            most, found = colours, (columns % colours).astype(np.int32)
            break
    else:
        found = None
    if least == most:
        return (found, most) if found is not None else None
    weighted = color_grid(
        pattern, sorts_of_rows(pattern, rows, offsets), grid_strides(offsets, pattern.shape[1]), least, most
    )
    return weighted or (None if found is None else (found, most))


def sorts_of_rows(pattern: Pattern, rows: Array, offsets: Array) -> Array:
    """Return some rows of a pattern: one for each set of diagonals that rows have elements on, and a sample."""
    m, n = pattern.shape
    number = np.zeros(m + n, np.int64)
    number[offsets + m] = np.int64(1) << np.arange(len(offsets))
    full = np.flatnonzero(np.diff(pattern.indptr))
    masks = np.bitwise_or.reduceat(number[pattern.indices - rows + m], pattern.indptr[full])
    first = np.unique(masks, return_index=True)[1]
    return np.unique(full[np.concatenate([first, np.arange(0, len(full), max(1, len(full) // SAMPLE))])])


def present(numbers: Array) -> Array | None:
    """Return which numbers, none of them negative, occur; None if they are too many."""
    found = np.flatnonzero(np.bincount(numbers))
    return found if len(found) <= MOST_DIAGONALS else None


def grid_strides(offsets: Array, count: int) -> list[int]:
    """Return the strides of a grid, read from the diagonals of a stencil on it.

    Diagonals come in clusters around the strides, each not wider than the one before allows; of a cluster what divides
    the number of all columns is preferred, then its middle.
    """
    strides: list[int] = [1]
    rest = [int(d) for d in np.unique(np.abs(offsets)) if d > 1]
    reach = 1
    while rest and len(strides) < DIMENSIONS:
        cluster = [rest[0]]
        while len(cluster) < len(rest) and rest[len(cluster)] - cluster[-1] <= reach:
            cluster.append(rest[len(cluster)])
        middle = (cluster[0] + cluster[-1]) / 2
        fitting = [d for d in cluster if count % d == 0 and d % strides[-1] == 0]
        strides.append(min(fitting or cluster, key=lambda d: (abs(d - middle), -d)))
        reach, rest = cluster[-1], rest[len(cluster) :]
    return strides


def color_grid(pattern: Pattern, sample: Array, strides: list[int], least: int, most: int) -> tuple[Array, int] | None:
    """Colour by weights of the coordinates that strides give; None if none of few weights do.

    Weights are chosen by a sample of the rows.
    """
    columns, members = grid_steps(pattern, sample, strides)
    if len(members) > MOST_SORTS:
        return None
    trials = 0
    for colours in range(least, most):
        for weights in some_weights(colours, len(strides)):
            fit = np.ones(len(weights), bool)
            for steps in members:
                ranked = np.sort(weights @ steps % colours, axis=1)
                fit &= (ranked[:, 1:] != ranked[:, :-1]).all(axis=1)
            if fit.any() and trials < MOST_TRIALS:
                trials += 1
                best = weights[int(np.argmax(fit))]
                found = sum(int(w) * c.astype(np.int64) for w, c in zip(best, columns, strict=True)) % colours
                found = np.asarray(found).astype(np.int32)
                if not mark_repeated(pattern.indptr, pattern.indices, found, colours).any():
                    return found, colours
    return None


def grid_steps(pattern: Pattern, sample: Array, strides: list[int]) -> tuple[list[Array], list[Array]]:
    """Return the coordinates of all columns, and for each sort of the sample's rows the steps to their columns."""
    columns = coordinates(np.arange(pattern.shape[1], dtype=pattern.indices.dtype), strides)
    own = coordinates(sample, strides)
    members = {}
    for number, row in enumerate(sample):
        mine = pattern.indices[pattern.indptr[row] : pattern.indptr[row + 1]]
        steps = np.stack([c[mine] - r[number] for c, r in zip(columns, own, strict=True)])
        members[steps.tobytes()] = steps
    return columns, list(members.values())


def coordinates(numbers: Array, strides: list[int]) -> list[Array]:
    """Return the coordinates of numbered points of a grid, from the fastest to the slowest."""
    found = []
    for stride in reversed(strides):
        found.append(numbers // stride)
        numbers = numbers % stride
    return found[::-1]


def some_weights(colours: int, dimensions: int) -> Iterator[Array]:
    """Yield arrays of weights of coordinates, that of the first being 1."""
    axes = [np.ones(1, np.int64), *[np.arange(colours)] * (dimensions - 1)]
    count = colours ** (dimensions - 1)
    if count <= MOST_WEIGHTS:
        yield np.stack([axis.ravel() for axis in np.meshgrid(*axes, indexing="ij")], axis=1)
