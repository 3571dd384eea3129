"""Whether a graph is well formed."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from wengert.core.forms.abstract_evaluation import abstract
from wengert.core.graph.equation import Equation, Variable, require_graph
from wengert.core.graph.graph import Graph, malformed_error, subgraphs
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import aval_of, aval_text


def check(graph: Graph) -> None:
    """Raise a GraphError unless a graph is well formed.

    Every variable must be bound once and before use, literals must be arrays or numbers, and the avals of results
    must be those that the primitive gives.

    Args:
        graph: the graph.

    Raises:
        DtypeError: it is no graph.
        GraphError: it is not well formed.

    >>> import wengert as wg
    >>> graph = wg.graph.trace(lambda x: x * 2.0)(1.0)
    >>> check(graph)
    >>> check(Graph((), graph.equations, graph.outputs))
    Traceback (most recent call last):
    wengert.errors.GraphError: graph: x: float is used before it is bound; variables are bound before use. ...
    """
    require_graph("check", graph)
    bound: set[Variable] = set()

    def bind(variable: Any) -> None:
        if type(variable) is not Variable:
            raise malformed_error(f"{variable!r} in the place of a variable", "a variable is needed")
        if variable in bound:
            raise malformed_error(f"{variable!r} is bound twice", "each variable is bound once")
        bound.add(variable)

    def use(value: Any) -> None:
        if type(value) is Variable:
            if value not in bound:
                raise malformed_error(f"{value!r} is used before it is bound", "variables are bound before use")
        elif not isinstance(value, bool | int | float | complex | np.ndarray | np.generic):
            raise malformed_error(f"a literal of type {type(value).__name__}", "numbers and ndarrays are literals")
        elif aval_of(value).dtype.kind not in "biufc":
            raise malformed_error(f"a literal of dtype {aval_of(value).dtype}", "literals are numeric")

    for variable in graph.inputs:
        bind(variable)
    for equation in graph.equations:
        if type(equation) is not Equation:
            raise malformed_error(f"a {type(equation).__name__} in the place of an equation", "an equation is needed")
        for value in equation.inputs:
            use(value)
        for variable in equation.outputs:
            bind(variable)
        for _, inner in subgraphs(equation.params):
            check(inner)
        check_avals(equation)
    for value in graph.outputs:
        use(value)


FAILURES = (
    *(ArithmeticError, AssertionError, AttributeError, BufferError, LookupError, MemoryError),
    *(RuntimeError, StopIteration, SystemError, TypeError, ValueError, Warning),
)
"""What evaluations raise for operands and parameters that nobody would pass."""


def check_avals(equation: Equation) -> None:
    """Raise a GraphError unless an equation's results have the shapes and dtypes that its primitive gives."""
    try:
        if isinstance(equation.primitive, Structured):
            equation.primitive.check(equation.inputs, equation.params)
        check_parameters(equation)
        avals = abstract(equation.primitive, equation.inputs, equation.params)
    except FAILURES as error:
        raise malformed_error(
            f"{equation.primitive.name} that cannot be evaluated ({error})", "a valid call is needed"
        ) from error
    found = tuple(v.aval for v in equation.outputs)
    if avals != found:
        bound, given = (", ".join(map(aval_text, some)) or "nothing" for some in (found, avals))
        raise malformed_error(f"{equation.primitive.name} bound to {bound}", f"{given} is what it gives")


def check_parameters(equation: Equation) -> None:
    """Raise a TypeError unless an equation has the parameters that the evaluation of its primitive takes."""
    try:
        signature = inspect.signature(equation.primitive.evaluate)
    except ValueError:  # of functions written in C; those are called when the shapes are found
        return
    signature.bind(*equation.inputs, **equation.params)
