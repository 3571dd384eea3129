"""What the programs share: their command line, and how their pictures are drawn and written."""

from __future__ import annotations

import argparse
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

__all__ = ["command", "figure", "save"]

LONGEST = 8
"""Results of more elements are pictured, not printed."""


def command(main: Callable[..., Any], draw: Callable[[Any], Any]) -> None:
    """Run a program from the command line: print its results, and draw them if asked to.

    Args:
        main: takes numbers, all with defaults, which become options; returns a named tuple of results.
        draw: takes these and returns a figure.
    """
    summary = (inspect.getdoc(inspect.getmodule(main)) or "").partition("\n")[0]
    parser = argparse.ArgumentParser(description=summary, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
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
