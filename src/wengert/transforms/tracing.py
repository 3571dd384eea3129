"""From functions to graphs and back: `trace`, and the gradient of a graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

import numpy as np

from wengert.control.side_effects import Reach
from wengert.control.traced_calls import graph_of_values
from wengert.core.containers.tree_leaves import accessors_of, flatten, unflatten
from wengert.core.diagnostics.argument_checks import as_whole, require_callable
from wengert.core.diagnostics.store_guard import NUMPYS, call_user, writes_traced
from wengert.core.graph.equation import require_graph
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.memory.memory_layout import Strides, order_of_argument
from wengert.core.primitives.declaration_checks import CONVERTING, TRACING_CALLS
from wengert.core.values.aval import aval_of, is_differentiable
from wengert.core.values.object_arrays import leaves_of_result
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError, ShapeError, TracedTruthError, UsageError, WengertError
from wengert.passes.pipeline import simplify_graph
from wengert.support.attributes import attribute, signature
from wengert.support.config import LOGGED
from wengert.support.records import NamedTuple
from wengert.support.refusals import forgive, refusal_count
from wengert.traces.staging import stage_function
from wengert.traces.written_out import LEAST_ROUNDS, ROLLING, LongLoop, RollingScope
from wengert.transforms.boundary import Narrowed, name_of
from wengert.transforms.recorded_call import Recording, ones_for
from wengert.transforms.result_checks import require_arrays

T = TypeVar("T")
R = TypeVar("R")
UNLIKE = (WengertError, TypeError, ValueError, LookupError, ArithmeticError, AttributeError)
"""What a program may end with that gets traced values where it has Python's numbers if a loop is written out."""


class Traced(NamedTuple):
    """Hold a graph with the containers of the function it came from, and the Tensors that the function captured."""

    graph: Graph
    structure: Any
    captured: tuple[Tensor, ...]


def trace_function(
    function: Callable[..., Any],
    name: str,
    leaves: Sequence[Any],
    rebuild: Callable[[Sequence[Any]], Any],
    names: Sequence[str] = (),
    reach: Reach | None = None,
    orders: Sequence[Strides] = (),
) -> Traced:
    """Trace a function to a graph.

    Of the examples only shapes and dtypes matter; `rebuild` puts leaves into the containers of the arguments, `reach`
    is what the function can reach, if that is known already, and `orders` says how leaves lie in memory.
    """
    structure: Any = None

    def flat(inputs: list[Tensor]) -> Sequence[Any]:
        nonlocal structure
        args, kwargs = rebuild(inputs)
        found, structure = leaves_of_result(call_user(function, args, kwargs))
        require_arrays(name, found, structure)
        return found

    label = name_of(name, function)
    with reach or Reach(label, function):
        graph, captured = stage_function(flat, list(map(aval_of, leaves)), label, names, orders)
    return Traced(simplify_graph(graph), structure, tuple(captured))


