"""Large elementwise operations on several threads: NumPy's values to the last bit, its warnings, and no harm done."""

from __future__ import annotations

import ctypes
import functools
import itertools
import math
import os
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wengert as wg
from tests.cases import some_of
from tests.samples import SAMPLES
from tests.samples.calls import call_of, same_bits
from tests.test_composition import DIRECTIONS, POINT, PROGRAMS, TRACED, TRANSFORMATIONS
from wengert.core.diagnostics.numpy_warnings import at_users_line
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values import evaluation
from wengert.errors import UsageError
from wengert.native import loader
from wengert.native.availability import MissingLLVMError
from wengert.native.builder import Builder, program
from wengert.native.functions import native
from wengert.native.structs import I64, VOID, Pointer, Struct
from wengert.native.threads import elementwise, inner_loops, job_tables, jobs, team
from wengert.native.threads.elementwise import LARGE, LoopSharing, share_ufunc
from wengert.native.threads.team import Team
from wengert.native.values import Value
from wengert.support import config, machine
from wengert.traces import dual, eager, eager_in_place, pulls

UFUNCS = sorted(
    {
        p.evaluate
        for p in PRIMITIVES.values()
        if isinstance(p.evaluate, np.ufunc)
        and p.evaluate_large is not None
        and p.evaluate is not np.ldexp  # takes integers
    },
    key=lambda ufunc: ufunc.__name__,
)


class Counting(LoopSharing):
    """Count what a team computed."""

    def __init__(self, threads: int) -> None:
        super().__init__(threads)
        self.computed = 0

    def apply(self, *arguments: Any) -> int:
        raised = super().apply(*arguments)
        self.computed += raised >= 0
        return raised


@pytest.fixture(scope="module")
def crew() -> Counting:
    try:
        team.check_system()
    except RuntimeError as error:
        pytest.skip(str(error))
    crew = Counting(3)
    crew.start()
    return crew


