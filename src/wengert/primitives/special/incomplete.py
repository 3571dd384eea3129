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

Densities and these integrals are primitives whose parameters are the orders of derivatives, so that each derivative,
mixed ones too, is one evaluation, in every mode the same: inside by recurrences, at the ends of the range by the term
of the power series that is the largest there.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives.powers import falling
from wengert.primitives.special.declaration import flat, special
from wengert.primitives.special.gamma import polygamma_difference, polygamma_of
from wengert.primitives.special.quadrature import TANH_SINH
from wengert.primitives.trigonometric import faded, faded_value

LOWEST = 45.0
"""How far the logarithm of an integrand falls to where its integral ends."""
TINY = 1e-20
"""How small x is where exp(-x) and 1 - x are 1."""
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


def lifted_gamma(a: Any, x: Any) -> Any:
    """Return x times the density x^(a-1) exp(-x) / gamma(a), near its peak as accurately as elsewhere."""
    return np.sqrt(a / (2 * np.pi)) * np.exp(a * log_rest(x / a, (x - a) / a) - stirling_rest(a))


def gamma_density_value(a: Any, x: Any, *, by_shape: int, by_place: int) -> Any:
    """Evaluate a derivative of the density x^(a-1) exp(-x) / gamma(a).

    With x w' = (a - 1 - x) w, its derivatives by x are x w^(m+1) = (a - 1 - m - x) w^(m) - m w^(m-1).
    """
    dtype, (a, x) = flat(a, x)
    a, x = a[..., 0], x[..., 0]
    inside = (x > 0) & (x < np.inf) & (a >= 0) & (a < np.inf)
    everywhere = inside.all()
    shape, place = (a, x) if everywhere else (np.where(inside, a, 1.0), np.where(inside, x, 1.0))
    log = np.log(place) if by_shape else 0.0
    before: list[Any] = [0.0] * (by_shape + 1)
    found = [shape, *[gamma_moment(i, shape, log) for i in range(1, by_shape + 1)]]
    for m in range(by_place):
        following = [
            (shape - 1 - m - place) * found[i] + (i * found[i - 1] if i else 0.0) - m * place * before[i]
            for i in range(by_shape + 1)
        ]
        before, found = found, following
    low = place < TINY  # where exp(-x) is 1, and powers of x times the density may be 0
    some = low.any()
    near, place = (np.where(low, place, 1.0), np.where(low, 1.0, place)) if some else (place, place)
    usual = lifted_gamma(shape + 1, place) / place ** (2.0 + by_place)
    if some:
        usual = np.where(low, near ** (shape - 1 - by_place) * sp.rgamma(shape + 1), usual)
    found = faded_value(usual, found[by_shape])
    if some and not by_shape:
        found = np.where(low, gamma_density_near_zero(shape, near, by_place), found)
    if everywhere:
        return found.astype(dtype)[()]
    outer = np.where((x >= 0) & (a >= 0) & ((x == np.inf) != (a == np.inf)), 0.0, np.nan)  # all is at the other end
    at_zero = (x == 0) & (a >= 0) & (a < np.inf)
    if at_zero.any():
        outer = np.where(at_zero, gamma_density_at_zero(a, by_shape, by_place), outer)
    return np.where(inside, found, outer).astype(dtype)[()]


def gamma_density_near_zero(a: Any, x: Any, by_place: int) -> Any:
    """Return the sum over j of C(m, j) (-1)^(m-j) x^(a-1-j) / gamma(a - j), a derivative of the density by small x."""
    found = np.zeros_like(a)
    for j in range(by_place + 1):
        factor = math.comb(by_place, j) * (-1) ** (by_place - j) * falling(a - 1, j, 0)[0]
        found = found + faded_value(factor, x ** (a - 1 - j))
    return found * a * sp.rgamma(a + 1)


def gamma_density_at_zero(a: Any, by_shape: int, by_place: int) -> Any:
    """Return a derivative of the gamma density at x = 0.

    It is the sum of `gamma_density_near_zero`, differentiated by a, where 1 / gamma has simple zeros.
    """
    found, rest = np.zeros_like(a), np.ones(a.shape, bool)
    for j in range(by_place, -1, -1):
        zero = (a - j <= 0) & (a == np.floor(a))
        slope = by_shape * (-1.0) ** np.abs(j - a) * sp.gamma(np.where(zero, j - a + 1, 1.0))
        factor = math.comb(by_place, j) * (-1) ** (by_place - j) * np.where(zero, slope, sp.rgamma(a - j))
        here = rest & ~(zero & (by_shape == 0))
        found = np.where(here, largest_term(factor, by_shape - zero, a - 1 - j), found)
        rest = rest & ~here
    return found


