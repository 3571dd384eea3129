"""Linear systems in the Jacobian of equations: one factorisation for all right-hand sides, transposes and derivatives.

Factors are known by the elements of the matrix, and kept as long as the array lives (`wengert.support.caches`). All
rules hand on the same array, with a flag where its transpose is meant, so that derivatives of any order, and each
cotangent, use the same factors.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.batching import aligned
from wengert.core.forms.form import Pointwise
from wengert.core.forms.routine import Routine
from wengert.core.primitives.cotangent import unbroadcast
from wengert.core.primitives.declare import linear, opaque
from wengert.core.primitives.primitive import Primitive, RoutineCall
from wengert.core.values.dispatch import apply
from wengert.errors import NumericalError
from wengert.primitives.linear_algebra.matrices import lapack, pull_back_solution, tangent_side, vector_text
from wengert.support.caches import FACTORS
from wengert.support.records import NamedTuple

Params = Mapping[str, Any]
MINIMUM_NORM = "minimum_norm"
FIXED = "fixed"
"""The `singular` of functions that have no such parameter, and no `tol`, of which errors then say nothing."""
REFINED, REFINEMENTS = 1e9, 3
"""How many times less than where no digit is certain conditions are from which on solutions are refined so many times.

Each element of a matrix is then as good as exact, zeros are (R. D. Skeel, Iterative refinement implies numerical
stability for Gaussian elimination, Mathematics of Computation, 1980): where active constraints depend on each other
but for a part of 1e-7, derivatives of x have nine digits for two; but for 2e-6, ten for seven after one refinement.
"""
TOLERANCE = 1e-3
"""By how much of their terms equations may be missed: derivatives are as certain as solutions are."""


# Factors


class Factors(NamedTuple):
    """Hold what solves systems with a matrix A, or its transpose.

    Attributes:
        solve: from right-hand sides, of shape (n, m), and whether A^T is meant, to solutions.
        condition: the condition of A in the 1-norm, as LAPACK estimates it.
        packed: both triangles of A^T in one matrix.
        pivots: with which row each was exchanged.
    """

    solve: Callable[[Any, bool], Any]
    condition: float
    packed: np.ndarray[Any, Any]
    pivots: np.ndarray[Any, Any]

    @property
    def nnz(self) -> int:
        """How many elements there are."""
        return self.packed.size


def factors_of(matrix: np.ndarray[Any, Any]) -> Factors:
    """Return the factors of a matrix that nobody writes to; made once, also of an equal one."""
    found: Factors = FACTORS.find(matrix, "lu", matrix, lambda: factorise(matrix)).factor
    return found


def factorise(matrix: np.ndarray[Any, Any]) -> Factors:
    """Return the LU factors of a matrix A: its rows are columns of A^T for LAPACK, which is what is factorised."""
    kind = np.result_type(matrix, np.float32).char
    columns = np.asarray(matrix.T, dtype=kind)
    if not columns.size or not np.isfinite(columns).all():
        condition, none = np.nan if columns.size else 1.0, np.zeros(len(columns), np.int32)
        return Factors(lambda b, _transposed: np.full(b.shape, np.nan, kind), condition, columns, none)
    packed, pivots, _ = lapack("getrf", kind)(columns)
    norm = np.abs(columns).sum(axis=0).max()
    rcond, _ = lapack("gecon", kind)(packed, norm, norm="1")
    condition = 1 / float(rcond) if rcond > 0 else np.inf

    def solve(b: Any, transposed: bool) -> Any:
        return lapack("getrs", kind)(packed, pivots, b, trans=0 if transposed else 1)[0]

    return Factors(solve, condition, packed, pivots)


def is_singular(condition: float, dtype: np.dtype[Any]) -> bool:
    """Tell whether no digit of a solution is certain."""
    return not condition * np.finfo(np.result_type(dtype, np.float32)).eps < 1


# Errors


def free_direction(jacobian: Any) -> Any:
    """Return the direction of unit length along which a matrix changes what it multiplies least."""
    return np.linalg.svd(jacobian)[2][-1]


def singular_error(name: str, columns: np.ndarray[Any, Any], condition: float, singular: str) -> NumericalError:
    """Return the error about a Jacobian J that is singular, of which J^T is given."""
    if not np.isfinite(columns).all():
        given = "a Jacobian with NaN or infinite elements at the solution"
        return NumericalError(name, given, "finite ones are needed", "Look at the residual's derivative there")
    direction = free_direction(columns.T)
    given = "equations whose Jacobian is singular at the solution"
    given += f" (condition {condition:.1e}): they leave the direction {vector_text(direction)} free"
    action = "Add an equation that fixes it"
    if singular != FIXED:
        action += ", or pass singular='minimum_norm' for derivatives without it"
    return NumericalError(name, given, "a regular one is needed to differentiate", action)


# Solutions


def evaluate_solution(columns: Any, b: Any, *, transposed: bool, name: str, singular: str, tol: float) -> Any:
    """Evaluate `linear_solution`."""
    if columns.ndim == b.ndim == 2:
        return solve_one(columns, b, transposed, name, singular, tol)
    shape = np.broadcast_shapes(columns.shape[:-2], b.shape[:-2])
    lanes = (np.broadcast_to(x, (*shape, *x.shape[-2:])).reshape(-1, *x.shape[-2:]) for x in (columns, b))
    found = [solve_one(x, y, transposed, name, singular, tol) for x, y in zip(*lanes, strict=True)]
    dtype = np.result_type(columns, b, np.float32)
    return np.stack(found).reshape(*shape, *b.shape[-2:]) if found else np.zeros((*shape, *b.shape[-2:]), dtype)


def solve_one(columns: Any, b: Any, transposed: bool, name: str, singular: str, tol: float) -> Any:
    """Solve with one matrix."""
    if not b.size:
        return np.zeros(b.shape, np.result_type(columns, b, np.float32))
    if np.all(b == -np.inf):
        raise unsolved_error(name, f"more than {tol:.1e}", tol, singular)
    factors = factors_of(columns)
    if not is_singular(factors.condition, columns.dtype):
        found = factors.solve(b, transposed)
        for _ in range(REFINEMENTS if is_singular(factors.condition * REFINED, columns.dtype) else 0):
            found += factors.solve(b - (columns.T if transposed else columns) @ found, transposed)
        return found
    if not b.any():  # what a zero is multiplied by does not matter
        return np.zeros(b.shape, np.result_type(columns, b, np.float32))
    if singular != MINIMUM_NORM or not np.isfinite(columns).all():
        raise singular_error(name, columns, factors.condition, singular)
    inverse = np.linalg.pinv(columns, rcond=len(columns) * np.finfo(columns.dtype).eps)
    return (inverse.T if transposed else inverse) @ b


def vjp_solution(ct: Any, out: Any, columns: Any, b: Any, *, transposed: bool, **options: Any) -> tuple[Any, Any]:
    """Solve with the transpose."""
    ct_b = apply(linear_solution, columns, ct, transposed=not transposed, **options)
    return pull_back_solution(ct_b, out, columns, b, transposed)


def jvp_solution(tangents: Sequence[Any], out: Any, columns: Any, _b: Any, *, transposed: bool, **options: Any) -> Any:
    """Solve with the same matrix."""
    right = tangent_side(tangents[0], tangents[1], out, transposed)
    return apply(linear_solution, columns, right, transposed=transposed, **options)


def batch_solution(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Params
) -> Any:
    """Solve for all lanes; right-hand sides of one matrix, or its factors and exchanges, are columns of one system."""
    matrix, right, *exchanges = operands
    if batched[0] or any(batched[2:]) or len(matrix.shape) > 2 or len(right.shape) > 3:
        return apply(primitive, *aligned(operands, batched, (2, 2, 1)[: len(operands)]), **params)
    return columns_of_lanes(right, size, lambda sides: apply(primitive, matrix, sides, *exchanges, **params))


def columns_of_lanes(right: Any, size: int, solve: Callable[[Any], Any]) -> Any:
    """Return what a function of right-hand sides gives for those of all lanes, as columns beside each other."""
    _, rows, count = right.shape
    found = solve(np.moveaxis(right, 0, 1).reshape(rows, size * count))
    return np.moveaxis(found.reshape(rows, size, count), 1, 0)


def routine_of_solution(*, transposed: bool, name: str, singular: str, tol: float) -> RoutineCall:
    """Return how native code is called, which leaves what is nearly singular to Python."""
    return RoutineCall("solve_conditioned", (0,) if transposed else (), {"finite": 1})


linear_solution: Primitive = opaque(
    "linear_solution",
    evaluate_solution,
    vjp=vjp_solution,
    jvp=jvp_solution,
    form=Routine("(n,n),(n,m)->(n,m)"),
    batch=batch_solution,
    routine=routine_of_solution,
)
"""The solution X of op(A) X = B, where op is nothing or, with `transposed`, the transpose.

