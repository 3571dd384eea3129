"""Loops as machine code: what they give, and what they leave alone, is what evaluating them does."""

from __future__ import annotations

import contextlib
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import some_of, together
from wengert.compile import executable
from wengert.compile.executable import Compiled, NativeGraph, Natively
from wengert.core.forms.view_forms import Region
from wengert.core.graph.graph import Graph, Variable, subgraphs
from wengert.core.graph.loop_spec import Items, LoopSpec
from wengert.core.primitives.structured import Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, Aval
from wengert.core.values.dispatch import apply
from wengert.errors import RangeError, UsageError
from wengert.passes.segments import as_array, as_value, without_numbers
from wengert.support import config
from wengert.transforms.tracing import trace

X = np.linspace(-1.0, 1.0, 5)
ROWS = np.random.default_rng(0).normal(size=(7, 5))


@pytest.fixture(autouse=True)
def _native(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "NATIVE", True)
    monkeypatch.setattr(config, "AT_ONCE", True)


@pytest.fixture
def failed(monkeypatch: pytest.MonkeyPatch) -> list[Graph]:
    """Return a list of the graphs that a program could not compute, one for each call."""
    found: list[Graph] = []
    instead = NativeGraph.instead

    def counted(native: NativeGraph, graph: Graph, values: Any) -> Any:
        found.append(graph)
        return instead(native, graph, values)

    monkeypatch.setattr(NativeGraph, "instead", counted)
    return found


def loops_in(graph: Graph) -> int:
    """Return how many loops there are natively in a graph."""
    return sum(
        isinstance(equation.primitive, Natively) + sum(loops_in(inner) for _, inner in subgraphs(equation.params))
        for equation in graph.equations
    )