class Attempts(Generic[T]):
    """Trace forms of a function until one can be traced: what one did until it could not, the next does again.

    All reach the same, which takes longer to go through than many functions take to be traced.

    Args:
        run: traces a form of it, given what that can reach.
        reach: what they can reach.
    """

    def __init__(self, run: Callable[[Callable[..., Any], Reach], T], reach: Reach) -> None:
        self.run = run
        self.reach = reach
        self.before = refusal_count()

    def as_written(self, function: Callable[..., Any], *, watched: bool) -> tuple[T] | WengertError | None:
        """Trace it as it is; return the error if it asks a traced value, or, watched, writes out a long loop.

        So it does if traced values are written into an ndarray.

        One that reaches iterators is not traced: what is taken from them cannot be put back.
        """
        if self.reach.heap.iterators:
            return None
        try:
            with RollingScope(watched=watched):
                return (self.run(function, self.reach),)
        except WengertError as error:
            if not isinstance(error, TracedTruthError) and not error.writes:
                raise
            self.undo()
            return error

    def trace_rolled(self, form: Callable[..., Any], least: int) -> tuple[T] | None:
        """Trace a converted form with long loops as equations; return None if it may be traced without them."""

        def trace_loops(making: bool) -> tuple[T] | None:
            with RollingScope(allowed=not self.reach.heap.iterators, least=least, making=making):
                try:
                    found = self.run(form, self.reach)
                    for require_unchanged in ROLLING.steady.values():
                        require_unchanged()
                    return (found,)
                except UNLIKE as error:
                    if not ROLLING.rolled or (writes_traced(error) and not making):
                        raise
                    say_loops(error)
                    self.undo()
                    return None

        return self.making_arrays(trace_loops)

    def trace_converted(self, form: Callable[..., Any]) -> T:
        """Trace a converted form with loops written out."""

        def trace_all(making: bool) -> T:
            with RollingScope(making=making):
                return self.run(form, self.reach)

        return self.making_arrays(trace_all)

    def making_arrays(self, run: Callable[[bool], R]) -> R:
        """Call what traces a converted form with whether arrays that it makes are Tensors: if ndarrays will not do.

        Nor do these if the form leaves one where the user's program finds it, in place of an ndarray.
        """
        try:
            return run(False)
        except UNLIKE as error:
            if self.reach.heap.iterators or not writes_traced(error):
                raise
        self.undo()
        found = run(True)
        if self.reach.heap.keeps_new_tensors():
            self.undo()
            try:
                return run(False)  # whose error comes again
            finally:
                self.undo()
        return found

    def undo(self) -> None:
        """Put back what a form changed."""
        forgive(self.before)
        self.reach.heap.restore()


def trace_converting(
    name: str,
    function: Callable[..., Any],
    run: Callable[[Callable[..., Any], Reach], T],
    more: Sequence[Any] = (),
    running: Callable[..., Any] | None = None,
    *,
    by_elements: bool = False,
) -> tuple[T, Callable[..., Any]]:
    """Trace a function as it is written, or in its converted form if it asks a traced value for its truth.

    A function that writes out a `for` of many rounds is converted, too, and traced with that as one equation; if that
    cannot be, or what follows the loop has to know more than a graph does, it is written out.

    Args:
        name: of what traces it.
        function: the user's.
        run: traces a form of it, given what that can reach.
        more: what is added to that.
        running: the form that earlier traces came to.
        by_elements: whether it is asked which elements depend on which: loops that could be written out are, since
            there each round reads and writes elements that are known.

    Returns:
        What `run` gave, and the form that the next trace begins with.
    """
    rewritten = function if running is None else running
    attempts = Attempts(run, Reach(name, rewritten, more))
    if rewritten is function:
        found = attempts.as_written(function, watched=not by_elements)
        if isinstance(found, LongLoop):
            found = trace_rolled(attempts, function) or attempts.as_written(function, watched=False)
        if isinstance(found, tuple):
            return found[0], function
        from wengert.conversion.operations import convert  # rewriting source is needed by few programs

        try:
            rewritten = convert(function)
        except UsageError as error:
            if found is not None:
                raise (found if found.writes else error) from None
    rolled = None if by_elements else attempts.trace_rolled(rewritten, 2)
    return (attempts.trace_converted(rewritten) if rolled is None else rolled[0]), rewritten


def trace_rolled(attempts: Attempts[T], function: Callable[..., Any]) -> tuple[T] | None:
    """Trace a function that writes out a loop with that as one equation; return None if that cannot be."""
    from wengert.conversion.operations import convert

    try:
        return attempts.trace_rolled(convert(function), LEAST_ROUNDS)
    except UNLIKE as error:  # its source is not there, or it is not the same: written out, it may have no error
        say_loops(error)
        attempts.undo()
        return None


def say_loops(error: Exception) -> None:
    """Say that a function is traced with all loops written out, if somebody asks."""
    if "loops" in LOGGED:
        from wengert.support.logs import say

        say("loops", f"all loops are written out, since with equations in their place it ends with {error}")


