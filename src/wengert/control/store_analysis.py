"""Whether a function can write to an ndarray: from its instructions, and those of all that it can reach.

Nobody can be told of writes to an ndarray, so what a tape keeps of one is a copy, unless nothing that runs before the
sweep can write. That is so where all that a function can reach is arrays, numbers, containers of these, functions of
NumPy's that only read, and functions and objects of the user of which the same is known, and where no instruction of
theirs stores. What is not known to be harmless counts as a store. So does what may run in between: threads, signal
handlers, debuggers. ADR 0046 says what is left. To look must run nothing of the user's either: `isinstance` asks an
object for its `__class__`, and `in` asks classes for their hash or equality, so that classes whose class is not
Python's or NumPy's count as a store before anything is asked of them.
"""

from __future__ import annotations

import builtins
import math
import signal
import sys
import warnings
from _signal import getsignal  # type: ignore[import-not-found]  # that of `signal` takes 80 us for all of them
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache, partial
from inspect import signature
from operator import attrgetter
from types import BuiltinFunctionType, FunctionType, GeneratorType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.control.bytecode import MANY, STORING, WRITING, Chain, MayWriteError, MemberName, uses_of, words
from wengert.control.code_owners import is_library, is_wengerts
from wengert.core.containers.container_classes import TAKEN_APART
from wengert.core.diagnostics.numpy_warnings import COMPLAINTS
from wengert.core.values.numpy_overrides import FUNCTIONS
from wengert.core.values.recording import PACKING
from wengert.core.values.tensor import Tensor
from wengert.support.attributes import own_attributes
from wengert.support.function_contents import content_of

ATOMS = frozenset((int, float, complex, bool, str, bytes, type(None), type(Ellipsis), range, slice, Tensor))
SCALARS = frozenset(np.sctypeDict.values()) - {np.void, np.object_}
CONTAINERS: tuple[type, ...] = (tuple, list, set, frozenset)
CALLED = frozenset(
    getattr(builtins, name)
    for name in words(
        "abs all any bool complex dict divmod enumerate filter float frozenset int isinstance len list max min next "
        "pow range reversed round set slice sorted sum tuple zip"
    )
)
"""Functions and classes of Python's that write to no array, and call what they are given with one operand at most."""
MODULES = words("math numpy numpy.fft numpy.linalg")
"""Those that may be held by a variable whose use is not known before the function runs."""
ATTRIBUTES = {
    **dict.fromkeys(words("conj conjugate"), 0),
    **dict.fromkeys(words("all any argmax argmin dot max min ptp round"), 1),
    **dict.fromkeys(words("clip cumprod cumsum mean prod std sum take trace var"), 2),
    **dict.fromkeys(
        words(
            "T append astype base copy count data detach diagonal dtype extend flags flat flatten get imag index item "
            "items keys mT nbytes ndim nonzero pop ravel real repeat reshape shape size squeeze strides swapaxes "
            "tolist transpose values view"
        ),
        MANY,
    ),
}
"""Attributes of arrays and containers by which no array is written to, and how many operands stand before `out` where
they are methods."""
KINDS: tuple[Any, ...] = (
    *(np, np.linalg, np.fft, math, np.ndarray, np.float64, np.dtype, np.ufunc, type(np.sum), Tensor),
    *(*CONTAINERS, *ATOMS, dict, type, FunctionType, MethodType, BuiltinFunctionType, GeneratorType),
)
"""Where other attributes may be such that they write."""
NAMED = (type, FunctionType, BuiltinFunctionType, ModuleType, np.ufunc, type(np.sum))
"""Kinds of values that `only_reads` knows by name."""
UNUSED = words(
    "__annotations__ __class_getitem__ __dataclass_fields__ __dataclass_params__ __dict__ __init__ __init_subclass__ "
    "__new__ __orig_bases__ __parameters__ __reduce__ __replace__ __set_name__ __type_params__ __weakref__"
)
"""Attributes by which classes and objects are made, copied and described."""
WRITTEN_IN_C = tuple(map(type, (len, str.join, int.__add__, int.real, slice.start, vars(dict)["fromkeys"])))
"""Kinds of attributes of classes that are not written in Python."""
METACLASSES = (type, type(np.dtype), type(Tensor))
LIBRARY = ("wengert.numpy", "wengert.nn.functional", "wengert.creation", "wengert.random")
"""Modules of ours whose functions only read, unless they have parameters that tell them otherwise."""
builtins_of = attrgetter("__builtins__")
"""Returns those of a function, which mypy knows of or not by what it has looked at before."""
SIGNALS = tuple(map(int, signal.valid_signals()))
HANDLERS = (None, signal.SIG_DFL, signal.SIG_IGN, signal.default_int_handler)


