"""Functions in LLVM's language, written as Python functions: this and `values` alone know how it is written.

    @native(I64, Pointer(I64), I64)
    def total(b, numbers, count):
        with b.loop(count, carry=[0]) as loop:
            loop.next(loop.values[0] + numbers.at(loop.index).load())
        b.give(loop.results[0])

`program(total)` is the text of it and of all that it calls. Values have types, which every operation checks. Integers
are signed; `//` and `%` are for numbers that are not negative. Operations on vectors work on each of their numbers.
Nothing is optimised later but by the code generator, so what should be computed once is written once; a Python function
that writes instructions is an inlined function.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from typing import Literal

from wengert.native.functions import BEGIN, MARK, Function, Table, Template, intrinsic, listed
from wengert.native.structs import (
    BOOL,
    I32,
    I64,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    Scalar,
    Signature,
    Type,
    Vector,
    Void,
    element,
    integer,
    like,
    numeric,
    vector,
    vector_of,
)
from wengert.native.values import Operand, Value

__all__ = ["Builder", "Loop"]

Conversion = Literal["trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "bitcast"]
"""How numbers become those of another type: LLVM's names."""

DOUBLE = struct.Struct(">d")
FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
ORDERED = {"slt": "olt", "sle": "ole", "sgt": "ogt", "sge": "oge", "eq": "oeq", "ne": "une"}
"""LLVM's names of operations on integers that floating-point numbers have as well."""


class Loop:
    """Be a loop that is being written: its index and the values of this round; after it, the last ones.

    A round may set `step`, from its number to the next one's.
    """

    def __init__(self, index: Value, values: list[Value], step: Operand) -> None:
        self.index = index
        self.values = values
        self.step = step
        self.following: list[Value] | None = [] if not values else None
        self.results: list[Value] = []

    def next(self, *values: Operand) -> None:
        """Say what is carried into the next round."""
        if len(values) != len(self.values):
            raise TypeError(f"{len(values)} values for {len(self.values)} that are carried")
        b = self.index.b
        self.following = [b.operand(value, kept.type) for value, kept in zip(values, self.values, strict=True)]


