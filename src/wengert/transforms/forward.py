"""Forward mode: `jvp`, and `taylor` to any order."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar, overload

import numpy as np

from wengert.control.argument_aliasing import apart, contents_before, find_writes, protect_argument, require_apart
from wengert.control.repeated_containers import watch_repeated
from wengert.core.containers.tree_leaves import flatten, map_leaves, structure_text, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_flag, require_number
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.memory.views import current
from wengert.core.values.aval import Aval, aval_of
from wengert.core.values.dispatch import strengthen, weaken
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.recording import next_level
from wengert.core.values.tensor import Tensor, unwrap_plain
from wengert.errors import DtypeError, ShapeError, UsageError
from wengert.traces.dual import Dual, make_dual
from wengert.traces.jet import Jet, Series
from wengert.transforms.boundary import (
    alive_result,
    as_given,
    inner_value,
    name_of,
    require_argument,
    require_sequences,
    result_below,
    result_example,
    selected_arguments,
    selected_leaves,
    split_aux,
)
from wengert.transforms.result_checks import require_differentiable_results

Function = Callable[..., Any]
R = TypeVar("R")
X = TypeVar("X")


@overload
def jvp(
    fun: Callable[..., R], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[False] = False
) -> tuple[R, R]: ...
@overload
def jvp(
    fun: Callable[..., tuple[R, X]], primals: Sequence[Any], tangents: Sequence[Any], has_aux: Literal[True]
) -> tuple[R, R, X]: ...
@overload
def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]: ...
def jvp(fun: Function, primals: Sequence[Any], tangents: Sequence[Any], has_aux: bool = False) -> tuple[Any, ...]:
    """Evaluate a function together with its derivative along a direction.

    Args:
        fun: a function of the primals, returning arrays in any containers.
        primals: the arguments: floats, arrays or Tensors, or containers of them.
        tangents: the direction, in the containers and shapes of the primals; None where it is zero.
        has_aux: whether `fun` returns a pair (output, auxiliary result).

    Returns:
        (output, tangent of the output), or (output, tangent, aux).

    Raises:
        ShapeError: the tangents have not the containers or shapes of the primals.
        DtypeError: a primal has a dtype without derivatives, or a tangent is complex and its primal real.

    >>> jvp(lambda x, y: x * y, (2.0, 3.0), (1.0, 0.0))
    (6.0, 3.0)
    """
    return push_forward("jvp", fun, primals, tangents, has_aux)


def push_forward(
    name: str,
    fun: Function,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    has_aux: bool = False,
    *,
    originals: Sequence[Any] = (),
    kind: Callable[[int, Callable[[], str]], Dual] = Dual,
) -> tuple[Any, ...]:
    """Return what `jvp` does, under the name of a transformation that uses it; `originals` as in `Recording`.

    The trace is of some `kind` of dual trace.
    """
    require_callable(name, fun)
    require_flag(name, has_aux=has_aux)
    require_sequences(name, primals, tangents)
    trace = kind(next_level(), functools.partial(name_of, name, fun))
    arguments, leaves, inside = dual_arguments(name, trace, fun, primals, tangents)
    before = contents_before(inside)
    try:
        with watch_repeated(name, (originals or primals, {}), (arguments, {})):
            result = call_user(fun, arguments, {})
        written = find_writes(inside, before)
        require_apart(name, flatten(tuple(originals))[0] if originals and written else leaves, written)
        aux = None
        example = result_example(leaves)
        if has_aux:
            result, aux = split_aux(name, result)
            aux = map_leaves(lambda leaf: value_of(leaf, trace, example), aux)
        found, structure = leaves_of_result(result)
        require_differentiable_results(name, found, structure, leaves)
        values = [value_of(leaf, trace, example) for leaf in found]
        moved = [tangent_of(leaf, trace, example) for leaf in found]
    finally:
        trace.end()
    own = apart([*values, *moved], [*leaves, *flatten(tuple(tangents))[0]])
    output, tangent = unflatten(structure, own[: len(values)]), unflatten(structure, own[len(values) :])
    return (output, tangent, aux) if has_aux else (output, tangent)


def dual_arguments(
    name: str, trace: Dual, function: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the primals as Tensors that carry the tangents, their leaves as given, and their leaves as Tensors."""
    if len(primals) != len(tangents):
        raise mismatch_error(
            name, f"{len(tangents)} tangents for {len(primals)} primals", "one for each primal is needed"
        )
    arguments: list[Any] = []
    given: list[Any] = []
    inside: list[Any] = []
    for position, (primal, tangent) in enumerate(zip(primals, tangents, strict=True)):
        leaves, structure = flatten(primal)
        given += leaves
        if tangent is None:
            arguments.append(primal)
            inside += leaves
            continue
        require_argument(name, primal)
        directions, other = flatten(tangent)
        if other != structure:
            raise mismatch_error(
                name,
                f"a tangent of structure {structure_text(other)}",
                f"that of its primal, {structure_text(structure)}, is needed",
            )
        chosen = selected_leaves(name, function, position, primal, leaves)
        pairs = zip(chosen, directions, leaves, strict=True)
        duals = [protect_argument(dual_leaf(name, trace, value, direction), leaf) for value, direction, leaf in pairs]
        arguments.append(unflatten(structure, duals))
        inside += duals
    return arguments, given, inside


