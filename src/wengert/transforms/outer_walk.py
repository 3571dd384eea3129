"""Walks over what functions and arguments hold: the key that equal ones have, and the numbers and arrays beside it.

Floats and arrays of them that variables of functions hold, directly, in containers, or as variables of further
functions of the user, become arguments. Everything else (integers, strings, attributes of objects, functions and
classes) is a part of the key. What holds something that nobody can look at equals nothing.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Hashable, Mapping, Sequence
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final

import numpy as np

from wengert.control.code_owners import is_library
from wengert.control.mutable_state import AttributesHolder, holder_of, is_users
from wengert.control.reachable_state import LEADING, is_users_module, keys_of, modules_named, special_methods
from wengert.core.containers.tree_leaves import BARE, containers_in, flatten
from wengert.core.graph.identity import Object, elements_for_key
from wengert.core.values.aval import is_differentiable
from wengert.core.values.tensor import Tensor
from wengert.support.attributes import attribute, class_attribute, own_attributes
from wengert.support.function_contents import UNBOUND, assigned_by, captured_by, content_of, names_of
from wengert.support.function_protocol import LikeFunction
from wengert.transforms.captured_reads import CapturedReads
from wengert.transforms.outer_replacement import (
    ArgumentPlace,
    ContainerTemplate,
    FunctionTemplate,
)
from wengert.transforms.repeated_walks import (
    UNTRACKED,
    WalkRecord,
    further_attributes,
    is_static,
    places_from,
)

NUMBERS = frozenset((float, complex))
FUNCTIONS = FunctionType, MethodType, functools.partial
DEEPEST = 30
"""Objects of packages inside of each other that are looked at."""
DESCRIPTORS = MemberDescriptorType, GetSetDescriptorType
CONSTANTS = BuiltinFunctionType, *DESCRIPTORS, np.ufunc, np.dtype, range, slice, type(Ellipsis), type(UNBOUND)


ARRAYS: Final = (np.ndarray, np.memmap)
"""Classes of arrays that are only elements."""


class OuterWalk:
    """Go through values and functions, and what these hold.

    Args:
        lifted: whether floats become arguments at all.
        by_identity: whether what may change is compared by its identity, too, as what was made goes on to refer to it.
        count: how many values it will be.

    Attributes:
        parts: of the key, which values have that a program serves with other arguments.
        leaves: the arguments.
        is_complete: whether all can be looked at, without which nothing has the same key.
        reads: where all that was read, by which `are_same` may tell soon.
        record: which way the walk went, by which others are told to be the same.
    """

    def __init__(self, lifted: bool, by_identity: bool, count: int) -> None:
        self.lifted, self.by_identity, self.is_complete = lifted, by_identity, True
        self.reads = CapturedReads()
        self.record = WalkRecord(count)
        self.parts: list[Hashable] = [lifted]
        self.leaves: list[Any] = []
        self.known: dict[int, tuple[int, Any, Any]] = {}
        self.fixed: set[int] = set()  # what is read where it stays as it is
        self.modules: dict[int, ModuleType] = {}
        self.words: set[str] = set()  # of the user's functions, by which they read modules
        self.depth = 0

    def enter(self, value: Any, lifted: bool, place: int = UNTRACKED) -> Any:
        """Add a value to the key; return its template, None where it stays as it is.

        Args:
            value: the value.
            lifted: whether floats in it become arguments.
            place: its number, where walks that go the same way find it.
        """
        kind = type(value)
        if is_static(value):
            self.parts.append((kind, value))
            self.record.expect_constant(place, value)
            return None
        if kind in NUMBERS or issubclass(kind, np.generic):
            return self.enter_leaf(value, lifted, place)
        if id(value) in self.known:
            number, template, _ = self.known[id(value)]
            if lifted or template is None or id(value) in self.fixed:
                self.parts.append(("again", number))
                self.record.expect_again(place, value)
                return template
            self.record.is_whole = False  # an argument that is to be a constant, too
        if not lifted:
            self.fixed.add(id(value))
        self.know(value, None)
        if issubclass(kind, ModuleType):
            self.record.expect_same(place, value)
            return self.enter_module(value)
        if issubclass(kind, np.ndarray) and kind not in ARRAYS:
            self.record.expect_same(place, value)
            return self.enter_own_array(value)
        if issubclass(kind, np.ndarray | Tensor):
            if self.by_identity:
                self.parts.append(Object(value))
            return self.know(value, self.enter_leaf(value, lifted, place))
        if kind is FunctionType:
            return self.enter_function(value, lifted, place)
        if kind is MethodType or kind is functools.partial:
            return self.enter_bound(value, lifted, place)
        if not issubclass(kind, type):
            leaves, structure = flatten(value)
            if structure is not None:
                return self.enter_container(value, structure, leaves, lifted, place)
        self.record.expect_same(place, value)
        return self.enter_object(value)

    def know(self, value: Any, template: Any) -> Any:
        """Remember the template of a value, which may come up again."""
        self.known[id(value)] = len(self.known), template, value
        return template

    def enter_leaf(self, value: Any, lifted: bool, place: int) -> ArgumentPlace | None:
        """Add a number or an array."""
        dtype = value.dtype if isinstance(value, np.ndarray | np.generic | Tensor) else None
        if not lifted or (dtype is not None and not is_differentiable(dtype)):
            if dtype is None or isinstance(value, np.generic):
                self.record.expect_constant(place, value)
            else:
                self.record.expect_same(place, value)
            tensor = type(value) is Tensor
            self.reads.is_whole &= dtype is None or isinstance(value, np.generic) or type(value) is np.ndarray
            fixed = tensor and value._trace is None and isinstance(value._value, np.ndarray | np.generic)
            content = value._value if fixed else value
            content = np.asarray(content) if isinstance(content, np.ndarray) else content
            if tensor and not fixed:
                self.parts.append(Object(value))
                return None
            self.parts += tensor, elements_for_key(content)
            if type(content) is np.ndarray:
                self.reads.add_array(content, len(self.parts) - 1)
            return None
        self.reads.is_whole &= place != UNTRACKED
        self.parts.append((type(value),) if dtype is None else (type(value), dtype.str, value.shape))
        self.leaves.append(value)
        self.record.expect_argument(place, value, len(self.leaves) - 1)
        return ArgumentPlace(len(self.leaves) - 1)

    def enter_container(self, value: Any, structure: Any, leaves: Sequence[Any], lifted: bool, place: int) -> Any:
        """Add a container, with what is in it."""
        parts = containers_in(value)
        first = self.record.expect_container(place, value, structure, leaves, parts)
        for part in parts:
            if first == UNTRACKED:
                self.reads.add_container(part)
            if type(part) not in BARE and is_users(type(part)):
                self.enter_own_container(part, UNTRACKED if first == UNTRACKED else first + len(leaves))
        self.parts.append(structure)
        if self.by_identity and type(value) is not tuple:
            self.parts.append(Object(value))
        places = places_from(first, len(leaves))
        templates = [self.enter(leaf, lifted, i) for i, leaf in zip(places, leaves, strict=True)]
        if all(template is None for template in templates):
            return None
        return self.know(value, ContainerTemplate(structure, leaves, templates))

    def enter_own_container(self, value: Any, place: int) -> None:
        """Add the class of a container, whose methods read what they like, and attributes that are not its items."""
        self.enter(type(value), False)
        own = own_attributes(value)
        self.enter_items({name: own[name] for name in further_attributes(value)}, place)

    def enter_function(self, function: FunctionType, lifted: bool, place: int) -> Any:
        """Add a function: those of the user with the variables that they read."""
        of_library = is_library(function.__code__)
        if of_library and (not lifted or is_named(function) or not function.__closure__):
            self.reads.add_function(function)
            self.record.expect_same(place, function)
            self.parts.append(Object(function if is_named(function) else function.__code__))
            for content in captured_by(function):  # what a transformation is of
                self.enter(content, False)
            self.enter_defaults(function)
            return None
        first, rest = self.record.expect_function(place, function)
        if first == UNTRACKED:
            self.reads.add_function(function)
            self.record.fixed.add(id(function))
        self.parts.append(Object(function.__code__))
        template = self.know(function, FunctionTemplate(function))
        own = frozenset() if self.lifted or self.by_identity else assigned_by(function.__code__)
        if self.by_identity:
            self.parts += map(Object, (function.__globals__, *(function.__closure__ or ())))
        cells = function.__closure__ or ()
        for i, name, cell in zip(places_from(first, len(cells)), function.__code__.co_freevars, cells, strict=True):
            if name in own:
                continue
            content = content_of(cell)
            further = lifted and (not of_library or isinstance(content, FUNCTIONS))  # its numbers are options
            inside = None if content is UNBOUND else self.enter(content, further, i)
            if inside is not None:
                template.cells[name] = inside
        if not of_library:
            self.enter_global_variables(function, template, lifted, own, place)
        template.attributes = self.enter_defaults(function, rest, of_library, lifted)
        if not template.reaches():
            return self.know(function, None)
        return template

    def enter_global_variables(
        self, function: FunctionType, template: FunctionTemplate, lifted: bool, own: frozenset[str], place: int
    ) -> None:
        """Add what a function's global variables hold, and those of further modules of the user that it may name."""
        space, names = function.__globals__, names_of(function.__code__)
        found = [x for x in sorted_names(function.__code__) if x in space and x not in own and not x.startswith("__")]
        first = self.record.expect_names(place, space, found)
        self.reads.add_names(space, names - own if first == UNTRACKED else names - own - set(found))
        for i, name in zip(places_from(first, len(found)), found, strict=True):
            value = space[name]
            inside = self.enter(value, lifted, i)
            if inside is not None:
                template.names[name] = value, inside
        self.words |= names
        for module in modules_named(names, space):
            self.enter(module, False)
        if "globals" in names:
            self.reads.is_whole = False
            self.enter({key: space[key] for key in space if not key.startswith("__")}, False)

    def enter_module(self, module: ModuleType) -> None:
        """Add a module, of which `enter_modules` adds what is read if it is the user's."""
        self.parts.append(Object(module))
        if is_users_module(module):
            self.modules[id(module)] = module

    def enter_modules(self) -> None:
        """Add what modules of the user hold by names that functions use, whichever way they are reached."""
        read: set[tuple[int, str]] = set()
        while True:  # functions in modules use further names
            spaces = [(x, self.words.intersection(own_attributes(x))) for x in self.modules.values()]
            more = [(x, key) for x, keys in spaces for key in sorted(keys) if (id(x), key) not in read]
            if not more:
                break
            for module, key in more:
                read.add((id(module), key))
                self.parts.append(key)
                self.enter(own_attributes(module)[key], False)
        for module in self.modules.values():
            self.reads.add_module(module, self.words)

    def enter_own_array(self, array: np.ndarray[Any, Any]) -> None:
        """Add an array of a class of its own, whose elements may mean something else than those of a traced array."""
        self.reads.is_whole = False
        self.parts.append(Object(array if self.by_identity else type(array)))
        self.enter(np.asarray(array), False)
        self.enter_items(own_attributes(array))

    def enter_bound(self, value: Any, lifted: bool, place: int) -> Any:
        """Add a method or a partial."""
        template = FunctionTemplate(value)
        if type(value) is MethodType:
            self.parts.append(MethodType)
            inside: Sequence[Any] = (value.__func__, value.__self__)
        else:
            self.parts.append(functools.partial)
            inside = (value.func, value.args, value.keywords)
        first = self.record.expect_bound(place, value)
        template.parts = [
            (x, self.enter(x, lifted, i)) for i, x in zip(places_from(first, len(inside)), inside, strict=True)
        ]
        return self.know(value, template if template.reaches() else None)

    def enter_object(self, value: Any) -> None:
        """Add an object with what it holds, or leads to, which is compared, or a transformation of functions."""
        self.parts.append(Object(value))
        kind = type(value)
        if issubclass(type(value), LikeFunction):
            for content in own_attributes(value).values():
                if isinstance(content, FunctionType | MethodType | LikeFunction):
                    self.enter(content, False)
            return
        holder = holder_of(value, "")
        leads = next((leads for led, leads in LEADING if issubclass(kind, led)), None)
        self.reads.add_object(value, holder, leads)
        if holder is not None:
            self.enter_items(holder.contents())
            self.enter(keys_of(value), False)
        if leads is not None:
            self.enter(tuple(leads(value)), False)
        if issubclass(kind, type):
            self.enter_class(value)
        elif holder is not None or is_users(kind):
            self.enter(kind, False)
        elif leads is None:
            self.enter_unfamiliar(value, kind)

    def enter_class(self, value: type) -> None:
        """Add the methods that Python calls by itself, the bases and the class of a class of the user."""
        if is_users(value):
            for inside in (*special_methods(value), *value.__mro__[1:-1], type(value)):
                self.enter(inside, False)

    def enter_unfamiliar(self, value: Any, kind: type) -> None:
        """Add an object of Python's or of a package with its attributes; what shows none, or is deep, has no equal."""
        if kind.__module__.partition(".")[0] == "wengert":  # what others are made of, beside what it remembers
            self.reads.is_whole = False
            self.enter(attribute(value, "__wrapped__"), False)
            return
        holder = AttributesHolder(value, "")
        held = holder.contents()
        self.reads.add_object(value, holder, None)
        if self.depth == DEEPEST or not (held or is_constant(kind)):
            self.is_complete = self.reads.is_whole = False
            self.parts.append(Object(object()))
            return
        self.depth += 1
        self.enter_items(held)
        self.depth -= 1

    def enter_defaults(
        self, function: FunctionType, place: int = UNTRACKED, is_wrapper: bool = False, lifted: bool = False
    ) -> dict[str, Any]:
        """Add the defaults and the attributes of a function, by which some hold what they read.

        What a wrapper of the library is of, it holds in a variable. Return the templates of attributes that reach
        arguments: functions, as those that change states at an event.
        """
        first, second, third = places_from(place, 3)
        for i, default in ((first, function.__defaults__), (second, function.__kwdefaults__)):
            if default is None:
                self.parts.append(None)
                self.record.expect_constant(i, None)
            else:
                self.enter(default, False, i)
        attributes = own_attributes(function)
        if is_wrapper:
            attributes = {key: None if key == "__wrapped__" else x for key, x in attributes.items()}
        return self.enter_items(attributes, third, lifted and not is_wrapper)

    def enter_items(self, items: Mapping[Any, Any], place: int = UNTRACKED, lifted: bool = False) -> dict[Any, Any]:
        """Add names, or other keys, with what stands there; return the templates of functions there."""
        entries = list(items.items())
        templates = {}
        for i, (key, content) in zip(places_from(place, len(entries)), entries, strict=True):
            self.parts.append(key if isinstance(key, Hashable) else Object(key))
            inside = self.enter(content, lifted and isinstance(content, FUNCTIONS), i)
            if inside is not None:
                templates[key] = inside
        return templates


@functools.lru_cache(maxsize=1024)
def sorted_names(code: CodeType) -> list[str]:
    """Return the names that code uses, in the same order whenever the program runs."""
    return sorted(names_of(code))


def is_named(function: FunctionType) -> bool:
    """Tell whether a function is what its module has by its name, and no wrapper that was made of another."""
    module = sys.modules.get(function.__module__)  # whose own `__getattr__` may look for names that are alike
    return module is not None and own_attributes(module).get(function.__qualname__) is function


def is_constant(kind: type) -> bool:
    """Tell whether objects of a class without attributes never change, or hold what no program is to depend on."""
    by_value = class_attribute(kind, "__hash__") not in (None, object.__hash__)  # who has its own is a value
    return by_value or kind is object or issubclass(kind, CONSTANTS) or kind.__module__ in ("_thread", "_io")
