"""Draw docs/pictures: what the commands print, and graphs. Run `python -m tools.make_pictures` after these changed."""

from __future__ import annotations

import contextlib
import html
import io
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.text import Text

from wengert import graph

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 88
COMMANDS: dict[str, list[str]] = {
    "wengert-grad": ["wengert", "grad", "log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5"],
}
"""The name of each picture, and the command that it shows."""


def formula(x1: Any, x2: Any) -> Any:
    """Return what the pictures are about, which stands in docs/how-differentiation-works.md."""
    return np.log(x1) + x1 * x2 - np.sin(x2)


def graphs() -> dict[str, str]:
    """Return the pictures of graphs by their names: that of the formula, and of it with its gradient."""
    traced = graph.trace(formula)(2.0, 5.0)
    return {"graph": graph.to_svg(traced), "graph-of-gradient": graph.to_svg(graph.gradient(traced))}


def output_of(command: list[str]) -> str:
    """Return what a command of ours prints in a terminal of the pictures' width, colours included."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    environment = {**kept, "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", *command], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
    )
    os.close(theirs)
    printed = b"".join(pieces(ours))
    os.close(ours)
    if program.wait() != 0:
        raise RuntimeError(f"{prompt(command)} failed: {printed.decode()}")
    return printed.decode().replace("\r\n", "\n")


def pieces(terminal: int) -> Iterator[bytes]:
    """Yield what a terminal shows until its program has ended, which Linux reports as an error."""
    with contextlib.suppress(OSError):
        while piece := os.read(terminal, 4096):
            yield piece


def prompt(command: list[str]) -> str:
    """Return a command as one types it."""
    return "$ " + " ".join(f'"{word}"' if " " in word else word for word in command)


def picture(name: str) -> str:
    """Return a picture as SVG."""
    command = COMMANDS[name]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(prompt(command), style="bold"))
    console.print(Text.from_ansi(output_of(command)), end="")
    return console.export_svg(title="wengert", unique_id=name)


def text_of(svg: str) -> str:
    """Return the words of a picture, separated by single spaces."""
    elements = re.findall(r"<text[^>]*-matrix[^>]*>(.*?)</text>|<text[^>]*-r\d+[^>]*>(.*?)</text>", svg, re.DOTALL)
    return " ".join(" ".join(html.unescape("".join(found)) for found in elements).split())


def words_of(command: list[str]) -> str:
    """Return the words that a picture of a command should show, separated by single spaces."""
    return " ".join(f"{prompt(command)} {Text.from_ansi(output_of(command)).plain}".split())


def main() -> None:
    """Write all pictures."""
    for name in COMMANDS:
        (PICTURES / f"{name}.svg").write_text(picture(name), encoding="utf-8")
    for name, svg in graphs().items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
