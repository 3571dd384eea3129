"""Scalars: what stands for the value at any point of a space while primitives say what they compute there.

Operators and `operate` make nodes, and so do NumPy's functions, by which the `scalar` of a primitive is written: a
ufunc that is an opcode is that opcode, another one what the `scalar` of its primitive gives.
"""

from __future__ import annotations

import functools
import math
import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from wengert.core.maps.index_maps import AxisIndex, broadcast_map, identity_map
from wengert.core.primitives.primitive import PRIMITIVES
from wengert.kernel.opcodes import OPCODES
from wengert.lowering.nodes import BOOL, Access, Nodes, Shape
from wengert.lowering.rules.ranks import count_before, gather_within, positions, search_row, write_at_places
from wengert.support.machine import MACHINE

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
    def constant_value(self) -> Any:
        """The number that it is at all points; None if that is not known."""
        node = self.access.node
        return node.value if node.kind == "constant" else None

    def is_same(self, other: Scalar) -> bool:
        """Tell whether another scalar reads the same value."""
        return self.access == other.access

    def spread(self, shape: Shape) -> Scalar:
        """Return the value at the points of a space that has more of them along axes of length one."""
        if self.shape == shape or not self.access.map:
            return Scalar(self.nodes, self.access, shape)
        return Scalar(self.nodes, self.access.through(broadcast_map(self.shape, len(shape))), shape)

    def opcode(self, name: str, *others: Scalar | Number) -> Scalar:
        """Return the result of an opcode that no function of NumPy's is."""
        return operate(name, self, *others)

    def astype(self, dtype: Any) -> Scalar:
        """Return the value as one of another dtype."""
        return convert(self, np.dtype(dtype))

    def positions(self, axes: Sequence[int]) -> Scalar:
        """Return where the point is along axes of the space, counted in C order."""
        return Scalar(self.nodes, positions(self.nodes, self.shape, axes, axes), self.shape)

    def count_before(self, axes: Sequence[int], how: str) -> Scalar:
        """Return how many others along axes stand before it, are less, or equal it; see `ranks.count_before`.

        Raises:
            Unwritten: there are so many that a sort takes less.
        """
        if math.prod([*self.shape, *[self.shape[k] for k in axes]]) > MACHINE.compared:
            raise Unwritten("so many elements, which NumPy sorts in less time")
        return Scalar(self.nodes, count_before(self.nodes, self.access, self.shape, axes, how), self.shape)

    def require(self) -> None:
        """Have NumPy compute everything, which raises its error, where a truth does not hold at all points."""
        lacking = (~self).access.through(identity_map(self.shape))
        self.nodes.outside.append(reduce_axes(self.nodes, "or", lacking, self.shape, range(len(self.shape))))

    def write_at_places(self, places: Scalar, axis: int) -> Scalar:
        """Return the array whose elements at places along an axis, each of them once, these are."""
        return Scalar(self.nodes, write_at_places(self.nodes, self.access, places.access, self.shape, axis), self.shape)

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *operands: Any, **options: Any) -> Any:
        plain = method == "__call__" and not options
        if not plain:
            raise Unwritten(ufunc.__name__)
        return apply_ufunc(ufunc, operands)

    def __array_function__(self, function: Any, _types: Any, args: Any, kwargs: Any) -> Any:
        if function in MAKING:
            return MAKING[function](self.nodes, *args)
        if function in FUNCTIONS:
            return FUNCTIONS[function](*args, **kwargs)
        if function in REDUCTIONS:
            return reduce_along(REDUCTIONS[function], *args, **kwargs)
        raise Unwritten(function.__name__)


def operate(name: str, *operands: Scalar | Number) -> Scalar:
    """Return the result of an opcode; numbers among the operands take the dtype of the scalars."""
    scalar = next(x for x in reversed(operands) if isinstance(x, Scalar))
    given = [x if isinstance(x, Scalar) else scalar.constant(x) for x in operands]
    dtype = BOOL if OPCODES[name].gives == "bool" else given[-1].dtype
    shape = scalar.shape
    if any(x.shape != shape for x in given if x.access.map):  # some are reductions, of axes of length one
        shape = np.broadcast_shapes(*[x.shape for x in given])
        given = [x.spread(shape) for x in given]
    found = scalar.nodes.point(name, dtype, shape, *[x.access for x in given])
    return Scalar(scalar.nodes, found, shape)


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


# Functions of arrays


def take(x: Scalar, places: Scalar | int) -> Scalar:
    """Return the elements of a row at places that are within it; of several rows all those at one."""
    if isinstance(places, Scalar):
        return Scalar(x.nodes, gather_within(x.nodes, x.access, x.shape, places.access, places.shape), places.shape)
    *stack, length = x.shape
    return Scalar(x.nodes, x.access.through((*identity_map(tuple(stack)), AxisIndex(places % length))), stack)


def take_along_axis(x: Scalar, places: Scalar, axis: int) -> Scalar:
    """Return the elements along the last axis at places that are within it, which may be the same for all rows."""
    assert axis == -1
    shape = (*x.shape[:-1], places.shape[-1])
    found = gather_within(x.nodes, x.access, x.shape, places.spread(shape).access, shape, stacked=True)
    return Scalar(x.nodes, found, shape)


def search_sorted(row: Scalar, x: Scalar, side: str = "left") -> Scalar:
    """Return how many elements of a sorted row are less than others, or not greater if the side is right."""
    dtype = np.result_type(row.dtype, x.dtype)
    sought, (length,) = convert(x, dtype), row.shape
    found = search_row(x.nodes, convert(row, dtype).access, length, sought.access, x.shape, side == "right")
    return Scalar(x.nodes, found, x.shape)


