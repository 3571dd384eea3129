"""Colours of the rows and columns of a pattern, whose elements are computed together and told apart afterwards."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import ShapeError
from wengert.pictures.pattern_pictures import pattern_svg
from wengert.sparse.patterns.pattern import Pattern
from wengert.support.records import NamedTuple

Array = np.ndarray[Any, Any]


class Substitution(NamedTuple):
    """Hold how elements are told apart that do not stand alone in sums.

    Attributes:
        system: a triangular matrix with a row for each sum that is read: which of the elements it is the sum of.
        number: for each element of the pattern which of those elements it is.
    """

    system: Any
    number: Array

    def elements(self, sums: Array) -> Array:
        """Return the elements of the pattern from the sums that are read."""
        from scipy.sparse.linalg import spsolve_triangular

        if not len(sums):
            return sums
        found = spsolve_triangular(self.system, sums, lower=True, unit_diagonal=True)
        return np.asarray(found)[self.number]


class Coloring:
    """Hold colours of the columns and rows of a pattern, and where each element stands among their sums.

    Columns of one colour add up to one column of a *compressed* matrix, and rows of one colour to one row of another.

    Attributes:
        pattern: the pattern, a `scipy.sparse.csr_array` of bools.
        structure: "general", or "symmetric" if elements are read at the mirrored place, too.
        columns: the colour of each column, an array of integers, -1 for columns that are not used; None if rows alone
            have colours.
        rows: the colour of each row, likewise.
        column_count: how many colours columns have.
        row_count: how many colours rows have.
        substitution: how elements are told apart, if they do not stand alone in sums; else None.

    >>> from scipy.sparse import diags_array
    >>> from wengert.sparse import color
    >>> coloring = color(diags_array([1.0, 1.0, 1.0], offsets=[-1, 0, 1], shape=(6, 6)))
    >>> coloring.count, coloring.columns
    (3, array([0, 1, 2, 0, 1, 2], dtype=int32))
    """

    def __init__(
        self,
        pattern: Pattern,
        structure: str,
        columns: tuple[Array, int] | None,
        rows: tuple[Array, int] | None,
        places: tuple[Array, Array, Array],
        substitution: Substitution | None = None,
    ) -> None:
        self.sparsity, self.structure = pattern, structure
        self.columns: Array | None = None if columns is None else columns[0]
        self.rows: Array | None = None if rows is None else rows[0]
        self.column_count = 0 if columns is None else columns[1]
        self.row_count = 0 if rows is None else rows[1]
        self.by_column, self.line, self.group = places
        self.substitution = substitution

    @property
    def count(self) -> int:
        """How many colours there are: of columns and of rows."""
        return self.column_count + self.row_count

    @property
    def pattern(self) -> Any:
        """The pattern, a `scipy.sparse.csr_array` of bools."""
        return self.sparsity.to_scipy()

    @property
    def lane_places(self) -> Array:
        """Where each element stands in lanes: for each colour of columns a whole column, then of rows a whole row."""
        m, n = self.sparsity.shape
        of_columns = self.group.astype(np.int64) * m + self.line
        of_rows = self.column_count * m + self.group.astype(np.int64) * n + self.line
        found = np.where(self.by_column, of_columns, of_rows)
        return found.astype(np.int32) if self.column_count * m + self.row_count * n < 2**31 else found

    def compress(self, matrix: Any) -> Any:
        """Return the sums of the columns of each colour, and of the rows of each.

        Args:
            matrix: an array or a sparse array of the shape of the pattern, with elements on the pattern alone.

        Returns:
            An array with a column for each colour of columns, or one with a row for each colour of rows; a tuple of
            the two if both have colours.

        Raises:
            ShapeError: the matrix has another shape.

        >>> from wengert.sparse import color
        >>> color(np.array([[1, 1, 0], [0, 1, 1]])).compress(np.array([[3.0, 4.0, 0.0], [0.0, 5.0, 6.0]]))
        array([[3., 4.],
               [6., 5.]])
        """
        if getattr(matrix, "shape", None) != self.sparsity.shape:
            given = f"a matrix of shape {np.shape(matrix)}"
            needed = f"the shape of the pattern, {self.sparsity.shape}, is needed"
            raise ShapeError("Coloring.compress", given, needed, "Pass a matrix with that pattern")
        parts = []
        if self.columns is not None:
            parts.append(matrix @ indicator(self.columns, self.column_count))
        if self.rows is not None:
            parts.append(indicator(self.rows, self.row_count).T @ matrix)
        dense = [np.asarray(part.toarray() if hasattr(part, "toarray") else part) for part in parts]
        return dense[0] if len(dense) == 1 else tuple(dense)

    def recover(self, compressed: Any) -> Any:
        """Return the matrix whose rows and columns were added up, a `scipy.sparse.csr_array`.

        Args:
            compressed: what `compress` gives, or the products of a matrix with the seeds that it uses.

        Raises:
            ShapeError: it has not the shape of what `compress` gives.

        >>> from wengert.sparse import color
        >>> coloring = color(np.array([[1, 1, 0], [0, 1, 1]]))
        >>> coloring.recover(np.array([[3.0, 4.0], [6.0, 5.0]])).toarray()
        array([[3., 4., 0.],
               [0., 5., 6.]])
        """
        m, n = self.sparsity.shape
        parts = list(compressed) if isinstance(compressed, tuple) else [compressed]
        shapes = [(m, self.column_count)] * (self.columns is not None) + [(self.row_count, n)] * (self.rows is not None)
        if [np.shape(part) for part in parts] != shapes:
            given = f"compressed arrays of shapes {', '.join(str(np.shape(part)) for part in parts)}"
            needed = f"{', '.join(map(str, shapes))} is needed"
            raise ShapeError("Coloring.recover", given, needed, "Pass what compress gives")
        data = np.empty(len(self.line), np.result_type(*parts))
        if self.columns is not None:
            mine = self.by_column
            data[mine] = parts[0][self.line[mine], self.group[mine]]
        if self.rows is not None:
            mine = ~self.by_column
            data[mine] = parts[-1][self.group[mine], self.line[mine]]
        return csr_of(self.sparsity, data if self.substitution is None else self.substitution.elements(data))

    def _repr_svg_(self) -> str:
        own = np.where(self.by_column, self.group, self.column_count + self.group)
        if self.substitution is not None:
            own = own[self.substitution.number]
        return pattern_svg(self.sparsity.shape, self.sparsity.rows, self.sparsity.indices, own)

    def __repr__(self) -> str:
        m, n = self.sparsity.shape
        sides = [
            f"{count} of {what}" for count, what in ((self.column_count, "columns"), (self.row_count, "rows")) if count
        ]
        return f"<coloring of {m} x {n}, {self.sparsity.count} elements: {' and '.join(sides) or 'no'} colours>"


def indicator(colours: Array, count: int) -> Any:
    """Return the sparse matrix of which colour each row or column has, which is one of zeros and ones."""
    from scipy.sparse import csr_array

    used = np.flatnonzero(colours >= 0)
    return csr_array((np.ones(len(used)), (used, colours[used])), (len(colours), count))


def csr_of(pattern: Pattern, data: Array) -> Any:
    """Return the sparse array of a pattern with these elements."""
    from scipy.sparse import csr_array

    found = csr_array((data, pattern.indices, pattern.indptr), pattern.shape)
    found.has_canonical_format = True
    return found
