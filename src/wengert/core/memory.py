"""Memory of ndarrays that is relied upon: who may still write to it, and copies that nobody can change."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["fixed", "may_change"]


def fixed(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array that nobody can write to: itself, or a read-only copy.

    >>> import numpy as np
    >>> array = fixed(np.ones(2))
    >>> fixed(array) is array
    True
    """
    return fixed_copy(array) if may_change(array) else array


def may_change(array: np.ndarray[Any, Any]) -> bool:
    """Tell whether somebody can write to an array: itself, or what it is a view of.

    >>> import numpy as np
    >>> array = np.ones(2)
    >>> may_change(np.broadcast_to(array, (3, 2)))
    True
    """
    memory: Any = array
    while hasattr(memory, "base"):  # as_strided puts an object between
        if isinstance(memory, np.ndarray) and memory.flags.writeable:
            return True
        memory = memory.base
    return memory is not None and not isinstance(memory, bytes)


def fixed_copy(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a read-only copy in the same order; what is repeated along axes stays one element in memory."""
    repeated = [n > 1 and not stride for n, stride in zip(array.shape, array.strides, strict=True)]
    narrow = np.array(array[tuple([slice(0, 1) if flag else slice(None) for flag in repeated])], order="K")
    narrow.flags.writeable = False
    return np.broadcast_to(narrow, array.shape) if any(repeated) else narrow
