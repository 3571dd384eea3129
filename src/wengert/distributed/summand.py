"""What is summed up over partitions: a function and how it is called, which is what travels to other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from wengert.distributed.blocks import BlockPlan, BlockRunner, plan_blocks, require_sum
from wengert.distributed.faults import sum_without_nan
from wengert.distributed.sources import Rows
from wengert.distributed.sums import Leaves


class Summand(NamedTuple):
    """Hold a function of arguments and a block of rows, and how it is called.

    Attributes:
        name: the public function that sums it up, for errors.
        fun: the function.
        compiled: whether it is traced and compiled.
        leaves_out_nan: whether rows that give NaN are left out and counted.
        budget: how many bytes a process may use; None for no limit.
    """

    name: str
    fun: Callable[..., Any]
    compiled: bool
    leaves_out_nan: bool
    budget: int | None

    def plan(self, args: Sequence[Any], rows: Rows, lengths: Sequence[int] | None) -> BlockPlan:
        """Return how partitions are cut, found out by one of them.

        Raises:
            UsageError: the function is no sum over rows.
        """
        require_sum(self.name, self.fun, args, rows)
        return plan_blocks(self.fun, args, rows, lengths, self.budget if self.compiled else None)


class PartitionRunner:
    """Sum a function up over the rows of one partition after the other, in one process, on any of its threads."""

    def __init__(self, summand: Summand, plan: BlockPlan) -> None:
        self.summand = summand
        self.blocks = BlockRunner(summand.fun, summand.compiled, plan)

    def __call__(self, args: Sequence[Any], kind: Any, rows: Rows) -> Leaves:
        """Return how many rows were summed up, how many left out, and the leaves of the sum."""
        if not self.summand.leaves_out_nan:
            return self.blocks(args, kind, rows)
        return sum_without_nan(lambda some: self.blocks(args, kind, some), self.summand.fun, args, rows)
