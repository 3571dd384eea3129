"""Dask's collections as partitions: lists of delayed values and futures, arrays, data frames; and its clients.

They are known by the names of their modules, so that nothing of Dask is imported for other data.
"""

from __future__ import annotations

import importlib
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.distributed.sources import NAME, NUMBERS, PartitionSource, Rows, as_rows, partition_name, run_of_rows
from wengert.errors import DtypeError, ShapeError, UsageError


def is_of_dask(value: Any) -> bool:
    """Tell whether a value is a collection or a future of Dask's."""
    return any(base.__module__.partition(".")[0] in PACKAGES for base in type(value).__mro__)


PACKAGES = frozenset({"dask", "distributed", "dask_expr"})


def is_future(value: Any) -> bool:
    """Tell whether a value is a future of Dask's."""
    return is_of_dask(value) and "Future" in [base.__name__ for base in type(value).__mro__]


def is_collection(value: Any) -> bool:
    """Tell whether a value is an array, a data frame or a column of Dask's: delayed values have every attribute."""
    return is_of_dask(value) and "npartitions" in dir(type(value))


class DaskSource:
    """Have partitions that Dask computes: here by its own choice of a scheduler, on workers as tasks.

    Args:
        items: for each partition what Dask computes, one value for each array: delayed values or futures.
        lengths: the number of rows of each; None if they are not known.
        what: what errors call a partition before its number.
    """

    is_resident = False

    def __init__(self, items: Sequence[Sequence[Any]], lengths: Sequence[int] | None, what: str) -> None:
        self.items, self.lengths, self.what = dict(enumerate(items)), lengths, what
        self.count = len(items)

    def read(self, number: int) -> Rows:
        """Return what Dask computes for a partition, unless it has done so."""
        item = self.items[number]
        if not self.is_resident:
            import dask

            computed = iter(dask.compute(*[x for x in item if not is_future(x)]))
            item = [x.result() if is_future(x) else next(computed) for x in item]
        return as_rows(flat_parts(item), partition_name(self, number))

    def name(self, number: int) -> str:
        """Return which of them it is."""
        return f"{self.what} {number}"

    def part(self, _start: int, _stop: int) -> DaskSource:
        """Return the names of partitions alone: whoever gets them gets what Dask computed, too."""
        return DaskSource([()] * self.count, self.lengths, self.what)

    def hold(self, start: int, items: Sequence[Sequence[Any]]) -> None:
        """Have what Dask computed of the partitions from one on."""
        numbers = range(start, start + len(items))
        self.items = {i: as_rows(flat_parts(x), self.name(i)) for i, x in zip(numbers, items, strict=True)}
        self.is_resident = True

    def split(self, pieces: int) -> DaskSource:
        """Return each partition in as many runs of rows, cut by Dask."""
        import dask

        cut = dask.delayed(run_of_one, pure=True)
        items = [[cut(x, k, pieces) for x in item] for item in self.items.values() for k in range(pieces)]
        return DaskSource(items, None, f"1/{pieces} of {self.what}")


def run_of_one(value: Any, piece: int, pieces: int) -> Any:
    """Return one of as many runs of the rows of one array, or of several in a tuple."""
    rows = run_of_rows(as_rows(value, "a partition"), piece, pieces)
    return rows if isinstance(value, tuple) else rows[0]


def flat_parts(parts: Sequence[Any]) -> Any:
    """Return what was computed for a partition: the one value, or a tuple of one for each array."""
    return parts[0] if len(parts) == 1 else tuple(parts)


def source_of(data: Any, columns: Any) -> PartitionSource | None:
    """Return data of Dask's as a source; None for other data."""
    if isinstance(data, list):
        if not data or not all(is_of_dask(x) for x in data):
            return None
        return DaskSource([(x,) for x in data], None, "item")
    collections = data if isinstance(data, tuple) else (data,)
    if not collections or not any(map(is_of_dask, collections)):
        return None
    for x in collections:
        if not is_collection(x):
            given = f"{shown(x)} among Dask's arrays and data frames"
            action = "Pass partitions of delayed values or futures in a list; put arrays into dask.array.from_array"
            raise UsageError(NAME, given, "arrays and data frames of Dask alone are needed", action)
    if columns is None and len(collections) == 1 and is_frame(collections[0]):
        columns = list(collections[0].columns)
    if columns is not None:
        return joined_source([parts for one in collections for parts in column_parts(one, columns)], None, "partition")
    for x in collections:
        require_numbers(x)
    return align_partitions(collections)


