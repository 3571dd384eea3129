"""The error function and its relatives: normal distribution, Dawson's and Fresnel's integrals."""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.diagnostics.numpy_warnings import silently
from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.floating_point import in_double, polynomial
from wengert.primitives.special.declaration import LEGENDRE, flat, is_complex, several, special
from wengert.primitives.trigonometric import arctan_derivative, faded

ROOT_PI = math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_HALF = math.sqrt(0.5)


def gaussian_at(x: Any, *, over: float) -> Any:
    """Return exp(-x^2 / over)."""
    return np.exp(-(x * x) if over == 1 else -(x * x) / over)


def gaussian_value(x: Any, *, over: float) -> Any:
    """Evaluate exp(-x^2 / over), of the largest x, too."""
    return silently(partial(gaussian_at, over=over), x)


gaussian: Elementwise = elementwise(
    "gaussian",
    gaussian_value,
    d=lambda t, out, x, *, over: t * (-2 / over * at_once(faded, out, x)),
    singular=True,
    scalar=gaussian_at,
)


def normal_density(x: Any) -> Any:
    """Return the density of the standard normal distribution."""
    return at_once(gaussian, x, over=2.0) / ROOT_TWO_PI


# Error functions, and Dawson's integral, which is one of complex numbers

FAR = 7.0
"""From there on asymptotic series are used: their smallest terms are exp(-49)."""


HUGE = 1e300
"""It stands for infinity where 0 times infinity is 0: there integrals over what decays are 0 to all digits."""


def asymptotic(y: Any, order: int) -> Any:
    """Return a derivative of the sum over k of (2k - 1)!! / (2^(k+1) y^(2k+1)), term by term."""
    inverse = 1 / y  # whose powers become 0, where those of y become infinite, or NaN if they are complex
    term = 0.5 * (-1) ** order * math.factorial(order) * inverse ** (order + 1)
    series = np.zeros_like(y)
    for k in range(25):
        series = series + term
        factor = (2 * k + 1) / 2 * (2 * k + 1 + order) * (2 * k + 2 + order) / ((2 * k + 1) * (2 * k + 2))
        term = term * factor * (inverse * inverse)
    return series


def recur_derivative(x: Any, slope: Any, value: Any, order: int) -> Any:
    """Return a derivative of a function with f' = c - 2 x f, given c and f: f^(n+1) = -2 x f^(n) - 2 n f^(n-1)."""
    before, found = 0.0, value
    for n in range(order):
        before, found = found, -2 * x * found + (-2 * n * before if n else slope)
    return found


def far_wofz(z: Any, order: int) -> tuple[Any, Any]:
    """Return for large |z| two terms of a derivative of w(z): the asymptotic series, and a term of exp(-z^2).

    That is nothing above the real axis and the derivative of exp(-z^2) on it (Abramowitz & Stegun 1964, 7.1.23); below,
    w(z) is 2 exp(-z^2) - w(-z).
    """
    weight = 1.0 - np.sign(z.imag)
    added = recur_derivative(z, 0.0, np.exp(-np.square(np.where(weight, z, 0.0))), order)
    return 2j / ROOT_PI * asymptotic(z, order), np.where(weight, weight * added, 0.0)


def wofz_derivative_value(z: Any, *, order: int) -> Any:
    """Evaluate a derivative of w(z), whose first is w' = 2 i / sqrt(pi) - 2 z w, which cancels for large |z|."""
    z = np.asarray(z, np.result_type(z, np.complex64))
    far = np.abs(z) > FAR
    near = recur_derivative(z, 2j / ROOT_PI, sp.wofz(z), order)
    return np.where(far, sum(far_wofz(np.where(far, z, FAR), order)), near).astype(z.dtype)[()]


wofz_derivative: Elementwise = elementwise(
    "wofz_derivative",
    wofz_derivative_value,
    d=lambda t, _out, z, *, order: t * at_once(wofz_derivative, z, order=order + 1),
)


