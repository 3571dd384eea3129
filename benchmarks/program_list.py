"""The programs that `python -m benchmarks programs` differentiates, each written once for all libraries.

A program is a scalar function of a namespace, parameters and data. Those that write in place exist only where a
library can do that.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks import tracing

__all__ = ["HAMILTONIAN", "PROGRAMS", "Example", "log_density", "trajectory"]

Array = np.ndarray[Any, Any]
ALL = ("wengert", "torch", "autograd", "jax", "jax-jit")
MUTABLE = ("wengert", "torch")
rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Example:
    """Hold a program and what it is given.

    Attributes:
        name: what is printed.
        loss: is given a namespace, the parameters and the data.
        parameters: what the gradient is taken with respect to.
        data: further arrays.
        libraries: those that can do it.
    """

    name: str
    loss: Callable[..., Any]
    parameters: Sequence[Array]
    data: Sequence[Array] = ()
    libraries: Sequence[str] = ALL


def weights(*shape: int) -> Array:
    """Return a matrix that keeps the size of what it is multiplied with."""
    return np.asarray(rng.normal(size=shape) / math.sqrt(shape[0]))


def energy(xp: Any, x: Any, v: Any, m: Any) -> Any:
    """Return the kinetic and potential energy of bodies that attract each other."""
    gaps = x[:, None, :] - x[None, :, :]
    distances = xp.sqrt(xp.sum(gaps * gaps, -1) + 0.01)
    return 0.5 * xp.sum(m[:, None] * v * v) - 0.5 * xp.sum(m[:, None] * m[None, :] / distances)


def bodies(xp: Any, x: Any, v: Any, m: Any) -> Any:
    """Let bodies attract each other for 20 steps, all pairs at once."""
    for _ in range(20):
        gaps = x[None, :, :] - x[:, None, :]
        squares = xp.sum(gaps * gaps, -1) + 0.01
        pull = m[None, :] / (squares * xp.sqrt(squares))
        v = v + 0.01 * xp.sum(pull[:, :, None] * gaps, 1)
        x = x + 0.01 * v
    return energy(xp, x, v, m)


def bodies_in_place(xp: Any, x: Any, v: Any, m: Any) -> Any:
    """Let them do so pair by pair, written into the arrays."""
    x, v = xp.copy(x), xp.copy(v)
    for _ in range(5):
        for i in range(len(x)):
            for j in range(i):
                gap = x[j] - x[i]
                square = (gap * gap).sum() + 0.01
                pull = 0.01 * gap / (square * xp.sqrt(square))
                v[i] += m[j] * pull
                v[j] -= m[i] * pull
        x += 0.01 * v
    return energy(xp, x, v, m)


def recurrent(xp: Any, inner: Any, outer: Any, bias: Any, x: Any) -> Any:
    """Run a recurrent network over 30 inputs."""
    h = xp.zeros((x.shape[1], inner.shape[0]))
    for t in range(x.shape[0]):
        h = xp.tanh(x[t] @ outer + h @ inner + bias)
    return xp.mean(h * h)


def sigmoid(xp: Any, x: Any) -> Any:
    """Return the logistic function."""
    return 1.0 / (1.0 + xp.exp(-x))


def lstm(xp: Any, inner: Any, outer: Any, bias: Any, x: Any) -> Any:
    """Run a network with long short-term memory over 20 inputs."""
    n = inner.shape[0]
    h = c = xp.zeros((x.shape[1], n))
    for t in range(x.shape[0]):
        z = x[t] @ outer + h @ inner + bias
        c = sigmoid(xp, z[:, n : 2 * n]) * c + sigmoid(xp, z[:, :n]) * xp.tanh(z[:, 2 * n : 3 * n])
        h = sigmoid(xp, z[:, 3 * n :]) * xp.tanh(c)
    return xp.mean(h * h)


def kalman(xp: Any, step: Any, noise: Any, error: Any, look: Any, seen: Any) -> Any:
    """Return the log-likelihood of what was seen of a linear system, filtered step by step."""
    mean, spread = xp.zeros(step.shape[0]), xp.eye(step.shape[0])
    total = 0.0
    for t in range(seen.shape[0]):
        mean, spread = step @ mean, step @ spread @ step.T + noise @ noise.T
        across = look @ spread
        scatter = across @ look.T + error @ error.T
        surprise = seen[t] - look @ mean
        gain = xp.linalg.solve(scatter, across).T
        total = total - 0.5 * (surprise @ xp.linalg.solve(scatter, surprise) + xp.linalg.slogdet(scatter)[1])
        mean, spread = mean + gain @ surprise, spread - gain @ across
    return total


def heat_in_place(_xp: Any, field: Any, speed: Any) -> Any:
    """Let heat spread by writing into the inner part of a field."""
    u = field * 1.0
    for _ in range(20):
        sides = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
        u[1:-1, 1:-1] += speed[1:-1, 1:-1] * (sides - 4.0 * u[1:-1, 1:-1])
    return (u * u).sum()


def heat_by_roll(xp: Any, u: Any, speed: Any) -> Any:
    """Let it spread on a field without edges."""
    for _ in range(20):
        sides = xp.roll(u, 1, 0) + xp.roll(u, -1, 0) + xp.roll(u, 1, 1) + xp.roll(u, -1, 1)
        u = u + speed * (sides - 4.0 * u)
    return xp.sum(u * u)


def tree(xp: Any, words: Any, left: Any, right: Any, bias: Any) -> Any:
    """Combine 32 words by a binary tree, recursively."""

    def node(first: int, last: int) -> Any:
        if last - first == 1:
            return words[first]
        middle = (first + last) // 2
        return xp.tanh(node(first, middle) @ left + node(middle, last) @ right + bias)

    return xp.sum(node(0, words.shape[0]) ** 2)


def transformer(xp: Any, *arrays: Any) -> Any:
    """Return the loss of a transformer layer."""
    return tracing.loss(xp, [dict(zip(LAYER, arrays, strict=False))], arrays[-1])


def mixture(xp: Any, logits: Any, centres: Any, diagonals: Any, lower: Any, points: Any) -> Any:
    """Return the log-likelihood of points in a mixture of Gaussians, as in ADBench."""
    roots = xp.tril(lower, -1) + xp.exp(diagonals)[:, :, None] * xp.eye(centres.shape[1])
    whitened = xp.einsum("kij,nkj->nki", roots, points[:, None, :] - centres[None, :, :])
    terms = logits + xp.sum(diagonals, 1) - 0.5 * xp.sum(whitened * whitened, -1)
    return xp.sum(log_sum_exp(xp, terms)) - points.shape[0] * log_sum_exp(xp, logits)


def log_sum_exp(xp: Any, x: Any) -> Any:
    """Return the logarithm of the sum of exponentials along the last axis."""
    highest = xp.max(x, axis=-1, keepdims=True)
    return xp.log(xp.sum(xp.exp(x - highest), -1)) + highest[..., 0]


def log_density(xp: Any, weights: Any, features: Any, labels: Any) -> Any:
    """Return the log-density of the weights of a logistic regression."""
    scores = features @ weights
    return xp.sum(labels * scores - xp.log(1.0 + xp.exp(scores))) - 0.5 * xp.sum(weights * weights)


def trajectory(gradient: Callable[[Any], Any], position: Any, momentum: Any) -> Any:
    """Return where Hamiltonian Monte Carlo goes in 20 leapfrog steps."""
    slope = gradient(position)
    momentum = momentum + 0.5 * STRIDE * slope
    for _ in range(20):
        position = position + STRIDE * momentum
        slope = gradient(position)
        momentum = momentum + STRIDE * slope
    return position, momentum - 0.5 * STRIDE * slope


STRIDE = 0.01
[(PARAMETERS,), TOKENS] = tracing.blocks(1)
LAYER = tuple(PARAMETERS)
PLACES = [rng.normal(size=(5, 3)), rng.normal(size=(5, 3)), rng.uniform(0.5, 1.5, size=5)]
FIELD = [rng.normal(size=(128, 128)), rng.uniform(0.1, 0.2, size=(128, 128))]
SYSTEM = [0.9 * np.eye(4) + 0.05 * rng.normal(size=(4, 4)), 0.3 * np.eye(4), 0.5 * np.eye(2)]
HAMILTONIAN = [
    rng.normal(size=10),
    rng.normal(size=10),
    rng.normal(size=(100, 10)),
    np.sign(rng.normal(size=100)) / 2 + 0.5,
]
PROGRAMS = [
    Example("N-body, all pairs at once", bodies, PLACES),
    Example("N-body, in place", bodies_in_place, PLACES, libraries=MUTABLE),
    Example(
        "recurrent network", recurrent, [weights(32, 32), weights(8, 32), weights(32)], [rng.normal(size=(30, 16, 8))]
    ),
    Example("LSTM", lstm, [weights(32, 128), weights(8, 128), weights(128)], [rng.normal(size=(20, 16, 8))]),
    Example("Kalman filter", kalman, SYSTEM, [rng.normal(size=(2, 4)), rng.normal(size=(20, 2))]),
    Example("heat, in place", heat_in_place, FIELD, libraries=MUTABLE),
    # XLA takes minutes to compile the unrolled steps
    Example("heat, by roll", heat_by_roll, FIELD, libraries=("wengert", "torch", "autograd", "jax")),
    Example("tree recursion", tree, [rng.normal(size=(32, 16)), weights(16, 16), weights(16, 16), weights(16)]),
    Example("transformer layer", transformer, list(PARAMETERS.values()), [TOKENS]),
    Example(
        "mixture of Gaussians",
        mixture,
        [rng.normal(size=10), rng.normal(size=(10, 4)), 0.1 * rng.normal(size=(10, 4)), rng.normal(size=(10, 4, 4))],
        [rng.normal(size=(500, 4))],
    ),
]
"""All but the one that takes gradients itself, Hamiltonian Monte Carlo."""
