"""Initial value problems: `solve_ivp`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import (
    as_whole,
    elements,
    positive,
    refuse_wrong,
    require_callable,
    require_finite,
    require_flag,
    require_number,
    require_one_number,
    shown,
)
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.creation import asarray
from wengert.errors import ShapeError, UsageError
from wengert.scipy.integrate._dense_output import OdeSolution
from wengert.scipy.integrate._programs import NAME, Options, Program, run_program
from wengert.scipy.integrate._steps import TOO_MANY, TOO_SMALL, Control
from wengert.scipy.integrate._tableaux import tableau

METHODS = ("RK23", "RK45", "DOP853", "Tsit5")
LEAST_RTOL = 100 * float(np.finfo(float).eps)
MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    TOO_SMALL: "Required step size is less than spacing between numbers.",
    TOO_MANY: "The solver took max_steps steps without reaching the end of the integration interval.",
}


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    *,
    vectorized: bool = False,
    args: Any = None,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = 1_000_000,
    memory_budget: int | str | None = None,
) -> Any:
    """Solve y' = fun(t, y), y(t0) = y0, with derivatives; see `scipy.integrate.solve_ivp`, whose steps it takes.

    Derivatives are those of the steps taken, their sizes and inner times held constant: by the initial state, by
    `args` and what `fun` captures, by both ends of the interval and by output times, in both modes and to any order.
    They differ from those of the solution by about as much as the solution does.

    The integration is traced and compiled once for all functions of the same code: floats and arrays of them, passed
    or captured, may have other values in the next call. `fun` is traced as functions are under `jit`; what it does
    besides computing its result happens while that is done only.

    Args:
        fun: `fun(t, y, *args)` gives the slope: an array or a list like `y`.
        t_span: (t0, t1), where to begin and to end.
        y0: the initial state, of shape (n,); integers as floats.
        method: "RK23", "RK45", "DOP853" (SciPy's), or "Tsit5".
        t_eval: times of output in order, of shape (m,). By default those of the steps, of which no one knows how many
            there are; so `jit` and `vmap` need it: `t_eval=[t1]` for the end alone.
        dense_output: whether `sol` is the solution as a function of time.
        vectorized: whether `fun` takes states of shape (n, 1).
        args: further arguments of `fun`, in any containers.
        rtol: the relative tolerance of errors of a step.
        atol: the absolute tolerance, a number or of shape (n,).
        first_step: the size of the first step; by default it is chosen.
        max_step: the largest size of a step.
        max_steps: how many steps may be tried.
        memory_budget: how many bytes reverse mode may keep of the steps, as `wengert.memory_budget` says.

    Returns:
        An object with `t` (m,), `y` (n, m), `sol`, `t_events`, `y_events` (None), `nfev`, `njev`, `nlu`, `status`
        (0, or -1 where the end was not reached), `message` and `success`. While a function is traced, what is not
        known is traced, too, and states at times that were not reached are NaN.

    Raises:
        UsageError: there is no such method, output times lie outside of the interval or are not in order, tolerances
            or sizes are not positive, or output times are needed.
        ShapeError: `y0` or `t_eval` has not one axis, or `fun` gives another shape than that of the state.
        DtypeError: `fun` cannot be called, or gives complex numbers for a real state.

    >>> import wengert as wg
    >>> decay = lambda t, y, k: -k * y
    >>> found = solve_ivp(decay, (0.0, 2.0), [1.0], args=(0.5,), rtol=1e-8, atol=1e-8)
    >>> found.success, found.y[:, -1].round(6)
    (True, array([0.367879]))
    >>> end = lambda k: solve_ivp(decay, (0.0, 2.0), [1.0], args=(k,), rtol=1e-8, atol=1e-8).y[0, -1]
    >>> round(wg.grad(end)(0.5), 6)
    -0.735759
    """
    require_callable(NAME, fun, "fun")
    require_flag(NAME, dense_output=dense_output, vectorized=vectorized)
    if method not in METHODS:
        needed = f"one of {', '.join(METHODS)} is needed"
        raise UsageError(NAME, f"{shown(method)} for method", needed, "Pass its name")
    t0, t1 = ends_of(t_span)
    state = as_state(y0)
    times = None if t_eval is None else output_times(t_eval, t0, t1)
    control = Control(
        *tolerances(rtol, atol, state.shape[0]), *step_sizes(max_step, first_step, t0, t1), most_steps(max_steps)
    )
    options = Options(method, first_step is not None, bool(dense_output), bool(vectorized), memory_budget)
    values = fun, arguments(args)

    if times is None or dense_output:

        def run_rows(program: Program, leaves: Sequence[Any]) -> Any:
            return collect_steps(program, tuple(leaves), t0, t1, state, control)

        found = run_program(values, options, run_rows)
        return result_of_steps(found, t0, t1, state, times, options)

    def run_times(program: Program, leaves: Sequence[Any]) -> Any:
        return program.at_times(tuple(leaves), t0, t1, times, state, control)

    walk, rows = run_program(values, options, run_times)
    return result_at_times(walk, rows, times, options)


def ends_of(t_span: Any) -> tuple[Any, Any]:
    """Return both ends of the interval, which are numbers."""
    ends = list(t_span) if isinstance(t_span, list | tuple) else list(asarray(t_span))
    if len(ends) != 2:
        given = f"{len(ends)} numbers for t_span"
        raise ShapeError(NAME, given, "a beginning and an end are needed", "Pass (t0, t1)")
    return as_time("t_span", ends[0]), as_time("t_span", ends[1])


def as_time(what: str, value: Any) -> Any:
    """Return a time as a float."""
    require_one_number(NAME, what, value)
    require_finite(NAME, what, value)
    if type(value) is not Tensor:
        return float(value)
    return value if value.dtype == float else value.astype(float)


def as_state(y0: Any) -> Any:
    """Return the initial state in double precision."""
    found = asarray(y0)
    require_number(NAME, "y0", found)
    if found.ndim != 1:
        needed = "one axis is needed"
        raise ShapeError(NAME, f"y0 of shape {found.shape}", needed, "Pass y0.ravel(), and reshape y in fun")
    require_finite(NAME, "y0", found)
    dtype = complex if found.dtype.kind == "c" else float
    found = found if found.dtype == dtype else found.astype(dtype)
    return found if any(type(x) is Tensor for x in flatten(y0)[0]) else found.numpy()


def output_times(t_eval: Any, t0: Any, t1: Any) -> Any:
    """Return output times, which lie in the interval, in its order."""
    times = asarray(t_eval)
    if times.ndim != 1:
        raise ShapeError(NAME, f"t_eval of shape {times.shape}", "one axis is needed", "Pass a list of times")
    times = times if times.dtype == float else times.astype(float)
    known, first, last = elements(times), elements(t0), elements(t1)
    if known is not None and first is not None and last is not None:
        outside = (known < min(first, last)) | (known > max(first, last)) | np.isnan(known)
        needed = f"times between t0 = {first:.6g} and t1 = {last:.6g} are needed"
        refuse_wrong(NAME, "t_eval", known, outside, needed)
        steps = np.diff(known) if last >= first else -np.diff(known)
        if np.any(steps <= 0):
            given = "output times in t_eval that do not follow each other"
            needed = "times in order from t0 to t1 are needed"
            raise UsageError(NAME, given, needed, "Sort them, and drop repeated ones")
    return times if any(type(x) is Tensor for x in flatten(t_eval)[0]) else times.numpy()


def tolerances(rtol: Any, atol: Any, size: int) -> tuple[Any, Any]:
    """Return the tolerances, which are numbers or one for each component."""
    found: list[Any] = []
    for what, value in (("rtol", rtol), ("atol", atol)):
        number: Any = float(value) if isinstance(value, int | float) else asarray(value)
        positive(NAME, what, number)
        if np.shape(number) not in ((), (size,)):
            given = f"{what} of shape {np.shape(number)} for a state of {size} numbers"
            raise ShapeError(NAME, given, "a number, or one for each is needed", "Reshape it")
        found.append(number)
    known = elements(found[0])
    if known is not None and np.any(known < LEAST_RTOL):
        text = f"At least one element of `rtol` is too small. Setting `rtol = np.maximum(rtol, {LEAST_RTOL})`."
        warnings.warn(text, stacklevel=user_stacklevel())
        found[0] = np.maximum(found[0], LEAST_RTOL)
    return found[0], found[1]


def step_sizes(max_step: Any, first_step: Any, t0: Any, t1: Any) -> tuple[Any, Any]:
    """Return the largest size of a step, and that of the first one, 0 where it is to be chosen."""
    for what, value in (("max_step", max_step), ("first_step", first_step)):
        if value is not None:
            require_one_number(NAME, what, value)
            positive(NAME, what, value, zero=False)
    known = [elements(x) for x in (first_step, t0, t1)]
    if first_step is not None and not any(x is None for x in known) and known[0] > abs(known[2] - known[1]):
        given = f"first_step={known[0]:.6g} for an interval of length {abs(known[2] - known[1]):.6g}"
        raise UsageError(NAME, given, "a step within the interval is needed", "Leave it out")
    found = [0.0 if x is None else float(x) if isinstance(x, int | float) else x for x in (max_step, first_step)]
    return found[0], found[1]


def most_steps(max_steps: Any) -> int:
    """Return how many steps may be tried."""
    return as_whole(NAME, "max_steps", max_steps, least=1)


def arguments(args: Any) -> tuple[Any, ...]:
    """Return the further arguments of functions, which SciPy takes in anything that can be iterated."""
    if args is None:
        return ()
    try:
        return tuple(args)
    except TypeError:
        given = f"{shown(args)} for args"
        raise UsageError(NAME, given, "a tuple is needed", "Write args=(p,)") from None


def collect_steps(program: Program, leaves: Any, t0: Any, t1: Any, state: Any, control: Control) -> Any:
    """Return where an integration ends, what its attempts left behind, call by call, and which of them were good."""
    walk, rows, count = program.from_start(leaves, t0, t1, state, control)
    if not all(map(is_concrete, (count, walk.t, walk.failure, rows[0], t0, t1))):
        given = "t_eval=None in a function that is being traced, or in lanes of `vmap`"
        needed = "output times are needed where the number of steps is not known"
        raise UsageError(NAME, given, needed, "Pass t_eval; t_eval=[t1] for the end alone")
    parts = [accepted(rows, int(raw(count)))]
    direction = np.sign(raw(t1) - raw(t0))
    while direction * (raw(t1) - raw(walk.t)) > 0 and not raw(walk.failure):
        walk, rows, count = program.from_before(leaves, walk, t1, control)
        parts.append(accepted(rows, int(raw(count))))
    return walk, [join(column) for column in zip(*parts, strict=True)]


def accepted(rows: Any, count: int) -> list[Any]:
    """Return what the good attempts left behind: times, states, and the arrays of continuous extensions."""
    good, times, states, extension = rows
    places = np.flatnonzero(raw(good)[:count])
    return [x[places] for x in (times, states, *extension)]


def join(parts: Sequence[Any]) -> Any:
    """Return parts one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def result_of_steps(found: Any, t0: Any, t1: Any, state: Any, times: Any, options: Options) -> Any:
    """Return the result of an integration whose steps are known."""
    walk, (ts, ys, *extension) = found
    table = tableau(options.method)
    steps = len(ts)
    if not steps and not raw(walk.failure):  # the interval is empty: what follows is its limit
        ts, ys = np.reshape(t1, (1,)), (state + (t1 - t0) * walk.f)[None]
        size = np.ones(1)
        flat = [walk.f if i == 0 else 0 * walk.f for i in range(len(table.basis(0.0)))]
        extension = [np.reshape(t0, (1,)), size, state[None], np.stack(flat)[None]] if options.dense else []
    ts = np.concatenate([np.reshape(t0, (1,)), ts])
    ys = np.concatenate([state[None], ys])
    sol = OdeSolution(table, ts, *extension) if options.dense and len(ts) > 1 else None
    evaluations = evaluation_count(options, int(raw(walk.attempts)), steps if options.dense else 0)
    if times is not None and sol is not None:
        reached = abs(raw(times) - raw(t0)) <= abs(raw(walk.t) - raw(t0))
        times = times[: int(np.sum(reached))]
        ts, ys = times, sol(times).T
    return as_result(ts, ys.T, sol, walk, evaluations)


def result_at_times(walk: Any, rows: Any, times: Any, options: Options) -> Any:
    """Return the result of an integration with output times; known ones that were not reached are left out."""
    states, reached, attempts = rows
    states = states[:-1]
    outputs = 0
    if is_concrete(reached):
        count = int(np.sum(raw(reached)[:-1]))
        if count < len(times):
            states, times = states[:count], times[:count]
        outputs = len({*np.maximum(raw(attempts)[:count], 1).tolist()})
    return as_result(times, states.T, None, walk, evaluation_count(options, walk.attempts, outputs))


def evaluation_count(options: Options, attempts: Any, extended: int) -> Any:
    """Return how often the function was evaluated: at the beginning, in attempts, and for extensions of steps."""
    table = tableau(options.method)
    more = 0 if table.more is None else len(table.more[0])
    found = (1 if options.has_first_step else 2) + table.evaluations * attempts + more * extended
    return int(raw(found)) if is_concrete(found) else found


def as_result(ts: Any, ys: Any, sol: Any, walk: Any, evaluations: Any) -> Any:
    """Return SciPy's object of results."""
    from scipy.optimize import OptimizeResult

    known = is_concrete(walk.failure)
    failure = int(raw(walk.failure)) if known else walk.failure
    status = (-1 if failure else 0) if known else np.where(failure != 0, -1, 0)
    return OptimizeResult(
        t=ts,
        y=ys,
        sol=sol,
        t_events=None,
        y_events=None,
        nfev=evaluations,
        njev=0,
        nlu=0,
        status=status,
        message=MESSAGES[failure] if known else None,
        success=status >= 0,
    )
