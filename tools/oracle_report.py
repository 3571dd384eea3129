"""Compare Wengert with recorded reference derivatives of NumPy functions, function by function.

Usage: python tools/oracle_report.py [--jit] DIRECTORY

DIRECTORY holds `load_oracles.py`, `index.json` and `ops.npz`. Each entry is one call of a function; value, vjp, jvp and
Hessian-vector product must agree to the tolerances that the directory's README gives, through NumPy's
own functions and through `wengert.numpy` and `wengert.scipy`. With `--jit` all four come from one jitted function,
which is native code with WENGERT_NATIVE=1; entries in which elements decide what is computed are refused, and counted
apart.
"""

from __future__ import annotations

import argparse
import importlib.util
import operator
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

import wengert as wg
import wengert.numpy as wnp
import wengert.numpy.fft
import wengert.numpy.linalg  # as is the one before, for what it enters: functions count as covered then
import wengert.scipy
from wengert.core.values.numpy_overrides import FUNCTIONS

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
    """Hold the recorded calls, and compare Wengert with them.

    Args:
        directory: where the reference values are.
        transform: what is made of the function that computes all that is compared of an entry.
    """

    def __init__(self, directory: Path, transform: Callable[[Any], Any] = lambda function: function) -> None:
        self.tools = loaded(directory)
        self.oracles = self.tools.Oracles(directory)
        self.transform = transform

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

    def derivatives(self, entry: Entry, namespaces: dict[str, Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        """Return the function that computes all that is recorded of an entry, and the arguments it is recorded for."""
        run, has_hvp = self.tools.run, self.oracles.hvp(entry) is not None  # not `self`: tracing looks at all it holds

        def called(x: Any) -> Any:
            return run(entry, x, namespaces)

        def gradient(x: Any, cts: Any) -> Any:
            return wg.vjp(called, x)[1](list(cts))[0]

        def computed(x: Any, cts: Any, tangents: Any) -> Any:
            outputs, pullback = wg.vjp(called, x)
            _, pushed = wg.jvp(called, (x,), (tangents,))
            curved = wg.vjp(lambda v: gradient(v, cts), x)[1](tangents)[0] if has_hvp else None
            return outputs, pushed, pullback(list(cts))[0], curved

        return computed, (self.oracles.inputs(entry), self.oracles.cotangents(entry), self.oracles.tangents(entry))

    def compared(self, entry: Entry, namespaces: dict[str, Any]) -> Iterator[str]:
        """Yield what disagrees in one entry called through some namespaces."""
        oracles, close = self.oracles, self.tools.close
        computed, given = self.derivatives(entry, namespaces)
        outputs, pushed, pulled, curved = self.transform(computed)(*given)
        for found, want in zip(outputs, oracles.outputs(entry), strict=True):
            if not close(found, want, VALUE):
                yield f"value {found} instead of {want}"
        for found, want in zip(pushed, oracles.jvp(entry), strict=True):
            if not close(found, want, FIRST):
                yield f"jvp {found} instead of {want}"
        wants = {"vjp": (pulled, oracles.vjp(entry), FIRST)}
        if curved is not None:
            wants["hvp"] = (curved, oracles.hvp(entry), HVP)
        for what, (found, want, tolerance) in wants.items():
            for name in want:
                if not close(found[name], want[name], tolerance):
                    yield f"{what} for {name} is {found[name]} instead of {want[name]}"


def tried(reference: Reference, entry: Entry) -> list[str] | None:
    """Return what disagrees in one entry, an error included; None if it is refused since elements decide."""
    try:
        with np.errstate(all="ignore"):
            return list(reference.failures(entry))
    except wg.errors.GraphError:
        return None
    except (wg.errors.WengertError, TypeError, ValueError, IndexError, AttributeError, RuntimeError) as error:
        return [f"{entry['id']}: {type(error).__name__}: {error}"]


def main(arguments: list[str]) -> int:
    """Print the counts of each function; return how many functions failed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--verbose", action="store_true", help="print every disagreement")
    parser.add_argument("--jit", action="store_true", help="compare jitted functions")
    options = parser.parse_args(arguments)
    if not (options.directory / "load_oracles.py").exists():
        print(f"{options.directory}: no reference values here; nothing to compare")
        return 0
    transform: Callable[[Any], Any] = wg.jit if options.jit else lambda function: function
    return report(Reference(options.directory, transform), options.verbose)


def report(reference: Reference, verbose: bool) -> int:
    """Print a line for each function and the totals; return how many functions failed."""
    totals = dict.fromkeys(("passed", "failed", "refused", "not covered"), 0)
    wrong = 0
    for function, entries in sorted(reference.by_function().items()):
        if not reference.covers(function):
            totals["not covered"] += len(entries)
            print(f"{function:45} {'not covered':>12}")
            continue
        results = [tried(reference, entry) for entry in entries]
        refused = results.count(None)
        failed = sum(1 for texts in results if texts)
        passed = len(entries) - failed - refused
        totals["passed"] += passed
        totals["failed"] += failed
        totals["refused"] += refused
        wrong += bool(failed)
        more = [f"{count:5} {what}" for what, count in (("refused", refused), ("FAILED", failed)) if count]
        print(f"{function:45} {passed:5} passed", *more, flush=True)
        if verbose:
            print(*(f"    {text}" for texts in results for text in texts or ()), sep="\n")
    print(", ".join(f"{count} {what}" for what, count in totals.items()))
    return wrong


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
