"""Optimising: SciPy's drivers on containers, update rules, and their states in files."""

from __future__ import annotations

import dataclasses
import functools
import io
import math
import pickle
import re
import warnings
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import Mock

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse

import wengert as wg
from tests.cases import together
from wengert import optim, tree
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import DtypeError, FileFormatError, GraphError, ShapeError, TracedTruthError, UsageError
from wengert.implicit import attaching, factored, frontal
from wengert.optim import equations, sparse_newton
from wengert.scipy.integrate._methods.element_matrices import FrontMatrices
from wengert.scipy.optimize._vector_problem import UNTRACED_GRADIENTS


def rosenbrock(x: Any) -> Any:
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


@dataclasses.dataclass
class Model:
    a: Any
    rest: dict[str, Any]
    name: str = "model"


def of_model(model: Model) -> Any:
    return rosenbrock(np.concatenate([np.reshape(model.a, (1,)), model.rest["b"]]))


START = Model(-1.2, {"b": np.array([1.0, 0.8])})
METHODS = [None, "CG", "BFGS", "Newton-CG", "L-BFGS-B", "TNC", "SLSQP", "trust-constr"]
METHODS += ["dogleg", "trust-ncg", "trust-krylov", "trust-exact", "Nelder-Mead", "Powell"]


@together("method", METHODS)
def test_methods_on_a_container(method: str | None) -> None:
    start = Model(0.99, {"b": np.array([0.97, 0.94])})  # near, for those without derivatives; convex, for dogleg
    options = {"maxiter": 2000} if method in ("CG", "TNC", "Powell") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of SciPy, about what it makes of quasi-Newton steps
        found = optim.minimize(of_model, start, method=method, jit=method == "BFGS", options=options)
    assert type(found.x) is Model
    assert found.x.name == "model"
    loose = method in ("Nelder-Mead", "Powell", "SLSQP", "TNC", "trust-constr")
    np.testing.assert_allclose([found.x.a, *found.x.rest["b"]], 1.0, atol=2e-2 if loose else 1e-4)
    assert not hasattr(found, "jac") or method == "trust-constr" or type(found.jac) is Model


def test_arrays_and_lists_as_in_scipy() -> None:
    expected = scipy.optimize.minimize(
        lambda x: (rosenbrock(x), wg.grad(rosenbrock)(x)), [-1.0, 1.0], jac=True, method="BFGS"
    )
    found = optim.minimize(rosenbrock, [-1, 1], method="BFGS")
    assert abs(found.nfev - expected.nfev) <= 2
    np.testing.assert_allclose(found.x, expected.x, rtol=1e-5)
    assert isinstance(found.x, np.ndarray)
    number = optim.minimize(lambda x, a: (x - a) ** 2, 0.0, 3.0)
    assert isinstance(number.x, float)
    assert round(number.x, 6) == 3.0
    bounded = optim.minimize(rosenbrock, [0.1, 0.1], bounds=[(None, 0.5), (0, None)])
    np.testing.assert_allclose(bounded.x, [0.5, 0.25], atol=1e-5)


class Point(NamedTuple):
    x: float
    y: float


@pytest.mark.parametrize("start", [Point(0.0, 0.0), {"x": 0.0, "y": [0.0]}, [0.0, [0.0]], [{"x": 0.0}, 0.0]])
def test_containers_of_numbers_that_are_no_lists_of_numbers_stay(start: Any) -> None:
    def square(p: Any) -> Any:
        assert tree.structure(p) == tree.structure(start)
        return sum((leaf - 1.0) ** 2 for leaf in tree.leaves(p))

    found = optim.minimize(square, start)
    assert tree.structure(found.x) == tree.structure(start)
    np.testing.assert_allclose(tree.leaves(found.x), 1.0)


def test_lists_of_rows_are_arrays() -> None:
    found = optim.minimize(lambda x: np.sum((x - 1.0) ** 2), [[0, 1], (2.0, 3.0)])
    np.testing.assert_allclose(found.x, np.ones((2, 2)))


def test_bounds_and_constraints_of_containers() -> None:
    def loss(p: Any) -> Any:
        return np.sum((p["w"] - 2.0) ** 2) + (p["b"] + 1.0) ** 2

    start = {"w": np.zeros(2), "b": 0.0}
    found = optim.minimize(loss, start, bounds=(0.0, {"w": np.array([1.0, 5.0]), "b": np.inf}))
    np.testing.assert_allclose(found.x["w"], [1.0, 2.0], atol=1e-6)
    assert abs(found.x["b"]) < 1e-6
    circle = {"type": "ineq", "fun": lambda p: 1.0 - np.sum(p["w"] ** 2)}
    found = optim.minimize(loss, start, constraints=circle, method="SLSQP")
    np.testing.assert_allclose(found.x["w"], math.sqrt(0.5), atol=1e-5)
    inside = scipy.optimize.NonlinearConstraint(lambda p: np.sum(p["w"] ** 2), -np.inf, 1.0)
    found = optim.minimize(loss, start, constraints=[inside], method="trust-constr", tol=1e-8)
    np.testing.assert_allclose(found.x["w"], math.sqrt(0.5), atol=1e-3)


SIDES: dict[str, tuple[Any, Any, Any]] = {
    "numbers": (np.zeros(3), (0.0, 2.0), [1.0, 2.0, 2.0]),
    "arrays": (np.zeros(3), (np.zeros(3), np.array([0.5, 1.0, 4.0])), [0.5, 1.0, 3.0]),
    "lists": (np.zeros(3), ([0, 0, 0], [0.5, 1, 4]), [0.5, 1.0, 3.0]),
    "a number and a list": (np.zeros(2), [0, [0.5, 1]], [0.5, 1.0]),
    "a number and an array": (np.zeros(2), (-np.inf, np.array([0.5, 1.0])), [0.5, 1.0]),
    "pairs": (np.zeros(2), ((None, 0.5), (0, 1)), [0.5, 1.0]),
    "lists of two are pairs": (np.zeros(2), ([0, 0.5], [0, 1]), [0.5, 1.0]),
    "a number's": (0.0, (0.0, 0.5), 0.5),
    "a number's pair": (0.0, [(0.0, 0.5)], 0.5),
    "a matrix'": (np.zeros((2, 2)), (0.0, np.array([[0.5, 1.0], [2.0, 2.0]])), [[0.5, 1.0], [2.0, 2.0]]),
    "SciPy's": (np.zeros(2), scipy.optimize.Bounds(0.0, [0.5, 1.0]), [0.5, 1.0]),
}


@together("name", SIDES)
def test_bounds_of_arrays_and_numbers(name: str) -> None:
    start, bounds, expected = SIDES[name]
    free = 1.0 + np.arange(np.size(start)).reshape(np.shape(start))
    found = optim.minimize(lambda x: np.sum((x - free) ** 2), start, bounds=bounds)
    np.testing.assert_allclose(found.x, expected, atol=1e-5)


