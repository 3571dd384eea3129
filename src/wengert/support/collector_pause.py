"""Work without the collector of garbage, which would go through all that it makes again and again."""

from __future__ import annotations

import gc
import os
from _thread import get_ident

INTERPRETERS = 1_000
"""Objects that are frozen up to which they are the interpreter's own: Python 3.12 begins with 375; users freeze all."""


STOPPING: set[int] = set()
"""The threads that have stopped the collector and are to start it again."""


class CollectorPause:
    """Work that makes many objects and leaves few, as compiling does: the collector takes a fifth of its time.

    >>> with CollectorPause():
    ...     gc.isenabled()
    False
    >>> gc.isenabled()
    True
    """

    def __enter__(self) -> None:
        self.collects = gc.isenabled()
        if self.collects:
            STOPPING.add(get_ident())
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.collects:
            gc.enable()
            STOPPING.discard(get_ident())


class LoadingPause(CollectorPause):
    """Load modules: what they make stays, and therefore counts as old at once, with all that there was before.

    To let the collector go through it takes a tenth of the time of loading.
    """

    def __exit__(self, *_: object) -> None:
        if self.collects and gc.get_freeze_count() < INTERPRETERS:  # else they are the user's, and are to stay apart
            gc.freeze()
            gc.unfreeze()
        super().__exit__()


def start_again() -> None:
    """Start the collector, in a process that was forked, if it was another thread that stopped it."""
    if STOPPING - {get_ident()}:
        gc.enable()
        STOPPING.intersection_update({get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_again)
