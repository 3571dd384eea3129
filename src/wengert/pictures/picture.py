"""Pictures, as notebooks show them and files hold them: as SVG, and as pages that need no network.

A page is to pan, zoom, fold and find in, and to click a box to read about it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from wengert.errors import UsageError
from wengert.pictures.boxes import Box, Diagram
from wengert.pictures.layout import Layout, WireSegment, lay_out
from wengert.support.hints import hint_attributes
from wengert.support.records import NamedTuple

LARGEST = 500
"""Boxes that a notebook shows by itself: their picture takes 0.2 s and 300 kB."""


@hint_attributes("savefig", "show")
class Picture(Diagram):
    """Hold boxes, each after those that it uses, and wires. A notebook shows it by itself.

    >>> import wengert as wg
    >>> picture = wg.graph.trace(lambda x: x * 3.0)(2.0).picture()
    >>> picture
    <picture of 3 boxes, 2 wires>
    >>> picture.to_svg()[:4], picture.to_html()[:15]
    ('<svg', '<!doctype html>')
    """

    def __repr__(self) -> str:
        return f"<picture of {len(self.boxes)} boxes, {len(self.wires)} wires>"

    def to_svg(self) -> str:
        """Return the picture as the text of an `.svg` file; pointing at a box tells more about it."""
        return as_svg(self)

    def to_html(self) -> str:
        """Return a page to pan, zoom, fold and click in: the text of an `.html` file that needs nothing else."""
        return as_page(self)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the picture into a file, `.svg` or `.html`.

        Raises:
            UsageError: the name of the file ends otherwise.
            OSError: the file cannot be written.
        """
        file = Path(path)
        if file.suffix not in (".svg", ".html"):
            given = f"a picture for the file {file.name!r}"
            needed = "a name that ends in .svg or .html is needed"
            raise UsageError("save", given, needed, "Save it as .svg, and convert that by another program")
        file.write_text(self.to_svg() if file.suffix == ".svg" else self.to_html(), encoding="utf-8")

    def _repr_html_(self) -> str | None:
        if sum(1 for _ in self.every_box()) > LARGEST:
            return None
        return f'<div style="overflow: auto; max-height: 40em">{self.to_svg()}</div>'


# SVG


SIZE = 11
LETTER = 0.602 * SIZE
LINE = 14
PADDING = 7
MARGIN = 16
TITLE = 18
"""The height of the title of a sub-graph."""
LONGEST = 44
"""Letters of a line that are shown."""

STYLE = """
.wengert-picture text{font:11px ui-monospace,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1c2733}
.wengert-picture .b{stroke:#5f6f7f;fill:#fff}
.wengert-picture .input>.b{stroke:#2f6ea5;fill:#dcebf8}
.wengert-picture .derived>.b{stroke:#b4661a;fill:#fdebd8}
.wengert-picture .output>.b{stroke:#3c7d31;fill:#e0f2dc;stroke-width:2}
.wengert-picture .nest>.b{fill:#f3f5f8}.wengert-picture .derived.nest>.b{fill:#fdf5ec}
.wengert-picture .m,.wengert-picture .h{fill:#5a6b7b}
.wengert-picture path{fill:none;stroke:#8796a5}.wengert-picture .end{fill:#8796a5}
""".replace("\n", "")


class Drawn(NamedTuple):
    """Hold the layout of a picture and the sizes of its boxes and of what is inside of them."""

    layout: Layout
    sizes: list[tuple[float, float]]
    inside: dict[int, list[Drawn]]


def as_svg(picture: Diagram, *, hints: bool = True) -> str:
    """Return a picture as the text of an `.svg` file; its `hints` tell more of a box that one points at."""
    drawn = draw(picture)
    writer = Writer(number_boxes(picture), hints)
    width, height = drawn.layout.width + 2 * MARGIN, drawn.layout.height + 2 * MARGIN
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="wengert-picture" width="{number(width)}"'
        f' height="{number(height)}" viewBox="0 0 {number(width)} {number(height)}">'
    )
    body = writer.picture(picture, drawn, MARGIN, MARGIN)
    return "\n".join([head, f"<style>{STYLE}</style>", *body, "</svg>"])


def number_boxes(picture: Diagram) -> dict[Box, int]:
    """Return a number for each box, those inside of others included."""
    return {box: i for i, box in enumerate(picture.every_box())}


def draw(picture: Diagram) -> Drawn:
    """Return where everything goes, from the inside out."""
    inside = {i: [draw(inner) for _, inner in box.inside] for i, box in enumerate(picture.boxes) if box.inside}
    sizes = [box_size(box, inside.get(i, ())) for i, box in enumerate(picture.boxes)]
    ports = [(box.operands, box.results) for box in picture.boxes]
    return Drawn(lay_out(sizes, ports, picture.wires), sizes, inside)


def box_size(box: Box, inside: Sequence[Drawn]) -> tuple[float, float]:
    """Return width and height of a box."""
    width = max([len(shorten_line(line)) for line in box.lines], default=0) * LETTER + 2 * PADDING
    height = closed_height(box)
    if inside:
        titles = [len(shorten_line(title)) * LETTER for title, _ in box.inside]
        widths = [max(d.layout.width, title) for d, title in zip(inside, titles, strict=True)]
        width = max(width, sum(widths) + MARGIN * (len(inside) + 1))
        height += TITLE + max(drawn.layout.height for drawn in inside) + MARGIN
    return width, height


