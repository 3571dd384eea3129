"""Hamiltonian Monte Carlo: how much coaching helped in eight schools.

In eight schools the effect of coaching was estimated as y_j with standard error s_j. True effects are thought to follow

    theta_j ~ N(mu, tau^2),   y_j ~ N(theta_j, s_j^2),   mu ~ N(0, 20^2),   tau ~ half-Cauchy(25),

written with theta_j = mu + tau z_j and log tau, so that all parameters q are real. HMC draws from their posterior
density exp(-U(q)): q is given a random momentum p ~ N(0, 1), moves by Hamilton's equations q' = p, p' = -dU/dq in
leapfrog steps, and where it arrives is accepted with the probability min(1, exp(H - H')), H = U(q) + p^2 / 2. Chains
are lanes of `vmap`; R-hat near 1 says that they agree.

Source: R. M. Neal, MCMC using Hamiltonian dynamics, in Handbook of Markov chain Monte Carlo, 2011, figure 2; data,
model and R-hat: A. Gelman et al., Bayesian data analysis, 3rd edition, 2013, sections 5.5 and 11.4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._methods import moved
from examples._program import Array, command, figure
from wengert import random
from wengert.scipy import stats

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


class Parameters(NamedTuple):
    """Hold a point of the posterior."""

    mu: Any
    log_tau: Any
    z: Any


class Result(NamedTuple):
    """Hold draws from the posterior."""

    mu: Array  # shape (draws, chains), the mean effect
    tau: Array  # shape (draws, chains), the deviation between schools
    effects: Array  # shape (draws, chains, 8)
    accepted: Any  # the share of proposals that were
    mean_effect: Any  # the posterior mean of mu
    r_hat: Array  # of mu and of log tau


def potential(q: Parameters) -> Any:
    """Return U(q), the negative logarithm of the posterior density but for a constant."""
    tau = np.exp(q.log_tau)
    prior = stats.norm.logpdf(q.mu, 0.0, 20.0) + q.log_tau - np.log1p((tau / 25.0) ** 2)
    schools = stats.norm.logpdf(q.z) + stats.norm.logpdf(EFFECTS, q.mu + tau * q.z, ERRORS)
    return -prior - np.sum(schools)


def energy(q: Parameters, p: Parameters) -> Any:
    """Return H(q, p)."""
    return potential(q) + sum(np.sum(leaf**2) for leaf in p) / 2


def proposal(q: Parameters, p: Parameters, size: float, steps: int) -> tuple[Parameters, Parameters]:
    """Return where leapfrog steps lead."""
    force = wg.grad(potential)
    p = moved(p, force(q), -size / 2)
    for _ in range(steps):
        q = moved(q, p, size)
        p = moved(p, force(q), -size)
    return q, moved(p, force(q), size / 2)


def chain(key: Any, draws: int, size: float, steps: int) -> Any:
    """Return the draws of one chain, and which proposals were accepted."""

    def draw_next(q: Parameters, key: Any) -> tuple[Parameters, tuple[Parameters, Any]]:
        keys = random.split(key, 4)
        p = Parameters(random.normal(keys[0]), random.normal(keys[1]), random.normal(keys[2], size=8))
        new, momentum = proposal(q, p, size, steps)
        accepted = np.log(random.uniform(keys[3])) < energy(q, p) - energy(new, momentum)
        q = wg.tree.map(lambda a, b: np.where(accepted, a, b), new, q)
        return q, (q, accepted)

    first, rest = random.split(key)
    return wg.scan(draw_next, Parameters(5.0, 1.0, random.normal(first, size=8)), random.split(rest, draws))[1]


def r_hat(draws: Array) -> Any:
    """Return the root of the variance of all draws, of shape (n, chains), over that within chains."""
    between, within = np.var(np.mean(draws, axis=0), ddof=1), np.mean(np.var(draws, axis=0, ddof=1))
    return np.sqrt(1 - 1 / len(draws) + between / within)


def main(draws: int = 1000, chains: int = 8, size: float = 0.35, steps: int = 8, seed: int = 0) -> Result:
    """Draw from the posterior; the first fifth of each chain is left out."""
    sample = wg.jit(wg.vmap(lambda key: chain(key, draws, size, steps), out_axes=1))
    every, accepted = sample(random.split(random.key(seed), chains))
    q = wg.tree.map(lambda leaf: leaf[draws // 5 :], every)
    tau = np.exp(q.log_tau)
    effects, r_hats = q.mu[..., None] + tau[..., None] * q.z, np.array([r_hat(q.mu), r_hat(q.log_tau)])
    return Result(q.mu, tau, effects, np.mean(accepted), np.mean(q.mu), r_hats)


def draw(result: Result) -> object:
    """Draw the effects with their 90 % intervals beside the estimates, and tau."""
    drawn, (left, right) = figure(1, 2)
    low, middle, high = np.quantile(result.effects, [0.05, 0.5, 0.95], axis=(0, 1))
    place = np.arange(len(EFFECTS))
    left.errorbar(place - 0.15, EFFECTS, 1.645 * ERRORS, fmt="k.", linewidth=0.8, label="estimates")
    left.errorbar(place + 0.15, middle, [middle - low, high - middle], fmt="o", markersize=4, label="posterior")
    left.set(xlabel="school", ylabel="effect of coaching", xticks=place, xticklabels=list("ABCDEFGH"))
    left.legend()
    right.hist(np.ravel(result.tau), bins=40, range=(0, 30), density=True)
    right.set(xlabel="deviation between schools, tau", ylabel="density")
    return drawn


if __name__ == "__main__":
    command(main, draw)
