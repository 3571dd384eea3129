"""Least squares by SciPy's methods, differentiated by the conditions of a minimum."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, shown
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import one_array
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.scipy.optimize._constraints import sides_of, spread
from wengert.scipy.optimize._kept_solutions import value_at
from wengert.scipy.optimize._optimality import Sides
from wengert.scipy.optimize._program import NonlinearProgram
from wengert.scipy.optimize._roots import as_ndarrays
from wengert.scipy.optimize._solving import COUNTS, as_tuple, is_traced_now
from wengert.scipy.optimize._vector_problem import VectorProblem
from wengert.support.attributes import signature
from wengert.transforms.jacobian import jacobian

Function = Callable[..., Any]
EVERYWHERE = (-np.inf, np.inf)


def robust_losses(loss: Any) -> Function:
    """Return what a loss of SciPy's makes of squares of residuals; see `scipy.optimize.least_squares`."""
    if callable(loss):
        return lambda z: loss(z)[0]
    losses: dict[str, Function] = {
        "linear": lambda z: z,
        "soft_l1": lambda z: 2.0 * (np.sqrt(1.0 + z) - 1.0),
        "huber": lambda z: np.where(z <= 1.0, z, 2.0 * np.sqrt(np.where(z <= 1.0, 1.0, z)) - 1.0),
        "cauchy": np.log1p,
        "arctan": np.arctan,
    }
    return losses.get(loss, losses["linear"])


def pair_of_sides(name: str, bounds: Any, size: int) -> Sides | None:
    """Return SciPy's bounds of least squares, a pair of lowest and highest values; None if there are none."""
    if hasattr(bounds, "lb"):
        return sides_of(name, bounds, size)
    if len(bounds) != 2:
        needed = "a pair of lowest and highest values is needed"
        raise UsageError(name, f"{shown(bounds)} for bounds", needed, "Pass (0, numpy.inf), say")
    sides = Sides(*(spread(name, side, size) for side in bounds))
    known = not any(isinstance(side, Tensor) for side in sides)
    return None if known and np.all(np.isinf(sides.lower)) and np.all(np.isinf(sides.upper)) else sides


def least_squares(
    fun: Function,
    x0: Any,
    jac: Any = None,
    bounds: Any = EVERYWHERE,
    method: str = "trf",
    ftol: float | None = 1e-8,
    xtol: float | None = 1e-8,
    gtol: float | None = 1e-8,
    x_scale: Any = None,
    loss: Any = "linear",
    f_scale: float = 1.0,
    args: Any = (),
    kwargs: Any = None,
    **options: Any,
) -> Any:
    """Minimise a sum of squares; see `scipy.optimize.least_squares`.

    SciPy finds the minimum, with the Jacobian that Wengert gives it unless there is `jac`. `x`,
    `cost` and `fun` have the derivatives of a minimum, with all second derivatives of `fun`, within bounds as
    `minimize` has them, by `args`, `kwargs`, bounds and all that `fun` captures.

    Args:
        fun: the residuals: of an array of shape (n,), and of `args` and `kwargs`; returns an array of shape (m,).
        x0: where to start, of shape (n,), or a number.
        jac: the Jacobian, or a name of SciPy's differences, "2-point" say, for functions that are no NumPy; by default
            that of Wengert.
        bounds: as in SciPy.
        method: "trf", "dogbox" or "lm".
        ftol: as in SciPy.
        xtol: as in SciPy.
        gtol: as in SciPy.
        x_scale: as in SciPy.
        loss: as in SciPy.
        f_scale: as in SciPy.
        args: further arguments, of any kind.
        kwargs: further arguments by name.
        options: others of SciPy's.

    Returns:
        SciPy's result; of lanes of `vmap`, and in graphs, `x`, `cost`, `fun`, `success`, `status` and `nfev`.

    Raises:
        NumericalError: a derivative is asked for where nothing was found, or where parameters are not determined.

    >>> import wengert as wg
    >>> t = np.array([0.0, 1.0, 2.0])
    >>> def slope(y):
    ...     return least_squares(lambda p: p[0] + p[1] * t - y, [0.0, 0.0]).x[1]
    >>> wg.grad(slope)(np.array([1.0, 2.0, 4.0])).round(6) + 0.0
    array([-0.5,  0. ,  0.5])
    """
    name = "scipy.optimize.least_squares"
    require_callable(name, fun)
    given = (as_tuple(args), dict(kwargs or {}))
    x0 = one_array(x0)
    size = int(np.prod(aval_of(x0 if isinstance(x0, Tensor) else np.asarray(x0)).shape))
    rho = robust_losses(loss)

    def residuals(x: Any, args: Any, kwargs: Any) -> Any:
        found = one_array(fun(x, *args, **kwargs))
        return np.reshape(found, (-1,)) if np.ndim(found) != 1 else found

    def cost(x: Any, args: Any, kwargs: Any) -> Any:
        scaled = residuals(x, args, kwargs) / f_scale
        return 0.5 * f_scale**2 * np.sum(rho(scaled * scaled))

    program = NonlinearProgram(name, cost, given, size, pair_of_sides(name, bounds, size))
    settings = {"method": method, "ftol": ftol, "xtol": xtol, "gtol": gtol, "loss": loss, "f_scale": f_scale, **options}
    if x_scale is not None:
        settings["x_scale"] = x_scale

    def solve(x0: Any, given: Any, sides: Any, _limits: Any) -> Any:
        from scipy import optimize

        slope: Any = "2-point" if jac is None else jac
        if jac is None and np.ndim(x0) < 2 and size:
            own = partial(fun, **given[1]) if given[1] else fun
            problem = VectorProblem(name, own, np.atleast_1d(x0), given[0], True, keep=program.keeps)
            slope = problem.residuals_and_jacobian()[1]
        elif callable(jac):
            slope = partial(called_with, jac, given)
        function = partial(called_with, as_ndarrays(fun), given)
        return optimize.least_squares(function, x0, slope, bounds if sides is None else tuple(sides), **settings)

    found = program.solution(solve, x0, ("success", "status", "nfev"))
    if not is_traced_now(found.x):
        return found.answer.result()
    fields = {"cost": value_at(name, cost, found.x, *given), "fun": value_at(name, residuals, found.x, *given)}
    return found.answer.result(x=found.x, **fields)


