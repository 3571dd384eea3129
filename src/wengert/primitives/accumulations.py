"""Accumulations: running sums and products, the accumulate methods of ufuncs, and filters with feedback.

Every accumulation y[i] = f(y[i - 1], x[i]) has the vjp of a linear recurrence that runs backwards,
s[i] = ct[i] + p[i + 1] s[i + 1], where p and q are the partials of f at each step; then x[i] receives q[i] s[i].
Nothing is divided, so zeros in a product need no care. The recurrence is a primitive, its vjp the same recurrence in
the other direction, which gives all higher orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import each_lane, shift
from wengert.core.forms.element_maps import lane_maps
from wengert.core.forms.form import Form, Params, Scan, Shape, told_by
from wengert.core.forms.routine import Routine
from wengert.core.forms.shape_probes import Results
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque
from wengert.core.primitives.primitive import PRIMITIVES, Primitive
from wengert.core.values.aval import Aval, aval_of, shape_of
from wengert.core.values.dispatch import apply, at_once

FAULTY = frozenset({np.negative, np.isfinite, np.isinf, np.isnan, np.signbit})
"""Ufuncs whose inner loops go wrong where the results have gaps between them, so that `out=` must not have such.

`negative` (NumPy 2.1 to 2.4 at least) reads 32-bit numbers 4 elements apart, and 64-bit ones 8 apart, as if there were
no gaps between them. `isfinite`, `isinf`, `isnan` and `signbit` of float32 and float64 put 16 results and more in
wrong places. Results in new memory have no gaps. A test asks NumPy for others.
"""


def compute_into(out: np.ndarray[Any, Any], ufunc: np.ufunc, *operands: Any) -> None:
    """Write what a ufunc gives into an array that may be any view: in place, or apart and copied if it is faulty.

    >>> columns = np.zeros((2, 9))
    >>> compute_into(columns[:, :1], np.negative, np.arange(16.0).reshape(2, 8)[:, :1])
    >>> columns[:, 0]
    array([-0., -8.])
    """
    if ufunc in FAULTY:
        out[...] = ufunc(*operands)
    else:
        ufunc(*operands, out=out)


SINGLE_LANE = 4
"""How many steps a lane must have, for each lane there is, for solving lane by lane to be faster."""
SHORT = 40
"""Steps of a lane up to which Python's numbers take less time than a call of BLAS."""


def slice_along(axis: int, start: int | None, stop: int | None, step: int | None = None) -> tuple[slice, ...]:
    """Return the index of a slice along one axis."""
    return (slice(None),) * axis + (slice(start, stop, step),)


# Sums


def running_sum(x: Any, axis: int, reverse: bool, dtype: Any = None) -> Any:
    """Evaluate `cumsum`, from the end with `reverse`."""
    if not reverse:
        return np.add.accumulate(x, axis, dtype)
    backwards = slice_along(axis, None, None, -1)
    return np.add.accumulate(x[backwards], axis, dtype)[backwards]


def transpose_cumsum(ct: Any, _aval: Aval, *, axis: int, reverse: bool, dtype: Any = None) -> Any:
    """Sum the cotangent in the other direction."""
    if ct.dtype == np.float16:  # of which sums one by one keep no digits
        return at_once(cumsum, ct.astype(np.float32), axis=axis, reverse=not reverse).astype(ct.dtype)
    return at_once(cumsum, ct, axis=axis, reverse=not reverse)


cumsum = linear("cumsum", running_sum, transpose=transpose_cumsum, fresh=True, form=Scan(np.add), parts="each")


def steps_between(x: Any, *, axis: int) -> Any:
    """Evaluate `diff`."""
    return np.subtract(x[slice_along(axis, 1, None)], x[slice_along(axis, None, -1)])


def transpose_difference(ct: Any, aval: Aval, *, axis: int) -> Any:
    """Return the differences of the cotangent between zeros, with the sign changed."""
    if type(ct) is not np.ndarray:
        edge = np.zeros((*aval.shape[:axis], 1, *aval.shape[axis + 1 :]), aval.dtype)
        return np.concatenate([edge, ct], axis=axis) - np.concatenate([ct, edge], axis=axis)
    out = np.empty(aval.shape, ct.dtype)
    first, last = slice_along(axis, None, 1), slice_along(axis, -1, None)
    compute_into(out[first], np.negative, ct[first])
    before, after = ct[slice_along(axis, None, -1)], ct[slice_along(axis, 1, None)]
    compute_into(out[slice_along(axis, 1, -1)], np.subtract, before, after)
    out[last] = ct[last]
    return out


