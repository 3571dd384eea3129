"""Colours of symmetric matrices whose elements are told apart one after the other, which takes fewer of them.

Vertices are ordered, and the columns of the lower triangle coloured so that those that share a row differ. In a sum of
columns of one colour an element of the lower triangle then stands alone but for elements above the diagonal; these are
mirrored ones of later rows, and known if rows are gone through from the last to the first. That is a triangular system
of ones and zeros.

Source: M. J. D. Powell, Ph. L. Toint, On the estimation of sparse Hessian matrices, SIAM J. Numer. Anal. 16 (1979).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.sparse.coloring.coloring import Coloring, Substitution
from wengert.sparse.patterns.pattern import Pattern

Array = np.ndarray[Any, Any]


def lower_triangle(pattern: Pattern, order: Array) -> tuple[Pattern, Array]:
    """Return the elements on the diagonal and below, by the places of rows and columns in an order, and which they are.

    The diagonal is there in any case.
    """
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    is_lower = place[pattern.indices] <= place[pattern.rows]
    every = np.arange(len(order))
    rows = np.concatenate([pattern.rows[is_lower], every])
    columns = np.concatenate([pattern.indices[is_lower], every])
    return Pattern.of_pairs(pattern.shape, rows, columns), is_lower


def substitution_of(pattern: Pattern, mirror: Array, colours: Array, count: int, order: Array) -> Coloring:
    """Return the colouring of a symmetric pattern by colours of the columns of its lower triangle.

    Args:
        pattern: the pattern.
        mirror: for each element the number of the one on the other side of the diagonal.
        colours: of the columns.
        count: how many colours there are.
        order: the rows and columns in the order by which the triangle is the lower one.
    """
    from scipy.sparse import csr_array

    is_lower = lower_triangle(pattern, order)[1]
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    lower = np.flatnonzero(is_lower)
    lower = lower[np.argsort(-place[pattern.rows[lower]], kind="stable")]
    number = np.empty(pattern.count, np.int64)
    number[lower] = np.arange(len(lower))
    number[~is_lower] = number[mirror[~is_lower]]
    keys = pattern.rows.astype(np.int64) * count + colours[pattern.indices]
    by_key = lower[np.argsort(keys[lower], kind="stable")]
    above = np.flatnonzero(~is_lower)
    at = np.searchsorted(keys[by_key], keys[above])
    at[at == len(by_key)] = 0
    meets = keys[by_key[at]] == keys[above] if len(by_key) else np.zeros(len(above), bool)
    reads = number[by_key[at[meets]]], number[above[meets]]
    size = len(lower)
    own = np.arange(size)
    system = csr_array(
        (np.ones(size + len(reads[0])), (np.concatenate([own, reads[0]]), np.concatenate([own, reads[1]]))),
        (size, size),
    )
    places = np.ones(size, bool), pattern.rows[lower], colours[pattern.indices[lower]]
    return Coloring(pattern, "symmetric", (colours, count), None, places, Substitution(system, number))
