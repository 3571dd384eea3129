"""Memory between pages that may not be touched: whoever reads or writes beside it ends the process."""

from __future__ import annotations

import ctypes
import mmap
from typing import Any

import numpy as np

FORBIDDEN = 0
"""What may be done with a page: nothing."""


def guarded(size: int, at_end: bool) -> np.ndarray[Any, Any]:
    """Return so many bytes, all of them 255, as numbers are none: the last ones before a page, or the first ones."""
    page, wide = mmap.PAGESIZE, -(-size // mmap.PAGESIZE) * mmap.PAGESIZE
    mapped = mmap.mmap(-1, wide + 2 * page)
    start = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int
    for place in (start, start + page + wide):
        assert protect(place, page, FORBIDDEN) == 0
    found = np.frombuffer(mapped, np.uint8, size, page + (wide - size if at_end else 0))
    found[...] = 255
    return found
