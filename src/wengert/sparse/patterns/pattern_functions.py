"""Which elements of Jacobians and Hessians may be other than zero, for users."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.sparse.patterns.find_pattern import find_pattern
from wengert.transforms.boundary import resolve_positions
from wengert.transforms.reverse import gradient_at
from wengert.transforms.transformed_function import DerivativeOptions, make_derivative


def jacobian_pattern(fun: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0, local: bool = False) -> Any:
    """Return which elements of a Jacobian may be other than zero.

    They are read off the linear program that derivatives are computed by, so that rules of users, `stop_gradient`,
    rounding and masks count as they do there. An element that is not in the pattern is zero for every input of these
    shapes; one that is may be zero, as where terms cancel.

    Args:
        fun: a function of the arguments that returns arrays in any containers.
        *args: examples of the arguments, of which only shapes and dtypes matter.
        argnums: the position, or positions, of the arguments by which it is differentiated.
        local: whether the pattern is to hold at these arguments alone: where indices or branches depend on them, only
            what is reached there.

    Returns:
        A `scipy.sparse.csr_array` of bools with a row for each element of the results and a column for each of the
        arguments, in the order of `wengert.tree.ravel`.

    Raises:
        DtypeError: an argument has a dtype without derivatives.
        UsageError: there is no such argument.

    >>> import numpy as np
    >>> jacobian_pattern(lambda x: x[1:] - x[:-1] ** 2, np.ones(4)).toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    require_callable("jacobian_pattern", fun)
    require_flag("jacobian_pattern", local=local)
    places = resolve_positions("jacobian_pattern", argnums, len(args))
    return find_pattern(fun, args, places, local, "jacobian_pattern").to_scipy()


def hessian_pattern(fun: Callable[..., Any], *args: Any, argnums: int | Sequence[int] = 0, local: bool = False) -> Any:
    """Return which elements of a Hessian may be other than zero.

    It is the pattern of the Jacobian of the gradient: what a function adds linearly is not in it.

    Args:
        fun: a function of the arguments that returns a number.
        *args: examples of the arguments, of which only shapes and dtypes matter.
        argnums: the position, or positions, of the arguments by which it is differentiated.
        local: whether the pattern is to hold at these arguments alone.

    Returns:
        A `scipy.sparse.csr_array` of bools with a row and a column for each element of the arguments, in the order of
        `wengert.tree.ravel`.

    Raises:
        ShapeError: the result is not a number.
        DtypeError: an argument has a dtype without derivatives.
        UsageError: there is no such argument.

    >>> import numpy as np
    >>> hessian_pattern(lambda x: np.sum(x[1:] * x[:-1]) + x[0], np.ones(3)).toarray().astype(int)
    array([[0, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    require_callable("hessian_pattern", fun)
    require_flag("hessian_pattern", local=local)
    places = resolve_positions("hessian_pattern", argnums, len(args))
    gradient = make_derivative(gradient_at, fun, DerivativeOptions("hessian_pattern", places))
    return find_pattern(gradient, args, places, local, "hessian_pattern").to_scipy()
