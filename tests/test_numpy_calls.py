"""What NumPy makes arrays of, in traced functions: lists of traced values, and arrays that these are written into."""

from __future__ import annotations

import functools
import logging
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError
from wengert.scipy import integrate, optimize
from wengert.scipy.sparse import linalg
from wengert.transforms.tracing import call_converting

CONSTANT = np.array([[0.9, 0.1], [-0.2, 0.8]])
SERIES = np.sin(np.arange(20.0))
TABLE = SERIES.tolist() * 2


def lists_of_rows(x):
    state, total = np.array([0.0, x[1]]), 0.0
    for y in SERIES:
        innovation = np.array([y]) - state[:1]
        state = np.array([[0.9, x[0]], [-0.2, 0.8]]) @ state + np.asarray([innovation[0], 2])
        total = total + np.linalg.norm([state[0], y]) + np.dot([1.0, x[0]], state)
    return total


def lists_in_while(x):
    state, rounds = np.array(x), 0
    while state[0] < 3.0 and rounds < 50:
        state = np.array([state[1] + x[0], np.max([state[0], np.float32(0.5), 1])], dtype=np.float64)
        rounds += 1
    return state.sum() * rounds


def lists_in_branches(x):
    def rotated(v):
        return np.array([v[1], -v[0]]) if v[0] > 0 else np.stack([[v[0], v[1]], [v[1], 1]])[0]

    return np.sum(np.exp([rotated(x)[0], rotated(-x)[1]])) + np.concatenate([[x[0]], rotated(x)]).prod()


def written_rows(x):
    states = np.zeros((21, 2))
    states[0] = x
    for i in range(20):
        states[i + 1] = CONSTANT @ states[i] + SERIES[i]
    return (states[::-1] ** 2).sum()


def written_views(x):
    table = np.full((3, 3), 2.0)
    diagonal, corner = table.T, table[1:, 1:]
    diagonal[0, 1] = x[0]
    corner += x
    np.fill_diagonal(table, x[1])
    grid = np.linspace(0, 1, 3)
    same = np.asarray(grid)
    same[1] = x[1]
    grid[np.argmax(x)] *= x[0]
    return (table @ grid).sum() + np.linalg.det(table)


def written_in_branches(x):
    counts, best = np.zeros(3, int), CONSTANT.copy()
    if x[0] > 0.2:
        best[0] = x * 2
        counts[x > 0] += 1
    return (best * counts[:2]).sum() + x[0]


def written_in_whole_numbers(x):
    ranks = np.zeros(2, int)
    for i in range(2):
        ranks[i] = np.sum(x < x[i])
    return (ranks * x).sum()


def filled_and_joined(x):
    state, total = np.r_[0.0, x[1]], np.full(2, x[0])
    for k in range(20):
        row = np.c_[np.full(1, 0.1 * k), x[0]]
        state = np.r_[[0.9, x[0] * 0.1], [-0.2, 0.8]].reshape(2, 2) @ state + np.full((2,), x[:1]) * 0.1
        total += (row @ state)[0] * np.full(2, k, np.float32)
    total[1:] = np.r_[x[0] : x[1] : 3j, 0:2][1]
    return total.sum()


def filled_in_whole_numbers(x):
    ranks, places = np.full(2, 9.5 * x[1], int), np.zeros(4, int)
    ranks[:1].fill(21 * x[0])
    places.put([0, 3], [8 * x[1], 9])
    drawn = np.fromiter((v * 9 for v in x), dtype=np.int32, count=2)
    return ((ranks + drawn + places[::2]) * x).sum() + np.fromiter(map(np.exp, x), float).prod()


chosen = np.vectorize(lambda v, w: v * w if v > 0.5 else w - v)


def set_by_attributes_and_items(x):
    flat, pair = np.zeros(2), np.zeros(2, complex)
    flat.flat = x * x
    pair.real, pair.imag = flat, x[0]
    own = wg.numpy.vectorize(lambda v: v * v if v > 0.5 else v, otypes=[float])
    total = np.sum(np.abs(pair) * np.require([x[1], 2], requirements="F") + chosen(x, 3.0) * np.asarray(own(x)))
    for (i,), v in np.ndenumerate(x):
        total = total + i * v * flat[i]
    return total


