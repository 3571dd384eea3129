"""Sums over partitions on threads of this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wengert.distributed.blocks import BlockRunner, Summand
from wengert.distributed.partitions import Partitions
from wengert.distributed.passes import RowBudget, RowCache, first_nan, plan_by, room_for_rows, sum_partitions
from wengert.distributed.profiles import ProgressLine, Stint
from wengert.distributed.sums import Leaves, SumTree
from wengert.native.threads.elementwise import SHARING
from wengert.transforms.captured_state import CapturedState

WORTHWHILE = 0.001
"""Seconds of a pass from which on several threads are worth waking."""
ALONE = ("thread 0",)
"""The names of the threads of other passes."""


class HereRunner:
    """Sum a function up over the partitions of data in this process.

    Threads take partitions in their order, each the next one that nobody has; which one has which leaves no trace.
    """

    def __init__(self, summand: Summand, data: Partitions) -> None:
        self.summand, self.data, self.rows = summand, data, RowCache(data, RowBudget(room_for_rows(summand.budget)))
        self.runner: BlockRunner | None = None
        self.calls = 0  # of the function itself, by the runner, when what it captures was noted
        self.captured = CapturedState(summand.outer_values)  # after the last pass
        self.spent: tuple[float, list[Stint]] = (0.0, [])  # on the last pass
        self.work = WORTHWHILE  # seconds of the last pass, of all threads together

    def __call__(self, args: Sequence[Any]) -> tuple[Leaves, Any]:
        """Return the leaves of the sum over all partitions, and what contains them."""
        if (self.runner is None or self.summand.compiled) and not self.captured.is_same():
            plan, is_shared = plan_by(self.summand, args, self.rows, 0), self.data.count < SHARING.threads
            self.runner, self.calls = BlockRunner(self.summand, plan, is_shared), 0
        assert self.runner is not None  # nothing was noted before
        count, start = self.data.count, time.perf_counter()
        tree = SumTree(count)
        is_long = self.work >= WORTHWHILE
        workers = [f"thread {i}" for i in range(min(SHARING.threads, count))] if is_long else ALONE
        line = ProgressLine(self.summand.name, count) if is_long else None
        try:
            stints = sum_partitions(self.runner, args, self.rows, range(count), tree, workers, line)
        finally:
            if line is not None:
                line.end()
        seconds = time.perf_counter() - start
        self.work, self.spent = len(workers) * seconds, (seconds, stints)
        if self.calls != self.runner.calls:  # which the function may have counted, say
            self.calls = self.runner.calls
            self.captured.note()
        return tree.root, self.runner.structure

    def find_nan(self, args: Sequence[Any]) -> tuple[int, int] | None:
        """Return the numbers of the first partition and row that give NaN; None if none does by itself."""
        found: tuple[int, int] | None = first_nan(self.summand, args, self.data, range(self.data.count))
        return found
