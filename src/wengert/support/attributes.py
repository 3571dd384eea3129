"""Attributes of objects that nobody is asked for: `__getattr__` of some answers every name, loads a module, or raises.

Mocks, proxies, lazy modules and their like are ordinary values of a program. What the library wants to know of them is
what they hold and what their class has, not what they answer. `__class__` is an answer, too: `type` is what counts.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from functools import WRAPPER_ASSIGNMENTS, partial, update_wrapper
from inspect import Signature
from threading import local
from types import CellType, CodeType, FunctionType, MappingProxyType, MethodType
from typing import Any, TypeVar, cast
from weakref import ProxyTypes

from wengert.support.function_contents import UNBOUND, assigned_by, captured_by, content_of, reach

NOTHING = object()
Made = TypeVar("Made")


def own_attributes(value: Any) -> dict[str, Any]:
    """Return the `__dict__` of an object, class or module: that itself, of classes to be read alone.

    >>> from unittest.mock import Mock
    >>> sorted(own_attributes(Mock(x=1)))[-1], own_attributes(1)
    ('x', {})
    """
    found = attribute(value, "__dict__")
    return found if issubclass(type(found), dict | MappingProxyType) else {}


def attribute(value: Any, name: str, default: Any = None) -> Any:
    """Return an attribute that an object, class or module has, without asking its `__getattr__`.

    >>> from unittest.mock import Mock
    >>> attribute(Mock(), "dtype"), attribute(attribute, "__name__")
    (None, 'attribute')
    """
    kind = type(value)
    find: Any = type.__getattribute__ if issubclass(kind, type) else object.__getattribute__
    if kind in ProxyTypes:  # which have those of what they are for
        find = getattr
    elif issubclass(kind, local):  # which has a dictionary for each thread
        find = local.__getattribute__
    try:
        return find(value, name)
    except AttributeError:
        return default


def class_attribute(kind: type, name: str, default: Any = None) -> Any:
    """Return an attribute of a class as it stands there, or in a base, without asking its metaclass.

    >>> class_attribute(list, "__len__") is list.__len__
    True
    """
    return next((vars(base)[name] for base in kind.__mro__ if name in vars(base)), default)


def has_class_attribute(kind: type, name: str) -> bool:
    """Tell whether a class has an attribute: the special methods of its instances, for Python looks for them there.

    It is for names that classes as such have not, in `type`.

    >>> has_class_attribute(list, "__len__"), has_class_attribute(int, "__len__")
    (True, False)
    """
    if type(kind) is type:
        return hasattr(kind, name)
    return any(name in vars(base) for base in kind.__mro__)


def function_name(function: Any, field: str = "__qualname__") -> str:
    """Return the name of a function; of a callable without one how it is shown.

    >>> function_name(attribute), function_name(3)
    ('attribute', '3')
    """
    found = attribute(function, field)
    return found if type(found) is str else repr(function)


def unwrap(function: Any) -> Any:
    """Return the function inside of all decorators, as `inspect.unwrap` does."""
    seen = set()
    while (inner := attribute(function, "__wrapped__")) is not None and id(function) not in seen:
        seen.add(id(function))
        function = inner
    return function


def with_closure(
    function: FunctionType,
    cells: Sequence[CellType],
    code: CodeType | None = None,
    space: dict[str, Any] | None = None,
) -> FunctionType:
    """Return a function like another one with other closure cells, and other code or global variables if given."""
    found = FunctionType(
        code or function.__code__,
        function.__globals__ if space is None else space,
        function.__name__,
        function.__defaults__,
        tuple(cells),
    )
    found.__kwdefaults__ = function.__kwdefaults__
    found.__qualname__ = function.__qualname__
    found.__module__ = function.__module__
    found.__doc__ = function.__doc__
    found.__dict__.update(function.__dict__)
    return found


def with_own_variables(function: Made) -> Made:
    """Return a function whose variables stay what they are now, whatever the functions around it assign to them later.

    Variables that it, or a function that they lead to, assigns to stay those of the functions around it.
    """
    functions = [x for x in reach([function], functions_in) if type(x) is FunctionType]
    named = [(name, cell, f) for f in functions for name, cell in zip(f.__code__.co_freevars, closure(f), strict=True)]
    assigned = {id(cell) for name, cell, f in named if name in assigned_by(f.__code__)}
    kept = {id(cell): cell for _, cell, _ in named if id(cell) not in assigned}
    own = {key: CellType() for key in kept}
    made = {id(f): with_closure(f, [own.get(id(cell), cell) for cell in closure(f)]) for f in functions}
    for key, cell in kept.items():
        content = content_of(cell)
        if content is not UNBOUND:
            own[key].cell_contents = made.get(id(content), content)
    return cast("Made", made.get(id(function), function))


def functions_in(value: Any) -> list[Any]:
    """Return what a function, a method, a partial or a container holds: further functions may be among it."""
    if type(value) is FunctionType:
        return captured_by(value)
    if type(value) is MethodType:
        return [value.__func__, *own_attributes(value.__self__).values()]
    if isinstance(value, partial):
        return [value.func, *value.args, *value.keywords.values()]
    if isinstance(value, dict):
        return list(value.values())
    return list(value) if isinstance(value, list | tuple | set) else []


def closure(function: FunctionType) -> tuple[CellType, ...]:
    """Return the variables of a function from outside."""
    return function.__closure__ or ()


def resemble(made: Made, function: Any, updated: bool = True) -> Made:
    """Let what was made of a function have its name, module and documentation, as `functools.update_wrapper` does."""
    if type(function) is FunctionType:
        return cast("Made", update_wrapper(cast("Any", made), function, updated=("__dict__",) if updated else ()))
    for name in WRAPPER_ASSIGNMENTS:
        if (found := attribute(function, name, NOTHING)) is not NOTHING:
            setattr(made, name, found)
    if updated:
        own_attributes(made).update(own_attributes(function))
    setattr(made, "__wrapped__", function)  # noqa: B010 - made of whatever class
    return made


def signature(function: Any) -> Signature:
    """Return the signature of a function; of an object that answers every name, that of how it is called."""
    kind = type(function)
    if not issubclass(kind, type) and has_class_attribute(kind, "__getattr__"):
        called = class_attribute(kind, "__call__")
        function = MethodType(called, function) if type(called) is FunctionType else function
    return inspect.signature(function)
