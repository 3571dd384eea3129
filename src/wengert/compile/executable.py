"""A graph as a function of arrays: its native segments, compiled or found in the cache, and NumPy between them.

Inside of loops and branches that NumPy evaluates, loops and small matrices run natively where a program does all of it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.compile.compilation_cache import Keeper
from wengert.compile.programs import REFUSALS, in_memory
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, evaluate, subgraphs
from wengert.core.primitives.structured import Structured
from wengert.core.values.execution_state import COUNTING, RoundCounter, TooManyRounds
from wengert.native.availability import UnavailableError
from wengert.native.entries.callee import Callee
from wengert.native.entries.entry import Entry
from wengert.native.entries.kinds import NOTHING, Beside, Kind, kind_of
from wengert.native.executable import Executable
from wengert.passes.equations import distinct_variables, enter, inside, may_be_step
from wengert.passes.output_aliasing import merged_results
from wengert.passes.pipeline import flatten_calls
from wengert.passes.segments import Segment, Segments
from wengert.support import config
from wengert.support.caches import cached
from wengert.support.collector_pause import without_collector
from wengert.support.fork_safety import UNSTOPPED
from wengert.support.scopes import OtherAttributes

if TYPE_CHECKING:  # what was kept is loaded without it
    from wengert.kernel.backend import Loaded

Evaluation = Callable[[Sequence[Any]], Sequence[Any]]


def call_program(program: Loaded, arrays: Sequence[Any]) -> Sequence[Any]:
    """Return the outputs of a program."""
    return program(arrays)


class Natively(Structured):
    """Run one operation natively, of which there is a program."""


class NativeGraph:
    """Run a graph natively as far as programs can.

    Args:
        graph: without calls, if `is_apart`.
        is_apart: whether each loop, and each routine of small matrices, is a program by itself.

    Attributes:
        segments: it in segments; each equation that NumPy computes has its reason there.
        callee: what computes all of the graph at once, as entries call it; None if there is nothing.
        others: what computes parts that a program could not.
    """

    def __init__(self, graph: Graph, is_apart: bool = False) -> None:
        self.graph, self.is_apart = graph, is_apart
        self.segments = with_native_loops(in_memory(built_segments(Keeper(graph, is_apart))))
        self.callee = self.segments.whole.callee if isinstance(self.segments.whole, Executable) else None
        self.others: dict[int, Evaluation] = {}

    @property
    def is_native(self) -> bool:
        """Whether any of it is."""
        return any(part.program is not None or holds_native(part.graph) for part in self.segments.parts)

    def run(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the graph's inputs."""
        return self.segments.run(values, call_program, instead=self.instead)

    def instead(self, graph: Graph, values: Sequence[Any]) -> Sequence[Any]:
        """Return what a part gives that its program could not compute: each step alone, or NumPy, which raises."""
        if id(graph) not in self.others:
            flat = flatten_calls(graph) if graph is self.graph and not self.is_apart else graph
            is_one = self.is_apart or len(flat.equations) == 1 or not any(map(may_be_step, flat.equations))
            self.others[id(graph)] = (
                partial(evaluate, inside(flat, natively)) if is_one else NativeGraph(flat, is_apart=True).run
            )
        return self.others[id(graph)](values)


def built_segments(keeper: Keeper) -> Segments:
    """Return a graph in segments that the back end has built, those of an earlier process if they were kept."""
    kept = keeper.load_segments()
    if kept is None:
        with UNSTOPPED:
            from wengert.compile.codegen import compile_segments, keep  # which take as long to load as all of Wengert

        kept = compile_segments(keeper.graph, keeper.is_apart)
        keep(keeper, kept)
    return kept


def with_native_loops(segments: Segments) -> Segments:
    """Return segments where the loops inside of those that NumPy evaluates are native if they can be."""

    def lower_loops(part: Segment) -> Segment:
        graph = part.graph if part.program is not None else inside(part.graph, natively)
        return Segment(graph, part.program, part.reasons, part.dropped, part.is_whole)

    return Segments(segments.graph, tuple(map(lower_loops, segments.parts)))


def natively(graph: Graph) -> Graph:
    """Return a graph whose loops, those inside of them, and small matrices run natively if they can."""
    return Graph(graph.inputs, tuple(map(native_equation, graph.equations)), graph.outputs)


def native_equation(equation: Equation) -> Equation:
    """Return an operation as one that runs natively; with such ones in its graphs if it cannot be one."""
    if may_be_step(equation):
        inputs = distinct_variables(equation.inputs)
        native = NativeGraph(Graph(inputs, (equation,), equation.outputs), is_apart=True)
        if native.segments.whole is not None:
            primitive = Natively(equation.primitive.name, lambda *operands: native.run(operands))
            return Equation(primitive, tuple(inputs), {}, equation.outputs, equation.origin)
    return enter(equation, natively) if equation.primitive.structured else equation


