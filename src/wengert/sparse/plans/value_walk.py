"""Walks that carry the derivatives themselves: each map has its coefficients, computed from the arguments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.forms.contraction import Contraction
from wengert.core.forms.form import Pointwise, Reduction, form_of
from wengert.core.forms.routine import Routine
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.maps.box_maps import BoxMap
from wengert.core.maps.composition import bound_points, compose, count_points
from wengert.core.maps.coordinates import read
from wengert.core.maps.index_maps import Shape
from wengert.core.primitives.kinds import Elementwise, Linear, Multilinear
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply
from wengert.core.values.tensor import is_staged
from wengert.primitives.selection import guarded
from wengert.sparse.patterns.column_maps import Maps, known_lengths
from wengert.sparse.patterns.loop_patterns import InnerGraphs
from wengert.sparse.patterns.walk import GraphWalk, is_linear_in, known_part

MOST_MAPS = 200
"""The most maps that a value has: each is computed by operations of its own."""


class NotByMaps(Exception):
    """Say that coefficients cannot be carried through an operation."""


class TooManyPoints(NotByMaps):
    """Say that maps have more points than they may have: elements reach others on too many ways."""


class ValueWalk(GraphWalk):
    """Follow the equations of a graph with coefficients; everything that does not move is computed.

    Attributes:
        most: how many points the maps of a value may have, which is known before they are composed.
    """

    most = math.inf

    def limit_maps(self, maps: Maps, shape: Shape) -> Maps:
        """Raise where there are too many maps, or they have too many points."""
        if len(maps) > MOST_MAPS:
            raise NotByMaps
        self.require_few(sum([one.size for one in maps]))
        return maps

    def compose_maps(self, steps: Maps, maps: Maps, shape: Shape, out: Shape) -> Sequence[BoxMap | None]:
        """Return the maps from columns through an array; raise before they are listed if they have too many points."""
        pairs = [(step, one) for step in steps for one in maps] if self.most < math.inf else []
        if sum([bound_points(step, one) for step, one in pairs]) > self.most:
            self.require_few(sum([count_points(step, one, shape) for step, one in pairs]))
        return [compose(step, one, shape) for step in steps for one in maps]

    def require_few(self, points: int) -> None:
        """Raise if these are more points than a value may have."""
        if points > self.most:
            raise TooManyPoints

    def inner_walk(self, columns: int) -> GraphWalk:
        """Return a walk of the same kind, with the same limit."""
        found = super().inner_walk(columns)
        assert isinstance(found, ValueWalk)
        found.most = self.most
        return found

    def through(self, equation: Equation, position: int, which: int, out: Variable) -> Sequence[BoxMap | None]:
        """Return the maps of a result as far as they come from one operand."""
        primitive = equation.primitive
        if out.dtype.kind == "c" or shape_of(out) != known_lengths(out.shape):  # parts of complex numbers move apart
            raise NotByMaps
        if isinstance(primitive, Elementwise):
            return super().through(equation, position, which, out)
        if not isinstance(primitive, Linear | Multilinear):
            raise NotByMaps
        form = form_of(primitive)
        if isinstance(form, Routine) and (form.links is None or not isinstance(primitive, Linear)):
            raise NotByMaps
        if isinstance(form, Pointwise):
            return self.apply_to_coefficients(equation, position, out)
        if not isinstance(form, Contraction | Reduction):
            others = [self.value(x) for i, x in enumerate(equation.inputs) if i != position]
            if any(aval_of(x).dtype.kind in "iub" and is_staged(x) for x in others):
                raise NotByMaps
        return super().through(equation, position, which, out)

    def operands(self, equation: Equation) -> list[Any]:
        """Return the operands of an equation, which are coefficients."""
        return [self.value(x) for x in equation.inputs]

    def kept_part(self, step: BoxMap) -> BoxMap | None:
        """Return a map from an operand to a result with its coefficient."""
        return known_part(step)

    def all_columns(self, maps: Maps, shape: Shape) -> BoxMap | None:
        """Raise: coefficients of all pairs are not known."""
        raise NotByMaps

    def everything(self, equation: Equation) -> Maps:
        """Raise: nothing is known."""
        raise NotByMaps

    def at_points(self, equation: Equation, position: int, out: Variable) -> Sequence[BoxMap | None]:
        """Return the maps of an elementwise result: its rule is applied to the coefficients."""
        primitive = equation.primitive
        assert isinstance(primitive, Elementwise)
        rule = primitive.rules[position]
        needed = [i for i in range(len(equation.inputs)) if primitive.needs(position, i)]
        linear = is_linear_in(primitive, position) and position not in needed and not primitive.needs_out(position)
        if not linear or rule is None or any(self.moving(equation.inputs[i]) for i in needed):
            raise NotByMaps
        found: list[BoxMap | None] = []
        for one in super().at_points(equation, position, out):
            if one is None:
                continue
            xs = [
                read_of(self.value(x), one, out.shape) if i in needed else None for i, x in enumerate(equation.inputs)
            ]
            given = one.coefficient if len(needed) < 2 and not primitive.masks else as_array(one)
            with np.errstate(all="ignore"):
                found.append(one.using(rule(given, None, *xs, **equation.params)))
        return found

    def apply_to_coefficients(self, equation: Equation, position: int, out: Variable) -> Sequence[BoxMap | None]:
        """Return the maps of what a linear operation gives at each point: it is applied to the coefficients."""
        primitive = equation.primitive
        if isinstance(primitive, Linear) and not primitive.variadic and position >= len(primitive.transposes):
            return []
        own = self.broadcast_maps(equation.inputs[position], out.shape)
        if primitive.gives_number:  # of one element, where coefficients have one for each that it comes from
            return list(own)
        moving = [{one.key: one.coefficient for one in self.broadcast_maps(x, out.shape)} for x in equation.inputs]
        found: list[BoxMap | None] = []
        for one in own:
            if primitive is guarded and self.moving(equation.inputs[2]) and one.key not in moving[2]:
                raise NotByMaps  # what says that it stays 0 is carried by other maps
            operands: list[Any] = []
            for i, x in enumerate(equation.inputs):
                if i == position:
                    operands.append(as_array(one))
                elif self.moving(x):
                    operands.append(as_array(one.using(moving[i].get(one.key, 0.0))))
                else:
                    operands.append(read_of(self.value(x), one, out.shape))
            with np.errstate(all="ignore"):
                found.append(one.using(apply(primitive, *operands, **equation.params)))
        return found


def as_array(one: BoxMap) -> Any:
    """Return the coefficient of a map as an array with an axis for each dimension of its box."""
    found = one.coefficient
    return found if np.ndim(found) else np.reshape(found, (1,) * len(one.extents))


def read_of(value: Any, one: BoxMap, shape: Shape) -> Any:
    """Return a value that broadcasts to a shape at the elements that a map reaches; a number as it is."""
    if type(value) is Variable:  # what a branch or loop gives that is followed by its pattern alone
        raise NotByMaps
    own = shape_of(value)
    return read(value, one.target[len(shape) - len(own) :], one.extents) if own else value


class InnerValues(InnerGraphs):
    """Follow the graphs of one equation with coefficients."""

    def branch(self, graphs: Sequence[Graph]) -> Sequence[Maps]:
        """Follow the graph that is chosen, if it is known."""
        index = self.walk.value(self.equation.inputs[0])
        if is_staged(index):
            raise NotByMaps
        return super().branch(graphs)

    def follow_loop(self, params: Mapping[str, Any]) -> Sequence[Maps]:
        """Raise: a long loop has a pattern, and no coefficients."""
        raise NotByMaps
