"""Print where unusual calls of functions differ from NumPy's and SciPy's.

Usage: python -m tools.unusual [--modes plain,tape,backward,jvp,vmap,jit] [MODULE or MODULE.NAME ...]
"""

from __future__ import annotations

import argparse
import signal
from collections import Counter

from tools.unusual.calls import MODULES, usual_calls
from tools.unusual.listed import reason
from tools.unusual.verdicts import MODES, of_call, stop


def main() -> None:
    """Print a line for each difference, and their numbers."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*")
    parser.add_argument("--all", action="store_true", help="print what is in the table, too")
    parser.add_argument("--modes", default="plain")
    options = parser.parse_args()
    modes = [mode for mode in options.modes.split(",") if mode in MODES]
    signal.signal(signal.SIGPROF, stop)
    modules = tuple(
        m
        for m in MODULES
        if not options.names or any(f"{x}.".startswith(f"{m.removeprefix('wengert.')}.") for x in options.names)
    )
    counts: Counter[str] = Counter()
    for call in usual_calls(modules):
        if options.names and not any(f"{call.label}.".startswith(f"{x}.") for x in options.names):
            continue
        for found in of_call(call, modes):
            known = reason(found.kind, found.call, found.what)
            counts["listed" if known else found.kind] += 1
            if options.all or known is None:
                print(found, flush=True)
        counts["functions"] += 1
    print(dict(counts))


if __name__ == "__main__":
    main()
