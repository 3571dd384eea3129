"""What entries have in common with functions, whichever way they are called."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any, cast


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


def is_method_of(function: Any, instance: Any) -> bool:
    """Tell whether a function is one of an object's class, or of a class itself, also as what properties call.

    >>> class Circle:
    ...     @property
    ...     def area(self):
    ...         return 3.0
    >>> [is_method_of(Circle.area.fget, x) for x in (Circle(), Circle, 1)]
    [True, True, False]
    """
    kind = instance if isinstance(instance, type) else type(instance)
    return any(function is x or function is called_by(x) for base in kind.__mro__ for x in vars(base).values())


def called_by(attribute: Any) -> Any:
    """Return the function that a property, a cached one or a method of the class calls; None for anything else."""
    if isinstance(attribute, property):
        return attribute.fget
    if isinstance(attribute, functools.cached_property):
        return attribute.func
    return attribute.__func__ if isinstance(attribute, classmethod) else None


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