FUNCTIONS = [
    *(lists_of_rows, lists_in_while, lists_in_branches, written_rows, written_views, written_in_whole_numbers),
    *(filled_and_joined, filled_in_whole_numbers, set_by_attributes_and_items),
]


@pytest.mark.long
@together("function", FUNCTIONS)
def test_arrays_of_traced_values_are_what_numpy_makes(function: Any) -> None:
    x, step = np.array([0.3, 0.7]), 1e-6
    value, found = function(x), wg.jit(function)(x)
    assert (found.dtype, type(found)) == (value.dtype, type(value))
    np.testing.assert_allclose(found, value, rtol=1e-12)
    slopes = np.array([(function(x + d) - function(x - d)) / (2 * step) for d in step * np.eye(2)])
    np.testing.assert_allclose(wg.grad(wg.jit(function))(x), slopes, rtol=1e-5, atol=1e-6)
    if FUNCTIONS.index(function) % 2:
        forward = wg.jit(lambda x, t: wg.jvp(function, (x,), (t,))[1])
        np.testing.assert_allclose(forward(x, x), slopes @ x, rtol=1e-5, atol=1e-6)
        return
    lanes = np.stack([x, 0.5 * x])
    np.testing.assert_allclose(wg.jit(wg.vmap(function))(lanes), [function(x), function(0.5 * x)], rtol=1e-12)


class Holder:
    """An object that lends its memory, as pandas' do."""

    def __init__(self) -> None:
        self.numbers = np.array([0.9, 0.1])

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.numbers


def test_arrays_of_others_stay_as_they_are() -> None:
    holder = Holder()
    for given in (CONSTANT[0], holder, memoryview(holder.numbers), holder.numbers.view(np.recarray)):

        def program(x: Any, given: Any = given) -> Any:
            np.asarray(given)[:] = x
            return x

        with pytest.raises(GraphError, match="stored into an ndarray"):
            wg.jit(program)(np.ones(2))
    assert CONSTANT[0, 0] == holder.numbers[0] == 0.9


def generated(x):
    rows = [(1.0, 2.0), (0.5, 3.0)] * 10
    total = sum(a * v for a, b in rows for v in x if v > b / 4)
    for k in range(20):
        total = total + sum(x[j % 2] ** 2 * k for j in range(k) if j != 3)
    return total + max(total * c for c in [np.float64(0.1), 0.2])


def list_of_rows(x):
    states, state = [], x
    for y in SERIES:
        state = CONSTANT @ state + y
        states.append(state)
    total = x * 0
    for k in range(len(states) - 1, 0, -1):
        total = 0.5 * total + states[k] * states[k - 1]
    return total.sum()


def counted_while(x):
    time, steps, states, total = 0.0, 0, [], 0
    while time < 4.0 and steps != 70:
        x = x + 0.1 * np.stack([x[1], -time * x[0]])
        states.append(x)
        time, steps = time + 0.1, steps + 1
        total = total + x[0] * steps
    assert (type(time), type(steps), len(states)) == (float, int, steps)
    while True:
        steps -= 1
        total = total * 0.9 + x[0]
        if steps == 2:
            break
    return total + np.sum(np.stack(states)) + np.ones(steps).sum() * time


@together("function", [generated, list_of_rows, counted_while])
def test_loops_over_what_is_generated_and_left_are_equations(function: Any) -> None:
    x = np.array([0.6, 0.9])
    np.testing.assert_allclose(wg.jit(function)(x), function(x), rtol=1e-12)
    graph = wg.graph.trace(function)(x)
    assert len(graph.equations) < 100
    (slope,) = wg.graph.gradient(graph)(x)[1:]
    np.testing.assert_allclose(slope, wg.grad(function)(x), rtol=1e-10)


