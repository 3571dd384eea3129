"""The zeta functions of Hurwitz and Riemann, in both arguments."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.core.values.dispatch import at_once
from wengert.primitives.special.declaration import flat, is_complex, refusing, special

TERMS = 12
"""Terms that are summed one by one before Euler's and Maclaurin's formula; as many Bernoulli numbers make 1e-16."""
MANY = 1e12
"""From there on all but the first terms are 0, and the formula would multiply them by infinity."""
BERNOULLI = sp.bernoulli(2 * TERMS)[2::2]


def times(x: list[Any], y: list[Any]) -> list[Any]:
    """Return the product of two power series, given by as many coefficients."""
    return [sum(x[j] * y[i - j] for j in range(i + 1)) for i in range(len(x))]


def zeta_derivative_value(x: Any, q: Any, *, order: int) -> Any:
    """Evaluate a derivative by x of the sum of (q + k)^-x over k >= 0.

    By the formula of Euler and Maclaurin (Johansson 2015, "Rigorous high-precision computation of the Hurwitz zeta
    function and its derivatives", Numer. Algorithms 69, equation 2), with power series in x in place of numbers.
    """
    dtype, (x, q) = flat(x, q)
    x, q = x[..., 0], q[..., 0]
    total: list[Any] = [np.zeros_like(x) for _ in range(order + 1)]

    def power(base: Any) -> list[Any]:
        """Return base^-x as a series."""
        return [base**-x * (-np.log(base)) ** i / math.factorial(i) for i in range(order + 1)]

    for k in range(TERMS):
        total = [a + b for a, b in zip(total, power(q + k), strict=True)]
    others = np.nan if order else sp.zeta(x, q)  # it has the values of whole x
    base, x = q + TERMS, np.minimum(x, MANY)
    tail = power(base)
    geometric = [(-1.0) ** i / (x - 1) ** (i + 1) for i in range(order + 1)]  # 1 / (x - 1)
    parts = [times([base * t for t in tail], geometric), [t / 2 for t in tail]]
    rising: list[Any] = [x, np.ones_like(x), *[np.zeros_like(x)] * order][: order + 1]
    for k in range(1, TERMS + 1):
        scale = BERNOULLI[k - 1] / math.factorial(2 * k) * base ** (1 - 2 * k)
        parts.append([scale * t for t in times(rising, tail)])
        for j in (2 * k - 1, 2 * k):
            rising = times(rising, [x + j, 1.0, *[0.0] * order][: order + 1])
    found = sum((part[order] for part in parts), start=total[order]) * math.factorial(order)
    found = np.where((q == np.inf) & (x > 1), 0.0, found)
    return np.where(q > 0, found, others).astype(dtype)[()]


zeta_derivative: Elementwise = elementwise(
    "zeta_derivative",
    zeta_derivative_value,
    d=(
        lambda t, _out, x, q, *, order: t * at_once(zeta_derivative, x, q, order=order + 1),
        lambda t, _out, x, q, *, order: -t * (x * higher(x, q, order) + order * higher(x, q, order - 1)),
    ),
    singular=True,
)


def higher(x: Any, q: Any, order: int) -> Any:
    """Return a derivative by x of the zeta function of x + 1."""
    if order < 0:
        return 0.0
    return at_once(zeta_derivative, x + 1, q, order=order)  # SciPy's zeta(17, 113), say, has an error of 1e-9


def riemann_slope(x: Any) -> Any:
    """Return the derivative of Riemann's zeta function, left of -1/2 from its functional equation.

    There zeta(x) = 2 (2 pi)^(x-1) sin(pi x / 2) gamma(1 - x) zeta(1 - x), whose last factor has its pole at 0.
    """
    left = x < -0.5
    y = np.where(left, 1 - x, 2.0)
    size = 2 * (2 * np.pi) ** -y * sp.gamma(y)
    half = np.pi / 2 * np.remainder(np.where(left, x, 0.0), 4)
    growth = np.log(2 * np.pi) - sp.digamma(y)
    mirrored = np.sin(half) * (growth * sp.zeta(y) - at_once(zeta_derivative, y, 1.0, order=1)) + np.pi / 2 * np.cos(
        half
    ) * sp.zeta(y)
    return np.where(left, size * mirrored, at_once(zeta_derivative, np.where(left, 2.0, x), 1.0, order=1))


special(
    sp._ufuncs._zeta,
    lambda t, _out, x, q: t * at_once(zeta_derivative, x, q, order=1),
    lambda t, _out, x, q: -(t * x) * higher(x, q, 0),
)


def riemann_rule(t: Any, out: Any, x: Any) -> Any:
    """Differentiate Riemann's zeta function of real numbers."""
    if is_complex(x):
        return refusing("zeta", "a complex argument")(t, out, x)
    return t * riemann_slope(x)


special(sp._ufuncs._riemann_zeta, riemann_rule)
