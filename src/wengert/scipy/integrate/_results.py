"""What `solve_ivp` returns: an object as SciPy's, and solutions between steps, which are functions of time."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import elements, require_number
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.errors import ShapeError, UsageError
from wengert.scipy.integrate._events import ACCUMULATION, EVENT, Watched
from wengert.scipy.integrate._methods.adaptive_steps import (
    GAVE_UP,
    INCONSISTENT,
    INCONSISTENT_RESET,
    MISSED,
    NOT_FINITE,
    SINGULAR,
    TOO_MANY,
    TOO_SMALL,
    Counts,
    Walk,
    interpolate_state,
    known_or_nan,
)
from wengert.scipy.integrate._methods.methods_by_name import OUTSIDE, method_named
from wengert.scipy.integrate._step_loops import Options, walk_of
from wengert.transforms.reverse import stop_gradient


class MovingStates:
    """Give states at times, which are held, as those of times that move, by the functions of the integration.

    What is pickled leaves these behind, as SciPy's solutions have none.
    """

    def __init__(self, function: Callable[[Any, Any], Any] | None) -> None:
        self.function = function

    def __call__(self, times: Any, states: Any) -> Any:
        """Return states of shape (m, n) at times of shape (m,)."""
        if self.function is None:
            given = "times that are differentiated, of a solution that was pickled without its functions"
            raise UsageError("OdeSolution", given, "numbers are needed", "Integrate again in this process")
        return self.function(times, states)

    def __reduce__(self) -> Any:
        """Return what is pickled."""
        return MovingStates, (None,)

    def __deepcopy__(self, _memo: Any) -> MovingStates:
        """Return the object, which does not change."""
        return self

    def __copy__(self) -> MovingStates:
        """Return the object."""
        return self


class OdeSolution:
    """Be the solution of an integration as a function of time, as SciPy's.

    Attributes:
        method: the name of the method, whose continuous extensions they are.
        ts: the times between which the pieces are, of shape (pieces + 1,).
        t_min: the first of them in order.
        t_max: the last.
    """

    def __init__(
        self,
        method: str,
        ts: Any,
        starts: Any,
        sizes: Any,
        states: Any,
        coefficients: Any,
        *,
        moving: MovingStates | None = None,
        size: int | None = None,
    ) -> None:
        self.method = method
        self.ts = ts
        self.moving, self.size = moving, size
        self.starts, self.sizes, self.states, self.coefficients = starts, sizes, states, coefficients
        known = np.asarray(elements(ts))
        self.ascending = bool(known[-1] >= known[0])
        self.order = known if self.ascending else known[::-1]
        self.t_min, self.t_max = self.order[0], self.order[-1]

    def __call__(self, t: Any) -> Any:
        """Return the state at a time, of shape (n,), or at times of shape (m,), of shape (n, m)."""
        known = times_asked_for(t)
        count = len(self.order) - 1
        place = np.searchsorted(self.order, known, side="left" if self.ascending else "right") - 1
        place = np.clip(place, 0, count - 1)
        place = place if self.ascending else count - 1 - place
        part = (as_tensor(t) - self.starts[place]) / self.sizes[place]
        if np.ndim(known):
            part = part[:, None]
        moves = self.moving is not None and np.size(known) > 0 and any(type(x) is Tensor for x in flatten(t)[0])
        coefficients = [self.coefficients[place, i] for i in range(self.coefficients.shape[1])]
        found = interpolate_state(
            method_named(self.method), self.states[place], coefficients, stop_gradient(part) if moves else part
        )
        if self.moving is not None and moves:
            times, rows = np.reshape(t, (-1,)), np.reshape(found, (-1, found.shape[-1]))
            found = np.reshape(self.moving(times, rows), found.shape)
        found = found.T[: self.size]
        plain = not any(type(x) is Tensor for x in (t, self.states, self.coefficients))
        return found.numpy() if plain and type(found) is Tensor else found


MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    TOO_SMALL: "Required step size is less than spacing between numbers.",
    INCONSISTENT: "The initial state does not satisfy the algebraic equations.",
    INCONSISTENT_RESET: "The state that an event's reset returned does not satisfy the algebraic equations.",
    SINGULAR: "The Jacobian of the algebraic equations by the algebraic variables is singular at t = {t:.16g}.",
    MISSED: "The Jacobian has elements where jac_sparsity, or lband and uband, say that there are none.",
    EVENT: "A termination event occurred.",
    ACCUMULATION: "Events accumulate at t = {t:.16g}: the state was changed again and again without a step in time. "
    "End the interval before it, or end the integration by a further event.",
    NOT_FINITE: "The state is infinite or not a number after the step at t = {t:.16g}; a smaller step may help.",
    GAVE_UP: "The integrator gave up before the end of the integration interval.",
    TOO_MANY: "The solver took max_steps steps without reaching the end of the integration interval.",
}


SCIPYS = 0, EVENT, TOO_SMALL
"""What SciPy has its own words for."""


class RecordedSolution:
    """Be the solution of another library's integration as a function of time, with derivatives.

    Attributes:
        known: SciPy's function, without.
        states: gives the states at times in order, which lie in the interval, of shape (m, all).
        size: how many of all there are.
        ts, t_min, t_max: as in SciPy.
    """

    def __init__(self, known: Any, states: Callable[[Any], Any], size: int | None = None) -> None:
        self.known, self.states, self.size = known, states, size
        self.ts, self.t_min, self.t_max = known.ts, known.t_min, known.t_max

    def __call__(self, t: Any) -> Any:
        """Return the state at a time, of shape (n,), or at times of shape (m,), of shape (n, m)."""
        times, numbers = np.reshape(t, (-1,)), np.ravel(times_asked_for(t))
        if np.any((numbers < self.t_min) | (numbers > self.t_max)):
            given = f"times outside of the interval from {self.t_min:.6g} to {self.t_max:.6g}"
            raise UsageError("OdeSolution", given, "times within it are needed", "Integrate further")
        order = np.argsort(numbers if self.ts[-1] >= self.ts[0] else -numbers, kind="stable")
        found = self.states(times[order])[np.argsort(order)].T[: self.size]
        return found if np.ndim(t) else found[:, 0]


def times_asked_for(t: Any) -> Any:
    """Return the elements of a time or times at which a solution is asked for.

    Raises:
        UsageError: they are being traced, or differ from lane to lane.
        ShapeError: they have several axes.
    """
    require_number("OdeSolution", "t", t)
    known = elements(t)
    if known is None:
        given = "times that are being traced, or differ from lane to lane"
        raise UsageError("OdeSolution", given, "numbers are needed to find the pieces", "Pass t_eval to solve_ivp")
    if np.ndim(known) > 1:
        given = f"times of shape {np.shape(known)}"
        raise ShapeError("OdeSolution", given, "a number or one axis is needed", "Reshape them")
    return known


def result_of_steps(
    found: Any,
    t0: Any,
    t1: Any,
    state: Any,
    times: Any,
    options: Options,
    dense_output: bool,
    moving: MovingStates | None,
) -> Any:
    """Return the result of an integration whose steps are known; `moving` gives states at moving times."""
    walk, (ts, ys, *more) = found
    extension, happened = (more[:4], more[4:]) if options.dense else ([], more)
    steps = len(ts)
    extended = steps if dense_output else int(np.sum(np.any(raw(happened[0]), axis=(1, 2)))) if happened else 0
    if not steps and not raw(walk.failure):  # the interval is empty: what follows is its limit
        ts, ys = np.reshape(t1, (1,)), (state + (t1 - t0) * walk.f)[None]
        flat = [walk.f if i == 0 else 0 * walk.f for i in range(len(method_named(options.method).basis(0.0)))]
        extension = [np.reshape(t0, (1,)), np.ones(1), state[None], np.stack(flat)[None]] if options.dense else []
        moving = None
    held = moving if options.steps_hold_times else None
    if held is not None and type(t1) is Tensor and not raw(walk.failure):
        last = np.reshape(t1, (1,))
        ts = np.concatenate([ts[:-1], last])
        ys = ys if times is not None else np.concatenate([ys[:-1], held(last, ys[-1:])])
    ts = np.concatenate([np.reshape(t0, (1,)), ts])
    ys = np.concatenate([state[None], ys])
    sol = OdeSolution(options.method, ts, *extension, moving=held) if options.dense and len(ts) > 1 else None
    if times is not None and sol is not None:
        reached = abs(raw(times) - raw(t0)) <= abs(raw(walk.t) - raw(t0))
        outputs = raw(times)[reached]
        if not dense_output:
            places = np.searchsorted(abs(raw(ts) - raw(t0)), abs(outputs - raw(t0)))
            marked = raw(happened[0]).any(axis=(1, 2))
            extended = len({*np.maximum(places, 1).tolist(), *(np.flatnonzero(marked) + 1).tolist()})
        ts = times[: int(np.sum(reached))]
        ys = sol(ts).T if moving is None or held is not None or not len(ts) else moving(ts, sol(stop_gradient(ts)).T)
    elif times is not None:  # no step was good
        ts, ys = times[:0], ys[:0]
    counts = counts_of(options, walk, extended)
    return as_result(ts, ys.T, sol if dense_output else None, walk, counts, events_of(happened))


def events_of(happened: Sequence[Any]) -> Any:
    """Return times and states of events, for each function an array, from those of each step; None without any."""
    if not happened:
        return None
    which, times, states = happened
    places = [np.nonzero(one) for one in np.moveaxis(raw(which), 1, 0)]
    return (
        [times[step, i, slot] for i, (step, slot) in enumerate(places)],
        [states[step, i, slot] for i, (step, slot) in enumerate(places)],
    )


def result_at_times(last: Any, rows: Any, times: Any, options: Options) -> Any:
    """Return the result of an integration with output times; known ones that were not reached are left out."""
    states, reached, attempts = rows
    states = states[: len(times)]
    walk = walk_of(last)
    failure, outputs = known_number(walk.failure), 0
    if type(failure) is int:
        if failure:
            count = int(np.count_nonzero(raw(reached)[: len(times)]))
            if count < len(times):
                states, times = (states if count else stop_gradient(states))[:count], times[:count]
        if evaluations_to_extend(options.method):
            outputs = len({*raw(attempts)[: len(times)].tolist()} - {0})  # without an attempt there is no length
    events = None
    if isinstance(last, Watched):
        found = [
            events_until(last, i, count) if count else (None, None) for i, count in enumerate(options.events.counts)
        ]
        events = [times for times, _ in found], [states for _, states in found]
    return as_result(times, states.T, None, walk, counts_of(options, walk, outputs), events)


def events_until(last: Watched, index: int, count: int) -> tuple[Any, Any]:
    """Return times and states of the first events of a function, NaN of those that did not happen."""
    happened, end = np.arange(count) < last.counts[index], last.walk
    times = np.where(happened, last.times[index, :count], end.t + np.sum(np.real(end.y)))  # what moves with all
    states = np.where(happened[:, None], last.states[index, :count], end.y)
    return known_or_nan(happened, times), known_or_nan(happened[:, None], states)


def counts_of(options: Options, walk: Walk, extended: int) -> Counts:
    """Return how often the function was evaluated, its Jacobian, and factors: in attempts, extensions of steps.

    As in SciPy, nothing is evaluated to choose the first step of an interval without length, nor in steps of no states.
    """
    attempts = known_number(walk.attempts)
    if walk.memory:
        slopes, jacobians, factors = map(known_number, walk.memory.counts)
    else:
        slopes, jacobians, factors = one_step_counts(options, attempts, extended)
    if not options.has_first_step and (type(attempts) is not int or not attempts):
        slopes = slopes - ((attempts == 0) & (known_number(walk.failure) == 0))
    if options.method not in OUTSIDE and not walk.y.shape[0]:
        slopes, jacobians, factors = 1, known_number(np.minimum(jacobians, 1)), 0
    return Counts(slopes, jacobians, factors)


def known_number(count: Any) -> Any:
    """Return a whole number as Python's, if it is known."""
    if type(count) is not Tensor:  # as in most calls
        return int(count)
    return int(raw(count)) if is_concrete(count) else count


