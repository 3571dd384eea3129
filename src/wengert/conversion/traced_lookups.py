"""Lists, tuples, dictionaries and ndarrays that traced numbers index: Python and NumPy would ask for their elements."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from types import MethodType
from typing import Any

import numpy as np

from wengert.control.reachable_state import ReachableState
from wengert.conversion.branch_statements import decide
from wengert.conversion.called_functions import convert_method, find_in_class
from wengert.conversion.traced_integers import has_index, raise_here
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.aval import NUMBERS, strong
from wengert.core.values.dispatch import as_index, as_tensor, weakened
from wengert.core.values.tensor import Tensor, is_staged

MOST = 64
"""Items that are chosen one after the other."""


class Table:
    """Stand for a list, tuple, dictionary or ndarray where an item of it is read.

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
        if isinstance(items, dict):
            return entry_of(items, index) if is_key(index) else items[index]
        return item_of(items, as_index(index)) if is_staged(index) and has_index(index) else items[index]


class ConvertedItems:
    """Stand for an object of the user's where an item of it is read.

    Args:
        read: its `__getitem__`, converted.
    """

    __slots__ = ("read",)

    def __init__(self, read: Callable[[Any], Any]) -> None:
        self.read = read

    def __getitem__(self, index: Any) -> Any:
        return self.read(index)


def index_target(value: Any) -> Any:
    """Return what is indexed in place of a value."""
    kind = type(value)
    if kind in (list, tuple, dict, np.ndarray):
        return Table(value)
    if kind in (Tensor, str):
        return value
    method = find_in_class(kind, "__getitem__")
    inner = convert_method(method)
    return value if inner is method else ConvertedItems(MethodType(inner, value))


def part_of_array(array: np.ndarray[Any, Any], index: Any, entries: Sequence[Any]) -> Any:
    """Return a part of an ndarray that NumPy would copy; a view would see what is written to the array later."""
    if array.dtype.kind not in "biufc":
        return array[index]
    found = as_tensor(array)[index]
    is_number = not found.ndim and not any(entry is Ellipsis for entry in entries)
    is_copy = is_number or any(np.ndim(x) for x in entries if isinstance(x, Tensor | np.ndarray | list))
    return found if is_copy else array[index]


def item_of(items: Sequence[Any], index: Any) -> Any:
    """Return an item of a list or tuple, of which a number of another or none would be an error when the graph runs."""
    kinds, count = set(map(type, items)), len(items)
    if len(kinds) == 1 and kinds <= NUMBERS.keys() and (numbers := np.array(items)).dtype.kind in "biufc":
        return weakened(as_tensor(numbers)[index])
    if not 0 < count <= MOST:
        return items[index]  # which Python refuses
    outside = np.logical_or(index < -count, index >= count)  # asked for at any rate: the items may be one object
    raise_here(outside, IndexError(f"{type(items).__name__} index out of range"))
    place = np.where(index < 0, index + count, index)
    return choose_first([place == position for position in range(count)], items)


def is_key(key: Any) -> bool:
    """Tell whether a key of a dictionary is a traced number, which Python would look up by its value."""
    return is_staged(key) and is_scalar(key)


def entry_of(table: dict[Any, Any], key: Any) -> Any:
    """Return an entry of a dictionary; a key that is not there would be an error when the graph runs."""
    keys = [k for k in table if type(k) in NUMBERS]
    if not 0 < len(keys) <= MOST:
        return table[key]  # which Python refuses
    tests = [np.equal(key, strong(k)) for k in keys]  # in the dtypes of both: 0.1 is another number than float32's
    raise_here(np.logical_not(functools.reduce(np.logical_or, tests)), KeyError("a traced key that is not there"))
    return choose_first(tests, [table[k] for k in keys])


def choose_first(tests: Sequence[Any], items: Sequence[Any]) -> Any:
    """Return the item of the first test that holds, the last one if none does."""
    found = items[-1]
    for test, item in zip(tests[-2::-1], items[-2::-1], strict=True):
        found = choose_item(test, item, found)
    return found


def choose_item(test: Any, item: Any, other: Any) -> Any:
    """Return one of two items."""
    return decide(test, lambda: item, lambda: other, ReachableState(()))
