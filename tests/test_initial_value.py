"""`solve_ivp`: SciPy's steps and results, and derivatives in every mode by all that they depend on."""

import functools

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.errors import DtypeError, GraphError, ShapeError, UsageError
from wengert.scipy.integrate import _programs, solve_ivp
from wengert.testing import check_grads

START = np.array([2.0, 1.0])
RATES = np.array([1.1, 0.4, 0.4, 0.1])


def lotka(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def oscillator(t, y, k):
    return np.stack([y[1], -k * y[0] + 0.1 * np.sin(t)])


@pytest.mark.parametrize("method", ["RK23", "RK45", "DOP853"])
@pytest.mark.parametrize("span", [(0.0, 3.0), (3.0, 0.5)])
def test_steps_and_counts_are_those_of_scipy(method, span):
    times = np.linspace(*span, 4)
    for t_eval, dense_output in ((None, True), (times, False), (times[1:3], True)):
        options = {"method": method, "t_eval": t_eval, "dense_output": dense_output, "rtol": 1e-5, "args": (RATES,)}
        want = scipy.integrate.solve_ivp(lotka, span, START, **options)
        found = solve_ivp(lotka, span, START, **options)
        np.testing.assert_allclose(found.t, want.t, rtol=1e-8)
        np.testing.assert_allclose(found.y, want.y, rtol=1e-8)
        same = ["nfev", "njev", "nlu", "status", "message", "success"]
        assert [found[x] for x in same] == [want[x] for x in same]
        if dense_output:
            for t in (times, 1.7, want.t):
                np.testing.assert_allclose(found.sol(t), want.sol(t), rtol=1e-8)


def test_sizes_of_steps_and_other_forms_of_functions_are_those_of_scipy():
    for options in ({"first_step": 0.01, "max_step": 0.2}, {"vectorized": True}, {"atol": np.array([1e-3, 1e-9])}):
        want, found = (
            solve(lambda t, y: np.stack([y[1], -y[0]]) if y.ndim == 1 else y[::-1], (0, 2), [1, 0], **options)
            for solve in (scipy.integrate.solve_ivp, solve_ivp)
        )
        np.testing.assert_allclose(found.y, want.y, rtol=1e-10)
        assert found.nfev == want.nfev
    turning = solve_ivp(lambda t, y: 1j * y, (0.0, np.pi), [1.0 + 0j], rtol=1e-8)
    np.testing.assert_allclose(turning.y[0, -1], -1.0, atol=1e-6)
    want = scipy.integrate.solve_ivp(lambda t, y: -y, (1.0, 1.0), [3.0])
    found = solve_ivp(lambda t, y: -y, (1.0, 1.0), [3.0])
    assert found.t.tolist() == want.t.tolist()
    assert found.y.tolist() == want.y.tolist()


def test_more_steps_than_a_call_takes():
    want, found = (
        solve(lambda t, y: [np.cos(t)], (0.0, 5.0), [0.0], max_step=0.008)
        for solve in (scipy.integrate.solve_ivp, solve_ivp)
    )
    assert found.t.size == want.t.size > _programs.MOST_ROWS
    np.testing.assert_allclose(found.y, want.y, atol=1e-12)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Tsit5"])
def test_derivatives_by_everything(method):
    """By y0, arguments, captured values, both ends and output times: differences, and forward as reverse mode."""

    def outputs(y0, k, shift, t0, t1, times):
        def slope(t, y, k):
            return oscillator(t, y, k["k"]) + shift * y

        tolerance = 1e-9 if method == "DOP853" else 1e-5
        options = {"t_eval": np.concatenate([times, np.reshape(t1, 1)]), "method": method, "args": ({"k": k},)}
        return solve_ivp(slope, (t0, t1), y0, rtol=tolerance, atol=tolerance, **options).y

    jitted = wg.jit(outputs)
    point = START, 3.0, -0.2, 0.1, 1.1, np.array([0.1, 0.4, 0.9])
    if method == "DOP853":
        check_grads(jitted, point, order=1, rtol=1e-5)
        return
    forward, back = wg.jacfwd(jitted, range(6))(*point), wg.jacrev(jitted, range(6))(*point)
    for one, other in zip(forward, back, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=1e-11)


def test_ends_of_the_interval_have_their_analytic_derivatives():
    def end(t0, t1):
        return solve_ivp(oscillator, (t0, t1), START, args=(2.0,), rtol=1e-7, atol=1e-7, t_eval=[t1]).y[:, -1]

    by_t0, by_t1 = wg.jacobian(end, (0, 1))(0.2, 1.5)
    state = end(0.2, 1.5)
    np.testing.assert_allclose(by_t1, oscillator(1.5, state, 2.0), rtol=1e-5)
    matrix = np.array([[0.0, 1.0], [-2.0, 0.0]])
    np.testing.assert_allclose(by_t0, -scipy.linalg.expm(1.3 * matrix) @ oscillator(0.2, START, 2.0), rtol=1e-4)


@functools.cache
def logistic_end(rtol):
    """Return the end of y' = k y (1 - y) by k and y0, whose solution is known."""
    slope = lambda t, y, k: k * y * (1 - y)
    options = {"t_eval": [2.0], "rtol": rtol, "atol": rtol}
    return wg.jit(lambda x: solve_ivp(slope, (0.0, 2.0), x[1:], args=(x[0],), **options).y[0, 0])


def logistic(x):
    grown = np.exp(2.0 * x[0])
    return x[1] * grown / (1 - x[1] + x[1] * grown)


def test_derivatives_to_third_order_are_those_of_the_solution():
    x = np.array([0.7, 0.2])
    found, want = logistic_end(1e-6), logistic
    for rtol in (1e-4, 1e-3, 1e-2, 0.1):
        np.testing.assert_allclose(found(x), want(x), rtol=rtol)
        found, want = wg.jit(wg.jacfwd(found)), wg.jacfwd(want)
    np.testing.assert_allclose(wg.hessian(logistic_end(1e-6))(x), wg.hessian(logistic)(x), rtol=1e-2)


def test_gradients_get_better_as_solutions_do():
    x = np.array([0.7, 0.2])
    errors = [np.abs(wg.grad(logistic_end(rtol))(x) - wg.grad(logistic)(x)).max() for rtol in (1e-3, 1e-6, 1e-9)]
    assert errors[0] > 30 * errors[1] > 900 * errors[2]


def test_lanes_are_calls_of_their_own():
    def end(y0, k):
        return solve_ivp(oscillator, (0.0, 1.0), y0, args=(k,), t_eval=[0.5, 1.0]).y

    starts, rates = np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 2.0]]), np.array([1.0, 30.0, 0.1])
    loss = lambda y0, k: np.sum(end(y0, k) ** 2)
    for function in (end, wg.grad(loss, (0, 1))):
        lanes = wg.jit(wg.vmap(function))(starts, rates)
        singles = [wg.jit(function)(*x) for x in zip(starts, rates, strict=True)]
        for i, single in enumerate(singles):
            for one, other in zip(wg.tree.leaves(lanes), wg.tree.leaves(single), strict=True):
                np.testing.assert_allclose(one[i], other, rtol=1e-12)


