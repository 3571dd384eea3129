"""Generalised inverses and least squares, for matrices of constant rank."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque, variant
from wengert.core.primitives.opaque_kinds import Opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import none_holds
from wengert.primitives.linear_algebra.eigenvalues import eigh, eigvalsh
from wengert.primitives.linear_algebra.matrices import (
    adjoint,
    fold_triangle,
    hermitian_from,
    matrix_error,
    of_scipy,
    over_stacks,
)
from wengert.primitives.linear_algebra.singular_values import (
    by_singular_values,
    singular_values_along,
    svd,
    svdvals,
)

Tangents = Sequence[Any]


# The generalised inverse


def vjp_pinv(ct: Any, out: Any, a: Any, *, hermitian: bool = False, **_options: Any) -> Any:
    """Transpose dP = -P dA P + P P^H dA^H (I - A P) + (I - P A) dA^H P^H P, which holds where the rank is constant.

    (G. H. Golub and V. Pereyra, The differentiation of pseudo-inverses and nonlinear least squares problems whose
    variables separate, 1973, equation 4.12.)
    """
    a, p, back = hermitian_from(a, "L") if hermitian else a, adjoint(out), adjoint(conj(ct))
    rows, columns = back @ out @ p, p @ (out @ back)
    found = -(p @ conj(ct) @ p) + (rows - a @ (out @ rows)) + (columns - (columns @ out) @ a)
    return conj(fold_triangle((found + adjoint(found)) / 2, "L") if hermitian else found)


def jvp_pinv(tangents: Tangents, out: Any, a: Any, *, hermitian: bool = False, **_options: Any) -> Any:
    """Return the change that `vjp_pinv` transposes."""
    t = tangents[0]
    if hermitian:
        a, t = hermitian_from(a, "L"), hermitian_from(t, "L")
    p, back = adjoint(out), adjoint(t)
    rows, columns = p @ (back - (back @ a) @ out), back @ (p @ out)
    return -(out @ t @ out) + out @ rows + (columns - out @ (a @ columns))


def usual_pinv(a: Any, *, rcond: Any, hermitian: bool) -> tuple[Any, None]:
    """Return the generalised inverse by singular values, or eigenvalues, as NumPy does."""
    share = np.asarray(rcond)[..., None]
    if not hermitian:
        return by_large_values(a, lambda s: are_large(s, share))
    w, v = apply(eigh, a, uplo="L", of_values=True)
    return (v * reciprocals(w, are_large(w, share))[..., None, :]) @ adjoint(v), None


def usual_scipy_pinv(a: Any, *, atol: Any, rtol: Any, check_finite: bool = True) -> tuple[Any, None]:
    """Return the generalised inverse as SciPy does, which sums the limits."""
    share = max(a.shape[-2:]) * np.finfo(a.dtype).eps if rtol is None else rtol
    return by_large_values(a, lambda s: s > (0.0 if atol is None else atol) + share * largest_of(s))


def by_large_values(a: Any, large: Callable[[Any], Any]) -> tuple[Any, None]:
    """Return the generalised inverse by those singular values that are told to be large."""
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    return adjoint(vh) @ (reciprocals(s, large(s))[..., :, None] * adjoint(u)), None


def largest_of(s: Any) -> Any:
    """Return the largest absolute value."""
    return np.max(np.abs(s), axis=-1, keepdims=True, initial=0)


def are_large(s: Any, share: Any) -> Any:
    """Return which singular values, or eigenvalues, are larger than a share of the largest."""
    return np.abs(s) > share * largest_of(s)


def reciprocals(s: Any, large: Any) -> Any:
    """Return reciprocals of singular values, or eigenvalues, and 0 of those that are not large."""
    return np.where(large, 1 / np.where(large, s, 1), 0)


pinv: Opaque = opaque(
    "pinv",
    lambda a, *, rcond, hermitian: np.linalg.pinv(a, rcond, hermitian),
    vjp=vjp_pinv,
    jvp=jvp_pinv,
    form=Routine("(m,n)->(n,m)"),
    usual_case=usual_pinv,
)
scipy_pinv = variant(
    pinv, "scipy_pinv", of_scipy(lambda linalg, a, **options: linalg.pinv(a, **options), 2), usual_case=usual_scipy_pinv
)


# Least squares


def evaluate_lstsq(a: Any, b: Any, *, rcond: Any) -> Any:
    """Evaluate `numpy.linalg.lstsq`, of matrices on the right, with residuals that are 0 where the rank is not full."""

    def solve(a: Any, b: Any) -> Any:
        x, residuals, rank, s = np.linalg.lstsq(a, b, rcond)
        return x, residuals_of(a, b, residuals, residuals.dtype), np.asarray(rank), s

    return over_stacks(solve, (2, 2), a, b)


def residuals_of(a: Any, b: Any, found: Any, dtype: Any) -> Any:
    """Return residuals, 0 where the rank of one matrix with more rows than columns is not full."""
    return np.zeros(b.shape[1], dtype) if a.shape[0] > a.shape[1] and not found.size else found


def lstsq_by_scipy(linalg: Any, a: Any, b: Any, rcond: float, **check: Any) -> Any:
    """Return what `scipy.linalg.lstsq` does of one matrix, and one on the right, with residuals as those of NumPy's."""
    x, residuals, rank, s = linalg.lstsq(a, b, cond=rcond, **check)
    found = residuals_of(a, b, residuals, s.dtype)  # SciPy's empty ones are complex if the solution is
    return x, found.real, np.asarray(rank, np.int32), s


