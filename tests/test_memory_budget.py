"""Tests of `memory_budget`: loops in segments give the same bits and keep no more than they may, or say so."""

from __future__ import annotations

import math
import threading
import tracemalloc
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of
from tests.samples.base import normal
from wengert import extend
from wengert.control.loop_segments import bytes_kept, sizes_for
from wengert.control.loop_snapshots import first_places
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.core.values.recording import budget_of
from wengert.errors import RangeError, TracedTruthError
from wengert.scipy.integrate import odeint
from wengert.traces.grad_modes import byte_count

W, X, XS = 0.5 * normal(3, 3), normal(3), normal(23, 3)


def scanned(w: Any, x: Any, *, reverse: bool = False) -> Any:
    def step(carried: Any, row: Any) -> Any:
        a, k = carried["a"], carried["k"][0]
        a = np.tanh(w @ a + row * np.sin(a))
        return {"a": a, "k": (k + 1,)}, (a * k, k)

    end, (ys, ks) = wg.scan(step, {"a": x, "k": (1,)}, XS * x, reverse=reverse)
    return np.sum(end["a"] ** 2) + np.sum(ys * ys * np.arange(3)) + np.sum(ks) * 1e-3 * np.sum(x)


def counted(w: Any, x: Any) -> Any:
    return np.sum(wg.fori_loop(2, 25, lambda i, a: np.sin(w @ a) * i, x))


def nested(w: Any, x: Any) -> Any:
    def outer(a: Any, row: Any) -> Any:
        b = wg.fori_loop(0, 9, lambda _, b: np.tanh(w @ b + row), a)
        return b, np.sum(b)

    end, sums = wg.scan(outer, x, XS)
    return np.sum(end) + np.sum(sums**2)


def branching(w: Any, x: Any) -> Any:
    layer = wg.checkpoint(lambda a: np.tanh(w @ a) * a)

    def step(a: Any, row: Any) -> Any:
        b = wg.cond(a[0] < 0.1, layer, lambda a: np.where(a > 0.0, np.sqrt(np.abs(a)), w @ a), a)
        return wg.while_loop(lambda b: np.sum(b * b) > 4.0, lambda b: b * 0.5 * row, b), None

    return np.sum(wg.scan(step, x, XS, reverse=True)[0])


def ended(w: Any, x: Any) -> Any:
    step = lambda s: (np.sin(w @ s[0]) + x, s[1] + 1)
    a, _ = wg.while_loop(lambda s: np.logical_and(s[1] < 19, np.abs(s[0][0]) < 50.0), step, (x, 0))
    none = wg.while_loop(lambda b: b[0] > 100.0, lambda b: w @ b, a * x)
    return np.sum(a) + np.sum(none * none)


def ended_inside(w: Any, x: Any) -> Any:
    inner = lambda b: wg.while_loop(lambda b: np.sum(b * b) > 0.5, lambda b: np.cos(w @ b) * b * 0.8, b + 1.0)
    return np.sum(wg.while_loop(lambda s: s[1] < 5, lambda s: (np.sin(w @ inner(s[0])) + x, s[1] + 1), (x, 0))[0])


def reversed_rows(w: Any, x: Any) -> Any:
    return scanned(w, x, reverse=True)


FUNCTIONS = [scanned, reversed_rows, counted, nested, branching, ended]


def eager(f: Any) -> Any:
    return f


def derivatives(f: Any, wrap: Any) -> list[Any]:
    functions = [
        f,
        wg.grad(f, argnums=(0, 1)),
        lambda w, x: wg.jvp(wg.grad(f), (w, x), (w, x))[1],
        lambda w, x: wg.vmap(lambda x: wg.grad(f)(w, x))(np.stack([x, -x])),
        lambda w, x: wg.grad(lambda w: np.sum(wg.vmap(lambda x: f(w, x))(np.stack([x, -x]))))(w),
        lambda w, x: wg.grad(lambda w: np.sum(wg.grad(f)(w, x) * np.cos(w)))(w),
    ]
    return list(map(wrap, functions))


@pytest.mark.usefixtures("evaluated")
@pytest.mark.parametrize(("f", "wrap"), some_of([(f, wrap) for f in FUNCTIONS for wrap in (wg.jit, eager)], "budgets"))
def test_the_bits_are_those_without_a_budget(f: Any, wrap: Any) -> None:
    """Of values and gradients, forward over reverse, lanes inside and outside.

    The smallest budget leaves room for snapshots alone. Reverse over reverse sums in another order, and so do tapes for
    what all steps of loops read that a condition ends, or that are inside of others.
    """
    wanted = [g(W, X) for g in derivatives(f, wrap)]
    same_bits = wrap is wg.jit or f not in (nested, ended)
    for size in ({nested: 600, ended: 1000, branching: 1000}.get(f, 240), 2500):
        with wg.memory_budget(size):
            found = [g(W, X) for g in derivatives(f, wrap)[:5]]
        for one, other in zip(found, wanted, strict=False):
            for a, b in zip(*(x if type(x) is tuple else (x,) for x in (one, other)), strict=True):
                np.testing.assert_allclose(a, b, rtol=0.0 if same_bits else 1e-13)
    with wg.memory_budget(20_000):
        np.testing.assert_allclose(derivatives(f, wrap)[5](W, X), wanted[5], rtol=1e-12, atol=1e-12)


