"""Operations natively that say themselves how they run as machine code, wherever in a graph they are."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from wengert.compile.equations import entered
from wengert.compile.segments import Segment, Segments
from wengert.compile.small_matrices import small_matrices
from wengert.core.graph.graph import Equation, Graph, subgraphs
from wengert.core.primitives.primitive import Structured
from wengert.native.callee import Callee
from wengert.native.executable import Executable
from wengert.native.kinds import ArrayKind

__all__ = ["Compiler", "Kernel", "Natively", "holds_native", "natively", "with_operations"]


class Kernel(NamedTuple):
    """Be a graph as machine code.

    Attributes:
        callee: what is called.
        made: the dtype and shape of each result, and last of whether it could not be computed, if that may be.
        cycles: about how long it takes.
    """

    callee: Callee
    made: list[ArrayKind]
    cycles: float


Compiler = Callable[[Graph], Kernel | None]
"""What gives a graph that has been through all passes as machine code; None if that cannot compute all of it."""


def natively(graph: Graph, compiled: Compiler) -> Graph:
    """Return a graph whose structured operations, those inside of them, and small matrices run natively if they can."""
    found = tuple([native_equation(e, compiled) for e in graph.equations])
    return graph if found == graph.equations else Graph(graph.inputs, found, graph.outputs)


def native_equation(equation: Equation, compiled: Compiler) -> Equation:
    """Return an operation as one that runs natively; with such ones in its graphs if it cannot be one."""
    primitive = equation.primitive
    function: Callable[..., tuple[Any, ...]] | None = small_matrices(equation)
    if isinstance(primitive, Structured):
        function = primitive.natively(equation.params, compiled)
    if function is None:
        return entered(equation, partial(natively, compiled=compiled)) if primitive.structured else equation
    return Equation(Natively(primitive.name, function), equation.inputs, {}, equation.outputs, equation.origin)


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


class Natively(Structured):
    """Run a structured operation natively, for one equation."""


def holds_native(graph: Graph) -> bool:
    """Tell whether some operation of a graph, or inside of it, runs natively."""
    return any(
        isinstance(equation.primitive, Natively) or any(holds_native(inner) for _, inner in subgraphs(equation.params))
        for equation in graph.equations
        if equation.primitive.structured
    )
