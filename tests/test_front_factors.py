"""Sparse matrices whose patterns are not narrow: their factors, and equations that have such Jacobians."""

import functools

import numpy as np
import pytest
import scipy.integrate

import wengert as wg
from wengert.compile.executable import NativeGraph
from wengert.core.values.dispatch import apply
from wengert.implicit.frontal import front_factors, front_solution
from wengert.implicit.fronts import Fronts
from wengert.scipy.integrate import _programs, solve_ivp
from wengert.scipy.integrate._methods import element_matrices
from wengert.scipy.integrate._methods.element_matrices import FrontMatrices
from wengert.scipy.integrate._methods.jacobian_matrices import FullMatrices
from wengert.transforms.function_cache import FunctionCache

RNG = np.random.default_rng(5)


def random_places(size, share):
    """Return the places of a random pattern that has the diagonal."""
    places = (RNG.random((size, size)) < share) | np.eye(size, dtype=bool)
    return np.nonzero(places)


@pytest.mark.parametrize(("size", "share"), [(1, 0.0), (6, 0.0), (9, 0.3), (40, 0.06), (60, 0.5)])
def test_factors_of_fronts_solve_systems_and_transposed_ones(size, share, monkeypatch):
    """By kernels, and one front after the other in NumPy, also where pivots on the diagonal are small."""
    monkeypatch.setattr(NativeGraph, "instead", None)  # all stays native
    rows, columns = random_places(size, share)
    fronts = Fronts(size, rows, columns)
    elements = RNG.normal(size=len(rows)) + 2.0 * (rows == columns)
    right = RNG.normal(size=(size, 2))
    matrix = np.zeros((size, size))
    matrix[rows, columns] = elements

    def solve(elements, right, transposed):
        packed = apply(front_factors, elements[:, None], fronts.table, fronts=fronts)
        return apply(front_solution, packed, right, fronts.table, fronts=fronts, transposed=transposed)

    for transposed, full in ((False, matrix), (True, matrix.T)):
        run = functools.partial(solve, transposed=transposed)
        want = np.linalg.solve(full, right)
        scale = np.linalg.cond(full) * 1e-14
        for found in (run(elements, right), wg.jit(run, native=True)(elements, right)):
            np.testing.assert_allclose(found, want, rtol=scale, atol=scale)
        lanes = wg.jit(wg.vmap(run), native=True)(np.stack([elements, 2 * elements]), np.stack([right, right]))
        np.testing.assert_allclose(lanes, [want, want / 2], rtol=scale, atol=scale)
        shared = wg.vmap(functools.partial(run, elements))(np.stack([right, 3 * right]))
        np.testing.assert_allclose(shared, [want, 3 * want], rtol=scale, atol=scale)


def test_fronts_without_pivots_give_no_numbers():
    """A matrix of two blocks, each of which takes the other's rows for its pivots."""
    size = 24
    rows, columns = np.nonzero((np.eye(size) + np.eye(size, k=1) + np.eye(size, k=-1)) != 0)
    fronts = Fronts(size, rows, columns)
    elements = np.where(rows == columns, 1e-14, 1.0)
    factors = functools.partial(apply, front_factors, fronts=fronts)
    assert len(fronts.members) > 1
    for run in (factors, wg.jit(factors, native=True)):
        assert np.all(np.isnan(run(elements[:, None], fronts.table)))


def spread(t, y, p):
    """Return how two substances react and spread in a square."""
    w = y.reshape(5, 5, 2)
    long, wide = (np.concatenate(x, axis) for axis, x in enumerate(([w[:1], w, w[-1:]], [w[:, :1], w, w[:, -1:]])))
    ways = long[2:] + long[:-2] + wide[:, 2:] + wide[:, :-2] - 4 * w
    reaction = w[..., 0] ** 2 * w[..., 1]
    change = np.stack([p[0] + reaction - (p[1] + 1) * w[..., 0], p[1] * w[..., 0] - reaction], axis=-1)
    return (change + p[2] * ways).reshape(-1)


STATE = np.abs(np.sin(1.0 + np.arange(50.0) ** 2)) + 1.0
RATES = np.array([1.0, 3.4, 2.0])


def test_matrices_of_fronts_are_held_as_full_ones_are():
    """Solutions, of complex matrices too, and their derivatives."""
    slope = lambda t, y: y[::-1] * np.sin(y) + np.roll(y, 3) ** 2
    y = np.linspace(0.5, 1.5, 12)
    full = FullMatrices()
    rows, columns = np.nonzero(full.jacobian(slope, 0.0, y) + np.eye(12))
    few = FrontMatrices(12, rows, columns)

    def found(matrices, y, count):
        states = [y + i for i in range(count)]
        jacobians = np.stack([matrices.jacobian(slope, 0.1, state) for state in states])
        weights = 0.1 * np.arange(count * count).reshape(count, count) - 0.5
        own, matrix = matrices.of_stages(9.0 * matrices.identity(jacobians[0]), weights, jacobians)
        return own.solve(own.factors(wg.stop_gradient(matrix)), matrix, np.concatenate(states))

    one, other = (functools.partial(found, matrices, count=2) for matrices in (few, full))
    np.testing.assert_allclose(one(y), other(y))
    np.testing.assert_allclose(wg.jacrev(one)(y), wg.jacrev(other)(y), rtol=1e-9, atol=1e-12)
    shifted = [(9.0 + 2.0j) * x.identity(j) - j for x in (few, full) for j in [x.jacobian(slope, 0.1, y)]]
    solutions = [x.substitute(x.factors(m), y + 1j) for x, m in zip((few, full), shifted, strict=True)]
    np.testing.assert_allclose(*solutions)


def test_equations_in_the_plane_are_solved_front_by_front(monkeypatch):
    """With the steps of SciPy, and gradients for which factors are made again."""
    monkeypatch.setattr(_programs, "PROGRAMS", FunctionCache(4))
    monkeypatch.setattr(element_matrices, "MOST_KEPT", 0)
    rest = (0.0, 0.3), STATE
    want = scipy.integrate.solve_ivp(spread, *rest, "BDF", args=(RATES,))
    found = solve_ivp(spread, *rest, "BDF", [0.3], args=(RATES,))
    np.testing.assert_allclose(found.y[:, 0], want.y[:, -1], rtol=1e-8)
    assert (found.nfev, found.njev, found.nlu) == (want.nfev, want.njev, want.nlu)

    def total(p, solve, method, tolerance):
        return np.sum(solve(spread, *rest, method, [0.3], args=(p,), rtol=tolerance, atol=tolerance).y ** 2)

    gradient = wg.grad(total)(RATES, solve_ivp, "Rodas5P", 1e-5)
    ends = [total(RATES + 1e-4 * sign, scipy.integrate.solve_ivp, "LSODA", 1e-10) for sign in (1, -1)]
    np.testing.assert_allclose(np.sum(gradient), (ends[0] - ends[1]) / 2e-4, rtol=1e-4)
    assert {type(kept.made.matrices) for kept in _programs.PROGRAMS.known.values()} == {FrontMatrices}
