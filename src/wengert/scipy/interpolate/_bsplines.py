"""Splines as sums of B-splines."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.lib.array_utils import normalize_axis_index

from wengert.core.diagnostics.argument_checks import as_whole
from wengert.core.values.plain_functions import by_arrays
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy._shapes import add_axes
from wengert.scipy.interpolate._piecewise import integral
from wengert.scipy.interpolate._samples import as_places, extrapolation, interval, move_place_axes, numbers


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
