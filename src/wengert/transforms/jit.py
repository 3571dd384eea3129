"""`jit`: trace a function once for each kind of argument, and run the graph many times."""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, TypeVar, cast, overload

import numpy as np

from wengert.control.argument_aliasing import find_writes, require_apart
from wengert.control.repeated_containers import (
    ContainerChanges,
    Path,
    containers_by_path,
    may_be_repeated,
    note_changes,
)
from wengert.control.side_effects import Reach
from wengert.core.containers.tree_leaves import flatten, map_leaves, unflatten
from wengert.core.diagnostics.argument_checks import require_callable, require_number
from wengert.core.diagnostics.numpy_warnings import warn_at_users_line
from wengert.core.diagnostics.source_positions import Position, user_stacklevel
from wengert.core.diagnostics.store_guard import call_user
from wengert.core.graph.equation import Variable
from wengert.core.graph.identity import identity_of_static
from wengert.core.memory.memory_layout import order_of_argument
from wengert.core.memory.views import current
from wengert.core.primitives.signatures import MISSING
from wengert.core.values.aval import NUMBERS, aval_of, aval_text, is_number
from wengert.core.values.dispatch import plain_array
from wengert.core.values.frozen import freeze
from wengert.core.values.interop import remedy_for, type_shown
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.python_numbers import LARGEST
from wengert.core.values.recording import BUDGET, READERS, READINGS, budget_of
from wengert.core.values.tensor import Tensor, unwrap_plain
from wengert.errors import DtypeError, RangeError, UsageError
from wengert.native.entries.entry import Entry
from wengert.native.entries.kinds import AnyKind, Kind, constant_kind, kind_of
from wengert.passes.output_aliasing import merged_results
from wengert.passes.pipeline import simplify_graph
from wengert.primitives.masked import is_selection
from wengert.support.attributes import attribute, function_name, resemble
from wengert.support.caches import Recent, WeakIdentityMap
from wengert.support.collector_pause import without_collector
from wengert.support.function_protocol import is_method_of, named_alike
from wengert.support.functions_by_value import reduce_function
from wengert.support.hints import hint_attributes, hint_parameters
from wengert.traces.grad_modes import byte_count, without_hooks
from wengert.traces.staging import Staging, stage_function
from wengert.transforms.boundary import (
    A_TENSOR,
    as_given,
    as_tuple,
    known_positions,
    name_of,
    place_error,
    reject_static_donations,
    static_arguments,
)
from wengert.transforms.form_graphs import raise_in_order
from wengert.transforms.result_checks import require_arrays
from wengert.transforms.traced_form import TracedForm, call_form
from wengert.transforms.tracing import trace_converting

if TYPE_CHECKING:
    from wengert.compile.translation import Translation

Function = Callable[..., Any]
P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")
Instance = TypeVar("Instance")
MANY_TRACES = 32
MOST_FORMS = 128
"""How many graphs a jitted function keeps, with their machine code, one for each kind of arguments: 0.03 MiB each for
small functions, and 0.6 MiB for gradients of large ones. The entry knows half as many."""
FEW_FORMS = MOST_FORMS // 2
"""With so few, none goes soon."""
MOST_INSTANCES = 128
"""How many instances a method knows that cannot be referred to weakly, and therefore live as long."""
ARRAYS = frozenset({np.ndarray, np.float64, Tensor, *NUMBERS})
"""The types of arguments that hold no others, those of most calls."""


class Forms(Recent[Any, TracedForm]):
    """Be the traced forms of a function, those used last."""

    def on_eviction(self, form: TracedForm) -> None:
        """Let a form go at once, which its gradients refer to."""
        form.partitions.clear()


