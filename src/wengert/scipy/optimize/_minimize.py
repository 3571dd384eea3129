"""Minima of functions by SciPy's methods, differentiated by the conditions that they satisfy."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, require_result
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.scipy.optimize._constraints import sides_of, taken_apart
from wengert.scipy.optimize._interior_point import IPOPT, solve_by_ipopt
from wengert.scipy.optimize._kept_solutions import value_at
from wengert.scipy.optimize._program import NonlinearProgram
from wengert.scipy.optimize._roots import as_ndarrays
from wengert.scipy.optimize._solving import as_tuple, first_of, is_traced_now
from wengert.scipy.optimize._vector_problem import VectorProblem, as_float

Function = Callable[..., Any]
WITHOUT_GRADIENT = frozenset({"nelder-mead", "powell", "cobyla", "cobyqa"})
WITH_PRODUCTS = frozenset({"newton-cg", "trust-ncg", "trust-krylov", "trust-constr"})
WITH_HESSIAN = frozenset({"dogleg", "trust-exact"})


def derivatives_for(problem: VectorProblem, method: str | None) -> dict[str, Any]:
    """Return the derivatives that a method of SciPy's takes."""
    name = (method or "").lower()
    found: dict[str, Any] = {}
    if name not in WITHOUT_GRADIENT:
        found["jac"] = True
    if name in WITH_PRODUCTS:
        found["hessp"] = problem.product
    if name in WITH_HESSIAN:
        found["hess"] = problem.hessian
    return found


