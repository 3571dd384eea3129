"""Where what functions capture was read, to tell in few microseconds whether the same stands there."""

from __future__ import annotations

import operator
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable, Collection, Sequence
from itertools import chain, repeat
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    MethodType,
    MethodWrapperType,
    ModuleType,
)
from typing import Any

import numpy as np

from wengert.control.mutable_state import AttributesHolder, ClassHolder, MappingHolder, SequenceHolder, SetHolder
from wengert.control.variable_places import Holder
from wengert.core.containers.container_classes import stand_in_maker
from wengert.core.graph.identity import MOST_BYTES, elements_for_key
from wengert.core.memory.buffers import may_change
from wengert.primitives.sparse.storage_pattern import alike, index_arrays, pattern_of
from wengert.primitives.sparse.stored_elements import StoredElements
from wengert.support.attributes import own_attributes
from wengert.support.function_contents import UNBOUND, content_of

Array = np.ndarray[Any, Any]
SETTLED = (
    tuple,
    frozenset,
    MethodType,
    BuiltinMethodType,
    MethodWrapperType,
    property,
    staticmethod,
    classmethod,
)
"""Classes of objects that lead to the same ones for ever."""
HOLDERS = AttributesHolder, ClassHolder, MappingHolder, SequenceHolder, SetHolder
"""Holders whose contents are objects, the same ones as long as nothing is assigned."""


CONTENT, PARTS = operator.attrgetter("cell_contents"), operator.attrgetter("__code__", "__defaults__", "__kwdefaults__")
ATTRIBUTES = operator.attrgetter("__dict__")


