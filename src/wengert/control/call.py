"""Calls: a function as one equation of the graph that calls it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from typing import Any

import numpy as np

from wengert.compile.dead_code import narrowed, needed_inputs
from wengert.control.subgraphs import (
    batched_graph,
    dependent_outputs,
    find_staged,
    forward_graph,
    keep_places,
    scatter_flagged,
    scatter_parts,
    select_flagged,
    split_gradient,
    trace_subgraph,
    with_zeros,
)
from wengert.control.traced_bodies import FlatFunction
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.forms.form import Region
from wengert.core.graph.graph import Equation, Graph, evaluate
from wengert.core.graph.identity import identity
from wengert.core.memory.views import base_and_path
from wengert.core.primitives.primitive import Pullback, Structured, StructuredLowering, register
from wengert.core.primitives.signatures import called_with
from wengert.core.values.aval import aval_of
from wengert.core.values.dispatch import apply, require_plain
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError
from wengert.primitives.indexing import rebind
from wengert.support.attributes import function_name
from wengert.traces.linearity import Moves
from wengert.traces.staging import Staging

__all__ = ["CallPrimitive", "call"]

Params = Mapping[str, Any]
Flags = Sequence[bool]


class CallPrimitive(Structured):
    """Run a graph. Parameters: `graph`, and the `name` of the function it was traced from."""

    def __init__(self) -> None:
        super().__init__("call", self.run, form=Region(lambda _inputs, params: params["graph"].outputs))

    def run(self, *operands: Any, graph: Graph, name: str) -> tuple[Any, ...]:
        """Evaluate the graph."""
        return evaluate(graph, operands)

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as a graph that runs once."""
        return lowering.call(params["graph"])

    def trimmed(self, used: Flags, params: Params) -> tuple[Flags, Flags, Params] | None:
        """Return which operands the used results need, and the graph of these alone."""
        needed = needed_inputs(params["graph"], used)
        if all(used) and all(needed):
            return None
        return needed, used, {**params, "graph": narrowed(params["graph"], needed, used)}

    def reach(self, flags: Flags, params: Params, smooth: bool) -> list[bool]:
        """Return which results depend on the flagged operands."""
        return dependent_outputs(params["graph"], flags, smooth=smooth)

    def following(self, moves: Sequence[Moves], params: Params, followed: Callable[..., list[Moves]]) -> list[Moves]:
        """Follow through the graph."""
        return followed(params["graph"], moves)

    def moved(self, values: Sequence[Any], parts: Sequence[Any], params: Params, order: int | None) -> Any:
        """Call the graph of values and tangents."""
        flags = [part is not None for part in parts]
        results = self.reach(flags, params, True)
        pushed = forward_graph(params["graph"], flags, results, order)
        found = apply(self, *values, *chain(*select_flagged(parts, flags)), **{**params, "graph": pushed})
        return found[: len(results)], scatter_parts(found[len(results) :], results, order)

    def lanes(self, size: int, values: Sequence[Any], batched: Flags, params: Params) -> Any:
        """Call the graph for all lanes."""
        graph, results = params["graph"], self.reach(batched, params, False)
        every = batched_graph(lambda *xs: evaluate(graph, xs), size, graph.inputs, batched, results)
        return apply(self, *values, **{**params, "graph": every}), results

    def linearized(self, values: Sequence[Any], wanted: Flags, params: Params) -> Any:
        """Call the forward half; the pullback calls the backward half."""
        graph, results = params["graph"], self.reach(wanted, params, True)
        steady, nothing = [True] * len(values), [False] * len(values)
        cuts = split_gradient(
            graph, wanted, results, at_hand=steady, fixed=nothing, summed=nothing, name=f"grad of {params['name']}"
        )
        found = apply(self, *values, **{**params, "graph": cuts.forward})
        count = len(graph.outputs)
        avals, near = [aval_of(x).firm for x in select_flagged(graph.outputs, results)], find_staged(values)

        def pull(cts: Any, masked: bool) -> list[Any]:
            given = with_zeros(select_flagged(cts, results), avals, near)
            graph = cuts.guarded if masked else cuts.backward
            read = [values[i] for i in cuts.read]
            pulled = apply(self, *read, *found[count:], *given, **{**params, "graph": graph})
            return keep_places(scatter_flagged(pulled, wanted), cuts.reached)

        return (
            found[:count],
            results,
            Pullback(self.name, count, pull, cuts.masks, select_flagged(range(count), results)),
        )


primitive = CallPrimitive()
register(primitive)


