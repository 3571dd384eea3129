"""The functions that `python -m benchmarks jit` compiles, each written once for all libraries."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, Literal

import numpy as np

__all__ = ["EXAMPLES", "Example", "rosenbrock"]

Array = np.ndarray[Any, Any]
Wanted = Literal[
    "value",
    "value and gradient",
    "gradient",
    "each element's gradient",
    "each element's value",
    "Jacobian",
    "rows of the Jacobian",
    "each element's Jacobian",
]
rng = np.random.default_rng(0)


@dataclass(frozen=True)
class Example:
    """Hold a function and what it is given.

    Attributes:
        name: what is printed.
        function: is given a namespace and the arguments.
        draw: makes the arguments, arrays.
        wanted: what is compiled: the function, with its gradient, the gradient alone, or, of a function whose results
            are elementwise, values and derivatives of each element; or its Jacobian, by columns if nothing is said.
        over: the positions of the arguments that the gradient is with respect to.
        by_hand: the same in NumPy as an expert writes it, or None.
        for_numba: the same as numba takes it, or None.
        loops: whether it is written with functions for loops, which JAX and Wengert have alike.
    """

    name: str
    function: Callable[..., Any]
    draw: Callable[[], Sequence[Array]]
    wanted: Wanted = "value and gradient"
    over: tuple[int, ...] = (0,)
    by_hand: Callable[..., Any] | None = None
    for_numba: Callable[..., Any] | None = None
    loops: bool = False

    @cached_property
    def arguments(self) -> Sequence[Array]:
        """The arguments, drawn once."""
        return self.draw()


def normals(*shapes: Any) -> Callable[[], list[Array]]:
    """Return what draws arrays of these shapes from the normal distribution."""
    return lambda: [rng.normal(size=shape) for shape in shapes]


SUMS: dict[int, Callable[..., Any]] = {
    1: lambda a: a * 2.0,
    2: lambda a, b: a * 2.0 + b,
    10: lambda a, b, c, d, e, f, g, h, i, j: a * 2.0 + b + c + d + e + f + g + h + i + j,
}
"""The functions of `call with ... arrays`, for a compiler that takes no variable number of arguments."""


def call_of(count: int) -> Example:
    """Return a function of small arrays that does next to nothing, so that calling it is what takes time."""

    def weighted(_xp: Any, *arrays: Any) -> Any:
        total = arrays[0] * 2.0
        for array in arrays[1:]:
            total = total + array
        return total

    return Example(
        f"call with {count} arrays", weighted, normals(*[10] * count), "value", (), partial(weighted, np), SUMS[count]
    )


def rosenbrock(xp: Any, x: Any) -> Any:
    """Return Rosenbrock's function."""
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_by_hand(x: Array) -> tuple[Any, Array]:
    """Return Rosenbrock's function and its gradient."""
    gap = x[1:] - x[:-1] ** 2
    gradient = np.zeros_like(x)
    gradient[:-1] = -400.0 * gap * x[:-1] - 2.0 * (1.0 - x[:-1])
    gradient[1:] += 200.0 * gap
    return np.sum(100.0 * gap**2 + (1.0 - x[:-1]) ** 2), gradient


def mixed(xp: Any, a: Any, b: Any) -> Any:
    """Return a sum over two long arrays."""
    return xp.sum(xp.log(a) + a * b - xp.sin(b))


def mixed_by_hand(a: Array, b: Array) -> tuple[Any, tuple[Array, Array]]:
    """Return the sum and its two gradients."""
    return np.sum(np.log(a) + a * b - np.sin(b)), (1.0 / a + b, a - np.cos(b))


def black_scholes(xp: Any, spot: Any, strike: Any, time: Any, rate: Any, volatility: Any) -> Any:
    """Return the prices of European call options (Black and Scholes 1973)."""
    root = volatility * xp.sqrt(time)
    first = (xp.log(spot / strike) + (rate + 0.5 * volatility * volatility) * time) / root
    second = first - root
    return spot * normal(xp, first) - strike * xp.exp(-rate * time) * normal(xp, second)


def normal(xp: Any, x: Any) -> Any:
    """Return the distribution function of the normal distribution by a quotient (Abramowitz and Stegun 26.2.17)."""
    t = 1.0 / (1.0 + 0.2316419 * xp.abs(x))
    series = t * (0.319381530 + t * (-0.356563782 + t * (1.781477937 + t * (-1.821255978 + t * 1.330274429))))
    tail = xp.exp(-0.5 * x * x) * (series / math.sqrt(2.0 * math.pi))
    return xp.where(x > 0.0, 1.0 - tail, tail)


