"""QR decompositions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant, opaque, variant
from wengert.core.primitives.opaque_kinds import Opaque
from wengert.core.primitives.primitive import RoutineCall
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import none_holds
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    depends_on_others,
    diagonal_of,
    identity_of,
    lower_triangle,
    of_scipy,
    on_diagonal,
    product,
    upper_triangle,
)
from wengert.primitives.linear_algebra.triangular import triangular_solution

Tangents = Sequence[Any]

ROUTINES: Any = sys.modules.get("numpy.linalg._umath_linalg")  # private: without it NumPy's function is called
COMPUTED = {"f": "d", "d": "d", "F": "D", "D": "D"}
"""The dtypes that NumPy computes decompositions in."""


def over_upper(x: Any, r: Any) -> Any:
    """Return X R^-1."""
    return adjoint(triangular_solution(r, adjoint(x), trans=2, lower=False))


def over_adjoint(x: Any, r: Any) -> Any:
    """Return X R^-H."""
    return adjoint(triangular_solution(r, adjoint(x), lower=False))


# Columns that depend on those before them


CLOSE = 64
"""Up to how many roundings of a column what it has beside those before it counts as nothing."""


def nothing_new(r: Any) -> Any:
    """Return which columns have nothing beside those before them, by the triangle R."""
    size = np.sqrt(np.sum(np.abs(upper_triangle(r)) ** 2, axis=-2))
    return np.abs(diagonal_of(r)) <= CLOSE * np.finfo(r.dtype).eps * size


def evaluate_dependent(r: Any, *given: Any) -> Any:
    """Evaluate `dependent`: which columns depend on those before them, of a matrix of whose R these are the first.

    It is an error if something is given for these: for columns of Q from there on, or rows of R, as columns.
    """
    found = nothing_new(r)
    if not found.any():
        stack = np.broadcast_shapes(found.shape[:-1], *[x.shape[:-2] for x in given])
        return np.broadcast_to(found, (*stack, found.shape[-1]))
    used = np.zeros_like(found)
    for x in given:
        size = np.max(np.abs(x), axis=-2, initial=0)
        limit = np.sqrt(np.finfo(x.dtype).eps) * np.max(size, axis=-1, keepdims=True, initial=0)
        later = np.logical_or.accumulate((size > limit)[..., ::-1], axis=-1)[..., ::-1]
        used = used | (found & later[..., : found.shape[-1]])
    if used.any():
        raise depends_on_others("qr", "the matrix itself: a.T @ a for r.T @ r, or svd")
    return found | used


INDEPENDENT = 1e-6
"""The part of the square of its size above which that of no element of a diagonal is rounding."""
dependent = constant(
    "dependent_columns",
    evaluate_dependent,
    form=Routine("(k,k),(p,l)->(k)"),
    usual_case=lambda r, *_given: (np.zeros((), bool), none_holds(nothing_new(r))),
)


def are_independent(r: Any) -> bool:
    """Tell whether columns are so by far, at a glance."""
    if r.ndim != 2 or not r.size:
        return False
    least = float(np.minimum.reduce(np.abs(r.diagonal())))
    return bool(least * least > INDEPENDENT * np.vdot(r, r).real)


def guard_diagonal(r: Any, *given: Any) -> tuple[Any, Any]:
    """Return R with ones on the diagonal for columns that depend on those before them, and which do, None if none do.

    Nothing may be `given` for these: cotangents of the columns of Q from there on and of the rows of R, as columns.
    """
    if type(r) is np.ndarray and are_independent(r):
        return r, None
    found = apply(dependent, r, *given)
    known = visible_array(found)
    if known is not None and not known.any():
        return r, None
    return np.where(found[..., None, :] & identity_of(r.shape[-1], "?"), 1, r), found


def drop_dependent(x: Any, found: Any) -> Any:
    """Return columns, and zeros for those that depend on others."""
    return x if found is None else np.where(found[..., None, :], 0, x)


# Rules


def needs_all(q: Any) -> bool:
    """Tell whether rules of Q and R divide by the last element on the diagonal of R.

    The last column of a square Q is known from the others, but for its phase, which is fixed if it is real.
    """
    return bool(q.shape[-1] < q.shape[-2] or q.dtype.kind == "c")


def gradient_of_factors(q: Any, r: Any, g_q: Any, g_r: Any | None) -> Any:
    """Return the gradient by A = Q R, of as many rows as columns or more, of Q with orthonormal columns.

    With X = Q^H g_Q and Y = X - g_R R^H it is Q g_R + (Q Z + g_Q - Q X) R^-H, where Z is what of Y - Y^H is below the
    diagonal, and imaginary on it as Y is: the transpose of what `tangents_of_factors` says. (S. F. Walter and
    L. Lehmann, Algorithmic differentiation of linear algebra functions with application in optimum experimental design,
    2010, section 3; with real diagonals of R, as LAPACK gives them, also of complex matrices.)
    """
    inside = product(adjoint(q), g_q)
    y, given = inside, [g_q]
    if g_r is not None:
        g_r = upper_triangle(g_r)
        y, given = inside - product(g_r, adjoint(r)), [g_q, adjoint(g_r)]
    below = lower_triangle(y - adjoint(y), -1)
    if needs_all(q):
        if y.dtype.kind == "c":
            below = below + 1j * on_diagonal(diagonal_of(y).imag)
        r, found = guard_diagonal(r, *given)
        turned = drop_dependent(over_adjoint(g_q + product(q, below - inside), r), found)
        return turned if g_r is None else product(q, g_r) + turned
    first, found = guard_diagonal(r[..., :-1, :-1], *given)
    turned = drop_dependent(over_adjoint(below[..., :-1], first), found)
    turned = np.concatenate([turned, np.zeros_like(below[..., -1:])], axis=-1)
    return product(q, turned if g_r is None else g_r + turned)


def tangents_of_factors(q: Any, r: Any, change: Any) -> tuple[Any, Any, Any]:
    """Return the tangents of Q and R, and how Q turns out of its columns, for a change of A = Q R.

    For W = Q^H dA R^-1 the turn T is what of W is below the diagonal, less its adjoint, and imaginary on it; then
    dQ = Q T + (dA R^-1 - Q W) and dR = Q^H dA - T R (Walter and Lehmann 2010).
    """
    inside, own = adjoint(q) @ change, r
    if not needs_all(q):
        change, own = change[..., :-1], r[..., :-1, :-1]
    own, _ = guard_diagonal(own, change)
    moved = over_upper(change, own)
    inner = adjoint(q) @ moved
    if not needs_all(q):
        inner = np.concatenate([inner, np.zeros_like(inside[..., -1:])], axis=-1)
    below = lower_triangle(inner, -1)
    turn = below - adjoint(below)
    if inner.dtype.kind == "c":
        turn = turn + 1j * on_diagonal(diagonal_of(inner).imag)
    d_q = q @ turn
    return (d_q + (moved - q @ inner) if needs_all(q) else d_q), upper_triangle(inside - turn @ r), moved


def vjp_qr(ct: Sequence[Any], out: Any, a: Any, **_options: Any) -> Any:
    """Return the gradient of A = Q R from those of its factors.

    The columns of R after the square part are Q^H A (D. A. O. Roberts and L. R. Roberts, QR and LQ decomposition
    matrix backpropagation algorithms for square, wide, and deep matrices, 2020). Columns of a complete Q after those of
    the reduced one follow these: they stay orthogonal and do not turn among themselves.
    """
    (q, r), (ct_q, ct_r) = out, ct
    count = min(a.shape[-2:])
    g_q = np.zeros_like(q) if ct_q is None else conj(ct_q)
    if q.shape[-1] == count == a.shape[-1]:
        return conj(gradient_of_factors(q, r, g_q, None if ct_r is None else conj(ct_r)))
    g_r = np.zeros_like(r) if ct_r is None else conj(ct_r)
    first, g_first = q[..., :count], g_q[..., :count]
    square, g_square = r[..., :count, :count], g_r[..., :count, :count]
    if q.shape[-1] > count:
        rest = q[..., count:]
        g_first = g_first - rest @ (adjoint(g_q[..., count:]) @ first)
    if a.shape[-1] == count:
        return conj(gradient_of_factors(first, square, g_first, g_square))
    g_tail = g_r[..., count:]
    g_first = g_first + a[..., count:] @ adjoint(g_tail)
    head = gradient_of_factors(first, square, g_first, g_square)
    return conj(np.concatenate([head, first @ g_tail], axis=-1))


def jvp_qr(tangents: Tangents, out: Any, a: Any, **_options: Any) -> tuple[Any, Any]:
    """Return the tangents of both factors, for wide matrices and complete Q as `vjp_qr` says."""
    (t,), (q, r) = tangents, out
    count = min(a.shape[-2:])
    first, rest = q[..., :count], q[..., count:]
    d_q, d_r, moved = tangents_of_factors(first, r[..., :count, :count], t[..., :count])
    if rest.shape[-1]:
        turn = adjoint(rest) @ moved
        d_q = np.concatenate([d_q, -(first @ adjoint(turn))], axis=-1)
        d_r = np.concatenate([d_r, np.zeros_like(r[..., count:, :])], axis=-2)
    elif a.shape[-1] > count:
        tail = adjoint(d_q) @ a[..., count:] + adjoint(first) @ t[..., count:]
        d_r = np.concatenate([d_r, tail], axis=-1)
    return d_q, d_r


def evaluate_qr(a: Any, *, mode: Literal["reduced", "complete"]) -> Any:
    """Evaluate `numpy.linalg.qr`: by LAPACK's routines beneath, since the function takes 6 us around them."""
    own = a.dtype.char
    dtype = COMPUTED.get(own)
    if ROUTINES is None or dtype is None or not a.size or mode != "reduced":
        return tuple(np.linalg.qr(a, mode))
    factors = a.astype(dtype)
    scales = ROUTINES.qr_r_raw(factors)  # which writes to them
    q = ROUTINES.qr_reduced(factors, scales)
    r = upper_triangle(factors[..., : q.shape[-1], :])
    return (q, r) if dtype == own else (q.astype(own), r.astype(own))


qr: Opaque = opaque(
    "qr",
    evaluate_qr,
    vjp=vjp_qr,
    jvp=jvp_qr,
    outputs=2,
    form=Routine("(m,n)->(m,k),(k,n)"),
    fresh=True,
    routine=lambda *, mode: RoutineCall("qr") if mode == "reduced" else None,
    cost=3 * OF_ELIMINATION,
)


qr_r = opaque(
    "qr_r",
    lambda a: np.linalg.qr(a, "r"),
    vjp=lambda ct, _out, a: vjp_qr([None, ct], apply(qr, a, mode="reduced"), a),
    jvp=lambda tangents, _out, a: jvp_qr(tangents, apply(qr, a, mode="reduced"), a)[1],
    form=Routine("(m,n)->(k,n)"),
    fresh=True,
    routine=lambda: RoutineCall("qr_r"),
    cost=2 * OF_ELIMINATION,
)


SCIPY_MODES = {"reduced": "economic", "complete": "full"}
scipy_qr = variant(
    qr,
    "scipy_qr",
    of_scipy(lambda linalg, a, mode, **check: linalg.qr(a, mode=SCIPY_MODES[mode], **check), 2),
    routine=None,
)
