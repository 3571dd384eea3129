"""NumPy's own inner loops for large arrays, shared among the threads of a team.

Each element is computed by the loop that NumPy itself would run, so results are NumPy's to the last bit. Conditions
that NumPy would report make it compute the operation again, so that warnings and errors are NumPy's as well.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy import ndarray

from wengert.native.engine import CONDITIONS
from wengert.native.team import TEAM

__all__ = ["LARGE", "shared"]

LARGE = 32_768
"""Elements from which an operation is worth sharing: about 8 microseconds of additions."""

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))
UNKNOWN = (None, 0)
POINTER = ctypes.sizeof(ctypes.c_void_p)
LOOPS = object.__basicsize__ + 4 * ctypes.sizeof(ctypes.c_int)
"""Where a PyUFuncObject of NumPy's public header points to its loops; the pointer to their data follows."""

Loop = ctypes.c_int64 * 4
"""%Loop of team.ll."""


def shared(ufunc: np.ufunc) -> Callable[..., Any]:
    """Return a function that computes a ufunc on several threads where its operands allow it.

    Args:
        ufunc: a NumPy function of one or two operands with one result.

    Returns:
        `compute(x, y=None, out=None)` for ndarrays and numbers, of which `x` or `y` is an array of at least LARGE
        elements; `out` is `x` to overwrite it, in which case conditions are not reported.

    >>> import numpy as np
    >>> shared(np.add)(np.ones(100_000), 2.0)[-1]
    np.float64(3.0)
    """
    loops: dict[np.dtype[Any], tuple[Any, int] | None] = {}

    def compute(x: Any, y: Any = None, out: Any = None) -> Any:
        like = x if type(x) is ndarray else y
        dtype = like.dtype
        loop = loops.get(dtype, UNKNOWN)
        if loop is UNKNOWN:
            loop = loops[dtype] = loop_of(ufunc, dtype)
        if loop is None:
            return by_numpy(x, y, out)
        first, second = as_array(x, dtype), (like if y is None else as_array(y, dtype))
        result = np.empty(like.shape, dtype) if out is None else out
        raised = TEAM.apply(loop[1], first, second, result)
        if raised == 0 or (raised > 0 and (out is not None or not raised & reported())):
            return result
        return by_numpy(x, y, out)

    def by_numpy(x: Any, y: Any, out: Any) -> Any:
        return ufunc(x, out=out) if y is None else ufunc(x, y, out=out)

    return compute


def as_array(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return an operand as an array; Python's numbers take the other operand's dtype."""
    if type(x) is ndarray:
        return x
    if type(x) is not float and type(x) is not int:
        return np.array(x)
    with np.errstate(over="ignore"):
        array = np.array(x, dtype)
    return array if math.isfinite(array) or not math.isfinite(x) else np.array(x)  # NumPy reports what is too large


def reported() -> int:
    """Return the floating-point conditions that NumPy would report at present."""
    return sum(CONDITIONS[name] for name, action in np.geterr().items() if action != "ignore")


def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[Any, int] | None:
    """Return a `Loop` for operands and a result of one dtype, with its address; None if the ufunc has none."""
    signature = f"{dtype.char * ufunc.nin}->{dtype.char}"
    if dtype not in FLOATS or signature not in ufunc.types:
        return None
    counts = (ctypes.c_int * 3).from_address(id(ufunc) + object.__basicsize__)
    if tuple(counts) != (ufunc.nin, ufunc.nout, ufunc.nargs):  # not the layout of the header
        return None
    position = ufunc.types.index(signature)
    loops, data = (ctypes.c_int64.from_address(id(ufunc) + LOOPS + i * POINTER).value for i in (0, 1))
    address = ctypes.c_int64.from_address(loops + position * POINTER).value
    datum = ctypes.c_int64.from_address(data + position * POINTER).value if data else 0
    loop = Loop(address, datum, dtype.itemsize, ufunc.nin)
    return loop, ctypes.addressof(loop)
