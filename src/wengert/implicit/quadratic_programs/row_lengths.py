"""Lengths of the rows of matrices, in full or sparse: squares of tiny and huge numbers are no numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

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
    return over_rows(np.maximum, np.abs(rows.data), rows.indptr) if holds_numbers(rows) else largest_of(rows.data)


def rows_near_one(rows: Any) -> tuple[Any, Any, Any]:
    """Return rows over units of their own, their lengths, and these units."""
    rows = rows.tocsr() if is_sparse(rows) else rows
    sizes = unit_of(largest_of_rows(rows)) * np.ones(rows.shape[0])
    near_one = times_rows(rows, 1.0 / sizes)
    if is_sparse(rows) and holds_numbers(rows):
        return near_one, np.sqrt(over_rows(np.add, near_one.data**2, rows.indptr)), sizes
    return near_one, np.sqrt((near_one * near_one).sum(axis=1)), sizes


def holds_numbers(matrix: Any) -> bool:
    """Tell whether a sparse matrix is one of SciPy's; of Tensors' elements are a Tensor."""
    return isinstance(matrix.data, np.ndarray)


def over_rows(ufunc: np.ufunc, numbers: Any, starts: Any) -> Any:
    """Return what a ufunc makes of the numbers in each row; zero of none."""
    found, some = np.zeros(len(starts) - 1), np.diff(starts) > 0
    if np.any(some):
        found[some] = ufunc.reduceat(numbers, starts[:-1][some])
    return found


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
    """Return a matrix with its rows multiplied; a sparse one, stored by rows, with the places that it has."""
    if not is_sparse(matrix):
        return matrix * factors[:, None]
    if not holds_numbers(matrix):
        each = factors[matrix._pattern.coordinates[0]]
        return matrix.map_elements(lambda elements: elements * each)
    data = matrix.data * np.repeat(factors, np.diff(matrix.indptr))
    return type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape)
