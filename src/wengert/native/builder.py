"""Functions in LLVM's language, written as Python functions: the only module that knows how it is written.

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
from dataclasses import dataclass
from typing import Literal

from wengert.native.structs import (
    BOOL,
    I32,
    I64,
    POINTER,
    VOID,
    Array,
    Float,
    Integer,
    Pointer,
    Scalar,
    Signature,
    Struct,
    Type,
    Vector,
    Void,
    vector_of,
)

__all__ = ["Builder", "Function", "Table", "Template", "Value", "external", "native", "program", "template"]

Conversion = Literal["trunc", "zext", "sext", "fptrunc", "fpext", "fptosi", "fptoui", "sitofp", "uitofp", "bitcast"]
"""How numbers become those of another type: LLVM's names."""

Order = Literal["monotonic", "acquire", "release", "acq_rel", "seq_cst"]
"""How an atomic operation is ordered among others of its thread: LLVM's names, which are those of C11."""


@dataclass(frozen=True, eq=False)
class Function:
    """A native function.

    Attributes:
        name: by which it is called.
        signature: its type.
        body: what writes its body; none if the system has it.
        parameters: their names, if they are not those of the Python function that writes the body.
        rare: whether it is called so rarely that its callers keep nothing in memory for its sake.
        convention: LLVM's name of how it is called, which says what registers it leaves alone; none for the usual one.
    """

    name: str
    signature: Signature
    body: Callable[..., None] | None = None
    parameters: tuple[str, ...] = ()
    rare: bool = False
    convention: str = ""

    @property
    def head(self) -> str:
        """Its convention, type and name, as definitions and calls have them."""
        return f"{self.convention} {self.signature.returns} @{self.name}".lstrip()


@dataclass(frozen=True)
class Table:
    """Constants in memory.

    Attributes:
        name: of them.
        scalar: their type.
        values: the constants.
    """

    name: str
    scalar: Scalar
    values: tuple[float, ...]


@dataclass(frozen=True)
class Template:
    """Instructions that are written once and pasted into functions often, which is a hundred times as fast.

    Attributes:
        text: the instructions; `MARK` stands where a name is to become one that the function does not have.
        results: the types and names of what they give.
        called: the functions that they call.
        block: the block that they end in.
    """

    text: str
    results: tuple[tuple[Type, str], ...]
    called: tuple[Function | Table, ...]
    block: str


DOUBLE = struct.Struct(">d")
MARK = "~"
BEGIN = f"{MARK}begin"


def template(kinds: Sequence[Type], write: Callable[..., Sequence[Value]]) -> Template:
    """Return what a Python function writes as a template.

    Args:
        kinds: the types of its arguments.
        write: what is called with a builder and the arguments, and returns the results.
    """
    b = Builder(VOID, MARK)
    found = write(b, *(Value(b, kind, argument(n)) for n, kind in enumerate(kinds)))
    assert b.block is not None
    return Template("\n".join(b.lines), tuple((x.type, x.text) for x in found), tuple(b.called), b.block)


def argument(number: int) -> str:
    """Return what stands for an argument of a template."""
    return f"%{MARK}argument{number}."


def native(returns: Type | Void, *parameters: Type) -> Callable[[Callable[..., None]], Function]:
    """Make a native function of a Python function that writes it.

    Args:
        returns: the type of its result.
        parameters: the types of its arguments, which follow the builder in those of the Python function.
    """
    return lambda body: Function(body.__name__, Signature(returns, parameters), body)


@functools.cache
def external(name: str, returns: Type | Void, *parameters: Type) -> Function:
    """Return a function of the C library or of the processor."""
    return Function(name, Signature(returns, parameters))


def program(*exported: Function) -> str:
    """Return the text of functions and of all that they call; the others cannot be called from outside."""
    texts: dict[Function | Table, str] = {}
    waiting: list[Function | Table] = list(exported)
    while waiting:
        function = waiting.pop()
        if function not in texts:
            texts[function], called = written(function, exported)
            waiting.extend(called)
    names = [function.name for function in texts]
    if len(set(names)) < len(names):
        raise TypeError(f"two functions have one name: {sorted(names)}")
    return "\n".join(texts[function] for function in sorted(texts, key=lambda f: f.name))


