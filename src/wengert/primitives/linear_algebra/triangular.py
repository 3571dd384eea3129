"""Triangular systems and Cholesky's decomposition."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Params, Shape
from wengert.core.forms.routine import ALONE, Routine
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Coordinate
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque, variant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.native.lapack import on_one_thread
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    half_lower,
    lapack,
    lower_triangle,
    of_scipy,
    over_stacks,
    total,
    upper_triangle,
)

Tangents = Sequence[Any]
MOST_ROWS = 2048
"""Rows up to which a pattern of a substitution names each pair: it would take longer than to solve."""


# Triangular systems


def solve_one_triangular(a: Any, b: Any, trans: int, lower: bool, unit_diagonal: bool) -> Any:
    """Solve one triangular system with the call of LAPACK that `scipy.linalg.solve_triangular` makes."""
    same = a.dtype is b.dtype and a.dtype.char in "fdFD"
    kind = a.dtype.char if same else np.result_type(a, b, np.float32).char  # which takes 2 us
    if not b.size:
        return np.empty_like(b, dtype=kind)
    trtrs, options = lapack("trtrs", kind), {"lower": lower, "trans": trans, "unitdiag": unit_diagonal}
    if not (a.flags.f_contiguous or trans == 2):  # LAPACK reads columns, so that it is given the transposed system
        a, options = a.T, {"lower": not lower, "trans": not trans, "unitdiag": unit_diagonal}
    if b.size < ALONE[0] or len(a) > ALONE[1]:
        x, info = trtrs(a, b, **options)
    else:  # OpenBLAS's has several, however few rows there are
        x, info = on_one_thread(trtrs, (a, b), options)
    if info > 0:
        raise np.linalg.LinAlgError(f"singular matrix: resolution failed at diagonal {info - 1}")
    return x


def evaluate_solve_triangular(
    a: Any, b: Any, *, trans: int, lower: bool, unit_diagonal: bool, check_finite: bool
) -> Any:
    """Evaluate `solve_triangular`, of matrices on the right."""
    if check_finite:
        a, b = np.asarray_chkfinite(a), np.asarray_chkfinite(b)
    if a.ndim == b.ndim == 2:
        return solve_one_triangular(a, b, trans, lower, unit_diagonal)
    solve = functools.partial(solve_one_triangular, trans=trans, lower=lower, unit_diagonal=unit_diagonal)
    return over_stacks(solve, (2, 2), a, b)


def triangular_solution(a: Any, b: Any, *, trans: int = 0, lower: bool = True, unit_diagonal: bool = False) -> Any:
    """Return the solution of op(A) X = B, where op is nothing, the transpose (1) or the adjoint (2)."""
    params = {"trans": trans, "lower": lower, "unit_diagonal": unit_diagonal, "check_finite": False}
    if type(a) is np.ndarray and type(b) is np.ndarray:
        return evaluate_solve_triangular(a, b, **params)  # type: ignore[arg-type]  # of several types
    return apply(solve_triangular, a, b, **params)


def transposed_operator(x: Any, trans: int) -> Any:
    """Return the matrix of which op is given, or the other way round, without conjugating op's transpose of it."""
    return x if trans == 0 else x.mT if trans == 1 else adjoint(x)


def half_read(x: Any, lower_half: bool, unit_diagonal: bool) -> Any:
    """Return the triangle of a matrix that a solver reads."""
    return lower_triangle(x, -int(unit_diagonal)) if lower_half else upper_triangle(x, int(unit_diagonal))


def vjp_solve_triangular(
    ct: Any, out: Any, a: Any, b: Any, *, trans: int, lower: bool, unit_diagonal: bool, check_finite: bool
) -> tuple[Any, Any]:
    """Solve with the transpose: for op(A) X = B, ct_B = op(A)^-T ct and ct_op(A) = -ct_B X^T."""
    options: dict[str, Any] = {"lower": lower, "unit_diagonal": unit_diagonal}
    if trans == 2:  # the transpose of A^H is conj(A)
        ct_b = conj(triangular_solution(a, conj(ct), trans=0, **options))
    else:
        ct_b = triangular_solution(a, ct, trans=1 - trans, **options)
    ct_a = half_read(transposed_operator(-(ct_b @ out.mT), trans), lower, unit_diagonal)
    return unbroadcast(ct_a, a.shape), unbroadcast(ct_b, b.shape)


def jvp_solve_triangular(
    tangents: Tangents, out: Any, a: Any, _b: Any, *, trans: int, lower: bool, unit_diagonal: bool, check_finite: bool
) -> Any:
    """Solve with the same matrix: op(A) dX = dB - op(dA) X."""
    da, db = tangents
    change = None if da is None else -(transposed_operator(half_read(da, lower, unit_diagonal), trans) @ out)
    return triangular_solution(a, total(db, change), trans=trans, lower=lower, unit_diagonal=unit_diagonal)


def routine_of_solve_triangular(
    *, trans: int, lower: bool, unit_diagonal: bool, check_finite: bool = False
) -> RoutineCall:
    """Return how native code is called: rows are columns of the transpose, whose other half is read."""
    transposed = bool(trans)
    fields = {"finite": int(check_finite), "unit": int(unit_diagonal), "backward": int(bool(lower) == transposed)}
    fields["conjugated"] = int(trans == 2)
    return RoutineCall("solve_triangular", (0,) if transposed else (), fields)


