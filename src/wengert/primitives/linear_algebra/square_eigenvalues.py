"""Eigenvalues and eigenvectors of square matrices A V = V diag(w).

Those of one repeated eigenvalue may be replaced by any of their combinations. A function of the values alone has a
derivative there if it is symmetric in these, and there are vectors enough; in second derivatives the tangents of the
cluster tell what stands beside its diagonal, if they are not all one. Anything else is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.errors import describe
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import divided, negligible, of_sensitive, off_diagonal, rounding
from wengert.primitives.linear_algebra.matrices import adjoint, diagonal_of, on_diagonal

Tangents = Sequence[Any]
DEFECTIVE = 1e6
"""The condition number from which on a repeated eigenvalue counts as one that has not vectors enough."""


def repeated(where: str) -> np.linalg.LinAlgError:
    """Return the error about repeated eigenvalues."""
    return np.linalg.LinAlgError(
        describe(
            "eig",
            f"a repeated eigenvalue of a square matrix in {where}",
            "separated eigenvalues are needed, or in first derivatives a function that is symmetric in the values",
            "Write a function of the matrix: trace, det, slogdet, matrix_power, or expm, logm or sqrtm of "
            "wengert.scipy.linalg; of a symmetric matrix use eigvalsh",
        )
    )


# Which eigenvalues are one


def differences(g: Any) -> Any:
    """Return g_j - g_i."""
    return g[..., None, :] - g[..., :, None]


def over_gaps_of(a: Any, v: Any, x: Any, w: Any, strict: bool = True) -> Any:
    """Return x_ij / (w_j - w_i) for eigenvalues of square matrices with these vectors; where they are one x must be 0.

    Rounding errors of a matrix change its eigenvalues by up to their condition numbers times as much (Golub and Van
    Loan, Matrix Computations, section 7.2.2).
    """
    return apply(divided, x, w, apply(sensitivity, a, v), sign=-1, strict=strict)


def conditions(v: Any) -> Any:
    """Return the condition numbers of eigenvalues: lengths of rows of V^-1, whose columns have length one."""
    try:
        return np.linalg.norm(np.linalg.inv(v), axis=-1)
    except np.linalg.LinAlgError as error:
        raise repeated("a matrix that has not vectors enough") from error


def evaluate_sensitivity(a: Any, v: Any) -> Any:
    """Evaluate the norm of matrices times the condition numbers of their eigenvalues."""
    return conditions(v) * np.linalg.norm(a, axis=(-2, -1))[..., None]


sensitivity = constant("sensitivity_of_eigenvalues", evaluate_sensitivity, form=Routine("(n,n),(n,n)->(n)"))


def own_pairs(w: Any) -> Any:
    """Return which pairs of different eigenvalues are one by their own size."""
    size = np.abs(w)
    close = np.abs(differences(w)) <= rounding(w) * np.maximum(size[..., None, :], size[..., :, None])
    return close & ~np.eye(w.shape[-1], dtype=bool)


def require_vectors(w: Any, v: Any) -> Any:
    """Refuse repeated eigenvalues that have not vectors enough; return which pairs are one."""
    pairs = own_pairs(w)
    if pairs.any() and np.any(pairs & (conditions(v) > DEFECTIVE)[..., None]):
        raise repeated("a matrix that has not vectors enough")
    return pairs


def evaluate_one_by_one(x: Any, y: Any, w: Any, sensitivities: Any, *, where: str) -> Any:
    """Evaluate `one_by_one`: zeros; an error if x_ij y_ij is not 0 for a pair of eigenvalues that are one."""
    limit = negligible(x) * np.max(np.abs(y), axis=(-2, -1), keepdims=True, initial=0)
    wrong = of_sensitive(w, sensitivities) & (np.abs(off_diagonal(x * y)) > limit)
    if wrong.any():
        raise repeated(where)
    return np.zeros(wrong.shape, x.dtype)


one_by_one = constant("one_by_one", evaluate_one_by_one, form=Routine("(n,n),(n,n),(n),(n)->(n,n)"))


def evaluate_share_of_pairs(h: Any, dg: Any, w: Any, sensitivities: Any) -> Any:
    """Evaluate `share_of_pairs`: what stands beside the diagonal of how diag(g) changes, for pairs that are one.

    For a symmetric function that is a multiple of h, plus one of the identity: the tangents of g, which are the
    diagonal, tell which, unless those of the eigenvalues are one number.
    """
    one = of_sensitive(w, sensitivities) & (np.abs(off_diagonal(h)) > negligible(h))
    apart, changes = -differences(diagonal_of(h)), -differences(dg)
    together = one & (np.abs(apart) <= negligible(h))
    if together.any():
        raise repeated("a second derivative")
    return np.where(one, h * changes, 0) / np.where(one, apart, 1)


def refused_cotangent(ct: Any, out: Any, h: Any, _dg: Any, w: Any, sensitivities: Any) -> Any:
    """Refuse cotangents of what pairs share."""
    return unbroadcast(apply(one_by_one, ct, out, w, sensitivities, where=THIRD), h.shape), None, None, None


def refused_tangent(_tangents: Tangents, out: Any, _h: Any, _dg: Any, w: Any, sensitivities: Any) -> Any:
    """Refuse tangents of what pairs share."""
    return apply(one_by_one, out, np.ones_like(out), w, sensitivities, where=THIRD)


THIRD = "a third derivative"
share_of_pairs = opaque(
    "share_of_pairs",
    evaluate_share_of_pairs,
    vjp=refused_cotangent,
    jvp=refused_tangent,
    form=Routine("(n,n),(n),(n),(n)->(n,n)"),
)


# Both


def evaluate_eig(a: Any) -> Any:
    """Evaluate `numpy.linalg.eig` with complex results, whatever the eigenvalues are."""
    w, v = np.linalg.eig(a)
    kind = np.result_type(w, np.complex64)
    return w.astype(kind), v.astype(kind)


def largest(v: Any) -> Any:
    """Return ones where the eigenvectors, as columns, have their largest elements, which LAPACK makes real."""
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
    part = over_gaps_of(a, v, adjoint(v) @ kept, conj(w))
    found = conj(np.linalg.solve(adjoint(v), part @ adjoint(v)))
    return found if values is None else found + values


def jvp_eig(tangents: Tangents, out: Any, a: Any, **_options: Any) -> tuple[Any, Any]:
    """For P = V^-1 dA V, the eigenvalues move by diag(P), the vectors by V (P_ij / (w_j - w_i)) less what lengthens."""
    w, v = out
    turned = np.linalg.solve(v, tangents[0] @ v)
    free, place = v @ over_gaps_of(a, v, turned, w), largest(v)
    pivot = np.sum(np.where(place, v, 0), axis=-2, keepdims=True)
    moved = np.sum(np.where(place, free, 0), axis=-2, keepdims=True)
    length = np.sum(conj(v) * free, axis=-2, keepdims=True).real
    return diagonal_of(turned), free - v * (length + 1j * (moved / pivot).imag)


eig = opaque("eig", evaluate_eig, vjp=vjp_eig, jvp=jvp_eig, outputs=2, form=Routine("(n,n)->(n),(n,n)"))


# Values alone


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
            raise repeated("reverse mode, in a function that its cotangents do not determine")
    return np.linalg.solve(v.mT, g[..., None] * v.mT)


def vjp_by_square(ct: Any, _out: Any, g: Any, a: Any, *, alone: bool) -> tuple[Any, Any]:
    """Return the diagonal of X = V^-1 ct V, and (V (X_ij (g_j - g_i) / (w_j - w_i)) V^-1)^T."""
    w, v = apply(eig, a)
    x, sizes = np.linalg.solve(v, ct @ v), apply(sensitivity, a, v)
    x = x + apply(one_by_one, x, np.ones_like(x), w, sizes, where="reverse mode over reverse mode")
    turning = over_gaps_of(a, v, x * differences(g), w, strict=False)
    found = np.linalg.solve(v.mT, turning.mT @ v.mT)
    return unbroadcast(diagonal_of(x), g.shape), unbroadcast(found, a.shape)


def jvp_by_square(tangents: Tangents, _out: Any, g: Any, a: Any, *, alone: bool) -> Any:
    """Return (V (H_ij (g_j - g_i) / (w_j - w_i) + diag(dg)) V^-1)^T for H = V^-1 dA V."""
    dg, da = tangents
    if da is None:
        return apply(by_square_eigenvalues, dg, a, alone=alone)
    w, v = apply(eig, a)
    h, sizes = np.linalg.solve(v, da @ v), apply(sensitivity, a, v)
    inner = over_gaps_of(a, v, h * differences(g), w, strict=False)
    inner = inner + apply(one_by_one, h, differences(g), w, sizes, where="a second derivative")
    if dg is not None:
        inner = inner + on_diagonal(dg) + apply(share_of_pairs, h, dg, w, sizes)
    return np.linalg.solve(v.mT, inner.mT @ v.mT)


by_square_eigenvalues: Primitive = opaque(
    "by_square_eigenvalues",
    evaluate_by_square,
    vjp=vjp_by_square,
    jvp=jvp_by_square,
    form=Routine("(n),(n,n)->(n,n)"),
)


def vjp_eigvals(ct: Any, _out: Any, a: Any, **_options: Any) -> Any:
    """Return V^-H diag(g) V^H (Giles 2008)."""
    return apply(by_square_eigenvalues, ct, a, alone=True)


def evaluate_along_square(t: Any, a: Any) -> Any:
    """Evaluate `along_square`: the diagonal of V^-1 T V."""
    w, v = evaluate_eig(a)
    require_vectors(w, v)
    return diagonal_of(np.linalg.solve(v, t @ v))


def vjp_along_square(ct: Any, _out: Any, t: Any, a: Any) -> tuple[Any, Any]:
    """Return (V diag(ct) V^-1)^T, and how that changes along T."""
    w, v = apply(eig, a)
    h, sizes = np.linalg.solve(v, t @ v), apply(sensitivity, a, v)
    inner = over_gaps_of(a, v, h * differences(ct), w, strict=False)
    inner = inner + apply(one_by_one, h, np.ones_like(h), w, sizes, where="reverse mode over forward mode")
    by_t = apply(by_square_eigenvalues, ct, a, alone=True)
    return unbroadcast(by_t, t.shape), unbroadcast(np.linalg.solve(v.mT, inner.mT @ v.mT), a.shape)


def jvp_along_square(tangents: Tangents, out: Any, t: Any, a: Any) -> Any:
    """Return the diagonal of V^-1 dT V, and that of H K - K H with the turn K_ij / (w_j - w_i) along dA."""
    dt, da = tangents
    found = np.zeros_like(out) if dt is None else apply(along_square, dt, a)
    if da is None:
        return found
    w, v = apply(eig, a)
    sizes, both = apply(sensitivity, a, v), "forward mode over forward mode"
    h, k = (np.linalg.solve(v, x @ v) for x in (t, da))
    ones = np.ones_like(h)
    turn = over_gaps_of(a, v, k + apply(one_by_one, k, ones, w, sizes, where=both), w, strict=False)
    h = h + apply(one_by_one, h, ones, w, sizes, where=both)
    return found + diagonal_of(h @ turn - turn @ h)


along_square: Primitive = opaque(
    "along_square",
    evaluate_along_square,
    vjp=vjp_along_square,
    jvp=jvp_along_square,
    form=Routine("(n,n),(n,n)->(n)"),
)


def jvp_eigvals(tangents: Tangents, _out: Any, a: Any, **_options: Any) -> Any:
    """Return the diagonal of V^-1 dA V."""
    return apply(along_square, tangents[0], a)


eigvals = opaque("eigvals", evaluate_eigvals, vjp=vjp_eigvals, jvp=jvp_eigvals, form=Routine("(n,n)->(n)"))
