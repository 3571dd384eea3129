"""Singular values and their vectors, as `eigenvalues` has those of Hermitian matrices.

Vectors of singular values that are 0 may be any in their spaces: what depends on them is an error, too. Singular values
themselves have derivatives there to one side, as |x| has at 0, or 0 by choice.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, linear, opaque, variant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.cluster_derivatives import (
    alike_in_clusters,
    along_clusters,
    change_by_turning,
    diagonal_at,
    inner_gradient,
    mean_of_cluster,
    own_ties,
    require_equal,
    turned_diagonal,
    with_settled,
)
from wengert.primitives.linear_algebra.clusters import (
    OTHER_ORDERS,
    are_distinct,
    is_regular,
    negligible,
    none_holds,
    over_gaps,
    over_sums,
    refusal,
    rounding,
    smallest_gap,
    sums_of,
    unsettled_error,
)
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    diagonal_of,
    matrix_error,
    of_scipy,
    over_stacks,
)

Tangents = Sequence[Any]


# Values and vectors


def nonzero(s: Any) -> Any:
    """Return singular values, and infinity where they are zero, so that quotients by them are 0."""
    return s if is_regular(s) else np.where(s <= smallest_gap(s), np.inf, s)


def are_vanishing(s: Any) -> Any:
    """Return which singular values of arrays are zero; examples for traces may be negative, and are none."""
    return np.abs(s) <= smallest_gap(s)


def silence_at_zero(ct_s: Any, s: Any) -> Any:
    """Return the cotangents (or tangents) of singular values, 0 where these are 0, as those of |x| are there."""
    return ct_s if is_regular(s) else np.where(s <= smallest_gap(s), 0, ct_s)


def outer_gradient(u: Any, g: Any, turned: Any, s: Any) -> Any:
    """Return how a gradient g by singular vectors changes them out of the space that those of s span, times s.

    Where u has more columns than there are singular values, these follow: they stay orthogonal, and turn no further.
    """
    count = s.shape[-1]
    if u.shape[-1] == count:
        return g[..., :count] - u @ turned
    first, rest = u[..., :count], u[..., count:]
    return rest @ (adjoint(rest) @ g[..., :count] - adjoint(g[..., count:]) @ first)


def vjp_svd(ct: Sequence[Any], out: Any, a: Any, *, of_values: bool = False, **_options: Any) -> Any:
    """Return the gradient of A = U S V^H from those of its factors.

    With X = U^H g_U and Y = V^H g_V, (X + Y) / 2 belongs to the turn that both make, over s_j - s_i, and
    (X - Y) / 2 to that of U against V, over s_i + s_j, which has no singularity at repeated values. (Giles 2008,
    section 3.2; J. Townsend, Differentiating the singular value decomposition, 2016; Z.-Q. Wan and S.-X. Zhang,
    Automatic differentiation for complex valued SVD, 2019.)
    """
    (u, s, vh), (ct_u, ct_s, ct_vh) = out, ct
    if ct_u is None and ct_vh is None:
        return None if ct_s is None else conj(apply(by_singular_values, ct_s, a, shared=False, fixed=True))
    count = s.shape[-1]
    v = adjoint(vh)
    first, last = settled_pair(u[..., :count], v[..., :count], s)
    g_u = np.zeros_like(u) if ct_u is None else conj(ct_u)
    g_v = np.zeros_like(v) if ct_vh is None else ct_vh.mT
    x, y = adjoint(first) @ g_u[..., :count], adjoint(last) @ g_v[..., :count]
    against = (x - y) / 2
    against = against - adjoint(against)
    outer_u = outer_gradient(u, g_u, x, s) if a.shape[-2] > count else None
    outer_v = outer_gradient(v, g_v, y, s) if a.shape[-1] > count else None
    inner = inner_gradient((x + y) / 2, ct_s, s, of_values)
    inner = inner + over_sums(against, s)
    if not is_regular(s):
        inner = inner + require_nothing_at_zero(against, s, (g_u, g_v), outer_u, outer_v)
        if ct_s is not None:
            inner = inner + require_nothing_at_zero(np.zeros_like(against), s, (ct_s,), ct_s[..., None, :])
    found = first @ inner
    if outer_u is not None:
        found = found + outer_u / nonzero(s)[..., None, :]
    found = found @ adjoint(last)
    if outer_v is not None:
        found = found + first @ adjoint(outer_v / nonzero(s)[..., None, :])
    return conj(found)


def stand_at_zero(x: Any, s: Any, scale: Any, *columns: Any) -> Any:
    """Tell where there is something for singular values that are 0, beside the scale."""
    zero, limit = are_vanishing(s), np.sqrt(np.finfo(s.dtype).eps) * scale[..., None, None]
    wrong = zero[..., None, :] & zero[..., :, None] & (np.abs(x) > limit)
    for column in columns:
        wrong = wrong | np.any(zero[..., None, :] & (np.abs(column) > limit), axis=-2, keepdims=True)
    return wrong


def depends_on_zero() -> Exception:
    """Return the error about vectors of singular values that are 0."""
    given = "a function that depends on those of a singular value 0, or a direction that turns them"
    needed = "a matrix of full rank is needed, or a function of what belongs to other singular values"
    action = "Use svdvals for functions of the values alone, and pinv, lstsq or the matrix itself for others"
    return matrix_error("singular vectors", given, needed, action)


at_zero = refusal("at_zero", stand_at_zero, depends_on_zero, "(k,k),(k),(),(p,k)->(k,k)")


def require_nothing_at_zero(x: Any, s: Any, given: Sequence[Any], *columns: Any) -> Any:
    """Return zeros, after it was looked whether what would be divided by singular values of 0 is 0, too."""
    largest = [np.max(np.abs(y), axis=(-2, -1), initial=0) if y.ndim > s.ndim else np.max(np.abs(y), -1) for y in given]
    scale = largest[0] if len(largest) == 1 else np.maximum(*largest)
    return apply(at_zero, x, s, scale, *[column for column in columns if column is not None])


def settled_pair(u: Any, v: Any, s: Any) -> tuple[Any, Any]:
    """Return singular vectors of both sides, which are turned together."""
    if are_distinct(s):
        return u, v
    both = with_settled(np.concatenate([u, v], axis=-2), s)
    return both[..., : u.shape[-2], :], both[..., u.shape[-2] :, :]


def side(u: Any, inner: Any, outer: Any, s: Any) -> Any:
    """Return the tangent of singular vectors from their turn among themselves and how they turn outwards, times s."""
    count = s.shape[-1]
    first, rest = u[..., :count], u[..., count:]
    if outer is None:
        return first @ inner
    if u.shape[-1] == count:
        return first @ inner + outer / nonzero(s)[..., None, :]
    turn = adjoint(rest) @ outer / nonzero(s)[..., None, :]
    return np.concatenate([first @ inner + rest @ turn, -(first @ adjoint(turn))], axis=-1)


def jvp_svd(tangents: Tangents, out: Any, a: Any, *, of_values: bool = False, **_options: Any) -> tuple[Any, Any, Any]:
    """Turn both by (Q + Q^H) / (s_j - s_i) for Q = U^H dA V, and U against V by (Q - Q^H) / (s_i + s_j)."""
    (t,), (u, s, vh) = tangents, out
    count = s.shape[-1]
    v = adjoint(vh)
    first, last = u[..., :count], v[..., :count]
    right, left = t @ last, adjoint(t) @ first
    turned = adjoint(first) @ right
    outer_u = right - first @ turned if a.shape[-2] > count else None
    outer_v = left - last @ adjoint(turned) if a.shape[-1] > count else None
    both = over_gaps(turned + adjoint(turned), s, strict=True, of_values=of_values) / 2
    difference = turned - adjoint(turned)
    against = over_sums(difference, s) / 2
    if not is_regular(s):
        against = against + require_nothing_at_zero(difference, s, (t,), outer_u, outer_v)
    return (
        side(u, both + against, outer_u, s),
        diagonal_of(turned).real,
        adjoint(side(v, both - against, outer_v, s)),
    )


svd = opaque(
    "svd",
    lambda a, *, full_matrices, of_values=False: tuple(np.linalg.svd(a, full_matrices=full_matrices)),
    vjp=vjp_svd,
    jvp=jvp_svd,
    outputs=3,
    form=Routine("(m,n)->(m,k),(k),(k,n)"),
    fresh=True,
    routine=lambda *, full_matrices, of_values=False: RoutineCall("svd", (), {"full": int(full_matrices)}),
    cost=16 * OF_ELIMINATION,
)
scipy_svd = variant(
    svd,
    "scipy_svd",
    of_scipy(lambda linalg, a, driver, **options: linalg.svd(a, lapack_driver=driver, **options), 2),
    routine=lambda *, full_matrices, driver, of_values=False, check_finite=False: (
        RoutineCall("svd", (), {"full": int(full_matrices)}) if driver == "gesdd" else None
    ),
)


# Singular values alone


def evaluate_by_singular_values(g: Any, a: Any, *, shared: bool, fixed: bool = False) -> Any:
    """Evaluate `by_singular_values`: U diag(g) V^H, without singular values that are 0.

    It does not depend on the vectors where g is the same for all of a cluster, which share it equally if they may.
    Tangents of g are those for vectors that grow from 0 to one side, or, `fixed`, for those of `svd`.
    """
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    g = silence_at_zero(g, s)
    if shared:
        g = mean_of_cluster(g, s)
    else:
        require_equal(g, s)
    return (u * g[..., None, :]) @ vh


def usual_by_singular_values(g: Any, a: Any, *, shared: bool, fixed: bool = False) -> tuple[Any, Any]:
    """Return U diag(g) V^H, where singular values are apart."""
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    return (u * silence_at_zero(g, s)[..., None, :]) @ vh, none_holds(own_ties(s))


def parts_of(x: Any) -> tuple[Any, Any]:
    """Return the Hermitian part of matrices and the rest."""
    turned = adjoint(x)
    return (x + turned) / 2, (x - turned) / 2


def change_by_vectors(u: Any, s: Any, vh: Any, g: Any, t: Any) -> Any:
    """Return how U diag(g) V^H changes along t as the vectors turn: both together, against each other, and outwards.

    That is also its transpose: g_out takes the place of t.
    """
    v, g = adjoint(vh), silence_at_zero(g, s)
    right, left = t @ v, adjoint(u) @ t
    inside = adjoint(u) @ right
    both, against = parts_of(inside)
    sums = over_sums(against * sums_of(g), s)
    found, ratio = u @ (change_by_turning(both, g, s) + sums) @ vh, g / nonzero(s)
    if u.shape[-2] > s.shape[-1]:
        found = found + ((right - u @ inside) * ratio[..., None, :]) @ vh
    if v.shape[-2] > s.shape[-1]:
        found = found + u @ (ratio[..., None] * (left - inside @ vh))
    return found


def beyond(u: Any, s: Any, vh: Any, t: Any) -> Any:
    """Return matrices without what begins or ends in the spaces of singular values that are not 0."""
    moves = (s > smallest_gap(s))[..., None, :]
    first, last = u * moves, adjoint(vh) * moves
    rest = t - first @ (adjoint(first) @ t)
    return rest - (rest @ last) @ adjoint(last)


def evaluate_null_vectors(u: Any, s: Any, vh: Any, t: Any, *, strict: bool) -> Any:
    """Evaluate `null_vectors`: vectors of the singular values that grow from 0 along t, in their places; 0 elsewhere.

    (J.-G. Sun, A note on simple non-zero singular values, 1988, and for those that are 0 G. W. Stewart, A note on the
    perturbation of singular values, 1979.)
    """

    def one(rest: Any, s: Any, limit: Any) -> tuple[Any, Any]:
        left, growth, right = np.linalg.svd(rest, full_matrices=False)
        rank, grown = np.count_nonzero(s > smallest_gap(s)), np.count_nonzero(growth > limit)
        places, count = slice(rank, min(rank + grown, s.size)), min(grown, s.size - rank)
        first, last = np.zeros_like(left), np.zeros_like(right.T)
        first[:, places], last[:, places] = left[:, :count], right[:count].conj().T
        return first, last

    limit = rounding(s) * np.linalg.norm(t, axis=(-2, -1))
    return over_stacks(one, (2, 1, 0), beyond(u, s, vh, t), s, limit)


def vjp_null_vectors(ct: Sequence[Any], out: Any, _u: Any, s: Any, _vh: Any, t: Any, *, strict: bool) -> Any:
    """Refuse cotangents, of 0 as well: that of singular values, which comes on another way, would count."""
    return None, None, None, unbroadcast(apply(motionless, t, s, *out, strict=True), t.shape)


def jvp_null_vectors(tangents: Tangents, out: Any, _u: Any, s: Any, _vh: Any, t: Any, *, strict: bool) -> Any:
    """Refuse tangents, or return NaN."""
    zero = apply(motionless, t, s, *[tangents[i] for i in (0, 2, 3) if tangents[i] is not None], strict=strict)
    changes = np.where(s > smallest_gap(s), 0.0, np.sum(zero, axis=(-2, -1))[..., None])[..., None, :]
    first, last = [np.zeros_like(x) + changes for x in out]
    return first, last


null_vectors = opaque(
    "null_vectors",
    evaluate_null_vectors,
    vjp=vjp_null_vectors,
    jvp=jvp_null_vectors,
    outputs=2,
    form=Routine("(m,k),(k),(k,n),(m,n)->(m,k),(n,k)"),
    usual_case=lambda u, s, vh, _t, **_options: (
        (np.zeros((), u.dtype), np.zeros((), vh.dtype)),
        np.all(s > smallest_gap(s)),
    ),
)


def evaluate_motionless(t: Any, s: Any, *changes: Any, strict: bool) -> Any:
    """Evaluate `motionless`: zeros; an error, or NaN, if what must not change does where singular values are 0."""
    shape = np.broadcast_shapes(t.shape[:-2], s.shape[:-1], *[x.shape[:-2] for x in changes])
    zero = np.any(are_vanishing(s), axis=-1)
    changed = np.zeros(shape, bool)
    for x in changes:
        changed |= zero & np.any(x != 0, axis=(-2, -1))
    if strict and changed.any():
        raise unsettled_error(OTHER_ORDERS)
    return np.where(changed[..., None, None], np.nan, np.zeros((*shape, *t.shape[-2:]), t.dtype)).astype(t.dtype)


motionless = constant(
    "motionless",
    evaluate_motionless,
    form=Routine("(m,n),(k),(p,q)->(m,n)"),
    usual_case=lambda t, s, *_changes, **_options: (np.zeros((), t.dtype), none_holds(are_vanishing(s))),
)


def evaluate_without_rest(t: Any, u: Any, s: Any, vh: Any) -> Any:
    """Evaluate `without_rest`: t; an error if there is something where singular values are 0."""
    rest = np.max(np.abs(beyond(u, s, vh, t)), axis=(-2, -1), initial=0)
    there = np.any(are_vanishing(s), axis=-1) & (rest > negligible(t)[..., 0, 0])
    if there.any():
        raise unsettled_error("reverse mode over reverse mode")
    return np.broadcast_to(t, (*there.shape, *t.shape[-2:])).copy()


without_rest: Primitive = linear(
    "without_rest",
    evaluate_without_rest,
    transpose=lambda ct, aval, *_factors: unbroadcast(ct, aval.shape),
    form=Routine("(m,n),(m,k),(k),(k,n)->(m,n)"),
    usual_case=lambda t, _u, s, _vh: (np.copy(t), none_holds(are_vanishing(s))),
)


def vjp_by_singular_values(ct: Any, _out: Any, g: Any, a: Any, **_options: Any) -> tuple[Any, Any]:
    """Return the diagonal of U^H g_out V, and how U diag(g) V^H turns along g_out."""
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    back = conj(ct)
    if not is_regular(s):
        back = apply(without_rest, back, u, s, vh)
    both, _ = parts_of(adjoint(u) @ back @ adjoint(vh))
    ct_g, found = silence_at_zero(diagonal_at(both, s), s), conj(change_by_vectors(u, s, vh, g, back))
    return unbroadcast(ct_g, g.shape), unbroadcast(found, a.shape)


def jvp_by_singular_values(tangents: Tangents, _out: Any, g: Any, a: Any, *, shared: bool, fixed: bool = False) -> Any:
    """Return how U diag(g) V^H changes, with vectors along which dA is diagonal in clusters, and in that of 0."""
    dg, da = tangents
    if da is None:
        return apply(by_singular_values, dg, a, shared=shared, fixed=fixed)
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    found = change_by_vectors(u, s, vh, g, da)
    both, _ = parts_of(adjoint(u) @ da @ adjoint(vh))
    if shared:
        found = found + u @ alike_in_clusters(both, g, s) @ vh
        return found if dg is None else found + apply(by_singular_values, dg, a, shared=True)
    if dg is None:
        return found
    inner = turned_diagonal(dg if fixed else silence_at_zero(dg, s), both, s, descending=True)
    found = found + u @ inner @ vh
    if fixed or is_regular(s):
        return found
    first, last = apply(null_vectors, u, s, vh, da, strict=True)
    return found + (first * dg[..., None, :]) @ adjoint(last)


by_singular_values: Primitive = opaque(
    "by_singular_values",
    evaluate_by_singular_values,
    vjp=vjp_by_singular_values,
    jvp=jvp_by_singular_values,
    form=Routine("(k),(m,n)->(m,n)"),
    usual_case=usual_by_singular_values,
)


def singular_values_along(t: Any, a: Any, growing: bool = True, strict: bool = True) -> Any:
    """Return the tangents of singular values: of those that are 0 how they grow, to one side, or 0.

    Tangents of these are refused in strictness; else they are NaN, for those that nobody may ever use.
    """
    u, s, vh = apply(svd, a, full_matrices=False, of_values=True)
    both, _ = parts_of(adjoint(u) @ t @ adjoint(vh))
    found = silence_at_zero(along_clusters(both, s, descending=True), s)
    if not growing or is_regular(s):
        return found
    first, last = apply(null_vectors, u, s, vh, t, strict=strict)
    return found + np.sum(conj(first) * (t @ last), axis=-2).real


def evaluate_svdvals(a: Any, *, still: bool = False, shared: bool = False) -> Any:
    """Evaluate `numpy.linalg.svdvals`; in norms those that are 0 keep `still`, and repeated ones have `shared`."""
    return np.linalg.svd(a, compute_uv=False)


def jvp_svdvals(
    tangents: Tangents, out: Any, a: Any, *, still: bool = False, shared: bool = False, **_options: Any
) -> Any:
    """Return the diagonal of U^H dA V, with vectors for which that is diagonal within clusters."""
    found = singular_values_along(tangents[0], a, growing=not still)
    return mean_of_cluster(found, out) if shared else found


# the gradient is U diag(g) V^H (Giles 2008, section 3.2), also where singular values are repeated
svdvals = opaque(
    "svdvals",
    evaluate_svdvals,
    vjp=lambda ct, _out, a, *, shared=False, **_options: conj(apply(by_singular_values, ct, a, shared=shared)),
    jvp=jvp_svdvals,
    form=Routine("(m,n)->(k)"),
    fresh=True,
    routine=lambda *, still=False, shared=False: RoutineCall("svdvals"),
    cost=6 * OF_ELIMINATION,
)
scipy_svdvals = variant(
    svdvals,
    "scipy_svdvals",
    of_scipy(lambda linalg, a, **check: linalg.svdvals(a, **check), 2),
    routine=lambda *, check_finite=False: RoutineCall("svdvals"),
)
