"""Equations of Sylvester and Lyapunov, and systems with banded and Toeplitz matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.linear_algebra.matrices import adjoint, of_scipy, total

Tangents = Sequence[Any]


# A X + X B = Q


def vjp_sylvester(ct: Any, out: Any, a: Any, b: Any, q: Any) -> tuple[Any, Any, Any]:
    """Solve the transposed equation A^T Y + Y B^T = ct: ct_Q = Y, ct_A = -Y X^T, ct_B = -X^T Y."""
    y = apply(solve_sylvester, a.mT, b.mT, ct)
    return (
        unbroadcast(-(y @ out.mT), a.shape),
        unbroadcast(-(out.mT @ y), b.shape),
        unbroadcast(y, q.shape),
    )


def jvp_sylvester(tangents: Tangents, out: Any, a: Any, b: Any, _q: Any) -> Any:
    """Solve A dX + dX B = dQ - dA X - X dB."""
    da, db, dq = tangents
    change = total(dq, None if da is None else -(da @ out), None if db is None else -(out @ db))
    return apply(solve_sylvester, a, b, change)


solve_sylvester: Primitive = opaque(
    "solve_sylvester",
    of_scipy(lambda linalg, a, b, q: linalg.solve_sylvester(a, b, q), 2, 2, 2),
    vjp=vjp_sylvester,
    jvp=jvp_sylvester,
    form=Routine("(m,m),(n,n),(m,n)->(m,n)"),
)


# A X + X A^H = Q


def vjp_lyapunov(ct: Any, out: Any, a: Any, q: Any) -> tuple[Any, Any]:
    """Solve the transposed equation A^T Y + Y conj(A) = ct: ct_Q = Y, ct_A = -Y X^T - (X^T Y)^H."""
    y = apply(solve_continuous_lyapunov, a.mT, ct)
    return unbroadcast(-(y @ out.mT) - adjoint(out.mT @ y), a.shape), unbroadcast(y, q.shape)


def jvp_lyapunov(tangents: Tangents, out: Any, a: Any, _q: Any) -> Any:
    """Solve A dX + dX A^H = dQ - dA X - X dA^H."""
    da, dq = tangents
    change = total(dq, None if da is None else -(da @ out) - out @ adjoint(da))
    return apply(solve_continuous_lyapunov, a, change)


solve_continuous_lyapunov: Primitive = opaque(
    "solve_continuous_lyapunov",
    of_scipy(lambda linalg, a, q: linalg.solve_continuous_lyapunov(a, q), 2, 2),
    vjp=vjp_lyapunov,
    jvp=jvp_lyapunov,
    form=Routine("(n,n),(n,n)->(n,n)"),
)


# A X A^H - X + Q = 0


def vjp_discrete_lyapunov(ct: Any, out: Any, a: Any, q: Any, *, method: str | None) -> tuple[Any, Any]:
    """Solve A^T Y conj(A) - Y + ct = 0: ct_Q = Y, ct_A = Y (X A^H)^T + ((A X)^T Y)^H."""
    y = apply(solve_discrete_lyapunov, a.mT, ct, method=method)
    ct_a = y @ (out @ adjoint(a)).mT + adjoint((a @ out).mT @ y)
    return unbroadcast(ct_a, a.shape), unbroadcast(y, q.shape)


def jvp_discrete_lyapunov(tangents: Tangents, out: Any, a: Any, _q: Any, *, method: str | None) -> Any:
    """Solve A dX A^H - dX + (dQ + dA X A^H + A X dA^H) = 0."""
    da, dq = tangents
    change = total(dq, None if da is None else da @ out @ adjoint(a) + a @ out @ adjoint(da))
    return apply(solve_discrete_lyapunov, a, change, method=method)


solve_discrete_lyapunov: Primitive = opaque(
    "solve_discrete_lyapunov",
    of_scipy(lambda linalg, a, q, method: linalg.solve_discrete_lyapunov(a, q, method), 2, 2),
    vjp=vjp_discrete_lyapunov,
    jvp=jvp_discrete_lyapunov,
    form=Routine("(n,n),(n,n)->(n,n)"),
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
