"""Sums over partitions on threads of this process."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from wengert.distributed.blocks import BlockPlan
from wengert.distributed.faults import add_place, find_nan_rows
from wengert.distributed.partitions import Partitions
from wengert.distributed.passes import PartitionPass, Pools
from wengert.distributed.row_cache import RowCache
from wengert.distributed.summand import PartitionRunner, Summand
from wengert.distributed.sums import Leaves, SumTree
from wengert.native.elementwise import SHARING

WORTHWHILE = 0.001
"""Seconds of a pass from which on several threads are worth waking."""


class HereRunner:
    """Sum a function up over the partitions of data in this process.

    Threads take partitions in their order, each the next one that nobody has; which one has which leaves no trace.
    """

    def __init__(self, summand: Summand, data: Partitions) -> None:
        self.summand, self.data = summand, data
        budget = None if summand.budget is None else summand.budget // 2
        self.rows = RowCache(data.read, budget, data.source.is_resident)
        self.runner: PartitionRunner | None = None
        self.seconds = WORTHWHILE  # of the last pass
        self.pools = Pools()

    def __call__(self, args: Sequence[Any]) -> tuple[Leaves, Any]:
        """Return the leaves of the sum over all partitions, behind their counts, and what contains them."""
        if self.runner is None:
            self.runner = PartitionRunner(self.summand, self.plan(args))
        count = self.data.count
        tree, start = SumTree(count), time.perf_counter()
        threads = min(SHARING.threads, count) if self.seconds >= WORTHWHILE else 1
        PartitionPass(self.runner, args, tree, self.data.name).run(self.rows, range(count), self.pools, threads)
        self.seconds = time.perf_counter() - start
        return tree.root, self.runner.blocks.structure

    def plan(self, args: Sequence[Any]) -> BlockPlan:
        """Return how partitions are cut into blocks."""
        try:
            return self.summand.plan(args, self.rows(0), self.data.lengths)
        except Exception as error:
            add_place(error, self.data.name(0))
            raise

    def find_nan(self, args: Sequence[Any]) -> tuple[int, int] | None:
        """Return the numbers of the first partition and row that give NaN; None if none does by itself."""
        for number in range(self.data.count):
            bad = find_nan_rows(self.summand.fun, args, self.data.read(number), 1)
            if bad:
                return number, bad[0]
        return None
