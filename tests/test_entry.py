"""What Python calls where there is native code: natively and through ctypes, on all that can be given and returned."""

from __future__ import annotations

import copy
import ctypes
import functools
import gc
import inspect
import os
import pickle
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
import pytest

import wengert as wg
from tests.cases import together
from wengert.compile.programs import Processor
from wengert.kernel.schedule import apply_schedule, schedule_of
from wengert.lowering.partition import partition_graph
from wengert.native.availability import UnavailableError
from wengert.native.builder import Builder, program
from wengert.native.engine import emit_object, host, link_object
from wengert.native.entries import entry as entries
from wengert.native.entries import native_entry
from wengert.native.entries.callee import Callee, room
from wengert.native.entries.entry import PythonEntry, PythonVariant
from wengert.native.entries.kinds import (
    AnyKind,
    ArrayKind,
    ContainerKind,
    CopyKind,
    EqualKind,
    Kind,
    NumberKind,
    SameKind,
    constant_kind,
    kind_of,
    leaves,
)
from wengert.native.entries.native_entry import NativeEntry, NativeVariant
from wengert.native.entries.tables import KERNEL, MANY_VARIANTS
from wengert.native.functions import NativeFunction, external, native
from wengert.native.loader import kept_code, load_code
from wengert.native.structs import F64, I8, I64, VOID, Pointer
from wengert.native.threads.team import team_of
from wengert.native.values import Value
from wengert.passes.pipeline import flatten_calls
from wengert.support.machine import MACHINE

PYTHON = "python"
REAL = np.dtype(float)
TEN = ArrayKind(REAL, (10,))


def is_native() -> bool:
    try:
        native_entry.probe()
    except UnavailableError:
        return False
    return True


def of_kernel(cls: Any, arguments: Any, result: Kind, address: int, names: Any = (), **options: Any) -> Any:
    """Return a variant of a class for the kernel at an address."""
    return cls(arguments, result, Callee(address, **options), names)


pytestmark = pytest.mark.skipif(not is_native(), reason="Python does all here")
WAY = NativeEntry, functools.partial(of_kernel, NativeVariant)


@pytest.fixture
def way() -> tuple[Any, Any]:
    return WAY


def kernel(write: Callable[[Builder, Value, Value], None], name: str = "kernel") -> int:
    """Return the address of a kernel written by a function of the builder, the addresses and the arena."""

    def body(b: Builder, data: Value, arena: Value, team: Value) -> None:
        write(b, data, arena)

    return kept_code(program(NativeFunction(name, KERNEL, body))).addresses[name]


def copying(sizes: list[int]) -> int:
    """Return a kernel that copies so many bytes of each input to the output of its number."""

    def write(b: Builder, data: Value, arena: Value) -> None:
        for number, size in enumerate(sizes):
            source, target = (data.at(place).load().to(I8) for place in (number, number + len(sizes)))
            with b.loop(size) as each:
                target.at(each.index).store(source.at(each.index).load())

    return kernel(write)


def size_of(kind: ArrayKind | NumberKind) -> int:
    if isinstance(kind, NumberKind):
        return np.dtype(kind.type).itemsize
    return int(np.prod(kind.shape)) * kind.dtype.itemsize


def made(way: tuple[Any, Any], *variants: Any) -> Any:
    """Return an entry that says what it was given where no variant suits."""

    class Told(way[0]):
        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            return PYTHON, args, kwargs

    found = Told()
    for variant in variants:
        found.add(variant)
    return found


def echo(way: tuple[Any, Any], *kinds: Kind, names: tuple[str, ...] = (), **options: Any) -> Any:
    """Return a variant whose result is a tuple of its arguments."""
    sizes = [size_of(leaf) for leaf in leaves(kinds)]
    return way[1](kinds, ContainerKind(tuple, kinds), copying(sizes), names=names, **options)


def same(x: Any, y: Any) -> bool:
    """Whether two values are the same in types, order and bits."""
    if type(x) is not type(y):
        return False
    if isinstance(x, np.ndarray):
        return x.dtype is y.dtype and x.shape == y.shape and x.tobytes("A") == y.tobytes("A")
    if isinstance(x, dict):
        return list(x) == list(y) and all(same(x[name], y[name]) for name in x)
    if isinstance(x, tuple | list):
        return len(x) == len(y) and all(map(same, x, y))
    if type(x).__module__.startswith("tests."):
        names = getattr(x, "__slots__", None) or vars(x)
        return all(same(getattr(x, name), getattr(y, name)) for name in names)
    return repr(x) == repr(y)


# -------------------------------------------------------------------------------------------------- arguments, results


class Array(np.ndarray[Any, Any]):
    pass


class Whole(int):
    pass


class Named(NamedTuple):
    w: Any
    b: Any = 1.0


class Pair:
    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b

    def __eq__(self, other: object) -> bool:
        raise AssertionError("it is not for comparing")

    __hash__ = None


class Slotted:
    __slots__ = ("b", "w")

    def __init__(self, w: Any, b: Any) -> None:
        self.w, self.b = w, b


def changed(thing: Any, **attributes: Any) -> Any:
    """Return an object after giving it attributes, or taking those away that are None."""
    for name, value in attributes.items():
        delattr(thing, name) if value is None else setattr(thing, name, value)
    return thing


numbers = np.arange(10.0)
grid = np.arange(12.0).reshape(3, 4)
unaligned = np.zeros(81, np.uint8)[1:].view(float)
unaligned[:] = numbers

