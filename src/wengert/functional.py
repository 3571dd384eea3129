"""The functional interface of graph frameworks: operators that take a function or model and give its gradient.

>>> import numpy as np
>>> from wengert.functional import GradOperation
>>> GradOperation(get_all=True)(lambda x, y: x * y)(3.0, 4.0)
(4.0, 3.0)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.diagnostics.argument_checks import require_callable, require_flag
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.support.hints import names_on_demand
from wengert.transforms.captured_gradients import CapturedSubstitution, listed_tensors
from wengert.transforms.forward import jvp
from wengert.transforms.reverse import vjp
from wengert.transforms.transformed_function import make_transformed

__all__ = ["GradOperation", "Jvp"]

if not TYPE_CHECKING:
    __getattr__ = names_on_demand("wengert.functional")


class GradOperation:
    """Make gradient functions of functions or of objects that are called.

    Args:
        get_all: whether gradients of all inputs come, as a tuple, and not that of the first.
        get_by_list: whether gradients of listed parameters come, as a list; of these alone without `get_all`.
        sens_param: whether the last input is what the result is weighted by, in its containers; otherwise ones.

    Raises:
        UsageError: a setting is not True or False.

    >>> import wengert as wg
    >>> w = wg.tensor([3.0, 4.0])
    >>> GradOperation(get_all=True, get_by_list=True)(lambda x: np.sum(w * x**2), [w])(2.0)
    ((28.0,), [tensor([4., 4.])])
    """

    def __init__(self, get_all: bool = False, get_by_list: bool = False, sens_param: bool = False) -> None:
        require_flag("GradOperation", get_all=get_all, get_by_list=get_by_list, sens_param=sens_param)
        self.get_all = get_all
        self.get_by_list = get_by_list
        self.sens_param = sens_param

    def __call__(self, fun: Callable[..., Any], weights: Sequence[Tensor] | None = None) -> Callable[..., Any]:
        """Return the gradient function of a function.

        Args:
            fun: the function or object, of arrays, numbers or containers of them.
            weights: with `get_by_list`, the Tensors that `fun` captures and is differentiated by; those of its method
                `trainable_params` or `parameters` if they are not given.

        Returns:
            A function of the inputs, and of the weights of the result with `sens_param`.

        Raises:
            UsageError: there are no weights with `get_by_list`, or others than Tensors.
            DtypeError: `fun` cannot be called.
        """
        require_callable("GradOperation", fun)
        if self.get_by_list and weights is None:
            weights = parameters_of(fun)
        listed = listed_tensors("GradOperation", () if weights is None else weights)

        return make_transformed("GradOperation", gradient_at, fun, self, listed)


def parameters_of(fun: Any) -> list[Tensor]:
    """Return the parameters of an object, by the method that it has for them."""
    for name in ("trainable_params", "parameters"):
        if callable(getattr(fun, name, None)):
            return list(getattr(fun, name)())
    needed = "a list of Tensors, or an object with a method parameters, is needed"
    raise call_error("get_by_list without weights", needed, "Pass the list after the function")


def gradient_at(fun: Callable[..., Any], operation: GradOperation, listed: list[Tensor], /, *inputs: Any) -> Any:
    """Return what the function that a `GradOperation` makes gives for inputs."""
    given = inputs[:-1] if operation.sens_param else inputs
    if not given and not operation.get_by_list:
        raise call_error("no input to differentiate", "one at least is needed", "Pass it")
    with CapturedSubstitution("GradOperation", fun, listed) as standing:
        output, pullback = vjp(standing.called, listed, *given)
        found, *gradients = pullback(inputs[-1] if operation.sens_param else map_leaves(np.ones_like, output))
        standing.require_unwritten()
    if not operation.get_by_list:
        return tuple(gradients) if operation.get_all else gradients[0]
    return (tuple(gradients), found) if operation.get_all else found


class Jvp:
    """Make functions that push a direction forward, from forward rules, or reverse rules where there are no others.

    Args:
        fun: a function or object, of arrays, numbers or containers of them.

    Raises:
        DtypeError: `fun` cannot be called.

    >>> Jvp(lambda x, y: x * y)((3.0, 4.0), (1.0, 10.0))
    (12.0, 34.0)
    """

    def __init__(self, fun: Callable[..., Any]) -> None:
        require_callable("Jvp", fun)
        self.fun = fun

    def __call__(self, inputs: Any, directions: Any) -> tuple[Any, Any]:
        """Return the value and its derivative along a direction.

        Args:
            inputs: the input, or a tuple of several.
            directions: what each moves along, in the same form.

        Returns:
            The result of the function, and its derivative.

        Raises:
            ShapeError: a direction has not the shape of its input.
        """
        many = isinstance(inputs, tuple)
        value, derivative = jvp(self.fun, inputs if many else (inputs,), directions if many else (directions,))
        return value, derivative


def call_error(given: str, needed: str, action: str) -> UsageError:
    """Return the error about what cannot be differentiated."""
    return UsageError("GradOperation", given, needed, action)