def test_tapes_keep_as_little() -> None:
    peaks, slopes = [], []
    for size in ("1 GB", "2 MB"):
        x = wg.tensor(np.linspace(0.1, 1.0, 4000), requires_grad=True)
        tracemalloc.start()
        with wg.memory_budget(size):
            y = np.sum(wg.fori_loop(0, 200, lambda _, c, x=x: np.sin(c) * np.cos(x), x))
        y.backward()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
        slopes.append(np.asarray(x.grad))
    np.testing.assert_array_equal(*slopes)
    assert peaks[1] < 3_000_000 < peaks[0] / 3


def test_functions_of_eager_loops_are_traced_under_a_budget() -> None:
    loss = lambda x: wg.scan(lambda c, _: (c * 2.0 if c > 0.0 else c, None), x, length=5)[0]
    assert wg.grad(loss)(1.0) == 32.0
    with wg.memory_budget("1 MB"), pytest.raises(TracedTruthError):
        wg.grad(loss)(1.0)


def kept(graph: Any) -> int:
    """Return how many bytes the loops of a graph leave behind, those inside of others once."""
    found = 0
    for equation in graph.equations:
        if equation.primitive.name == "scan":
            spec, body = equation.params["spec"], equation.params["body"]
            left = equation.outputs[spec.carried :] if not spec.reverse else ()
            found += sum(math.prod(v.shape) * v.dtype.itemsize for v in left) + kept(body) * spec.reverse
    return found


def repeated(x: Any, n: Any) -> Any:
    return np.sum(wg.while_loop(lambda s: s[1] < n, lambda s: (np.sin(s[0]) * x + 0.3, s[1] + 1), (x, 0))[0])


@pytest.mark.parametrize("wrap", [wg.jit, lambda f: f], ids=["jit", "eager"])
def test_loops_inside_of_loops_that_conditions_end(wrap: Any) -> None:
    gradient = wg.grad(ended_inside, argnums=(0, 1))
    wanted = gradient(W, X)
    with wg.memory_budget(2500):
        found = wrap(gradient)(W, X)
    np.testing.assert_allclose(found[0], wanted[0], rtol=1e-12)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)


class Repeated(wg.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any, times: Any) -> Any:
        ctx.save_for_backward(x, times)
        return wg.fori_loop(0, times, lambda _, x: np.tanh(x) + 0.25, x)

    @staticmethod
    def backward(ctx: Any, ct: Any) -> Any:
        x, times = ctx.saved_tensors
        return wg.vjp(lambda x: wg.fori_loop(0, times, lambda _, x: np.tanh(x) + 0.25, x), x)[1](ct)[0], None


@pytest.mark.parametrize("times", [0, 2])
def test_rules_that_are_written_in_loops_that_are_recorded_have_derivatives(times: int) -> None:
    f = lambda: wg.jit(lambda xs: np.sum(wg.vmap(lambda x: Repeated.apply(x, times))(xs)))
    tangent = lambda: wg.jvp(wg.grad(f()), (normal(3, 2),), (normal(3, 2),))[1]
    wanted = tangent()
    with wg.memory_budget("1 kB"):
        np.testing.assert_allclose(tangent(), wanted, rtol=1e-12)


@pytest.mark.usefixtures("evaluated")
@pytest.mark.parametrize("wrap", [wg.jit, lambda f: f], ids=["jit", "eager"])
def test_loops_that_a_condition_ends_keep_as_little(wrap: Any) -> None:
    x = np.linspace(0.1, 1.0, 500)
    wanted = wg.jit(wg.grad(repeated))(x, 150)
    for size in (600_000, 100_000):
        with wg.memory_budget(size):
            f = wrap(wg.grad(repeated))
            f(x, 1)
            tracemalloc.start()
            np.testing.assert_array_equal(f(x, 150), wanted)
            assert tracemalloc.get_traced_memory()[1] < size + 300_000
            tracemalloc.stop()
    with wg.memory_budget(5000), pytest.raises(RangeError, match=r"a loop of 1 steps that carries 4,008 bytes"):
        wrap(wg.grad(repeated))(x, 150)


