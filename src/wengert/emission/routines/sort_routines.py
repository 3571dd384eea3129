"""Sorts of rows by NumPy's own functions at their addresses, whose order of equal elements is NumPy's."""

from __future__ import annotations

import numpy as np

from wengert.emission.instructions import in_memory
from wengert.emission.routines.matrix_problems import Problems
from wengert.emission.routines.matrix_routines import kernel_of_each
from wengert.native.functions import NativeFunction, external
from wengert.native.loader import SORT
from wengert.native.row_pool import move_bytes
from wengert.native.structs import I8, I32, I64, POINTER
from wengert.native.values import Value
from wengert.support.records import NamedTuple

SORTS = "sorts"
"""What the names of these kernels begin with: "sorts.argsort.stable.float64"."""
ROUTINES = ("sort", "argsort", "ranks")
"""What is given of each row: its elements in order, their places before, and the places that they go to."""


class StridedRow(NamedTuple):
    """Be a row in memory: the address of its first element, and elements from one to the next."""

    first: Value
    step: Value


class SortProblem:
    """Be the rows of a problem, each of which is sorted by itself.

    Attributes:
        b: writes the function.
        size: elements of a row.
        kind, dtype: of the sort, and of the elements.
        failed: the address of the truth that there was no memory.
        room: where there is room for a row, and for places, if rows have gaps.
    """

    def __init__(self, problems: Problems, kind: str, dtype: str) -> None:
        self.problems, self.b, self.kind, self.dtype = problems, problems.b, kind, dtype
        self.size = problems.fields.get("size")
        self.stored = in_memory(np.dtype(dtype))
        self.failed = problems.addresses.at(2).load().to(I8)
        self.room = problems.work.to(self.stored)
        self.places = problems.work.at(problems.fields.get("space")).to(I64)

    def call(self, what: str, kind: str, *arguments: Value) -> None:
        """Call one of NumPy's functions."""
        name = f"{SORT}{what}_{kind}_{self.dtype}"
        function = external(name, I32, *[POINTER] * len(arguments), I64, POINTER)
        nothing = self.b.constant(POINTER, None)
        found = self.b.call(function, *[x.as_address() for x in arguments], self.size, nothing)
        with self.b.when(found < 0):
            self.failed.store(1)

    def copy(self, target: StridedRow, source: StridedRow) -> None:
        """Copy a row."""
        side_by_side = target.step.equals(1) & source.step.equals(1)
        with self.b.when(side_by_side) as gaps:
            size = self.size * np.dtype(self.dtype).itemsize
            self.b.do(move_bytes, target.first.as_address(), source.first.as_address(), size)
        with gaps, self.b.loop(self.size) as cells:
            i = cells.index
            target.first.at(i * target.step).store(source.first.at(i * source.step).load())

    def without_gaps(self, row: StridedRow, room: Value) -> Value:
        """Return where a row is that has no gaps: where it is, or room for it."""
        return self.b.select(row.step.equals(1), row.first, room)

    def sort(self, source: StridedRow, result: StridedRow) -> None:
        """Write the elements of a row in order."""
        one = self.b.constant(I64, 1)
        place = StridedRow(self.without_gaps(result, self.room), one)
        self.copy(place, source)
        self.call("sort", self.kind, place.first)
        with self.b.when(result.step.differs(1)):
            self.copy(result, place)

    def order(self, source: StridedRow, places: Value) -> None:
        """Write where the elements of a row in order were before.

        The quick sort of floating-point numbers takes a sixth of the time of the stable one, which only orders
        elements otherwise that are equal, or are no numbers.
        """
        b, one = self.b, self.b.constant(I64, 1)
        row = StridedRow(self.without_gaps(source, self.room), one)
        with b.when(source.step.differs(1)):
            self.copy(row, source)
        is_number = self.dtype.startswith("float")
        self.sort_places("quick" if is_number else self.kind, row.first, places)
        if is_number and self.kind != "quick":
            with b.when(self.ascends(row.first, places).equals(0)):
                self.sort_places(self.kind, row.first, places)

    def sort_places(self, kind: str, row: Value, places: Value) -> None:
        """Sort the places of a row's elements."""
        with self.b.loop(self.size) as cells:
            places.at(cells.index).store(cells.index)
        self.call("argsort", kind, row, places)

    def ascends(self, row: Value, places: Value) -> Value:
        """Return whether each element of a row is less than the next one in an order."""
        b = self.b
        with b.loop(self.size - 1, carry=[b.constant(I64, 1)]) as cells:
            x, y = (row.at(places.at(cells.index + n).load()).load() for n in (0, 1))
            cells.next(b.select(b.compare("olt", x, y), cells.values[0], 0))
        return cells.results[0]

    def argsort(self, source: StridedRow, result: StridedRow) -> None:
        """Write where the elements of a row in order were before."""
        places = self.without_gaps(result, self.places)
        self.order(source, places)
        with self.b.when(result.step.differs(1)), self.b.loop(self.size) as cells:
            result.first.at(cells.index * result.step).store(places.at(cells.index).load())

    def ranks(self, source: StridedRow, result: StridedRow) -> None:
        """Write to which places the elements of a row go."""
        self.order(source, self.places)
        with self.b.loop(self.size) as cells:
            result.first.at(self.places.at(cells.index).load() * result.step).store(cells.index)

    def sort_all(self, routine: str, index: Value) -> None:
        """Sort the rows of one problem."""
        result = self.stored if routine == "sort" else I64
        matrices = self.problems.matrices((self.stored, result), index)
        with self.b.loop(self.problems.fields.get("rows")) as rows:
            lines = [StridedRow(x.first.at(rows.index * x.row), x.column) for x in matrices]
            getattr(self, routine)(*lines)


def sort_kernel(name: str) -> NativeFunction:
    """Return the kernel of a name: "sorts.", the routine, ".", the kind, "." and the dtype."""
    _, routine, kind, dtype = name.split(".")
    return kernel_of_each(name, 2, lambda problems, index: SortProblem(problems, kind, dtype).sort_all(routine, index))
