"""`solve_ivp`: SciPy's steps and results, and derivatives in every mode by all that they depend on."""

import functools
import types
import weakref

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError, NumericalError, ShapeError, UsageError
from wengert.scipy.integrate import _programs, odeint, solve_ivp
from wengert.scipy.integrate._methods import jacobian_matrices
from wengert.scipy.integrate._methods.jacobian_matrices import BandedMatrices, FullMatrices
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.testing import check_grads
from wengert.transforms.outer_values import FunctionCache

START = np.array([2.0, 1.0])
RATES = np.array([1.1, 0.4, 0.4, 0.1])


def along(function, direction):
    """Return the derivative of a function along a direction, which takes less than all of them."""
    return lambda x: wg.jvp(function, (x,), (direction,))[1]


def lotka(t, y, p):
    return [p[0] * y[0] - p[1] * y[0] * y[1], -p[2] * y[1] + p[3] * y[0] * y[1]]


def oscillator(t, y, k):
    return np.stack([y[1], -k * y[0] + 0.1 * np.sin(t)])


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
    monkeypatch.setattr(_programs, "PROGRAMS", _programs.FunctionCache(8))

    def end(k, power, table):
        model = lambda y: table["rate"] * k * y**power
        return solve_ivp(lambda t, y: -SCALE * model(y), (0.0, 1.0), [1.0], rtol=1e-6).y[0, -1]

    found = [end(k, 1, {"rate": np.float64(0.5)}) for k in (1.0, 2.0)]
    np.testing.assert_allclose(found, np.exp([-1.0, -2.0]), rtol=1e-5)
    monkeypatch.setattr(f"{__name__}.SCALE", 4.0)
    np.testing.assert_allclose(end(1.0, 1, {"rate": np.float64(0.5)}), np.exp(-2.0), rtol=1e-5)
    (program,) = _programs.PROGRAMS.known.values()
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


STATE = {"rate": 1.0}


class Answering:
    def __getattr__(self, name):
        return STATE[name]


class Base:
    rate = 1.0


class Derived(Base):
    def __mul__(self, y):
        return Base.rate * y


def with_attribute(t, y):
    return with_attribute.rate * y


def in_module(module):
    return lambda t, y: module.rate * y


def twice(rate):
    """Return a slope that reads a function by a variable and by a default, and what sets the number that it holds."""

    def half(y):
        return rate * y / 2

    def set_rate(value):
        nonlocal rate
        rate = value

    return lambda t, y, other=half: half(y) + other(y), set_rate


ANSWERING, DERIVED, BUFFER = Answering(), Derived(), bytearray([1])
MODULE, (TWICE, SET_RATE) = types.ModuleType("rates"), twice(1.0)
MASKED = np.ma.array([1.0, 0.0], mask=[False, True])
VIEW, REFERENCE, PROXY = memoryview(BUFFER), weakref.ref(Derived), types.MappingProxyType(STATE)


@pytest.mark.parametrize(
    "slope",
    [
        with_attribute,
        wg.checkpoint(with_attribute),
        lambda t, y: ANSWERING.rate * y,
        lambda t, y: DERIVED * y,
        lambda t, y: REFERENCE().rate * y,
        lambda t, y: float(VIEW[0]) * y,
        lambda t, y: PROXY["rate"] * y,
        in_module(MODULE),
        lambda t, y, modules=[MODULE]: modules[0].rate * y,
        TWICE,
        lambda t, y: MASKED.sum() * y,
    ],
)
def test_no_program_outlives_what_it_read(slope):
    for rate in (1.0, 2.0):
        with_attribute.rate = Base.rate = STATE["rate"] = rate
        BUFFER[0], MASKED[0], MODULE.rate = int(rate), rate, rate
        SET_RATE(rate)
        found = solve_ivp(slope, (0.0, 0.1), [1.0], rtol=1e-3).y[0, -1]
        np.testing.assert_allclose(found, np.exp(0.1 * rate), rtol=1e-3)


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
        (UsageError, "RK4, Verlet is needed. Pass method='BDF' for large systems", {"method": "LSODA"}),
        (UsageError, "step=None for method 'Euler'; the size of its steps is needed", {"method": "Euler"}),
        (UsageError, "step=0.1 for method 'RK45'; a method of steps of one size", {"step": 0.1}),
        (UsageError, "-1 for step; more than 0", {"method": "RK4", "step": -1}),
        (UsageError, "max_step beside step", {"method": "RK4", "step": 0.1, "max_step": 1.0}),
        (ShapeError, "a state of 1 numbers for method 'Verlet'", {"method": "Verlet", "step": 0.1, "y0": [1.0]}),
        (UsageError, "1.5 among t_eval; times between t0 = 0 and t1 = 1", {"t_eval": [0.5, 1.5]}),
        (UsageError, "do not follow each other", {"t_eval": [0.5, 0.5]}),
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


