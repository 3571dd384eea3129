"""Holders: what has contents that a program may change, such as variables, containers, objects and classes."""

from __future__ import annotations

import pickle
import random
import sys
from array import array
from collections import deque
from contextvars import ContextVar
from types import CellType, FunctionType, MemberDescriptorType, SimpleNamespace
from typing import Any, NoReturn
from weakref import ProxyTypes

import numpy as np

from wengert.control.code_owners import is_library_file
from wengert.control.variable_places import Contents, Holder
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.errors import GraphError
from wengert.support.attributes import attribute, own_attributes
from wengert.support.function_contents import UNBOUND, content_of


class CellHolder(Holder):
    """Be a variable of a function, in its closure cell."""

    target: CellType
    variable = True

    def contents(self) -> Contents:
        """Return the value."""
        value = content_of(self.target)
        return {} if value is UNBOUND else {"": value}

    def restore(self, contents: Contents) -> None:
        """Set the value."""
        if contents:
            self.target.cell_contents = contents[""]
        elif self.contents():
            del self.target.cell_contents

    def entry_name(self, key: Any) -> str:
        """Return the variable's name."""
        return self.name


class GlobalsHolder(Holder):
    """Be those global variables of a module that are of interest."""

    target: dict[str, Any]
    variable = True

    def __init__(self, target: Any, name: str) -> None:
        super().__init__(target, name)
        self.names: set[str] = set()
        self.whole = False  # whether all are of interest, new ones too

    def contents(self) -> Contents:
        """Return the variables that there are."""
        if self.whole:
            self.names.update(x for x in list(self.target) if not x.startswith("__"))
        return {name: self.target[name] for name in self.names if name in self.target}

    def restore(self, contents: Contents) -> None:
        """Set the variables."""
        for name in self.names:
            if name in contents:
                self.target[name] = contents[name]
            else:
                self.target.pop(name, None)

    def entry_name(self, key: Any) -> str:
        """Return the variable's name."""
        return str(key)


class AttributesHolder(Holder):
    """Be an object with attributes."""

    variable = True

    def contents(self) -> Contents:
        """Return the attributes, in slots or not."""
        found = dict(own_attributes(self.target))
        for name in slots_of(type(self.target)):
            value = attribute(self.target, name, UNBOUND)
            if value is not UNBOUND:
                found[name] = value
        return found

    def restore(self, contents: Contents) -> None:
        """Set the attributes, whatever the class does when they are set."""
        before = self.contents()
        space, slots = own_attributes(self.target), slots_of(type(self.target))
        for name in before.keys() - contents.keys():
            if name in slots:
                object.__delattr__(self.target, name)
            else:
                del space[name]
        for name, value in contents.items():
            if before.get(name, UNBOUND) is value:
                continue
            if name in slots:
                object.__setattr__(self.target, name, value)
            else:
                space[name] = value

    def entry_name(self, key: Any) -> str:
        """Return the attribute behind the object's name."""
        return f"{self.name}.{key}"


class ClassHolder(AttributesHolder):
    """Be a class."""

    target: type

    def contents(self) -> Contents:
        """Return the attributes of the class itself but for those that Python gave it."""
        return {k: v for k, v in vars(self.target).items() if not (k.startswith("__") and k.endswith("__"))}

    def restore(self, contents: Contents) -> None:
        """Set the attributes."""
        before = self.contents()
        for name in before.keys() - contents.keys():
            type.__delattr__(self.target, name)
        for name, value in contents.items():
            if before.get(name, UNBOUND) is not value:
                type.__setattr__(self.target, name, value)


class SequenceHolder(Holder):
    """Be a list or a deque."""

    target: list[Any] | deque[Any]

    def contents(self) -> Contents:
        """Return the items by position."""
        return dict(enumerate(self.target))

    def restore(self, contents: Contents) -> None:
        """Put in the items."""
        self.target.clear()
        self.target.extend(contents.values())


class MappingHolder(Holder):
    """Be a dictionary."""

    target: dict[Any, Any]

    def contents(self) -> Contents:
        """Return a copy."""
        return dict(self.target)

    def restore(self, contents: Contents) -> None:
        """Put in the items, in their order."""
        dict.clear(self.target)
        dict.update(self.target, contents)


class BytesHolder(Holder):
    """Be a bytearray or an array of the standard library, whose elements are one content: they cannot be traced."""

    target: bytearray | array[Any]

    def contents(self) -> Contents:
        """Return the bytes."""
        return {"": bytes(self.target)}

    def differs(self, one: Contents, other: Contents) -> bool:
        """Tell whether the bytes differ."""
        return one != other

    def restore(self, contents: Contents) -> None:
        """Put in the bytes."""
        old = contents.get("")
        if type(old) is not bytes:
            self.refuse(position_of(*caller()))
        if isinstance(self.target, bytearray):
            self.target[:] = old
        else:
            self.target[:] = array(self.target.typecode, old)

    def refuse(self, place: Any) -> NoReturn:
        """Raise because a traced value decides about the bytes; `place` is the statement's."""
        raise GraphError(
            self.name or type(self.target).__name__,
            f"a {type(self.target).__name__}, changed where a traced value decides",
            "an array that can hold what is traced is needed",
            "Make it with wengert.numpy",
            place=place,
        )

    def entry_name(self, key: Any) -> str:
        """Return the name."""
        return self.name


