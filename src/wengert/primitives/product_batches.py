"""How products, Einstein sums and linear algebra read when operands carry a leading batch axis.

The rules compute in NumPy's own operations on stacks; see `wengert.core.batching` for their arguments.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.batching import aligned, lead
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive

Axes = tuple[int, ...]
Params = Mapping[str, Any]
Flags = Sequence[bool]


def ranks(operands: Sequence[Any], batched: Flags) -> list[int]:
    """Return the numbers of axes of operands without their batch axes."""
    return [x.ndim - flag for x, flag in zip(operands, batched, strict=True)]


def raised(x: Any, batched: bool, rank: int) -> Any:
    """Return an operand with axes of length one after its batch axis, until it has a given rank besides."""
    missing = rank + batched - x.ndim
    return x.reshape((x.shape[0], *(1,) * missing, *x.shape[1:])) if batched and missing else x


def batch_broadcast(primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, params: Params) -> Any:
    """Align the batch axes of an operation that broadcasts the leading axes of its operands."""
    return apply(primitive, *aligned(operands, batched), **params)


# Products of matrices


def matrix_product(x: Any, y: Any, batched: Flags) -> Any:
    """Multiply stacks of matrices of which some have a batch axis."""
    left, right = ranks((x, y), batched)
    if batched[0] and not batched[1] and left == right == 2:
        return (x.reshape((x.shape[0] * x.shape[1], x.shape[2])) @ y).reshape((*x.shape[:2], y.shape[1]))
    rank = max(left, right)
    return raised(x, batched[0], rank) @ raised(y, batched[1], rank)


def batch_matmul(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply vectors as rows and columns."""
    x, y = operands
    left, right = ranks(operands, batched)
    product = matrix_product(x[..., None, :] if left == 1 else x, y[..., None] if right == 1 else y, batched)
    if right == 1:
        product = product[..., 0]
    return product[..., 0] if left == right == 1 else product[..., 0, :] if left == 1 else product


def batch_matvec(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply the vectors as columns."""
    x, y = operands
    return matrix_product(x, y[..., None], batched)[..., 0]


def batch_vecmat(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply the conjugates of the vectors as rows."""
    x, y = operands
    row = np.conjugate(x) if x.dtype.kind == "c" else x
    return matrix_product(row[..., None, :], y, batched)[..., 0, :]


# Contractions over given axes


def contraction(x: Any, y: Any, batched: Flags, axes: tuple[Axes, Axes]) -> Any:
    """Contract axes that are counted without the batch axes."""
    left, right = (tuple(axis + flag for axis in own) for own, flag in zip(axes, batched, strict=True))
    if not batched[1]:
        return np.tensordot(x, y, (left, right))
    if not batched[0]:
        return np.moveaxis(np.tensordot(x, y, (left, right)), x.ndim - len(left), 0)
    rows = [axis for axis in range(1, x.ndim) if axis not in left]
    columns = [axis for axis in range(1, y.ndim) if axis not in right]
    outer = (*(x.shape[axis] for axis in rows), *(y.shape[axis] for axis in columns))
    size, inner = x.shape[0], math.prod(x.shape[axis] for axis in left)
    matrices = np.transpose(x, (0, *rows, *left)).reshape((size, math.prod(x.shape[axis] for axis in rows), inner))
    others = np.transpose(y, (0, *right, *columns)).reshape((size, inner, math.prod(y.shape[i] for i in columns)))
    return (matrices @ others).reshape((size, *outer))


def batch_contraction(axes_of: Callable[[int, int], tuple[Axes, Axes]]) -> Callable[..., Any]:
    """Return the batch rule of a contraction whose axes follow from the ranks of its operands."""

    def batch(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
        x, y = operands
        left, right = ranks(operands, batched)
        return contraction(x, y, batched, axes_of(left, right))

    return batch


def batch_tensordot(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, params: Params) -> Any:
    """Contract the axes that the parameters name."""
    x, y = operands
    return contraction(x, y, batched, params["axes"])


def flat(x: Any, batched: bool) -> Any:
    """Return the elements of each lane along one axis."""
    return x.reshape((x.shape[0], math.prod(x.shape[1:])) if batched else math.prod(x.shape))


def batch_vdot(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply the elements of each lane as vectors."""
    x, y = (flat(x, flag) for x, flag in zip(operands, batched, strict=True))
    return np.vecdot(x, y)


def batch_outer(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply every element with every element of the same lane."""
    x, y = (flat(x, flag) for x, flag in zip(operands, batched, strict=True))
    return x[..., :, None] * y[..., None, :]


def batch_kron(_primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Multiply with the axes of one side between those of the other."""
    x, y = (lead(x, flag, size) for x, flag in zip(operands, batched, strict=True))
    rank = max(x.ndim, y.ndim) - 1
    left, right = ((*(1,) * (rank + 1 - z.ndim), *z.shape[1:]) for z in (x, y))
    spread_left = tuple(n for length in left for n in (length, 1))
    spread_right = tuple(n for length in right for n in (1, length))
    product = x.reshape((size, *spread_left)) * y.reshape((size, *spread_right))
    return product.reshape((size, *(n * m for n, m in zip(left, right, strict=True))))


def sliding_products(x: Any, y: Any, start: int, stop: int) -> Any:
    """Return terms of the full convolution along the last axes, as products with a matrix of shifted copies."""
    shorter = y.shape[-1]
    zeros = np.zeros((*x.shape[:-1], shorter - 1), x.dtype)
    padded = np.concatenate([zeros, x, zeros], axis=-1)
    windows = padded[..., np.arange(start, stop)[:, None] + np.arange(shorter)]
    return (windows @ y[..., ::-1, None])[..., 0]


def batch_convolution(start_of: Callable[[int, int, str], int], prepare: Callable[[Any], Any]) -> Callable[..., Any]:
    """Return the batch rule of a convolution, or of a correlation, which prepares its right side."""

    def batch(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, params: Params) -> Any:
        x, y = operands[0], prepare(operands[1])
        left, right, mode = x.shape[-1], y.shape[-1], params["mode"]
        start = start_of(left, right, mode)
        longer, shorter = max(left, right), min(left, right)
        count = {"full": left + right - 1, "same": longer, "valid": longer - shorter + 1}[mode]
        return sliding_products(x, y, start, start + count)

    return batch


# Linear algebra


def batch_solve(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Solve with vectors as columns."""
    a, b = operands
    vector = ranks(operands, batched)[1] == 1
    columns = b[..., None] if vector else b
    rank = max(ranks((a, columns), batched))
    solution = np.linalg.solve(raised(a, batched[0], rank), raised(columns, batched[1], rank))
    return solution[..., 0] if vector else solution


def batch_norm(primitive: Primitive, _size: int, operands: Sequence[Any], _batched: Flags, params: Params) -> Any:
    """Take the norms of all lanes; those of whole lanes as norms of vectors."""
    (x,) = operands
    axis, shape = params["axis"], x.shape[1:]
    if axis is not None:
        moved = tuple(i + 1 if i >= 0 else i for i in axis)
        return apply(primitive, x, **{**params, "axis": moved})
    vectors = x.reshape((x.shape[0], math.prod(shape)))
    order = None if params["order"] in ("fro", "f") else params["order"]
    result = apply(primitive, vectors, order=order, axis=(1,), keepdims=False)
    return result.reshape((x.shape[0], *(1,) * len(shape))) if params["keepdims"] else result
