"""The logarithm of the gamma function and its derivative; the error function and its complement.

Of the gamma function, recurrences lead to an interval on which polynomials keep the zeros of the functions; from 8 and
6 on there are Stirling's series, with coefficients of the least greatest error; reflection does for negative numbers.

Of the error function, near zero a polynomial; beyond 1 erf = 1 - exp(-Q) with a polynomial Q = -log(erfc), of which
only the beginning needs all digits. erfc = exp(-x**2) g(t) / (1 + 2 x), t = (x - 4) / (x + 4) = 1 - 8 / (x + 4)
(M. M. Shepherd and J. G. Laframboise, Mathematics of Computation 36, 1981), with x**2 and quotients in two parts.
"""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import (
    DIGAMMA,
    DIGAMMA_ROOT,
    DIGAMMA_TAIL,
    ERF,
    ERF_LOG,
    ERFC,
    LGAMMA,
    STIRLING,
)
from wengert.kernel.functions.exponential import exponential_of_sum, scale_by_power
from wengert.kernel.functions.expression import DOUBLE, Body, ExpressionBuilder, Term
from wengert.kernel.functions.logarithm import log
from wengert.kernel.functions.trigonometric import cosine, sine

__all__ = ["digamma", "erf", "erfc", "lgamma"]


LGAMMA_FROM, LGAMMA_TO = 0.93, 2.13
"""Where no recurrence is needed: between them are both zeros."""
STIRLING_FROM = 8
DIGAMMA_FROM = 6


def in_double(b: ExpressionBuilder, x: Term, body: Body) -> Term:
    """Return what a function in double precision gives for a number of either."""
    b.mixed = x.dtype != DOUBLE
    found = body(b, b.convert(x, DOUBLE))
    assert isinstance(found, Term)
    return b.convert(found, x.dtype)


def lgamma_positive(b: ExpressionBuilder, a: Term) -> Term:
    """Return log gamma(a), a >= 0: (y - 1) (y - 2) P(y) and the logarithm of a product, or Stirling's formula."""
    y, p = a, b.constant(1.0, DOUBLE)
    for _ in range(STIRLING_FROM - 2):
        more = y >= LGAMMA_TO
        y = b.select(more, y - 1, y)
        p = b.select(more, p * y, p)
    low, large = a < LGAMMA_FROM, a >= STIRLING_FROM
    logarithm = log(b, b.select(large | low, a, p))
    zeros = b.select(low, a * (a - 1), (y - 1) * (y - 2))
    t = b.select(low, a - 0.5, y - 1.5)
    near = b.fma(zeros, b.accurate(t, t.coefficients(LGAMMA)), b.select(low, -logarithm, logarithm))
    inverse = 1 / a
    z = inverse * inverse
    rest = b.fma(inverse, b.polynomial(z, z.coefficients(STIRLING)), (math.log(2 * math.pi) - 1) / 2)
    return b.select(large, b.fma(a - 0.5, logarithm - 1, rest), near)


def sine_and_cosine_of_turns(b: ExpressionBuilder, a: Term) -> tuple[Term, Term, Term]:
    """Return |sin(pi a)| and |cos(pi a)|, and a minus the nearest whole number."""
    r = a - b.rint(a)
    size = abs(r)
    large = size > 0.25
    angle = b.select(large, 0.5 - size, size)
    high, low = b.product(angle, math.pi)
    low = b.fma(angle, PI_LOW, low)
    s, c = sine(b, high, low), cosine(b, high, low)
    sin, cos = s[0] + s[1], c[0] + c[1]
    return b.select(large, cos, sin), b.select(large, sin, cos), r


PI_LOW = float.fromhex("0x1.1a62633145c07p-53")


def lgamma_negative(b: ExpressionBuilder, x: Term) -> Term:
    """Return log |gamma(x)| = log |pi / sin(pi x)| - lgamma(1 - x), x < 0."""
    sin, _, _ = sine_and_cosine_of_turns(b, -x)
    found = -log(b, sin * (1 / math.pi)) - lgamma_positive(b, 1 - x)
    endless = b.select(sin.equals(sin), math.inf, -math.inf)  # where sin is NaN, x is infinite: SciPy's value
    return b.select(sin > 0, found, endless)


def lgamma(b: ExpressionBuilder, x: Term) -> Term:
    """Return log |gamma(x)|."""
    b.rarely(x < 0, lambda b, x: in_double(b, x, lgamma_negative), x)
    return in_double(b, x, lgamma_positive)


