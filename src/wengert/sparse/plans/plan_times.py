"""How long plans take, about: by what their graphs compute, with factors that were measured in native code.

Of 30 programs (stencils, convolutions, gathers, networks of rows, energies, steps of Runge and Kutta; 500 to 300,000
rows) the plan that is chosen by these times took at most 1.1 times as long as the other in all but one, a convolution
of 35 terms, where it took 1.5 times as long.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Any

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Reduction, form_of
from wengert.core.forms.view_forms import View
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import count_elements, shape_of
from wengert.support.records import NamedTuple

EQUATION, ELEMENT, PLACE = 0.2, 1e-4, 5e-4
"""Microseconds of a plan by maps: for each of its many short equations, for what is computed, for what is placed."""
COLOURED = 8e-5
"""Microseconds for each element that is computed in lanes, which have longer loops."""
RECOVERY = 10.0
"""Microseconds for seeds and for reading elements off the lanes."""
FEW_POINTS = 1 << 16
"""Up to so many points nobody asks what colours would take: maps are composed in some milliseconds."""
MOST_WAYS = 2
"""Of how many points an element may be the sum, in the mean: by 80 plans took 1.3 s, where colours take 0.16 s."""
NEAR = 1.1
"""How much longer maps may seem to take: they need no colours, and times are known no better."""


class Work(NamedTuple):
    """Hold how many elements a graph computes.

    Attributes:
        moving: those that depend on some of its inputs.
        still: the others.
    """

    moving: float
    still: float


def work_of(graph: Graph, moving: Collection[Any]) -> Work:
    """Return the work of a graph of which some inputs move."""
    known = set(moving)
    found = {True: 0.0, False: 0.0}
    for equation in graph.equations:
        flags = [type(x) is Variable and x in known for x in equation.inputs]
        if any(flags):
            known.update(equation.outputs)
        if not isinstance(equation.primitive, Structured):
            found[any(flags)] += elements_of(equation)
            continue
        rounds = equation.primitive.rounds(equation.params) or 1
        for _, inner in subgraphs(equation.params):
            own = work_of(inner, inner.inputs if any(flags) else ())
            found[True] += rounds * own.moving
            found[False] += rounds * own.still
    return Work(found[True], found[False])


def elements_of(equation: Equation) -> int:
    """Return how many elements an equation computes; of sums, how many are added."""
    form = form_of(equation.primitive)
    if isinstance(form, View):
        return 0
    shapes = [shape_of(x) for x in equation.inputs]
    if isinstance(form, Contraction):
        record = form.record(shapes, equation.params)
        related = [] if record.relation is None else [record.lengths[label] for label in record.relation.labels]
        return math.prod(record.lengths) // max(1, *related, 0)  # two labels say which the third is
    if isinstance(form, Reduction):
        return max(map(math.prod, shapes))
    return count_elements(equation.outputs)


def time_by_maps(graph: Graph, places: int) -> float:
    """Return about how many microseconds a plan by maps takes.

    Args:
        graph: what computes its elements.
        places: how many numbers are put together to how many elements, in all.
    """
    return EQUATION * len(graph.equations) + ELEMENT * work_of(graph, ()).still + PLACE * places


def least_time_by_maps(graph: Graph, moving: Collection[Any]) -> float:
    """Return about how many microseconds a plan by maps takes at least: it computes all that does not move.

    Args:
        graph: from arguments and tangents to the tangents of results.
        moving: the tangents.
    """
    known, still = set(moving), 0
    for equation in graph.equations:
        if any(type(x) is Variable and x in known for x in equation.inputs):
            known.update(equation.outputs)
        else:
            still += 1
    return EQUATION * still


def time_by_colors(work: Work, count: int, elements: int) -> float:
    """Return about how many microseconds a plan by some number of colours takes for some number of elements."""
    return RECOVERY + COLOURED * (work.still + count * work.moving) + PLACE * elements


def most_points(work: Work, count: int, elements: int) -> float:
    """Return up to how many points of a value maps may take less time than so many colours, and be planned soon.

    What goes on to a point is read by a table and multiplied there, or placed, which take about as long.
    """
    return min(NEAR * time_by_colors(work, count, elements) / PLACE, MOST_WAYS * elements)


def fewest_colors(shape: tuple[int, int], elements: int, symmetric: bool) -> int:
    """Return how many colours some elements need at least: a colour has as many sums as there are rows or columns.

    >>> fewest_colors((4, 5), 8, symmetric=False)
    2
    """
    return math.ceil(elements / max(*shape, 1) / (2 if symmetric else 1))
