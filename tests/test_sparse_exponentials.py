"""Exponentials of sparse matrices times arrays: derivatives against those of exponentials in full."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse
import scipy.sparse.linalg

import wengert as wg
import wengert.scipy.linalg
from tests.cases import together
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.scipy.sparse import linalg

RNG = np.random.default_rng(3)
SIZE = 5
FULL = RNG.normal(size=(SIZE, SIZE)) * (RNG.uniform(size=(SIZE, SIZE)) < 0.5)
B, C = RNG.normal(size=(2, SIZE, 2))


def sines(a: Any, b: Any = B) -> Any:
    return np.sum(np.sin(linalg.expm_multiply(a, b)) * C)


def sines_in_full(a: Any, b: Any = B) -> Any:
    return np.sum(np.sin(wengert.scipy.linalg.expm(a.toarray()) @ b) * C)


def compare(of: Any, rtol: float = 1e-10) -> None:
    got, want = of(sines), of(sines_in_full)
    np.testing.assert_allclose(got, want, rtol=rtol, atol=1e-12 * np.max(np.abs(want)))


@together("format", ["csr", "coo", "dia"])
def test_derivatives_of_exponentials(format: str) -> None:
    matrix = scipy.sparse.csr_array(FULL).asformat(format)
    direction = matrix.copy()
    direction.data = RNG.normal(size=matrix.data.shape)
    compare(lambda f: f(matrix))
    for transform in (lambda g: g, wg.jit):
        compare(lambda f, t=transform: t(wg.grad(f))(matrix).data)
        compare(lambda f, t=transform: t(lambda a: wg.jvp(f, (a, B), (direction, C))[1])(matrix))
    compare(lambda f: wg.grad(f, 1)(matrix, B))
    compare(lambda f: wg.hvp(f, (matrix,), (direction,))[0].data)
    compare(lambda f: wg.grad(lambda a: np.sum(wg.grad(f)(a).data ** 2))(matrix).data)
    third = lambda f: lambda a: wg.hvp(f, (a,), (direction,))[0].data
    compare(lambda f: wg.jvp(third(f), (matrix,), (direction,))[1])
    compare(lambda f: wg.vmap(wg.grad(lambda s: f(matrix * s)))(np.array([1.0, -2.0])))
    compare(lambda f: wg.vmap(wg.grad(lambda b: f(matrix, b)))(np.stack([B, C])))


def test_norms_of_any_size() -> None:
    stiff = scipy.sparse.csr_array(FULL * 3 - 60 * np.eye(SIZE) + 60 * np.diag([0.0, 0, 0, 0, 1]))
    compare(lambda f: wg.grad(f)(stiff).data, 1e-9)
    matrix = scipy.sparse.csr_array(FULL)
    one = wg.jvp(sines, (matrix,), (matrix,))[1]
    for size in (1e-30, 1e200):  # of whose square there is no number
        np.testing.assert_allclose(wg.jvp(sines, (matrix,), (matrix * size,))[1], one * size, rtol=1e-12)
    complex_ones = scipy.sparse.csr_array(FULL * (1 + 2j))
    compare(lambda f: wg.grad(lambda a: np.abs(f(a)))(complex_ones).data)
    assert np.isnan(linalg.expm_multiply(matrix * np.nan, B)).all()
    none = scipy.sparse.csr_array((SIZE, SIZE))
    np.testing.assert_array_equal(wg.grad(sines, 1)(none, B), np.cos(B) * C)
    np.testing.assert_allclose(
        wg.grad(sines)(scipy.sparse.diags_array(np.zeros(SIZE))).data[0], np.sum(np.cos(B) * C * B, 1)
    )
    single = linalg.expm_multiply(matrix.astype(np.float32), B.astype(np.float32))
    assert (single.dtype, linalg.expm_multiply(matrix, np.ones(SIZE, int)).shape) == (np.float32, (SIZE,))


def test_several_times() -> None:
    matrix = scipy.sparse.csr_array(FULL)
    for options in ({"num": 4}, {"num": 3, "endpoint": False}, {"num": 1}):
        got = linalg.expm_multiply(matrix, B, 0.5, 2.0, **options)
        wanted = scipy.sparse.linalg.expm_multiply(matrix, B, 0.5, 2.0, **options) if options["num"] > 1 else got
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    last = lambda start, stop: np.sum(linalg.expm_multiply(matrix, B, start, stop, 3)[-1] * C)
    rate = np.sum(FULL @ linalg.expm_multiply(matrix, B, 0.5, 2.0, 3)[-1] * C)
    np.testing.assert_allclose(wg.grad(last, (0, 1))(0.5, 2.0), (0.0, rate), atol=1e-12)


def test_refusals_of_exponentials() -> None:
    square = scipy.sparse.csr_array(FULL)
    for call, kind, said in [
        (lambda: linalg.expm_multiply(FULL, B), DtypeError, "expm_multiply: a matrix of type ndarray; a sparse array "),
        (lambda: linalg.expm_multiply(square[:3], B), ShapeError, "expm_multiply: a matrix of shape (3, 5); a square "),
        (lambda: linalg.expm_multiply(square, B[:3]), ShapeError, "expm_multiply: shape (3, 2) on the right of 5 "),
        (
            lambda: linalg.expm_multiply(square, square),
            DtypeError,
            "expm_multiply: a sparse right-hand side; an array ",
        ),
        (lambda: linalg.expm_multiply(square, B, 1.0), UsageError, "expm_multiply: times of which start or stop is "),
        (lambda: linalg.expm_multiply(square, B, 0.0, 1.0, 0), UsageError, "expm_multiply: 0 for num; a whole number"),
    ]:
        with pytest.raises(kind, match="^" + re.escape(said)):
            call()
