"""Entries whose calls go through Python and ctypes, where native ones cannot be had: they behave alike."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from wengert.native.callee import Callee
from wengert.native.function_protocol import LikeFunction
from wengert.native.kinds import (
    LONGEST,
    AnyKind,
    ArrayKind,
    ContainerKind,
    CopyKind,
    Kind,
    NumberKind,
    SameKind,
    check_leaves,
    leaves,
)

MANY_VARIANTS = 64
MISMATCH = object()


class CtypesVariant:
    """Be one way to call a kernel; the arguments are those of `NativeVariant`."""

    def __init__(self, arguments: Sequence[Kind], result: Kind, callee: Callee, names: Sequence[str] = ()) -> None:
        check_leaves(arguments, result)
        self.arguments, self.names, self.result = tuple(arguments), tuple(names), result
        self.made, self.callee = list(leaves((result,))), callee

    def tried(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Return the result for arguments; MISMATCH if they are others, or the kernel says that there is none."""
        if tuple(kwargs) != self.names or len(args) + len(kwargs) != len(self.arguments):
            return MISMATCH
        inputs: list[Any] = []
        for kind, value in zip(self.arguments, (*args, *kwargs.values()), strict=True):
            if not matches(kind, value, inputs):
                return MISMATCH
        outputs = [room(kind) for kind in self.made]
        failed = np.zeros((), np.bool_)
        self.callee.call([array.ctypes.data for array in (*inputs, *outputs, failed)])
        if failed:
            return MISMATCH
        return assembled(self.result, iter(outputs))


class CtypesEntry(LikeFunction):
    """Be something to call that runs a kernel where the arguments suit one of its variants; as `NativeEntry`."""

    python_call: Callable[..., Any]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Put variants before what a class does when it is called."""
        super().__init_subclass__(**kwargs)
        if "__call__" in cls.__dict__:
            cls.python_call = cls.__dict__["__call__"]
            setattr(cls, "__call__", call)  # noqa: B010 - checkers take it for an assignment to a method

    def add(self, variant: CtypesVariant) -> None:
        """Try a variant from now on, before the others; one that was not used for long may be forgotten."""
        self.__dict__["known"] = [variant, *self.variants()][:MANY_VARIANTS]

    def variants(self) -> list[CtypesVariant]:
        """Return the variants, in the order in which they are tried."""
        return list(self.__dict__.get("known", ()))

    def forget(self) -> None:
        """Forget all variants."""
        self.__dict__.pop("known", None)

    def __getstate__(self) -> Any:
        """Return what a copy in another process has: no variants."""
        return {name: value for name, value in self.__dict__.items() if name != "known"}


def call(self: CtypesEntry, *args: Any, **kwargs: Any) -> Any:
    """Call the first variant that the arguments suit, or what the class says."""
    known = self.variants()
    for variant in known:
        result = variant.tried(args, kwargs)
        if result is not MISMATCH:
            if variant is not known[0]:
                self.__dict__["known"] = [variant, *(other for other in known if other is not variant)]
            return result
    return self.python_call(*args, **kwargs)


def matches(kind: Kind, value: Any, inputs: list[Any]) -> bool:
    """Whether a value is of a kind; append its arrays and numbers, as arrays."""
    if isinstance(kind, SameKind):
        return value is kind.value or is_equal(value, kind.value)
    if isinstance(kind, AnyKind):
        return type(value) is kind.type
    if isinstance(kind, ContainerKind):
        return type(value) is kind.type and contains(kind, value, inputs)
    if isinstance(kind, NumberKind):
        if type(value) is not kind.type or (type(value) is int and not -LONGEST <= value < LONGEST):
            return False
        inputs.append(np.array(value, np.dtype(kind.type)))
        return True
    if isinstance(kind, CopyKind) or type(value) is not np.ndarray or value.shape != kind.shape:
        return False
    if value.dtype != kind.dtype or value.dtype.num != kind.dtype.num:
        return False
    inputs.append(np.array(value, order="C") if kind.is_copied else value)
    return value.flags.aligned and in_order(kind, value)


def is_equal(value: Any, constant: Any) -> bool:
    """Whether nothing tells a value from a constant."""
    if type(value) is not type(constant):
        return False
    if type(value) is float:
        return struct.pack("d", value) == struct.pack("d", constant)
    return type(value) in (int, str) and bool(value == constant)


def contains(kind: ContainerKind, value: Any, inputs: list[Any]) -> bool:
    """Whether a container holds what its kind describes; append its arrays and numbers, as arrays."""
    if len(value) != len(kind.items) or (kind.type is dict and tuple(value) != kind.names):
        return False
    items = value.values() if kind.type is dict else value
    return all(matches(part, item, inputs) for part, item in zip(kind.items, list(items), strict=True))


def in_order(kind: ArrayKind, value: Any) -> bool:
    """Whether the elements of an array lie as a kind has them; where an axis is short, its stride does not matter."""
    if kind.strides is None:
        return bool(value.flags.c_contiguous)
    axes = zip(value.strides, kind.strides, value.shape, strict=True)
    return all(stride == wanted or length == 1 for stride, wanted, length in axes)


def room(kind: ArrayKind | NumberKind) -> Any:
    """Return an array for a result."""
    if isinstance(kind, NumberKind):
        return np.empty((), np.dtype(kind.type))
    if kind.strides is None:
        return np.empty(kind.shape, kind.dtype)
    return np.ndarray(kind.shape, kind.dtype, strides=kind.strides)


def assembled(kind: Kind, outputs: Any) -> Any:
    """Return a result made of outputs in their order."""
    if isinstance(kind, SameKind):
        return kind.value
    if isinstance(kind, CopyKind):
        return kind.value.copy(order="K")
    if isinstance(kind, ContainerKind):
        items = [assembled(part, outputs) for part in kind.items]
        return dict(zip(kind.names, items, strict=True)) if kind.type is dict else kind.type(items)
    value = next(outputs)
    return value if isinstance(kind, ArrayKind) else kind.type(value[()])
