"""The logarithm of the gamma function and its derivative.

Recurrences lead to an interval on which polynomials keep the zeros of the functions; from 8 and 6 on there are
Stirling's series, with coefficients of the least greatest error; reflection does for negative numbers.
"""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import DIGAMMA, DIGAMMA_ROOT, DIGAMMA_TAIL, LGAMMA, STIRLING
from wengert.kernel.functions.expression import DOUBLE, Body, ExpressionBuilder, Term
from wengert.kernel.functions.logarithm import log
from wengert.kernel.functions.trigonometric import cosine, sine

__all__ = ["digamma", "lgamma"]

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
