"""Lists that a loop appends to, and of which it reads no more than the last items: rows that it leaves behind.

The items that it reads, `xs[-1]`, are carried: an iteration begins with a list that ends with what stands for them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any, TypeAlias

import numpy as np

from wengert.control.ambiguous_identity import holders_in
from wengert.control.mutable_state import SequenceHolder
from wengert.control.reachable_state import ReachableState
from wengert.control.variable_places import VariablePlace
from wengert.conversion.carried_values import CarriedLeaf, CarriedPlace, holders_outside, is_memory, shares_any
from wengert.conversion.traced_regions import Note, TracedRegion, shared_text
from wengert.core.containers.tree_leaves import unflatten
from wengert.core.memory.left_rows import enter_row
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.possible_aliases import may_share, shared_with
from wengert.core.memory.views import base_and_path
from wengert.core.values.dispatch import is_weak, weaken
from wengert.core.values.tensor import Tensor, is_staged

MOST_LEAVES = 32
"""Arrays and numbers that are left behind in a round: of more, the loop is written out."""
Appended: TypeAlias = Sequence[tuple[str, int, Sequence[str]]]
"""The names of lists that a loop appends to, and of which it reads no more than so many of the last items; and,
of an attribute, all attributes that the loop asks the same object for."""
CONSTANT = (bool, int, float, complex, str, bytes, type(None), np.generic)


class LastItem(CarriedPlace):
    """Be the place that an item has from the end of a list, wherever that is."""

    def __init__(self, place: VariablePlace, note: Note, depth: int) -> None:
        super().__init__(place, note)
        self.depth = depth

    def value_left(self, region: TracedRegion) -> Any:
        """Return the item that is there after an iteration, which may have appended others."""
        identity = id(self.place.holder.target)
        return list(region.contents.get(identity, region.heap.kept[identity]).values())[-self.depth]

    def hold(self, found: Sequence[Any]) -> None:
        """Let the list as it is: what the loop appends comes behind it."""


class AppendedLists:
    """Hold the lists that a loop appends to, of which nothing else in it knows.

    Attributes:
        holders: the lists, by identity.
        depths: how many of the last items of each are read, likewise.
        columns: what the last iteration that was looked at appends to each, taken apart: variables
            are put back for that, so that it is done before they get what the loop leaves.
    """

    def __init__(self, heap: ReachableState, appended: Appended) -> None:
        self.heap = heap
        self.holders: dict[int, SequenceHolder] = {}
        self.depths: dict[int, int] = {}
        self.columns: list[list[tuple[list[Any], Any]]] = []
        for name, depth, attributes in appended:
            found = heap.entry(name)
            value = None if found is None else found[0].contents().get(found[1])
            holder = heap.holders.get(id(value))
            if type(value) is not list or not isinstance(holder, SequenceHolder) or len(value) < depth:
                continue
            if heap.times_found[id(value)] == 1 and heap.has_alone(name, attributes):
                self.holders[id(value)], self.depths[id(value)] = holder, depth

    def last_items(self, note: Note) -> list[LastItem]:
        """Return the places of the items that are read."""
        return [
            LastItem(self.heap.place(holder, len(holder.target) - depth), note, depth)
            for identity, holder in self.holders.items()
            for depth in range(1, self.depths[identity] + 1)
        ]

    def items(self, region: TracedRegion) -> list[list[Any]]:
        """Return what an iteration appends to each list."""
        kept = self.heap.kept
        return [list(region.contents.get(x, kept[x]).values())[len(kept[x]) :] for x in self.holders]

    def fit(self, region: TracedRegion) -> bool:
        """Tell whether an iteration appends arrays, numbers and constants, and changes the lists in no other way."""
        self.columns = [[region.taken_apart(item) for item in items] for items in self.items(region)]
        for identity in self.holders:
            before = self.items_before(identity, region)
            after = list(region.contents.get(identity, self.heap.kept[identity]).values())
            if len(after) < len(before) or any(map(is_other, before, after)):
                return False
        if len(self.leaves()) > MOST_LEAVES or not self.have_containers_alone(region):
            return False
        return all(is_left(x, region) for x in self.all_leaves())

    def items_before(self, identity: int, region: TracedRegion) -> list[Any]:
        """Return what a list holds at the beginning of an iteration."""
        return list(region.starts.get(identity, self.heap.kept[identity]).values())

    def have_containers_alone(self, region: TracedRegion) -> bool:
        """Tell whether containers in items that are read or appended are in nothing else that an iteration leaves.

        What is appended after the loop, and what other names have then, are containers of their own.
        """
        left = Counter(id(holder.target) for value in region.values_left() for holder in holders_in(value))
        read = (self.items_before(x, region)[-depth:] for x, depth in self.depths.items() if depth)
        held = (id(holder.target) for items in (*read, *self.items(region)) for x in items for holder in holders_in(x))
        return all(left[x] == (x not in self.heap.holders) for x in held)

    def stand_alone(self, carried: Sequence[CarriedLeaf], written: bool) -> bool:
        """Tell whether nothing in the loop may write to what was appended before.

        `written` says whether an iteration writes to what another one left.
        """
        bases = [base_and_path(x)[0] for x in self.leaves() if is_memory(x)]
        if any(may_share(one, other) for one, other in combinations(bases, 2)):
            return False
        return not (written and any(is_memory(x.end) and shares_any(base_and_path(x.end)[0], bases) for x in carried))

    def all_leaves(self) -> list[Any]:
        """Return what an iteration appends, taken apart."""
        return [leaf for column in self.columns for leaves, _ in column for leaf in leaves]

    def leaves(self) -> list[Any]:
        """Return what is traced of what an iteration appends."""
        return list(filter(is_staged, self.all_leaves()))

    def share(
        self,
        region: TracedRegion,
        rows: Sequence[Tensor | list[Any]],
        carried: Sequence[CarriedLeaf],
        results: Sequence[Any],
    ) -> None:
        """Let the last item, and what is carried after the loop, know that they may be one array."""
        pairs = [(x, y) for x, y in zip(self.leaves(), rows, strict=True) if isinstance(y, Tensor)]
        for leaf, result in zip(carried, results, strict=True):
            for appended, array in pairs if is_memory(leaf.end) and is_memory(result) else ():
                if is_memory(appended) and may_share(base_and_path(leaf.end)[0], base_and_path(appended)[0]):
                    shared_with(result, array, shared_text(region.note))

    def extend(self, rows: Sequence[Tensor | list[Any]], count: int) -> None:
        """Append what all iterations leave, given as an array, or known numbers, for each leaf that is traced."""
        rest = iter(rows)
        columns = [
            [([(x, next(rest) if is_staged(x) else None) for x in leaves], form) for leaves, form in column]
            for column in self.columns
        ]
        for holder, column in zip(self.holders.values(), columns, strict=True):
            for place in range(count):
                for leaves, form in column:
                    holder.target.append(unflatten(form, [row_like(x, array, place) for x, array in leaves]))


def is_other(one: Any, other: Any) -> bool:
    """Tell whether two values are different objects."""
    return one is not other


def is_left(leaf: Any, region: TracedRegion) -> bool:
    """Tell whether a leaf is a constant, or an array that an iteration has made and that lies in C order."""
    if not is_staged(leaf):
        return isinstance(leaf, CONSTANT)
    if strides_of(leaf) is not None:
        return False
    if not is_memory(leaf):
        return True
    base = base_and_path(leaf)[0]
    return region.has_made(base) and not holders_outside(base, region)  # a row by a traced number is of another array


def row_like(leaf: Any, rows: Tensor | list[Any] | None, place: int) -> Any:
    """Return a row of what iterations leave of a leaf."""
    if rows is None:
        return leaf
    if isinstance(rows, list):
        return rows[place]
    found = rows[place]
    return enter_row(weaken(found) if is_weak(leaf) else found, rows, place)
