"""Sparse matrices of truths: products, powers by squaring, and powers that repeat."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from wengert.support.records import NamedTuple

SMALL = 3000
"""Up to so many rows and columns a product is one of dense matrices where a tenth is true."""
DENSE = 1 << 20
"""Up to so many elements what powers are multiplied with is dense: a product of sparse matrices takes 0.7 ms for a few
elements, one with a dense matrix 0.02."""


def product(a: Any, b: Any) -> Any:
    """Return where a row of one matrix and a column of another have a truth in the same place."""
    from scipy.sparse import csr_array

    if not (a.nnz and b.nnz):
        return csr_array((a.shape[0], b.shape[1]), dtype=bool)
    if max(*a.shape, *b.shape) <= SMALL and a.nnz * 10 > a.shape[0] * a.shape[1]:
        return csr_array(a.toarray().astype(np.float32) @ b.toarray().astype(np.float32) > 0)
    return truths(a.astype(np.int32) @ b.astype(np.int32))


def truths(matrix: Any) -> Any:
    """Return where a matrix stores elements."""
    from scipy.sparse import csr_array

    matrix.sum_duplicates()
    return csr_array((np.ones(matrix.nnz, bool), matrix.indices, matrix.indptr), matrix.shape)


def as_sparse(matrix: Any) -> Any:
    """Return a matrix in compressed rows."""
    from scipy.sparse import csr_array

    return csr_array(matrix) if isinstance(matrix, np.ndarray) else matrix


def either(a: Any, b: Any) -> Any:
    """Return where one of two matrices is true."""
    return truths((a + b).tocsr()) if a.nnz and b.nnz else a if a.nnz else b


def row_stack(blocks: Sequence[Any], width: int) -> Any:
    """Return blocks one below the other, whose rows have some width."""
    from scipy.sparse import csr_array, vstack

    some = [block for block in blocks if block.shape[0]]
    if some and all(isinstance(block, np.ndarray) for block in some):
        return csr_array(np.concatenate(some))
    return vstack(some, format="csr").astype(bool) if some else csr_array((0, width), dtype=bool)


def power_and_sum(a: Any, count: int) -> tuple[Any, Any]:
    """Return a power of a matrix, and the sum of all lower ones from that to 0, by squaring."""
    from scipy.sparse import csr_array, eye_array

    size = a.shape[0]
    one = eye_array(size, dtype=bool, format="csr")
    power, total = one, csr_array((size, size), dtype=bool)
    base, sums = a, one  # a to the 2^j, and the sum of the powers below that
    while count:
        if count & 1:
            total = either(total, product(power, sums))
            power = product(power, base)
        count >>= 1
        if count:
            more, square = either(sums, product(sums, base)), product(base, base)
            if are_same(more, sums) and are_same(square, base):  # all that follows gives what one more gives
                count = 1
            sums, base = more, square
    return power, total


def are_same(a: Any, b: Any) -> bool:
    """Tell whether two matrices of as many rows and columns are true in the same places."""
    return a.nnz == b.nnz and np.array_equal(a.indptr, b.indptr) and np.array_equal(a.indices, b.indices)


def fixed_point(a: Any) -> Any:
    """Return the sum of all powers of a matrix from that to 0."""
    from scipy.sparse import eye_array

    closure = either(eye_array(a.shape[0], dtype=bool, format="csr"), a)
    while True:
        more = product(closure, closure)
        if more.nnz == closure.nnz:
            return closure
        closure = more


class Powers(NamedTuple):
    """Hold matrices one after the other that repeat from some place on.

    Attributes:
        matrices: those before they repeat; all are sparse, or dense.
        first: the place of that which comes after the last of them.
        period: after how many they repeat.
    """

    matrices: list[Any]
    first: int
    period: int

    def at(self, place: int) -> int:
        """Return which of the matrices is at a place."""
        return place if place < len(self.matrices) else self.first + (place - self.first) % self.period

    def matrices_along(self, length: int) -> list[Any]:
        """Return as many as are wanted."""
        return [self.matrices[self.at(i)] for i in range(length)]

    def classes(self, length: int) -> Iterator[tuple[Any, list[int]]]:
        """Yield each matrix with all of its places below a length."""
        places: dict[int, list[int]] = {}
        for i in range(length):
            places.setdefault(self.at(i), []).append(i)
        for k, own in places.items():
            yield self.matrices[k], own


def powers(start: Any, a: Any, length: int, last: Any) -> Powers:
    """Return `last @ a^k @ start` for k from 0 to below a length, as long as they do not repeat; without `last` 1."""
    if start.shape[0] * start.shape[1] <= DENSE:
        return dense_powers(start.toarray(), a, length, last)
    seen: dict[Any, int] = {}
    found: list[Any] = []
    now = start
    for k in range(length):
        key = now.nnz, now.indptr.tobytes(), now.indices.tobytes()
        if key in seen:
            return Powers(found, seen[key], k - seen[key])
        seen[key] = k
        found.append(now if last is None else product(last, now))
        now = product(a, now)
    return Powers(found, length, 1)


def dense_powers(now: Any, a: Any, length: int, last: Any) -> Powers:
    """Return the same as dense matrices, with which sparse ones are multiplied."""
    seen: dict[bytes, int] = {}
    found: list[Any] = []
    step = a.astype(np.float32)
    end = None if last is None else last.astype(np.float32)
    for k in range(length):
        key = np.packbits(now).tobytes()
        if key in seen:
            return Powers(found, seen[key], k - seen[key])
        seen[key] = k
        numbers = now.astype(np.float32)
        found.append(now if end is None else (end @ numbers) > 0)
        now = (step @ numbers) > 0
    return Powers(found, length, 1)


def toeplitz(lags: Sequence[Any], length: int, shift: int) -> Any:
    """Return the matrix of blocks whose block (i, i - shift - k) is the k-th of some."""
    from scipy.sparse import coo_array

    rows, columns = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
    height, width = lags[0].shape
    for k, block in enumerate(lags):
        steps = np.arange(k + shift, length)
        if not len(steps):
            break
        own, others = block.nonzero()
        rows.append((steps[:, None] * height + own.astype(np.int64)).reshape(-1))
        columns.append(((steps - shift - k)[:, None] * width + others.astype(np.int64)).reshape(-1))
    row, column = np.concatenate(rows), np.concatenate(columns)
    return truths(coo_array((np.ones(len(row), np.int32), (row, column)), (length * height, length * width)).tocsr())