def run_converting(function: Callable[..., Any], run: Callable[[Callable[..., Any]], T]) -> T:
    """Return what `run` makes of a user's function that is called where nothing is traced to a graph of its own.

    It is that of its converted form if it asks a traced value, or lets NumPy put one that is followed into an ndarray.
    """
    attempts = Attempts(lambda form, _: run(form), Reach("a function", function))
    try:
        return run(function)
    except (WengertError, *NUMPYS) as error:
        if not (writes_traced(error) or isinstance(error, TracedTruthError)):
            raise
        from wengert.conversion.operations import callee

        found = callee(function)
        if found is function:
            raise
    attempts.undo()
    return attempts.trace_converted(found)


def call_converting(function: Callable[..., Any], *args: Any) -> Any:
    """Return what a user's function gives for arguments, in the same way."""
    return run_converting(function, lambda form: form(*args))


CONVERTING.append(run_converting)
TRACING_CALLS.append(graph_of_values)


def trace(function: Callable[..., Any]) -> Callable[..., Graph]:
    """Return a function that traces another one to a graph, for example arguments.

    The graph's inputs are the leaves of the arguments, called by the argument's name (`weights.0` in a container),
    and its outputs the leaves of the result. Tensors under differentiation that the function captures become further
    inputs; other captured arrays become literals. Python's `if`, `while` and `for` over traced values become equations
    that choose and repeat, as under `jit`.

    Args:
        function: a function of arrays, in any containers.

    Returns:
        A function of examples, of which only shapes, dtypes and orders in memory matter, that returns the graph.

    Raises:
        DtypeError: an example is not a number or a numeric array.
        GraphError: the function looked at the elements of an array.

    >>> import numpy as np
    >>> print(trace(lambda x, y: np.log(x) + x * y)(2.0, 5.0))
    graph(x: float, y: float)
      v1 = log(x)  # float64[]
      v2 = multiply(x, y)  # float
      v3 = add(v1, v2)  # float64[]
      return v3
    """
    require_callable("trace", function)
    return make_tracing(function, by_elements=False)


def trace_by_elements(function: Callable[..., Any]) -> Callable[..., Graph]:
    """Return what `trace` does, with loops written out that could be: it is asked which elements depend on which."""
    return make_tracing(function, by_elements=True)


def make_tracing(function: Callable[..., Any], *, by_elements: bool) -> Callable[..., Graph]:
    """Return what traces a function for examples."""

    def trace_examples(*args: Any, **kwargs: Any) -> Graph:
        leaves, structure = flatten((args, kwargs))
        names = input_names(function, accessors_of(structure))
        for leaf, label in zip(leaves, names, strict=True):
            require_numeric(leaf, label)
        orders = list(map(order_of_argument, leaves))

        def graph_of(form: Callable[..., Any], reach: Reach) -> Graph:
            rebuild: Callable[[Sequence[Any]], Any] = functools.partial(unflatten, structure)
            return trace_function(form, "trace", leaves, rebuild, names, reach, orders).graph

        return trace_converting(name_of("trace", function), function, graph_of, by_elements=by_elements)[0]

    return trace_examples


def require_numeric(leaf: Any, name: str) -> None:
    """Raise a DtypeError for an example that is neither a number nor a numeric array."""
    known = isinstance(attribute(leaf, "dtype"), np.dtype) or isinstance(leaf, bool | int | float | complex)
    if not known or aval_of(leaf).dtype.kind not in "biufc":
        given = f"{leaf!r:.60} as the example of {name or 'an input'}"
        needed = "a number or a numeric array is needed"
        raise DtypeError("trace", given, needed, "Bind other arguments beforehand, with functools.partial or a lambda")


def input_names(function: Callable[..., Any], places: Sequence[Sequence[Any]]) -> list[str]:
    """Return names for the leaves of (args, kwargs), from the function's parameters and the places in containers.

    The places are the steps that lead to each leaf, as optree's accessors give them.
    """
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):  # functions written in C may have none
        return [""] * len(places)
    single = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "")

    def name_of_leaf(kind: int, argument: Any, *place: Any) -> str:
        if kind == 0 and argument >= len(single):
            parts = (rest, argument - len(single), *place)
        else:
            parts = (single[argument] if kind == 0 else argument, *place)
        return ".".join(map(str, parts))

    names = [name_of_leaf(*(getattr(step, "field", step.entry) for step in steps)) for steps in places]
    return names if len(set(names)) == len(names) else [""] * len(names)


