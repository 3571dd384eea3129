"""`solve_bvp`: SciPy's results, and derivatives in both modes by all that they depend on."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import wengert as wg
from wengert.errors import NumericalError, ShapeError, UsageError
from wengert.scipy.integrate import solve_bvp

MESH = np.linspace(0.0, 1.0, 5)
FIRST = np.zeros((2, 5))


def bratu(k, length=1.0, height=0.0, **options):
    """Return the solution of u'' + k exp(u) = 0, u = height at both ends."""
    slopes = lambda x, y: np.stack([y[1], -k * np.exp(y[0])])
    ends = lambda ya, yb: np.stack([ya[0] - height, yb[0] - height])
    return solve_bvp(slopes, ends, MESH * length, FIRST, **{"tol": 1e-7, **options})


def highest(k):
    """Return the exact height in the middle."""
    root = scipy.optimize.brentq(lambda t: t - np.sqrt(2 * k) * np.cosh(t / 4), 0.0, 3.0, xtol=1e-15)
    return 2 * np.log(np.cosh(root / 4))


def test_solutions_are_those_of_scipy():
    slopes = lambda x, y: np.stack([y[1], -np.exp(y[0])])
    ends = lambda ya, yb: np.stack([ya[0], yb[0]])
    want = scipy.integrate.solve_bvp(slopes, ends, MESH, FIRST)
    found = solve_bvp(slopes, ends, MESH, FIRST)
    traced = wg.jvp(lambda k: bratu(k, tol=1e-3).sol(0.3, 1), (1.0,), (1.0,))[0]
    np.testing.assert_array_equal(found.x, want.x)
    np.testing.assert_allclose(found.y, want.y, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(traced, want.sol(0.3, 1), rtol=1e-12)
    assert (found.success, found.status, found.message) == (want.success, want.status, want.message)


def test_derivatives_to_the_third_order():
    """They are those of the exact solution, and forward mode gives what reverse mode does."""
    middle = lambda k: bratu(k).sol(0.5)[0]
    first, second = wg.grad(middle), wg.grad(wg.grad(middle))
    h = 1e-2
    np.testing.assert_allclose(first(1.0), (highest(1 + h / 4) - highest(1 - h / 4)) / (h / 2), rtol=1e-5)
    np.testing.assert_allclose(second(1.0), (highest(1 + h) - 2 * highest(1.0) + highest(1 - h)) / h**2, rtol=1e-4)
    np.testing.assert_allclose(wg.jvp(middle, (1.0,), (1.0,))[1], first(1.0), rtol=1e-10)
    np.testing.assert_allclose(wg.jvp(first, (1.0,), (1.0,))[1], second(1.0), rtol=1e-8)
    np.testing.assert_allclose(wg.hessian(middle)(1.0), second(1.0), rtol=1e-8)
    np.testing.assert_allclose(wg.grad(second)(1.0), (second(1.01) - second(0.99)) / 0.02, rtol=1e-3)
    push = wg.linearize(middle, 1.0)[1]
    np.testing.assert_allclose(wg.vmap(push)(np.array([1.0, 2.0])), first(1.0) * np.array([1.0, 2.0]), rtol=1e-10)


def test_derivatives_by_ends_conditions_and_whole_solutions():
    """The equation in x / length has k length^2 for k; a height beside is a factor of k, and is added."""
    middle = lambda k, length, height: bratu(k, length, height).sol(0.5 * length)[0]
    by_k = wg.grad(middle)(1.0, 1.0, 0.0)
    found = wg.grad(middle, argnums=(1, 2))(1.0, 1.0, 0.0)
    np.testing.assert_allclose(found, [2 * by_k, 1 + by_k], rtol=1e-6)
    rows = lambda k: bratu(k, tol=1e-3).y
    forward = wg.jvp(rows, (1.0,), (1.0,))[1]
    np.testing.assert_allclose(wg.jacobian(rows, mode="rev")(1.0), forward, rtol=1e-8, atol=1e-12)
    slopes = wg.jvp(lambda k: bratu(k, tol=1e-3).yp, (1.0,), (1.0,))[1]
    np.testing.assert_allclose(slopes[0], forward[1], rtol=1e-10)


def test_conditions_decide_by_values():
    def height(k):
        slopes = lambda x, y: np.stack([y[1], -k * np.exp(y[0])])
        ends = lambda ya, yb: [ya[0], yb[0] if yb[0] < 9.0 else yb[0] - 9.0]
        return solve_bvp(slopes, ends, MESH, FIRST, tol=1e-3).sol(0.5)[0]

    middle = lambda k: bratu(k, tol=1e-3).sol(0.5)[0]
    np.testing.assert_allclose(wg.grad(height)(1.0), wg.grad(middle)(1.0), rtol=1e-12)


def test_unknown_parameters():
    """The frequency of a string that is fixed at both ends is 2 pi / length; its slope there is what it is said."""

    def string(length, slope):
        equations = lambda x, y, p: np.stack([y[1], -(p[0] ** 2) * y[0]])
        ends = lambda ya, yb, p: [ya[0], yb[0], ya[1] - p[0] * slope]
        first = np.array([[0.0, 1.0, 0.0, -1.0, 0.0], [0.0] * 5])
        return solve_bvp(equations, ends, MESH * length, first, p=[6.0], tol=1e-5)

    frequency = lambda length: string(length, 1.0).p[0]
    np.testing.assert_allclose(wg.grad(frequency)(1.0), -2 * np.pi, rtol=1e-5)
    np.testing.assert_allclose(wg.jvp(wg.grad(frequency), (1.0,), (1.0,))[1], 4 * np.pi, rtol=1e-5)
    np.testing.assert_allclose(wg.grad(lambda s: string(1.0, s).sol(0.25)[0])(1.0), 1.0, rtol=1e-6)
    assert string(1.0, 1.0).p.shape == (1,)


@pytest.mark.filterwarnings("ignore:.*solve_bvp is called by Python")
def test_singular_terms():
    """Emden's equation; derivatives of the steps that SciPy's own values take."""

    def emden(end, factor=2.0):
        singular = np.array([[0.0, 0.0], [0.0, -1.0]]) * factor
        slopes = lambda x, y: np.stack([y[1], -(y[0] ** 5)])
        ends = lambda ya, yb: np.stack([ya[1], yb[0] - end])
        return solve_bvp(slopes, ends, MESH, np.ones((2, 5)), S=singular, tol=1e-7).sol(0.5)[0]

    start, h = np.sqrt(3) / 2 + 0.001, 1e-4
    for function, at in ((emden, start - 0.05), (lambda s: emden(0.8, s), 2.0)):
        want = (function(at + h) - function(at - h)) / (2 * h)
        np.testing.assert_allclose(wg.grad(function)(at), want, rtol=2e-5)
        np.testing.assert_allclose(wg.jvp(function, (at,), (1.0,))[1], wg.grad(function)(at), rtol=1e-8)
        np.testing.assert_allclose(wg.jit(wg.grad(function))(at), wg.grad(function)(at), rtol=1e-8)


def test_complex_equations():
    def size(k):
        slopes = lambda x, y: np.stack([y[1], -(1.0 + 1j * k) * y[0]])
        ends = lambda ya, yb: np.stack([ya[0] - 1.0, yb[0]])
        return np.abs(solve_bvp(slopes, ends, np.linspace(0, 1, 41), np.zeros((2, 41), complex)).sol(0.5)[0])

    exact = lambda k: np.abs(np.sin(np.sqrt(1 + 1j * k) / 2) / np.sin(np.sqrt(1 + 1j * k)))
    want = (exact(1.001) - exact(0.999)) / 0.002
    np.testing.assert_allclose(wg.grad(size)(1.0), want, rtol=1e-5)
    np.testing.assert_allclose(wg.jvp(size, (1.0,), (1.0,))[1], want, rtol=1e-5)


@pytest.mark.filterwarnings("ignore:.*solve_bvp is called by Python")
def test_meshes_have_room_where_values_are_traced_or_in_lanes():
    """What SciPy does not need of it repeats a node: solutions, sums and ends are the same, and so are derivatives."""

    def parts(k, length):
        found = bratu(k, length, tol=1e-3, max_nodes=30)
        return found.sol(np.array([-0.1, 0.3, 1.1])), np.trapezoid(found.y[0], found.x), found.y[:, -1], found.success

    eager, jitted = parts(1.0, 1.1), wg.jit(parts)(1.0, 1.1)
    lanes = wg.vmap(parts, in_axes=(0, None))(np.array([5.0, 1.0]), 1.1)
    for one, other, lane in zip(eager, jitted, lanes, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)
        np.testing.assert_allclose(one, lane[1], rtol=1e-12)
    assert not lanes[-1][0]
    both = lambda k, length: sum(map(np.sum, parts(k, length)[:3]))
    slope = wg.grad(both, argnums=(0, 1))
    np.testing.assert_allclose(wg.jit(slope)(1.0, 1.1), slope(1.0, 1.1), rtol=1e-9)
    with pytest.raises(NumericalError, match="solve_bvp: a solution that misses its equations"):
        wg.jit(slope)(5.0, 1.1)


def test_what_did_not_converge_has_no_derivative():
    for options in ({"k": 5.0}, {"k": 1.0, "max_nodes": 6}):
        found = bratu(**options)
        assert not found.success
        rest = {key: value for key, value in options.items() if key != "k"}
        for derivative in (wg.grad, lambda f: lambda k: wg.jvp(f, (k,), (1.0,))):
            with pytest.raises(NumericalError, match="solve_bvp: a solution that is none: "):
                derivative(lambda k, rest=rest: bratu(k, **rest).y[0, 1])(options["k"])


def test_wrong_calls():
    with pytest.raises(ShapeError, match=r"solve_bvp: fun that gives shape \(2,\) for y of shape \(2, 5\)"):
        solve_bvp(lambda x, y: np.stack([0.0, 1.0]), lambda a, b: a, MESH, FIRST, S=np.eye(2))
    with pytest.raises(UsageError, match="solve_bvp: a function that returned None"):
        solve_bvp(lambda x, y: None, lambda a, b: a, MESH, FIRST)
    with pytest.raises(ValueError, match="strictly increasing"):
        solve_bvp(lambda x, y: y, lambda a, b: a, MESH[::-1], FIRST)
