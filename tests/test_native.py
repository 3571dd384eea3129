"""Jitted functions as native code: what they give is what NumPy gives but for rounding."""

import contextlib
import gc
import math
import pickle
import threading
from types import SimpleNamespace

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from tests.samples.accumulations import recurrence
from wengert.compile.executable import Compiled, GraphFunction
from wengert.compile.programs import REFUSALS, Processor
from wengert.errors import DtypeError, UsageError
from wengert.lowering.costs import calls_before, is_worthwhile
from wengert.native.availability import MissingLLVMError
from wengert.support import config
from wengert.support.collector_pause import LoadingPause
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")
X = np.linspace(-0.9, 1.1, 10)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def softmax(x):
    moved = np.exp(x - np.max(x))
    return moved / np.sum(moved)


def solved(x):
    return np.linalg.solve(np.eye(len(x)) * 2.0, np.exp(x)) * x


def unchanged(x):
    return x, np.cumsum(x[::-1]), x * 2.0


@pytest.mark.parametrize("f", [rosenbrock, softmax, solved, unchanged])
def test_values(f):
    run = Compiled(trace(f)(X))
    found, expected = run([X]), f(X)
    for ours, theirs in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("f", [rosenbrock, lambda x: np.sum(softmax(x) ** 2), lambda x: np.sum(solved(x))])
