"""The compact paths of operations without derivatives: comparisons, and functions such as rounding and predicates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numpy import float64, ndarray, ufunc

from wengert.core.primitives.primitive import Primitive
from wengert.core.values.broadcast import check_broadcast
from wengert.core.values.dispatch import apply, strengthened
from wengert.core.values.tensor import WATCHES, Tensor, make_tensor, plain_tensor
from wengert.support.deferred_warnings import UNREGISTERED, require_warning
from wengert.traces.batch import Batch, make_batched
from wengert.traces.eager_operators import operand

__warningregistry__ = UNREGISTERED  # what would warn goes the general way, and warns there
Operator = Callable[[Any, Any], Any]


def eager_comparison(name: str, compute: Operator, general: Operator) -> Operator:
    """Return `a (op) b` for a Tensor `a` and anything `b`, an operation without derivatives.

    Args:
        name: the operation, for errors.
        compute: the operation on arrays and numbers.
        general: the operation on operands of any kind.
    """

    def operate(a: Any, b: Any) -> Any:
        trace = a._trace
        kind = type(b)
        if kind is float or kind is int:
            y = b
        elif kind is Tensor and (b._trace is trace or b._trace is None):
            y = b._value
        else:
            return general(a, b)
        x = a._value
        if type(trace) is Batch and type(x) is ndarray and not trace.ended and not WATCHES:
            if kind is not Tensor or (b._trace is trace and type(y) is ndarray and y.shape == x.shape):
                lanes = compute(x, y)
                if lanes.flags.c_contiguous and x.flags.c_contiguous:
                    return make_batched(lanes, trace)
            return general(a, b)
        if (trace is not None and not trace.fast) or type(x) is Tensor or type(y) is Tensor:
            return general(a, b)
        try:
            out = compute(x, y)
        except ValueError:
            check_broadcast(name, (x, y))
            raise
        except TypeError as error:
            require_warning(error)
            return general(a, b)
        return make_tensor(out, None, None)

    return operate


def eager_constant(primitive: Primitive, compute: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return a function of one operand without derivatives.

    Args:
        primitive: a constant primitive of one operand.
        compute: the operation on arrays; a ufunc gives no Python number for one, as an operator does.
    """
    firm = isinstance(compute, ufunc) and primitive.operator is not None

    def operate(a: Any) -> Any:
        kind = type(a._value) if type(a) is Tensor else None
        if (kind is ndarray or kind is float64) and (a._trace is None or a._trace.fast) and not WATCHES:
            try:
                found = compute(a._value)
            except TypeError as error:
                require_warning(error)
                return apply(primitive, a)
            return plain_tensor(found)
        if type(a) is Tensor and type(a._trace) is Batch:
            return a._trace.process(primitive, (a,), {})
        known = operand(primitive.name, a)
        return apply(primitive, strengthened(known) if firm else known)

    return operate
