"""Initial value problems: `solve_ivp`."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.diagnostics.source_positions import function_called, user_stacklevel
from wengert.core.values.tensor import Tensor, is_concrete, is_staged, raw
from wengert.errors import UsageError
from wengert.scipy.integrate._algebraic import Algebraic, require_consistent
from wengert.scipy.integrate._arguments import (
    DEFAULT_STEPS,
    arguments,
    as_state,
    ends_of,
    jacobian_of,
    output_times,
    require_within,
    stops_of,
    unknown_steps,
)
from wengert.scipy.integrate._events import Watched, require_crossing, settings_of
from wengert.scipy.integrate._jumps import warn_if_jumping
from wengert.scipy.integrate._left_to_scipy import integrate_or_leave_to_scipy
from wengert.scipy.integrate._methods.adaptive_steps import Control, Walk
from wengert.scipy.integrate._methods.matrix_choice import require_elements
from wengert.scipy.integrate._methods.methods_by_name import OUTSIDE
from wengert.scipy.integrate._outside import OutsideIntegration
from wengert.scipy.integrate._programs import IntegrationProgram, collect_steps, run_program
from wengert.scipy.integrate._results import MovingStates, reason_of, result_at_times, result_of_steps
from wengert.scipy.integrate._right_hand_side import NAME
from wengert.scipy.integrate._sensitivities import at_stops_by_sensitivities
from wengert.scipy.integrate._settings import CallArguments, settings_for
from wengert.scipy.integrate._step_loops import Options, walk_of
from wengert.scipy.integrate._unseen_derivatives import MORE, beside, is_any_traced, warn_if_unseen
from wengert.scipy.integrate._unstable_derivatives import BESIDE, warn_if_unstable
from wengert.support.records import NamedTuple
from wengert.transforms.forward import jvp
from wengert.transforms.outer_values import OuterValues
from wengert.transforms.reverse import stop_gradient

SCIPYS = frozenset(("RK23", "RK45", "DOP853", "Radau", "BDF"))
"""Methods whose steps are SciPy's."""


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    method: str = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    jac: Any = None,
    jac_sparsity: Any = None,
    lband: int | None = None,
    uband: int | None = None,
    mass: Any = None,
    start: str = "given",
    step: Any = None,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = DEFAULT_STEPS,
    gradient: str | None = None,
    memory_budget: int | str | None = None,
) -> Any:
    """Solve y' = fun(t, y), y(t0) = y0, with derivatives; see `scipy.integrate.solve_ivp`, whose steps it takes.

    Derivatives are those of the steps taken, their sizes and inner times held constant: by the initial state, by
    `args` and what functions capture, by both ends of the interval and by output times, in both modes and to any
    order; those of events, and by output times, to the third. States move with output times as the equation says, as
    slopes of continuous extensions are less exact; those by sizes of steps and by tolerances are zero.
    They differ from those of the solution by about as much as the solution does, unless this has no errors at any size
    of steps, as a pendulum at rest has none: then pass `max_step`. A warning tells so, except in traced functions.

    The integration is traced and compiled once for all functions of the same code: floats and arrays of them, passed
    or captured, may have other values in the next call. `fun` is traced as functions are under `jit`. One that cannot
    be, as it looks at numbers, or counts its calls, is integrated by SciPy itself, if the method is SciPy's, and no
    derivative is taken; else it is refused.

    Implicit methods find out which elements of the Jacobian may be other than zero. Where these are few they compute
    them alone, and factorise banded matrices, or sparse ones, whichever takes less time.

    Args:
        fun: `fun(t, y, *args)` gives the slope: an array or a list like `y`.
        t_span: (t0, t1), where to begin and to end.
        y0: the initial state, of shape (n,); integers as floats.
        method: "RK23", "RK45", "DOP853" (SciPy's), "Tsit5"; for stiff equations "Radau", "BDF" (SciPy's), "Rodas5P",
            "Kvaerno5"; for either kind SciPy's own "LSODA"; SUNDIALS' "CVODE", and "IDA" for masses, where
            scikit-sundae is installed (the extra `sundials`); with steps of one size "Euler", "Heun", "RK4", and
            "Verlet", for positions and as many velocities, which is symplectic where slopes depend on the other half
            alone.
        t_eval: times of output in order, of shape (m,), which may repeat. By default those of the steps, of which no
            one knows how many there are; so `jit` and `vmap` need it: `t_eval=[t1]` for the end alone.
        dense_output: whether `sol` is the solution as a function of time.
        events: a function `event(t, y, *args)`, or a list of them, whose zeros are recorded; two in a step at most,
            also where signs at its ends are the same. Attributes of theirs say more: `terminal` that the first one ends
            the integration, or after how many it does; `direction`, of the sign of what the function does there, which
            zeros count; `reset(t, y, *args)` gives the state to go on from.
        vectorized: whether `fun` takes states of shape (n, 1).
        args: further arguments of `fun`, in any containers.
        rtol: the relative tolerance of errors of a step.
        atol: the absolute tolerance, a number or of shape (n,).
        jac: for "Radau", "BDF", "Kvaerno5", "LSODA", "CVODE" and "IDA" the Jacobian of `fun` by y, of shape (n, n), or
            a function `jac(t, y, *args)` that gives it. By default it is derived, and exact. Steps depend on it,
            results and derivatives by no more than their tolerance.
        jac_sparsity: for methods for stiff equations, which elements of the Jacobian may be other than zero: those that
            are not zero, or are stored, in a matrix of shape (n, n), dense or of `scipy.sparse`. By default they are
            found; this is for functions of which that finds too many, as products with a matrix that has zeros.
        lband: likewise, how many bands below the diagonal there are, 0 if only `uband` is given.
        uband: how many there are above. A Jacobian given as `jac` then has element (i, j) at (uband + i - j, j).
        mass: the matrix M of M y' = fun(t, y), of shape (n, n), an array or sparse, for methods for stiff equations; a
            singular one makes equations without a slope of algebraic ones, which `y0` has to satisfy within ten
            tolerances, and which have to determine the states without a slope (index 1).
        start: whether `y0` has to satisfy algebraic equations, "given", or these are "solved" for what M does not
            determine, from `y0` as the first guess, and again from what a reset gives.
        step: the size of all steps for methods of one size, save the last, which ends at t1.
        first_step: the size of the first step; by default it is chosen.
        max_step: the largest size of a step.
        max_steps: how many steps may be tried. By methods of other libraries, within `jit` and `vmap`, there is room
            for as many, or for 1,024 by default.
        gradient: how reverse mode gets its derivatives: "discrete", the default, back through the steps, or "forward",
            by integrating sensitivities beside the states, with the same factors. These are the same derivatives;
            "forward" keeps no steps, and its time grows with the size of what is traced or differentiated.
            "continuous" solves equations for cotangents, and for tangents, along the continuous extension, with steps
            and errors of their own: derivatives of the solution, not of the steps, within its tolerance. Both need
            `t_eval`; "forward" no events, "continuous" real states, a mass matrix that is known, steps that are chosen,
            and `terminal` for events whose times and states are to be returned. Of "LSODA", "CVODE" and "IDA", whose
            steps others take, it is the default, and needs `t_eval` only where these are traced by `jit` or `vmap`;
            "discrete" there is not, nor are events with `reset`. `jit` calls them by Python, and has room for 1,024
            steps.
        memory_budget: how many bytes reverse mode may keep of the steps, as `wengert.memory_budget` says.

    Returns:
        An object with `t` (m,), `y` (n, m), `sol`, `t_events` and `y_events` (lists of arrays, one for each
        function; None without any), `nfev`, `njev`, `nlu`, `status` (0; 1 if an event ended it, -1 where the end was
        not reached), `message` and `success`. While a function is traced, what is not known is traced, too, states at
        times that were not reached are NaN, and so are events that did not happen, and derivatives of both. `terminal`
        says how many there may be of a function; of others, `t_events` and `y_events` hold None in the place of arrays.

    Raises:
        UsageError: there is no such method, output times lie outside of the interval or are not in order, tolerances
            or sizes are not positive, output times are needed, or the Jacobian has further elements at the beginning;
            where that is being traced, `status` is -1 and states are NaN.
        ShapeError: `y0` or `t_eval` has not one axis, or `fun` gives another shape than that of the state.
        NumericalError: `y0` misses algebraic equations, these do not determine the algebraic states (index 2 and
            higher), which is looked at where an integration begins and ends, or an event touches zero without crossing
            it; where that is being traced, `status` is -1 and states are NaN.
        DtypeError: a function cannot be called, or `fun` gives complex numbers for a real state.

    >>> import wengert as wg
    >>> decay = lambda t, y, k: -k * y
    >>> found = solve_ivp(decay, (0.0, 2.0), [1.0], args=(0.5,), rtol=1e-8, atol=1e-8)
    >>> found.success, found.y[:, -1].round(6)
    (True, array([0.367879]))
    >>> end = lambda k: solve_ivp(decay, (0.0, 2.0), [1.0], args=(k,), rtol=1e-8, atol=1e-8).y[0, -1]
    >>> round(wg.grad(end)(0.5), 6)
    -0.735759

    >>> def at_half(t, y, k):
    ...     return y[0] - 0.5
    >>> at_half.terminal = True
    >>> def half_life(k):
    ...     found = solve_ivp(decay, (0.0, 9.0), [1.0], args=(k,), events=at_half, rtol=1e-8, atol=1e-8)
    ...     return found.t_events[0][0]
    >>> round(float(half_life(0.5)), 5), round(wg.grad(half_life)(0.5), 5)
    (1.38629, -2.77259)
    """
    require_callable(NAME, fun, "fun")
    t0, t1 = ends_of(t_span)
    state = as_state(y0)
    times = None if t_eval is None else output_times(t_eval, t0, t1)
    steps = rtol, atol, lband, uband, first_step, max_step, max_steps
    others = dense_output, vectorized, jac_sparsity, mass, start, step, gradient, memory_budget
    known = CallArguments(state.shape[0], state.dtype.kind, method, *steps, False, *others)
    control, options, kind, masses, algebraic, odd, is_judged = settings_for(known)
    if first_step is not None:
        require_within(first_step, t0, t1)
    functions, resets, watched = settings_of(events)
    has_events = bool(functions) and kind != "continuous"
    is_outside = method in OUTSIDE
    if is_outside:
        require_no_more(method, has_events and kind == "forward", resets)
    else:
        require_gradient(kind, times is None or options.dense or has_events, odd)
    jacobian = jacobian_of(jac, method, state, options.pattern)
    values = fun, arguments(args), masses, algebraic, functions, resets, jacobian
    if functions:
        dense = options.dense or (has_events and times is not None and not is_outside)
        options = options._replace(events=watched, dense=dense)
    options = with_moving_times(options, t0, times)
    if is_outside:
        outside = OutsideIntegration(values, options, (t0, t1), state, control, kind == "forward")
        found = outside.result(times, bool(dense_output))
        warn_if_missing(found, times)
        return found
    integration = Integration(values, options, (t0, t1), state, control, algebraic, is_judged)

    traced = functools.partial(integration.result, times, bool(dense_output), kind == "forward")
    own = mass, step, gradient, memory_budget, lband, uband, *resets
    if method not in SCIPYS or start != "given" or max_steps != DEFAULT_STEPS or any(x is not None for x in own):
        return traced()
    plain = fun, t_span, y0, method, t_eval, dense_output, events, vectorized, args
    names = {"rtol": rtol, "atol": atol, "first_step": first_step, "max_step": max_step}
    jacobian = {name: x for name, x in (("jac", jac), ("jac_sparsity", jac_sparsity)) if x is not None}
    return integrate_or_leave_to_scipy(NAME, traced, (fun, *functions, jac), plain, names | jacobian)


