"""Shapes and dtypes of products of arrays, without multiplying: rules for `abstract=` of the contractions.

The dtype is that of a product with axes of length one. Where lengths do not fit, NumPy (or the evaluation, which words
the error) is asked with the operands as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.abstract import OrderRule, asked, order_at_length, order_of_small
from wengert.core.aval import Aval, aval_of
from wengert.core.order import Order

__all__ = ["abstract_contraction", "abstract_einsum", "abstract_matmul", "order_of_einsum"]

Axes = tuple[int, ...]
Shape = tuple[int, ...]
Rule = Callable[[Sequence[Any], Mapping[str, Any]], tuple[Aval, ...]]


def of_shape(
    shape: Shape, evaluate: Callable[..., Any], avals: Sequence[Aval], params: Mapping[str, Any]
) -> tuple[Aval, ...]:
    """Return the aval of this shape, with the dtype of a product of examples."""
    examples = [Aval((1,) * len(aval.shape), aval.dtype) for aval in avals]
    return (Aval(shape, asked(evaluate, examples, params)[0].dtype),)


def abstract_matmul(evaluate: Callable[..., Any]) -> Rule:
    """Return the rule of products of (stacks of) matrices; vectors take part as rows and columns."""

    def rule(inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Aval, ...]:
        avals = list(map(aval_of, inputs))
        x, y = (aval.shape for aval in avals)
        if x and y and x[-1] == y[max(len(y) - 2, 0)] and stacks_fit(x[:-2], y[:-2]):
            shape = (*np.broadcast_shapes(x[:-2], y[:-2]), *x[-2:-1], *(y[-1:] if len(y) > 1 else ()))
            return of_shape(shape, evaluate, avals, params)
        return asked(evaluate, avals, params)

    return rule


def stacks_fit(x: Shape, y: Shape) -> bool:
    """Tell whether the leading axes of two stacks broadcast."""
    return all(n == m or 1 in (n, m) for n, m in zip(x[::-1], y[::-1], strict=False))


def abstract_contraction(evaluate: Callable[..., Any], axes_of: Callable[[int, int], tuple[Axes, Axes]] | None) -> Rule:
    """Return the rule of a sum of products over axes, which `axes_of` or the parameter `axes` tells."""

    def rule(inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Aval, ...]:
        avals = list(map(aval_of, inputs))
        x, y = (aval.shape for aval in avals)
        left, right = params["axes"] if axes_of is None else axes_of(len(x), len(y))
        if [x[i] for i in left] != [y[i] for i in right]:
            return asked(evaluate, avals, params)
        kept = [n for i, n in enumerate(x) if i not in left] + [n for i, n in enumerate(y) if i not in right]
        return of_shape(tuple(kept), evaluate, avals, params)

    return rule


def abstract_einsum(evaluate: Callable[..., Any], parse: Callable[..., Any]) -> Rule:
    """Return the rule of Einstein sums, whose labels `parse(subscripts, ndims)` tells."""

    def rule(inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Aval, ...]:
        avals = list(map(aval_of, inputs))
        labels, output = parse(params["subscripts"], tuple([len(aval.shape) for aval in avals]))
        lengths: dict[int, int] = {}
        for names, aval in zip(labels, avals, strict=True):
            if len(names) != len(aval.shape):
                return asked(evaluate, avals, params)
            for name, n in zip(names, aval.shape, strict=True):
                if lengths.setdefault(name, n) != n:
                    return asked(evaluate, avals, params)
        return of_shape(tuple([lengths[name] for name in output]), evaluate, avals, params)

    return rule


def order_of_einsum(evaluate: Callable[..., Any], parse: Callable[..., Any]) -> OrderRule:
    """Return the rule for the memory order of Einstein sums of one operand: without sums they are views."""
    of_view, of_sum = order_at_length(evaluate), order_of_small(evaluate)

    def rule(inputs: Sequence[Any], params: Mapping[str, Any], avals: tuple[Aval, ...]) -> Order:
        (labels,), output = parse(params["subscripts"], (len(aval_of(inputs[0]).shape),))
        return (of_view if set(labels) == set(output) else of_sum)(inputs, params, avals)

    return rule
