"""Equations of which some have no slope: their index, and states that they determine."""

import numpy as np
import pytest

import wengert as wg
from wengert.errors import NumericalError
from wengert.scipy.integrate import solve_ivp


def pendulum(t, y):
    """Return the slopes of a pendulum in Cartesian coordinates: its length leaves the tension open, index 3."""
    place, speed, tension = y[:2], y[2:4], y[4]
    return np.stack([*speed, -tension * place[0], -tension * place[1] - 9.81, place @ place - 1.0])


def sharing(t, y):
    """Return the slopes of equations that a mass matrix mixes, of which 0 = y[0] - sin(t) is left, index 2."""
    return np.stack([y[1], y[0] - np.sin(t) + y[1]])


def switched(t, y):
    """Return the slopes of equations of index 1 of which one vanishes after a time."""
    return np.stack([-y[0], np.where(t < 0.5, y[1] - y[0], 0.0 * y[0])])


@pytest.mark.parametrize(
    ("slope", "start", "mass", "method", "text"),
    [
        (pendulum, [1.0, 0.0, 0.0, 0.0, 0.0], np.diag([1.0, 1.0, 1.0, 1.0, 0.0]), "BDF", r"of fun\[4\] at t = 0;"),
        (sharing, [0.0, 1.0], np.array([[1.0, 0.0], [1.0, 0.0]]), "Rodas5P", r"of fun\[0\] and fun\[1\] at t = 0;"),
        (switched, [1.0, 1.0], np.diag([1.0, 0.0]), "Rodas5P", r"of fun\[1\] at t = 1; index 1 is needed"),
    ],
)
def test_equations_of_higher_index_are_told(slope, start, mass, method, text):
    with pytest.raises(NumericalError, match=r"^solve_ivp: a singular Jacobian by the algebraic variables .*" + text):
        solve_ivp(slope, (0.0, 1.0), start, method, mass=mass, t_eval=[1.0])


def test_algebraic_states_between_steps_satisfy_their_equations():
    """Those of Kvaerno's method have no slopes that its continuous extension could be made of."""
    times = np.linspace(0.0, 5.0, 23)

    def states(rate):
        slope = lambda t, y: [-rate * y[1], y[1] - y[0] ** 2]
        options = {"mass": np.diag([1.0, 0.0]), "t_eval": times, "rtol": 1e-6, "atol": 1e-7}
        found = solve_ivp(slope, (0.0, 5.0), [1.0, 1.0], "Kvaerno5", events=lambda t, y: y[1] - 0.25, **options)
        return found.y[1], found.y_events[0]

    exact = 1.0 / (1.0 + 0.7 * times)
    (values, at_event), (derivatives, _) = wg.jvp(states, (0.7,), (1.0,))
    np.testing.assert_allclose(values, exact**2, atol=1e-5)
    np.testing.assert_allclose(derivatives, -2 * times * exact**3, atol=3e-5)
    np.testing.assert_allclose(at_event, [[0.5, 0.25]], atol=1e-6)


def test_lanes_of_higher_index_say_so_in_their_status():
    def end(weight):
        slope = lambda t, y: np.stack([-y[1], weight * y[1] + y[0] - 1.0])
        found = solve_ivp(slope, (0.0, 1.0), [1.0, 0.0], "Rodas5P", mass=np.diag([1.0, 0.0]), t_eval=[1.0])
        return found.status, found.y[0, 0]

    status, states = wg.jit(wg.vmap(end))(np.array([0.0, 1.0]))
    assert status.tolist() == [-1, 0]
    np.testing.assert_allclose(states, [np.nan, 1.0])
