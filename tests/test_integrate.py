"""Quadratures of samples and functions: SciPy's values, and gradients by samples, places and limits."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate
import scipy.interpolate

import wengert as wg
from tests.cases import together
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.scipy import integrate
from wengert.testing import check_grads

RNG = np.random.default_rng(0)


def places(kind: str, count: int) -> dict[str, Any]:
    steps = RNG.uniform(0.2, 1.0, (3, count)).cumsum(axis=1)
    return {"unit": {}, "uniform": {"dx": 0.3}, "shared": {"x": steps[0]}, "each": {"x": steps}}[kind]


@together("kind", ["unit", "uniform", "shared", "each"])
@together("count", [2, 3, 4, 5, 8])
def test_integrals_of_samples_are_scipys(kind: str, count: int) -> None:
    y, options = RNG.normal(size=(3, count)), places(kind, count)
    for name, more in (("simpson", {}), ("cumulative_trapezoid", {}), ("cumulative_trapezoid", {"initial": 0})):
        want = getattr(scipy.integrate, name)(y, **options, **more)
        np.testing.assert_allclose(getattr(integrate, name)(y, **options, **more), want, rtol=1e-13, atol=1e-14)
    columns = {name: value.T if np.ndim(value) == 2 else value for name, value in options.items()}
    want = scipy.integrate.simpson(y.T, axis=0, **columns)
    np.testing.assert_allclose(integrate.simpson(y.T, axis=0, **columns), want, rtol=1e-13)


def test_other_quadratures_are_scipys() -> None:
    y = RNG.normal(size=(9, 2))
    np.testing.assert_allclose(integrate.romb(y, 0.3, axis=0), scipy.integrate.romb(y, 0.3, axis=0), rtol=1e-13)
    found, nothing = integrate.fixed_quad(np.exp, 0.0, 2.0, n=4)
    np.testing.assert_allclose(found, scipy.integrate.fixed_quad(np.exp, 0.0, 2.0, n=4)[0], rtol=1e-14)
    assert nothing is None


@pytest.mark.parametrize("limits", [(0.0, np.inf), (-np.inf, 0.0), (np.zeros(2), np.array([1.0, np.inf]))])
def test_infinite_limits_are_refused_as_scipy_refuses_them(limits: Any) -> None:
    with pytest.raises(UsageError, match="fixed_quad: an infinite limit; finite ones are needed"):
        integrate.fixed_quad(np.exp, *limits)
    with pytest.raises(UsageError, match="fixed_quad: an infinite limit"):
        wg.grad(lambda a, b: np.sum(integrate.fixed_quad(lambda t: np.exp(t) * a, *b)[0]))(1.0, limits)


def test_gradients() -> None:
    y, x = RNG.normal(size=6), RNG.uniform(0.2, 1.0, 6).cumsum()
    check_grads(lambda y, x: integrate.simpson(y, x), (y, x), order=2)
    check_grads(lambda y, x: integrate.simpson(y[:5], x[:5]), (y, x), order=2)
    check_grads(lambda y, x: integrate.cumulative_trapezoid(y, x, initial=0), (y, x), order=2)
    check_grads(lambda y: integrate.romb(y[:5], y[5]), (y,), order=2)
    check_grads(lambda a, b: integrate.fixed_quad(lambda t: np.sin(t * a), a, b)[0], (0.5, 1.5), order=2)


def test_errors() -> None:
    y = np.ones(4)
    with pytest.raises(ShapeError) as caught:
        integrate.simpson(y, np.ones(3))
    assert str(caught.value) == (
        "simpson: x of shape (3,) for samples of shape (4,); one place for each sample along axis 0, or the shape of "
        "the samples, is needed. Reshape x."
    )
    with pytest.raises(ShapeError) as caught:
        integrate.romb(y)
    assert str(caught.value) == "romb: 4 samples along axis -1; one more than a power of two is needed. Use simpson."
    with pytest.raises(UsageError) as refused:
        integrate.cumulative_trapezoid(y, initial=1)
    assert str(refused.value) == "cumulative_trapezoid: initial=1; 0 or None is needed. Add it to the result."


# Functions that cannot be traced

TABLE = scipy.interpolate.interp1d(np.linspace(0.0, 2.0, 20), np.sin(np.linspace(0.0, 2.0, 20)))
UNTRACED = {
    "table": lambda t, y: -y * TABLE(t),
    "number": lambda t, y: [-float(y[0]) * np.cos(t)],
    "list": lambda t, y: (LIST.append(t), -y * y)[1],
}
LIST: list[Any] = []


def half(_t: Any, y: Any) -> Any:
    return float(y[0]) - 0.8


@together("name", UNTRACED)
@together("method", ["RK45", "Radau"])
def test_functions_that_cannot_be_traced_are_integrated_by_scipy(name: str, method: str) -> None:
    LIST.clear()
    fun = UNTRACED[name]
    for more in ({}, {"t_eval": [0.5, 1.0], "events": half, "rtol": 1e-6}):
        found = integrate.solve_ivp(fun, (0.0, 1.0), [1.0], method, **more)
        want = scipy.integrate.solve_ivp(fun, (0.0, 1.0), [1.0], method, **more)
        np.testing.assert_allclose(found.y, want.y, rtol=1e-12)
        assert found.t_events is None or np.array_equal(found.t_events[0], want.t_events[0])
    found = integrate.odeint(fun, [1.0], [0.0, 1.0], tfirst=True)
    np.testing.assert_allclose(found, scipy.integrate.odeint(fun, [1.0], [0.0, 1.0], tfirst=True), rtol=1e-6)
    assert not any(isinstance(t, wg.Tensor) for t in LIST)
    found = integrate.quad(lambda t: fun(t, np.array([1.0]))[0], 0.0, 1.0)
    np.testing.assert_allclose(found[0], scipy.integrate.quad(lambda t: fun(t, np.array([1.0]))[0], 0.0, 1.0)[0])
    LIST.clear()
    for differentiated in (
        lambda y: integrate.solve_ivp(fun, (0.0, 1.0), y, method, t_eval=[1.0]).y[0, 0],
        lambda y: integrate.odeint(fun, y, [0.0, 1.0], tfirst=True)[1, 0],
        lambda y: integrate.quad(lambda t: fun(t, y)[0], 0.0, 1.0)[0],
    ):
        with pytest.raises(GraphError):
            wg.jit(wg.grad(differentiated))(np.array([1.0]))
