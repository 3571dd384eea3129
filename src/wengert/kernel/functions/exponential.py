"""The exponential function, those made of it, and hyperbolic functions.

x = n log 2 + r with |r| <= log(2) / 2 (W. J. Cody and W. Waite, Software manual for the elementary functions, 1980),
and a polynomial for exp(r) - 1 - r. What is added to 1, or to 2**n - 1, is kept in two parts.
"""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import EXPM1, LN2
from wengert.kernel.functions.expression import ExpressionBuilder, Term

__all__ = ["cosh", "exp", "exp2", "expit", "expm1", "exponential_of_sum", "sinh", "tanh", "tanh_derivative"]

LOG2_E = 1 / math.log(2)
LIMITS = {"float64": (-746.0, 710.0), "float32": (-104.0, 89.0)}
"""Beyond, exp(x) is zero or infinite."""
HYPERBOLIC = {"float64": 710.8, "float32": 89.7}
"""Beyond, sinh(x) and cosh(x) are infinite; exp(x) / 4 is not."""
NEAR_ONE = {"float64": 2.0**-9, "float32": 2.0**-8}
"""What tanh(x)**2 lacks of 1 where too few digits are left of the difference."""
SATURATED = {"float64": 40.0, "float32": 20.0}
"""Beyond, exp(-x) is nothing beside 1."""


def reduce_argument(b: ExpressionBuilder, x: Term) -> tuple[Term, Term, Term, Term]:
    """Return n, its bits, and r in two parts: x = n log 2 + r."""
    high, low = x.parts(LN2)
    n, bits = b.nearest(x, LOG2_E)
    minus = -n
    first = b.fma(minus, high, x)
    r = b.fma(minus, low, first)
    return n, bits, r, b.fma(minus, low, first - r)


def expm1_rest(b: ExpressionBuilder, r: Term) -> Term:
    """Return (exp(r) - 1 - r) / r**2."""
    return b.polynomial(r, r.coefficients(EXPM1))


def scale_by_power(b: ExpressionBuilder, p: Term, n: Term, bits: Term) -> Term:
    """Return p 2**n, in two steps where one could not be a power of two: the result may be subnormal."""
    if b.features.scaling:
        return b.scale(p, n)
    digits = p.format.digits
    half = b.nearest(n, 0.5)[1]
    p = b.number(b.bits(p) + (half << digits), p.dtype)
    return p * b.power_of_two(bits - half, p.dtype)


def exp(b: ExpressionBuilder, x: Term) -> Term:
    """Return e**x."""
    n, bits, r, _ = reduce_argument(b, b.within(x, *LIMITS[x.dtype.name]))
    return scale_by_power(b, b.fma(r * r, expm1_rest(b, r), r) + 1, n, bits)


def exponential_of_sum(b: ExpressionBuilder, x: Term, low: Term) -> tuple[Term, Term, Term]:
    """Return p, n and its bits: exp(x + low) = p 2**n, where |low| is small."""
    n, bits, r, rest = reduce_argument(b, x)
    r, rest = b.sum(r, rest + low)
    return r + (b.fma(r * r, expm1_rest(b, r), rest)) + 1, n, bits


def exp2(b: ExpressionBuilder, x: Term) -> Term:
    """Return 2**x."""
    low, high = LIMITS[x.dtype.name]
    x = b.within(x, low * 1.45, high * 1.45)
    n, bits = b.nearest(x, 1.0)
    r = (x - n) * math.log(2)
    return scale_by_power(b, b.fma(r * r, expm1_rest(b, r), r) + 1, n, bits)


def expm1_part(b: ExpressionBuilder, x: Term, shift: int) -> tuple[Term, Term]:
    """Return (e**x - 1) / 2**shift in two parts."""
    _, bits, r, rest = reduce_argument(b, x)
    rest = b.fma(r * r, expm1_rest(b, r), rest)
    power = b.power_of_two(bits, x.dtype, -shift)
    whole = power - 2.0**-shift
    high = b.fma(power, r, whole)
    return high, b.fma(power, rest, b.fma(power, r, whole - high))


def expm1(b: ExpressionBuilder, x: Term) -> Term:
    """Return e**x - 1."""
    name = x.dtype.name
    high, low = expm1_part(b, b.within(x, -SATURATED[name], LIMITS[name][1]), 1)
    return small_itself(b, x, (high + low) * 2)


def small_itself(b: ExpressionBuilder, x: Term, found: Term) -> Term:
    """Return x where it is so small that f(x) is x, else what was found: halves of subnormal numbers lose digits."""
    return b.select(abs(x) < 2.0 ** -(x.format.digits + 2), x, found)


def tanh(b: ExpressionBuilder, x: Term) -> Term:
    """Return h / (h + 2), h = exp(2 |x|) - 1.

    With h and h + 2 in two parts the error would be 1 ulp instead of 2.5, and the time a quarter longer.
    """
    size = abs(x)
    limit = SATURATED[x.dtype.name] / 2
    high, low = expm1_part(b, b.select(size > limit, limit, size) * 2, 0)
    h = high + low
    return b.copysign(h / (h + 2), x)


def tanh_derivative(b: ExpressionBuilder, y: Term, x: Term) -> Term:
    """Return 1 / cosh(x)**2 for y = tanh(x): 1 - y**2, unless that has too few digits."""
    slope = b.fma(-y, y, 1.0) if b.features.fma else (1 - y) * (y + 1)
    b.rarely(slope < NEAR_ONE[x.dtype.name], inverse_square_of_cosh, x)
    return slope


def inverse_square_of_cosh(b: ExpressionBuilder, x: Term) -> Term:
    """Return 4 p / (1 + p)**2, p = exp(-2 |x|)."""
    p = exp(b, abs(x) * -2)
    return p * 4 / (p + 1) / (p + 1)


def sinh(b: ExpressionBuilder, x: Term) -> Term:
    """Return 2 (g + g / (4 g + 1)), g = (exp(|x|) - 1) / 4."""
    size, limit = abs(x), HYPERBOLIC[x.dtype.name]
    high, low = expm1_part(b, b.select(size > limit, limit, size), 2)
    g = high + low
    return small_itself(b, x, b.copysign((high + (low + g / (g * 4 + 1))) * 2, x))


def cosh(b: ExpressionBuilder, x: Term) -> Term:
    """Return 2 q + 1 / (8 q), q = exp(|x|) / 4."""
    size, limit = abs(x), HYPERBOLIC[x.dtype.name]
    _, bits, r, rest = reduce_argument(b, b.select(size > limit, limit, size))
    p = (r + b.fma(r * r, expm1_rest(b, r), rest)) + 1
    q = p * b.power_of_two(bits, x.dtype, -2)
    return b.fma(q, 2.0, 0.125 / q)


def expit(b: ExpressionBuilder, x: Term) -> Term:
    """Return 1 / (1 + exp(-x)), from exp(-|x|), which does not overflow."""
    power = exp(b, -abs(x))
    return b.select(x < 0, power, 1.0) / (power + 1)
