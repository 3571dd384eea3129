"""The error function and its relatives: normal distribution, Dawson's and Fresnel's integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.declare import elementwise
from wengert.core.primitive import Elementwise
from wengert.primitives.special.declaration import at, flat, several, special
from wengert.primitives.special.quadrature import LEGENDRE

__all__ = ["dawsn_derivative", "erfcx_derivative", "normal_density"]

ROOT_PI = math.sqrt(math.pi)
ROOT_TWO_PI = math.sqrt(2 * math.pi)
ROOT_HALF_PI = math.sqrt(math.pi / 2)
ROOT_HALF = math.sqrt(0.5)


def normal_density(x: Any) -> Any:
    """Return the density of the standard normal distribution."""
    return np.exp(-(x * x) / 2) / ROOT_TWO_PI


# Error functions


def erfcx_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of erfcx, (2 / sqrt(pi)) times the integral of (-2 s)^n exp(-s^2 - 2 x s) over s > 0.

    Its integrand has one sign (Abramowitz & Stegun 1964, 7.2.2 with 7.2.9). For x < 0 and complex x the recurrence
    f^(n+1) = 2 x f^(n) + 2 n f^(n-1) that follows from f' = 2 x f - 2 / sqrt(pi) is used: for x < 0 all of its terms
    have one sign too.
    """
    before, found = 0.0, sp.erfcx(x)
    for n in range(order):
        before, found = found, 2 * x * found + (2 * n * before if n else -2 / ROOT_PI)
    if found.dtype.kind == "c":
        return found
    dtype, (y,) = flat(x)
    y = np.maximum(y, 0)
    nodes, weights = LEGENDRE[48]
    length = 45 / (np.sqrt(y * y + 45) + y)  # there the exponent is -45
    s = length * nodes
    integral = length[..., 0] * ((-2 * s) ** order * np.exp(-s * (s + 2 * y)) @ weights)
    return np.where(np.less(x, 0), found, 2 / ROOT_PI * integral).astype(dtype)[()]


erfcx_derivative: Elementwise = elementwise(
    "erfcx_derivative",
    erfcx_derivative_value,
    d=lambda t, _out, x, *, order: t * at(erfcx_derivative, x, order=order + 1),
    singular=True,
)
special(sp.erf, lambda t, _out, x: t * (2 / ROOT_PI) * np.exp(-(x * x)))
special(sp.erfc, lambda t, _out, x: -(t * (2 / ROOT_PI)) * np.exp(-(x * x)))
special(sp.erfcx, lambda t, _out, x: t * at(erfcx_derivative, x, order=1))
special(sp.erfi, lambda t, _out, x: t * (2 / ROOT_PI) * np.exp(x * x))
special(sp.erfinv, lambda t, out, _x: t * (ROOT_PI / 2) * np.exp(out * out))
special(sp.erfcinv, lambda t, out, _x: -(t * (ROOT_PI / 2)) * np.exp(out * out))
special(sp.wofz, lambda t, out, x: t * (2j / ROOT_PI - 2 * x * out))


# The normal distribution

special(sp.ndtr, lambda t, _out, x: t * normal_density(x))
special(sp.log_ndtr, lambda t, _out, x: t / (ROOT_HALF_PI * sp.erfcx(x * -ROOT_HALF)))
special(sp.ndtri, lambda t, out, _x: t * ROOT_TWO_PI * np.exp(out * out / 2))
special(sp.ndtri_exp, lambda t, out, _x: t * (ROOT_HALF_PI * sp.erfcx(out * -ROOT_HALF)))
special(
    sp.owens_t,
    lambda t, _out, h, a: -(t * normal_density(h) / 2) * sp.erf(a * h * ROOT_HALF),
    lambda t, _out, h, a: t * normal_density(h) * normal_density(a * h) / (1 + a * a),
)


# Dawson's integral

DAWSON_SERIES = 7.0
"""From there on the asymptotic series is used: its smallest term is exp(-49)."""


def dawsn_derivative_value(x: Any, *, order: int) -> Any:
    """Evaluate a derivative of Dawson's integral, whose first is f' = 1 - 2 x f.

    That makes f^(n+1) = -2 x f^(n) - 2 n f^(n-1); for large |x|, where that cancels, term by term of the sum over k
    of (2k - 1)!! / (2^(k+1) x^(2k+1))
    (Abramowitz & Stegun 1964, 7.1.23).
    """
    before, found = 0.0, sp.dawsn(x)
    for n in range(order):
        before, found = found, -2 * x * found - (2 * n * before if n else -1)
    if found.dtype.kind == "c":
        return found
    far = np.abs(x) > DAWSON_SERIES
    y = np.where(far, x, np.inf)
    term = 0.5 * (-1) ** order * math.factorial(order) / y ** (order + 1)
    series = np.zeros_like(y)
    for k in range(25):
        series = series + term
        term = (
            term * ((2 * k + 1) / 2 * (2 * k + 1 + order) * (2 * k + 2 + order) / ((2 * k + 1) * (2 * k + 2))) / (y * y)
        )
    return np.where(far, series, found).astype(found.dtype)[()]


dawsn_derivative: Elementwise = elementwise(
    "dawsn_derivative",
    dawsn_derivative_value,
    d=lambda t, _out, x, *, order: t * at(dawsn_derivative, x, order=order + 1),
)
special(sp.dawsn, lambda t, _out, x: t * at(dawsn_derivative, x, order=1))


# Fresnel's integrals

several(sp.fresnel, lambda x: np.sin(np.pi / 2 * (x * x)), lambda x: np.cos(np.pi / 2 * (x * x)))
