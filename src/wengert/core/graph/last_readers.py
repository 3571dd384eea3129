"""Whose memory a result may have: that of an operand which nothing reads any more."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from wengert.core.graph.equation import Equation, Variable
from wengert.core.memory.memory_layout import lie_alike

Change = tuple[Variable, Variable]
"""An operand and the result that may lie in its memory."""


def last_readers(equations: Sequence[Equation], outputs: Sequence[Any]) -> dict[Equation, list[Change]]:
    """Return the equations that change arrays which no equation after them reads, and these, in order.

    A view that is read later must be a copy then, made before.
    """
    last: dict[Variable, int] = {}
    for i, values in enumerate((*[equation.inputs for equation in equations], outputs)):
        last.update(dict.fromkeys([x for x in values if type(x) is Variable], i))
    found = {}
    for i, equation in enumerate(equations):
        own = [(x, v) for x, v in changed_by(equation) if last[x] == i and sum(y is x for y in equation.inputs) == 1]
        if own:
            found[equation] = own
    return found


def changed_by(equation: Equation) -> Iterator[Change]:
    """Iterate over the operands that an equation changes in place, if it may, and what they are then."""
    for operand, result in equation.primitive.changes(equation.params):
        x, v = equation.inputs[operand], equation.outputs[result]
        if type(x) is Variable and x.shape and x.dtype == v.dtype and lie_alike(x.shape, x.strides, v.strides):
            yield x, v
