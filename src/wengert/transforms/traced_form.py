"""A traced form of a function: its graph, how it runs on values of any kind, and the two halves of its gradient."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal

import numpy as np

from wengert.control.call import CallPrimitive
from wengert.control.repeated_containers import Path
from wengert.control.subgraphs import (
    batched_graph,
    dependent_outputs,
    forward_graph,
    keep_places,
    scatter_parts,
    select_flagged,
)
from wengert.core.diagnostics.source_positions import Position, caller
from wengert.core.graph.equation import Variable
from wengert.core.graph.graph import Graph, evaluate, fitting
from wengert.core.memory.views import current, with_views_resolved
from wengert.core.primitives.primitive import Primitive
from wengert.core.primitives.structured import Passed
from wengert.core.values.aval import UNKNOWN, Aval, aval_of, is_differentiable, is_number
from wengert.core.values.dispatch import innermost
from wengert.core.values.execution_state import ACTIVE
from wengert.core.values.recording import PACKING, budget_for_each, budget_of, has_ended
from wengert.core.values.tensor import WATCHES, Tensor, is_staged, make_tensor, unwrap_plain
from wengert.native.entries.entry import Entry
from wengert.native.entries.kinds import ATTRIBUTES, Attributes, Beside, Kind, kind_like, kind_of
from wengert.passes.dead_code import eliminate_dead
from wengert.passes.gradient_split import cut
from wengert.passes.output_aliasing import with_packed_results
from wengert.support import config
from wengert.support.caches import Recent, cached
from wengert.support.collector_pause import LoadingPause
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.records import NamedTuple
from wengert.traces.batch import Batch
from wengert.traces.dual import Dual
from wengert.traces.grad_modes import recording
from wengert.traces.jet import Jet
from wengert.traces.nodes import new_node
from wengert.traces.rules.calls import lane_number
from wengert.traces.tape import Tape
from wengert.transforms.form_graphs import holds_loops, joint_graph, with_distinct_outputs
from wengert.transforms.tracing import as_function

if TYPE_CHECKING:
    from wengert.compile.executable import GraphFunction

Run = Callable[..., tuple[Any, ...]]
Wish = bool | Literal["eager"] | None
EAGER: Final = "eager"
"""What is wished of what nobody asked to be compiled: who calls it a few times does not wait for that."""
EAGER_CALLS = 16
"""How many calls of it NumPy evaluates, which take as long as compiling: 0.13 s each for 2 in a fit of equations."""
MOST_PARTITIONS = 16
"""For how many choices of inputs with gradients a form keeps the halves of its calls, and how many derived forms."""


class TracedForm:
    """Hold one traced form of a function.

    Attributes:
        graph: inputs are the leaves of the arguments, then what the function captured.
        structure: the containers of the result.
        captured: the Tensors that the function captured.
        donated: pairs of (input, output): arguments that the function wrote to, and their last value.
        written: the positions of the arguments that it wrote to, and where it did.
        changed: where containers among the arguments lie that it changed.
        wish: whether it becomes native code at its first call, or never; None for when that is worth it, `EAGER` for
            the same, but not at its first calls.
        merged: the positions of the results that share memory with others only since equal equations were merged.
        called: whether native code has computed it: what lets it be called without Python takes longer than a call.
        reads_budget: whether its graph may be another where the context has another budget.
        budget: how many bytes the reverse of its loops may keep, as in `wengert.core.values.recording.BUDGET`.
    """

    called = False
    budget: tuple[float, bool] = math.inf, False
    reads_budget = False

    written: Mapping[int, Position | None] = MappingProxyType({})
    changed: frozenset[Path] = frozenset()
    merged: frozenset[int] = frozenset()

    def __init__(
        self,
        name: str,
        graph: Graph,
        structure: Any,
        captured: Sequence[Tensor],
        donated: Sequence[tuple[int, int]],
        wish: Wish = None,
    ) -> None:
        self.name, self.wish = name, wish
        self.graph = graph
        self.structure = structure
        self.captured = tuple(captured)
        self.donated = tuple(donated)
        self.partitions: Recent[GradientKey, GradientHalves] = Recent(MOST_PARTITIONS)
        self.derivations: Recent[tuple[Any, ...], DerivedForm] = Recent(MOST_PARTITIONS)

    @cached
    def native(self) -> GraphFunction | None:
        """The graph as native code, where that is asked for."""
        return native_function(self.packed_graph, self.wish)

    @cached
    def packed_graph(self) -> Graph:
        """The graph with results that fill memory of their own."""
        return with_packed_results(self.graph, {*self.merged, *[output for _, output in self.donated]})

    @cached
    def function(self) -> Run:
        """The graph as a function of arrays and numbers."""
        return self.native or as_function(self.packed_graph)

    def fits(self) -> bool:
        """Tell whether what the function captured is still there, with the shapes and dtypes it was traced with."""
        variables = self.graph.inputs[len(self.graph.inputs) - len(self.captured) :]
        return all(
            not has_ended(x._trace) and aval_of(x) == v.aval for x, v in zip(self.captured, variables, strict=True)
        )

    @cached
    def repeats(self) -> bool:
        """Whether there are loops in the graph, in whose rounds Python would call NumPy, for whatever is derived."""
        return holds_loops(self.graph)

    @cached
    def call(self) -> FormCall:
        """The operation that calls of the form are, where traces carry more than values through them."""
        return FormCall(self)

    def derived_form(self, key: tuple[Any, ...], make: Callable[[], tuple[Graph, list[bool]]]) -> DerivedForm:
        """Return the form of a graph that is made of this one, once for each key.

        Args:
            key: how it is made.
            make: makes it, and tells which results have lanes, or what moves with them, and last whether a partial may
                have been infinite. Those of the graph that are not results of this one share no memory with others.
        """
        found = self.derivations.get(key)
        if found is None:
            with budget_of(*self.budget):
                graph, flags = make()
            form = TracedForm(self.name, graph, None, (), (), self.wish)
            apart = range(len(self.graph.outputs), len(graph.outputs))
            form.merged = frozenset([*self.merged, *[output for _, output in self.donated], *apart])
            form.budget = self.budget
            found = self.derivations[key] = DerivedForm(form, flags)
        return found

    def partition(self, key: GradientKey) -> GradientHalves:
        """Return the joint graph of gradients for some inputs, and its two halves; made once."""
        found = self.partitions.get(key)
        if found is None:
            with budget_of(*self.budget), budget_for_each(key.lanes):
                joint = joint_graph(self.graph, key.wanted, key.masked, key.steep)
            values = len(self.graph.inputs)
            halves = cut(joint.graph, values, len(self.graph.outputs), at_hand=[True] * values)
            forward, places = with_distinct_outputs(halves.forward)
            functions = function_of(forward, self.wish), function_of(halves.backward, self.wish)
            moving = dependent_outputs(self.graph, key.wanted, smooth=False)
            call = GraphCall(self, key, moving, joint.masks, joint.steep)
            ragged = [x.shape.count(UNKNOWN) > 1 for x in forward.outputs if type(x) is Variable]
            is_ragged = any(ragged) and config.NATIVE and self.wish is not False
            found = GradientHalves(joint.graph, halves.read, *functions, places, moving, joint.reached, call, is_ragged)
            self.partitions[key] = found
        return found

    def gradient(self, key: GradientKey) -> TracedForm:
        """Return the form from inputs and cotangents to cotangents of the wanted inputs."""

        def make() -> tuple[Graph, list[bool]]:
            joint = self.partition(key).joint
            return eliminate_dead(Graph(joint.inputs, joint.equations, joint.outputs[len(self.graph.outputs) :])), []

        return self.derived_form(("gradient", key), make).form

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

    def offer_to(
        self, entry: Entry, arguments: Sequence[Kind | None], names: Sequence[str], result: Any, has_tensors: bool
    ) -> None:
        """Let an entry whose arguments are of these kinds call native code, which is all there is to do.

        Where there are Tensors in the result, nothing may be watching what is made.
        """
        assert self.native is not None
        captured = [(x, kind_of(x)) for x in (*self.captured, *[WATCHES] * has_tensors)]
        known = tuple([(x, kind) for x, kind in captured if kind is not None])
        if len(known) == len(captured):
            visible = len(self.graph.outputs) - len(self.donated)
            donated = tuple([(place, output - visible) for place, output in self.donated])
            beside = Beside(known, tuple(self.written), donated)
            self.native.offer(entry, arguments, names, functools.partial(kind_like, result), beside)


class DerivedForm(NamedTuple):
    """Hold a form that was made of another, and what was told with it."""

    form: TracedForm
    flags: list[bool]


def plain_attributes(tensor: Tensor) -> Attributes | None:
    """Return what native code reads and compares of Tensors that no trace knows; None for others.

    An array without axes may be held as a scalar: then `_array` tells it from one.
    """
    if tensor._trace is not None:
        return None
    told = () if type(tensor._value) is np.ndarray else ("_array",)
    known, absent = (told, ()) if hasattr(tensor, "_array") else ((), told)
    return Attributes(("_value",), ("_trace", "_node", *known), absent=absent, made=("_kept",))


ATTRIBUTES[Tensor] = plain_attributes


class GradientKey(NamedTuple):
    """Hold which gradients calls under a tape give.

    Attributes:
        wanted: for which inputs.
        masked: whether for sweeps that have passed a mask.
        steep: whether for those that have passed an infinite partial.
        lanes: how many lanes have a share of the byte budget each.
    """

    wanted: tuple[bool, ...]
    masked: bool = False
    steep: bool = False
    lanes: int = 1


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
        is_ragged: whether rows of rows would be handed from half to half, which no native program does.
    """

    joint: Graph
    read: tuple[int, ...]
    forward: Run
    backward: Run
    places: tuple[int, ...]
    moving: Sequence[bool]
    reached: frozenset[int]
    call: GraphCall
    is_ragged: bool

    def run(self, operands: Sequence[Any]) -> list[Any]:
        """Return what the forward half gives for arrays and numbers: the outputs, then the residuals."""
        made = self.forward(*operands)
        return [made[place] for place in self.places]


