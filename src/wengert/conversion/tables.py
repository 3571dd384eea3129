"""Lists, tuples and ndarrays that traced numbers index: Python and NumPy would ask these for their elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from wengert.control.heap import Heap
from wengert.conversion.branches import decided
from wengert.conversion.calls import converted_method, found_in
from wengert.core.aval import NUMBERS
from wengert.core.dispatch import as_tensor, weakened
from wengert.core.tensor import Tensor, is_staged

__all__ = ["indexed"]

MOST = 64
"""Items that are chosen one after the other."""


class Table:
    """Stand for a list, tuple or ndarray where an item of it is read.

    Args:
        items: what is read.
    """

    __slots__ = ("items",)

    def __init__(self, items: Any) -> None:
        self.items = items

    def __getitem__(self, index: Any) -> Any:
        items = self.items
        if isinstance(items, np.ndarray):
            entries = index if isinstance(index, tuple) else (index,)
            return part_of_array(items, index, entries) if any(map(is_staged, entries)) else items[index]
        if not is_staged(index) or index.ndim or index.dtype.kind not in "iu":
            return items[index]
        return item_of(items, index)


class Items:
    """Stand for an object of the user's where an item of it is read.

    Args:
        read: its `__getitem__`, converted.
    """

    __slots__ = ("read",)

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read

    def __getitem__(self, index: Any) -> Any:
        return self.read(index)


def indexed(value: Any) -> Any:
    """Return what is indexed in place of a value."""
    kind = type(value)
    if kind in (list, tuple, np.ndarray):
        return Table(value)
    if kind in (Tensor, dict, str):
        return value
    method = found_in(kind, "__getitem__")
    inner = converted_method(method)
    return value if inner is method else Items(MethodType(inner, value))


def part_of_array(array: np.ndarray[Any, Any], index: Any, entries: Sequence[Any]) -> Any:
    """Return a part of an ndarray that NumPy would copy; a view would see what is written to the array later."""
    if array.dtype.kind not in "biufc":
        return array[index]
    found = as_tensor(array)[index]
    is_number = not found.ndim and not any(entry is Ellipsis for entry in entries)
    is_copy = is_number or any(np.ndim(x) for x in entries if isinstance(x, Tensor | np.ndarray | list))
    return found if is_copy else array[index]


def item_of(items: Sequence[Any], index: Tensor) -> Any:
    """Return an item of a list or tuple, of which a number of another or none would be an error when the graph runs."""
    kinds = set(map(type, items))
    if len(kinds) == 1 and kinds <= NUMBERS.keys() and (numbers := np.array(items)).dtype.kind in "biufc":
        return weakened(as_tensor(numbers)[index])
    if not 1 < len(items) <= MOST:
        return items[index]  # type: ignore[call-overload]  # which Python refuses
    place = as_tensor(np.arange(len(items)))[index]
    found = items[-1]
    for position in range(len(items) - 2, -1, -1):
        found = one_of(place == position, items[position], found)
    return found


def one_of(test: Any, item: Any, other: Any) -> Any:
    """Return one of two items."""
    return decided(test, lambda: item, lambda: other, Heap(()))
