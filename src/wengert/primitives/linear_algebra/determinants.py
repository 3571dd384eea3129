"""Determinants, their logarithms, and the cofactors that are their derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
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
FEW = 3
"""Rows up to which cofactors are differences of products."""


def square_norm(a: Any) -> Any:
    """Return the sum of the squares of the elements of each matrix."""
    return np.sum(np.real(a * a.conj()), axis=(-2, -1))


def evaluate_cofactors(a: Any, *directions: Any) -> Any:
    """Evaluate the matrix of cofactors det(A) A^-T, the gradient of det; with directions, its derivative along them.

    Also where A is singular. (For A that is nearly singular det and inv have the same rounding errors, which cancel.)
    Along X it is det(A) (tr(A^-1 X) A^-1 - A^-1 X A^-1)^T, which loses digits by the condition of A.
    """
    if a.shape[-1] <= FEW and np.isfinite(a).all():
        return cofactors_by_minors(a, *directions)
    if len(directions) < 2:
        determinant = np.linalg.det(a)
        if np.all(np.absolute(determinant) > 0):
            inverse = np.linalg.inv(a)
            if not directions or np.all(square_norm(a) * square_norm(inverse) < WELL_CONDITIONED):
                return cofactors_by_inverse(determinant, inverse, *directions)
    finite = np.isfinite(a).all(axis=(-2, -1), keepdims=True)
    return np.where(finite, cofactors_by_singular_values(np.where(finite, a, 0), directions), np.nan)


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
    """Return the matrix of cofactors of a regular matrix, or its derivative along one direction."""
    factor = determinant[..., None, None]
    if not directions:
        return factor * inverse.mT
    turned = inverse @ directions[0]
    trace = np.trace(turned, axis1=-2, axis2=-1)[..., None, None]
    return factor * (trace * inverse - turned @ inverse).mT


def usual_cofactors(a: Any, *directions: Any) -> tuple[Any, Any] | None:
    """Return cofactors where matrices are regular; along a direction where they are well conditioned, too."""
    if a.shape[-1] <= FEW:
        return cofactors_by_minors(a, *directions), np.all(np.isfinite(a))
    if len(directions) > 1:
        return None
    determinant, inverse = np.linalg.det(a), np.linalg.inv(a)
    holds = np.all(np.absolute(determinant) > 0)
    if directions:
        holds = holds & np.all(square_norm(a) * square_norm(inverse) < WELL_CONDITIONED)
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
        sign = (-1) ** sum(i > j for i, j in combinations(places, 2))
        pairs: list[Any] = [others, [..., *range(last + 1)]]
        for m, x in enumerate(turned):
            pairs += [x, [..., m, places[m]]]
        kept = [last] if places[last] == last else [last, places[last]]
        found = np.einsum(*pairs, [..., *kept])
        weights = weights + sign * (found[..., None] * np.eye(s.shape[-1]) if len(kept) == 1 else found)
    phase = np.linalg.det(u) * np.linalg.det(vh)
    return (phase[..., None, None] * (u.conj() @ weights @ vh.conj())).astype(np.result_type(a, *directions))


def products_of_others(s: Any, count: int) -> Any:
    """Return the products of all elements along the last axis but those at `count` places, an axis for each place."""
    if count == 1:
        ones = np.ones_like(s[..., :1])
        before = np.concatenate([ones, s[..., :-1]], axis=-1).cumprod(axis=-1)
        after = np.concatenate([ones, s[..., :0:-1]], axis=-1).cumprod(axis=-1)[..., ::-1]
        return before * after
    return products_of_others(np.where(np.eye(s.shape[-1], dtype=bool), 1, s[..., None, :]), count - 1)


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


def regular(a: Any, singular: Any) -> Any:
    """Return matrices, with identities in place of those that are singular."""
    return np.where(singular[..., None, None], np.eye(a.shape[-1], dtype=a.dtype), a)


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
