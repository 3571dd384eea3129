"""Write docs/benchmarks.md from the files that `python -m benchmarks <suite> --json <file>` wrote.

Run `python -m tools.benchmark_page eager.json transforms.json import.json` after measuring in a quiet moment, and
read the difference before you commit it.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from benchmarks.report import duration

PAGE = Path(__file__).resolve().parent.parent / "docs" / "benchmarks.md"
HEAD = """# Benchmarks

Programs of the same text, written for each library in the way of its users, take turns in one process. The first
column is Wengert's median time (for an operation, where a case is a chain of them); the others are its ratio to a
peer's in the same round, the median over the rounds. Below 1 Wengert is faster. All compute in double precision on
the processor and eagerly: nothing is compiled, except in the column `jax-jit`, where JAX has compiled the whole
transformation before the first round. An empty cell says that the library has no such thing.

`python -m benchmarks <suite>` measures anew; `python -m tools.benchmark_page` writes this page.
"""


def sections(paths: list[Path]) -> str:
    """Return the page: the machine, and a table for each suite."""
    found = [json.loads(path.read_text()) for path in paths]
    return "\n".join([HEAD, measured_on(found[0]["machine"]), *map(table, found)])


def measured_on(machine: dict[str, Any]) -> str:
    """Say when and where the figures were measured."""
    versions = ", ".join(f"{name} {version}" for name, version in machine["versions"].items() if name != "wengert")
    return (
        f"Measured on {machine['date']} on a virtual machine with {machine['processors']} cores of an "
        f"{machine['processor']} processor, {machine['system']}, Python {machine['python']}, {versions}. "
        f"The load, this program included, was {machine['load']}; where it exceeds the number of cores, others ran "
        "at the same time, and figures are rough.\n"
    )


def table(content: dict[str, Any]) -> str:
    """Return one suite's table."""
    results = content["results"]
    peers = list(dict.fromkeys(peer for result in results for peer in result["ratio"]))
    lines = [
        f"## {content['suite'].capitalize()}\n",
        f"| | Wengert | {' | '.join(f'/ {peer}' for peer in peers)} |",
        f"|---|--:|{'--:|' * len(peers)}",
    ]
    for result in results:
        name = ": ".join(filter(None, (result["case"], result["phase"])))
        ratios = [f"{result['ratio'][peer]:.2f}" if peer in result["ratio"] else "" for peer in peers]
        lines.append(f"| {name} | {duration(result['seconds_per_operation']['wengert'])} | {' | '.join(ratios)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(prog="python -m tools.benchmark_page", description=main.__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="files written by the benchmarks, one for each suite")
    PAGE.write_text(sections(parser.parse_args().results))


if __name__ == "__main__":
    main()