def called_with(function: Function, given: Any, x: Any) -> Any:
    """Return what a function gives for a point, and further arguments."""
    args, kwargs = given
    return function(x, *args, **kwargs)


def curve_fit(
    f: Function,
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    sigma: Any = None,
    absolute_sigma: bool = False,
    check_finite: bool | None = None,
    bounds: Any = EVERYWHERE,
    method: str | None = None,
    jac: Any = None,
    *,
    full_output: bool = False,
    nan_policy: str | None = None,
    **kwargs: Any,
) -> Any:
    """Fit a model to data; see `scipy.optimize.curve_fit`.

    SciPy finds the parameters, with the Jacobian that Wengert gives it. They, and their covariance, have the
    derivatives of a minimum of the sum of squares, by the data, `sigma`, bounds and all that `f` captures.

    Args:
        f: the model, `f(xdata, *parameters)`.
        xdata: what the model is evaluated at.
        ydata: the data, of shape (m,).
        p0: where to start; by default ones, as many as `f` has parameters.
        sigma: the standard deviations of the data, of shape (m,), or their covariance matrix.
        absolute_sigma: whether `sigma` is in the data's units; otherwise only ratios count.
        check_finite: as in SciPy.
        bounds: as in SciPy.
        method: as in SciPy.
        jac: the Jacobian of the model, or a name of SciPy's differences.
        full_output: whether what SciPy tells besides is returned, too; not where the fit is differentiated.
        nan_policy: as in SciPy; not where the fit is differentiated.
        kwargs: others of SciPy's.

    Returns:
        parameters: of shape (n,).
        covariance: of shape (n, n).

    Raises:
        RuntimeError: nothing was found.
        UsageError: the number of parameters cannot be known, or the fit is differentiated and NaN are to be left out.

    >>> import wengert as wg
    >>> t = np.linspace(0.0, 1.0, 20)
    >>> def rate(y):
    ...     return curve_fit(lambda t, a, k: a * np.exp(-k * t), t, y)[0][1]
    >>> wg.grad(rate)(3.0 * np.exp(-2.0 * t))[:3].round(3)
    array([0.296, 0.199, 0.119])
    """
    from scipy import optimize

    name = "scipy.optimize.curve_fit"
    require_callable(name, f)
    p0 = one_array(p0)
    size = parameter_count(name, f) if p0 is None else int(np.size(p0))
    data = one_array(xdata), one_array(ydata), one_array(sigma)

    def residuals(p: Any, xdata: Any, ydata: Any, sigma: Any) -> Any:
        return scale_by_deviation(one_array(f(xdata, *(p[i] for i in range(size)))) - ydata, sigma)

    def cost(p: Any, *data: Any) -> Any:
        return 0.5 * np.sum(residuals(p, *data) ** 2)

    program = NonlinearProgram(name, cost, data, size, pair_of_sides(name, bounds, size))
    settings = {"absolute_sigma": absolute_sigma, "method": method, "nan_policy": nan_policy, **kwargs}

    def solve(start: Any, data: Any, sides: Any, _limits: Any) -> Any:
        xdata, ydata, sigma = data
        problem = VectorProblem(name, model_of(f), np.ones(size), (xdata,), True, keep=program.keeps)
        jacobian = problem.residuals_and_jacobian()[1]

        def slope(_xdata: Any, *p: float) -> Any:
            return jacobian(np.array(p))

        own = {"check_finite": check_finite, "bounds": bounds if sides is None else tuple(sides), **settings}
        found = optimize.curve_fit(
            as_ndarrays(f), xdata, ydata, start, sigma, jac=jac or slope, full_output=True, **own
        )
        return optimize.OptimizeResult(x=found[0], success=True, all=found)

    found = program.solution(solve, p0, ("success",))
    if not is_traced_now(found.x):
        everything = found.answer.results[0].all
        return everything if full_output else everything[:2]
    if nan_policy is not None or full_output:
        what = "nan_policy" if nan_policy is not None else "full_output"
        raise UsageError(name, f"{what} for a fit in a transformation", "a fit without is needed", f"Leave {what} out")
    slope = value_at(name, jacobian(residuals), found.x, *data)
    covariance = np.linalg.inv(slope.T @ slope)
    if not absolute_sigma:
        covariance = covariance * (2.0 * value_at(name, cost, found.x, *data) / (slope.shape[0] - size))
    return found.x, covariance


