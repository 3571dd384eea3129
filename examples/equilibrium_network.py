"""Equilibrium network: one layer, applied until nothing changes any more, tells two spirals apart.

In place of the layers of a deep network it has the solution z of z = tanh(W z + U x + b), whatever way leads there;
what is told of a point x is read from z by one more linear layer. Rows of W are scaled such that the sums of their
sizes are below 1, so that there is one solution. It is found by Anderson's acceleration, for each point by itself, and
its derivatives follow from the equation: with D = diag(1 - z^2), dz = (I - D W)^-1 D (dW z + dU x + db). Nothing is
kept of the iteration, and no step of it is differentiated.

Source: S. Bai, J. Z. Kolter and V. Koltun, Deep equilibrium models, NeurIPS 2019, theorem 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy import special

import wengert as wg
from examples._methods import trained
from examples._program import Array, command, figure
from wengert import optim

MOST = 0.95  # the sum of sizes of a row of W


class Network(NamedTuple):
    """Hold the weights: W, U, b, and what reads the result."""

    recurrent: Any
    inner: Any
    bias: Any
    outer: Any


class Result(NamedTuple):
    """Hold what was learned."""

    points: Array  # shape (points, 2)
    classes: Array  # shape (points,), 0 or 1
    axis: Array  # shape (places,), of the map
    probabilities: Array  # shape (places, places), of class 1
    losses: Array  # shape (iterations,)
    accuracy: float
    rounds: float  # of the iteration, the mean over points
    gradient_error: float  # of a gradient, beside that through all rounds of a plain iteration, relative


def spirals(points: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return points of two spirals, and of which they are."""
    classes, angles = np.arange(points) % 2, np.sqrt(random.uniform(0.02, 1.0, points)) * 3.0 * np.pi
    turned = angles + np.pi * classes
    places = angles[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=1) / 5.0
    return places + 0.03 * random.standard_normal((points, 2)), classes.astype(float)


def layer(z: Any, network: Network, x: Any) -> Any:
    """Return what one application of the layer makes of the states of one point."""
    w = network.recurrent
    scaled = w * (MOST / np.maximum(np.sum(np.abs(w), axis=1, keepdims=True), MOST))
    return np.tanh(scaled @ z + network.inner @ x + network.bias)


def equilibrium(network: Network, x: Any, find: Callable[..., Any] = optim.anderson) -> Any:
    """Return where the layer changes nothing, with how many rounds it took."""
    return find(layer, np.zeros(network.bias.shape), (network, x), tol=1e-8)


def score(network: Network, x: Any, find: Callable[..., Any] = optim.anderson) -> Any:
    """Return the logarithm of the odds that a point is of class 1."""
    return network.outer @ equilibrium(network, x, find).x


def loss(network: Network, points: Any, classes: Any, find: Callable[..., Any] = optim.anderson) -> Any:
    """Return the mean cross-entropy."""
    scores = wg.vmap(lambda x: score(network, x, find))(points)
    return np.mean(np.logaddexp(0.0, scores) - classes * scores)


def main(points: int = 200, states: int = 24, iterations: int = 400, places: int = 80, seed: int = 0) -> Result:
    """Train a network, and ask it about a map of places."""
    random = np.random.default_rng(seed)
    x, classes = spirals(points, random)
    recurrent, inner = random.normal(0.0, 1.0 / states, (states, states)), random.normal(0.0, 1.5, (states, 2))
    network = Network(recurrent, inner, random.normal(0.0, 1.0, states), np.zeros(states))
    rule = optim.adam(optim.cosine(0.05, iterations))
    network, losses = trained(loss, network, rule, [(x, classes)] * iterations)
    axis = np.linspace(-2.2, 2.2, places)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    scores = wg.jit(wg.vmap(score, (None, 0)))
    accuracy = np.mean((scores(network, x) > 0.0) == (classes == 1.0))
    rounds = np.mean(wg.vmap(lambda x: equilibrium(network, x).nit)(x))
    numbers = (accuracy, rounds, difference(network, x[:5], classes[:5]))
    map_of_class = special.expit(scores(network, grid)).reshape(places, places)
    return Result(x, classes, axis, map_of_class, losses, *map(float, numbers))


def difference(network: Network, points: Array, classes: Array) -> float:
    """Return how far gradients by the equation are from those through every round of a plain iteration."""
    plain = functools.partial(optim.fixed_point, differentiate="unroll")
    implicit, direct = (wg.grad(loss)(network, points, classes, find) for find in (optim.anderson, plain))
    return float(optim.norm(wg.tree.map(np.subtract, direct, implicit)) / optim.norm(direct))


def draw(result: Result) -> object:
    """Draw the points on the map of what the network tells, and the loss."""
    drawn, (left, right) = figure(1, 2)
    left.imshow(result.probabilities, extent=result.axis[[0, -1, 0, -1]], origin="lower", cmap="RdBu", alpha=0.6)
    for label, color in ((0.0, "C3"), (1.0, "C0")):
        left.plot(*result.points[result.classes == label].T, ".", color=color, markersize=3)
    right.semilogy(result.losses)
    right.set(xlabel="step", ylabel="loss")
    return drawn


if __name__ == "__main__":
    command(main, draw)
