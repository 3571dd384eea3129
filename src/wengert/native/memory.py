"""Memory for native code."""

from __future__ import annotations

from typing import Any

import numpy as np

from wengert.native.processor import LINE

__all__ = ["aligned", "room"]


def room(size: int) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, for so many bytes; all are zero."""
    lines = max(-(-size // LINE), 1)
    memory = np.zeros((lines + 1) * LINE, np.uint8)
    start = -memory.ctypes.data % LINE
    return memory[start : start + lines * LINE]


def aligned(content: np.ndarray[Any, Any] | None) -> np.ndarray[Any, Any]:
    """Return memory of whole cache lines, of one at least, with some content."""
    memory = room(0 if content is None else content.nbytes)
    if content is not None:
        memory[: content.nbytes] = np.ascontiguousarray(content).view(np.uint8).ravel()
    return memory
