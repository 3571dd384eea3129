"""The gamma function and its relatives."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.core.values.tensor import visible_array
from wengert.primitives import polynomial_coefficients as coefficients
from wengert.primitives.floating_point import in_double, polynomial
from wengert.primitives.special.declaration import LEGENDRE, flat, is_complex, piecewise_constant, refusing, special
from wengert.primitives.trigonometric import faded

SHIFT = 16
"""How far to the right the asymptotic series of complex polygamma functions is used; 12 terms are exact there."""
BERNOULLI = sp.bernoulli(24)[2::2]


def polygamma_of(n: int, x: Any) -> Any:
    """Return the derivative of order n of the digamma function, in the dtype of x."""
    if n and is_complex(x):
        return at_once(complex_polygamma, x, order=n)
    return sp.digamma(x) if n == 0 else (-1.0) ** (n + 1) * math.factorial(n) * sp.zeta(float(n + 1), x)


def complex_polygamma_value(z: Any, *, order: int) -> Any:
    """Evaluate a derivative, of order 1 or more, of the digamma function of complex numbers.

    Those on the left are reflected, then all brought to where the asymptotic series is used (Abramowitz & Stegun 1964,
    6.4.7, 6.4.6, 6.4.11).
    """
    dtype = np.result_type(z)
    z = np.asarray(z, np.complex128)
    left = z.real < 0.5
    y = np.where(left, 1 - z, z)
    steps = (y[..., np.newaxis] + np.arange(SHIFT)) ** -(order + 1.0)
    y = y + SHIFT
    found = math.factorial(order) * (np.sum(steps, axis=-1) + 0.5 * y ** -(order + 1.0))
    found = found + math.factorial(order - 1) * y ** -float(order)
    for k, number in enumerate(BERNOULLI, 1):
        found = found + number * (math.factorial(2 * k + order - 1) / math.factorial(2 * k)) * y ** -(2.0 * k + order)
    polynomial = np.polynomial.Polynomial([0.0, 1.0])  # in the cotangent, whose derivatives by pi z it has
    for _ in range(order):
        polynomial = -np.polynomial.Polynomial([1.0, 0.0, 1.0]) * polynomial.deriv()
    mirrored = np.pi ** (order + 1) * polynomial(1 / np.tan(np.pi * np.where(left, z - np.rint(z.real), 0.5)))
    sign = (-1) ** (order + 1)
    return np.where(left, -found - mirrored, sign * found).astype(dtype)[()]


complex_polygamma: Elementwise = elementwise(
    "complex_polygamma",
    complex_polygamma_value,
    d=lambda t, _out, z, *, order: t * at_once(complex_polygamma, z, order=order + 1),
    singular=True,
)


def cosine_of_pi(x: Any) -> Any:
    """Return cos(pi x), with the argument reduced before it is multiplied."""
    return np.cos(np.pi * np.remainder(x, 2))


def sine_of_pi(x: Any) -> Any:
    """Return sin(pi x), with the argument reduced to where it is 0 at whole numbers."""
    whole = np.rint(x)
    return np.sin(np.pi * (x - whole)) * (1 - 2 * np.remainder(whole, 2))


def rgamma_rule(t: Any, out: Any, x: Any) -> Any:
    """Differentiate 1 / gamma(x); on the left as gamma(1 - x) sin(pi x) / pi, where zeros are no exception."""
    if is_complex(x):
        return -(t * out) * sp.digamma(x)
    left = x < 0.5
    other = np.where(left, 1 - x, 1.0)
    reflected = sp.gamma(other) * cosine_of_pi(x) - sp.digamma(other) * out
    far = np.equal(x, np.inf)  # there it is 0, and has no derivative left
    return t * np.where(left, reflected, -np.where(far, 0.0, out) * sp.digamma(np.where(left | far, 1.0, x)))


# Each order of the polygamma functions is the derivative of the one before

polygamma: Elementwise = elementwise(
    "polygamma",
    sp.polygamma,
    d=(refusing("polygamma", "the order n"), lambda t, _out, n, x: t * at_once(polygamma, n + 1, x)),
    singular=True,
)
FAR = 12
"""From there on the gamma function is Stirling's formula, up to there the product of a recurrence."""
MOST = 171.7
"""From there on it is infinite."""


def gamma_of_positive_at(x: Any) -> Any:
    """Return gamma(x) for x >= 0: by a polynomial from 2 to 3, or with x^(x - 1/2) in two factors."""
    y, product = np.where(x < 2, x + 2, x), np.where(x < 2, 1 / (x * (x + 1)), 1)
    for _ in range(FAR - 2):
        more = y >= 3
        y = np.where(more, y - 1, y)
        product = np.where(more, product * y, product)
    root = np.power(x, 0.5 * x - 0.25)
    far = math.sqrt(2 * math.pi) * (root / np.exp(x)) * root * polynomial(1 / x, coefficients.GAMMA_FAR)
    far = np.where(x > MOST, np.inf, far)
    return np.where(x < FAR, polynomial(y - 2.5, coefficients.GAMMA) * product, far)


