"""Which lanes are active: those that take the branch that is being run, or go on with the loop.

What others compute is not used. It must end and must not fail all the same: a branch reads what it captured, not only
operands that have been prepared.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["ACTIVE", "active_lanes"]


class Active(threading.local):
    """Hold which lanes are active in this thread.

    Attributes:
        mask: a boolean in each lane; None where all are.
        fill: gives a value in which lanes that are not hold that of one that is; None where all are, and while it runs.
    """

    mask: Any = None
    fill: Callable[[Any], Any] | None = None


ACTIVE = Active()


@contextmanager
def active_lanes(mask: Any, fill: Callable[[Any], Any] | None) -> Iterator[None]:
    """Let lanes be active where a mask holds."""
    before = ACTIVE.mask, ACTIVE.fill
    ACTIVE.mask, ACTIVE.fill = mask, fill
    try:
        yield
    finally:
        ACTIVE.mask, ACTIVE.fill = before