A is the transpose of a Jacobian, as forward mode makes it: each row is what comes of one direction.
"""


# The point


def evaluate_certified(right: Any, excess: Any, *, name: str, tol: float, singular: str) -> Any:
    """Evaluate `certified`."""
    require_solved(excess, name, tol, singular)
    return np.array(np.broadcast_to(right, np.broadcast_shapes(right.shape, np.shape(excess))))


def require_solved(excess: Any, name: str, tol: float, singular: str) -> None:
    """Raise a NumericalError where equations are missed by more than is allowed, whose multiples are given."""
    if not np.all(excess <= 1):
        raise unsolved_error(name, f"{float(np.max(excess)) * tol:.1e}", tol, singular)


def unsolved_error(name: str, missed: str, tol: float, singular: str) -> NumericalError:
    """Return the error about a point that does not solve its equations, which are missed by so much of their terms."""
    given = f"a solution that misses its equations by {missed} of their terms"
    if singular != FIXED:
        action = "Let the solver go on, raise an error where it does not converge, or allow more with tol"
        return NumericalError(name, given, f"at most {tol:.1e} (tol) is needed to differentiate", action)
    given += ", which counts by its own tolerance if the solver gave up (success is False)"
    action = "Let the solver go on, with a smaller tolerance (as tol=1e-10, or gtol) or more steps, or begin elsewhere"
    return NumericalError(name, given, f"at most {tol:.1e} is needed to differentiate", action)


def weight_of_giving_up(success: Any, dtype: np.dtype[Any], tol: float, own: float | None) -> Any:
    """Return how many times more what is missed counts if a solver gave up.

    What is left may be a solution where rounding stopped it: of equations to the tolerance `own` that it had, of minima
    to half of the digits, which is how exactly values tell them; three quarters of all digits are enough at any rate.
    """
    eps = float(np.finfo(dtype).eps)
    allowed = max(min(eps**0.5, eps**0.5 if own is None else own), eps**0.75)
    return np.where(success, 0.0, tol / min(allowed, tol) - 1.0)


certified = linear(
    "certified",
    evaluate_certified,
    transpose=lambda ct, aval, _excess, **_params: unbroadcast(ct, aval.shape),
    form=Pointwise(),
    scalar=lambda right, excess, *, name, tol, singular: np.where(excess <= 1, right, -np.inf),
)
"""A right-hand side of a system, if what is differentiated solves its equations; an error where it does not.

Native code makes all its elements -inf, which leaves the system to `evaluate_solution`, which knows them.
"""


def excess_of(residual: Any, columns: Any, solution: Any, tol: float) -> Any:
    """Return the greatest backward error of a solution, as a multiple of what is allowed.

    Equation i is solved by numbers that differ from x by the factor |r_i| / (|J| (1 + |x|))_i of their size, in the
    first order (W. Oettli and W. Prager, Compatibility of approximate solution of linear equations, 1964). It does not
    depend on the units of equations.
    """
    return excess_of_terms(residual, (1 + np.abs(solution)) @ np.abs(columns), tol)


def excess_of_terms(residual: Any, scale: Any, tol: float) -> Any:
    """Return the greatest backward error of equations whose terms have these sizes; see `excess_of`."""
    size = np.abs(residual)
    allowed = np.where(scale > 0, tol * scale, 1.0)
    parts = np.where((scale > 0) | (size == 0), size / allowed, np.inf)
    return np.max(parts, initial=0.0)
