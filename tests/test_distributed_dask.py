"""Sums over partitions on Dask's workers: the bits of this process, whatever happens to workers."""

import contextlib
import gc
import logging
import os
import signal
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize

from tests.cases import together
from wengert import distributed
from wengert.distributed import partitions, value_and_grad
from wengert.distributed.blocks import Summand
from wengert.distributed.on_dask import DaskRunner, Errand, cut_runs
from wengert.errors import DtypeError, NumericalError, ShapeError, UsageError, WorkerError

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(1000, 5)), (RNG.random(1000) < 0.5) * 1.0
W = RNG.normal(size=5)


@pytest.fixture(scope="module")
def cluster():
    """A cluster of two processes on the loopback interface."""
    pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    import dask
    from distributed import Client, LocalCluster
    from distributed.utils import get_mp_context

    options = {"n_workers": 1, "threads_per_worker": 1, "dashboard_address": None, "silence_logs": 50}
    settings = {"distributed.worker.multiprocessing-method": "forkserver"}  # processes share what is imported
    with dask.config.set(settings):
        get_mp_context().set_forkserver_preload(["distributed", "numpy", "wengert.distributed", "wengert.transforms"])
    with dask.config.set(settings):
        local = LocalCluster(**options)
        try:
            with Client(local, timeout=60):
                yield local
        finally:
            with contextlib.suppress(KeyError):  # it may look for a worker that died as it came
                local.close()


def functions():
    """Functions that are sent by value, as those of a notebook are: workers do not import this file."""

    def loss(w, x, y):
        z = x @ w
        return np.sum(np.logaddexp(0.0, z) - y * z)

    x, y = X, Y

    def read(i):
        return x[i::8], y[i::8]

    return loss, read


LOSS, READ = functions()
LOSS.__module__ = READ.__module__ = "__main__"


def same(run, data, **options):
    """Assert that workers give the bits of this process."""
    value, gradient = value_and_grad(LOSS, data, **options)(W)
    found = run(W)
    assert value == found[0]
    np.testing.assert_array_equal(gradient, found[1])


def case_of_a_worker_that_joins(client, cluster):
    run = value_and_grad(LOSS, partitions((8, READ)), client=client, jit=False)
    same(run, partitions((8, READ)), jit=False)
    assert len(run.profile.workers) == 1
    cluster.scale(2)
    client.wait_for_workers(2, timeout=60)
    end = time.monotonic() + 30
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wengert.distributed.on_dask.LOOK", 0.05)
        while len(run.profile.workers) < 2:  # as soon as its shards are there
            assert time.monotonic() < end
            same(run, partitions((8, READ)), jit=False)


def case_of_data(client, _cluster):
    import dask
    import dask.array as da

    large = np.tile(W, 20_000)
    run = value_and_grad(LOSS, (X, Y), client=client)
    same(run, (X, Y))
    for _ in range(9):  # with what is compiled and read
        same(run, (X, Y))
    places = client.who_has([errand.shard for errand in run.run.errands])
    assert all(len(addresses) == 1 for addresses in places.values())  # rows have stayed where they were
    assert all(key.startswith("loss_rows-") for key in places)  # behind those of tasks, `loss-value_and_grad-...`
    factor = 1.0
    scaled = value_and_grad(lambda w, x, y: factor * np.sum(x @ w), (X, Y), client=client)
    for factor in (1.0, 2.0):  # which workers get, too
        np.testing.assert_allclose(scaled(W)[1], factor * X.sum(0))
    finer = partitions((8, READ)).split(3)
    same(value_and_grad(LOSS, finer, client=client, jit=False), finer, jit=False)
    arrays = da.from_array(X, chunks=(300, 2)), da.from_array(Y, chunks=250)
    items = [dask.delayed(READ)(i) for i in range(8)]
    for data in (arrays, items, client.map(READ, range(8)), [READ(i) for i in range(8)]):
        same(value_and_grad(LOSS, partitions(data), client=client, jit=False), partitions(data), jit=False)
    known = partitions(arrays)
    assert known.lengths == (300, 300, 300, 100)
    assert known.rows == 1000
    assert [len(y) for _, y in known.batches(400)] == [400, 400, 200]
    assert partitions(items).split(2).count == 16
    same(value_and_grad(LOSS, known.split(2), client=client, jit=False), known.split(2), jit=False)
    scattered = distributed.grad(lambda w, x: np.sum(w * np.sum(x)), X, client=client, jit=False)(large)
    np.testing.assert_allclose(scattered, np.full(100_000, X.sum()))
    mean = value_and_grad(LOSS, (X, Y), client=client, reduce="mean", nan="skip", memory="10MB", jit=False)
    assert mean(W)[0] == pytest.approx(LOSS(W, X, Y) / 1000)
    assert (mean.rows, mean.skipped) == (1000, 0)