def largest_term(factor: Any, logs: Any, power: Any) -> Any:
    """Return the limit at x = 0 of a factor times a power of log(x) times one of x."""
    infinite = np.where(logs % 2 == 1, -np.inf, np.inf) * np.sign(factor)
    return np.where(power > 0, 0.0, np.where((power == 0) & (logs == 0), factor, infinite))


def lifted_beta(a: Any, b: Any, x: Any) -> Any:
    """Return x (1 - x) times the density x^(a-1) (1-x)^(b-1) / B(a, b), likewise."""
    distance = b * x - a * (1 - x)
    exponent = a * log_rest(x * (1 + b / a), distance / a) + b * log_rest((1 - x) * (1 + a / b), -distance / b)
    exponent = exponent + stirling_rest(a + b) - stirling_rest(a) - stirling_rest(b)
    return np.sqrt(a / (2 * np.pi)) * np.sqrt(b / (a + b)) * np.exp(exponent)


def beta_density_value(a: Any, b: Any, x: Any, *, i: int, j: int, by_place: int) -> Any:
    """Evaluate a derivative, of the orders i and j by a and b, of the density x^(a-1) (1-x)^(b-1) / B(a, b).

    With q = x (1 - x) and q w' = ((a - 1) (1 - x) - (b - 1) x) w, its derivatives by x are
    q w^(m+1) = ((a - 1 - m) (1 - x) - (b - 1 - m) x) w^(m) - m (a + b - 1 - m) w^(m-1).
    """
    dtype, (a, b, x) = flat(a, b, x)
    a, b, x = a[..., 0], b[..., 0], x[..., 0]
    there = (a >= 0) & (b >= 0) & (a + b > 0) & (x >= 0) & (x <= 1)
    finite = there & (a < np.inf) & (b < np.inf)
    inside = finite & (x > 0) & (x < 1)
    first, second, place = np.where(inside, a, 1.0), np.where(inside, b, 1.0), np.where(inside, x, 0.5)
    q = place * (1 - place)
    plain = not i and not j and not by_place
    found = first * second / (first + second) if plain else beta_recurrence(first, second, place, i, j, by_place)
    low = place < TINY
    power = np.where(low, place, 1.0) ** (first - 1 - by_place) / sp.beta(first + 1, second + 1)
    usual = np.where(low, power, lifted_beta(first + 1, second + 1, place) / np.where(low, 1.0, q) ** (2.0 + by_place))
    found = faded_value(usual, found) / (first + second + 1)
    if low.any() and not i and not j:
        found = np.where(low, beta_density_near_zero(first, second, np.where(low, place, 1.0), by_place), found)
    outer = np.where(there & (np.isinf(a) != np.isinf(b)), 0.0, np.nan)  # all is at an end
    for end, shapes, orders, sign in ((0, (a, b), (i, j), 1.0), (1, (b, a), (j, i), (-1.0) ** by_place)):
        at_end = finite & (x == end)
        if at_end.any():
            first_shape, second_shape = (np.where(at_end, shape, 1.0) for shape in shapes)
            outer = np.where(at_end, sign * beta_density_at_zero(first_shape, second_shape, *orders, by_place), outer)
    return np.where(inside, found, outer).astype(dtype)[()]


def beta_recurrence(a: Any, b: Any, x: Any, i: int, j: int, by_place: int) -> Any:
    """Return q^(1 + m) times a derivative of the beta density, over x^a (1 - x)^b / B(a, b) and a b / (a + b)."""
    logs = np.log(x), np.log1p(-x)
    q = x * (1 - x)
    orders = [(k, m) for k in range(i + 1) for m in range(j + 1)]
    before: dict[tuple[int, int], Any] = dict.fromkeys(orders, 0.0)
    found = {order: beta_moment(*order, a, b, logs) for order in orders}
    for n in range(by_place):
        following = {}
        for k, m in orders:
            moved = ((a - 1 - n) * (1 - x) - (b - 1 - n) * x) * found[k, m] - n * q * (a + b - 1 - n) * before[k, m]
            if k:
                moved = moved + k * ((1 - x) * found[k - 1, m] - n * q * before[k - 1, m])
            if m:
                moved = moved - m * (x * found[k, m - 1] + n * q * before[k, m - 1])
            following[k, m] = moved
        before, found = found, following
    return found[i, j]


def beta_density_near_zero(a: Any, b: Any, x: Any, by_place: int) -> Any:
    """Return the sum over n of C(b-1, n) (-1)^n x^(a-1+n) / B(a, b), differentiated by small x."""
    found = np.zeros_like(a)
    for n in range(by_place + 2):
        factor = falling(b - 1, n, 0)[0] * (-1) ** n / math.factorial(n) * falling(a - 1 + n, by_place, 0)[0]
        found = found + faded_value(factor, x ** (a - 1 + n - by_place))
    return found / sp.beta(a, b)


