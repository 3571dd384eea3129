"""Decompositions and linear systems, with SciPy's signatures."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from wengert.core.diagnostics.argument_checks import elements, require_finite
from wengert.core.values.dispatch import apply, implements
from wengert.core.values.tensor import raw
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy import _linalg
from wengert.numpy._contractions import array
from wengert.numpy._linalg import with_residuals
from wengert.primitives.linear_algebra import (
    determinants,
    eigenvalues,
    inverses,
    least_squares,
    orthogonal,
    singular_values,
    square_eigenvalues,
    triangular,
)
from wengert.primitives.linear_algebra import lu as factors
from wengert.primitives.linear_algebra.matrices import hermitian_from

LAPACKS = {"e": np.float32, "g": np.float64, "G": np.complex128}
"""What SciPy converts dtypes to for which LAPACK has no routines."""


def as_lapack_dtype(x: Any) -> Any:
    """Return an operand in a dtype for which LAPACK has routines, or integers."""
    kind = LAPACKS.get(x.dtype.char)
    return x if kind is None else x.astype(kind)


def as_scipy_takes(requirement: Callable[..., Any]) -> Callable[[str, Any], Any]:
    """Return a requirement of operands that are matrices with SciPy's errors, and its dtypes of results."""
    return lambda name, value: as_lapack_dtype(requirement(name, value, ShapeError))


matrices = as_scipy_takes(_linalg.matrices)
square_matrices = as_scipy_takes(_linalg.square_matrices)
known_square = as_scipy_takes(_linalg.known_square)


def right_side(name: str, rows: int, b: Any) -> Any:
    """Return the right-hand side of a linear system of so many equations: a vector, or stacks of matrices."""
    x = array(name, b)
    if not x.ndim or x.shape[-2 if x.ndim > 1 else 0] != rows:
        needed = "as many elements, or rows, on the right as the matrix has are needed"
        raise ShapeError(name, f"shape {x.shape} on the right of {rows} equations", needed, "Reshape it")
    return as_lapack_dtype(x)


def solve_columns(solve: Callable[[Any], Any], b: Any) -> Any:
    """Return the solutions for matrices on the right-hand side, or for a vector as their only column."""
    return np.squeeze(solve(b[..., None]), -1) if b.ndim == 1 else solve(b)


TRANSPOSES = {"N": 0, "T": 1, "C": 2, 0: 0, 1: 1, 2: 2}


