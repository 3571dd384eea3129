"""Linear systems in graphs, with factors that are results of their own: one elimination for all that has one matrix.

Outside of graphs factors are known by the array that a matrix is (`wengert.implicit.systems`). In a graph equal
matrices are one variable, so their factors are one, too, whatever right-hand sides, transposes and orders there are.

How nearly singular a matrix is would take as long to estimate as to solve some ten systems. Instead one more system is
solved, as a further column: its solution is as large as the inverse, unless its right-hand side has next to nothing in
the direction that grows. Where it is large, native code leaves the systems to Python, which estimates the condition,
and decides.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import aligned
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant, opaque
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged
from wengert.implicit.systems import (
    batch_solution,
    evaluate_solution,
    factors_of,
    linear_solution,
)
from wengert.primitives.linear_algebra.matrices import over_stacks, pull_back_solution, tangent_side

Params = Mapping[str, Any]
LARGEST_GROWTH = {8: 2.0**40, 4: 2.0**16}
"""By the bytes of real numbers, up to which growth no look at the condition is needed: a thousandth of what is lost
where no digit is certain, for right-hand sides with little in the direction that grows."""
NEARLY_DEPENDENT = 2.0**-18
"""The part of that from which on solutions are Python's, which refines them, of programs, whose numbers are about one:
their active constraints nearly depend on each other."""


def solution_of(columns: Any, right: Any, excess: Any, transposed: bool, options: Params, growing: float = 1.0) -> Any:
    """Return the vector that solves op(A) x = b, for a certified b; see `wengert.implicit.systems.linear_solution`.

    Native code solves systems whose solutions grow by less than this part of `LARGEST_GROWTH`.
    """
    sides = right[:, None]
    if not is_staged(columns):
        return apply(linear_solution, columns, sides, transposed=transposed, **options)[:, 0]
    packed, pivots = apply(factors, columns)
    size = columns.shape[-1]
    probe = np.cos(np.arange(size, dtype=packed.dtype) ** 2)[:, None]
    both = apply(substituted, packed, np.concatenate([sides, probe], axis=1), pivots, transposed=transposed)
    growth = np.max(np.abs(both[:, 1]), initial=0.0) * np.max(np.abs(columns), initial=0.0) * size
    certain = (growth < growing * LARGEST_GROWTH.get(packed.dtype.itemsize, 0.0)) & (excess <= 1)
    gate = np.where(certain, np.arange(size, dtype=np.int32), np.int32(-1))
    return apply(
        factored_solution, columns, packed, sides, pivots, both[:, :1], gate, transposed=transposed, **options
    )[:, 0]


SMALL = 32
"""Up to how many equations systems with a matrix in each lane are solved anew: many at once by vectors across lanes."""


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
    routine=lambda: RoutineCall("lu_factor", (0, 1)),
)
"""Both triangles of the transpose of a matrix in one, and the exchanges of rows; the matrix has the derivatives.

