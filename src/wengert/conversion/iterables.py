"""Builtins that go through items: `max`, `min`, `any`, `all` of traced values; `enumerate` and others in `for`."""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from wengert.control.heap import Heap
from wengert.conversion.branches import and_, decided, or_
from wengert.conversion.regions import as_truth
from wengert.core.dispatch import weakened
from wengert.core.tensor import Tensor, is_staged

__all__ = ["CHOICES", "ITERATORS", "Items", "items_of"]

ITERATORS = frozenset((enumerate, zip, reversed))
SIZED = (list, tuple, range, str, bytes, dict, np.ndarray, Tensor)
"""What can be gone through again and again, so that nobody notices how far a loop has gone."""


def larger(test: Any, one: Any, other: Any) -> Any:
    """Return one of two values."""
    if not is_staged(test):
        return one if test else other
    return decided(test, lambda: one, lambda: other, Heap(()))


def choosing(function: Callable[..., Any], better: Callable[[Any, Any], Any]) -> Callable[..., Any]:
    """Return `max` or `min`, which give the first of the best items: NaN is no better than anything, nor worse."""

    def choice(*args: Any, key: Callable[[Any], Any] | None = None, **default: Any) -> Any:
        if not args or default.keys() - {"default"} or (default and len(args) > 1):
            return function(*args, **default)  # which says what is wrong
        items = list(args if len(args) > 1 else args[0])
        ranks = items if key is None else list(map(key, items))
        if not items:
            return function(items, **default)
        if not any(map(is_staged, ranks)):
            return items[function(range(len(items)), key=ranks.__getitem__)]
        found, rank = items[0], ranks[0]
        for item, other in zip(items[1:], ranks[1:], strict=True):
            test = better(other, rank)
            found = larger(test, item, found)
            rank = found if key is None else larger(test, other, rank)
        return found

    return choice


def truth(value: Any) -> Any:
    """Return whether Python takes a value for true."""
    return as_truth(value) if is_staged(value) else bool(value)


def deciding(function: Callable[..., Any], combined: Callable[..., Any]) -> Callable[..., Any]:
    """Return `any` or `all` of a list, tuple or array; Python may not ask for all items of anything else."""

    def decision(*args: Any) -> Any:
        items = args[0] if len(args) == 1 and isinstance(args[0], SIZED) else ()
        if not any(map(is_staged, items)):
            return function(*args)
        first, *rest = tuple(items)
        return weakened(combined(truth(first), *[lambda x=x: truth(x) for x in rest]))

    return decision


CHOICES: dict[Any, Callable[..., Any]] = {
    max: choosing(builtins.max, lambda a, b: a > b),
    min: choosing(builtins.min, lambda a, b: a < b),
    any: deciding(builtins.any, or_),
    all: deciding(builtins.all, and_),
}


class Items:
    """Stand in a `for` statement for an iterator that nobody else has, or sees how far it has gone."""

    def __init__(self, iterator: Iterator[Any]) -> None:
        self.iterator = iterator

    def __iter__(self) -> Iterator[Any]:
        return self.iterator


def items_of(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return what is called in place of `enumerate`, `zip` or `reversed` where a `for` statement calls it itself."""

    def call(*args: Any, **kwargs: Any) -> Any:
        found = function(*args, **kwargs)
        sources = args if function is zip else args[:1]
        return Items(found) if all(isinstance(x, (*SIZED, Items)) for x in sources) else found

    return call