def as_function(graph: Graph) -> Callable[..., tuple[Any, ...]]:
    """Return a graph as a function of its inputs."""
    return lambda *args: evaluate(graph, args)


def gradient(graph: Graph, wrt: int | str | Sequence[int | str] | None = None, *, output: int = -1) -> Graph:
    """Return the graph that computes a graph's outputs and, after them, the gradients of one of them.

    Partial results that outputs and gradients share are computed once, and what neither needs is left out. The last
    output is the one differentiated, so that the gradient of a gradient is the second derivative.

    Args:
        graph: a graph.
        wrt: the inputs to differentiate, by position or name; by default all that have a float or complex dtype.
        output: which output to differentiate; it must be a real scalar.

    Returns:
        A graph of the same inputs, with the same outputs followed by one gradient for each input in `wrt`.

    Raises:
        ShapeError: the output is not a scalar.
        DtypeError: the output is not a real float, or an input has a dtype without derivatives.
        UsageError: there is no such output or input.

    >>> cube = trace(lambda x: x**3)(2.0)
    >>> [float(y) for y in gradient(gradient(gradient(cube)))(2.0)]
    [8.0, 12.0, 12.0, 6.0]
    """
    require_graph("gradient", graph)
    position = output_position(graph, as_whole("gradient", "output", output))
    chosen = input_positions(graph, wrt)

    def both(*args: Any) -> Any:
        function = Narrowed(as_function(graph), args, chosen)
        run = Recording("gradient", function, [args[i] for i in chosen], {}, range(len(chosen)), False)
        seeds = [ones_for(x) if i == position else None for i, x in enumerate(run.outputs)]
        return (*run.values(), *run.sweep(seeds, retain=False))

    avals, names, orders = zip(*[(v.aval, v.name, v.strides) for v in graph.inputs], strict=True)
    return trace_function(both, "gradient", avals, lambda xs: (xs, {}), names, orders=orders).graph


def output_position(graph: Graph, output: int) -> int:
    """Return the position of the output to differentiate, counted from the front; it must be a real scalar."""
    count = len(graph.outputs)
    if not -count <= output < count:
        given = f"output={output} of a graph with {count} outputs"
        raise UsageError("gradient", given, "one of them is needed", "Name it")
    shape, dtype, _ = aval_of(graph.outputs[output])
    if shape != ():
        action = "Reduce it before tracing, for instance with .sum(), or choose another with output="
        raise ShapeError("gradient", f"an output of shape {shape}", "a scalar, of shape (), is needed", action)
    if dtype.kind != "f":
        action = "Convert it before tracing, or choose another with output="
        raise DtypeError("gradient", f"an output of dtype {dtype}", "a real float is needed", action)
    return output % count


def input_positions(graph: Graph, wrt: int | str | Sequence[int | str] | None) -> tuple[int, ...]:
    """Return the positions of the inputs to differentiate."""
    if wrt is None:
        return tuple(i for i, v in enumerate(graph.inputs) if is_differentiable(v.dtype))
    names = [variable.name for variable in graph.inputs]
    chosen = []
    for one in wrt if isinstance(wrt, list | tuple | set | frozenset | range) else (wrt,):
        count = len(names)
        if one in names[: count if isinstance(one, str) else 0]:
            chosen.append(names.index(str(one)))
        elif isinstance(one, int) and -count <= one < count:
            chosen.append(one % count)
        else:
            raise UsageError(
                "gradient",
                f"wrt={one!r:.40} for a graph of {count} inputs ({', '.join(filter(None, names)) or 'without names'})",
                "positions or names of inputs are needed",
                "Print the graph to see them",
            )
    for i in chosen:
        if not is_differentiable(graph.inputs[i].dtype):
            needed = "float or complex inputs are needed to differentiate"
            raise DtypeError("gradient", f"the input {graph.inputs[i]!r}", needed, "Leave it out of wrt")
    return tuple(chosen)