def robertson(t, y, p):
    slow, fast, back = p[0] * y[0], p[1] * y[1] * y[1], p[2] * y[1] * y[2]
    return [back - slow, slow - back - fast, fast]


def conserved(t, y, p):
    return [*robertson(t, y, p)[:2], y[0] + y[1] + y[2] - 1.0]


KINETICS = np.array([0.04, 3e7, 1e4])


def test_stiff_equations_and_algebraic_ones_have_the_same_derivatives():
    """The third of Robertson's equations is that of what is conserved; differences of the gradient are the Hessian."""

    def end(scale, slope=robertson, mass=None):
        options = {"method": "Rodas5P", "t_eval": [4.0], "rtol": 1e-3, "atol": 1e-6, "mass": mass}
        return solve_ivp(slope, (0.0, 4.0), [1.0, 0.0, 0.0], args=(KINETICS * scale,), **options)

    found = end(np.ones(3))
    options = {"method": "Radau", "rtol": 1e-9, "atol": 1e-12, "args": (KINETICS,)}
    want = scipy.integrate.solve_ivp(robertson, (0.0, 4.0), [1.0, 0.0, 0.0], **options).y[:, -1]
    np.testing.assert_allclose(found.y[:, 0], want, rtol=1e-3)
    assert found.njev == found.nlu == (found.nfev - 2) // 8
    mass = np.diag([1.0, 1.0, 0.0])
    gradient, one, step = wg.jit(wg.grad(lambda scale: end(scale).y[0, 0])), np.ones(3), np.array([1e-3, 0.0, 0.0])
    direction = np.array([1.0, -2.0, 0.5])
    algebraic = wg.jit(along(lambda scale: end(scale, conserved, mass).y[0, 0], direction))
    np.testing.assert_allclose(algebraic(one), gradient(one) @ direction, rtol=1e-2)
    change = gradient(one + step) - gradient(one - step)
    np.testing.assert_allclose(2 * wg.jit(along(gradient, step))(one), change, rtol=0.05)


def rates(t, y, p):
    """Return the Jacobian of Robertson's equations by the state."""
    a, b, c, zero = p[0], 2 * p[1] * y[1], p[2] * y[2], 0.0 * y[0]
    return [[-a + zero, c, p[2] * y[1]], [a + zero, -c - b, -p[2] * y[1]], [zero, b, zero]]


