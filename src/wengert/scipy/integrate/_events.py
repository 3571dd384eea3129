"""Events: zeros of functions along a solution, which are recorded, end it, or change its state.

Signs at the ends of steps tell of a zero, the continuous extension where it is: by halving, with everything held, and
by two steps of Newton's method that are differentiated. They leave the zero where it is, and have its derivatives up to
the third order. What comes after begins at a time that has derivatives, from which those of the state before and after
follow (M. A. Aizerman and F. R. Gantmacher, Q. J. Mech. Appl. Math. 11, 1958).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.control.while_loop import fori_loop
from wengert.core.diagnostics.argument_checks import as_items, as_whole, require_callable, shown
from wengert.creation import asarray
from wengert.errors import ShapeError, UsageError
from wengert.scipy.integrate._implicit import ImplicitMethod
from wengert.scipy.integrate._steps import TOO_MANY, Method, Step, Walk, interpolated, least_size
from wengert.scipy.integrate._tableaux import Slope
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

NAME = "solve_ivp"
HALVINGS = 53
EVENT, ACCUMULATION = 3, 4
"""What ends an integration: an event, or events without end whose times come together."""
MOST_AT_ONE_TIME = 16
"""How many changes of a state may follow each other at one time, for each function of an event."""


class EventSettings(NamedTuple):
    """Hold what functions of events say by their attributes.

    Attributes:
        directions: of the change of sign that counts, 0 for both.
        counts: after how many an integration ends, 0 for never.
        resets: the functions that change states; None for each that has none.
    """

    directions: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()
    resets: tuple[bool, ...] = ()

    @property
    def most(self) -> int:
        """How many events of a function there may be, of those for which that is known."""
        return max(1, *self.counts)


class Watched(NamedTuple):
    """Hold where an integration with events is.

    Attributes:
        walk: where it is.
        values: of the functions, whose signs count.
        counts: of the events so far.
        times, states: of the events of each function, as many as there may be, if that is known; NaN before.
        stuck: how many changes of the state follow each other without a step in time between them.
    """

    walk: Walk
    values: Any
    counts: Any
    times: Any
    states: Any
    stuck: Any = 0


class Found(NamedTuple):
    """Hold the events in a step: which of them happened, when, and in which state."""

    happened: Any
    times: Any
    states: Any


def settings_of(events: Any) -> tuple[tuple[Callable[..., Any], ...], tuple[Any, ...], EventSettings]:
    """Return functions of events, functions that change states, and what else their attributes say."""
    functions = () if events is None else (events,) if callable(events) else tuple(as_items(NAME, "events", events))
    directions, counts, resets = [], [], []
    for event in functions:
        require_callable(NAME, event, "event")
        terminal, direction = getattr(event, "terminal", None), getattr(event, "direction", 0)
        if terminal is None or isinstance(terminal, bool | np.bool_):
            counts.append(int(bool(terminal)))
        else:
            counts.append(as_whole(NAME, "terminal", terminal, least=1))
        if not isinstance(direction, int | float | np.number):
            raise UsageError(NAME, f"{shown(direction)} for direction", "a number is needed", "Pass -1, 0 or 1")
        directions.append(float(np.sign(direction)))
        resets.append(getattr(event, "reset", None))
    for reset in resets:
        if reset is not None:
            require_callable(NAME, reset, "reset")
    flags = tuple(reset is not None for reset in resets)
    return functions, tuple(resets), EventSettings(tuple(directions), tuple(counts), flags)


class EventFunctions:
    """Be the functions of events, with the further arguments of the slope."""

    def __init__(
        self, functions: Sequence[Any], resets: Sequence[Any], args: Sequence[Any], settings: EventSettings
    ) -> None:
        self.functions, self.resets, self.args, self.settings = functions, resets, args, settings
        self.fun = *functions, *resets
        """All of the user's functions, where those look for them who tell what may be changed."""

    def __len__(self) -> int:
        return len(self.functions)

    def value(self, index: int, t: Any, y: Any) -> Any:
        """Return the value of a function, which is one number."""
        found = asarray(self.functions[index](*own_copies((t, y, *self.args))))
        if found.size != 1:
            given = f"event {index} returned shape {found.shape}"
            raise ShapeError(NAME, given, "one number is needed", "Pass a list of functions for several events")
        return found.reshape(()).astype(float)

    def values(self, t: Any, y: Any) -> Any:
        """Return the values of all functions."""
        return np.stack([self.value(i, t, y) for i in range(len(self))])

    def watch(self, walk: Walk) -> Watched:
        """Return where an integration with events begins."""
        count, size = len(self), walk.y.shape[0]
        values = stop_gradient(self.values(walk.t, walk.y))
        most = self.settings.most
        times, states = np.full((count, most), np.nan), np.full((count, most, size), np.nan, walk.y.dtype)
        return Watched(walk, values, np.zeros(count, int), times, states)

    def zero_in(
        self, index: int, method: Method, step: Step, coefficients: Sequence[Any], start: Any, happened: Any
    ) -> Any:
        """Return the time and the state at the zero of a function in a step; anything if there is none.

        `start` has its sign at the beginning, where it may be zero.
        """

        def at(part: Any, held: bool) -> Any:
            t, y, h, terms = (
                stop_gradient((step.t, step.y, step.h, coefficients))
                if held
                else (step.t, step.y, step.h, coefficients)
            )
            return t + part * h, interpolated(method, y, terms, part)

        def halve(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
            low, high = ends
            middle = 0.5 * (low + high)
            before = start * stop_gradient(self.value(index, *at(middle, True))) <= 0
            return np.where(before, low, middle), np.where(before, middle, high)

        rounds = np.where(happened, HALVINGS, 0)
        low, high = fori_loop(0, rounds, halve, (np.zeros(()), np.ones(())))
        part = stop_gradient(0.5 * (low + high))
        for _ in range(2):
            value, rate = jvp(lambda x: self.value(index, *at(x, False)), (part,), (np.ones(()),))
            usable = np.logical_and(happened, rate != 0)
            part = part - np.where(usable, value, 0.0) / np.where(usable, rate, 1.0)
        return at(part, False)

    def look(
        self,
        slope: Slope,
        method: Method,
        before: Watched,
        after: Walk,
        step: Step,
        coefficients: Sequence[Any],
        most: Any,
    ) -> tuple[Watched, Found]:
        """Return where an integration is after a step, and the events in it; there may be so many attempts at most."""
        directions = np.array(self.settings.directions)
        values = stop_gradient(self.values(after.t, after.y))
        up, down = (before.values <= 0) & (values >= 0), (before.values >= 0) & (values <= 0)
        crossed = (up & (directions >= 0)) | (down & (directions <= 0))
        happened = crossed & np.logical_not(after.rejected)
        zeros = [self.zero_in(i, method, step, coefficients, before.values[i], happened[i]) for i in range(len(self))]
        times, states = np.stack([t for t, _ in zeros]), np.stack([y for _, y in zeros])
        direction = np.sign(stop_gradient(step.h))
        limits = np.array(self.settings.counts)
        ending = happened & (limits > 0) & (before.counts + 1 >= limits)
        stopping = ending | (happened & np.array(self.settings.resets))
        order = np.where(stopping, direction * stop_gradient(times), np.inf)
        first, any_stops = np.argmin(order), np.any(stopping)
        happened = happened & (direction * stop_gradient(times) <= np.min(order))
        counts = before.counts + happened
        ends = any_stops & ending[first]
        time, state = (np.where(any_stops, x, y) for x, y in ((times[first], after.t), (states[first], after.y)))
        stuck = self.stuck_after(before, time, any_stops, np.logical_not(after.rejected))
        failure = np.where(stuck > MOST_AT_ONE_TIME * len(self), ACCUMULATION, after.failure)
        failure = np.where(any_stops & (failure == 0) & (after.attempts >= most), TOO_MANY, failure)
        walk = after._replace(t=time, y=state, failure=np.where(ends, EVENT, failure))
        if any(self.settings.resets):
            walk, values = self.restarted(slope, method, walk, values, any_stops & ~ends, first, direction)
        now = happened[:, None] & (before.counts[:, None] == np.arange(self.settings.most))
        kept = [
            np.where(now, times[:, None], before.times),
            np.where(now[:, :, None], states[:, None], before.states),
        ]
        return Watched(walk, values, counts, kept[0], kept[1], stuck), Found(happened, times, states)

    def stuck_after(self, before: Watched, time: Any, stopped: Any, good: Any) -> Any:
        """Return how many changes of the state followed each other at one time, up to the one at the end of a step."""
        if not any(self.settings.resets):
            return 0
        start = stop_gradient(before.walk.t)
        passed = np.abs(stop_gradient(time) - start)
        in_place = stopped & (passed <= least_size(start, 1.0))
        return np.where(in_place, before.stuck + 1, np.where(good, 0, before.stuck))

    def restarted(
        self, slope: Slope, method: Method, walk: Walk, values: Any, stopped: Any, first: Any, direction: Any
    ) -> tuple[Walk, Any]:
        """Return where an integration goes on whose state an event changes, and values whose signs are those after."""
        state = walk.y
        for i, reset in enumerate(self.resets):
            if reset is not None:
                chosen = stopped & (first == i)
                changed = asarray(reset(*own_copies((walk.t, walk.y, *self.args))))
                if changed.shape != walk.y.shape:
                    given = f"reset returned shape {changed.shape} for a state of {walk.y.shape[0]} numbers"
                    raise ShapeError(NAME, given, "a state is needed", "Return all of its numbers")
                state = np.where(chosen, changed, state)
        f = np.where(stopped, slope(walk.t, state), walk.f)
        held, rate = stop_gradient((walk.t, state)), stop_gradient(f)
        now, change = jvp(lambda t, y: self.values(t, y), held, (np.ones(()), rate))
        at_zero = np.arange(len(self)) == first  # there, the rate has the sign of what comes
        fresh = stop_gradient(np.where(at_zero, change * direction, now))
        walk = walk._replace(y=state, f=f)
        if isinstance(method, ImplicitMethod):
            walk = method.restart(slope, walk, direction, stopped)
        return walk, np.where(stopped, fresh, values)
