"""The programs of `python -m benchmarks graphs`: scalar functions whose gradients are traced.

Mixture, recurrent network and reprojection are made of the functions of `examples/`.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples.bundle_adjustment import residual
from examples.gaussian_mixture import log_posterior
from examples.recurrent_network import step
from wengert.scipy.special import logsumexp

__all__ = ["EXAMPLES", "Example"]


class Example(NamedTuple):
    """Hold a scalar function with its arguments, all of which are differentiated; `twice` if also a second time."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]
    twice: bool = True


def mixture(points: Any) -> Callable[..., Any]:
    """Return the log posterior of a mixture of normal distributions, by weights, means and triangular factors."""
    return lambda alphas, means, factors: log_posterior(alphas, means, factors, points, 1.0, 0.0)


def recurrent(sequence: Any) -> Callable[..., Any]:
    """Return the mean loss of layers of long short-term memory that predict the next of a sequence, step by step."""

    def loss(weights: Any, state: Any, ends: Any) -> Any:
        total = 0.0
        hidden, cell = list(state[0]), list(state[1])
        for now, following in itertools.pairwise(sequence):
            u = now * ends[0]
            for layer, (scales, biases) in enumerate(weights):
                hidden[layer], cell[layer] = step(scales, biases, hidden[layer], cell[layer], u)
                u = hidden[layer]
            predicted = u * ends[1] + ends[2]
            total = total + np.sum(following * (predicted - np.log(np.sum(np.exp(predicted)) + 2)))
        return -total / (sequence.shape[0] - 1)

    return loss


def reprojection(features: Any) -> Callable[..., Any]:
    """Return half the squared error of points seen by cameras that are rotated, moved and distort."""

    def error(cameras: Any, points: Any, weights: Any) -> Any:
        return 0.5 * np.sum(wg.vmap(residual)(cameras, points, weights, features) ** 2)

    return error


def determinant(matrix: Any) -> Any:
    """Return the determinant by minors along the first row."""
    return minor(matrix, range(len(matrix)))


def minor(matrix: Any, columns: Sequence[int]) -> Any:
    """Return the determinant of some columns of the last rows, as many, by minors along the first of these."""
    row = len(matrix) - len(columns)
    if len(columns) == 1:
        return matrix[row, columns[0]]
    total = 0.0
    for i, column in enumerate(columns):
        total = total + (-1) ** i * matrix[row, column] * minor(matrix, [*columns[:i], *columns[i + 1 :]])
    return total


def cross_entropy(labels: Any) -> Callable[..., Any]:
    """Return the mean cross-entropy of rows of scores."""

    def loss(scores: Any) -> Any:
        rows = np.arange(len(labels))
        return np.mean(logsumexp(scores, axis=-1) - scores[rows, labels])

    return loss


def made() -> list[Example]:
    """Return the programs, with data from a seed."""
    generator = np.random.default_rng(0)
    normal = generator.normal
    points, sequence, features = normal(size=(100, 3)), normal(size=(4, 8)), normal(size=(50, 2))
    labels = generator.integers(1000, size=4096)
    components = normal(size=5), normal(size=(5, 3)), normal(size=(5, 6))
    layers = normal(size=(2, 2, 4, 8)), normal(size=(2, 2, 8)), normal(size=(3, 8))
    scene = normal(size=(50, 11)), normal(size=(50, 3)), normal(size=50)
    return [
        Example("mixture", mixture(points), components),
        Example("recurrent network", recurrent(sequence), layers),
        Example("reprojection", reprojection(features), scene),
        Example("determinant by minors", determinant, (normal(size=(7, 7)),), twice=False),
        Example("cross-entropy", cross_entropy(labels), (normal(size=(4096, 1000)),)),
    ]


EXAMPLES = made()
