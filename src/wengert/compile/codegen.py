"""From graphs to what a back end builds: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

import marshal
import time
from typing import Any

from wengert.compile.programs import BACKEND
from wengert.core.graph.graph import Graph
from wengert.kernel.grammar import text
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import with_schedule
from wengert.lowering.costs import is_worthwhile
from wengert.lowering.partition import partition_graph
from wengert.lowering.segments import Segments, with_programs
from wengert.support import config

DIGITS = 64
"""Hexadecimal digits of constants that are printed."""


def compile_segments(graph: Graph, is_apart: bool = False) -> Segments[Any]:
    """Return a graph in segments, built by the back end where kernels can compute them.

    Args:
        graph: without calls; see `wengert.passes.pipeline.flatten_calls`.
        is_apart: whether each loop, and each routine of small matrices, is a program by itself.

    Raises:
        MissingLLVMError: there is no LLVM.
        NotImplementedError: an opcode has no instructions.
    """
    return with_programs(partition_graph(graph, is_worthwhile, is_apart=is_apart), build_program)


def build_program(program: Program) -> Any:
    """Return a program as the back end builds it."""
    start = time.perf_counter()
    program = with_schedule(program)
    backend = BACKEND.get()
    image = backend.build(backend.render(program))
    if "kernels" in config.LOGGED:
        from wengert.support.logs import say

        took = f"{1e3 * (time.perf_counter() - start):.1f} ms"
        size = len(marshal.dumps(backend.pack(image, {})))
        say("kernels", f"compiled to {size} bytes in {took}:\n{text(program, DIGITS)}")
    return image
