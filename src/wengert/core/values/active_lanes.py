"""Which lanes are active: those that take the branch that is being run, or go on with the loop.

What others compute is not used. It must end and must not fail all the same: a branch reads what it captured, not only
operands that have been prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any


class ActiveByThread(threading.local):
    """Hold which lanes are active in this thread.

    Attributes:
        mask: a boolean in each lane; None where all are.
        fill: gives a value in which lanes that are not hold that of one that is; None where all are, and while it runs.
    """

    mask: Any = None
    fill: Callable[[Any], Any] | None = None


ACTIVE = ActiveByThread()


class ActiveLanes:
    """Let lanes be active where a mask holds: a context.

    Args:
        mask: a boolean in each lane; None if all are.
        fill: see `Active`.
    """

    __slots__ = ("before", "fill", "mask")

    def __init__(self, mask: Any, fill: Callable[[Any], Any] | None) -> None:
        self.mask = mask
        self.fill = fill

    def __enter__(self) -> None:
        self.before = ACTIVE.mask, ACTIVE.fill
        ACTIVE.mask, ACTIVE.fill = self.mask, self.fill

    def __exit__(self, *_: object) -> None:
        ACTIVE.mask, ACTIVE.fill = self.before
