"""What is recorded now: the modes of a thread, or of a task that takes turns with others in one.

They are the value of a context variable, so each task of `asyncio` has its own. The compact operator paths must not
pay for looking it up, so `SPECIAL` holds a reference to all settings by which recording differs from the default, as
long as some context has them; while it is empty, everything is recorded plainly everywhere.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Any

_levels = count(1)


def next_level() -> int:
    """Return a level newer than every other, for a trace; `next` on a counter is atomic, so threads need no lock.

    An operation goes to the trace with the highest level among its operands.
    """
    return next(_levels)


class Settings:
    """Hold the modes of one context, which are changed by putting others in their place.

    Attributes:
        floor: the level from which on traces record.
        forward: the level from which on traces belong to the `forward` that is running, and whose that is.
        packing: the pairs of functions that what is saved goes through.
        anomaly: whether a sweep stops at what is not finite.
        reviving: the level below which traces that have ended work again.
    """

    __slots__ = ("__weakref__", "anomaly", "floor", "forward", "packing", "reviving")

    floor: float
    forward: tuple[float, str]
    packing: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...]
    anomaly: bool
    reviving: float


def usual() -> Settings:
    """Return the settings by which everything is recorded plainly."""
    found = Settings()
    found.floor, found.forward, found.packing = -math.inf, (-math.inf, ""), ()
    found.anomaly, found.reviving = False, -math.inf
    return found


SPECIAL: list[weakref.ref[Settings]] = []
CURRENT: ContextVar[Settings] = ContextVar("wengert.settings", default=usual())  # noqa: B039 - never changed itself
settings: Callable[[], Settings] = CURRENT.get
"""Return the modes of this context."""


def change(attribute: str, value: Any) -> tuple[Settings, Settings]:
    """Set one of the modes of this context; return the settings before, and those after."""
    before, found = CURRENT.get(), Settings()
    found.floor, found.forward, found.packing = before.floor, before.forward, before.packing
    found.anomaly, found.reviving = before.anomaly, before.reviving
    setattr(found, attribute, value)
    if found.floor > -math.inf or found.packing:
        SPECIAL.append(weakref.ref(found, SPECIAL.remove))
    CURRENT.set(found)
    return before, found


def restore(attribute: str, changed: tuple[Settings, Settings]) -> None:
    """Set one of the modes to what it was before a change; others that were changed since stay."""
    before, found = changed
    if CURRENT.get() is found:
        CURRENT.set(before)
    else:
        change(attribute, getattr(before, attribute))


def has_ended(trace: Any) -> bool:
    """Tell whether a trace has ended and does not work again meanwhile."""
    return getattr(trace, "ended", False) and trace.level >= CURRENT.get().reviving


def recording_from(floor: float) -> AbstractContextManager[None]:
    """Return a context in which is recorded what was when the floor was at a level."""
    return nullcontext() if CURRENT.get().floor == floor else ChangedFloor(floor)


class ChangedFloor:
    """Record from a level on for a while."""

    __slots__ = ("changed", "floor")

    def __init__(self, floor: float) -> None:
        self.floor = floor

    def __enter__(self) -> None:
        self.changed = change("floor", self.floor)

    def __exit__(self, *_: object) -> None:
        restore("floor", self.changed)
