"""Quadratic programs in graphs and in lanes: solved by native code, which leaves to Python what needs a closer look."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.lanes_in_blocks import run_lanes_in_blocks
from wengert.core.forms.routine import Routine
from wengert.core.primitives.declare import constant
from wengert.core.primitives.primitive import RoutineCall
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged
from wengert.implicit.factored import factors, substituted
from wengert.implicit.quadratic_programs.dependent_rows import APART
from wengert.implicit.quadratic_programs.interior_point import Point, factor_if_positive, iterate
from wengert.implicit.quadratic_programs.programs import CLOSE, NEAR, QuadraticProgram, join_parts, split_vector
from wengert.primitives.linear_algebra.matrices import over_stacks
from wengert.transforms.jit import jit

Again = Callable[[QuadraticProgram], tuple[Any, ...]]
MET = 1e-9
"""By how much, as part of the right side, a polished solution may miss its conditions; rounding leaves 1e-15."""


def solve_traced(program: QuadraticProgram, again: Again, barrier: float) -> tuple[Any, ...]:
    """Return x, the multipliers, and what is active, of a program that may be traced or in lanes.

    Where the iteration has not converged, P is no positive definite matrix, or it is not clear what is active, Python
    solves `again`, which says what is wrong, or warns.
    """
    compiled = not any(map(is_staged, program))  # of lanes each operation would be one of Python
    *found, certain = (compile_iteration_in_turn(barrier) if compiled else make_iteration(barrier))(*program)
    *parts, active = solved_again(program, found, certain, again)
    if not barrier:
        exact, is_exact = (compiled_polish if compiled else polished_parts)(program, parts, active > 0.5)
        kept = [np.where(certain & is_exact, one, other) for one, other in zip(exact, parts, strict=True)]
        *parts, _ = solved_again(program, (*kept, active), is_exact | ~certain, again)
    return *parts, active > 0.5


@functools.lru_cache(maxsize=16)
def compile_iteration_in_turn(barrier: float) -> Callable[..., Any]:
    """Return the iteration of `make_iteration` as one compiled program of the data."""
    return jit(make_iteration(barrier))


def make_iteration(barrier: float) -> Callable[..., Any]:
    """Return a function of data to x, the multipliers, what is active, and whether all of that is certain."""

    def find(*data: Any) -> tuple[Any, ...]:
        program = QuadraticProgram(*data)
        point, converged = iterate_in_turn(program, barrier)
        active = point.z > point.s
        certain = converged & is_convex(program)
        if not barrier:
            certain = certain & is_decided(point, active, program) & are_apart(active, program)
        return *point[:2], point.z, join_parts([np.ones(len(program.b)), active.astype(float)]), certain

    return find


def solved_again(program: QuadraticProgram, found: Sequence[Any], certain: Any, again: Again) -> tuple[Any, ...]:
    """Return x, the multipliers and what is active: as they were found where that is certain, else solved again."""
    solution = join_parts(found)
    gate = np.where(certain, np.arange(solution.shape[0], dtype=np.int32), np.int32(-1))
    solution = apply(examined, solution[:, None], gate, *program, again=again)[:, 0]
    return split_vector(solution, [len(part) for part in found])


def iterate_in_turn(program: QuadraticProgram, barrier: float) -> tuple[Point, Any]:
    """Return the last point, and whether it is the solution; the lanes of a batch run in turn, each to its own end."""
    lengths = [len(program.q), len(program.b), len(program.h), len(program.h)]

    def parts_there(*data: Any) -> tuple[Any, ...]:
        *parts, converged = iterate(QuadraticProgram(*data), barrier)
        return *(part for part, length in zip(parts, lengths, strict=True) if length), converged

    *parts, converged = run_lanes_in_blocks(parts_there, 1, *program)
    rest = iter(parts)
    return Point(*(next(rest) if length else np.zeros(0) for length in lengths)), converged


def is_decided(point: Point, active: Any, program: QuadraticProgram) -> Any:
    """Tell whether all inequalities are far from the limit, or have multipliers far from zero."""
    if not point.z.shape[0]:
        return True
    sizes = 1.0 + np.abs(program.h) + np.abs(program.g) @ np.abs(point.x)
    pairs = (point.z, program.g), (point.y, program.a)
    weighed = [np.abs(v) * np.sqrt(np.sum(rows * rows, axis=1)) for v, rows in pairs if v.shape[0]]
    forces, largest = weighed[0], 1.0 + functools.reduce(np.maximum, map(np.max, weighed))  # no matter the rows' units
    clear, other = np.where(active, forces / largest, point.s / sizes), np.where(active, point.s, forces)
    return np.all((clear > 2.0 * NEAR) & (other <= NEAR * np.where(active, sizes, largest)))


def are_apart(active: Any, program: QuadraticProgram) -> Any:
    """Tell whether no active constraint is nearly one that follows from others: by Cholesky's factor of their products.

    See `wengert.implicit.quadratic_programs.dependent_rows`; what is not active has a row of its own.
    """
    if not len(program.b) + len(program.h):
        return True
    rows, held = join_parts([program.a, program.g]), join_parts([np.ones(len(program.b)), np.where(active, 1.0, 0.0)])
    lengths = np.sqrt(np.sum(rows * rows, axis=1))
    units = rows * (held / np.where(lengths > 0.0, lengths, 1.0))[:, None]
    factor = apply(factor_if_positive, units @ units.T + np.diag(1.0 - held))
    return np.min(np.diagonal(factor)) > APART


def is_convex(program: QuadraticProgram) -> Any:
    """Tell whether P is positive definite, but for rounding; that it need be so only where A lets x go is Python's."""
    p = program.p
    if not p.shape[0]:
        return True
    margin = 1e-12 * np.max(np.abs(p)) * p.shape[0]
    shifted = p + np.where(margin > 0.0, margin, 1.0) * np.eye(p.shape[0])
    return np.isfinite(apply(factor_if_positive, shifted)[0, 0])


