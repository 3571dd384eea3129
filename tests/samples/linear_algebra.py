"""Samples of decompositions, matrix functions and matrix equations: NumPy's and SciPy's."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

import wengert as wg
import wengert.scipy.linalg
from tests.samples.base import Sample, fixed, normal, positive, sample
from wengert.core.values.dispatch import apply
from wengert.primitives.linear_algebra import cluster_derivatives, eigenvalues, singular_values, square_eigenvalues
from wengert.primitives.linear_algebra.cluster_derivatives import cluster_share
from wengert.primitives.linear_algebra.clusters import divided
from wengert.primitives.linear_algebra.least_squares import in_support, residuals_of_full_rank
from wengert.primitives.linear_algebra.lu import exchanged_rows, pivots_of
from wengert.primitives.linear_algebra.orthogonal import dependent
from wengert.primitives.linear_algebra.square_eigenvalues import sensitivity


def solution_and_residuals(found: Any) -> Any:
    """Return the first results of `lstsq`; SciPy 1.18 has complex residuals where its solutions are complex."""
    return found[0], np.real(found[1])


def of_scipy(
    name: str, after: Callable[[Any], Any] = lambda result: result, module: str = "linalg"
) -> Callable[..., Any]:
    """Return the function of Wengert where there are Tensors among the arguments, and else SciPy's own."""

    def call(*args: Any, **options: Any) -> Any:
        flat = [x for arg in args for x in (arg if isinstance(arg, tuple) else (arg,))]
        if any(isinstance(x, np.ndarray) and not x.size for x in flat):
            raise ValueError("of empty arrays SciPy does not look at all shapes")
        library = wg.scipy if any(isinstance(x, wg.Tensor) for x in flat) else scipy
        return after(getattr(getattr(library, module), name)(*args, **options))

    call.__name__ = name
    return call


def complexes(*shape: int, seed: int = 0) -> np.ndarray:
    """Return complex normal numbers."""
    return normal(*shape, seed=seed) + 1j * normal(*shape, seed=seed + 100)


def definite(*shape: int) -> np.ndarray:
    """Return positive definite matrices, and something in the triangle that is not read."""
    x = normal(*shape)
    return x @ x.swapaxes(-1, -2) + 2 * np.eye(shape[-1]) + np.triu(normal(*shape, seed=2), 1)


def riccati(name: str) -> Callable[..., Any]:
    """Return a solution of Riccati's equation, whose Q and R are positive definite."""

    def call(a: Any, b: Any, q: Any, r: Any) -> Any:
        q, r = (x @ np.conj(x.mT) + np.eye(x.shape[-1]) for x in (q, r))
        q, r = (x + np.conj(x.mT) for x in (q, r))
        return of_scipy(name)(a, b, q, r)

    call.__name__ = name
    return call


def spread(n: int) -> np.ndarray:
    """Return a positive definite matrix whose eigenvalues differ."""
    return np.diag(2.0 ** np.arange(n)) + 0.2


def hermitian(n: int) -> np.ndarray:
    """Return a positive definite complex matrix."""
    x = complexes(n, n)
    return x @ x.conj().T + 2 * np.eye(n)


def triangle(n: int) -> np.ndarray:
    """Return a matrix whose triangles are far from singular."""
    return normal(n, n) + 3 * np.eye(n)


triangles: list[Sample] = [
    sample("cholesky", np.linalg.cholesky, definite(3, 3)),
    sample("cholesky", np.linalg.cholesky, definite(2, 2, 2).swapaxes(-1, -2).copy(), upper=True, order=1),
    sample("cholesky", np.linalg.cholesky, hermitian(2)),
    sample("cholesky", np.linalg.cholesky, np.zeros((0, 0))),
    sample("scipy_cholesky", of_scipy("cholesky"), definite(3, 3).T.copy(), order=1),
    sample("scipy_cholesky", of_scipy("cholesky"), hermitian(2), lower=True, order=1),
    sample("scipy_cholesky", of_scipy("cho_factor", lambda found: found[0]), definite(3, 3), lower=True, order=1),
    sample("solve_triangular", of_scipy("solve_triangular"), triangle(3), normal(3)),
    sample("solve_triangular", of_scipy("solve_triangular"), triangle(3), normal(3, 2), trans=1, lower=True, order=1),
    sample(
        "solve_triangular",
        of_scipy("solve_triangular"),
        triangle(2),
        normal(2, 2),
        unit_diagonal=True,
        trans="T",
        order=1,
    ),
    sample("solve_triangular", of_scipy("solve_triangular"), complexes(2, 2) + 2 * np.eye(2), complexes(2), trans="C"),
    sample("cho_solve", of_scipy("cho_solve"), (triangle(3), True), normal(3)),
    sample("cho_solve", of_scipy("cho_solve"), (complexes(2, 2) + 2 * np.eye(2), False), complexes(2, 2)),
]


