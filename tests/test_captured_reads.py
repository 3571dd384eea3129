"""What functions capture is looked at where it was read: what changes is told, and what does not is told at once."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections import OrderedDict, defaultdict, deque
from typing import Any

import numpy as np
import pytest
import scipy.sparse

import wengert.scipy.sparse
from wengert.transforms.captured_state import CapturedState
from wengert.transforms.outer_values import OuterValues
from wengert.transforms.repeated_walks import RepeatedWalk

MODULE = types.ModuleType("users_module_of_reads")


class Base:
    shift = 1.0

    def scale(self, x):
        return self.factor * x


class Held(Base):
    def __init__(self):
        self.factor, self.table, self.parts = 2.0, np.arange(4), [1.0, {"a": np.ones(3)}]

    def value(self, x):
        return self.scale(x) + self.shift


class Slots:
    __slots__ = ("factor",)

    def __init__(self):
        self.factor = 2.0


@dataclasses.dataclass
class Fields:
    factor: float

    def __post_init__(self):
        self.more = 1.0

    def value(self, x):
        return self.factor * x


class Grown(list):
    """Be a list with attributes."""


held, slots, listed, mapped, ordered, queue = Held(), Slots(), [1.0, 2.0], {"a": 1.0}, OrderedDict(a=1.0), deque([1.0])
missing, elements, small, large = defaultdict(float), {1.0}, np.ones(3), np.ones(5000)
partial = functools.partial(lambda x, factor: x * factor, factor=2.0)

inside, fields, grown = [[1.0], {"a": ([2.0], None)}], Fields(2.0), Grown([1.0])
grown.more = 1.0
by_rows, by_places = scipy.sparse.csr_array(np.eye(3)), scipy.sparse.coo_array(np.eye(3))
of_ours = wengert.scipy.sparse.csr_array(np.eye(3))


def default(x, factor=2.0):
    return x * factor


def default_inside(x, factors=([2.0],)):
    return x * factors[0][0]


def read_module(x):
    return x * getattr(MODULE, "factor", 1.0)


CASES: dict[str, tuple[Any, Any, Any, bool]] = {
    "attribute": (held.value, lambda: setattr(held, "factor", 3.0), lambda: setattr(held, "factor", 2.0), True),
    "new attribute": (held.value, lambda: setattr(held, "more", 1), lambda: delattr(held, "more"), True),
    "elements": (held.value, lambda: held.table.__setitem__(1, 9), lambda: held.table.__setitem__(1, 1), True),
    "elements inside": (
        held.value,
        lambda: held.parts[1]["a"].__setitem__(2, 0.0),
        lambda: held.parts[1]["a"].__setitem__(2, 1.0),
        True,
    ),
    "attribute of a class": (
        held.value,
        lambda: setattr(Base, "shift", 2.0),
        lambda: setattr(Base, "shift", 1.0),
        True,
    ),
    "class": (held.value, lambda: setattr(held, "__class__", Base), lambda: setattr(held, "__class__", Held), True),
    "slot": (lambda x: x * slots.factor, lambda: setattr(slots, "factor", 1.0), lambda: None, True),
    "item": (lambda x: x * listed[0], lambda: listed.__setitem__(1, 5.0), lambda: None, True),
    "new item": (lambda x: x * listed[0], lambda: listed.append(5.0), lambda: None, True),
    "value": (lambda x: x * mapped["a"], lambda: mapped.__setitem__("a", 5.0), lambda: None, True),
    "ordered": (lambda x: x * ordered["a"], lambda: ordered.__setitem__("a", 5.0), lambda: None, True),
    "queue": (lambda x: x * queue[0], lambda: queue.append(5.0), lambda: None, True),
    "default of a dictionary": (
        lambda x: x * missing["a"],
        lambda: setattr(missing, "default_factory", int),
        lambda: None,
        False,
    ),
    "set": (lambda x: x * (1.0 in elements), lambda: elements.add(2.0), lambda: None, True),
    "small array": (lambda x: x * small, lambda: small.__setitem__(0, -0.0), lambda: small.__setitem__(0, 1.0), True),
    "large array": (lambda x: x * large, lambda: large.__setitem__(0, 5.0), lambda: None, True),
    "keyword of a partial": (partial, lambda: partial.keywords.__setitem__("factor", 3.0), lambda: None, True),
    "default": (default, lambda: setattr(default, "__defaults__", (3.0,)), lambda: None, True),
    "default inside": (
        default_inside,
        lambda: default_inside.__defaults__[0][0].__setitem__(0, 3.0),
        lambda: None,
        True,
    ),
    "item inside": (lambda x: x * inside[0][0], lambda: inside[0].__setitem__(0, 5.0), lambda: None, True),
    "value inside": (lambda x: x * inside[1]["a"][0][0], lambda: inside[1]["a"][0].append(5.0), lambda: None, True),
    "beside fields": (lambda x: x * fields.more, lambda: setattr(fields, "more", 5.0), lambda: None, False),
    "in a list beside fields": (
        lambda x, held=(1, [fields]): x * held[1][0].more,
        lambda: setattr(fields, "more", 7.0),
        lambda: None,
        False,
    ),
    "method of a dataclass": (
        lambda x: fields.value(x),
        lambda: setattr(Fields, "value", lambda self, x: x),
        lambda: None,
        False,
    ),
    "attribute of a list": (lambda x: x * grown.more, lambda: setattr(grown, "more", 5.0), lambda: None, False),
    "attribute of a function": (default, lambda: setattr(default, "more", 1.0), lambda: None, True),
    "elements of a matrix": (lambda x: by_rows @ x, lambda: by_rows.data.__setitem__(0, 5.0), lambda: None, True),
    "places in a matrix": (lambda x: by_rows @ x, lambda: by_rows.indices.__setitem__(1, 0), lambda: None, True),
    "other elements": (lambda x: by_rows @ x, lambda: setattr(by_rows, "data", np.ones(3)), lambda: None, True),
    "coordinates": (lambda x: by_places @ x, lambda: by_places.coords[1].__setitem__(1, 0), lambda: None, True),
    "matrix of ours": (lambda x: of_ours @ x, lambda: setattr(of_ours, "data", np.ones(3)), lambda: None, False),
    "name in a module": (
        read_module,
        lambda: setattr(MODULE, "factor", 3.0),
        lambda: delattr(MODULE, "factor"),
        True,
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_changes_of_what_is_captured_are_told(name: str) -> None:
    function, change, restore, soon = CASES[name]
    state = CapturedState(lambda: OuterValues((function,), lifted=False))
    state.note()
    outer, key = state.noted
    assert outer is not None
    assert outer.are_same(key) == soon  # without another walk
    assert state.is_same()
    walk = OuterValues((function,)).as_repeated()
    require_same_walk(walk, function)
    change()
    assert not state.is_same()
    require_same_walk(walk, function)
    restore()
    state.note()
    assert state.is_same()


def test_equal_objects_in_place_of_others_are_looked_at_once() -> None:
    state = CapturedState(lambda: OuterValues((held.value,), lifted=False))
    state.note()
    before, held.factor = state.key, float("2.0")
    assert state.is_same()
    outer, key = state.noted
    assert outer is not None
    assert outer.are_same(key)
    assert state.key is before


def require_same_walk(walk: RepeatedWalk | None, *values: Any) -> bool:
    """Require that a walk that is gone again finds what a new one does, or nothing; return whether it finds it."""
    new = OuterValues(values)
    found = None if walk is None else walk.arguments_in(values)
    if found is None:
        return False
    assert walk is not None
    assert new.lasting_key == walk.key
    assert [id(x) for x in found] == [id(x) for x in new.leaves] or found == new.leaves
    return True


def made_anew(**changes: Any) -> tuple[Any, ...]:
    """Return functions of the same code, with what they hold, some of it changed."""
    held = {
        "rate": 2.0,
        "array": np.ones(3),
        "other": np.ones(3),
        "index": index,
        "count": 2,
        "default": np.float64(3.0),
        "word": "a",
        "inner": lambda x: x * small,
        "fields": Fields(5.0),
        "nested": ({"a": np.ones(2), "b": (1.0, None)}, [1.0]),
        **changes,
    }
    rate, array, other, index_, count, word, inner, fields, nested = (
        held[x] for x in ("rate", "array", "other", "index", "count", "word", "inner", "fields", "nested")
    )

    def slope(x: Any, default: Any = held["default"]) -> Any:
        return inner(rate * array[index_] + other + count) + fields.factor + nested[1][0] + default, word

    def event(x: Any) -> Any:
        return x - rate

    own: Any = event
    own.terminal = held.get("terminal", True)
    bound = functools.partial(held.get("method", Fields(4.0).value), array)
    return slope, (array, rate), event, bound


index = np.arange(3)
SHARED = np.ones(3)
CHANGES: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, True),
    "other numbers": (
        {"rate": 5.0, "array": np.zeros(3), "nested": ({"a": np.ones(2), "b": (3.0, None)}, [2.0])},
        True,
    ),
    "tangents": ({"array": wengert.tensor([1.0, 2.0, 3.0])}, False),
    "a whole number": ({"rate": 2}, False),
    "another shape": ({"array": np.ones(4)}, False),
    "another dtype": ({"array": np.ones(3, np.float32)}, False),
    "one array for two": ({"array": SHARED, "other": SHARED}, False),
    "a constant": ({"count": 3}, False),
    "a word": ({"word": "b"}, False),
    "other indices": ({"index": np.arange(3)[::-1].copy()}, False),
    "another function": ({"inner": lambda x: x}, False),
    "another default": ({"default": np.float64(4.0)}, False),
    "another attribute": ({"terminal": 2}, False),
    "another method": ({"method": Held().value}, False),
    "another structure": ({"nested": ({"a": np.ones(2), "c": (1.0, None)}, [1.0])}, False),
    "an array captured elsewhere": ({"array": small}, False),
}


@pytest.mark.parametrize("name", CHANGES)
def test_walks_find_the_arguments_of_functions_made_anew(name: str) -> None:
    """What is an argument may be another one, everything else is told apart, as a walk through everything does."""
    outer = OuterValues(made_anew())
    walk = outer.as_repeated()
    assert walk is not None
    changes, is_found = CHANGES[name]
    assert require_same_walk(walk, *made_anew(**changes)) == is_found
    other = OuterValues(made_anew(**changes)).as_repeated()
    assert require_same_walk(other, *made_anew()) == is_found
