"""Graphs cut behind gathers: what only puts elements of arguments elsewhere, and what is computed from that."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Array
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import count_elements
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged, raw
from wengert.passes.dead_code import eliminate_dead
from wengert.sparse.patterns.column_maps import column_maps
from wengert.sparse.plans.value_walk import InnerValues, NotByMaps, ValueWalk
from wengert.transforms.tracing import as_function


class GatherCut:
    """Hold a function as one of what it gathers from its arguments.

    Attributes:
        gathered: the variables at the cut: each element of each is one element of an argument.
        still: for each input of the graph, whether it is none of those that are differentiated.
        columns: for each element of the variables at the cut, one after the other, which element of the arguments.
        gathers: whether elements are gathered by tables; else arguments are used whole or by slices.
        before: from all inputs to what is at the cut.
        graph: of what is computed from that and inputs that are still, to the outputs.
        behind: the same as a function.
    """

    def __init__(self, graph: Graph, moving: Sequence[Variable]) -> None:
        maps = dict(zip(moving, column_maps([v.shape for v in moving], 1.0), strict=True))
        walk = ValueWalk(count_elements(moving), InnerValues)
        walk.maps.update({v: found for v, found in maps.items() if found})
        before, behind = split_equations(walk, graph, moving)
        used = {x for values in (graph.outputs, *[e.inputs for e in behind]) for x in values if type(x) is Variable}
        self.gathered = [v for v in walk.maps if v in used]
        self.still = [v not in moving for v in graph.inputs]
        inputs = [v for v, flag in zip(graph.inputs, self.still, strict=True) if flag]
        self.before = as_function(eliminate_dead(Graph(graph.inputs, before, self.gathered)))
        self.graph: Graph = eliminate_dead(Graph([*self.gathered, *inputs], behind, graph.outputs))
        self.behind = as_function(self.graph)
        own = [walk.maps[v][0] for v in self.gathered]
        self.gathers = any(c.tables for one in own for c in one.source)
        places = [places_of(one, v.shape, walk.columns) for one, v in zip(own, self.gathered, strict=True)]
        self.columns: Array = np.concatenate([np.empty(0, np.int64), *places])

    def take(self, args: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return what is gathered from arguments, and those leaves of them that are still."""
        leaves = flatten(list(args))[0]
        return [*self.before(*leaves)], [x for x, flag in zip(leaves, self.still, strict=True) if flag]


def split_equations(walk: ValueWalk, graph: Graph, moving: Sequence[Variable]) -> tuple[list[Equation], list[Equation]]:
    """Return the equations of both sides; those that do not depend on what moves are on both."""
    before, behind, reached = [], [], set(moving)
    for equation in graph.equations:
        if not any(type(x) is Variable and x in reached for x in equation.inputs):
            walk.evaluate(equation)
            before.append(equation)
            behind.append(equation)
            continue
        one = gather_of(walk, equation, reached)
        if one is not None:
            walk.maps[equation.outputs[0]] = [one]
        reached.update(equation.outputs)
        (behind if one is None else before).append(equation)
    return before, behind


def gather_of(walk: ValueWalk, equation: Equation, reached: Collection[Variable]) -> BoxMap | None:
    """Return the map of an equation that only puts elements of one operand elsewhere, with known indices; else None."""
    if isinstance(equation.primitive, Structured) or len(equation.outputs) != 1:
        return None
    moving = [x for x in equation.inputs if type(x) is Variable and x in reached]
    others = [walk.value(x) for x in equation.inputs if type(x) is not Variable or x not in reached]
    if len(moving) != 1 or moving[0] not in walk.maps or any(type(x) is Variable for x in others):
        return None
    try:
        (found,) = walk.follow(equation)
    except NotByMaps:
        return None
    shape = equation.outputs[0].shape
    if len(found) != 1 or found[0].size != math.prod(shape) or not found[0].size:
        return None
    (one,) = found
    if not isinstance(one.coefficient, float | int | np.generic) or one.coefficient != 1:
        return None
    rows = one.list_coordinate(one.places(shape, one.target))
    covers = np.zeros(one.size, bool)
    covers[rows] = True
    return one if covers.all() and adds_nothing(walk, equation, moving[0]) else None


def adds_nothing(walk: ValueWalk, equation: Equation, moving: Variable) -> bool:
    """Tell whether an equation that is linear but for constants adds none: whether it gives zeros for zeros."""
    operands = [np.zeros(x.shape, x.dtype) if x is moving else walk.value(x) for x in equation.inputs]
    if any(is_staged(x) for x in operands):
        return False
    with np.errstate(all="ignore"):
        return not np.any(raw(apply(equation.primitive, *operands, **equation.params)))


def places_of(one: BoxMap, shape: tuple[int, ...], columns: int) -> Array:
    """Return for each element of an array the column that a map reads it from."""
    rows, places = one.pairs(shape, (columns,))
    found = np.empty(len(rows), np.int64)
    found[rows] = places
    return found
