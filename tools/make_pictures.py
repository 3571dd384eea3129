"""Draw docs/pictures from what the commands print: run `python -m tools.make_pictures` after their output changed."""

from __future__ import annotations

import html
import io
import os
import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console
from rich.text import Text

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
WIDTH = 88
COMMANDS: dict[str, list[str]] = {
    "wengert-grad": ["wengert", "grad", "log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5"],
}
"""The name of each picture, and the command that it shows."""


def output_of(command: list[str], *, colours: bool) -> str:
    """Return what a command of ours prints in a terminal of the pictures' width."""
    wanted = {"FORCE_COLOR": "1"} if colours else {"NO_COLOR": "1"}
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    environment = {**kept, **wanted, "COLUMNS": str(WIDTH), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    program = [sys.executable, "-m", *command]
    done = subprocess.run(program, capture_output=True, encoding="utf-8", check=True, env=environment)
    return done.stdout


def prompt(command: list[str]) -> str:
    """Return a command as one types it."""
    return "$ " + " ".join(f'"{word}"' if " " in word else word for word in command)


def picture(name: str) -> str:
    """Return a picture as SVG."""
    command = COMMANDS[name]
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    console.print(Text(prompt(command), style="bold"))
    console.print(Text.from_ansi(output_of(command, colours=True)), end="")
    return console.export_svg(title="wengert", unique_id=name)


def text_of(svg: str) -> str:
    """Return the words of a picture, separated by single spaces."""
    elements = re.findall(r"<text[^>]*-matrix[^>]*>(.*?)</text>|<text[^>]*-r\d+[^>]*>(.*?)</text>", svg, re.DOTALL)
    return " ".join(" ".join(html.unescape("".join(found)) for found in elements).split())


def main() -> None:
    """Write all pictures."""
    for name in COMMANDS:
        (PICTURES / f"{name}.svg").write_text(picture(name), encoding="utf-8")


if __name__ == "__main__":
    main()
