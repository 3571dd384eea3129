"""Distributions of numbers, in the order of their names in SciPy; formulas as `Continuous` and `Discrete` take them.

Formulas are SciPy's, where these are good to some roundings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special as sp

from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_concrete, raw
from wengert.primitives.special import quantiles
from wengert.primitives.special.densities import beta_density_at, gamma_density_at
from wengert.scipy._distributions import (
    Continuous,
    Discrete,
    all_of,
    either,
    evaluate_where,
    from_logarithm,
    known_truth,
    log_of_smaller,
    propagate_nan,
    select_defined,
)

STEEP = 700.0
"""From there on exp(-exp(x)) is 0, and so is each of its derivatives."""
LEAST_PLACE = 1e-100
"""Nearer to 0 distributions of 1/x are flat, whose slopes 1/x^2 would be infinite."""
FAR = 1e17
"""From there on 1 + |x| is |x|, and 1 + x^2 is x^2, to all digits and orders."""
LOG_TWO_PI = math.log(2 * math.pi)
LOG_TWO = math.log(2.0)
EULER = float(np.euler_gamma)
LOG_GAMMA = sp.zeta(np.arange(2.0, 22)) * (-1) ** np.arange(2.0, 22) / np.arange(2.0, 22)
"""Coefficients of the powers from 2 of the logarithm of gamma(1 + x); that of x is `-EULER`."""

Value = Any


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
    computation of binomial probabilities, 2000); where m is the smaller one for 1/x, whose terms are not large.
    """
    few = (n < MANY) & (m < MANY)
    if known_truth(few):
        found = m / 2 * np.log(m) + n / 2 * np.log(n) - (n + m) / 2 * np.log(m + n * x) - sp.betaln(n / 2, m / 2)
        return n / 2 - 1, found, True
    a, b = n / 2, m / 2
    s = a + b
    at_end = (b >= a) | ((x < 1) & (n < MANY)) | (x < LEAST_PLACE)
    place = either(at_end, x, 1 / either(at_end, 1.0, x))
    factors = 0.5 * (np.log(a) - np.log1p(a / b) - LOG_TWO_PI)
    rest = factors + (stirling_error(s) - stirling_error(b) - stirling_error(a))
    return either(at_end, a - 1, -b - 1), rest - deviance((place - 1) * either(at_end, a, b), s), at_end


def f_logpdf(x: Value, dfn: Value, dfd: Value) -> Value:
    """Return the logarithm of the density."""
    power, rest, _ = f_parts(x, dfn, dfd)
    return rest + sp.xlogy(power, x)


def f_pdf(x: Value, n: Value, m: Value) -> Value:
    """Return the density; near its end by a power of x."""
    power, rest, at_end = f_parts(x, n, m)
    if at_end is True:
        return x**power * np.exp(rest)
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
    product = c * either((c == 0) & np.isinf(x), 0.0, x)
    small = np.abs(product) < 0.1
    near = x * sp.hyp2f1(1.0, 1.0, 2.0, -either(small, product, 0.0))
    return either(small, near, np.log1p(either(small, 0.0, product)) / either(small, 1.0, c))


def limit_steepness(x: Value) -> Value:
    """Return x, and `STEEP` where it is more; NaN keeps a slope, which `numpy.minimum` gives none."""
    return either(x > STEEP, STEEP, x)


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


def genpareto_pdf(x: Value, c: Value) -> Value:
    """Return the density: a power of the distance to its upper end, if it is nearer to that than to 0."""
    near = 1 + c * x < 0.5
    power = -1 - 1 / either(near, c, -1.0)
    return either(near, either(near, 1 + c * x, 1.0) ** power, np.exp(-(c + 1) * log_ratio(c, either(near, 0.0, x))))


def invgauss_tails(x: Value, mu: Value) -> tuple[Value, Value]:
    """Return the normal number whose tail both probabilities share, and the logarithm of the second term of each."""
    root = np.sqrt(x)
    return (x / mu - 1) / root, 2 / mu + sp.log_ndtr(-(x / mu + 1) / root)


def invgauss_logcdf(x: Value, mu: Value) -> Value:
    """Return the logarithm of the distribution function."""
    at, more = invgauss_tails(x, mu)
    found = sp.log_ndtr(at)
    return found + np.log1p(np.exp(more - found))


