"""A traced form of a function: its graph, how it runs on values of any kind, and the two halves of its gradient."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import compress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from wengert.control.subgraphs import dependent_outputs, keep_places
from wengert.core.diagnostics.source_positions import Position, caller
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.variable import Variable
from wengert.core.memory.views import current, with_views_resolved
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import Aval, aval_of, is_differentiable, is_number
from wengert.core.values.bounded_cache import Recent
from wengert.core.values.recording import budget_of, has_ended, settings
from wengert.core.values.tensor import Tensor, make_tensor, unwrap_plain
from wengert.native.entry import Entry
from wengert.native.kinds import Beside, ContainerKind, Kind, SameKind, kind_like, kind_of
from wengert.passes.dead_code import eliminate_dead, must_run
from wengert.passes.gradient_split import cut
from wengert.passes.output_aliasing import with_packed_results
from wengert.support import config
from wengert.support.cached import cached
from wengert.support.fork_safety import UNSTOPPED
from wengert.traces.grad_modes import recording
from wengert.traces.nodes import new_node
from wengert.traces.staging import Staging
from wengert.traces.tape import Tape
from wengert.transforms.boundary import Narrowed
from wengert.transforms.recorded_call import Recording
from wengert.transforms.tracing import as_function, trace_function

if TYPE_CHECKING:
    from wengert.compile.executable import GraphFunction

Run = Callable[..., tuple[Any, ...]]
MOST_PARTITIONS = 16
"""For how many choices of inputs with gradients a form keeps the halves of its calls."""


class TracedForm:
    """Hold one traced form of a function.

    Attributes:
        graph: inputs are the leaves of the arguments, then what the function captured.
        structure: the containers of the result.
        captured: the Tensors that the function captured.
        donated: pairs of (input, output): arguments that the function wrote to, and their last value.
        written: the positions of the arguments that it wrote to, and where it did.
        wish: whether it becomes native code at its first call, or never; None for when that is worth it.
        merged: the positions of the results that share memory with others only since equal equations were merged.
        called: whether native code has computed it: what lets it be called without Python takes longer than a call.
        reads_budget: whether its graph may be another where the context has another budget.
        budget: how many bytes the reverse of its loops may keep, as in `wengert.core.values.recording.Settings`.
    """

    called = False
    budget: tuple[float, bool] = math.inf, False
    reads_budget = False

    written: Mapping[int, Position | None] = MappingProxyType({})
    merged: frozenset[int] = frozenset()

    def __init__(
        self,
        name: str,
        graph: Graph,
        structure: Any,
        captured: Sequence[Tensor],
        donated: Sequence[tuple[int, int]],
        wish: bool | None = None,
    ) -> None:
        self.name, self.wish = name, wish
        self.graph = graph
        self.structure = structure
        self.captured = tuple(captured)
        self.donated = tuple(donated)
        self.partitions: Recent[tuple[tuple[bool, ...], bool], GradientHalves] = Recent(MOST_PARTITIONS)

    @cached
    def native(self) -> GraphFunction | None:
        """The graph as native code, where that is asked for."""
        return native_function(self.packed, self.wish)

    @cached
    def packed(self) -> Graph:
        """The graph with results that fill memory of their own."""
        return with_packed_results(self.graph, {*self.merged, *[output for _, output in self.donated]})

    @cached
    def function(self) -> Run:
        """The graph as a function of arrays and numbers."""
        return self.native or make_evaluation(self.packed)

    def fits(self) -> bool:
        """Tell whether what the function captured is still there, with the shapes and dtypes it was traced with."""
        variables = self.graph.inputs[len(self.graph.inputs) - len(self.captured) :]
        return all(
            not has_ended(x._trace) and aval_of(x) == v.aval for x, v in zip(self.captured, variables, strict=True)
        )

    def partition(self, wanted: tuple[bool, ...], masked: bool = False) -> GradientHalves:
        """Return the joint graph of gradients for some inputs, and its two halves; made once.

        With `masked` those for sweeps that have passed a mask.
        """
        found = self.partitions.get((wanted, masked))
        if found is None:
            with budget_of(*self.budget):
                joint, masks, reached = joint_graph(self.graph, wanted, masked)
            values = len(self.graph.inputs)
            halves = cut(joint, values, len(self.graph.outputs), at_hand=[True] * values)
            forward, places = with_distinct_outputs(halves.forward)
            functions = function_of(forward, self.wish), function_of(halves.backward, self.wish)
            moving = dependent_outputs(self.graph, wanted, smooth=False)
            call = GraphCall(self, wanted, moving, masked, masks)
            found = GradientHalves(joint, halves.read, *functions, places, moving, reached, call)
            self.partitions[wanted, masked] = found
        return found

    def apart(self, results: Sequence[Any]) -> Sequence[Any]:
        """Return results with copies of the arrays that are one only since equal equations were merged."""
        return [x.copy(order="K") if i in self.merged and type(x) is np.ndarray else x for i, x in enumerate(results)]

    @property
    def is_native(self) -> bool:
        """Whether native code is all there is to do.

        What Python does before and after a call is not needed where no tape may record what it captured.
        """
        is_plain = all(x._trace is None for x in self.captured)
        return is_plain and self.native is not None and self.native.callee is not None

    def offer_to(self, entry: Entry, arguments: Sequence[Kind | None], names: Sequence[str], result: Any) -> None:
        """Let an entry whose arguments are of these kinds call native code, which is all there is to do."""
        assert self.native is not None
        captured = [(x, plain_kind(x)) for x in self.captured]
        known = tuple([(x, kind) for x, kind in captured if kind is not None])
        if len(known) == len(captured):
            visible = len(self.graph.outputs) - len(self.donated)
            donated = tuple([(place, output - visible) for place, output in self.donated])
            beside = Beside(known, tuple(self.written), donated)
            self.native.offer(entry, arguments, names, functools.partial(kind_like, result), beside)


def plain_kind(tensor: Tensor) -> Kind | None:
    """Return the kind of plain Tensors with arrays like that of one."""
    kind = kind_of(tensor._value)
    return None if kind is None else ContainerKind(Tensor, (kind, SameKind(None)), ("_value", "_trace"))


class GradientHalves(NamedTuple):
    """Hold what calls under a tape run.

    Attributes:
        joint: the graph of values and gradients.
        read: the positions of the inputs that the backward half reads directly.
        forward: inputs to outputs and residuals, each array once.
        backward: inputs read, residuals and cotangents to gradients.
        places: of the outputs, then of the residuals, among what the forward half gives.
        moving: which outputs are computed of the wanted inputs; the others are constants.
        reached: the positions of the wanted inputs that have a gradient; nothing is sent back to the others.
        call: what is recorded.
    """

    joint: Graph
    read: tuple[int, ...]
    forward: Run
    backward: Run
    places: tuple[int, ...]
    moving: Sequence[bool]
    reached: frozenset[int]
    call: GraphCall

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Return what the forward half gives for arrays and numbers: the outputs, then the residuals."""
        made = self.forward(*operands)
        return [made[place] for place in self.places]


