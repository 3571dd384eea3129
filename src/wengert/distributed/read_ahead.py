"""Read what comes next while what was read before is computed with."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Give what a function reads for some items, in their order, to any number of threads; one item ahead, or more.

    Args:
        read: of an item.
        items: the items.
        pool: of one thread, which reads.
        size: returns how many bytes something that was read has.
        budget: how many bytes, besides the next item, may be read ahead.
    """

    def __init__(
        self,
        read: Callable[[T], Any],
        items: Iterable[T],
        pool: ThreadPoolExecutor,
        size: Callable[[Any], int] | None = None,
        budget: int = 0,
    ) -> None:
        self.read, self.items, self.pool = read, iter(items), pool
        self.size, self.budget, self.last = size, budget, 0
        self.jobs: deque[tuple[T, Future[Any]]] = deque()
        self.lock = threading.Lock()
        self.fill()

    def fill(self) -> None:
        """Ask for the next items, as many as there is room for."""
        while not self.jobs or (self.last and (len(self.jobs) + 1) * self.last <= self.budget):
            item = next(self.items, None)
            if item is None:
                return
            self.jobs.append((item, self.pool.submit(self.read, item)))

    def __iter__(self) -> Iterator[tuple[T, Future[Any]]]:
        """Iterate over items and what will hold what was read; several threads may, each item goes to one of them."""
        while True:
            with self.lock:
                if not self.jobs:
                    return
                item, job = self.jobs.popleft()
                self.fill()
            yield item, job
            if self.size is not None and not self.last:
                self.last = self.size(job.result())

    def stop(self) -> None:
        """Forget what was asked for."""
        with self.lock:
            for _, job in self.jobs:
                job.cancel()
            self.jobs.clear()
            self.items = iter(())


def byte_size(rows: Any) -> int:
    """Return how many bytes the arrays of a partition have."""
    return sum(x.nbytes for x in rows)
