"""Roots by the names of SciPy's methods: `brentq`, `brenth`, `bisect`, `ridder`, `newton` and `fsolve`."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.diagnostics.source_positions import user_stacklevel
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import one_array
from wengert.implicit.attaching import implicit_solution
from wengert.scipy.optimize._roots import as_ndarrays, root, root_scalar
from wengert.scipy.optimize._solving import as_tuple, asking, call_scipy
from wengert.support.attributes import resemble

Function = Callable[..., Any]
RELATIVE = 4 * float(np.finfo(float).eps)


def with_report(found: Any, full_output: bool, disp: bool) -> Any:
    """Return the root, and SciPy's report where it is asked for; with `disp` it is an error if there is none."""
    if found.converged is False and np.isnan(found.iterations):  # SciPy met NaN
        raise ValueError(found.flag)
    if disp and found.converged is False:
        raise RuntimeError(f"Failed to converge after {found.iterations} iterations, value is {found.root}.")
    return (found.root, found) if full_output else found.root


BETWEEN = """Find a root between two numbers by {how}; see `scipy.optimize.{name}`.

SciPy finds it; it has the derivative -(df/da) / (df/dx), by `args` and all that `f` captures.

Args:
    f: the function: of a number, and of `args`; returns a number.
    a: one end of the interval.
    b: the other, at which `f` has the other sign.
    args: further arguments, of any kind.
    xtol: as in SciPy.
    rtol: as in SciPy.
    maxiter: as in SciPy.
    full_output: whether SciPy's report is returned, too.
    disp: whether it is an error if it does not converge.

Returns:
    The root, or the root and the report.

Raises:
    ValueError: `f` has one sign at both ends.
    RuntimeError: it did not converge.

>>> import wengert as wg
>>> round(wg.grad(lambda k: {name}(lambda x: np.cos(x) - k * x, 0.0, 2.0))(1.0), 6)
-0.441611
"""


def between_two_numbers(name: str, how: str) -> Callable[..., Any]:
    """Return the function of a method that halves an interval, or nearly so: all have the same parameters."""

    def find(
        f: Function,
        a: Any,
        b: Any,
        args: Any = (),
        xtol: float = 2e-12,
        rtol: float = RELATIVE,
        maxiter: int = 100,
        full_output: bool = False,
        disp: bool = True,
    ) -> Any:
        found = root_scalar(f, args, name, (a, b), xtol=xtol, rtol=rtol, maxiter=maxiter)
        return with_report(found, full_output, disp)

    find.__name__ = find.__qualname__ = name
    find.__doc__ = BETWEEN.format(name=name, how=how)
    return find


brentq = between_two_numbers("brentq", "Brent's method")
brenth = between_two_numbers("brenth", "Brent's method with hyperbolas")
bisect = between_two_numbers("bisect", "bisection")
ridder = between_two_numbers("ridder", "Ridder's method")


def of_number(function: Any, shape: tuple[int, ...]) -> Any:
    """Return the function of a number that one of arrays of one element is, if there is one."""
    if function is None or not shape:
        return function

    def value(x: Any, *args: Any) -> Any:
        return np.reshape(one_array(function(np.reshape(x, shape), *args)), ())

    return resemble(value, function, updated=False)