@hint_attributes("clear_cache", "eval_shape", "graph", "inspect_asm", "inspect_llvm", "py_func")
class Jitted(Entry, Generic[P, R]):
    """Be a function that is traced once for each kind of argument; made by `jit`.

    Attributes:
        trace_count: how often it has been traced.
    """

    __wrapped__: Callable[P, R]

    def __init__(
        self,
        fun: Callable[P, R],
        static_argnums: int | Sequence[int],
        static_argnames: str | Sequence[str],
        donate_argnums: int | Sequence[int],
        native: bool | None = None,
        memory_budget: int | str | None = None,
    ) -> None:
        resemble(self, fun)
        self.fun, self.native = fun, native
        self.memory_budget = None if memory_budget is None else byte_count(memory_budget)
        if native is not None and type(native) is not bool:
            action = "Leave it out, so that what it costs decides"
            raise UsageError("jit", f"native={native!r:.40}", "True, False or None is needed", action)
        positions = as_tuple("static_argnums", static_argnums, int)
        names = as_tuple("static_argnames", static_argnames, str)
        self.static_argnums, self.static_argnames = static_arguments(fun, positions, names)
        donated = as_tuple("donate_argnums", donate_argnums, int)
        self.donate_argnums = known_positions(fun, "donate_argnums", donated)
        reject_static_donations(fun, self.donate_argnums, self.static_argnums)
        self.forms = Forms(MOST_FORMS)
        self.instances: WeakIdentityMap[Any, Jitted[..., R]] = WeakIdentityMap()
        self.kept: Recent[int, tuple[Any, Jitted[..., R]]] = Recent(MOST_INSTANCES)  # which cannot be in these
        self.is_method = False  # whether argument 0 is one and the same instance
        self.trace_count = 0
        self.running: Function = (
            fun  # what is traced: the function, or its converted form once control flow has asked for it
        )

    def __repr__(self) -> str:
        """Return the name of the function and the arguments it has been traced for."""
        forms = [f"({', '.join(map(aval_text, form.graph.inputs))})" for form in self.forms.values()]
        name = function_name(self.fun, "__name__")
        return f"<jit({name}), traced for {' and '.join(forms) or 'nothing yet'}>"

    def __reduce__(self) -> Any:
        """Return the name under which a module has it, as functions do, or what it is made of; graphs stay here."""
        options = (self.static_argnums, self.static_argnames, self.donate_argnums, self.native, self.memory_budget)
        if not self.is_method:
            return reduce_function(self, Jitted, (self.fun, *options))
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
        known = self.instances.get(instance)
        if known is None and id(instance) in self.kept:
            known = self.kept[id(instance)][1]
            self.kept.touch(id(instance))
        if known is None:
            options = (
                (0, *self.static_argnums),
                self.static_argnames,
                self.donate_argnums,
                self.native,
                self.memory_budget,
            )
            known = of_one_instance(self.fun, options)
            try:
                self.instances[instance] = known
            except TypeError:  # without room for weak references: it lives as long as its graphs
                self.kept[id(instance)] = instance, known
        return known

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function, tracing it first if arguments of this kind are new."""
        method: Callable[..., R] | None = None
        try:
            form, given, leaves = self.form_for(args, kwargs)
        except DtypeError:
            first = next(iter(args), None)
            if flatten(first)[1] is not None or not is_method_of(self, first):
                raise
            method = self.of_instance(first)  # properties call it so, and classmethods since Python 3.13
        except UnknownShape:
            method = self.fun
        if method is not None:
            return method(*args, **kwargs)
        if form.changed:
            note_changes("jit", containers_by_path((args, kwargs)), form.changed)
        if form.written:
            require_apart("jit", (*given, *form.captured), form.written)
        results = warn_at_users_line(call_form, form, (*leaves, *form.captured))
        tensors = [x for x in given if type(x) is Tensor]
        example = A_TENSOR if tensors else None
        visible = len(results) - len(form.donated)
        for position, index in form.donated:
            if isinstance(target := given[position], np.ndarray | Tensor):
                target[...] = results[index]  # the caller's
        found = [as_given(own_memory(x, leaves), example) for x in results[:visible]]
        result = unflatten(form.structure, found)
        if not tensors:
            self.offer(form, args, kwargs, result, False)
        elif not (form.written or form.donated or any(x._trace is not None for x in tensors)):
            self.offer(form, args, kwargs, result, True)  # a write to a Tensor is more than one to its memory
        return cast(R, result)

    def offer(
        self, form: TracedForm, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, has_tensors: bool
    ) -> None:
        """Let calls like one that gave a result be native, from the second on; `has_tensors`: there are some in it."""
        if form.changed and may_be_repeated((args, kwargs), form.changed):
            return  # native code does not look whether two of them are one
        if form.is_native and not (form.reads_budget and READERS.forgotten):
            if form.called:
                if form.reads_budget:
                    READERS.functions.add(self)
                with contextlib.suppress(RecursionError):  # containers are nested too deeply
                    form.offer_to(self, self.kinds(args, kwargs), tuple(kwargs), result, has_tensors)
            form.called = True

    def form_for(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[TracedForm, list[Any], list[Any]]:
        """Return the form for arguments, traced if they are new, and their leaves, as given and as arrays."""
        if kwargs or self.static_argnums or not ARRAYS.issuperset(map(type, args)):
            statics, dynamic = self.split(args, kwargs)
            given, structure = flatten(dynamic, in_order=True)
        else:  # most calls: nothing to take apart
            statics, given, structure = None, list(args), len(args)
        try:
            leaves = [as_leaf(leaf) for leaf in given]
        except (DtypeError, RangeError) as error:
            raise place_error(error, self.fun, args, kwargs, find_refused(given)) from None
        types = tuple([type(x) if type(x) in NUMBERS else signature_of(x) for x in leaves])
        budget = BUDGET.get() if self.memory_budget is None else (self.memory_budget, False)
        key = (structure, statics, types, budget)
        form = self.forms.get(key)
        if form is None or not form.fits():
            before = READINGS.count
            with budget_of(*budget):
                form = self.forms[key] = self.trace(args, kwargs, leaves, None if statics is None else structure)
            form.budget, form.reads_budget = budget, self.memory_budget is None and READINGS.count > before
        elif len(self.forms) > FEW_FORMS:
            self.forms.touch(key)
        return form, given, leaves

    def begin_anew(self) -> None:
        """Forget all graphs: a Tensor that is a constant in them is one no more."""
        self.forget()
        self.forms.clear()

    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Translation:
        """Return what the function becomes for arguments: its graph, kernels, LLVM's language, instructions, and costs.

        Nothing is run; the function is traced if arguments of this kind are new.

        Args:
            *args: what a call would be given; anything with a `shape` and a `dtype` stands for an array in C order.
            **kwargs: likewise, by name.

        Returns:
            An object whose attributes `graph`, `kernels`, `llvm`, `asm`, `cost` and `memory` print as what they are;
            its `profile()` tells how long each kernel takes.

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

        form, _, leaves = self.form_for(*self.examples_for(args, kwargs))
        values = [unwrap_plain(current(x)) if type(x) is Tensor else x for x in (*leaves, *form.captured)]
        return Translation(form.graph, values, natively=self.native is True)

    def compile(self, *args: P.args, **kwargs: P.kwargs) -> bool:
        """Compile the function for arguments now, and keep the code on disk, without running it.

        Calls with such arguments run the code from the first one on. The function is traced if arguments of this kind
        are new. Gradients have code of their own: compile `jit(grad(f))`.

        Args:
            *args: what a call would be given; anything with a `shape` and a `dtype` stands for an array in C order.
            **kwargs: likewise, by name.

        Returns:
            Whether some of it is native code now: not where LLVM is absent, NumPy computes all of it, or
            `native=False` or WENGERT_NATIVE=0 says so.

        >>> from types import SimpleNamespace
        >>> squares = jit(lambda x: np.sum(x * x), native=False)
        >>> squares.compile(SimpleNamespace(shape=(1000,), dtype=float)), squares.trace_count
        (False, 1)
        """
        native = without_collector(lambda: self.form_for(*self.examples_for(args, kwargs))[0].native)
        return native is not None and native.compile()

    def examples_for(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[list[Any], dict[str, Any]]:
        """Return arguments with an array wherever something has a shape and a dtype."""
        static = self.static_places(len(args))
        examples = [x if i in static else map_leaves(as_example, x) for i, x in enumerate(args)]
        return examples, {k: x if k in self.static_argnames else map_leaves(as_example, x) for k, x in kwargs.items()}

    def kinds(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Kind | None]:
        """Return the kinds of arguments; None for those that native code cannot look at."""
        static = self.static_places(len(args))
        found = [constant_kind(x) if i in static else kind_of(x) for i, x in enumerate(args)]
        if self.is_method:  # the instance: it does not live as long as what would hold it
            found[0] = AnyKind(type(args[0]))
        for name, value in kwargs.items():
            found.append(constant_kind(value) if name in self.static_argnames else kind_of(value))
        return found

    def split(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[Any, Any]:
        """Return the static arguments as a hashable key, and the others."""
        static = self.static_places(len(args))
        try:
            fixed = tuple((i, identity_of_static(args[i])) for i in sorted(static)[self.is_method :])
            named = tuple((name, identity_of_static(kwargs[name])) for name in self.static_argnames if name in kwargs)
        except TypeError as error:
            given = f"a static argument that cannot be hashed ({error})"
            action = "Pass a tuple in place of a list, a frozen dataclass in place of a dictionary, or make it dynamic"
            raise UsageError("jit", given, "hashable values are needed to tell traced forms apart", action) from error
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
                raise place_error(error, self.fun, args, kwargs, leaf) from None
        self.trace_count += 1
        if self.trace_count == MANY_TRACES:
            warnings.warn(
                f"jit: {self.fun!r} has been traced {MANY_TRACES} times; "
                "arguments that change shape or static arguments that change value make each call slow",
                stacklevel=user_stacklevel(),
            )
        label = name_of("jit", self.fun)
        statics = [args[i] for i in self.static_places(len(args))]
        statics += [kwargs[name] for name in self.static_argnames if name in kwargs]

        def trace_form(function: Function, reach: Reach) -> TracedForm:
            return self.trace_with(function, reach, args, kwargs, leaves, structure)

        form: TracedForm
        form, self.running = without_collector(trace_converting, label, self.fun, trace_form, statics, self.running)
        return form

    def trace_with(
        self,
        function: Function,
        reach: Reach,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        leaves: Sequence[Any],
        structure: Any,
    ) -> TracedForm:
        """Trace one form of the function: as it was written, or converted; `reach` is what it can reach."""
        out_structure: Any = None
        stages: list[Staging] = []
        donated: list[tuple[int, int]] = []
        written: Mapping[int, Position | None] = {}
        changed: frozenset[Path] = frozenset()

        def flat(inputs: list[Tensor]) -> list[Any]:
            nonlocal out_structure, donated, written, changed
            stages.extend(x._trace for x in inputs[:1] if isinstance(x._trace, Staging))
            variables = [tensor._value for tensor in inputs]
            positional, keywords = arguments_of(structure, inputs)
            arguments = self.join(args, positional)
            fixed = {name: kwargs[name] for name in self.static_argnames if name in kwargs}
            keywords = {**keywords, **fixed}
            with ContainerChanges("jit", (args, kwargs), (arguments, keywords)) as changes:
                result = call_user(function, arguments, keywords)
            changed = changes.paths()
            found, out_structure = leaves_of_result(result, in_order=True)
            require_arrays("jit", found, out_structure)
            for stage in stages:
                inside = {i: None for i, v in enumerate(variables) if v in stage.written}
                written = {**inside, **find_writes(inputs, variables)}
                donated = self.donations(args, inputs, variables, structure, len(found))
            return [*found, *(inputs[position] for position, _ in donated)]

        with raise_in_order(stages, leaves), reach, without_hooks():
            avals, orders = list(map(aval_of, leaves)), list(map(order_of_argument, leaves))
            constants = reach.constants()
            graph, captured = stage_function(
                flat, avals, reach.name, orders=orders, outside=reach.parameters(), frozen=constants
            )
        freeze(constants, self)
        name = str(attribute(self.fun, "__name__", "jit"))
        simple = simplify_graph(graph)
        form = TracedForm(name, simple, out_structure, captured, donated, self.native)
        form.written, form.changed = written, changed
        form.merged = merged_results(graph, simple)
        return form

    def static_places(self, count: int) -> set[int]:
        """Return which of so many positional arguments are static."""
        return {i % count for i in self.static_argnums if -count <= i < count}

    def join(self, args: Sequence[Any], positional: Sequence[Any]) -> list[Any]:
        """Return all positional arguments, traced ones in place of the dynamic."""
        static = self.static_places(len(args))
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
        owners, _ = arguments_of(structure, list(range(len(inputs))))
        joined = self.join(args, owners)
        count_of = len(joined)
        donated = [leaf for i in self.donate_argnums if -count_of <= i < count_of for leaf in flatten(joined[i])[0]]
        written = [position for position in donated if inputs[position]._value is not variables[position]]
        return [(position, count + k) for k, position in enumerate(written)]


def arguments_of(structure: Any, leaves: Sequence[Any]) -> Any:
    """Return arguments, and those by name, of some leaves; without a structure, all are positional and leaves."""
    return (leaves, {}) if structure is None else unflatten(structure, leaves)


def of_one_instance(function: Any, options: Sequence[Any]) -> Jitted[..., Any]:
    """Return a method, or what a class has in its place, for calls that all have the same first argument."""
    made: Jitted[..., Any] = Jitted(function.fun if type(function) is Jitted else function, *options)
    made.is_method = True
    return made


class UnknownShape(Exception):
    """Be raised for what a traced mask selects: no graph has inputs of unknown shape, so functions run as they are."""


def signature_of(leaf: Any) -> tuple[Any, ...]:
    """Return what of an array or Tensor a function is traced for."""
    return leaf.shape, leaf.dtype, order_of_argument(leaf), type(leaf) is Tensor and leaf.weak


def as_leaf(leaf: Any) -> Any:
    """Return a dynamic argument as an array, a Tensor or a number."""
    kind = type(leaf)
    if kind in NUMBERS:
        if kind is int and not -LARGEST <= leaf < LARGEST:
            given = f"an integer of {leaf.bit_length()} bits"
            needed = "at most 63 and a sign are needed"
            raise RangeError("jit", given, needed, "Name the argument in static_argnums, or pass a float")
        return leaf
    if isinstance(leaf, Tensor | np.generic):
        if is_selection(leaf):
            raise UnknownShape
        return leaf
    if isinstance(leaf, np.ndarray):
        return leaf if kind is np.ndarray else plain_array("jit", leaf)
    if isinstance(leaf, bool | int | float | complex):
        array = np.asarray(leaf)
        if array.dtype.kind != "O":  # as integers of more than 64 bits are
            return array[()]
    action = "Name the argument in static_argnums or static_argnames, or hold it in a dataclass, in a field that is "
    action = f"{action}wengert.tree.static()"
    if hasattr(leaf, "__dict__") and not callable(leaf):
        action = f"Register its class with wengert.tree.register, if it holds arrays. Otherwise: {action}"
    given = f"an argument of type {type_shown(leaf)}"
    needed = "numbers, arrays, Tensors or containers of them are needed"
    raise DtypeError("jit", given, needed, remedy_for(leaf, action))


def as_example(leaf: Any) -> Any:
    """Return an array of the shape and dtype of what is no array but has both; others as they are."""
    shape, dtype = (attribute(leaf, name, None) for name in ("shape", "dtype"))
    if isinstance(leaf, np.ndarray | np.generic | Tensor) or shape is None or dtype is None:
        return leaf
    try:
        return np.empty(shape, dtype)  # memory that is not touched takes none
    except TypeError:  # of another library, which NumPy does not know
        return leaf


def find_refused(leaves: Sequence[Any]) -> Any:
    """Return the first of some leaves that is no dynamic argument; None if there is none."""
    for leaf in leaves:
        try:
            as_leaf(leaf)
        except (DtypeError, RangeError):
            return leaf
    return None


def own_memory(value: Any, leaves: Sequence[Any]) -> Any:
    """Return a result as an array or Tensor, in memory that is neither an argument's nor a constant's of the graph."""
    if isinstance(value, Tensor | np.generic) or is_number(value):
        return value
    array = np.asarray(value)[()]
    if not isinstance(array, np.ndarray):
        return array
    shared = any(isinstance(leaf, np.ndarray) and np.may_share_memory(array, leaf) for leaf in leaves)
    return array.copy(order="K") if shared or not array.flags.writeable else array


@overload
def jit(
    fun: Callable[P, R],
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    native: bool | None = None,
    memory_budget: int | str | None = None,
) -> Jitted[P, R]: ...
@overload
def jit(
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    native: bool | None = None,
    memory_budget: int | str | None = None,
) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...
@hint_parameters("jit")
def jit(
    fun: Any = MISSING,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    donate_argnums: int | Sequence[int] = (),
    native: bool | None = None,
    memory_budget: int | str | None = None,
) -> Any:
    """Return a function that is traced to a graph once for each kind of argument, and runs the graph from then on.

    The function must do the same for all arguments of the same shapes, dtypes, containers and static values: what it
    does besides array operations happens while it is traced only. Arrays it captures become constants; captured
    Tensors that require grad, or did before, are read anew at each call and receive gradients, others are constants
    until they do. Writes to its arguments stay inside, unless these are donated; writes to captured arrays, and to one
    of two arguments that share memory, are refused.

    Args:
        fun: a function of numbers, arrays or Tensors, in any containers. Left out, what is returned is a decorator with
            these options.
        static_argnums: positions of arguments that are passed as they are; each value is traced on its own.
        static_argnames: names of arguments treated likewise. Where the function says which name is at which position,
            it does not matter how an argument is passed.
        donate_argnums: positions of arguments that the function may overwrite.
        native: whether the function, and its gradients, become native code at their first call, or never; if it is not
            given, when that is worth it. A function that calls it and is jitted itself decides for both, and
            WENGERT_NATIVE=0 for all.
        memory_budget: how many bytes the reverse of a loop may keep, as `wengert.memory_budget` says; None for what
            holds where the function is traced.

    Returns:
        A callable with the same arguments and results; `trace_count` tells how often it was traced. Results fill memory
        of their own: views of arguments, and views that leave out or reverse elements, come as copies.

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
    options = (static_argnums, static_argnames, donate_argnums, native, memory_budget)
    if fun is MISSING:
        return lambda function: jit(function, *options)
    require_callable("jit", fun)
    return Jitted(fun, *options)
