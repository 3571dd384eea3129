"""Powers, roots and lengths."""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import CBRT, LN2, LOG_LONG, TWO_THIRDS
from wengert.kernel.functions.exponential import exp, exponential_of_sum, scale_by_power
from wengert.kernel.functions.expression import DOUBLE, ExpressionBuilder, Term
from wengert.kernel.functions.logarithm import digits, log_of_sum

__all__ = ["cbrt", "hypot", "power"]

ORDINARY = 700
"""The logarithm of what is neither near overflow nor subnormal."""
LARGEST_POWER = 2.0**65
"""|x|**y is 0, 1 or infinite from there on."""


def log_in_parts(b: ExpressionBuilder, x: Term) -> tuple[Term, Term]:
    """Return the logarithm of |x| in two parts, to some 65 bits: s, s**3 and its factor are in two parts."""
    k, m = digits(b, x)
    f, d = m - 1, m + 1
    inverse = 1 / d
    s = f * inverse
    s_low = (b.remainder(f, s, d) - s * (m - (d - 1))) * inverse
    z, z_low = b.product(s, s)
    z_low = b.fma(s * 2, s_low, z_low)
    cube, cube_low = b.product(s, z)
    cube_low = b.fma(s, z_low, b.fma(z, s_low, cube_low))
    factor, factor_low = s.coefficients(TWO_THIRDS)
    third, third_low = b.product(cube, factor)
    third_low = b.fma(cube_low, factor, b.fma(cube, factor_low, third_low))
    tail = cube * z * b.polynomial(z, z.coefficients(LOG_LONG))
    high, low = b.sum(s * 2, third)
    low = low + ((s_low * 2 + third_low) + tail)
    whole, whole_low = [float.fromhex(part) for part in LN2["float64 short"]]
    high, rest = b.sum(k * whole, high)
    return b.sum(high, rest + b.fma(k, whole_low, low))


