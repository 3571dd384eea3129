"""Derivatives within clusters of eigenvalues, or singular values, where vectors may be turned into each other.

Of what is the same for all of a cluster, or for every choice of its vectors, there are derivatives; what asks for
others is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import (
    OTHER_ORDERS,
    are_distinct,
    by_gaps,
    clusters_of,
    differences,
    negligible,
    none_holds,
    off_diagonal,
    over_gaps,
    refusal,
    rounding,
    same_cluster,
    ties,
    undetermined_error,
    unequal_error,
    unsettled_error,
)
from wengert.primitives.linear_algebra.matrices import (
    adjoint,
    diagonal_of,
    on_diagonal,
    over_stacks,
)

Tangents = Sequence[Any]


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