def require_same(function: Callable[..., Any], *args: Any) -> Compiled:
    """Require the loops of a function to give natively what they give evaluated, bits of rounding apart."""
    graph = trace(function)(*args)
    want, compiled = graph(*args), Compiled(graph)
    given = [x.copy("K") if isinstance(x, np.ndarray) else x for x in args]
    for _ in range(2):
        found = compiled(given)
        for a, b in zip(found, want, strict=True):
            assert type(a) is type(b)
            assert np.shape(a) == np.shape(b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            assert np.asarray(a).strides == np.asarray(b).strides
            np.testing.assert_allclose(a, b, rtol=1e-5 if np.asarray(b).dtype in ("f", "F") else 1e-12, atol=1e-14)
    for a, b in zip(given, args, strict=True):
        np.testing.assert_array_equal(a, b)
    return compiled


def cumulated(x: Any, rows: Any, *, reverse: bool = False) -> Any:
    return wg.scan(lambda c, row: (c * 0.5 + row, np.tanh(c)), x, rows, reverse=reverse)


def halved(x: Any) -> Any:
    return wg.while_loop(lambda c: np.sum(c[0]) > 0.01, lambda c: (c[0] * 0.7, c[1] + 1), (np.abs(x), 0))


def many(x: Any) -> Any:
    """Be a loop whose derivative leaves some hundreds of rows behind."""
    return np.sum(wg.while_loop(lambda c: np.sum(c) < 300.0, lambda c: np.sin(c) * 0.01 + c + 0.2, np.abs(x)))


def bisected(low: Any, high: Any) -> Any:
    while high - low > 1e-9:
        middle = (low + high) / 2
        if middle**3 > 2.0:
            high = middle
        else:
            low = middle
    return low, high


def first_beyond(x: Any, limit: Any) -> Any:
    total, count = x[0] * 0, 0
    for v in x:
        total = total + v**2
        if total > limit:
            break
        count = count + 1
    return total, count


BLOCKS = np.random.default_rng(1).normal(size=(4, 3, 5))


def of_products(w: Any, rows: Any) -> Any:
    return wg.scan(lambda c, r: (np.tanh(c @ w + r) * 1.0, c), rows[0], rows)[0]


def branching(x: Any, blocks: Any) -> Any:
    """Be a loop with branches that solve, multiply and repeat, one for each sign of a sum, and one of which fails."""

    def step(c: Any, a: Any) -> Any:
        grown = a.T @ a + np.eye(3) * 2
        small = lambda c: np.linalg.solve(grown, c) + wg.fori_loop(0, 3, lambda i, y: np.sin(a @ y), c)
        large = lambda c: wg.cond(np.sum(c) > 100, lambda c: np.linalg.cholesky(-grown) @ c, lambda c: c[::-1] * 0.7, c)
        return wg.cond(np.sum(c) > 0.4, small, large, c), np.sum(c)

    return wg.scan(step, x, blocks)[0]


def until(x: Any, limit: Any) -> Any:
    """Be a loop of rounds of which one half has loops inside of each other, and leaves rows of rows, the other none."""
    rise = lambda y: wg.while_loop(lambda y: y < limit, lambda y: y * 1.5 + wg.while_loop(halves, half, y), y)
    halves, half = lambda z: z > 1.0, lambda z: np.sin(z) * 0.5
    return wg.fori_loop(0, 4, lambda i, y: wg.cond(y < limit / 2, rise, lambda y: y * 0.25 + x, y), x)


def nested_linear(x: Any) -> Any:
    """Be a branch with loops inside of each other; what their gradient computes again does not depend on the input."""

    def middle(j: Any, y: Any) -> Any:
        return wg.fori_loop(j, 2, lambda k, y: np.cumsum(y) * 0.5 + k, y)

    return wg.cond(
        x[0] < 9.0, lambda y: wg.fori_loop(0, 2, lambda i, y: wg.fori_loop(0, i + 1, middle, y), y * y), np.sin, x
    )


def written(x: Any, i: Any) -> Any:
    y = x * 1
    y[i] = y[i - 1] + i
    return y


LOOPS: dict[str, tuple[Any, ...]] = {
    "while": (halved, X),
    "Python's numbers": (lambda t: wg.while_loop(lambda c: c[0] < 20.0, lambda c: (c[0] * 1.5, c[1] + 2), (t, 1)), 0.3),
    "values that change places": (
        lambda a, b: wg.fori_loop(0, 11, lambda i, c: (c[1], c[0] + c[1]), (a, b)),
        X,
        X[::-1],
    ),
    "values that become one": (
        lambda a, b: wg.fori_loop(0, 4, lambda i, c: (c[0] * c[1], c[0] * c[1]), (a, b)),
        X,
        X + 1,
    ),
    "values that become known": (lambda a, b: wg.fori_loop(0, 4, lambda i, c: (c[0] + c[1], 2.0), (a, b)), X, 7.0),
    "the counter": (lambda a: wg.fori_loop(3, 9, lambda i, c: c * i - i * 2, a), X),
    "no steps": (lambda a: wg.fori_loop(3, 3, lambda i, c: c * 2, a), X),
    "no steps, as a condition says": (halved, X * 1e-9),
    "one step": (lambda a: wg.fori_loop(3, 4, lambda i, c: c * 2, a), X),
    "one step, as is known": (lambda a: wg.while_loop(lambda c: c[1], lambda c: (c[0] * 2, False), (a, True))[0], X),
    "steps that are not known": (lambda a, n: wg.fori_loop(0, n, lambda i, c: c * 0.9 + i, a), X, np.int64(12)),
    "scan": (cumulated, X, ROWS),
    "scan from the end": (lambda x, rows: cumulated(x, rows, reverse=True), X, ROWS),
    "scan of what is carried": (lambda x, rows: wg.scan(lambda c, r: (c + r, c + r), x, rows), X, ROWS),
    "scan of what is carried, from the end": (
        lambda x, rows: wg.scan(lambda c, r: (c + r, c + r), x, rows, reverse=True),
        X,
        ROWS,
    ),
    "scan of a row, twice": (lambda x, rows: wg.scan(lambda c, r: (c, (r * c, r * c)), x, rows), X, ROWS),
    "scan of integers": (lambda x, n: wg.scan(lambda c, i: (c + x[i], i * 2), 0.0, n), X, np.array([0, 3, 1])),
    "scan of nothing else": (lambda rows: wg.scan(lambda c, r: (c + 1, np.sum(r)), 0, rows), ROWS),
    "single precision": (lambda x, rows: cumulated(x, rows), X.astype("f"), ROWS.astype("f")),
    "complex": (lambda x, rows: cumulated(x, rows), X + 0j, ROWS * 1j),
    "truths": (lambda m: wg.fori_loop(0, 5, lambda i, c: np.logical_xor(c, m), ~m), X > 0),
    "in Fortran's order": (lambda a: wg.fori_loop(0, 3, lambda i, c: c * 2 + a.T, a.T * 1), ROWS),
    "columns": (lambda rows: wg.scan(lambda c, r: (c + r, r * c), np.zeros(7), rows.T), ROWS),
    "rows in Fortran's order": (
        lambda x, rows: wg.scan(lambda c, r: (c + r.T, (c.T, (r.T * 2).T)), x, rows),
        ROWS[:3, :2].copy(),
        ROWS[:6].reshape(5, 2, 3),
    ),
    "gradient of products": (wg.grad(lambda w, rows: np.sum(of_products(w, rows) ** 2)), ROWS[:5], BLOCKS),
    "every other row": (lambda rows: wg.scan(lambda c, r: (c + r, r * c), np.zeros(5), rows), ROWS[::-2]),
    "branches": (bisected, 0.0, 2.0),
    "branches that are run": (branching, X[:3], BLOCKS[:3, :, :3]),
    "gradient of branches that are run": (
        wg.grad(lambda x, a: np.sum(branching(x, a) ** 2), (0, 1)),
        X[:3],
        BLOCKS[:3, :, :3],
    ),
    "second derivative of branches": (wg.hessian(lambda x, a: branching(x, a)[0]), X[:3], BLOCKS[:3, :, :3]),
    "lanes of branches": (wg.vmap(branching, (0, None)), ROWS[:4, :3], BLOCKS[:3, :, :3]),
    "lanes in branches": (wg.vmap(branching, (None, 0)), X[:3], BLOCKS[:2, None, :, :3] * [[[[1.0]], [[0.5]]]]),
    "gradient of branches that repeat as often as it takes": (wg.grad(until), 0.3, 40.0),
    "second derivative of branches that repeat": (wg.grad(wg.grad(until)), 0.3, 40.0),
    "a break": (first_beyond, X, 0.9),
    "writes": (lambda x: wg.fori_loop(0, 5, lambda i, c: written(c, i), x), X),
    "gradient of while": (wg.grad(lambda x: np.sum(halved(x)[0] ** 2)), X),
    "gradient of many rounds": (wg.grad(many), X),
    "gradient of a scan": (wg.grad(lambda x, r: np.sum(cumulated(x, r)[1] ** 2), (0, 1)), X, ROWS),
    "gradient from the end": (wg.grad(lambda x, r: np.sum(cumulated(x, r, reverse=True)[0] ** 2), (0, 1)), X, ROWS),
    "second derivative": (wg.hessian(many), X),
    "second derivative of what is stacked": (
        wg.hessian(lambda x: wg.fori_loop(0, 2, lambda i, m: np.stack([m[1] * m[0], m[1]]), x)[0]),
        np.array([0.7, 1.2]),
    ),
    "direction": (lambda x: wg.jvp(many, (x,), (x + 1,)), X),
    "lanes": (wg.vmap(many), ROWS),
    "lanes of gradients": (wg.vmap(wg.grad(many)), ROWS),
    "lanes of steps": (wg.vmap(lambda n: wg.fori_loop(0, n, lambda i, c: c * 1.5, 1.0)), np.array([2, 0, 5])),
}


class Thrice(Structured):
    """Run a graph three times: an operation of its own, with parameters of its own, that is lowered to a loop."""

    def __init__(self) -> None:
        super().__init__("thrice", self.run, form=Region(lambda _inputs, params: params["graph"].outputs))

    def run(self, *values: Any, graph: Graph) -> tuple[Any, ...]:
        """Evaluate the graph three times."""
        for _ in range(3):
            values = graph(*values)
        return values

    def lower(self, params: Any, lowering: StructuredLowering) -> Any:
        """Be lowered as a loop of three iterations."""
        return lowering.loop(
            {"body": params["graph"], "cond": None, "spec": LoopSpec(0, len(params["graph"].inputs), 3)}
        )


def test_what_is_lowered_to_a_loop_has_parameters_of_its_own() -> None:
    thrice = Thrice()
    body = trace(lambda x, w: (np.tanh(x * w) + np.exp(w), w))(X, 0.3)
    compiled = require_same(lambda x, w: apply(thrice, x * 2.0, w, graph=body), X, np.float64(0.3))
    assert [part.reasons for part in compiled.segments.parts] == [()]


@pytest.mark.parametrize("case", LOOPS)
def test_loops_give_natively_what_they_give_evaluated(case: str, failed: list[Graph]) -> None:
    function, *args = LOOPS[case]
    compiled = require_same(function, *args)
    assert compiled.is_native, case
    assert not failed, case


LONE = {
    *("while", "Python's numbers", "values that change places", "values that become one", "values that become known"),
    *(
        "the counter",
        "one step",
        "one step, as is known",
        "scan",
        "scan from the end",
        "scan of what is carried",
        "scan of integers",
    ),
    *("scan of what is carried, from the end", "scan of nothing else", "single precision", "complex", "truths"),
    *("in Fortran's order", "every other row", "branches", "a break", "writes", "gradient of a scan"),
    *("gradient from the end", "lanes of steps", "steps that are not known", "no steps, as a condition says"),
    *("direction", "lanes", "rows in Fortran's order", "gradient of products"),
    *("second derivative of what is stacked", "second derivative"),
    *("gradient of while", "gradient of many rounds", "lanes of gradients"),
}
"""Loops that are a chain with what is before and after them."""


@pytest.mark.long
@together("case", LOOPS)
def test_chains_give_what_their_parts_do(case: str) -> None:
    function, *args = LOOPS[case]
    graph = trace(function)(*args)
    compiled = Compiled(graph)
    callee, inner = compiled.callee, compiled.segments.graph
    assert (callee is not None) == (case in LONE or compiled.segments.whole is not None)
    if callee is None:
        return
    given = list(map(as_array, inner.inputs, args))
    for _ in range(2):
        made = [np.full_like(as_array(v, np.zeros(v.shape, v.dtype)), 7) for v in without_numbers(inner.outputs)]
        failed = np.zeros(1, np.uint8)
        callee.call([x.ctypes.data for x in (*given, *made, failed)])
        assert not failed
        found = map(as_value, without_numbers(inner.outputs), made)
        want = [x for v, x in zip(inner.outputs, compiled(args), strict=True) if type(v) is Variable]
        for a, b in zip(found, want, strict=True):
            np.testing.assert_array_equal(a, b)
            assert type(a) is type(b)


@together("case", some_of(sorted(LONE - {"scan of integers", "lanes of steps"}), "called", 4))
def test_jitted_loops_are_called_natively(case: str) -> None:
    function, *args = LOOPS[case]
    jitted = wg.jit(function)
    for k in (1.0, 0.5, 0.75, 0.9, 1.0):
        own = [
            x if np.asarray(x).dtype.kind in "bi" else type(x)(x * k) if isinstance(x, float) else x * k for x in args
        ]
        own = [x.astype(y.dtype) if isinstance(y, np.ndarray) else x for x, y in zip(own, args, strict=True)]
        found, want = wg.tree.leaves(jitted(*own)), wg.tree.leaves(function(*own))
        for a, b in zip(found, want, strict=True):
            np.testing.assert_allclose(a, b, rtol=2e-5 if np.asarray(b).dtype in ("f", "F") else 1e-11, atol=1e-13)


def test_a_chain_fails_where_python_is_to_raise(failed: list[Graph]) -> None:
    jitted = wg.jit(gathered)
    for n in (1, 2, 3, 4):
        assert jitted(X, n)[1] == pytest.approx(np.sum(X[:n]))
    for _ in range(2):
        with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
            jitted(X, 6)
    assert jitted(X, 2)[1] == X[0] + X[1]
    assert len(failed) >= 2


def nested(kinds: str) -> Callable[[Any, Any], Any]:
    """Return loops inside of each other: a while of n rounds, a fori of n rounds, a scan of three rows."""

    def function(x: Any, n: Any) -> Any:
        def inner(c: Any, rest: str) -> Any:
            if not rest:
                return np.sin(c) * 0.5 + 0.3
            if rest[0] == "w":
                return wg.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, inner(s[1], rest[1:])), (0, c))[1]
            if rest[0] == "f":
                return wg.fori_loop(0, n, lambda i, s: inner(s, rest[1:]), c)
            return wg.scan(lambda s, row: (inner(s, rest[1:]) + row, s), c, np.zeros(3))[0]

        return inner(x, kinds)

    return function


