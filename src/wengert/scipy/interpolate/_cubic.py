"""Cubic polynomials between samples, by slopes at these."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.plain_functions import by_arrays
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import DtypeError, ShapeError, UsageError, describe
from wengert.numpy._shapes import add_axes
from wengert.primitives.linear_algebra.matrix_equations import banded_solution
from wengert.scipy.interpolate._piecewise import PPoly, extrapolation, finite_samples, increasing_places, numbers


@by_arrays
def hermite_coefficients(x: Any, y: Any, slopes: Any) -> Any:
    """Return the coefficients of the cubic polynomials with these values and slopes at their ends."""
    width = add_axes(np.diff(x), y)
    rise = np.diff(y, axis=0) / width
    bend = (slopes[:-1] + slopes[1:] - 2 * rise) / width
    return np.stack([bend / width, (rise - slopes[:-1]) / width - bend, slopes[:-1], y[:-1]])


def require_real(name: str, y: Any) -> None:
    """Raise a DtypeError of complex samples, which have no order."""
    if y.dtype.kind == "c":
        raise DtypeError(name, "complex samples", "real ones are needed", "Pass the real and imaginary parts")


class CubicHermiteSpline(PPoly):
    """Go through samples with given slopes; see `scipy.interpolate.CubicHermiteSpline`.

    Args:
        x: the places of samples, which increase.
        y: samples.
        dydx: the slopes there.
        axis: the axis of samples.
        extrapolate: see `PPoly`.

    Raises:
        ShapeError: there are not as many samples, or slopes.
        UsageError: they are not finite.

    >>> CubicHermiteSpline([0.0, 1.0], [0.0, 1.0], [0.0, 0.0])(0.5)
    tensor(0.5)
    """

    def __init__(self, x: Any, y: Any, dydx: Any, axis: int = 0, extrapolate: Any = None) -> None:
        self.x = increasing_places("CubicHermiteSpline", x)
        heights, self.axis = finite_samples("CubicHermiteSpline", "y", y, axis, self.x.shape[0])
        slopes, _ = finite_samples("CubicHermiteSpline", "dydx", dydx, axis, self.x.shape[0])
        self.c = hermite_coefficients(self.x, heights, slopes)
        self.extrapolate = extrapolation(extrapolate)


# Slopes that keep the shape


def one_sided_slope(h0: Any, h1: Any, m0: Any, m1: Any) -> Any:
    """Return the slope at an end by three points, changed to keep the shape.

    (C. Moler, *Numerical Computing with MATLAB*, 2004, section 3.6.)
    """
    slope = ((2 * h0 + h1) * m0 - h0 * m1) / (h0 + h1)
    turned = np.sign(slope) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(slope) > 3.0 * np.abs(m0))
    return np.where(turned, 0.0, np.where(steep, 3.0 * m0, slope))


@by_arrays
def monotone_slopes(x: Any, y: Any) -> Any:
    """Return weighted harmonic means of the slopes on both sides, and 0 where these differ in sign.

    (F. N. Fritsch and J. Butland, A method for constructing local monotone piecewise cubic interpolants, 1984.)
    """
    h = add_axes(np.diff(x), y)
    m = np.diff(y, axis=0) / h
    if y.shape[0] == 2:
        return np.concatenate([m, m])
    left, right = m[:-1], m[1:]
    flat = (np.sign(right) != np.sign(left)) | (right == 0) | (left == 0)
    w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    mean = (w1 / np.where(flat, 1.0, left) + w2 / np.where(flat, 1.0, right)) / (w1 + w2)
    inner = np.where(flat, 0.0, 1.0 / mean)
    first, last = one_sided_slope(h[0], h[1], m[0], m[1]), one_sided_slope(h[-1], h[-2], m[-1], m[-2])
    return np.concatenate([first[None], inner, last[None]])


class PchipInterpolator(CubicHermiteSpline):
    """Go through samples without overshooting; see `scipy.interpolate.PchipInterpolator`.

    Args:
        x: the places of samples, which increase.
        y: samples, which are real.
        axis: the axis of samples.
        extrapolate: see `PPoly`.

    Raises:
        ShapeError: there are not as many samples.
        DtypeError: the samples are complex.
        UsageError: they are not finite.

    >>> PchipInterpolator([0.0, 1.0, 2.0], [0.0, 1.0, 1.0])([0.5, 1.5])
    tensor([0.6875, 1.    ])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, extrapolate: Any = None) -> None:
        self.x = increasing_places("PchipInterpolator", x)
        heights, self.axis = finite_samples("PchipInterpolator", "y", y, axis, self.x.shape[0])
        require_real("PchipInterpolator", heights)
        self.c = hermite_coefficients(self.x, heights, monotone_slopes(self.x, heights))
        self.extrapolate = extrapolation(extrapolate)


def pchip_interpolate(xi: Any, yi: Any, x: Any, der: Any = 0, axis: int = 0) -> Any:
    """Return values of a `PchipInterpolator`, or of its derivatives; see `scipy.interpolate.pchip_interpolate`.

    >>> pchip_interpolate([0.0, 1.0, 2.0], [0.0, 1.0, 1.0], 0.5)
    tensor(0.6875)
    """
    found = PchipInterpolator(xi, yi, axis)
    return found.derivative(der)(x) if np.ndim(der) == 0 else [found.derivative(nu)(x) for nu in der]


