"""Quadratic programs, differentiated by their conditions of optimality, whoever solves them."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, require_number, shown
from wengert.core.diagnostics.source_positions import Position, caller, position_of
from wengert.core.forms.routine import ALONE
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.errors import NumericalError, ShapeError, UsageError
from wengert.implicit.attaching import DENSE, implicit_solution
from wengert.implicit.quadratic_programs.active_set import settle
from wengert.implicit.quadratic_programs.interior_point import solve_by_interior_point
from wengert.implicit.quadratic_programs.program_checks import missed_by, require_convex, require_optimal
from wengert.implicit.quadratic_programs.programs import (
    FEW,
    NEAR,
    ROUNDING,
    Polished,
    QuadraticProgram,
    is_near,
    join_parts,
    polish,
    split_vector,
    with_rows_apart,
)
from wengert.implicit.quadratic_programs.row_lengths import is_sparse
from wengert.implicit.quadratic_programs.scales import Units, in_units, out_of_units, solution_out_of_units, units_of
from wengert.implicit.quadratic_programs.sparse_programs import (
    SINGULAR,
    assemble,
    elements_of_conditions,
    in_full,
    in_one_form,
    may_be_singular,
    polish_sparse,
    relaxed_elements,
    require_convex_sparse,
)
from wengert.implicit.quadratic_programs.traced_programs import columns_of_conditions, solve_traced
from wengert.implicit.roots import options_of
from wengert.implicit.solver_call import SolverNotes, solve_without_derivatives
from wengert.implicit.systems import TOLERANCE
from wengert.native.lapack import ONE_THREAD
from wengert.primitives.sparse.sparse_tensor import SparseTensor
from wengert.support.hints import hint_parameters
from wengert.support.records import NamedTuple

PACKAGE = "qpsolvers"
EXACT = {"osqp": {"eps_abs": 1e-9, "eps_rel": 1e-9, "max_iter": 100_000}}
"""What solvers are told whose own tolerance leaves open who is active: OSQP's did so in 21 of 60 random programs."""
NOTES = SolverNotes(refuses_lanes=True, refuses_tracing=True)
"""Solvers look at numbers, all of them."""


class QuadraticSolution(NamedTuple):
    """Hold the solution of a quadratic program.

    Attributes:
        x: where the minimum is, of shape (n,).
        equality: the multipliers of A x = b, of shape (m,).
        inequality: those of G x <= h, of shape (p,), not negative; zero where a constraint is not active.
    """

    x: Any
    equality: Any
    inequality: Any


