"""Quantiles, and distribution functions that are integrals, for `wengert.scipy.stats`.

SciPy's iterations end far away where probabilities are small. Here the smaller of a probability and what it lacks of 1
is found by Newton's method on its logarithm. With the distribution function F(x, a) and its density f, the quantile
moves by dq / f - (F_a / f) da, where logarithms keep what floats have no room for.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.primitives.special.declaration import LEGENDRE
from wengert.primitives.special.error import normal_density

Slope = Callable[[Any, Any], Any]
Inverse = Callable[[Any, Any, Any], Any]
"""The place beyond which there is a probability of at most 1/2: of that, a truth where it is below, and the shape."""

LOG_TWO, LOG_TWO_PI = math.log(2), math.log(2 * math.pi)
ROOT_HALF = math.sqrt(0.5)
LEAST_PLACE = 1e-100
"""Nearer to 0 distributions of 1/x are flat, whose slopes 1/x^2 would be infinite."""
GONE = 45.0
"""By how much the logarithm of a density falls until nothing is left of it."""
FAR = 38.0
"""How many standard deviations are integrated over: beyond, densities are below the smallest number."""
ROUNDS = 100
"""More than halving an interval takes."""


def scipys(distribution: str, method: str) -> Callable[..., Any]:
    """Return a method of one of SciPy's distributions, whose module is loaded when it is first called."""

    def evaluate(x: Any, a: Any) -> Any:
        from scipy import stats

        return getattr(getattr(stats, distribution), method)(x, a)

    return evaluate


def solve_tail(tail: Callable[[Any], tuple[Any, Any]], probability: Any, low: Any, high: Any, start: Any) -> Any:
    """Return where the logarithm of a tail is that of a probability, by Newton's method between bounds.

    Args:
        tail: gives the logarithms of the tail and of its derivative, both of which rise with the place.
        probability: the tail there.
        low: a place below it.
        high: a place above it.
        start: where to begin.
    """
    wanted, x = np.log(probability), np.clip(start, low, high)
    for _ in range(ROUNDS):
        found, slope = tail(x)
        excess = found - wanted
        low, high = np.where(excess < 0, x, low), np.where(excess > 0, x, high)
        moved = x - excess * np.exp(found - slope)
        moved = np.where((moved >= low) & (moved <= high), moved, (low + high) / 2)
        going = np.abs(moved - x) > np.spacing(np.abs(x))
        x = moved
        if not going.any():
            break
    return x


def quantiles(
    distribution: str, inverse: Inverse, log_density: Slope, by_shape: Slope
) -> tuple[Elementwise, Elementwise]:
    """Declare the inverse of the distribution function, and that of what it lacks of 1.

    Args:
        distribution: its name in SciPy.
        inverse: finds them.
        log_density: a function of x and the shape parameter.
        by_shape: the derivative of the distribution function by that, over the density.
    """

    def shape_rule(t: Any, out: Any, _q: Any, a: Any) -> Any:
        return -t * by_shape(out, a)

    def evaluation(below: bool) -> Callable[..., Any]:
        def evaluate(q: Any, a: Any) -> Any:
            q, a = np.broadcast_arrays(q, a)
            small = q <= 0.5
            with np.errstate(all="ignore"):
                return inverse(np.where(small, q, 1 - q), small == below, a)[()]

        return evaluate

    lower, upper = (
        elementwise(
            f"{distribution}_{method}", evaluation(below), d=(by_probability, shape_rule), singular=True, steep=True
        )
        for method, below, by_probability in (
            ("ppf", True, lambda t, out, _q, a: t * np.exp(-log_density(out, a))),
            ("isf", False, lambda t, out, _q, a: -t * np.exp(-log_density(out, a))),
        )
    )
    return lower, upper


# The inverse Gaussian distribution of the mean mu


def invgauss_log_density(x: Any, mu: Any) -> Any:
    """Return the logarithm of the density."""
    return np.square((x / mu - 1) / np.sqrt(x)) / -2 - 1.5 * np.log(x) - LOG_TWO_PI / 2


def invgauss_by_mean(x: Any, mu: Any) -> Any:
    """Return the derivative of the distribution function by the mean, in which two densities cancel, over the density.

    The exponents of the normal tail and of the density cancel, too, which leaves a scaled error function.
    """
    return -sp.erfcx((x / mu + 1) / np.sqrt(2 * x)) * math.sqrt(math.tau) / 2 * (2 / (mu * mu)) * x**1.5


def invgauss_roots(x: Any, mu: Any) -> tuple[Any, Any]:
    """Return the normal numbers of whose tails both probabilities consist, the second times exp(2 / mu)."""
    return (x / mu - 1) / np.sqrt(x), (x / mu + 1) / np.sqrt(x)


def invgauss_logcdf(x: Any, mu: Any) -> Any:
    """Return the logarithm of the distribution function."""
    at, more = invgauss_roots(x, mu)
    found = sp.log_ndtr(at)
    return found + np.log1p(np.exp(2 / mu + sp.log_ndtr(-more) - found))


