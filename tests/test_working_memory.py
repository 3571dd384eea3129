"""How much memory calls of jitted functions are said to take, beside what they take."""

from __future__ import annotations

import tracemalloc
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.core.graph.working_memory import evaluation_memory

RNG = np.random.default_rng(0)
ROWS = RNG.normal(size=(20_000, 20))
WEIGHTS = RNG.normal(size=20)


def network(w: Any, x: Any) -> Any:
    for _ in range(4):
        x = np.tanh(x * w)
    return np.sum(x)


def steps(w: Any, x: Any) -> Any:
    return np.sum(wg.scan(lambda c, t: (np.sin(c * w * t), np.sum(c)), x, np.arange(5.0))[0])


def kept_by_views(w: Any, x: Any) -> Any:
    y = np.exp(x)[::2]
    return np.sum(np.sin(y.T) * np.exp(y.T) * w[0])


def peak_of(function: Any, *args: Any) -> int:
    function(*args)
    tracemalloc.start()
    try:
        function(*args)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("fun", [network, steps, kept_by_views, lambda w, x: np.sum(np.sort(x @ w) ** 2)])
def test_what_is_told_is_what_numpy_takes(fun: Any) -> None:
    gradient = wg.jit(wg.value_and_grad(fun), native=False)
    taken = peak_of(gradient, WEIGHTS, ROWS)
    assert 0.75 * taken < gradient.lower(WEIGHTS, ROWS).memory < 1.3 * taken


def test_shapes_are_enough_and_memory_grows_with_rows() -> None:
    gradient = wg.jit(wg.value_and_grad(network))

    def memory(count: int) -> int:
        return gradient.lower(WEIGHTS, SimpleNamespace(shape=(count, 20), dtype=np.dtype(float))).memory

    assert memory(20_000) == gradient.lower(WEIGHTS, ROWS).memory
    assert 9 < memory(10**6) / memory(10**5) < 11  # of arrays that are never there


def test_values_between_programs_and_numpy_are_counted() -> None:
    lowered = wg.jit(lambda x: np.sum(np.sort(np.exp(x)) * np.sin(np.sort(x)))).lower(np.ones(10_000))
    assert 160_000 <= lowered.cost.memory < 500_000


def test_results_are_counted_and_inputs_are_not() -> None:
    assert wg.jit(lambda x: x + 1.0).lower(np.ones(1000)).memory == 8000
    graph = wg.graph.trace(lambda x: np.exp(x).reshape(10, -1).T)(np.ones(1000))
    assert evaluation_memory(graph) == 8000  # in which the result lies
