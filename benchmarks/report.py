"""Reporting: a table for people, JSON for programs."""

from __future__ import annotations

import datetime
import importlib.metadata
import json
import os
import platform
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from benchmarks.libraries import distribution
from benchmarks.measure import Result

__all__ = ["Table", "duration", "machine", "print_table", "results_table", "share", "write_json"]

WIDE = 100  # columns where the output is no terminal, so that no name is broken


@dataclass(frozen=True)
class Table:
    """Hold a table of text; all columns but the first are numbers."""

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


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


def share(ratio: float) -> str:
    """Return a ratio with two digits after the point, small ones with three.

    >>> share(0.82), share(0.0123)
    ('0.82', '0.012')
    """
    return f"{ratio:.2f}" if ratio >= 0.1 else f"{ratio:.3f}"


def results_table(title: str, results: Sequence[Result], libraries: Sequence[str], labels: Sequence[str] = ()) -> Table:
    """Return some labels, the subject's time per operation, and its ratio to each other library."""
    subject = results[0].subject
    others = [library for library in libraries if library != subject]
    rows = []
    for result in results:
        ratios = [share(result.ratio(library)) if library in result.seconds else "-" for library in others]
        name = f"{result.case}: {result.phase}" if result.phase else result.case
        known = [result.labels[label] for label in labels]
        rows.append([name, *known, duration(result.per_operation(subject)), *ratios])
    return Table(title, ["case", *labels, subject, *(f"/ {library}" for library in others)], rows)


def print_table(content: Table) -> None:
    """Print a table."""
    table = RichTable(title=content.title, title_justify="left")
    for position, column in enumerate(content.columns):
        table.add_column(column, justify="right" if position else "left")
    for row in content.rows:
        table.add_row(*map(Text, row))
    Console(width=None if sys.stdout.isatty() else WIDE).print(table)


def write_json(path: Path, suite: str, results: Sequence[Result], libraries: Sequence[str]) -> None:
    """Write the results and the machine they are from."""
    content = {"suite": suite, "machine": machine(libraries), "results": [result.as_json() for result in results]}
    path.write_text(json.dumps(content, indent=2) + "\n")
