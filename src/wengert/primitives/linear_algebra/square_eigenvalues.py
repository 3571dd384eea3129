"""Eigenvalues of square matrices, Hermitian or not, and their vectors: A V = V diag(w).

What has derivatives where eigenvalues are repeated is as for Hermitian matrices (`eigenvalues.py`), if there are
vectors enough; in second derivatives the tangents of a cluster tell what stands beside its diagonal, if they are not
all one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, opaque, variant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import (
    differences,
    divided,
    negligible,
    none_holds,
    of_sensitive,
    off_diagonal,
    refusal,
    rounding,
)
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    diagonal_of,
    matrix_error,
    of_scipy,
    on_diagonal,
)

Tangents = Sequence[Any]


DEFECTIVE = 1e6
"""The condition number from which on a repeated eigenvalue counts as one that has not vectors enough."""


def repeated_error(where: str) -> np.linalg.LinAlgError:
    """Return the error about repeated eigenvalues."""
    return matrix_error(
        "eig",
        f"a repeated eigenvalue of a square matrix in {where}",
        "separated eigenvalues are needed, or in first derivatives a function that is symmetric in the values",
        "Write a function of the matrix: trace, det, slogdet, matrix_power, or expm, logm or sqrtm of "
        "wengert.scipy.linalg; of a symmetric matrix use eigvalsh",
    )


def over_gaps_of(sizes: Any, x: Any, w: Any, strict: bool = False) -> Any:
    """Return x_ij / (w_j - w_i) for eigenvalues of square matrices, and 0 where they are one; strictly, x must be 0.

    Rounding errors of a matrix change its eigenvalues by up to their condition numbers times as much (Golub and Van
    Loan, Matrix Computations, section 7.2.2): by these sizes.
    """
    return apply(divided, x, w, sizes, sign=-1, strict=strict)


def conditions(v: Any) -> Any:
    """Return the condition numbers of eigenvalues: lengths of rows of V^-1, whose columns have length one."""
    try:
        return np.linalg.norm(np.linalg.inv(v), axis=-1)
    except np.linalg.LinAlgError as error:
        raise repeated_error("a matrix that has not vectors enough") from error


def evaluate_sensitivity(a: Any, v: Any) -> Any:
    """Evaluate the norm of matrices times the condition numbers of their eigenvalues."""
    return conditions(v) * np.linalg.norm(a, axis=(-2, -1))[..., None]


def usual_sensitivity(a: Any, v: Any) -> tuple[Any, Any]:
    """Return what `evaluate_sensitivity` does where there is an inverse, which fails else."""
    squares = np.sum(np.abs(a) ** 2, axis=(-2, -1))[..., None]
    return np.sqrt(np.sum(np.abs(np.linalg.inv(v)) ** 2, axis=-1) * squares), None


sensitivity = constant(
    "sensitivity_of_eigenvalues",
    evaluate_sensitivity,
    form=Routine("(n,n),(n,n)->(n)"),
    usual_case=usual_sensitivity,
)


def own_pairs(w: Any) -> Any:
    """Return which pairs of different eigenvalues are one by their own size."""
    size = np.abs(w)
    close = np.abs(differences(w)) <= rounding(w) * np.maximum(size[..., None, :], size[..., :, None])
    return close & ~np.eye(w.shape[-1], dtype=bool)


def require_vectors(w: Any, v: Any) -> Any:
    """Refuse repeated eigenvalues that have not vectors enough; return which pairs are one."""
    pairs = own_pairs(w)
    if pairs.any() and np.any(pairs & (conditions(v) > DEFECTIVE)[..., None]):
        raise repeated_error("a matrix that has not vectors enough")
    return pairs


def mix_pairs(x: Any, y: Any, w: Any, sensitivities: Any) -> Any:
    """Tell where x_ij y_ij is not 0 for a pair of eigenvalues that are one."""
    limit = negligible(x) * np.max(np.abs(y), axis=(-2, -1), keepdims=True, initial=0)
    return of_sensitive(w, sensitivities) & (np.abs(off_diagonal(x * y)) > limit)


one_by_one = refusal("one_by_one", mix_pairs, repeated_error, "(n,n),(n,n),(n),(n)->(n,n)")


def separate(x: Any, w: Any, sizes: Any, where: str) -> Any:
    """Return matrices in the basis of eigenvectors, which must be diagonal for eigenvalues that are one."""
    return x + apply(one_by_one, x, np.ones_like(x), w, sizes, where=where)


def evaluate_share_of_pairs(h: Any, dg: Any, w: Any, sensitivities: Any) -> Any:
    """Evaluate `share_of_pairs`: what stands beside the diagonal of how diag(g) changes, for pairs that are one.

    For a symmetric function that is a multiple of h, plus one of the identity: the tangents of g, which are the
    diagonal, tell which, unless those of the eigenvalues are one number.
    """
    one = of_sensitive(w, sensitivities) & (np.abs(off_diagonal(h)) > negligible(h))
    apart, changes = -differences(diagonal_of(h)), -differences(dg)
    together = one & (np.abs(apart) <= negligible(h))
    if together.any():
        raise repeated_error("a second derivative")
    return np.where(one, h * changes, 0) / np.where(one, apart, 1)


def usual_share_of_pairs(h: Any, dg: Any, w: Any, sensitivities: Any) -> tuple[Any, Any]:
    """Return zeros, where nothing stands beside the diagonal for pairs that are one."""
    one = of_sensitive(w, sensitivities) & (np.abs(off_diagonal(h)) > negligible(h))
    return np.zeros((), h.dtype), none_holds(one)


THIRD = "a third derivative"
share_of_pairs = opaque(
    "share_of_pairs",
    evaluate_share_of_pairs,
    vjp=[
        lambda ct, aval, out, _h, _dg, w, sizes: unbroadcast(
            apply(one_by_one, ct, out, w, sizes, where=THIRD), aval.shape
        ),
        None,
        None,
        None,
    ],
    jvp=lambda _tangents, out, _h, _dg, w, sensitivities: apply(
        one_by_one, out, np.ones_like(out), w, sensitivities, where=THIRD
    ),
    form=Routine("(n,n),(n),(n),(n)->(n,n)"),
    usual_case=usual_share_of_pairs,
)


def eigenvectors_of_square(a: Any) -> tuple[Any, Any, Any]:
    """Return eigenvalues of square matrices, their vectors, and how far errors as large as the matrices move them."""
    w, v = apply(eig, a)
    return w, v, apply(sensitivity, a, v)


def transposed_from_basis(v: Any, x: Any) -> Any:
    """Return (V X V^-1)^T."""
    return np.linalg.solve(v.mT, x.mT @ v.mT)


def evaluate_eig(a: Any) -> Any:
    """Evaluate `numpy.linalg.eig` with complex results, whatever the eigenvalues are."""
    w, v = np.linalg.eig(a)
    kind = np.result_type(w, np.complex64)
    return w.astype(kind), v.astype(kind)


def largest(v: Any) -> Any:
    """Return ones where the eigenvectors, as columns, have their largest elements, which LAPACK makes real."""
    if not v.size:
        return np.zeros(v.shape, bool)
    rows = np.argmax(np.abs(v), axis=-2)
    return np.arange(v.shape[-2])[:, None] == rows[..., None, :]


def vjp_eig(ct: Sequence[Any], out: Any, a: Any, **_options: Any) -> Any:
    """Return V^-H (diag(g_w) + V^H h / conj(w_j - w_i)) V^H, where h is what of g_V keeps lengths and phases.

    The columns have length one, and their largest elements are real. (Boeddeker et al. 2017, equations 4.77 and
    4.78; Giles 2008, section 3.1.)
    """
    (w, v), (ct_w, ct_v) = out, ct
    values = None if ct_w is None else apply(by_square_eigenvalues, ct_w, a, alone=ct_v is None)
    if ct_v is None:
        return values
    g, place = conj(ct_v), largest(v)
    along = np.sum(conj(g) * v, axis=-2, keepdims=True)
    pivot = np.sum(np.where(place, v, 0), axis=-2, keepdims=True)
    kept = g - along.real * v + np.where(place, 1j * along.imag / conj(pivot), 0)
    part = over_gaps_of(apply(sensitivity, a, v), adjoint(v) @ kept, conj(w), strict=True)
    found = conj(np.linalg.solve(adjoint(v), part @ adjoint(v)))
    return found if values is None else found + values


def jvp_eig(tangents: Tangents, out: Any, a: Any, **_options: Any) -> tuple[Any, Any]:
    """For P = V^-1 dA V, the eigenvalues move by diag(P), the vectors by V (P_ij / (w_j - w_i)) less what lengthens."""
    w, v = out
    turned = np.linalg.solve(v, tangents[0] @ v)
    free, place = v @ over_gaps_of(apply(sensitivity, a, v), turned, w, strict=True), largest(v)
    pivot = np.sum(np.where(place, v, 0), axis=-2, keepdims=True)
    moved = np.sum(np.where(place, free, 0), axis=-2, keepdims=True)
    length = np.sum(conj(v) * free, axis=-2, keepdims=True).real
    return diagonal_of(turned), free - v * (length + 1j * (moved / pivot).imag)


eig = opaque(
    "eig",
    evaluate_eig,
    vjp=vjp_eig,
    jvp=jvp_eig,
    outputs=2,
    form=Routine("(n,n)->(n),(n,n)"),
    routine=lambda: RoutineCall("eig", (), {"finite": 1}),
    cost=30 * OF_ELIMINATION,
)


def evaluate_eigvals(a: Any) -> Any:
    """Evaluate `numpy.linalg.eigvals` with complex results."""
    w = np.linalg.eigvals(a)
    return w.astype(np.result_type(w, np.complex64))


def evaluate_by_square(g: Any, a: Any, *, alone: bool) -> Any:
    """Evaluate `by_square_eigenvalues`: (V diag(g) V^-1)^T.

    That does not depend on V if g is the same for all of a repeated eigenvalue. If the vectors are used, too, and all
    are of one, g may be that of a function of the matrix, whose derivative is not in the cotangents.
    """
    w, v = evaluate_eig(a)
    pairs, size = require_vectors(w, v), np.abs(g)[..., None, :]
    if not alone:
        pairs = of_sensitive(w, evaluate_sensitivity(a, v)) & ~np.eye(w.shape[-1], dtype=bool)
        size = np.max(size, axis=-1, keepdims=True, initial=0)
    if pairs.any():
        differ = pairs & (np.abs(differences(g)) > np.sqrt(np.finfo(w.dtype).eps) * size)
        whole = (pairs.sum(axis=(-2, -1)) == w.shape[-1] * (w.shape[-1] - 1)) & np.any(g != 0, axis=-1)
        if differ.any() or (not alone and whole.any()):
            raise repeated_error("reverse mode, in a function that its cotangents do not determine")
    return np.linalg.solve(v.mT, g[..., None] * v.mT)


def usual_by_square(g: Any, a: Any, *, alone: bool) -> tuple[Any, Any]:
    """Return (V diag(g) V^-1)^T, where eigenvalues are apart."""
    w, v, sizes = eigenvectors_of_square(a)
    pairs = own_pairs(w) if alone else of_sensitive(w, sizes) & ~np.eye(w.shape[-1], dtype=bool)
    return np.linalg.solve(v.mT, g[..., None] * v.mT), none_holds(pairs)


def vjp_by_square(ct: Any, _out: Any, g: Any, a: Any, *, alone: bool) -> tuple[Any, Any]:
    """Return the diagonal of X = V^-1 ct V, and (V (X_ij (g_j - g_i) / (w_j - w_i)) V^-1)^T."""
    w, v, sizes = eigenvectors_of_square(a)
    x = separate(np.linalg.solve(v, ct @ v), w, sizes, "reverse mode over reverse mode")
    found = transposed_from_basis(v, over_gaps_of(sizes, x * differences(g), w))
    return unbroadcast(diagonal_of(x), g.shape), unbroadcast(found, a.shape)


def jvp_by_square(tangents: Tangents, _out: Any, g: Any, a: Any, *, alone: bool) -> Any:
    """Return (V (H_ij (g_j - g_i) / (w_j - w_i) + diag(dg)) V^-1)^T for H = V^-1 dA V."""
    dg, da = tangents
    if da is None:
        return apply(by_square_eigenvalues, dg, a, alone=alone)
    w, v, sizes = eigenvectors_of_square(a)
    h = np.linalg.solve(v, da @ v)
    inner = over_gaps_of(sizes, h * differences(g), w)
    inner = inner + apply(one_by_one, h, differences(g), w, sizes, where="a second derivative")
    if dg is not None:
        inner = inner + on_diagonal(dg) + apply(share_of_pairs, h, dg, w, sizes)
    return transposed_from_basis(v, inner)


by_square_eigenvalues: Primitive = opaque(
    "by_square_eigenvalues",
    evaluate_by_square,
    vjp=vjp_by_square,
    jvp=jvp_by_square,
    form=Routine("(n),(n,n)->(n,n)"),
    usual_case=usual_by_square,
)


def evaluate_along_square(t: Any, a: Any) -> Any:
    """Evaluate `along_square`: the diagonal of V^-1 T V."""
    w, v = evaluate_eig(a)
    require_vectors(w, v)
    return diagonal_of(np.linalg.solve(v, t @ v))


def usual_along_square(t: Any, a: Any) -> tuple[Any, Any]:
    """Return the diagonal of V^-1 T V, where eigenvalues are apart."""
    w, v = apply(eig, a)
    return diagonal_of(np.linalg.solve(v, t @ v)), none_holds(own_pairs(w))


def vjp_along_square(ct: Any, _out: Any, t: Any, a: Any) -> tuple[Any, Any]:
    """Return (V diag(ct) V^-1)^T, and how that changes along T."""
    w, v, sizes = eigenvectors_of_square(a)
    h = np.linalg.solve(v, t @ v)
    inner = over_gaps_of(sizes, h * differences(ct), w)
    inner = inner + apply(one_by_one, h, np.ones_like(h), w, sizes, where="reverse mode over forward mode")
    by_t = apply(by_square_eigenvalues, ct, a, alone=True)
    return unbroadcast(by_t, t.shape), unbroadcast(transposed_from_basis(v, inner), a.shape)


def jvp_along_square(tangents: Tangents, out: Any, t: Any, a: Any) -> Any:
    """Return the diagonal of V^-1 dT V, and that of H K - K H with the turn K_ij / (w_j - w_i) along dA."""
    dt, da = tangents
    found = np.zeros_like(out) if dt is None else apply(along_square, dt, a)
    if da is None:
        return found
    w, v, sizes = eigenvectors_of_square(a)
    h, k = (separate(np.linalg.solve(v, x @ v), w, sizes, "forward mode over forward mode") for x in (t, da))
    turn = over_gaps_of(sizes, k, w)
    return found + diagonal_of(h @ turn - turn @ h)


along_square: Primitive = opaque(
    "along_square",
    evaluate_along_square,
    vjp=vjp_along_square,
    jvp=jvp_along_square,
    form=Routine("(n,n),(n,n)->(n)"),
    usual_case=usual_along_square,
)


# the gradient is V^-H diag(g) V^H, the tangent the diagonal of V^-1 dA V (Giles 2008)
eigvals = opaque(
    "eigvals",
    evaluate_eigvals,
    vjp=lambda ct, _out, a, **_options: apply(by_square_eigenvalues, ct, a, alone=True),
    jvp=lambda tangents, _out, a, **_options: apply(along_square, tangents[0], a),
    form=Routine("(n,n)->(n)"),
    routine=lambda: RoutineCall("eigvals", (), {"finite": 1}),
    cost=15 * OF_ELIMINATION,
)


def complex_vectors(linalg: Any, a: Any, **check: Any) -> Any:
    """Return what `scipy.linalg.eig` does of one matrix, with complex vectors, whatever the eigenvalues are."""
    w, v = linalg.eig(a, **check)
    return w, v.astype(w.dtype)


scipy_eig = variant(
    eig,
    "scipy_eig",
    of_scipy(complex_vectors, 2),
    routine=lambda *, check_finite=False: RoutineCall("eig", (), {"finite": 1}),
)
scipy_eigvals = variant(
    eigvals,
    "scipy_eigvals",
    of_scipy(lambda linalg, a, **check: linalg.eigvals(a, **check), 2),
    routine=lambda *, check_finite=False: RoutineCall("eigvals", (), {"finite": 1}),
)