def case_of_an_optimiser(client, _cluster):
    def iterates(fun):
        found = []
        minimize(fun, np.zeros(5), jac=True, method="L-BFGS-B", callback=lambda x: found.append(x.tobytes()))
        return found

    data = partitions((X, Y), count=5)
    expected = iterates(value_and_grad(LOSS, data))
    assert len(expected) > 3
    assert iterates(value_and_grad(LOSS, data, client=client)) == expected


def set_machine(*more):
    """Have a worker tell that its processor has more than it has."""
    from wengert.distributed import shards

    known = getattr(shards.machine, "known", shards.machine)

    def other():
        return (*known(), *more)

    other.known = known
    shards.machine = other


set_machine.__module__ = "__main__"


def case_of_bad_input(client, _cluster):
    import dask.array as da

    data = partitions((8, READ), names="file_{}.npy".format)
    bad = X.copy()
    bad[417] = np.nan
    with pytest.raises(NumericalError, match=r"NaN from row 167 of partition 1 of 4 \(rows 250 to 500\)"):
        value_and_grad(LOSS, partitions((bad, Y), count=4), client=client)(W)

    def picky(w, x, y):
        if y[0] == READ(5)[1][0] and np.array_equal(x, READ(5)[0]):
            raise ValueError("not this one")
        return LOSS(w, x, y)

    with pytest.raises(ValueError, match="not this one") as told:
        value_and_grad(picky, data, client=client, jit=False)(W)
    assert "in partition 5 of 8 (file_5.npy)" in told.value.__notes__
    run = value_and_grad(LOSS, data, client=client, jit=False)
    same(run, data, jit=False)
    for where in (list(client.nthreads())[:1], None):  # others beside them; and in place of those of passes before
        client.run(set_machine, "AMX", workers=where)
        with pytest.raises(UsageError, match=r"worker \S+ with AMX; .*one version and sort of processor"):
            run(W)
    client.run(set_machine)
    same(run, data, jit=False)
    with pytest.raises(UsageError, match="a sum over rows is needed"):
        value_and_grad(lambda w, x, y: np.mean(x @ w), data, client=client)(W)
    with pytest.raises(ShapeError, match=r"unknown chunk sizes; .* Call \.compute_chunk_sizes"):
        partitions(da.from_array(X, chunks=(300, 5))[da.from_array(Y, chunks=300) > 0])
    with pytest.raises(ShapeError, match="arrays of 1000 and 999 rows"):
        partitions((da.from_array(X), da.from_array(Y[1:])))
    with pytest.raises(UsageError, match="a value of type ndarray among Dask's arrays"):
        partitions((da.from_array(X), Y))
    with pytest.raises(DtypeError, match=r"3.0 for client; a dask\.distributed\.Client is needed"):
        value_and_grad(LOSS, data, client=3.0)


