"""What an import costs: `import wengert` against `import numpy`, which it contains, and against the peers."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

from benchmarks.measure import Case, Program, Times

__all__ = ["cases"]

TIMED = "import time; start = time.perf_counter(); import {}; print(time.perf_counter() - start)"


def cases(threads: int) -> Iterator[Case]:
    """Yield the case; threads do not matter here."""
    yield Case("import", 1, importing, rounds=15, budget=60.0)


def importing(package: str) -> Program:
    """Return a program that imports a package in a new interpreter, compiled beforehand as after an installation."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}

    def run() -> Times:
        code = TIMED.format(package)
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment)
        return {"": float(done.stdout)}

    return run
