"""Roots of equations by SciPy's solvers, differentiated by the equations: `root`, `root_scalar`, `fixed_point`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, require_result
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.implicit.attaching import implicit_solution
from wengert.scipy.optimize._kept_solutions import value_at, with_derivatives
from wengert.scipy.optimize._solving import as_tuple, asking, call_scipy, first_of
from wengert.scipy.optimize._vector_problem import VectorProblem
from wengert.support.attributes import resemble
from wengert.transforms.forward import jvp

Function = Callable[..., Any]
WITH_JACOBIAN = frozenset({"hybr", "lm"})
FLAT = frozenset({"hybr", "lm"})


def as_ndarrays(function: Function) -> Function:
    """Return a function whose result is an ndarray."""

    def values(x: Any, *args: Any, **kwargs: Any) -> Any:
        return np.asarray(require_result("fun", function(x, *args, **kwargs)))

    return with_lasting_argument(resemble(values, function, updated=False))


def with_lasting_argument(function: Function) -> Function:
    """Return a function whose argument lives as long as anybody has it.

    That of MINPACK is working memory that nobody owns: in a list of calls it would be read when it is given back.
    """

    def call(x: Any, *args: Any, **kwargs: Any) -> Any:
        is_borrowed = type(x) is np.ndarray and x.base is None and not x.flags.owndata
        return function(x.copy() if is_borrowed else x, *args, **kwargs)

    return resemble(call, function, updated=False)


def root(
    fun: Function,
    x0: Any,
    args: Any = (),
    method: str = "hybr",
    jac: Any = None,
    tol: float | None = None,
    callback: Function | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a vector function; see `scipy.optimize.root`.

    SciPy finds it, with the Jacobian that Wengert gives it unless there is `jac`; `x` has the derivatives that the
    equations give it, by `args` and by all that `fun` captures: dx = -(df/dx)^-1 df.

    Args:
        fun: the function: of an array like `x0`, and of `args`; returns as many numbers.
        x0: where to start.
        args: further arguments, of any kind.
        method: SciPy's name of a method.
        jac: the Jacobian, or True if `fun` returns a pair of its value and that, or False for differences.
        tol: as in SciPy.
        callback: as in SciPy.
        options: as in SciPy.

    Returns:
        SciPy's result; of lanes of `vmap`, and in graphs, `x`, `fun`, `success`, `status`, `nit` and `nfev` (-1 for
        what a method does not count).

    Raises:
        NumericalError: a derivative is asked for where nothing was found, or where the Jacobian is singular.

    >>> import wengert as wg
    >>> def intersection(radius):
    ...     return root(lambda p: np.stack([p[0] ** 2 + p[1] ** 2 - radius**2, p[0] - p[1]]), [1.0, 1.0]).x
    >>> intersection(2.0).round(6)
    array([1.414214, 1.414214])
    >>> wg.jacobian(intersection)(2.0).round(6)
    array([0.707107, 0.707107])
    """
    name = "scipy.optimize.root"
    require_callable(name, fun)
    given = as_tuple(args)
    own = first_of(fun) if jac is True else fun
    x0 = np.asarray(x0) if isinstance(x0, int | float) else one_array(x0)
    shape = aval_of(x0).shape
    shape = (int(np.prod(shape)),) if method in FLAT else shape

    asked = asking(name, (x0, given), (fun,))

    def value(x: Any, *args: Any) -> Any:
        return one_array(own(x, *args))

    def solve(x0: Any, args: tuple[Any, ...]) -> Any:
        from scipy import optimize

        function = with_lasting_argument(fun) if jac is True else as_ndarrays(fun)
        slope = with_lasting_argument(jac) if callable(jac) else jac
        if jac is None and method in WITH_JACOBIAN and np.size(x0):
            problem = VectorProblem(
                name, value, np.array(x0, dtype=float).ravel(), args, True, keep=not asked.differentiated
            )
            jacobian = problem.residuals_and_jacobian()[1]
            slope = lambda x, *_args: jacobian(x)  # noqa: E731 - as SciPy calls it
        found = optimize.root(
            function, x0, args=args, method=method, jac=slope, tol=tol, callback=callback, options=options
        )
        return found, [found.x]

    answer = call_scipy(name, solve, (x0, given), [shape], traced=asked.traced)
    if not asked.traced:
        return answer.results[0]
    x = root_with_derivatives(name, value, given, shape, (answer.arrays[0], answer.counts["success"]), tol)
    return answer.result(x=x, fun=np.ravel(value_at(name, value, x, *given)))


SCALAR_COUNTS = ("converged", "iterations", "function_calls")


