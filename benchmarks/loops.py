"""Loops and branches: descent inside of descent, solves by scan, lanes of while, branches, writes, budgets, waves.

Every library has one thread, and processor time is measured. `wengert-where` selects where `wengert` branches, and
`wengert-eager` is not compiled. A run is a call, its operations are the rounds of its loops where the name says so.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import itertools
import math
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.agreement import check_agreement
from benchmarks.compiled import eagerly, flat
from benchmarks.compiled_list import Example, loops_of
from benchmarks.measure import Case, Program, Times, timed
from benchmarks.namespaces import namespace
from benchmarks.written_in_c import descent

__all__ = ["cases"]

Function = Callable[..., Any]
rng = np.random.default_rng(0)
CALLS = 2e-3
"""Seconds below which calls are repeated, so that the clock does not count."""


# What is differentiated


def descent_inside(outer: int, tolerance: float, way: str, arrays: Sequence[Any]) -> Function:
    """Return what minimises by a hyperparameter what a minimum depends on, by its derivative in a way."""
    matrix, target, other, seen = arrays

    def run(xp: Any, start: Any) -> Any:
        library = importlib.import_module("jax" if xp.__name__.startswith("jax") else "wengert")

        def loss(w: Any, h: Any) -> Any:
            return xp.mean((matrix @ w - target) ** 2) + xp.exp(h) * xp.sum(w * w)

        slope = library.grad(loss)

        def minimum(h: Any) -> Any:
            def going(state: Any) -> Any:
                w, before = state
                return xp.max(xp.abs(w - before)) > tolerance

            def step(state: Any) -> Any:
                w, _ = state
                return w - 0.1 * slope(w, h), w

            return loops_of(xp).while_loop(going, step, (xp.zeros(8), xp.ones(8)))[0]

        def validation(h: Any) -> Any:
            return xp.mean((other @ minimum(h) - seen) ** 2)

        def derivative(h: Any) -> Any:
            return library.jvp(validation, (h,), (xp.ones_like(h),))[1] if way == "forward" else slope_of(h)

        slope_of = library.grad(validation)
        return loops_of(xp).fori_loop(0, outer, lambda _, h: h - 0.01 * derivative(h), start)

    return run


def tridiagonal(xp: Any, lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """Return the sum of squares of the solution of a tridiagonal system, by two scans."""
    scan, zero = loops_of(xp).scan, right[0] * 0.0

    def forward(before: Any, row: Any) -> Any:
        a, b, c, d = row
        scale = 1.0 / (b - a * before[0])
        now = (c * scale, (d - a * before[1]) * scale)
        return now, now

    _, (slopes, values) = scan(forward, (zero, zero), (lower, diagonal, upper, right))

    def backward(after: Any, row: Any) -> Any:
        x = row[1] - row[0] * after
        return x, x

    return xp.sum(scan(backward, zero, (slopes[::-1], values[::-1]))[1] ** 2)


def tridiagonal_in_place(xp: Any, lower: Any, diagonal: Any, upper: Any, right: Any) -> Any:
    """Return the same, where the rows are written into arrays."""
    n, fori = len(right), loops_of(xp).fori_loop

    def forward(i: Any, state: Any) -> Any:
        slopes, values = state
        scale = 1.0 / (diagonal[i] - lower[i] * slopes[i - 1])
        now = upper[i] * scale, (right[i] - lower[i] * values[i - 1]) * scale
        return put(slopes, i, now[0]), put(values, i, now[1])

    def backward(i: Any, x: Any) -> Any:
        return put(x, n - 2 - i, x[n - 2 - i] - slopes[n - 2 - i] * x[n - 1 - i])

    first = put(right * 0.0, 0, upper[0] / diagonal[0]), put(right * 0.0, 0, right[0] / diagonal[0])
    slopes, values = fori(1, n, forward, first)
    return xp.sum(fori(0, n - 1, backward, values) ** 2)


def put(x: Any, place: Any, value: Any) -> Any:
    """Return an array with another element, written in place where a library can."""
    if hasattr(x, "at"):
        return x.at[place].set(value)
    x[place] = value
    return x


def newton(xp: Any, a: Any) -> Any:
    """Return a root of x^3 + x = a, which takes as many steps as it takes."""
    return loops_of(xp).while_loop(
        lambda x: xp.abs(x * x * x + x - a) > 1e-12 * (1.0 + xp.abs(a)),
        lambda x: x - (x * x * x + x - a) / (3.0 * x * x + 1.0),
        a,
    )


def rounds_of_while(rounds: int) -> Function:
    """Return the function that takes so many rounds, ended by a condition; its slope never comes near 0."""

    def run(xp: Any, x: Any) -> Any:
        def step(state: Any) -> Any:
            return xp.sqrt(state[0] * state[0] + 1e-6), state[1] + 1

        return loops_of(xp).while_loop(lambda state: state[1] < rounds, step, (x, 0))[0]

    return run


def nested_rounds(outer: int, inner: int) -> Function:
    """Return the function with such a loop inside of a loop."""

    def run(xp: Any, x: Any) -> Any:
        own = rounds_of_while(inner)
        return loops_of(xp).while_loop(lambda s: s[1] < outer, lambda s: (own(xp, s[0]) + x, s[1] + 1), (x, 0))[0]

    return run


def branches(select: bool, rounds: int) -> Function:
    """Return the function that takes one of two branches in each of some rounds, or selects what it gives."""

    def one(xp: Any, x: Any) -> Any:
        return xp.sin(x) * 0.9

    def other(xp: Any, x: Any) -> Any:
        return x * 0.5 + 0.1

    def run(xp: Any, x: Any) -> Any:
        def step(i: Any, y: Any) -> Any:
            first = i % 2 == 0
            if select:
                return xp.where(first, one(xp, y), other(xp, y))
            return loops_of(xp).cond(first, functools.partial(one, xp), functools.partial(other, xp), y)

        return xp.sum(loops_of(xp).fori_loop(0, rounds, step, x))

    return run


def branch_with_solve(xp: Any, a: Any, x: Any) -> Any:
    """Return what 50 rounds give, one of whose two branches solves a system."""

    def step(i: Any, y: Any) -> Any:
        return loops_of(xp).cond(i % 10 == 0, lambda y: xp.linalg.solve(a, y), lambda y: y * 0.9 + 0.1, y)

    return xp.sum(loops_of(xp).fori_loop(0, 50, step, x))


def recurrence(rounds: int) -> Function:
    """Return the function that fills an array from one element to the next, so many of them."""

    def run(xp: Any, u: Any) -> Any:
        return loops_of(xp).fori_loop(1, rounds, lambda i, u: put(u, i, u[i - 1] * 0.5 + 1.0), u)

    return run


def wave(steps: int, unrolled: bool = False, segment: int = 0) -> Function:
    """Return the sum of squares of a wave on a square after some steps, by a loop of Python's or of the library's.

    With segments, whose beginnings alone are kept.
    """

    def run(xp: Any, u: Any, speed: Any) -> Any:
        def step(state: Any, _: Any = None) -> Any:
            now, before = state
            around = xp.roll(now, 1, 0) + xp.roll(now, -1, 0) + xp.roll(now, 1, 1) + xp.roll(now, -1, 1) - 4.0 * now
            return (2.0 * now - before + speed * around, now), None

        state = (u, u)
        if unrolled:
            for _ in range(steps):
                state, _ = step(state)
        elif not segment:
            state, _ = loops_of(xp).scan(step, state, None, length=steps)
        else:
            library = importlib.import_module("jax" if xp.__name__.startswith("jax") else "wengert")
            inner = library.checkpoint(lambda s: loops_of(xp).scan(step, s, None, length=segment)[0])
            state, _ = loops_of(xp).scan(lambda s, _: (inner(s), None), state, None, length=steps // segment)
        return xp.sum(state[0] ** 2)

    return run


# Cases


def systems(count: int) -> Callable[[], list[Any]]:
    """Return what draws a tridiagonal system."""
    return lambda: [rng.normal(size=count) * 0.3, 2.0 + rng.uniform(size=count), *rng.normal(size=(2, count)) * 0.3]


def normals(*shapes: Any) -> Callable[[], list[Any]]:
    """Return what draws arrays from the normal distribution."""
    return lambda: [rng.normal(size=shape) for shape in shapes]


def fields() -> list[Any]:
    """Return a wave at rest, and how fast it is everywhere."""
    place = np.linspace(-3.0, 3.0, 256)
    return [np.exp(-(place[:, None] ** 2) - place**2), np.full((256, 256), 0.2)]


def cases(_threads: int) -> Iterator[Case]:
    """Yield the cases."""
    yield from descents()
    every = (0, 1, 2, 3)
    yield case(Example("tridiagonal system of 1,000 by scan", tridiagonal, systems(1000), "gradient", every))
    yield case(Example("the same, written in place", tridiagonal_in_place, systems(1000), "gradient", every))
    yield case(Example("Newton by while in 20,000 lanes", newton, normals(20_000), "each element's value"))
    for rounds in (10, 31, 100, 316, 1000, 1024, 1025, 3162, 10_000, 100_000, 1_000_000):
        one = Example(f"gradient of while, {rounds} rounds, a round", rounds_of_while(rounds), normals(()), "gradient")
        yield case(one, rounds, ("wengert",))
    for inner in (10, 100, 128, 129, 1000, 10_000):
        name = f"gradient of while in while, 20 x {inner} rounds, a round"
        yield case(Example(name, nested_rounds(20, inner), normals(()), "gradient"), 20 * inner, ("wengert",))
    for size in (300, 1000, 10_000, 100_000):
        name, select = f"cond in a loop of 100 rounds, {size} elements", branches(True, 100)
        own = Example(name, branches(False, 100), normals(size), "gradient")
        yield case(own, others={"wengert-where": Example(name, select, own.draw, "gradient")})
    yield case(Example("cond in a loop with a solve", branch_with_solve, systems_of_50, "gradient", (0, 1)), eager=True)
    for size in (1000, 10_000, 100_000, 1_000_000):
        name = f"u[i] = u[i - 1] * .5 + 1, {size} elements, a round"
        yield case(Example(name, recurrence(size), normals(size), "value", ()), size)
    for steps in (500, 2000):
        yield case(Example(f"wave on 256 x 256, {steps} steps by scan", wave(steps), fields, "gradient", (0, 1)))
    yield case(Example("wave, 500 steps, kept every 25", wave(500, segment=25), fields, "gradient", (0, 1)))
    unrolled = Example("wave as a Python loop of 80 steps", wave(80, unrolled=True), fields, "gradient", (0, 1))
    yield case(unrolled, libraries=("wengert", "wengert-eager"), eager=True)
    yield from peaks()


def systems_of_50() -> list[Any]:
    """Return a matrix and a vector."""
    return [rng.normal(size=(50, 50)) + 20.0 * np.eye(50), rng.normal(size=50)]


def descents() -> Iterator[Case]:
    """Yield descent inside of descent; JAX has no reverse of a loop that a condition ends."""
    for (outer, tolerance), way in itertools.product(((20, 1e-4), (20, 1e-10), (200, 1e-6)), ("forward", "reverse")):
        name = f"descent inside of descent, {outer} steps, to {tolerance:g}, {way}"
        arrays = [rng.normal(size=shape) for shape in ((20, 8), 20, (20, 8), 20)]
        in_c = functools.partial(descent, way, outer, tolerance, arrays)
        function = descent_inside(outer, tolerance, way, arrays)
        example = Example(name, function, lambda: [np.array(-3.0)], "value", (), by_hand=in_c)
        yield case(example, libraries=("wengert", "jax-jit", "c") if way == "forward" else ("wengert", "c"))


def case(
    example: Example,
    operations: int = 1,
    libraries: Sequence[str] = ("wengert", "jax-jit"),
    others: dict[str, Example] | None = None,
    eager: bool = False,
) -> Case:
    """Return the case of a function, whose results must agree."""
    expected: list[Any] = []
    known = {**dict.fromkeys((*libraries, *["wengert-eager"] * eager), example), **(others or {})}

    def make(library: str) -> Program | None:
        if library not in known:
            return None
        function = compiled(library, known[library])
        found = flat(function())
        expected.extend(() if expected else found)
        check_agreement(found, expected, f"{library}: {example.name}", 1e-5)
        for _ in range(3):
            function()
        start = time.process_time()
        function()
        count = max(1, int(CALLS / max(time.process_time() - start, 1e-7)))
        run = timed(lambda: [function() for _ in range(count)], time.process_time)
        return lambda: {phase: seconds / count for phase, seconds in run().items()}

    return Case(example.name, operations, make, rounds=15, budget=6.0)


def compiled(library: str, example: Example) -> Callable[[], Any]:
    """Return the call of what a library makes of a function and its arguments."""
    lanes = example.wanted == "each element's value"
    if library == "c":
        assert example.by_hand is not None
        return functools.partial(example.by_hand(), *map(float, example.arguments))
    if library == "jax-jit":
        jax = importlib.import_module("jax")
        own = functools.partial(example.function, namespace("jax"))
        whole = jax.grad(own, example.over) if example.wanted == "gradient" else jax.vmap(own) if lanes else own
        made, given = jax.jit(whole), [jax.numpy.asarray(x) for x in example.arguments]
        return lambda: jax.block_until_ready(made(*given))
    import wengert as wg

    written = wg.vmap(functools.partial(example.function, np)) if lanes else eagerly(example)
    function = written if library == "wengert-eager" else wg.jit(written, native=True)
    return lambda: function(*example.arguments)


# Peaks of memory, each in a process of its own

BUDGETS = {
    "100,000 steps of 1,000 states in 64 MB": (100_000, 1_000, 64_000_000),
    "10,000 steps of 100,000 states in ten snapshots": (10_000, 100_000, 10 * 800_000),
}
"""Steps, numbers of the state, and bytes."""


def peaks() -> Iterator[Case]:
    """Yield the gradients of long loops under budgets; what they took of what was predicted is printed."""
    for name in BUDGETS:
        yield Case(name, 1, functools.partial(of_process, name), rounds=1, budget=0.0)


def of_process(name: str, library: str) -> Program | None:
    """Return the program that runs in a process of its own, and prints what that tells."""
    if library != "wengert":
        return None

    def program() -> Times:
        command = [sys.executable, "-m", "benchmarks.loops", name]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        print(f"{name}: {done.stdout.strip()}")
        return {"": float(done.stdout.split()[0])}

    return program


def peak_of(name: str) -> str:
    """Return the seconds of a call, how many forward passes that is and should be, and the peaks of memory."""
    import wengert as wg

    steps, size, budget = BUDGETS[name]
    count = budget // (8 * size)
    repeated = next(r for r in itertools.count() if math.comb(count + r, r) >= steps)
    theory = repeated - math.comb(count + repeated, count + 1) / steps

    def loss(x: Any, rate: Any) -> Any:
        return np.sum(wg.scan(lambda y, _: (np.sqrt(y * y + rate), None), x, None, length=steps)[0])

    arguments = (np.linspace(0.5, 1.0, size), np.array(1e-6))
    gradient = wg.jit(wg.grad(loss, (0, 1)), native=True, memory_budget=budget)
    forward = wg.jit(loss, native=True)
    for function in (gradient, forward):
        function.compile(*arguments)
    predicted = gradient.lower(*arguments).memory
    before = peak_from_now()
    gradient(*arguments)
    seen = peak_so_far() - before
    whole, alone = (least_time(function, arguments) for function in (gradient, forward))
    share = f"{seen / 1e6:.1f} MB seen, {predicted / 1e6:.1f} predicted"
    passes = f"{whole / alone:.2f} forward passes, {theory:.2f} by theory and one of both halves of each step"
    return f"{whole:.3f} s, {passes}; {share}"


def least_time(function: Function, arguments: Sequence[Any]) -> float:
    """Return the least processor time of three calls."""
    times = []
    for _ in range(3):
        start = time.process_time()
        function(*arguments)
        times.append(time.process_time() - start)
    return min(times)


NO_HUGE_PAGES = 41
"""The number of PR_SET_THP_DISABLE."""


def peak_from_now() -> int:
    """Let Linux look for the peak of memory from now on, in small pages; return what there is, in bytes."""
    own = ctypes.CDLL(None)
    own.prctl(NO_HUGE_PAGES, 1, 0, 0, 0)
    own.malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")
    return peak_so_far()


def peak_so_far() -> int:
    """Return the peak of memory in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM"))


if __name__ == "__main__":
    print(peak_of(sys.argv[1]))