def test_callbacks_and_progress(capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[Any] = []
    found = optim.minimize(of_model, START, callback=seen.append, progress=True, jit=False)
    assert type(seen[-1]) is Model
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(seen) == found.nit
    assert lines[0].startswith("    1  f = ")

    def stop(intermediate_result: Any) -> None:
        seen.append(intermediate_result.x)
        raise StopIteration

    seen.clear()
    optim.minimize(of_model, START, callback=stop, jit=False)
    assert len(seen) == 1
    assert type(seen[0]) is Model


def test_functions_of_large_problems_are_traced_once_and_of_small_ones_soon() -> None:
    calls = []

    def loss(x: Any) -> Any:
        calls.append(type(x) is Tensor and is_staged(x))
        return rosenbrock(x)

    data = np.ones(10_000)

    def held(x: Any) -> Any:
        return loss(x) + np.sum(data * x[0]) * 0.0

    def lengthy(x: Any) -> Any:
        return loss(x) + sum(x[0] * 0.0 for _ in range(300))

    optim.minimize(loss, np.zeros(101))
    assert all(calls), "of many unknowns"
    for large in (held, lengthy):
        calls.clear()
        optim.minimize(large, np.zeros(3))
        assert calls.count(False) <= (large is lengthy)
        assert calls.count(True) <= 2
    calls.clear()
    found = optim.minimize(loss, np.zeros(3))
    assert (calls.count(False), 1 <= calls.count(True) <= 2) == (UNTRACED_GRADIENTS, True)
    assert found.nfev > 2 * UNTRACED_GRADIENTS
    calls.clear()
    found = optim.minimize(loss, np.zeros(3), jit=False)
    assert (calls.count(False), len(calls)) == (found.nfev, found.nfev)


def test_small_problems_are_never_traced() -> None:
    traced = []

    def line(t: Any, a: Any, b: Any) -> Any:
        traced.append(any(type(x) is Tensor and is_staged(x) for x in (a, b)))
        return a * t + b

    t = np.linspace(0.0, 1.0, 9)
    found, covariance = optim.curve_fit(line, t, 2.0 * t + 1.0 + 0.1 * np.sin(9.0 * t))
    expected = scipy.optimize.curve_fit(line, t, 2.0 * t + 1.0 + 0.1 * np.sin(9.0 * t))
    np.testing.assert_allclose(found, expected[0], rtol=1e-6)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-5)
    assert np.allclose(optim.root(lambda x: line(x, 2.0 * x, 0.0) - 2.0, np.ones(2)).x, 1.0)
    assert np.allclose(optim.least_squares(lambda x: line(x, 1.0, x[0]) - 2.0, np.zeros(2)).x, [1.0, 1.0])
    assert not any(traced)
    many = np.linspace(0.0, 1.0, 5000)
    optim.curve_fit(line, many, 2.0 * many + 1.0)
    assert any(traced)


@pytest.mark.parametrize("form", [list, tuple])
def test_curve_fit_takes_lists_of_numbers_as_arrays(form: type) -> None:
    def decay(t: Any, a: Any, k: Any) -> Any:
        return a * np.exp(-k * t)

    places, values = form([0, 1, 2.5, 3]), form([1.0, 0.5, 0.3, 0.1])
    for one, other in zip(
        optim.curve_fit(decay, places, values), scipy.optimize.curve_fit(decay, places, values), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-5)


def test_curve_fit_takes_columns_of_tables_as_they_are() -> None:
    class Column:
        ndim = 1

        def __init__(self, values: Any) -> None:
            self.values = np.asarray(values)

        def to_numpy(self) -> Any:
            return self.values

        def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
            return np.asarray(self.values, dtype)

    places, heights = Column([0.0, 1.0, 2.0, 3.0]), Column([1.0, 3.0, 5.0, 7.0])
    found, _ = wg.optim.curve_fit(lambda x, slope, height: slope * x + height, places, heights)
    np.testing.assert_allclose(found, [2.0, 1.0])


def test_what_curve_fit_finds_has_derivatives_by_all_data() -> None:
    t, along = np.linspace(0.0, 2.0, 7), np.sin(np.arange(21.0)).reshape(3, 7)
    data = t, 2.0 * np.exp(-0.7 * t) + 0.01 * np.sin(9.0 * t), 0.1 + 0.02 * t

    def rate(t: Any, y: Any, sigma: Any) -> Any:
        return optim.curve_fit(lambda t, a, k: a * np.exp(-k * t), t, y, np.ones(2), sigma=sigma)[0][1]

    step = [1e-4 * change for change in along]
    after, before = (rate(*(x + sign * dx for x, dx in zip(data, step, strict=True))) for sign in (1, -1))
    gradient = wg.grad(rate, (0, 1, 2))(*data)
    slope = sum(np.sum(g * change) for g, change in zip(gradient, along, strict=True))
    assert slope == pytest.approx((after - before) / 2e-4, rel=1e-5)


def test_least_squares_root_and_curve_fit() -> None:
    t = np.linspace(0.0, 2.0, 30)
    y = 2.5 * np.exp(-1.3 * t) + 0.4

    def model(p: Any, t: Any) -> Any:
        return p["a"] * np.exp(-p["k"] * t) + p["c"]

    start = {"a": 1.0, "k": 1.0, "c": 0.0}
    for options in ({}, {"method": "lm"}, {"bounds": (0.0, 10.0)}):
        found = optim.least_squares(lambda p, t: model(p, t) - y, start, (t,), **options)
        assert {key: round(value, 5) for key, value in found.x.items()} == {"a": 2.5, "k": 1.3, "c": 0.4}
    parameters, covariance = optim.curve_fit(lambda t, p: model(p, t), t, y, start, bounds=(-1.0, 9.0))
    assert round(parameters["k"], 5) == 1.3
    assert covariance.shape == (3, 3)
    noisy = y + 0.01 * np.sin(40 * t)
    plain = lambda t, a, k, c: a * np.exp(-k * t) + c
    expected = scipy.optimize.curve_fit(plain, t, noisy, [1, 1, 0], sigma=1 + t, absolute_sigma=True)
    values, covariance = optim.curve_fit(plain, t, noisy, sigma=1 + t, absolute_sigma=True)
    np.testing.assert_allclose(values, expected[0], rtol=1e-6)
    np.testing.assert_allclose(covariance, expected[1], rtol=1e-5)
    solved = optim.root(lambda x: np.stack([x[0] ** 2 - 4.0, x[0] * x[1] - 1.0]), [1.0, 1.0])
    np.testing.assert_allclose(solved.x, [2.0, 0.5])


def test_residuals_in_containers() -> None:
    target = np.arange(6.0).reshape(2, 3)
    found = optim.least_squares(lambda p: {"m": p - target, "s": [np.sum(p)]}, np.zeros((2, 3)))
    assert found.x.shape == (2, 3)


# Rules


def final(rule: optim.Rule, steps: int = 400, transform: Any = lambda f: f) -> dict[str, Any]:
    def loss(p: Any) -> Any:
        return np.sum((p["w"] - 2.0) ** 2) + 3.0 * (p["b"] + 1.0) ** 2

    init, update = rule
    parameters: dict[str, Any] = {"w": np.zeros(2, np.float32), "b": 1.0}
    state = init(parameters)
    step = transform(lambda state, p: update(wg.grad(loss)(p), state, p))
    for _ in range(steps):
        parameters, state = step(state, parameters)
    assert parameters["w"].dtype == np.float32
    assert isinstance(parameters["b"], float)
    return parameters


