"""`solve_ivp`: SciPy's steps and results, and derivatives in every mode by all that they depend on."""

import contextlib
import functools
import pickle
import re

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize
import scipy.sparse

import wengert as wg
from tests.cases import together
from tests.derivatives import along
from tests.equations import RATES, START, logistic, lotka, oscillator
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.scipy.integrate import _programs, _step_loops, odeint, solve_ivp
from wengert.scipy.integrate._jumps import jump_in
from wengert.scipy.integrate._methods.tableaux import tableau
from wengert.testing import check_grads


@pytest.mark.parametrize(
    ("method", "span"), [("RK23", (0.0, 1.0)), ("RK45", (3.0, 0.5)), ("RK45", (0.0, 3.0)), ("DOP853", (0.0, 3.0))]
)
def test_steps_and_counts_are_those_of_scipy(method, span):
    times = np.linspace(*span, 4)
    for t_eval, dense_output in ((None, method == "RK45"), (times, False), (times[1:3], True))[: 2 + (span[0] > 0)]:
        options = {"method": method, "t_eval": t_eval, "dense_output": dense_output, "rtol": 1e-5, "args": (RATES,)}
        want = scipy.integrate.solve_ivp(lotka, span, START, **options)
        found = solve_ivp(lotka, span, START, **options)
        np.testing.assert_allclose(found.t, want.t, rtol=1e-8)
        assert not np.shares_memory(found.t, times)
        np.testing.assert_allclose(found.y, want.y, rtol=1e-8)
        same = ["nfev", "njev", "nlu", "status", "message", "success"]
        assert [found[x] for x in same] == [want[x] for x in same]
        if dense_output:
            for t in (times, 0.7, want.t):
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
    for span, start in (((1.0, 1.0), [3.0]), ((0.0, 1.0), [])):
        want, found = (solve(lambda t, y: -y, span, start) for solve in (scipy.integrate.solve_ivp, solve_ivp))
        assert found.t.tolist() == want.t.tolist()
        assert found.y.tolist() == want.y.tolist()
        assert found.nfev == want.nfev == 1
    assert solve_ivp(lambda t, y: -y, (1.0, 1.0), [3.0], "DOP853", [1.0]).nfev == 1


def test_coefficients_and_results_are_those_of_scipy():
    for method in ("RK23", "RK45", "DOP853"):
        known, own = getattr(scipy.integrate, method), tableau(method)
        extension, error = (known.D, (known.E3, known.E5)) if own.more else (known.P, known.E)
        assert ([*own.c], [*own.b]) == (known.C.tolist(), known.B.tolist())
        assert own.order == known.error_estimator_order
        assert np.array_equal(own.extension, extension)
        assert np.array_equal(own.error, error)
        rows = [(own.a, known.A)] + (
            [(own.more[0], known.A_EXTRA), ([own.more[1]], [known.C_EXTRA])] if own.more else []
        )
        for one, other in rows:
            assert [[*x, *np.zeros(len(y) - len(x))] for x, y in zip(one, other, strict=True)] == np.asarray(
                other
            ).tolist()
    found = solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[1.0])
    assert repr(found) == repr(scipy.optimize.OptimizeResult(found))
    copied = pickle.loads(pickle.dumps(found))
    copied.t = 3.0
    assert (copied["t"], copied.status, dir(copied), hasattr(copied, "x")) == (3.0, 0, sorted(found), False)
    ahead = solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], t_eval=[0.5, 1.0])
    before_the_end = wg.jit(lambda t1: solve_ivp(lambda t, y: -y, (0.0, t1), [1.0], t_eval=[0.5, 1.0]).y)(1.0)
    assert np.array_equal(ahead.y, before_the_end)


