"""Passes over partitions on threads of this process."""

from __future__ import annotations

import contextvars
import os
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from wengert.distributed.blocks import kind_of_arguments
from wengert.distributed.faults import add_place
from wengert.distributed.partitions import Partitions
from wengert.distributed.read_ahead import ReadAhead
from wengert.distributed.row_cache import RowCache
from wengert.distributed.sources import Rows
from wengert.distributed.summand import PartitionRunner, Summand
from wengert.distributed.sums import Leaves, SumTree, TreeNode
from wengert.native.elementwise import SHARING

WORTHWHILE = 0.001
"""Seconds of a pass from which on several threads are worth waking."""
Parts = Iterator[tuple[int, Rows | Future[Rows]]]


class HereRunner:
    """Sum a function up over the partitions of data in this process.

    Partitions that are not in memory are read by a thread of its own, one ahead. Threads take partitions in their
    order, each the next one that nobody has; which one has which leaves no trace.
    """

    def __init__(self, summand: Summand, data: Partitions) -> None:
        self.summand, self.data = summand, data
        is_resident, budget = data.source.is_resident, summand.budget
        self.rows = RowCache(data.read, None if budget is None else budget // 2, is_resident)
        self.runner: PartitionRunner | None = None
        self.seconds = WORTHWHILE  # of the last pass
        self.process = os.getpid()
        self.pools: dict[str, ThreadPoolExecutor] = {}

    def __call__(self, args: Sequence[Any]) -> tuple[Leaves, Any]:
        """Return the leaves of the sum over all partitions, behind their counts, and what contains them."""
        if self.runner is None:
            self.runner = PartitionRunner(self.summand, self.plan(args))
        tree, start = SumTree(self.data.count), time.perf_counter()
        ahead, parts = self.read_parts()
        try:
            threads = min(SHARING.threads, self.data.count) if self.seconds >= WORTHWHILE else 1
            if threads == 1:
                self.sum_up(args, parts, tree)
            else:
                self.sum_on_threads(args, parts, tree, threads)
        finally:
            if ahead is not None:
                ahead.stop()
        self.seconds = time.perf_counter() - start
        return tree.root, self.runner.blocks.structure

    def plan(self, args: Sequence[Any]) -> Any:
        """Return how partitions are cut into blocks."""
        try:
            return self.summand.plan(args, self.rows(0), self.data.lengths)
        except Exception as error:
            add_place(error, self.data.name(0))
            raise

    def read_parts(self) -> tuple[ReadAhead[int] | None, Parts]:
        """Return an iterator over the partitions, and what reads them ahead where they are not in memory."""
        numbers = range(self.data.count)
        if self.rows.is_resident:
            return None, ((i, self.rows(i)) for i in numbers)
        if len(self.rows.known) == self.data.count:
            return None, iter(self.rows.known.items())
        ahead = ReadAhead(self.rows, numbers, self.pool("wengert-read", 1))
        return ahead, iter(ahead)

    def sum_up(self, args: Sequence[Any], parts: Parts, tree: SumTree, lock: Any = None) -> None:
        """Add up partitions until there are no more."""
        assert self.runner is not None
        kind, number = kind_of_arguments(args), -1
        compiled = self.summand.compiled
        try:
            for number, rows in parts:
                found = self.runner(args, kind, rows.result() if isinstance(rows, Future) else rows)
                node = TreeNode(0, number, found, compiled)
                if lock is None:
                    tree.add(node)
                else:
                    with lock:
                        tree.add(node)
        except Exception as error:
            if number >= 0:
                add_place(error, self.data.name(number))
            raise

    def sum_on_threads(self, args: Sequence[Any], parts: Parts, tree: SumTree, threads: int) -> None:
        """Add up partitions on several threads, this one waiting, so that signals are answered at once."""
        lock, pool = threading.Lock(), self.pool("wengert-sum", threads)
        shared = SharedIterator(parts)
        jobs = []
        for _ in range(threads):
            context = contextvars.copy_context()
            jobs.append(pool.submit(context.run, self.sum_up, args, shared, tree, lock))
        try:
            wait(jobs, return_when="FIRST_EXCEPTION")
        finally:
            shared.stop()
            wait(jobs)
        for job in jobs:
            job.result()

    def pool(self, name: str, threads: int) -> ThreadPoolExecutor:
        """Return the threads of this runner with a name, of which a forked process has none."""
        if self.process != os.getpid():
            self.process, self.pools = os.getpid(), {}
        key = f"{name}-{threads}"
        if key not in self.pools:
            self.pools[key] = ThreadPoolExecutor(threads, name)
        return self.pools[key]


class SharedIterator:
    """Be an iterator that several threads use, and that can be stopped."""

    def __init__(self, items: Iterator[Any]) -> None:
        self.items, self.lock = items, threading.Lock()

    def __iter__(self) -> SharedIterator:
        return self

    def __next__(self) -> Any:
        with self.lock:
            return next(self.items)

    def stop(self) -> None:
        """Let there be no more."""
        with self.lock:
            self.items = iter(())
