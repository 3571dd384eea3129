"""Which classes are containers, and how their instances are taken apart and put together (optree)."""

from __future__ import annotations

import atexit
import collections
import enum
import functools
import types
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, Literal

import numpy as np

from wengert.errors import UsageError
from wengert.native.entries.kinds import ANY_NUMBER, ATTRIBUTES, Attributes
from wengert.support.attributes import class_attribute, has_class_attribute, own_attributes
from wengert.support.collector_pause import LoadingPause
from wengert.support.fork_safety import UNSTOPPED, WALKING

NAMESPACE = "wengert"
IN_ORDER = "wengert, dictionaries in order"
OPENED = "wengert, more of them opened"
EVERYWHERE = NAMESPACE, IN_ORDER, OPENED
Test = Callable[[Any], bool]
STATIC = "wengert.static"
"""The key in the metadata of a dataclass's field that says whether it is static."""
BUILT_IN = dict, list, tuple
REGISTERED: set[type[Any]] = {collections.deque}
"""Classes whose instances were found to be containers, or said to be."""
TAKEN_APART: set[type[Any]] = set()
"""Those among them that are taken apart by a function that does not say by what attributes or items."""
OBJECTS: set[type[Any]] = set()
"""Classes whose instances are no containers, but were opened."""
STAND_INS: dict[str, tuple[str, Callable[[Any], Any]]] = {}
"""Packages with containers of arrays that cannot hold Tensors: what method their classes have, and what makes a
container of ours of an instance, which stands for it wherever containers are taken apart."""


@functools.cache
def load_optree() -> types.ModuleType:
    """Return optree, loaded on first use: that takes longer than the rest of the import."""
    with UNSTOPPED, LoadingPause():
        import optree
    return optree


@functools.cache
def keep_order() -> None:
    """Let the order of a dictionary's keys be part of its structure in two namespaces, until the program ends."""
    for namespace in (IN_ORDER, OPENED):
        mode = load_optree().dict_insertion_ordered(True, namespace=namespace)
        with WALKING:
            mode.__enter__()
        atexit.register(mode.__exit__, None, None, None)


def is_container(kind: type[Any]) -> bool:
    """Tell whether instances of a class are containers."""
    if issubclass(kind, BUILT_IN):
        return not issubclass(kind, enum.Enum)
    return is_dataclass(kind) or kind in REGISTERED or stand_in_maker(kind) is not None


def stand_in_maker(kind: type[Any]) -> Callable[[Any], Any] | None:
    """Return what makes the containers that stand for instances of a class; None if they stand for themselves."""
    package = PACKAGES(kind)
    return None if package is None else STAND_INS[package][1]


def package_with_stand_ins(kind: type[Any]) -> str | None:
    """Return the package of a class for instances of which others stand; None if it is none of them."""
    for package, (method, _) in STAND_INS.items():
        if str(kind.__module__).startswith(f"{package}.") and has_class_attribute(kind, method):
            return package
    return None


PACKAGES: Any = functools.lru_cache(maxsize=1024)(package_with_stand_ins)
"""The same, worked out once for each class (mypy takes classes for unhashable)."""


def is_opened(kind: type[Any]) -> bool:
    """Tell whether instances of a class are containers, or of an opened one."""
    return kind in OBJECTS or is_container(kind)


def open_class(kind: type[Any]) -> bool:
    """Let the attributes of instances of a class that is no container be children where that is asked for.

    Return whether they were not.
    """
    news = kind not in OBJECTS
    if news:
        OBJECTS.add(kind)
        register_attributes(kind, namespaces=(OPENED,))
    return news


FIELDS = "__dataclass_fields__"
OF_ARRAYS = ("__array__", "shape", "dtype")


def is_dataclass(kind: type[Any]) -> bool:
    """Tell whether a class is a dataclass, as `dataclasses` does, which takes a millisecond to import.

    One that NumPy makes arrays of, with a shape and a dtype, is an array, whatever its fields are.
    """
    return has_class_attribute(kind, FIELDS) and not all(has_class_attribute(kind, name) for name in OF_ARRAYS)


