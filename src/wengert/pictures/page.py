"""Pictures as a page that needs no network: pan, zoom, fold, find, and click a box to read what there is to know."""

from __future__ import annotations

import json
from html import escape
from pathlib import Path
from typing import Any

from wengert.pictures.boxes import Diagram
from wengert.pictures.svg import as_svg, number_boxes

FOLDER = Path(__file__).parent


def as_page(picture: Diagram) -> str:
    """Return a picture as the text of an `.html` file."""
    parts = {
        "TITLE": escape(picture.title),
        "STYLE": (FOLDER / "page.css").read_text(encoding="utf-8"),
        "PICTURE": as_svg(picture, hints=False),
        "FACTS": as_script(box_facts(picture)),
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
        }
        for box, number in numbers.items()
    ]


def as_script(value: Any) -> str:
    """Return a value as JSON that may stand in a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