@contextlib.contextmanager
def alarm(handler: Callable[..., Any], after: float, every: float = 0.0) -> Iterator[None]:
    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, after, every)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def interrupt(*_: Any) -> None:
    raise TimeoutError


@pytest.mark.parametrize("kinds", ["w", "f", "ww", "wf", "fw", "ff", "sw", "ws", "wsf", "www"])
def test_loops_inside_of_others_answer_signals(kinds: str, failed: list[Graph]) -> None:
    jitted = wg.jit(nested(kinds))
    for _ in range(4):
        assert jitted(0.5, 3) == pytest.approx(nested(kinds)(0.5, 3))
    start = time.process_time()
    with alarm(interrupt, 0.02), pytest.raises(TimeoutError):
        jitted(0.5, 10**9)
    assert time.process_time() - start < 0.1
    assert jitted(0.5, 3) == pytest.approx(nested(kinds)(0.5, 3))
    assert not failed  # a chain is never left to Python for taking long


def test_gradients_of_loops_inside_of_others_answer_signals() -> None:
    jitted = wg.jit(wg.grad(nested("fw")))
    for _ in range(4):
        assert jitted(0.5, 3) == pytest.approx(wg.grad(nested("fw"))(0.5, 3))
    with alarm(interrupt, 0.02), pytest.raises(TimeoutError):
        jitted(0.5, 100_000)
    assert jitted(0.5, 3) == pytest.approx(wg.grad(nested("fw"))(0.5, 3))


def test_handlers_of_signals_that_return_leave_results_as_they_are() -> None:
    jitted = wg.jit(nested("wf"))
    want = [jitted(0.5, 3) for _ in range(4)]
    alone, found = jitted(0.5, 2000), list[Any]()
    with alarm(lambda *_: found.append(jitted(0.5, 3)), 0.005, 0.005):  # in the arena of another call
        assert jitted(0.5, 2000) == alone
    assert found
    assert set(found) == set(want)


def test_a_chain_that_is_called_through_ctypes_answers_signals() -> None:
    compiled = Compiled(trace(nested("wf"))(0.5, 3))
    assert compiled.callee is not None
    given = [np.array(0.5), np.array(10**9), np.zeros(()), np.zeros((), bool)]
    with alarm(interrupt, 0.02), pytest.raises(TimeoutError):
        compiled.callee.call([x.ctypes.data for x in given])
    given[1][...] = 3
    compiled.callee.call([x.ctypes.data for x in given])
    assert given[2] == pytest.approx(nested("wf")(0.5, 3))


@pytest.mark.parametrize("kinds", ["w", "wf"])
def test_other_threads_run_while_a_loop_does(kinds: str) -> None:
    jitted = wg.jit(nested(kinds))
    for _ in range(4):
        jitted(0.5, 3)
    rounds = 10_000_000 if kinds == "w" else 3_000
    thread = threading.Thread(target=jitted, args=(0.5, rounds))
    switched, turns = sys.getswitchinterval(), 0
    sys.setswitchinterval(1e-4)
    try:
        thread.start()
        while thread.is_alive():
            time.sleep(0)
            turns += 1
    finally:
        sys.setswitchinterval(switched)
        thread.join()
    assert turns > 20


def test_loops_inside_of_others_are_one_kernel(failed: list[Graph]) -> None:
    def function(x: Any, rows: Any) -> Any:
        def step(c: Any, row: Any) -> Any:
            c = wg.fori_loop(0, 3, lambda i, s: np.sin(s) + c * 0.1 + i, row)
            return c, wg.scan(lambda s, v: (s + v, s), 0.0, c)[1]

        return wg.scan(step, x, rows)

    for own in (function, wg.grad(lambda x, rows: np.sum(function(x, rows)[1] ** 2), (0, 1))):
        compiled = require_same(own, X, ROWS)
        assert compiled.callee is not None
        assert not failed
    shown = str(wg.jit(function).lower(X, ROWS).kernels)
    assert "\nloop rounds 7\n" in shown
    assert "\n  loop rounds 5\n" in shown
    assert "by NumPy" not in shown