def test_tapes_see_all_steps():
    p = wg.tensor(RATES, requires_grad=True)
    found = solve_ivp(lotka, (0.0, 1.0), START, args=(p,), dense_output=True)
    assert found.y.requires_grad
    (np.sum(found.y[:, -1]) + np.sum(found.sol(0.3))).backward()

    def loss(p):
        return np.sum(solve_ivp(lotka, (0.0, 1.0), START, args=(p,), t_eval=[0.3, 1.0]).y)

    np.testing.assert_allclose(p.grad, wg.grad(loss)(RATES), rtol=1e-12)
    dense = lambda p: solve_ivp(lotka, (0.0, 1.0), START, args=(p,), dense_output=True)
    states = lambda p: (lambda found: found.y[:, -1] + found.sol(0.3))(dense(p))
    np.testing.assert_allclose(np.sum(wg.jvp(states, (RATES,), (RATES,))[1]), wg.grad(loss)(RATES) @ RATES, rtol=1e-12)


SCALE = 2.0


def test_programs_are_kept_and_see_what_changes(monkeypatch):
    """Functions made anew share a program; captured and global floats are its arguments, other values are compared."""
    monkeypatch.setattr(_programs, "PROGRAMS", _programs.Recent(8))

    def end(k, power, table):
        model = lambda y: table["rate"] * k * y**power
        return solve_ivp(lambda t, y: -SCALE * model(y), (0.0, 1.0), [1.0], rtol=1e-6).y[0, -1]

    found = [end(k, 1, {"rate": np.float64(0.5)}) for k in (1.0, 2.0)]
    np.testing.assert_allclose(found, np.exp([-1.0, -2.0]), rtol=1e-5)
    monkeypatch.setattr(f"{__name__}.SCALE", 4.0)
    np.testing.assert_allclose(end(1.0, 1, {"rate": np.float64(0.5)}), np.exp(-2.0), rtol=1e-5)
    (program,) = _programs.PROGRAMS.values()
    assert program.from_start.trace_count == 1
    np.testing.assert_allclose(end(1.0, 2, {"rate": np.float64(0.5)}), 1 / 3, rtol=1e-5)

    class Model:
        def __init__(self):
            self.rate, self.seen = 1.0, []

        def slope(self, t, y):
            return -self.rate * y

        def watch(self, t, y):
            self.seen.append(t)
            return -y

    model = Model()
    for rate in (1.0, 3.0):
        model.rate = rate
        np.testing.assert_allclose(solve_ivp(model.slope, (0, 1), [1.0], rtol=1e-6).y[0, -1], np.exp(-rate), rtol=1e-4)
    with pytest.raises(GraphError, match="seen"):
        solve_ivp(model.watch, (0, 1), [1.0])