def power(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return x**y, with the special values of C."""
    if x.dtype != DOUBLE:
        size = power_of_single(b, x, y)
        b.rarely(~((x > 0) & (x < math.inf) & (abs(y) < math.inf)), special_power, x, y, size)
        return size
    if b.features.numbers and b.features.fma:
        return power_by_tables(b, x, y)
    high, low = log_in_parts(b, abs(x))
    exponent, lost = b.product(y, high)
    p, n, bits = exponential_of_sum(b, exponent, b.fma(y, low, lost))
    b.rarely(~((x > 0) & (x < math.inf) & (abs(exponent) < ORDINARY)), power_of_any, x, y, high, low)
    return b.scale(p, n) if b.features.scaling else p * b.power_of_two(bits, DOUBLE)


def power_by_tables(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return x**y by tables of logarithms and of powers of two, whose operations wait for half as many others.

    As in P. T. P. Tang, Table-driven implementation of the logarithm function, ACM Transactions on Mathematical
    Software 16, 1990: log(x) = k log(2) - log(c) + log(1 + r), r = c m - 1 being exact.
    """
    high, low = log_by_tables(b, x)
    exponent, lost = b.product(y, high)
    lost = b.fma(y, low, lost)
    n, bits = b.nearest(exponent, PARTS / math.log(2))
    whole, whole_low = [float.fromhex(part) / PARTS for part in LN2["float64"]]
    r = b.fma(n, -whole_low, b.fma(n, -whole, exponent)) + lost
    place = bits & (PARTS - 1)
    root = b.bits(b.entry("roots", place, DOUBLE))
    scale = b.number(root + ((bits - place) << (x.format.digits - DIGITS)), DOUBLE)
    rest = b.fma(r * r, b.chain(r, [1 / 2, 1 / 6, 1 / 24, 1 / 120]), b.entry("roots_rest", place, DOUBLE) + r)
    b.rarely(~((x >= x.format.smallest) & (x < math.inf) & (abs(exponent) < ORDINARY)), power_of_all, x, y)
    return b.fma(scale, rest, scale)


PARTS, DIGITS = 128, 7
"""How many entries tables have, and the digits of their places."""
LEAST = 11 / 16
"""The smallest number whose inverse they have; the largest is just below twice it."""


def log_by_tables(b: ExpressionBuilder, x: Term) -> tuple[Term, Term]:
    """Return the logarithm of a positive number, which is not subnormal, in two parts, to some 65 bits."""
    form = x.format
    offset = b.bits(x) - b.bits(b.constant(LEAST, DOUBLE))
    k = offset >> form.digits
    place = (offset >> (form.digits - DIGITS)) & (PARTS - 1)
    m = b.number(b.bits(x) - (k << form.digits), DOUBLE)
    r = b.fma(m, b.entry("inverses", place, DOUBLE), -1.0)
    k = b.convert(k, DOUBLE)
    whole, whole_low = [float.fromhex(part) for part in LN2["float64 short"]]
    first = b.fma(k, whole, b.entry("logarithms", place, DOUBLE))
    first_low = b.fma(k, whole_low, b.entry("logarithms_rest", place, DOUBLE))
    second, second_low = b.sum(first, r)
    half = r * -0.5
    square = r * half
    third, third_low = b.sum(second, square)
    signs = [(-1) ** (i + 1) / i for i in range(3, 11)]
    rest = b.fma(r * (r * r), b.polynomial(r, signs), b.fma(r, half, -square))
    return b.sum(third, rest + (first_low + (second_low + third_low)))


def power_of_all(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return x**y of any numbers."""
    return power_of_any(b, x, y, *log_in_parts(b, abs(x)))


def power_of_any(b: ExpressionBuilder, x: Term, y: Term, high: Term, low: Term) -> Term:
    """Return x**y of any numbers, from the two parts of log |x|."""
    limited = b.within(y, -LARGEST_POWER, LARGEST_POWER)
    exponent, lost = b.product(limited, high)
    exponent, lost = b.within(exponent, -750.0, 712.0), b.within(b.fma(limited, low, lost), -1.0, 1.0)
    return special_power(b, x, y, scale_by_power(b, *exponential_of_sum(b, exponent, lost)))


def power_of_single(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return |x|**y for single precision in double precision, where one part is enough."""
    b.mixed = True
    wide, exponent = b.convert(abs(x), DOUBLE), b.convert(y, DOUBLE)
    found = exp(b, exponent * log_of_sum(b, wide))
    b.mixed = False
    return b.convert(found, x.dtype)


def special_power(b: ExpressionBuilder, x: Term, y: Term, size: Term) -> Term:
    """Return x**y with its sign and special values, from |x|**y where that is neither."""
    a = abs(x)
    size = b.select(a.equals(1), 1.0, size)
    empty, endless = a.equals(0), a.equals(math.inf)
    limit = b.select(empty ^ (y < 0), b.constant(0.0, x.dtype), math.inf)
    size = b.select(empty | endless, limit, size)
    integer = b.rint(y).equals(y)
    half = y * 0.5
    odd = integer & b.rint(half).differs(half)
    negative = b.bits(x) < 0
    found = b.select(negative & odd, -size, size)
    found = b.select((x < 0) & ~(integer | endless), math.nan, found)
    found = b.select(x.equals(x) & y.equals(y), found, x + y)
    return b.select(x.equals(1) | y.equals(0), 1.0, found)


def cbrt(b: ExpressionBuilder, x: Term) -> Term:
    """Return the cube root: an approximation of the inverse one of the digits, and two steps of orders four and two."""
    k, m = digits(b, abs(x))
    third = b.rint(k * (1 / 3))
    over = k - third * 3
    up, down = over > 0, over < 0
    y = b.polynomial(m - 1.125, m.coefficients(CBRT))
    y = y * b.select(up, b.constant(2 ** (-1 / 3), x.dtype), b.select(down, b.constant(2 ** (1 / 3), x.dtype), 1.0))
    m = m * b.select(up, b.constant(2.0, x.dtype), b.select(down, b.constant(0.5, x.dtype), 1.0))
    error = 1 - m * y * y * y
    y = b.fma(y * error, b.polynomial(error, [1 / 3, 2 / 9, 14 / 81]), y)
    root = m * y * y
    square, square_low = b.product(root, root)
    cube, cube_low = b.product(square, root)
    rest = (m - cube) - b.fma(square_low, root, cube_low)
    root = b.fma(rest * (1 / 3), y * y, root)
    shifted = third + x.format.magic
    root = root * b.power_of_two(b.bits(shifted), x.dtype)
    same = x.equals(0) | ~(abs(x) < math.inf)
    return b.select(same, x, b.copysign(root, x))


def hypot(b: ExpressionBuilder, x: Term, y: Term) -> Term:
    """Return sqrt(x**2 + y**2), scaled by a power of two; infinite if either is."""
    x, y = abs(x), abs(y)
    large, small = b.select(x > y, x, y), b.select(x > y, y, x)
    half, digits_of = x.format.bias // 2, x.format.digits
    tiny, huge = large < 2.0 ** (digits_of - half), large > 2.0 ** (half - 1)
    up, down = half + digits_of, -(half + 2)
    one = b.constant(1.0, x.dtype)
    scale = b.select(tiny, 2.0**up, b.select(huge, 2.0**down, one))
    back = b.select(tiny, 2.0**-up, b.select(huge, 2.0**-down, one))
    large, small = large * scale, small * scale
    found = b.sqrt(b.fma(large, large, small * small)) * back
    return b.select(x.equals(math.inf) | y.equals(math.inf), math.inf, found)