def case_of_a_killed_worker(client, cluster):
    run = value_and_grad(LOSS, partitions((8, READ)), client=client, jit=False)
    same(run, partitions((8, READ)), jit=False)
    process = next(iter(cluster.workers.values())).process.pid
    os.kill(process, signal.SIGKILL)
    for _ in range(5):
        same(run, partitions((8, READ)), jit=False)
    client.cancel([errand.shard for errand in run.run.errands])  # as `client.restart()` does
    run.run.workers, run.run.looked = {}, 0.0
    same(run, partitions((8, READ)), jit=False)


def fatal_data(number):
    """Partitions of which one ends whoever reads it."""

    def fatal(i):
        if i == number:
            os._exit(1)
        return READ(i)

    fatal.__module__ = "__main__"
    return partitions((8, fatal), names="file_{}.npy".format)


def case_of_a_partition_that_ends_workers(client, cluster):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cluster.scheduler, "allowed_failures", 0)
        for number in (5, 0):  # among others, and where it is found out how partitions are cut
            run = value_and_grad(LOSS, fatal_data(number), client=client, jit=False)
            with pytest.raises(WorkerError, match=rf"partition {number} of 8 \(file_{number}\.npy\), which ended each"):
                run(W)
    client.wait_for_workers(2, timeout=60)
    same(value_and_grad(LOSS, partitions((8, READ)), client=client, jit=False), partitions((8, READ)), jit=False)


def case_of_a_silent_worker(client, cluster):
    run = value_and_grad(LOSS, partitions((8, READ)), client=client, jit=False)
    same(run, partitions((8, READ)), jit=False)
    process, told = next(iter(cluster.workers.values())).process.pid, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(logging.getLogger("asyncio"), "error", lambda *text, **_: told.append(text))
        patch.setattr("wengert.distributed.on_dask.PATIENCE", 0.3)
        patch.setattr("wengert.distributed.on_dask.LONGEST", 0.0)
        os.kill(process, signal.SIGSTOP)
        try:
            for _ in range(2):
                same(run, partitions((8, READ)), jit=False)
            client.cancel(run.run.late)  # as where a client ends
        finally:
            os.kill(process, signal.SIGCONT)
        same(run, partitions((8, READ)), jit=False)
        gc.collect()
        assert not told  # "Task exception was never retrieved"


def repeat(run):
    while True:
        run(W)


def case_of_an_interrupt(client, _cluster):
    run = value_and_grad(LOSS, partitions((8, READ)), client=client, jit=False)
    run(W)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    thread = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT))
    thread.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            repeat(run)
    finally:
        thread.join()
        signal.signal(signal.SIGINT, before)
    same(run, partitions((8, READ)), jit=False)


def case_of_a_scheduler_that_ends(_client, cluster):
    from distributed import Client

    with Client(cluster, set_as_default=False) as other:
        run = value_and_grad(LOSS, partitions((8, READ)), client=other, jit=False)
        same(run, partitions((8, READ)), jit=False)
        other.map = lambda *_, **_options: other.close() or other.nosuch  # whatever Dask raises then
        for _ in range(2):  # during a pass, and before one
            with pytest.raises(WorkerError, match="a client that is closed; a scheduler is needed"):
                run(W)


CASES = {
    function.__name__: function
    for function in (
        case_of_a_worker_that_joins,
        case_of_data,
        case_of_an_optimiser,
        case_of_bad_input,
        case_of_an_interrupt,
        case_of_a_scheduler_that_ends,
        case_of_a_silent_worker,
        case_of_a_killed_worker,
        case_of_a_partition_that_ends_workers,
    )
}


@pytest.mark.filterwarnings("ignore::UserWarning")  # Dask's about large graphs, and about what it closes
@together("name", CASES)
@pytest.mark.long
def test_on_workers(name, cluster):
    from distributed import default_client

    CASES[name](default_client(), cluster)


def stored(frame, folder):
    """A data frame that Dask reads from a file, more of it at once the fewer columns are asked for."""
    pytest.importorskip("pyarrow", reason="Parquet needs pyarrow")
    import dask.dataframe as dd

    frame.to_parquet(folder / "x.parquet", row_group_size=250)
    return dd.read_parquet(folder / "x.parquet", split_row_groups=True)


