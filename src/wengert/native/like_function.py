"""What entries have in common with functions, whichever way they are called."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, cast

__all__ = ["LikeFunction", "global_name", "named_alike"]


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


def global_name(value: Any) -> str | None:
    """Return the qualified name of what a module has under it, as pickled functions are known by; None for others.

    >>> global_name(LikeFunction.__copy__)
    'LikeFunction.__copy__'
    >>> global_name(lambda x: x)
    """
    name = getattr(value, "__qualname__", "")
    return name if name and named_alike(value) is value else None


def named_alike(value: Any) -> Any:
    """Return what the module of a function has under its name, which may be what was made of it; None for nothing."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    parts = getattr(value, "__qualname__", "").split(".")
    return functools.reduce(lambda x, part: getattr(x, part, None), parts, cast(Any, module))
