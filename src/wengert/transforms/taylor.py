"""Taylor mode: `taylor`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.control.argument_aliasing import contents_before, find_writes, protect_argument, require_apart
from wengert.core.containers.tree_leaves import flatten, structure_text, unflatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import weakened
from wengert.core.values.levels import next_level
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor, unwrapped
from wengert.errors import UsageError
from wengert.traces.jet import Jet, Series
from wengert.transforms.boundary import (
    alive_result,
    as_given,
    inner_value,
    name_of,
    require_sequences,
    result_example,
    selected_arguments,
)
from wengert.transforms.forward import match_tangent, mismatch_error
from wengert.transforms.result_checks import require_differentiable_results

R = TypeVar("R")


def taylor(fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], order: int) -> list[R]:
    """Return the Taylor coefficients of t -> fun(primals + t tangents) at t = 0.

    Args:
        fun: a function of the primals, returning arrays in any containers.
        primals: the arguments: floats, arrays or Tensors, or containers of them.
        tangents: the direction, in the containers and shapes of the primals.
        order: the highest order, 0 or more. The work grows with its square; with its cube for functions whose
            rules apply a different function at each order (prod, cumprod, sinc, i0).

    Returns:
        A list of order + 1 results in the output's containers: coefficient k is the k-th derivative along the
        direction divided by k!; the value comes first.

    Raises:
        UsageError: the order is not a whole number, 0 or more.
        ShapeError: the tangents have not the containers or shapes of the primals.

    >>> taylor(np.exp, (0.0,), (1.0,), 3)
    [1.0, 1.0, 0.5, 0.16666666666666666]
    """
    require_callable("taylor", fun)
    if not isinstance(order, int | np.integer) or isinstance(order, bool) or order < 0:
        needed = "a whole number, 0 or more, is needed"
        raise UsageError("taylor", f"order={order!r:.40}", needed, "Pass the highest order")
    require_sequences("taylor", primals, tangents)
    trace = Jet(next_level(), int(order), name_of("taylor", fun))
    leaves, structure = flatten(tuple(primals))
    directions, other = flatten(tuple(tangents))
    if structure != other:
        needed = f"that of the primals, {structure_text(structure)}, is needed"
        raise mismatch_error("taylor", f"tangents of structure {structure_text(other)}", needed)
    chosen = selected_arguments("taylor", fun, range(len(primals)), primals)
    pairs = zip(chosen, directions, leaves, strict=True)
    arguments = [protect_argument(line(trace, value, direction), leaf) for value, direction, leaf in pairs]
    example = result_example(leaves)
    try:
        before = contents_before(arguments)
        found, out_structure = leaves_of_result(call_user(fun, unflatten(structure, arguments), {}))
        require_apart("taylor", leaves, find_writes(arguments, before))
        require_differentiable_results("taylor", found, out_structure, leaves)
        columns = [coefficients(trace, leaf, order) for leaf in found]
    finally:
        trace.end()
    return [unflatten(out_structure, [as_given(column[k], example) for column in columns]) for k in range(order + 1)]


def line(trace: Jet, leaf: Any, direction: Any) -> Tensor:
    """Return an argument as the series of a point moving along a line."""
    value = inner_value(leaf)
    aval = aval_of(value)
    step = match_tangent("taylor", aval, direction)
    if step.dtype != aval.dtype:
        step = step.astype(aval.dtype)
    zero = np.zeros(aval.shape, aval.dtype)[()]
    if aval.weak:
        step, zero = unwrapped(weakened(step)), weakened(zero)
    return trace.tensor(aval, Series([value, step, *[zero] * max(0, trace.order - 1)], lambda k: zero, 1))


def coefficients(trace: Jet, leaf: Any, order: int) -> list[Any]:
    """Return the coefficients of a result; zeros beyond the first for a constant."""
    found = alive_result(leaf, trace) if type(leaf) is Tensor else leaf
    if type(found) is Tensor and found._trace is trace:
        series: Series = found._node
        return [series[k] for k in range(order + 1)]
    value = found._value if type(found) is Tensor and found._trace is None else found
    aval: Aval = aval_of(value)
    first = value if isinstance(value, Tensor) else np.asarray(value)[()]
    return [first, *[np.zeros(aval.shape, aval.dtype)[()]] * order]
