"""Roots and fixed points, of functions of containers and of one number, by iterations that are traced and compiled."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.control.lanes_in_blocks import run_lanes_in_blocks
from wengert.core.containers.tree_leaves import flatten, structure_text
from wengert.core.diagnostics.argument_checks import (
    as_items,
    as_whole,
    elements,
    require_callable,
    require_choice,
    require_finite,
    require_one_number,
    shown,
)
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import is_concrete, raw
from wengert.errors import ShapeError, UsageError
from wengert.implicit.attaching import implicit_solution
from wengert.implicit.factored import SMALL
from wengert.implicit.newton_iteration import (
    Limits,
    Solution,
    StepFrom,
    newton,
    solve_system,
    step_by_factors,
    step_in_full,
)
from wengert.implicit.solver_call import solve_without_derivatives
from wengert.optim import iterations
from wengert.optim.sparse_newton import few_elements, step_by_elements
from wengert.scipy.optimize._containers_of_floats import as_example
from wengert.scipy.optimize._vector_problem import FlatProblem, as_residuals
from wengert.support.hints import hint_parameters
from wengert.support.records import NamedTuple
from wengert.transforms.jacobian import jacfwd
from wengert.transforms.reverse import stop_gradient

Function = Callable[..., Any]
Iteration = Callable[[Callable[[Any], Any], Any, Limits], Solution]
CONVERGED = "The solution converged."
STOPPED = (
    "The iterations ended before they converged: after maxiter steps, where none brings them nearer, or where the "
    "Jacobian is singular."
)


IMPLICIT, UNROLL, ONE_STEP = WAYS = ("implicit", "unroll", "one_step")
"""Where derivatives come from: the equations, all steps that were taken, or one more step from the solution."""


LEAST_LANES, NUMBERS = 16, 512
"""Lanes and unknown numbers that are iterated at once: as many as vector instructions and calls need.

Of 10,000 lanes of 2, 8 and 32 equations each takes 0.1, 0.6 and 10 us by Newton's method, all at once 0.15, 5 and 56.
"""


class IterationMethod(NamedTuple):
    """Say how equations are solved.

    Attributes:
        name: of the method, with its options.
        iteration: what it does.
        repeats: whether the function gives a further value, which is the same at the solution, or what is zero there.
        most: the most steps unless the user says so.
    """

    name: Any
    iteration: Iteration
    repeats: bool
    most: int


NEWTON = IterationMethod("newton", newton, False, 100)
ITERATION = IterationMethod("iteration", iterations.iterate, True, 10_000)


def solve(
    name: str,
    method: IterationMethod,
    function: Function,
    x0: Any,
    args: Any,
    tol: Any,
    maxiter: Any,
    compiled: bool,
    differentiate: str = IMPLICIT,
) -> Any:
    """Return SciPy's result of a method, whose `x` has derivatives."""
    require_choice(name, "differentiate", differentiate, WAYS)
    limits = limits_of(name, x0, tol, method.most if maxiter is None else maxiter)
    problem = FlatProblem(name, function, x0, args, compiled, (method.name, limits, differentiate))
    require_finite(name, "x0", problem.vector, "Begin elsewhere")
    return solution_of(problem, method, limits, problem.vector, differentiate)


def solution_of(
    problem: FlatProblem, method: IterationMethod, limits: Limits, start: Any, differentiate: str = IMPLICIT
) -> Any:
    """Return SciPy's result of a method.

    `start` is where the method starts, the problem's own vector or, for methods that need several, several of them.
    """
    from scipy.optimize import OptimizeResult

    def solver_of(values: Function) -> Function:
        return solver(problem, values, method, limits, differentiate)

    x, value, converged, steps = problem.run("solution", as_residuals, solver_of)(start)
    message = None
    if is_concrete(converged):  # and of no lanes
        converged, steps = bool(raw(converged)), int(raw(steps))
        message = CONVERGED if converged else STOPPED
    return OptimizeResult(x=problem.back(x), fun=value, success=converged, nit=steps, message=message)


