"""A graph as a function of arrays: its native segments, compiled or found in the cache, and NumPy between them.

Of what NumPy computes, loops run natively where one program does all of an iteration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert import _config
from wengert._cached import cached
from wengert._unstopped import UNSTOPPED
from wengert.compile.equations import entered, holds_graphs
from wengert.compile.keeping import Keeper
from wengert.compile.layouts import kind_for, result_kind
from wengert.compile.owners import merged_results
from wengert.compile.passes import inlined
from wengert.compile.segments import Segment, Segments, with_programs
from wengert.core.graph import Equation, Graph, Variable, evaluate, subgraphs
from wengert.core.primitive import Structured
from wengert.native.entry import Entry, Variant
from wengert.native.executable import Executable, Image
from wengert.native.kinds import MANY_LEAVES, Kind, kind_of, leaves, with_leaves
from wengert.native.loader import kept_function

__all__ = ["Compiled", "GraphFunction"]

ABSENT = (AttributeError, ImportError, OSError, RuntimeError)
"""What is raised where LLVM is absent, or has no instructions for a kernel, or the system lacks something."""


class Compiled:
    """Run a graph natively as far as kernels can.

    Attributes:
        segments: the graph in segments; each equation that NumPy computes has its reason there.
        merged: the places of the results that must be copied, since only merging made one array of them.
    """

    def __init__(self, graph: Graph) -> None:
        simple = inlined(graph)
        self.merged = merged_results(graph, simple)
        self.segments = with_native_loops(with_programs(images(Keeper(simple)), in_memory))

    @property
    def whole(self) -> Executable | None:
        """What computes all of the graph at once, if there is such a program."""
        return self.segments.whole

    @property
    def is_native(self) -> bool:
        """Whether any of it is."""
        return any(part.program is not None or holds_native(part.graph) for part in self.segments.parts)

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the graph's inputs."""
        results = self.segments.run(values, lambda program, arrays: program(arrays))
        if not self.merged:
            return results
        copied = [i in self.merged and type(x) is np.ndarray for i, x in enumerate(results)]
        return tuple([x.copy(order="K") if copy else x for copy, x in zip(copied, results, strict=True)])


def in_memory(image: Image) -> Executable:
    """Return machine code as what can be called."""
    return Executable(image, address_of)


def all_of(graph: Graph) -> Executable | None:
    """Return a graph that has been through all passes as machine code; None if kernels cannot compute all of it."""
    try:
        image = images(Keeper(graph, "all of"), alone=True).whole
        return None if image is None else in_memory(image)
    except ABSENT:
        return None


def with_native_loops(segments: Segments[Executable]) -> Segments[Executable]:
    """Return segments where what NumPy computes are loops, and others inside of them, that run natively if they can."""
    if all(part.program is not None or not holds_graphs(part.graph) for part in segments.parts):
        return segments
    return Segments(
        segments.graph, tuple([part if part.program is not None else repeating(part) for part in segments.parts])
    )


def repeating(part: Segment[Executable]) -> Segment[Executable]:
    """Return a segment of NumPy's whose loops run natively if they can."""
    return Segment(natively(part.graph), None, part.reasons, part.dropped)


def natively(graph: Graph) -> Graph:
    """Return a graph whose structured operations, and those inside of them, run natively if they can."""
    if not holds_graphs(graph):
        return graph
    found = [native_equation(equation) if equation.primitive.structured else equation for equation in graph.equations]
    return Graph(graph.inputs, found, graph.outputs)


def native_equation(equation: Equation) -> Equation:
    """Return a structured operation as one that runs natively; with such ones in its graphs if it cannot be one."""
    primitive = equation.primitive
    function = primitive.natively(equation.params, all_of) if isinstance(primitive, Structured) else None
    if function is None:
        return entered(equation, natively)
    return Equation(Natively(primitive.name, function), equation.inputs, {}, equation.outputs, equation.origin)


class Natively(Structured):
    """Run a structured operation natively, for one equation."""


def holds_native(graph: Graph) -> bool:
    """Tell whether some operation of a graph, or inside of it, runs natively."""
    return any(
        isinstance(equation.primitive, Natively) or any(holds_native(inner) for _, inner in subgraphs(equation.params))
        for equation in graph.equations
        if equation.primitive.structured
    )


