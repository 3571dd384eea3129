"""Formulas of distributions of numbers that take more than a line, in the order of the distributions' names."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_concrete, raw
from wengert.primitives.powers import power_derivative
from wengert.primitives.special import quantiles
from wengert.primitives.special.declaration import LEGENDRE
from wengert.scipy._piecewise import (
    either,
    evaluate_where,
    known_truth,
    level_at_infinity,
    log_of_smaller,
    propagate_nan,
    select_defined,
)

STEEP = 700.0
"""From there on exp(-exp(x)) is 0, and so is each of its derivatives."""
GONE = 1e5
"""From there on exp(-x) is 0, and so is each of its derivatives."""
FAR = 1e17
"""From there on 1 + |x| is |x|, and 1 + x^2 is x^2, to all digits and orders."""
ALONE = -40.0
"""The logarithm of numbers beside which 1 is all."""
NARROW, STEEPEST = 0.5, 8.0
"""The width of intervals, and how often the normal density may fall by e in them, of which 16 points give the mean."""
LOG_TWO_PI = math.log(2 * math.pi)
LOG_TWO = math.log(2.0)
EULER = float(np.euler_gamma)
LOG_GAMMA = sp.zeta(np.arange(2.0, 22)) * (-1) ** np.arange(2.0, 22) / np.arange(2.0, 22)
"""Coefficients of the powers from 2 of the logarithm of gamma(1 + x); that of x is `-EULER`."""

Value = Any


def log_first_place(q: Value, a: Value, b: Value) -> Value:
    """Return the logarithm of the x at which the first term of the series of I_x(a, b) is q."""
    return (np.log(q) + np.log(a) + sp.betaln(a, b)) / a


def beta_ppf(q: Value, a: Value, b: Value) -> Value:
    """Return the quantile: where it is so small that one term is all, by that, which SciPy may have no digit of."""
    first = log_first_place(q, a, b)
    alone = first + np.log1p(b) < ALONE
    return either(alone, np.exp(first), sp.betaincinv(a, b, either(alone, 0.5, q)))


def chi2_entropy(df: Value) -> Value:
    """Return the entropy."""
    half = df / 2
    return half + LOG_TWO + sp.gammaln(half) + (1 - half) * sp.digamma(half)


STIRLING = np.array([1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400])
"""Coefficients of the odd powers of 1/z in the error of Stirling's formula."""
LOG_EXCESS = (-1.0) ** np.arange(1, 7) / np.arange(2, 8)
"""Those of the powers of v in (log(1 + v) - v) / v^2."""


MANY = 100.0
"""Degrees of freedom from which differences of logarithms of gamma functions lose two digits."""


def stirling_error(z: Value) -> Value:
    """Return the logarithm of gamma(z) without (z - 1/2) log(z) - z + log(2 pi) / 2."""
    far = z >= 10
    x = 1 / either(far, z, 10.0)
    near = either(far, 10.0, z)
    exact = sp.gammaln(near) - (near - 0.5) * np.log(near) + near - LOG_TWO_PI / 2
    return either(far, x * np.polyval(STIRLING[::-1], x * x), exact)


def deviance(step: Value, s: Value) -> Value:
    """Return s log(1 + step / s), which for large s is the step, with its derivatives by s."""
    v = step / s
    small = np.abs(v) < 1e-3
    near = either(small, v, 0.0)
    series = step * (1 + near * np.polyval(LOG_EXCESS[::-1], near))
    return either(small, series, s * np.log1p(v))