def polished_parts(program: QuadraticProgram, parts: Sequence[Any], active: Any) -> tuple[tuple[Any, ...], Any]:
    """Return a solution by the conditions of optimality with the active inequalities as equations, and if it is one.

    The matrix is that of derivatives, so that its factors are.
    """
    columns = columns_of_conditions(parts, *program, active)
    right, near = join_parts([-program.q, np.where(active, join_parts([program.b, program.h]), 0.0)]), join_parts(parts)
    packed, pivots = apply(factors, columns)
    exact = apply(substituted, packed, right[:, None], pivots, transposed=True)[:, 0]
    is_close = np.max(np.abs(exact - near)) <= CLOSE * (1.0 + np.max(np.abs(near)))
    is_met = np.max(np.abs(columns @ exact - right)) <= MET * (1.0 + np.max(np.abs(right)))
    return split_vector(exact, [len(part) for part in parts]), is_close & is_met


compiled_polish = jit(polished_parts)


def columns_of_conditions(_found: Any, p: Any, _q: Any, a: Any, _b: Any, g: Any, _h: Any, active: Any) -> Any:
    """Return the Jacobian of the conditions of optimality by x and the multipliers, which is symmetric.

    What is not active has a row of its own, with one on the diagonal.
    """
    if not active.shape[0]:
        return p
    held = np.where(active, 1.0, 0.0)
    slopes = join_parts([a, g]) * held[:, None]  # turned below: of constants the transpose would be another one
    return join_parts([join_parts([p, slopes.T], axis=1), join_parts([slopes, np.diag(1.0 - held)], axis=1)])


# Operations


def evaluate_examined(solution: Any, gate: Any, *data: Any, again: Again) -> Any:
    """Evaluate `examined`: solve again, by all means, what is uncertain."""

    def one(solution: Any, gate: Any, *data: Any) -> Any:
        if gate.size and gate[0] >= 0:
            return np.array(solution)
        return np.concatenate([np.asarray(part, float) for part in again(QuadraticProgram(*data))])[:, None]

    return over_stacks(one, (2, 1, 2, 1, 2, 1, 2, 1), solution, gate, *data)


examined = constant(
    "examined_program",
    evaluate_examined,
    form=Routine("(k,l),(k),(n,n),(n),(m,n),(m),(r,n),(r)->(k,l)"),
    routine=lambda *, again: RoutineCall("exchange_rows", (), {"backward": 0}, (0, 1)),
)
"""A solution, as it is where the gate, the numbers of its rows, is open; where it is closed, with -1, found again."""
