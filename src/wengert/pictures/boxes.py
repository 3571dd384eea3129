"""Boxes, wires between them, and boxes inside of boxes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from wengert.support.records import NamedTuple


class Wire(NamedTuple):
    """Lead from a result of a box to an operand of a later one; boxes are counted as the picture lists them."""

    source: int
    result: int
    target: int
    operand: int


class Box:
    """Show one operation, or what goes in or comes out.

    Attributes:
        kind: "input", "equation", "derived" (an equation of a backward pass) or "output".
        lines: what is written on it.
        facts: what else there is to know, by name.
        operands, results: how many wires may come and go, each at a place of its own.
        inside: titles and pictures of its sub-graphs.
        svg: pictures of what belongs to it, which a page shows beside the facts.
        forward: the box of the operation that this one belongs to the derivative of, if that is known.
    """

    __slots__ = ("facts", "forward", "inside", "kind", "lines", "operands", "results", "svg")

    def __init__(
        self,
        kind: str,
        lines: Sequence[str],
        facts: dict[str, str],
        operands: int = 0,
        results: int = 1,
        inside: Sequence[tuple[str, Diagram]] = (),
        svg: str = "",
    ) -> None:
        self.kind = kind
        self.lines = lines
        self.facts = facts
        self.operands = operands
        self.results = results
        self.inside = inside
        self.svg = svg
        self.forward: Box | None = None


class Diagram:
    """Hold boxes, each after those that it uses, and wires."""

    def __init__(self, title: str, boxes: Sequence[Box], wires: Sequence[Wire]) -> None:
        self.title = title
        self.boxes = boxes
        self.wires = wires

    def every_box(self) -> Iterator[Box]:
        """Yield the boxes, each followed by those inside of it."""
        for box in self.boxes:
            yield box
            for _, diagram in box.inside:
                yield from diagram.every_box()