RULES = {
    "sgd": optim.sgd(0.05),
    "momentum": optim.momentum(0.02),
    "nesterov": optim.momentum(0.02, nesterov=True),
    "rmsprop": optim.rmsprop(optim.exponential(0.05, 0.5, 40)),
    "adagrad": optim.adagrad(0.5, first=0.1),
    "lion": optim.lion(optim.cosine(0.1, 380)),
    "adam": optim.adam(optim.warmed_up(optim.cosine(0.2, 300), 20)),
    "adamw": optim.adamw(optim.linear(0.2, 0.0, 380), weight_decay=1e-6),
    "clipped": optim.clipped(optim.adam(optim.piecewise([0.2, 0.02], [100])), 1.0),
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_rules_reach_the_minimum_eagerly_and_jitted(rule: optim.Rule) -> None:
    eager = final(rule)
    np.testing.assert_allclose(eager["w"], 2.0, atol=1e-2)
    np.testing.assert_allclose(eager["b"], -1.0, atol=1e-2)
    short, traced = final(rule, 5), final(rule, 5, wg.jit)
    np.testing.assert_allclose(traced["w"], short["w"], rtol=1e-6)
    np.testing.assert_allclose(traced["b"], short["b"], rtol=1e-12, atol=1e-15)


def test_adam_by_hand() -> None:
    init, update = optim.adam(0.1, b1=0.8, b2=0.9, eps=1e-3)
    p, state, mean, square, expected = 1.0, init(1.0), 0.0, 0.0, 1.0
    for count, g in enumerate((3.0, -1.0, 0.5), 1):
        p, state = update(g, state, p)
        mean, square = 0.8 * mean + 0.2 * g, 0.9 * square + 0.1 * g * g
        expected -= 0.1 * (mean / (1 - 0.8**count)) / (math.sqrt(square / (1 - 0.9**count)) + 1e-3)
        assert math.isclose(p, expected, rel_tol=1e-12)


def test_lion_by_hand() -> None:
    init, update = optim.lion(0.1, b1=0.8, b2=0.5, weight_decay=0.2)
    p, state, mean, expected = 1.0, init(1.0), 0.0, 1.0
    for g in (3.0, -1.0, 0.5):
        p, state = update(g, state, p)
        expected -= 0.1 * (math.copysign(1.0, 0.8 * mean + 0.2 * g) + 0.2 * expected)
        mean = 0.5 * mean + 0.5 * g
        assert math.isclose(p, expected, rel_tol=1e-12)


def test_refusals_of_tracing_tell_of_the_drivers_own_parameter() -> None:
    def counted(p: Any, n: Any) -> Any:
        return math.prod(p[0] ** 2 for _ in range(n)) + p[1] ** 2

    with pytest.raises(TracedTruthError, match="a traced number of items") as error:
        optim.minimize(counted, np.ones(200), args=(np.int64(3),))
    assert error.value.__notes__ == ["optim.minimize traces its functions; with jit=False they are called as they are."]
    assert np.allclose(optim.minimize(counted, np.ones(2), args=(np.int64(1),), jit=False).x, 0.0, atol=1e-6)


@pytest.mark.parametrize("jit", [True, False])
def test_further_arguments_may_be_anything(jit: bool) -> None:
    data, kind, options = np.array([1.0, 5.0]), "shift", {"power": 2, "scale": abs}

    def residuals(x: Any, kind: str, data: Any, options: dict[str, Any]) -> Any:
        shifted = x - data if kind == "shift" else x
        return options["scale"](math.prod(shifted for _ in range(options["power"])))

    def total(x: Any, *args: Any) -> Any:
        return residuals(x, *args).sum()

    start, args = [3.0, 4.0], (kind, data, options)
    equality = {"type": "eq", "fun": lambda x, k, c: x[0] - c if k == "first" else x[1], "args": ("first", 2.0)}
    for method in ("BFGS", "trust-ncg", "trust-exact"):
        assert np.allclose(optim.minimize(total, start, args=args, method=method, jit=jit).x, data, atol=1e-4)
    assert np.allclose(optim.minimize(total, start, args=args, constraints=equality, jit=jit).x, [2.0, 5.0], atol=1e-4)
    assert np.allclose(optim.least_squares(residuals, start, args=args, jit=jit).x, data, atol=1e-2)
    assert np.allclose(optim.root(lambda x, k, t: x**3 - t if k == "a" else x, start, ("a", data**3), jit=jit).x, data)


@pytest.mark.parametrize("make", [lambda: optim.sgd(0.1), lambda: optim.clipped(optim.adam(0.1), 1.0)])
def test_parameters_of_the_tape_step_as_containers_do(make: Any) -> None:
    start = [np.array([3.0, -1.0]), np.array(1.0 + 2.0j)]
    init, update = make()
    plain = list(start)
    state = init(plain)
    parameters = [wg.tensor(p, requires_grad=True) for p in start]
    idle = wg.tensor(5.0, requires_grad=True)
    optimizer = optim.Optimizer([*parameters, idle], make())

    def loss(p: Any) -> Any:
        return np.sum((p[0] - 2.0) ** 2) + np.abs(p[1] - 1j) ** 2

    for _ in range(5):
        plain, state = update(wg.grad(loss)(plain), state, plain)
        optimizer.zero_grad()
        loss(parameters).backward()
        optimizer.step()
    for p, q in zip(parameters, plain, strict=True):
        np.testing.assert_allclose(p.detach().numpy(), q, rtol=1e-12)
    assert idle.item() == 5.0
    assert [s.step for s in optimizer.steps] == [5, 5, 0]


def test_what_is_remembered_begins_at_zero_whatever_the_parameters_are() -> None:
    state = optim.adam().init([np.inf, np.array([np.nan, 1.0], np.float32), 1j])
    assert all(np.all(part == 0.0) for memory in state.memory for part in memory)
    assert [type(memory[0]) for memory in state.memory] == [float, np.ndarray, complex]
    assert state.memory[1][0].dtype == np.float32


def test_clipping_takes_the_norm_of_all_parameters_however_often_they_were_changed() -> None:
    p, q = (wg.tensor([0.0], requires_grad=True) for _ in range(2))
    optimizer = optim.Optimizer([p, q], optim.clipped(optim.sgd(1.0), 5.0))
    (p * 3.0).sum().backward()
    optimizer.step()  # q has no gradient yet
    optimizer.zero_grad()
    (p * 30.0 + q * 40.0).sum().backward()
    optimizer.step()
    assert (p.tolist(), q.tolist()) == ([-6.0], [-4.0])
    assert [state.step for state in optimizer.steps] == [2, 1]


def test_norm_and_clipping_at_zero() -> None:
    assert optim.norm({"a": 3.0, "b": np.array([4.0])}) == 5.0
    assert optim.norm([]) == 0.0
    np.testing.assert_array_equal(wg.grad(optim.norm)(np.zeros(2)), 0.0)
    init, update = optim.clipped(optim.sgd(1.0), 2.0)
    assert update(0.0, init(1.0), 1.0)[0] == 1.0
    assert update(1.5, init(1.0), 1.0)[0] == -0.5


# Files


def test_states_come_back(tmp_path: Path) -> None:
    init, update = optim.adam(0.1)
    parameters = {"m": Model(1.0, {"b": np.ones(2, np.float32)}), "t": wg.tensor([1.0]), "n": None, "k": "text", "i": 3}
    numbers = {"m": parameters["m"], "t": parameters["t"]}
    _, state = update(numbers, init(numbers), numbers)
    for name, value in (("parameters", parameters), ("state", state)):
        optim.save(tmp_path / name, value)
        again = optim.load(tmp_path / name, like=value)
        assert tree.structure(again) == tree.structure(value)
        for one, other in zip(tree.leaves(again), tree.leaves(value), strict=True):
            assert type(one) is type(other)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
    plain = optim.load(tmp_path / "parameters")
    assert plain["k"] == "text"
    assert plain["n"] is None
    assert isinstance(plain["m"], tuple)
    assert np.load(tmp_path / "state", allow_pickle=False)["0"].shape == ()


@pytest.mark.parametrize("format", ["csr", "csc", "coo", "dia", "bsr"])
def test_sparse_matrices_come_back(format: str) -> None:
    full = np.array([[0.0, 1.0, 0.0, 0.0], [2.0, 0.0, 3.0, 0.0]])
    matrix, file = scipy.sparse.csr_array(full).asformat(format), io.BytesIO()
    value = {"A": [matrix, np.ones(2)], "B": scipy.sparse.csr_matrix(full), "c": 1.0}
    optim.save(file, value)
    for like in (None, value):
        file.seek(0)
        again = optim.load(file, like)
        assert [type(x) for x in (again["A"][0], again["B"])] == [type(matrix), scipy.sparse.csr_matrix]
        for one, other in ((again["A"][0], matrix), (again["B"], value["B"])):
            np.testing.assert_array_equal(one.toarray(), other.toarray())
    moved = scipy.sparse.csr_array(full[:, ::-1]).asformat(format)
    for other in (moved, scipy.sparse.csr_matrix(full).asformat(format), np.zeros(matrix.data.shape)):
        file.seek(0)
        with pytest.raises(UsageError, match=r"optim.load: an? (sparse|array) .* at like\['A'\]\[0\].*, as in `like`"):
            optim.load(file, {**value, "A": [other, np.ones(2)]})


def test_archives_of_others_are_named() -> None:
    file = io.BytesIO()
    np.savez(file, weights=np.ones(2))
    file.seek(0)
    with pytest.raises(FileFormatError, match=r"an archive with 'weights'; one that .* Read it with numpy.load"):
        optim.load(file)
    with pytest.raises(FileFormatError, match="a file that is no whole archive"):
        optim.load(io.BytesIO(b"text"))


def test_keys_of_dictionaries_come_back() -> None:
    kept: dict[Any, Any] = {1: 2.0, "1": 3.0, 2.5: [4.0], False: {0: np.float64(5.0)}}
    file = io.BytesIO()
    optim.save(file, {"losses": kept, "places": {(0, 1): 6.0}})
    file.seek(0)
    found = optim.load(file)
    assert found == {"losses": kept, "places": (6.0,)}
    assert set(map(type, found["losses"])) == {int, str, float, bool}


@together(
    "call, error, text",
    [
        (lambda: optim.minimize(None, 1.0), DtypeError, "optim.minimize: None as the function"),
        (lambda: optim.minimize(abs, "x"), DtypeError, "optim.minimize: a leaf of type str; floats"),
        (
            lambda: optim.root(abs, {"a": 1.0, "kind": "x"}),
            DtypeError,
            r"optim.root: a leaf of type str at x0\['kind'\]; floats .*, mark its field as static",
        ),
        (
            lambda: optim.least_squares(lambda x: {"a": x, "kind": "x"}, 1.0, jit=False),
            DtypeError,
            r"optim.least_squares: a leaf of type str at fun\(x\)\['kind'\]; floats",
        ),
        (lambda: optim.minimize(abs, 1.0, jit=3), UsageError, "optim.minimize: 3 for jit; True or False"),
        (
            lambda: optim.minimize(abs, {"a": 1.0}, bounds=3),
            UsageError,
            "optim.minimize: 3 for bounds; a pair of lowest",
        ),
        (
            lambda: optim.minimize(lambda p: p["a"], {"a": 1.0}, bounds=([0.0], 1.0)),
            UsageError,
            "optim.minimize: bounds of other containers than x0; a pair of lowest and highest values",
        ),
        (
            lambda: optim.minimize(np.sum, np.zeros(2), bounds=(np.zeros(2), np.ones(2))),
            UsageError,
            "optim.minimize: two arrays for the bounds of two numbers; what tells whether they are lowest and highest "
            "values, or a pair for each number, is needed. Pass scipy.optimize.Bounds",
        ),
        (
            lambda: optim.minimize(np.sum, np.zeros(2), bounds=(0.0, np.ones(3))),
            ShapeError,
            r"optim.minimize: bounds of shape \(3,\) for x0 of shape \(2,\); a number or that shape is needed. Build",
        ),
        (
            lambda: optim.root(lambda x: x[:1], [1.0, 2.0]),
            ShapeError,
            "optim.root: 1 equations for 2 unknowns; as many are needed",
        ),
        (lambda: optim.curve_fit(lambda *a: a, [1.0], [1.0]), UsageError, "optim.curve_fit: a model whose parameters"),
        (lambda: optim.sgd("x"), UsageError, "optim.sgd: 'x' for rate; a number, 0.0 or more, is needed"),
        (
            lambda: optim.adam(b1=1.0),
            UsageError,
            "optim.adam: 1.0 for b1; a number, at least 0.0 and below 1.0, is needed",
        ),
        (lambda: optim.clipped(3, 1.0), UsageError, "optim.clipped: 3 for rule; a rule is needed"),
        (lambda: optim.piecewise([1.0], [2]), UsageError, r"optim.piecewise: 1 rates and bounds \[2\]; one bound less"),
        (
            lambda: optim.sgd(0.1)[1]([1.0], optim.sgd(0.1)[0](1.0), 1.0),
            UsageError,
            "optim.sgd: 1 leaves, 1 in the gradients and a state for 1 leaves; gradients and a state of the "
            r"parameters' containers and shapes are needed. Write update\(gradients, state, parameters\)",
        ),
        (lambda: optim.Optimizer([1.0], optim.sgd(0.1)), UsageError, "optim.Optimizer: 1.0 among the parameters; leaf"),
        (
            lambda: optim.Optimizer([wg.tensor(1.0)], optim.sgd(0.1)),
            UsageError,
            "Optimizer: a Tensor that does not require",
        ),
        (lambda: optim.Optimizer([], optim.sgd(0.1)), UsageError, "optim.Optimizer: no parameter; leaf Tensors"),
        (lambda: optim.save(io.BytesIO(), {"a": {1}}), DtypeError, r"optim.save: a value of type set at tree\['a'\];"),
        (lambda: optim.save(io.BytesIO(), np.array([None])), DtypeError, "optim.save: an array of objects; arrays"),
    ],
)
def test_errors(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_what_does_not_fit_into_like() -> None:
    file = io.BytesIO()
    optim.save(file, {"a": np.ones(2)})
    for like, text in (
        (
            {"a": np.ones(3)},
            r"an array of shape \(2,\) and dtype float64 at like\['a'\]; shape \(3,\) and dtype float64",
        ),
        ([1.0, 2.0], "a file with 1 leaves; 2, as many as `like` has, are needed"),
    ):
        file.seek(0)
        with pytest.raises(UsageError, match=text):
            optim.load(file, like=like)


def test_names_of_other_libraries_say_what_is_written_here() -> None:
    with pytest.raises(AttributeError) as error:
        optim.Adam  # noqa: B018 - asking is the test
    assert str(error.value) == (
        "module 'wengert.optim' has no attribute 'Adam'; write Optimizer(parameters, adam(rate))"
    )
    with pytest.raises(AttributeError, match=r"^module 'wengert.optim' has no attribute 'Lookout'$"):
        optim.Lookout  # noqa: B018 - likewise
    with pytest.raises(AttributeError, match=r"'clip_grad_norm_'; write clipped\(rule, norm\)$"):
        optim.clip_grad_norm_  # noqa: B018 - likewise
    with pytest.raises(AttributeError, match=r"'softmax'; it is wengert.nn.functional.softmax$"):
        wg.nn.softmax  # noqa: B018 - likewise
    with pytest.raises(AttributeError, match=r"'init'; write wengert.tensor\(numbers, requires_grad=True\), with"):
        wg.nn.init  # noqa: B018 - likewise
    with pytest.raises(AttributeError, match=r"'PRNGKey'; write key\(seed\)$"):
        wg.random.PRNGKey  # noqa: B018 - likewise
    with pytest.raises(AttributeError, match=r"'save'; write wengert.optim.save\(file, containers\)$"):
        wg.save  # noqa: B018 - likewise
    with pytest.raises(AttributeError) as error:
        wg.nn.Linear  # noqa: B018 - likewise
    assert str(error.value) == (
        "module 'wengert.nn' has no attribute 'Linear'; layers are functions of wengert.nn.functional, on Tensors that "
        "a class of yours holds: write wengert.nn.functional.linear"
    )


@pytest.mark.parametrize("kind", ["dict", "object"])
def test_constraints_with_their_own_jacobian_are_of_a_vector(kind: str) -> None:
    def constraint(jac: Any) -> Any:
        if kind == "dict":
            return {"type": "eq", "fun": lambda x: x[0] - 1.0, "jac": jac}
        return scipy.optimize.NonlinearConstraint(lambda x: x[0] - 1.0, 0.0, 0.0, jac=jac)

    def square(x: Any) -> Any:
        return np.sum(x**2)

    flat = constraint(lambda x: np.eye(1, x.size)[0])
    found = optim.minimize(square, np.full(3, 0.5), method="SLSQP", constraints=[flat])
    np.testing.assert_allclose(found.x, [1.0, 0.0, 0.0], atol=1e-3)
    text = "optim.minimize: a constraint with its own jac; one without is needed where x0 is not one vector. Leave jac "
    with pytest.raises(UsageError, match=re.escape(text + "out, for derivatives are filled in.")):
        optim.minimize(square, np.full((2, 2), 0.5), method="SLSQP", constraints=[flat])
    found = optim.minimize(square, np.full((2, 2), 0.5), method="SLSQP", constraints=[constraint("2-point")])
    np.testing.assert_allclose(found.x, [[1.0, 1.0], [0.0, 0.0]], atol=1e-3)


def test_constraints_may_have_jacobians_of_several_shapes() -> None:
    line = scipy.optimize.LinearConstraint([[1.0, -2.0], [-1.0, -2.0]], [-2.0, -6.0], np.inf)
    product = scipy.optimize.NonlinearConstraint(lambda x: x[0] * x[1], 0.5, 5.0)
    found = optim.minimize(
        lambda x: (x[0] - 1) ** 2 + (x[1] - 2.5) ** 2,
        np.array([2.0, 0.0]),
        method="trust-constr",
        constraints=[line, product],
    )
    np.testing.assert_allclose(found.x, [1.4, 1.7], atol=1e-3)


def test_groups_of_parameters_have_an_optimizer_each() -> None:
    w = wg.tensor([1.0], requires_grad=True)
    with pytest.raises(UsageError) as error:
        optim.Optimizer([{"params": [w], "lr": 0.1}], optim.sgd(0.1))  # type: ignore[list-item]
    assert str(error.value) == (
        "optim.Optimizer: groups of parameters; leaf Tensors that require grad are needed. Make an Optimizer for each, "
        "with a rule of its own."
    )


def test_gradients_are_forgotten_or_become_zeros() -> None:
    w = wg.tensor([1.0], requires_grad=True)
    optimizer = optim.Optimizer([w], optim.sgd(0.1))
    optimizer.zero_grad(set_to_none=False)
    (w * 3.0).sum().backward()
    optimizer.zero_grad(set_to_none=False)
    assert w.grad.tolist() == [0.0]
    optimizer.zero_grad()
    assert w.grad is None


@pytest.mark.parametrize(
    "solve",
    [
        lambda a: scipy.optimize.brentq(lambda x: x**3 - a, 0.0, 5.0),
        lambda a: scipy.optimize.minimize_scalar(lambda x: (x - a) ** 2).x,
        lambda a: scipy.optimize.least_squares(lambda x: x - a, [0.0]).x[0],
    ],
)
def test_solvers_say_how_what_they_find_is_differentiated(solve: Any) -> None:
    for transformation in (wg.grad, wg.jit, lambda f: lambda x: wg.vmap(f)(np.array([x, 2 * x]))):
        with pytest.raises(
            GraphError, match=r"Use wengert\.scipy\.optimize(, where|\.brentq, or wengert\.optim\.root_scalar)"
        ):
            transformation(solve)(2.0)


@pytest.mark.long
def test_what_drivers_find_of_containers_has_derivatives() -> None:
    """By arguments, captured values, in lanes and under `jit`; each gives 2 a + a ** 2."""

    def equations(p: Any, a: Any) -> Any:
        return {"x": p["x"] ** 2 - a**2, "y": p["y"] - 2.0 * p["x"] - a**2 + p["x"]}

    def near(p: Any, a: Any) -> Any:
        return (p["x"] - a) ** 2 + (p["y"] - p["x"] - a**2) ** 2

    def residuals(p: Any, a: Any) -> Any:
        return [p["x"] - a, p["y"] - p["x"] - a**2]

    def model(t: Any, p: Any) -> Any:
        return p["x"] + p["y"] * t

    start, t = {"x": 1.0, "y": 1.0}, np.array([0.0, 1.0, 2.0])
    above = {"type": "ineq", "fun": lambda p, a: p["x"] - a, "args": ()}
    solvers = [
        lambda a: optim.root(equations, start, a).x,
        lambda a: optim.minimize(lambda p: near(p, a), start, options={"gtol": 1e-10}).x,
        lambda a: optim.minimize(near, start, a, bounds=(0.0, 9.0), options={"ftol": 1e-15}).x,
        lambda a: (
            optim.minimize(
                lambda p: near(p, a) + p["x"], start, constraints=[{**above, "args": (a,)}], options={"ftol": 1e-15}
            ).x
        ),
        lambda a: optim.least_squares(residuals, start, a, xtol=1e-14).x,
        lambda a: optim.curve_fit(model, t, a + (a + a**2) * t, start)[0],
    ]

    def total(solve: Any) -> Any:
        return lambda a: solve(a)["x"] + solve(a)["y"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for solve in solvers:
            found = total(solve)
            assert wg.grad(found)(2.0) == pytest.approx(6.0, abs=1e-6)
            assert wg.grad(wg.grad(found))(2.0) == pytest.approx(2.0, abs=1e-5)
            np.testing.assert_allclose(wg.vmap(wg.grad(found))(np.array([1.0, 2.0])), [4.0, 6.0], atol=1e-6)
            assert wg.jit(wg.grad(found))(2.0) == pytest.approx(6.0, abs=1e-6)


def test_a_step_of_newtons_method_has_the_derivative() -> None:
    def cube_root(a: Any) -> Any:
        x = scipy.optimize.brentq(lambda x: x**3 - float(wg.stop_gradient(a)), 0.0, 5.0)
        for _ in range(2):
            x = x - (x**3 - a) / (3 * x**2)
        return x

    assert wg.grad(cube_root)(8.0) == pytest.approx(1 / 12)
    assert wg.grad(wg.grad(cube_root))(8.0) == pytest.approx(-2 / 9 / 32)


def huber(x: Any) -> Any:
    total = 0.0
    for value in x:
        part = 0.5 * (value - 1.0) ** 2
        if abs(value - 1.0) > 0.5:
            part = 0.5 * (abs(value - 1.0) - 0.25)
        total = total + part
    return total


class Loss:
    """An object that is called, and one that has a method."""

    def __call__(self, x: Any) -> Any:
        return huber(x)

    def at(self, x: Any) -> Any:
        return huber(x)


@together("method", ["BFGS", "trust-exact", "trust-ncg", "Powell"])
@together("fun", [huber, Loss(), Loss().at, functools.partial(huber), lambda x: huber(x)])
def test_what_is_minimised_may_branch(fun: Any, method: str) -> None:
    assert np.allclose(optim.minimize(fun, np.array([1.3, 0.8]), method=method).x, 1.0, atol=1e-3)


def test_residuals_equations_constraints_and_models_may_branch() -> None:
    def residuals(x: Any) -> Any:
        if x[0] > 0.5:
            return np.stack([x[0] - 1.0, x[1]])
        return np.stack([x[0] - 1.0, 2.0 * x[1]])

    def model(t: Any, a: Any, b: Any) -> Any:
        if a > 0:
            return a * t + b
        return b * t

    def limit(x: Any) -> Any:
        return x[0] if x[0] > 0.5 else 2.0 * x[0]

    start = np.array([0.9, 0.2])
    assert np.allclose(optim.least_squares(residuals, start).x, [1.0, 0.0])
    assert np.allclose(optim.root(residuals, start).x, [1.0, 0.0])
    assert np.allclose(optim.curve_fit(model, np.arange(4.0), 2.0 * np.arange(4.0) + 1.0)[0], [2.0, 1.0])
    limits = {"type": "ineq", "fun": limit}
    assert np.allclose(optim.minimize(huber, start, method="SLSQP", constraints=limits).x, 1.0, atol=1e-3)


def test_more_of_scipys_settings() -> None:
    t = np.arange(8.0)
    y = 3.0 * t + 1.0
    found = optim.least_squares(lambda x, t, slope=1.0: slope * x[0] * t - y + 1.0, [1.0], (t,), kwargs={"slope": 1.5})
    assert np.allclose(found.x, 2.0)
    holes, places = np.where(t > 5, np.nan, y), np.where(t == 0, np.nan, t)
    for data, where in ((holes, t), (y, places), (holes, places)):
        found, covariance = optim.curve_fit(lambda t, a, b: a * t + b, where, data, nan_policy="omit")
        assert np.allclose(found, [3.0, 1.0])
        assert np.isfinite(covariance).all()
    assert len(optim.curve_fit(lambda t, a, b: a * t + b, t, y, full_output=True)) == 5


@together(
    "call, text",
    [
        (lambda: optim.minimize(rosenbrock, [1.0, 2.0], jac=True), "minimize.*'jac'; write nothing, for derivatives"),
        (lambda: optim.adam(lr=0.1), "adam.*'lr'; write rate="),
        (lambda: optim.adam(0.1, betas=(0.9, 0.99)), "adam.*'betas'; write b1= and b2="),
        (lambda: wg.random.normal(wg.random.key(0), shape=(3,)), "normal.*'shape'; write size="),
        (lambda: wg.vmap(abs, axis_name="i"), "vmap.*'axis_name'; write wengert.vmap of what is before"),
        (lambda: wg.grad(abs, argnum=0), "grad.*'argnum'; write argnums="),
        (lambda: wg.hessian(abs, vectorize=True), "hessian.*'vectorize'; write nothing"),
        (lambda: wg.jit(abs, device="cpu"), "jit.*'device'; write nothing"),
        (lambda: wg.checkpoint(abs, policy=None), "checkpoint.*'policy'; write wengert.checkpoint around"),
        (lambda: wg.custom_rule(abs, nondiff_argnums=(0,)), "custom_rule.*'nondiff_argnums'; write nothing"),
        (lambda: wg.testing.check_grads(abs, 1.0, atol=1.0), "check_grads.*'atol'; write rtol="),
        (lambda: wg.autograd.grad(1.0, 1.0, only_inputs=True), "grad.*'only_inputs'; write nothing"),
    ],
)
def test_parameters_of_other_libraries_say_what_is_written_here(call: Any, text: str) -> None:
    with pytest.raises(TypeError, match=text):
        call()


@pytest.mark.parametrize(
    "rule",
    [
        optim.sgd(optim.linear(0.1, 0.0, 10)),
        optim.momentum(optim.exponential(0.1, 0.5), nesterov=True),
        optim.rmsprop(optim.piecewise([0.1, 0.01], [1])),
        optim.clipped(optim.adam(optim.warmed_up(optim.cosine(0.1, 10), 2)), 0.5),
        optim.adamw(optim.warmed_up(0.1, 2)),
        optim.adagrad(0.1),
        optim.lion(),
    ],
)
def test_rules_and_optimizers_can_be_pickled(rule: optim.Rule) -> None:
    again = pickle.loads(pickle.dumps(rule))
    state = rule.update(3.0, rule.init(1.0), 1.0)
    assert again.update(3.0, again.init(1.0), 1.0) == state
    parameter = wg.tensor([1.0, 2.0], requires_grad=True)
    kept = pickle.loads(pickle.dumps((parameter, optim.Optimizer([parameter], rule))))
    for tensor, optimizer in ((parameter, optim.Optimizer([parameter], rule)), kept):
        np.sum(tensor**2).backward()
        optimizer.step()
    assert np.array_equal(parameter.detach(), kept[0].detach())


@pytest.mark.parametrize(
    ("call", "label"),
    [
        (lambda: optim.root(lambda z: z**2 + 1.0, 0.5 + 1j), "x0"),
        (lambda: optim.minimize(lambda z: abs(z) ** 2, np.array([1j])), "x0"),
        (lambda: optim.least_squares(lambda x: x * (1.0 + 2j), np.ones(2)), r"fun\(x\)"),
        (lambda: optim.least_squares(lambda x: {"a": x, "b": x * 1j}, np.ones(2), jit=False), r"fun\(x\)"),
    ],
)
def test_complex_numbers_are_not_cut(call: Any, label: str) -> None:
    with pytest.raises(DtypeError, match=f"complex numbers in {label}; real ones are needed"):
        call()


@pytest.mark.parametrize("xdata", [[1.0, np.nan], np.array([np.inf, 1.0]), {"t": np.array([1.0, np.nan])}])
def test_points_that_are_not_finite_are_refused_as_scipy_refuses_them(xdata: Any) -> None:
    def model(x: Any, slope: Any) -> Any:
        return slope * np.nan_to_num(x["t"] if isinstance(x, dict) else x, posinf=0.0)

    with pytest.raises(UsageError, match=r"curve_fit: NaN or infinite numbers in xdata; finite ones are needed"):
        optim.curve_fit(model, xdata, np.ones(2))
    assert optim.curve_fit(model, xdata, np.ones(2), check_finite=False)[0] == pytest.approx([1.0])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: optim.minimize(lambda p: p**2, None), "minimize: None for x0; one number or more is needed"),
        (lambda: optim.root(lambda p: p, []), "root: a value of type list for x0"),
        (lambda: optim.root(lambda p: p, np.nan), "root: NaN or infinity among x0; finite .* Begin elsewhere"),
        (lambda: optim.fixed_point(np.cos, [np.inf]), "fixed_point: NaN or infinity among x0; finite"),
        (lambda: optim.minimize(lambda p: (p**2, p), 1.0), "minimize: a function that returned a value of type tuple"),
        (lambda: optim.minimize(lambda p: [p**2], 1.0, method="powell"), "returned a value of type list; one number"),
        (lambda: optim.minimize(lambda p: None, 1.0, jit=False), "minimize: a function that returned None; numbers"),
        (lambda: optim.least_squares(lambda p: None, 1.0), "least_squares: a function that returned None; numbers"),
    ],
)
def test_what_gives_no_numbers_is_refused_by_the_driver(call: Any, text: str) -> None:
    with pytest.raises(UsageError, match=text):
        call()


