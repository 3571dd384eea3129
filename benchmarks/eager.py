"""Eager execution: what an operation costs, forward and backward, in the libraries' own defaults without compilation.

Wengert raises glibc's `mmap` threshold for the whole process, which makes large temporary arrays cheaper for the
peers as well.
"""

from __future__ import annotations

import functools
import itertools
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from benchmarks.libraries import LIBRARIES, Library
from benchmarks.measure import Case, Program, Times, timed

__all__ = ["cases"]

PAIRS = {(): 1_000, (10,): 1_000, (1_000,): 500, (10_000,): 100, (100_000,): 30, (1_000_000,): 6}
"""Multiply-add pairs of a chain for each shape: enough for times well above those of a clock or a call."""

MILLION = 1_000_000


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; peers compute with a number of threads where they can be told."""

    @functools.cache
    def library(name: str) -> Library:
        return LIBRARIES[name](threads)

    for shape in PAIRS:
        yield chain_case(library, shape, leaves=1)
        yield chain_case(library, shape, leaves=3)
    yield Case("1,000,000-operation chain", MILLION, long_chain(library), rounds=5, budget=40.0)
    yield Case("fill 1,000 elements", 1_000, fill(library))
    yield Case("wave on 256 x 256 points, 40 steps in place", 40, wave(library))
    yield Case("training step of a small network", 1, network(library))


def chain_case(library: Callable[[str], Library], shape: tuple[int, ...], leaves: int) -> Case:
    """Return the case of a chain of multiplications and additions on arrays of a shape.

    With one leaf only `x` requires grad, with three `a` and `b` do as well.
    """
    pairs = PAIRS[shape]
    size = f"{shape[0]:,} elements" if shape else "0-d"
    what = "3 leaves" if leaves == 3 else "1 leaf"

    def make(name: str) -> Program:
        lib = library(name)
        values = [np.full(shape, value) if shape else value for value in (0.5, 0.999, 0.001)]
        arrays = [lib.array(value, position < leaves) for position, value in enumerate(values)]
        return timed(lib.step(functools.partial(chain, pairs), arrays[:leaves], arrays[leaves:]))

    return Case(f"x * a + b, {size}, {what}", 2 * pairs, make)


def chain(pairs: int, x: Any, a: Any, b: Any) -> Any:
    """Multiply and add over and over; return the sum."""
    for _ in range(pairs):
        x = x * a + b
    return x.sum()


def long_chain(library: Callable[[str], Library]) -> Callable[[str], Program | None]:
    """Return the maker of a chain of a million multiplications whose building, sweep and release are timed."""

    def make(name: str) -> Program | None:
        if name not in ("wengert", "torch"):  # the others have no separate phases
            return None
        lib = library(name)

        def run() -> Times:
            x = lib.array(1.0, True)
            start = time.perf_counter()
            y = x
            for _ in range(MILLION):
                y = y * 1.0
            built = time.perf_counter()
            y.backward(retain_graph=True)
            swept = time.perf_counter()
            del y
            freed = time.perf_counter()
            return {"build": built - start, "sweep": swept - built, "free": freed - swept}

        return run

    return make


def fill(library: Callable[[str], Library]) -> Callable[[str], Program | None]:
    """Return the maker of a loop that fills a vector one element at a time."""

    def make(name: str) -> Program | None:
        if name not in ("wengert", "torch"):  # the others have no assignment
            return None
        lib = library(name)
        x = lib.array(np.linspace(0.0, 1.0, 1_000), True)

        def loss(x: Any) -> Any:
            v = lib.array(np.zeros(1_000), False)
            for i in range(1_000):
                v[i] = x[i] * 2.0
            return v.sum()

        return timed(lib.step(loss, [x], []))

    return make


def wave(library: Callable[[str], Library]) -> Callable[[str], Program | None]:
    """Return the maker of a stencil that is applied over and over to an array in place."""

    def make(name: str) -> Program | None:
        if name not in ("wengert", "torch"):  # the others have no assignment
            return None
        lib = library(name)
        rng = np.random.default_rng(0)
        field = lib.array(rng.normal(size=(256, 256)), True)
        speed = lib.array(rng.uniform(0.1, 0.2, size=(256, 256)), True)

        def loss(field: Any, speed: Any) -> Any:
            u = field * 1.0
            inner = speed[1:-1, 1:-1]
            for _ in range(40):
                sides = u[:-2, 1:-1] + u[2:, 1:-1] + u[1:-1, :-2] + u[1:-1, 2:]
                u[1:-1, 1:-1] += inner * (sides - 4.0 * u[1:-1, 1:-1])
            return (u * u).sum()

        return timed(lib.step(loss, [field, speed], []))

    return make


def network(library: Callable[[str], Library]) -> Callable[[str], Program]:
    """Return the maker of one step of gradient descent on two hidden layers of 64 for 32 examples."""

    def make(name: str) -> Program:
        lib = library(name)
        rng = np.random.default_rng(0)
        widths = (16, 64, 64, 1)
        shapes = [shape for m, n in itertools.pairwise(widths) for shape in ((m, n), (n,))]
        weights = [lib.array(rng.normal(size=shape) / np.sqrt(shape[0]), True) for shape in shapes]
        data = [lib.array(rng.normal(size=(32, width)), False) for width in (16, 1)]
        tanh = lib.numpy.tanh

        def loss(*arrays: Any) -> Any:
            *layers, x, y = arrays
            for position in range(0, len(layers) - 2, 2):
                x = tanh(x @ layers[position] + layers[position + 1])
            error = x @ layers[-2] + layers[-1] - y
            return (error * error).mean()

        step = lib.step(loss, weights, data)

        def train() -> list[Any]:
            return [0.01 * gradient for gradient in step()]

        return timed(train)

    return make
