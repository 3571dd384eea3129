"""Products of sparse matrices, in SciPy's compressed rows or columns, and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.cotangent import match_dtype
from wengert.core.primitives.declare import linear
from wengert.core.values.aval import Aval
from wengert.core.values.dispatch import apply

TRANSPOSED = {"csr": "csc", "csc": "csr"}
"""The format in which the arrays of a matrix are its transpose."""


def evaluate_product(x: Any, data: Any, indices: Any, starts: Any, *, shape: tuple[int, int], format: str) -> Any:
    """Evaluate `matrix @ x` for a vector or a matrix."""
    from scipy import sparse

    kind = sparse.csr_array if format == "csr" else sparse.csc_array
    return kind((data, indices, starts), shape=shape) @ x


def transpose_product(
    ct: Any, aval: Aval, data: Any, indices: Any, starts: Any, *, shape: tuple[int, int], format: str
) -> Any:
    """Multiply by the transposed matrix, whose columns are the rows of this one."""
    params = {"shape": shape[::-1], "format": TRANSPOSED[format]}
    return match_dtype(apply(sparse_product, ct, data, indices, starts, **params), aval.dtype)


def batch_product(
    primitive: Any, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Multiply a matrix with the lanes as further columns; the sparse matrix is the same in all."""
    columns = np.moveaxis(operands[0], 0, -1)
    found = apply(primitive, columns.reshape(columns.shape[0], -1), *operands[1:], **params)
    return np.moveaxis(found.reshape(-1, *columns.shape[1:]), -1, 0)


sparse_product = linear("sparse_product", evaluate_product, transpose=transpose_product, batch=batch_product)
