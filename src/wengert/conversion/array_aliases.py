"""Which arrays in a loop may share memory at the beginning of an iteration, and which may after the loop.

What an iteration leaves in a variable may be memory that a Tensor from outside has, or another variable. In the next
iteration a write to one of the two then changes the other, if it was so: the other is lost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from wengert.conversion.traced_regions import TracedRegion, enter_memory
from wengert.core.memory.memory_layout import strides_of
from wengert.core.memory.possible_aliases import SHARES, Plain, Share, may_share, memories_of, shared_with
from wengert.core.memory.views import base_and_path
from wengert.core.values.tensor import Tensor


class CarriedLeaf(NamedTuple):
    """Hold a leaf that a loop carries.

    Attributes:
        key: its place, and which leaf there it is.
        old: what it is before the loop.
        start: what it was at the beginning of the traced iteration; None if it was not carried then.
        end: what that iteration leaves.
    """

    key: Any
    old: Any
    start: Tensor | None
    end: Any


class Aliases:
    """Keep the pairs of carried leaves, or of one and a Tensor from outside, that may share memory.

    Attributes:
        rows: what owns the rows that the loop goes through.
        row: the row of the traced iteration.
        outside: the Tensors in pairs, by identity.
    """

    def __init__(self, text: str, rows: Tensor | None) -> None:
        self.text = text
        self.rows = None if rows is None else base_and_path(rows)[0]
        self.row: Tensor | None = None
        self.pairs: set[tuple[Any, Any]] = set()
        self.outside: dict[int, Tensor] = {}

    def base(self, value: Any) -> Tensor | None:
        """Return what owns the memory of an array; None for a number or an array without a Tensor."""
        if not is_memory(value):
            return None
        base = base_and_path(value)[0]
        return self.rows if base is self.row else base

    def start(self, leaves: Mapping[Any, Tensor]) -> None:
        """Let those that may share memory know of each other at the beginning of an iteration."""
        arrays = {**self.outside, **leaves}
        for one, other in self.pairs:
            if one in arrays and other in arrays:
                shared_with(arrays[one], arrays[other], self.text)

    def grow(self, values: Mapping[Any, Any], region: TracedRegion) -> bool:
        """Take in what may share memory among what leaves are, and with Tensors; tell whether there is more."""
        before = len(self.pairs)
        bases = {key: base for key, value in values.items() if (base := self.base(value)) is not None}
        for key, base in bases.items():
            found = {id(x): x for x in holders_outside(base, region)}
            self.outside.update(found)
            self.pairs |= {(key, identity) for identity in found}
        for (one, base), (other, another) in combinations(bases.items(), 2):
            if may_share(base, another):
                self.pairs.add((one, other))
        return len(self.pairs) > before

    def finish(
        self, leaves: Sequence[CarriedLeaf], results: Sequence[Any], region: TracedRegion, certain: bool
    ) -> None:
        """Enter which results may share memory, with one another or with a Tensor from before.

        `certain` says whether there was an iteration.
        """
        ends = [self.base(leaf.end) for leaf in leaves]
        olds = [self.base(leaf.old) for leaf in leaves]
        left = [end for end in ends if end is not None]
        starts = [leaf.start for leaf in leaves if leaf.start is not None]
        handed = [  # from one variable to another: after many iterations any may hold any of them
            old
            for leaf, old in zip(leaves, olds, strict=True)
            if old is not None and leaf.start is not None and shares_any(leaf.start, left)
        ]
        members: list[tuple[Tensor, Tensor]] = []
        for result, end, old in zip(results, ends, olds, strict=True):
            if not is_memory(result):
                continue
            sources = [] if old is None or certain else [old]
            if end is not None:
                sources += holders_outside(end, region) + (handed if shares_any(end, starts) else [])
                for other, another in members:
                    if may_share(end, another):
                        shared_with(result, other, self.text)
                members.append((result, end))
            for memory in [memory for source in sources for memory in memories_of(source)]:
                enter_memory(result, memory, Share(None, self.text))


def shares_any(base: Tensor, others: Sequence[Tensor]) -> bool:
    """Tell whether a Tensor may share memory with one of several."""
    return any(may_share(base, x) for x in others)


def holders_outside(base: Tensor, region: TracedRegion) -> list[Tensor]:
    """Return the Tensors that a piece did not make and that may share memory with one."""
    found = [x for memory in SHARES.get(id(base), ()) for x, _ in memory.living_holders()]
    return [x for x in (base, *found) if not region.has_made(x) and not stands_for_own(x, region)]


def stands_for_own(handle: Tensor, region: TracedRegion) -> bool:
    """Tell whether a handle stands for an ndarray that a piece made: each time it is traced there is another."""
    return type(handle._trace) is Plain and not region.heap.overlapping(handle._value)


def is_memory(value: Any) -> bool:
    """Tell whether a value is a Tensor that a write changes, not a scalar."""
    return type(value) is Tensor and (value.ndim > 0 or strides_of(value) is not None)