def test_more_steps_than_a_call_takes():
    want, found = (
        solve(lambda t, y: [np.cos(t)], (0.0, 5.0), [0.0], max_step=0.008)
        for solve in (scipy.integrate.solve_ivp, solve_ivp)
    )
    assert found.t.size == want.t.size > _step_loops.MOST_ROWS
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
    states = jitted(*point)
    for i, time in enumerate(point[-1]):  # they move with output times by the equation, not by the extension's slope
        want = oscillator(time, states[:, i], 3.0) - 0.2 * states[:, i]
        np.testing.assert_allclose(back[-1][:, i, i], want, rtol=1e-10)


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


@pytest.mark.long
def test_derivatives_to_third_order_are_those_of_the_solution():
    x, direction = np.array([0.7, 0.2]), np.array([1.0, -0.3])
    found, want = logistic_end(1e-6), logistic
    for rtol in (1e-4, 1e-3, 1e-2, 0.1):
        np.testing.assert_allclose(found(x), want(x), rtol=rtol)
        found, want = wg.jit(along(found, direction)), along(want, direction)
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
        single_lane = wg.jit(function)
        singles = [single_lane(*x) for x in zip(starts, rates, strict=True)]
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
        with pytest.warns(UserWarning, match="none of the output times was reached"):
            none = solve_ivp(lambda t, y: y * np.nan, (0.0, 1.0), [1.0], t_eval=[0.0, 1.0], dense_output=True)
    assert lost.status == -1
    assert (none.t.shape, none.y.shape) == ((0,), (1, 0))
    few = solve_ivp(lambda t, y: -y, (0.0, 10.0), [1.0], max_steps=3, max_step=0.01)
    assert few.status == -1
    assert "the next one was to take 0.01." in few.message
    place = r'max_steps .* ended at t = \d\.\d+, the next .* asked for in File ".*test_initial_value.py", line \d+'
    assert re.search(place, few.message)
    assert few.t[-1] < 10.0


def missing(t, y):
    return y[:1]


def changing(t, y):
    return y[0] - 0.5


changing.reset = lambda t, y: -y


