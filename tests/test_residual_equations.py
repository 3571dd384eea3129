"""`solve_dae`: F(t, y, y') = 0 of index 1, with starts that are solved for, and derivatives."""

import numpy as np
import pytest
import scipy.special

import wengert as wg
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.scipy.integrate import solve_dae, solve_ivp


def decay(t, y, yp, rate):
    """Return the residual of y[0]' = -rate y[1] where y[1] is the square of y[0]."""
    return [yp[0] + rate * y[1], y[1] - y[0] ** 2]


def value(x):
    """Return the square at 1 of what begins at x[0] and decays with x[1]; the first guess is far off."""
    start, rate = x[0], x[1]
    options = {"t_eval": [1.0], "args": (rate,), "rtol": 1e-6, "atol": 1e-8}
    return solve_dae(decay, (0.0, 1.0), [start, 3.0], method="Rodas5P", **options).y[1, 0]


def exact(x):
    return (x[0] / (1.0 + x[0] * x[1])) ** 2


@pytest.mark.long
def test_derivatives_are_those_of_the_solution():
    def all_of(x):
        (found, gradient), (_, second) = wg.jvp(wg.value_and_grad(value), (x,), (x,))
        return found, gradient, second

    lanes = np.array([[1.0, 0.9], [0.5, 1.0]])
    want = [[exact(x), wg.grad(exact)(x), wg.hessian(exact)(x) @ x] for x in lanes]
    for one, other in zip(wg.jit(wg.vmap(all_of))(lanes), zip(*want, strict=True), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5)


@pytest.mark.long
def test_a_pendulum_swings_as_elliptic_integrals_say():
    """With this gravity it takes 1 to the other side; its height after 2 is by scaling of time."""

    def pendulum(t, y, yp, gravity):
        tension = y[2] ** 2 + y[3] ** 2 - y[4] * (y[0] ** 2 + y[1] ** 2) - gravity * y[1]
        return [yp[0] - y[2], yp[1] - y[3], yp[2] + y[4] * y[0], yp[3] + y[4] * y[1] + gravity, tension]

    def swing(gravity):
        options = {"method": "Rodas5P", "t_eval": [1.0, 2.0], "args": (gravity,), "rtol": 1e-8, "atol": 1e-9}
        return solve_dae(pendulum, (0.0, 2.0), [1.0, 0.0, 0.0, 0.0, 0.0], **options).y[:4]

    gravity = 4.0 * scipy.special.ellipk(0.5) ** 2
    states, moves = wg.jit(lambda g: wg.jvp(swing, (g,), (1.0,)))(gravity)
    np.testing.assert_allclose(states.T, [[-1.0, 0.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]], atol=2e-6)
    np.testing.assert_allclose(moves[:, 1], [0.0, 0.0, 0.0, -1.0], atol=2e-6)


def test_states_rates_and_resets_are_solved_for():
    def half(t, y, yp, rate):
        return y[0] - 0.6

    half.direction = -1
    half.reset = lambda t, y, yp, rate: [1.0, -yp[0]]
    nonlinear = lambda t, y, yp, rate: [yp[0] * (1.0 + yp[0] ** 2) + rate * y[1], y[1] - y[0] ** 2]
    options = {"method": "Rodas5P", "args": (1.0,), "events": half, "dense_output": True, "rtol": 1e-6}
    found = solve_dae(nonlinear, (0.0, 1.0), [1.0, 0.5], [-1.0, 0.0], **options)
    np.testing.assert_allclose(found.y[:, 0], [1.0, 1.0], rtol=1e-12)
    np.testing.assert_allclose(found.yp[0] * (1.0 + found.yp[0] ** 2), -found.y[1], rtol=1e-5)
    assert np.isnan(found.yp[1]).all()
    at, shape = found.t_events[0][0], found.y_events[0].shape
    assert shape == (1, 2)
    np.testing.assert_allclose(found.sol(1.0)[0], found.sol(1.0 - at)[0], atol=1e-4)
    matrix, swap = np.diag([1.0, 0.0]), lambda t, y: [-y[1], y[1] - y[0]]
    mixed = solve_ivp(swap, (0.0, 1.0), [1.0, 7.0], "Rodas5P", mass=matrix, start="solved")
    np.testing.assert_allclose(mixed.y[:, 0], [1.0, 1.0])


RODAS = {"method": "Rodas5P"}


@pytest.mark.parametrize(
    ("error", "text", "residual", "options"),
    [
        (
            NumericalError,
            r"^solve_dae: a singular Jacobian .* of fun\[1\] at t = 0",
            lambda t, y, yp: [yp[0] + yp[1], y[1] - y[0]],
            RODAS,
        ),
        (
            NumericalError,
            "a first guess .* residual of 3 in",
            lambda t, y, yp: [yp[0], y[1] ** 2 + y[0] + 1.0],
            RODAS,
        ),
        (UsageError, "that depends on no rate", lambda t, y, yp: y, {}),
        (ShapeError, r"fun returned shape \(1,\)", lambda t, y, yp: [yp[0] - y[1]], {}),
        (ShapeError, r"yp0 of shape \(1,\)", lambda t, y, yp: yp, {"yp0": [1.0]}),
        (UsageError, "solve_dae: gradient='continuous'; ", lambda t, y, yp: yp, {"gradient": "continuous"}),
        (UsageError, "'RK45' for method", lambda t, y, yp: yp, {"method": "RK45"}),
        (DtypeError, "complex", lambda t, y, yp: yp, {"y0": [1j, 0.0]}),
    ],
)
def test_errors_say_what_is_needed(error, text, residual, options):
    with pytest.raises(error, match=text):
        solve_dae(residual, (0.0, 1.0), **{"y0": [1.0, 1.0], **options})