def images(keeper: Keeper, alone: bool = False) -> Segments[Image]:
    """Return a graph in segments of machine code, that of an earlier process if it was kept.

    Args:
        keeper: of the graph.
        alone: whether machine code is of use only if it computes all of it.
    """
    kept = keeper.found()
    if kept is None:
        with UNSTOPPED:
            from wengert.compile.imaging import imaged  # lowering and emission, which take as long as all of Wengert

        kept = imaged(keeper.graph, alone)
        keeper.keep(kept)
    return kept


def address_of(name: str) -> int:
    """Return the address of a function that programs call and do not have."""
    return kept_function(name, text_of)


def text_of(name: str) -> str:
    """Return the module of such a function, if it was not kept."""
    with UNSTOPPED:
        from wengert.emission.outside import text_of

    return text_of(name)


def calls_to_wait(graph: Graph) -> int:
    """Return how many calls NumPy evaluates before a graph is compiled, whether or not an earlier process has done it.

    If that mattered, two runs of a program could differ in the last digits.
    """
    if _config.AT_ONCE:
        return 0
    with UNSTOPPED:
        from wengert.compile.costs import calls_before  # with the opcodes, which what is kept has no need of

    return calls_before(graph)


class GraphFunction(Entry):
    """Be a graph as a function of arrays and numbers of the types of its inputs, compiled when that is worth it.

    Where one program computes all of it, calls are native from the third one with arguments of some kinds on.

    Args:
        graph: the graph.

    Attributes:
        waiting: how many calls NumPy evaluates until it is compiled.
        called: whether it has been called since: a variant takes longer than a call.
    """

    called = False

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.waiting = calls_to_wait(graph)

    @cached
    def compiled(self) -> Compiled | None:
        """The graph compiled; None where LLVM cannot, and where NumPy computes all of it."""
        try:
            found = Compiled(self.graph)
        except ABSENT:
            return None
        return found if found.is_native else None

    def __call__(self, *values: Any) -> tuple[Any, ...]:
        """Return the outputs."""
        if self.waiting or self.compiled is None:
            self.waiting -= self.waiting > 0
            return tuple(evaluate(self.graph, values))
        results = self.compiled(values)  # first: what raises an error here is not offered again
        if self.called and self.program is not None:
            self.offer(self, list(map(kind_of, values)))
        self.called = True
        return results

    @property
    def program(self) -> Executable | None:
        """What computes all of the graph at once, if there is such a program by now."""
        return None if self.waiting or self.compiled is None else self.compiled.whole

    def offer(
        self,
        entry: Entry,
        arguments: Sequence[Kind | None],
        names: Sequence[str] = (),
        arranged: Callable[[Sequence[Kind]], Any] = tuple,
    ) -> None:
        """Let an entry call the program natively from now on, if one program computes all of the graph.

        Args:
            entry: what is called.
            arguments: the kinds of its arguments, whose arrays and numbers are the graph's inputs; None for arguments
                that have none.
            names: of those that are given by name, the last ones.
            arranged: puts the outputs into containers.
        """
        program = self.program
        if program is None or self.compiled is None:
            return
        graph = self.compiled.segments.graph
        known, results = known_kinds(arguments), known_kinds(list(map(result_kind, graph.outputs)))
        if known is None or results is None:
            return
        result = kind_of(arranged(results))
        given = given_kinds(known, graph.inputs)
        if result is None or given is None or len(list(leaves([*given, result]))) > MANY_LEAVES:
            return
        with contextlib.suppress(*ABSENT):
            entry.add(Variant(given, result, program.callee, names))


def known_kinds(kinds: Sequence[Kind | None]) -> list[Kind] | None:
    """Return kinds if all are known."""
    known = [kind for kind in kinds if kind is not None]
    return known if len(known) == len(kinds) else None


def given_kinds(kinds: Sequence[Kind], variables: Sequence[Variable]) -> list[Kind] | None:
    """Return the kinds of what kernels get for variables where arguments of some kinds are given, if they suit."""
    parts = list(leaves(kinds))
    if len(parts) != len(variables):
        return None
    found = known_kinds(list(map(kind_for, variables, parts)))
    return None if found is None else with_leaves(kinds, iter(found))
