"""Shapes, dtypes and memory order of results: what a primitive gives, without computing it.

NumPy is asked with examples, once for each primitive with the same shapes, dtypes, strides and parameters. Where
examples of the full size would cost time (sums, products of matrices), or where the shape depends on the elements, a
primitive is declared with a rule of its own, `abstract(inputs, params)`; its memory order is then asked with examples
that are two elements long, unless it is declared with a rule `order(inputs, params, avals)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of, is_number, strong
from wengert.core.identity import identity_of_params, is_registered
from wengert.core.numbers import calculated
from wengert.core.order import Order, Strides, example, grown, of_array, order_of, shrunk, strides_of
from wengert.core.primitive import Elementwise, Primitive
from wengert.errors import GraphError, ShapeError, describe

__all__ = [
    "MOST_KNOWN",
    "OrderRule",
    "abstract",
    "asked",
    "like_first",
    "order_at_length",
    "order_of_first",
    "order_of_small",
    "placed",
    "reduced",
    "shaped",
    "unknown_shape",
]

Avals = tuple[Aval, ...]
Rule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Aval]]
OrderRule = Callable[[Sequence[Any], Mapping[str, Any], Avals], Order]

MOST_KNOWN = 1 << 14
LONGEST_KEY = 1024
KNOWN: dict[Any, tuple[Avals, Order]] = {}
"""What was found for a primitive, operands and parameters: the same few shapes occur over and over."""


def abstract(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return shapes and dtypes of a primitive's results; see `placed`."""
    return placed(primitive, inputs, params)[0]


def placed(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Avals, Order]:
    """Return shapes and dtypes of a primitive's results, and how they lie in memory.

    Args:
        primitive: the operation.
        inputs: numbers, arrays, variables or anything else with a shape, dtype and strides.
        params: its parameters.

    Raises:
        ShapeError: the shapes do not fit.
        GraphError: the shape depends on elements that are not known.
    """
    if primitive.structured or not is_registered(primitive):  # made for one call: nothing is remembered of it
        return found_for(primitive, inputs, params)
    diagonal = isinstance(primitive, Elementwise) or isinstance(primitive.evaluate, np.ufunc)
    try:
        key = (primitive, tuple([key_of_operand(x, diagonal) for x in inputs]), identity_of_params(params))
        known = KNOWN.get(key)
    except TypeError:  # a literal array on whose elements the result may depend
        return found_for(primitive, inputs, params)
    if known is None:
        known = found_for(primitive, inputs, params)
        if len(KNOWN) >= MOST_KNOWN:
            KNOWN.clear()
        KNOWN[key] = known
    return known


def key_of_operand(value: Any, diagonal: bool) -> Any:
    """Return what of an operand decides about results: never the elements of an elementwise operation.

    Elsewhere literal integers may be indices or counts, so results are remembered for few of them only.
    """
    kind = type(value)
    if kind is float or kind is complex:
        return kind
    if kind is int or kind is bool:
        return kind, value
    if kind is np.ndarray:
        if diagonal or value.dtype.kind in "fc":
            return kind, value.shape, value.dtype, value.strides
        if value.nbytes > LONGEST_KEY:
            raise TypeError
        return kind, value.shape, value.dtype, value.strides, value.tobytes()
    if issubclass(kind, np.generic):
        return kind, value if value.dtype.kind in "biu" and not diagonal else None
    return value.shape, value.dtype, getattr(value, "strides", None), getattr(value, "weak", False)


def found_for(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Avals, Order]:
    """Return avals and order by the primitive's own rules, else by asking NumPy."""
    if primitive.firm:
        inputs = [strong(x) if is_number(x) else aval_of(x).firm if getattr(x, "weak", False) else x for x in inputs]
    if primitive.abstract is not None:
        avals = tuple(primitive.abstract(inputs, params))
        if primitive.structured or primitive.gives_number:
            return avals, None if primitive.order is None else primitive.order(inputs, params, avals)
        avals = tuple(aval.firm for aval in avals)
        rule = order_of_small(primitive.evaluate) if primitive.order is None else primitive.order
        return avals, rule(inputs, params, avals)
    if isinstance(primitive, Elementwise) or isinstance(primitive.evaluate, np.ufunc):
        return of_elementwise(primitive, inputs, params)
    results = tried(primitive.evaluate, inputs, params)
    return tuple(map(strong_aval, results)), order_of(results)


def of_elementwise(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Avals, Order]:
    """Return the broadcast shape, and what NumPy gives for one element, or for two where the order matters."""
    shapes = [aval_of(x).shape for x in inputs]
    try:  # equal shapes may be of sequences, whose lengths are not known
        shape = shapes[0] if all(s == shapes[0] for s in shapes) else np.broadcast_shapes(*shapes)
    except ValueError as error:
        raise ShapeError(
            describe(
                primitive.name,
                f"shapes {' and '.join(map(str, shapes))}",
                "shapes that broadcast are needed: equal from the right, or 1",
                "Reshape one of them",
            )
        ) from error
    if primitive.operator is not None and all(aval_of(x).weak for x in inputs):
        number = calculated(primitive.name, primitive.operator, primitive.evaluate, list(map(example_of, inputs)))
        return (aval_of(number),), None
    if any(map(strides_of, inputs)):
        results = tried(primitive.evaluate, list(map(small_example, inputs)), params)
    else:
        samples = [x if is_number(x) else dummy(aval_of(x)._replace(shape=()), strides_of(x)) for x in inputs]
        results = tried(primitive.evaluate, samples, params)
    avals = tuple([Aval(shape, x.dtype) for x in map(strong_aval, results)])
    return avals, grown_order(results, avals)


