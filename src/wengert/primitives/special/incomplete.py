"""Incomplete gamma and beta functions in all of their arguments, their inverses, and distributions made of them.

A derivative by a shape parameter is an integral over the density: with w(t; a) the gamma density, P(a, x) is the
integral of w from 0 to x, and dP/da that of (log t - psi(a)) w, equal to minus that from x to infinity. Of the two the
one is taken whose integrand has one sign, so that nothing cancels, in tails neither. Derivatives of higher order have
polynomials in place of log t - psi(a), complete Bell polynomials of the derivatives of log w. The integrals are taken
over u = log t, for the beta function over u = log(t / (1 - t)), in which the densities are logarithmically concave, by
the rule of Takahasi and Mori up to where the integrand has fallen to exp(-45) of what it is at x: relative errors are
below 1e-13 for a and b from 1e-8 to 1e5, and grow as their square root from there on. What is integrated is relative
to the density at x, which gives the derivatives of the inverses without underflow.

Since 1 / gamma(a) is a / gamma(1 + a), the densities are w = a v and w = a b / (a + b) v, where v changes slowly even
if shapes are tiny. Derivatives are taken of both factors; those of log w would cancel in the polynomials.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.declare import elementwise
from wengert.core.dispatch import at_once
from wengert.core.kinds import Elementwise
from wengert.primitives.special.declaration import flat, special
from wengert.primitives.special.gamma import polygamma_difference, polygamma_of
from wengert.primitives.special.quadrature import TANH_SINH
from wengert.primitives.trigonometric import faded

__all__ = [
    "beta_body",
    "beta_density",
    "beta_density_at",
    "betainc_by_shapes",
    "first_shape_slope",
    "gamma_density",
    "gamma_density_at",
    "gammainc_by_shape",
    "moved_by_shape",
    "second_shape_slope",
    "shape_slope",
]

LOWEST = 45.0
"""How far the logarithm of an integrand falls to where its integral ends."""
TINY = 1e-100
LENGTHS = 2.0 ** np.arange(-30, 40)


# Densities


def log_rest(ratio: Any, x: Any) -> Any:
    """Return log(ratio) - x for a ratio of 1 + x; for small x from the series of 2 artanh(r), r = x / (2 + x)."""
    near = np.abs(x) < 0.6
    y = np.where(near, x, 0.0)
    r = y / (2 + y)
    square, term, series = r * r, 1.0, 1 / 3
    for k in range(5, 49, 2):
        term = term * square
        series = series + term / k
    return np.where(near, r * (2 * r * r * series - y), np.log(ratio) - x)


def stirling_rest(a: Any) -> Any:
    """Return log gamma(a) less Stirling's formula (a - 1/2) log a - a + log(2 pi) / 2."""
    far = a > 10
    y = np.where(far, a, np.inf)
    square = 1 / (y * y)
    series = 1.0 / 1188 - square * (691.0 / 360360 - square / 156)
    series = 1.0 / 12 - square * (1.0 / 360 - square * (1.0 / 1260 - square * (1.0 / 1680 - square * series)))
    b = np.where(far, 1.0, a)
    near = sp.gammaln(b) - ((b - 0.5) * np.log(b) - b + 0.5 * np.log(2 * np.pi))
    return np.where(far, series / y, near)


def gamma_density_value(a: Any, x: Any, *, power: int) -> Any:
    """Evaluate x^power times the density x^(a-1) exp(-x) / gamma(a), near its peak as accurately as elsewhere."""
    dtype, (a, x) = flat(a, x)
    found = np.sqrt(a / (2 * np.pi)) * np.exp(a * log_rest(x / a, (x - a) / a) - stirling_rest(a))
    if power != 1:
        low = (x >= 0) & (x < TINY)  # where exp(-x) is 1, and x times the density may be 0
        found = np.where(low, np.where(low, x, 1.0) ** (a - 1 + power) * sp.rgamma(a), found / x ** (1.0 - power))
    outside = np.isinf(x / a) | (np.isinf(a) & np.isfinite(x))  # all is at 0 or at infinity
    return np.where(outside, 0.0, found)[..., 0].astype(dtype)[()]


