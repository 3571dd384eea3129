"""Integrators of other libraries: their own results, and derivatives of the solution along the steps that they took."""

import functools
import importlib.util

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.errors import UsageError
from wengert.scipy.integrate import _outside, solve_dae, solve_ivp

START = np.array([1.0, 0.3])


def swing(t, y, k):
    return np.stack([y[1], -k * y[0]])


def solve(x, method, times=None, **options):
    """Return what is found of a swing; x holds both ends, the velocity at the beginning, and k."""
    options = {"rtol": 1e-9, "atol": 1e-10, **options}
    start = np.stack([1.0, x[2]])
    return solve_ivp(swing, (x[0], x[1]), start, method, times, args=(x[3],), **options)


def place(x, t):
    """Return where a swing is at a time."""
    k, t = np.sqrt(x[3]), t - x[0]
    return np.cos(k * t) + x[2] / k * np.sin(k * t)


def test_lsoda_returns_what_scipys_returns():
    rest = lambda t, y: y[1]
    rest.terminal = 2
    for times, span in ((None, (0.0, 2.5)), ([2.0, 1.0], (2.5, 0.0))):
        options = {"method": "LSODA", "t_eval": times, "args": (2.0,), "rtol": 1e-7, "dense_output": True}
        found, want = (x(swing, span, START, **options) for x in (solve_ivp, scipy.integrate.solve_ivp))
        for name in ("t", "y", "nfev", "status", "message", "success"):
            np.testing.assert_array_equal(found[name], want[name])
        np.testing.assert_array_equal(found.sol(found.t), want.sol(found.t))
    twice = solve_ivp(swing, (0.0, 1.0), START, "LSODA", [0.5, 0.5, 1.0], args=(2.0,))
    np.testing.assert_array_equal(twice.y[:, 0], twice.y[:, 1])
    events = lambda t, y, k: rest(t, y)
    events.terminal = 2
    assert solve_ivp(swing, (0.0, 9.0), START, "LSODA", events=events, args=(2.0,)).t_events[0].size == 2


def test_lsoda_ends_where_times_stand_still_or_steps_are_used_up():
    found = solve_ivp(lambda t, y: y * y, (0.0, 2.0), [1.0], "LSODA")
    assert (found.status, found.message[:18]) == (-1, "Required step size")
    few = solve_ivp(swing, (0.0, 2.0), START, "LSODA", args=(2.0,), max_steps=3)
    assert (few.status, len(few.t)) == (-1, 4)
    assert "max_steps" in few.message
    with pytest.warns(UserWarning, match=r"1 of 2 output times were reached, .* max_steps"):
        solve_ivp(
            swing, (0.0, 2.0), START, "LSODA", [0.0, 2.0], args=(wg.tensor(2.0, requires_grad=True),), max_steps=9
        )
    still = solve_ivp(swing, (2.0, 2.0), START, "LSODA", [2.0, 2.0], args=(2.0,))
    np.testing.assert_array_equal(still.y.T, [START, START])


def test_bands_of_jacobians_are_found():
    def heat(t, u):
        ends = np.concatenate([np.zeros(1), u, np.zeros(1)])
        return 4e3 * np.diff(ends, 2) - u**3

    options = {"rtol": 1e-7, "atol": 1e-9, "t_eval": [2.0]}
    for size in (12, 20):  # of the same function
        start = np.sin(np.linspace(0.0, 3.0, size))
        found = solve_ivp(heat, (0.0, 2.0), start, "LSODA", **options)
        want = scipy.integrate.solve_ivp(heat, (0.0, 2.0), start, "LSODA", lband=1, uband=1, **options)
        np.testing.assert_allclose(found.y, want.y, atol=1e-9)
        assert 0 < found.njev <= want.njev + 3


def sundials(method):
    """Return a method's name, whose tests need scikit-sundae."""
    is_missing = importlib.util.find_spec("sksundae") is None
    return pytest.param(method, marks=pytest.mark.skipif(is_missing, reason="needs the extra sundials"))


def test_sundials_needs_its_package(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="method='CVODE', and the package scikit-sundae is not installed"):
        solve_ivp(swing, (0.0, 1.0), START, "CVODE", args=(2.0,))


