"""Attributes that are computed when they are first asked for.

`functools.cached_property` does it, too, but in Python 3.11 holds a lock meanwhile, one for all objects of a class: a
process that another thread forks then would find it locked for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar, overload

T = TypeVar("T")


class cached(Generic[T]):  # noqa: N801 - a decorator
    """Make a method an attribute that is computed once for each object, or twice if threads ask at the same time.

    >>> class Circle:
    ...     def __init__(self, radius):
    ...         self.radius = radius
    ...     @cached
    ...     def area(self):
    ...         print("computed")
    ...         return 3 * self.radius**2
    >>> circle = Circle(2)
    >>> circle.area, circle.area
    computed
    (12, 12)
    """

    def __init__(self, function: Callable[[Any], T]) -> None:
        self.function = function
        self.__doc__ = function.__doc__

    @overload
    def __get__(self, instance: None, owner: Any = None) -> Self: ...
    @overload
    def __get__(self, instance: object, owner: Any = None) -> T: ...
    def __get__(self, instance: object | None, owner: Any = None) -> Self | T:
        """Return the attribute, which the object has from then on."""
        if instance is None:
            return self
        value = self.function(instance)
        vars(instance)[self.function.__name__] = value
        return value
