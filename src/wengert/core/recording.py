"""What is recorded now: the modes of a thread, or of a task that takes turns with others in one.

They are the value of a context variable, so each task of `asyncio` has its own. The compact operator paths must not
pay for looking it up, so `SPECIAL` holds a reference to all settings by which recording differs from the default, as
long as some context has them; while it is empty, everything is recorded plainly everywhere.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from contextvars import ContextVar
from typing import Any

__all__ = ["SPECIAL", "Settings", "change", "recording_from", "settings"]


class Settings:
    """Hold the modes of one context, which are changed by putting others in their place.

    Attributes:
        floor: the level from which on traces record.
        forward: the level from which on traces belong to the `forward` that is running, and whose that is.
        packing: the pairs of functions that what is saved goes through.
        anomaly: whether a sweep stops at what is not finite.
        reviving: whether traces that have ended work again.
    """

    __slots__ = ("__weakref__", "anomaly", "floor", "forward", "packing", "reviving")

    def __init__(self) -> None:
        self.floor = -math.inf
        self.forward: tuple[float, str] = (-math.inf, "")
        self.packing: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...] = ()
        self.anomaly = False
        self.reviving = False


SPECIAL: list[weakref.ref[Settings]] = []
CURRENT: ContextVar[Settings] = ContextVar("wengert.settings", default=Settings())  # noqa: B039 - never changed itself
settings: Callable[[], Settings] = CURRENT.get
"""Return the modes of this context."""


def change(attribute: str, value: Any) -> None:
    """Set one of the modes of this context."""
    before, found = CURRENT.get(), Settings()
    found.floor, found.forward, found.packing = before.floor, before.forward, before.packing
    found.anomaly, found.reviving = before.anomaly, before.reviving
    setattr(found, attribute, value)
    if found.floor > -math.inf or found.packing:
        SPECIAL.append(weakref.ref(found, SPECIAL.remove))
    CURRENT.set(found)


def recording_from(floor: float) -> AbstractContextManager[None]:
    """Return a context in which is recorded what was when the floor was at a level."""
    return nullcontext() if CURRENT.get().floor == floor else changed_floor(floor)


@contextmanager
def changed_floor(floor: float) -> Iterator[None]:
    """Record from a level on for a while."""
    before = CURRENT.get().floor
    change("floor", floor)
    try:
        yield
    finally:
        change("floor", before)
