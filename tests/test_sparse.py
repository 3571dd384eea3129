"""Products of SciPy's sparse matrices and Tensors, in every mode, and what is refused."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import wengert as wg
from tests.cases import together
from wengert.errors import DtypeError, GraphError, ShapeError

RNG = np.random.default_rng(0)
FULL = RNG.normal(size=(4, 5)) * (RNG.uniform(size=(4, 5)) < 0.5)
LEFT, RIGHT = RNG.normal(size=(2, 4)), RNG.normal(size=(5, 3))
FORMATS = [
    f"{name}_{kind}" for name in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil") for kind in ("array", "matrix")
]


def squares(x: Any) -> Any:
    return np.sum(x**2)


@together("name", FORMATS)
def test_products_of_every_format(name: str) -> None:
    matrix = getattr(scipy.sparse, name)(FULL)
    for x in (RIGHT, RIGHT[:, 0]):
        want = 2 * FULL.T @ (FULL @ x)
        for run in (wg.grad, lambda f: wg.jit(wg.grad(f)), lambda f: wg.grad(wg.jit(f))):
            np.testing.assert_allclose(run(lambda x: squares(matrix @ x))(x), want, rtol=1e-12)
    for x in (LEFT, LEFT[0]):
        np.testing.assert_allclose(wg.grad(lambda x: squares(x @ matrix))(x), 2 * (x @ FULL) @ FULL.T, rtol=1e-12)
    x = wg.tensor(RIGHT, requires_grad=True)
    np.testing.assert_array_equal((matrix @ x).detach(), matrix @ RIGHT)
    row = getattr(scipy.sparse, name)(FULL[:1])  # of which some formats give a number
    assert wg.jvp(lambda x: row @ x, (RIGHT[:, 0],), (RIGHT[:, 0],))[0].shape == (row @ RIGHT[:, 0]).shape


def test_products_in_other_modes() -> None:
    matrix = scipy.sparse.csr_array(FULL)
    x = RIGHT[:, 0]
    np.testing.assert_allclose(wg.jacfwd(lambda x: matrix @ x)(x), FULL)
    np.testing.assert_allclose(wg.jacrev(lambda x: matrix @ x)(x), FULL)
    np.testing.assert_allclose(wg.hessian(lambda x: squares(matrix.dot(x)))(x), 2 * FULL.T @ FULL)
    np.testing.assert_allclose(wg.vmap(lambda x: matrix @ x)(RIGHT.T), (FULL @ RIGHT).T)
    np.testing.assert_allclose(wg.vmap(lambda x: matrix @ x)(np.stack([RIGHT, -RIGHT])), [FULL @ RIGHT, -FULL @ RIGHT])
    changed = scipy.sparse.csr_array(FULL)
    leaf = wg.tensor(x, requires_grad=True)
    product = changed @ leaf
    changed.data[:] = 0.0
    product.sum().backward()
    np.testing.assert_allclose(leaf.grad, FULL.sum(axis=0))


def test_refusals_of_products() -> None:
    matrix = scipy.sparse.csr_array(FULL)
    leaf = wg.tensor(LEFT[0], requires_grad=True)
    text = (
        "matmul: a sparse matrix of shape (4, 5) and a Tensor of shape (4,); a vector or a matrix with as many rows as "
        "the sparse matrix has columns is needed. Reshape it."
    )
    with pytest.raises(ShapeError, match="^" + re.escape(text) + "$"):
        matrix @ leaf


def test_operators_beside_constant_matrices() -> None:
    """Each operand may be the one that is differentiated: SciPy leaves what it does not know to the other."""
    full = np.abs(FULL) + 1.0
    for name in FORMATS:
        matrix, is_array = getattr(scipy.sparse, name)(FULL), name.endswith("array")
        cases = [
            (lambda x, a: a + x, full),
            (lambda x, a: x - a, full),
            (lambda x, a: a / x, full),
            (lambda x, a: a * x[0, 0], full),
            (lambda x, a: (x[0, 0] * a) / x[1, 1], full),
        ]
        cases += (
            [(lambda x, a: a * x, full), (lambda x, a: x * a, full)] if is_array else [(lambda x, a: a * x, full.T)]
        )
        for operation, at in cases:
            want = in_full(operation(at, matrix))
            for run in (lambda f: f, wg.jit):
                value, slope = wg.jvp(run(lambda x, f=operation, a=matrix: in_full(f(x, a))), (at,), (at,))
                np.testing.assert_allclose(value, want, rtol=1e-12)
                near = [in_full(operation(at + h * at, matrix)) for h in (1e-6, -1e-6)]
                np.testing.assert_allclose(slope, (near[0] - near[1]) / 2e-6, rtol=1e-6, atol=1e-8)


def in_full(x: Any) -> Any:
    return x.toarray() if hasattr(x, "toarray") else np.asarray(x) if isinstance(x, np.matrix) else x


def test_refusals_of_what_sparse_matrices_have_not() -> None:
    matrix, x = scipy.sparse.csr_array(FULL), FULL
    text = (
        "remainder: a sparse matrix and a Tensor of shape (4, 5); two arrays are needed. Write matrix @ x or x @ "
        "matrix, take wengert.scipy.sparse.csr_array(matrix) in its place, or the matrix in full with .toarray()."
    )
    for run in (wg.grad, wg.jit):
        with pytest.raises(GraphError, match="^" + re.escape(text)):
            run(lambda x: np.sum(x % matrix))(x)
    for operation in (lambda x: x**matrix, lambda x: np.maximum(x, matrix), lambda x: x > matrix):
        with pytest.raises((GraphError, DtypeError), match=re.escape(".toarray()")):
            wg.grad(lambda x, f=operation: np.sum(f(x)))(x)