def newton(
    func: Function,
    x0: Any,
    fprime: Function | None = None,
    args: Any = (),
    tol: float = 1.48e-8,
    maxiter: int = 50,
    fprime2: Function | None = None,
    x1: Any = None,
    rtol: float = 0.0,
    full_output: bool = False,
    disp: bool = True,
) -> Any:
    """Find roots by the secant method, Newton's or Halley's; see `scipy.optimize.newton`.

    SciPy finds them, the elements of an array side by side; they have the derivatives that their equations give them,
    by `args` and all that `func` captures.

    Args:
        func: the function: of a number or array like `x0`, and of `args`; returns as many numbers.
        x0: where to start.
        fprime: the derivative; without it the secant method is used.
        args: further arguments, of any kind.
        tol: as in SciPy.
        maxiter: as in SciPy.
        fprime2: the second derivative, for Halley's method.
        x1: a second place to start.
        rtol: as in SciPy.
        full_output: whether SciPy's report is returned, too: of arrays which elements converged, and had no slope.
        disp: whether it is an error if it does not converge.

    Returns:
        The root or roots, and the report if it is asked for.

    Raises:
        RuntimeError: it did not converge.

    >>> import wengert as wg
    >>> round(wg.grad(lambda a: newton(lambda x: x**3 - a, 1.5))(8.0), 6)
    0.083333
    >>> wg.jacobian(lambda a: newton(lambda x: x**3 - a, np.ones(2)))(np.array([1.0, 8.0])).round(6)
    array([[0.333333, 0.      ],
           [0.      , 0.083333]])
    """
    name = "scipy.optimize.newton"
    require_callable(name, func)
    shape = aval_of(one_array(x0) if isinstance(x0, list | tuple) else x0).shape
    if math.prod(shape) == 1:  # SciPy reports of one element as of a number
        method = "secant" if fprime is None else "newton" if fprime2 is None else "halley"
        second = None if fprime is None else fprime2
        f, slope, bend = (of_number(function, shape) for function in (func, fprime, second))
        x0, x1 = (x if x is None or not shape else np.reshape(x, ()) for x in (x0, x1))
        found = root_scalar(f, args, method, None, slope, bend, x0, x1, tol, rtol, maxiter)
        found.root = np.reshape(found.root, shape) if shape else found.root
        return with_report(found, full_output, disp)
    given, start = as_tuple(args), one_array(x0)

    def solve(x0: Any, args: Any) -> Any:
        from scipy import optimize

        slopes = [None if f is None else as_ndarrays(f) for f in (fprime, fprime2)]
        call = as_ndarrays(func), x0, slopes[0], args, tol, maxiter, slopes[1], x1, rtol
        report = optimize.newton(*call, True, disp)
        return optimize.OptimizeResult(success=bool(np.all(report[1]))), list(report)

    traced = asking(name, (start, given), (func,)).traced
    answer = call_scipy(name, solve, (start, given), [start.shape] * 3, ("success",), traced)
    roots, converged, flat = answer.arrays
    if traced:
        roots = implicit_solution(lambda x, *args: one_array(func(x, *args)), roots, given, name=name)
    return (roots, converged > 0, flat > 0) if full_output else roots


def fsolve(
    func: Function,
    x0: Any,
    args: Any = (),
    fprime: Function | None = None,
    full_output: bool = False,
    col_deriv: bool = False,
    xtol: float = 1.49012e-8,
    maxfev: int = 0,
    band: tuple[int, int] | None = None,
    epsfcn: float | None = None,
    factor: float = 100,
    diag: Any = None,
) -> Any:
    """Find a root of a vector function by MINPACK's method; see `scipy.optimize.fsolve`, and `root`.

    Args:
        func: the function: of an array like `x0`, and of `args`; returns as many numbers.
        x0: where to start.
        args: further arguments, of any kind.
        fprime: the Jacobian; by default Wengert gives it.
        full_output: whether SciPy's report is returned, too.
        col_deriv: as in SciPy.
        xtol: as in SciPy.
        maxfev: as in SciPy.
        band: as in SciPy.
        epsfcn: as in SciPy.
        factor: as in SciPy.
        diag: as in SciPy.

    Returns:
        The root, and with `full_output` a dictionary, a number that is 1 for success, and a message.

    Raises:
        NumericalError: a derivative is asked for where nothing was found, or where the Jacobian is singular.

    >>> import wengert as wg
    >>> wg.jacobian(lambda a: fsolve(lambda x: x**2 - a, [1.0, 1.0]))(np.array([1.0, 4.0])).round(6)
    array([[0.5 , 0.  ],
           [0.  , 0.25]])
    """
    scales = {"band": band, "eps": epsfcn, "factor": factor, "diag": diag}
    options = {"col_deriv": col_deriv, "xtol": xtol, "maxfev": maxfev, **scales}
    found = root(func, x0, args, jac=fprime, options=options)
    if full_output:
        report = {key: found[key] for key in ("nfev", "njev", "fjac", "r", "qtf") if key in found}
        return found.x, {**report, "fvec": found.fun}, found.get("status"), found.message
    if found.success is False:
        warnings.warn(found.message, RuntimeWarning, stacklevel=user_stacklevel())
    return found.x
