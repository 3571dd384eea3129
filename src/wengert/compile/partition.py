"""Cutting a joint graph of values and cotangents into a forward and a backward graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wengert.compile.equations import ordered, variables
from wengert.compile.passes import eliminate_dead
from wengert.core.aval import Aval
from wengert.core.graph import Equation, Graph

__all__ = ["Halves", "cut"]

Flags = Sequence[bool]


class Halves(NamedTuple):
    """Hold a graph cut in two for reverse mode.

    Attributes:
        forward: inputs to (outputs, residuals).
        backward: (inputs read, residuals, cotangents of the outputs, sums) to (cotangents of inputs, sums).
        read: the positions of the inputs that the backward half reads directly.
        residuals: the avals of the residuals.
    """

    forward: Graph
    backward: Graph
    read: tuple[int, ...]
    residuals: tuple[Aval, ...]


def cut(joint: Graph, known: int, outputs: int, at_hand: Flags = (), fixed: Flags | None = None) -> Halves:
    """Cut a graph of values and cotangents where equations begin to depend on the cotangents.

    What depends on none belongs to the forward half; its values that the other half uses are the residuals, each
    computed once.

    Args:
        joint: a graph whose first inputs are values and the others cotangents, and whose first outputs are those of
            the forward half.
        known: the number of inputs that are values.
        outputs: the number of outputs of the forward half.
        at_hand: the values that the backward half can read without their being saved; none by default.
        fixed: those among them from which, and from literals, it may compute again what it needs; by default nothing.
    """
    values = joint.inputs[:known]
    late = set(joint.inputs[known:])
    direct = {v for v, flag in zip(values, at_hand, strict=False) if flag}
    steady = {v for v, flag in zip(values, fixed or (), strict=False) if flag}  # what can be computed again
    early: list[Equation] = []
    rest: list[Equation] = []
    again: list[Equation] = []
    for equation in joint.equations:
        used = variables(equation.inputs)
        if not used.isdisjoint(late):
            late.update(equation.outputs)
            rest.append(equation)
            continue
        early.append(equation)
        if fixed is not None and used <= steady:
            steady.update(equation.outputs)
            again.append(equation)
    results = joint.outputs[outputs:]
    outside = [v for v in ordered(x for items in (*(e.inputs for e in rest), results) for x in items) if v not in late]
    saved = [v for v in outside if v not in direct and v not in steady]
    recomputed = eliminate_dead(Graph((), again, [v for v in outside if v in steady])).equations
    used = set(outside).union(*(variables(e.inputs) for e in recomputed))
    read = tuple(i for i, v in enumerate(values) if v in direct and v in used)
    forward = eliminate_dead(Graph(values, early, (*joint.outputs[:outputs], *saved)))
    backward = Graph((*(values[i] for i in read), *saved, *joint.inputs[known:]), (*recomputed, *rest), results)
    return Halves(forward, eliminate_dead(backward), read, tuple(v.aval for v in saved))
