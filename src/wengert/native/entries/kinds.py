"""What an entry asks of its arguments and what it makes of its results: plain data."""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, TypeAlias

import numpy as np

from wengert.support.records import FieldRecord, Record

LONGEST = 1 << 63
"""The first int that is too long for native code."""

MANY_LEAVES = 1 << 16
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


class PlaceKind(ArrayKind):
    """An array as an output, which lies where an argument does.

    Attributes:
        place: which one.
    """

    def __init__(self, kind: ArrayKind, place: int) -> None:
        super().__init__(kind.dtype, kind.shape, kind.strides)
        self.place = place


class NumberKind(Record):
    """A number of exactly a type: float, int of at most 63 bits and a sign, bool, complex, or a NumPy scalar's type."""

    def __init__(self, type: type) -> None:
        self.type = type


ANY_NUMBER = -1


class ContainerKind(Record):
    """A container of exactly a class: a tuple, a list, a dictionary, a named tuple, or an object with attributes.

    Attributes:
        type: its class.
        items: the kinds of what it holds.
        names: the keys of a dictionary, in their order, or the names of attributes.
        held: how many attributes the `__dict__` of an object has.
    """

    def __init__(
        self, type: type, items: tuple[Kind, ...], names: tuple[Any, ...] = (), held: int = ANY_NUMBER
    ) -> None:
        self.type, self.items, self.names, self.held = type, items, names, held


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


class EqualKind(Record):
    """An array equal to a known one, as an argument: of its dtype and shape, in C order.

    Attributes:
        value: the array, which cannot change.
    """

    __eq__, __hash__ = object.__eq__, object.__hash__

    def __init__(self, value: np.ndarray[Any, Any]) -> None:
        self.value = value


class AnyKind(Record):
    """Anything of exactly a type, as an argument that the caller knows."""

    def __init__(self, type: type) -> None:
        self.type = type


class AbsentKind(Record):
    """No value at all: of an attribute that an object does not have."""


Kind: TypeAlias = ArrayKind | NumberKind | ContainerKind | SameKind | CopyKind | EqualKind | AnyKind | AbsentKind


NOTHING_KNOWN: Mapping[str, Any] = MappingProxyType({})
"""That nothing stands for attributes."""


class Attributes(Record):
    """The attributes of an object that is a container.

    Attributes:
        names: of those that are its items.
        static: the names of the others, which belong to its structure.
        held: how many its `__dict__` must have.
        absent: the names of those that it does not have.
        made: the names of those that are set in what is made, and not looked at in what is given.
        known: what stands for some of the others, by name: arrays that are equal to them, but cannot change.
    """

    def __init__(
        self,
        names: Sequence[str],
        static: Sequence[str],
        held: int = ANY_NUMBER,
        absent: Sequence[str] = (),
        made: Sequence[str] = (),
        known: Mapping[str, Any] = NOTHING_KNOWN,
    ) -> None:
        self.names, self.static, self.held, self.known = names, static, held, known
        self.absent, self.made = absent, made


ATTRIBUTES: dict[type, Callable[[Any], Attributes | None]] = {}
"""What says by which attributes objects of a class are containers; None if native code does not see these."""

KNOWN_BY_PLACE: set[type] = set()
"""Classes whose objects cannot change, and are known by their place: an equal object counts as another."""


class Beside(FieldRecord):
    """What calls read and write beside their arguments and results.

    Attributes:
        captured: objects that are read at each call, and their kinds; their arrays and numbers come after those of the
            arguments.
        written: the places of arrays that can be written to and share memory with no other.
        donated: pairs: the place of an array, and that of the output, after those of the result, that is copied there.
    """

    captured: tuple[tuple[Any, Kind], ...] = ()
    written: tuple[int, ...] = ()
    donated: tuple[tuple[int, int], ...] = ()


NOTHING = Beside()


def kind_of(value: Any, is_made: bool = False) -> Kind | None:
    """Return the kind that a value is of, as an argument; None for what native code cannot look at.

    Args:
        value: the value.
        is_made: whether it is a result instead, all of which have the same objects as static attributes.
    """
    if type(value) is np.ndarray:
        if value.dtype.type not in NUMBERS or not value.dtype.isnative or not value.flags.aligned:
            return None
        return ArrayKind(np.dtype(value.dtype.type), value.shape, None if value.flags.c_contiguous else value.strides)
    if type(value) in NUMBERS:
        return NumberKind(type(value)) if type(value) is not int or -LONGEST <= value < LONGEST else None
    return SameKind(None) if value is None else container_kind(value, is_made)


