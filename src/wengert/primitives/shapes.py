"""Shapes: the same elements in another arrangement. Most results are views, as in NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.cotangent import unbroadcast
from wengert.core.primitive import linear


def transpose_reshape(ct: Any, aval: Any, *, shape: Any, order: str) -> Any:
    """Return the cotangent in the operand's shape."""
    return np.reshape(ct, aval.shape, order=order)  # type: ignore[call-overload]


def spread(x: Any, *, shape: tuple[int, ...]) -> Any:
    """Evaluate `broadcast_to`."""
    return np.broadcast_to(x, shape)


reshape = linear(
    "reshape", lambda x, shape, order: np.reshape(x, shape, order=order), transpose=transpose_reshape, view=True
)
broadcast_to = linear(
    "broadcast_to", spread, transpose=lambda ct, aval, shape: unbroadcast(ct, aval.shape), view=True
)
