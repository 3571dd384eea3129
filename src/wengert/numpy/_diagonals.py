"""Diagonals and triangles with NumPy's signatures."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.values.dispatch import apply, implements
from wengert.core.values.plain_functions import computed
from wengert.core.values.tensor import Tensor
from wengert.errors import ShapeError
from wengert.numpy._out import with_out
from wengert.numpy._shapes import array_operand, ravel, require_ndim
from wengert.primitives import shapes
from wengert.traces.eager_functions import eager_single

apply_diagonal = eager_single(shapes.diagonal)
apply_trace = eager_single(shapes.trace)
apply_triangle = eager_single(shapes.triangle)


@implements(np.diagonal)
def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Tensor:
    """Return a read-only view of a diagonal; see `numpy.diagonal`."""
    x = a if type(a) is Tensor else array_operand("diagonal", a)
    ndim = x.ndim
    if ndim < 2 or type(axis1) is not int or type(axis2) is not int or axis1 or axis2 != 1:
        require_ndim("diagonal", x, 2)
        axis1, axis2 = normalize_axis_index(axis1, ndim), normalize_axis_index(axis2, ndim)
    return apply_diagonal(x, {"offset": operator.index(offset), "axis1": axis1, "axis2": axis2})


@implements(np.linalg.diagonal)
def linalg_diagonal(x: Any, /, *, offset: int = 0) -> Any:
    """Return a read-only view of the diagonals of matrices; see `numpy.linalg.diagonal`."""
    return diagonal(array_operand("diagonal", x), offset, -2, -1)


@implements(np.trace)
def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: Any = None) -> Tensor:
    """Return the sum of a diagonal; see `numpy.trace`."""
    plain = type(a) is Tensor and a._trace is None and dtype is None and out is None
    if plain and (found := computed(np.ndarray.trace, a, offset, axis1, axis2)) is not None:
        return found
    x = require_ndim("trace", array_operand("trace", a), 2)
    if dtype is None and out is None:
        first, second = normalize_axis_index(axis1, x.ndim), normalize_axis_index(axis2, x.ndim)
        return apply_trace(x, {"offset": operator.index(offset), "axis1": first, "axis2": second})
    return with_out("trace", np.sum(diagonal(x, offset, axis1, axis2), axis=-1, dtype=dtype), out)


@implements(np.linalg.trace)
def linalg_trace(x: Any, /, *, offset: int = 0, dtype: Any = None) -> Any:
    """Return the sums of the diagonals of matrices; see `numpy.linalg.trace`."""
    return trace(array_operand("trace", x), offset, -2, -1, dtype)


def diagonal_matrix(x: Tensor, k: int) -> Any:
    """Return the square matrix with a diagonal."""
    length = x.shape[0] + abs(k)
    return apply(shapes.place_diagonal, x, shape=(length, length), offset=operator.index(k), axis1=0, axis2=1)


@implements(np.diag)
def diag(v: Any, k: int = 0) -> Any:
    """Return the diagonal of a matrix, or the matrix with a diagonal; see `numpy.diag`."""
    x = array_operand("diag", v)
    if x.ndim == 1:
        return diagonal_matrix(x, k)
    if x.ndim != 2:
        raise ShapeError("diag", f"an array of shape {x.shape}", "one axis or two are needed", "Use numpy.diagonal")
    return diagonal(x, k)


@implements(np.diagflat)
def diagflat(v: Any, k: int = 0) -> Any:
    """Return the matrix whose diagonal holds all elements; see `numpy.diagflat`."""
    return diagonal_matrix(ravel(v), k)


def triangle_mask(x: Tensor, k: int) -> Any:
    """Return the mask of the elements up to diagonal k; a vector stands for each row of a square matrix."""
    return np.tri(x.shape[-2:][0], x.shape[-1], k, dtype=bool)


@implements(np.tril)
def tril(m: Any, k: int = 0) -> Tensor:
    """Return the lower triangle, with zeros above diagonal k; see `numpy.tril`."""
    x = require_ndim("tril", array_operand("tril", m), 1)
    if x.ndim > 1 and type(k) is int:
        return apply_triangle(x, {"k": k, "upper": False})
    return np.where(triangle_mask(x, k), x, np.zeros(1, x.dtype))  # type: ignore[return-value]  # of a Tensor it is one


@implements(np.triu)
def triu(m: Any, k: int = 0) -> Tensor:
    """Return the upper triangle, with zeros below diagonal k; see `numpy.triu`."""
    x = require_ndim("triu", array_operand("triu", m), 1)
    if x.ndim > 1 and type(k) is int:
        return apply_triangle(x, {"k": k, "upper": True})
    return np.where(triangle_mask(x, k - 1), np.zeros(1, x.dtype), x)  # type: ignore[return-value]  # as above
