"""What graph passes share: substitution of variables, and passes that reach into sub-graphs."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from functools import cache, wraps
from inspect import signature
from operator import attrgetter, is_
from typing import Any

from wengert.core.forms.contraction import Contraction
from wengert.core.graph.equation import Equation, Variable
from wengert.core.graph.graph import Graph
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import Aval

Pass = Callable[[Graph], Graph]
Known = dict[Variable, Any]
Change = tuple[Variable, Variable]
"""An operand and the result that may lie in its memory."""
Changes = Mapping[Equation, Sequence[Change]]
"""What equations change in place."""
IS_STRUCTURED = attrgetter("primitive.structured")
"""Whether the operation of an equation is: asked of each in each pass."""


def rename_known(known: Known, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands with what is known of the variables among them in their place; the same tuple if nothing is."""
    for x in values:
        if type(x) is Variable and x in known:
            return tuple([known.get(y, y) if type(y) is Variable else y for y in values])
    return values


def everywhere(step: Pass) -> Pass:
    """Return a pass that does to the graphs inside, innermost first, what it does to a graph, unless it is settled.

    Otherwise a graph would go through each pass once for each depth that it is nested at.
    """

    @wraps(step)
    def run(graph: Graph) -> Graph:
        return graph if graph.settled else step(inside(graph, run))

    return run


def throughout(step: Pass) -> Pass:
    """Return a pass that does likewise to graphs that are settled, too."""

    @wraps(step)
    def run(graph: Graph) -> Graph:
        return step(inside(graph, run))

    return run


def is_view(equation: Equation) -> bool:
    """Tell whether an equation gives elements of its only operand; Einstein sums of one may be sums."""
    primitive = equation.primitive
    return primitive.view and len(equation.inputs) == 1 and not isinstance(primitive.form, Contraction)


def inside(graph: Graph, step: Pass) -> Graph:
    """Return a graph with a pass applied to the sub-graphs of its structured operations, once to each."""
    if not holds_graphs(graph):
        return graph
    known: dict[int, Graph] = {}

    def step_once(inner: Graph) -> Graph:
        found = known.get(id(inner))
        if found is None:
            found = known[id(inner)] = step(inner)
        return found

    equations = [
        enter(equation, step_once) if equation.primitive.structured else equation for equation in graph.equations
    ]
    return with_equations(graph, equations)


def with_equations(graph: Graph, equations: Sequence[Equation]) -> Graph:
    """Return a graph of other equations for its outputs: itself, with all derived of it, if they are its own."""
    if len(equations) == len(graph.equations) and all(map(is_, equations, graph.equations)):
        return graph
    return Graph(graph.inputs, equations, graph.outputs)


def holds_graphs(graph: Graph) -> bool:
    """Tell whether operations of a graph are structured: whether there are graphs in it."""
    return any(map(IS_STRUCTURED, graph.equations))


def enter(equation: Equation, step: Pass) -> Equation:
    """Return an equation with a pass applied to the graphs among its parameters."""
    params = {name: apply_pass(value, step) for name, value in equation.params.items()}
    if all(map(is_, params.values(), equation.params.values())):
        return equation
    return Equation(equation.primitive, equation.inputs, params, equation.outputs, equation.origin)


def apply_pass(value: Any, step: Pass) -> Any:
    """Apply a pass to a graph, or to those in a tuple; return other values as they are."""
    if isinstance(value, Graph):
        return step(value)
    if isinstance(value, tuple) and any(isinstance(item, Graph) for item in value):
        found = tuple([step(item) if isinstance(item, Graph) else item for item in value])
        return value if all(map(is_, found, value)) else found
    return value


def variables(items: Iterable[Any]) -> set[Variable]:
    """Return the variables among some values."""
    return {x for x in items if type(x) is Variable}


def distinct_variables(items: Iterable[Any]) -> list[Variable]:
    """Return the variables among some values, each once, in order."""
    return list(dict.fromkeys(x for x in items if type(x) is Variable))


@cache
def keyword_parameters(function: Callable[..., Any]) -> tuple[str, ...]:
    """Return the names of the parameters that a function of a primitive, such as its `scalar`, takes by keyword."""
    return tuple([p.name for p in signature(function).parameters.values() if p.kind == p.KEYWORD_ONLY])


def unknown_parameters(params: Mapping[str, Any], names: Container[str]) -> list[str]:
    """Return the parameters that say something and are not among some names: those that a rule would ignore."""
    return [
        name
        for name, value in params.items()
        if name not in names and value is not None and not (type(value) is tuple and not value)
    ]


def with_extra_inputs(graph: Graph, places: Sequence[int | Aval]) -> Graph:
    """Return a graph with inputs in another order; where an aval stands, one more that it does not use."""
    inputs = [graph.inputs[place] if isinstance(place, int) else Variable.of(place) for place in places]
    return Graph(inputs, graph.equations, graph.outputs)


class Loops(StructuredLowering):
    """Tell the parameters of loops."""

    def loop(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the parameters."""
        return params


LOOPS = Loops()


def loop_parameters(equation: Equation) -> Mapping[str, Any] | None:
    """Return the parameters of the loop that an equation is lowered to; None if it is lowered to none."""
    found: Mapping[str, Any] | None = equation.primitive.lower(equation.params, LOOPS)
    return found


class Branches(StructuredLowering):
    """Tell the graphs of branches."""

    def branch(self, graphs: Sequence[Graph]) -> Sequence[Graph]:
        """Return the graphs."""
        return graphs


BRANCHES = Branches()


def branches_of(equation: Equation) -> Sequence[Graph] | None:
    """Return the graphs of which an equation chooses one; None if it is lowered to something else."""
    found: Sequence[Graph] | None = equation.primitive.lower(equation.params, BRANCHES)
    return found


def may_be_step(equation: Equation) -> bool:
    """Tell whether an equation may be a step of a program that is no kernel: a loop, or a routine of small matrices."""
    return loop_parameters(equation) is not None or equation.primitive.routine is not None
