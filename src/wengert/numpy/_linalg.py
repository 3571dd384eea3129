"""Functions of `numpy.linalg` with NumPy's signatures: inverses, determinants, decompositions, least squares."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from wengert.core.values.dispatch import apply, implements
from wengert.core.values.plain_functions import enter_by_numpy
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import UsageError, describe
from wengert.numpy._contractions import array
from wengert.numpy._matrices import known_square, matrices, square_matrices
from wengert.primitives.linear_algebra import (
    inverses,
    least_squares,
    orthogonal,
    spectra,
    square_eigenvalues,
    triangular,
)
from wengert.traces.eager_functions import eager_results, eager_several, eager_single

apply_inv = eager_single(inverses.inv)
apply_det = eager_single(inverses.det)
apply_solve = eager_several(inverses.solve)
apply_cholesky = eager_single(triangular.cholesky)

hermitian_values = eager_single(spectra.eigvalsh)
singular_values = eager_single(spectra.svdvals)

ONE = np.ones((1, 1))
SlogdetResult: Any = type(np.linalg.slogdet(ONE))  # NumPy has no public names for these
EighResult: Any = type(np.linalg.eigh(ONE))
EigResult: Any = type(np.linalg.eig(ONE))
SVDResult: Any = type(np.linalg.svd(ONE))
QRResult: Any = type(np.linalg.qr(ONE))

logarithm_of_determinant = eager_results(inverses.slogdet, SlogdetResult)
hermitian_vectors = eager_results(spectra.eigh, EighResult)
singular_vectors = eager_results(spectra.svd, SVDResult)
orthogonal_and_triangular = eager_results(orthogonal.qr, QRResult)


# Inverses and determinants


@implements(np.linalg.inv)
def inv(a: Any) -> Any:
    """Return the inverse; see `numpy.linalg.inv`."""
    return apply_inv(square_matrices("inv", a), {})


@implements(np.linalg.solve)
def solve(a: Any, b: Any) -> Any:
    """Return the solution x of a x = b; see `numpy.linalg.solve`."""
    return apply_solve((square_matrices("solve", a), array("solve", b)), {})


@implements(np.linalg.det)
def det(a: Any) -> Any:
    """Return the determinant; see `numpy.linalg.det`."""
    return apply_det(square_matrices("det", a), {})


@implements(np.linalg.slogdet)
def slogdet(a: Any) -> Any:
    """Return the sign and the logarithm of the absolute value of the determinant; see `numpy.linalg.slogdet`."""
    return logarithm_of_determinant(square_matrices("slogdet", a), {})


# Decompositions


@implements(np.linalg.cholesky)
def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """Return the Cholesky factor; see `numpy.linalg.cholesky`."""
    return apply_cholesky(square_matrices("cholesky", a), {"upper": bool(upper)})


def triangle_name(name: str, value: Any) -> str:
    """Return which triangle is read, "L" or "U"."""
    uplo = value.upper() if isinstance(value, str) else value
    if uplo not in ("L", "U"):
        raise ValueError(describe(name, f"UPLO={value!r}", "'L' or 'U' is needed", "Leave it out for 'L'"))
    return str(uplo)


@implements(np.linalg.qr)
def qr(a: Any, mode: str = "reduced") -> Any:
    """Return the QR decomposition; see `numpy.linalg.qr`.

    Raises:
        UsageError: of mode "raw", whose results are LAPACK's own.
    """
    x = matrices("qr", a)
    if mode == "r":
        return apply(orthogonal.qr_r, x)
    if mode not in ("reduced", "complete"):
        needed = "'reduced', 'complete' or 'r' is needed"
        raise UsageError("qr", f"mode={mode!r:.40}", needed, "Leave it out for 'reduced'")
    return orthogonal_and_triangular(x, {"mode": mode})


@implements(np.linalg.eigh)
def eigh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Return eigenvalues and eigenvectors of Hermitian matrices; see `numpy.linalg.eigh`."""
    return hermitian_vectors(square_matrices("eigh", a), {"uplo": triangle_name("eigh", UPLO)})


