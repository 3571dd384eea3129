"""What the branches and loops of a traced function can reach, however it is held, they change as Python does."""

from __future__ import annotations

import collections
import contextlib
import functools
import importlib
import itertools
import sys
import weakref
from collections.abc import Callable, Hashable
from contextvars import ContextVar
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest

import wengert as wg
from tests.cases import together


class Counter:
    def __init__(self) -> None:
        self.total: Any = 0

    def add(self, step: Any) -> None:
        self.total = self.total + step


Add = Callable[[Any], Any]
Made = tuple[Add, Callable[[], Any]]
VARIABLE: ContextVar[Any] = ContextVar("VARIABLE", default=0)


def held(hold: Callable[[Counter], Any], counters: Callable[[Any], Any]) -> Callable[[], Made]:
    """Return what makes a counter that only something else holds: how to add to it, and how to read it."""

    def made() -> Made:
        counter = Counter()
        holder = hold(counter)

        def add(step: Any) -> None:
            for x in counters(holder):
                x.add(step)

        return add, lambda: counter.total

    return made


class Keyed(dict[Hashable, Any]):
    def __iter__(self) -> Any:
        raise NotImplementedError


class Called:
    def __init__(self, add: Add) -> None:
        self.add = add


def context_variable() -> Made:
    VARIABLE.set(0)
    return lambda step: VARIABLE.set(VARIABLE.get() + step), VARIABLE.get


def bound_method(attribute: str, make: Callable[[], Any], read: Callable[[Any], Any]) -> Callable[[], Made]:
    def made() -> Made:
        value = make()
        bound = getattr(value, attribute)
        return bound, lambda: read(value)

    return made


def attribute_setter() -> Made:
    counter = Counter()
    set_attribute = counter.__setattr__
    return lambda step: set_attribute("total", step), lambda: counter.total


def own_attribute(make: Callable[[], Any]) -> Callable[[], Made]:
    """Return what makes something of Python's that keeps a number as an attribute."""

    def made() -> Made:
        value = make()
        value.total = 0

        def add(step: Any) -> None:
            value.total += step

        return add, lambda: value.total

    return made


def factory() -> Made:
    counter = Counter()
    found: Any = collections.defaultdict(lambda: counter)
    return lambda step: found["a"].add(step), lambda: counter.total


def dispatched() -> Made:
    counter = Counter()

    @functools.singledispatch
    def add(step: Any) -> None:
        counter.add(step)

    @add.register
    def _(step: int) -> None:
        counter.add(2 * step)

    return add, lambda: counter.total


def managed() -> Made:
    counter = Counter()

    @contextlib.contextmanager
    def adding(step: Any) -> Any:
        counter.add(step)
        yield

    def add(step: Any) -> None:
        with adding(step):
            pass

    return add, lambda: counter.total


def special_method() -> Made:
    counter = Counter()

    class Adding:
        def __call__(self, step: Any) -> None:
            counter.add(step)

    return Adding(), lambda: counter.total


def metaclass() -> Made:
    counter = Counter()

    class Meta(type):
        def __call__(cls, step: Any) -> Any:
            counter.add(step)
            return super().__call__()

    class Made(metaclass=Meta):
        pass

    return Made, lambda: counter.total


def module_of_package() -> Made:
    package.part.counter = Counter()
    return lambda step: package.part.counter.add(step), lambda: package.part.counter.total


def imported() -> Made:
    package.part.counter = Counter()
    return lambda step: importlib.import_module("a_package.part").counter.add(step), lambda: package.part.counter.total


def named_attribute() -> Made:
    package.part.counter = Counter()
    return lambda step: getattr(package.part, "counter").add(step), lambda: package.part.counter.total  # noqa: B009


package: Any = ModuleType("a_package")
package.part = ModuleType("a_package.part")


@pytest.fixture(autouse=True)
def _loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (package, package.part):
        monkeypatch.setitem(sys.modules, module.__name__, module)


