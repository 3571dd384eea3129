"""Programs that integrate: traced once for functions of the same code, and native when that is worth it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.control.scan import scan
from wengert.control.while_loop import while_loop
from wengert.core.values.bounded_cache import Recent
from wengert.creation import asarray
from wengert.errors import DtypeError, ShapeError, WengertError
from wengert.scipy.integrate._steps import Control, Step, Walk, begin, goes_on, interpolated, try_step
from wengert.scipy.integrate._tableaux import Tableau, tableau
from wengert.transforms.jit import Jitted, jit
from wengert.transforms.outer_values import OuterValues

NAME = "solve_ivp"
MOST_PROGRAMS = 64
"""How many are kept, those used last."""
MOST_ROWS, LEAST_ROWS, MOST_NUMBERS = 512, 16, 1 << 20
"""How many attempts a call makes whose steps are all returned: as many as fit into so many numbers."""


class Options(NamedTuple):
    """Hold what programs differ in besides functions and arguments.

    Attributes:
        method: its name.
        has_first_step: whether the user gave the size of the first step.
        dense: whether each step leaves its continuous extension behind.
        columns: whether functions take states as matrices of one column.
        budget: of bytes that reverse mode may keep.
    """

    method: str
    has_first_step: bool
    dense: bool
    columns: bool
    budget: int | str | None


class RightHandSide:
    """Be a user's function of time and state, whose result is an array like the state."""

    def __init__(self, function: Callable[..., Any], args: Sequence[Any], state: Any, columns: bool) -> None:
        self.fun = function
        self.args = args
        self.size, self.dtype = state.shape[0], state.dtype
        self.columns = columns

    def __call__(self, t: Any, y: Any) -> Any:
        """Return the slope."""
        found = asarray(self.fun(t, y[:, None] if self.columns else y, *self.args))
        if found.shape == (self.size, 1) and self.columns:
            found = found[:, 0]
        if found.dtype.kind == "c" and self.dtype.kind != "c":
            given = f"fun returned dtype {found.dtype} for a real y0"
            raise DtypeError(NAME, given, "real numbers are needed", "Pass a complex y0, y0.astype(complex)")
        if found.shape == () and self.size == 1:
            found = found.reshape(1)
        if found.shape != (self.size,):
            given = f"fun returned shape {found.shape} for a state of {self.size} numbers"
            raise ShapeError(NAME, given, f"shape ({self.size},) is needed", "Return one slope for each number of y0")
        return found if found.dtype == self.dtype else found.astype(self.dtype)


class Program:
    """Be an integration for functions of the same code, with whatever floats they and their arguments hold."""

    def __init__(self, outer: OuterValues, options: Options) -> None:
        kept = outer.emptied()
        function, args = kept.values
        table = tableau(options.method)

        def equation(leaves: Sequence[Any], state: Any, run: Callable[[RightHandSide], Any]) -> Any:
            (own, own_args), made = kept.replaced((function, args), leaves)
            found = run(RightHandSide(own, own_args, state, options.columns))
            made.require_unwritten(NAME)
            return found

        def from_start(leaves: Any, t0: Any, t1: Any, y0: Any, control: Control) -> Any:
            def run(slope: RightHandSide) -> Any:
                walk = begin(slope, table, t0, t1, y0, control, options.has_first_step)
                return rows_of_steps(slope, table, walk, t1, control, options.dense)

            return equation(leaves, y0, run)

        def from_before(leaves: Any, walk: Walk, t1: Any, control: Control) -> Any:
            return equation(leaves, walk.y, lambda slope: rows_of_steps(slope, table, walk, t1, control, options.dense))

        def at_times(leaves: Any, t0: Any, t1: Any, times: Any, y0: Any, control: Control) -> Any:
            def run(slope: RightHandSide) -> Any:
                walk = begin(slope, table, t0, t1, y0, control, options.has_first_step)
                return states_at(slope, table, walk, t1, times, control)

            return equation(leaves, y0, run)

        self.from_start = compiled(from_start, function, options)
        self.from_before = compiled(from_before, function, options)
        self.at_times = compiled(at_times, function, options)


