"""Rows that loops leave behind, of which nobody knows how many there will be: their memory grows while a program runs.

`row_pool` has the native functions; what was kept is called without them, and without what writes native functions.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from wengert.native.code_memory import address_of
from wengert.native.structs import I64, POINTER, Struct

UNKNOWN = -1
"""The length, in shapes, of rows that grow."""

ENDLESS = 1 << 36
"""Rows that all lie at one place: more than anybody reads, of at most so many elements as NumPy may count then."""

GROWING = Struct(
    "Growing",
    first=POINTER,
    step=I64,  # bytes from one to the next: 0 where one stands for all
    count=I64,
)
"""Rows of which nobody knows how many there are, as programs hand them to each other."""


class Rows(np.ndarray[Any, Any]):
    """GROWING as an array, which keeps alive what it has the address of."""

    rows: np.ndarray[Any, Any]

    @classmethod
    def of(cls, rows: np.ndarray[Any, Any]) -> Rows:
        """Return rows, of which one may stand for all."""
        found = np.array([rows.ctypes.data, rows.strides[0], len(rows)], np.int64).view(cls)
        found.rows = rows
        return found


def taken_over(rows: np.ndarray[Any, Any], shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.ndarray[Any, Any]:
    """Return rows that a program handed out as an array, and give their memory back; one for all of them is of zeros.

    Args:
        rows: GROWING.
        shape: of one of them.
        dtype: of their elements.
    """
    place, step, count = rows.tolist()
    if step:
        found = np.empty((count, *shape), dtype)
        ctypes.memmove(found.ctypes.data, place, found.nbytes)
    else:
        found = np.broadcast_to(np.zeros(shape, dtype), (count, *shape))
    ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address_of("free"))(place)
    return found
