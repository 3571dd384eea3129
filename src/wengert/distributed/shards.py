"""What Dask's workers have and do: shards of partitions, and sums over them. All that they hold is a cache."""

from __future__ import annotations

import functools
import importlib
import os
import platform
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from wengert.core.containers.tree_leaves import map_leaves
from wengert.core.values.bounded_cache import Recent
from wengert.distributed.blocks import BlockPlan
from wengert.distributed.dask_data import flat_parts
from wengert.distributed.faults import add_place, find_nan_rows
from wengert.distributed.one_thread import ONE_THREAD
from wengert.distributed.passes import PartitionPass, Pools
from wengert.distributed.row_cache import RowCache
from wengert.distributed.sources import PartitionSource, Rows, as_rows
from wengert.distributed.summand import PartitionRunner, Summand
from wengert.distributed.sums import SumTree, TreeNode
from wengert.native.elementwise import SHARING
from wengert.support.digests import digest_of

WEIGHT = 1 << 26
"""Bytes that a shard says it has beside its rows: Dask's scheduler sends tasks to where much of what they need is."""
FLUSHED = 0.1
"""Seconds in which a worker sends what it has to tell."""
MOST_FUNCTIONS = 64
"""How many functions a worker knows, with their machine code."""


class Parcel(NamedTuple):
    """Hold something that is sent often: its pickle, and a digest by which a worker knows it again."""

    content: bytes
    digest: bytes


class Share(NamedTuple):
    """Hold what a worker found.

    Attributes:
        nodes: of the tree of sums, those that its partitions fill.
        structure: what contains their leaves.
        seconds: how long it took, with reading.
        machine: what has to be the same on all workers.
        worker: the address of the worker.
    """

    nodes: list[TreeNode]
    structure: Any
    seconds: float
    machine: str
    worker: str


class Shard:
    """Hold a run of partitions for whoever sums them up: a small object that anyone can make again.

    The rows that were read stay with it as far as they fit into a budget, in the worker where it lies; they do not
    travel.

    Args:
        source: of these partitions alone.
        start: the number of the first one.
        count: how many partitions there are in all.
        items: what Dask computed of them, if the source is a collection of Dask's.
    """

    def __init__(self, source: PartitionSource, start: int, count: int, items: Sequence[Any] | None = None) -> None:
        self.source, self.start, self.count = source, start, count
        self.items: list[Rows] | None = None
        if items is not None:
            self.items = [as_rows(flat_parts(x), self.name(start + i)) for i, x in enumerate(items)]
        self.forget()

    def forget(self) -> None:
        """Be without rows that were read."""
        self.rows: RowCache | None = None
        self.pools = Pools()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name not in ("rows", "pools")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self.forget()

    def __sizeof__(self) -> int:
        return WEIGHT + sum(x.nbytes for rows in self.items or () for x in rows)

    def name(self, number: int) -> str:
        """Return what errors call a partition."""
        return f"partition {number} of {self.count} ({self.source.name(number - self.start)})"

    def read(self, number: int) -> Rows:
        """Return the arrays of a partition."""
        if self.items is not None:
            return self.items[number - self.start]
        return as_rows(self.source.read(number - self.start), self.name(number))

    def cache(self, budget: int | None) -> RowCache:
        """Return what reads partitions and keeps their rows."""
        if self.rows is None:
            is_resident = self.items is not None or self.source.is_resident
            self.rows = RowCache(self.read, None if budget is None else budget // 2, is_resident)
        return self.rows


KNOWN: Recent[bytes, PartitionRunner] = Recent(MOST_FUNCTIONS)
LOCK = threading.Lock()


def runner_of(parcel: Parcel) -> PartitionRunner:
    """Return the function of a parcel, which this process has compiled before, if it knows it."""
    import cloudpickle

    with LOCK:
        runner = KNOWN.get(parcel.digest)
        if runner is None:
            runner = KNOWN[parcel.digest] = PartitionRunner(*cloudpickle.loads(parcel.content))
        KNOWN.touch(parcel.digest)
    return runner


def parcel_of(summand: Summand, plan: BlockPlan) -> Parcel:
    """Return what is sent of a function."""
    import cloudpickle

    content = cloudpickle.dumps((summand, plan))
    return Parcel(content, digest_of(content))


def sum_shard(
    shard: Shard, start: int, stop: int, args: Sequence[Any], parcel: Parcel, process: int, topic: str | None
) -> Share:
    """Return the sum over some partitions of a shard; run by workers.

    Args:
        shard: the shard.
        start: the number of the first partition.
        stop: that of the first one behind them.
        args: the arguments of the function.
        parcel: the function.
        process: the number of the client's process.
        topic: of Dask's log, where it is told before each partition that it comes next; None if nobody needs to know.
    """
    began = time.perf_counter()
    use_one_thread(process)
    args = map_leaves(aligned, args)
    runner, tree = runner_of(parcel), SumTree(shard.count)
    with ONE_THREAD:
        part = PartitionPass(runner, args, tree, shard.name)
        cache = shard.cache(runner.summand.budget)
        steps = [range(start, stop)] if topic is None else [range(i, i + 1) for i in range(start, stop)]
        for numbers in steps:
            if topic is not None:
                tell(topic, numbers[0])
            part.run(cache, numbers, shard.pools, 1)
    nodes = list(tree.open.values())
    return Share(nodes, runner.blocks.structure, time.perf_counter() - began, machine(), address())


def plan_shard(shard: Shard, args: Sequence[Any], parcel: Parcel, lengths: Sequence[int] | None) -> BlockPlan:
    """Return how partitions are cut into blocks, as the first one of a shard tells; run by a worker."""
    summand = runner_of(parcel).summand
    try:
        with ONE_THREAD:
            return summand.plan(args, shard.cache(summand.budget)(shard.start), lengths)
    except Exception as error:
        add_place(error, shard.name(shard.start))
        raise


def find_nan(shard: Shard, start: int, stop: int, args: Sequence[Any], parcel: Parcel) -> tuple[int, int] | None:
    """Return the numbers of the first partition and row of a shard that give NaN; run by workers."""
    fun = runner_of(parcel).summand.fun
    for number in range(start, stop):
        bad = find_nan_rows(fun, args, shard.read(number), 1)
        if bad:
            return number, bad[0]
    return None


def use_one_thread(process: int) -> None:
    """Let kernels use the thread of the task alone, unless the worker lies in the client's own process."""
    if os.getpid() != process and SHARING.threads > 1:
        SHARING.set_threads(1)


def aligned(leaf: Any) -> Any:
    """Return an argument as it was sent: received arrays begin at any byte, which changes the ways of BLAS."""
    return np.array(leaf) if type(leaf) is np.ndarray and not leaf.flags.aligned else leaf


def tell(topic: str, number: int) -> None:
    """Write into Dask's log, and wait until that is on its way."""
    from distributed import get_worker

    get_worker().log_event(topic, number)
    time.sleep(FLUSHED)


def address() -> str:
    """Return the address of this worker."""
    from distributed import get_worker

    return str(get_worker().address)


@functools.cache
def machine() -> str:
    """Return what the bits of results depend on besides their order: versions, and what the processor has."""
    version = sys.modules[__name__.partition(".")[0]].__version__
    features = importlib.import_module("numpy._core._multiarray_umath").__cpu_features__
    present = digest_of(" ".join(name for name, there in features.items() if there).encode()).hex()[:8]
    return f"wengert {version}, numpy {np.__version__}, {platform.machine()} with features {present}"
