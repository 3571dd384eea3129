"""What transformations return: functions made of functions, and bound, copied, shown and pickled as functions are."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from wengert.native.function_protocol import LikeFunction, global_name
from wengert.support.attributes import function_name, resemble
from wengert.transforms.derivative_types import Derived


class Transformed(LikeFunction, functools.partial[Any]):
    """Be a function that a transformation made of another one, whose name, parameters and docstring it has.

    It calls a function of the library with the other one, the options, and what it is called with. That it is a
    partial lets it be called as fast as a function, and pickled: processes of a pool can call it.
    """

    transformation: str

    def __repr__(self) -> str:
        """Return the names of the transformation and of the function."""
        return f"<{self.transformation}({function_name(self.args[0], '__name__')})>"

    def __reduce__(self) -> Any:
        """Return the name under which a module has it, as functions do, or what it is made of."""
        return global_name(self) or (make_transformed, (self.transformation, self.func, *self.args))


def make_transformed(name: str, run: Callable[..., Any], fun: Callable[..., Any], *options: Any) -> Derived[..., Any]:
    """Return the function that calls `run(fun, *options, *args, **kwargs)` and otherwise looks like `fun`.

    >>> def doubled(fun, factor, /, *args):
    ...     return factor * fun(*args)
    >>> found = make_transformed("twice", doubled, abs, 2)
    >>> found, found(-3)
    (<twice(abs)>, 6)
    """
    made: Any = Transformed(run, fun, *options)
    resemble(made, fun)
    made.transformation = name
    return made  # type: ignore[no-any-return]  # what checkers take it for
