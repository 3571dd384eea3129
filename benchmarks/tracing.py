"""Tracing: what it costs to turn the gradient of a stack of transformer blocks into an optimised graph.

Wengert traces, differentiates and runs its graph passes; JAX traces, differentiates and lowers to StableHLO. Neither
compiles. The program is written once, against the namespace of each library.
"""

from __future__ import annotations

import gc
import math
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.measure import Case, Program, Times, timed

__all__ = ["cases"]

BATCH, LENGTH, WIDTH, HEADS = 2, 16, 32, 4
Parameters = list[dict[str, Any]]


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; threads do not matter."""
    for layers in (1, 12):
        yield Case(f"gradient of {layers} transformer blocks", 1, maker(layers), rounds=21, budget=30.0)
    yield Case("gradient of many blocks", 1, growth, rounds=9, budget=60.0)


def maker(layers: int) -> Callable[[str], Program | None]:
    """Return the maker of the programs for a number of blocks."""

    def make(library: str) -> Program | None:
        parameters, x = blocks(layers)
        if library == "wengert":
            return timed(wengert_step(parameters, x))
        if library == "jax":
            return timed(jax_step(parameters, x))
        return None

    return make


def growth(library: str) -> Program | None:
    """Return a program that traces 12 blocks ten times and then 120 at once: as long, if the cost is linear."""
    if library != "wengert":
        return None
    few, many = (wengert_step(*blocks(layers)) for layers in (12, 120))

    def run() -> Times:
        times: Times = {}
        for name, step, repeats in (("10 times 12", few, 10), ("120 at once", many, 1)):
            gc.collect()
            start = time.perf_counter()
            for _ in range(repeats):
                step()
            times[name] = time.perf_counter() - start
        return times

    return run


def wengert_step(parameters: Parameters, x: Any) -> Callable[[], object]:
    """Return a function that traces, differentiates and optimises."""
    import wengert as wg
    import wengert.numpy as wnp
    from wengert.transforms.tracing import trace

    def step() -> object:
        return trace(wg.grad(lambda p, y: loss(wnp, p, y)))(parameters, x)

    return step


def jax_step(parameters: Parameters, x: Any) -> Callable[[], object]:
    """Return a function that traces, differentiates and lowers, a new function at each call, so nothing is cached."""
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)

    def step() -> object:
        return jax.jit(jax.grad(lambda p, y: loss(jnp, p, y))).lower(parameters, x)

    return step


def blocks(layers: int) -> tuple[Parameters, Any]:
    """Return the parameters of a stack of blocks, and a batch."""
    generator = np.random.default_rng(0)

    def normal(*shape: int) -> Any:
        return generator.normal(size=shape) / math.sqrt(shape[0])

    shapes: dict[str, tuple[int, ...]] = {
        "query": (WIDTH, WIDTH),
        "key": (WIDTH, WIDTH),
        "value": (WIDTH, WIDTH),
        "output": (WIDTH, WIDTH),
        "scale1": (WIDTH,),
        "shift1": (WIDTH,),
        "scale2": (WIDTH,),
        "shift2": (WIDTH,),
        "up": (WIDTH, 4 * WIDTH),
        "up_bias": (4 * WIDTH,),
        "down": (4 * WIDTH, WIDTH),
        "down_bias": (WIDTH,),
    }
    parameters = [{name: normal(*shape) for name, shape in shapes.items()} for _ in range(layers)]
    return parameters, normal(BATCH, LENGTH, WIDTH)


def loss(xp: Any, parameters: Parameters, x: Any) -> Any:
    """Return the mean square of what a stack of blocks makes of a batch."""
    for p in parameters:
        x = x + attention(xp, p, normalised(xp, x, p["scale1"], p["shift1"]))
        x = x + perceptron(xp, p, normalised(xp, x, p["scale2"], p["shift2"]))
    return xp.mean(x * x)


def normalised(xp: Any, x: Any, scale: Any, shift: Any) -> Any:
    """Return the layer norm."""
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    variance = xp.mean(centred * centred, axis=-1, keepdims=True)
    return centred / xp.sqrt(variance + 1e-5) * scale + shift


def attention(xp: Any, p: dict[str, Any], x: Any) -> Any:
    """Return multi-head self-attention."""
    query, key, value = (split_heads(xp, x @ p[name]) for name in ("query", "key", "value"))
    scores = xp.einsum("bhqd,bhkd->bhqk", query, key) / math.sqrt(WIDTH // HEADS)
    mixed = softmax(xp, scores) @ value
    return xp.reshape(xp.transpose(mixed, (0, 2, 1, 3)), (BATCH, LENGTH, WIDTH)) @ p["output"]


def split_heads(xp: Any, x: Any) -> Any:
    """Return the heads as an axis of their own."""
    return xp.transpose(xp.reshape(x, (BATCH, LENGTH, HEADS, WIDTH // HEADS)), (0, 2, 1, 3))


def softmax(xp: Any, scores: Any) -> Any:
    """Return the weights along the last axis."""
    weights = xp.exp(scores - xp.max(scores, axis=-1, keepdims=True))
    return weights / xp.sum(weights, axis=-1, keepdims=True)


def perceptron(xp: Any, p: dict[str, Any], x: Any) -> Any:
    """Return two layers with the approximation of gelu by tanh between them."""
    hidden = x @ p["up"] + p["up_bias"]
    inner = math.sqrt(2 / math.pi) * (hidden + 0.044715 * hidden * hidden * hidden)
    return 0.5 * hidden * (1 + xp.tanh(inner)) @ p["down"] + p["down_bias"]
