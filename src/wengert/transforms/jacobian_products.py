"""Products with Jacobians and Hessians that are never formed: `hvp`, `linearize`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, TypeVarTuple, cast

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.primitives.conversion import own_copy
from wengert.transforms.boundary import require_sequences
from wengert.transforms.forward import push_forward
from wengert.transforms.reverse import gradient_at, pull_back
from wengert.transforms.transformed_function import DerivativeOptions, make_derivative

Function = Callable[..., Any]
A = TypeVar("A")
R = TypeVar("R")
Args = TypeVarTuple("Args")


def hvp(fun: Function, primals: A, tangents: A) -> A:
    """Return the product of the Hessian of a scalar function with a vector, without forming the Hessian.

    Args:
        fun: a function of the primals that returns one real scalar.
        primals: the tuple of arguments (or the one argument itself).
        tangents: the vector, in the containers and shapes of the primals.

    Returns:
        The product, in the containers and shapes of the primals.

    Raises:
        ShapeError: the shapes differ, or `fun` returned something other than one scalar.
        DtypeError: an argument has a dtype without derivatives.

    >>> hvp(lambda x: x**3, (2.0,), (1.0,))
    (12.0,)
    """
    if not isinstance(primals, list | tuple) or hasattr(primals, "_fields"):
        return hvp(fun, (primals,), (tangents,))[0]
    directions: Any = tangents
    require_sequences("hvp", primals, directions)
    gradient = make_derivative(gradient_at, fun, DerivativeOptions("hvp", tuple(range(len(primals)))))
    return cast(A, push_forward("hvp", gradient, tuple(primals), tuple(directions))[1])


def linearize(fun: Callable[..., R], *primals: *Args) -> tuple[R, Callable[[*Args], R]]:
    """Evaluate a function and return its result with the function that applies the Jacobian.

    What `jvp` does with tangents is linear, so it is recorded once, and the pullback of its pullback is it again:
    each application costs one sweep, with nothing evaluated anew.

    Args:
        fun: a function of the primals, returning arrays in any containers.
        *primals: floats, arrays or Tensors, or containers of them.

    Returns:
        (output, pushforward); `pushforward(*tangents)` gives the tangent of the output.

    Raises:
        ShapeError: tangents have not the containers or shapes of the primals.
        DtypeError: a primal has a dtype without derivatives.
        GraphError: a reverse rule that `fun` uses is not linear in the cotangent, and has no jvp beside it.

    >>> y, push = linearize(lambda x: x**2, 3.0)
    >>> push(1.0), push(10.0)
    (6.0, 60.0)
    """
    kept = tuple(map_leaves(own_copy, x) for x in primals)

    def push_tangents(*tangents: Any) -> tuple[Any, Any]:
        output, tangent = push_forward("linearize", fun, kept, tangents, originals=primals)
        return tangent, output

    ones = [map_leaves(ones_of, x) for x in primals]
    tangent, pullback, output = pull_back("linearize", push_tangents, ones, has_aux=True, any_result=True)
    _, push = pull_back("linearize", pullback, [tangent], any_result=True)

    def pushforward(*tangents: *Args) -> Any:
        try:
            return push(tangents)[0]
        except (DtypeError, ShapeError, UsageError):
            push_tangents(*tangents)  # its error speaks of tangents, where that of a pullback speaks of a cotangent
            raise

    return output, pushforward


def ones_of(leaf: Any) -> Any:
    """Return a tangent without zeros, at which singular rules would stop; what is no array is refused later."""
    if type(leaf) in (float, complex):
        return type(leaf)(1)
    if not isinstance(leaf, Tensor | np.ndarray | np.generic):
        return leaf
    return np.ones(leaf.shape, leaf.dtype)[()]
