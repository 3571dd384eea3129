"""Where partitions come from: a source reads any of them at any time, in any process that it is sent to."""

from __future__ import annotations

import copy
import itertools
import os
import sys
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.values.tensor import Tensor, raw
from wengert.errors import DtypeError, ShapeError, UsageError

NAME = "distributed.partitions"
NUMBERS = "biufcmM"
"""Kinds of dtypes of rows."""
Array = np.ndarray[Any, Any]
Rows = tuple[Array, ...]


class PartitionSource(Protocol):
    """Read numbered partitions of rows.

    Attributes:
        count: how many there are.
        lengths: how many rows each has; None if that is not known before they are read.
        is_resident: whether reading costs nothing, as of arrays that are in this process's memory.
    """

    count: int
    lengths: Sequence[int] | None
    is_resident: bool

    def read(self, number: int) -> Rows:
        """Return the arrays of a partition."""

    def name(self, number: int) -> str:
        """Return where a partition is from."""

    def part(self, start: int, stop: int) -> PartitionSource:
        """Return a source that is sent to who reads some of the partitions alone, by the numbers that they have."""


class ArraySource:
    """Cut arrays of this process into runs of rows.

    Args:
        arrays: of as many rows each; memory maps of files are read anew for each partition, elsewhere, too.
        bounds: where runs begin and, at the end, where the last one ends.
        base: how many rows stood before those of the arrays.
    """

    def __init__(self, arrays: Sequence[Any], bounds: Sequence[int], base: int = 0) -> None:
        self.arrays: tuple[Any, ...] = tuple(MappedFile(x) if is_mapped_file(x) else x for x in arrays)
        self.bounds, self.base, self.count = bounds, base, len(bounds) - 1
        self.lengths: Sequence[int] | None = tuple(b - a for a, b in itertools.pairwise(bounds))
        self.is_resident = all(type(x) is np.ndarray and x.flags.c_contiguous for x in self.arrays)

    def read(self, number: int) -> Rows:
        """Return views of the arrays, or what is read from their files."""
        start, stop = self.bounds[number] - self.base, self.bounds[number + 1] - self.base
        return tuple([in_one_layout(x[start:stop]) for x in self.arrays])

    def name(self, number: int) -> str:
        """Return which rows they are, and the names of files."""
        files = ", ".join(x.path for x in self.arrays if type(x) is MappedFile)
        return f"rows {self.bounds[number]} to {self.bounds[number + 1]}" + (f" of {files}" if files else "")

    def split(self, pieces: int) -> ArraySource:
        """Return a source of the same rows whose runs are cut into pieces."""
        finer = [[a + x for x in even_bounds(b - a, pieces)[1:]] for a, b in itertools.pairwise(self.bounds)]
        return ArraySource(self.arrays, [self.bounds[0], *itertools.chain(*finer)], self.base)

    def part(self, start: int, stop: int) -> ArraySource:
        """Return the rows of some partitions; of files their names."""
        if any(type(x) is MappedFile for x in self.arrays):
            return self
        low, high = self.bounds[start], self.bounds[stop]
        return ArraySource([x[low - self.base : high - self.base] for x in self.arrays], self.bounds, low)


