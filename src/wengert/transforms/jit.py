"""`jit`: trace a function once for each kind of argument, and run the graph many times."""

from __future__ import annotations

import functools
import warnings
import weakref
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, NamedTuple, ParamSpec, TypeVar, cast, overload

import numpy as np

from wengert import _config
from wengert._cached import cached
from wengert._tree import flatten, unflatten
from wengert.compile.owners import merged_results
from wengert.compile.partition import cut
from wengert.compile.passes import simplified
from wengert.control.apart import require_apart, written_to
from wengert.control.effects import Reach
from wengert.core.aval import NUMBERS, Aval, aval_of, aval_text, is_differentiable, is_number
from wengert.core.cache import Cache
from wengert.core.complaints import attributed, returned
from wengert.core.dispatch import plain_array
from wengert.core.graph import Graph, Variable, evaluate
from wengert.core.identity import identity_of_static
from wengert.core.numbers import LARGEST
from wengert.core.objects import leaves_of_result
from wengert.core.order import Strides, in_normal_form, strides_of
from wengert.core.primitive import Primitive
from wengert.core.recording import settings
from wengert.core.requirements import require_callable, require_number
from wengert.core.signatures import MISSING
from wengert.core.source import Position, user_stacklevel
from wengert.core.stores import called
from wengert.core.tensor import Tensor, make_tensor, unwrapped
from wengert.core.views import current, resolved
from wengert.errors import DtypeError, RangeError, UsageError, describe
from wengert.native.entry import Entry
from wengert.native.kinds import AnyKind, Kind, constant_kind, is_found, kind_of
from wengert.native.like_function import global_name, named_alike
from wengert.traces.modes import recording
from wengert.traces.staging import Stage, staged
from wengert.traces.tape import Tape, new_record
from wengert.transforms.boundary import A_TENSOR, Narrowed, as_given, name_of, placed_among
from wengert.transforms.results import require_arrays
from wengert.transforms.reverse import Recording
from wengert.transforms.static_arguments import as_tuple, known_positions, static_arguments
from wengert.transforms.tracing import as_function, converting, trace_function

if TYPE_CHECKING:
    from wengert.compile.executable import GraphFunction
    from wengert.compile.translation import Translation

__all__ = ["Jitted", "jit"]

Function = Callable[..., Any]
Run = Callable[..., tuple[Any, ...]]
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
Instance = TypeVar("Instance")
MANY_TRACES = 32
MOST_FORMS = 1024
"""How many graphs a jitted function keeps, one for each kind of arguments."""
ARRAYS = frozenset({np.ndarray, np.float64, Tensor, *NUMBERS})
"""The types of arguments that hold no others, those of most calls."""


