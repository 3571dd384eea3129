"""What evaluations of branches and loops know: which lanes are active, and how many rounds there were.

Lanes are active that take the branch that is being run, or go on with the loop. What others compute is not used. It
must end and must not fail all the same: a branch reads what it captured, not only operands that have been prepared.

What loops of which nobody knew the length take is estimated for some number of rounds. One that runs longer ends the
evaluation after as many rounds in each run of a program, so that the graph is compiled and run instead: not by the
clock, since the last digits of results may tell both apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

R = TypeVar("R")


class ActiveByThread(threading.local):
    """Hold which lanes are active in this thread.

    Attributes:
        mask: a boolean in each lane; None where all are.
        fill: gives a value in which lanes that are not hold that of one that is; None where all are, and while it runs.
    """

    mask: Any = None
    fill: Callable[[Any], Any] | None = None


ACTIVE = ActiveByThread()


def in_lanes(mask: Any, fill: Callable[[Any], Any] | None, function: Callable[..., R], *args: Any) -> R:
    """Call a function while lanes are active where a mask holds.

    Args:
        mask: a boolean in each lane; None if all are.
        fill: as `ActiveByThread` says.
        function: what to call.
        args: its arguments.
    """
    before = ACTIVE.mask, ACTIVE.fill
    try:
        ACTIVE.mask, ACTIVE.fill = mask, fill
        return function(*args)
    finally:
        ACTIVE.mask, ACTIVE.fill = before  # at once: Ctrl-C comes before it, or after it


class TooManyRounds(Exception):
    """Say that an evaluation has taken as long as was given to it."""


class RoundCounter:
    """Count down what the rounds of some loops take.

    Args:
        left: how long they may take.
        times: how long a round of each takes, but for such loops inside of it, by the identity of its body.
    """

    def __init__(self, left: float, times: Mapping[int, float]) -> None:
        self.left, self.times = left, times

    def count(self, body: object) -> None:
        """Count a round of a loop, if it is one of these.

        Raises:
            TooManyRounds: there is no time left.
        """
        self.left -= self.times.get(id(body), 0.0)
        if self.left < 0:
            raise TooManyRounds


class Counting(threading.local):
    """Hold what counts rounds in this thread."""

    counter: RoundCounter | None = None


COUNTING = Counting()