@pytest.mark.parametrize("size", [10**7, 30_000, 6_000])
def test_no_more_is_kept_than_was_said_and_each_level_takes_each_step_once_more(size: int) -> None:
    x, length = np.linspace(0.1, 1.0, 8), 1000
    loss = lambda x: np.sum(wg.fori_loop(0, length, lambda _, x: np.sin(x) * x, x))
    graph = wg.jit(wg.grad(loss), memory_budget=size).lower(x).graph
    assert 0 < kept(graph) <= size
    state, residuals = x.nbytes + 8, 2 * x.nbytes
    sizes = sizes_for(length, state, residuals, size)
    assert len(sizes) == {10**7: 0, 30_000: 1, 6_000: 2}[size]
    assert bytes_kept(length, sizes, state, residuals) <= size


CALLS: list[Any] = []


def squared(x: Any) -> Any:
    CALLS.append(x)
    return x * x


@pytest.fixture
def square() -> Iterator[Any]:
    """A primitive that counts its calls, which other tests do not see among those of the library."""
    name = "test_memory_budget.square"
    yield extend.elementwise(name, squared, d=lambda t, _out, x: t * x * 2.0)
    del PRIMITIVES[name]


@pytest.mark.parametrize("count", [pytest.param(n, marks=[pytest.mark.long] * (n in (2, 9))) for n in (1, 2, 5, 9)])
def test_snapshots_take_as_many_steps_as_theory_says_and_no_more_memory(count: int, square: Any) -> None:
    loss = lambda x: np.sum(wg.scan(lambda x, _: (extend.apply(square, x), None), x, None, length=50)[0])
    x = np.ones(5000)
    gradient = wg.jit(wg.grad(loss), memory_budget=count * x.nbytes, native=False)
    assert np.all(gradient(x) == 2.0**50)
    passes = next(r for r in range(50) if math.comb(count + r, r) >= 50)
    CALLS.clear()
    gradient(x)
    last = 50 - first_places(50, count)[-1]  # steps after the last snapshot, taken once more for the value
    assert len(CALLS) == 50 * passes - math.comb(count + passes, count + 1) + last
    smooth = lambda x: np.sum(wg.scan(lambda x, _: (np.sqrt(x * x + 0.1), None), x, None, length=50)[0])
    few = wg.jit(wg.grad(smooth), memory_budget=count * x.nbytes, native=True)
    assert few.lower(x).memory < (count + 9) * x.nbytes
    np.testing.assert_array_equal(few(x), wg.jit(wg.grad(smooth), native=True)(x))


@pytest.mark.parametrize("inside", [True, False])
def test_lanes_share_the_budget(inside: bool) -> None:
    loss = lambda x: np.sum(wg.fori_loop(0, 1000, lambda i, x: np.sin(x) * 1.1, x))
    gradient = wg.vmap(wg.grad(loss)) if inside else wg.grad(lambda x: np.sum(wg.vmap(loss)(x)))
    x = np.linspace(0.1, 1.0, 240).reshape(30, 8)
    little = wg.jit(gradient, memory_budget="200 kB")
    np.testing.assert_array_equal(little(x), wg.jit(gradient)(x))
    assert wg.jit(gradient).lower(x).cost.memory > 1_500_000 > 400_000 > little.lower(x).cost.memory


def test_what_is_too_small_is_refused_with_what_is_needed() -> None:
    loss = lambda x: np.sum(wg.fori_loop(0, 1000, lambda i, x: np.sin(x), x))
    with pytest.raises(RangeError, match=r"60 bytes for the reverse of a loop of 1,000 steps that carries 72 bytes"):
        wg.jit(wg.grad(loss), memory_budget=60)(np.ones(8))
    with wg.memory_budget("0.06 kB"), pytest.raises(RangeError, match=r"at least 72 bytes are needed\. Raise the"):
        wg.jit(wg.grad(loss))(np.ones(8))
    with pytest.raises(RangeError, match=r"steps that carries [\d,]+ bytes; at least [\d,]+ bytes are needed"):
        wg.jit(wg.grad(lambda x: np.sum(wg.grad(loss)(x))), memory_budget=300)(np.ones(8))
    assert wg.jit(wg.grad(loss))(np.ones(8)).shape == (8,)


@pytest.mark.parametrize("size", [0, -1, "", "MB", "3 parsecs", 1.5, None, True, "1e3"])
def test_sizes_are_bytes(size: Any) -> None:
    with pytest.raises(RangeError, match="a positive number of bytes, or a text such as '500MB' or '2GiB'"):
        wg.memory_budget(size)
    assert [byte_count(x) for x in ("1.5 kB", "2gib", " 7 B", "9", 12)] == [1500, 2 * 1024**3, 7, 9, 12]


