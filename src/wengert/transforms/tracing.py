"""From functions to graphs and back: `trace`, and the gradient of a graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert._tree import flatten, unflatten
from wengert.compile.passes import simplified
from wengert.core.aval import Aval, aval_of
from wengert.core.graph import Graph, Variable, evaluate
from wengert.core.tensor import Tensor
from wengert.core.trace import next_level
from wengert.core.views import current
from wengert.traces.staging import Stage
from wengert.transforms.boundary import name_of
from wengert.transforms.reverse import vjp

__all__ = ["Traced", "gradient", "trace_function"]


class Traced(NamedTuple):
    """Hold a graph with the containers of the function it came from, and the Tensors that the function captured."""

    graph: Graph
    structure: Any
    captured: tuple[Tensor, ...]


def trace_function(
    function: Callable[..., Any], name: str, leaves: Sequence[Any], rebuild: Callable[[Sequence[Any]], Any]
) -> Traced:
    """Trace a function to a graph.

    Args:
        function: called with what `rebuild` makes of the traced leaves: (args, kwargs).
        name: the transformation, for errors.
        leaves: examples of the inputs, of which only shapes and dtypes matter.
        rebuild: puts the leaves into the containers of the arguments.
    """
    stage = Stage(next_level(), name_of(name, function))
    try:
        args, kwargs = rebuild([stage.input(aval_of(leaf)) for leaf in leaves])
        found, structure = flatten(function(*args, **kwargs))
        outputs = [current(leaf) if type(leaf) is Tensor else leaf for leaf in found]
        graph = stage.graph(
            [x if isinstance(x, Tensor | bool | int | float | complex) else np.asarray(x) for x in outputs]
        )
    finally:
        stage.end()
    return Traced(simplified(graph), structure, tuple(tensor for tensor, _ in stage.captured.values()))


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """Return a function that gives the graph of another one for example arguments."""

    def traced(*args: Any, **kwargs: Any) -> Graph:
        leaves, structure = flatten((args, kwargs))
        return trace_function(function, "trace", leaves, lambda xs: unflatten(structure, xs)).graph

    return traced


def as_function(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """Return a graph as a function of its inputs."""
    return lambda *args: evaluate(graph, args)


def gradient(graph: Graph, wrt: Sequence[int] | None = None) -> Graph:
    """Return the graph of a graph's outputs and the gradients of its first one."""
    chosen = tuple(range(len(graph.inputs))) if wrt is None else tuple(wrt)

    def both(*args: Any) -> Any:
        def narrowed(*selection: Any) -> Any:
            everything = list(args)
            for position, value in zip(chosen, selection, strict=True):
                everything[position] = value
            return evaluate(graph, everything)

        outputs, pullback = vjp(narrowed, *(args[i] for i in chosen))
        cts = tuple(
            np.ones(aval_of(o).shape, aval_of(o).dtype) if i == 0 else np.zeros(aval_of(o).shape, aval_of(o).dtype)
            for i, o in enumerate(outputs)
        )
        return (*outputs, *pullback(cts))

    leaves = [variable_like(v) for v in graph.inputs]
    return trace_function(both, "gradient", leaves, lambda xs: (xs, {})).graph


def variable_like(variable: Variable) -> Any:
    """Return something with the shape and dtype of a variable."""
    return Aval(variable.shape, variable.dtype)
