"""Likeness: whether two runs of a function wrote down the same, though it made functions and objects anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from wengert.control.mutable_state import content_of, holder_of
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph
from wengert.core.graph.identity import identity
from wengert.core.graph.variable import Variable
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.tensor import Tensor
from wengert.traces.calls import InGraph
from wengert.transforms.custom_rule import CustomRule

Names = Mapping[Variable, tuple[str, int]]


def name_variables(equations: Sequence[Equation], arguments: Names) -> Names:
    """Return names for variables: those of the arguments, and of results by the place where they are computed."""
    results = {x: (f"result of {i}", place) for i, step in enumerate(equations) for place, x in enumerate(step.outputs)}
    return {**arguments, **results}


class Likeness:
    """Compare what two runs wrote down.

    Functions and objects that each run makes are alike if they are made of what is alike; what has no part that could
    be looked at is like itself alone. Pairs that have been met count as alike, as they may lead back to themselves.

    Args:
        first: the names of the variables of one run.
        second: those of the other.
        variables_of: gives the variables that a Tensor is made of.
    """

    def __init__(self, first: Names, second: Names, variables_of: Callable[[Any], list[Variable]]) -> None:
        self.first = first
        self.second = second
        self.variables_of = variables_of
        self.met: dict[tuple[int, int], tuple[Any, Any]] = {}

    def of_equations(self, one: Equation, other: Equation) -> bool:
        """Tell whether two equations do the same with operands of the same names."""
        return (
            len(one.inputs) == len(other.inputs)
            and all(map(self.of_operands, one.inputs, other.inputs))
            and self.of_primitives(one.primitive, other.primitive)
            and self.of_values(dict(one.params), dict(other.params))
        )

    def of_graphs(self, one: Graph, other: Graph) -> bool:
        """Tell whether two graphs do the same with the same inputs."""
        if identity(one) == identity(other):
            return True
        first, second = (
            name_variables(x.equations, {v: ("input", i) for i, v in enumerate(x.inputs)}) for x in (one, other)
        )
        inner = Likeness(first, second, self.variables_of)
        return (
            [x.aval for x in one.inputs] == [x.aval for x in other.inputs]
            and len(one.equations) == len(other.equations)
            and len(one.outputs) == len(other.outputs)
            and all(map(inner.of_equations, one.equations, other.equations))
            and all(map(inner.of_operands, one.outputs, other.outputs))
        )

    def of_operands(self, one: Any, other: Any) -> bool:
        """Tell whether two operands are the same: variables of one name, or constants."""
        if type(one) is Variable and type(other) is Variable:
            return self.first.get(one, one) == self.second.get(other, other)
        return identity(one) == identity(other)

    def of_primitives(self, one: Primitive, other: Primitive) -> bool:
        """Tell whether two primitives are one; calls of functions with rules are made anew."""
        if isinstance(one, InGraph) and isinstance(other, InGraph):
            (known, made), (known_too, made_too) = one.fresh_call.likeness, other.fresh_call.likeness
            return bool(known == known_too) and self.of_values(made, made_too)
        return identity(one) == identity(other)

    def of_values(self, one: Any, other: Any) -> bool:
        """Tell whether two values may take each other's place."""
        if one is other or (id(one), id(other)) in self.met:
            return True
        if type(one) is not type(other):
            return False
        if type(one) is Tensor and (variables := self.variables_of(one)):
            found = self.variables_of(other)
            return len(variables) == len(found) and all(map(self.of_operands, variables, found))
        if type(one) is Graph:
            return self.of_graphs(one, other)
        parts, parts_too = (list(self.parts_of(x)) for x in (one, other))
        if not parts:
            return identity(one) == identity(other)
        self.met[id(one), id(other)] = one, other
        return len(parts) == len(parts_too) and all(map(self.of_values, parts, parts_too))

    def parts_of(self, value: Any) -> Iterator[Any]:
        """Yield what a value is made of; nothing for values that are compared as a whole."""
        if type(value) in (tuple, list):
            yield from (len(value), *value)
        elif type(value) is dict:
            yield from (list(value), *value.values())
        elif isinstance(value, Exception):
            yield vars(value).get("__notes__")  # the line that raises it; what it carries changes no gradient
        elif type(value) is FunctionType:
            cells = list(map(content_of, value.__closure__ or ()))
            yield from (value.__code__, value.__defaults__, value.__kwdefaults__, cells)
        elif type(value) is MethodType:
            yield from (value.__func__, value.__self__)
        elif isinstance(value, CustomRule):
            yield value.functions if value.closures is None else value.closures.owner
        elif not isinstance(value, type) and (holder := holder_of(value, "")) is not None:
            yield holder.contents()