def never_writes(function: Any, values: Sequence[Any]) -> bool:
    """Tell whether nothing can write to an ndarray until a function that is called with some values has returned."""
    try:
        return runs_alone() and StoreSearch(function, values).finds_no_store()
    except MayWriteError:
        return False


def runs_alone() -> bool:
    """Tell whether no Python runs but what is called: no thread, no debugger, and no handler of signals or errors."""
    if sys.version_info >= (3, 14):  # whose instructions are others
        return False
    if len(sys._current_frames()) > 1 or sys.gettrace() is not None or sys.getprofile() is not None:
        return False
    if sys.version_info >= (3, 12) and any(sys.monitoring.get_tool(i) for i in range(6)):
        return False
    if (
        np.get_printoptions()["formatter"]
        or PACKING.get()
        or np.geterrcall() not in (None, COMPLAINTS)
        or warnings.showwarning.__module__ != "warnings"
    ):
        return False
    return all(getsignal(number) in HANDLERS for number in SIGNALS)


class StoreSearch:
    """Look at all that a function can reach; whatever is not known to be harmless raises a MayWriteError."""

    def __init__(self, function: Any, values: Sequence[Any]) -> None:
        self.queue: list[Any] = [function, *values]
        self.seen: dict[int, Any] = {}
        self.attributes: list[tuple[str, Any]] = []
        self.callees: list[tuple[Any, int]] = []
        self.members: set[str] = set()
        self.called: Counter[str] = Counter()

    def finds_no_store(self) -> bool:
        """Look at everything, and then at what it is called with; NumPy calls attributes that it has itself."""
        while self.queue:
            self.look(self.queue.pop())
        self.callees += [(x, MANY if is_known(name) else self.called[name]) for name, x in self.attributes]
        for value, count in self.callees:
            if type(value) in NAMED and count > operands_before_out(value):
                raise MayWriteError
        for name in self.members:
            if name not in ATTRIBUTES and is_known(name):
                raise MayWriteError
        return True

    def look(self, value: Any) -> None:
        """Look at one value."""
        kind = type(value)
        if type(kind) not in METACLASSES:
            raise MayWriteError
        if kind in ATOMS or kind in SCALARS or issubclass(kind, np.dtype) or id(value) in self.seen:
            return
        self.seen[id(value)] = value
        if len(self.seen) + len(self.queue) > MANY:
            raise MayWriteError
        if kind is np.ndarray:
            if value.dtype.hasobject:
                raise MayWriteError
        elif kind in CONTAINERS:
            self.queue += value
        elif kind is dict:
            self.queue += [*value, *value.values()]
        elif is_users_function(value):
            self.look_at_attributes(own_attributes(value).items())
            self.look_into(value)
        elif (inside := around_users_function(value)) is not None:
            self.look_at_attributes(own_attributes(value).items())
            self.queue += inside
        elif not only_reads(value):
            self.look_at_attributes([*class_attributes(kind), *own_attributes(value).items()])

    def look_at_attributes(self, entries: Iterable[tuple[str, Any]]) -> None:
        """Look at all attributes of something of the user's: NumPy asks for more than the user does, such as `mean`."""
        found = [(name, x.__func__ if type(x) is staticmethod or type(x) is classmethod else x) for name, x in entries]
        self.attributes += found
        self.queue += [x for _, x in found]

    def look_into(self, function: FunctionType) -> None:
        """Look at what a function of the user uses."""
        uses = uses_of(function.__code__)
        if uses is None:
            raise MayWriteError
        self.members |= uses.members
        self.queue += (function.__defaults__, function.__kwdefaults__)
        self.queue += [self.resolve(function, chain)[0] for chain in uses.chains]
        for callee, count in uses.calls:
            if count > self.most_operands(function, callee, count):
                raise MayWriteError

    def resolve(self, function: FunctionType, chain: Chain) -> tuple[Any, Sequence[str]]:
        """Return what a variable holds, or an attribute of a module, and the attributes that are not of modules."""
        code = function.__code__
        if chain.free:
            value = content_of((function.__closure__ or ())[code.co_freevars.index(chain.name)])
        else:
            value = find(chain.name, function.__globals__, builtins_of(function))
        rest = chain.attributes
        while rest and type(value) is ModuleType:
            value, rest = find(rest[0], vars(value)), rest[1:]
        self.members.update(rest)
        return value, rest

    def most_operands(self, function: FunctionType, callee: Chain | MemberName | None, count: int) -> int:
        """Return how many operands something takes before one that it writes to; methods of the user are seen later."""
        if callee is None:
            return 1
        name = callee.name
        if type(callee) is Chain:
            value, rest = self.resolve(function, callee)
            if not rest:
                self.callees.append((value, count))
                return MANY
            name = rest[-1]
        self.called[name] = max(self.called[name], count)
        return ATTRIBUTES.get(name, MANY)