@functools.cache
def load_native_functions() -> type[GraphFunction]:
    """Return what compiles graphs, loaded on first use: that takes a third of the time of importing the library."""
    with UNSTOPPED, LoadingPause():
        from wengert.compile.executable import GraphFunction
    return GraphFunction


def native_function(graph: Graph, wish: Wish) -> GraphFunction | None:
    """Return a graph as native code, if that is asked for; at its first call, if that is wished."""
    if not config.NATIVE or wish is False:
        return None
    return load_native_functions()(graph, wish is True, EAGER_CALLS if wish == EAGER else 0)


def function_of(graph: Graph, wish: Wish) -> Run:
    """Return a graph as a function of arrays and numbers."""
    return native_function(graph, wish) or as_function(graph)


class GraphCall(Primitive):
    """Be calls of a traced function with gradients for some inputs; the vjp runs the backward half on the residuals.

    Where these are rows of rows, or something is a Tensor, as in lanes or if the sweep itself is differentiated, the
    vjp calls the form of the gradient, which makes them again.
    """

    kind = "opaque"
    firm = False

    def __init__(self, form: TracedForm, key: GradientKey, moving: Sequence[bool], masks: bool, steep: bool) -> None:
        super().__init__(form.name, as_function(form.graph))
        self.traced = form
        self.key = key
        self.moving = moving
        self.masks = masks
        self.steep = steep
        self.outputs = len(form.graph.outputs)
        self.floats = [i for i, x in enumerate(form.graph.outputs) if is_differentiable(aval_of(x).dtype)]

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run the backward half, or the whole gradient on Tensors if the sweep itself is differentiated."""
        cts = ct if type(ct) is list else [ct]
        if not self.key.masked and self.hides(cts):
            return self.guarded_primitive.vjp(ct, out, operands, avals, params)
        given = [self.complete(cts[i], i) for i in self.floats]
        if out is None or any(type(x) is Tensor for x in (*given, *operands)):
            found = call_form(self.traced.gradient(self.key), (*operands, *given))
        else:
            halves = self.traced.partition(self.key)
            found = halves.backward(*[operands[i] for i in halves.read], *out, *given)
        results: list[Any] = [None] * len(operands)
        for i, value in zip((i for i, want in enumerate(self.key.wanted) if want), found, strict=True):
            results[i] = unwrap_plain(current(value)) if type(value) is Tensor else np.asarray(value)[()]
        return results

    def hides(self, cts: Sequence[Any]) -> bool:
        """Tell whether a result that is no constant has no cotangent."""
        return any(cts[i] is None and self.moving[i] for i in self.floats)

    @cached
    def guarded_primitive(self) -> Primitive:
        """The same for sweeps that have passed a mask."""
        return self if self.key.masked else self.behind(self.key.steep)

    def shielded_primitive(self, _masked: bool) -> Primitive:
        """Return the same for sweeps that have passed an infinite partial."""
        return self if self.key.steep else self.behind(True)

    def behind(self, steep: bool) -> GuardedCall:
        """Return the same for sweeps that have passed a mask, and with `steep` an infinite partial."""
        key = self.key._replace(masked=True, steep=steep)
        return GuardedCall(self.traced, key, self.moving, True, self.steep or steep)

    def complete(self, ct: Any, index: int) -> Any:
        """Return the cotangent of an output; zeros if it received none."""
        aval = aval_of(self.traced.graph.outputs[index])
        return np.zeros(aval.shape, aval.dtype)[()] if ct is None else ct


class GuardedCall(GraphCall):
    """Be a call that a sweep comes to that has passed a mask or an infinite partial: its forward half runs again.

    That gives what the guards need.
    """

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run both halves; on Tensors the whole gradient, which makes what it needs itself."""
        if out is not None and not any(type(x) is Tensor for x in operands):
            out = self.traced.partition(self.key).run(operands)[self.outputs :]
        return super().vjp(ct, out, operands, avals, params)


