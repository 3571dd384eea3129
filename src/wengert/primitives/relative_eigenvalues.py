"""Eigenvalues of Hermitian matrices A relative to definite ones B: A V = B V diag(w), where V^H B V = 1.

(M. S. Magnus and H. Neudecker, Matrix Differential Calculus, 1988, chapter 8, for one of them; several together as in
`spectra`, with the length of vectors measured by B.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.core.declare import opaque
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive
from wengert.core.routine import Routine
from wengert.primitives.matrices import adjoint, conj, diagonal_of, folded, hermitian_from, on_diagonal, over_stacks
from wengert.primitives.spectra import inner_gradient, over_gaps

__all__ = ["relative_eigh", "relative_eigvalsh"]

Tangents = Sequence[Any]


def means_of(w: Any) -> Any:
    """Return (w_i + w_j) / 2."""
    return (w[..., None, :] + w[..., :, None]) / 2


def turned_by(v: Any, change: Any, uplo: str) -> Any:
    """Return V^H dA V for the change of the triangle that is read, 0 if there is none."""
    return 0.0 if change is None else adjoint(v) @ hermitian_from(change, uplo) @ v


def evaluate_relative_eigh(a: Any, b: Any, *, uplo: str, check_finite: bool, of_values: bool = False) -> Any:
    """Evaluate `scipy.linalg.eigh` of two matrices."""
    from scipy import linalg

    return over_stacks(lambda a, b: linalg.eigh(a, b, lower=uplo == "L", check_finite=check_finite), (2, 2), a, b)


def vjp_relative_eigh(
    ct: Sequence[Any], out: Any, _a: Any, _b: Any, *, uplo: str, of_values: bool = False, **_options: Any
) -> Any:
    """Return G = V I V^H by A, with I as for `eigh`, and -V ((w_i + w_j) / 2 I_ij + (X + X^H) / 4) V^H by B.

    Here X = V^H g_V. Both follow from dV = V ((M - (w_i + w_j) / 2 N) / (w_j - w_i) - N / 2) for M = V^H dA V and
    N = V^H dB V.
    """
    (w, v), (ct_w, ct_v) = out, ct
    if ct_v is None:
        inner = on_diagonal(ct_w)
        by_b = -on_diagonal(ct_w * w)
    else:
        x = adjoint(v) @ conj(ct_v) / 2
        inner = inner_gradient(x, ct_w, w, of_values)
        by_b = -(means_of(w) * inner + (x + adjoint(x)) / 2)
    return tuple([conj(folded(v @ part @ adjoint(v), uplo)) for part in (inner, by_b)])


def turn(tangents: Tangents, w: Any, v: Any, uplo: str) -> tuple[Any, Any]:
    """Return T = M - (w_i + w_j) / 2 N and N."""
    m, n = (turned_by(v, change, uplo) for change in tangents)
    return m - means_of(w) * n, n


def jvp_relative_eigh(tangents: Tangents, out: Any, _a: Any, _b: Any, *, uplo: str, **_options: Any) -> tuple[Any, Any]:
    """Return the diagonal of T = M - (w_i + w_j) / 2 N, and V (T_ij / (w_j - w_i) - N / 2)."""
    w, v = out
    turned, n = turn(tangents, w, v, uplo)
    return diagonal_of(turned).real, v @ (over_gaps(turned, w, strict=True) - n / 2)


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


def vjp_relative_eigvalsh(ct: Any, out: Any, a: Any, b: Any, **options: Any) -> Any:
    """Return V diag(g) V^H by A and -V diag(g w) V^H by B, also where eigenvalues are repeated."""
    _, v = apply(relative_eigh, a, b, of_values=True, **options)
    sides = [(v * weight[..., None, :]) @ adjoint(v) for weight in (ct, -(ct * out))]
    return tuple([conj(folded(side, options["uplo"])) for side in sides])


def jvp_relative_eigvalsh(tangents: Tangents, out: Any, a: Any, b: Any, **options: Any) -> Any:
    """Return the diagonal of M - w_i N."""
    _, v = apply(relative_eigh, a, b, of_values=True, **options)
    return diagonal_of(turn(tangents, out, v, options["uplo"])[0]).real


relative_eigvalsh = opaque(
    "relative_eigvalsh",
    evaluate_relative_eigvalsh,
    vjp=vjp_relative_eigvalsh,
    jvp=jvp_relative_eigvalsh,
    form=Routine("(n,n),(n,n)->(n)"),
)
