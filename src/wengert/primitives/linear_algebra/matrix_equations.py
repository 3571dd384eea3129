"""Equations of Sylvester, Lyapunov and Riccati, and systems with banded and Toeplitz matrices."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.signatures import Rule
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.matrices import adjoint, of_scipy, total

Tangents = Sequence[Any]


# A X + X B = Q and its like


def equation(
    name: str, evaluate: Callable[..., Any], form: Routine, transposed: Rule, back: Rule, change: Rule
) -> Primitive:
    """Declare the solution X of L(A, ...) X = Q, which is linear in Q, the last operand.

    Args:
        name: of the primitive.
        evaluate: its evaluation.
        form: of stacks of matrices.
        transposed: the other operands of the transposed equation, from those of this one.
        back: the cotangents of the other operands, from Y, which solves that equation for the cotangent, X, and them.
        change: -dL X for the tangents of the other operands, X, and them.
    """

    def vjp(ct: Any, out: Any, *operands: Any, **params: Any) -> tuple[Any, ...]:
        *others, _ = operands
        y = apply(primitive, *transposed(*others), ct, **params)
        return tuple([unbroadcast(z, x.shape) for z, x in zip((*back(y, out, *others), y), operands, strict=True)])

    def jvp(tangents: Tangents, out: Any, *operands: Any, **params: Any) -> Any:
        *moved, dq = tangents
        others = operands[:-1]
        return apply(primitive, *others, total(dq, *change(*moved, out, *others)), **params)

    primitive: Primitive = opaque(name, evaluate, vjp=vjp, jvp=jvp, form=form)
    return primitive


solve_sylvester = equation(  # A^T Y + Y B^T = ct
    "solve_sylvester",
    of_scipy(lambda linalg, a, b, q: linalg.solve_sylvester(a, b, q), 2, 2, 2),
    Routine("(m,m),(n,n),(m,n)->(m,n)"),
    transposed=lambda a, b: (a.mT, b.mT),
    back=lambda y, x, _a, _b: (-(y @ x.mT), -(x.mT @ y)),
    change=lambda da, db, x, _a, _b: (None if da is None else -(da @ x), None if db is None else -(x @ db)),
)
solve_continuous_lyapunov = equation(  # A X + X A^H = Q, and A^T Y + Y conj(A) = ct
    "solve_continuous_lyapunov",
    of_scipy(lambda linalg, a, q: linalg.solve_continuous_lyapunov(a, q), 2, 2),
    Routine("(n,n),(n,n)->(n,n)"),
    transposed=lambda a: (a.mT,),
    back=lambda y, x, _a: (-(y @ x.mT) - adjoint(x.mT @ y),),
    change=lambda da, x, _a: () if da is None else (-(da @ x) - x @ adjoint(da),),
)
solve_discrete_lyapunov = equation(  # A X A^H - X + Q = 0, and A^T Y conj(A) - Y + ct = 0
    "solve_discrete_lyapunov",
    of_scipy(lambda linalg, a, q, method: linalg.solve_discrete_lyapunov(a, q, method), 2, 2),
    Routine("(n,n),(n,n)->(n,n)", like=lambda a, q, method: (a + q) / 1),  # an identity has no such X
    transposed=lambda a: (a.mT,),
    back=lambda y, x, a: (y @ (x @ adjoint(a)).mT + adjoint((a @ x).mT @ y),),
    change=lambda da, x, a: () if da is None else (da @ x @ adjoint(a) + a @ x @ adjoint(da),),
)


def of_discrete_lyapunov(a: Any, q: Any) -> Any:
    """Return the solution X of A X A^H - X + Q = 0 by the method that SciPy chooses."""
    return apply(solve_discrete_lyapunov, a, q, method="direct" if a.shape[-1] < 10 else "bilinear")


# Riccati's equations for X, which is Hermitian: of what a controller u = -K x costs


def riccati(
    name: str,
    gain: Callable[..., Any],
    weight: Callable[..., Any],
    tangent: Callable[..., Any],
    cotangent: Callable[..., Any],
) -> Primitive:
    """Declare the solution X of a Riccati equation in A, B, Q, R, whose change is one of Lyapunov's.

    With the closed loop C = A - B K and M = dA - dB K, what X itself does not change of the equation is
    dQ + M^H V + V^H M + K^H dR K (Kao and Hennequin, arXiv:2011.11430). Of Q and R the Hermitian part counts.

    Args:
        name: of the primitive, and of SciPy's function.
        gain: K, from X, A, B and R.
        weight: V, from X and C.
        tangent: dX, from C^H and that change.
        cotangent: of that change, from conj(C) and the cotangent of X.
    """

    def hermitian(x: Any) -> Any:
        return (x + adjoint(x)) / 2

    def of_loop(x: Any, a: Any, b: Any, r: Any) -> tuple[Any, Any, Any]:
        k = gain(x, a, b, r)
        loop = a - b @ k
        return k, loop, weight(x, loop)

    def vjp(ct: Any, out: Any, a: Any, b: Any, q: Any, r: Any, balanced: bool) -> tuple[Any, ...]:
        k, loop, v = of_loop(out, a, b, r)
        z = hermitian(cotangent(adjoint(loop).mT, ct))
        ct_a = 2 * (conj(v) @ z)
        found = (ct_a, -(ct_a @ k.mT), z, hermitian(conj(k) @ z @ k.mT))
        return tuple([unbroadcast(y, x.shape) for y, x in zip(found, (a, b, q, r), strict=True)])

    def jvp(tangents: Tangents, out: Any, a: Any, b: Any, _q: Any, r: Any, balanced: bool) -> Any:
        da, db, dq, dr = tangents
        k, loop, v = of_loop(out, a, b, r)
        terms = [None if dq is None else hermitian(dq), None if dr is None else adjoint(k) @ hermitian(dr) @ k]
        if da is not None or db is not None:
            moved = adjoint(v) @ total(da, None if db is None else -(db @ k))
            terms.append(moved + adjoint(moved))
        return tangent(adjoint(loop), total(*terms))

    def like(a: Any, b: Any, q: Any, r: Any, balanced: bool) -> Any:  # of SciPy's two dtypes
        return a + q + b[..., :1, :1] + r[..., :1, :1] + np.float64(0)

    evaluate = of_scipy(
        lambda linalg, *given, **options: getattr(linalg, name)(*given, **options), 2, 2, 2, 2, like=like
    )
    form = Routine("(n,n),(n,m),(n,n),(m,m)->(n,n)", waking=True, like=like)
    return opaque(name, evaluate, vjp=vjp, jvp=jvp, form=form)


solve_continuous_are = riccati(  # A^H X + X A - X B R^-1 B^H X + Q = 0
    "solve_continuous_are",
    gain=lambda x, _a, b, r: np.linalg.solve(r, adjoint(b) @ x),
    weight=lambda x, _loop: x,
    tangent=lambda left, change: apply(solve_continuous_lyapunov, left, -change),
    cotangent=lambda left, ct: -apply(solve_continuous_lyapunov, left, ct),
)
solve_discrete_are = riccati(  # A^H X A - X - A^H X B (R + B^H X B)^-1 B^H X A + Q = 0
    "solve_discrete_are",
    gain=lambda x, a, b, r: np.linalg.solve(r + adjoint(b) @ x @ b, adjoint(b) @ x @ a),
    weight=lambda x, loop: x @ loop,
    tangent=of_discrete_lyapunov,
    cotangent=of_discrete_lyapunov,
)


# Banded matrices: element (i, j) stands at (above + i - j, j)


def banded_solution(ab: Any, b: Any, below: int, above: int) -> Any:
    """Return the solution of a banded system."""
    return apply(solve_banded, ab, b, below=below, above=above, check_finite=False)


def shift_elements(x: Any, distance: int, axis: int) -> Any:
    """Return an array with element i + distance in place i along an axis, and zeros where there is none."""
    count = x.shape[axis]
    inside = slice(min(distance, count), None) if distance >= 0 else slice(None, max(count + distance, 0))
    index = [slice(None)] * x.ndim
    index[axis] = inside
    kept = x[tuple(index)]
    lengths = list(x.shape)
    lengths[axis] = min(abs(distance), count)
    parts = [kept, np.zeros(lengths, x.dtype)]
    return np.concatenate(parts if distance >= 0 else parts[::-1], axis=axis)


def transposed_bands(ab: Any, below: int, above: int) -> Any:
    """Return the bands of the transpose."""
    return np.stack(
        [shift_elements(ab[..., below + above - i, :], i - below, -1) for i in range(below + above + 1)], axis=-2
    )


def vjp_banded(ct: Any, out: Any, ab: Any, b: Any, *, below: int, above: int, check_finite: bool) -> tuple[Any, Any]:
    """Solve with the transpose: ct_B = A^-T ct, and ct_A = -ct_B X^T within the bands."""
    ct_b = banded_solution(transposed_bands(ab, below, above), ct, above, below)
    rows = [-np.sum(shift_elements(ct_b, i - above, -2) * out, axis=-1) for i in range(below + above + 1)]
    return unbroadcast(np.stack(rows, axis=-2), ab.shape), unbroadcast(ct_b, b.shape)


def jvp_banded(tangents: Tangents, out: Any, ab: Any, _b: Any, *, below: int, above: int, check_finite: bool) -> Any:
    """Solve with the same matrix: A dX = dB - dA X."""
    da, db = tangents
    change = None
    if da is not None:
        terms = [shift_elements(da[..., i, :, None] * out, above - i, -2) for i in range(below + above + 1)]
        change = -total(*terms)
    return banded_solution(ab, total(db, change), below, above)


solve_banded: Primitive = opaque(
    "solve_banded",
    of_scipy(lambda linalg, ab, b, below, above, **check: linalg.solve_banded((below, above), ab, b, **check), 2, 2),
    vjp=vjp_banded,
    jvp=jvp_banded,
    form=Routine("(d,n),(n,m)->(n,m)"),
)


# Toeplitz matrices: element (i, j) is c_(i - j), or r_(j - i) above the diagonal


def toeplitz_matrix(c: Any, r: Any) -> Any:
    """Return the matrices with these first columns and, but for their first elements, first rows."""
    rows, columns = c.shape[-1], r.shape[-1]
    values = np.concatenate([r[..., :0:-1], c], axis=-1)
    return values[..., np.arange(rows)[:, None] - np.arange(columns) + columns - 1]


def sums_of_diagonals(x: Any) -> Any:
    """Return the sums of the diagonals of square matrices, from the last element of the first row to that of the last.

    With the columns in reverse order they are antidiagonals, and in rows that are longer by one those are columns.
    """
    n = x.shape[-1]
    wide = np.concatenate([x[..., ::-1], np.zeros_like(x)], axis=-1)
    flat = np.reshape(wide, (*x.shape[:-2], 2 * n * n))[..., : n * (2 * n - 1)]
    return np.sum(np.reshape(flat, (*x.shape[:-2], n, 2 * n - 1)), axis=-2)


def transposed_row(c: Any, r: Any) -> Any:
    """Return the first row of a Toeplitz matrix, whose first element is that of the first column."""
    return np.concatenate([c[..., :1], r[..., 1:]], axis=-1)


def vjp_toeplitz(ct: Any, out: Any, c: Any, r: Any, b: Any, *, check_finite: bool) -> tuple[Any, Any, Any]:
    """Solve with the transpose: ct_B = T^-T ct; an element of c or r stands for its diagonal of -ct_B X^T."""
    ct_b = apply(solve_toeplitz, transposed_row(c, r), c, ct, check_finite=False)
    sums = -sums_of_diagonals(ct_b @ out.mT)
    n = c.shape[-1]
    ct_r = np.concatenate([np.zeros_like(sums[..., :1]), sums[..., n - 2 :: -1][..., : n - 1]], axis=-1)
    return unbroadcast(sums[..., n - 1 :], c.shape), unbroadcast(ct_r, r.shape), unbroadcast(ct_b, b.shape)


def jvp_toeplitz(tangents: Tangents, out: Any, c: Any, r: Any, _b: Any, *, check_finite: bool) -> Any:
    """Solve with the same matrix: T dX = dB - dT X."""
    dc, dr, db = tangents
    change = None
    if dc is not None or dr is not None:
        dc, dr = (np.zeros_like(x) if t is None else t for t, x in ((dc, c), (dr, r)))
        change = -(toeplitz_matrix(dc, dr) @ out)
    return apply(solve_toeplitz, c, r, total(db, change), check_finite=False)


solve_toeplitz: Primitive = opaque(
    "solve_toeplitz",
    of_scipy(lambda linalg, c, r, b, **check: linalg.solve_toeplitz((c, r), b, **check), 1, 1, 2),
    vjp=vjp_toeplitz,
    jvp=jvp_toeplitz,
    form=Routine("(n),(n),(n,m)->(n,m)"),
)
