"""Inverse trigonometric functions: polynomials where the argument is small, identities elsewhere."""

from __future__ import annotations

import math

from wengert.kernel.functions.coefficients import ASIN, ATAN, QUARTER_TURN
from wengert.kernel.functions.expression import ExpressionBuilder, Term

__all__ = ["arccos", "arcsin", "arctan", "arctan2"]


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
