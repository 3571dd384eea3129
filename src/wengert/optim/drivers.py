"""SciPy's drivers on any container, with derivatives in the same call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import (
    require_callable,
    require_choice,
    require_finite,
    require_flag,
    require_limits,
)
from wengert.core.values.aval import aval_of
from wengert.errors import ShapeError, UsageError
from wengert.optim.equations import IMPLICIT, NEWTON
from wengert.optim.equations import solve as solve_equations
from wengert.scipy import optimize as differentiable
from wengert.scipy.optimize._constraints import sides_of
from wengert.scipy.optimize._containers_of_floats import as_example
from wengert.scipy.optimize._interior_point import IPOPT, solve_by_ipopt
from wengert.scipy.optimize._least_squares import parameter_count
from wengert.scipy.optimize._minimize import WITHOUT_GRADIENT, derivatives_for
from wengert.scipy.optimize._vector_problem import VectorProblem, as_float, constraint_field
from wengert.support.attributes import signature
from wengert.support.hints import hint_parameters
from wengert.tree import leaves


@hint_parameters("drivers", "minimize")
def minimize(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str | None = None,
    *,
    bounds: Any = None,
    constraints: Any = (),
    tol: float | None = None,
    callback: Callable[..., Any] | None = None,
    options: dict[str, Any] | None = None,
    jit: bool = True,
    progress: bool = False,
) -> Any:
    """Minimise a function of containers by one of SciPy's methods; see `scipy.optimize.minimize`.

    Values come with their gradient, and methods that use second derivatives get products with the Hessian
    (Newton-CG, trust-ncg, trust-krylov, trust-constr) or the Hessian (dogleg, trust-exact). With 300 unknowns and more,
    trust-constr gets sparse Hessians and Jacobians where few elements are stored. IPOPT, which is not one of SciPy's,
    gets the sparse Jacobian of all constraints and the lower triangle of the Hessian of the Lagrangian.

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns a number.
        x0: where to start: an array, a number, or containers of floats. Lists of numbers are arrays, as in SciPy.
        args: further arguments, of any kind. What was planned and compiled for arrays and floats serves others of the
            same shapes, here and as `args` of constraints. Captured ones are part of it, until a function of the same
            code captures others, of up to 100 unknowns without IPOPT.
        method: SciPy's name of a method; or "ipopt" (`pip install 'wengert[ipopt]'`).
        bounds: a pair of lowest and highest values, each a number or a container like `x0`; or as in SciPy if `x0` is
            an array. (Of two numbers, two lists are SciPy's pairs, and two arrays are refused.)
        constraints: as in SciPy, their functions of a container like `x0`; derivatives are filled in.
        tol: as in SciPy.
        callback: is called after each iteration, with a container like `x0`, or SciPy's result by the name of
            `intermediate_result`; may raise StopIteration.
        options: as in SciPy; of "ipopt" its own ones, `maxiter` and `disp`.
        jit: whether functions are traced once and compiled, those of small problems after some calls; pass False where
            tracing refuses something.
        progress: whether a line is printed after each iteration.

    Returns:
        SciPy's result: `x` in the containers of `x0`, `fun`, `jac`, `success`, `message`, `nit` and others.

    Raises:
        UsageError: bounds are none, NaN, exchanged, of other containers, or could be read in two ways; `x0` is not
            finite; or IPOPT is not installed.
        ShapeError: bounds have another shape than `x0`.
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.

    >>> def banana(p):
    ...     return 100.0 * (p["b"] - p["a"] ** 2) ** 2 + (1.0 - p["a"]) ** 2
    >>> found = minimize(banana, {"a": -1.0, "b": 2.0}, method="trust-exact")
    >>> round(found.x["a"], 4), round(found.x["b"], 4)
    (1.0, 1.0)
    """
    from scipy import optimize

    require_flag("optim.minimize", progress=progress)
    problem = problem_of("optim.minimize", fun, x0, args, jit)
    name = (method or "").lower()
    many = constraints if isinstance(constraints, list | tuple) else (constraints,)
    limits = problem.limits(bounds, pairs=True)
    require_limits(problem.name, "x", *(sides_of(problem.name, limits, problem.vector.size) or (-np.inf, np.inf)))
    settings = {"method": method, "bounds": limits, "tol": tol, "options": options}
    settings["callback"] = reporter(problem, callback, progress)
    settings["constraints"] = many
    functions = [constraint_field(c, "function") or constraint_field(c, "fun") for c in many]
    if problem.is_asked([constraint_field(c, "args") for c in many], functions):
        settings["constraints"] = [problem.flat_constraint(c) for c in many]
        return problem.result(differentiable.minimize(problem.scalar, problem.vector, problem.args, **settings))
    if name == IPOPT:
        del settings["method"]
        return problem.result(solve_by_ipopt(problem, **settings))
    settings["constraints"] = [problem.constraint(c, curved=name == "trust-constr") for c in many]
    derivatives = derivatives_for(problem, method)
    if name == "trust-constr":
        take_sparse(problem, settings, derivatives)
    value = problem.value if name in WITHOUT_GRADIENT else problem.value_and_gradient
    return problem.result(optimize.minimize(value, problem.start, **settings, **derivatives))


def problem_of(name: str, fun: Any, x0: Any, args: Any, compiled: bool, label: str = "x0") -> VectorProblem:
    """Return a problem; raise a UsageError where it is to begin at NaN or infinity, at which all that is found is."""
    problem = VectorProblem(name, fun, x0, args, compiled)
    require_finite(name, label, problem.vector, "Begin elsewhere")
    return problem


def take_sparse(problem: VectorProblem, settings: dict[str, Any], derivatives: dict[str, Any]) -> None:
    """Let a method that takes sparse matrices have them, where there are many unknowns and few elements."""
    second = problem.sparse_hessian()
    if second is not None:
        derivatives["hess"] = second
        del derivatives["hessp"]
    if any(getattr(c, "is_sparse", False) for c in settings["constraints"]):  # then SciPy wants all to be
        settings["options"] = {"sparse_jacobian": True, **(settings["options"] or {})}


def reporter(problem: VectorProblem, callback: Callable[..., Any] | None, progress: bool) -> Callable[..., Any] | None:
    """Return the callback that SciPy calls after each iteration; None if there is neither a callback nor a report."""
    if callback is None and not progress:
        return None
    asks = callback is not None and "intermediate_result" in signature(callback).parameters
    count = 0

    def report(intermediate_result: Any) -> Any:
        nonlocal count
        count += 1
        result = type(intermediate_result)(intermediate_result)
        if progress:
            print(f"{count:5d}  f = {as_float(np.ravel(result.fun)[0]):.10g}", flush=True)
        if callback is None:
            return None
        result.x = problem.back(np.array(result.x))
        return callback(intermediate_result=result) if asks else callback(result.x)

    return report


@hint_parameters("drivers")
def least_squares(
    fun: Callable[..., Any], x0: Any, args: Any = (), *, bounds: Any = None, jit: bool = True, **options: Any
) -> Any:
    """Minimise a sum of squares by SciPy's methods, with the Jacobian; see `scipy.optimize.least_squares`.

    With 300 unknowns and more the Jacobian is a sparse array where few of its elements are stored, so that SciPy solves
    by products (`tr_solver="lsmr"`), unless the method is "lm" or `tr_solver` is "exact".

    Args:
        fun: the residuals: of a container like `x0`, and of `args`; returns an array, or containers of arrays.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        bounds: as in SciPy if `x0` is an array; otherwise a pair of lowest and highest values, each a number or a
            container like `x0`.
        jit: whether functions are traced once and compiled, those of small problems after some calls.
        options: others of SciPy, such as `method`, `loss`, `f_scale`, `x_scale`, `xtol`.

    Returns:
        SciPy's result: `x` in the containers of `x0`, `cost`, `fun`, `jac` (of vectors) and others.

    Raises:
        UsageError: bounds do not fit, or `x0` is not finite.
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.

    >>> t = np.linspace(0.0, 1.0, 20)
    >>> y = 3.0 * np.exp(-2.0 * t)
    >>> found = least_squares(lambda p: p["a"] * np.exp(-p["k"] * t) - y, {"a": 1.0, "k": 1.0})
    >>> round(found.x["a"], 6), round(found.x["k"], 6)
    (3.0, 2.0)
    """
    from scipy import optimize

    if "kwargs" in options:
        fun = partial(fun, **options.pop("kwargs"))
    problem = problem_of("optim.least_squares", fun, x0, args, jit)
    limits = problem.limits(bounds)
    sides = (-np.inf, np.inf) if limits is None else limits
    if problem.is_asked():
        given = {"bounds": sides, "args": problem.args, **options}
        return problem.result(differentiable.least_squares(problem.residuals, problem.vector, **given))
    value, slope = problem.residuals_and_jacobian()
    if options.get("method") != "lm" and options.get("tr_solver") != "exact":  # which take dense matrices alone
        slope = problem.sparse_jacobian() or slope
    found = optimize.least_squares(value, problem.start, jac=slope, bounds=sides, **options)
    return problem.result(found)


@hint_parameters("drivers")
def root(
    fun: Callable[..., Any],
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    *,
    tol: float | None = None,
    options: dict[str, Any] | None = None,
    jit: bool = True,
    differentiate: str = IMPLICIT,
) -> Any:
    """Find where a function of containers is zero, by SciPy's methods with the Jacobian; see `scipy.optimize.root`.

    Args:
        fun: the function: of a container like `x0`, and of `args`; returns as many numbers as `x0` has, in an array
            or containers.
        x0: where to start: an array, a number, or containers of floats.
        args: further arguments, of any kind.
        method: SciPy's name of a method; or "newton", Newton's method with steps that are halved until the residual
            decreases, as one loop that is traced and compiled, in lanes under `vmap`: for small systems, solved often,
            and for larger ones whose Jacobian has few elements other than zero, which is seen when they are traced.
        tol: as in SciPy; of "newton", the size of a step that is small beside `x`, whose error is about its square.
        options: as in SciPy; of "newton", `maxiter`.
        jit: whether functions are traced once and compiled, those of small problems after some calls.
        differentiate: "implicit", from the equations at the solution; of "newton" also "unroll", through all steps, or
            "one_step", through one more step with a matrix that is held: exact to first order alone.

    Returns:
        SciPy's result, with `x` in the containers of `x0`, and its derivatives.

    Raises:
        UsageError: `differentiate` is none of these, or not of the method; or `x0` is not finite.
        DtypeError: `fun` cannot be called, or `x0` has leaves that are no real numbers.
        ShapeError: there are not as many equations as unknowns.

    >>> found = root(lambda p: (p["x"] ** 2 + p["y"] - 3.0, p["x"] - p["y"] + 1.0), {"x": 1.0, "y": 1.0})
    >>> round(found.x["x"], 6), round(found.x["y"], 6)
    (1.0, 2.0)
    """
    if method == "newton":
        return solve_equations(
            "optim.root", NEWTON, fun, x0, args, tol, (options or {}).get("maxiter"), jit, differentiate
        )
    require_choice("optim.root", "differentiate", differentiate, (IMPLICIT,), action="Use method='newton' for others")
    from scipy import optimize

    problem = problem_of("optim.root", fun, x0, args, jit)
    if problem.is_asked():
        settings: dict[str, Any] = {"method": method, "tol": tol, "options": options}
        return problem.result(differentiable.root(problem.residuals, problem.vector, problem.args, **settings))
    value, slope = problem.residuals_and_jacobian()
    count = value(problem.start).size
    if count != problem.start.size:
        given = f"{count} equations for {problem.start.size} unknowns"
        raise ShapeError("optim.root", given, "as many are needed", "Use wengert.optim.least_squares otherwise")
    uses_jacobian = method in ("hybr", "lm")
    return problem.result(
        optimize.root(
            value, problem.start, method=method, jac=slope if uses_jacobian else None, tol=tol, options=options
        )
    )


@hint_parameters("drivers")
def curve_fit(
    f: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    *,
    absolute_sigma: bool = False,
    bounds: Any = None,
    jit: bool = True,
    **options: Any,
) -> tuple[Any, Any]:
    """Fit a model to data by SciPy's `curve_fit`, with the Jacobian.

    Args:
        f: the model, `f(xdata, *parameters)`; if `p0` is a container, `f(xdata, container)`.
        xdata: what the model is evaluated at; a list of numbers is an array, as in SciPy.
        ydata: the data, of shape (m,).
        p0: where to start: an array of parameters, or containers of floats. By default ones, as many as `f` has.
        sigma: the standard deviations of the data, of shape (m,), or their covariance matrix.
        absolute_sigma: whether `sigma` is in the data's units; otherwise only ratios count.
        bounds: as in SciPy if parameters are an array; otherwise a pair of lowest and highest values, each a number
            or a container like `p0`.
        jit: whether functions are traced once and compiled, those of small problems after some calls.
        options: others of SciPy.

    Returns:
        parameters: an array of shape (n,), or containers like `p0`.
        covariance: the covariance matrix of the parameters, of shape (n, n), in the order of `wengert.tree.ravel`.

    Raises:
        UsageError: the number of parameters cannot be known, or bounds do not fit.
        UsageError: there are NaN or infinite numbers in `xdata`, unless options say so, or in `p0`.
        ShapeError: the model gives another number of values than there are in `ydata`.
        DtypeError: `f` cannot be called.
        RuntimeError: no minimum was found.

    >>> t = np.linspace(0.0, 1.0, 20)
    >>> parameters, covariance = curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-2.0 * t))
    >>> np.round(parameters, 6)
    array([3., 2.])
    """
    from scipy import optimize

    name = "optim.curve_fit"
    require_callable(name, f)
    xdata = as_places(xdata)
    start = np.ones(parameter_count(name, f)) if p0 is None else as_example(p0)
    flat = isinstance(start, np.ndarray)

    def model(parameters: Any, xdata: Any) -> Any:
        return f(xdata, *parameters) if flat else f(xdata, parameters)

    problem = problem_of(name, model, start, (xdata,), jit, "p0")
    limits = problem.limits(bounds)
    if hasattr(limits, "lb"):
        limits = (limits.lb, limits.ub)
    limits = (-np.inf, np.inf) if limits is None else limits
    if problem.is_asked((xdata, ydata, sigma)):
        given = ydata, problem.vector, sigma, absolute_sigma
        traced = problem.args[0] if problem.args else None
        found = differentiable.curve_fit(as_model(problem.residuals), traced, *given, bounds=limits, **options)
        return problem.back(found[0]), found[1]
    value, slope = problem.residuals_and_jacobian()
    require_finite_data(name, xdata, options)
    places, ydata = np.arange(np.size(ydata)), np.asarray(ydata)
    if options.get("nan_policy") is not None and isinstance(xdata, np.ndarray | list | tuple):
        ydata = np.where(np.isnan(xdata).reshape(-1, ydata.size).any(axis=0), np.nan, ydata)

    def model_at_places(at: Any, *p: float) -> Any:
        """Return the values of the model at the places that SciPy has not left out."""
        found = value(np.array(p))
        if len(found) != places.size:  # places would leave the rest out
            given = f"{len(found)} values of the model for {places.size} of ydata"
            raise ShapeError(name, given, "as many are needed", "Give xdata and ydata one length")
        return found[at.astype(int)]

    found, covariance, *more = optimize.curve_fit(
        model_at_places,
        places,
        ydata,
        problem.start,
        sigma,
        absolute_sigma,
        bounds=limits,
        jac=lambda at, *p: slope(np.array(p))[at.astype(int)],
        **options,
    )
    return (problem.back(found), covariance, *more)


def as_places(xdata: Any) -> Any:
    """Return what a model is evaluated at: lists of numbers, and columns of pandas, as arrays."""
    if getattr(xdata, "ndim", 0) == 1 and hasattr(xdata, "to_numpy"):
        return xdata.to_numpy()
    is_list = isinstance(xdata, list | tuple) and all(isinstance(place, float | int) for place in xdata)
    return np.array(xdata, float) if is_list else xdata


def as_model(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of a vector as a model of data, None if it has them itself, whose parameters are numbers."""
    return lambda data, *parameters: function(np.stack(parameters), *([] if data is None else [data]))


def require_finite_data(name: str, xdata: Any, options: Mapping[str, Any]) -> None:
    """Raise a UsageError where SciPy, which is given places in place of `xdata`, would refuse it."""
    asked = options.get("check_finite")
    if asked is None:
        asked = options.get("nan_policy") is None
    if asked and not all(np.all(np.isfinite(leaf)) for leaf in leaves(xdata) if aval_of(leaf).dtype.kind in "fc"):
        remedy = "Leave those points out, or pass nan_policy='omit'"
        raise UsageError(name, "NaN or infinite numbers in xdata", "finite ones are needed", remedy)
