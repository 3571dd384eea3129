"""Levels of traces: an operation goes to the trace with the highest one among its operands."""

from __future__ import annotations

from itertools import count

_levels = count(1)


def next_level() -> int:
    """Return a level newer than every other; `next` on a counter is atomic, so threads need no lock."""
    return next(_levels)
