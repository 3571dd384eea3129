"""Numbered partitions of rows, which anyone can read again at any time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import as_whole, require_callable, require_flag
from wengert.distributed.batches import Batches
from wengert.distributed.dask_data import source_of
from wengert.distributed.faults import add_place
from wengert.distributed.sources import (
    NAME,
    ArraySource,
    ListSource,
    PartitionSource,
    ReadSource,
    Rows,
    SplitSource,
    as_rows,
    byte_size,
    even_bounds,
    is_mapped_file,
    partition_name,
    row_count,
)
from wengert.errors import UsageError
from wengert.support.caches import cached
from wengert.traces.grad_modes import byte_count

PARTITION = 1 << 21
"""Bytes of a partition of arrays of this process: its rows are read twice, and stay in a processor's cache between."""


class Partitions:
    """Be rows of data in numbered partitions; made by `partitions`.

    Attributes:
        count: how many partitions there are.
        lengths: the number of rows of each; None if they are not known before partitions are read.
    """

    def __init__(self, source: PartitionSource) -> None:
        self.source = source
        self.count = source.count
        self.lengths = source.lengths

    def __repr__(self) -> str:
        rows = "" if self.lengths is None else f" of {sum(self.lengths):,} rows"
        return f"<{self.count} partitions{rows}>"

    @cached
    def rows(self) -> int:
        """How many rows there are; where that is not known, all partitions are read once to count them."""
        lengths = self.lengths
        return sum(row_count(self.read(i)) for i in range(self.count)) if lengths is None else sum(lengths)

    def read(self, number: int) -> Rows:
        """Return the arrays of a partition.

        Args:
            number: of the partition, from 0 on.

        Returns:
            A tuple of ndarrays with as many rows each, along the first axis.

        Raises:
            DtypeError, ShapeError: what was read are no arrays of numbers with as many rows.

        >>> partitions(np.arange(6), count=3).read(1)
        (array([2, 3]),)
        """
        try:
            return self.source.read(number)
        except Exception as error:
            add_place(error, self.name(number))
            raise

    def name(self, number: int) -> str:
        """Return what errors call a partition: its number, and where it is from.

        >>> partitions(np.arange(6), count=3).name(1)
        'partition 1 of 3 (rows 2 to 4)'
        """
        return partition_name(self.source, number)

    def split(self, pieces: int) -> Partitions:
        """Return partitions of the same rows, each cut into pieces.

        Args:
            pieces: into how many runs of rows each partition is cut, as long as each other or by one row longer.

        >>> partitions(np.arange(6), count=2).split(3).read(4)
        (array([4]),)
        """
        count = as_whole(NAME, "pieces", pieces, 1)
        split = getattr(self.source, "split", None)
        return Partitions(SplitSource(self.source, count) if split is None else split(count))

    def batches(
        self,
        size: int,
        *,
        shuffle: Any = None,
        epoch: int = 0,
        start: int = 0,
        drop_last: bool = False,
        window: int = 1,
        budget: int | str = "256MB",
    ) -> Batches:
        """Return the minibatches of an epoch, which are read while those before are computed with.

        With a key partitions come in random order, and rows in random order within each window of them: an order that
        is a function of `shuffle`, `epoch` and `window` alone. Where neighbouring rows are alike, as those of a day,
        many small partitions in a window of several mix them.

        Args:
            size: rows of a batch.
            shuffle: a key of `wengert.random`; None for the order of the data.
            epoch: the number of the pass over the data.
            start: the number of the first batch, as for a run that goes on where another one ended; partitions before
                it are not read if their lengths are known.
            drop_last: whether the last batch is left out if it has fewer rows.
            window: how many partitions rows are shuffled over, which are in memory together.
            budget: how many bytes may be read ahead, as "500MB"; the next window is in any case.

        Returns:
            What can be iterated over, any number of times: tuples of arrays, copies that may be written to. It has a
            length if that of the data is known, or after all partitions were read once to count their rows.

        Raises:
            UsageError: a number is none, or too small.

        >>> from wengert import random
        >>> data = partitions(np.arange(10), count=3)
        >>> [x.tolist() for (x,) in data.batches(4)]
        [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
        >>> [x.tolist() for (x,) in data.batches(4, shuffle=random.key(0), drop_last=True)]
        [[2, 1, 0, 7], [8, 9, 6, 5]]
        """
        name = "distributed.batches"
        require_flag(name, drop_last=drop_last)
        numbers = {"size": (size, 1), "epoch": (epoch, 0), "start": (start, 0), "window": (window, 1)}
        room = byte_count(budget, name, "budget", "may be read ahead")
        whole = {what: as_whole(name, what, value, least) for what, (value, least) in numbers.items()}
        return Batches(self, shuffle=shuffle, drop_last=bool(drop_last), budget=room, **whole)


