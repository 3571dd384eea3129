"""Clusters of eigenvalues, or singular values, that are one but for rounding, and quotients by gaps between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply, at_once
from wengert.core.values.tensor import is_concrete, raw
from wengert.primitives.linear_algebra.matrices import (
    identity_of,
    matrix_error,
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
    ct: Any, out: Any, x: Any, w: Any, *sensitivities: Any, sign: int, strict: bool, of_values: bool = False
) -> tuple[Any, ...]:
    """Divide again: the derivative of x / g by g is -(x / g) / g."""
    slopes = apply(divided, ct * out, w, *sensitivities, sign=sign, strict=False)
    slopes = slopes if w.dtype.kind == "c" else slopes.real
    ct_w = -(np.sum(slopes, axis=-2) + sign * np.sum(slopes, axis=-1))
    ct_x = apply(divided, ct, w, *sensitivities, sign=sign, strict=False)
    return unbroadcast(ct_x, x.shape), unbroadcast(ct_w, w.shape), *[None] * len(sensitivities)


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


def are_distinct(w: Any) -> bool:
    """Tell whether sorted eigenvalues are known to be different."""
    if not is_concrete(w):
        return 0 in w.shape
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
