"""Piecewise linear interpolation."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.aval import aval_of
from wengert.core.declare import opaque
from wengert.core.dispatch import apply
from wengert.core.routine import Routine
from wengert.core.tensor import Tensor
from wengert.primitives.index_layout import OPERAND
from wengert.primitives.indexing import getitem, transpose_part


def gather(points: Any, places: Any) -> Any:
    """Return the elements of a sequence at places."""
    return apply(getitem, points, places if type(places) is Tensor else np.asarray(places), index=(OPERAND,))


def scatter(values: Any, places: Any, like: Any) -> Any:
    """Return zeros with the shape of a sequence and values added at places, which may repeat."""
    aval = aval_of(like)._replace(dtype=values.dtype)
    return transpose_part(values, aval, places if type(places) is Tensor else np.asarray(places), index=(OPERAND,))


def vjp_interp(ct: Any, _out: Any, x: Any, xp: Any, fp: Any) -> tuple[Any, Any, Any]:
    """Differentiate f + (x - a) s on the segment [a, b) of x, where s = (g - f) / (b - a); constant outside.

    At a point of the polygon the segment that starts there counts, at the last point the one that ends there.
    """
    if fp.shape[0] == 1:
        return None, None, ct.sum().reshape(1)
    j = np.clip(np.searchsorted(xp, x, side="right") - 1, 0, xp.shape[0] - 2)
    inside = (x >= xp[0]) & (x <= xp[-1])
    a, b, f, g = (gather(points, places) for points in (xp, fp) for places in (j, j + 1))
    width = np.where(b == a, 1.0, b - a)
    slope = (g - f) / width
    weight = np.where(inside, (x - a) / width, np.where(x > xp[-1], 1.0, 0.0))
    rise = np.where(inside, ct * slope, 0.0)
    ct_xp = scatter(rise * (weight - 1), j, xp) + scatter(-rise * weight, j + 1, xp)
    ct_fp = scatter(ct * (1 - weight), j, fp) + scatter(ct * weight, j + 1, fp)
    return rise, ct_xp, ct_fp


interp = opaque("interp", np.interp, vjp=vjp_interp, form=Routine("(),(n),(n)->()", stacked=False))
