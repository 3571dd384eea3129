"""Graphs as object code: of an earlier process if that was kept, else made now, which loads what lowers and emits."""

from __future__ import annotations

from wengert.compile.compilation_cache import Keeper
from wengert.lowering.segments import Segments
from wengert.native.executable import Image
from wengert.support.fork_safety import UNSTOPPED


def images(keeper: Keeper) -> Segments[Image]:
    """Return a graph in segments of machine code, that of an earlier process if it was kept."""
    kept = keeper.found()
    if kept is None:
        with UNSTOPPED:
            from wengert.compile.codegen import imaged  # lowering and emission, which take as long as all of Wengert

        kept = imaged(keeper.graph, keeper.kind)
        keeper.keep(kept)
    return kept