def neighbour_links(_position: int, _core: Shape, out: Shape, _params: Params) -> list[BoxMap]:
    """Return where the two neighbours are whose difference each element is."""
    own = [Coordinate.along(0)]
    return [BoxMap(out, own, [Coordinate.along(0, 1, 1)], 1.0), BoxMap(out, own, own, -1.0)]


difference = linear(
    "difference",
    steps_between,
    transpose=transpose_difference,
    fresh=True,
    form=Routine("(n)->(m)", "axis", links=neighbour_links),
    parts="each",
)


def sum_of_panels(y: Any, *, axis: int = -1, dx: float = 1.0) -> Any:
    """Evaluate `trapezoid` of samples at equal distances."""
    axis %= y.ndim
    panels = y[slice_along(axis, 1, None)] + y[slice_along(axis, None, -1)]
    if panels.dtype.kind not in "fc":
        return np.add.reduce(dx * panels / 2.0, axis)
    if dx != 1:
        panels *= dx
    panels /= 2.0
    return np.add.reduce(panels, axis)


def transpose_trapezoid(ct: Any, aval: Aval, *, axis: int, dx: float) -> Any:
    """Give each sample the cotangent times the distance, and those at the ends the half of it."""
    share = np.expand_dims(ct * dx, axis)
    if aval.shape[axis] < 2 or type(share) is not np.ndarray:
        weights = np.ones((aval.shape[axis], *(1,) * (len(aval.shape) - axis - 1)), aval.dtype)
        weights[[0, -1]] = 0.5 if len(weights) > 1 else 0
        return share * weights
    found = np.empty(aval.shape, share.dtype)
    found[...] = share
    for end in (slice_along(axis, None, 1), slice_along(axis, -1, None)):
        found[end] *= 0.5
    return found


trapezoid = linear(
    "trapezoid", sum_of_panels, transpose=transpose_trapezoid, fresh=True, form=Routine("(n)->()", "axis")
)


# Recurrences


