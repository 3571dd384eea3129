"""Selection: choosing between values by a condition."""

from __future__ import annotations

import numpy as np

from wengert.core.primitive import elementwise

where = elementwise(
    "where",
    np.where,
    d=(
        None,
        lambda t, _out, condition, _x, _y: np.where(condition, t, 0.0),
        lambda t, _out, condition, _x, _y: np.where(condition, 0.0, t),
    ),
)
