"""What the rules of structured primitives do to the graphs that they run.

Each transformation of a closed graph gives another: the ordinary traces evaluate it on variables of a new one. What
reverse mode needs is in `subgraph_gradients`.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Sequence
from typing import Any, TypeVar

import numpy as np

from wengert.control.side_effects import Reach, require_unwritten
from wengert.control.zero_sequence import lane_shape, zeros
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, derive, evaluate
from wengert.core.graph.loop_spec import Parts
from wengert.core.memory.memory_layout import Strides, row_strides, stacked_strides, strides_among, strides_of, ways_of
from wengert.core.memory.views import current
from wengert.core.memory.write_watches import Watch
from wengert.core.primitives.structured import Passed, Structured
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, is_differentiable
from wengert.core.values.dispatch import apply, as_tensor
from wengert.core.values.execution_state import ACTIVE, in_lanes
from wengert.core.values.recording import BUDGET, PACKING, READINGS, byte_budget, next_level
from wengert.core.values.tensor import Tensor, is_concrete, is_staged, make_tensor, unwrap_plain
from wengert.passes.pipeline import simplify_graph
from wengert.primitives.conversion import stand_in
from wengert.traces.batch import Batch, make_batched
from wengert.traces.dual import Dual, make_dual
from wengert.traces.jet import Jet, Series
from wengert.traces.staging import stage_function

Flags = Sequence[bool]
C = TypeVar("C")


# Tracing


def trace_subgraph(
    function: Callable[..., Sequence[Any]], examples: Sequence[Any], name: str, *, whole: bool = False
) -> tuple[Graph, list[Tensor]]:
    """Return the graph of a function of flat arguments, and the Tensors it captured: the last inputs.

    Args:
        function: the function.
        examples: of its arguments, of which shapes, dtypes and memory order matter; avals stand for C order.
        name: for errors.
        whole: what the function computes of traced values that it captures alone is part of the graph, too: it may
            never run, and fail if it did.
    """
    reach = Reach(name, function)
    return trace_within(reach, function, examples, name, outside=reach.staged_tensors() if whole else ())


def trace_within(
    reach: Reach,
    function: Callable[..., Sequence[Any]],
    examples: Sequence[Any],
    name: str,
    outside: Sequence[Tensor] = (),
) -> tuple[Graph, list[Tensor]]:
    """Return the graph of a function that may change nothing in its reach, and what it captures but for `outside`."""
    orders = list(map(strides_of, examples))
    with Watch() as watch, reach:
        graph, captured = stage_function(
            lambda xs: call_user(function, xs, {}), list(map(aval_of, examples)), name, orders=orders, outside=outside
        )
    require_unwritten(watch, name)
    reach.require_unchanged()
    return with_used_captures(simplify_graph(graph), captured)


def with_used_captures(graph: Graph, captured: Sequence[C]) -> tuple[Graph, list[C]]:
    """Return a graph without those of its last inputs that it does not read, and what belongs to the others."""
    used = {
        x for values in (*[e.inputs for e in graph.equations], graph.outputs) for x in values if type(x) is Variable
    }
    count = len(graph.inputs) - len(captured)
    kept = [v in used for v in graph.inputs[count:]]
    if all(kept):
        return graph, list(captured)
    inputs = [*graph.inputs[:count], *select_flagged(graph.inputs[count:], kept)]
    return Graph(inputs, graph.equations, graph.outputs), select_flagged(captured, kept)


def derive_traced(graph: Graph, key: tuple[Hashable, ...], make: Callable[[], C]) -> C:
    """Return what tracing makes of a graph, by its sort and all flags, for contexts like this one; made once."""
    before, modes = READINGS.count, (BUDGET.get(), tuple(PACKING.get()))
    found, reads_budget = derive(graph, (*key, *modes), lambda: (make(), READINGS.count > before))
    if reads_budget:
        byte_budget()  # what this is part of depends on it, too
    return found


def trace_closed(function: Callable[..., Sequence[Any]], examples: Sequence[Any], name: str) -> Graph:
    """Return the graph of a function that captures nothing."""
    graph, captured = trace_subgraph(function, examples, name)
    assert not captured, f"{name} captured {captured}"
    return graph


def permute(graph: Graph, inputs: Sequence[int], outputs: Sequence[int]) -> Graph:
    """Return a graph with inputs and outputs in another order; outputs may be left out."""

    def make() -> Graph:
        return Graph([graph.inputs[i] for i in inputs], graph.equations, [graph.outputs[i] for i in outputs])

    return derive(graph, ("permuted", *inputs, "for", *outputs), make)


def joint_variable(column: Sequence[Any]) -> Variable:
    """Return a variable for the results of several branches: of their aval, with the memory order of any of them."""
    aval = aval_of(column[0])
    ways = frozenset(way for x in column for way in ways_of(strides_of(x)))
    return Variable.of(aval, "", strides_among(aval.shape, aval.dtype.itemsize, ways))


def row_variable(array: Any) -> Variable:
    """Return a variable for one row of an array, with the memory order of a view of it."""
    shape, dtype, _ = aval_of(array)
    return Variable(shape[1:], dtype, "", row_strides(shape, strides_of(array), dtype.itemsize))


# Dependence


def dependent_outputs(graph: Graph, flags: Flags, *, smooth: bool) -> list[bool]:
    """Return which outputs depend on the flagged inputs; with `smooth`, only where derivatives flow."""
    marked = {v for v, flag in zip(graph.inputs, flags, strict=True) if flag}
    for equation in graph.equations:
        primitive = equation.primitive
        given = [type(x) is Variable and x in marked for x in equation.inputs]
        if not any(given) or (smooth and primitive.kind == "constant"):
            continue
        if isinstance(primitive, Structured):
            reached = primitive.reach(given, equation.params, smooth)
        else:
            reached = [True] * len(equation.outputs)
        marked.update(
            v
            for v, flag in zip(equation.outputs, reached, strict=True)
            if flag and (not smooth or is_differentiable(v.dtype))
        )
    return [type(x) is Variable and x in marked for x in graph.outputs]


# Forward mode


def forward_graph(
    graph: Graph, moving: Flags, results: Flags, order: int | None, passed: Passed
) -> tuple[Graph, Passed]:
    """Return the graph of values and what moves with them.

    Args:
        graph: inputs to outputs.
        moving: which inputs move.
        results: which outputs shall have tangents or coefficients too; zeros where they follow to be.
        order: of the series of which the coefficients 1 to `order` belong to a value that moves; None for a tangent.
        passed: what may have been passed before.

    Returns:
        The graph from (inputs, what belongs to those that move) to (outputs, what belongs to those that shall have),
        and what may have been passed there or before.
    """
    key = "pushed", tuple(moving), tuple(results), order, passed
    return derive_traced(graph, key, lambda: trace_forward(graph, moving, results, order, passed))


def trace_forward(
    graph: Graph, moving: Flags, results: Flags, order: int | None, passed: Passed
) -> tuple[Graph, Passed]:
    """Return the graph that `forward_graph` keeps, and what may have been passed, traced anew."""
    count = len(graph.inputs)
    width = 1 if order is None else order

    def both(*args: Tensor) -> list[Any]:
        values, rest = args[:count], iter(args[count:])
        trace = Dual(next_level(), "jvp of a graph") if order is None else Jet(next_level(), order, "taylor of a graph")
        trace.masked, trace.steep = passed.masked, passed.steep
        given = [
            moving_value(v, [next(rest) for _ in range(width)], trace) if flag else v
            for v, flag in zip(values, moving, strict=True)
        ]
        with trace:
            found = [current_value(x) for x in evaluate(graph, given)]
        moved = [
            part
            for x, flag in zip(found, results, strict=True)
            if flag
            for part in (parts_of(x, trace, width) or [zeros(aval_of(x), args[0])] * width)
        ]
        ends.append(Passed(trace.masked, trace.steep))
        return [*(unwrap_plain(trace.value_below(x)) for x in found), *moved]

    ends: list[Passed] = []
    moved = (a for v in select_flagged(graph.inputs, moving) for a in (v.aval,) * width)
    return trace_closed(both, [*graph.inputs, *moved], "jvp"), ends[-1]


def moving_value(value: Tensor, parts: Sequence[Any], trace: Dual | Jet) -> Tensor:
    """Return a value that moves along a tangent or a series."""
    if isinstance(trace, Dual):
        return make_dual(value, parts[0], trace, trace.place)
    zero = zeros(aval_of(value), value)
    return trace.tensor(aval_of(value), Series([value, *parts], lambda _: zero))


def parts_of(value: Any, trace: Dual | Jet, width: int) -> list[Any]:
    """Return the tangent or the coefficients that belong to a value; nothing for zeros."""
    if type(value) is not Tensor or value._trace is not trace:
        return []
    return [value._node.tangent] if isinstance(trace, Dual) else [value._node[k] for k in range(1, width + 1)]


def scatter_parts(items: Sequence[Any], flags: Flags, order: int | None) -> list[Any]:
    """Return a tuple of tangent or coefficients for each flag that is set, None for the others."""
    width = 1 if order is None else order
    return scatter_flagged([tuple(items[i * width : (i + 1) * width]) for i in range(sum(flags))], flags)


# Batching


def batched_graph(
    function: Callable[..., Sequence[Any]], size: int, examples: Sequence[Any], batched: Flags, results: Flags
) -> Graph:
    """Return the graph of a function for all lanes of a batch.

    Args:
        function: of the values of one lane.
        size: the number of lanes.
        examples: of the inputs of one lane.
        batched: which inputs have a batch axis.
        results: which outputs shall have one.
    """

    def everywhere(*args: Tensor) -> list[Any]:
        batch = Batch(next_level(), size, "vmap of a graph")
        given = [make_batched(x, batch) if flag else x for x, flag in zip(args, batched, strict=True)]
        with batch:
            found = [current_value(x) for x in function(*given)]
        return [
            broadcast_to_lanes(x, batch) if flag else batch.value_below(x)
            for x, flag in zip(found, results, strict=True)
        ]

    return trace_closed(
        everywhere, [widen(x, size) if flag else x for x, flag in zip(examples, batched, strict=True)], "vmap"
    )


def widen(example: Any, size: int) -> Variable:
    """Return an example for all lanes of a batch from that for one."""
    shape, dtype, _ = aval_of(example)
    wider = lane_shape(shape, size)
    strides = None if UNKNOWN in shape else stacked_strides(wider, strides_of(example), dtype.itemsize)
    return Variable(wider, dtype, "", strides)


def broadcast_to_lanes(value: Any, batch: Batch) -> Any:
    """Return a value for all lanes, batch axis in front, one level below."""
    if type(value) is Tensor and value._trace is batch:
        return value._value
    below = batch.value_below(current_value(value))
    aval = aval_of(below)
    if UNKNOWN in aval.shape:  # the zeros of a branch without this sequence
        return zeros(Aval(lane_shape(aval.shape, batch.size), aval.dtype), below)
    return np.broadcast_to(below, (batch.size, *aval.shape))


def fill_inactive(value: Any, active: Any) -> Any:
    """Return a value in which lanes that are not active hold that of one that is.

    What they compute then is finite wherever that of the active lanes is, so the zero cotangents that they receive
    stay zero; and indices are within bounds. A batch without an active lane, among those of a batch around it, holds
    the values of a batch that has one.

    Args:
        value: anything.
        active: a boolean in each lane, of which at least one is true.
    """
    mask = current_value(active)
    while type(mask) is Tensor and isinstance(mask._trace, Batch) and mask._trace.size:
        lane = current_value(np.argmax(mask._value, axis=0))
        example = one_lane(value, mask._trace, lane)
        if example is not None:
            value = select(mask, value, example)
        if type(mask._value) is not Tensor:  # there is no batch around this one
            break
        mask = current_value(np.any(mask._value, axis=0))
    return value


def restrict_condition(condition: Any) -> Any:
    """Return a condition that holds in no lane that is not active anyway: loops of others might not end."""
    mask = ACTIVE.mask
    return condition if mask is None or is_concrete(condition) or is_staged(condition) else condition & mask


def in_active_lanes(mask: Any, function: Callable[..., Sequence[Any]], operands: Sequence[Any]) -> Sequence[Any]:
    """Call a function of values while lanes are active where a mask from `restrict_condition` holds.

    Others hold values of one that is. All are active where there are no elements yet.
    """

    def fill(value: Any) -> Any:
        return in_lanes(mask, None, fill_inactive, value, mask)

    def call() -> Sequence[Any]:
        return function(*[fill_inactive(x, mask) for x in operands])

    return in_lanes(None, None, call) if is_staged(mask) else in_lanes(mask, fill, call)


def one_lane(value: Any, batch: Batch, lane: Any) -> Any:
    """Return what a value is in one lane of a batch, in the lanes of newer batches, without derivatives.

    Args:
        value: the value; newer traces may differentiate it, or have batches of it.
        batch: the batch.
        lane: which of its lanes; older batches may each have another.

    Returns:
        The value; None if it is the same in all lanes of the batch.
    """
    found = current_value(value)
    trace = found._trace if type(found) is Tensor else None
    if trace is None or trace.staged or UNKNOWN in aval_of(found).shape:
        return None
    if trace is batch:
        example = (as_tensor(found._value) if type(lane) is Tensor else found._value)[lane]
        return apply(stand_in, example) if type(example) is Tensor else example
    example = one_lane(trace.below(found), batch, lane)
    if example is None or not isinstance(trace, Batch):
        return example
    return make_tensor(example, trace, found._node)


def select(condition: Any, x: Any, y: Any) -> Any:
    """Return x where a condition holds, else y; of sequences, of which one is of zeros, the other."""
    if UNKNOWN in aval_of(x).shape:
        return x + y
    found = np.where(condition, x, y)
    ways = ways_of(strides_of(x)) | ways_of(strides_of(y))
    if len(ways) > 1 and found.ndim:
        set_lane_layouts(found, strides_among(found.shape, found.dtype.itemsize, ways))
    return found


def set_lane_layouts(value: Any, strides: Strides) -> None:
    """Let each lane of a value lie in memory in one of several ways, which lanes decide."""
    while type(value) is Tensor:
        if isinstance(value._trace, Batch):
            lying = value._trace.lying(value._value, strides)
            value._value, value._node = lying._value, lying._node
            return  # a lane of a batch around it has all of these lanes
        value = value._value


# Small helpers


def select_flagged(values: Sequence[Any], flags: Flags) -> list[Any]:
    """Return the values whose flags are set."""
    return [x for x, flag in zip(values, flags, strict=True) if flag]


def keep_places(values: Sequence[Any], places: Container[int]) -> list[Any]:
    """Return the values in some places, None in the others."""
    return [x if i in places else None for i, x in enumerate(values)]


def scatter_flagged(items: Sequence[Any], flags: Flags) -> list[Any]:
    """Return one item for each flag: the next where it is set, None elsewhere."""
    rest = iter(items)
    return [next(rest) if flag else None for flag in flags]


def find_staged(values: Sequence[Any]) -> Any:
    """Return one of the values that has no elements yet, if there is one."""
    return next((x for x in values if is_staged(x)), None)


def current_value(value: Any) -> Any:
    """Return the Tensor that a value stands for; others as they are."""
    return current(value) if type(value) is Tensor else value


def keep_handle(tensor: Tensor) -> Tensor:
    """Return another handle of a staged value, never to be overwritten."""
    found = make_tensor(tensor._value, tensor._trace, tensor._node)
    found._kept = True
    return found


# Bodies of loops, in the order of the operands of loops


def interleave(pushed: Graph, wide: Parts, carried: Flags, left: Flags, width: int) -> Graph:
    """Return a graph of values and what moves with them in the order of a loop's body: by role, values first."""
    inputs: list[int] = []
    value, moved = 0, len(wide.inner)
    for flags in (wide.constants, wide.carried, wide.sequences):
        own, more = len(flags), width * sum(flags)
        inputs += [*range(value, value + own), *range(moved, moved + more)]
        value, moved = value + own, moved + more
    outs, total = len(carried), len(carried) + len(left)
    middle = total + width * sum(carried)
    outputs = [*range(outs), *range(total, middle), *range(outs, total), *range(middle, len(pushed.outputs))]
    return permute(pushed, inputs, outputs)