def test_places_out_of_bounds_of_loops_inside_of_others_raise() -> None:
    def function(x: Any, n: Any) -> Any:
        return wg.fori_loop(0, 3, lambda i, s: s + wg.fori_loop(0, 3, lambda k, t: t + x[n + i + k], 0.0), 0.0)

    jitted = wg.jit(function)
    for n in (0, 0, 0, -2, -1):
        assert jitted(X, n) == pytest.approx(sum(X[n + i + k] for i in range(3) for k in range(3)))
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        jitted(X, 1)
    assert jitted(X, 0) == pytest.approx(sum(X[i + k] for i in range(3) for k in range(3)))


def test_loops_inside_of_others_run_natively(failed: list[Graph]) -> None:
    def function(x: Any, rows: Any) -> Any:
        return wg.scan(
            lambda c, row: (np.partition(c, 0) + halved(row)[0], wg.fori_loop(0, 3, lambda i, s: s * c, row)), x, rows
        )

    compiled = require_same(function, X, ROWS)
    assert [loops_in(part.graph) for part in compiled.segments.parts] == [2]
    assert not failed


def test_loops_with_what_kernels_cannot_do_are_evaluated() -> None:
    compiled = require_same(lambda x: wg.fori_loop(0, 3, lambda i, c: np.partition(c * i, 0), x), X)
    assert not compiled.is_native


def test_rows_that_are_known_are_no_rows_of_a_loop() -> None:
    jitted = wg.jit(lambda x, rows: wg.scan(lambda c, r: (c * 1, np.full(3, 1j)), x, rows)[1])
    for _ in range(3):
        np.testing.assert_array_equal(jitted(X, ROWS), np.full((7, 3), 1j))


def test_values_that_turn_round_in_memory_are_carried_by_numpy() -> None:
    compiled = require_same(lambda x: wg.fori_loop(0, 3, lambda i, c: (c.T @ x).T * 0.5, x), ROWS[:5])
    assert not compiled.is_native


def test_what_no_round_reads_is_written_where_it_is_wanted() -> None:
    def step(c: Any) -> Any:
        count, x, large, _, _, twice = c
        found = np.eye(17) + 0.1 * twice @ twice
        return count + 1, np.tanh(found @ x), found @ found, large, found, found

    def function(x: Any, start: Any, n: Any) -> Any:
        carried = wg.while_loop(lambda c: c[0] < n, step, (np.int64(0), x, *4 * (start,)))
        return *carried, start + carried[2]

    x, start = np.linspace(-1.0, 1.0, 17), np.diag(np.ones(17))  # of more bytes than are carried in a loop's own memory
    jitted = wg.jit(function)
    for n in (np.int64(0), np.int64(1), np.int64(4)):
        for found, wanted in zip(jitted(x, start, n), function(x, start, n), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)


def gathered(x: Any, n: Any) -> Any:
    return wg.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + x[c[0]]), (np.int64(0), 0.0))


def test_a_place_out_of_bounds_raises_numpys_error(failed: list[Graph]) -> None:
    compiled = Compiled(trace(gathered)(X, 3))
    assert compiled([X, 5])[1] == pytest.approx(np.sum(X))
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 5"):
        compiled([X, 6])
    assert len(failed) == 1
    assert compiled([X, 2])[1] == X[0] + X[1]


def test_whole_numbers_that_become_too_large_are_refused_as_without_native_code(failed: list[Graph]) -> None:
    graph = trace(lambda n: wg.fori_loop(0, n, lambda i, c: c * 3 + 1, 1))(3)
    compiled = Compiled(graph)
    assert compiled([20]) == graph(20)
    with pytest.raises(wg.errors.RangeError) as native:
        compiled([60])
    with pytest.raises(wg.errors.RangeError) as evaluated:
        graph(60)
    assert str(native.value) == str(evaluated.value)
    assert len(failed) == 1


def test_threads_run_a_loop_together() -> None:
    compiled = Compiled(trace(wg.grad(many))(X))
    starts = [X * k for k in range(1, 9)]
    want = [wg.grad(many)(x) for x in starts]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                for x, expected in zip(starts, want, strict=True):
                    np.testing.assert_allclose(compiled([x])[0], expected, rtol=1e-12)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_an_endless_loop_can_be_interrupted() -> None:
    jitted = wg.jit(lambda x: wg.while_loop(lambda c: c < 2.0, lambda c: c * 0.5 + 0.1, x))
    for _ in range(4):
        assert jitted(2.5) == 2.5
    with alarm(interrupt, 0.02), pytest.raises(TimeoutError):
        jitted(0.5)


def weighted(low: Any, high: Any, x: Any) -> Any:
    for i in range(low, high):
        x = x * 0.5 + i
    return x


@pytest.mark.parametrize("kind", ["i1", "u1", "i2", "u4", "i8", "u8"])
def test_bounds_count_in_whole_numbers_of_any_type(kind: str) -> None:
    """Differences of bounds, and what follows the last of them, may have no room in their own type."""
    limits = np.iinfo(kind)
    top = min(int(limits.max), 2**63 - 1)
    jitted = wg.jit(weighted)
    for low, high in (
        (limits.min, limits.min + 3),
        (top - 3, top),
        (5, 2),
        (0, 9),
        (-100, 100) if kind == "i1" else (3, 99),
    ):
        for form in (np.dtype(kind).type, lambda n: np.array(n, kind)):
            for function in (jitted, lambda a, b, x: wg.fori_loop(a, b, lambda i, c: c * 0.5 + i, x)):
                assert function(form(low), form(high), 1.5) == weighted(int(low), int(high), 1.5)


def test_bounds_without_room_in_64_bits_are_refused() -> None:
    jitted, low, high = wg.jit(weighted), np.uint64(2**64 - 3), np.uint64(2**64 - 1)
    for _ in range(4):
        with pytest.raises(RangeError, match="has more than 64 bits"):
            jitted(low, high, 1.5)
    with pytest.raises(RangeError, match="fori_loop: an integer of 64 bits"):
        wg.jit(lambda x: wg.fori_loop(low, high, lambda i, c: c * i, x))(1.5)


def test_each_call_of_a_program_can_be_interrupted() -> None:
    """The first goes through ctypes, the others through an entry, to which failing is a result."""
    compiled = Compiled(trace(lambda x: wg.while_loop(lambda c: c < 2.0, lambda c: c * 0.5 + 0.1, x))(2.5))
    for _ in range(3):
        with alarm(interrupt, 0.02), pytest.raises(TimeoutError):
            compiled([0.5])
    assert compiled([2.5]) == (2.5,)


