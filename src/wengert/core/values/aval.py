"""Abstract values: what is known of an array without its elements."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from wengert.errors import RangeError, ShapeError
from wengert.support.records import NamedTuple

UNKNOWN = -1
"""The length of a sequence of arrays that is known only at run time, in front of the shape of each."""

MOST_AXES = 64
"""That an array of NumPy's has."""

NUMBERS: dict[type, np.dtype[Any]] = {kind: np.dtype(kind) for kind in (float, int, complex, bool)}
"""Python's number types, with the dtype that each has where no array decides."""


PARTS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
"""The dtypes of the parts of complex numbers."""


class Aval(NamedTuple):
    """Hold the shape and dtype of an array.

    Attributes:
        shape: the lengths of its axes.
        dtype: the type of its elements.
        weak: whether it is a Python number, whose dtype gives way to that of arrays.
    """

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    weak: bool = False

    @property
    def firm(self) -> Aval:
        """The aval of the same value with a dtype of its own: that of cotangents."""
        return self._replace(weak=False) if self.weak else self

    @property
    def number(self) -> type:
        """The type of Python numbers of this dtype."""
        return type(self.dtype.type(0).item())


def unite_scalars(a: Aval, b: Aval) -> Aval:
    """Return what can hold scalars of either aval: a Python number takes the dtype of an array.

    >>> unite_scalars(aval_of(1.0), aval_of(np.float32(1.0))).dtype, unite_scalars(aval_of(1), aval_of(1.0)).weak
    (dtype('float32'), True)
    """
    if a.weak == b.weak:
        return Aval((), np.promote_types(a.dtype, b.dtype), a.weak)
    weak, firm = (a, b) if a.weak else (b, a)
    return Aval((), np.result_type(weak.number(1), firm.dtype))


def is_exact(number: Any, dtype: np.dtype[Any]) -> bool:
    """Tell whether a dtype holds a Python number, or whatever number a variable stands for, without rounding it.

    >>> is_exact(0.5, np.dtype(np.float32)), is_exact(0.1, np.dtype(np.float32)), is_exact(0.1, np.dtype(complex))
    (True, False, True)
    """
    if np.can_cast(aval_of(number).dtype, dtype):
        return True
    return type(number) in NUMBERS and (number != number or np.asarray(number).astype(dtype).item() == number)


def is_number(value: Any) -> bool:
    """Tell whether a value is a Python number, whose dtype gives way to that of arrays."""
    return type(value) in NUMBERS


def strong(value: Any) -> Any:
    """Return a Python number as a NumPy scalar, and everything else as it is.

    >>> strong(2.0)
    np.float64(2.0)
    """
    kind = type(value)
    try:
        return NUMBERS[kind].type(value) if kind in NUMBERS else value
    except OverflowError:
        needed = "at most 63 and a sign are needed where it becomes an array"
        raise RangeError("integer", f"one of {value.bit_length()} bits", needed, "Write it as a float") from None


def aval_of(value: Any) -> Aval:
    """Return the shape and dtype of an array, a Tensor or a Python number.

    >>> aval_of(1.5)
    Aval(shape=(), dtype=dtype('float64'), weak=True)
    """
    kind = type(value)
    if kind in NUMBERS:
        return Aval((), NUMBERS[kind], True)
    try:
        shape, dtype = value.shape, value.dtype
    except AttributeError:
        array = np.asarray(value)
        return Aval(array.shape, array.dtype)
    return Aval(shape, dtype, kind is not np.ndarray and getattr(value, "weak", False))


def aval_text(value: Any) -> str:
    """Return shape and dtype as the printer shows them; Python numbers have Python's name of their type."""
    aval = aval_of(value)
    return aval.number.__name__ if aval.weak else f"{aval.dtype}[{','.join(map(str, aval.shape))}]"


def shape_of(value: Any) -> tuple[int, ...]:
    """Return the shape of an array, a Tensor or a Python number.

    >>> shape_of(1.5)
    ()
    """
    try:
        shape: tuple[int, ...] = value.shape
    except AttributeError:
        shape = () if type(value) in NUMBERS else np.shape(value)
    return shape


def count_elements(values: Iterable[Any]) -> int:
    """Return how many elements values have together.

    >>> count_elements([1.5, np.ones((2, 3))])
    7
    """
    return sum([math.prod(shape_of(x)) for x in values])


def zero_of(value: Any) -> Any:
    """Return zeros of a value's shape and dtype: an array, or a scalar without axes.

    >>> zero_of(1.5)
    np.float64(0.0)
    """
    aval = aval_of(value)
    return np.zeros(aval.shape, aval.dtype)[()]


def is_differentiable(dtype: np.dtype[Any]) -> bool:
    """Tell whether values of a dtype have derivatives: float and complex have."""
    return dtype.kind in "fc"


def check_broadcast(name: str, operands: Sequence[Any]) -> None:
    """Raise a ShapeError if the shapes of operands do not broadcast together.

    >>> check_broadcast("add", [1.0, 2.0])
    """
    shapes = [aval_of(x).shape for x in operands]
    for axis in range(1, 1 + max((len(shape) for shape in shapes), default=0)):
        lengths = {shape[-axis] for shape in shapes if len(shape) >= axis} - {1}
        if len(lengths) > 1:
            raise misfit(name, shapes)


def misfit(name: str, shapes: Sequence[tuple[int, ...]]) -> ShapeError:
    """Return the error about shapes that do not broadcast together."""
    needed = "shapes that broadcast are needed: equal from the right, or 1"
    return ShapeError(name, f"shapes {' and '.join(map(str, shapes))}", needed, "Reshape one of them")
