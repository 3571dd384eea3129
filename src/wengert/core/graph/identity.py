"""Identity: a hashable stand-in for a primitive, a literal or a parameter, for caches and for comparing graphs.

Two values have equal stand-ins only if one may take the other's place. Registered primitives are known by their
names, which are unique; numbers, arrays and containers by type and content (large arrays by a digest of it);
everything else is the object itself,
which the stand-in keeps alive: two functions may share a name, and an address is used again once its object is freed.
"""

from __future__ import annotations

import marshal
import struct
from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from wengert.core.containers.container_classes import is_dataclass
from wengert.core.memory.buffers import may_change
from wengert.core.memory.memory_layout import axes_in_memory, is_full, without_repetition
from wengert.core.primitives.primitive import Primitive
from wengert.support.attributes import attribute
from wengert.support.caches import WeakIdentityMap
from wengert.support.digests import digest_of as digest_of_bytes

NUMBER = struct.Struct("<d")
MOST_BYTES = 1 << 12
"""Bytes of an array up to which its elements stand in its identity."""
DIGESTS: WeakIdentityMap[np.ndarray[Any, Any], bytes] = WeakIdentityMap()
"""The digests of larger arrays that nobody can change."""
BLOCK = 1 << 15
"""Words that are compared at once, so that what says where they differ stays in the cache."""


class Composite:
    """Be an object that is known by what it is made of: a graph."""

    __slots__ = ()

    def structure(self) -> Hashable:
        """Return what it is made of."""
        raise NotImplementedError


class Object:
    """Stand for an object that only equals itself, whatever its own comparison says."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return type(other) is Object and other.value is self.value

    def __hash__(self) -> int:
        return id(self.value)


def registered_name(primitive: Primitive) -> str:
    """Return the name of a declared primitive; an empty one for those made for a call, which are named by users.

    So it is for those that were declared again: graphs of those before have the name.

    >>> registered_name(Primitive("add", lambda x: x))
    ''
    """
    return primitive.name if primitive.registered and not primitive.renewed else ""


def identity(value: Any) -> Hashable:
    """Return what a value shares with exactly those that may take its place, NaN and the sign of zero included.

    >>> identity(1) == identity(1.0), identity(0.0) == identity(-0.0), identity((np.nan, 2)) == identity((np.nan, 2))
    (False, False, True)
    """
    kind = type(value)
    if kind is int or kind is str or value is None or value is ...:
        return value  # type: ignore[no-any-return]  # they equal nothing else that is returned here
    if kind is tuple:
        for x in value:
            if type(x) is not int:
                return "tuple", tuple(map(identity, value))
        return value  # type: ignore[no-any-return]  # as above
    if kind is bool or kind is bytes:
        return kind.__name__, value
    if kind is float:
        return "float", value.hex() if value == value else NUMBER.pack(value)  # of NaN, sign and payload, too
    if kind is complex:
        return "complex", identity(value.real), identity(value.imag)
    if kind is slice:
        return "slice", identity(value.start), identity(value.stop), identity(value.step)
    if kind is np.ndarray and is_full(value):
        return "full", value.dtype.str, value.shape, value[(0,) * value.ndim].tobytes()
    if kind is np.ndarray or isinstance(value, np.generic):
        core = without_repetition(value)
        return kind.__name__, value.dtype.str, value.shape, axes_in_memory(core), core.shape, content(core)
    if isinstance(value, Primitive):
        return "primitive", registered_name(value) or Object(value)
    if isinstance(value, np.dtype):
        return "dtype", value.str if value.kind in "biufc" else Object(value)
    if kind is np.ufunc and getattr(np, name := str(value.__name__), None) is value:
        return "ufunc", name
    if kind is list:
        return "list", tuple(map(identity, value))
    if kind is dict:
        return "dict", tuple([(identity(key), identity(item)) for key, item in value.items()])
    if isinstance(value, Composite):
        return kind.__name__, value.structure()
    if isinstance(value, Exception):  # made anew whenever its line runs, which a note tells
        return (
            "error",
            kind.__name__ if kind.__module__ == "builtins" else Object(kind),
            identity(value.args),
            identity(value.__cause__),
            identity(vars(value)),
        )
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        return Object(kind), tuple(map(identity, value)), identity(attribute(value, "__dict__"))
    if is_dataclass(kind) and kind.__dataclass_params__.frozen:  # parameters of primitives, made anew at each call
        fields = [identity(attribute(value, name)) for name in kind.__dataclass_fields__]
        return Object(kind), tuple(fields), identity(attribute(value, "__dict__"))
    return Object(value)


class Elements:
    """Stand for an array of many elements that may change, in keys: equal to another one of the same bits.

    To compare them takes an eighth of the time of a digest. What a key that is kept has must be a copy.
    """

    __slots__ = ("array",)

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def __hash__(self) -> int:
        return hash((self.array.shape, self.array.dtype.str))

    def __eq__(self, other: object) -> bool:
        if type(other) is not Elements:
            return False
        a, b = self.array, other.array
        if a.shape != b.shape or a.dtype != b.dtype:
            return False
        if a.nbytes <= 8 * BLOCK and a.flags.c_contiguous and b.flags.c_contiguous:
            return a.tobytes() == b.tobytes()  # 1 us in place of 5
        if axes_in_memory(a) != axes_in_memory(b):
            return False
        x, y = words_of(a), words_of(b)
        return all(np.array_equal(x[i : i + BLOCK], y[i : i + BLOCK]) for i in range(0, len(x), BLOCK))

    def copy(self) -> Elements:
        """Return the key of a copy of the array, which does not change with it."""
        return Elements(self.array.copy(order="K"))


def elements_for_key(content: Any) -> Hashable:
    """Return what stands for a number or an array in keys."""
    is_large = type(content) is np.ndarray and content.nbytes > MOST_BYTES and content.dtype.kind in "biufc"
    return Elements(content) if is_large and may_change(content) else identity(content)


def words_of(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the elements of an array, in the order of its axes in memory, as integers of the same bits."""
    flat = np.ascontiguousarray(array.transpose(axes_in_memory(array))).reshape(-1)
    return flat.view(np.uint64 if flat.nbytes % 8 == 0 else np.uint8)


