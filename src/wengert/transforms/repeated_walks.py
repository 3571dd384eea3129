"""Walks through what functions hold, gone again: where the same code holds the same, but for other arguments.

A function made anew at each call has the code, and leads to what, the one before did; what differs are the floats and
arrays in its variables. To look at the places that these were in takes a tenth of a walk through all that can be
reached (`outer_values.py`). What only equals itself, as modules and classes, is compared by identity, with what was
read there (`captured_reads.py`).
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType
from typing import Any

from wengert.core.containers.container_classes import is_dataclass
from wengert.core.containers.tree_leaves import BARE, children_of, flatten, is_structure
from wengert.core.graph.identity import elements_for_key
from wengert.support.attributes import own_attributes
from wengert.support.function_contents import UNBOUND
from wengert.transforms.captured_reads import CapturedReads, are_identical

UNTRACKED = -1
"""The place of what is not looked at again by itself, but compared by identity with all that it leads to."""
STATIC = frozenset((int, bool, str, bytes, type(None)))
"""Classes of numbers and texts that are; see `is_static`."""
EMPTY: tuple[()] = ()
"""The tuple without items, of which there is one."""
Check = Callable[[Any, Any, list[Any], list[Any]], bool]
"""Of a value, what it was, all values so far, and the arguments: whether it fits; it adds what it leads to."""


def is_static(value: Any) -> bool:
    """Tell whether a value is a constant of programs, and equal to what is equal to it."""
    return type(value) in STATIC or value is EMPTY or is_structure(value)


class WalkRecord:
    """Remember the places that a walk goes through, each by its number, and what stands there but for arguments.

    Attributes:
        is_whole: whether all arguments were at such places.
        fixed: the identities of functions and arrays that are no arguments.
    """

    def __init__(self, count: int) -> None:
        self.is_whole = True
        self.count = count
        self.lone_places: list[int] = []  # of what there is one of, which C compares
        self.lone: list[Any] = []
        self.steps: list[tuple[int, Check, Any]] = []
        self.numbers: dict[int, int] = {}
        self.own: list[int] = []  # places of functions and arrays that may be others, which have to differ
        self.fixed: set[int] = set()

    def expect(self, place: int, check: Check, known: Any, leads_to: int = 0) -> int:
        """Remember what stands at a place; return the place of the first of what it leads to."""
        if place == UNTRACKED:
            return UNTRACKED
        self.steps.append((place, check, known))
        self.count += leads_to
        return self.count - leads_to

    def expect_constant(self, place: int, value: Any) -> None:
        """Remember a number, a text or the like, that is compared by what it is."""
        if place != UNTRACKED and (value is None or value is True or value is False or value is EMPTY):
            self.lone_places.append(place)
            self.lone.append(value)
            return
        self.expect(place, is_equal, value if is_static(value) else (type(value), elements_for_key(value)))

    def expect_same(self, place: int, value: Any) -> None:
        """Remember what only equals itself."""
        self.fixed.add(id(value))
        self.expect(place, is_same, value)

    def expect_argument(self, place: int, value: Any, number: int) -> None:
        """Remember the place of an argument, by its number."""
        if place == UNTRACKED:
            self.is_whole = False
        elif hasattr(value, "dtype"):
            self.see(place, value)
            self.expect(place, is_array_like, (type(value), value.dtype.str, value.shape, number))
        else:
            self.expect(place, is_number, (type(value), number))

    def expect_again(self, place: int, value: Any) -> None:
        """Remember what came up before."""
        number = self.numbers.get(id(value))
        if number is None:
            self.expect(place, is_same, value)
        else:
            self.expect(place, is_again, number)

    def see(self, place: int, value: Any) -> None:
        """Remember where something came up that may be another one next time."""
        if place != UNTRACKED:
            self.numbers[id(value)] = place
            self.own.append(place)

    def expect_function(self, place: int, function: FunctionType) -> tuple[int, int]:
        """Remember a function; return the places of the first of its variables, and of its attributes and defaults."""
        cells, attributes = len(function.__closure__ or ()), own_attributes(function)
        known = function.__code__, function.__globals__, tuple(attributes)
        first = self.expect(place, is_function, known, cells + 2 + len(attributes))
        self.see(place, function)
        return first, UNTRACKED if first == UNTRACKED else first + cells

    def expect_bound(self, place: int, value: Any) -> int:
        """Remember a method or a partial; return the place of its function, before what is bound."""
        method = type(value) is MethodType
        return self.expect(place, is_method if method else is_partial, None, 2 if method else 3)

    def expect_names(self, place: int, space: dict[str, Any], names: Sequence[str]) -> int:
        """Remember the names of global variables of a function; return the place of the first."""
        return self.expect(place, has_names, (space, names), len(names)) if names else UNTRACKED

    def expect_container(self, place: int, value: Any, structure: Any, leaves: Sequence[Any], parts: Any) -> int:
        """Remember a container with leaves, and containers in it; return the place of the first leaf.

        After the leaves there are attributes of a dataclass that are not its fields.
        """
        kind = type(value)
        if place == UNTRACKED:
            return UNTRACKED
        self.numbers[id(value)] = place
        if kind in (tuple, list) and len(leaves) == len(value) and all(map(operator.is_, leaves, value)):
            return self.expect(place, has_items, (kind, len(leaves)), len(leaves))
        names: tuple[str, ...] = ()
        more: list[str] = []
        if kind not in BARE:
            names, more = tuple(own_attributes(value)), further_attributes(value)
            self.is_whole &= is_dataclass(kind) and all(x in kind.__dataclass_fields__ for x in names if x not in more)
        self.is_whole &= all(part is value or type(part) in BARE for part in parts)
        return self.expect(place, has_leaves, (kind, structure, names, more, []), len(leaves) + len(more))


class RepeatedWalk:
    """Be a walk that was made, to be gone again for other functions of the same code.

    Args:
        record: of its places.
        reads: of what only equals itself.
        key: with the elements of arrays that `reads` looked at.
        arguments: how many there were.
    """

    def __init__(self, record: WalkRecord, reads: CapturedReads, key: Sequence[Any], arguments: int) -> None:
        self.record, self.reads, self.key, self.arguments = record, reads, key, arguments

    def arguments_in(self, values: Sequence[Any]) -> list[Any] | None:
        """Return the arguments that values hold; None if they hold something else besides."""
        found, leaves = list(values), [None] * self.arguments
        for place, check, known in self.record.steps:
            if not check(found[place], known, found, leaves):
                return None
        if not all(map(operator.is_, map(found.__getitem__, self.record.lone_places), self.record.lone)):
            return None
        own = {id(found[place]) for place in self.record.own}
        if len(own) != len(self.record.own) or not self.record.fixed.isdisjoint(own):
            return None
        return leaves if self.reads.are_same(self.key) else None


def further_attributes(value: Any) -> list[str]:
    """Return the names of attributes of a container that are not its items."""
    inside = set(map(id, children_of(value)))
    return [name for name, x in own_attributes(value).items() if id(x) not in inside]


def places_from(first: int, count: int) -> Sequence[int]:
    """Return the numbers of places after each other, none of which is tracked unless the first is."""
    return [UNTRACKED] * count if first == UNTRACKED else range(first, first + count)


def code_of(value: Any) -> int | None:
    """Return what stands for the code of a function, a method or a partial: hashes of code go over all of it.

    It is its identity, which nothing else has as long as a walk that leads to it is kept.
    """
    while type(value) is functools.partial:
        value = value.func
    if type(value) is MethodType:
        value = value.__func__
    return id(value.__code__) if type(value) is FunctionType else None


def is_equal(value: Any, known: Any, _found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether a number, a text or the like is the same, NaN and the sign of zero included."""
    if type(known) is tuple:
        return type(value) is known[0] and elements_for_key(value) == known[1]
    return type(value) is type(known) and bool(value == known)


