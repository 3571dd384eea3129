"""Determinants, their logarithms, and the cofactors that are their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, combinations, permutations
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque, variant
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.linear_algebra.matrices import OF_ELIMINATION, matrix_error, plain_routine

WELL_CONDITIONED = 1e6
"""The square of the condition, by Frobenius norms, below which three digits are lost at most."""
MOST_SMALL = 3
"""How many singular values may be small where derivatives of cofactors are summed over these."""
FEW = 3
"""Rows up to which cofactors are differences of products."""


def square_norm(a: Any) -> Any:
    """Return the sum of the squares of the elements of each matrix."""
    return np.sum(np.real(a * a.conj()), axis=(-2, -1))


def regular(a: Any, singular: Any) -> Any:
    """Return matrices, with identities in place of those that are singular."""
    return np.where(singular[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)


def evaluate_cofactors(a: Any, *directions: Any) -> Any:
    """Evaluate the matrix of cofactors det(A) A^-T, the gradient of det; with directions, its derivative along them.

    Also where A is singular. (For A that is nearly singular det and inv have the same rounding errors, which cancel.)
    Along directions it loses digits by the condition of A, for each of them.
    """
    if a.shape[-1] <= FEW and np.isfinite(a).all():
        return cofactors_by_minors(a, *directions)
    determinant = np.linalg.det(a)
    is_regular = np.absolute(determinant) > 0
    inverse = np.linalg.inv(a if np.all(is_regular) else regular(a, ~is_regular))
    usual = is_regular & is_well_conditioned(a, inverse, len(directions)) if directions else is_regular
    if np.all(usual):
        return cofactors_by_inverse(determinant, inverse, *directions)
    shape = np.broadcast_shapes(a.shape, *[x.shape for x in directions])
    a, inverse, *along = [np.broadcast_to(x, shape) for x in (a, inverse, *directions)]
    determinant, usual = [np.broadcast_to(x, shape[:-2]) for x in (determinant, usual)]
    others = np.isfinite(a).all(axis=(-2, -1)) & ~usual
    found = np.full(shape, np.nan, np.result_type(a, *along))
    found[usual] = cofactors_by_inverse(determinant[usual], inverse[usual], *[x[usual] for x in along])
    found[others] = cofactors_by_rank(a[others], [x[others] for x in along])
    return found


def is_well_conditioned(a: Any, inverse: Any, directions: int) -> Any:
    """Return whether each matrix's cofactors along so many directions lose three digits at most."""
    return directions == 0 or (square_norm(a) * square_norm(inverse)) ** directions < WELL_CONDITIONED


def cofactors_by_minors(a: Any, *directions: Any) -> Any:
    """Return cofactors of few rows, or their derivatives, as polynomials: nothing cancels in matrices of any rank."""
    rows, left = a.shape[-1], a.shape[-1] - 1 - len(directions)
    factors = [*[a] * left, *directions]
    if rows == 3 and left >= 0:
        x, y = [np.take(np.take(factor, CYCLE, -2), CYCLE, -1) for factor in factors]
        found = products_of_minors(x, y)
        if left < 2:
            found = found + products_of_minors(y, x)
    elif rows == 2 and left >= 0:
        turned = factors[0][..., ::-1, ::-1]
        found = np.where(np.eye(2, dtype=bool), turned, -turned)
    else:
        found = np.asarray(1.0 if left == 0 else 0.0)
    shape = np.broadcast_shapes(a.shape, *[x.shape for x in directions])
    return np.broadcast_to(found, shape).astype(np.result_type(a, *directions))


CYCLE = np.array([0, 1, 2, 0, 1])
"""Rows, or columns, of matrices of three, and after these the first two once more."""


def products_of_minors(x: Any, y: Any) -> Any:
    """Return x_{i+1,j+1} y_{i+2,j+2} - x_{i+1,j+2} y_{i+2,j+1}, the cofactors for x = y, of what is as `CYCLE`."""
    first, second = slice(1, 4), slice(2, 5)
    return x[..., first, first] * y[..., second, second] - x[..., first, second] * y[..., second, first]


def cofactors_by_inverse(determinant: Any, inverse: Any, *directions: Any) -> Any:
    """Return the matrix of cofactors of a regular matrix, or its derivative along directions."""
    return determinant[..., None, None] * sum_over_cycles([inverse] * (len(directions) + 1), directions)


def sum_over_cycles(inverses: Sequence[Any], directions: Sequence[Any]) -> Any:
    """Return the derivative of the cofactors along X_1 to X_k over det(A), of G_0 to G_k, which all are A^-1.

    It is the sum, over permutations of 0 to k, of their signs times the trace of the product of the G_m X_m of each
    cycle without 0, and the product of those of the cycle of 0 times G_0, transposed: derivatives of det(A) and of G
    by Jacobi's formula.
    """
    if not directions:
        return inverses[0].mT
    turned = [inverse @ x for inverse, x in zip(inverses[1:], directions, strict=True)]
    found: Any = 0
    for sign, (first, *others) in signed_cycles(len(inverses)):
        term = product_of([turned[m - 1] for m in first[1:]], inverses[0])
        for cycle in others:
            traces = product_of([turned[m - 1] for m in cycle[:-1]], turned[cycle[-1] - 1])
            term = np.trace(traces, axis1=-2, axis2=-1)[..., None, None] * term
        found = found + term if sign > 0 else found - term
    return found.mT