@hint_parameters("qp")
def qp(
    P: Any,  # noqa: N803 - as everybody names them
    q: Any,
    A: Any = None,  # noqa: N803 - as above
    b: Any = None,
    G: Any = None,  # noqa: N803 - as above
    h: Any = None,
    *,
    solver: Callable[..., Any] | str | None = None,
    relax: float = 0.0,
    tol: float = TOLERANCE,
    singular: str = "raise",
) -> QuadraticSolution:
    """Return the x that minimises x^T P x / 2 + q^T x where A x = b and G x <= h, with derivatives by all of them.

    Derivatives follow from the conditions of optimality (Karush, Kuhn and Tucker): constraints that are not active are
    left out, those that are hold as equations. The solution is polished: x and the multipliers are computed anew from
    these equations. Where a constraint is active with a multiplier of zero there are two derivatives, one on each side;
    given is that of the side where it is not active, and a warning names it. What is near to zero is so as part of the
    size of the program: solutions of scaled programs are scaled solutions.

    Without a solver programs are solved natively in graphs that `jit` compiles, and all at once under `vmap`; what is
    uncertain there, as who is active, is left to Python. With one they are solved by Python, program by program.

    Args:
        P: of shape (n, n), symmetric and positive semidefinite; its symmetric part is used. If P, A or G is a sparse
            array, of SciPy or of Tensors, all of them are taken so: the system of the conditions is, too, and its
            factor, and derivatives by a sparse matrix are those by its stored elements.
        q: of shape (n,).
        A: of shape (m, n); None without equations.
        b: of shape (m,).
        G: of shape (p, n); None without inequalities.
        h: of shape (p,).
        solver: `solver(P, q, A, b, G, h)` returns x, from ndarrays, of which A and G may have no rows. The name of a
            solver, such as "clarabel", "osqp", "proxqp" or "highs", is one that the package qpsolvers knows. By default
            an interior point method of ours.
        relax: the weight of a barrier, for derivatives that change smoothly where constraints become active: what is
            minimised then is the objective minus relax * sum(log(h - G x)), and each multiplier is relax / (h - G x).
        tol: by which part of their terms the conditions of optimality may be missed.
        singular: as for `custom_root`: the conditions are singular where P leaves a direction open. Errors name what is
            free: a direction of x, then of the multipliers. With sparse matrices that is an error. Where active
            constraints depend on each other multipliers are not unique: "raise" leaves out those that follow from
            others, and a warning names them; "minimum_norm" takes the smallest multipliers and derivatives.

    Returns:
        x and the multipliers, as named tuple. With them P x + q + A^T equality + G^T inequality is zero.

    Raises:
        ShapeError: shapes do not fit together.
        UsageError: a constraint without its right-hand side, or a solver that is not there.
        NumericalError: constraints contradict each other, P has a negative eigenvalue in a direction that A leaves
            free, there is no minimum, or what a solver returned is none.

    >>> import numpy as np
    >>> import wengert as wg
    >>> def nearest(point):
    ...     return qp(np.eye(2), -point, G=np.array([[1.0, 1.0]]), h=np.array([1.0])).x
    >>> nearest(np.array([2.0, 1.5])).round(9)
    array([0.75, 0.25])
    >>> wg.jacobian(nearest)(np.array([2.0, 1.5])).round(9)
    array([[ 0.5, -0.5],
           [-0.5,  0.5]])
    """
    data = constants_once(checked_program({"P": P, "q": q, "A": A, "b": b, "G": G, "h": h}))
    solve, barrier = solver_named(solver), checked_barrier(relax, solver)
    stored, native = is_sparse(data[0]), solver is None and not is_sparse(data[0])
    options = options_of("qp", "dense", tol, singular)
    if stored and singular != "raise":
        needed = "'raise' is needed with sparse matrices, of whose factors there is no smallest solution"
        raise UsageError("qp", f"singular={singular!r}", needed, "Pass arrays in full")
    place = position_of(*caller())
    units = units_of(QuadraticProgram(*data))
    if barrier:  # whose weight is one of the objective
        units = units._replace(objective=np.ones((), units.x.dtype))
    data = with_fixed_arrays(in_units(QuadraticProgram(*data), units))

    def find(program: QuadraticProgram, own: Units | None = None) -> tuple[Any, ...]:
        with ONE_THREAD if solve is None and len(program.q) <= ALONE[1] else contextlib.nullcontext():
            return solve_relaxed(program, barrier) if barrier else solve_polished(solve, program, own, place, singular)

    def find_any(data: Sequence[Any], own: Units | None) -> tuple[Any, ...]:
        if native and any(type(x) is Tensor for x in data):
            return solve_traced(QuadraticProgram(*data), find, barrier)
        return find(QuadraticProgram(*(x.astype(float) for x in data)), own)

    like = (None,) if native else (like_solution, NOTES)
    given_units = None if solve is None else units  # solvers have the numbers that were given
    *found, active = solve_without_derivatives(find_any, (tuple(data), given_units), {}, *like)
    if stored and not isinstance(data[0], SparseTensor):
        return QuadraticSolution(*solution_out_of_units(found, units))
    jacobian: Any = None if barrier else columns_of_conditions
    if stored:
        jacobian = relaxed_elements if barrier else elements_of_conditions
        options["linear_solver"] = assemble(*(data[i]._pattern for i in (0, 2, 4))).pattern
    given = (relaxed_conditions if barrier else conditions, parts_with_elements(found), (*data, barrier or active))
    parts = iter(implicit_solution(*given, jacobian=jacobian, name="qp", **options))
    found = [next(parts) if i == 0 or len(x) else x for i, x in enumerate(found)]
    return QuadraticSolution(*solution_out_of_units(found, units))


def constants_once(data: Sequence[Any]) -> tuple[Any, ...]:
    """Return the data of a program with a symmetric P; constants are the same arrays for all that read them.

    So the solution and its derivatives have one matrix, and one factor.
    """
    if any(map(is_sparse, data)):
        return in_one_form(data)
    p, *rest = data
    return with_fixed_arrays((0.5 * (p + p.T), *rest))