@lru_cache(maxsize=1000)
def is_known(name: str) -> bool:
    """Tell whether an attribute is one of what is not the user's."""
    return name.startswith("__") or any(hasattr(x, name) for x in KINDS)


def is_users_function(value: Any) -> bool:
    """Tell whether a value is a function that the user has written."""
    return type(value) is FunctionType and not is_library(value.__code__)


def find(name: str, *spaces: Mapping[str, Any]) -> Any:
    """Return what a name stands for in the first of some namespaces that has it."""
    for space in spaces:
        if name in space:
            return space[name]
    raise MayWriteError


def around_users_function(value: Any) -> list[Any] | None:
    """Return what a property, or a method, partial or derivative of a user's function, holds; None of all others."""
    kind = type(value)
    if kind is property:
        return [value.fget, value.fset, value.fdel]
    if kind is MethodType and is_users_function(value.__func__):
        return [value.__self__, value.__func__]
    if kind is partial and is_users_function(value.func) and STORING.isdisjoint(value.keywords):
        return [value.func, value.args, value.keywords]
    if kind.__module__ == "wengert.transforms.transformed_function":
        function = value.args[0]
        return [function] if is_users_function(function) or type(function) is kind else None
    return None


def class_attributes(kind: type) -> list[tuple[str, Any]]:
    """Return what a class gives to its objects; raise a MayWriteError if C, or no name, says what that is."""
    if kind in TAKEN_APART:
        raise MayWriteError
    own = [(one, name, entry) for one in kind.__mro__[:-1] for name, entry in vars(one).items()]
    for _, name, entry in own:
        in_c = issubclass(type(entry), WRITTEN_IN_C)
        if name in ("__getattr__", "__getattribute__") or in_c != (name in ("__dict__", "__weakref__")):
            raise MayWriteError
    return [(name, x) for one, name, x in own if name not in UNUSED and not is_of_dataclass(one, name, x)]


def is_of_dataclass(kind: type, name: str, method: Any) -> bool:
    """Tell whether a method is the comparison of fields, or the text of them, that `dataclasses` writes."""
    fields = vars(kind).get("__dataclass_fields__")
    if type(method) is not FunctionType or type(fields) is not dict:
        return False
    code = method.__code__
    if name == "__repr__":
        return is_library(code)
    return (
        name == "__eq__" and uses_of(code) is not None and {*code.co_names} <= {"__class__", "NotImplemented", *fields}
    )


def only_reads(value: Any) -> bool:
    """Tell whether a function, class or module of NumPy's, Python's or this library writes to nothing it is given.

    >>> only_reads(np.sum), only_reads(np.copyto), only_reads(len), only_reads(np.frompyfunc(len, 1, 1))
    (True, False, True, False)
    """
    kind = type(value)
    if kind is type:
        return value in CALLED or value in SCALARS
    if kind is ModuleType:
        return value.__name__ in MODULES
    if kind is BuiltinFunctionType and value not in FUNCTIONS:
        return value in CALLED or value.__module__ == "math"
    if kind not in (np.ufunc, FunctionType, BuiltinFunctionType, type(np.sum)) or value.__name__ in WRITING:
        return False
    if value in FUNCTIONS:  # unless a user says what it means
        return str(FUNCTIONS[value].__module__).startswith("wengert.")
    if kind is np.ufunc:
        return any("O" not in types for types in value.types)  # others call what a user wrote
    return kind is FunctionType and is_wengerts(value.__code__) and value.__module__.startswith(LIBRARY)


@lru_cache(maxsize=1000)
def operands_before_out(function: Any) -> int:
    """Return how many operands a function takes by place before one that it writes to.

    >>> operands_before_out(np.add), operands_before_out(np.max), operands_before_out(np.where) > 3
    (2, 2, True)
    """
    if type(function) is np.ufunc:
        return function.nin
    if type(function) not in (type(np.sum), FunctionType) or is_users_function(function):
        return MANY
    try:
        names = list(signature(function).parameters.values())
    except ValueError:
        return 2
    storing = (i for i, x in enumerate(names) if x.name in STORING and x.kind is not x.KEYWORD_ONLY)
    return next(storing, MANY)
