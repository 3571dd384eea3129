"""Functions of `numpy.linalg` with NumPy's signatures."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.dispatch import apply, implements
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy import _contractions
from wengert.numpy._contractions import array
from wengert.numpy._contractions import outer as outer_product
from wengert.numpy._out import with_out
from wengert.primitives import linear_algebra, triangular
from wengert.traces.recorders import several_function, single_function

__all__: list[str] = []

inverted = single_function(linear_algebra.inv)
determined = single_function(linear_algebra.det)
measured = single_function(linear_algebra.norm)
solved = several_function(linear_algebra.solve)
factored = single_function(triangular.cholesky)

SlogdetResult: Any = type(np.linalg.slogdet(np.ones((1, 1))))  # NumPy has no public name for it


# Products


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
        raise ShapeError(
            describe("outer", f"shapes {x.shape} and {y.shape}", "one axis each is needed", "Use wengert.numpy.outer")
        )
    return outer_product(x, y)


@implements(np.linalg.cross)
def cross(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """Return the cross products of vectors of space; see `numpy.linalg.cross`."""
    x, y = array("cross", x1), array("cross", x2)
    if x.shape[axis] != 3 or y.shape[axis] != 3:
        raise ShapeError(
            describe(
                "cross",
                f"shapes {x.shape} and {y.shape}",
                f"vectors with 3 elements along axis {axis} are needed",
                "Append a zero to vectors of the plane",
            )
        )
    return _contractions.cross(x, y, axis=axis)


@implements(np.linalg.multi_dot)
def multi_dot(arrays: Any, *, out: Any = None) -> Any:
    """Return the product of several matrices, in the cheapest order; see `numpy.linalg.multi_dot`."""
    factors = [array("multi_dot", x) for x in arrays]
    dot: Any = _contractions.dot
    if len(factors) < 2:
        raise UsageError(
            describe("multi_dot", f"{len(factors)} arrays", "at least two are needed", "Pass the factors as a list")
        )
    if len(factors) == 2:
        return dot(*factors, out=out)
    first, last = factors[0].ndim, factors[-1].ndim
    if first == 1:
        factors[0] = factors[0][None, :]
    if last == 1:
        factors[-1] = factors[-1][None, :].T
    if any(x.ndim != 2 for x in factors):
        raise ShapeError(
            describe(
                "multi_dot",
                f"shapes {', '.join(str(x.shape) for x in factors)}",
                "matrices are needed, or vectors at the ends",
                "Use matmul for stacks of matrices",
            )
        )
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
    x = square("matrix_power", a)
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


# Inverses and determinants


def square(name: str, value: Any) -> Any:
    """Return an operand that is a stack of square matrices."""
    x = array(name, value)
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise np.linalg.LinAlgError(
            describe(name, f"shape {x.shape}", "square matrices along the last two axes are needed", "Reshape it")
        )
    return x


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Return the inverse; see `numpy.linalg.inv`."""
    return inverted(square("inv", a), {})


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Return the solution x of a x = b; see `numpy.linalg.solve`."""
    return solved((square("solve", a), array("solve", b)), {})


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """Return the determinant; see `numpy.linalg.det`."""
    return determined(square("det", a), {})


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Return the sign and the logarithm of the absolute value of the determinant; see `numpy.linalg.slogdet`."""
    return SlogdetResult(*apply(linear_algebra.slogdet, square("slogdet", a)))


# Decompositions


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the Cholesky factor; see `numpy.linalg.cholesky`."""
    return factored(square("cholesky", a), {"upper": bool(upper)})


# Norms


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm of vectors or matrices; see `numpy.linalg.norm`.

    Raises:
        DtypeError: the order needs singular values, and these have no derivatives here.
    """
    x = array("norm", x)
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    axis = axis if axis is None or isinstance(axis, tuple) else (operator.index(axis),)
    count = x.ndim if axis is None else len(axis)
    if (axis is None and ord is None) or (count <= 2 and is_smooth(ord, count)):
        return measured(x, {"order": ord, "axis": axis, "keepdims": bool(keepdims)})
    if count == 1:
        return extreme_vector_norm(x, ord, axis, keepdims)
    if count == 2 and ord in (1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        rows, columns = (normalize_axis_index(i, x.ndim) for i in (axis or (0, 1)))
        return kept(matrix_norm_of_order(x, ord, rows, columns), x.shape, (rows, columns), keepdims)
    return np.linalg.norm(np.empty(x.shape), ord, axis, keepdims)  # NumPy's error about order or axes


def is_smooth(order: Any, count: int) -> bool:
    """Tell whether a norm over one axis or two is a root of a sum of powers."""
    if count == 2:
        return order is None or order in ("fro", "f")
    return count == 1 and not isinstance(order, str) and (order is None or order not in (0, 1, np.inf, -np.inf))


def extreme_vector_norm(x: Any, order: Any, axis: Any, keepdims: bool) -> Any:
    """Return the norm of order 0, 1 or infinity."""
    if order == 0:
        return np.sum((x != 0).astype(x.real.dtype), axis=axis, keepdims=keepdims)
    size = np.absolute(x)
    if order == 1:
        return np.sum(size, axis=axis, keepdims=keepdims)
    if order == np.inf:
        return greatest(size, axis, keepdims)
    if order == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    raise ValueError(describe("norm", f"order {order!r} for vectors", "a number is needed", "Pass ord=2, for instance"))


def greatest(size: Any, axis: Any, keepdims: bool = False) -> Any:
    """Return the maximum of values that are not negative, 0 if there are none."""
    options: dict[str, Any] = {"initial": 0} if 0 in size.shape else {}
    return np.max(size, axis=axis, keepdims=keepdims, **options)


def matrix_norm_of_order(x: Any, order: Any, rows: int, columns: int) -> Any:
    """Return an operator norm of the matrices along two axes."""
    if order in (2, -2, "nuc"):
        values = np.linalg.svd(np.moveaxis(x, (rows, columns), (-2, -1)), compute_uv=False)
        if order == "nuc":
            return np.sum(values, axis=-1)
        return greatest(values, -1) if order == 2 else np.min(values, axis=-1)
    summed, other = (rows, columns) if order in (1, -1) else (columns, rows)
    sums = np.sum(np.absolute(x), axis=summed)
    other -= other > summed
    return greatest(sums, other) if order > 0 else np.min(sums, axis=other)


def kept(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """Return a reduced value, with the reduced axes as axes of length one if they are to be kept."""
    return result.reshape(tuple(1 if i in axes else n for i, n in enumerate(shape))) if keepdims else result


@implements(np.linalg.vector_norm)
def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """Return the norm of vectors along one or several axes; see `numpy.linalg.vector_norm`."""
    x = array("vector_norm", x)
    axes = tuple(range(x.ndim)) if axis is None else normalize_axis_tuple(axis, x.ndim)
    flat, place = x, axis
    if axis is None:
        flat, place = x.reshape(math.prod(x.shape)), 0
    elif isinstance(axis, tuple):
        rest = [i for i in range(x.ndim) if i not in axes]
        lengths = [x.shape[i] for i in rest]
        flat = np.transpose(x, (*axes, *rest)).reshape((math.prod(x.shape[i] for i in axes), *lengths))
        place = 0
    return kept(norm(flat, ord, place), x.shape, axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return a norm of the matrices along the last two axes; see `numpy.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)