CASES: dict[str, tuple[Kind, list[Any], list[Any]]] = {
    "array": (
        TEN,
        [numbers, numbers[::-1].copy(), np.zeros(20)[5:15]],
        [
            *(numbers[:9], numbers[::-1], np.zeros(20)[::2], numbers.astype(np.float32), numbers.astype(">f8"), 1.0),
            *(unaligned, numbers.view(Array), list(numbers), None, numbers.reshape(10, 1), np.float64(1.0)),
        ],
    ),
    "matrix": (ArrayKind(REAL, (3, 4)), [grid, grid + 1], [grid.T, grid.T.copy(), np.asfortranarray(grid), grid[:2]]),
    "matrix in columns": (
        ArrayKind(REAL, (3, 4), (8, 24)),
        [np.asfortranarray(grid), (grid.T + 1).copy().T],
        [grid, grid.T, np.zeros((3, 8))[:, ::2]],
    ),
    "short axes": (ArrayKind(REAL, (1, 3), (8, 8)), [np.zeros((3, 1)).T, np.zeros((1, 3))], [np.zeros((1, 6))[:, ::2]]),
    "array of rank 0": (ArrayKind(REAL, ()), [np.array(2.5)], [2.5, np.float64(2.5), np.array([2.5])]),
    "empty array": (ArrayKind(REAL, (0, 3)), [np.zeros((0, 3))], [np.zeros((3, 0)), np.zeros((0, 4))]),
    "booleans": (ArrayKind(np.dtype(bool), (2,)), [np.array([True, False])], [np.zeros(2, np.int8)]),
    "complex array": (ArrayKind(np.dtype(complex), (2,)), [np.array([1j, 2.0])], [np.zeros(2), np.zeros(2, "c8")]),
    "float": (
        NumberKind(float),
        [2.5, -0.0, float("nan"), 1e308],
        [1, True, np.float64(2.5), 1j, "1.0", np.array(1.0)],
    ),
    "int": (NumberKind(int), [0, -1, 2**63 - 1, -(2**63), 12345], [2**63, -(2**63) - 1, 2**200, True, 1.0, Whole(3)]),
    "bool": (NumberKind(bool), [True, False], [1, 0, np.True_, None]),
    "complex": (NumberKind(complex), [1 + 2j, complex("nan")], [1.0, np.complex128(1)]),
    "scalar": (NumberKind(np.float64), [np.float64(2.5)], [2.5, np.float32(2.5), np.array(2.5)]),
    "single scalar": (NumberKind(np.float32), [np.float32(0.1)], [0.1, np.float64(0.1)]),
    "boolean scalar": (NumberKind(np.bool_), [np.True_, np.False_], [True, 1]),
    "integer scalar": (NumberKind(np.int64), [np.int64(-7)], [-7, np.int32(-7)]),
    "small scalar": (NumberKind(np.uint8), [np.uint8(255)], [255]),
    "complex scalar": (NumberKind(np.complex64), [np.complex64(1 + 2j)], [1 + 2j]),
    "nothing": (SameKind(None), [None], [0, numbers, ()]),
    "one string": (SameKind("relu"), ["relu", "".join(["re", "lu"])], ["tanh", None, "reluu"]),
    "one int": (SameKind(12345), [12345, int("12345")], [12346, 12345.0, True, 2**70]),
    "one huge int": (SameKind(2**70), [2**70, 2 ** int("70")], [2**70 + 1, 0]),
    "one float": (SameKind(-0.0), [-0.0, float("-0.0")], [0.0, 1.0, 0, float("nan")]),
    "not a number": (SameKind(float("nan")), [float("nan")], [0.0]),
    "true": (SameKind(True), [True], [1, False, np.True_]),
    "tuple": (
        ContainerKind(tuple, (TEN, NumberKind(float))),
        [(numbers, 2.5)],
        [[numbers, 2.5], (numbers,), (2.5, 2.5)],
    ),
    "list": (
        ContainerKind(list, (TEN, TEN)),
        [[numbers, numbers]],
        [(numbers, numbers), [numbers], [numbers, 1.0], []],
    ),
    "dictionary": (
        ContainerKind(dict, (TEN, NumberKind(int)), ("w", "b")),
        [{"w": numbers, "b": 3}],
        [
            *({"b": 3, "w": numbers}, {"w": numbers}, {"w": numbers, "b": 3, "c": 4}, {"w": numbers, "c": 3}, {}),
            *({"w": 3, "b": numbers}, {1: numbers, 2: 3}),
        ],
    ),
    "other keys": (
        ContainerKind(dict, (TEN, NumberKind(int)), (0, "".join(["a key ", "that was made"]))),
        [{0: numbers, "a key that was made": 3}],
        [
            {0: numbers, "another": 3},
            {False: numbers, "a key that was made": 3},
            {1: numbers, "a key that was made": 3},
        ],
    ),
    "named tuple": (
        ContainerKind(Named, (TEN, NumberKind(float))),
        [Named(numbers, 2.5), Named(numbers)],
        [(numbers, 2.5), Named(2.5, 2.5), Named(numbers, 2)],
    ),
    "object": (
        ContainerKind(Pair, (TEN, NumberKind(float)), ("w", "b")),
        [Pair(numbers, 2.5), changed(Pair(0, 0), b=2.5, w=numbers), changed(Pair(numbers, 1.0), more=3)],
        [Named(numbers, 2.5), Pair(2.5, numbers), Pair(numbers, 2), changed(Pair(numbers, 1.0), b=None), Pair],
    ),
    "whole object": (
        ContainerKind(Pair, (TEN, NumberKind(float)), ("w", "b"), 2),
        [Pair(numbers, 2.5)],
        [changed(Pair(numbers, 1.0), more=3), changed(Pair(numbers, 1.0), b=None)],
    ),
    "object with slots": (
        ContainerKind(Slotted, (TEN, ContainerKind(list, (TEN, NumberKind(float)))), ("w", "b")),
        [Slotted(numbers, [numbers, 2.5])],
        [Slotted(numbers, [numbers]), Slotted(numbers, [numbers, 2]), changed(Slotted(numbers, 1.0), b=None)],
    ),
    "empty containers": (
        ContainerKind(tuple, (ContainerKind(list, ()), ContainerKind(dict, ()), ContainerKind(tuple, ()))),
        [([], {}, ())],
        [([], {}), ([1], {}, ()), ([], {1: 1}, ())],
    ),
    "containers in containers": (
        ContainerKind(
            list, (ContainerKind(dict, (ContainerKind(tuple, (TEN, SameKind(None))),), ("a",)), NumberKind(int))
        ),
        [[{"a": (numbers, None)}, 5]],
        [[{"a": (numbers, 1)}, 5], [{"a": [numbers, None]}, 5], [{"b": (numbers, None)}, 5]],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_arguments_that_suit_come_back_and_others_go_to_python(case: str, way: tuple[Any, Any]) -> None:
    kind, suiting, others = CASES[case]
    function = made(way, echo(way, kind))
    for value in suiting:
        result = function(value)
        assert same(result, (value,)), result
        if isinstance(value, np.ndarray):
            assert not np.may_share_memory(result[0], value)
            assert result[0].flags.owndata
            assert result[0].flags.writeable
    for value in others:
        text, args, kwargs = function(value)
        assert (text, len(args), kwargs) == ("python", 1, {})
        assert args[0] is value
    for arguments in ((), (suiting[0], suiting[0])):
        assert function(*arguments)[0] == "python"
    assert function(x=suiting[0])[0] == "python"


def test_arrays_are_compared_with_known_ones(way: tuple[Any, Any]) -> None:
    known = np.arange(3)
    function = made(way, way[1]((EqualKind(known), TEN), TEN, copying([80])))
    for suiting in (known, np.arange(3), np.arange(6)[:3], pickle.loads(pickle.dumps(known))):
        assert same(function(suiting, numbers), numbers)
    for other in (np.array([0, 1, 3]), np.arange(4), np.arange(3.0), np.repeat(known, 2)[::2], known[None], [0]):
        assert function(other, numbers)[0] == PYTHON
    known[0] = 5  # which nobody who promises that it cannot change would do
    assert function(np.arange(3), numbers)[0] == PYTHON


def test_several_arguments_are_told_apart(way: tuple[Any, Any]) -> None:
    kinds = [kind for kind, _, _ in CASES.values()]
    values = [suiting[0] for _, suiting, _ in CASES.values()]
    function = made(way, echo(way, *kinds))
    assert same(function(*values), tuple(values))
    for place in range(len(values)):
        assert function(*values[:place], object(), *values[place + 1 :])[0] == "python"


NO_KIND = {
    "an array of another byte order": numbers.astype(">f8"),
    "an array of objects": np.array([None]),
    "an array of dates": np.zeros(1, "M8[s]"),
    "a long double": np.zeros(1, np.longdouble),
    "an array of a subclass": numbers.view(Array),
    "an array between numbers": unaligned,
    "a long int": 2**63,
    "an int of a subclass": Whole(3),
    "text": "relu",
    "a set": {1.0},
    "a tuple with text": (1.0, ("relu",)),
    "a dictionary whose keys Python compares": {Fraction(1): 1.0},
    "an object": Pair(1.0, 2.0),
}


@together("case", NO_KIND)
def test_what_native_code_cannot_look_at_has_no_kind(case: str) -> None:
    assert kind_of(NO_KIND[case]) is None


def test_values_are_of_their_kinds(way: tuple[Any, Any]) -> None:
    for name, (kind, suiting, _) in CASES.items():
        for value in suiting:
            found = kind_of(value)
            if found is not None and name not in ("short axes", "one int", "one float", "not a number", "true"):
                assert repr(found) == repr(kind)
                assert same(made(way, echo(way, found))(value), (value,))
    values = [value for _, suiting, _ in CASES.values() for value in suiting if kind_of(value) is not None]
    assert len(values) > 20
    assert repr(kind_of((values[0], [None]))) == repr(
        ContainerKind(tuple, (TEN, ContainerKind(list, (SameKind(None),))))
    )


def test_dtypes_that_say_the_same_are_the_same(way: tuple[Any, Any]) -> None:
    function = made(way, echo(way, TEN))
    unpickled = pickle.loads(pickle.dumps(numbers))
    assert unpickled.dtype is not REAL
    for array in (unpickled, unpickled.astype(np.dtype(float, metadata={"unit": "m"}))):
        assert same(function(array), (numbers,))
        assert repr(kind_of(array)) == repr(TEN)
    integers = ArrayKind(np.dtype(np.int64), (1,))
    long = [
        np.dtype(char) for char in "lq" if np.dtype(char).itemsize == 8 and np.dtype(char).num != integers.dtype.num
    ]
    for dtype in (">f8", "M8[s]", "S8", "V8", np.uint64, *long):
        for kind in (integers, ArrayKind(REAL, (1,))):
            assert made(way, echo(way, kind))(np.zeros(1, dtype))[0] == "python"


def test_arguments_by_name(way: tuple[Any, Any]) -> None:
    function = made(way, echo(way, NumberKind(int), TEN, NumberKind(float), names=("x", "rate")))
    assert same(function(1, x=numbers, rate=0.5), (1, numbers, 0.5))
    for args, kwargs in (
        ((1,), {"rate": 0.5, "x": numbers}),  # the order counts where containers are taken apart in order
        ((1,), {"x": numbers, "rates": 0.5}),
        ((1,), {"x": numbers}),
        ((1, numbers), {"rate": 0.5}),
        ((1, numbers, 0.5), {}),
        ((), {"x": numbers, "rate": 0.5}),
        ((1.0,), {"x": numbers, "rate": 0.5}),
    ):
        text, given, named = function(*args, **kwargs)
        assert (text, len(given), list(named)) == ("python", len(args), list(kwargs))
    named = {"x": numbers, "rate": 0.5}
    assert same(function(1, **named), (1, numbers, 0.5))


def test_no_arguments_and_no_results(way: tuple[Any, Any]) -> None:
    function = made(way, echo(way))
    assert function() == ()
    assert made(way, way[1]((), SameKind(None), copying([])))() is None


def test_results_that_are_known_arrays_are_copies(way: tuple[Any, Any]) -> None:
    known = np.zeros((3, 0), np.float32)
    known.flags.writeable = False
    function = made(way, way[1]((), ContainerKind(tuple, (CopyKind(known),)), copying([])))
    (one,), (other,) = function(), function()
    assert one is not other
    assert (one.shape, one.dtype, one.flags.writeable, one.flags.owndata) == ((3, 0), known.dtype, True, True)


def test_copies_are_in_c_order(way: tuple[Any, Any]) -> None:
    parts = grid.T, grid[:, 1], grid[::-1, ::2], np.broadcast_to(grid[0], (3, 4))
    for x in parts:
        kind = ArrayKind(REAL, x.shape, x.strides, is_copied=True)
        result = ContainerKind(tuple, (ArrayKind(REAL, x.shape), TEN))
        for kinds, arguments in (((kind, TEN), (x, numbers)), ((ContainerKind(list, (kind,)), TEN), ([x], numbers))):
            function = made(way, way[1](kinds, result, copying([x.nbytes, 80]), releases=True))
            for _ in range(3):
                assert same(function(*arguments), (np.array(x, order="C"), numbers))
            assert function(np.array(x, order="C"), numbers)[0] == PYTHON


def test_an_argument_that_the_caller_knows_is_not_looked_at(way: tuple[Any, Any]) -> None:
    function = made(way, way[1]((AnyKind(Whole), TEN), TEN, copying([80])))
    assert same(function(Whole(1), numbers), numbers)
    assert same(function(Whole(2), numbers), numbers)
    assert function(1, numbers)[0] == PYTHON


def test_constants_have_kinds_if_native_code_can_compare_them(way: tuple[Any, Any]) -> None:
    thing = object()
    for values, others in (
        ((3, 3), (4, True, 3.0)),
        ((-0.0, -0.0), (0.0, 0)),
        ((("a", (thing, None)), ("a", (thing, None))), (("a", (object(), None)), ("a", thing))),
    ):
        kind = constant_kind(values[0])
        assert kind is not None
        function = made(way, way[1]((kind,), NumberKind(int), kernel(lambda b, data, arena: None)))
        assert type(function(values[1])) is int
        assert [function(x)[0] for x in others] == [PYTHON] * len(others)
    structured = np.dtype([("x", float)])  # whose names can be changed
    for value in ([1], {}, structured, np.float64(1.0), 1j, (1, [2]), Fraction(1)):
        assert constant_kind(value) is None


def test_too_much_is_refused(way: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="65530 inputs and 10 outputs; 65536 together are possible"):
        way[1]([NumberKind(float)] * 65530, ContainerKind(list, (NumberKind(float),) * 10), 0)
    with pytest.raises(ValueError, match="longdouble is no type of numbers"):
        way[1]([NumberKind(np.longdouble)], SameKind(None), 0)
    for count in (128, 129, 1000):
        values = [float(i) for i in range(count)]
        function = made(way, echo(way, *[NumberKind(float)] * count), sized(way, 2))
        assert function(*values) == tuple(values)
        assert function(*values[:-1], 1)[0] == PYTHON
        assert same(function(np.ones(2)), (np.ones(2),))


# -------------------------------------------------------------------------------------------------- variants


def sized(way: tuple[Any, Any], size: int, **options: Any) -> Any:
    return echo(way, ArrayKind(REAL, (size,)), **options)


def test_the_variant_used_last_is_tried_first(way: tuple[Any, Any]) -> None:
    variants = [sized(way, size) for size in range(5)]
    function = made(way, *variants)
    assert function.variants() == variants[::-1]
    for size in (2, 2, 0, 4, 1, 4):
        assert function(np.ones(size))[0].shape == (size,)
    assert function.variants() == [variants[size] for size in (4, 1, 0, 2, 3)]
    function.forget()
    assert function.variants() == []
    assert function(np.ones(2))[0] == "python"
    function.forget()
    function.add(sized(way, 2))
    assert function(np.ones(2))[0].shape == (2,)


def test_a_variant_that_was_not_used_for_long_is_forgotten(way: tuple[Any, Any]) -> None:
    function = made(way, *(sized(way, size) for size in range(MANY_VARIANTS)))
    assert function(np.ones(0))[0].shape == (0,)
    function.add(sized(way, 1000))
    function.add(sized(way, 1001))
    assert len(function.variants()) == MANY_VARIANTS
    assert [function(np.ones(size))[0] is not None for size in (0, 1000, 1001)] == [True] * 3
    assert [type(function(np.ones(size))[0]) is str for size in (1, 2, 3)] == [True, True, False]


def test_arenas_begin_with_their_constants_in_whole_lines(way: tuple[Any, Any]) -> None:
    def write(b: Builder, data: Value, arena: Value) -> None:
        x, y, constants = data.at(0).load().to(F64), data.at(1).load().to(F64), arena.to(F64)
        y.store(x.load() * constants.load() + constants.at(1).load())

    contents = [(0, np.array([3.0, 4.0]).tobytes())]
    variant = way[1]([NumberKind(float)], NumberKind(float), kernel(write), size=16, contents=contents)
    assert made(way, variant)(2.0) == 10.0
    for size in (0, 1, 128, 1000):
        memory = room(size)
        assert memory.ctypes.data % 128 == 0
        assert memory.nbytes % 128 == 0
        assert memory.nbytes >= max(size, 1)


@pytest.mark.parametrize("size", [MACHINE.kept_arena, MACHINE.kept_arena + 128])
def test_large_arenas_are_of_one_call(size: int, way: tuple[Any, Any]) -> None:
    def write(b: Builder, data: Value, arena: Value) -> None:
        x, y, constants = data.at(0).load().to(F64), data.at(1).load().to(F64), arena.to(F64)
        y.store(x.load() * constants.at(1).load() + constants.at(20_000).load())

    contents = [(160_000, np.array([4.0]).tobytes()), (0, np.array([0.0, 3.0]).tobytes())]
    callee = Callee(kernel(write), size=size, contents=contents)
    assert (callee.arena is None) == (size > MACHINE.kept_arena)
    assert sum(memory.nbytes for _, _, memory in callee.pieces()) == (size if size <= MACHINE.kept_arena else 24)
    function = made(way, way[1].args[0]([NumberKind(float)], NumberKind(float), callee))
    assert [function(x) for x in (2.0, 3.0)] == [10.0, 13.0]
    given = np.array(2.0), np.zeros(()), np.zeros((), bool)
    callee.call([x.ctypes.data for x in given])
    assert given[1] == 10.0


def test_a_kernel_learns_where_the_team_is(way: tuple[Any, Any]) -> None:
    def body(b: Builder, data: Value, arena: Value, team: Value) -> None:
        with b.when(team.equals(None)) as otherwise:
            data.at(0).load().to(I64).store(-1)
        with otherwise:
            data.at(0).load().to(I64).store(team.to(I64).load())

    address = kept_code(program(NativeFunction("told", KERNEL, body))).addresses["told"]
    memory = ctypes.c_int64(77)
    place = ctypes.c_void_p(ctypes.addressof(memory))
    assert made(way, way[1]((), NumberKind(int), address))() == -1
    function = made(way, way[1]((), NumberKind(int), address, team=place))
    assert function() == 77
    place.value = None
    assert function() == -1


def compiled(way: tuple[Any, Any], fun: Callable[..., Any], *arrays: Any, team: Any = None) -> Any:
    """Return a function of arrays as an entry: its graph as one program of kernels."""
    (part,) = partition_graph(flatten_calls(wg.graph.trace(fun)(*arrays))).parts
    assert part.program is not None
    callee = Processor(team=team).compile_program(apply_schedule(part.program, schedule_of(part.program))).callee
    results = [ArrayKind(v.dtype, v.shape) if v.shape else NumberKind(v.dtype.type) for v in part.graph.outputs]
    kinds = [ArrayKind(x.dtype, x.shape) for x in arrays]
    return made(way, way[1].args[0](kinds, ContainerKind(tuple, tuple(results)), callee))


def test_a_graph_is_called(way: tuple[Any, Any]) -> None:
    def rosenbrock(x: Any) -> Any:
        return wg.numpy.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)

    function = wg.value_and_grad(rosenbrock)
    for found, expected in zip(compiled(way, function, numbers)(numbers), function(numbers), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_a_graph_has_the_same_bits_with_every_number_of_threads(way: tuple[Any, Any]) -> None:
    def likelihood(x: Any, y: Any) -> Any:
        return wg.numpy.sum(wg.numpy.log(x) + x * y)

    rng, place = np.random.default_rng(0), ctypes.c_void_p()
    x, y = rng.random(100_000) + 0.5, rng.random(100_000)
    function = compiled(way, wg.value_and_grad(likelihood), x, y, team=place)
    alone = function(x, y)
    place.value = team_of(2).address
    for _ in range(5):
        assert same(function(x, y), alone)
    np.testing.assert_allclose(alone[0], np.sum(np.log(x) + x * y), rtol=1e-12)
    np.testing.assert_allclose(alone[1], 1.0 / x + y, rtol=1e-12)


# -------------------------------------------------------------------------------------------------- what is an object


def test_an_entry_is_like_a_function(way: tuple[Any, Any]) -> None:
    def scale(x: Any, by: float = 2.0) -> Any:
        """Scale it."""

    class Jitted(way[0]):
        def __init__(self, fun: Callable[..., Any]) -> None:
            functools.update_wrapper(self, fun)
            self.trace_count = 0

        def __call__(self, *args: Any, **kwargs: Any) -> Any:
            self.trace_count += 1
            return args

        def __repr__(self) -> str:
            return f"<jitted {self.__name__}>"

    function = Jitted(scale)
    assert function(1) == (1,)  # no variant yet: nothing native is needed
    function.add(sized(way, 3))
    assert function(np.ones(3))[0].shape == (3,)
    assert (function.trace_count, function(2), function.trace_count) == (1, (2,), 2)
    assert (repr(function), function.__doc__, function.__wrapped__) == ("<jitted scale>", "Scale it.", scale)
    assert str(inspect.signature(function)).startswith("(x: 'Any', by: 'float' = 2.0)")
    assert callable(function)
    assert list(map(function, [1, 2])) == [(1,), (2,)]
    assert copy.copy(function) is copy.deepcopy(function) is function
    with pytest.raises(AttributeError):
        _ = function.nothing


def test_methods_get_their_instance_first(way: tuple[Any, Any]) -> None:
    class Model:
        step = made(way, echo(way, SameKind(None), TEN))

    model = Model()
    assert Model.step.__class__.__name__ == "Told"
    assert model.step(numbers) == ("python", (model, numbers), {})
    assert same(Model.step(None, numbers), (None, numbers))
    assert model.step.__self__ is model


class Simple(WAY[0]):
    def __init__(self) -> None:
        self.rate = 0.5

    def __call__(self, *args: Any) -> Any:
        return args


def test_a_pickled_entry_has_no_variants() -> None:
    function = Simple()
    function.add(sized(WAY, 3))
    found = pickle.loads(pickle.dumps(function))
    assert (type(found), found.rate, found.variants()) == (Simple, 0.5, [])
    assert same(found(1.0), (1.0,))


def test_variants_are_neither_copied_nor_pickled() -> None:
    variant = sized(WAY, 3)
    for refused in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="native code cannot be pickled or copied"):
            refused(variant)


def test_entries_and_variants_are_collected(way: tuple[Any, Any]) -> None:
    class Owner:
        pass

    owners, functions = [], []
    for cyclic in (False, True):
        owner = Owner()
        owners.append(weakref.ref(owner))
        function = made(way, sized(way, 2), sized(way, 3, owner=owner), sized(way, 4))
        function.model = [function] if cyclic else None
        if cyclic:
            owner.function = function
        function(np.ones(3))
        functions.append(weakref.ref(function))
        del function, owner
        gc.collect()
        assert functions[-1]() is None
        assert owners[-1]() is None
    made(way, sized(way, 2))
    before = len(gc.get_objects())
    for _ in range(100):
        made(way, sized(way, 2), sized(way, 3))
    gc.collect()
    assert len(gc.get_objects()) <= before + 50


def test_an_entry_that_is_being_collected_can_be_called() -> None:
    function = made(WAY, sized(WAY, 2))
    variant = function.first
    del variant.kept
    assert function(np.ones(2))[0] == "python"
    del function.first
    assert function(np.ones(2))[0] == "python"
    del function.fallback
    with pytest.raises(SystemError):
        function(np.ones(2))


def test_nothing_is_left_behind_by_calls(way: tuple[Any, Any]) -> None:
    kinds = [kind for kind, _, _ in CASES.values()]
    values = [suiting[-1] for _, suiting, _ in CASES.values()]
    function = made(way, echo(way, *kinds, releases=True), sized(way, 7))
    # what cannot be made: the largest of these is asked for when another one has been made already
    huge = ContainerKind(tuple, (TEN, NumberKind(float), ArrayKind(REAL, (1 << 45,)), TEN))
    failing = made(way, way[1]([TEN], huge, copying([])))

    def failing_call() -> None:
        with pytest.raises(MemoryError):
            failing(numbers)

    shares = ArrayKind(REAL, (4, 3), (8, 32), is_copied=True)
    pair = ContainerKind(tuple, (ArrayKind(REAL, (4, 3)),) * 2)
    copies = made(way, way[1]([shares, ContainerKind(list, (shares,))], pair, copying([96, 96])))
    calls = (
        lambda: copies(grid.T, [grid.T]),
        lambda: function(*values),
        failing_call,
        lambda: function(1, x=2),
        lambda: function(*values[:-1], 1),
    )
    watched = (REAL, np.dtype(np.float32), numbers, values[-1], function, None, np.ndarray, float)
    for call in calls:
        call()
    gc.collect()
    counts = [sys.getrefcount(x) for x in watched]
    blocks = sys.getallocatedblocks()
    for call in calls:
        for _ in range(1000):
            call()
    gc.collect()
    assert sys.getallocatedblocks() - blocks < 500  # the interpreter keeps some of its own
    now = [sys.getrefcount(x) for x in watched]
    assert all(abs(x - y) < 20 for x, y in zip(counts, now, strict=True)), (counts, now)


def test_errors_of_python_come_through(way: tuple[Any, Any]) -> None:
    class Failing(way[0]):
        def __call__(self, x: Any) -> Any:
            raise KeyError(x)

    function = Failing()
    function.add(sized(way, 2))
    with pytest.raises(KeyError, match="7"):
        function(7)
    with pytest.raises(TypeError):
        function(1, 2)
    assert function(np.ones(2))[0].shape == (2,)


def test_calls_that_go_to_python_nest_as_deep_as_python_does(way: tuple[Any, Any]) -> None:
    class Nested(way[0]):
        def __call__(self, depth: int) -> int:
            return 1 + self(depth - 1) if depth else 0

    function = Nested()
    function.add(sized(way, 2))
    depth = sys.getrecursionlimit() // 4
    results: list[int] = []
    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=lambda: results.append(function(depth)))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results == [depth]