def tried(evaluate: Callable[..., Any], inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an evaluation gives: literals stand for themselves, the others for examples."""
    with np.errstate(all="ignore"):
        out = evaluate(*map(example_of, inputs), **params)
    return out if isinstance(out, tuple) else (out,)


def asked(evaluate: Callable[..., Any], inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return the avals of what an evaluation gives for examples."""
    return tuple(map(strong_aval, tried(evaluate, inputs, params)))


def strong_aval(value: Any) -> Aval:
    """Return the aval of a result, which is never a Python number: only operators between these give one."""
    return aval_of(strong(value))


def example_of(value: Any) -> Any:
    """Return a literal itself, and for anything else an example."""
    literal = is_number(value) or isinstance(value, np.ndarray | np.generic)
    return value if literal else dummy(aval_of(value), strides_of(value))


def dummy(aval: Aval, strides: Strides = None) -> Any:
    """Return some array of a shape and dtype on which every primitive is defined: the identity for square matrices.

    For a Python number it is one: 1, which divides and raises to powers.
    """
    if aval.weak:
        return aval.number(1)
    made = example(aval.shape, strides, aval.dtype, 0 if aval.dtype.kind in "iu" else 1)
    if len(aval.shape) >= 2 and aval.shape[-1] == aval.shape[-2] and aval.dtype.kind in "fc":
        made[...] = np.eye(aval.shape[-1])
    return made


def small_example(value: Any) -> Any:
    """Return an array that lies in memory as a value, with no axis longer than two; numbers as they are."""
    if is_number(value) or isinstance(value, np.generic):
        return value
    shape, dtype, weak = aval_of(value)
    small, strides = shrunk(shape, strides_of(value), dtype.itemsize)
    return dummy(Aval(small, dtype, weak), strides)


# Rules for the memory order of results


def grown_order(results: Sequence[Any], avals: Avals) -> Order:
    """Return how results of new memory and these avals lie, from results that are two elements long."""
    if order_of(results) is None:
        return None
    return tuple([grown(a.shape, of_array(x), a.dtype.itemsize) for a, x in zip(avals, results, strict=True)])


def order_of_small(evaluate: Callable[..., Any]) -> OrderRule:
    """Return the rule of a primitive whose results have memory of their own: lengths do not matter."""

    def rule(inputs: Sequence[Any], params: Mapping[str, Any], avals: Avals) -> Order:
        return grown_order(tried(evaluate, list(map(small_example, inputs)), params), avals)

    return rule


def order_at_length(evaluate: Callable[..., Any]) -> OrderRule:
    """Return the rule of a primitive whose result may be a view: it takes no time to ask for all of it."""

    def rule(inputs: Sequence[Any], params: Mapping[str, Any], _avals: Avals) -> Order:
        samples = [x if isinstance(x, np.ndarray | np.generic) else unfilled(x) for x in inputs]
        return order_of(tried(evaluate, samples, params))

    return rule


def unfilled(value: Any) -> Any:
    """Return an array that lies as a value does; integers, which may be indices, are zeros."""
    shape, dtype, _ = aval_of(value)
    return example(shape, strides_of(value), dtype, 0 if dtype.kind in "iu" else None)


def order_of_first(inputs: Sequence[Any], _params: Mapping[str, Any], _avals: Avals) -> Order:
    """Let a result lie as operand 0 does: the rule of assignments."""
    return order_of(inputs[:1])


# Rules for declarations


def reduced(evaluate: Callable[..., Any]) -> Rule:
    """Return the rule of a reduction with parameters `axis`, a tuple from 0, and `keepdims`.

    NumPy is asked with as many axes, of length one. Masks and starting values decide about neither shape nor dtype.
    """

    def rule(inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
        avals = list(map(aval_of, inputs))
        shape, axis = avals[0].shape, params["axis"]
        if 0 in shape:  # what has no identity cannot reduce nothing: NumPy says so
            return asked(evaluate, avals, params)
        examples = [
            x if is_number(x) else Aval((1,) * len(a.shape), a.dtype) for x, a in zip(inputs, avals, strict=True)
        ]
        kept = [1 if i in axis else n for i, n in enumerate(shape) if params["keepdims"] or i not in axis]
        return tuple(Aval(tuple(kept), aval.dtype) for aval in asked(evaluate, examples, params))

    return rule


def like_first(inputs: Sequence[Any], _params: Mapping[str, Any]) -> Avals:
    """Give a result like operand 0: the rule of assignments, copies and reorderings."""
    return (aval_of(inputs[0]),)


def shaped(inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Give operand 0 the shape that is a parameter."""
    return (Aval(params["shape"], aval_of(inputs[0]).dtype),)


def unknown_shape(name: str, action: str, evaluate: Callable[..., Any], decides: int = 0) -> Rule:
    """Return the rule of a primitive the shape of whose result depends on elements: it refuses.

    Args:
        name: the function, for the error.
        action: what to do instead.
        evaluate: the evaluation, which is asked where the elements of the deciding operand are known.
        decides: the operand on whose elements the shape depends.
    """

    def rule(inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
        if isinstance(inputs[decides], np.ndarray | np.generic):
            return asked(evaluate, inputs, params)
        raise GraphError(
            describe(
                name,
                f"an array of shape {aval_of(inputs[decides]).shape} whose elements are unknown while tracing",
                "a result whose shape does not depend on elements is needed",
                action,
            )
        )

    return rule
