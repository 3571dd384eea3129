"""What an entry asks of its arguments and what it makes of its results: plain data."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np

from wengert.support.records import Record

LONGEST = 1 << 63
"""The first int that is too long for native code."""

MANY_LEAVES = 256
"""How many arrays and numbers arguments and results may have together."""

NUMBERS = frozenset(
    {
        *(float, int, bool, complex, np.bool_, np.float16, np.float32, np.float64, np.complex64, np.complex128),
        *(np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64),
    }
)
"""The types of numbers that have 128 bits at most."""

CONSTANTS = (int, float, bool, str)
"""The types of values that native code compares."""


class ArrayKind(Record):
    """An ndarray, and none of its subclasses, that is aligned.

    Attributes:
        dtype: one of numbers in the processor's byte order.
        shape: its shape.
        strides: bytes from one element to the next; None for elements side by side in C order.
        is_copied: of an argument: whether the kernel gets a copy in C order.
    """

    def __init__(
        self,
        dtype: np.dtype[Any],
        shape: tuple[int, ...],
        strides: tuple[int, ...] | None = None,
        is_copied: bool = False,
    ) -> None:
        self.dtype, self.shape, self.strides, self.is_copied = dtype, shape, strides, is_copied


class NumberKind(Record):
    """A number of exactly a type: float, int of at most 63 bits and a sign, bool, complex, or a NumPy scalar's type."""

    def __init__(self, type: type) -> None:
        self.type = type


class ContainerKind(Record):
    """A tuple, a list or a dictionary, and none of their subclasses.

    Attributes:
        type: which of the three.
        items: the kinds of what it holds.
        names: the keys of a dictionary, in their order.
    """

    def __init__(self, type: type, items: tuple[Kind, ...], names: tuple[str, ...] = ()) -> None:
        self.type, self.items, self.names = type, items, names


class SameKind(Record):
    """One and the same object, as a result.

    As an argument, the object or one that nothing tells from it: an equal int or string, a float of the same bits.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, value: Any) -> None:
        self.value = value


class CopyKind(Record):
    """A copy of a known array, as a result.

    Attributes:
        value: the array, which nobody else has.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.value = value


class AnyKind(Record):
    """Anything of exactly a type, as an argument that the caller knows."""

    def __init__(self, type: type) -> None:
        self.type = type


Kind: TypeAlias = ArrayKind | NumberKind | ContainerKind | SameKind | CopyKind | AnyKind


def kind_of(value: Any) -> Kind | None:
    """Return the kind that a value is of, as an argument; None for what native code cannot look at.

    A kind in the place of a value stands for values of it.
    """
    if isinstance(value, Kind):
        return value
    if type(value) is np.ndarray:
        if value.dtype.type not in NUMBERS or not value.dtype.isnative or not value.flags.aligned:
            return None
        return ArrayKind(np.dtype(value.dtype.type), value.shape, None if value.flags.c_contiguous else value.strides)
    if type(value) in NUMBERS:
        return NumberKind(type(value)) if type(value) is not int or -LONGEST <= value < LONGEST else None
    if type(value) not in (tuple, list, dict):
        return SameKind(None) if value is None else None
    names = tuple(value) if type(value) is dict else ()
    items = [kind_of(item) for item in (value.values() if type(value) is dict else value)]
    if None in items or not all(map(is_found, names)):
        return None
    return ContainerKind(type(value), tuple([item for item in items if item is not None]), names)


def constant_kind(value: Any) -> Kind | None:
    """Return the kind of what nothing tells from a value that cannot change; None if native code cannot tell.

    Objects that equal themselves alone can change, but are what they are.
    """
    if type(value) is tuple:
        items = [constant_kind(item) for item in value]
        return None if None in items else ContainerKind(tuple, tuple([item for item in items if item is not None]))
    own: Any = type(value)
    is_alone = value is None or (own.__eq__ is object.__eq__ and own.__hash__ is object.__hash__)
    return SameKind(value) if is_alone or own in CONSTANTS else None


def is_found(name: Any) -> bool:
    """Tell whether native code finds a name, which it knows by its place in memory."""
    return type(name) is str and sys.intern(name) is name


def leaves(kinds: Sequence[Kind]) -> Iterator[ArrayKind | NumberKind]:
    """Return the arrays and numbers among kinds, those in containers too: what a kernel is given, in its order."""
    for kind in kinds:
        if isinstance(kind, ContainerKind):
            yield from leaves(kind.items)
        elif isinstance(kind, ArrayKind | NumberKind):
            yield kind


def with_leaves(kinds: Sequence[Kind], found: Iterator[Kind]) -> list[Kind]:
    """Return kinds with others in the place of their arrays and numbers, in order."""
    return [
        next(found)
        if isinstance(kind, ArrayKind | NumberKind)
        else ContainerKind(kind.type, tuple(with_leaves(kind.items, found)), kind.names)
        if isinstance(kind, ContainerKind)
        else kind
        for kind in kinds
    ]


def check_leaves(arguments: Sequence[Kind], result: Kind) -> None:
    """Raise a ValueError unless arrays and numbers are few enough, and the types of numbers are known."""
    inputs, outputs = list(leaves(arguments)), list(leaves((result,)))
    if len(inputs) + len(outputs) > MANY_LEAVES:
        raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs; {MANY_LEAVES} together are possible")
    for kind in (*inputs, *outputs):
        if isinstance(kind, NumberKind) and kind.type not in NUMBERS:
            raise ValueError(f"{kind.type.__name__} is no type of numbers")
