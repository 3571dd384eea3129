"""Memory order: the strides of values that are not there yet, as NumPy would give them.

Strides are in bytes. None stands for C order, and for a scalar among values without axes; `()` is that of an array
without axes, which can be written to. Primitives ask NumPy with examples that lie in memory as the operands would.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Protocol

import numpy as np

ndarray = np.ndarray


class Handle(Protocol):
    """Be a Tensor, as far as its memory is concerned; `Tensor` says what these are."""

    _value: Any
    _trace: Any
    _kept: Any
    _fixed: bool

    @property
    def ndim(self) -> int:
        """The number of axes."""


Strides = tuple[int, ...] | None
Order = tuple[Strides, ...] | None
"""The strides of several values; None if all are scalars or in C order."""


class Joined(tuple[int, ...]):
    """Be the strides of a value that lies in one of several ways, as a traced value decides: those of C order.

    Attributes:
        ways: the strides that it may have.
    """

    ways: frozenset[Strides]

    def __new__(cls, shape: Sequence[int], itemsize: int, ways: Iterable[Strides]) -> Joined:
        """Return strides in C order that know of others."""
        found = super().__new__(cls, close(shape, sorted(range(1, len(shape) + 1), reverse=True), itemsize))
        found.ways = frozenset(ways)
        return found

    def __eq__(self, other: object) -> bool:
        return type(other) is Joined and other.ways == self.ways

    def __hash__(self) -> int:
        return hash(self.ways)


def ways_of(strides: Strides) -> frozenset[Strides]:
    """Return the ways in which a value may lie in memory."""
    return strides.ways if type(strides) is Joined else frozenset((strides,))


def strides_among(shape: Sequence[int], itemsize: int, ways: frozenset[Strides]) -> Strides:
    """Return the strides of a value that lies in one of some ways; a scalar or an array without axes has both.

    >>> strides_among((2, 3), 8, frozenset(((8, 16),))), strides_among((2, 3), 8, frozenset(((8, 16), None)))
    ((8, 16), (24, 8))
    """
    return next(iter(ways)) if len(ways) == 1 else Joined(shape, itemsize, ways)


def row_strides(shape: Sequence[int], strides: Strides, itemsize: int) -> Strides:
    """Return the strides of one row of an array.

    >>> row_strides((5, 2, 3), (48, 8, 16), 8), row_strides((5, 2, 3), None, 8)
    ((8, 16), None)
    """
    if not strides:
        return None
    rows = [None if not way else way[1:] for way in ways_of(strides)]
    packed = [row is None or is_packed(shape[1:], row, itemsize) for row in rows]
    return strides_among(
        shape[1:], itemsize, frozenset(None if p else row for p, row in zip(packed, rows, strict=True))
    )


def stacked_strides(shape: Sequence[int], strides: Strides, itemsize: int) -> Strides:
    """Return the strides of arrays that lie one behind the other, from those of one.

    >>> stacked_strides((5, 2, 3), (8, 16), 8), stacked_strides((5, 2, 3), None, 8)
    ((48, 8, 16), None)
    """
    if not strides:
        return None
    found: list[Strides] = []
    for way in ways_of(strides):
        length = itemsize + sum((n - 1) * abs(stride) for n, stride in zip(shape[1:], way or (), strict=bool(way)))
        found.append((length, *way) if way else None)
    return strides_among(shape, itemsize, frozenset(found))


def strides_of_stack(shape: Sequence[int], strides: Strides, itemsize: int) -> Strides:
    """Return the strides of what `numpy.stack` gives, of some shape, from those of one array.

    >>> strides_of_stack((5, 2, 3), (8, 16), 8), strides_of_stack((5, 2, 3), None, 8)
    ((48, 8, 16), None)
    """
    found: list[Strides] = []
    for way in ways_of(strides):
        if way:
            small = example(*shrunk(shape[1:], way, itemsize), np.dtype(f"V{itemsize}"))
            found.append(grown(shape, of_array(np.stack([small, small])), itemsize))
        else:
            found.append(None)
    return strides_among(shape, itemsize, frozenset(found))


def strides_of_copy(value: Any) -> Strides:
    """Return the strides of a copy of a value, which NumPy lays out in its order, without gaps and overlaps.

    >>> strides_of_copy(np.ones((4, 3))[::2].T), strides_of_copy(np.broadcast_to(np.ones(3), (2, 3)))
    ((8, 24), (8, 16))
    """
    shape, itemsize = value.shape, value.dtype.itemsize
    found: list[Strides] = []
    for way in ways_of(strides_of(value)):
        if way:
            small = example(*shrunk(shape, way, itemsize), np.dtype(f"V{itemsize}"))
            found.append(grown(shape, of_array(small.copy("K")), itemsize))
        else:
            found.append(way)
    return strides_among(shape, itemsize, frozenset(found))


def of_array(x: Any) -> Strides:
    """Return the strides of an evaluated value.

    >>> of_array(np.ones((2, 3)).T), of_array(np.ones(3)), of_array(np.array(1.0)), of_array(np.float64(1.0))
    ((8, 24), None, (), None)
    """
    if type(x) is not np.ndarray:  # a scalar has no memory that it could share
        return None
    if x.flags.c_contiguous:
        return None if x.ndim else ()
    return x.strides


def strides_of(value: Any) -> Strides:
    """Return the strides of a value of any trace; of one lane of it, in a batch."""
    if type(value) is ndarray:
        return of_array(value)
    if hasattr(value, "_trace"):  # a Tensor
        if hasattr(value, "_array"):
            return value._array  # type: ignore[no-any-return]  # of an array without axes
        trace = value._trace
        return strides_of(value._value) if trace is None else trace.strides(value)
    if isinstance(value, np.ndarray | np.generic):
        return of_array(value)
    return getattr(value, "strides", None)  # a variable has them, a Python number has not


def order_of_argument(x: Any) -> Strides:
    """Return the strides of an argument in normal form; most are in C order, so that is asked first."""
    if type(x) is np.ndarray and x.flags.c_contiguous and x.ndim:
        return None
    return in_normal_form(x.shape, strides_of(x), x.dtype.itemsize) if np.ndim(x) else strides_of(x)


def is_scalar(x: Handle) -> bool:
    """Tell whether a value is a scalar of NumPy, which `+=` does not change, not an array without axes."""
    trace = x._trace
    if trace is None or trace.fast:
        kind = type(x._value)
        if kind is np.ndarray:
            return False
        if kind is np.float64:
            return not hasattr(x, "_array")
    return x.ndim == 0 and strides_of(x) is None


def may_be_scalar(x: Handle) -> bool:
    """Tell whether a value is a scalar or an array without axes, as a traced value decides."""
    return x.ndim == 0 and type(strides_of(x)) is Joined


def order_of(values: Sequence[Any]) -> Order:
    """Return the strides of several values."""
    found = tuple([strides_of(value) for value in values])
    return None if found.count(None) == len(found) else found


def is_packed(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> bool:
    """Tell whether strides are those of C order.

    >>> is_packed((2, 3), (24, 8), 8), is_packed((2, 3), (48, 8), 8)
    (True, False)
    """
    step = itemsize
    for length, stride in zip(reversed(shape), reversed(strides), strict=True):
        if length != 1:
            if stride != step:
                return 0 in shape
            step *= length
    return True


def axes_without_gaps(shape: Sequence[int], strides: Strides, itemsize: int) -> tuple[int, ...] | None:
    """Return the axes from slowest to fastest of an array that fills its memory in another order than C; else None.

    >>> axes_without_gaps((2, 3), (8, 16), 8), axes_without_gaps((2, 3), (8, 24), 8), axes_without_gaps((2, 3), None, 8)
    ((1, 0), None, None)
    """
    if not strides or type(strides) is Joined:
        return None
    axes = tuple(axes_by_stride(strides))
    fills = lies_along(shape, strides, itemsize, axes) and not is_packed(shape, strides, itemsize)
    return axes if fills else None


def lies_along(shape: Sequence[int], strides: Sequence[int], itemsize: int, axes: Sequence[int]) -> bool:
    """Tell whether elements lie side by side in C order of axes."""
    return is_packed([shape[axis] for axis in axes], [strides[axis] for axis in axes], itemsize)


def lie_alike(shape: Sequence[int], one: Strides, other: Strides) -> bool:
    """Tell whether strides are the same; those of axes of length one mean nothing, and NumPy has any there.

    >>> lie_alike((3, 1), (-8, 0), (-8, 8)), lie_alike((3, 1), (-8, 0), (8, 0))
    (True, False)
    """
    if one == other or one is None or other is None:
        return one == other
    return all(length == 1 or a == b for length, a, b in zip(shape, one, other, strict=True))


def axes_by_stride(strides: Sequence[int]) -> list[int]:
    """Return the axes from the one that varies slowest to the fastest.

    >>> axes_by_stride((8, 48, 24))
    [1, 2, 0]
    """
    return sorted(range(len(strides)), key=lambda axis: (-abs(strides[axis]), axis))


def axes_of_iteration(x: Any) -> list[int]:
    """Return the axes from the slowest to the fastest in which NumPy goes through an array in order K.

    Axes along which elements repeat, and those of length one, tell nothing and keep their place if they can.

    >>> axes_of_iteration(np.ones((2, 3)).T), axes_of_iteration(np.broadcast_to(np.ones(3), (2, 3)))
    ([1, 0], [0, 1])
    """
    strides = [0 if length == 1 else abs(stride) for length, stride in zip(x.shape, x.strides, strict=True)]
    fastest_first: list[int] = []
    for axis in reversed(range(len(strides))):  # as npyiter_find_best_axis_ordering inserts them
        place = len(fastest_first)
        for i in reversed(range(place)):
            other = strides[fastest_first[i]]
            if not other or not strides[axis]:
                continue
            if other <= strides[axis]:
                break
            place = i
        fastest_first.insert(place, axis)
    return fastest_first[::-1]


def axes_in_memory(x: Any) -> tuple[int, ...] | None:
    """Return the axes from the slowest to the fastest, None if they are in order; those of length one first.

    >>> axes_in_memory(np.ones((2, 3)).T), axes_in_memory(np.ones((1, 3)).T)
    ((1, 0), None)
    """
    if x.flags.c_contiguous:
        return None
    longer = [axis for axis in axes_by_stride(x.strides) if x.shape[axis] != 1]
    return None if longer == sorted(longer) else (*(i for i, n in enumerate(x.shape) if n == 1), *longer)


def is_full(x: Any) -> bool:
    """Tell whether an array is one element in memory, repeated along all axes.

    >>> is_full(np.broadcast_to(2.0, (2, 3))), is_full(np.full((2, 3), 2.0))
    (True, False)
    """
    return (
        x.size > 1
        and not x.flags.forc
        and not any(n > 1 and stride for n, stride in zip(x.shape, x.strides, strict=True))
    )


def without_repetition(array: Any) -> Any:
    """Return the part of an array that is in memory: one element of each axis along which it is repeated."""
    if array.flags.forc:
        return array
    repeated = [n > 1 and not step for n, step in zip(array.shape, array.strides, strict=True)]
    return array[tuple([slice(0, 1) if flag else slice(None) for flag in repeated])] if any(repeated) else array


def is_uniform(x: Any) -> bool:
    """Tell whether an array has elements and all have the same bits; most show in three of them that they have not.

    >>> is_uniform(np.full(3, -1.0)), is_uniform(np.array([0.0, -0.0])), is_uniform(np.zeros(0))
    (True, False, False)
    """
    if not x.size:
        return False
    first = x.flat[0].tobytes()
    if is_full(x) or x.size == 1:
        return True
    if x.flat[-1].tobytes() != first or x.flat[x.size // 2].tobytes() != first:
        return False
    if x.itemsize > 8:
        return bool(x.tobytes() == first * x.size)
    bits = x.view(f"u{x.itemsize}")
    return bool((bits == bits.flat[0]).all())


def with_axes_in_memory(x: Any, axes: Sequence[int]) -> Any:
    """Return a value whose axes from slowest to fastest are these: itself if they are, without gaps.

    >>> with_axes_in_memory(np.ones((2, 3)), [1, 0]).strides
    (8, 16)
    """
    memory = x if type(x) is np.ndarray else np.asarray(example(x.shape, strides_of(x), x.dtype))
    if memory.transpose(axes).flags.c_contiguous:
        return x
    back = sorted(range(len(axes)), key=axes.__getitem__)
    return np.transpose(np.copy(np.transpose(x, axes), order="C"), back)


def arranged_as(x: Any, other: Any) -> Any:
    """Return a value in the memory order of another of its shape: itself if nobody knows that."""
    strides = strides_of(other)
    if strides == strides_of(x) or strides == () or type(strides) is Joined:
        return x
    return with_axes_in_memory(x, axes_by_stride(strides) if strides else range(x.ndim))


def example(shape: Sequence[int], strides: Strides, dtype: Any = np.bool_, fill: Any = None) -> Any:
    """Return an array or scalar that lies in memory as a value would; its elements mean nothing unless filled."""
    if strides is None:
        plain = np.empty(shape, dtype) if fill is None else np.full(shape, fill, dtype)
        return plain if shape else plain[()]
    dtype = np.dtype(dtype)
    spans = [(length - 1) * stride for length, stride in zip(shape, strides, strict=True)]
    start = -sum(span for span in spans if span < 0)
    length = (start + sum(span for span in spans if span > 0)) // dtype.itemsize + 1
    memory = np.empty(length, dtype) if fill is None else np.full(length, fill, dtype)
    return np.ndarray(tuple(shape), dtype, memory, start, strides)


def shrunk(shape: Sequence[int], strides: Strides, itemsize: int) -> tuple[tuple[int, ...], Strides]:
    """Return a shape of the same order in memory with no axis longer than two.

    >>> shrunk((5, 1, 7), (8, 8, 40), 8)
    ((2, 1, 2), (8, 8, 16))
    """
    small = tuple([min(length, 2) for length in shape])
    return small, strides and tuple(
        step if stride >= 0 else -step for step, stride in zip(close(small, strides, itemsize), strides, strict=True)
    )


def grown(shape: Sequence[int], strides: Strides, itemsize: int) -> Strides:
    """Return the strides of new memory of full lengths, in the order that a small example has."""
    if not shape:
        return strides
    return close(shape, strides, itemsize) if strides else None


def in_normal_form(shape: Sequence[int], strides: Strides, itemsize: int) -> Strides:
    """Return the strides that stand for all of the same order and with the same gaps, however wide these are.

    By these NumPy decides what is a view and how results lie: parts of wide arrays and of narrow ones are of one kind.
    Strides of elements that overlap stay as they are.

    >>> in_normal_form((2, 3), (800, 8), 8), in_normal_form((2, 3), (8, 800), 8), in_normal_form((4,), (-80,), 8)
    ((32, 8), (8, 24), (-16,))
    """
    if not strides:
        return strides
    found, step, unbroken = [0] * len(strides), itemsize, itemsize
    for axis in reversed(axes_by_stride(strides)):
        stride = abs(strides[axis])
        if not stride:
            continue
        if stride < unbroken:
            return strides
        if stride > unbroken:
            step += itemsize
        found[axis] = step if strides[axis] > 0 else -step
        step *= max(shape[axis], 1)
        unbroken = stride * max(shape[axis], 1)
    return tuple(found)


def close(shape: Sequence[int], strides: Sequence[int], itemsize: int) -> tuple[int, ...]:
    """Return strides in the same order without gaps; axes along which elements repeat keep the stride zero."""
    found, step = [0] * len(shape), itemsize
    for axis in reversed(axes_by_stride(strides)):
        if strides[axis] or shape[axis] == 1:
            found[axis] = step
            step *= max(shape[axis], 1)
    return tuple(found)
