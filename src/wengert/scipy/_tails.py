"""Probabilities that floats have no room for, of distributions whose tails are incomplete gamma and beta functions.

A tail is the density where it begins, times the integral over s > 0 of what the density falls by. That integrand is
nearly exp(-rate s), and ever more so far out, so that the rule of Gauss and Laguerre with few nodes gives all digits;
its nodes are the same for neighbours, so that all derivatives are those of the sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.scipy._piecewise import all_of, either
from wengert.transforms.reverse import stop_gradient

NODES, WEIGHTS = np.polynomial.laguerre.laggauss(16)
BENT = 0.03
"""From which ratio of the second derivative at the beginning to the square of the first on 16 nodes are too few."""
NEAR = 20.0
"""How far away, in multiples of 1 / rate, the next singularity must be."""
SMALL = 0.05
"""Up to which ratios power series are summed."""
TERMS = 10
FAR = 7.0
"""How many standard deviations out the tail of a normal distribution is nearly exponential."""
LEAST = 1e-300
"""Smaller ratios are as good as this one."""
MANY = 1e150
"""From there on degrees of freedom are as good as infinitely many."""

Tail = tuple[Any, Any]
"""Where a formula holds, and the logarithm that it gives."""


def log_integral(usable: Any, rate: Any, fall: Callable[..., Any], *parameters: Any) -> Any:
    """Return the logarithm of the integral of exp(fall(s, *parameters)) over s > 0.

    Args:
        usable: where that falls nearly as an exponential.
        rate: how fast it falls at 0.
        fall: a function of the places, which are along the last axis, and of parameters, which are 1 elsewhere.
        *parameters: what it depends on.
    """
    rate = np.expand_dims(stop_gradient(either(usable, rate, 1.0)), -1)
    columns = [np.expand_dims(either(usable, x, 1.0), -1) for x in parameters]
    return np.log(np.sum(WEIGHTS / rate * np.exp(NODES + fall(NODES / rate, *columns)), axis=-1))


def falls_nearly_straight(rate: Any, curvature: Any, scale: Any) -> Any:
    """Tell where a logarithm falls, and bends, by `curvature * scale`, little until what it is of has gone."""
    falls = rate > 0
    safe = either(falls, rate, np.inf)
    return all_of(falls, np.abs(curvature) / safe * (scale / safe) < BENT)


def log_series(usable: Any, ratio: Any, shape: Any, other: Any) -> Any:
    """Return the logarithm of the integral of v^(shape - 1) (1 - ratio v)^(other - 1) over v from 0 to 1.

    None for `other` stands for exp(-ratio v). The series is used for small ratios, powers of which derivatives keep.
    """
    x, a = either(usable, ratio, 0.0), either(usable, shape, 1.0)
    b = None if other is None else either(usable, other, 1.0)
    found, term = 1 / a, 1.0
    for k in range(1, TERMS):
        term = term * x * (-1 / k if b is None else (k - b) / k)
        found = found + term / (a + k)
    return np.log(found)


def gamma_upper(inverse: Any, a: Any, log_factor: Any = 0.0) -> Tail:
    """Return the logarithm of Q(a, x) over the gamma density at x, which is 1 / inverse, and of a factor."""
    rate = 1 - (a - 1) * inverse
    usable = all_of(rate > NEAR * inverse, falls_nearly_straight(rate, (a - 1) * inverse, inverse))
    fall = log_integral(usable, rate, lambda s, y, a: (a - 1) * np.log1p(s * y) - s, inverse, a)
    return usable, log_factor + fall


def gamma_lower(x: Any, a: Any, log_factor: Any) -> Tail:
    """Return the logarithm of P(a, x) over x times the gamma density at x, and of a factor."""
    low, rate = x < SMALL, a - x
    usable = falls_nearly_straight(rate, x, 1.0) & ~low
    far = log_integral(usable, rate, lambda s, x, a: -a * s - x * np.expm1(-s), x, a)
    return low | usable, log_factor + either(low, x + log_series(low, x, a, None), far)


def beta_lower(ratio: Any, a: Any, b: Any, log_factor: Any) -> Tail:
    """Return the logarithm of I_x(a, b) over x times the beta density, by the ratio of x to 1 - x, and of a factor."""
    low = ratio < SMALL / (1 + b)
    rate = a - (b - 1) * ratio
    far = rate * np.log1p(1 / np.maximum(ratio, LEAST)) > NEAR
    usable = all_of(far, falls_nearly_straight(rate, (b - 1) * ratio, 1 + ratio)) & ~low

    def fall(s: Any, ratio: Any, a: Any, b: Any) -> Any:
        return -a * s + (b - 1) * np.log1p(-ratio * np.expm1(-s))

    series = log_series(low, ratio / (1 + ratio), a, b) + (b - 1) * np.log1p(ratio)
    return low | usable, log_factor + either(low, series, log_integral(usable, rate, fall, ratio, a, b))


def t_lower(x: Any, df: Any) -> Tail:
    """Return the logarithm of the distribution function of Student's t over the density."""
    y, df = either(x < -1, -x, 1.0), either(df < MANY, df, MANY)
    return beta_lower(df / y / y, df / 2, 0.5, np.log((y + df / y) / 2))


def skewnorm_fall(s: Any, y: Any, thin: Any, thick: Any) -> Any:
    """Return the logarithm of the skew normal density at -(y + s) over that at -y, without squares that cancel.

    One of the shape and its negative is given, if the side is the thin or the thick one, and 0 for the other.
    """
    beyond, root = y + s, thin * math.sqrt(0.5)
    smaller = np.log(sp.erfcx(root * beyond) / sp.erfcx(root * y) * sp.ndtr(thick * beyond) / sp.ndtr(thick * y))
    return smaller - (1 + thin * thin) * s * (y + s / 2)


def skewnorm_lower(x: Any, a: Any) -> Tail:
    """Return the logarithm of the distribution function of the skew normal distribution over the density."""
    far = x < -FAR
    y, thin, thick = either(far, -x, FAR), either(a > 0, a, 0.0), either(a > 0, 0.0, -a)
    return far, log_integral(far, y * (1 + thin * thin), skewnorm_fall, y, thin, thick)