def beta_density_at_zero(a: Any, b: Any, i: int, j: int, by_place: int) -> Any:
    """Return a derivative of the beta density at x = 0.

    It is the sum of `beta_density_near_zero`, whose factors are differentiated by a and b.
    """
    found, rest = np.zeros_like(a), np.ones(a.shape, bool)
    scale = 1 / (sp.beta(a + 1, b + 1) * (a + b + 1))
    inverse = [[scale * beta_moment(k, m, a, b, (0.0, 0.0)) for m in range(j + 1)] for k in range(i + 1)]
    for n in range(by_place + 2):
        power = a - 1 + n - by_place
        by_a = falling(a - 1 + n, by_place, i)
        by_b = [factor * (-1) ** n / math.factorial(n) for factor in falling(b - 1, n, j)]
        for logs in range(i, -1, -1):
            factor: Any = sum(
                math.comb(i - logs, k) * math.comb(j, m) * by_a[k] * by_b[m] * inverse[i - logs - k][j - m]
                for k in range(i - logs + 1)
                for m in range(j + 1)
            )
            here = rest & (factor != 0)
            found = np.where(here, largest_term(math.comb(i, logs) * factor, np.asarray(logs), power), found)
            rest = rest & ~here
    return found


def gamma_score(a: Any, x: Any) -> Any:
    """Return the derivative by a of the logarithm of the gamma density."""
    return np.log(x) - sp.digamma(a)


def first_score(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative by a of the logarithm of the beta density."""
    return np.log(x) + at_once(polygamma_difference, a, b, order=0)


def second_score(a: Any, b: Any, x: Any) -> Any:
    """Return the derivative by b of the logarithm of the beta density."""
    return np.log1p(-x) + at_once(polygamma_difference, b, a, order=0)


def gamma_density_at(a: Any, x: Any) -> Any:
    """Return the density of the gamma distribution, the derivative of P(a, x) by x."""
    return at_once(gamma_density, a, x, by_shape=0, by_place=0)


def beta_density_at(a: Any, b: Any, x: Any) -> Any:
    """Return the density of the beta distribution, the derivative of I_x(a, b) by x."""
    return at_once(beta_density, a, b, x, i=0, j=0, by_place=0)


def beta_body(a: Any, b: Any, x: Any) -> Any:
    """Return x (1 - x) times the beta density, over a b / (a + b)."""
    return at_once(faded, beta_density_at(a + 1, b + 1, x), 1 / (a + b + 1))


def next_gamma(t: Any, a: Any, x: Any, by_shape: int, by_place: int) -> Any:
    """Return the product with a derivative of the gamma density."""
    return at_once(faded, at_once(gamma_density, a, x, by_shape=by_shape, by_place=by_place), t)


def next_beta(t: Any, a: Any, b: Any, x: Any, i: int, j: int, by_place: int) -> Any:
    """Return the product with a derivative of the beta density."""
    return at_once(faded, at_once(beta_density, a, b, x, i=i, j=j, by_place=by_place), t)


gamma_density: Elementwise = elementwise(
    "gamma_density",
    gamma_density_value,
    d=(
        lambda t, _out, a, x, *, by_shape, by_place: next_gamma(t, a, x, by_shape + 1, by_place),
        lambda t, _out, a, x, *, by_shape, by_place: next_gamma(t, a, x, by_shape, by_place + 1),
    ),
    singular=True,
)
beta_density: Elementwise = elementwise(
    "beta_density",
    beta_density_value,
    d=(
        lambda t, _out, a, b, x, *, i, j, by_place: next_beta(t, a, b, x, i + 1, j, by_place),
        lambda t, _out, a, b, x, *, i, j, by_place: next_beta(t, a, b, x, i, j + 1, by_place),
        lambda t, _out, a, b, x, *, i, j, by_place: next_beta(t, a, b, x, i, j, by_place + 1),
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

    def fall(d: Any) -> Any:
        return np.where(side < 0, a, b) * -np.abs(d) - (a + b) * growth(d)

    def weight(d: Any) -> Any:
        rest = growth(d)
        return beta_moment(i, j, a, b, (first + np.minimum(d, 0) - rest, second - np.maximum(d, 0) - rest))

    bend = np.log1p(a) - np.log1p(b) - place
    found = np.where(inside[..., 0], -side[..., 0] * integrated(fall, weight, side, bend), 0.0)
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
