"""Elements of sequences at places: gathered, added up, interpolated, and the extremes of those at one place."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Pointwise
from wengert.core.forms.routine import Routine
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import Tensor
from wengert.errors import describe
from wengert.primitives.floating_point import is_nan
from wengert.primitives.indexing.index_layout import OPERAND
from wengert.primitives.indexing.parts import getitem, transpose_part


def gather(points: Any, places: Any) -> Any:
    """Return the elements of a sequence at places."""
    return apply(getitem, points, places if type(places) is Tensor else np.asarray(places), index=(OPERAND,))


def scatter(values: Any, places: Any, like: Any) -> Any:
    """Return zeros with the shape of a sequence and values added at places, which may repeat."""
    aval = aval_of(like)._replace(dtype=values.dtype)
    return transpose_part(values, aval, places if type(places) is Tensor else np.asarray(places), index=(OPERAND,))


def segments(x: Any, xp: Any) -> tuple[Any, Any]:
    """Return the segment [xp[j], xp[j + 1]) that each x lies in, the last one closed, and whether it lies in one."""
    j = np.searchsorted(xp, x, side="right") - 1
    last = xp.shape[0] - 2
    if type(j) is np.ndarray:
        np.minimum(np.maximum(j, 0, out=j), last, out=j)
    else:
        j = np.clip(j, 0, last)
    return j, (x >= xp[0]) & (x <= xp[-1])


def widths_of(points: Any) -> Any:
    """Return the distances of points, 1 where two are equal."""
    width = points[1:] - points[:-1]
    return np.where(width == 0, 1.0, width)


def evaluate_slopes(x: Any, xp: Any, fp: Any) -> Any:
    """Evaluate the slopes of the polygon at x: those of the segment that starts there, and 0 outside."""
    if xp.shape[0] < 2:
        return np.zeros_like(x)
    j, inside = segments(x, xp)
    slope = ((fp[1:] - fp[:-1]) / widths_of(xp))[j]
    return slope if np.all(inside) else np.where(inside, slope, 0.0)


def segment_at(x: Any, xp: Any, fp: Any) -> tuple[Any, ...]:
    """Return which segment starts before x in a kernel, -1 before the first, and the ends of the nearest there is."""
    last = xp.shape[0] - 1
    j = np.searchsorted(xp, x, "right") - 1
    low = np.minimum(np.maximum(j, 0), last - 1)
    return j, *[np.take(points, places) for points in (xp, fp) for places in (low, low + 1)]


def slope_at(x: Any, xp: Any, fp: Any) -> Any:
    """Return the slopes of the polygon in a kernel."""
    if xp.shape[0] < 2:
        return np.full_like(x, 0)
    _, a, b, f, g = segment_at(x, xp, fp)
    inside = (x >= np.take(xp, 0)) & (x <= np.take(xp, -1))
    return np.where(inside, (g - f) / np.where(b == a, 1, b - a), 0)


def polygon_at(x: Any, xp: Any, fp: Any) -> Any:
    """Return the values of the polygon in a kernel, in NumPy's steps."""
    if xp.shape[0] < 2:
        return np.where(x < np.take(xp, 0), np.take(fp, 0), np.take(fp, 0))
    j, a, b, f, g = segment_at(x, xp, fp)
    slope = (g - f) / (b - a)
    found, other = slope * (x - a) + f, slope * (x - b) + g
    found = np.where(is_nan(found), np.where(is_nan(other) & (f == g), f, other), found)
    found = np.where(j == xp.shape[0] - 1, np.take(fp, -1), np.where(x == a, f, found))
    return np.where(is_nan(x), x, np.where(j < 0, np.take(fp, 0), found))


AT_POINTS = Routine("(),(n),(n)->()", stacked=False)
slopes = constant("interp_slopes", evaluate_slopes, form=AT_POINTS, scalar=slope_at)


def vjp_interp(ct: Any, _out: Any, x: Any, xp: Any, fp: Any) -> tuple[Any, Any, Any]:
    """Differentiate f + (x - a) s on the segment [a, b) of x, where s = (g - f) / (b - a); constant outside.

    At a point of the polygon the segment that starts there counts, at the last point the one that ends there.
    """
    if not fp.shape[0]:  # at no places
        return None, None, None
    if fp.shape[0] == 1:
        return None, None, ct.sum().reshape(1)
    j, inside = segments(x, xp)
    if all(type(value) is np.ndarray for value in (ct, x, xp, fp)):
        a, width, slope = xp[j], widths_of(xp)[j], ((fp[1:] - fp[:-1]) / widths_of(xp))[j]
    else:
        a, b, f, g = (gather(points, places) for points in (xp, fp) for places in (j, j + 1))
        width = np.where(b == a, 1.0, b - a)
        slope = (g - f) / width
    weight = np.where(inside, (x - a) / width, np.where(x > xp[-1], 1.0, 0.0))
    rise = np.where(inside, ct * slope, 0.0)
    return rise, deal_to_ends(-rise, weight, j, xp), deal_to_ends(ct, weight, j, fp)


def deal_to_ends(values: Any, weight: Any, j: Any, like: Any) -> Any:
    """Return values divided between the ends of segments."""
    high = values * weight
    if all(type(x) is np.ndarray and x.dtype == np.float64 for x in (high, like)) and type(j) is np.ndarray:
        places, count = j.ravel(), like.shape[0]
        found = np.bincount(places, (values - high).ravel(), count)
        found[1:] += np.bincount(places, high.ravel(), count)[:-1]
        return found
    return scatter(values - high, j, like) + scatter(high, j + 1, like)


interp = opaque("interp", np.interp, vjp=vjp_interp, form=AT_POINTS, scalar=polygon_at)
interp_at = opaque(
    "interp_at",
    np.interp,
    vjp=lambda ct, _out, x, xp, fp: ct * apply(slopes, x, xp, fp),
    jvp=lambda tangents, _out, x, xp, fp: tangents[0] * apply(slopes, x, xp, fp),
    form=AT_POINTS,
    scalar=polygon_at,
)


class Among(Pointwise):
    """Pass on what lies between the others, which examples might not do."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], _params: Mapping[str, Any]) -> Results:
        """Return the shape that all broadcast to."""
        avals = [aval_of(value) for value in inputs]
        return (Aval(np.broadcast_shapes(*[aval.shape for aval in avals]), avals[0].dtype),), None


def evaluate_within(x: Any, low: Any, high: Any, *, name: str) -> Any:
    """Evaluate `within`: places as they are, none of which lies outside."""
    if np.any((x < low) | (x > high)):
        needed = "places among the samples are needed"
        raise ValueError(describe(name, "a place outside of them", needed, "Say what is outside, or leave it out"))
    shape = np.broadcast_shapes(np.shape(x), np.shape(low), np.shape(high))
    return np.array(np.broadcast_to(x, shape), order="C")


within = opaque(
    "within",
    evaluate_within,
    vjp=lambda ct, _out, x, _low, _high, **_name: (unbroadcast(ct, np.shape(x)), None, None),
    jvp=lambda tangents, out, _x, _low, _high, **_name: np.broadcast_to(
        0.0 if tangents[0] is None else tangents[0], np.shape(out)
    ),
    form=Among(),
)


# The extremes of elements of a vector and of values at places that may repeat: `maximum.at` and `minimum.at`


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