plain_method = functools.lru_cache(method_named)


@functools.lru_cache
def evaluations_to_extend(method: str) -> int:
    """Return how many evaluations the continuous extension of a step takes besides those of the step."""
    more = plain_method(method).more
    return 0 if more is None else len(more[0])


def one_step_counts(options: Options, attempts: Any, extended: int) -> tuple[Any, Any, Any]:
    """Return the counts of a method whose attempts all are the same."""
    method: Any = plain_method(options.method)
    more = evaluations_to_extend(options.method) * extended
    evaluations = (1 if options.has_first_step else 2) + method.evaluations * attempts + more
    return evaluations, method.jacobians * attempts, method.jacobians * attempts


def message_of(walk: Walk, failure: int) -> str:
    """Return what is said of the end of an integration: SciPy's words, or ours, with the user's line."""
    if failure in SCIPYS:
        return MESSAGES[failure]
    return f"{reason_of(walk)} It was asked for in {position_of(*caller())}"


def reason_of(walk: Walk) -> str:
    """Return what ended an integration before its end, when, and with which steps."""
    text = MESSAGES[int(raw(walk.failure))].format(t=raw(walk.t))
    return f"{text} The last good step ended at t = {raw(walk.t):.6g}, the next one was to take {raw(walk.size):.2g}."


