"""Sparse linear systems: one primitive, whose factors are those of whatever system has the same matrix.

    A x = b:    x' = A^-1 (b' - A' x),    w = A^-T x*,    b* -> w,    a* -> -(w x^T at the places of A)

Values, tangents, cotangents and lanes are solutions of the same matrix or its transpose, which SuperLU has of one
factor. It is found again by what the matrix is, stored element by stored element: so it serves all of them in whatever
mode, order and trace they come, and the next call with the same matrix, too.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.form import Form
from wengert.core.forms.shape_probes import Results
from wengert.core.primitives.cotangent import match_dtype
from wengert.core.primitives.declare import opaque
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.errors import NumericalError
from wengert.primitives.linear_algebra.matrices import vector_text
from wengert.primitives.sparse.products import batch_product, sampled_product, sparse_product
from wengert.primitives.sparse.storage_pattern import StoragePattern
from wengert.support.caches import FACTORS, KeptFactor

Params = Mapping[str, Any]
SYMMETRIC = (("diag_pivot_thresh", 1e-3), ("permc_spec", "MMD_AT_PLUS_A"))
"""Options for symmetric matrices: an order for both sides, and pivots from the diagonal where these are not small."""
REGULAR = (*SYMMETRIC, ("regular", True))
"""Those by which nearly singular matrices are errors, too."""


def factor_of(name: str, pattern: StoragePattern, options: Any, data: np.ndarray[Any, Any]) -> KeptFactor:
    """Return the factor of a matrix: one that there is, or a new one.

    Raises:
        NumericalError: the matrix is singular.
    """
    return kept_factor(pattern, options, data, lambda: factorise(name, pattern, options, data))


def kept_factor(
    pattern: StoragePattern, options: Any, data: np.ndarray[Any, Any], make: Callable[[], Any]
) -> KeptFactor:
    """Return what is kept of a matrix under some options, which is made if it is not there."""
    return FACTORS.find(pattern, (weakref.ref(pattern), options), data, make)


def factorise(name: str, pattern: StoragePattern, options: Any, data: np.ndarray[Any, Any]) -> Any:
    """Return SuperLU's factor of a matrix, or of what is left of it without a `shift` of its eigenvalues.

    With `regular` a matrix whose pivots differ by more than numbers tell is singular, too.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    others = dict(options)
    shift, regular = others.pop("shift", None), others.pop("regular", False)

    if data.dtype.char not in "fdFD":
        data = data.astype(np.result_type(data.dtype, np.float64))
    matrix = pattern.matrix(data).tocsc()
    matrix.sum_duplicates()
    if shift is not None:
        matrix = (matrix - shift * eye_array(pattern.shape[0], format="csc", dtype=matrix.dtype)).tocsc()
    try:
        factor = splu(matrix, **others)
        if regular and is_singular(np.abs(factor.U.diagonal())):
            raise RuntimeError("singular but for rounding")
        return factor
    except RuntimeError as error:
        if "singular" not in str(error):
            raise
        empty = np.flatnonzero(np.diff(matrix.indptr) == 0)
        where = f", whose column {empty[0]} is empty" if len(empty) else ""
        given = f"a singular matrix of shape {pattern.shape}{where}"
        action = "Add what its equations leave open, or use wengert.scipy.sparse.linalg.lsqr"
        if regular:  # of equations whose solution is differentiated
            condition, direction = condition_of(matrix)
            given += f" (condition {condition:.1e}), whose equations leave the direction {vector_text(direction)} free"
            action = "Add an equation for what they leave open: a repeated eigenvalue, or constraints that depend"
        if shift is not None:
            given, action = f"a matrix with the eigenvalue sigma={shift:g}", "Choose another sigma"
        raise NumericalError(name, given, "one with an inverse is needed", action) from error