class TracedForm:
    """Hold one traced form of a function.

    Attributes:
        graph: inputs are the leaves of the arguments, then what the function captured.
        structure: the containers of the result.
        captured: the Tensors that the function captured.
        donated: pairs of (input, output): arguments that the function wrote to, and their last value.
        written: the positions of the arguments that it wrote to, and where it did.
        merged: the positions of the results that share memory with others only since equal equations were merged.
    """

    written: Mapping[int, Position | None] = MappingProxyType({})
    merged: frozenset[int] = frozenset()

    def __init__(
        self, name: str, graph: Graph, structure: Any, captured: Sequence[Tensor], donated: Sequence[tuple[int, int]]
    ) -> None:
        self.name = name
        self.graph = graph
        self.structure = structure
        self.captured = tuple(captured)
        self.donated = tuple(donated)
        self.partitions: dict[tuple[bool, ...], Partition] = {}

    @cached
    def native(self) -> GraphFunction | None:
        """The graph as native code, where that is asked for."""
        return native_function(self.graph)

    @cached
    def function(self) -> Run:
        """The graph as a function of arrays and numbers."""
        return self.native or evaluation(self.graph)

    def fits(self) -> bool:
        """Tell whether what the function captured still has the shapes and dtypes it was traced with."""
        variables = self.graph.inputs[len(self.graph.inputs) - len(self.captured) :]
        return all(aval_of(x) == v.aval for x, v in zip(self.captured, variables, strict=True))

    def partition(self, wanted: tuple[bool, ...]) -> Partition:
        """Return the joint graph of gradients for some inputs, and its two halves; made once."""
        found = self.partitions.get(wanted)
        if found is None:
            joint = joint_graph(self.graph, wanted)
            values = len(self.graph.inputs)
            halves = cut(joint, values, len(self.graph.outputs), at_hand=[True] * values)
            forward, places = with_distinct_outputs(halves.forward)
            functions = function_of(forward), function_of(halves.backward)
            found = Partition(joint, halves.read, *functions, places, GraphCall(self, wanted))
            self.partitions[wanted] = found
        return found

    @property
    def is_native(self) -> bool:
        """Whether native code is all there is to do.

        What Python does before and after a call is not needed where the function neither captured Tensors nor wrote to
        its arguments.
        """
        more = self.captured or self.written or self.donated or self.merged
        return not more and self.native is not None and self.native.program is not None

    def offer_to(self, entry: Entry, arguments: Sequence[Kind | None], names: Sequence[str]) -> None:
        """Let an entry whose arguments are of these kinds call native code, which is all there is to do."""
        assert self.native is not None
        self.native.offer(entry, arguments, names, functools.partial(unflatten, self.structure))


class Partition(NamedTuple):
    """Hold what calls under a tape run.

    Attributes:
        joint: the graph of values and gradients.
        read: the positions of the inputs that the backward half reads directly.
        forward: inputs to outputs and residuals, each array once.
        backward: inputs read, residuals and cotangents to gradients.
        places: of the outputs, then of the residuals, among what the forward half gives.
        call: what is recorded.
    """

    joint: Graph
    read: tuple[int, ...]
    forward: Run
    backward: Run
    places: tuple[int, ...]
    call: GraphCall


def native_function(graph: Graph) -> GraphFunction | None:
    """Return a graph as native code, if that is asked for."""
    if not _config.NATIVE:
        return None
    from wengert.compile.executable import GraphFunction  # which takes a third of the time of importing the library

    return GraphFunction(graph)


def evaluation(graph: Graph) -> Run:
    """Return the function that evaluates a graph."""
    return lambda *values: evaluate(graph, values)


def function_of(graph: Graph) -> Run:
    """Return a graph as a function of arrays and numbers."""
    return native_function(graph) or evaluation(graph)


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


def joint_graph(graph: Graph, wanted: Sequence[bool]) -> Graph:
    """Return the graph from inputs and cotangents of the float outputs to outputs and cotangents of wanted inputs."""
    chosen = [i for i, want in enumerate(wanted) if want]
    floats = [i for i, x in enumerate(graph.outputs) if is_differentiable(aval_of(x).dtype)]
    count = len(graph.inputs)

    def joint(*values: Any) -> Any:
        inputs, cts = values[:count], values[count:]
        function = Narrowed(as_function(graph), inputs, chosen)
        run = Recording("jit", function, [inputs[i] for i in chosen], {}, range(len(chosen)), False)
        given = dict(zip(floats, cts, strict=True))
        return (*run.values(), *run.swept([given.get(i) for i in range(len(graph.outputs))], retain=False))

    avals = [v.aval for v in graph.inputs] + [aval_of(graph.outputs[i]).firm for i in floats]
    return trace_function(joint, "jit", avals, lambda xs: (xs, {})).graph


