"""Searches of sorted rows: near where the last one ended first, and by halves where that is not it.

Queries that are sorted, too, end near each other: NumPy begins with the last interval for the same reason. What is
found does not depend on it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wengert.emission.instructions import Case, from_memory, instructions_of
from wengert.kernel.kernel import Buffer, Operation
from wengert.native.builder import Builder
from wengert.native.engine import Target
from wengert.native.structs import BOOL, I64, VectorType, like
from wengert.native.values import Value
from wengert.support.records import FieldRecord


class RowSearch(FieldRecord):
    """Write how many elements of a row stand before some numbers; NaN comes last.

    Attributes:
        b: what the code is written with.
        operation: `search_left`, which counts what is less, or `search_right`, which counts what is not greater.
        row: the buffer that is searched, all of it.
        first: the address of its first element.
        target: the processor.
        x: a number, or a vector of them.
        last: the address of where the last search ended.
    """

    b: Builder
    operation: Operation
    row: Buffer
    first: Value
    target: Target
    x: Value
    last: Value

    @property
    def lanes(self) -> int:
        """How many numbers are sought at once."""
        return self.x.type.count if isinstance(self.x.type, VectorType) else 1

    def write(self) -> Value:
        """Return the counts."""
        widest = 2 * self.lanes - 1
        windows = [window for window in sorted({min(3, widest), widest}) if self.row.size >= 2 * window]
        found = self.near(self.last.load(), windows)
        if windows:
            self.last.store(self.b.extract(found, self.lanes - 1) if self.lanes > 1 else found)
        return found

    def near(self, last: Value, windows: Sequence[int]) -> Value:
        """Return the counts, which may be within one of some windows behind where the last search ended."""
        if not windows:
            return self.by_halves()
        b, (window, *wider) = self.b, windows
        start = b.least(last, self.row.size - window)
        found, *_ = b.either(
            self.end_within(start, window),
            lambda: [self.one_by_one(start, window)],
            lambda: [self.near(last, wider)],
        )
        return found

    def one_by_one(self, start: Value, window: int) -> Value:
        """Return the counts by comparing with each element: a vector of one waits for no other, as gathers do."""
        b, found = self.b, self.spread(start)
        for step in range(window):
            found = b.select(self.is_before(self.element(start + step)), found + 1, found)
        return found

    def by_halves(self) -> Value:
        """Return the counts of all elements.

        The first comparison leaves as many elements as there are numbers of so many bits, which need no more looks at
        the end of the row.
        """
        b, size = self.b, self.row.size
        most = (1 << (size + 1).bit_length() - 1) - 1
        start = self.spread(b.constant(I64, 0))
        if most < size:
            is_late = self.is_before(self.element(size - most - 1))
            start = b.select(is_late, b.constant(start.type, size - most), start)
        return self.count_from(start, most)

    def element(self, place: Value | int) -> Value:
        """Return an element of the row for each of what is sought."""
        return self.spread(from_memory(self.first.at(place).load(), self.row.dtype))

    def count_from(self, start: Value, most: int) -> Value:
        """Return the counts, which are some numbers and up to so many, all bits of them, more."""
        found, step = start, (most + 1) // 2
        while step:
            place = self.first.at(step - 1)
            element = place.gather(found, self.all) if self.lanes > 1 else place.at(found).load()
            before = self.is_before(from_memory(element, self.row.dtype))
            found = self.b.select(before, found + step, found)
            step //= 2
        return found

    def end_within(self, start: Value, window: int) -> Value:
        """Return whether all counts are some number, or up to so many more."""
        b, size = self.b, self.row.size
        found = self.all
        for place, outside, is_low in ((start - 1, start < 1, True), (start + window, start >= size - window, False)):
            before = self.is_before(self.element(b.select(outside, start, place)))
            found = found & (self.spread(outside) | (before if is_low else b.binary("xor", before, self.all)))
        return b.intrinsic("vector.reduce.and", BOOL, found, of=(found.type,)) if self.lanes > 1 else found

    @property
    def all(self) -> Value:
        """The condition that holds for all numbers."""
        return self.b.constant(like(self.x.type, BOOL), 1)

    def is_before(self, element: Value) -> Value:
        """Return whether elements stand before the numbers."""
        b, x, right = self.b, self.x, self.operation.name == "search_right"
        case = Case(self.row.dtype, np.dtype(bool), self.target)
        found = instructions_of("less_equal" if right else "less")(b, case, element, x)
        if self.row.dtype.kind != "f":
            return found
        no_number = b.compare("ne", x, x)
        return found | (no_number if right else no_number & b.compare("eq", element, element))

    def spread(self, value: Value) -> Value:
        """Return a number for each of those that are sought."""
        return self.b.spread(value, self.lanes) if self.lanes > 1 else value
