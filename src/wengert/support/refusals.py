"""Refusals: errors that plain NumPy would not have raised.

A program that catches one goes on with something else than plain NumPy would have given it. So a transformation keeps
those that are raised while it runs a function of the user, and raises the first again if the function hides it.
"""

from __future__ import annotations

import threading
from typing import TypeVar

E = TypeVar("E", bound=Exception)


class Refusals(threading.local):
    """Hold the refusals of this thread since a transformation called a function of the user; None outside of all."""

    def __init__(self) -> None:
        self.noted: list[Exception] | None = None


REFUSALS = Refusals()


def refusal(error: E) -> E:
    """Note an error that is about to be raised as a refusal, and return it."""
    if REFUSALS.noted is not None:
        REFUSALS.noted.append(error)
    return error


def refusal_count() -> int:
    """Return how many refusals have been noted: what to give to `forgive`."""
    return len(REFUSALS.noted or ())


def forgive(count: int) -> None:
    """Forget all refusals but the first `count`: they came of a try, and something else is tried now."""
    if REFUSALS.noted is not None:
        del REFUSALS.noted[count:]
