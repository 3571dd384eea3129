"""Sums over partitions: what a step costs beyond its computation, here and on Dask, and how it scales on two workers.

`python -m benchmarks.scale [SUITE ...]` runs all, or some, and prints the medians of alternating calls in milliseconds;
what is not installed (Dask, scikit-learn, PyTorch) is left out. `--rows` says how many rows logistic regression has.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import importlib.util
import os
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import wengert as wg
from wengert import distributed, optim, random
from wengert.native.lapack import ONE_THREAD

__all__ = ["SUITES", "main"]

Array = Any
Times = dict[str, float]
WORKERS = 2
FEATURES = 50


def logistic(w: Array, x: Array, y: Array) -> Array:
    """Return the loss of logistic regression, summed over rows."""
    z = x @ w
    return np.sum(np.logaddexp(0.0, z) - y * z)


def small(w: Array, x: Array) -> Array:
    """Return a loss of a few rows that reads and writes as many numbers as there are parameters."""
    return np.sum(w) * np.sum(x) + 0.5 * np.sum(x * x) * np.sum(w * w)


def heavy(rounds: int) -> Callable[..., Array]:
    """Return a loss that computes so many rounds of eight operations for each row."""

    def loss(w: Array, x: Array, y: Array) -> Array:
        z = x @ w
        for _ in range(rounds):
            z = np.tanh(z + 0.1 * np.sin(z)) + np.exp(-z * z)
        return np.sum((z - y) ** 2)

    return loss


class Rows:
    """Read partitions of random rows."""

    def __init__(self, rows: int, features: int) -> None:
        self.rows, self.features = rows, features

    def __call__(self, number: int) -> tuple[Array, Array]:
        """Return the rows of a partition."""
        rng = np.random.default_rng(number)
        return rng.normal(size=(self.rows, self.features)), (rng.random(self.rows) < 0.5) * 1.0


def alternating(
    programs: dict[str, Callable[[], Any]], rounds: int, row: int = 1, before: Callable[[], None] = lambda: None
) -> Times:
    """Return the median milliseconds of each program; all run in turns, so many times in a row.

    A Dask client sends one message in 10 ms: what a call leaves to be sent would delay the one after it. What runs
    before each is not measured.
    """
    times: dict[str, list[float]] = {name: [] for name in programs}
    for run in programs.values():
        run()
        run()
    for _ in range(rounds):
        for name, run in programs.items():
            for _ in range(row):
                before()
                start = time.perf_counter()
                run()
                times[name].append(1000 * (time.perf_counter() - start))
    return {name: float(np.median(found)) for name, found in times.items()}


def step(client: Any, _rows: int) -> Iterator[tuple[str, Times]]:
    """Yield what a step of two rows costs for some numbers of parameters."""
    rows = [np.full(4, 1.0), np.full(4, 2.0)]
    raw = wg.jit(wg.value_and_grad(small), native=True)

    def both(w: Array) -> Any:
        (value, slope), (other, more) = raw(w, rows[0]), raw(w, rows[1])
        return value + other, slope + more

    for count in (100, 10_000, 1_000_000):
        w = np.linspace(0.0, 1.0, count)
        here = distributed.value_and_grad(small, rows)
        programs: dict[str, Callable[[], Any]] = {
            "two calls": lambda w=w: both(w),  # type: ignore[misc]  # bound at once
            "here": lambda w=w, here=here: here(w),  # type: ignore[misc]  # likewise
        }
        if client is not None:
            there = distributed.value_and_grad(small, rows, client=client)
            programs["Dask"] = lambda w=w, there=there: there(w)  # type: ignore[misc]  # likewise
            programs["an empty task of Dask's"] = lambda: client.submit(int, 1, pure=False).result()
        yield f"{count:,} parameters", alternating(programs, 10 if count < 1_000_000 else 3, 20)


def regression(client: Any, rows: int) -> Iterator[tuple[str, Times]]:
    """Yield how long logistic regression takes to a gradient of 1e-6, by L-BFGS."""
    from scipy.optimize import minimize

    source = Rows(rows, FEATURES)
    x, y = source(0)

    def fit(run: Callable[[Array], Any]) -> Array:
        def regularised(w: Array) -> Any:
            value, slope = run(w)
            return value / rows + 0.5 / rows * (w @ w), slope / rows + w / rows

        options = {"gtol": 1e-6, "ftol": 0.0, "maxiter": 500}
        return minimize(regularised, np.zeros(FEATURES), jac=True, method="L-BFGS-B", options=options).x

    here = distributed.value_and_grad(logistic, (x, y))
    programs: dict[str, Callable[[], Any]] = {"here": lambda: fit(here)}
    if client is not None:
        scattered = distributed.value_and_grad(logistic, distributed.partitions((x, y)), client=client)
        programs["Dask, two workers"] = lambda: fit(scattered)
    if importlib.util.find_spec("sklearn") is not None:
        model = importlib.import_module("sklearn.linear_model").LogisticRegression
        settings = {"C": 1.0, "fit_intercept": False, "tol": 1e-6, "max_iter": 500}
        programs["scikit-learn"] = lambda: model(**settings).fit(x, y)
    yield f"logistic regression, {rows:,} rows of {FEATURES}", alternating(programs, 3)


def scaling(client: Any, _rows: int) -> Iterator[tuple[str, Times]]:
    """Yield how long a loss takes that is bound by what it computes, on one thread and on two, and on two workers."""
    data, w = distributed.partitions((16, Rows(60_000, FEATURES))), np.full(FEATURES, 0.1)
    for rounds in (12, 48):
        run = distributed.value_and_grad(heavy(rounds), data)

        def on(threads: int, run: Callable[[Array], Any] = run) -> Any:
            wg.set_num_threads(threads)
            return run(w)

        programs: dict[str, Callable[[], Any]] = {"one thread": lambda on=on: on(1), "two threads": lambda on=on: on(2)}  # type: ignore[misc]  # bound at once
        if client is not None:
            there = distributed.value_and_grad(heavy(rounds), data, client=client)
            programs["Dask, two workers"] = lambda there=there: there(w)  # type: ignore[misc]  # likewise
        yield f"{8 * rounds} operations a row, 960,000 rows", alternating(programs, 7)


def equations(_client: Any, _rows: int) -> Iterator[tuple[str, Times]]:
    """Yield how long normal equations of 20 parameters take, and by hand."""
    x, y = Rows(320_000, 20)(0)
    w = np.full(20, 0.1)

    def residuals(p: Array, x: Array, y: Array) -> Array:
        return 1.0 / (1.0 + np.exp(-(x @ p))) - y

    def by_hand() -> Any:
        p = 1.0 / (1.0 + np.exp(-(x @ w)))
        slopes = (p * (1.0 - p))[:, None] * x
        return slopes.T @ slopes, slopes.T @ (p - y)

    run = distributed.normal_equations(residuals, (x, y))
    yield "normal equations, 320,000 rows", alternating({"by hand": by_hand, "here": lambda: run(w)}, 7)


def files(_client: Any, rows: int) -> Iterator[tuple[str, Times]]:
    """Yield how long a pass over `.npy` files of three times the budget takes, and to read their bytes.

    The system holds the files in memory; and it does not, as where they are larger than that.
    """
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "x.npy"), Path(folder, "y.npy")]
        for path, array in zip(paths, Rows(rows, FEATURES)(0), strict=True):
            np.save(path, array)
        data = distributed.partitions(tuple([np.load(path, mmap_mode="r") for path in paths]))
        size = sum(path.stat().st_size for path in paths)
        run = distributed.value_and_grad(logistic, data, memory=size // 3)
        buffer, w = bytearray(1 << 21), np.full(FEATURES, 0.01)

        def read() -> None:
            for path in paths:
                with open(path, "rb", buffering=0) as file:
                    while file.readinto(buffer):
                        pass

        def evict() -> None:
            for path in paths:
                with open(path, "rb+") as file:
                    os.fsync(file.fileno())
                    os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)

        programs: dict[str, Callable[[], Any]] = {"reading the bytes": read, "here": lambda: run(w)}
        title = f"files of {size / 1e6:,.0f} MB, a third as budget"
        yield title, alternating(programs, 9)
        yield f"{title}, from the disk", alternating(programs, 9, before=evict)


def network(p: Any, x: Array, y: Array) -> Array:
    """Return the mean loss of a network of two layers for a batch."""
    hidden = np.tanh(np.tanh(x @ p["a"] + p["b"]) @ p["c"] + p["d"])
    z = hidden @ p["e"]
    return np.mean(np.logaddexp(0.0, z) - y * z)


def adam(_client: Any, _rows: int) -> Iterator[tuple[str, Times]]:
    """Yield how long an epoch of minibatches from files takes, and PyTorch's, on one thread."""
    rows, batch, width, rng = 196_608, 512, 64, np.random.default_rng(0)
    shapes = {"a": (FEATURES, width), "b": (width,), "c": (width, width), "d": (width,), "e": (width,)}
    start = {name: rng.normal(size=shape) / 8 for name, shape in shapes.items()}
    init, update = optim.adam(1e-3)

    def step(state: Any, x: Array, y: Array) -> Any:
        parameters, memory = state
        return update(wg.grad(network)(parameters, x, y), memory, parameters)

    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder, "x.npy"), Path(folder, "y.npy")]
        for path, array in zip(paths, Rows(rows, FEATURES)(0), strict=True):
            np.save(path, array)
        maps = tuple([np.load(path, mmap_mode="r") for path in paths])
        batches = distributed.partitions(maps).batches(batch, shuffle=random.key(0))
        programs: dict[str, Callable[[], Any]] = {"here": lambda: optim.train(step, (start, init(start)), batches)}
        if importlib.util.find_spec("torch") is not None:
            programs["PyTorch"] = epoch_of_torch(maps, start, batch)
        wg.set_num_threads(1)
        with ONE_THREAD:
            yield f"Adam, {rows:,} rows in batches of {batch}", alternating(programs, 3)


