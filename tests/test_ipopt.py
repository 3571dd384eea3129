"""Minima by IPOPT."""

import importlib.util
import signal

import numpy as np
import pytest
from scipy import sparse as sp
from scipy.optimize import LinearConstraint

import wengert as wg
from wengert import optim
from wengert.conversion.called_functions import reaches_user
from wengert.errors import GraphError, UsageError
from wengert.scipy.optimize import _ipopt_packages
from wengert.scipy.optimize._interior_point import LagrangianDerivatives, join_functions, limited_function
from wengert.scipy.optimize._ipopt_packages import PACKAGES
from wengert.scipy.optimize._vector_problem import VectorProblem, as_scalar

INSTALLED = [package for package in PACKAGES if importlib.util.find_spec(package) is not None]
needs_ipopt = pytest.mark.skipif(not INSTALLED, reason="neither ipyopt nor cyipopt is installed")


@pytest.fixture(params=INSTALLED or ["none"])
def package(request, monkeypatch):
    """Give each installed package in turn, as if it were the only one."""
    monkeypatch.setattr(_ipopt_packages, "PACKAGES", {request.param: PACKAGES.get(request.param)})


def test_without_the_package_an_error_names_the_extra(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match=r"optim.minimize: .*cyipopt is installed; .*'wengert\[ipopt\]'"):
        optim.minimize(lambda x: np.sum(x**2), np.ones(2), method="ipopt")


@needs_ipopt
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("jit", [True, False])
def test_problem_71_of_hock_and_schittkowski(jit):
    def cost(p):
        return p["x"][0] * p["x"][3] * np.sum(p["x"][:3]) + p["x"][2]

    product = {"type": "ineq", "fun": lambda p, least: np.prod(p["x"]) - least, "args": (25.0,)}
    sphere = optim.constraint(lambda p: np.sum(p["x"] ** 2), 40.0, 40.0)
    seen = []
    found = optim.minimize(
        cost,
        {"x": np.array([1.0, 5.0, 5.0, 1.0])},
        method="ipopt",
        bounds=(1.0, 5.0),
        constraints=[product, sphere],
        callback=lambda p: seen.append(p["x"]),
        jit=jit,
    )
    assert found.success
    assert len(seen) == found.nit + 1 < 12
    np.testing.assert_allclose(found.fun, 17.0140173, rtol=1e-7)  # the value of the collection
    np.testing.assert_allclose(found.x["x"], [1.0, 4.7429994, 3.8211503, 1.3794082], rtol=1e-6)
    rows = wg.grad(lambda p: np.prod(p["x"]))(found.x)["x"], 2.0 * found.x["x"]
    rest = found.jac["x"] - sum(y * row for y, row in zip(found.multipliers, rows, strict=True))
    np.testing.assert_allclose(rest[1:], 0.0, atol=1e-6)  # the first unknown is held by its bound


@needs_ipopt
@pytest.mark.usefixtures("package")
def test_patterns_of_many_unknowns_and_linear_constraints():
    n = 400
    differences = sp.diags_array([-1.0, 1.0], offsets=[0, 1], shape=(n - 1, n), format="csr")
    rising = LinearConstraint(differences, 0.001, np.inf)
    pairs = optim.constraint(lambda x: x[1:] * x[:-1], -np.inf, 4.0)
    target = np.linspace(3.0, 1.0, n)
    for options in (None, {"hessian_approximation": "limited-memory", "maxiter": 300}):
        found = optim.minimize(
            lambda x: np.sum((x - target) ** 2),
            np.ones(n),
            method="ipopt",
            constraints=[rising, pairs],
            options=options,
        )
        assert found.success
        np.testing.assert_allclose(np.diff(found.x), 0.001, atol=1e-6)
        assert np.max(found.x[1:] * found.x[:-1]) < 4.0 + 1e-6


