"""A graph as a function of arrays: its native segments, compiled or found in the cache, and NumPy between them.

Of what NumPy computes, loops run natively where one program does all of an iteration.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.compile.compilation_cache import Keeper
from wengert.compile.lower_control_flow import holds_native, kernel_of, may_be_steps, natively, with_operations
from wengert.compile.object_code import images
from wengert.compile.programs import ABSENT, in_memory
from wengert.core.graph.graph import Graph, evaluate
from wengert.core.graph.variable import Variable
from wengert.kernel.backend import Loaded
from wengert.lowering.layouts import kind_for, result_kind
from wengert.lowering.segments import Segments, without_numbers
from wengert.native.callee import Callee
from wengert.native.entry import Entry, Variant
from wengert.native.executable import Executable
from wengert.native.kinds import MANY_LEAVES, Kind, kind_of, leaves, with_leaves
from wengert.passes.output_aliasing import merged_results
from wengert.passes.pipeline import inlined
from wengert.support import config
from wengert.support.cached import cached
from wengert.support.fork_safety import UNSTOPPED


def call_program(program: Loaded, arrays: Sequence[Any]) -> Sequence[Any]:
    """Return the outputs of a program."""
    return program(arrays)


class Compiled:
    """Run a graph natively as far as kernels can.

    Attributes:
        graph: the graph, without calls.
        segments: it in segments; each equation that NumPy computes has its reason there.
        has_steps: whether it is one program whose steps run others.
        callee: what computes all of the graph at once, as entries call it; None if there is nothing.
        merged: the places of the results that must be copied, since only merging made one array of them.
    """

    def __init__(self, graph: Graph) -> None:
        simple = inlined(graph)
        self.merged = merged_results(graph, simple)
        self.graph = simple
        whole = in_memory(images(Keeper(simple, "whole"))) if may_be_steps(simple) else None
        self.has_steps = whole is not None and bool(whole.parts)
        self.segments = whole if whole is not None and self.has_steps else self.parts
        self.callee = self.segments.whole.callee if isinstance(self.segments.whole, Executable) else None

    @cached
    def parts(self) -> Segments[Loaded]:
        """The graph in segments, whose loops and small matrices run natively where they can."""
        return with_operations(in_memory(images(Keeper(self.graph))), natively(self.graph, kernel_of))

    def in_parts(self, _graph: Graph, values: Sequence[Any]) -> Sequence[Any]:
        """Return the outputs where one program could not compute them."""
        found = self.parts.run(values, call_program)
        return [x for x, v in zip(found, self.graph.outputs, strict=True) if without_numbers((v,))]

    @property
    def is_native(self) -> bool:
        """Whether any of it is."""
        return any(part.program is not None or holds_native(part.graph) for part in self.segments.parts)

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the graph's inputs."""
        instead = self.in_parts if self.has_steps else evaluate
        results = self.segments.run(values, call_program, instead=instead)
        if not self.merged:
            return results
        copied = [i in self.merged and type(x) is np.ndarray for i, x in enumerate(results)]
        return tuple([x.copy(order="K") if copy else x for copy, x in zip(copied, results, strict=True)])


def calls_to_wait(graph: Graph) -> int:
    """Return how many calls NumPy evaluates before a graph is compiled, whether or not an earlier process has done it.

    If that mattered, two runs of a program could differ in the last digits.
    """
    if config.AT_ONCE:
        return 0
    with UNSTOPPED:
        from wengert.lowering.costs import calls_before  # with the opcodes, which what is kept has no need of

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
        if self.called and self.callee is not None:
            self.offer(self, list(map(kind_of, values)))
        self.called = True
        return results

    @property
    def callee(self) -> Callee | None:
        """What computes all of the graph at once, if there is such a thing by now."""
        return None if self.waiting or self.compiled is None else self.compiled.callee

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
        callee = self.callee
        if callee is None or self.compiled is None:
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
            entry.add(Variant(given, result, callee, names))


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
