"""NumPy's inner loops as jobs of a team: parts of arrays computed row by row, with NumPy's own code."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.native.availability import UnavailableError
from wengert.native.loader import kept_code, kept_function
from wengert.native.objects import HEAD
from wengert.native.structs import I32, POINTER, Pointer, Struct
from wengert.native.threads.job_tables import LOOP
from wengert.support.fork_safety import UNSTOPPED

FLOATS = (np.dtype(np.float64), np.dtype(np.float32))

UFUNC = Struct(
    "UFunc",
    head=HEAD,
    nin=I32,
    nout=I32,
    nargs=I32,
    identity=I32,
    loops=Pointer(POINTER),
    data=Pointer(POINTER),
)
"""A NumPy function as NumPy's public header has it: counts of operands, then loops and their data by signature."""


def code() -> int:
    """Return the address of `loop_jobs.apply`.

    Raises:
        UnavailableError: LLVM cannot serve here.
    """
    return kept_code("inner loops as jobs", program_text).addresses["apply"]


def program_text() -> str:
    """Return the text of the native functions; what it is written with is loaded only if it is needed."""
    with UNSTOPPED:
        from wengert.native.builder import program
        from wengert.native.threads.loop_jobs import apply

    return program(apply)


def loop_of(ufunc: np.ufunc, dtype: np.dtype[Any]) -> tuple[Any, int] | None:
    """Return a LOOP for operands and a result of one dtype, with its address; None if the ufunc has none."""
    signature = f"{dtype.char * ufunc.nin}->{dtype.char}"
    if dtype not in FLOATS or signature not in ufunc.types:
        return None
    view = UFUNC.view(id(ufunc))
    if (view.nin, view.nout, view.nargs) != (ufunc.nin, ufunc.nout, ufunc.nargs):  # not the layout of the header
        return None
    position = ufunc.types.index(signature)
    function, data = (pointer_at(table, position) if table else None for table in (view.loops, view.data))
    loop = LOOP.ctype(function, data, dtype.itemsize, ufunc.nin)
    return loop, ctypes.addressof(loop)


def own_loop(name: str, dtype: np.dtype[Any], operands: int, write: Callable[[str], str]) -> tuple[Any, int] | None:
    """Return a LOOP of one of our own functions, with its address; None where it cannot be had."""
    try:
        address = kept_function(f"loop.{name}.{dtype.name}", write)
    except UnavailableError:
        return None
    loop = LOOP.ctype(address, None, dtype.itemsize, operands)
    return loop, ctypes.addressof(loop)


def pointer_at(table: int, position: int) -> int | None:
    """Return an address from a table of them."""
    return (ctypes.c_void_p * (position + 1)).from_address(table)[position]
