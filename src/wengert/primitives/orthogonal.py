"""QR decompositions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from wengert.core.declare import opaque
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive
from wengert.core.routine import Routine
from wengert.primitives.matrices import (
    adjoint,
    conj,
    diagonal_of,
    half_lower,
    lower_triangle,
    mask_of,
    on_diagonal,
    over_stacks,
    product,
    upper_triangle,
)
from wengert.primitives.triangular import triangular_solution

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


def tall_gradient(q: Any, r: Any, g_q: Any, g_r: Any) -> Any:
    """Return the gradient by A = Q R, of as many rows as columns or more, of Q with orthonormal columns.

    That is (g_Q + Q M) R^-H, where M is Hermitian and has the upper triangle of R g_R^H - g_Q^H Q. (S. F. Walter and
    L. Lehmann, Algorithmic differentiation of linear algebra functions with application in optimum experimental design,
    2010, section 3; with real diagonals of R, as LAPACK gives them, also of complex matrices.)
    """
    inner = hermitian_of_upper(product(g_r, adjoint(r)) - product(adjoint(q), g_q))
    return over_adjoint(g_q + product(q, inner), r)


def hermitian_of_upper(x: Any) -> Any:
    """Return the Hermitian matrices with these upper triangles, of which diagonals count by their real parts."""
    if x.dtype.kind == "c":
        half = adjoint(half_lower(adjoint(x)))
        return half + adjoint(half)
    return np.where(mask_of(x, -1), x.mT, x)


def tall_tangents(q: Any, r: Any, change: Any) -> tuple[Any, Any, Any]:
    """Return the tangents of Q and R, and the turn that Q makes among its columns, for a change of A = Q R.

    For W = Q^H dA R^-1 the turn T is what of W is below the diagonal, less its adjoint, and imaginary on it; then
    dQ = Q T + (dA R^-1 - Q W) and dR = (W - T) R (Walter and Lehmann 2010).
    """
    moved = over_upper(change, r)
    inner = adjoint(q) @ moved
    below = lower_triangle(inner, -1)
    turn = below - adjoint(below)
    if inner.dtype.kind == "c":
        turn = turn + 1j * on_diagonal(diagonal_of(inner).imag)
    return q @ turn + (moved - q @ inner), upper_triangle((inner - turn) @ r), moved


def vjp_qr(ct: Sequence[Any], out: Any, a: Any, **_options: Any) -> Any:
    """Return the gradient of A = Q R from those of its factors.

    The columns of R after the square part are Q^H A (D. A. O. Roberts and L. R. Roberts, QR and LQ decomposition
    matrix backpropagation algorithms for square, wide, and deep matrices, 2020). Columns of a complete Q after those of
    the reduced one follow these: they stay orthogonal and do not turn among themselves.
    """
    (q, r), (ct_q, ct_r) = out, ct
    count = min(a.shape[-2:])
    g_q = np.zeros_like(q) if ct_q is None else conj(ct_q)
    g_r = np.zeros_like(r) if ct_r is None else conj(ct_r)
    if q.shape[-1] == count == a.shape[-1]:
        return conj(tall_gradient(q, r, g_q, g_r))
    first, g_first = q[..., :count], g_q[..., :count]
    square, g_square = r[..., :count, :count], g_r[..., :count, :count]
    if q.shape[-1] > count:
        rest = q[..., count:]
        g_first = g_first - rest @ (adjoint(g_q[..., count:]) @ first)
    if a.shape[-1] == count:
        return conj(tall_gradient(first, square, g_first, g_square))
    g_tail = g_r[..., count:]
    g_first = g_first + a[..., count:] @ adjoint(g_tail)
    head = tall_gradient(first, square, g_first, g_square)
    return conj(np.concatenate([head, first @ g_tail], axis=-1))


def jvp_qr(tangents: Tangents, out: Any, a: Any, **_options: Any) -> tuple[Any, Any]:
    """Return the tangents of both factors, for wide matrices and complete Q as `vjp_qr` says."""
    (t,), (q, r) = tangents, out
    count = min(a.shape[-2:])
    first, rest = q[..., :count], q[..., count:]
    d_q, d_r, moved = tall_tangents(first, r[..., :count, :count], t[..., :count])
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


qr: Primitive = opaque(
    "qr", evaluate_qr, vjp=vjp_qr, jvp=jvp_qr, outputs=2, form=Routine("(m,n)->(m,k),(k,n)"), fresh=True
)


def evaluate_qr_r(a: Any) -> Any:
    """Evaluate `numpy.linalg.qr` of mode "r"."""
    return np.linalg.qr(a, "r")


def vjp_qr_r(ct: Any, _out: Any, a: Any) -> Any:
    """Return the gradient by way of both factors."""
    return vjp_qr([None, ct], apply(qr, a, mode="reduced"), a)


def jvp_qr_r(tangents: Tangents, _out: Any, a: Any) -> Any:
    """Return the tangent by way of both factors."""
    return jvp_qr(tangents, apply(qr, a, mode="reduced"), a)[1]


qr_r = opaque("qr_r", evaluate_qr_r, vjp=vjp_qr_r, jvp=jvp_qr_r, form=Routine("(m,n)->(k,n)"), fresh=True)


def evaluate_scipy_qr(a: Any, *, mode: str, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.qr` with NumPy's modes: of the complete R, too."""
    from scipy import linalg

    def factors(x: Any) -> Any:
        return linalg.qr(x, mode="economic" if mode == "reduced" else "full", check_finite=check_finite)

    return over_stacks(factors, [2], a)


scipy_qr = opaque("scipy_qr", evaluate_scipy_qr, vjp=vjp_qr, jvp=jvp_qr, outputs=2, form=Routine("(m,n)->(m,k),(k,n)"))