def dual_leaf(name: str, trace: Dual, leaf: Any, direction: Any) -> Tensor:
    """Return one differentiated leaf with its tangent."""
    value = inner_value(leaf)
    if type(value) is float and type(direction) is float:
        return make_dual(value, direction, trace, trace.place)
    aval = aval_of(value)
    tangent = match_tangent(name, aval, direction)
    if tangent.dtype.kind == "c" and aval.dtype.kind != "c":
        given = f"a tangent of dtype {tangent.dtype} for a primal of dtype {aval.dtype}"
        needed = "a real tangent is needed for a real primal"
        raise DtypeError(name, given, needed, "Pass its .real, or convert the primal with .astype(complex)")
    if tangent.dtype != aval.dtype:
        tangent = tangent.astype(aval.dtype)
    return make_dual(value, unwrap_plain(weaken(tangent)) if aval.weak else tangent, trace, trace.place)


def match_tangent(name: str, aval: Aval, direction: Any) -> Any:
    """Return a given tangent as an array or Tensor of the level below; raise unless it has the shape of its primal."""
    require_number(name, "a tangent", direction)
    tangent = inner_value(strengthen(direction) if isinstance(direction, Tensor) else np.asarray(direction)[()])
    if tangent.shape != aval.shape:
        given = f"a tangent of shape {tangent.shape} for a primal of shape {aval.shape}"
        raise mismatch_error(name, given, "the same shape is needed")
    return tangent


def mismatch_error(name: str, given: str, needed: str) -> ShapeError:
    """Return the error about tangents that do not fit their primals."""
    return ShapeError(name, given, needed, "Build the tangents like the primals")


def value_of(leaf: Any, trace: Dual, example: Any) -> Any:
    """Return a leaf of a result as given."""
    return as_given(result_below(leaf, trace), example) if type(leaf) is Tensor else leaf


def tangent_of(leaf: Any, trace: Dual, example: Any) -> Any:
    """Return the tangent of a leaf of a result as given; zeros for constants."""
    found = current(leaf) if type(leaf) is Tensor else leaf
    if type(found) is Tensor and found._trace is trace:
        return as_given(found._node.tangent, example)
    array = np.zeros(np.shape(found) if type(found) is not Tensor else found.shape, getattr(found, "dtype", float))
    return as_given(array[()], example)


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
        inside = unflatten(structure, arguments)
        with watch_repeated("taylor", (primals, {}), (inside, {})):
            result = call_user(fun, inside, {})
        found, out_structure = leaves_of_result(result)
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
        step, zero = unwrap_plain(weaken(step)), weaken(zero)
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