def with_fixed_arrays(found: Sequence[Any]) -> tuple[Any, ...]:
    """Return data whose constants are, beside Tensors, arrays that nobody writes to."""
    if any(map(is_sparse, found)) or not any(type(x) is Tensor for x in found):
        return tuple(found)
    return tuple([x if type(x) is Tensor else fixed_copy(x) for x in found])


def fixed_copy(value: Any) -> Any:
    """Return an array that nobody writes to, so that each trace reads this one: equal matrices have one factor."""
    found = np.array(value)
    found.flags.writeable = False
    return found


def parts_with_elements(found: Sequence[Any]) -> tuple[Any, ...]:
    """Return x and the multipliers of what constraints there are: native code knows no arrays without elements."""
    return (found[0], *(x for x in found[1:] if len(x)))


def conditions(found: Any, p: Any, q: Any, a: Any, b: Any, g: Any, h: Any, active: Any) -> Any:
    """Return the residuals of the conditions of optimality: the Lagrangian's slope, active values, multipliers."""
    x, *multipliers = found
    slope, some = p @ x + q, [(slopes, side) for slopes, side in ((a, b), (g, h)) if len(side)]
    if not some:
        return (slope,)
    values, number = join_parts([slopes @ x - side for slopes, side in some]), join_parts(multipliers)
    parts = split_vector(np.where(active, number, 0.0), [len(side) for _, side in some])
    return sum([part @ slopes for part, (slopes, _) in zip(parts, some, strict=True)], slope), np.where(
        active, values, number
    )


def relaxed_conditions(found: Any, p: Any, q: Any, a: Any, b: Any, g: Any, h: Any, barrier: float) -> Any:
    """Return the residuals of the conditions of the central path: slope, equations, and z (h - G x) - barrier."""
    x, z = found[0], found[-1]
    slope = p @ x + q
    if g.shape[0]:
        slope = slope + z @ g
    missed = (slope + found[1] @ a, a @ x - b) if len(b) else (slope,)
    return (*missed, z * (h - g @ x) - barrier) if len(h) else missed


def solve_relaxed(program: QuadraticProgram, barrier: float) -> tuple[Any, ...]:
    """Return the point of the central path, and that nothing is active."""
    require_convex_sparse(program) if is_sparse(program.p) else require_convex(program)
    x, y, _, z = solve_by_interior_point(program, barrier)
    return x, y, z, np.zeros(len(y) + len(z), bool)


def checked_barrier(relax: float, solver: Any) -> float:
    """Return the weight of the barrier; 0 where nothing is relaxed."""
    if isinstance(relax, bool) or not isinstance(relax, int | float) or not 0.0 <= relax < np.inf:
        raise UsageError("qp", f"relax={shown(relax)}", "a number that is not negative is needed", "Leave it out")
    if relax and solver is not None:
        given = f"relax={shown(relax)} and a solver"
        needed = "the interior point method of ours is needed for points of the central path"
        raise UsageError("qp", given, needed, "Leave the solver out")
    return float(relax)


def solve_polished(
    solve: Callable[..., Any] | None, program: QuadraticProgram, units: Units | None, place: Position, singular: str
) -> tuple[Any, ...]:
    """Return x and the multipliers, and which constraints are active, of a program that a solver solves, or we do."""
    stored = is_sparse(program.p)
    require_convex_sparse(program) if stored else require_convex(program)
    if solve is None:
        point = solve_by_interior_point(program)
        x, near = point.x, point.z > point.s
    else:
        assert units is not None
        x = np.asarray(solve(*out_of_units(program, units)), float)
        if x.shape != program.q.shape:
            given = f"a solver that returned shape {x.shape}"
            raise ShapeError("qp", given, f"{program.q.shape} is needed", "Return x alone")
        x = x / units.x
        near = is_near(x, program)
    found = polish_sparse(x, near, program) if stored else polish(x, program, singular == "raise")
    small = sum(map(len, found[:3])) <= DENSE
    if stored and small and (missed_by(found, program) > NEAR or may_be_singular(found.active, program)):
        found = polish(x, in_full(program), True)  # rows that nearly depend on each other are told better in full
    if singular == "raise" and (not stored or small):
        found = settle(found, x, in_full(program))
    require_optimal(found, program)
    if singular == "raise" and (not stored or (small and may_be_singular(found.active, program, SINGULAR))):
        apart = with_rows_apart(found, in_full(program))
        found = apart if missed_by(apart, program) <= FEW * NEAR else found
    warn_of_sides(found, len(program.b), place)
    return found.x, found.equality, found.inequality, found.active


