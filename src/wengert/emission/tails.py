"""Where along the lanes a body stands, and which of its lanes are there: tails and guarded ranges have masks.

A loop over lanes has a clean body, for several vectors of which all lanes are there and all guards decided, and at most
one with masks, for one vector. A loop of few vectors is written out instead; what its masks are is known then.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from wengert.native.builder import Builder, Value
from wengert.native.structs import BOOL, I32, I64

__all__ = ["Clean", "Condition", "Lanes", "Masked", "WrittenOut", "all_of", "chosen"]

Condition = Value | bool
"""Whether something holds, for a point or for each lane; known while the code is written, or when it runs."""


@dataclass
class Clean:
    """Lanes that are all there.

    Attributes:
        start: the first one.
        width: how many a vector has.
        units: how many vectors.
    """

    start: Value | int
    width: int
    units: int

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        return True

    @property
    def masked(self) -> bool:
        """Whether lanes may be missing and guards may be undecided."""
        return False


@dataclass
class Masked(Clean):
    """Lanes of which some may be missing: those of one vector."""

    masks: dict[tuple[str, int], Value] = field(default_factory=dict)

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        assert isinstance(self.start, Value)
        found: Condition = self.compared("slt", high)
        return all_of(found, self.compared("sge", low)) if low > 0 else found

    def compared(self, how: str, limit: int) -> Value:
        """Return which lanes stand in a relation to a limit: each vector of lanes is compared with it once."""
        if (how, limit) not in self.masks:
            assert isinstance(self.start, Value)
            b = self.start.b
            place = b.binary("sub", b.constant(I64, limit), self.start)
            place = b.least(b.select(place < 0, b.constant(I64, 0), place), self.width)
            steps = b.numbers(I32, range(self.width))
            places = b.spread(b.convert("trunc", place, I32), self.width)
            self.masks[how, limit] = b.compare(how, steps, places)
        return self.masks[how, limit]

    @property
    def masked(self) -> bool:
        """Whether lanes may be missing and guards may be undecided."""
        return True


@dataclass
class WrittenOut(Clean):
    """Lanes of which it is known which are there."""

    b: Builder

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        assert isinstance(self.start, int)
        first = self.start + unit * self.width
        there = [low <= first + lane < high for lane in range(self.width)]
        if all(there):
            return True
        return self.b.numbers(BOOL, there) if any(there) else False

    @property
    def masked(self) -> bool:
        """Whether lanes may be missing and guards may be undecided."""
        return True


Lanes = Clean


def all_of(x: Condition, y: Condition) -> Condition:
    """Return where two conditions hold; that of a point holds for all lanes of it or for none."""
    if isinstance(x, bool) or isinstance(y, bool):
        known, other = (x, y) if isinstance(x, bool) else (y, x)
        return other if known else False
    b = x.b
    if x.type == y.type:
        return x & y
    flag, mask = (x, y) if x.type is BOOL else (y, x)
    return b.select(flag, mask, b.constant(mask.type, 0))


def chosen(condition: Condition, x: Value, y: Value) -> Value:
    """Return one value where a condition holds, another elsewhere."""
    if isinstance(condition, bool):
        return x if condition else y
    return x.b.select(condition, x, y)
