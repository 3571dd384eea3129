"""Initial value problems by the name and the arguments of SciPy's older function: `odeint`."""

from __future__ import annotations

import itertools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import FEW, as_whole, elements, require_callable, require_flag
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.creation import asarray
from wengert.errors import DtypeError, ShapeError, UsageError, named_after
from wengert.scipy.integrate._arguments import DEFAULT_STEPS, as_floats, as_state, as_time, require_within
from wengert.scipy.integrate._initial_value import Integration, with_moving_times
from wengert.scipy.integrate._left_to_scipy import integrate_or_leave_to_scipy
from wengert.scipy.integrate._settings import CallArguments, settings_for

NAME = "odeint"
TOLERANCE = 1.49012e-8


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Any = (),
    Dfun: Any = None,  # noqa: N803 # SciPy's name
    col_deriv: Any = False,
    full_output: Any = False,
    ml: int | None = None,
    mu: int | None = None,
    rtol: Any = None,
    atol: Any = None,
    tcrit: Any = None,
    h0: Any = 0.0,
    hmax: Any = 0.0,
    *,
    mxstep: int = 0,
    tfirst: bool = False,
) -> Any:
    """Solve y' = func(y, t), y(t[0]) = y0, with derivatives; see `scipy.integrate.odeint`.

    SciPy's changes between methods of Adams and of backward differences. Here it is Rodas5P, which serves stiff and
    other equations alike, with the tolerances of SciPy's; differentiated are its steps, as by `solve_ivp`. Functions
    that cannot be traced are integrated by SciPy, as there.

    Args:
        func: `func(y, t, *args)` gives the slope.
        y0: the initial state, of shape (n,), or a number.
        t: times of output in order, of shape (m,); the first is that of `y0`. They may repeat.
        args: further arguments, a tuple.
        Dfun: the Jacobian, which is not needed: it is derived, and exact.
        col_deriv: how `Dfun` would be laid out.
        full_output: whether to return what the integration took, too.
        ml: how many bands the Jacobian has below the diagonal, none if only `mu` is given. By default, and where they
            are negative, they are found.
        mu: how many it has above.
        rtol: the relative tolerance, 1.49012e-8 if not given.
        atol: the absolute one, likewise.
        tcrit: numbers, times where a step has to end, as `func` jumps there. By times of jumps there are derivatives
            where these are events of `solve_ivp`.
        h0: the size of the first step, 0 to choose it.
        hmax: the largest size of a step, 0 for any.
        mxstep: how many steps may be tried between two times, on average; 0 for a million in all.
        tfirst: whether it is `func(t, y, *args)`.

    Returns:
        states of shape (m, n), NaN at times that were not reached, of which there is a warning; with `full_output` also
        a dictionary with "nfe" and "nje", how often the function and its Jacobian were evaluated, arrays of one number,
        and "message".

    Raises:
        UsageError: times are not in order, tolerances or sizes not positive, or critical times not known.
        DtypeError: `y0` is complex.
        ShapeError: `t` has not one axis, or no elements, or `func` gives another shape than that of the state.

    >>> import wengert as wg
    >>> odeint(lambda y, t, k: -k * y, 1.0, [0.0, 1.0, 2.0], args=(0.5,)).round(6)[:, 0]
    array([1.      , 0.606531, 0.367879])
    >>> round(wg.grad(lambda k: odeint(lambda y, t: -k * y, 1.0, [0.0, 2.0])[-1, 0])(0.5), 5)
    -0.73576
    """
    require_callable(NAME, func, "func")
    require_flag(NAME, tfirst=tfirst)
    times = ordered_times(t)
    start = initial_state(y0)
    times, places, splits = with_critical_times(times, tcrit)
    bands = bandwidth("ml", ml), bandwidth("mu", mu)
    most = as_whole(NAME, "mxstep", mxstep, least=0) * max(len(times) - 1, 1) or DEFAULT_STEPS
    tolerances = TOLERANCE if rtol is None else rtol, TOLERANCE if atol is None else atol
    values = func, args if isinstance(args, tuple) else (args,), None, None, (), (), None

    def solve(times: Any, start: Any, first: Any) -> Any:
        ends = as_time("t", times[0]), as_time("t", times[-1])
        state = as_state(start)
        sizes = first or None, hmax or np.inf, most
        known = CallArguments(len(state), "f", "Rodas5P", *tolerances, *bands, *sizes, not tfirst)
        if first:
            require_within(first, *ends)
        settings = settings_for(known)
        options = with_moving_times(settings.options, ends[0], times)
        integration = Integration(values, options, ends, state, settings.control, None, settings.is_judged)
        return integration.result(times, dense_output=False, by_sensitivities=False)

    def integrate() -> Any:
        with named_after(NAME, "solve_ivp"):
            states, found, counts = states_between(solve, times, start, splits, h0)
        if misses_end(found):
            from scipy.integrate import ODEintWarning  # with all else of it, which takes 50 ms

            warnings.warn(f"{NAME}: {found.message}", ODEintWarning, stacklevel=user_stacklevel())
        if places is not None:
            states = states[places]
        if not full_output:
            return states
        return states, {
            "nfe": np.reshape(counts[0], (1,)),
            "nje": np.reshape(counts[1], (1,)),
            "message": found.message,
        }

    names = {"ml": ml, "mu": mu, "rtol": rtol, "atol": atol, "tcrit": tcrit, "h0": h0, "hmax": hmax, "mxstep": mxstep}
    plain = func, y0, t, args, Dfun, col_deriv, full_output
    return integrate_or_leave_to_scipy(NAME, integrate, (func,), plain, {**names, "tfirst": tfirst})