@lru_cache(maxsize=4)
def signed_cycles(count: int) -> list[tuple[int, list[list[int]]]]:
    """Return the sign and the cycles of each permutation: to list them takes a third of one small matrix's time."""
    return [(sign_of(places), cycles(places)) for places in permutations(range(count))]


def cofactors_by_rank(a: Any, directions: Sequence[Any]) -> Any:
    """Return the derivatives of cofactors along directions, of a stack of matrices that are of any rank.

    It is the sum of `cofactors_by_singular_values`, whose small singular values are each in one of the places, as the
    inverse v u^H, or in the product; the pseudoinverse of the rest is in the places left. The work is n^3, for n^(k+1).
    """
    u, s, vh = np.linalg.svd(a)
    count, rows = len(directions) + 1, a.shape[-1]
    ranks = np.sum(s > rows * np.finfo(s.dtype).eps * s[:, :1], axis=-1)
    found = np.zeros(a.shape, np.result_type(a, *directions))
    smallest = np.take_along_axis(s, np.maximum(ranks - 1, 0)[:, None], -1)[:, 0]
    good = (
        (smallest > 0) & (s[:, 0] ** 2 < WELL_CONDITIONED ** (1 / count) * smallest**2) & (rows - ranks <= MOST_SMALL)
    )
    for rank in set(ranks[good].tolist()):
        chosen = good & (ranks == rank)
        left, values, right = u[chosen].mT.conj(), s[chosen], vh[chosen].mT.conj()
        rest = (right[..., :rank] / values[:, None, :rank]) @ left[:, :rank]
        ends = {i: right[..., i : i + 1] @ left[:, i : i + 1] for i in range(rank, rows)}
        total: Any = np.zeros_like(rest)
        for inside in chain.from_iterable(combinations(ends, size) for size in range(len(ends) + 1)):
            scale = np.prod(values[:, [i for i in range(rows) if i not in inside]], axis=-1)[:, None, None]
            for places in permutations(range(count), len(inside)):
                inverses = [rest] * count
                for place, i in zip(places, inside, strict=True):
                    inverses[place] = ends[i]
                total = total + scale * sum_over_cycles(inverses, [x[chosen] for x in directions])
        phase = np.linalg.det(u[chosen]) * np.linalg.det(vh[chosen])
        found[chosen] = phase[:, None, None] * total
    others = ~good
    found[others] = cofactors_by_singular_values(a[others], [x[others] for x in directions])
    return found


def cycles(places: Sequence[int]) -> list[list[int]]:
    """Return the cycles of a permutation, each from its least element on."""
    found: list[list[int]] = []
    for start in range(len(places)):
        if not any(start in cycle for cycle in found):
            found.append([start])
            while places[found[-1][-1]] != start:
                found[-1].append(places[found[-1][-1]])
    return found


def sign_of(places: Sequence[int]) -> int:
    """Return the sign of a permutation."""
    return int((-1) ** sum(i > j for i, j in combinations(places, 2)))


def product_of(factors: Sequence[Any], last: Any) -> Any:
    """Return the product of matrices, from the left."""
    for factor in reversed(factors):
        last = factor @ last
    return last


def usual_cofactors(a: Any, *directions: Any) -> tuple[Any, Any]:
    """Return cofactors where matrices are regular; along directions where they are well conditioned, too."""
    if a.shape[-1] <= FEW:
        return cofactors_by_minors(a, *directions), np.all(np.isfinite(a))
    determinant, inverse = np.linalg.det(a), np.linalg.inv(a)
    holds = np.all((np.absolute(determinant) > 0) & is_well_conditioned(a, inverse, len(directions)))
    return cofactors_by_inverse(determinant, inverse, *directions), holds


def cofactors_by_singular_values(a: Any, directions: Sequence[Any]) -> Any:
    """Return the gradient, by the last of k directions, of the derivative of det(A) along all of them.

    For A = U S V^H that is det(U V^H) times the sum, over places i_1 to i_k and permutations p, of sign(p) times the
    singular values at all other places times the elements (i_m, i_p(m)) of U^H X_m V. No quotient occurs, so A may
    have any rank. (R. Bhatia and T. Jain, Higher order derivatives and perturbation bounds for determinants, 2009.)
    """
    u, s, vh = np.linalg.svd(a)
    last = len(directions)
    others = products_of_others(s, last + 1)
    turned = [u.mT.conj() @ x @ vh.mT.conj() for x in directions]
    weights = np.zeros_like(u)
    for places in permutations(range(last + 1)):
        pairs: list[Any] = [others, [..., *range(last + 1)]]
        for m, x in enumerate(turned):
            pairs += [x, [..., m, places[m]]]
        kept = [last] if places[last] == last else [last, places[last]]
        found = np.einsum(*pairs, [..., *kept])
        weights = weights + sign_of(places) * (found[..., None] * np.eye(s.shape[-1]) if len(kept) == 1 else found)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return (phase[..., None, None] * (u.conj() @ weights @ vh.conj())).astype(np.result_type(a, *directions))


