"""Clusters of eigenvalues, or singular values, that are one but for rounding, and quotients by gaps between them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.tensor import is_concrete, raw
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.matrices import (
    adjoint,
    diagonal_of,
    identity_of,
    matrix_error,
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


def differences(g: Any) -> Any:
    """Return g_j - g_i."""
    return g[..., None, :] - g[..., :, None]


def sums_of(g: Any) -> Any:
    """Return g_j + g_i."""
    return g[..., None, :] + g[..., :, None]


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


def none_holds(truths: Any) -> Any:
    """Return whether none of some truths holds, in the usual case; None if there are none."""
    return None if 0 in truths.shape else ~np.any(truths)


def same_cluster(tied: Any, distinct: bool) -> Any:
    """Return which pairs of sorted eigenvalues are one, from which are one with the next, none if they are distinct."""
    if distinct:
        return identity_of(tied.shape[-1] + 1, "?")
    numbers = np.zeros((*tied.shape[:-1], tied.shape[-1] + 1), np.intp)
    np.cumsum(~tied, axis=-1, out=numbers[..., 1:])
    return numbers[..., None, :] == numbers[..., :, None]


def evaluate_divided(x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool, of_values: bool = False) -> Any:
    """Evaluate `divided`: x_ij / (w_j + sign w_i), and 0 where eigenvalues are one; strictly, only 0 may be there."""
    if sign > 0:
        return over_all(x, sums_of(w), None if is_regular(w) else both_zero(w))
    if sensitivities:
        one = of_sensitive(w, *sensitivities)
    else:
        tied = ties(w)
        one = same_cluster(tied, not tied.any())
    if strict and np.any(np.abs(np.where(one, off_diagonal(x), 0)) > negligible(x)):
        raise (
            unsettled_error(OTHER_ORDERS)
            if of_values
            else undetermined_error("forward mode, where they would depend on the direction")
        )
    return over_all(x, differences(w), one)


def usually_divided(
    x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool, of_values: bool = False
) -> tuple[Any, Any]:
    """Return quotients where eigenvalues that are sorted are apart, and what tells that they are."""
    holds = None
    if sign > 0:
        one, denominators = both_zero(w), sums_of(w)
    elif sensitivities:
        one, denominators = of_sensitive(w, *sensitivities), differences(w)
        if strict:
            holds = ~np.any(np.abs(np.where(one, off_diagonal(x), 0)) > negligible(x))
    else:
        one, denominators, holds = np.eye(w.shape[-1], dtype=bool), differences(w), none_holds(ties(w))
    return x * ~one / np.where(one, 1, denominators), holds


def over_all(x: Any, denominators: Any, one: Any) -> Any:
    """Return quotients, and 0 where eigenvalues are one."""
    if one is not None:
        np.copyto(denominators, np.inf, where=one)
    return np.divide(x, denominators)


def both_zero(s: Any) -> Any:
    """Return which pairs of singular values are zero."""
    return sums_of(s) <= smallest_gap(s)[..., None]


def of_sensitive(w: Any, sensitivities: Any) -> Any:
    """Return which pairs of eigenvalues in any order are one, from how far errors as large as the matrix move each."""
    most = np.maximum(sensitivities[..., None, :], sensitivities[..., :, None])
    return np.abs(differences(w)) <= rounding(w) * most


def off_diagonal(x: Any) -> Any:
    """Return matrices without their diagonals."""
    return x * (1 - np.eye(x.shape[-1], dtype=x.dtype))


def negligible(x: Any) -> Any:
    """Return up to which size elements of a vector, or of each matrix, count as rounding errors."""
    axes = (-2, -1) if x.ndim > 1 else -1
    return np.sqrt(np.finfo(x.dtype).eps) * np.max(np.abs(x), axis=axes, keepdims=x.ndim > 1, initial=0)


def refusal(
    name: str, wrong: Callable[..., Any], error: Callable[..., Exception], signature: str, sorted_at: int | None = None
) -> Primitive:
    """Declare what gives zeros like its first operand, after an error where `wrong` tells of an element that it is.

    If an operand, `sorted_at` a place, is sorted eigenvalues, nothing is wrong where these are apart.
    """

    def evaluate(x: Any, *operands: Any, **options: Any) -> Any:
        found = wrong(x, *operands)
        if found.any():
            raise error(**options)
        return np.zeros(found.shape, x.dtype)

    def usual(x: Any, *operands: Any, **_options: Any) -> tuple[Any, Any]:
        truths = wrong(x, *operands) if sorted_at is None else ties((x, *operands)[sorted_at])
        return np.zeros((), x.dtype), none_holds(truths)

    return constant(name, evaluate, form=Routine(signature), usual_case=usual)


def clusters_of(w: Any) -> list[Any]:
    """Return the places of each cluster of sorted eigenvalues of one matrix."""
    return np.split(np.arange(w.size), np.flatnonzero(~ties(w)) + 1)


def undetermined_error(where: str) -> np.linalg.LinAlgError:
    """Return the error about vectors of repeated eigenvalues."""
    return matrix_error(
        "eigenvectors",
        f"a repeated eigenvalue (or singular value) in {where}",
        "a function that does not depend on the choice of eigenvectors is needed, in a form that shows it",
        "Use eigvalsh or svdvals for functions of the values alone, and expm, logm or sqrtm of "
        "wengert.scipy.linalg for functions of the matrix",
    )


def unequal_error(where: str) -> np.linalg.LinAlgError:
    """Return the error about single ones of repeated eigenvalues, which have no derivatives."""
    return matrix_error(
        "eigenvalues",
        f"cotangents that differ between those of one repeated eigenvalue (or singular value) in {where}",
        "a function that is symmetric in these is needed, for they have no derivatives one by one, and a second "
        "derivative in forward mode over reverse mode",
        "Use all of them alike, as by their sum, and wengert.hessian, or wengert.jvp of wengert.grad, for second "
        "derivatives",
    )


OTHER_ORDERS = "a third derivative, or a second one in another order of modes"


def unsettled_error(where: str) -> np.linalg.LinAlgError:
    """Return the error about directions that turn the vectors of repeated eigenvalues, or of singular values 0."""
    return matrix_error(
        "eigenvalues",
        f"a repeated eigenvalue (or singular value), or a singular value 0, in {where}",
        "a second derivative in forward mode over reverse mode is needed there",
        "Use wengert.hessian, or wengert.jvp of wengert.grad, or write a function of the matrix: trace, slogdet, "
        "or expm, logm or sqrtm of wengert.scipy.linalg",
    )


def vjp_divided(
    ct: Any, out: Any, _x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool, of_values: bool = False
) -> tuple[Any, ...]:
    """Divide again: the derivative of x / g by g is -(x / g) / g."""
    slopes = apply(divided, ct * out, w, *sensitivities, sign=sign, strict=False)
    slopes = slopes if w.dtype.kind == "c" else slopes.real
    ct_w = -(np.sum(slopes, axis=-2) + sign * np.sum(slopes, axis=-1))
    return apply(divided, ct, w, *sensitivities, sign=sign, strict=False), ct_w, *[None] * len(sensitivities)


def jvp_divided(
    tangents: Tangents, out: Any, _x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool, of_values: bool = False
) -> Any:
    """Divide again."""
    dx, dw = tangents[:2]
    change = dx
    if dw is not None:
        moved = out * (dw[..., None, :] + sign * dw[..., :, None])
        change = -moved if dx is None else dx - moved
    return apply(divided, change, w, *sensitivities, sign=sign, strict=False)


divided: Primitive = opaque(
    "divided",
    evaluate_divided,
    vjp=vjp_divided,
    jvp=jvp_divided,
    form=Routine("(n,n),(n)->(n,n)"),
    usual_case=usually_divided,
)


def over_gaps(x: Any, w: Any, strict: bool = False, of_values: bool = False) -> Any:
    """Return x_ij / (w_j - w_i), and 0 where eigenvalues, which are sorted, are one."""
    return apply(divided, x, w, sign=-1, strict=strict, of_values=of_values)


def over_sums(x: Any, s: Any) -> Any:
    """Return x_ij / (s_i + s_j), and 0 where both are zero."""
    return at_once(divided, x, s, sign=1, strict=False)


def evaluate_cluster_share(x: Any, g: Any, w: Any, *, values: str) -> Any:
    """Evaluate `cluster_share`: what of a gradient stands off the diagonal within clusters of eigenvalues.

    For a function of the matrix, V f(w) V^H, the cotangents of V and w are there X = V^H g_V = f(w) S and
    g = f'(w) diag(S) / 2, so the gradient, f'(w) S / 2, is X times the ratio of g and diag(X). Where there is no such
    ratio, or where functions of the values alone, whose g is one number within a cluster, would not be seen in it, the
    cotangents of one choice of eigenvectors do not determine the gradient. It is 0 where the values are "unused", and
    not known where the vectors serve "only" for the gradient of the values; else these are "used".
    """
    if x.shape[:-1] == g.shape == w.shape and not ties(w).any() and np.isfinite(x).all() and np.isfinite(g).all():
        return np.zeros_like(x)
    return over_stacks(functools.partial(one_cluster_share, values=values), (2, 1, 1), x, g, w)


def one_cluster_share(x: Any, g: Any, w: Any, values: str) -> Any:
    """Return the share for one matrix, whose eigenvalues are sorted."""
    found = np.zeros_like(x)
    limit = negligible(x)
    for cluster in clusters_of(w):
        block = x[np.ix_(cluster, cluster)]
        if np.all(np.abs(off_diagonal(block)) <= limit):
            if values == "used" and hides_function(g[cluster], block, limit, alone=cluster.size == w.size):
                raise undetermined_error(UNDETERMINED)
            continue
        if np.any(np.abs(off_diagonal(block - block.conj().T)) > limit):
            raise undetermined_error("a function that depends on which eigenvectors of it were chosen")
        if values == "only":
            raise unsettled_error(OTHER_ORDERS)
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
        raise undetermined_error(UNDETERMINED)
    return ratio


def usual_cluster_share(x: Any, g: Any, w: Any, *, values: str) -> tuple[Any, Any]:
    """Return zeros, where eigenvalues are apart and all is finite."""
    apart, finite = none_holds(ties(w)), np.all(np.isfinite(x)) & np.all(np.isfinite(g))
    return np.zeros((), x.dtype), finite if apart is None else apart & finite


cluster_share = constant(
    "cluster_share", evaluate_cluster_share, form=Routine("(n,n),(n),(n)->(n,n)"), usual_case=usual_cluster_share
)


# Functions of eigenvalues alone, whose second derivatives need vectors along which a direction is diagonal


def own_ties(w: Any) -> Any:
    """Return which sorted eigenvalues are one with the next by their own size, and not beside the largest alone."""
    size = np.abs(w)
    return np.abs(w[..., 1:] - w[..., :-1]) <= rounding(w) * np.maximum(size[..., 1:], size[..., :-1])


def require_equal(g: Any, w: Any) -> None:
    """Refuse cotangents of sorted eigenvalues that differ within a cluster."""
    tied = own_ties(w)
    if not tied.any():
        return
    size = np.abs(g)
    limit = np.sqrt(np.finfo(g.dtype).eps) * np.maximum(size[..., 1:], size[..., :-1])
    if np.any(tied & (np.abs(g[..., 1:] - g[..., :-1]) > limit)):
        raise unequal_error("reverse mode")


def evaluate_sharing(w: Any) -> Any:
    """Evaluate `sharing`: matrices that make of one number for each of some sorted eigenvalues the mean of clusters."""
    tied = own_ties(w)
    one = same_cluster(tied, not tied.any()) * np.ones_like(w)[..., None]
    return one / np.sum(one, axis=-1, keepdims=True)


sharing = constant(
    "sharing",
    evaluate_sharing,
    form=Routine("(n)->(n,n)"),
    usual_case=lambda w: (np.eye(w.shape[-1]), none_holds(own_ties(w))),
)


def mean_of_cluster(g: Any, w: Any) -> Any:
    """Return numbers for sorted eigenvalues, the same for all of a cluster: their mean."""
    return g if are_distinct(w) else (apply(sharing, w) @ g[..., None])[..., 0]


def parts_cluster(x: Any, g: Any, w: Any) -> Any:
    """Tell where x moves eigenvalues of a cluster apart whose g is not 0."""
    means = evaluate_sharing(w)
    apart = np.abs(x - on_diagonal((means @ diagonal_of(x)[..., None])[..., 0]))
    return (means != 0) & (apart > negligible(x)) & (g != 0)[..., None]


alike = refusal(
    "alike_in_clusters", parts_cluster, lambda: unequal_error("a second derivative"), "(n,n),(n),(n)->(n,n)", 2
)


def alike_in_clusters(x: Any, g: Any, w: Any) -> Any:
    """Return zeros, after it was looked whether eigenvalues that share something move together along x."""
    return np.zeros_like(x) if are_distinct(w) else apply(alike, x, g, w)


def evaluate_turn(x: Any, w: Any, *, descending: bool) -> Any:
    """Evaluate `turn`: unitary matrices Q, blocks for clusters of w, for which Q^H X Q is diagonal within each.

    (T. Kato, Perturbation Theory for Linear Operators, 1966, section II.2.3.)
    """

    def one(x: Any, w: Any) -> Any:
        found, limit = np.eye(w.size, dtype=x.dtype), negligible(x)
        for cluster in clusters_of(w):
            place = np.ix_(cluster, cluster)
            if cluster.size > 1 and np.any(np.abs(off_diagonal(x[place])) > limit):
                v = np.linalg.eigh(x[place])[1]
                found[place] = v[:, ::-1] if descending else v
        return found

    return over_stacks(one, (2, 1), x, w)


def vjp_turn(ct: Any, out: Any, x: Any, w: Any, **_options: Any) -> tuple[Any, None]:
    """Refuse cotangents that depend on it: those by the matrix and the eigenvalues together are not known here."""
    return apply(still, adjoint(out) @ conj(ct), out, w, np.zeros_like(w)), None


def jvp_turn(tangents: Tangents, out: Any, _x: Any, w: Any, **_options: Any) -> Any:
    """Refuse tangents that turn it."""
    dx, dw = tangents
    moved = np.zeros_like(out) if dx is None else adjoint(out) @ dx @ out
    return apply(still, moved, out, w, np.zeros_like(w) if dw is None else dw)


turn = opaque(
    "turn_of_clusters",
    evaluate_turn,
    vjp=vjp_turn,
    jvp=jvp_turn,
    form=Routine("(n,n),(n)->(n,n)"),
    usual_case=lambda x, w, **_options: (np.eye(w.shape[-1]), none_holds(ties(w))),
)


def turns_cluster(x: Any, q: Any, w: Any, dw: Any) -> Any:
    """Tell where x, or eigenvalues that part where q has turned, would turn a cluster."""
    parting = np.abs(differences(dw)) > negligible_vector(dw)
    turned = np.any(off_diagonal(q) != 0, axis=(-2, -1), keepdims=True) & parting
    return same_cluster(ties(w), False) & ((np.abs(off_diagonal(x)) > negligible(x)) | turned)


def negligible_vector(x: Any) -> Any:
    """Return up to which size elements of vectors count as rounding errors, to be compared with matrices."""
    return np.sqrt(np.finfo(x.dtype).eps) * np.max(np.abs(x), axis=-1, keepdims=True, initial=0)[..., None]


still = refusal("still", turns_cluster, lambda: unsettled_error(OTHER_ORDERS), "(n,n),(n,n),(n),(n)->(n,n)", 2)


def along_clusters(x: Any, w: Any, descending: bool = False) -> Any:
    """Return what Hermitian matrices, in the basis of eigenvectors, have on the diagonal where clusters are turned."""
    if are_distinct(w):
        return diagonal_of(x).real
    q = apply(turn, x, w, descending=descending)
    return np.sum(conj(q) * (x @ q), axis=-2).real


def turned_diagonal(g: Any, x: Any, w: Any, descending: bool = False) -> Any:
    """Return matrices that are diagonal where `along_clusters` turns x."""
    if are_distinct(w):
        return on_diagonal(g)
    q = apply(turn, x, w, descending=descending)
    return (q * g[..., None, :]) @ adjoint(q)


def evaluate_settled(x: Any, w: Any) -> Any:
    """Evaluate `settled`: the diagonal; an error where clusters would have to be turned."""
    turning = same_cluster(ties(w), False) & (np.abs(off_diagonal(x)) > negligible(x))
    if turning.any():
        raise unsettled_error("reverse mode over reverse mode")
    return np.broadcast_to(diagonal_of(x).real, turning.shape[:-1]).copy()


settled = linear(
    "settled",
    evaluate_settled,
    transpose=lambda ct, aval, _w: on_diagonal(ct).astype(aval.dtype),
    form=Routine("(n,n),(n)->(n)"),
    usual_case=lambda x, w: (diagonal_of(x).real, none_holds(ties(w))),
)


def diagonal_at(x: Any, w: Any) -> Any:
    """Return the diagonal of matrices in the basis of eigenvectors; of clusters it must be all there is."""
    return diagonal_of(x).real if are_distinct(w) else apply(settled, x, w)


def vjp_settled_vectors(ct: Any, _out: Any, v: Any, w: Any) -> tuple[Any, None]:
    """Pass the cotangent on; an error where it depends on how clusters are turned."""
    x = adjoint(v) @ conj(ct)
    turned = apply(still, x, np.eye(w.shape[-1], dtype=x.dtype), w, np.zeros_like(w))
    return unbroadcast(ct + np.sum(turned, axis=(-2, -1), keepdims=True), v.shape), None


def pass_tangent(tangents: Tangents, out: Any, *_operands: Any) -> Any:
    """Pass the tangent on: with the vectors a cluster does not turn, which `over_gaps` looks after."""
    return np.zeros_like(out) if tangents[0] is None else tangents[0]


settled_vectors = opaque(
    "settled_vectors",
    lambda v, w: np.copy(v) * np.ones_like(w)[..., None, :],
    vjp=vjp_settled_vectors,
    jvp=pass_tangent,
    form=Routine("(m,n),(n)->(m,n)"),
    usual_case=lambda v, _w: (np.copy(v), None),
)


def with_settled(v: Any, w: Any) -> Any:
    """Return vectors for the gradient by them, whose own derivative must not depend on how clusters are turned.

    Within clusters a second derivative would need more than the cotangents tell.
    """
    return v if are_distinct(w) else apply(settled_vectors, v, w)


def turns_uneven(x: Any, g: Any, w: Any) -> Any:
    """Tell where x turns vectors of one cluster whose g differ."""
    limit = negligible(x) * np.max(np.abs(g), axis=-1, keepdims=True, initial=0)[..., None]
    return same_cluster(ties(w), False) & (np.abs(x * differences(g)) > limit)


even = refusal("even", turns_uneven, lambda: unequal_error("a second derivative"), "(n,n),(n),(n)->(n,n)", 2)


def change_by_turning(x: Any, g: Any, w: Any) -> Any:
    """Return x_ij (g_j - g_i) / (w_j - w_i): how diag(g) changes as vectors turn; 0 in clusters, where g is one."""
    found = over_gaps(x * differences(g), w)
    return found if are_distinct(w) else found + apply(even, x, g, w)


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
    return over_all(x, differences(w), same_cluster(tied, distinct)), distinct


def turns_used(y: Any, x: Any, g: Any, w: Any) -> Any:
    """Tell where y turns vectors of a cluster that has a gradient."""
    one = same_cluster(ties(w), False)
    used = np.any(one & (np.abs(x) > negligible(x)), axis=-1) | (np.abs(g) > negligible_vector(g)[..., 0])
    return one & (used[..., None, :] | used[..., :, None]) & (np.abs(off_diagonal(y)) > negligible(y))


alone = refusal("alone", turns_used, lambda: unsettled_error(OTHER_ORDERS), "(n,n),(n,n),(n),(n)->(n,n)", 3)


def vjp_settled_gradient(ct: Any, _out: Any, inner: Any, x: Any, g: Any, w: Any) -> tuple[Any, ...]:
    """Pass the cotangent on; an error where it would ask how the gradient changes within a cluster."""
    return unbroadcast(ct + apply(alone, ct, x, g, w), inner.shape), None, None, None


def evaluate_settled_gradient(inner: Any, x: Any, g: Any, w: Any) -> Any:
    """Evaluate `settled_gradient`: the gradient in the basis of vectors, where others have more lanes, in these."""
    return inner + np.zeros_like(x) + 0 * (g + w)[..., None]


settled_gradient = opaque(
    "settled_gradient",
    evaluate_settled_gradient,
    vjp=vjp_settled_gradient,
    jvp=pass_tangent,
    form=Routine("(n,n),(n,n),(n),(n)->(n,n)"),
    usual_case=lambda *operands: (evaluate_settled_gradient(*operands), None),
)


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
    ct_w = np.zeros_like(w) if ct_w is None else ct_w
    return apply(settled_gradient, inner + apply(cluster_share, x, ct_w, w, values=role), x, ct_w, w)
