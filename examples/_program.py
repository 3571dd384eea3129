"""What the programs share: their command line, how they time and compare, and how their pictures are drawn."""

from __future__ import annotations

import argparse
import inspect
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["DATA", "PUBLISHED", "Array", "Integers", "command", "error", "figure", "on_files", "save", "timed"]

Array = NDArray[np.float64]
Integers = NDArray[np.int64]

DATA = Path(__file__).parent / "data"
PUBLISHED = DATA / "published"
"""Where inputs lie whose derivatives others have computed."""

LONGEST = 8
"""Results of more elements are pictured, not printed."""


def command(main: Callable[..., Any], draw: Callable[[Any], Any]) -> None:
    """Run a program from the command line: print its results, and draw them if asked to.

    Args:
        main: takes numbers, all with defaults, which become options; returns a named tuple of results.
        draw: takes these and returns a figure.
    """
    parser = argparse.ArgumentParser(description=summary(main), formatter_class=argparse.ArgumentDefaultsHelpFormatter)
    for name, parameter in inspect.signature(main).parameters.items():
        option = f"--{name.replace('_', '-')}"
        parser.add_argument(option, type=type(parameter.default), default=parameter.default, help="a number")
    parser.add_argument("--picture", metavar="FILE", help="draw the results; needs matplotlib")
    options = vars(parser.parse_args())
    picture = options.pop("picture")
    result = main(**options)
    for name, value in result._asdict().items():
        if isinstance(value, int | float | np.number | np.ndarray) and np.size(value) <= LONGEST:
            print(f"{name.replace('_', ' '):24} {value}")
    if picture is not None:
        save(draw(result), Path(picture))


def summary(main: Callable[..., Any]) -> str:
    """Return the first line about a program."""
    return (inspect.getdoc(inspect.getmodule(main)) or "").partition("\n")[0]


def on_files(main: Callable[..., Any]) -> None:
    """Run a program that prints how near it comes to published results from the command line.

    Args:
        main: takes the paths of files, which have a default, and whether to trace and compile.
    """
    parser = argparse.ArgumentParser(description=summary(main))
    default = inspect.signature(main).parameters["paths"].default
    parser.add_argument("paths", nargs="*", type=Path, default=default, metavar="FILE")
    parser.add_argument("--jit", action="store_true", help="trace and compile")
    main(**vars(parser.parse_args()))


def timed(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """Return what a function gives, and how many milliseconds its second call takes: at the first, `jit` traces."""
    function(*args)
    start = time.perf_counter()
    return function(*args), 1000 * (time.perf_counter() - start)


def error(found: Any, expected: Any) -> float:
    """Return the largest difference: relative of large numbers, absolute of small ones."""
    return float(np.max(np.abs(found - expected) / np.maximum(1, np.abs(found) + np.abs(expected))))


def figure(rows: int = 1, columns: int = 2, **options: Any) -> tuple[Any, Any]:
    """Return a figure, and its axes in an array if there are several.

    Args:
        rows: of axes.
        columns: of axes.
        options: of `matplotlib.figure.Figure.subplots`.
    """
    from matplotlib.figure import Figure

    drawn = Figure(figsize=(4.2 * columns, 3.2 * rows), layout="constrained")
    axes = drawn.subplots(rows, columns, **options)
    for ax in np.ravel(axes):
        ax.spines[["top", "right"]].set_visible(False)
    return drawn, axes


def save(drawn: Any, path: Path) -> None:
    """Write a figure; the same figure is the same file whenever it is drawn."""
    import matplotlib

    with matplotlib.rc_context({"svg.hashsalt": "wengert", "svg.fonttype": "none", "path.simplify_threshold": 0.5}):
        drawn.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
