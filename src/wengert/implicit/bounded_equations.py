"""Mixed complementarity problems: equations of which each holds, or its unknown is at a bound."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.while_loop import while_loop
from wengert.core.diagnostics.argument_checks import require_callable, require_limits, require_number, require_real
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.aval import shape_of
from wengert.core.values.tensor import Tensor, is_concrete, raw
from wengert.creation import asarray
from wengert.errors import NumericalError, ShapeError
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.newton_iteration import Limits, newton
from wengert.implicit.quadratic_programs.programs import NEAR
from wengert.implicit.quadratic_programs.row_lengths import unit_of
from wengert.implicit.quadratic_programs.scales import size_nearest_to_one
from wengert.implicit.roots import options_of
from wengert.implicit.solver_call import solve_without_derivatives
from wengert.implicit.systems import TOLERANCE
from wengert.support.hints import hint_parameters
from wengert.transforms.forward import jvp
from wengert.transforms.function_cache import FunctionCache
from wengert.transforms.jit import jit
from wengert.transforms.outer_values import OuterValues
from wengert.transforms.reverse import stop_gradient

FIRST, LAST, PART = 1.0, 1e-8, 0.1
"""How much is smoothed at first and in the end, relative to the equations, and what part of it each time."""
STEPS = Limits(1e-9, 200)
"""When Newton's method ends at one smoothing."""
SOLUTIONS: FunctionCache[Callable[..., Any]] = FunctionCache(most=32)
"""What was traced of functions: to trace one takes 400 times as long as to solve a small problem."""


@hint_parameters("complementarity")
def complementarity(
    f: Callable[..., Any],
    lower: Any,
    upper: Any,
    args: Any = (),
    *,
    start: Any = None,
    tol: float = TOLERANCE,
    singular: str = "raise",
) -> Any:
    """Return the x between bounds with f(x) = 0, or f(x) > 0 at the lower, or f(x) < 0 at the upper bound, for each.

    Equilibria are such: of markets, of bodies in contact, of games; the conditions of optimality are, too. It is solved
    by Newton's method on smoothed equations of Fischer's and Burmeister's (A. Fischer, A special Newton-type
    optimization method, Optimization, 1992; of two bounds after S. Billups, Algorithms for complementarity problems,
    1995), which are smoothed less and less, as a loop that can be traced, compiled and run in lanes. Derivatives are
    those of the equations that hold: unknowns at a bound move with it.

    Args:
        f: `f(x, *args)`, of the shape of x, or a list, written in NumPy; what it captures is differentiated, too.
        lower: the lower bounds, of the shape of x; -inf where there is none. Numbers are bounds of all.
        upper: the upper bounds, likewise.
        args: further arguments of f, in any containers.
        start: where to begin, of the shape of x; by default as near to zero as the bounds allow.
        tol: by which part of their terms the equations may be missed, as for `custom_root`.
        singular: as for `custom_root`: what is left of the equations may have a singular Jacobian.

    Returns:
        x, an array of floats. Where an unknown is at its bound and f is zero, too, there are two derivatives: given is
        that of f(x) = 0, and, if values are known, a warning names it.

    Raises:
        NumericalError: Newton's method has not converged; x is NaN where that cannot be told, as under `jit`.
        ShapeError: f has not the shape of x.
        UsageError: a lower bound is known to be above the upper one.

    >>> import numpy as np
    >>> import wengert as wg
    >>> def price(demand):  # of two goods: no more is asked for than is there, or the price is zero
    ...     return complementarity(lambda p: 1.0 + p - demand / (1.0 + p), 0.0, np.array([np.inf, np.inf]))
    >>> price(np.array([4.0, 0.5])).round(9)
    array([1., 0.])
    >>> wg.jacobian(price)(np.array([4.0, 0.5])).round(9) + 0.0
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    name = "complementarity"
    require_callable(name, f)
    options = options_of(name, "dense", tol, singular)
    begin, low, high = common_arrays(name, {"start": 0.0 if start is None else start, "lower": lower, "upper": upper})
    require_limits(name, "x", low, high)
    values = f, args if isinstance(args, tuple) else (args,)

    def solve(solution: Callable[..., Any], leaves: Any) -> tuple[Any, Any]:
        found: tuple[Any, Any] = solution(leaves, begin, low, high)
        return found

    x, weak = SOLUTIONS.run(values, (tol, singular), lambda outer: traced_solution(name, outer, options), solve)
    if is_concrete(x):
        report(name, np.asarray(raw(x)), np.asarray(raw(weak)))
    return x


def traced_solution(name: str, outer: OuterValues, options: dict[str, Any]) -> Callable[..., Any]:
    """Return the jitted function from what f and its arguments hold, a start and bounds to the solution."""
    kept = outer.with_zeros()
    f, args = kept.values

    def solution(leaves: Any, begin: Any, low: Any, high: Any) -> Any:
        (own, given), made = kept.replace_values((f, args), leaves)
        begin = np.minimum(np.maximum(begin, low), high)
        found = solution_between(name, own, begin, low, high, given, options)
        made.require_unwritten(name)
        return found

    return jit(solution)


def solution_between(
    name: str, f: Callable[..., Any], begin: Any, low: Any, high: Any, args: Any, options: dict[str, Any]
) -> tuple[Any, Any]:
    """Return x with the derivatives of the equations that hold, and where an unknown is at a bound and f is zero."""
    shape = shape_of(low)

    def values_of(x: Any, args: Any) -> Any:
        found = f(x, *args)
        found = asarray(found) if isinstance(found, list | tuple) else found
        if shape_of(found) != shape:
            given = f"f that returned shape {shape_of(found)}"
            action = "Return an equation for each unknown; there are as many as bounds, or start, have numbers"
            raise ShapeError(name, given, f"{shape}, that of x, is needed", action)
        return found

    def values(x: Any, given: tuple[Any, Any, Any]) -> Any:
        args, unit, size = given
        return values_of(x * unit, args) / size

    units = units_at(lambda x: values_of(x, args), begin, low, high)
    begin, low, high = (vector / units[0] for vector in (begin, low, high))
    args = (args, *units)

    def find(begin: Any, low: Any, high: Any, args: Any) -> tuple[Any, ...]:
        size = math.prod(shape)
        if not size:
            return begin, begin > 0, begin > 0, begin > 0
        vectors = [np.reshape(v, (size,)) for v in (begin, low, high)]
        x, converged = solve(lambda v: np.reshape(values(np.reshape(v, shape), args), (size,)), *vectors)
        x = np.reshape(np.where(converged, x, np.nan), shape)
        missed = values(x, args)
        at_low, at_high = x - low < missed, high - x < -missed
        weak = np.minimum(x - low, high - x) <= NEAR * (1.0 + np.abs(x))
        weak = weak & (np.abs(missed) <= NEAR * (1.0 + np.abs(x)))
        return np.where(at_low, low, np.where(at_high, high, x)), at_low & ~weak, at_high & ~weak, weak

    x, at_low, at_high, weak = solve_without_derivatives(find, (begin, low, high, args), {}, None)

    def residual(x: Any, low: Any, high: Any, at_low: Any, at_high: Any, args: Any) -> Any:
        return np.where(at_low, x - low, np.where(at_high, x - high, values(x, args)))

    x = implicit_solution(residual, x, (low, high, at_low, at_high, args), name=name, **options)
    return x * units[0], weak


def units_at(function: Callable[[Any], Any], begin: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return the units of the unknowns and of the equations, as they are where one begins.

    How much equations change is told by one direction. Large ones keep their size: far from the solution, where some
    begin, it tells nothing.
    """
    begin, low, high = stop_gradient((begin, low, high))
    if 0 in shape_of(begin):
        return 1.0, 1.0
    along = np.cos(np.arange(begin.size, dtype=begin.dtype)).reshape(shape_of(begin))  # in which nothing cancels
    value, change = (np.abs(part) for part in stop_gradient(jvp(function, (begin,), (along,))))
    steep = np.max(change)
    step = np.where(steep > 0.0, np.max(value) / np.where(steep > 0.0, steep, 1.0), 0.0)
    bounds = (np.where(np.isfinite(side), np.abs(side), 0.0) for side in (low, high))
    unit = unit_of(size_nearest_to_one([step, np.abs(begin), *bounds]))
    size = unit_of(np.minimum(size_nearest_to_one([value, steep * unit]), 1.0))
    return unit.astype(begin.dtype), size.astype(begin.dtype)