@implements(scipy.linalg.solve_triangular)
def solve_triangular(
    a: Any,
    b: Any,
    trans: Any = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the solution of a triangular system; see `scipy.linalg.solve_triangular`."""
    x = square_matrices("solve_triangular", a)
    if trans not in TRANSPOSES:
        given = f"trans={trans!r:.40}"
        raise UsageError("solve_triangular", given, "0, 1, 2, 'N', 'T' or 'C' is needed", "Leave it out")
    params = {
        "trans": TRANSPOSES[trans],
        "lower": bool(lower),
        "unit_diagonal": bool(unit_diagonal),
        "check_finite": bool(check_finite),
    }
    right = right_side("solve_triangular", x.shape[-1], b)
    return solve_columns(lambda y: apply(triangular.solve_triangular, x, y, **params), right)


@implements(scipy.linalg.cholesky)
def cholesky(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the Cholesky factor of a matrix; see `scipy.linalg.cholesky`."""
    x = square_matrices("cholesky", a)
    return apply(triangular.scipy_cholesky, x, upper=not lower, check_finite=bool(check_finite))


@implements(scipy.linalg.cho_factor)
def cho_factor(a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the Cholesky factor of a matrix; see `scipy.linalg.cho_factor`.

    The other triangle is as it was, or 0 from SciPy 1.18 on.
    """
    x = square_matrices("cho_factor", a)
    factor = apply(triangular.scipy_cholesky, x, upper=not lower, check_finite=bool(check_finite))
    if clears_triangle():
        return factor, lower
    inside = np.tri(x.shape[-1], dtype=bool)
    return np.where(inside if lower else inside.T, factor, x), lower


@functools.cache
def clears_triangle() -> bool:
    """Tell whether SciPy's `cho_factor` gives 0 for the other triangle."""
    return bool(scipy.linalg.cho_factor(np.array([[4.0, 1.0], [1.0, 4.0]]))[0][1, 0] == 0)


@implements(scipy.linalg.cho_solve)
def cho_solve(c_and_lower: Any, b: Any, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of a system whose matrix has a Cholesky factor; see `scipy.linalg.cho_solve`."""
    c, lower = c_and_lower
    x = square_matrices("cho_solve", c)
    params = {"upper": not lower, "check_finite": bool(check_finite)}
    right = right_side("cho_solve", x.shape[-1], array("cho_solve", b))
    return solve_columns(lambda y: apply(triangular.cho_solve, x, y, **params), right)


@implements(scipy.linalg.qr)
def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> Any:
    """Return the QR decomposition; see `scipy.linalg.qr`.

    Raises:
        UsageError: of mode "raw", whose results are LAPACK's own, or with pivoting.
    """
    x = matrices("qr", a)
    if mode not in ("full", "r", "economic") or pivoting:
        needed = "'full', 'r' or 'economic' without pivoting is needed"
        raise UsageError("qr", "pivoting=True" if pivoting else f"mode={mode!r:.40}", needed, "Use mode='economic'")
    params = {"mode": "reduced" if mode == "economic" else "complete", "check_finite": bool(check_finite)}
    q, r = apply(orthogonal.scipy_qr, x, **params)
    return (r,) if mode == "r" else (q, r)


@implements(scipy.linalg.lu)
def lu(
    a: Any, permute_l: bool = False, overwrite_a: bool = False, check_finite: bool = True, p_indices: bool = False
) -> Any:
    """Return the LU decomposition; see `scipy.linalg.lu`."""
    x = matrices("lu", a)
    order, left, right = apply(factors.lu, x, check_finite=bool(check_finite))
    if permute_l:
        return factors.rows_at(left, order), right
    if not p_indices:
        order = (order[..., None] == np.arange(x.shape[-2])).astype(left.real.dtype)
    return order, left, right


@implements(scipy.linalg.lu_factor)
def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return both triangular factors in one matrix, and the exchanges of rows; see `scipy.linalg.lu_factor`."""
    return apply(factors.lu_factor, square_matrices("lu_factor", a), check_finite=bool(check_finite))


@implements(scipy.linalg.lu_solve)
def lu_solve(lu_and_piv: Any, b: Any, trans: int = 0, overwrite_b: bool = False, check_finite: bool = True) -> Any:
    """Return the solution of a system whose matrix has an LU decomposition; see `scipy.linalg.lu_solve`."""
    packed, pivots = lu_and_piv
    x = square_matrices("lu_solve", packed)
    right = right_side("lu_solve", x.shape[-1], b)
    if trans not in (0, 1, 2):
        raise UsageError("lu_solve", f"trans={trans!r:.40}", "0, 1 or 2 is needed", "Leave it out")
    params = {"trans": int(trans), "check_finite": bool(check_finite)}
    return solve_columns(lambda y: apply(factors.lu_solve, x, y, array("lu_solve", pivots), **params), right)


@implements(scipy.linalg.polar)
def polar(a: Any, side: str = "right") -> Any:
    """Return the polar decomposition; see `scipy.linalg.polar`."""
    if side not in ("right", "left"):
        raise ValueError(describe("polar", f"side={side!r:.40}", "'right' or 'left' is needed", "Leave it out"))
    w, s, vh = svd(a, full_matrices=False)
    adjoint = np.conjugate(vh.mT) if side == "right" else np.conjugate(w.mT)
    definite = (adjoint * s[..., None, :]) @ vh if side == "right" else (w * s[..., None, :]) @ adjoint
    return w @ vh, definite


# As NumPy has them, in the bits of SciPy's LAPACK


@implements(scipy.linalg.svd)
def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """Return the singular value decomposition; see `scipy.linalg.svd`."""
    x = matrices("svd", a)
    if not compute_uv:
        return svdvals(x, check_finite=check_finite)
    params = {"full_matrices": bool(full_matrices), "driver": lapack_driver, "check_finite": bool(check_finite)}
    return apply(singular_values.scipy_svd, x, **params)


@implements(scipy.linalg.svdvals)
def svdvals(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the singular values; see `scipy.linalg.svdvals`."""
    return apply(singular_values.scipy_svdvals, matrices("svdvals", a), check_finite=bool(check_finite))


HERMITIAN = ("pos", "positive definite", "her", "hermitian")
SYMMETRIC = ("sym", "symmetric")
"""Structures of matrices of which one triangle is read."""


def refuse_other(name: str, options: dict[str, Any]) -> None:
    """Refuse options that are not at their defaults."""
    for option, value in options.items():
        if value is not None and value is not False:
            raise UsageError(name, f"{option}={value!r:.40}", "its default is needed", f"Leave {option} out")


@implements(scipy.linalg.eigh)
def eigh(
    a: Any,
    b: Any = None,
    *,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    type: int = 1,
    check_finite: bool = True,
    subset_by_index: Any = None,
    subset_by_value: Any = None,
    driver: Any = None,
) -> Any:
    """Return eigenvalues and eigenvectors of a Hermitian matrix; see `scipy.linalg.eigh`.

    Raises:
        UsageError: of a generalised problem of another type than 1, of subsets, and of drivers.
    """
    options = {"subset_by_index": subset_by_index, "subset_by_value": subset_by_value, "driver": driver}
    refuse_other("eigh", {**options, "type": None if b is None or type == 1 else type})
    x, params = square_matrices("eigh", a), {"uplo": "L" if lower else "U", "check_finite": bool(check_finite)}
    if b is not None:
        found = eigenvalues.relative_eigvalsh if eigvals_only else eigenvalues.relative_eigh
        return apply(found, x, square_matrices("eigh", b), **params)
    return (
        apply(eigenvalues.scipy_eigvalsh, x, **params) if eigvals_only else apply(eigenvalues.scipy_eigh, x, **params)
    )


@implements(scipy.linalg.eigvalsh)
def eigvalsh(a: Any, b: Any = None, *, lower: bool = True, check_finite: bool = True, **options: Any) -> Any:
    """Return the eigenvalues of a Hermitian matrix; see `scipy.linalg.eigvalsh`."""
    return eigh(a, b, lower=lower, eigvals_only=True, check_finite=check_finite, **options)


@implements(scipy.linalg.inv)
def inv(
    a: Any, overwrite_a: bool = False, check_finite: bool = True, *, assume_a: Any = None, lower: bool = False
) -> Any:
    """Return the inverse; see `scipy.linalg.inv`."""
    refuse_other("inv", {"assume_a": assume_a})
    return apply(inverses.scipy_inv, square_matrices("inv", a), check_finite=bool(check_finite))


@implements(scipy.linalg.det)
def det(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> Any:
    """Return the determinant; see `scipy.linalg.det`."""
    return apply(determinants.scipy_det, square_matrices("det", a), check_finite=bool(check_finite))


@implements(scipy.linalg.solve)
def solve(
    a: Any,
    b: Any,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    assume_a: Any = None,
    transposed: bool = False,
) -> Any:
    """Return the solution of a linear system; see `scipy.linalg.solve`.

    Raises:
        UsageError: of a triangular or banded matrix, for which there are functions of their own.
    """
    x = square_matrices("solve", a)
    options: dict[str, Any] = {"check_finite": bool(check_finite)}
    if assume_a in HERMITIAN or (assume_a in SYMMETRIC and x.dtype.kind != "c"):
        x = hermitian_from(x, "L" if lower else "U")
        options |= {"assume_a": assume_a, "lower": bool(lower)}
        assume_a = None
    refuse_other("solve", {"assume_a": None if assume_a in ("gen", "general") else assume_a, "transposed": transposed})
    right = right_side("solve", x.shape[-1], b)
    return solve_columns(lambda y: apply(inverses.scipy_solve, x, y, **options), right)


@implements(scipy.linalg.eig)
def eig(
    a: Any,
    b: Any = None,
    left: bool = False,
    right: bool = True,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    homogeneous_eigvals: bool = False,
) -> Any:
    """Return eigenvalues, complex ones always, and eigenvectors; see `scipy.linalg.eig`.

    Raises:
        UsageError: of a generalised problem, and of left eigenvectors.
    """
    refuse_other("eig", {"b": b, "left": left, "homogeneous_eigvals": homogeneous_eigvals})
    if not right:
        return eigvals(a, check_finite=check_finite)
    x = known_square("eig", a)
    w, v = apply(square_eigenvalues.scipy_eig, x, check_finite=bool(check_finite))
    is_real = x.dtype.kind != "c" and not np.any(raw(w).imag)
    return w, v.real if is_real else v


@implements(scipy.linalg.eigvals)
def eigvals(
    a: Any, b: Any = None, overwrite_a: bool = False, check_finite: bool = True, homogeneous_eigvals: bool = False
) -> Any:
    """Return the eigenvalues, complex ones always; see `scipy.linalg.eigvals`."""
    refuse_other("eigvals", {"b": b, "homogeneous_eigvals": homogeneous_eigvals})
    return apply(square_eigenvalues.scipy_eigvals, square_matrices("eigvals", a), check_finite=bool(check_finite))


@implements(scipy.linalg.pinv)
def pinv(a: Any, *, atol: Any = None, rtol: Any = None, return_rank: bool = False, check_finite: bool = True) -> Any:
    """Return the generalised inverse; see `scipy.linalg.pinv`."""
    refuse_other("pinv", {"return_rank": return_rank})
    return apply(least_squares.scipy_pinv, matrices("pinv", a), atol=atol, rtol=rtol, check_finite=bool(check_finite))


@implements(scipy.linalg.lstsq)
def lstsq(
    a: Any,
    b: Any,
    cond: Any = None,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    check_finite: bool = True,
    lapack_driver: Any = None,
) -> Any:
    """Return the solution of least squares, residuals, rank and singular values; see `scipy.linalg.lstsq`."""
    refuse_other("lstsq", {"lapack_driver": None if lapack_driver == "gelsd" else lapack_driver})
    x = matrices("lstsq", a)
    y = right_side("lstsq", x.shape[-2], b)
    rcond = float(np.finfo(np.result_type(x.dtype, y.dtype, np.float32)).eps if cond is None else cond)
    columns = y[:, None] if y.ndim == 1 else y
    params = {"rcond": rcond, "check_finite": bool(check_finite)}
    found = apply(least_squares.scipy_lstsq, x, columns, **params)
    solution, residuals, rank, s = with_residuals(x, y, found)
    rank = rank.astype(int)
    if y.ndim == 1:
        return solution[:, 0], residuals[0] if residuals.shape[0] else residuals, rank, s
    return solution, residuals, rank, s


@implements(scipy.linalg.orthogonal_procrustes)
def orthogonal_procrustes(A: Any, B: Any, check_finite: bool = True) -> Any:  # noqa: N803 - SciPy's names
    """Return the orthogonal matrix that maps one best to another, and its scale; see SciPy's function."""
    x, y = matrices("orthogonal_procrustes", A), matrices("orthogonal_procrustes", B)
    if x.shape[-2:] != y.shape[-2:]:
        given = f"shapes {x.shape} and {y.shape}"
        raise ShapeError("orthogonal_procrustes", given, "matrices of one shape are needed", "Reshape them")
    u, s, vh = svd(np.matmul(y.mT, np.conjugate(x)).mT, check_finite=check_finite)
    return u @ vh, np.sum(s, axis=-1)


@implements(scipy.linalg.norm)
def norm(a: Any, ord: Any = None, axis: Any = None, keepdims: bool = False, check_finite: bool = True) -> Any:
    """Return a norm of vectors or matrices; see `scipy.linalg.norm`."""
    x = array("norm", a)
    if x.ndim == 1 and ord in (None, 2) and axis is None and not keepdims and x.dtype.kind in "fc":
        found: Any = apply(inverses.scipy_norm, x, order=None, axis=None, keepdims=False)
    else:
        found = np.linalg.norm(x, ord, axis, keepdims)
    known = elements(found) if check_finite else 0.0
    if np.ndim(known) or known is None or not math.isfinite(known):  # a finite number is one of finite numbers
        require_finite("norm", "a", x)
    return found