def log_sum_exp(xp: Any, x: Any) -> Any:
    """Return the logarithm of the sum of exponentials, without overflow."""
    top = xp.max(x)
    return top + xp.log(xp.sum(xp.exp(x - top)))


def cross_entropy(xp: Any, scores: Any, targets: Any) -> Any:
    """Return the mean cross-entropy of softmax scores, one row an example."""
    moved = scores - xp.max(scores, axis=1, keepdims=True)
    return xp.mean(xp.log(xp.sum(xp.exp(moved), axis=1)) - xp.sum(moved * targets, axis=1))


def layer_norm(xp: Any, x: Any, gain: Any, bias: Any) -> Any:
    """Return a sum of squares of normalised rows."""
    centred = x - xp.mean(x, axis=1, keepdims=True)
    size = xp.sqrt(xp.mean(centred * centred, axis=1, keepdims=True) + 1e-5)
    y = centred / size * gain + bias
    return xp.sum(y * y)


def k_means(xp: Any, centres: Any, points: Any) -> Any:
    """Return the sum of squared distances of points to their nearest centres."""
    squares = xp.sum(points * points, axis=1)[:, None] + xp.sum(centres * centres, axis=1)[None, :]
    return xp.sum(xp.min(squares - 2.0 * (points @ centres.T), axis=1))


def least_squares(xp: Any, x: Any, matrix: Any, target: Any) -> Any:
    """Return the sum of squared residuals of a linear system."""
    residual = matrix @ x - target
    return xp.sum(residual * residual)


def sums_of_outer_product(xp: Any, u: Any, v: Any) -> Any:
    """Return the sums of rows of an outer product of functions, which need not be computed for each row anew."""
    return xp.sum(xp.exp(u)[:, None] * xp.sin(v), 1)


def chain_behind_product(xp: Any, w: Any, matrix: Any) -> Any:
    """Return the sum of twelve functions, one of the other, of each row times a vector."""
    y = matrix @ w
    for _ in range(6):
        y = 0.9 * xp.tanh(xp.sin(y) + 0.1)
    return xp.sum(y)


def least_squares_by_hand(x: Array, matrix: Array, target: Array) -> tuple[Any, Array]:
    """Return the sum of squares and its gradient."""
    residual = matrix @ x - target
    return residual @ residual, 2.0 * (residual @ matrix)


def diffusion(steps: int) -> Callable[..., Any]:
    """Return the function that lets heat flow for some steps and sums the squares."""

    def run(xp: Any, u: Any) -> Any:
        for _ in range(steps):
            inner = u[1:-1, 1:-1]
            flow = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:] - 4.0 * inner
            rows = xp.concatenate([u[1:-1, :1], inner + 0.1 * flow, u[1:-1, -1:]], 1)
            u = xp.concatenate([u[:1], rows, u[-1:]], 0)
        return xp.sum(u * u)

    return run


def loops_of(xp: Any) -> Any:
    """Return what has the functions for loops of the library of a namespace."""
    return importlib.import_module("jax.lax" if xp.__name__.startswith("jax") else "wengert")


def root(xp: Any, a: Any) -> Any:
    """Return the square root of a number by Newton's method."""
    return loops_of(xp).while_loop(lambda x: xp.abs(x * x - a) > 1e-12, lambda x: (x + a / x) / 2, a)


def pendulum(steps: int) -> Callable[..., Any]:
    """Return the function that lets a pendulum swing for some Runge-Kutta steps, and sums its angle and velocity."""

    def slope(xp: Any, y: Any) -> Any:
        return xp.stack([y[1], -xp.sin(y[0])])

    def run(xp: Any, start: Any) -> Any:
        def step(_: Any, y: Any) -> Any:
            first = slope(xp, y)
            second = slope(xp, y + 0.005 * first)
            third = slope(xp, y + 0.005 * second)
            return y + 0.01 / 6 * (first + 2 * second + 2 * third + slope(xp, y + 0.01 * third))

        return xp.sum(loops_of(xp).fori_loop(0, steps, step, start))

    return run


def recurrent(xp: Any, weights: Any, inward: Any, bias: Any, inputs: Any) -> Any:
    """Return the sum of squares of what a recurrent network gives for a sequence."""

    def step(state: Any, row: Any) -> Any:
        state = xp.tanh(weights @ state + inward @ row + bias)
        return state, state

    return xp.sum(loops_of(xp).scan(step, xp.zeros(len(bias)), inputs)[1] ** 2)


