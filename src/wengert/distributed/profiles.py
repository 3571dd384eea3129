"""What a pass over partitions takes, by who took part: reading, computing, waiting; and how far one is."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterable

from wengert.support.records import NamedTuple

SILENT = 2.0
"""Seconds of a pass before a line tells how far it is."""
REFRESH = 0.2
"""Seconds between two such lines."""


class Stint(NamedTuple):
    """What one thread did with partitions of a pass.

    Attributes:
        worker: the address of its worker, or which thread of this process it is.
        rows: how many it summed up.
        skipped: how many it left out.
        reading: seconds until rows were there.
        computing: seconds with them.
    """

    worker: str
    rows: int
    skipped: int
    reading: float
    computing: float


class WorkerTime(NamedTuple):
    """What one worker, or thread of this process, spent on a pass, in seconds.

    Attributes:
        worker: its address, or which thread it is.
        reading: until rows were there.
        computing: with them.
        waiting: for the others, for messages, and for what sums are added up.
    """

    worker: str
    reading: float
    computing: float
    waiting: float


class PassProfile(NamedTuple):
    """Hold what a pass took; shows as a table.

    Attributes:
        seconds: the whole pass, as its caller waits for it.
        workers: what each worker spent.
    """

    seconds: float
    workers: tuple[WorkerTime, ...]

    def __repr__(self) -> str:
        rows = [(name, *[f"{1e3 * x:,.1f} ms" for x in times]) for name, *times in self.workers]
        texts = [(f"{1e3 * self.seconds:,.1f} ms", "reading", "computing", "waiting"), *rows]
        widths = [max(map(len, column)) for column in zip(*texts, strict=True)]
        return "\n".join("  ".join(x.rjust(n) for x, n in zip(row, widths, strict=True)) for row in texts)


def profile_of_pass(seconds: float, stints: Iterable[Stint]) -> PassProfile:
    """Return what workers spent on a pass of so many seconds, from what each of their threads did.

    >>> profile_of_pass(1.0, [Stint("a", 9, 0, 0.25, 0.5), Stint("b", 9, 0, 0.0, 1.0)])
    1,000.0 ms   reading   computing   waiting
             a  250.0 ms    500.0 ms  250.0 ms
             b    0.0 ms  1,000.0 ms    0.0 ms
    """
    times: dict[str, WorkerTime] = {}
    for worker, _, _, reading, computing in stints:
        known = times.get(worker, WorkerTime(worker, 0.0, 0.0, 0.0))
        waiting = known.waiting + max(seconds - reading - computing, 0.0)
        times[worker] = WorkerTime(worker, known.reading + reading, known.computing + computing, waiting)
    return PassProfile(seconds, tuple(times.values()))


class ProgressLine:
    """Tell on a terminal how far a pass is that takes long; on Dask its dashboard does.

    Args:
        name: of what is summed up.
        count: how many partitions there are.
    """

    def __init__(self, name: str, count: int) -> None:
        self.name, self.count, self.done = name, count, 0
        self.begin = time.monotonic()
        self.next = self.begin + SILENT
        self.is_shown = False
        self.lock = threading.Lock()

    def step(self) -> None:
        """Note that a partition is done; several threads may."""
        with self.lock:
            self.done += 1
            now = time.monotonic()
            if now < self.next or not is_terminal():
                return
            self.next, self.is_shown = now + REFRESH, True
            left = (now - self.begin) * (self.count - self.done) / self.done
            text = f"{self.name}: {self.done} of {self.count} partitions, {left:,.0f} s left"
            print(f"\r\x1b[K{text}", end="", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Leave the line empty."""
        if self.is_shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def is_terminal() -> bool:
    """Tell whether there is somebody to read lines that go again."""
    return sys.stderr is not None and sys.stderr.isatty()