def is_same(value: Any, known: Any, _found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether something is the same object."""
    return value is known


def is_again(value: Any, known: int, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether something is what came up at another place."""
    return value is found[known]


def is_number(value: Any, known: Any, _found: list[Any], leaves: list[Any]) -> bool:
    """Tell whether there is a number of some class, which is an argument."""
    leaves[known[1]] = value
    return type(value) is known[0]


def is_array_like(value: Any, known: Any, _found: list[Any], leaves: list[Any]) -> bool:
    """Tell whether there is an array of some class, dtype and shape, which is an argument."""
    kind, dtype, shape, number = known
    leaves[number] = value
    return type(value) is kind and value.shape == shape and value.dtype.str == dtype


def is_function(value: Any, known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether there is a function of some code and module, with attributes of some names."""
    if type(value) is not FunctionType:
        return False
    code, space, names = known
    if value.__code__ is not code or value.__globals__ is not space or tuple(value.__dict__) != names:
        return False
    try:
        found += [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:  # a variable has no value
        return False
    found += value.__defaults__, value.__kwdefaults__, *value.__dict__.values()
    return True


def has_names(_value: Any, known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Add what stands in a namespace by some names."""
    space, names = known
    found += [space.get(name, UNBOUND) for name in names]
    return True


def has_items(value: Any, known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether there is a tuple or list of some length."""
    if type(value) is not known[0] or len(value) != known[1]:
        return False
    found += value
    return True


def has_leaves(value: Any, known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether there is a container of some structure, and of attributes of some names.

    An object whose attributes are the constants they were a moment ago is not taken apart again.
    """
    kind, structure, names, more, last = known
    if type(value) is not kind or (names and tuple(value.__dict__) != names):
        return False
    held = tuple(value.__dict__.values()) if names else ()
    if last and are_identical(held, last[0]):
        found += last[1]
        return True
    leaves, other = flatten(value)
    if other != structure:
        return False
    leaves = [*leaves, *[value.__dict__[name] for name in more]]
    if held and all(map(is_settled, held)):
        last[:] = held, leaves
    found += leaves
    return True


def is_settled(value: Any) -> bool:
    """Tell whether a value never changes, and keeps nothing alive: numbers and texts, tuples of them, functions."""
    if type(value) is tuple:
        return all(type(x) in STATIC or type(x) is float for x in value)
    plain = type(value) is FunctionType and value.__closure__ is None
    return plain or type(value) in STATIC or type(value) is float


def is_method(value: Any, _known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether there is a method."""
    if type(value) is not MethodType:
        return False
    found += value.__func__, value.__self__
    return True


def is_partial(value: Any, _known: Any, found: list[Any], _leaves: list[Any]) -> bool:
    """Tell whether there is a function with arguments that are bound."""
    if type(value) is not functools.partial:
        return False
    found += value.func, value.args, value.keywords
    return True
