"""Differentiate the log posterior of a mixture of normal distributions: a sum in which everything meets everything.

    python -m examples.gaussian_mixture [FILE ...] [--jit]

The precision of each component is `Q.T @ Q` with a triangular `Q`, whose diagonal is given by its logarithm. The
problem is that of ADBench (Srajer, Kukelova and Fitzgibbon 2018, "A benchmark of selected algorithmic differentiation
tools on some problems in computer vision and machine learning", OMS 33) as GradBench corrected it; files have its
inputs and the expected value and gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from examples._program import PUBLISHED, error, on_files, timed
from wengert.scipy.special import logsumexp, multigammaln

DATA = [PUBLISHED / "gmm_d2_K5.npz"]


def factors(icf: Any, dimension: int) -> Any:
    """Return the triangular matrices that rows of numbers stand for: logarithms of the diagonal, then columns below."""
    columns, rows = np.triu_indices(dimension, 1)
    diagonal = np.arange(dimension)
    q = np.zeros((len(icf), dimension, dimension), like=icf)
    q[:, diagonal, diagonal] = np.exp(icf[:, :dimension])
    q[:, rows, columns] = icf[:, dimension:]
    return q


def log_likelihood(alphas: Any, means: Any, icf: Any, x: Any) -> Any:
    """Return the logarithm of the density of points `x`."""
    count, dimension = np.shape(x)
    q = factors(icf, dimension)
    scaled = (x - means[:, None]) @ np.swapaxes(q, 1, 2)
    beta = (alphas + np.sum(icf[:, :dimension], axis=1))[:, None] - 0.5 * np.sum(scaled**2, axis=2)
    constant = dimension / 2 * np.log(2 * np.pi) + logsumexp(alphas)
    return np.sum(logsumexp(beta, axis=0)) - count * constant


def log_prior(icf: Any, dimension: int, gamma: float, m: float) -> Any:
    """Return the logarithm of the Wishart density of the precisions, of scale `1 / gamma**2`."""
    freedom = dimension + m + 1
    logarithms, below = icf[:, :dimension], icf[:, dimension:]
    constant = freedom * dimension * np.log(gamma / np.sqrt(2)) - multigammaln(freedom / 2, dimension)
    squares = np.sum(np.exp(2 * logarithms)) + np.sum(below**2)
    return len(icf) * constant - gamma**2 / 2 * squares + m * np.sum(logarithms)


def log_posterior(alphas: Any, means: Any, icf: Any, x: Any, gamma: float, m: float) -> Any:
    """Return the logarithm of the density of points, times that of the parameters."""
    return log_likelihood(alphas, means, icf, x) + log_prior(icf, np.shape(x)[1], gamma, m)


def main(paths: Sequence[Path] = DATA, jit: bool = False) -> dict[str, float]:
    """Compute value and gradient for each file, print time and error, and return the errors."""
    evaluate: Any = wg.value_and_grad(log_posterior, argnums=(0, 1, 2))
    if jit:
        evaluate = wg.jit(evaluate, static_argnums=(4, 5))
    errors = {}
    for path in paths:
        data = np.load(path)
        arguments = *(data[name] for name in ("alphas", "means", "icf", "x")), float(data["gamma"]), float(data["m"])
        (value, gradients), spent = timed(evaluate, *arguments)
        expected = [data[name] for name in ("objective", "grad_alphas", "grad_means", "grad_icf")]
        errors[path.stem] = max(map(error, (value, *gradients), expected))
        print(f"{path.stem:14} {value:20.10f} {spent:9.2f} ms   error {errors[path.stem]:.1e}")
    return errors


if __name__ == "__main__":
    on_files(main)
