"""What makes quadratic programs no convex ones with a solution, and whether a point is one."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.errors import NumericalError
from wengert.implicit.quadratic_programs.programs import NEAR, ROUNDING, Polished, QuadraticProgram, join_rows
from wengert.implicit.quadratic_programs.row_lengths import is_sparse


def require_convex(program: QuadraticProgram) -> None:
    """Raise a NumericalError where P has a negative eigenvalue along which the equations let x go."""
    p, a = program.p, program.a
    largest = float(np.max(np.abs(p), initial=0.0))
    margin = ROUNDING * largest * len(p)
    if not np.all(np.isfinite(p)) or is_positive(p, margin):
        return
    if len(a):
        free = null_space(a)
        p = free.T @ p @ free
        if is_positive(p, margin):
            return
    lowest = float(np.min(np.linalg.eigvalsh(p), initial=0.0))
    if lowest < -margin:
        part = lowest / largest
        given = f"P with an eigenvalue of {part:.3g} times its largest element along a direction that A leaves free"
        needed = "a positive semidefinite one is needed there: what is stationary is no minimum"
        raise NumericalError("qp", given, needed, "Look at the sign of P, or add a multiple of the identity")


def is_positive(matrix: Any, margin: float) -> bool:
    """Tell whether a symmetric matrix is positive definite, if a margin is added to its eigenvalues."""
    try:
        np.linalg.cholesky(matrix + (margin or 1.0) * np.eye(len(matrix)))
    except np.linalg.LinAlgError:
        return False
    return True


def null_space(matrix: Any) -> Any:
    """Return an orthonormal basis of what a matrix makes zero."""
    _, sizes, rows = np.linalg.svd(matrix)
    return rows[np.sum(sizes > ROUNDING * np.max(sizes, initial=0.0)) :].T


def require_optimal(found: Polished, program: QuadraticProgram) -> None:
    """Raise a NumericalError where a point misses the conditions of optimality."""
    missed = missed_by(found, program)
    if found.is_optimal and missed <= NEAR:
        return
    far = f", or misses its constraints, by {missed:.1e} of their terms" if missed > NEAR else ""
    raise failure(program, f"a point that is not optimal{far}")


def missed_by(found: Polished, program: QuadraticProgram) -> float:
    """Return the largest residual of the conditions of optimality, as part of their terms."""
    (p, q, a, b, g, _), x = program, found.x
    y, z = found.equality, found.inequality
    terms = abs(p) @ np.abs(x) + np.abs(q) + abs(a).T @ np.abs(y) + abs(g).T @ np.abs(z)
    slope = np.abs(p @ x + q + y @ a + z @ g) / (1.0 + terms)
    equations = np.abs(a @ x - b) / (1.0 + np.abs(b) + abs(a) @ np.abs(x))
    room = -found.room
    parts = [float(np.max(part, initial=0.0)) for part in (slope, equations, room)]
    return float(np.max(parts)) if np.all(np.isfinite(parts)) else np.inf


def failure(program: QuadraticProgram, otherwise: str) -> NumericalError:
    """Return the error about a program without a solution, or of which none was found, which linear programs tell."""
    from scipy.optimize import linprog

    p, q, a, b, g, h = program
    if not all(np.all(np.isfinite(x.data if is_sparse(x) else x)) for x in program):
        return NumericalError("qp", "NaN or infinity", "finite numbers are needed", "Leave out what has no limit")
    free = (None, None)
    if linprog(np.zeros(len(q)), g, h, a, b, free).status == 2:
        given = "infeasible constraints: no x meets all of them"
        return NumericalError("qp", given, "ones that can be met are needed", "Look for contradictions")
    still = join_rows([p, a])
    fall = linprog(q, g, np.zeros(len(h)), still, np.zeros(still.shape[0]), (-1.0, 1.0))
    if fall.status == 0 and fall.fun < -NEAR * (1.0 + np.max(np.abs(q), initial=0.0)):
        given = "an objective that falls for ever within the constraints"
        return NumericalError("qp", given, "one with a minimum is needed", "Add constraints, or a term to P")
    needed = "the solution is needed, to six digits"
    return NumericalError("qp", otherwise, needed, "Let the solver go on, or pass another one")
