"""Operands of other libraries: those that decide what NumPy's operations on them mean (NEP 13, NEP 18), and arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from wengert.errors import DtypeError
from wengert.support.attributes import class_attribute, has_class_attribute
from wengert.support.hints import hints

PLAIN_UFUNC = np.ndarray.__array_ufunc__
PLAIN_FUNCTION = np.ndarray.__array_function__
ORDINARY: set[type] = {np.ndarray, float, int}
"""Types that most operands have, and that are known to decide nothing; `Tensor` is added where it is defined."""

REFLECTED = {
    "add": "__radd__",
    "subtract": "__rsub__",
    "multiply": "__rmul__",
    "divide": "__rtruediv__",
    "pow": "__rpow__",
    "remainder": "__rmod__",
    "floor_divide": "__rfloordiv__",
    "divmod": "__rdivmod__",
    "matmul": "__rmatmul__",
    "bitwise_and": "__rand__",
    "bitwise_or": "__ror__",
    "bitwise_xor": "__rxor__",
    "left_shift": "__rlshift__",
    "right_shift": "__rrshift__",
    "less": "__gt__",
    "less_equal": "__ge__",
    "greater": "__lt__",
    "greater_equal": "__le__",
    "equal": "__eq__",
    "not_equal": "__ne__",
}
"""Of the names of operations, the method of the operand on the right."""
PYTHONS = frozenset({"array", "builtins", "collections"})
"""Modules of Python's sequences."""


def ours(kind: type) -> None:
    """Enter a type of the library, which speaks the protocols itself."""
    ORDINARY.add(kind)


def cache_by_type(question: Callable[[type], bool]) -> Callable[[type], bool]:
    """Answer a question about types once for each."""
    answers: Any = lru_cache(maxsize=1024)(question)
    return answers  # type: ignore[no-any-return]  # mypy takes types for unhashable


@cache_by_type
def decides(kind: type) -> bool:
    """Tell whether values of a type have a say in ufuncs: `__array_ufunc__` of their own, or None, which means no.

    >>> decides(float), decides(np.ndarray), decides(type("Quantity", (), {"__array_ufunc__": None}))
    (False, False, True)
    """
    return kind not in ORDINARY and class_attribute(kind, "__array_ufunc__", PLAIN_UFUNC) is not PLAIN_UFUNC


@cache_by_type
def decides_functions(kind: type) -> bool:
    """Tell whether values of a type have a say in NumPy's other functions."""
    return kind not in ORDINARY and class_attribute(kind, "__array_function__", PLAIN_FUNCTION) is not PLAIN_FUNCTION


def any_decides(operands: Iterable[Any]) -> bool:
    """Tell whether some operand has a say in ufuncs."""
    return any(type(x) not in ORDINARY and decides(type(x)) for x in operands)


@cache_by_type
def foreign(kind: type) -> bool:
    """Tell whether an operator should leave the decision to values of a type, or has nothing to do with them."""
    return issubclass(kind, type(None) | str | bytes | dict | set) or decides(kind)


def reflects(kind: type, name: str) -> bool:
    """Tell whether a class of which NumPy makes arrays has a method of its own for the operand on the right.

    Python's sequences have those that repeat them; arrays of other libraries, which `__dlpack__` tells, are converted.

    >>> reflects(tuple, "multiply"), reflects(type("Vector", (tuple,), {"__rmul__": None}), "multiply")
    (False, True)
    """
    if has_class_attribute(kind, "__dlpack__") or has_class_attribute(kind, "toarray"):
        return False
    if not has_class_attribute(kind, "__array__") and not (
        has_class_attribute(kind, "__len__") and has_class_attribute(kind, "__getitem__")
    ):
        return False
    method = REFLECTED.get(name)
    return any(method in vars(x) for x in kind.__mro__ if x.__module__ not in PYTHONS)


def defer(function: Callable[[Any, Any], Any], kind: type, left: Any, right: Any) -> Any:
    """Return what an operator gives for an operand of a foreign type, as it would for an ndarray.

    A type with an `__array_ufunc__` receives the ufunc; any other its reflected method, if Python finds one. Strings
    would take a number for how often they are repeated, which an array is not.
    """
    if function is np.multiply and issubclass(kind, str | bytes):
        number = right if isinstance(left, str | bytes) else left
        if number.shape or number.dtype.kind not in "iu":
            kinds = f"{type(left).__name__!r} and {type(right).__name__!r}"
            raise TypeError(f"unsupported operand type(s) for *: {kinds}")
    return NotImplemented if class_attribute(kind, "__array_ufunc__") is None else function(left, right)


def without_dispatch(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function of NumPy's without the look for those who have a say, which takes 0.1 to 0.4 microseconds.

    It is for operands that are known to be ndarrays and numbers. What is no such function comes back as it is.

    >>> without_dispatch(np.concatenate)((np.ones(1), np.zeros(1)))
    array([1., 0.])
    """
    found: Callable[..., Any] = getattr(function, "_implementation", function)  # private: else it is as it was
    return found


def is_foreign_array(kind: type) -> bool:
    """Tell whether a type is that of another library's arrays, of which NumPy makes ndarrays."""
    return has_class_attribute(kind, "__array__") and not issubclass(kind, np.ndarray | np.generic)


@cache_by_type
def may_be_lazy(kind: type) -> bool:
    """Tell whether values of a type may be tasks instead of elements: collections of Dask, or what is made of them."""
    return kind not in ORDINARY and has_class_attribute(kind, "__dask_graph__")


def is_lazy(value: Any) -> bool:
    """Tell whether the elements of a value are still to be computed, as those of Dask's arrays are."""
    return may_be_lazy(type(value)) and value.__dask_graph__() is not None


def lazy_error(name: str, value: Any) -> DtypeError:
    """Return the error about a value whose elements are still to be computed, which may be more than memory holds."""
    given = f"a {type_shown(value)}, whose elements are not computed yet"
    return DtypeError(name, given, "arrays that are in memory, Tensors or numbers are needed", remedy_for(value, ""))


def find_lazy(values: Iterable[Any]) -> Any:
    """Return the first lazy value among some, and those in lists and tuples of them; None if there is none."""
    for value in values:
        if isinstance(value, list | tuple):
            value = find_lazy(value)
        if value is not None and is_lazy(value):
            return value
    return None


def type_shown(value: Any) -> str:
    """Return what errors call the type of a value; if it is an array of another library, with the name of that.

    >>> type_shown("a"), type_shown(type("Array", (), {"__array__": None, "__module__": "jaxlib._jax"})())
    ('str', 'jaxlib.Array')
    """
    kind = type(value)
    return f"{kind.__module__.partition('.')[0]}.{kind.__name__}" if is_foreign_array(kind) else kind.__name__


def remedy_for(value: Any, otherwise: str) -> str:
    """Return what to do with a value that is no array of ours: to convert it, if it is one of another library."""
    if is_lazy(value):
        return str(hints("libraries")["dask"])
    return "Convert it first, by numpy.asarray(x)" if is_foreign_array(type(value)) else otherwise
