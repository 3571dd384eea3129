"""Native functions written in Python: what they compute when compiled, and what is refused while they are written."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cases import together
from wengert.native import engine
from wengert.native.availability import UnavailableError
from wengert.native.builder import Builder, program, template
from wengert.native.functions import ConstantTable, NativeFunction, external, native
from wengert.native.loader import kept_code
from wengert.native.structs import (
    BOOL,
    F64,
    I8,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Integer,
    OwnLine,
    Pointer,
    Signature,
    Struct,
    VectorType,
)
from wengert.native.threads import job_tables, jobs
from wengert.native.values import Value

PAIR = Struct("Pair", first=I32, second=I64)


def compiled(*functions: NativeFunction) -> list[Any]:
    """Return native functions as ctypes calls them."""
    code = kept_code(program(*functions)).addresses
    found = []
    for function in functions:
        kind = function.signature.returns
        returns = None if kind is VOID else kind.ctype
        prototype = ctypes.CFUNCTYPE(returns, *(parameter.ctype for parameter in function.signature.parameters))
        found.append(prototype(code[function.name]))
    return found


# -------------------------------------------------------------------------------------------------- what is computed


OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    name: getattr(operator, name) for name in ("add", "sub", "mul", "floordiv", "mod", "and_", "or_")
}
RELATIONS: dict[str, Callable[[Any, Any], Any]] = {name: getattr(operator, name) for name in ("lt", "le", "gt", "ge")}


def binary(name: str, of: Callable[[Any, Any], Any], returns: Any) -> NativeFunction:
    def body(b: Builder, x: Value, y: Value) -> None:
        b.give(of(x, y))

    return NativeFunction(name, Signature(returns, (I64, I64)), body)


def test_operations_and_relations_are_those_of_python() -> None:
    table = {**OPERATIONS, **RELATIONS, "minus": lambda x, y: 7 - x - y}
    table |= {"equals": lambda x, y: x.equals(y), "differs": lambda x, y: x.differs(y)}
    functions = compiled(
        *(binary(f"f_{n}", f, I64 if n in OPERATIONS or n == "minus" else BOOL) for n, f in table.items())
    )
    table |= {"equals": operator.eq, "differs": operator.ne}
    for (name, expected), function in zip(table.items(), functions, strict=True):
        negative = () if name in ("floordiv", "mod") else ((-3, 5), (5, -3), (-7, -7), (-(2**40), 2**20))
        for x, y in ((0, 1), (7, 3), (3, 7), (12, 4), (2**40, 3), *negative):
            assert function(x, y) == expected(x, y), name


@native(I64, Pointer(I64), I64)
def total(b: Builder, numbers: Value, count: Value) -> None:
    with b.loop(count, carry=[0, 1]) as loop:
        x = numbers.at(loop.index).load()
        loop.next(loop.values[0] + x, b.least(loop.values[1], x))
    b.give(loop.results[0] * 1000 + loop.results[1])


@native(I64, I64, I64)
def primes(b: Builder, first: Value, last: Value) -> None:
    found = b.stack(I64)
    found.store(0)
    with b.loop(last, first) as candidates, b.when(b.call(is_prime, candidates.index)):
        found.store(found.load() + 1)
    b.give(found.load())


@native(BOOL, I64)
def is_prime(b: Builder, n: Value) -> None:
    with b.when(n < 2) as otherwise:
        b.give(False)
    with otherwise, b.loop(n, 2) as divisors, b.when((n % divisors.index).equals(0)):
        b.give(False)
    b.give(True)


@native(I64, I64)
def halvings(b: Builder, n: Value) -> None:
    """Count how often an even number can be halved, and subtract one from an odd one."""
    left, count = b.stack(I64), b.stack(I64)
    left.store(n)
    count.store(0)
    with b.forever():
        with b.when(left.load() <= 0):
            b.give(count.load())
        with b.when((left.load() % 2).equals(0)) as otherwise:
            left.store(left.load() // 2)
        with otherwise:
            left.store(left.load() - 1)
        count.store(count.load() + 1)


def test_loops_and_conditions() -> None:
    sums, count, halve = compiled(total, primes, halvings)
    numbers = (ctypes.c_int64 * 5)(3, -4, 5, 6, 7)
    assert sums(ctypes.addressof(numbers), 5) == 17 * 1000 - 4
    assert sums(ctypes.addressof(numbers), 0) == 1  # no round: what was carried at the start
    assert sums(ctypes.addressof(numbers), -1) == 1
    assert count(0, 100) == 25
    assert count(90, 97) == 0
    assert halve(100) == 9


Step = tuple[Any, ...]
steps = st.recursive(
    st.tuples(st.just("add"), st.integers(-5, 5)),
    lambda inner: st.one_of(
        st.tuples(st.just("loop"), st.integers(0, 3), st.lists(inner, max_size=3)),
        st.tuples(
            st.just("when"), st.sampled_from([2, 4, 8]), st.lists(inner, max_size=3), st.lists(inner, max_size=3)
        ),
        st.tuples(st.just("leave"), st.integers(20, 40)),
    ),
    max_leaves=12,
)


def run(steps: list[Step], x: int) -> tuple[int, bool]:
    """Do steps in Python; return the number, and whether they were left early."""
    for step in steps:
        if step[0] == "add":
            x += step[1]
        elif step[0] == "leave":
            if x > step[1]:
                return x, True
        elif step[0] == "when":
            x, left = run(step[2] if x % step[1] == 0 else step[3], x)
            if left:
                return x, True
        else:
            carried = 1
            for index in range(step[1]):
                x, left = run(step[2], x + carried)
                if left:
                    return x, True
                carried = carried * 3 + index
            x += carried
    return x, False


def write(b: Builder, steps: list[Step], x: Value) -> None:
    """Do the same natively; `x` is the address of the number."""
    for step in steps:
        if step[0] == "add":
            x.store(x.load() + step[1])
        elif step[0] == "leave":
            with b.when(x.load() > step[1]):
                b.give(x.load())
        elif step[0] == "when":
            with b.when((x.load() & (step[1] - 1)).equals(0)) as otherwise:
                write(b, step[2], x)
            with otherwise:
                write(b, step[3], x)
        else:
            with b.loop(step[1], carry=[1]) as loop:
                x.store(x.load() + loop.values[0])
                write(b, step[2], x)
                loop.next(loop.values[0] * 3 + loop.index)
            x.store(x.load() + loop.results[0])


@settings(max_examples=25, deadline=None)
@given(steps=st.lists(steps, max_size=4))
def test_control_flow_nested_in_whatever_way(steps: list[Step]) -> None:
    def body(b: Builder, start: Value) -> None:
        x = b.stack(I64)
        x.store(start)
        write(b, steps, x)
        b.give(x.load())

    (function,) = compiled(NativeFunction("steps", Signature(I64, (I64,)), body))
    for start in (-3, 0, 2, 19):
        assert function(start) == run(steps, start)[0]


@native(I64, Pointer(I64), I64)
def atomics(b: Builder, place: Value, x: Value) -> None:
    before = place.fetch_add(x, "monotonic")
    bits = place.fetch_or(64, "acq_rel")
    swapped = place.compare_exchange(bits | 64, 5, "seq_cst").widen(I64)
    refused = place.compare_exchange(4, 6, "acquire").widen(I64)
    place.at(1).store(place.load("acquire"), "release")
    b.give(before * 10_000 + bits * 100 + swapped * 10 + refused)


def test_atomic_operations() -> None:
    (function,) = compiled(atomics)
    places = (ctypes.c_int64 * 2)(3, 0)
    assert function(ctypes.addressof(places), 4) == 3 * 10_000 + 7 * 100 + 10
    assert list(places) == [5, 5]
    text = program(atomics)
    for instruction in (
        "atomicrmw add ptr %place, i64 %x monotonic",
        "atomicrmw or ptr %place, i64 64 acq_rel",
        "load atomic i64, ptr %place acquire, align 8",
        "release, align 8",
        "seq_cst seq_cst",
    ):
        assert instruction in text


TWICE = Signature(I64, (POINTER, I64))


@native(I64, *TWICE.parameters)
def plus(b: Builder, data: Value, x: Value) -> None:
    b.give(data.to(I64).load() + x)


@native(I64, Pointer(TWICE), POINTER, I64)
def called_twice(b: Builder, function: Value, data: Value, x: Value) -> None:
    b.give(b.call(function, data, b.call(function, data, x)) + b.call(on, plus, data))


@native(I64, Pointer(TWICE), POINTER)
def on(b: Builder, function: Value, data: Value) -> None:
    b.give(b.call(function, data, 1000))


def test_functions_are_called_by_address() -> None:
    (function,) = compiled(called_twice)
    data = ctypes.c_int64(7)
    times = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, ctypes.c_int64)(lambda _data, x: 3 * x)
    assert function(ctypes.cast(times, ctypes.c_void_p), ctypes.addressof(data), 5) == 45 + 1007


def test_memory_of_a_function_is_not_made_anew_in_a_loop() -> None:
    @native(I64, I64)
    def deep(b: Builder, rounds: Value) -> None:
        with b.loop(rounds, carry=[0]) as loop:
            numbers = b.stack(Array(I64, 1000))
            numbers.at(999).store(loop.index)
            loop.next(loop.values[0] + numbers.at(999).load())
        b.give(loop.results[0])

    (function,) = compiled(deep)
    assert function(100_000) == 100_000 * 99_999 // 2  # 800 MB otherwise


# -------------------------------------------------------------------------------------------------- structures


MIXED = Struct(
    "Mixed",
    small=I8,
    number=I32,
    large=I64,
    address=Pointer(I64),
    bytes=OwnLine(Array(I8, 130)),
    after=I32,
    last=OwnLine(I64),
)


@native(VOID, Pointer(MIXED), I64)
def fill(b: Builder, structs: Value, index: Value) -> None:
    mixed = structs.at(index)
    mixed.set("small", -1)
    mixed.set("number", -2)
    mixed.set("large", 2**40)
    mixed.set("address", mixed.field("large"))
    mixed.field("bytes").at(129).store(-3)
    mixed.set("after", mixed.get("number"))
    mixed.set("last", mixed.get("address").load() + mixed.get("after").widen(I64))


def test_a_structure_is_the_same_for_ctypes_and_for_native_code() -> None:
    (function,) = compiled(fill)
    structs = (MIXED.ctype * 3)()
    base = ctypes.addressof(structs)
    for index in range(3):
        function(base, index)
        mixed = MIXED.view(base + index * MIXED.size)
        assert (mixed.small, mixed.number, mixed.large, mixed.after) == (-1, -2, 2**40, -2)
        assert mixed.address == base + index * MIXED.size + MIXED.offset("large")
        assert (mixed.bytes[128], mixed.bytes[129]) == (0, -3)
        assert mixed.last == 2**40 + 2**32 - 2  # widened as a number that is not negative


def test_fields_lie_as_in_c_and_lines_of_their_own_begin_lines() -> None:
    class InC(ctypes.Structure):
        _fields_ = (("first", ctypes.c_int32), ("second", ctypes.c_int64))

    assert (PAIR.offset("first"), PAIR.offset("second"), PAIR.size) == (0, InC.second.offset, ctypes.sizeof(InC))
    offsets = {name: MIXED.offset(name) for name in MIXED.fields}
    assert (offsets["bytes"], offsets["after"], offsets["last"], MIXED.size) == (128, 260, 384, 512)
    for struct in (job_tables.SHARED, job_tables.PLACE):
        assert struct.size % 128 == 0


# -------------------------------------------------------------------------------------------------- what is refused


def stray(kind: Any) -> Value:
    """Return a value of another function."""
    return Value(Builder(VOID), kind, "%stray")


def unfollowed(b: Builder) -> None:
    with b.loop(3, carry=[0]):
        pass


def late_otherwise(b: Builder, x: Value) -> None:
    with b.when(x < 0) as otherwise:
        pass
    x + 1
    with otherwise:
        pass


def carried(b: Builder, *values: Any) -> None:
    with b.loop(3, carry=[0]) as loop:
        loop.next(*values)


REFUSED: dict[str, tuple[Callable[[Builder, Value, Value, Value], Any], str]] = {
    "another width": (lambda b, x, n, p: x + n, "i64 is needed, i32 was given: %n"),
    "a number for a condition": (lambda b, x, n, p: b.select(x, x, x), "i1 is needed, i64 was given"),
    "a branch on a number": (lambda b, x, n, p: b.when(n).__enter__(), "i1 is needed, i32 was given"),
    "two kinds of results": (lambda b, x, n, p: b.select(x < 0, x, n), "i64 is needed, i32 was given: %n"),
    "arithmetic on addresses": (lambda b, x, n, p: p + 8, "address of Pair is no number"),
    "order of addresses": (lambda b, x, n, p: p < p, "address of Pair is no number"),
    "a fraction": (lambda b, x, n, p: x + 0.5, "0.5 is not i64"),
    "too large": (lambda b, x, n, p: n + 2**31, "2147483648 is not i32"),
    "no address": (lambda b, x, n, p: x.store(None), "i64 is no address"),
    "nothing as a number": (lambda b, x, n, p: x + None, "None is not i64"),
    "narrower": (lambda b, x, n, p: x.widen(I32), "i64 cannot be widened to i32"),
    "load from a number": (lambda b, x, n, p: x.load(), "i64 is no address"),
    "load of a structure": (lambda b, x, n, p: p.load(), "Pair is no number and no address"),
    "load of anything": (lambda b, x, n, p: p.to(None).load(), "None is no number and no address"),
    "store of another width": (lambda b, x, n, p: p.set("first", x), "i32 is needed, i64 was given"),
    "atomics on another width": (lambda b, x, n, p: p.field("second").fetch_add(n, "seq_cst"), "i64 is needed"),
    "no such field": (lambda b, x, n, p: p.get("third"), "Pair has no field 'third'"),
    "field of a number": (lambda b, x, n, p: p.field("first").field("first"), "has no field 'first'"),
    "index of another width": (lambda b, x, n, p: p.at(n), "i64 is needed, i32 was given: %n"),
    "too few arguments": (lambda b, x, n, p: b.call(total, p), "1 arguments for 2 parameters"),
    "an address of other things": (
        lambda b, x, n, p: b.call(total, p, x),
        "address of i64 is needed, the address of Pair",
    ),
    "a function of another type": (lambda b, x, n, p: b.call(on, total, p), "was given: @total"),
    "a call of data": (lambda b, x, n, p: b.call(p, x), "the address of Pair is not that of a function"),
    "the result of nothing": (lambda b, x, n, p: b.call(fill, p.to(MIXED), x), "gives nothing"),
    "another function's value": (lambda b, x, n, p: x + stray(I64), "%stray belongs to another function"),
    "another result": (lambda b, x, n, p: b.give(n), "i64 is needed, i32 was given: %n"),
    "no result": (lambda b, x, n, p: None, "the function ends without giving i64"),
    "code after the end": (lambda b, x, n, p: (b.give(x), x + 1), "the function has returned before"),
    "a decision while writing": (lambda b, x, n, p: x < 0 or x, "not known before the code runs"),
    "nothing carried on": (lambda b, x, n, p: unfollowed(b), "`next` was not called"),
    "too much carried on": (lambda b, x, n, p: carried(b, 1, 2), "2 values for 1 that are carried"),
    "another kind carried on": (lambda b, x, n, p: carried(b, n), "i64 is needed, i32 was given: %n"),
    "a late other part": (lambda b, x, n, p: late_otherwise(b, x), "something stands between"),
}


@together("case", REFUSED)
def test_what_cannot_be_right_is_refused_while_it_is_written(case: str) -> None:
    wrong, message = REFUSED[case]

    def body(b: Builder, x: Value, n: Value, p: Value) -> None:
        wrong(b, x, n, p)

    with pytest.raises(TypeError, match=message):
        program(NativeFunction("wrong", Signature(I64, (I64, I32, Pointer(PAIR))), body))


def test_functions_have_names_of_their_own_and_all_their_parameters() -> None:
    @native(I64, Pointer(TWICE), POINTER)
    def plus(b: Builder, function: Value, data: Value) -> None:
        b.give(b.call(globals()["plus"], data, 1))

    with pytest.raises(TypeError, match="two functions have one name"):
        program(plus)
    with pytest.raises(TypeError, match="short: 2 parameters of 1 types"):
        program(NativeFunction("short", Signature(I64, (I64,)), total.body))


def test_llvm_refuses_a_value_that_was_not_computed_on_every_way() -> None:
    @native(I64, I64)
    def halfway(b: Builder, x: Value) -> None:
        with b.when(x < 0):
            y = x + 1
        b.give(y)

    with pytest.raises(RuntimeError, match="dominate"):
        kept_code(program(halfway))


def test_a_function_that_the_system_lacks_is_refused() -> None:
    lacking = external("no_such_function_anywhere", I32)

    @native(VOID)
    def lost(b: Builder) -> None:
        b.do(lacking)

    with pytest.raises(UnavailableError, match="no_such_function_anywhere"):
        kept_code(program(lost))


@pytest.mark.parametrize(("rounds", "brief"), [(10, False), (10, True), (engine.LONGEST, False)])
def test_many_instructions_without_a_jump_and_brief_functions_are_written_the_quick_way(
    rounds: int, brief: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []

    def machine(target: engine.Target, is_quick: bool = False) -> Any:
        asked.append(is_quick)
        return real(target, is_quick)

    def chain(n: Any) -> Any:
        for factor in range(rounds):
            n = n + (n % (factor + 2))
        return n

    real = engine.machine
    monkeypatch.setattr(engine, "machine", machine)
    signature = Signature(I64, (I64,))
    (function,) = compiled(
        NativeFunction(f"chain_{rounds}_{brief}", signature, lambda b, n: b.give(chain(n)), brief=brief)
    )
    assert asked == [brief or rounds == engine.LONGEST]
    assert function(12345) == chain(12345)


# -------------------------------------------------------------------------------------------------- the text


def test_the_text_is_the_same_whenever_it_is_written() -> None:
    assert program(jobs.worker, jobs.dispatch) == program(jobs.worker, jobs.dispatch)
    assert program(total) in program(plus, total)
    assert "define i64 @total(ptr %numbers, i64 %count)" in program(total)
    assert "define internal i1 @is_prime" in program(primes)


@pytest.mark.parametrize("machine", ["x86_64", "aarch64"])
def test_the_protocol_is_right_for_every_processor(machine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    import llvmlite.binding as llvm

    monkeypatch.setattr(jobs, "PROCESSOR", machine)
    text = program(jobs.dispatch, jobs.worker, jobs.linger)
    assert ("@llvm.x86.sse2.pause" in text) == (machine == "x86_64")
    llvm.parse_assembly(text).verify()


def test_integers_hold_what_their_bits_hold() -> None:
    assert Integer(8).holds(127)
    assert Integer(8).holds(-128)
    assert not Integer(8).holds(128)
    assert not BOOL.holds(-1)


# -------------------------------------------------------------------------------------------------- vectors


FOUR = VectorType(F64, 4)


@native(F64, Pointer(F64), I64)
def dot_with_itself(b: Builder, numbers: Value, count: Value) -> None:
    """Sum the squares of numbers, four at a time, the last ones under a mask."""
    steps = b.numbers(I64, range(4))
    with b.loop(count, carry=[b.constant(FOUR, 0.0)], step=4) as loop:
        there = b.compare("slt", steps, b.spread(count - loop.index, 4))
        x = numbers.at(loop.index).to(FOUR).load_where(there)
        loop.next(b.intrinsic("fma", FOUR, x, x, loop.values[0]))
    low, high = (b.shuffle(loop.results[0], places) for places in ((0, 1), (2, 3)))
    both = low + high
    b.give(b.extract(both, 0) + b.extract(both, 1))


@native(VOID, Pointer(F64), Pointer(F64))
def every_other(b: Builder, numbers: Value, found: Value) -> None:
    """Copy numbers with gaps, negated, and store the last two of them beside the others."""
    x = numbers.gather(b.numbers(I64, (0, 2, 4, 6)), b.constant(VectorType(BOOL, 4), 1))
    found.to(FOUR).store_where(-x, b.numbers(BOOL, (1, 1, 0, 0)))
    found.scatter(
        b.beside(b.shuffle(x, (2, 3)), b.shuffle(x, (2, 3))),
        b.numbers(I64, (2, 3, 4, 5)),
        b.numbers(BOOL, (1, 1, 0, 0)),
    )


@native(F64, F64)
def larger_root(b: Builder, x: Value) -> None:
    """Return the larger of a number and its root, twice: a template is pasted."""

    def write(b: Builder, x: Value) -> list[Value]:
        return b.either(x < 1.0, lambda: [b.intrinsic("sqrt", F64, x)], lambda: [x])

    made = template([F64], write)
    (once,) = b.paste(made, x)
    (twice,) = b.paste(made, once / 4.0)
    b.give(once + twice * b.table(POWERS).at(2).load())


POWERS = ConstantTable("powers", F64, (1.0, 10.0, 100.0))


def test_vectors_masks_and_templates() -> None:
    dot, gaps, root = compiled(dot_with_itself, every_other, larger_root)
    numbers = (ctypes.c_double * 8)(1, 2, 3, 4, 5, 6, 7, 8)
    assert [dot(ctypes.addressof(numbers), n) for n in (0, 1, 4, 7)] == [0, 1, 30, 140]
    found = (ctypes.c_double * 6)()
    gaps(ctypes.addressof(numbers), ctypes.addressof(found))
    assert list(found) == [-1, -3, 5, 7, 0, 0]
    assert root(0.25) == 0.5 + 100 * 0.125**0.5
    assert root(16.0) == 16.0 + 100 * 4.0


VECTORS: dict[str, tuple[Callable[[Builder, Value, Value], Any], str]] = {
    "a number for a vector": (lambda b, x, y: x + b.extract(y, 0), "<4 x double> is needed, double was given"),
    "another width": (lambda b, x, y: x + b.shuffle(y, (0, 1)), "<4 x double> is needed, <2 x double> was given"),
    "floats under an operation on bits": (lambda b, x, y: b.binary("xor", x, y), "<4 x double> has no xor"),
    "a choice by other lanes": (
        lambda b, x, y: b.select(b.constant(VectorType(BOOL, 2), 1), x, y),
        "<4 x i1> is needed, <2 x i1> was given",
    ),
}


@pytest.mark.parametrize("case", VECTORS)
def test_what_cannot_be_right_of_vectors_is_refused(case: str) -> None:
    wrong, message = VECTORS[case]

    def body(b: Builder, x: Value, y: Value) -> None:
        wrong(b, x, y)

    with pytest.raises(TypeError, match=message):
        program(NativeFunction("wrong", Signature(VOID, (FOUR, FOUR)), body))
