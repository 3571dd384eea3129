"""What NumPy has too, in the bits of SciPy's LAPACK: the rules are the same."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.forms.form import Reduction
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import opaque
from wengert.primitives import least_squares, linear_algebra, spectra
from wengert.primitives import square_eigenvalues as square
from wengert.primitives.matrices import over_stacks


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


svd = opaque(
    "scipy_svd",
    evaluate_svd,
    vjp=spectra.vjp_svd,
    jvp=spectra.jvp_svd,
    outputs=3,
    form=Routine("(m,n)->(m,k),(k),(k,n)"),
)
svdvals = opaque(
    "scipy_svdvals",
    evaluate_svdvals,
    vjp=spectra.vjp_svdvals,
    jvp=spectra.jvp_svdvals,
    form=Routine("(m,n)->(k)"),
)
eigh = opaque(
    "scipy_eigh", evaluate_eigh, vjp=spectra.vjp_eigh, jvp=spectra.jvp_eigh, outputs=2, form=Routine("(n,n)->(n),(n,n)")
)
eigvalsh = opaque(
    "scipy_eigvalsh",
    evaluate_eigvalsh,
    vjp=spectra.vjp_eigvalsh,
    jvp=spectra.jvp_eigvalsh,
    form=Routine("(n,n)->(n)"),
)
inv = opaque(
    "scipy_inv", evaluate_inv, vjp=linear_algebra.vjp_inv, jvp=linear_algebra.jvp_inv, form=Routine("(n,n)->(n,n)")
)
det = opaque("scipy_det", evaluate_det, vjp=linear_algebra.vjp_det, form=Routine("(n,n)->()"))
solve = opaque(
    "scipy_solve",
    evaluate_solve,
    vjp=linear_algebra.vjp_solve,
    jvp=linear_algebra.jvp_solve,
    form=Routine("(n,n),(n,m)->(n,m)"),
)
eig = opaque(
    "scipy_eig",
    evaluate_eig,
    vjp=square.vjp_eig,
    jvp=square.jvp_eig,
    outputs=2,
    form=Routine("(n,n)->(n),(n,n)"),
)
eigvals = opaque(
    "scipy_eigvals",
    evaluate_eigvals,
    vjp=square.vjp_eigvals,
    jvp=square.jvp_eigvals,
    form=Routine("(n,n)->(n)"),
)
pinv = opaque(
    "scipy_pinv",
    evaluate_pinv,
    vjp=least_squares.vjp_pinv,
    jvp=least_squares.jvp_pinv,
    form=Routine("(m,n)->(n,m)"),
)
lstsq = opaque(
    "scipy_lstsq",
    evaluate_lstsq,
    vjp=least_squares.vjp_lstsq,
    jvp=least_squares.jvp_lstsq,
    outputs=4,
    form=Routine("(m,n),(m,k)->(n,k),(r),(),(s)"),
)
norm = opaque(
    "scipy_norm",
    evaluate_norm,
    vjp=linear_algebra.vjp_norm,
    jvp=linear_algebra.jvp_norm,
    square=linear_algebra.euclidean_square,
    form=Reduction(),
    batch=linear_algebra.batch_norm,
)