@pytest.mark.long
@pytest.mark.usefixtures("cluster")
def test_data_frames_are_partitions(tmp_path):
    pandas = pytest.importorskip("pandas", reason="data frames need pandas")
    import dask.dataframe as dd
    from distributed import default_client

    known = pandas.DataFrame({**{f"x{i}": X[:, i] for i in range(5)}, "name": "a", "y": Y})
    frame, names = dd.from_pandas(known, npartitions=4), [f"x{i}" for i in range(5)]
    expected = partitions((X, Y), count=4)
    array = frame[names].to_dask_array(lengths=True)
    run = value_and_grad(LOSS, partitions(frame, columns=[names, "y"]), client=default_client(), jit=False)
    for data in (expected, partitions((frame[names], frame["y"])), partitions((array, frame[frame.y >= 0]["y"]))):
        same(run, data, jit=False)
    np.testing.assert_array_equal(partitions(frame["y"]).read(3)[0], Y[750:])
    assert partitions(frame, columns=["y"]).split(2).read(1)[0].shape == (125,)
    assert partitions(stored(known, tmp_path), columns=[names, "y"]).count == 4
    with pytest.raises(DtypeError, match=r"column 'name' of dtype .*; columns of numbers are needed"):
        partitions(frame)
    with pytest.raises(UsageError, match="column 'z'; one of 'x0', "):
        partitions(frame, columns=["z"])
    with pytest.raises(ShapeError, match="collections of 3 and 4 partitions"):
        partitions((frame["y"], frame["y"].repartition(npartitions=3)))


def test_runs_leave_few_sums_open():
    for count, workers in ((1, 4), (7, 2), (100, 3), (1000, 7), (64, 64)):
        runs = cut_runs(count, workers)
        assert [a for a, _ in runs[1:]] == [b for _, b in runs[:-1]]
        assert (runs[0][0], runs[-1][1]) == (0, count)
        lengths = [b - a for a, b in runs]
        assert max(lengths) <= 1.3 * count / min(workers, count) + 1


class Deserted:
    """A client of a cluster whose workers have ended."""

    status = "running"

    def __init__(self, *keys):
        end = {"action": "remove-worker", "expected": False, "processing-tasks": set(keys)}
        self.events = [(0.0, end), (1.0, "of somebody else")]

    def nthreads(self):
        return {}

    def get_events(self, topic):
        return self.events * (topic == "all")


@pytest.mark.parametrize(
    ("keys", "is_suspect", "text"),
    [
        ((), False, "a cluster without workers for 0 s; one or more are needed"),
        (
            ("b",),
            False,
            r"without workers for 0 s, which ended .* partitions 4 to partition 4 of 8 \(file_4.npy\); one",
        ),
        (("a", "b"), False, r"partitions 0 to partition 3 of 8 \(file_3.npy\) and partitions 4 to"),
        ((), True, "a cluster without workers for 0 s; one"),  # whoever was waited for did not end them
        (("a",), True, r"partition 0 of 8 \(file_0.npy\), which ended each worker"),
    ],
)
def test_what_workers_did_when_all_ended_is_told(keys, is_suspect, text, monkeypatch):
    monkeypatch.setattr("wengert.distributed.on_dask.WAIT", 0.0)
    run = DaskRunner(Deserted(*keys), Summand("total", READ, True, False, None), fatal_data(9))
    errands = [Errand(0, 1 if is_suspect else 4, is_suspect=is_suspect), Errand(4, 5)]
    for errand, key in zip(errands, "ab", strict=True):
        errand.tasks = [SimpleNamespace(key=key)]
    with pytest.raises(WorkerError, match=text):
        run.present_workers(errands)


def test_errors_about_workers_have_a_class():
    assert issubclass(WorkerError, RuntimeError)
