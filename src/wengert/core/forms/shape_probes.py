"""Examples: NumPy is asked what a primitive gives by evaluating it on arrays whose elements mean nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import at_users_line
from wengert.core.memory.memory_layout import Order, Strides, example, grown, of_array, order_of, shrunk, strides_of
from wengert.core.values.aval import Aval, aval_of, is_number, strong

Avals = tuple[Aval, ...]
Results = tuple[Avals, Order]
"""Shapes and dtypes of results, and how they lie in memory."""


def probe_strictly(evaluate: Callable[..., Any], inputs: Sequence[Any], params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return what an evaluation that is strict gives: literals stand for themselves, the others for examples."""
    examples = list(map(example_of, inputs))
    with np.errstate(all="ignore"):
        out = at_users_line(evaluate, *examples, **params)
    return out if isinstance(out, tuple) else (out,)


def resize_results(
    evaluate: Callable[..., Any], inputs: Sequence[Any], params: Mapping[str, Any], *shapes: tuple[int, ...]
) -> Results:
    """Return results of these shapes in new memory: dtypes and order do not depend on lengths."""
    found = probe_strictly(evaluate, list(map(small_example, inputs)), params)
    avals = tuple([Aval(shape, strong_aval(x).dtype) for shape, x in zip(shapes, found, strict=True)])
    return avals, grown_order(found, avals)


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


def unfilled_like(value: Any) -> Any:
    """Return an array that lies as a value does; integers, which may be indices, are zeros. Literals are themselves."""
    if isinstance(value, np.ndarray | np.generic):
        return value
    shape, dtype, _ = aval_of(value)
    return example(shape, strides_of(value), dtype, 0 if dtype.kind in "iu" else None)


def small_example(value: Any) -> Any:
    """Return an array that lies in memory as a value, with no axis longer than two; numbers as they are."""
    if is_number(value) or isinstance(value, np.generic):
        return value
    shape, dtype, weak = aval_of(value)
    small, strides = shrunk(shape, strides_of(value), dtype.itemsize)
    return dummy(Aval(small, dtype, weak), strides)


def grown_order(results: Sequence[Any], avals: Avals) -> Order:
    """Return how results of new memory and these avals lie, from results that are two elements long."""
    if order_of(results) is None:
        return None
    return tuple([grown(a.shape, of_array(x), a.dtype.itemsize) for a, x in zip(avals, results, strict=True)])
