"""Quantiles and medians: values at places of the sorted elements, and what these give back to the elements.

A quantile lies between two sorted elements: (1 - g) s[j] + g s[j + 1], where j + g depends on q and the number of
elements. `quantile_collect` is that combination of any array t, sorted as x is and averaged over elements of x
that are tied; `quantile_distribute` is its transpose in t. With part="slope" the weights are the derivatives of
(1 - g, g) by q. The two are each other's vjp, and quantile's vjp is made of them, to any order. Parameters are those
of `primitives/statistics.py`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import lead, shift
from wengert.core.forms.element_maps import along
from wengert.core.forms.form import Form, Params, Reduction
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, shape_of
from wengert.core.values.dispatch import apply
from wengert.primitives.floating_point import is_nan
from wengert.primitives.reductions import Axes, count_along, restored_shape
from wengert.primitives.sorting import require_one_zero
from wengert.support.records import NamedTuple

# without NumPy's type overloads, which know few of the combinations of arguments
QUANTILES: dict[tuple[bool, bool], Any] = {
    (False, False): np.quantile,
    (False, True): np.nanquantile,
    (True, False): np.percentile,
    (True, True): np.nanpercentile,
}
"""NumPy's functions by `percent` and `skipna`."""

SLOPES: dict[str, tuple[float, float, float]] = {
    "linear": (1.0, -1.0, 0.0),
    "interpolated_inverted_cdf": (1.0, 0.0, -1.0),
    "hazen": (1.0, 0.0, -0.5),
    "weibull": (1.0, 1.0, -1.0),
    "median_unbiased": (1.0, 1 / 3, -2 / 3),
    "normal_unbiased": (1.0, 0.25, -0.625),
}
"""The place of a quantile among n sorted elements, (a n + b) q + c; it is constant in q for other methods."""


class QuantilePlan(NamedTuple):
    """Hold where quantiles lie among the elements of each lane.

    Attributes:
        order: the sorting permutation of each lane.
        runs: for each sorted element, the number of the run of equal elements that it belongs to; None if all differ.
        lower: the place j of each quantile, with the lanes as the first axis; the other is at j + 1.
        weights: their weights.
    """

    order: Any
    runs: Any
    lower: Any
    weights: tuple[Any, Any]


def to_lanes(x: Any, axis: Axes) -> Any:
    """Return an array that is not empty with the reduced axes as one last axis and the others as one first."""
    last = tuple(range(x.ndim - len(axis), x.ndim))
    moved = x if axis == last else np.moveaxis(x, axis, last)  # which takes 4 us
    length = count_along(x.shape, axis)
    return moved.reshape(-1, length)


def from_lanes(lanes: Any, shape: tuple[int, ...], axis: Axes) -> Any:
    """Return an array from its lanes."""
    kept = tuple(n for i, n in enumerate(shape) if i not in axis)
    last = tuple(range(len(kept), len(shape)))
    moved = lanes.reshape(kept + tuple(shape[i] for i in axis))
    found = moved if axis == last else np.moveaxis(moved, last, axis)
    return found if found.ndim else found[()]


def places(counts: Any, q: Any, method: str) -> Any:
    """Return the place j + g of each quantile among sorted elements, for each lane: the quantile of 0, 1, 2, ..."""
    if method == "linear":
        return np.maximum(counts[:, None] - 1, 0) * q.ravel()
    found = np.zeros((len(counts), q.size))
    for count in np.unique(counts):
        if count:
            found[counts == count] = QUANTILES[False, False](np.arange(count, dtype=float), q.ravel(), method=method)
    return found


def slope_of(counts: Any, q: Any, method: str) -> Any:
    """Return the derivatives of the places by q: 0 where they are clipped to the ends."""
    if method not in SLOPES:
        return np.zeros((len(counts), q.size))
    a, b, c = SLOPES[method]
    slope = a * counts[:, None] + b
    place = slope * q.ravel() + c
    return np.where((place >= 0) & (place <= counts[:, None] - 1), slope, 0.0)