def register_on_sight(kind: type[Any]) -> None:
    """Let the fields of a dataclass, or the items of a subclass of dict, list or tuple, be children."""
    if is_dataclass(kind):
        register_dataclass(kind)
    elif issubclass(kind, dict):
        register_mapping(kind)
    else:
        register_sequence(kind)


def register(
    kind: type[Any],
    take_apart: Callable[[Any], tuple[Iterable[Any], Any]],
    put_together: Callable[[Any, Iterable[Any]], Any],
    entries: Callable[[Any], Sequence[Any]] | None = None,
    entry: str = "SequenceEntry",
    namespaces: Sequence[str] = EVERYWHERE,
) -> None:
    """Let instances of a class be containers.

    Args:
        kind: the class.
        take_apart: returns the children of an instance and its static data, which compare and hash.
        put_together: makes an instance from static data and other children.
        entries: returns what leads to each child of an instance, as in `instance[entry]`; by default their numbers.
        entry: optree's name of how that is written.
        namespaces: where.
    """

    def parts(instance: Any) -> tuple[Any, ...]:
        children, static = take_apart(instance)
        return (children, static) if entries is None else (children, static, entries(instance))

    optree = load_optree()
    way = getattr(optree, entry)
    with WALKING:
        if NAMESPACE in namespaces:
            REGISTERED.add(kind)
            if entries is None:
                TAKEN_APART.add(kind)
            if kind in OBJECTS:
                OBJECTS.discard(kind)
                optree.unregister_pytree_node(kind, namespace=OPENED)
        for namespace in namespaces:
            optree.register_pytree_node(kind, parts, put_together, namespace=namespace, path_entry_type=way)


def register_dataclass(kind: type[Any]) -> None:
    """Let the fields of a dataclass be children, but for static ones, unless these hold what is being traced.

    In one namespace they are also if they hold numbers.
    """
    import dataclasses  # the class's module has loaded it

    fields = dataclasses.fields(kind)
    hints = annotations_of(kind)
    static = [f.name for f in fields if f.metadata.get(STATIC, is_static(hints.get(f.name)))]
    names = [f.name for f in fields if f.name not in static]

    order = (*names, *static)
    known = Attributes(names, static)
    if has_plain_attributes(kind):
        ATTRIBUTES[kind] = lambda instance: known

    def children_of(instance: Any, is_child: Test = is_traced) -> list[str]:
        return names + [name for name in static if is_child(getattr(instance, name))]

    def take_apart(instance: Any, is_child: Test = is_traced) -> tuple[list[Any], tuple[Any, ...]]:
        fixed = tuple([getattr(instance, name) for name in static])
        if any(map(is_child, fixed)):
            children = children_of(instance, is_child)
            settings = [name for name in static if name not in children]
            rest = (*children, *settings), tuple([getattr(instance, name) for name in settings])
            return [getattr(instance, name) for name in children], rest
        require_hashable(kind, static, fixed)
        return [getattr(instance, name) for name in names], (order, fixed)

    def put_together(rest: tuple[Any, ...], children: Iterable[Any]) -> Any:
        instance = object.__new__(kind)
        names, fixed = rest
        for name, child in zip(names, (*children, *fixed), strict=True):
            object.__setattr__(instance, name, child)
        return instance

    for namespaces, is_child in (((NAMESPACE, IN_ORDER), is_traced), ((OPENED,), is_traced_or_number)):
        parts = functools.partial(take_apart, is_child=is_child)
        entries = functools.partial(children_of, is_child=is_child)
        register(kind, parts, put_together, entries, "GetAttrEntry", namespaces)


def is_traced_or_number(value: Any) -> bool:
    """Tell whether a value is a Tensor that a transformation looks at, or one of Python's numbers."""
    return is_traced(value) or type(value) in (bool, int, float, complex)


