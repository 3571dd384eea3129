"""Selection: choosing between values by a condition, and limiting them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.forms.batching import lead
from wengert.core.forms.form import Flags, Lanes, Params, Pointwise
from wengert.core.forms.view_forms import Selection
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.memory.masked_selection import either, select_where, select_where_not
from wengert.core.primitives.cotangent import guard, match_dtype
from wengert.core.primitives.declare import constant, elementwise, linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, shape_of
from wengert.core.values.dispatch import ARRAYS, apply, as_tensor
from wengert.core.values.tensor import Tensor, visible_array
from wengert.primitives import complex_parts, rewrites
from wengert.primitives.floating_point import is_infinite, is_nan
from wengert.primitives.kinks import split_at_ties
from wengert.support.machine import MACHINE

where = elementwise(
    "where",
    either,
    d=(
        None,
        lambda t, _out, condition, _x, _y: select_where(condition, t),
        lambda t, _out, condition, _x, _y: select_where_not(condition, t),
    ),
    passes=True,
    joins=True,
    scalar=lambda condition, x, y: np.where(condition.astype(bool), x, y),
    parts="each",
    loop=range(1),
    linear_in=((1, 2),),
    rewrites=(rewrites.choose,),
)


# The strong zero of singular primitives (ADR 0006): a selection that is closed under differentiation


def evaluate_guarded(
    x: Any, r: Any, t: Any, *, masked: bool = False, steep: bool = False, multiple: bool = True
) -> Any:
    """Evaluate `guarded`; at `masked` only sweeps look, at `multiple` kernels."""
    ends = (t == 0) | np.isinf(t) if steep else t == 0
    return np.where((r != r) & ends, np.zeros((), x.dtype), x)


def guarded_at(x: Any, r: Any, t: Any, *, masked: bool = False, steep: bool = False, multiple: bool = True) -> Any:
    """Return x, and 0 where r is NaN although t is 0, or infinite behind an infinite partial.

    An r that is a multiple of t is 0 where t is, or NaN.
    """
    if steep and t.dtype.kind == "f":
        return np.where(is_nan(r) & ((t == 0) | is_infinite(t)), 0, x)
    if multiple and x.is_same(r) and r.dtype == t.dtype and r.dtype.kind == "f":
        return r.opcode("guarded", t)
    return np.where(is_nan(r) & (t == 0), 0, x)


def move_guarded(tangents: Sequence[Any], _out: Any, _x: Any, r: Any, t: Any, **kept: bool) -> Any:
    """Guard the tangent; behind a mask also where r is a number but its slope is not, although t stays 0.

    That slope is no multiple of what says that t stays 0: where t is 0 it is t's, and the slope may be of the partial.
    """
    moved, slope, step = tangents
    if moved is None:
        return None
    moved = guard(moved, r, t, **kept)
    if not kept or slope is None:
        return moved
    stays = t if step is None else np.where(t == 0, step, t)
    return guard(moved, slope, stays, **{**kept, "multiple": False, "steep": False})


guarded = linear(
    "guarded",
    evaluate_guarded,
    transpose=lambda ct, _aval, r, t, **kept: guard(ct, r, t, **kept),
    form=Pointwise(),
    fresh=True,
    jvp=move_guarded,
    scalar=guarded_at,
    parts=complex_parts.guard_pair,
    loop=range(1, 3),
    rewrites=(rewrites.drop_guard,),
)


def require_truth(x: Any) -> Any:
    """Return a truth in a kernel; NumPy computes everything where it does not hold."""
    x.require()
    return x


required = constant("required", np.copy, form=Pointwise(), scalar=require_truth)


def clip_value(t: Any, out: Any, x: Any, low: Any, high: Any) -> Any:
    """Differentiate min(max(x, low), high) by x; ties share as those of maximum and minimum do."""
    if type(out) is ndarray and out.shape == np.shape(x):
        within = (x > low) & (x < high)
        if np.count_nonzero(within) == np.count_nonzero(out == x):  # there are no ties
            return select_where(within, t)
    raised = np.maximum(x, low)
    return split_at_ties(split_at_ties(t, raised < high, raised == high), x > low, x == low)


def clip_low(t: Any, _out: Any, x: Any, low: Any, high: Any) -> Any:
    """Differentiate min(max(x, low), high) by the lower bound."""
    raised = np.maximum(x, low)
    return split_at_ties(split_at_ties(t, raised < high, raised == high), low > x, x == low)


def clip_high(t: Any, _out: Any, x: Any, low: Any, high: Any) -> Any:
    """Differentiate min(max(x, low), high) by the upper bound."""
    raised = np.maximum(x, low)
    return split_at_ties(t, high < raised, raised == high)


def limit_value(x: Any, low: Any, high: Any) -> Any:
    """Evaluate `clip`: by the method, as NumPy does, where there is one."""
    return x.clip(low, high) if isinstance(x, ARRAYS) else np.clip(x, low, high)


clip = elementwise(
    "clip",
    limit_value,
    d=(clip_value, clip_low, clip_high),
    passes=True,
    joins=True,
    scalar=lambda x, low, high: np.minimum(np.maximum(x, low), high),
    kink="At a bound, the element and the bound get half each.",
)


# Which elements: structural zeros whose shapes may depend on the values

CHOOSE_INSTEAD = "Use numpy.where(condition, x, y), which keeps the shape"


def places(x: Any) -> Any:
    """Evaluate `nonzero` as one array, one row for each axis, which lies in memory as NumPy's do: side by side."""
    return np.stack(np.nonzero(x), axis=-1).T


nonzero = constant("nonzero", places, form=Selection(CHOOSE_INSTEAD))
argwhere = constant("argwhere", np.argwhere, form=Selection(CHOOSE_INSTEAD))