def invgauss_logsf(x: Value, mu: Value) -> Value:
    """Return the logarithm of the probability of more than x."""
    at, less = invgauss_tails(np.maximum(x, LEAST_PLACE), mu)
    found = sp.log_ndtr(-at)
    return found + np.log1p(-np.exp(less - found))


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
    return either(normal, norm_logpdf(x), found)


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


def log_mass(a: Value, b: Value) -> Value:
    """Return the logarithm of the probability of a normal number from a to b: by one tail, or by 1 less both."""
    right, left = a > 0, b <= 0
    central = ~(right | left)
    low, high = either(right, -b, a), either(right, -a, b)
    below, above = sp.log_ndtr(either(central, -1.0, high)), sp.log_ndtr(either(central, -2.0, low))
    tail = below + np.log1p(-np.exp(above - below))
    return either(central, np.log1p(-sp.ndtr(either(central, a, -1.0)) - sp.ndtr(-either(central, b, 1.0))), tail)


def truncnorm_ppf(q: Value, a: Value, b: Value) -> Value:
    """Return the quantile."""
    mass = log_mass(a, b)
    left = sp.ndtri_exp(np.logaddexp(sp.log_ndtr(a), np.log(q) + mass))
    return either(a < 0, left, -sp.ndtri_exp(np.logaddexp(sp.log_ndtr(-b), np.log1p(-q) + mass)))


def truncnorm_ends(a: Value, b: Value) -> list[Value]:
    """Return the density at both ends, and the terms that these add to the second moment: 0 at infinity."""
    mass = log_mass(a, b)
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


