"""Differential-algebraic equations by their residual, F(t, y, y') = 0: `solve_dae`.

Rates that F depends on are states of their own: with u for them, y' = u for these states and 0 = F(t, y, u) are
equations with a mass matrix. These have index 1 where F determines u and the states whose rates do not occur, which is
what index 1 means of F. Only y is looked at where errors are; of u nothing but F is asked, as by IDAS (A. C. Hindmarsh
et al., ACM TOMS 31, 2005).
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.argument_checks import as_items, require_callable, require_result
from wengert.core.values.tensor import is_staged
from wengert.creation import asarray
from wengert.errors import DtypeError, ShapeError, UsageError, named_after
from wengert.scipy.integrate._arguments import DEFAULT_STEPS, arguments, as_state, tolerances
from wengert.scipy.integrate._initial_value import solve_ivp
from wengert.scipy.integrate._methods.methods_by_name import OUTSIDE, WITH_MASS
from wengert.scipy.integrate._methods.recorded_steps import UNLIMITED
from wengert.scipy.integrate._results import OdeSolution, RecordedSolution
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.support.records import NamedTuple
from wengert.transforms.function_cache import FunctionCache
from wengert.transforms.outer_values import OuterValues

NAME, INNER = "solve_dae", "solve_ivp"
MOST_FUNCTIONS = 64
PLACES: FunctionCache[tuple[int, ...]] = FunctionCache(MOST_FUNCTIONS)
"""The states whose rates residuals depend on."""


def solve_dae(
    fun: Callable[..., Any],
    t_span: Any,
    y0: Any,
    yp0: Any = None,
    method: str = "BDF",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    args: Any = None,
    *,
    rtol: Any = 1e-3,
    atol: Any = 1e-6,
    first_step: Any = None,
    max_step: Any = np.inf,
    max_steps: int = DEFAULT_STEPS,
    gradient: str | None = None,
    memory_budget: int | str | None = None,
) -> Any:
    """Solve fun(t, y, y') = 0, y(t0) = y0, of index 1, with derivatives by all that the solution depends on.

    States whose rates `fun` does not depend on are algebraic ones; it depends on what it multiplies by a zero, unless
    this is a constant. They, and the rates of the others, are solved for at
    the beginning, so that `y0` gives the other states, and first guesses. Derivatives are those of `solve_ivp`, which
    integrates: by `args` and what functions capture, by the states that `y0` gives, both ends and output times.

    Args:
        fun: `fun(t, y, yp, *args)` gives the residual, an array or a list like `y`. It is traced as under `jit`.
        t_span: (t0, t1), where to begin and to end.
        y0: the initial state, of shape (n,); of algebraic states a first guess.
        yp0: a first guess of the rates, of shape (n,), zeros by default.
        method: "BDF", "Radau", "Kvaerno5", "Rodas5P", or SUNDIALS' "IDA", as for `solve_ivp`.
        t_eval: times of output in order, of shape (m,); `jit` and `vmap` need it.
        dense_output: whether `sol` is the solution as a function of time.
        events: a function `event(t, y, yp, *args)`, or a list of them, as for `solve_ivp`. `reset(t, y, yp, *args)`
            gives the state to go on from, for which algebraic states and rates are solved anew.
        args: further arguments of `fun`, in any containers.
        rtol: the relative tolerance of errors of a step.
        atol: the absolute tolerance, a number or of shape (n,).
        first_step: the size of the first step; by default it is chosen.
        max_step: the largest size of a step.
        max_steps: how many steps may be tried; for IDA within `jit` and `vmap` there is room as in `solve_ivp`.
        gradient: "discrete" or "forward", of "IDA" "continuous" or "forward", as for `solve_ivp`.
        memory_budget: how many bytes reverse mode may keep of the steps.

    Returns:
        What `solve_ivp` returns, and `yp` (n, m), the rates, NaN of algebraic states.

    Raises:
        UsageError: as for `solve_ivp`, or `fun` depends on no rate.
        ShapeError: `fun` gives another shape than that of the state, or `yp0` has one.
        DtypeError: `y0` is complex.
        NumericalError: no consistent state was found from the first guess, or the equations do not determine algebraic
            states and rates: their index is 2 or higher, or they hold combinations of rates alone. Where that is being
            traced, `status` is -1 and states are NaN.

    >>> import wengert as wg
    >>> def residual(t, y, yp, rate):  # y[0]' = -rate y[1], y[1] = y[0]^2
    ...     return [yp[0] + rate * y[1], y[1] - y[0] ** 2]
    >>> end = lambda rate: solve_dae(residual, (0.0, 1.0), [1.0, 0.0], args=(rate,), rtol=1e-8, atol=1e-10).y[0, -1]
    >>> round(float(end(1.0)), 5), round(wg.grad(end)(1.0), 5)  # 1 / (1 + rate), -1 / (1 + rate)^2
    (0.5, -0.25)
    """
    require_callable(NAME, fun, "fun")
    if gradient == "continuous" and method not in OUTSIDE:
        needed = "'discrete' or 'forward' is needed, as nothing bounds the errors of rates"
        raise UsageError(NAME, "gradient='continuous'", needed, "Leave gradient out")
    if method not in WITH_MASS:
        needed = f"one of {', '.join(WITH_MASS)} is needed"
        raise UsageError(NAME, f"{method!r:.40} for method", needed, "Leave it out")
    with named_after(NAME, INNER):
        state, more = as_state(y0), arguments(args)
        r, a = tolerances(rtol, atol, state.shape[0])
    if state.dtype.kind == "c":
        raise DtypeError(NAME, f"y0 of dtype {state.dtype}", "real numbers are needed", "Split them into two parts")
    size = state.shape[0]
    guess = np.zeros(size) if yp0 is None else as_state(yp0)
    if guess.shape != (size,):
        raise ShapeError(NAME, f"yp0 of shape {guess.shape}", f"shape ({size},) is needed", "Leave it out")
    form = ResidualForm(size, moving_places(fun, more, size))
    looked_at = np.sqrt(size / (size + len(form.places)))  # errors are means over all states
    with named_after(NAME, INNER):
        found = solve_ivp(
            form.slope(fun),
            t_span,
            np.concatenate([state, guess[list(form.places)]]),
            method,
            t_eval,
            dense_output,
            form.events(events),
            args=more,
            rtol=form.with_rates(r * looked_at, 1.0),
            atol=form.with_rates(a * looked_at, UNLIMITED),
            mass=form.mass(),
            start="solved",
            first_step=first_step,
            max_step=max_step,
            max_steps=max_steps,
            gradient=gradient,
            memory_budget=memory_budget,
        )
    return form.result(found)


def moving_places(fun: Callable[..., Any], args: Sequence[Any], size: int) -> tuple[int, ...]:
    """Return the states whose rates a residual depends on, with the floats that it reads, which may be zero."""

    def find() -> tuple[int, ...]:
        nothing = np.zeros(size)
        residual = checked_residual(fun, size)
        pattern = find_pattern(lambda t, y, yp: residual(t, y, yp, *args), (0.0, nothing, nothing), (2,), name=NAME)
        return tuple(np.unique(pattern.indices).tolist())

    outer = OuterValues((fun, *args), lifted=False)
    places = find() if any(map(is_staged, flatten(outer.leaves)[0])) else PLACES.find(outer, size, find)
    if not places:
        given = "a residual that depends on no rate"
        raise UsageError(NAME, given, "one of y' at least is needed", "Solve it by wengert.scipy.optimize.root")
    return places


def checked_residual(fun: Callable[..., Any], size: int) -> Callable[..., Any]:
    """Return a user's residual, whose result is an array like the state."""

    def residual(t: Any, y: Any, yp: Any, *args: Any) -> Any:
        found = asarray(require_result(NAME, fun(t, y, yp, *args), "fun"))
        if found.shape != (size,):
            given = f"fun returned shape {found.shape} for a state of {size} numbers"
            raise ShapeError(NAME, given, f"shape ({size},) is needed", "Return one equation for each number of y0")
        return found

    return residual


def residual_and_rates(fun: Callable[..., Any], form: ResidualForm, t: Any, states: Any, *args: Any) -> Any:
    """Return a user's residual, and the rates that are states."""
    residual = checked_residual(fun, form.size)
    return np.concatenate([residual(t, *form.split(0.0)(states), *args), states[form.size :]])


def event_of_states(event: Callable[..., Any], form: ResidualForm, t: Any, states: Any, *args: Any) -> Any:
    """Return a user's event as a function of all states."""
    return event(t, *form.split(0.0)(states), *args)


class ResidualForm(NamedTuple):
    """Say how states and the rates of some stand one after the other, as states of equations with a mass matrix.

    Attributes:
        size: how many states there are.
        places: those whose rates follow them.
    """

    size: int
    places: tuple[int, ...]

    def split(self, fill: float) -> Callable[[Any], tuple[Any, Any]]:
        """Return the function from all states to those of the user and their rates; others have `fill`."""
        size, order = self.size, [len(self.places)] * self.size
        for place, i in enumerate(self.places):
            order[i] = place

        def parts(states: Any) -> tuple[Any, Any]:
            rest = np.full((1, *states.shape[1:]), fill)
            return states[:size], np.concatenate([states[size:], rest])[order]

        return parts

    def slope(self, fun: Callable[..., Any]) -> Callable[..., Any]:
        """Return the right-hand side: the residual, which is algebraic, and after it the rates."""
        return functools.partial(residual_and_rates, fun, self)  # through which programs see what fun holds

    def mass(self) -> Any:
        """Return the mass matrix: the last equations are those of rates."""
        found = np.zeros((self.size + len(self.places),) * 2)
        found[self.size + np.arange(len(self.places)), list(self.places)] = 1.0
        return found

    def with_rates(self, tolerance: Any, other: float) -> Any:
        """Return a tolerance of each state, with another one for rates."""
        own = np.broadcast_to(tolerance, (self.size,))
        return np.concatenate([own, np.full(len(self.places), other)])

    def events(self, events: Any) -> Any:
        """Return functions of events and their resets as such of all states."""
        if events is None:
            return None
        functions = (events,) if callable(events) else as_items(NAME, "events", events)
        return [self.event(function) for function in functions]

    def event(self, event: Any) -> Any:
        """Return a function of an event, with its attributes."""
        require_callable(NAME, event, "event")
        parts, size = self.split(0.0), self.size
        reset: Any = getattr(event, "reset", None)

        def reset_state(t: Any, states: Any, *args: Any) -> Any:
            found = asarray(require_result(NAME, reset(t, *parts(states), *args), "reset"))
            if found.shape != (size,):
                given = f"reset returned shape {found.shape} for a state of {size} numbers"
                raise ShapeError(NAME, given, "a state is needed", "Return all of its numbers")
            return np.concatenate([found, states[size:]])

        own: Any = functools.partial(event_of_states, event, self)
        own.terminal, own.direction = getattr(event, "terminal", None), getattr(event, "direction", 0)
        if reset is not None:
            require_callable(NAME, reset, "reset")
            own.reset = reset_state
        return own

    def result(self, found: Any) -> Any:
        """Return a result with the states of the user, and rates beside them."""
        found.y, found.yp = self.split(np.nan)(found.y)
        if found.y_events is not None:
            found.y_events = [None if states is None else states[..., : self.size] for states in found.y_events]
        if found.sol is not None and not isinstance(found.sol, OdeSolution):
            found.sol = RecordedSolution(found.sol, functools.partial(rows_of, found.sol), self.size)
        elif found.sol is not None:
            sol = found.sol
            pieces = sol.ts, sol.starts, sol.sizes, sol.states, sol.coefficients
            found.sol = OdeSolution(sol.method, *pieces, moving=sol.moving, size=self.size)
        return found


def rows_of(solution: Any, times: Any) -> Any:
    """Return the states of a solution at times of shape (m,), of shape (m, n)."""
    return solution(times).T
