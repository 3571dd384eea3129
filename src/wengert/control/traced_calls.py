"""Graphs of the values of functions that have rules, for where no derivative is taken through them any more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from wengert.control.side_effects import Reach
from wengert.control.subgraphs import trace_within
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph
from wengert.errors import WengertError
from wengert.passes.output_aliasing import copying
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.rules.calls import UserCall


def graph_of_values(
    call: UserCall, operands: Sequence[Any], results: Sequence[Variable]
) -> tuple[Graph | None, Callable[[], None] | None]:
    """Return the graph of what a call computes; None if its function looks at elements, or does more than compute.

    And what raises if what it reads has been changed since, when it is called later.

    Args:
        call: made already, of other values.
        operands: variables and literals that it is made of in a graph.
        results: what it gives there.
    """
    made = call.anew(operands)
    reach = Reach(call.name, made.compute, made.user_functions())
    stays = reach.requiring_unchanged() if made.user_functions() else None
    return graph_within(reach, made, call, operands, results), stays


def graph_within(
    reach: Reach, made: UserCall, call: UserCall, operands: Sequence[Any], results: Sequence[Variable]
) -> Graph | None:
    """Return the graph of a call that is made like another one, which has been made of other values."""
    if reach.parameters():  # they are read anew at each evaluation
        return None
    before = refusal_count()
    try:
        graph, captured = trace_within(reach, lambda *xs: made.compute(xs), operands, call.name)
        if call.has_state:
            made.compare(call)
    except (WengertError, TypeError, ValueError):
        forgive(before)
        return None
    if captured or made.depends_on_values or len(graph.outputs) != len(results):
        return None
    graph = with_memory_of_their_own(graph)
    alike = zip(results, graph.outputs, strict=True)
    same = [(v.aval, v.strides or None) == (x.aval, x.strides or None) for v, x in alike]  # numbers have no strides
    return graph if all(same) else None


def with_memory_of_their_own(graph: Graph) -> Graph:
    """Return a graph with copies of results that are operands, constants, views, or results already."""
    views = {v for e in graph.equations if e.primitive.view for v in e.outputs}
    seen: set[Any] = {*graph.inputs, *views}
    equations, outputs = [*graph.equations], []
    for x in graph.outputs:
        if type(x) is not Variable or x in seen:
            equations.append(copying(x))
            (x,) = equations[-1].outputs
        outputs.append(x)
        seen.add(x)
    return Graph(graph.inputs, equations, outputs)
