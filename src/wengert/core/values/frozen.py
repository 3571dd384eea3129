"""Frozen Tensors: parameters that require no grad meanwhile, and constants of graphs until they begin to."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from wengert.core.values.tensor import Tensor
from wengert.support.caches import WeakIdentityMap


class Frozen:
    """Be what a Tensor holds in place of its node once it was told not to require grad.

    Such Tensors are parameters: sooner or later they are changed or require grad again, so graphs read them anew.

    Attributes:
        grad: its gradient from before.
        leaf: its node from before, which has its hooks; views that were recorded go on leading there.
    """

    __slots__ = ("grad", "leaf")

    def __init__(self, grad: Tensor | None, leaf: Any) -> None:
        self.grad = grad
        self.leaf = leaf


def is_frozen(tensor: Tensor) -> bool:
    """Tell whether a Tensor has required grad before, and does not now."""
    return type(tensor._node) is Frozen


class ConstantReader(Protocol):
    """Be something that has graphs in which Tensors are constants."""

    def begin_anew(self) -> None:
        """Forget these graphs."""


READERS: WeakIdentityMap[Tensor, WeakIdentityMap[ConstantReader, None]] = WeakIdentityMap()
"""Who has taken a Tensor for a constant, as long as both live."""


def freeze(tensors: Iterable[Tensor], reader: ConstantReader) -> None:
    """Let a reader hear when one of some Tensors begins to require grad."""
    for tensor in tensors:
        readers = READERS.get(tensor)
        if readers is None:
            readers = READERS[tensor] = WeakIdentityMap()
        readers[reader] = None


def unfreeze(tensor: Tensor) -> None:
    """Tell the readers of a Tensor that it is no constant any more; before it is something else."""
    for reader in READERS.pop(tensor) or ():
        reader.begin_anew()