def plan_quantiles(
    x: Any, q: Any, weights: Any, *, axis: Axes, method: str, percent: bool, skipna: bool, part: str
) -> QuantilePlan:
    """Return where quantiles lie among the elements of x."""
    lanes = to_lanes(x, axis)
    length = lanes.shape[1]
    order = np.argsort(lanes, axis=1)
    ordered = np.take_along_axis(lanes, order, axis=1)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    runs = None if new.all() else np.cumsum(new.ravel()) - 1
    q = np.asarray(q, x.real.dtype if isinstance(q, int | float) else None)
    counts = np.sum(ordered == ordered, axis=1) if skipna else np.full(len(lanes), length)
    if weights is None:
        found = places(counts, q / 100 if percent else q, method)
    else:
        value = QUANTILES[percent, skipna](x, q, axis=axis, method=method, weights=weights)
        found = np.sum(ordered[:, None, :] < np.reshape(value, (q.size, len(lanes))).T[:, :, None], axis=2)
    lower = np.minimum(np.maximum(np.floor(found), 0), max(length - 2, 0)).astype(np.intp)
    gap = found - lower
    if part == "slope":
        slope = slope_of(counts, q / 100 if percent else q, method) / (100 if percent else 1)
        return QuantilePlan(order, runs, lower, (-slope, slope))
    counted = (counts > 0)[:, None]
    return QuantilePlan(order, runs, lower, ((1 - gap) * counted, gap * counted))


def average_ties(values: Any, runs: Any) -> Any:
    """Return sorted values averaged over runs of tied elements; a symmetric map."""
    if runs is None:
        return values
    if values.dtype.kind == "c":
        return average_ties(values.real, runs) + 1j * average_ties(values.imag, runs)
    sums = np.bincount(runs, weights=values.ravel())
    return (sums / np.bincount(runs))[runs].reshape(values.shape)


def axes_of_q(x: Any, q: Any, skipna: bool) -> int:
    """Return how many axes quantiles have for q: none where NumPy skips NaN and gives the mean of no elements."""
    return np.ndim(q) if x.size or not skipna else 0


def evaluate_collect(t: Any, x: Any, q: Any, *weights: Any, keepdims: bool, axis: Axes, **options: Any) -> Any:
    """Combine elements of t as the quantiles of x combine those of x."""
    options.pop("moving")
    shape = np.shape(q) + (restored_shape(x.shape, axis) if keepdims else remaining_shape(x.shape, axis))
    if not x.size:
        return np.zeros(shape[np.ndim(q) - axes_of_q(x, q, options["skipna"]) :], t.dtype)[()]
    plan = plan_quantiles(x, q, weights[0] if weights else None, axis=axis, **options)
    values = average_ties(np.take_along_axis(to_lanes(t, axis), plan.order, axis=1), plan.runs)
    upper = np.minimum(plan.lower + 1, values.shape[1] - 1)
    low, high = (np.take_along_axis(values, place, axis=1) for place in (plan.lower, upper))
    found = plan.weights[0] * low + plan.weights[1] * high
    return found.T.reshape(shape).astype(t.dtype)[()]


def evaluate_distribute(ct: Any, x: Any, q: Any, *weights: Any, keepdims: bool, axis: Axes, **options: Any) -> Any:
    """Evaluate the transpose of `evaluate_collect`: bring a cotangent of the quantiles to the elements."""
    options.pop("moving")
    if not x.size:
        return np.zeros(x.shape, ct.dtype)
    plan = plan_quantiles(x, q, weights[0] if weights else None, axis=axis, **options)
    cts = np.asarray(ct).reshape(np.size(q), len(plan.order)).T
    values = np.zeros(plan.order.shape, np.result_type(ct, np.float64))
    lanes = np.arange(len(values))[:, None]
    upper = np.minimum(plan.lower + 1, values.shape[1] - 1)
    np.add.at(values, (lanes, plan.lower), plan.weights[0] * cts)
    np.add.at(values, (lanes, upper), plan.weights[1] * cts)
    result = np.empty(values.shape, ct.dtype)
    np.put_along_axis(result, plan.order, average_ties(values, plan.runs), axis=1)
    return from_lanes(result, x.shape, axis)