@needs_ipopt
@pytest.mark.usefixtures("package")
def test_what_it_finds_is_differentiated():
    def nearest(p):
        disc = optim.constraint(lambda x: np.sum(x**2), -np.inf, 2.0)
        return optim.minimize(
            lambda x: np.sum((x - p) ** 2), np.ones(2), method="ipopt", constraints=[disc], tol=1e-11
        ).x

    p = np.array([3.0, 4.0])
    wanted = np.sqrt(2.0) * (np.eye(2) / 5.0 - np.outer(p, p) / 125.0)
    np.testing.assert_allclose(wg.jacobian(nearest)(p), wanted, atol=1e-6)
    np.testing.assert_allclose(wg.jacobian(nearest)(p / 10.0), np.eye(2), atol=1e-6)


def test_what_is_planned_serves_other_arguments_of_floats():
    def cost(x, p):
        return np.sum((x - p) ** 4)

    def pairs(x, least):
        return x[1:] * x[:-1] - least

    def places(x, chosen, scale):
        return scale * x[chosen]

    def made(number, chosen):
        given = {"type": "ineq", "fun": places, "args": (chosen, np.full(2, number))}
        problem = VectorProblem("optim.minimize", cost, np.arange(1.0, 5.0), np.full(4, number), True)
        many = [optim.constraint(pairs, 0.0, np.inf, args=number), given]
        found = LagrangianDerivatives(problem, [limited_function(problem, c) for c in many], True)
        rows, columns = found.jacobianstructure()
        full = np.zeros((5, 4))
        full[rows, columns] = found.jacobian(found.start)
        assert len(rows) == 8  # integers choose elements, and so the pattern
        np.testing.assert_array_equal(full[3:], number * np.eye(4)[chosen])
        rows, columns = found.hessianstructure()
        second = found.hessian(found.start, np.zeros(5), 1.0)[rows == columns]
        np.testing.assert_allclose(second, 12.0 * (found.start - number) ** 2)
        np.testing.assert_array_equal(found.constraints(found.start)[:3], np.array([2.0, 6.0, 12.0]) - number)
        return found

    chosen = np.array([3, 0])
    first, second, other = made(2.0, chosen), made(3.0, chosen), made(2.0, np.array([1, 2]))
    assert first.made is second.made
    assert first.made is not other.made


def test_what_is_planned_serves_functions_that_capture_other_numbers():
    def made(number):
        problem = VectorProblem("optim.minimize", lambda x: np.sum((x - number) ** 4), np.arange(1.0, 5.0), (), True)
        pairs = optim.constraint(lambda x: np.array([x[1] * x[0] - number, x[3] * number]), 0.0, np.inf)
        few = [{"type": "ineq", "fun": lambda x, i=i: number * x[i] ** 2} for i in range(4)]
        found = LagrangianDerivatives(problem, [limited_function(problem, c) for c in (pairs, *few)], True)
        first, second = np.zeros((6, 4)), np.zeros((4, 4))
        first[found.jacobianstructure()] = found.jacobian(found.start)
        rows = [[2.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, number], *(2.0 * number * np.diag(found.start))]
        np.testing.assert_allclose(first, rows)
        second[found.hessianstructure()] = found.hessian(found.start, np.array([1.0, 0.0, 0.0, 0.0, 0.0, 1.0]), 1.0)
        curved = np.diag(12.0 * (found.start - number) ** 2 + [0.0, 0.0, 0.0, 2.0 * number])
        np.testing.assert_allclose(second, curved + np.eye(4, k=-1) * [[0.0], [1.0], [0.0], [0.0]])
        return found.made

    made(2.0)
    assert made(3.0) is made(4.0)


def test_objectives_are_evaluated_without_the_constraints_beside_them():
    calls = []
    given = {"type": "ineq", "fun": lambda x: calls.append(x) or x[0]}
    problem = VectorProblem("optim.minimize", lambda x: np.sum(x**2), np.ones(2), (), False)
    derivatives = LagrangianDerivatives(problem, [limited_function(problem, given)], False)
    calls.clear()
    assert derivatives.objective(problem.start) == 2.0
    np.testing.assert_allclose(derivatives.gradient(problem.start), [2.0, 2.0])
    assert not calls