def is_frame(value: Any) -> bool:
    """Tell whether a collection is a data frame with columns; a column has this attribute, too."""
    return hasattr(value, "columns") and value.ndim > 1


def column_parts(frame: Any, columns: Any) -> list[list[Any]]:
    """Return the partitions of the columns of a data frame that are asked for: vectors for names, tables for lists.

    All are of the same partitions of the frame: Dask reads more files at once where fewer columns are asked for.
    """
    if not is_frame(frame) or not isinstance(columns, list | tuple):
        given = f"columns of a {type(frame).__name__}"
        raise UsageError(NAME, given, "a data frame, and a list of names, are needed", "Leave columns out")
    asked = [list(c) if isinstance(c, list | tuple) else c for c in columns]
    known, names = list(frame.columns), [n for c in asked for n in (c if isinstance(c, list) else [c])]
    for name in names:
        if name not in known:
            needed = f"one of {', '.join(map(repr, known[:20]))} is needed"
            raise UsageError(NAME, f"column {name!r}", needed, "Correct the name")
    table = frame[list(dict.fromkeys(names))]
    require_numbers(table)
    pick = importlib.import_module("dask").delayed(operator.getitem, pure=True)
    parts = table.to_delayed()
    return [[pick(part, c) for part in parts] for c in asked]


def require_numbers(collection: Any) -> None:
    """Raise a DtypeError about columns of a data frame that hold objects or texts."""
    dtypes = (
        collection.dtypes.items() if is_frame(collection) else [(getattr(collection, "name", ""), collection.dtype)]
    )
    for name, dtype in dtypes:
        if dtype.kind not in NUMBERS:
            given = f"column {name!r} of dtype {dtype}"
            action = "Choose columns=[...], or convert it: .astype(float), or the numbers of categories (.cat.codes)"
            raise DtypeError(NAME, given, "columns of numbers are needed", action)


def align_partitions(collections: Sequence[Any]) -> DaskSource:
    """Return a source of several collections whose partitions belong together."""
    lengths: tuple[int, ...] | None = None
    arrays = [x for x in collections if hasattr(x, "chunks")]
    if arrays:
        lengths = tuple(chunks_of(arrays[0])[0])
        for x in arrays[1:]:
            if sum(chunks_of(x)[0]) != sum(lengths):
                given = f"arrays of {sum(lengths)} and {sum(x.chunks[0])} rows"
                raise ShapeError(NAME, given, "as many rows in each are needed", "Leave out what has no partner")
    columns = []
    for x in collections:
        if hasattr(x, "chunks"):
            x = x.rechunk({0: lengths, **dict.fromkeys(range(1, x.ndim), -1)})
        columns.append(list(np.ravel(np.asarray(x.to_delayed(), dtype=object))))
    return joined_source(columns, lengths, "chunk" if arrays else "partition")


def joined_source(columns: Sequence[Sequence[Any]], lengths: Sequence[int] | None, what: str) -> DaskSource:
    """Return a source of delayed values whose partitions belong together, some for each array."""
    counts = {len(column) for column in columns}
    if len(counts) > 1:
        given = f"collections of {' and '.join(map(str, sorted(counts)))} partitions"
        action = (
            "Pass one data frame and columns=[...], repartition data frames alike, or turn them into arrays:"
            " frame.to_dask_array(lengths=True)"
        )
        raise ShapeError(NAME, given, "as many in each are needed", action)
    return DaskSource(list(zip(*columns, strict=True)), lengths, what)


def chunks_of(array: Any) -> Any:
    """Return the chunk sizes of an array of Dask's, which must be known."""
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        action = "Call .compute_chunk_sizes(), or to_dask_array(lengths=True) of a data frame"
        raise ShapeError(NAME, "an array of Dask's with unknown chunk sizes", "known ones are needed", action)
    return array.chunks


def require_client(name: str, client: Any) -> None:
    """Raise a DtypeError unless something is a Dask client."""
    if not callable(getattr(client, "submit", None)) or not callable(getattr(client, "scatter", None)):
        given = f"{shown(client)} for client"
        raise DtypeError(name, given, "a dask.distributed.Client is needed", "Leave it out for threads of this process")
    if getattr(client, "asynchronous", False):
        given = "an asynchronous client"
        raise UsageError(name, given, "one that waits is needed", "Make it with asynchronous=False")
