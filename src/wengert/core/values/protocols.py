"""NumPy's protocols, by which it hands functions of Tensors over (NEP 13 and NEP 18): methods of Tensor.

A protocol takes 0.2 us before a line of ours runs, so ufuncs of plain Tensors are computed here, without a further
call, which would take half of what that saves. Functions that have no derivatives here are called with the arrays of
Tensors that need none.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.containers.tree_leaves import flatten, unflatten
from wengert.core.memory.buffers import BORROWED, forbid_writes, may_change
from wengert.core.primitives.signatures import MISSING
from wengert.core.values.interop import (
    ORDINARY,
    any_decides,
    decides,
    decides_functions,
    find_lazy,
    is_lazy,
    lazy_error,
    may_be_lazy,
)
from wengert.core.values.numpy_overrides import AT_ONCE, DIRECT, FUNCTIONS, RAISED, carry_out
from wengert.core.values.tensor import WATCHES, Tensor, innermost_trace, is_concrete, is_staged, make_tensor, new_tensor
from wengert.errors import DtypeError, GraphError
from wengert.native.threads.elementwise import LARGE
from wengert.support.deferred_warnings import unregister
from wengert.support.hints import hints
from wengert.support.refusals import refusal

unregister(globals())  # what would warn goes the general way, and warns there
LATER: dict[str, str] = {}
"""Modules that enter what functions of packages mean for Tensors, by the package; see `known_later`."""
ndarray, float64 = np.ndarray, np.float64
DOUBLE = np.dtype(float64)


def array_ufunc(
    self: Tensor, ufunc: np.ufunc, method: str, x: Any = MISSING, y: Any = MISSING, /, *others: Any, **kwargs: Any
) -> Any:
    """Return what a ufunc, or a method of one, gives for operands with a Tensor among them."""
    if not kwargs and method == "__call__":
        if (
            self._trace is None
            and (type(value := self._value) is float64 or (type(value) is ndarray and value.size < LARGE))
            and ufunc in AT_ONCE
            and not WATCHES
        ):
            if type(x) is Tensor:
                p = x._value if x._trace is None else None
            else:
                p = x if type(x) is ndarray and x.dtype is DOUBLE else None
            if type(y) is Tensor:
                q = y._value if y._trace is None else None
            else:
                q = y if y is MISSING or (type(y) is ndarray and y.dtype is DOUBLE) else None
            if p is not None and q is not None:
                try:
                    out = ufunc(p) if q is MISSING else ufunc(p, q)
                except (ArithmeticError, TypeError, ValueError):  # where more is said; or warned
                    pass
                else:
                    result = new_tensor()
                    result._value = out
                    result._trace = result._node = None
                    result._kept = False
                    return result
        if (direct := DIRECT.get(ufunc)) is not None:
            result = direct(x) if y is MISSING else direct(x, y, *others) if others else direct(x, y)
            if result is not NotImplemented:
                return result
    inputs = () if x is MISSING else (x,) if y is MISSING else (x, y, *others)
    for x in inputs:
        if type(x) not in ORDINARY and decides(type(x)):
            return left_to(x, ufunc, self)
    if kwargs and any_decides(kwargs.get("out") or ()):
        return NotImplemented
    function = FUNCTIONS.get(ufunc if method == "__call__" else (ufunc, method))
    if function is None and known_later():
        return array_ufunc(self, ufunc, method, *inputs, **kwargs)
    if function is None:
        origin = "numpy." if getattr(np, ufunc.__name__, None) is ufunc else ""
        name = origin + ufunc.__name__ + ("" if method == "__call__" else f".{method}")
        return call_plainly(name, getattr(ufunc, method), inputs, kwargs)
    try:
        return function(*inputs, **kwargs)
    except RAISED:
        if kwargs.get("out") is not None:
            carry_out(function, *inputs, **kwargs)
        raise


def array_function(self: Tensor, func: Any, types: Any, args: Any, kwargs: Any) -> Any:
    """Return what a function of NumPy's gives for arguments with a Tensor among them."""
    if len(types) > 1 and any(map(decides_functions, types)):
        if any(map(may_be_lazy, types)) and (lazy := find_lazy((*args, *kwargs.values()))) is not None:
            raise lazy_error(func.__name__, lazy)
        return NotImplemented
    if self._trace is None and (direct := DIRECT.get(func)) is not None:
        result = direct(*args, **kwargs)
        if result is not NotImplemented:
            return result
    function = FUNCTIONS.get(func)
    if function is None and known_later():
        return array_function(self, func, types, args, kwargs)
    if function is None:
        return call_plainly(f"{func.__module__}.{func.__name__}", func, args, kwargs)
    try:
        return function(*args, **kwargs)
    except RAISED:
        if "out" in function.__code__.co_varnames:
            carry_out(function, *args, **kwargs)
        raise


