"""Equilibrium network: one layer, applied until nothing changes any more, tells two spirals apart.

In place of the layers of a deep network it has the solution z of

    z = tanh(W z + U x + b),

whatever way leads there; what is told of a point x is read from z by one more linear layer. Rows of W are scaled such
that the sums of their sizes are below 1: then the layer contracts, and there is one solution. It is found by Anderson's
acceleration, for each point by itself, and its derivatives follow from the equation alone:

    dz = (I - D W)^-1 D (dW z + dU x + db),   D = diag(1 - z^2),

so nothing is kept of the iteration, and no step of it is differentiated.

Source: S. Bai, J. Z. Kolter and V. Koltun, Deep equilibrium models, NeurIPS 2019, theorem 1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._methods import trained
from examples._program import Array, command, figure
from wengert import optim

MOST = 0.95  # the sum of sizes of a row of W


class Network(NamedTuple):
    """Hold the weights."""

    recurrent: Any  # shape (states, states)
    inner: Any  # shape (states, 2)
    bias: Any  # shape (states,)
    outer: Any  # shape (states,)


class Result(NamedTuple):
    """Hold what was learned."""

    points: Array  # shape (points, 2)
    classes: Array  # shape (points,), 0 or 1
    axis: Array  # shape (places,), of the map
    probabilities: Array  # shape (places, places), of class 1
    losses: Array  # shape (iterations,)
    accuracy: float
    residual: float  # the largest change by one more application of the layer
    rounds: float  # of the iteration, the mean over points
    gradient_error: float  # of a gradient, beside that through all rounds of a plain iteration, relative


def spirals(points: int, random: np.random.Generator) -> tuple[Array, Array]:
    """Return points of two spirals, and of which they are."""
    classes = np.arange(points) % 2
    angles = np.sqrt(random.uniform(0.02, 1.0, points)) * 3.0 * np.pi
    turned = angles + np.pi * classes
    places = angles[:, None] * np.stack([np.cos(turned), np.sin(turned)], axis=1) / 5.0
    return places + 0.03 * random.standard_normal((points, 2)), classes.astype(float)


def layer(z: Any, network: Network, x: Any) -> Any:
    """Return what one application of the layer makes of the states of one point."""
    sizes = np.sum(np.abs(network.recurrent), axis=1, keepdims=True)
    scaled = network.recurrent * (MOST / np.maximum(sizes, MOST))
    return np.tanh(scaled @ z + network.inner @ x + network.bias)


def equilibrium(network: Network, x: Any, **options: Any) -> Any:
    """Return what SciPy calls the result: `x` is where the layer changes nothing."""
    return optim.anderson(layer, np.zeros(network.bias.shape), (network, x), tol=1e-8, **options)


def score(network: Network, x: Any) -> Any:
    """Return the logarithm of the odds that a point is of class 1."""
    return network.outer @ equilibrium(network, x).x


def loss(network: Network, points: Any, classes: Any) -> Any:
    """Return the mean cross-entropy."""
    scores = wg.vmap(score, (None, 0))(network, points)
    return np.mean(np.logaddexp(0.0, scores) - classes * scores)


def main(points: int = 200, states: int = 24, iterations: int = 400, places: int = 80, seed: int = 0) -> Result:
    """Train a network, and ask it about a map of places."""
    random = np.random.default_rng(seed)
    x, classes = spirals(points, random)
    network = Network(
        random.normal(0.0, 1.0 / states, (states, states)),
        random.normal(0.0, 1.5, (states, 2)),
        random.normal(0.0, 1.0, states),
        np.zeros(states),
    )
    rule = optim.adam(optim.cosine(0.05, iterations))
    network, losses = trained(loss, network, rule, [(x, classes)] * iterations)
    axis = np.linspace(-2.2, 2.2, places)
    grid = np.stack(np.meshgrid(axis, axis), axis=-1).reshape(-1, 2)
    scores = wg.jit(wg.vmap(score, (None, 0)))
    found = wg.vmap(lambda x: equilibrium(network, x))(x)
    again = wg.vmap(lambda z, x: layer(z, network, x))(found.x, x)
    return Result(
        x,
        classes,
        axis,
        (1.0 / (1.0 + np.exp(-scores(network, grid)))).reshape(places, places),
        losses,
        float(np.mean((scores(network, x) > 0.0) == (classes == 1.0))),
        float(np.max(np.abs(again - found.x))),
        float(np.mean(found.nit)),
        difference(network, x[:5], classes[:5]),
    )


def difference(network: Network, points: Array, classes: Array, rounds: int = 300) -> float:
    """Return how far gradients by the equation are from those through every round of a plain iteration."""

    def unrolled(network: Network) -> Any:
        def of_one(x: Any) -> Any:
            z = np.zeros(network.bias.shape)
            for _ in range(rounds):
                z = layer(z, network, x)
            return network.outer @ z

        scores = wg.vmap(of_one)(points)
        return np.mean(np.logaddexp(0.0, scores) - classes * scores)

    direct = wg.grad(unrolled)(network)
    implicit = wg.grad(loss)(network, points, classes)
    return float(optim.norm(wg.tree.map(np.subtract, direct, implicit)) / optim.norm(direct))


def draw(result: Result) -> object:
    """Draw the points on the map of what the network tells, and the loss."""
    drawn, (left, right) = figure(1, 2)
    left.imshow(result.probabilities, extent=result.axis[[0, -1, 0, -1]], origin="lower", cmap="RdBu", alpha=0.6)
    for label, color in ((0.0, "C3"), (1.0, "C0")):
        left.plot(*result.points[result.classes == label].T, ".", color=color, markersize=3)
    left.set(xlabel="x1", ylabel="x2")
    right.semilogy(result.losses)
    right.set(xlabel="step", ylabel="loss")
    return drawn


if __name__ == "__main__":
    command(main, draw)
