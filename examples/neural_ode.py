"""Neural ordinary differential equation: a network learns how a spiral turns, and its gradient by the adjoint equation.

Points move by y' = f(y), which is unknown; seen is where trajectories are at some times. A network f(y; w) takes its
place, w is chosen such that the trajectories of y' = f(y; w), by the classical method of Runge and Kutta, pass through
what was seen. Their gradient goes back through the steps of the integration. The other way needs no memory of these:
with the cotangent a(t) of y(t), for a loss that depends on y at the end only,

    a' = -a^T df/dy,   (dL/dw)' = -a^T df/dw,   a(T) = dL/dy(T),   dL/dw(T) = 0,

are integrated backwards together with y, their right sides being one `vjp` of f. Both nearly agree.

Source: R. T. Q. Chen et al., Neural ordinary differential equations, NeurIPS 2018, algorithm 1 and its spirals.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from examples._methods import runge_kutta, trained
from examples._program import Array, command, figure
from wengert import optim, random, tree

SPIRAL = np.array([[-0.1, 2.0], [-2.0, -0.1]])
STEPS = 4  # of the integration, between two times at which points are seen


class Network(NamedTuple):
    """Hold the weights of two layers."""

    inner: Any
    bias: Any
    outer: Any


class Result(NamedTuple):
    """Hold what was learned."""

    seen: Array  # shape (trajectories, times, 2)
    learned: Array  # shape (trajectories, times, 2), the network's
    losses: Array  # shape (iterations,)
    error: float  # the root mean square of the distances
    adjoint_error: float  # of the gradient by the adjoint equation, relative to that through the integration


def slope(network: Network, y: Any) -> Any:
    """Return f(y; w): a network of the cubes of the coordinates."""
    return np.tanh(y**3 @ network.inner + network.bias) @ network.outer


def integrated(f: Callable[[Any], Any], y: Any, time: float, steps: int) -> Any:
    """Return where y' = f(y) leads in some time; y may be any container."""
    for _ in range(steps):
        y = runge_kutta(f, y, time / steps)
    return y


def trajectory(f: Callable[[Any], Any], start: Any, times: int, apart: float) -> Any:
    """Return the places at several times, of shape (times, ...)."""
    return wg.scan(lambda y, _: (integrated(f, y, apart, STEPS), y), start, length=times)[1]


def by_adjoint(network: Network, start: Array, target: Array, time: float, steps: int) -> Any:
    """Return the gradient of |y(T) - target|^2 / 2 by the adjoint equation."""
    end = integrated(lambda y: slope(network, y), start, time, steps)

    def backwards(state: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        y, a, _ = state
        dy, pullback = wg.vjp(slope, network, y)
        by_network, by_y = pullback(a)
        return -dy, by_y, by_network

    return integrated(backwards, (end, end - target, tree.map(np.zeros_like, network)), time, steps)[2]


def main(times: int = 40, hidden: int = 32, iterations: int = 600, seed: int = 0) -> Result:
    """Learn from four trajectories."""
    starts = np.array([[2.0, 0.0], [1.5, 1.0], [-1.0, 1.2], [0.0, -1.0]])
    seen = trajectory(lambda y: y**3 @ SPIRAL, starts, times, 0.1)
    first, second = random.split(random.key(seed))
    inner, outer = random.normal(first, 0.0, 0.3, (2, hidden)), random.normal(second, 0.0, 0.3, (hidden, 2))

    def loss(network: Network) -> Any:
        ends = integrated(lambda y: slope(network, y), seen[:-1], 0.1, STEPS)  # from each time seen to the next
        return np.mean((ends - seen[1:]) ** 2) * 1e3

    rule = optim.adam(optim.cosine(0.03, iterations))
    network, losses = trained(loss, Network(inner, np.zeros(hidden), outer), rule, [()] * iterations)
    learned = trajectory(lambda y: slope(network, y), starts, times, 0.1)
    return Result(seen, learned, losses, float(np.sqrt(np.mean((learned - seen) ** 2))), difference(network))


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
    seen = left.plot(result.seen[..., 0], result.seen[..., 1], "k.", markersize=2)
    learned = left.plot(result.learned[..., 0], result.learned[..., 1], color="C0", linewidth=1)
    left.legend([seen[0], learned[0]], ["seen", "learned"])
    right.semilogy(result.losses)
    right.set(xlabel="step", ylabel="loss")
    return drawn


if __name__ == "__main__":
    command(main, draw)