def count_up(nodes: Nodes, length: int) -> Scalar:
    """Return the index along a row of some length."""
    return Scalar(nodes, positions(nodes, (length,), (0,), (0,)), (length,))


def known_array(nodes: Nodes, values: np.ndarray[Any, Any]) -> Scalar:
    """Return an array whose elements are known."""
    return Scalar(nodes, nodes.array(values), values.shape)


def expand_dims(x: Scalar, axes: Sequence[int]) -> Scalar:
    """Return the value in a space with further axes, of one element each."""
    lengths = iter(x.shape)
    shape = tuple([1 if k in axes else next(lengths) for k in range(len(x.shape) + len(axes))])
    return Scalar(x.nodes, with_axes_restored(x.access.through(identity_map(x.shape)), shape, axes), shape)


def fill(x: Scalar, value: Number, dtype: Any = None) -> Scalar:
    """Return a number, as one of the dtype of a scalar unless another is given."""
    return x.constant(value, None if dtype is None else np.dtype(dtype))


FUNCTIONS: dict[Any, Callable[..., Scalar]] = {
    np.where: select,
    np.full_like: fill,
    np.take: take,
    np.take_along_axis: take_along_axis,
    np.searchsorted: search_sorted,
    np.expand_dims: expand_dims,
}


MAKING: dict[Any, Callable[..., Scalar]] = {np.arange: count_up, np.array: known_array}
"""What makes arrays, told by `like` for what."""


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
    if primitive is None or primitive.evaluate is not ufunc:
        raise Unwritten(ufunc.__name__)
    if isinstance(primitive.scalar, tuple):
        return tuple([operate(opcode, *operands) for opcode in primitive.scalar])
    if not callable(primitive.scalar):
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


# Reductions; what is constant along a sum is taken out of it where no bit can change


REDUCTIONS: dict[Any, str] = {np.sum: "add", np.max: "maximum", np.min: "minimum", np.any: "or", np.all: "and"}
"""The opcodes of the functions by which reductions say what they are made of."""


def reduce_along(combine: str, x: Scalar, *, axis: int | Sequence[int], keepdims: bool) -> Scalar:
    """Return a reduction along axes, which must be kept, as a value in a space where these have length one."""
    assert keepdims
    axes = sorted([k % len(x.shape) for k in ((axis,) if isinstance(axis, int) else axis)])
    kept = tuple([1 if k in axes else n for k, n in enumerate(x.shape)])
    found = reduce_axes(x.nodes, combine, x.access, x.shape, axes)
    return Scalar(x.nodes, with_axes_restored(found, kept, axes), kept)


def reduce_axes(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return the combination of the elements of an array along axes, which are gone then.

    Args:
        nodes: what makes nodes.
        combine: add, multiply, maximum, minimum, and, or.
        x: the array.
        shape: its shape.
        axes: the axes, from 0.
    """
    used = {d for _, terms in x.map for d, _ in terms}
    if combine == "multiply":
        used |= set(axes)
    repeats = math.prod([shape[k] for k in axes if k not in used])
    space = tuple([1 if k in axes and k not in used else n for k, n in enumerate(shape)])
    moving = tuple([k for k in sorted(axes) if space[k] > 1])
    value = combine_axes(nodes, combine, x, space, moving) if moving else x
    kept = [k for k in range(len(shape)) if k not in moving] if moving else list(range(len(shape)))
    left = [k for k in range(len(shape)) if k not in axes]
    result = tuple([shape[k] for k in left])
    ones = dict(zip(left, identity_map(result), strict=True))
    value = value.through(tuple([ones.get(k, AxisIndex(0)) for k in kept]))
    if repeats > 1 and combine == "add":
        value = nodes.point("multiply", x.node.dtype, result, value, nodes.constant(repeats, x.node.dtype))
    return value


def combine_axes(nodes: Nodes, combine: str, x: Access, shape: Shape, axes: tuple[int, ...]) -> Access:
    """Return a reduction, behind which stand the factors that can be taken out of it."""
    after: list[tuple[str, Access]] = []
    while combine == "add" and (found := factor_out(nodes, x)) is not None:
        name, x, factor = found
        after.append((name, factor))
    kept = tuple([n for k, n in enumerate(shape) if k not in axes])
    dtype = x.node.dtype
    node = nodes.make("reduce", combine, kept, dtype, [x.through(identity_map(shape))], axes=axes, space=shape)
    value = Access(node, identity_map(kept))
    for name, factor in reversed(after):
        value = nodes.point(name, dtype, kept, factor, value)
    return value


def factor_out(nodes: Nodes, x: Access) -> tuple[str, Access, Access] | None:
    """Return an opcode of a number and of another sum that is this sum; None if there is none of the same bits.

    A sum of negative numbers is 0 less their sum, which is never -0.0. Factors of whole numbers are taken out; those of
    floats are not, for then a term may be finite that is infinite where it is multiplied first.
    """
    if x.node.kind != "point" or x.node.name not in ("negative", "multiply"):
        return None
    operands = [a.through(x.map) for a in x.node.args]
    if x.node.name == "negative":
        return "subtract", operands[0], nodes.constant(0, x.node.dtype)
    for factor, other in (operands, operands[::-1]):
        if factor.node.kind == "constant" and factor.node.dtype.kind in "iu":
            return "multiply", other, factor
    return None


def with_axes_restored(x: Access, shape: Shape, axes: Sequence[int]) -> Access:
    """Return a reduction with its axes put back, of one element each."""
    kept = [k for k in range(len(shape)) if k not in axes]
    return x.through(tuple([AxisIndex(0) if shape[k] == 1 else AxisIndex(0, ((k, 1),)) for k in kept]))
