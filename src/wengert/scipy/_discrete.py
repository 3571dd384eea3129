"""Distributions of whole numbers, in the order of their names in SciPy; formulas as `Discrete` takes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sp

from wengert.primitives.special.incomplete import beta_density_at, gamma_density_at
from wengert.scipy._distributions import Discrete, all_of, either

Value = Any


def binom_logpmf(k: Value, n: Value, p: Value) -> Value:
    """Return the logarithm of the probability."""
    combinations = sp.gammaln(n + 1) - (sp.gammaln(k + 1) + sp.gammaln(n - k + 1))
    return combinations + sp.xlogy(k, p) + sp.xlog1py(n - k, -p)


def nbinom_logpmf(k: Value, n: Value, p: Value) -> Value:
    """Return the logarithm of the probability."""
    combinations = sp.gammaln(n + k) - sp.gammaln(k + 1) - sp.gammaln(n)
    return combinations + n * np.log(p) + sp.xlog1py(k, -p)


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
            logpmf=binom_logpmf,
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
            logpmf=nbinom_logpmf,
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
