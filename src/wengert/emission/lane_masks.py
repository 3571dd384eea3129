"""Where along the lanes a body stands, and which of its lanes are there: tails and guarded ranges have masks.

A loop over lanes has a clean body, for several vectors of which all lanes are there and all guards decided, and at most
one with masks, for one vector; or where masks cost nothing that one alone, for several. A loop of few vectors is
written out instead; what its masks are is known then.
"""

from __future__ import annotations

from wengert.native.builder import Builder
from wengert.native.structs import BOOL, I32, element, numeric
from wengert.native.values import Value

Condition = Value | bool
"""Whether something holds, for a point or for each lane; known while the code is written, or when it runs."""

FEW = 1 << 30
"""Places along a dimension up to which they, and those of a step beyond, are numbers of 32 bits."""


class Clean:
    """Lanes that are all there.

    Attributes:
        start: the first one.
        width: how many a vector has.
        units: how many vectors.
    """

    def __init__(self, start: Value | int, width: int, units: int) -> None:
        self.start, self.width, self.units = start, width, units

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        return True

    def each(self, high: int, unit: int, count: int) -> Condition:
        """Return which numbers of a vector are there of which each lane has so many."""
        return True

    def one(self, high: int, lane: int) -> Condition:
        """Return whether a lane of a step is there."""
        return True

    @property
    def is_masked(self) -> bool:
        """Whether lanes may be missing and guards may be undecided."""
        return False


class MaskedLanes(Clean):
    """Lanes of which some may be missing.

    Attributes:
        extent: how many there are along the dimension.
    """

    def __init__(self, start: Value | int, width: int, units: int, extent: int) -> None:
        super().__init__(start, width, units)
        self.extent = extent
        self.masks: dict[tuple[str, int, int], Value] = {}
        self.starts: dict[int, Value] = {}

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        first = unit * self.width
        found: Condition = self.compare_lanes("slt", high - first)
        return all_of(found, self.compare_lanes("sge", low - first)) if low > 0 else found

    def each(self, high: int, unit: int, count: int) -> Condition:
        """Return which numbers of a vector are there of which each lane has so many."""
        return self.compare_lanes("slt", high - unit * self.width, count)

    def one(self, high: int, lane: int) -> Condition:
        """Return whether a lane of a step is there."""
        assert isinstance(self.start, Value)
        return self.start < high - lane

    def compare_lanes(self, how: str, limit: int, each: int = 1) -> Value:
        """Return which lanes of the first vector, each for so many numbers, stand in a relation to a limit."""
        if (how, limit, each) not in self.masks:
            starts = self.start_of_each(each)
            lanes = [lane // each for lane in range(self.width * each)]
            limits = starts.b.numbers(numeric(element(starts.type)), [limit - lane for lane in lanes])
            self.masks[how, limit, each] = starts.b.compare(how, starts, limits)
        return self.masks[how, limit, each]

    def start_of_each(self, each: int) -> Value:
        """Return the first place, for each lane, in as few bits as all places have."""
        if each not in self.starts:
            assert isinstance(self.start, Value)
            b = self.start.b
            start = b.convert("trunc", self.start, I32) if self.extent < FEW else self.start
            self.starts[each] = b.spread(start, self.width * each)
        return self.starts[each]

    @property
    def is_masked(self) -> bool:
        """Whether lanes may be missing and guards may be undecided."""
        return True


class WrittenOut(Clean):
    """Lanes of which it is known which are there."""

    def __init__(self, start: Value | int, width: int, units: int, b: Builder) -> None:
        super().__init__(start, width, units)
        self.b = b
        self.masks: dict[tuple[int, int, int, int], Condition] = {}

    def within(self, low: int, high: int, unit: int) -> Condition:
        """Return which lanes of a vector are in a range."""
        return self.lanes_within(low, high, unit)

    def each(self, high: int, unit: int, count: int) -> Condition:
        """Return which numbers of a vector are there of which each lane has so many."""
        return self.lanes_within(0, high, unit, count)

    def one(self, high: int, lane: int) -> Condition:
        """Return whether a lane of a step is there."""
        assert isinstance(self.start, int)
        return self.start + lane < high

    def lanes_within(self, low: int, high: int, unit: int, each: int = 1) -> Condition:
        """Return which lanes of a vector, each for so many numbers, are in a range; find it once."""
        key = low, high, unit, each
        if key not in self.masks:
            self.masks[key] = self.found_within(*key)
        return self.masks[key]

    def found_within(self, low: int, high: int, unit: int, each: int) -> Condition:
        """Find which lanes of a vector, each for so many numbers, are in a range."""
        assert isinstance(self.start, int)
        first = self.start + unit * self.width
        there = [low <= first + lane // each < high for lane in range(self.width * each)]
        if all(there):
            return True
        return self.b.numbers(BOOL, there) if any(there) else False

    @property
    def is_masked(self) -> bool:
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


def select_where(condition: Condition, x: Value, y: Value) -> Value:
    """Return one value where a condition holds, another elsewhere."""
    if isinstance(condition, bool):
        return x if condition else y
    return x.b.select(condition, x, y)
