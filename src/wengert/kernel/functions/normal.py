"""The error function and its complement.

Near zero a polynomial; beyond 1 erf = 1 - exp(-Q) with a polynomial Q = -log(erfc), of which only the beginning needs
all digits. erfc = exp(-x**2) g(t) / (1 + 2 x), t = (x - 4) / (x + 4) = 1 - 8 / (x + 4) (M. M. Shepherd and
J. G. Laframboise, Mathematics of Computation 36, 1981), with x**2 and quotients in two parts.
"""

from __future__ import annotations

from wengert.kernel.functions.coefficients import ERF, ERF_LOG, ERFC
from wengert.kernel.functions.exponential import exponential_of_sum, scaled
from wengert.kernel.functions.expression import DOUBLE, ExpressionBuilder, Term

__all__ = ["erf", "erfc"]

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
    far = scaled(b, p * b.fma(g, share_low, g * share), n, bits)
    return b.select(abs(x) < ERFC_FROM, 1 - erf_near(b, x), b.select(x < 0, 2 - far, far))


def erfc(b: ExpressionBuilder, x: Term) -> Term:
    """Return 1 - erf(x), without cancellation."""
    b.mixed = x.dtype != DOUBLE
    return b.convert(erfc_of_double(b, b.convert(x, DOUBLE)), x.dtype)
