"""Shapes, joining and splitting with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.dispatch import apply, as_tensor, implements
from wengert.core.tensor import Tensor
from wengert.primitives import shapes

__all__: list[str] = []


@implements(np.reshape)
def reshape(a: Any, /, shape: Any = None, order: str = "C", *, copy: bool | None = None) -> Tensor:
    """Return the elements in another shape; see `numpy.reshape`."""
    x = as_tensor(a)
    lengths = np.empty(x.shape, np.bool_).reshape(shape, order=order).shape  # type: ignore[call-overload]
    return apply(shapes.reshape, x.copy() if copy else x, shape=lengths, order=order)  # type: ignore[no-any-return]


@implements(np.broadcast_to)
def broadcast_to(array: Any, shape: Any, subok: bool = False) -> Tensor:
    """Return a read-only view with another shape; see `numpy.broadcast_to`."""
    return apply(shapes.broadcast_to, as_tensor(array), shape=tuple(np.broadcast_shapes(shape)))  # type: ignore[no-any-return]
