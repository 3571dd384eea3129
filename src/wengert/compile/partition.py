"""Cutting a joint graph of values and cotangents into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from wengert.compile.passes import eliminate_dead
from wengert.core.graph import Equation, Graph, Variable

__all__ = ["Partition", "cut"]


class Partition(NamedTuple):
    """Hold the two halves: `forward` gives outputs and residuals, `backward` takes residuals and cotangents."""

    forward: Graph
    backward: Graph
    residuals: int


def cut(joint: Graph, known: int, outputs: int) -> Partition:
    """Cut a graph of inputs and cotangents in two.

    What depends on no cotangent belongs to the forward half; its values that the other half uses are the residuals,
    each computed once.

    Args:
        joint: a graph whose first inputs are values and the others cotangents, and whose first outputs are those of
            the forward half.
        known: the number of inputs that are values.
        outputs: the number of outputs of the forward half.
    """
    unknown = set(joint.inputs[known:])
    early: list[Equation] = []
    late: list[Equation] = []
    for equation in joint.equations:
        if any(type(x) is Variable and x in unknown for x in equation.inputs):
            unknown.update(equation.outputs)
            late.append(equation)
        else:
            early.append(equation)
    results = joint.outputs[outputs:]
    residuals = used_from(late, results, unknown)
    forward = eliminate_dead(Graph(joint.inputs[:known], early, (*joint.outputs[:outputs], *residuals)))
    backward = Graph((*residuals, *joint.inputs[known:]), late, results)
    return Partition(forward, backward, len(residuals))


def used_from(equations: Sequence[Equation], results: Sequence[Any], unknown: set[Variable]) -> list[Variable]:
    """Return the known variables that equations and results use, in order of first use."""
    found: dict[Variable, None] = {}
    for values in (*(equation.inputs for equation in equations), results):
        for x in values:
            if type(x) is Variable and x not in unknown:
                found[x] = None
    return list(found)
