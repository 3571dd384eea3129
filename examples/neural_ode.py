"""Neural ordinary differential equation: a network learns how a spiral turns, and its gradient by the adjoint equation.

Points move by y' = f(y), which is unknown; seen is where trajectories are at some times. A network f(y; w) takes its
place, w is chosen such that the trajectories of y' = f(y; w), by the classical method of Runge and Kutta, pass through
what was seen. Their gradient goes back through the steps of the integration. The other way needs no memory of these:
with the cotangent a(t) of y(t), for a loss that depends on y at the end only,

    a' = -a^T df/dy,   (dL/dw)' = -a^T df/dw,   a(T) = dL/dy(T),   dL/dw(T) = 0,

are integrated backwards together with y, their right sides being one `vjp` of f. Both agree up to the integration's
error.

Source: R. T. Q. Chen et al., Neural ordinary differential equations, NeurIPS 2018, algorithm 1 and its spirals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import wengert as wg
from examples._program import command, figure
from wengert import optim, random, tree

Array = NDArray[np.float64]
SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])
STEPS = 4
"""Of the integration, between two times at which points are seen."""


class Network(NamedTuple):
    """Hold the weights of two layers."""

    inner: Any
    bias: Any
    outer: Any


class Result(NamedTuple):
    """Hold what was learned.

    Attributes:
        seen: shape (trajectories, times, 2).
        learned: shape (trajectories, times, 2), the network's.
        losses: shape (iterations,).
        error: the root mean square of the distances.
        adjoint_error: how far the gradient by the adjoint equation is from that through the integration, relatively.
    """

    seen: Array
    learned: Array
    losses: Array
    error: float
    adjoint_error: float


def slope(network: Network, y: Any) -> Any:
    """Return f(y; w): a network of the cubes of the coordinates."""
    return np.tanh(y**3 @ network.inner + network.bias) @ network.outer


def integrated(f: Callable[[Any], Any], y: Any, time: float, steps: int) -> Any:
    """Return where y' = f(y) leads in some time; y may be any container."""
    h = time / steps

    def moved(y: Any, k: Any, h: float) -> Any:
        return tree.map(lambda a, b: a + h * b, y, k)

    for _ in range(steps):
        k1 = f(y)
        k2 = f(moved(y, k1, h / 2))
        k3 = f(moved(y, k2, h / 2))
        k4 = f(moved(y, k3, h))
        y = tree.map(lambda y, *k: y + h / 6 * (k[0] + 2 * k[1] + 2 * k[2] + k[3]), y, k1, k2, k3, k4)
    return y


def trajectory(f: Callable[[Any], Any], start: Any, times: int, apart: float) -> Any:
    """Return the places at several times, of shape (times, ...)."""

    def step(y: Any, _: None) -> tuple[Any, Any]:
        return integrated(f, y, apart, STEPS), y

    return wg.scan(step, start, length=times)[1]


def by_adjoint(network: Network, start: Array, target: Array, time: float, steps: int) -> Network:
    """Return the gradient of |y(T) - target|^2 / 2 by the adjoint equation."""
    end = integrated(lambda y: slope(network, y), start, time, steps)

    def backwards(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        y, a, _ = state
        dy, pullback = wg.vjp(slope, network, y)
        by_network, by_y = pullback(a)
        return -dy, by_y, by_network

    zeros = tree.map(np.zeros_like, network)
    found: Network = integrated(backwards, (end, end - target, zeros), time, steps)[2]
    return found


def main(times: int = 40, hidden: int = 32, iterations: int = 600, seed: int = 0) -> Result:
    """Learn from four trajectories."""
    starts = np.array([[2.0, 0.0], [1.5, 1.0], [-1.0, 1.2], [0.0, -1.0]])
    seen = trajectory(lambda y: y**3 @ SPIRAL, starts, times, 0.1)
    first, second = random.split(random.key(seed))
    network = Network(random.normal(first, 0.0, 0.3, (2, hidden)), np.zeros(hidden), np.zeros((hidden, 2)))
    network = network._replace(outer=random.normal(second, 0.0, 0.3, (hidden, 2)))

    def loss(network: Network) -> Any:
        # between each time and the next, so that early steps are not wrong for what later ones are
        ends = integrated(lambda y: slope(network, y), seen[:-1], 0.1, STEPS)
        return np.mean((ends - seen[1:]) ** 2) * 1e3

    init, update = optim.adam(optim.cosine(0.03, iterations))

    @wg.jit
    def train(network: Network, state: Any) -> Any:
        value, gradient = wg.value_and_grad(loss)(network)
        return value, *update(gradient, state, network)

    state, losses = init(network), []
    for _ in range(iterations):
        value, network, state = train(network, state)
        losses.append(float(value))
    learned = trajectory(lambda y: slope(network, y), starts, times, 0.1)
    return Result(seen, learned, np.array(losses), float(np.sqrt(np.mean((learned - seen) ** 2))), difference(network))


def difference(network: Network) -> float:
    """Return how far apart both gradients are, for one trajectory."""
    start, target = np.array([1.0, 0.5]), np.array([0.3, 0.2])

    def loss(network: Network) -> Any:
        return np.sum((integrated(lambda y: slope(network, y), start, 1.0, 50) - target) ** 2) / 2

    direct = wg.grad(loss)(network)
    adjoint = by_adjoint(network, start, target, 1.0, 50)
    return float(optim.norm(tree.map(np.subtract, direct, adjoint)) / optim.norm(direct))


def draw(result: Result) -> object:
    """Draw the trajectories, seen and learned, and the loss."""
    drawn, (left, right) = figure(1, 2)
    for i, (seen, learned) in enumerate(
        zip(np.swapaxes(result.seen, 0, 1), np.swapaxes(result.learned, 0, 1), strict=True)
    ):
        left.plot(*seen.T, "k.", markersize=2, label="seen" if i == 0 else None)
        left.plot(*learned.T, color="C0", linewidth=1, label="learned" if i == 0 else None)
    left.legend()
    right.semilogy(result.losses)
    right.set(xlabel="step", ylabel="loss")
    return drawn


if __name__ == "__main__":
    command(main, draw)