def written(function: Function | Table, exported: Sequence[Function]) -> tuple[str, list[Function | Table]]:
    """Return the text of one function, and those that it calls; or that of constants."""
    if isinstance(function, Table):
        b = Builder(VOID)
        values = listed([b.constant(function.scalar, value) for value in function.values])
        return f"@{function.name} = internal constant [{len(function.values)} x {function.scalar}] [{values}]\n", []
    signature, attributes = function.signature, " cold noinline" if function.rare else ""
    if function.body is None:
        return f"declare {function.head}({listed(signature.parameters)}){attributes}\n", []
    b = Builder(signature.returns)
    code = function.body.__code__
    names = function.parameters or code.co_varnames[1 : code.co_argcount]
    if len(names) != len(signature.parameters):
        raise TypeError(f"{function.name}: {len(names)} parameters of {len(signature.parameters)} types")
    parameters = [Value(b, kind, f"%{name}") for kind, name in zip(signature.parameters, names, strict=True)]
    function.body(b, *parameters)
    linkage = "" if function in exported else "internal "
    head = f"define {linkage}{function.head}({listed(parameters)}){attributes} {{\nentry:\n"
    return head + "\n".join([*b.stacked, *b.finished()]) + "\n}\n", list(b.called)


def listed(items: Sequence[object]) -> str:
    """Return what stands between parentheses."""
    return ", ".join(map(str, items))