def partitions(
    data: Any,
    *,
    count: int | None = None,
    columns: Sequence[str | Sequence[str]] | None = None,
    names: Callable[[int], str] | None = None,
) -> Partitions:
    """Return data as numbered partitions of rows, each of which can be read again by anyone at any time.

    A tuple holds arrays whose rows belong together; a list holds partitions. For rows in files of any format give the
    number of partitions and a function that reads one; it is sent to where it is called.

    Args:
        data: one of

            * an array, or a tuple of arrays with as many rows along their first axis, which are cut; memory maps
              (`np.load(path, mmap_mode="r")`) are read from their files, run by run;
            * a pair (count, read): `read(i)` returns the array of partition i, or a tuple of arrays;
            * a list with one item for each partition: an array, a tuple of arrays, or a delayed value or future of
              Dask's that gives one of these;
            * an array of Dask's, or a tuple of them with as many rows, in the chunks of the first one;
            * a data frame of Dask's, of which each column is an array, or those that `columns` says; a tuple of data
              frames and arrays with as many partitions each.
        columns: of a data frame: a name for a column as an array of shape (rows,), a list of k names for one of shape
            (rows, k).
        count: into how many partitions arrays are cut; some 2 MB each if it is not given.
        names: of the number of a partition that is read; returns what errors call it, such as the path of its file.

    Returns:
        Partitions with `.count`, `.rows`, `.read(i)`, `.split(n)` and `.batches(size)`.

    Raises:
        ShapeError: arrays have other numbers of rows.
        DtypeError: there are objects or texts among them.
        UsageError: there is no data, or a number of partitions is none.

    >>> x, y = np.arange(12.0).reshape(6, 2), np.arange(6.0)
    >>> data = partitions((x, y), count=2)
    >>> data, [array.shape for array in data.read(1)]
    (<2 partitions of 6 rows>, [(3, 2), (3,)])
    >>> partitions((3, lambda i: np.full(4, i))).read(2)
    (array([2, 2, 2, 2]),)
    """
    if isinstance(data, Partitions):
        return data
    if count is not None:
        count = as_whole(NAME, "count", count, 1)
    source = source_of(data, columns)
    if source is not None:
        return Partitions(source)
    pair = read_pair(data)
    if pair is not None:
        return Partitions(ReadSource(*pair, names))
    if isinstance(data, list):
        if not data:
            raise UsageError(NAME, "an empty list", "one partition or more is needed", "Pass the partitions")
        return Partitions(ListSource(data))
    return Partitions(cut_arrays(data, count))


def read_pair(data: Any) -> tuple[int, Callable[[int], Any]] | None:
    """Return a pair of a number of partitions and a function that reads one; None for other data."""
    if not isinstance(data, tuple) or len(data) != 2 or not np.isscalar(data[0]):
        return None
    count = as_whole(NAME, "the number of partitions", data[0], 1)
    require_callable(NAME, data[1])
    return count, data[1]


def cut_arrays(data: Any, count: int | None) -> ArraySource:
    """Return a source of runs of rows of arrays."""
    items = data if isinstance(data, tuple) else (data,)
    read = as_rows(tuple(items), "the data")
    rows = tuple(x if is_mapped_file(x) else y for x, y in zip(items, read, strict=True))
    total = row_count(rows)
    if not total:
        raise UsageError(NAME, "arrays without rows", "one row or more is needed", "Pass the data")
    wanted = -(-byte_size(rows) // PARTITION) if count is None else count
    return ArraySource(rows, even_bounds(total, max(1, min(wanted, total))))