@together(
    "error, text, arguments",
    [
        (ShapeError, "fun returned shape (1,) for a state of 2 numbers", {"fun": missing}),
        (ShapeError, "y0 of shape (1, 2)", {"y0": [[1.0, 2.0]]}),
        (ShapeError, "1 numbers for t_span", {"t_span": [1.0]}),
        (ShapeError, "atol of shape (3,)", {"atol": np.ones(3)}),
        (DtypeError, "fun returned dtype complex128", {"fun": lambda t, y: 1j * y}),
        (DtypeError, "something that can be called", {"fun": 3.0}),
        (UsageError, "one of RK23, RK45", {"method": "euler"}),
        (UsageError, "gradient='discrete' for method 'LSODA', whose", {"method": "LSODA", "gradient": "discrete"}),
        (UsageError, "a complex y0 for method 'LSODA'", {"method": "LSODA", "y0": [1j]}),
        (UsageError, "a mass matrix for method 'LSODA'", {"method": "LSODA", "mass": np.eye(2)}),
        (UsageError, "an event with reset for method 'LSODA'", {"method": "LSODA", "events": changing}),
        (UsageError, "step=None for method 'Euler'; the size of its steps is needed", {"method": "Euler"}),
        (UsageError, "step=0.1 for method 'RK45'; a method of steps of one size", {"step": 0.1}),
        (UsageError, "-1 for step; more than 0", {"method": "RK4", "step": -1}),
        (UsageError, "max_step beside step", {"method": "RK4", "step": 0.1, "max_step": 1.0}),
        (ShapeError, "a state of 1 numbers for method 'Verlet'", {"method": "Verlet", "step": 0.1, "y0": [1.0]}),
        (UsageError, "1.5 among t_eval; times between t0 = 0 and t1 = 1", {"t_eval": [0.5, 1.5]}),
        (UsageError, "do not follow each other", {"t_eval": [0.6, 0.5]}),
        (UsageError, "NaN or infinity among y0", {"y0": [1.0, np.nan]}),
        (UsageError, "for rtol", {"rtol": -1.0}),
        (UsageError, "first_step=3 for an interval of length 1", {"first_step": 3.0}),
        (UsageError, "for args; a tuple is needed", {"args": 3.0}),
        (
            UsageError,
            "jac_sparsity beside lband or uband; one",
            {"method": "BDF", "lband": 1, "jac_sparsity": np.eye(2)},
        ),
        (ShapeError, "jac_sparsity of shape (3, 3) for a state of 2", {"method": "BDF", "jac_sparsity": np.eye(3)}),
        (ShapeError, "Element (uband + i - j, j) is d fun", {"method": "BDF", "lband": 0, "jac": np.eye(2)}),
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


def sensitive_total(x, gradient):
    options = {"t_eval": [0.5, x[2]], "rtol": 1e-3, "method": "RK23", "gradient": gradient}
    found = solve_ivp(lambda t, y, k: k * y * (1 - y), (0.0, x[2]), x[:1], args=(x[1],), **options)
    return np.sum(found.y**2)


def test_sensitivities_give_the_derivatives_of_the_steps():
    x = np.array([0.2, 0.7, 2.0])
    one, other = (functools.partial(sensitive_total, gradient=gradient) for gradient in ("forward", "discrete"))
    want = wg.jit(wg.grad(other))(x)
    np.testing.assert_allclose(wg.grad(one)(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.grad(wg.jit(one))(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(one)))(x[None])[0], want, rtol=1e-12)


@pytest.mark.long
def test_second_derivatives_by_sensitivities_are_those_of_the_steps():
    x, direction = np.array([0.2, 0.7, 2.0]), np.array([1.0, -0.5, 2.0])
    one, other = (functools.partial(sensitive_total, gradient=gradient) for gradient in ("forward", "discrete"))
    exact = wg.jit(along(wg.grad(other), direction))(x)
    for second in (along(wg.grad(one), direction), wg.grad(along(one, direction))):
        np.testing.assert_allclose(wg.jit(second)(x), exact, rtol=1e-11)


def test_ends_move_solutions_of_several_steps_as_the_equation_does():
    options = {"method": "BDF", "rtol": 1e-7, "atol": 1e-7}
    end = lambda t: solve_ivp(oscillator, (t[0], t[1]), START, args=(2.0,), t_eval=[t[1]], **options).y[:, -1]
    times, matrix = np.array([0.2, 1.5]), np.array([[0.0, 1.0], [-2.0, 0.0]])
    by_t0, by_t1 = wg.jit(wg.jacrev(end))(times).T
    np.testing.assert_allclose(by_t1, oscillator(1.5, end(times), 2.0), rtol=1e-4)
    np.testing.assert_allclose(by_t0, -scipy.linalg.expm(1.3 * matrix) @ oscillator(0.2, START, 2.0), rtol=1e-4)


def test_sizes_of_steps_may_have_any_dtype():
    for options in ({"method": "Euler", "step": np.int8(1)}, {"first_step": np.float32(1.0), "rtol": 9.0}):
        assert solve_ivp(lambda t, y: -y, (0.0, 2.0), [1.0], **options).t[1] == 1.0


@pytest.mark.parametrize(("method", "order"), [("Euler", 1), ("Heun", 2), ("RK4", 4), ("Verlet", 2)])
def test_steps_of_one_size_have_their_order(method, order):
    def end(x, step):
        swing = lambda t, y: np.stack([y[1], -x[0] * y[0]])
        return solve_ivp(swing, (0.0, 2.0), x[1:], method, t_eval=[1.03, 2.0], step=step)

    x, times = np.array([1.0, 1.0, 0.0]), np.array([1.03, 2.0])
    found = end(x, 0.1)
    evaluations = {"Euler": 1, "Heun": 2, "RK4": 4, "Verlet": 3}[method]
    assert (found.nfev, found.status) == (1 + 20 * evaluations, 0)
    want = -0.5 * np.sum(times * np.sin(times)), np.sum(np.cos(times)), np.sum(np.sin(times))
    gradient = wg.jit(wg.grad(lambda x, step: np.sum(end(x, step).y[0])))
    errors = [np.linalg.norm(gradient(x, step) - want) for step in (0.1, 0.05)]
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), order, atol=0.1)