@by_arrays
def akima_slopes(x: Any, y: Any, method: str) -> Any:
    """Return means of the slopes on both sides, each weighted by how much it changes on the other.

    (H. Akima, A new method of interpolation and smooth curve fitting based on local procedures, 1970; modified by
    C. Moler and C. Ionita, *Makima piecewise cubic interpolation*, 2019.)
    """
    m = np.diff(y, axis=0) / add_axes(np.diff(x), y)
    if y.shape[0] == 2:
        return np.concatenate([m, m])
    before = 2.0 * m[:1] - m[1:2] if m.shape[0] > 1 else m[:1]
    after = 2.0 * m[-1:] - m[-2:-1] if m.shape[0] > 1 else m[:1]
    m = np.concatenate([2.0 * before - m[:1], before, m, after, 2.0 * after - m[-1:]])
    change = np.abs(np.diff(m, axis=0))
    w1, w2 = change[2:], change[:-2]
    if method == "makima":
        size = np.abs(m[1:] + m[:-1])
        w1, w2 = w1 + 0.5 * size[2:], w2 + 0.5 * size[:-2]
    both = w1 + w2
    fine = both > 1e-9 * np.max(both)
    weighted = m[1:-2] + (w2 / np.where(fine, both, 1.0)) * (m[2:-1] - m[1:-2])
    return np.where(fine, weighted, 0.5 * (m[3:] + m[:-3]))


class Akima1DInterpolator(CubicHermiteSpline):
    """Go through samples as a hand would draw it; see `scipy.interpolate.Akima1DInterpolator`.

    Args:
        x: the places of samples, which increase.
        y: samples, which are real.
        axis: the axis of samples.
        method: "akima" or "makima".
        extrapolate: see `PPoly`; False if it is not given.

    Raises:
        ShapeError: there are not as many samples.
        DtypeError: the samples are complex.
        UsageError: the method is unknown, or the samples are not finite.

    >>> Akima1DInterpolator([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 2.0, 4.0])(0.5)
    tensor(0.5)
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, *, method: str = "akima", extrapolate: Any = None) -> None:
        if method not in ("akima", "makima"):
            given = f"method={method!r:.40}"
            raise UsageError("Akima1DInterpolator", given, "'akima' or 'makima' is needed", "Leave it out")
        self.x = increasing_places("Akima1DInterpolator", x)
        heights, self.axis = finite_samples("Akima1DInterpolator", "y", y, axis, self.x.shape[0])
        require_real("Akima1DInterpolator", heights)
        self.c = hermite_coefficients(self.x, heights, akima_slopes(self.x, heights, method))
        self.extrapolate = extrapolation(extrapolate, False)


# Splines


Condition = Any
"""At an end of a spline: "not-a-knot", "periodic", or the order of a derivative and its value."""


def end_condition(given: Any, shape: tuple[int, ...]) -> Condition:
    """Return a condition at an end."""
    if isinstance(given, str) and given in ("not-a-knot", "periodic"):
        return given
    if isinstance(given, str) and given in ("clamped", "natural"):
        return (1 if given == "clamped" else 2), np.zeros(shape)
    if isinstance(given, tuple | list) and len(given) == 2 and given[0] in (1, 2):
        value = numbers(given[1])
        if value.shape == shape:
            return given[0], value
        text = f"a derivative of shape {value.shape} at an end"
        raise ShapeError("CubicSpline", text, f"the shape of a sample, {shape}, is needed", "Reshape it")
    needed = "'not-a-knot', 'periodic', 'clamped', 'natural' or (1 or 2, value) is needed for each end"
    raise UsageError("CubicSpline", f"bc_type with {given!r:.40}", needed, "Pass one of them")


def end_conditions(bc_type: Any, y: Any) -> list[Condition]:
    """Return the conditions at both ends."""
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if len(ends) != 2 or (not isinstance(bc_type, str) and any(isinstance(e, str) and e == "periodic" for e in ends)):
        needed = "a condition for each end, or 'periodic' for both, is needed"
        raise UsageError("CubicSpline", f"bc_type={bc_type!r:.40}", needed, "Pass bc_type='periodic'")
    found = [end_condition(end, y.shape[1:]) for end in ends]
    if found[0] == "periodic" and is_concrete(y):
        first, last = np.asarray(raw(y[0])), np.asarray(raw(y[-1]))
        if not np.allclose(first, last, rtol=1e-15, atol=1e-15):
            needed = "a last one that is the first is needed"
            raise ValueError(describe("CubicSpline", "samples of a periodic spline", needed, "Make them equal"))
    return found


def end_equation(
    condition: Condition, h: Any, widths: Any, slopes: Any, rise: Any, sign: float
) -> tuple[Any, Any, Any]:
    """Return the equation of an end: its coefficients on and off the diagonal, and the right-hand side.

    `h` and `slopes` are those of the first and second interval from the end; `widths` are as `h`, beside samples.
    """
    if isinstance(condition, str):  # "not-a-knot": the third derivative does not jump at the second place
        d = h[0] + h[1]
        return h[1], d, ((widths[0] + 2 * d) * widths[1] * slopes[0] + widths[0] ** 2 * slopes[1]) / d
    order, value = condition
    if order == 1:
        return np.ones(()), np.zeros(()), value
    return 2 * h[0], h[0], sign * 0.5 * value * widths[0] ** 2 + 3 * rise


def solve_tridiagonal(bands: Any, right: Any) -> Any:
    """Return the solution of a system with three diagonals."""
    flat = right.reshape(right.shape[0], -1)
    return banded_solution(bands, flat, 1, 1).reshape(right.shape)


@by_arrays
def spline_slopes(x: Any, y: Any, conditions: list[Condition]) -> Any:
    """Return the slopes that make second derivatives go on (C. de Boor, *A Practical Guide to Splines*, 1978)."""
    count = y.shape[0]
    if not y.size:
        return np.zeros_like(y)
    h = np.diff(x)
    width = add_axes(h, y)
    slope = np.diff(y, axis=0) / width
    if count == 2:
        conditions = [(1, slope[0]) if isinstance(c, str) else c for c in conditions]
    names = [c if isinstance(c, str) else "" for c in conditions]
    inner = 3 * (width[1:] * slope[:-1] + width[:-1] * slope[1:])
    if names[0] == "periodic":
        return periodic_slopes(h, width, slope, inner)
    if count == 3 and names == ["not-a-knot"] * 2:  # both say the same: a parabola
        one, none = np.ones(()), np.zeros(())
        first, last = (one, one, 2 * slope[0]), (one, one, 2 * slope[1])
    else:
        none = np.zeros(())
        first = end_equation(conditions[0], h[:2], width[:2], slope[:2], y[1] - y[0], -1.0)
        last = end_equation(conditions[1], h[::-1][:2], width[::-1][:2], slope[::-1][:2], y[-1] - y[-2], 1.0)
    diagonal = np.concatenate([first[0][None], 2 * (h[:-1] + h[1:]), last[0][None]])
    above = np.concatenate([none[None], first[1][None], h[:-1]])
    below = np.concatenate([h[1:], last[1][None], none[None]])
    right = np.concatenate([first[2][None], inner, last[2][None]])
    return solve_tridiagonal(np.stack([above, diagonal, below]), right)


def periodic_slopes(h: Any, width: Any, slope: Any, inner: Any) -> Any:
    """Return the slopes of a periodic spline, whose system has corners: of one that has none and a correction."""
    count = h.shape[0] + 1
    if count == 3:
        mean = np.sum(slope / width, axis=0) / np.sum(1.0 / width, axis=0)
        return np.stack([mean] * 3)
    diagonal = np.concatenate([(2 * (h[-1] + h[0]))[None], 2 * (h[:-1] + h[1:])[: count - 3]])
    above = np.concatenate([np.zeros(1), h[-1:], h[: count - 4]])
    bands = np.stack([above, diagonal, h[1:]])
    first = 3 * (width[0] * slope[-1] + width[-1] * slope[0])
    last = 3 * (width[-1] * slope[-2] + width[-2] * slope[-1])
    right = np.concatenate([first[None], inner[: count - 3]])
    corners = np.concatenate([-h[:1], np.zeros(count - 4), -h[-3:-2]])
    s1, s2 = solve_tridiagonal(bands, right), add_axes(solve_tridiagonal(bands, corners), right)
    rest = last - h[-2] * s1[0] - h[-1] * s1[-1]
    share = rest / (2 * (h[-1] + h[-2]) + h[-2] * s2[0] + h[-1] * s2[-1])
    found = s1 + share * s2
    return np.concatenate([found, share[None], found[:1]])


class CubicSpline(CubicHermiteSpline):
    """Go through samples with continuous second derivatives; see `scipy.interpolate.CubicSpline`.

    Args:
        x: the places of samples, which increase.
        y: samples, real or complex.
        axis: the axis of samples.
        bc_type: what holds at the ends: "not-a-knot", "periodic", "clamped", "natural", or for each end one of these or
            the order of a derivative, 1 or 2, and its value.
        extrapolate: see `PPoly`.

    Raises:
        ShapeError: there are not as many samples, or a derivative has another shape.
        UsageError: the conditions are unknown, or the samples are not finite.

    >>> CubicSpline([0.0, 1.0, 2.0], [0.0, 1.0, 4.0])([0.5, 1.5])
    tensor([0.25, 2.25])
    """

    def __init__(self, x: Any, y: Any, axis: int = 0, bc_type: Any = "not-a-knot", extrapolate: Any = None) -> None:
        self.x = increasing_places("CubicSpline", x)
        heights, self.axis = finite_samples("CubicSpline", "y", y, axis, self.x.shape[0])
        conditions = end_conditions(bc_type, heights)
        slopes = as_tensor(spline_slopes(self.x, heights, conditions))
        self.c = hermite_coefficients(self.x, heights, slopes)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        self.extrapolate = extrapolation(extrapolate, "periodic" if periodic else True)
