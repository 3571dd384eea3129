"""Whether equations with sub-graphs fit together: what structured primitives check besides the avals of results.

Tracing makes equations that do; those that come from files may not.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from wengert.core.graph.graph import Graph, malformed_error
from wengert.core.graph.loop_spec import LoopSpec, is_counted, parts
from wengert.core.values.aval import UNKNOWN, aval_of, shape_of

Inputs = Sequence[Any]
Params = Mapping[str, Any]


def require(condition: bool, given: str, needed: str) -> None:
    """Raise a GraphError unless a condition holds."""
    if not condition:
        raise malformed_error(given, needed)


def check_graph(name: str, graph: Any, shapes: Sequence[tuple[int, ...]]) -> None:
    """Check that a parameter is a graph for operands of these shapes."""
    require(isinstance(graph, Graph), f"{name} that is a {type(graph).__name__}", "a graph is needed")
    found = [v.shape for v in graph.inputs]
    require(found == list(shapes), f"{name} of inputs {found}", f"inputs {list(shapes)} are needed")


def check_loop(inputs: Inputs, params: Params) -> None:
    """Check that body and condition fit the operands, and that the body gives what it receives."""
    spec = params["spec"]
    require(type(spec) is LoopSpec, f"spec={spec!r:.80}", "a record of a loop is needed")
    length = spec.length
    given = parts(inputs, params)
    counts = [len(given.constants), len(given.carried)]
    wanted = [spec.constants, spec.carried]
    require(counts == wanted, f"a loop of {len(inputs)} operands", f"{wanted} constants and carried values are needed")
    for limit in given.limit if is_counted(params) else ():
        require(aval_of(limit).dtype.kind in "iu", f"a loop that ends at {limit!r}", "an integer is needed")
    for sequence in map(shape_of, given.sequences):
        enough = bool(sequence) and (UNKNOWN in sequence or length is None or sequence[0] >= length)
        require(enough, f"a sequence of shape {sequence} for {length} iterations", "one element for each is needed")
    constants, carried = list(map(shape_of, given.constants)), list(map(shape_of, given.carried))
    check_graph("body", params["body"], [*constants, *carried, *(shape_of(x)[1:] for x in given.sequences)])
    outputs = [shape_of(x) for x in params["body"].outputs]
    require(
        outputs[: len(carried)] == carried and len(outputs) >= len(carried),
        f"a body of outputs {outputs}",
        f"carried values {carried} are needed",
    )
    if params["cond"] is not None:
        require(length is None, f"a loop of {length} iterations with a condition", "one of both is needed")
        check_graph("cond", params["cond"], [*constants, *carried])
        require(len(params["cond"].outputs) == 1, "a condition of several outputs", "one is needed")


def check_branch(inputs: Inputs, params: Params) -> None:
    """Check that every branch receives the operands after the index, and that all give the same."""
    branches = params["branches"]
    require(bool(branches), "a choice without branches", "at least one is needed")
    require(aval_of(inputs[0]).dtype.kind in "biu", f"a choice by {inputs[0]!r}", "an integer or boolean is needed")
    for one in branches:
        check_graph("branch", one, [shape_of(x) for x in inputs[1:]])
        found, wanted = (list(map(aval_of, graph.outputs)) for graph in (one, branches[0]))
        require(found == wanted, f"branches that give {found} and {wanted}", "the same is needed")
