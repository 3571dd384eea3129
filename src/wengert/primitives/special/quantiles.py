"""Distribution functions and quantiles that SciPy finds by quadrature and iteration, for `wengert.scipy.stats`.

Values are SciPy's. With the distribution function F(x, a) and its density f, the quantile moves by (dq - F_a da) / f.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.primitives.declare import elementwise
from wengert.core.primitives.kinds import Elementwise
from wengert.primitives.special.error import normal_density

Slope = Callable[[Any, Any], Any]


def scipys(distribution: str, method: str) -> Callable[..., Any]:
    """Return a method of one of SciPy's distributions, whose module is loaded when it is first called."""

    def evaluate(x: Any, a: Any) -> Any:
        from scipy import stats

        return getattr(getattr(stats, distribution), method)(x, a)

    return evaluate


def quantiles(distribution: str, density: Slope, by_shape: Slope) -> tuple[Elementwise, Elementwise]:
    """Declare the inverse of the distribution function, and that of what it lacks of 1.

    Args:
        distribution: its name in SciPy.
        density: a function of x and the shape parameter.
        by_shape: the derivative of the distribution function by that.
    """

    def shape_rule(t: Any, out: Any, _q: Any, a: Any) -> Any:
        return -t * by_shape(out, a) / density(out, a)

    lower, upper = (
        elementwise(
            f"{distribution}_{method}", scipys(distribution, method), d=(by_probability, shape_rule), singular=True
        )
        for method, by_probability in (
            ("ppf", lambda t, out, _q, a: t / density(out, a)),
            ("isf", lambda t, out, _q, a: -t / density(out, a)),
        )
    )
    return lower, upper


# The inverse Gaussian distribution of the mean mu


def invgauss_density(x: Any, mu: Any) -> Any:
    """Return the density."""
    return normal_density((x / mu - 1) / np.sqrt(x)) * x**-1.5


def invgauss_by_mean(x: Any, mu: Any) -> Any:
    """Return the derivative of the distribution function by the mean, in which two densities cancel."""
    return -2 / (mu * mu) * np.exp(2 / mu + sp.log_ndtr(-(x / mu + 1) / np.sqrt(x)))


invgauss_ppf, invgauss_isf = quantiles("invgauss", invgauss_density, invgauss_by_mean)


# The skew normal distribution of the shape a: Phi(x) - 2 T(x, a) with Owen's function


def skewnorm_density(x: Any, a: Any) -> Any:
    """Return the density."""
    return 2 * normal_density(x) * sp.ndtr(a * x)


def skewnorm_by_shape(x: Any, a: Any) -> Any:
    """Return the derivative of the distribution function by the shape."""
    return -2 * normal_density(x) * normal_density(a * x) / (1 + a * a)


skewnorm_cdf: Elementwise = elementwise(
    "skewnorm_cdf",
    scipys("skewnorm", "cdf"),
    d=(
        lambda t, _out, x, a: t * skewnorm_density(x, a),
        lambda t, _out, x, a: t * skewnorm_by_shape(x, a),
    ),
    singular=True,
)
skewnorm_ppf, skewnorm_isf = quantiles("skewnorm", skewnorm_density, skewnorm_by_shape)


# Von Mises's distribution of the concentration kappa, on the circle

NODES, WEIGHTS = (np.polynomial.legendre.leggauss(64)[i] for i in (0, 1))
NODES, WEIGHTS = (NODES + 1) / 2, WEIGHTS / np.sum(WEIGHTS)
LARGE = 8.0
"""From there on Bessel functions are scaled."""
GONE = 45.0
"""By how much the logarithm of a density falls until nothing is left of it."""
FAR = 38.0
"""How many standard deviations are integrated over: beyond, densities are below the smallest number."""


def scaled_i0(kappa: Any) -> tuple[Any, Any]:
    """Return log(I0(k)) - k, and I1(k) / I0(k), for k >= 0: SciPy's scaled functions have a kink at 0."""
    near = kappa < LARGE
    low, high = np.where(near, kappa, 0.0), np.where(near, LARGE, kappa)
    logarithm = np.where(near, np.log(sp.i0(low)) - low, np.log(sp.i0e(high)))
    return logarithm, np.where(near, sp.i1(low) / sp.i0(low), sp.i1e(high) / sp.i0e(high))


def vonmises_density(x: Any, kappa: Any) -> Any:
    """Return the density."""
    return np.exp(kappa * sp.cosm1(x) - scaled_i0(kappa)[0]) / (2 * np.pi)


def vonmises_mean(function: Any, x: Any, kappa: Any) -> Any:
    """Return the integral of an even function times the density from 0 to x, by Gauss's quadrature."""
    far = FAR / np.sqrt(np.where(kappa > 1.0, kappa, 1.0))
    end = np.where(np.abs(x) > far, np.copysign(far, x), x)  # clip gives NaN no slope
    places = NODES * np.expand_dims(end, -1)
    found = np.sum(WEIGHTS * function(places) * vonmises_density(places, np.expand_dims(kappa, -1)), axis=-1)
    return end * found


def vonmises_by_concentration(x: Any, kappa: Any) -> Any:
    """Return the derivative of the distribution function by kappa, from -pi to pi: of cos x less its mean."""
    less = 2 * vonmises_mean(sp.cosm1, np.pi, kappa)
    return vonmises_mean(sp.cosm1, x, kappa) - less * vonmises_mean(np.ones_like, x, kappa)


def vonmises_tail(x: Any, kappa: Any) -> Any:
    """Return the integral of the density from -pi to x < 0, which keeps its digits, by Gauss's quadrature.

    It goes on until the density has gone, which falls at half of its first rate at least.
    """
    rate = kappa * np.sin(-x)
    whole = rate * (np.pi + x) < 2 * GONE
    length = np.where(whole, np.pi + x, 2 * GONE / np.where(whole, 1.0, rate))
    steps, place = np.expand_dims(length, -1) * NODES, np.expand_dims(x, -1)
    fallen = 2 * np.expand_dims(kappa, -1) * np.sin(place - steps / 2) * np.sin(steps / 2)
    return vonmises_density(x, kappa) * length * np.sum(WEIGHTS * np.exp(fallen), axis=-1)


def vonmises_cdf(x: Any, kappa: Any) -> Any:
    """Return the distribution function of angles from -pi to pi."""
    side = np.where(kappa > 1.0, 1 / np.sqrt(np.where(kappa > 1.0, kappa, 1.0)), 1.0)
    low, high = x < -side, x > side
    tail = vonmises_tail(np.where(low, x, np.where(high, -x, -1.0)), kappa)
    central = 0.5 + vonmises_mean(np.ones_like, np.where(low | high, 0.0, x), kappa)
    return np.where(low, tail, np.where(high, 1 - tail, central))


def vonmises_var(kappa: Any) -> Any:
    """Return the variance."""
    return 2 * vonmises_mean(np.square, np.pi, kappa)


vonmises_ppf, vonmises_isf = quantiles("vonmises", vonmises_density, vonmises_by_concentration)