def f_parts(x: Value, n: Value, m: Value) -> tuple[Value, Value, Value]:
    """Return the logarithm of the density as a power of x and the rest, and whether the power is that at the end.

    Of many degrees of freedom by Stirling's formula, whose large terms cancel (as in C. Loader, Fast and accurate
    computation of binomial probabilities, 2000); where m is the smaller one for 1/x, whose terms are not large, but for
    small x, of which slopes by m would cancel.
    """
    few = (n < MANY) & (m < MANY)
    if known_truth(few):
        low = n * x < m
        rate = either(low, n, m) / either(low, m, n)
        place = either(low, x, 1 / either(low, 1.0, x))
        factors = either(low, n, m) / 2 * np.log(rate) - sp.betaln(n / 2, m / 2)
        return either(low, n / 2 - 1, -m / 2 - 1), factors - (n + m) / 2 * np.log1p(rate * place), low
    a, b = n / 2, m / 2
    s = a + b
    low = (b < a) & (a * x < b)
    at_end = (b >= a) | low
    place = either(at_end, x, 1 / either(at_end, 1.0, x))
    factors = 0.5 * (np.log(a) - np.log1p(a / b) - LOG_TWO_PI)
    rest = factors + (stirling_error(s) - stirling_error(b) - stirling_error(a))
    ratio, step = either(low, a / b, 1.0), (either(low, 1.0, place) - 1) * either(at_end, a, b)
    near = s * (np.log1p(ratio * either(low, place, 1.0)) - np.log1p(ratio))
    return either(at_end, a - 1, -b - 1), rest - either(low, near, deviance(step, s)), at_end


def f_logpdf(x: Value, dfn: Value, dfd: Value) -> Value:
    """Return the logarithm of the density."""
    power, rest, _ = f_parts(x, dfn, dfd)
    return rest + sp.xlogy(power, x)


def f_pdf(x: Value, n: Value, m: Value) -> Value:
    """Return the density; near its end by a power of x."""
    power, rest, at_end = f_parts(x, n, m)
    near = at_end & (x < 1) & (n < MANY)
    factor = either(near, x, 1.0) ** either(near, power, 0.0)
    return factor * np.exp(rest + either(near, 0.0, power) * np.log(either(near, 1.0, x)))


def f_entropy(n: Value, m: Value) -> Value:
    """Return the entropy."""
    n, m = n / 2, m / 2
    found = np.log(m) - np.log(n) + sp.betaln(n, m) + (1 - n) * sp.digamma(n)
    return found - (1 + m) * sp.digamma(m) + (n + m) * sp.digamma(n + m)


def log_ratio(c: Value, x: Value) -> Value:
    """Return log(1 + c x) / c, and x where c is 0, with the derivatives of a smooth function there."""
    product = finite_product(c, x)
    small = np.abs(product) < 0.1
    near = x * sp.hyp2f1(1.0, 1.0, 2.0, -either(small, product, 0.0))
    return either(small, near, np.log1p(either(small, 0.0, product)) / either(small, 1.0, c))


def finite_product(c: Value, x: Value) -> Value:
    """Return c x, and 0 where c is 0 and x infinite."""
    return c * either((c == 0) & np.isinf(x), 0.0, x)


def limit_steepness(x: Value) -> Value:
    """Return x, and `STEEP` where it is more; NaN keeps a slope, which `numpy.minimum` gives none."""
    return either(x > STEEP, STEEP, x)


def log_rise(x: Value) -> Value:
    """Return log(1 - exp(-exp(x))), of which exp(x) is all but a factor near 1 for small x."""
    low = x < 0
    near, far = either(low, x, 0.0), limit_steepness(either(low, 0.0, x))
    return either(low, near + np.log(sp.exprel(-np.exp(near))), np.log1p(-np.exp(-np.exp(far))))


def genextreme_logpdf(x: Value, c: Value) -> Value:
    """Return the logarithm of the density, at the end of the support that of SciPy."""
    power = log_ratio(-c, x)
    end = np.isinf(power)
    inner = -either(end, 0.0, power)
    return either(end, either(c == 1, 0.0, -np.inf), (1 - c) * inner - np.exp(inner))


def genextreme_mean(c: Value) -> Value:
    """Return the mean."""
    there = c >= -1
    safe = either(there, c, 1.0)
    small = np.abs(safe) < 0.05
    series = np.polyval(LOG_GAMMA[::-1], either(small, safe, 0.0)) * safe - EULER
    ratio = either(small, series, sp.gammaln(safe + 1) / either(small, 1.0, safe))
    return either(there, -ratio * sp.exprel(ratio * safe), propagate_nan(c))


def genextreme_var(c: Value) -> Value:
    """Return the variance."""
    there = c >= -0.5
    safe = either(there, c, 1.0)
    small = np.abs(safe) < 0.05
    series = np.polyval((LOG_GAMMA * (2 ** np.arange(2.0, 22) - 2))[::-1], either(small, safe, 0.0))
    ratio = either(small, series, (sp.gammaln(2 * safe + 1) - 2 * sp.gammaln(safe + 1)) / either(small, 1.0, safe) ** 2)
    return either(there, sp.gamma(safe + 1) ** 2 * ratio * sp.exprel(ratio * safe * safe), propagate_nan(c))


