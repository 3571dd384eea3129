"""Objects that answer every name, load when they are asked, or say that they are of another class."""

from __future__ import annotations

import argparse
import collections
import ctypes
import functools
import types
import weakref
from collections.abc import Callable
from typing import Any
from unittest import mock

import numpy as np
import pytest

import wengert as wg
import wengert.numpy as wnp
from tests.cases import together
from wengert.errors import DtypeError, UsageError
from wengert.support.attributes import attribute, has_class_attribute, own_attributes, resemble, signature, unwrap


def answering(answer: Callable[[Any, str], Any], **more: Any) -> Any:
    """Return an object that answers every name that it has not."""
    return type("Answering", (), {"__getattr__": answer, **more})()


def raising(_self: Any, name: str) -> Any:
    raise RuntimeError(f"cannot load {name}")


class Proxy:
    """Stand for another object, whose class it says it has."""

    def __init__(self, of: Any) -> None:
        object.__setattr__(self, "_of", of)

    def __getattr__(self, name: str) -> Any:
        return getattr(object.__getattribute__(self, "_of"), name)

    @property
    def __class__(self) -> Any:
        return type(object.__getattribute__(self, "_of"))


class Answers(type):
    def __getattr__(cls, name: str) -> Any:
        return None


class OfMeta(metaclass=Answers):
    mode = None


class Asked:
    def __getattribute__(self, name: str) -> Any:
        return Asked if name == "__class__" else None


class Record(ctypes.Structure):
    _fields_ = (("mode", ctypes.c_int), ("v", ctypes.c_double))


class Defaults(dict[str, Any]):
    def __missing__(self, key: str) -> Any:
        return None

    __getattr__ = dict.__getitem__


def lazy_module(answer: Any) -> Any:
    made = types.ModuleType("lazy_module")
    made.__getattr__ = lambda name: answer  # type: ignore[method-assign]  # as PEP 562 has it
    return made


HOLDER = types.SimpleNamespace(mode=None)
OBJECTS: dict[str, Any] = {
    "None, no __dict__": answering(lambda self, name: None, __slots__=()),
    "itself": answering(lambda self, name: self),
    "a function": answering(lambda self, name: lambda *args: 1.0),
    "3": answering(lambda self, name: 3),
    "a list": answering(lambda self, name: [1, 2]),
    "another one": answering(lambda self, name: type(self)()),
    "an error": answering(raising),
    "asked for all": Asked(),
    "proxy": Proxy(HOLDER),
    "proxy of a list": Proxy([1]),
    "proxy of a dictionary": Proxy({"a": 1}),
    "proxy of an array": Proxy(np.ones(2)),
    "proxy of a number": Proxy(1.5),
    "class": OfMeta,
    "of such a class": OfMeta(),
    "MagicMock": mock.MagicMock(),
    "Mock": mock.Mock(),
    "Mock of arrays": mock.MagicMock(spec=np.ndarray),
    "sentinel": mock.sentinel,
    "Namespace": argparse.Namespace(mode=None),
    "ctypes": Record(0, 1.5),
    "dictionary": Defaults(),
    "module of None": lazy_module(None),
    "module of 3": lazy_module(3),
    "weak proxy": weakref.proxy(Proxy),
    "defaultdict": collections.defaultdict(int),
}


def is_unset(of: Any) -> bool:
    """Tell whether a mode is None; not if there is none."""
    try:
        return of.mode is None
    except (AttributeError, RuntimeError):
        return False


