"""Integrals of functions, cut where they need it: SciPy's values, and derivatives in each mode."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from tests.cases import together
from wengert.errors import ShapeError, UsageError
from wengert.scipy import integrate
from wengert.testing import check_grads

INF = np.inf
VALUES: dict[str, tuple[Any, float, float]] = {
    "smooth": (lambda x: np.exp(-x) * np.cos(3.0 * x), 0.2, 2.5),
    "backwards": (lambda x: np.exp(x), 1.0, -1.0),
    "constant": (lambda _x: 3.0, 0.0, 2.0),
    "nothing": (np.exp, 1.0, 1.0),
    "root": (lambda x: np.sqrt(x), 0.0, 2.0),
    "infinite at the end": (lambda x: 1.0 / np.sqrt(1.0 - x), 0.0, 1.0),
    "logarithm": (lambda x: np.log(x), 0.0, 1.0),
    "kink": (lambda x: np.abs(x - 0.3), 0.0, 1.0),
    "peak": (lambda x: 1.0 / (1e-4 + (x - 0.3) ** 2), 0.0, 1.0),
    "waves": (lambda x: np.sin(40.0 * x), 0.0, 3.0),
    "line": (lambda x: np.exp(-(x**2) + x), -INF, INF),
    "half line": (lambda x: 1.0 / (1.0 + x * x), 2.0, INF),
    "other half": (lambda x: np.exp(x), -INF, 1.0),
    "line backwards": (lambda x: np.exp(-x * x), INF, 0.0),
}


@together("name", VALUES)
def test_values_are_scipys(name: str) -> None:
    function, low, high = VALUES[name]
    want = scipy.integrate.quad(function, low, high, epsabs=1e-11, epsrel=1e-11)[0]
    value, error = integrate.quad(function, low, high)
    assert abs(value - want) <= 1.5e-8 * max(1.0, abs(want))
    assert 0.0 <= error <= 1.5e-8 * max(1.0, abs(want))


def decaying(a: Any, b: Any, k: Any) -> Any:
    return integrate.quad(lambda x, k: np.exp(-k * x) * np.sin(x), a, b, args=(k,))[0]


POINT = np.array([0.1, 2.0, 1.3])


def of_vector(p: Any) -> Any:
    return decaying(p[0], p[1], p[2])


def test_derivatives_by_limits_arguments_and_captures() -> None:
    def integrand(x: float, k: float) -> Any:
        return np.exp(-k * x) * np.sin(x)

    a, b, k = POINT
    by_k = -scipy.integrate.quad(lambda x: x * integrand(x, k), a, b)[0]
    np.testing.assert_allclose(wg.grad(of_vector)(POINT), [-integrand(a, k), integrand(b, k), by_k], rtol=1e-10)
    found = wg.grad(lambda k: integrate.quad(lambda x: integrand(x, k), 0.0, INF)[0])(k)
    np.testing.assert_allclose(found, -2.0 * k / (1.0 + k * k) ** 2, rtol=1e-8)
    third = wg.grad(wg.grad(wg.grad(lambda b: decaying(a, b, k))))(b)
    np.testing.assert_allclose(third, wg.grad(wg.grad(lambda x: integrand(x, k)))(b), rtol=1e-10)
    check_grads(of_vector, POINT, order=2)


def test_every_mode_gives_the_same() -> None:
    slope, curvature = wg.grad(of_vector)(POINT), wg.hessian(of_vector)(POINT)
    for f, want in ((wg.jit(wg.grad(of_vector)), slope), (wg.jit(wg.hessian(of_vector)), curvature)):
        np.testing.assert_allclose(f(POINT), want, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(wg.jvp(of_vector, (POINT,), (np.ones(3),))[1], slope.sum(), rtol=1e-12)
    points = np.stack([POINT, POINT + 0.2])
    for lanes in (wg.vmap(wg.grad(of_vector)), wg.jit(wg.vmap(wg.grad(of_vector)))):
        np.testing.assert_allclose(lanes(points), [wg.grad(of_vector)(p) for p in points], rtol=1e-9)


def test_derivatives_are_as_exact_as_asked_for_where_the_value_shows_nothing_of_them() -> None:
    def waves(a: Any) -> Any:
        return integrate.quad(lambda t: np.sin(a * np.cos(40.0 * t)) * np.exp(-t), 0.0, 4.0)[0]

    def integral_of_wave(frequency: float) -> float:
        return float(((np.exp((1j * frequency - 1.0) * 4.0) - 1.0) / (1j * frequency - 1.0)).real)

    first, third = integral_of_wave(40.0), -0.75 * integral_of_wave(40.0) - 0.25 * integral_of_wave(120.0)
    for slope in (wg.grad(waves), wg.jit(wg.grad(waves)), wg.grad(wg.jit(waves))):
        np.testing.assert_allclose(slope(0.0), first, rtol=1e-7)
    np.testing.assert_allclose(wg.vmap(wg.grad(waves))(np.zeros(2)), [first, first], rtol=1e-7)
    for size in (1.0, 1e-12):
        np.testing.assert_allclose(wg.jvp(waves, (0.0,), (size,))[1], size * first, rtol=1e-7)

    def along(f: Any) -> Any:
        return lambda a: wg.jvp(f, (a,), (1.0,))[1]

    for f in (along(wg.grad(along(waves))), wg.grad(along(wg.grad(waves)))):
        np.testing.assert_allclose(f(0.0), third, rtol=1e-4)


def test_functions_that_decide_by_their_place() -> None:
    def f(a: Any) -> Any:
        return integrate.quad(lambda x: max(x - a, 0.0) if x < 0.9 else a, 0.0, 1.0, points=[0.9])[0]

    np.testing.assert_allclose(f(0.3), 0.18 + 0.03, rtol=1e-7)
    np.testing.assert_allclose(wg.grad(f)(0.3), -0.6 + 0.1, rtol=1e-6)


def test_places_where_the_function_jumps() -> None:
    def f(c: Any) -> Any:
        return integrate.quad(lambda x: np.where(x < 0.5, c * x, 1.0), c, 1.0, points=[0.5])[0]

    np.testing.assert_allclose(f(0.2), 0.2 * (0.125 - 0.02) + 0.5, rtol=1e-12)
    np.testing.assert_allclose(wg.grad(f)(0.2), 0.125 - 1.5 * 0.04, rtol=1e-10)


def test_infinite_limits_that_are_traced() -> None:
    def bell(a: Any, b: Any) -> Any:
        return integrate.quad(lambda x: np.exp(-x * x) * (1.0 + 0.3 * x), a, b)[0]

    lows = np.array([-INF, INF, -INF, 0.0, INF, 1.0, INF])
    highs = np.array([INF, -INF, 0.5, INF, 0.3, 0.2, INF])
    want = [float(bell(a, b)) for a, b in zip(lows, highs, strict=True)]
    np.testing.assert_allclose(wg.vmap(bell)(lows, highs), want, rtol=1e-12, atol=1e-15)
    np.testing.assert_allclose([wg.jit(bell)(a, b) for a, b in zip(lows, highs, strict=True)], want, atol=1e-14)
    ends = np.where(np.isinf(highs), 0.0, highs)
    slopes = np.where(np.isinf(highs), 0.0, np.exp(-ends * ends) * (1.0 + 0.3 * ends))
    np.testing.assert_allclose(wg.jit(wg.vmap(wg.grad(bell, 1)))(lows, highs), slopes, rtol=1e-12)

    def decay(p: Any) -> Any:
        return integrate.quad(lambda x: np.exp(-p[0] * x), 0.0, p[1])[0]

    point = np.array([1.0, INF])
    np.testing.assert_allclose(wg.grad(decay)(point), [-1.0, 0.0], rtol=1e-8)
    np.testing.assert_allclose(wg.hessian(decay)(point), [[2.0, 0.0], [0.0, 0.0]], rtol=1e-8)


def test_integrals_over_areas_and_volumes() -> None:
    def over_triangle(module: Any, b: Any, k: Any) -> Any:
        return module.dblquad(lambda y, x: np.exp(-k * x * y), 0.0, b, 0.0, lambda x: k * x)[0]

    np.testing.assert_allclose(over_triangle(integrate, 1.0, 1.2), over_triangle(scipy.integrate, 1.0, 1.2), rtol=1e-9)
    check_grads(lambda b, k: over_triangle(integrate, b, k), 1.0, 1.2, order=1)
    found = wg.jit(lambda b: integrate.nquad(lambda y, x, s: s * x * y, [lambda x, _s: (0.0, x), (0.0, b)], (2.0,))[0])
    np.testing.assert_allclose(found(1.5), 2.0 * 1.5**4 / 8.0, rtol=1e-12)
    found = integrate.tplquad(lambda z, y, x: x * y * z, 0.0, 1.0, 0.0, 2.0, 0.0, lambda x, y: x * y)[0]
    np.testing.assert_allclose(found, 0.5, rtol=1e-12)


@pytest.mark.parametrize("count", [2, 3, 4, 5, 8])
def test_cumulative_simpson(count: int) -> None:
    rng = np.random.default_rng(count)
    y, x = rng.normal(size=(2, count, 3)), np.cumsum(rng.uniform(0.1, 1.0, count))
    for options in ({}, {"dx": 0.3}, {"x": x}):
        for initial in (None, 0, 2.0):
            want = scipy.integrate.cumulative_simpson(y, axis=1, initial=initial, **options)
            found = integrate.cumulative_simpson(y, axis=1, initial=initial, **options)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-14)
    check_grads(lambda y, x: integrate.cumulative_simpson(y, x=x), y[0, :, 0], x, order=2)


def test_integrals_of_arrays() -> None:
    def moments(a: Any, b: Any, k: Any) -> Any:
        return integrate.quad_vec(lambda x: np.exp(-k * x) * np.stack([x * 0 + 1, x])[:, None] * np.ones(2), a, b)[0]

    a, b, k = 0.1, 2.0, 1.3

    def rest(a: Any, k: Any) -> Any:
        return np.stack([np.exp(-k * a) / k, np.exp(-k * a) * (a + 1 / k) / k])

    def want(a: Any, b: Any, k: Any) -> Any:
        return rest(a, k) - rest(b, k)

    np.testing.assert_allclose(moments(a, b, k), np.repeat(want(a, b, k)[:, None], 2, axis=1), rtol=1e-12)
    for found in (wg.jacobian(moments, (0, 1, 2))(a, b, k), wg.jit(wg.jacfwd(moments, (0, 1, 2)))(a, b, k)):
        found = [part[:, 1] for part in found]
        np.testing.assert_allclose(found, wg.jacobian(want, (0, 1, 2))(a, b, k), rtol=1e-9)
    rates = np.array([1.3, 40.0])  # each lane is as exact as a call of its own
    lanes = wg.jit(wg.vmap(wg.grad(lambda k: moments(a, INF, k)[1, 0])))(rates)
    np.testing.assert_allclose(lanes, wg.vmap(wg.grad(lambda k: rest(a, k)[1]))(rates), rtol=1e-8)
    nothing, error = integrate.quad_vec(lambda x: [x / (1e-6 + x * x), 0.0 * x], -1.0, 1.0, norm="max")
    np.testing.assert_allclose(nothing, 0.0, atol=1e-12)
    assert error < 1e-10
    for options in ({"norm": "1"}, {"quadrature": "gk15"}, {"full_output": True}):
        with pytest.raises(UsageError, match=r"^quad_vec: "):
            integrate.quad_vec(np.exp, 0.0, 1.0, **options)


def test_more_intervals_than_there_is_room_for_at_first() -> None:
    def peaks(x: Any) -> Any:
        return np.sin(1.0 / (x + 1e-3))

    def many(end: Any) -> Any:
        return integrate.quad(peaks, 0.0, end, epsrel=1e-9, limit=500)[0]

    want = scipy.integrate.quad(peaks, 0.0, 1.0, epsrel=1e-9, limit=1000)[0]
    for found in (many(1.0), wg.jit(many)(1.0)):
        np.testing.assert_allclose(found, want, rtol=1e-8)


def test_errors() -> None:
    with pytest.warns(scipy.integrate.IntegrationWarning, match=r"^quad: 10 intervals leave an error"):
        integrate.quad(lambda x: np.sin(1.0 / x), 0.0, 1.0, limit=10)
    with pytest.raises(UsageError, match=r"^quad: points for an infinite interval; a finite one is needed\."):
        integrate.quad(np.exp, -INF, 0.0, points=[-1.0])
    with pytest.raises(UsageError, match=r"^quad: full_output=1; 0 is needed\."):
        integrate.quad(np.exp, 0.0, 1.0, full_output=1)
    with pytest.raises(UsageError, match=r"^quad: 0 for limit; a whole number, 1 or more, is needed\."):
        integrate.quad(np.exp, 0.0, 1.0, limit=0)
    with pytest.raises(UsageError, match=r"^nquad: 1 ranges and 2 options; a range, and options or none, for each"):
        integrate.nquad(np.exp, [(0.0, 1.0)], opts=[{}, {}])
    with pytest.raises(ShapeError, match=r"^quad: func returned shape \(2,\); one number is needed\."):
        integrate.quad(lambda x: np.stack([x, x]), 0.0, 1.0)


def test_what_integrands_write_to_arguments_is_seen_by_that_call_alone() -> None:
    def integrand(x: Any, a: Any) -> Any:
        a *= 2.0
        return x * a[0]

    a = np.ones(1)
    np.testing.assert_allclose(integrate.quad(integrand, 0.0, 1.0, args=(a,))[0], 1.0)
    np.testing.assert_allclose(integrate.fixed_quad(integrand, 0.0, 1.0, args=(a,))[0], 1.0)
    np.testing.assert_allclose(integrate.dblquad(lambda _, x, a: integrand(x, a), 0.0, 1.0, 0.0, 1.0, (a,))[0], 1.0)
    assert a[0] == 1.0