class MappedFile:
    """Read rows of an array that lies in a file, of which NumPy made a memory map.

    What was read is no part of the process's memory any more when nobody has it, unlike pages of a map, and a disk that
    cannot be read is an error, not a signal. The file stays open, since opening it for each 2 MB takes a tenth of a
    pass; the object can be sent to other processes that see the file.
    """

    def __init__(self, array: Any) -> None:
        self.path, self.offset = str(array.filename), offset_in_file(array)
        self.shape, self.dtype = array.shape, array.dtype
        self.size = array.dtype.itemsize * int(np.prod(array.shape[1:]))
        self.descriptor: int | None = None
        self.spare: deque[Array] = deque(maxlen=SPARE)

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "descriptor": None, "spare": deque(maxlen=SPARE)}

    def open(self) -> int:
        """Return the descriptor of the file, which is closed with this object."""
        if self.descriptor is None:
            self.descriptor = os.open(self.path, os.O_RDONLY)
            weakref.finalize(self, os.close, self.descriptor)
        return self.descriptor

    def room(self, count: int) -> Array:
        """Return memory for so many rows: that of rows which were read before, and nobody has any more.

        The system's allocator gives such memory back in about half of all processes; to get it again, page by page,
        doubles the time of reading from the system's cache.
        """
        for k in reversed(range(len(self.spare))):
            # references: that of the queue, and that of this call
            if len(self.spare[k]) >= count and sys.getrefcount(self.spare[k]) == 2:
                return self.spare[k][:count]
        found = np.empty((count, *self.shape[1:]), self.dtype)
        self.spare.append(found)
        return found

    def __getitem__(self, rows: slice) -> Array:
        """Return a slice of the file's rows, read into memory of its own."""
        with READING:
            file, found = self.open(), self.room(rows.stop - rows.start)
        rest: Any = found.view(np.uint8)
        at = self.offset + rows.start * self.size
        while rest.size:
            count = os.preadv(file, [rest], at)
            if count == rest.size:
                break
            if not count:
                raise EOFError(f"{self.path}: {rest.size} bytes are missing at its end")
            rest, at = rest.reshape(-1)[count:], at + count
        return found


READING = threading.Lock()
"""Held while a file is opened, and memory chosen: threads share the objects that read files."""
SPARE = 8
"""Of how many partitions of a file memory is kept, if they were in memory together."""


def is_mapped_file(array: Any) -> bool:
    """Tell whether an array is a map of a file, or a part of one whose rows lie there one after the other."""
    return isinstance(array, np.memmap) and array.filename is not None and array.flags.c_contiguous and array.ndim > 0


def offset_in_file(array: Any) -> int:
    """Return at which byte of its file a map begins; views have the offset of the map that they are of."""
    root: Any = array
    while isinstance(root.base, np.memmap):
        root = root.base
    return int(root.offset) + address(array) - address(root)


def address(array: Any) -> int:
    """Return where in memory an array begins."""
    return int(array.__array_interface__["data"][0])


class ReadSource:
    """Have partitions read by a function.

    Args:
        count: how many there are.
        read: of the number of a partition; returns an array, or a tuple of arrays.
        place: of the number of a partition; returns what errors call it.
    """

    is_resident = False
    lengths: Sequence[int] | None = None

    def __init__(self, count: int, read: Callable[[int], Any], place: Callable[[int], str] | None) -> None:
        self.count, self.function, self.place = count, read, place

    def read(self, number: int) -> Rows:
        """Return the arrays that the function returns."""
        return as_rows(self.function(number), partition_name(self, number))

    def name(self, number: int) -> str:
        """Return what the user calls it, or the function and the number."""
        if self.place is not None:
            return str(self.place(number))
        return f"{getattr(self.function, '__qualname__', type(self.function).__qualname__)}({number})"

    def part(self, _start: int, _stop: int) -> ReadSource:
        """Return this source, which is small."""
        return self


class ListSource:
    """Have partitions in a list: arrays, or tuples of arrays."""

    is_resident = True

    def __init__(self, items: Sequence[Any]) -> None:
        self.items = {i: as_rows(item, self.name(i)) for i, item in enumerate(items)}
        self.count = len(items)
        self.lengths: Sequence[int] | None = tuple(map(row_count, self.items.values()))

    def read(self, number: int) -> Rows:
        """Return the arrays of an item."""
        return self.items[number]

    def name(self, number: int) -> str:
        """Return which item it is."""
        return f"item {number} of the list"

    def part(self, start: int, stop: int) -> ListSource:
        """Return a source of the items from one number to another."""
        found = copy.copy(self)
        found.items = {i: self.items[i] for i in range(start, stop)}
        return found


