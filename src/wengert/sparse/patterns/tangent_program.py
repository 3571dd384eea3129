"""The linear half of a program: from the tangents of its arguments to those of its results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.core.containers.tree_leaves import flatten
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.core.values.aval import count_elements
from wengert.passes.dead_code import narrow_graph
from wengert.transforms.forward import push_forward
from wengert.transforms.tracing import trace_by_elements


class TangentProgram:
    """Hold the graph from arguments and tangents to the tangents of results.

    Attributes:
        graph: its inputs are the leaves of all arguments and then those of the tangents.
        leaves: the leaves of the arguments.
        moving: how many leaves the tangents have.
    """

    def __init__(self, name: str, fun: Callable[..., Any], args: Sequence[Any], argnums: Sequence[int]) -> None:
        def push(args: Sequence[Any], tangents: Sequence[Any]) -> Any:
            def of_chosen(*chosen: Any) -> Any:
                given = list(args)
                for i, x in zip(argnums, chosen, strict=True):
                    given[i] = x
                return fun(*given)

            return push_forward(name, of_chosen, [args[i] for i in argnums], tangents)

        directions = [args[i] for i in argnums]
        both: Graph = trace_by_elements(push)(
            list(args), directions
        )  # a value of which nobody knows what it is has an error
        half = len(both.outputs) // 2
        self.graph = narrow_graph(both, [True] * len(both.inputs), [i >= half for i in range(2 * half)])
        self.leaves = flatten(list(args))[0]
        self.moving = len(flatten(directions)[0])

    @property
    def captured_count(self) -> int:
        """How many inputs are values that the function captured."""
        return len(self.graph.inputs) - len(self.leaves) - self.moving

    @property
    def tangents(self) -> Sequence[Variable]:
        """The inputs that are tangents."""
        return self.graph.inputs[len(self.leaves) : len(self.leaves) + self.moving]

    @property
    def columns(self) -> int:
        """How many elements the tangents have."""
        return count_elements(self.tangents)

    @property
    def rows(self) -> int:
        """How many elements the results have."""
        return count_elements(self.graph.outputs)
