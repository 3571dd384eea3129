"""NumPy's objects that are indexed or iterated: `r_`, `c_`, `mgrid`, `ogrid`, `broadcast`, `ndenumerate`, `ndarray`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.dispatch import as_tensor
from wengert.core.values.tensor import Tensor
from wengert.errors import UsageError
from wengert.numpy import _creation, _joining


class Joiner:
    """Join what stands in brackets, slices standing for ranges, as `numpy.r_` and `numpy.c_` do."""

    def __init__(self, name: str, axis: int, ndmin: int, trans1d: int) -> None:
        self.name = name
        self.settings = axis, ndmin, trans1d

    def __len__(self) -> int:
        return 0

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        axis, ndmin, trans1d = self.settings
        if parts and isinstance(parts[0], str):
            axis, ndmin, trans1d = self.parse_settings(parts[0])
            parts = parts[1:]
        arrays = [self.part(item, ndmin, trans1d) for item in parts]
        kinds = [item if type(item) in np.ScalarType else x.dtype for item, x in zip(parts, arrays, strict=True)]
        dtype = np.result_type(*kinds) if kinds else None
        return _joining.concatenate([x.astype(dtype) if x.dtype != dtype else x for x in arrays], axis=axis)

    def parse_settings(self, text: str) -> tuple[int, int, int]:
        """Return the settings that a string at the beginning gives."""
        axis, ndmin, trans1d = self.settings
        try:
            numbers = [int(number) for number in text.split(",")]
        except ValueError as error:
            needed = "one to three integers are needed: axis, least number of axes, place of the first"
            action = "Make matrices with numpy.reshape" if text in ("r", "c") else "Correct the string"
            raise UsageError(self.name, repr(text), needed, action) from error
        return (*numbers, *(axis, ndmin, trans1d)[len(numbers) :])[:3]  # type: ignore[return-value]  # three

    def part(self, item: Any, ndmin: int, trans1d: int) -> Any:
        """Return one operand in the brackets as a Tensor with at least `ndmin` axes."""
        if isinstance(item, slice):
            found: Any = slice_range(item)
        elif isinstance(item, str):
            raise UsageError(self.name, repr(item), "a string may stand first alone", "Move it there")
        else:
            found = _creation.asarray(item)
        rank = found.ndim
        if rank >= ndmin:
            return found
        found = found.reshape((1,) * (ndmin - rank) + found.shape)
        if trans1d == -1 or type(item) in np.ScalarType:
            return found
        if isinstance(item, slice):
            return found.swapaxes(-1, trans1d)
        new = ndmin - rank
        place = trans1d + new + 1 if trans1d < 0 else trans1d
        axes = list(range(ndmin))
        return found.transpose(axes[:place] + axes[new:] + axes[place:new])


def slice_range(item: slice) -> Any:
    """Return the numbers that a slice stands for: an imaginary step is their number."""
    start, step = 0 if item.start is None else item.start, 1 if item.step is None else item.step
    if isinstance(step, complex | np.complexfloating):
        number: Any = abs(step)
        return _creation.linspace(start, item.stop, num=int(number))
    return _creation.arange(start, item.stop, step)


class Grid:
    """Return the grids that NumPy's object of this name gives, as Tensors."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __getitem__(self, key: Any) -> Any:
        return _creation.own_as_tensors(getattr(np, self.name)[key])


class Broadcast:
    """Tell the shape that arrays broadcast to, and iterate over their elements together; see `numpy.broadcast`."""

    def __init__(self, *args: Any) -> None:
        self.operands = tuple(map(as_tensor, args))
        self.shape = np.broadcast_shapes(*[x.shape for x in self.operands])
        self.ndim = self.nd = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.numiter = len(args)

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        arrays = [np.broadcast_to(x, self.shape) for x in self.operands]
        return (tuple(x[place] for x in arrays) for place in np.ndindex(self.shape))


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Return pairs of the index and the element, in C order; see `numpy.ndenumerate`."""
    x = as_tensor(arr)
    return ((place, x[place]) for place in np.ndindex(x.shape))


class ArrayKind(type):
    """Be the class of `ndarray`: arrays are instances, whether they are Tensors or NumPy's; scalars are not."""

    def __instancecheck__(cls, value: Any) -> bool:
        return not is_scalar(value) if type(value) is Tensor else isinstance(value, np.ndarray)

    def __subclasscheck__(cls, kind: type) -> bool:
        return kind is Tensor or issubclass(kind, np.ndarray)


class ndarray(metaclass=ArrayKind):  # noqa: N801 - NumPy's name
    """Stand for the arrays of both libraries in `isinstance`; called, return a Tensor of a shape with any elements."""

    def __new__(cls, shape: Any, dtype: Any = float, order: Any = "C") -> Any:
        return _creation.own_as_tensors(np.zeros(shape, dtype, order))


OBJECTS: dict[str, Any] = {
    "r_": Joiner("r_", 0, 1, -1),
    "c_": Joiner("c_", -1, 2, 0),
    "mgrid": Grid("mgrid"),
    "ogrid": Grid("ogrid"),
    "broadcast": Broadcast,
    "ndenumerate": ndenumerate,
    "ndarray": ndarray,
}
"""What NumPy's objects of these names are for Tensors."""
