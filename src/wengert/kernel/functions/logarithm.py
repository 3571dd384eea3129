"""Logarithms and inverse hyperbolic functions.

x = m 2**k with 3/4 <= m < 3/2, f = m - 1, s = f / (m + 1), and log(m) = 2 atanh(s) = f - s (f - R(s**2)), in which
what is rounded is small beside f (K. C. Ng; for reductions and their errors P. T. P. Tang,
Table-driven implementation of the logarithm function, ACM Transactions on Mathematical Software 16, 1990).
"""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import LN2, LOG, LOG2_E, LOG10_2, LOG10_E
from wengert.kernel.functions.exponential import exp
from wengert.kernel.functions.expression import ExpressionBuilder, Table, Term

__all__ = [
    "arccosh",
    "arcsinh",
    "arctanh",
    "digits",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_expit",
]

LARGE = {"float64": 2.0**28, "float32": 2.0**13}
"""Beyond, x**2 + 1 is x**2."""


def digits(b: ExpressionBuilder, x: Term) -> tuple[Term, Term]:
    """Return k and m of x = m 2**k, x > 0.

    If the processor gives that, k is minus infinity for zero, and m is NaN for what is negative.
    """
    if b.features.scaling:
        m = b.fraction(x)
        return b.exponent(x) - b.exponent(m), m
    form = x.format
    small = x < form.smallest
    shift = float(form.digits + 2)
    bits = b.bits(b.select(small, x * 2.0**shift, x))
    least = b.bits(b.constant(0.75, x.dtype))
    power = (bits - least) >> form.digits
    m = b.number(bits - (power << form.digits), x.dtype)
    magic = b.bits(b.constant(form.magic, x.dtype))
    k = b.number(power + magic, x.dtype) - form.magic
    return k - b.select(small, b.constant(shift, x.dtype), 0.0), m


def log_parts(b: ExpressionBuilder, m: Term) -> tuple[Term, Term]:
    """Return f and s (f - R): log(m) is their difference."""
    f = m - 1
    s = f / (m + 1)
    z = s * s
    return f, s * b.fma(-z, b.polynomial(z, z.coefficients(LOG)), f)


def log_of_sum(b: ExpressionBuilder, u: Term, c: Term | None = None, more: Term | None = None) -> Term:
    """Return log(u + c) + more log(2), where u > 0 and |c| is below its last digit."""
    high, low = u.parts(LN2)
    k, m = digits(b, u)
    k = k if more is None else k + more
    f, rest = log_parts(b, m)
    rest = b.fma(k, -low, rest)
    rest = rest if c is None else rest - c / u
    return b.fma(k, high, f - rest)


def outside(b: ExpressionBuilder, x: Term, found: Term) -> Term:
    """Return a logarithm of x with what it is for 0, infinity and NaN."""
    if b.features.scaling:
        return found
    found = b.select(x < math.inf, b.select(x.equals(0), -math.inf, found), x)
    return b.select(x < 0, math.nan, found)


def log(b: ExpressionBuilder, x: Term) -> Term:
    """Return the natural logarithm."""
    return outside(b, x, log_of_sum(b, x))


def log1p(b: ExpressionBuilder, x: Term) -> Term:
    """Return log(1 + x)."""
    u, c = b.total(b.constant(1.0, x.dtype), x)
    found = b.select(x.equals(-1), -math.inf, log_of_sum(b, u, c))
    found = b.select(x < -1, math.nan, b.select(x < math.inf, found, x))
    return b.copysign(found, x)


def log_in_base(b: ExpressionBuilder, x: Term, factor: tuple[float, float], power: tuple[float, float]) -> Term:
    """Return k power + factor log(m), all in two parts."""
    k, m = digits(b, x)
    f, rest = log_parts(b, m)
    high = f - rest
    low = (f - high) - rest
    product, lost = b.product(high, factor[0])
    lost = b.fma(low, factor[0], b.fma(high, factor[1], lost))
    whole = k * power[0] if power[0] != 1 else k
    total, rest = b.sum(whole, product)
    rest = rest + lost if not power[1] else b.fma(k, power[1], rest + lost)
    found = total + rest
    found = b.select(x.equals(0), -math.inf, found)
    return b.select(x < 0, math.nan, b.select(x < math.inf, found, x))


def pair(x: Term, table: Table) -> tuple[float, float]:
    """Return the two parts of a constant."""
    high, low = x.coefficients(table)
    return high, low


def log2(b: ExpressionBuilder, x: Term) -> Term:
    """Return the logarithm to base 2, exact for powers of two."""
    return log_in_base(b, x, pair(x, LOG2_E), (1.0, 0.0))


def log10(b: ExpressionBuilder, x: Term) -> Term:
    """Return the logarithm to base 10."""
    return log_in_base(b, x, pair(x, LOG10_E), pair(x, LOG10_2))


def arcsinh(b: ExpressionBuilder, x: Term) -> Term:
    """Return log(1 + a + a**2 / (1 + sqrt(1 + a**2))) for a = |x|, log(2 a) where a is large."""
    a = abs(x)
    large = a > LARGE[x.dtype.name]
    one = b.select(large, b.constant(1.0, x.dtype), a)
    square = one * one
    more, rest = b.sum(one, square / (b.sqrt(square + 1) + 1))
    u, c = b.total(b.constant(1.0, x.dtype), more)
    found = log_of_sum(b, b.select(large, a, u), b.select(large, 0.0, c + rest), count(b, large, x))
    return b.copysign(b.select(a < math.inf, found, a), x)


def count(b: ExpressionBuilder, condition: Term, x: Term) -> Term:
    """Return 1 where a condition holds, else 0."""
    return b.select(condition, b.constant(1.0, x.dtype), 0.0)


def arccosh(b: ExpressionBuilder, x: Term) -> Term:
    """Return log(1 + t + sqrt(t (t + 2))) for t = x - 1, log(2 x) where x is large."""
    large = x > LARGE[x.dtype.name]
    t = b.select(large, b.constant(1.0, x.dtype), x) - 1
    square = b.fma(t, t, t * 2)
    root = b.sqrt(square)
    error = b.remainder(square, root, root) / (root * 2 + count(b, root.equals(0), x))
    larger, smaller = b.select(t > root, t, root), b.select(t > root, root, t)
    more, rest = b.sum(larger, smaller)
    u, c = b.total(b.constant(1.0, x.dtype), more)
    found = log_of_sum(b, b.select(large, x, u), b.select(large, 0.0, c + (rest + error)), count(b, large, x))
    return b.select(x < 1, math.nan, b.select(x < math.inf, found, x))


def arctanh(b: ExpressionBuilder, x: Term) -> Term:
    """Return log(1 + 2 a / (1 - a)) / 2 for a = |x|."""
    a = abs(x)
    below, lost = b.sum(b.constant(1.0, x.dtype), -a)
    inverse = 1 / below
    q = a * 2 * inverse
    rest = (b.remainder(a * 2, q, below) - q * lost) * inverse
    u, c = b.total(b.constant(1.0, x.dtype), q)
    found = log_of_sum(b, u, c + rest) * 0.5
    found = b.select(a.equals(1), math.inf, found)
    return b.copysign(b.select(a > 1, math.nan, found), x)


def log_expit(b: ExpressionBuilder, x: Term) -> Term:
    """Return log(1 / (1 + exp(-x)))."""
    return -(log1p(b, exp(b, -abs(x))) - b.select(x < 0, x, 0.0))
