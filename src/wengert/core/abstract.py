"""Shapes and dtypes of results: what a primitive gives, without computing it.

NumPy is asked with examples, once for each primitive with the same shapes, dtypes and parameters. Where examples of
the full size would cost time (sums, products of matrices), or where the shape depends on the elements, a primitive is
declared with a rule of its own, `abstract(inputs, params)`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import Aval, aval_of
from wengert.core.identity import identity_of_params, is_registered
from wengert.core.primitive import Elementwise, Primitive
from wengert.errors import GraphError, ShapeError, describe

__all__ = ["MOST_KNOWN", "abstract", "asked", "like_first", "reduced", "shaped", "unknown_shape"]

Avals = tuple[Aval, ...]
Rule = Callable[[Sequence[Any], Mapping[str, Any]], Sequence[Aval]]

MOST_KNOWN = 1 << 14
KNOWN: dict[Any, Avals] = {}
"""What was found for a primitive, operands and parameters: the same few shapes occur over and over."""


def abstract(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return shapes and dtypes of a primitive's results.

    Args:
        primitive: the operation.
        inputs: numbers, arrays, variables or anything else with a shape and dtype.
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
    """Return what of an operand decides about shapes and dtypes: never the elements of an elementwise operation.

    Elsewhere literal integers may be indices or counts, so results for them are not remembered.
    """
    kind = type(value)
    if kind is float or kind is complex:
        return kind
    if kind is int or kind is bool:
        return kind, value
    if not diagonal and isinstance(value, np.ndarray | np.generic) and value.dtype.kind not in "fc":
        raise TypeError
    return value.shape, value.dtype


def found_for(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return avals by the primitive's own rule, else by asking NumPy."""
    if primitive.abstract is not None:
        return tuple(primitive.abstract(inputs, params))
    if isinstance(primitive, Elementwise) or isinstance(primitive.evaluate, np.ufunc):
        return of_elementwise(primitive, inputs, params)
    return asked(primitive.evaluate, inputs, params)


def of_elementwise(primitive: Primitive, inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return the broadcast shape, and the dtype that NumPy gives for one element."""
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
    found = asked(primitive.evaluate, [x if is_number(x) else Aval((), aval_of(x).dtype) for x in inputs], params)
    return tuple(Aval(shape, aval.dtype) for aval in found)


def asked(evaluate: Callable[..., Any], inputs: Sequence[Any], params: Mapping[str, Any]) -> Avals:
    """Return the avals of what an evaluation gives: literals stand for themselves, the others for examples."""
    samples = [x if is_number(x) or isinstance(x, np.ndarray | np.generic) else dummy(aval_of(x)) for x in inputs]
    with np.errstate(all="ignore"):
        out = evaluate(*samples, **params)
    return tuple(map(aval_of, out)) if isinstance(out, tuple) else (aval_of(out),)


def is_number(value: Any) -> bool:
    """Tell whether a value is a Python number, whose dtype gives way to that of arrays."""
    return isinstance(value, bool | int | float | complex)


def dummy(aval: Aval) -> Any:
    """Return some array of a shape and dtype on which every primitive is defined: the identity for square matrices."""
    if len(aval.shape) >= 2 and aval.shape[-1] == aval.shape[-2] and aval.dtype.kind in "fc":
        return np.broadcast_to(np.eye(aval.shape[-1], dtype=aval.dtype), aval.shape)
    fill = 0 if aval.dtype.kind in "iu" else 1
    return np.full(aval.shape, fill, aval.dtype)[()]


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
