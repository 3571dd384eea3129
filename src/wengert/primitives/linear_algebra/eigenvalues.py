"""Eigenvalues of Hermitian matrices and their vectors, A V = V diag(w), also relative to definite ones.

Eigenvectors of one repeated eigenvalue may be turned into each other, so they have no derivatives of their own, and a
composed function of them has one only if it does not depend on how they were chosen. What is 0 / 0 then is 0 here:
vectors of one cluster do not turn into each other. For functions of separated eigenvectors, and of the spaces that
clusters span, that is the derivative; where cotangents tell that there is none, or do not determine it, it is an error.

Functions of eigenvalues alone have second derivatives, too, if they are symmetric in those of a cluster. The gradient
V diag(g) V^H does not depend on the choice of V then, and its derivative along a direction is found with vectors along
which the direction is diagonal within each cluster: to these the tangents of eigenvalues belong, of which those of g
were made.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque, variant
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.primitives.contractions import conj
from wengert.primitives.linear_algebra.cluster_derivatives import (
    along_clusters,
    change_by_turning,
    diagonal_at,
    inner_gradient,
    own_ties,
    require_equal,
    turned_diagonal,
    with_settled,
)
from wengert.primitives.linear_algebra.clusters import (
    none_holds,
    over_gaps,
    sums_of,
)
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    adjoint,
    diagonal_of,
    fold_triangle,
    hermitian_from,
    of_scipy,
)

Tangents = Sequence[Any]
Matrices = tuple[Any, ...]


# Hermitian matrices A, alone or relative to definite ones B: A V = B V diag(w), where V^H B V = 1 (J. R. Magnus and
# H. Neudecker, Matrix Differential Calculus, 1988, chapter 8, for one of them; the length of vectors is measured by B)


def eigenvectors(matrices: Matrices, uplo: str, **options: Any) -> Any:
    """Return eigenvalues and their vectors, which are only there for derivatives of the values."""
    if len(matrices) == 1:
        return apply(eigh, *matrices, uplo=uplo, of_values=True)
    return apply(relative_eigh, *matrices, uplo=uplo, of_values=True, **options)


def means_of(w: Any) -> Any:
    """Return (w_i + w_j) / 2."""
    return sums_of(w) / 2


def motion(tangents: Tangents, w: Any, v: Any, uplo: str) -> tuple[Any, Any]:
    """Return T = M - (w_i + w_j) / 2 N and N, for M = V^H dA V and N = V^H dB V; without B it is M, and None."""
    m, *n = [0.0 if t is None else adjoint(v) @ hermitian_from(t, uplo) @ v for t in tangents]
    return (m - means_of(w) * n[0], n[0]) if n else (m, None)


def on_triangle(matrices: Sequence[Any], uplo: str) -> tuple[Any, ...]:
    """Return cotangents of the triangle that is read, of the gradients by all elements."""
    return tuple([conj(fold_triangle(x, uplo)) for x in matrices])


def vjp_eigh(
    ct: Sequence[Any], out: Any, *matrices: Any, uplo: str, of_values: bool = False, **options: Any
) -> tuple[Any, ...]:
    """Return V (diag(g_w) + (X - X^H) / 2 / (w_j - w_i)) V^H for X = V^H g_V, on the triangle that is read.

    With I in place of what stands between V and V^H, the gradient by B is -V ((w_i + w_j) / 2 I_ij + (X + X^H) / 4)
    V^H. Both follow from dV = V (T_ij / (w_j - w_i) - N / 2). (M. B. Giles, An extended collection of matrix derivative
    results for forward and reverse mode AD, 2008, section 3.1; for Hermitian matrices C. Boeddeker et al., On the
    computation of complex-valued gradients, 2017, section 4.)
    """
    (w, v), (ct_w, ct_v) = out, ct
    if ct_v is None:
        return (None,) * len(matrices) if ct_w is None else by_values(ct_w, w, matrices, uplo, **options)
    v = with_settled(v, w)
    x = adjoint(v) @ conj(ct_v) / 2
    parts = [inner_gradient(x, ct_w, w, of_values)]
    if len(matrices) > 1:
        parts.append(-(means_of(w) * parts[0] + (x + adjoint(x)) / 2))
    return on_triangle([v @ part @ adjoint(v) for part in parts], uplo)


def jvp_eigh(
    tangents: Tangents, out: Any, *_matrices: Any, uplo: str, of_values: bool = False, **_options: Any
) -> tuple[Any, Any]:
    """Move eigenvalues by diag(T), and vectors by V (T_ij / (w_j - w_i) - N / 2) (Giles 2008)."""
    w, v = out
    t, n = motion(tangents, w, v, uplo)
    turn = over_gaps(t, w, strict=True, of_values=of_values)
    return diagonal_of(t).real, v @ (turn if n is None else turn - n / 2)


def by_values(ct: Any, w: Any, matrices: Matrices, uplo: str, **options: Any) -> tuple[Any, ...]:
    """Return V diag(g) V^H by A and -V diag(g w) V^H by B, also where eigenvalues are repeated (Giles 2008)."""
    if len(matrices) == 1:
        return on_triangle([apply(by_eigenvalues, ct, *matrices, uplo=uplo)], uplo)
    sides = [apply(by_relative_eigenvalues, g, *matrices, uplo=uplo, **options) for g in (ct, -(ct * w))]
    return on_triangle(sides, uplo)


def by_scipy(name: str, *cores: int) -> Callable[..., Any]:
    """Return the evaluation by a function of `scipy.linalg` that reads one triangle."""

    def call(linalg: Any, *matrices: Any, uplo: str, of_values: bool = False, **check: Any) -> Any:
        return getattr(linalg, name)(*matrices, lower=uplo == "L", **check)

    return of_scipy(call, *cores)


eigh = opaque(
    "eigh",
    lambda a, *, uplo, of_values=False: tuple(np.linalg.eigh(a, uplo)),
    vjp=vjp_eigh,
    jvp=jvp_eigh,
    outputs=2,
    form=Routine("(n,n)->(n),(n,n)"),
    fresh=True,
    routine=lambda *, uplo, of_values=False: RoutineCall("eigh", (), {"upper": int(uplo == "U")}),
    cost=10 * OF_ELIMINATION,
)
relative_eigh = opaque(
    "relative_eigh",
    by_scipy("eigh", 2, 2),
    vjp=vjp_eigh,
    jvp=jvp_eigh,
    outputs=2,
    form=Routine("(n,n),(n,n)->(n),(n,n)"),
)


def evaluate_by_eigenvalues(g: Any, *matrices: Any, **options: Any) -> Any:
    """Evaluate `by_eigenvalues`: V diag(g) V^H, which does not depend on V where g is the same for all of a cluster."""
    w, v = (eigh if len(matrices) == 1 else relative_eigh).evaluate(*matrices, **options)
    require_equal(g, w)
    return (v * g[..., None, :]) @ adjoint(v)


def vjp_by_eigenvalues(ct: Any, _out: Any, g: Any, *matrices: Any, uplo: str, **options: Any) -> tuple[Any, ...]:
    """Return the diagonal of X = V^H g_out V by g, V Y V^H by A for Y_ij = X_ij (g_j - g_i) / (w_j - w_i).

    The gradient by B is -V ((w_i + w_j) Y_ij + (g_i + g_j) X_ij) V^H / 2.
    """
    w, v = eigenvectors(matrices, uplo, **options)
    back = conj(ct)
    x = adjoint(v) @ ((back + adjoint(back)) / 2) @ v
    parts = [change_by_turning(x, g, w)]
    if len(matrices) > 1:
        parts.append(-(means_of(w) * parts[0] + sums_of(g) * x / 2))
    found = [diagonal_at(x, w), *on_triangle([v @ part @ adjoint(v) for part in parts], uplo)]
    return tuple([unbroadcast(ct, y.shape) for ct, y in zip(found, (g, *matrices), strict=True)])


def jvp_by_eigenvalues(tangents: Tangents, _out: Any, g: Any, *matrices: Any, uplo: str, **options: Any) -> Any:
    """Return V (T_ij (g_j - g_i) / (w_j - w_i) - (g_i + g_j) N_ij / 2 + diag(dg)) V^H, with T and N as in `motion`.

    The vectors are those along which T is diagonal within clusters.
    """
    dg, *moved = tangents
    if all(x is None for x in moved):
        return apply(
            by_eigenvalues if len(matrices) == 1 else by_relative_eigenvalues, dg, *matrices, uplo=uplo, **options
        )
    w, v = eigenvectors(matrices, uplo, **options)
    t, n = motion(moved, w, v, uplo)
    inner = change_by_turning(t, g, w)
    if n is not None:
        inner = inner - sums_of(g) * n / 2
    return v @ (inner if dg is None else inner + turned_diagonal(dg, t, w)) @ adjoint(v)


def usual_by_eigenvalues(g: Any, a: Any, *, uplo: str) -> tuple[Any, Any]:
    """Return V diag(g) V^H, where eigenvalues are apart."""
    w, v = apply(eigh, a, uplo=uplo, of_values=True)
    return (v * g[..., None, :]) @ adjoint(v), none_holds(own_ties(w))


RULES: dict[str, Any] = {"vjp": vjp_by_eigenvalues, "jvp": jvp_by_eigenvalues}
by_eigenvalues: Primitive = opaque(
    "by_eigenvalues",
    evaluate_by_eigenvalues,
    form=Routine("(n),(n,n)->(n,n)"),
    usual_case=usual_by_eigenvalues,
    **RULES,
)
by_relative_eigenvalues: Primitive = opaque(
    "by_relative_eigenvalues", evaluate_by_eigenvalues, form=Routine("(n),(n,n),(n,n)->(n,n)"), **RULES
)


def jvp_eigvalsh(tangents: Tangents, _out: Any, a: Any, *, uplo: str, **_options: Any) -> Any:
    """Return the diagonal of V^H dA V, with vectors for which that is diagonal within clusters."""
    w, v = eigenvectors((a,), uplo)
    return along_clusters(motion(tangents, w, v, uplo)[0], w)


def jvp_relative_eigvalsh(tangents: Tangents, out: Any, *matrices: Any, uplo: str, **options: Any) -> Any:
    """Return the diagonal of M - w_i N."""
    _, v = eigenvectors(matrices, uplo, **options)
    return along_clusters(motion(tangents, out, v, uplo)[0], out)


eigvalsh = opaque(
    "eigvalsh",
    lambda a, *, uplo: np.linalg.eigvalsh(a, uplo),
    vjp=lambda ct, _out, a, *, uplo, **_options: by_values(ct, None, (a,), uplo),
    jvp=jvp_eigvalsh,
    form=Routine("(n,n)->(n)"),
    fresh=True,
    routine=lambda *, uplo: RoutineCall("eigvalsh", (), {"upper": int(uplo == "U")}),
    cost=4 * OF_ELIMINATION,
)
relative_eigvalsh = opaque(
    "relative_eigvalsh",
    by_scipy("eigvalsh", 2, 2),
    vjp=lambda ct, out, a, b, **options: by_values(ct, out, (a, b), **options),
    jvp=jvp_relative_eigvalsh,
    form=Routine("(n,n),(n,n)->(n)"),
)
scipy_eigh = variant(eigh, "scipy_eigh", by_scipy("eigh", 2), routine=None)
scipy_eigvalsh = variant(
    eigvalsh,
    "scipy_eigvalsh",
    by_scipy("eigvalsh", 2),
    routine=lambda *, uplo, check_finite=False: RoutineCall("eigvalsh", (), {"upper": int(uplo == "U")}),
)