def long_short_term(xp: Any, weights: Any, bias: Any, inputs: Any) -> Any:
    """Return the sum of squares of what a long short-term memory gives (Hochreiter and Schmidhuber 1997)."""
    size = len(bias) // 4

    def gate(x: Any) -> Any:
        return 1.0 / (1.0 + xp.exp(-x))

    def step(state: Any, row: Any) -> Any:
        hidden, cell = state
        found = weights @ xp.concatenate([hidden, row]) + bias
        new, kept, shown, value = (found[i * size : (i + 1) * size] for i in range(4))
        cell = gate(kept) * cell + gate(new) * xp.tanh(value)
        hidden = gate(shown) * xp.tanh(cell)
        return (hidden, cell), hidden

    start = xp.zeros(size), xp.zeros(size)
    return xp.sum(loops_of(xp).scan(step, start, inputs)[1] ** 2)


def filtered(xp: Any, step: Any, noise: Any, error: Any, look: Any, seen: Any) -> Any:
    """Return the log-likelihood of what was seen of a linear system, by Kalman's filter."""

    def update(state: Any, value: Any) -> Any:
        mean, spread = state
        mean, spread = step @ mean, step @ spread @ step.T + noise @ noise.T
        across = look @ spread
        scatter = across @ look.T + error @ error.T
        surprise = value - look @ mean
        gain = xp.linalg.solve(scatter, across).T
        term = surprise @ xp.linalg.solve(scatter, surprise) + xp.linalg.slogdet(scatter)[1]
        return (mean + gain @ surprise, spread - gain @ across), term

    start = xp.zeros(len(step)), xp.eye(len(step))
    return -0.5 * xp.sum(loops_of(xp).scan(update, start, seen)[1])


def uniforms(*ranges: tuple[float, float]) -> Callable[[], list[Array]]:
    """Return what draws a million numbers from each of these ranges."""
    return lambda: [rng.uniform(low, high, 1_000_000) for low, high in ranges]


def classified() -> list[Array]:
    """Draw scores of 4,096 examples in 1,000 classes, and their classes as rows of an identity matrix."""
    return [rng.normal(size=(4_096, 1_000)), np.eye(1_000)[rng.integers(0, 1_000, 4_096)]]


def observed() -> list[Array]:
    """Draw a system of four states and two observations at each of 100 steps."""
    rotation = np.linalg.qr(rng.normal(size=(4, 4)))[0] * 0.95
    return [rotation, 0.3 * np.eye(4), 0.5 * np.eye(2), rng.normal(size=(2, 4)), rng.normal(size=(100, 2))]


OPTIONS = ((80, 120), (80, 120), (0.2, 2), (0, 0.05), (0.1, 0.5))
SYSTEMS = (16, 16_384)

EXAMPLES = [
    *map(call_of, (1, 2, 10)),
    Example("Rosenbrock, 10 variables", rosenbrock, normals(10), by_hand=rosenbrock_by_hand),
    Example(
        "sum of log a + a b - sin b, 1,000,000", mixed, uniforms((1, 2), (1, 2)), over=(0, 1), by_hand=mixed_by_hand
    ),
    Example("Black-Scholes, 1,000,000", black_scholes, uniforms(*OPTIONS), "each element's gradient", (0, 1, 2, 3, 4)),
    Example("log-sum-exp, 2,500", log_sum_exp, normals(2_500)),
    Example("log-sum-exp, 1,280,000", log_sum_exp, normals(1_280_000)),
    Example("cross-entropy, 4,096 x 1,000", cross_entropy, classified, "gradient"),
    Example("layer norm, 4,096 x 1,024", layer_norm, normals((4_096, 1_024), 1_024, 1_024), "gradient", (0, 1, 2)),
    *[Example(f"k-means, {k} centres", k_means, normals((k, 16), (10_000, 16))) for k in (10, 100)],
    *[
        Example(f"least squares, {n:,} x 128", least_squares, normals(128, (n, 128), n), by_hand=least_squares_by_hand)
        for n in SYSTEMS
    ],
    Example("sums of an outer product, 1,000", sums_of_outer_product, normals(1_000, 1_000), "value", ()),
    Example("12 functions of a product, 20,000 x 50", chain_behind_product, normals(50, (20_000, 50))),
    Example("diffusion on 512 x 512, 40 steps", diffusion(40), normals((512, 512))),
    Example("Newton's square root", root, lambda: [np.array(9.0)], "value", (), loops=True),
    Example("pendulum, 1,000 steps", pendulum(1_000), normals(2), loops=True),
    Example("RNN, 16 cells, 50 steps", recurrent, normals((16, 16), (16, 3), 16, (50, 3)), over=(0, 1, 2), loops=True),
    Example("Kalman filter, 4 states, 100 steps", filtered, observed, over=(0, 1, 2), loops=True),
    Example("LSTM, 16 cells, 50 steps", long_short_term, normals((64, 19), 64, (50, 3)), over=(0, 1), loops=True),
]
