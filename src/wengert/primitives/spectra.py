"""Eigenvalues, singular values and their vectors.

Eigenvectors of one repeated eigenvalue may be turned into each other, so they have no derivatives of their own, and a
composed function of them has one only if it does not depend on how they were chosen. What is 0 / 0 then is 0 here:
vectors of one cluster do not turn into each other. For functions of eigenvalues, of separated eigenvectors, and of
the spaces that clusters span that is the derivative; where cotangents tell that there is none, or do not determine it,
it is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from wengert.core.declare import constant, opaque
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive
from wengert.core.routine import Routine
from wengert.core.tensor import is_concrete, raw
from wengert.errors import describe
from wengert.primitives.matrices import (
    adjoint,
    conj,
    diagonal_of,
    folded,
    hermitian_from,
    identity_of,
    on_diagonal,
    over_stacks,
)

Tangents = Sequence[Any]
MAX: Any = np.maximum.reduce
CLOSE = 64
"""Sorted eigenvalues are one with the next if they differ by at most this many roundings of the largest.

LAPACK's are exact for a matrix that differs by some roundings of its norm, so they move by as many (Weyl 1912), however
many there are: repeated eigenvalues came out up to 20 roundings apart, singular values up to 50, of up to 800 rows.
"""


# Gaps between eigenvalues


def smallest_gap(w: Any) -> Any:
    """Return by how much eigenvalues that are different differ at least, for each stack."""
    return rounding(w) * MAX(np.abs(w), -1, None, None, True, 0)


def rounding(w: Any) -> float:
    """Return by how much eigenvalues that are different differ at least, relative to the largest."""
    return EPSILON[w.dtype.char] * CLOSE


EPSILON = {kind: float(np.finfo(kind).eps) for kind in "fdFD"}


def ties(w: Any) -> Any:
    """Return of sorted eigenvalues which are one with the next; those that are not numbers are not."""
    return np.abs(w[..., 1:] - w[..., :-1]) <= smallest_gap(w)


def same_cluster(tied: Any, distinct: bool) -> Any:
    """Return which pairs of sorted eigenvalues are one, from which are one with the next, none if they are distinct."""
    if distinct:
        return identity_of(tied.shape[-1] + 1, "?")
    numbers = np.zeros((*tied.shape[:-1], tied.shape[-1] + 1), np.intp)
    np.cumsum(~tied, axis=-1, out=numbers[..., 1:])
    return numbers[..., None, :] == numbers[..., :, None]


def evaluate_divided(x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool) -> Any:
    """Evaluate `divided`: x_ij / (w_j + sign w_i), and 0 where eigenvalues are one; strictly, only 0 may be there."""
    if sign > 0:
        return over_all(x, w[..., None, :] + w[..., :, None], None if is_regular(w) else both_zero(w))
    if sensitivities:
        one = of_sensitive(w, *sensitivities)
    else:
        tied = ties(w)
        one = same_cluster(tied, not tied.any())
    if strict and np.any(np.abs(np.where(one, off_diagonal(x), 0)) > negligible(x)):
        raise undetermined("forward mode, where they would depend on the direction")
    return over_all(x, w[..., None, :] - w[..., :, None], one)


def over_all(x: Any, denominators: Any, one: Any) -> Any:
    """Return quotients, and 0 where eigenvalues are one."""
    if one is not None:
        np.copyto(denominators, np.inf, where=one)
    return np.divide(x, denominators)


def both_zero(s: Any) -> Any:
    """Return which pairs of singular values are zero."""
    return s[..., None, :] + s[..., :, None] <= smallest_gap(s)[..., None]


def of_sensitive(w: Any, sensitivities: Any) -> Any:
    """Return which pairs of eigenvalues in any order are one, from how far errors as large as the matrix move each."""
    most = np.maximum(sensitivities[..., None, :], sensitivities[..., :, None])
    return np.abs(w[..., None, :] - w[..., :, None]) <= rounding(w) * most


def off_diagonal(x: Any) -> Any:
    """Return matrices without their diagonals."""
    return x * (1 - np.eye(x.shape[-1], dtype=x.dtype))


def negligible(x: Any) -> Any:
    """Return up to which size elements of a matrix count as rounding errors."""
    return np.sqrt(np.finfo(x.dtype).eps) * np.max(np.abs(x), initial=0)


def undetermined(where: str) -> np.linalg.LinAlgError:
    """Return the error about vectors of repeated eigenvalues."""
    return np.linalg.LinAlgError(
        describe(
            "eigenvectors",
            f"a repeated eigenvalue (or singular value) in {where}",
            "a function that does not depend on the choice of eigenvectors is needed, in a form that shows it",
            "Use eigvalsh or svdvals for functions of the values alone, and expm, logm or sqrtm of "
            "wengert.scipy.linalg for functions of the matrix",
        )
    )


def vjp_divided(ct: Any, out: Any, _x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool) -> tuple[Any, ...]:
    """Divide again: the derivative of x / g by g is -(x / g) / g."""
    slopes = apply(divided, ct * out, w, *sensitivities, sign=sign, strict=False)
    slopes = slopes if w.dtype.kind == "c" else slopes.real
    ct_w = -(np.sum(slopes, axis=-2) + sign * np.sum(slopes, axis=-1))
    return apply(divided, ct, w, *sensitivities, sign=sign, strict=False), ct_w, *[None] * len(sensitivities)


def jvp_divided(tangents: Tangents, out: Any, _x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool) -> Any:
    """Divide again."""
    dx, dw = tangents[:2]
    change = dx
    if dw is not None:
        moved = out * (dw[..., None, :] + sign * dw[..., :, None])
        change = -moved if dx is None else dx - moved
    return apply(divided, change, w, *sensitivities, sign=sign, strict=False)


divided: Primitive = opaque(
    "divided", evaluate_divided, vjp=vjp_divided, jvp=jvp_divided, form=Routine("(n,n),(n)->(n,n)")
)


def over_gaps(x: Any, w: Any, strict: bool = False) -> Any:
    """Return x_ij / (w_j - w_i), and 0 where eigenvalues, which are sorted, are one."""
    return apply(divided, x, w, sign=-1, strict=strict)


def over_gaps_of(a: Any, v: Any, x: Any, w: Any) -> Any:
    """Return x_ij / (w_j - w_i) for eigenvalues of square matrices with these vectors; where they are one x must be 0.

    Rounding errors of a matrix change its eigenvalues by up to their condition numbers times as much (Golub and Van
    Loan, Matrix Computations, section 7.2.2).
    """
    return apply(divided, x, w, apply(sensitivity, a, v), sign=-1, strict=True)


def evaluate_sensitivity(a: Any, v: Any) -> Any:
    """Evaluate the norm times the condition numbers of eigenvalues: lengths of rows of V^-1, whose columns have one."""
    return np.linalg.norm(np.linalg.inv(v), axis=-1) * np.linalg.norm(a, axis=(-2, -1))[..., None]


sensitivity = constant("sensitivity_of_eigenvalues", evaluate_sensitivity, form=Routine("(n,n),(n,n)->(n)"))


def over_sums(x: Any, s: Any) -> Any:
    """Return x_ij / (s_i + s_j), and 0 where both are zero."""
    if type(x) is np.ndarray and type(s) is np.ndarray:
        return evaluate_divided(x, s, sign=1, strict=False)
    return apply(divided, x, s, sign=1, strict=False)


def evaluate_cluster_share(x: Any, g: Any, w: Any, *, values: str) -> Any:
    """Evaluate `cluster_share`: what of a gradient stands off the diagonal within clusters of eigenvalues.

    For a function of the matrix, V f(w) V^H, the cotangents of V and w are there X = V^H g_V = f(w) S and
    g = f'(w) diag(S) / 2, so the gradient, f'(w) S / 2, is X times the ratio of g and diag(X). Where there is no such
    ratio, or where functions of the values alone, whose g is one number within a cluster, would not be seen in it, the
    cotangents of one choice of eigenvectors do not determine the gradient. It is 0 where the values are "unused", and
    not known where the vectors serve "only" for the gradient of the values; else these are "used".
    """
    return over_stacks(functools.partial(one_cluster_share, values=values), (2, 1, 1), x, g, w)


def one_cluster_share(x: Any, g: Any, w: Any, values: str) -> Any:
    """Return the share for one matrix, whose eigenvalues are sorted."""
    found = np.zeros_like(x)
    limit = negligible(x)
    starts = np.flatnonzero(~ties(w)) + 1
    for cluster in np.split(np.arange(w.size), starts):
        block = x[np.ix_(cluster, cluster)]
        if np.all(np.abs(off_diagonal(block)) <= limit):
            if values == "used" and hides_function(g[cluster], block, limit, alone=cluster.size == w.size):
                raise undetermined(UNDETERMINED)
            continue
        if np.any(np.abs(off_diagonal(block - block.conj().T)) > limit):
            raise undetermined("a function that depends on which eigenvectors of it were chosen")
        if values == "only":
            raise undetermined("a second derivative of eigenvalues (or singular values)")
        if values == "used":
            found[np.ix_(cluster, cluster)] = off_diagonal(block) * ratio_of(g[cluster], np.diagonal(block).real, limit)
    return found


UNDETERMINED = "a function whose gradient the cotangents of these eigenvectors do not determine"


def hides_function(g: Any, block: Any, limit: float, alone: bool) -> bool:
    """Tell whether a cluster without cotangents of its vectors may be one where f(w) is 0 and f'(w) is not.

    Functions of the values alone have one cotangent for all of a cluster, and then vectors serve for other clusters.
    """
    if np.any(np.abs(block) > limit):
        return False
    return not is_constant(g) or (alone and g.size > 1 and bool(np.any(g)))


def is_constant(x: Any) -> bool:
    """Tell whether all elements are one number, but for rounding."""
    return bool(np.all(np.abs(x - x[:1]) <= negligible(x)))


def ratio_of(g: Any, own: Any, limit: float) -> Any:
    """Return the number that one vector is times another that is not constant; an error if there is none."""
    size = np.vdot(own, own)
    ratio = np.vdot(own, g) / max(size, limit**2)
    if size <= limit**2 or is_constant(own) or np.any(np.abs(g - ratio * own) > negligible(np.concatenate([g, own]))):
        raise undetermined(UNDETERMINED)
    return ratio


cluster_share = constant("cluster_share", evaluate_cluster_share, form=Routine("(n,n),(n),(n)->(n,n)"))


def are_distinct(w: Any) -> bool:
    """Tell whether sorted eigenvalues are known to be different."""
    if not is_concrete(w):
        return False
    return not ties(raw(w)).any()


def is_regular(s: Any) -> bool:
    """Tell whether singular values, in descending order, are known not to be zero."""
    if not is_concrete(s):
        return False
    values = raw(s)
    return bool((values[..., -1:] > rounding(values) * values[..., :1]).all())


def by_gaps(x: Any, w: Any) -> tuple[Any, bool]:
    """Return what `over_gaps` does, of arrays at once, and whether eigenvalues are known to be different."""
    if type(x) is not np.ndarray or type(w) is not np.ndarray:
        return over_gaps(x, w), are_distinct(w)
    tied = ties(w)
    distinct = not tied.any()
    return over_all(x, w[..., None, :] - w[..., :, None], same_cluster(tied, distinct)), distinct


def inner_gradient(x: Any, ct_w: Any, w: Any, of_values: bool) -> Any:
    """Return the Hermitian gradient in the basis of vectors whose turn has the gradient x, and that of their values.

    `of_values` says that the vectors are only there for the gradient of eigenvalues.
    """
    inner, distinct = by_gaps(x - adjoint(x), w)
    if ct_w is not None:
        inner = inner + on_diagonal(ct_w)
    if distinct:
        return inner
    role = "only" if of_values else "unused" if ct_w is None else "used"
    return inner + apply(cluster_share, x, np.zeros_like(w) if ct_w is None else ct_w, w, values=role)


# Hermitian matrices


def evaluate_eigh(a: Any, *, uplo: Literal["L", "U"], of_values: bool = False) -> Any:
    """Evaluate `numpy.linalg.eigh`."""
    return tuple(np.linalg.eigh(a, uplo))


def vjp_eigh(ct: Sequence[Any], out: Any, _a: Any, *, uplo: str, of_values: bool = False, **_options: Any) -> Any:
    """Return V (diag(g_w) + (X - X^H) / 2 / (w_j - w_i)) V^H for X = V^H g_V, on the triangle that is read.

    (M. B. Giles, An extended collection of matrix derivative results for forward and reverse mode AD, 2008, section
    3.1; for Hermitian matrices C. Boeddeker et al., On the computation of complex-valued gradients, 2017, section 4.)
    """
    (w, v), (ct_w, ct_v) = out, ct
    if ct_v is None:
        return None if ct_w is None else conj(folded((v * ct_w[..., None, :]) @ adjoint(v), uplo))
    inner = inner_gradient(adjoint(v) @ conj(ct_v) / 2, ct_w, w, of_values)
    return conj(folded(v @ inner @ adjoint(v), uplo))


def jvp_eigh(tangents: Tangents, out: Any, _a: Any, *, uplo: str, **_options: Any) -> tuple[Any, Any]:
    """For H = V^H dA V, the eigenvalues move by diag(H), and the vectors by V (H_ij / (w_j - w_i)) (Giles 2008)."""
    w, v = out
    turned = adjoint(v) @ hermitian_from(tangents[0], uplo) @ v
    return diagonal_of(turned).real, v @ over_gaps(turned, w, strict=True)


eigh = opaque(
    "eigh", evaluate_eigh, vjp=vjp_eigh, jvp=jvp_eigh, outputs=2, form=Routine("(n,n)->(n),(n,n)"), fresh=True
)


def evaluate_eigvalsh(a: Any, *, uplo: Literal["L", "U"]) -> Any:
    """Evaluate `numpy.linalg.eigvalsh`."""
    return np.linalg.eigvalsh(a, uplo)


def vjp_eigvalsh(ct: Any, _out: Any, a: Any, *, uplo: str, **_options: Any) -> Any:
    """Return V diag(g) V^H (Giles 2008), also where eigenvalues are repeated."""
    _, v = apply(eigh, a, uplo=uplo, of_values=True)
    return conj(folded((v * ct[..., None, :]) @ adjoint(v), uplo))


def jvp_eigvalsh(tangents: Tangents, _out: Any, a: Any, *, uplo: str, **_options: Any) -> Any:
    """Return the diagonal of V^H dA V."""
    _, v = apply(eigh, a, uplo=uplo, of_values=True)
    return np.sum(conj(v) * (hermitian_from(tangents[0], uplo) @ v), axis=-2).real


eigvalsh = opaque(
    "eigvalsh", evaluate_eigvalsh, vjp=vjp_eigvalsh, jvp=jvp_eigvalsh, form=Routine("(n,n)->(n)"), fresh=True
)


# Square matrices


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
    inner = None if ct_w is None else on_diagonal(conj(ct_w))
    if ct_v is not None:
        g, place = conj(ct_v), largest(v)
        along = np.sum(conj(g) * v, axis=-2, keepdims=True)
        pivot = np.sum(np.where(place, v, 0), axis=-2, keepdims=True)
        kept = g - along.real * v + np.where(place, 1j * along.imag / conj(pivot), 0)
        part = over_gaps_of(a, v, adjoint(v) @ kept, conj(w))
        inner = part if inner is None else inner + part
    return None if inner is None else conj(np.linalg.solve(adjoint(v), inner @ adjoint(v)))


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


def evaluate_eigvals(a: Any) -> Any:
    """Evaluate `numpy.linalg.eigvals` with complex results."""
    w = np.linalg.eigvals(a)
    return w.astype(np.result_type(w, np.complex64))


def vjp_eigvals(ct: Any, _out: Any, a: Any, **_options: Any) -> Any:
    """Return V^-H diag(g) V^H (Giles 2008)."""
    _, v = apply(eig, a)
    return conj(np.linalg.solve(adjoint(v), conj(ct)[..., None] * adjoint(v)))


def jvp_eigvals(tangents: Tangents, _out: Any, a: Any, **_options: Any) -> Any:
    """Return the diagonal of V^-1 dA V."""
    _, v = apply(eig, a)
    return diagonal_of(np.linalg.solve(v, tangents[0] @ v))


eigvals = opaque("eigvals", evaluate_eigvals, vjp=vjp_eigvals, jvp=jvp_eigvals, form=Routine("(n,n)->(n)"))


# Singular values


def evaluate_svd(a: Any, *, full_matrices: bool, of_values: bool = False) -> Any:
    """Evaluate `numpy.linalg.svd`."""
    return tuple(np.linalg.svd(a, full_matrices=full_matrices))


def nonzero(s: Any) -> Any:
    """Return singular values, and infinity where they are zero: what is divided by that is 0."""
    return s if is_regular(s) else np.where(s <= smallest_gap(s), np.inf, s)


def moving(ct_s: Any, s: Any) -> Any:
    """Return the cotangents (or tangents) of singular values, 0 where these are 0, as those of |x| are there."""
    return ct_s if is_regular(s) else np.where(s <= smallest_gap(s), 0, ct_s)


def outer_gradient(u: Any, g: Any, turned: Any, s: Any) -> Any:
    """Return how a gradient g by singular vectors changes them out of the space that those of s span.

    Where u has more columns than there are singular values, these follow: they stay orthogonal, and turn no further.
    """
    count = s.shape[-1]
    if u.shape[-1] == count:
        return (g[..., :count] - u @ turned) / nonzero(s)[..., None, :]
    first, rest = u[..., :count], u[..., count:]
    return rest @ (adjoint(rest) @ g[..., :count] - adjoint(g[..., count:]) @ first) / nonzero(s)[..., None, :]


def vjp_svd(ct: Sequence[Any], out: Any, a: Any, *, of_values: bool = False, **_options: Any) -> Any:
    """Return the gradient of A = U S V^H from those of its factors.

    With X = U^H g_U and Y = V^H g_V, (X + Y) / 2 belongs to the turn that both make, over s_j - s_i, and
    (X - Y) / 2 to that of U against V, over s_i + s_j, which has no singularity at repeated values. (Giles 2008,
    section 3.2; J. Townsend, Differentiating the singular value decomposition, 2016; Z.-Q. Wan and S.-X. Zhang,
    Automatic differentiation for complex valued SVD, 2019.)
    """
    (u, s, vh), (ct_u, ct_s, ct_vh) = out, ct
    count = s.shape[-1]
    v = adjoint(vh)
    first, last = u[..., :count], v[..., :count]
    if ct_s is not None:
        ct_s = moving(ct_s, s)
    if ct_u is None and ct_vh is None:
        return None if ct_s is None else conj((first * ct_s[..., None, :]) @ adjoint(last))
    g_u = np.zeros_like(u) if ct_u is None else conj(ct_u)
    g_v = np.zeros_like(v) if ct_vh is None else ct_vh.mT
    x, y = adjoint(first) @ g_u[..., :count], adjoint(last) @ g_v[..., :count]
    against = (x - y) / 2
    inner = inner_gradient((x + y) / 2, ct_s, s, of_values)
    found = first @ (inner + over_sums(against - adjoint(against), s))
    if a.shape[-2] > count:
        found = found + outer_gradient(u, g_u, x, s)
    found = found @ adjoint(last)
    if a.shape[-1] > count:
        found = found + first @ adjoint(outer_gradient(v, g_v, y, s))
    return conj(found)


def side(u: Any, inner: Any, change: Any, s: Any) -> Any:
    """Return the tangent of singular vectors from their turn among themselves and the change dA v (or dA^H u)."""
    count = s.shape[-1]
    first, rest = u[..., :count], u[..., count:]
    if u.shape[-2] == count:
        return first @ inner
    if u.shape[-1] == count:
        return first @ inner + (change - first @ (adjoint(first) @ change)) / nonzero(s)[..., None, :]
    turn = adjoint(rest) @ change / nonzero(s)[..., None, :]
    return np.concatenate([first @ inner + rest @ turn, -(first @ adjoint(turn))], axis=-1)


def jvp_svd(tangents: Tangents, out: Any, _a: Any, **_options: Any) -> tuple[Any, Any, Any]:
    """Turn both by (Q + Q^H) / (s_j - s_i) for Q = U^H dA V, and U against V by (Q - Q^H) / (s_i + s_j)."""
    (t,), (u, s, vh) = tangents, out
    count = s.shape[-1]
    v = adjoint(vh)
    right, left = t @ v[..., :count], adjoint(t) @ u[..., :count]
    turned = adjoint(u[..., :count]) @ right
    both = over_gaps(turned + adjoint(turned), s, strict=True) / 2
    against = over_sums(turned - adjoint(turned), s) / 2
    return (
        side(u, both + against, right, s),
        moving(diagonal_of(turned).real, s),
        adjoint(side(v, both - against, left, s)),
    )


svd = opaque(
    "svd", evaluate_svd, vjp=vjp_svd, jvp=jvp_svd, outputs=3, form=Routine("(m,n)->(m,k),(k),(k,n)"), fresh=True
)


def evaluate_svdvals(a: Any) -> Any:
    """Evaluate `numpy.linalg.svdvals`."""
    return np.linalg.svd(a, compute_uv=False)


def vjp_svdvals(ct: Any, out: Any, a: Any, **_options: Any) -> Any:
    """Return U diag(g) V^H (Giles 2008, section 3.2), also where singular values are repeated."""
    u, _, vh = apply(svd, a, full_matrices=False, of_values=True)
    return conj((u * moving(ct, out)[..., None, :]) @ vh)


def jvp_svdvals(tangents: Tangents, out: Any, a: Any, **_options: Any) -> Any:
    """Return the diagonal of U^H dA V."""
    u, _, vh = apply(svd, a, full_matrices=False, of_values=True)
    return moving(np.sum(conj(u) * (tangents[0] @ adjoint(vh)), axis=-2).real, out)


svdvals = opaque("svdvals", evaluate_svdvals, vjp=vjp_svdvals, jvp=jvp_svdvals, form=Routine("(m,n)->(k)"), fresh=True)