def is_traced(value: Any) -> bool:
    """Tell whether a value is a Tensor that a transformation looks at."""
    return getattr(value, "_trace", None) is not None


def register_attributes(kind: type[Any], static: Collection[str] = (), namespaces: Sequence[str] = EVERYWHERE) -> None:
    """Let the attributes of instances of a class be children, in the order of their names, but for static ones.

    What a `functools.cached_property` keeps is left out: computed of the others, it would hide them from gradients.
    """
    slots, kept = slots_of(kind), cached_of(kind) - set(static)

    def attributes_of(instance: Any) -> dict[str, Any]:
        held = {name: getattr(instance, name) for name in slots if hasattr(instance, name)}
        if not kind.__dictoffset__:
            return held
        held.update(vars(instance))
        return {name: value for name, value in held.items() if name not in kept} if kept else held

    def names_of(instance: Any) -> list[str]:
        return sorted(attributes_of(instance).keys() - static)

    def take_apart(instance: Any) -> tuple[list[Any], tuple[tuple[str, ...], tuple[Any, ...]]]:
        attributes = attributes_of(instance)
        names, settings = sorted(attributes.keys() - static), sorted(attributes.keys() & static)
        if len(settings) < len(static):
            require_attributes(instance, static)
        fixed = tuple([attributes[name] for name in settings])
        require_hashable(kind, settings, fixed)
        return [attributes[name] for name in names], ((*names, *settings), fixed)

    def put_together(rest: tuple[tuple[str, ...], tuple[Any, ...]], children: Iterable[Any]) -> Any:
        instance = object.__new__(kind)
        names, fixed = rest
        for name, value in zip(names, (*children, *fixed), strict=True):
            if name in slots:
                object.__setattr__(instance, name, value)
            else:  # past a property of that name
                vars(instance)[name] = value
        return instance

    def attributes_in_memory(instance: Any) -> Attributes | None:
        names = attributes_of(instance).keys()
        if not slots <= names or any(is_computed(kind, name) for name in names - slots):
            return None
        held = len(names - slots) if kind.__dictoffset__ else ANY_NUMBER
        return Attributes(sorted(names - static), sorted(names & static), held)

    if NAMESPACE in namespaces and has_plain_attributes(kind):
        ATTRIBUTES[kind] = attributes_in_memory
    register(kind, take_apart, put_together, names_of, "GetAttrEntry", namespaces)


def has_plain_attributes(kind: type[Any]) -> bool:
    """Tell whether attributes of instances of a class are found as Python finds them where the class says nothing."""
    return class_attribute(kind, "__getattribute__") is object.__getattribute__


def is_computed(kind: type[Any], name: str) -> bool:
    """Tell whether a class has a property, or something like it, in the way of an attribute."""
    return hasattr(type(class_attribute(kind, name)), "__set__")


def slots_of(kind: type[Any]) -> frozenset[str]:
    """Return the names of the attributes that instances of a class have in `__slots__`."""
    return frozenset(
        name for base in kind.__mro__ for name, found in vars(base).items() if type(found) is types.MemberDescriptorType
    )


def cached_of(kind: type[Any]) -> frozenset[str]:
    """Return the names under which instances of a class keep what a `functools.cached_property` computed."""
    found = {name: value for base in reversed(kind.__mro__) for name, value in vars(base).items()}
    return frozenset(name for name, value in found.items() if isinstance(value, functools.cached_property))


def require_attributes(instance: Any, static: Iterable[str]) -> None:
    """Raise a UsageError unless an instance, or its class, has the attributes that are said to be static."""
    missing = [name for name in static if not hasattr(instance, name)]
    if missing:
        kind = type(instance).__name__
        needed = "an attribute of this name, or a default of the class, is needed"
        raise UsageError("tree.register", f"static={missing} for a {kind} without it", needed, "Correct it")


