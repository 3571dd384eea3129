"""Scalars: what stands for the value at any point of a space while primitives say what they compute there.

Operators and `operate` make nodes, and so do NumPy's functions, by which the `scalar` of a primitive is written: a
ufunc that is an opcode is that opcode, another one what the `scalar` of its primitive gives.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.primitives.primitive import PRIMITIVES
from wengert.kernel.opcodes import OPCODES
from wengert.lowering.nodes import BOOL, Access, Nodes

DType = np.dtype[Any]
Number = float | int | bool

BY_UFUNC: dict[Any, str] = {row.evaluate: row.name for row in OPCODES.values() if isinstance(row.evaluate, np.ufunc)}
"""The opcodes of ufuncs."""

OF_BOOLS = {"add": "or", "maximum": "or", "multiply": "and", "minimum": "and", "not_equal": "xor"}
"""The opcodes of what NumPy's loops of bools compute."""

ROUNDING = frozenset({"floor", "ceil", "trunc", "rint"})
"""The opcodes that leave whole numbers as they are."""

SIGNED: dict[str, Callable[[Scalar, Scalar], Scalar]] = {
    "less": lambda x, y: (x < 0) | (convert(x, y.dtype) < y),
    "less_equal": lambda x, y: (x < 0) | (convert(x, y.dtype) <= y),
    "greater": lambda x, y: (x >= 0) & (convert(x, y.dtype) > y),
    "greater_equal": lambda x, y: (x >= 0) & (convert(x, y.dtype) >= y),
    "equal": lambda x, y: (x >= 0) & (convert(x, y.dtype) == y),
    "not_equal": lambda x, y: (x < 0) | (convert(x, y.dtype) != y),
}
"""Comparisons of a number that has a sign with one that has not, for which NumPy has loops of 64 bits."""

EXCHANGED = {"less": "greater", "less_equal": "greater_equal", "greater": "less", "greater_equal": "less_equal"}
"""Comparisons by what they are with their operands exchanged, if that is another one."""


class Unwritten(TypeError):
    """Say that there are no opcodes for a function."""


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

    def __xor__(self, other: Scalar) -> Scalar:
        return operate("xor", self, other)

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

    def __eq__(self, other: Scalar | Number) -> Scalar:  # type: ignore[override]  # as NumPy's arrays
        return operate("equal", self, other)

    def __ne__(self, other: Scalar | Number) -> Scalar:  # type: ignore[override]  # likewise
        return operate("not_equal", self, other)

    __hash__ = None  # type: ignore[assignment]  # likewise

    def __bool__(self) -> bool:
        raise TypeError("the value at a point is not known while a kernel is written; use numpy.where")

    @property
    def known(self) -> Any:
        """The number that it is at all points; None if that is not known."""
        node = self.access.node
        return node.value if node.kind == "constant" else None

    def is_same(self, other: Scalar) -> bool:
        """Tell whether another scalar reads the same value."""
        return self.access == other.access

    def opcode(self, name: str, *others: Scalar | Number) -> Scalar:
        """Return the result of an opcode that no function of NumPy's is."""
        return operate(name, self, *others)

    def astype(self, dtype: Any) -> Scalar:
        """Return the value as one of another dtype."""
        return convert(self, np.dtype(dtype))

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        plain = method == "__call__" and not options
        if not plain:
            raise Unwritten(ufunc.__name__)
        return apply_ufunc(ufunc, operands)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        if function is np.where:
            return select(*args)
        if function is np.full_like:
            _, value, dtype = (*args, None)[:3]
            return self.constant(value, None if dtype is None else np.dtype(dtype))
        raise Unwritten(function.__name__)


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
        return x != 0
    return Scalar(x.nodes, x.nodes.point("convert", dtype, x.shape, x.access), x.shape)


# Ufuncs


@functools.cache
def opcode_of(ufunc: Any) -> str | None:
    """Return the opcode that a ufunc of NumPy or SciPy is; None if it is none."""
    name = ufunc.__name__
    libraries = np, sys.modules.get("scipy.special")
    by_name = name in OPCODES and any(getattr(library, name, None) is ufunc for library in libraries)
    return BY_UFUNC.get(ufunc) or (name if by_name else None)


def apply_ufunc(ufunc: np.ufunc, operands: Sequence[Any]) -> Any:
    """Return what a ufunc gives for operands of the dtypes of one of its loops: an opcode, or what its primitive says.

    Raises:
        Unwritten: nothing says what it gives.
    """
    name = opcode_of(ufunc)
    if name is not None:
        return apply_loop(name, operands)
    primitive = PRIMITIVES.get(ufunc.__name__)
    if primitive is None or primitive.evaluate is not ufunc or not callable(primitive.scalar):
        raise Unwritten(ufunc.__name__)
    return primitive.scalar(*operands)


def apply_loop(name: str, operands: Sequence[Any]) -> Any:
    """Return the result of an opcode as NumPy's loop of these dtypes gives it."""
    kinds = [x.dtype.kind if isinstance(x, Scalar) else None for x in operands]
    if kinds[0] in ("b", "i", "u") and name in ROUNDING:
        return operands[0]
    if kinds[0] == "b":
        if name in OF_BOOLS:
            return operate(OF_BOOLS[name], *operands)
        if name in EXCHANGED:
            return operate(name, *[convert(x, np.dtype(np.uint8)) for x in operands])
    if name in SIGNED and set(kinds) == {"i", "u"}:
        return SIGNED[name](*operands) if kinds[0] == "i" else SIGNED[EXCHANGED.get(name, name)](*operands[::-1])
    return operate(name, *operands)