def test_results_share_no_memory() -> None:
    compiled = Compiled(trace(lambda x: wg.fori_loop(0, 3, lambda i, c: (c[0] + 1, c[0] + 1), (x, x)))(X))
    rows = Compiled(trace(lambda x: wg.scan(lambda c, r: (c + r, (r * 2, r * 2)), x, ROWS)[1])(X))([X])
    assert not np.shares_memory(*rows)
    assert not np.shares_memory(*trace(lambda x: wg.fori_loop(0, 3, lambda i, c: (c[1], c[1]), (x, x * 2)))(X)(X))
    a, b = compiled([X])
    c, d = compiled([X])
    assert not any(np.shares_memory(p, q) for p, q in ((a, b), (a, c), (b, d), (a, X)))


def test_a_result_of_steps_that_is_given_twice_is_written_twice() -> None:
    def twice(x: Any, start: Any) -> Any:
        total = wg.numpy.sum(wg.scan(lambda t, u: (start * u, start), start, x)[1])
        return total, total

    compiled = Compiled(trace(twice)(X, 1.5))
    assert compiled.callee is not None
    for _ in range(2):
        made, failed = [np.full((), 7.0) for _ in range(2)], np.zeros(1, np.uint8)
        compiled.callee.call([x.ctypes.data for x in (X, np.array(1.5), *made, failed)])
        assert not failed
        np.testing.assert_allclose(made, 1.5 * len(X))


def test_rounds_are_shown() -> None:
    def function(x: Any) -> Any:
        return wg.scan(lambda c, _row: (np.partition(c, 0) + halved(c)[0], halved(c)[1]), x, ROWS)

    lowered = wg.jit(halved).lower(X)
    assert repr(lowered).startswith("<2 of 2 equations in 2 kernels")
    assert str(lowered.cost).endswith("bytes\nnot counted: 1 loops of machine code, however often they run")
    shown = str(lowered.kernels)
    assert shown.startswith("program x0 -> y0, y1, y2 failing y2\n")
    assert "\nloop rounds 4611686018427387904 starts" in shown
    shown = str(wg.jit(function).lower(X).kernels)
    assert shown.startswith("by NumPy: scan, control flow\n  natively: while_loop\n    program")


def stepped(x: Any, end: Any) -> Any:
    """Be a loop of as many rounds as x says, whose derivative needs what each was given."""
    value, rounds = x * 1.0, x * 0.0
    while rounds < end:
        value, rounds = np.sin(value) + value * 0.5, rounds + 1.0
    return value


@pytest.mark.parametrize("transformed", [wg.grad, lambda f: wg.grad(wg.grad(f)), wg.hessian])
def test_rows_are_left_behind_in_a_chain(transformed: Any, failed: list[Graph]) -> None:
    function = transformed(stepped)
    jitted = wg.jit(function)
    for end in (3.0, 2.0, 3.0, 0.0, 1.0, 4.0, 9.0, 4.0, 0.0, 31.0, 32.0, 33.0, 1.0, 64.0, 65.0, 300.0, 4.0):
        for _ in range(3 if end == 3.0 else 0):
            jitted(0.7, end)
        assert jitted(0.7, end) == pytest.approx(float(function(0.7, end)), rel=1e-12)
    assert not failed


@pytest.mark.long
def test_rows_that_lie_in_another_order_are_left_and_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "DEBUG", True)  # its diagonals are of kernels of their own

    def f(x: Any) -> Any:
        value, rounds = np.outer(x, x), 0.0
        while rounds < 3.0:
            value = np.tanh(value.T @ np.diag(x) + value * 0.5).T * value
            rounds = rounds + x[0] * 0.0 + 1.0
        return np.sum(value**2)

    x = np.array([0.7, 1.2])
    for function in (wg.grad(f), wg.hessian(f), wg.grad(lambda x: np.sum(wg.grad(f)(x) ** 2))):
        assert Compiled(trace(function)(x)).callee is not None
        jitted = wg.jit(function)
        for k in range(4):
            np.testing.assert_allclose(jitted(x * (1 - k / 9)), function(x * (1 - k / 9)), rtol=1e-10, atol=1e-14)


def test_rows_of_loops_inside_of_others_and_in_threads() -> None:
    def function(x: Any) -> Any:
        total = 0.0
        for row in x:
            total = total + stepped(row[0], row[1]) * stepped(total, 2.0)
        return total

    jitted, gradient = wg.jit(wg.grad(function)), wg.grad(function)
    starts = [np.array([[0.3, k], [0.9, 5.0], [0.1, 0.0]]) for k in (1.0, 6.0, 40.0)]
    want = [gradient(x) for x in starts]
    failures: list[BaseException] = []

    def work() -> None:
        try:
            for _ in range(20):
                for x, expected in zip(starts, want, strict=True):
                    np.testing.assert_allclose(jitted(x), expected, rtol=1e-12)
        except BaseException as error:
            failures.append(error)
            raise

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def implicit(x: Any, end: Any) -> Any:
    """Take implicit steps to a time, each by Newton's method: a `while` inside of another."""
    value, time = x * 1.0, x * 0.0
    while time < end:
        guess, error = value * 1.0, 1.0
        while np.abs(error) > 1e-12:
            error = (guess - value + 0.1 * guess**3) / (1.0 + 0.3 * guess * guess)
            guess = guess - error
        value, time = guess, time + 0.25 * np.abs(np.cos(value))
    return value


def counted_down(x: Any, end: Any) -> Any:
    """Have an inner loop of as many rounds as the outer one says, none at first."""
    total, outer = x * 1.0, x * 0.0
    while outer < end:
        inner = outer * 1.0
        while inner > 0.5:
            inner, total = inner - 1.0, np.sin(total) * 1.1 + 0.1 * inner * x
        outer = outer + 1.0
    return total


def of_rows(x: Any, end: Any) -> Any:
    """Have a `while` in each step of a `scan`."""

    def step(value: Any, row: Any) -> tuple[Any, Any]:
        return stepped(value * row, end), value * row

    total, rows = wg.scan(step, x * 1.0, np.array([0.5, 1.5, -0.7]))
    return total + np.sum(rows**2)


def three_deep(x: Any, end: Any) -> Any:
    """Have such a `scan` in each round of a `while`."""
    total, rounds = x * 1.0, 0.0
    while rounds < end:
        total, rounds = of_rows(total, end), rounds + 1.0
    return total


NESTED = (implicit, counted_down, of_rows)
HESSIAN = pytest.param(wg.hessian, marks=pytest.mark.long)


@pytest.mark.parametrize("function", NESTED)
@pytest.mark.parametrize("transformed", [wg.grad, lambda f: wg.grad(wg.grad(f)), HESSIAN])
def test_rows_of_rows_are_left_behind_in_a_chain(function: Any, transformed: Any, failed: list[Graph]) -> None:
    eager, jitted = transformed(function), wg.jit(transformed(function))
    for _ in range(3):
        jitted(0.7, 3.0)
    for end in (3.0, 2.0, 0.0, 1.0, 3.0, 4.0, 0.0, 3.0, 9.0):
        assert jitted(0.7, end) == pytest.approx(float(eager(0.7, end)), rel=1e-11)
    assert not failed


