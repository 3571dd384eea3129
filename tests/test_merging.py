"""Dimensions that everything walks through as one are one, short ones with choices are spelled out, the others stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import a_third, together
from tests.kernels import as_if, inputs_for, random_program
from wengert.kernel.checking import findings
from wengert.kernel.evaluation import evaluate
from wengert.kernel.merging import merge_loops
from wengert.kernel.spelling import spelled_out, with_long_lanes
from wengert.lowering.partition import partition_graph
from wengert.passes.pipeline import flatten_calls
from wengert.transforms.tracing import trace

X = np.random.default_rng(0).normal(size=(5, 2, 3))

EXTENTS: dict[str, tuple[Any, list[tuple[int, ...]]]] = {
    "elementwise": (lambda x: np.sin(x) + 1.0, [(1, 30)]),
    "transposed": (lambda x: np.sin(x).T, [(1, 30)]),  # written in the order in which it is read
    "a broadcast row": (lambda x: x * x[0, 0], [(5, 2, 3)]),
    "a broadcast page": (lambda x: x * x[0], [(5, 6)]),
    "a part": (lambda x: x[1:4] * 2.0, [(1, 18)]),
    "a part of each": (lambda x: x[:, 1] * 2.0, [(5, 3)]),
    "sum of all": (lambda x: np.sum(x * x), [(1, 30)]),
    "sums of pages": (lambda x: np.sum(x * x, axis=(1, 2)), [(5, 6)]),
    "sums of columns": (lambda x: np.sum(x * x, axis=0), [(5, 6)]),
    "shifted": (lambda x: np.pad(x, ((0, 0), (0, 0), (1, 1))), [(5, 2, 5)]),
    "complex numbers": (lambda x: np.exp(x * 1j), [(1, 30)]),
    "complex numbers and a number": (lambda x: (x + 1j) * x[0, 0, 0], [(1, 30)]),
    "stacked": (lambda x: np.stack([np.sin(x), x, x * 2.0], axis=1), [(5, 6)]),
    "gradient": (wg.grad(lambda x: np.sum(np.exp(x))), [(1, 30)]),
}


@together("case", EXTENTS)
def test_extents(case: str) -> None:
    function, extents = EXTENTS[case]
    graph = trace(function)(X)
    segments = partition_graph(flatten_calls(graph))
    stages = [stage for part in segments.parts for kernel in part.program.kernels for stage in kernel.stages]
    assert [stage.extents for stage in stages] == extents
    for found, want in zip(segments.run([X], evaluate), graph(X), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-13)


def test_lanes_run_over_many_rows_of_few_points() -> None:
    x = np.random.default_rng(0).normal(size=(100, 3))
    graph = trace(lambda x: np.sin(x)[:, ::-1] * x[:, :1])(x)
    (part,) = partition_graph(flatten_calls(graph)).parts
    ((stage,),) = [kernel.stages for kernel in part.program.kernels]
    assert (stage.extents, len(stage.stores)) == ((1, 100), 3)
    assert not findings(part.program)


ROWS = np.random.default_rng(0).normal(size=(1000, 5))


def normalised(x: Any) -> Any:
    centred = x - np.mean(x, axis=1, keepdims=True)
    return centred / np.sqrt(np.mean(centred * centred, axis=1, keepdims=True) + 1e-5)


def softmax(x: Any) -> Any:
    shares = np.exp(x - np.max(x, axis=1, keepdims=True))
    return shares / np.sum(shares, axis=1, keepdims=True)


SHORT_ROWS: dict[str, Any] = {
    "softmax": softmax,
    "its logarithm summed": lambda x: (np.sum(np.log(softmax(x))), softmax(x)),
    "a gradient": wg.grad(lambda x: np.sum(np.cos(normalised(x)))),
}


@pytest.mark.parametrize("case", SHORT_ROWS)
def test_lanes_run_over_rows_of_several_stages(case: str) -> None:
    function = SHORT_ROWS[case]
    graph = flatten_calls(trace(function)(ROWS))
    segments = partition_graph(graph)
    stages = [stage for part in segments.parts for kernel in part.program.kernels for stage in kernel.stages]
    assert [stage.extents for stage in stages] == [(1, 1000)]
    natively = wg.tree.leaves(wg.jit(function, native=True)(ROWS))
    for found, native, want in zip(segments.run([ROWS], evaluate), natively, graph(ROWS), strict=True):
        np.testing.assert_allclose((found, native), (want, want), rtol=1e-12, atol=1e-12)


def test_random_programs_whose_rows_are_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    as_if(monkeypatch, spelled_rows=2, spelled_stages=10**6, gathered=(0, 0), row=-(10**6))
    for seed in range(a_third(60)):
        made = random_program(seed)
        found = with_long_lanes(merge_loops(made))
        assert not findings(found), seed
        with np.errstate(all="ignore"):
            inputs = inputs_for(made, seed)
            for one, other in zip(evaluate(found, inputs), evaluate(made, inputs), strict=True):
                np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)


@together("seed", range(a_third(100)))
def test_random_programs(seed: int) -> None:
    made = random_program(seed)
    found = merge_loops(spelled_out(made))
    assert not findings(found)
    with np.errstate(all="ignore"):
        inputs = inputs_for(made, seed)
        for one, other in zip(evaluate(found, inputs), evaluate(made, inputs), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5)