CONTINUOUS = {
    found.name: found
    for found in (
        Continuous(
            "beta",
            lower=0.0,
            upper=1.0,
            logpdf=lambda x, a, b: sp.xlog1py(b - 1.0, -x) + sp.xlogy(a - 1.0, x) - sp.betaln(a, b),
            pdf=lambda x, a, b: x ** (a - 1.0) * (1.0 - x) ** (b - 1.0) * np.exp(-sp.betaln(a, b)),
            cdf=lambda x, a, b: sp.betainc(a, b, x),
            sf=lambda x, a, b: sp.betaincc(a, b, x),
            ppf=lambda q, a, b: sp.betaincinv(a, b, q),
            isf=lambda q, a, b: sp.betainccinv(a, b, q),
            entropy=lambda a, b: (
                sp.betaln(a, b) - (a - 1) * sp.digamma(a) - (b - 1) * sp.digamma(b) + (a + b - 2) * sp.digamma(a + b)
            ),
            mean=lambda a, b: a / (a + b),
            var=lambda a, b: a * b / ((a + b) * (a + b) * (a + b + 1)),
        ),
        Continuous(
            "cauchy",
            symmetric=True,
            logpdf=lambda x: -math.log(math.pi) - log_growth(x),
            cdf=lambda x: np.arctan2(1.0, -x) / np.pi,
            logcdf=lambda x: arctangent_tail(-x, 1.0, lambda x: np.arctan2(1.0, -x) / np.pi),
            ppf=lambda q: either(q < 0.25, -1 / np.tan(np.pi * q), np.tan(np.pi * (q - 0.5))),
            entropy=lambda: math.log(4 * math.pi),
            mean=lambda: math.nan,
            var=lambda: math.nan,
        ),
        Continuous(
            "chi2",
            lower=0.0,
            logpdf=lambda x, df: sp.xlogy(df / 2.0 - 1, x) - x / 2.0 - sp.gammaln(df / 2.0) - (LOG_TWO * df) / 2.0,
            pdf=lambda x, df: x ** (df / 2.0 - 1) * np.exp(-x / 2.0 - sp.gammaln(df / 2.0) - (LOG_TWO * df) / 2.0),
            cdf=lambda x, df: sp.chdtr(df, x),
            sf=lambda x, df: sp.chdtrc(df, x),
            ppf=lambda q, df: 2 * sp.gammaincinv(df / 2, q),
            isf=lambda q, df: sp.chdtri(df, q),
            entropy=chi2_entropy,
            mean=lambda df: df,
            var=lambda df: 2 * df,
        ),
        Continuous(
            "expon",
            lower=0.0,
            logpdf=lambda x: -x,
            cdf=lambda x: -np.expm1(-x),
            sf=lambda x: np.exp(-x),
            logsf=lambda x: -x,
            ppf=lambda q: -np.log1p(-q),
            isf=lambda q: -np.log(q),
            entropy=lambda: 1.0,
            mean=lambda: 1.0,
            var=lambda: 1.0,
        ),
        Continuous(
            "f",
            lower=0.0,
            logpdf=f_logpdf,
            pdf=f_pdf,
            cdf=lambda x, n, m: sp.fdtr(n, m, x),
            sf=lambda x, n, m: sp.fdtrc(n, m, x),
            ppf=lambda q, n, m: sp.fdtri(n, m, q),
            entropy=f_entropy,
            mean=lambda _n, m: evaluate_where(m > 2, m, 3.0, lambda m: m / (m - 2)),
            var=lambda n, m: evaluate_where(
                m > 4, m, 5.0, lambda m: 2 * m * m * (n + m - 2) / (n * (m - 2) * (m - 2) * (m - 4))
            ),
        ),
        Continuous(
            "gamma",
            lower=0.0,
            logpdf=lambda x, a: sp.xlogy(a - 1.0, x) - x - sp.gammaln(a),
            pdf=lambda x, a: x ** (a - 1.0) * np.exp(-x - sp.gammaln(a)),
            cdf=lambda x, a: sp.gammainc(a, x),
            sf=lambda x, a: sp.gammaincc(a, x),
            ppf=lambda q, a: sp.gammaincinv(a, q),
            isf=lambda q, a: sp.gammainccinv(a, q),
            entropy=lambda a: sp.digamma(a) * (1 - a) + a + sp.gammaln(a),
            mean=lambda a: a,
            var=lambda a: a,
        ),
        Continuous(
            "genextreme",
            valid=np.isfinite,
            lower=lambda c: evaluate_where(c < 0, c, -1.0, lambda c: 1.0 / c, -np.inf),
            upper=lambda c: evaluate_where(c > 0, c, 1.0, lambda c: 1.0 / c),
            open_below=True,
            logpdf=genextreme_logpdf,
            logcdf=lambda x, c: -np.exp(-log_ratio(-c, x)),
            cdf=lambda x, c: np.exp(-np.exp(limit_steepness(-log_ratio(-c, x)))),
            sf=lambda x, c: -np.expm1(-np.exp(limit_steepness(-log_ratio(-c, x)))),
            ppf=lambda q, c: -sp.boxcox(-np.log(q), c),
            isf=lambda q, c: -sp.boxcox(-np.log1p(-q), c),
            entropy=lambda c: EULER * (1 - c) + 1,
            mean=genextreme_mean,
            var=genextreme_var,
        ),
        Continuous(
            "genpareto",
            valid=np.isfinite,
            lower=0.0,
            upper=lambda c: evaluate_where(c < 0, c, -1.0, lambda c: -1.0 / c),
            logpdf=lambda x, c: -(c + 1) * log_ratio(c, x),
            pdf=genpareto_pdf,
            cdf=lambda x, c: -np.expm1(-log_ratio(c, x)),
            sf=lambda x, c: np.exp(-log_ratio(c, x)),
            logsf=lambda x, c: -log_ratio(c, x),
            ppf=lambda q, c: -sp.boxcox1p(-q, -c),
            isf=lambda q, c: -sp.boxcox(q, -c),
            entropy=lambda c: 1 + c,
            mean=lambda c: evaluate_where(c < 1, c, 0.0, lambda c: 1 / (1 - c)),
            var=lambda c: evaluate_where(c < 0.5, c, 0.0, lambda c: 1 / (1 - c) ** 2 / (1 - 2 * c), propagate_nan(c)),
        ),
        Continuous(
            "gumbel_l",
            logpdf=lambda x: x - np.exp(x),
            cdf=lambda x: -np.expm1(-np.exp(limit_steepness(x))),
            sf=lambda x: np.exp(-np.exp(limit_steepness(x))),
            logsf=lambda x: -np.exp(x),
            ppf=lambda q: np.log(-np.log1p(-q)),
            isf=lambda q: np.log(-np.log(q)),
            entropy=lambda: EULER + 1.0,
            mean=lambda: -EULER,
            var=lambda: math.pi**2 / 6,
        ),
        Continuous(
            "gumbel_r",
            logpdf=lambda x: -x - np.exp(-x),
            cdf=lambda x: np.exp(-np.exp(limit_steepness(-x))),
            logcdf=lambda x: -np.exp(-x),
            sf=lambda x: -np.expm1(-np.exp(limit_steepness(-x))),
            ppf=lambda q: -np.log(-np.log(q)),
            isf=lambda q: -np.log(-np.log1p(-q)),
            entropy=lambda: EULER + 1.0,
            mean=lambda: EULER,
            var=lambda: math.pi**2 / 6,
        ),
        Continuous(
            "halfcauchy",
            lower=0.0,
            logpdf=lambda x: math.log(2.0 / math.pi) - log_growth(x),
            cdf=lambda x: 2.0 / math.pi * np.arctan(x),
            sf=lambda x: 2.0 / math.pi * np.arctan2(1.0, x),
            logsf=lambda x: arctangent_tail(x, 2.0, lambda x: 2.0 / math.pi * np.arctan(x)),
            ppf=lambda q: np.tan(math.pi / 2 * q),
            isf=lambda q: 1.0 / np.tan(math.pi * q / 2),
            entropy=lambda: math.log(2 * math.pi),
            mean=lambda: math.inf,
            var=lambda: math.inf,
        ),
        Continuous(
            "halfnorm",
            lower=0.0,
            logpdf=lambda x: 0.5 * math.log(2.0 / math.pi) - x * x / 2.0,
            cdf=lambda x: sp.erf(x / math.sqrt(2)),
            sf=lambda x: 2 * sp.ndtr(-x),
            logsf=lambda x: LOG_TWO + sp.log_ndtr(-x),
            ppf=lambda q: sp.ndtri((1 + q) / 2.0),
            isf=lambda q: -sp.ndtri(q / 2),
            entropy=lambda: 0.5 * math.log(math.pi / 2.0) + 0.5,
            mean=lambda: math.sqrt(2.0 / math.pi),
            var=lambda: 1 - 2.0 / math.pi,
        ),
        Continuous(
            "invgamma",
            lower=0.0,
            open_below=True,
            logpdf=lambda x, a: -(a + 1) * np.log(x) - sp.gammaln(a) - 1.0 / x,
            cdf=lambda x, a: sp.gammaincc(a, 1.0 / np.maximum(x, LEAST_PLACE)),
            sf=lambda x, a: sp.gammainc(a, 1.0 / np.maximum(x, LEAST_PLACE)),
            ppf=lambda q, a: 1.0 / sp.gammainccinv(a, q),
            isf=lambda q, a: 1.0 / sp.gammaincinv(a, q),
            entropy=lambda a: a - (a + 1.0) * sp.digamma(a) + sp.gammaln(a),
            mean=lambda a: evaluate_where(a > 1, a, 2.0, lambda a: 1.0 / (a - 1)),
            var=lambda a: evaluate_where(a > 2, a, 3.0, lambda a: 1.0 / (a - 1.0) ** 2 / (a - 2.0)),
        ),
        Continuous(
            "invgauss",
            lower=0.0,
            open_below=True,
            logpdf=lambda x, mu: -0.5 * LOG_TWO_PI - 1.5 * np.log(x) - 0.5 * (np.sqrt(x) / mu - 1 / np.sqrt(x)) ** 2,
            cdf=lambda x, mu: from_logarithm(invgauss_logcdf(x, mu)),
            sf=lambda x, mu: from_logarithm(invgauss_logsf(x, mu)),
            logcdf=invgauss_logcdf,
            logsf=invgauss_logsf,
            ppf=lambda q, mu: apply(quantiles.invgauss_ppf, q, mu),
            isf=lambda q, mu: apply(quantiles.invgauss_isf, q, mu),
            entropy=invgauss_entropy,
            mean=lambda mu: mu,
            var=lambda mu: mu**3,
        ),
        Continuous(
            "laplace",
            symmetric=True,
            logpdf=lambda x: -np.abs(x) - LOG_TWO,
            cdf=laplace_cdf,
            logcdf=laplace_logcdf,
            ppf=laplace_ppf,
            entropy=lambda: LOG_TWO + 1,
            mean=lambda: 0.0,
            var=lambda: 2.0,
        ),
        Continuous(
            "logistic",
            symmetric=True,
            logpdf=logistic_logpdf,
            cdf=lambda x: sp.expit(x),
            logcdf=lambda x: sp.log_expit(x),
            ppf=lambda q: sp.logit(q),
            entropy=lambda: 2.0,
            mean=lambda: 0.0,
            var=lambda: math.pi**2 / 3,
        ),
        Continuous(
            "lognorm",
            lower=0.0,
            open_below=True,
            logpdf=lambda x, s: -(np.log(x) ** 2) / (2 * s**2) - np.log(s * x * math.sqrt(2 * math.pi)),
            cdf=lambda x, s: sp.ndtr(np.log(x) / s),
            logcdf=lambda x, s: sp.log_ndtr(np.log(x) / s),
            sf=lambda x, s: sp.ndtr(-np.log(x) / s),
            logsf=lambda x, s: sp.log_ndtr(-np.log(x) / s),
            ppf=lambda q, s: np.exp(s * sp.ndtri(q)),
            isf=lambda q, s: np.exp(-s * sp.ndtri(q)),
            entropy=lambda s: 0.5 * (1 + LOG_TWO_PI + 2 * np.log(s)),
            mean=lambda s: np.exp(s * s / 2),
            var=lambda s: np.exp(s * s) * np.expm1(s * s),
        ),
        Continuous(
            "loguniform",
            sample=(1.0, 2.0),
            valid=lambda a, b: (a > 0) & (a < b),
            lower=lambda a, _b: a,
            upper=lambda _a, b: b,
            logpdf=lambda x, a, b: -np.log(x) - np.log(np.log(b) - np.log(a)),
            cdf=lambda x, a, b: (np.log(x) - np.log(a)) / (np.log(b) - np.log(a)),
            ppf=lambda q, a, b: np.exp(np.log(a) + q * (np.log(b) - np.log(a))),
            entropy=lambda a, b: 0.5 * (np.log(a) + np.log(b)) + np.log(np.log(b) - np.log(a)),
            mean=lambda a, b: (b - a) / (np.log(b) - np.log(a)),
            var=loguniform_var,
        ),
        Continuous(
            "maxwell",
            lower=0.0,
            logpdf=lambda x: 0.5 * math.log(2.0 / math.pi) + 2 * np.log(x) - 0.5 * x * x,
            pdf=lambda x: math.sqrt(2.0 / math.pi) * x * x * np.exp(-0.5 * x * x),
            cdf=lambda x: sp.gammainc(1.5, x * x / 2.0),
            sf=lambda x: sp.gammaincc(1.5, x * x / 2.0),
            ppf=lambda q: np.sqrt(2 * sp.gammaincinv(1.5, q)),
            isf=lambda q: np.sqrt(2 * sp.gammainccinv(1.5, q)),
            entropy=lambda: EULER + 0.5 * LOG_TWO_PI - 0.5,
            mean=lambda: 2 * math.sqrt(2.0 / math.pi),
            var=lambda: 3 - 8 / math.pi,
        ),
        Continuous(
            "norm",
            symmetric=True,
            logpdf=norm_logpdf,
            cdf=lambda x: sp.ndtr(x),
            logcdf=lambda x: sp.log_ndtr(x),
            ppf=lambda q: sp.ndtri(q),
            entropy=lambda: 0.5 * (LOG_TWO_PI + 1),
            mean=lambda: 0.0,
            var=lambda: 1.0,
        ),
        Continuous(
            "pareto",
            lower=1.0,
            logpdf=lambda x, b: np.log(b) - (b + 1) * np.log(x),
            cdf=lambda x, b: 1 - x ** (-b),
            sf=lambda x, b: x ** (-b),
            logsf=lambda x, b: -b * np.log(x),
            ppf=lambda q, b: (1 - q) ** (-1.0 / b),
            isf=lambda q, b: q ** (-1.0 / b),
            entropy=lambda b: 1 + 1.0 / b - np.log(b),
            mean=lambda b: evaluate_where(b > 1, b, 2.0, lambda b: b / (b - 1)),
            var=lambda b: evaluate_where(b > 2, b, 3.0, lambda b: b / (b - 2.0) / (b - 1.0) ** 2),
        ),
        Continuous(
            "rayleigh",
            lower=0.0,
            logpdf=lambda x: either(np.isinf(x), -np.inf, np.log(x) - 0.5 * x * x),
            pdf=lambda x: x * np.exp(-0.5 * x * x),
            cdf=lambda x: -np.expm1(-0.5 * x * x),
            sf=lambda x: np.exp(-0.5 * x * x),
            logsf=lambda x: -0.5 * x * x,
            ppf=lambda q: np.sqrt(-2 * np.log1p(-q)),
            isf=lambda q: np.sqrt(-2 * np.log(q)),
            entropy=lambda: EULER / 2.0 + 1 - 0.5 * LOG_TWO,
            mean=lambda: math.sqrt(math.pi / 2),
            var=lambda: (4 - math.pi) / 2,
        ),
        Continuous(
            "skewnorm",
            valid=np.isfinite,
            logpdf=lambda x, a: LOG_TWO + norm_logpdf(x) + sp.log_ndtr(a * x),
            cdf=lambda x, a: apply(quantiles.skewnorm_cdf, x, a),
            sf=lambda x, a: apply(quantiles.skewnorm_cdf, -x, -a),
            ppf=lambda q, a: apply(quantiles.skewnorm_ppf, q, a),
            isf=lambda q, a: apply(quantiles.skewnorm_isf, q, a),
            mean=skewnorm_mean,
            var=lambda a: 1 - skewnorm_mean(a) ** 2,
        ),
        Continuous(
            "t",
            symmetric=True,
            logpdf=t_logpdf,
            cdf=lambda x, df: sp.stdtr(df, x),
            ppf=lambda q, df: sp.stdtrit(df, q),
            entropy=t_entropy,
            mean=lambda df: either(df > 1, 0.0, np.inf),
            var=t_variance,
        ),
        Continuous(
            "truncnorm",
            sample=(-1.0, 1.0),
            valid=lambda a, b: a < b,
            lower=lambda a, _b: a,
            upper=lambda _a, b: b,
            logpdf=lambda x, a, b: norm_logpdf(x) - log_mass(a, b),
            logcdf=lambda x, a, b: log_mass(a, x) - log_mass(a, b),
            logsf=lambda x, a, b: log_mass(x, b) - log_mass(a, b),
            cdf=lambda x, a, b: np.exp(log_mass(a, x) - log_mass(a, b)),
            sf=lambda x, a, b: np.exp(log_mass(x, b) - log_mass(a, b)),
            ppf=truncnorm_ppf,
            isf=lambda q, a, b: -truncnorm_ppf(q, -b, -a),
            entropy=lambda a, b: 0.5 * (LOG_TWO_PI + 1) + log_mass(a, b) + truncnorm_ends(a, b)[2] / 2,
            mean=truncnorm_mean,
            var=truncnorm_var,
        ),
        Continuous(
            "uniform",
            lower=0.0,
            upper=1.0,
            logpdf=lambda x: x * 0.0,
            cdf=lambda x: x,
            ppf=lambda q: q,
            entropy=lambda: 0.0,
            mean=lambda: 0.5,
            var=lambda: 1.0 / 12,
        ),
        Continuous(
            "vonmises",
            valid=lambda kappa: kappa >= 0,
            logpdf=lambda x, kappa: kappa * sp.cosm1(x) - LOG_TWO_PI - quantiles.scaled_i0(kappa)[0],
            cdf=vonmises_cdf,
            ppf=lambda q, kappa: apply(quantiles.vonmises_ppf, q, kappa),
            isf=lambda q, kappa: apply(quantiles.vonmises_isf, q, kappa),
            entropy=vonmises_entropy,
            mean=lambda _kappa: 0.0,
            var=quantiles.vonmises_var,
        ),
        Continuous(
            "weibull_min",
            lower=0.0,
            logpdf=lambda x, c: np.log(c) + sp.xlogy(c - 1, x) - x**c,
            pdf=lambda x, c: c * x ** (c - 1) * np.exp(-(x**c)),
            cdf=lambda x, c: -np.expm1(-(x**c)),
            sf=lambda x, c: np.exp(-(x**c)),
            logsf=lambda x, c: -(x**c),
            ppf=lambda q, c: (-np.log1p(-q)) ** (1.0 / c),
            isf=lambda q, c: (-np.log(q)) ** (1 / c),
            entropy=lambda c: -EULER / c - np.log(c) + EULER + 1,
            mean=lambda c: sp.gamma(1.0 + 1.0 / c),
            var=lambda c: sp.gamma(1.0 + 2.0 / c) - sp.gamma(1.0 + 1.0 / c) ** 2,
        ),
    )
}