def native_function(graph: Graph, wish: bool | None) -> GraphFunction | None:
    """Return a graph as native code, if that is asked for; at its first call, if that is wished."""
    if not config.NATIVE or wish is False:
        return None
    with UNSTOPPED:
        from wengert.compile.executable import GraphFunction  # a third of the time of importing the library

    return GraphFunction(graph, wish is True)


def make_evaluation(graph: Graph) -> Run:
    """Return the function that evaluates a graph."""
    return lambda *values: evaluate(graph, values)


def function_of(graph: Graph, wish: bool | None) -> Run:
    """Return a graph as a function of arrays and numbers."""
    return native_function(graph, wish) or make_evaluation(graph)


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


def joint_graph(graph: Graph, wanted: Sequence[bool], masked: bool = False) -> tuple[Graph, bool, frozenset[int]]:
    """Return the graph from inputs and cotangents of the float outputs to outputs and cotangents of wanted inputs.

    And whether its sweep passes a mask, and to which inputs it comes. With `masked` one has been passed before it
    begins.
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
        results = (*run.values(), *run.swept(seeds, retain=False, masked=masked))
        masks.append(run.masks)
        reached.append(frozenset(compress(chosen, run.reached)))
        return results

    avals = [v.aval for v in graph.inputs] + [aval_of(graph.outputs[i]).firm for i in floats]
    masks: list[bool] = []
    reached: list[frozenset[int]] = []
    both = trace_function(joint, "jit", avals, lambda xs: (xs, {})).graph
    return both, masks[-1], reached[-1]


class GraphCall(Primitive):
    """Be calls of a traced function with gradients for some inputs; the vjp runs the backward half on the residuals."""

    kind = "opaque"
    firm = False

    def __init__(
        self, form: TracedForm, wanted: tuple[bool, ...], moving: Sequence[bool], masked: bool, masks: bool
    ) -> None:
        super().__init__(form.name, as_function(form.graph))
        self.traced = form
        self.wanted = wanted
        self.moving = moving
        self.masked = masked
        self.masks = masks
        self.outputs = len(form.graph.outputs)
        self.floats = [i for i, x in enumerate(form.graph.outputs) if is_differentiable(aval_of(x).dtype)]

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run the backward half, or the whole gradient on Tensors if the sweep itself is differentiated."""
        cts = ct if type(ct) is list else [ct]
        if not self.masked and self.hides(cts):
            return self.guarded.vjp(ct, out, operands, avals, params)
        halves = self.traced.partition(self.wanted, self.masked)
        given = [self.complete(cts[i], i) for i in self.floats]
        if out is None or any(type(x) is Tensor for x in (*given, *operands)):
            found = evaluate(halves.joint, (*operands, *given))[self.outputs :]
        else:
            found = halves.backward(*[operands[i] for i in halves.read], *out, *given)
        results: list[Any] = [None] * len(operands)
        for i, value in zip((i for i, want in enumerate(self.wanted) if want), found, strict=True):
            results[i] = unwrap_plain(current(value)) if type(value) is Tensor else np.asarray(value)[()]
        return results

    def hides(self, cts: Sequence[Any]) -> bool:
        """Tell whether a result that is no constant has no cotangent."""
        return any(cts[i] is None and self.moving[i] for i in self.floats)

    @cached
    def guarded(self) -> Primitive:
        """The same for sweeps that have passed a mask."""
        return self if self.masked else GuardedCall(self.traced, self.wanted, self.moving, True, True)

    def complete(self, ct: Any, index: int) -> Any:
        """Return the cotangent of an output; zeros if it received none."""
        aval = aval_of(self.traced.graph.outputs[index])
        return np.zeros(aval.shape, aval.dtype)[()] if ct is None else ct


