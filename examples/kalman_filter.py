"""Kalman filter: the level of the Nile, with variances of maximum likelihood.

The yearly flow y_t at Aswan, 1871 to 1970, is a level that wanders, seen with noise:

    y_t = a_t + e_t,      e_t ~ N(0, s_e^2)
    a_(t+1) = a_t + n_t,  n_t ~ N(0, s_n^2).

Given y_1 .. y_(t-1), the level is normal with mean m and variance p, and the surprise v = y_t - m has the variance f =
p + s_e^2. The filter goes on with m + v p / f and p (1 - p / f) + s_n^2, and the log-likelihood is the sum of -(log(2
pi f) + v^2 / f) / 2 over t. It is maximised over the logarithms of both variances, with gradients through the filter;
the inverse of its Hessian gives their standard errors.

Source: J. Durbin and S. J. Koopman, Time series analysis by state space methods, 2nd edition, 2012, chapter 2; they
find s_e^2 = 15099 and s_n^2 = 1469.1. Data: G. W. Cobb, The problem of the Nile, Biometrika 65, 1978.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim

# fmt: off
FLOW = np.array([  # in 10^8 cubic metres
    1120, 1160, 963, 1210, 1160, 1160, 813, 1230, 1370, 1140, 995, 935, 1110, 994, 1020, 960, 1180, 799, 958, 1140,
    1100, 1210, 1150, 1250, 1260, 1220, 1030, 1100, 774, 840, 874, 694, 940, 833, 701, 916, 692, 1020, 1050, 969,
    831, 726, 456, 824, 702, 1120, 1100, 832, 764, 821, 768, 845, 864, 862, 698, 845, 744, 796, 1040, 759,
    781, 865, 845, 944, 984, 897, 822, 1010, 771, 676, 649, 846, 812, 742, 801, 1040, 860, 874, 848, 890,
    744, 749, 838, 1050, 918, 986, 797, 923, 975, 815, 1020, 906, 901, 1170, 912, 746, 919, 718, 714, 740,
], dtype=float)
# fmt: on


class Variances(NamedTuple):
    """Hold the logarithms of the variances."""

    noise: float
    level: float


class Result(NamedTuple):
    """Hold the fitted model."""

    noise: float  # the variance of the noise, s_e^2
    level: float  # that of the level's steps, s_n^2
    standard_errors: Array  # of the logarithms of both
    log_likelihood: float  # of all years but the first, from which the level begins
    means: Array  # shape (years,), the level given the years so far
    deviations: Array  # shape (years,), its standard deviation


def filtered(logs: Variances, flow: Array) -> tuple[Array, Array, Array]:
    """Return the log-likelihood, and the means and variances of the level given the years so far."""
    noise, level = np.exp(logs.noise), np.exp(logs.level)

    def step(state: tuple[Array, Array, Array], y: Array) -> tuple[tuple[Array, Array, Array], tuple[Array, Array]]:
        total, mean, variance = state
        surprise, spread = y - mean, variance + noise
        mean = mean + surprise * variance / spread
        variance = variance * (1 - variance / spread)
        total = total - (np.log(2 * np.pi * spread) + surprise**2 / spread) / 2
        return (total, mean, variance + level), (mean, variance)

    (total, _, _), (means, variances) = wg.scan(step, (0.0, flow[0], noise + level), flow[1:])
    return total, np.append(flow[0], means), np.append(noise, variances)


def main(years: int = 100) -> Result:
    """Fit the model to the first years."""
    flow = FLOW[:years]

    def loss(logs: Variances) -> Array:
        return -filtered(logs, flow)[0]

    start = Variances(noise=np.log(np.var(flow)), level=np.log(np.var(flow)))
    found = optim.minimize(loss, start)
    vector, back = wg.tree.ravel(found.x)
    hessian = wg.hessian(lambda x: loss(back(x)))(vector)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    total, means, variances = filtered(found.x, flow)
    return Result(np.exp(found.x.noise), np.exp(found.x.level), errors, float(total), means, np.sqrt(variances))


def draw(result: Result) -> object:
    """Draw the flow, and the level with two standard deviations."""
    drawn, ax = figure(1, 1)
    years = 1871 + np.arange(len(result.means))
    ax.fill_between(
        years, result.means - 2 * result.deviations, result.means + 2 * result.deviations, alpha=0.2, label="95 %"
    )
    ax.plot(years, result.means, label="level")
    ax.plot(years, FLOW[: len(years)], "k.", markersize=3, label="flow")
    ax.set(xlabel="year", ylabel="flow of the Nile [$10^8$ m$^3$]")
    ax.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