def test_settings_of_methods_say_where_they_go() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'maxiter'; write options=\{"):
        optim.minimize(lambda x: x**2, 1.0, maxiter=3)  # type: ignore[call-arg]


@pytest.mark.parametrize("name", ["rate", "lr", "learning_rate"])
def test_the_rate_is_not_set_on_an_optimizer(name: str) -> None:
    optimizer = optim.Optimizer([wg.tensor(np.ones(2), requires_grad=True)], optim.sgd(0.1))
    with pytest.raises(UsageError, match="the rule has the rate"):
        setattr(optimizer, name, 0.01)


def test_names_of_pytorch_optimizers_say_what_is_written_here() -> None:
    optimizer = optim.Optimizer([wg.tensor(1.0, requires_grad=True)], optim.sgd(0.1))
    with pytest.raises(AttributeError, match=r"'Optimizer' object has .* 'state_dict'; write optimizer.steps"):
        optimizer.state_dict()  # type: ignore[attr-defined]
    assert not hasattr(optimizer, "param_groups")
    with pytest.raises(AttributeError, match=r"no attribute 'Bounds'; write scipy.optimize's own"):
        optim.Bounds  # type: ignore[attr-defined]  # noqa: B018


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (
            lambda: optim.adam().update(np.ones(3), optim.adam().init(np.ones(1)), np.ones(3)),
            UsageError,
            r"shape \(1,\)",
        ),
        (
            lambda: optim.adam().update(1.0, optim.sgd(0.1).init(1.0), 1.0),
            UsageError,
            "0 arrays for a leaf instead of 2",
        ),
        (lambda: optim.momentum(0.1).update(1.0, optim.adam().init(1.0), 1.0), UsageError, "of another rule"),
        (lambda: optim.adam().init({"w": np.ones(2, int)}), DtypeError, "parameters of dtype int64"),
        (lambda: optim.sgd(0.1).init([3]), DtypeError, "parameters of dtype int64"),
        (
            lambda: optim.curve_fit(lambda x, a: a * x, np.arange(4.0), np.arange(3.0), [1.0]),
            ShapeError,
            "4 values of the model for 3 of ydata",
        ),
        (lambda: optim.Optimizer([wg.tensor(1.0, requires_grad=True)] * 2, optim.sgd(0.1)), UsageError, "there twice"),
        (
            lambda: optim.Optimizer([2 * wg.tensor(1.0, requires_grad=True)], optim.sgd(0.1)),
            UsageError,
            "a Tensor that is no leaf",
        ),
    ],
)
def test_states_of_others_and_integers_are_refused(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


# Functions that write to their arguments, or raise


def written(x: Any, a: Any) -> Any:
    """Have the roots 3 and -1 for a = 2, by way of writes."""
    x -= 1.0
    a *= 2.0
    return x**2 - a


def halved(x: Any, a: Any) -> Any:
    """Have the fixed point 2 for a = 2, by way of writes."""
    x += a
    a *= 2.0
    return x * 0.5


@pytest.mark.parametrize("jit", [True, False])
def test_functions_that_write_to_their_arguments_are_solved(jit: bool) -> None:
    solvers = {
        "newton": lambda x, a: optim.root(written, x, (a,), "newton", jit=jit).x,
        "hybr": lambda x, a: optim.root(written, x, (a,), jit=jit).x,
        "least squares": lambda x, a: optim.least_squares(written, x, (a,), jit=jit).x,
        "bracket": lambda x, a: optim.root_scalar(lambda x, a: written(x, a)[0], (a,), bracket=(2, 4), jit=jit).root,
    }
    iterations = {
        "fixed point": lambda x, a: optim.fixed_point(halved, x, (a,), tol=1e-12, jit=jit).x,
        "anderson": lambda x, a: optim.anderson(halved, x, (a,), tol=1e-12, jit=jit).x,
    }
    for right, some in ((3.0, solvers), (2.0, iterations)):
        for name, solve in some.items():
            x, a = np.array([5.0]), np.array([2.0])
            np.testing.assert_allclose(solve(x, a), right, atol=1e-7, err_msg=name)
            assert (x[0], a[0]) == (5.0, 2.0), name
            if jit:  # an ndarray does not hold what is differentiated
                slope = wg.grad(lambda a, solve=solve, x=x: np.sum(solve(x, a)))(a)
                np.testing.assert_allclose(slope, 0.5 if right == 3.0 else 1.0, rtol=1e-6, err_msg=name)


def test_exceptions_of_functions_come_through_while_solvers_are_traced() -> None:
    calls: list[int] = []

    def once(x: Any) -> Any:
        calls.append(1)
        if len(calls) == 2:
            raise ValueError("no more")
        return x * x - 2.0

    with pytest.raises(ValueError, match="no more"):
        optim.root(once, np.ones(2), method="newton")
    assert len(calls) == 2


@pytest.mark.long
def test_lanes_are_iterated_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(equations, "LEAST_LANES", 2)
    monkeypatch.setattr(equations, "NUMBERS", 4)
    start, a, k = np.ones(2), np.linspace(1.0, 2.0, 10).reshape(5, 2), np.array([0.05, 0.1, 0.15])

    def moved(a: Any, k: Any) -> Any:
        root = optim.root(lambda x: np.sin(x) * a + x**3 - k * x[::-1] - 1.0, start, method="newton", tol=1e-12).x
        return wg.tree.leaves((root, np.sum(root**2)))

    both = wg.jit(wg.vmap(lambda a: wg.vmap(lambda k: (moved(a, k), wg.jacobian(moved)(a, k)))(k)))(a)
    for i, j in np.ndindex(5, 3):
        found = [x[i, j] for x in wg.tree.leaves(both)]
        wanted = wg.tree.leaves((moved(a[i], k[j]), wg.jacobian(moved)(a[i], k[j])))
        for x, y in zip(found, wanted, strict=True):
            np.testing.assert_allclose(x, y, rtol=1e-9)


def chain(x: Any) -> Any:
    return x + x**3 - 0.3 * np.concatenate([x[1:], x[:1]])


def line(x: Any) -> Any:
    return 3.0 * x - np.concatenate([x[1:], x[:1]])


def arrow(x: Any) -> Any:
    return x + x**3 + 0.02 * np.concatenate([np.sum(x[1:] ** 2)[None], x[:1] * x[1:]])


@pytest.mark.long
@together("function, largest", [(chain, 1e9), (line, 1e9), (arrow, 1e9), (arrow, 0.0)])
def test_newtons_method_of_few_elements_is_that_of_all(function: Any, largest: float) -> None:
    a = np.linspace(0.5, 1.5, 40)

    def total(a: Any, most: int) -> Any:
        options = {"maxiter": most}  # what was traced is kept by them
        found = optim.root(lambda x, a: function(x) - a, np.ones(40), a, method="newton", options=options)
        return np.sum(np.sin(found.x))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(attaching, "SPARSE_SYSTEM", 0.0)
        patch.setattr(attaching, "SPARSE_ELEMENT", 1e-9)
        patch.setattr(frontal, "LARGEST", largest)
        patch.setattr(equations, "step_by_elements", step := Mock(wraps=sparse_newton.step_by_elements))
        found = *wg.value_and_grad(total)(a, 40), wg.vmap(total, (0, None))(np.stack([2 * a, a]), 40)[1]
        patch.setattr(sparse_newton, "FEW", 100)
        wanted = wg.value_and_grad(total)(a, 50)
    for x, y in zip(found, (*wanted, wanted[0]), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-9, atol=1e-12)
    assert isinstance(step.call_args.args[1], FrontMatrices) == (function is arrow)


@pytest.mark.long
def test_the_factors_of_newtons_last_step_serve_all_derivatives() -> None:
    at = np.array([0.7, 1.1])

    def total(a: Any, tol: Any, jit: bool = True) -> Any:
        curves = lambda x, a: x + 0.2 * np.tanh(x[::-1]) * a[0] - np.sin(a[1]) + x**3 / 10 - np.arange(3.0)
        return np.sum(np.sin(optim.root(curves, np.zeros(3), (a,), "newton", tol=tol, jit=jit).x))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(equations, "SMALL", 1)
        for tol in (1e-2, None):  # by the first the last step is too long
            found, slowly = (functools.partial(total, tol=tol, jit=jit) for jit in (True, False))
            for slope in (wg.grad(found), wg.jit(wg.grad(found), native=True)):
                np.testing.assert_allclose(slope(at), wg.grad(slowly)(at), rtol=1e-12)
        np.testing.assert_allclose(wg.hessian(found)(at), wg.hessian(slowly)(at), rtol=1e-11)
        graph = wg.jit(wg.grad(found)).lower(at).graph
    assert [e.primitive for e in graph.equations].count(factored.factors) == 1


WEIGHTS = np.array([[0.3, -0.2], [0.1, 0.2]])
STEPS: dict[str, Any] = {
    "fixed point": lambda a, **way: optim.fixed_point(lambda x: np.tanh(WEIGHTS @ x) + a, np.zeros(2), **way).x,
    "anderson": lambda a, **way: optim.anderson(lambda x: np.tanh(WEIGHTS @ x) + a, np.zeros(2), **way).x,
    "newton": lambda a, **way: optim.root(lambda x: x + x**3 - a, np.zeros(2), method="newton", **way).x,
    "scalar": lambda a, **way: optim.root_scalar(lambda x: x + x**3 - np.sum(a), x0=1.0, **way).root,
    "secant": lambda a, **way: optim.root_scalar(lambda x: x + x**3 - np.sum(a), x0=1.0, x1=2.0, **way).root,
}


@pytest.mark.long
@together("name", STEPS)
def test_derivatives_of_all_steps_are_those_of_the_solution(name: str) -> None:
    solve, at = functools.partial(STEPS[name], tol=1e-12), np.array([0.2, 0.7])
    first = wg.jacobian(solve)(at)
    unrolled = functools.partial(solve, differentiate="unroll")
    for slope in (wg.jacobian(unrolled), wg.jacfwd(unrolled), wg.jit(wg.jacobian(unrolled), native=True)):
        np.testing.assert_allclose(slope(at), first, rtol=1e-9, atol=1e-11)
    several = np.stack([at, 2 * at])
    np.testing.assert_allclose(wg.vmap(wg.jacobian(unrolled))(several)[0], first, rtol=1e-9, atol=1e-11)
    second = wg.jacobian(wg.jacobian(solve))(at)
    np.testing.assert_allclose(wg.jacobian(wg.jacfwd(unrolled))(at), second, rtol=1e-8, atol=1e-10)


def test_derivatives_of_one_step_are_those_of_the_step_alone() -> None:
    at = np.array([0.2, 0.7])
    for name, solve in STEPS.items():
        one = functools.partial(solve, tol=1e-12, differentiate="one_step")
        expected = np.eye(2) if name in ("fixed point", "anderson") else wg.jacobian(solve)(at)
        for slope in (wg.jacobian(one), wg.jit(wg.jacfwd(one), native=True)):
            np.testing.assert_allclose(slope(at), expected, rtol=1e-7, atol=1e-9, err_msg=name)


def test_ways_to_differentiate_are_those_of_the_method() -> None:
    cubic = lambda x: x**3 - 2.0
    with pytest.raises(UsageError, match="differentiate='steps'"):
        optim.fixed_point(np.cos, 1.0, differentiate="steps")
    with pytest.raises(UsageError, match=r"differentiate='unroll'.*method='newton'"):
        optim.root(cubic, 1.0, differentiate="unroll")
    with pytest.raises(UsageError, match="differentiate='unroll'"):
        optim.root_scalar(cubic, bracket=(0.0, 2.0), differentiate="unroll")
