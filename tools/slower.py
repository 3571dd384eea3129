"""List the samples whose graphs run slower natively than by NumPy: `python -m tools.slower --lanes 600`.

Each sample, or its gradient, is traced for so many lanes, so that its arrays have thousands of elements. Both ways are
called in turns; the least processor time of each counts. Set OPENBLAS_NUM_THREADS=1 and WENGERT_THREADS=1: other
threads count, too, while they wait, or look for work.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Sample
from tests.samples.calls import call_of, float_leaves
from wengert.compile.executable import GraphFunction
from wengert.core.graph.graph import Graph, evaluate
from wengert.errors import WengertError
from wengert.passes.output_aliasing import with_packed_results
from wengert.transforms.tracing import trace

__all__ = ["Timing", "least_times", "timings"]

LEAST = 1000
"""Elements that arrays have at least."""


class Timing(NamedTuple):
    """Hold how long a graph takes both ways, in microseconds, and whether one program computes all of it."""

    name: str
    natively: float
    by_numpy: float
    is_whole: bool


def least_times(calls: Sequence[Callable[[], Any]], rounds: int) -> list[float]:
    """Return the least processor time of some calls, which take turns, in microseconds."""
    found = [float("inf")] * len(calls)
    for _ in range(rounds):
        for i, call in enumerate(calls):
            start = time.process_time()
            call()
            found[i] = min(found[i], time.process_time() - start)
    return [1e6 * least for least in found]


def in_lanes(sample: Sample, lanes: int, gradient: bool) -> tuple[Graph, list[Any]] | None:
    """Return the graph of a sample, or of its gradient, in lanes, with arguments; None if it has none."""
    call = call_of(sample)
    if not call.leaves:
        return None
    random = np.random.default_rng(0)
    spread = 1 + 0.01 * random.random(lanes)
    args = [np.multiply.outer(spread, x).astype(x.dtype) for x in call.leaves]

    def total(*xs: Any) -> Any:
        return sum([np.sum(abs(y)) for y in float_leaves(call(*xs))])

    function = wg.grad(total, argnums=tuple(range(len(args)))) if gradient else lambda *xs: float_leaves(call(*xs))
    try:
        return trace(wg.vmap(function))(*args), args
    except (WengertError, TypeError, ValueError, NotImplementedError):
        return None


def timings(samples: Sequence[Sample], lanes: int, gradient: bool, rounds: int = 7) -> Iterator[Timing]:
    """Yield the times of the samples of which something is native and arrays are large."""
    for sample in samples:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found = in_lanes(sample, lanes, gradient)
            if found is None or max([x.size for x in found[1]]) < LEAST:
                continue
            graph, args = with_packed_results(found[0]), found[1]  # as jitted functions have them
            function = GraphFunction(graph)
            function.waiting = 0
            if function.executable is None:
                continue
            function(*args)  # calls are native from the next one on
            calls = [lambda: function(*args), lambda: evaluate(graph, args)]  # noqa: B023 - called here
            natively, by_numpy = least_times(calls, rounds)
            yield Timing(sample.name, natively, by_numpy, function.callee is not None)


def main() -> None:
    """Print the slower ones, and how many there were."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help="parts of the names of samples; all by default")
    parser.add_argument("--lanes", type=int, default=600)
    parser.add_argument("--gradient", action="store_true")
    parser.add_argument("--slower", type=float, default=1.1, help="times NumPy's from which on a sample is listed")
    options = parser.parse_args()
    chosen = [s for s in SAMPLES if not options.names or any(name in s.name for name in options.names)]
    count = 0
    for timing in timings(chosen, options.lanes, options.gradient):
        count += 1
        ratio = timing.natively / timing.by_numpy
        if ratio > options.slower:
            kind = "one program" if timing.is_whole else "several parts"
            print(
                f"{ratio:6.2f} {timing.natively:9.1f} {timing.by_numpy:9.1f} us  {kind:13s} {timing.name}", flush=True
            )
    print(f"{count} graphs")


if __name__ == "__main__":
    main()
