"""Loops and small matrices as machine code, wherever in a graph they are: by themselves, or as steps of a chain."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from wengert.compile import program_steps
from wengert.compile.compilation_cache import Keeper
from wengert.compile.equations import entered
from wengert.compile.native_loop import native_loop
from wengert.compile.object_code import images
from wengert.compile.program_steps import Chain, Joining, Unchained
from wengert.compile.programs import ABSENT, Compiler, Kernel, in_memory
from wengert.compile.segments import Segment, Segments
from wengert.compile.small_matrices import small_matrices
from wengert.core.graph.graph import Equation, Graph, Variable, subgraphs
from wengert.core.primitives.primitive import Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN
from wengert.native.executable import Executable

__all__ = ["Natively", "holds_native", "in_a_chain", "kernel_of", "natively", "round_of", "with_operations"]

Evaluation = Callable[..., tuple[Any, ...]]


class Natively(Structured):
    """Run a structured operation natively, for one equation."""


class LoopLowering(StructuredLowering):
    """Lower a loop to machine code.

    Args:
        loop: the primitive.
        compiled: gives a graph as machine code; None if kernels cannot compute all of it.
    """

    def __init__(self, loop: Structured, compiled: Compiler) -> None:
        self.primitive, self.compiled = loop, compiled

    def loop(self, params: Mapping[str, Any]) -> Evaluation | None:
        """Return the loop of machine code if one kernel does all that is done in an iteration."""

        @cache
        def body() -> Graph:
            return natively(params["body"], self.compiled)

        def otherwise(*operands: Any) -> tuple[Any, ...]:
            found: tuple[Any, ...] = self.primitive.evaluate(*operands, **{**params, "body": body()})
            return found

        return native_loop(params, self.compiled, otherwise)


def natively(graph: Graph, compiled: Compiler) -> Graph:
    """Return a graph whose loops, those inside of them, and small matrices run natively if they can."""
    found = tuple([native_equation(e, compiled) for e in graph.equations])
    return graph if found == graph.equations else Graph(graph.inputs, found, graph.outputs)


def native_equation(equation: Equation, compiled: Compiler) -> Equation:
    """Return an operation as one that runs natively; with such ones in its graphs if it cannot be one."""
    primitive = equation.primitive
    function: Evaluation | None = small_matrices(equation)
    if isinstance(primitive, Structured):
        function = primitive.lower(equation.params, LoopLowering(primitive, compiled))
    if function is None:
        return entered(equation, partial(natively, compiled=compiled)) if primitive.structured else equation
    return Equation(Natively(primitive.name, function), equation.inputs, {}, equation.outputs, equation.origin)


def round_of(equation: Equation) -> Graph | None:
    """Return the graph of a round if an equation runs natively, round by round; None if it does not."""
    primitive, found = equation.primitive, list[Graph]()
    if not isinstance(primitive, Structured):
        return None

    def compiled(graph: Graph) -> Kernel | None:
        found.append(graph)
        return kernel_of(graph)

    return found[0] if primitive.lower(equation.params, LoopLowering(primitive, compiled)) is not None else None


def with_operations(segments: Segments[Executable], native: Graph) -> Segments[Executable]:
    """Return the segments of a graph where what NumPy computes are the operations that `natively` made of it."""
    if native is segments.graph:
        return segments
    known = {id(a): b for a, b in zip(segments.graph.equations, native.equations, strict=True)}

    def replaced(part: Segment[Executable]) -> Segment[Executable]:
        if part.program is not None:
            return part
        graph = Graph(part.graph.inputs, [known[id(e)] for e in part.graph.equations], part.graph.outputs)
        return Segment(graph, None, part.reasons, part.dropped)

    return Segments(segments.graph, tuple(map(replaced, segments.parts)))


def holds_native(graph: Graph) -> bool:
    """Tell whether some operation of a graph, or inside of it, runs natively."""
    return any(
        isinstance(equation.primitive, Natively) or any(holds_native(inner) for _, inner in subgraphs(equation.params))
        for equation in graph.equations
        if equation.primitive.structured
    )


def joining(equation: Equation) -> Joining | None:
    """Return the evaluation of an equation if it can be a step of a chain."""
    evaluation: Any = equation.primitive.evaluate
    return evaluation if getattr(evaluation, "can_join", False) else None


def can_chain(graph: Graph) -> bool:
    """Tell whether all operations of a graph that run natively in a way of their own can be steps, and there is one."""
    found = [equation for equation in graph.equations if isinstance(equation.primitive, Natively)]
    return bool(found) and None not in map(joining, found)


def in_a_chain(
    graph: Graph, native: Graph, outputs: Sequence[Any], *, is_round: bool = False
) -> tuple[Segments[Executable], Kernel | None]:
    """Return a graph in segments that are the steps of a chain, and the chain; None if there is none.

    Args:
        graph: the graph.
        native: the same with operations that run natively.
        outputs: what the chain is to give.
        is_round: whether a loop runs it, which has room for the rows that loops inside leave behind.
    """
    if not can_chain(native):
        return Segments(graph, ()), None
    segments = with_operations(in_memory(images(Keeper(graph, "chain"))), native)
    return segments, chained(segments, outputs, is_round) if segments.parts else None


def chained(segments: Segments[Executable], outputs: Sequence[Any], is_round: bool) -> Kernel | None:
    """Return a graph in segments as one kernel; None if that cannot be.

    Args:
        segments: of the graph: programs, and operations that can be steps.
        outputs: what it is to give.
        is_round: whether a loop runs it.
    """
    graph = Graph(segments.graph.inputs, segments.graph.equations, outputs)
    written = {v for part in segments.parts for v in part.graph.outputs if type(v) is Variable}.union(graph.inputs)
    if not all(type(x) is Variable and x in written for x in outputs):
        return None
    has_rows = any(UNKNOWN in x.shape for x in (*graph.inputs, *outputs))
    if has_rows and not is_round:
        return None
    try:
        chains = (
            laid_out(segments, Chain(graph, rows))
            for rows in ((program_steps.HANDED,) if has_rows else program_steps.ROWS)
        )
        return next((chain.kernel() for chain in chains if chain.size <= program_steps.MOST), None)
    except Unchained:
        return None


def laid_out(segments: Segments[Executable], chain: Chain) -> Chain:
    """Return a chain with segments as its steps; raise Unchained if one cannot be a step."""
    for part in segments.parts:
        if part.program is not None:
            chain.run(part)
            continue
        for equation in part.graph.equations:
            step = joining(equation)
            if step is None:
                raise Unchained
            step.join(chain, equation)
    return chain


def kernel_of(graph: Graph) -> Kernel | None:
    """Return a graph that has been through all passes as machine code: a program, or a chain; None if there is none."""
    try:
        if not any(map(small_matrices, graph.equations)):  # with these it is no program
            whole = in_memory(images(Keeper(graph, "all of"))).whole
            if whole is not None:
                return Kernel(whole.callee, whole.made, whole.image.cycles)
        return in_a_chain(graph, natively(graph, kernel_of), graph.outputs, is_round=True)[1]
    except ABSENT:
        return None
