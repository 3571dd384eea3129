"""From graphs to what a back end builds: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

import marshal
import time
from typing import Any

from wengert.compile.compilation_cache import Kind
from wengert.compile.programs import BACKEND
from wengert.core.graph.graph import Graph
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import with_schedule
from wengert.lowering.costs import is_worthwhile
from wengert.lowering.partition import segmented
from wengert.lowering.program_steps import whole_program
from wengert.lowering.segments import Segment, Segments, with_programs, without_numbers
from wengert.support import config

DIGITS = 64
"""Hexadecimal digits of constants that are printed."""


def imaged(graph: Graph, kind: Kind = "graph") -> Segments[Any]:
    """Return a graph in segments, built by the back end where kernels can compute them.

    Args:
        graph: without calls; see `wengert.passes.pipeline.inlined`.
        kind: of what it becomes.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
        NotImplementedError: an opcode has no instructions.
    """
    if kind == "graph":
        return with_programs(segmented(graph, is_worthwhile), built)
    program = whole_program(graph, is_round=kind == "round")
    if program is None:
        return Segments(graph, ())
    whole = Graph(graph.inputs, graph.equations, graph.outputs if kind == "round" else without_numbers(graph.outputs))
    return Segments(graph, (Segment(whole, built(program), (), (), is_whole=True),))


def built(program: Program) -> Any:
    """Return a program as the back end builds it."""
    start = time.perf_counter()
    program = with_schedule(program)
    backend = BACKEND.get()
    image = backend.build(backend.render(program))
    if "kernels" in config.LOGGED:
        from wengert.support.logs import say

        took = f"{1e3 * (time.perf_counter() - start):.1f} ms"
        size = len(marshal.dumps(backend.pack(image)))
        say("kernels", f"compiled to {size} bytes in {took}:\n{text(program, DIGITS)}")
    return image