def test_verlets_order_holds_for_slopes_that_depend_on_both_halves():
    slope = lambda t, y: [y[1] + 0.1 * y[0], np.cos(t) - y[0] - 0.5 * y[1] ** 3]
    exact = solve_ivp(slope, (0.0, 2.0), [1.0, 0.5], "DOP853", [2.0], rtol=1e-12, atol=1e-12).y
    ends = [solve_ivp(slope, (0.0, 2.0), [1.0, 0.5], "Verlet", [2.0], step=step).y for step in (0.05, 0.025)]
    errors = np.array([np.abs(y - exact) for y in ends])
    np.testing.assert_allclose(np.log2(errors[0] / errors[1]), 2, atol=0.2)


@pytest.mark.long
def test_odeint_returns_what_scipy_returns(monkeypatch):
    times = [0.0, 1.0, 1.0, 3.0]
    early, options = (lambda y, t, p: lotka(t, y, p)), {"args": (RATES,), "full_output": True}
    (want, _), (found, taken) = (solve(early, START, times, **options) for solve in (scipy.integrate.odeint, odeint))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    assert taken["nfe"][-1] == 8 * taken["nje"][-1] + 2
    total = lambda solve, p, **options: np.sum(solve(lotka, START, [3.0, 0.0], (p,), tfirst=True, **options)[-1])
    steps = 1e-4 * np.eye(4)
    exact = lambda p: total(scipy.integrate.odeint, p, rtol=1e-12, atol=1e-12)
    differences = [(exact(RATES + step) - exact(RATES - step)) / 2e-4 for step in steps]
    np.testing.assert_allclose(wg.grad(lambda p: total(odeint, p))(RATES), differences, rtol=1e-5)
    ends = [odeint(lambda y, t, k=k: -k[0] * y, 1.0, [0.0, 1.0])[-1, 0] for k in ([1.0], [2.0])]
    np.testing.assert_allclose(ends, np.exp([-1.0, -2.0]), rtol=1e-5)
    monkeypatch.setattr(_programs, "PROGRAMS", _programs.FunctionCache(8))
    held = lambda k: odeint(lambda y, t: -k * y, 1.0, [0.0, 1.0])[-1, 0]
    np.testing.assert_allclose([held(1.0), held(2.0)], ends, rtol=1e-5)  # by one program
    assert len(_programs.PROGRAMS.known) == 1
    for crossed in (None, [1.0]):  # each of the times that repeat has a derivative of its own
        decay = functools.partial(lambda crossed, t: odeint(lambda y, t: -y, 1.0, t, tcrit=crossed)[:, 0], crossed)
        rows = np.array([[0.0, 0, 0, 0, 0], [1, -1, 0, 0, 0], [1, 0, -1, 0, 0], [1, 0, 0, -1, 0], [1, 0, 0, 0, -1]])
        times = np.array([0.0, 0.0, 1.0, 1.0, 2.0])
        for derivative in (wg.jacobian, wg.jacfwd):
            np.testing.assert_allclose(derivative(decay)(times), np.exp(-times[:, None]) * rows, rtol=1e-5, atol=1e-7)
    found = wg.grad(lambda a: odeint(lambda y, t: [-y[0], -2 * y[1]], [a, 3.0], [0.0, 1.0])[-1, 0])(2.0)
    np.testing.assert_allclose(found, np.exp(-1.0), rtol=1e-5)
    jump = lambda y, t: np.where(t < 0.5, -1.0, 2.0) * np.ones(2) - y[::-1]
    jumps = {"tcrit": [0.5, 7.0], "ml": 1, "mu": 1}
    want, found = (solve(jump, START, [0.0, 0.2, 1.0], **jumps) for solve in (scipy.integrate.odeint, odeint))
    np.testing.assert_allclose(found, want, rtol=1e-6)
    with pytest.raises(UsageError, match=r"odeint: a Tensor for tcrit, .*; numbers are needed. Let jumps be events"):
        wg.grad(lambda c: odeint(jump, START, [0.0, 1.0], tcrit=c)[-1, 0])(0.5)
    with pytest.raises(UsageError, match="odeint: times in t that do not follow each other"):
        odeint(early, START, [0.0, 1.0, 0.5], (RATES,))
    with pytest.raises(ShapeError, match="odeint: t without a time; one time at least is needed"):
        odeint(early, START, [])
    for text, most, places in (("Required step size", 0, [2]), ("The solver took max_steps", 1, [1, 2])):
        with np.errstate(all="ignore"), pytest.warns(scipy.integrate.ODEintWarning, match=f"odeint: {text}"):
            lost = odeint(lambda y, t: y**2, 1.0, [0.0, 0.5, 2.0], mxstep=most)
        assert np.flatnonzero(np.isnan(lost[:, 0])).tolist() == places


