"""Reductions and accumulations with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wengert.core.dispatch import apply, as_tensor, implements
from wengert.core.tensor import Tensor
from wengert.numpy._ufuncs import with_out
from wengert.primitives import reductions

__all__: list[str] = []


def axes(axis: Any, ndim: int) -> tuple[int, ...]:
    """Return the axes to reduce as a tuple of numbers from 0; None means all."""
    return tuple(range(ndim)) if axis is None else normalize_axis_tuple(axis, ndim)


@implements(np.sum, (np.add, "reduce"))
def sum(  # noqa: A001 - NumPy's name
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: Any = None,
    keepdims: bool = False,
    initial: Any = None,
    where: Any = True,
) -> Tensor:
    """Return the sum over axes; see `numpy.sum`."""
    x = as_tensor(a)
    if dtype is not None:
        x = x.astype(dtype)
    if where is not True:
        x = np.where(where, x, np.zeros((), x.dtype))
    result = apply(reductions.sum_, x, axis=axes(axis, x.ndim), keepdims=bool(keepdims))
    if initial is not None:
        result = result + initial
    return with_out("sum", result, out)  # type: ignore[no-any-return]
