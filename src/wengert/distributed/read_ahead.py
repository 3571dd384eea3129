"""Read what comes next while what was read before is computed with."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class ReadAhead(Generic[T]):
    """Iterate over items and what was read for them; several threads may, each item once.

    Args:
        read: of an item.
        items: the items.
        pool: of one thread, which reads, one item ahead or more; None to read when it is asked for.
        size: returns how many bytes something that was read has.
        budget: how many bytes, besides the next item, may be read ahead.
    """

    def __init__(
        self,
        read: Callable[[T], Any],
        items: Iterable[T],
        pool: ThreadPoolExecutor | None,
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
        while self.pool and (not self.jobs or (self.last and (len(self.jobs) + 1) * self.last <= self.budget)):
            item = next(self.items, None)
            if item is None:
                return
            self.jobs.append((item, self.pool.submit(self.read_one, item)))

    def read_one(self, item: T) -> Any:
        """Return the rows that are read for an item, and note their size."""
        found = self.read(item)
        if self.size is not None:
            self.last = self.size(found)
        return found

    def __iter__(self) -> Iterator[tuple[T, Any]]:
        return self

    def __next__(self) -> tuple[T, Any]:
        with self.lock:
            if self.pool is None:
                item, job = next(self.items), None
            elif self.jobs:
                item, job = self.jobs.popleft()
                self.fill()
            else:
                raise StopIteration
        return item, self.read(item) if job is None else job.result()

    def stop(self) -> None:
        """Let there be no more."""
        with self.lock:
            for _, job in self.jobs:
                job.cancel()
            self.jobs.clear()
            self.items = iter(())
