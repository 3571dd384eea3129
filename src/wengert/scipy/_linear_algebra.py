"""Decompositions, linear systems, functions of matrices and matrix equations, with SciPy's signatures."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.linalg

from wengert.core.diagnostics.argument_checks import as_whole, elements, require_finite, shown
from wengert.core.values.dispatch import apply, implements
from wengert.core.values.tensor import raw
from wengert.errors import ShapeError, UsageError, describe
from wengert.numpy import _linalg
from wengert.numpy._contractions import array
from wengert.numpy._linalg import with_residuals
from wengert.numpy._namespace import document_as
from wengert.primitives.linear_algebra import (
    determinants,
    eigenvalues,
    inverses,
    least_squares,
    matrix_equations,
    matrix_functions,
    orthogonal,
    singular_values,
    square_eigenvalues,
    triangular,
)
from wengert.primitives.linear_algebra import lu as factors
from wengert.primitives.linear_algebra.matrices import adjoint, hermitian_from

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


NOT_GIVEN: Any = object()


# Functions of matrices


@implements(scipy.linalg.expm)
def expm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the exponential of a matrix; see `scipy.linalg.expm`."""
    return apply(matrix_functions.expm, square_matrices("expm", A))


def refuse_error_estimate(name: str, disp: Any) -> None:
    """Refuse to return an estimate of the error."""
    if disp is not NOT_GIVEN and not disp:
        raise UsageError(name, "disp=False", "the result alone is needed", "Leave it out; SciPy has deprecated it")


@implements(scipy.linalg.logm)
def logm(A: Any, disp: Any = NOT_GIVEN) -> Any:  # noqa: N803 - SciPy's name
    """Return the logarithm of a matrix; see `scipy.linalg.logm`."""
    refuse_error_estimate("logm", disp)
    return apply(matrix_functions.logm, known_square("logm", A))


@implements(scipy.linalg.sqrtm)
def sqrtm(A: Any, disp: Any = NOT_GIVEN, blocksize: Any = NOT_GIVEN) -> Any:  # noqa: N803 - SciPy's name
    """Return the square root of a matrix; see `scipy.linalg.sqrtm`."""
    refuse_error_estimate("sqrtm", disp)
    return apply(matrix_functions.sqrtm, known_square("sqrtm", A))