DISCRETE = {
    found.name: found
    for found in (
        Discrete(
            "bernoulli",
            sample=(0.5,),
            lower=0.0,
            valid=lambda p: all_of(p >= 0, p <= 1),
            upper=1.0,
            logpmf=lambda k, p: sp.xlogy(k, p) + sp.xlog1py(1 - k, -p),
            pmf=lambda k, p: either(k == 0, 1 - p, p),
            cdf=lambda _k, p: 1 - p,
            sf=lambda _k, p: p,
            entropy=lambda p: sp.entr(p) + sp.entr(1 - p),
            mean=lambda p: p,
            var=lambda p: p * (1 - p),
        ),
        Discrete(
            "binom",
            sample=(1.0, 0.5),
            lower=0.0,
            valid=lambda n, p: all_of(n >= 0, np.floor(n) == n, p >= 0, p <= 1),
            upper=lambda n, _p: n,
            logpmf=lambda k, n, p: (
                sp.gammaln(n + 1) - (sp.gammaln(k + 1) + sp.gammaln(n - k + 1)) + sp.xlogy(k, p) + sp.xlog1py(n - k, -p)
            ),
            pmf=lambda k, n, p: beta_density_at(k + 1, n - k + 1, p) / (n + 1),
            cdf=lambda k, n, p: sp.betaincc(k + 1, either(k < n, n - k, 1.0), p),
            sf=lambda k, n, p: sp.betainc(k + 1, either(k < n, n - k, 1.0), p),
            mean=lambda n, p: n * p,
            var=lambda n, p: n * p * (1 - p),
        ),
        Discrete(
            "geom",
            sample=(0.5,),
            valid=lambda p: all_of(p > 0, p <= 1),
            lower=1.0,
            logpmf=lambda k, p: sp.xlog1py(k - 1, -p) + np.log(p),
            pmf=lambda k, p: (1 - p) ** (k - 1) * p,
            cdf=lambda k, p: -np.expm1(np.log1p(-p) * k),
            sf=lambda k, p: np.exp(np.log1p(-p) * k),
            entropy=lambda p: -np.log(p) - np.log1p(-p) * (1.0 - p) / p,
            mean=lambda p: 1.0 / p,
            var=lambda p: (1.0 - p) / p / p,
        ),
        Discrete(
            "nbinom",
            sample=(1.0, 0.5),
            lower=0.0,
            valid=lambda n, p: all_of(n > 0, p > 0, p <= 1),
            logpmf=lambda k, n, p: (
                sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n) + n * np.log(p) + sp.xlog1py(k, -p)
            ),
            pmf=lambda k, n, p: beta_density_at(n, k + 1, p) * p / (n + k),
            cdf=lambda k, n, p: sp.betainc(n, k + 1, p),
            sf=lambda k, n, p: sp.betaincc(n, k + 1, p),
            mean=lambda n, p: n * (1 - p) / p,
            var=lambda n, p: n * (1 - p) / (p * p),
        ),
        Discrete(
            "poisson",
            lower=0.0,
            valid=lambda mu: mu >= 0,
            logpmf=lambda k, mu: sp.xlogy(k, mu) - sp.gammaln(k + 1) - mu,
            pmf=lambda k, mu: gamma_density_at(k + 1, mu),
            cdf=lambda k, mu: sp.pdtr(k, mu),
            sf=lambda k, mu: sp.pdtrc(k, mu),
            mean=lambda mu: mu,
            var=lambda mu: mu,
        ),
    )
}