class GraphCall(Primitive):
    """Be calls of a traced function with gradients for some inputs; the vjp runs the backward half on the residuals."""

    kind = "opaque"
    firm = False

    def __init__(self, form: TracedForm, wanted: tuple[bool, ...]) -> None:
        super().__init__(form.name, as_function(form.graph))
        self.traced = form
        self.wanted = wanted
        self.outputs = len(form.graph.outputs)
        self.floats = [i for i, x in enumerate(form.graph.outputs) if is_differentiable(aval_of(x).dtype)]

    def vjp(
        self, ct: Any, out: Any, operands: Sequence[Any], avals: Sequence[Aval | None], params: Mapping[str, Any]
    ) -> Sequence[Any]:
        """Run the backward half, or the whole gradient on Tensors if the sweep itself is differentiated."""
        halves = self.traced.partition(self.wanted)
        cts = ct if type(ct) is list else [ct]
        given = [self.completed(cts[i], i) for i in self.floats]
        if any(type(x) is Tensor for x in given) or out is None:
            found = evaluate(halves.joint, (*operands, *given))[self.outputs :]
        else:
            found = halves.backward(*[operands[i] for i in halves.read], *out, *given)
        results: list[Any] = [None] * len(operands)
        for i, value in zip((i for i, want in enumerate(self.wanted) if want), found, strict=True):
            results[i] = unwrapped(current(value)) if type(value) is Tensor else np.asarray(value)[()]
        return results

    def completed(self, ct: Any, index: int) -> Any:
        """Return the cotangent of an output; zeros if it received none."""
        aval = aval_of(self.traced.graph.outputs[index])
        return np.zeros(aval.shape, aval.dtype)[()] if ct is None else ct


def call_form(form: TracedForm, operands: Sequence[Any]) -> Sequence[Any]:
    """Run a traced function on operands of any kind."""
    values = [current(x) if type(x) is Tensor else x for x in operands]
    traces = {x._trace for x in values if type(x) is Tensor and x._trace is not None}
    if not traces:
        return form.function(*[x._value if type(x) is Tensor else x for x in values])
    tape = next(iter(traces))
    below = [x._value if type(x) is Tensor else x for x in values]
    plain = isinstance(tape, Tape) and tape.fast and recording(tape) and not settings().packing
    if len(traces) == 1 and plain and not any(type(x) is Tensor for x in below):
        return resolved(lambda *xs: recorded(form, tape, xs), *operands)  # type: ignore[no-any-return, arg-type]  # a tuple
    return evaluate(form.graph, values)


def recorded(form: TracedForm, tape: Tape, values: Sequence[Any]) -> Sequence[Any]:
    """Run the forward half on plain values that nobody will change, and record the call as one node."""
    inputs = tuple(map(tape.node_of, values))
    wanted = tuple(node is not None for node in inputs)
    operands = tuple([tape.residual(x) for x in values])
    partition = form.partition(wanted)
    made = partition.forward(*operands)
    results = [made[place] for place in partition.places]
    count = len(form.graph.outputs)
    node = new_record(partition.call, inputs, {})
    node.operands = operands
    node.out = tuple(results[count:])
    outs = [x if is_number(x) else np.asarray(x)[()] for x in results[:count]]
    if count == 1 and is_differentiable(aval_of(outs[0]).dtype):
        node.shape, node.dtype, _ = aval_of(outs[0])
        result = make_tensor(outs[0], tape, node)
        result._kept = True
        return [result]
    return [tape.output(node, i, out, True) for i, out in enumerate(outs)]


