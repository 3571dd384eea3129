"""Work without the collector of garbage, which would go through all that it makes again and again."""

from __future__ import annotations

import gc
import os
from _thread import get_ident
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from wengert.support.scopes import Restore, StateScope, calling_all

R = TypeVar("R")

INTERPRETERS = 1_000
"""Objects that are frozen up to which they are the interpreter's own: Python 3.12 begins with 375; users freeze all."""


STOPPING: set[int] = set()
"""The threads that have stopped the collector and are to start it again."""


def without_collector(function: Callable[..., R], *args: Any) -> R:
    """Call what makes many objects and leaves few, as compiling does: the collector takes a fifth of its time.

    >>> without_collector(gc.isenabled), gc.isenabled()
    (False, True)
    """
    if not gc.isenabled():
        return function(*args)
    try:
        STOPPING.add(get_ident())
        gc.disable()
        return function(*args)
    finally:
        gc.enable()  # at once: Ctrl-C comes before what C does, or after it
        STOPPING.discard(get_ident())


class LoadingPause(StateScope):
    """Load modules without it: what they make stays, and therefore counts as old at once, with all there was before.

    To let the collector go through it takes a tenth of the time of loading.
    """

    def undo(self) -> Restore:
        """Return what starts it again; nothing if it is stopped now, as by another thread, which may end first."""
        self.stops = gc.isenabled()
        if not self.stops:
            return calling_all(())
        own = gc.get_freeze_count() < INTERPRETERS  # else they are the user's, and are to stay apart
        ageing = (gc.freeze, gc.unfreeze) if own else ()
        return calling_all((*ageing, gc.enable, partial(STOPPING.discard, get_ident())))

    def change(self) -> None:
        """Stop it."""
        if self.stops:
            STOPPING.add(get_ident())
            gc.disable()


def start_again() -> None:
    """Start the collector, in a process that was forked, if it was another thread that stopped it."""
    if STOPPING - {get_ident()}:
        gc.enable()
        STOPPING.intersection_update({get_ident()})


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=start_again)