def products_of_others(s: Any, count: int) -> Any:
    """Return the products of all elements along the last axis but those at `count` places, an axis for each place.

    Where two places are one they are 0: such terms, of which permutations cancel each other, are larger than the rest
    by the ratio of matrices and directions, and leave their rounding errors.
    """
    if count == 1:
        ones = np.ones_like(s[..., :1])
        before = np.concatenate([ones, s[..., :-1]], axis=-1).cumprod(axis=-1)
        after = np.concatenate([ones, s[..., :0:-1]], axis=-1).cumprod(axis=-1)[..., ::-1]
        return before * after
    same = np.eye(s.shape[-1], dtype=bool)
    found = products_of_others(np.where(same, 1, s[..., None, :]), count - 1)
    for later in range(1, count):
        found = np.where(np.expand_dims(same, [x for x in range(count) if x not in (0, later)]), 0, found)
    return found


def vjp_cofactors(ct: Any, _out: Any, a: Any, *directions: Any) -> tuple[Any, ...]:
    """Differentiate the derivatives of det, which are symmetric in their directions, of which ct is one.

    Those of orders greater than the number of rows vanish.
    """
    others = [directions[:i] + directions[i + 1 :] for i in range(len(directions))]
    found = [unbroadcast(apply(cofactors, a, *given, ct), x.shape) for given, x in zip(others, directions, strict=True)]
    if len(directions) + 2 > a.shape[-1]:
        return (None, *found)
    return (unbroadcast(apply(cofactors, a, *directions, ct), a.shape), *found)


cofactors: Primitive = opaque(
    "cofactors",
    evaluate_cofactors,
    vjp=vjp_cofactors,
    form=Routine("(n,n)->(n,n)"),
    usual_case=usual_cofactors,
)


det = opaque(
    "det",
    np.linalg.det,
    vjp=lambda ct, _out, a, **_options: ct[..., None, None] * apply(cofactors, a),
    form=Routine("(n,n)->()"),
    routine=plain_routine("det"),
    cost=OF_ELIMINATION,
)


def evaluate_scipy_det(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.det`, which takes stacks."""
    from scipy import linalg

    return linalg.det(a, check_finite=check_finite)


scipy_det = variant(det, "scipy_det", evaluate_scipy_det)


def vjp_slogdet(ct: Any, out: Any, a: Any) -> Any:
    """Differentiate log |det A| + i arg det A, whose differential is tr(A^-1 dA); a real sign is constant.

    Of a singular matrix there is none, but what a zero is multiplied by does not matter.
    """
    scale = ct[1]
    if ct[0] is not None and a.dtype.kind == "c":
        turn = np.real(1j * ct[0] * out[0]) * -1j  # in this order, else Python multiplies two of its numbers
        scale = turn if scale is None else scale + turn
    if scale is None:
        return None
    singular = out[0] == 0
    known = visible_array(singular)
    if known is None or known.any():
        a = regular(a, singular & (scale == 0))
        require_regular(singular & (scale != 0))
    return scale[..., None, None] * np.linalg.inv(a).mT


def require_regular(singular: Any) -> None:
    """Refuse singular matrices that are known to be there; of others `inv` says it."""
    known = visible_array(singular)
    if known is not None and known.any():
        given = "a singular matrix, of whose determinant the logarithm has no derivative"
        needed = "a regular one is needed, or a cotangent that is 0"
        action = "Choose by numpy.where what is wanted there, or use det, which has derivatives at matrices of any rank"
        raise matrix_error("slogdet", given, needed, action)


def jvp_slogdet(tangents: Sequence[Any], out: Any, a: Any) -> tuple[Any, Any]:
    """Return the parts of tr(A^-1 dA); NaN at singular matrices that move, which a mask may leave out."""
    (t,), singular = tangents, out[0] == 0
    known = visible_array(singular)
    if known is None or known.any():
        moves = np.any(t != 0, axis=(-2, -1))
        trace = np.sum(np.linalg.inv(regular(a, singular)).mT * t, axis=(-2, -1))
        trace = np.where(singular, np.where(moves, np.nan, 0.0), trace)
    else:
        trace = np.sum(np.linalg.inv(a).mT * t, axis=(-2, -1))
    return (out[0] * (1j * np.imag(trace)), np.real(trace)) if a.dtype.kind == "c" else (None, trace)


slogdet = opaque(
    "slogdet",
    lambda a: tuple(np.linalg.slogdet(a)),
    vjp=vjp_slogdet,
    jvp=jvp_slogdet,
    outputs=2,
    form=Routine("(n,n)->(),()"),
    routine=plain_routine("slogdet"),
    cost=OF_ELIMINATION,
)
