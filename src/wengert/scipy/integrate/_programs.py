"""Programs that integrate: traced once for functions of the same code, and native when that is worth it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from wengert.control.scan import scan
from wengert.control.side_effects import Reach
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import UsageError
from wengert.scipy.integrate._algebraic import completing, rate_of
from wengert.scipy.integrate._continuous import Flow
from wengert.scipy.integrate._events import EventFunctions
from wengert.scipy.integrate._methods.adaptive_steps import Control
from wengert.scipy.integrate._methods.bdf import BackwardDifferences
from wengert.scipy.integrate._methods.implicit_method import at_other_time
from wengert.scipy.integrate._methods.jacobian_matrices import FULL, GivenPattern, Matrices
from wengert.scipy.integrate._methods.matrix_choice import FEWEST, banded_matrices, matrices_for
from wengert.scipy.integrate._methods.methods_by_name import WITH_PATTERN, method_named
from wengert.scipy.integrate._right_hand_side import NAME, Jacobian, RightHandSide
from wengert.scipy.integrate._step_loops import (
    Integrator,
    Options,
    State,
    rows_of_steps,
    states_at,
    walk_of,
)
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.sparse.patterns.pattern import Pattern
from wengert.support.caches import Cache
from wengert.transforms.function_cache import FunctionCache
from wengert.transforms.jit import jit
from wengert.transforms.outer_values import OuterValues
from wengert.transforms.reverse import stop_gradient

Equation = Callable[[Sequence[Any], Any, Callable[[Integrator], Any]], Any]
MOST_PROGRAMS = 64
"""How many are kept, those used last."""


class IntegrationProgram:
    """Be an integration for functions of the same code, with whatever floats they and their arguments hold."""

    def __init__(self, outer: OuterValues, options: Options) -> None:
        self.matrices: Matrices | None = None
        self.sensitivities: dict[Hashable, Any] = {}
        self.judged_attempts: Cache[Hashable, int] = Cache()  # for how many derivatives were compared with changes
        self.budget = options.budget
        kept = outer.with_zeros()
        self.traced = traced_constants(kept)
        if options.is_continuous and traced_constants(OuterValues(kept.values[:4], kept.lifted)):
            raise no_argument_error(options.method)
        equation = equation_of(self, kept, options)

        def from_start(leaves: Any, t0: Any, t1: Any, y0: Any, control: Control) -> Any:
            def run(own: Integrator) -> Any:
                steps = rows_of_steps(own, own.begin(t0, t1, y0, control), t1, control)
                return own.initial_state(t0, y0)[0] if options.is_solved else (), steps

            return equation(leaves, y0, run)

        def from_before(leaves: Any, state: State, t1: Any, control: Control) -> Any:
            return equation(leaves, walk_of(state).y, lambda own: rows_of_steps(own, state, t1, control))

        def at_stops(leaves: Any, t0: Any, t1: Any, stops: Any, y0: Any, control: Control) -> Any:
            def run(own: Integrator) -> Any:
                return states_at(own, own.begin(t0, t1, y0, control), t1, stops, control)

            return equation(leaves, y0, run)

        def slope_at(leaves: Any, t: Any, y: Any) -> Any:
            return equation(leaves, y, lambda own: own.slope(t, y))

        def jacobian_at(leaves: Any, t: Any, y: Any) -> Any:
            return equation(leaves, y, lambda own: own.jacobian_at(t, y))

        def rate_at(leaves: Any, t: Any, y: Any) -> Any:
            return equation(leaves, y, lambda own: own.rate(t, y))

        def start_at(leaves: Any, t: Any, y: Any) -> Any:
            return equation(leaves, y, lambda own: own.initial_state(t, y)[0])

        def event_values(leaves: Any, t: Any, y: Any) -> Any:
            return equation(leaves, y, lambda own: own.events.values(t, y))

        def moving_at(leaves: Any, times: Any, states: Any) -> Any:
            def run(own: Integrator) -> Any:
                def move(_: Any, place: Any) -> Any:
                    return _, at_other_time(own.rate, stop_gradient(place[0]), *place)

                return scan(move, (), (times, states))[1]

            return equation(leaves, states[0], run)

        self.from_start, self.from_before, self.at_stops, self.moving_at = (
            jit(run, memory_budget=options.budget) for run in (from_start, from_before, at_stops, moving_at)
        )
        self.slope_at, self.jacobian_at, self.rate_at = map(jit, (slope_at, jacobian_at, rate_at))
        self.event_values, self.start_at = jit(event_values), jit(start_at)


def equation_of(program: IntegrationProgram, kept: OuterValues, options: Options) -> Equation:
    """Return what makes an integrator of the functions that a program keeps, with other floats, and runs with it.

    Conversion puts other functions in the place of those that this one has in variables.
    """
    function, *others = kept.values

    def slope_of(leaves: Sequence[Any], like: Any) -> RightHandSide:
        own, args = kept.replace_values((function, *others), leaves)[0][:2]
        return RightHandSide(own, args, like, options.columns, options.has_state_first)

    def equation(leaves: Sequence[Any], state: Any, run: Callable[[Integrator], Any]) -> Any:
        own, args, mass, algebraic, events, resets, jac = kept.replace_values((function, *others), leaves)[0]
        if function is not kept.values[0]:  # it has been converted, as control flow asked for that
            events, resets, (jac,) = map(convert_functions, (events, resets, (jac,)))
        slope = moving = RightHandSide(own, args, state, options.columns, options.has_state_first)
        if options.is_continuous:
            slope = slope_of(stop_gradient(leaves), state)
        if program.matrices is None:
            program.matrices = matrices_of(slope, state, options, mass is not None)
        matrices, bands = program.matrices, None if options.pattern is None else options.pattern.bands
        jacobian = Jacobian(jac, args, slope.size, bands) if callable(jac) else jac
        if options.is_solved and algebraic is not None:
            resets = [x if x is None else completing(x, moving, algebraic) for x in resets]
        watched = EventFunctions(events, resets, args, options.events)
        held = stop_gradient(mass) if options.is_continuous else mass
        method = method_named(options.method, held, algebraic, jacobian, matrices)
        if options.is_continuous and isinstance(method, BackwardDifferences):
            method = replace(method, holds_times=False)
        rate = rate_of(slope, held, algebraic)
        flow = None
        if options.is_continuous:
            like = np.zeros(slope.size)

            def mass_of(leaves: Sequence[Any]) -> Any:
                return kept.replace_values((function, *others), leaves)[0][2:4]

            flow = Flow(lambda leaves: slope_of(leaves, like), None if mass is None else mass_of, method)
        with Reach(NAME, own, (args, events, resets, jac)) as reach:
            found = run(Integrator(slope, rate, method, watched, options, algebraic, matrices, flow, tuple(leaves)))
        reach.require_unchanged()
        return found

    return equation


def traced_constants(kept: OuterValues) -> list[Tensor]:
    """Return what is traced and no argument: attributes of objects hold it, or functions look at it."""
    return [x for x in kept.arrays() if type(x) is Tensor and x._trace is not None]


def no_argument_error(method: str) -> UsageError:
    """Return the error about a traced number of which equations along a solution, or an integrator, know nothing."""
    given = f"a function for method {method!r} that looks at a number which is being traced, or has it from an object's"
    given += " attribute"
    needed = "one that computes with what it captures is needed where steps are not differentiated"
    return UsageError(NAME, given, needed, "Pass it by args, or a method of this library with gradient='discrete'")


def matrices_of(slope: RightHandSide, state: Any, options: Options, with_mass: bool) -> Matrices:
    """Return how Jacobians of a method are held: by the elements that may be other than zero, where these are few.

    Args:
        slope: the function.
        state: one.
        options: name the method, and say what the user does of the elements.
        with_mass: whether there is a mass matrix, whose elements are others, too.
    """
    given, places, size = options.pattern, options.mass_places, slope.size
    is_full = slope.dtype.kind == "c" or (with_mass and places is None) or (size < FEWEST and given is None)
    if options.method not in WITH_PATTERN or is_full:
        return FULL
    if given is not None and given.packed is not None:
        return banded_matrices(given.pattern, given.packed)
    pattern = find_pattern(slope, (np.zeros(()), state), (1,), name=NAME) if given is None else given.pattern
    has_pivots = True
    if places is not None:
        own = GivenPattern(size, places).pattern
        has_pivots = np.count_nonzero(own.rows == own.indices) == size
        pairs = [np.concatenate([x, y]) for x, y in ((pattern.rows, own.rows), (pattern.indices, own.indices))]
        pattern = Pattern.of_pairs(pattern.shape, pairs[0], pairs[1])
    return matrices_for(pattern, has_pivots)


def convert_functions(functions: Sequence[Any]) -> list[Any]:
    """Return functions whose control flow follows traced values; anything else as it is."""
    from wengert.conversion.operations import callee  # rewriting source is needed by few programs

    return [callee(function) if callable(function) else function for function in functions]


PROGRAMS: FunctionCache[IntegrationProgram] = FunctionCache(
    MOST_PROGRAMS, needs_leaves=lambda options: options.is_continuous
)


def run_program(
    values: Sequence[Any], options: Options, run: Callable[[IntegrationProgram, Sequence[Any]], Any]
) -> Any:
    """Return what `run` makes of the program for a function and its arguments, and of the floats that these hold."""
    return PROGRAMS.run(values, options, lambda outer: IntegrationProgram(outer, options), run)


def collect_steps(program: IntegrationProgram, leaves: Any, t0: Any, t1: Any, state: Any, control: Control) -> Any:
    """Return where an integration begins, where it ends, and what its good attempts left behind; None if unknown."""
    start, (last, rows, count) = program.from_start(leaves, t0, t1, state, control)
    walk = walk_of(last)
    if not all(map(is_concrete, (count, walk.t, walk.failure, rows[0], t0, t1))):
        return None
    parts = [accepted_rows(rows, int(raw(count)))]
    direction = np.sign(raw(t1) - raw(t0))
    while direction * (raw(t1) - raw(walk.t)) > 0 and not raw(walk.failure):
        last, rows, count = program.from_before(leaves, last, t1, control)
        walk = walk_of(last)
        parts.append(accepted_rows(rows, int(raw(count))))
    return start, walk, [join(column) for column in zip(*parts, strict=True)]


def accepted_rows(rows: Any, count: int) -> list[Any]:
    """Return the rows of the good attempts: times, states, arrays of continuous extensions, and of events."""
    good, times, states, extension, found = rows
    places = np.flatnonzero(raw(good)[:count])
    columns = (times, states, *extension, *found)
    return [x[places] for x in (columns if len(places) else stop_gradient(columns))]


def join(parts: Sequence[Any]) -> Any:
    """Return parts one after the other."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
