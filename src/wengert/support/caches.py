"""What was found out before: by keys, up to a number of entries; of objects, as long as they live; of matrices.

Python's own dictionaries with weak keys call a function of Python when an object goes. Where such a function begins,
signals are handled, and what a handler raises there, such as KeyboardInterrupt, is lost: whoever waits for Ctrl-C waits
for ever. Where objects are keys here, nothing but C runs then. And `functools.cached_property` in Python 3.11 holds a
lock while an attribute is computed, one for all objects of a class: a process that another thread forks then would
find it locked for ever.
"""

from __future__ import annotations

import contextlib
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np

from wengert.support.fork_safety import hold_in_forks
from wengert.support.records import NamedTuple

K = TypeVar("K")
V = TypeVar("V")
T = TypeVar("T")

MOST_KNOWN = 1 << 12
"""How many entries a cache holds: the same few keys occur over and over, some thousand in a graph of 60 steps written
out. With four times as many a function that saw 10,000 shapes had grown by 50 MB."""


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
            self.on_eviction(self.popitem(last=False)[1])

    def on_eviction(self, value: V) -> None:
        """Be told of a value that makes room for others."""


class cached(Generic[T]):  # noqa: N801 - a decorator
    """Make a method an attribute that is computed once for each object, or twice if threads ask at the same time.

    >>> class Circle:
    ...     def __init__(self, radius):
    ...         self.radius = radius
    ...     @cached
    ...     def area(self):
    ...         print("computed")
    ...         return 3 * self.radius**2
    >>> circle = Circle(2)
    >>> circle.area, circle.area
    computed
    (12, 12)
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> T: ...
    def __get__(self, instance: object | None, owner: Any = None) -> Self | T:
        """Return the attribute, which the object has from then on."""
        if instance is None:
            return self
        value = self.function(instance)
        vars(instance)[self.function.__name__] = value
        return value


class KeptFactor(NamedTuple):
    """Hold the factor of a matrix, how it was made, a copy of the elements, and what nobody asks for it without."""

    owner: weakref.ref[Any]
    key: Any
    elements: np.ndarray[Any, Any]
    factor: Any

    def is_of(self, key: Any, elements: np.ndarray[Any, Any]) -> bool:
        """Tell whether it is that of a matrix; an array that nobody writes to is known without a look, NaN or not."""
        own = self.elements
        if self.key != key or own.dtype != elements.dtype or own.shape != elements.shape:
            return False
        if self.owner() is elements:
            return True
        differs = own.size > 0 and own.item(0) != elements.item(0)  # as most do, in a twentieth of the time
        return not differs and np.array_equal(own, elements)


class KeptFactors:
    """Keep what was made of matrices, dense or sparse, for whatever asks for that of an equal one.

    What traces, lanes and calls make of one matrix are several arrays with the same elements, so these are compared.
    Kept are the `most` that were used last, of `size` elements together (`nnz` of each) unless one alone has more, as
    long as their owner lives: the matrix, or the pattern of a sparse one.
    """

    def __init__(self, most: int, size: int) -> None:
        self.most, self.size = most, size
        self.entries: list[KeptFactor] = []  # the last one first
        self.lock = threading.RLock()
        hold_in_forks(self.lock)

    def find(self, owner: Any, key: Any, elements: np.ndarray[Any, Any], make: Callable[[], Any]) -> KeptFactor:
        """Return what is kept of a matrix by a key, which is made if it is not there."""
        known = next((x for x in list(self.entries) if x.is_of(key, elements)), None)
        if known is None:
            known = KeptFactor(weakref.ref(owner), key, elements.copy(), make())
        self.remember(known)
        return known

    def remember(self, factor: KeptFactor) -> None:
        """Let a factor be the one that was used last; the oldest ones are forgotten."""
        if self.entries and self.entries[0] is factor:
            return
        with self.lock:
            others = [x for x in self.entries if x is not factor and x.owner() is not None][: self.most - 1]
            self.entries[:] = [factor, *others]
            while len(self.entries) > 1 and sum(x.factor.nnz for x in self.entries) > self.size:
                self.entries.pop()


FACTORS = KeptFactors(8, 1 << 25)
"""Those of dense matrices (`implicit.systems`) and of sparse ones (`primitives.sparse.direct_solves`)."""


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
