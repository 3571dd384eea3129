"""Whole numbers of Python's natively: of 64 bits, and the program tells if one may need more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.compile.nodes import LONG, Access, Nodes
from wengert.compile.scalars import Scalar
from wengert.core.graph import Variable

__all__ = ["COUNTING", "is_whole_number", "too_large"]

COUNTING = frozenset(("add", "subtract", "multiply", "negative", "absolute", "maximum", "minimum", "number", "cond"))
"""The primitives whose results may be computed so; those of others are left to Python."""


def is_whole_number(x: Any) -> bool:
    """Tell whether an operand is a whole number of Python's that is not known."""
    return type(x) is Variable and x.weak and x.dtype.kind == "i"


def too_large(nodes: Nodes, name: str, args: Sequence[Access]) -> list[Access]:
    """Return for each operand whether it is so large that a result may need more than 64 bits."""
    limit = 1 << 31 if name == "multiply" else 1 << 62
    found = []
    for x in args:
        value = Scalar(nodes, x, ())
        if x.node.dtype == LONG and not (x.node.kind == "constant" and -limit <= x.node.value < limit):
            found.append(((value < -limit) | (value >= limit)).access)  # twice the limit has 65 bits, less it has not
    return found