def genpareto_logpdf(x: Value, c: Value) -> Value:
    """Return the logarithm of the density: that of even distribution at its end, too."""
    power = log_ratio(c, x)
    even = (c == -1) & np.isinf(power)
    return -(c + 1) * either(even, 0.0, power)


def genpareto_pdf(x: Value, c: Value) -> Value:
    """Return the density: a power of the distance to its upper end, if it is nearer to that than to 0."""
    near = 1 + c * x < 0.5
    power = -1 - 1 / either(near, c, -1.0)
    return either(near, either(near, 1 + c * x, 1.0) ** power, np.exp(-(c + 1) * log_ratio(c, either(near, 0.0, x))))


def halfnorm_logsf(x: Value) -> Value:
    """Return the logarithm of the probability of more than x, near 0 by what it lacks of 1."""
    near = x < 0.5
    lacking = sp.erf(either(near, x, 0.5) / math.sqrt(2))
    return either(near, np.log1p(-lacking), LOG_TWO + sp.log_ndtr(-either(near, 0.5, x)))


def invgauss_entropy(mu: Value) -> Value:
    """Return the entropy, with the exponential integral by its asymptotic series where that is better."""
    rate = 2 / mu
    far = rate > 50
    near = either(far, 1.0, rate)
    series = np.polyval(sp.factorial(np.arange(20))[::-1], -1 / either(far, rate, 50.0)) / rate
    scaled = either(far, series, np.exp(near) * sp.exp1(near))
    return 0.5 * (1 + LOG_TWO_PI + 3 * np.log(mu)) - 1.5 * scaled


def laplace_cdf(x: Value) -> Value:
    """Return the distribution function: both sides are alike at 0, and NaN has a slope, which extrema give none."""
    found = 0.5 * np.exp(np.minimum(x, 0.0)) + (0.5 - 0.5 * np.exp(-np.maximum(x, 0.0)))
    return select_defined(~np.isnan(x), found, [x])


def laplace_logcdf(x: Value) -> Value:
    """Return the logarithm of the distribution function."""
    lower = x < 0
    return either(lower, x - LOG_TWO, np.log1p(-0.5 * np.exp(-either(lower, 0.0, x))))


def laplace_ppf(q: Value) -> Value:
    """Return the quantile."""
    upper = q > 0.5
    return either(upper, -np.log(2 * (1 - either(upper, q, 0.5))), np.log(2 * q))


def logistic_logpdf(x: Value) -> Value:
    """Return the logarithm of the density; at the mode by a square, as slopes of the two terms cancel there."""
    near = np.abs(x) < 1
    t = np.tanh(either(near, x, 0.0) / 2)
    return either(near, np.log1p(-t * t) - 2 * LOG_TWO, sp.log_expit(x) + sp.log_expit(-x))


def loguniform_var(a: Value, b: Value) -> Value:
    """Return the variance."""
    width = np.log(b) - np.log(a)
    return (b - a) * (b + a) / (2 * width) - ((b - a) / width) ** 2


def norm_logpdf(x: Value) -> Value:
    """Return the logarithm of the density."""
    return -0.5 * np.square(x) - LOG_TWO_PI / 2


def power_slope(x: Value, c: Value) -> Value:
    """Return c x**(c - 1), whose derivatives are one term each: at 0 several may be infinite of either sign."""
    return apply(power_derivative, x, c, x**c, base=1, exponent=0)


def skewnorm_logpdf(x: Value, a: Value) -> Value:
    """Return the logarithm of the density."""
    return LOG_TWO + norm_logpdf(x) + sp.log_ndtr(finite_product(a, x))


def skewnorm_mean(a: Value) -> Value:
    """Return the mean."""
    return math.sqrt(2 / math.pi) * a / np.sqrt(1 + a**2)


def log_growth(x: Value, scale: Value = 1.0) -> Value:
    """Return log(1 + x^2 / scale); far out by log|x|, as squares and what slopes divide by overflow."""
    if is_concrete(x) and not (np.abs(raw(x)) > FAR).any():
        return np.log1p(x * x / scale)
    far = np.abs(x) > FAR
    near = either(far, 1.0, x)
    growth = np.log1p(either(far, np.abs(x), near * near / scale))
    return either(far, 2 * growth - np.log(scale), growth)


