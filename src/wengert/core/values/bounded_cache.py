"""Caches: what was found out before, up to a number of entries."""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")

MOST_KNOWN = 1 << 14
"""How many entries a cache holds: the same few keys occur over and over."""


class Cache(dict[K, V]):
    """Be a dictionary that begins anew when it is full; looking up costs what it costs in a dictionary.

    >>> found = Cache(most=2)
    >>> found["a"] = found["b"] = found["c"] = 1
    >>> found
    {'c': 1}
    """

    def __init__(self, most: int = MOST_KNOWN) -> None:
        super().__init__()
        self.most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self.most:
            self.clear()
        super().__setitem__(key, value)


class Recent(OrderedDict[K, V]):
    """Be a dictionary of what takes long to make, or much memory: what was used least recently goes when it is full.

    >>> known = Recent(most=2)
    >>> known["a"] = known["b"] = 1
    >>> known.touch("a")
    >>> known["c"] = 1
    >>> list(known)
    ['a', 'c']
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self.most = most

    def touch(self, key: K) -> None:
        """Say that something was used, which goes later then; there is no need to if few are known."""
        with contextlib.suppress(KeyError):  # another thread was faster
            self.move_to_end(key)

    def find(self, key: K, make: Callable[[], V]) -> V:
        """Return what is known by a key, made now if there is nothing."""
        found = self.get(key)
        if found is None:
            found = self[key] = make()
        else:
            self.touch(key)
        return found

    def __setitem__(self, key: K, value: V) -> None:
        super().__setitem__(key, value)
        self.move_to_end(key)
        while len(self) > self.most:
            self.left(self.popitem(last=False)[1])

    def left(self, value: V) -> None:
        """Be told of what goes."""
