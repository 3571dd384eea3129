"""Iterators that a `for` statement goes through and nobody else has: those of `enumerate`, `zip` and `reversed`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert.core.values.tensor import Tensor

ITERATORS = frozenset((enumerate, zip, reversed))
SIZED = (list, tuple, range, str, bytes, dict, np.ndarray, Tensor)
"""What can be gone through again and again, so that nobody notices how far a loop has gone."""


class LoopIterator:
    """Stand in a `for` statement for an iterator that nobody else has, or sees how far it has gone."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self.iterator


def make_iterating(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of `enumerate`, `zip` or `reversed` where a `for` statement calls it itself."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        sources = args if function is zip else args[:1]
        return LoopIterator(found) if all(isinstance(x, (*SIZED, LoopIterator)) for x in sources) else found

    return call
