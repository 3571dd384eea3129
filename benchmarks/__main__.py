"""The command line of the benchmarks."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from benchmarks import eager, importing, tracing, transforms
from benchmarks.libraries import PEERS, installed
from benchmarks.measure import Case, measure
from benchmarks.report import print_table, write_json

SUITES: dict[str, Callable[[int], Iterable[Case]]] = {
    "eager": eager.cases,
    "import": importing.cases,
    "transforms": transforms.cases,
    "tracing": tracing.cases,
}
COMPARED: dict[str, Sequence[str]] = {"import": ("numpy",), "transforms": ("jax-jit",)}
"""What a suite compares with besides the peers."""


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="Compare Wengert with its peers.")
    parser.add_argument("suite", choices=SUITES)
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the results to a file")
    parser.add_argument("--only", default="", metavar="TEXT", help="run the cases whose names contain a text")
    parser.add_argument("--peers", default=",".join(PEERS), metavar="NAMES", help="the peers, separated by commas")
    parser.add_argument("--threads", type=int, default=2, help="threads of PyTorch (default 2)")
    parser.add_argument("--scale", type=float, default=1.0, help="factor on the number of rounds and the time")
    return parser.parse_args()


def main() -> None:
    """Run one suite."""
    chosen = arguments()
    peers = installed([name for name in chosen.peers.split(",") if name])
    libraries = ["wengert", *peers, *installed(COMPARED.get(chosen.suite, ()))]
    results = [
        result
        for case in SUITES[chosen.suite](chosen.threads)
        if chosen.only in case.name
        for result in measure(case, libraries, scale=chosen.scale)
    ]
    if not results:
        raise SystemExit(f"no case of {chosen.suite} has {chosen.only!r} in its name")
    print_table(f"python -m benchmarks {chosen.suite}", results, libraries)
    if chosen.json is not None:
        write_json(chosen.json, chosen.suite, results, libraries)


if __name__ == "__main__":
    main()
