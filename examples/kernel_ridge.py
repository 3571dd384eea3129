"""Kernel regression with outliers: how wide a kernel and how large a penalty, by data that were left out.

A function f(x) = sum_j a_j k(x, x_j) with the kernel k(x, z) = exp(-(x - z)^2 / (2 w^2)) is fitted to data by

    sum_i r(f(x_i) - y_i) + p a' K a / 2,

where r grows like a square near 0 and like a distance far from it (pseudo-Huber), so that a few wrong data do little
harm. Its minimum is a root of p a + r'(K a - y) = 0, which SciPy finds; with the square alone it would be that of
kernel ridge regression, (K + p 1) a = y. The width w and the penalty p are chosen by the error on data that were left
out, minimised by their logarithms. Its gradient goes through the root: of F(a, h) = 0 it is da = -(dF/da)^-1 dF/dh dh,
one system of linear equations, whatever the solver did.

Source: Y. Bengio, Gradient-based optimization of hyperparameters, Neural computation 12, 2000, section 3.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._program import Array, command, figure
from wengert import optim
from wengert.scipy import optimize


class Result(NamedTuple):
    """Hold what was found."""

    places: Array  # shape (data,), of the data that are fitted
    values: Array  # shape (data,)
    grid: Array  # shape (points,)
    before: Array  # shape (points,), the fit with the first hyperparameters
    after: Array  # shape (points,), and with the best ones
    true: Array  # shape (points,)
    errors: tuple[float, float]  # on data that were left out, with the first and the best
    hyperparameters: Any  # the logarithms of width and penalty
    steps: int  # how many the search took
    gradient_error: float  # of the gradient at the first hyperparameters, by differences, relative


def kernel(x: Any, z: Any, width: Any) -> Any:
    """Return the kernel of all pairs."""
    return np.exp(-((x[:, None] - z[None, :]) ** 2) / (2.0 * width**2))


def slope(residuals: Any) -> Any:
    """Return r', of the pseudo-Huber loss r(e) = sqrt(1 + e^2) - 1."""
    return residuals / np.sqrt(1.0 + residuals**2)


def coefficients(h: Any, places: Array, values: Array) -> Any:
    """Return the coefficients of the fit."""
    matrix, penalty = kernel(places, places, np.exp(h["width"])), np.exp(h["penalty"])
    start = np.zeros(len(values))
    return optimize.root(lambda a: penalty * a + slope(matrix @ a - values), start, options={"xtol": 1e-12}).x


def error_left_out(h: Any, fitted: tuple[Array, Array], left_out: tuple[Array, Array]) -> Any:
    """Return the mean loss on data that were left out."""
    found = kernel(left_out[0], fitted[0], np.exp(h["width"])) @ coefficients(h, *fitted)
    return np.mean(np.sqrt(1.0 + (found - left_out[1]) ** 2) - 1.0)


def main(data: int = 60, outliers: int = 8, noise: float = 0.2, seed: int = 2) -> Result:
    """Choose the hyperparameters of a simulated regression."""
    random = np.random.default_rng(seed)

    def true(x: Array) -> Array:
        return np.sin(2.0 * x) + 2.0 * np.exp(-((x - 1.0) ** 2) / 0.1)

    x = np.sort(random.uniform(-3.0, 3.0, data))
    y = true(x) + noise * random.standard_normal(data)
    y[random.choice(data, outliers, replace=False)] += random.choice([-4.0, 4.0], outliers)
    split = (x[::2], y[::2]), (x[1::2], y[1::2])
    first = {"width": 0.5, "penalty": 0.0}

    def error(h: Any) -> Any:
        return error_left_out(h, *split)

    found = optim.minimize(error, first, method="BFGS", jit=False, options={"gtol": 1e-4})
    gradient, size = wg.grad(error)(first), 1e-4
    moved = [error({"width": 0.5 + step, "penalty": 0.0}) for step in (size, -size)]
    grid = np.linspace(-3.0, 3.0, 200)

    def fit(h: Any) -> Any:
        return kernel(grid, x[::2], np.exp(h["width"])) @ coefficients(h, *split[0])

    return Result(
        *split[0],
        grid,
        fit(first),
        fit(found.x),
        true(grid),
        (float(error(first)), float(found.fun)),
        found.x,
        int(found.nit),
        float(abs((moved[0] - moved[1]) / (2.0 * size) / gradient["width"] - 1.0)),
    )


def draw(result: Result) -> object:
    """Draw the data and the fits."""
    drawn, axes = figure(1, 1)
    axes.plot(result.places, result.values, "k.", label="data")
    axes.plot(result.grid, result.true, "k", linewidth=0.8, label="true")
    axes.plot(result.grid, result.before, "C1", label="first width and penalty")
    axes.plot(result.grid, result.after, "C0", label="best")
    axes.set(xlabel="x", ylabel="y")
    axes.legend()
    return drawn


if __name__ == "__main__":
    command(main, draw)