def test_rows_of_rows_that_grow_are_left_behind(failed: list[Graph]) -> None:
    def turned(x: Any, end: Any) -> Any:
        return wg.fori_loop(0, 3, lambda i, c: stepped(c, end * i), x)

    for function, ends in ((turned, (3.0, 1.0, 33.0, 70.0, 2.0, 0.0)), (three_deep, (3.0, 1.0, 3.0, 4.0, 2.0, 0.0))):
        eager, jitted = wg.grad(function), wg.jit(wg.grad(function))
        for end in ends:
            assert jitted(0.7, end) == pytest.approx(float(eager(0.7, end)), rel=1e-9)
    assert not failed


@pytest.mark.parametrize("rounds", [0, 1, 31, 32, 33, 500])
def test_rows_that_grow_go_from_a_forward_half_to_a_backward_half(rounds: int, failed: list[Graph]) -> None:
    jitted = wg.jit(stepped)
    for _ in range(3):
        for k in (1.0, 0.5):
            found, want = (wg.grad(f)(0.7 * k, float(rounds)) for f in (jitted, stepped))
            assert found == pytest.approx(want, rel=1e-12)
    assert not failed


def test_rounds_that_are_pythons_are_prepared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared: list[Graph] = []
    natively = executable.natively

    def counted(graph: Graph) -> Graph:
        prepared.append(graph)
        return natively(graph)

    def function(x: Any) -> Any:
        return wg.scan(lambda c, row: (np.partition(c, 0) + halved(row)[0], x[c[0].astype(int)]), x, ROWS * 0.0)

    monkeypatch.setattr(executable, "natively", counted)
    jitted = wg.jit(function)
    for _ in range(4):
        jitted(X * 0.0)
    count = len(prepared)
    for _ in range(4):
        jitted(X * 0.0)
    assert count == len(prepared) > 0


def checked(x: Any, y: Any) -> Any:
    """Return x; y is to be a number that Python's int takes."""
    int(y)
    return x * 1.0


@pytest.mark.parametrize(
    "carry",
    [
        lambda x: checked(x, x[1]),
        lambda x: wg.fori_loop(0, 40, lambda i, c: checked(c, c[i % 3]), x),
        lambda x: wg.scan(lambda c, y: (checked(c, y), y), x, x)[0],
        lambda x: wg.cond(x[0] > 0, lambda c: checked(c, c[1]), lambda c: c, x),
    ],
)
def test_whole_numbers_that_nobody_uses_are_checked(carry: Callable[[Any], Any]) -> None:
    jitted = wg.jit(lambda x: np.sum(carry(x)))
    assert jitted(np.array([1.0, 2.0, 3.0])) == 6.0
    with pytest.raises(UsageError, match="int: NaN"):
        jitted(np.array([1.0, np.nan, 3.0]))


# Sorts that are not stable

TIED = np.random.default_rng(0).integers(-2, 3, (4, 12)) / 2 * [[1.0], [-1.0], [0.5], [-0.5]]  # zeros of both signs
ZEROS = np.random.default_rng(1).choice([-0.0, 0.0], (3, 16))
WITH_TIES: dict[str, tuple[Callable[..., Any], Sequence[Any]]] = {
    "interp": (
        lambda a, x, y: np.interp(a, x, y, period=2.5),
        (np.array([1.9, 0.8]), np.array([-3.0, -0.5, 0.5, 1.5]), np.array([10.0, 1.0, -2.0, -1.0])),
    ),
    "interp in lanes": (
        wg.vmap(wg.grad(lambda a, x, y: np.interp(a, x, y, period=1.0), argnums=(0, 2)), in_axes=(0, None, None)),
        (np.array([0.3, 0.8, 1.1]), TIED[0], np.arange(12.0)),
    ),
    "argsort": (
        lambda x: [np.argsort(x), np.argsort(x, axis=0), np.argsort(x, None), np.argsort(x, kind="s")],
        (TIED,),
    ),
    "argsort of others": (
        lambda x: [np.argsort(x), np.argsort(x > 0), np.argsort(x, kind="heapsort")],
        (TIED.astype(int),),
    ),
    "argsort of NaN": (lambda x: np.argsort(np.where(x == 0, np.nan, x)), (TIED,)),
    "what an argsort takes": (
        lambda x, y: np.take_along_axis(y, np.argsort(x), 1) * 2,
        (TIED, np.arange(48.0).reshape(4, 12)),
    ),
    "argsort in a loop": (
        lambda x: wg.fori_loop(0, 5, lambda i, y: np.arange(12.0)[np.argsort(x[i % 4])] + y / 2, x[0]),
        (TIED,),
    ),
    "long rows": (
        lambda x, y: [
            *(f(z, axis) for z in (x, x.astype(np.int8)) for f in (np.sort, np.argsort) for axis in (0, 1)),
            *(f(x, 0, kind="stable") for f in (np.sort, np.argsort)),
            *(f(y.T, 0) for f in (np.sort, np.argsort)),
            wg.grad(lambda z: np.sum(np.sort(z, 0) * x))(y),
        ],
        (np.tile(TIED, (5, 2)), np.where(np.tile(TIED, (5, 2)) == 1, np.nan, np.arange(24.0) ** 2 % 7)),
    ),
    "lexsort": (lambda x: np.lexsort((x[0], x[1])), (TIED,)),
    "sort": (lambda x: [np.sort(x), np.sort(x.astype("f"), 0), np.sort(x, kind="stable"), np.sort(x * 0)], (ZEROS,)),
    "medians": (lambda x: [np.median(x, 1), np.nanmedian(x, 0), np.median(0 * x - 0.0, 1)], (ZEROS,)),
    "quantiles": (
        lambda x: [np.quantile(y, [0, 0.3, 1.0], axis=1) for y in (x, -np.abs(x), -np.abs(x[:, :1]))],
        (ZEROS,),
    ),
    "slopes of sorts": (wg.grad(lambda x: np.sum(np.sort(x, axis=1)[:, 3] * np.arange(4.0))), (TIED,)),
    "slopes of medians": (wg.grad(lambda x: np.sum(np.median(x, axis=1) * np.arange(4.0))), (TIED,)),
}


@pytest.mark.parametrize("case", WITH_TIES)
def test_the_order_of_equal_elements_does_not_change_where_a_function_becomes_native(case: str) -> None:
    function, args = WITH_TIES[case]
    found, expected = [wg.tree.leaves(f(*args)) for f in (wg.jit(function), function)]
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(one, other)
        np.testing.assert_array_equal(np.signbit(one), np.signbit(other))


def test_elements_of_which_none_are_equal_are_sorted_natively() -> None:
    function = lambda a, x: np.interp(a, x, x, period=9.0) + np.argsort(x)[0] + np.sort(-x)[1] + np.quantile(x, 0.4)
    args = np.array([0.3, 7.0]), np.array([4.0, 2.0, 1.0, 5.0])
    assert Compiled(trace(function)(*args)).segments.whole is not None
    np.testing.assert_allclose(wg.jit(function)(*args), function(*args), rtol=1e-15)


