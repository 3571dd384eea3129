"""Memory for native code."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.native.structs import LINE

__all__ = ["aligned"]


def aligned(content: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, with some content."""
    size = 0 if content is None else content.nbytes
    lines = max(-(-size // LINE), 1)
    memory = np.zeros((lines + 1) * LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    memory = memory[start : start + lines * LINE]
    if content is not None:
        memory[:size] = np.ascontiguousarray(content).view(np.uint8).ravel()
    return memory