@pytest.mark.parametrize("times", [None, [1.0]])
def test_integrations_that_fail_at_once_move_with_nothing_but_their_beginning(times):
    """Where the slope is infinite, zero times a derivative is none."""

    def total(y0, scale):
        slope = lambda t, y, scale: -scale * np.sinh(scale * y)
        return np.sum(solve_ivp(slope, (0.0, 1.0), y0, t_eval=times, args=(scale,)).y)

    nothing = contextlib.nullcontext() if times is None else pytest.warns(UserWarning, match="none of .* at t = 0, the")
    with np.errstate(all="ignore"), nothing:
        by_start, by_scale = wg.grad(total, (0, 1))(np.array([900.0, -6.0]), 2.0)
    np.testing.assert_array_equal(by_start, np.full(2, float(times is None)))
    assert by_scale == 0


def test_states_that_were_not_reached_have_no_derivatives():
    times = np.array([0.5, 2.0])

    def states(scale, times=times):
        return solve_ivp(lambda t, y: scale * y**2, (0.0, 2.0), [1.0], "RK23", times).y[0]

    def slopes(scale):
        by_both = wg.grad(lambda *at: np.sum(states(*at)), (0, 1))(scale, times)
        return wg.jacfwd(states)(scale), *by_both, wg.grad(left_out)(scale)

    left_out = lambda scale: np.nansum(states(scale))
    with np.errstate(all="ignore"), pytest.warns(UserWarning, match=r"1 of 2 output times were .* ended at t = 1\.00"):
        eager = wg.grad(left_out)(1.0)
    each, total, by_times, known = wg.jit(slopes)(1.0)
    np.testing.assert_allclose(each, [eager, np.nan], rtol=1e-12)
    np.testing.assert_allclose([total, known], [np.nan, eager], rtol=1e-12)
    np.testing.assert_allclose(by_times, [4.0, np.nan], rtol=1e-2)


def test_errors_of_functions_end_an_integration_at_once(capsys):
    def slope(t, y, k):
        print("called")
        raise TypeError("no such unit")

    with pytest.raises(TypeError, match="no such unit"):
        solve_ivp(slope, (0.0, 1.0), [1.0], args=(2.0,))
    assert capsys.readouterr().out == "called\n"


def test_fixed_steps_end_where_states_do():
    with np.errstate(all="ignore"):
        blown_up = solve_ivp(lambda t, y: y**2, (0.0, 2.0), [1.0], "RK4", step=0.01)
    assert blown_up.status == -1
    assert blown_up.message.startswith("The state is infinite or not a number after the step at t = 1.0")