class SplitSource:
    """Cut each partition of another source into as many runs of rows."""

    def __init__(self, source: PartitionSource, pieces: int) -> None:
        self.source, self.pieces, self.count = source, pieces, source.count * pieces
        self.is_resident, self.lengths = source.is_resident, None
        if source.lengths is not None:
            bounds = [even_bounds(rows, pieces) for rows in source.lengths]
            self.lengths = tuple(b - a for run in bounds for a, b in itertools.pairwise(run))

    lengths: Sequence[int] | None

    def read(self, number: int) -> Rows:
        """Return a run of rows of a partition."""
        whole, piece = divmod(number, self.pieces)
        return run_of_rows(self.source.read(whole), piece, self.pieces)

    def name(self, number: int) -> str:
        """Return which run of which partition it is."""
        return f"run {number % self.pieces} of {self.pieces} of {self.source.name(number // self.pieces)}"

    def part(self, start: int, stop: int) -> SplitSource:
        """Return runs of the partitions that some runs are of."""
        return SplitSource(self.source.part(start // self.pieces, -(-stop // self.pieces)), self.pieces)


def run_of_rows(rows: Rows, piece: int, pieces: int) -> Rows:
    """Return one of as many runs of the rows of a partition."""
    start, stop = even_bounds(row_count(rows), pieces)[piece : piece + 2]
    return tuple([x[start:stop] for x in rows])


# What is read


def partition_name(source: PartitionSource, number: int) -> str:
    """Return what errors call a partition: its number, and where it is from."""
    return f"partition {number} of {source.count} ({source.name(number)})"


def as_rows(value: Any, place: str) -> Rows:
    """Return what a source gave for a partition as a tuple of arrays with as many rows each.

    Raises:
        DtypeError: something is no array of numbers.
        ShapeError: arrays have other numbers of rows.
    """
    items = value if isinstance(value, tuple) else (value,)
    arrays = tuple([as_array_of_rows(x, place) for x in items])
    counts = {len(x) for x in arrays}
    if len(counts) > 1:
        shapes = ", ".join(str(x.shape) for x in arrays)
        given = f"arrays of shapes {shapes} in {place}"
        raise ShapeError(NAME, given, "as many rows in each are needed", "Leave out what has no partner")
    if not arrays:
        raise UsageError(NAME, f"no arrays in {place}", "one or more are needed", "Return a tuple of arrays")
    return arrays


def as_array_of_rows(value: Any, place: str) -> Any:
    """Return an array, or a column or table of another library, as an ndarray of numbers."""
    named = value
    if type(value) is not np.ndarray:
        value = raw(value) if type(value) is Tensor else value
        if hasattr(value, "to_numpy"):
            value = value.to_numpy()
        try:
            value = np.asarray(value)
        except (TypeError, ValueError):
            value = np.asarray(None)
    if value.dtype.kind not in NUMBERS or not value.ndim:
        what = "objects" if value.dtype.kind == "O" and value.ndim else f"dtype {value.dtype}"
        given = f"an array of {what} in {place}" if value.ndim else f"{shown(value.item())} in {place}"
        needed = "arrays of numbers, with rows along their first axis, are needed"
        raise DtypeError(NAME, given, needed, remedy_for(value.item() if not value.ndim else named))
    return in_one_layout(value)


def remedy_for(value: Any) -> str:
    """Return what to do about a value that is no array of rows."""
    if isinstance(value, str):
        return "Pass (count, read), where read(i) returns the arrays of file i"
    if isinstance(value, Mapping):
        return "Pass its arrays as a tuple, such as (x, y)"
    if callable(value):
        return "Pass (count, read), in this order"
    return "Convert columns with .astype(float), and texts to the numbers of their categories"


def in_one_layout(array: Array) -> Array:
    """Return an array as it lies in every process: in C order, and aligned, which what was received need not be.

    BLAS takes other ways, with other last bits, through other layouts.
    """
    flags = array.flags
    return array if flags.c_contiguous and flags.aligned else np.array(array, order="C")


def row_count(rows: Sequence[Any]) -> int:
    """Return how many rows arrays have."""
    return len(rows[0])


def byte_size(rows: Sequence[Any]) -> int:
    """Return how many bytes arrays have."""
    return sum(x.nbytes for x in rows)


def even_bounds(rows: int, count: int) -> list[int]:
    """Return where runs begin, and the last one ends, of which each has as many rows as the others, or one more."""
    return [rows * k // count for k in range(count + 1)]
