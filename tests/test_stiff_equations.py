"""Implicit methods of `solve_ivp`: steps, bands, masses, algebraic equations and derivatives."""

import copy
import functools
import pickle

import numpy as np
import pytest
import scipy.integrate
import scipy.sparse

import wengert as wg
from tests.cases import together
from tests.derivatives import along, derivatives_along
from tests.equations import logistic, robertson
from wengert.errors import NumericalError, UsageError
from wengert.graph import trace
from wengert.scipy.integrate import _programs, solve_ivp
from wengert.scipy.integrate._methods import matrix_choice
from wengert.scipy.integrate._methods.adaptive_steps import Control, Walk
from wengert.scipy.integrate._methods.element_matrices import BandedMatrices
from wengert.scipy.integrate._methods.jacobian_matrices import FullMatrices
from wengert.scipy.integrate._methods.methods_by_name import method_named
from wengert.scipy.integrate._right_hand_side import RightHandSide
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.transforms.function_cache import FunctionCache


def conserved(t, y, p):
    return [*robertson(t, y, p)[:2], y[0] + y[1] + y[2] - 1.0]


def halved_logistic(x):
    odds = x[1] / (1 - x[1]) * np.exp(2.0 * x[0]) / 3
    return odds / (1 + odds)


KINETICS = np.array([0.04, 3e7, 1e4])


@pytest.mark.long
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
        (lambda t, y: 1 - np.exp(y), lambda t, y: [-np.exp(y)], (0.0, 1.0), [3.0], (), {"first_step": 1.0}),
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
            pickled = pickle.loads(pickle.dumps(found)).sol
            assert pickled(1.7) == found.sol(1.7)
        if want.sol is not None and method == "BDF":
            change = wg.jvp(found.sol, (np.array([1.7]),), (np.ones(1),))[1]
            np.testing.assert_allclose(change, [slope(1.7, found.sol(1.7))], rtol=1e-12)
            np.testing.assert_array_equal(
                wg.jvp(copy.deepcopy(found.sol), (np.array([1.7]),), (np.ones(1),))[1], change
            )
            with pytest.raises(UsageError, match="pickled without its functions"):
                wg.jvp(pickled, (np.array([1.7]),), (np.ones(1),))
            assert wg.jvp(found.sol, (np.zeros(0),), (np.zeros(0),))[1].shape == (1, 0)


