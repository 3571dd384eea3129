"""Statistics: variances, means without NaN, and order statistics (medians and quantiles).

Parameters are those of the reductions: `axis`, a tuple of axes counted from 0; `keepdims`; `extras`, the names of the
operands after the first. `skipna` tells that NaN are left out.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.core.forms.batching import lead, shift
from wengert.core.forms.element_maps import along
from wengert.core.forms.form import Form, Params, Reduction
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.primitives.cotangent import match_dtype, unbroadcast
from wengert.core.primitives.declare import elementwise, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.floating_point import is_nan
from wengert.primitives.half_precision import jvp_of_single, vjp_of_single
from wengert.primitives.reductions import (
    ADD,
    Axes,
    Names,
    count_along,
    options_of,
    restore_axes,
    restored_shape,
)
from wengert.primitives.sorting import require_one_zero

Tangents = Sequence[Any]


# NaN left out


def without_nan(x: Any, *, value: float) -> Any:
    """Evaluate the replacement of NaN, in the memory layout that NumPy's own functions use for it."""
    replaced = np.array(x, copy=True)
    np.copyto(replaced, value, where=np.isnan(x))
    return replaced if replaced.ndim else replaced[()]


replace_nan = elementwise(
    "replace_nan",
    without_nan,
    d=lambda t, _out, x, *, value: np.where(np.isnan(x), 0.0, t),
    scalar=lambda x, *, value: np.where(np.isnan(x), value, x),
)


