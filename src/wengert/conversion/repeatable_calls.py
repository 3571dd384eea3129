"""Which functions a loop may call that is one equation and could be written out: those that do nothing but return.

What prints, draws a number or reads a file does so in each round of a loop that is written out, but once in an
equation.
"""

from __future__ import annotations

import builtins
import functools
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.control.code_owners import is_library, is_wengerts
from wengert.core.values.tensor import Tensor, is_staged
from wengert.support.attributes import class_attribute
from wengert.traces.whole_number_bounds import not_alike
from wengert.traces.written_out import ROLLING

ACTING = frozenset(
    getattr(builtins, name)
    for name in ("print", "input", "open", "exec", "eval", "next", "id", "globals", "locals", "vars", "breakpoint")
) | {builtins.__import__}
MODULES = ("builtins", "cmath", "collections", "copy", "functools", "itertools", "math", "operator", "_operator")
"""Modules of Python whose functions do nothing but return, but for those in `ACTING`."""
RANDOM = ("numpy.random", "scipy.stats")
METHODS_OF = (
    *(list, tuple, dict, set, frozenset, str, bytes, int, float, complex, range, slice, type),
    *(np.ndarray, np.generic, np.ufunc, np.dtype, Tensor),
)
"""Types whose methods do nothing but return or change their object, which is seen."""


def repeatable(function: Any) -> Any:
    """Return a function, of which it is known that each round that is written out would do the same by calling it.

    Raises:
        TracedTruthError: it may do more than return what its arguments determine.
    """
    if not is_repeatable(function):
        raise not_alike(f"a call of {getattr(function, '__name__', type(function).__name__)}")
    if type(function) is BuiltinFunctionType and isinstance(function.__self__, dict | set | frozenset):

        def by_hash(*args: Any) -> Any:
            return require_known(function.__name__, function(*args), *args[:1])

        return by_hash
    return function


def require_known(name: str, found: Any, *args: Any) -> Any:
    """Return what was found of some values; it is not what Python finds if they are traced, and Python's otherwise."""
    if ROLLING.strict and any(map(is_staged, args)):
        raise not_alike(f"{name} of a value")
    return found


def is_repeatable(function: Any) -> bool:
    """Tell whether a function is known to do nothing but return, or is the user's, whose calls are looked at."""
    kind = type(function)
    if kind is MethodType:
        function = function.__func__
        kind = type(function)
    if kind is FunctionType:
        return not is_library(function.__code__) or is_wengerts(function.__code__) or is_pure_module(function)
    if kind is functools.partial:
        return is_repeatable(function.func)
    if issubclass(kind, type):
        return is_pure_module(function) or not is_library_class(function)
    owner = getattr(function, "__self__", None)
    if kind is BuiltinFunctionType and owner is not None and not isinstance(owner, ModuleType):
        return isinstance(owner, METHODS_OF)
    if kind is BuiltinFunctionType or isinstance(function, np.ufunc):
        return function not in ACTING and is_pure_module(function)
    if kind.__module__.startswith(("wengert.", "numpy")):
        return is_pure_module(kind)
    call = class_attribute(kind, "__call__")
    return isinstance(call, FunctionType) and not is_library(call.__code__)


def is_pure_module(value: Any) -> bool:
    """Tell whether a function or class comes from a module of functions that do nothing but return."""
    module = getattr(value, "__module__", None)
    if module is None:  # NumPy's ufuncs, methods of types
        return isinstance(value, np.ufunc)
    return not module.startswith(RANDOM) and (
        module in MODULES or module.split(".")[0] in ("numpy", "scipy", "wengert")
    )


def is_library_class(kind: type) -> bool:
    """Tell whether a class is of Python or an installed package."""
    made = class_attribute(kind, "__init__")
    return not (isinstance(made, FunctionType) and not is_library(made.__code__)) and not issubclass(kind, tuple)
