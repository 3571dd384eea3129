"""What Dask's workers have and do: shards of partitions, and sums over them. All that they hold is a cache."""

from __future__ import annotations

import functools
import importlib
import os
import platform
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.distributed.blocks import BlockPlan, BlockRunner, Summand
from wengert.distributed.dask_data import DaskSource
from wengert.distributed.partitions import Partitions
from wengert.distributed.passes import RowBudget, RowCache, first_nan, plan_by, room_for_rows, sum_partitions
from wengert.distributed.profiles import Stint
from wengert.distributed.sources import PartitionSource
from wengert.distributed.sums import Leaves, SumTree
from wengert.native.threads.elementwise import SHARING
from wengert.support.caches import Recent
from wengert.support.digests import digest_of
from wengert.support.records import NamedTuple

WEIGHT = 1 << 26
"""Bytes that a shard says it has beside its rows: Dask's scheduler sends tasks to where much of what they need is."""
MOST_FUNCTIONS = 64
"""How many functions a worker knows, with their machine code."""


class Parcel(NamedTuple):
    """Hold something that is sent often: its pickle, and a digest by which a worker knows it again."""

    content: bytes
    digest: bytes


class WorkShare(NamedTuple):
    """Hold what a worker found.

    Attributes:
        nodes: of the tree of sums, those that its partitions fill, by level and number.
        structure: what contains their leaves.
        machine: what has to be the same on all workers.
        stint: what its thread did.
    """

    nodes: dict[tuple[int, int], Leaves]
    structure: Any
    machine: tuple[str, ...]
    stint: Stint


class Shard:
    """Hold partitions for whoever sums them up: a small object that anyone can make again.

    The rows that were read stay with it as far as they fit into a budget, in the worker where it lies; they do not
    travel.

    Args:
        source: of these partitions alone.
        start: the number of the first one.
        run: what tells those apart, and whoever sums them up, that share the room for rows.
        items: what Dask computed of them, if the source is a collection of Dask's.
    """

    def __init__(self, source: PartitionSource, start: int, run: str, items: Sequence[Any] | None = None) -> None:
        if items is not None and isinstance(source, DaskSource):
            source.hold(start, items)
        self.data, self.start, self.bytes = Partitions(source), start, WEIGHT + sum(map(size_of, items or ()))
        self.run, self.rows = run, None

    rows: RowCache | None

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "rows": None}

    def __sizeof__(self) -> int:
        return self.bytes

    def cache(self, budget: int | None) -> RowCache:
        """Return what reads partitions and keeps their rows on a worker, which has a shard for each thread, or more."""
        from distributed import get_worker

        if self.rows is None:
            room = RowBudget(room_for_rows(budget, get_worker().memory_manager.memory_limit))
            self.rows = RowCache(self.data, ROOMS.setdefault(self.run, room))
        return self.rows


def size_of(item: Sequence[Any]) -> int:
    """Return how many bytes arrays and columns have that Dask computed for a partition."""
    return sum(int(np.sum(getattr(x, "nbytes", 0))) for x in item)


KNOWN: Recent[bytes, BlockRunner] = Recent(MOST_FUNCTIONS)
ROOMS: Recent[str, RowBudget] = Recent(MOST_FUNCTIONS)


def runner_of(parcel: Parcel) -> BlockRunner:
    """Return the function of a parcel, which this process has compiled before, if it knows it."""
    import cloudpickle

    runner = KNOWN.get(parcel.digest)
    if runner is None:  # one of several threads makes what all use
        runner = KNOWN.setdefault(parcel.digest, BlockRunner(*cloudpickle.loads(parcel.content)))
    KNOWN.touch(parcel.digest)
    return runner


def parcel_of(summand: Summand, plan: BlockPlan) -> Parcel:
    """Return the pickled function and plan that are sent to workers, with their digest."""
    import cloudpickle

    content = cloudpickle.dumps((summand, plan))
    return Parcel(content, digest_of(content))


def sum_shard(shard: Shard, start: int, stop: int, args: Sequence[Any], parcel: Parcel, process: int) -> WorkShare:
    """Return the sum over some partitions of a shard; run by workers.

    Args:
        shard: the shard.
        start: the number of the first partition.
        stop: that of the first one behind them.
        args: the arguments of the function.
        parcel: the function.
        process: the number of the client's process.
    """
    from distributed import get_worker

    if os.getpid() != process and SHARING.threads > 1:  # kernels use the thread of the task alone
        SHARING.set_threads(1)
    runner, tree = runner_of(parcel), SumTree(shard.data.count)
    rows = shard.cache(runner.summand.budget)
    workers = (str(get_worker().address),)
    (stint,) = sum_partitions(runner, map_leaves(align, args), rows, range(start, stop), tree, workers)
    return WorkShare(tree.nodes, runner.structure, machine(), stint)


def plan_shard(shard: Shard, args: Sequence[Any], parcel: Parcel) -> BlockPlan:
    """Return how partitions are cut into blocks, as the first one of a shard tells; run by a worker."""
    summand = runner_of(parcel).summand
    return plan_by(summand, args, shard.cache(summand.budget), shard.start)


def find_nan(shard: Shard, start: int, stop: int, args: Sequence[Any], parcel: Parcel) -> Any:
    """Return the numbers of the first partition and row of a shard that give NaN; run by workers."""
    return first_nan(runner_of(parcel).summand, args, shard.data, range(start, stop))


def align(leaf: Any) -> Any:
    """Return an array as ours: what was received cannot be written to, and begins at any byte, where BLAS differs."""
    if type(leaf) is not np.ndarray or (leaf.flags.aligned and leaf.flags.writeable):
        return leaf
    return np.array(leaf)


@functools.cache
def machine() -> tuple[str, ...]:
    """Return what the bits of results depend on besides their order: versions, and what the processor has."""
    version = sys.modules[__name__.partition(".")[0]].__version__
    features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    present = [name for name, there in features.items() if there]
    return f"wengert {version}", f"numpy {np.__version__}", platform.machine(), *present
