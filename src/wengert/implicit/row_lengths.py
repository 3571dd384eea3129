"""Lengths of the rows of matrices, in full or sparse: squares of tiny and huge numbers are no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.primitives.sparse.storage_pattern import pattern_of

DIGITS = 10.0
"""Of how many binary digits units are multiples."""


def is_sparse(matrix: Any) -> bool:
    """Tell whether a matrix is sparse, of SciPy or of Tensors."""
    return hasattr(matrix, "tocsr")


def unit_of(sizes: Any) -> Any:
    """Return the power of 1024 next to sizes; one for zero and for what is not finite."""
    known = np.where((sizes > 0.0) & np.isfinite(sizes), sizes, 1.0)
    return np.exp2(DIGITS * np.rint(np.log2(known) / DIGITS))


def largest_of(numbers: Any) -> Any:
    """Return the size of the largest number; zero of none."""
    return np.max(np.abs(numbers)) if 0 not in numbers.shape else np.zeros(())


def largest_of_rows(rows: Any) -> Any:
    """Return the size of the largest number in each row; of sparse rows of Tensors in all."""
    if not is_sparse(rows):
        return np.max(np.abs(rows), axis=1)
    return abs(rows).max(axis=1).toarray().ravel() if isinstance(rows.data, np.ndarray) else largest_of(rows.data)


def rows_near_one(rows: Any) -> tuple[Any, Any, Any]:
    """Return rows over units of their own, their lengths, and these units."""
    sizes = unit_of(largest_of_rows(rows)) * np.ones(rows.shape[0])
    near_one = times_rows(rows, 1.0 / sizes)
    return near_one, np.sqrt((near_one * near_one).sum(axis=1)), sizes


def lengths_of(rows: Any) -> Any:
    """Return the lengths of the rows of a matrix."""
    if 0 in rows.shape:
        return np.zeros(rows.shape[0])
    _, lengths, sizes = rows_near_one(rows)
    return lengths * sizes


def unit_rows(rows: Any) -> tuple[Any, Any]:
    """Return rows over their lengths, and these, 1 for zeros."""
    near_one, lengths, sizes = rows_near_one(rows)
    lengths = np.where(lengths > 0.0, lengths, 1.0)
    return times_rows(near_one, 1.0 / lengths), lengths * sizes


def times_rows(matrix: Any, factors: Any) -> Any:
    """Return a matrix with its rows multiplied; a sparse one with the places that it has."""
    if not is_sparse(matrix):
        return matrix * factors[:, None]
    each = factors[(pattern_of(matrix) if isinstance(matrix.data, np.ndarray) else matrix._pattern).coordinates[0]]
    if not isinstance(matrix.data, np.ndarray):
        return matrix.map_elements(lambda elements: elements * each)
    return type(matrix)((matrix.data * each, matrix.indices, matrix.indptr), shape=matrix.shape)