def content(array: Any) -> bytes:
    """Return the elements of an array or scalar in C order; their digest where they are many, worked out once."""
    if array.nbytes <= MOST_BYTES:
        return np.ascontiguousarray(array).tobytes()
    if may_change(array):
        return digest_of(array)
    known = DIGESTS.get(array)
    if known is None:
        known = DIGESTS[array] = digest_of(array)
    return known


def digest_of(array: np.ndarray[Any, Any]) -> bytes:
    """Return a digest of the elements of an array in C order."""
    return digest_of_bytes(np.ascontiguousarray(array).data.cast("B"))


def digest(structure: Hashable) -> bytes | None:
    """Return 32 bytes that what has an identity shares with its equals in every process, so with no others.

    None if it holds something that is known by the object alone, such as a function of the user.

    >>> digest(identity((1, "a"))) == digest(identity((1, "a"))) != digest(identity((1.0, "a")))
    True
    >>> digest(identity(object()))
    """
    try:
        return digest_of_bytes(marshal.dumps(structure, 0))  # type: ignore[arg-type]  # plain values, written alike by format 0
    except ValueError:
        return None


def identity_of_params(params: Mapping[str, Any]) -> Hashable:
    """Return the identity of parameters, whatever their order."""
    return tuple([(name, identity(params[name])) for name in sorted(params)]) if params else ()


def identity_of_static(value: Any) -> Hashable:
    """Return what tells static arguments apart: numbers by type and content, others by their own comparison.

    Tuples, frozen sets and dataclasses are told apart by what they hold.

    Raises:
        TypeError: the value cannot be hashed.

    >>> identity_of_static((1, "a")) == identity_of_static((True, "a"))
    False
    """
    if isinstance(value, tuple):
        return type(value), tuple(map(identity_of_static, value))
    if isinstance(value, frozenset):
        return type(value), frozenset(map(identity_of_static, value))
    kind: Any = type(value)
    if is_dataclass(kind) and kind.__eq__ is not object.__eq__:
        from dataclasses import fields  # the class's module has loaded it

        hash(value)
        return kind, tuple([identity_of_static(getattr(value, x.name)) for x in fields(value) if x.compare])
    if isinstance(value, float | complex | np.generic):
        return identity(value)
    hash(value)
    return type(value), value
