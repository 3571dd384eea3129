"""Calls: a function as one equation of the graph that calls it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from wengert.control.branch import Alternatives, Params
from wengert.control.structured_checks import check_graph, require
from wengert.control.subgraphs import (
    select_flagged,
    trace_subgraph,
)
from wengert.control.traced_bodies import FlatFunction
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.diagnostics.argument_checks import require_callable
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.forms.view_forms import Region
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.identity import identity
from wengert.core.memory.views import base_and_path
from wengert.core.primitives.primitive import register
from wengert.core.primitives.signatures import called_with
from wengert.core.primitives.structured import StructuredLowering
from wengert.core.values.aval import aval_of, shape_of
from wengert.core.values.dispatch import apply, require_plain
from wengert.core.values.tensor import Tensor, is_staged
from wengert.errors import GraphError
from wengert.primitives.indexing.parts import rebind
from wengert.support.attributes import function_name
from wengert.support.scopes import OtherAttributes
from wengert.traces.staging import Staging


class CallPrimitive(Alternatives):
    """Run a graph. Parameters: `graph`, and the `name` of the function it was traced from."""

    ahead = 0

    def __init__(self, name: str, again: CallPrimitive | None = None) -> None:
        super().__init__(name, self.run, form=Region(lambda _inputs, params: params["graph"].outputs))
        self.again = again

    def check(self, inputs: Sequence[Any], params: Params) -> None:
        """Check that the graph receives the operands."""
        check_graph("graph", params["graph"], list(map(shape_of, inputs)))
        require(isinstance(params["name"], str), f"the name {params['name']!r}", "a string is needed")

    def run(self, *operands: Any, graph: Graph, name: str) -> tuple[Any, ...]:
        """Evaluate the graph."""
        return evaluate(graph, operands)

    def graphs(self, params: Params) -> Sequence[Graph]:
        """Return the graph, as the only one."""
        return (params["graph"],)

    def with_graphs(self, params: Params, graphs: Sequence[Graph]) -> Params:
        """Return the parameters with another graph."""
        return {**params, "graph": graphs[0]}

    def gradient_name(self, params: Params) -> str:
        """Return what errors call the gradient."""
        return f"grad of {params['name']}"

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as a graph that runs once."""
        return lowering.call(params["graph"])


class Recomputation(CallPrimitive):
    """Run a graph apart from all else: its equations are not merged with equal ones, whose results would be kept."""

    def __init__(self, name: str) -> None:
        super().__init__(name, self)

    def lower(self, params: Params, lowering: StructuredLowering) -> Any:
        """Be lowered as a program of its own."""
        return lowering.recomputation(params["graph"])


primitive = CallPrimitive("call")
recomputation = Recomputation("recomputation")
checkpoint = CallPrimitive("checkpoint", recomputation)
for operation in (primitive, recomputation, checkpoint):
    register(operation)


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

    def run(arguments: Any) -> Any:
        return called_with("call (fun)", fun, "*args", arguments)

    return stage_call(primitive, fun, run, leaves, structure, staged)


def stage_call(
    primitive: CallPrimitive,
    fun: Callable[..., Any],
    run: Callable[[Any], Any],
    leaves: Sequence[Any],
    structure: Any,
    staged: Sequence[bool],
    params: Params = MappingProxyType({}),
) -> Any:
    """Trace a call to one equation, and return its results in their containers.

    Args:
        primitive: the operation that the call becomes.
        fun: the function.
        run: calls it with its arguments in their containers.
        leaves: those of its arguments.
        structure: their containers.
        staged: which of the leaves have no elements yet.
        params: further parameters of the operation.
    """
    name, inputs = function_name(fun), select_flagged(leaves, staged)
    flat = FlatFunction(primitive.name, run, structure)
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

    fixed = [None if s else x for x, s in zip(leaves, staged, strict=True)]
    with enter_call(name, (fun, structure, list(map(aval_of, inputs)), fixed)):
        graph, captured = trace_subgraph(inner, inputs, f"{primitive.name}({name})")
    require_unshared(name, inputs, captured, used, written)
    results = apply(primitive, *inputs, *captured, graph=graph, name=name, **params)
    count = len(results) - len(written)
    for i, value in zip(written, results[count:], strict=True):
        rebind(inputs[i], value)
    return unflatten(flat.structure, results[:count])


def enter_call(name: str, own: tuple[Any, ...]) -> OtherAttributes:
    """Return a context for tracing a call; raise if the same one is being traced already, as it would have no end.

    Args:
        name: of the function.
        own: function, containers, avals of traced leaves and the other leaves of the call.
    """
    if any(is_same_call(own, other) for other in TRACING.running):
        given = f"{name} calls itself with arguments that differ only in values that are being traced"
        needed = "a depth that is known while tracing is needed"
        raise GraphError("call", given, needed, "Use wengert.while_loop, or count the depth with a Python number")
    return OtherAttributes(TRACING, running=[*TRACING.running, own])


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
