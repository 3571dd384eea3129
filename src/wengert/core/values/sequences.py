"""Sequences: what the iterations of a loop leave behind, one array each.

Where the number of iterations is known while tracing, that is an array with one more axis. Otherwise it is a value of
its own kind, whose aval has `UNKNOWN` in front of the shape of its arrays; sequences of sequences, which loops inside
loops leave, may be ragged. Only loops read and write them, in order, so native code can keep them on a growing stack.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.core.values.aval import UNKNOWN, Aval, aval_of


class Items:
    """Hold the arrays of a sequence, as a list or as one array; without any it stands for zeros, as many as wanted."""

    __slots__ = ("arrays", "dtype", "shape")

    def __init__(self, aval: Aval, arrays: Sequence[Any] | np.ndarray[Any, Any] | None) -> None:
        self.shape, self.dtype, _ = aval
        self.arrays = arrays

    def __getitem__(self, i: int) -> Any:
        """Return one of the arrays."""
        if self.arrays is not None:
            return self.arrays[i]
        aval = Aval(self.shape[1:], self.dtype)
        return Items(aval, None) if UNKNOWN in aval.shape else np.broadcast_to(np.zeros((), aval.dtype), aval.shape)

    def __add__(self, other: Items) -> Items:
        """Add two sequences: cotangents of one that was read twice, or lanes and what is the same in all of them."""
        wide, other = (self, other) if len(self.shape) >= len(other.shape) else (other, self)
        if other.arrays is None:
            return wide
        if wide.arrays is None and wide.shape == other.shape:
            return other
        arrays = [wide[i] for i in range(len(other.arrays))] if wide.arrays is None else wide.arrays
        return Items(aval_of(wide), [x + y for x, y in zip(arrays, other.arrays, strict=True)])

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, **kwargs: Any) -> Any:
        """Let the primitive `add` be evaluated on sequences."""
        if ufunc is not np.add or method != "__call__" or kwargs:
            return NotImplemented
        left, right = inputs
        return left.__add__(right)


def sequence_aval(aval: Aval, length: int | None) -> Aval:
    """Return the aval of a sequence of `length` arrays; None for a length that is not known.

    >>> sequence_aval(Aval((2,), np.dtype(float)), None)
    Aval(shape=(-1, 2), dtype=dtype('float64'), weak=False)
    """
    known = length is not None and UNKNOWN not in aval.shape
    return Aval((length if known and length is not None else UNKNOWN, *aval.shape), aval.dtype)
