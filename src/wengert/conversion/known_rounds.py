"""What a `for` statement goes through whose rounds are counted: numbers in equal steps, and rows of arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from wengert.conversion.traced_numbers import LoopIterator
from wengert.core.memory.left_rows import rows_in_order
from wengert.core.values.dispatch import as_tensor, weaken
from wengert.core.values.tensor import Tensor
from wengert.support.records import NamedTuple


class Numbers(NamedTuple):
    """Be whole numbers in equal steps."""

    start: int
    step: int

    def at(self, k: Any) -> Any:
        """Return the number after k others."""
        return self.start + (k if self.step == 1 else k * self.step)


Source: TypeAlias = Numbers | Tensor
"""Where a round takes a part of its item from: numbers, or the rows of an array."""


class KnownRounds(NamedTuple):
    """Hold what the rounds of a loop go through.

    Attributes:
        length: how many there are.
        sources: what each takes a part of its item from.
        build: the item, of these parts.
    """

    length: int
    sources: tuple[Source, ...]
    build: Callable[[Sequence[Any]], Any]

    def without_first(self) -> KnownRounds:
        """Return all of them but the first."""
        rest = [Numbers(x.at(1), x.step) if isinstance(x, Numbers) else x[1:] for x in self.sources]
        return self._replace(length=self.length - 1, sources=tuple(rest))

    def item(self, k: Any) -> Any:
        """Return the item of the round after k others."""
        return self.build([x.at(k) if isinstance(x, Numbers) else x[k] for x in self.sources])


def rounds_of(iterable: Any) -> KnownRounds | None:
    """Return what a loop over something goes through; None if its items are others than numbers and rows."""
    if isinstance(iterable, range):
        return KnownRounds(len(iterable), (Numbers(iterable.start, iterable.step),), lambda parts: parts[0])
    if isinstance(iterable, LoopIterator):
        rule = ITERATING.get(iterable.function)
        return None if rule is None else rule(*iterable.args, **iterable.kwargs)
    if type(iterable) in (list, tuple):
        return rounds_of_list(iterable)
    array = iterable
    if type(array) is np.ndarray and array.dtype.kind in "biufc":
        array = as_tensor(array)
    if type(array) is not Tensor or array.ndim == 0:
        return None
    return KnownRounds(len(array), (array,), lambda parts: parts[0])


def rounds_of_list(items: Sequence[Any]) -> KnownRounds | None:
    """Return the rounds of a loop over a list: of numbers of one type, of tuples, or of what are rows of one array."""
    kinds = set(map(type, items))
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is float:
        return KnownRounds(len(items), (as_tensor(np.array(items)),), lambda parts: weaken(parts[0]))
    if kind is not None and issubclass(kind, np.number) and np.dtype(kind).kind in "iufc":
        return KnownRounds(len(items), (as_tensor(np.array(items)),), lambda parts: parts[0])
    if kind is tuple:
        return zip_rounds(*zip(*items, strict=True)) if len({*map(len, items)}) == 1 and items[0] else None
    rows = rows_in_order(items)
    if rows is None:
        return None
    weak = items[0].weak
    return KnownRounds(len(items), (rows,), lambda parts: weaken(parts[0]) if weak else parts[0])


def enumerate_rounds(iterable: Any, start: Any = 0) -> KnownRounds | None:
    """Return the rounds of a loop over what `enumerate` gives."""
    found = rounds_of(iterable)
    if found is None or type(start) is not int:
        return None
    return KnownRounds(
        found.length, (Numbers(start, 1), *found.sources), lambda parts: (parts[0], found.build(list(parts[1:])))
    )


def zip_rounds(*iterables: Any, strict: Any = False) -> KnownRounds | None:
    """Return the rounds of a loop over what `zip` gives."""
    found = [rounds for x in iterables if (rounds := rounds_of(x)) is not None]
    counts = {x.length for x in found}
    if len(found) < len(iterables) or not found or (strict and len(counts) > 1):
        return None

    def build(parts: Sequence[Any]) -> tuple[Any, ...]:
        rest = list(parts)
        return tuple(x.build([rest.pop(0) for _ in x.sources]) for x in found)

    count = min(counts)
    sources = [
        source if isinstance(source, Numbers) or x.length == count else source[:count]
        for x in found
        for source in x.sources
    ]
    return KnownRounds(count, tuple(sources), build)


def reverse_rounds(iterable: Any) -> KnownRounds | None:
    """Return the rounds of a loop over what `reversed` gives."""
    found = rounds_of(iterable) if not isinstance(iterable, LoopIterator) else None
    if found is None:
        return None
    sources = [Numbers(x.at(found.length - 1), -x.step) if isinstance(x, Numbers) else x[::-1] for x in found.sources]
    return found._replace(sources=tuple(sources))


ITERATING: dict[Any, Callable[..., KnownRounds | None]] = {
    enumerate: enumerate_rounds,
    zip: zip_rounds,
    reversed: reverse_rounds,
}