def invgauss_logsf(x: Any, mu: Any) -> Any:
    """Return the logarithm of the probability of more than x: far out by scaled functions of one exponent."""
    at, less = invgauss_roots(np.maximum(x, LEAST_PLACE), mu)
    far = at > 1
    high, higher = np.where(far, at, 1.0), np.where(far, less, 2.0)
    tail = np.log(sp.erfcx(high * ROOT_HALF) - sp.erfcx(higher * ROOT_HALF)) - LOG_TWO - np.square(high) / 2
    found = sp.log_ndtr(-np.where(far, 1.0, at))
    ratio = np.exp(2 / mu + sp.log_ndtr(-np.where(far, 1.0, less)) - found)
    return np.where(far, tail, found + np.log1p(-np.where(far, 0.5, ratio)))


def invgauss_inverse(probability: Any, below: Any, mu: Any) -> Any:
    """Return the place beyond which there is a probability, by its logarithm, from above that of the inverse of it."""
    sign = np.where(below, 1.0, -1.0)

    def tail(y: Any) -> tuple[Any, Any]:
        x = np.exp(sign * y)
        value = np.where(below, invgauss_logcdf(x, mu), invgauss_logsf(x, mu))
        return value, invgauss_log_density(x, mu) + np.log(x)

    least, most = np.minimum(np.log(mu), -7.5) - 1, math.log(1500.0) + 2 * np.log1p(mu) + 1
    low, high = np.where(below, least, -most), np.where(below, most, -least)
    start = sign * np.log(mu) + sp.ndtri(probability) * np.sqrt(np.minimum(mu, 1.0))
    return np.exp(sign * solve_tail(tail, probability, low, high, start))


invgauss_ppf, invgauss_isf = quantiles("invgauss", invgauss_inverse, invgauss_log_density, invgauss_by_mean)


# The skew normal distribution of the shape a: Phi(x) - 2 T(x, a) with Owen's function


def skewnorm_density(x: Any, a: Any) -> Any:
    """Return the density."""
    return 2 * normal_density(x) * sp.ndtr(a * x)


def skewnorm_by_shape(x: Any, a: Any) -> Any:
    """Return the derivative of the distribution function by the shape."""
    return -2 * normal_density(x) * normal_density(a * x) / (1 + a * a)


def skewnorm_log_density(x: Any, a: Any) -> Any:
    """Return the logarithm of the density."""
    return LOG_TWO - np.square(x) / 2 - LOG_TWO_PI / 2 + sp.log_ndtr(a * x)


def skewnorm_moves(x: Any, a: Any) -> Any:
    """Return the derivative of the distribution function by the shape over the density."""
    y = a * x
    return np.exp(np.square(y) / -2 - LOG_TWO_PI / 2 - sp.log_ndtr(y)) / (-1 - a * a)


skewnorm_cdf: Elementwise = elementwise(
    "skewnorm_cdf",
    scipys("skewnorm", "cdf"),
    d=(
        lambda t, _out, x, a: t * skewnorm_density(x, a),
        lambda t, _out, x, a: t * skewnorm_by_shape(x, a),
    ),
    singular=True,
)


def skewnorm_lower(x: Any, a: Any) -> Any:
    """Return the distribution function, which keeps its digits: by Owen's function, unless there are two that cancel.

    Then by Gauss's quadrature over where the density falls by what is left.
    """
    thin = (a > 0) & (a * x < 4)
    place, steep = np.where(thin, x, -1.0), np.where(thin, a, 1.0)
    curved = 1 + steep * steep
    rate = np.maximum(-place, 0.0) * curved
    length = np.maximum(place, 0.0) + 2 * GONE / (rate + np.sqrt(rate * rate + 2 * GONE * curved))
    nodes, weights = LEGENDRE[48]
    places = np.expand_dims(place, -1) - np.expand_dims(length, -1) * nodes
    by_parts = length * np.sum(weights * skewnorm_density(places, np.expand_dims(steep, -1)), axis=-1)
    return np.where(thin, by_parts, sp.ndtr(x) - 2 * sp.owens_t(x, a))


def skewnorm_inverse(probability: Any, below: Any, a: Any) -> Any:
    """Return the place beyond which there is a probability; that above is that below of the mirrored distribution."""
    sign = np.where(below, 1.0, -1.0)

    def tail(x: Any) -> tuple[Any, Any]:
        return np.log(skewnorm_lower(x, sign * a)), skewnorm_log_density(x, sign * a)

    return sign * solve_tail(tail, probability, -FAR - 1, FAR + 1, sp.ndtri(probability))


skewnorm_ppf, skewnorm_isf = quantiles("skewnorm", skewnorm_inverse, skewnorm_log_density, skewnorm_moves)


# Von Mises's distribution of the concentration kappa, on the circle

