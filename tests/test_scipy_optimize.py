"""SciPy's solvers and optimisers, and our own iterations: what they find, and how that is differentiated."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
import scipy.optimize

import wengert as wg
from tests.cases import some_of, together
from wengert import implicit, optim
from wengert.errors import DtypeError, GraphError, NumericalError, ShapeError, UsageError
from wengert.implicit import attaching
from wengert.scipy import optimize
from wengert.scipy.optimize._outer_functions import OUTER
from wengert.scipy.optimize._vector_problem import KEPT
from wengert.transforms.outer_values import OuterValues

# The same number in every mode

Function = Any
TWICE = np.array([1.0, 2.0])
T = np.linspace(0.0, 1.0, 9)
DECAY = np.array([2.9, 2.2, 1.9, 1.3, 1.1, 0.9, 0.7, 0.5, 0.4])
ROWS = np.random.default_rng(1).random((6, 3))
RIGHT = np.array([1.0, -2.0, 3.0, 0.5, 1.0, 0.2])
EXACT = {"xtol": 1e-14, "ftol": 1e-14, "gtol": 1e-14}


def of_root(a: Any) -> Any:
    found = optimize.root(lambda x: x**3 - a * TWICE, TWICE, options={"xtol": 1e-13})
    return np.sum(found.x) + np.sum(found.fun)


def of_arguments(a: Any) -> Any:
    def residuals(x: Any, p: Any) -> Any:
        return [x[0] ** 3 - p["a"], x[1] ** 3 - 2.0 * p["a"]]

    return np.sum(optimize.root(residuals, [1, 2], ({"a": a},), method="krylov", tol=1e-13).x)


def of_a_variable_that_is_set_anew(a: Any) -> Any:
    calls, x = 0, a * TWICE

    def count() -> None:
        nonlocal calls
        calls += 1

    counting = [count]

    @implicit.custom_root(lambda z: z**3 - x)
    def solve() -> Any:
        counting[0]()
        return min(calls, 1) * (np.cbrt(x) if isinstance(x, np.ndarray) else np.exp(np.log(x) / 3.0))

    x = optimize.root(lambda z: z**3 - x, TWICE, options={"xtol": 1e-13}).x
    start, x = x**3, x**3
    x = solve()
    assert calls == 1
    return np.sum(x) + np.sum(start) - 3.0 * a


def cubic(a: Any) -> Any:
    return a ** (1 / 3) * (1.0 + 2.0 ** (1 / 3))


def of_rosenbrock(a: Any) -> Any:
    def value(x: Any, a: Any) -> Any:
        return 100.0 * (x[1] - x[0] ** 2) ** 2 + (a - x[0]) ** 2

    found = optimize.minimize(value, [0.9, 0.8], a, method="trust-exact", options={"gtol": 1e-11})
    return found.x[0] + 3.0 * found.x[1] + found.fun


def at_bounds(a: Any) -> Any:
    def value(x: Any) -> Any:
        return np.sum((x - a * TWICE) ** 2) + x[0] * x[1] * a

    found = optimize.minimize(value, np.zeros(2), bounds=[(0.0, 3.0), (None, a / 2)], options={"ftol": 1e-15})
    return found.x[0] + found.x[1] ** 2 + found.fun


def at_bounds_by_hand(a: Any) -> Any:
    x, y = a - a * a / 4, a / 2
    return x + y**2 + (x - a) ** 2 + (y - 2.0 * a) ** 2 + x * y * a


def on_a_circle(a: Any) -> Any:
    inside = {"type": "ineq", "fun": lambda x, p: [p - x[0] ** 2 - x[1] ** 2], "args": (a,)}
    far = {"type": "ineq", "fun": lambda x: 10.0 - x[0]}
    options = {"ftol": 1e-15}
    found = optimize.minimize(lambda x: x @ TWICE, [0.1, 0.2], constraints=[far, inside], options=options)
    return found.x[0] + found.fun + found.multipliers[1] + found.multipliers[0]


def on_a_circle_by_hand(a: Any) -> Any:
    return -np.sqrt(a / 5.0) - np.sqrt(5.0 * a) + np.sqrt(5.0 / a) / 2.0


def by_equations(a: Any) -> Any:
    line = scipy.optimize.LinearConstraint(np.ones((1, 2)), 1.0, 1.0)
    found = optimize.minimize(
        lambda x: a * x[0] ** 2 + x[1] ** 2, [0.5, 0.5], constraints=line, options={"ftol": 1e-15}
    )
    return found.x[0] + found.multipliers[0]


CASES = {
    "root": (of_root, cubic),
    "root of arguments": (of_arguments, cubic),
    "roots of one number": (
        lambda a: optimize.root_scalar(lambda x: x**3 - a, bracket=(0.0, 9.0)).root
        + optimize.root_scalar(lambda x: x**3 - a, x0=1, method="halley").root,
        lambda a: 2.0 * a ** (1 / 3),
    ),
    "roots by methods": (
        lambda a: optimize.brentq(lambda x, a: x**3 - a, 0.0, 9.0, (a,))
        + np.sum(optimize.newton(lambda x: x**3 - a, TWICE, lambda x: 3.0 * x**2, tol=1e-13))
        + optimize.newton(lambda x: x**3 - a, 1.0)
        + np.sum(optimize.fsolve(lambda x: x**3 - a, TWICE)),
        lambda a: 6.0 * a ** (1 / 3),
    ),
    "fixed point": (
        lambda a: np.sum(optimize.fixed_point(lambda x: (x + a / x) / 2.0, TWICE, xtol=1e-13)),
        lambda a: 2.0 * np.sqrt(a),
    ),
    "a variable that is set anew": (of_a_variable_that_is_set_anew, cubic),
    "rosenbrock": (of_rosenbrock, lambda a: a + 3.0 * a * a),
    "bounds": (at_bounds, at_bounds_by_hand),
    "inequalities": (on_a_circle, on_a_circle_by_hand),
    "equations": (by_equations, lambda a: (1.0 + 2.0 * a) / (1.0 + a)),
    "one unknown": (
        lambda a: optimize.minimize_scalar(lambda x: (x - a) ** 2 + (x - a) ** 4).x,
        lambda a: a,
    ),
    "one unknown at its bound": (
        lambda a: optimize.minimize_scalar(lambda x: (x - 9.0) ** 2, bounds=(0.0, a), options={"xatol": 1e-12}).x,
        lambda a: a,
    ),
    "least squares": (
        lambda a: optimize.least_squares(lambda x, a: [x[0] - a, x[0] - x[1], x[1] ** 2 - a * a], [1.0, a / a],
                                         args=(a,), **EXACT).x.sum(),
        lambda a: 2.0 * a,
    ),
    "nnls": (
        lambda a: optimize.nnls([[a, 0.0], [0.0, a]], [3.0 * a / a, -1.0])[0].sum(),
        lambda a: 3.0 / a,
    ),
    "linear least squares": (
        lambda a: optimize.lsq_linear([[a, 0.0], [0.0, a]], TWICE, (0.0, 0.9)).x.sum(),
        lambda a: 1.0 / a + np.where(a > 2.0 / 0.9, 2.0 / a, 0.9),
    ),
    "linear program": (
        lambda a: optimize.linprog([-1.0, -2.0], [[1.0, 1.0], [1.0, 3.0]], [4.0 * a, 6.0 * a],
                                   bounds=[(0.0, 9.0 * a), (0.0, None)]).fun,
        lambda a: -5.0 * a,
    ),
    "own newton": (
        lambda a: np.sum(optim.root(lambda x: x**3 - a * TWICE, TWICE, method="newton").x),
        cubic,
    ),
    "own roots of one number": (
        lambda a: optim.root_scalar(lambda x, a: x**3 - a, (a,), bracket=(0.0, 9.0)).root
        + optim.root_scalar(lambda x: x**3 - a, x0=1.0, x1=2.0).root
        + optim.root_scalar(lambda x: x**3 - a, x0=1.0).root
        + optim.root_scalar(lambda x: x**3 - a, bracket=(0.0, 9.0), method="bisect").root,
        lambda a: 4.0 * a ** (1 / 3),
    ),
    "own fixed points": (
        lambda a: optim.fixed_point(lambda p: {"x": (p["x"] + a / p["x"]) / 2.0}, {"x": 1.0}).x["x"]
        + np.sum(optim.anderson(lambda x: (x + a / x) / 2.0, TWICE, tol=1e-12).x),
        lambda a: 3.0 * np.sqrt(a),
    ),
}  # fmt: skip
LANES = np.array([1.5, 2.0])
MODES: dict[str, Any] = {
    "value": lambda f: lambda a: f(a),
    "grad": wg.grad,
    "jvp": lambda f: lambda a: wg.jvp(f, (a,), (1.0,)),
    "third": lambda f: wg.grad(wg.grad(wg.grad(f))),
    "forward over reverse": lambda f: lambda a: wg.jvp(wg.grad(f), (a,), (1.0,)),
    "lanes": lambda f: lambda a: wg.vmap(wg.grad(f))(LANES),
    "jit": lambda f: wg.jit(wg.value_and_grad(f)),
    "grad of jit": lambda f: wg.grad(wg.jit(f)),
    "lanes of jit": lambda f: lambda a: wg.jit(wg.vmap(wg.grad(f)))(LANES),
}


@together("case, mode", some_of([(c, m) for c in CASES for m in MODES], "solutions"))
def test_solutions_have_the_derivatives_of_their_equations(case: str, mode: str) -> None:
    function, by_hand = CASES[case]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that SciPy is called lane by lane, and by Python in graphs
        found = MODES[mode](function)(2.0)
    tolerance = 1e-6 if case.startswith("one unknown") else 3e-8
    np.testing.assert_allclose(np.ravel(found), np.ravel(MODES[mode](by_hand)(2.0)), rtol=tolerance, atol=tolerance)


# Least squares, and what has no formula


def difference(function: Function, a: float, h: float = 1e-3) -> Any:
    far, near = function(a + 2 * h) - function(a - 2 * h), function(a + h) - function(a - h)
    return (8.0 * near - far) / (12.0 * h)


def fitted(a: Any, **options: Any) -> Any:
    data = a * DECAY + 0.1 * a**2 * T
    found, covariance = optimize.curve_fit(lambda t, A, k: A * np.exp(-k * t), T, data, [6.0, 2.0], **options, **EXACT)
    return found[0] + 2.0 * found[1] + np.sum(covariance * np.array([[1.0, 2.0], [3.0, 4.0]]))


def robust(a: Any, loss: Any = "linear") -> Any:
    def residuals(p: Any, scale: Any) -> Any:
        return p[0] * np.exp(-p[1] * T) - scale * DECAY + a * T**3

    bounds = (np.stack([0.0 * a, 0.0 * a]), np.array([np.inf, 1.0]))
    kwargs = {"scale": a}
    found = optimize.least_squares(residuals, [6.0, 0.5], bounds=bounds, loss=loss, kwargs=kwargs, f_scale=0.3, **EXACT)
    return found.x[0] + found.cost + np.sum(found.fun**2)


def of_vertices(a: Any) -> Any:
    found = optimize.linprog(
        -a * TWICE, np.array([[1.0, 1.0], [1.0, 3.0]]) * (1.0 + a), np.stack([4.0 + a, 6.0 + a * a]), bounds=(0, 9)
    )
    return found.fun + np.sum(found.x) + found.ineqlin.marginals @ TWICE + np.sum(found.slack)


def fitted_by_newton(a: Any, sigma: Any = None, absolute_sigma: bool = False) -> Any:
    """Return what `fitted` does, of a root of the gradient, which is exact to the last digits."""
    factor = np.eye(9) if sigma is None else np.linalg.cholesky(sigma) if np.ndim(sigma) == 2 else np.diag(sigma)

    def residuals(p: Any) -> Any:
        return np.linalg.solve(factor, p[0] * np.exp(-p[1] * T) - a * DECAY - 0.1 * a**2 * T)

    p = optim.root(wg.grad(lambda p: np.sum(residuals(p) ** 2)), np.array([6.0, 2.0]), method="newton").x
    slope = wg.jacobian(residuals)(p)
    covariance = np.linalg.inv(slope.T @ slope) * (1.0 if absolute_sigma else np.sum(residuals(p) ** 2) / 7.0)
    return p[0] + 2.0 * p[1] + np.sum(covariance * np.array([[1.0, 2.0], [3.0, 4.0]]))


def test_functions_decide_by_values() -> None:
    def value(x: Any, a: Any) -> Any:
        return np.sum((x - a) ** 2) if x[0] < 50.0 else np.sum(x)

    def inside(x: Any, a: Any) -> Any:
        return a - x[0] - x[1] if x[0] < 50.0 else x[0]

    def model(t: Any, p: Any) -> Any:
        return p**3 * t if p < 50.0 else t

    def both(a: Any) -> Any:
        limits = {"type": "ineq", "fun": inside, "args": (a,)}
        found = optimize.minimize(value, np.zeros(2), (2.0 * a,), constraints=limits, options={"ftol": 1e-15}).x
        zero = optimize.root(lambda x, a: x - a if x[0] < 50.0 * a else x, np.ones(1), (a,)).fun[0]
        zero = zero + optimize.root(lambda x: x - a if a > 0.0 else x, np.ones(1)).fun[0]
        return zero + found[0] + optimize.curve_fit(model, T, a * T, [1.0], ftol=1e-14, xtol=1e-14)[0][0]

    assert wg.vmap(wg.grad(both))(np.array([2.0]))[0] == pytest.approx(0.5 + 2.0 ** (-2 / 3) / 3.0)


def test_what_differentiates_minima_is_traced_for_all_functions_of_one_code() -> None:
    factor = [2.0]

    def nearest(a: Any, c: Any) -> Any:
        value = lambda x: np.sum((x - factor[0] * a * c) ** 2)
        return np.sum(optimize.minimize(value, np.zeros(2), bounds=[(-np.inf, a)] * 2).x)

    with patch.object(attaching, "trace_closing", side_effect=attaching.trace_closing) as trace:
        for i in range(9):
            factor[0] = 3.0 if i == 8 else 2.0
            assert wg.grad(nearest)(1.0 + i, np.array([i / 40, 5.0])) == pytest.approx(factor[0] * i / 40 + 1.0)
            assert trace.call_count <= (9 if i == 8 else 7)


@together(
    "options",
    [
        lambda a: {},
        lambda a: {"sigma": 1.0 + a * T},
        lambda a: {"sigma": np.diag(1.0 + T) + 0.1 * a, "absolute_sigma": True},
    ],
)
def test_fits_and_their_covariance(options: Any) -> None:
    found = wg.grad(lambda a: fitted(a, **options(a)))(2.0)
    np.testing.assert_allclose(found, difference(lambda a: fitted_by_newton(a, **options(a)), 2.0), rtol=1e-8)


@together(
    "function, at",
    [
        (robust, 2.0),
        (lambda a: robust(a, "soft_l1"), 2.0),
        (lambda a: robust(a, "huber"), 2.0),
        (lambda a: (lambda x, norm: x @ np.arange(3.0) + norm)(*optimize.nnls(ROWS + a, RIGHT)), 0.1),
        (lambda a: optimize.lsq_linear(ROWS * a, RIGHT + a, ([-1.0, -0.2, 0.0], [1.0, 0.3, 5.0])).cost, 2.0),
        (of_vertices, 0.5),
    ],
)
def test_derivatives_agree_with_differences(function: Function, at: float) -> None:
    np.testing.assert_allclose(wg.grad(function)(at), difference(function, at), rtol=1e-7, atol=1e-8)
    np.testing.assert_allclose(wg.grad(wg.grad(function))(at), difference(wg.grad(function), at), rtol=1e-6, atol=1e-6)


def test_hyperparameters_of_ridge_and_lasso() -> None:
    """The derivative of the solution by the weight of the penalty, in closed form."""
    gram = ROWS.T @ ROWS

    def ridge(weight: Any) -> Any:
        return optimize.minimize(
            lambda w: np.sum((ROWS @ w - RIGHT) ** 2) + weight * np.sum(w**2), np.zeros(3), options={"gtol": 1e-11}
        ).x

    solution = np.linalg.solve(gram + 0.5 * np.eye(3), ROWS.T @ RIGHT)
    np.testing.assert_allclose(wg.jacobian(ridge)(0.5), -np.linalg.solve(gram + 0.5 * np.eye(3), solution), atol=1e-8)

    def lasso(weight: Any) -> Any:  # parts of either sign, which are not negative
        def value(parts: Any) -> Any:
            return 0.5 * np.sum((ROWS @ (parts[:3] - parts[3:]) - RIGHT) ** 2) + weight * np.sum(parts)

        found = optimize.minimize(
            value, np.full(6, 0.1), bounds=[(0.0, None)] * 6, options={"ftol": 0.0, "gtol": 1e-12}
        )
        return found.x[:3] - found.x[3:]

    found = lasso(0.8)
    active = found != 0.0
    by_hand = np.zeros(3)
    by_hand[active] = -np.linalg.solve(gram[np.ix_(active, active)], np.sign(found[active]))
    assert 0 < active.sum() < 3
    np.testing.assert_allclose(wg.jacobian(lasso)(0.8), by_hand, atol=1e-7)


# SciPy's own results


def plain(result: Any) -> dict[str, Any]:
    return {key: value for key, value in result.items() if key not in ("nfev", "njev", "message", "execution_time")}


@together(
    "call",
    [
        lambda m: m.root(lambda x: x**3 - TWICE, [1, 2]),
        lambda m: m.root(lambda x: x - 0.5, 1),
        lambda m: m.root(lambda x: x - 0.5, [[1.0, 2.0]], method="broyden1"),
        lambda m: m.root(lambda x: x - 0.5, []),
        lambda m: m.root(lambda x, a: (x**2 + a, np.diag(2.0 * x)), [1.0], 2.0, jac=True),
        lambda m: m.root_scalar(lambda x: x - 1.0, x0=0.0, x1=3.0),
        lambda m: m.minimize(lambda x: np.sum((x - 0.5) ** 2), 1, method="Nelder-Mead"),
        lambda m: m.minimize(lambda x: (np.sum(x**2), 2.0 * x), [1, 2], jac=True),
        lambda m: m.minimize_scalar(lambda x: (x - 1.0) ** 2, bounds=(0, 3)),
        lambda m: m.lsq_linear(ROWS, RIGHT),
        lambda m: m.linprog([1.0, 2.0], [[-1.0, -1.0]], [-1.0]),
    ],
)
def test_results_are_scipys(call: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        own, theirs = call(optimize), call(scipy.optimize)
    assert type(own) is type(theirs)
    assert plain(own).keys() == plain(theirs).keys()
    assert np.shape(own.get("fun")) == np.shape(theirs.get("fun"))
    np.testing.assert_allclose(own.get("x", own.get("root")), theirs.get("x", theirs.get("root")), atol=1e-7)


@together("name", ["bisect", "brenth", "brentq", "ridder"])
def test_methods_for_an_interval_return_and_raise_what_scipys_do(name: str) -> None:
    own, theirs = getattr(optimize, name), getattr(scipy.optimize, name)
    assert own(np.cos, 0.0, 2.0) == theirs(np.cos, 0.0, 2.0)
    assert plain(own(np.cos, 0.0, 2.0, full_output=True)[1]) == plain(theirs(np.cos, 0.0, 2.0, full_output=True)[1])
    for call, error in (((np.cos, 0.0, 2.0, (), 2e-12, 1e-15, 2), RuntimeError), ((np.cos, 0.0, 1.0), ValueError)):
        for function in (own, theirs):
            with pytest.raises(error, match=r"Failed to converge after 2 iterations|must have different signs"):
                function(*call)
    for function in (own, theirs):
        with pytest.raises(ValueError, match="The function value at x=nan is NaN; solver cannot continue"):
            function(np.cos, np.nan, 2.0)


CUBE = (lambda x, a: x**3 - a, lambda x, _a: 3.0 * x**2, lambda x, _a: 6.0 * x)


@together(
    "start, slopes",
    [([1.0], {}), (np.ones((1, 1)), {"fprime": CUBE[1]}), ([1.0], {"fprime": CUBE[1], "fprime2": CUBE[2]})],
)
def test_newton_takes_one_element_for_a_number_as_scipys_does(start: Any, slopes: dict[str, Any]) -> None:
    options = {"x1": np.full(np.shape(start), 1.5), "full_output": True, **slopes}
    own, theirs = (o.newton(CUBE[0], start, args=(8.0,), **options) for o in (optimize, scipy.optimize))
    assert repr(own) == repr(theirs)
    found = wg.jacobian(lambda a: optimize.newton(CUBE[0], start, args=(a,), **slopes))(8.0)
    np.testing.assert_allclose(found, np.full(np.shape(start), 1 / 12), rtol=1e-9)


def test_derivatives_of_a_root_evaluate_nothing_at_zero() -> None:
    assert math.isclose(wg.grad(lambda a: optimize.newton(lambda x: 1.0 / x - a, 0.4))(2.0), -0.25)


@together("start", [1.0 + 1.0j, np.array([1.0 + 1.0j, 2.0j])])
def test_complex_roots_are_scipys_and_refused_by_transformations(start: Any) -> None:
    for slopes in ({}, {"fprime": CUBE[1]}):
        own, theirs = (o.newton(CUBE[0], start, args=(8.0,), **slopes) for o in (optimize, scipy.optimize))
        np.testing.assert_allclose(own, theirs, rtol=1e-12)
    found = optimize.root_scalar(CUBE[0], (8.0,), x0=1.0 + 1.0j, method="halley").root
    np.testing.assert_allclose(found**3, 8.0, rtol=1e-12)
    with pytest.raises(DtypeError, match=r"a complex solution; real numbers are needed by transformations\. Solve for"):
        wg.vmap(lambda a: optimize.newton(CUBE[0], start, CUBE[1], args=(a,)))(np.array([8.0]))


def test_newton_and_fsolve_return_what_scipys_do() -> None:
    start = np.array([1.0, 2.0])
    for own, theirs in zip(
        optimize.newton(np.sin, start, full_output=True),
        scipy.optimize.newton(np.sin, start, full_output=True),
        strict=True,
    ):
        np.testing.assert_array_equal(own, theirs)
    solved, report, success, message = optimize.fsolve(np.cos, start, full_output=True)
    want, expected, *rest = scipy.optimize.fsolve(np.cos, start, full_output=True)
    np.testing.assert_allclose(solved, want, rtol=1e-12)
    assert expected.keys() <= report.keys()
    assert [success, message] == rest
    with pytest.warns(RuntimeWarning, match="not making good progress"):
        optimize.fsolve(lambda x: x**2 + 1.0, [0.5])


def test_curve_fit_returns_what_scipy_does() -> None:
    data = 3.0 * np.exp(-2.0 * T)

    def model(t: Any, height: Any, rate: Any) -> Any:
        return height * np.exp(-rate * t)

    own = optimize.curve_fit(model, T, data + 0.01 * np.cos(9 * T), full_output=True)
    theirs = scipy.optimize.curve_fit(model, T, data + 0.01 * np.cos(9 * T), full_output=True)
    assert len(own) == len(theirs) == 5
    np.testing.assert_allclose(own[1], theirs[1], rtol=1e-5)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"):
        optimize.curve_fit(model, T, data, maxfev=2)
    with pytest.raises(UsageError, match="nan_policy for a fit in a transformation; a fit without is needed"):
        wg.grad(lambda a: optimize.curve_fit(model, T, a * data, nan_policy="omit")[0][0])(1.0)


def test_results_are_scipys_on_a_tape_and_of_plain_tensors() -> None:
    weight = wg.tensor([2.0, 3.0], requires_grad=True)
    found = optimize.minimize(lambda x: np.sum((x - weight) ** 2), [1.0, 2.0])
    assert "terminated successfully" in found.message
    found.x.sum().backward()
    np.testing.assert_allclose(weight.grad, 1.0)
    plain_part = wg.tensor([8.0, 1.0])[0]
    assert type(optimize.root(lambda x, a: x**3 - a, 1.0, plain_part).x) is np.ndarray
    assert wg.grad(lambda a: optimize.root(lambda x: x**3 - 8.0, a).x[0])(1.5) == 0.0


# What has no derivative


def unbounded(a: Any) -> Any:
    return optimize.root(lambda x: x**2 + a, 1.0).x[0]


@together(
    "function, text",
    [
        (unbounded, r"scipy.optimize.root: a solution that misses its equations"),
        (lambda a: optim.root(lambda x: x**2 + a, 1.0, method="newton").x, r"optim.root: .* that misses its equations"),
        (
            lambda a: optimize.root(lambda x: (x[0] + x[1] - a) * np.array([1.0, 2.0]), [1.0, 1.0], method="lm").x[0],
            r"Jacobian is singular",
        ),
        (lambda a: optimize.minimize(lambda x: a * (x[0] - x[1]) ** 2, [1.0, 1.0]).x[0], r"Jacobian is singular"),
    ],
)
def test_where_there_is_no_derivative_there_is_an_error(function: Function, text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for transformed in (wg.grad(function), wg.jit(wg.grad(function))):
            with pytest.raises(NumericalError, match=text):
                transformed(1.0)


def test_weakly_active_bounds_are_named() -> None:
    def touching(a: Any) -> Any:
        return optimize.minimize(lambda x: np.sum((x - a) ** 2), [0.5, 0.5], bounds=[(0.0, 1.0), (0.0, 3.0)]).x

    with pytest.warns(UserWarning, match=r"minimize: weakly active at the solution: x\[0\] at its upper bound\."):
        found = wg.jacobian(touching)(1.0)
    np.testing.assert_allclose(found, 1.0, atol=1e-7)


DEPENDENT = np.array([[1.0, 1.0, 0.0], [0.0, 1.0, -1.0], [2.0, 2.0, 0.0], [1.0, 3.0, -2.0]])


@together("kinds", [(), (1,)])
def test_limits_that_follow_from_others_are_left_out(kinds: tuple[int, ...]) -> None:
    """Of four that are all active two are independent; those of `kinds` are equations."""
    many = [("eq" if i in kinds else "ineq", row) for i, row in enumerate(DEPENDENT)]

    def moved(a: Any, c: Any) -> Any:
        limits = [{"type": kind, "fun": lambda x, row=row: row @ c - row @ x} for kind, row in many]
        return optimize.minimize(lambda x: np.sum((x - a) ** 2), np.zeros(3), constraints=limits, tol=1e-10).x

    c, free = np.array([0.5, -1.0, 0.3]), scipy.linalg.null_space(DEPENDENT)
    left = free @ free.T
    with pytest.warns(UserWarning, match=r"limits that follow from others at the solution: constraint \d, constraint"):
        by_a, by_c = wg.jacobian(moved, argnums=(0, 1))(c + DEPENDENT.T @ np.array([0.5, 0.4, 0.3, 0.2]), c)
    np.testing.assert_allclose(by_a, left, atol=1e-5)
    np.testing.assert_allclose(by_c, np.eye(3) - left, atol=1e-5)


@together(
    "call, error, text",
    [
        (
            lambda: optimize.minimize(np.sum, [1.0], bounds=[(0, 1, 2)]),
            UsageError,
            r"a pair \(lowest, highest\) for each",
        ),
        (lambda: optimize.minimize(np.sum, [1.0], constraints={"type": "le"}), UsageError, "a constraint without them"),
        (lambda: optimize.minimize(np.sum, [1.0], constraints=[3.0]), UsageError, "3.0 for a constraint"),
        (
            lambda: optimize.least_squares(lambda x: x, [1.0], bounds=(1, 2, 3)),
            UsageError,
            "a pair of lowest and highest",
        ),
        (lambda: optimize.curve_fit(lambda *p: p[0], T, T), UsageError, "whose parameters cannot be counted"),
        (lambda: optim.root(lambda x: x[:1], [1.0, 2.0], method="newton"), ShapeError, "1 equations for 2 unknowns"),
        (lambda: optim.constraint(np.sin, [0.0, 0.0], [1.0, np.nan]), UsageError, r"limits 0.0 and nan of values\[1\]"),
        (lambda: optim.minimize(np.sum, [1.0], bounds=[(2.0, 1.0)]), UsageError, r"limits 2.0 and 1.0 of x\[0\]"),
        (lambda: optim.root(np.sin, [1.0], method="newton", tol=np.nan), UsageError, "tol=nan; 0 or more"),
        (lambda: optim.root_scalar(np.sin), UsageError, "no x0 for method 'newton'; where to start is needed"),
        (
            lambda: optim.root_scalar(lambda x: x**2 + 2.0, bracket=(0.0, 2.0)),
            UsageError,
            "is 2 and 6 at the ends",
        ),
        (lambda: optim.root_scalar(np.sin, bracket=(-np.inf, np.inf)), UsageError, "NaN or infinity among the ends"),
        (lambda: optim.root_scalar(np.sin, method="x"), UsageError, "one of bisect, brentq, newton, secant"),
        (lambda: optim.fixed_point(lambda p: [p], 1.0), UsageError, "the containers of x0 are needed"),
        (lambda: optim.anderson(np.cos, 1.0, memory=0), UsageError, "1 or more"),
    ],
)
def test_refusals(call: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        call()


def test_systems_without_columns_have_a_solution_without_numbers() -> None:
    nothing = np.zeros((2, 0))
    assert optimize.nnls(nothing, TWICE)[1] == np.linalg.norm(TWICE)
    np.testing.assert_allclose(wg.grad(lambda b: optimize.nnls(nothing, b)[1])(TWICE), TWICE / np.linalg.norm(TWICE))
    assert wg.grad(lambda b: np.sum(optimize.lsq_linear(nothing, b).x))(TWICE).tolist() == [0.0, 0.0]


def test_iterations_that_do_not_converge_say_so() -> None:
    found = optim.fixed_point(lambda x: 2.0 * x, 1.0, maxiter=5)
    assert (found.success, found.nit) == (False, 5)
    assert "did not converge" in str(found.message) or "before they converged" in found.message
    with np.errstate(all="ignore"):
        assert not optim.root_scalar(lambda x: x**2 + 1.0, x0=1.0).converged
        bracketed = wg.vmap(lambda a: optim.root_scalar(lambda x: x**2 + a, bracket=(0.0, 1.0)).converged)
        np.testing.assert_array_equal(bracketed(np.array([1.0, -0.5])), [False, True])
    assert optim.root(lambda x: x**2 - 2.0, np.float32(1.0), method="newton").x.dtype == np.float32
    singular = optim.root(lambda x: np.stack([x[0], x[0]]), np.ones(2), method="newton")
    assert not singular.success
    assert "the Jacobian is singular" in singular.message
    lanes = lambda a: optim.root(lambda x: np.stack([x[0] - 1.0, a * x[1] - 2.0]), np.zeros(2), method="newton")
    found = wg.vmap(lambda a: (lanes(a).x, lanes(a).success))(np.array([2.0, 0.0, 4.0]))
    np.testing.assert_array_equal(found[1], [True, False, True])
    np.testing.assert_allclose(found[0][[0, 2]], [[1.0, 1.0], [1.0, 0.5]])
    assert optim.anderson(lambda x: 0.5 * np.cos(x), np.ones(3, "f")).success


def opaque(x: Any) -> float:
    return float(sum((math.cosh(float(v)) + i * float(v)) for i, v in enumerate(x)))


def test_methods_without_derivatives_take_any_function() -> None:
    for method in ("Nelder-Mead", "Powell", "COBYLA", "cobyqa"):
        at_least = {"type": "ineq", "fun": lambda x: np.array([float(x[0]) - 0.5])}
        many = () if method[0] in "NP" else at_least
        found = optimize.minimize(opaque, np.array([0.6, 0.1]), method=method, constraints=many)
        np.testing.assert_allclose(found.x, [0.5 if many else 0.0, -np.arcsinh(1.0)], atol=1e-3)
    found = optimize.least_squares(lambda x: np.array([math.sinh(v) for v in x]), [1.0, 2.0], jac="2-point")
    np.testing.assert_allclose(found.x, 0.0, atol=1e-6)


def rosenbrock(x: Any, a: Any) -> Any:
    return (a - x[0]) ** 2 + 100.0 * (x[1] - x[0] ** 2) ** 2


@together(
    "function",
    [
        lambda a: optimize.minimize(rosenbrock, [-1.2, 1.0], (a,), options={"maxiter": 25}).x,
        lambda a: (
            optimize.least_squares(
                lambda x: np.stack([a - x[0], 10.0 * (x[1] - x[0] ** 2)]), [-1.2, 1.0], max_nfev=12
            ).x
        ),
        lambda a: optimize.root(lambda x: x**3 - a, [9.0, 9.0], options={"maxfev": 9}).x,
        lambda a: optim.root(lambda x: x**3 - a, np.full(2, 9.0), method="newton", options={"maxiter": 6}).x,
        lambda a: optim.fixed_point(lambda x: x / 2 + a, 0.0, tol=1e-12, maxiter=29).x,  # it misses 1e-9
    ],
)
def test_solvers_that_gave_up_have_values_and_no_derivatives(function: Function) -> None:
    assert np.all(np.isfinite(function(1.0)))
    slope = wg.jacobian(function)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for transformed, at in ((slope, 1.0), (wg.vmap(slope), np.ones(1)), (wg.jit(slope), 1.0)):
            with pytest.raises(NumericalError, match=r"gave up \(success is False\); at most 1.0e-03 is needed"):
                transformed(at)


# What was traced before

LEVEL = 2.0


def test_what_was_traced_is_used_again_as_long_as_nothing_it_reads_has_changed() -> None:
    global LEVEL
    held = np.array([3.0])
    scale = 1.0

    def residual(x: Any) -> Any:
        return scale * x - LEVEL * held

    def found() -> float:
        return float(optim.root(residual, np.ones(1), method="newton").x[0])

    KEPT.known.clear()
    assert found() == found() == 6.0
    assert len(KEPT.known) == 1
    held[0] = 4.0
    assert found() == 8.0
    LEVEL = 3.0
    assert found() == 12.0
    scale = 2.0
    assert found() == 6.0
    LEVEL = 2.0


def test_what_is_large_or_nobody_can_tell_is_traced_anew() -> None:
    rows = (row for row in range(3))

    def found(function: Any) -> int:
        KEPT.known.clear()
        optim.root(function, np.ones(1), method="newton")
        return len(KEPT.known)

    assert found(lambda x: x - (rows is None)) == 0
    assert found(lambda x: x - BIG[0]) == 0
    assert found(lambda x: np.sin(x) - LEVEL / 8) == 1


def test_wrappers_of_the_library_are_known_by_what_they_are_of() -> None:
    def residual(x: Any, kind: str, scale: float) -> Any:
        return x - scale if kind == "shift" else x

    KEPT.known.clear()
    for _ in range(2):
        assert optim.root(residual, np.ones(1), args=("shift", 3.0), method="newton").x[0] == 3.0
    assert len(KEPT.known) == 1

    def nearest(a: Any) -> Any:
        room = optim.constraint(lambda p, a: p["x"] - a, 0.0, np.inf, args=(a,))
        return optim.minimize(lambda p, a: np.sum((p["x"] + a) ** 2), {"x": np.ones(2)}, (a,), constraints=room).x["x"]

    counts = []
    for k in range(2):
        np.testing.assert_allclose(wg.jacobian(nearest)(np.arange(1.0, 3.0) + k), np.eye(2), atol=1e-6)
        counts.append(len(KEPT.known))
    assert counts[0] == counts[1]
    with_tensor = [OuterValues([[wg.tensor([1.0])]], False, by_identity=True).key for _ in range(2)]
    assert with_tensor[0] != with_tensor[1]  # others may be written to


def test_functions_made_anew_share_what_was_traced_of_one() -> None:
    def solved(a: Any, power: float, solve: Function) -> Any:
        held = {"a": [a, power]}

        def residual(x: Any) -> Any:
            if np.sum(x) < -1e9:
                return x
            return x ** held["a"][1] - held["a"][0] * LEVEL / 2.0

        return solve(residual)

    ways = (
        lambda f: optim.root(lambda x: f(x), np.ones(2), tol=1e-12, method="lm").x,
        lambda f: optimize.minimize(lambda x: np.sum(f(x) ** 2), np.ones(2), method="trust-exact").x,
    )
    for solve in ways:
        KEPT.known.clear(), OUTER.known.clear()
        for a in (2.0, 3.0, 4.0):
            np.testing.assert_allclose(solved(a, 2.0 + a / 4.0, solve), a ** (1 / (2.0 + a / 4.0)), rtol=1e-6)
        assert (len(KEPT.known), len(OUTER.known)) == (1, 1)
    slopes = [wg.grad(lambda a: np.sum(solved(a, 2.0, ways[0])))(a) for a in (4.0, 9.0)]
    np.testing.assert_allclose(slopes, [0.5, 1 / 3])

    def repeated(count: float) -> Any:  # looks at what it captures
        return optim.root(lambda x: x - sum([2.0] * int(count)), np.ones(1)).x

    assert [repeated(count)[0] for count in (1.0, 2.0, 3.0, 1.0)] == [2.0, 4.0, 6.0, 2.0]


BIG = np.zeros(5000)


@pytest.mark.parametrize(("size", "unit"), [(1.0, 1.0), (1e-9, 1.0), (1e3, 1.0), (1.0, 1e-6), (1e-9, 1e-4), (1.0, 1e4)])
def test_active_constraints_are_those_of_the_scaled_problem(size: float, unit: float) -> None:
    def nearest(h: Any) -> Any:
        limits = {"type": "ineq", "fun": lambda x: (h - np.stack([x[0], x[1], x[0] + x[1]])) / unit}
        cost = lambda x: size * np.sum((x / unit - np.array([5.0, 4.0])) ** 2)
        options = {"ftol": 1e-14 * size}
        return optimize.minimize(cost, np.zeros(2), method="SLSQP", constraints=[limits], options=options).x

    found = wg.jacrev(nearest)(np.array([1.0, 1.0, 1.5]) * unit)
    np.testing.assert_allclose(found, [[1.0, 0.0, 0.0], [-1.0, 0.0, 1.0]], atol=1e-7)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*is called by Python")
def test_solvers_within_equations_may_have_left_views_of_values_that_are_gone() -> None:
    """A solver that has been traced is looked through when it is traced again."""

    def loss(x: Any) -> Any:
        inner = lambda z: optimize.least_squares(lambda y: np.stack([2 * y[0] - z[0]]), np.zeros(1)).x

        def equations(z: Any) -> Any:
            z = np.reshape(z, (-1,))
            return z - x - 0.1 * inner(z)

        return np.sum(optimize.root(equations, np.ones(1), tol=1e-12).x ** 2)

    x = np.array([0.6])
    loss(x)
    np.testing.assert_allclose(wg.jit(loss)(x), (0.6 / 0.95) ** 2)
    np.testing.assert_allclose(wg.jacrev(wg.jacrev(loss))(x), [[2 / 0.95**2]], rtol=1e-7)


class Well:
    """A parameter that a method reads, one that another reads, and a log that none does."""

    def __init__(self) -> None:
        self.depth, self.slope, self.log = 1.0, 1.0, [0.0]

    def residual(self, x: Any, a: Any) -> Any:
        return x**3 - self.scaled(a)

    def scaled(self, a: Any) -> Any:
        return self.depth * a


def change_list(held: Any) -> None:
    held[0] = 8.0


def change_depth(well: Well) -> None:
    well.depth = 8.0


CAPTURES: dict[str, tuple[Callable[[], Any], Callable[[Any, Any, Any], Any], Callable[[Any], None]]] = {
    "list": (lambda: [1.0], lambda held, x, a: x**3 - held[0] * a, change_list),
    "ndarray": (lambda: np.ones(1), lambda held, x, a: x**3 - held[0] * a, change_list),
    "dict": (lambda: {0: 1.0}, lambda held, x, a: x**3 - held[0] * a, change_list),
    "object": (Well, lambda well, x, a: well.residual(x, a), change_depth),
}
AROUND: dict[str, Callable[[Callable[[Any], Any], Any], Any]] = {
    "once": lambda find, a: find(a),
    "branch": lambda find, a: wg.cond(a > 0.0, lambda: find(a), lambda: 0.0 * a),
    "loop": lambda find, a: wg.scan(lambda c, _: (find(a), None), 0.0 * a, None, length=2)[0],
    "lanes": lambda find, a: wg.vmap(find)(a * np.ones(2))[0],
    "gradient": lambda find, a: 12.0 * wg.grad(find)(a),
}


@pytest.mark.filterwarnings("ignore:.*is called by Python")
@pytest.mark.parametrize("kind", CAPTURES)
@pytest.mark.parametrize("around", AROUND)
def test_what_functions_of_solvers_capture_stays_until_a_graph_calls_them(kind: str, around: str) -> None:
    make, residual, change = CAPTURES[kind]

    def f(a: Any, late: bool) -> Any:
        held = make()
        first = AROUND[around](lambda a: optimize.brentq(lambda x: residual(held, x, a), 0.0, 4.0), a)
        if late:
            change(held)
        return first

    assert f(8.0, True) == pytest.approx(2.0 if around != "gradient" else 1.0)
    with pytest.raises(GraphError, match=r"captures (held|well|solver)\S*, which is changed after the call"):
        wg.jit(f, static_argnums=1)(8.0, True)
    assert wg.jit(f, static_argnums=1)(8.0, False) == pytest.approx(f(8.0, False))


@pytest.mark.filterwarnings("ignore:.*is called by Python")
def test_what_functions_of_solvers_do_not_read_may_change() -> None:
    def f(a: Any) -> Any:
        well = Well()
        found = optimize.brentq(well.residual, 0.0, 4.0, args=(a,))
        well.slope = 3.0
        well.log.append(found)
        well.found = found  # type: ignore[attr-defined]  # a new attribute
        return found * well.slope + well.log[-1]

    assert wg.jit(f)(8.0) == pytest.approx(8.0) == f(8.0)


@pytest.mark.filterwarnings("ignore:.*is called by Python")
def test_steps_by_solvers_that_read_the_last_result_from_a_list_are_refused_at_their_line() -> None:
    def f(a: Any) -> Any:
        states = [1.0]
        for _ in range(3):
            states.append(optimize.brentq(lambda x: x**3 - states[-1] * a, 0.0, 4.0))
        return states[-1]

    assert f(8.0) == pytest.approx(8.0 ** (13 / 27))
    with pytest.raises(GraphError, match=r"captures states\[1\], which is changed(.|\n)*optimize\.brentq"):
        wg.jit(f)(8.0)


@pytest.mark.parametrize("looks", [False, True])
def test_what_functions_with_rules_capture_stays_where_a_graph_calls_them(looks: bool) -> None:
    def f(a: Any) -> Any:
        held = [2.0]

        @wg.custom_rule
        def scaled(x: Any) -> Any:
            return x * held[0] if not looks or float(x) > 0.0 else x

        found = scaled(a)
        held[0] = 8.0
        return found

    assert f(3.0) == 6.0
    if looks:
        with pytest.raises(GraphError, match=r"captures held\[0\], which is changed after the call"):
            wg.jit(f)(3.0)
    else:
        assert wg.jit(f)(3.0) == 6.0


@pytest.mark.parametrize("jac", [None, True, lambda x: np.array([[2.0 * x[0]]])], ids=["derived", "both", "given"])
def test_what_functions_keep_of_their_arguments_is_theirs(jac):
    """MINPACK gives its working memory, which is gone afterwards."""
    kept = []

    def residual(x):
        kept.append(x)
        return (x**2 - 2.0, np.diag(2.0 * x)) if jac is True else x**2 - 2.0

    def slope(x):
        kept.append(x)
        return jac(x)

    for name in ("hybr", "lm"):
        optimize.root(residual, [1.0], jac=slope if callable(jac) else jac, method=name)
    arrays = [x for x in kept if isinstance(x, np.ndarray)]
    assert arrays
    assert all(x.flags.owndata or x.base is not None for x in arrays)
