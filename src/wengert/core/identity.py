"""Identity: a hashable stand-in for a primitive, a literal or a parameter, for caches and for comparing graphs.

Two values have equal stand-ins only if one may take the other's place. Registered primitives are known by their
names, which are unique; numbers, arrays and containers by type and content; everything else is the object itself,
which the stand-in keeps alive: two functions may share a name, and an address is used again once its object is freed.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from wengert.core.order import axes_in_memory, is_full
from wengert.core.primitive import Primitive

__all__ = [
    "Composite",
    "identity",
    "identity_of_params",
    "identity_of_static",
    "registered_name",
]

PLAIN = frozenset({int, bool, str, bytes, type(None)})


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

    >>> registered_name(Primitive("add", lambda x: x))
    ''
    """
    return primitive.name if primitive.registered else ""


def identity(value: Any) -> Hashable:
    """Return what a value shares with exactly those that may take its place, NaN and the sign of zero included.

    >>> identity(1) == identity(1.0), identity(0.0) == identity(-0.0), identity((np.nan, 2)) == identity((np.nan, 2))
    (False, False, True)
    """
    kind = type(value)
    if kind in PLAIN:
        return kind, value
    if kind is tuple:
        return tuple, tuple([x if type(x) is int else identity(x) for x in value])
    if kind is float:
        return kind, value.hex()
    if kind is complex:
        return kind, value.real.hex(), value.imag.hex()
    if kind is slice:
        return kind, identity(value.start), identity(value.stop), identity(value.step)
    if kind is np.ndarray and is_full(value):
        return kind, value.dtype.str, value.shape, value[(0,) * value.ndim].tobytes()
    if isinstance(value, np.ndarray | np.generic):
        return kind, value.dtype.str, value.shape, axes_in_memory(value), np.ascontiguousarray(value).tobytes()
    if isinstance(value, Primitive):
        return Primitive, registered_name(value) or Object(value)
    if isinstance(value, np.dtype):
        return np.dtype, value
    if kind is list:
        return list, tuple(map(identity, value))
    if kind is dict:
        return dict, tuple([(identity(key), identity(item)) for key, item in value.items()])
    if isinstance(value, Composite):
        return kind, value.structure()
    return Object(value)


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
    if is_dataclass(value) and type(value).__eq__ is not object.__eq__ and not isinstance(value, type):
        hash(value)
        return type(value), tuple([identity_of_static(getattr(value, x.name)) for x in fields(value) if x.compare])
    if isinstance(value, float | complex | np.generic):
        return identity(value)
    hash(value)
    return type(value), value