NODES, WEIGHTS = (np.polynomial.legendre.leggauss(64)[i] for i in (0, 1))
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / np.sum(WEIGHTS)
LARGE = 8.0
"""From there on Bessel functions are scaled."""


def scaled_i0(kappa: Any) -> tuple[Any, Any]:
    """Return log(I0(k)) - k, and I1(k) / I0(k), for k >= 0: SciPy's scaled functions have a kink at 0."""
    near = kappa < LARGE
    low, high = np.where(near, kappa, 0.0), np.where(near, LARGE, kappa)
    logarithm = np.where(near, np.log(sp.i0(low)) - low, np.log(sp.i0e(high)))
    return logarithm, np.where(near, sp.i1(low) / sp.i0(low), sp.i1e(high) / sp.i0e(high))


def vonmises_log_density(x: Any, kappa: Any) -> Any:
    """Return the logarithm of the density."""
    return kappa * sp.cosm1(x) - scaled_i0(kappa)[0] - LOG_TWO_PI


def vonmises_density(x: Any, kappa: Any) -> Any:
    """Return the density."""
    return np.exp(vonmises_log_density(x, kappa))


def vonmises_mean(function: Any, x: Any, kappa: Any) -> Any:
    """Return the integral of an even function times the density from 0 to x, by Gauss's quadrature."""
    far = FAR / np.sqrt(np.where(kappa > 1.0, kappa, 1.0))
    end = np.where(np.abs(x) > far, np.copysign(far, x), x)  # clip gives NaN no slope
    places = NODES * np.expand_dims(end, -1)
    found = np.sum(WEIGHTS * function(places) * vonmises_density(places, np.expand_dims(kappa, -1)), axis=-1)
    return end * found


def vonmises_tail(x: Any, kappa: Any, function: Any = np.ones_like) -> Any:
    """Return the integral of a function times the density from -pi to x < 0, which keeps its digits, by Gauss's rule.

    It goes on until the density has gone, which falls at half of its first rate at least.
    """
    rate = kappa * np.sin(-x)
    whole = rate * (np.pi + x) < 2 * GONE
    length = np.where(whole, np.pi + x, 2 * GONE / np.where(whole, 1.0, rate))
    steps, place = np.expand_dims(length, -1) * NODES, np.expand_dims(x, -1)
    fallen = 2 * np.expand_dims(kappa, -1) * np.sin(place - steps / 2) * np.sin(steps / 2)
    return vonmises_density(x, kappa) * length * np.sum(WEIGHTS * function(place - steps) * np.exp(fallen), axis=-1)


def vonmises_sides(x: Any, kappa: Any) -> tuple[Any, Any, Any, Any]:
    """Return which angles are far below and far above the mode, those as if below, and others, with stand-ins."""
    side = np.where(kappa > 1.0, 1 / np.sqrt(np.where(kappa > 1.0, kappa, 1.0)), 1.0)
    low, high = x < -side, x > side
    return low, high, np.where(low, x, np.where(high, -x, -1.0)), np.where(low | high, 0.0, x)


def vonmises_cdf(x: Any, kappa: Any) -> Any:
    """Return the distribution function of angles from -pi to pi."""
    low, high, far, near = vonmises_sides(x, kappa)
    tail = vonmises_tail(far, kappa)
    return np.where(low, tail, np.where(high, 1 - tail, 0.5 + vonmises_mean(np.ones_like, near, kappa)))


def vonmises_by_concentration(x: Any, kappa: Any) -> Any:
    """Return the derivative of the distribution function by kappa, from -pi to pi: of cos x less its mean."""
    low, high, far, near = vonmises_sides(x, kappa)
    less = 2 * vonmises_mean(sp.cosm1, np.pi, kappa)
    tail = vonmises_tail(far, kappa, lambda x: sp.cosm1(x) - np.expand_dims(less, -1))
    central = vonmises_mean(sp.cosm1, near, kappa) - less * vonmises_mean(np.ones_like, near, kappa)
    return np.where(low, tail, np.where(high, -tail, central))


def vonmises_var(kappa: Any) -> Any:
    """Return the variance."""
    return 2 * vonmises_mean(np.square, np.pi, kappa)


def vonmises_inverse(probability: Any, below: Any, kappa: Any) -> Any:
    """Return the angle beyond which there is a probability, which is that of minus the angle on the other side."""

    def tail(x: Any) -> tuple[Any, Any]:
        return np.log(vonmises_cdf(x, kappa)), vonmises_log_density(x, kappa)

    start = np.maximum(sp.ndtri(probability) / np.sqrt(np.maximum(kappa, 1.0)), np.pi * (2 * probability - 1))
    return np.where(below, 1.0, -1.0) * solve_tail(tail, probability, -np.pi, 0.0, start)


vonmises_ppf, vonmises_isf = quantiles(
    "vonmises",
    vonmises_inverse,
    vonmises_log_density,
    lambda x, kappa: vonmises_by_concentration(x, kappa) * np.exp(-vonmises_log_density(x, kappa)),
)
