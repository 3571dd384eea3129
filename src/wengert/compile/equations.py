"""What graph passes share: substitution of variables, and passes that reach into sub-graphs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

from wengert.core.graph import Equation, Graph, Variable

__all__ = ["Known", "Pass", "everywhere", "ordered", "renamed", "variables"]

Pass = Callable[[Graph], Graph]
Known = dict[Variable, Any]


def renamed(known: Known, values: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return operands with what is known of the variables among them in their place; the same tuple if nothing is."""
    for x in values:
        if type(x) is Variable and x in known:
            return tuple([known.get(y, y) if type(y) is Variable else y for y in values])
    return values


def everywhere(step: Pass) -> Pass:
    """Return a pass that does to the sub-graphs of structured operations, innermost first, what it does to a graph."""

    @wraps(step)
    def run(graph: Graph) -> Graph:
        if any(equation.primitive.structured for equation in graph.equations):
            equations = [
                entered(equation, run) if equation.primitive.structured else equation for equation in graph.equations
            ]
            graph = Graph(graph.inputs, equations, graph.outputs)
        return step(graph)

    return run


def entered(equation: Equation, step: Pass) -> Equation:
    """Return an equation with a pass applied to the graphs among its parameters."""
    params = {name: applied(value, step) for name, value in equation.params.items()}
    return Equation(equation.primitive, equation.inputs, params, equation.outputs, equation.origin)


def applied(value: Any, step: Pass) -> Any:
    """Apply a pass to a graph, or to those in a tuple; return other values as they are."""
    if isinstance(value, Graph):
        return step(value)
    if isinstance(value, tuple) and any(isinstance(item, Graph) for item in value):
        return tuple(step(item) if isinstance(item, Graph) else item for item in value)
    return value


def variables(items: Iterable[Any]) -> set[Variable]:
    """Return the variables among some values."""
    return {x for x in items if type(x) is Variable}


def ordered(items: Iterable[Any]) -> list[Variable]:
    """Return the variables among some values, each once, in order."""
    return list(dict.fromkeys(x for x in items if type(x) is Variable))
