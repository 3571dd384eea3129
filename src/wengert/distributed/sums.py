"""Sums in one fixed order: a binary tree over the numbers of partitions, whoever adds up what, and when.

Floating-point addition is not associative, so the last bits of a sum tell in which order it was taken. Here that is
always the one of a full binary tree: node (level, k) is the sum over partitions k * 2**level up to (k + 1) * 2**level,
its left half plus its right half; a half beyond the last partition is left out. A worker adds up the nodes that its
partitions fill and sends these.
"""

from __future__ import annotations

import threading
from typing import Any

import numpy as np

from wengert.errors import ShapeError

Leaves = list[Any]


class SumTree:
    """Add up the leaves of containers over partitions 0 to count - 1, which may come in any order.

    >>> tree = SumTree(3)
    >>> for number in (2, 0, 1):
    ...     tree.add(0, number, [0.1 * (number + 1)])
    >>> tree.root
    [0.6000000000000001]

    Attributes:
        open: the nodes that wait for another one, by level and number: their leaves, and whether nobody else has these
            arrays, so that others may be added to them in place.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self.top = max(count - 1, 0).bit_length()
        self.open: dict[tuple[int, int], tuple[Leaves, bool]] = {}
        self.lock = threading.Lock()

    def add(self, level: int, number: int, leaves: Leaves, is_own: bool = False) -> None:
        """Put a node in its place, and together with the others what it completes; several threads may."""
        with self.lock:
            while level < self.top:
                if ((number ^ 1) << level) < self.count:
                    other = self.open.pop((level, number ^ 1), None)
                    if other is None:
                        break
                    # either into the other has the same bits: addition is commutative
                    first, second = (other[0], leaves) if other[1] else (leaves, other[0])
                    leaves, is_own = add_leaves(first, second, other[1] or is_own), True
                level, number = level + 1, number >> 1
            self.open[level, number] = leaves, is_own

    @property
    def nodes(self) -> dict[tuple[int, int], Leaves]:
        """The leaves of the nodes that are there, by level and number."""
        return {place: leaves for place, (leaves, _) in self.open.items()}

    @property
    def root(self) -> Leaves:
        """The sums over all partitions."""
        return self.open[self.top, 0][0]


def add_leaves(first: Leaves, second: Leaves, is_own: bool = False) -> Leaves:
    """Return the sums of leaves; in the memory of the first where it is free.

    Raises:
        ShapeError: they have not the same shapes, or not as many are there.
    """
    if len(first) != len(second):
        raise shape_error(first, second)
    found = []
    for x, y in zip(first, second, strict=True):
        if type(x) is np.ndarray or type(y) is np.ndarray:
            if getattr(x, "shape", ()) != getattr(y, "shape", ()):
                raise shape_error(first, second)
            if is_own and type(x) is np.ndarray and x.flags.writeable and x.dtype == y.dtype:
                x += y
                found.append(x)
                continue
        found.append(x + y)
    return found


def shape_error(first: Leaves, second: Leaves) -> ShapeError:
    """Return the error about leaves that cannot be added up."""
    shapes = [", ".join(str(np.shape(x)) for x in leaves) for leaves in (first, second)]
    given = f"a function that returned shapes {shapes[0]} for one block of rows and {shapes[1]} for another"
    action = "Return sums over rows, whose shapes do not depend on how many rows there are"
    return ShapeError("distributed", given, "results that can be added up are needed", action)
