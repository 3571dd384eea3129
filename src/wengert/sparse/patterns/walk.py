"""Walks through the linear half of a program: how the elements of each value depend on those of its tangents.

The tangents of the arguments are columns, one after the other. Each value that moves with them has a list of maps from
the columns; each equation says by its form how these go on. What a walk finds holds for every input of the same shapes
unless values of arguments are known to it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.element_maps import broadcast_maps
from wengert.core.forms.form import Pointwise, form_of
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.box_maps import BoxMap, join_maps
from wengert.core.maps.composition import compose
from wengert.core.maps.coordinates import Array, Coordinate, read
from wengert.core.maps.index_maps import Shape
from wengert.core.primitives.kinds import Elementwise, Linear
from wengert.core.primitives.structured import Structured, StructuredLowering
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.primitives.conversion import raised
from wengert.sparse.patterns.column_maps import MANY, Maps, compact_maps, distinct_pairs, known_lengths
from wengert.sparse.patterns.known_elements import has_elements, known_elements
from wengert.support.records import NamedTuple

FEW_LINES = 20
"""Rows or columns up to which nobody is told what makes them dense."""
DENSE = 0.5
"""The share of all pairs of elements and columns from which an array is called dense."""


class Known(NamedTuple):
    """Hold what is known of a value.

    Attributes:
        value: itself; the variable that it is if it is not known.
        elements: of a value without elements an array of what is known of them, with NaN for what is not, or None.
    """

    value: Any
    elements: Array | None

    def row(self, position: int) -> Known:
        """Return what is known of one row."""
        value = self.value if type(self.value) is Variable else self.value[position]
        return Known(value, None if self.elements is None else self.elements[position])


class GraphWalk:
    """Follow the equations of a graph.

    Attributes:
        columns: how many elements the tangents have.
        inside: gives what follows the graphs among the parameters of an equation.
        maps: of each variable that moves.
        known: the values of variables that are known.
        partly: of others, what is known of their elements (zeros of padding, say): arrays, with NaN for what is not.
        used: the variables that some equation or the results need.
        dense: the equations that made most elements of a result depend on most columns.
    """

    def __init__(self, columns: int, inside: Callable[[GraphWalk, Equation], StructuredLowering]) -> None:
        self.columns = columns
        self.inside = inside
        self.maps: dict[Variable, Maps] = {}
        self.known: dict[Variable, Any] = {}
        self.partly: dict[Variable, Array] = {}
        self.used: set[Any] = set()
        self.dense: list[Equation] = []

    def run(self, graph: Graph, known: Mapping[Variable, Any], maps: Mapping[Variable, Maps]) -> list[Maps]:
        """Return the maps of the outputs of a graph.

        Args:
            graph: the graph.
            known: the values of those inputs that are known.
            maps: those of the inputs that move.
        """
        for values in (graph.outputs, *[equation.inputs for equation in graph.equations]):
            self.used.update([x for x in values if type(x) is Variable])
        self.known.update(known)
        self.maps.update({v: found for v, found in maps.items() if found})
        for equation in graph.equations:
            if any(type(x) is Variable and x in self.maps for x in equation.inputs):
                named = len(self.dense)
                for v, found in zip(equation.outputs, self.follow(equation), strict=True):
                    if found:
                        self.maps[v] = self.limit_maps(found, known_lengths(v.shape))
                if len(self.dense) == named and self.makes_dense(equation):
                    self.dense.append(equation)
            else:
                self.evaluate(equation)
        return [self.maps.get(v, ()) if type(v) is Variable else () for v in graph.outputs]

    def makes_dense(self, equation: Equation) -> bool:
        """Tell whether a result is dense, and no operand is."""
        return any(map(self.is_dense, equation.outputs)) and not any(map(self.is_dense, equation.inputs))

    def is_dense(self, x: Any) -> bool:
        """Tell whether most elements of an array depend on most columns."""
        maps = self.moving(x)
        size = math.prod(known_lengths(x.shape)) if maps else 0
        return min(size, self.columns) > FEW_LINES and sum([one.size for one in maps]) >= DENSE * size * self.columns

    def limit_maps(self, maps: Maps, shape: Shape) -> Maps:
        """Return maps that name few pairs twice, as one list of pairs if there are many."""
        return compact_maps(maps, shape, self.columns)

    def evaluate(self, equation: Equation) -> None:
        """Compute what does not move, where its operands are known."""
        given = [self.value(x) for x in equation.inputs]
        if not all(map(has_elements, given)):
            known = [x if has_elements(x) else self.partly.get(v) for v, x in zip(equation.inputs, given, strict=True)]
            found = known_elements(equation, known)
            if found is not None:
                self.partly[equation.outputs[0]] = found
        if equation.primitive is raised or any(type(x) is Variable for x in given):
            return  # a branch that raises need not run
        with np.errstate(all="ignore"):
            found = apply(equation.primitive, *given, **equation.params)
        several = len(equation.outputs) != 1 or isinstance(found, tuple)
        self.known.update(zip(equation.outputs, found if several else (found,), strict=True))

    def value(self, x: Any) -> Any:
        """Return what is known of an operand: its value, or the variable that it is."""
        return self.known.get(x, x) if type(x) is Variable else x

    def known_of(self, x: Any) -> Any:
        """Return the elements of an operand, or what is known of them; of truths that are not known nothing is."""
        found = self.value(x)
        is_partly = type(x) is Variable and x in self.partly and x.dtype.kind == "f" and not has_elements(found)
        return self.partly[x] if is_partly else found

    def state(self, x: Any) -> Known:
        """Return all that is known of an operand."""
        return Known(self.value(x), self.partly.get(x) if type(x) is Variable else None)

    def enter(self, variables: Sequence[Any], states: Sequence[Known]) -> None:
        """Let the walk know what is known of variables."""
        for v, (value, elements) in zip(variables, states, strict=True):
            if type(value) is not Variable:
                self.known[v] = value
            if elements is not None:
                self.partly[v] = elements

    def moving(self, x: Any) -> Maps:
        """Return the maps of an operand."""
        return self.maps.get(x, ()) if type(x) is Variable else ()

    def follow(self, equation: Equation) -> Sequence[Maps]:
        """Return the maps of the results of an equation."""
        primitive = equation.primitive
        if isinstance(primitive, Structured):
            found = primitive.lower(equation.params, self.inside(self, equation))
            return [self.everything(equation)] * len(equation.outputs) if found is None else found
        if primitive.kind == "constant":
            return [()] * len(equation.outputs)
        results = []
        for which, out in enumerate(equation.outputs):
            parts: list[BoxMap | None] = []
            for position, x in enumerate(equation.inputs):
                if self.moving(x):
                    parts += self.through(equation, position, which, out)
            results.append(join_maps(parts))
        return results

    def through(self, equation: Equation, position: int, which: int, out: Variable) -> Sequence[BoxMap | None]:
        """Return the maps of a result as far as they come from one operand."""
        primitive, x = equation.primitive, equation.inputs[position]
        if isinstance(primitive, Elementwise):
            return [] if primitive.rules[position] is None else self.at_points(equation, position, out)
        if isinstance(primitive, Linear) and not primitive.variadic and position >= len(primitive.transposes):
            return []
        form = form_of(primitive)
        operands = self.operands(equation)
        steps = form.maps(primitive, position, operands, aval_of(out), equation.params, which)
        if steps is None:
            return [self.all_columns(self.moving(x), out.shape)]
        if isinstance(form, Pointwise) and shape_of(x) == out.shape:
            return self.moving(x)
        kept = [self.kept_part(step) for step in steps]
        return self.compose_maps([step for step in kept if step is not None], self.moving(x), shape_of(x), out.shape)

    def compose_maps(self, steps: Maps, maps: Maps, shape: Shape, out: Shape) -> Sequence[BoxMap | None]:
        """Return the maps from columns through an array of a shape, by maps from its elements to those of a result.

        Long lists of pairs name each once, since ways through chains of products multiply, and pairs do not.
        """
        found: list[BoxMap | None] = []
        for step in steps:
            for one in maps:
                both = compose(step, one, shape)
                is_grown = both is not None and both.size > max(MANY, step.size, one.size)
                found += distinct_pairs(both, out, self.columns) if both is not None and is_grown else [both]
        return found

    def operands(self, equation: Equation) -> list[Any]:
        """Return the operands of an equation as its maps are asked for: their elements, as far as these are known."""
        return [self.known_of(x) for x in equation.inputs]

    def kept_part(self, step: BoxMap) -> BoxMap | None:
        """Return a map from an operand to a result as it is composed: without what is known to be zero."""
        found = known_part(step)
        return found and found.using(None)

    def broadcast_maps(self, x: Any, out: Shape) -> Sequence[BoxMap]:
        """Return the maps of an operand that is broadcast."""
        shape = shape_of(x)
        if shape == out:
            return self.moving(x)
        (wide,) = broadcast_maps(shape, out)
        found = [compose(wide, one, shape) for one in self.moving(x)]
        return [one.canonical() for one in found if one is not None]

    def at_points(self, equation: Equation, position: int, out: Variable) -> Sequence[BoxMap | None]:
        """Return the maps of an elementwise result: those of an operand, without the zeros of known factors."""
        found = self.broadcast_maps(equation.inputs[position], out.shape)
        factor = self.factor(equation, position)
        if factor is None:
            return found
        mask = factor != 0
        if mask.all():
            return found
        return [one.where(read_at(mask, one, out.shape)) for one in found]

    def factor(self, equation: Equation, position: int) -> Array | None:
        """Return the derivative of an elementwise result by an operand in which it is linear, if that is known."""
        primitive = equation.primitive
        assert isinstance(primitive, Elementwise)
        if not is_linear_in(primitive, position) or primitive.needs_out(position):
            return None
        needed = [i for i in range(len(equation.inputs)) if primitive.needs(position, i)]
        given = [self.known_of(x) if i in needed else None for i, x in enumerate(equation.inputs)]
        if not needed or position in needed or not all(has_elements(given[i]) for i in needed):
            return None
        rule = primitive.declared[position]
        assert rule is not None
        shape = np.broadcast_shapes(*[shape_of(given[i]) for i in needed])
        with np.errstate(all="ignore"):
            return np.asarray(rule(np.ones(shape), None, *given, **equation.params))

    def all_columns(self, maps: Maps, shape: Shape) -> BoxMap | None:
        """Return the map by which every element of an array depends on all columns that some maps reach."""
        used = np.zeros(self.columns, bool)
        for one in maps:
            used[one.source[0].values(one.extents)] = True
        columns = np.flatnonzero(used)
        rank = len(shape)
        own = [Coordinate.along(d) for d in range(rank)]
        return BoxMap((*shape, len(columns)), own, [Coordinate.from_table(rank, columns)]) if len(columns) else None

    def everything(self, equation: Equation) -> Maps:
        """Return the maps of results of which nothing is known but what the operands are."""
        maps = [one for x in equation.inputs for one in self.moving(x)]
        (out, *_) = equation.outputs
        return join_maps([self.all_columns(maps, out.shape)])

    def inner_walk(self, columns: int) -> GraphWalk:
        """Return a walk of the same kind through a graph within this one."""
        found = type(self)(columns, self.inside)
        if columns == self.columns:
            found.dense = self.dense
        return found


def is_linear_in(primitive: Elementwise, position: int) -> bool:
    """Tell whether an elementwise primitive says that it is linear in an operand."""
    return any(position in group for group in primitive.linear_in)


def known_part(step: BoxMap) -> BoxMap | None:
    """Return a map without the points at which its coefficient is known to be zero."""
    factor = step.coefficient
    if has_elements(factor) and not np.all(factor):
        rank = len(step.extents)
        mask = np.asarray(factor != 0).reshape((1,) * (rank - np.ndim(factor)) + np.shape(factor))
        return step.where(mask)
    return step


def read_at(array: Any, one: BoxMap, shape: Shape) -> Any:
    """Return an array that broadcasts to a shape at the elements of that shape which a map reaches."""
    lead = len(shape) - array.ndim
    return read(array, one.target[lead:], one.extents)
