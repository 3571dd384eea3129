"""Where the elements of a matrix may be other than zero."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]


class Pattern:
    """Hold which elements of a matrix may be other than zero, row by row, as `scipy.sparse.csr_array` does.

    Attributes:
        shape: the numbers of rows and columns.
        indptr: where each row begins in `indices`, and where the last one ends.
        indices: the columns of the elements of each row, each once, in order.

    >>> pattern = Pattern.of_pairs((2, 3), np.array([1, 0, 1, 1]), np.array([2, 1, 0, 2]))
    >>> pattern.indptr, pattern.indices, pattern.count
    (array([0, 1, 3], dtype=int32), array([1, 0, 2], dtype=int32), 3)
    """

    __slots__ = ("indices", "indptr", "shape")

    def __init__(self, shape: tuple[int, int], indptr: Array, indices: Array) -> None:
        self.shape, self.indptr, self.indices = shape, indptr, indices

    @classmethod
    def of_pairs(cls, shape: tuple[int, int], rows: Array, columns: Array) -> Pattern:
        """Return the pattern of elements at these rows and columns, in any order and more than once if it must be."""
        from scipy.sparse import coo_array

        found = coo_array((np.ones(len(rows), bool), (rows, columns)), shape).tocsr()
        found.sum_duplicates()
        return cls.of_scipy(found)

    @classmethod
    def of_scipy(cls, matrix: Any) -> Pattern:
        """Return the pattern of what a sparse array of SciPy stores."""
        found = matrix.tocsr()
        if not found.has_canonical_format:
            found = found.copy()
            found.sum_duplicates()
        index = np.int32 if max(*found.shape, found.nnz) < 2**31 else np.int64
        return cls(tuple(found.shape), found.indptr.astype(index), found.indices.astype(index))

    @classmethod
    def stack(cls, parts: Sequence[Pattern], columns: int) -> Pattern:
        """Return patterns of some number of columns, one below the other."""
        from scipy.sparse import csr_array, vstack

        some = [part.to_scipy() for part in parts if part.shape[0]]
        return cls.of_scipy(vstack(some, format="csr") if some else csr_array((0, columns), dtype=bool))

    @property
    def count(self) -> int:
        """How many elements may be other than zero."""
        return len(self.indices)

    @property
    def rows(self) -> Array:
        """The row of each element."""
        return np.repeat(np.arange(self.shape[0], dtype=self.indices.dtype), np.diff(self.indptr))

    def to_scipy(self) -> Any:
        """Return the pattern as a sparse array of bools, in CSR format."""
        from scipy.sparse import csr_array

        found = csr_array((np.ones(self.count, bool), self.indices, self.indptr), self.shape)
        found.has_canonical_format = True
        return found

    def __repr__(self) -> str:
        return f"<pattern of {self.shape[0]} x {self.shape[1]}, {self.count} elements>"
