"""Graphs as machine code: compiled, or found in the cache, and brought into memory."""

from __future__ import annotations

from wengert.compile.compilation_cache import Keeper
from wengert.compile.segments import Segments, with_programs
from wengert.native.executable import Executable, Image
from wengert.native.loader import kept_function
from wengert.support.fork_safety import UNSTOPPED

__all__ = ["ABSENT", "address_of", "images", "in_memory"]

ABSENT = (AttributeError, ImportError, OSError, RuntimeError)
"""What is raised where LLVM is absent, or has no instructions for a kernel, or the system lacks something."""


def in_memory(segments: Segments[Image]) -> Segments[Executable]:
    """Return a graph in segments of machine code as one that can be called."""
    return with_programs(segments, lambda image: Executable(image, address_of))


def images(keeper: Keeper) -> Segments[Image]:
    """Return a graph in segments of machine code, that of an earlier process if it was kept."""
    kept = keeper.found()
    if kept is None:
        with UNSTOPPED:
            from wengert.compile.codegen import imaged  # lowering and emission, which take as long as all of Wengert

        kept = imaged(keeper.graph, keeper.kind)
        keeper.keep(kept)
    return kept


def address_of(name: str) -> int:
    """Return the address of a function that programs call and do not have."""
    return kept_function(name, text_of)


def text_of(name: str) -> str:
    """Return the module of such a function, if it was not kept."""
    with UNSTOPPED:
        from wengert.emission.external_functions import text_of

    return text_of(name)
