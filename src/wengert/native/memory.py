"""Memory for native code."""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from wengert.native.processor import LINE


def room(size: int) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, for so many bytes; all are zero."""
    lines = max(-(-size // LINE), 1)
    memory = np.zeros((lines + 1) * LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + lines * LINE]


def address(array: np.ndarray[Any, Any]) -> int:
    """Return where the elements of an array begin, which lie side by side if they may be written to."""
    if array.flags.writeable and array.size:  # a fifth of the time
        return ctypes.addressof(ctypes.c_char.from_buffer(array.data))
    return array.ctypes.data