def misses_end(found: Any) -> bool:
    """Tell whether an integration is known not to have reached its end."""
    status = found["status"]
    return status < 0 if type(status) is int else is_concrete(status) and raw(status) < 0


def initial_state(y0: Any) -> Any:
    """Return the initial state, or one number as a state."""
    usual = as_floats(y0)
    if usual is not None and usual.ndim == 1:
        return usual
    start = np.atleast_1d(asarray(y0) if any(type(x) is Tensor for x in flatten(y0)[0]) else y0)
    if start.dtype.kind == "c":
        raise DtypeError(NAME, f"y0 of dtype {start.dtype}", "real numbers are needed", "Call solve_ivp")
    return start


def bandwidth(what: str, bands: Any) -> int | None:
    """Return how many bands there are on a side of the diagonal; None where they are to be found."""
    return None if bands is None or bands < 0 else as_whole(NAME, what, bands)


def ordered_times(t: Any) -> Any:
    """Return times, which follow each other if they are known; each has derivatives of its own where they repeat."""
    usual = as_floats(t)
    if usual is not None and usual.ndim == 1 and 0 < len(usual) < FEW and are_in_order(usual):
        return usual
    times: Any = asarray(t) if usual is None else usual
    if times.shape == (0,):
        raise ShapeError(NAME, "t without a time", "one time at least is needed", "Pass that of y0 first")
    if times.ndim != 1:
        raise ShapeError(NAME, f"t of shape {times.shape}", "one axis of times is needed", "Pass a list of times")
    times = times if times.dtype == float else times.astype(float)
    known = elements(times)
    if known is not None and len(known) > 2 and not are_in_order(known):
        given = "times in t that do not follow each other"
        raise UsageError(NAME, given, "times in one order are needed", "Sort them")
    return times if usual is not None or any(type(x) is Tensor for x in flatten(t)[0]) else times.numpy()


def are_in_order(times: Any) -> bool:
    """Tell whether known times rise or fall, or repeat."""
    if len(times) < FEW:
        few = times.tolist()
        return all(map(operator.le, few, few[1:])) or all(map(operator.ge, few, few[1:]))
    steps = np.diff(times)
    return bool((steps >= 0).all() or (steps <= 0).all())


def with_critical_times(times: Any, tcrit: Any) -> tuple[Any, Any, list[int]]:
    """Return times with those where a step has to end, the places there of times of output, and which of them end one.

    None and an empty list where no step has to end.

    Args:
        times: those of output.
        tcrit: where a step has to end; None for nowhere.
    """
    if tcrit is None:
        return times, None, []
    known, critical = elements(times), np.reshape(elements(tcrit), (-1,))
    if known is None or any(type(x) is Tensor for x in flatten(tcrit)[0]):
        asked = "a Tensor for tcrit, or t beside it of which nobody knows the numbers"
        raise UsageError(NAME, asked, "numbers are needed", "Let jumps be events of solve_ivp")
    direction = 1.0 if known[-1] >= known[0] else -1.0
    inside = (direction * (critical - known[0]) > 0) & (direction * (known[-1] - critical) > 0)
    chosen = np.flatnonzero(inside & ~np.isin(critical, known))
    both = np.concatenate([known, critical[chosen]])
    order = np.argsort(direction * both, kind="stable")
    is_new = np.diff(both[order], prepend=np.nan) != 0
    splits = np.flatnonzero(np.isin(both[order], critical[inside]) & is_new)
    joined = np.concatenate([times, critical[chosen]])[order]
    return joined, np.argsort(order)[: len(known)], splits.tolist()


def states_between(solve: Callable[..., Any], times: Any, start: Any, splits: list[int], first: Any) -> Any:
    """Return the states at times, the last result, and how often the slope and its Jacobian were evaluated.

    Args:
        solve: integrates, from times, a state, and the size of the first step.
        times: of output, the first that of the state.
        start: the state.
        splits: the numbers of times where another integration begins.
        first: the size of the first step.
    """
    parts: list[Any] = []
    counts: Any = (0, 0)
    for before, after in itertools.pairwise([0, *splits, len(times) - 1]):
        found = solve(times[before : after + 1] if splits else times, start, 0.0 if before else first)
        counts = counts[0] + found["nfev"], counts[1] + found["njev"]
        states = found["y"].T
        if not splits and len(states) == len(times):
            return states, found, counts
        rows = states if len(states) else np.reshape(start, (1, -1))
        parts.append(rows[1 if before else 0 :])
        start = rows[-1]
        if misses_end(found):
            break
    states = parts[0] if len(parts) == 1 else np.concatenate(parts)
    if len(states) < len(times):
        states = np.concatenate([states, np.full((len(times) - len(states), states.shape[1]), np.nan)])
    return states, found, counts
