"""Names and docstrings of functions that are made in factories, one for each of several NumPy functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Any])


def documented(name: str, summary: str, module: str = "numpy") -> Callable[[F], F]:
    """Return a decorator that gives a function its name in a module, and a docstring that points to the function there.

    >>> @documented("sinc", "Return sin(pi x) / (pi x)")
    ... def made(x): ...
    >>> made.__name__, made.__doc__
    ('sinc', 'Return sin(pi x) / (pi x); see `numpy.sinc`.')
    """

    def give(function: F) -> F:
        function.__name__ = function.__qualname__ = name
        function.__doc__ = f"{summary}; see `{module}.{name}`."
        return function

    return give
