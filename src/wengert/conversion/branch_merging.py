"""What two branches, traced one beside the other, leave: one value for each place, of the branch that is taken."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from functools import partial
from operator import itemgetter
from types import SimpleNamespace
from typing import Any, NoReturn, TypeAlias

import numpy as np

from wengert.control.ambiguous_identity import is_unchangeable, keep_apart
from wengert.control.cond import cond
from wengert.control.mutable_state import AttributesHolder, BytesHolder, RandomHolder, holder_of
from wengert.control.reachable_state import ReachableState, is_numeric_array
from wengert.control.variable_places import (
    RETURNED,
    Contents,
    HalfDefined,
    Holder,
    Undefined,
    VariablePlace,
    is_undefined,
    suggest_instead,
    value_text,
)
from wengert.control.zero_sequence import zeros_like
from wengert.conversion.traced_numbers import (
    IntegerAlternatives,
    alternatives_of,
    common_aval,
    differ_in_room,
    enter_alternatives,
    has_alternatives,
)
from wengert.conversion.traced_regions import (
    Note,
    TracedRegion,
    common_strides,
    enter_memory,
    give_strides,
    is_array,
    is_same,
    operand_of,
    shared_text,
    take_alike,
)
from wengert.core.containers.container_classes import REGISTERED, is_dataclass
from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.memory.memory_layout import Strides, is_scalar
from wengert.core.memory.possible_aliases import SHARES, Share, SharedMemory, memories_of
from wengert.core.memory.views import base_and_path
from wengert.core.values.aval import Aval, aval_of, is_number
from wengert.core.values.tensor import Tensor
from wengert.errors import GraphError, describe
from wengert.support.function_contents import UNBOUND

Pair: TypeAlias = Sequence[Any]
"""What the two branches give of something."""
Take: TypeAlias = Callable[[list[Any]], Any]
"""How to get a value from the results of the branch taken."""
ELSEWHERE = Share(False)
"""How a value has a memory that it has only where the other branch is taken."""
TRUTH = Aval((), np.dtype(np.bool_))
PLAIN_NEW: Any = object.__new__


class Merge:
    """Find what two branches give in common.

    Attributes:
        left: which branches return from the function for sure, so that nobody reads what its variables hold after them.
        taken: how to get the values that have been merged, by their identities in both branches.
        compared: the identities of objects whose attributes are being compared.
        twins: containers and objects that were there before, with what stands for them or for new ones.
        arrays: the positions of outputs that stand for one of two arrays, with these.
        plain: how often the branches leave the memory of an ndarray, by the identity of its owner.
        zeros: what stands for values that a branch does not give, kept because it is known by its identity.
        replaced: in how many places an ndarray gives way to what the branch taken gives, by identity.
    """

    def __init__(self, heap: ReachableState, regions: Sequence[TracedRegion], note: Note) -> None:
        self.heap = heap
        self.regions = regions
        self.note = note
        self.outputs: tuple[list[Any], list[Any]] = ([], [])
        self.avals: list[Aval] = []
        self.taken: dict[tuple[int, int], Take] = {}
        self.compared: set[tuple[int, int]] = set()
        self.test: Any = None
        self.twins: list[tuple[Any, Any]] = []
        self.inner = [region.stage for region in regions]
        self.arrays: list[tuple[int, Pair]] = []
        left = [x for region in regions for value in region.values_left() for x in leaves_of(value)]
        self.plain = Counter(map(owner_of, filter(is_numeric_array, left)))
        self.replaced: Counter[int] = Counter()
        self.zeros: list[Any] = []
        flags = [heap.holders[id(cell)] for name, cell in heap.cells.items() if name == RETURNED]
        self.left = [any(region.value(flag, "") is True for flag in flags) for region in regions]

    def run(self, test: Any) -> Sequence[Any]:
        """Return the outputs of the branch taken."""
        self.test = test
        if not self.avals and not any(region.checks for region in self.regions):
            return ()
        one, other = (r.function(xs, self.avals) for r, xs in zip(self.regions, self.outputs, strict=True))
        result: Sequence[Any] = cond(test, one, other, *map(operand_of, self.heap.handles.values()))
        return result

    def output(self, pair: Pair, aval: Aval) -> int:
        """Add an output to both branches; return its position."""
        for outputs, x in zip(self.outputs, pair, strict=True):
            outputs.append(x)
        self.avals.append(aval)
        return len(self.avals) - 1

    # Holders

    def changed_holders(self) -> list[Holder]:
        """Return the holders that either branch changed."""
        return [self.heap.holders[x] for x in {x: None for region in self.regions for x in region.contents}]

    def change(self, holder: Holder) -> Callable[[list[Any]], None]:
        """Return how to let a holder have what the branch taken gives it."""
        if isinstance(holder, BytesHolder):
            holder.refuse(self.note[2])
        identity = id(holder.target)
        kept = self.heap.kept[identity]
        one, other = (region.contents.get(identity, kept) for region in self.regions)
        if isinstance(holder, RandomHolder) and holder.differs(one, other):
            holder.refuse(self.note[2])
        if not holder.variable and holder.differs(dict.fromkeys(one), dict.fromkeys(other)):
            self.refuse(holder, one, other)
        takes: dict[Any, Take] = {}
        for key in {**kept, **one, **other}:
            pair = one.get(key, UNBOUND), other.get(key, UNBOUND)
            place = self.heap.place(holder, key)
            if pair[0] is not pair[1] or kept.get(key, UNBOUND) is not pair[0]:
                takes[key] = self.entry(place, pair)
                self.replaced[id(kept.get(key))] += 1
        resized = not holder.variable and holder.differs(dict.fromkeys(kept), dict.fromkeys(one))

        def assign(results: list[Any]) -> None:
            found = {key: take(results) for key, take in takes.items()}
            if resized:
                holder.restore({key: found.get(key, value) for key, value in one.items()})
                return
            for key, value in found.items():
                holder.write(key, value)

        return assign

    def refuse(self, holder: Holder, one: Contents, other: Contents) -> NoReturn:
        """Raise because the branches leave containers of different lengths or with different keys."""
        kind = type(holder.target).__name__
        raise GraphError(
            self.note[0],
            f"{holder.name} is a {kind} {contents_text(holder, one)} where the condition holds, and "
            f"{contents_text(holder, other)} where it does not",
            "both branches of a traced condition must leave as many items and the same keys in it",
            "Make them alike, or use an array and numpy.where",
            place=self.note[2],
        )

    def entry(self, place: VariablePlace, pair: Pair) -> Take:
        """Return how to get what an entry of a holder gets."""
        if place.variable and not place.hidden and sum(self.left) == 1 and not self.agree(pair):
            return self.only(self.left.index(False), pair)
        if any(map(is_undefined, pair)):
            return self.half_defined(place, pair)
        return self.value(place, pair)

    # Values

    def value(self, place: VariablePlace | str, pair: Pair) -> Take:
        """Return how to get the value that is one of two."""
        one, other = pair
        if one is other:
            return lambda _: one
        known = self.taken.get((id(one), id(other)))
        if known is None:
            known = self.taken[id(one), id(other)] = self.merge_different(place, pair)
        return known

    def merge_different(self, place: VariablePlace | str, pair: Pair) -> Take:
        """Return how to get the value that is one of two different ones."""
        if not self.agree(pair):
            return self.differing(place, pair)
        attributes = self.attributes(pair)
        if attributes is not None:
            entries = {key: self.value(place, both) for key, both in attributes.items()}
            kind = type(pair[0])
            return self.new(
                pair, lambda results: with_attributes(kind, {key: take(results) for key, take in entries.items()})
            )
        one, other, structure = self.taken_alike(pair)
        takes = [self.leaf(leaves) for leaves in zip(one, other, strict=True)]
        return self.new(pair, lambda results: unflatten(structure, [take(results) for take in takes]))

    def new(self, pair: Pair, take: Take) -> Take:
        """Return how to get what stands for two containers or objects, one of which may have been there before."""
        found: list[Any] = []
        olds, twins = [x for x in pair if id(x) in self.heap.holders or is_unchangeable(x, self.inner)], self.twins

        def take_once(
            results: list[Any],
        ) -> Any:  # holds neither the merge nor arrays, which would outlive the statement
            if not found:
                found.append(take(results))
                twins.extend((old, found[0]) for old in olds)
            return found[0]

        return take_once

    def keep_apart(self, test: Any) -> None:
        """Let what was there before and what stands for it stay as they are, if the former has another name."""
        for old, new in self.twins:
            keep_apart(old, new, self.heap.around, test, self.note, self.inner)

    def taken_alike(self, pair: Pair) -> tuple[list[Any], list[Any], Any]:
        """Return what each branch leaves of a value, taken apart alike."""
        return take_alike(pair, self.heap.holders, [region.taken_apart for region in self.regions])

    def agree(self, pair: Pair) -> bool:
        """Tell whether two values have the same containers, shapes and dtypes, or are the same."""
        if any(map(is_undefined, pair)):
            return False
        attributes = self.attributes(pair)
        if attributes is not None:
            return self.attributes_agree(pair, attributes)
        one, other, _ = self.taken_alike(pair)
        return all(is_same(a, b) or common_aval(a, b) is not None for a, b in zip(one, other, strict=True))

    def attributes(self, pair: Pair) -> dict[str, Pair] | None:
        """Return what the branches leave in each attribute of two objects of one class, if one of them is new.

        None for other values, for containers that are alike but for their leaves, and for those of registered classes,
        which say themselves what of them is static.
        """
        kind: Any = type(pair[0])
        if kind is not type(pair[1]) or is_array(pair[0]) or (kind in REGISTERED and not is_dataclass(kind)):
            return None
        if kind.__new__ is not PLAIN_NEW and kind is not SimpleNamespace:
            return None
        holders = [x for x in (holder_of(x, "") for x in pair) if isinstance(x, AttributesHolder)]
        if len(holders) < len(pair) or all(id(x) in self.heap.holders for x in pair):
            return None
        if self.taken_alike(pair)[2] is not None:
            return None
        one, other = (r.contents.get(id(h.target), h.contents()) for r, h in zip(self.regions, holders, strict=True))
        return {key: (one[key], other[key]) for key in one} if one.keys() == other.keys() else None

    def attributes_agree(self, pair: Pair, attributes: Mapping[str, Pair]) -> bool:
        """Tell whether all attributes of two objects agree; not those of objects that lead back to themselves."""
        identity = id(pair[0]), id(pair[1])
        if identity in self.compared:
            return False
        self.compared.add(identity)
        try:
            return all(a is b or self.agree((a, b)) for a, b in attributes.values())
        finally:
            self.compared.discard(identity)

    def leaf(self, pair: Pair) -> Take:
        """Return how to get one leaf."""
        one, other = pair
        if is_same(one, other) and (one is other or self.disposable(pair)):
            return lambda _: one
        known = self.taken.get((id(one), id(other)))
        if known is None:
            aval = common_aval(one, other)
            assert aval is not None, "agree has found that there is one"
            ends = [region.end_of(x) for region, x in zip(self.regions, pair, strict=True)]
            position = self.output(ends, aval)
            known = partial(give_order, position, common_strides(*ends))
            if differ_in_room(aval_of(one), aval_of(other)) or any(map(has_alternatives, pair)):
                halves = [itemgetter(0) if is_number(x) else self.half_leaf(half, x) for half, x in enumerate(pair)]
                known = partial(give_alternatives, self, known, pair, halves)
            self.taken[id(one), id(other)] = known
            self.arrays += [(position, pair)] if aval.shape or common_strides(*ends) is not None else []
        return known

    def disposable(self, pair: Pair) -> bool:
        """Tell whether equal constants are in nobody's hands besides, so that either may be taken for both."""
        return not all(map(is_numeric_array, pair)) or not any(
            self.heap.overlapping(x) or self.plain[owner_of(x)] > 1 for x in pair
        )

    def shared_arrays(self) -> list[int]:
        """Return the ndarrays that results may be and that others hold too."""
        return self.heap.find_shared([x for _, pair in self.arrays for x in pair], self.replaced)

    def relations(self, test: Any, shared: Container[int]) -> Callable[[list[Any]], None]:
        """Return how to enter which results may be memory that is also held by others, or by another result.

        What a branch made itself, and leaves in one place only, is in nobody's hands any more.
        """
        arrays = [
            (position, [region.handle_of(x, shared) for region, x in zip(self.regions, pair, strict=True)])
            for position, pair in self.arrays
        ]
        bases = Counter(id(base_and_path(x)[0]) for _, pair in arrays for x in pair if type(x) is Tensor)
        found: list[tuple[int, SharedMemory, str, Take]] = []
        for position, pair in arrays:
            memories: dict[SharedMemory, list[Share]] = {}
            for half, (region, x) in enumerate(zip(self.regions, pair, strict=True)):
                for memory, share in shares_of(x, region, bases, self.note).items():
                    memories.setdefault(memory, [ELSEWHERE, ELSEWHERE])[half] = share
            for memory, shares in memories.items():
                found.append((position, memory, *self.truth(test, shares)))

        def relate(results: list[Any]) -> None:
            for position, memory, text, take in found:
                enter_memory(results[position], memory, Share(take(results), text))

        return relate

    def truth(self, test: Any, shares: Sequence[Share]) -> tuple[str, Take]:
        """Return whether a memory is that of the value taken, by how it is that of each of the two."""
        one, other = (share.truth for share in shares)
        if one is None or other is None:
            return next(share.text for share in shares if share.truth is None), lambda _: None
        if one is True or other is True:
            if one is other:
                return "", lambda _: True
            if one is False or other is False:
                truth = test if one is True else np.logical_not(test)
                return "", lambda _: truth
        ends = [region.end_of(share.truth) for region, share in zip(self.regions, shares, strict=True)]
        return "", itemgetter(self.output(ends, TRUTH))

    def differing(self, place: VariablePlace | str, pair: Pair) -> Take:
        """Let a place be undefined because the branches give it different kinds of values."""
        name = place if isinstance(place, str) else place.name
        one, other = map(value_text, pair)
        if one == other and type(pair[0]) in REGISTERED:
            given = f"{name} is {one} where the condition holds, and one with other static data where it does not"
            needed = "what is static is the same whichever branch is taken"
            return self.leave_undefined(place, describe("if", given, needed, "Make it alike, or a leaf"), (0, 1))
        if one == other:
            given = f"{name} is {one} where the condition holds, and another one where it does not"
            needed = "a traced condition chooses arrays and numbers, and not which of two objects is meant"
            remedy = suggest_instead(pair, "Choose what is in them, or copy what is chosen in both branches")
            text = describe("if", given, needed, remedy)
            return self.leave_undefined(place, text, (0, 1))
        text = describe(
            "if",
            f"{name} is {one} where the condition holds, and {other} where it does not",
            "both branches of a traced condition must give the same containers, shapes and dtypes",
            suggest_instead(pair, "Make them alike"),
        )
        return self.leave_undefined(place, text, (0, 1))

    def half_defined(self, place: VariablePlace, pair: Pair) -> Take:
        """Let a place be undefined that only one of the branches, or none, gives a value."""
        values, truths = zip(*map(halves_of, pair), strict=True)
        halves = [k for k, truth in enumerate(truths) if truth is not False]
        if not halves:
            return lambda _: pair[0]
        half = halves[0]
        before = next((x for x in pair if type(x) is Undefined), None)
        if before is not None and (place.hidden or not place.variable):
            before.refuse()
        if before is not None:
            return lambda _: before  # it has a value: a statement before left no single one
        if place.hidden:
            return self.only(half, pair)
        text = describe(
            "if",
            f"{place.name} gets a value only where the condition {'holds' if half == 0 else 'does not hold'}",
            "both branches of a traced condition must give a value to a variable that is used after them",
            "Set it before the `if`, or in the other branch",
        )
        is_read = place.variable and place.name in self.heap.halves
        both = values if len(halves) == 2 else self.beside_zeros(half, values) if is_read else None
        if both is None or not is_read:
            return self.leave_undefined(place, text, (half,))
        text += place.where(half)
        take, truth = self.value(place, both), self.known_truth(truths)

        def take_known(results: list[Any]) -> Any:
            value = take(results)
            return value if isinstance(value, Undefined) else HalfDefined(text, value, truth(results))

        return take_known

    def beside_zeros(self, half: int, pair: Pair) -> Pair | None:
        """Return what one branch leaves, and zeros for the other; None of what holds more than arrays and numbers."""
        leaves, structure = self.regions[half].taken_apart(pair[half])
        if not all(is_array(x) or is_number(x) for x in leaves):
            return None
        zeros = unflatten(structure, list(map(zeros_like, leaves)))
        self.zeros.append(zeros)
        return (pair[half], zeros) if half == 0 else (zeros, pair[half])

    def known_truth(self, pair: Pair) -> Take:
        """Return whether a variable has a value, by whether it has one after each branch."""
        if pair[0] is pair[1]:
            return lambda _: pair[0]
        if all(isinstance(truth, bool) for truth in pair):
            return lambda _: self.test if pair[0] else np.logical_not(self.test)
        ends = [region.end_of(truth) for region, truth in zip(self.regions, pair, strict=True)]
        return itemgetter(self.output(ends, TRUTH))

    def leave_undefined(self, place: VariablePlace | str, text: str, halves: Sequence[int]) -> Take:
        """Let a variable be undefined; raise for what cannot be, such as items and the value of an expression."""
        lines = "" if isinstance(place, str) else "".join(map(place.where, halves))
        text += lines or f"\n  {self.note[2]}"
        if isinstance(place, str) or place.hidden or not place.variable:
            raise GraphError(text)
        return lambda _: Undefined(text)

    def only(self, half: int, pair: Pair) -> Take:
        """Let a place hold what one of the branches gives, zeros after the other: nobody reads it then."""
        value = pair[half]
        if type(value) is HalfDefined:
            reason, (inner, truth) = value.without_value(), value.halves()
            both = self.only(half, (inner, inner)), self.half_leaf(half, truth)
            return lambda results: reason.with_value(*(take(results) for take in both))
        if is_undefined(value):
            return lambda _: value
        leaves, structure = self.regions[half].taken_apart(value)
        takes: list[Take] = [self.half_leaf(half, leaf) for leaf in leaves]
        return lambda results: unflatten(structure, [take(results) for take in takes])

    def half_leaf(self, half: int, leaf: Any) -> Take:
        """Return how to get one leaf of what one of the branches gives."""
        region = self.regions[half]
        if not (is_array(leaf) or is_number(leaf)) or (type(leaf) is Tensor and not region.has_made(leaf)):
            return lambda _: leaf
        aval = aval_of(leaf)
        end = region.end_of(leaf)
        ends = [zeros_like(end)] * 2
        ends[half] = end
        take = itemgetter(self.output(ends, aval))
        known = alternatives_of(leaf)
        if known is None:
            return take
        parts = [self.half_leaf(half, x) for x in known]
        return lambda results: enter_alternatives(
            take(results), IntegerAlternatives(*[part(results) for part in parts])
        )


