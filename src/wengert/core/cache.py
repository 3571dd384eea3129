"""Caches: what was found out before, up to a number of entries."""

from __future__ import annotations

from typing import TypeVar

__all__ = ["MOST_KNOWN", "Cache"]

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