@pytest.mark.parametrize(
    ("slope", "jac", "span", "start", "args", "options"),
    [
        (robertson, rates, (0.0, 400.0), [1.0, 0.0, 0.0], (KINETICS,), {"rtol": 1e-5, "atol": 1e-9, "max_step": 90.0}),
        (lambda t, y, k: -k * y, [[-30.0]], (2.0, 5.0), [1.0], (30.0,), {"first_step": 1.0}),
        (lambda t, y: 50 * (y - np.cos(t)), None, (3.0, 0.0), [2.0], (), {"dense_output": True}),
    ],
)
def test_steps_of_implicit_methods_are_those_of_scipy(slope, jac, span, start, args, options):
    for method in ("Radau", "BDF"):
        options = {"jac": jac, "args": args, **options, "method": method}
        want, found = (solve(slope, span, start, **options) for solve in (scipy.integrate.solve_ivp, solve_ivp))
        np.testing.assert_allclose(found.t, want.t, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(found.y, want.y, rtol=1e-6, atol=1e-10)
        same = ["nfev", "njev", "nlu", "status", "message"]
        assert [found[x] for x in same] == [want[x] for x in same]
        if want.sol is not None:
            np.testing.assert_allclose(found.sol(1.7), want.sol(1.7), rtol=1e-7)


def derivatives_along(function, direction, count):
    """Return a function that gives the first derivatives along a direction, the value first."""
    if count == 1:
        return lambda x: [function(x)]

    def all_of_them(x):
        values, changes = wg.jvp(derivatives_along(function, direction, count - 1), (x,), (direction,))
        return [*values, changes[-1]]

    return all_of_them


@pytest.mark.parametrize(
    ("method", "orders", "tolerance"), [("Radau", 4, 1e-6), ("BDF", 3, 1e-5), ("Kvaerno5", 2, 1e-4)]
)
def test_derivatives_of_implicit_methods_are_those_of_the_solution(method, orders, tolerance):
    """To the third order, though the stages are found by iterations; changes of the state by events restart them."""
    x, direction = np.array([0.7, 0.2]), np.array([1.0, -0.3])
    function = functools.partial(stiff_logistic, method, halved=False)
    found = wg.jit(derivatives_along(function, direction, orders))(x)
    for one, other in zip(found, derivatives_along(logistic, direction, orders)(x), strict=True):
        np.testing.assert_allclose(one, other, rtol=tolerance)
    halved = functools.partial(stiff_logistic, method, halved=True)
    np.testing.assert_allclose(wg.jit(wg.grad(halved))(x), wg.grad(halved_logistic)(x), rtol=tolerance)


SHUFFLED = np.random.default_rng(4).permutation(12)


def heated(t, y, p):
    """Return how a rod of two materials, whose points are in no order, heats up and reacts."""
    x = y[np.argsort(SHUFFLED)].reshape(6, 2)
    ends = np.concatenate([p[:1, None] * np.ones((1, 2)), x, np.cos(t) * np.ones((1, 2))])
    found = p[1] * (ends[:-2] - 2 * x + ends[2:]) + p[2] * np.flip(x, 1) * x
    return found.reshape(-1)[SHUFFLED]


@pytest.mark.parametrize("method", ["Rodas5P", "Radau", "BDF"])
def test_jacobians_of_few_elements_are_banded_by_themselves(method, monkeypatch):
    """In whatever order states are, with the steps of SciPy."""
    monkeypatch.setattr(_programs, "PROGRAMS", FunctionCache(4))
    p, y0, options = np.array([1.0, 9.0, -0.7]), np.linspace(0.5, 1.5, 12), {"rtol": 1e-2, "atol": 1e-2}
    own = method == "Rodas5P"
    want = scipy.integrate.solve_ivp(heated, (0.0, 0.02), y0, "Radau" if own else method, args=(p,), **options)
    found = solve_ivp(heated, (0.0, 0.02), y0, method, [0.02], args=(p,), **options)
    np.testing.assert_allclose(found.y[:, 0], want.y[:, -1], rtol=1e-3 if own else 1e-9)
    assert own or (found.njev, found.nlu) == (want.njev, want.nlu)
    assert {type(program.matrices) for program in _programs.PROGRAMS.known.values()} == {BandedMatrices}


CHAIN = np.diag(-2.0 * np.ones(12)) + np.eye(12, k=1) + np.eye(12, k=-1)


def cooled(t, y, k):
    return k * (CHAIN @ y) + np.cos(t)


@together(
    "options",
    [
        {"jac_sparsity": scipy.sparse.csr_array(CHAIN)},
        {"lband": 1, "uband": 1, "jac": lambda t, y, k: np.stack([k + 0 * y, -2 * k + 0 * y, k + 0 * y])},
        {"jac_sparsity": CHAIN, "mass": np.eye(12) + 0.3 * np.eye(12, k=4)},
    ],
)
def test_elements_of_jacobians_may_be_given(options):
    """Of what is multiplied by a matrix all elements are found, though it has zeros."""
    mass = options.get("mass", np.eye(12))
    rest = (0.0, 0.1), np.sin(1.0 + np.arange(12.0)), "BDF", [0.1]
    found = solve_ivp(cooled, *rest, args=(3.0,), rtol=1e-5, **options)
    want = scipy.integrate.solve_ivp(lambda t, y: np.linalg.solve(mass, cooled(t, y, 3.0)), *rest, rtol=1e-5)
    np.testing.assert_allclose(found.y, want.y, rtol=1e-4 if "mass" in options else 1e-10)


def test_elements_that_are_given_have_to_be_all():
    text = "say that there are none; all that may be other than zero are needed"
    options = {"method": "BDF", "args": (3.0,), "t_eval": [1.0], "lband": 1}
    with pytest.raises(UsageError, match=text):
        solve_ivp(cooled, (0.0, 1.0), np.ones(12), **options)


def test_banded_matrices_are_held_as_full_ones_are():
    """Solutions, and their derivatives in every mode, to the second order and in lanes."""
    slope = lambda t, y: heated(t, y, np.array([1.0, 9.0, -0.7]))
    y, full = np.linspace(0.5, 1.5, 12), FullMatrices()
    few = jacobian_matrices.matrices_for(find_pattern(lambda y: slope(0.0, y), (y,), (0,)))
    assert (few.below, few.above) == (2, 2)

    def found(matrices, y, count):
        states = [y + i for i in range(count)]
        jacobians = np.stack([matrices.jacobian(slope, 0.1, state) for state in states])
        weights = 0.1 * np.arange(count * count).reshape(count, count) - 0.5
        own, matrix = matrices.of_stages(3.0 * matrices.identity(jacobians[0]), weights, jacobians)
        return own.solve(own.factors(wg.stop_gradient(matrix)), matrix, np.concatenate(states))

    for count in (1, 2):
        one, other = (functools.partial(found, matrices, count=count) for matrices in (few, full))
        np.testing.assert_allclose(one(y), other(y))
        np.testing.assert_allclose(wg.jacfwd(one)(y), wg.jacrev(one)(y), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(wg.jacrev(one)(y), wg.jacrev(other)(y), rtol=1e-9, atol=1e-12)
        total = lambda function: wg.vmap(wg.hessian(lambda y: np.sum(function(y) ** 2)))(np.stack([y, 2 * y]))
        np.testing.assert_allclose(total(one), total(other), rtol=1e-8, atol=1e-12)


def test_sensitivities_give_the_derivatives_of_the_steps():
    def total(x, gradient):
        options = {"t_eval": [0.5, x[2]], "rtol": 1e-3, "method": "RK23", "gradient": gradient}
        found = solve_ivp(lambda t, y, k: k * y * (1 - y), (0.0, x[2]), x[:1], args=(x[1],), **options)
        return np.sum(found.y**2)

    x = np.array([0.2, 0.7, 2.0])
    one, other = (functools.partial(total, gradient=gradient) for gradient in ("forward", "discrete"))
    want = wg.jit(wg.grad(other))(x)
    np.testing.assert_allclose(wg.grad(one)(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.grad(wg.jit(one))(x), want, rtol=1e-12)
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(one)))(x[None])[0], want, rtol=1e-12)
    direction = np.array([1.0, -0.5, 2.0])
    second, exact = (wg.jit(along(wg.grad(function), direction))(x) for function in (one, other))
    np.testing.assert_allclose(second, exact, rtol=1e-11)


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


