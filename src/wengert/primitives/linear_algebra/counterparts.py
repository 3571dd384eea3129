"""What NumPy has too, in the bits of SciPy's LAPACK: the rules are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.form import Reduction
from wengert.core.primitives.declare import opaque, variant
from wengert.core.primitives.primitive import RoutineCall
from wengert.primitives.linear_algebra import inverses, least_squares, spectra
from wengert.primitives.linear_algebra import square_eigenvalues as square
from wengert.primitives.linear_algebra.matrices import over_stacks, plain_routine


def evaluate_svd(a: Any, *, full_matrices: bool, driver: str, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.svd`."""
    from scipy import linalg

    def factors(x: Any) -> Any:
        return linalg.svd(x, full_matrices, check_finite=check_finite, lapack_driver=driver)

    return over_stacks(factors, [2], a)


def evaluate_svdvals(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.svdvals`."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.svdvals(x, check_finite=check_finite), [2], a)


def evaluate_eigh(a: Any, *, uplo: str, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.eigh`."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.eigh(x, lower=uplo == "L", check_finite=check_finite), [2], a)


def evaluate_eigvalsh(a: Any, *, uplo: str, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.eigvalsh`."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.eigvalsh(x, lower=uplo == "L", check_finite=check_finite), [2], a)


def evaluate_inv(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.inv`."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.inv(x, check_finite=check_finite), [2], a)


def evaluate_det(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.det`."""
    from scipy import linalg

    return linalg.det(a, check_finite=check_finite)


def evaluate_solve(a: Any, b: Any, *, check_finite: bool, assume_a: str | None = None, lower: bool = False) -> Any:
    """Evaluate `scipy.linalg.solve`, of matrices on the right."""
    from scipy import linalg

    structure = {} if assume_a is None else {"assume_a": assume_a}  # SciPy 1.14 has another default

    def solve(a: Any, b: Any) -> Any:
        return linalg.solve(a, b, lower=lower, check_finite=check_finite, **structure)

    return over_stacks(solve, (2, 2), a, b)


def evaluate_norm(x: Any, *, order: Any, axis: Any, keepdims: bool) -> Any:
    """Evaluate `scipy.linalg.norm`, which asks BLAS for those of single vectors."""
    from scipy import linalg

    found = linalg.norm(x, order, axis, keepdims, check_finite=False)
    return np.asarray(found, x.real.dtype)[()]


def evaluate_eig(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.eig` with complex results, whatever the eigenvalues are."""
    from scipy import linalg

    def found(x: Any) -> Any:
        w, v = linalg.eig(x, check_finite=check_finite)
        return w, v.astype(w.dtype)

    return over_stacks(found, [2], a)


def evaluate_eigvals(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.eigvals`, whose results are complex."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.eigvals(x, check_finite=check_finite), [2], a)


def evaluate_pinv(a: Any, *, atol: float | None, rtol: float | None, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.pinv`."""
    from scipy import linalg

    return over_stacks(lambda x: linalg.pinv(x, atol=atol, rtol=rtol, check_finite=check_finite), [2], a)


def evaluate_lstsq(a: Any, b: Any, *, rcond: float, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.lstsq`, of matrices on the right, with residuals as those of `numpy.linalg.lstsq`."""
    from scipy import linalg

    def solve(a: Any, b: Any) -> Any:
        x, residuals, rank, s = linalg.lstsq(a, b, cond=rcond, check_finite=check_finite)
        if a.shape[0] > a.shape[1] and not residuals.size:
            residuals = np.zeros(b.shape[1], s.dtype)  # SciPy's empty ones are complex if the solution is
        return x, residuals.real, np.asarray(rank, np.int32), s

    return over_stacks(solve, (2, 2), a, b)


def routine_of_solve(
    *, assume_a: str | None = None, lower: bool = False, check_finite: bool = False
) -> RoutineCall | None:
    """Return how native code is called, which reads one triangle of what is said to be positive definite."""
    fields = {"finite": int(check_finite)}
    if assume_a in ("pos", "positive definite"):
        return RoutineCall("solve_positive", () if lower else (0,), fields)
    return RoutineCall("solve_conditioned", (), fields) if assume_a in (None, "gen", "general") else None


svd = variant(spectra.svd, "scipy_svd", evaluate_svd)
svdvals = variant(spectra.svdvals, "scipy_svdvals", evaluate_svdvals)
eigh = variant(spectra.eigh, "scipy_eigh", evaluate_eigh)
eigvalsh = variant(spectra.eigvalsh, "scipy_eigvalsh", evaluate_eigvalsh)
inv = variant(inverses.inv, "scipy_inv", evaluate_inv, routine=plain_routine("inv_conditioned"))
det = variant(inverses.det, "scipy_det", evaluate_det)
solve = variant(inverses.solve, "scipy_solve", evaluate_solve, batch=None, routine=routine_of_solve)
eig = variant(square.eig, "scipy_eig", evaluate_eig)
eigvals = variant(square.eigvals, "scipy_eigvals", evaluate_eigvals)
pinv = variant(least_squares.pinv, "scipy_pinv", evaluate_pinv)
lstsq = variant(least_squares.lstsq, "scipy_lstsq", evaluate_lstsq)
norm = opaque(
    "scipy_norm",
    evaluate_norm,
    vjp=inverses.vjp_norm,
    jvp=inverses.jvp_norm,
    square=inverses.euclidean_square,
    form=Reduction(),
    batch=inverses.batch_norm,
)
