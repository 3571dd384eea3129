"""Frozen Tensors: parameters that require no grad meanwhile, and constants of graphs until they begin to."""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from functools import partial
from typing import Any, Protocol

from wengert.core.tensor import Tensor

__all__ = ["Frozen", "Reader", "freeze", "is_frozen", "unfreeze"]


class Frozen:
    """Be what a Tensor holds in place of its node once it was told not to require grad: its gradient from before.

    Such Tensors are parameters: sooner or later they are changed or require grad again, so graphs read them anew.
    """

    __slots__ = ("grad",)

    def __init__(self, grad: Tensor | None) -> None:
        self.grad = grad


def is_frozen(tensor: Tensor) -> bool:
    """Tell whether a Tensor has required grad before, and does not now."""
    return type(tensor._node) is Frozen


class Reader(Protocol):
    """Be something that has graphs in which Tensors are constants."""

    def begin_anew(self) -> None:
        """Forget these graphs."""


READERS: dict[int, tuple[weakref.ref[Tensor], weakref.WeakSet[Any]]] = {}
"""Who has taken a Tensor for a constant, by the Tensor's identity, as long as both live."""


def freeze(tensors: Iterable[Tensor], reader: Reader) -> None:
    """Let a reader hear when one of some Tensors begins to require grad."""
    for tensor in tensors:
        key = id(tensor)
        found = READERS.get(key)
        if found is None or found[0]() is not tensor:
            found = READERS[key] = weakref.ref(tensor, partial(forget, key)), weakref.WeakSet()
        found[1].add(reader)


def unfreeze(tensor: Tensor) -> None:
    """Tell the readers of a Tensor that it is no constant any more; before it is something else."""
    found = READERS.pop(id(tensor), None)
    if found is not None and found[0]() is tensor:
        for reader in list(found[1]):
            reader.begin_anew()


def forget(key: int, gone: weakref.ref[Tensor]) -> None:
    """Forget a Tensor that nobody holds any more; another one may be in its place already."""
    found = READERS.get(key)
    if found is not None and found[0] is gone:
        del READERS[key]
