"""Linear systems in graphs, with factors that are results of their own: one elimination for all that has one matrix.

Outside of graphs factors are known by the array that a matrix is (`wengert.implicit.systems`). In a graph equal
matrices are one variable, so their factors are one, too, whatever right-hand sides, transposes and orders there are.

How nearly singular a matrix is would take as long to estimate as to solve some ten systems. Instead one more system is
solved: its solution is as large as the inverse, unless its right-hand side has next to nothing in the direction that
grows. Where it is large, native code leaves the systems to Python, which estimates the condition, and decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import aligned
from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import constant, opaque
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged
from wengert.implicit.systems import (
    evaluate_solution,
    factors_of,
    linear_solution,
)
from wengert.primitives.linear_algebra.matrices import over_stacks, total

Params = Mapping[str, Any]
LARGEST_GROWTH = {8: 2.0**40, 4: 2.0**16}
"""By the bytes of real numbers, up to which growth no look at the condition is needed: a thousandth of what is lost
where no digit is certain, for right-hand sides with little in the direction that grows."""


def solution_of(columns: Any, right: Any, transposed: bool, options: Params) -> Any:
    """Return the vector that solves op(A) x = b; see `wengert.implicit.systems.linear_solution`."""
    sides = right[:, None]
    if not is_staged(columns):
        return apply(linear_solution, columns, sides, transposed=transposed, **options)[:, 0]
    packed, pivots = apply(factors, columns)
    size = columns.shape[-1]
    probe = np.cos(np.arange(size, dtype=packed.dtype) ** 2)[:, None]
    response = apply(probed, packed, probe, pivots)
    growth = np.max(np.abs(response), initial=0.0) * np.max(np.abs(packed), initial=0.0) * size
    pivots = np.where(growth < LARGEST_GROWTH.get(packed.dtype.itemsize, 0.0), pivots, -1 - pivots)
    return apply(factored_solution, columns, packed, sides, pivots, transposed=transposed, **options)[:, 0]


# Factors


def evaluate_factors(columns: Any) -> Any:
    """Evaluate `factors`."""

    def one(matrix: Any) -> tuple[Any, Any]:
        found = factors_of(matrix)
        return np.array(found.packed.T, order="C"), np.array(found.pivots, np.int32)

    if columns.ndim == 2:
        return one(columns)
    return over_stacks(one, (2,), columns)


factors = constant(
    "jacobian_factors",
    evaluate_factors,
    outputs=2,
    form=Routine("(n,n)->(n,n),(n)"),
    routine=lambda: RoutineCall("lu_factor", (0, 1), {"finite": 1}),
)
"""Both triangles of the transpose of a matrix in one, and the exchanges of rows; the matrix has the derivatives.

Rows are columns of the triangles: so LAPACK, whose columns are rows here, takes and gives all without turning it.
"""


def evaluate_probed(packed: Any, right: Any, pivots: Any) -> Any:
    """Evaluate `probed`: NaN where there is no finite solution."""
    from scipy import linalg

    def one(packed: Any, right: Any, pivots: Any) -> Any:
        with np.errstate(all="ignore"):
            found = linalg.lu_solve((packed.T, pivots), right, check_finite=False)
        return np.where(np.isfinite(found), found, np.nan)

    return over_stacks(one, (2, 2, 1), packed, right, pivots)


probed = constant(
    "probed_factors",
    evaluate_probed,
    form=Routine("(n,n),(n,m),(n)->(n,m)"),
    routine=lambda: RoutineCall("lu_solve", (0,), {"backward": 0, "conjugated": 0}),
)
"""A solution by factors, of which only the size matters."""


# Solutions


def evaluate_factored(columns: Any, _packed: Any, b: Any, _pivots: Any, **params: Any) -> Any:
    """Evaluate `factored_solution`: factors are known by the array that the matrix is."""
    return evaluate_solution(columns, b, **params)


def vjp_factored(
    ct: Any, out: Any, columns: Any, packed: Any, b: Any, pivots: Any, *, transposed: bool, **options: Any
) -> tuple[Any, None, Any, None]:
    """Solve with the transpose; see `wengert.implicit.systems.vjp_solution`."""
    ct_b = apply(factored_solution, columns, packed, ct, pivots, transposed=not transposed, **options)
    ct_a = -(out @ ct_b.mT) if transposed else -(ct_b @ out.mT)
    return unbroadcast(ct_a, columns.shape), None, unbroadcast(ct_b, b.shape), None


def jvp_factored(
    tangents: Sequence[Any],
    out: Any,
    columns: Any,
    packed: Any,
    _b: Any,
    pivots: Any,
    *,
    transposed: bool,
    **options: Any,
) -> Any:
    """Solve with the same matrix: op(A) dX = dB - op(dA) X."""
    moved, _, db, _ = tangents
    change = None if moved is None else -((moved.mT if transposed else moved) @ out)
    return apply(factored_solution, columns, packed, total(db, change), pivots, transposed=transposed, **options)


def batch_factored(
    _primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Solve for all lanes: matrices of their own are small ones, many at once, which have no factors for others."""
    columns, packed, b, pivots = operands
    if any(batched[i] for i in (0, 1, 3)) or len(columns.shape) > 2 or len(b.shape) > 3:
        return apply(linear_solution, *aligned((columns, b), (batched[0], batched[2]), (2, 2)), **params)
    _, rows, count = b.shape
    side_by_side = np.moveaxis(b, 0, 1).reshape(rows, size * count)
    found = apply(factored_solution, columns, packed, side_by_side, pivots, **params)
    return np.moveaxis(found.reshape(rows, size, count), 1, 0)


def routine_of_factored(*, transposed: bool, name: str, singular: str, tol: float) -> RoutineCall:
    """Return how native code is called."""
    fields = {"finite": 1, "backward": int(not transposed), "conjugated": 0}
    return RoutineCall("lu_solve", (0,), fields, (1, 2, 3))


factored_solution: Primitive = opaque(
    "factored_solution",
    evaluate_factored,
    vjp=vjp_factored,
    jvp=jvp_factored,
    form=Routine("(n,n),(n,n),(n,m),(n)->(n,m)"),
    batch=batch_factored,
    routine=routine_of_factored,
)
"""`linear_solution` by factors of the matrix, which native code solves with; negative exchanges leave it to Python."""