def common_arrays(name: str, given: dict[str, Any]) -> list[Any]:
    """Return arguments as arrays of one shape and a floating dtype."""
    avals = [require_number(name, what, value) for what, value in given.items()]
    for what, aval in zip(given, avals, strict=True):
        require_real(name, what, aval.dtype)
    try:
        shape = np.broadcast_shapes(*(aval.shape for aval in avals))
    except ValueError:
        shapes = ", ".join(f"{what} {aval.shape}" for what, aval in zip(given, avals, strict=True))
        raise ShapeError(name, f"shapes {shapes}", "that of x, or numbers, are needed", "Reshape them") from None
    zeros = np.zeros(shape, np.result_type(*(aval.dtype for aval in avals), np.float32))
    return [zeros + (x if type(x) is Tensor else np.asarray(x)) for x in given.values()]


def solve(function: Callable[[Any], Any], start: Any, low: Any, high: Any) -> tuple[Any, Any]:
    """Return a vector between bounds that solves a complementarity problem, and whether it does."""

    def go_on(state: Any) -> Any:
        _, amount, converged = state
        return converged & (amount > LAST)

    def advance(state: Any) -> Any:
        x, amount, _ = state
        found = newton(lambda v: smooth_equations(v, function(v), low, high, PART * amount), x, STEPS)
        return found.x, PART * amount, found.converged

    x, _, converged = while_loop(go_on, advance, (start, start.dtype.type(FIRST / PART), np.True_))
    return x, converged


def smooth_equations(x: Any, value: Any, low: Any, high: Any, amount: Any) -> Any:
    """Return the residual of complementarity, smooth by an amount: zero at the solution but for the amount's square."""

    def lesser(a: Any, b: Any) -> Any:
        return a + b - np.sqrt(a * a + b * b + 2.0 * amount * amount)

    has_low, has_high = np.isfinite(low), np.isfinite(high)
    below = np.where(has_high, -lesser(np.where(has_high, high, x) - x, -value), value)
    return np.where(has_low, lesser(x - np.where(has_low, low, x), below), below)


def report(name: str, x: np.ndarray[Any, Any], weak: np.ndarray[Any, Any]) -> None:
    """Raise where there is no solution, and warn of unknowns at bounds that do not hold them."""
    if not np.all(np.isfinite(x)):
        given = "equations of which Newton's method found no solution between the bounds"
        raise NumericalError(name, given, "one is needed", "Pass a start nearer to it, or look for contradictions")
    if np.any(weak):
        places = ", ".join(f"x{list(place)}" for place in np.argwhere(weak).tolist()[:5])
        text = f"{name}: {places} are at a bound where f is zero; derivatives are those where f stays zero"
        warnings.warn(text, UserWarning, stacklevel=user_stacklevel())
