"""Logistic regression with standard errors: seals of a rocket's boosters in the cold.

On 23 flights before Challenger's last, O-rings were damaged or not. The probability of damage at temperature t is p(t)
= 1 / (1 + exp(-(a + b t))), and (a, b) maximise the log-likelihood

    l(a, b) = sum_i y_i log p(t_i) + (1 - y_i) log(1 - p(t_i)).

Estimates of maximum likelihood are about normal, with the covariance H^-1, where H is the Hessian of -l: the roots of
its diagonal are standard errors. A function g of the parameters has the variance g'^T H^-1 g' (the delta method), here
the log-odds of damage at each temperature; on that morning it was 31 degrees Fahrenheit.

Source: S. Dalal, E. Fowlkes and B. Hoadley, Risk analysis of the space shuttle: pre-Challenger prediction of failure,
Journal of the American Statistical Association 84, 1989.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim
from wengert.scipy.special import expit, log_expit

TEMPERATURE = np.array(
    [66, 70, 69, 68, 67, 72, 73, 70, 57, 63, 70, 78, 67, 53, 67, 75, 70, 81, 76, 79, 75, 76, 58], dtype=float
)
DAMAGE = np.array([0, 1, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 1], dtype=float)


class Result(NamedTuple):
    """Hold what the data say."""

    parameters: Array  # the estimates of a and b
    standard_errors: Array  # of both
    temperatures: Array  # shape (n,), in degrees Fahrenheit
    probability: Array  # shape (n,), of damage at each
    low: Array  # shape (n,), the lower end of its 95 % interval
    high: Array  # shape (n,), the upper end


def log_odds(parameters: Array, temperature: Array) -> Any:
    """Return a + b t."""
    return parameters[0] + parameters[1] * temperature


def negative_log_likelihood(parameters: Array) -> Any:
    """Return -l(a, b)."""
    eta = log_odds(parameters, TEMPERATURE)
    return -np.sum(DAMAGE * log_expit(eta) + (1 - DAMAGE) * log_expit(-eta))


def main(points: int = 101) -> Result:
    """Fit the model, and predict the probability of damage at some temperatures with 95 % intervals."""
    found = optim.minimize(negative_log_likelihood, np.zeros(2), method="trust-exact")
    covariance = np.linalg.inv(wg.hessian(negative_log_likelihood)(found.x))
    temperatures = np.linspace(31.0, 81.0, points)
    eta = log_odds(found.x, temperatures)
    slopes = wg.jacobian(log_odds)(found.x, temperatures)
    error = np.sqrt(np.einsum("ni,ij,nj->n", slopes, covariance, slopes))
    low, high = expit(eta - 1.96 * error), expit(eta + 1.96 * error)
    return Result(found.x, np.sqrt(np.diag(covariance)), temperatures, expit(eta), low, high)


def draw(result: Result) -> object:
    """Draw the flights, and the probability with its interval."""
    drawn, ax = figure(1, 1)
    ax.fill_between(result.temperatures, result.low, result.high, alpha=0.2, label="95 %")
    ax.plot(result.temperatures, result.probability, label="probability of damage")
    ax.plot(TEMPERATURE, DAMAGE, "k|", markersize=12, label="flights")
    ax.axvline(31.0, linestyle=":", color="gray")
    ax.set(xlabel="temperature at launch [F]", ylabel="damage of seals")
    ax.legend(loc="center right")
    return drawn


if __name__ == "__main__":
    command(main, draw)
