"""What functions hold: their variables, global ones, and what these hold, so that it can be told whether it changed.

A driver of SciPy's is called with a function again and again. What was traced of it is good for another call if the
function is made of the same code and finds the same numbers; then nothing need be traced anew. What may change is known
by its identity as well as by its content: what was traced goes on to refer to it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Hashable, Mapping
from functools import partial
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.control.code_owners import is_library_file
from wengert.control.mutable_state import content_of, is_users
from wengert.control.reachable_state import is_users_module, names_of
from wengert.core.containers.tree_leaves import flatten
from wengert.core.values.bounded_cache import Recent
from wengert.core.values.tensor import Tensor, innermost_trace, raw
from wengert.support.attributes import own_attributes

FEW_ELEMENTS = 4096
"""The elements of an array that a small problem holds."""
MANY_HELD = 300
"""Values that a function of a small problem holds at most."""
MOST_FUNCTIONS = 128
"""Functions of which is known what was traced."""
ATOMS = frozenset({int, bool, str, bytes, type(None), type(Ellipsis)})
NUMBERS = frozenset({float, complex})
ITSELF = BuiltinFunctionType, np.ufunc, np.dtype, CodeType


class Traces:
    """Hold what was made of a function, by names, and what it was made of.

    Attributes:
        made: jitted functions and others.
        sources: values that the function holds and that are known by their identity, which must not be given anew.
    """

    def __init__(self, sources: list[Any]) -> None:
        self.made: dict[Hashable, Any] = {}
        self.sources = sources


KNOWN: Recent[Hashable, Traces] = Recent(most=MOST_FUNCTIONS)


def traces_of_function(values: Any, options: Hashable) -> Traces:
    """Return what was made before of functions and values that hold the same; nothing of what nobody can tell.

    Args:
        values: functions, and what else is read when they are traced, in containers.
        options: what else decides what is made.
    """
    contents = Contents(values)
    if contents.entries is None:
        return Traces([])
    key = options, tuple(contents.entries)
    found = KNOWN.get(key)
    if found is None:
        found = KNOWN[key] = Traces(contents.sources)
    else:
        KNOWN.touch(key)
    return found


class Contents:
    """Go through what values hold.

    Attributes:
        entries: it, such that equal entries are of equal contents; None if it is large, or nobody can tell.
        sources: what is known by its identity.
    """

    def __init__(self, values: Any) -> None:
        self.entries: list[Hashable] | None = []
        self.sources: list[Any] = []
        self.queue: list[Any] = [values]
        self.seen: dict[int, int] = {}
        while self.queue:
            if not self.enter(self.queue.pop()) or len(self.sources) > MANY_HELD:
                self.entries = None
                return

    def enter(self, value: Any) -> bool:
        """Append the entry of a value, and what it holds to the queue; tell whether that is possible."""
        assert self.entries is not None
        kind = type(value)
        if kind in ATOMS:
            self.entries.append((kind, value))
            return True
        if kind in NUMBERS:
            self.entries.append(repr(value))  # which tells -0.0 from 0.0
            return True
        known = self.seen.get(id(value))
        if known is not None:
            self.entries.append(known)
            return True
        self.seen[id(value)] = len(self.seen)
        self.sources.append(value)
        if kind is Tensor and innermost_trace(value) is None:
            value = raw(value)
        if isinstance(value, np.ndarray | np.generic):
            return self.enter_array(value)
        if kind is FunctionType:
            return self.enter_function(value)
        return self.enter_container(value, kind) or self.enter_identity(value, kind)

    def enter_array(self, array: Any) -> bool:
        """Append the entry of a small array of numbers."""
        assert self.entries is not None
        if array.size > FEW_ELEMENTS or array.dtype.hasobject:
            return False
        identity = id(array) if isinstance(array, np.ndarray) else None
        self.entries.append((identity, array.shape, array.strides, array.dtype.str, array.tobytes()))
        return type(array) is np.ndarray or isinstance(array, np.generic)

    def enter_function(self, function: FunctionType) -> bool:
        """Append the entry of a function: its code, and what that reads."""
        assert self.entries is not None
        code = function.__code__
        if is_of_library(code.co_filename):
            if is_named(function):
                self.entries.append(id(function))
                return True
            space: Mapping[str, Any] = {}
        else:
            space = function.__globals__
        names = [name for name in names_of(code) if name in space]
        cells = function.__closure__ or ()
        self.sources += cells
        places = () if is_of_library(code.co_filename) else map(id, cells)  # which others may set to something else
        self.entries.append((code, id(function.__globals__), tuple(names), len(cells), *places))
        found = [space[name] for name in names]
        for module in found:
            if type(module) is ModuleType and is_users_module(module):
                found += [vars(module)[name] for name in names_of(code) if name in vars(module)]
        own = own_attributes(function)
        self.queue += map(content_of, cells)
        self.queue += [*found, function.__defaults__, *(function.__kwdefaults__ or {}).items(), *own.items()]
        return True

    def enter_container(self, value: Any, kind: type) -> bool:
        """Append the entry of what holds others; tell whether it does."""
        assert self.entries is not None
        if kind is dict:
            self.entries.append((id(value), tuple(value)))
            self.queue += value.values()
        elif kind in (tuple, list):
            self.entries.append((kind, id(value) if kind is list else 0, len(value)))
            self.queue += value
        elif kind is MethodType:
            self.entries.append(kind)
            self.queue += [value.__func__, value.__self__]
        elif kind is partial:
            self.entries.append(kind)
            self.queue += [value.func, value.args, value.keywords]
        else:
            return False
        return True

    def enter_identity(self, value: Any, kind: type) -> bool:
        """Append the entry of what does not change; tell whether it is known not to."""
        assert self.entries is not None
        fixed = issubclass(kind, ITSELF) or (kind.__module__ == "numpy" and callable(value))
        if kind is ModuleType:  # what a user's module holds was appended with the function that names it
            fixed = True
        elif issubclass(kind, type):
            fixed = not is_users(value)
        self.entries.append(id(value))
        return fixed


@functools.lru_cache(maxsize=1024)
def is_of_library(filename: str) -> bool:
    """Tell whether a file of code is of Python, of an installed package or of this library."""
    return is_library_file(filename)


def is_named(function: FunctionType) -> bool:
    """Tell whether a function is what its module has by its name, and no wrapper that was made of another."""
    return getattr(sys.modules.get(function.__module__), function.__qualname__, None) is function


def holds_little(values: Any) -> bool:
    """Tell whether what functions, objects and containers hold, or name as global variables, has few elements each."""
    queue, seen = [values], set()
    while queue:
        value = queue.pop()
        kind = type(value)
        if isinstance(value, np.ndarray | Tensor):
            if value.size > FEW_ELEMENTS:
                return False
        elif id(value) not in seen and (issubclass(kind, FunctionType | MethodType | partial) or not callable(value)):
            seen.add(id(value))
            if len(seen) > MANY_HELD:
                return False
            queue += held_by(value)
    return True


def held_by(value: Any) -> list[Any]:
    """Return what a function, method, container or object holds."""
    if isinstance(value, FunctionType):
        names, cells = value.__code__.co_names, value.__closure__ or ()
        known = [value.__globals__[name] for name in names if name in value.__globals__]
        return [*map(content_of, cells), *known, *(value.__defaults__ or ())]
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, partial):
        return [value.func, value.args, value.keywords]
    if isinstance(value, ModuleType):
        return []
    leaves = flatten(value)[0]
    return list(own_attributes(value).values()) if len(leaves) == 1 and leaves[0] is value else leaves
