"""Norms, inverses and solutions."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.lib.array_utils import normalize_axis_tuple

from wengert.core.forms.batching import aligned
from wengert.core.forms.form import Reduction
from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import opaque, variant
from wengert.core.primitives.opaque_kinds import Opaque
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.primitives.signatures import Rule
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import visible_array
from wengert.primitives.contractions import conj, shape_mismatch
from wengert.primitives.half_precision import jvp_of_single, vjp_of_single
from wengert.primitives.linear_algebra.matrices import (
    OF_ELIMINATION,
    of_scipy,
    plain_routine,
    tangent_side,
)
from wengert.primitives.reductions import restore_axes

Flags = Sequence[bool]
Params = Mapping[str, Any]
Axis = int | tuple[int, ...] | None
EUCLIDEAN = (None, 2, "fro", "f")
"""Orders of norms that are roots of sums of squares."""


# Norms


def axes_of(rank: int, axis: Axis) -> tuple[int, ...]:
    """Return the axes that a norm is along, counted from 0."""
    return tuple(range(rank)) if axis is None else normalize_axis_tuple(axis, rank)


def evaluate_norm(x: Any, *, order: Any, axis: Axis, keepdims: bool) -> Any:
    """Evaluate `norm`."""
    return np.linalg.norm(x, order, axis, keepdims)


def times_slope(t: Any, out: Any, x: Any, order: Any) -> Any:
    """Return t times the partials of (sum |x|^p)^(1/p) by the elements: conj(x) / |x| (|x| / norm)^(p - 1).

    At zero (of the whole for p = 2, of an element otherwise) it is 0, and so are its own derivatives. For p = 2 the
    factors |x| cancel, which leaves x / norm with the right derivatives where single elements are zero.
    """
    if order in EUCLIDEAN:
        known = visible_array(out)
        if known is not None and known.all():
            return t * (conj(x) / out)
        return np.where(out == 0, 0.0, t * (conj(x) / np.where(out == 0, 1.0, out)))
    zero = (x == 0) | (out == 0)
    size = np.where(zero, 1.0, np.absolute(x))
    ratio = size / np.where(zero, 1.0, out)
    return np.where(zero, 0.0, t * (conj(x) / size) * ratio ** (order - 1))


def rules_of_norm(times_slope: Callable[..., Any]) -> tuple[Rule, Rule]:
    """Return the rules of a norm or its square, from what gives numbers times its partials by the elements."""

    def vjp(ct: Any, out: Any, x: Any, *, order: Any, axis: Axis, keepdims: bool) -> Any:
        axes = axes_of(x.ndim, axis)
        ct, out = (restore_axes(y, x.shape, axes, keepdims) for y in (ct, out))
        return times_slope(ct, out, x, order)

    def jvp(tangents: Sequence[Any], out: Any, x: Any, *, order: Any, axis: Axis, keepdims: bool) -> Any:
        axes = axes_of(x.ndim, axis)
        parts = times_slope(tangents[0], restore_axes(out, x.shape, axes, keepdims), x, order)
        return np.sum(parts, axis=axes, keepdims=keepdims).real

    return vjp, jvp


vjp_norm, jvp_norm = rules_of_norm(times_slope)


def batch_norm(primitive: Primitive, _size: int, operands: Sequence[Any], _batched: Flags, params: Params) -> Any:
    """Take the norms of all lanes; those of whole lanes as norms of vectors."""
    (x,) = operands
    axis, shape = params["axis"], x.shape[1:]
    if axis is not None:
        moved = tuple(i + 1 if i >= 0 else i for i in axis)
        return apply(primitive, x, **{**params, "axis": moved})
    vectors = x.reshape((x.shape[0], math.prod(shape)))
    order = None if params["order"] in ("fro", "f") else params["order"]
    result = apply(primitive, vectors, order=order, axis=(1,), keepdims=False)
    return result.reshape((x.shape[0], *(1,) * len(shape))) if params["keepdims"] else result


vjp_square_of_norm, jvp_square_of_norm = rules_of_norm(lambda t, _out, x, _order: t * (2 * conj(x)))
square_of_norm = Opaque(
    "square of norm",
    lambda x, **params: np.square(evaluate_norm(x, **params)),
    vjp=vjp_square_of_norm,
    jvp=jvp_square_of_norm,
)


def euclidean_square(*, order: Any, **_axes: Any) -> Opaque | None:
    """Return the primitive of the square of a norm that is the root of one."""
    return square_of_norm if order in EUCLIDEAN else None


def norm_at(x: Any, *, order: Any, axis: Axis, keepdims: bool) -> Any:
    """Return the length of vectors in a kernel: the root of a sum of powers; None of other norms of matrices."""
    axes = axes_of(len(x.shape), axis)
    if order not in EUCLIDEAN or (order == 2 and len(axes) > 1):
        if len(axes) > 1 or not isinstance(order, int | float) or not 0 < abs(order) < math.inf:
            return None
        return np.power(np.sum(np.power(np.absolute(x), order), axis=axes, keepdims=True), 1 / order)
    return np.sqrt(np.sum(x * x, axis=axes, keepdims=True))


norm = opaque(
    "norm",
    evaluate_norm,
    vjp=vjp_of_single("norm", vjp_norm),
    jvp=jvp_of_single("norm", jvp_norm),
    form=Reduction(),
    batch=batch_norm,
    square=euclidean_square,
    scalar=norm_at,
    not_negative=(),
)


def evaluate_scipy_norm(x: Any, *, order: Any, axis: Any, keepdims: bool) -> Any:
    """Evaluate `scipy.linalg.norm`, which asks BLAS for those of single vectors."""
    from scipy import linalg

    found = linalg.norm(x, order, axis, keepdims, check_finite=False)
    return np.asarray(found, x.real.dtype)[()]


scipy_norm = opaque(
    "scipy_norm",
    evaluate_scipy_norm,
    vjp=vjp_norm,
    jvp=jvp_norm,
    form=Reduction(),
    batch=batch_norm,
    square=euclidean_square,
)


# Inverses


def vjp_inv(ct: Any, out: Any, _a: Any, **_options: Any) -> Any:
    """Return -B^T ct B^T for the inverse B: d(A^-1) = -A^-1 dA A^-1."""
    transposed = out.mT
    return -(transposed @ ct @ transposed)


def vjp_solve(ct: Any, out: Any, a: Any, b: Any, **_options: Any) -> tuple[Any, Any]:
    """Solve with the transpose: for A x = b, ct_b = A^-T ct and ct_A = -ct_b x^T."""
    columns, solution = (ct[..., None], out[..., None]) if b.ndim == 1 else (ct, out)
    ct_b = np.linalg.solve(a.mT, columns)
    ct_a = unbroadcast(-(ct_b @ solution.mT), a.shape)
    return ct_a, unbroadcast(ct_b[..., 0] if b.ndim == 1 else ct_b, b.shape)


def jvp_solve(tangents: Sequence[Any], out: Any, a: Any, b: Any, **_options: Any) -> Any:
    """Solve with the same matrix: for A x = b, A dx = db - dA x."""
    da, db = tangents
    if b.ndim == 1:
        out, db = out[..., None], None if db is None else db[..., None]
    found = np.linalg.solve(a, tangent_side(da, db, out))
    return found[..., 0] if b.ndim == 1 else found


inv = opaque(
    "inv",
    np.linalg.inv,
    vjp=vjp_inv,
    jvp=lambda tangents, out, _a, **_options: -(out @ tangents[0] @ out),
    form=Routine("(n,n)->(n,n)"),
    routine=plain_routine("inv"),
    cost=3 * OF_ELIMINATION,
)


def evaluate_solve(a: Any, b: Any) -> Any:
    """Evaluate `solve`."""
    try:
        return np.linalg.solve(a, b)
    except np.linalg.LinAlgError:
        raise
    except ValueError as error:
        needed = "as many elements, or rows, on the right as the matrix has are needed"
        raise shape_mismatch("solve", a, b, needed) from error


def batch_solve(_primitive: Primitive, _size: int, operands: Sequence[Any], batched: Flags, _params: Params) -> Any:
    """Solve with vectors as columns: a vector on the right is one only where nothing is stacked."""
    a, b = operands
    if len(b.shape) - batched[1] > 1:
        return np.linalg.solve(*aligned(operands, batched, (2, 2)))
    return np.linalg.solve(*aligned((a, b[..., None]), batched, (2, 2)))[..., 0]


solve = opaque(
    "solve",
    evaluate_solve,
    vjp=vjp_solve,
    jvp=jvp_solve,
    form=Routine("(n,n),(n,m)->(n,m)"),
    batch=batch_solve,
    routine=plain_routine("solve"),
    cost=OF_ELIMINATION,
)


def solve_by_scipy(linalg: Any, a: Any, b: Any, assume_a: str | None = None, **options: Any) -> Any:
    """Return what `scipy.linalg.solve` does of one matrix, and one on the right."""
    structure = {} if assume_a is None else {"assume_a": assume_a}  # SciPy 1.14 has another default
    return linalg.solve(a, b, **options, **structure)


def routine_of_solve(
    *, assume_a: str | None = None, lower: bool = False, check_finite: bool = False
) -> RoutineCall | None:
    """Return how native code is called, which reads one triangle of what is said to be positive definite."""
    fields = {"finite": int(check_finite)}
    if assume_a in ("pos", "positive definite"):
        fields["conjugated"] = int(not lower)
        return RoutineCall("solve_positive", () if lower else (0,), fields)
    return RoutineCall("solve_conditioned", (), fields) if assume_a in (None, "gen", "general") else None


scipy_inv = variant(
    inv,
    "scipy_inv",
    of_scipy(lambda linalg, a, **check: linalg.inv(a, **check), 2),
    routine=plain_routine("inv_conditioned"),
)
scipy_solve = variant(
    solve,
    "scipy_solve",
    of_scipy(solve_by_scipy, 2, 2),
    batch=None,
    form=Routine("(n,n),(n,m)->(n,m)", waking=True),
    routine=routine_of_solve,
)
