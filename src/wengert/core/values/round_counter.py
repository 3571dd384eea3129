"""Rounds of loops of which nobody knew how many there would be, counted while NumPy evaluates a graph.

What loops take is estimated for some number of rounds. One that runs longer ends the evaluation after as many rounds in
each run of a program, so that the graph is compiled and run instead: not by the clock, since the last digits of results
may tell both apart.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping


class TooManyRounds(Exception):
    """Say that an evaluation has taken as long as was given to it."""


class RoundCounter:
    """Count down what the rounds of some loops take: a context.

    Args:
        left: how long they may take.
        times: how long a round of each takes, but for such loops inside of it, by the identity of its body.
    """

    def __init__(self, left: float, times: Mapping[int, float]) -> None:
        self.left, self.times = left, times

    def __enter__(self) -> RoundCounter:
        self.before = COUNTING.counter
        COUNTING.counter = self
        return self

    def __exit__(self, *_: object) -> None:
        COUNTING.counter = self.before

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
