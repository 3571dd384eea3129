"""Graphs as a back end builds them: by an earlier process if that was kept, else now, which loads what lowers them."""

from __future__ import annotations

from typing import Any

from wengert.compile.compilation_cache import Keeper
from wengert.lowering.segments import Segments
from wengert.support.fork_safety import UNSTOPPED


def images(keeper: Keeper) -> Segments[Any]:
    """Return a graph in segments that the back end has built, those of an earlier process if they were kept."""
    kept = keeper.found()
    if kept is None:
        with UNSTOPPED:
            from wengert.compile.codegen import imaged  # lowering and emission, which take as long as all of Wengert

        kept = imaged(keeper.graph, keeper.kind)
        keeper.keep(kept)
    return kept
