"""Errors of whole numbers: which operations raise for some values, where those of floats become infinite or NaN."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from wengert.core.graph.equation import Equation, Variable
from wengert.core.values.aval import aval_of

DIVIDING = (operator.mod, operator.floordiv, operator.truediv)
"""Python's operators of whole numbers that raise an error where the divisor is 0."""
ALLOWED: Mapping[Callable[..., Any] | None, Callable[[Any], bool]] = {
    **dict.fromkeys(DIVIDING, bool),
    **dict.fromkeys((operator.lshift, operator.rshift), lambda count: bool(count >= 0)),
}
"""Python's operators of whole numbers that raise an error, and for which second operands they do not."""
BOUNDED = (*DIVIDING, operator.rshift, operator.and_, operator.or_, operator.xor, operator.invert, operator.pos)
"""Those whose results have room where their operands have."""


def raises_in_python(equation: Equation) -> bool:
    """Tell whether Python's own operator of whole numbers raises for some values that the operands may have."""
    is_allowed = ALLOWED.get(equation.primitive.operator)
    if is_allowed is None:
        return False
    second = equation.inputs[1]
    are_whole = all(aval.weak and aval.dtype.kind in "biu" for aval in map(aval_of, equation.inputs))
    return are_whole and (type(second) is Variable or not is_allowed(second))


def may_raise(equation: Equation) -> bool:
    """Tell whether an elementwise operation raises for some values that the operands may have.

    Whole numbers of Python's may also need more than 64 bits, or more than arrays have that they meet; those of NumPy
    are not raised to negative powers. What a user's primitive does nobody knows.
    """
    avals = list(map(aval_of, equation.inputs))
    if equation.primitive.held:
        return True
    if equation.outputs[0].dtype.kind == "b" or any(aval.dtype.kind not in "biu" for aval in avals):
        return False
    strong = {aval.dtype for aval in avals if not aval.weak}
    if not strong:
        return raises_in_python(equation) or equation.primitive.operator not in BOUNDED
    is_mixed = any(aval.weak for aval in avals)
    return equation.primitive.raises or (is_mixed and strong != {np.dtype(np.int64)})