def closed_height(box: Box) -> float:
    """Return the height of a box that shows nothing of its inside."""
    return len(box.lines) * LINE + PADDING


def shorten_line(text: str) -> str:
    """Return a line without the end of a long one.

    >>> shorten_line("v1 = x * x"), len(shorten_line("x + " * 100))
    ('v1 = x * x', 44)
    """
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def number(value: float) -> str:
    """Return a coordinate in short.

    >>> number(3.0), number(2.25)
    ('3', '2.2')
    """
    return f"{value:.1f}".removesuffix(".0")


def path(segments: Sequence[WireSegment]) -> str:
    """Return the wires of a result: lines through layers, and bows between them."""
    pieces = []
    for segment in segments:
        x, y, bottom, to_x, to_y = map(number, segment)
        middle = number((segment.bottom + segment.to_y) / 2)
        pieces.append(f"M{x} {y}V{bottom}C{x} {middle} {to_x} {middle} {to_x} {to_y}")
    return "".join(pieces)


class Writer:
    """Write pictures down, element by element."""

    def __init__(self, numbers: Mapping[Box, int], hints: bool) -> None:
        self.numbers = numbers
        self.hints = hints

    def picture(self, picture: Diagram, drawn: Drawn, x: float, y: float, title: str = "") -> Iterator[str]:
        """Yield the elements of a picture whose corner is at (x, y)."""
        layout, boxes, numbers = drawn.layout, picture.boxes, self.numbers
        bands = " ".join(f"{number(top)},{number(bottom)}" for top, bottom in layout.bands)
        yield f'<g class="picture" data-bands="{bands}" transform="translate({number(x)} {number(y)})">'
        if title:
            yield f'<text class="h" y="-6">{escape(shorten_line(title))}</text>'
        for (i, _), segments in layout.wires.items():
            end = number(max(segment.to_y for segment in segments))
            yield f'<path data-from="{numbers[boxes[i]]}" data-end="{end}" d="{path(segments)}"/>'
        for i, box in enumerate(boxes):
            yield from self.box(box, i, drawn)
        for i, left, top in layout.ends:
            place = f'cx="{number(left)}" cy="{number(top)}"'
            yield f'<circle class="end" data-to="{numbers[boxes[i]]}" {place} r="2.5"/>'
        yield "</g>"

    def box(self, box: Box, i: int, drawn: Drawn) -> Iterator[str]:
        """Yield the elements of a box."""
        layout, (width, height) = drawn.layout, drawn.sizes[i]
        classes = f"box {box.kind}" + (" nest" if box.inside else "")
        closed = closed_height(box)
        data = f'data-n="{self.numbers[box]}" data-layer="{layout.layers[i]}" data-closed="{number(closed)}"'
        at = f"{number(layout.lefts[i])} {number(layout.tops[i])}"
        yield f'<g class="{classes}" {data} transform="translate({at})">'
        if self.hints:
            yield f"<title>{escape(hint(box))}</title>"
        yield f'<rect class="b" width="{number(width)}" height="{number(height)}" rx="4"/>'
        for j, line in enumerate(box.lines):
            kind = ' class="m"' if j else ""
            yield f'<text{kind} x="{PADDING}" y="{(j + 1) * LINE - 1}">{escape(shorten_line(line))}</text>'
        left = float(MARGIN)
        for (title, picture), inner in zip(box.inside, drawn.inside.get(i, ()), strict=True):
            yield from self.picture(picture, inner, left, closed + TITLE, title)
            left += max(inner.layout.width, len(shorten_line(title)) * LETTER) + MARGIN
        yield "</g>"


def hint(box: Box) -> str:
    """Return the tooltip of a box."""
    return "\n".join([box.lines[0], *(f"{name}: {text}" for name, text in box.facts.items())])


# Pages


FOLDER = Path(__file__).parent


def as_page(picture: Diagram) -> str:
    """Return a picture as the text of an `.html` file."""
    parts = {
        "TITLE": escape(picture.title),
        "STYLE": (FOLDER / "page.css").read_text(encoding="utf-8"),
        "PICTURE": as_svg(picture, hints=False),
        "FACTS": json.dumps(box_facts(picture), separators=(",", ":")).replace("<", "\\u003c"),
        "SCRIPT": (FOLDER / "page.js").read_text(encoding="utf-8"),
    }
    pieces = (FOLDER / "page.html").read_text(encoding="utf-8").split("@@")
    return "".join(parts.get(piece, piece) for piece in pieces)


def box_facts(picture: Diagram) -> list[dict[str, Any]]:
    """Return the record of each box for the page's script, in the order of their numbers, which are their names."""
    numbers = number_boxes(picture)
    uses: dict[int, list[int]] = {}
    pictures = [picture]
    while pictures:
        one = pictures.pop()
        for wire in one.wires:
            target, source = numbers[one.boxes[wire.target]], numbers[one.boxes[wire.source]]
            if source not in uses.setdefault(target, []):
                uses[target].append(source)
        pictures += [inner for box in one.boxes for _, inner in box.inside]
    return [
        {
            "label": box.lines[0],
            "kind": box.kind,
            "facts": {"type": box.lines[1], **box.facts} if len(box.lines) > 1 else box.facts,
            "forward": numbers.get(box.forward) if box.forward is not None else None,
            "uses": uses.get(number, []),
            "svg": box.svg,
        }
        for box, number in numbers.items()
    ]