class RandomHolder(Holder):
    """Be a generator of random numbers: its state is one content."""

    target: np.random.Generator | np.random.RandomState | random.Random

    def contents(self) -> Contents:
        """Return the state, in one piece."""
        target = self.target
        if isinstance(target, np.random.Generator):
            state: Any = target.bit_generator.state
        else:
            state = target.getstate() if isinstance(target, random.Random) else target.get_state()
        return {"": pickle.dumps(state)}

    def differs(self, one: Contents, other: Contents) -> bool:
        """Tell whether the states differ."""
        return one != other

    def restore(self, contents: Contents) -> None:
        """Go back to a state."""
        if type(contents.get("")) is not bytes:
            self.refuse(position_of(*caller()))
        target, state = self.target, pickle.loads(contents[""])
        if isinstance(target, np.random.Generator):
            target.bit_generator.state = state
        elif isinstance(target, random.Random):
            target.setstate(state)
        else:
            target.set_state(state)

    def refuse(self, place: Any) -> NoReturn:
        """Raise because a traced value decides how many numbers are drawn."""
        raise GraphError(
            self.name or type(self.target).__name__,
            "random numbers drawn where a traced value decides",
            "how many are drawn must not depend on traced values",
            "Draw them before, and choose among them",
            place=place,
        )

    def entry_name(self, key: Any) -> str:
        """Return the name."""
        return self.name


class SetHolder(Holder):
    """Be a set: its elements are the keys."""

    target: set[Any]

    def contents(self) -> Contents:
        """Return the elements."""
        return dict.fromkeys(self.target)

    def differs(self, one: Contents, other: Contents) -> bool:
        """Tell whether elements differ, in whatever order."""
        return one.keys() != other.keys()

    def restore(self, contents: Contents) -> None:
        """Put in the elements."""
        self.target.clear()
        self.target.update(contents)


class ContextHolder(Holder):
    """Be a context variable, one that is not set having its default."""

    target: ContextVar[Any]

    def contents(self) -> Contents:
        """Return the value."""
        try:
            return {"": self.target.get()}
        except LookupError:
            return {}

    def restore(self, contents: Contents) -> None:
        """Set the value; nothing takes it away again."""
        for value in contents.values():
            self.target.set(value)

    def entry_name(self, key: Any) -> str:
        """Return the name."""
        return self.name


def holder_of(value: Any, name: str) -> Holder | None:
    """Return the holder that a value is; None if it cannot be changed, or is none of the user's business."""
    kind = type(value)
    if issubclass(kind, list | deque):
        return SequenceHolder(value, name)
    if issubclass(kind, dict):
        return MappingHolder(value, name)
    if issubclass(kind, set):
        return SetHolder(value, name)
    if issubclass(kind, bytearray | array):
        return BytesHolder(value, name)
    if issubclass(kind, np.random.Generator | np.random.RandomState | random.Random):
        return RandomHolder(value, name)
    if issubclass(kind, ContextVar):
        return ContextHolder(value, name)
    if issubclass(kind, type):
        return ClassHolder(value, value.__name__) if is_users(value) else None
    if issubclass(kind, FunctionType | SimpleNamespace) or kind in ProxyTypes:
        return AttributesHolder(value, name)
    if issubclass(kind, tuple | frozenset | str | bytes | int | float | complex):
        return None
    is_open = kind.__module__ in KEEPING or issubclass(kind, BaseException) or is_users(kind)
    return AttributesHolder(value, name) if is_open else None


KEEPING = frozenset(
    {"_thread", "argparse", "collections", "contextlib", "functools", "queue", "wengert.optim.optimizer"}
)
"""Modules whose objects keep what a program puts there: as `Namespace`, `UserDict`, `Queue`, `local`, `ExitStack`."""


def is_users(kind: type) -> bool:
    """Tell whether a class is neither Python's nor of an installed package."""
    if kind.__module__ == "builtins":
        return False
    module = sys.modules.get(kind.__module__)
    filename = attribute(module, "__file__")
    if filename is None:  # of the main program, of a module that was loaded by hand, or made by the interpreter
        return module is None or kind.__module__ == "__main__"
    return not is_library_file(filename)


def slots_of(kind: type) -> list[str]:
    """Return the names of the slots of a class, private ones as Python has them inside of it."""
    spaces = [vars(base) for base in kind.__mro__ if "__slots__" in vars(base)]
    return [name for space in spaces for name, found in space.items() if type(found) is MemberDescriptorType]