class Builder:
    """Write the body of one function.

    Args:
        returns: the type of its result.
        mark: what names begin with: that of a template, or nothing.
    """

    def __init__(self, returns: Type | Void, mark: str = "") -> None:
        self.returns = returns
        self.mark = mark
        self.stacked: list[str] = []
        self.lines: list[str] = []
        self.called: dict[Function | Table, None] = {}
        self.block: str | None = BEGIN if mark else "entry"  # none where the code before has returned
        self.names = 0

    # ---------------------------------------------------------------- values

    def constant(self, kind: Type, value: Operand) -> Value:
        """Return a number, or the address of nothing, as a value."""
        return Value(self, kind, written_constant(kind, value))

    def operand(self, value: Operand, kind: Type) -> Value:
        """Return a value that must be of a type; Python's numbers become constants of it, functions their addresses."""
        if type(value) is Value and value.type is kind and value.b is self:
            return value
        if isinstance(value, Function):
            self.called[value] = None
            value = Value(self, Pointer(value.signature), f"@{value.name}")
        if not isinstance(value, Value):
            return self.constant(kind, value)
        if value.b is not self:
            raise TypeError(f"{value} belongs to another function")
        if (
            value.type is not kind
            and value.type != kind
            and not (isinstance(kind, Pointer) and kind.accepts(value.type))
        ):
            raise TypeError(f"{kind!r} is needed, {value.type!r} was given: {value.text}")
        return value

    def binary(self, operation: str, x: Value, y: Operand) -> Value:
        """Return what an operation on two numbers gives."""
        kind = x.type
        if isinstance(element(kind), Float):
            if operation not in FLOATING:
                raise TypeError(f"{kind!r} has no {operation}")
            operation = FLOATING[operation]
        elif not isinstance(element(kind), Integer):
            raise TypeError(f"{kind!r} is no number")
        return self.new(kind, f"{operation} {self.operand(x, kind)}, {self.operand(y, kind).text}")

    def compare(self, how: str, x: Value, y: Operand) -> Value:
        """Return whether two numbers, or two addresses, stand in a relation; NaN stands in none but `ne`."""
        kind = x.type
        scalar = element(kind)
        if isinstance(scalar, Float):
            instruction = f"fcmp {ORDERED.get(how, how)}"
        else:
            instruction = f"icmp {how}"
            if how not in ("eq", "ne"):
                integer(scalar)
        return self.new(like(kind, BOOL), f"{instruction} {self.operand(x, kind)}, {self.operand(y, kind).text}")

    def select(self, condition: Value, x: Value, y: Operand) -> Value:
        """Return one of two values, or of two vectors' numbers; both are computed."""
        chosen, other = self.operand(x, x.type), self.operand(y, x.type)
        by = condition.type if condition.type is BOOL else like(x.type, BOOL)
        return self.new(x.type, f"select {self.operand(condition, by)}, {chosen}, {other}")

    def convert(self, how: Conversion, x: Value, scalar: Scalar) -> Value:
        """Return numbers as those of another type; `how` is LLVM's name for what is done with their bits."""
        kind = like(x.type, scalar)
        return self.new(kind, f"{how} {x} to {kind}")

    def intrinsic(self, name: str, kind: Type, *arguments: Operand, of: tuple[Type, ...] | None = None) -> Value:
        """Call one of LLVM's functions that exist for many types.

        Args:
            name: without what it begins and ends with.
            kind: of the result; Python's whole numbers among the arguments are I32, its conditions BOOL.
            arguments: what it is given.
            of: the types that its name ends in; that of the result, if not given.
        """
        given = [self.flag(x) for x in arguments]
        return self.call(intrinsic(name, (kind,) if of is None else of, kind, tuple(x.type for x in given)), *given)

    def do_intrinsic(self, name: str, *arguments: Operand, of: tuple[Type, ...]) -> None:
        """Call one of LLVM's functions that gives nothing."""
        given = [self.flag(x) for x in arguments]
        self.do(intrinsic(name, of, VOID, tuple(x.type for x in given)), *given)

    def flag(self, value: Operand) -> Value:
        """Return a number that says how something is done as a value."""
        return value if isinstance(value, Value) else self.constant(BOOL if isinstance(value, bool) else I32, value)

    # ---------------------------------------------------------------- vectors

    def spread(self, x: Value, count: int) -> Value:
        """Return a vector that has a number everywhere."""
        kind = vector_of(numeric(x.type), count)
        one = self.new(kind, f"insertelement {kind} poison, {x}, i32 0")
        return self.new(kind, f"shufflevector {one}, {kind} poison, <{count} x i32> zeroinitializer")

    def numbers(self, scalar: Scalar, values: Sequence[int]) -> Value:
        """Return a vector of constants."""
        kind = Vector(scalar, len(values))
        return Value(
            self, kind, f"<{listed([f'{scalar.text} {written_constant(scalar, value)}' for value in values])}>"
        )

    def shuffled(self, x: Value, places: Sequence[int]) -> Value:
        """Return a vector of some numbers of another."""
        kind = vector(x.type)
        found = vector_of(kind.element, len(places))
        return self.new(found, f"shufflevector {x}, {kind} poison, {written_places(tuple(places))}")

    def beside(self, x: Value, y: Value) -> Value:
        """Return a vector of the numbers of two."""
        kind = vector(x.type)
        count = 2 * kind.count
        return self.new(Vector(kind.element, count), f"shufflevector {x}, {y}, {written_places(tuple(range(count)))}")

    def bits(self, conditions: Value) -> Value:
        """Return a vector of conditions as the bits of one number."""
        kind = Integer(vector(conditions.type).count)
        return self.new(kind, f"bitcast {conditions} to {kind}")

    def extract(self, x: Value, place: int) -> Value:
        """Return one number of a vector."""
        return self.new(vector(x.type).element, f"extractelement {x}, i64 {place}")

    # ---------------------------------------------------------------- memory and calls

    def least(self, x: Value, y: Operand) -> Value:
        """Return the smaller of two numbers."""
        return self.select(x < y, x, y)

    def stack(self, kind: Type) -> Value:
        """Return the address of memory that the function has while it runs; of an array's first element."""
        name = self.name()
        self.stacked.append(f"  {name} = alloca {kind}, align 16")
        return Value(self, Pointer(kind.element if isinstance(kind, Array) else kind), name)

    def call(self, function: Function | Value, *arguments: Operand) -> Value:
        """Call a function, or what is at the address of one, for its result."""
        signature, text = self.called_as(function, arguments)
        if isinstance(signature.returns, Void):
            raise TypeError(f"{text} gives nothing; `do` it")
        return self.new(signature.returns, text)

    def do(self, function: Function | Value, *arguments: Operand) -> None:
        """Call a function, or what is at the address of one, and leave its result."""
        self.put(self.called_as(function, arguments)[1])

    def called_as(self, function: Function | Value, arguments: Sequence[Operand]) -> tuple[Signature, str]:
        """Return the signature of a function and the text of a call."""
        if isinstance(function, Function):
            self.called[function] = None
            signature, head = function.signature, function.head
        else:
            found = function.pointee()
            if not isinstance(found, Signature):
                raise TypeError(f"{function.type!r} is not that of a function")
            signature, head = found, f"{found.returns} {function.text}"
        if len(arguments) != len(signature.parameters):
            raise TypeError(f"{head}: {len(arguments)} arguments for {len(signature.parameters)} parameters")
        given = [self.operand(x, kind) for x, kind in zip(arguments, signature.parameters, strict=True)]
        return signature, f"call {head}({listed(given)})"

    def give(self, value: Operand = None) -> None:
        """Return from the function."""
        if isinstance(self.returns, Void):
            self.end("ret void")
        else:
            self.end(f"ret {self.operand(value, self.returns)}")

    def table(self, table: Table) -> Value:
        """Return the address of the first of some constants."""
        self.called[table] = None
        return Value(self, Pointer(table.scalar), f"@{table.name}")

    def paste(self, template: Template, *arguments: Value) -> list[Value]:
        """Write a template's instructions and return what they give.

        Args:
            template: the instructions.
            arguments: of the types that it was made for.
        """
        mark = f"{self.mark}.{self.names + 1}"
        self.names += 1

        def own(text: str) -> str:
            text = text.replace(BEGIN, f"{self.block}").replace(MARK, mark)
            for n, x in enumerate(arguments):
                text = text.replace(f"%{mark}argument{n}.", x.text)
            return text

        results = [Value(self, kind, own(text)) for kind, text in template.results]
        self.lines.append(own(template.text))
        self.called.update(dict.fromkeys(template.called))
        if template.block != BEGIN:
            self.block = own(template.block)
        return results

    # ---------------------------------------------------------------- control

    @contextmanager
    def loop(
        self, stop: Operand, start: Operand = 0, carry: Sequence[Operand] = (), step: int = 1, certain: bool = False
    ) -> Iterator[Loop]:
        """Repeat what follows for each number from `start` up to `stop`, which is not among them.

        Args:
            stop: where to stop.
            start: where to start.
            carry: values that a round hands to the next one, as they are at the start; Python's numbers are I64.
            step: from one number to the next.
            certain: whether there is a first round, where numbers do not say so: a block and a jump less.
        """
        first, last = self.operand(start, I64), self.operand(stop, I64)
        carried = [self.operand(value, value.type if isinstance(value, Value) else I64) for value in carry]
        head, out = self.label("loop"), self.label("done")
        certain = certain or (isinstance(start, int) and isinstance(stop, int) and start < stop)
        before = self.end(f"br label %{head}") if certain else self.branch(first < last, head, out)
        self.begin(head)
        at = len(self.lines)
        loop = Loop(self.named(I64), [self.named(value.type) for value in carried], step)
        yield loop
        if loop.following is None:
            raise TypeError("`next` was not called for what the loop carries")
        added = self.new(I64, f"add nsw {loop.index}, {self.operand(loop.step, I64).text}")
        # frozen, so that LLVM does not reduce the strength of indices: 15 % of its time, for addresses that are as good
        following = self.new(I64, f"freeze {added}")
        back = self.branch(following < last, head, out)
        self.begin(out)
        rounds = zip([loop.index, *loop.values], [first, *carried], [following, *loop.following], strict=True)
        self.lines[at:at] = [f"  {x.text} = {joined(a, before, c, back)}" for x, a, c in rounds]
        if certain:
            loop.results = loop.following
            return
        ends = zip(carried, loop.following, strict=True)
        loop.results = [self.new(a.type, joined(a, before, c, back)) for a, c in ends]

    @contextmanager
    def forever(self) -> Iterator[None]:
        """Repeat what follows until the function returns."""
        head = self.label("again")
        self.end(f"br label %{head}")
        self.begin(head)
        yield
        self.end(f"br label %{head}")

    @contextmanager
    def when(self, condition: Value) -> Iterator[AbstractContextManager[None]]:
        """Do what follows if a condition holds; what is yielded does what follows it if not."""
        yes, no = self.label("when"), self.label("otherwise")
        self.branch(condition, yes, no)
        self.begin(yes)
        leaving: list[int] = []  # where the line stands that leaves the first part
        yield self.otherwise(leaving, no)
        if self.block is not None:
            leaving.append(len(self.lines))
            self.end(f"br label %{no}")
        self.begin(no)

    @contextmanager
    def otherwise(self, leaving: list[int], no: str) -> Iterator[None]:
        """Do what follows if the condition of a `when` did not hold."""
        if not self.lines or self.lines[-1] != f"{no}:":
            raise TypeError("something stands between a `when` and its other part")
        yield
        join = self.label("join")
        for line in leaving:
            self.lines[line] = f"  br label %{join}"
        if self.block is not None:
            self.end(f"br label %{join}")
            leaving.append(len(self.lines))
        if leaving:
            self.begin(join)

    def either(
        self, condition: Value, yes: Callable[[], Sequence[Value]], no: Callable[[], Sequence[Value]]
    ) -> list[Value]:
        """Do one of two things, and return the values that it gave."""
        first, second, join = self.label("either"), self.label("or"), self.label("join")
        self.branch(condition, first, second)
        self.begin(first)
        given = yes()
        before = self.end(f"br label %{join}")
        self.begin(second)
        other = no()
        back = self.end(f"br label %{join}")
        self.begin(join)
        pairs = zip(given, other, strict=True)
        return [x if x is y else self.new(x.type, joined(x, before, y, back)) for x, y in pairs]

    # ---------------------------------------------------------------- text

    def name(self, of: str = "") -> str:
        """Return a name for a value that nothing else has."""
        self.names += 1
        return f"%{self.mark}{of}.{self.names}"

    def named(self, kind: Type) -> Value:
        """Return a value that is to be defined later."""
        return Value(self, kind, self.name())

    def label(self, of: str) -> str:
        """Return a name for a block that nothing else has."""
        return self.name(of)[1:]

    def put(self, instruction: str) -> None:
        """Write an instruction that gives nothing."""
        if self.block is None:
            raise TypeError(f"the function has returned before: {instruction}")
        self.lines.append(f"  {instruction}")

    def new(self, kind: Type, instruction: str, of: str = "") -> Value:
        """Write an instruction and return the value that it gives."""
        if self.block is None:
            raise TypeError(f"the function has returned before: {instruction}")
        self.names += 1
        name = f"%{self.mark}{of}.{self.names}"
        self.lines.append(f"  {name} = {instruction}")
        return Value(self, kind, name)

    def end(self, instruction: str) -> str | None:
        """Write what ends a block; return the block."""
        self.put(instruction)
        ended, self.block = self.block, None
        return ended

    def branch(self, condition: Value, yes: str, no: str) -> str | None:
        """End a block with a condition; return the block."""
        return self.end(f"br {self.operand(condition, BOOL)}, label %{yes}, label %{no}")

    def begin(self, block: str) -> None:
        """Begin a block."""
        self.lines.append(f"{block}:")
        self.block = block

    def finished(self) -> list[str]:
        """Return the lines, when all are written."""
        if self.block is not None:
            if not isinstance(self.returns, Void):
                raise TypeError(f"the function ends without giving {self.returns!r}")
            self.give()
        return self.lines


def written_constant(kind: Type, value: Operand) -> str:
    """Return a number, or the address of nothing, as LLVM's language has it; of a float the digits of a double."""
    if type(kind) is Vector:
        return f"splat ({kind.element.text} {written_constant(kind.element, value)})"
    if type(kind) is Float and isinstance(value, (float, int)):
        return f"0x{DOUBLE.pack(value if kind.bits == 64 else kind.ctype(value).value).hex()}"
    if type(kind) is Integer and isinstance(value, int) and kind.holds(value):
        return str(int(value))
    if type(kind) is Pointer and value is None:
        return "null"
    raise TypeError(f"{value!r} is not {kind!r}")


@functools.cache
def written_places(places: tuple[int, ...]) -> str:
    """Return which elements of vectors a shuffle takes."""
    return f"<{len(places)} x i32> <{listed([f'i32 {place}' for place in places])}>"


def joined(x: Value, before: str | None, y: Value, back: str | None) -> str:
    """Return the instruction for a value that depends on where the control came from."""
    return f"phi {x.type} [ {x.text}, %{before} ], [ {y.text}, %{back} ]"