def root_scalar(
    f: Function,
    args: Any = (),
    method: str | None = None,
    bracket: Any = None,
    fprime: Any = None,
    fprime2: Any = None,
    x0: Any = None,
    x1: Any = None,
    xtol: float | None = None,
    rtol: float | None = None,
    maxiter: int | None = None,
    options: dict[str, Any] | None = None,
) -> Any:
    """Find a root of a function of one number; see `scipy.optimize.root_scalar`.

    SciPy finds it; Newton's and Halley's methods get the derivatives that Wengert gives them. `root` has the derivative
    -(df/da) / (df/dx), by `args` and all that `f` captures.

    Args:
        f: the function: of a number, and of `args`; returns a number.
        args: further arguments, of any kind.
        method: SciPy's name of a method.
        bracket: two numbers at which the function has different signs.
        fprime: the derivative, or True if `f` returns its value and that.
        fprime2: the second derivative, or True if `f` returns it, too.
        x0: where to start.
        x1: a second place to start.
        xtol: as in SciPy.
        rtol: as in SciPy.
        maxiter: as in SciPy.
        options: as in SciPy.

    Returns:
        SciPy's result; of lanes of `vmap`, and in graphs, `root`, `converged`, `iterations` and `function_calls`.

    Raises:
        NumericalError: a derivative is asked for where nothing was found, or where the slope is zero.

    >>> import wengert as wg
    >>> round(wg.grad(lambda a: root_scalar(lambda x: x**3 - a, bracket=(0.0, 5.0)).root)(8.0), 6)
    0.083333
    """
    name = "scipy.optimize.root_scalar"
    require_callable(name, f)
    given = as_tuple(args)
    pairs = fprime is True or fprime2 is True
    value = first_of(f) if pairs else f
    chosen = method or ("newton" if bracket is None and x1 is None and x0 is not None else None)
    settings = {"xtol": xtol, "rtol": rtol, "maxiter": maxiter, "options": options, "fprime2": fprime2}

    def slope(x: Any, *args: Any) -> Any:
        return jvp(lambda v: value(v, *args), (x,), (np.ones_like(x),))[1]

    def solve(args: Any, bracket: Any, x0: Any, x1: Any) -> Any:
        from scipy import optimize

        own = {**settings, "method": method, "fprime": fprime}
        if not pairs and chosen in ("newton", "halley"):
            own |= {"method": chosen} | ({"fprime": slopes(slope)} if fprime is None else {})
            if chosen == "halley" and fprime2 is None:
                own["fprime2"] = slopes(lambda x, *args: jvp(lambda v: slope(v, *args), (x,), (np.ones_like(x),))[1])
        x0 = float(x0) if isinstance(x0, int) else x0
        found = optimize.root_scalar(f if pairs else as_scalars(f), args, bracket=bracket, x0=x0, x1=x1, **own)
        return found, [found.root]

    traced = asking(name, (given, bracket, x0, x1), (f,)).traced
    answer = call_scipy(name, solve, (given, bracket, x0, x1), [()], SCALAR_COUNTS, traced)
    if not traced:
        return answer.results[0]
    found = answer.arrays[0], answer.counts["converged"]
    return answer.result(root=root_with_derivatives(name, value, given, (), found))


def as_scalar(value: Any) -> float | complex:
    """Return a value of one element as a number, which SciPy's methods without intervals take complex, too."""
    number = value.item() if isinstance(value, Tensor) else value
    return complex(number) if np.iscomplexobj(number) else float(number)


def as_scalars(function: Function) -> Function:
    """Return a function that gives numbers."""
    return lambda x, *args: as_scalar(function(x, *args))


def slopes(function: Function) -> Function:
    """Return a derivative that gives numbers."""
    return lambda x, *args: as_scalar(function(as_scalar(x), *args))


def fixed_point(
    func: Function, x0: Any, args: Any = (), xtol: float = 1e-8, maxiter: int = 500, method: str = "del2"
) -> Any:
    """Find a fixed point of a function; see `scipy.optimize.fixed_point`.

    SciPy finds it; it has the derivatives that x = f(x) gives it: dx = (I - df/dx)^-1 df.

    Args:
        func: the function: of an array like `x0`, and of `args`; returns such an array.
        x0: where to start.
        args: further arguments, of any kind.
        xtol: as in SciPy.
        maxiter: as in SciPy.
        method: "del2" or "iteration".

    Returns:
        The fixed point, as SciPy gives it.

    Raises:
        RuntimeError: it did not converge.

    >>> import wengert as wg
    >>> round(wg.grad(lambda a: fixed_point(lambda x: np.cos(a * x), 1.0))(1.0), 6)
    -0.297474
    """
    name = "scipy.optimize.fixed_point"
    require_callable(name, func)
    given, x0 = as_tuple(args), one_array(x0)
    shape = aval_of(x0 if hasattr(x0, "shape") else np.asarray(x0)).shape

    def solve(x0: Any, args: Any) -> Any:
        from scipy import optimize

        found = optimize.fixed_point(as_ndarrays(func), x0, args, xtol, maxiter, method)
        return optimize.OptimizeResult(x=found, success=True), [found]

    def residual(x: Any, *args: Any) -> Any:
        return one_array(func(x, *args)) - x

    traced = asking(name, (x0, given), (func,)).traced
    answer = call_scipy(name, solve, (x0, given), [shape], ("success",), traced)
    found = answer.arrays[0]
    return root_with_derivatives(name, residual, given, shape, (found,)) if traced else found


def root_with_derivatives(
    name: str,
    equations: Function,
    args: tuple[Any, ...],
    shape: tuple[int, ...],
    found: tuple[Any, ...],
    tol: Any = None,
) -> Any:
    """Return a root with its derivatives, of what was found: the root, and whether it converged, if that is known."""
    count = len(found)

    def make(equations: Function) -> Function:
        def solution(x: Any, *given: Any) -> Any:
            success = given[0] if count > 1 else None
            own = {"name": name, "success": success, "own_tol": tol}
            return implicit_solution(equations, x, given[count - 1 :], **own)

        return solution

    keep = not asking(name, (), (equations,)).differentiated
    return with_derivatives(name, equations, args, shape, make, found, (count, tol), keep)