class GuardedCall(GraphCall):
    """Be a call that a sweep comes to that has passed a mask: its forward half runs again, for what guards need."""

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run both halves; on Tensors the whole gradient, which makes what it needs itself."""
        if out is not None and not any(type(x) is Tensor for x in operands):
            out = self.traced.partition(self.wanted, True).run(operands)[self.outputs :]
        return super().vjp(ct, out, operands, avals, params)


@contextmanager
def raise_in_order(stages: Sequence[Staging], leaves: Sequence[Any]) -> Iterator[None]:
    """Raise what a graph raises for its arguments before an error that ends its tracing, as Python would.

    `stages` is what is being traced, once it has begun.
    """
    try:
        yield
    except Exception:
        for stage in stages:
            if any(map(must_run, stage.equations)):
                evaluate(eliminate_dead(stage.graph(())), (*leaves, *stage.captured_tensors()))
        raise


def call_form(form: TracedForm, operands: Sequence[Any]) -> Sequence[Any]:
    """Run a traced function on operands of any kind."""
    values = [current(x) if type(x) is Tensor else x for x in operands]
    traces = {x._trace for x in values if type(x) is Tensor and x._trace is not None}
    if not traces:
        return form.function(*[x._value if type(x) is Tensor else x for x in values])
    tape = next(iter(traces))
    below = [x._value if type(x) is Tensor else x for x in values]
    plain = isinstance(tape, Tape) and tape.fast and recording(tape) and not settings().packing
    if len(traces) == 1 and not any(type(x) is Tensor for x in below):
        if isinstance(tape, Tape) and not recording(tape):
            results = form.function(*below)
            tape.require_outside_of_forward(tuple(results))
            return results
        if plain:
            return form.apart(with_views_resolved(lambda *xs: record_form(form, tape, xs), *operands))  # type: ignore[arg-type]  # a tape
    return form.apart(evaluate(form.graph, values))


def record_form(form: TracedForm, tape: Tape, values: Sequence[Any]) -> Sequence[Any]:
    """Run the forward half on plain values that nobody will change, and record the call as one node."""
    inputs = tuple(map(tape.node_of, values))
    wanted = tuple(node is not None for node in inputs)
    operands = tuple([tape.residual(x) for x in values])
    partition = form.partition(wanted)
    results = partition.run(operands)
    count = len(form.graph.outputs)
    node = new_node(partition.call, tuple(keep_places(inputs, partition.reached)), {}, operands, caller(2))
    node.out = tuple(results[count:])
    outs = [x if is_number(x) else np.asarray(x)[()] for x in results[:count]]
    if not any(partition.moving):
        return outs
    if count == 1 and is_differentiable(aval_of(outs[0]).dtype):
        node.shape, node.dtype, _ = aval_of(outs[0])
        result = make_tensor(outs[0], tape, node)
        result._kept = True
        return [result]
    pairs = zip(outs, partition.moving, strict=True)
    return [tape.output(node, i, out, True) if moves else out for i, (out, moves) in enumerate(pairs)]
