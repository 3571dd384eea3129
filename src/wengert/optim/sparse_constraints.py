"""Constraints with sparse derivatives, for SciPy's methods that take sparse matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import require_callable, require_limits
from wengert.sparse.sparse_functions import hessian, value_and_jacobian
from wengert.transforms.jit import jit

Array = np.ndarray[Any, Any]


class ConstraintEvaluation:
    """Evaluate the function of a constraint and its derivatives, each point once.

    SciPy asks for the value at a point and then for the Jacobian. With the Jacobian comes the value, which later calls
    get.
    """

    def __init__(self, fun: Callable[..., Any], args: tuple[Any, ...]) -> None:
        self.args = args
        self.plain = jit(fun)
        self.both = value_and_jacobian(fun, format="flat")
        self.second = hessian(lambda x, multipliers, *args: np.sum(multipliers * fun(x, *args)))
        self.point: Array | None = None
        self.known: tuple[Any, Any] = (None, None)

    def value(self, x: Array) -> Any:
        """Return the value at a point."""
        if self.point is not None and np.array_equal(x, self.point):
            return self.known[0]
        return self.plain(x, *self.args)

    def jacobian(self, x: Array) -> Any:
        """Return the Jacobian at a point, a sparse array."""
        if self.point is None or not np.array_equal(x, self.point):
            self.known = self.both(x, *self.args)
            self.point = np.array(x)
        return self.known[1]

    def hessian(self, x: Array, multipliers: Array) -> Any:
        """Return the Hessian of the sum of the values with multipliers, a sparse array."""
        return self.second(x, multipliers, *self.args)


def constraint(fun: Callable[..., Any], lower: Any, upper: Any, *, args: Any = (), keep_feasible: bool = False) -> Any:
    """Return a constraint with its sparse Jacobian and the sparse Hessian of its sum with multipliers.

    Args:
        fun: a function of a vector of shape (n,) that returns a vector of shape (m,); of a container like `x0` where it
            is passed to `wengert.optim.minimize`. It is traced.
        lower: the lowest values, a number or an array of shape (m,); those of equations are the highest ones, too.
        upper: the highest values, likewise.
        args: further arguments. What `wengert.optim.minimize` planned for arrays and floats serves others of the same
            shapes, while what `fun` captures is part of the plan.
        keep_feasible: as in SciPy.

    Returns:
        A `scipy.optimize.NonlinearConstraint`, for `method="trust-constr"`, which takes sparse matrices.

    Raises:
        DtypeError: `fun` cannot be called.
        UsageError: a lowest value is above the highest one, or NaN.
        ShapeError: there are not as many lowest as highest values.

    >>> from wengert import optim
    >>> circles = optim.constraint(lambda x: x[1:] ** 2 + x[:-1] ** 2, -np.inf, 1.0)
    >>> circles.jac(np.array([1.0, 2.0, 3.0])).toarray()
    array([[2., 4., 0.],
           [0., 4., 6.]])
    >>> circles.hess(np.ones(3), np.array([1.0, 10.0])).toarray()
    array([[ 2.,  0.,  0.],
           [ 0., 22.,  0.],
           [ 0.,  0., 20.]])
    """
    from scipy.optimize import NonlinearConstraint

    require_callable("optim.constraint", fun)
    require_limits("optim.constraint", "values", lower, upper)
    further = args if isinstance(args, tuple) else (args,)
    own = ConstraintEvaluation(fun, further)
    found = NonlinearConstraint(
        own.value, lower, upper, jac=own.jacobian, hess=own.hessian, keep_feasible=keep_feasible
    )
    found.function, found.args = fun, further  # for drivers, whose x may be containers
    return found
