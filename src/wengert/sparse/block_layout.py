"""How the elements of a derivative come as sparse matrices: one for each leaf of results and arguments, in a format."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.sparse.patterns.pattern import Pattern
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]


class MatrixBlock(NamedTuple):
    """Hold where the elements of a matrix begin and end among all, and a matrix with that pattern and no elements."""

    start: int
    stop: int
    matrix: Any

    def fill(self, data: Array) -> Any:
        """Return the matrix with its elements, out of those of all; without SciPy's passes over its indices."""
        kind: Any = type(self.matrix)
        found = kind.__new__(kind)
        vars(found).update(vars(self.matrix))
        found.data = data if self.stop - self.start == len(data) else data[self.start : self.stop]
        return found


class BlockLayout:
    """Say which elements of a pattern stand in which of some matrices, one after the other.

    Attributes:
        order: for each element of each matrix in turn its number in the pattern; None if that is their order already.
        blocks: the matrices, for each leaf of results those of all leaves of arguments.
        shape: of how many leaves of results and of arguments.

    >>> layout = BlockLayout(Pattern.of_pairs((2, 2), np.array([0, 0, 1]), np.array([0, 1, 1])), [2], [1, 1], "csr")
    >>> layout.order, [block.fill(np.array([5.0, 6.0, 7.0])).toarray().tolist() for block in layout.blocks]
    (array([0, 1, 2], dtype=int32), [[[5.0], [0.0]], [[6.0], [7.0]]])
    """

    def __init__(
        self, pattern: Pattern, rows: Sequence[int], columns: Sequence[int], format: str, lower: bool = False
    ) -> None:
        from scipy.sparse import csr_array, tril

        numbers_from_one = np.arange(1, pattern.count + 1, dtype=pattern.indices.dtype)
        numbers: Any = csr_array((numbers_from_one, pattern.indices, pattern.indptr), pattern.shape)
        if lower:
            numbers = tril(numbers, format="csr")
        is_whole = len(rows) == len(columns) == 1
        self.shape = len(rows), len(columns)
        self.blocks: list[MatrixBlock] = []
        orders = []
        start = 0
        for top, bottom in spans(rows):
            for left, right in spans(columns):
                part = numbers if is_whole else numbers[top:bottom, left:right]
                part = part.asformat(format)
                part.sort_indices()
                orders.append(part.data - 1)
                block = type(part)((np.empty(part.nnz), part.indices, part.indptr), part.shape)
                block.has_canonical_format = True
                for array in (block.indices, block.indptr):  # which all matrices share
                    array.flags.writeable = False
                self.blocks.append(MatrixBlock(start, start + part.nnz, block))
                start += part.nnz
        order = np.concatenate(orders) if orders else np.zeros(0, np.int64)
        is_same = is_whole and format == "csr" and not lower
        self.order: Array | None = None if is_same else order


def spans(sizes: Sequence[int]) -> list[tuple[int, int]]:
    """Return where each of some parts begins and ends."""
    ends = np.cumsum([0, *sizes]).tolist()
    return list(itertools.pairwise(ends))
