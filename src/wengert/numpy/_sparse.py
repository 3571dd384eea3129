"""Products of SciPy's sparse matrices and Tensors, as the operator `@` has them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError
from wengert.primitives.sparse import sparse_product

Operator = Callable[[Tensor, Any], Any]


def allow_sparse(operate: Operator, *, reflected: bool = False) -> Operator:
    """Return the operator `@` that knows sparse matrices, too."""

    def multiply(self: Tensor, other: Any) -> Any:
        if not is_sparse(other):
            return operate(self, other)
        return product(other, self) if reflected else transpose(product(other.T, transpose(self)))

    return multiply


def is_sparse(value: Any) -> bool:
    """Tell whether a value is a matrix of `scipy.sparse`, which need not be loaded for that."""
    return type(value).__module__.startswith("scipy.sparse") and hasattr(value, "tocsr")


def product(matrix: Any, x: Tensor) -> Any:
    """Return `matrix @ x`."""
    if matrix.ndim != 2 or x.ndim not in (1, 2) or x.shape[0] != matrix.shape[1]:
        given = f"a sparse matrix of shape {matrix.shape} and a Tensor of shape {x.shape}"
        needed = "a vector or a matrix with as many rows as the sparse matrix has columns is needed"
        raise ShapeError("matmul", given, needed, "Reshape it")
    rows = matrix if matrix.format in ("csr", "csc") else matrix.tocsr()
    shape = (int(rows.shape[0]), int(rows.shape[1]))
    return apply(sparse_product, x, rows.data, rows.indices, rows.indptr, shape=shape, format=rows.format)


def transpose(x: Any) -> Any:
    """Return a matrix with its axes exchanged, a vector as it is."""
    return np.transpose(x)
