"""Attributes, items and `with`: properties and methods of users' objects are converted; traced numbers choose items."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from wengert.control.ambiguous_identity import forbid_changes, holders_in
from wengert.control.reachable_state import ReachableState, is_numeric_array
from wengert.conversion.branch_statements import decide
from wengert.conversion.called_functions import convert_method, user_method
from wengert.conversion.numpy_calls import own_tensor, traced_among
from wengert.conversion.traced_numbers import has_index, raise_here
from wengert.conversion.user_operators import AUGMENTED, Left, StandIn, augment, is_plain
from wengert.core.containers.tree_leaves import flatten
from wengert.core.diagnostics.source_positions import caller, position_of
from wengert.core.graph.identity import Elements
from wengert.core.memory.left_rows import rows_in_order
from wengert.core.memory.memory_layout import is_scalar
from wengert.core.values.aval import NUMBERS, is_number, strong
from wengert.core.values.dispatch import as_index, as_tensor, weaken
from wengert.core.values.protocols import array_function
from wengert.core.values.tensor import Tensor, is_staged
from wengert.support.attributes import class_attribute, own_attributes
from wengert.traces.whole_number_bounds import not_alike
from wengert.traces.written_out import ROLLING

JOINER_TYPES = type(np.r_), type(np.c_)
MOST = 64
"""Items that are chosen one after the other."""


class IndexedItems(StandIn):
    """Stand for a list, tuple, dictionary or ndarray where an item of it is read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        items = self.of
        if isinstance(items, np.ndarray):
            entries = index if isinstance(index, tuple) else (index,)
            return part_of_array(items, index, entries) if any(map(is_staged, entries)) else items[index]
        if isinstance(items, dict):
            return entry_of(items, index) if (is_staged(index) and is_scalar(index)) else items[index]
        return item_of(items, as_index(index)) if is_staged(index) and has_index(index) else items[index]


