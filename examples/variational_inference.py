"""Variational inference: a gamma distribution is moved onto a posterior, by gradients through its draws.

In twenty years, ten corps of the Prussian army lost n soldiers to kicks of horses in 109, 65, 22, 3 and 1 of the 200
years of a corps, for n = 0, 1, 2, 3, 4. With n ~ Poisson(r) and r ~ Gamma(a_0, b_0) beforehand, the posterior of r is
approximated by q = Gamma(a, b), which maximises the evidence's lower bound

    E_q[log p(n, r) - log q(r; a, b)]

over log a and the logarithm of the mean a / b, estimated by draws r = F^-1(u; a) / b. A draw moves with its
distribution: dr/da = -(dF/da) / q(r), by the theorem of the implicit function, is what random numbers of this library
have as derivatives. The posterior is known here, Gamma(a_0 + sum n, b_0 + 200), and the bound is log p(n) there, so
that one sees whether the method arrives.

Source: M. Figurnov, S. Mohamed and A. Mnih, Implicit reparameterization gradients, NeurIPS 2018; data: L. von
Bortkiewicz, Das Gesetz der kleinen Zahlen, 1898.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim, random
from wengert.scipy import stats

DEATHS = np.repeat(np.arange(5), [109, 65, 22, 3, 1])
SHAPE, RATE = 2.0, 2.0
"""Of the distribution beforehand."""


class Logs(NamedTuple):
    """Hold the logarithms of shape and mean of q."""

    shape: Any
    mean: Any


class Result(NamedTuple):
    """Hold what was found."""

    shape: float  # of q
    rate: float  # of q
    exact_shape: float  # of the posterior
    exact_rate: float  # of the posterior
    bounds: Array  # shape (iterations,), the estimated lower bounds
    evidence: float  # log p(n), which they approach


def joint(r: Any) -> Any:
    """Return log p(n, r) for each of some rates."""
    data = np.sum(stats.poisson.logpmf(DEATHS, r[:, None]), axis=1)
    return data + stats.gamma.logpdf(r, SHAPE, scale=1 / RATE)


def bound(logs: Logs, key: Any, draws: int) -> Any:
    """Return an estimate of the lower bound."""
    shape, scale = np.exp(logs.shape), np.exp(logs.mean - logs.shape)
    r = random.gamma(key, shape, scale, size=draws)
    return np.mean(joint(r) - stats.gamma.logpdf(r, shape, scale=scale))


def main(iterations: int = 500, draws: int = 32, seed: int = 0) -> Result:
    """Move q onto the posterior."""
    init, update = optim.adam(optim.cosine(0.3, iterations))

    @wg.jit
    def step(logs: Logs, state: Any, key: Any) -> Any:
        value, slope = wg.value_and_grad(lambda logs: -bound(logs, key, draws))(logs)
        return -value, *update(slope, state, logs)

    logs, bounds = Logs(np.log(2.0), 0.0), []
    state = init(logs)
    for key in random.split(random.key(seed), iterations):
        value, logs, state = step(logs, state, key)
        bounds.append(float(value))
    shape, rate = SHAPE + float(np.sum(DEATHS)), RATE + len(DEATHS)
    r = np.array([0.6])
    evidence = float((joint(r) - stats.gamma.logpdf(r, shape, scale=1 / rate))[0])  # log p(n, r) - log p(r | n)
    found, mean = float(np.exp(logs.shape)), float(np.exp(logs.mean))
    return Result(found, found / mean, shape, rate, np.array(bounds), evidence)


def draw(result: Result) -> object:
    """Draw the densities and the bound."""
    drawn, (left, right) = figure(1, 2)
    r = np.linspace(0.4, 0.85, 100)
    left.plot(r, stats.gamma.pdf(r, result.exact_shape, scale=1 / result.exact_rate), "k", label="posterior")
    left.plot(r, stats.gamma.pdf(r, result.shape, scale=1 / result.rate), "--", label="found")
    left.plot(r, stats.gamma.pdf(r, SHAPE, scale=1 / RATE), ":", color="gray", label="beforehand")
    left.set(xlabel="deaths for a corps and year", ylabel="density")
    left.legend()
    right.plot(result.bounds, linewidth=0.8)
    right.axhline(result.evidence, color="k", linewidth=0.8)
    right.set(xlabel="step", ylabel="lower bound", ylim=(result.evidence - 10, result.evidence + 2))
    return drawn


if __name__ == "__main__":
    command(main, draw)