@pytest.mark.long
@together("name", OBJECTS)
def test_such_objects_are_values_of_a_program_like_others(name: str) -> None:
    lazy = OBJECTS[name]
    factor = 2.0 if is_unset(lazy) else 3.0
    held = {"a": [lazy], "b": (lazy, 1.0)}

    def by_branch(x: Any, lazy: Any = lazy) -> Any:
        y = x
        if x > 0:
            y = x * 2.0 if is_unset(lazy) else x * 3.0
        return y

    def by_loop(x: Any) -> Any:
        y = x
        for _ in range(1):
            while y < 2.5:
                y = y * 2.0 if is_unset(held["a"][0]) else y * 3.0
                held["b"][0]
        return y

    for function in (by_branch, by_loop, functools.partial(by_branch, lazy=lazy)):
        for run in (wg.jit(function), wg.checkpoint(function), function):
            assert run(1.5) == 1.5 * factor
        np.testing.assert_array_equal(wg.jit(wg.vmap(function))(np.array([1.5])), [1.5 * factor])
        for grad in (wg.grad(function), wg.jit(wg.grad(function)), wg.grad(wg.jit(function))):
            assert grad(1.5) == factor
        assert wg.jvp(function, (1.5,), (1.0,)) == (1.5 * factor, factor)
    assert wg.jit(by_branch, static_argnums=1)(1.5) == 1.5 * factor


@pytest.mark.filterwarnings("ignore")  # of NumPy, about ctypes
@together("name", [name for name in OBJECTS if name not in ("an error", "asked for all", "Mock of arrays")])
def test_as_operands_they_are_refused_or_as_in_numpy(name: str) -> None:
    lazy, x = OBJECTS[name], wg.tensor([1.0, 2.0], requires_grad=True)
    for operate in (lambda: x * lazy, lambda: wg.tensor(lazy), lambda: wnp.add(x, lazy)):
        try:
            wanted = np.asarray(lazy)
        except ValueError:
            wanted = np.array(None)
        if wanted.dtype.kind == "O":
            with pytest.raises((TypeError, DtypeError)):
                operate()
    with pytest.raises((TypeError, UsageError, ValueError)):
        wg.vmap(lambda x: x, in_axes=lazy)(np.ones(2))


CALLED = {name: of for name, of in OBJECTS.items() if type(of).__name__ == "Answering"}


@together("name", [*CALLED, "Mock", "MagicMock", "proxy", "method"])
def test_functions_may_be_such_objects(name: str) -> None:
    def cube(x: Any) -> Any:
        return x * x * x

    if name in CALLED:
        kind: Any = type("Called", (type(CALLED[name]),), {"__call__": lambda self, x: cube(x)})
        function = kind()
    elif name == "method":
        function = answering(lambda self, name: None, meth=lambda self, x: cube(x)).meth
    elif name == "proxy":
        function = type("Called", (Proxy,), {"__call__": lambda self, x: cube(x)})(cube)
    else:
        function = getattr(mock, name)(side_effect=cube)
    assert wg.grad(function)(2.0) == wg.jit(wg.grad(function))(2.0) == wg.grad(wg.jit(function))(2.0) == 12.0
    assert wg.jit(function)(2.0) == wg.vjp(function, 2.0)[0] == wg.taylor(function, (2.0,), (1.0,), 1)[0] == 8.0
    assert wg.hessian(function)(2.0) == wg.hvp(function, (2.0,), (1.0,))[0] == 12.0
    assert wg.grad(wg.custom_rule(function))(2.0) == wg.grad(wg.checkpoint(function))(2.0) == 12.0
    assert wg.cond(True, function, function, 2.0) == wg.fori_loop(0, 1, lambda i, c: function(c), 2.0) == 8.0
    np.testing.assert_array_equal(wg.vmap(function)(np.array([2.0])), [8.0])
    assert "grad" in repr(wg.grad(function))
    wg.testing.check_grads(function, 2.0)
    wg.graph.trace(function)(2.0)


def test_nobody_is_asked() -> None:
    lazy = OBJECTS["an error"]
    assert attribute(lazy, "shape", 7) == 7
    assert own_attributes(lazy) == {}
    assert not has_class_attribute(type(lazy), "shape")
    assert unwrap(lazy) is lazy
    assert resemble(lambda: None, lazy).__name__ == "<lambda>"
    called = type("Called", (type(lazy),), {"__call__": lambda self, x, y=2: None})()
    assert list(signature(called).parameters) == ["x", "y"]