@implements(np.linalg.eigvalsh)
def eigvalsh(a: Any, UPLO: str = "L") -> Any:  # noqa: N803 - NumPy's name
    """Return the eigenvalues of Hermitian matrices; see `numpy.linalg.eigvalsh`."""
    return hermitian_values(square_matrices("eigvalsh", a), {"uplo": triangle_name("eigvalsh", UPLO)})


def require_finite_elements(name: str, x: Any) -> Any:
    """Return a matrix, after it was looked whether all elements that are known are finite."""
    if is_concrete(x) and not np.isfinite(raw(x)).all():
        given = "infinite or NaN elements"
        raise np.linalg.LinAlgError(describe(name, given, "finite ones are needed", "Look at where they come from"))
    return x


def drop_zero_imaginary(given: Any, *results: Any) -> tuple[Any, ...]:
    """Return complex results as real ones where the operand and all eigenvalues, which come first, are real."""
    if given.dtype.kind == "c" or np.any(raw(results[0]).imag != 0):
        return results
    return tuple([x.real for x in results])


def real_as_numpy(given: Any, *results: Any) -> tuple[Any, ...]:
    """Return complex results as NumPy does: as real ones where they can be, before its version 2.5."""
    return results if np.lib.NumpyVersion(np.__version__) >= "2.5.0" else drop_zero_imaginary(given, *results)


@implements(np.linalg.eig)
def eig(a: Any) -> Any:
    """Return eigenvalues and eigenvectors of square matrices; see `numpy.linalg.eig`."""
    x = require_finite_elements("eig", known_square("eig", a))
    return EigResult(*real_as_numpy(x, *apply(square_eigenvalues.eig, x)))


@implements(np.linalg.eigvals)
def eigvals(a: Any) -> Any:
    """Return the eigenvalues of square matrices; see `numpy.linalg.eigvals`."""
    x = require_finite_elements("eigvals", known_square("eigvals", a))
    return real_as_numpy(x, apply(square_eigenvalues.eigvals, x))[0]


@implements(np.linalg.svd)
def svd(a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False) -> Any:
    """Return the singular value decomposition; see `numpy.linalg.svd`."""
    if hermitian:
        return hermitian_svd(square_matrices("svd", a), compute_uv)
    x = matrices("svd", a)
    if not compute_uv:
        return singular_values(x, {})
    return singular_vectors(x, {"full_matrices": bool(full_matrices)})


def hermitian_svd(x: Any, compute_uv: bool) -> Any:
    """Return the singular value decomposition of Hermitian matrices from their eigenvalues."""
    if not compute_uv:
        return np.sort(np.abs(eigvalsh(x)))[..., ::-1]
    w, v = eigh(x)
    order = np.argsort(np.abs(w))[..., ::-1]
    sign = np.take_along_axis(np.copysign(1.0, w), order, axis=-1)
    u = np.take_along_axis(v, order[..., None, :], axis=-1)
    s = np.take_along_axis(np.abs(w), order, axis=-1)
    return SVDResult(u, s, np.conjugate((u * sign[..., None, :]).mT))


@implements(np.linalg.svdvals)
def svdvals(x: Any, /) -> Any:
    """Return the singular values; see `numpy.linalg.svdvals`."""
    return singular_values(matrices("svdvals", x), {})


# Generalised inverses


NOT_GIVEN: Any = object()


@implements(np.linalg.pinv)
def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = NOT_GIVEN) -> Any:
    """Return the generalised inverse; see `numpy.linalg.pinv`."""
    x = matrices("pinv", a)
    if rcond is not None and rtol is not NOT_GIVEN:
        raise ValueError(describe("pinv", "rcond and rtol", "one of them is needed", "Leave one out"))
    if rcond is None:
        rcond = 1e-15 if rtol is NOT_GIVEN else rtol
        if rcond is None:
            rcond = max(x.shape[-2:]) * np.finfo(x.dtype).eps
    return apply(least_squares.pinv, x, rcond=rcond, hermitian=bool(hermitian))