def solver(
    problem: FlatProblem, values: Function, method: IterationMethod, limits: Limits, differentiate: str
) -> Function:
    """Return the function from a start, and further arguments of the values, to what a method finds."""
    name, size, compiled = problem.name, problem.vector.size, problem.compiled

    def iterate(start: Any, *args: Any, **options: Any) -> Solution:
        return method.iteration(lambda x: values(x, *args), start, limits, **options)

    def iterate_in_blocks(start: Any, *args: Any, **options: Any) -> Solution:
        run = functools.partial(iterate, **options)
        found: Solution = run_lanes_in_blocks(run, max(LEAST_LANES, NUMBERS // size), start, *args)
        return found

    def residual(x: Any, *args: Any) -> Any:
        value = values(x, *args)
        if value.size != size:
            given = f"{value.size} equations for {size} unknowns"
            raise ShapeError(name, given, "as many are needed", "Use wengert.optim.least_squares otherwise")
        return value - x if method.repeats else value

    def solution(start: Any, *args: Any) -> tuple[Any, ...]:
        residual(np.ravel(start)[:size], *args)
        if differentiate == UNROLL:
            found = iterate(start, *args)
            return found.x, residual(found.x, *args), found.converged, found.steps
        options = {}
        if compiled and method is NEWTON:
            options["step_from"] = step_for(name, lambda x: values(x, *args), start)
        found = solve_without_derivatives(functools.partial(iterate_in_blocks, **options), (start, *args), {}, None)
        if differentiate == ONE_STEP:
            x = last_step(residual, stop_gradient(found.x), args, method.repeats)
        else:
            x = implicit_solution(
                residual,
                found.x,
                args,
                name=name,
                success=found.converged,
                own_tol=limits.tol,
                last=found.last,
            )
        return x, residual(x, *args), found.converged, found.steps

    return solution


def step_for(name: str, function: Function, start: Any) -> StepFrom:
    """Return how steps of Newton's method are made: by few elements, or in full, keeping factors for derivatives."""
    few = few_elements(name, function, start)
    if few is not None:
        return step_by_elements(name, few)
    return step_by_factors if start.size > SMALL else step_in_full


def last_step(residual: Function, x: Any, args: Any, repeats: bool) -> Any:
    """Return what one more step makes of a solution, of which alone derivatives are taken.

    J. Bolte, E. Pauwels and S. Vaiter, *One-step differentiation of iterative algorithms*, NeurIPS 2023. Of iterations
    of a function it is the next value, of all others a step of Newton's method, whose matrix is held.
    """
    missed = residual(x, *args)
    if repeats:
        return x + missed
    slope = stop_gradient(jacfwd(lambda v: residual(v, *args))(x))
    return x - solve_system(slope, missed)


def limits_of(name: str, x0: Any, tol: Any, most: Any) -> Limits:
    """Return when an iteration ends; without a tolerance where about half of the digits do not change any more."""
    if tol is None:
        kinds = [aval_of(leaf).dtype for leaf in flatten(as_example(x0))[0]]
        floats = [kind for kind in kinds if kind.kind == "f"]
        tol = np.sqrt(np.finfo(np.result_type(*floats) if floats else float).eps)
    else:
        require_one_number(name, "tol", tol)
        if not float(tol) >= 0.0:
            raise UsageError(name, f"tol={shown(tol)}", "0 or more is needed", "Leave it out")
    return Limits(float(tol), as_whole(name, "maxiter", most, least=1))


def with_containers_of(name: str, function: Function, x0: Any) -> Function:
    """Return a function of containers, which must return the same containers, as one that does."""
    structure = flatten(as_example(x0))[1]

    def step(x: Any, *args: Any) -> Any:
        found = as_example(function(x, *args))
        other = flatten(found)[1]
        if other != structure:
            given = f"a function that returned {structure_text(other)}"
            raise UsageError(name, given, "the containers of x0 are needed", "Return the next value of x")
        return found

    return step


@hint_parameters("drivers")
def fixed_point(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    tol: float | None = None,
    maxiter: int = 10_000,
    jit: bool = True,
    differentiate: str = IMPLICIT,
) -> Any:
    """Find a fixed point of a function of containers by applying it again and again.

    The loop is traced and compiled as one. Its result has the derivatives of a fixed point, which depend neither on
    where it began nor on the way: of x = f(x, a) it is dx = (I - df/dx)^-1 df/da da.

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns such a container.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        tol: the change of a step that is small, relative to the largest element; by default the square root of the
            precision of numbers.
        maxiter: the most steps.
        jit: whether the function is traced and compiled; with False it is called as it is.
        differentiate: "implicit"; "unroll" for the derivatives of all steps, which depend on where it began and on how
            many there were; "one_step" for those of one more step from the solution: df/da alone, without a linear
            system, right to the part by which a step contracts.

    Returns:
        SciPy's result: `x` in the containers of `x0`; `fun`, by how much the function changes it; `success`, `nit` and
        `message`, which is None where they are not known yet.

    Raises:
        UsageError: `fun` returns other containers, or `x0` is not finite.
        NumericalError: a derivative is asked for where the iteration has not converged.

    >>> import wengert as wg
    >>> found = fixed_point(lambda x, a: np.cos(a * x), 1.0, (1.0,), tol=1e-12)
    >>> round(found.x, 6)
    0.739085
    >>> round(wg.grad(lambda a: fixed_point(lambda x: np.cos(a * x), 1.0, tol=1e-12).x)(1.0), 6)
    -0.297474
    """
    name = "optim.fixed_point"
    require_callable(name, fun)
    step = with_containers_of(name, fun, x0)
    return solve(name, ITERATION, step, x0, args, tol, maxiter, jit, differentiate)


@hint_parameters("drivers")
def anderson(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    *,
    memory: int = 5,
    mixing: float = 1.0,
    tol: float | None = None,
    maxiter: int = 1000,
    jit: bool = True,
    differentiate: str = IMPLICIT,
) -> Any:
    """Find a fixed point of a function of containers by Anderson's acceleration.

    Walker and Ni, *Anderson acceleration for fixed-point iterations*, SIAM Journal on Numerical Analysis 49, 2011.
    Derivatives are those of `fixed_point`.

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns such a container.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        memory: how many steps before the last one are looked at.
        mixing: the part of the residual that is added; less than 1 for functions that change a lot.
        tol: the change of a step that is small, relative to the largest element; by default the square root of the
            precision of numbers.
        maxiter: the most steps.
        jit: whether the function is traced and compiled; with False it is called as it is.
        differentiate: as for `fixed_point`.

    Returns:
        SciPy's result, as `fixed_point` gives it.

    Raises:
        UsageError: `fun` returns other containers, `memory` is none, or `x0` is not finite.
        NumericalError: a derivative is asked for where the iteration has not converged.

    >>> found = anderson(lambda x: np.cos(x), np.array([1.0, 2.0]), tol=1e-12)
    >>> np.round(found.x, 6), found.nit < 20
    (array([0.739085, 0.739085]), True)
    """
    name = "optim.anderson"
    require_callable(name, fun)
    count = as_whole(name, "memory", memory, least=1)
    require_one_number(name, "mixing", mixing)
    require_finite(name, "mixing", mixing)

    def iteration(function: Callable[[Any], Any], start: Any, limits: Limits) -> Solution:
        return iterations.accelerate(function, start, limits, count, float(mixing))

    method = IterationMethod(("anderson", count, float(mixing)), iteration, True, 1000)
    return solve(name, method, with_containers_of(name, fun, x0), x0, args, tol, maxiter, jit, differentiate)


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
        UsageError: there is not enough to start with, the method is none of these, or a start is not finite or, where
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

    what = "the ends of bracket" if chosen in OF_BRACKETS else "the numbers to start with"
    require_finite(name, what, start, "Begin elsewhere")
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