class CapturedReads:
    """Remember where something was read: variables, names, attributes, items, and elements of arrays.

    What is compared most often is compared by C alone: 2 us where loops take 12.

    Attributes:
        is_whole: whether all that was read can be looked at again here.
    """

    def __init__(self) -> None:
        self.is_whole = True
        self.cells: list[CellType] = []
        self.contents: list[Any] = []  # of these
        self.spaces: dict[int, tuple[dict[str, Any], dict[str, Any]]] = {}  # names with what stands there, or UNBOUND
        self.functions: list[FunctionType] = []
        self.parts: list[Any] = []  # of these, one after the other
        self.plain: list[FunctionType] = []  # those without attributes
        self.looks: list[tuple[Callable[[Any], Collection[Any]], Any, Collection[Any]]] = []
        self.arrays: list[tuple[Array, int, Any, Any, bytes | None]] = []
        self.indices: list[tuple[Array, Array]] = []  # of sparse matrices, and what they were

    def are_same(self, key: Sequence[Any]) -> bool:
        """Tell whether the same objects stand everywhere, and arrays have the elements that they had.

        The key has at the place of each array what its elements were.
        """
        if not self.is_whole:
            return False
        try:
            if self.cells and not all(map(operator.is_, map(CONTENT, self.cells), self.contents)):
                return False
        except ValueError:  # a variable has no value
            return False
        for space, known in self.spaces.values():
            if not all(map(operator.is_, map(space.get, known, repeat(UNBOUND)), known.values())):
                return False
        if self.functions:
            parts = chain.from_iterable(map(PARTS, self.functions))
            if not all(map(operator.is_, parts, self.parts)) or any(map(ATTRIBUTES, self.plain)):
                return False
        for look, value, content in self.looks:
            if not are_identical(look(value), content):
                return False
        for array, place, shape, dtype, elements in self.arrays:
            if elements is None:
                if elements_for_key(array) != key[place]:
                    return False
            elif array.tobytes() != elements or array.shape != shape or array.dtype is not dtype:
                return False
        return not self.indices or all(alike(array, known) for array, known in self.indices)

    def look(self, look: Callable[[Any], Collection[Any]], value: Any) -> None:
        """Remember what is found in a value by a look at it."""
        self.looks.append((look, value, look(value)))

    def add_function(self, function: FunctionType) -> None:
        """Remember what a function is made of."""
        self.functions.append(function)
        self.parts += PARTS(function)
        if function.__dict__:
            self.look(attributes_of, function)
        else:
            self.plain.append(function)
        for cell in function.__closure__ or ():
            self.is_whole &= (content := content_of(cell)) is not UNBOUND
            self.cells.append(cell)
            self.contents.append(content)

    def add_names(self, space: dict[str, Any], names: Collection[str]) -> None:
        """Remember what stands in a namespace by some names, or that nothing does."""
        known = self.spaces.setdefault(id(space), (space, {}))[1]
        for name in names:
            content = space.get(name, UNBOUND)
            self.is_whole &= known.setdefault(name, content) is content

    def add_array(self, array: Array, place: int) -> None:
        """Remember the elements of an array, which stand at a place of the key."""
        if may_change(array):
            elements = array.tobytes() if array.nbytes <= MOST_BYTES and array.dtype.kind in "biufc" else None
            self.arrays.append((array, place, array.shape, array.dtype, elements))

    def add_container(self, value: Any) -> None:
        """Remember the items of a container, not those of others in it."""
        kind = type(value)
        if kind is list or kind is deque:
            self.look(tuple, value)
        elif kind is dict or kind is OrderedDict:
            self.look(entries_of, value)
        elif stand_in_maker(kind) is not None:
            self.look(parts_of_object, value)
            self.indices += zip(index_arrays(value), pattern_of(value).arrays, strict=True)
        elif isinstance(value, StoredElements):
            self.look(parts_of_matrix, value)
        elif kind is not tuple and value is not None:
            self.is_whole = False

    def add_object(self, value: Any, holder: Holder | None, leads: Any) -> None:
        """Remember the contents of an object, and its class.

        Args:
            value: the object.
            holder: what tells its contents.
            leads: what tells where it leads to otherwise.
        """
        kind = type(value)
        if leads is not None and not issubclass(kind, SETTLED):
            self.is_whole = False
        elif issubclass(kind, type):
            if holder is not None:
                self.look(parts_of_class, value)
        elif holder is not None:
            if type(holder) not in HOLDERS or issubclass(kind, defaultdict):
                self.is_whole = False
            elif type(holder) is AttributesHolder and not has_slots(kind):
                self.look(parts_of_object, value)
            else:
                self.look(contents_of, holder)

    def add_module(self, module: ModuleType, words: Collection[str]) -> None:
        """Remember what a module has by some names."""
        self.add_names(own_attributes(module), words)


def entries_of(space: Any) -> Collection[Any]:
    """Return keys and values of a mapping."""
    return (*space, *space.values())


def attributes_of(function: FunctionType) -> Collection[Any]:
    """Return the names and the attributes of a function."""
    return entries_of(function.__dict__)


def contents_of(holder: Any) -> Collection[Any]:
    """Return the class of what is held, and its contents."""
    return (type(holder.target), *entries_of(holder.contents()))


def parts_of_object(value: Any) -> Collection[Any]:
    """Return the class and the attributes of an object without slots."""
    return (type(value), *entries_of(own_attributes(value)))


def parts_of_matrix(value: StoredElements) -> Collection[Any]:
    """Return the stored elements of a sparse matrix of ours, and where they stand."""
    return value.data, value._pattern


def parts_of_class(value: type) -> Collection[Any]:
    """Return the bases and all attributes of a class."""
    return (*value.__mro__, *entries_of(vars(value)))


def has_slots(kind: type) -> bool:
    """Tell whether objects of a class have attributes outside of a dictionary."""
    return any("__slots__" in vars(base) for base in kind.__mro__)


def are_identical(some: Collection[Any], others: Collection[Any]) -> bool:
    """Tell whether there are the same objects in two collections."""
    return len(some) == len(others) and all(map(operator.is_, some, others))
