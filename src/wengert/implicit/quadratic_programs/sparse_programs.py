"""Quadratic programs with sparse matrices: the same iteration, with factors of the whole system in place of a block.

The conditions of optimality have one sparse Jacobian, [P A^T G^T; A 0 0; G 0 D], whose places do not depend on what is
active. SuperLU's factor of it, kept by its stored elements (`wengert.primitives.sparse.direct_solves`), polishes the
solution and solves for all tangents and cotangents.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import GraphError, NumericalError
from wengert.implicit.quadratic_programs.programs import (
    CLOSE,
    MOST_ROUNDS,
    NEAR,
    ROUNDING,
    Polished,
    QuadraticProgram,
    dependent_among,
    forces_of,
    held_at,
    join_parts,
    sizes_of,
    without_room,
)
from wengert.implicit.quadratic_programs.row_lengths import is_sparse
from wengert.primitives.sparse.direct_solves import REGULAR, SYMMETRIC, factor_of
from wengert.primitives.sparse.sparse_tensor import SparseTensor, sparse_tensor
from wengert.primitives.sparse.storage_pattern import StoragePattern, pattern_of
from wengert.support.records import NamedTuple

SHIFTED = (*SYMMETRIC, ("shift", -1e-8))
"""The option of the factor where constraints depend on each other, by which they hold as nearly as refinement makes."""
CLOSER, SINGULAR = 1e-11, 1e-7
"""The parts of the largest pivot from which on down somebody looks for constraints that depend on each other, for x,
and for its derivatives.