def far_deviance(x: Value, half: Value) -> Value:
    """Return deviance(x^2 / 2, half), far out by log|x|, as squares or slopes overflow."""
    far = np.abs(x) > FAR * np.sqrt(2 * half)
    if known_truth(far) is False:
        return deviance(x * x / 2, half)
    tail = 2 * np.log(np.abs(either(far, x, 1.0))) - np.log(2 * half)
    return either(far, half * tail, deviance(np.square(either(far, 1.0, x)) / 2, half))


def arctangent_tail(x: Value, mass: float, below: Callable[[Value], Value]) -> Value:
    """Return log(mass arctan(1 / x) / pi), far out by log(x): second derivatives of an arctangent vanish there.

    Args:
        x: the places.
        mass: of both tails.
        below: the rest to 1, for where that is smaller.
    """
    far = x > FAR
    near = log_of_smaller(lambda x: mass / math.pi * np.arctan2(1.0, x), below, either(far, 1.0, x), ())
    return either(far, math.log(mass / math.pi) - np.log(either(far, x, 1.0)), near)


def t_logpdf(x: Value, df: Value) -> Value:
    """Return the logarithm of the density: of many degrees of freedom the normal one's and what little is missing."""
    normal = np.isinf(df)
    df = either(normal, 1.0, df)
    half = df / 2
    if known_truth(df < MANY):
        most = np.log(sp.poch(half, 0.5)) - 0.5 * (np.log(df) + math.log(math.pi))
        found = most - (half + 0.5) * log_growth(x, df)
    else:
        most = (deviance(0.5, half) - 0.5) + (stirling_error(half + 0.5) - stirling_error(half)) - LOG_TWO_PI / 2
        found = most - far_deviance(x, half) * (1 + 0.5 / half)
    return either(normal, norm_logpdf(either(normal, x, 0.0)), found)


def t_ppf(q: Value, df: Value) -> Value:
    """Return the quantile: so far out that one term of the tail's series is all, by that, as SciPy's end at 1e154."""
    few = either(df < MANY, df, MANY)
    upper = q > 0.5
    first = log_first_place(2 * either(upper, 1 - q, q), few / 2, 0.5)
    alone = (first < ALONE) & (df < MANY)
    place = np.exp((np.log(few) - either(alone, first, 0.0)) / 2)
    return either(alone, either(upper, place, -place), sp.stdtrit(df, either(alone, 0.5, q)))


def t_entropy(df: Value) -> Value:
    """Return the entropy: where the differences below cancel, by its series about that of the normal distribution."""
    many = df > 100
    x = 1 / either(many, df, 100.0)
    normal = (1 + LOG_TWO + math.log(math.pi)) / 2
    series = np.polyval([1 / 4, 3 / 10, -1 / 8, -1 / 6, 1 / 4, 1.0, normal], x)
    df = either(many, 100.0, df)
    half, more = df / 2, (df + 1) / 2
    exact = more * (sp.digamma(more) - sp.digamma(half)) + np.log(np.sqrt(df) * sp.beta(half, 0.5))
    return either(many, series, exact)


def t_variance(df: Value) -> Value:
    """Return the variance, which is that of the normal distribution at infinitely many degrees of freedom."""
    otherwise = either(np.isinf(df), 1.0, either(df > 1, np.inf, propagate_nan(df)))
    return evaluate_where((df > 2) & np.isfinite(df), df, 3.0, lambda x: x / (x - 2.0), otherwise)


def narrow_mass(a: Value, b: Value) -> tuple[Value, Value, Value]:
    """Return whether a normal number's probability from a to b is their distance times a mean, that, and its logarithm.

    The mean of the density is taken by the rule of Gauss and Legendre; elsewhere tails are not nearly equal.
    """
    a, b = level_at_infinity(a), level_at_infinity(b)
    narrow = (b - a < NARROW) & (np.abs(a + b) * (b - a) < STEEPEST)
    if known_truth(narrow) is False:
        return False, 1.0, 0.0
    low, high = either(narrow, a, -NARROW), either(narrow, b, NARROW)
    width, middle = high - low, (low + high) / 2
    steps = np.expand_dims(width, -1) * (LEGENDRE[16][0] - 0.5)
    mean = np.sum(LEGENDRE[16][1] * np.exp(-(np.expand_dims(middle, -1) + steps / 2) * steps), axis=-1)
    return narrow, width, norm_logpdf(middle) + np.log(mean)


