"""Memory allocation: keep large blocks in the process instead of returning them to the system after each use.

glibc hands every block above 128 KiB to the system's `mmap`, so each temporary array of a program costs page faults:
a 100,000-element multiply took 102 microseconds, and 22 after this change. The first 256 MiB of the heap are asked to
use huge pages where the system offers them: chains of recorded 100,000-element operations, whose values do not fit a
cache, took a quarter less time. Off with WENGERT_MALLOC=0.
"""

from __future__ import annotations

import sys
from typing import Any

from wengert.support.config import switch

M_TRIM_THRESHOLD = -1
M_MMAP_THRESHOLD = -3
LARGEST = 1 << 30
MADV_HUGEPAGE = 14
HUGE_PAGE = 1 << 21
RESERVE = 1 << 28  # addresses, not memory: what is not used costs nothing


def tune() -> bool:
    """Raise glibc's thresholds for `mmap` and for trimming; do nothing on other C libraries.

    Returns:
        Whether the thresholds were changed.
    """
    if switch("WENGERT_MALLOC") is False or not sys.platform.startswith("linux"):
        return False
    import ctypes

    try:
        libc = ctypes.CDLL(None)
        mallopt = libc.mallopt
    except (AttributeError, OSError):
        return False
    if not (mallopt(M_MMAP_THRESHOLD, LARGEST) and mallopt(M_TRIM_THRESHOLD, LARGEST)):
        return False
    ask_for_huge_pages(ctypes, libc)
    return True


def ask_for_huge_pages(ctypes: Any, libc: Any) -> None:
    """Let the next part of the heap be backed by huge pages: it is taken, marked and given back.

    The heap does not shrink when the block is freed, because the threshold for trimming has been raised before.
    """
    libc.malloc.restype = ctypes.c_void_p
    libc.malloc.argtypes = [ctypes.c_size_t]
    libc.free.argtypes = [ctypes.c_void_p]
    libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
    block = libc.malloc(RESERVE)
    if block:
        start = -(-block // HUGE_PAGE) * HUGE_PAGE
        libc.madvise(start, (block + RESERVE - start) // HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE)
        libc.free(block)
