"""What a piece of the user's program reaches: variables that it reads or that functions which it calls may change."""

from __future__ import annotations

import dis
from collections.abc import Sequence
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert._tree import flatten
from wengert.conversion.names import HIDDEN
from wengert.conversion.places import Place, attribute_of, identity, is_undefined, variable
from wengert.conversion.source import is_library
from wengert.core.tensor import Tensor

__all__ = ["read_by"]

SMALL = 4096
"""Arrays with more elements are taken to be data that nobody writes to."""
STORED: dict[CodeType, tuple[frozenset[str], tuple[str, ...]]] = {}


def read_by(functions: Sequence[Any], places: Sequence[Place]) -> list[Place]:
    """Return the variables that functions reach, besides some places.

    Those with Tensors become inputs of a branch, so that what is computed from them is computed in the branch alone.
    Those that a function which is called may change are restored and handed on.
    """
    reach = Reach(places)
    for function in functions:
        reach.enter_variables(function, own=True)
    return list(reach.found.values())


class Reach:
    """Collect the variables that functions reach.

    Attributes:
        found: them, by identity.
        known: those that are not looked for.
        seen: the identities of the values that have been looked into.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.found: dict[Any, Place] = {}
        self.known = {identity(place) for place in places}
        self.seen: set[int] = set()

    def enter(self, place: Place, wanted: bool) -> None:
        """Take in a variable, and what its value leads to."""
        key = identity(place)
        if wanted and key not in self.known:
            self.found.setdefault(key, place)
        self.look_into(place.read())

    def look_into(self, value: Any) -> None:
        """Take in what a function that may be called, or an object, leads to."""
        if type(value) is MethodType:
            self.look_into(value.__self__)
            value = value.__func__
        if is_undefined(value) or id(value) in self.seen:
            return
        self.seen.add(id(value))
        if type(value) is FunctionType:
            if not is_library(value.__code__):
                self.enter_variables(value, own=False)
        elif (method := method_of(value)) is not None:
            for name, content in list(vars(value).items()):
                self.enter(attribute_of(value, name, method), holds_tensor(content) or is_changeable(content))

    def enter_variables(self, function: FunctionType, own: bool) -> None:
        """Take in the variables of a function; of one that is a piece of the statement itself, only what it reads."""
        stored, used = ((), ()) if own else outer_names(function.__code__)
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if not name.startswith(HIDDEN):
                place = variable(name, {name: cell}, ((), ()), function)
                value = place.read()
                changeable = isinstance(value, set) if own else name in stored or is_container(value)
                self.enter(place, changeable or holds_tensor(value))
        for name in used:
            if name in function.__globals__ and not name.startswith("__"):
                place = variable(name, {}, ((), ()), function)
                self.enter(place, name in stored or is_container(place.read()))


def method_of(value: Any) -> FunctionType | None:
    """Return a method of the class of an object of the user's; None if there is none."""
    if isinstance(value, type | ModuleType | Tensor | np.ndarray) or not hasattr(value, "__dict__"):
        return None
    method = next((x for x in vars(type(value)).values() if type(x) is FunctionType), None)
    return None if method is None or is_library(method.__code__) else method


def outer_names(code: CodeType) -> tuple[frozenset[str], tuple[str, ...]]:
    """Return which variables from outside a function sets, and the global ones among all that it uses."""
    names = STORED.get(code)
    if names is None:
        stored: set[str] = set()
        used: dict[str, None] = {}
        for item in dis.get_instructions(code):
            if item.opname in ("STORE_DEREF", "STORE_GLOBAL"):
                stored.add(item.argval)
            if item.opname in ("STORE_GLOBAL", "LOAD_GLOBAL"):
                used[item.argval] = None
        names = STORED[code] = frozenset(stored), tuple(used)
    return names


def is_container(value: Any) -> bool:
    """Tell whether a function that is called may change a value in place."""
    return isinstance(value, list | dict | set) or (isinstance(value, np.ndarray) and value.size <= SMALL)


def is_changeable(value: Any) -> bool:
    """Tell whether an attribute may be changed, or its value in place."""
    return is_container(value) or isinstance(value, int | float | complex)


def holds_tensor(value: Any) -> bool:
    """Tell whether a value is a Tensor or a container of some."""
    if not isinstance(value, list | dict | tuple):
        return type(value) is Tensor
    return any(type(leaf) is Tensor for leaf in flatten(value)[0])