def container_kind(value: Any, is_made: bool) -> Kind | None:
    """Return the kind of a container; None for those that native code cannot look into."""
    own = type(value)
    names: tuple[Any, ...] = ()
    held = ANY_NUMBER
    if own in (tuple, list) or is_named_tuple(own):
        items = [kind_of(item, is_made) for item in value]
    elif own is dict:
        names, items = tuple(value), [kind_of(item, is_made) for item in value.values()]
    else:
        attributes = ATTRIBUTES[own](value) if own in ATTRIBUTES else None
        if attributes is None:
            return None
        static = SameKind if is_made else constant_kind
        fixed = (*attributes.static, *(attributes.made if is_made else ()))
        names, held = (*attributes.names, *fixed, *attributes.absent), attributes.held
        items = [kind_of(getattr(value, name), is_made) for name in attributes.names]
        items += [static(attributes.known.get(name, getattr(value, name))) for name in fixed]
        items += [AbsentKind() for _ in attributes.absent]
    known = [item for item in items if item is not None]
    return ContainerKind(own, tuple(known), names, held) if len(known) == len(items) and are_keys(names) else None


def are_keys(names: Sequence[Any]) -> bool:
    """Tell whether native code finds keys: it lets nothing compare them that is written in Python."""
    own: tuple[Any, ...] = tuple(map(type, names))
    return all(kind in (str, int) or kind.__eq__ is object.__eq__ for kind in own)


def is_named_tuple(own: type) -> bool:
    """Tell whether a class is one of named tuples."""
    return issubclass(own, tuple) and type(getattr(own, "_fields", None)) is tuple and hasattr(own, "_make")


def constant_kind(value: Any) -> Kind | None:
    """Return the kind of what nothing tells from a value that cannot change; None if native code cannot tell.

    Objects that equal themselves alone can change, but are what they are.
    """
    if type(value) is tuple:
        items = [constant_kind(item) for item in value]
        return None if None in items else ContainerKind(tuple, tuple([item for item in items if item is not None]))
    own: Any = type(value)
    if own is np.ndarray:  # which no hashable value holds: only `Attributes.known` does
        return None if value.flags.writeable else EqualKind(value)
    is_alone = value is None or (own.__eq__ is object.__eq__ and own.__hash__ is object.__hash__)
    return SameKind(value) if is_alone or own in CONSTANTS or is_one(value) else None


def is_one(value: Any) -> bool:
    """Tell whether a value that compares with others cannot change: itself, and nothing equal, is known by its place.

    It is a member of an enumeration, a dtype of numbers, a frozen dataclass of such values, or of `KNOWN_BY_PLACE`.
    """
    if type(value) in KNOWN_BY_PLACE:
        return True
    if isinstance(value, np.dtype):
        return value.isbuiltin == 1
    parameters = getattr(type(value), "__dataclass_params__", None)
    if parameters is None or not parameters.frozen:
        return isinstance(value, enum.Enum)
    return all(hasattr(value, x) and constant_kind(getattr(value, x)) is not None for x in value.__dataclass_fields__)


def leaves(kinds: Sequence[Kind]) -> Iterator[ArrayKind | NumberKind]:
    """Return the arrays and numbers among kinds, those in containers too: what a kernel is given, in its order."""
    for kind in kinds:
        if isinstance(kind, ContainerKind):
            yield from leaves(kind.items)
        elif isinstance(kind, ArrayKind | NumberKind):
            yield kind


def with_leaves(kinds: Sequence[Kind], found: Iterator[Kind]) -> list[Kind]:
    """Return kinds with others in the place of their arrays and numbers, in order.

    Raises:
        StopIteration: there are fewer others.
    """
    return [
        next(found)
        if isinstance(kind, ArrayKind | NumberKind)
        else ContainerKind(kind.type, tuple(with_leaves(kind.items, found)), kind.names, kind.held)
        if isinstance(kind, ContainerKind)
        else kind
        for kind in kinds
    ]


def kind_like(example: Any, parts: Sequence[Kind]) -> Kind | None:
    """Return the kind of results like one, whose arrays and numbers are of some kinds; None if native code makes none.

    Static attributes of objects are the same objects in all of them.
    """
    kind = kind_of(example, is_made=True)
    if kind is None or len(list(leaves((kind,)))) != len(parts):
        return None
    return with_leaves((kind,), iter(parts))[0]


def check_leaves(arguments: Sequence[Kind], results: Sequence[Kind]) -> None:
    """Raise a ValueError unless arrays and numbers are few enough, and the types of numbers are known."""
    inputs, outputs = list(leaves(arguments)), list(leaves(results))
    if len(inputs) + len(outputs) > MANY_LEAVES:
        raise ValueError(f"{len(inputs)} inputs and {len(outputs)} outputs; {MANY_LEAVES} together are possible")
    for kind in (*inputs, *outputs):
        if isinstance(kind, NumberKind) and kind.type not in NUMBERS:
            raise ValueError(f"{kind.type.__name__} is no type of numbers")