def with_attributes(kind: Any, attributes: Mapping[str, Any]) -> Any:
    """Return an object of a class with these attributes."""
    found = kind.__new__(kind)
    AttributesHolder(found, "").restore(dict(attributes))
    return found


def give_order(position: int, strides: Strides, results: list[Any]) -> Any:
    """Return a result, which lies in memory as what it is one of does."""
    results[position] = give_strides(results[position], strides)
    return results[position]


def give_alternatives(merge: Merge, take: Take, pair: Pair, halves: Sequence[Take], results: list[Any]) -> Any:
    """Return an integer that is one of two, of which operators must know the types."""
    one, other = (x if is_number(x) else half(results) for x, half in zip(pair, halves, strict=True))
    return enter_alternatives(take(results), IntegerAlternatives(merge.test, one, other))


def shares_of(value: Any, region: TracedRegion, bases: Counter[int], note: Note) -> dict[SharedMemory, Share]:
    """Return which memories a value is that a branch leaves, if others may hold them too."""
    if type(value) is not Tensor:
        return {}
    if is_scalar(region.end_of(value)):
        return {}
    base, path = base_and_path(value)
    if id(base) not in SHARES and bases[id(base)] == 1 and region.has_made(base):
        return {}
    memories = memories_of(base)
    if not path:
        return memories
    return {memory: Share(None, share.text or shared_text(note)) for memory, share in memories.items()}


def halves_of(value: Any) -> tuple[Any, Any]:
    """Return the value of a variable, UNBOUND if there is none, and whether it has it, which may be traced."""
    if type(value) is HalfDefined:
        return value.halves()
    return (UNBOUND, False) if is_undefined(value) else (value, True)


def leaves_of(value: Any) -> Sequence[Any]:
    """Return the leaves of what a branch leaves."""
    return () if is_undefined(value) else flatten(value)[0]


def owner_of(array: np.ndarray[Any, Any]) -> int:
    """Return the identity of what owns the memory of an ndarray."""
    return id(array if array.base is None else array.base)


def contents_text(holder: Holder, contents: Contents) -> str:
    """Return what an error says of the contents of a container."""
    if isinstance(holder.target, dict | set):
        return f"with the keys {list(contents)}"
    return f"of {len(contents)} items"