def test_loops_hand_on_arrays_that_are_known():
    known = np.array([1.0, 2.0])
    require_same(lambda x: wg.fori_loop(0, 9, lambda _, c: (known, known * 2, c[0] + c[2]), (x, x, x)), X[:2])


# Lanes


def pairs_by_scan(y, xs):
    def step(c, x):
        y, m, k = c
        a = np.stack([y[0] * x[1] - y[1], np.sin(y[0]) + x[0] * y[1]])
        return (y + 0.1 * a * m[0, 0], m * 0.9 + 0.01 * np.sum(y), k + 1), (a * 2, y[::-1])

    return wg.scan(step, (y, np.ones((2, 2)), 0), xs)


def pairs_by_while(y, p):
    return wg.while_loop(
        lambda s: np.max(s[0]) < p[0, 0] + 3, lambda s: (s[0] * 1.3 + s[0] ** 2 * p[0], s[1] + 1, s[0]), (y, 0, y)
    )


def pairs_in_pairs(y, p):
    return wg.fori_loop(0, 9, lambda i, s: wg.scan(lambda c, e: (c * e[0] + s * s * 0.1, c[0]), s, p)[0] * 0.5, y)


def shapes_of_loops(graph: Graph) -> set[tuple[int, ...]]:
    """Return the shapes of what loops in a graph give."""
    inner = [shapes_of_loops(own) for e in graph.equations for _, own in subgraphs(e.params)]
    return {v.shape for e in graph.equations if "body" in e.params for v in e.outputs}.union(*inner)


LANES = {
    "value": wg.vmap,
    "grad": lambda f: wg.vmap(wg.grad(f)),
    "grad of all": lambda f: wg.grad(lambda *xs: np.sum(wg.vmap(f)(*xs))),
    "second": lambda f: wg.grad(lambda *xs: np.sum(wg.vmap(wg.grad(f))(*xs) ** 2)),
}


