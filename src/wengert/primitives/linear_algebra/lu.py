"""LU decompositions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.errors import UsageError
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import none_holds
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    depends_on_others,
    diagonal_of,
    lower_triangle,
    of_scipy,
    over_stacks,
    plain_routine,
    total,
    upper_triangle,
)
from wengert.primitives.linear_algebra.triangular import transposed_operator, triangular_solution

Tangents = Sequence[Any]
UNIT: dict[str, Any] = {"lower": True, "unit_diagonal": True}


# Rules of P^T A = L U: L is trapezoidal with ones on its diagonal, U with rows as many as there are


def evaluate_pivots(u: Any, *given: Any) -> Any:
    """Evaluate `pivots`: the first rows of U with ones for zeros on the diagonal.

    Below such a zero L has what rounding or nothing decided, so it is an error if something is given for columns of L
    from there on, or for later rows of U, as columns.
    """
    zero = diagonal_of(u) == 0
    stack = np.broadcast_shapes(u.shape[:-2], *[x.shape[:-2] for x in given])
    if zero.any():
        for x in given:
            later = np.logical_or.accumulate(np.any(x != 0, axis=-2)[..., ::-1], axis=-1)[..., ::-1]
            if np.any(zero & later[..., : zero.shape[-1]]):
                raise depends_on_others("lu", "the matrix itself, and det for the product of the diagonal")
    u = np.where(zero_pivots(u), 1, u)
    return np.broadcast_to(u, (*stack, *u.shape[-2:])).copy()


def zero_pivots(u: Any) -> Any:
    """Return which elements of matrices are zeros on the diagonal."""
    return (diagonal_of(u) == 0)[..., None, :] & np.eye(u.shape[-1], dtype=bool)


def vjp_pivots(ct: Any, _out: Any, u: Any, *given: Any) -> Any:
    """Pass on what belongs to elements that are not replaced."""
    return unbroadcast(np.where(zero_pivots(u), 0, ct), u.shape), *[None] * len(given)


def jvp_pivots(tangents: Tangents, out: Any, u: Any, *_given: Any) -> Any:
    """Pass on what belongs to elements that are not replaced."""
    if tangents[0] is None:
        return np.zeros_like(out)
    return np.where(zero_pivots(u), 0, tangents[0]) + np.zeros_like(out)


def usual_pivots(u: Any, *given: Any) -> tuple[Any, Any]:
    """Return U, where it has no zeros on the diagonal."""
    return np.copy(u), none_holds(diagonal_of(u) == 0)


pivots_of = opaque(
    "pivots",
    evaluate_pivots,
    vjp=vjp_pivots,
    jvp=jvp_pivots,
    form=Routine("(k,k),(p,l)->(k,k)"),
    usual_case=usual_pivots,
)


def divisors(l: Any, u: Any, *given: Any) -> Any:  # noqa: E741 - the name that everybody gives it
    """Return of U what rules divide by: rows for each column of L that has something below the diagonal."""
    count = l.shape[-1] - (l.shape[-2] == l.shape[-1])
    square = u[..., :count, :count]
    known = visible_array(square)
    if known is not None and diagonal_of(known).all():
        return square
    return apply(pivots_of, square, *given)


def gradient_of_product(l: Any, u: Any, g_l: Any, g_u: Any) -> Any:  # noqa: E741 - as above
    """Return the gradient by B = L U from those of its factors.

    With k rows and columns of both in front, L_1 and U_1, it is in front L_1^-H (tril(L_1^H g_L - g_U U_1^H, -1) U_1^-H
    + triu(g_U)); rows below are L_2 = B_2 U_1^-1, columns behind U_2 = L_1^-1 B_2. The last row of U_1 is not divided
    by unless there are rows below. (The factors' tangents are L tril(L^-1 dB U^-1, -1) and L^-1 dB - tril(L^-1 dB U^-1,
    -1) U: F. de Hoog, R. Anderssen and M. Lukas, Differentiation of matrix functionals using triangular factorization,
    2011, section 3.)
    """
    count = l.shape[-1]
    first, square = l[..., :count, :], u[..., :, :count]
    g_first, g_square = lower_triangle(g_l[..., :count, :], -1), upper_triangle(g_u[..., :, :count])
    own = divisors(l, u, lower_triangle(g_l, -1), adjoint(upper_triangle(g_u))[..., 1:])
    below, behind = None, None
    if l.shape[-2] > count:
        below = adjoint(triangular_solution(own, adjoint(g_l[..., count:, :]), lower=False))
        g_square = g_square - upper_triangle(adjoint(l[..., count:, :]) @ below)
    if u.shape[-1] > count:
        behind = triangular_solution(first, g_u[..., :, count:], trans=2, **UNIT)
        g_first = g_first - lower_triangle(behind @ adjoint(u[..., :, count:]), -1)
    inner = lower_triangle(adjoint(first) @ g_first - g_square @ adjoint(square), -1)
    found = adjoint(triangular_solution(own, adjoint(inner[..., : own.shape[-1]]), lower=False))
    if own.shape[-1] < count:
        found = np.concatenate([found, np.zeros_like(inner[..., own.shape[-1] :])], axis=-1)
    found = triangular_solution(first, found + g_square, trans=2, **UNIT)
    if below is not None:
        found = np.concatenate([found, below], axis=-2)
    return found if behind is None else np.concatenate([found, behind], axis=-1)


def tangents_of_factors(l: Any, u: Any, change: Any) -> tuple[Any, Any]:  # noqa: E741 - as above
    """Return the tangents of L and U for a change of B = L U."""
    count = l.shape[-1]
    first, square = l[..., :count, :], u[..., :, :count]
    rows = triangular_solution(first, change[..., :count, :count], **UNIT)
    own = divisors(l, u, change)
    inner = adjoint(triangular_solution(own, adjoint(rows[..., : own.shape[-1]]), trans=2, lower=False))
    if own.shape[-1] < count:
        inner = np.concatenate([inner, np.zeros_like(rows[..., own.shape[-1] :])], axis=-1)
    turn = lower_triangle(inner, -1)
    d_l, d_u = first @ turn, upper_triangle(rows - turn @ square)
    if l.shape[-2] > count:
        rest = change[..., count:, :] - l[..., count:, :] @ d_u
        d_l = np.concatenate([d_l, adjoint(triangular_solution(own, adjoint(rest), trans=2, lower=False))], axis=-2)
    elif u.shape[-1] > count:
        rest = change[..., :, count:] - d_l @ u[..., :, count:]
        d_u = np.concatenate([d_u, triangular_solution(first, rest, **UNIT)], axis=-1)
    return d_l, d_u


def rows_at(x: Any, order: Any) -> Any:
    """Return the rows of matrices in an order of their own each."""
    return np.take_along_axis(x, order[..., None].astype(int), axis=-2)


# L, U and the order of rows


def evaluate_lu(a: Any, *, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.lu` with row i of A in place p_i of the product."""
    from scipy import linalg

    native = a.astype(a.dtype.newbyteorder("="), copy=False)  # SciPy reads no other, and gives zeros without an error
    return tuple(linalg.lu(native, check_finite=check_finite, p_indices=True))


