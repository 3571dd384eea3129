"""Jitted functions as native code: what they give is what NumPy gives but for rounding."""

import numpy as np
import pytest

import wengert as wg
from wengert.compile.executable import Compiled
from wengert.transforms.tracing import trace

pytest.importorskip("llvmlite")
X = np.linspace(-0.9, 1.1, 10)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def softmax(x):
    moved = np.exp(x - np.max(x))
    return moved / np.sum(moved)


def solved(x):
    return np.linalg.solve(np.eye(len(x)) * 2.0, np.exp(x)) * x


def unchanged(x):
    return x, np.cumsum(x[::-1]), x * 2.0


@pytest.mark.parametrize("f", [rosenbrock, softmax, solved, unchanged])
def test_values(f):
    run = Compiled(trace(f)(X))
    found, expected = run([X]), f(X)
    for ours, theirs in zip(found, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


@pytest.mark.parametrize("f", [rosenbrock, lambda x: np.sum(softmax(x) ** 2), lambda x: np.sum(solved(x))])
def test_gradients(f):
    run = Compiled(trace(wg.value_and_grad(f))(X))
    for ours, theirs in zip(run([X]), wg.value_and_grad(f)(X), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-12)


@pytest.mark.parametrize("rows", [3, 8])
def test_products_of_what_does_not_vary_along_the_lanes(rows):
    def f(x, y):
        repeated = [np.broadcast_to(z, (rows, 4)) for z in (x, y)]
        return np.einsum("ij,kj->ki", *repeated), repeated[0] @ repeated[1].T, np.einsum("ij,kj->i", *repeated)

    args = [X[:4], X[3:7]]
    for ours, theirs in zip(Compiled(trace(f)(*args))(args), f(*args), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-13)


def test_what_kernels_cannot_do_runs_as_numpy_between_them():
    run = Compiled(trace(solved)(X))
    assert [part.program is None for part in run.segments.parts] == [False, True, False]
    assert [reason for part in run.segments.parts for reason in part.reasons]
