"""Traced numbers where Python has integers of its own: what `int` and `__index__` give, and which may be of two types.

`max(n, 3)` is Python's 3 or an uint8, and `max(n, 3) * 100` is 300 or wraps. Such a value is Python's integer to all
that only read it; operators are carried out as Python does with each of the two, and choose then.
"""

from __future__ import annotations

import weakref
from typing import Any, NamedTuple

from wengert.conversion.traced_regions import raise_where
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


class IntegerAlternatives(NamedTuple):
    """Hold what a value is where a traced truth holds, and where it does not."""

    test: Any
    one: Any
    other: Any


MOST = 8
"""Choices of choices; of more of them a value is taken for Python's integer."""
_KNOWN: dict[int, tuple[weakref.ref[Tensor], IntegerAlternatives]] = {}


def enter_alternatives(value: Tensor, alternatives: IntegerAlternatives) -> Tensor:
    """Enter what a value is one of, as long as it lives, and return it."""
    identity = id(value)
    if depth(alternatives) > MOST:
        return value
    _KNOWN[identity] = weakref.ref(value, lambda _: _KNOWN.pop(identity, None)), alternatives
    return value


def depth(alternatives: IntegerAlternatives | None) -> int:
    """Return how many choices decide about a value, one after the other."""
    return 0 if alternatives is None else 1 + max(depth(alternatives_of(x)) for x in alternatives[1:])


def alternatives_of(value: Any) -> IntegerAlternatives | None:
    """Return what a value is one of, if that has been entered."""
    found = _KNOWN.get(id(value)) if _KNOWN and type(value) is Tensor else None
    return found[1] if found is not None and found[0]() is value else None


def has_alternatives(value: Any) -> bool:
    """Tell whether operators must be carried out with each of what a value is one of."""
    return alternatives_of(value) is not None