def test_graphs_are_kept_for_each_budget_and_for_gradients_of_jitted_functions() -> None:
    f = wg.jit(lambda x: np.sum(wg.fori_loop(0, 100, lambda i, x: np.sin(x), x)))
    g, x = wg.jit(wg.grad(lambda x: f(x))), np.ones(8)
    wanted = [g(x) for _ in range(4)][-1]  # called by an entry, if natively
    with wg.memory_budget(2000):
        graph = g.lower(x).graph
        np.testing.assert_array_equal(g(x), wanted)
        (form,) = [form for form in f.forms.values() if form.budget[0] == 2000] or [None]
        assert g.trace_count == 2
    assert kept(graph) <= 2000 < kept(g.lower(x).graph)
    assert g.trace_count == 2
    assert form is None or form.graph is not None


def test_contexts_belong_to_threads_and_end_with_errors_and_steps_of_generators() -> None:
    loss = lambda x: np.sum(wg.fori_loop(0, 1000, lambda i, x: np.sin(x), x))
    run = lambda: kept(wg.jit(wg.grad(loss)).lower(np.ones(8)).graph)
    plain, found = run(), []
    with wg.memory_budget("10 kB"):
        small = run()
        thread = threading.Thread(target=lambda: found.append(run()))
        thread.start()
        thread.join()
        with pytest.raises(ZeroDivisionError), wg.memory_budget("20 kB"):
            raise ZeroDivisionError
        assert run() == small

    @wg.memory_budget("10 kB")
    def steps() -> Any:
        yield run()
        yield run()

    iterator = steps()
    assert [next(iterator), run(), next(iterator)] == [small, plain, small]
    assert found == [plain]
    assert small <= 10_000 < plain


def test_sizes_are_whole_numbers_of_any_type():
    with wg.memory_budget(np.int64(4000)):
        assert wg.grad(lambda x: wg.fori_loop(0, 3, lambda i, x: x * x, x))(1.0) == 8.0


@pytest.mark.long
def test_second_gradients_of_loops_whose_inner_loops_leave_rows_of_unknown_number():
    def nested(x: Any) -> Any:
        inner = lambda j, y: wg.fori_loop(j, 2, lambda k, y: np.cbrt(y * y + 1.0) * 0.5 + k, y)
        return wg.fori_loop(0, 2, lambda i, y: wg.fori_loop(0, i + 1, inner, y), x)

    curvature = wg.grad(lambda x: np.sum(wg.grad(lambda x: np.sum(nested(x)))(x)))
    x = np.array([0.5, -1.0])
    expected = curvature(x)
    with wg.memory_budget(2000):
        np.testing.assert_allclose(curvature(x), expected, rtol=1e-12)


@pytest.mark.long
def test_second_gradients_of_integrations_in_a_share_of_a_budget() -> None:
    def state(x: Any) -> Any:
        return np.sum(odeint(lambda y, s: np.sin(x) - 0.3 * y, np.tanh(x), np.array([0.0, 0.2, 0.5])) ** 2)

    curvature = wg.grad(lambda x: np.sum(wg.grad(state)(x) * x))
    x = np.array([-0.5, -1.0])
    expected = curvature(x)
    with budget_of(200, is_share=True):
        np.testing.assert_allclose(curvature(x), expected, rtol=1e-10)


def test_constants_that_loops_end_with_are_arrays_that_may_be_written_to() -> None:
    """Literals of a graph are read-only, and are those of the next call."""
    for _ in range(2):
        with wg.memory_budget(10**6):
            counted = wg.fori_loop(0, 2, lambda i, x: W[0], X * 1.0)
            ended = wg.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, np.sin(W[0])), (0, X * 1.0))[1]
        assert np.array_equal(counted, W[0])
        assert np.array_equal(ended, np.sin(W[0]))
        counted *= 2.0
        ended *= 2.0


def test_second_gradients_of_loops_with_sequences_behind_a_mask() -> None:
    """Cotangents of rows that another loop left behind are no arrays, and are not looked through for NaN."""
    start = np.array([0.5, -1.0])

    def masked(x: Any) -> Any:
        total = np.sum(wg.scan(lambda t, u: (t * u, t[0]), x, np.ones(3))[1])
        y = wg.while_loop(lambda t: np.sum(t * t) < 90.0, lambda t: 2.0 * t * x, start * total, max_rounds=3)
        return np.sum(np.where(x < 0.0, y, np.nan) * y)

    curvature = wg.grad(lambda x: np.sum(wg.grad(masked)(x) ** 2))
    x = np.array([-0.5, -1.2])
    expected = curvature(x)
    with wg.memory_budget(2000):
        np.testing.assert_allclose(curvature(x), expected, rtol=1e-14)