def test_odeint_returns_what_scipy_returns():
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
    with np.errstate(all="ignore"), pytest.warns(scipy.integrate.ODEintWarning, match="odeint: Required step size"):
        lost = odeint(lambda y, t: y**2, 1.0, [0.0, 0.5, 2.0])
    assert np.isnan(lost[:, 0]).tolist() == [False, False, True]


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


def halved_logistic(x):
    odds = x[1] / (1 - x[1]) * np.exp(2.0 * x[0]) / 3
    return odds / (1 + odds)


def stiff_logistic(method, x, halved):
    """Return the end of y' = k y (1 - y), whose state may be halved where it gets to a half."""
    event = lambda t, y: y[0] - 0.5
    event.direction = 1
    event.reset = lambda t, y: 0.5 * y
    mass = None if method == "BDF" else np.array([[2.0]])
    slope = lambda t, y: (1.0 if mass is None else 2.0) * x[0] * y * (1 - y)
    options = {"t_eval": [2.0], "rtol": 1e-8, "atol": 1e-8, "method": method, "mass": mass}
    return solve_ivp(slope, (0.0, 2.0), x[1:], events=event if halved else None, **options).y[0, 0]


def test_the_extension_of_rodas_has_its_order():
    slope = lambda t, y: np.stack([y[1], -y[0] * (1 + 0.1 * np.sin(t))])
    errors = []
    for h in (0.4, 0.1):
        places = np.array([0.3, 0.7, 1.0]) * h
        options = {"method": "Rodas5P", "first_step": h, "rtol": 10.0, "atol": 10.0, "t_eval": places}
        found = solve_ivp(slope, (0.0, h), [1.0, 0.3], **options)
        want = scipy.integrate.solve_ivp(slope, (0.0, h), [1.0, 0.3], method="DOP853", rtol=1e-13, t_eval=places)
        errors.append(np.abs(found.y - want.y).max(axis=1))
    assert np.all(errors[0] > 4.0**4.7 * errors[1])


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


