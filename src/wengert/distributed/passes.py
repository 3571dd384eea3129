"""A pass over partitions in one process: reading ahead, and adding up, on one thread or several."""

from __future__ import annotations

import contextvars
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any

from wengert.distributed.blocks import kind_of_arguments
from wengert.distributed.faults import add_place
from wengert.distributed.read_ahead import ReadAhead
from wengert.distributed.row_cache import RowCache
from wengert.distributed.sources import Rows
from wengert.distributed.summand import PartitionRunner
from wengert.distributed.sums import SumTree, TreeNode

Parts = Iterator[tuple[int, Rows | Future[Rows]]]


class Pools:
    """Have threads for some purposes, which a forked process begins anew."""

    def __init__(self) -> None:
        self.process = os.getpid()
        self.known: dict[tuple[str, int], ThreadPoolExecutor] = {}

    def __call__(self, name: str, threads: int) -> ThreadPoolExecutor:
        """Return so many threads with a name."""
        if self.process != os.getpid():
            self.process, self.known = os.getpid(), {}
        if (name, threads) not in self.known:
            self.known[name, threads] = ThreadPoolExecutor(threads, name)
        return self.known[name, threads]


class PartitionPass:
    """Sum up some partitions, once.

    Args:
        runner: what sums the rows of one up.
        args: the arguments.
        tree: what partitions are added to.
        name: of the number of a partition; returns what errors call it.
    """

    def __init__(self, runner: PartitionRunner, args: Sequence[Any], tree: SumTree, name: Callable[[int], str]) -> None:
        self.runner, self.args, self.tree, self.name = runner, args, tree, name
        self.lock = threading.Lock()

    def run(self, rows: RowCache, numbers: Sequence[int], pools: Pools, threads: int) -> None:
        """Sum partitions up on so many threads; those that are not in memory are read by another one, one ahead."""
        ahead: ReadAhead[int] | None = None
        parts: Parts
        if rows.is_resident:
            parts = ((i, rows(i)) for i in numbers)
        elif all(i in rows.known for i in numbers):
            parts = ((i, rows.known[i]) for i in numbers)
        else:
            ahead = ReadAhead(rows, numbers, pools("wengert-read", 1))
            parts = iter(ahead)
        try:
            if threads == 1:
                self.sum_up(parts)
            else:
                self.sum_on_threads(parts, pools("wengert-sum", threads), threads)
        finally:
            if ahead is not None:
                ahead.stop()

    def sum_up(self, parts: Iterable[tuple[int, Rows | Future[Rows]]]) -> None:
        """Add up partitions until there are no more."""
        kind, number, is_own = kind_of_arguments(self.args), -1, self.runner.summand.compiled
        try:
            for number, rows in parts:
                found = self.runner(self.args, kind, rows.result() if isinstance(rows, Future) else rows)
                with self.lock:
                    self.tree.add(TreeNode(0, number, found, is_own))
        except Exception as error:
            if number >= 0:
                add_place(error, self.name(number))
            raise

    def sum_on_threads(self, parts: Parts, pool: ThreadPoolExecutor, threads: int) -> None:
        """Add up partitions on several threads, this one waiting, so that signals are answered at once."""
        shared = SharedIterator(parts)
        jobs = [pool.submit(contextvars.copy_context().run, self.sum_up, shared) for _ in range(threads)]
        try:
            wait(jobs, return_when="FIRST_EXCEPTION")
        finally:
            shared.stop()
            wait(jobs)
        for job in jobs:
            job.result()


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
