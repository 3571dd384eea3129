"""How primitives read when operands carry a leading batch axis.

Elementwise primitives only need their operands' ranks aligned. Others say it in one of two forms:

* `steps(primitive, size, shape, params)`, for those of one operand: the operation as a sequence of steps
  `(primitive, params)` on the operand with its batch axis in front. `shape` is that of the operand without it.
* `batch(primitive, size, operands, batched, params)`: compute the result, batch axis in front, from operands of
  which those marked in `batched` have theirs in front.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.core.aval import shape_of
from wengert.core.dispatch import apply
from wengert.core.primitive import Primitive

__all__ = ["aligned", "along", "each_lane", "lead", "prefixed", "shift"]

Steps = list[tuple[Primitive, dict[str, Any]]]


def shift(axis: Any) -> Any:
    """Return axes as they are counted once there is a batch axis in front; negative ones do not change.

    >>> shift((0, -1))
    (1, -1)
    """
    if isinstance(axis, tuple):
        return tuple(shift(item) for item in axis)
    return axis if axis is None or axis < 0 else axis + 1


def along(*names: str) -> Callable[..., Steps]:
    """Return the steps of an operation whose parameters with these names count axes (None is not among them).

    >>> from wengert.core.primitive import Constant
    >>> along("axis")(Constant("ranks", np.argsort), 10, (3, 4), {"axis": 0, "kind": None})
    [(<constant primitive ranks>, {'axis': 1, 'kind': None})]
    """

    def steps(primitive: Primitive, _size: int, _shape: tuple[int, ...], params: Mapping[str, Any]) -> Steps:
        return [(primitive, {key: shift(value) if key in names else value for key, value in params.items()})]

    return steps


def prefixed(*names: str) -> Callable[..., Steps]:
    """Return the steps of an operation whose parameters with these names are shapes of the result.

    >>> from wengert.core.primitive import Constant
    >>> prefixed("shape")(Constant("reshaped", np.reshape), 10, (3, 4), {"shape": (12,)})
    [(<constant primitive reshaped>, {'shape': (10, 12)})]
    """

    def steps(primitive: Primitive, size: int, _shape: tuple[int, ...], params: Mapping[str, Any]) -> Steps:
        return [(primitive, {k: (size, *v) if k in names else v for k, v in params.items()})]

    return steps


def lead(value: Any, batched: bool, size: int) -> Any:
    """Return an operand with its batch axis in front, repeated along it if it had none.

    >>> lead(np.array([1.0, 2.0]), False, 3)
    array([[1., 2.],
           [1., 2.],
           [1., 2.]])
    """
    if batched:
        return value
    return np.broadcast_to(value, (size, *shape_of(value)))


def aligned(operands: Sequence[Any], batched: Sequence[bool], cores: Sequence[int] | None = None) -> list[Any]:
    """Return operands reshaped so that they broadcast with their batch axes first, up to their last axes, the cores.

    >>> [x.shape for x in aligned([np.ones(4), np.ones((2, 3))], [True, False])]
    [(4, 1, 1), (2, 3)]
    >>> [x.shape for x in aligned([np.ones((4, 3)), np.ones((2, 3, 3))], [True, False], [1, 2])]
    [(4, 1, 3), (2, 3, 3)]
    """
    ranks = [len(shape_of(x)) - flag for x, flag in zip(operands, batched, strict=True)]
    if cores is not None:
        ranks = [rank - core for rank, core in zip(ranks, cores, strict=True)]
    rank = max(ranks)
    found = []
    for x, flag, own in zip(operands, batched, ranks, strict=True):
        if flag and own < rank:
            x = x.reshape((x.shape[0], *(1,) * (rank - own), *x.shape[1:]))
        found.append(x)
    return found


def each_lane(
    primitive: Primitive, size: int, operands: Sequence[Any], batched: Sequence[bool], params: Mapping[str, Any]
) -> list[Any]:
    """Return what a primitive gives for each lane."""
    lanes = [[x[i] if flag else x for x, flag in zip(operands, batched, strict=True)] for i in range(size)]
    return [apply(primitive, *lane, **params) for lane in lanes]