Two pivots are as small as the distance by which they do: that of the row, and that of what it moves.
"""
REFINEMENTS = 3
WEIGHT = 1e6
"""How much more equations weigh than P where a direction that they leave free is looked for in which P is negative."""


def in_one_form(data: Sequence[Any]) -> tuple[Any, ...]:
    """Return the data of a program with a symmetric P and all matrices sparse, by rows, each place stored once.

    They are arrays of Tensors, unless all data are plain.
    """
    from scipy import sparse

    plain = not any(type(x) is Tensor or isinstance(x, SparseTensor) for x in data)
    found = list(data)
    for name, i in (("P", 0), ("A", 2), ("G", 4)):
        x = found[i]
        if type(x) is Tensor and not (is_concrete(x) and x._trace is None):
            needed = "sparse matrices beside each other, or constants, are needed"
            raise GraphError("qp", f"{name} in full that is traced beside sparse matrices", needed, "Make it sparse")
        if not isinstance(x, SparseTensor):
            known = raw(x) if type(x) is Tensor else x
            x = sparse.csr_array(known, dtype=np.result_type(known.dtype, np.float32))
            x.sum_duplicates()
            x = x if plain else sparse_tensor(x)
        found[i] = x if plain else x.tocsr().sum_duplicates_of()
    return (found[0] + found[0].T) * 0.5, *found[1:]


class ConditionsMatrix(NamedTuple):
    """Say where the elements of the Jacobian of the conditions come from.

    Attributes:
        pattern: where they are stored.
        sources: their places among those of P, of the constraints C, A above G, these again, and the diagonal.
        rows: of each element of C its row.
    """

    pattern: StoragePattern
    sources: Any
    rows: Any

    def elements(self, p: Any, a: Any, g: Any, columns: Any, rows: Any, diagonal: Any) -> Any:
        """Return the stored elements, with the columns that C^T has and the rows of C multiplied, and the diagonal."""
        c = join_parts([a, g])
        some = [part for part in (p, c * columns[self.rows], c * rows[self.rows], diagonal) if 0 not in part.shape]
        return np.concatenate(some)[self.sources] if some else np.zeros(0)


def assemble(p: StoragePattern, a: StoragePattern, g: StoragePattern) -> ConditionsMatrix:
    """Return the places of the Jacobian of the conditions of programs with matrices of these patterns."""

    def make() -> ConditionsMatrix:
        from scipy import sparse

        sizes = np.cumsum([1, p.size, a.size, g.size, a.size, g.size])  # zeros are no places
        numbers = [
            part.matrix(np.arange(first, first + part.size))
            for part, first in zip((p, a, g, a, g), sizes[:5], strict=True)
        ]
        m, r = a.shape[0], g.shape[0]
        own = sparse.diags_array(np.arange(sizes[5], sizes[5] + m + r), dtype=int)
        blocks = [[numbers[0], sparse.vstack(numbers[1:3]).T], [sparse.vstack(numbers[3:]), own]]
        whole = sparse.block_array(blocks, format="csc")
        return ConditionsMatrix(
            pattern_of(whole), whole.data - 1, np.concatenate([a.coordinates[0], m + g.coordinates[0]])
        )

    found: ConditionsMatrix = p.derive(("conditions", a, g), make)
    return found


def elements_of_conditions(_found: Any, p: Any, _q: Any, a: Any, _b: Any, g: Any, _h: Any, active: Any) -> Any:
    """Return the stored elements of the Jacobian of the conditions by x and the multipliers."""
    whole = assemble(p._pattern, a._pattern, g._pattern)
    held = np.where(active, 1.0, 0.0)
    return whole.elements(p.data, a.data, g.data, held, held, 1.0 - held)


def relaxed_elements(found: Any, p: Any, _q: Any, a: Any, b: Any, g: Any, h: Any, _barrier: Any) -> Any:
    """Return the same of the central path: there z (h - G x) is given."""
    x, z, m = found[0], found[-1] if len(h) else np.zeros(0), len(b)
    whole, ones = assemble(p._pattern, a._pattern, g._pattern), np.ones(m + len(h))
    rows, diagonal = join_parts([np.ones(m), -z]), join_parts([np.zeros(m), h - g @ x])
    return whole.elements(p.data, a.data, g.data, ones, rows, diagonal)


# Of numbers


def solver_of_system(program: QuadraticProgram, regular: float) -> Callable[[Any], Callable[[Any], Any]]:
    """Return a function of weights to what solves the conditions where the objective weighs inequalities by these.

    Only the last diagonal of the system depends on them: the others, and all places, are put together once.
    """
    from scipy import sparse
    from scipy.sparse.linalg import splu

    p, _, a, _, g, _ = program
    (m, n), r = a.shape, g.shape[0]
    size = regular * (1.0 + (np.max(np.abs(p.data)) if p.nnz else 0.0))
    blocks = [[p + size * sparse.eye_array(n), a.T, g.T], [a, -size * sparse.eye_array(m), None]]
    stored = sparse.block_array([*blocks, [g, None, sparse.eye_array(r)]], format="csc")
    stored.sort_indices()
    diagonal = stored.indptr[n + m + 1 :] - 1  # the last elements of the last columns
    rest = np.zeros(r)

    def factorise(weights: Any) -> Callable[[Any], Any]:
        data = stored.data.copy()
        data[diagonal] = -1.0 / weights
        whole = sparse.csc_array((data, stored.indices, stored.indptr), shape=stored.shape)
        try:
            factor = splu(whole, **dict(SYMMETRIC))
        except RuntimeError:  # singular: the iteration ends without a solution
            return lambda right: np.full(right.shape, np.nan)

        def solve(right: Any) -> Any:
            whole_right = np.concatenate([right, rest])
            found = factor.solve(whole_right)
            return (found + factor.solve(whole_right - whole @ found))[: n + m]

        return solve

    return factorise


def polish_sparse(x: Any, active: Any, program: QuadraticProgram) -> Polished:
    """Return the solution near x by the conditions of optimality; what is active follows from it, and it from that."""
    sizes, count = sizes_of(x, program), len(program.b)
    near, left = active, np.zeros(0, int)
    active = np.concatenate([np.ones(count, bool), active])
    for _ in range(MOST_ROUNDS):
        if may_be_singular(active, program):
            held, multipliers = active, solve_sparse(active, program)[1]
            if not np.all(multipliers[count:] >= 0.0):
                held, multipliers = held_at(x, in_full(program), near)
            left = dependent_among(held, multipliers, program, x)
            active = held & ~np.isin(np.arange(len(held)), left) if len(left) else active
        exact, multipliers = solve_sparse(active, program)
        equality, inequality = np.split(multipliers, [count])
        room = (program.h - program.g @ exact) / sizes
        forces = np.sign(multipliers) * forces_of(multipliers, program)
        least = NEAR * (1.0 + np.max(np.abs(forces), initial=0.0))
        after = np.where(active[count:], forces[count:] > least, room < -NEAR * NEAR)
        if np.array_equal(after, active[count:]):
            break
        active, near = np.concatenate([active[:count], after]), near | after
    is_close = bool(np.all(np.abs(exact - x) <= CLOSE * (1.0 + np.max(np.abs(x), initial=0.0))))
    is_optimal = is_close and bool(np.all(room >= -NEAR)) and bool(np.all(inequality[active[count:]] >= 0.0))
    return Polished(exact, equality, inequality, active, without_room(left, room, count), room, is_optimal)


def solve_sparse(active: Any, program: QuadraticProgram) -> tuple[Any, Any]:
    """Return x and all multipliers by the factor that derivatives use."""
    pattern, data = conditions_matrix(active, program)
    q = program.q
    matrix, right = pattern.matrix(data), np.concatenate([-q, active * np.concatenate([program.b, program.h])])
    try:
        factor = factor_of("qp", pattern, REGULAR, data).factor
    except NumericalError:  # there are solutions, of which derivatives know no more
        factor = factor_of("qp", pattern, SHIFTED, data).factor
    found = np.zeros(len(right))
    for _ in range(REFINEMENTS):
        found = found + factor.solve(right - matrix @ found)
    return found[: len(q)], found[len(q) :]


def in_full(program: QuadraticProgram) -> QuadraticProgram:
    """Return a program with matrices in full."""
    return QuadraticProgram(*(part.toarray() if is_sparse(part) else part for part in program))


def conditions_matrix(active: Any, program: QuadraticProgram) -> tuple[StoragePattern, Any]:
    """Return the pattern and the stored elements of the Jacobian of the conditions, of numbers."""
    p, _, a, _, g, _ = program
    held = np.where(active, 1.0, 0.0)
    whole = assemble(*(pattern_of(matrix) for matrix in (p, a, g)))
    return whole.pattern, whole.elements(p.data, a.data, g.data, held, held, 1.0 - held)


def may_be_singular(active: Any, program: QuadraticProgram, part: float = CLOSER) -> bool:
    """Tell whether the conditions of optimality leave something free, or nearly."""
    pattern, data = conditions_matrix(active, program)
    try:
        pivots = np.abs(factor_of("qp", pattern, REGULAR, data).factor.U.diagonal())
    except NumericalError:
        return True
    return bool(np.min(pivots, initial=np.inf) < part * np.max(pivots, initial=0.0))


def require_convex_sparse(program: QuadraticProgram) -> None:
    """Raise a NumericalError where P has a negative eigenvalue along which the equations let x go.

    P + w A^T A is positive definite for large w exactly where P is along these (G. Debreu, Definite and semidefinite
    quadratic forms, Econometrica, 1952).
    """
    p, a = program.p, program.a
    largest = float(np.max(np.abs(p.data))) if p.nnz else 0.0
    if not np.all(np.isfinite(p.data)) or not largest or is_positive(p, largest):
        return
    slope = float(np.max(np.abs(a.data))) if a.nnz else 0.0
    if not slope or not is_positive(p + (WEIGHT * largest / slope**2) * (a.T @ a), WEIGHT * largest):
        given = "P with a negative eigenvalue along a direction that A leaves free"
        needed = "a positive semidefinite one is needed there: what is stationary is no minimum"
        raise NumericalError("qp", given, needed, "Look at the sign of P, or add a multiple of the identity")


def is_positive(matrix: Any, size: float) -> bool:
    """Tell whether a symmetric matrix is positive semidefinite but for rounding, by elimination without exchanges."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    shifted = matrix + ROUNDING * size * matrix.shape[0] * sparse.eye_array(matrix.shape[0])
    options = {"SymmetricMode": True}
    try:
        factor = splu(shifted.tocsc(), permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
    except RuntimeError:
        return False
    return bool(np.all(factor.U.diagonal() > 0.0)) and np.array_equal(factor.perm_r, factor.perm_c)
