"""Minibatches of data that no process holds, in an order that is a function of a key and the number of an epoch."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from wengert import random
from wengert.distributed.read_ahead import ReadAhead
from wengert.distributed.sources import Rows, byte_size, row_count

ORDER, WITHIN = 0, 1
"""What keys of the order of partitions, and of that of rows within a window of them, are folded with."""


class Batches:
    """Iterate over minibatches of partitions; made by `Partitions.batches`.

    Each iteration gives the same batches, as tuples of arrays of which neither another batch nor the data has any part,
    so that they may be written to; `data` are Partitions.
    """

    def __init__(
        self,
        data: Any,
        size: int,
        shuffle: Any,
        epoch: int,
        start: int,
        drop_last: bool,
        window: int,
        budget: int,
    ) -> None:
        self.data, self.size, self.epoch, self.start = data, size, epoch, start
        self.key = None if shuffle is None else random.fold_in(shuffle, epoch)
        self.drop_last, self.window, self.budget = drop_last, window, budget

    def windows(self) -> list[list[int]]:
        """Return which partitions are read together, in their order."""
        order = np.arange(self.data.count)
        if self.key is not None:
            order = np.random.Generator(generator_of(random.fold_in(self.key, ORDER))).permutation(order)
        return [order[i : i + self.window].tolist() for i in range(0, len(order), self.window)]

    def read(self, window: list[int]) -> Rows:
        """Return the rows of some partitions, in the order of this epoch."""
        parts = [self.data.read(number) for number in window]
        rows = parts[0] if len(parts) == 1 else tuple(map(np.concatenate, zip(*parts, strict=True)))
        if self.key is None:
            return rows if len(parts) > 1 else tuple([x.copy(order="K") for x in rows])
        key = random.fold_in(random.fold_in(self.key, WITHIN), window[0])
        order = np.random.Generator(generator_of(key)).permutation(row_count(rows))
        return tuple([x[order] for x in rows])

    def __iter__(self) -> Iterator[Rows]:
        """Iterate over the batches of the epoch, from `start` on."""
        left = self.start * self.size
        windows = self.windows()
        lengths = self.data.lengths
        while lengths is not None and windows and left >= sum(lengths[i] for i in windows[0]):  # need not be read
            left -= sum(lengths[i] for i in windows.pop(0))
        rest: Rows | None = None
        with ThreadPoolExecutor(1, "wengert-read") as pool:
            ahead = ReadAhead(self.read, windows, pool, byte_size, self.budget)
            try:
                for _, found in ahead:
                    rows, left = skip(found, left)
                    if rest is not None and row_count(rest):
                        rows = tuple(map(np.concatenate, zip(rest, rows, strict=True)))
                    whole = row_count(rows) // self.size * self.size
                    for at in range(0, whole, self.size):
                        yield tuple([x[at : at + self.size] for x in rows])
                    rest = tuple([x[whole:] for x in rows])
            finally:
                ahead.stop()
        if rest is not None and row_count(rest) and not self.drop_last:
            yield rest

    def __len__(self) -> int:
        """Return how many batches there are, which needs the number of rows."""
        left: int = self.data.rows - self.start * self.size
        return max(left // self.size if self.drop_last else -(-left // self.size), 0)


def skip(rows: Rows, count: int) -> tuple[Rows, int]:
    """Return rows without the first ones, and how many are still to be left out."""
    own = min(count, row_count(rows))
    return (tuple([x[own:] for x in rows]) if own else rows), count - own


def generator_of(key: Any) -> np.random.Philox:
    """Return NumPy's generator of the words of a key."""
    return np.random.Philox(key=np.asarray(key))