def erfcx_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of erfcx, (2 / sqrt(pi)) times the integral of (-2 s)^n exp(-s^2 - 2 x s) over s > 0.

    Its integrand has one sign (Abramowitz & Stegun 1964, 7.2.2 with 7.2.9). For x < 0 the recurrence
    f^(n+1) = 2 x f^(n) + 2 n f^(n-1) that follows from f' = 2 x f - 2 / sqrt(pi) is used, of which all terms
    have one sign too. For complex x, erfcx(x) is w(i x).
    """
    if np.result_type(x).kind == "c":
        return 1j**order * wofz_derivative_value(1j * x, order=order)
    before, found = 0.0, sp.erfcx(x)
    for n in range(order):
        before, found = found, 2 * x * found + (2 * n * before if n else -2 / ROOT_PI)
    dtype, (y,) = flat(x)
    y = np.clip(y, 0, HUGE)
    nodes, weights = LEGENDRE[48]
    length = 45 / (np.sqrt(y * y + 45) + y)  # there the exponent is -45
    s = length * nodes
    integral = length[..., 0] * ((-2 * s) ** order * np.exp(-s * (s + 2 * y)) @ weights)
    return np.where(np.less(x, 0), found, 2 / ROOT_PI * integral).astype(dtype)[()]


MIDDLE = 4.0
"""The number that is mapped to 0 where all positive ones are to the interval from -1 to 1."""


def from_middle(x: Any) -> Any:
    """Return (x - 4) / (x + 4), of infinity, too (Shepherd and Laframboise, Mathematics of Computation 36, 1981)."""
    return 1 - 2 * MIDDLE / (x + MIDDLE)


@in_double
def erfcx_at(x: Any) -> Any:
    """Return exp(x^2) erfc(x), for x < 0 by 2 exp(x^2) - erfcx(-x)."""
    size = np.absolute(x)
    right = 0.5 * polynomial(from_middle(size), coefficients.ERFCX) / (0.5 + size)
    return np.where(x < 0, 2 * np.exp(x * x) - right, right)


@in_double
def erfcx_derivative_at(x: Any, *, order: int) -> Any:
    """Return the first derivative of erfcx; for x < 0 from the values, of which it is a sum."""
    if order != 1:
        return None
    size = np.absolute(x)
    right = -polynomial(from_middle(size), coefficients.ERFCX_SLOPE) / (1 + size) / (1 + size)
    return np.where(x < 0, 2 * x * erfcx_at(x) - 2 / ROOT_PI, right)


def normal_quantile_at(q: Any, tail: Any) -> Any:
    """Return the quantile of the normal distribution for the probability 1/2 + q, whose smaller tail is known."""
    root = np.sqrt(-np.log(tail))
    far = np.copysign(root * polynomial(from_middle(root), coefficients.QUANTILE_FAR), q)
    return np.where(np.absolute(q) <= 0.35, q * polynomial(q * q, coefficients.QUANTILE), far)


@in_double
def erfinv_at(x: Any) -> Any:
    """Return the inverse of erf, whose argument is twice what the probability is more than 1/2."""
    return normal_quantile_at(0.5 * x, 0.5 - 0.5 * np.absolute(x)) * ROOT_HALF + 0  # of -0.0, too, it is 0.0


@in_double
def erfcinv_at(x: Any) -> Any:
    """Return the inverse of erfc, whose argument is twice the probability of a tail."""
    found = -normal_quantile_at(0.5 * x - 0.5, 0.5 * np.where(x < 1, x, 2 - x)) * ROOT_HALF
    return np.where(x < 0, np.nan, found)


@in_double
def ndtri_at(p: Any) -> Any:
    """Return the quantile of the normal distribution."""
    return normal_quantile_at(p - 0.5, np.where(p > 0.5, 1 - p, p))


@in_double
def log_ndtr_at(x: Any) -> Any:
    """Return the logarithm of the normal distribution function, on the left by erfcx, where nothing underflows."""
    u = x * -ROOT_HALF
    return np.where(x < -1, np.log(0.5 * erfcx_at(u)) - u * u, np.log1p(-0.5 * sp.erfc(-u)))


erfcx_derivative: Elementwise = elementwise(
    "erfcx_derivative",
    erfcx_derivative_value,
    scalar=erfcx_derivative_at,
    d=lambda t, _out, x, *, order: t * at_once(erfcx_derivative, x, order=order + 1),
    singular=True,
)
special(sp.erf, lambda t, _out, x: t * (2 / ROOT_PI) * at_once(gaussian, x, over=1.0))
special(sp.erfc, lambda t, _out, x: -(t * (2 / ROOT_PI)) * at_once(gaussian, x, over=1.0))
special(sp.erfcx, lambda t, _out, x: t * at_once(erfcx_derivative, x, order=1), scalar=erfcx_at, cost=60)
special(sp.erfi, lambda t, _out, x: t * (2 / ROOT_PI) * np.exp(x * x))
special(sp.erfinv, lambda t, out, _x: t * (ROOT_PI / 2) * np.exp(out * out), scalar=erfinv_at, cost=150)
special(sp.erfcinv, lambda t, out, _x: -(t * (ROOT_PI / 2)) * np.exp(out * out), scalar=erfcinv_at, cost=150)
special(sp.wofz, lambda t, _out, x: t * at_once(wofz_derivative, x, order=1))


# The normal distribution

special(sp.ndtr, lambda t, _out, x: t * normal_density(x), scalar=in_double(lambda x: 0.5 * sp.erfc(x * -ROOT_HALF)))


def hazard_value(x: Any) -> Any:
    """Evaluate the density over the distribution function, the derivative of whose logarithm it is."""
    return 1 / (ROOT_HALF_PI * sp.erfcx(x * -ROOT_HALF))


def hazard_slope(x: Any) -> Any:
    """Return the derivative of the logarithm of `normal_hazard`, in which nothing overflows.

    With f = erfcx(u) at u = -x / sqrt(2) it is f' / f / sqrt(2), where f' / f = 2 u - 2 / (sqrt(pi) f).
    """
    u = x * -ROOT_HALF
    if is_complex(x):
        return ROOT_HALF * (at_once(erfcx_derivative, u, order=1) / sp.erfcx(u))
    right = np.where(u < 0, 0.0, u)
    quotient = at_once(erfcx_derivative, right, order=1) / sp.erfcx(right)
    return ROOT_HALF * np.where(u < 0, 2 * u - 2 / ROOT_PI / sp.erfcx(u), quotient)


normal_hazard: Elementwise = elementwise(
    "normal_hazard",
    hazard_value,
    d=lambda t, out, x: t * at_once(faded, out, hazard_slope(x)),
    singular=True,
    scalar=in_double(hazard_value),
    cost=60,
)
special(sp.log_ndtr, lambda t, _out, x: t * at_once(normal_hazard, x), scalar=log_ndtr_at, cost=200)
special(sp.ndtri, lambda t, out, _x: t * ROOT_TWO_PI * np.exp(out * out / 2), scalar=ndtri_at, cost=150)
special(sp.ndtri_exp, lambda t, out, _x: t * (ROOT_HALF_PI * sp.erfcx(out * -ROOT_HALF)))


def owens_t_by_h(t: Any, _out: Any, h: Any, a: Any) -> Any:
    """Differentiate Owen's T by h: -phi(h) erf(a h / sqrt(2)) / 2, whose last factor is a sign where a is infinite."""
    end = np.isinf(h) | np.isinf(a)
    inner = np.where(end, 1.0, a) * np.where(end, 1.0, h)
    return -(t * normal_density(h) / 2) * np.where(end, np.sign(a) * np.sign(h), sp.erf(inner * ROOT_HALF))


