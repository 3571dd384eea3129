"""Exponential, trigonometric and elliptic integrals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives.special.declaration import LEGENDRE, flat, refusing, several, special
from wengert.primitives.special.quotients import sinhc_derivative

# Exponential integrals


def expn_rule(t: Any, _out: Any, n: Any, x: Any) -> Any:
    """Differentiate E_n: -E_(n-1), and for E_0 = exp(-x) / x directly."""
    first = np.equal(n, 0)
    zeroth = np.exp(-x) / x
    return -t * np.where(
        first, zeroth * (1 + np.divide(1.0, x)), np.where(np.equal(n, 1), zeroth, sp.expn(np.maximum(n - 1, 1), x))
    )


def exponential_over_value(x: Any) -> Any:
    """Evaluate exp(x) / x, at infinity, too."""
    power = np.exp(x)
    return power / np.where(np.isinf(power) & (x == np.inf), 1.0, x)


exponential_over: Elementwise = elementwise(
    "exponential_over", exponential_over_value, d=lambda t, out, x: t * out * (1 - 1 / x), singular=True
)
special(sp.expi, lambda t, _out, x: t * at_once(exponential_over, x))
special(sp.exp1, lambda t, _out, x: -t * np.exp(-x) / x)
special(sp.expn, refusing("expn", "the order n"), expn_rule, steep=True)


# Trigonometric and hyperbolic integrals: what they integrate, with derivatives that meet no 0 times infinity

NEAR, FAR = 0.1, 25.0


def sine_over(x: Any) -> Any:
    """Return sin(x) / x, at infinity 0."""
    far = np.isinf(x)
    return np.where(far, 0.0, np.sinc(np.where(far, 1.0, x) / np.pi))


def cosine_over(x: Any) -> Any:
    """Return cos(x) / x, at infinity 0, near 0 as 1 / x less (1 - cos(x)) / x."""
    near, far = np.abs(x) < NEAR, np.isinf(x)
    small, inner = np.where(near, x, 1.0), np.where(near | far, 1.0, x)
    at_zero = 1 / small - small / 2 * np.square(np.sinc(small / (2 * np.pi)))
    return np.where(near, at_zero, np.where(far, 0.0, np.cos(inner) / inner))


def hyperbolic_sine_over(x: Any) -> Any:
    """Return sinh(x) / x."""
    far = np.abs(x) > FAR
    large = np.where(far, x, FAR)
    found = (at_once(exponential_over, large) + at_once(exponential_over, -large)) / 2
    return np.where(far, found, at_once(sinhc_derivative, np.where(far, 0.0, x), order=0))


several(sp.sici, sine_over, cosine_over)
several(sp.shichi, hyperbolic_sine_over, lambda x: (at_once(exponential_over, x) - at_once(exponential_over, -x)) / 2)


# Complete elliptic integrals: (pi / 2) 2F1(+-1/2, 1/2; 1; m)


def elliptic_derivative_value(p: Any, *, second: bool, order: int) -> Any:
    """Evaluate a derivative by m = 1 - p of K, or with `second` of E.

    The first ones are R_D(0, 1, p) / 6 and -R_D(0, p, 1) / 6 (Carlson 1995, "Numerical computation of real or complex
    elliptic integrals", Numer. Algorithms 10). Others follow from the hypergeometric differential equation, or for
    |m| < 1/2, where that cancels, are hypergeometric functions themselves.
    """
    dtype, (p,) = flat(p)
    p = p[..., 0]
    m = 1 - p
    a, b = (-0.5 if second else 0.5), 0.5
    before = np.asarray(sp.ellipe(m) if second else sp.ellipkm1(p))
    zero = np.zeros_like(p)
    found = -sp.elliprd(zero, p, 1.0) / 6 if second else sp.elliprd(zero, 1.0, p) / 6
    for n in range(order - 1):
        rest = (a + n) * (b + n) * before - (1 + n - (a + b + 2 * n + 1) * m) * found
        before, found = found, rest / (m * p)
    near = np.abs(m) < 0.5
    factor = np.pi / 2 * sp.poch(a, order) * sp.poch(b, order) / math.factorial(order)
    series = factor * sp.hyp2f1(a + order, b + order, 1.0 + order, np.where(near, m, 0.0))
    found = found if order == 1 else np.where(near, series, found)
    found = np.where(np.isinf(p), 0.0, np.where(p == 0, -np.inf if second else np.inf, found))  # the limits
    return found.astype(dtype)[()]


elliptic_derivative: Elementwise = elementwise(
    "elliptic_derivative",
    elliptic_derivative_value,
    d=lambda t, _out, p, *, second, order: -t * at_once(elliptic_derivative, p, second=second, order=order + 1),
    singular=True,
)
special(sp.ellipk, lambda t, _out, m: t * at_once(elliptic_derivative, 1 - m, second=False, order=1))
special(sp.ellipkm1, lambda t, _out, p: -t * at_once(elliptic_derivative, p, second=False, order=1))
special(sp.ellipe, lambda t, _out, m: t * at_once(elliptic_derivative, 1 - m, second=True, order=1), steep=True)


# Incomplete ones, of an angle and m

PIECES = 4
"""How many parts the range of an integral has, of 48 points each."""


def incomplete_elliptic_derivative_value(phi: Any, m: Any, *, second: bool, order: int) -> Any:
    """Evaluate a derivative by m of F, or with `second` of E: the integral of that of (1 - m sin^2)^(-+1/2).

    Whole turns are complete integrals. The rest is over an angle within pi / 2 of 0, by Gudermann's function of it,
    whose hyperbolic tangent is the sine: that spreads the peak which there is at pi / 2 for m near 1.
    """
    dtype, (phi, m) = flat(phi, m)
    turns = np.rint(phi / np.pi)
    rest = phi - turns * np.pi
    reach = np.arcsinh(np.tan(rest))
    exponent = 0.5 if second else -0.5
    total = 0.0
    nodes, weights = LEGENDRE[48]
    for piece in range(PIECES):
        u = reach * ((piece + nodes) / PIECES)
        cosine = 1 / np.cosh(u)
        shape = (1 - m + m * cosine**2) ** (exponent - order) * np.tanh(u) ** (2 * order) * cosine
        total = total + reach[..., 0] / PIECES * (shape @ weights)
    total = total * (-1) ** order * math.prod(exponent - k for k in range(order))
    turned = np.where(turns == 0, 0.0, 2 * turns)[..., 0]
    complete = at_once(elliptic_derivative, np.where(turns == 0, 0.5, 1 - m)[..., 0], second=second, order=order)
    return (total + turned * complete).astype(dtype)[()]


def elliptic_integrand(t: Any, _out: Any, phi: Any, m: Any, *, second: bool, order: int) -> Any:
    """Differentiate by the angle."""
    exponent = 0.5 if second else -0.5
    factor = (-1) ** order * math.prod(exponent - k for k in range(order))
    s = np.sin(phi) ** 2
    return t * factor * s**order * (1 - m * s) ** (exponent - order)


def next_by_m(t: Any, _out: Any, phi: Any, m: Any, *, second: bool, order: int) -> Any:
    """Differentiate by m."""
    return t * at_once(incomplete_elliptic_derivative, phi, m, second=second, order=order + 1)


incomplete_elliptic_derivative: Elementwise = elementwise(
    "incomplete_elliptic_derivative",
    incomplete_elliptic_derivative_value,
    d=(elliptic_integrand, next_by_m),
    singular=True,
)
special(
    sp.ellipkinc,
    lambda t, _out, phi, m: t / np.sqrt(1 - m * np.sin(phi) ** 2),
    lambda t, _out, phi, m: t * at_once(incomplete_elliptic_derivative, phi, m, second=False, order=1),
)
special(
    sp.ellipeinc,
    lambda t, _out, phi, m: t * np.sqrt(1 - m * np.sin(phi) ** 2),
    lambda t, _out, phi, m: t * at_once(incomplete_elliptic_derivative, phi, m, second=True, order=1),
    steep=True,
)