class FormCall(CallPrimitive):
    """Be calls of a form with lanes, tangents or series: calls of the form that does to all what it does to one."""

    def __init__(self, form: TracedForm) -> None:
        super().__init__(form.name)
        self.traced = form

    def run(self, *operands: Any, **_params: Any) -> tuple[Any, ...]:
        """Call the form."""
        return tuple(call_form(self.traced, operands))

    def push(
        self, values: Sequence[Any], parts: Sequence[Any], params: Mapping[str, Any], order: int | None, passed: Passed
    ) -> Any:
        """Call the form of values and what moves with them."""
        flags = tuple([part is not None for part in parts])

        def make() -> tuple[Graph, list[bool]]:
            results = self.reach(flags, params, True)
            graph, ends = forward_graph(params["graph"], flags, results, order, passed)
            return graph, [*results, ends.masked, ends.steep]

        form, (*results, masked, steep) = self.traced.derived_form(("push", flags, order, passed), make)
        found = call_form(form, fit_operands(form, [*values, *chain(*select_flagged(parts, flags))]))
        return found[: len(results)], scatter_parts(found[len(results) :], results, order), Passed(masked, steep)

    def lanes(self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
        """Call the form of all lanes."""
        graph, flags = params["graph"], tuple(batched)

        def make() -> tuple[Graph, list[bool]]:
            results = self.reach(flags, params, False)
            return batched_graph(lambda *xs: evaluate(graph, xs), size, graph.inputs, flags, results), results

        form, results = self.traced.derived_form(("lanes", size, flags), make)
        return call_form(form, fit_operands(form, values)), results


def fit_operands(form: TracedForm, operands: Sequence[Any]) -> list[Any]:
    """Return operands as the inputs of a form."""
    return list(map(fitting, form.graph.inputs, operands))


def call_form(form: TracedForm, operands: Sequence[Any]) -> Sequence[Any]:
    """Run a traced function on operands of any kind.

    Where it has loops, what traces add to it is traced, too, once for each kind of call. Else the operations are those
    of the traces, as they are in lanes some of which are not active: those may have no end.
    """
    values = [current(x) if type(x) is Tensor else x for x in operands]
    trace, _ = innermost(values)
    if trace is None:
        return form.function(*[x._value if type(x) is Tensor else x for x in values])
    below = list(map(trace.value_below, values))
    plain = not any(type(x) is Tensor for x in below)
    if plain and isinstance(trace, Tape) and not recording(trace):
        results = form.function(*below)
        trace.require_outside_of_forward(tuple(results))
        return results
    as_one = form.repeats and ACTIVE.mask is None and not any(map(is_staged, values))
    if isinstance(trace, Tape):
        if (plain or as_one) and trace.fast and recording(trace) and not PACKING.get():
            return form.apart(with_views_resolved(lambda *xs: record_form(form, trace, xs), *operands))
    elif as_one and type(trace) in DERIVING:
        return form.apart(trace.process(form.call, values, {"graph": form.graph, "name": form.name}))
    return form.apart(evaluate(form.graph, values))


def record_form(form: TracedForm, tape: Tape, values: Sequence[Any]) -> Sequence[Any]:
    """Record a call as one node: of plain values that nobody will change the forward half, of others their call."""
    inputs = tuple(map(tape.node_of, values))
    wanted = tuple(node is not None for node in inputs)
    operands = tuple([tape.residual(x) for x in values])
    plain, count = not any(type(x) is Tensor for x in operands), len(form.graph.outputs)
    partition = form.partition(GradientKey(wanted, lanes=1 if plain else lane_number(operands)))
    halved = plain and not partition.is_ragged
    results = partition.run(operands) if halved else list(map(unwrap_plain, call_form(form, operands)))
    node = new_node(partition.call, tuple(keep_places(inputs, partition.reached)), {}, operands, caller(2))
    node.out = tuple(results[count:]) if halved else None
    outs = [x if is_number(x) or type(x) is Tensor else np.asarray(x)[()] for x in results[:count]]
    if not any(partition.moving):
        return outs
    if count == 1 and is_differentiable(aval_of(outs[0]).dtype):
        node.shape, node.dtype, _ = aval_of(outs[0])
        result = make_tensor(outs[0], tape, node)
        result._kept = True
        return [result]
    pairs = zip(outs, partition.moving, strict=True)
    return [tape.output(node, i, out, True) if moves else out for i, (out, moves) in enumerate(pairs)]


DERIVING = frozenset({Batch, Dual, Jet})
"""The traces that call a form of what they add to it; a listing looks at each operation."""
