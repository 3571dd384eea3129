"""How the cost of a pass on Dask grows with workers, from constants measured on two: `python -m benchmarks.growth`.

A pass sends the parameters to all workers, each of which sums up its share, and the client receives and adds up one
gradient from each, one after the other. The scheduler takes some time for each task. Shares differ: the slowest of n
workers, whose times are normal with a deviation of a tenth, is waited for. Figures are seconds.

`--check` compares it with workers of this machine, from the times that they themselves tell: how long two of a busy
machine take for their parts, and by how much they differ, is not what this simulates.
"""

from __future__ import annotations

import argparse
import heapq
import importlib
from typing import Any

import numpy as np

from wengert import distributed

__all__ = ["main", "simulate"]

SCHEDULING = 1.4e-3
"""Seconds of client and scheduler for a task: 90 ms of processor time for 64 empty ones at once, 6 ms for two."""
ROUND_TRIP = 5e-3
"""Seconds of an empty task, from the client's call to its result (4.3 to 5.1 ms on a quiet machine)."""
BANDWIDTH = 1e9
"""Bytes a second that one machine sends or receives, as of a network of 10 Gbit/s."""
ADDING = 4e9
"""Bytes of gradients that the client adds up in a second: 8 MB in 2 ms."""
SPREAD = 0.1
"""The deviation of workers' times, as a part of the mean."""
PASSES, WARM = 17, 2
"""How many passes are measured, and of these the first ones, which compile and read."""


def draw_times(workers: int, work: float, generator: np.random.Generator) -> Any:
    """Return how long each worker takes for its part of so many seconds of work."""
    return work / workers * np.maximum(1.0 + SPREAD * generator.standard_normal(workers), 0.1)


def simulate(times: Any, parameters: int) -> float:
    """Return how long a pass takes.

    Args:
        times: seconds that each worker takes for its part of the data.
        parameters: how many there are, of 8 bytes.
    """
    size = 8.0 * parameters
    levels = int(np.ceil(np.log2(len(times) + 1)))  # parameters are copied from worker to worker
    begin = ROUND_TRIP / 2 + levels * size / BANDWIDTH
    ready = [begin + SCHEDULING * (i + 1) + t for i, t in enumerate(times)]
    heapq.heapify(ready)
    clock = 0.0
    while ready:  # one gradient after the other
        clock = max(clock, heapq.heappop(ready)) + size / BANDWIDTH + size / ADDING
    return clock + ROUND_TRIP / 2


def linear(w: Any, x: Any) -> Any:
    """Return a loss of rows of one number and of many parameters, which takes long for its length."""
    for _ in range(40):
        x = np.tanh(x + 0.1 * np.sin(x))
    return np.sum(w) * np.sum(x)


def check() -> None:
    """Print what passes on one and two workers of this machine take, and what the simulation says of them."""
    dask = importlib.import_module("distributed")
    data = distributed.partitions((16, Draw(30_000)))
    options = {"threads_per_worker": 1, "dashboard_address": None, "memory_limit": None}
    print(f"{'workers':>8}{'parameters':>12}{'slowest':>10}{'pass':>10}{'simulated':>11}")
    for parameters in (100, 10_000, 1_000_000):
        for workers in (1, 2):
            with dask.Client(n_workers=workers, **options) as client:
                found = measure(distributed.grad(linear, data, client=client), parameters)
            slowest, seconds, simulated = np.median(found, axis=0)
            print(f"{workers:8}{parameters:12,}{slowest:9.3f}s{seconds:9.3f}s{simulated:10.3f}s", flush=True)


def measure(run: distributed.Total, parameters: int) -> list[tuple[float, float, float]]:
    """Return of some passes how long the slowest worker was at its part, what the pass took, and what it should."""
    w, found = np.ones(parameters), []
    for _ in range(PASSES):
        run(w)
        times = [worker.reading + worker.computing for worker in run.profile.workers]
        found.append((max(times), run.profile.seconds, simulate(times, parameters)))
    return found[WARM:]


class Draw:
    """Read partitions of random rows of one number."""

    def __init__(self, rows: int) -> None:
        self.rows = rows

    def __call__(self, number: int) -> Any:
        """Return the rows of a partition."""
        return np.random.default_rng(number).normal(size=self.rows)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.growth", description="How cost grows with workers.")
    parser.add_argument("--work", type=float, default=100.0, help="seconds of one worker for all data (default 100)")
    parser.add_argument("--check", action="store_true", help="measure one worker and two of this machine instead")
    chosen, generator = parser.parse_args(), np.random.default_rng(0)
    work = chosen.work
    if chosen.check:
        check()
        return
    print(f"{'workers':>8}{'parameters':>12}{'pass':>10}{'efficiency':>12}")
    for workers in (1, 2, 10, 100, 1_000, 10_000):
        for parameters in (100, 10_000, 1_000_000):
            seconds = float(np.median([simulate(draw_times(workers, work, generator), parameters) for _ in range(5)]))
            print(f"{workers:8,}{parameters:12,}{seconds:9.3f}s{work / workers / seconds:12.0%}")


if __name__ == "__main__":
    main()