def log_mass(a: Value, b: Value) -> Value:
    """Return the logarithm of the probability of a normal number from a to b."""
    narrow, width, mean = narrow_mass(a, b)
    return either(narrow, np.log(width) + mean, log_wide_mass(either(narrow, -1.0, a), either(narrow, 1.0, b)))


def mass_ratio(a: Value, b: Value, total: Value) -> Value:
    """Return the probability of a normal number from a to b, over one with a logarithm."""
    narrow, width, mean = narrow_mass(a, b)
    wide = log_wide_mass(either(narrow, -1.0, a), either(narrow, 1.0, b))
    return either(narrow, width, 1.0) * np.exp(either(narrow, mean, wide) - total)


def log_wide_mass(a: Value, b: Value) -> Value:
    """Return the logarithm of the probability of a normal number from a to b: by one tail, or by 1 less both."""
    a, b = level_at_infinity(a), level_at_infinity(b)
    right, left = a > 0, b <= 0
    central = ~(right | left)
    low, high = either(right, -b, a), either(right, -a, b)
    below, above = sp.log_ndtr(either(central, -1.0, high)), sp.log_ndtr(either(central, -2.0, low))
    tail = below + np.log1p(-np.exp(above - below))
    return either(central, np.log1p(-sp.ndtr(either(central, a, -1.0)) - sp.ndtr(-either(central, b, 1.0))), tail)


def truncnorm_ppf(q: Value, a: Value, b: Value) -> Value:
    """Return the quantile."""
    a, b = level_at_infinity(a), level_at_infinity(b)
    mass = log_mass(a, b)
    left = sp.ndtri_exp(np.logaddexp(sp.log_ndtr(a), np.log(q) + mass))
    return either(a < 0, left, -sp.ndtri_exp(np.logaddexp(sp.log_ndtr(-b), np.log1p(-q) + mass)))


def truncnorm_ends(a: Value, b: Value) -> list[Value]:
    """Return the density at both ends, and the terms that these add to the second moment: 0 at infinity."""
    mass, (a, b) = log_mass(a, b), map(level_at_infinity, (a, b))
    finite = [either(np.isinf(x), 0.0, x) for x in (a, b)]
    densities = [np.exp(norm_logpdf(x) - mass) for x in (a, b)]
    return [*densities, finite[0] * densities[0] - finite[1] * densities[1]]


def truncnorm_mean(a: Value, b: Value) -> Value:
    """Return the mean."""
    first, last, _ = truncnorm_ends(a, b)
    return first - last


def truncnorm_var(a: Value, b: Value) -> Value:
    """Return the variance."""
    first, last, second = truncnorm_ends(a, b)
    return 1 + second - (first - last) ** 2


def vonmises_cdf(x: Value, kappa: Value) -> Value:
    """Return the distribution function, which rises by 1 with each turn."""
    finite = ~np.isinf(x)
    y = either(finite, x, 0.0)
    turns = np.rint(y / (2 * np.pi))
    return either(finite, quantiles.vonmises_cdf(y - 2 * np.pi * turns, kappa) + turns, np.heaviside(x, 0.5))


def vonmises_entropy(kappa: Value) -> Value:
    """Return the entropy."""
    logarithm, mean = quantiles.scaled_i0(kappa)
    return LOG_TWO_PI + logarithm + kappa * (1 - mean)


def weibull_power(x: Value, c: Value) -> Value:
    """Return x**c, without a slope where its exponential is 0, as slopes of powers that overflow have no value."""
    found = x**c
    gone = found > GONE
    return either(gone, GONE, either(gone, 1.0, x) ** c)


def zipf_var(a: Value) -> Value:
    """Return the variance, for a > 3."""
    total = sp.zeta(a, 1.0)
    return sp.zeta(a - 2, 1.0) / total - (sp.zeta(a - 1, 1.0) / total) ** 2