Rows are columns of the triangles: so LAPACK, whose columns are rows here, takes and gives all without turning it.
"""


def evaluate_substituted(packed: Any, right: Any, pivots: Any, *, transposed: bool) -> Any:
    """Evaluate `substituted`: NaN where there is no finite solution."""
    from scipy import linalg

    def one(packed: Any, right: Any, pivots: Any) -> Any:
        with np.errstate(all="ignore"):
            found = linalg.lu_solve((packed.T, pivots), right, trans=int(not transposed), check_finite=False)
        return np.where(np.isfinite(found), found, np.nan)

    return over_stacks(one, (2, 2, 1), packed, right, pivots)


def routine_of_substituted(*, transposed: bool) -> RoutineCall:
    """Return how native code is called."""
    return RoutineCall("lu_solve", (0,), {"backward": int(not transposed), "conjugated": 0})


substituted: Primitive = constant(
    "substituted_factors",
    evaluate_substituted,
    form=Routine("(n,n),(n,m),(n)->(n,m)", waking=True),
    batch=batch_solution,
    routine=routine_of_substituted,
)
"""Solutions by factors of any matrix: those that `factored_solution` looks at, and one that probes the condition."""


# Solutions


def evaluate_factored(columns: Any, _packed: Any, b: Any, _pivots: Any, solved: Any, gate: Any, **params: Any) -> Any:
    """Evaluate `factored_solution`: what the gate leaves is solved by factors of the array that the matrix is."""

    def one(columns: Any, b: Any, solved: Any, gate: Any) -> Any:
        is_open = gate.size and gate[0] >= 0
        return np.array(solved) if is_open else evaluate_solution(columns, b, **params)

    if columns.ndim == b.ndim == 2:  # the array itself, by which its factors are known
        return one(columns, b, solved, gate)
    return over_stacks(one, (2, 2, 2, 1), columns, b, solved, gate)


def solve_again(given: Sequence[Any], right: Any, transposed: bool, options: Params) -> Any:
    """Return a further solution with the operands of one, and another right-hand side."""
    columns, packed, _, pivots, _, gate = given
    solved = apply(substituted, packed, right, pivots, transposed=transposed)
    return apply(factored_solution, columns, packed, right, pivots, solved, gate, transposed=transposed, **options)


def vjp_factored(ct: Any, out: Any, *given: Any, transposed: bool, **options: Any) -> tuple[Any, ...]:
    """Solve with the transpose; see `wengert.implicit.systems.vjp_solution`."""
    ct_b = solve_again(given, ct, not transposed, options)
    ct_a, ct_b = pull_back_solution(ct_b, out, given[0], given[2], transposed)
    return ct_a, None, ct_b, None, None, None


def jvp_factored(tangents: Sequence[Any], out: Any, *given: Any, transposed: bool, **options: Any) -> Any:
    """Solve with the same matrix."""
    return solve_again(given, tangent_side(tangents[0], tangents[2], out, transposed), transposed, options)


def batch_factored(
    _primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Solve for all lanes; those that have small matrices of their own many at once, without factors."""
    columns, packed, b, pivots, solved, gate = operands
    if any(batched[i] for i in (0, 1, 3)) or len(columns.shape) > 2 or len(b.shape) > 3:
        if columns.shape[-1] > SMALL:
            return apply(factored_solution, *aligned(operands, batched, (2, 2, 2, 1, 2, 1)), **params)
        return apply(linear_solution, *aligned((columns, b), (batched[0], batched[2]), (2, 2)), **params)
    if not batched[2]:
        b = np.broadcast_to(b, (size, *b.shape))
    if not batched[4]:
        solved = np.broadcast_to(solved, b.shape)
    gate = np.min(gate, axis=0) if batched[5] else gate
    joined = [np.moveaxis(x, 0, 1).reshape(b.shape[1], size * b.shape[2]) for x in (b, solved)]
    found = apply(factored_solution, columns, packed, joined[0], pivots, joined[1], gate, **params)
    return np.moveaxis(found.reshape(b.shape[1], size, b.shape[2]), 1, 0)


def routine_of_factored(*, transposed: bool, name: str, singular: str, tol: float) -> RoutineCall:
    """Return how native code is called: exchanging each row with itself copies, and fails where there is no such."""
    return RoutineCall("exchange_rows", (), {"backward": 0}, (4, 5))


factored_solution: Primitive = opaque(
    "factored_solution",
    evaluate_factored,
    vjp=vjp_factored,
    jvp=jvp_factored,
    form=Routine("(n,n),(n,n),(n,m),(n),(n,m),(n)->(n,m)"),
    batch=batch_factored,
    routine=routine_of_factored,
)
"""`linear_solution` by factors of the matrix: native code takes what they gave, unless the gate is closed, with -1.

Operands are the matrix, its factors, the right-hand sides, the exchanges, the solutions by factors, and the gate: the
numbers of all rows where the matrix is far from singular and the right-hand side is that of a solution.
"""
