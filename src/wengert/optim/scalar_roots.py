"""Roots of functions of one number, by iterations of ours that are traced and compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import (
    as_items,
    elements,
    require_callable,
    require_choice,
    require_finite,
    require_one_number,
    shown,
)
from wengert.core.values.aval import aval_of
from wengert.errors import UsageError
from wengert.implicit.newton_iteration import Limits, Solution
from wengert.optim import iterations
from wengert.optim.equations import (
    CONVERGED,
    IMPLICIT,
    ONE_STEP,
    STOPPED,
    WAYS,
    IterationMethod,
    limits_of,
    solution_of,
)
from wengert.scipy.optimize._vector_problem import FlatProblem
from wengert.support.hints import hint_parameters

Scalar = Callable[[Any], Any]
OF_BRACKETS = {"bisect": iterations.bisect, "brentq": iterations.brent}
NAMES = ("bisect", "brentq", "newton", "secant")


@hint_parameters("drivers")
def root_scalar(
    f: Callable[..., Any],
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    x0: Any = None,
    x1: Any = None,
    *,
    tol: float | None = None,
    maxiter: int = 100,
    jit: bool = True,
    differentiate: str = IMPLICIT,
) -> Any:
    """Find where a function of one number is zero.

    The loop is traced and compiled as one; under `vmap` it runs over all lanes until each has found its root. The
    root has the derivatives that the equation gives it, -(df/da) / (df/dx), whichever way it was found.

    Args:
        f: the function: of a number, and of `args`; returns a number.
        args: further arguments, of any kind.
        method: "newton", with the derivative, which needs `x0`; "secant", which needs `x0` and `x1`; "brentq" or
            "bisect", which need `bracket`. By default "brentq", "secant" or "newton", whichever there is enough for.
        bracket: two numbers at which the function has different signs.
        x0: where to start.
        x1: a second place to start.
        tol: the change of a step that is small, relative to the root or, near zero, to one; by default the square root
            of the precision of numbers for "newton" and "secant", whose error is much smaller then, and four times that
            precision for the others.
        maxiter: the most steps.
        jit: whether the function is traced and compiled; with False it is called as it is.
        differentiate: "implicit"; "unroll" for derivatives of all steps, of "newton" and "secant" alone; or "one_step"
            for those of one more step of Newton's method, exact to first order alone.

    Returns:
        SciPy's result: `root`, `converged`, `iterations`, `method` and `flag`, which is None where they are not known.

    Raises:
        UsageError: there is not enough to start with, the method is none of these, or a bracket is infinite or, where
            values are known, without a change of sign; in lanes and graphs `converged` is False then.
        NumericalError: a derivative is asked for where nothing was found.

    >>> import wengert as wg
    >>> float(round(root_scalar(lambda x: x**3 - 2.0, bracket=(0.0, 2.0)).root, 9))
    1.25992105
    >>> cube_roots = wg.vmap(lambda a: root_scalar(lambda x: x**3 - a, x0=1.0).root)
    >>> np.round(cube_roots(np.array([1.0, 8.0, 27.0])), 9)
    array([1., 2., 3.])
    """
    from scipy.optimize import OptimizeResult

    name = "optim.root_scalar"
    require_callable(name, f)
    chosen = method_for(name, method, bracket, x0, x1)
    given = as_items(name, "bracket", bracket) if chosen in OF_BRACKETS else [x0, x1] if chosen == "secant" else [x0]
    if chosen in OF_BRACKETS and len(given) != 2:
        raise UsageError(name, f"{len(given)} numbers for bracket", "two are needed", "Pass (a, b)")
    start = as_start(name, given)
    if tol is None and chosen in OF_BRACKETS:
        tol = 4.0 * float(np.finfo(aval_of(start).dtype).eps)

    def iteration(function: Scalar, vector: Any, limits: Limits) -> Solution:
        def value(x: Any) -> Any:
            return function(np.reshape(x, (1,)))[0]

        if chosen == "newton":
            found = iterations.newton_scalar(value, vector[0], limits)
        elif chosen == "secant":
            found = iterations.secant(value, vector[0], vector[1], limits)
        else:
            found = OF_BRACKETS[chosen](value, vector[0], vector[1], limits)
        return found._replace(x=np.reshape(found.x, (1,)))

    if chosen in OF_BRACKETS:
        require_finite(name, "the ends of bracket", start)
    limits = limits_of(name, start, tol, maxiter)
    ways = (IMPLICIT, ONE_STEP) if chosen in OF_BRACKETS else WAYS
    require_choice(name, "differentiate", differentiate, ways, action="Leave it out, or use method='newton'")
    problem = FlatProblem(name, f, start[0], args, jit, (chosen, limits, differentiate))
    found = solution_of(problem, IterationMethod(chosen, iteration, False, 100), limits, start, differentiate)
    if chosen in OF_BRACKETS and found.message == STOPPED:
        require_change_of_sign(name, f, start, args)
    flag = None if found.message is None else "converged" if found.message == CONVERGED else "convergence error"
    return OptimizeResult(root=found.x, converged=found.success, iterations=found.nit, method=chosen, flag=flag)


def require_change_of_sign(name: str, f: Callable[..., Any], start: Any, args: Any) -> None:
    """Raise a UsageError where a function has the same sign at both ends of a bracket, if these are known."""
    ends = elements(start)
    values = [elements(np.ravel(f(x, *(args if isinstance(args, tuple) else (args,))))[0]) for x in ends]
    if all(value is not None for value in values) and values[0] * values[1] > 0:
        given = f"a function that is {values[0]:.3g} and {values[1]:.3g} at the ends of bracket"
        raise UsageError(name, given, "different signs are needed", "Pass two places with a root between them")


def method_for(name: str, method: str | None, bracket: Any, x0: Any, x1: Any) -> str:
    """Return the name of a method for which there is enough to start with."""
    needs = {"newton": {"x0": x0}, "secant": {"x0": x0, "x1": x1}}
    needs |= {of_bracket: {"bracket": bracket} for of_bracket in OF_BRACKETS}
    if method is None:
        order = "brentq", "secant", "newton"
        method = next((m for m in order if all(x is not None for x in needs[m].values())), "newton")
    if not isinstance(method, str) or method not in needs:
        needed = f"one of {', '.join(NAMES)} is needed"
        action = "Use wengert.scipy.optimize.root_scalar for others"
        raise UsageError(name, f"{shown(method)} for method", needed, action)
    missing = [what for what, value in needs[method].items() if value is None]
    if missing:
        given = f"no {' and no '.join(missing)} for method {method!r}"
        raise UsageError(name, given, "where to start is needed", f"Pass {' and '.join(missing)}")
    return method


def as_start(name: str, found: list[Any]) -> Any:
    """Return numbers as one vector of floats."""
    for number in found:
        require_one_number(name, "where to start", number)
    kinds = [aval_of(x).dtype for x in found if aval_of(x).dtype.kind == "f"]
    dtype = np.result_type(*kinds) if kinds else np.dtype(float)
    return np.stack([x.astype(dtype) if hasattr(x, "astype") else np.asarray(x, dtype) for x in found])