# Positions of flattened arrays


unravel_index = constant(
    "unravel_index",
    lambda x, *, shape, order: np.stack(np.unravel_index(x, shape, order)),
    batch=lambda primitive, _size, operands, _batched, params: np.moveaxis(apply(primitive, *operands, **params), 1, 0),
)
ravel_multi_index = constant(
    "ravel_multi_index",
    lambda *parts, dims, mode, order: np.ravel_multi_index(parts, dims, mode, order),
    form=Pointwise(),
)


# Counting: constant in the data, linear in the weights


def look_up(ct: Any, places: Any) -> Any:
    """Return the elements of a cotangent at places, which may have lanes where it has none and is an ndarray."""
    return as_tensor(ct)[places] if type(places) is Tensor else ct[places]


def gather_bins(ct: Any, aval: Aval, x: Any, *, bins: Any, range: Any) -> Any:
    """Give each weight the cotangent of the bin that it was added to; the last bin is closed on both sides."""
    edges = np.histogram_bin_edges(x, bins, range)
    values = x.ravel()
    inside = (values >= edges[0]) & (values <= edges[-1])
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    return match_dtype(np.where(inside, look_up(ct, place), 0.0), aval.dtype).reshape(aval.shape)


COUNT_INSTEAD = "Pass minlength, greater than each number, so that the length is known"


class CountedSelection(Selection):
    """Counts of numbers, the last operand: of all lanes at once, those of each lane behind those of the one before."""

    def batch(
        self, primitive: Primitive, size: int, operands: Sequence[Any], batched: Flags, params: Params
    ) -> Lanes | None:
        """Count all lanes at once; lane by lane where they have several lengths, or NumPy refuses a number."""
        given = operands[-1]
        known = visible_array(given)  # of all lanes, also of those that it has further out
        if known is None or known.size == 0 or known.min() < 0:
            return None
        lengths = np.maximum(known.max(axis=-1) + 1, params["minlength"])
        if (lengths != lengths.flat[0]).any():
            return None
        length = int(lengths.flat[0])
        lanes: Any = lead(given, batched[-1], size)
        places = lanes + length * np.arange(size)[:, None]
        flat = [lead(x, flag, size).reshape(-1) for x, flag in zip(operands[:-1], batched[:-1], strict=True)]
        found = apply(primitive, *flat, places.reshape(-1), minlength=size * length)
        return [found.reshape((size, length))], []

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Add each weight to the count of its number; to any, if that is not known."""
        (n,), places = shape_of(operands[position]), operands[-1]
        own = [Coordinate.along(0)]
        if not isinstance(places, np.ndarray):
            return None
        return [BoxMap((n,), [Coordinate.from_table(0, places.astype(np.int64))], own)]


bincount = linear(
    "bincount",
    lambda weights, x, *, minlength: np.bincount(x, weights, minlength),
    transpose=lambda ct, aval, x, *, minlength: match_dtype(look_up(ct, x), aval.dtype),
    form=CountedSelection(COUNT_INSTEAD, decides=1),
)
occurrences = constant(
    "occurrences",
    lambda x, *, minlength: np.bincount(x, None, minlength),
    form=CountedSelection(COUNT_INSTEAD, function="bincount"),
)


def histogram_form(data: int = 0) -> Selection:
    """Return the form of a histogram of the operand `data`."""
    return Selection(
        "Pass the number of bins, or their edges",
        data,
        "histogram",
        unless=lambda params: not isinstance(params["bins"], str),
    )


def edges_at(x: Any, *, bins: Any, range: Any) -> Any:
    """Return the edges of bins in a kernel; None where they depend on elements, and of whole numbers."""
    if isinstance(bins, str) or x.dtype != np.float64 or (isinstance(bins, int) and range is None):
        return None
    return np.array(np.histogram_bin_edges(np.zeros(1), bins, range), like=x)


def bins_at(x: Any, bins: Any, range: Any) -> Any:
    """Return for each bin, along an axis in front, which elements lie in it, in a kernel; None if none knows the edges.

    The last bin has its end, the others have not.
    """
    edges = edges_at(x, bins=bins, range=range)
    if edges is None or edges.shape[0] < 2 or math.prod(x.shape) * edges.shape[0] > MACHINE.compared:
        return None
    last = edges.shape[0] - 2
    place = np.where(x == np.take(edges, -1), last, np.searchsorted(edges, x, "right") - 1)
    number = np.expand_dims(np.arange(last + 1, like=x), [k + 1 for k, _ in enumerate(x.shape)])
    return np.expand_dims(place, (0,)) == number


def histogram_at(weights: Any, x: Any, *, bins: Any, range: Any) -> Any:
    """Add up the weights in bins in a kernel."""
    within = bins_at(x, bins, range)
    if within is None:
        return None
    spread = np.where(within, np.expand_dims(weights, (0,)), 0)
    return np.sum(spread, axis=[k + 1 for k, _ in enumerate(x.shape)], keepdims=True)


histogram = linear(
    "histogram",
    lambda weights, x, *, bins, range: np.histogram(x, bins, range, weights=weights)[0],
    transpose=gather_bins,
    form=histogram_form(data=1),
    scalar=histogram_at,
    loop=range(2),
)
histogram_counts = constant(
    "histogram_counts",
    lambda x, *, bins, range: np.histogram(x, bins, range)[0],
    form=histogram_form(),
    scalar=lambda x, *, bins, range: histogram_at(np.full_like(x, 1, np.int64), x, bins=bins, range=range),
    loop=range(1),
)
histogram_bin_edges = constant(
    "histogram_bin_edges", np.histogram_bin_edges, form=histogram_form(), scalar=edges_at, loop=range(1)
)