@pytest.mark.parametrize("function", [pairs_by_scan, pairs_by_while, pairs_in_pairs])
@pytest.mark.parametrize("lanes", [3, 19])
def test_loops_of_lanes_of_pairs_carry_lanes_last(function, lanes):
    y, p = np.abs(np.random.default_rng(1).normal(size=(lanes, 12, 2)))[:, :11][:, 0], np.full((lanes, 11, 2), 0.3)
    for mode, transform in some_of(list(LANES.items()), f"{function.__name__}, {lanes}"):
        total = function if mode == "value" else lambda *xs: sum(map(np.sum, wg.tree.leaves(function(*xs))))
        run = transform(total)
        jitted = wg.jit(run)
        lowered = jitted.lower(y, p)
        assert not [part for part in lowered.segments.parts if part.program is None]
        assert ((2, lanes) in shapes_of_loops(lowered.graph)) == (lanes > 3), mode
        for found, wanted in zip(wg.tree.leaves(jitted(y, p)), wg.tree.leaves(run(y, p)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_zeros_stand_for_rows_of_any_number_however_large_these_are():
    zeros = Variable.of(Aval((UNKNOWN, 1024, 1024), np.dtype(float)))
    rows = as_array(zeros, Items(zeros.aval, None))
    assert as_value(zeros, rows).arrays is None


def path_by_parts(y):
    def write(i, path):
        path[i + 1] = 0.9 * path[i] + 0.1 * path[i, ::-1] ** 2
        return path

    path = np.ones((19, 2), like=y)
    path[0] = y
    return wg.fori_loop(0, 18, write, path)


def path_in_rounds(y):
    def write(i, path):
        column, row = path[:, 1], path[i]
        column[i + 1] = wg.cond(row[0] > 0.5, lambda p: p[i, 0] * 0.5, lambda p: p[0, 1], path)
        return path

    return wg.fori_loop(0, 9, lambda k, path: wg.fori_loop(0, 18, write, path), np.ones((19, 2), like=y) * y)


def path_by_rows(y):
    return wg.while_loop(lambda s: s[0] < 9.0, lambda s: (s * 1.2, s), y, rows=True, max_rounds=19)[1]


@pytest.mark.parametrize("function", [path_by_parts, path_in_rounds, path_by_rows])
def test_paths_of_pairs_stay_where_they_are(function):
    """To turn a path in each iteration, which writes one pair, takes as long as the path times the iterations."""
    y = np.array([0.6, 0.8])
    for run in (function, wg.grad(lambda y: np.sum(np.sin(function(y))))):
        lowered = wg.jit(run).lower(y)
        assert (2, 19) not in shapes_of_loops(lowered.graph)
        for found, wanted in zip(wg.tree.leaves(wg.jit(run, native=True)(y)), wg.tree.leaves(run(y)), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


TERMS = 6


def by_network(w, b, xs):
    return np.sum(wg.scan(lambda h, x: (np.tanh(w @ np.concatenate([h, x]) + b), h), b, xs)[0] ** 2)


def by_batch(w, b, xs):
    batch = np.sin(np.arange(TERMS * 32 * 51).reshape(TERMS, 32, 51).astype(w.dtype) * xs[0, 0])
    end, rows = wg.scan(lambda h, x: (np.tanh(h + x @ w.T),) * 2, np.stack([b, -b] * 16), batch, reverse=True)
    return np.sum(end * rows[0])


def by_both_sides(w, b, xs):
    return np.sum(wg.fori_loop(0, TERMS, lambda i, h: np.tanh(-(w @ np.sin(w.T @ h * 0.1 * i))) + h, b) ** 2)


def by_branch(w, b, xs):
    def step(h, x):
        return wg.cond(x[0] > 0, lambda: np.tanh(b - w @ np.concatenate([h, x])), lambda: h * 0.9), None

    return np.sum(wg.scan(step, b, xs)[0] ** 2)


def in_rounds(w, b, xs):
    def outer(h, x):
        return wg.fori_loop(0, 5, lambda _, g: np.tanh(w @ np.concatenate([g, x])), h), None

    return np.sum(wg.scan(outer, b, xs)[0] ** 2)


def read_elsewhere(w, b, xs):
    def step(carried, x):
        total, h = carried
        h = np.tanh(w @ np.concatenate([h, x])) * total[0, 0]
        return (total + np.outer(h, np.concatenate([h, x])), h), None

    return np.sum(wg.scan(step, (np.ones_like(w), b), xs)[0][0])


def left_behind(w, b, xs):
    def step(total, x):
        total = total + np.outer(b * x[0], np.concatenate([np.sin(b), x]))
        return total, total

    total, rows = wg.scan(step, w, xs)
    return np.sum(total * rows[2])


def of_own(w, b, xs):
    def step(carried, x):
        total, h = carried
        return (total + np.outer(np.cos(h), np.concatenate([h, x])), np.sin(h) + x[0]), None

    return np.sum(wg.scan(step, (w, b), xs)[0][0] ** 2)


def ended_by_condition(w, b, xs):
    def step(carried):
        total, h, n = carried
        return total + np.outer(h, np.concatenate([h, xs[0]])), np.sin(h), n + 1

    return np.sum(wg.while_loop(lambda carried: carried[2] < TERMS, step, (w, b, 0))[0])


SUMS = {
    "value": (lambda f: f, (of_own,), (read_elsewhere, left_behind, ended_by_condition)),
    "grad": (wg.grad, (by_network, by_batch, by_both_sides, by_branch, in_rounds), (read_elsewhere,)),
    "grad of lanes": (
        lambda f: wg.grad(lambda w, b, xs: np.sum(wg.vmap(f, (None, 0, None))(w, np.stack([b, b * 2.0]), xs))),
        (by_network, by_both_sides),
        (),
    ),
    "lanes of grad": (
        lambda f: lambda w, b, xs: wg.vmap(wg.grad(f), (None, 0, None))(w, np.stack([b, b * 2.0]), xs),
        (by_network, by_both_sides),
        (),
    ),
    "hvp": (lambda f: wg.grad(lambda *xs: np.sum(wg.grad(f)(*xs) ** 2)), (by_network, by_both_sides), ()),
}


CASES = [
    (mode, function, moved)
    for mode, (_, *groups) in SUMS.items()
    for moved, functions in zip((True, False), groups, strict=True)
    for function in functions
]


@pytest.mark.parametrize(
    ("mode", "function", "moved", "dtype"),
    [
        *[(*case, np.float64) for case in some_of(CASES, "sums", 2)],
        *[("grad", f, True, dtype) for f in (by_network, by_branch) for dtype in (np.float32, np.complex128)],
    ],
)
def test_sums_of_products_over_rounds_come_after_the_loop(mode, function, moved, dtype):
    w, b, xs = (0.05 * np.random.default_rng(3).normal(size=s) for s in ((48, 51), 48, (TERMS, 3)))
    run = SUMS[mode][0](function)
    if dtype is np.complex128:
        run = SUMS[mode][0](lambda w, b, xs: np.real(function(w * (1.0 + 0.3j), b * (1.0 - 0.1j), xs)))
    else:
        w, b, xs = (x.astype(dtype) for x in (w, b, xs))
    jitted = wg.jit(run)
    lowered = jitted.lower(w, b, xs)
    assert not [part for part in lowered.segments.parts if part.program is None]
    sums = {shape for shape in shapes_of_loops(lowered.graph) if shape[-2:] in {(48, 51), (48, 48)}}
    assert bool(sums) != moved
    assert mode != "value" or moved == ("contract" in {e.primitive.name for e in lowered.graph.equations})
    found, wanted = jitted(w, b, xs), run(w, b, xs)
    tolerance = 1e-4 if dtype is np.float32 else 1e-11
    np.testing.assert_allclose(found, wanted, rtol=tolerance, atol=tolerance * np.max(np.abs(wanted)))


def test_rows_of_inner_loops_use_the_memory_of_those_before() -> None:
    resource = pytest.importorskip("resource")
    x = np.linspace(0.1, 1.0, 500)

    def repeated(x, rounds):
        return np.sum(wg.while_loop(lambda s: s[1] < rounds, lambda s: (np.sin(s[0]) * x + 0.3, s[1] + 1), (x, 0))[0])

    slope = wg.grad(repeated)
    f = wg.jit(lambda x, n, m: wg.fori_loop(0, n, lambda _, y: y + slope(x * np.cos(y), m) / 1000, x), native=True)
    f(x, 2, 2)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    f(x, 600, 100)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 30_000, "kB; 480 MB if all are kept"


def test_second_gradients_of_linear_loops_in_branches() -> None:
    slope = lambda f: wg.grad(lambda x: np.sum(wg.grad(lambda x: np.sum(f(x)))(x) * ROWS[0]))(X)
    np.testing.assert_allclose(slope(wg.jit(nested_linear)), slope(nested_linear), rtol=1e-12)


MATRIX = np.random.default_rng(7).normal(size=(70, 131)) / 9
VECTOR = np.random.default_rng(8).normal(size=131)


def rounds_of(product: Callable[[Any, Any], Any], count: int = 16) -> Callable[[Any, Any], Any]:
    """Return the sum of what so many rounds give that multiply a vector by a matrix, and back."""

    def step(w: Any, v: Any) -> tuple[Any, Any]:
        u = np.tanh(product(w, v))
        return np.tanh(u @ w), u[:3]

    return lambda w, v: np.sum(wg.scan(lambda v, _: step(w, v), v, None, length=count)[1])


MULTIPLIED = rounds_of(lambda w, v: w @ v)
LAYERS = rounds_of(lambda w, v: v @ w.T)
COPIED: dict[str, tuple[Callable[..., Any], int]] = {
    "gradient": (wg.grad(MULTIPLIED, (0, 1)), 1),
    "tangent": (lambda w, v: wg.jvp(MULTIPLIED, (w, v), (w, v)), 1),
    "captured": (lambda _, v: wg.jit(MULTIPLIED)(MATRIX, v), 1),
    "transposed": (rounds_of(lambda w, v: w.T.T @ v), 1),
    "single": (lambda w, v: MULTIPLIED(w.astype(np.float32), v.astype(np.float32)), 1),
    "element by element": (rounds_of(lambda w, v: w @ v + np.sum(w * v, 1)), 0),
    "few rounds": (rounds_of(lambda w, v: w @ v, 15), 0),
    "lanes": (wg.vmap(MULTIPLIED, (None, 0)), 1),
    "of matrices": (wg.grad(lambda w, v: LAYERS(w.T, np.stack([v[:70], -v[:70]]))), 1),
}
"""Functions of a matrix that is multiplied in each round, and how often it is copied to longer rows."""


@pytest.mark.long
@together("name", COPIED)
def test_matrices_of_many_rounds_are_copied_once_to_rows_that_begin_where_lines_do(name: str) -> None:
    function, copies = COPIED[name]
    vector = np.stack([VECTOR, -VECTOR]) if name == "lanes" else VECTOR
    program = wg.jit(function).lower(MATRIX, vector).segments.whole
    assert program is not None
    shapes = [buffer.shape for buffer in program.buffers if buffer.kind in ("temporary", "constant")]
    assert shapes.count((70, 144 if name == "single" else 136)) == copies
    found, wanted = wg.tree.leaves(wg.jit(function)(MATRIX, vector)), wg.tree.leaves(function(MATRIX, vector))
    for x, y in zip(found, wanted, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-4 if name == "single" else 1e-11, atol=1e-13)


def test_loops_beside_arguments_without_elements() -> None:
    def grown(x: Any, empty: Any) -> Any:
        return wg.while_loop(lambda t: np.sum(t * t) < 50.0, lambda t: t * 1.5 + 0.1, x), empty

    x, empty = np.array([0.25, 0.5]), np.zeros((0, 3))
    for found, wanted in zip(wg.jit(grown)(x, empty), grown(x, empty), strict=True):
        np.testing.assert_array_equal(found, wanted)
