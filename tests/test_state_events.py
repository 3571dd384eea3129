"""Events of `solve_ivp`: SciPy's times and states, resets, and derivatives of both."""

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import wengert as wg
from tests.derivatives import along
from tests.equations import oscillator
from wengert.errors import NumericalError
from wengert.scipy.integrate import solve_ivp


def fall(t, y, g=9.81):
    return [y[1], -g]


def at_ground(t, y, *_):
    return y[0]


def at_top(t, y):
    if t > 100.0:
        return y[1] + 1.0
    return y[1]


at_ground.direction = -1
at_ground.terminal = True


def test_events_are_those_of_scipy():
    swing = lambda t, y: np.stack([y[1], -y[0]])
    twice = lambda t, y: y[0] - 0.5
    twice.terminal = 2
    for slope, start, events in ((fall, [0.0, 10.0], [at_top, at_ground]), (swing, [1.0, 0.0], twice)):
        for t_eval, dense_output in ((None, slope is fall), (np.linspace(0.0, 5.0, 8), False)):
            method = "DOP853" if dense_output else "RK45"
            options = {"events": events, "method": method, "t_eval": t_eval, "dense_output": dense_output}
            want, found = (
                solve(slope, (0.0, 5.0), start, rtol=1e-6, **options)
                for solve in (scipy.integrate.solve_ivp, solve_ivp)
            )
            same = ["nfev", "status", "message", "success"]
            assert [found[x] for x in same] == [want[x] for x in same]
            assert found.y.shape == want.y.shape
            np.testing.assert_allclose(found.y, want.y, rtol=1e-8, atol=1e-10)
            for name in ("t_events", "y_events"):
                for one, other in zip(found[name], want[name], strict=True):
                    np.testing.assert_allclose(one, np.reshape(other, np.shape(one)), rtol=1e-8, atol=1e-10)


def landing(x):
    """Return when a ball hits the ground that was thrown up, by its speed and gravity."""
    found = solve_ivp(fall, (0.0, 9.0), [1.0, x[0]], args=(x[1],), events=at_ground, t_eval=[9.0])
    return found.t_events[0][0]


def test_times_of_events_have_derivatives():
    x, want = np.array([0.3, 9.81]), lambda x: (x[0] + np.sqrt(x[0] ** 2 + 2 * x[1])) / x[1]
    np.testing.assert_allclose(landing(x), want(x), rtol=1e-13)
    np.testing.assert_allclose(wg.grad(landing)(x), wg.grad(want)(x), rtol=1e-12)
    lanes, direction = np.stack([x, 2 * x]), np.array([1.0, -2.0])
    second, exact = (wg.vmap(along(wg.value_and_grad(function), direction)) for function in (landing, want))
    for one, other in zip(wg.jit(second)(lanes), exact(lanes), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11)


def test_second_derivatives_of_times_within_steps_of_order_one():
    """BDF's first steps are of order 1, whose extension has none; at a state of one number its slope is exact."""

    def time(level):
        event = lambda t, y: y[0] - level
        event.terminal = True
        return solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], method="BDF", events=event, t_eval=[1.0]).t_events[0][0]

    derivative = lambda level: wg.jvp(time, (level,), (1.0,))[1]
    np.testing.assert_allclose(wg.jvp(derivative, (0.999,), (1.0,))[1], 0.999**-2.0, rtol=1e-9)


def bounced(x):
    """Return the bounces of a ball that keeps a part of its speed at each, and where it is after four seconds."""
    event = lambda t, y, g: y[0]
    event.direction = -1
    event.reset = lambda t, y, g: [y[0], -x[1] * y[1]]
    return solve_ivp(fall, (0.0, 4.0), [1.0, x[0]], args=(x[2],), events=event, t_eval=[4.0])


def bounced_by_formula(x):
    speed = np.sqrt(x[0] ** 2 + 2 * x[2])
    times = [(x[0] + speed) / x[2]]
    while times[-1] < 4.0:
        speed = x[1] * speed
        times.append(times[-1] + 2 * speed / x[2])
    left = 4.0 - times[-2]
    return times[:-1], np.stack([speed * left - x[2] * left**2 / 2, speed - x[2] * left])


def test_states_after_resets_have_derivatives():
    x = np.array([0.3, 0.9, 9.81])
    times, state = bounced_by_formula(x)
    found = bounced(x)
    np.testing.assert_allclose(found.t_events[0], times, rtol=1e-12)
    np.testing.assert_allclose(found.y[:, 0], state, rtol=1e-10)
    want = wg.jacobian(lambda x: bounced_by_formula(x)[1])
    end = wg.jit(lambda x: bounced(x).y[:, 0])
    backward, direction = wg.jit(wg.jacrev(end)), np.array([1.0, -0.5, 2.0])
    np.testing.assert_allclose(backward(x), want(x), rtol=1e-9)
    second = wg.jit(along(backward, direction))(x)
    np.testing.assert_allclose(second, along(want, direction)(x), rtol=1e-7, atol=1e-9)


def test_the_sign_after_a_reset_outlasts_attempts_that_are_rejected():
    event = lambda t, y: y[0]
    event.reset = lambda t, y: [0.0 * y[0], -10.0 * y[1]]
    found = solve_ivp(lambda t, y: [y[1], -5.0 * np.maximum(y[1], 0.0)], (0.0, 9.0), [1.0, -1.0], events=event)
    np.testing.assert_allclose(found.t_events[0], [1.0], rtol=1e-12)