@in_double
def gamma_at(x: Any) -> Any:
    """Return gamma(x), on the left pi / (sin(pi x) gamma(1 - x)), and NaN at the poles there."""
    left = x < 0
    found = gamma_of_positive_at(np.where(left, 1 - x, x))
    whole = np.rint(x)
    wave = np.sin(math.pi * (x - whole))
    wave = np.where(np.remainder(whole, 2) == 0, wave, -wave)
    reflected = np.where(x == whole, np.nan, math.pi / wave / found)
    return np.where(left, reflected, np.where(x == 0, np.copysign(np.inf, x), found))


gamma = special(sp.gamma, lambda t, out, x: t * out * sp.digamma(x), scalar=gamma_at, cost=250)
digamma = special(sp.digamma, lambda t, _out, x: t * polygamma_of(1, x), scalar="digamma")
special(sp.gammaln, lambda t, _out, x: t * sp.digamma(x), scalar="lgamma")
special(sp.loggamma, lambda t, _out, x: t * sp.digamma(x))
special(sp.rgamma, rgamma_rule)
piecewise_constant(sp.gammasgn)


# Differences of polygamma functions, which the derivatives of ratios of gamma functions are


def is_pole(x: Any) -> Any:
    """Tell where the gamma function is infinite."""
    return (x <= 0) & (x == np.floor(x))


def polygamma_difference_value(x: Any, h: Any, *, order: int) -> Any:
    """Evaluate psi(x + h) - psi(x) for a polygamma function; for small h as the integral of the next one.

    With |h| <= x / 2 the pole at 0 is far from the interval, and 16 points are exact to rounding. Where both are poles
    they are reflected: h is whole, and the cotangents are the same.
    """
    dtype, (y, k) = flat(x, h)
    both = is_pole(y) & is_pole(y + k)
    y = np.where(both, 1 - y, y)
    k = np.where(both, -k, k)
    sign = np.where(both, (-1.0) ** order, 1.0)[..., 0]
    near = (np.abs(k) <= y / 2)[..., 0]
    nodes, weights = LEGENDRE[16]
    found = np.asarray(polygamma_of(order, y + k) - polygamma_of(order, y))[..., 0]
    found[near] = k[near][:, 0] * (polygamma_of(order + 1, y[near] + k[near] * nodes) @ weights)
    found = sign * found
    return found.astype(dtype)[()]


polygamma_difference: Elementwise = elementwise(
    "polygamma_difference",
    polygamma_difference_value,
    d=(
        lambda t, _out, x, h, *, order: t * at_once(polygamma_difference, x, h, order=order + 1),
        lambda t, _out, x, h, *, order: t * polygamma_of(order + 1, x + h),
    ),
    singular=True,
)


def digamma_difference(x: Any, h: Any) -> Any:
    """Return psi(x + h) - psi(x)."""
    return at_once(polygamma_difference, x, h, order=0)


def holds_nowhere(mask: Any) -> bool:
    """Tell whether a mask is known to hold nowhere, as that of numbers beside poles mostly does."""
    known = visible_array(mask)
    return known is not None and not np.any(known)


def poch_slope(out: Any, z: Any, m: Any) -> Any:
    """Return the derivative of (z)_m = gamma(z + m) / gamma(z) by z.

    Below 1/2 1 / gamma(z) is sin(pi z) gamma(1 - z) / pi, and where z + m is below, too, both are reflected, so that
    poles of the two cancel before they are numbers. At poles of gamma(z + m) alone the sign is that beside them.
    """
    left, above = z < 0.5, is_pole(z + m)
    if holds_nowhere(left):
        usual = out * digamma_difference(np.where(above, 1.0, z), np.where(above, 1.0, m))
        return np.where(above, beside_poles(z, m), usual)
    both, below = left & (z + m < 0.5), is_pole(z)
    rest, steps = np.where(left, 1 - z, 1.0), np.where(both, m, 0.0)
    wave = sine_of_pi(np.where(above, 0.5, z + m))
    jump = np.pi * sine_of_pi(steps) * sp.poch(np.where(both, rest - m, 1.0), steps) / wave**2
    reflected = out * digamma_difference(rest, -steps) + np.where(above, 0.0, jump)
    end = np.where(left & ~both, z + m, 1.0)
    one = cosine_of_pi(z) * sp.gamma(end) * sp.gamma(rest) + out * digamma_difference(rest, end - rest)
    right = ~(left | above)
    usual = out * digamma_difference(np.where(right, z, 1.0), np.where(right, m, 1.0))
    found = np.where(both, reflected, np.where(left, one, usual))
    return np.where(above & ~below, beside_poles(z, m), found)


