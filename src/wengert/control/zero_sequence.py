"""Sequences as results of loops: arrays collected in one, zeros that stand for any number of rows, and lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.structured_checks import require
from wengert.core.forms.view_forms import Region
from wengert.core.graph.loop_spec import Items, sequence_aval
from wengert.core.memory.memory_layout import Strides, example, strides_of, strides_of_stack
from wengert.core.primitives.primitive import register
from wengert.core.primitives.structured import NOTHING_PASSED, Passed, Structured, StructuredLowering
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.traces.rules.linearity import Moves


class RowCollector:
    """Collect what iterations leave behind: arrays, of whose number that is known, in their places at once.

    Args:
        aval: of one of them.
        length: how many there will be; None if nobody knows.
        reverse: whether the first one comes last.
    """

    def __init__(self, aval: Aval, length: int | None, reverse: bool) -> None:
        self.aval, self.reverse = sequence_aval(aval, length), reverse
        self.items: list[Any] = []
        self.array: np.ndarray[Any, Any] | None = None
        self.strides: Strides = None

    def append(self, item: Any) -> None:
        """Add what an iteration leaves."""
        is_array = type(item) is np.ndarray and item.dtype == self.aval.dtype
        if is_array and not self.items and UNKNOWN not in self.aval.shape:
            self.strides = strides_of(item)
            stacked = strides_of_stack(self.aval.shape, self.strides, item.itemsize)
            self.array = example(self.aval.shape, stacked, item.dtype)
        if self.array is not None and is_array and strides_of(item) == self.strides:
            place = len(self.items)
            row = self.array[-1 - place if self.reverse else place, ...]
            row[...] = item
            item = row
        else:
            self.array = None  # some are others: all are stacked in the end
        self.items.append(item)

    def stack_rows(self) -> Any:
        """Return all with the aval that `sequence_aval` gives."""
        if self.array is not None:
            return self.array
        items = self.items[::-1] if self.reverse else self.items
        if UNKNOWN in self.aval.shape:
            return Items(self.aval, items)
        return np.stack(items) if items else np.zeros(self.aval.shape, self.aval.dtype)


def lane_shape(shape: tuple[int, ...], size: int) -> tuple[int, ...]:
    """Return the shape of a value for all lanes of a batch: their axis comes first in each array.

    >>> lane_shape((3,), 5), lane_shape((-1, 3), 5)
    ((5, 3), (-1, 5, 3))
    """
    axis = shape.count(UNKNOWN)
    return (*shape[:axis], size, *shape[axis:])


class ZeroSequence(Structured):
    """Give a sequence of zeros, as many as are read; the operand only says where it is needed."""

    def __init__(self) -> None:
        form = Region(lambda _inputs, params: [Aval(params["shape"], params["dtype"])])
        super().__init__("zero_sequence", self.evaluation, form=form)

    def evaluation(self, _x: Any, *, shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[Items]:
        """Evaluate to what stands for zeros."""
        return (Items(Aval(shape, dtype), None),)

    def check(self, inputs: Sequence[Any], params: Mapping[str, Any]) -> None:
        """Check that there is one operand, and the shape that of a sequence."""
        require(len(inputs) == 1, f"{len(inputs)} operands of zero_sequence", "one is needed")
        sequence = UNKNOWN in params["shape"]
        require(sequence, f"shape {params['shape']!r} of zero_sequence", "that of a sequence is needed")

    def lower(self, params: Mapping[str, Any], lowering: StructuredLowering) -> Any:
        """Be lowered as rows of zeros."""
        return lowering.zero_rows(params["shape"].count(UNKNOWN))

    def reach(self, flags: Sequence[bool], params: Mapping[str, Any], smooth: bool) -> list[bool]:
        """Depend on nothing."""
        return [False]

    def following(self, _moves: Sequence[Any], _params: Mapping[str, Any], _followed: Any) -> list[Moves]:
        """Be zero."""
        return [Moves.ZERO]

    def push(
        self, values: Sequence[Any], parts: Sequence[Any], params: Mapping[str, Any], order: int | None, passed: Passed
    ) -> Any:
        """Have no tangent."""
        return apply(self, *values, **params), (None,), passed

    def lanes(self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
        """Be the same in every lane."""
        return apply(self, *values, **params), (False,)

    def linearize(
        self, values: Sequence[Any], wanted: Sequence[bool], params: Mapping[str, Any], passed: Passed = NOTHING_PASSED
    ) -> Any:
        """Have no cotangent."""
        return apply(self, *values, **params), (False,), None


zero_sequence = ZeroSequence()
register(zero_sequence)


def zeros_like(value: Any, near: Any = None) -> Any:
    """Return zeros that lie in memory as a value does, so that they may stand in its place; `near` as in `zeros`."""
    aval = aval_of(value)
    if aval.weak or UNKNOWN in aval.shape:
        return zeros(aval, near)
    return example(aval.shape, strides_of(value), aval.dtype, 0)


def zeros(aval: Aval, near: Any) -> Any:
    """Return zeros of an aval; those of a sequence where the value `near` is known."""
    if aval.weak:
        return aval.number(0)
    if UNKNOWN in aval.shape:
        return apply(zero_sequence, near, shape=aval.shape, dtype=aval.dtype)[0]
    return np.broadcast_to(np.zeros((), aval.dtype), aval.shape)[()]
