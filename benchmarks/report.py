"""Reporting: a table for people, JSON for programs."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from benchmarks.libraries import distribution
from benchmarks.measure import Result

__all__ = ["duration", "machine", "print_table", "write_json"]

WIDE = 100  # columns where the output is no terminal, so that no name is broken


def machine(libraries: Iterable[str]) -> dict[str, object]:
    """Return what the figures depend on besides the programs."""
    packages = dict.fromkeys(distribution(name) for name in ("numpy", *libraries))
    versions = {name: importlib.metadata.version(name) for name in packages}
    return {
        "date": datetime.date.today().isoformat(),
        "processor": processor(),
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "versions": versions,
    }


def processor() -> str:
    """Return the name of the processor where the system tells it."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def duration(seconds: float) -> str:
    """Return a time with three digits and a unit.

    >>> duration(0.0000012345)
    '1.23 µs'
    """
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def print_table(title: str, results: Sequence[Result], libraries: Sequence[str]) -> None:
    """Print the subject's time per operation, and its ratio to each other library."""
    subject = results[0].subject
    others = [library for library in libraries if library != subject]
    table = Table(title=title, caption=f"time of an operation; ratio = {subject} / peer, median of pairs")
    table.add_column("case")
    table.add_column(subject, justify="right")
    for library in others:
        table.add_column(f"/ {library}", justify="right")
    for result in results:
        ratios = [f"{result.ratio(library):.2f}" if library in result.seconds else "-" for library in others]
        name = f"{result.case}: {result.phase}" if result.phase else result.case
        table.add_row(name, duration(result.per_operation(subject)), *ratios)
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def write_json(path: Path, suite: str, results: Sequence[Result], libraries: Sequence[str]) -> None:
    """Write the results and the machine they are from."""
    content = {"suite": suite, "machine": machine(libraries), "results": [result.as_json() for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n")
