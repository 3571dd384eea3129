"""Traced numbers where Python needs integers of its own: what `int` and `__index__` give."""

from __future__ import annotations

from typing import Any

from wengert.conversion.deferred_errors import raise_where
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.values.dispatch import apply, weakened
from wengert.core.values.tensor import Tensor
from wengert.errors import DtypeError
from wengert.primitives import conversion


def as_integer(value: Any) -> Any:
    """Return a traced value without axes, which is a whole number but for its dtype, as an integer of Python's."""
    if value.dtype.kind == "c":
        raise DtypeError("int", f"a Tensor of dtype {value.dtype}", "a real number is needed", "Take its .real first")
    return weakened(apply(conversion.whole, value))


def has_index(value: Tensor) -> bool:
    """Tell whether a traced value has an `__index__`: integers without axes, and Python's truths."""
    return value.shape == () and (value.dtype.kind in "iu" or (value.dtype.kind == "b" and value.weak))


def raise_here(failed: Any, error: Exception) -> None:
    """Let the graph raise an error of Python's where a traced truth holds, with the user's line."""
    error.add_note(f"  {position_of(*caller())}")
    raise_where(failed, error)