# -------------------------------------------------------------------------------------------------- threads, processes


pause = external("sched_yield", VOID)


def waiting(b: Builder, data: Value, arena: Value) -> None:
    """Say in the second number of the first input that it runs, wait until the first is set; then copy the others."""
    flag, memory = data.at(0).load().to(I64), arena.to(F64)
    source, target = data.at(1).load().to(F64), data.at(2).load().to(F64)
    memory.store(source.load())
    flag.at(1).store(1, "seq_cst")
    loop = b.stack(I64)
    loop.store(0)
    b.do(wait_for, flag)
    target.store(memory.load())
    with b.loop(10, 1) as each:
        target.at(each.index).store(source.at(each.index).load())


@native(VOID, Pointer(I64))
def wait_for(b: Builder, flag: Value) -> None:
    with b.forever():
        with b.when(flag.load("seq_cst").differs(0)):
            b.give()
        b.do(pause)


FLAG = ArrayKind(np.dtype(np.int64), (2,))


class Held:
    """Run a function in another thread, until `release`."""

    def __init__(self, function: Callable[..., Any], *args: Any) -> None:
        self.flag = np.zeros(2, np.int64)
        self.results: list[Any] = []
        self.thread = threading.Thread(target=lambda: self.results.append(function(self.flag, *args)))
        self.thread.start()
        while not self.flag[1]:
            pass

    def release(self) -> Any:
        self.flag[0] = 1
        self.thread.join()
        return self.results[0]