class OdeResult(dict[str, Any]):
    """Be SciPy's object of results: a dictionary whose items are attributes, too.

    Importing SciPy's own brings its optimisers, for a tenth of a second: a fifth of a first gradient.
    """

    def __getattr__(self, name: str) -> Any:
        """Return an item."""
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    __setattr__ = dict.__setitem__
    __delattr__ = dict.__delitem__

    def __repr__(self) -> str:
        """Return what SciPy's prints."""
        from scipy.optimize import OptimizeResult

        return repr(OptimizeResult(self))

    def __dir__(self) -> list[str]:
        """Return the names of items."""
        return list(self)


def as_result(ts: Any, ys: Any, sol: Any, walk: Walk, counts: Counts, events: Any) -> OdeResult:
    """Return the object of results."""
    failure = known_number(walk.failure)
    known = type(failure) is int
    status: Any
    if known:
        status = 1 if failure == EVENT else -1 if failure else 0
    else:
        status = np.where(failure == EVENT, 1, np.where(failure != 0, -1, 0))
    return OdeResult(
        t=ts,
        y=ys,
        sol=sol,
        t_events=None if events is None else events[0],
        y_events=None if events is None else events[1],
        nfev=counts.slopes,
        njev=counts.jacobians,
        nlu=counts.factors,
        status=status,
        message=message_of(walk, failure) if known else None,
        success=status >= 0,
    )
