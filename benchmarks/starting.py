"""Starting: what a process pays for a function that an earlier process has compiled.

Each round starts some processes, of which the least processor time of each phase counts. `beyond tracing` is the sum of
those after tracing: `modules` are imported, code is looked up by the graph and loaded, and called. A checkout's sources
are looked at one by one, since somebody may have changed them, which takes 0.7 ms; of an installed package, its list.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compiled_list import black_scholes, mixed, rosenbrock
from benchmarks.measure import Case, Program, Times

__all__ = ["cases"]

PROCESSES = 5

EXAMPLES: dict[str, tuple[Callable[..., Any], Sequence[tuple[float, float]], int]] = {
    "Rosenbrock, 10 variables": (rosenbrock, [(-1.0, 1.0)], 10),
    "sum of logarithms, 1,000 elements": (mixed, [(1.0, 2.0), (0.0, 3.0)], 1_000),
    "Black-Scholes, 1,000 options": (
        lambda *arguments: arguments[0].sum(black_scholes(*arguments)),
        [(50.0, 150.0), (50.0, 150.0), (0.1, 2.0), (0.01, 0.05), (0.1, 0.5)],
        1_000,
    ),
}
"""Functions, whose values and gradients are compiled, and what their arguments are drawn from."""


def cases(threads: int) -> Iterator[Case]:
    """Yield the cases; threads do not matter here."""
    for name in EXAMPLES:
        for place in ("installed", "checkout"):
            prepare = functools.partial(program_of, name, place)
            yield Case(f"{name}, {place}", 1, prepare, rounds=7, budget=60.0)


def program_of(name: str, place: str, library: str) -> Program | None:
    """Return a program that starts processes; the first of all has nothing to find and is not counted."""
    if library != "wengert":
        return None
    folder = tempfile.TemporaryDirectory()
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    if place == "installed":
        environment["PYTHONPATH"] = os.pathsep.join([installed(Path(folder.name)), environment.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "benchmarks.starting", name]

    def started() -> Times:
        settings = environment | {"WENGERT_CACHE": os.path.join(folder.name, "kept"), "WENGERT_NATIVE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=True, env=settings)
        found: Times = json.loads(done.stdout)
        return found

    def program() -> Times:
        found = [started() for _ in range(PROCESSES)]
        return {phase: min(times[phase] for times in found) for phase in found[0]}

    started()
    return program


def installed(folder: Path) -> str:
    """Put the package below a folder as installers do, with the list that they write; return where to import from."""
    found = importlib.util.find_spec("wengert")
    assert found is not None
    assert found.origin is not None
    site = folder / "site-packages"
    shutil.copytree(Path(found.origin).parent, site / "wengert", ignore=shutil.ignore_patterns("__pycache__"))
    (site / "wengert-0.dist-info").mkdir()
    (site / "wengert-0.dist-info" / "RECORD").write_text("wengert/__init__.py,,\n")
    return str(site)


def phases(name: str) -> Times:
    """Return the processor time of each phase of this process; importing NumPy is none."""
    function, ranges, size = EXAMPLES[name]
    rng = np.random.default_rng(0)
    arguments = [rng.uniform(low, high, size) for low, high in ranges]
    clock = Clock()
    import wengert as wg

    clock.ends("import")
    every = tuple(range(len(arguments)))
    jitted = wg.jit(wg.value_and_grad(functools.partial(function, np), every))
    form = jitted.form_for(arguments, {})[0]
    clock.ends("tracing")
    import wengert.compile.executable

    clock.ends("modules")
    graph = wengert.compile.executable.GraphFunction(form.graph)
    vars(form)["native"] = graph
    loads = graph.executable
    clock.ends("look-up and load")
    jitted(*arguments)
    clock.ends("first call")
    if loads is None:
        raise SystemExit("nothing was compiled")
    times = clock.times
    beyond = sum(times[phase] for phase in ("modules", "look-up and load", "first call"))
    return {**times, "beyond tracing": beyond}


class Clock:
    """Take the processor time of phases that follow each other."""

    def __init__(self) -> None:
        self.times: Times = {}
        self.start = time.process_time()

    def ends(self, phase: str) -> None:
        """Say that a phase is over."""
        self.times[phase] = time.process_time() - self.start
        self.start = time.process_time()


if __name__ == "__main__":
    print(json.dumps(phases(sys.argv[1])))
