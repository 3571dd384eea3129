"""What the operands of a loop are, by their roles: constants, carried values, sequences.

Sequences are what the iterations of a loop leave behind, one array each. Where the number of iterations is known while
tracing, that is an array with one more axis. Otherwise it is a value of its own kind, whose aval has `UNKNOWN` in front
of the shape of its arrays; sequences of sequences, which loops inside loops leave, may be ragged. Only loops read and
write them, in order, so native code can keep them on a growing stack.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.graph.identity import Composite
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.support.records import FieldRecord, NamedTuple

Params = Mapping[str, Any]


class LoopSpec(FieldRecord, Composite):
    """Say what the operands of a loop are, and how its iterations follow each other.

    Attributes:
        constants: how many operands are what every iteration reads.
        carried: how many after these are what one iteration hands to the next; sequences are the others.
        length: the number of iterations; None for a `while_loop`, and for a `scan` that gets it as operand 0.
        reverse: whether sequences are read and written from their ends.
    """

    constants: int
    carried: int
    length: int | None = None
    reverse: bool = False

    def structure(self) -> Hashable:
        """Return what it is made of: whole numbers and a flag."""
        return self.constants, self.carried, self.length, self.reverse

    def check(self) -> None:
        """Raise an error if a field is not what it should be: they may come from a file."""
        counts = (self.constants, self.carried, 0 if self.length is None else self.length)
        if not all(type(n) is int and n >= 0 for n in counts) or type(self.reverse) is not bool:
            raise ValueError(f"{self!r:.80}")

    def holding(self, constants: int, carried: int) -> LoopSpec:
        """Return the description of a loop with other numbers of constants and carried values."""
        return self.replace(constants=constants, carried=carried)


class Parts(NamedTuple):
    """Hold the operands of a loop, or something about each of them, by their roles; `limit` has one item or none."""

    limit: list[Any]
    constants: list[Any]
    carried: list[Any]
    sequences: list[Any]

    @property
    def inner(self) -> list[Any]:
        """What the body receives."""
        return [*self.constants, *self.carried, *self.sequences]


def parts(items: Sequence[Any], params: Params) -> Parts:
    """Sort what belongs to operands by their roles."""
    first = int(is_counted(params))
    second = first + params["spec"].constants
    third = second + params["spec"].carried
    return Parts(list(items[:first]), list(items[first:second]), list(items[second:third]), list(items[third:]))


def is_counted(params: Params) -> bool:
    """Tell whether operand 0 is the number of iterations."""
    return params["cond"] is None and params["spec"].length is None


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
