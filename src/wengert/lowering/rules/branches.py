"""Branches natively: all of them are computed, and an index selects, where that takes less than to go to one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.lowering.costs import time_of
from wengert.lowering.nodes import BOOL, Access, Nodes, Shape
from wengert.lowering.rules.operands import Pair, Value
from wengert.lowering.rules.scalars import Scalar, select
from wengert.passes.equations import rename_known
from wengert.passes.simplify import simplify
from wengert.support.machine import MACHINE


def are_short(graphs: Sequence[Graph]) -> bool:
    """Tell whether all of some graphs take less than to call native code between what NumPy computes."""
    return sum([time_of(equation) for graph in graphs for equation in graph.equations]) <= MACHINE.calling


def specialise_graph(graph: Graph, operands: Sequence[Any]) -> Graph:
    """Return a graph for operands of which some are literals, without the inputs that these are."""
    known = {v: x for v, x in zip(graph.inputs, operands, strict=True) if type(x) is not Variable}
    if not known:
        return graph
    equations = [equation.using(rename_known(known, equation.inputs)) for equation in graph.equations]
    return simplify(Graph([v for v in graph.inputs if v not in known], equations, rename_known(known, graph.outputs)))


def branch_flags(nodes: Nodes, index: Value, count: int) -> list[Scalar]:
    """Return for each of several branches whether an index, a truth or a number, chooses it."""
    assert isinstance(index, Access)
    which = Scalar(nodes, index, ())
    if which.dtype == BOOL:
        return [~which, which]
    return [which == i for i in range(count)]


def select_branch(
    flags: Sequence[Scalar], columns: Sequence[Sequence[Value]], shapes: Sequence[Shape]
) -> Sequence[Value]:
    """Return the results of the branch that is taken.

    Args:
        flags: for each branch whether it is.
        columns: for each branch its results.
        shapes: of that.
    """
    found, *others = columns
    for flag, column in zip(flags[1:], others, strict=True):
        found = [either(flag, x, y, shape) for x, y, shape in zip(column, found, shapes, strict=True)]
    return found


def either(flag: Scalar, one: Value, other: Value, shape: Shape) -> Value:
    """Return one value if a truth holds, and another if not."""
    if one == other:
        return one
    if isinstance(one, Pair) and isinstance(other, Pair):
        return Pair(*[of_parts(flag, x, y, shape) for x, y in zip(one, other, strict=True)])
    assert isinstance(one, Access)
    assert isinstance(other, Access)
    return of_parts(flag, one, other, shape)


def of_parts(flag: Scalar, one: Access, other: Access, shape: Shape) -> Access:
    """Return one real array if a truth holds, and another if not."""
    condition, x, y = [Scalar(flag.nodes, access, shape) for access in (flag.access, one, other)]
    return select(condition, x, y).access
