"""Where partials may be infinite although values are finite: at the 0 of a root, the ends of an arcsine.

An infinite cotangent times a partial of 0 is 0, as a tangent of 0 times an infinite partial is in forward mode, so
sweeps guard every rule behind such a point (ADR 0006). Values tell where they are known. Where they are traced a root
may be that of 0, unless a positive number was added to what is not negative, as in every normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.loop_spec import Items
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor, is_staged, raw
from wengert.primitives.arithmetic import add
from wengert.primitives.powers import EVEN, sqrt
from wengert.traces.monomials import power_of
from wengert.traces.staging import Staging

DOUBLE = np.dtype(float)
FARTHEST = 64
"""Equations that are looked at before a root."""
SHORT = 16
"""Elements of an array that Python looks at, in half of NumPy's time."""


def may_be_steep(ct: Any, found: Any, out: Any) -> bool:
    """Tell whether the partial of an operation may have been infinite where its result is finite.

    A rule found the cotangent of the operand from that of the result, `ct`, or those of several; `out` is the result,
    if it was saved.
    """
    if not is_staged(found):
        given = ct if type(ct) is list else [ct]
        return may_be_infinite(found) and all(is_finite(x) for x in given if x is not None)
    return not is_positive_root(out)


def may_be_infinite(value: Any) -> bool:
    """Tell whether some element of a value is infinite, or may be as there are none yet."""
    if is_staged(value):
        return True
    found = raw(value)
    if isinstance(found, Items):  # the rows of an eager loop
        return found.arrays is not None and any(map(may_be_infinite, found.arrays))
    return bool(np.isinf(found).any())


def joins_infinity(values: Sequence[Any], tangents: Sequence[Any]) -> bool:
    """Tell whether what has no tangent among operands, some of which have, is infinite somewhere, or may be."""
    for x, t in zip(values, tangents, strict=True):
        if t is None and not is_all_finite(x) and is_infinite_constant(x):
            return any(t is not None for t in tangents)
    return False


def is_all_finite(x: Any) -> bool:
    """Tell whether an array of doubles, or one, is finite; False of anything else. Squares might overflow, and warn."""
    if type(x) is ndarray and x.dtype is DOUBLE:
        if x.size <= SHORT:
            return math.isfinite(sum(x.ravel().tolist()))
        return bool(np.count_nonzero(np.isfinite(x)) == x.size)
    return type(x) is np.float64 and math.isfinite(x)


def is_infinite_constant(x: Any) -> bool:
    """Tell whether an operand is infinite somewhere, or may be."""
    kind = type(x)
    if kind is ndarray:
        return x.dtype.kind in "fc" and may_be_infinite(x)
    if kind is float or kind is np.float64:
        return math.isinf(x)
    return aval_of(x).dtype.kind in "fc" and may_be_infinite(x)


def is_finite(value: Any) -> bool:
    """Tell whether all elements of a value that has some are finite."""
    found = raw(value)
    if isinstance(found, Items):
        return found.arrays is None or all(map(is_finite, found.arrays))
    return bool(np.isfinite(found).all())


def is_positive_root(out: Any) -> bool:
    """Tell whether a traced value is the square root of what is at least a positive number."""
    while type(out) is Tensor and not isinstance(out._trace, Staging):
        if out._trace is None:
            return False
        out = out._trace.below(out)
    if type(out) is not Tensor or not isinstance(out._trace, Staging):
        return False
    trace = out._trace
    root = trace.definition(out._value)
    return root is not None and root.primitive is sqrt and is_positive(root.inputs[0], trace)


def is_positive(value: Any, trace: Staging) -> bool:
    """Tell whether a value is a sum of a positive literal and what is not negative."""
    for _ in range(FARTHEST):
        if type(value) is not Variable:
            return is_literal(value, np.greater)
        equation = trace.definition(value)
        if equation is None:
            return False
        if hands_on(equation.primitive):
            value = equation.inputs[0]
            continue
        if equation.primitive is not add:
            return False
        x, y = equation.inputs
        literal, other = (y, x) if type(x) is Variable else (x, y)
        return is_literal(literal, np.greater) and is_not_negative(other, trace)
    return False


def is_not_negative(value: Any, trace: Staging) -> bool:
    """Tell whether a value is certainly not negative, by what it was computed with."""
    waiting = [value]
    for _ in range(FARTHEST):
        if not waiting:
            return True
        value = waiting.pop()
        if type(value) is not Variable:
            if not is_literal(value, np.greater_equal):
                return False
            continue
        equation = trace.definition(value)
        if equation is None:
            return False
        primitive = equation.primitive
        if is_even_power(equation):
            continue
        operands = (0,) if hands_on(primitive) else primitive.not_negative
        if operands is None:
            return False
        waiting += [equation.inputs[i] for i in operands]
    return False


def hands_on(primitive: Primitive) -> bool:
    """Tell whether the elements of a result are elements of operand 0."""
    return (primitive.view and primitive.kind == "linear") or primitive.gives_number


def is_even_power(equation: Equation) -> bool:
    """Tell whether an equation multiplies a value by itself, or raises it to an even power."""
    inputs = equation.inputs
    power = power_of(equation.primitive, inputs, equation.params, len(inputs) == 2 and inputs[0] is inputs[1])
    return power is not None and power.parity == EVEN


def is_literal(value: Any, compare: np.ufunc) -> bool:
    """Tell whether a literal of an equation compares with 0, element by element."""
    return type(value) is not Variable and bool(np.all(compare(np.asarray(value).real, 0.0)))