@implements(np.linalg.lstsq)
def lstsq(a: Any, b: Any, rcond: Any = None) -> Any:
    """Return the solution of least squares, residuals, rank and singular values; see `numpy.linalg.lstsq`."""
    x, y = array("lstsq", a), array("lstsq", b)
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0]:
        needed = "a matrix, and a vector or matrix with as many rows are needed"
        raise np.linalg.LinAlgError(describe("lstsq", f"shapes {x.shape} and {y.shape}", needed, "Reshape them"))
    columns = y[:, None] if y.ndim == 1 else y
    solution, *rest = with_residuals(x, y, apply(least_squares.lstsq, x, columns, rcond=rcond))
    return solution[:, 0] if y.ndim == 1 else solution, *rest


def with_residuals(a: Any, b: Any, found: Any) -> tuple[Any, Any, Any, Any]:
    """Return a solution of least squares with residuals as NumPy has them: none where the rank is not full."""
    solution, residuals, rank, s = found
    rows, columns = a.shape[-2:]
    if rows > columns:
        if not (is_concrete(a) and is_concrete(b)):
            residuals = apply(least_squares.residuals_of_full_rank, residuals, columns - rank)
        elif np.any(raw(rank) < columns):
            residuals = residuals[..., :0]
    return solution, residuals, rank, s


@implements(np.linalg.matrix_rank)
def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:  # noqa: N803 - NumPy's name
    """Return the rank, which is constant to differentiation; see `numpy.linalg.matrix_rank`."""
    x = array("matrix_rank", A)
    if x.ndim < 2:
        found = np.any(x != 0)
        return int(raw(found)) if is_concrete(found) else found.astype(int)
    return apply(least_squares.matrix_rank, x, tol=tol, hermitian=bool(hermitian), rtol=rtol)


# Linear maps of arrays with several axes


@implements(np.linalg.tensorsolve)
def tensorsolve(a: Any, b: Any, axes: Any = None) -> Any:
    """Return the solution x of a x = b for arrays with several axes; see `numpy.linalg.tensorsolve`."""
    x, y = array("tensorsolve", a), array("tensorsolve", b)
    if axes is not None:
        moved = [axis % x.ndim for axis in axes]
        x = np.transpose(x, [*[i for i in range(x.ndim) if i not in moved], *moved])
    shape = x.shape[y.ndim - x.ndim :] if x.ndim > y.ndim else ()
    count = math.prod(shape)
    if math.prod(x.shape) != count**2:
        needed = "as many unknowns, along the last axes, as equations, along the first, are needed"
        action = "Reshape them, or name the axes of the unknowns with axes="
        raise np.linalg.LinAlgError(describe("tensorsolve", f"shapes {x.shape} and {y.shape}", needed, action))
    return np.reshape(solve(np.reshape(x, (count, count)), np.ravel(y)), shape)


@implements(np.linalg.tensorinv)
def tensorinv(a: Any, ind: int = 2) -> Any:
    """Return the inverse of a linear map of arrays with several axes; see `numpy.linalg.tensorinv`."""
    x = array("tensorinv", a)
    if ind <= 0:
        given = f"ind={ind}"
        raise ValueError(describe("tensorinv", given, "a positive number of axes is needed", "Leave it out for 2"))
    inverse = inv(np.reshape(x, (math.prod(x.shape[ind:]), -1)))
    return np.reshape(inverse, (*x.shape[ind:], *x.shape[:ind]))


enter_by_numpy(np.linalg.eig, np.linalg.eigh, np.linalg.eigvals, np.linalg.eigvalsh, np.linalg.svd, np.linalg.svdvals)
enter_by_numpy(np.linalg.det, np.linalg.inv, np.linalg.matrix_rank, np.linalg.pinv, np.linalg.slogdet, np.linalg.solve)
enter_by_numpy(np.linalg.cholesky, np.linalg.qr, np.linalg.tensorinv, np.linalg.tensorsolve)