class ConvertedItems(StandIn):
    """Stand for an object of the user's, by its `__getitem__`, where an item of it is read."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        return self.of(index)


class JoinedItems(StandIn):
    """Stand for `numpy.r_` or `numpy.c_`, which make an ndarray of whatever stands in their brackets."""

    __slots__ = ()

    def __getitem__(self, key: Any) -> Any:
        entries = key if isinstance(key, tuple) else (key,)
        parts = [part for x in entries for part in ((x.start, x.stop, x.step) if isinstance(x, slice) else (x,))]
        if (traced := traced_among(parts)) is not None:
            return array_function(traced, self.of, (Tensor,), (key,), {})
        made = self.of[key]
        return own_tensor(made) if ROLLING.making else made


def index_target(value: Any) -> Any:
    """Return what is indexed in place of a value."""
    kind = type(value)
    if kind in JOINER_TYPES:
        return JoinedItems(value)
    if kind in (list, tuple, dict, np.ndarray):
        return IndexedItems(value)
    if kind in (Tensor, str):
        return value
    method = user_method(kind, "__getitem__")
    return value if method is None else ConvertedItems(MethodType(method, value))


def part_of_array(array: np.ndarray[Any, Any], index: Any, entries: Sequence[Any]) -> Any:
    """Return a part of an ndarray that NumPy would copy; a view would see what is written to the array later.

    A loop that could be written out has a part in the place of a view, if nobody writes to either.
    """
    if array.dtype.kind not in "biufc":
        return array[index]
    found = as_tensor(array)[index]
    is_number = not found.ndim and not any(entry is Ellipsis for entry in entries)
    if is_number or any(np.ndim(x) for x in entries if isinstance(x, Tensor | np.ndarray | list)):
        return found
    if not (ROLLING.strict and ROLLING.allowed):
        return array[index]
    require_unwritten(array, found)
    return found


def require_unwritten(array: np.ndarray[Any, Any], part: Tensor) -> None:
    """Let the trace end, and the loop be written out, if an array is not what it was in the end, or a part of it."""
    now, variable = Elements(array), part._value
    before = now.copy() if id(array) not in ROLLING.steady else now

    def require_unchanged() -> None:
        if now != before:
            raise not_alike("an array that was written to")

    def require_same() -> None:
        if part._value is not variable:
            raise not_alike("a view that was written to")

    ROLLING.steady.setdefault(id(array), require_unchanged)
    ROLLING.steady[variable] = require_same


def item_of(items: Sequence[Any], index: Any) -> Any:
    """Return an item of a list or tuple, of which a number of another or none would be an error when the graph runs."""
    kinds, count = set(map(type, items)), len(items)
    if len(kinds) == 1 and kinds <= NUMBERS.keys() and (numbers := np.array(items)).dtype.kind in "biufc":
        return weaken(as_tensor(numbers)[index])
    rows: Any = rows_in_order(items) if count else None
    if rows is None and count > MOST and are_numbers_of_one_type(items):
        rows = np.stack(items)
    if rows is not None:
        found = rows[index]
        return weaken(found) if items[0].weak else found
    if not 0 < count <= MOST:
        return items[index]  # which Python refuses
    outside = np.logical_or(index < -count, index >= count)  # asked for at any rate: the items may be one object
    raise_here(outside, IndexError(f"{type(items).__name__} index out of range"))
    place = np.where(index < 0, index + count, index)
    return choose_first([place == position for position in range(count)], items)


def are_numbers_of_one_type(items: Sequence[Any]) -> bool:
    """Tell whether items are traced numbers of one dtype, of which nobody notices whether they are the same objects."""
    kinds = {(x.shape, x.dtype, x.weak) if is_staged(x) else None for x in items}
    return None not in kinds and len(kinds) == 1 and items[0].shape == ()


def entry_of(table: dict[Any, Any], key: Any) -> Any:
    """Return an entry of a dictionary; a key that is not there would be an error when the graph runs."""
    keys = [k for k in table if type(k) in NUMBERS]
    if not 0 < len(keys) <= MOST:
        return table[key]  # which Python refuses
    tests = [np.equal(key, strong(k)) for k in keys]  # in the dtypes of both: 0.1 is another number than float32's
    raise_here(np.logical_not(functools.reduce(np.logical_or, tests)), KeyError("a traced key that is not there"))
    return choose_first(tests, [table[k] for k in keys])


def choose_first(tests: Sequence[Any], items: Sequence[Any]) -> Any:
    """Return the item of the first test that holds, the last one if none does."""
    found = items[-1]
    for test, item in zip(tests[-2::-1], items[-2::-1], strict=True):
        found = choose_item(test, item, found)
    return found


def choose_item(test: Any, item: Any, other: Any) -> Any:
    """Return one of two items; containers and objects are to stay as they are, as a write would not be seen in both."""
    arrays = [x for x in (*flatten(item)[0], *flatten(other)[0]) if is_numeric_array(x)]
    found = decide(test, lambda: item, lambda: other, ReachableState((), None, arrays))
    if found is not item and found is not other:
        holders = [holder for x in (item, other, found) for holder in holders_in(x)]
        if holders:
            forbid_changes(holders, test, ("item", "one of several", position_of(*caller())))
    return found


PLAIN = frozenset((ModuleType, Tensor, np.ndarray))
"""Types of objects without properties of the user's."""
UNTOUCHED = (np.ndarray, Tensor, type, super, ModuleType)
"""Types of objects that are set as Python does."""


# Attributes that are read


def read_attribute(value: Any, name: str) -> Any:
    """Return an attribute, of the user's properties and descriptors what their functions give when converted."""
    kind = type(value)
    if kind in PLAIN:
        return getattr(value, name)
    instance, bases = value, kind.__mro__
    if kind is super and isinstance(value.__self__, value.__self_class__):
        instance, kind = value.__self__, value.__self_class__
        bases = kind.__mro__[kind.__mro__.index(value.__thisclass__) + 1 :]
    getter = getter_of(next((vars(base)[name] for base in bases if name in vars(base)), None), instance, name)
    if getter is None or type(class_attribute(kind, "__getattribute__")) is FunctionType:  # the user's
        return getattr(value, name)
    try:
        return getter(instance, kind)
    except AttributeError:
        otherwise = class_attribute(kind, "__getattr__")
        if otherwise is None or instance is not value:
            raise
        return otherwise(value, name)