def with_moving_times(options: Options, t0: Any, times: Any) -> Options:
    """Return options that say of which times derivatives may be asked for."""
    if Tensor not in (type(t0), type(times)):
        return options
    return options._replace(has_moving_start=type(t0) is Tensor, has_moving_times=type(times) is Tensor)


def require_no_more(method: str, has_events: bool, resets: Sequence[Any]) -> None:
    """Refuse what integrators of other libraries, and equations along their solutions, do not serve."""
    if has_events:
        given = "gradient='forward' with events"
        raise UsageError(NAME, given, "states at output times are needed", "Leave gradient out")
    if any(reset is not None for reset in resets):
        given = f"an event with reset for method {method!r}"
        needed = "a method whose steps this library takes is needed"
        raise UsageError(NAME, given, needed, "Pass method='BDF', or go on by a call of its own where the event was")


def require_gradient(gradient: Any, has_steps: bool, odd: Sequence[str]) -> None:
    """Refuse another kind of gradients than there is.

    Args:
        gradient: the kind.
        has_steps: whether more than states at output times is asked for.
        odd: what there is that equations along the solution do not serve.
    """
    if gradient != "discrete" and has_steps:
        events = "" if gradient == "continuous" else ", with events"
        given = f"gradient={gradient!r} without t_eval{events} or with dense_output"
        raise UsageError(NAME, given, "states at output times are needed", "Leave gradient out, or pass t_eval alone")
    if gradient == "continuous" and odd:
        given = f"gradient='continuous' with {' and '.join(odd)}"
        needed = "y' = f of real states, with steps that are chosen, is needed"
        raise UsageError(NAME, given, needed, "Leave gradient out")