def minimize(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str | None = None,
    jac: Any = None,
    hess: Any = None,
    hessp: Function | None = None,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimise a scalar function; see `scipy.optimize.minimize`.

    SciPy finds the minimum, with the gradient and second derivatives that Wengert gives it unless there are `jac`,
    `hess` or `hessp`; methods that take none call `fun` as it is, so that it may be any function as long as nothing is
    differentiated. `x`, `fun` and `multipliers` have the derivatives that the conditions of Karush, Kuhn and Tucker
    give them, by `args`, bounds, limits, and all that functions capture: active constraints are equations, inactive
    ones are left out. Of a weakly active one, which holds nothing, the derivative is that of the side on which it is
    inactive, and a warning names it. It names active ones that follow from others, too, which are left out: `x` is the
    same without them, while multipliers are not unique.

    Args:
        fun: the function: of an array of shape (n,), and of `args`; returns a number.
        x0: where to start, of shape (n,).
        args: further arguments, of any kind.
        method: SciPy's name of a method.
        jac: the gradient, or True if `fun` returns a pair of its value and that, or one of SciPy's differences.
        hess: the Hessian, as in SciPy.
        hessp: the Hessian times a vector, as in SciPy.
        bounds: as in SciPy; numbers may be Tensors.
        constraints: as in SciPy; derivatives are filled in.
        tol: as in SciPy. Derivatives are as certain as `x` is.
        callback: as in SciPy.
        options: as in SciPy.

    Returns:
        SciPy's result. Where there are constraints, `multipliers` y with df/dx = sum(y * dc/dx), positive at the lower
        limit, those of equations first; NaN where functions are such that they have no derivatives. Of lanes of `vmap`,
        and in graphs: `x`, `fun`, `multipliers`, `success`, `status`, `nit` and `nfev` (-1 for what a method does not
        count).

    Raises:
        NumericalError: a derivative is asked for where nothing was found (`success` is False, and the conditions are
            missed by more than 1e-7 of their terms), or where the function is flat.
        UsageError: bounds or constraints are none of SciPy's.

    >>> import wengert as wg
    >>> def nearest(p):
    ...     return minimize(lambda x: np.sum((x - p) ** 2), np.zeros(2), bounds=[(0.0, 1.0), (0.0, 1.0)]).x
    >>> nearest(np.array([0.5, 3.0])).round(6)
    array([0.5, 1. ])
    >>> wg.jacobian(nearest)(np.array([0.5, 3.0])).round(6) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    name = "scipy.optimize.minimize"
    require_callable(name, fun)
    given = as_tuple(args)
    value = first_of(fun) if jac is True else fun
    x0 = one_array(x0)
    start = np.atleast_1d(x0) if isinstance(x0, Tensor) else np.atleast_1d(np.asarray(x0))
    size = int(np.prod(aval_of(start).shape))
    many = taken_apart(name, constraints, start if isinstance(start, Tensor) else np.asarray(start, float))
    program = NonlinearProgram(name, value, given, size, sides_of(name, bounds, size), many)
    settings = {"method": method, "tol": tol, "callback": callback, "options": options}

    def solve(x0: Any, args: Any, sides: Any, limits: Any) -> Any:
        from scipy import optimize

        boxed = None if sides is None else optimize.Bounds(*sides, getattr(bounds, "keep_feasible", False))
        plain = [c.anew(own) for c, own in zip(many, limits, strict=True)]
        rest = {"hess": hess, "hessp": hessp, "bounds": boxed, "constraints": plain, **settings}
        if size == 0 or x0.ndim != 1:  # SciPy has something to say of it
            return optimize.minimize(as_numbers(fun), x0, args, jac=jac, **rest)
        plainly = jac is not None or (isinstance(method, str) and method.lower() in WITHOUT_GRADIENT)
        if plainly and not (many and jac is not None):  # derivatives are asked for by nobody, so it may be any function
            rest["constraints"] = [with_numbers(c) for c in plain]
            return optimize.minimize(as_numbers(fun), x0, args, jac=jac, **rest)
        problem = VectorProblem(name, value, x0, args, True, keep=program.keeps)
        if (method or "").lower() == IPOPT and jac is None:
            return solve_by_ipopt(problem, boxed, plain, tol, callback, options)
        curved = (method or "").lower() == "trust-constr"
        rest["constraints"] = [problem.constraint(c, curved=curved) for c in plain]
        if jac is not None:
            return optimize.minimize(as_numbers(fun), x0, args, jac=jac, **rest)
        derivatives = derivatives_for(problem, method)
        if hess is not None or hessp is not None:
            derivatives = {key: x for key, x in derivatives.items() if key == "jac"}
        function = problem.value_and_gradient if "jac" in derivatives else problem.value
        return optimize.minimize(function, x0, **{**rest, **derivatives})

    found = program.solution(solve, start)
    fields = {"multipliers": found.multipliers} if many else {}
    if not is_traced_now(found.x):
        return found.answer.result(**fields)
    return found.answer.result(x=found.x, fun=value_at(name, value, found.x, *given), **fields)


def as_numbers(function: Function) -> Function:
    """Return a function whose values, which may come with derivatives, are ndarrays and numbers."""

    def values(x: Any, *args: Any) -> Any:
        found = require_result("fun", function(x, *args))
        if isinstance(found, tuple):
            return tuple(np.asarray(part) for part in found)
        return as_float(found) if isinstance(found, Tensor) else found

    return values


def with_numbers(constraint: Any) -> Any:
    """Return SciPy's constraint with values that are ndarrays, for methods that take no derivatives."""
    if isinstance(constraint, dict):
        return {**constraint, "fun": as_ndarrays(constraint["fun"])}
    if hasattr(constraint, "fun"):
        constraint = copy.copy(constraint)
        function = getattr(constraint, "function", constraint.fun)
        args = getattr(constraint, "args", ())
        constraint.fun = as_ndarrays(lambda x: function(x, *args))
    return constraint


def minimize_scalar(
    fun: Function,
    bracket: Any = None,
    bounds: Any = None,
    args: Any = (),
    method: str | None = None,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Minimise a function of one number; see `scipy.optimize.minimize_scalar`.

    SciPy finds the minimum. `x` and `fun` have the derivatives that a slope of zero gives them, by `args` and all that
    `fun` captures; at a bound x has the derivative of the bound.

    Args:
        fun: the function: of a number, and of `args`; returns a number.
        bracket: as in SciPy.
        bounds: the lowest and the highest value of x.
        args: further arguments, of any kind.
        method: "Brent", "Golden" or "Bounded".
        tol: as in SciPy.
        options: as in SciPy.

    Returns:
        SciPy's result; of lanes of `vmap`, and in graphs, `x`, `fun`, `success`, `nit` and `nfev`.

    Raises:
        NumericalError: a derivative is asked for where nothing was found, or where the function is flat.

    >>> import wengert as wg
    >>> round(wg.grad(lambda a: minimize_scalar(lambda x: (x - a) ** 2).x)(2.0), 6)
    1.0
    """
    name = "scipy.optimize.minimize_scalar"
    require_callable(name, fun)
    given = as_tuple(args)

    def value(x: Any, *args: Any) -> Any:
        return fun(x[0], *args)

    bounded = bounds is not None and (method is None or method.lower() == "bounded")
    program = NonlinearProgram(name, value, given, 1, sides_of(name, [tuple(bounds)], 1) if bounded else None)

    def solve(bracket: Any, args: Any, sides: Any, _limits: Any) -> Any:
        from scipy import optimize

        limits = bounds if sides is None else (float(sides.lower[0]), float(sides.upper[0]))
        return optimize.minimize_scalar(as_numbers(fun), bracket, limits, args, method, tol, options)

    found = program.solution(solve, bracket, ("success", "nit", "nfev"))
    if not is_traced_now(found.x):
        return found.answer.result()
    return found.answer.result(x=found.x[0], fun=value_at(name, fun, found.x[0], *given))
