"""What is made of the graph of a traced function: that of values and gradients, and errors in the order of Python's."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import compress
from typing import Any

from wengert.core.diagnostics.store_guard import was_caught
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate, must_run, subgraphs
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.passes.dead_code import eliminate_dead
from wengert.support.records import NamedTuple
from wengert.traces.staging import Staging
from wengert.transforms.boundary import Narrowed
from wengert.transforms.recorded_call import Recording
from wengert.transforms.tracing import as_function, trace_function


class JointGraph(NamedTuple):
    """Hold a graph of values and gradients.

    Attributes:
        graph: the graph.
        masks: whether its sweep passes a mask.
        steep: whether it may pass an infinite partial.
        reached: the inputs that it comes to.
    """

    graph: Graph
    masks: bool
    steep: bool
    reached: frozenset[int]


def joint_graph(graph: Graph, wanted: Sequence[bool], masked: bool = False, steep: bool = False) -> JointGraph:
    """Return the graph from inputs and cotangents of the float outputs to outputs and cotangents of wanted inputs.

    With `masked` its sweep has passed a mask before it begins, with `steep` an infinite partial.
    """
    chosen = [i for i, want in enumerate(wanted) if want]
    floats = [i for i, x in enumerate(graph.outputs) if is_differentiable(aval_of(x).dtype)]
    count = len(graph.inputs)

    def joint(*values: Any) -> Any:
        inputs, cts = values[:count], values[count:]
        function = Narrowed(as_function(graph), inputs, chosen)
        run = Recording("jit", function, [inputs[i] for i in chosen], {}, range(len(chosen)), False)
        given = dict(zip(floats, cts, strict=True))
        seeds = [given.get(i) for i in range(len(graph.outputs))]
        results = (*run.values(), *run.sweep(seeds, retain=False, masked=masked, steep=steep))
        passed.append((run.masks, run.steep, frozenset(compress(chosen, run.reached))))
        return results

    avals = [v.aval for v in graph.inputs] + [aval_of(graph.outputs[i]).firm for i in floats]
    passed: list[tuple[bool, bool, frozenset[int]]] = []
    both = trace_function(joint, "jit", avals, lambda xs: (xs, {})).graph
    return JointGraph(both, *passed[-1])


def holds_loops(graph: Graph) -> bool:
    """Tell whether there is a loop in a graph, or in one that it runs."""
    return any(
        e.primitive.repeats or any(holds_loops(inner) for _, inner in subgraphs(e.params))
        for e in graph.equations
        if e.primitive.structured
    )


def with_distinct_outputs(graph: Graph) -> tuple[Graph, tuple[int, ...]]:
    """Return a graph without the outputs that are there twice, and where each output is among its outputs."""
    known: dict[Variable, int] = {}
    outputs: list[Any] = []
    places = []
    for x in graph.outputs:
        place = known.setdefault(x, len(outputs)) if type(x) is Variable else len(outputs)
        if place == len(outputs):
            outputs.append(x)
        places.append(place)
    return Graph(graph.inputs, graph.equations, outputs), tuple(places)


@contextmanager
def raise_in_order(stages: Sequence[Staging], leaves: Sequence[Any]) -> Iterator[None]:
    """Raise what a graph raises for its arguments before an error that ends its tracing, as Python would.

    `stages` is what is being traced, once it has begun. After a refusal that was caught, plain NumPy need not come to
    what has been written down since.
    """
    try:
        yield
    except Exception as error:
        for stage in () if was_caught(error) else stages:
            if any(map(must_run, stage.equations)):
                evaluate(eliminate_dead(stage.graph(())), (*leaves, *stage.captured_tensors()))
        raise