@pytest.fixture(autouse=True)
def _employed(crew: Counting, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(elementwise, "SHARING", crew)
    crew.computed = 0
    with np.errstate(all="ignore"):
        yield


def values(count: int, dtype: Any = np.float64, seed: int = 0) -> np.ndarray[Any, Any]:
    """Return numbers of all kinds, special ones included."""
    rng = np.random.default_rng(seed)
    array = rng.normal(size=count) * 10.0 ** rng.integers(-3, 3, size=count)
    array[rng.integers(count, size=50)] = np.nan
    array[rng.integers(count, size=50)] = [np.inf, -np.inf, 0.0, -0.0, 1.0] * 10
    return array.astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_values_are_numpys_to_the_last_bit(ufunc: np.ufunc, dtype: Any, crew: Counting) -> None:
    operands = [values(70_001, dtype, seed) for seed in range(ufunc.nin)]
    assert same_bits(share_ufunc(ufunc)(*operands), ufunc(*operands))
    if f"{np.dtype(dtype).char * ufunc.nin}->{np.dtype(dtype).char}" in ufunc.types:
        assert crew.computed == 1


@given(count=st.integers(LARGE, 6 * LARGE), threads=st.integers(2, 5), rank=st.integers(1, 3))
def test_every_element_is_computed_once_whatever_the_size_and_the_team(count: int, threads: int, rank: int) -> None:
    shape = (count,) if rank == 1 else (count // 7, 7) if rank == 2 else (2, count // 10, 5)
    x = np.arange(np.prod(shape), dtype=float).reshape(shape)
    crew = TEAMS.setdefault(threads, Counting(threads))
    if crew.native is None:
        crew.start()
    loop = inner_loops.loop_of(np.add, x.dtype)
    assert loop is not None
    total = np.zeros_like(x)
    assert crew.apply(loop[1], total, x, total) in (0, job_tables.REFUSED)  # too few elements are left to NumPy
    if x.size >= LARGE:
        assert np.array_equal(total, x)


TEAMS: dict[int, Counting] = {}


@st.composite
def windows(draw: st.DrawFn) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """Return two large arrays of one shape, which are parts of larger ones in whatever way."""
    shape = draw(st.sampled_from([(300, 200), (20, 30, 100), (2, 3, 100, 120), (500, 90), (64, 1, 700), (60_000,)]))

    def window(seed: int) -> np.ndarray[Any, Any]:
        margins = [draw(st.integers(0, 3)) for _ in shape]
        whole = values(math.prod(n + m for n, m in zip(shape, margins, strict=True)), np.float64, seed)
        whole = whole.reshape([n + m for n, m in zip(shape, margins, strict=True)])
        part = whole[tuple(slice(m // 2, m // 2 + n) for n, m in zip(shape, margins, strict=True))]
        form = draw(st.sampled_from(["as it is", "as it is", "backwards", "columns", "copy"]))
        if form == "backwards":
            return part[::-1]
        return np.asfortranarray(part) if form == "columns" else part.copy() if form == "copy" else part

    return window(0), window(1)


@given(windows())
def test_parts_of_arrays_are_computed_row_by_row(drawn: tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]) -> None:
    x, y = drawn
    for found, expected in (
        (share_ufunc(np.multiply)(x, y), x * y),
        (share_ufunc(np.subtract)(2.0, y), 2.0 - y),
        (share_ufunc(np.negative)(x), -x),
    ):
        assert same_bits(found, expected)
        assert found.strides == expected.strides
    whole = np.zeros([n + 2 for n in x.shape])
    part = whole[tuple(slice(1, -1) for _ in x.shape)]
    part[...] = y
    expected = part + x
    assert share_ufunc(np.add)(part, x, part) is part
    assert same_bits(part, expected)
    whole[tuple(slice(1, -1) for _ in x.shape)] = 0.0
    assert not whole.any()


def test_rows_are_shared(crew: Counting) -> None:
    grid = values(300 * 300).reshape(300, 300)
    share_ufunc(np.add)(grid[1:-1, 1:-1], grid[:-2, 1:-1])
    assert crew.computed == 1
    share_ufunc(np.add)(grid[::2, ::2], grid[::2, ::2])
    share_ufunc(np.add)(grid.T[1:, :], grid.T[1:, :])
    assert crew.computed == 1


MARKS = Struct("Marks", done=Pointer(I64), again=Pointer(job_tables.JOB), team=Pointer(job_tables.SHARED), nested=I64)


@native(VOID, *job_tables.JOB.parameters)
def mark(b: Builder, argument: Value, first: Value, last: Value) -> None:
    """Count what is done of a job, and try to dispatch another one meanwhile."""
    marks = argument.to(MARKS)
    with b.loop(last, first) as parts:
        marks.get("done").at(parts.index).fetch_add(1, "monotonic")
    team = marks.get("team")
    nested = b.call(team.get("dispatch"), team, marks.get("again"), argument, 1000, 1)
    marks.field("nested").fetch_add(nested, "monotonic")


@pytest.mark.parametrize(("count", "grain"), [(1, 1), (3, 1), (4, 1), (5, 1), (100, 7), (1000, 100), (1003, 10)])
def test_a_job_of_any_kind_is_done_once(count: int, grain: int, crew: Counting) -> None:
    done = (ctypes.c_int64 * count)()
    function = loader.kept_code(program(mark)).addresses[mark.name]
    marks = MARKS.ctype(ctypes.addressof(done), function, crew.place.value, 0)
    for rounds in range(1, 20):
        raised = team.team_of(3).run(function, ctypes.addressof(marks), count, grain)
        shared_out = count >= 4 * grain
        assert raised == (0 if shared_out else job_tables.REFUSED)
        assert set(done) == ({rounds} if shared_out else {0})
    assert (marks.nested < 0) == shared_out  # while a job runs, others are refused


NUMBERS = (2.0, 3, -0.0, np.float64(1.5), np.float32(1.5), np.float64(1e300), 2**40, True, 1j)


@pytest.mark.parametrize("number", NUMBERS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_combine_as_in_numpy(number: Any, dtype: Any) -> None:
    x = values(LARGE, dtype)
    assert same_bits(share_ufunc(np.multiply)(x, number), x * number)
    assert same_bits(share_ufunc(np.subtract)(number, x), number - x)


def unusual(x: np.ndarray[Any, Any]) -> dict[str, np.ndarray[Any, Any]]:
    """Return arrays that hold the numbers of `x` in other ways."""
    bytes_of_x = np.empty(x.nbytes + 1, np.uint8)
    misaligned = bytes_of_x[1:].view(x.dtype)
    misaligned[:] = x
    readonly = x.copy()
    readonly.flags.writeable = False
    return {
        "gaps": np.repeat(x, 2)[::2],
        "backwards": x[::-1].copy()[::-1],
        "columns": np.asfortranarray(x.reshape(4, -1)),
        "read-only": readonly,
        "other byte order": x.astype(x.dtype.newbyteorder()),
        "misaligned": misaligned,
        "broadcast": np.broadcast_to(x[:1], x.shape),
        "integers": np.arange(x.size),
        "complex": x + 1j,
    }


@pytest.mark.parametrize("kind", list(unusual(values(LARGE))))
def test_other_layouts_and_dtypes(kind: str) -> None:
    x = unusual(values(2 * LARGE))[kind]
    y = values(2 * LARGE, seed=1).reshape(x.shape)
    for left, right in ((x, y), (y, x), (x, x), (x, y[..., :1]), (x, y.reshape(-1)[0])):
        assert same_bits(share_ufunc(np.multiply)(left, right), left * right)
    assert same_bits(share_ufunc(np.negative)(x), -x)


def test_only_suitable_arrays_reach_the_team(crew: Counting) -> None:
    x = values(2 * LARGE)
    for kind, array in unusual(x).items():
        before = crew.computed
        share_ufunc(np.multiply)(array, array)
        assert (crew.computed > before) == (kind == "read-only"), kind


CONDITIONS: dict[str, Callable[[], Any]] = {
    "divide by zero encountered in divide": lambda: at_users_line(
        share_ufunc(np.divide), np.ones(LARGE), np.zeros(LARGE)
    ),
    "overflow encountered in multiply": lambda: at_users_line(share_ufunc(np.multiply), np.full(LARGE, 1e300), 1e300),
    "invalid value encountered in log": lambda: at_users_line(share_ufunc(np.log), -np.ones(LARGE)),
    "underflow encountered in multiply": lambda: at_users_line(
        share_ufunc(np.multiply), np.full(LARGE, 1e-300), 1e-300
    ),
}


@pytest.mark.parametrize("message", CONDITIONS)
def test_conditions_are_reported_as_numpy_does(message: str) -> None:
    with np.errstate(all="warn"), pytest.warns(RuntimeWarning, match=message):
        CONDITIONS[message]()
    with np.errstate(all="raise"), pytest.raises(FloatingPointError, match=message):
        CONDITIONS[message]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CONDITIONS[message]()


def test_a_number_that_is_too_large_is_reported_once() -> None:
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        at_users_line(share_ufunc(np.multiply), np.ones(LARGE, np.float32), 1e300)
    assert len(found) == 1


def test_a_condition_met_before_is_not_reported() -> None:
    ctypes.CDLL(None).feraiseexcept(machine.CONDITIONS["divide"])
    x = np.ones(100 * LARGE)
    with np.errstate(all="raise"):
        for _ in range(100):
            share_ufunc(np.multiply)(x, 2.0)


def test_the_left_operand_may_be_overwritten() -> None:
    x, y = values(LARGE), values(LARGE, seed=1)
    expected = x * y
    assert share_ufunc(np.multiply)(x, y, x) is x
    assert same_bits(x, expected)


def operands_of(ufunc: np.ufunc) -> list[np.ndarray[Any, Any]]:
    """Return operands of a ufunc from its first sample that has floating-point arrays alone."""
    for sample in SAMPLES:
        leaves = call_of(sample).leaves
        if sample.function is ufunc and len(leaves) == ufunc.nin and all(x.dtype == float and x.size for x in leaves):
            return [np.resize(leaf, 1_024) for leaf in leaves]
    raise AssertionError(f"{ufunc} has no such sample")


def value_and_gradients(ufunc: np.ufunc, *arrays: Any) -> list[Any]:
    """Return what a ufunc gives, and its gradients for a cotangent that repeats as the operands do."""
    leaves = [wg.tensor(array, requires_grad=True) for array in arrays]
    out = ufunc(*leaves)
    out.backward(np.resize(np.linspace(-1.0, 2.0, 1_024), out.shape))
    return [out.detach().numpy(), *(leaf.grad.numpy() for leaf in leaves if leaf.grad is not None)]


@pytest.mark.parametrize("ufunc", UFUNCS, ids=lambda ufunc: ufunc.__name__)
def test_gradients_of_large_arrays_are_those_of_their_pieces(ufunc: np.ufunc, crew: Counting) -> None:
    pieces = operands_of(ufunc)
    small = value_and_gradients(ufunc, *pieces)
    large = value_and_gradients(ufunc, *(np.tile(piece, 40) for piece in pieces))
    assert len(large) == len(small)
    assert all(same_bits(a, np.tile(b, 40)) for a, b in zip(large, small, strict=True))
    assert crew.computed


def test_a_chain_with_shared_operands(crew: Counting) -> None:
    def program(x: Any, a: Any, b: Any) -> Any:
        for _ in range(5):
            x = x * a + b - x / 3.0 + 2.0 * x
        return (np.sin(x) * -x).sum()

    def gradients(arrays: Any) -> list[Any]:
        leaves = [wg.tensor(array, requires_grad=True) for array in arrays]
        program(*leaves).backward()
        return [leaf.grad.numpy() for leaf in leaves]

    rng = np.random.default_rng(0)
    pieces = rng.normal(size=(3, 4_096))
    small = gradients(pieces)
    large = gradients(np.tile(pieces, (1, 16)))
    assert crew.computed > 50
    assert all(same_bits(a, np.tile(b, 16)) for a, b in zip(large, small, strict=True))


def test_second_order_and_the_other_modes() -> None:
    x = np.tile(np.linspace(0.1, 2.0, 512), 128)

    def f(x: Any) -> Any:
        return (np.exp(x) * x / 3.0).sum()

    expected = np.exp(x) * (x + 1) / 3.0
    assert np.allclose(wg.grad(f)(x), expected, rtol=1e-14)
    assert np.allclose(wg.jvp(wg.grad(f), (x,), (np.ones_like(x),))[1], np.exp(x) * (x + 2) / 3.0, rtol=1e-14)
    assert np.allclose(wg.grad(lambda x: wg.grad(f)(x).sum())(x), np.exp(x) * (x + 2) / 3.0, rtol=1e-14)
    lanes = wg.vmap(wg.grad(f))(np.stack([x, x + 1.0]))
    assert np.allclose(lanes[0], expected, rtol=1e-14)


@pytest.mark.parametrize("chain", some_of(list(itertools.product(TRANSFORMATIONS, repeat=2)), "large", 2), ids="-".join)
def test_compositions_do_not_depend_on_what_counts_as_large(
    chain: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def results() -> list[Any]:
        found = []
        for example in PROGRAMS.values():
            f: Any = functools.partial(example, m=TRACED)
            for name, direction in zip(chain, DIRECTIONS, strict=False):
                f = TRANSFORMATIONS[name][0](f, direction)
            found.append(wg.asarray(f(POINT)).numpy())
        return found

    small = results()
    for module in (evaluation, eager, eager_in_place, dual, pulls):
        monkeypatch.setattr(module, "LARGE", 2)
    assert all(same_bits(a, b) for a, b in zip(results(), small, strict=True))


def test_a_mask_hides_infinite_partials_of_large_arrays() -> None:
    x = wg.tensor(np.tile([0.0, 1.0], LARGE), requires_grad=True)
    np.where(x > 0, x * np.log(x), 0.0).sum().backward()
    assert x.grad is not None
    assert np.array_equal(x.grad.numpy(), np.tile([0.0, 1.0], LARGE))


def test_threads_that_dispatch_at_the_same_time() -> None:
    x, y = values(3 * LARGE), values(3 * LARGE, seed=1)
    expected = x * y
    wrong: list[int] = []

    def run() -> None:
        product = share_ufunc(np.multiply)
        wrong.extend(1 for _ in range(100) if not same_bits(product(x, y), expected))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def comes_true(condition: Callable[[], bool], meanwhile: Callable[[], object]) -> bool:
    """Do something over and over until a condition holds, for half a minute at most."""
    end = time.monotonic() + 30.0
    while time.monotonic() < end:
        if condition():
            return True
        meanwhile()
    return False


def places(crew: Counting) -> list[Any]:
    """Return the places of a team's workers."""
    first, size = crew.place.value + job_tables.SHARED.size, job_tables.PLACE.size
    return [job_tables.PLACE.view(first + size * n) for n in range(1, crew.threads)]


def test_workers_fall_asleep_and_those_needed_are_woken(crew: Counting) -> None:
    first, second = places(crew)
    x = values(LARGE)
    share_ufunc(np.multiply)(x, x)  # the first job makes the workers; this may be the first test that runs
    for _ in range(3):
        assert comes_true(lambda: first.asleep == second.asleep == 1, lambda: time.sleep(0.001))
        assert comes_true(lambda: first.asleep == 0, lambda: share_ufunc(np.multiply)(x, x))
        assert second.asleep == 1


def test_workers_take_part(crew: Counting) -> None:
    x = np.linspace(0.0, 1.0, 100 * LARGE)
    running: set[int] = set()

    def watch() -> None:
        running.update(place.number for place in places(crew) if place.state == jobs.RUNNING)

    dispatching = threading.Thread(target=lambda: comes_true(lambda: len(running) == 2, lambda: share_ufunc(np.sin)(x)))
    dispatching.start()
    assert comes_true(lambda: len(running) == 2, watch)
    dispatching.join()


def test_numpy_does_all_the_work_where_a_team_cannot_be_made(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(*_: Any) -> Any:
        raise MissingLLVMError("no LLVM")

    monkeypatch.setattr(team, "team_of", absent)
    lonely = Counting(2)
    monkeypatch.setattr(elementwise, "SHARING", lonely)
    x = values(LARGE)
    for _ in range(2 * elementwise.TRIAL):
        assert same_bits(share_ufunc(np.add)(x, x), x + x)
    assert lonely.computed == 0


def test_numpy_does_all_the_work_where_no_thread_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(elementwise, "SHARING", Counting(2))
    x = values(LARGE)
    for _ in range(2 * elementwise.TRIAL):
        assert same_bits(share_ufunc(np.add)(x, x), x + x)


def test_an_unknown_processor_gets_no_team(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(team, "PROCESSOR", "riscv64")
    with pytest.raises(RuntimeError, match="riscv64"):
        Team(2)


def test_one_thread_makes_no_team(monkeypatch: pytest.MonkeyPatch) -> None:
    alone = Counting(1)
    monkeypatch.setattr(elementwise, "SHARING", alone)
    x = values(LARGE)
    for _ in range(2 * elementwise.TRIAL):
        share_ufunc(np.add)(x, x)
    assert alone.native is None


@pytest.mark.parametrize("given_text", ["two", "0", "-1", "1.5"])
def test_a_wrong_number_of_threads_is_refused(given_text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_THREADS", given_text)
    with pytest.raises(UsageError, match=r"WENGERT_THREADS.*a number of threads from 1 to 256 is needed"):
        config.thread_count()


@pytest.mark.parametrize("topics", ["foo", "passes,cach", "kernel"])
def test_wrong_topics_of_logs_are_refused(topics: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_LOG", topics)
    wrong = topics.split(",")[-1]
    with pytest.raises(UsageError, match=f"^WENGERT_LOG: '{wrong}'; some of passes, loops, kernels, cache are needed"):
        config.logged_topics()


def test_the_number_of_threads_can_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WENGERT_THREADS", "7")
    monkeypatch.setenv("OMP_NUM_THREADS", "5")
    assert config.thread_count() == 7
    monkeypatch.delenv("WENGERT_THREADS")
    assert config.thread_count() == 5
    monkeypatch.setenv("OMP_NUM_THREADS", "4,2")  # nested regions, which are not ours
    assert config.thread_count() == 4


def test_switches_are_words_for_on_and_off(monkeypatch: pytest.MonkeyPatch) -> None:
    for word, wanted in {"1": True, "On": True, "0": False, "off": False, "NO": False, "": None}.items():
        monkeypatch.setenv("WENGERT_NATIVE", word)
        assert config.switch("WENGERT_NATIVE") is wanted
    monkeypatch.setenv("WENGERT_NATIVE", "never")
    with pytest.raises(UsageError, match=r"^WENGERT_NATIVE: 'never'; 1 or 0 is needed\. Set one of the two"):
        config.switch("WENGERT_NATIVE")


@pytest.mark.parametrize("given", [0, -1, 2.0, True, "2", None])
def test_set_num_threads_needs_a_positive_number(given: Any) -> None:
    with pytest.raises(UsageError) as caught:
        wg.set_num_threads(given)
    text = f"set_num_threads: {given!r}; a number of threads from 1 to 256 is needed. Pass 1 to compute on one thread."
    assert str(caught.value) == text


def test_the_number_of_threads_can_be_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Counting(2)
    monkeypatch.setattr(elementwise, "SHARING", changed)
    x = values(2 * LARGE)

    def computed(ufunc: np.ufunc = np.sin) -> int:
        before = changed.computed
        assert same_bits(share_ufunc(ufunc)(x), ufunc(x))
        return changed.computed - before

    wg.set_num_threads(4)  # before there is a team
    assert (changed.threads, changed.native, computed()) == (4, None, 0)
    changed.start()
    for threads in (3, 2, 3):
        before = changed.place.value
        wg.set_num_threads(threads)
        assert comes_true(lambda: computed() == 1, lambda: time.sleep(0.001))
        assert before != changed.place.value
        assert job_tables.SHARED.view(changed.place.value).threads == threads
    wg.set_num_threads(1)
    assert [computed() for _ in range(3 * elementwise.TRIAL)] == [0] * 3 * elementwise.TRIAL
    assert changed.place.value is None
    wg.set_num_threads(2)
    assert comes_true(lambda: computed() == 1, lambda: time.sleep(0.001))


def test_a_team_that_is_ready_after_the_number_was_changed_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    changed = Counting(2)
    made = team.team_of

    def slow(threads: int) -> Team:
        changed.threads = 5
        return made(threads)

    monkeypatch.setattr(team, "team_of", slow)
    changed.start()
    assert (changed.native, changed.place.value) == (None, None)


PROGRAM = """
import os, sys
import numpy as np
import wengert as wg

def work():
    x = wg.tensor(np.ones(100_000), requires_grad=True)
    for _ in range(20):
        y = x
        for _ in range(20):
            y = y * 1.0 + 0.0
        y.sum().backward()
    return float(x.grad.sum())

work()
"""


def in_a_process(program: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Run a program with a team of two."""
    environment = {**os.environ, "WENGERT_THREADS": "2", **settings}
    return subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=120)


LONG = 2_000_000
"""How often a worker's part looks for work: some 0.1 seconds."""


@native(VOID, *job_tables.JOB.parameters)
def wait_for_the_worker(b: Builder, argument: Value, first: Value, _last: Value) -> None:
    """Wait in the first part until the worker has begun; take long in the first part of the worker's region."""
    begun = argument.to(I64)
    with b.when(first.equals(0)), b.forever(), b.when(begun.fetch_add(0, "seq_cst").differs(0)):
        b.give()
    with b.when(first.equals(jobs.MANY // 2)):
        begun.fetch_add(1, "seq_cst")
        b.do(jobs.linger, LONG)


def turns_on_one_processor() -> None:
    """Print how much processor time the dispatcher takes of what a worker takes for which it waits."""
    os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])
    names = (wait_for_the_worker.name,)
    function = loader.kept_code(program(wait_for_the_worker)).addresses[names[0]]
    begun, pair = ctypes.c_int64(), team.team_of(2)
    start = time.thread_time(), time.process_time()
    pair.run(function, ctypes.addressof(begun), jobs.MANY, 1)
    own, whole = time.thread_time() - start[0], time.process_time() - start[1]
    print(begun.value, own / (whole - own))


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="no affinities on this system")
def test_who_waits_for_another_on_the_same_processor_gives_way() -> None:
    done = in_a_process(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
        "from tests.test_team import turns_on_one_processor\n"
        "turns_on_one_processor()"
    )
    begun, share = done.stdout.split()
    assert begun == "1"
    assert float(share) < 0.5  # half of the turns are its own if it does not: 1


def test_a_process_ends_while_its_workers_look_for_work() -> None:
    done = in_a_process(PROGRAM + "print('done')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "done\n", "")


def test_a_process_ends_that_asks_for_a_team_while_it_ends() -> None:
    program = (
        "import numpy as np, wengert as wg\n"
        "class Last:\n"
        "    def __init__(self): self.x = wg.tensor(np.ones(100_000))\n"
        "    def __del__(self): print([float((self.x * 1.0).numpy()[0]) for _ in range(40)] == [1.0] * 40)\n"
        "last = Last()\n"
    )
    done = in_a_process(program)
    assert (done.returncode, done.stdout, done.stderr) == (0, "True\n", "")


FORKED = """
import threading
from wengert.native.threads import job_tables
from wengert.native.threads.elementwise import SHARING

def recruited():
    return job_tables.SHARED.view(SHARING.place.value).recruited

def threads():
    return len(os.listdir("/proc/self/task")) if os.path.exists("/proc/self/task") else 0

x = np.linspace(0.0, 1.0, 1_000_000)
run = wg.jit(lambda x: np.sum(np.exp(np.sin(x)) * x))
expected = run(x)
SHARING.native or SHARING.start()

def child(using):
    alone = recruited() == 0 and threads() <= 1
    right = using() in (expected, 2e6)
    return alone and right and recruited() == 1 and threads() != 1

def in_children():
    found = []
    for using in (lambda: run(x), work, lambda: run(x)):
        number = os.fork()
        if number == 0:
            os._exit(0 if child(using) else 1)
        found.append(os.waitstatus_to_exitcode(os.waitpid(number, 0)[1]))
    return found

before = in_children()                   # the team has not had a job yet, or has just had one
work(), run(x)
stop = threading.Event()
busy = threading.Thread(target=lambda: [run(x) for _ in iter(stop.is_set, True)])
busy.start()                             # it dispatches jobs while processes are made
after = in_children()
stop.set()
busy.join()
print(before, after, run(x) == expected, recruited())
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forked_processes_have_teams_of_their_own_from_the_first_job_on() -> None:
    done = in_a_process(PROGRAM + FORKED, WENGERT_NATIVE="1")
    assert (done.returncode, done.stdout) == (0, "[0, 0, 0] [0, 0, 0] True 1\n"), done.stdout + done.stderr


@pytest.mark.skipif(sys.platform != "linux", reason="memory is limited in another way there")
def test_where_the_system_has_no_threads_to_spare_one_does_all() -> None:
    program = (
        "from wengert.native.threads.elementwise import SHARING\n"
        "SHARING.start()\n"  # here, not by a thread that ends: the system keeps its stack for another
        f"{PROGRAM}import resource\n"
        "from wengert.native.threads import job_tables\n"
        "SHARING.threads = 3; SHARING.start()\n"  # another team, without workers yet
        "x = np.ones(100_000)\n"
        "pages = int(open('/proc/self/statm').read().split()[0])\n"
        "resource.setrlimit(resource.RLIMIT_AS, (pages * 4096 + 3_000_000,) * 2)\n"  # less than a stack
        "print(float(np.sum(wg.asarray(x) * 2.0)), job_tables.SHARED.view(SHARING.place.value).threads)\n"
    )
    done = in_a_process(program)
    assert (done.returncode, done.stdout) == (0, "200000.0 1\n"), done.stderr


@pytest.mark.skipif(not hasattr(os, "sched_getaffinity"), reason="no affinities on this system")
def test_an_interrupt_reaches_the_main_thread() -> None:
    program = PROGRAM + (
        "import signal, threading\n"
        "from wengert.native.threads.elementwise import SHARING\n"
        "SHARING.native or SHARING.start()\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # shells let jobs in the background ignore it
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()\n"
        "try:\n"
        "    while True: work()\n"
        "except KeyboardInterrupt:\n"
        "    print('interrupted', work())\n"
    )
    done = in_a_process(program)
    assert (done.returncode, done.stdout) == (0, "interrupted 2000000.0\n"), done.stderr