def evaluate_nanmean(x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Evaluate `nanmean`, over the elements where the mask holds."""
    return np.nanmean(x, axis=axis, dtype=dtype, keepdims=keepdims, where=mask[0] if mask else True)


def nanmean_vjp(ct: Any, _out: Any, x: Any, *mask: Any, axis: Axes, keepdims: bool, dtype: Any = None) -> Any:
    """Divide the cotangent among the elements that are counted."""
    counted = ~np.isnan(x) & mask[0] if mask else ~np.isnan(x)
    count = np.sum(counted, axis=axis, keepdims=True)
    return np.where(counted, match_dtype(restore_axes(ct, x.shape, axis, keepdims) / count, ct.dtype), 0.0)


def nanmean_at(x: Any, *mask: Any, axis: Axes, keepdims: bool) -> Any:
    """Return the mean of what is not NaN, where the mask holds, in a kernel."""
    del keepdims
    counted = ~is_nan(x) & (mask[0] != 0) if mask else ~is_nan(x)
    total = np.sum(np.where(counted, x, 0), axis=axis, keepdims=True)
    return total / np.sum(counted.astype(x.dtype), axis=axis, keepdims=True)


nanmean = opaque("nanmean", evaluate_nanmean, vjp=nanmean_vjp, form=Reduction(operands=("where",)), scalar=nanmean_at)


# Variances


def deviations(x: Any, center: Any, mask: Any, axis: Axes, skipna: bool) -> tuple[Any, Any]:
    """Return the deviations from the mean, 0 where an element is not counted, and the number of those counted."""
    if skipna:
        finite = ~np.isnan(x)
        mask = finite if mask is None else finite & mask
    if mask is None:
        count = count_along(x.shape, axis)
        if center is None and type(x) is np.ndarray and x.dtype.char == "d" and count:  # in half of the time
            center = ADD(x, axis, None, None, True) / count
        elif center is None:
            center = np.mean(x, axis=axis, keepdims=True)
        return x - center, count
    count = count_along(x.shape, axis, mask)
    if center is None:
        center = np.sum(np.where(mask, x, 0.0), axis=axis, keepdims=True) / count
    return np.where(mask, x - center, 0.0), count


def freedom(count: Any, ddof: float) -> Any:
    """Return the degrees of freedom, 1 where there are none: the result is NaN or infinite, its gradient is not."""
    if isinstance(count, int):
        return count - ddof if count > ddof else 1
    return np.where(count > ddof, count - ddof, 1)


def weighted_deviations(
    x: Any, rest: Sequence[Any], skipna: bool, axis: Axes, ddof: float, extras: Names
) -> tuple[Any, Any, Any]:
    """Return the deviations, conjugates of complex ones, and of elements how many are counted, and are free.

    A variance is the sum of the squares of deviations by the degrees of freedom.
    """
    options = options_of(extras, rest)
    deviation, count = deviations(x, options.get("mean"), options.get("where"), axis, skipna)
    return np.conjugate(deviation) if x.dtype.kind == "c" else deviation, count, freedom(count, ddof)


def by_twice(t: Any, out: Any, count: Any) -> Any:
    """Return t / (2 out), the derivative of the root, and 0 where out is 0, by choice, or no elements are counted."""
    known = visible_array(out)
    if known is not None and (known > 0).all():
        return t / (2 * out)
    varies = (out != 0) & (count > 0 if isinstance(count, int) else np.reshape(count > 0, out.shape))
    return np.where(varies, t / (2 * np.where(varies, out, 1.0)), 0.0)


def dispersion_at(
    x: Any,
    *rest: Any,
    axis: Axes,
    keepdims: bool,
    ddof: float,
    extras: Names = (),
    dtype: Any = None,
    root: bool,
    skipna: bool,
) -> Any:
    """Return a variance in a kernel, or its root; None in another dtype."""
    del keepdims
    x = x.astype(np.float64) if x.dtype.kind in "biu" else x
    if dtype is not None and dtype != x.dtype:
        return None
    options = options_of(extras, rest)
    mask, center = options.get("where"), options.get("mean")
    counted = None if mask is None else mask != 0
    if skipna:
        counted = ~is_nan(x) if counted is None else counted & ~is_nan(x)
    count: Any = count_along(x.shape, axis)
    if counted is not None:
        count = np.sum(counted.astype(x.dtype), axis=axis, keepdims=True)
        x = np.where(counted, x, 0)
    deviation = x - (np.sum(x, axis=axis, keepdims=True) / count if center is None else center)
    squares = deviation * deviation
    if counted is not None:
        squares = np.where(counted, squares, 0)
    free = max(count - ddof, 0) if counted is None else np.maximum(count - ddof, 0)
    found = np.sum(squares, axis=axis, keepdims=True) / free
    if skipna:
        found = np.where(free == 0, math.nan, found)
    return np.sqrt(found) if root else found


def dispersion_of_doubles(x: Any, axis: Axes, keepdims: bool, count: int, ddof: float, root: bool) -> Any:
    """Compute a variance, or its root, in the steps of NumPy's method."""
    deviation = np.subtract(x, ADD(x, axis, None, None, True) / count)
    squares = np.multiply(deviation, deviation, deviation if type(deviation) is np.ndarray else None)
    found = ADD(squares, axis, None, None, keepdims)
    found /= count - ddof  # in place: how axes of length one lie in memory is NumPy's, too
    return np.sqrt(found, out=found if type(found) is np.ndarray else None) if root else found


def dispersion(name: str, evaluate: Callable[..., Any] | None = None, *, square: Any = None) -> Any:
    """Declare a variance, or the standard deviation of which one is the square: a method, or what skips NaN of NumPy's.

    Of doubles the former is done in the same steps in half of the time: the method is written in Python.
    """
    skipna = evaluate is not None
    root = square is not None

    def evaluation(
        x: Any, *rest: Any, axis: Axes, keepdims: bool, ddof: float, extras: Names = (), dtype: Any = None
    ) -> Any:
        if evaluate is None and not rest and dtype is None and x.dtype.char == "d":
            count = count_along(x.shape, axis)
            if count > ddof:  # NumPy warns of less
                return dispersion_of_doubles(x, axis, keepdims, count, ddof, root)
        options = options_of(extras, rest)
        if evaluate is None:
            return getattr(x, name)(axis, dtype, None, ddof, keepdims, **options)
        return evaluate(x, axis=axis, dtype=dtype, ddof=ddof, keepdims=keepdims, **options)

    def vjp(
        ct: Any,
        out: Any,
        x: Any,
        *rest: Any,
        axis: Axes,
        keepdims: bool,
        ddof: float,
        extras: Names = (),
        dtype: Any = None,
    ) -> Any:
        deviation, count, free = weighted_deviations(x, rest, skipna, axis, ddof, extras)
        ct = by_twice(ct, out, count) if root else ct
        ct_x = match_dtype(2 * restore_axes(ct, x.shape, axis, keepdims) / free, ct.dtype) * deviation
        mean = options_of(extras, rest).get("mean")
        cts = {} if mean is None else {"mean": unbroadcast(-ct_x, mean.shape)}
        return (ct_x, *(cts.get(name) for name in extras))

    def jvp(
        tangents: Tangents, out: Any, x: Any, *rest: Any, axis: Axes, ddof: float, extras: Names = (), **_options: Any
    ) -> Any:
        deviation, count, free = weighted_deviations(x, rest, skipna, axis, ddof, extras)
        moved: Any = 0.0
        if tangents[0] is not None:
            moved = np.sum(deviation * tangents[0], axis=axis, keepdims=True)
        center = options_of(extras, tangents[1:]).get("mean")
        if center is not None:
            moved = moved - np.sum(deviation * center, axis=axis, keepdims=True)
        moved = (2 * moved.real / free).reshape(out.shape)
        return by_twice(moved, out, count) if root else moved

    return opaque(
        name,
        evaluation,
        vjp=vjp_of_single(name, vjp),
        jvp=jvp_of_single(name, jvp),
        form=Reduction(),
        square=(lambda **_params: square) if root else None,
        scalar=functools.partial(dispersion_at, root=root, skipna=skipna),
        loop=range(1),
        not_negative=(),
    )


var = dispersion("var")
std = dispersion("std", square=var)
nanvar = dispersion("nanvar", np.nanvar)
nanstd = dispersion("nanstd", np.nanstd, square=nanvar)


# Order statistics
#
# A quantile lies between two sorted elements: (1 - g) s[j] + g s[j + 1], where j + g depends on q and the number of
# elements. `quantile_collect` is that combination of any array t, sorted as x is and averaged over elements of x
# that are tied; `quantile_distribute` is its transpose in t. With part="slope" the weights are the derivatives of
# (1 - g, g) by q. The two are each other's vjp, and quantile's vjp is made of them, to any order.

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