def condition_of(matrix: Any) -> tuple[float, np.ndarray[Any, Any]]:
    """Return about the condition of a nearly singular matrix, and the direction that it makes smallest.

    It is inverse iteration with A^T A, of a matrix that is moved by rounding errors, so that it has factors.
    """
    from scipy.sparse import eye_array
    from scipy.sparse.linalg import splu

    size = float(np.max(np.abs(matrix).sum(axis=0), initial=0.0))
    moved = matrix + np.finfo(matrix.dtype).eps * (size or 1.0) * eye_array(matrix.shape[0], dtype=matrix.dtype)
    factor, direction = splu(moved.tocsc()), np.cos(np.arange(matrix.shape[0]) ** 2).astype(matrix.dtype)
    for _ in range(3):
        direction = factor.solve(factor.solve(direction, "T"))
        direction /= np.linalg.norm(direction)
    smallest = float(np.linalg.norm(matrix @ direction))
    return size / smallest if smallest else np.inf, direction


def is_singular(pivots: np.ndarray[Any, Any]) -> bool:
    """Tell whether pivots differ by more than numbers tell."""
    return not np.min(pivots) > np.finfo(pivots.dtype).eps * np.max(pivots)


class SystemForm(Form):
    """A sparse linear system: the solution is like the right-hand side."""

    def results(self, _primitive: Primitive, inputs: Sequence[Any], _params: Params) -> Results:
        """Return the shape of the right-hand side, and a floating dtype."""
        data, b = map(aval_of, inputs[:2])
        dtype = np.result_type(data.dtype, b.dtype)
        return (Aval(b.shape, dtype if dtype.kind in "fc" else np.dtype(float)),), None


def evaluate_system(data: Any, b: Any, *, name: str, pattern: StoragePattern, transposed: bool, options: Any) -> Any:
    """Evaluate `sparse_solve` by SuperLU."""
    dtype = np.result_type(data.dtype, b.dtype)
    dtype = dtype if dtype.kind in "fc" else np.dtype(float)
    if 0 in (*b.shape, *pattern.shape):
        return pattern.matrix(data) @ np.zeros(b.shape, dtype)
    factor = factor_of(name, pattern, options, data).factor
    way, own = "T" if transposed else "N", factor_dtype(data.dtype)
    if np.dtype(b.dtype).kind == "c" and own.kind != "c":
        parts = [factor.solve(np.ascontiguousarray(x, own), way) for x in (b.real, b.imag)]
        return (parts[0] + 1j * parts[1]).astype(dtype, copy=False)
    return np.ascontiguousarray(factor.solve(np.asarray(b, own), way)).astype(dtype, copy=False)


def factor_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which SuperLU and ARPACK compute."""
    return dtype if dtype.char in "fdFD" else np.result_type(dtype, np.float64)


def vjp_system(
    ct: Any, out: Any, data: Any, b: Any, *, pattern: StoragePattern, transposed: bool, **options: Any
) -> Any:
    """Solve with the transpose, once for both operands; see above."""
    w = apply(sparse_solve, data, ct, pattern=pattern, transposed=not transposed, **options)
    left, right = (out, w) if transposed else (w, out)
    by_data = -apply(sampled_product, left, right, pattern=pattern)
    return match_dtype(by_data, aval_of(data).dtype), match_dtype(w, aval_of(b).dtype)


def jvp_system(
    tangents: Sequence[Any], out: Any, data: Any, _b: Any, *, pattern: StoragePattern, transposed: bool, **options: Any
) -> Any:
    """Solve with the same matrix."""
    moved, right = tangents
    if moved is not None:
        change = -apply(sparse_product, moved, out, pattern=pattern, transposed=transposed)
        right = change if right is None else right + change
    return apply(sparse_solve, data, right, pattern=pattern, transposed=transposed, **options)


sparse_solve: Primitive = opaque(
    "sparse_solve", evaluate_system, vjp=vjp_system, jvp=jvp_system, form=SystemForm(), batch=batch_product
)