def vjp_lu(ct: Sequence[Any], out: Any, _a: Any, *, check_finite: bool) -> Any:
    """Return the gradient of A = P L U; which rows are exchanged is constant."""
    p, l, u = out  # noqa: E741 - as above
    g_l = np.zeros_like(l) if ct[1] is None else conj(ct[1])
    g_u = np.zeros_like(u) if ct[2] is None else conj(ct[2])
    return conj(rows_at(gradient_of_product(l, u, g_l, g_u), p))


def jvp_lu(tangents: Tangents, out: Any, _a: Any, *, check_finite: bool) -> tuple[Any, Any, Any]:
    """Return the tangents of the factors."""
    p, l, u = out  # noqa: E741 - as above
    return None, *tangents_of_factors(l, u, rows_at(tangents[0], np.argsort(p, axis=-1)))


lu = opaque("lu", evaluate_lu, vjp=vjp_lu, jvp=jvp_lu, outputs=3, form=Routine("(m,n)->(m),(m,k),(k,n)"))


# Both in one matrix


def evaluate_exchanged_rows(x: Any, pivots: Any, *, backward: bool) -> Any:
    """Evaluate `exchanged_rows`: row i is exchanged with row pivots_i, one after the other, or that is undone."""

    def one(matrix: Any, exchanges: Any) -> Any:
        order = list(range(exchanges.size))
        steps = list(enumerate(exchanges.tolist()))
        for i, j in reversed(steps) if backward else steps:
            order[i], order[j] = order[j], order[i]
        return matrix[order]

    return over_stacks(one, (2, 1), x, pivots)


def vjp_exchanged_rows(ct: Any, _out: Any, x: Any, pivots: Any, *, backward: bool) -> tuple[Any, None]:
    """Undo it."""
    return unbroadcast(apply(exchanged_rows, ct, pivots, backward=not backward), x.shape), None


exchanged_rows: Primitive = opaque(
    "exchanged_rows",
    evaluate_exchanged_rows,
    vjp=vjp_exchanged_rows,
    jvp=lambda tangents, _out, _x, pivots, *, backward: apply(exchanged_rows, tangents[0], pivots, backward=backward),
    form=Routine("(n,m),(n)->(n,m)"),
    routine=lambda *, backward: RoutineCall("exchange_rows", (), {"backward": int(backward)}),
)


