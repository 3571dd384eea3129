"""Native code of every sample and program: for three widths of vectors, by one thread and by two.

By default a part of the samples, each for one of them; `pytest --every` runs all.
`test_lowering.py` does the same with the evaluation of kernels by NumPy.
"""

from __future__ import annotations

import ctypes
import itertools
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.cases import OPTIONS, Failures, some_of
from tests.kernels import as_if
from tests.samples import SAMPLES
from tests.samples.calls import call_of
from tests.samples.running import chosen
from tests.test_composition import POINT, PROGRAMS, TRACED
from tests.test_emission import TARGETS
from tests.test_lowering import (
    DOUBLE,
    FLAGS,
    INTEGERS,
    OF_COMPLEX,
    OF_DTYPES,
    OF_PLACES,
    PLACES,
    PLANE,
    ROW,
    SINGLE,
    SMALL,
    TABLE,
    WAYS,
    WIDE,
    gradient_graph,
    require_same,
    value_graph,
)
from wengert.compile.programs import Processor
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import with_schedule
from wengert.native.threads.team import team_of
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")


@pytest.fixture(autouse=True)
def _without_floating_point_warnings() -> Iterator[None]:
    with np.errstate(all="ignore"):
        yield


def natively(program: Program, arrays: Sequence[Any], target: str, team: int | None = None) -> Sequence[Any]:
    """Carry out a program by native code."""
    return Processor(TARGETS[target], ctypes.c_void_p(team)).compile_program(with_schedule(program))(arrays)


def by_two_threads(program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
    """Carry out a program by a team, which must have the bits of one thread."""
    found = natively(program, arrays, "host", team_of(2).address)
    assert [x.tobytes() for x in found] == [x.tobytes() for x in natively(program, arrays, "host")]
    return found


EXECUTABLES = {**{target: partial(natively, target=target) for target in TARGETS}, "two threads": by_two_threads}


@pytest.fixture
def call(executable: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What carries out programs of kernels."""
    return call_of_executable(executable, monkeypatch)


def call_of_executable(executable: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Return what carries out programs of kernels; for threads even small ones are cut into parts."""
    if "threads" in executable:
        as_if(monkeypatch, clock=1e-9, part_lanes=16, fewest_parts=2)
    return EXECUTABLES[executable]


def own(cases: Sequence[Any], executable: str) -> Sequence[Any]:
    """Return the cases that run by one of the executables."""
    if OPTIONS.every:
        return cases
    names = list(EXECUTABLES)
    return [case for k, case in enumerate(some_of(cases, "natively")) if k % len(names) == names.index(executable)]


@pytest.mark.parametrize("executable", EXECUTABLES)
@pytest.mark.parametrize("topic", sorted({sample.topic for sample in SAMPLES}))
def test_samples_and_their_gradients(topic: str, executable: str, call: Any) -> None:
    failures = Failures()
    for sample in own(chosen([s for s in SAMPLES if s.topic == topic], few=True), executable):
        with failures.of(sample.name):
            graph = value_graph(sample)
            gradients = None if graph is None else gradient_graph(sample, graph)
            for one in some_of([x for x in (graph, gradients) if x is not None], sample.name):
                require_same(one, call_of(sample).copies(), call)
    failures.tell()


PAIRS = np.random.default_rng(1).normal(size=(64, 2))
OF_ELEMENTS = [
    *((name, function, [INTEGERS, SMALL, FLAGS, SINGLE, DOUBLE]) for name, function in OF_DTYPES.items()),
    *((name, function, [TABLE, PLACES, ROW, WIDE]) for name, function in OF_PLACES.items()),
    *((name, function, [PLANE, PAIRS @ [1, 1j], PAIRS[:, 0]]) for name, function in OF_COMPLEX.items()),
]


@pytest.mark.parametrize("executable", EXECUTABLES)
def test_elements_of_all_dtypes(executable: str, call: Any) -> None:
    failures = Failures()
    for name, function, args in own(OF_ELEMENTS, executable):
        with failures.of(name):
            require_same(trace(function)(*args), args, call)
    failures.tell()


@pytest.mark.parametrize("executable", EXECUTABLES)
def test_what_is_computed_rarely_leaves_whole_registers_alone(call: Any) -> None:
    """Results of 16 bytes beside vectors of 32: where LLVM clears the upper halves of registers, it must not."""

    def function(single: Any, double: Any) -> tuple[Any, Any]:
        return double + 1.0, single**-0.7

    for n in (3, 4, 7, 64):
        double = np.resize([0.5, -0.0, np.inf], n)
        args = [double.astype(np.float32), double]
        require_same(trace(function)(*args), args, call)


@pytest.mark.parametrize("executable", EXECUTABLES)
def test_programs(executable: str, call: Any) -> None:
    failures = Failures()
    for name, way in own(some_of(list(itertools.product(PROGRAMS, WAYS)), "programs"), executable):
        with failures.of(f"{way} of {name}"):
            graph = trace(WAYS[way](lambda x, program=PROGRAMS[name]: program(x, TRACED)))(POINT)
            require_same(graph, [POINT], call)
    failures.tell()
