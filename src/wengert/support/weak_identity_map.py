"""What is known of objects as long as they live.

Python's own dictionaries with weak keys call a function of Python when an object goes. Where such a function begins,
signals are handled, and what a handler raises there, such as KeyboardInterrupt, is lost: whoever waits for Ctrl-C waits
for ever. Here nothing but C runs then.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator
from functools import partial
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class WeakIdentityMap(Generic[K, V]):
    """Be a dictionary with objects as keys, by their identity, that does not keep them alive.

    >>> class Thing: ...
    >>> known, thing = WeakIdentityMap[Thing, int](), Thing()
    >>> known[thing] = 3
    >>> known.get(thing), len(known), thing in known
    (3, 1, True)
    >>> del thing
    >>> len(known)
    0
    """

    __slots__ = ("entries",)

    def __init__(self) -> None:
        self.entries: dict[int, tuple[weakref.ref[K], V]] = {}

    def __setitem__(self, key: K, value: V) -> None:
        identity = id(key)  # `pop` is called with the reference, too, which is what it is to return if there is nothing
        self.entries[identity] = weakref.ref(key, partial(self.entries.pop, identity)), value

    def get(self, key: K) -> V | None:
        """Return the value for an object; None if there is none."""
        found = self.entries.get(id(key))
        return found[1] if found is not None and found[0]() is key else None

    def pop(self, key: K) -> V | None:
        """Forget an object; return what was known of it."""
        value = self.get(key)
        self.entries.pop(id(key), None)
        return value

    def __contains__(self, key: K) -> bool:
        found = self.entries.get(id(key))
        return found is not None and found[0]() is key

    def __iter__(self) -> Iterator[K]:
        """Go through the objects that are there now."""
        return iter([key for reference, _ in list(self.entries.values()) if (key := reference()) is not None])

    def __len__(self) -> int:
        return len(self.entries)
