"""Scalars: what pointwise primitives compute at one point, written with Python's operators.

A `Scalar` stands for the value at any point of a space; operators and `operate` make nodes. The expressions of
`pointwise` are written with it, as rules are with NumPy's functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from wengert.compile.nodes import BOOL, Access, Nodes
from wengert.kernel.opcodes import OPCODES

__all__ = ["Scalar", "convert", "operate", "select"]

DType = np.dtype[Any]
Number = float | int | bool


class Scalar:
    """Be the value at a point of a space.

    Attributes:
        nodes: what makes nodes.
        access: what is read at the point.
        shape: of the space.
    """

    __slots__ = ("access", "nodes", "shape")

    def __init__(self, nodes: Nodes, access: Access, shape: Sequence[int]) -> None:
        self.nodes = nodes
        self.access = access
        self.shape = tuple(shape)

    @property
    def dtype(self) -> DType:
        """The dtype of the value."""
        return self.access.node.dtype

    def constant(self, value: Number, dtype: DType | None = None) -> Scalar:
        """Return a number, as one of this dtype unless another is given."""
        return Scalar(self.nodes, self.nodes.constant(value, dtype or self.dtype), self.shape)

    def __add__(self, other: Scalar | Number) -> Scalar:
        return operate("add", self, other)

    def __radd__(self, other: Number) -> Scalar:
        return operate("add", other, self)

    def __sub__(self, other: Scalar | Number) -> Scalar:
        return operate("subtract", self, other)

    def __rsub__(self, other: Number) -> Scalar:
        return operate("subtract", other, self)

    def __mul__(self, other: Scalar | Number) -> Scalar:
        return operate("multiply", self, other)

    def __rmul__(self, other: Number) -> Scalar:
        return operate("multiply", other, self)

    def __truediv__(self, other: Scalar | Number) -> Scalar:
        return operate("divide", self, other)

    def __rtruediv__(self, other: Number) -> Scalar:
        return operate("divide", other, self)

    def __neg__(self) -> Scalar:
        return operate("negative", self)

    def __invert__(self) -> Scalar:
        return operate("not", self)

    def __and__(self, other: Scalar) -> Scalar:
        return operate("and", self, other)

    def __or__(self, other: Scalar) -> Scalar:
        return operate("or", self, other)

    def __lt__(self, other: Scalar | Number) -> Scalar:
        return operate("less", self, other)

    def __le__(self, other: Scalar | Number) -> Scalar:
        return operate("less_equal", self, other)

    def __gt__(self, other: Scalar | Number) -> Scalar:
        return operate("greater", self, other)

    def __ge__(self, other: Scalar | Number) -> Scalar:
        return operate("greater_equal", self, other)

    def equals(self, other: Scalar | Number) -> Scalar:
        """Tell whether two values are equal; `==` tells whether two scalars are the same object."""
        return operate("equal", self, other)

    def differs(self, other: Scalar | Number) -> Scalar:
        """Tell whether two values differ; NaN does from itself."""
        return operate("not_equal", self, other)


def operate(name: str, *operands: Scalar | Number) -> Scalar:
    """Return the result of an opcode; numbers among the operands take the dtype of the scalars."""
    scalar = next(x for x in reversed(operands) if isinstance(x, Scalar))
    given = [x if isinstance(x, Scalar) else scalar.constant(x) for x in operands]
    dtype = BOOL if OPCODES[name].gives == "bool" else given[-1].dtype
    found = scalar.nodes.point(name, dtype, scalar.shape, *[x.access for x in given])
    return Scalar(scalar.nodes, found, scalar.shape)


def select(condition: Scalar, one: Scalar | Number, other: Scalar | Number) -> Scalar:
    """Return one value where a condition holds, and another elsewhere; one of the two is a scalar."""
    scalar = other if isinstance(other, Scalar) else one
    assert isinstance(scalar, Scalar)
    chosen = [x if isinstance(x, Scalar) else scalar.constant(x) for x in (one, other)]
    return operate("select", condition, *chosen)


def convert(x: Scalar, dtype: DType) -> Scalar:
    """Return a value as one of another dtype, as NumPy's `astype` does."""
    if dtype == x.dtype:
        return x
    if dtype == BOOL:
        return x.differs(0)
    return Scalar(x.nodes, x.nodes.point("convert", dtype, x.shape, x.access), x.shape)
