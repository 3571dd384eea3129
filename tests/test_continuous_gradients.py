"""`solve_ivp(gradient="continuous")`: derivatives by equations for cotangents and tangents along the solution."""

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
from wengert.errors import GraphError, TracedTruthError, UsageError
from wengert.scipy.integrate import solve_ivp

LOW = 0.55


def total(x, method="RK23", tol=1e-6):
    """Return the sum of states of y' = -x[1] y^2, y(0) = x[0], doubled at LOW, at half of the time x[2] and at the end.

    The time when it is doubled is added.
    """

    def slope(t, y, k):
        found = np.zeros(1)
        found[0] = -k * y[0] ** 2
        return found

    low = lambda t, y, k: y[0] - LOW
    low.terminal, low.reset = 2, lambda t, y, k: 2 * y
    options = {"method": method, "rtol": tol, "atol": tol, "gradient": "continuous", "args": (x[1],), "events": low}
    times = np.stack([0.5 * x[2], x[2]])
    found = solve_ivp(slope, (0.0, x[2]), x[:1], t_eval=times, **options)
    return np.sum(found.y) + found.t_events[0][0]


def exact(x):
    low = (1 / LOW - 1 / x[0]) / x[1]
    return x[0] / (1.0 + 0.5 * x[0] * x[1] * x[2]) + 2 * LOW / (1.0 + 2 * LOW * x[1] * (x[2] - low)) + low


X = np.array([1.0, 0.9, 1.3])


@pytest.mark.long
def test_derivatives_are_those_of_the_solution():
    lanes = np.stack([X, 1.1 * X])
    want = [wg.grad(exact)(x) for x in lanes]
    found, forward = wg.jit(lambda xs: (wg.vmap(wg.grad(total))(xs), wg.jvp(total, (xs[0],), (X,))[1]))(lanes)
    np.testing.assert_allclose(found, want, rtol=1e-5)
    np.testing.assert_allclose(forward, want[0] @ X, rtol=5e-5)
    no_states = {"y0": np.zeros(0), "t_eval": [1.0], "gradient": "continuous"}
    assert wg.grad(lambda k: k + np.sum(solve_ivp(lambda t, y: -k * y, (0.0, 1.0), **no_states).y))(2.0) == 1.0


@pytest.mark.long
@pytest.mark.parametrize(("method", "order"), [("RK23", 3), ("DOP853", 8)])
def test_errors_of_derivatives_of_steps_are_those_derivatives_of_the_errors(method, order):
    # y' = k A y to T: a step is off by terms of (k A)^(p + 1), so (p + 1 + T A) times errors are the change with k
    matrix, start = np.array([[-0.5, 2.0, 0.0], [-2.0, -0.3, 0.4], [0.2, 0.0, -1.0]]), np.array([1.0, 0.5, -0.3])

    def end(k):
        options = {"t_eval": [5.0], "rtol": 1e-6, "atol": 1e-6}
        return solve_ivp(lambda t, y: k * (matrix @ y), (0.0, 5.0), start, method, **options).y[:, 0]

    found, change = wg.jvp(end, (1.0,), (1.0,))
    wanted = scipy.linalg.expm(5.0 * matrix) @ start
    error, error_of_change = found - wanted, change - 5.0 * matrix @ wanted
    expected = (order + 1) * error + 5.0 * matrix @ error
    assert np.linalg.norm(error_of_change - expected) < 0.06 * np.linalg.norm(expected)
    assert np.linalg.norm(error_of_change) > 10.0 * np.linalg.norm(error)


@pytest.mark.long
def test_second_derivatives_move_with_both_times():
    def end(x):  # y' = -y^2
        options = {"method": "RK23", "rtol": 1e-7, "atol": 1e-7, "gradient": "continuous"}
        return solve_ivp(lambda t, y: -y * y, (x[1], x[2]), x[:1], t_eval=np.stack([x[2]]), **options).y[0, 0]

    x, v = np.array([1.0, 0.1, 1.3]), np.array([0.5, -0.2, 0.7])
    found, want = (wg.jvp(wg.grad(f), (x,), (v,))[1] for f in (end, lambda x: x[0] / (1 + x[0] * (x[2] - x[1]))))
    np.testing.assert_allclose(found, want, rtol=1e-5)


