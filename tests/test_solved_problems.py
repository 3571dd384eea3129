"""Problems that are solved by iterations of ours: derivatives from equations are those through all steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert import optim
from wengert.scipy import optimize

RNG = np.random.default_rng(0)
DICTIONARY, SIGNAL = RNG.normal(size=(8, 12)), RNG.normal(size=8)
COSTS = RNG.uniform(size=(3, 4))
ADMITTANCE = np.array([[2, -1, -1], [-1, 2, -1], [-1, -1, 2]]) * (1.0 - 8.0j)


def shrink(matrix: Any, penalty: Any, way: str, jit: bool) -> Any:
    """Return where |matrix x - SIGNAL|^2 / 2 + penalty |x|_1 is least, by iterated shrinkage."""
    rate = 1 / np.linalg.norm(matrix, 2) ** 2

    def step(x: Any) -> Any:
        x = x - rate * matrix.T @ (matrix @ x - SIGNAL)
        return np.sign(x) * np.maximum(np.abs(x) - rate * penalty, 0)

    start = np.zeros(matrix.shape[1])
    return optim.fixed_point(step, start, tol=1e-13, maxiter=20_000, jit=jit, differentiate=way).x


def code(penalty: Any, way: str) -> Any:
    """Return the sparse code of a signal, of more atoms than it has numbers."""
    return shrink(DICTIONARY, penalty, way, True)


def lasso(penalty: Any, way: str) -> Any:
    """Return the weights of a regression with few inputs that count, of which the penalty is chosen."""
    return DICTIONARY[:3, :4] @ shrink(DICTIONARY[:, :4], penalty, way, False)


def ridge(penalty: Any, way: str) -> Any:
    """Return the weights of a regression whose weights have a penalty of their squares."""
    missing = lambda x: DICTIONARY.T @ (DICTIONARY @ x - SIGNAL) + penalty * x
    return optim.root(missing, np.zeros(12), method="newton", tol=1e-12, jit=False, differentiate=way).x


def equilibrium(scale: Any, way: str) -> Any:
    """Return the state in which a layer of a network gives what it gets."""
    weights = DICTIONARY[:, :8] / np.linalg.norm(DICTIONARY[:, :8], 2)
    step = lambda x: np.tanh(scale * (weights @ x) + SIGNAL)
    return optim.anderson(step, np.zeros(8), tol=1e-13, jit=False, differentiate=way).x


def transport(scale: Any, way: str) -> Any:
    """Return the potentials of regularised transport between even masses, by Sinkhorn's iteration."""
    kernel = -scale * COSTS / 0.2

    def step(v: Any) -> Any:
        u = -np.log(np.sum(np.exp(kernel + v), axis=1))
        v = -np.log(np.sum(np.exp(kernel + u[:, None]), axis=0))
        return v - np.mean(v)

    return optim.fixed_point(step, np.zeros(4), tol=1e-13, jit=False, differentiate=way).x


def voltages(load: Any, way: str) -> Any:
    """Return angles and amplitudes of two buses of a triangle of lines, of which the third holds its voltage."""

    def missing(x: Any) -> Any:
        angle, size = np.concatenate([np.zeros(1), x[:2]]), np.concatenate([np.ones(1), x[2:]])
        apart = angle[:, None] - angle
        g, b = ADMITTANCE.real, ADMITTANCE.imag
        active = size * ((g * np.cos(apart) + b * np.sin(apart)) @ size)
        reactive = size * ((g * np.sin(apart) - b * np.cos(apart)) @ size)
        return np.concatenate([active[1:] + load * np.array([0.9, 0.6]), reactive[1:] + load * np.array([0.3, 0.2])])

    return optim.root(missing, np.array([0.0, 0, 1, 1]), method="newton", tol=1e-12, jit=False, differentiate=way).x


def atoms(field: Any, way: str) -> Any:
    """Return where three atoms rest beside one that is held, in a field."""

    def energy(x: Any) -> Any:
        place = np.concatenate([np.zeros(1), x])
        i, j = np.triu_indices(4, 1)
        squares = (place[i] - place[j]) ** 2
        return np.sum(4 * (squares**-6 - squares**-3)) - field * np.sum(np.cos(x))

    start = np.array([1.1, 2.2, 3.3])
    return optim.root(wg.grad(energy), start, method="newton", tol=1e-12, jit=False, differentiate=way).x


PROBLEMS = (code, 0.3), (lasso, 0.3), (ridge, 0.5), (equilibrium, 0.9), (transport, 1.0), (voltages, 1.0), (atoms, 0.1)


@together("solve, at", PROBLEMS)
def test_derivatives_of_solutions_are_those_of_all_steps(solve: Callable[..., Any], at: float) -> None:
    found, unrolled = (wg.grad(lambda a, way=way: np.sum(np.sin(solve(a, way))))(at) for way in ("implicit", "unroll"))
    assert abs(unrolled) > 1e-4
    assert found == pytest.approx(unrolled, rel=1e-8)


def test_third_derivatives_through_roots_are_those_of_the_solution_in_closed_form() -> None:
    third = lambda f: wg.grad(wg.grad(wg.grad(lambda a: np.sum(np.sin(f(a))))))
    closed = lambda a: np.linalg.solve(DICTIONARY.T @ DICTIONARY + a * np.eye(12), DICTIONARY.T @ SIGNAL)
    assert third(lambda a: ridge(a, "implicit"))(0.5) == pytest.approx(third(closed)(0.5), rel=1e-8)


def test_third_derivatives_where_a_bound_is_active_are_those_of_what_is_free() -> None:
    def lowest(t: Any) -> Any:
        cost = lambda x: (x[0] - t) ** 2 + (x[1] - t * t) ** 4 / 4 + (x[1] - t * t) ** 2 + x[0] * x[1] * t
        found = optimize.minimize(cost, np.ones(2) / 2, bounds=[(0, 0.2), (None, None)], tol=1e-14)
        return np.sin(found.x[1])

    def free(t: Any) -> Any:  # d^3 + 2 d + 0.2 t = 0 for d = x[1] - t^2
        cubic = lambda d: d**3 + 2 * d + 0.2 * t
        return np.sin(optim.root_scalar(cubic, x0=0.0, tol=1e-12).root + t * t)

    first, second = wg.grad(lowest), wg.grad(free)
    assert first(0.9) == pytest.approx(second(0.9), rel=1e-6)
    first, second = wg.grad(wg.grad(first)), wg.grad(wg.grad(second))
    assert first(0.9) == pytest.approx(second(0.9), rel=1e-6)
