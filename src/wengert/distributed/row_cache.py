"""Rows that were read before, up to a number of bytes."""

from __future__ import annotations

import os
from collections.abc import Callable

from wengert.distributed.read_ahead import byte_size
from wengert.distributed.sources import Rows

PORTION = 4
"""Of this machine's memory, the part that rows may have where no budget is given."""
DEFAULT = 1 << 30
"""Bytes where the machine does not tell how many it has."""


class RowCache:
    """Read partitions, and keep the first ones that fit into a number of bytes.

    A pass reads all partitions in the same order: what was used least recently is what comes next.

    Args:
        read: of the number of a partition.
        budget: how many bytes may be kept; None for a quarter of this machine's memory.
        is_resident: whether rows are in memory anyway, and take none here.
    """

    def __init__(self, read: Callable[[int], Rows], budget: int | None, is_resident: bool = False) -> None:
        self.read, self.is_resident = read, is_resident
        self.room = machine_memory() // PORTION if budget is None else budget
        self.known: dict[int, Rows] = {}

    def __call__(self, number: int) -> Rows:
        """Return the rows of a partition."""
        rows = self.known.get(number)
        if rows is None:
            rows = self.read(number)
            size = 0 if self.is_resident else byte_size(rows)
            if size <= self.room:
                self.room -= size
                self.known[number] = rows
        return rows


def machine_memory() -> int:
    """Return how many bytes of memory this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT
