"""Linear algebra: what single samples do not show."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.linalg

import wengert as wg
import wengert.numpy as wnp
import wengert.scipy.linalg as wsl
from tests.cases import together
from wengert.errors import GraphError, ShapeError, UsageError
from wengert.primitives.linear_algebra import determinants
from wengert.primitives.linear_algebra import orthogonal as factors
from wengert.primitives.signals import fourier
from wengert.support.hints import names_left_out
from wengert.testing import check_grads


@pytest.mark.parametrize("count", [3, 4, 7, 120])
def test_multi_dot_multiplies_in_numpys_order_however_many_factors(count: int) -> None:
    rng = np.random.default_rng(count)
    lengths = rng.integers(1, 6, count + 1)
    factors = [rng.standard_normal(shape) for shape in pairwise(lengths)]
    np.testing.assert_array_equal(wnp.linalg.multi_dot(factors).numpy(), np.linalg.multi_dot(factors))


def test_slogdet_gives_a_named_tuple_as_numpy_does() -> None:
    found, expected = wnp.linalg.slogdet(np.diag([2.0, -3.0])), np.linalg.slogdet(np.diag([2.0, -3.0]))
    assert type(found) is type(expected)
    assert (float(found.sign), float(found.logabsdet)) == (float(expected.sign), float(expected.logabsdet))


RANKS = [
    (1, 0),
    (2, 1),
    (3, 3),
    (3, 2),
    (3, 1),
    (3, 0),
    *(pytest.param(4, n, marks=pytest.mark.long) for n in (3, 2, 1)),
]


@pytest.mark.parametrize(("size", "rank"), RANKS)
def test_determinants_have_derivatives_of_every_order_at_matrices_of_every_rank(size: int, rank: int) -> None:
    rng = np.random.default_rng(size)
    a = rng.normal(size=(size, rank)) @ rng.normal(size=(rank, size))
    check_grads(np.linalg.det, (a,), order=3, modes=("rev", "fwd"))
    hessian = wg.hessian(np.linalg.det)
    np.testing.assert_allclose(wg.jit(hessian)(a), hessian(a), atol=1e-14)
    np.testing.assert_allclose(wg.vmap(hessian)(np.stack([a, np.eye(size)]))[0], hessian(a), atol=1e-14)


@pytest.mark.parametrize("size", [4, 6])
@pytest.mark.parametrize("count", [0, 1, 2, 3])
def test_cofactors_along_directions_are_those_by_singular_values(size: int, count: int) -> None:
    rng = np.random.default_rng(size)
    a, *directions = rng.normal(size=(count + 1, 5, size, size))
    a[:3] += 3 * np.eye(size)  # these are well conditioned
    a[3:, :, 0] = 0.0  # and these are singular, the last in two ways
    a[4, 1] = a[4, 2]
    found = determinants.evaluate_cofactors(a, *directions)
    expected = determinants.cofactors_by_singular_values(a, directions)
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
    for function in (
        determinants.evaluate_cofactors,
        lambda a, *given: determinants.cofactors_by_singular_values(a, given),
    ):
        scaled = function(1e8 * a, *directions) / 1e8 ** (size - 1 - count)
        np.testing.assert_allclose(scaled, expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())


def test_determinants_of_nearly_singular_matrices_lose_nothing() -> None:
    assert wg.hessian(np.linalg.det)(np.diag([1e-20, 1.0, 1.0, 1.0, 1.0]))[1, 1, 2, 2] == pytest.approx(1e-20)
    a = np.arange(1.0, 10.0).reshape(3, 3)  # singular, but its determinant comes out as 6.7e-16
    third = wg.hessian(np.linalg.det)(a)[0, 0]
    np.testing.assert_allclose(third, [[0, 0, 0], [0, 9, -8], [0, -6, 5]], atol=1e-13)


def test_determinants_of_what_is_not_finite_are_no_error_in_other_lanes() -> None:
    with np.errstate(invalid="ignore"):
        found = wg.vmap(wg.hessian(np.linalg.det))(np.stack([np.full((2, 2), np.nan), np.zeros((2, 2))]))
    assert np.isnan(found[0]).all()
    assert found[1].ravel()[[3, 6, 9, 12]].tolist() == [1.0, -1.0, -1.0, 1.0]


SINGULAR = np.stack([2 * np.eye(2), np.zeros((2, 2)), np.ones((2, 2))])


def logarithms_where_there_are_any(a: Any) -> Any:
    sign, logarithm = np.linalg.slogdet(a)
    return np.sum(np.where(sign > 0, logarithm, 0.0))


@pytest.mark.parametrize("run", [lambda f: f, wg.jit, wg.checkpoint], ids=["eager", "jit", "checkpoint"])
def test_logarithms_of_determinants_may_be_masked_where_matrices_are_singular(run: Any) -> None:
    f, half = logarithms_where_there_are_any, np.stack([np.eye(2) / 2, np.zeros((2, 2)), np.zeros((2, 2))])
    direction = np.arange(12.0).reshape(3, 2, 2)
    np.testing.assert_array_equal(run(wg.grad(f))(SINGULAR), half)
    np.testing.assert_array_equal(run(lambda a: wg.jvp(f, (a,), (direction,))[1])(SINGULAR), 1.5)
    for along in (
        lambda a: wg.jvp(wg.grad(f), (a,), (direction,))[1],
        wg.grad(lambda a: np.sum(wg.grad(f)(a) * direction)),
        wg.grad(lambda a: wg.jvp(f, (a,), (direction,))[1]),
    ):
        np.testing.assert_array_equal(run(along)(SINGULAR)[0], -direction[0].T / 4)
        np.testing.assert_array_equal(run(along)(SINGULAR)[1:], 0.0)
    np.testing.assert_array_equal(run(wg.vmap(wg.grad(f)))(SINGULAR), half)
    np.testing.assert_array_equal(run(wg.grad(lambda a: np.linalg.slogdet(a)[1][0]))(SINGULAR), half)


def test_logarithms_of_singular_determinants_have_no_derivatives() -> None:
    with pytest.raises(np.linalg.LinAlgError) as error:
        wg.grad(lambda a: np.linalg.slogdet(a)[1])(np.ones((2, 2)))
    assert str(error.value) == (
        "slogdet: a singular matrix, of whose determinant the logarithm has no derivative; a regular one is needed, or "
        "a cotangent that is 0. Choose by numpy.where what is wanted there, or use det, which has derivatives at "
        "matrices of any rank."
    )
    with pytest.raises(np.linalg.LinAlgError):
        wg.jit(wg.grad(lambda a: np.linalg.slogdet(a)[1]))(np.ones((2, 2)))
    assert np.isnan(wg.jvp(lambda a: np.linalg.slogdet(a)[1], (np.ones((2, 2)),), (np.eye(2),))[1])


# Repeated eigenvalues and singular values

Q = np.linalg.qr(np.random.default_rng(7).normal(size=(3, 3)))[0]
WEIGHTS = np.array([[1.0, 2.0, -1.0], [2.0, 0.5, 3.0], [-1.0, 3.0, -2.0]])
REPEATED = {
    "identity": np.eye(3),
    "diagonal": np.diag([1.0, 1.0, 2.0]),
    "turned": Q @ np.diag([1.0, 1.0, 2.0]) @ Q.T,
    "zero": np.zeros((3, 3)),
}
at_repeated = pytest.mark.parametrize("a", REPEATED.values(), ids=REPEATED)


def symmetric(a: Any) -> Any:
    return (a + a.T) / 2


@at_repeated
def test_functions_of_matrices_by_eigenvectors_have_gradients_at_repeated_eigenvalues(a: Any) -> None:
    def loss(a: Any) -> Any:
        w, v = np.linalg.eigh(symmetric(a))
        return np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T))

    def same(a: Any) -> Any:
        return np.sum(WEIGHTS * wsl.expm(symmetric(a)))

    np.testing.assert_allclose(wg.grad(loss)(a), wg.grad(same)(a), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(a), wg.grad(same)(a), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(wg.vmap(wg.grad(loss))(a[None])[0], wg.grad(same)(a), rtol=1e-12, atol=1e-13)


@at_repeated
def test_symmetric_functions_of_repeated_eigenvalues_have_gradients(a: Any) -> None:
    for values in (np.linalg.eigvalsh, lambda a: np.linalg.eigh(a)[0]):
        gradient = wg.grad(lambda a, values=values: np.sum(values(symmetric(a)) ** 3))(a)
        np.testing.assert_allclose(gradient, 3 * a @ a, atol=1e-13)


@at_repeated
def test_norms_by_singular_values_have_gradients_at_repeated_ones(a: Any) -> None:
    nuclear = wg.grad(lambda a: np.linalg.norm(a, "nuc"))(a)
    np.testing.assert_allclose(nuclear, np.eye(3) * bool(a.any()), atol=1e-13)
    assert np.isfinite(wg.grad(lambda a: np.linalg.norm(a, 2))(a)).all()


def test_polar_factors_have_gradients_at_repeated_singular_values() -> None:
    def factor(a: Any) -> Any:
        u, _, vh = np.linalg.svd(a)
        return np.sum(np.arange(9.0).reshape(3, 3) * (u @ vh))

    np.testing.assert_allclose(wg.jacrev(lambda a: np.matmul(*np.linalg.svd(a)[::2]))(np.eye(3))[0, 1, 0], [0, 0.5, 0])
    found = wg.grad(factor)(2 * Q)
    skew = Q.T @ np.arange(9.0).reshape(3, 3)
    np.testing.assert_allclose(found, Q @ (skew - skew.T) / 4, atol=1e-13)


def test_spaces_of_repeated_eigenvalues_have_gradients() -> None:
    a = REPEATED["turned"]

    def loss(a: Any) -> Any:
        v = np.linalg.eigh(symmetric(a))[1][:, :2]
        return np.sum(WEIGHTS * (v @ v.T))

    split = Q @ np.diag([1.0, 1.0 + 1e-6, 2.0]) @ Q.T
    np.testing.assert_allclose(wg.grad(loss)(a), wg.grad(loss)(split), atol=2e-5)


def orthogonal(count: int, kind: Any) -> Any:
    """Return a random unitary matrix of a dtype, in double precision."""
    generator = np.random.default_rng(count)
    real, imaginary = generator.normal(size=(2, count, count))
    return np.linalg.qr(real + 1j * imaginary if np.dtype(kind).kind == "c" else real)[0]


@pytest.mark.parametrize("kind", "fdFD")
@pytest.mark.parametrize("count", [2, 40])
def test_repeated_eigenvalues_are_found_though_they_come_out_some_roundings_apart(kind: str, count: int) -> None:
    w = np.repeat(np.random.default_rng(0).uniform(1, 2, count // 2), 2)
    u, v = orthogonal(count, kind), np.roll(orthogonal(count, kind), 1, axis=0)
    weights = np.random.default_rng(1).normal(size=(count, count))
    tolerance = 300 * np.finfo(kind).eps * count

    def of_hermitian(a: Any) -> Any:
        found, vectors = np.linalg.eigh(a)
        return np.sum(weights.astype(kind) * ((vectors * np.exp(found)) @ np.conj(vectors.T))).real

    def of_singular(a: Any) -> Any:
        left, found, right = np.linalg.svd(a)
        return np.sum(weights.astype(kind) * ((left * found**3) @ right)).real

    a = ((u * w) @ np.conj(u.T)).astype(kind)
    slopes = np.exp(w)  # within clusters; else quotients of differences
    gaps = np.subtract.outer(w, w)
    slopes = np.where(gaps == 0, slopes[:, None], np.subtract.outer(slopes, slopes) / np.where(gaps == 0, 1, gaps))
    right = u @ (slopes * (np.conj(u.T) @ ((weights + weights.T) / 2) @ u)) @ np.conj(u.T)
    found = wg.grad(of_hermitian)(a).astype(right.dtype)
    found = (found + np.conj(found.T)) / 2
    np.testing.assert_allclose(np.conj(found), right, atol=tolerance * np.abs(right).max())
    b = ((u * w) @ np.conj(v.T)).astype(kind)
    b_weights = weights.astype(kind)
    right = wg.grad(lambda b: np.sum(b_weights * (b @ np.conj(b.T) @ b)).real)(b)
    np.testing.assert_allclose(wg.grad(of_singular)(b), right, atol=tolerance * np.abs(right).max())


@pytest.mark.parametrize("kind", "fd")
@pytest.mark.parametrize("name", ["eigh", "svd"])
def test_eigenvalues_that_differ_by_more_than_their_errors_have_vectors_with_gradients(kind: str, name: str) -> None:
    count, gap = 100, 200 * np.finfo(kind).eps
    w = 1 + gap * np.arange(count)
    u = orthogonal(count, "d")
    a = ((u * w) @ (u.T if name == "eigh" else np.eye(count))).astype(kind)
    weights = np.random.default_rng(1).normal(size=(count, count)).astype(kind)

    def loss(a: Any) -> Any:
        return np.sum(weights * (np.linalg.eigh(a)[1] if name == "eigh" else np.linalg.svd(a)[0]))

    sizes = np.abs(wg.grad(loss)(a)).max() * gap  # they turn by the change of the matrix over gaps
    assert 0.1 < sizes < 10


def test_repeated_eigenvalues_of_square_matrices_are_found_by_the_errors_of_their_own() -> None:
    generator = np.random.default_rng(3)
    for count in (3, 10, 30):
        v = generator.normal(size=(count, count))
        v[:, 0] = v[:, -1] + 1e-3 * v[:, 0]  # condition numbers of some thousands
        w = np.arange(count) + 1.0
        a = (v * np.where(w == 2, 3, w)) @ np.linalg.inv(v) + 0j
        with pytest.raises(np.linalg.LinAlgError, match="a repeated eigenvalue"):
            wg.grad(lambda a: np.sum(np.linalg.eig(a)[1][0].real))(a)
        distinct = (v * w) @ np.linalg.inv(v) + 0j
        assert np.isfinite(wg.grad(lambda a: np.sum(np.linalg.eig(a)[1][0].real))(distinct)).all()


def test_eigenvalues_relative_to_a_matrix_in_every_mode() -> None:
    generator = np.random.default_rng(5)
    real, imaginary, other = generator.normal(size=(3, 4, 4))
    z = real + 1j * imaginary
    a, b = z @ np.conj(z.T), other @ other.T + np.eye(4)
    w, v = wsl.eigh(a, b)
    np.testing.assert_allclose(np.conj(v.T) @ b @ v, np.eye(4), atol=1e-12)

    def loss(a: Any, b: Any) -> Any:
        w, v = wsl.eigh(a, b)
        return np.sum(np.abs(v[0]) ** 2 * np.sin(w)) + np.sum(w**2)

    def same(x: Any, b: Any) -> Any:
        half = np.linalg.cholesky(b)
        return loss_of_one(wsl.solve_triangular(half, wsl.solve_triangular(half, x, lower=True).T, lower=True).T, half)

    def loss_of_one(c: Any, half: Any) -> Any:
        w, v = np.linalg.eigh(c)
        v = wsl.solve_triangular(half, v, lower=True, trans="T")
        return np.sum(np.abs(v[0]) ** 2 * np.sin(w)) + np.sum(w**2)

    check_grads(lambda x, b: loss((x + x.T) / 2, (b + b.T) / 2), (a.real, b), order=2)
    for found, right in zip(
        wg.grad(lambda x, b: loss(symmetric(x), symmetric(b)), argnums=(0, 1))(a.real, b),
        wg.grad(lambda x, b: same(symmetric(x), symmetric(b)), argnums=(0, 1))(a.real, b),
        strict=True,
    ):
        np.testing.assert_allclose(found, right, rtol=1e-9, atol=1e-10)
    for found in wg.vmap(wg.grad(loss, argnums=(0, 1)))(np.stack([a, a]), np.stack([b, b])):
        np.testing.assert_allclose(found[0], found[1])
    np.testing.assert_allclose(wg.jit(wg.grad(loss))(a, b), wg.grad(loss)(a, b), rtol=1e-10)
    lowest = wg.grad(lambda b: wsl.eigvalsh(a, b)[0])(b)
    first = v.numpy()[:, 0]
    outer = -w.numpy()[0] * np.outer(first, np.conj(first)).real
    np.testing.assert_allclose(lowest, np.tril(outer, -1) * 2 + np.diag(np.diag(outer)), rtol=1e-9)
    repeated = wg.grad(lambda b: np.sum(wsl.eigh(np.eye(3), b, eigvals_only=True) ** 2))(2 * np.eye(3))
    np.testing.assert_allclose(repeated, -np.eye(3) / 4, atol=1e-12)


GAUGE = {
    "some of them": lambda a: np.sum(WEIGHTS[:2, :2] * np.linalg.eigh(symmetric(a))[1][:2, :1]),
    "singular vectors": lambda a: np.sum(WEIGHTS[:, :2] * np.linalg.svd(a)[0][:, 1:]),
    "two functions": lambda a: two_functions(*np.linalg.eigh(symmetric(a))),
    "an element of a function of the matrix": lambda a: function_of(*np.linalg.eigh(symmetric(a)))[0, 1],
    "eigenvectors of a square matrix": lambda a: np.linalg.eig(a + 0j)[1][1, 0].real,
    "functions whose cotangents are proportional": lambda a: density(np.ones(3), *np.linalg.eigh(symmetric(a))),
    "a function alone whose cotangents are constant": lambda a: np.sum(function_of(*np.linalg.eigh(symmetric(a)))),
    "a function that is 0 there": lambda a: form_of(np.log, a),
    "the matrix, at an eigenvalue 0": lambda a: form_of(lambda w: w, a - np.eye(3)),
    "a function that is 0 there, of the identity": lambda a: form_of(np.log, 0 * a + a[0, 0] * np.eye(3)),
}


def form_of(function: Any, a: Any) -> Any:
    """Return a quadratic form of a function of a matrix, by eigenvectors."""
    w, v = np.linalg.eigh(symmetric(a))
    turned = v.T @ np.arange(1.0, 4.0)
    return np.sum(function(w) * turned**2)


def density(y: Any, w: Any, v: Any) -> Any:
    """Return log det A + y^T A^-1 y by eigenvectors."""
    return np.sum(np.log(w)) + np.sum((v.T @ y) ** 2 / w)


def function_of(w: Any, v: Any) -> Any:
    return (v * np.exp(w)) @ v.T


def two_functions(w: Any, v: Any) -> Any:
    return np.sum(WEIGHTS * ((v * np.exp(w)) @ v.T)) + np.sum(np.outer([1, 2, 3], [1, 2, 3]) * ((v * w**3) @ v.T))


@pytest.mark.parametrize("name", GAUGE)
def test_gradients_that_depend_on_the_choice_of_eigenvectors_are_errors(name: str) -> None:
    with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvectors: a repeated eigenvalue \(or singular value\) in "):
        wg.grad(GAUGE[name])(REPEATED["turned"] if name == "singular vectors" else REPEATED["diagonal"])


def second(function: Any, a: Any, direction: Any) -> Any:
    """Return the derivative of a gradient along a direction."""
    return wg.jvp(wg.grad(function), (a,), (direction,))[1]


DIRECTION = np.array([[0.3, -1.2, 0.7], [0.4, 0.9, -0.2], [1.1, 0.6, -0.8]])


@at_repeated
def test_functions_of_eigenvalues_alone_have_second_derivatives_at_repeated_ones(a: Any) -> None:
    def logarithm(a: Any) -> Any:
        return np.sum(np.log(np.linalg.eigvalsh(symmetric(a) + 2 * np.eye(3))))

    inverse, e = np.linalg.inv(a + 2 * np.eye(3)), symmetric(DIRECTION)
    for run in (lambda f: f, wg.jit, lambda f: lambda x: wg.vmap(f)(np.stack([x, x + np.diag([1.0, 2.0, 3.0])]))[0]):
        found = run(lambda a: second(logarithm, a, DIRECTION))(a)
        np.testing.assert_allclose(found, -inverse @ e @ inverse, atol=1e-14)
    e = DIRECTION
    for values in (np.linalg.svdvals, wsl.svdvals):
        found = second(lambda a, values=values: np.sum(values(a) ** 4), a, e)
        np.testing.assert_allclose(found, 4 * (e @ a.T @ a + a @ e.T @ a + a @ a.T @ e), atol=1e-13)
    b = np.eye(3) + DIRECTION @ DIRECTION.T / 10
    found = second(lambda a: np.sum(wsl.eigvalsh(symmetric(a), b) ** 2), a, e)
    np.testing.assert_allclose(found, 2 * np.linalg.inv(b) @ symmetric(e) @ np.linalg.inv(b), atol=1e-13)
    found = wg.jvp(wg.grad(lambda x: np.sum(wsl.eigvalsh(b, symmetric(x)) ** 2)), (b,), (symmetric(e),))[1]
    right = wg.jvp(wg.grad(lambda x: np.sum(np.linalg.inv(symmetric(x)) @ b * (np.linalg.inv(x) @ b).T)), (b,), (e,))
    np.testing.assert_allclose(found, symmetric(right[1]), atol=1e-12)


def test_hessians_of_functions_of_eigenvalues_that_are_repeated_or_zero() -> None:
    pairs = [(0, 0), (0, 1), (1, 0), (1, 1)]
    found = wg.hessian(lambda a: np.sum(np.log(np.linalg.eigvalsh(symmetric(a)))))(np.eye(2))
    np.testing.assert_allclose([found[*i, *i] for i in pairs], [-1.0, -0.5, -0.5, -1.0])
    lone = wg.hessian(lambda a: np.linalg.eigvalsh(symmetric(a))[2])(np.diag([2.0, 2.0, 5.0]))
    np.testing.assert_allclose([lone[0, 2, 0, 2], lone[0, 1, 0, 1], lone[2, 2, 2, 2]], [1 / 6, 0, 0], atol=1e-14)
    for shape, rank in (((3, 3), 0), ((4, 3), 1), ((2, 4), 1), ((3, 3), 3)):
        generator = np.random.default_rng(rank)
        a = generator.normal(size=(shape[0], rank)) @ generator.normal(size=(rank, shape[1]))
        found = wg.hessian(lambda a: np.sum(np.linalg.svdvals(a) ** 2))(a)
        np.testing.assert_allclose(found, 2 * np.eye(a.size).reshape(*shape, *shape), atol=1e-13)


UNEQUAL = {
    "the least": lambda a: np.linalg.eigvalsh(symmetric(a))[0],
    "a weighted sum": lambda a: np.sum(np.arange(3) * np.linalg.eigvalsh(symmetric(a))),
    "the largest singular value": lambda a: np.linalg.svdvals(a)[0],
    "of two matrices": lambda a: wsl.eigvalsh(symmetric(a), np.eye(3))[0],
}


@pytest.mark.parametrize("name", UNEQUAL)
def test_gradients_of_single_ones_of_repeated_eigenvalues_are_errors(name: str) -> None:
    for function in (UNEQUAL[name], wg.jit(UNEQUAL[name])):
        with pytest.raises(np.linalg.LinAlgError) as error:
            wg.grad(function)(2 * np.eye(3))
    assert str(error.value) == (
        "eigenvalues: cotangents that differ between those of one repeated eigenvalue (or singular value) in reverse "
        "mode; a function that is symmetric in these is needed, for they have no derivatives one by one, and a second "
        "derivative in forward mode over reverse mode. Use all of them alike, as by their sum, and wengert.hessian, or "
        "wengert.jvp of wengert.grad, for second derivatives."
    )
    assert np.isfinite(wg.grad(UNEQUAL[name])(np.diag([1.0, 2.0, 3.0]))).all()


def test_norms_and_conditions_share_equally_between_repeated_singular_values() -> None:
    for order in (2, -2):
        norm = lambda a, order=order: np.linalg.norm(a, order)
        np.testing.assert_allclose(wg.grad(norm)(Q), Q / 3, atol=1e-14)
        np.testing.assert_allclose(wg.jvp(norm, (Q,), (DIRECTION,))[1], np.sum(Q * DIRECTION) / 3)
        with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvalues: cotangents that differ .* in a second deriv"):
            second(norm, Q, DIRECTION)
    np.testing.assert_allclose(wg.grad(np.linalg.cond)(Q), np.zeros((3, 3)), atol=1e-13)
    flat = np.outer([1.0, 2.0, 2.0], [0.0, 3.0, 4.0])
    for order in ("nuc", 2):
        norm = lambda a, order=order: np.linalg.norm(a, order)
        np.testing.assert_allclose(wg.grad(norm)(flat), flat / 15, atol=1e-15)
        np.testing.assert_allclose(wg.jvp(norm, (flat,), (DIRECTION,))[1], np.sum(flat * DIRECTION) / 15)
    turned = Q.T @ DIRECTION
    found = second(lambda a: np.linalg.norm(a, "nuc"), Q, DIRECTION)
    np.testing.assert_allclose(found, Q @ (turned - turned.T) / 2, atol=1e-14)


@pytest.mark.parametrize("values", [np.linalg.eigvalsh, np.linalg.svdvals])
def test_second_derivatives_of_repeated_eigenvalues_in_other_orders_of_modes_are_errors(values: Any) -> None:
    def loss(a: Any) -> Any:
        return np.sum(values(a) ** 2)

    for order in (
        lambda a: wg.vjp(wg.grad(loss), a)[1](WEIGHTS)[0],
        lambda a: wg.grad(lambda a: wg.jvp(loss, (a,), (WEIGHTS,))[1])(a),
        lambda a: second(lambda a: np.sum(wg.grad(loss)(a) * WEIGHTS), a, WEIGHTS),
    ):
        with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvalues: .* wengert.jvp of wengert.grad"):
            order(np.eye(3))
        assert np.isfinite(order(np.diag([1.0, 2.0, 3.0]))).all()
    with pytest.raises(np.linalg.LinAlgError) as error:
        wg.vjp(wg.grad(loss), np.eye(3))[1](WEIGHTS)
    assert str(error.value) == (
        "eigenvalues: a repeated eigenvalue (or singular value), or a singular value 0, in reverse mode over reverse "
        "mode; a second derivative in forward mode over reverse mode is needed there. Use wengert.hessian, or "
        "wengert.jvp of wengert.grad, or write a function of the matrix: trace, slogdet, or expm, logm or sqrtm of "
        "wengert.scipy.linalg."
    )


def by_square(function: Any) -> Any:
    """Return a weighted sum of the elements of V f(w) V^-1."""

    def loss(a: Any) -> Any:
        w, v = np.linalg.eig(a + 0j)
        return np.sum(WEIGHTS * ((v * function(w)) @ np.linalg.inv(v))).real

    return loss


def cubes(a: Any) -> Any:
    return np.sum(np.linalg.eigvals(a + 0j) ** 3).real


JORDAN = np.eye(3) + np.diag([1.0, 1.0], 1)


def test_repeated_eigenvalues_of_square_matrices_have_derivatives_where_cotangents_determine_them() -> None:
    for a in (2 * np.eye(3), np.diag([1.0, 1.0, 2.0])):
        np.testing.assert_allclose(wg.grad(cubes)(a), 3 * (a @ a).T, atol=1e-13)
        np.testing.assert_allclose(wg.jit(wg.grad(cubes))(a), 3 * (a @ a).T, atol=1e-13)
        found = second(cubes, a, DIRECTION)
        np.testing.assert_allclose(found, 3 * (a @ DIRECTION + DIRECTION @ a).T, atol=1e-12)
        np.testing.assert_allclose(second(lambda a: np.sum(np.linalg.eigvals(a + 0j)).real, a, DIRECTION), 0.0)
        for refused in (
            lambda a: second(cubes, a, np.array([[0.0, 1.0, 0.0]] + [[0.0] * 3] * 2)),
            lambda a: wg.grad(lambda a: np.sum(wg.grad(cubes)(a) * WEIGHTS))(a),
            lambda a: wg.grad(lambda a: wg.jvp(cubes, (a,), (WEIGHTS,))[1])(a),
            wg.grad(by_square(np.exp)),
            wg.grad(lambda a: np.linalg.eigvals(a + 0j)[0].real),
        ):
            with pytest.raises(np.linalg.LinAlgError, match=r"^eig: a repeated eigenvalue of a square matrix in "):
                refused(a)
            refused(np.diag([1.0, 2.0, 4.0]))
    for a in (JORDAN, np.diag([1.0, 1.0], 1)):
        with pytest.raises(np.linalg.LinAlgError) as error:
            wg.grad(lambda a: np.sum(np.exp(np.linalg.eigvals(a + 0j))).real)(a)
    assert str(error.value) == (
        "eig: a repeated eigenvalue of a square matrix in a matrix that has not vectors enough; separated eigenvalues "
        "are needed, or in first derivatives a function that is symmetric in the values. Write a function of the "
        "matrix: trace, det, slogdet, matrix_power, or expm, logm or sqrtm of wengert.scipy.linalg; of a symmetric "
        "matrix use eigvalsh."
    )


def product_of_factors(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(WEIGHTS[:, :2] * ((u * s) @ vh))


def leading_part(a: Any) -> Any:
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(WEIGHTS[:, :2] * ((u[:, :1] * s[:1]) @ vh[:1]))


def test_vectors_of_singular_values_of_0_have_no_derivatives() -> None:
    flat = np.outer([1.0, 2.0, 2.0], [3.0, 4.0])
    for refused in (wg.grad(product_of_factors), lambda a: wg.jvp(product_of_factors, (a,), (WEIGHTS[:, :2],))):
        with pytest.raises(np.linalg.LinAlgError) as error:
            refused(flat)
        refused(flat + np.eye(3, 2))
    assert str(error.value) == (
        "singular vectors: a function that depends on those of a singular value 0, or a direction that turns them; a "
        "matrix of full rank is needed, or a function of what belongs to other singular values. Use svdvals for "
        "functions of the values alone, and pinv, lstsq or the matrix itself for others."
    )
    near = flat + 1e-7 * np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(wg.grad(leading_part)(flat), wg.grad(leading_part)(near), atol=1e-6)


def test_singular_vectors_that_a_mask_leaves_out_are_traced() -> None:
    def loss(a: Any) -> Any:
        kept = np.array([True, False])
        u, s, vh = np.linalg.svd(a)
        return np.sum(np.where(kept[:, None, None], u * WEIGHTS + vh * DIRECTION, 0.0)) + np.sum(np.where(kept, s.T, 0))

    stack = np.stack([np.diag([1.0, 2.0, 4.0]) + DIRECTION, np.outer(WEIGHTS[0], DIRECTION[0])])
    found = wg.jit(wg.grad(loss))(stack)
    np.testing.assert_allclose(found, wg.grad(loss)(stack), rtol=1e-12)
    np.testing.assert_array_equal(found[1], 0.0)


def test_functions_of_matrices_by_eigenvectors_are_not_differentiated_twice_at_repeated_eigenvalues() -> None:
    def trace(a: Any) -> Any:
        w, v = np.linalg.eigh(symmetric(a))
        return np.trace((v * np.exp(w)) @ v.T)

    for a in (np.eye(3), np.diag([-1.0, 1.0, 1.0])):
        with pytest.raises(np.linalg.LinAlgError, match=r"^eigenvalues: a repeated eigenvalue"):
            wg.grad(lambda a: np.sum(wg.grad(trace)(a) * WEIGHTS))(a)


DEPENDENT = np.outer([1.0, 2.0, 2.0], [2.0, 1.0])


def test_factors_of_dependent_columns_have_derivatives_where_these_do_not_count() -> None:
    def gram(a: Any) -> Any:
        r = np.linalg.qr(a)[1]
        return np.sum(WEIGHTS[:2, :2] * (r.T @ r))

    def first(a: Any) -> Any:
        q, r = np.linalg.qr(a)
        return np.sum(WEIGHTS[0] * q[:, 0] * r[0, 0])

    np.testing.assert_allclose(wg.grad(gram)(DEPENDENT), 2 * DEPENDENT @ WEIGHTS[:2, :2], rtol=1e-12)
    np.testing.assert_allclose(wg.grad(first)(DEPENDENT)[:, 1], 0.0, atol=1e-14)
    for refused in (
        wg.grad(lambda a: np.sum(WEIGHTS[:, :2] * np.matmul(*np.linalg.qr(a)))),
        lambda a: wg.jvp(lambda a: np.linalg.qr(a)[1], (a,), (WEIGHTS[:, :2],)),
    ):
        with pytest.raises(np.linalg.LinAlgError) as error:
            refused(DEPENDENT)
    assert str(error.value) == (
        "qr: a matrix with a column that depends on those before it, of which factors have no derivatives; independent "
        "columns are needed, or a function of the columns before it. Put such columns last, or use the matrix itself: "
        "a.T @ a for r.T @ r, or svd."
    )
    square = np.array([[2.0, 4.0], [1.0, 2.0]])
    for split in (np.linalg.qr, lambda a: wsl.lu(a, permute_l=True)):
        product = lambda a, split=split: np.sum(WEIGHTS[:2, :2] * np.matmul(*split(a)))
        for a in (square, np.array([[2.0, 4.0], [1.0, 2.0 + 1e-15]])):
            np.testing.assert_allclose(wg.grad(product)(a), WEIGHTS[:2, :2], rtol=1e-13)
            np.testing.assert_allclose(wg.jvp(product, (a,), (np.ones((2, 2)),))[1], WEIGHTS[:2, :2].sum())
            assert abs(second(product, a, np.ones((2, 2)))).max() < 1e-13


@pytest.mark.parametrize("split", [np.linalg.qr, lambda a: wsl.lu(a)[1:]])
def test_factors_of_singular_matrices_may_be_masked(split: Any) -> None:
    stack = np.stack([np.array([[2.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.1, 0.2, 1.0]]), np.zeros((3, 3))])

    def loss(a: Any) -> Any:
        return sum(np.sum(np.where(np.array([[[True]], [[False]]]), x * WEIGHTS, 0.0)) for x in split(a))

    for run in (lambda f: f, wg.jit):
        found = run(wg.grad(loss))(stack)
        np.testing.assert_allclose(found[0], wg.grad(loss)(np.stack([stack[0], np.eye(3)]))[0], rtol=1e-12)
        np.testing.assert_array_equal(found[1], 0.0)
    with pytest.raises(np.linalg.LinAlgError, match="a matrix with a column that depends on those before it"):
        wg.grad(lambda a: sum(np.sum(x * WEIGHTS) for x in split(a)))(stack)


def test_eigenvectors_have_second_derivatives_in_each_order_of_modes() -> None:
    """Gaps between eigenvalues are divided by in lanes, of which they have none themselves."""
    a, x = np.diag([1.0, 4.0, 9.0]), np.array([0.6, 0.8, 0.7])
    part = lambda x: np.sum(np.linalg.eigh(a + np.outer(x, x)).eigenvectors[:, 0] ** 2 * x)
    for twice in (wg.jacrev(wg.jacrev(part)), wg.jacrev(wg.jacfwd(part)), wg.jacfwd(wg.jacfwd(part))):
        np.testing.assert_allclose(twice(x), wg.hessian(part)(x), rtol=1e-11, atol=1e-13)


def test_tangents_of_eigenvectors_that_depend_on_the_direction_are_errors() -> None:
    with pytest.raises(np.linalg.LinAlgError) as error:
        wg.jvp(np.linalg.eigh, (np.eye(2),), (np.array([[0.0, 1.0], [1.0, 0.0]]),))
    assert str(error.value) == (
        "eigenvectors: a repeated eigenvalue (or singular value) in forward mode, where they would depend on the "
        "direction; a function that does not depend on the choice of eigenvectors is needed, in a form that shows it. "
        "Use eigvalsh or svdvals for functions of the values alone, and expm, logm or sqrtm of wengert.scipy.linalg "
        "for functions of the matrix."
    )


def test_functions_of_matrices_have_second_derivatives_at_repeated_eigenvalues() -> None:
    for function in (wsl.expm, wsl.logm, wsl.sqrtm):
        hessian = wg.hessian(lambda a, function=function: function(a)[0, 1])(np.eye(2))
        exponent = {wsl.expm: np.e, wsl.logm: -1.0, wsl.sqrtm: -0.25}[function]
        np.testing.assert_allclose(hessian[0, 0, 0, 1], exponent / 2, rtol=1e-10)


# Singular matrices


def test_generalised_inverses_have_derivatives_where_the_rank_is_constant() -> None:
    rng = np.random.default_rng(3)
    left, right = rng.normal(size=(4, 2)), rng.normal(size=(2, 3))
    check_grads(lambda x, y: np.linalg.pinv(x @ y, rcond=1e-10), (left, right), modes=("rev", "fwd"))
    check_grads(lambda x, y, b: np.linalg.lstsq(x @ y, b)[0], (left, right, rng.normal(size=4)), modes=("rev", "fwd"))


def test_residuals_are_there_where_numpy_has_them() -> None:
    a, b = np.array([[1.0, 2.0], [2.0, 4.0], [0.0, 0.0]]), np.array([1.0, 0.0, 2.0])
    assert wnp.linalg.lstsq(a, b)[1].shape == (0,)
    np.testing.assert_allclose(wg.jit(lambda a, b: np.linalg.lstsq(a, b)[0])(a, b), np.linalg.lstsq(a, b)[0])
    with pytest.raises(np.linalg.LinAlgError, match=r"^lstsq: a matrix without full rank, in a traced function or in "):
        wg.jit(lambda a, b: np.linalg.lstsq(a, b)[1])(a, b)
    slope = wg.grad(lambda a: np.sum(np.linalg.lstsq(a, b)[1]))
    lanes = np.stack([a + np.eye(3, 2), a - np.eye(3, 2)])
    np.testing.assert_allclose(wg.vmap(slope)(lanes), [slope(x) for x in lanes], rtol=1e-12)


def test_condition_numbers_of_singular_matrices_are_infinite() -> None:
    singular = np.array([[1.0, 2.0], [2.0, 4.0]])
    for order in (1, np.inf, "fro"):
        assert float(wnp.linalg.cond(singular, order)) == np.linalg.cond(singular, order) == np.inf
        stack = np.stack([singular, np.eye(2)])
        np.testing.assert_array_equal(wnp.linalg.cond(stack, order).numpy(), np.linalg.cond(stack, order))


def test_ranks_are_constants() -> None:
    assert wnp.linalg.matrix_rank(wg.tensor(np.eye(3), requires_grad=True)).item() == 3
    assert wnp.linalg.matrix_rank(wg.tensor(np.zeros(3))) == 0
    assert wg.vmap(np.linalg.matrix_rank)(np.eye(3)).tolist() == [1, 1, 1]


# What depends on elements


@pytest.mark.parametrize("name", ["eig", "eigvals"])
def test_real_results_of_real_matrices_are_real(name: str) -> None:
    for a in (np.diag([1.0, 2.0]), np.array([[0.0, 1.0], [-1.0, 0.0]])):
        found, want = getattr(wnp.linalg, name)(a), getattr(np.linalg, name)(a)
        found, want = (found, want) if name == "eigvals" else (found[1], want[1])
        assert found.dtype == want.dtype
        np.testing.assert_array_equal(found.numpy(), want)


@pytest.mark.parametrize("function", [np.linalg.eigvals, wsl.logm, wsl.sqrtm])
@pytest.mark.parametrize("mode", [wg.jit, wg.vmap])
def test_what_may_be_complex_is_refused_where_elements_are_unknown(mode: Any, function: Any) -> None:
    with pytest.raises(GraphError, match=r"a real matrix of shape \(2, 2\) whose elements are unknown in a trace or"):
        mode(function)(np.eye(2)[None] if mode is wg.vmap else np.eye(2))
    complexes = mode(lambda a: function(a + 0j))(np.eye(2)[None] if mode is wg.vmap else np.eye(2))
    assert complexes.dtype == complex


def test_eigenvectors_of_square_matrices_are_differentiated_as_lapack_scales_them() -> None:
    a = np.random.default_rng(5).normal(size=(3, 3))
    check_grads(lambda a: np.linalg.eig(a + 0j)[1], (a,), modes=("rev", "fwd"))


# SciPy's names


def test_names_that_are_left_out_of_scipy_say_why() -> None:
    assert set(scipy.linalg.__all__) - set(wsl.__all__) - set(names_left_out("scipy.linalg")) == set()
    with pytest.raises(AttributeError) as error:
        _ = wsl.schur
    assert str(error.value) == (
        "scipy.linalg.schur has no derivative in Wengert; its factors turn among themselves where eigenvalues are "
        "close; use eig, eigh, svd or qr."
    )


def test_scipys_functions_do_not_lose_gradients() -> None:
    with pytest.raises(GraphError, match="an ndarray would silently lose the gradient"):
        wg.grad(lambda a: np.sum(scipy.linalg.expm(a)))(np.eye(2))


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
def test_riccati_equations_with_weights_of_products_and_a_matrix_of_the_left(name: str) -> None:
    rng = np.random.default_rng(3)
    a, b, s, e = (rng.standard_normal(shape) / 2 for shape in ((3, 3), (3, 2), (3, 2), (3, 3)))

    def cost(a: Any, b: Any, e: Any, s: Any) -> Any:
        return getattr(wsl, name)(a, b, 3 * np.eye(3), 2 * np.eye(2), e + 2 * np.eye(3), s)

    want = getattr(scipy.linalg, name)(a, b, 3 * np.eye(3), 2 * np.eye(2), e + 2 * np.eye(3), s)
    np.testing.assert_allclose(cost(a, b, e, s).numpy(), want, rtol=1e-12)
    check_grads(cost, a, b, e, s)
    with pytest.raises(ValueError, match="Matrix q should be symmetric"):
        getattr(wsl, name)(a, b, a, np.eye(2))


@together(
    "call, text",
    [
        (lambda: wsl.expm(np.ones((2, 3))), "expm: shape (2, 3); square matrices along the last two axes are needed."),
        (lambda: wsl.lu(np.ones(3)), "lu: shape (3,); matrices along the last two axes are needed. Reshape it."),
        (lambda: wsl.qr(np.eye(2), pivoting=True), "qr: pivoting=True; 'full', 'r' or 'economic' without pivoting is"),
        (lambda: wsl.eigh(np.eye(2), np.eye(2), type=2), "eigh: type=2; its default is needed"),
        (
            lambda: wsl.solve(np.eye(2), np.ones(2), assume_a="banded"),
            "solve: assume_a='banded'; its default is needed",
        ),
        (lambda: wsl.solve(np.eye(2), np.ones(3)), "solve: shape (3,) on the right of 2 equations; as many elements,"),
        (
            lambda: wsl.solve_sylvester(np.eye(2), np.eye(2), np.ones((3, 2))),
            "solve_sylvester: shapes (2, 2), (2, 2), ",
        ),
        (
            lambda: wsl.solve_discrete_are(np.eye(2), np.ones((3, 1)), np.eye(2), np.eye(1)),
            "solve_discrete_are: shapes (2, 2), (3, 1), (2, 2), (1, 1); ",
        ),
        (lambda: wsl.solve_banded((1, 1), np.eye(2), np.ones(2)), "solve_banded: shape (2, 2) for 1 diagonals below "),
        (
            lambda: wsl.solve_banded(np.ones((3, 2)), (1, 1), np.ones(2)),
            "solve_banded: a value of type ndarray as the first",
        ),
        (lambda: wsl.solve_banded((1.5, 1), np.ones((3, 2)), np.ones(2)), "solve_banded: 1.5 for diagonals; a whole"),
        (lambda: wsl.polar(np.eye(2), "up"), "polar: side='up'; 'right' or 'left' is needed. Leave it out."),
        (lambda: wnp.linalg.eigh(np.eye(2), "X"), "eigh: UPLO='X'; 'L' or 'U' is needed. Leave it out for 'L'."),
        (lambda: wnp.linalg.qr(np.eye(2), "raw"), "qr: mode='raw'; 'reduced', 'complete' or 'r' is needed."),
        (lambda: wnp.fft.fft(np.zeros(0)), "fft: 0 elements to transform; one at least is needed. Pass n=, or"),
        (lambda: wnp.fft.rfft(np.ones(2) + 0j), "rfft: dtype complex128; real elements are needed. Use fft, or pass"),
        (lambda: wnp.fft.fft(np.ones(2), norm="x"), "fft: norm='x'; 'backward', 'ortho' or 'forward' is needed."),
        (lambda: wnp.fft.fftn(np.ones(2), (2,), (0, 0)), "fftn: 1 lengths for 2 axes; one for each axis is needed."),
        (lambda: wnp.linalg.eig(np.full((2, 2), np.nan)), "eig: infinite or NaN elements; finite ones are needed."),
        (lambda: wnp.linalg.lstsq(np.eye(2), np.ones(3)), "lstsq: shapes (2, 2) and (3,); a matrix, and a vector or "),
        (lambda: wnp.linalg.cond(np.zeros((0, 2))), "cond: shape (0, 2); rows and columns are needed. Leave empty "),
        (
            lambda: wnp.linalg.tensorinv(np.eye(2), 0),
            "tensorinv: ind=0; a positive number of axes is needed. Leave it",
        ),
    ],
)
def test_errors_say_what_to_do(call: Any, text: str) -> None:
    with pytest.raises((ValueError, TypeError, RuntimeError)) as error:
        call()
    assert str(error.value).startswith(text)


# Fourier transforms


def test_gradients_of_large_transforms_in_single_precision() -> None:
    x = np.random.default_rng(0).normal(size=(96, 100)).astype(np.float32)
    for transform in (np.fft.fft2, np.fft.ifft2, np.fft.rfft2, lambda x: np.fft.irfft2(x, x.shape)):
        value, pull = wg.vjp(transform, x)
        ct = np.cos(np.arange(value.size)).reshape(value.shape).astype(value.dtype)
        (found,), (want,) = pull(ct), wg.vjp(transform, x.astype(np.float64))[1](ct)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, want, atol=1e-5 * np.abs(want).max())


@pytest.mark.parametrize("beneath", [True, False])
def test_orthogonal_and_triangular_factors_lie_and_are_as_numpys(
    beneath: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not beneath:  # as where NumPy has other names beneath its functions
        monkeypatch.setattr(factors, "ROUTINES", None)
    rng = np.random.default_rng(0)
    for shape in ((3, 3), (5, 3), (3, 5), (40, 40), (2, 4, 4), (2, 3, 5, 2), (0, 3), (2, 0)):
        z = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        for dtype in ("f", "d", "F", "D", ">d"):
            x = (z if dtype in "FD" else z.real).astype(dtype)
            for y in (x, np.asfortranarray(x), x[..., ::-1]):
                kept = y.copy()
                for found, want in zip(factors.evaluate_qr(y, mode="reduced"), np.linalg.qr(y), strict=True):
                    assert (found.dtype, found.strides) == (want.dtype, want.strides)
                    np.testing.assert_array_equal(found, want)
                np.testing.assert_array_equal(y, kept)
    for value in (np.nan, np.inf, 0.0, 1e308):
        y = np.full((3, 3), value)
        for found, want in zip(factors.evaluate_qr(y, mode="reduced"), np.linalg.qr(y), strict=True):
            np.testing.assert_array_equal(found, want)


TRANSFORMS = (np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft, np.fft.fft2, np.fft.ifft2, np.fft.fftn, np.fft.ifftn)


@pytest.mark.parametrize("beneath", [True, False])
def test_transforms_lie_and_are_as_numpys(beneath: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if not beneath:  # as where NumPy has other names beneath its functions
        monkeypatch.setattr(fourier, "UFUNCS", None)
    rng = np.random.default_rng(0)
    for shape in ((3, 4), (64, 128), (2, 3, 4), (3, 64, 128)):  # of 128 spectral rows are 2 KiB apart
        z = rng.normal(size=shape) + 1j * rng.normal(size=shape)
        for dtype in "fdFD":
            x = (z if dtype in "FD" else z.real).astype(dtype)
            operands = (x, np.asfortranarray(x), x[..., ::2])
            for y, transform, norm in itertools.product(operands, TRANSFORMS, (None, "ortho", "forward")):
                if transform is np.fft.rfft and dtype in "FD":
                    continue
                want = transform(y, norm=norm)
                found = transform(wg.tensor(y, requires_grad=True), norm=norm).detach().numpy()
                assert (found.dtype, found.strides) == (want.dtype, want.strides)
                np.testing.assert_array_equal(found, want)


def test_gradients_of_transforms_of_planes_have_no_gaps() -> None:
    for shape, dtype in (((64, 128), float), ((64, 128), complex), ((4, 4), complex)):
        x = wg.tensor(np.ones(shape, dtype), requires_grad=True)
        (found,) = wg.autograd.grad(np.fft.fft2(x), x, np.ones(shape, complex))
        assert found.numpy().flags.c_contiguous
        np.testing.assert_allclose(found.numpy()[0, 0], math.prod(shape))


def test_transforms_of_one_axis_twice_are_one_after_the_other() -> None:
    x = np.arange(6.0).reshape(2, 3)
    for axes in ((1, 1), (0, 1, 0), (-1, 0, 1)):
        want = np.fft.fftn(x, axes=axes)
        np.testing.assert_array_equal(np.fft.fftn(wg.tensor(x, requires_grad=True), axes=axes).detach(), want)


def test_frequencies_and_shifts_are_numpys() -> None:
    for n in (1, 4, 5):
        np.testing.assert_array_equal(wnp.fft.fftfreq(n, 0.5).numpy(), np.fft.fftfreq(n, 0.5))
        np.testing.assert_array_equal(wnp.fft.rfftfreq(n, 0.5).numpy(), np.fft.rfftfreq(n, 0.5))
        np.testing.assert_array_equal(wnp.fft.fftshift(np.arange(n)).numpy(), np.fft.fftshift(np.arange(n)))
    assert wg.grad(lambda d: np.sum(wnp.fft.rfftfreq(4, d)))(0.5) == -3.0


INTEGERS = np.array([[2, 1], [1, 3]])


@pytest.mark.parametrize(
    "function",
    [
        np.linalg.inv,
        lambda a: np.linalg.inv(a.T),
        lambda a: np.linalg.inv(np.stack([a, 2 * a])),
        lambda a: np.linalg.solve(a, np.ones(2)),
        lambda a: np.linalg.solve(a, a),
        lambda a: np.linalg.matrix_power(a, -2),
        lambda a: np.linalg.tensorinv(a, ind=1),
    ],
)
def test_systems_of_integers_can_be_traced(function: Callable[[Any], Any]) -> None:
    np.testing.assert_allclose(wg.jit(function)(INTEGERS), function(INTEGERS))


def test_spectra_of_integers_are_numpys() -> None:
    numbers = np.arange(6).reshape(2, 3)
    np.testing.assert_array_equal(wnp.fft.irfft2(numbers).numpy(), np.fft.irfft2(numbers))


def test_scipys_stacks_of_other_functions() -> None:
    rng = np.random.default_rng(5)
    for a, b in (((4, 2), (5, 4, 3)), ((5, 4, 2), (4, 3)), ((5, 4, 2), (5, 4, 3)), ((2, 3), (5, 2, 1))):
        x, y = rng.normal(size=a), rng.normal(size=b)
        for found, want in zip(wsl.lstsq(x, y), scipy.linalg.lstsq(x, y), strict=True):
            assert np.shape(found) == np.shape(want)
            np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-12)
    c, r = rng.normal(size=(2, 3)), rng.normal(size=4)
    np.testing.assert_array_equal(wsl.toeplitz(c, r), scipy.linalg.toeplitz(c, r))
    np.testing.assert_array_equal(wsl.toeplitz(r, c), scipy.linalg.toeplitz(r, c))
    stack, one = rng.normal(size=(2, 3, 2)), rng.normal(size=(3, 2))
    theirs = scipy.linalg.orthogonal_procrustes(stack, one)
    for found, want in zip(wsl.orthogonal_procrustes(stack, one), theirs, strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12)
    with pytest.raises(ShapeError, match=r"orthogonal_procrustes: shapes \(3, 2\) and \(2, 2\)"):
        wsl.orthogonal_procrustes(one, one[:2])


@pytest.mark.filterwarnings("ignore:Calling .* deprecated in SciPy 1.18")
@pytest.mark.parametrize("dtype", [np.float16, np.longdouble])
@pytest.mark.parametrize("name", ["det", "eigvalsh", "cholesky", "inv", "svdvals"])
def test_dtypes_that_lapack_has_not_are_converted_as_scipy_does(name: str, dtype: Any) -> None:
    matrix = np.array([[2.0, 0.5], [0.5, 1.5]], dtype)
    if name != "det" or dtype is np.float16:
        want = getattr(scipy.linalg, name)(matrix)
        found = getattr(wsl, name)(matrix)
        assert found.dtype == want.dtype
        np.testing.assert_allclose(found, want, rtol=1e-6)
    gradient = wg.grad(lambda x: np.sum(getattr(wsl, name)(x)))(matrix)
    assert gradient.dtype == dtype
    double = wg.grad(lambda x: np.sum(getattr(wsl, name)(x)))(matrix.astype(float))
    np.testing.assert_allclose(gradient.astype(float), double, rtol=2e-3, atol=1e-3)


@pytest.mark.parametrize("trans", ["wrong", None, 3])
def test_systems_are_transposed_as_is_known(trans: Any) -> None:
    with pytest.raises(UsageError, match=r"solve_triangular: trans=.*; 0, 1, 2, 'N', 'T' or 'C' is needed"):
        wsl.solve_triangular(np.eye(2), np.ones(2), trans)
    with pytest.raises(UsageError, match=r"lu_solve: trans=.*; 0, 1 or 2 is needed"):
        wsl.lu_solve(wsl.lu_factor(np.eye(2)), np.ones(2), trans)


@pytest.mark.parametrize("rcond", [0.0, 1.0, 2.0])
def test_limits_of_least_squares_that_lapack_takes_for_its_precision(rcond: float) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(4, 2)), rng.normal(size=4)
    for module in (wnp.linalg, wsl):
        found = wg.grad(lambda b, module=module: np.sum(module.lstsq(a, b, rcond)[0]))(b)
        np.testing.assert_allclose(found, np.linalg.pinv(a).sum(0), rtol=1e-12)


def powers(a: Any) -> Any:
    return wsl.fractional_matrix_power(a, 0.3)


SIZES = [1e-290, 1e-20, 1.0, 1e20, 1e290]
ROTATION = np.array([[0.0, 6.0], [-6.0, 0.0]])
GRAM = np.array([[5.0, 2.0, 0.5], [1.0, 7.0, -1.0], [0.5, -1.0, 30.0]])
STIFF = np.array([[30.0, 1.0, 2.0], [3.0, -30.0, 1.0], [1.0, 2.0, 15.0]])


@pytest.mark.parametrize(
    ("function", "a"),
    [
        (wsl.expm, STIFF),
        (wsl.expm, ROTATION),
        (wsl.expm, np.zeros((2, 2))),
        (wsl.expm, np.array([[700.0, 1.0], [0.0, -700.0]])),
        (wsl.logm, GRAM),
        (wsl.sqrtm, GRAM),
        (powers, GRAM),
        (lambda a: wsl.solve_sylvester(a, a, np.eye(3)), GRAM),
        (lambda a: wsl.solve_continuous_lyapunov(a, np.eye(3)), GRAM),
    ],
)
def test_derivatives_of_functions_of_matrices_do_not_depend_on_the_size_of_directions(function: Any, a: Any) -> None:
    n = len(a)
    first, second = np.random.default_rng(n).normal(size=(2, n, n))
    tangent = wg.jvp(function, (a,), (first,))[1]
    cotangent = wg.vjp(function, a)[1](first)[0]
    both = wg.jvp(lambda a: wg.jvp(function, (a,), (first,))[1], (a,), (second,))[1]
    back = wg.vjp(lambda a: wg.jvp(function, (a,), (first,))[1], a)[1](second)[0]
    limits = {"rtol": 1e-11, "atol": 1e-11}
    for size in SIZES:
        if max(np.abs(x).max() for x in (tangent, cotangent, both, back)) > 1e300 / size:
            continue
        given = size * first
        for found, right in (
            (wg.jvp(function, (a,), (given,))[1], tangent),
            (wg.linearize(function, a)[1](given), tangent),
            (wg.vjp(function, a)[1](given)[0], cotangent),
            (wg.jvp(lambda a, given=given: wg.jvp(function, (a,), (given,))[1], (a,), (second,))[1], both),
            (wg.jvp(lambda a: wg.jvp(function, (a,), (first,))[1], (a,), (size * second,))[1], both),
            (wg.vjp(lambda a: wg.jvp(function, (a,), (first,))[1], a)[1](size * second)[0], back),
        ):
            scale = np.abs(right).max()
            np.testing.assert_allclose(found / size / scale, right / scale, **limits)


def test_derivatives_of_exponentials_of_large_matrices() -> None:
    push = wg.linearize(wsl.expm, STIFF)[1]
    np.testing.assert_allclose(push(np.eye(3))[0, 0], 12863672308413.6, rtol=1e-12)
    turn = 3.1
    near_the_cut = wsl.expm(turn * ROTATION / 6).numpy()  # a pair of eigenvalues on both sides of the negative axis
    found = wg.jvp(wsl.logm, (near_the_cut,), (np.eye(2),))[1]
    np.testing.assert_allclose(found, np.linalg.inv(near_the_cut), atol=1e-13)
    found = wg.jvp(wsl.logm, (near_the_cut,), (np.diag([1.0, -1.0]),))[1]
    np.testing.assert_allclose(found, np.diag([1.0, -1.0]) * turn / np.sin(turn), rtol=1e-12, atol=1e-12)
    assert found.dtype == float


@pytest.mark.parametrize("name", ["logm", "fractional_matrix_power"])
def test_second_derivatives_of_matrix_functions_where_eigenvalues_are_negative(name: str) -> None:
    rng = np.random.default_rng(1)
    x, weights, direction = -(np.abs(rng.normal(size=(3, 3))) + 3 * np.eye(3)), *rng.normal(size=(2, 3, 3))
    rest = (0.3,) if name == "fractional_matrix_power" else ()

    def loss(x: Any) -> Any:
        return np.sum(weights * getattr(wsl, name)(x, *rest).real)

    def along(y: Any) -> Any:
        return np.sum(direction * wg.grad(loss)(y))

    want = wg.jvp(wg.grad(loss), (x,), (direction,))[1]
    differences = [np.asarray(wg.grad(loss)(x + h * direction)) for h in (1e-5, -1e-5)]
    np.testing.assert_allclose(want, (differences[0] - differences[1]) / 2e-5, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(wg.grad(along)(x), want, rtol=1e-9)  # pairs on both sides of the cut made it 1e13
    np.testing.assert_allclose(wg.grad(lambda x: wg.jvp(loss, (x,), (direction,))[1])(x), want, rtol=1e-9)


A_ROW = np.array([0.7, 1.2])


@pytest.mark.parametrize("routine", [np.linalg.inv, np.linalg.cholesky, lambda a: np.linalg.solve(a, A_ROW)])
def test_what_may_be_broadcast_is_traced(routine: Any) -> None:
    @wg.jit
    def chosen(p: Any) -> Any:
        return routine(np.eye(2) + p[:, None] * p if p[0] > 0 else np.broadcast_to(p, (2, 2)))

    np.testing.assert_allclose(chosen(A_ROW), routine(np.eye(2) + np.outer(A_ROW, A_ROW)), rtol=1e-14)


def test_jacobians_of_eigenvalues_relative_to_a_matrix_are_the_same_in_a_graph_and_in_lanes() -> None:
    a, b = np.diag([1.0, 2.0, 4.0]) + 0.1, np.diag([2.0, 1.0, 1.4]) + 0.1
    for values, x in ((lambda x: wsl.eigvalsh(x, b), a), (lambda x: wsl.eigvalsh(a, x), b)):
        rows = wg.jacrev(values)
        np.testing.assert_allclose(wg.jit(rows)(x), rows(x), rtol=1e-13)
        np.testing.assert_allclose(wg.vmap(rows)(x[None])[0], rows(x), rtol=1e-13)