class Value:
    """Be something that native code computes, with its type; prints as LLVM's language has it."""

    __slots__ = ("b", "text", "type")

    def __init__(self, b: Builder, kind: Type, text: str) -> None:
        self.b = b
        self.type = kind
        self.text = text

    def __str__(self) -> str:
        return f"{self.type.text} {self.text}"

    def __bool__(self) -> bool:
        raise TypeError("it is not known before the code runs; use `when`, `&` and `|`")

    def __add__(self, other: Operand) -> Value:
        return self.b.binary("add", self, other)

    def __sub__(self, other: Operand) -> Value:
        return self.b.binary("sub", self, other)

    def __mul__(self, other: Operand) -> Value:
        return self.b.binary("mul", self, other)

    def __truediv__(self, other: Operand) -> Value:
        return self.b.binary("div", self, other)

    def __neg__(self) -> Value:
        if not isinstance(element(self.type), Float):
            return self.b.constant(self.type, 0) - self
        return self.b.new(self.type, f"fneg {self}")

    def __floordiv__(self, other: Operand) -> Value:
        return self.b.binary("udiv", self, other)

    def __mod__(self, other: Operand) -> Value:
        return self.b.binary("urem", self, other)

    def __and__(self, other: Operand) -> Value:
        return self.b.binary("and", self, other)

    def __or__(self, other: Operand) -> Value:
        return self.b.binary("or", self, other)

    __radd__, __rmul__, __rand__, __ror__ = __add__, __mul__, __and__, __or__

    def __rsub__(self, other: Operand) -> Value:
        return self.b.constant(self.type, other) - self

    def __lt__(self, other: Operand) -> Value:
        return self.b.compare("slt", self, other)

    def __le__(self, other: Operand) -> Value:
        return self.b.compare("sle", self, other)

    def __gt__(self, other: Operand) -> Value:
        return self.b.compare("sgt", self, other)

    def __ge__(self, other: Operand) -> Value:
        return self.b.compare("sge", self, other)

    def equals(self, other: Operand) -> Value:
        """Whether two numbers or addresses are the same."""
        return self.b.compare("eq", self, other)

    def differs(self, other: Operand) -> Value:
        """Whether two numbers or addresses are not the same."""
        return self.b.compare("ne", self, other)

    def widened(self, kind: Integer) -> Value:
        """Return the same number in more bits; it must not be negative."""
        if not isinstance(self.type, Integer) or self.type.bits >= kind.bits:
            raise TypeError(f"{self.type!r} cannot be widened to {kind!r}")
        return self.b.new(kind, f"zext {self} to {kind}")

    def to(self, target: Type) -> Value:
        """Return an address as that of something of another type."""
        self.pointee()
        return Value(self.b, Pointer(target), self.text)

    def field(self, name: str) -> Value:
        """Return the address of a structure's field; of an array's first element, if the field is one."""
        struct = self.pointee()
        if not isinstance(struct, Struct) or name not in struct.fields:
            raise TypeError(f"{struct!r} has no field {name!r}")
        kind = struct.fields[name]
        target = Pointer(kind.element if isinstance(kind, Array) else kind)
        return self.b.new(target, f"getelementptr i8, {self}, i64 {struct.offset(name)}", name)

    def at(self, index: Operand) -> Value:
        """Return the address of an element, counted from the one that this is the address of."""
        return self.b.new(self.type, f"getelementptr {self.pointee()}, {self}, {self.b.operand(index, I64)}")

    def get(self, name: str) -> Value:
        """Load a field."""
        return self.field(name).load()

    def set(self, name: str, value: Operand) -> None:
        """Store a field."""
        self.field(name).store(value)

    def load(self, order: Order | None = None) -> Value:
        """Load what is at this address; atomically, if an order is given."""
        kind = self.stored()
        if order is None:
            return self.b.new(kind, f"load {kind}, {self}, align {size(kind)}")
        return self.b.new(kind, f"load atomic {kind}, {self} {order}, align {size(kind)}")

    def store(self, value: Operand, order: Order | None = None) -> None:
        """Store a value at this address; atomically, if an order is given."""
        kind = self.stored()
        stored = self.b.operand(value, kind)
        if order is None:
            self.b.put(f"store {stored}, {self}, align {size(kind)}")
        else:
            self.b.put(f"store atomic {stored}, {self} {order}, align {size(kind)}")

    def load_where(self, mask: Value) -> Value:
        """Load those numbers of a vector for which a mask is set; the others are zero and are not touched."""
        kind = self.stored()
        zero = self.b.constant(kind, 0)
        return self.b.intrinsic("masked.load", kind, self.as_address(), size(kind), mask, zero, of=(kind, POINTER))

    def store_where(self, value: Value, mask: Value) -> None:
        """Store those numbers of a vector for which a mask is set."""
        of = self.stored(), POINTER
        self.b.do_intrinsic("masked.store", value, self.as_address(), size(value.type), mask, of=of)

    def gather(self, indices: Value, mask: Value) -> Value:
        """Load the numbers at several indices from this address, where a mask is set; the others are zero."""
        count = vector(indices.type).count
        kind, addresses = Vector(numeric(self.stored()), count), self.addresses(indices)
        zero = self.b.constant(kind, 0)
        of = kind, addresses.type
        return self.b.intrinsic("masked.gather", kind, addresses, size(kind), mask, zero, of=of)

    def scatter(self, value: Value, indices: Value, mask: Value) -> None:
        """Store numbers at several indices from this address, where a mask is set."""
        addresses = self.addresses(indices)
        of = value.type, addresses.type
        self.b.do_intrinsic("masked.scatter", value, addresses, size(value.type), mask, of=of)

    def addresses(self, indices: Value) -> Value:
        """Return the addresses of several elements, counted from the one that this is the address of."""
        kind = Vector(POINTER, vector(indices.type).count)
        return self.b.new(kind, f"getelementptr {self.pointee()}, {self}, {indices}")

    def as_address(self) -> Value:
        """Return an address as that of anything."""
        return Value(self.b, POINTER, self.text)

    def fetch_add(self, value: Operand, order: Order) -> Value:
        """Add to the number at this address, atomically; return what was there before."""
        return self.update("add", value, order)

    def fetch_or(self, value: Operand, order: Order) -> Value:
        """Set bits of the number at this address, atomically; return what was there before."""
        return self.update("or", value, order)

    def update(self, operation: str, value: Operand, order: Order) -> Value:
        """Combine the number at this address with another, atomically."""
        kind = self.stored()
        return self.b.new(kind, f"atomicrmw {operation} {self}, {self.b.operand(value, integer(kind))} {order}")

    def compare_exchange(self, old: Operand, new: Operand, order: Order) -> Value:
        """Store `new` at this address if `old` is there, atomically; return whether it was."""
        kind = integer(self.stored())
        operands = f"{self.b.operand(old, kind)}, {self.b.operand(new, kind)}"
        pair = self.b.name()
        self.b.put(f"{pair} = cmpxchg {self}, {operands} {order} {order}")
        return self.b.new(BOOL, f"extractvalue {{ {kind}, i1 }} {pair}, 1")

    def pointee(self) -> Type | Signature | None:
        """Return the type of what this is the address of."""
        if not isinstance(self.type, Pointer):
            raise TypeError(f"{self.type!r} is no address")
        return self.type.to

    def stored(self) -> Integer | Float | Pointer | Vector:
        """Return the type of the number, the address or the vector that this is the address of."""
        kind = self.pointee()
        if not isinstance(kind, Integer | Float | Pointer | Vector):
            raise TypeError(f"{kind!r} is no number and no address")
        return kind