def without_extension(options: Options) -> Options:
    """Return the options of a program whose steps leave no continuous extension behind."""
    return options._replace(dense=False) if options.dense else options


def with_next_size(walk: Walk, control: Control) -> Walk:
    """Return where an integration ended early with the size that its next step would have had, which messages name."""
    if not is_concrete(walk.failure) or not raw(walk.failure):
        return walk
    return walk._replace(size=np.minimum(walk.size, control.max_step))


def warn_if_missing(found: Any, times: Any, walk: Walk | None = None) -> None:
    """Warn of a result without a column, which is hard to tell from what failed later, or of derivatives of a few."""
    if times is None or len(found["t"]) == len(times) or found.status >= 0 or function_called() != NAME:
        return
    reached = "none of the output times was reached, so y has no column"
    if len(found.t):
        if not is_any_traced((found.y,)):
            return
        reached = f"{len(found.t)} of {len(times)} output times were reached, so y has as many columns"
    reason = found.message if walk is None else reason_of(walk)
    warnings.warn(f"{NAME}: {reached}: {reason}", UserWarning, stacklevel=user_stacklevel())


class Integration(NamedTuple):
    """Hold what is integrated, and how.

    Attributes:
        values: functions and what they are called with, as programs take them.
        options: of the program.
        ends: those of the interval.
        state: that at the beginning.
        control: that of the sizes of steps.
        algebraic: those of a singular mass matrix; None without.
        is_judged: whether a warning tells of derivatives that steps do not resolve.
    """

    values: Sequence[Any]
    options: Options
    ends: tuple[Any, Any]
    state: Any
    control: Control
    algebraic: Algebraic | None
    is_judged: bool

    def result(self, times: Any, dense_output: bool, by_sensitivities: bool) -> Any:
        """Return the object of results: of output times, and of all steps where these or the solution is asked for."""
        has_all_steps = times is None or dense_output
        if has_all_steps or self.options.dense:
            found = self.all_steps(has_all_steps)
            if found is not None:
                start, *steps = found
                state = start if self.options.is_solved else self.state
                is_moved = self.options.steps_hold_times or self.options.moves_outputs
                moving = MovingStates(self.moving_at) if is_moved else None
                made = result_of_steps(steps, *self.ends, state, times, self.options, dense_output, moving)
                warn_if_missing(made, times, steps[0])
                return made
            if has_all_steps:
                raise unknown_steps(times)
        last, rows = self.states_at(times, by_sensitivities)
        found = result_at_times(last, rows, times, self.options)
        warn_if_missing(found, times, walk_of(last))
        return found

    def all_steps(self, has_to_be_traced: bool) -> Any:
        """Return where it begins, if that was solved for, where it ends, and what its good attempts left behind.

        None where their number is unknown, as it is in a trace, but by functions that use no traced argument:
        `has_to_be_traced` asks for these, too, which takes as long as all else.
        """

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            if not has_to_be_traced and any(map(is_staged, flatten((leaves, self.ends, self.state, self.control))[0])):
                return (), None
            return leaves, collect_steps(program, tuple(leaves), *self.ends, self.state, self.control)

        leaves, found = run_program(self.values, self.options, run)
        if found is None:
            return None
        start, walk, columns = found
        self.look_at(walk, leaves)
        return start, with_next_size(walk, self.control), columns

    def states_at(self, times: Any, by_sensitivities: bool) -> tuple[Any, Any]:
        """Return where it ends, and the states at output times."""

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            inputs = (tuple(leaves), *self.ends, stops_of(times, self.ends[1]), self.state)
            if by_sensitivities:
                return leaves, at_stops_by_sensitivities(program, inputs, self.control)
            return leaves, program.at_stops(*inputs, self.control)

        leaves, (last, rows) = run_program(self.values, without_extension(self.options), run)
        walk = walk_of(last)
        self.look_at(walk, leaves)
        walk = with_next_size(walk, self.control)
        return last._replace(walk=walk) if isinstance(last, Watched) else walk, rows

    def look_at(self, walk: Walk, leaves: Sequence[Any]) -> None:
        """Raise for what is known to have gone wrong, or warn of it, at the end.

        Args:
            walk: where that is.
            leaves: what functions are given and hold, none where these are constants of the program.
        """
        if is_concrete(walk.failure) and raw(walk.failure):
            require_elements(walk)
            require_consistent(walk, self.algebraic, self.options.is_solved)
            require_crossing(walk)
        if leaves and not is_any_traced((self.state, *leaves)):
            return  # derivatives alone may be doubtful

        def moving() -> list[Any]:
            return [self.state, *(leaves or OuterValues(self.values).leaves)]

        warn_if_jumping(walk.rejections, moving, self.slope_at)
        if self.is_judged:
            warn_if_unseen(walk, moving, self.ends[1] - self.ends[0], self.attempts_beside)
        if self.is_judged and not self.options.is_continuous:
            method, start = self.options.method, self.ends[0]
            warn_if_unstable(walk, method, start, self.control, moving, self.slope_at, self.changes_beside)

    def slope_at(self, t: Any, y: Any) -> Any:
        """Return the right-hand side at a time and a state that are known, as an array."""

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            return program.slope_at(tuple(stop_gradient(leaves)), t, y)

        return np.asarray(raw(run_program(self.values, without_extension(self.options), run)))

    def moving_at(self, times: Any, states: Any) -> Any:
        """Return states at times, which are held, as those of times that move."""

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            return program.moving_at(tuple(leaves), times, states)

        return run_program(self.values, without_extension(self.options), run)

    def changes_beside(self, attempts: int) -> tuple[Any, Any] | None:
        """Return by what the last state changes with what moves, by a derivative and at most; None if that is known.

        It is known of a program when it was looked at for about as many attempts, with the same tolerance.
        """
        t0, t1, control = stop_gradient((*self.ends, self.control))

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            moves = [type(x) is Tensor and x._trace is not None for x in (self.state, *leaves)]
            key = *moves, float(np.min(raw(control.rtol)))
            if attempts <= MORE * program.judged_attempts.get(key, 0):
                return None
            program.judged_attempts[key] = attempts
            known = [raw(stop_gradient(x)) for x in (self.state, *leaves)]
            directions = [BESIDE * x if is_moving else 0.0 * x for x, is_moving in zip(known, moves, strict=True)]

            def last(state: Any, *leaves: Any) -> Any:
                return walk_of(program.at_stops(leaves, t0, t1, stops_of(np.zeros(0), t1), state, control)[0]).y

            value, said = jvp(last, known, directions)
            others = [last(*(x + sign * y for x, y in zip(known, directions, strict=True))) for sign in (-1.0, 1.0)]
            return raw(said), np.max([np.abs(raw(y) - raw(value)) for y in others], axis=0)

        found: tuple[Any, Any] | None = run_program(self.values, without_extension(self.options), run)
        return found

    def attempts_beside(self) -> int | None:
        """Return how many steps a solution beside this one takes, with its arguments beside; None if it fails."""
        t0, t1 = map(stop_gradient, self.ends)

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            inputs = tuple(map(beside, leaves)), t0, t1, stops_of(np.zeros(0), t1), beside(self.state)
            return program.at_stops(*inputs, stop_gradient(self.control))

        walk = walk_of(run_program(self.values, without_extension(self.options), run)[0])
        return None if raw(walk.failure) else int(raw(walk.attempts))
