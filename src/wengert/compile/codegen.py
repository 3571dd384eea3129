"""From graphs to machine code: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

import time

from wengert.compile.compilation_cache import Kind
from wengert.compile.costs import is_worthwhile
from wengert.compile.partition import segmented
from wengert.compile.segments import Segments, with_programs
from wengert.compile.small_matrices import small_matrices
from wengert.core.graph.graph import Equation, Graph
from wengert.emission.executable import image_of
from wengert.emission.programs import emitted
from wengert.kernel.kernel import Program
from wengert.kernel.printing import text
from wengert.kernel.schedule import schedule_of
from wengert.kernel.tiling import scheduled
from wengert.native.engine import host
from wengert.native.executable import Image
from wengert.support import config

__all__ = ["imaged"]

DIGITS = 64
"""Hexadecimal digits of constants that are printed."""


def imaged(graph: Graph, kind: Kind = "graph") -> Segments[Image]:
    """Return a graph in segments, of machine code where kernels can compute them.

    Args:
        graph: without calls; see `wengert.compile.passes.inlined`.
        kind: of what it becomes.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
        NotImplementedError: an opcode has no instructions.
    """
    segments = segmented(graph, is_worthwhile if kind == "graph" else None)
    left = [equation for part in segments.parts if part.program is None for equation in part.graph.equations]
    if (kind == "all of" and left) or (kind == "chain" and not all(map(may_be_a_step, left))):
        segments = Segments(graph, ())
    return with_programs(segments, machine_code)


def may_be_a_step(equation: Equation) -> bool:
    """Tell whether an operation that kernels cannot compute may be a step of a chain."""
    return equation.primitive.structured or small_matrices(equation) is not None


def machine_code(program: Program) -> Image:
    """Return a program as machine code."""
    start = time.perf_counter()
    program = scheduled(program, schedule_of(program))
    image = image_of(program, emitted(program, host()), host())
    if "kernels" in config.LOGGED:
        from wengert.support.logs import say

        took = f"{1e3 * (time.perf_counter() - start):.1f} ms"
        say("kernels", f"compiled to {len(image.code)} bytes in {took}:\n{text(program, DIGITS)}")
    return image