def scale_by_deviation(residuals: Any, sigma: Any) -> Any:
    """Return residuals in units of their standard deviations, or uncorrelated if there is a covariance matrix."""
    if sigma is None:
        return residuals
    if np.ndim(sigma) < 2:
        return residuals / sigma
    return np.linalg.solve(np.linalg.cholesky(sigma), residuals)


def model_of(model: Function) -> Function:
    """Return a model as a function of its parameters first."""
    return lambda p, xdata: model(xdata, *(p[i] for i in range(len(p))))


def parameter_count(name: str, model: Function) -> int:
    """Return how many parameters a model has after the points it is evaluated at."""
    kinds = [p.kind for p in signature(model).parameters.values()]
    if len(kinds) < 2 or inspect.Parameter.VAR_POSITIONAL in kinds:
        given = "a model whose parameters cannot be counted"
        raise UsageError(name, given, "p0 is needed", "Pass p0, an array or a container")
    return len(kinds) - 1


def squares(x: Any, matrix: Any, right: Any) -> Any:
    """Return half the sum of squares of A x - b."""
    return 0.5 * np.sum((matrix @ x - right) ** 2)


def lsq_linear(
    A: Any,  # noqa: N803 - SciPy's name
    b: Any,
    bounds: Any = EVERYWHERE,
    method: str = "trf",
    tol: float = 1e-10,
    **options: Any,
) -> Any:
    """Solve linear least squares within bounds; see `scipy.optimize.lsq_linear`.

    Args:
        A: a matrix of shape (m, n).
        b: of shape (m,).
        bounds: as in SciPy; numbers may be Tensors.
        method: "trf" or "bvls".
        tol: as in SciPy.
        options: others of SciPy's.

    Returns:
        SciPy's result, whose `x`, `cost` and `fun` have derivatives, as those of `minimize`.

    Raises:
        NumericalError: a derivative is asked for where x is not determined.

    >>> import wengert as wg
    >>> def solution(b):
    ...     return lsq_linear(np.eye(2), b, (0.0, 1.0)).x
    >>> wg.jacobian(solution)(np.array([0.5, 3.0])).round(6) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    name = "scipy.optimize.lsq_linear"
    given = one_array(A), one_array(b)
    size = int(given[0].shape[1])
    program = NonlinearProgram(name, squares, given, size, pair_of_sides(name, bounds, size))

    def solve(_start: Any, given: Any, sides: Any, _limits: Any) -> Any:
        from scipy import optimize

        return optimize.lsq_linear(*given, bounds if sides is None else tuple(sides), method, tol, **options)

    found = program.solution(solve, None, COUNTS[:3])
    if not is_traced_now(found.x):
        return found.answer.result()
    return found.answer.result(x=found.x, cost=squares(found.x, *given), fun=given[0] @ found.x - given[1])


def nnls(A: Any, b: Any, **options: Any) -> tuple[Any, Any]:  # noqa: N803 - SciPy's name
    """Solve linear least squares of numbers that are not negative; see `scipy.optimize.nnls`.

    Args:
        A: a matrix of shape (m, n).
        b: of shape (m,).
        options: SciPy's `maxiter`.

    Returns:
        x: the solution, of shape (n,), with derivatives as that of `minimize`: zero where it is held at zero.
        rnorm: the norm of A x - b.

    Raises:
        RuntimeError: nothing was found.
        NumericalError: a derivative is asked for where x is not determined.

    >>> import wengert as wg
    >>> wg.jacobian(lambda b: nnls(np.eye(2), b)[0])(np.array([1.0, -2.0])).round(6) + 0.0
    array([[1., 0.],
           [0., 0.]])
    """
    name = "scipy.optimize.nnls"
    given = one_array(A), one_array(b)
    size = int(given[0].shape[1])
    program = NonlinearProgram(name, squares, given, size, Sides(np.zeros(size), np.full(size, np.inf)))

    def solve(_start: Any, given: Any, _sides: Any, _limits: Any) -> Any:
        from scipy import optimize

        if not size:  # of which SciPy 1.17 frees memory twice, and ends the process
            return optimize.OptimizeResult(x=np.zeros(0), success=True, norm=np.linalg.norm(given[1]))
        x, norm = optimize.nnls(*given, **options)
        return optimize.OptimizeResult(x=x, success=True, norm=norm)

    found = program.solution(solve, None, ("success",))
    if not is_traced_now(found.x):
        return found.answer.results[0].x, found.answer.results[0].norm
    return found.x, np.linalg.norm(given[0] @ found.x - given[1])
