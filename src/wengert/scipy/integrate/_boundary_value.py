"""Boundary value problems: `solve_bvp`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.side_effects import Reach
from wengert.core.diagnostics.argument_checks import elements, require_callable
from wengert.core.values.tensor import Tensor, is_concrete
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.matrix_free import OwnSolver
from wengert.implicit.solver_call import solve_without_derivatives
from wengert.implicit.vectors import vector_of
from wengert.scipy.integrate._collocation import NAME, CollocationEquations, CollocationFactors
from wengert.scipy.integrate._mesh_room import solve_in_room
from wengert.scipy.optimize._solving import asking
from wengert.transforms.reverse import stop_gradient
from wengert.tree import leaves


def solve_bvp(
    fun: Callable[..., Any],
    bc: Callable[..., Any],
    x: Any,
    y: Any,
    p: Any = None,
    S: Any = None,  # noqa: N803 - SciPy's name
    fun_jac: Callable[..., Any] | None = None,
    bc_jac: Callable[..., Any] | None = None,
    tol: float = 1e-3,
    max_nodes: int = 1000,
    verbose: int = 0,
    bc_tol: float | None = None,
) -> Any:
    """Solve y' = fun(x, y, p) + S y / (x - a), bc(y(a), y(b), p) = 0; see `scipy.integrate.solve_bvp`.

    SciPy solves it, with the Jacobians that Wengert gives it. Derivatives of any order, in both modes, are those of the
    collocation equations on the last mesh, which is held: by what `fun` and `bc` capture, by `S`, and by the mesh, of
    which the first and the last node are the ends of the interval. They are as exact as the solution is.

    The mesh is chosen by numbers: functions that `jit` traces, and lanes of `vmap`, call SciPy by Python, and arrays
    have room there for `max_nodes` nodes, of which the second one is there as often as there is room.

    Args:
        fun: `fun(x, y)`, or `fun(x, y, p)` if there is p: slopes of shape (n, m) at all nodes, of which each depends on
            its own column alone.
        bc: `bc(ya, yb)`, or `bc(ya, yb, p)`: n + k numbers that are zero.
        x: the first mesh, of shape (m,), which increases. Nodes between those of it move with them.
        y: a guess, of shape (n, m); complex for complex equations, whose functions are holomorphic.
        p: a guess for k unknown parameters.
        S: the matrix of the singular term, of shape (n, n).
        fun_jac: as in SciPy, for the solver alone; by default exact.
        bc_jac: likewise.
        tol: as in SciPy.
        max_nodes: as in SciPy.
        verbose: as in SciPy.
        bc_tol: as in SciPy.

    Returns:
        SciPy's result. Where something is differentiated `x`, `y`, `yp`, `p` and `sol` have derivatives. While it is
        traced, `message` is None.

    Raises:
        ShapeError: `fun` gives another shape than that of y.
        UsageError: a function gives None.
        NumericalError: a derivative is asked for where there was no success, or where the equations are singular.

    >>> import wengert as wg
    >>> def height(force):  # of a rope between (0, 0) and (1, 0)
    ...     slopes = lambda x, y: np.stack([y[1], force + 0 * x])
    ...     ends = lambda ya, yb: np.stack([ya[0], yb[0]])
    ...     return solve_bvp(slopes, ends, [0.0, 0.5, 1.0], np.zeros((2, 3))).sol(0.5)[0]
    >>> round(float(height(2.0)), 6), round(wg.grad(height)(2.0), 6)
    (-0.25, -0.125)
    """
    require_callable(NAME, fun, "fun")
    require_callable(NAME, bc, "bc")
    equations = CollocationEquations(fun, bc, p is not None and np.size(p) > 0)
    values = x, y, p, S

    def by_scipy(x: Any, y: Any, p: Any, singular: Any) -> Any:
        from scipy import integrate

        slopes = fun_jac or equations.slopes, bc_jac or equations.slopes_of_conditions
        options = tol, max_nodes, verbose, bc_tol
        return integrate.solve_bvp(*equations.numbers(), x, y, p, singular, *slopes, *options)

    if not has_numbers(values, (fun, bc)):
        return solve_in_room(equations, by_scipy, values, max_nodes)
    traced = asking(NAME, values, (fun, bc)).traced
    results: list[Any] = []

    def solve(x: Any, y: Any, p: Any, singular: Any) -> Any:
        found = by_scipy(x, y, p, singular)
        known = traced and found.success
        results.extend((found, equations.jacobian(found, singular) if known else None))
        return found.x

    solve_without_derivatives(solve, values, {}, None)
    found, jacobian = results
    return attach_derivatives(equations, found, CollocationFactors(jacobian, found.message), x, S) if traced else found


def has_numbers(values: Any, functions: Sequence[Callable[..., Any]]) -> bool:
    """Tell whether there are numbers by which a mesh can be chosen."""
    reached = [x for function in functions for x, _ in Reach(NAME, function).tensors]
    return all(map(is_concrete, (*leaves(values), *reached)))


def attach_derivatives(
    equations: CollocationEquations, found: Any, factors: CollocationFactors, x: Any, singular: Any
) -> Any:
    """Return SciPy's result, whose arrays have the derivatives that the collocation equations give them."""
    mesh = moved_mesh(x, found.x)
    unknown = found.y.T, np.zeros(0, found.y.dtype) if found.p is None else found.p
    own = OwnSolver(factors.solve, factors.solve_transposed, vector_of(NAME, "a solution", unknown)[0], False)
    residual = equations.residual_by_functions()
    rows, p = implicit_solution(residual, unknown, (mesh, singular), name=NAME, linear_solver=own)
    y, is_finite = rows.T, np.isfinite(found.y).all() and np.isfinite(found.yp).all()
    found.x, found.y, found.yp = mesh, y, equations.slope_at_nodes(mesh, y, p, singular)
    found.p = None if found.p is None else p
    if is_finite:  # SciPy's own is of NaN, too, which splines of ours refuse
        from wengert.scipy.interpolate import CubicHermiteSpline  # which initial value problems do without

        found.sol = CubicHermiteSpline(mesh, y, found.yp, axis=1)
    return found


def moved_mesh(x: Any, nodes: Any) -> Any:
    """Return the last mesh as a function of the first one: its nodes divide intervals of this in held proportions."""
    if not any(type(leaf) is Tensor for leaf in leaves(x)):
        return nodes
    x = x if type(x) is Tensor else np.stack(list(x))
    known = np.asarray(elements(x))
    place = np.clip(np.searchsorted(known, nodes, side="right") - 1, 0, len(known) - 2)
    part = (nodes - known[place]) / (known[place + 1] - known[place])
    moved = x[place] * (1 - part) + x[place + 1] * part
    return nodes + (moved - stop_gradient(moved))