def remaining_shape(shape: tuple[int, ...], axis: Axes) -> tuple[int, ...]:
    """Return a shape without its reduced axes."""
    return tuple(n for i, n in enumerate(shape) if i not in axis)


def along_q(ct: Any, t: Any, x: Any, q: Any, weights: tuple[Any, ...], options: dict[str, Any]) -> Any:
    """Return the cotangent of q; None where q is no Tensor, or once it has been differentiated by (it is linear)."""
    if not options["moving"] or options.get("part") == "slope":
        return None
    slopes = ct * apply(quantile_collect, t, x, q, *weights, **{**options, "part": "slope"})
    return np.sum(slopes, axis=tuple(range(np.ndim(q), slopes.ndim)))


def collect_vjp(ct: Any, _out: Any, t: Any, x: Any, q: Any, *weights: Any, **options: Any) -> Any:
    """Distribute the cotangent of a combination."""
    ct_t = apply(quantile_distribute, ct, x, q, *weights, **options)
    return ct_t, None, along_q(ct, t, x, q, weights, options), *(None,) * len(weights)


def distribute_vjp(ct: Any, _out: Any, c: Any, x: Any, q: Any, *weights: Any, **options: Any) -> Any:
    """Return the cotangent of the tangent that was distributed over tied elements."""
    ct_c = apply(quantile_collect, ct, x, q, *weights, **options)
    return ct_c, None, along_q(c, ct, x, q, weights, options), *(None,) * len(weights)


def beside_lanes(weights: Any, x: Any, axis: Axes) -> Any:
    """Return the weights of lanes in the shape of their elements."""
    if weights.ndim == x.ndim or axis is None:
        return weights
    axes = [i % (x.ndim - 1) for i in axis]
    ordered = weights.transpose((0, *[1 + i for i in np.argsort(axes)]))
    shape = [n if i == 0 or i - 1 in axes else 1 for i, n in enumerate(x.shape)]
    return np.broadcast_to(ordered.reshape(shape), x.shape)


