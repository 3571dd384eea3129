"""Residuals: what operations on tapes keep of their operands for the sweep, as it is or as hooks of users packed it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.memory.buffers import lend, lent
from wengert.core.memory.views import share
from wengert.core.values.tensor import Tensor, unwrap_plain, wrapped_constant
from wengert.errors import UsageError

ndarray = np.ndarray
NOTHING: tuple[tuple[None, ...], ...] = tuple((None,) * count for count in range(9))
"""The residuals of operations, by the number of operands, that need none of these."""


class GeneralResiduals(tuple[Any, ...]):
    """Be residuals that were recorded in the general way, so that some may be Tensors, of other traces."""

    __slots__ = ()


class LargeResiduals(tuple[Any, ...]):
    """Be residuals of an elementwise operation on so many elements that several threads share them."""

    __slots__ = ()


class PackedResiduals:
    """Be residuals as saved-tensor hooks packed them, as is the output of their node.

    Attributes:
        operands: the residuals, packed.
        unpack: turns one back.
    """

    __slots__ = ("operands", "unpack")

    def __init__(self, operands: Sequence[Any], unpack: Callable[[Any], Any]) -> None:
        self.operands = operands
        self.unpack = unpack


class _Released:
    """Stand in a node for residuals that a sweep has used up."""

    def __repr__(self) -> str:
        return "<released>"


RELEASED: Any = _Released()


def no_residuals(inputs: Sequence[Any]) -> tuple[None, ...]:
    """Return the residuals of an operation that needs none of its operands."""
    return NOTHING[len(inputs)] if len(inputs) < len(NOTHING) else (None,) * len(inputs)


def residuals_of(operands: Sequence[Any], positions: Sequence[int], trace: Any) -> list[Any]:
    """Return the residuals of operands on a tape: the values of those at some positions, of numbers, too."""
    residuals: list[Any] = [None] * len(operands)
    for i in positions:
        x = operands[i]
        kind = type(x)
        if kind is Tensor:
            residuals[i] = x._value if x._kept is True else lend(x)
        else:
            residuals[i] = lent(x, trace) if kind is ndarray else x
    return residuals


# Saved-tensor hooks: residuals that a function of the user packs when they are saved


class _Packed:
    """Hold what a pack hook returned, and the shape that unpacking it must give."""

    __slots__ = ("content", "shape")

    def __init__(self, content: Any, shape: tuple[int, ...]) -> None:
        self.content = content
        self.shape = shape


def pack_value(value: Any, pack_one: Callable[[Any], Any]) -> Any:
    """Return a residual, or each in a tuple, as it is kept."""
    if type(value) is tuple:
        return tuple(pack_value(x, pack_one) for x in value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return _Packed(pack_one(share(wrapped_constant(value))), value.shape)
    return value


def unpack_value(unpack_one: Callable[[Any], Any], value: Any) -> Any:
    """Return a residual as it was before it was packed."""
    if type(value) is tuple:
        return tuple(unpack_value(unpack_one, x) for x in value)
    return checked_residual(unpack_one(value.content), value.shape) if type(value) is _Packed else value


def checked_residual(found: Any, shape: tuple[int, ...]) -> Any:
    """Return what an unpack hook gave, which must be an array of the shape that was packed."""
    if not isinstance(found, Tensor | np.ndarray | np.generic) or found.shape != shape:
        given = f"shape {found.shape}" if isinstance(found, Tensor | np.ndarray) else f"a {type(found).__name__}"
        given = f"unpack returned {given} for a Tensor of shape {shape}"
        needed = "a Tensor or ndarray of the same shape is needed"
        raise UsageError("saved_tensors_hooks", given, needed, "Return what pack was given")
    return unwrap_plain(found)
