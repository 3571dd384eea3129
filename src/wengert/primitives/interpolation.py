"""Piecewise linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.aval import aval_of
from wengert.core.primitive import opaque
from wengert.core.tensor import raw
from wengert.primitives.index_layout import OPERAND
from wengert.primitives.indexing import transpose_part


def scatter(values: Any, places: Any, like: Any) -> Any:
    """Return zeros with the shape of a sequence and values added at places, which may repeat."""
    aval = aval_of(like)._replace(dtype=values.dtype)
    return transpose_part(values, aval, np.asarray(places), index=(OPERAND,))


def vjp_interp(ct: Any, _out: Any, x: Any, xp: Any, fp: Any) -> tuple[Any, Any, Any]:
    """Differentiate f + (x - a) s on the segment [a, b) of x, where s = (g - f) / (b - a); constant outside.

    At a point of the polygon the segment that starts there counts, at the last point the one that ends there.
    """
    if fp.shape[0] == 1:
        return None, None, ct.sum().reshape(1)
    points, where = raw(xp), raw(x)
    j = np.clip(np.searchsorted(points, where, side="right") - 1, 0, points.size - 2)
    inside = (where >= points[0]) & (where <= points[-1])
    a, b, f, g = xp[j], xp[j + 1], fp[j], fp[j + 1]
    width = np.where(raw(b) == raw(a), 1.0, b - a)
    slope = (g - f) / width
    weight = np.where(inside, (x - a) / width, np.where(where > points[-1], 1.0, 0.0))
    rise = np.where(inside, ct * slope, 0.0)
    ct_xp = scatter(rise * (weight - 1), j, xp) + scatter(-rise * weight, j + 1, xp)
    ct_fp = scatter(ct * (1 - weight), j, fp) + scatter(ct * weight, j + 1, fp)
    return rise, ct_xp, ct_fp


interp = opaque("interp", np.interp, vjp=vjp_interp)