class RunningCalls(threading.local):
    """Hold the calls that this thread is tracing."""

    def __init__(self) -> None:
        self.running: list[Any] = []


TRACING = RunningCalls()


def call(fun: Callable[..., Any], *args: Any) -> Any:
    """Call a function; while it is being traced, as one equation with a graph of its own.

    Arguments that are not being traced stay what they are, so a function may call itself through `call` as long as
    these decide how deep: with a count that is a Python number, for instance.

    Args:
        fun: the function.
        *args: its arguments: arrays, Tensors and numbers in any containers.

    Returns:
        The function's result.

    Raises:
        DtypeError: the function's parameters do not allow the call.
        GraphError: the function calls itself with arguments that differ only in values that are being traced.

    >>> import wengert as wg
    >>> def power(x, n):
    ...     return x * call(power, x, n - 1) if n else 1.0
    >>> wg.grad(wg.jit(lambda x: power(x, 3)))(2.0)
    12.0
    """
    require_callable("call", fun)
    leaves, structure = flatten(args)
    require_plain("call", leaves)
    staged = [is_staged(leaf) for leaf in leaves]
    if not any(staged):
        return called_with("call (fun)", fun, "*args", args)
    name = function_name(fun)
    inputs = select_flagged(leaves, staged)
    running = (
        fun,
        structure,
        [aval_of(x) for x in inputs],
        [None if s else x for x, s in zip(leaves, staged, strict=True)],
    )
    if any(is_same_call(running, other) for other in TRACING.running):
        raise GraphError(
            "call",
            f"{name} calls itself with arguments that differ only in values that are being traced",
            "a depth that is known while tracing is needed",
            "Use wengert.while_loop, or count the depth with a Python number",
        )
    flat = FlatFunction("call", lambda xs: called_with("call (fun)", fun, "*args", xs), structure)
    written: list[int] = []
    used: list[Equation] = []
    stages = {owner._trace for owner in owners_of(inputs) if isinstance(owner._trace, Staging)}
    counts = [(stage, len(stage.equations)) for stage in stages]

    def inner(*xs: Any) -> list[Any]:
        rest, before = iter(xs), [x._value for x in xs]
        found = flat(*(next(rest) if s else x for x, s in zip(leaves, staged, strict=True)))
        used.extend(e for stage, count in counts for e in stage.equations[count:])
        written[:] = [i for i, x in enumerate(xs) if x._value is not before[i]]
        return [*found, *(xs[i] for i in written)]

    TRACING.running.append(running)
    try:
        graph, captured = trace_subgraph(inner, inputs, f"call({name})")
    finally:
        TRACING.running.pop()
    require_unshared(name, inputs, captured, used, written)
    results = apply(primitive, *inputs, *captured, graph=graph, name=name)
    count = len(results) - len(written)
    for i, value in zip(written, results[count:], strict=True):
        rebind(inputs[i], value)
    return unflatten(flat.structure, results[:count])


def owners_of(tensors: Sequence[Any]) -> list[Tensor]:
    """Return the Tensors that own the memory of some."""
    return [base_and_path(x)[0] for x in tensors]


def require_unshared(
    name: str, inputs: Sequence[Any], captured: Sequence[Tensor], used: Sequence[Equation], written: Sequence[int]
) -> None:
    """Raise if an argument that the function wrote to shares memory with another, or with what it captures.

    Args:
        name: the function.
        inputs: its arguments that have no elements yet.
        captured: what it captured.
        used: what it computed from captured values alone, outside of its graph.
        written: the positions of the arguments that it wrote to.
    """
    owners = owners_of(inputs)
    read = {id(x._value) for x in captured} | {id(x) for e in used for x in e.inputs}
    for i in written:
        if id(owners[i]._value) in read or any(x is owners[i] for x in [*owners[:i], *owners[i + 1 :]]):
            raise GraphError(
                "call",
                f"{name} writes to an argument that shares memory with another one, or with what it captures",
                "arrays of their own are needed, because the other one would not change",
                "Copy one of them",
                place=position_of(*caller()),
            )


def is_same_call(one: Any, other: Any) -> bool:
    """Tell whether two calls are of the same function with equal shapes and equal values that are not traced."""
    return bool(one[:3] == other[:3] and all(is_same_value(x, y) for x, y in zip(one[3], other[3], strict=True)))


def is_same_value(x: Any, y: Any) -> bool:
    """Tell whether two arguments are one, or equal numbers of one type."""
    return x is y or (isinstance(x, bool | int | float | complex | np.generic) and identity(x) == identity(y))
