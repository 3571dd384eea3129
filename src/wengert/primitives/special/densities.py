"""Densities of the gamma and beta distributions and all of their derivatives, which are primitives.

Since 1 / gamma(a) is a / gamma(1 + a), the densities are w = a v and w = a b / (a + b) v, where v changes slowly even
if shapes are tiny. Derivatives are taken of both factors; those of log w would cancel in the polynomials.

Their parameters are the orders of derivatives, so that each derivative, mixed ones too, is one evaluation, in every
mode the same: inside by recurrences, at the ends of the range by the largest term of the power series there.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives.powers import falling
from wengert.primitives.special.declaration import flat
from wengert.primitives.special.gamma import polygamma_difference, polygamma_of
from wengert.primitives.trigonometric import faded, faded_value

TINY = 1e-20
"""How small x is where exp(-x) and 1 - x are 1."""


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
    lower, upper = np.where(low, first, 0.0), np.where(low, second, 0.0)
    power = power_over_beta(np.where(low, place, 1.0), lower - 1 - by_place, lower + 1, upper + 1)
    usual = np.where(low, power, lifted_beta(first + 1, second + 1, place) / np.where(low, 1.0, q) ** (2.0 + by_place))
    found = faded_value(usual, found) / (first + second + 1)
    if low.any() and not i and not j:
        shapes = np.where(low, first, 1.0), np.where(low, second, 1.0)
        found = np.where(low, beta_density_near_zero(*shapes, np.where(low, place, 1.0), by_place), found)
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
    moment = beta_moments(a, b)
    found = {order: moment(*order, logs) for order in orders}
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
        found = found + faded_value(factor, power_over_beta(x, a - 1 + n - by_place, a, b))
    return found


def power_over_beta(x: Any, power: Any, a: Any, b: Any) -> Any:
    """Return x^power / B(a, b), by logarithms where floats have no room for one of the two."""
    above, below = x**power, sp.beta(a, b)
    lost = (above == 0) | np.isinf(above) | (below == 0)
    if not lost.any():
        return above / below
    return np.where(lost, np.exp(power * np.log(x) - sp.betaln(a, b)), above / np.where(lost, 1.0, below))


def beta_density_at_zero(a: Any, b: Any, i: int, j: int, by_place: int) -> Any:
    """Return a derivative of the beta density at x = 0.

    It is the sum of `beta_density_near_zero`, whose factors are differentiated by a and b.
    """
    found, rest = np.zeros_like(a), np.ones(a.shape, bool)
    scale = 1 / (sp.beta(a + 1, b + 1) * (a + b + 1))
    moment = beta_moments(a, b)
    inverse = [[scale * moment(k, m, (0.0, 0.0)) for m in range(j + 1)] for k in range(i + 1)]
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
    steep=True,
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
    steep=True,
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
                known[m, n] = extend_polynomial(m, n, cumulants, known)
    return known[i, j]


def extend_polynomial(m: int, n: int, cumulants: Cumulants, known: dict[tuple[int, int], Any]) -> Any:
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
    return beta_moments(a, b)(i, j, logs)


def beta_moments(a: Any, b: Any) -> Callable[[int, int, tuple[Any, Any]], Any]:
    """Return the function that does so at many places and orders: what takes most time depends on shapes alone."""

    @functools.cache
    def of_shapes(k: int, m: int) -> Any:
        if k and m:
            return polygamma_of(k + m - 1, a + b + 1)
        order, x, h = (k, a, b) if k else (m, b, a)
        return at_once(polygamma_difference, x + 1, h, order=order - 1)

    def moment(i: int, j: int, logs: tuple[Any, Any]) -> Any:
        def cumulants(k: int, m: int) -> Any:
            return of_shapes(k, m) + logs[m] if k + m == 1 else of_shapes(k, m)

        return sum(
            math.comb(i, k) * math.comb(j, m) * harmonic(k, m, a, b) * bell(i - k, j - m, cumulants)
            for k in range(i + 1)
            for m in range(j + 1)
        )

    return moment