def test_functions_may_look_at_the_numbers_they_hold_and_branch_on_states():
    def repeated(count):
        return lambda t, y: -sum([y] * int(count))

    for count in (2.0, 3.0):
        found = solve_ivp(repeated(count), (0.0, 1.0), [1.0], rtol=1e-6)
        np.testing.assert_allclose(found.y[0, -1], np.exp(-count), rtol=1e-4)

    def thermostat(t, y, k):
        if y[0] > 0.5:
            return -k * y
        return -2.0 * k * y

    want = scipy.integrate.solve_ivp(thermostat, (0, 2), [1.0], args=(1.0,))
    np.testing.assert_allclose(solve_ivp(thermostat, (0, 2), [1.0], args=(1.0,)).y, want.y, rtol=1e-9)


def appending(log):
    def slope(t, y):
        log.append(t)
        return -y

    return slope


def counting(count):
    def slope(t, y):
        nonlocal count
        count += 1.0
        return -y

    return slope


def writing(array):
    def slope(t, y):
        array[0] = 3.0
        return -y

    return slope


@pytest.mark.parametrize("slope", [appending([]), appending([0.5]), counting(0.0), writing(np.ones(2))])
def test_what_functions_do_besides_is_refused(slope):
    with pytest.raises(GraphError, match=r"not its own|from outside"):
        solve_ivp(slope, (0.0, 1.0), [1.0])


def test_bad_luck_is_told_as_scipy_tells_it():
    blown_up = {}
    for solve in (scipy.integrate.solve_ivp, solve_ivp):
        with np.errstate(all="ignore"):
            blown_up[solve] = solve(lambda t, y: y**2, (0.0, 2.0), [1.0], t_eval=[0.5, 1.5])
    want, found = blown_up.values()
    assert [found.status, found.message, found.success] == [want.status, want.message, want.success]
    np.testing.assert_allclose(found.y, want.y, rtol=1e-9)
    with np.errstate(all="ignore"):
        lost = solve_ivp(lambda t, y: y * np.nan, (0.0, 1.0), [1.0])
    assert lost.status == -1
    few = solve_ivp(lambda t, y: -y, (0.0, 10.0), [1.0], max_steps=3)
    assert few.status == -1
    assert "max_steps" in few.message
    assert few.t[-1] < 10.0


def missing(t, y):
    return y[:1]


@pytest.mark.parametrize(
    ("error", "text", "arguments"),
    [
        (ShapeError, "fun returned shape (1,) for a state of 2 numbers", {"fun": missing}),
        (ShapeError, "y0 of shape (1, 2)", {"y0": [[1.0, 2.0]]}),
        (ShapeError, "1 numbers for t_span", {"t_span": [1.0]}),
        (ShapeError, "atol of shape (3,)", {"atol": np.ones(3)}),
        (DtypeError, "fun returned dtype complex128", {"fun": lambda t, y: 1j * y}),
        (DtypeError, "something that can be called", {"fun": 3.0}),
        (UsageError, "one of RK23, RK45", {"method": "Euler"}),
        (UsageError, "1.5 among t_eval; times between t0 = 0 and t1 = 1", {"t_eval": [0.5, 1.5]}),
        (UsageError, "do not follow each other", {"t_eval": [0.5, 0.5]}),
        (UsageError, "NaN or infinity among y0", {"y0": [1.0, np.nan]}),
        (UsageError, "for rtol", {"rtol": -1.0}),
        (UsageError, "first_step=3 for an interval of length 1", {"first_step": 3.0}),
        (UsageError, "for args; a tuple is needed", {"args": 3.0}),
    ],
)
def test_errors_say_what_to_do(error, text, arguments):
    given = {"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], **arguments}
    with pytest.raises(error) as caught:
        solve_ivp(**given)
    assert text in str(caught.value)


def test_steps_of_unknown_number_need_output_times():
    with pytest.raises(UsageError, match="Pass t_eval"):
        wg.jit(lambda y0: solve_ivp(lambda t, y: -y, (0.0, 1.0), y0).y[0, -1])(START)