def warn_of_sides(found: Polished, count: int, place: Position) -> None:
    """Warn of derivatives that are those of one side, or of some of the constraints, of which so many are equations."""
    left = np.sort(found.left)
    of_both = {"A": left[left < count], "G": left[left >= count] - count}
    weak = np.setdiff1d(np.flatnonzero(~found.active[count:] & (found.room <= ROUNDING)), of_both["G"])
    texts = [f"rows {weak.tolist()} of G are active with a multiplier of zero; derivatives are"] if len(weak) else []
    if len(left):
        named = " and ".join([f"{part.tolist()} of {name}" for name, part in of_both.items() if len(part)])
        texts.append(f"rows {named} follow from others that are active; derivatives, and multipliers, are")
    for text in texts:
        warnings.warn_explicit(f"qp: {text} those without them", UserWarning, place.filename, place.line)


def checked_program(data: dict[str, Any]) -> tuple[Any, ...]:
    """Return the data of a program by its names, with constraints of no rows where there are none."""
    data = {name: one_array(x) for name, x in data.items()}
    require_number("qp", "q", data["q"])
    n = np.shape(data["q"])[-1] if np.ndim(data["q"]) else 0
    wanted: dict[str, tuple[int, ...]] = {"P": (n, n), "q": (n,)}
    for matrix, side in (("A", "b"), ("G", "h")):
        if (data[matrix] is None) != (data[side] is None):
            needed = f"{matrix} and {side} are needed together"
            raise UsageError("qp", "a constraint without one of its sides", needed, "Pass both")
        if data[matrix] is None:
            data[matrix], data[side] = np.zeros((0, n)), np.zeros(0)
        count = np.size(data[side])
        wanted[matrix], wanted[side] = (count, n), (count,)
    for name, value in data.items():
        if not is_sparse(value) or name in "qbh":
            require_number("qp", name, value)
        shape = value.shape if is_sparse(value) else np.shape(value)
        if shape != wanted[name]:
            given = f"{name} of shape {shape}"
            needed = f"{wanted[name]} is needed{'' if name == 'q' else f' beside q of shape {(n,)}'}"
            raise ShapeError("qp", given, needed, "Reshape it, or use wengert.vmap for many programs")
    return tuple([x if is_sparse(x) or aval_of(x).dtype.kind == "f" else x * 1.0 for x in data.values()])


def solver_named(solver: Callable[..., Any] | str | None) -> Callable[..., Any] | None:
    """Return a solver; by its name one of a package that may be there; None for ours."""
    if solver is None:
        return None
    if not isinstance(solver, str):
        require_callable("qp", solver, "solver")
        return solver
    if importlib.util.find_spec(PACKAGE) is None:
        given = f"solver={solver!r}, and the package {PACKAGE} is not installed"
        raise UsageError("qp", given, "it is needed for solvers by name", f"Run pip install {PACKAGE}[{solver}]")
    package: Any = importlib.import_module(PACKAGE)

    def solve(*data: Any) -> Any:
        p, q, a, b, g, h = data
        limits = (g, h) if len(h) else (None, None)
        both = (*limits, *((a, b) if len(b) else (None, None)))
        found = package.solve_qp(p, q, *both, solver=solver, **EXACT.get(solver, {}))
        if found is None:
            raise NumericalError("qp", f"no solution by {solver}", "one is needed", "Look for contradictions")
        return found

    return solve


def like_solution(data: Sequence[Any], _units: Any) -> Any:
    """Return zeros of the shapes of a solution: x, the multipliers of both sorts, and which inequalities are active."""
    x, y, z = (np.zeros(np.shape(data[i])) for i in (1, 3, 5))
    return x, y, z, np.zeros(len(y) + len(z), bool)
