"""Tests of `wengert.implicit.complementarity`: solutions, derivatives where bounds hold, and what is no solution."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.implicit import bounded_equations, complementarity, qp

RNG = np.random.default_rng(0)
ROOT, Q = RNG.normal(size=(6, 6)), RNG.normal(size=6)
P = ROOT @ ROOT.T + np.eye(6)
LOWER, UPPER = np.full(6, -0.1), np.full(6, 0.15)
LOWER[1], UPPER[0] = -np.inf, np.inf


def optimum(q: Any, lower: Any, upper: Any) -> Any:
    """Return where x^T P x / 2 + q^T x is least within bounds."""
    return complementarity(lambda x: P @ x + q, lower, upper)


def by_program(q: Any, lower: Any, upper: Any) -> Any:
    low, high = np.isfinite(LOWER), np.isfinite(UPPER)
    sides = np.concatenate([-lower[low], upper[high]])
    return qp(P, q, G=np.concatenate([-np.eye(6)[low], np.eye(6)[high]]), h=sides).x


MODES: dict[str, Any] = {
    "value": lambda f: f,
    "jit": wg.jit,
    "forward": lambda f: wg.jacfwd(f, (0, 1, 2)),
    "reverse": lambda f: wg.jacrev(f, (0, 1, 2)),
    "jit of reverse": lambda f: wg.jit(wg.jacrev(f)),
    "second": lambda f: wg.hessian(lambda q, *rest: np.sum(f(q * q * q, *rest) ** 2)),
    "lanes": lambda f: lambda q, *rest: wg.vmap(lambda q: f(q, *rest))(np.stack([q, -q, 0.1 * q])),
}


@together("mode", list(MODES))
def test_optima_within_bounds_are_those_of_programs_in_each_mode(mode: str) -> None:
    found, expected = (MODES[mode](f)(Q, LOWER, UPPER) for f in (optimum, by_program))
    for one, other in zip(wg.tree.leaves(found), wg.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(np.nan_to_num(one), other, rtol=1e-9, atol=1e-12)


def test_equations_that_are_not_linear_have_third_derivatives_where_bounds_hold() -> None:
    def solve(a: Any) -> Any:  # x[0]^3 + x[1] = a, and the second one is at its bound, which moves
        f = lambda x: [x[0] ** 3 + x[1] - a, x[1] + x[0] + 1.0]
        return complementarity(f, np.stack([-np.inf, a * a]), np.inf, start=np.ones(2))[0]

    a, third = 0.3, lambda f: wg.grad(wg.grad(wg.grad(f)))
    assert third(solve)(a) == pytest.approx(third(lambda a: np.cbrt(a - a * a))(a), rel=1e-9)
    assert "NumPy" not in str(wg.jit(wg.grad(solve)).lower(a).kernels)


def test_functions_of_the_same_code_are_traced_once() -> None:
    def solve(a: Any) -> Any:
        return complementarity(lambda x, scale, power: scale * x**power - a, 0.0, np.inf, (2.0, 3), start=np.ones(2))

    found = [solve(np.array([a, -1.0])) for a in (2.0, 16.0)]
    np.testing.assert_allclose(found, [[1.0, 0.0], [2.0, 0.0]], atol=1e-12)
    before = len(bounded_equations.SOLUTIONS.known)
    np.testing.assert_allclose(wg.jacobian(solve)(np.array([54.0, -1.0])), np.diag([1 / 54.0, 0.0]), atol=1e-12)
    solve(np.array([250.0, 2.0]))
    assert len(bounded_equations.SOLUTIONS.known) == before + 1  # Tensors are another kind of argument


def test_what_is_no_solution_is_told() -> None:
    nothing = lambda x: 0.0 * x - 1.0
    with pytest.raises(NumericalError, match="found no solution between the bounds"):
        complementarity(nothing, np.zeros(2), np.inf)
    assert np.isnan(wg.jit(lambda q: complementarity(lambda x: nothing(x) + 0.0 * q, np.zeros(2), np.inf))(Q[:2])).all()
    with pytest.warns(UserWarning, match=r"complementarity: x\[1\] are at a bound where f is zero"):
        slope = wg.jacobian(lambda a: complementarity(lambda x: x - a, np.zeros(2), np.inf))(np.array([1.0, 0.0]))
    np.testing.assert_allclose(slope, np.eye(2))
    with pytest.raises(ShapeError, match=r"f that returned shape \(1,\); \(2,\), that of x"):
        complementarity(lambda x: x[:1], np.zeros(2), 1.0)
    with pytest.raises(UsageError, match=r"limits 0.0 and -1.0 of x\[1\]; lower <= upper, and no NaN, is"):
        complementarity(nothing, np.zeros(2), np.array([1.0, -1.0]))
    with pytest.raises(DtypeError, match="as lower"):
        complementarity(nothing, "0", 1.0)


def test_the_solution_of_a_scaled_problem_is_the_scaled_solution() -> None:
    def solve(a: Any, size: float, unit: float) -> Any:
        return (
            complementarity(
                lambda x: size * (np.array([[2.0, 1.0], [1.0, 2.0]]) @ x / unit - a), 0.0, np.full(2, np.inf)
            )
            / unit
        )

    a = np.array([1.0, -3.0])
    for scales in ((1.0, 1.0), (1e-12, 1.0), (1e12, 1.0), (1.0, 1e-12), (1.0, 1e12), (1e-7, 1e-7)):
        np.testing.assert_allclose(solve(a, *scales), [0.5, 0.0], rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(wg.jacrev(solve)(a, *scales), [[0.5, 0.0], [0.0, 0.0]], rtol=1e-9, atol=1e-12)
