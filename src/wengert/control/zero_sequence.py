"""Sequences as results of loops: arrays collected in one, zeros that stand for any number of rows, and lanes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wengert.control.structured_checks import require
from wengert.core.forms.form import Region
from wengert.core.memory.memory_layout import example, strides_of
from wengert.core.primitives.primitive import register
from wengert.core.primitives.structured import Structured
from wengert.core.values.aval import UNKNOWN, Aval, aval_of
from wengert.core.values.dispatch import apply
from wengert.core.values.sequences import Items, sequence_aval
from wengert.traces.linearity import Moves


def collect_rows(arrays: list[Any], aval: Aval, length: int | None) -> Any:
    """Return what iterations left behind as a value with the aval that `sequence_aval` gives."""
    full = sequence_aval(aval, length)
    if UNKNOWN in full.shape:
        return Items(full, arrays)
    return np.stack(arrays) if arrays else np.zeros(full.shape, full.dtype)


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

    def reach(self, flags: Sequence[bool], params: Mapping[str, Any], smooth: bool) -> list[bool]:
        """Depend on nothing."""
        return [False]

    def following(self, _moves: Sequence[Any], _params: Mapping[str, Any], _followed: Any) -> list[Moves]:
        """Be zero."""
        return [Moves.ZERO]

    def push(self, values: Sequence[Any], parts: Sequence[Any], params: Mapping[str, Any], order: int | None) -> Any:
        """Have no tangent."""
        return apply(self, *values, **params), (None,)

    def lanes(self, size: int, values: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]) -> Any:
        """Be the same in every lane."""
        return apply(self, *values, **params), (False,)

    def linearize(self, values: Sequence[Any], wanted: Sequence[bool], params: Mapping[str, Any]) -> Any:
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
