"""Graphs as machine code: compiled, or found in the cache, and brought into memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, NamedTuple

from wengert.core.graph.graph import Graph
from wengert.emission.backend import PROCESSOR
from wengert.kernel.backend import Backend, Loaded
from wengert.lowering.segments import Segments, with_programs
from wengert.native.callee import Callee
from wengert.native.kinds import ArrayKind

ABSENT = (AttributeError, ImportError, OSError, RuntimeError)
"""What is raised where LLVM is absent, or has no instructions for a kernel, or the system lacks something."""


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


BACKEND = ContextVar[Backend[Any, Any]]("BACKEND", default=PROCESSOR)
"""What carries out the graphs that are compiled from now on."""


@contextmanager
def using(backend: Backend[Any, Any]) -> Iterator[None]:
    """Let a back end carry out the graphs that are compiled meanwhile."""
    token = BACKEND.set(backend)
    try:
        yield
    finally:
        BACKEND.reset(token)


def in_memory(segments: Segments[Any]) -> Segments[Loaded]:
    """Return a graph in segments that a back end has built as one that can be called."""
    return with_programs(segments, BACKEND.get().load)