class Jitted(Entry, Generic[P, R]):
    """Be a function that is traced once for each kind of argument; made by `jit`.

    Attributes:
        trace_count: how often it has been traced.
    """

    def __init__(
        self,
        fun: Callable[P, R],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donate_argnums: int | Sequence[int],
    ) -> None:
        functools.update_wrapper(self, fun)
        self.fun = fun
        positions = as_tuple("static_argnums", static_argnums, int)
        names = as_tuple("static_argnames", static_argnames, str)
        self.static_argnums, self.static_argnames = static_arguments(fun, positions, names)
        donated = as_tuple("donate_argnums", donate_argnums, int)
        self.donate_argnums = known_positions(fun, "donate_argnums", donated)
        self.forms: Cache[Any, TracedForm] = Cache(MOST_FORMS)
        self.instances: dict[int, tuple[Callable[[], Any], Jitted[..., R]]] = {}
        self.is_method = False  # whether argument 0 is one and the same instance
        self.trace_count = 0
        self.running: Function = (
            fun  # what is traced: the function, or its converted form once control flow has asked for it
        )

    def __repr__(self) -> str:
        """Return the name of the function and the arguments it has been traced for."""
        forms = [f"({', '.join(map(aval_text, form.graph.inputs))})" for form in self.forms.values()]
        name = getattr(self.fun, "__name__", None) or repr(self.fun)
        return f"<jit({name}), traced for {' and '.join(forms) or 'nothing yet'}>"

    def __reduce__(self) -> Any:
        """Return the name under which a module has it, as functions do, or what it is made of; graphs stay here."""
        options = (self.static_argnums, self.static_argnames, self.donate_argnums)
        if not self.is_method:
            return global_name(self) or (Jitted, (self.fun, *options))
        original = named_alike(self)
        return of_one_instance, (original if type(original) is Jitted else self.fun, options)

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Jitted[P, R]: ...
    @overload
    def __get__(self: Jitted[Concatenate[Instance, Q], R], instance: Instance, owner: Any = None) -> Callable[Q, R]: ...
    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return the function as a method of an instance, which is static: each instance has graphs of its own."""
        return self if instance is None else functools.partial(self.of_instance(instance), instance)

    def of_instance(self, instance: Any) -> Jitted[..., R]:
        """Return the function for calls whose first argument is this instance, made once."""
        identity = id(instance)
        known = self.instances.get(identity)
        if known is None or known[0]() is not instance:
            options = ((0, *self.static_argnums), self.static_argnames, self.donate_argnums)
            made = of_one_instance(self.fun, options)
            reference: Callable[[], Any]
            try:
                reference = weakref.ref(instance, lambda _: self.instances.pop(identity, None))
            except TypeError:  # without room for weak references: it lives as long as its graphs
                reference = lambda: instance  # noqa: E731 - in the place of a weak reference
            known = self.instances[identity] = (reference, made)
        return known[1]

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, tracing it first if arguments of this kind are new."""
        form, given, leaves = self.traced(args, kwargs)
        if form.written:
            require_apart("jit", (*given, *form.captured), form.written)
        entered = attributed()
        try:
            results = call_form(form, (*leaves, *form.captured))
        finally:
            returned(entered)
        example = next((A_TENSOR for x in given if type(x) is Tensor), None)
        if example is None and form.is_native:
            form.offer_to(self, self.kinds(args, kwargs), tuple(kwargs))
        visible = len(results) - len(form.donated)
        for position, index in form.donated:
            write_back(given[position], results[index])
        found = [as_given(own(x, leaves), example) for x in results[:visible]]
        for i in form.merged:
            if i < visible and type(found[i]) is np.ndarray:
                found[i] = found[i].copy(order="K")
        return cast(R, unflatten(form.structure, found))

    def traced(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[TracedForm, list[Any], list[Any]]:
        """Return the form for arguments, traced if they are new, and their leaves, as given and as arrays."""
        if kwargs or self.static_argnums or not ARRAYS.issuperset(map(type, args)):
            statics, dynamic = self.split(args, kwargs)
            given, structure = flatten(dynamic, in_order=True)
        else:  # most calls: nothing to take apart
            statics, dynamic, given, structure = None, (args, kwargs), list(args), len(args)
        try:
            leaves = [as_leaf(leaf) for leaf in given]
        except (DtypeError, RangeError) as error:
            raise placed_among(error, self.fun, args, kwargs, first_refused(given)) from None
        key = (structure, statics, tuple([type(x) if type(x) in NUMBERS else traced_for(x) for x in leaves]))
        form = self.forms.get(key)
        if form is None or not form.fits():
            if statics is None:
                structure = flatten(dynamic)[1]
            form = self.forms[key] = self.trace(args, kwargs, leaves, structure)
        return form, given, leaves

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Translation:
        """Return what the function becomes for arguments: its graph, kernels, LLVM's language, instructions, and costs.

        Nothing is run; the function is traced if arguments of this kind are new.

        Args:
            *args: what a call would be given.
            **kwargs: likewise, by name.

        Returns:
            An object whose attributes `graph`, `kernels`, `llvm`, `asm` and `cost` print as what they are; its
            `profile()` tells how long each kernel takes.

        Raises:
            ImportError: there is no LLVM, and `llvm`, `asm` or `cost` is asked for.

        >>> lowered = jit(lambda x: np.sum(x * x)).lower(np.ones(1000))
        >>> lowered
        <2 of 2 equations in 1 kernels; print .graph, .kernels, .llvm, .asm, .cost>
        >>> lowered.cost
                  operations  flops   read  written
        kernel 0       2,000  2,000  8,000        8
             all       2,000  2,000  8,000        8
        memory besides arguments and results: 0 bytes
        """
        from wengert.compile.translation import Translation  # all of the native compiler

        form, _, leaves = self.traced(args, kwargs)
        return Translation(
            form.graph, [unwrapped(current(x)) if type(x) is Tensor else x for x in (*leaves, *form.captured)]
        )

    def kinds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Kind | None]:
        """Return the kinds of arguments; None for those that native code cannot look at."""
        count = len(args)
        static = {i % count for i in self.static_argnums if -count <= i < count}
        found = [constant_kind(x) if i in static else kind_of(x) for i, x in enumerate(args)]
        if self.is_method:  # the instance: it does not live as long as what would hold it
            found[0] = AnyKind(type(args[0]))
        for name, value in kwargs.items():
            kind = constant_kind(value) if name in self.static_argnames else kind_of(value)
            found.append(kind if is_found(name) else None)
        return found

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the static arguments as a hashable key, and the others."""
        count = len(args)
        static = {i % count for i in self.static_argnums if -count <= i < count}
        try:
            fixed = tuple((i, identity_of_static(args[i])) for i in sorted(static)[self.is_method :])
            named = tuple((name, identity_of_static(kwargs[name])) for name in self.static_argnames if name in kwargs)
        except TypeError as error:
            raise UsageError(
                describe(
                    "jit",
                    f"a static argument that cannot be hashed ({error})",
                    "hashable values are needed to tell traced forms apart",
                    "Pass a tuple in place of a list, or make the argument dynamic",
                )
            ) from error
        positional = tuple(x for i, x in enumerate(args) if i not in static)
        return (fixed, named), (positional, {k: v for k, v in kwargs.items() if k not in self.static_argnames})

    def trace(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], leaves: Sequence[Any], structure: Any
    ) -> TracedForm:
        """Trace the function for arguments of one kind."""
        for leaf in leaves:
            try:
                require_number("jit", "an argument", leaf)
            except DtypeError as error:
                raise placed_among(error, self.fun, args, kwargs, leaf) from None
        self.trace_count += 1
        if self.trace_count == MANY_TRACES:
            warnings.warn(
                f"jit: {self.fun!r} has been traced {MANY_TRACES} times; "
                "arguments that change shape or static arguments that change value make each call slow",
                stacklevel=user_stacklevel(),
            )
        if self.running is not self.fun:
            return self.trace_with(self.running, args, kwargs, leaves, structure)
        form, self.running = converting(
            name_of("jit", self.fun),
            self.fun,
            lambda function: self.trace_with(function, args, kwargs, leaves, structure),
            self.statics_of(args, kwargs),
        )
        return form

    def trace_with(
        self,
        function: Function,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        leaves: Sequence[Any],
        structure: Any,
    ) -> TracedForm:
        """Trace one form of the function: as it was written, or converted."""
        out_structure: Any = None
        donated: list[tuple[int, int]] = []
        written: Mapping[int, Position | None] = {}

        def flat(inputs: list[Tensor]) -> list[Any]:
            nonlocal out_structure, donated, written
            stage = inputs[0]._trace if inputs else None
            variables = [tensor._value for tensor in inputs]
            positional, keywords = unflatten(structure, inputs)
            arguments = self.join(args, positional)
            fixed = {name: kwargs[name] for name in self.static_argnames if name in kwargs}
            found, out_structure = leaves_of_result(called(function, arguments, {**keywords, **fixed}), in_order=True)
            require_arrays("jit", found)
            if isinstance(stage, Stage):
                written = places_written(stage, inputs, variables)
                donated = self.donations(args, inputs, variables, structure, len(found))
            return [*found, *(inputs[position] for position, _ in donated)]

        label = name_of("jit", self.fun)
        with Reach(label, function, self.statics_of(args, kwargs)) as reach:
            avals, orders = list(map(aval_of, leaves)), list(map(order_of_argument, leaves))
            graph, captured = staged(flat, avals, label, orders=orders, outside=reach.recorded())
        name = getattr(self.fun, "__name__", "jit")
        simple = simplified(graph)
        form = TracedForm(name, simple, out_structure, captured, donated)
        form.written = written
        form.merged = merged_results(graph, simple)
        return form

    def statics_of(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        """Return the static arguments."""
        count = len(args)
        named = [kwargs[name] for name in self.static_argnames if name in kwargs]
        return [args[i] for i in self.static_argnums if -count <= i < count] + named

    def join(self, args: Sequence[Any], positional: Sequence[Any]) -> list[Any]:
        """Return all positional arguments, traced ones in place of the dynamic."""
        count = len(args)
        static = {i % count for i in self.static_argnums if -count <= i < count}
        rest = iter(positional)
        return [x if i in static else next(rest) for i, x in enumerate(args)]

    def donations(
        self,
        args: Sequence[Any],
        inputs: Sequence[Tensor],
        variables: Sequence[Variable],
        structure: Any,
        count: int,
    ) -> list[tuple[int, int]]:
        """Return which donated leaves the function wrote to, with the outputs that will hold their last values."""
        if not self.donate_argnums:
            return []
        owners, _ = unflatten(structure, list(range(len(inputs))))
        joined = self.join(args, owners)
        count_of = len(joined)
        donated = [leaf for i in self.donate_argnums if -count_of <= i < count_of for leaf in flatten(joined[i])[0]]
        written = [position for position in donated if inputs[position]._value is not variables[position]]
        return [(position, count + k) for k, position in enumerate(written)]


def of_one_instance(function: Any, options: Sequence[Any]) -> Jitted[..., Any]:
    """Return a method, or what a class has in its place, for calls that all have the same first argument."""
    made: Jitted[..., Any] = Jitted(function.fun if type(function) is Jitted else function, *options)
    made.is_method = True
    return made


def places_written(stage: Stage, inputs: Sequence[Tensor], variables: Sequence[Variable]) -> dict[int, Position | None]:
    """Return the positions of the arguments that a function, or a transformation in it, wrote to, and where."""
    inside: dict[int, Position | None] = {i: None for i, v in enumerate(variables) if v in stage.written}
    return {**inside, **written_to(inputs, variables)}


def traced_for(leaf: Any) -> tuple[Any, ...]:
    """Return what of an array or Tensor a function is traced for."""
    return leaf.shape, leaf.dtype, order_of_argument(leaf), type(leaf) is Tensor and leaf.weak


def as_leaf(leaf: Any) -> Any:
    """Return a dynamic argument as an array, a Tensor or a number."""
    kind = type(leaf)
    if kind in NUMBERS:
        if kind is int and not -LARGEST <= leaf < LARGEST:
            raise RangeError(
                describe(
                    "jit",
                    f"an integer of {leaf.bit_length()} bits",
                    "at most 63 and a sign are needed",
                    "Name the argument in static_argnums, or pass a float",
                )
            )
        return leaf
    if isinstance(leaf, Tensor | np.generic):
        return leaf
    if isinstance(leaf, np.ndarray):
        return leaf if kind is np.ndarray else plain_array("jit", leaf)
    if isinstance(leaf, bool | int | float | complex):
        array = np.asarray(leaf)
        if array.dtype.kind != "O":  # as integers of more than 64 bits are
            return array[()]
    raise DtypeError(
        describe(
            "jit",
            f"an argument of type {type(leaf).__name__}",
            "numbers, arrays, Tensors or containers of them are needed",
            "Name the argument in static_argnums or static_argnames, or hold it in a dataclass, in a field that is "
            "wengert.tree.static()",
        )
    )


def first_refused(leaves: Sequence[Any]) -> Any:
    """Return the first of some leaves that is no dynamic argument; None if there is none."""
    for leaf in leaves:
        try:
            as_leaf(leaf)
        except (DtypeError, RangeError):
            return leaf
    return None


def order_of_argument(x: Any) -> Strides:
    """Return the strides of an argument in normal form; most are in C order, so that is asked first."""
    if type(x) is np.ndarray and x.flags.c_contiguous and x.ndim:
        return None
    return in_normal_form(x.shape, strides_of(x), x.dtype.itemsize) if np.ndim(x) else strides_of(x)


def own(value: Any, leaves: Sequence[Any]) -> Any:
    """Return a result as an array or Tensor, in memory that is neither an argument's nor a constant's of the graph."""
    if isinstance(value, Tensor | np.generic) or is_number(value):
        return value
    array = np.asarray(value)[()]
    if not isinstance(array, np.ndarray):
        return array
    shared = any(isinstance(leaf, np.ndarray) and np.may_share_memory(array, leaf) for leaf in leaves)
    return array.copy(order="K") if shared or not array.flags.writeable else array


def write_back(target: Any, value: Any) -> None:
    """Write the last value of a donated argument into the caller's array or Tensor."""
    if isinstance(target, np.ndarray | Tensor):
        target[...] = value