@implements(scipy.linalg.fractional_matrix_power)
def fractional_matrix_power(A: Any, t: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return a power of a matrix, which is constant to differentiation; see `scipy.linalg.fractional_matrix_power`."""
    x = square_matrices("fractional_matrix_power", A)
    if float(t) == int(t):
        return np.linalg.matrix_power(x, int(t))
    known_matrix = known_square("fractional_matrix_power", x)
    return apply(matrix_functions.fractional_matrix_power, known_matrix, exponent=float(t))


def enter_by_exponential(
    scipys: Callable[..., Any], summary: str, formula: Callable[[Any], Any]
) -> Callable[[Any], Any]:
    """Enter and return a function of square matrices that is made of exponentials."""
    name = scipys.__name__

    @implements(scipys)
    @document_as(name, summary, "scipy.linalg")
    def compute(A: Any) -> Any:  # noqa: N803 - SciPy's name
        return formula(square_matrices(name, A))

    return compute


cosm = enter_by_exponential(
    scipy.linalg.cosm,
    "Return the cosine of a matrix",
    lambda x: 0.5 * (expm(1j * x) + expm(-1j * x)) if x.dtype.kind == "c" else expm(1j * x).real,
)
sinm = enter_by_exponential(
    scipy.linalg.sinm,
    "Return the sine of a matrix",
    lambda x: -0.5j * (expm(1j * x) - expm(-1j * x)) if x.dtype.kind == "c" else expm(1j * x).imag,
)
coshm = enter_by_exponential(
    scipy.linalg.coshm, "Return the hyperbolic cosine of a matrix", lambda x: 0.5 * (expm(x) + expm(-x))
)
sinhm = enter_by_exponential(
    scipy.linalg.sinhm, "Return the hyperbolic sine of a matrix", lambda x: 0.5 * (expm(x) - expm(-x))
)


@implements(scipy.linalg.tanm)
def tanm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the tangent of a matrix; see `scipy.linalg.tanm`."""
    return solve(cosm(A), sinm(A))


@implements(scipy.linalg.tanhm)
def tanhm(A: Any) -> Any:  # noqa: N803 - SciPy's name
    """Return the hyperbolic tangent of a matrix; see `scipy.linalg.tanhm`."""
    return solve(coshm(A), sinhm(A))


# Matrix equations


def require_fit(name: str, *shapes: tuple[int, ...], fits: bool) -> None:
    """Require matrices whose shapes fit."""
    if not fits:
        given = "shapes " + ", ".join(map(str, shapes))
        raise ShapeError(name, given, "square matrices that fit that on the right are needed", "Reshape them")


@implements(scipy.linalg.solve_sylvester)
def solve_sylvester(a: Any, b: Any, q: Any) -> Any:
    """Return the solution X of A X + X B = Q; see `scipy.linalg.solve_sylvester`."""
    x, y = square_matrices("solve_sylvester", a), square_matrices("solve_sylvester", b)
    z = array("solve_sylvester", q)
    fits = z.ndim > 1 and tuple(z.shape[-2:]) == (x.shape[-1], y.shape[-1])
    require_fit("solve_sylvester", x.shape, y.shape, z.shape, fits=fits)
    return apply(matrix_equations.solve_sylvester, x, y, z)


@implements(scipy.linalg.solve_continuous_lyapunov, scipy.linalg.solve_lyapunov)
def solve_continuous_lyapunov(a: Any, q: Any) -> Any:
    """Return the solution X of A X + X A^H = Q; see `scipy.linalg.solve_continuous_lyapunov`."""
    x, y = square_matrices("solve_continuous_lyapunov", a), square_matrices("solve_continuous_lyapunov", q)
    require_fit("solve_continuous_lyapunov", x.shape, y.shape, fits=x.shape[-1] == y.shape[-1])
    return apply(matrix_equations.solve_continuous_lyapunov, x, y)


@implements(scipy.linalg.solve_discrete_lyapunov)
def solve_discrete_lyapunov(a: Any, q: Any, method: Any = None) -> Any:
    """Return the solution X of A X A^H - X + Q = 0; see `scipy.linalg.solve_discrete_lyapunov`."""
    x, y = square_matrices("solve_discrete_lyapunov", a), square_matrices("solve_discrete_lyapunov", q)
    require_fit("solve_discrete_lyapunov", x.shape, y.shape, fits=x.shape[-1] == y.shape[-1])
    if method is None:
        return matrix_equations.of_discrete_lyapunov(x, y)
    return apply(matrix_equations.solve_discrete_lyapunov, x, y, method=method)


def solve_riccati(name: str, a: Any, b: Any, q: Any, r: Any, e: Any, s: Any, balanced: Any) -> Any:
    """Return the solution of a Riccati equation; with E and S it is that of one without, in A', B, Q' and R."""
    x, y, z, w = square_matrices(name, a), matrices(name, b), square_matrices(name, q), square_matrices(name, r)
    n, m = y.shape[-2:]
    fits = x.shape[-1] == n == z.shape[-1] and w.shape[-1] == m
    require_fit(name, x.shape, y.shape, z.shape, w.shape, fits=fits)
    if e is not None:  # X of A^H X E + E^H X A is that of A E^-1, and of E^-H Q E^-1
        inverse = inv(square_matrices(name, e))
        x, z = x @ inverse, adjoint(inverse) @ z @ inverse
        s = None if s is None else adjoint(inverse) @ s
    if s is not None:
        gain = solve(w, adjoint(array(name, s)))
        x, z = x - y @ gain, z - s @ gain
    if e is not None or s is not None:
        z = (z + adjoint(z)) / 2
    return apply(getattr(matrix_equations, name), x, y, z, w, balanced=bool(balanced))


@implements(scipy.linalg.solve_continuous_are)
def solve_continuous_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: Any = True) -> Any:
    """Return X of A^H X + X A - X B R^-1 B^H X + Q = 0; see `scipy.linalg.solve_continuous_are`."""
    return solve_riccati("solve_continuous_are", a, b, q, r, e, s, balanced)


@implements(scipy.linalg.solve_discrete_are)
def solve_discrete_are(a: Any, b: Any, q: Any, r: Any, e: Any = None, s: Any = None, balanced: Any = True) -> Any:
    """Return X of A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0; see `scipy.linalg.solve_discrete_are`."""
    return solve_riccati("solve_discrete_are", a, b, q, r, e, s, balanced)


# Banded and Toeplitz systems


