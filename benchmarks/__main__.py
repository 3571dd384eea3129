"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import (
    compiled,
    differential_equations,
    eager,
    graphs,
    implicit,
    importing,
    kinetics,
    loops,
    operations,
    power_flow,
    programs,
    routines,
    solvers,
    sparse,
    sparse_values,
    starting,
    tracing,
    transforms,
)
from benchmarks.libraries import PEERS, installed
from benchmarks.measure import Case, measure
from benchmarks.report import print_table, results_table, write_json
from benchmarks.summary import summary

SUITES: dict[str, Callable[[int], Iterable[Case]]] = {
    "eager": eager.cases,
    "import": importing.cases,
    "transforms": transforms.cases,
    "tracing": tracing.cases,
    "graphs": graphs.cases,
    "jit": compiled.cases,
    "start": starting.cases,
    "operations": operations.cases,
    "programs": programs.cases,
    "routines": routines.cases,
    "solvers": solvers.cases,
    "loops": loops.cases,
    "implicit": implicit.cases,
    "sparse": sparse.cases,
    "power-flow": power_flow.cases,
    "kinetics": kinetics.cases,
    "equations": differential_equations.cases,
    "sparse-values": sparse_values.cases,
}
COMPARED: dict[str, Sequence[str]] = {
    "import": ("numpy",),
    "transforms": ("jax-jit",),
    "operations": ("numpy",),
    "programs": ("jax-jit",),
    "solvers": ("optimistix", "scipy"),
    "loops": ("jax-jit", "c", "wengert-where", "wengert-eager"),
    "implicit": ("wengert-parts", "wengert-forward", "wengert-written", "qpth", "proxsuite", "diffcp"),
    "sparse": ("asdex", "scipy"),
    "power-flow": ("pypower",),
    "kinetics": ("jax-jit", "cantera"),
    "equations": ("wengert-value", "diffrax", "sksundae", "scipy"),
    "sparse-values": ("scipy", "jax-jit"),
    "jit": ("wengert-eager", "jax-jit", "torch-compile", "numba", "numpy"),
}
"""What a suite compares with besides the peers."""
COUNTED: dict[str, Sequence[str]] = {"graphs": ("equations", "guards", "residual bytes")}
"""The labels of a suite that are columns of its table."""
SUMMED_UP = ("operations",)
"""Suites of many cases: a summary is printed, and the cases themselves if they are few."""
FEW = 40
SINGLE = (
    *("operations", "programs", "routines", "solvers", "loops", "implicit", "equations"),
    *("sparse", "sparse-values", "power-flow", "kinetics"),
)
"""Suites in which every library has one thread, and processor time is measured."""
ONE_THREAD = {"OMP_NUM_THREADS": "1", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
"""What libraries look at when they are loaded, for suites in which each has one thread."""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare Wengert with its peers.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to a file")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose names contain a text")
    parser.add_argument("--variants", default="", metavar="NAMES", help="of operations, these variants (default all)")
    parser.add_argument("--sizes", default="", metavar="NUMBERS", help="of operations, on these numbers of elements")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help="the peers, separated by commas")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (default 2)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of rounds and the time")
    return parser.parse_args()


def wanted(case: Case, chosen: argparse.Namespace) -> bool:
    """Tell whether the command line asks for a case."""
    variant, size = case.labels.get("variant"), case.labels.get("size")
    of_variant = not chosen.variants or variant in chosen.variants.split(",")
    of_size = not chosen.sizes or size in chosen.sizes.split(",")
    return chosen.only in case.name and of_variant and of_size


def with_one_thread() -> None:
    """Start the same command again in an environment in which every library uses one thread."""
    if any(os.environ.get(name) != value for name, value in ONE_THREAD.items()):
        os.execve(sys.executable, [sys.executable, "-m", "benchmarks", *sys.argv[1:]], os.environ | ONE_THREAD)


def main() -> None:
    """Run one suite."""
    chosen = arguments()
    if chosen.suite in SINGLE:
        with_one_thread()
    peers = installed([name for name in chosen.peers.split(",") if name])
    libraries = ["wengert", *peers, *installed(COMPARED.get(chosen.suite, ()))]
    cases = (case for case in SUITES[chosen.suite](chosen.threads) if wanted(case, chosen))
    results = [result for case in cases for result in measure(case, libraries, scale=chosen.scale)]
    if not results:
        raise SystemExit(f"{chosen.suite}: no case is all that was asked for")
    libraries = [name for name in libraries if any(name in result.seconds for result in results)]
    title = f"python -m benchmarks {chosen.suite}: time of an operation, and its ratio to the peers'"
    tables = [results_table(title, results, libraries, COUNTED.get(chosen.suite, ()))]
    if chosen.suite in SUMMED_UP:
        tables = [*(tables if len(results) <= FEW else ()), *summary([result.as_json() for result in results])]
    for table in tables:
        print_table(table)
    if chosen.json is not None:
        write_json(chosen.json, chosen.suite, results, libraries)


if __name__ == "__main__":
    main()