@overload
def jit(
    fun: Callable[P, R],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Jitted[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
def jit(
    fun: Any = MISSING,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
) -> Any:
    """Return a function that is traced to a graph once for each kind of argument, and runs the graph from then on.

    The function must do the same for all arguments of the same shapes, dtypes, containers and static values: what it
    does besides array operations happens while it is traced only. Arrays it captures become constants; captured
    Tensors that require grad are read anew at each call and receive gradients. Writes to its arguments stay inside,
    unless these are donated; writes to captured arrays, and to one of two arguments that share memory, are refused.

    Args:
        fun: a function of numbers, arrays or Tensors, in any containers. Left out, what is returned is a decorator with
            these options.
        static_argnums: positions of arguments that are passed as they are; each value is traced on its own.
        static_argnames: names of arguments treated likewise. Where the function says which name is at which position,
            it does not matter how an argument is passed.
        donate_argnums: positions of arguments that the function may overwrite.

    Returns:
        A callable with the same arguments and results; `trace_count` tells how often it was traced.

    Raises:
        DtypeError: a dynamic argument is no array.
        UsageError: a static argument cannot be hashed, or the function has no argument of that position or name.
        GraphError: the function writes to what it captures, or asks for elements.

    >>> square = jit(lambda x: x * x)
    >>> square(3.0), square(4.0), square.trace_count
    (9.0, 16.0, 1)

    >>> @jit(static_argnames="times")
    ... def repeated(x, times):
    ...     return x * times
    >>> repeated(2.0, times=3), repeated
    (6.0, <jit(repeated), traced for (float)>)
    """
    options = (static_argnums, static_argnames, donate_argnums)
    if fun is MISSING:
        return lambda function: jit(function, *options)
    require_callable("jit", fun)
    return Jitted(fun, *options)