def smallest_share(a: Any, rcond: Any) -> float:
    """Return the limit that `numpy.linalg.lstsq` has for singular values, as a share of the largest."""
    precision = float(np.finfo(np.float64).eps)  # in which NumPy calculates, whatever the dtype
    if rcond is None:
        rcond = precision * max(a.shape[-2:])
    return rcond if 0 < rcond < 1 else precision


def generalised_inverse(a: Any, rcond: Any) -> Any:
    """Return the generalised inverse by the limit that `numpy.linalg.lstsq` has for singular values."""
    return apply(pinv, a, rcond=smallest_share(a, rcond), hermitian=False)


def usual_lstsq(a: Any, b: Any, *, rcond: Any, check_finite: bool = True) -> tuple[Any, None]:
    """Return the solution by singular values, the squares of what is left, the rank, and these values."""
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    large = are_large(s, smallest_share(a, rcond))
    x = adjoint(vh) @ (reciprocals(s, large)[..., :, None] * (adjoint(u) @ b))
    rank = np.sum(large, axis=-1)
    if a.shape[-2] <= a.shape[-1]:
        return (x, np.zeros((*x.shape[:-2], 0)), rank, s), None
    left = np.sum(np.abs(b - a @ x) ** 2, axis=-2)
    return (x, np.where((rank == a.shape[-1])[..., None], left, 0), rank, s), None


def vjp_lstsq(ct: Sequence[Any], out: Any, a: Any, b: Any, *, rcond: Any, **_options: Any) -> tuple[Any, Any]:
    """Return gradients of x = P b with the generalised inverse P (Golub and Pereyra 1973, as in `vjp_pinv`).

    That of a residual |r|^2, r = b - A x, needs no dx, because A^H r = 0.
    """
    x, _, _, _ = out
    ct_x, ct_residuals, _, ct_s = ct
    r, back = b - a @ x, adjoint(x)
    g_a: Any = None
    g_b: Any = None
    if ct_x is not None:
        p, g = generalised_inverse(a, rcond), conj(ct_x)
        g_b = adjoint(p) @ g
        g_a = -(g_b @ back) + r @ adjoint(p @ g_b) + (adjoint(p) @ x) @ adjoint(g - p @ (a @ g))
    if ct_residuals is not None and a.shape[-2] > a.shape[-1]:
        g = 2 * r * ct_residuals[..., None, :]
        g_b = g if g_b is None else g_b + g
        g_a = -(g @ back) if g_a is None else g_a - g @ back
    if ct_s is not None:
        g = apply(by_singular_values, ct_s, a, shared=False)
        g_a = g if g_a is None else g_a + g
    return (
        None if g_a is None else unbroadcast(conj(g_a), a.shape),
        None if g_b is None else unbroadcast(conj(g_b), b.shape),
    )


