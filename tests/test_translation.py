"""`jit(f).lower(...)`: what a function becomes, and what it costs; `WENGERT_LOG=kernels`."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import wengert as wg
from wengert.compile.profiling import TimedKernels
from wengert.kernel.grammar import parse_program
from wengert.passes.pipeline import flatten_calls
from wengert.support import config
from wengert.support.logs import say
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")
X = np.linspace(0.5, 1.0, 1000)


def test_all_forms_of_a_function() -> None:
    calls = []

    def f(x: Any) -> Any:
        calls.append(1)
        return np.sum(np.exp(x) * 2.0)

    function = wg.jit(f)
    lowered = function.lower(X)
    assert (len(calls), function.trace_count) == (1, 1)
    assert lowered.graph == flatten_calls(trace(f)(X))
    assert "reduce" in lowered.kernels
    assert parse_program(str(lowered.kernels)).kernels
    assert "define void @run" in lowered.llvm
    assert "run:" in lowered.asm
    assert "@" not in lowered.asm.split("run:")[1].split("\n")[1]
    for part in (lowered.kernels, lowered.llvm, lowered.asm):
        assert repr(part) == str(part)
    assert repr(lowered) == "<3 of 3 equations in 1 kernels; print .graph, .kernels, .llvm, .asm, .cost>"
    function(X)
    assert function.trace_count == 1


def test_what_numpy_computes_is_said_with_its_reason() -> None:
    lowered = wg.jit(lambda x: np.exp(np.median(np.exp(x)) * x)).lower(np.linspace(0.0, 1.0, 10_000))
    assert "by NumPy: median, no opcodes for so many elements, which NumPy sorts in less time" in lowered.kernels
    assert lowered.cost.left == 1
    assert repr(lowered.cost).splitlines()[-1] == "not counted: 1 equations that NumPy computes"


def test_a_profile_has_a_time_for_each_kernel_and_for_what_numpy_computes() -> None:
    x = np.linspace(0.0, 1.0, 200_000)
    function = wg.jit(lambda x: np.sum(np.partition(np.exp(x), 9) * x))
    profile = function.lower(x).profile(3)
    assert [span.name for span in profile.spans] == ["kernel 0", "NumPy: partition", "kernel 1"]
    assert all(0 < span.seconds < profile.seconds for span in profile.spans)
    assert profile.seconds == pytest.approx(sum([span.seconds for span in profile.spans]) + profile.between)
    first, sorting, _ = profile.spans
    assert sorting.cost is None
    assert first.cost == function.lower(x).cost.kernels[0]
    lines = repr(profile).splitlines()
    assert lines[0].split() == ["time", "share", "Gflop/s", "GB/s"]
    assert [line.split("  ")[0].strip() or line.split()[0] for line in lines[-1:]] == ["all"]
    assert "100%" in lines[-1]


def test_a_profile_has_room_for_a_look_at_the_clock_after_each_part_of_a_kernel() -> None:
    lowered = wg.jit(lambda x: np.sum(np.exp(x) * np.sin(x))).lower(np.linspace(0.0, 1.0, 100_000))
    (part,) = lowered.segments.parts
    assert part.program is not None
    timed = TimedKernels(part.program)
    assert len(timed.parts) == 1
    assert timed.kernels == [0, 0]  # a sum that threads share, and what is kept of it
    (_result, looks) = timed.run([np.linspace(0.0, 1.0, 100_000)])
    assert looks.shape == (3, 2)
    (span,) = lowered.profile(3).spans
    assert 0 < span.seconds < 0.1


def test_a_profile_takes_what_was_captured_and_writes_to_no_argument() -> None:
    w = wg.tensor([1.0, 2.0])

    def f(x: Any) -> Any:
        x[0] = 5.0
        return x * w

    x = np.ones(2)
    profile = wg.jit(f, donate_argnums=0).lower(x).profile(2)
    assert x.tolist() == [1.0, 1.0]
    assert len(profile.spans) == 1
    with pytest.raises(wg.errors.RangeError, match="profile: calls=0; a positive number is needed"):
        wg.jit(f).lower(x).profile(0)


def test_costs() -> None:
    n, size = len(X), X.itemsize
    total = wg.jit(lambda x: x * 2.0 + 1.0).lower(X).cost.total
    assert total == (2 * n, 2 * n, size * n, size * n)
    total = wg.jit(lambda x, y: np.sum(x * y)).lower(X, X).cost.total
    assert total == (2 * n, 2 * n, 2 * size * n, size)
    one, other = (wg.jit(g).lower(X).cost.total for g in (np.negative, np.exp))
    assert one.operations == other.operations == n
    assert other.flops > 15 * n
    windows = wg.jit(lambda x: x[1:] - x[:-1]).lower(X).cost.total
    assert windows == (n - 1, n - 1, size * n, size * (n - 1))  # each element is read from memory once
    product = wg.jit(lambda a, b: a @ b).lower(np.ones((8, 4)), np.ones((4, 16))).cost.total
    assert product.flops == 2 * 8 * 4 * 16
    whole = wg.jit(lambda x: x * 2).lower(np.arange(10)).cost.total
    assert (whole.operations, whole.flops) == (10, 0)


def test_large_constants_are_not_shown_whole() -> None:
    table = np.random.default_rng(0).random(1000)
    assert len(wg.jit(lambda x: x * table).lower(X).kernels) < 1000


@pytest.mark.long
def test_what_is_compiled_is_logged(tmp_path: Any) -> None:
    program = "import numpy as np; import wengert as wg; wg.jit(lambda x: np.exp(x) * 2.0)(np.ones(10))"
    environment = os.environ | {
        "WENGERT_LOG": "kernels,cache",
        "WENGERT_NATIVE": "1",
        "WENGERT_CACHE": str(tmp_path / "a"),
    }
    first, second = [
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment
        ).stderr
        for _ in range(2)
    ]
    assert " = load float64 x0[i1]\n" in first
    assert first.index("not found") < first.index("compiled to ") < first.rindex("kept, ")
    assert ("compiled to" in second, "found" in second) == (False, True)


def test_what_is_logged_goes_where_the_program_says(caplog: pytest.LogCaptureFixture, capsys: Any) -> None:
    with caplog.at_level(logging.INFO):
        say("cache", "a line")
    assert [(record.name, record.getMessage()) for record in caplog.records] == [("wengert.cache", "a line")]
    assert capsys.readouterr().err == ""
    assert "cache" not in config.LOGGED


def test_products_and_the_kernels_beside_them_are_counted_and_timed():
    x, y = np.linspace(-1.0, 1.0, 600).reshape(20, 30), np.linspace(0.0, 1.0, 450).reshape(30, 15)
    lowered = wg.jit(lambda x, y: np.tanh(np.sin(x) @ y)).lower(x, y)
    (product,) = lowered.cost.products
    assert product == (2 * 20 * 30 * 15, 2 * 20 * 30 * 15, 8 * (x.size + y.size), 8 * 20 * 15)
    assert "product 0" in str(lowered.cost)
    profile = lowered.profile(3)
    assert [span.name for span in profile.spans] == ["kernel 0", "product", "kernel 1"]
    assert profile.spans[1].cost == product
    assert min(profile.seconds, *[span.seconds for span in profile.spans]) > 0
