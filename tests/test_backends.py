"""Back ends: a further one, which prints C, takes a folder and no change elsewhere, and computes what graphs do."""

from __future__ import annotations

import marshal
from collections import Counter
from collections.abc import Iterator, Sequence
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.c_backend import COMPILER, C
from tests.cases import Failures, some_of
from tests.kernels import inputs_for, random_program
from tests.samples import SAMPLES
from tests.samples.calls import call_of
from tests.samples.running import chosen
from tests.test_lowering import require_same, value_graph
from wengert.compile.executable import Compiled
from wengert.compile.programs import PROCESSOR, using
from wengert.kernel.backend import Backend
from wengert.kernel.evaluation import Evaluator, evaluate
from wengert.kernel.kernel import Program
from wengert.transforms.tracing import trace

BACKENDS = [
    Evaluator(),
    pytest.param(C(), marks=pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")),
    pytest.param(PROCESSOR, marks=pytest.mark.skipif(find_spec("llvmlite") is None, reason="there is no LLVM")),
]
named = pytest.mark.parametrize("backend", BACKENDS, ids=lambda backend: backend.name)
X = np.linspace(0.5, 2.0, 12)


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


@pytest.mark.long
@named
def test_random_kernels(backend: Backend[Any, Any]) -> None:
    for seed in range(20):
        program = random_program(seed)
        inputs = inputs_for(program, seed)
        built = backend.build(backend.render(program))
        image = backend.unpack(marshal.loads(marshal.dumps(backend.pack(built, {}))))
        for got, want in zip(backend.load(image)(inputs), evaluate(program, inputs), strict=True):
            assert (got.shape, got.dtype) == (want.shape, want.dtype)
            limit = 1e-5 if want.dtype == np.float32 else 1e-12
            np.testing.assert_allclose(got, want, rtol=limit, atol=limit)


@pytest.mark.long
@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_samples_in_c() -> None:
    """Those that are not worded in C are few, and name what is missing."""
    refused, failures = Counter[str](), Failures()

    def call(program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
        return C().compile_program(program)(arrays)

    samples = some_of(chosen([s for s in SAMPLES if s.topic in ("elementwise", "selection")], few=True), "c")
    for sample in samples:
        graph = value_graph(sample)
        with failures.of(sample.name):
            try:
                if graph is not None:
                    require_same(graph, call_of(sample).copies(), call)
            except NotImplementedError as error:
                refused[str(error)] += 1
    failures.tell()
    assert sum(refused.values()) <= len(samples) // 8, refused


def heron(a: Any) -> Any:
    """Return square roots, by as many rounds as they take."""
    x = a
    while wg.numpy.max(abs(x * x - a)) > 1e-12:
        x = (x + a / x) / 2
    return x


def repeated(a: Any) -> Any:
    """Return what is left behind by each of some rounds, and the last of all."""
    return wg.scan(lambda x, row: (wg.numpy.sin(x) + row, x * row), a[0], a)


def switched(a: Any) -> Any:
    """Return what one of three branches gives, each round another one, two of which run loops."""
    until = lambda x: wg.while_loop(lambda x: x[0] > 0.1, lambda x: x * 0.5, x)
    branches = [until, lambda x: wg.fori_loop(0, 3, lambda i, x: x * 0.5 + i, x), lambda x: x[::-1] + 2]
    return wg.fori_loop(0, 5, lambda i, x: wg.switch(i % 3, branches, abs(x)), a)


@named
@pytest.mark.parametrize("function", [heron, repeated, wg.grad(lambda a: wg.numpy.sum(heron(a))), switched])
def test_traced_functions_with_loops(backend: Backend[Any, Any], function: Any) -> None:
    graph = trace(function)(X)
    with using(backend):
        compiled = Compiled(graph)
    assert compiled.segments.whole is not None or function not in (heron, switched)
    assert compiled.is_native
    for got, want in zip(compiled([X]), graph(X), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12)