def test_numbers_that_functions_read_twice_have_derivatives():
    def end(rate):  # a Tensor without axes is one argument of the program, here read in three places
        slope = lambda t, y, first, second: -(rate + first + second) * y
        return solve_ivp(slope, (0.0, 1.0), [1.0], args=(rate, rate), t_eval=[1.0], rtol=1e-8).y[0, 0]

    for derivative in (wg.grad, wg.jacfwd):
        assert derivative(end)(0.1) == pytest.approx(-3 * np.exp(-0.3), rel=1e-6)


def test_sensitivities_in_many_lanes_read_parameters_that_are_stacked():
    def end(p):  # five columns of 64 lanes are stored where they go in the array of all parameters
        slope = lambda t, y, a, b, c, d, e: [-a * y[0] / (b + y[0]) * c - d * y[0] + e]
        options = {"method": "RK23", "t_eval": [1.0], "args": tuple(p[i] for i in range(5)), "gradient": "forward"}
        return solve_ivp(slope, (0.0, 1.0), [1.0], **options).y[0, 0]

    lanes = 1.0 + np.random.default_rng(0).uniform(size=(64, 5))
    np.testing.assert_allclose(wg.vmap(wg.grad(end))(lanes)[7], wg.grad(end)(lanes[7]), rtol=1e-12)


@pytest.mark.long
def test_derivatives_that_grow_with_explicit_steps_are_warned_of():
    """Where equations are stiff, what steps amplify shows in derivatives, which others that take them do not have."""

    def end(start, method="RK23", gradient="discrete", rate=300.0):
        options = {"method": method, "t_eval": [2.0], "rtol": 1e-4, "atol": 1e-4, "gradient": gradient}
        return solve_ivp(lambda t, y: -rate * (y - np.cos(t)), (0.0, 2.0), start, **options).y[0, -1]

    text = r"^solve_ivp: derivatives by \d+ steps of 'RK23' grow .* of about 0\.008, up to t = 2, .* method='Rodas5P'"
    for derivative in (wg.grad(end), lambda x: wg.jvp(end, (x,), (np.ones(1),))[1]):
        with pytest.warns(UserWarning, match=text):
            assert abs(derivative(np.ones(1))) > 10
        _programs.PROGRAMS.known.clear()  # what was looked at is not looked at again
    quiet = [("RK23", "continuous", 300.0), ("Rodas5P", "discrete", 300.0), ("RK45", "discrete", 3.0)]
    for method, gradient, rate in quiet:
        assert abs(wg.grad(functools.partial(end, method=method, gradient=gradient, rate=rate))(np.ones(1))) < 0.1


def test_each_call_warns_of_its_arguments():
    options = {"method": "Euler", "step": 1e-3, "t_eval": [1e-3]}
    for more, text in (({"rtol": 1e-20}, "too small"), ({"lband": 1}, "no effect .* `lband`")):
        for _ in range(2):
            with pytest.warns(UserWarning, match=text):
                solve_ivp(lambda t, y: -y, (0.0, 1e-3), [1.0], **options, **more)


def test_derivatives_that_steps_do_not_resolve_are_warned_of(recwarn):
    def end(y, **options):
        pendulum = lambda t, y: [y[1], -np.sin(y[0])]
        return solve_ivp(pendulum, (0.0, 9.0), y, t_eval=[9.0], rtol=1e-8, **options).y[0, 0]

    thrown = lambda g: solve_ivp(lambda t, y: [y[1], -g], (0.0, 1.0), [0.0, 1.0], t_eval=[1.0]).y[0, 0]
    end(np.zeros(2))
    wg.grad(end)(np.array([1.0, 0.0]))
    assert wg.grad(thrown)(9.81) == pytest.approx(-0.5)
    assert not len(recwarn)
    with pytest.warns(UserWarning, match=r"^solve_ivp: \d+ steps were taken, as .* Pass max_step, about 0\.\d+$"):
        wg.grad(end)(np.zeros(2))
    found = wg.grad(lambda y: end(y, max_step=0.1))(np.zeros(2))
    np.testing.assert_allclose(found, [np.cos(9.0), np.sin(9.0)], rtol=1e-6)