def holds_native(graph: Graph) -> bool:
    """Tell whether some operation of a graph, or inside of it, runs natively."""
    return any(
        isinstance(equation.primitive, Natively) or any(holds_native(inner) for _, inner in subgraphs(equation.params))
        for equation in graph.equations
        if equation.primitive.structured
    )


class Compiled(NativeGraph):
    """Run a graph that may have calls, as a function of its inputs.

    Attributes:
        merged: the places of the results that must be copied, since only merging made one array of them.
    """

    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self.merged = merged_results(graph, self.segments.graph)

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the graph's inputs."""
        results = self.run(values)
        if not self.merged:
            return results
        copied = [i in self.merged and type(x) is np.ndarray for i, x in enumerate(results)]
        return tuple([x.copy(order="K") if copy else x for copy, x in zip(copied, results, strict=True)])


def calls_to_wait(graph: Graph) -> int:
    """Return how many calls NumPy evaluates before a graph is compiled, whether or not an earlier process has done it.

    If that mattered, two runs of a program could differ in the last digits.
    """
    with UNSTOPPED:
        from wengert.lowering.costs import calls_before  # with the opcodes, which what is kept has no need of

    return calls_before(graph)


class GraphFunction(Entry):
    """Be a graph as a function of arrays and numbers of the types of its inputs, compiled when that is worth it.

    Where one program computes all of it, calls are native from the third one with arguments of some kinds on.

    Args:
        graph: the graph.
        at_once: whether it is compiled at its first call, whatever that costs.
        least: how many calls NumPy evaluates at least, as long as loops have no more rounds than are usual.

    Attributes:
        waiting: how many calls NumPy evaluates until it is compiled.
        called: whether it has been called since: a variant takes longer than a call.
    """

    called = False

    def __init__(self, graph: Graph, at_once: bool = False, least: int = 0) -> None:
        self.graph = graph
        self.waiting = 0 if at_once or config.AT_ONCE else max(calls_to_wait(graph), least)

    def compile(self) -> bool:
        """Compile the graph, however often it has been called; tell whether some of it is native."""
        self.waiting = 0
        return self.executable is not None

    @cached
    def executable(self) -> Compiled | None:
        """The graph compiled; None where LLVM cannot, and where NumPy computes all of it."""
        try:
            found = without_collector(Compiled, self.graph)
        except REFUSALS:
            return None
        return found if found.is_native else None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        evaluated = self.evaluate_in_time(values) if self.waiting else None
        if evaluated is not None:
            return evaluated
        if self.executable is None:
            return tuple(evaluate(self.graph, values))
        results = self.executable(values)  # first: what raises an error here is not offered again
        if self.called and self.callee is not None:
            self.offer(self, list(map(kind_of, values)))
        self.called = True
        return results

    def evaluate_in_time(self, values: Sequence[Any]) -> tuple[Any, ...] | None:
        """Return the outputs by NumPy; None, and wait no longer, if loops have more rounds than there is time for."""
        if self.rounds is None:
            self.waiting -= 1
            return tuple(evaluate(self.graph, values))
        least, usual, times = self.rounds
        given = self.waiting * usual - least
        counter = RoundCounter(given, times)
        try:
            with OtherAttributes(COUNTING, counter=counter):
                results = tuple(evaluate(self.graph, values))
        except TooManyRounds:
            self.waiting = 0
            return None
        taken = least + given - counter.left
        self.waiting = max(self.waiting - max(int(taken / usual), 1), 0)
        return results

    @cached
    def rounds(self) -> tuple[float, float, Mapping[int, float]] | None:
        """How long a call takes whose loops of unknown length have no rounds, and the usual ones; what a round takes.

        None if there are no such loops.
        """
        with UNSTOPPED:
            from wengert.lowering.costs import call_time, round_times

        times = round_times(self.graph)
        return (call_time(self.graph, 0), call_time(self.graph), times) if times else None

    @property
    def callee(self) -> Callee | None:
        """What computes all of the graph at once, if there is such a thing by now."""
        return None if self.waiting or self.executable is None else self.executable.callee

    def offer(
        self,
        entry: Entry,
        arguments: Sequence[Kind | None],
        names: Sequence[str] = (),
        arranged: Callable[[Sequence[Kind]], Kind | None] | None = None,
        beside: Beside = NOTHING,
    ) -> None:
        """Let an entry call the program natively from now on, if one program computes all of the graph.

        Args:
            entry: what is called.
            arguments: the kinds of its arguments, whose arrays and numbers are the graph's inputs; None for arguments
                that have none.
            names: of those that are given by name, the last ones.
            arranged: gives the kind of the result for those of the outputs; a tuple of them unless it is told.
            beside: what else is read and written; the last outputs are those that donated arguments get.
        """
        callee = self.callee
        if callee is not None and self.executable is not None:
            with UNSTOPPED:
                from wengert.compile.variants import variant_of  # which a function that is called once has no need of

            with contextlib.suppress(UnavailableError):
                made = variant_of(callee, self.executable.segments.graph, arguments, names, arranged, beside)
                if made is not None:
                    entry.add(made)