def digamma_positive(b: ExpressionBuilder, a: Term) -> Term:
    """Return the derivative of lgamma for a >= 0: (y - root) P(y) and a sum of 1 / (y + i), or Stirling's series."""
    low, large = a < 1, a >= DIGAMMA_FROM
    y = b.select(low, a + 1, a)
    above, below = b.constant(0.0, DOUBLE), b.constant(1.0, DOUBLE)
    for _ in range(DIGAMMA_FROM - 2):
        more = y >= 2
        y = b.select(more, y - 1, y)
        above, below = b.select(more, b.fma(above, y, below), above), b.select(more, below * y, below)
    above = b.select(large, -0.5, b.select(low, -1.0, above))
    below = b.select(large | low, a, below)
    high, lower = y.coefficients(DIGAMMA_ROOT)
    near = ((y - high) - lower) * b.accurate(y - 1.5, y.coefficients(DIGAMMA))
    inverse = 1 / a
    z = inverse * inverse
    far = log(b, a) - z * b.polynomial(z, z.coefficients(DIGAMMA_TAIL))
    return b.select(large, far, near) + above / below


def digamma_negative(b: ExpressionBuilder, x: Term) -> Term:
    """Return digamma(1 - x) - pi / tan(pi x), x < 0; NaN at the poles."""
    sin, cos, r = sine_and_cosine_of_turns(b, -x)
    cotangent = b.copysign(cos / b.select(r.equals(0), math.nan, sin), r)
    return b.fma(cotangent, math.pi, digamma_positive(b, 1 - x))


def digamma(b: ExpressionBuilder, x: Term) -> Term:
    """Return the derivative of log gamma(x)."""
    b.rarely(x < 0, lambda b, x: in_double(b, x, digamma_negative), x)
    return in_double(b, x, digamma_positive)


ERF_LIMIT = {"float64": 6.0, "float32": 4.0}
"""Beyond, erf(x) is 1."""
ERFC_FROM = 0.8
"""Up to there 1 - erf(x) has more digits."""
ERFC_LIMIT = 27.5
"""Beyond, erfc(x) is 0."""
MIDDLE = 4.0
"""What is mapped to t = 0."""


def erf_near(b: ExpressionBuilder, x: Term) -> Term:
    """Return erf(x), |x| <= 1."""
    z = x * x
    return b.fma(x, b.polynomial(z, z.coefficients(ERF)), x)


def erf(b: ExpressionBuilder, x: Term) -> Term:
    """Return the integral of 2 / sqrt(pi) exp(-t**2) from 0 to x."""
    a, limit = abs(x), ERF_LIMIT[x.dtype.name]
    t = b.select(a > limit, limit, a) - 1
    q = b.polynomial(t, t.coefficients(ERF_LOG))
    p, _, bits = exponential_of_sum(b, -q, b.constant(0.0, x.dtype))
    far = 1 - p * b.power_of_two(bits, x.dtype)
    return b.copysign(b.select(a < 1, erf_near(b, a), far), x)


def quotient(b: ExpressionBuilder, near: Term, high: Term, low: Term) -> tuple[Term, Term]:
    """Return 1 / (high + low) in two parts, from what is near to it."""
    return near, (b.remainder(b.constant(1.0, DOUBLE), near, high) - near * low) * near


def erfc_of_double(b: ExpressionBuilder, x: Term) -> Term:
    """Return 1 - erf(x) in double precision."""
    a = abs(x)
    a = b.select(a > ERFC_LIMIT, ERFC_LIMIT, a)
    square, lost = b.product(a, a)
    p, n, bits = exponential_of_sum(b, -square, -lost)
    middle, lost_middle = b.total(a, b.constant(MIDDLE, DOUBLE))
    twice, lost_twice = b.sum(a * 2, 1.0)
    inverse = 1 / (middle * twice)
    share, share_low = quotient(b, inverse * twice, middle, lost_middle)
    t = b.fma(share, -2 * MIDDLE, 1.0)
    t = t + b.fma(share_low, -2 * MIDDLE, b.fma(share, -2 * MIDDLE, 1 - t))
    g = b.accurate(t, t.coefficients(ERFC))
    share, share_low = quotient(b, inverse * middle, twice, lost_twice)
    far = scale_by_power(b, p * b.fma(g, share_low, g * share), n, bits)
    return b.select(abs(x) < ERFC_FROM, 1 - erf_near(b, x), b.select(x < 0, 2 - far, far))


def erfc(b: ExpressionBuilder, x: Term) -> Term:
    """Return 1 - erf(x), without cancellation."""
    b.mixed = x.dtype != DOUBLE
    return b.convert(erfc_of_double(b, b.convert(x, DOUBLE)), x.dtype)
