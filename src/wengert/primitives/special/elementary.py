"""Exponentials, logarithms, entropies and losses; elementary functions that SciPy evaluates in its own way."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.values.dispatch import apply, at_once
from wengert.primitives.angles import cosine
from wengert.primitives.floating_point import in_double, is_nan
from wengert.primitives.powers import power_base, power_exponent
from wengert.primitives.special.declaration import Rule, is_complex, piecewise_constant, special

LN10 = np.log(10.0)
LN2 = np.log(2.0)
DEGREE = np.pi / 180
SMALLEST = float(np.finfo(np.float64).smallest_normal)


# The logistic function

special(sp.expit, lambda t, out, x: t * out * sp.expit(-x))
special(sp.log_expit, lambda t, _out, x: t * sp.expit(-x))


def logit_at(x: Any) -> Any:
    """Return log(x / (1 - x)), near 1/2, where it is small, from its difference from zero."""
    near = (x > 0.3) & (x < 0.65)
    return np.where(near, np.log1p((2 * x - 1) / (1 - x)), np.log(x / (1 - x)))


special(
    sp.logit, lambda t, _out, x: t / x + t / (1 - x), scalar=logit_at
)  # second derivatives of tiny x overflow, and are not NaN


# Products with logarithms. At x = 0, where the product is 0 whatever y is, the derivative by y is 0 too; so is the one
# by x where the logarithm is not finite (see docs/choices.md).


def is_nothing(x: Any, y: Any) -> Any:
    """Tell where x log(y) is 0 although the logarithm is not finite; of complex numbers only where y is 0."""
    return (x == 0) & ((y == 0) if is_complex(y) else (y <= 0))


def weigh_ratio(t: Any, x: Any, y: Any) -> Any:
    """Return t x / y, and 0 where x log(y) is nothing."""
    nothing = is_nothing(x, y)
    return np.where(nothing, 0.0, t * x / np.where(nothing, 1.0, y))


def logarithm(t: Any, log: Any, x: Any, y: Any, least: float) -> Any:
    """Return t log(y), and 0 where x is 0 and the logarithm not finite."""
    if is_complex(y):
        return t * log(y)
    nothing = (x == 0) & (y <= least)
    return t * np.where(nothing, 0.0, log(np.where(nothing, 1.0, y)))


def log_quotient_value(x: Any, y: Any) -> Any:
    """Evaluate log(x / y), near x = y from the difference."""
    near = np.abs(x - y) < y / 2
    return np.where(near, np.log1p(np.where(near, (x - y) / y, 0.0)), np.log(x / y))[()]


def log_quotient_at(x: Any, y: Any) -> Any:
    """Return log(x / y), near x = y from the difference."""
    return np.where(np.absolute(x - y) < 0.5 * y, np.log1p((x - y) / y), np.log(x / y))


log_quotient = elementwise(
    "log_quotient",
    log_quotient_value,
    d=(lambda t, _out, x, _y: t / x, lambda t, _out, _x, y: -t / y),
    singular=True,
    scalar=in_double(log_quotient_at),
    cost=60,
)


def weighed_at(log: np.ufunc) -> Rule:
    """Return x log(y) at a point, and 0 for x = 0 whatever y is, but for NaN."""
    return lambda x, y: np.where((x == 0) & ~is_nan(y), 0, x * log(y))


special(
    sp.xlogy,
    lambda t, _out, x, y: logarithm(t, np.log, x, y, 0.0),
    lambda t, _out, x, y: weigh_ratio(t, x, y),
    scalar=weighed_at(np.log),
)
special(
    sp.xlog1py,
    lambda t, _out, x, y: logarithm(t, np.log1p, x, y, -1.0),
    lambda t, _out, x, y: weigh_ratio(t, x, 1 + y),
    scalar=weighed_at(np.log1p),
)


def entropy_at(x: Any) -> Any:
    """Return -x log(x), and -infinity below zero."""
    return np.where(x == 0, 0, np.where(x < 0, -np.inf, -x * np.log(x)))


special(sp.entr, lambda t, _out, x: -t * (np.log(x) + 1), scalar=entropy_at, steep=True)


def divergence_at(distance: Rule, at_zero: Rule) -> Rule:
    """Return a divergence of x from y at a point, of positive ones, of x = 0, and infinity beyond."""

    def expression(x: Any, y: Any) -> Any:
        inside = np.where((x > 0) & (y > 0), distance(x, y), np.inf)
        found = np.where((x == 0) & (y >= 0), at_zero(y), inside)
        return np.where(is_nan(x) | is_nan(y), np.nan, found)

    return in_double(expression)


def relative_entropy_at(x: Any, y: Any) -> Any:
    """Return x log(x / y), also where the quotient has no number."""
    ratio = x / y
    plain = (ratio >= SMALLEST) & (ratio < np.inf)
    return x * np.where(plain, log_quotient_at(x, y), np.log(x) - np.log(y))


special(
    sp.rel_entr,
    lambda t, _out, x, y: t * (at_once(log_quotient, x, y) + 1),
    lambda t, _out, x, y: -weigh_ratio(t, x, y),
    scalar=divergence_at(relative_entropy_at, lambda _y: 0),
    cost=100,
    steep=True,
)
special(
    sp.kl_div,
    lambda t, _out, x, y: t * at_once(log_quotient, x, y),
    lambda t, _out, x, y: np.where(is_nothing(x, y), t, t * (y - x) / np.where(is_nothing(x, y), 1.0, y)),
    scalar=divergence_at(lambda x, y: x * np.log(x / y) - x + y, lambda y: y),
    cost=60,
    steep=True,
)


# Losses

LONGEST = 1e300
"""From there on a vector (u, 1) is as long as u to all digits."""


def clip_from_side(delta: Any, r: Any) -> Any:
    """Return r between -delta and delta, from the side on which it is, which matters where delta is 0."""
    from_below, from_above = np.minimum(r, delta), np.maximum(r, -delta)
    return np.where(r > 0, from_below, np.where(r < 0, from_above, (from_below + from_above) / 2))


def sine(u: Any) -> Any:
    """Return u / sqrt(1 + u^2), whose derivatives do not cancel."""
    u = np.clip(u, -LONGEST, LONGEST)
    return apply(cosine, u, 1.0, np.hypot(u, 1.0))


def direction(delta: Any, r: Any) -> tuple[Any, Any]:
    """Return delta / h and r / h with h = hypot(delta, r), of which one is 0 where the other is infinite."""
    far = np.isinf(r)
    end = np.isinf(delta) | far
    x, y = np.where(end, 1.0, delta), np.where(end, 1.0, r)
    h = np.hypot(x, y)
    along = np.where(end, np.where(far, 0.0, 1.0), apply(cosine, x, y, h))
    return along, np.where(end, np.where(far, np.sign(r), 0.0), apply(cosine, y, x, h))


def pseudo_huber_by_delta(t: Any, _out: Any, delta: Any, r: Any) -> Any:
    """Differentiate by delta: (h - delta)^2 / h with h = hypot(delta, r), where h - delta is r^2 / (h + delta)."""
    c, s = direction(delta, r)
    q = s / (1 + c)
    return t * r * s * q * q


def pseudo_huber_by_r(t: Any, _out: Any, delta: Any, r: Any) -> Any:
    """Differentiate by r: delta r / h, the smaller one times what the other is of h."""
    c, s = direction(delta, r)
    return t * np.where(np.abs(r) < delta, r * c, delta * s)


def huber_at(delta: Any, r: Any) -> Any:
    """Return r^2 / 2 up to delta, and what goes on linearly beyond."""
    size = np.absolute(r)
    found = np.where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return np.where(delta < 0, np.inf, found)


special(
    sp.huber,
    lambda t, _out, delta, r: t * np.maximum(np.abs(r) - delta, 0),
    lambda t, _out, delta, r: t * clip_from_side(delta, r),
    scalar=huber_at,
)


@in_double
def pseudo_huber_at(delta: Any, r: Any) -> Any:
    """Return delta^2 (sqrt(1 + (r / delta)^2) - 1)."""
    ratio = r / delta
    found = delta * delta * np.expm1(0.5 * np.log1p(ratio * ratio))
    return np.where(delta < 0, np.inf, np.where((delta == 0) | (r == 0), 0, found))


special(sp.pseudo_huber, pseudo_huber_by_delta, pseudo_huber_by_r, scalar=pseudo_huber_at, cost=80)


# Elementary functions


@in_double
def cosm1_at(x: Any) -> Any:
    """Return cos(x) - 1, with all digits near every whole turn."""
    half = np.sin(0.5 * x)
    return 0 - 2 * (half * half)


special(sp.exp2, lambda t, out, _x: t * out * LN2)
special(sp.exp10, lambda t, out, _x: t * out * LN10, scalar=lambda x: np.power(10, x))
special(sp.expm1, lambda t, _out, x: t * np.exp(x))
special(sp.log1p, lambda t, _out, x: t / (1 + x))
special(sp.cbrt, lambda t, out, _x: t / (3 * out) / out, steep=True)
special(sp.cosm1, lambda t, _out, x: -t * np.sin(x), scalar=cosm1_at, cost=30)
special(
    sp.powm1,
    lambda t, _out, x, y: power_base(t, x**y, x, y),
    lambda t, _out, x, y: power_exponent(t, x**y, x, y),
    steep=True,
)
special(sp.sindg, lambda t, _out, x: t * DEGREE * sp.cosdg(x))
special(sp.cosdg, lambda t, _out, x: -t * DEGREE * sp.sindg(x))
special(sp.tandg, lambda t, out, _x: t * DEGREE * (1 + out * out))
special(sp.cotdg, lambda t, out, _x: -t * DEGREE * (1 + out * out))


def part_value(w: Any) -> Any:
    """Evaluate w / (1 + w)."""
    return w / (1 + w)


part = elementwise("part", part_value, d=lambda t, _out, w: t / (1 + w) / (1 + w), singular=True, scalar=part_value)
special(sp.wrightomega, lambda t, out, _x: t * at_once(part, out))
piecewise_constant(sp.round, scalar=np.rint)
