"""Algebraic equations among those of M y' = f(t, y) with a singular M: states that are set have to satisfy them.

What the rows of M do not reach, w M = 0, says 0 = w f(t, y). A state that misses this is no state of the system: what a
method makes of it is a jump to some other one, within a step.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import elements
from wengert.core.values.tensor import is_concrete, raw
from wengert.creation import asarray
from wengert.errors import NumericalError
from wengert.implicit.newton_iteration import Limits, newton, solve_system
from wengert.scipy.integrate._methods.adaptive_steps import (
    INCONSISTENT,
    INCONSISTENT_RESET,
    SINGULAR,
    Control,
    Walk,
)
from wengert.scipy.integrate._methods.held_factors import moving_root
from wengert.scipy.integrate._methods.jacobian_matrices import FULL
from wengert.scipy.integrate._methods.tableaux import jacobian_by_state
from wengert.scipy.integrate._methods.visits import Slope
from wengert.support.records import NamedTuple
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

NAME = "solve_ivp"
ALLOWED = 10.0
"""By how many tolerances of the state its equations may be missed."""
ROUNDING = 100 * float(np.finfo(float).eps)
"""The part of sums, and of the largest singular value, that is nothing but rounding errors."""
LIMITS = Limits(1e-8, 100)
"""The relative change of the last step of Newton's method to a consistent state, which is taken, and the most steps."""
SMALLEST_SHARE = 1e-3
"""The least share that equations named in an error have in what is wrong."""


class Algebraic(NamedTuple):
    """Hold what a singular mass matrix M leaves to algebraic equations.

    Attributes:
        rows: the combinations of equations without a slope, w M = 0, of shape (m, n).
        columns: those of states of which no slope is known, M v = 0, of shape (n, m).
    """

    rows: Any
    columns: Any


def algebraic_equations(mass: Any) -> Algebraic | None:
    """Return which equations and states are algebraic; None if there are none, or nobody knows."""
    known = None if mass is None else elements(mass)
    if known is None or not len(known) or not np.all(np.isfinite(known)):
        return None
    rows = null_rows(known)
    return Algebraic(rows, null_rows(known.conj().T).conj().T) if len(rows) else None


def null_rows(matrix: Any) -> Any:
    """Return what the rows of a matrix are multiplied by to give zero: unit vectors if its rows of zeros are all."""
    zero = np.flatnonzero(~np.any(matrix, axis=1))
    rank = int(np.linalg.matrix_rank(matrix))
    if len(zero) == len(matrix) - rank:
        return np.eye(len(matrix))[zero]
    return np.linalg.svd(matrix)[0][:, rank:].conj().T


def rate_of(slope: Slope, mass: Any, algebraic: Algebraic | None) -> Slope:
    """Return the function that gives how a state changes with M y' = f(t, y), from f.

    What its rows are of, 0 = P f, holds at all times, so that 0 = P (J y' + df/dt), which are the equations that M
    lacks. They are enough if the index is 1; else rates are NaN or infinite. Of a matrix that nobody knows P is what
    its pseudoinverse leaves.
    """
    if mass is None:
        return slope

    def rate(t: Any, y: Any) -> Any:
        if algebraic is None and elements(mass) is not None:
            return np.linalg.solve(mass, slope(t, y))
        held = stop_gradient(mass)
        if algebraic is None:
            missing = np.eye(y.shape[0]) - held @ np.linalg.pinv(held)
        else:
            missing = algebraic.rows.conj().T @ algebraic.rows
        f, by_time = jvp(lambda time: slope(time, y), (t,), (np.ones(()),))
        matrix = mass + missing @ jacobian_by_state(slope, t, y)
        return solve_system(matrix, f - missing @ (f + by_time))

    return rate


def checked_index(slope: Slope, walk: Walk, algebraic: Algebraic, reported: Sequence[int]) -> Walk:
    """Return where an integration is, or that it ends, as the index is not 1 there.

    It is 1 if algebraic equations determine algebraic states, that is if P J N is regular, with what multiplies M to
    zero on either side. Of a singular one, each of the user's equations gets as its slope how far it is among those
    that determine too little.

    Args:
        slope: the function.
        walk: where it is.
        algebraic: equations and states.
        reported: what else may have ended it, of which this is the reason.
    """
    t, y = stop_gradient((walk.t, walk.y))
    jacobian = stop_gradient(jacobian_by_state(slope, t, y))
    rows, columns = algebraic
    matrix = rows @ jacobian @ columns
    sizes = np.abs(rows) @ np.abs(jacobian) @ np.abs(columns)
    matrix = np.where(np.abs(matrix) > ROUNDING * sizes, matrix, 0.0)
    is_known = np.all(np.isfinite(sizes))
    matrix = np.where(is_known, matrix, np.eye(len(rows)))
    for axis in (1, 0):
        largest = np.max(np.abs(matrix), axis=axis, keepdims=True)
        matrix = matrix / np.where(largest == 0, 1.0, largest)
    left, values, _ = np.linalg.svd(matrix)
    lost = values <= len(rows) * ROUNDING * values[0]
    shares = np.sum(np.abs(rows.conj().T @ (left * lost)) ** 2, axis=1)
    singular = np.any(lost) & np.any(walk.failure == np.array(reported))
    return walk._replace(f=np.where(singular, shares, walk.f), failure=np.where(singular, SINGULAR, walk.failure))