def unpack_factors(packed: Any) -> tuple[Any, Any]:
    """Return L and U of one matrix that holds both."""
    return lower_triangle(packed, -1) + np.eye(packed.shape[-1], dtype=packed.dtype), upper_triangle(packed)


def vjp_lu_factor(ct: Sequence[Any], out: Any, _a: Any, *, check_finite: bool) -> Any:
    """Return the gradient of A = P L U, L without its diagonal and U being one matrix."""
    packed, pivots = out
    gradient = gradient_of_product(*unpack_factors(packed), conj(ct[0]), conj(ct[0]))
    return conj(apply(exchanged_rows, gradient, pivots, backward=True))


def jvp_lu_factor(tangents: Tangents, out: Any, _a: Any, *, check_finite: bool) -> tuple[Any, Any]:
    """Return the tangent of the matrix that holds both factors."""
    packed, pivots = out
    change = apply(exchanged_rows, tangents[0], pivots, backward=False)
    d_l, d_u = tangents_of_factors(*unpack_factors(packed), change)
    return d_l + d_u, None


lu_factor = opaque(
    "lu_factor",
    of_scipy(lambda linalg, a, **check: tuple(linalg.lu_factor(a, **check)), 2),
    vjp=vjp_lu_factor,
    jvp=jvp_lu_factor,
    outputs=2,
    form=Routine("(n,n)->(n,n),(n)"),
    routine=plain_routine("lu_factor"),
    cost=OF_ELIMINATION,
)


def lu_solve_by_scipy(linalg: Any, packed: Any, b: Any, pivots: Any, **options: Any) -> Any:
    """Return what `scipy.linalg.lu_solve` does of one matrix, and one on the right."""
    rows = packed.shape[-1]
    if pivots.shape[-1] != rows or not np.all((pivots >= 0) & (pivots < rows)):  # LAPACK would write elsewhere
        needed = f"{rows} of them, each from 0 to {rows - 1}, are needed"
        raise UsageError("lu_solve", f"pivots {pivots.tolist()!s:.40}", needed, "Pass what lu_factor gave")
    return linalg.lu_solve((packed, pivots), b, **options)


def lu_solution(packed: Any, b: Any, pivots: Any, trans: int) -> Any:
    """Return the solution of op(A) X = B."""
    return apply(lu_solve, packed, b, pivots, trans=trans, check_finite=False)


def vjp_lu_solve(
    ct: Any, out: Any, packed: Any, b: Any, pivots: Any, *, trans: int, check_finite: bool
) -> tuple[Any, Any, None]:
    """Solve with the adjoint: g_B = op(A)^-H g, g_op(A) = -g_B X^H, and for P^T A = L U, g_L = g U^H, g_U = L^H g.

    The gradient of A is a product of few columns, so its products with triangles are those of these columns.
    """
    g = conj(ct)
    if trans == 1:  # the adjoint of A^T is conj(A)
        g_b = conj(lu_solution(packed, ct, pivots, 0))
        left, right = conj(out), conj(g_b)
    else:
        g_b = lu_solution(packed, g, pivots, 2 - trans)
        left, right = (g_b, out) if trans == 0 else (out, g_b)
    left = apply(exchanged_rows, left, pivots, backward=False)
    l, u = unpack_factors(packed)  # noqa: E741 - as above
    g_packed = lower_triangle(left @ adjoint(u @ right), -1) + upper_triangle((adjoint(l) @ left) @ adjoint(right))
    return unbroadcast(conj(-g_packed), packed.shape), unbroadcast(conj(g_b), b.shape), None


def jvp_lu_solve(
    tangents: Tangents, out: Any, packed: Any, _b: Any, pivots: Any, *, trans: int, check_finite: bool
) -> Any:
    """Solve with the same matrix: op(A) dX = dB - op(dA) X, where P^T dA = dL U + L dU."""
    moved, db, _ = tangents
    change = None
    if moved is not None:
        parts = *unpack_factors(packed), lower_triangle(moved, -1), upper_triangle(moved)
        low, up, d_low, d_up = (transposed_operator(x, trans) for x in parts)
        if trans == 0:
            change = apply(exchanged_rows, -(d_low @ (up @ out) + low @ (d_up @ out)), pivots, backward=True)
        else:
            rows = apply(exchanged_rows, out, pivots, backward=False)
            change = -(up @ (d_low @ rows) + d_up @ (low @ rows))
    return lu_solution(packed, total(db, change), pivots, trans)


lu_solve: Primitive = opaque(
    "lu_solve",
    of_scipy(lu_solve_by_scipy, 2, 2, 1),
    vjp=vjp_lu_solve,
    jvp=jvp_lu_solve,
    form=Routine("(n,n),(n,m),(n)->(n,m)"),
    routine=lambda *, trans, check_finite=False: RoutineCall(
        "lu_solve", (), {"finite": int(check_finite), "backward": int(trans > 0), "conjugated": int(trans == 2)}
    ),
)
