"""Questions about arrays that are answered from shape, dtype and memory, with NumPy's signatures."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.dispatch import as_tensor, implements
from wengert.core.values.numpy_overrides import NOTHING
from wengert.core.values.tensor import Tensor, concrete, make_tensor, raw
from wengert.errors import DtypeError
from wengert.numpy._namespace import enter_as


@implements(np.shape, by=NOTHING)
def shape(a: Any) -> tuple[int, ...]:
    """Return the lengths of the axes; see `numpy.shape`."""
    return as_tensor(a).shape


@implements(np.ndim, by=NOTHING)
def ndim(a: Any) -> int:
    """Return the number of axes; see `numpy.ndim`."""
    return as_tensor(a).ndim


@implements(np.size, by=NOTHING)
def size(a: Any, axis: Any = None) -> int:
    """Return the number of elements, or of those along axes; see `numpy.size`."""
    return int(np.size(without_memory(as_tensor(a)), axis))


def round_scalar(x: Tensor, ndigits: Any) -> Any:
    """Round as NumPy's scalars do: to a Python integer, which no gradient follows, or to a scalar; arrays do not."""
    if not is_scalar(x):
        given = f"an array of shape {x.shape}"
        raise DtypeError("round", given, "a scalar is needed, as by arrays of NumPy", "Use numpy.round")
    if ndigits is None:
        return round(concrete("round", x).item())
    if x.weak:  # Python rounds decimal digits of its numbers in its own way
        return make_tensor(round(concrete("round", x).item(), ndigits), None, None)
    return np.round(x, ndigits)


def without_memory(value: Any) -> Any:
    """Return an array of a Tensor's shape and dtype that takes no memory; other values as they are."""
    if type(value) is not Tensor:
        return value
    return np.broadcast_to(np.zeros((), value.dtype), value.shape)


def dtype_or_value(value: Any) -> Any:
    """Return the dtype of a Tensor; other values as they are."""
    return value.dtype if type(value) is Tensor else value


@implements(np.result_type, by=NOTHING)
def result_type(*arrays_and_dtypes: Any) -> np.dtype[Any]:
    """Return the dtype that an operation on the operands gives; see `numpy.result_type`."""
    return np.result_type(*map(dtype_or_value, arrays_and_dtypes))


@implements(np.can_cast, by=NOTHING)
def can_cast(from_: Any, to: Any, casting: Any = "safe") -> bool:
    """Tell whether a dtype can be converted to another; see `numpy.can_cast`."""
    return np.can_cast(dtype_or_value(from_), to, casting)


@implements(np.common_type, by=NOTHING)
def common_type(*arrays: Any) -> Any:
    """Return a float or complex dtype that fits all arrays; see `numpy.common_type`."""
    return np.common_type(*(np.empty(0, as_tensor(x).dtype) for x in arrays))


@implements(np.min_scalar_type, by=NOTHING)
def min_scalar_type(a: Any, /) -> np.dtype[Any]:
    """Return the smallest dtype that holds a scalar; see `numpy.min_scalar_type`."""
    return np.min_scalar_type(raw(a))


@implements(np.iscomplexobj, by=NOTHING)
def iscomplexobj(x: Any) -> bool:
    """Tell whether the dtype is complex; see `numpy.iscomplexobj`."""
    return as_tensor(x).dtype.kind == "c"


@implements(np.isrealobj, by=NOTHING)
def isrealobj(x: Any) -> bool:
    """Tell whether the dtype is not complex; see `numpy.isrealobj`."""
    return not iscomplexobj(x)


def enter_query(function: Any) -> None:
    """Enter a function that only looks at the arrays under Tensors."""

    @enter_as(function, "Look at the arrays under Tensors", NOTHING)
    def look(*args: Any, **kwargs: Any) -> Any:
        return function(*map(raw, args), **kwargs)


_LOOKING: tuple[Callable[..., Any], ...] = (
    np.shares_memory,
    np.may_share_memory,
    np.array2string,
    np.array_str,
    np.isfortran,
)
for _function in _LOOKING:
    enter_query(_function)


@implements(np.array_repr, by=NOTHING)
def array_repr(arr: Any, *args: Any, **kwargs: Any) -> str:
    """Return the printed form; see `numpy.array_repr`."""
    return repr(arr) if type(arr) is Tensor else np.array_repr(arr, *args, **kwargs)
