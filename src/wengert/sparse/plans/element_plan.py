"""The plan by elements: what is computed from gathered arguments is differentiated by what was gathered.

Elements of meshes, observations and edges of networks share arguments, but not what they gather from them: behind the
gathers the Jacobian has blocks along its diagonal, which take few colours, and each of its elements is added where the
gather of its column says. Of a Hessian both sides are gathered.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.coordinates import Array
from wengert.core.maps.index_maps import Shape
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import count_elements
from wengert.sparse.coloring.coloring import Coloring
from wengert.sparse.coloring.coloring_methods import color_general, color_symmetric, with_transpose
from wengert.sparse.derivative_arguments import Positional
from wengert.sparse.patterns.column_maps import Maps
from wengert.sparse.patterns.find_pattern import pattern_with_causes
from wengert.sparse.patterns.pattern import Pattern
from wengert.sparse.patterns.tangent_program import TangentProgram
from wengert.sparse.patterns.walk import GraphWalk
from wengert.sparse.plans.gather_cut import GatherCut
from wengert.sparse.plans.lane_plan import LanePlan, plan_by_lanes
from wengert.sparse.plans.lanes import lane_sums
from wengert.sparse.plans.map_plan import Contribution, Placement
from wengert.sparse.plans.plan_times import FEW_POINTS, MOST_WAYS, Work, time_by_colors, work_of
from wengert.sparse.plans.value_walk import TooManyPoints
from wengert.transforms.reverse import grad

MOST_ZEROS = 256
"""The most points of a constant whose zeros are looked for: those of larger ones differ from one element to another."""


class BlockWalk(GraphWalk):
    """Follow what is computed behind gathers, whose blocks are of one kind, whatever zeros each has.

    Attributes:
        most: how many points the maps of a value may have.
    """

    def __init__(self, most: float, columns: int, inside: Callable[[GraphWalk, Equation], StructuredLowering]) -> None:
        super().__init__(columns, inside)
        self.most = most

    def limit_maps(self, maps: Maps, shape: Shape) -> Maps:
        """Return maps that name few pairs twice; raise if they have too many points."""
        found = super().limit_maps(maps, shape)
        if sum([one.size for one in found]) > self.most:
            raise TooManyPoints
        return found

    def inner_walk(self, columns: int) -> GraphWalk:
        """Return a walk of the same kind through a graph within this one, which has columns of its own."""
        found = BlockWalk(math.inf, columns, self.inside)
        found.dense = self.dense
        return found

    def kept_part(self, step: BoxMap) -> BoxMap | None:
        """Return a map from an operand to a result without the zeros of small constants."""
        return step.using(None) if np.size(step.coefficient) > MOST_ZEROS else super().kept_part(step)

    def factor(self, equation: Equation, position: int) -> Array | None:
        """Return the derivative of an elementwise result by an operand if it is a small constant."""
        found = super().factor(equation, position)
        return None if found is None or found.size > MOST_ZEROS else found


class ElementPlan:
    """Compute the elements that a Jacobian or Hessian stores, by colours behind gathers.

    Attributes:
        coloring: of the Jacobian, or the Hessian, by what is gathered.
        most: how many points maps of a value may have behind the gathers, if colours are not known.
        time: about how many microseconds it takes; 0 with colours that are known.
    """

    def __init__(
        self, name: str, cut: GatherCut, of: Positional, second: bool, coloring: Coloring | None, most: float
    ) -> None:
        self.name, self.cut, self.second, self.most = name, cut, second, most
        self.coloring, work = (coloring, None) if coloring is not None else self.color(of)
        pattern = self.coloring.sparsity
        rows = cut.columns[pattern.rows] if second else pattern.rows
        total = self.coloring.column_count * pattern.shape[0] + self.coloring.row_count * pattern.shape[1]
        sums = np.broadcast_to(0.0, (total,))
        own = Contribution(rows, cut.columns[pattern.indices], self.coloring.lane_places, sums)
        width = sum(math.prod(np.shape(x)) for i in of.argnums for x in flatten(of.values[i])[0])
        self.placement = Placement((width if second else pattern.shape[0], width), [own], [True])
        places = self.placement.total + self.placement.pattern.count
        self.time = 0.0 if work is None else time_by_colors(work, self.coloring.count, places)

    @property
    def pattern(self) -> Pattern:
        """The rows and columns of the elements."""
        return self.placement.pattern

    def color(self, of: Positional) -> tuple[Coloring, Work]:
        """Return colours for what is computed behind the cut, and its work.

        Of arguments only shapes and dtypes matter.
        """
        leaves = flatten(of.values)[0]
        still = [x for x, flag in zip(leaves, self.cut.still, strict=True) if flag]
        examples = [np.ones(v.shape, v.dtype) for v in self.cut.gathered]
        count = len(examples)

        def behind(*args: Any) -> Any:
            return self.derivative(args[count:])(*args[:count])

        program = TangentProgram(self.name, behind, [*examples, *still], range(count))
        pattern = pattern_with_causes(program, False, functools.partial(BlockWalk, self.most))[0]
        if self.second:
            coloring = color_symmetric(with_transpose(pattern), "auto")
        else:
            coloring = color_general(pattern, "auto", "auto")
        return coloring, work_of(program.graph, program.tangents)

    def derivative(self, still: Sequence[Any]) -> Any:
        """Return the function of what is gathered whose Jacobian is computed, beside arguments that are still."""

        def behind(*gathered: Any) -> Any:
            found = self.cut.behind(*gathered, *still)
            return found[0] if self.second else found

        return grad(behind, tuple(range(len(self.cut.gathered)))) if self.second else behind

    def elements(self, *args: Any) -> Any:
        """Return the elements that are stored, for arguments, in the order of the pattern."""
        gathered, still = self.cut.take(args)
        return self.placement.elements(lane_sums(self.name, self.derivative(still), tuple(gathered), self.coloring))


def plan_by_elements(
    name: str, graph: Graph, of: Positional, second: bool, coloring: Coloring | None = None, slices: bool = False
) -> ElementPlan | LanePlan | None:
    """Return the plan by elements of a function; None where it gathers nothing, or has too many elements behind that.

    What is gathered mixes there if these are more than twice those of the whole matrix, and blocks are no longer small.

    Args:
        name: who asks, for errors.
        graph: of the function of all leaves of arguments.
        of: the arguments.
        second: whether its Hessian is wanted.
        coloring: the colours behind its gathers, if they are known.
        slices: whether slices, reshaped and transposed arguments are gathers, too.
    """
    leaves = flatten(of.values)[0]
    if len(graph.inputs) != len(leaves) or any(np.dtype(v.dtype).kind == "c" for v in graph.inputs):
        return None
    owners = [i for i, value in enumerate(of.values) for _ in flatten(value)[0]]
    moving = [v for i in of.argnums for v, owner in zip(graph.inputs, owners, strict=True) if owner == i]
    cut = GatherCut(graph, moving)
    wanted = any(v not in moving for v in cut.gathered) if slices or coloring is not None else cut.gathers
    if not wanted:
        return None
    by_lanes = None if coloring is not None else plan_by_lanes(cut, of, second)
    if by_lanes is not None:
        return by_lanes
    width = count_elements(moving)
    height = width if second else count_elements(graph.outputs)
    try:
        most = math.inf if slices else max(FEW_POINTS, MOST_WAYS * height * width)
        return ElementPlan(name, cut, of, second, coloring, most)
    except TooManyPoints:
        return None
