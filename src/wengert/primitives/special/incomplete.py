"""Incomplete gamma and beta functions in all of their arguments, their inverses, and distributions made of them.

A derivative by a shape parameter is an integral over the density: with w(t; a) the gamma density, P(a, x) is the
integral of w from 0 to x, and dP/da that of (log t - psi(a)) w, equal to minus that from x to infinity. Of the two the
one is taken whose integrand has one sign, so that nothing cancels, in tails neither. Derivatives of higher order have
polynomials in place of log t - psi(a), complete Bell polynomials of the derivatives of log w. The integrals are taken
over u = log t, for the beta function over u = log(t / (1 - t)), in which the densities are logarithmically concave, by
the rule of Takahasi and Mori up to where the integrand has fallen to exp(-45) of what it is at x: relative errors are
below 1e-13 for a and b from 1e-8 to 1e5, and grow as their square root from there on. What is integrated is relative
to the density at x, which gives the derivatives of the inverses without underflow.

Like the densities (`densities.py`) these integrals are primitives whose parameters are the orders of derivatives.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.core.values.tensor import is_concrete, raw
from wengert.primitives.conversion import barrier
from wengert.primitives.powers import power_derivative
from wengert.primitives.special.declaration import TANH_SINH, flat, special
from wengert.primitives.special.densities import (
    beta_density_at,
    beta_density_value,
    beta_moment,
    beta_moments,
    first_score,
    gamma_density_at,
    gamma_density_value,
    gamma_moment,
    gamma_score,
    largest_term,
    next_beta,
    next_gamma,
    second_score,
)
from wengert.primitives.special.gamma import polygamma_difference
from wengert.primitives.trigonometric import faded
from wengert.support.records import NamedTuple

LOWEST = 45.0
"""How far the logarithm of an integrand falls to where its integral ends."""
LENGTHS = 2.0 ** np.arange(-30, 40)


# Derivatives by shape parameters, over x v for the gamma and x (1 - x) v for the beta distribution


def integrate_side(fall: Callable[[Any], Any], value: Callable[[Any], Any], side: Any, bend: Any) -> Any:
    """Return the integral of value(d), exp(fall(d)) by a weight, over d on one side of 0, less (side -1) or more (1).

    `fall` is concave, and 0 at 0; where one slope of it passes into another, at `bend`, the integral is done in two
    parts, because slopes may differ by orders of magnitude. Arrays have an axis for points at the end.
    """
    with np.errstate(over="ignore"):  # far away, where nothing is left
        fallen = fall(side * LENGTHS) < -LOWEST
    lengths = np.take(LENGTHS, np.argmax(fallen, axis=-1))[..., np.newaxis]
    part = np.minimum(np.maximum(side * bend, 0), lengths)
    nodes, weights = TANH_SINH
    found = 0.0
    for start, length in ((np.zeros_like(part), part), (part, lengths - part)):
        points = side * (start + length * nodes)
        found = found + length[..., 0] * (value(points) @ weights)
    return found


def gammainc_by_shape_value(a: Any, x: Any, *, order: int) -> Any:
    """Evaluate a derivative of P(a, x) by a, over x^a exp(-x) / gamma(a + 1)."""
    dtype, (a, x) = flat(a, x)
    inside = (x > 0) & (x < np.inf) & (a >= 0) & (a < np.inf)
    safe_a, safe_x = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    log = np.log(safe_x)
    side = np.where(log < sp.digamma(safe_a), -1.0, 1.0)

    def fall(d: Any) -> Any:
        return safe_a * d - safe_x * np.expm1(d)

    found = integrate_side(
        fall,
        lambda d: gamma_moment(order, safe_a, log + d) * np.exp(fall(d)),
        side,
        np.log1p(safe_a) - log,
    )
    unknown = np.isnan(a + x) | ((a == 0) & (x == 0))
    outer = np.where(unknown, np.nan, np.where(x == 0, (-1.0) ** order * np.inf, 0.0))
    return np.where(inside[..., 0], -side[..., 0] * found, outer[..., 0]).astype(dtype)[()]


def betainc_by_shapes_value(a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Evaluate a derivative of I_x(a, b) by a and b, over x^a (1 - x)^b / B(a, b) and over a b / (a + b)."""
    dtype, (a, b, x) = flat(a, b, x)
    finite = (a >= 0) & (b >= 0) & (a + b > 0) & (a < np.inf) & (b < np.inf)
    inside = finite & (x > 0) & (x < 1)
    a, b, y = np.where(finite, a, 1.0), np.where(finite, b, 1.0), np.where(inside, x, 0.5)
    first, second = np.log(y), np.log1p(-y)
    place = first - second
    if i and j:
        lower = place < sp.digamma(a) - sp.digamma(b)
    else:
        lower = second_score(a, b, y) > 0 if j else first_score(a, b, y) < 0
    side = np.where(lower, -1.0, 1.0)

    moving, fixed = np.where(side < 0, y, 1 - y), np.where(side < 0, 1 - y, y)

    def growth(d: Any) -> Any:
        """Return log(1 + x (exp(|d|) - 1)) less |d| on the right, likewise for 1 - x on the left."""
        change = moving * np.expm1(-np.abs(d))
        near = change > -0.5
        return np.where(near, np.log1p(np.where(near, change, 0.0)), np.log(fixed + moving * np.exp(-np.abs(d))))

    moment = beta_moments(a, b)

    def fallen(d: Any, rest: Any) -> Any:
        return np.where(side < 0, a, b) * -np.abs(d) - (a + b) * rest

    def value(d: Any) -> Any:
        rest = growth(d)
        logs = first + np.minimum(d, 0) - rest, second - np.maximum(d, 0) - rest
        return moment(i, j, logs) * np.exp(fallen(d, rest))

    bend = np.log1p(a) - np.log1p(b) - place
    integral = integrate_side(lambda d: fallen(d, growth(d)), value, side, bend)
    found = np.where(inside[..., 0], -side[..., 0] * integral, 0.0)
    a, b, x, finite = a[..., 0], b[..., 0], x[..., 0], finite[..., 0]
    found = np.where(finite & (x == 0), by_shapes_at_zero(a, b, i, j), found)
    found = np.where(finite & (x == 1), -by_shapes_at_zero(b, a, j, i), found)
    return np.where(np.isnan(x), np.nan, found).astype(dtype)[()]


