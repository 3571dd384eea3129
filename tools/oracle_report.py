"""Compare Wengert with recorded reference derivatives of NumPy functions, function by function.

Usage: python tools/oracle_report.py DIRECTORY

DIRECTORY holds `load_oracles.py`, `index.json` and `ops.npz`. Each entry is one call of a function; value, vjp, jvp and
Hessian-vector product must agree to the tolerances that the directory's README gives, through NumPy's
own functions and through `wengert.numpy` and `wengert.scipy`.
"""

from __future__ import annotations

import argparse
import importlib.util
import operator
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
import wengert.numpy as wnp
import wengert.numpy.fft
import wengert.numpy.linalg  # as is the one before, for what it enters: functions count as covered then
import wengert.scipy
from wengert.core.tensor import FUNCTIONS

VALUE, FIRST, HVP = 1e-10, 1e-7, 1e-6
NAMESPACES = {
    "numpy": {"numpy": np, "scipy": wengert.scipy, "operator": operator},
    "wengert.numpy": {"numpy": wnp, "scipy": wengert.scipy, "operator": operator},
}
OPERATORS: dict[str, Any] = {"matmul": np.matmul}  # those that wait for a function; the others are always there
Entry = dict[str, Any]


def loaded(directory: Path) -> ModuleType:
    """Return the module that reads the reference values."""
    spec = importlib.util.spec_from_file_location("load_oracles", directory / "load_oracles.py")
    if spec is None or spec.loader is None:
        raise FileNotFoundError(f"{directory} holds no load_oracles.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def only_in_numpy(path: list[str]) -> bool:
    """Tell whether a name below `numpy` has no counterpart in `wengert.numpy`: methods of ufuncs, and `numpy.lib`."""
    return len(path) > 1 and (path[0] == "lib" or isinstance(getattr(np, path[0], None), np.ufunc))


class Reference:
    """Hold the recorded calls, and compare Wengert with them."""

    def __init__(self, directory: Path) -> None:
        self.tools = loaded(directory)
        self.oracles = self.tools.Oracles(directory)

    def by_function(self) -> dict[str, list[Entry]]:
        """Return the entries of each function."""
        found: dict[str, list[Entry]] = defaultdict(list)
        for entry in self.oracles.entries:
            found[entry["func"]].append(entry)
        return dict(found)

    def covers(self, function: str) -> bool:
        """Tell whether a function has a meaning for Tensors."""
        root, *path = function.split(".")
        if root == "operator":
            return OPERATORS.get(path[0], np.add) in FUNCTIONS
        if root != "numpy":
            try:
                return bool(self.tools.resolve(function, {"scipy": wengert.scipy}))
            except AttributeError:
                return False
        found = self.tools.resolve(function, {"numpy": np})
        return found in FUNCTIONS or (only_in_numpy(path) and (getattr(np, path[0]), path[-1]) in FUNCTIONS)

    def failures(self, entry: Entry) -> Iterator[str]:
        """Yield what disagrees in one entry."""
        for name, namespaces in NAMESPACES.items():
            if namespaces["numpy"] is np or not only_in_numpy(entry["func"].split(".")[1:]):
                for text in self.compared(entry, namespaces):
                    yield f"{entry['id']} {entry['layout'] or ''} ({name}): {text}"

    def compared(self, entry: Entry, namespaces: dict[str, Any]) -> Iterator[str]:
        """Yield what disagrees in one entry called through some namespaces."""
        oracles, close = self.oracles, self.tools.close
        point, cts, tangents = oracles.inputs(entry), oracles.cotangents(entry), oracles.tangents(entry)

        def gradient(x: Any) -> Any:
            return wg.vjp(lambda v: self.tools.run(entry, v, namespaces), x)[1](list(cts))[0]

        outputs, pullback = wg.vjp(lambda v: self.tools.run(entry, v, namespaces), point)
        for found, want in zip(outputs, oracles.outputs(entry), strict=True):
            if not close(found, want, VALUE):
                yield f"value {found} instead of {want}"
        _, pushed = wg.jvp(lambda v: self.tools.run(entry, v, namespaces), (point,), (tangents,))
        for found, want in zip(pushed, oracles.jvp(entry), strict=True):
            if not close(found, want, FIRST):
                yield f"jvp {found} instead of {want}"
        wants = {"vjp": (pullback(list(cts))[0], oracles.vjp(entry), FIRST)}
        hvp = oracles.hvp(entry)
        if hvp is not None:
            wants["hvp"] = (wg.vjp(gradient, point)[1](tangents)[0], hvp, HVP)
        for what, (found, want, tolerance) in wants.items():
            for name in want:
                if not close(found[name], want[name], tolerance):
                    yield f"{what} for {name} is {found[name]} instead of {want[name]}"


def tried(reference: Reference, entry: Entry) -> list[str]:
    """Return what disagrees in one entry, an error included."""
    try:
        with np.errstate(all="ignore"):
            return list(reference.failures(entry))
    except (wg.errors.WengertError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        return [f"{entry['id']}: {type(error).__name__}: {error}"]


def main(arguments: list[str]) -> int:
    """Print the counts of each function; return how many functions failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print every disagreement")
    options = parser.parse_args(arguments)
    if not (options.directory / "load_oracles.py").exists():
        print(f"{options.directory}: no reference values here; nothing to compare")
        return 0
    reference = Reference(options.directory)
    return report(reference, options.verbose)


def report(reference: Reference, verbose: bool) -> int:
    """Print a line for each function and the totals; return how many functions failed."""
    totals = {"passed": 0, "failed": 0, "not covered": 0}
    wrong = 0
    for function, entries in sorted(reference.by_function().items()):
        if not reference.covers(function):
            totals["not covered"] += len(entries)
            print(f"{function:45} {'not covered':>12}")
            continue
        results = [tried(reference, entry) for entry in entries]
        failed = sum(1 for texts in results if texts)
        totals["passed"] += len(entries) - failed
        totals["failed"] += failed
        wrong += bool(failed)
        print(f"{function:45} {len(entries) - failed:5} passed" + (f" {failed:5} FAILED" if failed else ""))
        if verbose:
            print(*(f"    {text}" for texts in results for text in texts), sep="\n")
    print(", ".join(f"{count} {what}" for what, count in totals.items()))
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
