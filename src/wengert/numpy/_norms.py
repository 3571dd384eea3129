"""Norms and condition numbers with NumPy's signatures."""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_index, normalize_axis_tuple

from wengert.core.values.dispatch import implements
from wengert.core.values.plain_functions import enter_by_numpy
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import describe
from wengert.numpy._contractions import array
from wengert.numpy._linalg import inv, singular_values
from wengert.numpy._matrices import matrices, square_matrices
from wengert.primitives.linear_algebra import inverses
from wengert.traces.eager_functions import eager_single

apply_norm = eager_single(inverses.norm)


@implements(np.linalg.norm)
def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """Return a norm of vectors or matrices; see `numpy.linalg.norm`."""
    x = array("norm", x)
    if x.dtype.kind not in "fc":
        x = x.astype(float)
    axis = axis if axis is None or isinstance(axis, tuple) else (operator.index(axis),)
    count = x.ndim if axis is None else len(axis)
    if (axis is None and ord is None) or (count <= 2 and is_smooth(ord, count)):
        return apply_norm(x, {"order": ord, "axis": axis, "keepdims": bool(keepdims)})
    if count == 1:
        return extreme_vector_norm(x, ord, axis, keepdims)
    if count == 2 and ord in (1, -1, np.inf, -np.inf, 2, -2, "nuc"):
        rows, columns = (normalize_axis_index(i, x.ndim) for i in (axis or (0, 1)))
        return keep_axes(matrix_norm_of_order(x, ord, rows, columns), x.shape, (rows, columns), keepdims)
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
        return greatest_size(size, axis, keepdims)
    if order == -np.inf:
        return np.min(size, axis=axis, keepdims=keepdims)
    raise ValueError(describe("norm", f"order {order!r} for vectors", "a number is needed", "Pass ord=2, for instance"))


def greatest_size(size: Any, axis: Any, keepdims: bool = False) -> Any:
    """Return the maximum of values that are not negative, 0 if there are none."""
    options: dict[str, Any] = {"initial": 0} if 0 in size.shape else {}
    return np.max(size, axis=axis, keepdims=keepdims, **options)


def matrix_norm_of_order(x: Any, order: Any, rows: int, columns: int) -> Any:
    """Return an operator norm of the matrices along two axes."""
    if order in (2, -2, "nuc"):
        values = singular_values(np.moveaxis(x, (rows, columns), (-2, -1)), {"still": True, "shared": order != "nuc"})
        if order == "nuc":
            return np.sum(values, axis=-1)
        return greatest_size(values, -1) if order == 2 else np.min(values, axis=-1)
    summed, other = (rows, columns) if order in (1, -1) else (columns, rows)
    sums = np.sum(np.absolute(x), axis=summed)
    other -= other > summed
    return greatest_size(sums, other) if order > 0 else np.min(sums, axis=other)


def keep_axes(result: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
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
    return keep_axes(norm(flat, ord, place), x.shape, axes, keepdims)


@implements(np.linalg.matrix_norm)
def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """Return a norm of the matrices along the last two axes; see `numpy.linalg.matrix_norm`."""
    return norm(x, ord, (-2, -1), keepdims)


@implements(np.linalg.cond)
def cond(x: Any, p: Any = None) -> Any:
    """Return condition numbers; see `numpy.linalg.cond`."""
    x = matrices("cond", x)
    if 0 in x.shape[-2:]:
        needed = "rows and columns are needed"
        raise np.linalg.LinAlgError(describe("cond", f"shape {x.shape}", needed, "Leave empty matrices out"))
    with np.errstate(all="ignore"):
        if p is None or p in (2, -2):
            s = singular_values(x, {"still": True, "shared": True})
            ratio: Any = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
        else:
            ratio = condition_by_inverse(square_matrices("cond", x), p)
        if not is_concrete(ratio) or np.isnan(raw(ratio)).any():
            ratio = np.where(np.isnan(ratio) & ~np.any(np.isnan(x), axis=(-2, -1)), np.inf, ratio)
    return ratio


def condition_by_inverse(x: Any, order: Any) -> Any:
    """Return the norms of matrices times those of their inverses; infinity for singular ones."""
    try:
        return norm(x, order, (-2, -1)) * norm(inv(x), order, (-2, -1))
    except np.linalg.LinAlgError:
        if x.ndim == 2:
            return np.full((), np.inf, x.real.dtype)[()]
    return np.reshape(np.stack([condition_by_inverse(m, order) for m in x.reshape((-1, *x.shape[-2:]))]), x.shape[:-2])


enter_by_numpy(np.linalg.matrix_norm, np.linalg.norm, np.linalg.vector_norm, most=1)