@pytest.mark.parametrize("method", [sundials("CVODE"), sundials("IDA")])
def test_sundials_integrates(method):
    x, times = np.array([0.2, 2.0, 0.3, 2.0]), [1.0, 1.0, 2.0]
    found = solve(x, method, times, dense_output=True)
    np.testing.assert_allclose(found.y[0], place(x, np.array(times)), rtol=1e-6)
    np.testing.assert_allclose(found.sol([1.0])[:, 0], found.y[:, 0], rtol=1e-12)
    few = solve(x, method, max_steps=3)
    assert (few.status, len(few.t)) == (-1, 4)
    assert "max_steps" in few.message
    assert "test_outside_integrators" in few.message
    mass = {"mass": np.eye(2)} if method == "IDA" else {}
    loose = solve(x, method, times, atol=np.array([1e-9, 1e100]), **mass)  # of an error nobody looks at
    np.testing.assert_allclose(loose.y[0], found.y[0], rtol=1e-4)
    with pytest.raises(UsageError, match="several numbers for rtol"):
        solve(x, method, rtol=np.array([1e-3, 1e-4]))


@pytest.mark.parametrize("method", [sundials("CVODE"), sundials("IDA")])
def test_sundials_gets_the_elements_of_sparse_jacobians(method):
    def ring(t, u):
        return 30.0 * (np.roll(u, 1) - 2 * u + np.roll(u, -1)) - u**3

    start = np.sin(np.linspace(0.0, 3.0, 20))
    found = solve_ivp(ring, (0.0, 1.0), start, method, [1.0], rtol=1e-7, atol=1e-9)
    want = scipy.integrate.solve_ivp(ring, (0.0, 1.0), start, "Radau", [1.0], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(found.y, want.y, atol=1e-6)
    assert solve_ivp(ring, (1.0, 1.0), start, method).y.shape == (20, 2)  # SuperLU_MT has factorised nothing then


def kinetics(t, y, p):
    first, second = -p[0] * y[0] + p[2] * y[1] * y[2], p[1] * y[1] ** 2
    return np.stack([first, -first - second, y[0] + y[1] + y[2] - 1.0])


@pytest.mark.parametrize("method", [sundials("IDA")])
def test_rates_of_residuals_are_those_of_the_integrator(method):
    """As states without a tolerance they were as wrong as could be; of pairs the Jacobian is sparse."""
    rates, options = np.array([0.04, 3e7, 1e4]), {"method": method, "rtol": 1e-8, "atol": 1e-10}
    masses = np.array([1.0, 1.0, 0.0])
    reaction = lambda t, y, yp: masses * yp - kinetics(t, y, rates)
    found = solve_dae(reaction, (0.0, 1.0), [1.0, 0.0, 0.0], t_eval=[3e-3], **options)
    np.testing.assert_allclose(found.yp[:2, 0], kinetics(0.0, found.y[:, 0], rates)[:2], rtol=0.05)

    def pairs(t, y, yp):
        first, second = y[::2], y[1::2]
        return np.reshape(np.stack([yp[::2] + 3.0 * first - second, second - np.cos(t) * first], axis=1), (-1,))

    found = solve_dae(pairs, (0.0, 1.0), np.ones(24), t_eval=[0.5, 1.0], **options)
    first = np.exp(np.sin(found.t) - 3.0 * found.t) * np.ones((12, 1))
    np.testing.assert_allclose(found.y[::2], first, rtol=1e-4)
    np.testing.assert_allclose(found.yp[::2], (np.cos(found.t) - 3.0) * first, rtol=1e-3)


@pytest.mark.long
@pytest.mark.parametrize("method", [sundials("IDA")])
def test_equations_with_masses_and_residuals(method):
    rates, options = np.array([0.04, 3e7, 1e4]), {"rtol": 1e-5, "atol": 1e-8, "t_eval": [40.0]}

    def by_mass(p, method):
        masses = np.diag([1.0, 1.0, 0.0])
        return solve_ivp(kinetics, (0.0, 40.0), [1.0, 0.0, 0.0], method, args=(p,), mass=masses, **options).y[0, 0]

    def by_residual(p, method):
        residual = lambda t, y, yp: np.stack([yp[0], yp[1], 0.0]) - kinetics(t, y, p)
        return solve_dae(residual, (0.0, 40.0), [1.0, 0.0, 0.0], method=method, **options).y[0, 0]

    value, want = wg.value_and_grad(by_mass)(rates, "Rodas5P")
    for function in (by_mass, by_residual):
        found = wg.value_and_grad(function)(rates, method)
        np.testing.assert_allclose(found[0], value, rtol=3e-4)
        np.testing.assert_allclose(found[1], want, rtol=3e-3)


@pytest.mark.long
@pytest.mark.parametrize("method", [sundials("CVODE"), sundials("IDA")])
def test_solutions_by_sundials_have_derivatives(method):
    x = np.array([0.2, 2.0, 0.3, 2.0])
    at = lambda x: solve(x, method, np.stack([0.5 * x[1], x[1]])).y[0, 0]
    want = wg.grad(lambda x: place(x, 0.5 * x[1]))(x)
    np.testing.assert_allclose(wg.grad(at)(x), want, rtol=1e-6)
    np.testing.assert_allclose(wg.jvp(at, (x,), (x,))[1], want @ x, rtol=1e-6)


@pytest.mark.long
def test_derivatives_are_those_of_the_solution(monkeypatch):
    """By both ends, the beginning and an argument: of the end, the solution between steps, and in all modes."""
    x, near = np.array([0.2, 2.0, 0.3, 2.0]), {"rtol": 1e-7}
    end = lambda x, **options: solve(x, "LSODA", **options).y[0, -1]
    middle = lambda x: solve(x, "LSODA", dense_output=True).sol(0.5 * x[1])[0]
    at = lambda x: solve(x, "LSODA", np.stack([0.5 * x[1], x[1]])).y[0, 0]
    forward = functools.partial(end, gradient="forward")
    by_end, by_middle = (wg.grad(lambda x, s=s: place(x, s * x[1])) for s in (1.0, 0.5))
    for function, want in ((end, by_end), (middle, by_middle), (at, by_middle), (forward, by_end)):
        np.testing.assert_allclose(wg.grad(function)(x), want(x), **near)
        np.testing.assert_allclose(wg.jvp(function, (x,), (x,))[1], want(x) @ x, **near)
    other = x * np.array([1.0, 1.1, 0.9, 0.8])
    np.testing.assert_allclose(wg.grad(end)(x[[1, 0, 2, 3]]), by_end(x[[1, 0, 2, 3]]), **near)
    lanes = wg.vmap(wg.grad(at))(np.stack([x, other]))
    np.testing.assert_allclose(lanes, [by_middle(x), by_middle(other)], **near)
    with pytest.warns(UserWarning, match="LSODA is called by Python"):
        np.testing.assert_allclose(wg.jit(wg.grad(at))(x), by_middle(x), **near)
    with pytest.raises(UsageError, match="t_eval=None in a function that is being traced"):
        wg.jit(end)(x)
    monkeypatch.setattr(_outside, "MOST_TRACED", 4)
    ends = lambda **options: wg.vmap(lambda x: solve(x, "LSODA", [x[1]], **options).y[0, 0])(np.stack([x, other]))
    with pytest.raises(UsageError, match=r"4 at most are needed where max_steps .* Pass max_steps=\d+"):
        ends()
    np.testing.assert_allclose(ends(max_steps=1024), [end(x), end(other)], **near)


@pytest.mark.long
def test_events_have_derivatives():
    half = lambda t, y, k: y[0] - 0.5
    through = lambda t, y, k: y[0] + 0.5
    through.terminal = True

    def found(k):
        return solve(np.stack([0.0, 9.0, 0.0, k]), "LSODA", events=[half, through])

    arc = np.arccos(np.array([0.5, -0.5]))
    for i in (0, 1):
        at = lambda k, i=i: found(k).t_events[i][0]
        np.testing.assert_allclose(wg.grad(at)(2.0), -arc[i] / 2 / 2**1.5, rtol=1e-7)
    np.testing.assert_allclose(wg.grad(lambda k: found(k).y_events[1][0, 1])(2.0), -np.sin(arc[1]) / 8**0.5, rtol=1e-7)
    np.testing.assert_allclose(found(2.0).t_events[1], found(wg.tensor(2.0)).t_events[1])


class Held:
    """Hold a number that it computes with in an attribute, which programs do not take as an argument."""

    terminal = True

    def __init__(self, level):
        self.level = level

    def __call__(self, t, y, *_):
        return y - self.level


def test_numbers_that_objects_hold():
    """Refuse them where integrators are called later, which found the first ones again; sensitivities are of steps."""

    def reached(level):
        slope = lambda t, y: -2.0 * level * y
        return solve_ivp(slope, (0.0, 9.0), [1.0], "LSODA", [9.0], events=Held(level)).t_events[0][0]

    with pytest.raises(UsageError, match=r"being traced, or has it from an object's attribute.*Pass it by args"):
        wg.jit(reached)(0.5)

    def end(level, gradient):
        return solve_ivp(Held(level), (0.0, 1.0), np.stack([level]), "RK23", [1.0], gradient=gradient).y[0, 0]

    with pytest.raises(UsageError, match=r"attribute.*gradient='discrete'"):  # their derivatives were zero
        wg.grad(lambda x: solve_ivp(Held(x), (0.0, 1.0), [1.0], "RK23", [1.0], gradient="continuous").y[0, 0])(0.5)
    found = [wg.jit(wg.grad(lambda x, k=k: end(x * x, k)))(0.5) for k in ("forward", "discrete")]
    np.testing.assert_allclose(found[0], found[1], rtol=1e-12)
