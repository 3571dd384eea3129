"""Optimal values, whose first derivative needs no linear system."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.control.argument_aliasing import own_copies
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.implicit.attaching import is_operand, reaches_traced, trace_closing
from wengert.implicit.matrix_free import jitted_graph
from wengert.implicit.roots import ImplicitFunction
from wengert.implicit.systems import FIXED
from wengert.support.attributes import resemble
from wengert.support.hints import hint_parameters
from wengert.transforms.custom_rule import custom_rule
from wengert.transforms.reverse import grad, pull_back

Function = Callable[..., Any]


@hint_parameters("stationary")
def stationary(value: Function, argmin: Function) -> Function:
    """Return the function of the optimal values of another one, whose derivative needs no linear system.

    At an optimum the value does not change with x in the first order, so its gradient is that by the other arguments
    alone, with x as it is (the envelope theorem; P. Milgrom and I. Segal, Econometrica, 2002). From the second
    derivative on it matters how x moves, which the implicit function theorem says.

    Args:
        value: `value(x, *args)`, a number, written in NumPy; what it captures is differentiated, too.
        argmin: `argmin(*args)` gives the x at which the value is least, greatest, or does not change: a function made
            by `custom_root` or `custom_fixed_point`, or any solver. Then x must be free to move, so that the gradient
            of `value` by x is zero there, which is looked at when a second derivative is asked for.

    Returns:
        A function of args that gives the optimal value.

    Raises:
        NumericalError: at second derivatives, as `custom_root` does.

    >>> import numpy as np
    >>> import wengert as wg
    >>> from scipy import optimize
    >>> def cost(x, a):
    ...     return np.sum(x**4 / 4 - a * x)
    >>> least = stationary(cost, lambda a: optimize.minimize(cost, np.ones(2), args=(a,), tol=1e-10).x)
    >>> wg.grad(least)(np.array([1.0, 8.0])).round(4)
    array([-1., -2.])
    >>> wg.hessian(least)(np.array([1.0, 8.0])).round(4)
    array([[-0.3333,  0.    ],
           [ 0.    , -0.0833]])
    """
    require_callable("stationary", value)
    require_callable("stationary", argmin, "argmin")
    known = isinstance(argmin, ImplicitFunction)
    own = {"singular": FIXED}
    solution: Any = argmin if known else ImplicitFunction("stationary", argmin, grad(value), None, own)

    def optimal_value(*args: Any, **kwargs: Any) -> Any:
        return value_at_optimum(value, solution(*args, **kwargs), (args, kwargs))

    return resemble(optimal_value, value, updated=False)


def value_at_optimum(value: Function, x: Any, arguments: tuple[tuple[Any, ...], dict[str, Any]]) -> Any:
    """Return a value at its optimum, with the derivative that it has if x stays."""
    args, kwargs = arguments
    leaves, structure = flatten((x, arguments))
    if not any(type(leaf) is Tensor for leaf in leaves) and not reaches_traced("stationary", value):
        return value(*own_copies((x, *args)), **own_copies(kwargs))
    places = [i for i, leaf in enumerate(leaves) if is_operand(leaf)]
    own = sum(map(is_operand, flatten(x)[0]))

    def flat(form: Function, *values: Any) -> Sequence[Any]:
        inside = list(leaves)
        for place, given in zip(places, values, strict=True):
            inside[place] = given
        x, (args, kwargs) = unflatten(structure, inside)
        return [single_number(form(x, *args, **kwargs))]

    operands = [leaves[i] for i in places]
    graph, captured = trace_closing("stationary", value, flat, operands)
    at = jitted_graph(graph, "stationary")
    rule = custom_rule(at)

    def backward(values: Sequence[Any], ct: Any) -> tuple[Any, ...]:
        still = values[:own]
        pullback = pull_back("stationary", lambda *moving: at(*still, *moving), values[own:], any_result=True)[1]
        return (*(None,) * own, *pullback(ct))

    rule.defvjp(lambda *values: (at(*values), values), backward)
    return rule(*operands, *captured)


def single_number(found: Any) -> Any:
    """Return the one leaf of a value."""
    leaves, structure = flatten(found)
    if structure is not None:
        raise UsageError("stationary", f"a value of {len(leaves)} arrays in a container", "one is needed", "Return it")
    return leaves[0]
