"""The extremes of elements of a vector and of values at places that may repeat: `maximum.at` and `minimum.at`."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import opaque
from wengert.primitives.indexing.interpolation import gather, scatter


def evaluate_extremes_at(a: Any, values: Any, places: Any, *, greatest: bool) -> Any:
    """Evaluate `extremes_at`: a copy, in which NumPy takes the values into account one after the other."""
    found = np.array(a)
    (np.maximum if greatest else np.minimum).at(found, places, values)
    return found


def vjp_extremes_at(ct: Any, out: Any, a: Any, values: Any, places: Any, *, greatest: bool) -> tuple[Any, Any, None]:
    """Share the cotangent of an element equally among what equals it: nothing, where it is NaN."""
    del greatest
    kept, chosen = a == out, values == gather(out, places)
    count = scatter(np.where(chosen, 1.0, 0.0), places, out) + np.where(kept, 1.0, 0.0)
    share = ct / np.where(count == 0, 1.0, count).astype(ct.dtype)
    return np.where(kept, share, 0), np.where(chosen, gather(share, places), 0), None


extremes_at = opaque(
    "extremes_at", evaluate_extremes_at, vjp=vjp_extremes_at, form=Routine("(n),(m),(m)->(n)", stacked=False)
)