@pytest.mark.long
@pytest.mark.long
def test_second_derivatives_of_backward_differences_move_with_times_where_steps_begin():
    def end(x):  # y' = k y from 1 at t0, set to 2 at a time that moves with k
        k, t0 = x
        at = lambda t, y: t * k - 0.5
        at.terminal, at.reset = 2, lambda t, y: 0.0 * y + 2.0
        options = {"t_eval": [1.0], "rtol": 1e-8, "atol": 1e-8, "gradient": "continuous"}
        first = solve_ivp(lambda t, y: k * y, (t0, 1.0), [1.0], "BDF", **options).y[0, 0]
        return np.stack([first, solve_ivp(lambda t, y: k * y, (0.0, 1.0), [1.0], "BDF", events=at, **options).y[0, 0]])

    def exact(x):
        return np.stack([np.exp(x[0] * (1.0 - x[1])), 2.0 * np.exp(x[0] - 0.5)])

    x = np.array([0.9, 0.1])
    np.testing.assert_allclose(wg.jit(wg.hessian(end))(x), wg.hessian(exact)(x), rtol=1e-5, atol=1e-5)


def test_masses_and_what_they_leave_to_algebraic_equations():
    def end(x):  # x[1] y' = -z, 0 = z - x[0] y^2
        options = {"method": "Rodas5P", "t_eval": [1.0], "rtol": 1e-6, "atol": 1e-8, "gradient": "continuous"}
        mass = np.array([[1.0, 0.0], [0.0, 0.0]]) * x[1]
        slope = lambda t, y, rate: [-y[1], y[1] - rate * y[0] ** 2]
        return solve_ivp(slope, (0.0, 1.0), [1.0, 0.9], args=(x[0],), mass=mass, **options).y[1, 0]

    x = np.array([0.9, 1.0])
    want = wg.grad(lambda x: x[0] / (1.0 + x[0] / x[1]) ** 2)(x)
    np.testing.assert_allclose(wg.grad(end)(x), want, rtol=1e-5)


def test_what_it_does_not_serve_is_refused():
    for more in ({"t_eval": None}, {"dense_output": True}, {"method": "RK4", "step": 0.1}, {"y0": [1j]}):
        options = {"y0": [1.0], "t_eval": [1.0], "gradient": "continuous", **more}
        with pytest.raises(UsageError, match="gradient='continuous' with"):
            solve_ivp(lambda t, y: -y, (0.0, 1.0), **options)

    def end(y):
        return solve_ivp(lambda t, y: -y * y, (0.0, 1.0), y, t_eval=[1.0], gradient="continuous").y[0, 0]

    with pytest.raises(GraphError, match="taylor of a solution with gradient='continuous'"):
        wg.taylor(end, (np.ones(1),), (np.ones(1),), 2)


def test_what_functions_look_at_is_no_constant_where_it_is_differentiated():
    def end(k):
        slope = lambda t, y: -k * y * (1.0 if f"{k:.1f}" == "0.5" else 2.0)
        return solve_ivp(slope, (0.0, 1.0), [1.0], t_eval=[1.0], gradient="continuous").y[0, -1]

    np.testing.assert_allclose(end(0.5), np.exp(-0.5), rtol=1e-3)
    with pytest.raises(TracedTruthError, match="the elements of a value in"):
        wg.grad(end)(0.5)


@pytest.mark.long
def test_pieces_of_no_length_move_with_their_ends_to_second_order():
    """An attempt behind an event may be rejected, and an output may be of the beginning."""

    def slope(t, y):
        return -1.2 * y + 0.8 - 0.9 * t

    def behind_event(level, gradient):
        def event(t, y):
            return y[0] - level

        event.terminal, event.reset = 7, lambda t, y: np.array([0.1])
        options = {"t_eval": [1.0], "events": event, "rtol": 1e-8, "atol": 1e-8}
        return solve_ivp(slope, (0.0, 1.0), [0.75], "Tsit5", gradient=gradient, **options).y[0, 0]

    def second(f, *more):
        return wg.jvp(wg.grad(lambda x: f(x, *more)), (0.65,), (1.0,))[1]

    assert second(behind_event, "continuous") == pytest.approx(second(behind_event, "discrete"), rel=1e-5)

    def at_start(t0):
        options = {"t_eval": np.stack([t0, t0 + 1.0]), "gradient": "continuous"}
        return solve_ivp(slope, (t0, t0 + 1.0), [0.75], "Tsit5", **options).y[0, 0]

    assert abs(second(at_start)) < 1e-12