Operand = Value | Function | float | None
"""What may be given where a value of a known type is needed: a number, None for no address, a function for its own."""


def integer(kind: Type) -> Integer:
    """Return a type that must be one of integers."""
    if not isinstance(kind, Integer):
        raise TypeError(f"{kind!r} is no number")
    return kind


def numeric(kind: Type) -> Scalar:
    """Return a type that must be one of numbers."""
    if not isinstance(kind, Integer | Float):
        raise TypeError(f"{kind!r} is no number")
    return kind


def vector(kind: Type) -> Vector:
    """Return a type that must be one of vectors."""
    if not isinstance(kind, Vector):
        raise TypeError(f"{kind!r} is no vector")
    return kind


def element(kind: Type) -> Type:
    """Return the type of a vector's elements; other types as they are."""
    return kind.element if isinstance(kind, Vector) else kind


def like(kind: Type, scalar: Scalar) -> Type:
    """Return a type of other numbers: of as many, if it is a vector."""
    return vector_of(scalar, kind.count) if isinstance(kind, Vector) else scalar


def size(kind: Type) -> int:
    """Return the bytes of a number or an address, or of a vector's element: its alignment."""
    kind = element(kind)
    return kind.bits // 8 if isinstance(kind, Integer | Float) else 8


FLOATING = {"add": "fadd", "sub": "fsub", "mul": "fmul", "div": "fdiv", "rem": "frem"}
ORDERED = {"slt": "olt", "sle": "ole", "sgt": "ogt", "sge": "oge", "eq": "oeq", "ne": "une"}
"""LLVM's names of operations on integers that floating-point numbers have as well."""


def suffix(kind: Type) -> str:
    """Return what the names of LLVM's functions end in that exist for many types."""
    if isinstance(kind, Vector):
        return f"v{kind.count}{suffix(kind.element)}"
    if isinstance(kind, Float):
        return f"f{kind.bits}"
    return f"i{integer(kind).bits}" if not isinstance(kind, Pointer) else "p0"


@functools.cache
def intrinsic(name: str, of: tuple[Type, ...], returns: Type | Void, parameters: tuple[Type, ...]) -> Function:
    """Return one of LLVM's functions that exist for many types."""
    return external(".".join(["llvm", name, *map(suffix, of)]), returns, *parameters)


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
    def loop(self, stop: Operand, start: Operand = 0, carry: Sequence[Operand] = (), step: int = 1) -> Iterator[Loop]:
        """Repeat what follows for each number from `start` up to `stop`, which is not among them.

        Args:
            stop: where to stop.
            start: where to start.
            carry: values that a round hands to the next one, as they are at the start; Python's numbers are I64.
            step: from one number to the next.
        """
        first, last = self.operand(start, I64), self.operand(stop, I64)
        carried = [self.operand(value, value.type if isinstance(value, Value) else I64) for value in carry]
        head, out = self.label("loop"), self.label("done")
        certain = isinstance(start, int) and isinstance(stop, int) and start < stop
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
