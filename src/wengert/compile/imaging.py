"""From graphs to machine code: all that is loaded only if a graph was not compiled before."""

from __future__ import annotations

from wengert.compile.segments import Segments, converted, segmented
from wengert.core.graph import Graph
from wengert.emission.executable import image_of
from wengert.emission.programs import emitted
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import chosen
from wengert.kernel.tiling import scheduled
from wengert.native.engine import host
from wengert.native.executable import Image

__all__ = ["imaged"]


def imaged(graph: Graph) -> Segments[Image]:
    """Return a graph in segments, of machine code where kernels can compute them.

    Args:
        graph: without calls; see `wengert.compile.passes.inlined`.

    Raises:
        ImportError, RuntimeError: LLVM is absent or cannot compile it.
        NotImplementedError: an opcode has no instructions.
    """
    return converted(segmented(graph), machine_code)


def machine_code(program: Program) -> Image:
    """Return a program as machine code."""
    program = scheduled(program, chosen(program))
    return image_of(program, emitted(program, host()), host())
