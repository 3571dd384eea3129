"""Loops of steps: what an integration calls, and where they lead: states at stops, or rows of all steps."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.control.scan import scan
from wengert.control.while_loop import while_loop
from wengert.core.containers.tree_leaves import map_leaves
from wengert.scipy.integrate._algebraic import (
    Algebraic,
    checked_index,
    checked_state,
    completed_state,
)
from wengert.scipy.integrate._continuous import Flow, Piece
from wengert.scipy.integrate._events import EVENT, EventFunctions, EventSettings, Found, Path, Watched
from wengert.scipy.integrate._jumps import no_rejections
from wengert.scipy.integrate._methods.adaptive_steps import (
    INCONSISTENT,
    INCONSISTENT_RESET,
    NOT_FINITE,
    TOO_SMALL,
    Control,
    Step,
    Walk,
    as_arrays,
    begin,
    goes_on,
    interpolate_state,
    known_or_nan,
    try_step,
)
from wengert.scipy.integrate._methods.bdf import BackwardDifferences
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod, at_other_time
from wengert.scipy.integrate._methods.jacobian_matrices import FULL, GivenPattern, Matrices
from wengert.scipy.integrate._methods.matrix_choice import checked_elements
from wengert.scipy.integrate._methods.methods_by_name import FIXED, AnyMethod
from wengert.scipy.integrate._methods.visits import Slope
from wengert.scipy.integrate._right_hand_side import RightHandSide
from wengert.support.records import NamedTuple
from wengert.transforms.reverse import stop_gradient

MOST_ROWS, LEAST_ROWS, MOST_NUMBERS = 512, 16, 1 << 20
"""How many attempts a call makes whose steps are all returned: as many as fit into so many numbers."""


class Options(NamedTuple):
    """Hold what programs differ in besides functions and arguments.

    Attributes:
        method: its name.
        has_first_step: whether the user gave the size of the first step.
        dense: whether each step leaves its continuous extension behind.
        columns: whether functions take states as matrices of one column.
        has_state_first: whether the right-hand side takes the state before the time.
        budget: of bytes that reverse mode may keep.
        events: what functions of events say.
        pattern: the elements of the Jacobian that may be other than zero, where the user says which.
        mass_places: the elements of a mass matrix that are, as bytes of their places row by row; None if nobody knows.
        is_continuous: whether derivatives are those of adjoint equations, and not of the steps.
        is_solved: whether initial states and those after resets are solved for what algebraic equations determine.
        has_moving_start: whether derivatives by the beginning may be asked for, which it is a number without.
        has_moving_times: likewise of output times.
        shape, kind: of the states, by which it is chosen how Jacobians are held.
    """

    method: str
    has_first_step: bool
    dense: bool
    columns: bool
    budget: int | str | None
    has_state_first: bool = False
    events: EventSettings = EventSettings()
    pattern: GivenPattern | None = None
    mass_places: bytes | None = None
    is_solved: bool = False
    is_continuous: bool = False
    has_moving_start: bool = True
    has_moving_times: bool = True
    shape: tuple[int, ...] = ()
    kind: str = "f"

    @property
    def steps_hold_times(self) -> bool:
        """Whether states do not move with times as steps do, whose formulas may be of order 1."""
        return self.method == "BDF"

    @property
    def moves_outputs(self) -> bool:
        """Whether states move with output times by the equation: continuous extensions are of a lower order."""
        return self.has_moving_times and self.method not in FIXED


class Integrator(NamedTuple):
    """Hold what an integration calls.

    Attributes:
        slope: the user's function.
        rate: how the state changes, which is the slope unless there is a mass matrix.
        method: the method.
        events: the functions of events.
        options: what else there is to say.
        algebraic: the equations that a state has to satisfy, None if there are none.
        matrices: how Jacobians are held.
        flow: gives states the derivatives of adjoint equations, None where steps have their own.
        leaves: what functions read, which steps hold constant where there is a flow.
    """

    slope: RightHandSide
    rate: Slope
    method: AnyMethod
    events: EventFunctions
    options: Options
    algebraic: Algebraic | None = None
    matrices: Matrices = FULL
    flow: Flow | None = None
    leaves: Any = ()

    def begin(self, t0: Any, t1: Any, y0: Any, control: Control) -> State:
        """Return where an integration begins."""
        chosen = self.options.has_first_step
        y0, converged = self.initial_state(t0, y0)
        walk = begin(self.slope, self.rate, self.method, t0, t1, y0, control, chosen)
        walk = walk._replace(rejections=no_rejections(walk.t, walk.y))
        if isinstance(self.method, ImplicitMethod):
            direction = np.sign(stop_gradient(t1) - stop_gradient(t0))
            walk = self.method.start(self.slope, walk, direction, chosen, self.options.has_moving_start)
        if self.options.pattern is not None:
            walk = checked_elements(self.matrices, self.slope, walk)
        if self.algebraic is not None:
            walk = checked_index(self.slope, walk, self.algebraic, (0,))
            walk = checked_state(self.slope, walk, self.algebraic, control)
            walk = walk._replace(
                failure=np.where((walk.failure == 0) & np.logical_not(converged), INCONSISTENT, walk.failure)
            )
        return self.events.watch(walk) if len(self.events) else walk

    def initial_state(self, t0: Any, y0: Any) -> tuple[Any, Any]:
        """Return the state at the beginning, and whether there is one."""
        if self.options.is_solved and self.algebraic is not None:
            slope = self.slope if self.flow is None else self.flow.slope_of(self.leaves)
            return completed_state(slope, t0, y0, self.algebraic)
        return y0, True

    def advance(self, before: State, t1: Any, control: Control) -> Advance:
        """Try a step."""
        take = self.attempt if self.flow is None else self.flowing
        if not isinstance(before, Watched):
            walk, step = take(before, t1, control)
            return Advance(walk, step, self.extension(step, walk.rejected) if self.options.dense else (), ())
        walk, step = take(before.walk, t1, control)
        extension = self.extension(step, walk.rejected)
        near = functools.partial(self.near, step, extension, control)
        after, found = self.events.look(
            self.slope, self.rate, self.method, before, walk, step, extension, control.most, near
        )
        resets = self.options.events.resets
        if self.algebraic is not None and any(resets):
            is_new = np.any(found.happened & np.array(resets)[:, None]) & (after.walk.failure == 0)
            walk = checked_state(self.slope, after.walk, self.algebraic, control, INCONSISTENT_RESET, is_new)
            after = after._replace(walk=walk)
        return Advance(after, step, extension, found)

    def attempt(self, walk: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Take a step, which is accepted or not."""
        if isinstance(self.method, ImplicitMethod):
            after, step = self.method.try_step(self.slope, walk, t1, control)
        else:
            after, step = try_step(self.slope, self.method, walk, t1, control)
        return after._replace(rejections=walk.rejections.after(after.rejected, walk.t, step.h, walk.y)), step

    def flowing(self, before: Walk, t1: Any, control: Control) -> tuple[Walk, Step]:
        """Take a step that is held constant; the state at its end, and at the end of an interval the time, move."""
        bound = stop_gradient(t1)
        walk, step = self.attempt(stop_gradient(before), bound, control)
        t = np.where(walk.rejected, before.t, np.where(walk.t == bound, t1, walk.t))
        step = at_rest(step._replace(t=before.t, y=before.y), walk.rejected)
        # what begins at a time that moves and is rejected stays: no step of length 0 says how it moves to second order
        y = np.where(walk.rejected, before.y, self.state_in(step, t, walk.y, control))
        return walk._replace(t=t, y=y), step

    def jacobian_at(self, t: Any, y: Any) -> Any:
        """Return the Jacobian of an implicit method."""
        if not isinstance(self.method, ImplicitMethod):
            return self.matrices.jacobian(self.slope, t, y)
        return self.method.jacobian_at(self.slope, t, y)

    @property
    def holds_times(self) -> bool:
        """Whether the equation, and not the steps, tells how states move with the times that they are of."""
        return self.flow is not None or self.options.steps_hold_times

    def state_in(self, step: Step, t: Any, value: Any, control: Control) -> Any:
        """Return a state within a step, or at its end, whose value is known, with its derivatives."""
        if self.flow is not None:
            return self.flow(value, self.piece(step, control), t)
        return at_other_time(self.rate, stop_gradient(t), t, value) if self.options.moves_outputs else value

    def piece(self, step: Step, control: Control) -> Piece:
        """Return the piece of the solution that begins where a step does."""
        return Piece(step, control._replace(record=()), self.leaves, step.t, step.y)

    def near(self, step: Step, extension: Sequence[Any], control: Control, part: Any, is_known: Any) -> Path:
        """Return the solution near a part of a step, if that is known, with its derivatives; it is a number."""
        if self.flow is not None:
            return self.flow.near(self.piece(step, control), extension, np.where(is_known, part, 0.0))
        if isinstance(self.method, BackwardDifferences):
            return self.method.near(self.rate, step, extension, part, is_known)
        return lambda part: (step.t + part * step.h, interpolate_state(self.method, step.y, extension, part))

    def end(self, state: State) -> State:
        """Return where an integration ends, or that the index was not 1 there, which some methods do not notice."""
        if self.algebraic is None:
            return state
        walk = checked_index(self.slope, walk_of(state), self.algebraic, (0, EVENT, TOO_SMALL))
        return state._replace(walk=walk) if isinstance(state, Watched) else walk

    def extension(self, step: Step, rejected: Any) -> list[Any]:
        """Return the coefficients of the continuous extension of a step, which is at rest if it was rejected."""
        still = at_rest(step, rejected)
        return self.method.extend(self.slope, still.t, still.y, still.end, still.h, still.slopes)


