"""Boundary value problems where there are no numbers: a mesh of as many nodes as there may be.

Nodes that SciPy does not need repeat the second one: intervals between them have no length, so that the collocation
equations say that states there are the same, and sums over the mesh, its ends and its maxima are what they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import is_staged
from wengert.errors import UsageError
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.solver_call import SolverNotes, solve_without_derivatives, warn_of_calls
from wengert.scipy.integrate._collocation import NAME, CollocationEquations
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

if TYPE_CHECKING:
    from wengert.scipy.interpolate import PPoly


class FoundMesh(NamedTuple):
    """Hold what SciPy found, in a room of nodes.

    Attributes:
        places: in which intervals of the first mesh the nodes are, of shape (room,).
        parts: in which parts of these.
        y: of shape (n, room).
        p: of shape (k,).
        rms_residuals: of shape (room - 1,).
        status, niter: as in SciPy.
    """

    places: Any
    parts: Any
    y: Any
    p: Any
    rms_residuals: Any
    status: Any
    niter: Any


def solve_in_room(
    equations: CollocationEquations, solve: Callable[..., Any], values: Sequence[Any], max_nodes: int
) -> Any:
    """Return SciPy's result where values are traced or in lanes; each array has room for the largest mesh.

    Args:
        equations: of the problem.
        solve: from x, y, p and S to what SciPy finds.
        values: these.
        max_nodes: how many nodes there may be.
    """
    from scipy.optimize import OptimizeResult

    x, y, p, singular = values
    first: Any = as_tensor(x if not isinstance(x, list | tuple) else np.stack(x))
    guess: Any = as_tensor(y)
    if first.ndim != 1 or guess.ndim != 2 or first.shape[0] < 2:
        given = f"x of shape {first.shape} and y of shape {guess.shape}"
        raise UsageError(NAME, given, "a row of two nodes or more, and as many columns, are needed", "Correct them")
    room, dtype = max(int(max_nodes), first.shape[0]), np.dtype(complex if guess.dtype.kind == "c" else float)
    unknown = np.zeros(0) if p is None else as_tensor(p)

    def like(*_: Any) -> Any:
        shapes = (room,), (guess.shape[0], room), unknown.shape, (room - 1,), (), ()
        kinds = float, dtype, dtype, float, int, int
        return np.zeros(room, int), *[np.zeros(shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]

    def run(x: Any, y: Any, p: Any, singular: Any) -> Any:
        return in_room(solve(x, np.array(y), p, singular), np.asarray(x, float), room, dtype)

    made = solve_without_derivatives(run, (first, guess, p, singular), {}, like, SolverNotes(True, True))
    found = FoundMesh(*made)
    if is_staged(found.status):
        warn_of_calls(NAME, "SciPy's solve_bvp")
    success = found.status == 0
    mesh = first[found.places] * (1 - found.parts) + first[found.places + 1] * found.parts
    missed = np.where(success, 0.0, np.inf)  # of what did not converge there is no derivative

    equation = equations.residual_by_functions()

    def residual(unknown: Any, x: Any, singular: Any, missed: Any) -> Any:
        rows, rest = equation(unknown, x, singular)
        return rows + missed, rest

    start = stop_gradient((found.y.T, found.p))
    rows, p = implicit_solution(residual, start, (mesh, singular, missed), name=NAME)
    y = rows.T
    slopes = equations.slope_at_nodes(mesh, y, p, singular)
    return OptimizeResult(
        sol=piecewise(mesh, y, slopes),
        p=None if not unknown.shape[0] else p,
        x=mesh,
        y=y,
        yp=slopes,
        rms_residuals=found.rms_residuals,
        niter=found.niter,
        status=found.status,
        message=None,
        success=success,
    )


def in_room(found: Any, first: Any, room: int, dtype: Any) -> Sequence[Any]:
    """Return what SciPy found in a room of nodes, the second of which is there as often as there is room."""
    order = np.concatenate([[0], np.full(room - len(found.x), 1), np.arange(1, len(found.x))]).astype(int)
    nodes = found.x[order]
    place = np.clip(np.searchsorted(first, nodes, side="right") - 1, 0, len(first) - 2)
    part = (nodes - first[place]) / (first[place + 1] - first[place])
    missed = np.zeros(room - 1)
    missed[0], missed[len(missed) - len(found.rms_residuals) + 1 :] = found.rms_residuals[0], found.rms_residuals[1:]
    p = np.zeros(0) if found.p is None else found.p
    return place, part, found.y[:, order].astype(dtype), p.astype(dtype), missed, found.status, found.niter


def piecewise(x: Any, y: Any, slopes: Any) -> PPoly:
    """Return the cubics with these values and slopes at nodes, which may repeat the second one."""
    from wengert.scipy.interpolate import PPoly  # which initial value problems do without

    width = x[1:] - x[:-1]
    is_repeated = width == 0
    width = np.where(is_repeated, 1.0, width)
    rise = np.where(is_repeated, slopes[:, :-1], (y[:, 1:] - y[:, :-1]) / width)
    bend = (slopes[:, :-1] + np.where(is_repeated, slopes[:, :-1], slopes[:, 1:]) - 2 * rise) / width
    c = np.stack([bend / width, (rise - slopes[:, :-1]) / width - bend, slopes[:, :-1], y[:, :-1]])
    return PPoly.construct_fast(np.swapaxes(c, 1, 2), x, axis=1)
