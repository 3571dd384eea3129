"""Which back end carries out graphs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from wengert.emission.backend import PROCESSOR
from wengert.kernel.backend import Backend, Loaded
from wengert.lowering.segments import Segments, with_programs

ABSENT = (AttributeError, ImportError, OSError, RuntimeError)
"""What is raised where LLVM is absent, or has no instructions for a kernel, or the system lacks something."""


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