def test_gradients(f):
    run = Compiled(trace(wg.value_and_grad(f))(X))
    for ours, theirs in zip(run([X]), wg.value_and_grad(f)(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


def test_roots_are_what_numpy_makes_of_the_exponent_one_half():
    x = np.array([-np.inf, -0.0, 2.0])
    functions = lambda x: x**0.5, lambda x: np.float_power(x, 0.5), lambda x: x ** np.array([0.5, 0.5, 0.25])
    with np.errstate(invalid="ignore"):
        for f in functions:
            np.testing.assert_allclose(Compiled(trace(f)(x))([x])[0], f(x), rtol=1e-15)


@pytest.mark.parametrize("rows", [3, 8])
def test_products_of_what_does_not_vary_along_the_lanes(rows):
    def f(x, y):
        repeated = [np.broadcast_to(z, (rows, 4)) for z in (x, y)]
        return np.einsum("ij,kj->ki", *repeated), repeated[0] @ repeated[1].T, np.einsum("ij,kj->i", *repeated)

    args = [X[:4], X[3:7]]
    for ours, theirs in zip(Compiled(trace(f)(*args))(args), f(*args), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("heavy", [False, True])
@pytest.mark.parametrize("lengths", [(600,) * 20, (3, 700, 0, 513, 1, 2048, *(530,) * 9), (5,) * 40])
def test_many_arrays_are_joined(lengths, heavy):
    xs = [np.sin(np.arange(float(n)) + k) for k, n in enumerate(lengths)]

    def join(*xs):
        found = np.concatenate([(k + 1) * x for k, x in enumerate(xs)])
        return np.exp(-found * found) * np.tanh(found) + np.log1p(found * found) if heavy else found

    expected = join(*xs)
    np.testing.assert_allclose(wg.jit(join, native=True)(*xs), expected, rtol=1e-13, atol=1e-15)
    dual = wg.jit(wg.grad(lambda *xs: np.sum(join(*xs) ** 2), argnums=1), native=True)(*xs)
    np.testing.assert_allclose(dual, wg.grad(lambda *xs: np.sum(join(*xs) ** 2), argnums=1)(*xs), rtol=1e-12)


def test_threads_that_call_first_and_natively_do_not_meet_in_memory():
    def f(x):
        z = np.exp(x) / np.sum(np.exp(x), axis=0)
        return np.exp(z - z.T - np.max(z, axis=0))

    given = [np.random.default_rng(k).normal(size=(200, 200)) for k in range(4)]
    graph = trace(f)(given[0])
    expected = [Compiled(graph)([x])[0] for x in given]
    failures, together = [], threading.Barrier(4)

    def use(k):
        for run in runs:
            together.wait()
            found = [run([given[k]])[0] for _ in range(4)]
            failures.extend(k for x in found if not np.array_equal(x, expected[k]))

    runs = [Compiled(graph) for _ in range(5)]
    threads = [threading.Thread(target=use, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_what_kernels_cannot_do_runs_as_numpy_between_them():
    many = np.linspace(-0.9, 1.1, 200)
    run = Compiled(trace(lambda x: np.exp(np.median(np.exp(np.sin(x[:, None] * x)), 0)[:, None] * x))(many))
    assert [part.program is None for part in run.segments.parts] == [False, True, False]
    assert [reason for part in run.segments.parts for reason in part.reasons] == [
        "no opcodes for so many elements, which NumPy sorts in less time"
    ]


# When


@pytest.mark.parametrize("error", [NotImplementedError, MissingLLVMError, AttributeError, ImportError, OSError])
def test_what_is_no_refusal_of_the_back_end_is_seen(error, monkeypatch):
    def render(_self, _program):
        raise error("at a kernel")

    monkeypatch.setattr(Processor, "render", render)
    run = GraphFunction(trace(lambda x: np.sinh(x) * 3.25)(X), at_once=True)
    if issubclass(error, REFUSALS):
        np.testing.assert_array_equal(run(X)[0], np.sinh(X) * 3.25)
    else:
        with pytest.raises(error, match="at a kernel"):
            run(X)


def test_parts_with_little_work_are_left_to_numpy():
    run = Compiled(trace(lambda x: np.partition(np.exp(x), 0) * x)(X))
    assert [part.program is None for part in run.segments.parts] == [True]
    assert set(run.segments.parts[0].reasons) == {"a routine of NumPy", "too little work for a call of native code"}
    views = trace(lambda x: np.partition(x.T[::-1], 1, axis=0).T)(np.ones((300, 300)))
    assert [part.program is None for part in Compiled(views).segments.parts] == [True]
    rows = Compiled(trace(lambda x: [np.partition(row, 0) for row in x[::-1]])(np.ones((20, 5))))
    assert not rows.is_native
    view = Compiled(trace(lambda x: x.T[::-1])(np.ones((300, 300)))).segments.parts
    assert [part.reasons for part in view] == [("a view, and nothing else to compute",) * 2]
    assert is_worthwhile(trace(np.exp)(np.ones(10_000)))
    assert is_worthwhile(trace(list)(np.ones((300, 4))))


def test_known_arrays_are_results_too_where_numpy_computes_instead():
    run = Compiled(trace(lambda x: (np.argsort(x * 1.0), np.arange(3.0)))(np.ones(20)))
    assert run.is_native
    x = np.ones(20)  # whose order, of equal ones, is up to NumPy
    x[3] = 0.5
    order, known = run([x])
    np.testing.assert_array_equal(order, np.argsort(x))
    np.testing.assert_array_equal(known, np.arange(3.0))


def test_a_graph_is_compiled_when_its_calls_took_as_long_as_that(monkeypatch):
    monkeypatch.setattr(config, "AT_ONCE", False)
    function = GraphFunction(trace(rosenbrock)(X))
    assert 100 < function.waiting < 2000
    function.waiting = 2
    found = []
    for _ in range(4):
        found.append(function(X)[0])
        assert ("executable" in function.__dict__) == (len(found) > 2)
    assert found[0] == found[1] == rosenbrock(X)
    assert found[2] == found[3]
    np.testing.assert_allclose(found, rosenbrock(X), rtol=1e-14)


def test_loops_written_out_are_compiled_after_about_as_many_calls():
    def stepped(x, steps):
        for _ in iter(range(steps)):  # an iterator, so that it is written out
            x = x + 0.1 * np.sin(x)
        return x

    short, long = (calls_before(trace(lambda x, n=steps: stepped(x, n))(np.ones(40))) for steps in (20, 1000))
    assert 0.5 * short < long < short  # compiling takes about as long for each equation, however many there are


def test_calls_of_functions_with_rules_are_compiled_as_soon_as_what_they_compute():
    def root(a):
        return wg.fori_loop(0, 50, lambda i, x: (x + a / x) / 2, a)

    ruled = wg.custom_rule(root)
    ruled.defvjp(lambda a: (ruled(a), ruled(a)), lambda x, ct: (ct / (2 * x),))
    plain, called = (calls_before(trace(function)(np.ones(2))) for function in (root, ruled))
    assert 0 < called <= 1.1 * plain


def test_what_takes_long_is_compiled_at_once(monkeypatch):
    large = trace(lambda x: np.sum(np.sin(x) * np.exp(x)))(np.ones(1_000_000))
    assert calls_before(large) == 0
    monkeypatch.setattr(config, "AT_ONCE", True)
    assert GraphFunction(trace(rosenbrock)(X)).waiting == 0


def test_loops_that_turn_out_long_are_compiled_after_as_many_rounds(monkeypatch):
    monkeypatch.setattr(config, "AT_ONCE", False)
    graph = trace(wg.grad(lambda x, n: wg.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 0.5, s[1] + 1), (x, 0))[0]))
    few, many = GraphFunction(graph(0.3, 2)), GraphFunction(graph(0.3, 2))
    waiting = few.waiting
    assert few(0.3, 2)[0] == 0.25
    assert few.waiting == waiting - 1
    assert many(0.3, 700)[0] == 0.5**700  # several times as many as usual
    assert 0 < many.waiting < waiting - 3
    assert many(0.3, 10_000)[0] == 0.0
    assert "executable" in many.__dict__  # within the call


def is_compiled(function):
    """Tell whether a graph as a function has been compiled."""
    return function is not None and "executable" in function.__dict__


@pytest.mark.parametrize("given", [(X,), (SimpleNamespace(shape=(10,), dtype="f8"),)])
def test_a_function_is_compiled_without_being_run(monkeypatch, given):
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", False)
    step = wg.jit(lambda p, n, *, scale: {"f": rosenbrock(p["x"]) * n * scale}, static_argnames="n")
    assert step.compile({"x": given[0]}, n=2, scale=2.0)
    (form,) = step.forms.values()
    assert is_compiled(form.native)
    monkeypatch.setattr("wengert.compile.executable.evaluate", None)  # what evaluates graphs by NumPy
    np.testing.assert_allclose(step({"x": X}, n=2, scale=2.0)["f"], 4.0 * rosenbrock(X), rtol=1e-14)
    assert step.trace_count == 1
    with pytest.raises(DtypeError):
        step.compile({"x": SimpleNamespace(shape=(3,), dtype="unknown")}, n=2, scale=2.0)


@pytest.mark.parametrize("native", [True, False])
def test_one_function_says_when_it_is_compiled(monkeypatch, native):
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", not native)
    one = pickle.loads(pickle.dumps(wg.jit(rosenbrock, native=native)))
    assert one.compile(X) is native
    np.testing.assert_allclose(one(X), rosenbrock(X), rtol=1e-14)
    gradient = wg.grad(one)(X)
    np.testing.assert_allclose(gradient, wg.grad(rosenbrock)(X), rtol=1e-12)
    (form,) = one.forms.values()
    halves = [run for part in form.partitions.values() for run in (part.forward, part.backward)]
    assert [is_compiled(run) for run in (form.native, *halves)] == [native] * 3
    np.testing.assert_allclose(wg.vmap(one)(np.stack([X, X])), [rosenbrock(X)] * 2, rtol=1e-14)
    if not native:
        assert (one(X), gradient.tobytes()) == (rosenbrock(X), wg.grad(rosenbrock)(X).tobytes())
    outer = wg.jit(lambda x: one(x) * 2.0, native=not native)
    outer(X)
    assert is_compiled(next(iter(outer.forms.values())).native) is not native
    with pytest.raises(UsageError, match=r"^jit: native='yes'; True, False or None is needed\. Leave it out"):
        wg.jit(rosenbrock, native="yes")


ROUNDINGS = {
    "total": 28,
    "rows": 28,
    "mean": 29,
    "columns": 260,
    "middle": 70,
    "squares": 70,
    "products": 260,
    "of rows": 48,
}
"""For each sum how many roundings of the sum of its terms' sizes its error may be, at every length."""


def summed(name, x):
    """Return sums of some kind of a matrix, and their terms, along the last axis, in double precision."""
    wide = x.astype(float)
    if name == "total":
        return np.sum(x), wide.ravel()
    if name == "mean":
        return np.mean(x, axis=1), wide / x.shape[1]
    if name in ("columns", "turned rows"):
        return np.sum(x.T, axis=0), wide
    if name == "middle":
        return np.sum(np.reshape(x.T, (1, x.shape[1], -1)), axis=1)[0], wide
    if name == "squares":
        return np.sum((x[:, None] - 0 * x[None]) ** 2, axis=-1)[:, 0], (x**2).astype(float)
    if name == "products":
        return x @ x[0], wide * wide[0]
    if name == "of rows":
        return np.sum(np.sum(x, axis=1)), wide.ravel()
    return np.sum(x, axis=1), wide


@together("name", ROUNDINGS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sums_are_as_accurate_as_those_of_numpy_at_every_length(name, dtype):
    for n in (30, 100, 1000, 40_000):
        rows = (n // 10, 10) if name == "of rows" else (3, n)
        for x in (np.full(rows, 0.1, dtype), np.random.default_rng(n).random(rows).astype(dtype)):
            own = np.ascontiguousarray(x.T).T if name in ("columns", "middle") else x
            found = Compiled(trace(lambda x, name=name: summed(name, x)[0])(own))([own])[0]
            expected, terms = summed(name, own)
            exact = np.apply_along_axis(math.fsum, -1, terms)
            rounding = np.finfo(dtype).eps / 2 * np.abs(terms).sum(-1)
            assert (abs(found - exact) <= ROUNDINGS[name] * rounding).all()
            assert (abs(found - exact) <= 2 * np.max(abs(expected - exact) / rounding) * rounding + 4 * rounding).all()


HOSTILE = np.concatenate([np.array([1e308, -1e308, 0.0, -0.0]), np.linspace(-1, 1, 101) * 1e308])
SUMS_OF = {
    "multiples": lambda x: np.sum(10 * x),
    "quotients": lambda x: np.sum(x / 0.1),
    "products": lambda x: np.sum(x * (x * 0 + 10)),
    "means": lambda x: np.mean(x * 4),
    "rows of multiples": lambda x: np.sum(np.reshape(x, (3, 35)) * 16.0, axis=1),
    "columns of multiples": lambda x: np.sum(np.reshape(x, (35, 3)) * 16.0, axis=0),
    "squares": lambda x: np.sum((x * 1e-150) ** 2 * 1e160),
    "negative numbers": lambda x: 1 / np.sum(-x[:4]),
    "negative zeros": lambda x: 1 / np.sum(-np.abs(x[2:4])),
    "cancelling": lambda x: 1 / (-np.sum(x[:2])),
}


@together("name", SUMS_OF)
def test_no_factor_is_taken_out_of_a_sum_whose_terms_it_makes_infinite(name):
    f = SUMS_OF[name]
    with np.errstate(all="ignore"):
        (found,), expected = Compiled(trace(f)(HOSTILE))([HOSTILE]), f(HOSTILE)
    np.testing.assert_array_equal(found, expected)


def test_a_recurrence_that_is_infinite_stays_so():
    def f(a, b):
        return recurrence(a, b, axis=0, reverse=False)

    args = [np.full(3, 2.0), np.array([1e308, -1e308, 1.0, 2.0])]
    with np.errstate(over="ignore"):
        found, expected = Compiled(trace(f)(*args))(args)[0], f(*args)
    np.testing.assert_array_equal(found, expected)
    assert np.isinf(expected[1:]).all()


HELD = np.random.default_rng(0).normal(size=(300, 200))


def rows_added(w):
    return wg.fori_loop(0, 300, lambda i, c: c + wg.asarray(HELD)[i] * w, np.zeros(200))


def held_and_products(w):
    return HELD @ w, np.sum(np.sin(HELD.T[::-1] * w[::-1, np.newaxis])), w + 1.0


@pytest.mark.parametrize("f", [lambda w: HELD @ w, lambda w: np.sum(np.sin(HELD * w)), rows_added, held_and_products])
def test_large_arrays_from_outside_take_no_memory_of_a_call(f, monkeypatch):
    w, held = np.linspace(0.5, 1.5, 200), HELD.copy()
    monkeypatch.setitem(globals(), "HELD", held)
    expected = f(w)
    run = Compiled(trace(f)(w))
    held[...] = 7.0
    for ours, theirs in zip(run([w]), expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)
    assert run.callee.size + sum(len(x) for _, x in run.callee.contents) < held.nbytes // 2


def test_slopes_behind_masks_are_no_multiples_of_what_is_zero(monkeypatch):
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)

    def loss(x):
        y = x * 1.0
        y /= 0.5
        y += y * (y != y)
        return np.sum(np.sin(y))

    second = wg.sparse.hessian(loss, plan="maps")
    x = np.array([-0.4, 0.0, 0.3])
    found = second(x).data
    np.testing.assert_allclose(found, -4.0 * np.sin(2.0 * x), rtol=1e-14, atol=1e-15)


def test_totals_with_blocks_within_their_lanes():
    rng = np.random.default_rng(0)
    x, factors = rng.standard_normal((9, 9, 81)), rng.standard_normal((3, 81, 9, 9))

    def sums(x, *factors):
        c, d, e = (np.moveaxis(factor, 0, 2) for factor in factors)
        return np.sum(x * c, axis=2), np.sum(x * c * d * e)

    compiled = Compiled(trace(sums)(x, *factors))
    for found, expected in zip(compiled([x, *factors]), sums(x, *factors), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)


def test_the_collector_stops_for_what_is_loaded_and_for_nothing_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    wg.jit(np.sin, native=True)(np.ones(3))

    def refuse(_: LoadingPause) -> None:
        raise AssertionError("all is loaded")

    monkeypatch.setattr(LoadingPause, "__enter__", refuse)
    np.testing.assert_array_equal(wg.jit(np.cos, native=True)(np.zeros(3)), np.ones(3))


def test_the_collector_starts_again_when_threads_have_loaded_side_by_side() -> None:
    with contextlib.ExitStack() as first, contextlib.ExitStack() as second:
        first.enter_context(LoadingPause())
        second.enter_context(LoadingPause())
        first.close()
    assert gc.isenabled()