@pytest.mark.long
def test_zeros_within_a_step_are_found_where_a_function_turns():
    """It has the same signs at both ends of the step, so that SciPy sees none; touching zero is no event."""

    def passages(width, **options):
        event = lambda t, y: (y[0] - 0.5) ** 2 - width
        event.terminal = options.pop("terminal", 2)
        event.direction = options.pop("direction", 0)
        return solve_ivp(lambda t, y: [1.0], (0.0, 1.0), [0.0], events=event, t_eval=[1.0], **options)

    np.testing.assert_allclose(passages(1e-4).t_events[0], [0.49, 0.51], rtol=1e-13)
    np.testing.assert_allclose(passages(1e-4, terminal=1).t_events[0], [0.49], rtol=1e-13)
    np.testing.assert_allclose(passages(1e-4, direction=1, terminal=1).t_events[0], [0.51], rtol=1e-13)
    times = wg.jit(lambda width: passages(width).t_events[0])
    slopes, second = wg.jvp(wg.jacrev(times), (1e-4,), (1.0,))
    np.testing.assert_allclose(slopes, [-50.0, 50.0], rtol=1e-10)
    np.testing.assert_allclose(second, [250000.0, -250000.0], rtol=1e-9)
    with pytest.raises(NumericalError, match="event 0 touches zero before t = 1; a function that crosses it"):
        passages(0.0)
    assert wg.jit(lambda width: passages(width).status)(0.0) == -1


@pytest.mark.long
def test_integrations_end_where_events_accumulate():
    event = lambda t, y, kept: y[0]
    event.direction, event.reset = -1, lambda t, y, kept: [0.0 * y[0], -kept * y[1]]

    def bounce(kept, method):  # by DOP853, and by Rodas5P in forward mode, it fell through the ground
        slope = lambda t, y, kept: [y[1], -9.81]
        return solve_ivp(slope, (0.0, 3.0), [1.0, 0.0], method, [0.7, 3.0], args=(kept,), events=event, rtol=1e-8)

    def of_bounce(kept):
        found = bounce(kept, "Rodas5P")
        return found.y, found.status

    rest = np.sqrt(2 / 9.81) * 1.25 / 0.75
    found = bounce(0.25, "DOP853")
    assert (found.status, found.t.tolist()) == (-1, [0.7])
    assert found.message.startswith(f"Events accumulate at t = {rest:.6f}"[:-1])
    (states, status), (moves, _) = wg.jit(lambda kept: wg.jvp(of_bounce, (kept,), (1.0,)))(0.32)
    assert status == -1
    assert np.isnan(states).tolist() == np.isnan(moves).tolist() == [[False, True]] * 2


def test_events_of_a_known_number_are_known_where_they_are_traced():
    third = lambda t, y, k: y[0]
    third.terminal = 3
    events = [third, lambda t, y, k: y[1]]
    for end, reached in ((5.0, 2), (9.0, 3)):
        solve = lambda y, end=end: solve_ivp(oscillator, (0.0, end), y, args=(1.0,), events=events, t_eval=[end])
        want, start = solve([1.0, 0.0]).t_events[0], np.array([1.0, 0.0])
        times = lambda y, solve=solve: solve(y).t_events
        (found, other), (moves, _) = wg.jit(lambda y, times=times: wg.jvp(times, (y,), (y,)))(start)
        assert np.isnan(moves).tolist() == np.isnan(found).tolist()
        assert other is None
        assert len(want) == reached
        np.testing.assert_allclose(found, [*want, np.nan][:3], rtol=1e-12)


def test_events_may_be_reset_to_where_they_are_not_at_zero():
    """y' = 2 - y up to 0.8, from 0.1 at first and from `low` then: after each reset the event is as far below zero."""

    def filled(low):
        full = lambda t, y: y[0] - 0.8
        full.reset = lambda t, y: np.reshape(low, 1)
        return solve_ivp(lambda t, y: 2.0 - y, (0.0, 1.0), [0.1], events=full, rtol=1e-9, atol=1e-10)

    first, second = np.log(1.9 / 1.2), np.log(1.9 / 1.2) + np.log(1.8 / 1.2)
    found = filled(0.2)
    np.testing.assert_allclose(found.t_events[0], [first, second], rtol=1e-8)
    assert found.t[-1] == 1.0
    np.testing.assert_allclose(found.y[0, -1], 2.0 - 1.8 * np.exp(second - 1.0), rtol=1e-8)
    assert wg.grad(lambda low: filled(low).y[0, -1])(0.2) == pytest.approx(3.0 * np.exp(first - 1.0), rel=1e-6)


def test_resets_that_miss_algebraic_equations_are_refused():
    def end(second):
        def low(t, y):
            return y[0] - 0.8

        low.reset = lambda t, y: np.stack([np.asarray(0.2), second])
        slope = lambda t, y: [2.0 - y[1], y[1] - y[0]]
        mass = np.diag([1.0, 0.0])
        found = solve_ivp(slope, (0.0, 1.0), [0.1, 0.1], method="BDF", mass=mass, events=low, t_eval=[1.0])
        return found.status, found.y[0, 0]

    np.testing.assert_allclose(end(0.2)[1], 2.0 - 1.8 * np.exp(np.log(1.9 / 1.2 * 1.8 / 1.2) - 1.0), rtol=2e-2)
    with pytest.raises(NumericalError, match=r"a reset that returned a state with a residual of 4.8 in the .* t = 0.4"):
        end(5.0)
    status, state = wg.jit(end)(5.0)
    assert status == -1
    assert np.isnan(state)
