"""Whole numbers of Python's natively: of 64 bits, and the program tells if one may need more."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.lowering.nodes import LONG, Access, Nodes
from wengert.lowering.rules.scalars import Scalar

DIVIDING = (operator.mod, operator.floordiv)
"""Python's operators that raise an error where the divisor is 0."""
LONGEST_EXACT = 1 << 53
"""The whole numbers up to which floats are exact."""


def is_whole_number(x: Any) -> bool:
    """Tell whether an operand is a whole number of Python's that is not known."""
    return type(x) is Variable and x.weak and x.dtype.kind == "i"


def too_large(nodes: Nodes, primitive: Primitive, args: Sequence[Access]) -> list[Access]:
    """Return for each operand whether it is so large that a result may need more than 64 bits, or divides and is 0."""
    limit = 1 << primitive.whole_bits
    found = [beyond(nodes, x, limit) for x in args if may_be_beyond(x, limit)]
    if primitive.operator in DIVIDING and not (args[1].node.kind == "constant" and args[1].node.value):
        found.append((Scalar(nodes, args[1], ()) == 0).access)
    return found


def too_long_to_compare(nodes: Nodes, equation: Equation, args: Sequence[Access]) -> list[Access]:
    """Return whether a whole number is too long for a float, if it is compared with one of Python's, which is exact."""
    avals = list(map(aval_of, equation.inputs))
    compares = equation.primitive.operator is not None and equation.outputs[0].dtype.kind == "b"
    if not compares or {aval.dtype.kind for aval in avals if aval.weak} != {"i", "f"}:
        return []
    if any(x.node.kind == "constant" and abs(x.node.value) < LONGEST_EXACT for x in args):
        return []  # what the longer ones are rounded to is on the same side
    return [beyond(nodes, x, LONGEST_EXACT) for x in args if may_be_beyond(x, LONGEST_EXACT)]


def may_be_beyond(x: Access, limit: int) -> bool:
    """Tell whether a number is a whole one that may be less than -limit, or not less than the limit."""
    known = x.node.kind == "constant" and -limit <= x.node.value < limit
    return x.node.dtype == LONG and not known


def beyond(nodes: Nodes, x: Access, limit: int) -> Access:
    """Return whether a whole number is less than -limit, or not less than the limit: twice the limit has a bit more."""
    value = Scalar(nodes, x, ())
    return ((value < -limit) | (value >= limit)).access