def test_arenas_are_for_one_call_at_a_time(way: tuple[Any, Any]) -> None:
    variant = way[1]([FLAG, TEN], TEN, kernel(waiting), size=40, releases=True)
    function = made(way, variant)
    held = [Held(function, numbers + i) for i in range(4)]
    assert [same(x.release(), numbers + i) for i, x in enumerate(held)] == [True] * 4
    done = np.array([1, 0])
    assert same(function(done, numbers), numbers)


def test_variants_share_an_arena(way: tuple[Any, Any]) -> None:
    callee = Callee(kernel(waiting), size=40, releases=True)
    cls = way[1].args[0]
    function = made(way, cls([FLAG, TEN], TEN, callee), cls([FLAG, TEN], TEN, callee, ("x",)))
    held = [Held(function, numbers), Held(lambda flag, x: function(flag, x=x), numbers + 1)]
    assert [same(x.release(), numbers + i) for i, x in enumerate(held)] == [True] * 2


def test_an_arena_is_free_in_a_process_that_is_forked_while_it_is_used(way: tuple[Any, Any]) -> None:
    callee = Callee(kernel(waiting), size=40, releases=True)
    function = made(way, way[1].args[0]([FLAG, TEN], TEN, callee))
    held = Held(function, numbers)
    child = os.fork()
    if child == 0:
        right = same(function(np.array([1, 0]), numbers + 1), numbers + 1)
        os._exit(0 if right and callee.busy.value == 0 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert same(held.release(), numbers)
    assert callee.busy.value == 0


def test_what_was_found_in_a_container_stays_while_it_is_used(way: tuple[Any, Any]) -> None:
    for container, empty in ((list, list.clear), (dict, dict.clear)):
        names = ("a",) if container is dict else ()
        kinds = [FLAG, ContainerKind(container, (TEN,), names)]
        function = made(way, way[1](kinds, TEN, kernel(waiting), releases=True))
        array = numbers + 1
        gone = weakref.ref(array)
        box: Any = {"a": array} if container is dict else [array]
        del array
        held = Held(function, box)
        empty(box)
        gc.collect()
        assert gone() is not None
        assert same(held.release(), numbers + 1)
        assert gone() is None


def test_a_variant_stays_while_it_runs(way: tuple[Any, Any]) -> None:
    body = NativeFunction("code", KERNEL, lambda b, data, arena, team: waiting(b, data, arena))
    code = load_code(link_object(emit_object(program(body), host())))
    gone = weakref.ref(code)
    function = made(way, way[1]([FLAG, TEN], TEN, code.addresses["code"], owner=code, releases=True))
    del code
    held = Held(function, numbers)
    function.forget()
    gc.collect()
    assert same(held.release(), numbers)
    gc.collect()
    assert gone() is None


def test_several_threads_call_and_change_one_entry(way: tuple[Any, Any]) -> None:
    function = made(way, *(sized(way, size, releases=size % 2 == 0) for size in range(8)))
    wrong: list[Any] = []

    def run(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for size in rng.integers(0, 10, 300):
            x = rng.random(size)
            result = function(x)
            if not (result[0] is PYTHON or same(result[0], x)):
                wrong.append(result)
            if size == 9:
                function.add(sized(way, int(rng.integers(0, 9))))

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong
    assert len(function.variants()) <= MANY_VARIANTS


SETUP = """
import atexit, os, signal, sys, threading, time
sys.path.insert(0, {here!r})
import numpy as np
from tests.test_entry import FLAG, TEN, WAY as way, Held, kernel, made, numbers, same, sized, waiting
function = made(way, way[1]([FLAG, TEN], TEN, kernel(waiting), releases=True))
small = made(way, sized(way, 3))
flag = np.zeros(2, np.int64)
def begin(target=lambda: function(flag, numbers)):
    threading.Thread(target=target, daemon=True).start()
    while not flag[1]: time.sleep(0.001)
"""

PROGRAMS = {
    "a fork, and the end of the process, while a daemon's thread is in a kernel": (
        "begin()\n"
        "done = np.array([1, 0])\n"
        "child = os.fork()\n"
        "right = same(function(done, numbers), numbers) and small(np.ones(3))[0].sum() == 3\n"
        "if child == 0: os._exit(0 if right else 1)\n"
        "print(os.waitpid(child, 0)[1], right)",
        "0 True\n",
    ),
    "an interrupt in a kernel, and the end of Python while a daemon's thread comes back from one": (
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def interrupt(other=np.zeros(2, np.int64)):\n"
        "    while not other[1]: time.sleep(0.001)\n"
        "    os.kill(os.getpid(), signal.SIGINT); time.sleep(0.05); other[0] = 1\n"
        "threading.Thread(target=interrupt).start()\n"
        "try:\n"
        "    function(interrupt.__defaults__[0], numbers)\n"
        "    time.sleep(5)\n"
        "except KeyboardInterrupt: print('interrupted', small(np.ones(3))[0].sum())\n"
        "class Last:\n"
        "    def __del__(self, flag=flag, sleep=time.sleep): flag[0] = 1; sleep(0.05)\n"
        "last = Last()\n"
        "begin()",
        "interrupted 3.0\n",
    ),
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.parametrize("what", PROGRAMS)
def test_processes(what: str) -> None:
    text, expected = PROGRAMS[what]
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    setup = SETUP.format(here=here)
    arguments = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", setup + text]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, expected, "")


# -------------------------------------------------------------------------------------------------- what is chosen


def test_native_entries_serve_where_all_is_as_it_should_be() -> None:
    assert entries.entry_classes() == (NativeEntry, NativeVariant) == (entries.Entry, entries.Variant)


@pytest.mark.parametrize("check", ["check_layout", "check_numbers", "check_types", "check_numpy_functions"])
def test_python_does_all_where_something_is_different(check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def differs() -> None:
        raise UnavailableError("the layout of arrays is unknown")

    monkeypatch.setattr(native_entry, check, differs)
    assert entries.entry_classes() == (PythonEntry, PythonVariant)
    function = PythonEntry()
    with pytest.raises(RuntimeError, match="the objects of this interpreter are not known"):
        function.add(PythonVariant([TEN], TEN, Callee(0)))
    assert function.variants() == []
    assert PythonEntry.__get__(function, None) is function
    function.forget()


ELSEWHERE = """
import numpy as np
from wengert.native.entries import native_entry
from wengert.native.availability import UnavailableError
def differs(): raise UnavailableError("the layout of arrays is unknown")
native_entry.check_layout = differs
import wengert as wg
from wengert.native.entries.entry import Entry, PythonEntry
assert Entry is PythonEntry
x = np.linspace(0.5, 2.0, 10)
f = lambda x, by: {"sum": wg.numpy.sum(wg.numpy.exp(x) * by), "rest": [x[1:] * by, by]}
g = wg.grad(lambda x: f(x, 0.5)["sum"])
for fun, args in ((f, (x, 2.0)), (g, (x,))):
    jitted = wg.jit(fun)
    for _ in range(4):
        found, want = wg.tree.leaves(jitted(*args)), wg.tree.leaves(fun(*args))
        assert [np.asarray(a).dtype for a in found] == [np.asarray(a).dtype for a in want]
        for a, b in zip(found, want):
            np.testing.assert_allclose(a, b, rtol=1e-14)
import sys
assert "wengert.native.executable" in sys.modules
print("alike")
"""


def test_jitted_functions_are_what_they_are_where_python_does_all() -> None:
    done = subprocess.run(
        [sys.executable, "-c", ELSEWHERE],
        env={**os.environ, "WENGERT_NATIVE": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert (done.stdout, done.stderr) == ("alike\n", "")


def test_other_interpreters_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(native_entry.OBJECT, "size", 32)
    with pytest.raises(RuntimeError, match="CPython with an interpreter lock"):
        native_entry.probe()


WITHOUT_LLVM = """
import sys
import numpy as np
from wengert.native.entries.callee import Callee
from wengert.native.entries.entry import Entry, PythonEntry, PythonVariant, Variant
from wengert.native.entries.kinds import NumberKind
from wengert.native.entries.native_entry import native_code
class Function(Entry):
    def __call__(self, x): return "python"
function = Function()
print(function(1.0))
assert "wengert.native.engine" not in sys.modules  # nothing was compiled
function.add(Variant([NumberKind(int)], NumberKind(int), Callee(0)))
print(function(1.0), [name for name in sys.modules if name.startswith("llvmlite") or name.endswith("builder")])
"""


def test_the_code_of_entries_is_found_by_later_processes(tmp_path: Any) -> None:
    environment = {**os.environ, "WENGERT_CACHE": str(tmp_path / "cache")}
    for needs_llvm in (True, False):
        done = subprocess.run(
            [sys.executable, "-c", WITHOUT_LLVM], env=environment, capture_output=True, text=True, timeout=120
        )
        assert (done.stderr, done.stdout[:14]) == ("", "python\npython ")
        assert ("llvmlite" in done.stdout) == ("builder" in done.stdout) == needs_llvm


@pytest.fixture(autouse=True)
def _no_errors_out_of_nowhere(capfd: pytest.CaptureFixture[str]) -> Iterator[None]:
    yield
    assert "Exception ignored" not in capfd.readouterr().err