def compiled(run: Callable[..., Any], function: Any, options: Options) -> Jitted[..., Any]:
    """Return a jitted function, which finds the user's among its variables, to convert its control flow."""
    return jit(run, memory_budget=options.budget)


PROGRAMS: Recent[Hashable, Program] = Recent(MOST_PROGRAMS)
FIXED: Recent[Hashable, bool] = Recent(MOST_PROGRAMS)
"""The keys of functions that look at the floats they hold, which are constants of their programs."""


def run_program(values: Sequence[Any], options: Options, run: Callable[[Program, Sequence[Any]], Any]) -> Any:
    """Return what `run` makes of the program for a function and its arguments, and of the floats that these hold."""
    outer = OuterValues(values)
    if (outer.key, options) not in FIXED:
        try:
            return run(program_for(outer, options), outer.leaves)
        except (WengertError, TypeError):
            if not outer.leaves:
                raise
    fixed = OuterValues(values, lifted=False)
    found = run(program_for(fixed, options), fixed.leaves)
    FIXED[outer.key, options] = True
    return found


def program_for(outer: OuterValues, options: Options) -> Program:
    """Return the program for functions and arguments, made anew if there is none."""
    key = outer.key, options
    known = PROGRAMS.get(key)
    if known is None:
        known = PROGRAMS[key] = Program(outer, options)
    else:
        PROGRAMS.touch(key)
    return known


def row_count(size: int) -> int:
    """Return how many attempts a call makes whose steps are all returned."""
    return max(LEAST_ROWS, min(MOST_ROWS, MOST_NUMBERS // max(size, 1)))


def rows_of_steps(slope: RightHandSide, table: Tableau, walk: Walk, t1: Any, control: Control, dense: bool) -> Any:
    """Take steps until the end, or as many as there are rows.

    Returns:
        where the integration is, (whether each attempt was good, times, states, continuous extensions), and how many
        attempts there were.
    """
    direction = np.sign(t1 - walk.t)

    def attempt(before: Walk) -> tuple[Walk, Any]:
        after, step = try_step(slope, table, before, t1, control)
        extension = extension_of(slope, table, step) if dense else ()
        return after, (np.logical_not(after.rejected), after.t, after.y, extension)

    return while_loop(
        lambda walk: goes_on(walk, t1, direction), attempt, walk, rows=True, max_rounds=row_count(slope.size)
    )


def extension_of(slope: RightHandSide, table: Tableau, step: Step) -> Any:
    """Return the continuous extension of a step: where it begins, its size, the state there, and coefficients."""
    coefficients = table.extend(slope, step.t, step.y, step.end, step.h, step.slopes)
    return step.t, step.h, step.y, np.stack(coefficients)


def states_at(slope: RightHandSide, table: Tableau, walk: Walk, t1: Any, times: Any, control: Control) -> Any:
    """Return the states at times, whether they were reached, how many steps had outputs, and the end at t1."""
    direction = np.sign(t1 - walk.t)
    size = np.where(walk.size * direction == 0, 1.0, walk.size * direction)
    still = Step(walk.t, walk.y, size, walk.y + size * walk.f, (walk.f,) * (table.evaluations + 1))

    def attempt(carried: tuple[Walk, Step]) -> tuple[Walk, Step]:
        return try_step(slope, table, carried[0], t1, control)

    def output(carried: tuple[Walk, Step], time: Any) -> Any:
        walk, step = while_loop(lambda carried: goes_on(carried[0], time, direction), attempt, carried)
        coefficients = table.extend(slope, step.t, step.y, step.end, step.h, step.slopes)
        state = interpolated(table, step.y, coefficients, (time - step.t) / step.h)
        reached = (walk.failure == 0) & (direction * (time - walk.t) <= 0)
        return (walk, step), (np.where(reached, state, np.nan), reached, walk.attempts)

    (walk, _), rows = scan(output, (walk, still), np.concatenate([times, np.reshape(t1, (1,))]))
    return walk, rows
