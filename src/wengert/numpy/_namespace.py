"""The public namespace: each function that has a meaning for Tensors, under NumPy's names, returning Tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.dispatch import as_tensor
from wengert.core.tensor import FUNCTIONS, Tensor

__all__ = ["exported"]

CONSTANTS = ("e", "euler_gamma", "inf", "nan", "newaxis", "pi")
DTYPES = (
    *("bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "intp"),
    *("float16", "float32", "float64", "longdouble", "complex64", "complex128", "clongdouble", "dtype"),
)
PLAIN = (
    *("finfo", "iinfo", "isdtype", "issubdtype", "promote_types", "broadcast_shapes", "isscalar", "iterable"),
    *("s_", "index_exp", "ndindex", "errstate", "seterr", "geterr", "printoptions", "set_printoptions"),
)
"""What concerns dtypes, shapes and settings alone, and is NumPy's own."""

BESIDE = frozenset({Tensor, float, int})
"""Types of operands beside a Tensor that need no look."""


def returns_tensors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function whose array results are Tensors, whatever it was given: itself, if it says that they are.

    What a function is for a Tensor and no options, `of_tensor`, and for two operands, `of_two`, is called without the
    way through the options.
    """
    if function.__annotations__.get("return") == "Tensor":
        return function
    of_tensor, of_two = getattr(function, "of_tensor", None), getattr(function, "of_two", None)

    def public(*args: Any, **kwargs: Any) -> Any:
        result = function(*args, **kwargs)
        return result if type(result) is Tensor else wrapped(result)

    def direct(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 1 and type(args[0]) is Tensor and not kwargs:
            return of_tensor(*args)  # type: ignore[misc]  # there is one
        result = function(*args, **kwargs)
        return result if type(result) is Tensor else wrapped(result)

    def direct_of_two(*args: Any, **kwargs: Any) -> Any:
        if len(args) == 2 and type(args[0]) is Tensor and type(args[1]) in BESIDE and not kwargs:
            return of_two(*args)  # type: ignore[misc]  # there is one
        result = function(*args, **kwargs)
        return result if type(result) is Tensor else wrapped(result)

    return functools.wraps(function)(direct if of_tensor is not None else public if of_two is None else direct_of_two)


def wrapped(result: Any) -> Any:
    """Return arrays and NumPy scalars as Tensors, also inside tuples and lists."""
    if isinstance(result, np.ndarray | np.generic):
        return as_tensor(result)
    if isinstance(result, list):
        return [wrapped(item) for item in result]
    if isinstance(result, tuple):
        items = [wrapped(item) for item in result]
        return type(result)(*items) if hasattr(result, "_fields") else tuple(items)
    return result


def exported(module: Any = np) -> dict[str, Any]:
    """Return the names of NumPy, or of a module of it, with what they mean for Tensors."""
    plain = (*CONSTANTS, *DTYPES, *PLAIN) if module is np else ()
    names: dict[str, Any] = {name: getattr(np, name) for name in plain}
    public: dict[int, Callable[..., Any]] = {}
    for name in sorted(vars(module)):  # not dir(np), whose names load the rest of NumPy
        function = getattr(module, name)
        if callable(function) and not isinstance(function, type) and function in FUNCTIONS:
            meaning = FUNCTIONS[function]
            names[name] = public.setdefault(id(meaning), returns_tensors(meaning))
            if isinstance(function, np.ufunc):
                attach_methods(names[name], function)
    return names


def attach_methods(public: Callable[..., Any], ufunc: np.ufunc) -> None:
    """Give a public function the methods of its ufunc that have a meaning for Tensors."""
    for method in ("accumulate", "at", "outer", "reduce", "reduceat"):
        meaning = FUNCTIONS.get((ufunc, method))
        if meaning is not None:
            setattr(public, method, returns_tensors(meaning))