def substitution_links(position: int, core: Shape, out: Shape, params: Params) -> list[BoxMap] | None:
    """Return which rows of a right side those of the solution depend on; None for those of the matrix, or of many."""
    if position == 0 or out[0] > MOST_ROWS:
        return None
    forward = bool(params["lower"]) != bool(params["trans"])
    rows, columns = np.nonzero(np.tri(out[0], dtype=bool) if forward else np.tri(out[0], dtype=bool).T)
    where = [[Coordinate.from_table(0, places), Coordinate.along(1)] for places in (rows, columns)]
    return [BoxMap((len(rows), core[1]), *where)] if len(rows) else []


solve_triangular: Primitive = opaque(
    "solve_triangular",
    evaluate_solve_triangular,
    vjp=vjp_solve_triangular,
    jvp=jvp_solve_triangular,
    form=Routine("(n,n),(n,m)->(n,m)", links=substitution_links),
    routine=routine_of_solve_triangular,
)


# Cholesky's decomposition


def vjp_cholesky(ct: Any, out: Any, _a: Any, *, upper: bool, **_options: Any) -> Any:
    """Return the gradient by the triangle of A that is read, from that by its factor L.

    With P = L^H g_L, halved on the diagonal and zero above, the gradient by all of A is the Hermitian part of
    S = L^-H P L^-1; an element below the diagonal stands for two. (I. Murray, Differentiation of the Cholesky
    decomposition, 2016, equations 8 to 10; S. P. Smith, Differentiation of the Cholesky algorithm, 1995.)
    """
    g = conj(ct)
    factor, g = (adjoint(out), adjoint(g)) if upper else (out, g)
    product = half_lower(adjoint(factor) @ g)
    turned = triangular_solution(factor, product, trans=2)
    doubled = triangular_solution(factor, adjoint(turned), trans=2)
    found = half_lower(doubled + adjoint(doubled))
    return found.mT if upper else conj(found)


def jvp_cholesky(tangents: Tangents, out: Any, _a: Any, *, upper: bool, **_options: Any) -> Any:
    """Return L times the half of L^-1 dA L^-H below its diagonal (Murray 2016, equation 8)."""
    (t,) = tangents
    factor, t = (adjoint(out), adjoint(t)) if upper else (out, t)
    half = half_lower(t)
    rows = triangular_solution(factor, half + adjoint(half))
    both = triangular_solution(factor, adjoint(rows))
    found = factor @ half_lower(adjoint(both))
    return adjoint(found) if upper else found


SQUARE = Routine("(n,n)->(n,n)")


cholesky = opaque(
    "cholesky",
    lambda a, *, upper: np.linalg.cholesky(a, upper=upper),
    vjp=vjp_cholesky,
    jvp=jvp_cholesky,
    form=SQUARE,
    fresh=True,
    cost=OF_ELIMINATION // 2,
    routine=lambda *, upper, check_finite=False: RoutineCall(
        "cholesky", (0, 1) if upper else (), {"finite": int(check_finite)}
    ),
)


scipy_cholesky = variant(
    cholesky,
    "scipy_cholesky",
    of_scipy(lambda linalg, a, upper, **check: linalg.cholesky(a, lower=not upper, **check), 2),
)


# Systems whose matrix is given by its Cholesky factor


def cholesky_solution(c: Any, b: Any, upper: bool) -> Any:
    """Return the solution of A X = B for the matrix A with this factor."""
    return apply(cho_solve, c, b, upper=upper, check_finite=False)


def vjp_cho_solve(ct: Any, out: Any, c: Any, b: Any, *, upper: bool, check_finite: bool) -> tuple[Any, Any]:
    """Solve with A again: g_B = A^-1 g, g_A = -g_B X^H, and by the factor of A = L L^H, g_L = (g_A + g_A^H) L."""
    g_b = cholesky_solution(c, conj(ct), upper)
    g_a = -(g_b @ adjoint(out))
    both = g_a + adjoint(g_a)
    factor = half_read(c, not upper, False)
    g_c = half_read(factor @ both if upper else both @ factor, not upper, False)
    return unbroadcast(conj(g_c), c.shape), unbroadcast(conj(g_b), b.shape)


def jvp_cho_solve(tangents: Tangents, out: Any, c: Any, _b: Any, *, upper: bool, check_finite: bool) -> Any:
    """Solve with A again: A dX = dB - dA X, where dA = dL L^H + L dL^H."""
    dc, db = tangents
    if dc is None:
        return cholesky_solution(c, db, upper)
    factor, moved = half_read(c, not upper, False), half_read(dc, not upper, False)
    product = adjoint(moved) @ factor if upper else moved @ adjoint(factor)
    return cholesky_solution(c, total(db, -((product + adjoint(product)) @ out)), upper)


cho_solve: Primitive = opaque(
    "cho_solve",
    of_scipy(lambda linalg, c, b, upper, **check: linalg.cho_solve((c, not upper), b, **check), 2, 2),
    vjp=vjp_cho_solve,
    jvp=jvp_cho_solve,
    form=Routine("(n,n),(n,m)->(n,m)"),
    routine=lambda *, upper, check_finite=False: RoutineCall(
        "cho_solve", (0,) if upper else (), {"finite": int(check_finite), "conjugated": int(upper)}
    ),
)
