"""Declarations: one function for each kind of primitive, which makes the primitive and enters it in the registry."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from wengert.core.primitive import Bilinear, Constant, Elementwise, Linear, Opaque, Primitive, register

__all__ = ["bilinear", "constant", "elementwise", "linear", "opaque"]

P = TypeVar("P", bound=Primitive)
Arguments = ParamSpec("Arguments")


def declaration(kind: Callable[Arguments, P], name: str, summary: str) -> Callable[Arguments, P]:
    """Return the function that takes what the constructor of a kind takes, and registers the primitive it makes.

    Its docstring is the summary, then the arguments, errors and example of the kind.
    """

    def declare(*args: Arguments.args, **kwargs: Arguments.kwargs) -> P:
        primitive = kind(*args, **kwargs)
        register(primitive)
        return primitive

    registered = "Enter it in the registry, where its name must be new, and return it."
    _, _, details = (kind.__doc__ or "").partition("\n\n")
    declare.__doc__ = f"{summary}\n\n    {registered}\n\n{details}"
    declare.__name__ = declare.__qualname__ = name
    return functools.update_wrapper(declare, kind, assigned=(), updated=())


elementwise = declaration(Elementwise, "elementwise", "Declare a primitive with a diagonal Jacobian.")
linear = declaration(
    Linear,
    "linear",
    "Declare a primitive that is linear in its leading operands; the remaining operands are constants of the map.",
)
bilinear = declaration(Bilinear, "bilinear", "Declare a primitive that is linear in each of two operands.")
opaque = declaration(Opaque, "opaque", "Declare a primitive by its vjp.")
constant = declaration(Constant, "constant", "Declare a primitive whose derivative is a structural zero.")