def spectral(name: str, **options: Any) -> Callable[..., Any]:
    """Return what of a decomposition does not depend on the phases of complex vectors: V diag(1, 2, ...) V^H."""

    def call(x: Any) -> Any:
        found = getattr(np.linalg, name)(x, **options)
        left, right = (found[1], np.conjugate(found[1].mT)) if name == "eigh" else (found[0], found[-1])
        values = found[0] if name == "eigh" else found[1]
        return values, (left[..., : values.size] * np.arange(1.0, values.size + 1)) @ right[: values.size]

    call.__name__ = name
    return call


def real_parts(x: Any) -> Any:
    """Return an eigendecomposition of what a real matrix is as a complex one."""
    return tuple(np.linalg.eig(x + 0j))


def logarithm(x: Any) -> Any:
    """Return the logarithm of a matrix, of whose error SciPy warns in single precision, always."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return of_scipy("logm")(x)


def turned_back(found: Any) -> Any:
    """Return eigenvalues, and V diag(1, 2, ...) V^T, which does not depend on signs."""
    w, v = found
    return w, (v * np.arange(1.0, 4.0)) @ v.T


def lu_solved(packed: Any, b: Any, trans: int = 0) -> Any:
    """Return the solution of a system whose matrix has exchanged rows."""
    return of_scipy("lu_solve")((packed, np.arange(b.shape[0], dtype=np.int32)[::-1].repeat(2)[1::2]), b, trans=trans)


def applied(primitive: Any, **params: Any) -> Any:
    """Return a function that applies a primitive."""

    def found(*operands: Any) -> Any:
        return apply(primitive, *operands, **params)

    return found


def vectors_and(*shape: int) -> tuple[Any, ...]:
    """Return singular vectors and values of a random matrix."""
    return tuple(np.linalg.svd(normal(*shape), full_matrices=False))


def turned(x: Any, w: Any) -> Any:
    """Return the vectors of clusters along which a Hermitian matrix is diagonal."""
    return apply(cluster_derivatives.turn, x + x.mT, w, descending=False)


four_of_pairs = normal(2, 2), normal(2), normal(2), positive(2) / 1000
by_square = applied(square_eigenvalues.by_square_eigenvalues, alone=True)
one_by_one = applied(square_eigenvalues.one_by_one, where="a test")


def settled_gradient(x: Any) -> Any:
    """Return a matrix that passes a check."""
    return apply(cluster_derivatives.settled_gradient, x, np.eye(2), np.ones(2), np.array([1.0, 2.0]))


null_vectors = applied(singular_values.null_vectors, strict=True)
motionless = applied(singular_values.motionless, strict=True)
spectra: list[Sample] = [
    sample("eigh", np.linalg.eigh, definite(3, 3)),
    sample("eigh", np.linalg.eigh, definite(2, 2, 2).swapaxes(-1, -2).copy(), UPLO="U"),
    sample("eigh", spectral("eigh"), hermitian(3)),
    sample("eigvalsh", np.linalg.eigvalsh, definite(3, 3)),
    sample("eigvalsh", np.linalg.eigvalsh, hermitian(2), UPLO="U"),
    sample("eig", np.linalg.eig, complexes(3, 3)),
    sample("eig", real_parts, normal(3, 3)),
    sample("eigvals", np.linalg.eigvals, complexes(2, 2, 2)),
    sample("svd", np.linalg.svd, normal(3, 3)),
    sample("svd", np.linalg.svd, normal(3, 2), full_matrices=False),
    sample("svd", np.linalg.svd, normal(2, 2, 3), full_matrices=False),
    sample("svd", np.linalg.svd, normal(2, 1)),
    sample("svd", spectral("svd", full_matrices=False), complexes(3, 2)),
    sample("eigh", np.linalg.svd, definite(2, 2), hermitian=True),
    sample("svdvals", np.linalg.svdvals, normal(3, 2)),
    sample("svdvals", np.linalg.svd, complexes(2, 3), compute_uv=False),
    sample("svdvals", np.linalg.norm, normal(3, 2), ord="nuc"),
    sample("svdvals", np.linalg.matrix_norm, normal(2, 2, 2), ord=-2),
    sample("svdvals", np.linalg.cond, normal(3, 3)),
    sample("inv", np.linalg.cond, triangle(3), p=1),
    sample("by_eigenvalues", applied(eigenvalues.by_eigenvalues, uplo="L"), normal(3), definite(3, 3)),
    sample("by_eigenvalues", applied(eigenvalues.by_eigenvalues, uplo="U"), normal(2), hermitian(2)),
    sample("by_singular_values", applied(singular_values.by_singular_values, shared=False), normal(2), normal(3, 2)),
    sample("by_singular_values", applied(singular_values.by_singular_values, shared=True), normal(2), complexes(2, 3)),
    sample(
        "by_relative_eigenvalues",
        applied(eigenvalues.by_relative_eigenvalues, uplo="L", check_finite=True),
        normal(2),
        definite(2, 2),
        spread(2),
    ),
    sample(
        "null_vectors", applied(singular_values.null_vectors, strict=True), *vectors_and(3, 2), normal(3, 2), order=0
    ),
    sample("without_rest", applied(singular_values.without_rest), normal(3, 2), *vectors_and(3, 2), order=1),
    sample(
        "motionless", applied(singular_values.motionless, strict=True), normal(3, 2), positive(2), normal(2, 2), order=0
    ),
    sample("turn_of_clusters", turned, definite(3, 3), positive(3), order=0),
    sample("still", applied(cluster_derivatives.still), normal(2, 2), normal(2, 2), positive(2), normal(2), order=0),
    sample("settled", applied(cluster_derivatives.settled), definite(3, 3), positive(3)),
    sample("even", applied(cluster_derivatives.even), normal(2, 2), normal(2), positive(2), order=0),
    sample("sharing", applied(cluster_derivatives.sharing), positive(2), order=0),
    sample("alike_in_clusters", applied(cluster_derivatives.alike), normal(2, 2), normal(2), positive(2), order=0),
    sample("at_zero", applied(singular_values.at_zero), normal(2, 2), positive(2), np.ones(()), normal(3, 2), order=0),
    sample("in_support", applied(in_support), np.diag([1.0, 0.0]), np.array([[2.0, 0.0], [0.0, 1.0]]), order=0),
    sample("pivots", applied(pivots_of), normal(2, 2), normal(2, 2)),
    sample("dependent_columns", applied(dependent), np.triu(normal(2, 2)), normal(2, 2), order=0),
    sample("alone", applied(cluster_derivatives.alone), normal(2, 2), normal(2, 2), normal(2), positive(2), order=0),
    sample("settled_gradient", settled_gradient, normal(2, 2)),
    sample("settled_vectors", applied(cluster_derivatives.settled_vectors), normal(3, 2), positive(2)),
    sample("by_square_eigenvalues", by_square, complexes(3), complexes(3, 3)),
    sample("along_square", applied(square_eigenvalues.along_square), complexes(2, 2), complexes(2, 2)),
    sample("one_by_one", one_by_one, normal(2, 2), normal(2, 2), normal(2), positive(2), order=0),
    sample("share_of_pairs", applied(square_eigenvalues.share_of_pairs), *four_of_pairs, order=0),
    sample("divided", lambda x, w: apply(divided, x, w, sign=-1, strict=True), normal(3, 3), normal(3)),
    sample("divided", lambda x, w: apply(divided, x, w, sign=1, strict=False), normal(2, 2), positive(2)),
    sample(
        "sensitivity_of_eigenvalues",
        lambda a, v: apply(sensitivity, a, v),
        normal(3, 3),
        normal(3, 3),
        order=0,
    ),
    sample(
        "cluster_share",
        lambda x, g, w: apply(cluster_share, x, g, w, values="used"),
        normal(2, 2),
        normal(2),
        normal(2),
        order=0,
    ),
    sample("qr", np.linalg.qr, normal(3, 2)),
    sample("qr", np.linalg.qr, normal(2, 2, 3), mode="complete"),
    sample("qr", np.linalg.qr, normal(3, 2), mode="complete"),
    sample("qr", np.linalg.qr, complexes(3, 2)),
    sample("qr_r", np.linalg.qr, normal(3, 2), mode="r"),
    sample("scipy_qr", of_scipy("qr"), normal(3, 2), order=1),
    sample("scipy_qr", of_scipy("qr"), normal(3, 2), mode="economic", order=1),
]
least: list[Sample] = [
    sample("pinv", np.linalg.pinv, normal(3, 2)),
    sample("pinv", np.linalg.pinv, complexes(2, 3)),
    sample("pinv", np.linalg.pinv, definite(2, 2, 2), hermitian=True),
    sample("lstsq", np.linalg.lstsq, normal(3, 2), normal(3)),
    sample("lstsq", np.linalg.lstsq, normal(2, 3), normal(2, 2)),
    sample("lstsq", np.linalg.lstsq, complexes(3, 2), complexes(3, 1)),
    sample("residuals_of_full_rank", lambda x: apply(residuals_of_full_rank, x, 0), normal(2)),
    sample("matrix_rank", np.linalg.matrix_rank, normal(2, 3, 2), order=0),
    sample("solve", np.linalg.tensorsolve, normal(2, 3, 6) + np.eye(6).reshape(2, 3, 6), normal(2, 3)),
    sample("inv", np.linalg.tensorinv, normal(4, 2, 2), ind=1),
]


def banded(*shape: int) -> np.ndarray:
    """Return bands of a matrix far from singular ones, the diagonal being the second row."""
    return normal(*shape) + 4 * (np.arange(shape[-2]) == 1)[:, None]


def column(x: Any) -> Any:
    """Return the first column of a Toeplitz matrix far from singular ones."""
    return x + 5 * (np.arange(len(x)) == 0)


scipys: list[Sample] = [
    sample("lu", of_scipy("lu", lambda found: found[1:]), normal(3, 3)),
    sample("lu", of_scipy("lu"), normal(4, 2), permute_l=True),
    sample("lu", of_scipy("lu"), normal(2, 3)),
    sample("lu", of_scipy("lu", lambda found: found[1:]), complexes(3, 2), p_indices=True),
    sample("lu_factor", of_scipy("lu_factor", lambda found: found[0]), normal(3, 3)),
    *[
        sample(
            "exchanged_rows",
            lambda x, p, back=back: apply(exchanged_rows, x, p, backward=back),
            normal(3, 2),
            fixed(np.array([2, 2, 2], np.int32)),
        )
        for back in (False, True)
    ],
    sample("lu_solve", lu_solved, triangle(3), normal(3)),
    sample("lu_solve", lu_solved, triangle(2), normal(2, 2), trans=1),
    sample("lu_solve", lu_solved, complexes(2, 2) + 2 * np.eye(2), complexes(2), trans=2),
    sample("scipy_svd", of_scipy("svd"), normal(3, 2), full_matrices=False, order=1),
    sample("scipy_svd", of_scipy("polar"), normal(2, 2), order=1),
    sample("scipy_svdvals", of_scipy("svdvals"), normal(2, 3), order=1),
    sample("scipy_eigh", of_scipy("eigh", turned_back), definite(3, 3).T.copy(), lower=False, order=1),
    sample("scipy_eigvalsh", of_scipy("eigvalsh"), definite(2, 2), order=1),
    sample("relative_eigh", of_scipy("eigh", turned_back), definite(3, 3), spread(3)),
    sample("relative_eigh", of_scipy("eigh", turned_back), definite(3, 3).T.copy(), spread(3), lower=False, order=1),
    sample("relative_eigvalsh", of_scipy("eigvalsh"), definite(2, 2), spread(2)),
    sample("scipy_inv", of_scipy("inv"), triangle(3), order=1),
    sample("scipy_det", of_scipy("det"), triangle(3), order=1),
    sample("scipy_solve", of_scipy("solve"), triangle(3), normal(3), order=1),
    sample("scipy_solve", of_scipy("solve"), triangle(2), normal(2, 2), assume_a="gen", order=1),
    sample("scipy_solve", of_scipy("solve"), definite(2, 2), normal(2), assume_a="pos", lower=True, order=1),
    sample("scipy_solve", of_scipy("solve"), definite(2, 2).T.copy(), normal(2, 2), assume_a="sym", order=1),
    sample("scipy_norm", of_scipy("norm", lambda found: found * np.ones(2)), normal(3), order=1),
    sample("scipy_eig", of_scipy("eig"), complexes(2, 2), order=1),
    sample("scipy_eigvals", of_scipy("eigvals"), complexes(2, 2), order=1),
    sample("scipy_pinv", of_scipy("pinv"), normal(3, 2), order=1),
    sample("scipy_lstsq", of_scipy("lstsq", solution_and_residuals), normal(3, 2), normal(3), order=1),
    sample("scipy_lstsq", of_scipy("lstsq", lambda found: found[0]), normal(3, 2), normal(3, 2), order=1),
    sample("scipy_lstsq", of_scipy("lstsq", solution_and_residuals), complexes(3, 2), complexes(3), order=1),
    sample("scipy_solve", of_scipy("tanm"), normal(2, 2) / 2, order=1),
    sample("scipy_svd", of_scipy("orthogonal_procrustes"), normal(3, 2), normal(3, 2, seed=1), order=1),
    sample("expm", of_scipy("expm"), normal(3, 3)),
    sample("expm", of_scipy("expm"), complexes(2, 2)),
    sample("expm", of_scipy("cosm"), normal(2, 2)),
    sample("expm", of_scipy("sinhm"), normal(2, 2)),
    sample("logm", logarithm, complexes(2, 2) + 3 * np.eye(2), order=1),
    sample("sqrtm", of_scipy("sqrtm"), complexes(2, 2) + 3 * np.eye(2)),
    sample(
        "fractional_matrix_power", of_scipy("fractional_matrix_power"), complexes(2, 2) + 3 * np.eye(2), t=0.3, order=1
    ),
    sample("solve_sylvester", of_scipy("solve_sylvester"), triangle(3), triangle(2), normal(3, 2)),
    sample("solve_sylvester", of_scipy("solve_sylvester"), *(complexes(2, 2, seed=i) for i in range(3))),
    sample("solve_continuous_lyapunov", of_scipy("solve_continuous_lyapunov"), triangle(2), normal(2, 2)),
    sample(
        "solve_continuous_lyapunov", of_scipy("solve_continuous_lyapunov"), complexes(2, 2), complexes(2, 2, seed=1)
    ),
    sample("solve_discrete_lyapunov", of_scipy("solve_discrete_lyapunov"), normal(2, 2) / 2, normal(2, 2)),
    sample("solve_discrete_lyapunov", of_scipy("solve_discrete_lyapunov"), complexes(2, 2) / 4, complexes(2, 2)),
    *[
        sample(name, riccati(name), make(3, 3) / 2, make(3, 2), make(3, 3), make(2, 2))
        for name in ("solve_continuous_are", "solve_discrete_are")
        for make in (normal, complexes)
    ],
    sample("solve_banded", of_scipy("solve_banded"), fixed((1, 1)), banded(3, 4), normal(4)),
    sample("solve_banded", of_scipy("solve_banded"), fixed((2, 1)), banded(4, 4), normal(4, 2)),
    sample("solve_toeplitz", of_scipy("solve_toeplitz"), column(normal(3)), normal(3)),
    sample("solve_toeplitz", of_scipy("solve_toeplitz"), (column(complexes(3)), complexes(3)), complexes(3, 2)),
    sample("concatenate", of_scipy("block_diag"), normal(2, 1), normal(2), normal(1, 2)),
    sample("concatenate", of_scipy("toeplitz"), normal(3), normal(2)),
    sample("concatenate", of_scipy("hankel"), normal(3), normal(2)),
    sample("getitem", of_scipy("circulant"), normal(3)),
    sample("multiply", of_scipy("khatri_rao"), normal(2, 3), normal(3, 3)),
]
SAMPLES = [*triangles, *spectra, *least, *scipys]
