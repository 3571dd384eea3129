"""Rows of active constraints that follow from others, of which one choice of multipliers leaves some out.

Of dependent constraints multipliers are not unique, but the solution is, and so are its derivatives as long as the
constraints go on to depend on each other. Multipliers move along what is free until one of those that have a sign is
zero, whose row is left out; where none has, along what is free is an equation that follows from others
(C. Carathéodory, 1911).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.implicit.quadratic_programs.row_lengths import unit_rows

DEPENDENT, NO_PART, EQUAL = 1e-10, 1e-6, 1.0 + 1e-9
"""How far unit vectors are from what others span that depend on these, the parts of vectors that do not take part in
it, and how much larger what is as large may be."""
NEARLY = 1e-6
"""The distance from which on down derivatives are those of dependent rows.

The condition of their system grows with the square of the distance: no digit of multipliers would be certain.
"""
DRIFT = 1e-10
"""The room, as part of lengths of rows, from which on rows depend on each other without their right sides."""
APART = 1e-3
"""The distance from which on nobody looks closer."""
PIVOT, SHIFT = 1e-11, 1e-13
"""The squares of distances where products of sparse rows are eliminated, and what is added so that there are pivots."""


def rows_left_out(
    rows: Any, multipliers: Any, has_sign: Any, room: Any = None, distance: float = DEPENDENT
) -> list[int]:
    """Return the numbers of rows without which no row follows from others.

    Args:
        rows: the gradients of active constraints, of shape (k, n), in full or sparse.
        multipliers: theirs, of shape (k,), those with a sign not of the other one.
        has_sign: which of them have a sign, of shape (k,).
        room: how far each is from being met with equality, where rows do not depend on each other together with their
            right sides: then those are left out that have room where the others hold, as in the dual simplex method.
        distance: how far from what others span rows are that follow from these, as part of their lengths.
    """
    if not rows.shape[0]:
        return []
    units, lengths = unit_rows(rows)
    free = free_combinations(units, distance) if isinstance(rows, np.ndarray) else free_sparse_combinations(units)
    amounts, left = multipliers * lengths, list[int]()
    kept = np.ones(len(amounts), bool)
    for _ in range(free.shape[1]):
        largest = np.max(np.abs(free), axis=0)
        free = free[:, np.argsort(largest)] / np.sort(largest)
        along = free[:, -1]
        takes_part = kept & (np.abs(along) > NO_PART)
        signed = takes_part & has_sign
        reach = np.abs(amounts) / np.where(takes_part, np.abs(along), 1.0)
        drift = 0.0 if room is None else float(np.sum(along * room / lengths))
        if abs(drift) > DRIFT and np.any(signed & (along * drift > 0.0)):
            signed &= along * drift > 0.0
        first = np.min(reach, where=signed, initial=np.inf)
        last = int(np.flatnonzero(signed & (reach <= first * EQUAL) if np.any(signed) else takes_part)[-1])
        amounts = amounts - amounts[last] / along[last] * along
        free = free[:, :-1] - np.outer(along, free[last, :-1] / along[last])
        kept[last] = False
        left.append(last)
    return left


def depend_nearly(units: Any) -> bool:
    """Tell whether some row may be near to what others span: Cholesky's factor of their products tells how far each is.

    That is how far they are from those before them.
    """
    if len(units) > units.shape[1]:
        return True
    try:
        return not np.min(np.diagonal(np.linalg.cholesky(units @ units.T)), initial=np.inf) > APART
    except np.linalg.LinAlgError:
        return True


def free_combinations(units: Any, distance: float) -> Any:
    """Return weights with which rows add up to zero, of shape (k, d), one column for each row that follows from others.

    A quick look comes first.
    """
    from scipy import linalg

    count = len(units)
    if not depend_nearly(units):
        return np.zeros((count, 0))
    triangle, order = linalg.qr(units.T, mode="r", pivoting=True)
    rank = int(np.sum(np.abs(np.diagonal(triangle)) > distance))
    found = np.zeros((count, count - rank))
    found[order[:rank]] = -linalg.solve_triangular(triangle[:rank, :rank], triangle[:rank, rank:])
    found[order[rank:]] = np.eye(count - rank)
    return found


def free_sparse_combinations(units: Any) -> Any:
    """Return free combinations of sparse rows, by elimination of their products with each other."""
    count = units.shape[0]
    factor = factor_of_products(units)
    pivots = np.abs(factor.U.diagonal())[factor.perm_c]
    own, others = np.flatnonzero(pivots > PIVOT), np.flatnonzero(pivots <= PIVOT)
    found = np.zeros((count, len(others)))
    found[others] = np.eye(len(others))
    if len(own) and len(others):
        found[own] = -factor_of_products(units[own]).solve((units[own] @ units[others].T).toarray())
    return found


def factor_of_products(units: Any) -> Any:
    """Return SuperLU's factor of the products of sparse rows with each other, by elimination without exchanges."""
    from scipy import sparse
    from scipy.sparse.linalg import splu

    products = (units @ units.T + SHIFT * sparse.eye_array(units.shape[0])).tocsc()
    options = {"SymmetricMode": True}
    return splu(products, permc_spec="MMD_AT_PLUS_A", diag_pivot_thresh=0.0, options=options)