def require_hashable(kind: type[Any], names: Iterable[str], values: Iterable[Any]) -> None:
    """Raise a UsageError if static data may change: what was traced with it would go on to hold what it was."""
    for name, value in zip(names, values, strict=True):
        try:
            hash(value)
        except TypeError:
            given = f"{kind.__name__}.{name}, which is static, is of type {type(value).__name__}"
            needed = "what hashes and does not change is needed, such as a tuple"
            action = "Convert it, or make it a leaf: a field of a dataclass that is not static, or an item"
            raise UsageError("tree", given, needed, action) from None


def annotations_of(kind: type[Any]) -> dict[str, Any]:
    """Return the types of a dataclass's fields; none if they name what cannot be found."""
    try:
        return typing.get_type_hints(kind)
    except (NameError, AttributeError, TypeError, SyntaxError):
        return {}


def is_static(hint: Any) -> bool:
    """Tell whether values of an annotated type belong to the structure: integers, strings and the like.

    >>> is_static(int), is_static(str | None), is_static(tuple[int, ...]), is_static(float), is_static(Any)
    (True, True, True, False, False)
    """
    if typing.get_origin(hint) in (Literal, type, collections.abc.Callable):
        return True
    inside = [part for part in typing.get_args(hint) if part is not ...]
    if typing.get_origin(hint) in (typing.Union, types.UnionType, tuple, frozenset):
        return all(part is types.NoneType or is_static(part) for part in inside)
    return isinstance(hint, type) and issubclass(hint, int | str | bytes | range | type | enum.Enum | np.dtype)


def register_sequence(kind: type[Any]) -> None:
    """Let the items of a subclass of list or tuple be children, and its attributes static."""
    base = list if issubclass(kind, list) else tuple

    def put_together(state: StaticState, children: Iterable[Any]) -> Any:
        instance = base.__new__(kind, *([children] if base is tuple else []))
        if isinstance(instance, list):
            list.extend(instance, children)
        return state.given_to(instance)

    register(kind, lambda instance: (base.__iter__(instance), StaticState(instance)), put_together)


def register_mapping(kind: type[Any]) -> None:
    """Let the values of a subclass of dict be children, and its keys and attributes static."""
    base: Any = next(b for b in kind.__mro__ if b in (dict, collections.OrderedDict, collections.defaultdict))

    def take_apart(instance: Any) -> tuple[list[Any], StaticState]:
        keys = tuple(base.keys(instance))
        return [base.__getitem__(instance, key) for key in keys], StaticState(instance, keys)

    def put_together(state: StaticState, children: Iterable[Any]) -> Any:
        instance = base.__new__(kind)
        for key, child in zip(state.keys, children, strict=True):
            base.__setitem__(instance, key, child)
        return state.given_to(instance)

    register(kind, take_apart, put_together, lambda instance: list(base.keys(instance)), "MappingEntry")


class StaticState:
    """The keys and attributes of a container, which belong to the structure."""

    __slots__ = ("attributes", "items_are_attributes", "keys")

    def __init__(self, instance: Any, keys: tuple[Any, ...] = ()) -> None:
        attributes = own_attributes(instance)
        self.keys = keys
        self.items_are_attributes = attributes is instance
        self.attributes = {} if self.items_are_attributes else dict(attributes)
        if isinstance(instance, collections.defaultdict):
            self.attributes["default_factory"] = instance.default_factory
        require_hashable(type(instance), self.attributes, self.attributes.values())

    def given_to(self, instance: Any) -> Any:
        """Return an instance after giving it the attributes."""
        if self.items_are_attributes:
            instance.__dict__ = instance
        for name, value in self.attributes.items():
            object.__setattr__(instance, name, value)
        return instance

    def __eq__(self, other: object) -> bool:
        return isinstance(other, StaticState) and self.keys == other.keys and self.attributes == other.attributes

    def __hash__(self) -> int:
        return hash((self.keys, tuple(self.attributes.items())))
