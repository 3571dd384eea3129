"""What is recorded now: the modes of a thread, or of a task that takes turns with others in one.

They are the value of a context variable, so each task of `asyncio` has its own. The compact operator paths must not
pay for looking it up, so `SPECIAL` holds a reference to all settings by which recording differs from the default, as
long as some context has them; while it is empty, everything is recorded plainly everywhere.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
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
        budget: how many bytes the reverse of a loop may keep, and whether that is a share of what a loop around it may.
    """

    __slots__ = ("__weakref__", "anomaly", "budget", "floor", "forward", "packing", "reviving")

    floor: float
    forward: tuple[float, str]
    packing: tuple[tuple[Callable[[Any], Any], Callable[[Any], Any]], ...]
    anomaly: bool
    reviving: float
    budget: tuple[float, bool]


def usual() -> Settings:
    """Return the settings by which everything is recorded plainly."""
    found = Settings()
    found.floor, found.forward, found.packing = -math.inf, (-math.inf, ""), ()
    found.anomaly, found.reviving, found.budget = False, -math.inf, (math.inf, False)
    return found


SPECIAL: list[weakref.ref[Settings]] = []
CURRENT: ContextVar[Settings] = ContextVar("wengert.settings", default=usual())  # noqa: B039 - never changed itself
settings: Callable[[], Settings] = CURRENT.get
"""Return the modes of this context."""


def change(attribute: str, value: Any) -> tuple[Settings, Settings]:
    """Set one of the modes of this context; return the settings before, and those after."""
    before, found = CURRENT.get(), Settings()
    found.floor, found.forward, found.packing = before.floor, before.forward, before.packing
    found.anomaly, found.reviving, found.budget = before.anomaly, before.reviving, before.budget
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


class BudgetReadings(threading.local):
    """Count how often this thread has asked for the byte budget: what was traced meanwhile depends on it."""

    count = 0


READINGS = BudgetReadings()


class BudgetReaders:
    """Hold the functions with native entries whose graphs depend on the budget of the context.

    Entries do not see that. Once a context has had a budget such functions have none any more.
    """

    def __init__(self) -> None:
        self.functions: weakref.WeakSet[Any] = weakref.WeakSet()
        self.forgotten = False

    def forget(self) -> None:
        """Let no entry call native code past a budget."""
        self.forgotten = True
        while self.functions:
            self.functions.pop().forget()


READERS = BudgetReaders()


def byte_budget() -> tuple[float, bool]:
    """Return how many bytes the reverse of a loop may keep in this context, and whether that is only a share."""
    READINGS.count += 1
    return settings().budget


def has_budget() -> bool:
    """Tell whether there is a byte budget in this context."""
    return settings().budget[0] < math.inf


@contextmanager
def budget_of(size: float, is_share: bool = False) -> Iterator[None]:
    """Let the reverse of a loop keep so many bytes for a while."""
    changed = change("budget", (size, is_share))
    try:
        yield
    finally:
        restore("budget", changed)


def share_of_budget() -> AbstractContextManager[None]:
    """Return a context in which loops inside of a loop may keep half of what it may."""
    size, _ = settings().budget
    return nullcontext() if size == math.inf else budget_of(size / 2, is_share=True)


def budget_for_each(lanes: int) -> AbstractContextManager[None]:
    """Return a context in which loops of one lane may keep what is left of the budget for each."""
    size, is_share = settings().budget
    return nullcontext() if size == math.inf else budget_of(size / max(lanes, 1), is_share)


class ChangedFloor:
    """Record from a level on for a while."""

    __slots__ = ("changed", "floor")

    def __init__(self, floor: float) -> None:
        self.floor = floor

    def __enter__(self) -> None:
        self.changed = change("floor", self.floor)

    def __exit__(self, *_: object) -> None:
        restore("floor", self.changed)