def test_the_log_names_the_line_for_which_a_loop_is_written_out(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("wengert.conversion.loop_emission.LOGGED", {"loops"})

    def program(x: Any) -> Any:
        for y in TABLE:
            x = x * 0.5 + y
        for y in TABLE:
            x = x + hash(y) % 2
        return x

    with caplog.at_level(logging.INFO):
        wg.jit(program)(1.0)
    texts = [record.getMessage() for record in caplog.records]
    assert any("for y in TABLE:\n  a loop of 40 rounds is one equation" in text for text in texts)
    assert any("is written out" in text and "x = x + hash(y) % 2" in text for text in texts)


def test_arrays_that_hold_traced_values_are_not_left_in_the_users_program() -> None:
    """The program would find a Tensor there, in place of the ndarray that it made."""
    kept: dict[str, Any] = {}

    def program(x: Any) -> Any:
        kept["weights"] = np.arange(3.0)
        total = np.zeros(3)
        total[0] = x[0]
        return np.sum(total * kept["weights"])

    with pytest.raises(GraphError, match="stored into an ndarray"):
        wg.jit(program)(np.ones(3))
    assert not kept


def test_errors_of_arguments_are_those_of_numpy() -> None:
    def lacks_dtype(x: Any) -> Any:
        y = x if x > 0 else -x
        return np.fromiter([y, y])

    with pytest.raises(TypeError, match="fromiter"):
        wg.jit(lacks_dtype)(1.0)


def test_solvers_take_functions_that_make_arrays() -> None:
    def written(x, a):
        r = np.empty(2)
        r[0], r[1] = x[0] ** 2 - a, x[1] - x[0]
        return r

    def listed(x, a):
        return np.array([x[0] ** 2 - a, x[1] - x[0]])

    for function in (written, listed):
        found = wg.grad(lambda a, f=function: wg.scipy.optimize.root(f, np.ones(2), args=(a,)).x.sum())(4.0)
        np.testing.assert_allclose(found, 0.5, rtol=1e-6)


def made_of(first, second):
    return np.array([first, second])


def filled_with(first, second):
    made = np.zeros(2)
    made[0], made[1] = first, second
    return made


def joined(first, second):
    return np.stack([first, second])


def constrained(make, a):
    ring = {"type": "ineq", "fun": lambda x: make(a - x[0] ** 2 - x[1] ** 2, x[0] + 3.0)}
    return optimize.minimize(lambda x: np.sum((x - 1.0) ** 2), np.full(2, 0.1), method="SLSQP", constraints=ring).x[0]


def between_ends(make, a):
    slopes = lambda x, y: np.stack([y[1], -a * y[0]])
    return integrate.solve_bvp(
        slopes, lambda left, right: make(left[0], right[0] - a), [0.0, 0.5, 1.0], np.zeros((2, 3))
    ).y[1, 0]


def solved_by_products(make, a):
    product = linalg.LinearOperator((2, 2), lambda x: make(2.0 * x[0] + a * x[1], a * x[0] + 3.0 * x[1]))
    return linalg.lsqr(product, np.ones(2), atol=1e-14, btol=1e-14)[0][0]


def fitted(make, a):
    return wg.optim.least_squares(lambda x: make(x[0] ** 2 - a, x[1] - x[0]), np.ones(2)).x[1]


@pytest.mark.long
@together("problem", [constrained, between_ends, solved_by_products, fitted])
def test_functions_that_solvers_call_eagerly_may_make_arrays(problem: Any) -> None:
    expected = wg.grad(functools.partial(problem, joined))(1.2)
    for make in (made_of, filled_with):
        np.testing.assert_allclose(wg.grad(functools.partial(problem, make))(1.2), expected, rtol=1e-9)


def test_what_a_function_did_before_it_made_an_array_is_done_once() -> None:
    calls = []

    def product(x: Any) -> Any:
        calls.append(x.shape)
        return np.array([2.0 * x[0], 3.0 * x[1]])

    assert wg.grad(lambda x: call_converting(product, x).sum())(np.ones(2)).tolist() == [2.0, 3.0]
    assert calls == [(2,)]
    assert wg.vmap(lambda x: call_converting(product, x))(np.ones((2, 2))).tolist() == [[2.0, 3.0]] * 2