def test_functions_of_the_user_are_seen_however_many_are_joined():
    assert reaches_user(join_functions([lambda x: x] * 5000))
    assert not reaches_user(join_functions([as_scalar] * 5000))


@pytest.mark.parametrize("form", ["dictionary", "constraint"])
def test_arguments_of_constraints_are_differentiated(form):
    def nearest(limit):
        below = {"type": "ineq", "fun": lambda x, p: p - x, "args": (limit,)}
        if form == "constraint":
            below = optim.constraint(lambda x, p: p - x, 0.0, np.inf, args=(limit,))
        return np.sum(optim.minimize(lambda x: np.sum((x - 2.0) ** 2), np.ones(3), method="SLSQP", constraints=below).x)

    np.testing.assert_allclose([nearest(1.5), wg.grad(nearest)(1.5)], [4.5, 3.0], rtol=1e-6)


@needs_ipopt
@pytest.mark.usefixtures("package")
@pytest.mark.parametrize("part", ["value", "derivative", "constraint", "callback"])
def test_exceptions_come_through_at_once(part):
    calls = dict.fromkeys(("value", "derivative", "constraint", "callback"), 0)

    def count(where, found=None):
        calls[where] += 1
        if where == part and calls[where] == 3:
            raise KeyboardInterrupt(where)
        return found

    def power(x):
        return count("value" if isinstance(x, np.ndarray) else "derivative", np.sum(x**4))

    settings = {
        "constraints": [{"type": "ineq", "fun": lambda x: count("constraint", x - 1.0)}],
        "callback": lambda x: count("callback"),
        "jit": False,
    }
    with pytest.raises(KeyboardInterrupt, match=part) as caught:
        optim.minimize(power, np.full(2, 3.0), method="ipopt", **settings)
    assert calls[part] == 3
    assert caught.traceback[-1].name == "count"


@needs_ipopt
@pytest.mark.usefixtures("package")
def test_an_interrupt_between_calls_comes_through(monkeypatch):
    def interrupted(self, x, gradient=LagrangianDerivatives.gradient):
        signal.raise_signal(signal.SIGINT)
        return gradient(self, x)

    monkeypatch.setattr(LagrangianDerivatives, "gradient", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs in the background of a shell ignore it
    try:
        with pytest.raises(KeyboardInterrupt):
            optim.minimize(lambda x: np.sum(x**4), np.full(2, 3.0), method="ipopt")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, before)


@needs_ipopt
@pytest.mark.usefixtures("package")
def test_callbacks_may_end_it_and_options_are_ipopts():
    def stop(x):
        raise StopIteration

    found = optim.minimize(lambda x: np.sum(x**4), np.ones(2), method="ipopt", callback=stop)
    assert not found.success
    assert found.nit == 0
    with pytest.raises(UsageError, match=r"optim.minimize: nothing=1 among options; .* IPOPT"):
        optim.minimize(lambda x: np.sum(x**2), np.ones(2), method="ipopt", options={"nothing": 1})
    own = {"type": "eq", "fun": lambda x: x[0], "jac": lambda x: x}
    with pytest.raises(UsageError, match=r"own jac; .*IPOPT"):
        optim.minimize(lambda x: np.sum(x**2), np.ones(2), method="ipopt", constraints=own)


@needs_ipopt
@pytest.mark.usefixtures("package")
def test_limits_that_are_differentiated_are_told():
    def least(limit):
        product = optim.constraint(lambda x: x[0] * x[1], limit, np.inf)
        return optim.minimize(lambda x: np.sum(x**2), np.array([2.0, 1.5]), method="ipopt", constraints=[product]).fun

    for transformed in (wg.grad(least), wg.jit(least)):
        with pytest.raises(GraphError, match=r"^optim.minimize: limits .* \.detach\(\) first"):
            transformed(1.0)
    np.testing.assert_allclose(least(wg.tensor(1.0)), 2.0, rtol=1e-6)
