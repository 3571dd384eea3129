"""Pictures, as notebooks show them and files hold them."""

from __future__ import annotations

import os
from pathlib import Path

from wengert.errors import UsageError
from wengert.pictures.boxes import Diagram
from wengert.support.hints import hint_attributes

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
        from wengert.pictures.svg import as_svg

        return as_svg(self)

    def to_html(self) -> str:
        """Return a page to pan, zoom, fold and click in: the text of an `.html` file that needs nothing else."""
        from wengert.pictures.svg import as_page

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
