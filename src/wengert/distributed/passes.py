"""A pass over partitions in one process: what is kept of them, reading ahead, and adding up, on one thread or more."""

from __future__ import annotations

import contextvars
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from wengert.distributed.blocks import BlockPlan, BlockRunner, Summand
from wengert.distributed.faults import add_place, find_nan_rows
from wengert.distributed.partitions import Partitions
from wengert.distributed.profiles import ProgressLine, Stint
from wengert.distributed.read_ahead import ReadAhead
from wengert.distributed.sources import Rows, byte_size
from wengert.distributed.sums import SumTree

PORTION = 4
"""Of this machine's memory, the part that rows may have where no budget is given."""
DEFAULT = 1 << 30
"""Bytes where the machine does not tell how many it has."""
COMPILING = 1 << 26
"""Bytes that tracing and compiling a function takes: 40 to 55 MB for gradients and Hessians of few operations."""


class RowBudget:
    """Count how many bytes the rows may still have that are kept in a process."""

    def __init__(self, free: int) -> None:
        self.free, self.lock = free, threading.Lock()

    def take(self, size: int) -> bool:
        """Tell whether so many bytes are there, which are no longer, then."""
        with self.lock:
            is_there = size <= self.free
            self.free -= size * is_there
        return is_there

    def give(self, parts: Mapping[int, Rows]) -> None:
        """Have the bytes of partitions that are not kept any more."""
        with self.lock:
            self.free += sum(map(byte_size, parts.values()))


class RowCache:
    """Read partitions, and keep the first ones for which there is room.

    A pass reads all partitions in the same order: what was used least recently is what comes next.
    """

    def __init__(self, data: Partitions, room: RowBudget) -> None:
        self.data, self.is_resident, self.room = data, data.source.is_resident, room
        self.known: dict[int, Rows] = {}
        self.pools: dict[tuple[str, int, int], ThreadPoolExecutor] = {}
        if not self.is_resident:
            weakref.finalize(self, room.give, self.known)

    def __call__(self, number: int) -> Rows:
        """Return the rows of a partition."""
        rows = self.known.get(number)
        if rows is None:
            rows = self.data.read(number)
            if self.is_resident or (self.room.free and self.room.take(byte_size(rows))):
                self.known[number] = rows
        return rows

    def known_parts(self, numbers: Sequence[int]) -> list[tuple[int, Rows]] | None:
        """Return partitions with their numbers if all are in memory, else None."""
        known = self.known
        try:
            return [(i, known[i]) for i in numbers]
        except KeyError:
            return [(i, self(i)) for i in numbers] if self.is_resident else None

    def pool(self, name: str, threads: int) -> ThreadPoolExecutor:
        """Return so many threads with a name; in a forked process others than before."""
        key = name, threads, os.getpid()
        if key not in self.pools:
            self.pools[key] = ThreadPoolExecutor(threads, name)
        return self.pools[key]


def room_for_rows(budget: int | None, memory: int | None = None) -> int:
    """Return how many bytes of rows a process keeps.

    Args:
        budget: how many bytes it may use: half of them for rows, if a quarter and what compiling takes are left for the
            blocks of two threads. None for a quarter of its memory.
        memory: how many bytes it has; None for those of this machine.

    >>> room_for_rows(400_000_000), room_for_rows(100_000_000), room_for_rows(None, 400_000_000)
    (200000000, 7891136, 100000000)
    """
    if budget is None:
        return (memory or machine_memory()) // PORTION
    return max(min(budget // 2, 3 * budget // 4 - COMPILING), 0)


def machine_memory() -> int:
    """Return how many bytes of memory this machine has."""
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):
        return DEFAULT


def sum_partitions(
    runner: BlockRunner,
    args: Sequence[Any],
    rows: RowCache,
    numbers: Sequence[int],
    tree: SumTree,
    workers: Sequence[str],
    line: ProgressLine | None = None,
) -> list[Stint]:
    """Add to a tree what a function gives for some partitions, on threads of some names; return what each did."""
    name, threads = rows.data.name, len(workers)
    known = rows.known_parts(numbers) if threads == 1 else None
    if known is not None:
        return [sum_up(runner, args, known, tree, name, line, workers[0])]
    # each of several threads reads what it computes with, which its processor's cache holds then
    ahead = ReadAhead(rows, numbers, rows.pool("wengert-read", 1) if threads == 1 else None)
    try:
        if threads == 1:
            return [sum_up(runner, args, ahead, tree, name, line, workers[0])]
        pool, work = rows.pool("wengert-sum", threads), partial(sum_up, runner, args, ahead, tree, name, line)
        jobs = [pool.submit(contextvars.copy_context().run, work, worker) for worker in workers]
        try:
            wait(jobs, return_when="FIRST_EXCEPTION")  # this thread waits, so that signals are answered at once
        finally:
            ahead.stop()
            wait(jobs)
        return [job.result() for job in jobs]
    finally:
        ahead.stop()


def sum_up(
    runner: BlockRunner,
    args: Sequence[Any],
    parts: Iterable[tuple[int, Rows]],
    tree: SumTree,
    name: Callable[[int], str],
    line: ProgressLine | None,
    worker: str,
) -> Stint:
    """Add up partitions until there are no more; return what that took."""
    clock, is_own, leaves_out = time.perf_counter, runner.summand.compiled, runner.summand.leaves_out_nan
    count, skipped, reading, end = 0, 0, 0.0, (begin := clock())
    for number, rows in parts:
        reading += clock() - end
        try:
            leaves, bad = runner.sum_numbers(args, rows) if leaves_out else (runner.sum(args, rows), 0)
            tree.add(0, number, leaves, is_own)
        except Exception as error:
            add_place(error, name(number))
            raise
        if line is not None:
            line.step()
        count, skipped, end = count + len(rows[0]) - bad, skipped + bad, clock()
        del rows  # so that the next ones have their memory, which the processor's cache holds: a fifth of a pass
    return Stint(worker, count, skipped, reading, end - begin - reading)


def plan_by(summand: Summand, args: Sequence[Any], rows: RowCache, number: int) -> BlockPlan:
    """Return how partitions are cut into blocks, found out by one of them."""
    try:
        return summand.plan(args, rows(number), rows.data.lengths)
    except Exception as error:
        add_place(error, rows.data.name(number))
        raise


def first_nan(summand: Summand, args: Sequence[Any], data: Partitions, numbers: Iterable[int]) -> Any:
    """Return the numbers of the first partition and row that give NaN; None if none does by itself."""
    for number in numbers:
        bad = find_nan_rows(summand.fun, args, data.read(number), 1)
        if bad:
            return number, bad[0]
    return None
