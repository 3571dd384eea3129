"""Sine, cosine and tangent; inverses, by polynomials where the argument is small, by identities elsewhere.

|x| = n pi / 2 + r with |r| <= pi / 4, r in two parts: by three parts of pi / 2 (Cody and Waite, 1980), and for large
arguments by the bits of 2 / pi that matter (M. H. Payne and R. N. Hanek, Radian reduction for trigonometric functions,
ACM SIGNUM Newsletter 18, 1983), in exact floating-point arithmetic here.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from wengert.kernel.functions.coefficients import ASIN, ATAN, COS, HALF_PI, QUARTER_TURN, SIN
from wengert.kernel.functions.expression import DOUBLE, ExpressionBuilder, Term

__all__ = ["arccos", "arcsin", "arctan", "arctan2", "cosine", "sincos", "sine", "tan"]


Pair = tuple[Term, Term]
Reduced = tuple[Term, Term, Term]
"""The two parts of r, and bits of which the lowest two are n modulo 4."""
Reduce = Callable[[ExpressionBuilder, Term], Reduced]
Finish = Callable[[ExpressionBuilder, Term, Reduced], tuple[Term, ...]]

LIMITS = {("float64", True): 2.0**25, ("float32", True): 2.0**10, ("float64", False): 2.0**20}
"""Up to where three parts of pi / 2 do, by dtype and whether there is fma: n times the second part is exact."""


def reduce_moderate(b: ExpressionBuilder, size: Term) -> Reduced:
    """Reduce arguments that are not large."""
    parts = size.parts(HALF_PI)
    n, bits = b.nearest(size, 2 / math.pi)
    minus = -n
    first, second = b.fma(minus, parts[0], size), n * parts[1]
    r = first - second
    low = b.fma(minus, parts[2], (first - r) - second)
    return (r, low, bits) if b.features.fma else (*b.sum(r, low), bits)


def reduced_large(b: ExpressionBuilder, size: Term) -> Reduced:
    """Reduce a large argument m 2**s by the bits of 2 / pi that matter: products with 48 are exact in two parts."""
    bits = b.bits(size)
    place = b.number(((bits >> 52) - 1029) + b.bits(b.constant(DOUBLE_MAGIC, DOUBLE)), DOUBLE) - DOUBLE_MAGIC  # s + 46
    chunk = b.floor((place + 0.5) * (1 / 24))
    index = b.bits(chunk + DOUBLE_MAGIC) & 63  # within the table for any argument: other lanes may be small
    scale = b.power_of_two(b.bits(place - chunk * 24 + DOUBLE_MAGIC), DOUBLE, -46)
    m = b.number((bits & (2**52 - 1)) | b.bits(b.constant(2.0**52, DOUBLE)), DOUBLE) * scale

    def factors(k: int) -> tuple[Term, Term]:
        return m * 2.0 ** (-48 * k), b.entry("two_over_pi", index + 2 * k if k else index, DOUBLE)

    def modulo(x: Term) -> Term:
        return x - b.rint(x * 0.25) * 4

    (high, low), (second, second_low), (third, third_low) = (b.product(*factors(k)) for k in range(3))
    (m3, part3), (m4, part4) = factors(3), factors(4)
    first, second = modulo(high) + modulo(low), modulo(second)
    n = b.rint(first + second)
    top, lost = b.total(first - n, second)
    middle, middle_lost = b.total(second_low, third)
    turn, turn_lost = b.total(top, middle)
    turn, rest = b.total(turn, lost + turn_lost)
    turn, rest = b.sum(turn, rest + (middle_lost + ((third_low + m3 * part3) + m4 * part4)))
    quarter, quarter_low = turn.coefficients(QUARTER_TURN)
    r, low = b.product(turn, quarter)
    low = low + (turn * quarter_low + rest * quarter)
    return (*b.sum(r + (size - size), low), b.bits(n + DOUBLE_MAGIC))  # NaN for infinity


DOUBLE_MAGIC = 1.5 * 2.0**52


def sine(b: ExpressionBuilder, r: Term, low: Term) -> Pair:
    """Return sin(r + low) in two parts, |r| <= pi / 4."""
    z = r * r
    return r, b.fma(z * r, b.polynomial(z, z.coefficients(SIN)), low)


def cosine(b: ExpressionBuilder, r: Term, low: Term) -> Pair:
    """Return cos(r + low) in two parts, |r| <= pi / 4."""
    z = r * r
    return b.constant(1.0, r.dtype), b.fma(z, cosine_tail(b, z), -(r * low))


def cosine_tail(b: ExpressionBuilder, z: Term) -> Term:
    """Return (cos(r) - 1) / z, z = r**2."""
    return b.fma(z, b.polynomial(z, z.coefficients(COS)), -0.5)


def bit_as_sign(bits: Term, x: Term) -> Term:
    """Return bits of which the second is at the place of the sign."""
    return bits << (x.format.integer.itemsize * 8 - 2)


def with_sign(b: ExpressionBuilder, x: Term, sign: Term) -> Term:
    """Return a number with its sign changed where a sign bit is set."""
    return b.number(b.bits(x) ^ (sign & x.format.sign), x.dtype)


def sincos_of(b: ExpressionBuilder, x: Term, found: Reduced) -> Pair:
    """Return sine and cosine of what was reduced."""
    r, low, bits = found
    s, rest = sine(b, r, low)
    sin, cos = s + rest, b.fma(r * r, cosine_tail(b, r * r), 1.0)
    odd = (bits & 1).differs(0)
    return (
        with_sign(b, b.select(odd, cos, sin), bit_as_sign(bits, x) ^ b.bits(x)),
        with_sign(b, b.select(odd, sin, cos), bit_as_sign(bits + 1, x)),
    )


def tan_of(b: ExpressionBuilder, x: Term, found: Reduced) -> tuple[Term, ...]:
    """Return the tangent of what was reduced: a quotient of sums of two parts, with one division."""
    r, low, bits = found
    s, c = b.sum(*sine(b, r, low)), b.sum(*cosine(b, r, low))
    odd = (bits & 1).differs(0)
    above, above_low = b.select(odd, c[0], s[0]), b.select(odd, c[1], s[1])
    below, below_low = b.select(odd, s[0], c[0]), b.select(odd, s[1], c[1])
    inverse = 1 / below
    q = above * inverse
    q = q + (b.remainder(above, q, below) + (above_low - q * below_low)) * inverse
    return (with_sign(b, q, b.bits(x) ^ (bits << (x.format.integer.itemsize * 8 - 1))),)


def finish_in_double(b: ExpressionBuilder, x: Term, reduce: Reduce, finish: Finish) -> tuple[Term, ...]:
    """Return, for single precision too, what is computed in double precision from what was reduced."""
    wide = b.convert(x, DOUBLE)
    b.mixed = x.dtype != DOUBLE
    return tuple(b.convert(found, x.dtype) for found in finish(b, wide, reduce(b, abs(wide))))


def periodic(b: ExpressionBuilder, x: Term, finish: Finish) -> tuple[Term, ...]:
    """Return functions of a reduced argument: in double precision where it is large or there is no fma."""
    if x.dtype == DOUBLE or not b.features.fma:
        return periodic_wide(b, x, finish)
    b.rarely(is_large(b, x), lambda b, x: periodic_wide(b, x, finish), x)
    return finish(b, x, reduce_moderate(b, abs(x)))


def periodic_wide(b: ExpressionBuilder, x: Term, finish: Finish) -> tuple[Term, ...]:
    """Return functions of a reduced argument that are computed in double precision."""
    wide = b.convert(x, DOUBLE)
    b.rarely(is_large(b, wide), lambda b, x: finish_in_double(b, x, reduced_large, finish), x)
    return finish_in_double(b, x, reduce_moderate, finish)


def is_large(b: ExpressionBuilder, x: Term) -> Term:
    """Whether an argument is too large for three parts of pi / 2."""
    return abs(x) > LIMITS[x.dtype.name, b.features.fma]


def sincos(b: ExpressionBuilder, x: Term) -> tuple[Term, ...]:
    """Return sine and cosine."""
    return periodic(b, x, sincos_of)


def tan(b: ExpressionBuilder, x: Term) -> tuple[Term, ...]:
    """Return the tangent."""
    return periodic(b, x, tan_of)


def half_pi(x: Term) -> tuple[float, float]:
    """Return pi / 2 in two parts."""
    high, low = x.coefficients(QUARTER_TURN)
    return high, low


def arcsine(b: ExpressionBuilder, a: Term) -> tuple[Term, Term, Term]:
    """Return whether a >= 1/2, and in two parts arcsin(a), or then arcsin(sqrt((1 - a) / 2)) = arccos(a) / 2."""
    large = a >= 0.5
    z = b.select(large, (1 - a) * 0.5, a * a)
    root = b.sqrt(z)
    error = b.remainder(z, root, root) / b.select(root.equals(0), 1.0, root * 2)
    y = b.select(large, root, a)
    rest = b.select(large, error, 0.0)
    return large, y, b.fma(y * z, b.polynomial(z, z.coefficients(ASIN)), rest)


def arcsin(b: ExpressionBuilder, x: Term) -> Term:
    """Return the angle between -pi / 2 and pi / 2."""
    high, low = half_pi(x)
    large, y, rest = arcsine(b, abs(x))
    whole, lost = b.sum(b.constant(high, x.dtype), y * -2)
    return b.copysign(b.select(large, whole + (lost + (low - rest * 2)), y + rest), x)


def arccos(b: ExpressionBuilder, x: Term) -> Term:
    """Return the angle between 0 and pi."""
    high, low = half_pi(x)
    large, y, rest = arcsine(b, abs(x))
    # twice that for x near 1, pi minus twice that for x near -1, else pi / 2 and minus or plus that
    y, rest = b.copysign(y, x), b.select(x < 0, -rest, rest)
    base = b.select(large, b.select(x < 0, b.constant(2 * high, x.dtype), 0.0), b.constant(high, x.dtype))
    base_low = b.select(large, b.select(x < 0, b.constant(2 * low, x.dtype), 0.0), b.constant(low, x.dtype))
    part = b.select(large, y * 2, -y)
    part_low = b.select(large, rest * 2, -rest)
    whole, lost = b.sum(base, part)
    return whole + (lost + (base_low + part_low))


def angle(b: ExpressionBuilder, above: Term, below: Term) -> tuple[Term, Term]:
    """Return in two parts arctan(above / below), 0 <= above <= below; equal ones may be infinite, both may be 0."""
    inverse = 1 / b.select(below.equals(0), 1.0, below)
    q = above / b.select(below.equals(0), 1.0, below)
    q = b.select(above.equals(math.inf) & below.equals(math.inf), 1.0, q)
    z = q * q
    error = b.remainder(above, q, below) * inverse
    error = b.select(abs(error) < q * 2.0**-q.format.digits, error, 0.0)  # not what underflow makes of it
    return q, b.fma(q * z, b.accurate(z, z.coefficients(ATAN)), error)


def arctan2(b: ExpressionBuilder, y: Term, x: Term) -> Term:
    """Return the angle of the point (x, y) between -pi and pi."""
    high, low = half_pi(x)
    rise, run = abs(y), abs(x)
    steep = rise > run
    q, rest = angle(b, b.select(steep, run, rise), b.select(steep, rise, run))
    left = b.bits(x) < 0
    # a multiple of pi / 2, and plus or minus the angle
    turned = steep ^ left
    base = b.select(steep, b.constant(high, x.dtype), b.select(left, b.constant(2 * high, x.dtype), 0.0))
    base_low = b.select(steep, b.constant(low, x.dtype), b.select(left, b.constant(2 * low, x.dtype), 0.0))
    whole, lost = b.sum(base, b.select(turned, -q, q))
    return b.copysign(whole + (lost + (base_low + b.select(turned, -rest, rest))), y)


def arctan(b: ExpressionBuilder, x: Term) -> Term:
    """Return the angle between -pi / 2 and pi / 2."""
    high, low = half_pi(x)
    a = abs(x)
    steep = a > 1
    q = b.select(steep, 1 / a, a)
    z = q * q
    rest = q * z * b.accurate(z, z.coefficients(ATAN))
    whole, lost = b.sum(b.select(steep, b.constant(high, x.dtype), 0.0), b.select(steep, -q, q))
    return b.copysign(whole + (lost + b.select(steep, low - rest, rest)), x)
