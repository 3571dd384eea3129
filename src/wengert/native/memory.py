"""Memory for native code."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.native.processor import LINE

__all__ = ["room"]


def room(size: int) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, for so many bytes; all are zero."""
    lines = max(-(-size // LINE), 1)
    memory = np.zeros((lines + 1) * LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + lines * LINE]
