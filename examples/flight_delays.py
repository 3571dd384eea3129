"""A generalised linear model of more flights than fit: which of them are late, month by month, here or on Dask.

Flight i is late with probability 1 / (1 + exp(-x_i w)), where x_i holds the hour, the distance, whether it is winter
and a column for each carrier. The log-likelihood is a sum over flights, and so are its gradient, which L-BFGS takes,
and its Hessian H: the roots of the diagonal of H^-1 are standard errors. No process ever holds more than two months.

Months are drawn here, so that w is known; they have the columns of the flights that left New York in 2013. A function
that reads files takes the place of `read_month` (Parquet: docs/guides/data-that-does-not-fit.md), and nothing else
changes; results have the same bits for any number of workers.

Source: P. McCullagh and J. Nelder, Generalized linear models, 1989, chapter 4; the columns: H. Wickham, nycflights13.
"""

from __future__ import annotations

import contextlib
import importlib
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize

import wengert as wg
from examples._program import Array, command, figure
from wengert import distributed

MONTHS = 12
NAMES = ("hour", "distance", "winter", "UA", "B6", "EV", "DL", "AA", "MQ", "US")
TRUE = np.array([0.9, -0.1, 0.4, -1.5, -1.3, -0.9, -1.8, -1.7, -1.1, -2.0])


class Result(NamedTuple):
    """Hold what the flights say."""

    flights: int  # how many there are
    passes: int  # over all of them
    coefficients: Array  # shape (10,)
    standard_errors: Array  # shape (10,)
    largest_slope: float  # the greatest element of the gradient of a flight's mean loss, at the end


class Months:
    """Draw the flights of a month, the same ones each time."""

    def __init__(self, flights: int) -> None:
        self.flights = flights

    def __call__(self, month: int) -> tuple[Array, Array]:
        """Return what is known of the flights of a month, of shape (flights, 10), and whether they were late."""
        rng = np.random.default_rng(month)
        hour, distance = rng.uniform(-1.0, 1.0, self.flights), rng.gamma(2.0, 0.5, self.flights)
        winter = np.full(self.flights, float(month in (0, 1, 11)))
        carrier = np.eye(7)[rng.integers(7, size=self.flights)]
        x = np.column_stack([hour, distance, winter, carrier])
        late = rng.random(self.flights) < 1.0 / (1.0 + np.exp(-(x @ TRUE)))
        return x, late.astype(float)


def loss(w: Array, x: Array, late: Array) -> Any:
    """Return the negative log-likelihood of some flights."""
    eta = x @ w
    return np.sum(np.logaddexp(0.0, eta) - late * eta)


def curvature(w: Array, x: Array, late: Array) -> Any:
    """Return the Hessian of their loss, a sum over them, too."""
    return wg.hessian(loss)(w, x, late)


def main(flights: int = 28_000, workers: int = 0) -> Result:
    """Fit the model to so many flights a month, on threads here or on so many workers of Dask's."""
    client: Any = contextlib.nullcontext()
    if workers:
        client = importlib.import_module("distributed").Client(n_workers=workers, threads_per_worker=1)
    with client as there:
        data = distributed.partitions((MONTHS, Months(flights)), names="month {}".format)
        run = distributed.value_and_grad(loss, data, reduce="mean", client=there)
        options = {"ftol": 0.0, "gtol": 1e-8}
        found = minimize(run, np.zeros(len(TRUE)), jac=True, method="L-BFGS-B", options=options)
        hessian = distributed.total(curvature, data, there)(found.x)
    errors = np.sqrt(np.diag(np.linalg.inv(hessian)))
    return Result(run.rows, found.nfev, found.x, errors, float(np.max(np.abs(found.jac))))


def draw(result: Result) -> object:
    """Draw the coefficients with their intervals, and those that months were drawn with."""
    drawn, ax = figure(1, 1)
    places = np.arange(len(NAMES))
    ax.errorbar(places, result.coefficients, yerr=1.96 * result.standard_errors, fmt="o", capsize=4, label="95 %")
    ax.plot(places, TRUE, "k_", markersize=16, label="true")
    ax.set_xticks(places, NAMES)
    ax.set(ylabel="log-odds of being late")
    ax.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