def bounced(x):
    """Return the bounces of a ball that keeps a part of its speed at each, and where it is after four seconds."""
    event = lambda t, y, g: y[0]
    event.direction = -1
    event.reset = lambda t, y, g: [0.0 * y[0], -x[1] * y[1]]
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


def test_singular_masses_of_methods_that_start_with_a_rate():
    """The matrix mixes the equations; at an event the state changes to another one that satisfies them."""

    def end(x, method="BDF"):
        halve = lambda t, y: y[0] - 0.5 * x[0]
        halve.reset, halve.direction = lambda t, y: 0.5 * y, -1
        slope = lambda t, y: [-x[1] * y[0] * 2, y[1] - y[0] * t - x[1] * y[0] * 2]
        options = {"mass": np.array([[2.0, 0.0], [2.0, 0.0]]), "t_eval": [1.0], "rtol": 1e-7, "atol": 1e-8}
        return solve_ivp(slope, (0.0, 1.0), np.stack([x[0], 0 * x[0]]), method, events=halve, **options).y[:, 0]

    x, direction = np.array([1.0, 0.9]), np.array([0.3, 1.0])
    exact = lambda x: np.stack([x[0], x[0]]) * np.exp(-x[1]) / 2
    want = wg.jvp(exact, (x,), (direction,))
    for one, other in zip(wg.jit(lambda x: wg.jvp(end, (x,), (direction,)))(x), want, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    np.testing.assert_allclose(end(x, "Kvaerno5"), want[0], rtol=1e-5)


def test_complex_states_of_implicit_methods():
    slope, options = (lambda t, y, k: [1j * k * y[0] + y[1], -k * y[1] + 0.1j * y[0]]), {"rtol": 1e-6, "atol": 1e-6}
    span, start = (0.0, 1.0), [1.0 + 0j, 0.5j]
    want, found = (
        solve(slope, span, start, "BDF", args=(1.3,), **options) for solve in (scipy.integrate.solve_ivp, solve_ivp)
    )
    np.testing.assert_allclose(found.y, want.y, rtol=1e-8)
    assert [found[x] for x in ("nfev", "njev", "nlu")] == [want[x] for x in ("nfev", "njev", "nlu")]

    def end(k, method):
        last = solve_ivp(slope, span, start, method, t_eval=[1.0], args=(k,), **options).y[:, 0]
        return last[0].real + 2 * last[1].imag

    want = wg.jit(wg.grad(lambda k: end(k, "RK45")))(1.3)
    np.testing.assert_allclose(wg.jit(wg.grad(lambda k: end(k, "BDF")))(1.3), want, rtol=1e-4)


def test_integrations_end_where_events_accumulate():
    event = lambda t, y, kept: y[0]
    event.direction, event.reset = -1, lambda t, y, kept: [0.0 * y[0], -kept * y[1]]

    def bounce(kept):
        slope = lambda t, y, kept: [y[1], -9.81]
        return solve_ivp(slope, (0.0, 3.0), [1.0, 0.0], args=(kept,), events=event, t_eval=[0.7, 3.0], rtol=1e-8)

    rest = np.sqrt(2 / 9.81) * 1.25 / 0.75
    found = bounce(0.25)
    assert (found.status, found.t.tolist()) == (-1, [0.7])
    assert found.message.startswith(f"Events accumulate at t = {rest:.6f}"[:-1])
    status, states = wg.jit(lambda kept: [bounce(kept)[key] for key in ("status", "y")])(0.25)
    assert status == -1
    assert np.isnan(states).tolist() == [[False, True]] * 2


def test_events_of_a_known_number_are_known_where_they_are_traced():
    third = lambda t, y, k: y[0]
    third.terminal = 3
    events = [third, lambda t, y, k: y[1]]
    for end, reached in ((5.0, 2), (9.0, 3)):
        solve = lambda y, end=end: solve_ivp(oscillator, (0.0, end), y, args=(1.0,), events=events, t_eval=[end])
        want = solve([1.0, 0.0]).t_events[0]
        found, other = wg.jit(lambda y, solve=solve: solve(y).t_events)(np.array([1.0, 0.0]))
        assert other is None
        assert len(want) == reached
        np.testing.assert_allclose(found, [*want, np.nan][:3], rtol=1e-12)


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


@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
def test_attempts_that_overflow_leave_derivatives_of_rodas5p_as_they_are():
    def end(rate):  # the first step is so long that its stages are exponentials of some thousands
        slope = lambda t, y, rate: -rate * (np.exp(y / 0.01) - 1.0)
        options = {"method": "Rodas5P", "t_eval": [0.8], "first_step": 2.0, "rtol": 1e-8, "atol": 1e-10}
        return solve_ivp(slope, (0.0, 2.0), [-1.0], args=(rate,), **options).y[0, 0]

    for derivative in (wg.grad, wg.jacfwd):
        assert derivative(end)(1.0) == pytest.approx(0.8, rel=1e-6)


def test_states_that_miss_algebraic_equations_are_refused():
    def end(y0, mass=((1.0, 0.0), (0.0, 0.0))):
        slope = lambda t, y: [-y[1], y[1] - y[0]]
        return solve_ivp(
            slope,
            (0.0, 1.0),
            y0,
            method="Rodas5P",
            mass=scipy.sparse.csr_array(np.array(mass)),
            t_eval=[1.0],
            rtol=1e-6,
        )

    np.testing.assert_allclose(end([1.0, 1.0]).y, np.full((2, 1), np.exp(-1)), rtol=1e-5)
    for run in (end, wg.jacobian(lambda y: end(y).y)):
        with pytest.raises(NumericalError, match=r"a residual of 4 in the algebraic equation 0 = fun\[1\]; one that"):
            run(np.array([1.0, 5.0]))
    with pytest.raises(NumericalError, match=r"0 = \(-0.894\) \* fun\[0\] \+ \(0.447\) \* fun\[1\]; one that"):
        end([1.0, 5.0], ((1.0, 0.0), (2.0, 0.0)))
    status, states = wg.jit(lambda y: [end(y)[key] for key in ("status", "y")])(np.array([1.0, 5.0]))
    assert status == -1
    assert np.isnan(states).all()


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


@pytest.mark.parametrize(
    ("error", "text", "options"),
    [
        (ShapeError, "event 0 returned shape (2,)", {"events": lambda t, y: y}),
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


# Functions that write to their arguments


@pytest.mark.parametrize("method", ["RK45", "Rodas5P"])
def test_what_functions_write_to_their_arguments_is_seen_by_that_call_alone(method):
    def slope(t, y, a):
        y *= a
        a *= 2.0
        return y

    def event(t, y, a):
        y -= a
        return y[0]

    def looking(t, y, a):
        return slope(t, y, a) * (1.0 if float(a[0]) > 0 else 0.0)

    for fun in slope, looking:
        a, y0 = np.array([2.0]), np.ones(1)
        found = solve_ivp(fun, (0.0, 1.0), y0, method, events=event, args=(a,), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(found.y[0, -1], np.exp(2.0), rtol=1e-6)
        np.testing.assert_allclose(found.t_events[0], [np.log(2.0) / 2.0], rtol=1e-6)
        assert (a[0], y0[0]) == (2.0, 1.0)


@pytest.mark.parametrize(("method", "sizes"), [("Heun", {"step": 0.3}), ("RK45", {"first_step": 0.1, "max_step": 0.2})])
def test_sizes_of_steps_are_held_constant_in_derivatives(method, sizes):
    def end(sizes):
        return solve_ivp(lambda t, y: -y, (0.0, 1.0), [1.0], method, t_eval=[0.7, 1.0], **sizes).y

    for derivative in (wg.jacobian(end), wg.jacfwd(end), wg.jit(wg.jacobian(end))):
        assert all(not np.any(x) for x in derivative(sizes).values())
