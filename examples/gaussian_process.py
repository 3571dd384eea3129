"""Gaussian process: the rise of carbon dioxide in the air, learned from 30 years and forecast for 14.

A Gaussian process with the covariance function k has at times t the values N(0, K), K_ij = k(t_i, t_j). Seen with noise
of variance s^2, the data y have the log marginal likelihood

    log p(y) = -(y^T A^-1 y + log det A + n log 2 pi) / 2,   A = K + s^2 I = L L^T,

which is maximised over the parameters of k and s, with gradients through Cholesky's decomposition. New times have the
mean K*^T A^-1 y and the covariance K** - K*^T A^-1 K*. The covariance function is a sum: a smooth trend, a yearly cycle
whose shape drifts, and irregularities of some years.

Source: C. E. Rasmussen and C. K. I. Williams, Gaussian processes for machine learning, 2006, algorithm 2.1 and section
5.4.3. Data: see data/co2.txt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from examples._program import DATA, Array, command, figure
from wengert import optim
from wengert.scipy.linalg import solve_triangular


@dataclass
class Logs:
    """Hold the logarithms of the parameters of the covariance function: sizes in ppm, scales in years."""

    trend_size: float = np.log(50.0)
    trend_scale: float = np.log(40.0)
    cycle_size: float = np.log(3.0)
    cycle_scale: float = np.log(80.0)
    cycle_shape: float = np.log(1.0)
    rest_size: float = np.log(0.5)
    rest_scale: float = np.log(1.0)
    noise: float = np.log(0.3)


class Result(NamedTuple):
    """Hold what was learned."""

    parameters: Logs  # the parameters' logarithms
    log_likelihood: float  # log p(y) at them
    times: Array  # shape (n,), the years of all data
    values: Array  # shape (n,), in ppm
    learned: int  # how many of these were learned from
    means: Array  # shape (n,), what is expected there
    deviations: Array  # shape (n,), the standard deviation of data there
    covered: float  # the share of the forecast data within two standard deviations


def covariance(logs: Logs, s: Array, t: Array) -> Any:
    """Return k at all pairs of times, of shape (len(s), len(t))."""
    apart = s[:, None] - t

    def bell(size: float, scale: float) -> Any:
        return np.exp(2 * size - apart**2 / (2 * np.exp(2 * scale)))

    cycle = np.exp(-2 * np.sin(np.pi * apart) ** 2 / np.exp(2 * logs.cycle_shape))
    return (
        bell(logs.trend_size, logs.trend_scale)
        + bell(logs.cycle_size, logs.cycle_scale) * cycle
        + bell(logs.rest_size, logs.rest_scale)
    )


def decomposed(logs: Logs, t: Array) -> Any:
    """Return Cholesky's factor of the covariance of data at times."""
    return np.linalg.cholesky(covariance(logs, t, t) + np.exp(2 * logs.noise) * np.eye(len(t)))


def log_likelihood(logs: Logs, t: Array, y: Array) -> Any:
    """Return log p(y)."""
    factor = decomposed(logs, t)
    white = solve_triangular(factor, y, lower=True)
    return -np.sum(white**2) / 2 - np.sum(np.log(np.diag(factor))) - len(t) * np.log(2 * np.pi) / 2


def predicted(logs: Logs, t: Array, y: Array, new: Array) -> tuple[Array, Array]:
    """Return the means and standard deviations of data at new times."""
    factor = decomposed(logs, t)
    white, cross = (solve_triangular(factor, b, lower=True) for b in (y, covariance(logs, t, new)))
    variances = np.diag(covariance(logs, new, new)) - np.sum(cross**2, axis=0) + np.exp(2 * logs.noise)
    return cross.T @ white, np.sqrt(variances)


def main(years: int = 30, iterations: int = 60) -> Result:
    """Learn from the first years, and forecast the rest."""
    values = np.loadtxt(DATA / "co2.txt").ravel()
    times = 1958.125 + np.arange(len(values)) / 4
    t, y, level = times[: 4 * years], values[: 4 * years], np.mean(values[: 4 * years])
    found = optim.minimize(
        lambda logs: -log_likelihood(logs, t, y - level), Logs(), method="L-BFGS-B", options={"maxiter": iterations}
    )
    means, deviations = predicted(found.x, t, y - level, times)
    covered = np.abs(values - level - means)[len(t) :] < 2 * deviations[len(t) :]
    return Result(found.x, -found.fun, times, values, len(t), level + means, deviations, float(np.mean(covered)))


def draw(result: Result) -> object:
    """Draw the data, and the forecast with two standard deviations."""
    drawn, ax = figure(1, 1)
    new = slice(result.learned, None)
    low, high = result.means - 2 * result.deviations, result.means + 2 * result.deviations
    ax.fill_between(result.times[new], low[new], high[new], alpha=0.3, label="95 %")
    ax.plot(result.times[new], result.means[new], label="forecast")
    ax.plot(result.times, result.values, "k", linewidth=0.6, label="data")
    ax.set(xlabel="year", ylabel="carbon dioxide [ppm]")
    ax.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