@implements(scipy.linalg.solve_banded)
def solve_banded(
    l_and_u: Any, ab: Any, b: Any, overwrite_ab: bool = False, overwrite_b: bool = False, check_finite: bool = True
) -> Any:
    """Return the solution of a system with a banded matrix; see `scipy.linalg.solve_banded`."""
    if np.shape(l_and_u) != (2,):
        given, needed = f"{shown(l_and_u)} as the first argument", "a pair (diagonals below, above) is needed"
        raise UsageError("solve_banded", given, needed, "Pass it before the diagonals")
    below, above = (as_whole("solve_banded", "diagonals", count, 0) for count in l_and_u)
    bands = array("solve_banded", ab)
    if bands.ndim < 2 or bands.shape[-2] != below + above + 1:
        given = f"shape {bands.shape} for {below} diagonals below and {above} above"
        raise ShapeError("solve_banded", given, "a row for each diagonal is needed", "Reshape it")
    params = {"below": below, "above": above, "check_finite": bool(check_finite)}
    right = right_side("solve_banded", bands.shape[-1], b)
    return solve_columns(lambda y: apply(matrix_equations.solve_banded, bands, y, **params), right)


@implements(scipy.linalg.solve_toeplitz)
def solve_toeplitz(c_or_cr: Any, b: Any, check_finite: bool = True) -> Any:
    """Return the solution of a system with a Toeplitz matrix; see `scipy.linalg.solve_toeplitz`."""
    pair = isinstance(c_or_cr, tuple)
    c = np.atleast_1d(array("solve_toeplitz", c_or_cr[0] if pair else c_or_cr))
    r = np.atleast_1d(array("solve_toeplitz", c_or_cr[1])) if pair else np.conjugate(c)
    right = right_side("solve_toeplitz", c.shape[-1], b)
    params = {"check_finite": bool(check_finite)}
    return solve_columns(lambda y: apply(matrix_equations.solve_toeplitz, c, r, y, **params), right)


# Special matrices


@implements(scipy.linalg.toeplitz)
def toeplitz(c: Any, r: Any = None) -> Any:
    """Return a Toeplitz matrix; see `scipy.linalg.toeplitz`."""
    column = np.atleast_1d(array("toeplitz", c))
    row = np.conjugate(column) if r is None else np.atleast_1d(array("toeplitz", r))
    stack = np.broadcast_shapes(column.shape[:-1], row.shape[:-1])
    column, row = (np.broadcast_to(x, (*stack, x.shape[-1])) for x in (column, row))
    return matrix_equations.toeplitz_matrix(column, row)


@implements(scipy.linalg.hankel)
def hankel(c: Any, r: Any = None) -> Any:
    """Return a Hankel matrix; see `scipy.linalg.hankel`."""
    column = np.ravel(array("hankel", c))
    row = np.zeros_like(column) if r is None else np.ravel(array("hankel", r))
    values = np.concatenate([column, row[1:]])
    return values[np.arange(column.shape[0])[:, None] + np.arange(row.shape[0])]


@implements(scipy.linalg.circulant)
def circulant(c: Any) -> Any:
    """Return a circulant matrix; see `scipy.linalg.circulant`."""
    x = np.atleast_1d(array("circulant", c))
    places = np.arange(x.shape[-1])
    return x[..., (places[:, None] - places) % x.shape[-1]]


@implements(scipy.linalg.block_diag)
def block_diag(*arrs: Any) -> Any:
    """Return a matrix with blocks on its diagonal; see `scipy.linalg.block_diag`."""
    blocks = [np.atleast_2d(array("block_diag", x)) for x in (arrs or ([],))]
    stack = np.broadcast_shapes(*[x.shape[:-2] for x in blocks])
    kind = np.result_type(*[x.dtype for x in blocks])
    widths = [x.shape[-1] for x in blocks]
    rows, left = [], 0
    for x, width in zip(blocks, widths, strict=True):
        wide = np.broadcast_to(x, (*stack, *x.shape[-2:])).astype(kind)
        sides = [np.zeros((*stack, x.shape[-2], n), kind) for n in (left, sum(widths) - left - width)]
        rows.append(np.concatenate([sides[0], wide, sides[1]], axis=-1))
        left += width
    return np.concatenate(rows, axis=-2)


@implements(scipy.linalg.khatri_rao)
def khatri_rao(a: Any, b: Any) -> Any:
    """Return the Kronecker products of columns; see `scipy.linalg.khatri_rao`."""
    x, y = array("khatri_rao", a), array("khatri_rao", b)
    if x.ndim < 2 or y.ndim < 2 or x.shape[-1] != y.shape[-1]:
        given = f"shapes {x.shape} and {y.shape}"
        raise ShapeError("khatri_rao", given, "matrices with as many columns are needed", "Reshape them")
    products = x[..., :, None, :] * y[..., None, :, :]
    return np.reshape(products, (*products.shape[:-3], -1, x.shape[-1]))


CONSTANT = ("dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal")
for _name in CONSTANT:  # of numbers that no derivative is taken by
    implements(getattr(scipy.linalg, _name))(getattr(scipy.linalg, _name))
