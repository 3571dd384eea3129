"""NumPy's sorts of rows at their addresses, as its array functions offer them to other extensions."""

from __future__ import annotations

import ctypes
import functools
import importlib

import numpy as np

from wengert.native.lapack import capsules
from wengert.native.structs import POINTER, Array, Struct

KINDS = ("quick", "heap", "stable")
"""NumPy's kinds of sorts, in the order in which it keeps them."""
ENTRY = 365
"""The place in NumPy's table for extensions of the function that gives a dtype's array functions, since NumPy 2.0."""

ARRAY_FUNCTIONS = Struct(
    "ArrayFunctions",
    before=Array(POINTER, 33),  # conversions, reading and writing, extremes, dot products, text, filling
    sort=Array(POINTER, len(KINDS)),
    argsort=Array(POINTER, len(KINDS)),
)
"""The array functions of a dtype as NumPy's public header has them."""


@functools.cache
def table() -> int:
    """Return the address of what NumPy offers to extensions."""
    capsule = importlib.import_module("numpy._core._multiarray_umath")._ARRAY_API
    return int(capsules()[1](capsule, None))


@functools.cache
def sort_address(name: str) -> int:
    """Return the address of a sort by its name in native code; see `loader.SORT`."""
    _, what, kind, dtype = name.split("_")
    function = ctypes.c_void_p.from_address(table() + ENTRY * ctypes.sizeof(ctypes.c_void_p)).value
    array_functions = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object)(function or 0)
    found = ARRAY_FUNCTIONS.view(array_functions(np.dtype(dtype)))
    return int(getattr(found, what)[KINDS.index(kind)])
