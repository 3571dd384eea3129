"""Products of `numpy.linalg` with NumPy's signatures: of two arrays, of many, and powers."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from wengert.core.values.dispatch import implements
from wengert.core.values.plain_functions import enter_by_numpy
from wengert.errors import ShapeError, UsageError
from wengert.numpy import _contractions
from wengert.numpy._contractions import array
from wengert.numpy._contractions import outer as outer_product
from wengert.numpy._linalg import inv
from wengert.numpy._matrices import square_matrices
from wengert.numpy._out import with_out


@implements(np.linalg.matmul)
def matmul(x1: Any, x2: Any, /) -> Any:
    """Return the matrix product; see `numpy.linalg.matmul`."""
    return _contractions.matmul(x1, x2)


@implements(np.linalg.tensordot)
def tensordot(x1: Any, x2: Any, /, *, axes: Any = 2) -> Any:
    """Return the sum of products over given axes; see `numpy.linalg.tensordot`."""
    return _contractions.tensordot(x1, x2, axes=axes)


@implements(np.linalg.vecdot)
def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the products of the vectors along an axis, summed; see `numpy.linalg.vecdot`."""
    return _contractions.vecdot(x1, x2, axis=axis)


@implements(np.linalg.outer)
def outer(x1: Any, x2: Any, /) -> Any:
    """Return the products of every element with every element; see `numpy.linalg.outer`."""
    x, y = array("outer", x1), array("outer", x2)
    if x.ndim != 1 or y.ndim != 1:
        given = f"shapes {x.shape} and {y.shape}"
        raise ShapeError("outer", given, "one axis each is needed", "Use wengert.numpy.outer")
    return outer_product(x, y)


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the cross products of vectors of space; see `numpy.linalg.cross`."""
    x, y = array("cross", x1), array("cross", x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        needed = f"vectors with 3 elements along axis {axis} are needed"
        raise ShapeError("cross", f"shapes {x.shape} and {y.shape}", needed, "Append a zero to vectors of the plane")
    return _contractions.cross(x, y, axis=axis)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of several matrices, in the cheapest order; see `numpy.linalg.multi_dot`."""
    factors = [array("multi_dot", x) for x in arrays]
    dot: Any = _contractions.dot
    if len(factors) < 2:
        raise UsageError("multi_dot", f"{len(factors)} arrays", "at least two are needed", "Pass the factors as a list")
    if len(factors) == 2:
        return dot(*factors, out=out)
    first, last = factors[0].ndim, factors[-1].ndim
    if first == 1:
        factors[0] = factors[0][None, :]
    if last == 1:
        factors[-1] = factors[-1][None, :].T
    if any(x.ndim != 2 for x in factors):
        given = f"shapes {', '.join(str(x.shape) for x in factors)}"
        needed = "matrices are needed, or vectors at the ends"
        raise ShapeError("multi_dot", given, needed, "Use matmul for stacks of matrices")
    splits = cheapest_splits((*(x.shape[0] for x in factors), factors[-1].shape[1]))

    def product(start: int, stop: int) -> Any:
        if stop - start == 1:
            return factors[start]
        middle = splits[start, stop]
        return dot(product(start, middle), product(middle, stop))

    result = product(0, len(factors))
    if first == 1 and last == 1:
        result = result[0, 0]
    elif 1 in (first, last):
        result = result.reshape(-1)
    return with_out("multi_dot", result, out)


def cheapest_splits(lengths: tuple[int, ...]) -> dict[tuple[int, int], int]:
    """Return where to split the factors from start to stop for the fewest products, for each run (start, stop).

    Shorter runs come first, since longer ones are made of them. Of equally cheap places the first counts, as in NumPy.

    >>> cheapest_splits((10, 100, 5, 50))
    {(0, 2): 1, (1, 3): 2, (0, 3): 2}
    """
    count = len(lengths) - 1
    costs = {(i, i + 1): 0 for i in range(count)}
    splits = {}
    for size in range(2, count + 1):
        for start in range(count - size + 1):
            stop = start + size
            ends = lengths[start] * lengths[stop]
            costs[start, stop], splits[start, stop] = min(
                (costs[start, middle] + costs[middle, stop] + ends * lengths[middle], middle)
                for middle in range(start + 1, stop)
            )
    return splits


@implements(np.linalg.matrix_power)
def matrix_power(a: Any, n: int) -> Any:
    """Return a square matrix to an integer power; see `numpy.linalg.matrix_power`."""
    x = square_matrices("matrix_power", a)
    n = operator.index(n)
    if n == 0:
        return np.broadcast_to(np.eye(x.shape[-1], dtype=x.dtype), x.shape) + np.zeros_like(x)
    if n < 0:
        x, n = inv(x), -n
    if n == 3:
        return (x @ x) @ x
    result = None
    while n > 0:
        n, odd = divmod(n, 2)
        if odd:
            result = x if result is None else result @ x
        if n:
            x = x @ x
    return result


enter_by_numpy(np.linalg.tensordot, np.linalg.vecdot)
