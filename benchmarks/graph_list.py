"""The programs of `python -m benchmarks graphs`: scalar functions whose gradients are traced.

Mixture, recurrent network and reprojection are those of GradBench (Srajer, Kukelova and Fitzgibbon 2018, "A benchmark
of selected algorithmic differentiation tools on some problems in computer vision and machine learning", OMS 33).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

__all__ = ["EXAMPLES", "Example"]


class Example(NamedTuple):
    """Hold a scalar function with its arguments, all of which are differentiated; `twice` if also a second time."""

    name: str
    function: Callable[..., Any]
    arguments: Sequence[Any]
    twice: bool = True


def mixture(points: Any) -> Callable[..., Any]:
    """Return the log-density of a mixture of normal distributions, by weights, means and triangular factors."""
    dimension = points.shape[1]
    rows, columns = np.tril_indices(dimension, -1)

    def log_density(weights: Any, means: Any, factors: Any) -> Any:
        logarithms, below = factors[:, :dimension], factors[:, dimension:]
        triangles = np.zeros((len(means), dimension, dimension), like=means)
        triangles[:, rows, columns] = below
        triangles[:, np.arange(dimension), np.arange(dimension)] = np.exp(logarithms)
        scaled = np.einsum("kij,nkj->nki", triangles, points[:, None, :] - means)
        terms = weights + np.sum(logarithms, axis=1) - 0.5 * np.sum(scaled**2, axis=2)
        prior = 0.5 * np.sum(np.exp(logarithms) ** 2) + 0.5 * np.sum(below**2) - np.sum(logarithms)
        return np.sum(log_sum_exp(terms)) - len(points) * log_sum_exp(weights) - prior

    return log_density


def log_sum_exp(x: Any) -> Any:
    """Return the logarithm of the sum of exponentials along the last axis."""
    top = np.max(x, axis=-1)
    return top + np.log(np.sum(np.exp(x - top[..., None]), axis=-1))


def recurrent(sequence: Any) -> Callable[..., Any]:
    """Return the mean loss of layers of long short-term memory that predict the next of a sequence of vectors."""

    def loss(weights: Any, state: Any, ends: Any) -> Any:
        total = 0.0
        hidden, cell = list(state[0]), list(state[1])
        for now, following in itertools.pairwise(sequence):
            x = now * ends[0]
            for layer in range(len(weights)):
                forget, keep, out, change = weights[layer][:, 0] * x + weights[layer][:, 1]
                cell[layer] = cell[layer] * sigmoid(forget + hidden[layer]) + sigmoid(keep) * np.tanh(change)
                hidden[layer] = x = sigmoid(out) * np.tanh(cell[layer])
            predicted = x * ends[1] + ends[2]
            total = total + np.sum(following * (predicted - np.log(np.sum(np.exp(predicted)) + 2)))
        return -total / (sequence.shape[0] - 1)

    return loss


def sigmoid(x: Any) -> Any:
    """Return the logistic function."""
    return 1 / (1 + np.exp(-x))


def reprojection(features: Any) -> Callable[..., Any]:
    """Return half the squared error of points seen by cameras that are rotated, moved and distort."""

    def error(rotations: Any, centres: Any, points: Any, lenses: Any) -> Any:
        seen = rotated(rotations, points - centres)
        plane = seen[:, :2] / seen[:, 2:]
        radius = np.sum(plane**2, axis=1)
        distortion = 1 + lenses[:, 0] * radius + lenses[:, 1] * radius**2
        projected = plane * distortion[:, None] * lenses[:, 2:3] + lenses[:, 3:]
        return 0.5 * np.sum((projected - features) ** 2)

    return error


def rotated(rotations: Any, x: Any) -> Any:
    """Return vectors turned about axes by their lengths (Rodrigues's formula)."""
    squared = np.sum(rotations**2, axis=1)[:, None]
    angle = np.sqrt(np.where(squared > 0, squared, 1.0))
    axis = rotations / angle
    along = np.sum(axis * x, axis=1)[:, None] * (1 - np.cos(angle))
    turned = x * np.cos(angle) + np.cross(axis, x) * np.sin(angle) + axis * along
    return np.where(squared > 0, turned, x + np.cross(rotations, x))


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
        return np.mean(log_sum_exp(scores) - scores[rows, labels])

    return loss


def made() -> list[Example]:
    """Return the programs, with data from a seed."""
    generator = np.random.default_rng(0)
    normal = generator.normal
    points, sequence, features = normal(size=(100, 3)), normal(size=(4, 8)), normal(size=(50, 2))
    labels = generator.integers(1000, size=4096)
    components = normal(size=5), normal(size=(5, 3)), normal(size=(5, 6))
    layers = normal(size=(2, 4, 2, 8)), normal(size=(2, 2, 8)), normal(size=(3, 8))
    scene = *normal(size=(3, 50, 3)), normal(size=(50, 5))
    return [
        Example("mixture", mixture(points), components),
        Example("recurrent network", recurrent(sequence), layers),
        Example("reprojection", reprojection(features), scene),
        Example("determinant by minors", determinant, (normal(size=(7, 7)),), twice=False),
        Example("cross-entropy", cross_entropy(labels), (normal(size=(4096, 1000)),)),
    ]


EXAMPLES = made()