def beside_poles(z: Any, m: Any) -> Any:
    """Return the derivative of gamma(z + m) / gamma(z) by z + m at a pole of it, which is infinite on both sides."""
    return np.where(np.cos(np.pi * (z + m)) * sp.gammasgn(z) > 0, -np.inf, np.inf)


def poch_slope_by_steps(out: Any, z: Any, m: Any) -> Any:
    """Return the derivative of (z)_m by m; none where gamma(z) and gamma(z + m) are infinite: there it jumps."""
    below, above = is_pole(z), is_pole(z + m)
    usual = out * sp.digamma(np.where(above, 1.0, z + m))
    return np.where(above, np.where(below, np.nan, beside_poles(z, m)), usual)


special(
    sp.poch,
    lambda t, out, z, m: t * poch_slope(out, z, m),
    lambda t, out, z, m: t * poch_slope_by_steps(out, z, m),
)


def binom_score(n: Any, k: Any, operand: int) -> Any:
    """Return the derivative of the logarithm of the binomial coefficient by n or k."""
    if operand:
        return digamma_difference(k + 1, n - 2 * k)
    return digamma_difference(n - k + 1, k)


def binom_slope(out: Any, n: Any, k: Any, operand: int) -> Any:
    """Return the derivative of gamma(n + 1) / gamma(k + 1) / gamma(m + 1), m = n - k, by n (operand 0) or k.

    Where m < -1/2, or else k < -1/2, one of the gamma functions has poles. There it is reflected, which makes B(n + 1,
    -m) sin(pi (m + 1)) / pi of the coefficient, or the same of k.
    """
    right = n - k < -0.5
    beside = right | (k < -0.5)
    if holds_nowhere(beside):
        return out * binom_score(n, k, operand)
    k_right, n_beside = np.where(right, k, n - k), np.where(beside, n, 0.0)
    rest = np.where(beside, n - k_right, -1.0)  # it is the number beside, m or k
    other = np.where(beside, k_right, 1.0)
    size = sp.beta(n_beside + 1, -rest)
    wave, slope = sine_of_pi(rest + 1) / np.pi, cosine_of_pi(rest + 1)
    by_total = size * (slope + wave * digamma_difference(-rest, n_beside + 1 + rest))
    by_part = size * (wave * digamma_difference(other + 1, -rest - other - 1) - slope)
    n, k = np.where(beside, 1.0, n), np.where(beside, 1.0, k)
    usual = out * binom_score(n, k, operand)
    moved = np.where(right, by_part, -by_part) if operand else by_total + np.where(right, 0.0, by_part)
    return np.where(beside, moved, usual)


special(
    sp.binom,
    lambda t, out, n, k: t * binom_slope(out, n, k, 0),
    lambda t, out, n, k: t * binom_slope(out, n, k, 1),
)


def beta_slope(t: Any, out: Any, a: Any, b: Any) -> Any:
    """Differentiate B(a, b) = gamma(a) gamma(b) / gamma(s), s = a + b, by a.

    Where s is below 1/2, 1 / gamma(s) is reflected: it is 0 at poles, and its derivative is not. So is gamma(a) where
    that is below, too: for whole b poles of the two cancel before they are numbers.
    """
    pole = is_pole(a)
    beside = (a + b < 0.5) & np.where(a < 0.5, ~pole | np.equal(b, np.rint(b)), ~is_pole(b))
    usual = -t * at_once(faded, out, digamma_difference(a, b))
    if holds_nowhere(beside):
        return usual
    both, one = beside & (a < 0.5), beside & (a >= 0.5)
    rest = np.where(beside, 1 - (a + b), 1.0)
    jump = sine_of_pi(b) * sp.beta(np.where(both, b, 1.0), rest) / sine_of_pi(np.where(both & ~pole, a, 0.5)) ** 2
    reflected = out * digamma_difference(rest, np.where(both, b, 0.0)) - np.pi * np.where(pole, 0.0, jump)
    other = sp.beta(np.where(one, a, 1.0), rest) / sine_of_pi(np.where(one, b, 0.5))
    alone = np.pi * cosine_of_pi(a + b) * other + out * digamma_difference(rest, np.where(one, a, 1.0) - rest)
    return np.where(beside, t * np.where(both, reflected, alone), usual)


special(
    sp.beta,
    beta_slope,
    lambda t, out, a, b: beta_slope(t, out, b, a),
    steep=True,
)
special(
    sp.betaln,
    lambda t, _out, a, b: -t * digamma_difference(a, b),
    lambda t, _out, a, b: -t * digamma_difference(b, a),
    steep=True,
)