def epoch_of_torch(maps: Any, start: Any, batch: int) -> Callable[[], Any]:
    """Return an epoch of the same network by PyTorch, whose loader gets the rows of a whole batch at once."""
    torch = importlib.import_module("torch")
    torch.set_num_threads(1)

    class Data(torch.utils.data.Dataset):  # type: ignore[misc, name-defined]  # PyTorch is optional
        def __len__(self) -> int:
            return len(maps[0])

        def __getitems__(self, rows: Any) -> Any:
            return tuple(torch.from_numpy(array[rows]) for array in maps)

    loader = torch.utils.data.DataLoader(Data(), batch_size=batch, shuffle=True, collate_fn=lambda found: found)

    def epoch() -> None:
        p = {name: torch.tensor(array, requires_grad=True) for name, array in start.items()}
        rule = torch.optim.Adam(list(p.values()), lr=1e-3)
        for x, y in loader:
            rule.zero_grad()
            z = torch.tanh(torch.tanh(x @ p["a"] + p["b"]) @ p["c"] + p["d"]) @ p["e"]
            (torch.logaddexp(torch.zeros(()), z) - y * z).mean().backward()
            rule.step()

    return epoch


SUITES = {
    "step": step,
    "logistic": regression,
    "workers": scaling,
    "equations": equations,
    "files": files,
    "adam": adam,
}


