"""Time samples of some 2,000 elements natively and as NumPy evaluates them: `python -m tools.larger_samples`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

import wengert as wg
from tests.samples import SAMPLES
from tests.samples.base import Fixed, Sample
from tests.samples.calls import call_of, leaves_of
from wengert.compile.executable import Compiled
from wengert.errors import WengertError
from wengert.support import config
from wengert.transforms.tracing import trace

ELEMENTS = 2000
MOST = 1_000_000
"""Elements of a value beyond which a sample is left out: grids of enlarged axes take more memory than there is."""
REFUSED = (WengertError, ValueError, TypeError, IndexError, np.linalg.LinAlgError)
"""What is raised where shapes do not fit each other any more."""


def arrays_of(argument: Any) -> list[Any]:
    """Return the arrays of an argument."""
    inner = argument.value if isinstance(argument, Fixed) else argument
    return [x for x in leaves_of(inner) if isinstance(x, np.ndarray) and x.ndim]


def enlarged(argument: Any, times: int) -> Any:
    """Return an argument whose arrays are as many times as long along their first axis."""
    if isinstance(argument, np.ndarray) and argument.ndim:
        return np.concatenate([np.roll(argument, i, 0) for i in range(times)])
    if isinstance(argument, Fixed):
        return Fixed(enlarged(argument.value, times))
    return type(argument)([enlarged(x, times) for x in argument]) if isinstance(argument, list | tuple) else argument


def microseconds(function: Callable[[], Any], seconds: float = 2e-3) -> float:
    """Return the least time of a call."""
    found = np.inf
    for _ in range(5):
        count, start = 0, time.thread_time()
        while time.thread_time() - start < seconds:
            function()
            count += 1
        found = min(found, (time.thread_time() - start) / count)
    return found * 1e6


def compared(sample: Sample) -> tuple[float, float] | None:
    """Return how long a sample takes natively, and as NumPy evaluates its graph; None if it is not all kernels."""
    if sample.topic == "linear_algebra":  # whose samples are matrices that would not be square
        return None
    largest = max([x.size for argument in sample.args for x in arrays_of(argument)], default=0)
    times = ELEMENTS // max(largest, 1)
    call = call_of(replace(sample, args=tuple([enlarged(x, times) for x in sample.args])))
    xs = call.copies()
    if max([x.size for x in xs], default=0) < ELEMENTS // 2:
        return None
    graph = trace(lambda *ys: leaves_of(call(*ys)))(*xs)
    if any(math.prod(v.shape) > MOST for equation in graph.equations for v in equation.outputs):
        return None
    if Compiled(graph).segments.whole is None:
        return None
    native = wg.jit(lambda *ys: leaves_of(call(*ys)))
    for _ in range(3):
        native(*xs)
    return microseconds(lambda: native(*xs)), microseconds(lambda: graph(*xs))


def main() -> None:
    """Print what takes longer natively."""
    config.NATIVE, config.AT_ONCE = True, True
    rows: dict[str, tuple[float, float]] = {}
    with np.errstate(all="ignore"):
        for sample in SAMPLES:
            try:
                found = compared(sample)
            except REFUSED:
                continue
            if found is not None:
                rows[sample.name] = found
    slower = sorted([(a / b, a, b, name) for name, (a, b) in rows.items() if a >= b], reverse=True)
    print(f"{len(rows)} samples, of which {len(slower)} take longer natively: ratio, and microseconds of both")
    for ratio, a, b, name in slower:
        print(f"{ratio:5.2f} {a:8.1f} {b:8.1f}  {name}")


if __name__ == "__main__":
    main()
