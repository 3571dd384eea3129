"""What is recorded now: the modes of a thread, or of a task that takes turns with others in one.

They are values of context variables, so each task of `asyncio` has its own. The compact operator paths must not pay for
looking them up, so `SPECIAL` holds a reference to each by which recording differs from the default, as long as some
context has it; while it is empty, everything is recorded plainly everywhere.
"""

from __future__ import annotations

import math
import threading
import weakref
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from contextvars import ContextVar
from itertools import count
from typing import Any, TypeVar

from wengert.support.scopes import Meanwhile

V = TypeVar("V", bound="Level | Packing")
_levels = count(1)


def next_level() -> int:
    """Return a level newer than every other, for a trace; `next` on a counter is atomic, so threads need no lock.

    An operation goes to the trace with the highest level among its operands.
    """
    return next(_levels)


class Level(float):
    """A level from which on traces record, of which `SPECIAL` knows."""

    __slots__ = ("__weakref__",)


class Packing(list[tuple[Callable[[Any], Any], Callable[[Any], Any]]]):
    """Pairs of functions that what is saved goes through, of which `SPECIAL` knows."""

    __slots__ = ("__weakref__",)


SPECIAL: list[weakref.ref[Level | Packing]] = []
FLOOR: ContextVar[float] = ContextVar("wengert.floor", default=-math.inf)
"""The level from which on traces record."""
FORWARD: ContextVar[tuple[float, str]] = ContextVar("wengert.forward", default=(-math.inf, ""))
"""The level from which on traces belong to the `forward` that is running, and whose that is."""
PACKING: ContextVar[Sequence[tuple[Callable[[Any], Any], Callable[[Any], Any]]]] = ContextVar(
    "wengert.packing", default=()
)
"""The pairs of functions that what is saved goes through."""
ANOMALY: ContextVar[bool] = ContextVar("wengert.anomaly", default=False)
"""Whether a sweep stops at what is not finite."""
REVIVING: ContextVar[float] = ContextVar("wengert.reviving", default=-math.inf)
"""The level below which traces that have ended work again."""
BUDGET: ContextVar[tuple[float, bool]] = ContextVar("wengert.budget", default=(math.inf, False))
"""How many bytes the reverse of a loop may keep, and whether that is a share of what a loop around it may."""


def special(value: V) -> V:
    """Return a level or packing of which `SPECIAL` knows as long as some context has it."""
    SPECIAL.append(weakref.ref(value, SPECIAL.remove))
    return value


def floor_at(level: float) -> float:
    """Return a level as a context may have it."""
    return special(Level(level)) if level > -math.inf else level


def packing_of(pairs: Sequence[Any]) -> Sequence[Any]:
    """Return pairs of functions as a context may have them."""
    return special(Packing(pairs)) if pairs else ()


def has_ended(trace: Any) -> bool:
    """Tell whether a trace has ended and does not work again meanwhile."""
    return getattr(trace, "ended", False) and trace.level >= REVIVING.get()


def recording_from(floor: float) -> AbstractContextManager[Any]:
    """Return a context in which is recorded what was when the floor was at a level."""
    return nullcontext() if FLOOR.get() == floor else Meanwhile(FLOOR, floor_at(floor))


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
    return BUDGET.get()


def has_budget() -> bool:
    """Tell whether there is a byte budget in this context."""
    return BUDGET.get()[0] < math.inf


def budget_of(size: float, is_share: bool = False) -> AbstractContextManager[Any]:
    """Return a context in which the reverse of a loop may keep so many bytes."""
    return Meanwhile(BUDGET, (size, is_share))


def share_of_budget() -> AbstractContextManager[Any]:
    """Return a context in which loops inside of a loop may keep half of what it may."""
    size, _ = BUDGET.get()
    return nullcontext() if size == math.inf else budget_of(size / 2, is_share=True)


def budget_for_each(lanes: int) -> AbstractContextManager[Any]:
    """Return a context in which loops of one lane may keep what is left of the budget for each."""
    size, is_share = BUDGET.get()
    return nullcontext() if size == math.inf else budget_of(size / max(lanes, 1), is_share)
