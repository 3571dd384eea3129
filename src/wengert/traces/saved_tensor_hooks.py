"""Saved-tensor hooks: residuals that a user's function packs when they are saved, and another unpacks for the sweep."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wengert.core.memory.views import share
from wengert.core.values.recording import change, settings
from wengert.core.values.tensor import Tensor, unwrapped, wrapped_constant
from wengert.errors import UsageError
from wengert.traces.nodes import PackedResiduals

if TYPE_CHECKING:
    from wengert.traces.nodes import Node


class _Packed:
    """Hold what a pack hook returned, and the shape that unpacking it must give."""

    __slots__ = ("content", "shape")

    def __init__(self, content: Any, shape: tuple[int, ...]) -> None:
        self.content = content
        self.shape = shape


def pack(node: Node) -> None:
    """Pass the residuals of a new node through the innermost pair of saved-tensor hooks."""
    packing = settings().packing
    pack_one, unpack_one = packing[-1]
    change("packing", packing[:-1])  # what the hooks compute themselves is not packed again
    try:
        operands = tuple(packed(x, pack_one) for x in node.saved)
        node.out = packed(node.out, pack_one)
    finally:
        change("packing", packing)
    node.saved = PackedResiduals(operands, functools.partial(unpacked, unpack_one))


def packed(value: Any, pack_one: Callable[[Any], Any]) -> Any:
    """Return a residual, or each in a tuple, as it is kept."""
    if type(value) is tuple:
        return tuple(packed(x, pack_one) for x in value)
    if isinstance(value, np.ndarray | np.generic | Tensor):
        return _Packed(pack_one(share(wrapped_constant(value))), value.shape)
    return value


def unpacked(unpack_one: Callable[[Any], Any], value: Any) -> Any:
    """Return a residual as it was before it was packed."""
    if type(value) is tuple:
        return tuple(unpacked(unpack_one, x) for x in value)
    return checked_residual(unpack_one(value.content), value.shape) if type(value) is _Packed else value


def checked_residual(found: Any, shape: tuple[int, ...]) -> Any:
    """Return what an unpack hook gave, which must be an array of the shape that was packed."""
    if not isinstance(found, Tensor | np.ndarray | np.generic) or found.shape != shape:
        given = f"shape {found.shape}" if isinstance(found, Tensor | np.ndarray) else f"a {type(found).__name__}"
        given = f"unpack returned {given} for a Tensor of shape {shape}"
        needed = "a Tensor or ndarray of the same shape is needed"
        raise UsageError("saved_tensors_hooks", given, needed, "Return what pack was given")
    return unwrapped(found)