def by_shapes_at_zero(a: Any, b: Any, i: int, j: int) -> Any:
    """Return what `betainc_by_shapes` tends to at x = 0: that of x^a / (a B(a, b)), which has powers of log(x)."""
    return largest_term(beta_moment(0, j, a, b, (0.0, 0.0)) / a, np.asarray(i), np.zeros_like(a))


def gammainc_by_shape_by_x(t: Any, out: Any, a: Any, x: Any, *, order: int) -> Any:
    """Differentiate by x: the density's derivative of that order, less what the denominator changes by."""
    return t * (gamma_moment(order, a, np.log(x)) - out * (a - x)) / x


def betainc_by_shapes_by_x(t: Any, out: Any, a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Differentiate by x, likewise; at 0, where it is smooth for i = 0, by its power series."""
    end = (x == 0) & (i == 0)
    y = np.where(end, 0.5, x)
    inner = (beta_moment(i, j, a, b, (np.log(y), np.log1p(-y))) - out * (a - (a + b) * y)) / (y * (1 - y))
    lower = j * beta_moment(0, j - 1, a, b, (0.0, 0.0)) if j else 0.0
    return t * np.where(end, (out * (a + b) - lower) / (1 + a), inner)


def next_shape(t: Any, out: Any, a: Any, x: Any, *, order: int) -> Any:
    """Differentiate by a: the next order, less what the denominator changes by."""
    return t * (at_once(gammainc_by_shape, a, x, order=order + 1) - out * gamma_score(a + 1, x))


def body_score(shape: Any, other: Any, log: Any) -> Any:
    """Return the derivative of the logarithm of `beta_body` by a shape, given log x or log(1 - x)."""
    return log + at_once(polygamma_difference, shape + 1, other, order=0)


def next_first_shape(t: Any, out: Any, a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Differentiate by a, likewise."""
    return t * (at_once(betainc_by_shapes, a, b, x, i=i + 1, j=j) - out * body_score(a, b, np.log(x)))


def next_second_shape(t: Any, out: Any, a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Differentiate by b, likewise."""
    return t * (at_once(betainc_by_shapes, a, b, x, i=i, j=j + 1) - out * body_score(b, a, np.log1p(-x)))


gammainc_by_shape: Elementwise = elementwise(
    "gammainc_by_shape", gammainc_by_shape_value, d=(next_shape, gammainc_by_shape_by_x), singular=True
)
betainc_by_shapes: Elementwise = elementwise(
    "betainc_by_shapes",
    betainc_by_shapes_value,
    d=(next_first_shape, next_second_shape, betainc_by_shapes_by_x),
    singular=True,
)


# The functions: gamma


def gammainc_derivative_value(a: Any, x: Any, *, order: int) -> Any:
    """Evaluate a derivative of P(a, x) by a, 0 where it is 0 or 1 for all a nearby."""
    end = ((x == np.inf) != (a == np.inf)) | ((x == 0) & (a > 0))
    a, x = np.where(end, 1.0, a), np.where(end, 1.0, x)
    body = gamma_density_value(a + 1, x, by_shape=0, by_place=0)
    return np.where(end, 0.0, body * gammainc_by_shape_value(a, x, order=order)).astype(body.dtype)[()]


gammainc_derivative: Elementwise = elementwise(
    "gammainc_derivative",
    gammainc_derivative_value,
    d=(
        lambda t, _out, a, x, *, order: t * at_once(gammainc_derivative, a, x, order=order + 1),
        lambda t, _out, a, x, *, order: next_gamma(t, a, x, order, 0),
    ),
    singular=True,
)


def shape_slope(a: Any, x: Any) -> Any:
    """Return the derivative of P(a, x) by a."""
    return at_once(gammainc_derivative, a, x, order=1)


def moved_by_shape(a: Any, x: Any) -> Any:
    """Return the derivative by a of the x at which P(a, x) keeps its value."""
    return -at_once(faded, x, at_once(gammainc_by_shape, a, x, order=1)) / a


def begin_with(slope: Any, rest: Any, term: Callable[[Any], Any], shape: Any = 0.0) -> Any:
    """Return the slope of an inverse, by the term that it begins with where the probability `rest` is 0.

    So are its derivatives there, where the density that it is the inverse of is 0 or infinite; of a shape of 1 neither.
    """
    known = raw(rest) if is_concrete(rest) else False
    if known.all() if type(known) is np.ndarray else known:
        return slope
    there = (rest == 0) & (shape != 1)
    return np.where(there, term(np.where(there, rest, 0.5)), slope)


class FirstTerm(NamedTuple):
    """The term (size p)^(1 / shape) that an inverse begins with at the probability p = 0, by its slopes.

    All are derivatives of one power, so that mixed ones are the same in every order of the operands. What the size
    changes by with the shape is left out, since what the power changes by has a factor log p more.

    Attributes:
        shape: the shape whose reciprocal is the power.
        log_size: the logarithm of the size to this power.
        other: its derivative by another shape.
    """

    shape: Any
    log_size: Any
    other: Any = 0.0

    def power(self, p: Any, base: int, exponent: int) -> Any:
        """Return the term, its power differentiated so often by p and by the exponent."""
        power = 1 / self.shape
        found = p**power
        if base + exponent:
            found = at_once(power_derivative, p, power, found, base=base, exponent=exponent)
        return np.exp(self.log_size) * found

    def by_probability(self, p: Any) -> Any:
        """Return the slope by p."""
        return self.power(p, 1, 0)

    def by_shape(self, p: Any) -> Any:
        """Return the slope by the shape."""
        return -self.power(p, 0, 1) / self.shape**2

    def by_other(self, p: Any) -> Any:
        """Return the slope by another shape."""
        return self.power(p, 0, 0) * self.other


def gamma_first_term(a: Any) -> FirstTerm:
    """Return what the x at which P(a, x) is p begins with."""
    still = at_once(barrier, a)
    return FirstTerm(a, sp.gammaln(still + 1) / still)


def beta_first_term(a: Any, b: Any) -> FirstTerm:
    """Return what the x at which I_x(a, b) is p begins with."""
    still = at_once(barrier, a)
    log_size = (np.log(still) + sp.betaln(still, b)) / still
    return FirstTerm(a, log_size, -at_once(polygamma_difference, b, still, order=0) / still)


def gamma_inverse_slope(a: Any, x: Any, p: Any, q: Any) -> Any:
    """Return the derivative by p of the x at which P(a, x) is p, and 1 - P(a, x) is q."""
    found = begin_with(1 / gamma_density_at(a, x), p, lambda p: gamma_first_term(a).by_probability(p), a)
    return begin_with(found, q, lambda q: 1 / q)


def gamma_inverse_by_shape(a: Any, x: Any, p: Any) -> Any:
    """Return the derivative by a of the x at which P(a, x) is p."""
    return begin_with(moved_by_shape(a, x), p, lambda p: gamma_first_term(a).by_shape(p))


def beta_inverse_slope(a: Any, b: Any, x: Any, p: Any, q: Any) -> Any:
    """Return the derivative by p of the x at which I_x(a, b) is p, and 1 - I_x(a, b) is q."""
    found = begin_with(1 / beta_density_at(a, b, x), p, lambda p: beta_first_term(a, b).by_probability(p), a)
    return begin_with(found, q, lambda q: beta_first_term(b, a).by_probability(q), b)


def beta_inverse_by_first(a: Any, b: Any, x: Any, p: Any, q: Any) -> Any:
    """Return the derivative by a of the x at which I_x(a, b) is p, and 1 - I_x(a, b) is q."""
    found = begin_with(moved_by_shapes(a, b, x, 1, 0), p, lambda p: beta_first_term(a, b).by_shape(p))
    return begin_with(found, q, lambda q: -beta_first_term(b, a).by_other(q))


def beta_inverse_by_second(a: Any, b: Any, x: Any, p: Any, q: Any) -> Any:
    """Return the derivative by b, likewise."""
    found = begin_with(moved_by_shapes(a, b, x, 0, 1), p, lambda p: beta_first_term(a, b).by_other(p))
    return begin_with(found, q, lambda q: -beta_first_term(b, a).by_shape(q))


special(
    sp.gammainc,
    lambda t, _out, a, x: t * shape_slope(a, x),
    lambda t, _out, a, x: t * gamma_density_at(a, x),
    steep=True,
)
special(
    sp.gammaincc,
    lambda t, _out, a, x: -t * shape_slope(a, x),
    lambda t, _out, a, x: -t * gamma_density_at(a, x),
    steep=True,
)
special(
    sp.gammaincinv,
    lambda t, out, a, y: t * gamma_inverse_by_shape(a, out, y),
    lambda t, out, a, y: t * gamma_inverse_slope(a, out, y, 1 - y),
    steep=True,
)
special(
    sp.gammainccinv,
    lambda t, out, a, y: t * gamma_inverse_by_shape(a, out, 1 - y),
    lambda t, out, a, y: -t * gamma_inverse_slope(a, out, 1 - y, y),
    steep=True,
)


# The functions: beta


def betainc_derivative_value(a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Evaluate a derivative of I_x(a, b) by a and b, 0 where it is 0 or 1 for all of them nearby."""
    end = ((x == 0) & (a > 0)) | ((x == 1) & (b > 0)) | (np.isinf(a) != np.isinf(b))
    a, b, x = np.where(end, 1.0, a), np.where(end, 1.0, b), np.where(end, 0.5, x)
    body = beta_density_value(a + 1, b + 1, x, i=0, j=0, by_place=0) / (a + b + 1)
    return np.where(end, 0.0, body * betainc_by_shapes_value(a, b, x, i=i, j=j)).astype(body.dtype)[()]


betainc_derivative: Elementwise = elementwise(
    "betainc_derivative",
    betainc_derivative_value,
    d=(
        lambda t, _out, a, b, x, *, i, j: t * at_once(betainc_derivative, a, b, x, i=i + 1, j=j),
        lambda t, _out, a, b, x, *, i, j: t * at_once(betainc_derivative, a, b, x, i=i, j=j + 1),
        lambda t, _out, a, b, x, *, i, j: next_beta(t, a, b, x, i, j, 0),
    ),
    singular=True,
)


def first_shape_slope(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of I_x(a, b) by a."""
    return at_once(betainc_derivative, a, b, x, i=1, j=0)


def second_shape_slope(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of I_x(a, b) by b."""
    return at_once(betainc_derivative, a, b, x, i=0, j=1)


def moved_by_shapes(a: Any, b: Any, x: Any, i: int, j: int) -> Any:
    """Return the derivative by a or b of the x at which I_x(a, b) keeps its value."""
    return -at_once(faded, x * (1 - x), at_once(betainc_by_shapes, a, b, x, i=i, j=j)) * (1 / a + 1 / b)


special(
    sp.betainc,
    lambda t, _out, a, b, x: t * first_shape_slope(a, b, x),
    lambda t, _out, a, b, x: t * second_shape_slope(a, b, x),
    lambda t, _out, a, b, x: t * beta_density_at(a, b, x),
    steep=True,
)
special(
    sp.betaincc,
    lambda t, _out, a, b, x: -t * first_shape_slope(a, b, x),
    lambda t, _out, a, b, x: -t * second_shape_slope(a, b, x),
    lambda t, _out, a, b, x: -t * beta_density_at(a, b, x),
    steep=True,
)
special(
    sp.betaincinv,
    lambda t, out, a, b, y: t * beta_inverse_by_first(a, b, out, y, 1 - y),
    lambda t, out, a, b, y: t * beta_inverse_by_second(a, b, out, y, 1 - y),
    lambda t, out, a, b, y: t * beta_inverse_slope(a, b, out, y, 1 - y),
    steep=True,
)
special(
    sp.betainccinv,
    lambda t, out, a, b, y: t * beta_inverse_by_first(a, b, out, 1 - y, y),
    lambda t, out, a, b, y: t * beta_inverse_by_second(a, b, out, 1 - y, y),
    lambda t, out, a, b, y: -t * beta_inverse_slope(a, b, out, 1 - y, y),
    steep=True,
)
