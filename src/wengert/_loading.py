"""Loading modules without the collector of garbage, which would go through all that they make again and again."""

from __future__ import annotations

import gc

__all__ = ["Loading"]

INTERPRETERS = 1_000
"""Objects that are frozen up to which they are the interpreter's own: Python 3.12 begins with 375; users freeze all."""


class Loading:
    """Load modules: what they make stays, and therefore counts as old at once, with all that there was before.

    To let the collector go through it takes a tenth of the time of loading.

    >>> with Loading():
    ...     import wengert.optim
    >>> gc.isenabled()
    True
    """

    def __enter__(self) -> None:
        self.collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self.collects:
            if gc.get_freeze_count() < INTERPRETERS:  # else they are the user's, and are to stay apart
                gc.freeze()
                gc.unfreeze()
            gc.enable()