def jvp_lstsq(tangents: Tangents, out: Any, a: Any, b: Any, *, rcond: Any, **_options: Any) -> tuple[Any, ...]:
    """Return dx = P (db - dA x) + P P^H dA^H r + (I - P A) dA^H P^H x, and what follows."""
    (da, db), (x, _, _, _) = tangents, out
    r, p = b - a @ x, generalised_inverse(a, rcond)
    change = np.zeros_like(b) if db is None else db
    d_s = None
    if da is None:
        d_x = p @ change
    else:
        change, back = change - da @ x, adjoint(da)
        along = back @ (adjoint(p) @ x)
        d_x = p @ (change + adjoint(p) @ (back @ r)) + (along - p @ (a @ along))
        d_s = singular_values_along(da, a, strict=False)
    d_residuals = 2 * np.sum(conj(r) * change, axis=-2).real if a.shape[-2] > a.shape[-1] else None
    return d_x, d_residuals, None, d_s


lstsq = opaque(
    "lstsq",
    evaluate_lstsq,
    vjp=vjp_lstsq,
    jvp=jvp_lstsq,
    outputs=4,
    form=Routine("(m,n),(m,k)->(n,k),(r),(),(s)"),
    usual_case=usual_lstsq,
)
scipy_lstsq = variant(lstsq, "scipy_lstsq", of_scipy(lstsq_by_scipy, 2, 2))


def evaluate_residuals(residuals: Any, missing: Any) -> Any:
    """Evaluate `residuals_of_full_rank`."""
    if np.any(missing):
        raise matrix_error(
            "lstsq",
            "a matrix without full rank, in a traced function or in lanes, where the shape of the residuals may "
            "not depend on elements",
            "independent columns are needed",
            "Compute numpy.sum(numpy.abs(b - a @ x)**2, axis=0) yourself",
        )
    return np.copy(np.broadcast_arrays(residuals, np.asarray(missing)[..., None])[0])


residuals_of_full_rank: Primitive = linear(
    "residuals_of_full_rank",
    evaluate_residuals,
    transpose=lambda ct, _aval, missing: apply(residuals_of_full_rank, ct, missing),  # the check stays in gradients
    form=Routine("(r),()->(r)"),
    usual_case=lambda residuals, missing: (np.copy(residuals), none_holds(missing)),
)


# Ranks


SUPPORT = 1e3
"""How many times the limit for eigenvalues a point may lie outside of the space of the others, in SciPy."""


def smallest_eigenvalue(w: Any) -> Any:
    """Return up to which size eigenvalues of covariance matrices count as 0, as SciPy's distributions have it."""
    dtype = np.dtype(w.dtype)
    factor = {"f": 1e3}.get(dtype.char, 1e6) * np.finfo(dtype).eps
    return factor * np.max(np.abs(w), axis=-1, keepdims=True, initial=0)


def evaluate_in_support(a: Any, points: Any) -> Any:
    """Evaluate `in_support`: which rows lie in the space of those eigenvectors whose eigenvalues are not 0."""
    w, v = np.linalg.eigh(a)
    limit = smallest_eigenvalue(w)
    return np.linalg.norm(points @ (v * (w <= limit)[..., None, :]), axis=-1) < SUPPORT * limit


in_support = constant("in_support", evaluate_in_support, form=Routine("(n,n),(p,n)->(p)"))


def usual_rank(a: Any, *, tol: Any, hermitian: bool, rtol: Any) -> tuple[Any, None]:
    """Return how many singular values are large, as NumPy does."""
    s = np.abs(apply(eigvalsh, a, uplo="L")) if hermitian else apply(svdvals, a)
    if tol is not None:
        return np.sum(s > np.asarray(tol)[..., None], axis=-1), None
    share = max(a.shape[-2:]) * np.finfo(s.dtype).eps if rtol is None else np.asarray(rtol)[..., None]
    return np.sum(are_large(s, share), axis=-1), None


matrix_rank = constant(
    "matrix_rank",
    lambda a, *, tol, hermitian, rtol: np.linalg.matrix_rank(a, tol, hermitian, rtol=rtol),
    form=Routine("(m,n)->()"),
    usual_case=usual_rank,
)
