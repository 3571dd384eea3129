"""From graphs to machine code: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

import time

from wengert.compile.compilation_cache import Kind
from wengert.core.graph.graph import Graph
from wengert.emission.driver import emitted
from wengert.emission.executable import image_of
from wengert.kernel.kernel import Program
from wengert.kernel.printing import text
from wengert.kernel.tiling import with_schedule
from wengert.lowering.costs import is_worthwhile
from wengert.lowering.partition import segmented
from wengert.lowering.program_steps import whole_program
from wengert.lowering.segments import Segment, Segments, with_programs, without_numbers
from wengert.native.engine import host
from wengert.native.executable import Image
from wengert.support import config

DIGITS = 64
"""Hexadecimal digits of constants that are printed."""


def imaged(graph: Graph, kind: Kind = "graph") -> Segments[Image]:
    """Return a graph in segments, of machine code where kernels can compute them.

    Args:
        graph: without calls; see `wengert.passes.pipeline.inlined`.
        kind: of what it becomes.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
        NotImplementedError: an opcode has no instructions.
    """
    if kind == "graph":
        return with_programs(segmented(graph, is_worthwhile), machine_code)
    program = whole_program(graph, is_round=kind == "round")
    if program is None:
        return Segments(graph, ())
    whole = Graph(graph.inputs, graph.equations, graph.outputs if kind == "round" else without_numbers(graph.outputs))
    return Segments(graph, (Segment(whole, machine_code(program), (), (), is_whole=True),))


def machine_code(program: Program) -> Image:
    """Return a program as machine code."""
    start = time.perf_counter()
    program = with_schedule(program)
    image = image_of(program, emitted(program, host()), host())
    if "kernels" in config.LOGGED:
        from wengert.support.logs import say

        took = f"{1e3 * (time.perf_counter() - start):.1f} ms"
        say("kernels", f"compiled to {len(image.code)} bytes in {took}:\n{text(program, DIGITS)}")
    return image
