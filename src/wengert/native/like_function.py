"""What entries have in common with functions, whichever way they are called."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import Any, cast

__all__ = ["LikeFunction"]


class LikeFunction:
    """Be a method where it is an attribute of a class, and one object however it is copied."""

    __slots__ = ()

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        """Return a method of an instance, as functions do."""
        return self if instance is None else types.MethodType(cast(Callable[..., Any], self), instance)

    def __copy__(self) -> LikeFunction:
        """Return the same object, as functions do."""
        return self

    def __deepcopy__(self, memo: Any) -> LikeFunction:
        """Return the same object, as functions do."""
        return self