def owens_t_by_a(t: Any, _out: Any, h: Any, a: Any) -> Any:
    """Differentiate Owen's T by a: phi(h) phi(a h) / (1 + a^2), which vanishes where one of them is infinite."""
    end = np.isinf(h) | np.isinf(a)
    h, a = np.where(end, 1.0, h), np.where(end, 1.0, a)
    slope = at_once(faded, at_once(arctan_derivative, a), normal_density(h) * normal_density(a * h))
    return t * np.where(end, 0.0, slope)


special(sp.owens_t, owens_t_by_h, owens_t_by_a)


# Dawson's integral


def dawsn_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of Dawson's integral, whose first is f' = 1 - 2 x f, which cancels for large |x|.

    For complex x it is sqrt(pi) / (2 i) times w(x) - exp(-x^2).
    """
    near = recur_derivative(x, 1.0, sp.dawsn(x), order)
    far = np.abs(x) > FAR
    y = np.where(far, x, np.inf if near.dtype.kind == "f" else FAR)
    found = asymptotic(y, order)
    if near.dtype.kind == "c":
        added = far_wofz(y, order)[1] - recur_derivative(y, 0.0, np.exp(-y * y), order)
        found = found + ROOT_PI / 2j * added
    return np.where(far, found, near).astype(near.dtype)[()]


dawsn_derivative: Elementwise = elementwise(
    "dawsn_derivative",
    dawsn_derivative_value,
    d=lambda t, _out, x, *, order: t * at_once(dawsn_derivative, x, order=order + 1),
)
special(sp.dawsn, lambda t, _out, x: t * at_once(dawsn_derivative, x, order=1))


# Fresnel's integrals

several(sp.fresnel, lambda x: np.sin(np.pi / 2 * (x * x)), lambda x: np.cos(np.pi / 2 * (x * x)))
