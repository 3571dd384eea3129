"""Events: zeros of functions along a solution, which are recorded, end it, or change its state.

Signs at the ends of steps tell of a zero, halving with everything held where on the continuous extension it is, and the
implicit rule its derivatives. What comes after begins at a time that has derivatives, from which those of the
state before and after follow (M. A. Aizerman and F. R. Gantmacher, Q. J. Mech. Appl. Math. 11, 1958).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.control.argument_aliasing import own_copies
from wengert.control.scan import scan
from wengert.control.while_loop import fori_loop
from wengert.core.diagnostics.argument_checks import as_items, as_whole, require_callable, require_result, shown
from wengert.core.values.tensor import is_concrete, raw
from wengert.creation import asarray
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError
from wengert.scipy.integrate._methods.adaptive_steps import TOO_MANY, Method, Step, Walk, interpolate_state, least_size
from wengert.scipy.integrate._methods.held_factors import DIVISION, moving_root
from wengert.scipy.integrate._methods.implicit_method import ImplicitMethod
from wengert.scipy.integrate._methods.visits import Slope
from wengert.support.records import NamedTuple
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import stop_gradient

Path = Callable[[Any], tuple[Any, Any]]
"""A solution: time and state at a part of a step."""
Near = Callable[[Any, Any], Path]
NAME = "solve_ivp"
HALVINGS = 53
EVENT, ACCUMULATION, GRAZING = 3, 4, 10
"""What ends an integration: an event, or events without end whose times come together; event 0 that touches zero, and
one more for each after it."""
TOUCHING = 1e-10
"""How far from zero, as a part of its values at the ends of a step, a function may turn that touches it."""
SHORTEST = 1e-12
"""The part of a step within which one function does not change a state twice: its zero there has four digits."""
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


NO_EVENTS = EventSettings()


class Watched(NamedTuple):
    """Hold where an integration with events is.

    Attributes:
        walk: where it is.
        values: of the functions, whose signs count.
        counts: of the events so far.
        times, states: of the events of each function, as many as there may be, if that is known; NaN before.
        stuck: how many changes of the state follow each other without a step in time between them.
        cause: the function whose event changed the state last, if no step was taken since; else -1.
    """

    walk: Walk
    values: Any
    counts: Any
    times: Any
    states: Any
    stuck: Any = 0
    cause: Any = -1


class Found(NamedTuple):
    """Hold the events in a step, two of each function at most: which of them happened, when, and in which state."""

    happened: Any
    times: Any
    states: Any


def settings_of(events: Any) -> tuple[tuple[Callable[..., Any], ...], tuple[Any, ...], EventSettings]:
    """Return functions of events, functions that change states, and what else their attributes say."""
    if events is None:
        return (), (), NO_EVENTS
    functions = (events,) if callable(events) else tuple(as_items(NAME, "events", events))
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


def require_crossing(walk: Walk) -> None:
    """Raise if it is known that an event touches zero, so that nobody can say whether it happens."""
    if is_concrete(walk.failure) and raw(walk.failure) >= GRAZING:
        given = f"event {int(raw(walk.failure)) - GRAZING} touches zero before t = {raw(walk.t):.6g}"
        action = "Move the function a little, or pass one that changes its sign there"
        raise NumericalError(NAME, given, "a function that crosses it is needed", action)


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
        found = asarray(require_result(NAME, self.functions[index](*own_copies((t, y, *self.args))), f"event {index}"))
        if found.dtype.kind == "b":
            given, needed = f"event {index} returned a truth", "a number that changes its sign is needed"
            raise DtypeError(NAME, given, needed, "Return y[0] - a for y[0] > a")
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

    def at(self, index: int, method: Method, step: Step, coefficients: Sequence[Any], part: Any) -> Any:
        """Return the value of a function at a part of a step, by its continuous extension."""
        return self.value(index, step.t + part * step.h, interpolate_state(method, step.y, coefficients, part))

    def turn_in(
        self, index: int, method: Method, step: Step, coefficients: Sequence[Any], before: Any, good: Any
    ) -> tuple[Any, Any, Any]:
        """Return where within a step a function that comes closer to zero turns away from it; and what it does there.

        One that is zero at the beginning, but for rounding, comes no closer: `before` has the sign that it gets.

        Returns:
            the part of the step, whether the function has the other sign there, and whether it touches zero.
        """
        step, coefficients = stop_gradient((step, coefficients))

        def change(part: Any) -> Any:
            """Return the value, and how it changes with the part."""
            return jvp(lambda x: self.at(index, method, step, coefficients, x), (part,), (np.ones(()),))

        (first, last), (begins, ends) = scan(lambda _, part: (_, change(part)), (), np.array([0.0, 1.0]))[1]
        turns = good & (first * last > 0) & (first * before > 0) & (first * begins < 0) & (last * ends > 0)

        def halve(_: Any, bounds: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
            low, high, _ = bounds
            middle = 0.5 * (low + high)
            value, rate = change(middle)
            before = first * rate > 0
            return np.where(before, low, middle), np.where(before, middle, high), value

        low, high, value = fori_loop(0, np.where(turns, HALVINGS, 0), halve, (np.zeros(()), np.ones(()), first))
        touches = turns & (np.abs(value) <= TOUCHING * np.maximum(np.abs(first), np.abs(last)))
        return 0.5 * (low + high), turns & (first * value < 0) & np.logical_not(touches), touches

    def zero_in(
        self,
        index: int,
        method: Method,
        step: Step,
        coefficients: Sequence[Any],
        near: Near,
        begin: Any,
        end: Any,
        start: Any,
        happened: Any,
    ) -> Any:
        """Return the time and the state at the zero of a function in a part of a step; anything if there is none.

        `start` has its sign at the beginning, where it may be zero; `near` gives the solution with its derivatives.
        """
        held, terms = stop_gradient((step, coefficients))

        def halve(_: Any, ends: tuple[Any, Any]) -> tuple[Any, Any]:
            low, high = ends
            middle = 0.5 * (low + high)
            before = start * self.at(index, method, held, terms, middle) <= 0
            return np.where(before, low, middle), np.where(before, middle, high)

        low, high = fori_loop(0, np.where(happened, HALVINGS, 0), halve, (begin, end))
        part = stop_gradient(0.5 * (low + high))
        path = near(part, happened)

        def equation(part: Any) -> tuple[Any, Any, Any]:
            """Return the function as that of the part; an equation of nothing else where there is no zero."""
            value, rate = jvp(lambda x: self.value(index, *path(x)), (part,), (np.ones(()),))
            is_usable = np.logical_and(happened, rate != 0)
            return np.where(is_usable, value, 0.0), DIVISION, np.where(is_usable, rate, 1.0)

        return path(moving_root(equation, part))

    def zeros_in(
        self,
        method: Method,
        before: Any,
        after: Any,
        good: Any,
        step: Step,
        coefficients: Sequence[Any],
        near: Near,
    ) -> tuple[Found, Any]:
        """Return the zeros in a step, two of each function at most, and which functions touch zero.

        Args:
            method: of integration.
            before: values whose signs are those at the beginning of the step.
            after: values at its end.
            good: whether the step is accepted.
            step: the step.
            coefficients: of its continuous extension.
            near: gives the solution near a part of it.
        """
        turns = [self.turn_in(i, method, step, coefficients, before[i], good) for i in range(len(self))]
        part, crosses, touches = map(np.stack, zip(*turns, strict=True))
        up = np.where(crosses, before < 0, (before <= 0) & (after >= 0))
        down = np.where(crosses, before > 0, (before >= 0) & (after <= 0))
        rises, falls = np.stack([up, crosses & down], axis=1), np.stack([down, crosses & up], axis=1)
        directions = np.array(self.settings.directions)[:, None]
        happened = ((rises & (directions >= 0)) | (falls & (directions <= 0))) & good
        ends = np.stack([0.0 * part, np.where(crosses, part, 1.0), np.ones_like(part)], axis=1)
        times, states = [], []
        for i in range(len(self)):

            def zero(_: Any, slot: Any, i: int = i) -> Any:
                return _, self.zero_in(i, method, step, coefficients, near, *slot)

            slots = ends[i, :2], ends[i, 1:], np.stack([before[i], -before[i]]), happened[i]
            t, y = scan(zero, (), slots)[1]
            times.append(t)
            states.append(y)
        return Found(happened, np.stack(times), np.stack(states)), touches

    def look(
        self,
        slope: Slope,
        rate: Slope,
        method: Method,
        before: Watched,
        after: Walk,
        step: Step,
        coefficients: Sequence[Any],
        most: Any,
        near: Near,
    ) -> tuple[Watched, Found]:
        """Return where an integration is after a step, and the events in it; there may be so many attempts at most."""
        good = np.logical_not(after.rejected)
        values = np.where(good, stop_gradient(self.values(after.t, after.y)), before.values)  # signs after a reset stay
        (happened, times, states), touches = self.zeros_in(
            method, before.values, values, good, step, coefficients, near
        )
        direction = np.sign(stop_gradient(step.h))
        limits = np.array(self.settings.counts)[:, None]
        numbers = before.counts[:, None] + np.cumsum(happened, axis=1)
        ending = happened & (limits > 0) & (numbers >= limits)
        stopping = ending | (happened & np.array(self.settings.resets)[:, None])
        order = np.where(stopping, direction * stop_gradient(times), np.inf)
        first, any_stops = np.argmin(order), np.any(stopping)
        happened = happened & (direction * stop_gradient(times) <= np.min(order))
        ends = any_stops & np.reshape(ending, (-1,))[first]
        reached = np.reshape(times, (-1,))[first], np.reshape(states, (2 * len(self), -1))[first]
        time, state = (np.where(any_stops, x, y) for x, y in zip(reached, (after.t, after.y), strict=True))
        stuck, cause, is_endless = self.stuck_after(before, step, time, any_stops, good, first // 2)
        failure = np.where(is_endless, ACCUMULATION, after.failure)
        failure = np.where(any_stops & (failure == 0) & (after.attempts >= most), TOO_MANY, failure)
        failure = np.where(ends, EVENT, failure)
        failure = np.where(np.any(touches) & np.logical_not(any_stops), GRAZING + np.argmax(touches), failure)
        walk = after._replace(t=time, y=state, failure=failure)
        if any(self.settings.resets):
            changed = any_stops & ~ends
            sizes = np.maximum(np.abs(before.values), np.abs(values))
            walk, fresh = self.restart(slope, rate, method, walk, sizes, changed, first // 2, direction)
            values = np.where(changed, fresh, values)
        kept_times, kept_states = before.times, before.states
        for slot in range(2):
            now = happened[:, slot, None] & (numbers[:, slot, None] == np.arange(1, 1 + self.settings.most))
            kept_times = np.where(now, times[:, slot, None], kept_times)
            kept_states = np.where(now[:, :, None], states[:, slot, None], kept_states)
        counts = before.counts + np.sum(happened, axis=1)
        return Watched(walk, values, counts, kept_times, kept_states, stuck, cause), Found(happened, times, states)

    def stuck_after(
        self, before: Watched, step: Step, time: Any, stopped: Any, good: Any, index: Any
    ) -> tuple[Any, Any, Any]:
        """Return how many changes of the state followed each other at one time, by which function, and whether forever.

        Where a function is zero again as soon as it has changed the state, rounding errors of the continuous extension
        tell which way the state goes on: a ball would fall through the ground.
        """
        if not any(self.settings.resets):
            return before.stuck, before.cause, False
        start, least = stop_gradient(before.walk.t), least_size(stop_gradient(before.walk.t), 1.0)
        passed = np.abs(stop_gradient(time) - start)
        stuck = np.where(stopped & (passed <= least), before.stuck + 1, np.where(good, 0, before.stuck))
        is_again = stopped & (index == before.cause) & (passed <= np.maximum(least, SHORTEST * np.abs(step.h)))
        is_endless = is_again | (stuck > MOST_AT_ONE_TIME * len(self))
        return stuck, np.where(stopped, index, np.where(good, -1, before.cause)), is_endless

    def restart(
        self,
        slope: Slope,
        rate: Slope,
        method: Method,
        walk: Walk,
        sizes: Any,
        stopped: Any,
        first: Any,
        direction: Any,
    ) -> tuple[Walk, Any]:
        """Return where an integration goes on whose state an event changes, and values whose signs are those after.

        An event that is still at zero, but for rounding errors of values of such `sizes`, has the sign of its rate.
        """
        state = walk.y
        for i, reset in enumerate(self.resets):
            if reset is not None:
                chosen = stopped & (first == i)
                changed = asarray(reset(*own_copies((walk.t, walk.y, *self.args))))
                if changed.shape != walk.y.shape:
                    given = f"reset returned shape {changed.shape} for a state of {walk.y.shape[0]} numbers"
                    raise ShapeError(NAME, given, "a state is needed", "Return all of its numbers")
                state = np.where(chosen, changed, state)
        f = np.where(stopped, rate(walk.t, state), walk.f)
        held, moves = stop_gradient((walk.t, state)), stop_gradient(f)
        now, change = jvp(lambda t, y: self.values(t, y), held, (np.ones(()), moves))
        missed = np.abs(self.values(*stop_gradient((walk.t, walk.y))))
        rounding = 10.0 * (missed + least_size(held[0], 1.0) * np.abs(change)) + TOUCHING * sizes
        at_zero = (np.arange(len(self)) == first) & (np.abs(now) <= rounding)
        fresh = stop_gradient(np.where(at_zero, change * direction, now))
        walk = walk._replace(y=state, f=f)
        if isinstance(method, ImplicitMethod):
            walk = method.restart(slope, walk, direction, stopped)
        return walk, fresh