@pytest.mark.parametrize(
    ("method", "orders", "tolerance"),
    [
        pytest.param("Radau", 4, 1e-6, marks=pytest.mark.long),
        ("BDF", 3, 1e-5),
        pytest.param("Kvaerno5", 2, 1e-4, marks=pytest.mark.long),
    ],
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


@pytest.mark.parametrize("method", ["Rodas5P", "Radau"])
def test_jacobians_of_few_elements_are_banded_by_themselves(method, monkeypatch):
    """In whatever order states are, with the steps of SciPy."""
    monkeypatch.setattr(_programs, "PROGRAMS", FunctionCache(4))
    p, y0, options = np.array([1.0, 9.0, -0.7]), np.linspace(0.5, 1.5, 12), {"rtol": 1e-2, "atol": 1e-2}
    own = method == "Rodas5P"
    want = scipy.integrate.solve_ivp(heated, (0.0, 0.02), y0, "Radau" if own else method, args=(p,), **options)
    found = solve_ivp(heated, (0.0, 0.02), y0, method, [0.02], args=(p,), **options)
    np.testing.assert_allclose(found.y[:, 0], want.y[:, -1], rtol=1e-3 if own else 1e-9)
    assert own or (found.njev, found.nlu) == (want.njev, want.nlu)
    assert {type(kept.made.matrices) for kept in _programs.PROGRAMS.known.values()} == {BandedMatrices}


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
    few = matrix_choice.matrices_for(find_pattern(lambda y: slope(0.0, y), (y,), (0,)))
    assert (few.below, few.above) == (2, 2)
    matrix = np.tril(full.jacobian(slope, 0.1, y), 1)
    lower = matrix_choice.matrices_for(find_pattern(lambda y: matrix @ y, (y,), (0,)))
    turned, elements = lower.transpose, lower.transpose.of_user(matrix.T)
    np.testing.assert_array_equal(turned.jacobian(lambda t, y: matrix.T @ y, 0.0, y), elements)
    np.testing.assert_allclose(turned.solve(turned.factors(elements), elements, y), np.linalg.solve(matrix.T, y))

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


def stiff_logistic(method, x, halved):
    """Return the end of y' = k y (1 - y), whose state may be halved at a half; else its beginning moves."""
    event = lambda t, y: y[0] - 0.5
    event.direction = 1
    event.reset = lambda t, y: 0.5 * y
    mass = None if method == "BDF" else np.array([[2.0]])
    slope = lambda t, y: (1.0 if mass is None else 2.0) * x[0] * y * (1 - y)
    times = np.array([0.0, 2.0]) if halved else np.stack([x[1], x[1] + 2.0])
    options = {"t_eval": times, "rtol": 1e-8, "atol": 1e-8, "method": method, "mass": mass}
    found = solve_ivp(slope, tuple(times), x[1:], events=event if halved else None, **options).y[0]
    return found[1] + 3.0 * (found[0] - x[1])


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


def test_stages_of_which_rounding_errors_are_left_are_found():
    slope = lambda t, y: np.stack([-0.1 * y[0] - 2.0 * y[1] + np.cos(t), 2.0 * y[0] - 0.1 * y[1]])
    options = {"rtol": 1e-12, "atol": 1e-12, "max_steps": 400}
    assert solve_ivp(slope, (0.0, 1.0), [1.4e3, 3.4e3], "Kvaerno5", **options).nfev < 2000


@pytest.mark.long
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


def test_slopes_that_are_constants_warn_nobody():
    end = lambda time: solve_ivp(lambda t, y: [2.0], (0.0, 1.0), [0.0], "Rodas5P", np.stack([time])).y[0, 0]
    np.testing.assert_allclose(wg.grad(end)(0.8), 2.0)


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


def test_what_radau_knows_of_steps_before_does_not_move():
    """Where a program goes on from a state, its memory is an input: Newton's method would move with it."""
    slope = RightHandSide(lambda t, y: -(y**2), (), np.ones(1), False, has_state_first=False)
    method, control = method_named("Radau"), Control(1e-3, 1e-6, np.inf, None, 9)
    walk = method.start(slope, Walk(0.0, np.ones(1), -np.ones(1), 0.1, False, 0, 0), 1.0, True, False)

    def after(y, stages):
        state = walk._replace(y=y, memory=walk.memory._replace(stages=stages, length=0.1))
        return np.sum(wg.fori_loop(0, 3, lambda _, now: method.try_step(slope, now, 1.0, control)[0], state).y)

    graph = trace(wg.grad(after, argnums=(0, 1)))(np.ones(1), np.full((3, 1), 0.1))
    assert str(graph).count("= while_loop") == 1


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:overflow encountered", "ignore:invalid value")
def test_attempts_that_overflow_leave_derivatives_as_they_are():
    def end(rates, first=2.0, method="Rodas5P"):
        # a first step of 2 is so long that its stages are exponentials of some thousands
        slope = lambda t, y: -(rates @ (np.exp(y / 0.01) - 1.0))
        options = {"method": method, "t_eval": [0.8], "first_step": first, "rtol": 1e-8, "atol": 1e-10}
        return solve_ivp(slope, (0.0, 2.0), [-1.0], **options).y[0, 0]

    rates = np.ones((1, 1))
    for derivative in (wg.grad, wg.jacfwd):
        np.testing.assert_allclose(derivative(end)(rates), [[0.8]], rtol=1e-6)
    along = lambda rates: wg.jvp(lambda own: end(own, 2.0, "RK45"), (rates,), (rates,))[1]
    np.testing.assert_allclose(wg.grad(along)(rates), [[0.8]], rtol=1e-5)
    lanes = lambda rates: np.sum(wg.vmap(lambda first: end(rates, first, "RK45"))(np.array([2.0, 0.01])))
    np.testing.assert_allclose(wg.grad(lanes)(rates), [[1.6]], rtol=1e-6)


def test_states_that_miss_algebraic_equations_are_refused():
    def end(y0, mass=((1.0, 0.0), (0.0, 0.0)), rate=1.0):
        slope = lambda t, y: [-y[1], rate * (y[1] - y[0])]
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
    assert np.isnan(wg.jit(wg.grad(lambda rate: end([1.0, 5.0], rate=rate).y[0, 0]))(1.0))