def batch_quantile(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Treat all lanes at once; where q differs between them, lane by lane. The axes of q come before the lanes'."""
    place = 1 if primitive is quantile else 2
    if batched[place]:
        lanes = [[x[i] if flag else x for x, flag in zip(operands, batched, strict=True)] for i in range(size)]
        return np.stack([apply(primitive, *lane, **params) for lane in lanes])
    q = operands[place]
    moved = [lead(x, flag, size) for x, flag in zip(operands, batched, strict=True)]
    moved[place] = q
    if len(moved) > place + 1:
        moved[place + 1] = beside_lanes(moved[place + 1], moved[place - 1], params["axis"])
    of_q = axes_of_q(moved[place - 1], q, params["skipna"])
    if primitive is quantile_distribute:
        moved[0] = np.moveaxis(moved[0], 0, of_q)
    result = apply(primitive, *moved, **{**params, "axis": shift(params["axis"])})
    return result if primitive is quantile_distribute else np.moveaxis(result, of_q, 0)


class QuantilesInKernel:
    """Be quantiles in a kernel, whose points are those of q and of the elements.

    Args:
        x: the elements.
        q: which quantiles; None for the median.
        axis: the axes of the elements.
        percent, skipna: see `QUANTILES`.

    Attributes:
        q: between 0 and 1, on axes before those of the elements.
        axes: those along which they are quantiles of elements.
        count: how many elements there are; how many numbers, if NaN are left out.
        place: where quantiles are among the sorted elements, counted from 0.
    """

    def __init__(self, x: Any, q: Any, axis: Axes, percent: bool, skipna: bool) -> None:
        self.x = x = x.astype(np.float64) if x.dtype.kind in "iu" else x
        self.axis, self.skipna = axis, skipna
        front = 0 if q is None else len(q.shape)
        self.q: Any = 0.5  # of the median
        if q is not None:
            q = q.astype(np.float64)
            self.q = np.expand_dims(q / 100 if percent else q, range(front, front + len(x.shape)))
        self.axes = tuple([i + front for i in axis])
        self.count: Any = count_along(x.shape, axis)
        if skipna:
            self.count = np.sum((~is_nan(x)).astype(x.dtype), axis=axis, keepdims=True)
        self.place = np.maximum(self.q * (self.count - 1), 0)

    def elements(self, place: Any) -> Any:
        """Return the elements at places among the sorted ones."""
        ranks = self.x.count_before(self.axis, "ranked")
        return np.max(np.where(ranks.astype(self.x.dtype) == place, self.x, -math.inf), axis=self.axes, keepdims=True)

    def shares(self, part: str, percent: bool) -> list[tuple[Any, Any]]:
        """Return for either element that a quantile is between, or is tied with it, whether it is, and its share."""
        nan, length = is_nan(self.x), count_along(self.x.shape, self.axis)
        ranks = [self.x.count_before(self.axis, how).astype(self.x.dtype) for how in ("ranked", "less", "equal")]
        first, tied = np.where(nan, ranks[0], ranks[1]), np.where(nan, 1, ranks[2])
        low = np.minimum(np.floor(self.place), max(length - 2, 0))
        gap = self.place - low
        if part == "slope":
            gap = (self.q * 0 + (self.count - 1)) / (100 if percent else 1)
        weights = (-gap if part == "slope" else 1 - gap), gap
        found = []
        for place, weight in zip((low, np.minimum(low + 1, length - 1)), weights, strict=True):
            counted = np.where(self.q * 0 + self.count > 0, weight, 0) if self.skipna else weight
            found.append(((first <= place) & (place < first + tied), counted / tied))
        return found


def is_known_in_kernels(method: str, weights: Sequence[Any], *operands: Any) -> bool:
    """Tell whether kernels have quantiles by a method: of double precision, since NumPy mixes it with single."""
    known = np.float64, np.int64
    return method == "linear" and not weights and all(x.dtype in known for x in operands)


def collect_at(
    t: Any,
    x: Any,
    q: Any,
    *weights: Any,
    axis: Axes,
    keepdims: bool,
    method: str,
    percent: bool,
    skipna: bool,
    moving: bool,
    part: str,
) -> Any:
    """Combine elements of t as the quantiles of x combine those of x in a kernel."""
    del keepdims, moving
    if not is_known_in_kernels(method, weights, t, x, q):
        return None
    found = QuantilesInKernel(x, q, axis, percent, skipna)
    low, high = [np.where(inside, t * share, 0) for inside, share in found.shares(part, percent)]
    return np.sum(low + high, axis=found.axes, keepdims=True)


def distribute_at(
    ct: Any,
    x: Any,
    q: Any,
    *weights: Any,
    axis: Axes,
    keepdims: bool,
    method: str,
    percent: bool,
    skipna: bool,
    moving: bool,
    part: str,
) -> Any:
    """Bring a cotangent of the quantiles to the elements in a kernel."""
    del moving
    if not is_known_in_kernels(method, weights, ct, x, q):
        return None
    found = QuantilesInKernel(x, q, axis, percent, skipna)
    spread = ct if keepdims else np.expand_dims(ct, found.axes)
    low, high = [np.where(inside, spread * share, 0) for inside, share in found.shares(part, percent)]
    front = range(len(q.shape))
    return np.sum(low + high, axis=front, keepdims=True) if q.shape else low + high


class OfLanes(Form):
    """Quantiles depend on the elements of their own lanes alone; the axes of q stand in front of those of lanes."""

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Connect each quantile with all elements of its lane, whichever of the two is given."""
        place = 0 if primitive is quantile else 1
        is_back = primitive is quantile_distribute
        if position > place or (is_back and position):
            return None
        shape, of_q = shape_of(operands[place]), shape_of(operands[place + 1])
        front, axis = len(of_q), params["axis"]
        elements = along(range(front, front + len(shape)))
        lanes = [
            Coordinate.at(0) if d in axis else x for d, x in enumerate(elements) if params["keepdims"] or d not in axis
        ]
        quantiles = [*along(range(front)), *lanes]
        return [BoxMap((*of_q, *shape), *((elements, quantiles) if is_back else (quantiles, elements)))]


quantile_collect = opaque(
    "quantile_collect",
    evaluate_collect,
    vjp=collect_vjp,
    batch=batch_quantile,
    form=OfLanes(),
    scalar=collect_at,
    loop=range(3),
)

quantile_distribute = opaque(
    "quantile_distribute",
    evaluate_distribute,
    vjp=distribute_vjp,
    batch=batch_quantile,
    form=OfLanes(),
    scalar=distribute_at,
    loop=range(3),
)


def evaluate_quantile(
    x: Any,
    q: Any,
    *weights: Any,
    axis: Axes,
    keepdims: bool,
    method: str,
    percent: bool,
    skipna: bool,
    moving: bool,
) -> Any:
    """Evaluate `quantile`, `percentile` or their forms without NaN."""
    function = QUANTILES[percent, skipna]
    options = {"weights": weights[0]} if weights else {}
    return function(x, q, axis=axis, keepdims=keepdims, method=method, **options)


def quantile_vjp(ct: Any, _out: Any, x: Any, q: Any, *weights: Any, **options: Any) -> Any:
    """Bring the cotangent to the elements that a quantile lies between; those tied share equally."""
    ct_x = apply(quantile_distribute, ct, x, q, *weights, part="value", **options)
    return ct_x, along_q(ct, x, x, q, weights, options), *(None,) * len(weights)


def median_vjp(ct: Any, _out: Any, x: Any, *, axis: Axes, keepdims: bool, skipna: bool) -> Any:
    """Bring the cotangent to the one or two elements in the middle; those tied share equally."""
    options = {"method": "linear", "percent": False, "moving": False, "part": "value"}
    return apply(quantile_distribute, ct, x, 0.5, axis=axis, keepdims=keepdims, skipna=skipna, **options)


def quantile_at(
    x: Any, q: Any, *weights: Any, axis: Axes, keepdims: bool, method: str, percent: bool, skipna: bool, moving: bool
) -> Any:
    """Return quantiles in a kernel, in NumPy's steps."""
    del keepdims, moving
    if not is_known_in_kernels(method, weights, x, q) or x.dtype == q.dtype == np.int64:
        return None
    found = QuantilesInKernel(x, q, axis, percent, skipna)
    ((found.q >= 0) & (found.q <= 1)).require()
    require_one_zero(found.x, axis)
    last = found.place * 0 + (found.count - 1)
    low = np.minimum(np.floor(found.place), last)
    start, end = found.elements(low), found.elements(np.minimum(low + 1, last))
    gap, rise = np.where(low == last, found.count, found.place - low), end - start  # as NumPy counts, from -1
    value = np.where(gap >= 0.5, end - rise * (1 - gap), start + rise * gap)
    if q.dtype == np.int64 and not percent:  # NumPy takes elements where they are
        value = start
    nothing = found.count == 0 if skipna else np.any(is_nan(found.x), axis=axis, keepdims=True)
    return np.where(nothing, math.nan, value)


def median_at(x: Any, *, axis: Axes, keepdims: bool, skipna: bool) -> Any:
    """Return the median in a kernel: the element in the middle, or the mean of two."""
    del keepdims
    found = QuantilesInKernel(x, None, axis, False, skipna)
    low, high = np.floor(found.place), np.ceil(found.place)
    start = found.elements(low) + 0.0  # as NumPy's sum has it, whose zero is positive
    mean = (start + found.elements(high)) / 2
    if skipna:
        return np.where(found.count == 0, math.nan, np.where(low == high, start, mean))
    return np.where(np.any(is_nan(x), axis=axis, keepdims=True), math.nan, start if low == high else mean)


quantile = opaque(
    "quantile",
    evaluate_quantile,
    vjp=quantile_vjp,
    batch=batch_quantile,
    form=OfLanes(),
    firm=False,
    scalar=quantile_at,
    loop=range(2),
)

median = opaque(
    "median",
    lambda x, *, axis, keepdims, skipna: (np.nanmedian if skipna else np.median)(x, axis=axis, keepdims=keepdims),
    vjp=median_vjp,
    form=Reduction(),
    scalar=median_at,
)
