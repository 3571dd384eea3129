"""Sums over partitions on Dask's workers: placement, lineage, retries and joining workers are Dask's.

A pass is one task a shard. A task depends on its shard, a future, and therefore runs where the shard and the rows in it
lie; when a worker dies, Dask makes its shards anew elsewhere and runs their tasks there. No task is restricted to a
worker: one whose worker has died would wait for ever.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import time
from collections.abc import Sequence
from typing import Any

from wengert.distributed.blocks import UNLIMITED, BlockPlan, Summand
from wengert.distributed.dask_data import DaskSource, is_future
from wengert.distributed.partitions import Partitions
from wengert.distributed.profiles import Stint
from wengert.distributed.shards import Parcel, Shard, WorkShare, align, find_nan, parcel_of, plan_shard, sum_shard
from wengert.distributed.sources import byte_size
from wengert.distributed.sums import Leaves, SumTree
from wengert.errors import UsageError, WorkerError
from wengert.support.attributes import function_name
from wengert.transforms.captured_state import CapturedState
from wengert.tree import leaves

LOOK = 1.0
"""Seconds after which it is looked again which workers there are."""
SMALL = 1 << 18
"""Bytes of arguments that travel with each task; larger ones are scattered."""
HELD, AGAIN = 32, 0.25
"""Passes, and seconds of them, whose tasks, with small results, Dask is told together to forget: a message for each
delays the next by 5 ms. What a dead worker had of them is computed again, ahead of what is waited for."""
PATIENCE, LONGEST = 5.0, 10.0
"""Seconds, and times what the slowest task of the passes before took, after which a task is given to another worker."""
TRIES = 8
"""How often a run of partitions is given to another worker because of silence or loss."""
PLACES = 5
"""How often shards that lie together are made again, to lie on workers of their own."""
SPARE = 2
"""Of so many times as many runs as threads the runs are kept."""
WAIT, PAUSE = 60.0, 0.005
"""Seconds for which a pass waits for a first worker, and between two looks at tasks of which some were late or lost."""
FINE = 8
"""Runs begin at multiples of a power of two that is an eighth of a run: few nodes of the tree are left open then."""


class Errand:
    """Hold a run of partitions that some worker is to sum up: its shard, and the tasks that were asked for.

    Attributes:
        is_suspect: whether it is one partition of a run that ended its workers, and has them for itself.
    """

    def __init__(self, start: int, stop: int, shard: Any = None, is_suspect: bool = False) -> None:
        self.start, self.stop, self.shard, self.is_suspect = start, stop, shard, is_suspect
        self.tasks: list[Any] = []
        self.began = 0.0
        self.tries = 0


def cut_runs(count: int, workers: int) -> list[tuple[int, int]]:
    """Return the runs of partitions of so many workers.

    >>> cut_runs(100, 3)
    [(0, 32), (32, 68), (68, 100)]
    """
    step = 1 << max((count // (FINE * workers)).bit_length() - 1, 0)
    edges = [min(round(count * k / workers / step) * step, count) for k in range(workers)] + [count]
    return [(a, b) for a, b in itertools.pairwise(edges) if a < b]


class DaskRunner:
    """Sum a function up over the partitions of data on the workers of a Dask client."""

    def __init__(self, client: Any, summand: Summand, data: Partitions) -> None:
        self.client, self.summand, self.data = client, summand, data
        # comes first in names of tasks, of which Dask's dashboard shows twelve characters
        self.label = function_name(summand.fun, "__name__").strip("<>")
        self.run = os.urandom(8).hex()
        self.parcel: Parcel | None = None
        self.captured = CapturedState(summand.outer_values)  # by the function in the parcel
        self.errands: list[Errand] = []
        self.late: list[Any] = []
        self.stuck: set[str] = set()  # keys of tasks at workers that are late with others
        self.abandoned: list[Any] = []
        self.done: list[Any] = []  # tasks of passes before
        self.workers: dict[str, int] = {}
        self.coming: list[Errand] = []
        self.attempts = 0
        self.looked = -LOOK
        self.slowest: float | None = None
        self.machine: dict[tuple[str, ...], str] = {}  # what workers of passes before had, and how errors call these
        self.spent: tuple[float, list[Stint]] = (0.0, [])  # on the last pass

    # Workers and shards

    def look(self) -> None:
        """Have a shard for each thread of the workers, as it was when it was last looked which there are."""
        self.late = [task for task in self.late if not task.done()]
        self.abandoned = [task for task in self.abandoned if not task.done()]
        if any(errand.shard.cancelled() for errand in self.errands):  # as by client.restart()
            self.errands, self.coming = [], []
        if self.coming and all(errand.shard.done() for errand in self.coming):
            self.adopt()
        if time.monotonic() - self.looked < LOOK and self.errands:
            return
        workers = self.present_workers()
        if not self.errands:
            self.errands = self.arrange(workers)
            self.wait([errand.shard for errand in self.errands])
        elif workers != self.workers or self.attempts:
            self.attempts = PLACES if workers != self.workers else self.attempts - 1
            self.coming = self.arrange(workers)
        self.workers, self.looked = workers, time.monotonic()

    def present_workers(self, errands: Sequence[Errand] = ()) -> dict[str, int]:
        """Return how many threads each worker has, waiting for the first one.

        Args:
            errands: what there is to do for them.

        Raises:
            WorkerError: there is none for a minute.
        """
        end = time.monotonic() + WAIT
        while not (found := dict(self.client.nthreads())):
            self.require_scheduler()
            if time.monotonic() > end:
                raise self.desertion(self.fatal_errands(errands))
            time.sleep(PAUSE)
        return found

    def arrange(self, workers: dict[str, int]) -> list[Errand]:
        """Return runs for workers, with the shards that there are, and new ones for those that lie together.

        Nobody waits for the new ones: passes go on as before until they are there. Workers that are gone come back most
        often, so that runs stay as they are when there are fewer.

        Args:
            workers: how many threads each has.
        """
        silent = self.silent_workers()
        room = {where: n for where, n in workers.items() if where not in silent} or dict(workers)
        threads, runs = sum(room.values()), [(errand.start, errand.stop) for errand in self.errands]
        if not threads <= len(runs) <= SPARE * threads:
            runs = cut_runs(self.data.count, threads)
        known = {(errand.start, errand.stop): errand.shard for errand in self.errands}
        placed = self.client.who_has([shard for shard in known.values() if shard is not None]) if known else {}
        found = []
        for start, stop in runs:
            shard = known.get((start, stop))
            where = next(iter(placed.get(shard.key, ())), None) if shard is not None else None
            if where is None or room.get(where, 0) <= 0:
                shard = None
            else:
                room[where] -= 1
            found.append(Errand(start, stop, shard))
        self.make([errand for errand in found if errand.shard is None])
        return found

    def adopt(self) -> None:
        """Use new runs and shards, if they lie on more workers than those that there were."""
        before, after = (self.places(errands) for errands in (self.errands, self.coming))
        if len(self.coming) != len(self.errands) or len(after) > len(before):
            self.errands, self.attempts = self.coming, self.attempts if len(after) < len(self.workers) else 0
        self.coming = []

    def places(self, errands: Sequence[Errand]) -> set[str]:
        """Return the addresses of the workers where shards lie."""
        placed = self.client.who_has([errand.shard for errand in errands if errand.shard is not None])
        return {where for addresses in placed.values() for where in addresses}

    def silent_workers(self) -> dict[str, Sequence[str]]:
        """Return the addresses of the workers that have not answered for long, with the keys of what they are to do."""
        keys = {task.key for task in self.late}
        return {where: at for where, at in self.client.processing().items() if keys & set(at)} if keys else {}

    def make(self, errands: Sequence[Errand]) -> None:
        """Have Dask make shards."""
        if not errands:
            return
        source = self.data.source
        items: list[Any] = [None] * len(errands)
        if isinstance(source, DaskSource):
            items = self.compute_runs(
                [[source.items[i] for i in range(errand.start, errand.stop)] for errand in errands]
            )
        for errand, own in zip(errands, items, strict=True):
            part = source.part(errand.start, errand.stop)
            # its page of groups raises KeyError unless what tasks depend on comes last by name: "_" is behind "-"
            key = f"{self.label}_rows-{errand.start}-{errand.stop}-{os.urandom(4).hex()}"
            errand.shard = self.client.submit(Shard, part, errand.start, self.run, own, key=key, pure=False)

    def compute_runs(self, runs: Sequence[Sequence[Sequence[Any]]]) -> list[Any]:
        """Return futures of what Dask computes for runs of partitions; all in one graph, which is sent once."""
        asked = self.client.compute([x for run in runs for item in run for x in item if not is_future(x)])
        futures = iter(asked)
        return [[[x if is_future(x) else next(futures) for x in item] for item in run] for run in runs]

    # A pass

    def __call__(self, args: Sequence[Any]) -> tuple[Leaves, Any]:
        """Return the leaves of the sum over all partitions, and what contains them."""
        self.require_scheduler()
        try:
            return self.sum_up(args)
        except Exception:  # whatever Dask raises: that there is no scheduler any more comes first
            self.require_scheduler()
            raise

    def sum_up(self, args: Sequence[Any]) -> tuple[Leaves, Any]:
        """Return what `__call__` does, or raise what Dask does about a scheduler that ends meanwhile."""
        self.look()
        if not self.captured.is_same() or self.parcel is None:
            self.parcel = parcel_of(self.summand, self.plan(args))
            self.captured.note()
        tree, structure, machines = SumTree(self.data.count), None, dict(self.machine)
        begin, shares = time.perf_counter(), self.shares(args)
        self.spent = time.perf_counter() - begin, [share.stint for share in shares]
        for share in shares:
            for place, found in share.nodes.items():
                tree.add(*place, found)
            structure = share.structure
            machines[share.machine] = share.stint.worker
        if len(machines) > 1:
            self.refuse_machines(machines)
        self.machine = dict.fromkeys(machines, "of passes before")
        return list(map(align, tree.root)), structure

    def refuse_machines(self, machines: dict[tuple[str, ...], str]) -> None:
        """Raise a UsageError about workers that compute other bits than others, or than those of passes before."""
        common = set.intersection(*map(set, machines))
        own = [(where, ", ".join(x for x in what if x not in common)) for what, where in machines.items()]
        given = "; ".join(f"worker {where} with {what or 'nothing else'}" for where, what in own)
        needed = "one version and sort of processor on all workers, for the same bits, is needed"
        raise UsageError(self.summand.name, given, needed, "Install the same versions, or take workers away")

    def plan(self, args: Sequence[Any]) -> BlockPlan:
        """Return how partitions are cut into blocks, which a worker finds out."""
        parcel = parcel_of(self.summand, BlockPlan((), UNLIMITED))
        first = self.errands[0]
        errand = Errand(first.start, first.start + 1, first.shard, is_suspect=True)  # of which one partition is read
        (key,) = self.task_keys("plan", [errand])
        errand.tasks = [self.client.submit(plan_shard, errand.shard, tuple(args), parcel, key=key, pure=False)]
        while True:
            try:
                found: BlockPlan = self.results(errand.tasks)[0]
                return found
            except TimeoutError:
                self.require_scheduler()
                self.present_workers([errand])
            except Exception as error:
                if not is_killed_worker(error):
                    raise
                raise self.accusation(errand) from error

    def shares(self, args: Sequence[Any]) -> list[WorkShare]:
        """Return what workers found for all runs of partitions."""
        size = byte_size([x for x in leaves(tuple(args)) if hasattr(x, "nbytes")])
        sent: Any = tuple(args)
        if size > SMALL and not self.late:
            (sent,) = self.client.scatter([sent], broadcast=True, hash=False)
        self.done += [task for errand in self.errands for task in errand.tasks]
        passes = len(self.done) / max(len(self.errands), 1)
        if size > SMALL or passes > HELD or passes * self.spent[0] > AGAIN:
            self.done.clear()
        for errand in self.errands:
            errand.tasks, errand.tries = [], 0
        tasks = self.ask(self.errands, sent)
        found: list[WorkShare] | None = None
        try:
            if not self.late:  # what Dask moved to a worker that is silent, since that seems idle, is not waited for
                with contextlib.suppress(Exception):  # whatever a task raised, or Dask about it: looked at one by one
                    found = self.results(tasks, size > SMALL)
            if found is None:
                found = self.settle(list(self.errands), tuple(args))
        except Exception:
            self.leave(tasks)
            raise
        except BaseException:  # an interrupt: they end by themselves, and nobody asks for them
            self.abandoned += tasks
            raise
        self.slowest = max([self.slowest or 0.0, *[share.stint.reading + share.stint.computing for share in found]])
        return found

    def task_keys(self, what: str, errands: Sequence[Errand]) -> list[str]:
        """Return keys of tasks, a group by themselves: Dask takes those of large groups to where shards are not."""
        group = f"{self.label}-{what}-{os.urandom(4).hex()}"
        return [f"('{group}', {errand.start})" for errand in errands]

    def ask(self, errands: Sequence[Errand], args: Any) -> list[Any]:
        """Have Dask run the tasks of runs of partitions, all of which travel in one message."""
        keys = self.task_keys(self.summand.name.rpartition(".")[2], errands)
        shards, starts, stops = zip(*[(x.shard, x.start, x.stop) for x in errands], strict=True)
        common = {"args": args, "parcel": self.parcel, "process": os.getpid()}
        tasks: list[Any] = self.client.map(sum_shard, shards, starts, stops, key=keys, pure=False, **common)
        for errand, task in zip(errands, tasks, strict=True):
            errand.began = time.monotonic()
            errand.tasks.append(task)
        return tasks

    def results(self, tasks: Sequence[Any], is_large: bool = False) -> list[Any]:
        """Return the results of tasks, all at once; raise what one of them did, or a TimeoutError if one is late."""

        async def gather_results() -> Any:
            found = asyncio.ensure_future(self.client.gather(list(tasks), direct=is_large or None, asynchronous=True))
            # Dask's own watchers of tasks, if they were cancelled with it, would write later errors to stderr
            found.add_done_callback(lambda done: done.cancelled() or done.exception())
            done, _ = await asyncio.wait([found], timeout=self.deadline() or WAIT)
            if not done:
                raise TimeoutError
            return found.result()

        found: list[Any] = self.client.sync(gather_results)
        return found

    def deadline(self) -> float | None:
        """Return after how many seconds a task is late; None in the first pass."""
        return None if self.slowest is None else max(PATIENCE, LONGEST * self.slowest)

    def settle(self, errands: list[Errand], args: tuple[Any, ...]) -> list[WorkShare]:
        """Bring all runs to an end after one failed, was lost, or is late.

        Of those that ended workers each partition runs again by itself, when nothing else does.
        """
        found: list[WorkShare] = []
        suspects: list[Errand] = []
        while errands or suspects:
            if not errands:
                run = suspects.pop()
                if not run.is_suspect:
                    suspects += [Errand(i, i + 1, is_suspect=True) for i in range(run.start, run.stop)]
                    continue
                errands = [run]
                self.make(errands)
                self.ask(errands, args)
            rest = []
            for errand in errands:
                share, error = self.outcome(errand, args)
                if share is not None:
                    found.append(share)
                elif error is None:
                    rest.append(errand)
                elif not is_killed_worker(error):
                    raise error
                elif errand.is_suspect:
                    raise self.accusation(errand) from error
                else:
                    suspects.append(errand)
            errands = rest
            if errands:
                self.require_scheduler()
                time.sleep(PAUSE)
            if errands and time.monotonic() - self.looked > LOOK:
                self.workers, self.looked = self.present_workers([*errands, *suspects]), time.monotonic()
                self.stuck = {key for keys in self.silent_workers().values() for key in keys}
        return found

    def outcome(self, errand: Errand, args: tuple[Any, ...]) -> tuple[WorkShare | None, BaseException | None]:
        """Return what a worker found, or the error that it met; neither if that is not known yet."""
        for task in errand.tasks:
            if task.status == "finished":
                try:
                    (share,) = self.results([task])
                except TimeoutError:
                    continue  # its worker fell silent since
                self.late += [other for other in errand.tasks if other is not task]
                return share, None
            if task.status == "error":
                return None, task.exception()
        is_lost = all(task.status in ("cancelled", "lost") or task.key in self.stuck for task in errand.tasks)
        deadline = self.deadline()
        if is_lost or (deadline is not None and time.monotonic() - errand.began > deadline):
            errand.tries += 1
            if errand.tries > TRIES:
                last = self.data.name(errand.stop - 1)
                given = f"partitions {errand.start} to {last}, which {TRIES} workers in turn did not sum up"
                raise WorkerError(self.summand.name, given, "an answer is needed", "Look at the workers' logs")
            self.late.append(errand.shard)
            self.attempts = PLACES
            self.make([errand])
            self.ask([errand], args)
        return None, None

    def fatal_errands(self, errands: Sequence[Errand]) -> list[Errand]:
        """Return those of some runs that workers had when they ended, as Dask's scheduler remembers."""
        if not errands:
            return []
        events = [event for _, event in self.client.get_events("all") if isinstance(event, dict)]
        ends = [event for event in events if event.get("action") == "remove-worker" and not event.get("expected")]
        had = {key for event in ends for key in event.get("processing-tasks", ())}
        return [errand for errand in errands if had.intersection(task.key for task in errand.tasks)]

    def desertion(self, fatal: Sequence[Errand]) -> WorkerError:
        """Return the error about a cluster without workers; runs that they had when they ended may be why."""
        if fatal and fatal[0].is_suspect:  # it had them for itself
            return self.accusation(fatal[0])
        runs = " and ".join(f"partitions {errand.start} to {self.data.name(errand.stop - 1)}" for errand in fatal)
        given = f"a cluster without workers for {WAIT:.0f} s" + (
            f", which ended while they summed up {runs}" * bool(runs)
        )
        action = (
            "Start some; they may join later. Dask's own clusters give up those that take longer to start again than"
            " distributed.deploy.lost-worker-timeout, 15 s"
        )
        return WorkerError(self.summand.name, given, "one or more are needed", action)

    def accusation(self, errand: Errand) -> WorkerError:
        """Return the error about a partition that ended workers."""
        given = f"{self.data.name(errand.start)}, which ended each worker that summed it up"
        action = "Read it by itself, or with fewer rows (.split), or with more memory; workers' logs may say more"
        return WorkerError(self.summand.name, given, "a partition that workers survive is needed", action)

    def find_nan(self, args: Sequence[Any]) -> tuple[int, int] | None:
        """Return the numbers of the first partition and row that give NaN; None if none does by itself."""
        shards, starts, stops = zip(*[(x.shard, x.start, x.stop) for x in self.errands], strict=True)
        keys = self.task_keys("nan", self.errands)
        common = {"args": tuple(args), "parcel": self.parcel}
        tasks = self.client.map(find_nan, shards, starts, stops, key=keys, pure=False, **common)
        return min((found for found in self.client.gather(tasks) if found is not None), default=None)

    # Ends

    def require_scheduler(self) -> None:
        """Raise a WorkerError if there is no scheduler any more."""
        if self.client.status not in ("running", "connecting"):
            given = f"a client that is {self.client.status}"
            raise WorkerError(self.summand.name, given, "a scheduler is needed", "Connect to one, and go on from there")

    def leave(self, tasks: Sequence[Any]) -> None:
        """Let Dask forget what nobody will ask for."""
        if self.client.status == "running":
            self.client.cancel(list(tasks), asynchronous=False)

    def wait(self, futures: Sequence[Any]) -> None:
        """Wait until Dask has some futures, but not for long."""
        from distributed import wait

        with contextlib.suppress(TimeoutError):
            wait(futures, timeout=PATIENCE)


def is_killed_worker(error: BaseException) -> bool:
    """Tell whether an error is Dask's about a task that ended too many workers."""
    return type(error).__name__ == "KilledWorker"
