"""Barriers: values pass, derivatives do not."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.form import Pointwise
from wengert.core.primitives.declare import constant, elementwise


def own_copy(x: Any) -> Any:
    """Return a value in memory of its own, which lies as it does."""
    return x.copy(order="K") if isinstance(x, np.ndarray) else x


barrier = constant("stop_gradient", own_copy, form=Pointwise(), scalar="copy", parts="each")

stand_in = constant("stand_in", own_copy, form=Pointwise(), scalar="copy", parts="each")
"""What stands where nobody reads results, such as in lanes that take another branch; for linearity it is as zeros."""


def replaced(old: Any, new: Any) -> Any:
    """Return the second value in memory of its own, for every lane that the first has."""
    lanes = np.shape(old) != np.shape(new)
    return own_copy(np.broadcast_to(new, np.broadcast_shapes(np.shape(old), np.shape(new))) if lanes else new)


overwritten = elementwise(
    "overwritten", replaced, d=(lambda t, _out, _old, _new: t, None), scalar=lambda _old, new: new, parts="each"
)
"""The second value with the derivatives of the first: what a write under `no_grad` leaves, as in PyTorch."""
