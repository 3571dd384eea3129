"""Rows of which nobody knows how many there are, as programs hand them to each other, and to and from Python.

They lie in memory that grows while a program runs: `row_pool` has the native functions.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from wengert.native.entries.kinds import ArrayKind
from wengert.native.loader import address_of
from wengert.native.structs import I64, POINTER, Struct

GROWING = Struct(
    "Growing",
    first=POINTER,
    step=I64,  # bytes from one to the next: 0 where one stands for all
    count=I64,
)
"""Rows of which nobody knows how many there are, as programs hand them to each other."""
GROWN = ArrayKind(np.dtype(np.int64), (len(GROWING.fields),))
"""How programs get and give them."""


class Rows(np.ndarray[Any, Any]):
    """GROWING as an array, which keeps alive what it has the address of."""

    rows: np.ndarray[Any, Any]

    @classmethod
    def of(cls, rows: np.ndarray[Any, Any]) -> Rows:
        """Return rows, of which one may stand for all."""
        found = np.array([rows.ctypes.data, rows.strides[0], len(rows)], np.int64).view(cls)
        found.rows = rows
        return found


class RowsProgram:
    """Be a program as a function of arrays some of which are such rows.

    Args:
        entry: the program as a function of arrays, of GROWN in the place of these.
        given: the places of those among what it is given.
        made: the kinds of those among what it gives, by their places.
    """

    def __init__(self, entry: Callable[..., list[Any]], given: Collection[int], made: Mapping[int, ArrayKind]) -> None:
        self.entry, self.given, self.made = entry, given, made

    def __call__(self, *arrays: Any) -> list[Any]:
        """Return the outputs; rows stay as they are where a place was out of bounds, which is the last of them."""
        found = self.entry(*[Rows.of(x) if i in self.given else x for i, x in enumerate(arrays)])
        if self.made and not found[-1]:
            for i, kind in self.made.items():
                found[i] = taken_over(found[i], kind.shape[1:], kind.dtype)
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
