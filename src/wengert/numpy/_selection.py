"""Selection with NumPy's signatures."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.dispatch import apply, implements
from wengert.primitives import selection
from wengert.traces.operators import operand

__all__: list[str] = []


@implements(np.where)
def where(condition: Any, x: Any = None, y: Any = None, /) -> Any:
    """Return elements of x where the condition holds and of y elsewhere; see `numpy.where`."""
    if x is None and y is None:
        return np.nonzero(condition)
    return apply(selection.where, operand("where", condition), operand("where", x), operand("where", y))
