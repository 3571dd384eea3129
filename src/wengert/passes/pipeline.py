"""The graph passes in their order: `Graph -> Graph`, each preserving values to the bit."""

from __future__ import annotations

from collections.abc import Iterable

from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.graph.graph_checker import check
from wengert.core.graph.printing import render
from wengert.errors import GraphError
from wengert.passes.common_subexpressions import drop_barriers, merge_common, share_constants
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.equal_graphs import share_graphs
from wengert.passes.equations import Pass
from wengert.passes.hoisting import hoist_invariants
from wengert.passes.inlining import inline_calls
from wengert.passes.lanes_last import put_lanes_last
from wengert.passes.products_after_loops import multiply_after_loops, multiply_in_pairs
from wengert.passes.rows_in_loops import compute_rows_in_loops
from wengert.passes.simplify import simplify
from wengert.passes.states_of_loops import multiply_states_after_rounds
from wengert.passes.transposed_products import permute_labels
from wengert.support import config

PIPELINE: tuple[Pass, ...] = (eliminate_dead, simplify, hoist_invariants, merge_common, eliminate_dead)
"""What every traced graph goes through; calls stay one equation, as they were written."""

BEFORE_LOWERING: tuple[Pass, ...] = (
    inline_calls,
    share_graphs,
    drop_barriers,
    multiply_in_pairs,
    *PIPELINE,
    share_constants,
    multiply_after_loops,
    multiply_states_after_rounds,
    compute_rows_in_loops,
    permute_labels,
    put_lanes_last,
    share_graphs,
)
"""What a graph goes through before it becomes code, which has no calls, and products of two factors at most."""


def simplify_graph(graph: Graph) -> Graph:
    """Return a graph of the same values by fewer equations."""
    graph = after_passes(graph, PIPELINE)
    settle(graph)
    return graph


def settle(graph: Graph) -> None:
    """Mark a graph, and those in it, as through all passes."""
    if not graph.settled:
        graph.settled = True
        for equation in graph.equations:
            for _, inner in subgraphs(equation.params):
                settle(inner)


def flatten_calls(graph: Graph) -> Graph:
    """Return a graph of the same values by fewer equations and without calls."""
    return after_passes(graph, BEFORE_LOWERING)


def after_passes(graph: Graph, steps: Iterable[Pass]) -> Graph:
    """Run passes; with `WENGERT_DEBUG=1` check, and with `WENGERT_LOG=passes` print, the graph after each.

    Raises:
        GraphError: a pass made a graph that is not well formed, and this is being checked.
    """
    for step in steps:
        graph = step(graph)
        if config.DEBUG:
            check_after(step, graph)
        if "passes" in config.LOGGED:
            from wengert.support.logs import say

            say("passes", f"after {step.__name__}:\n{render(graph)}")
    return graph


def check_after(step: Pass, graph: Graph) -> None:
    """Raise a GraphError naming the pass if it made a graph that is not well formed."""
    try:
        check(graph)
    except GraphError as error:
        given = f"a graph with a mistake ({error})"
        raise GraphError(f"pass {step.__name__}", given, "a graph is needed", "Mend the pass") from error
