"""In-place operators on plain arrays and on windows on them, computed where the elements lie, as NumPy does it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from wengert.core.diagnostics.numpy_warnings import strict, warn_at_users_line
from wengert.core.memory.buffers import may_overwrite
from wengert.core.memory.possible_aliases import SHARES
from wengert.core.memory.views import ALIAS
from wengert.core.values.plain_functions import array_of
from wengert.core.values.tensor import WATCHES, Tensor
from wengert.native.threads.elementwise import LARGE, SHARING
from wengert.traces.eager import REAL

ndarray = np.ndarray
Operator = Callable[[Any, Any], Any]
FEW = 1024
"""Elements that are copied in less time than it takes to set how NumPy warns."""
REFUSED = (OverflowError, TypeError, ValueError)
"""What NumPy raises before it writes, or where it stops since it would warn; the general way says more."""


def eager_overwrite(compute: Operator, otherwise: Operator) -> Operator:
    """Return an in-place operator that computes in the memory of plain arrays that nobody else relies on.

    Args:
        compute: Python's operator, such as `operator.imul`.
        otherwise: what it means for all other operands, and where NumPy raises.
    """

    def operate(target: Tensor, other: Any) -> Any:
        trace = target._trace
        if (trace is not None and trace is not ALIAS) or WATCHES or SHARES:
            return otherwise(target, other)
        kind = type(other)
        if kind is Tensor:
            y = other._value if other._trace is None else array_of(other)
        elif kind is ndarray:
            y = other if other.dtype.kind in REAL else None
        else:
            y = other if kind is float or kind is int else None
        if y is None:
            return otherwise(target, other)
        buffer = target._value
        if trace is None:
            if target._kept or type(buffer) is not ndarray:
                return otherwise(target, other)
        else:
            view, base = buffer, buffer.base
            buffer = base._value
            if base._trace is not None or buffer is not view.base_value or not may_overwrite(buffer, base._kept):
                return otherwise(target, other)
            found = view.found
            buffer = found._value if type(found) is Tensor else found
            if type(buffer) is not ndarray:
                return otherwise(target, other)
            base._mutated = True
        if buffer.size >= LARGE and SHARING.threads > 1 and buffer.flags.c_contiguous:
            return otherwise(target, other)  # threads tell of conditions when all is computed
        try:
            if buffer.size > FEW:
                warn_at_users_line(compute, buffer, y)  # at once: it cannot be computed once more
            else:
                before = buffer.copy()
                compute(buffer, y)
        except REFUSED:
            if buffer.size <= FEW and buffer.flags.writeable:
                buffer[...] = before
            return otherwise(target, other)
        return target

    return strict(operate)


def replace_plain(target: Tensor, result: Tensor) -> bool:
    """Let a plain array hold a plain result that nobody else has, and tell whether that was possible so shortly."""
    trace, new = target._trace, result._value
    if WATCHES or SHARES:
        return False
    if trace is None:
        old = target._value
        if type(new) is ndarray:
            fits = type(old) is ndarray and new.dtype is old.dtype and new.shape == old.shape
            fits = fits and new.strides == old.strides
        else:  # an array without axes may be held as a scalar
            fits = type(new) is type(old) and hasattr(target, "_array")
        if not fits or hasattr(target, "_fixed"):
            return False
        target._value, target._kept = new, result._kept
        return True
    if trace is not ALIAS or type(new) is not ndarray:
        return False
    view = target._value
    base = view.base
    buffer = base._value
    if base._trace is not None or buffer is not view.base_value or not may_overwrite(buffer, base._kept):
        return False
    window = view.current()._value
    if new.dtype is not window.dtype or new.shape != window.shape or not window.flags.writeable:
        return False
    window[...] = new
    base._mutated = True
    return True
