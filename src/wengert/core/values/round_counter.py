"""Rounds of loops of which nobody knew how many there would be, counted while NumPy evaluates a graph.

What loops take is estimated for some number of rounds. One that runs longer ends the evaluation after as many rounds in
each run of a program, so that the graph is compiled and run instead: not by the clock, since the last digits of results
may tell both apart.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from typing import Any


class TooManyRounds(Exception):
    """Say that an evaluation has taken as long as was given to it."""


class RoundCounter:
    """Count down what rounds take: a context.

    Args:
        left: how long the loops may take.
        time_of: how long a round takes of a loop with these parameters, but for such loops inside of it.
    """

    def __init__(self, left: float, time_of: Callable[[Mapping[str, Any]], float]) -> None:
        self.left, self.time_of = left, time_of
        self.times: dict[int, float] = {}

    def __enter__(self) -> RoundCounter:
        self.before = COUNTING.counter
        COUNTING.counter = self
        return self

    def __exit__(self, *_: object) -> None:
        COUNTING.counter = self.before

    def count(self, params: Mapping[str, Any]) -> None:
        """Count a round.

        Raises:
            TooManyRounds: there is no time left.
        """
        loop = id(params["body"])  # which the graph holds meanwhile
        if loop not in self.times:
            self.times[loop] = self.time_of(params)
        self.left -= self.times[loop]
        if self.left < 0:
            raise TooManyRounds


class Counting(threading.local):
    """Hold what counts rounds in this thread."""

    counter: RoundCounter | None = None


COUNTING = Counting()
