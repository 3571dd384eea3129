"""Loops and small matrices as machine code between what NumPy computes, wherever in a graph they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any

from wengert.compile.compilation_cache import Keeper
from wengert.compile.native_loop import native_loop
from wengert.compile.object_code import images
from wengert.compile.programs import ABSENT, Compiler, Kernel, in_memory
from wengert.core.graph.equation import Equation
from wengert.core.graph.graph import Graph, subgraphs
from wengert.core.primitives.primitive import Structured, StructuredLowering
from wengert.kernel.backend import Loaded
from wengert.lowering.segments import Segment, Segments
from wengert.lowering.small_matrices import small_matrices
from wengert.native.executable import Executable
from wengert.passes.equations import entered

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


def with_operations(segments: Segments[Loaded], native: Graph) -> Segments[Loaded]:
    """Return the segments of a graph where what NumPy computes are the operations that `natively` made of it."""
    if native is segments.graph:
        return segments
    known = {id(a): b for a, b in zip(segments.graph.equations, native.equations, strict=True)}

    def replaced(part: Segment[Loaded]) -> Segment[Loaded]:
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


def kernel_of(graph: Graph) -> Kernel | None:
    """Return all of a graph that has been through all passes as machine code; None if NumPy has to compute some."""
    try:
        whole = in_memory(images(Keeper(graph, "round"))).whole
    except ABSENT:
        return None
    return Kernel(whole.callee, whole.made, whole.image.cycles) if isinstance(whole, Executable) else None


def may_be_steps(graph: Graph) -> bool:
    """Tell whether some of a graph is no kernel's, and all that is may be steps of a program."""
    return any(e.primitive.structured or small_matrices(e) is not None for e in graph.equations)
