"""Samples of decompositions, matrix functions and matrix equations: NumPy's and SciPy's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import wengert as wg
import wengert.scipy.linalg
from tests.samples.base import Sample, normal, sample


def of_scipy(name: str, after: Callable[[Any], Any] = lambda result: result) -> Callable[..., Any]:
    """Return the function of Wengert where there are Tensors among the arguments, and else SciPy's own."""

    def call(*args: Any, **options: Any) -> Any:
        flat = [x for arg in args for x in (arg if isinstance(arg, tuple) else (arg,))]
        module = wengert.scipy.linalg if any(isinstance(x, wg.Tensor) for x in flat) else scipy.linalg
        return after(getattr(module, name)(*args, **options))

    call.__name__ = name
    return call


def complexes(*shape: int, seed: int = 0) -> np.ndarray:
    """Return complex normal numbers."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)


def definite(*shape: int) -> np.ndarray:
    """Return positive definite matrices, and something in the triangle that is not read."""
    x = normal(*shape)
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1]) + np.triu(normal(*shape, seed=2), 1)


def hermitian(n: int) -> np.ndarray:
    """Return a positive definite complex matrix."""
    x = complexes(n, n)
    return x @ x.conj().T + 2 * np.eye(n)


def triangle(n: int) -> np.ndarray:
    """Return a matrix whose triangles are far from singular."""
    return normal(n, n) + 3 * np.eye(n)


triangles: list[Sample] = [
    sample("cholesky", np.linalg.cholesky, definite(3, 3)),
    sample("cholesky", np.linalg.cholesky, definite(2, 2, 2).swapaxes(-1, -2).copy(), upper=True),
    sample("cholesky", np.linalg.cholesky, hermitian(2)),
    sample("cholesky", np.linalg.cholesky, np.zeros((0, 0))),
    sample("scipy_cholesky", of_scipy("cholesky"), definite(3, 3).T.copy()),
    sample("scipy_cholesky", of_scipy("cholesky"), hermitian(2), lower=True),
    sample("scipy_cholesky", of_scipy("cho_factor", lambda found: found[0]), definite(3, 3), lower=True),
    sample("solve_triangular", of_scipy("solve_triangular"), triangle(3), normal(3)),
    sample("solve_triangular", of_scipy("solve_triangular"), triangle(3), normal(3, 2), trans=1, lower=True),
    sample("solve_triangular", of_scipy("solve_triangular"), triangle(2), normal(2, 2), unit_diagonal=True, trans="T"),
    sample("solve_triangular", of_scipy("solve_triangular"), complexes(2, 2) + 2 * np.eye(2), complexes(2), trans="C"),
    sample("cho_solve", of_scipy("cho_solve"), (triangle(3), True), normal(3)),
    sample("cho_solve", of_scipy("cho_solve"), (complexes(2, 2) + 2 * np.eye(2), False), complexes(2, 2)),
]
SAMPLES = [*triangles]
