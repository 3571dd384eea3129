"""A graph as a function of arrays: its native segments, compiled, and NumPy between them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from wengert.compile.passes import inlined
from wengert.compile.segments import segmented
from wengert.core.graph import Graph, evaluate
from wengert.emission.executable import Executable
from wengert.kernel.kernel import Program
from wengert.kernel.schedule import chosen
from wengert.kernel.tiling import scheduled

__all__ = ["Compiled", "compiled"]


class Compiled:
    """Run a graph natively as far as kernels can.

    Attributes:
        segments: the graph in segments; each equation that NumPy computes has its reason there.
    """

    def __init__(self, graph: Graph) -> None:
        self.segments = segmented(inlined(graph))
        self.programs = {
            id(part.program): Executable(scheduled(part.program, chosen(part.program)))
            for part in self.segments.parts
            if part.program is not None
        }

    def __call__(self, values: Sequence[Any]) -> tuple[Any, ...]:
        """Return the outputs for arrays and numbers of the types of the graph's inputs."""
        return self.segments.run(values, self.call)

    def call(self, program: Program, arrays: Sequence[Any]) -> Sequence[Any]:
        """Carry out one program."""
        return self.programs[id(program)](arrays)


def compiled(graph: Graph) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """Return what computes a graph's outputs from a sequence of inputs: natively, or with NumPy where LLVM cannot."""
    try:
        return Compiled(graph)
    except (ImportError, OSError, RuntimeError):  # LLVM is absent, or has no instructions for a kernel here
        return partial(evaluate, graph)
