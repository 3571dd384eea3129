"""Eigenvalues of Hermitian matrices A relative to definite ones B: A V = B V diag(w), where V^H B V = 1.

(M. S. Magnus and H. Neudecker, Matrix Differential Calculus, 1988, chapter 8, for one of them; several together as in
`spectra`, with the length of vectors measured by B.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.clusters import (
    along_clusters,
    diagonal_at,
    inner_gradient,
    over_gaps,
    require_equal,
    turned_by,
    turned_diagonal,
    with_settled,
)
from wengert.primitives.linear_algebra.matrices import adjoint, diagonal_of, folded, hermitian_from, over_stacks

Tangents = Sequence[Any]


def means_of(w: Any) -> Any:
    """Return (w_i + w_j) / 2."""
    return (w[..., None, :] + w[..., :, None]) / 2


def in_basis(v: Any, change: Any, uplo: str) -> Any:
    """Return V^H dA V for the change of the triangle that is read, 0 if there is none."""
    return 0.0 if change is None else adjoint(v) @ hermitian_from(change, uplo) @ v


def evaluate_relative_eigh(a: Any, b: Any, *, uplo: str, check_finite: bool, of_values: bool = False) -> Any:
    """Evaluate `scipy.linalg.eigh` of two matrices."""
    from scipy import linalg

    return over_stacks(lambda a, b: linalg.eigh(a, b, lower=uplo == "L", check_finite=check_finite), (2, 2), a, b)


def vjp_relative_eigh(
    ct: Sequence[Any], out: Any, a: Any, b: Any, *, uplo: str, of_values: bool = False, **options: Any
) -> Any:
    """Return G = V I V^H by A, with I as for `eigh`, and -V ((w_i + w_j) / 2 I_ij + (X + X^H) / 4) V^H by B.

    Here X = V^H g_V. Both follow from dV = V ((M - (w_i + w_j) / 2 N) / (w_j - w_i) - N / 2) for M = V^H dA V and
    N = V^H dB V.
    """
    (w, v), (ct_w, ct_v) = out, ct
    if ct_v is None:
        return vjp_relative_eigvalsh(ct_w, w, a, b, uplo=uplo, **options)
    v = with_settled(v, w)
    x = adjoint(v) @ conj(ct_v) / 2
    inner = inner_gradient(x, ct_w, w, of_values)
    by_b = -(means_of(w) * inner + (x + adjoint(x)) / 2)
    return tuple([conj(folded(v @ part @ adjoint(v), uplo)) for part in (inner, by_b)])


def turn_of(tangents: Tangents, w: Any, v: Any, uplo: str) -> tuple[Any, Any]:
    """Return T = M - (w_i + w_j) / 2 N and N."""
    m, n = (in_basis(v, change, uplo) for change in tangents)
    return m - means_of(w) * n, n


def jvp_relative_eigh(
    tangents: Tangents, out: Any, _a: Any, _b: Any, *, uplo: str, of_values: bool = False, **_options: Any
) -> tuple[Any, Any]:
    """Return the diagonal of T = M - (w_i + w_j) / 2 N, and V (T_ij / (w_j - w_i) - N / 2)."""
    w, v = out
    turned, n = turn_of(tangents, w, v, uplo)
    return diagonal_of(turned).real, v @ (over_gaps(turned, w, strict=True, of_values=of_values) - n / 2)


relative_eigh: Primitive = opaque(
    "relative_eigh",
    evaluate_relative_eigh,
    vjp=vjp_relative_eigh,
    jvp=jvp_relative_eigh,
    outputs=2,
    form=Routine("(n,n),(n,n)->(n),(n,n)"),
)


def evaluate_relative_eigvalsh(a: Any, b: Any, *, uplo: str, check_finite: bool) -> Any:
    """Evaluate `scipy.linalg.eigvalsh` of two matrices."""
    from scipy import linalg

    return over_stacks(lambda a, b: linalg.eigvalsh(a, b, lower=uplo == "L", check_finite=check_finite), (2, 2), a, b)


def evaluate_by_relative(g: Any, a: Any, b: Any, **options: Any) -> Any:
    """Evaluate `by_relative_eigenvalues`: V diag(g) V^H."""
    w, v = evaluate_relative_eigh(a, b, **options)
    require_equal(g, w)
    return (v * g[..., None, :]) @ adjoint(v)


def sums_of(g: Any) -> Any:
    """Return g_i + g_j."""
    return g[..., None, :] + g[..., :, None]


def vjp_by_relative(ct: Any, _out: Any, g: Any, a: Any, b: Any, **options: Any) -> tuple[Any, ...]:
    """Transpose the forward rule.

    With X = V^H g_out V and Y_ij = X_ij (g_j - g_i) / (w_j - w_i) the gradient by g is the diagonal of X, that by A is
    V Y V^H, and that by B -V ((w_i + w_j) Y_ij + (g_i + g_j) X_ij) V^H / 2.
    """
    w, v = apply(relative_eigh, a, b, of_values=True, **options)
    back = conj(ct)
    x = adjoint(v) @ ((back + adjoint(back)) / 2) @ v
    y = turned_by(x, g, w)
    sides = [v @ part @ adjoint(v) for part in (y, -(means_of(w) * y + sums_of(g) * x / 2))]
    found = [diagonal_at(x, w), *[conj(folded(side, options["uplo"])) for side in sides]]
    return tuple([unbroadcast(ct, y.shape) for ct, y in zip(found, (g, a, b), strict=True)])


def jvp_by_relative(tangents: Tangents, _out: Any, g: Any, a: Any, b: Any, **options: Any) -> Any:
    """Return V (T_ij (g_j - g_i) / (w_j - w_i) - (g_i + g_j) N_ij / 2 + diag(dg)) V^H, with T and N as in `turn_of`.

    The vectors are those along which T is diagonal within clusters.
    """
    dg, *moved = tangents
    if all(x is None for x in moved):
        return apply(by_relative_eigenvalues, dg, a, b, **options)
    w, v = apply(relative_eigh, a, b, of_values=True, **options)
    t, n = turn_of(moved, w, v, options["uplo"])
    inner = turned_by(t, g, w) - sums_of(g) * n / 2
    return v @ (inner if dg is None else inner + turned_diagonal(dg, t, w)) @ adjoint(v)


by_relative_eigenvalues: Primitive = opaque(
    "by_relative_eigenvalues",
    evaluate_by_relative,
    vjp=vjp_by_relative,
    jvp=jvp_by_relative,
    form=Routine("(n),(n,n),(n,n)->(n,n)"),
)


def vjp_relative_eigvalsh(ct: Any, out: Any, a: Any, b: Any, **options: Any) -> Any:
    """Return V diag(g) V^H by A and -V diag(g w) V^H by B, also where eigenvalues are repeated."""
    sides = [apply(by_relative_eigenvalues, weight, a, b, **options) for weight in (ct, -(ct * out))]
    return tuple([conj(folded(side, options["uplo"])) for side in sides])


def jvp_relative_eigvalsh(tangents: Tangents, out: Any, a: Any, b: Any, **options: Any) -> Any:
    """Return the diagonal of M - w_i N."""
    _, v = apply(relative_eigh, a, b, of_values=True, **options)
    return along_clusters(turn_of(tangents, out, v, options["uplo"])[0], out)


relative_eigvalsh = opaque(
    "relative_eigvalsh",
    evaluate_relative_eigvalsh,
    vjp=vjp_relative_eigvalsh,
    jvp=jvp_relative_eigvalsh,
    form=Routine("(n,n),(n,n)->(n)"),
)
