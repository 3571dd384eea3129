"""Splines as sums of B-splines, by coefficients or through samples, and by FITPACK's names."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_whole, require_finite, require_one_number, require_real, shown
from wengert.core.values.plain_functions import by_arrays
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy._shapes import add_axes
from wengert.primitives.linear_algebra.matrix_equations import banded_solution
from wengert.scipy.interpolate._piecewise import (
    as_places,
    extrapolation,
    increasing_places,
    integral,
    interval,
    move_place_axes,
    numbers,
    require_within,
    samples,
)


@by_arrays
def basis(t: Any, k: int, x: Any, left: Any, nu: int = 0) -> Any:
    """Return in rows the B-splines, or derivatives of them, that are not zero in the interval `left` of each place.

    (C. de Boor, *A Practical Guide to Splines*, 1978, chapter 10; the last `nu` steps are those of derivatives.)
    """
    if nu > k:
        return np.zeros((k + 1, *x.shape))
    knots = {n: t[left + n] for n in range(1 - k, k + 1)}
    over = divide_by_widths if are_ends_apart(t, k) else divide_by_known_widths
    found: list[Any] = [np.ones(x.shape)]
    for j in range(1, k + 1):
        following: list[Any] = []
        for n in range(1, j + 1):
            high, low = knots[n], knots[n - j]
            share = over(found[n - 1] * j if j > k - nu else found[n - 1], high, low)
            left_part, right_part = (-share, share) if j > k - nu else (share * (high - x), share * (x - low))
            following[-1:] = [following[-1] + left_part if following else left_part, right_part]
        found = following
    return np.stack([weight + np.zeros(x.shape) for weight in found] if nu == k else found)


def are_ends_apart(t: Any, k: int) -> bool:
    """Tell whether knots are known not to be equal at the ends of the first interval and of the last.

    Those of others that places lie in are not; so no B-spline there has knots that are all equal.
    """
    if not is_concrete(t):
        return False
    known = raw(t)
    return bool(known[k] < known[k + 1] and known[-k - 2] < known[-k - 1])


def divide_by_widths(x: Any, high: Any, low: Any) -> Any:
    """Return the weight of a B-spline over the distance of two knots that are known to differ."""
    return x / (high - low)


def divide_by_known_widths(x: Any, high: Any, low: Any) -> Any:
    """Return the weight of a B-spline over the distance of two knots, and 0 where they are equal."""
    empty = high == low
    return np.where(empty, 0.0, x / np.where(empty, 1.0, high - low))


def as_knots(name: str, value: Any, k: int) -> Any:
    """Return knots in one row; those that are known do not decrease."""
    t = numbers(value)
    if k < 0 or t.dtype.kind == "c" or t.ndim != 1 or t.shape[0] < 2 * k + 2:
        given = f"knots of shape {t.shape} and dtype {t.dtype} for degree {k}"
        raise ShapeError(name, given, f"a row of {max(2 * k + 2, 2)} or more is needed", "Correct them")
    if is_concrete(t):
        known = np.asarray(raw(t))
        if np.any(np.diff(known) < 0) or not np.all(np.isfinite(known)) or not known[k] < known[-k - 1]:
            needed = "finite ones that do not decrease, and not all equal, are needed"
            raise ValueError(describe(name, "knots out of order", needed, "Sort them"))
    return t


@by_arrays
def evaluate_spline(t: Any, c: Any, k: int, places: Any, nu: int, beyond: Any, axis: int) -> Any:
    """Return values of a spline, or of a derivative."""
    count = t.shape[0] - k - 1
    first, last = t[k], t[count]
    if beyond == "periodic":
        places = first + (places - first) % (last - first)
    left = interval(t, places, k, count - 1)
    rows = c[left[None] + np.arange(-k, 1).reshape(-1, *(1,) * places.ndim)]
    found = np.sum(rows * add_axes(basis(t, k, places, left, nu), rows), axis=0)
    if beyond is False or beyond == "periodic":
        found = np.where(add_axes((places >= first) & (places <= last), found), found, np.nan)
    elif nu >= k:
        found = np.where(add_axes(np.isnan(places), found), np.nan, found)
    return move_place_axes(found, places.ndim, axis)


class BSpline:
    """Be a sum of B-splines; see `scipy.interpolate.BSpline`.

    Args:
        t: knots, which do not decrease.
        c: coefficients.
        k: the degree.
        extrapolate: whether the first and last polynomials go on beyond the ends, where else it is NaN; "periodic" to
            repeat all.
        axis: the axis of coefficients.

    Raises:
        ShapeError: there are too few knots or coefficients.

    >>> BSpline([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1)([0.5, 1.5])
    tensor([0.5, 0.5])
    """

    def __init__(self, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> None:
        self.k = as_whole("BSpline", "k", k, 0)
        self.t = as_knots("BSpline", t, self.k)
        found = numbers(c)
        self.axis = normalize_axis_index(axis, found.ndim)
        self.c = np.moveaxis(found, self.axis, 0)
        if self.c.shape[0] < self.count:
            given = f"{self.c.shape[0]} coefficients for {self.t.shape[0]} knots and degree {self.k}"
            raise ShapeError("BSpline", given, f"{self.count} are needed", "Correct them")
        self.extrapolate = extrapolation(extrapolate)

    @classmethod
    def construct_fast(cls, t: Any, c: Any, k: int, extrapolate: Any = True, axis: int = 0) -> Self:
        """Return a spline of knots, coefficients and degree that are not checked."""
        made = object.__new__(cls)
        made.t, made.c, made.k, made.extrapolate, made.axis = t, c, k, extrapolate, axis
        return made

    @classmethod
    def basis_element(cls, t: Any, extrapolate: Any = True) -> Self:
        """Return one B-spline by its knots."""
        k = len(t) - 2
        inner = numbers(t)
        knots = np.concatenate([inner[:1] - np.ones(k), inner, inner[-1:] + np.ones(k)])
        return cls(knots, np.eye(1, 2 * k + 1, k)[0], k, extrapolate)

    @property
    def count(self) -> int:
        """How many coefficients there have to be."""
        return int(self.t.shape[0]) - self.k - 1

    @property
    def tck(self) -> tuple[Any, Any, int]:
        """Knots, coefficients and degree."""
        return self.t, self.c, self.k

    def __call__(self, x: Any, nu: int = 0, extrapolate: Any = None) -> Any:
        """Return values, or those of a derivative.

        Args:
            x: places.
            nu: which derivative.
            extrapolate: see the class.
        """
        beyond = extrapolation(extrapolate, self.extrapolate)
        return evaluate_spline(self.t, self.c, self.k, as_places("BSpline", x), nu, beyond, self.axis)

    def derivative(self, nu: int = 1) -> BSpline:
        """Return a derivative as a spline."""
        if nu < 0:
            return self.antiderivative(-nu)
        if nu > self.k:
            given = f"derivative {nu} of a spline of degree {self.k}"
            raise UsageError("BSpline.derivative", given, f"one up to {self.k} is needed", "It is zero")
        t, c, k = self.t, self.c[: self.count], self.k
        for _ in range(nu):
            c = np.diff(c, axis=0) * k / add_axes(t[k + 1 : -1] - t[1 : -k - 1], c)
            t, k = t[1:-1], k - 1
        return BSpline.construct_fast(t, c, k, self.extrapolate, self.axis)

    def antiderivative(self, nu: int = 1) -> BSpline:
        """Return the integral from the first knot on as a spline; nu times."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.t, self.c[: self.count], self.k
        for _ in range(nu):
            risen = np.cumsum(c * add_axes(t[k + 1 :] - t[: -k - 1], c), axis=0) / (k + 1)
            c = np.concatenate([np.zeros_like(risen[:1]), risen])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        beyond = False if self.extrapolate == "periodic" and nu else self.extrapolate
        return BSpline.construct_fast(t, c, k, beyond, self.axis)

    def integrate(self, a: Any, b: Any, extrapolate: Any = None) -> Any:
        """Return the integral from a to b of the spline, which is zero outside unless it is extrapolated."""
        beyond = extrapolation(extrapolate, self.extrapolate)
        first, last = self.t[self.k], self.t[self.count]
        low, high = as_places("BSpline.integrate", a), as_places("BSpline.integrate", b)
        if not beyond:
            low, high = np.clip(low, first, last), np.clip(high, first, last)
        made = self.antiderivative()
        whole = BSpline.construct_fast(made.t, made.c, made.k)
        return integral(whole, low, high, first, last, beyond or True)


Conditions = Sequence[tuple[int, Any]]
"""Derivatives that are given at an end: their orders and values."""


@by_arrays
def not_a_knot(x: Any, k: int) -> Any:
    """Return the knots of a spline whose polynomials do not change at the places beside the ends."""
    middle = x if k % 2 else (x[1:] + x[:-1]) / 2
    half = (k + 1) // 2
    inner = middle[half : middle.shape[0] - half] if k else middle
    return np.concatenate([*[x[:1]] * (k + 1), inner, *[x[-1:]] * (k + 1)])


def periodic_knots(x: Any, k: int) -> Any:
    """Return the knots of a periodic spline, which go on at both ends by the distances at the other."""
    if k % 2 == 0:
        x = np.concatenate([x[:1], x[1:-1] - np.diff(x)[:-1] / 2, x[-1:]])
    h = np.diff(x)
    count = x.shape[0] - 1
    before, after = [x[:1]], [x[-1:]]
    for i in range(k):
        place, other = -(i % count) - 1, i % count
        before.append(before[-1] - h[place:][:1])
        after.append(after[-1] + h[other:][:1])
    return np.concatenate([*before[:0:-1], x, *after[1:]])


def end_derivatives(condition: Any, shape: tuple[int, ...]) -> Conditions:
    """Return the derivatives that are given at an end, with their orders."""
    if condition is None:
        return []
    if isinstance(condition, str):
        orders = {"clamped": 1, "natural": 2}
        if condition not in orders:
            needed = "'not-a-knot', 'periodic', 'clamped', 'natural' or pairs of orders and values are needed"
            raise UsageError("make_interp_spline", f"bc_type with {condition!r:.40}", needed, "Pass these")
        return [(orders[condition], np.zeros(shape))]
    return [(operator.index(order), np.broadcast_to(numbers(value), shape)) for order, value in condition]


def make_interp_spline(
    x: Any, y: Any, k: int = 3, t: Any = None, bc_type: Any = None, axis: int = 0, check_finite: bool = True
) -> BSpline:
    """Return the spline through samples; see `scipy.interpolate.make_interp_spline`.

    Args:
        x: the places of samples, which increase.
        y: samples.
        k: the degree.
        t: knots; chosen if they are not given.
        bc_type: what holds at the ends: "not-a-knot", "periodic", "clamped", "natural", or for each end one of the last
            two, None, or pairs of the orders of derivatives and their values.
        axis: the axis of samples.
        check_finite: whether it is an error if samples are not finite.

    Raises:
        ShapeError: there are not as many samples, or another number of conditions is needed.
        UsageError: the conditions are unknown, or samples are not finite.

    >>> make_interp_spline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])([0.5, 2.5])
    tensor([ 0.125, 15.625])
    """
    k = as_whole("make_interp_spline", "k", k, 0)
    places = increasing_places("make_interp_spline", x, 1)
    heights, at = samples("make_interp_spline", y, axis, places.shape[0])
    if check_finite:
        require_finite("make_interp_spline", "y", heights)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    ends: Any = (None, None) if periodic or bc_type is None or bc_type == "not-a-knot" else bc_type
    ends = (ends, ends) if isinstance(ends, str) else tuple(ends)
    if k < 2 and t is None:
        if ends != (None, None):
            given = f"bc_type={bc_type!r:.40} with degree {k}"
            raise UsageError("make_interp_spline", given, "no condition is needed", "Leave it out")
        knots = np.concatenate([*[places[:1]] * k, places, places[-1:]])
        return BSpline.construct_fast(knots, heights, k, axis=at)
    if periodic:
        return periodic_spline(places, heights, k, at)
    if t is not None:
        knots = as_knots("make_interp_spline", t, k)
    elif ends == (None, None):
        if places.shape[0] <= k:
            given = f"{places.shape[0]} samples for degree {k}"
            raise ShapeError("make_interp_spline", given, f"{k + 1} are needed", "Choose a lower degree")
        knots = not_a_knot(places, k)
    else:
        knots = np.concatenate([*[places[:1]] * k, places, *[places[-1:]] * k])
    left, right = (end_derivatives(end, heights.shape[1:]) for end in ends)
    count, wanted = places.shape[0] + len(left) + len(right), knots.shape[0] - k - 1
    if count != wanted:
        given = f"{len(left)} and {len(right)} derivatives at the ends"
        needed = f"{wanted - places.shape[0]} together are needed"
        raise ShapeError("make_interp_spline", given, needed, "Correct bc_type or t")
    return BSpline.construct_fast(knots, coefficients(knots, k, places, heights, left, right), k, axis=at)


def coefficients(t: Any, k: int, places: Any, heights: Any, left: Conditions, right: Conditions) -> Any:
    """Return the coefficients of the spline through samples, with derivatives given at its ends."""
    values = heights
    if left or right:
        values = np.concatenate([*[v[None] for _, v in left], heights, *[v[None] for _, v in right]])
    if not values.size:
        return values
    bands = banded_matrix(t, k, places, [order for order, _ in left], [order for order, _ in right])
    return banded_solution(bands, values.reshape(values.shape[0], -1), k, k).reshape(values.shape)


@by_arrays
def banded_matrix(t: Any, k: int, places: Any, first: Sequence[int], last: Sequence[int]) -> Any:
    """Return the matrix of B-splines at places as its diagonals: element (i, j) stands at (k + i - j, j).

    Rows before and behind are those of derivatives of some orders at the first and last place.
    """
    inside = interval(t, places, k, t.shape[0] - k - 2)
    rows = [
        *[(basis(t, k, places[:1], inside[:1], order), inside[:1]) for order in first],
        (basis(t, k, places, inside), inside),
        *[(basis(t, k, places[-1:], inside[-1:], order), inside[-1:]) for order in last],
    ]
    weights, left = rows[0]
    if len(rows) > 1:
        weights, left = (np.concatenate(parts, axis=-1) for parts in zip(*rows, strict=True))
    count = left.shape[0]
    column = np.arange(count)
    row = column + np.arange(2 * k + 1)[:, None] - k
    inside = (row >= 0) & (row < count)
    row = np.clip(row, 0, count - 1)
    place = column - left[row] + k
    inside = inside & (place >= 0) & (place <= k)
    return np.where(inside, weights[np.clip(place, 0, k), row], 0.0)


def periodic_spline(x: Any, y: Any, k: int, axis: int) -> BSpline:
    """Return the periodic spline through samples, whose coefficients repeat after one less than there are samples."""
    if is_concrete(y) and not np.allclose(np.asarray(raw(y[0])), np.asarray(raw(y[-1])), atol=1e-15):
        needed = "a last one that is the first is needed"
        raise ValueError(describe("make_interp_spline", "samples of a periodic spline", needed, "Make them equal"))
    t = periodic_knots(x, k)
    count = x.shape[0] - 1
    places = x[:-1]
    left = interval(t, places, k, t.shape[0] - k - 2)
    matrix = dense_matrix(basis(t, k, places, left), left - k, count)
    found = np.linalg.solve(matrix, y[:-1].reshape(count, -1)).reshape(count, *y.shape[1:])
    repeated = found[np.arange(count + k) % count]
    return BSpline.construct_fast(t, repeated, k, "periodic", axis)


def make_lsq_spline(
    x: Any, y: Any, t: Any, k: int = 3, w: Any = None, axis: int = 0, check_finite: bool = True, *, method: str = "qr"
) -> BSpline:
    """Return the spline with given knots that is nearest to samples; see `scipy.interpolate.make_lsq_spline`.

    Args:
        x: the places of samples, which increase.
        y: samples.
        t: knots.
        k: the degree.
        w: weights of the samples, whose squares count; 1 if they are not given.
        axis: the axis of samples.
        check_finite: whether it is an error if samples are not finite.
        method: "qr" or "norm-eq"; it is the decomposition of orthogonal columns.

    Raises:
        ShapeError: there are not as many samples, or too few.
        UsageError: the method is unknown, or samples are not finite.
        ValueError: a sample lies beyond the knots.

    >>> make_lsq_spline([0.0, 1.0, 2.0], [0.0, 2.0, 1.0], [0.0, 0.0, 2.0, 2.0], 1)([0.0, 2.0])
    tensor([0.5, 1.5])
    """
    k = as_whole("make_lsq_spline", "k", k, 0)
    if method not in ("qr", "norm-eq"):
        raise UsageError("make_lsq_spline", f"method={method!r:.40}", "'qr' or 'norm-eq' is needed", "Leave it out")
    places = increasing_places("make_lsq_spline", x, 1)
    heights, at = samples("make_lsq_spline", y, axis, places.shape[0])
    if check_finite:
        require_finite("make_lsq_spline", "y", heights)
    knots = as_knots("make_lsq_spline", t, k)
    count = knots.shape[0] - k - 1
    places = require_within("make_lsq_spline", places, knots[k], knots[count])
    if places.shape[0] < count:
        given = f"{places.shape[0]} samples for {count} coefficients"
        raise ShapeError("make_lsq_spline", given, "as many are needed", "Pass fewer knots")
    left = interval(knots, places, k, count - 1)
    weights = np.ones(places.shape) if w is None else numbers(w)
    matrix = dense_matrix(basis(knots, k, places, left), left - k, count) * weights[:, None]
    q, r = np.linalg.qr(matrix)
    flat = heights.reshape(places.shape[0], -1) * weights[:, None]
    found = np.linalg.solve(r, q.T @ flat).reshape(count, *heights.shape[1:])
    return BSpline.construct_fast(knots, found, k, axis=at)


@by_arrays
def dense_matrix(weights: Any, first: Any, count: int) -> Any:
    """Return the matrix of B-splines at places; its columns go round."""
    matrix: Any = 0.0
    for i, weight in enumerate(weights):
        here = ((first + i) % count)[:, None] == np.arange(count)
        matrix = matrix + np.where(here, weight[:, None], 0.0)
    return matrix


def as_spline(tck: Any) -> BSpline:
    """Return a spline given by knots, coefficients and degree."""
    if isinstance(tck, BSpline):
        return tck
    if not isinstance(tck, tuple | list) or len(tck) != 3:
        given = f"{shown(tck)} as a spline"
        raise UsageError("tck", given, "knots, coefficients and degree are needed", "Pass what splrep gives")
    return BSpline(*tck)


def interpolating_spline(name: str, x: Any, y: Any, k: Any) -> BSpline:
    """Return the spline of a degree from 1 to 5 through real samples."""
    degree = as_whole(name, "k", k, 1)
    if degree > 5:
        raise UsageError(name, f"k={k}", "a degree from 1 to 5 is needed", "Use make_interp_spline")
    heights = numbers(y)
    require_real(name, "samples", heights.dtype)
    return make_interp_spline(x, heights, degree, check_finite=False)


def pad_coefficients(spline: BSpline) -> tuple[Any, Any, int]:
    """Return knots, as many coefficients, and degree."""
    more = np.zeros((spline.t.shape[0] - spline.c.shape[0], *spline.c.shape[1:]))
    return spline.t, np.concatenate([spline.c, more]), spline.k


def splrep(
    x: Any,
    y: Any,
    w: Any = None,
    xb: Any = None,
    xe: Any = None,
    k: int = 3,
    task: int = 0,
    s: Any = None,
    t: Any = None,
    full_output: int = 0,
    per: int = 0,
    quiet: int = 1,
) -> tuple[Any, Any, int]:
    """Return the knots, coefficients and degree of the spline through samples; see `scipy.interpolate.splrep`.

    Only splines that go through all samples are made: those that smooth choose their knots by the samples.

    Args:
        x: the places of samples, which increase.
        y: samples.
        w: not supported, as all but `k` and `quiet`.
        xb: not supported.
        xe: not supported.
        k: the degree.
        task: 0.
        s: 0, if it is given.
        t: not supported.
        full_output: 0.
        per: 0.
        quiet: whether nothing is printed.

    Raises:
        UsageError: one of them is given.

    >>> splev(1.5, splrep([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0]))
    tensor(3.375)
    """
    if s is not None:
        require_one_number("splrep", "s", s)
    given = {"w": w, "xb": xb, "xe": xe, "t": t, "s": s or None, "task": task or None, "per": per or None}
    for name, value in {**given, "full_output": full_output or None}.items():
        if value is not None:
            text = f"{name}={value!r:.40}"
            raise UsageError("splrep", text, "its default is needed", "Use make_interp_spline")
    return pad_coefficients(interpolating_spline("splrep", x, y, k))


def splev(x: Any, tck: Any, der: int = 0, ext: int = 0) -> Any:
    """Return values of a spline, or of a derivative; see `scipy.interpolate.splev`.

    Args:
        x: places.
        tck: knots, coefficients and degree, or a `BSpline`.
        der: which derivative.
        ext: what holds outside: 0 the first and last polynomials, 1 zero, 2 an error, 3 the values at the ends.

    Raises:
        UsageError: `ext` is another.

    >>> splev([0.5, 3.0], ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1), ext=1)
    tensor([0.5, 0. ])
    """
    spline, places = as_spline(tck), as_places("splev", x)
    der = as_whole("splev", "der", der, 0)
    first, last = spline.t[spline.k], spline.t[spline.count]
    if ext not in (0, 1, 2, 3):
        raise UsageError("splev", f"ext={ext!r:.40}", "0, 1, 2 or 3 is needed", "Leave it out")
    if ext == 2:
        places = require_within("splev", places, first, last)
    if ext == 3:
        places = np.clip(places, first, last)
    found = spline(places, der, True)
    inside = (places >= first) & (places <= last)
    return np.where(add_axes(inside, found), found, 0.0) if ext == 1 else found


def splint(a: Any, b: Any, tck: Any, full_output: int = 0) -> Any:
    """Return the integral of a spline, zero outside of its knots; see `scipy.interpolate.splint`.

    Args:
        a: the lower limit.
        b: the upper limit.
        tck: knots, coefficients and degree, or a `BSpline`.
        full_output: 0.

    >>> splint(0.0, 1.0, ([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1))
    tensor(0.5)
    """
    if full_output:
        given = f"full_output={full_output!r:.40}"
        raise UsageError("splint", given, "0 is needed", "Use BSpline.basis_element for B-splines")
    return as_spline(tck).integrate(a, b, extrapolate=False)


def splder(tck: Any, n: int = 1) -> Any:
    """Return a derivative of a spline as one; see `scipy.interpolate.splder`.

    >>> splder(([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1))[1]
    tensor([ 1., -1.,  0.])
    """
    found = as_spline(tck).derivative(n)
    return found if isinstance(tck, BSpline) else pad_coefficients(found)


def splantider(tck: Any, n: int = 1) -> Any:
    """Return the integral of a spline from its first knot on as one; see `scipy.interpolate.splantider`.

    >>> splev(2.0, splantider(([0.0, 0.0, 1.0, 2.0, 2.0], [0.0, 1.0, 0.0], 1)))
    tensor(1.)
    """
    found = as_spline(tck).antiderivative(n)
    return found if isinstance(tck, BSpline) else pad_coefficients(found)


class InterpolatedUnivariateSpline:
    """Go through samples; see `scipy.interpolate.InterpolatedUnivariateSpline`.

    Args:
        x: the places of samples, which increase.
        y: samples.
        w: not supported.
        bbox: not supported.
        k: the degree.
        ext: what holds outside: 0 the first and last polynomials, 1 zero, 2 an error, 3 the values at the ends; or
            "extrapolate", "zeros", "raise", "const".
        check_finite: not needed.

    Raises:
        UsageError: what is not supported is given.

    >>> InterpolatedUnivariateSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 8.0, 27.0])(1.5)
    tensor(3.375)
    """

    EXT = ("extrapolate", "zeros", "raise", "const")

    def __init__(
        self,
        x: Any,
        y: Any,
        w: Any = None,
        bbox: Sequence[Any] = (None, None),
        k: int = 3,
        ext: Any = 0,
        check_finite: bool = False,
    ) -> None:
        if w is not None or any(end is not None for end in bbox):
            raise UsageError("InterpolatedUnivariateSpline", "weights or bounds", "none are needed", "Leave them out")
        self.spline = interpolating_spline("InterpolatedUnivariateSpline", x, y, k)
        self.ext = self.EXT.index(ext) if ext in self.EXT else ext

    def __call__(self, x: Any, nu: int = 0, ext: Any = None) -> Any:
        """Return values, or those of a derivative."""
        beyond = self.ext if ext is None else self.EXT.index(ext) if ext in self.EXT else ext
        return splev(x, self.spline, nu, beyond)

    def of(self, spline: BSpline) -> Self:
        """Return another spline with the same rule outside."""
        made = object.__new__(type(self))
        made.spline, made.ext = spline, self.ext
        return made

    def derivative(self, n: int = 1) -> Self:
        """Return a derivative."""
        return self.of(self.spline.derivative(n))

    def antiderivative(self, n: int = 1) -> Self:
        """Return the integral from the first place on."""
        return self.of(self.spline.antiderivative(n))

    def integral(self, a: Any, b: Any) -> Any:
        """Return the integral from a to b, zero outside."""
        return splint(a, b, self.spline)

    def derivatives(self, x: Any) -> Any:
        """Return the value and all derivatives at a place."""
        return np.stack([self(x, nu) for nu in range(self.spline.k + 1)])

    def get_knots(self) -> Any:
        """Return the knots, those at the ends once."""
        k = self.spline.k
        return self.spline.t[k : self.spline.t.shape[0] - k]

    def get_coeffs(self) -> Any:
        """Return the coefficients."""
        return self.spline.c