def beta_density_value(a: Any, b: Any, x: Any, *, power: int) -> Any:
    """Evaluate (x (1 - x))^power times the density x^(a-1) (1-x)^(b-1) / B(a, b), likewise."""
    dtype, (a, b, x) = flat(a, b, x)
    y = 1 - x
    distance = b * x - a * y
    exponent = a * log_rest(x * (1 + b / a), distance / a) + b * log_rest(y * (1 + a / b), -distance / b)
    exponent = exponent + stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b)
    found = np.sqrt(a / (2 * np.pi)) * np.sqrt(b / (a + b)) * np.exp(exponent)
    if power != 1:
        left, right = (end_of_beta(a, b, power), end_of_beta(b, a, power))
        found = np.where(x == 0, left, np.where(y == 0, right, found / (x * y) ** (1.0 - power)))
    found = np.where(is_extreme(a, b) & (x > 0) & (y > 0), 0.0, found)
    return np.where((x < 0) | (y < 0), np.nan, found)[..., 0].astype(dtype)[()]


def is_extreme(a: Any, b: Any) -> Any:
    """Tell where one shape of a beta distribution, and not both, is 0 or infinite, so that all is at 0 or at 1."""
    return ((a == 0) != (b == 0)) | (np.isinf(a) != np.isinf(b))


def end_of_beta(a: Any, b: Any, power: int) -> Any:
    """Return x^power times the beta density at x = 0: 0 to a power, over the beta function B(a, b)."""
    order = a - 1 + power
    with np.errstate(divide="ignore"):  # where x = 0 is asked for, infinity is the value
        return np.where(order == 0, 1 / sp.beta(a, b), 0.0**order)


def gamma_slope(out: Any, a: Any, x: Any, power: int) -> Any:
    """Return the derivative of x^power times the gamma density by x, at 0 and infinity, too."""
    order = a - 1 + power
    return np.where(order == 0, -out, at_once(faded, at_once(gamma_density, a, x, power=power - 1), order - x))


def beta_slope(out: Any, a: Any, b: Any, x: Any, power: int) -> Any:
    """Return the derivative of (x (1 - x))^power times the beta density by x, at 0 and 1, too."""
    first, second = a - 1 + power, b - 1 + power
    inner = at_once(faded, at_once(beta_density, a, b, x, power=power - 1), first * (1 - x) - second * x)
    ends = np.where((first == 0) & (x == 0), -second * out / (1 - x), inner)
    return np.where((second == 0) & (x == 1), first * out / x, ends)


def gamma_score(a: Any, x: Any) -> Any:
    """Return the derivative by a of the logarithm of the gamma density."""
    return np.log(x) - sp.digamma(a)