def solve_recurrence(a: Any, b: Any, *, axis: int, reverse: bool) -> Any:
    """Evaluate h[i] = a[i - 1] h[i - 1] + b[i] along an axis; backwards h[i] = a[i] h[i + 1] + b[i]."""
    dtype = np.result_type(a, b)
    if axis:
        a, b = np.moveaxis(a, axis, 0), np.moveaxis(b, axis, 0)
    if reverse:
        a, b = a[::-1], b[::-1]
    h = np.array(b, dtype)
    steps = len(h)
    if steps > 1 and steps > SINGLE_LANE * (h.size // steps) and dtype.char in "fdFD":
        solve_lanes(a.reshape(steps - 1, -1), h.reshape(steps, -1))
    else:
        for i in range(1, steps):
            h[i] += a[i - 1] * h[i - 1]
    found = h[::-1] if reverse else h
    return np.moveaxis(found, 0, axis) if axis else found


def solve_lanes(a: Any, h: Any) -> None:
    """Solve one recurrence a column, in place."""
    solve = solve_short if len(h) <= SHORT else solve_long
    for lane in range(h.shape[1]):
        h[:, lane] = solve(a[:, lane], h[:, lane])


def solve_short(a: Any, b: Any) -> Any:
    """Solve a recurrence step by step."""
    found = b.tolist()
    last = found[0]
    for i, factor in enumerate(a.tolist(), 1):
        found[i] = last = factor * last + found[i]
    return found


def solve_long(a: Any, b: Any) -> Any:
    """Solve a recurrence as a unit bidiagonal system.

    BLAS takes 5 us for 1,000 steps with the transpose of an upper one, and 7 with a lower one.
    """
    from scipy.linalg.blas import get_blas_funcs

    band = np.empty((2, len(b)), b.dtype, order="F")
    compute_into(band[0, 1:], np.negative, a)
    return get_blas_funcs("tbsv", dtype=b.dtype)(1, band, b, trans=1, diag=1)


def recurrence_vjp(ct: Any, out: Any, a: Any, _b: Any, *, axis: int, reverse: bool) -> Any:
    """Run the cotangent through the recurrence in the other direction."""
    back = apply(recurrence, a, ct, axis=axis, reverse=not reverse)
    early, late = slice_along(axis, None, -1), slice_along(axis, 1, None)
    return (back[early] * out[late] if reverse else back[late] * out[early]), back


def earlier_links(position: int, core: Shape, out: Shape, params: Params) -> list[BoxMap]:
    """Return the steps that each element depends on: those before it, and of what is added the same."""
    places = np.arange(core[0]), np.arange(out[0])[:, None]
    steps, elements = places if position else (places[0] + (not params["reverse"]), places[1])
    later, earlier = np.nonzero(steps >= elements if params["reverse"] else steps <= elements)
    own = [Coordinate.from_table(0, later)], [Coordinate.from_table(0, earlier)]
    return [BoxMap((len(later),), *own)] if len(later) else []


recurrence = opaque(
    "recurrence", solve_recurrence, vjp=recurrence_vjp, form=Routine("(m),(n)->(n)", "axis", links=earlier_links)
)


# The accumulate methods of ufuncs


def tie_weights(y: Any, x: Any, *, axis: int) -> tuple[Any, Any]:
    """Return the partials of a running extremum: elements that are tied so far share equally.

    They are p[i], by the extremum so far, and q[i], by the element, for i from 1.
    """
    y, x = (np.moveaxis(v, axis, 0) for v in (y, x))
    hit = (x == y) | ((x != x) & (y != y))
    same = (y[1:] == y[:-1]) | ((y[1:] != y[1:]) & (y[:-1] != y[:-1]))
    hits = np.cumsum(hit, axis=0)
    before = hits - hit
    starts = np.concatenate([before[:1], np.where(same, 0, before[1:])])
    tied = hits - np.maximum.accumulate(starts, axis=0)
    p = (same * tied[:-1] / tied[1:]).astype(y.dtype)
    q = (hit[1:] / tied[1:]).astype(y.dtype)
    return np.moveaxis(p, 0, axis), np.moveaxis(q, 0, axis)


extremum_partials = constant("extremum_partials", tie_weights, outputs=2, form=Routine("(n),(n)->(m),(m)", "axis"))


def partials(out: Any, x: Any, ufunc: np.ufunc, axis: int) -> tuple[Any, Any]:
    """Return the partials of the steps y[i] = f(y[i - 1], x[i]) from the second on."""
    if ufunc in (np.maximum, np.minimum):
        return apply(extremum_partials, out, x, axis=axis)  # type: ignore[no-any-return]  # a pair
    late = slice_along(axis, 1, None)
    before, operand = out[slice_along(axis, None, -1)], x[late]
    if ufunc is np.multiply:
        return operand, before
    after = out[late]
    one = np.ones((), out.dtype)[()]
    rules = PRIMITIVES[ufunc.__name__].rules  # type: ignore[attr-defined]  # it is elementwise
    p, q = (np.zeros_like(one) if rule is None else rule(one, after, before, operand) for rule in rules)
    return broadcast_partial(p, after.shape), broadcast_partial(q, after.shape)


def broadcast_partial(x: Any, shape: tuple[int, ...]) -> Any:
    """Return a partial for every step."""
    return x if x.shape == shape else np.broadcast_to(x, shape)


def accumulate_vjp(ct: Any, out: Any, x: Any, *, ufunc: np.ufunc, axis: int, dtype: Any = None) -> Any:
    """Run the cotangent backwards through the steps."""
    if x.shape[axis] < 2:
        return ct
    p, q = partials(out, x, ufunc, axis)
    back = at_once(recurrence, p, ct, axis=axis, reverse=True)
    if type(back) is np.ndarray and type(q) is np.ndarray:
        back[slice_along(axis, 1, None)] *= q
        return back
    edge = np.ones((*q.shape[:axis], 1, *q.shape[axis + 1 :]), q.dtype)
    return back * np.concatenate([edge, q], axis=axis)


def accumulate_jvp(tangents: Sequence[Any], out: Any, x: Any, *, ufunc: np.ufunc, axis: int, dtype: Any = None) -> Any:
    """Run the tangents through the steps."""
    t = tangents[0]
    if x.shape[axis] < 2:
        return t
    p, q = partials(out, x, ufunc, axis)
    late = np.concatenate([t[slice_along(axis, None, 1)], q * t[slice_along(axis, 1, None)]], axis=axis)
    return apply(recurrence, p, late, axis=axis, reverse=False)


accumulate = opaque(
    "accumulate",
    lambda x, *, ufunc, axis, dtype=None: ufunc.accumulate(x, axis, dtype),
    vjp=accumulate_vjp,
    jvp=accumulate_jvp,
    form=Scan("ufunc"),
)
constant_accumulate = constant(
    "constant_accumulate", lambda x, *, ufunc, axis, dtype=None: ufunc.accumulate(x, axis, dtype), form=Scan("ufunc")
)


# Sums of segments


def transpose_segments(ct: Any, aval: Aval, starts: Any, *, axis: int, dtype: Any = None) -> Any:
    """Give each element the cotangents of the segments that it lies in; one that does not end later is one long."""
    length = aval.shape[axis]
    ends = np.concatenate([starts, [length]])
    stops = ends[1:]
    if type(starts) is np.ndarray and np.all(starts < stops):
        found = np.repeat(ct, stops - starts, axis)
        before = np.zeros((*aval.shape[:axis], ends[0], *aval.shape[axis + 1 :]), aval.dtype)
        return np.concatenate([before, found], axis)
    stops = np.where(starts < stops, stops, starts + 1)
    places = np.arange(length)
    inside = (starts[:, None] <= places) & (places < stops[:, None])
    return np.moveaxis(np.tensordot(inside.astype(aval.dtype), ct, ((0,), (axis,))), 0, axis)


def batch_segments(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: dict[str, Any]
) -> Any:
    """Sum along the same axis behind the batch axis; lane by lane where the segments differ."""
    if batched[1]:
        return np.stack(each_lane(primitive, size, operands, batched, params))
    return apply(primitive, *operands, **{**params, "axis": shift(params["axis"])})


class SegmentForm(Form):
    """Sums of the segments of an axis that begin at the places which operand 1 holds."""

    def maps(
        self, primitive: Primitive, position: int, operands: Sequence[Any], out: Aval, params: Params, which: int = 0
    ) -> Sequence[BoxMap] | None:
        """Add each element to the segments that it lies in; to any along the axis, if places are not known."""
        x, starts = operands
        shape, axis = shape_of(x), params["axis"]
        if position or not isinstance(starts, np.ndarray):
            core = None
        else:
            stops = np.append(starts[1:], shape[axis])
            counts = np.where(starts < stops, stops - starts, 1)
            segment = np.repeat(np.arange(len(starts)), counts)
            place = np.arange(len(segment)) - np.repeat(np.cumsum(counts) - counts, counts) + starts[segment]
            core = [BoxMap.of_pairs(out.shape[axis : axis + 1], segment, shape[axis : axis + 1], place)]
        return lane_maps((shape, (axis,)), (out.shape, (axis,)), core)


reduceat = linear(
    "reduceat",
    lambda x, starts, *, axis, dtype=None: np.add.reduceat(x, starts, axis, dtype),
    transpose=transpose_segments,
    batch=batch_segments,
    form=SegmentForm(),
)


# Linear filters with feedback


def evaluate_feedback(a: Any, x: Any) -> Any:
    """Evaluate `feedback`: the y whose convolution with a is x, as far as this goes."""
    from scipy.signal import lfilter

    if a.ndim == 1:
        return lfilter(np.ones(1, a.dtype), a, x)
    stack = np.broadcast_shapes(a.shape[:-1], x.shape[:-1])
    rows, signals = np.broadcast_to(a, (*stack, a.shape[-1])), np.broadcast_to(x, (*stack, x.shape[-1]))
    found = np.empty(signals.shape, np.result_type(a, x))
    for lane in np.ndindex(stack):
        found[lane] = lfilter(np.ones(1, a.dtype), rows[lane], signals[lane])
    return found


def feedback_vjp(ct: Any, out: Any, a: Any, x: Any) -> tuple[Any, Any]:
    """Differentiate a * y = x: dy = a^-1 * (dx - da * y); the transpose of the filter runs backwards."""
    back = np.flip(apply(feedback, a, np.flip(ct, -1)), -1)
    length = out.shape[-1]
    lags = [-np.sum(back[..., k:] * out[..., : length - k], axis=-1) for k in range(a.shape[-1])]
    return unbroadcast(np.stack(lags, axis=-1), a.shape), unbroadcast(back, x.shape)


class Filter(Routine):
    """Filter each row, by coefficients whose first one is not 0, as it is in most rows of an identity."""

    def results(self, primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Results:
        """Ask with coefficients of 1."""
        shape, dtype, _ = aval_of(inputs[0])
        return told_by(primitive.strict, [np.ones(shape, dtype), inputs[1]], params)


def sooner_links(_position: int, core: Shape, out: Shape, _params: Params) -> list[BoxMap]:
    """Return the coefficients, or the numbers of a signal, that each number depends on: those up to its place."""
    return earlier_links(1, core, out, {"reverse": False})


feedback = opaque("feedback", evaluate_feedback, vjp=feedback_vjp, form=Filter("(k),(n)->(n)", links=sooner_links))
