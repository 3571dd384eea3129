"""Derivatives that are not known: a value that stands for one refuses to be used, and not before."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

from wengert.core.primitives.kinds import Linear
from wengert.core.primitives.primitive import Primitive
from wengert.core.values.aval import aval_of
from wengert.core.values.tensor import Tensor, Trace, make_tensor
from wengert.errors import GraphError


class Unknown(Trace):
    """Be above every other trace, so that any operation on such a value ends here, in an error.

    Args:
        error: makes it.
    """

    __slots__ = ("error",)

    def __init__(self, error: Callable[[], GraphError]) -> None:
        super().__init__(sys.maxsize)
        self.error = error

    @property
    def owner_name(self) -> str:
        """Refuse: whoever asks is about to say that it cannot use the value."""
        raise self.error()

    def below(self, tensor: Tensor) -> NoReturn:
        """Refuse to show elements."""
        raise self.error()

    owner = duplicate = state = below

    def process(self, primitive: Primitive, operands: Sequence[Any], params: Mapping[str, Any]) -> NoReturn:
        """Refuse any operation."""
        raise self.error()

    def assign(self, handle: Tensor, primitive: Linear, operands: Sequence[Any], params: dict[str, Any]) -> NoReturn:
        """Refuse to be written to."""
        raise self.error()


def unknown_like(value: Any, error: Callable[[], GraphError]) -> Tensor:
    """Return what stands for a derivative of a value's shape and dtype that is not known.

    Args:
        value: what it is the derivative of.
        error: makes the error to raise where it is used.
    """
    return make_tensor(aval_of(value), Unknown(error), None)