WAYS: dict[str, Callable[[], Made]] = {
    "set": held(lambda x: {x}, iter),
    "keys": held(lambda x: {x: 1}, iter),
    "keys of a subclass": held(lambda x: Keyed({x: 1}), lambda d: d.keys()),
    "tuple as a key": held(lambda x: {(1, x): 1}, lambda d: [key[1] for key in d]),
    "view of keys": held(lambda x: {x: 1}.keys(), iter),
    "view of values": held(lambda x: {1: x}.values(), iter),
    "reference": held(weakref.ref, lambda r: [r()]),
    "proxy": held(weakref.proxy, lambda p: [p]),
    "weak set": held(lambda x: weakref.WeakSet([x]), iter),
    "weak keys": held(lambda x: weakref.WeakKeyDictionary({x: 1}), iter),
    "weak values": held(lambda x: weakref.WeakValueDictionary({1: x}), lambda d: d.values()),
    "error": held(ValueError, lambda e: e.args),
    "repeated": held(itertools.repeat, lambda i: [next(i)]),
    "weak method": held(lambda x: weakref.WeakMethod(x.add), lambda m: [Called(m())]),
    "append": bound_method("append", list, sum),
    "appendleft": bound_method("appendleft", collections.deque, sum),
    "attribute": attribute_setter,
    "attribute of an error": own_attribute(ValueError),
    "attribute of a partial": own_attribute(lambda: functools.partial(abs)),
    "attribute of a cached function": own_attribute(lambda: functools.lru_cache(lambda x: x)),
    "attribute of a stack": own_attribute(contextlib.ExitStack),
    "context variable": context_variable,
    "default factory": factory,
    "singledispatch": dispatched,
    "contextmanager": managed,
    "special method": special_method,
    "metaclass": metaclass,
    "module of a package": module_of_package,
    "named attribute": named_attribute,
    "imported": imported,
}


@together("made", WAYS.values())
def test_branches_change_what_they_reach_once(made: Callable[[], Made]) -> None:
    def f(x: Any) -> Any:
        add, total = made()
        if x > 0.5:
            add(1)
        else:
            add(10)
        return x * total()

    jitted = wg.jit(f)
    for x in (0.7, 0.3):
        assert jitted(x) == f(x)


@together("way", [x for x in WAYS if not x.startswith("append") and x != "singledispatch"])
def test_loops_hand_on_what_they_reach(way: str) -> None:
    def f(x: Any) -> Any:
        add, total = WAYS[way]()
        add(0.0 * x)
        y = x
        while y < 10.0:
            y = y * 2
            add(y)
        return x * total()

    np.testing.assert_allclose(wg.jit(wg.grad(f))(0.7), wg.grad(f)(0.7), rtol=1e-14)


def test_callbacks_that_one_branch_enters_are_refused() -> None:
    def f(x: Any) -> Any:
        with contextlib.ExitStack() as stack:
            if x > 0:
                stack.callback(print)
            return x

    with pytest.raises(wg.errors.GraphError, match=r"stack\._exit_callbacks is a deque of 1 items"):
        wg.jit(f)(1.0)


COUNT = 0.0
SPACE = globals()


def counted_by_key(x: Any) -> Any:
    key = "".join(["CO", "UNT"])
    if x > 1:
        SPACE[key] = SPACE[key] + x
    return x + SPACE[key]


@pytest.mark.parametrize("x", [0.5, 2.0])
def test_the_globals_may_be_a_dictionary_under_a_name(x: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(SPACE, "COUNT", 0.0)
    assert wg.jit(counted_by_key)(x) == (x if x < 1 else 2 * x)


def scaled(x: Any) -> Any:
    return x * SCALE  # noqa: F821 - it is in the namespace that the function is given


def test_a_function_may_have_for_its_globals_a_dictionary_that_the_program_keeps() -> None:
    space: dict[str, Any] = {"SCALE": 3.0}
    space["scaled"] = FunctionType(scaled.__code__, space)

    def calls(x: Any) -> Any:
        return space["scaled"](x) if x > 0 else x

    assert (wg.jit(calls)(2.0), wg.jit(wg.grad(calls))(2.0), wg.jit(calls)(-2.0)) == (6.0, 3.0, -2.0)
