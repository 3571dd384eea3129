"""Operands with a batch axis in front: what forms, and rules of their own for what no form fits, do with them.

A rule is `batch(primitive, size, operands, batched, params)`: it returns the result, batch axis in front, from
operands of which those marked in `batched` have theirs in front.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.core.diagnostics.argument_checks import shown
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import shape_of
from wengert.core.values.dispatch import apply
from wengert.errors import DtypeError


def shift(axis: Any) -> Any:
    """Return axes as they are counted once there is a batch axis in front; negative ones do not change.

    Args:
        axis: an axis, a tuple of them, or None.

    Returns:
        The same, one more where it is counted from the front.

    >>> shift((0, -1))
    (1, -1)
    """
    try:
        if type(axis) is tuple:
            return shift_several(axis)
        return axis if axis is None or axis < 0 else axis + 1
    except (TypeError, ValueError):
        needed = "an axis, a tuple of them, or None is needed"
        raise DtypeError("shift", f"{shown(axis)} as axes", needed, "Pass whole numbers") from None


@lru_cache(maxsize=256)
def shift_several(axes: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return several axes as they are counted once there is a batch axis in front."""
    return tuple(map(shift, axes))


def lead(value: Any, batched: bool, size: int) -> Any:
    """Return an operand with its batch axis in front, repeated along it if it had none.

    Args:
        value: the operand.
        batched: whether it has a batch axis, the first one.
        size: the number of lanes.

    Returns:
        An array or Tensor of shape (size, ...).

    >>> lead(np.array([1.0, 2.0]), False, 3)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """
    if batched:
        return value
    return np.broadcast_to(value, (size, *shape_of(value)))


def all_lead(size: int, operands: Sequence[Any], batched: Sequence[bool]) -> Sequence[Any]:
    """Return operands with their batch axes in front, each repeated along it if it had none."""
    if all(batched):
        return operands
    return [lead(x, flag, size) for x, flag in zip(operands, batched, strict=True)]


def aligned(operands: Sequence[Any], batched: Sequence[bool], cores: Sequence[int] | None = None) -> list[Any]:
    """Return operands reshaped so that they broadcast with their batch axes first, up to their last axes, the cores.

    Args:
        operands: arrays or Tensors.
        batched: whether each has a batch axis, the first one.
        cores: how many last axes of each stay as they are; none where it is not given.

    Returns:
        The operands, of one rank but for their cores.

    >>> [x.shape for x in aligned([np.ones(4), np.ones((2, 3))], [True, False])]
    [(4, 1, 1), (2, 3)]
    >>> [x.shape for x in aligned([np.ones((4, 3)), np.ones((2, 3, 3))], [True, False], [1, 2])]
    [(4, 1, 3), (2, 3, 3)]
    """
    try:
        ranks = [len(shape_of(x)) - bool(flag) for x, flag in zip(operands, batched, strict=True)]
        if cores is not None:
            ranks = [rank - core for rank, core in zip(ranks, cores, strict=True)]
        rank = max(ranks)
        if min(ranks) < 0:
            raise ValueError(ranks)
    except (TypeError, ValueError):
        given = ", ".join(shown(x) for x in (operands, batched, cores))
        needed = "a list of arrays, and as many truths and numbers of axes, are needed"
        raise DtypeError("aligned", given, needed, "Pass one of each for every operand") from None
    found = []
    for x, flag, own in zip(operands, batched, ranks, strict=True):
        if flag and own < rank:
            size, *others = shape_of(x)
            shape = (size, *(1,) * (rank - own), *others)
            x = x.reshape(shape) if type(x) is np.ndarray else np.reshape(x, shape)
        found.append(x)
    return found


def each_lane(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
) -> list[Any]:
    """Return what a primitive gives for each lane."""
    lanes = [[x[i] if flag else x for x, flag in zip(operands, batched, strict=True)] for i in range(size)]
    return [apply(primitive, *lane, **params) for lane in lanes]
