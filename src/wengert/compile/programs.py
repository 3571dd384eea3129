"""Graphs as machine code: compiled, or found in the cache, and brought into memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wengert.core.graph.graph import Graph
from wengert.lowering.segments import Segments, with_programs
from wengert.native.callee import Callee
from wengert.native.executable import Executable, Image
from wengert.native.kinds import ArrayKind
from wengert.native.loader import kept_function
from wengert.support.fork_safety import UNSTOPPED

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


def in_memory(segments: Segments[Image]) -> Segments[Executable]:
    """Return a graph in segments of machine code as one that can be called."""
    return with_programs(segments, lambda image: Executable(image, address_of))


def address_of(name: str) -> int:
    """Return the address of a function that programs call and do not have."""
    return kept_function(name, text_of)


def text_of(name: str) -> str:
    """Return the module of such a function, if it was not kept."""
    with UNSTOPPED:
        from wengert.emission.external_functions import text_of

    return text_of(name)
