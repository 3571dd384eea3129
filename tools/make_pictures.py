"""Draw docs/pictures: what commands print, graphs, and pages in a browser where there is one.

Run `python -m tools.make_pictures` after these changed.
"""

from __future__ import annotations

import contextlib
import html
import io
import os
import pty
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.text import Text

import wengert
from tools.browser import PROGRAM, Browser
from wengert import graph
from wengert.pictures.picture import as_svg

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"


class Command(NamedTuple):
    """Be a command and the width of the terminal that it is shown in."""

    words: tuple[str, ...]
    width: int = 88


FORMULA = ("log(x1) + x1*x2 - sin(x2)", "x1=2", "x2=5")
COMMANDS: dict[str, Command] = {
    "wengert-grad": Command(("wengert", "grad", *FORMULA)),
    "wengert-compare": Command(("wengert", "compare", *FORMULA), 132),
}
"""The name of each picture, and the command that it shows."""


def formula(x1: Any, x2: Any) -> Any:
    """Return what the pictures are about, which stands in docs/how-differentiation-works.md."""
    return np.log(x1) + x1 * x2 - np.sin(x2)


def graphs() -> dict[str, str]:
    """Return the pictures of graphs by their names: that of the formula, and of it with its gradient."""
    traced = graph.trace(formula)(2.0, 5.0)
    pictures = {"graph": traced.picture(), "graph-of-gradient": graph.gradient(traced).picture()}
    return {name: as_svg(picture, hints=False) for name, picture in pictures.items()}  # hints would have paths in them


def block(x: Any, p: dict[str, Any]) -> Any:
    """Return what a block of a transformer makes of its input."""
    scores = (x @ p["query"]) @ (x @ p["key"]).T / 4.0
    weights = np.exp(scores - np.max(scores, axis=-1, keepdims=True))
    x = x + (weights / np.sum(weights, axis=-1, keepdims=True)) @ (x @ p["value"]) @ p["output"]
    centered = x - np.mean(x, axis=-1, keepdims=True)
    x = centered / np.sqrt(np.mean(centered**2, axis=-1, keepdims=True) + 1e-5)
    return x + np.tanh(x @ p["wide"] + p["bias"]) @ p["narrow"]


def transformer(parameters: list[dict[str, Any]], x: Any) -> Any:
    """Return the loss of a transformer."""
    for p in parameters:
        x = block(x, p)
    return looped(np.mean(x**2, axis=0))


def large_graph(blocks: int = 24) -> graph.Graph:
    """Return the graph of the gradient of a transformer: about a hundred equations for each block."""
    shapes: dict[str, tuple[int, ...]] = {"query": (16, 16), "key": (16, 16), "value": (16, 16), "output": (16, 16)}
    shapes |= {"wide": (16, 64), "bias": (64,), "narrow": (64, 16)}
    parameters = [{name: np.ones(shape) for name, shape in shapes.items()} for _ in range(blocks)]
    return graph.trace(wengert.grad(transformer))(parameters, np.ones((8, 16)))


def looped(x: Any) -> Any:
    """Return something that is computed by a loop and a branch."""
    y, _ = wengert.scan(lambda carry, i: (np.sin(carry) * i, carry), x, np.arange(3.0))
    return wengert.cond(y.sum() > 0, lambda y: np.exp(y).sum(), lambda y: (y * y).sum(), y)


def draw_pages() -> None:
    """Write what a browser shows of pages, and print how long the large one takes to open, to fold and to pan."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "graph.html"
        browser = Browser(Path(folder) / "profile", 1200, 800)
        try:
            large = large_graph()
            path.write_text(large.picture("gradient of a transformer").to_html(), encoding="utf-8")
            opened, busy = min((browser.open(path), browser.busy()) for _ in range(3))
            folded = min(browser.run(FOLDING) for _ in range(3))
            frame = browser.run(PANNING)
            figures = f"{opened:.0f} ms to open ({busy:.0f} of computing), {folded:.0f} to fold, {frame:.0f} a frame"
            print(f"{len(large.equations)} equations: {figures}")
            browser.run("go(facts.findIndex((fact) => fact.forward !== null && fact.uses.length > 1))")
            (PICTURES / "page-of-graph.png").write_bytes(browser.picture())
            page = graph.trace(wengert.grad(looped))(np.ones(2)).picture("gradient of a loop and a branch").to_html()
            path.write_text(page, encoding="utf-8")
            browser.open(path)
            browser.run("fold(boxes.filter((box) => box.pictures.length)[1], true)")
            browser.run("select(boxes.findIndex((box) => box.folded))")
            (PICTURES / "page-of-loops.png").write_bytes(browser.picture())
        finally:
            browser.close()


FOLDING = """(() => {
    const start = performance.now();
    foldAll(true);
    svg.getBoundingClientRect();
    const taken = performance.now() - start;
    foldAll(false);
    return taken;
})()"""
"""Fold everything, and unfold it; how many milliseconds the former takes."""
PANNING = """new Promise((done) => {
    const start = performance.now();
    let frames = 0;
    const next = () => {
        view.scrollTop += 100;
        frames += 1;
        if (frames < 60) requestAnimationFrame(next); else done((performance.now() - start) / frames);
    };
    requestAnimationFrame(next);
})"""
"""Scroll through a page; how many milliseconds a frame takes."""


def output_of(command: Command) -> str:
    """Return what a command of ours prints in a terminal of the pictures' width, colours included."""
    kept = {name: value for name, value in os.environ.items() if name not in ("FORCE_COLOR", "NO_COLOR")}
    environment = {**kept, "COLUMNS": str(command.width), "TERM": "xterm-256color", "PYTHONIOENCODING": "utf-8"}
    ours, theirs = pty.openpty()
    program = subprocess.Popen(
        [sys.executable, "-m", *command.words], stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=environment
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


def prompt(command: Command) -> str:
    """Return a command as one types it."""
    return "$ " + " ".join(f'"{word}"' if " " in word else word for word in command.words)


def picture(name: str) -> str:
    """Return a picture as SVG."""
    command = COMMANDS[name]
    console = Console(record=True, width=command.width, file=io.StringIO(), force_terminal=True)
    console.print(Text(prompt(command), style="bold"))
    console.print(Text.from_ansi(output_of(command)), end="")
    return console.export_svg(title="wengert", unique_id=name)


def text_of(svg: str) -> str:
    """Return the words of a picture, separated by single spaces."""
    elements = re.findall(r"<text[^>]*-matrix[^>]*>(.*?)</text>|<text[^>]*-r\d+[^>]*>(.*?)</text>", svg, re.DOTALL)
    return " ".join(" ".join(html.unescape("".join(found)) for found in elements).split())


def words_of(command: Command) -> str:
    """Return the words that a picture of a command should show, separated by single spaces."""
    return " ".join(f"{prompt(command)} {Text.from_ansi(output_of(command)).plain}".split())


def main() -> None:
    """Write all pictures."""
    for name in COMMANDS:
        (PICTURES / f"{name}.svg").write_text(picture(name), encoding="utf-8")
    for name, svg in graphs().items():
        (PICTURES / f"{name}.svg").write_text(svg, encoding="utf-8")
    if PROGRAM is not None:
        draw_pages()


if __name__ == "__main__":
    main()