def completed_state(slope: Slope, t: Any, y: Any, algebraic: Algebraic) -> tuple[Any, Any]:
    """Return a state that satisfies algebraic equations, and whether it was found; what M determines stays.

    It moves with what these equations read, and with what stays.
    """
    rows, columns = algebraic
    time, state = stop_gradient((t, y))
    found = stop_gradient(newton(lambda x: rows @ slope(time, state + columns @ x), np.zeros(len(rows)), LIMITS))

    def equations(x: Any) -> tuple[Any, Any, Any]:
        there = y + columns @ x
        matrix = rows @ jacobian_by_state(slope, t, there) @ columns
        singular = np.linalg.slogdet(stop_gradient(matrix))[0] == 0
        return rows @ slope(t, there), FULL, np.where(singular, np.eye(len(rows)), matrix)

    x = np.where(found.converged, found.x, np.zeros(len(rows)))
    return y + columns @ moving_root(equations, x), found.converged


def completing(reset: Callable[..., Any], slope: Slope, algebraic: Algebraic) -> Callable[..., Any]:
    """Return a reset whose states satisfy algebraic equations; NaN where none was found."""

    def complete_state(t: Any, y: Any, *args: Any) -> Any:
        state, converged = completed_state(slope, t, asarray(reset(t, y, *args)), algebraic)
        return np.where(converged, state, np.nan)

    return complete_state


def checked_state(
    slope: Slope, walk: Walk, algebraic: Algebraic, control: Control, failure: int = INCONSISTENT, is_new: Any = True
) -> Walk:
    """Return where an integration begins or goes on, or that it does not, as a new state misses algebraic equations.

    States after resets have half as many digits to fulfil: they are made of interpolated ones. What was missed at the
    beginning is added to the state, which is NaN then, as its derivatives are by what the equations depend on.
    """
    t, y = stop_gradient((walk.t, walk.y))
    moving, rows = slope(walk.t, walk.y), algebraic.rows
    f = stop_gradient(moving)
    matrix = stop_gradient(jacobian_by_state(slope, t, y))
    allowed = control.atol + control.rtol * np.abs(y)
    allowed = np.sqrt(allowed * np.max(np.abs(y))) if failure == INCONSISTENT_RESET else ALLOWED * allowed
    missed = np.any(np.abs(rows @ f) > np.abs(rows @ matrix) @ allowed) | np.any(np.isnan(y))
    missed = is_new & (walk.failure == 0) & missed
    state = np.where(missed, walk.y + rows.T @ (rows @ moving), walk.y) if failure == INCONSISTENT else walk.y
    return walk._replace(y=state, f=np.where(missed, f, walk.f), failure=np.where(missed, failure, walk.failure))


def require_consistent(walk: Walk, algebraic: Algebraic | None, is_solved: bool) -> None:
    """Raise if it is known that algebraic equations ended an integration, at its beginning, after a reset or later.

    Whether states were solved for says `is_solved`.
    """
    if algebraic is None or not is_concrete(walk.failure):
        return
    failure = raw(walk.failure)
    if failure == SINGULAR:
        raise index_error(raw(walk.f), raw(walk.t))
    if failure not in (INCONSISTENT, INCONSISTENT_RESET):
        return
    residual = algebraic.rows @ raw(walk.f)
    worst = int(np.argmax(np.abs(residual)))
    missed = f"a residual of {abs(residual[worst]):.6g} in the algebraic equation {text_of(algebraic.rows[worst])}"
    action = (
        "Pass a better first guess" if is_solved else "Pass start='solved' to solve for what mass does not determine"
    )
    if failure == INCONSISTENT_RESET:
        given = f"a reset that returned a state with {missed} at t = {raw(walk.t):.6g}"
    elif is_solved:
        given = f"a first guess of the initial state, from which none was found, with {missed}"
    else:
        given = f"an initial state with {missed}"
    raise NumericalError(NAME, given, "one that satisfies it is needed", action)


def index_error(shares: Any, t: Any) -> NumericalError:
    """Return the error for equations whose index is not 1, by what each has to do with that."""
    names = [f"fun[{i}]" for i in np.flatnonzero(shares > SMALLEST_SHARE)]
    many = f"{', '.join(names[:-1])} and {names[-1]}" if len(names) > 1 else names[0]
    given = f"a singular Jacobian by the algebraic variables of the algebraic equations of {many} at t = {t:.6g}"
    needed = "index 1 is needed, that is equations that determine these variables"
    return NumericalError(NAME, given, needed, "Put what follows from them by differentiating by time in their place")


def text_of(row: Any) -> str:
    """Return an algebraic equation as text."""
    places = np.flatnonzero(np.abs(row) > 1e-12 * np.max(np.abs(row)))
    if len(places) == 1:
        return f"0 = fun[{places[0]}]"
    return "0 = " + " + ".join(f"({row[i]:.3g}) * fun[{i}]" for i in places)