def at_rest(step: Step, rejected: Any) -> Step:
    """Return a step that goes nowhere if it was rejected."""
    slopes = tuple([np.where(rejected, 0.0, x) for x in step.slopes])
    return step._replace(end=np.where(rejected, step.y, step.end), slopes=slopes)


State = Walk | Watched


class Advance(NamedTuple):
    """Hold what an attempt leads to: the state after it, its step, the extension if that was made, and events."""

    state: Any
    step: Step
    extension: Any
    found: Found | tuple[()]


def walk_of(state: State) -> Walk:
    """Return where an integration is, with events or without."""
    return state.walk if isinstance(state, Watched) else state


def row_count(size: int) -> int:
    """Return how many attempts a call makes whose steps are all returned."""
    return max(LEAST_ROWS, min(MOST_ROWS, MOST_NUMBERS // max(size, 1)))


def rows_of_steps(equation: Integrator, state: State, t1: Any, control: Control) -> Any:
    """Take steps until the end, or as many as there are rows.

    Returns:
        where the integration is, (whether each attempt was good, times, states, continuous extensions, events), and
        how many attempts there were.
    """
    direction = np.sign(t1 - walk_of(state).t)

    def attempt(before: State) -> tuple[State, Any]:
        made = equation.advance(before, t1, control)
        after, step = walk_of(made.state), made.step
        extension = (step.t, step.h, step.y, np.stack(made.extension)) if equation.options.dense else ()
        return made.state, (np.logical_not(after.rejected), after.t, after.y, extension, made.found)

    state, rows, count = while_loop(
        lambda state: goes_on(walk_of(state), t1, direction),
        attempt,
        as_arrays(state),
        rows=True,
        max_rounds=row_count(equation.slope.size),
    )
    return equation.end(state), rows, count


def states_at(equation: Integrator, state: State, t1: Any, stops: Any, control: Control) -> Any:
    """Return where the integration is at t1, and of each stop, t1 the last: state, whether it was reached, attempts."""
    if stops.shape[0] == 1 and not len(equation.events):
        return state_at_end(equation, state, t1, control)
    walk, method = walk_of(state), equation.method
    direction = np.sign(t1 - walk.t)
    size = np.where(walk.size * direction == 0, 1.0, walk.size * direction)
    still = Step(walk.t, walk.y, size, walk.y + size * walk.f, tuple(method.at_rest(walk.f, size)))
    start = stop_gradient(walk.t)

    def has_to_go_on(walk: Walk, time: Any) -> Any:
        """Tell whether a time lies ahead; one at the beginning lies in the first step."""
        return (walk.failure == 0) & ((direction * (time - walk.t) > 0) | ((direction != 0) & (walk.t == start)))

    def attempt(carried: tuple[State, Step]) -> tuple[State, Step]:
        made = equation.advance(carried[0], t1, control)
        return made.state, made.step

    def output(carried: tuple[State, Step], time: Any) -> Any:
        state, step = while_loop(lambda carried: has_to_go_on(walk_of(carried[0]), time), attempt, carried)
        walk = walk_of(state)
        reached = is_reached(walk, time, direction)
        asked, part = time, (time - step.t) / step.h
        if equation.holds_times:
            part, time = np.where(reached, stop_gradient(part), 0.0), np.where(reached, time, step.t)
        elif equation.options.moves_outputs:
            part, time = (stop_gradient(time) - step.t) / step.h, np.where(reached, time, step.t)
        found = interpolate_state(method, step.y, equation.extension(step, walk.rejected), part)
        found = equation.state_in(step, time, found, control)
        return (state, step), (state_if_reached(reached, found, asked), reached, walk.attempts)

    (state, _), rows = scan(output, as_arrays((state, still)), stops)
    return equation.end(state), rows


def is_reached(walk: Walk, time: Any, direction: Any) -> Any:
    """Tell whether an integration has got to a time, before what ended it."""
    is_valid = (walk.failure == 0) | (walk.failure == EVENT) | (walk.failure == NOT_FINITE)
    return is_valid & (direction * (time - walk.t) <= 0)


def state_if_reached(reached: Any, state: Any, time: Any) -> Any:
    """Return the state at a time if that was reached, else NaN, as its derivatives are: that by this time, too."""
    return known_or_nan(reached, state - np.where(reached, 0.0, time - stop_gradient(time)))


def state_at_end(equation: Integrator, state: State, t1: Any, control: Control) -> Any:
    """Return the same where t1 is the only stop: the last step ends there, so that no loop carries what lies between.

    Nor is its continuous extension computed, in which states at t1 are the same but for rounding.
    """
    direction = np.sign(t1 - walk_of(state).t)
    last = while_loop(
        lambda state: goes_on(walk_of(state), t1, direction),
        lambda state: equation.advance(state, t1, control).state,
        as_arrays(state),
    )
    walk = walk_of(last)
    reached = is_reached(walk, t1, direction)
    found = state_if_reached(reached, walk.y, t1), reached, walk.attempts
    return equation.end(last), map_leaves(lambda x: x[None], found)