def getter_of(found: Any, instance: Any, name: str) -> Callable[[Any, type], Any] | None:
    """Return what gives an attribute of an object and its class; None if that is no function of the user's."""
    kind = type(found)
    if kind is property:
        inner = convert_method(found.fget)
        return None if inner is found.fget else property(inner).__get__
    if kind is functools.cached_property:
        inner = convert_method(found.func)
        if inner is found.func:
            return None
        getter = functools.cached_property(inner)
        getter.attrname = name
        return getter.__get__
    method = user_method(kind, "__get__")
    hidden = name in own_attributes(instance) and class_attribute(kind, "__set__") is None
    return None if method is None or hidden else MethodType(method, found)


# What is set


class ChangeTarget:
    """Stand for an object of which an attribute or item is set or deleted."""

    __slots__ = ("_wengert_of",)
    _wengert_of: Any

    def __init__(self, of: Any) -> None:
        object.__setattr__(self, "_wengert_of", of)

    def __setattr__(self, name: str, new: Any) -> None:
        setter = setter_of(type(self._wengert_of), name)
        if setter is None:
            setattr(self._wengert_of, name, new)
        else:
            setter(self._wengert_of, new)

    def __delattr__(self, name: str) -> None:
        delattr(self._wengert_of, name)

    def __setitem__(self, index: Any, new: Any) -> None:
        method = user_method(type(self._wengert_of), "__setitem__")
        (method or operator.setitem)(self._wengert_of, index, new)

    def __delitem__(self, index: Any) -> None:
        method = user_method(type(self._wengert_of), "__delitem__")
        (method or operator.delitem)(self._wengert_of, index)


def change_target(value: Any) -> Any:
    """Return what stands for a value of which an attribute or item is set."""
    kind = type(value)
    return value if kind in (list, dict) or issubclass(kind, UNTOUCHED) else ChangeTarget(value)


def setter_of(kind: type, name: str) -> Callable[[Any, Any], None] | None:
    """Return what sets an attribute of an object; None if that is no function of the user's."""
    whole = user_method(kind, "__setattr__")
    if whole is not None:
        return lambda of, new: whole(of, name, new)
    if class_attribute(kind, "__setattr__") is not object.__setattr__:
        return None
    found = class_attribute(kind, name)
    if type(found) is property:
        inner = convert_method(found.fset)
        return None if inner is found.fset else inner
    method = user_method(type(found), "__set__")
    return None if method is None else MethodType(method, found)


class AugmentedTarget(ChangeTarget):
    """Stand for an object of which an attribute or item is set by an augmented assignment."""

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        return stand_in_place(read_attribute(self._wengert_of, name))

    def __getitem__(self, index: Any) -> Any:
        return stand_in_place(index_target(self._wengert_of)[index])


def augment_target(value: Any) -> Any:
    """Return what stands for a value of which an attribute or item is set by an augmented assignment."""
    kind = type(value)
    return value if issubclass(kind, UNTOUCHED) else AugmentedTarget(value)


class InPlace(StandIn):
    """Stand for an object of the user's on the left of an augmented assignment."""

    __slots__ = ()


def stand_in_place(value: Any) -> Any:
    """Return what stands on the left of an augmented assignment in place of a value."""
    if is_number(value):
        return Left(value)
    return value if is_plain(value) else InPlace(value)


for _sign, _name in AUGMENTED.items():
    setattr(InPlace, _name, lambda self, other, *, sign=_sign: augment(sign, self.of, other))


# with


class ConvertedManager(StandIn):
    """Stand for a context manager."""

    __slots__ = ()

    def __enter__(self) -> Any:
        return convert_method(class_attribute(type(self.of), "__enter__"))(self.of)

    def __exit__(self, *error: Any) -> Any:
        return convert_method(class_attribute(type(self.of), "__exit__"))(self.of, *error)


def manage(value: Any) -> Any:
    """Return what stands for a context manager in a `with` statement."""
    methods = [user_method(type(value), name) for name in ("__enter__", "__exit__")]
    return ConvertedManager(value) if any(methods) else value