def left_to(other: Any, ufunc: np.ufunc, x: Tensor) -> Any:
    """Return NotImplemented, so that an operand decides; of one that asks for elements, or has none, say what to write.

    Raises:
        GraphError: it is one of pandas', and there are no elements to be had.
        DtypeError: it is one of Dask's.
    """
    kind = type(other)
    if is_lazy(other):
        raise lazy_error(ufunc.__name__, other)
    if x._trace is None or kind.__module__.partition(".")[0] != "pandas":
        return NotImplemented
    needed = "an ndarray is needed beside a Tensor that is being differentiated or traced"
    raise GraphError(ufunc.__name__, f"a {kind.__name__} of pandas", needed, hints("libraries")["pandas"])


def known_later() -> bool:
    """Import the meanings of functions of a package that the program has loaded meanwhile; tell whether there were any.

    That is done when a function without a meaning is met, so that nothing is imported for packages not in use.
    """
    for package, meanings in list(LATER.items()):
        if package in sys.modules:
            importlib.import_module(meanings)
            LATER.pop(package, None)  # which another thread may have done
            return True
    return False


for _name, _method in {"__array_ufunc__": array_ufunc, "__array_function__": array_function}.items():
    setattr(Tensor, _name, _method)


def call_plainly(name: str, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Call a function that has no derivatives here, such as one that writes a file, with Tensors that need none.

    What it returns of numbers comes back as Tensors.
    """
    leaves, structure = flatten((args, kwargs))
    tensors = [x for x in leaves if type(x) is Tensor]
    traced = next((x for x in tensors if innermost_trace(x) is not None), None)
    if traced is not None:
        if is_staged(traced):
            raise unsupported_error(name, "a Tensor that is being traced, whose elements are not there yet", "")
        if not is_concrete(traced):
            raise unsupported_error(name, "a Tensor that differs from lane to lane of a batch", "")
        raise unsupported_error(name, "a Tensor that is being differentiated", ", or pass .detach()")
    if not tensors:
        raise unsupported_error(name, "Tensors in a container that Wengert does not know", "")
    if any(type(x) is Tensor for x in flatten(kwargs.get("out"))[0]):
        raise unsupported_error(name, "a Tensor to write to, given as out=", ", or leave out= away")
    plain_args, plain_kwargs = unflatten(structure, [x.numpy() if type(x) is Tensor else x for x in leaves])
    results, form = flatten(function(*plain_args, **plain_kwargs))
    return unflatten(form, [result_of_numpy(x) for x in results])


def unsupported_error(name: str, given: str, otherwise: str) -> DtypeError:
    """Return the error about a function of NumPy that has no derivative here."""
    action = "Use another function of wengert.numpy, declare a primitive with wengert.extend"
    needed = "a function that Wengert knows how to differentiate is needed"
    return refusal(DtypeError(name, given, needed, action + otherwise))


def result_of_numpy(value: Any) -> Any:
    """Return a result as a Tensor if it is numeric; memory that may be somebody else's is copied where it is kept."""
    if not isinstance(value, np.ndarray | np.generic) or value.dtype.kind not in "?biufc":
        return value
    tensor = make_tensor(value, None, None)
    tensor._kept = BORROWED if isinstance(value, np.ndarray) and may_change(value) else True
    read_only = isinstance(value, np.ndarray) and not value.flags.writeable  # a window on an operand, say
    return forbid_writes(tensor) if read_only else tensor
