"""Integrators of other libraries: they take the steps, with compiled functions, and what they found is differentiated.

SciPy's `solve_ivp` drives them all, as classes of its `OdeSolver`. Where something is traced, the steps that they took
come back as a record, along which the equations for cotangents and tangents are solved, as for gradient="continuous".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, map_leaves
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.values.tensor import Tensor, is_concrete, is_staged
from wengert.errors import NumericalError, UsageError
from wengert.implicit.solver_call import SolverNotes, solve_without_derivatives, warn_of_calls
from wengert.scipy.integrate._algebraic import require_consistent
from wengert.scipy.integrate._arguments import DEFAULT_STEPS, stops_of, unknown_steps
from wengert.scipy.integrate._events import Watched, require_crossing
from wengert.scipy.integrate._integrators import integrator_class, limited_class
from wengert.scipy.integrate._methods.adaptive_steps import TOO_SMALL, Control, Counts
from wengert.scipy.integrate._methods.matrix_choice import require_elements
from wengert.scipy.integrate._methods.recorded_steps import ORDER, UNLIMITED, StepRecord, record_of
from wengert.scipy.integrate._programs import IntegrationProgram, collect_steps, no_argument_error, run_program
from wengert.scipy.integrate._results import MESSAGES, RecordedSolution, events_of, result_at_times, result_of_steps
from wengert.scipy.integrate._right_hand_side import NAME
from wengert.scipy.integrate._sensitivities import at_stops_by_sensitivities
from wengert.scipy.integrate._step_loops import Options, walk_of
from wengert.support.records import NamedTuple
from wengert.traces.rules.calls import readable
from wengert.transforms.reverse import stop_gradient

MOST_TRACED = 1024
"""For how many steps there is room where nobody knows how many there are, unless `max_steps` says."""

SCIPYS = MESSAGES[TOO_SMALL], "Unexpected istate in LSODA."
"""What SciPy says of integrations that end early."""


class Took(NamedTuple):
    """Hold what an integrator of another library took, where methods of this one hold what they know of steps."""

    counts: Counts


class SolverCalls:
    """Hold what an integrator found, or an error about it, as long as functions wait for that: graphs call later."""

    def __init__(self) -> None:
        self.result: Any = None
        self.are_open = True

    @property
    def is_wrong(self) -> bool:
        """Whether there is an error."""
        return isinstance(self.result, UsageError)


class OutsideIntegration(NamedTuple):
    """Hold what is integrated by another library.

    Attributes:
        values: functions and what they are called with, as programs take them.
        options: of the program.
        ends: those of the interval.
        state: that at the beginning.
        control: tolerances and sizes of steps.
        by_sensitivities: whether reverse mode solves the equations of tangents.
    """

    values: Sequence[Any]
    options: Options
    ends: tuple[Any, Any]
    state: Any
    control: Control
    by_sensitivities: bool

    def result(self, times: Any, dense_output: bool) -> Any:
        """Return SciPy's object, whose arrays have derivatives if anything is traced."""

        def run(program: IntegrationProgram, leaves: Sequence[Any]) -> Any:
            given = (tuple(leaves), *self.ends, self.state, tuple(self.control[:4]), self.values[2])
            if program.traced and (not leaves or any(map(is_staged, program.traced))):
                raise no_argument_error(self.options.method)
            if any(type(x) is Tensor and x._trace is not None for x in flatten((given, times))[0]):
                return self.with_derivatives(program, given, times, dense_output)
            known = map_leaves(as_known, given)
            return self.at_known_times(program, known, None if times is None else np.asarray(times), dense_output)

        found = run_program(self.values, self.options, run)
        if isinstance(found, UsageError):
            raise found
        if found is None:
            raise unknown_steps(times)
        return found

    def at_known_times(self, program: IntegrationProgram, given: Any, times: Any, dense_output: bool) -> Any:
        """Return the integrator's own result; SciPy does not take times that repeat, so that these are put in after.

        Nor does it give any in an interval without length, whose states are those of its steps.
        """
        if times is None:
            return self.integrate(program, given, None, dense_output)
        once, places = np.unique(times, return_inverse=True)
        t0, t1 = given[1:3]
        asked = None if t0 == t1 and len(once) else once[::-1] if t1 < t0 else once
        found = self.integrate(program, given, asked, dense_output)
        places = len(once) - 1 - places if t1 < t0 else places
        reached = places < len(found.t)
        found.t, states = times[reached], np.reshape(found.y, (self.state.shape[0], len(found.t)))
        found.y = states[:, places[reached]]
        return found

    def integrate(self, program: IntegrationProgram, given: Any, times: Any, dense_output: bool) -> Any:
        """Return what SciPy's `solve_ivp` returns for compiled functions."""
        from scipy import integrate

        leaves, t0, t1, y0, sizes, mass = given
        program.slope_at(leaves, t0, y0)  # what is wrong with functions is told here, not from within an integrator
        if self.options.is_solved:
            y0 = np.asarray(program.start_at(leaves, t0, y0))
        solver, options = integrator_class(self.options.method, program, leaves, mass, sizes)
        events = [self.event(program, leaves, i) for i in range(len(self.options.events.counts))]
        found = integrate.solve_ivp(
            lambda t, y: program.slope_at(leaves, t, y),
            (float(t0), float(t1)),
            y0,
            limited_class(solver),
            times,
            dense_output,
            events or None,
            most=self.control.most,
            **options,
        )
        if found.status < 0 and found.message not in SCIPYS:
            found.message += f" It was asked for in {position_of(*caller())}"
        if dense_output:  # at the end of a step that step's own extension, as SciPy has it of multistep methods
            found.sol = integrate.OdeSolution(found.sol.ts, found.sol.interpolants, alt_segment=True)
        return found

    def event(self, program: IntegrationProgram, leaves: Any, index: int) -> Callable[..., Any]:
        """Return a function of an event, compiled, with its attributes."""
        settings = self.options.events

        def event(t: Any, y: Any) -> Any:
            return float(program.event_values(leaves, t, y)[index])

        own: Any = event
        own.terminal, own.direction = settings.counts[index] or None, settings.directions[index]
        return event

    def record_steps(self, program: IntegrationProgram, given: Any, is_known: bool) -> tuple[StepRecord, Counts, Any]:
        """Return the steps that the integrator takes, what it took, and its result if there is one that is known.

        In its place an error, if one is to be raised where no program is tried again for it.
        """
        most = MOST_TRACED if self.control.most == DEFAULT_STEPS else self.control.most
        room, size = None if is_known else most, self.state.shape[0]
        calls = SolverCalls()

        def solve(*given: Any) -> Any:
            known = map_leaves(as_known, given)
            found = self.integrate(program, known, None, True)
            steps = [x for x in found.sol.interpolants if x.t != x.t_old]
            calls.result = calls.result or found
            if room is not None and len(steps) > room:
                calls.result = self.too_many(len(steps), room)
                if not calls.are_open:
                    raise calls.result
                steps = steps[:room]
            return *record_of(steps, known[3], room), np.array([found.nfev, found.njev, found.nlu])

        def like(*_: Any) -> Any:
            rows = room or 1
            shapes = (rows,), (rows, size), (rows, ORDER + 1, size), (), (3,)
            return *map(np.zeros, shapes[:3]), *(np.zeros(shape, int) for shape in shapes[3:])

        *steps, counts = solve_without_derivatives(solve, given, {}, like, SolverNotes(True, True, False))
        if is_staged(counts):
            warn_of_calls(NAME, self.options.method)
        calls.are_open = False
        return StepRecord(*steps), Counts(*counts), calls.result if is_known or calls.is_wrong else None

    def too_many(self, count: int, room: int) -> UsageError:
        """Return the error about steps that a traced function has no room for."""
        given = f"{count} steps of {self.options.method} in a function that is being traced, or in lanes of `vmap`"
        needed = f"{room} at most are needed where max_steps does not say how many there may be"
        action = f"Pass max_steps={1 << count.bit_length()}, or a method of this library, as 'BDF'"
        return UsageError(NAME, given, needed, action)

    def with_derivatives(self, program: IntegrationProgram, given: Any, times: Any, dense_output: bool) -> Any:
        """Return the result, whose arrays have the derivatives that the equations of the solution give them.

        None where it needs the number of steps, which is not known; or an error.
        """
        is_known = all(map(is_concrete, flatten(given)[0]))
        if not is_known and (times is None or dense_output):
            return None
        record, counts, found = self.record_steps(program, given, is_known)
        if isinstance(found, UsageError):
            return found
        control = bound_errors(self.control)._replace(record=stop_gradient(record))
        leaves, t0, t1, y0 = given[:4]
        happened = None
        if found is not None and (times is None or not all(self.options.events.counts)):
            _, *steps = collect_steps(program, leaves, t0, t1, y0, control)
            happened = events_of(steps[1][2:])
        if times is None:
            walk = steps[0]._replace(memory=Took(counts))
            self.look_at(walk)
            made = result_of_steps([walk, steps[1]], t0, t1, y0, None, self.options, False, None)
        else:
            last, rows = self.at_times(program, given, times, control)
            walk = walk_of(last)._replace(memory=Took(counts))
            self.look_at(walk)
            end = last._replace(walk=walk) if isinstance(last, Watched) else walk
            made = result_at_times(end, rows, times, self.options)
        if happened is not None:
            made.t_events, made.y_events = happened
        if found is not None:
            self.compare(made, found)
            made.message = found.message
        if dense_output:
            get = self.at_times
            made.sol = RecordedSolution(found.sol, lambda t: get(program, given, t, control)[1][0][: len(t)])
        return made

    def at_times(self, program: IntegrationProgram, given: Any, times: Any, control: Control) -> Any:
        """Return where it ends, and the states at output times."""
        leaves, t0, t1, y0 = given[:4]
        stops = stops_of(times, t1)
        if self.by_sensitivities:
            return at_stops_by_sensitivities(program, (leaves, t0, t1, stops, y0), control)
        return program.at_stops(leaves, t0, t1, stops, y0, control)

    def look_at(self, walk: Any) -> None:
        """Raise for what is known to have gone wrong."""
        require_elements(walk)
        require_consistent(walk, self.values[3], self.options.is_solved)
        require_crossing(walk)

    def compare(self, made: Any, found: Any) -> None:
        """Refuse events that SciPy, which looks at signs at the ends of steps, does not see."""
        if found.t_events is None:
            return
        for i, (own, other) in enumerate(zip(made.t_events, found.t_events, strict=True)):
            if own is not None and len(own) != len(other):
                given = f"event {i} with two zeros in a step of {self.options.method}"
                raise NumericalError(NAME, given, "one zero in a step is needed", "Pass max_step")


def bound_errors(control: Control) -> Control:
    """Return tolerances by which errors of cotangents and tangents of all states are bounded: the least ones there."""
    if np.ndim(control.atol) == 0 or not is_concrete(control.atol):
        return control
    is_free = control.atol >= UNLIMITED
    rtol, atol = (np.where(is_free, np.min(x), x) if np.ndim(x) else x for x in (control.rtol, control.atol))
    return control._replace(rtol=rtol, atol=atol)


def as_known(value: Any) -> Any:
    """Return the elements of a Tensor that is not traced; anything else as it is, but a number for an array of none."""
    known = np.asarray(readable(value).numpy()) if type(value) is Tensor else value
    return known[()] if isinstance(known, np.ndarray) else known  # compiled functions take numbers in less time
