"""Remainders and powers of two: the parts of numbers, to the last bit."""

from __future__ import annotations

import math

from wengert.kernel.functions.expression import ExpressionBuilder, Term

__all__ = ["fmod", "frexp", "ldexp", "nextafter", "spacing"]

MOST = 5000.0
"""More than any exponent of two that leaves something of a number."""


def fmod(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return what is left of x when y is taken away as often as it fits, as C's fmod: exactly.

    The rounded quotient is at most one too large, and what a whole number of y leaves of x has room in a number.
    """
    size, divisor = abs(x), abs(y)
    times = b.floor(size / divisor)
    rest = b.remainder(size, times, divisor)
    rest = b.select(rest < 0, rest + divisor, rest)
    b.rarely(~((times < 2.0**x.format.digits) & (divisor < math.inf)), long_division, x, y)
    return b.copysign(rest, x)


def long_division(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return the remainder where the quotient has more digits than a number: by the C library, one after the other."""
    return b.binary("long_remainder", x, y)


def frexp(b: ExpressionBuilder, x: Term) -> tuple[Term, Term]:
    """Return m and n of x = m 2**n, 1/2 <= |m| < 1; x and 0 for zero, infinity and what is no number."""
    form = x.format
    small = abs(x) < form.smallest
    shift = form.digits + 2
    bits = b.bits(b.select(small, x * 2.0**shift, x))
    exponent = (bits >> form.digits) & (2 * form.bias + 1)
    mantissa = b.number((bits & ~((2 * form.bias + 1) << form.digits)) | ((form.bias - 1) << form.digits), x.dtype)
    plain = (abs(x) > 0) & (abs(x) < math.inf)
    bias = b.select(small, b.constant(shift + form.bias - 1.0, x.dtype), form.bias - 1.0)
    power = b.convert(exponent, x.dtype) - bias
    return b.select(plain, mantissa, x), b.select(plain, power, 0.0)


def ldexp(b: ExpressionBuilder, x: Term, n: Term) -> Term:
    """Return x 2**n for the nearest whole number: rounded once.

    What is rounded before the last product becomes zero anyway.
    """
    n = b.rint(b.within(n, -MOST, MOST))
    if b.features.scaling:
        return b.scale(x, n)
    limit = x.format.bias - 1.0
    steps = []
    for _ in range(3):
        step = b.within(n, -limit, limit)
        steps.append(b.power_of_two(b.nearest(step, 1.0)[1], x.dtype))
        n = n - step
    return x * steps[2] * steps[1] * steps[0]


def nextafter(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return the number next to x towards y."""
    one = b.constant(1, x.format.integer)
    away = (y > x) ^ (x < 0)
    found = b.number(b.bits(x) + b.select(away, one, -one), x.dtype)
    found = b.select(x.equals(0), b.copysign(smallest(b, x), y), found)
    return b.select(x.equals(y), y, b.select(x.equals(x) & y.equals(y), found, x + y))


def spacing(b: ExpressionBuilder, x: Term) -> Term:
    """Return how far the next number away from zero is."""
    found = b.number(b.bits(x) + 1, x.dtype) - x
    return b.select(x.equals(0), smallest(b, x), found)


def smallest(b: ExpressionBuilder, x: Term) -> Term:
    """Return the smallest positive number of a dtype."""
    return b.number(b.constant(1, x.format.integer), x.dtype)
