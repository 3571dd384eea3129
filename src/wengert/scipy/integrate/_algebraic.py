"""Algebraic equations among those of M y' = f(t, y) with a singular M: states that are set have to satisfy them.

What the rows of M do not reach, w M = 0, says 0 = w f(t, y). A state that misses this is no state of the system: what a
method makes of it is a jump to some other one, within a step.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import elements
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import NumericalError
from wengert.scipy.integrate._methods.adaptive_steps import INCONSISTENT, INCONSISTENT_RESET, Control, Walk
from wengert.scipy.integrate._methods.tableaux import Slope, jacobian_by_state
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

NAME = "solve_ivp"
ALLOWED = 10.0
"""By how many tolerances of the state its equations may be missed."""


def algebraic_equations(mass: Any) -> Any:
    """Return the combinations of equations without a slope, a row for each; None if there are none, or nobody knows."""
    known = None if mass is None else elements(mass)
    if known is None or not len(known) or not np.all(np.isfinite(known)):
        return None
    zero = np.flatnonzero(~np.any(known, axis=1))
    rank = int(np.linalg.matrix_rank(known))
    if rank == len(known):
        return None
    if len(zero) == len(known) - rank:
        return np.eye(len(known))[zero]
    return np.linalg.svd(known)[0][:, rank:].conj().T


def rate_of(slope: Slope, mass: Any, rows: Any) -> Slope:
    """Return the function that gives how a state changes with M y' = f(t, y), from f.

    What `rows` are of, 0 = P f, holds at all times, so that 0 = P (J y' + df/dt), which are the equations that M lacks.
    They are enough if the index is 1. Of a matrix that nobody knows P is what its pseudoinverse leaves.
    """
    if mass is None:
        return slope

    def rate(t: Any, y: Any) -> Any:
        if rows is None and elements(mass) is not None:
            return np.linalg.solve(mass, slope(t, y))
        held = stop_gradient(mass)
        missing = np.eye(y.shape[0]) - held @ np.linalg.pinv(held) if rows is None else rows.conj().T @ rows
        f, by_time = jvp(lambda time: slope(time, y), (t,), (np.ones(()),))
        matrix = mass + missing @ jacobian_by_state(slope, t, y)
        return np.linalg.solve(matrix, f - missing @ (f + by_time))

    return rate


def checked_state(
    slope: Slope, walk: Walk, rows: Any, control: Control, failure: int = INCONSISTENT, is_new: Any = True
) -> Walk:
    """Return where an integration begins or goes on, or that it does not, as a new state misses algebraic equations.

    States after resets have half as many digits to fulfil: they are made of interpolated ones.
    """
    t, y = stop_gradient((walk.t, walk.y))
    f = stop_gradient(slope(t, y))
    matrix = stop_gradient(jacobian_by_state(slope, t, y))
    allowed = control.atol + control.rtol * np.abs(y)
    allowed = np.sqrt(allowed * np.max(np.abs(y))) if failure == INCONSISTENT_RESET else ALLOWED * allowed
    missed = is_new & np.any(np.abs(rows @ f) > np.abs(rows @ matrix) @ allowed)
    return walk._replace(f=np.where(missed, f, walk.f), failure=np.where(missed, failure, walk.failure))


def require_consistent(walk: Walk, rows: Any) -> None:
    """Raise if it is known that an integration did not begin, or not go on after a reset."""
    if rows is None or not is_concrete(walk.failure) or raw(walk.failure) not in (INCONSISTENT, INCONSISTENT_RESET):
        return
    residual = rows @ raw(walk.f)
    worst = int(np.argmax(np.abs(residual)))
    missed = f"a residual of {abs(residual[worst]):.6g} in the algebraic equation {text_of(rows[worst])}"
    given, action = f"an initial state with {missed}", "Solve the algebraic equations for y0 first"
    if raw(walk.failure) == INCONSISTENT_RESET:
        given = f"a reset that returned a state with {missed} at t = {raw(walk.t):.6g}"
        action = "Let reset solve the algebraic equations for what it does not set"
    needed = "one that satisfies it is needed"
    raise NumericalError(NAME, given, needed, f"{action}, as by wengert.scipy.optimize.root")


def text_of(row: Any) -> str:
    """Return an algebraic equation as text."""
    places = np.flatnonzero(np.abs(row) > 1e-12 * np.max(np.abs(row)))
    if len(places) == 1:
        return f"0 = fun[{places[0]}]"
    return "0 = " + " + ".join(f"({row[i]:.3g}) * fun[{i}]" for i in places)