@contextlib.contextmanager
def workers() -> Iterator[Any]:
    """Be the context of a client of two workers; None if there is no Dask.

    Its scheduler and workers look 50 times a second whether they keep up, which takes 9 % of a processor; here 5 times.
    """
    if importlib.util.find_spec("distributed") is None:
        yield None
        return
    dask = importlib.import_module("distributed")
    options = {"n_workers": WORKERS, "threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    quiet = {"distributed.admin.tick.interval": "200ms", "distributed.admin.system-monitor.interval": "5s"}
    with (
        importlib.import_module("dask.config").set(quiet),
        dask.LocalCluster(**options) as cluster,
        dask.Client(cluster) as client,
    ):
        yield client


def main() -> None:
    """Run the suites that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description="Sums over partitions.")
    parser.add_argument("suites", nargs="*", default=list(SUITES), metavar="SUITE", help=", ".join(SUITES))
    parser.add_argument("--rows", type=int, default=2_000_000, help="of logistic regression (default 2,000,000)")
    chosen = parser.parse_args()
    with workers() as client:
        for name in chosen.suites:
            for title, times in SUITES[name](client, chosen.rows):
                print(title)
                for program, milliseconds in times.items():
                    print(f"  {program:28}{milliseconds:12.3f} ms", flush=True)


if __name__ == "__main__":
    main()