def first_score(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative by a of the logarithm of the beta density."""
    return np.log(x) + at_once(polygamma_difference, a, b, order=0)


def second_score(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative by b of the logarithm of the beta density."""
    return np.log1p(-x) + at_once(polygamma_difference, b, a, order=0)


def gamma_body(a: Any, x: Any) -> Any:
    """Return x times the gamma density, over its shape: the density whose shape is 1 more."""
    return at_once(gamma_density, a + 1, x, power=0)


def beta_body(a: Any, b: Any, x: Any) -> Any:
    """Return x (1 - x) times the beta density, over a b / (a + b)."""
    return at_once(beta_density, a + 1, b + 1, x, power=0) / (a + b + 1)


gamma_density: Elementwise = elementwise(
    "gamma_density",
    gamma_density_value,
    d=(
        lambda t, out, a, x, *, power: t * at_once(faded, out, gamma_score(a, x)),
        lambda t, out, a, x, *, power: t * gamma_slope(out, a, x, power),
    ),
    singular=True,
)
beta_density: Elementwise = elementwise(
    "beta_density",
    beta_density_value,
    d=(
        lambda t, out, a, b, x, *, power: t * at_once(faded, out, first_score(a, b, x)),
        lambda t, out, a, b, x, *, power: t * at_once(faded, out, second_score(a, b, x)),
        lambda t, out, a, b, x, *, power: t * beta_slope(out, a, b, x, power),
    ),
    singular=True,
)


# Bell polynomials

Cumulants = Callable[[int, int], Any]


def bell(i: int, j: int, cumulants: Cumulants) -> Any:
    """Return the derivative of order (i, j) of w(a, b), over w, given those of log w: a complete Bell polynomial.

    It is built by B(i + 1, j) = sum over k <= i, l <= j of C(i, k) C(j, l) B(i - k, j - l) K(k + 1, l).
    """
    known: dict[tuple[int, int], Any] = {(0, 0): 1.0}
    for m in range(i + 1):
        for n in range(j + 1):
            if m + n:
                known[m, n] = extended(m, n, cumulants, known)
    return known[i, j]


def extended(m: int, n: int, cumulants: Cumulants, known: dict[tuple[int, int], Any]) -> Any:
    """Return a Bell polynomial, given those of lower order."""
    if not m:
        return sum(math.comb(n - 1, k) * known[0, n - 1 - k] * cumulants(0, k + 1) for k in range(n))
    return sum(
        math.comb(m - 1, k) * math.comb(n, j) * known[m - 1 - k, n - j] * cumulants(k + 1, j)
        for k in range(m)
        for j in range(n + 1)
    )


def gamma_moment(order: int, a: Any, log: Any) -> Any:
    """Return the derivative of the gamma density w = a v of that order by a, over v, given log x."""
    score = log - sp.digamma(a + 1)

    def cumulants(k: int, _: int) -> Any:
        return score if k == 1 else -polygamma_of(k - 1, a + 1)

    return a * bell(order, 0, cumulants) + (order * bell(order - 1, 0, cumulants) if order else 0.0)


def harmonic(i: int, j: int, a: Any, b: Any) -> Any:
    """Return the derivative of order (i, j) of a b / (a + b)."""
    n, total = i + j, a + b
    if n < 2:
        return (b if i else a) * (b if i else a if j else b) / total ** (n + 1)
    terms = 2 * i * j * a * b - j * (j - 1) * (a * a) - i * (i - 1) * (b * b)
    return (-1) ** n * math.factorial(n - 2) * terms / total ** (n + 1)


def beta_moment(i: int, j: int, a: Any, b: Any, logs: tuple[Any, Any]) -> Any:
    """Return the derivative of the beta density w = a b / (a + b) v by a and b, over v, given log x and log(1 - x)."""

    def cumulants(k: int, m: int) -> Any:
        if k and m:
            return polygamma_of(k + m - 1, a + b + 1)
        order, x, h, log = (k, a, b, logs[0]) if k else (m, b, a, logs[1])
        found = at_once(polygamma_difference, x + 1, h, order=order - 1)
        return log + found if order == 1 else found

    return sum(
        math.comb(i, k) * math.comb(j, m) * harmonic(k, m, a, b) * bell(i - k, j - m, cumulants)
        for k in range(i + 1)
        for m in range(j + 1)
    )


# Derivatives by shape parameters, over x v for the gamma and x (1 - x) v for the beta distribution


def integrated(fall: Callable[[Any], Any], weight: Callable[[Any], Any], side: Any, bend: Any) -> Any:
    """Return the integral of weight(d) exp(fall(d)) over d on one side of 0, less than 0 (side -1) or more (1).

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
        found = found + length[..., 0] * ((weight(points) * np.exp(fall(points))) @ weights)
    return found


def gammainc_by_shape_value(a: Any, x: Any, *, order: int) -> Any:
    """Evaluate a derivative of P(a, x) by a, over x^a exp(-x) / gamma(a + 1)."""
    dtype, (a, x) = flat(a, x)
    inside = (x > 0) & (x < np.inf) & (a >= 0) & (a < np.inf)
    safe_a, safe_x = np.where(inside, a, 1.0), np.where(inside, x, 1.0)
    log = np.log(safe_x)
    side = np.where(log < sp.digamma(safe_a), -1.0, 1.0)
    found = integrated(
        lambda d: safe_a * d - safe_x * np.expm1(d),
        lambda d: gamma_moment(order, safe_a, log + d),
        side,
        np.log1p(safe_a) - log,
    )
    unknown = np.isnan(a + x) | ((a == 0) & (x == 0))
    found = np.where(inside[..., 0], -side[..., 0] * found, np.where(unknown, np.nan, 0.0)[..., 0])
    return found.astype(dtype)[()]


def betainc_by_shapes_value(a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Evaluate a derivative of I_x(a, b) by a and b, over x^a (1 - x)^b / B(a, b) and over a b / (a + b)."""
    dtype, (a, b, x) = flat(a, b, x)
    inside = (x > 0) & (x < 1) & (a >= 0) & (b >= 0) & (a + b > 0) & (a < np.inf) & (b < np.inf)
    a, b, y = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
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

    def fall(d: Any) -> Any:
        return np.where(side < 0, a, b) * -np.abs(d) - (a + b) * growth(d)

    def weight(d: Any) -> Any:
        rest = growth(d)
        return beta_moment(i, j, a, b, (first + np.minimum(d, 0) - rest, second - np.maximum(d, 0) - rest))

    bend = np.log1p(a) - np.log1p(b) - place
    found = np.where(inside[..., 0], -side[..., 0] * integrated(fall, weight, side, bend), 0.0)
    return np.where(np.isnan(x[..., 0]), np.nan, found).astype(dtype)[()]


def gammainc_by_shape_by_x(t: Any, out: Any, a: Any, x: Any, *, order: int) -> Any:
    """Differentiate by x: the density's derivative of that order, less what the denominator changes by."""
    return t * (gamma_moment(order, a, np.log(x)) - out * (a - x)) / x


def betainc_by_shapes_by_x(t: Any, out: Any, a: Any, b: Any, x: Any, *, i: int, j: int) -> Any:
    """Differentiate by x, likewise."""
    moment = beta_moment(i, j, a, b, (np.log(x), np.log1p(-x)))
    return t * (moment - out * (a - (a + b) * x)) / (x * (1 - x))


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


def shape_slope(a: Any, x: Any) -> Any:
    """Return the derivative of P(a, x) by a; none where P is 0 or 1, if its density there is 0, too."""
    end = (np.isinf(x) != np.isinf(a)) | ((x == 0) & (a > 1))
    a, x = np.where(end, 1.0, a), np.where(end, 1.0, x)
    return np.where(end, 0.0, gamma_body(a, x) * at_once(gammainc_by_shape, a, x, order=1))


def gamma_density_at(a: Any, x: Any) -> Any:
    """Return the derivative of P(a, x) by x."""
    return at_once(gamma_density, a, x, power=0)


def moved_by_shape(a: Any, x: Any) -> Any:
    """Return the derivative by a of the x at which P(a, x) keeps its value."""
    return -x * at_once(gammainc_by_shape, a, x, order=1) / a


special(
    sp.gammainc,
    lambda t, _out, a, x: t * shape_slope(a, x),
    lambda t, _out, a, x: t * gamma_density_at(a, x),
)
special(
    sp.gammaincc,
    lambda t, _out, a, x: -t * shape_slope(a, x),
    lambda t, _out, a, x: -t * gamma_density_at(a, x),
)
special(
    sp.gammaincinv,
    lambda t, out, a, _y: t * moved_by_shape(a, out),
    lambda t, out, a, _y: t / gamma_density_at(a, out),
)
special(
    sp.gammainccinv,
    lambda t, out, a, _y: t * moved_by_shape(a, out),
    lambda t, out, a, _y: -t / gamma_density_at(a, out),
)


# The functions: beta


def first_shape_slope(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of I_x(a, b) by a."""
    return off_ends(lambda a, b, x: beta_body(a, b, x) * at_once(betainc_by_shapes, a, b, x, i=1, j=0), a, b, x)


def second_shape_slope(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of I_x(a, b) by b."""
    return off_ends(lambda a, b, x: beta_body(a, b, x) * at_once(betainc_by_shapes, a, b, x, i=0, j=1), a, b, x)


def off_ends(slope: Callable[[Any, Any, Any], Any], a: Any, b: Any, x: Any) -> Any:
    """Return a derivative by a shape; none where I_x(a, b) is 0 or 1 and its density 0, or a shape is infinite."""
    end = ((x == 0) & (a > 1)) | ((x == 1) & (b > 1)) | (np.isinf(a) != np.isinf(b))
    a, b, x = np.where(end, 1.0, a), np.where(end, 1.0, b), np.where(end, 0.5, x)
    return np.where(end, 0.0, slope(a, b, x))


def beta_density_at(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative of I_x(a, b) by x."""
    return at_once(beta_density, a, b, x, power=0)


def moved_by_shapes(a: Any, b: Any, x: Any, i: int, j: int) -> Any:
    """Return the derivative by a or b of the x at which I_x(a, b) keeps its value."""
    return -x * (1 - x) * at_once(betainc_by_shapes, a, b, x, i=i, j=j) * (1 / a + 1 / b)


special(
    sp.betainc,
    lambda t, _out, a, b, x: t * first_shape_slope(a, b, x),
    lambda t, _out, a, b, x: t * second_shape_slope(a, b, x),
    lambda t, _out, a, b, x: t * beta_density_at(a, b, x),
)
special(
    sp.betaincc,
    lambda t, _out, a, b, x: -t * first_shape_slope(a, b, x),
    lambda t, _out, a, b, x: -t * second_shape_slope(a, b, x),
    lambda t, _out, a, b, x: -t * beta_density_at(a, b, x),
)
special(
    sp.betaincinv,
    lambda t, out, a, b, _y: t * moved_by_shapes(a, b, out, 1, 0),
    lambda t, out, a, b, _y: t * moved_by_shapes(a, b, out, 0, 1),
    lambda t, out, a, b, _y: t / beta_density_at(a, b, out),
)
special(
    sp.betainccinv,
    lambda t, out, a, b, _y: t * moved_by_shapes(a, b, out, 1, 0),
    lambda t, out, a, b, _y: t * moved_by_shapes(a, b, out, 0, 1),
    lambda t, out, a, b, _y: -t / beta_density_at(a, b, out),
)