@pytest.mark.parametrize(("method", "width"), [("RK45", 0.0), ("BDF", 0.0), ("RK45", 0.01)])
def test_jumps_of_the_slope_are_warned_of_where_derivatives_are_taken(recwarn, method, width):
    def slope(t, y, k):
        return -y + (np.tanh((t - k) / width) if width else np.where(t < k, -1.0, 1.0))

    end = lambda k: solve_ivp(slope, (0.0, 1.0), [0.5], method, [1.0], args=(k,), rtol=1e-6).y[0, 0]
    end(0.3)
    assert not len(recwarn)
    wg.grad(end)(0.3)
    texts = [str(warning.message) for warning in recwarn if warning.filename == __file__]
    wanted = r"solve_ivp: the right-hand side jumps at t = 0\.3, over which .* two calls with the function of each side"
    assert len(texts) == (not width)
    assert all(re.fullmatch(wanted, text) for text in texts)


def test_slopes_that_are_not_defined_behind_the_end_are_looked_at_without_warnings(recwarn):
    end = lambda p: solve_ivp(lambda t, y: p * np.sqrt(2 - t) * y, (0.0, 2.0), [1.0], "Radau", [2.0], rtol=1e-8)
    assert wg.grad(lambda p: end(p).y[0, 0])(1.0) == pytest.approx(12.4270, rel=1e-4)
    assert not len(recwarn)


def test_roots_that_are_steep_at_zero_are_no_jumps():
    jump = lambda slope: jump_in(0.0, 1.0, np.zeros(1), lambda t, y: np.array([slope(t)]))
    for smooth in (np.sqrt, np.cbrt, lambda t: t**0.1, lambda t: np.log(t + 1e-12), np.cos):
        assert jump(smooth) is None
    assert jump(lambda t: np.sqrt(t) + (t > 0.3)) == pytest.approx(0.3, rel=1e-5)


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (ShapeError, "event 0 returned shape (2,)", {"events": lambda t, y: y}),
        (DtypeError, "event 0 returned a truth", {"events": lambda t, y: y[0] < 0.5}),
        (UsageError, "fun that returned None", {"fun": lambda t, y: None}),
        (UsageError, "-1 for terminal", {"events": "negative"}),
        (UsageError, "a mass matrix for method 'RK45'", {"mass": np.eye(2)}),
        (ShapeError, "jac of shape (1, 2)", {"jac": [[1.0, 2.0]], "method": "Radau"}),
        (ShapeError, "jac of shape (2,)", {"jac": lambda t, y: y, "method": "Radau"}),
        (UsageError, "a complex y0 for method 'Radau'", {"y0": [1j, 0.0], "method": "Radau"}),
        (ShapeError, "mass of shape (2,)", {"mass": [1.0, 1.0], "method": "Rodas5P"}),
    ],
)
def test_errors_of_events_and_masses(error, text, options):
    if options.get("events") == "negative":
        event = lambda t, y: y[0]
        event.terminal = -1
        options = {"events": event}
    with pytest.raises(error) as caught:
        solve_ivp(**{"fun": lambda t, y: -y, "t_span": (0.0, 1.0), "y0": [1.0, 2.0], **options})
    assert text in str(caught.value)


@pytest.mark.parametrize(("method", "sizes"), [("Heun", {"step": 0.3}), ("RK45", {"first_step": 0.1, "max_step": 0.2})])
def test_sizes_of_steps_are_held_constant_in_derivatives(method, sizes):
    def end(sizes):
        return solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], method, t_eval=[0.7, 1.0], **sizes).y

    for derivative in (wg.jacobian(end), wg.jacfwd(end), wg.jit(wg.jacobian(end))):
        assert all(not np.any(x) for x in derivative(sizes).values())
